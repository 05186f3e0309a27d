// Into how many parts the decode stages split a head's keys, where the user does not say.
#include <criterion/criterion.h>

#include "../stages/13b-split-kv/splits.h"

static int splits_on_132(int heads, int keys, int most, int enough) {
  DecodeShape shape = {.batch = 1, .heads = heads, .kv_heads = heads, .keys = keys, .head_dim = 128};
  return splits_for(&shape, 0, 132, most, enough);
}

// A tile is 16 keys, and 264 blocks run at a time.
Test(decode_splits, keep_device_memory_busy) {
  cr_expect_eq(splits_on_132(8, 131072, 256, 66), 16, "64 blocks are too few, 128 are enough");
  cr_expect_eq(splits_on_132(8, 131072, 256, 49), 8);
  cr_expect_eq(splits_on_132(8, 1024, 256, 66), 16, "each warp has a tile");
  cr_expect_eq(splits_on_132(8, 1008, 256, 66), 8, "16 parts would have fewer tiles than warps");
  cr_expect_eq(splits_on_132(1, 131072, 256, 66), 128);
  cr_expect_eq(splits_on_132(1, 131072, 16, 66), 16, "no more than a cluster has");
  cr_expect_eq(splits_on_132(32, 4096, 256, 66), 4);
  cr_expect_eq(splits_on_132(256, 4096, 256, 66), 1, "nearly a wave");
  cr_expect_eq(splits_on_132(272, 4096, 256, 66), 4, "a wave and 8 blocks: the 8 would be alone for long");
  cr_expect_eq(splits_on_132(512, 4096, 256, 66), 1, "nearly two waves");
  cr_expect_eq(splits_on_132(1, 1, 256, 66), 1);
  DecodeShape shape = {.batch = 1, .heads = 1, .kv_heads = 1, .keys = 40, .head_dim = 128};
  cr_expect_eq(splits_for(&shape, 16, 132, 256, 66), 3, "the user's, but no more than there are tiles");
}
