// What a report of a deadlock tells: every place where warps wait, with how many have come, and nothing cut off.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"

TestSuite(deadlock, .timeout = 60);

#define HEADER ".version 8.0\n.target sm_90a\n.address_size 64\n"

typedef struct Launched {
  HazardKind kind;
  char detail[HAZARD_DETAIL];
} Launched;

// Launches the kernel k, which must stop with one hazard.
static Launched launch(const char *text, unsigned threads, unsigned cluster) {
  Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1});
  EmulatorError error = {0};
  EmulatorModule *module = emulator_load(emulator, text, strlen(text), &error);
  cr_assert(module, "line %d: %s", error.line, error.message);
  EmulatorLaunch shape = {.kernel = "k", .grid = {cluster, 1, 1}, .block = {threads, 1, 1}, .cluster = {cluster, 1, 1}};
  cr_assert_eq(emulator_launch(emulator, module, &shape, &error), EMULATOR_FAULT, "%s", error.message);
  int count;
  const Hazard *hazard = emulator_hazards(emulator, &count);
  cr_assert_eq(count, 1);
  Launched launched = {.kind = hazard->kind};
  snprintf(launched.detail, sizeof launched.detail, "%s", hazard->detail);
  emulator_close(emulator);
  return launched;
}

static void expect_deadlock(const char *text, unsigned threads, unsigned cluster, const char *detail) {
  Launched launched = launch(text, threads, cluster);
  cr_expect_str_eq(hazard_name(launched.kind), "deadlock");
  cr_expect_str_eq(launched.detail, detail);
}

// Lesson 08's first mistake: nobody begins, and each warpgroup waits at a barrier of its own. Warps 0 to 3 have exited.
Test(deadlock, warps_are_grouped_by_barrier) {
  expect_deadlock(
      HEADER ".entry k() { .reg .u32 %n; .reg .pred %p;\nshr.u32 %n, %tid.x, 7; setp.eq.u32 %p, %n, 0;\n"
             "@%p ret;\nbar.sync %n, 256;\nret; }\n",
      512, 1,
      "no thread can go on: warps 4 to 7 at PTX line 7 (barrier 1: 128 of 256 threads); warps 8 to 11 at PTX "
      "line 7 (barrier 2: 128 of 256 threads); warps 12 to 15 at PTX line 7 (barrier 3: 128 of 256 threads); "
      "warps 0 to 3 have exited");
}

Test(deadlock, warps_apart_and_lanes_are_named) {
  expect_deadlock(
      HEADER ".entry k() { .reg .u32 %w, %o; .reg .pred %p, %q;\nshr.u32 %w, %tid.x, 5; and.b32 %o, %w, 1;\n"
             "setp.eq.u32 %p, %w, 5; setp.eq.u32 %q, %o, 0;\n@%p ret;\n@%q bra E;\nbar.sync 1, 256;\nret;\n"
             "E: bar.sync 2, 256;\nret; }\n",
      192, 1,
      "no thread can go on: warps 0, 2, 4 at PTX line 11 (barrier 2: 96 of 256 threads); warps 1, 3 at PTX line "
      "9 (barrier 1: 64 of 256 threads); warp 5 has exited");
}

Test(deadlock, blocks_of_a_cluster_are_told_apart) {
  expect_deadlock(
      HEADER ".entry k() { .reg .u32 %r; .reg .pred %p;\nmov.u32 %r, %cluster_ctarank; setp.eq.u32 %p, %r, 0;\n"
             "@%p bra A;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n"
             "A: bar.sync 1, 128;\nret; }\n",
      64, 2,
      "no thread can go on: block 0 of the cluster: warps 0 to 1 at PTX line 9 (barrier 1: 64 of 128 threads); "
      "block 1 of the cluster: warps 0 to 1 at PTX line 7 (the cluster's barrier)");
}

// Warps 0 to 2 wait for a phase that warp 3 does not complete.
Test(deadlock, warps_are_grouped_by_mbarrier) {
  expect_deadlock(HEADER ".entry k() { .reg .u32 %b, %t; .reg .pred %p, %q, %d; .shared .align 8 .b64 bar;\n"
                         "mov.u32 %b, bar; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; setp.ge.u32 %q, %t, 96;\n"
                         "@%p mbarrier.init.shared.b64 [%b], 2;\nbar.sync 0;\n@%q ret;\n"
                         "L: mbarrier.try_wait.parity.shared.b64 %d, [%b], 0; @!%d bra L;\nret; }\n",
                  128, 1,
                  "warps 0 to 2 at PTX line 9 for phase 0 (parity 0) of the mbarrier at 0x400: 2 arrivals are missing; "
                  "warp 3 has exited");
}

