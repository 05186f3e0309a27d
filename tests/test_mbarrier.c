// mbarriers on the emulator: what they count, what they hand on, and what is reported.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run_kernel.h"
#include "support/run_ptx.h"

TestSuite(mbarrier, .timeout = 120);

#define END "ret;\n}\n"
#define ARRIVE(bar) "mbarrier.arrive.shared::cta.b64 _, [" bar "];\n"
// A thread stores a number to its word of the tile, or word %t ^ 1 of it to out.
#define PUT "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; add.u32 %v, %t, 7; st.shared.u32 [%a], %v;\n"
#define GET_NEIGHBOUR                                                                                               \
  "mov.u32 %a, tile; xor.b32 %n, %t, 32; shl.b32 %v, %n, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a];\n"           \
  "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n"

// ---- what they count ----

// One thread's walk through the forms; every result is stored to out.
static const char counts[] = PTX_HEADER
    ".visible .entry test(.param .u64 out) {\n"
    ".reg .b64 %o, %s, %s1, %g; .reg .b32 %v, %a; .reg .pred %q;\n"
    ".shared .align 8 .b64 bar;\n"
    "ld.param.u64 %o, [out]; mov.u32 %a, bar; mov.u64 %g, bar; cvta.shared.u64 %g, %g;\n"
    "mbarrier.init.b64 [%g], 3;\n"
    "mbarrier.arrive.noComplete.shared.b64 %s, [bar], 2;\n"                       // 3 pending before
    "mbarrier.pending_count.b64 %v, %s; st.global.u32 [%o], %v;\n"
    "mbarrier.test_wait.shared.b64 %q, [bar], %s; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+4], %v;\n"
    "mbarrier.arrive.shared::cta.b64 %s1, [bar];\n"                               // completes phase 0
    "mbarrier.test_wait.shared::cta.b64 %q, [bar], %s; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+8], %v;\n"
    "mbarrier.try_wait.acquire.cta.shared::cta.b64 %q, [%a], %s1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+12], %v;\n"
    "mbarrier.test_wait.parity.shared::cta.b64 %q, [%a], 0; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+16], %v;\n"
    "mbarrier.test_wait.parity.b64 %q, [%g], 1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+20], %v;\n"
    "mbarrier.arrive_drop.release.cta.shared::cta.b64 %s, [bar];\n"                // phase 1: 2 pending, the next expects 2
    "mbarrier.arrive_drop.noComplete.shared::cta.b64 %s1, [bar], 1;\n"             // 1 pending, the next expects 1
    "mbarrier.pending_count.b64 %v, %s1; st.global.u32 [%o+24], %v;\n"
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 100;\n"
    "mbarrier.arrive.b64 %s, [%g], 1;\n"                                           // none pending, but 100 bytes
    "mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+28], %v;\n"
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 60;\n"
    "mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+32], %v;\n"
    "mbarrier.complete_tx.shared::cluster.b64 [bar], 40;\n"
    "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %q, [bar], 1, 1000; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+36], %v;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 %s, [bar], 16;\n"                   // phase 2 expects one arrival
    "mbarrier.pending_count.b64 %v, %s; st.global.u32 [%o+40], %v;\n"
    "mbarrier.complete_tx.shared::cta.b64 [bar], 16;\n"
    "mbarrier.test_wait.shared::cta.b64 %q, [bar], %s; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+44], %v;\n"
    "mbarrier.inval.shared::cta.b64 [bar];\n"
    "mbarrier.init.shared::cta.b64 [bar], 1048575;\n"
    "mbarrier.arrive.shared::cta.b64 _, [bar], 1048575;\n"
    "mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 0; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+48], %v;\n" END;

