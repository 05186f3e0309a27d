// wgmma's hold on registers: which ones an instruction in flight still uses, and which were written since wgmma.fence.
#pragma once

#include "../warp/machine.h"

enum { SLOT_UNIT = 64 };  // slots start at multiples of it

// What a register stands for, by slot / SLOT_UNIT.
typedef struct RegisterName {
  uint32_t number;   // of the wgmma whose result it names, from 1; 0 for none
  uint32_t element;  // of that result: accumulator register
  uint32_t read_by;  // number of the last wgmma that reads it as A
  uint32_t used;     // wgmma.fences so far, plus one, when anything last used it, wgmma included
  uint32_t touched;  // the same of other instructions: reads, and writes but of constants
  bool constant;     // it holds a constant
} RegisterName;

typedef struct WgmmaState {
  uint32_t issued;     // wgmma so far, which number them
  uint32_t performed;  // of those
  uint32_t waited;     // of those: known complete through wait_group
  uint32_t fences;     // wgmma.fence so far
  uint32_t awaited;    // the one that it waits for in vain, because other warps have not executed it yet; 0: none
  RegisterName *names;
} WgmmaState;

// Called after a program is decoded: finds the registers that wgmma uses, and makes every other instruction that
// touches one check it before it executes.
void wgmma_watch_program(Program *program);

WgmmaState *wgmma_state(Warp *warp);
void wgmma_state_free(WgmmaState *state);
bool register_in_flight(const WgmmaState *state, Slot slot);
// Writes the results of wgmma `number` to all registers that name them. results[element][lane].
void registers_receive(Warp *warp, uint32_t number, const uint32_t (*results)[LANES]);
