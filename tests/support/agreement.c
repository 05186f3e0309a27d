#include "agreement.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "program.h"
#include "ptx_files.h"

enum { MAX_MODULES = 8, TEXT = 700, NOTES = 4000 };

static const char *const side_names[SIDES] = {"GPU", "emulator"};

// The devices with the modules loaded so far.
static struct {
  DeviceOptions options;
  Device *device;
  struct {
    char name[32];
    DeviceModule *module;
  } modules[MAX_MODULES];
  uint64_t hazards;  // reported so far
  bool broken;       // an error has stopped it
} sides[SIDES];

static int rows, rows_wrong;
static char notes[NOTES];  // of the next row

uint32_t random_bits(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  uint64_t x = *state ^ *state >> 29;
  return (uint32_t)(x * 0xbf58476d1ce4e5b9ull >> 32);
}

// ---- rows ----

// One write, so that the lines of tests that run side by side do not mix; closed, so that a crash loses none.
static void write_line(const char *line) {
  const char *path = getenv("HL_AGREEMENT_LOG");
  FILE *log = path ? fopen(path, "a") : NULL;
  if (!log) return;
  fputs(line, log);
  fclose(log);
}

void agreement_note(const char *format, ...) {
  size_t used = strlen(notes);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(notes + used, sizeof notes - used, format, arguments);
  va_end(arguments);
}

void agreement_row(const char *what, const char *name, const char *difference) {
  char line[2 * TEXT + NOTES];
  snprintf(line, sizeof line, "%-8s %-16s %s%s%s\n%s", *difference ? "DIFFERS" : "ok", what, name,
           *difference ? ": " : "", difference, notes);
  rows++;
  *notes = 0;
  write_line(line);
  if (!*difference) return;
  rows_wrong++;
  fputs(line, stderr);
}

// ---- devices ----

static void open_side(int side) {
  DeviceError error;
  memset(sides[side].modules, 0, sizeof sides[side].modules);
  sides[side].hazards = 0;
  sides[side].broken = false;
  sides[side].device = device_open(&sides[side].options, &error);
  cr_assert(sides[side].device, "%s: %s", side_names[side], error.text);
}

void agreement_begin(void) {
  const char *gpu = getenv("HL_GPU");
  if (!gpu) cr_skip_test("no GPU: make test-gpu runs this");
  sides[REAL].options = (DeviceOptions){.kind = DEVICE_GPU};
  if (!strcmp(gpu, "emulator")) sides[REAL].options = (DeviceOptions){.kind = DEVICE_EMULATOR, .schedule = 7};
  sides[EMULATED].options = (DeviceOptions){.kind = DEVICE_EMULATOR, .hazards = true};
  for (int side = 0; side < SIDES; side++) open_side(side);
}

void agreement_end(void) {
  for (int side = 0; side < SIDES; side++) device_close(sides[side].device);
  cr_expect(rows, "nothing was compared");
  cr_expect_eq(rows_wrong, 0, "%d of %d comparisons differ", rows_wrong, rows);
}

static Text read_kernel(const char *name, const char *suffix) {
  char path[4096];
  const char *folder = getenv("GPU_DIR");
  if (folder)
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
  else
    snprintf(path, sizeof path, "%s/build/gpu/%s.%s", root_path(), name, suffix);
  return read_text(path);
}

// The module tests/gpu/name.cu on a side; NULL after a failure.
static DeviceModule *find_module(int side, const char *name) {
  int i = 0;
  while (i < MAX_MODULES && sides[side].modules[i].module && strcmp(sides[side].modules[i].name, name)) i++;
  cr_assert(i < MAX_MODULES, "more than %d modules in a test", MAX_MODULES);
  if (sides[side].modules[i].module) return sides[side].modules[i].module;
  Text ptx = read_kernel(name, "ptx"), cubin = read_kernel(name, "cubin");
  DeviceImage image = {.ptx = ptx.bytes, .ptx_size = ptx.length, .cubin = cubin.bytes, .cubin_size = cubin.length};
  snprintf(sides[side].modules[i].name, sizeof sides[side].modules[i].name, "%s", name);
  return sides[side].modules[i].module =
             device_load(sides[side].device, &image);  // the images live as long as the test
}

// ---- trials ----

// Hazards that a side has reported since the last call; the newest one's text.
static uint64_t new_hazards(int side, char *text, size_t size) {
  int count;
  uint64_t total = 0;
  const Hazard *hazards = device_hazards(sides[side].device, &count);
  for (int i = 0; i < count; i++) total += hazards[i].count;
  uint64_t added = total - sides[side].hazards;
  sides[side].hazards = total;
  if (added)
    snprintf(text, size, "%s, line %d: %.300s", hazard_name(hazards[count - 1].kind), hazards[count - 1].here.line,
             hazards[count - 1].detail);
  return added;
}