Test(mbarrier, counts) {
  static const uint32_t expected[] = {3, 0, 1, 1, 1, 0, 2, 0, 0, 1, 1, 1, 1};
  enum { COUNT = sizeof expected / sizeof expected[0] };
  uint32_t got[COUNT];
  Machine machine = machine_open(counts, REPAIRED, 0);
  uint64_t out = machine_upload(&machine, NULL, sizeof got);
  const void *arguments[] = {&out};
  cr_expect_eq(machine_launch(&machine, 1, 1, 0, arguments, 1), EMULATOR_OK);
  expect_clean(&machine);
  machine_download(&machine, got, out, sizeof got);
  for (int i = 0; i < COUNT; i++) cr_expect_eq(got[i], expected[i], "result %d is %u, not %u", i, got[i], expected[i]);
  machine_close(&machine);
}

// ---- rings ----

// Warp 1's first lane fills `stages` tiles of 512 bytes in turn, the 32 lanes of warp 0 add each tile's 128 words to their sums.
static char *ring_text(int stages, int tiles) {
  static const char format[] = PTX_HEADER
      ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out) {\n"
      ".reg .b64 %%m, %%o, %%s; .reg .b32 %%t, %%a, %%v, %%n, %%stage, %%parity, %%full, %%empty, %%tile, %%y, %%sum; .reg .pred %%p, %%q, %%w;\n"
      ".shared .align 128 .b8 tiles[%d]; .shared .align 8 .b64 full[%d]; .shared .align 8 .b64 empty[%d];\n"
      "mov.b64 %%m, map; cvta.param.u64 %%m, %%m; ld.param.u64 %%o, [out];\n"
      "mov.u32 %%t, %%tid.x; setp.eq.u32 %%p, %%t, 0; mov.u32 %%n, 0;\n"
      "@!%%p bra READY;\n"
      "MAKE: mov.u32 %%full, full; mov.u32 %%empty, empty; shl.b32 %%v, %%n, 3; add.u32 %%full, %%full, %%v; add.u32 %%empty, %%empty, %%v;\n"
      "mbarrier.init.shared::cta.b64 [%%full], 1; mbarrier.init.shared::cta.b64 [%%empty], 32;\n"
      "add.u32 %%n, %%n, 1; setp.lt.u32 %%q, %%n, %d; @%%q bra MAKE;\n"
      "fence.mbarrier_init.release.cluster;\n"
      "READY: bar.sync 0;\n"
      "mov.u32 %%n, 0; mov.u32 %%stage, 0; mov.u32 %%parity, 0; mov.u32 %%sum, 0; mov.u32 %%y, 0;\n"
      "setp.eq.u32 %%p, %%t, 32; @%%p bra PRODUCER; setp.gt.u32 %%p, %%t, 32; @%%p bra DONE;\n"
      "CONSUMER: mov.u32 %%full, full; mov.u32 %%empty, empty; shl.b32 %%v, %%stage, 3; add.u32 %%full, %%full, %%v; add.u32 %%empty, %%empty, %%v;\n"
      "FULL: mbarrier.try_wait.parity.shared::cta.b64 %%q, [%%full], %%parity; @!%%q bra FULL;\n"
      "mov.u32 %%a, tiles; shl.b32 %%v, %%stage, 9; add.u32 %%a, %%a, %%v; shl.b32 %%v, %%t, 2; add.u32 %%a, %%a, %%v;\n"
      "ld.shared.u32 %%v, [%%a]; add.u32 %%sum, %%sum, %%v; ld.shared.u32 %%v, [%%a+128]; mad.lo.u32 %%sum, %%v, 3, %%sum;\n"
      "ld.shared.u32 %%v, [%%a+256]; mad.lo.u32 %%sum, %%v, 5, %%sum; ld.shared.u32 %%v, [%%a+384]; mad.lo.u32 %%sum, %%v, 7, %%sum;\n"
      "mbarrier.arrive.shared::cta.b64 _, [%%empty];\n"
      "add.u32 %%n, %%n, 1; add.u32 %%stage, %%stage, 1; setp.eq.u32 %%q, %%stage, %d; @%%q xor.b32 %%parity, %%parity, 1; @%%q mov.u32 %%stage, 0;\n"
      "setp.lt.u32 %%q, %%n, %d; @%%q bra CONSUMER;\n"
      "mad.wide.u32 %%s, %%t, 4, %%o; st.global.u32 [%%s], %%sum; bra DONE;\n"
      "PRODUCER: mov.u32 %%full, full; mov.u32 %%empty, empty; shl.b32 %%v, %%stage, 3; add.u32 %%full, %%full, %%v; add.u32 %%empty, %%empty, %%v;\n"
      "xor.b32 %%v, %%parity, 1;\n"
      "EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %%q, [%%empty], %%v; @!%%q bra EMPTY;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%full], 512;\n"
      "mov.u32 %%tile, tiles; shl.b32 %%v, %%stage, 9; add.u32 %%tile, %%tile, %%v;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%tile], [%%m, {0, %%y}], [%%full];\n"
      "add.u32 %%y, %%y, 4; and.b32 %%y, %%y, 31;\n"
      "add.u32 %%n, %%n, 1; add.u32 %%stage, %%stage, 1; setp.eq.u32 %%q, %%stage, %d; @%%q xor.b32 %%parity, %%parity, 1; @%%q mov.u32 %%stage, 0;\n"
      "setp.lt.u32 %%q, %%n, %d; @%%q bra PRODUCER;\n"
      "DONE: ret;\n}\n";
  char *text = malloc(sizeof format + 200);
  cr_assert(text);
  snprintf(text, sizeof format + 200, format, stages * 512, stages, stages, stages, stages, tiles, stages, tiles);
  return text;
}

