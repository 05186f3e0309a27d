// The variables of shared memory by their names, for reports.
#pragma once

#include "../warp/machine.h"

// "byte 16 of `tile`", "bytes 16 to 31 of `tile`"; of dynamic shared memory by the name of its array. An empty text
// when no variable has all the bytes.
typedef struct VariableText {
  char text[160];
} VariableText;

VariableText shared_bytes_text(const Launch *launch, uint64_t address, int size);

// The variable of shared memory that has the address, or NULL. *size: its bytes, of the dynamic array those of the
// launch.
const Place *shared_variable(const Launch *launch, uint64_t address, uint64_t *size);
// The one variable of shared memory from which the instruction forms its addresses; NULL when that does not show.
const Place *shared_variable_of(const Program *program, const Inst *inst);

// The name of a variable as the source has it.
typedef struct NameText {
  char text[80];
} NameText;

NameText variable_name(const PtxVariable *variable);
