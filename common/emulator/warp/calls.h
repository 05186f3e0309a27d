// The calls that each lane of a warp is in: control.c makes them, and addresses of .local variables depend on them.
#pragma once

#include <stdint.h>

#include "program.h"

// A lane's way back from the calls it is in.
typedef struct Binding Binding;  // control.c

typedef struct CallFrame {
  uint32_t back;  // the instruction behind the call
  const Binding *binding;
  uint64_t stack;  // alloca's pointer of this lane
  uint8_t *saved;  // the callee's registers of this lane, when it was entered again before it returned
} CallFrame;

typedef struct CallStack {
  CallFrame *frames;
  int depth, capacity;
  uint64_t local_base;  // where the running function's .local variables begin
} CallStack;
