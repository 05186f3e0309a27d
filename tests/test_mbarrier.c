// mbarriers on the emulator: what they count, what they hand on, and what is reported.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run_kernel.h"
#include "support/run_ptx.h"

TestSuite(mbarrier, .timeout = 120);

#define END "ret;\n}\n"
// ---- what they count ----

// One thread's walk through the forms; every result is stored to out.
static const char counts[] = PTX_HEADER
    ".visible .entry test(.param .u64 out) {\n"
    ".reg .b64 %o, %s, %s1, %g; .reg .b32 %v, %a; .reg .pred %q;\n"
    ".shared .align 8 .b64 bar;\n"
    "ld.param.u64 %o, [out]; mov.u32 %a, bar; mov.u64 %g, bar; cvta.shared.u64 %g, %g;\n"
    "mbarrier.init.b64 [%g], 3;\n"
    "mbarrier.arrive.noComplete.shared.b64 %s, [bar], 2;\n"  // 3 pending before
    "mbarrier.pending_count.b64 %v, %s; st.global.u32 [%o], %v;\n"
    "mbarrier.test_wait.shared.b64 %q, [bar], %s; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+4], %v;\n"
    "mbarrier.arrive.shared::cta.b64 %s1, [bar];\n"  // completes phase 0
    "mbarrier.test_wait.shared::cta.b64 %q, [bar], %s; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+8], %v;\n"
    "mbarrier.try_wait.acquire.cta.shared::cta.b64 %q, [%a], %s1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+12], %v;\n"
    "mbarrier.test_wait.parity.shared::cta.b64 %q, [%a], 0; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+16], %v;\n"
    "mbarrier.test_wait.parity.b64 %q, [%g], 1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+20], %v;\n"
    "mbarrier.arrive_drop.release.cta.shared::cta.b64 %s, [bar];\n"     // phase 1: 2 pending, the next expects 2
    "mbarrier.arrive_drop.noComplete.shared::cta.b64 %s1, [bar], 1;\n"  // 1 pending, the next expects 1
    "mbarrier.pending_count.b64 %v, %s1; st.global.u32 [%o+24], %v;\n"
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 100;\n"
    "mbarrier.arrive.b64 %s, [%g], 1;\n"  // none pending, but 100 bytes
    "mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+28], %v;\n"
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 60;\n"
    "mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 1; selp.u32 %v, 1, 0, %q; st.global.u32 [%o+32], %v;\n"
    "mbarrier.complete_tx.shared::cluster.b64 [bar], 40;\n"
    "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %q, [bar], 1, 1000; selp.u32 %v, 1, 0, %q; st.global.u32 "
    "[%o+36], %v;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 %s, [bar], 16;\n"  // phase 2 expects one arrival
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
  Machine machine = machine_open(counts, 0);
  uint64_t out = machine_upload(&machine, NULL, sizeof got);
  const void *arguments[] = {&out};
  cr_expect_eq(machine_launch(&machine, (Shape){1, 1, 0}, arguments, 1), EMULATOR_OK);
  expect_clean(&machine);
  machine_download(&machine, got, out, sizeof got);
  for (int i = 0; i < COUNT; i++) cr_expect_eq(got[i], expected[i], "result %d is %u, not %u", i, got[i], expected[i]);
  machine_close(&machine);
}

// A state says which phase it is of by its last three bits: four phases later that one is over, and its report says so.
Test(mbarrier, a_state_of_long_ago) {
  static const char text[] =
      PTX_HEADER ".visible .entry test(.param .u64 out) {\n"
                 ".reg .b64 %o, %s; .reg .b32 %v; .reg .pred %q; .shared .align 8 .b64 bar;\n"
                 "ld.param.u64 %o, [out]; mbarrier.init.shared.b64 [bar], 1;\n"
                 "mbarrier.arrive.shared.b64 %s, [bar]; mbarrier.arrive.shared.b64 _, [bar];\n"
                 "mbarrier.arrive.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar];\n"
                 "mbarrier.test_wait.shared.b64 %q, [bar], %s; selp.u32 %v, 1, 0, %q; st.global.u32 [%o], %v;\n" END;
  uint32_t over;
  int count;
  Machine machine = machine_open(text, 0);
  uint64_t out = machine_upload(&machine, NULL, sizeof over);
  cr_expect_eq(machine_launch(&machine, (Shape){1, 1, 0}, (const void *[]){&out}, 1), EMULATOR_OK);
  const Hazard *hazard = emulator_hazards(machine.emulator, &count);
  cr_expect(count == 1 && strstr(hazard->detail, "a phase long past"));
  machine_download(&machine, &over, out, sizeof over);
  cr_expect_eq(over, 1);
  machine_close(&machine);
}

