// A folder of its own for each test, for shell commands and made-up programs: TestSuite(..., .init = scratch_enter,
// .fini = scratch_leave).
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Begins a command: a make that runs the tests must not be felt by a make that a test runs, nor must the variables that
// it was given.
#define FORGET_MAKE "unset MAKEFLAGS MAKELEVEL BUILD SANITIZE; "

void scratch_enter(void);
void scratch_leave(void);
// Runs a shell command in the folder, where $ROOT is the repository. Returns its exit status.
int scratch_run(const char *command);
// What the last command printed on both streams.
extern char scratch_output[1 << 16];
// Writes a file; write_script makes it an executable shell script, with this body.
void scratch_write(const char *name, const char *text);
void scratch_write_script(const char *name, const char *body);
// A file whole, with a 0 after it; NULL when there is none. The caller frees it.
char *scratch_read(const char *name, size_t *size);
// True when one line of the output has exactly these words.
bool scratch_has_line(const char *words);
