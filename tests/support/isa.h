// The forms of the PTX ISA's instructions that tests/isa/instructions.txt lists, as kernels.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// A line of the list, "add.<u16|s16> %h1, %h2, %h3;", and the probes that it stands for.
typedef struct ProbeLine {
  const char *text;
  bool foreign;  // no instruction of sm_90a
  char **probes;
  int count;
} ProbeLine;

// An instruction: a section of the PTX ISA, its name, its probes.
typedef struct IsaRow {
  const char *chapter;  // "Integer arithmetic"
  const char *section, *name;
  ProbeLine *lines;
  int count;
} IsaRow;

// The whole list; it lives as long as the program.
const IsaRow *isa_rows(int *count);

// The instruction of a probe, or of a line, that its row is about: "add.u16". A static string, until the next call.
const char *isa_form(const IsaRow *row, const char *text);

// What stands before all kernels of a module.
extern const char isa_module[];
// The text of the kernel `name` that executes a probe, in 128 threads of each of two blocks that are a cluster. Its
// parameters are the address of 64 KiB and a tensor map.
void isa_kernel(char *text, size_t size, const char *name, const char *probe);
