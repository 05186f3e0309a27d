// What a report of a deadlock tells: the cause first, then each place where warps wait, who has come and who would, and
// nothing cut off.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"

TestSuite(deadlock, .timeout = 60);

#define HEADER ".version 8.0\n.target sm_90a\n.address_size 64\n"

typedef struct Launched {
  HazardKind kind;
  char detail[HAZARD_DETAIL], lines[8000];
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
  snprintf(launched.lines, sizeof launched.lines, "%s", hazard->lines ? hazard->lines : "");
  emulator_close(emulator);
  return launched;
}

static void expect_deadlock(const char *text, unsigned threads, unsigned cluster, const char *detail,
                            const char *lines) {
  Launched launched = launch(text, threads, cluster);
  cr_expect_str_eq(hazard_name(launched.kind), "deadlock");
  cr_expect_str_eq(launched.detail, detail);
  cr_expect_str_eq(launched.lines, lines);
}

// What the warp would do next is found by running it on, out of the function where it waits.
Test(deadlock, a_warp_that_waits_in_a_function) {
  expect_deadlock(HEADER
                  ".func meet() { bar.sync 1, 64;\nret; }\n"
                  ".entry k() { .reg .pred %p;\nsetp.ge.u32 %p, %tid.x, 32;\n@%p ret;\ncall meet;\nbar.sync 2, 64;\n"
                  "ret; }\n",
                  64, 1, "barrier 1 waits for 64 threads, and only 32 come: warp 0",
                  "warp 0 waits at PTX line 4 for barrier 1: 32 of 64 threads have come; no other warp would arrive\n"
                  "warp 1 has exited at PTX line 8\n");
}

// Lesson 08's first mistake: nobody begins, and each warpgroup waits at a barrier of its own. Warps 0 to 3 have exited.
Test(deadlock, warps_are_grouped_by_barrier) {
  expect_deadlock(
      HEADER ".entry k() { .reg .u32 %n; .reg .pred %p;\nshr.u32 %n, %tid.x, 7; setp.eq.u32 %p, %n, 0;\n"
             "@%p ret;\nbar.sync %n, 256;\nret; }\n",
      512, 1, "barrier 1 waits for 256 threads, and only 128 come: warps 4 to 7",
      "warps 4 to 7 wait at PTX line 7 for barrier 1: 128 of 256 threads have come; no other warp would arrive\n"
      "warps 8 to 11 wait at PTX line 7 for barrier 2: 128 of 256 threads have come; no other warp would arrive\n"
      "warps 12 to 15 wait at PTX line 7 for barrier 3: 128 of 256 threads have come; no other warp would arrive\n"
      "warps 0 to 3 have exited at PTX line 6\n");
}

Test(deadlock, warps_apart_are_named) {
  expect_deadlock(
      HEADER ".entry k() { .reg .u32 %w, %o; .reg .pred %p, %q;\nshr.u32 %w, %tid.x, 5; and.b32 %o, %w, 1;\n"
             "setp.eq.u32 %p, %w, 5; setp.eq.u32 %q, %o, 0;\n@%p ret;\n@%q bra E;\nbar.sync 1, 256;\nret;\n"
             "E: bar.sync 2, 256;\nret; }\n",
      192, 1, "barrier 2 waits for 256 threads, and only 96 come: warps 0, 2, 4",
      "warps 0, 2, 4 wait at PTX line 11 for barrier 2: 96 of 256 threads have come; no other warp would arrive\n"
      "warps 1, 3 wait at PTX line 9 for barrier 1: 64 of 256 threads have come; no other warp would arrive\n"
      "warp 5 has exited at PTX line 7\n");
}

Test(deadlock, blocks_of_a_cluster_are_told_apart) {
  expect_deadlock(HEADER
                  ".entry k() { .reg .u32 %r; .reg .pred %p;\nmov.u32 %r, %cluster_ctarank; setp.eq.u32 %p, %r, 0;\n"
                  "@%p bra A;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n"
                  "A: bar.sync 1, 128;\nret; }\n",
                  64, 2, "barrier 1 waits for 128 threads, and only 64 come: block 0's warps 0 to 1",
                  "block 0's warps 0 to 1 wait at PTX line 9 for barrier 1: 64 of 128 threads have come; no other warp "
                  "would arrive\n"
                  "block 1's warps 0 to 1 wait at PTX line 7 for all threads of the cluster: block 0's warps 0 to 1 "
                  "have not come; no "
                  "other warp would arrive\n");
}

