// Files for the tests of the PTX front end.
#pragma once

#include <stddef.h>

#include "emulator/emulator.h"

typedef struct Text {
  char *bytes;  // NUL-terminated; the caller frees them
  size_t length;
} Text;

// The whole of a file, which must be there.
Text read_text(const char *path);
// Calls visit for every file of folder that ends in suffix; returns how many there were.
int for_each_file(const char *folder, const char *suffix, void (*visit)(const char *path));
// The same for a folder inside tests/ptx.
int for_each_in_corpus(const char *folder, const char *suffix, void (*visit)(const char *path));

// emulator_load of a text whose kernels must all be known: NULL and *error for an instruction too that is not.
EmulatorModule *load_checked(Emulator *emulator, const char *text, size_t length, EmulatorError *error);
