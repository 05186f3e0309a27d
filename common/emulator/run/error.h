// An error of a module or a launch.
#pragma once

#include "../emulator.h"

// Fills *error; line is that of the PTX text, or 0. Always false.
bool run_fail(EmulatorError *error, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
