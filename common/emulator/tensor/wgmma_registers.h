// wgmma's hold on registers: which ones an instruction in flight still uses, and which were written since wgmma.fence.
#pragma once

#include "../warp/machine.h"
#include "product.h"

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

// ---- wgmma.c ----

// Which element of its warp's 16 rows of D (fp32) a lane has in register `number` of the instruction's list.
void wgmma_place(int lane, int number, int *row, int *column);

// ---- wgmma_plan.c ----

// What a wgmma.mma_async computes and where its operands are. PTX ISA 9.7.16.5, sparse 9.7.16.6.

// Whatever the type, a row of A has 32 bytes, and a column of B as many or, when A is sparse, twice that. A line of it
// is cut into units of 16 bytes; the descriptor counts elements of 16 bits.
enum { ROWS = 64, WARP_ROWS = 16, A_BYTES = 32, MAX_B_BYTES = 64, UNIT = 8, MAX_N = 256, MAX_ACCUMULATORS = 128 };

typedef struct WgmmaPlan {
  int n;
  Product product;
  int b_bytes;             // of a column
  bool half_accumulators;  // fp16: two to a register
  int accumulators;        // registers
  Slot d[MAX_ACCUMULATORS];
  bool a_in_registers;
  Slot a[4];     // registers, or a[0] the descriptor
  Slot b;        // descriptor
  Slot scale_d;  // predicate
  bool scale_d_negated;
  bool a_mn_major, b_mn_major;
  Slot metadata;  // of a sparse A
  int selector;
} WgmmaPlan;

// Fills the plan. False after decoder_error.
bool wgmma_plan_decode(Decoder *decoder, const PtxInstruction *source, WgmmaPlan *plan);
