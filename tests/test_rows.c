// Loads and stores of many lanes are checked together where they can be: what is found must be what checking lane by
// lane finds.
#include <criterion/criterion.h>
#include <string.h>

#include "emulator/run/state.h"
#include "support/random_accesses.h"

TestSuite(rows, .timeout = 120);

typedef struct Found {
  Emulator *emulator;
  EmulatorStatus status;
  EmulatorCounters counters;
  uint8_t out[RANDOM_BYTES];
} Found;

static void launch(Found *found, const RandomKernel *kernel, uint64_t schedule, int threads, bool lane_by_lane) {
  EmulatorError error;
  found->emulator = emulator_open(&(EmulatorOptions){.hazards = true, .schedule = schedule, .threads = threads});
  found->emulator->lane_by_lane = lane_by_lane;
  EmulatorModule *module = emulator_load(found->emulator, kernel->ptx, strlen(kernel->ptx), &error);
  cr_assert(module, "line %d: %s\n%s", error.line, error.message, kernel->ptx);
  uint64_t in = emulator_alloc(found->emulator, RANDOM_BYTES), out = emulator_alloc(found->emulator, RANDOM_BYTES);
  emulator_fill(found->emulator, in, 1, RANDOM_BYTES);
  if (schedule % 2) emulator_fill(found->emulator, out, 2, RANDOM_BYTES);
  const Shape *shape = &kernel->shape;
  const EmulatorLaunch request = {.kernel = "test",
                                  .grid = {shape->grid, 1, 1},
                                  .block = {shape->block, 1, 1},
                                  .cluster = {shape->cluster, 1, 1},
                                  .arguments = (const void *[]){&in, &out},
                                  .argument_count = 2};
  found->status = emulator_launch(found->emulator, module, &request, &error);
  found->counters = emulator_counters(found->emulator);
  emulator_read(found->emulator, found->out, out, RANDOM_BYTES);
}

static bool same_place(const HazardPlace *a, const HazardPlace *b) {
  return a->ptx_line == b->ptx_line && !memcmp(a->block, b->block, sizeof a->block) &&
         !memcmp(a->thread, b->thread, sizeof a->thread);
}

static bool same_hazard(const Hazard *a, const Hazard *b) {
  return a->kind == b->kind && a->grade == b->grade && a->stopped == b->stopped && same_place(&a->here, &b->here) &&
         a->has_other == b->has_other && (!a->has_other || same_place(&a->other, &b->other)) &&
         a->address == b->address && a->size == b->size && a->count == b->count && !strcmp(a->detail, b->detail);
}

// Returns how many hazards there are.
static int compare(const RandomKernel *kernel, uint64_t seed, uint64_t schedule) {
  static Found rows, lanes;
  launch(&rows, kernel, schedule, 1, false);
  launch(&lanes, kernel, schedule, 1, true);
  int count, expected;
  const Hazard *found = emulator_hazards(rows.emulator, &count), *each = emulator_hazards(lanes.emulator, &expected);
  cr_assert_eq(rows.status, lanes.status, "kernel %d", (int)seed);
  cr_assert_eq(count, expected, "kernel %d: %d hazards, not %d", (int)seed, count, expected);
  for (int i = 0; i < count; i++)
    cr_assert(same_hazard(&found[i], &each[i]), "kernel %d, schedule %d: hazard %d at line %d: %s\n%s", (int)seed,
              (int)schedule, i, found[i].here.ptx_line, found[i].detail, each[i].detail);
  cr_assert_arr_eq(rows.counters.value, lanes.counters.value, sizeof rows.counters.value, "kernel %d", (int)seed);
  cr_assert_arr_eq(rows.out, lanes.out, sizeof rows.out, "kernel %d", (int)seed);
  emulator_close(rows.emulator);
  emulator_close(lanes.emulator);
  return count;
}

Test(rows, find_what_lane_by_lane_is_found) {
  enum { KERNELS = 4000 };
  static RandomKernel kernel;
  int with = 0;
  for (uint64_t seed = 0; seed < KERNELS; seed++) {
    random_kernel(&kernel, seed);
    with += compare(&kernel, seed, seed % 4) > 0;
  }
  cr_expect(with > KERNELS / 4 && with < KERNELS * 31 / 32, "%d of %d kernels have hazards", with, KERNELS);
}

// Of a warp whose lanes knew the same, one learns of the other warp's writes by itself: the others' reads are races.
Test(rows, know_when_one_lane_learns) {
  static RandomKernel kernel = {
      {.grid = 1, .block = 64},
      PTX_HEADER
      ".visible .entry test(.param .u64 in, .param .u64 out) {\n.reg .pred %first, %reads;\n"
      ".reg .b32 %t, %lane, %warp, %v;\n.reg .b64 %in, %out, %x;\nld.param.u64 %in, [in];\nld.param.u64 %out, "
      "[out];\nmov.u32 %t, %tid.x;\n"
      "and.b32 %lane, %t, 31;\nshr.u32 %warp, %t, 5;\nsetp.eq.u32 %first, %lane, 0;\n"
      "mad.wide.u32 %x, %t, 4, %in;\nld.global.u32 %v, [%x];\n"  // their first row
      "mad.wide.u32 %x, %lane, 4, %out;\nsetp.ne.u32 %reads, %warp, 0;\n@%reads bra read;\n"
      "st.global.u32 [%x], %t;\nbar.warp.sync 0xffffffff;\n@%first st.release.gpu.global.u32 [%in+4096], %t;\nret;\n"
      "read:\n@%first ld.acquire.gpu.global.u32 %v, [%in+4096];\nld.global.u32 %v, [%x];\nret;\n}\n"};
  cr_expect(compare(&kernel, 0, 0) > 0, "no race");
}
