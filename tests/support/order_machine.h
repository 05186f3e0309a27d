// A machine for scripts: clusters of threads without instructions, whose events go to the race check as the emulator's
// instructions do.
#pragma once

#include "order_script.h"

typedef struct OrderMachine OrderMachine;

// An access of a script: the event's number, and the thread in the grid; of an operation the thread that has issued it.
typedef struct Party {
  int event, thread;
} Party;

// Two accesses that stand badly to each other. FINE: the check has found something that scripts have not.
typedef struct Conflict {
  Verdict verdict;
  Spot byte;  // the first one
  Party here, other;
} Conflict;

OrderMachine *order_machine_open(const Script *script);
void order_machine_close(OrderMachine *machine);
// The next event happens.
void order_machine_follow(OrderMachine *machine, int event);
// What was found first, or NULL.
const Conflict *order_machine_found(const OrderMachine *machine);
