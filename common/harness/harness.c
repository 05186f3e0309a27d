// The program around every stage: it reads the options, opens the device, loads the kernels and runs the stage.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

// ---- kernels ----

enum { LARGEST_PTX = 64 << 20 };  // bytes; a file such as /dev/zero never ends

// Reads a whole file and appends a 0. Returns NULL and sets errno when the file cannot be read.
static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  size_t capacity = 1 << 16;
  char *text = malloc(capacity);
  *size = 0;
  while (text) {
    *size += fread(text + *size, 1, capacity - *size - 1, file);
    if (*size < capacity - 1) break;
    char *more = capacity < LARGEST_PTX ? realloc(text, capacity *= 2) : NULL;
    if (!more) free(text);
    if (capacity >= LARGEST_PTX) errno = EFBIG;
    text = more;
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
static int load_kernels(Session *session, const DeviceImage *image) {
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

// ---- standard output ----

// The next file that is opened takes the number of a closed standard stream, and would receive what is printed there.
// So each closed stream is opened to /dev/null. False when standard output was closed.
static bool open_streams(void) {
  bool has_output = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
  int stream;
  do stream = open("/dev/null", O_RDWR);
  while (stream >= 0 && stream <= STDERR_FILENO);
  if (stream >= 0) close(stream);
  return has_output;
}

// A run whose report could not be written has failed. When the options were wrong there is no report.
static int close_report(const Session *session, int code) {
  errno = 0;
  if ((!fflush(stdout) && !ferror(stdout)) || code == EXIT_USAGE) return code;
  session_fail(session, code, "standard output: %s", errno ? strerror(errno) : "not all of the report was written");
  return code == EXIT_RIGHT ? EXIT_USAGE : code;
}

// ---- the program ----

static int run_on_device(Session *session, const DeviceImage *image) {
  char error[ERROR_SIZE];
  if (!options_complete(&session->options, device_info(session->device), error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  int code = load_kernels(session, image);
  if (code != EXIT_RIGHT) return code;
  const Stage *stage = session->stage;
  if (stage->run) return stage->run(session);
  if (stage->gemm) return gemm_run(session);
  return stage->decode ? decode_run(session) : attention_run(session);
}

static const char *program_name(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path ? path : "stage";
}

static int run_stage(Session *session, const DeviceImage *image, const char *path) {
  Options *options = &session->options;
  DeviceOptions device = {0};
  DeviceError device_error;
  char error[ERROR_SIZE];
  if (options->help) {
    options_print_help(stdout, path, session->stage);
    return EXIT_RIGHT;
  }
  if (!options_device(options, &device.kind, error)) return session_fail(session, EXIT_USAGE, "%s", error);
  // Times come from the GPU and counters from the emulator: no run writes both.
  const char *csv = options->csv ? options->csv : options->counters_csv, *json = options->json;
  if (csv && !csv_writable(options->csv ? "--csv" : "--counters-csv", csv, error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  if ((json && !csv_writable("--json", json, error)) ||
      (options->steps && !csv_writable("--steps", options->steps, error)))
    return session_fail(session, EXIT_USAGE, "%s", error);
  if ((csv && !strcmp(csv, "-")) || (json && !strcmp(json, "-"))) session->out = stderr;

  device.hazards = options->hazards == 0;
  device.schedule = options->schedule;
  device.step_limit = options_step_limit(options);
  device.threads = (int)options->threads;
  device.fair = options->fair;
  device.steps = options->steps ? MAX_STEPS : 0;
  device.values_of = options_given(options, OPTION_VALUES) ? (int)options->values + 1 : 0;
  session->device = device_open(&device, &device_error);
  if (!session->device) return session_fail_with(session, &device_error);
  int code = run_on_device(session, image);
  if (options->steps && !steps_write(options->steps, session->device))
    code = session_fail(session, EXIT_USAGE, "--steps=%.200s: %s", options->steps, strerror(errno));
  if (json && !json_write(json, session, code))
    code = session_fail(session, EXIT_USAGE, "--json=%.200s: %s", json, strerror(errno));
  device_close(session->device);
  return code;
}

int harness_run(const Stage *stage, const DeviceImage *image, int argc, char *const *argv) {
  Session session = {.stage = stage, .program = program_name(argv[0]), .out = stdout};
  char error[ERROR_SIZE];
  if (!open_streams())
    return session_fail(&session, EXIT_USAGE, "standard output is closed, so the report would be lost");
  if (!options_parse(&session.options, stage, argc, argv, error))
    return session_fail(&session, EXIT_USAGE, "%s", error);
  return close_report(&session, run_stage(&session, image, argv[0]));
}
