// The emulator's counters of what is no load or store of a warp: operands of wgmma, copies, distributed and local
// memory, special functions. And how the report and --counters show them.
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/program.h"
#include "support/run_kernel.h"

TestSuite(traffic, .timeout = 60);

// Runs a kernel that knows a tensor map, its tensor's global memory, a tile and an mbarrier. Some read what nobody
// wrote: that is reported, and not asked for here.
static EmulatorCounters count_kernel(const char *body, Shape shape) {
  static char text[1 << 15], zeros[1 << 14];
  snprintf(text, sizeof text,
           PTX_HEADER ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 global) {\n"
                      ".reg .b64 %%m, %%g, %%l<4>; .reg .b32 %%t, %%r<8>; .reg .b16 %%h<4>; .reg .f32 %%f<200>;\n"
                      ".reg .f64 %%d<4>; .reg .pred %%p, %%q; .local .align 16 .b8 own[64];\n"
                      ".shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;\n"
                      "mov.b64 %%m, map; cvta.param.u64 %%m, %%m; ld.param.u64 %%g, [global]; mov.u32 %%t, %%tid.x;\n"
                      "setp.eq.u32 %%p, %%t, 0; %s\nret;\n}\n",
           body);
  Machine machine = machine_open(text, 0);
  uint64_t global = machine_upload(&machine, zeros, sizeof zeros);
  EmulatorTensorSpec spec = {
      .type = EMULATOR_TENSOR_F32, .rank = 2, .address = global, .size = {32, 20}, .stride = {0, 128}, .box = {32, 16}};
  Map map = make_map(&spec);
  const void *arguments[] = {&map, &global};
  cr_expect_eq(machine_launch(&machine, shape, arguments, 2), EMULATOR_OK);
  EmulatorCounters counters = emulator_counters(machine.emulator);
  int lines;
  const LineCounters *line = emulator_line_counters(machine.emulator, &lines);
  for (int k = COUNTER_TENSOR_FLOPS; k < COUNTER_KIND_COUNT; k++)
    cr_expect(lines == 1 && line->counters.value[k] == counters.value[k], "%s of the lines", counter_name(k));
  machine_close(&machine);
  return counters;
}

// What is not named here must be 0.
typedef struct Traffic {
  CounterKind kind;
  uint64_t count;
} Traffic;

// The counters from `first` to before `end` are as expected, and 0 where nothing is.
static void expect_counters(const char *what, const EmulatorCounters *counters, int first, int end,
                            const Traffic *expected) {
  for (int k = first; k < end; k++) {
    uint64_t count = 0;
    for (int i = 0; expected[i].count; i++)
      if ((int)expected[i].kind == k) count = expected[i].count;
    cr_expect_eq(counters->value[k], count, "%s: %s is %llu, not %llu", what, counter_name((CounterKind)k),
                 (unsigned long long)counters->value[k], (unsigned long long)count);
  }
}

#define EXPECT_TRAFFIC(what, counters, ...)                                                                            \
  expect_counters(what, counters, COUNTER_INST_MUFU, COUNTER_INST_UNDER_WGMMA, (const Traffic[]){__VA_ARGS__, {0, 0}})
#define EXPECT_SHARED(what, counters, ...)                                                                             \
  expect_counters(what, counters, COUNTER_SHARED_LOADS, COUNTER_GLOBAL_LOAD_REQUESTS,                                  \
                  (const Traffic[]){__VA_ARGS__, {0, 0}})

// A wgmma of two warpgroups. All descriptors name zeros at the tile's start; what they overlap does not matter.
static EmulatorCounters count_wgmma(int n, bool a_in_registers) {
  char text[4000], list[2000] = "";
  for (int i = 0; i < n / 2; i++) sprintf(list + strlen(list), "%s%%f%d", i ? ", " : "", i);
  snprintf(text, sizeof text,
           "mov.u32 %%r0, tile; shr.u32 %%r1, %%r0, 4; cvt.u64.u32 %%l0, %%r1; or.b64 %%l0, %%l0, 0x1000080000;\n"
           "wgmma.fence.sync.aligned;\n"
           "wgmma.mma_async.sync.aligned.m64n%dk16.f32.f16.f16 {%s}, %s, %%l0, 0, 1, 1, %s0;\n"
           "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
           n, list, a_in_registers ? "{%r4, %r5, %r6, %r7}" : "%l0", a_in_registers ? "" : "0, ");
  return count_kernel(text, (Shape){1, 256, 0});
}