// Queues the trial; `at` receives the addresses of in and out.
static bool launch(int side, const Trial *trial, DeviceAddress at[2]) {
  Device *device = sides[side].device;
  TensorMap map;
  DeviceKernel *kernel = device_kernel(device, find_module(side, trial->module), trial->kernel);
  at[0] = device_alloc(device, trial->in_size);
  at[1] = device_alloc(device, trial->out_size);
  device_upload(device, at[0], trial->in, trial->in_size);
  if (trial->out)
    device_upload(device, at[1], trial->out, trial->out_size);
  else
    device_fill(device, at[1], 0xcd, trial->out_size);
  DeviceLaunch request = {.kernel = kernel,
                          .grid = {trial->blocks},
                          .block = {trial->threads},
                          .cluster = {trial->cluster},
                          .dynamic_shared = trial->shared,
                          .arguments = ARGUMENTS(&at[0], &at[1])};
  if (!trial->map) return device_launch(device, &request);
  TensorMapSpec spec = *trial->map;
  spec.address += at[trial->map_of_out];
  request.arguments = ARGUMENTS(&map, &at[0], &at[1]);
  return device_tensor_map(device, &spec, &map) && device_launch(device, &request);
}

// Runs the trial on one side. False with the reason in text.
static bool run_side(int side, const Trial *trial, uint8_t *result, char *text, size_t size) {
  Device *device = sides[side].device;
  DeviceAddress at[2] = {0};
  bool done =
      launch(side, trial, at) && device_synchronise(device) && device_download(device, result, at[1], trial->out_size);
  char hazard[TEXT / 2] = "";
  bool clean = !new_hazards(side, hazard, sizeof hazard);
  if (!done) {
    snprintf(text, size, "%s: %.150s %.180s", side_names[side], device_error(device)->text, hazard);
    sides[side].broken = true;
    return false;
  }
  device_free(device, at[0]);
  device_free(device, at[1]);
  if (clean) return true;
  snprintf(text, size, "%s: %.300s", side_names[side], hazard);
  return false;
}

// An error may have spoilt more than the device, the whole process: then the test ends here.
static void reopen_broken(void) {
  for (int side = 0; side < SIDES; side++) {
    if (!sides[side].broken) continue;
    device_close(sides[side].device);
    open_side(side);
  }
}

bool agreement_run(const Trial *trial, const char *what, const char *name, uint8_t *results[SIDES]) {
  char text[SIDES][TEXT / 2] = {"", ""}, both[TEXT];
  bool done = true;
  for (int side = 0; side < SIDES; side++) {
    results[side] = malloc(trial->out_size);
    cr_assert(results[side]);
    done &= run_side(side, trial, results[side], text[side], sizeof text[side]);
  }
  if (done) return true;
  snprintf(both, sizeof both, "%.340s%s%.340s", text[REAL], *text[REAL] && *text[EMULATED] ? "; " : "", text[EMULATED]);
  agreement_row(what, name, both);
  reopen_broken();  // after the row, which may be the last one
  for (int side = 0; side < SIDES; side++) free(results[side]);
  return false;
}

static uint64_t element(const uint8_t *bytes, size_t i, int width) {
  uint64_t value = 0;
  memcpy(&value, bytes + i * (size_t)width, (size_t)width);
  return value;
}

void agreement_compare(const Trial *trial, const char *what, const char *name, int width) {
  uint8_t *results[SIDES];
  char text[TEXT] = "";
  if (!agreement_run(trial, what, name, results)) return;
  size_t count = trial->out_size / (size_t)width, wrong = 0, first = 0;
  for (size_t i = count; i-- > 0;)
    if (element(results[REAL], i, width) != element(results[EMULATED], i, width)) wrong++, first = i;
  if (wrong)
    snprintf(text, sizeof text, "%zu of %zu; element %zu: GPU %0*llx, emulator %0*llx", wrong, count, first, 2 * width,
             (unsigned long long)element(results[REAL], first, width), 2 * width,
             (unsigned long long)element(results[EMULATED], first, width));
  agreement_row(what, name, text);
  for (int side = 0; side < SIDES; side++) free(results[side]);
}

void agreement_map(const char *name, const TensorMapSpec *spec) {
  bool accepted[SIDES];
  char reason[SIDES][TEXT / 4] = {"accepted", "accepted"}, text[TEXT] = "";
  for (int side = 0; side < SIDES; side++) {
    Device *device = sides[side].device;
    TensorMap map;
    TensorMapSpec placed = *spec;
    DeviceAddress memory = device_alloc(device, 4096);
    placed.address += memory;
    accepted[side] = device_tensor_map(device, &placed, &map);
    if (!accepted[side]) snprintf(reason[side], sizeof reason[side], "%.170s", device_error(device)->text);
    device_clear_error(device);
    device_free(device, memory);
  }
  if (accepted[REAL] != accepted[EMULATED])
    snprintf(text, sizeof text, "GPU: %s; emulator: %s", reason[REAL], reason[EMULATED]);
  agreement_row("tensor map", name, text);
}
