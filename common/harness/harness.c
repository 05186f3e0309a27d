// The program around every stage: options, device, kernels, then the stage, then the exit code.
#include <errno.h>
#include <stdlib.h>

#include "harness.h"

// ---- kernels ----

// Reads a whole file with a 0 after it; NULL when it cannot be read, with errno set.
static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  size_t capacity = 1 << 16;
  char *text = malloc(capacity);
  *size = 0;
  while (text) {
    *size += fread(text + *size, 1, capacity - *size - 1, file);
    if (*size < capacity - 1) break;
    char *larger = realloc(text, capacity *= 2);
    if (!larger) free(text);
    text = larger;
  }
  if (text && ferror(file)) {
    free(text);
    text = NULL;
  }
  fclose(file);
  if (text) text[*size] = 0;
  return text;
}

// Loads the stage's own kernels, or the PTX of --ptx.
static int load(Session *session, const DeviceImage *image) {
  const char *path = session->options.ptx;
  if (!path) {
    session->module = device_load(session->device, image);
    return session->module ? EXIT_RIGHT : session_fail_device(session);
  }
  DeviceImage own = {0};
  char *ptx = read_file(path, &own.ptx_size);
  if (!ptx) return session_fail(session, EXIT_USAGE, "--ptx=%.200s: %s", path, strerror(errno));
  own.ptx = ptx;
  session->module = device_load(session->device, &own);
  free(ptx);
  return session->module ? EXIT_RIGHT : session_fail_device(session);
}

// ---- the program ----

static int run_on_device(Session *session, const DeviceImage *image) {
  char error[ERROR_SIZE];
  if (!options_complete(&session->options, device_info(session->device), error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  int code = load(session, image);
  if (code != EXIT_RIGHT) return code;
  return session->stage->run ? session->stage->run(session) : attention_run(session);
}

static const char *program_name(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path ? path : "stage";
}

int harness_run(const Stage *stage, const DeviceImage *image, int argc, char *const *argv) {
  Session session = {.stage = stage, .program = program_name(argv[0]), .out = stdout};
  Options *options = &session.options;
  DeviceOptions device = {0};
  DeviceError device_error;
  char error[ERROR_SIZE];
  if (!options_parse(options, stage, argc, argv, error)) return session_fail(&session, EXIT_USAGE, "%s", error);
  if (options->help) {
    options_print_help(stdout, argv[0], stage);
    return EXIT_RIGHT;
  }
  if (!options_device(options, &device.kind, error)) return session_fail(&session, EXIT_USAGE, "%s", error);
  // Times come from the GPU and counters from the emulator: no run writes both.
  const char *csv = options->csv ? options->csv : options->counters_csv;
  if (csv && !csv_writable(options->csv ? "--csv" : "--counters-csv", csv, error))
    return session_fail(&session, EXIT_USAGE, "%s", error);
  if (csv && !strcmp(csv, "-")) session.out = stderr;

  device.hazards = options->hazards == 0;
  device.schedule = options->schedule;
  session.device = device_open(&device, &device_error);
  if (!session.device) return session_fail_with(&session, &device_error);
  int code = run_on_device(&session, image);
  device_close(session.device);
  return code;
}