Test(traffic, wgmma_operands) {
  for (int n = 8; n <= 256; n += 8) {
    EmulatorCounters both = count_wgmma(n, false), one = count_wgmma(n, true);
    uint64_t a = 2 * 64 * 16 * 2, b = 2 * (uint64_t)n * 16 * 2;  // two warpgroups, 2 bytes an element
    EXPECT_TRAFFIC("A in shared memory", &both, {COUNTER_WGMMA_SHARED_READ_BYTES, a + b});
    EXPECT_TRAFFIC("A in registers", &one, {COUNTER_WGMMA_SHARED_READ_BYTES, b});
  }
}

// ---- overlap: what a warp executes while something else is under way ----

// EX2, an exponential, and FMA, a multiply-add; neither touches what a wgmma uses.
#define EX2 "ex2.approx.ftz.f32 %f150, %f151;\n"
#define FMA "fma.rn.f32 %f152, %f153, %f151, %f151;\n"
#define SET "mov.f32 %f151, 0f3f800000; mov.f32 %f153, %f151;\n"
#define EXPECT_OVERLAP(what, counters, first, inst, fp32, mufu)                                                        \
  do {                                                                                                                 \
    const uint64_t expected[] = {inst, fp32, mufu};                                                                    \
    for (int i = 0; i < 3; i++)                                                                                        \
      cr_expect_eq((counters)->value[(first) + i], expected[i], "%s: %s is %llu", what,                                \
                   counter_name((CounterKind)((first) + i)), (unsigned long long)(counters)->value[(first) + i]);      \
  } while (0)

// From a wgmma to the wait after which none is pending: of two groups, the wait for the older one is not the end.
Test(traffic, under_a_wgmma) {
  static const char product[] =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%f%d, %%f%d, %%f%d, %%f%d}, %%l0, %%l0, 0, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\n";
  char text[2000], older[300], newer[300];
  snprintf(older, sizeof older, product, 0, 1, 2, 3);
  snprintf(newer, sizeof newer, product, 4, 5, 6, 7);
  snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s%s",
           "mov.u32 %r0, tile; shr.u32 %r1, %r0, 4; cvt.u64.u32 %l0, %r1; or.b64 %l0, %l0, 0x1000080000;\n" SET EX2,
           "wgmma.fence.sync.aligned;\n", older, FMA, newer, EX2, "wgmma.wait_group.sync.aligned 1;\n" EX2 FMA,
           "wgmma.wait_group.sync.aligned 0;\n", EX2 FMA);
  for (int warps = 4; warps <= 8; warps += 4) {
    EmulatorCounters c = count_kernel(text, (Shape){1, 32 * warps, 0});
    // The commits, the second wgmma and both waits are under the first one, too.
    EXPECT_OVERLAP("a wgmma", &c, COUNTER_INST_UNDER_WGMMA, 9u * (unsigned)warps, 2u * (unsigned)warps,
                   2u * (unsigned)warps);
    EXPECT_OVERLAP("no load", &c, COUNTER_INST_UNDER_LOAD, 0, 0, 0);
    cr_expect_eq(c.value[COUNTER_INST_MUFU], 4u * (unsigned)warps);
  }
}

#define INIT "@%p mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;\n"
#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define EXPECT(bytes) "@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " bytes ";\n"
#define WAIT "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0; @!%q bra WAIT;\n"
#define BULK_LOAD "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
#define TENSOR_LOAD "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
#define DONE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"

static const Shape one_block = {1, 32, 0}, two_blocks = {2, 32, 2};

Test(traffic, copies_of_a_thread) {
  EmulatorCounters c =
      count_kernel("mov.u32 %r0, tile; mad.lo.u32 %r0, %t, 8, %r0; mov.u32 %r1, 4; setp.lt.u32 %q, %t, 20;"
                   "@%q cp.async.ca.shared.global [%r0], [%g], 8, %r1; cp.async.wait_all;",
                   one_block);
  EXPECT_TRAFFIC("cp.async", &c, {COUNTER_CP_ASYNC_SHARED_WRITE_BYTES, 20 * 8});
}

