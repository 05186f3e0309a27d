// Launches every kernel of a PTX text, in a way that the text itself may choose: for the fuzzer, and for the test that
// runs the fuzzer's corpus. The first line may say how:
//
//   // launch: grid 2 block 64 cluster 1 shared 1024 schedule 3
//
// Arguments are two buffers of 4 KB in turns for 8-byte parameters, tensor maps of the first one for 128-byte
// parameters, and the bytes 16, 0, 0, ... for others.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "emulator/parse/ptx.h"

enum { LAUNCH_BUFFER = 4096, LAUNCH_STEPS = 5000, LAUNCH_VARIABLE_BYTES = 1 << 20 };

// What became of a text.
typedef struct LaunchCounts {
  int refused;                          // 1 when it was not accepted
  int of_status[EMULATOR_INVALID + 1];  // its kernels
} LaunchCounts;

typedef struct LaunchShape {
  unsigned grid, block, cluster, shared, schedule;
} LaunchShape;

// Aborts when a promise of emulator.h is broken; the fuzzer then shows the input.
static void launch_require(bool condition) {
  if (!condition) abort();
}

// The number behind a name in the first line, at most `most`; `absent` when it is not there.
static unsigned launch_setting(const char *line, const char *name, unsigned absent, unsigned most) {
  const char *at = strstr(line, name);
  if (!at) return absent;
  unsigned long value = strtoul(at + strlen(name), NULL, 10);
  return value > most ? most : (unsigned)value;
}

static LaunchShape launch_shape(const char *text, size_t length) {
  char line[160] = "";
  size_t end = 0;
  while (end < length && end < sizeof line - 1 && text[end] != '\n') end++;
  memcpy(line, text, end);
  return (LaunchShape){.grid = launch_setting(line, " grid ", 2, 8),
                       .block = launch_setting(line, " block ", 64, 256),
                       .cluster = launch_setting(line, " cluster ", 0, 4),
                       .shared = launch_setting(line, " shared ", 0, 1 << 16),
                       .schedule = launch_setting(line, " schedule ", 0, 1000)};
}

// The bytes of all the module's variables: more than LAUNCH_VARIABLE_BYTES only cost time. test_robustness.c has the
// limits.
static bool launch_is_small(const PtxModule *module) {
  uint64_t bytes = 0;
  for (int i = 0; i < module->variable_count; i++) {
    bytes += module->variables[i]->size;
    if (bytes > LAUNCH_VARIABLE_BYTES) return false;
  }
  return true;
}

static void launch_check_hazards(const Emulator *emulator, EmulatorStatus status, int lines) {
  FILE *nowhere = fopen("/dev/null", "w");
  launch_require(nowhere != NULL);
  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  launch_require(status != EMULATOR_FAULT || count > 0);
  for (int i = 0; i < count; i++) {
    const Hazard *hazard = &hazards[i];
    launch_require(hazard->kind < HAZARD_KIND_COUNT && hazard->detail[0] && hazard->count > 0);
    launch_require(hazard->here.ptx_line >= 0 && hazard->here.ptx_line <= lines);
    launch_require(!hazard->has_other || (hazard->other.ptx_line >= 0 && hazard->other.ptx_line <= lines));
  }
  emulator_print_hazards(nowhere, hazards, count);
  fclose(nowhere);
}

// Tensors of fp16 that fill the first buffer: 32 x 64 without a swizzle, or 16 x 8 x 16 with one.
static void launch_tensor_map(uint64_t buffer, bool swizzled, uint8_t map[EMULATOR_TENSOR_MAP_BYTES]) {
  EmulatorTensorSpec spec = {
      .type = EMULATOR_TENSOR_F16, .rank = 2, .address = buffer, .size = {32, 64}, .stride = {0, 64}, .box = {16, 8}};
  if (swizzled)
    spec = (EmulatorTensorSpec){.type = EMULATOR_TENSOR_F16,
                                .rank = 3,
                                .address = buffer,
                                .size = {16, 8, 16},
                                .stride = {0, 32, 256},
                                .box = {16, 4, 4},
                                .element_stride = {1, 1, 2},
                                .swizzle = EMULATOR_SWIZZLE_32B};
  EmulatorError error;
  launch_require(emulator_tensor_map(&spec, map, &error));
}

