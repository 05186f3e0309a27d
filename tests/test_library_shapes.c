// libhopper_ladder.so: shapes with many heads and with many keys. Their tensors fit in a GPU's memory.
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "support/library.h"

TestSuite(library_shapes, .init = load_library_with_fake_driver);

// Tensors that do not overlap, however large they are.
static HlTensor far_tensor(int index) { return (HlTensor){.data = (void *)((uintptr_t)(index + 1) << 44)}; }

static HlStatus run_on(const HlStage *stage, HlCall call) {
  const HlScale none = {.data = NULL}, one = {.data = (const float *)0x9000};
  call.stage = stage->number;
  call.type = stage->type;
  call.q_scale = call.k_scale = stage->type == HL_F16 ? none : one;
  call.v_scale = stage->type == HL_E4M3 ? one : none;
  for (int i = 0; i < BACKWARD_TENSORS; i++) *tensor_of(&call, i) = far_tensor(i);
  call.lse = stage->backward ? far_tensor(8).data : NULL;
  return (stage->backward ? hl.attention_backward : hl.attention)(&call);
}

// A grid has at most 65,535 blocks along y and z, and 2^31 - 1 along x.
static void expect_a_grid(const HlStage *stage, const HlCall *shape) {
  memset(driver->largest_grid, 0, sizeof driver->largest_grid);
  cr_expect_eq(run_on(stage, *shape), HL_OK, "%s: %s", stage->name, hl.error());
  const unsigned *grid = driver->largest_grid;
  cr_expect(grid[0] && grid[0] <= INT32_MAX && grid[1] <= 65535 && grid[2] <= 65535,
            "%s: a grid of %u x %u x %u for %d heads and seqlen %d", stage->name, grid[0], grid[1], grid[2],
            shape->batch * shape->heads, shape->seqlen);
}

Test(library_shapes, large_ones_have_a_grid) {
  static const HlCall shapes[] = {
      {.batch = 3, .heads = 30000, .seqlen = 3, .head_dim = 64},
      {.batch = 65536, .heads = 256, .seqlen = 1, .head_dim = 128, .causal = 1},
      {.batch = 1, .heads = 1, .seqlen = 1048576, .head_dim = 64},
      {.batch = 1, .heads = 16, .seqlen = 1048576, .head_dim = 128, .causal = 1},
  };
  for (int i = 0; i < hl.stage_count(); i++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes && !hl.stage(i)->decode; s++)
      expect_a_grid(hl.stage(i), &shapes[s]);
}
