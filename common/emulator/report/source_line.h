// Where in the source an instruction stands: .loc gives a line, and the lines of the calls that were inlined.
#pragma once

#include "../emulator.h"
#include "../parse/ptx.h"
#include "../warp/machine.h"

// The line that an instruction belongs to: the innermost one in the kernel's own file, so that a helper defined there
// is reported by its own lines and one from a header by the line that calls it. For a kernel that stands in a header,
// the files of the header's folder and of the folders beside it are its own. False when unknown.
bool instruction_line(const PtxModule *module, const PtxInstruction *source, const char **file, int *line);

// The same line, and those of the calls in the same file that led there, innermost first. Returns how many, at most
// `most`; 0 when unknown.
int source_lines(const PtxModule *module, const PtxInstruction *source, int *lines, int most);

// The function that has an instruction.
const Function *home_of(const Program *program, const Inst *inst);

// Whether two instructions of one kind stand in one line: in copies of the body of an unrolled loop.
bool are_copies(const Inst *a, const Inst *b);

// Gives a place its frames, and its file and line, which are one of them. The frames are to be freed.
void find_frames(const PtxModule *module, const PtxInstruction *source, HazardPlace *place);

// "line 12", "line 12 (called at 30)" in a function that the kernel's file has, too, or "PTX line 40" when no line of
// the source is known.
typedef struct LineText {
  char text[48];
} LineText;

LineText named_line(const PtxModule *module, const PtxInstruction *source);

// The variables of shared memory by their names, for reports.

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
