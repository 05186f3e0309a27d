// A machine for scripts: clusters without a program, whose events go to the race check as the emulator's instructions
// do.
#pragma once

#include "emulator/emulator.h"
#include "order_script.h"

typedef struct OrderMachine OrderMachine;

OrderMachine *order_machine_open(const Script *script);
void order_machine_close(OrderMachine *machine);
// The next event happens.
void order_machine_follow(OrderMachine *machine, int event);
// The first report, or NULL. An event's PTX line is its number plus one.
const Hazard *order_machine_report(const OrderMachine *machine);
