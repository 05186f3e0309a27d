// The parts of the running machine: see machine.h.
#include "machine.h"

uint64_t random_next(uint64_t *state) {  // splitmix64
  uint64_t x = *state += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

uint64_t cluster_random(Cluster *cluster) { return random_next(&cluster->random); }

// Clusters and the blocks in them are numbered x first.
void cluster_block_index(const Launch *launch, uint32_t cluster, int rank, unsigned index[3]) {
  unsigned left = cluster, in = (unsigned)rank;
  for (int axis = 0; axis < 3; axis++) {
    unsigned clusters = launch->grid[axis] / launch->cluster[axis];
    index[axis] = left % clusters * launch->cluster[axis] + in % launch->cluster[axis];
    left /= clusters;
    in /= launch->cluster[axis];
  }
}