static EmulatorStatus launch_entry(Emulator *emulator, EmulatorModule *module, const PtxFunction *entry,
                                   const LaunchShape *shape, const uint64_t buffers[2]) {
  const void **arguments = calloc((size_t)entry->param_count + 1, sizeof *arguments);
  if (!arguments) abort();
  for (int i = 0, pointers = 0, maps = 0; i < entry->param_count; i++) {
    size_t size = (size_t)entry->params[i]->size;
    uint8_t *argument = size <= 1 << 16 ? calloc(size ? size : 1, 1) : NULL;
    arguments[i] = argument;
    if (!argument) continue;  // too large a parameter is refused before its argument is looked at
    if (size == 8)
      memcpy(argument, &buffers[pointers++ % 2], 8);
    else if (size == EMULATOR_TENSOR_MAP_BYTES)
      launch_tensor_map(buffers[0], maps++ % 2, argument);
    else if (size > 0)
      argument[0] = 16;
  }
  EmulatorLaunch launch = {.kernel = entry->name,
                           .grid = {shape->grid, 1, 1},
                           .block = {shape->block, 1, 1},
                           .cluster = {shape->cluster, shape->cluster ? 1 : 0, shape->cluster ? 1 : 0},
                           .dynamic_shared = shape->shared,
                           .arguments = arguments,
                           .argument_count = entry->param_count};
  EmulatorError error = {0};
  EmulatorStatus status = emulator_launch(emulator, module, &launch, &error);
  launch_require(status != EMULATOR_INVALID || error.message[0]);
  for (int i = 0; i < entry->param_count; i++) free((void *)arguments[i]);
  free(arguments);
  return status;
}

static void launch_entries(Emulator *emulator, EmulatorModule *module, const PtxModule *ptx, const LaunchShape *shape,
                           int lines, LaunchCounts *counts) {
  float ones[LAUNCH_BUFFER / 4];
  for (int i = 0; i < LAUNCH_BUFFER / 4; i++) ones[i] = 1.0f;
  const uint64_t buffers[2] = {emulator_alloc(emulator, LAUNCH_BUFFER), emulator_alloc(emulator, LAUNCH_BUFFER)};
  launch_require(buffers[0] && buffers[1] && emulator_write(emulator, buffers[0], ones, sizeof ones));
  for (int i = 0; i < ptx->function_count; i++) {
    if (!ptx->functions[i].is_entry || ptx->functions[i].is_declaration) continue;
    EmulatorStatus status = launch_entry(emulator, module, &ptx->functions[i], shape, buffers);
    launch_check_hazards(emulator, status, lines);
    emulator_clear_hazards(emulator);
    counts->of_status[status]++;
  }
  int line_count;
  emulator_line_counters(emulator, &line_count);
  launch_require(emulator_free(emulator, buffers[0]) && emulator_free(emulator, buffers[1]));
}

static LaunchCounts launch_text(const char *text, size_t length) {
  LaunchCounts counts = {0};
  PtxError malformed;
  PtxModule *ptx = ptx_parse(text, length, &malformed);
  if (ptx && !launch_is_small(ptx)) {
    ptx_free(ptx);
    return counts;
  }
  LaunchShape shape = launch_shape(text, length);
  Emulator *emulator = emulator_open(
      &(EmulatorOptions){.hazards = true, .schedule = shape.schedule, .threads = 1, .step_limit = LAUNCH_STEPS});
  int lines = 1;
  for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
  EmulatorError error = {0};
  EmulatorModule *module = emulator_load(emulator, text, length, &error);
  launch_require(module ? ptx != NULL : error.message[0] && error.line >= 0 && error.line <= lines);
  if (module) launch_entries(emulator, module, ptx, &shape, lines, &counts);
  counts.refused = !module;
  emulator_close(emulator);
  ptx_free(ptx);
  return counts;
}