// Warps 0 to 2 wait for a phase that warp 3 does not complete.
Test(deadlock, warps_are_grouped_by_mbarrier) {
  expect_deadlock(
      HEADER ".entry k() { .reg .u32 %b, %t; .reg .pred %p, %q, %d; .shared .align 8 .b64 bar;\n"
             "mov.u32 %b, bar; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; setp.ge.u32 %q, %t, 96;\n"
             "@%p mbarrier.init.shared.b64 [%b], 2;\nbar.sync 0;\n@%q ret;\n"
             "L: mbarrier.try_wait.parity.shared.b64 %d, [%b], 0; @!%d bra L;\nret; }\n",
      128, 1, "warps 0 to 2 wait at the mbarrier at 0x400, and no thread arrives there",
      "warps 0 to 2 wait at PTX line 9 for phase 0 (parity 0) of the mbarrier at 0x400: 2 of 2 arrivals are "
      "missing; no other warp would arrive\n"
      "warp 3 has exited at PTX line 8\n");
}

// ---- rings: warp 0 puts tiles into one slot, warp 1 takes them ----

// `full` has an arrival of warp 0's first lane, `empty` one of warp 1's. The parts are what differs.
#define RING(init_empty, first_parity, put_rounds, take_rounds, put_more, take_more)                                   \
  HEADER                                                                                                               \
  ".entry k() { .reg .u32 %f, %e, %t, %n, %q; .reg .pred %p, %d, %w;\n.shared .align 8 .b64 full;\n"                   \
  ".shared .align 8 .b64 empty;\nmov.u32 %f, full; mov.u32 %e, empty; mov.u32 %t, %tid.x; mov.u32 %n, 0;\n"            \
  "setp.eq.u32 %p, %t, 0;\n@%p mbarrier.init.shared.b64 [%f], 1;\n@%p mbarrier.init.shared.b64 [%e], " init_empty      \
  ";\nbar.sync 0;\nsetp.ge.u32 %p, %t, 32; @%p bra TAKE;\nsetp.ne.u32 %p, %t, 0; @%p ret;\n"                           \
  "PUT: and.b32 %q, %n, 1; xor.b32 %q, %q, " first_parity                                                              \
  ";\nPUT_WAIT: mbarrier.try_wait.parity.shared.b64 %d, [%e], %q; @!%d bra PUT_WAIT;\n" put_more                       \
  "mbarrier.arrive.shared.b64 _, [%f];\n"                                                                              \
  "add.u32 %n, %n, 1; setp.lt.u32 %w, %n, " put_rounds "; @%w bra PUT;\nret;\n"                                        \
  "TAKE: setp.ne.u32 %p, %t, 32; @%p ret;\n"                                                                           \
  "NEXT: and.b32 %q, %n, 1;\nTAKE_WAIT: mbarrier.try_wait.parity.shared.b64 %d, [%f], %q; @!%d bra "                   \
  "TAKE_WAIT;\n" take_more "mbarrier.arrive.shared.b64 _, [%e];\n"                                                     \
  "add.u32 %n, %n, 1; setp.lt.u32 %w, %n, " take_rounds "; @%w bra NEXT;\nret; }\n"

static void expect_ring(const char *text, const char *detail, const char *part) {
  Launched launched = launch(text, 64, 1);
  cr_expect_str_eq(hazard_name(launched.kind), "deadlock");
  cr_expect_str_eq(launched.detail, detail);
  cr_expect(strstr(launched.lines, part), "no \"%s\" in\n%s", part, launched.lines);
}

// The first wait for the empty slot asks for a phase that only its reader can end.
Test(deadlock, a_cycle_is_named) {
  static const char text[] = RING("1", "0", "4", "4", "", "");
  expect_ring(
      text, "warp 0 waits for warp 1, and warp 1 waits for warp 0",
      "warp 0 waits at PTX line 15 for phase 0 (parity 0) of the mbarrier at 0x408: 1 of 1 arrival is missing; warp "
      "1 would arrive at PTX line 22\n");
}

