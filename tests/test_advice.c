// What a report says must be changed, where it follows from an address or from the order of the reports.
// tests/hazards/advice.cu has the kernels for what follows from the program.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"

TestSuite(advice, .timeout = 60);

// Runs the body in a kernel of one block that has its argument in %p, and two arrays of 64 bytes. Returns the reports.
static char *reports_of(Emulator *emulator, unsigned threads, uint64_t argument, const char *body) {
  char text[4000];
  snprintf(text, sizeof text,
           ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 p) {\n"
           ".shared .align 16 .b8 _ZZ1kPiE5first[64];\n.shared .align 16 .b8 _ZZ1kPiE6second[64];\n"
           ".reg .b32 %%a, %%b, %%t, %%v; .reg .b64 %%p; .reg .pred %%q;\n"
           "ld.param.u64 %%p, [p]; mov.u32 %%t, %%tid.x;\n%s\nret;\n}\n.file 1 \"k.cu\"\n",
           body);
  EmulatorError error;
  EmulatorModule *module = emulator_load(emulator, text, strlen(text), &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  EmulatorLaunch launch = {.kernel = "k",
                           .grid = {1, 1, 1},
                           .block = {threads, 1, 1},
                           .arguments = (const void *[]){&argument},
                           .argument_count = 1};
  cr_assert_neq(emulator_launch(emulator, module, &launch, &error), EMULATOR_INVALID, "%s", error.message);
  int count;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  char *report = NULL;
  size_t size;
  FILE *file = open_memstream(&report, &size);
  emulator_print_hazards(file, hazards, count);
  fclose(file);
  emulator_clear_hazards(emulator);
  return report;
}

static Emulator *open_emulator(void) {
  return emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1, .step_limit = 1 << 20});
}

// What a load of four bytes at the address is reported as.
static char *load_at(Emulator *emulator, uint64_t address) {
  return reports_of(emulator, 1, address, "ld.u32 %v, [%p];");
}

static void expect(char *report, const char *text, const char *absent) {
  cr_expect(strstr(report, text), "no \"%s\" in\n%s", text, report);
  cr_expect(!absent || !strstr(report, absent), "\"%s\" in\n%s", absent, report);
  free(report);
}

// ---- addresses where nothing is ----

Test(advice, an_index_of_32_bits_that_has_wrapped) {
  Emulator *emulator = open_emulator();
  uint64_t size = (1ull << 31) + 4096, base = emulator_alloc(emulator, size);
  cr_assert(base);
  expect(load_at(emulator, base - (1ull << 31)),
         "2^31 bytes before an allocation of 2147487744 bytes, and exactly 2^32 bytes before its byte 2147483648",
         "mask the tail");
  expect(load_at(emulator, base - (1ull << 31) + 256), "cast a factor to 64 bits", NULL);
  emulator_close(emulator);
}

// An int counts floats: its 2^32 are 2^34 bytes.
Test(advice, an_index_of_elements_that_has_wrapped) {
  Emulator *emulator = open_emulator();
  uint64_t base = emulator_alloc(emulator, (1ull << 33) + 4096);
  cr_assert(base);
  expect(load_at(emulator, base - (1ull << 33) + 64), "and exactly 2^34 bytes before its byte 8589934656",
         "mask the tail");
  emulator_close(emulator);
}

Test(advice, a_negative_index_has_not_wrapped) {
  Emulator *emulator = open_emulator();
  uint64_t base = emulator_alloc(emulator, (1ull << 32) + 4096);
  cr_assert(base);
  expect(load_at(emulator, base - 4), "4 bytes before an allocation of 4294971392 bytes", "32 bits");
  expect(load_at(emulator, base - 4), "Check the index against 0", NULL);
  emulator_close(emulator);
}

Test(advice, a_small_allocation_has_no_wrapped_index) {
  Emulator *emulator = open_emulator();
  uint64_t base = emulator_alloc(emulator, 4096);
  expect(load_at(emulator, base - (1ull << 31)), "2^31 bytes before an allocation of 4096 bytes", "32 bits");
  emulator_close(emulator);
}

