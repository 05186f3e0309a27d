// How many bits of an epoch each of its fields has: see epoch.h.
#include "epoch.h"

bool epoch_layout(EpochLayout *layout, uint64_t clusters, uint64_t threads, uint64_t instructions) {
  int bits[3];
  const uint64_t counts[3] = {threads, instructions, clusters};
  for (int i = 0; i < 3; i++)
    for (bits[i] = 1; counts[i] > 1ull << bits[i];) bits[i]++;
  int clock_bits = EPOCH_FIELDS - bits[0] - bits[1] - bits[2];
  if (clock_bits < 12) return false;
  if (clock_bits > 32) clock_bits = 32;
  layout->clock_shift = bits[0];
  layout->pc_shift = layout->clock_shift + clock_bits;
  layout->cluster_shift = layout->pc_shift + bits[1];
  layout->clock_mask = (1ull << clock_bits) - 1;
  layout->thread_mask = (1ull << bits[0]) - 1;
  layout->pc_mask = (1ull << bits[1]) - 1;
  layout->set_mask = (1ull << layout->pc_shift) - 1;
  layout->cluster_mask = (1ull << bits[2]) - 1;
  layout->identity_mask =
      EPOCH_KERNEL | EPOCH_SET | layout->thread_mask | layout->cluster_mask << layout->cluster_shift;
  return true;
}
