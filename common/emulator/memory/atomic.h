// What a read-modify-write makes of a value: shared by atom, red and the asynchronous reductions.
#pragma once

#include "memory.h"

// The new value of a memory element, from the old one and the operands. Values are in the low bits.
typedef uint64_t Combine(uint64_t old, uint64_t b, uint64_t c);

// The function of cp.reduce's operations ("add", "min", ...) on elements of a type, in global or shared memory; NULL
// when there is none. PTX ISA 9.7.9.25.4.2.
Combine *reduction_find(const char *operation, PtxType type, bool global);
// The same, with subnormals flushed where they are not yet.
Combine *reduction_flushing(Combine *combine);

// What a compare-and-swap works on.
typedef struct Swap {
  const AddressPlan *address;
  int size;                       // bytes
  Slot found, expected, desired;  // registers: what was there, what must be there, and what it becomes then
} Swap;

// False if the instruction is none, or gives back nothing.
bool swap_of(const Inst *inst, Swap *swap);