Test(deadlock, a_producer_that_has_exited_is_named) {
  static const char text[] = RING("1", "1", "3", "4", "", "");
  expect_ring(text, "warp 1 waits for warp 0, which has exited", "warp 0 arrived in an earlier phase at PTX line 16");
}

Test(deadlock, a_consumer_that_leaves_its_loop_is_named) {
  static const char text[] = RING("1", "1", "4", "2", "", "");
  expect_ring(text, "warp 0 waits for warp 1, which has exited", "warp 1 has exited at PTX line 24\n");
}

Test(deadlock, a_count_that_is_too_large_is_named) {
  static const char text[] = RING("2", "1", "4", "4", "", "");
  expect_ring(text, "the mbarrier at 0x408 waits for 2 arrivals, and only 1 come: from warp 1",
              "1 of 2 arrivals is missing; warp 1 has arrived at PTX line 22; no other warp would arrive");
}

// One skips the second tile, the other does not.
Test(deadlock, a_tile_that_is_skipped_on_one_side) {
  static const char text[] = RING("1", "1", "4", "4", "setp.eq.u32 %w, %n, 3; @%w ret;\n", "");
  expect_ring(text, "warp 1 waits for warp 0, which has exited", "warp 0 has exited at PTX line 16\n");
}

// The reader waits for the writer at a barrier that the writer reaches only after its loop.
Test(deadlock, a_side_that_waits_elsewhere_is_named) {
  static const char text[] = RING("1", "1", "4", "4", "", "setp.eq.u32 %w, %n, 2; @%w bar.sync 2, 64;\n");
  Launched launched = launch(text, 64, 1);
  cr_expect(strstr(launched.lines, "for barrier 2: "), "%s", launched.lines);
}

// The second wait for phase 0 ends at once. It should ask for parity 1.
Test(deadlock, a_wait_that_ended_at_once_is_named) {
  static const char text[] =
      HEADER ".entry k() { .reg .u32 %b; .reg .pred %d; .shared .align 8 .b64 bar;\nmov.u32 %b, bar;\n"
             "mbarrier.init.shared.b64 [%b], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%b], 16;\n"
             "mbarrier.complete_tx.shared.b64 [%b], 16;\n"
             "A: mbarrier.try_wait.parity.shared.b64 %d, [%b], 0; @!%d bra A;\n"
             "B: mbarrier.try_wait.parity.shared.b64 %d, [%b], 0; @!%d bra B;\n"
             "C: mbarrier.try_wait.parity.shared.b64 %d, [%b], 1; @!%d bra C;\nret; }\n";
  Launched launched = launch(text, 1, 1);
  cr_expect_str_eq(launched.detail, "warp 0 waits at the mbarrier at 0x400, and no thread arrives there again");
  cr_expect(strstr(launched.lines, "its wait at PTX line 9 ended at once a second time after phase 0"), "%s",
            launched.lines);
}

// Block 0 waits for a thread of block 1, which has exited.
Test(deadlock, a_peer_block_that_has_exited_is_named) {
  static const char text[] =
      HEADER ".entry k() { .reg .u32 %b, %r, %m; .reg .pred %p, %d; .shared .align 8 .b64 bar;\nmov.u32 %b, bar;\n"
             "mbarrier.init.shared.b64 [%b], 1; mov.u32 %r, %cluster_ctarank; setp.eq.u32 %p, %r, 0;\n"
             "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
             "@%p bra W;\nmapa.shared::cluster.u32 %m, %b, 0;\n"
             "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%m];\nret;\n"
             "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %d, [%b], 0; @!%d bra W;\n"
             "V: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %d, [%b], 1; @!%d bra V;\nret; }\n";
  Launched launched = launch(text, 1, 2);
  cr_expect_str_eq(launched.detail, "block 0's warp 0 waits for block 1's warp 0, which has exited");
  cr_expect(strstr(launched.lines, "; block 1's warp 0 arrived in an earlier phase at PTX line 10"), "%s",
            launched.lines);
  cr_expect(strstr(launched.lines, "\nblock 1's warp 0 has exited at PTX line 11\n"), "%s", launched.lines);
}

