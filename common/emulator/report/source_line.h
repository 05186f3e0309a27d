// Where in the source an instruction stands: .loc gives a line, and the lines of the calls that were inlined.
#pragma once

#include "../emulator.h"
#include "../parse/ptx.h"

// The line that an instruction belongs to: the innermost one in the kernel's own file, so that a helper defined there
// is reported by its own lines and one from a header by the line that calls it. For a kernel that stands in a header,
// the files of the header's folder and of the folders beside it are its own. False when unknown.
bool instruction_line(const PtxModule *module, const PtxInstruction *source, const char **file, int *line);

// The same line, and those of the calls in the same file that led there, innermost first. Returns how many, at most
// `most`; 0 when unknown.
int source_lines(const PtxModule *module, const PtxInstruction *source, int *lines, int most);

// Gives a place its frames, and its file and line, which are one of them. The frames are to be freed.
void find_frames(const PtxModule *module, const PtxInstruction *source, HazardPlace *place);

// "line 12", "line 12 (called at 30)" in a function that the kernel's file has, too, or "PTX line 40" when no line of
// the source is known.
typedef struct LineText {
  char text[48];
} LineText;

LineText named_line(const PtxModule *module, const PtxInstruction *source);
