// Runs a program of this repository and keeps what it did.
#pragma once

#include <stddef.h>

enum { MAX_OUTPUT = 1 << 18 };

typedef struct Output {
  int code;                               // exit code; 128 + the signal's number when one ended the program
  char out[MAX_OUTPUT], err[MAX_OUTPUT];  // the beginning of standard output and error
} Output;

// The folder of the repository: $HL_ROOT, or ".".
const char *root_path(void);

// The program of the stage with this name, "stage-02b" of "02b-wmma-pv": a static string, until the next call.
const char *program_of(const char *stage);

// Runs root/name with the arguments, which end with NULL. The caller frees the result.
Output *run_program(const char *name, const char *const *arguments);
// The same with the arguments in one string, separated by spaces.
Output *run_line(const char *name, const char *line);
// Reads a file whole, with a 0 after it; NULL when it cannot be read. The caller frees it.
char *read_whole(const char *path, size_t *size);