// Lanes of one instruction ask two mbarriers, of which one is complete.
Test(mbarrier, lanes_that_ask_two) {
  static const char text[] =
      PTX_HEADER ".visible .entry test(.param .u64 out) {\n"
                 ".reg .b64 %o; .reg .b32 %t, %a, %v; .reg .pred %p, %q; .shared .align 8 .b64 bar[2];\n"
                 "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0;\n"
                 "@%p mbarrier.init.shared.b64 [bar], 1; @%p mbarrier.init.shared.b64 [bar+8], 1;\n"
                 "@%p mbarrier.arrive.shared.b64 _, [bar]; bar.warp.sync 0xffffffff;\n"
                 "and.b32 %a, %t, 1; shl.b32 %a, %a, 3; mov.u32 %v, bar; add.u32 %a, %a, %v;\n"
                 "mbarrier.test_wait.parity.shared.b64 %q, [%a], 0; selp.u32 %v, 1, 0, %q;\n"
                 "mad.wide.u32 %o, %t, 4, %o; st.global.u32 [%o], %v;\n" END;
  uint32_t got[32];
  Machine machine = machine_open(text, 0);
  uint64_t out = machine_upload(&machine, NULL, sizeof got);
  cr_expect_eq(machine_launch(&machine, (Shape){1, 32, 0}, (const void *[]){&out}, 1), EMULATOR_OK);
  expect_clean(&machine);
  machine_download(&machine, got, out, sizeof got);
  for (int i = 0; i < 32; i++) cr_expect_eq(got[i], i % 2 == 0, "lane %d", i);
  machine_close(&machine);
}

// ---- rings ----