// A load that completes as late as it may is pending while its warp, and every other one, computes something else.
Test(traffic, under_a_load) {
  static const char start[] = SET INIT EXPECT("4096") "@%p " BULK_LOAD " [tile], [%g], 4096, [bar];\n";
  char text[2000];
  snprintf(text, sizeof text, "%s%s%s", start, EX2 FMA EX2 WAIT, EX2);
  EmulatorCounters c = count_kernel(text, one_block);
  cr_expect_eq(c.value[COUNTER_MUFU_UNDER_LOAD], 2);
  cr_expect_eq(c.value[COUNTER_FP32_UNDER_LOAD], 1);
  snprintf(text, sizeof text, "%s%s%s", start, WAIT, EX2 FMA EX2);
  c = count_kernel(text, one_block);
  cr_expect_eq(c.value[COUNTER_MUFU_UNDER_LOAD], 0, "the load is over");
  c = count_kernel(SET "mov.u32 %r0, tile; mad.lo.u32 %r0, %t, 8, %r0;\n"
                       "cp.async.ca.shared.global [%r0], [%g], 8; cp.async.commit_group;\n" EX2
                       "cp.async.ca.shared.global [%r0+1024], [%g], 8; cp.async.commit_group;\n" EX2
                       "cp.async.wait_group 1;\n" EX2 "cp.async.wait_group 0;\n" EX2,
                   one_block);
  cr_expect_eq(c.value[COUNTER_MUFU_UNDER_LOAD], 3, "cp.async");
}

// A warp holds what it has waited for until it arrives at an mbarrier, this one or another. Two loads are pending for
// the first exponential, and none for the others.
Test(traffic, until_an_arrival) {
  static const char arrive[] = "@%p mbarrier.arrive.shared::cta.b64 _, [bar];\n";
  static const char load[] = "@%p " BULK_LOAD " [tile], [%g], 4096, [bar];\n";
  char text[2000];
  snprintf(text, sizeof text, "%s%s%s%s%s%s", SET INIT EXPECT("8192"), load, load, EX2 WAIT, EX2 FMA EX2, arrive);
  EmulatorCounters c = count_kernel(text, one_block);
  cr_expect_eq(c.value[COUNTER_LOADS_UNDER_MUFU], 2);
  cr_expect_eq(c.value[COUNTER_MUFU_UNTIL_ARRIVAL], 2);
  cr_expect_eq(c.value[COUNTER_FP32_UNTIL_ARRIVAL], 1);
  snprintf(text, sizeof text, "%s%s%s%s%s%s", SET INIT EXPECT("4096"), load, EX2 WAIT, arrive, EX2, FMA);
  c = count_kernel(text, one_block);
  cr_expect_eq(c.value[COUNTER_MUFU_UNTIL_ARRIVAL], 0, "it has arrived");
  cr_expect_eq(c.value[COUNTER_FP32_UNTIL_ARRIVAL], 0);
}

// Of three additions to global memory, two stand before the arrival. One to shared memory does not count.
Test(traffic, reductions_until_an_arrival) {
  static const char load[] = "@%p " BULK_LOAD " [tile], [%g], 4096, [bar];\n", add[] = "red.global.add.u32 [%g], 1;\n";
  static const char arrive[] = "red.shared.add.u32 [tile], 1; @%p mbarrier.arrive.shared::cta.b64 _, [bar];\n";
  char text[2000];
  snprintf(text, sizeof text, "%s%s%s%s%s%s%s", SET INIT EXPECT("4096"), load, WAIT, add, add, arrive, add);
  EmulatorCounters c = count_kernel(text, one_block);
  cr_expect_eq(c.value[COUNTER_REDUCTIONS_UNTIL_ARRIVAL], 2);
  cr_expect_eq(c.value[COUNTER_GLOBAL_REDUCTION_REQUESTS], 3);
}

// However often a wait polls, it counts once: the load lands when nothing else can go on.
Test(traffic, waits_without_polls) {
  static const char start[] = INIT EXPECT("4096") "@%p " BULK_LOAD " [tile], [%g], 4096, [bar];\n";
  char text[2000];
  snprintf(text, sizeof text, "%s%s%s", start, WAIT, EX2);
  EmulatorCounters once = count_kernel(text, one_block);
  snprintf(text, sizeof text, "%s%s%s", start, EX2 EX2 EX2, WAIT);
  EmulatorCounters later = count_kernel(text, one_block);
  uint64_t expected = once.value[COUNTER_INST_SYNCHRONISATION_ONCE];
  cr_expect_lt(expected, once.value[COUNTER_INST_SYNCHRONISATION], "a poll fails");
  cr_expect_eq(later.value[COUNTER_INST_SYNCHRONISATION_ONCE], expected);
  uint64_t polls = once.value[COUNTER_INST_SYNCHRONISATION] - expected;
  cr_expect_eq(once.value[COUNTER_INST_UNDER_LOAD] - once.value[COUNTER_INST_UNDER_LOAD_ONCE], polls, "under the load");
}

