// Loads of local memory that a selp right after them discards.
//
// `found ? value : -1` does not read value in C++ when nothing was found. nvcc loads it all the same if it lies in local
// memory, where a load cannot fail, and selects afterwards. So the load reads nothing for the lanes that select the other
// operand: their predicate is known when it executes.
#pragma once

#include "../warp/program.h"

// In Inst.flags of a load whose Inst.c is the slot of a predicate: which lanes use the value.
enum { SELECTED_IF_TRUE = 1, SELECTED_IF_FALSE = 2 };

// Called after a program is decoded: notes such selections at their loads.
void find_discarded_loads(Program *program);