Test(mbarrier, rings_of_tensor_copies) {
  enum { TILES = 23 };
  uint32_t input[1024], expected[32] = {0}, got[32];
  for (int i = 0; i < 1024; i++) input[i] = (uint32_t)i * 2654435761u;
  for (int tile = 0; tile < TILES; tile++)
    for (int lane = 0; lane < 32; lane++)
      for (int row = 0; row < 4; row++) expected[lane] += (uint32_t)(2 * row + 1) * input[(tile * 4 + row) % 32 * 32 + lane];
  for (int stages = 1; stages <= 4; stages *= 2) {
    char *text = ring_text(stages, TILES);
    for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
      Machine machine = machine_open(text, REPAIRED, schedule);
      uint64_t in = machine_upload(&machine, input, sizeof input), out = machine_upload(&machine, NULL, sizeof got);
      Map map = make_map(&(EmulatorTensorSpec){.type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {32, 32}, .stride = {0, 128}, .box = {32, 4}});
      const void *arguments[] = {&map, &in, &out};
      cr_expect_eq(machine_launch(&machine, 1, 64, 0, arguments, 3), EMULATOR_OK);
      expect_clean(&machine);
      machine_download(&machine, got, out, sizeof got);
      cr_expect_arr_eq(got, expected, sizeof got, "%d stages, schedule %d", stages, (int)schedule);
      machine_close(&machine);
    }
    free(text);
  }
}

// ---- what they hand on ----