// Four bytes an element, and 0u - 1 of them. Behind what is allocated there is no other allocation.
Test(advice, an_index_without_a_sign_that_was_below_zero) {
  Emulator *emulator = open_emulator();
  uint64_t base = emulator_alloc(emulator, 4096);
  expect(load_at(emulator, base + (1ull << 34) - 4), "exactly 2^34 bytes behind a place that is 4 bytes before",
         "mask the tail");
  expect(load_at(emulator, base + (1ull << 34) + 4), "No allocation is near", "below zero");
  emulator_close(emulator);
}

Test(advice, null_pointers) {
  Emulator *emulator = open_emulator();
  emulator_alloc(emulator, 4096);
  expect(load_at(emulator, 0), "out-of-bounds access: a null pointer (4 bytes", "allocation of 4096");
  expect(load_at(emulator, 64), "64 bytes behind a null pointer", "allocation of 4096");
  expect(load_at(emulator, 1ull << 31), "2 GiB behind a null pointer", "allocation of 4096");
  expect(load_at(emulator, (uint64_t)-16), "16 bytes before a null pointer", "allocation of 4096");
  emulator_close(emulator);
}

// 0x400 is where a block's shared memory begins: the address that instructions with .shared take.
Test(advice, an_address_of_shared_memory_that_is_not_generic) {
  Emulator *emulator = open_emulator();
  expect(load_at(emulator, 0x440), "an address of shared memory, bytes 0 to 3 of `second`,", NULL);
  expect(load_at(emulator, 0x480), "1152 bytes behind a null pointer", "shared memory");
  emulator_close(emulator);
}

static int of_the_program;

Test(advice, memory_of_the_host) {
  Emulator *emulator = open_emulator();
  int on_the_stack = 0, *allocated = malloc(1 << 20);
  const void *const places[] = {&on_the_stack, allocated, &of_the_program};
  for (int i = 0; i < 3; i++)
    expect(load_at(emulator, (uint64_t)(uintptr_t)places[i]), "an address of the host's own memory", "mask the tail");
  free(allocated);
  emulator_close(emulator);
}

Test(advice, freed_memory) {
  Emulator *emulator = open_emulator();
  uint64_t base = emulator_alloc(emulator, 4096);
  emulator_free(emulator, base);
  expect(load_at(emulator, base + 16), "Free the memory after the kernels that use it", "mask the tail");
  emulator_close(emulator);
}

Test(advice, the_tail) {
  Emulator *emulator = open_emulator();
  uint64_t base = emulator_alloc(emulator, 280);
  expect(load_at(emulator, base + 280), "Check the index against the size of the array, and mask the tail", NULL);
  emulator_close(emulator);
}

// The host's heap goes on behind what it shares with kernels.
Test(advice, behind_memory_that_the_host_shares) {
  Emulator *emulator = open_emulator();
  char *memory = aligned_alloc(4096, 16384);
  uint64_t base = (uint64_t)(uintptr_t)memory;
  cr_assert(emulator_map(emulator, memory, 4096));
  expect(load_at(emulator, base + 4096), "4096 bytes from the start of an allocation of 4096 bytes", "host's own");
  emulator_unmap(emulator, memory);
  free(memory);
  emulator_close(emulator);
}

Test(advice, an_address_that_is_not_aligned) {
  Emulator *emulator = open_emulator();
  expect(reports_of(emulator, 1, 0, "mov.u32 %a, _ZZ1kPiE6second;\nld.shared.u32 %v, [%a+6];"),
         "`second` begins at 0x440, and this is byte 6 of it.", NULL);
  emulator_close(emulator);
}

// ---- variables ----

