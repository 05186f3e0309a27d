// libhopper_ladder.so: shapes with many heads and with many keys. Their tensors fit in a GPU's memory.
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "support/library.h"

TestSuite(library_shapes, .init = load_library_with_fake_driver);

// Tensors that do not overlap, however large they are.
static HlTensor far_tensor(int index) { return (HlTensor){.data = (void *)((uintptr_t)(index + 1) << 44)}; }

static HlStatus run_on(const HlStage *stage, const HlShape *shape) {
  HlTensor t[BACKWARD_TENSORS];
  const HlScale one = {.data = (const float *)0x9000};
  for (int i = 0; i < BACKWARD_TENSORS; i++) t[i] = far_tensor(i);
  if (stage->backward)
    return hl.attention_backward(stage->number, shape, &t[0], &t[1], &t[2], &t[3], &t[4], far_tensor(8).data, &t[5],
                                 &t[6], &t[7], NULL);
  if (stage->inputs == HL_INPUTS_E4M3)
    return hl.attention_e4m3(stage->number, shape, &t[0], &t[1], &t[2], &t[3], &one, &one, &one, NULL);
  return hl.attention(stage->number, shape, &t[0], &t[1], &t[2], &t[3], NULL);
}

// A grid has at most 65,535 blocks along y and z, and 2^31 - 1 along x.
static void expect_a_grid(const HlStage *stage, const HlShape *shape) {
  memset(driver->largest_grid, 0, sizeof driver->largest_grid);
  cr_expect_eq(run_on(stage, shape), HL_OK, "%s: %s", stage->name, hl.error());
  const unsigned *grid = driver->largest_grid;
  cr_expect(grid[0] && grid[0] <= INT32_MAX && grid[1] <= 65535 && grid[2] <= 65535,
            "%s: a grid of %u x %u x %u for %d heads and seqlen %d", stage->name, grid[0], grid[1], grid[2],
            shape->batch * shape->heads, shape->seqlen);
}

Test(library_shapes, large_ones_have_a_grid) {
  static const HlShape shapes[] = {
      {3, 30000, 3, 64, 0}, {65536, 256, 1, 128, 1}, {1, 1, 1048576, 64, 0}, {1, 16, 1048576, 128, 1}};
  for (int i = 0; i < hl.stage_count(); i++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) expect_a_grid(hl.stage(i), &shapes[s]);
}
