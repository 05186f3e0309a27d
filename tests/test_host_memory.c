// The host's memory as global memory (emulator_map): both reach it by one address. tests/runner/memory.cu has the rest.
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"

// Adds 1 to the element of each thread, and to a managed variable.
static const char ptx[] = ".version 8.0\n"
                          ".target sm_90a\n"
                          ".address_size 64\n"
                          ".global .attribute(.managed) .align 4 .u32 calls = 41;\n"
                          ".entry increment(.param .u64 values) {\n"
                          "  .reg .b32 %r<3>;\n"
                          "  .reg .b64 %rd<3>;\n"
                          "  mov.u32 %r0, %tid.x;\n"
                          "  ld.param.u64 %rd0, [values];\n"
                          "  mul.wide.u32 %rd1, %r0, 4;\n"
                          "  add.u64 %rd2, %rd0, %rd1;\n"
                          "  ld.global.u32 %r1, [%rd2];\n"
                          "  add.u32 %r1, %r1, 1;\n"
                          "  st.global.u32 [%rd2], %r1;\n"
                          "  atom.global.add.u32 %r2, [calls], 1;\n"
                          "  ret;\n"
                          "}\n";

static Emulator *emulator;
static EmulatorModule *module;
static uint32_t *values;

enum { COUNT = 100 };

static void open_emulator(void) {
  EmulatorError error;
  emulator = emulator_open(&(EmulatorOptions){.hazards = true});
  module = emulator_load(emulator, ptx, strlen(ptx), &error);
  cr_assert(module, "%s", error.message);
  values = aligned_alloc(4096, 4096);
  cr_assert(values);
  for (uint32_t i = 0; i < COUNT; i++) values[i] = i;
}

static void close_emulator(void) {
  emulator_close(emulator);
  free(values);
}

TestSuite(host_memory, .init = open_emulator, .fini = close_emulator, .timeout = 60);

static EmulatorStatus launch(const void *memory, unsigned threads) {
  EmulatorError error;
  uint64_t address = (uint64_t)(uintptr_t)memory;
  EmulatorLaunch request = {.kernel = "increment",
                            .grid = {1, 1, 1},
                            .block = {threads, 1, 1},
                            .arguments = (const void *[]){&address},
                            .argument_count = 1};
  return emulator_launch(emulator, module, &request, &error);
}

static int hazard_count(void) {
  int count;
  emulator_hazards(emulator, &count);
  return count;
}

Test(host_memory, kernels_and_the_host_use_one_address) {
  cr_assert(emulator_map(emulator, values, COUNT * sizeof *values));
  cr_expect_eq(launch(values, COUNT), EMULATOR_OK);
  values[7] = 1000;
  cr_expect_eq(launch(values, COUNT), EMULATOR_OK);
  for (uint32_t i = 0; i < COUNT; i++) cr_expect_eq(values[i], i == 7 ? 1001 : i + 2, "%u", values[i]);
  cr_expect_eq(hazard_count(), 0, "what the host wrote is not uninitialised");
}

Test(host_memory, has_an_end) {
  cr_assert(emulator_map(emulator, values, COUNT * sizeof *values));
  cr_expect_eq(launch(values, COUNT + 1), EMULATOR_FAULT);
  cr_expect_eq(launch(values + 1, COUNT - 1), EMULATOR_OK);
}

Test(host_memory, is_gone_when_it_is_unmapped) {
  cr_expect_eq(launch(values, 1), EMULATOR_FAULT, "it was never mapped");
  cr_assert(emulator_map(emulator, values, COUNT * sizeof *values));
  cr_expect_not(emulator_free(emulator, (uint64_t)(uintptr_t)values), "it is not the emulator's to free");
  cr_assert(emulator_unmap(emulator, values));
  cr_expect_not(emulator_unmap(emulator, values));
  cr_expect_eq(launch(values, 1), EMULATOR_FAULT);
  cr_expect_eq(values[0], 0);
}

// A program gets the same addresses again from malloc, in other sizes.
Test(host_memory, may_be_mapped_again_but_never_twice) {
  char *bytes = (char *)values;
  cr_assert(emulator_map(emulator, bytes + 1024, 512));
  cr_expect_not(emulator_map(emulator, bytes + 1024, 512));
  cr_expect_not(emulator_map(emulator, bytes + 512, 513), "its end is inside");
  cr_expect_not(emulator_map(emulator, bytes + 1535, 1), "its beginning is inside");
  cr_expect(emulator_map(emulator, bytes + 512, 512) && emulator_map(emulator, bytes + 1536, 512));
  for (int i = 0; i < 3; i++) cr_assert(emulator_unmap(emulator, bytes + 512 + 512 * i));
  cr_expect(emulator_map(emulator, bytes, 4096), "what was there before is in no one's way");
  EmulatorRange range;
  cr_assert(emulator_find(emulator, (uint64_t)(uintptr_t)bytes + 4095, &range));
  cr_expect(range.is_host && range.size == 4096 && !emulator_find(emulator, (uint64_t)(uintptr_t)bytes + 4096, &range));
}

Test(host_memory, managed_variables_are_in_it) {
  uint64_t address, device = emulator_alloc(emulator, 64);
  size_t size;
  EmulatorRange range;
  cr_assert(emulator_symbol(module, "calls", &address, &size) && size == 4);
  uint32_t *calls = (uint32_t *)(uintptr_t)address;
  cr_expect_eq(*calls, 41);
  cr_assert(emulator_map(emulator, values, COUNT * sizeof *values));
  cr_expect_eq(launch(values, 10), EMULATOR_OK);
  cr_expect_eq(*calls, 51);
  cr_expect(emulator_find(emulator, address, &range) && range.is_host && !strcmp(range.name, "calls"));
  cr_expect(emulator_owns(emulator, device) && !emulator_owns(emulator, address));
  cr_expect(emulator_find(emulator, device, &range) && !range.is_host && !range.name);
}