Test(mbarrier, arrivals_order_memory) {
  static const Pair pairs[] = {
      {.name = "arrive and wait", .text = PAIR_PROLOGUE INIT("bar", "64") PUT "F:mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n"
       "R:" ARRIVE("bar") WAIT("W", "bar", "0") "mov.u32 %a, tile; xor.b32 %n, %t, 32; shl.b32 %v, %n, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a]; // here\n"
       "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n" END,
       HAZARD_SHARED_RACE, "nothing orders"},
      {.name = "relaxed with fences", .text = PAIR_PROLOGUE INIT("bar", "64") PUT "R:fence.acq_rel.cta;\n"
       "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n"
       "W: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %q, [bar], 0;\n@!%q bra W;\nR:fence.acq_rel.cta;\n"
       "mov.u32 %a, tile; xor.b32 %n, %t, 32; shl.b32 %v, %n, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a]; // here\n"
       "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n" END,
       HAZARD_SHARED_RACE, "nothing orders"},
      {.name = "another phase", .text = PAIR_PROLOGUE INIT("bar", "64") PUT ARRIVE("bar") WAIT("W", "bar", "0") ARRIVE("bar") WAIT("X", "bar", "1")
       PUT ARRIVE("bar")
       "F:mov.u32 %n, 1;\nR:mov.u32 %n, 0;\n" WAIT("W1", "bar", "%n")
       "mov.u32 %a, tile; xor.b32 %n, %t, 32; shl.b32 %v, %n, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a]; // here\n"
       "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n" END,
       HAZARD_SHARED_RACE, "nothing orders"},
      {.name = "cp.async arrives", .text = PAIR_PROLOGUE INIT("bar", "64")
       "mov.u32 %a, tile; mad.lo.u32 %a, %t, 16, %a; mad.wide.u32 %s, %t, 16, %i;\n"
       "cp.async.cg.shared.global [%a], [%s], 16;\n"
       "R:cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];\nF:" ARRIVE("bar") WAIT("W", "bar", "0")
       "mov.u32 %a, tile; xor.b32 %n, %t, 32; shl.b32 %v, %n, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a]; // here\n"
       "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n" END,
       HAZARD_READ_BEFORE_WAIT, "has not waited"},
      {.name = "cp.async arrives besides", .text = PAIR_PROLOGUE INIT("bar", "64")
       "mov.u32 %a, tile; mad.lo.u32 %a, %t, 16, %a; mad.wide.u32 %s, %t, 16, %i;\n"
       "F:cp.async.mbarrier.arrive.shared.b64 [bar];\n"
       "cp.async.ca.shared.global [%a], [%s], 16;\n"
       "R:cp.async.mbarrier.arrive.shared.b64 [bar];\n" ARRIVE("bar") WAIT("W", "bar", "0")
       "mov.u32 %a, tile; xor.b32 %n, %t, 32; shl.b32 %v, %n, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a]; // here\n"
       "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n" END,
       HAZARD_READ_BEFORE_WAIT, "has not waited"},
  };
  RUN_PAIRS(pairs);
}

// ---- misuse ----