// Two warps wait at two barriers in opposite order.
Test(deadlock, barriers_in_opposite_order_are_a_cycle) {
  static const char text[] =
      HEADER ".entry k() { .reg .u32 %n, %m; shr.u32 %n, %tid.x, 5; add.u32 %n, %n, 1; sub.u32 %m, 3, %n;\n"
             "bar.sync %n, 64;\nbar.sync %m, 64;\nret; }\n";
  expect_deadlock(
      text, 64, 1, "warp 0 waits for warp 1, and warp 1 waits for warp 0",
      "warp 0 waits at PTX line 5 for barrier 1: 32 of 64 threads have come; warp 1 would arrive at PTX line 6\n"
      "warp 1 waits at PTX line 5 for barrier 2: 32 of 64 threads have come; warp 0 would arrive at PTX line 6\n");
}

// Each of three warps waits for the next one.
Test(deadlock, a_cycle_of_three) {
  static const char text[] =
      HEADER ".entry k() { .reg .u32 %w, %n, %m; shr.u32 %w, %tid.x, 5; add.u32 %n, %w, 1; add.u32 %m, %w, 2;\n"
             "rem.u32 %m, %m, 3; add.u32 %m, %m, 1;\nbar.sync %n, 64;\nbar.arrive %m, 64;\nret; }\n";
  Launched launched = launch(text, 96, 1);
  cr_expect_str_eq(launched.detail, "warp 0 waits for warp 1, warp 1 waits for warp 2, and warp 2 waits for warp 0");
}

// ---- memory ----

// The flag holds what another thread has stored, and that is not what is waited for.
Test(deadlock, what_a_poll_finds_is_named) {
  static const char text[] =
      HEADER ".global .u32 flag;\n.entry k() { .reg .u32 %v; .reg .pred %p;\nsetp.eq.u32 %p, %tid.x, 0;\n"
             "@%p st.volatile.global.u32 [flag], 7;\n@%p ret;\n"
             "L: ld.volatile.global.u32 %v, [flag]; setp.ne.u32 %p, %v, 8;\n@%p bra L;\nret; }\n";
  Launched launched = launch(text, 64, 1);
  cr_expect(strstr(launched.detail, "which hold 7, stored at PTX line 7 by block (0,0,0) thread (0,0,0), which has "
                                    "exited: no thread that goes on will change that"),
            "%s", launched.detail);
}

// The lanes that wait for the one that polls are not the cause.
Test(deadlock, a_lane_that_polls_for_its_warp_is_named) {
  static const char text[] =
      HEADER ".global .u32 flag;\n.entry k() { .reg .u32 %v; .reg .pred %p;\nsetp.ne.u32 %p, %tid.x, 0; @%p bra E;\n"
             "L: ld.acquire.gpu.global.u32 %v, [flag]; setp.ne.u32 %p, %v, 8;\n@%p bra L;\n"
             "E: bar.warp.sync 0xffffffff;\nret; }\n";
  Launched launched = launch(text, 32, 1);
  cr_expect_str_eq(hazard_name(launched.kind), "deadlock");
  cr_expect(strstr(launched.detail, "lanes 0x00000001 of warp 0 wait for the 4 bytes at"), "%s", launched.detail);
}

// ---- more ----

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
  for (const char *at = launched.lines; (at = strstr(at, " wait")); at++) told++;
  const char *end = strstr(launched.lines, "\nand ");
  cr_assert(end && sscanf(end, "\nand %d more like these", &more) == 1, "%s", launched.lines);
  cr_expect_eq(told, 20);
  cr_expect_eq(more, 12);
  cr_expect_str_eq(end + strlen(end) - strlen(" like these\n"), " like these\n");
}

// Lesson 07's first mistake: three warps of a warpgroup have their registers and wait in wgmma for the fourth, which
// asks for more than there are.
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
  static const char text[] =
      HEADER ".global .u32 flag;\n.entry k() { .reg .u32 %v; .reg .pred %p;\n"
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