// Threads 16 to 31 of the store at line 1 reach the next array.
Test(advice, an_index_that_leaves_its_array) {
  Emulator *emulator = open_emulator();
  expect(reports_of(emulator, 32, 0,
                    "mov.u32 %a, _ZZ1kPiE5first; mad.lo.u32 %a, %t, 4, %a;\n.loc 1 1 1\nst.shared.u32 [%a], %t;\n"
                    "mov.u32 %b, _ZZ1kPiE6second;\n.loc 1 2 1\nst.shared.u32 [%b], %t;"),
         "The store at line 1 indexes `first`, and reaches `second`: check the index against the size of `first`.",
         "Put a barrier");
  emulator_close(emulator);
}

// Something that depends on %v.
#define USE "setp.eq.u32 %q, %v, 77; @%q exit;\n"

Test(advice, an_array_that_was_never_written) {
  Emulator *emulator = open_emulator();
  expect(reports_of(emulator, 1, 0, "ld.shared.u32 %v, [_ZZ1kPiE6second];" USE), "not to any byte of `second`", NULL);
  emulator_close(emulator);
}

// ---- blocks of a cluster ----

// One block needs no other one's mbarrier.
Test(advice, a_wgmma_that_has_not_waited_for_a_copy) {
  Emulator *emulator = open_emulator();
  uint64_t base = emulator_alloc(emulator, 4096);
  cr_assert(emulator_fill(emulator, base, 0, 4096));
  expect(reports_of(emulator, 128, base,
                    ".reg .f32 %f<4>; .reg .b64 %d, %x;\n.shared .align 128 .b8 tile[4096];\n.shared .b64 full;\n"
                    "setp.eq.u32 %q, %t, 0;\n@%q mbarrier.init.shared.b64 [full], 1;\nfence.proxy.async;\nbar.sync 0;\n"
                    "@%q mbarrier.arrive.expect_tx.shared.b64 %x, [full], 4096;\nmov.u32 %a, tile;\n.loc 1 1 1\n"
                    "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%p], 4096, [full];\n"
                    "bar.sync 0;\nshr.u32 %b, %a, 4; cvt.u64.u32 %d, %b; mov.u64 %x, 0x1000080000; or.b64 %d, %d, %x;\n"
                    "wgmma.fence.sync.aligned;\n.loc 1 2 1\n"
                    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 0, 1, 1, 0, 0;\n"
                    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
                    "W: mbarrier.test_wait.parity.shared.b64 %q, [full], 0;\n@!%q bra W;"),
         "Wait for the mbarrier of the operation at line 1 (`full`), with the parity of its phase, before line 2.",
         "of the cluster");
  emulator_close(emulator);
}

// ---- the order of reports ----

static void expect_order(char *report, const char *first, const char *second) {
  const char *one = strstr(report, first), *other = strstr(report, second);
  cr_expect(one && other && one < other, "\"%s\" is not before \"%s\" in\n%s", first, second, report);
  free(report);
}

// Both stand in the same line. Which warp comes first, the schedule decides.
Test(advice, a_race_comes_before_what_it_leaves_unwritten) {
  Emulator *emulator = open_emulator();
  expect_order(reports_of(emulator, 64, 0,
                          "xor.b32 %a, %t, 32; and.b32 %a, %a, 60; and.b32 %b, %t, 60;\n"
                          "mov.u32 %v, _ZZ1kPiE5first; add.u32 %a, %a, %v; add.u32 %b, %b, %v;\n"
                          "setp.lt.u32 %q, %t, 32;\n@%q ld.shared.u32 %v, [%a];\n@!%q st.shared.u32 [%b], 1;" USE),
               "shared-memory race", "uninitialised read");
  emulator_close(emulator);
}

Test(advice, what_stops_comes_last) {
  Emulator *emulator = open_emulator();
  char *report =
      reports_of(emulator, 1, 0, ".loc 1 9 1\nld.shared.u32 %v, [_ZZ1kPiE5first];" USE ".loc 1 3 1\nld.u32 %v, [%p];");
  cr_expect(strstr(report, "    the launch stopped here\n"));
  cr_expect(strstr(report, "    This may follow from what is reported above.\n"));
  expect_order(report, "uninitialised read", "out-of-bounds access");
  emulator_close(emulator);
}