Test(mbarrier, misuse) {
  static const Pair pairs[] = {
      {.name = "not initialised", .text = PAIR_PROLOGUE "R:@%p mbarrier.init.shared::cta.b64 [bar], 64;\nbar.sync 0;\n"
       "mbarrier.arrive.shared::cta.b64 _, [bar]; // here\n" END, HAZARD_MBARRIER_MISUSE, "no mbarrier.init"},
      {.name = "invalidated", .text = PAIR_PROLOGUE INIT("bar", "64") "F:@%p mbarrier.inval.shared::cta.b64 [bar];\nF:bar.sync 0;\n"
       "mbarrier.arrive.shared::cta.b64 _, [bar]; // here\n" END, HAZARD_MBARRIER_MISUSE, "invalidated"},
      {.name = "misaligned", .text = PAIR_PROLOGUE "F:@%p mbarrier.init.shared::cta.b64 [bar+4], 64; // here\nR:@%p mbarrier.init.shared::cta.b64 [bar+8], 64;\n" END,
       HAZARD_MISALIGNED, "multiple of 8"},
      {.name = "initialised twice", .text = PAIR_PROLOGUE INIT("bar", "64") "R:@%p mbarrier.inval.shared::cta.b64 [bar];\n"
       "@%p mbarrier.init.shared::cta.b64 [bar], 32; // here\n" END, HAZARD_MBARRIER_MISUSE, "mbarrier.inval before"},
      {.name = "count 0", .text = PAIR_PROLOGUE "F:@%p mbarrier.init.shared::cta.b64 [bar], 0; // here\nR:@%p mbarrier.init.shared::cta.b64 [bar], 1;\n" END,
       HAZARD_MBARRIER_MISUSE, "not 0"},
      {.name = "count too large", .text = PAIR_PROLOGUE "F:@%p mbarrier.init.shared::cta.b64 [bar], 1048576; // here\nR:@%p mbarrier.init.shared::cta.b64 [bar], 1048575;\n" END,
       HAZARD_MBARRIER_MISUSE, "1 to 1048575"},
      // Bytes are still to come, so that the phase stays open when all have arrived.
      {.name = "too many arrivals", .text = PAIR_PROLOGUE "F:@%p mbarrier.init.shared::cta.b64 [bar], 63;\nR:@%p mbarrier.init.shared::cta.b64 [bar], 64;\n"
       "@%p mbarrier.expect_tx.shared::cta.b64 [bar], 16;\nbar.sync 0;\n"
       "mbarrier.arrive.shared::cta.b64 _, [bar]; // here\n" END, HAZARD_MBARRIER_MISUSE, "more arrivals"},
      {.name = "noComplete completes", .text = PAIR_PROLOGUE INIT("bar", "64") "F:@%p mbarrier.arrive.noComplete.shared::cta.b64 %s, [bar], 64; // here\n"
       "R:@%p mbarrier.arrive.noComplete.shared::cta.b64 %s, [bar], 63;\n" END, HAZARD_MBARRIER_MISUSE, ".noComplete"},
      {.name = "parity 2", .text = PAIR_PROLOGUE INIT("bar", "64") "F:mov.u32 %n, 2;\nR:mov.u32 %n, 0;\n"
       "mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], %n; // here\n" END, HAZARD_MBARRIER_MISUSE, "0 or 1"},
      {.name = "state of long ago", .text = PAIR_PROLOGUE INIT("bar", "1") "@!%p bra DONE;\nmbarrier.arrive.shared::cta.b64 %s, [bar];\n"
       "mbarrier.arrive.shared::cta.b64 %s1, [bar];\n"
       "F:mbarrier.test_wait.shared::cta.b64 %q, [bar], %s; // here\nR:mbarrier.test_wait.shared::cta.b64 %q, [bar], %s1;\nDONE:\n" END,
       HAZARD_MBARRIER_MISUSE, "long past"},
      {.name = "no barrier after init", .text = PAIR_PROLOGUE "@%p mbarrier.init.shared::cta.b64 [bar], 64;\nR:bar.sync 0;\n"
       "F:@%p bra DONE;\nF:nanosleep.u32 100;\nF:nanosleep.u32 100;\n"
       "W: mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 1; // here\nDONE:\n" END,
       HAZARD_SHARED_RACE, "nothing orders", .block = 32},
      {.name = "overwritten", .text = PAIR_PROLOGUE INIT("bar", "64") "F:mov.b64 %s, 5;\nF:@%p st.shared.b64 [bar], %s;\nbar.sync 0;\n"
       "mbarrier.arrive.shared::cta.b64 _, [bar]; // here\n" END, HAZARD_MBARRIER_MISUSE, "something else"},
      {.name = "stored to without order", .text = PAIR_PROLOGUE INIT("bar", "64") "mbarrier.arrive.shared::cta.b64 _, [bar];\nR:bar.sync 0;\nmov.b64 %s, 5;\n"
       "setp.eq.u32 %q, %t, 63;\n@%q st.shared.b64 [bar], %s; // here\n" END, HAZARD_SHARED_RACE, "another thread reads"},
  };
  RUN_PAIRS(pairs);
}

// ---- bytes ----