// A wait for an arrival that another warp makes after a load has landed: its polls are under no load.
Test(traffic, polls_without_a_load) {
  static const char text[] =
      SET INIT "setp.lt.u32 %p, %t, 32; @%p bra ARRIVE;\n" WAIT "bra END;\n"
               "ARRIVE: " FMA FMA FMA "setp.eq.u32 %p, %t, 0; @%p mbarrier.arrive.shared::cta.b64 _, [bar];\nEND:\n";
  EmulatorCounters c = count_kernel(text, (Shape){1, 64, 0});
  cr_expect_gt(c.value[COUNTER_INST_SYNCHRONISATION], c.value[COUNTER_INST_SYNCHRONISATION_ONCE], "a poll fails");
  cr_expect_eq(c.value[COUNTER_INST_UNDER_LOAD], 0);
  cr_expect_eq(c.value[COUNTER_INST_UNDER_LOAD_ONCE], 0);
}

// Three loads that start one after another: 1 + 2 + 3 are in flight. With a wait after the first it is 1 + 1 + 2.
Test(traffic, loads_in_flight) {
  static const char load[] = "@%p " BULK_LOAD " [tile], [%g], 1024, [bar];\n";
  char text[2000];
  snprintf(text, sizeof text, "%s%s%s%s%s", SET INIT EXPECT("3072"), load, load, load, WAIT);
  EmulatorCounters c = count_kernel(text, one_block);
  cr_expect_eq(c.value[COUNTER_LOADS_IN_FLIGHT], 6);
  snprintf(text, sizeof text, "%s%s%s%s%s%s", SET INIT EXPECT("1024"), load, WAIT, EXPECT("2048"), load, load);
  c = count_kernel(text, one_block);
  cr_expect_eq(c.value[COUNTER_LOADS_IN_FLIGHT], 4);
}

// Warp 0 passes a turn to warp 1. What warp 1 does between its barrier and its own arrival is in its turn.
Test(traffic, in_a_turn) {
  static const char text[] =
      "mov.f32 %f151, 0f3f800000; mov.f32 %f153, %f151;\n" EX2 "setp.lt.u32 %p, %t, 32; @%p bra FIRST;\n"
      "bar.sync 1, 64;\n" EX2 FMA "bar.arrive 2, 64;\n" EX2 "bra END;\n"
      "FIRST: bar.arrive 1, 64;\n" EX2 "bar.sync 2, 64;\n" FMA "END: bar.sync 0;\n" EX2;
  EmulatorCounters c = count_kernel(text, (Shape){1, 64, 0});
  cr_expect_eq(c.value[COUNTER_MUFU_IN_TURN], 2, "warp 1's, and warp 0's last one, for it keeps its turn");
  cr_expect_eq(c.value[COUNTER_FP32_IN_TURN], 2);
  cr_expect_eq(c.value[COUNTER_INST_BARRIER], 6);
}

