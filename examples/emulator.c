// The emulator without the harness: loads PTX text, launches a kernel, reads the result and the report.
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"

// Thread t puts t into shared memory and takes what its neighbour, t ^ 32, has put there. There is no barrier.
static const char ptx[] = ".version 8.0\n"
                          ".target sm_90a\n"
                          ".address_size 64\n"
                          ".entry exchange(.param .u64 out) {\n"
                          "  .reg .b32 %r<5>;\n"
                          "  .reg .b64 %rd<3>;\n"
                          "  .shared .align 4 .b32 tile[64];\n"
                          "  mov.u32 %r0, %tid.x;\n"
                          "  mov.u32 %r1, tile;\n"
                          "  mad.lo.u32 %r2, %r0, 4, %r1;\n"
                          "  st.shared.u32 [%r2], %r0;\n"
                          "  xor.b32 %r3, %r0, 32;\n"
                          "  mad.lo.u32 %r2, %r3, 4, %r1;\n"
                          "  ld.shared.u32 %r4, [%r2];\n"
                          "  ld.param.u64 %rd0, [out];\n"
                          "  mul.wide.u32 %rd1, %r0, 4;\n"
                          "  add.u64 %rd2, %rd0, %rd1;\n"
                          "  st.global.u32 [%rd2], %r4;\n"
                          "  ret;\n"
                          "}\n";

int main(void) {
  EmulatorError error;
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true});
  EmulatorModule *module = emulator_load(emulator, ptx, strlen(ptx), &error);
  if (!module) {
    printf("line %d: %s\n", error.line, error.message);
    return 1;
  }
  uint64_t out = emulator_alloc(emulator, 64 * sizeof(uint32_t));
  EmulatorLaunch launch = {
      .kernel = "exchange",
      .grid = {1, 1, 1},
      .block = {64, 1, 1},
      .arguments = (const void *[]){&out},
      .argument_count = 1,
  };
  if (emulator_launch(emulator, module, &launch, &error) != EMULATOR_OK) printf("%s\n", error.message);

  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  for (int i = 0; i < count; i++)
    printf("%s: PTX line %d against line %d, %d bytes\n", hazard_name(hazards[i].kind), hazards[i].here.ptx_line,
           hazards[i].other.ptx_line, hazards[i].size);
  EmulatorCounters counters = emulator_counters(emulator);
  printf("%llu warp instructions\n", (unsigned long long)counters.value[COUNTER_INST_EXECUTED]);
  emulator_close(emulator);
  return 0;
}