// Warp 1's first lane fills `stages` tiles of 512 bytes in turn, the 32 lanes of warp 0 add each tile's 128 words to
// their sums.
static char *ring_text(int stages, int tiles) {
  static const char format[] =
      PTX_HEADER ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out) {\n"
                 ".reg .b64 %%m, %%o, %%s; .reg .b32 %%t, %%a, %%v, %%n, %%stage, %%parity, %%full, %%empty, %%tile, "
                 "%%y, %%sum; .reg .pred %%p, %%q, %%w;\n"
                 ".shared .align 128 .b8 tiles[%d]; .shared .align 8 .b64 full[%d]; .shared .align 8 .b64 empty[%d];\n"
                 "mov.b64 %%m, map; cvta.param.u64 %%m, %%m; ld.param.u64 %%o, [out];\n"
                 "mov.u32 %%t, %%tid.x; setp.eq.u32 %%p, %%t, 0; mov.u32 %%n, 0;\n"
                 "@!%%p bra READY;\n"
                 "MAKE: mov.u32 %%full, full; mov.u32 %%empty, empty; shl.b32 %%v, %%n, 3; add.u32 %%full, %%full, "
                 "%%v; add.u32 %%empty, %%empty, %%v;\n"
                 "mbarrier.init.shared::cta.b64 [%%full], 1; mbarrier.init.shared::cta.b64 [%%empty], 32;\n"
                 "add.u32 %%n, %%n, 1; setp.lt.u32 %%q, %%n, %d; @%%q bra MAKE;\n"
                 "fence.mbarrier_init.release.cluster;\n"
                 "READY: bar.sync 0;\n"
                 "mov.u32 %%n, 0; mov.u32 %%stage, 0; mov.u32 %%parity, 0; mov.u32 %%sum, 0; mov.u32 %%y, 0;\n"
                 "setp.eq.u32 %%p, %%t, 32; @%%p bra PRODUCER; setp.gt.u32 %%p, %%t, 32; @%%p bra DONE;\n"
                 "CONSUMER: mov.u32 %%full, full; mov.u32 %%empty, empty; shl.b32 %%v, %%stage, 3; add.u32 %%full, "
                 "%%full, %%v; add.u32 %%empty, %%empty, %%v;\n"
                 "FULL: mbarrier.try_wait.parity.shared::cta.b64 %%q, [%%full], %%parity; @!%%q bra FULL;\n"
                 "mov.u32 %%a, tiles; shl.b32 %%v, %%stage, 9; add.u32 %%a, %%a, %%v; shl.b32 %%v, %%t, 2; add.u32 "
                 "%%a, %%a, %%v;\n"
                 "ld.shared.u32 %%v, [%%a]; add.u32 %%sum, %%sum, %%v; ld.shared.u32 %%v, [%%a+128]; mad.lo.u32 %%sum, "
                 "%%v, 3, %%sum;\n"
                 "ld.shared.u32 %%v, [%%a+256]; mad.lo.u32 %%sum, %%v, 5, %%sum; ld.shared.u32 %%v, [%%a+384]; "
                 "mad.lo.u32 %%sum, %%v, 7, %%sum;\n"
                 "mbarrier.arrive.shared::cta.b64 _, [%%empty];\n"
                 "add.u32 %%n, %%n, 1; add.u32 %%stage, %%stage, 1; setp.eq.u32 %%q, %%stage, %d; @%%q xor.b32 "
                 "%%parity, %%parity, 1; @%%q mov.u32 %%stage, 0;\n"
                 "setp.lt.u32 %%q, %%n, %d; @%%q bra CONSUMER;\n"
                 "mad.wide.u32 %%s, %%t, 4, %%o; st.global.u32 [%%s], %%sum; bra DONE;\n"
                 "PRODUCER: mov.u32 %%full, full; mov.u32 %%empty, empty; shl.b32 %%v, %%stage, 3; add.u32 %%full, "
                 "%%full, %%v; add.u32 %%empty, %%empty, %%v;\n"
                 "xor.b32 %%v, %%parity, 1;\n"
                 "EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %%q, [%%empty], %%v; @!%%q bra EMPTY;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%full], 512;\n"
                 "mov.u32 %%tile, tiles; shl.b32 %%v, %%stage, 9; add.u32 %%tile, %%tile, %%v;\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%tile], [%%m, {0, "
                 "%%y}], [%%full];\n"
                 "add.u32 %%y, %%y, 4; and.b32 %%y, %%y, 31;\n"
                 "add.u32 %%n, %%n, 1; add.u32 %%stage, %%stage, 1; setp.eq.u32 %%q, %%stage, %d; @%%q xor.b32 "
                 "%%parity, %%parity, 1; @%%q mov.u32 %%stage, 0;\n"
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
      for (int row = 0; row < 4; row++)
        expected[lane] += (uint32_t)(2 * row + 1) * input[(tile * 4 + row) % 32 * 32 + lane];
  for (int stages = 1; stages <= 4; stages *= 2) {
    char *text = ring_text(stages, TILES);
    for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
      Machine machine = machine_open(text, schedule);
      uint64_t in = machine_upload(&machine, input, sizeof input), out = machine_upload(&machine, NULL, sizeof got);
      Map map = make_map(&(EmulatorTensorSpec){
          .type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {32, 32}, .stride = {0, 128}, .box = {32, 4}});
      const void *arguments[] = {&map, &in, &out};
      cr_expect_eq(machine_launch(&machine, (Shape){1, 64, 0}, arguments, 3), EMULATOR_OK);
      expect_clean(&machine);
      machine_download(&machine, got, out, sizeof got);
      cr_expect_arr_eq(got, expected, sizeof got, "%d stages, schedule %d", stages, (int)schedule);
      machine_close(&machine);
    }
    free(text);
  }
}

// ---- what they hand on, and what is reported: tests/pairs/mbarrier.pairs ----

Test(mbarrier, pairs) { run_pairs("mbarrier"); }

static uint32_t loaded(unsigned block, unsigned thread) { return (void)block, input_word(thread); }

Test(mbarrier, polling_beside_a_copy) { run_and_check("mbarrier", "polling beside a copy", 1, 0, loaded); }

Test(mbarrier, refused) {
  static const RefusedTest tests[] = {
      {"mbarrier.init.shared::cta.b32 [%r0], 1", "works on .b64"},
      {"mbarrier.frobnicate.b64 [%rd0], 1", "there is mbarrier.init, mbarrier.inval"},
      {"mbarrier.init.frobnicate.shared::cta.b64 [%r0], 1", "unknown modifier"},
      {"mbarrier.arrive.shared::cluster.b64 %rd0, [%r0]", "must be _"},
      {"mbarrier.arrive.noComplete.shared::cta.b64 %rd0, [%r0]", "operands"},
      {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0]", "operands"},
      {"mbarrier.test_wait.shared::cta.b64 %p0, [%r0], %r1", "needs .b64"},
      {"mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], %rd1", "needs .b32"},
      {"mbarrier.init.b64 [%r0], 1", "64-bit register"},
  };
  RUN_REFUSED_TESTS(tests);
}
