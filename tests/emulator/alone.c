// A program that has of this repository the emulator alone: test_build.c compiles it with libhopper_emulator.a, also
// for 32 bits. It prints "right", or what is wrong.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "emulator.h"

// Each thread stores 1 + 2^-30 rounded up, and its number times 2^32 + 1, of which 32 bits would lose a half.
static const char ptx[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                          ".visible .entry kernel(.param .u64 out) {\n"
                          "  .reg .b32 %r0; .reg .f32 %f<2>; .reg .b64 %rd<4>;\n"
                          "  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 16;\n"
                          "  add.u64 %rd0, %rd0, %rd1; mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f30800000;\n"
                          "  add.rp.f32 %f0, %f0, %f1; st.global.f32 [%rd0], %f0;\n"
                          "  cvt.u64.u32 %rd2, %r0; mul.lo.u64 %rd2, %rd2, 0x100000001;\n"
                          "  st.global.u64 [%rd0+8], %rd2; ret;\n"
                          "}\n";

enum { THREADS = 64 };

static int fail(const char *what, const EmulatorError *error) {
  printf("%s: line %d: %s\n", what, error->line, error->message);
  return 1;
}

static int check(const uint64_t (*out)[2]) {
  for (uint64_t i = 0; i < THREADS; i++)
    if ((uint32_t)out[i][0] != 0x3f800001 || out[i][1] != (i << 32 | i)) return puts("wrong results"), 1;
  return puts("right"), 0;
}

int main(void) {
  EmulatorError error = {0};
  EmulatorOptions options = {.hazards = true};
  Emulator *emulator = emulator_open(&options);
  EmulatorModule *module = emulator_load(emulator, ptx, strlen(ptx), &error);
  if (!module) return fail("load", &error);
  uint64_t out[THREADS][2] = {{0}}, address = emulator_alloc(emulator, sizeof out);
  const void *arguments[] = {&address};
  EmulatorLaunch launch = {
      .kernel = "kernel", .grid = {1, 1, 1}, .block = {THREADS, 1, 1}, .arguments = arguments, .argument_count = 1};
  emulator_fill(emulator, address, 0, sizeof out);
  if (emulator_launch(emulator, module, &launch, &error) != EMULATOR_OK) return fail("launch", &error);
  emulator_read(emulator, out, address, sizeof out);
  if (emulator_alloc(emulator, SIZE_MAX)) return puts("more memory than any host has"), 1;
  int code = check((const uint64_t(*)[2])out);
  emulator_close(emulator);
  return code;
}