Test(mbarrier, expected_bytes) {
  static const Pair pairs[] = {
      {.name = "too few", .text = PAIR_PROLOGUE INIT("bar", "1") "F:@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256; // here\n"
       "R:" EXPECT("bar", "512") LOAD("tile", "0", "0", "bar") WAIT("W", "bar", "0") OUTPUT("tile") END, HAZARD_EXPECT_TX, "too few"},
      {.name = "one of two copies", .text = PAIR_PROLOGUE INIT("bar", "1") "F:@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512; // here\n"
       "R:" EXPECT("bar", "1024") LOAD("tile", "0", "0", "bar") LOAD("tile+512", "0", "4", "bar") WAIT("W", "bar", "0") OUTPUT("tile") END,
       HAZARD_EXPECT_TX, "too few"},
      {.name = "none", .text = PAIR_PROLOGUE INIT("bar", "1") "R:@%p mbarrier.expect_tx.shared::cta.b64 [bar], 512;\n"
       "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%m, {0, 0}], [bar]; // here\n"
       "@%p mbarrier.arrive.shared::cta.b64 _, [bar];\n" WAIT("W", "bar", "0") OUTPUT("tile") END, HAZARD_EXPECT_TX, "no expect_tx"},
      {.name = "too many", .text = PAIR_PROLOGUE INIT("bar", "1") "F:@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024; // here\n"
       "R:" EXPECT("bar", "512") LOAD("tile", "0", "0", "bar") WAIT("W", "bar", "0") OUTPUT("tile") END, HAZARD_EXPECT_TX, "512 bytes more"},
      // Of a box outside the tensor the whole counts.
      {.name = "a tail counted", .text = PAIR_PROLOGUE INIT("bar", "1") "F:@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256; // here\n"
       "R:" EXPECT("bar", "512") LOAD("tile", "0", "30", "bar") WAIT("W", "bar", "0") OUTPUT("tile") END, HAZARD_EXPECT_TX, "too few"},
      {.name = "arrival forgotten", .text = PAIR_PROLOGUE INIT("bar", "1") "R:" EXPECT("bar", "512")
       "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%m, {0, 0}], [bar]; // here\n"
       WAIT("W", "bar", "0") OUTPUT("tile") END, HAZARD_EXPECT_TX, "no expect_tx told"},
      {.name = "beyond the range", .text = PAIR_PROLOGUE INIT("bar", "1") "F:@%p mbarrier.expect_tx.shared::cta.b64 [bar], 1048576; // here\n"
       "R:@%p mbarrier.expect_tx.shared::cta.b64 [bar], 1048575;\n" END, HAZARD_EXPECT_TX, "1048575 bytes"},
  };
  RUN_PAIRS(pairs);
}

// ---- parities, order and deadlocks ----

// Two tiles through one buffer: the consumer's second wait needs the other parity.
#define TWO_TILES(second_wait)                                                                              \
  PAIR_PROLOGUE INIT("bar", "1") INIT("bar+8", "32") "@%w1 bra CONSUMER;\n"                                   \
  EXPECT("bar", "512") LOAD("tile", "0", "0", "bar") WAIT("E", "bar+8", "0")                                  \
  EXPECT("bar", "512") LOAD("tile", "0", "4", "bar") "bra DONE;\n"                                            \
  "CONSUMER: " WAIT("W", "bar", "0") "ld.shared.u32 %c, [tile+4];\n" ARRIVE("bar+8") second_wait              \
  "ld.shared.u32 %v, [tile+8]; // here\n"                                                                     \
  "mad.wide.u32 %s, %t, 4, %o; add.u32 %v, %v, %c; st.global.u32 [%s], %v;\nDONE: " END

Test(mbarrier, parities) {
  static const Pair pairs[] = {
      {.name = "wrong parity at first", .text = PAIR_PROLOGUE INIT("bar", "1") EXPECT("bar", "512") LOAD("tile", "0", "0", "bar")
       "F:W: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 1;\nR:W: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;\n@!%q bra W;\n"
       "ld.shared.u32 %v, [tile+4]; // here\nmad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\nbar.sync 0;\n" WAIT("X", "bar", "0") END,
       HAZARD_READ_BEFORE_WAIT, "has not waited"},
      {.name = "a phase waited for twice", TWO_TILES("F:W2: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;\n"
                                             "R:W2: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 1;\n@!%q bra W2;\n"),
       HAZARD_READ_BEFORE_WAIT, "has not waited", .or_kind = HAZARD_SHARED_RACE},
      // The second copy is issued when the first has come, but not when it has been read.
      {.name = "refilled before it was read", .text = PAIR_PROLOGUE INIT("bar", "1") INIT("bar+8", "32") INIT("bar+16", "1") "@%w1 bra CONSUMER;\n"
       EXPECT("bar", "512") LOAD("tile", "0", "0", "bar") WAIT("F0", "bar", "0")
       "R:E: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar+8], 0;\nR:@!%q bra E;\n" EXPECT("bar+16", "512")
       "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%m, {0, 4}], [bar+16]; // here\n"
       WAIT("F1", "bar+16", "0") "bra DONE;\nCONSUMER: " WAIT("W", "bar", "0") "ld.shared.u32 %v, [tile+4];\n" ARRIVE("bar+8")
       "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\nDONE: " END,
       HAZARD_SHARED_RACE, "may still be reading", .or_kind = HAZARD_READ_BEFORE_WAIT},
  };
  RUN_PAIRS(pairs);
}

