// What hopper-run wants to know of a program before it starts it.
#pragma once

#include <stdbool.h>

enum { ELF_NEEDED = 64 };

typedef struct ElfFacts {
  bool is_elf;
  char *needed[ELF_NEEDED];  // the libraries that it is linked with, as it names them
  int needed_count;
  bool has_kernels;      // a section with device code
  bool imports_runtime;  // the CUDA runtime's functions come from a shared library
} ElfFacts;

// False when the file cannot be read. A file that is no ELF file for this machine, a script, is read, with is_elf false.
bool elf_read(const char *path, ElfFacts *facts);
// Whether it is linked with a library whose name begins so.
bool elf_needs(const ElfFacts *facts, const char *prefix);