Test(traffic, bulk_copies) {
  EmulatorCounters c =
      count_kernel(INIT EXPECT("4096") "@%p " BULK_LOAD " [tile], [%g], 4096, [bar];\n" WAIT, one_block);
  EXPECT_TRAFFIC("load", &c, {COUNTER_BULK_SHARED_WRITE_BYTES, 4096}, {COUNTER_BULK_GLOBAL_READ_BYTES, 4096},
                 {COUNTER_BULK_LOAD_SECTORS, 128});
  c = count_kernel(
      INIT SYNC EXPECT("512") "mov.u32 %r2, %cluster_ctarank; setp.eq.and.u32 %p, %r2, 0, %p; mov.u16 %h0, 3;\n"
                              "@%p " BULK_LOAD ".multicast::cluster [tile], [%g], 512, [bar], %h0;\n" WAIT SYNC,
      two_blocks);
  EXPECT_TRAFFIC("multicast", &c, {COUNTER_BULK_SHARED_WRITE_BYTES, 1024}, {COUNTER_BULK_GLOBAL_READ_BYTES, 512},
                 {COUNTER_BULK_LOAD_SECTORS, 32});
  c = count_kernel("@%p cp.async.bulk.global.shared::cta.bulk_group [%g], [tile], 48; " DONE, one_block);
  EXPECT_TRAFFIC("store", &c, {COUNTER_BULK_SHARED_READ_BYTES, 48}, {COUNTER_BULK_GLOBAL_WRITE_BYTES, 48},
                 {COUNTER_BULK_STORE_SECTORS, 2});
  c = count_kernel(
      INIT SYNC EXPECT("64") "mapa.shared::cluster.u32 %r3, bar, 1; mapa.shared::cluster.u32 %r4, tile, 1;\n"
                             "mov.u32 %r2, %cluster_ctarank; setp.eq.and.u32 %p, %r2, 0, %p;\n"
                             "@%p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], "
                             "[tile], 64, [%r3];\n"
                             "setp.eq.u32 %p, %r2, 0; @%p bra END;\n" WAIT "END: " SYNC,
      two_blocks);
  EXPECT_TRAFFIC("from block to block", &c, {COUNTER_BULK_SHARED_WRITE_BYTES, 64}, {COUNTER_BULK_SHARED_READ_BYTES, 64},
                 {COUNTER_BULK_CLUSTER_SECTORS, 2});
}

// A tensor of 20 rows of 128 bytes, in boxes of 16 rows: of one that begins at row 10, ten rows are there.
Test(traffic, tensor_copies) {
  EmulatorCounters c = count_kernel(INIT EXPECT("2048") "mov.u32 %r0, 0; mov.u32 %r1, 10;\n@%p " TENSOR_LOAD
                                                        " [tile], [%m, {%r0, %r1}], [bar];\n" WAIT,
                                    one_block);
  EXPECT_TRAFFIC("load", &c, {COUNTER_BULK_SHARED_WRITE_BYTES, 2048}, {COUNTER_BULK_GLOBAL_READ_BYTES, 1280},
                 {COUNTER_BULK_LOAD_SECTORS, 64});
  c = count_kernel(
      INIT SYNC EXPECT("2048") "mov.u32 %r2, %cluster_ctarank; setp.eq.and.u32 %p, %r2, 0, %p; mov.u16 %h0, 3;\n"
                               "mov.u32 %r0, 0; mov.u32 %r1, 10;\n@%p " TENSOR_LOAD
                               ".multicast::cluster [tile], [%m, {%r0, %r1}], [bar], %h0;\n" WAIT SYNC,
      two_blocks);
  EXPECT_TRAFFIC("multicast", &c, {COUNTER_BULK_SHARED_WRITE_BYTES, 4096}, {COUNTER_BULK_GLOBAL_READ_BYTES, 1280},
                 {COUNTER_BULK_LOAD_SECTORS, 128});
  c = count_kernel(
      "mov.u32 %r0, 0; mov.u32 %r1, 10;\n@%p cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
      "[%m, {%r0, %r1}], [tile];\n" DONE,
      one_block);
  EXPECT_TRAFFIC("reduction", &c, {COUNTER_BULK_SHARED_READ_BYTES, 1280}, {COUNTER_BULK_GLOBAL_WRITE_BYTES, 1280},
                 {COUNTER_BULK_REDUCTION_SECTORS, 40});
}

