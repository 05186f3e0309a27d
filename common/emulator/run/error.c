// An error of a module or a launch.
#include "state.h"

#include <stdarg.h>
#include <stdio.h>

bool run_fail(EmulatorError *error, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error->line = line;
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return false;
}
