// A block's shared memory in stages 09b and 10, and the producer. The kernel includes tiles.h and the PTX headers
// first.
#pragma once

#include "../shared/ring_barriers.h"

// A block's shared memory: three rings, for tiles of queries, of K and of V. A full barrier completes when TMA has
// filled the slot, an empty one when all consumer warps have released it. The output gathers in the slot of its
// queries.
template <int HEAD_DIM> struct Shared {
  enum { CONSUMERS = CONSUMERS_OF(HEAD_DIM), ROWS = ROWS_OF(HEAD_DIM) };
  enum { QUERY_SLOTS = QUERY_SLOTS_OF(HEAD_DIM), SLOTS = SLOTS_OF(HEAD_DIM) };
  half q[QUERY_SLOTS][ROWS * HEAD_DIM];
  half k[SLOTS][KEYS * HEAD_DIM], v[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full[QUERY_SLOTS], q_empty[QUERY_SLOTS];
  uint64_t k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];
  int tile[QUERY_SLOTS];  // the number of the tile whose queries are there; -1: none. The struct is padded to 8 bytes

  __device__ void init() {
    if (threadIdx.x > 0) return;
    init_ring(q_full, q_empty, 1, CONSUMERS * 4);
    init_ring(k_full, k_empty, 1, CONSUMERS * 4);
    init_ring(v_full, v_empty, 1, CONSUMERS * 4);
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

#include "loads.h"

template <int HEAD_DIM, bool CAUSAL> struct Producer : ProducerBase<Producer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  __device__ void load_v(int t, int head) {
    if (t >= 0)
      this->load(this->v, this->shared.v, this->shared.v_full, this->shared.v_empty, &this->tensors.v, t * KEYS, head);
  }
};

template <int HEAD_DIM, bool CAUSAL>
__device__ void produce(Shared<HEAD_DIM> &shared, const Tensors &tensors, const Problem &problem) {
  if (threadIdx.x == 0) Producer<HEAD_DIM, CAUSAL>{{shared, tensors, problem}}.run();
}