// Two turns: the lanes of each half want 8 bytes at every second place. Of the second turn's loads too each half is a
// part.
Test(traffic, atomic_loops) {
  EmulatorCounters c =
      count_kernel("mov.u32 %r0, tile; mad.lo.u32 %r0, %t, 16, %r0; red.shared.add.u64 [%r0], 1;", one_block);
  EXPECT_SHARED("64 bits", &c, {COUNTER_SHARED_LOADS, 2}, {COUNTER_SHARED_LOAD_WAVEFRONTS, 4 + 2},
                {COUNTER_SHARED_LOAD_BANK_CONFLICTS, 2}, {COUNTER_SHARED_ATOMICS, 2},
                {COUNTER_SHARED_ATOMIC_WAVEFRONTS, 2 * 2 * 2});
  c = count_kernel("mov.u32 %r0, tile; mad.lo.u32 %r0, %t, 16, %r0; atom.shared.exch.b64 %l0, [%r0], 1;", one_block);
  EXPECT_SHARED("an exchange", &c, {COUNTER_SHARED_ATOMICS, 1}, {COUNTER_SHARED_ATOMIC_WAVEFRONTS, 2 * 2},
                {COUNTER_SHARED_ATOMIC_BANK_CONFLICTS, 2});
  c = count_kernel(
      "mad.lo.u32 %r0, %t, 4, 0; cvt.u64.u32 %l0, %r0; add.u64 %l0, %l0, %g; red.add.f32 [%l0], 0f00000000;",
      one_block);
  cr_expect(c.value[COUNTER_GLOBAL_REDUCTION_SECTORS] == 4 && c.value[COUNTER_SHARED_ATOMICS] == 0);
}

// Each warp's even lanes load from the first block, the odd ones from the second: the own one is not far.
Test(traffic, lanes_of_two_blocks) {
  EmulatorCounters c = count_kernel(
      "and.b32 %r1, %t, 1; mov.u32 %r0, tile; mad.lo.u32 %r0, %t, 4, %r0; mapa.shared::cluster.u32 %r0, %r0, "
      "%r1;\n" SYNC "ld.shared::cluster.u32 %r2, [%r0]; atom.shared::cluster.add.u32 %r3, [%r0], 1;\n" SYNC,
      two_blocks);
  EXPECT_SHARED("the own block", &c, {COUNTER_SHARED_LOADS, 2}, {COUNTER_SHARED_LOAD_WAVEFRONTS, 2},
                {COUNTER_SHARED_ATOMICS, 2}, {COUNTER_SHARED_ATOMIC_WAVEFRONTS, 2 + 2});
  EXPECT_TRAFFIC("the other", &c, {COUNTER_CLUSTER_LOAD_REQUESTS, 2}, {COUNTER_CLUSTER_LOAD_SECTORS, 8},
                 {COUNTER_CLUSTER_ATOMIC_REQUESTS, 2}, {COUNTER_CLUSTER_ATOMIC_SECTORS, 8});
}

// 44 lanes of two warps store 16 bytes each, 20 lanes of one load 2 bytes: the second through a generic address.
Test(traffic, local_memory) {
  EmulatorCounters c = count_kernel("setp.lt.u32 %q, %t, 44; @%q st.local.v4.f32 [own], {%f0, %f1, %f2, %f3};\n"
                                    "mov.u64 %l1, own; cvta.local.u64 %l1, %l1; setp.lt.u32 %q, %t, 20;\n"
                                    "@%q ld.u16 %h0, [%l1];",
                                    (Shape){1, 64, 0});
  EXPECT_TRAFFIC("local", &c, {COUNTER_LOCAL_STORE_REQUESTS, 2 * 4}, {COUNTER_LOCAL_STORE_SECTORS, 4 * (4 + 2)},
                 {COUNTER_LOCAL_STORE_BYTES, 44 * 16}, {COUNTER_LOCAL_LOAD_REQUESTS, 1},
                 {COUNTER_LOCAL_LOAD_SECTORS, 3}, {COUNTER_LOCAL_LOAD_BYTES, 40});
}

