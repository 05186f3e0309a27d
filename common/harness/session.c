// What the files of the program share: error messages, the stage's own options, its counters.
#include <ctype.h>
#include <stdarg.h>

#include "../emulator/emulator.h"
#include "harness.h"

// ---- errors: one line on standard error ----

int session_fail(const Session *session, int code, const char *format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (char *c = text; *c; c++)
    if (iscntrl((unsigned char)*c)) *c = '?';
  fflush(stdout);
  fprintf(stderr, "%s: %s\n", session->program, text);
  return code;
}

// An invalid kernel or module is the user's mistake when the PTX is the user's (--ptx), and otherwise the stage's.
int session_fail_with(const Session *session, const DeviceError *error) {
  const char *ptx = session->options.ptx;
  switch (error->code) {
  case DEVICE_ABSENT: return session_fail(session, EXIT_ABSENT, "--device=gpu: %s", error->text);
  case DEVICE_OUT_OF_MEMORY:
    return session_fail(session, EXIT_USAGE, "%s%s", error->text,
                        session->stage->launch ? "; use a smaller --seqlen, --heads or --batch" : "");
  case DEVICE_INVALID:
    if (ptx) return session_fail(session, EXIT_USAGE, "--ptx=%.100s: %s", ptx, error->text);
    return session_fail(session, EXIT_WRONG, "%s", error->text);
  default: return session_fail(session, EXIT_WRONG, "%s", error->text);
  }
}

int session_fail_device(const Session *session) { return session_fail_with(session, device_error(session->device)); }

const char *session_option(const Session *session, const char *name) {
  const StageOption *options = session->stage->options;
  for (int i = 0; options && options[i].name && i < MAX_STAGE_OPTIONS; i++)
    if (!strcmp(name, options[i].name)) return session->options.stage_values[i];
  return NULL;
}

int session_record_counters(const Session *session, const Shape *shape) {
  EmulatorCounters counters;
  char error[ERROR_SIZE];
  if (device_counters(session->device, &counters) &&
      !csv_append_counters(session->options.counters_csv, session->stage, shape, &counters, error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  return EXIT_RIGHT;
}
