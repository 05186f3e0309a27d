#include "matrix_kernel.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "run_ptx.h"

// ---- kernels ----

// Around every body.
static const char frame[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry test(.param .u64 in, .param .u64 out, .param .u64 shared_from) {\n"
    ".reg .b32 %%r<64>; .reg .f32 %%f<64>; .reg .b64 %%rd<16>; .reg .pred %%p<4>;\n"
    ".reg .b32 %%i; .reg .b64 %%from; .reg .b64 %%at; .reg .pred %%more;\n"
    ".shared .align 128 .b8 tile[16384]; .shared .align 16 .b8 last[16]; .local .align 32 .b8 own[512];\n"
    "ld.param.u64 %%rd0, [in]; ld.param.u64 %%rd1, [out]; ld.param.u64 %%from, [shared_from];\n"
    "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, tile; cvt.u64.u32 %%rd2, %%r1; cvta.shared.u64 %%rd2, %%rd2;\n"
    "setp.eq.u64 %%more, %%from, 0; @%%more bra start;\n"
    "mov.u32 %%i, %%r0;\n"
    "fill:\n"
    "mul.wide.u32 %%at, %%i, 16; add.u64 %%at, %%at, %%from;\n"
    "ld.global.v4.b32 {%%r60, %%r61, %%r62, %%r63}, [%%at];\n"
    "shl.b32 %%r59, %%i, 4; add.u32 %%r59, %%r59, %%r1;\n"
    "st.shared.v4.b32 [%%r59], {%%r60, %%r61, %%r62, %%r63};\n"
    "add.u32 %%i, %%i, %%ntid.x; setp.lt.u32 %%more, %%i, 1024; @%%more bra fill;\n"
    "bar.sync 0;\n"
    "start:\n"
    "%s\nret;\n}\n";

void run_kernel(KernelRun *r) {
  char text[TEXT_SIZE];
  EmulatorError error = {0};
  cr_assert(snprintf(text, sizeof text, frame, r->body) < (int)sizeof text);
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1, .step_limit = 1000000});
  EmulatorModule *module = emulator_load(emulator, text, strlen(text), &error);
  cr_assert(module, "line %d: %s\n%s", error.line, error.message, r->body);
  uint64_t in = emulator_alloc(emulator, r->in_size + 256), out = emulator_alloc(emulator, r->out_size + 256);
  uint64_t from = r->shared ? in + r->in_size - TILE_BYTES : 0;
  cr_assert(!r->in_size || emulator_write(emulator, in, r->in, r->in_size));
  cr_assert(emulator_fill(emulator, out, 0, r->out_size + 256));
  EmulatorLaunch launch = {.kernel = "test",
                           .grid = {r->blocks ? (unsigned)r->blocks : 1, 1, 1},
                           .block = {r->threads ? (unsigned)r->threads : WARP, 1, 1},
                           .arguments = (const void *const[]){&in, &out, &from},
                           .argument_count = 3};
  r->status = emulator_launch(emulator, module, &launch, &error);
  cr_assert(r->status != EMULATOR_INVALID, "%s\n%s", error.message, r->body);
  const Hazard *hazards = emulator_hazards(emulator, &r->hazard_count);
  if (r->hazard_count) r->hazard = hazards[0];
  r->counters = emulator_counters(emulator);
  if (r->out_size) cr_assert(emulator_read(emulator, r->out, out, r->out_size));
  emulator_close(emulator);
}

void run_kernel_clean(KernelRun *r) {
  run_kernel(r);
  cr_assert(r->status == EMULATOR_OK && r->hazard_count == 0, "%s: %s\n%s", hazard_name(r->hazard.kind),
            r->hazard.detail, r->body);
}

static void expect_hazard(const HazardTest *test) {
  static uint8_t in[TILE_BYTES], out[4096];
  KernelRun r = {.body = test->body,
                 .in = in,
                 .in_size = sizeof in,
                 .shared = true,
                 .threads = test->threads,
                 .blocks = test->blocks,
                 .out = out,
                 .out_size = sizeof out};
  run_kernel(&r);
  const char *name = r.hazard_count ? hazard_name(r.hazard.kind) : "no hazard";
  HazardKind kind = r.hazard_count ? r.hazard.kind : HAZARD_KIND_COUNT;
  cr_expect_eq(kind, test->kind, "%s: %s in\n%s", name, r.hazard.detail, test->body);
  cr_expect_eq(r.status, test->stops ? EMULATOR_FAULT : EMULATOR_OK, "status %d of\n%s", r.status, test->body);
  cr_expect(!test->detail || strstr(r.hazard.detail, test->detail), "no \"%s\" in \"%s\"", test->detail,
            r.hazard.detail);
}

void expect_hazards(const HazardTest *tests, int count) {
  for (int i = 0; i < count; i++) expect_hazard(&tests[i]);
}

// ---- text ----

void append_text(KernelText *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  text->used += (size_t)vsnprintf(text->text + text->used, TEXT_SIZE - text->used, format, arguments);
  va_end(arguments);
  cr_assert(text->used < TEXT_SIZE);
}

void append_vector(KernelText *text, char kind, int first, int count) {
  for (int i = 0; i < count; i++) append_text(text, "%s%%%c%d", i ? ", " : "{", kind, first + i);
  append_text(text, "}");
}

void append_registers(KernelText *text, bool load, const char *address, char kind, int first, int count) {
  append_text(text, "mul.wide.u32 %%rd8, %%r0, %d; add.u64 %%rd8, %%rd8, %s;\n", 4 * count, address);
  for (int i = 0; i < count; i++) {
    if (load)
      append_text(text, "ld.global.b32 %%%c%d, [%%rd8+%d];\n", kind, first + i, 4 * i);
    else
      append_text(text, "st.global.b32 [%%rd8+%d], %%%c%d;\n", 4 * i, kind, first + i);
  }
}

// ---- numbers ----

const char *const type_names[] = {"f16", "bf16", "f32"};

uint32_t bits_of(Type type, double value) {
  if (type == F32) return (uint32_t)float_bits((float)value);
  if (type == BF16) return (uint32_t)float_bits((float)value) >> 16;
  if (value == 0) return 0;
  int exponent;
  double fraction = frexp(fabs(value), &exponent);
  return (uint32_t)((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | ((int)(fraction * 2048) - 1024));
}

double value_of(Type type, uint32_t bits) {
  if (type == F32) return float_of(bits);
  if (type == BF16) return float_of((uint64_t)bits << 16);
  int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  double magnitude = exponent ? ldexp(fraction + 1024, exponent - 25) : ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Small integers without a pattern.
static int small_integer(uint32_t seed, int limit) {
  uint32_t hash = (seed + 1) * 0x9e3779b1u;
  hash = (hash ^ hash >> 15) * 0x85ebca6bu;
  return (int)((hash ^ hash >> 13) % (uint32_t)(2 * limit + 1)) - limit;
}

Problem make_problem(int m, int n, int k) {
  Problem p = {.m = m, .n = n, .k = k};
  for (int i = 0; i < m; i++)
    for (int j = 0; j < k; j++) p.a[i][j] = small_integer((uint32_t)(i * 100 + j), 4);
  for (int i = 0; i < k; i++)
    for (int j = 0; j < n; j++) p.b[i][j] = small_integer((uint32_t)(i * 100 + j + 5000), 4);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      p.c[i][j] = small_integer((uint32_t)(i * 100 + j + 9000), 100);
      p.d[i][j] = p.c[i][j];
      for (int l = 0; l < k; l++) p.d[i][j] += p.a[i][l] * p.b[l][j];
    }
  return p;
}