// As many MUFU as ptxas makes of each, and whether it scales subnormals around them.
Test(traffic, special_functions) {
  static const struct {
    const char *text;
    uint64_t count, scaled;
  } cases[] = {
      {"ex2.approx.ftz.f32 %f0, %f1;", 1, 0},
      {"ex2.approx.f32 %f0, %f1;", 1, 1},
      {"lg2.approx.f32 %f0, %f1;", 1, 1},
      {"lg2.approx.ftz.f32 %f0, %f1;", 1, 0},
      {"rcp.approx.ftz.f32 %f0, %f1;", 1, 0},
      {"rcp.approx.f32 %f0, %f1;", 1, 1},
      {"rcp.rn.f64 %d0, %d1;", 1, 0},
      {"rsqrt.approx.f32 %f0, %f1;", 1, 1},
      {"sqrt.rn.f32 %f0, %f1;", 1, 1},
      {"sin.approx.f32 %f0, %f1;", 1, 0},
      {"cos.approx.f32 %f0, %f1;", 1, 0},
      {"tanh.approx.f32 %f0, %f1;", 1, 0},
      {"tanh.approx.f16 %h0, %h1;", 1, 0},
      {"tanh.approx.f16x2 %r0, %r1;", 2, 0},
      {"ex2.approx.ftz.bf16x2 %r0, %r1;", 2, 0},
      {"div.full.f32 %f0, %f1, %f2;", 1, 0},
      {"div.rn.f64 %d0, %d1, %d2;", 1, 0},
      {"div.u32 %r0, %r1, %r2;", 1, 0},
      {"rem.s64 %l0, %l1, %l2;", 1, 0},
      {"fma.rn.f32 %f0, %f1, %f2, %f3;", 0, 0},
      {"add.f16x2 %r0, %r1, %r2;", 0, 0},
      {"cvt.rni.f32.f32 %f0, %f1;", 0, 0},
      {"mul.hi.u32 %r0, %r1, %r2;", 0, 0},
      {"ex2.approx.ftz.f32 %f0, %f1; @%p ex2.approx.ftz.f32 %f0, %f1;", 2, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    EmulatorCounters c = count_kernel(cases[i].text, one_block);
    EXPECT_TRAFFIC(cases[i].text, &c, {COUNTER_INST_MUFU, cases[i].count});
    cr_expect_eq(c.value[COUNTER_INST_MUFU_SCALED], cases[i].scaled, "%s", cases[i].text);
  }
}

// The report says so, where there is some.
Test(traffic, report_of_traffic) {
  Output *copies = run_line("stage-03", "--device=emulator --seqlen=40"),
         *none = run_line("stage-00", "--device=emulator --seqlen=40");
  cr_expect(strstr(copies->out, "\n          besides: cp.async wrote ") &&
            strstr(copies->out, "special functions (MUFU)"));
  cr_expect(strstr(none->out, "\n          besides: ") && !strstr(none->out, "cp.async"), "%s", none->out);
  free(copies);
  free(none);
}

// ---- --counters ----

static uint64_t leading_count(const char *line) {
  uint64_t count = 0;
  for (line += strspn(line, " "); isdigit(*line) || *line == ','; line++)
    if (*line != ',') count = 10 * count + (uint64_t)(*line - '0');
  return count;
}

// The expensive lines stand first, most instructions first, and their numbers end where the head says.
Test(traffic, listing) {
  Output *output = run_line("stage-00", "--device=emulator --counters --seqlen=40");
  cr_assert_eq(output->code, 0, "%s", output->err);
  char *list = strstr(output->out, "The lines that execute most\n"),
       *source = strstr(output->out, "\nstages/00-scalar/kernel.cu\n");
  cr_assert(list && source && list < source, "%s", output->out);
  char *head = strstr(list, " line\n"), *row = head + 6;
  cr_assert(head && head < source);
  while (head[-1] != '\n') head--;
  size_t width = (size_t)(row - head) - 1;
  uint64_t before = UINT64_MAX;
  int rows = 0;
  for (; *row != '\n'; row = strchr(row, '\n') + 1, rows++) {
    cr_expect(isdigit(row[width - 1]) && row[width] == ' ', "not below the head: %.*s", (int)width + 1, row);
    cr_expect(leading_count(row) <= before && leading_count(row) > 0, "not in order: %.60s", row);
    before = leading_count(row);
  }
  cr_expect(rows == 8, "%d rows", rows);
  free(output);
}

// A wait for the cluster ends at once where all have arrived before. Each block waits for a load between its arrival
// and its wait, so both blocks' waits do. If arrival and wait are neighbours, only the block that comes last does.
Test(traffic, waits_for_the_cluster) {
  static const char load[] = "@%p " BULK_LOAD " [tile], [%g], 1024, [bar];\n";
  char text[2000];
  snprintf(text, sizeof text, "%s%s%s%s", INIT "barrier.cluster.arrive.aligned;\n" EXPECT("1024"), load, WAIT,
           "barrier.cluster.wait.aligned;\n");
  EmulatorCounters c = count_kernel(text, two_blocks);
  cr_expect_eq(c.value[COUNTER_WAITS_AT_ONCE], 2);
  snprintf(text, sizeof text, "%s%s%s", INIT SYNC EXPECT("1024"), load, WAIT);
  c = count_kernel(text, two_blocks);
  cr_expect_eq(c.value[COUNTER_WAITS_AT_ONCE], 1);
}