Test(mbarrier, deadlocks) {
  static const Pair pairs[] = {
      {.name = "the producer exits", .text = PAIR_PROLOGUE INIT("bar", "32") "F:@%w0 bra DONE;\n@%w1 bra CONSUMER;\n" ARRIVE("bar") "bra DONE;\n"
       "CONSUMER:\nW: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0; // here\n@!%q bra W;\nDONE: " END,
       HAZARD_DEADLOCK, "32 arrivals are missing; warp 0 has exited"},
      {.name = "an arrival too few", .text = PAIR_PROLOGUE "F:@%p mbarrier.init.shared::cta.b64 [bar], 65;\nR:@%p mbarrier.init.shared::cta.b64 [bar], 64;\nbar.sync 0;\n"
       ARRIVE("bar") "W: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0; // here\n@!%q bra W;\n" END,
       HAZARD_DEADLOCK, "phase 0 (parity 0)"},
      {.name = "the parity of the next phase", .text = PAIR_PROLOGUE INIT("bar", "64") ARRIVE("bar")
       "F:mov.u32 %n, 1;\nR:mov.u32 %n, 0;\n" WAIT("W0", "bar", "0")
       "W: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], %n; // here\n@!%q bra W;\n" END,
       HAZARD_DEADLOCK, "phase 1 (parity 1)"},
  };
  RUN_PAIRS(pairs);
}

// Warp 1 polls a flag in memory that warp 0 sets when its copy has come: the copy must come although warp 1 never rests.
Test(mbarrier, polling_beside_a_copy) {
  static const char text[] = PAIR_PROLOGUE "@%p st.shared.u32 [tile+1024], 0;\n" INIT("bar", "1") "@%w1 bra POLL;\n"
      EXPECT("bar", "512") LOAD("tile", "0", "0", "bar") WAIT("W", "bar", "0") "@%p st.release.cta.shared.u32 [tile+1024], 1;\nbra OVER;\n"
      "POLL: ld.acquire.cta.shared.u32 %v, [tile+1024]; add.u32 %c, %c, 1; setp.eq.u32 %q, %v, 0;\n@%q bra POLL;\nOVER: " OUTPUT("tile") END;
  uint32_t input[1024], got[64];
  for (int i = 0; i < 1024; i++) input[i] = (uint32_t)i + 5;
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, REPAIRED, schedule);
    uint64_t in = machine_upload(&machine, input, sizeof input), out = machine_upload(&machine, NULL, sizeof got);
    Map map = make_map(&(EmulatorTensorSpec){.type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {32, 32}, .stride = {0, 128}, .box = {32, 4}});
    const void *arguments[] = {&map, &in, &out};
    cr_expect_eq(machine_launch(&machine, 1, 64, 0, arguments, 3), EMULATOR_OK);
    expect_clean(&machine);
    machine_download(&machine, got, out, sizeof got);
    cr_expect_arr_eq(got, input, sizeof got);
    machine_close(&machine);
  }
}

Test(mbarrier, refused) {
  static const RefusedTest tests[] = {
      {"mbarrier.init.shared::cta.b32 [%r0], 1", "works on .b64"},
      {"mbarrier.frobnicate.b64 [%rd0], 1", "unknown modifier"},
      {"mbarrier.arrive.shared::cluster.b64 %rd0, [%r0]", "must be _"},
      {"mbarrier.arrive.noComplete.shared::cta.b64 %rd0, [%r0]", "operands"},
      {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0]", "operands"},
      {"mbarrier.test_wait.shared::cta.b64 %p0, [%r0], %r1", "needs .b64"},
      {"mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], %rd1", "needs .b32"},
      {"mbarrier.init.b64 [%r0], 1", "64-bit register"},
  };
  RUN_REFUSED_TESTS(tests);
}
