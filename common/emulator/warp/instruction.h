// What the emulator knows of an instruction: a row of the table in run/instructions.c.
#pragma once

#include "decoder.h"

// What an instruction does with memory, as far as counters distinguish it.
typedef enum MemoryUse {
  MEMORY_NONE,
  MEMORY_LOAD,
  MEMORY_STORE,
  MEMORY_ATOMIC,
  MEMORY_SWAP,  // an atomic compare-and-swap
  MEMORY_REDUCTION,
  MEMORY_COPY,          // cp.async
  MEMORY_CACHED_COPY,   // the same through the L1 cache
  MEMORY_BULK_LOAD,     // bulk and tensor copies from global memory,
  MEMORY_BULK_STORE,    // to it,
  MEMORY_BULK_REDUCE,   // into it,
  MEMORY_BULK_CLUSTER,  // and from block to block
  MEMORY_MATRICES,      // wgmma's operands in shared memory
} MemoryUse;

// What the checks of wgmma's registers (wgmma_registers.c) make of an instruction that touches one.
typedef enum RegisterUse {
  REGISTERS_USED,      // it reads and writes them when it executes
  REGISTERS_RENAMED,   // a mov of one register to another only gives the value one more name
  REGISTERS_OF_WGMMA,  // it is one of wgmma's own
} RegisterUse;

// What an instruction may do on the way of an address, from a variable or a parameter to the access. What a load
// returns, or a product, is an index.
typedef enum AddressUse {
  ADDRESS_NO_MORE,
  ADDRESS_COPIED,   // the result is the operand
  ADDRESS_ADDED,    // with an integer as its last operand: a known distance away
  ADDRESS_DERIVED,  // an operand is part of it
} AddressUse;

// What becomes of values that nothing defines (report/undefined.h) when they are operands of an instruction.
typedef enum ValueUse {
  VALUES_BY_CLASS,   // arithmetic computes from them; anything else depends on them, such as a branch
  VALUES_COMPUTED,   // the results depend on the operands alone
  VALUES_MOVED,      // the same, and the results are bits of the operands
  VALUES_OF_MEMORY,  // ld and st: memory/load_store.c
} ValueUse;

// Whose accesses an instruction orders.
typedef enum Orders {
  ORDERS_NOTHING,
  ORDERS_WARP,     // a barrier of lanes of a warp
  ORDERS_BLOCK,    // a barrier of threads of a block: .sync, .red or .arrive
  ORDERS_CLUSTER,  // an arrival at the cluster's barrier, or a wait
  ORDERS_MEMORY,   // a fence: those of the thread
  ORDERS_PROXIES,  // a proxy fence: those of the thread through two proxies
} Orders;

// Architectures that brought instructions: ten times the number, and one more with an a.
enum { SM_80 = 800, SM_86 = 860, SM_89 = 890, SM_90 = 900, SM_90A = 901 };

typedef struct Instruction {
  const char *name;  // the opcode, and the modifiers that distinguish it from others of this opcode
  uint32_t types;    // a bit for each PtxType that its last type may be; 0: any, or none
  DecodeFunction *decode;
  CounterKind counter;  // its class, COUNTER_INST_...
  MemoryUse memory;
  RegisterUse registers;
  AddressUse address;
  ValueUse values;
  Orders orders;
  bool in_warp_order;  // shared memory serves it, and a store of the same warp, in the program's order: tests/rules
  bool compares;       // its result is a predicate, of two operands
  bool calls;          // it calls a function
  bool uses_stack;     // that of alloca
  bool skipped;        // while a hang is explained, and warps are only followed: run/stuck.c
  int mufu;            // MUFU instructions that ptxas makes of it
  bool scaled;         // and it scales subnormals around them: 32 bits, without .ftz
  int target;          // the oldest that has it; 0: all. What its modifiers need is in run/target.c
} Instruction;

static inline bool is_asynchronous_copy(const Instruction *row) {
  return row->memory >= MEMORY_COPY && row->memory <= MEMORY_BULK_CLUSTER;
}

static inline bool is_atomic(const Instruction *row) {
  return row->memory >= MEMORY_ATOMIC && row->memory <= MEMORY_REDUCTION;
}
