// The table of instructions.
#pragma once

#include "../warp/instruction.h"

// The row of an instruction, NULL when it is unknown.
const Instruction *instruction_find(const PtxInstruction *source);
// "; there is wmma.load, wmma.store": the instructions of an opcode that has several, for an error; else nothing.
void instruction_list(const char *opcode, char *text, size_t size);