// Every lane of 32 warps waits at a line of its own: not all of it fits, and the report says how much does not.
Test(deadlock, places_that_do_not_fit_are_counted) {
  char text[8000];
  int used =
      snprintf(text, sizeof text, "%s", HEADER ".entry k() { .reg .u32 %w; .reg .pred %p;\nshr.u32 %w, %tid.x, 5;\n");
  for (int w = 0; w < 32; w++)
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "setp.ne.u32 %%p, %%w, %d; @%%p bra L%d;\nbar.sync %d, 1024;\nL%d:\n", w, w, w % 15 + 1, w);
  snprintf(text + used, sizeof text - (size_t)used, "ret; }\n");
  Launched launched = launch(text, 1024, 1);
  int told = 0, more = 0;
  for (const char *at = launched.detail; (at = strstr(at, "warp ")); at++) told++;
  const char *end = strstr(launched.detail, "; and ");
  cr_assert(end && sscanf(end, "; and %d more places", &more) == 1, "%s", launched.detail);
  cr_expect_eq(told + more, 32, "%d and %d: %s", told, more, launched.detail);
  cr_expect_geq(told, 15);
  cr_expect_str_eq(end + strlen(end) - strlen(" more places"), " more places");
}

// Lesson 07's first mistake: three warps of a warpgroup have their registers and wait in wgmma for the fourth, which asks
// for more than there are.
Test(deadlock, too_many_registers_are_told_before_what_waits_for_them) {
  Launched launched = launch(
      HEADER ".entry k() .maxntid 256 .minnctapersm 2 { .reg .u32 %b, %a, %z; .reg .b64 %d, %x; .reg .f32 %f<4>;\n"
             ".reg .pred %p; .shared .align 128 .b8 t[4096];\n"
             "mov.u32 %z, 0; mov.u32 %b, t; mad.lo.u32 %a, %tid.x, 16, %b; st.shared.v4.u32 [%a], {%z, %z, %z, %z};\n"
             "fence.proxy.async;\nbar.sync 0;\nsetp.lt.u32 %p, %tid.x, 128; @%p bra L;\n"
             "setmaxnreg.inc.sync.aligned.u32 224;\n"
             "shr.u32 %b, %b, 4; cvt.u64.u32 %d, %b; mov.u64 %x, 0x1000080000; or.b64 %d, %d, %x;\n"
             "wgmma.fence.sync.aligned;\n"
             "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 0, 1, 1, 0, 0;\n"
             "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\nret;\n"
             "L: setmaxnreg.dec.sync.aligned.u32 40;\nret; }\n",
      256, 1);
  cr_expect_str_eq(hazard_name(launched.kind), "setmaxnreg misuse");
  cr_expect_str_eq(launched.detail, "it waits forever: 40 + 224 registers a thread x 128 need 33,792, the launch gave "
                                    "256 x 128 = 32,768");
}

// All blocks poll what none of them writes: the first of the grid is named, whichever looked last.
Test(deadlock, the_first_block_that_polls_is_named) {
  static const char text[] = HEADER ".global .u32 flag;\n.entry k() { .reg .u32 %v; .reg .pred %p;\n"
                                    "L: ld.volatile.global.u32 %v, [flag]; setp.eq.u32 %p, %v, 0;\n@%p bra L;\nret; }\n";
  for (uint64_t schedule = 0; schedule < 5; schedule++) {
    Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1, .schedule = schedule});
    EmulatorError error = {0};
    EmulatorModule *module = emulator_load(emulator, text, strlen(text), &error);
    cr_assert(module, "line %d: %s", error.line, error.message);
    EmulatorLaunch shape = {.kernel = "k", .grid = {4, 1, 1}, .block = {32, 1, 1}};
    cr_assert_eq(emulator_launch(emulator, module, &shape, &error), EMULATOR_FAULT);
    int count;
    const Hazard *hazard = emulator_hazards(emulator, &count);
    cr_assert_eq(count, 1);
    cr_expect_eq(hazard->kind, HAZARD_DEADLOCK);
    cr_expect_eq(hazard->here.block[0], 0, "schedule %d: block %u", (int)schedule, hazard->here.block[0]);
    emulator_close(emulator);
  }
}
