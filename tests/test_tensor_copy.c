// Tensor and bulk copies on the emulator.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run_kernel.h"

TestSuite(tensor_copy, .timeout = 120);

typedef struct Map {
  _Alignas(64) uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES];
} Map;

static Map make_map(const EmulatorTensorSpec *spec) {
  Map map;
  EmulatorError error = {0};
  cr_assert(emulator_tensor_map(spec, map.bytes, &error), "%s", error.message);
  return map;
}

static const char load_2d[] = PTX_HEADER
    ".visible .entry test(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y) {\n"
    ".reg .b64 %m, %o, %s; .reg .b32 %x, %y, %t, %a, %v; .reg .pred %p, %q;\n"
    ".shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;\n"
    "mov.b64 %m, map; cvta.param.u64 %m, %m;\n"
    "ld.param.u64 %o, [out]; ld.param.u32 %x, [x]; ld.param.u32 %y, [y];\n"
    "mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0;\n"
    "@%p mbarrier.init.shared::cta.b64 [bar], 1;\n"
    "@%p fence.mbarrier_init.release.cluster;\n"
    "bar.sync 0;\n"
    "@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n"
    "@%p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%m, {%x, %y}], [bar];\n"
    "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;\n"
    "@!%q bra WAIT;\n"
    "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v;\n"
    "ld.shared.u32 %v, [%a];\n"
    "mad.wide.u32 %o, %t, 4, %o; st.global.u32 [%o], %v;\n"
    "ret;\n}\n";

Test(tensor_copy, one_box) {
  uint32_t tensor[20 * 40], tile[128];
  for (int i = 0; i < 800; i++) tensor[i] = (uint32_t)i + 1;
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(load_2d, REPAIRED, schedule);
    uint64_t in = machine_upload(&machine, tensor, sizeof tensor), out = machine_upload(&machine, NULL, sizeof tile);
    Map map = make_map(&(EmulatorTensorSpec){.type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {37, 20}, .stride = {0, 160}, .box = {16, 8}});
    int x = 24, y = 16;
    const void *arguments[] = {&map, &out, &x, &y};
    cr_expect_eq(machine_launch(&machine, 1, 128, 0, arguments, 4), EMULATOR_OK);
    expect_clean(&machine);
    machine_download(&machine, tile, out, sizeof tile);
    for (int r = 0; r < 8; r++)
      for (int c = 0; c < 16; c++) {
        uint32_t want = x + c < 37 && y + r < 20 ? tensor[(y + r) * 40 + x + c] : 0;
        cr_expect_eq(tile[r * 16 + c], want, "row %d column %d: %u, not %u", r, c, tile[r * 16 + c], want);
      }
    machine_close(&machine);
  }
}
