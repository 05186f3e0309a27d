// What hopper-run must know about a program before it starts it.
#pragma once

#include <stdbool.h>

enum { ELF_NEEDED = 64 };

typedef struct ElfFacts {
  bool is_elf;
  char *needed[ELF_NEEDED];  // the libraries that it is linked with, as it names them
  int needed_count;
  bool has_kernels;      // that the runtime registers; nvcc links an empty fatbin into every program
  bool imports_runtime;  // the CUDA runtime's functions come from a shared library
} ElfFacts;

// False when the file cannot be read. For a file that is not an ELF file of this machine, such as a script, is_elf is
// false.
bool elf_read(const char *path, ElfFacts *facts);
// Whether the program is linked with a library whose name begins with this prefix.
bool elf_needs(const ElfFacts *facts, const char *prefix);
