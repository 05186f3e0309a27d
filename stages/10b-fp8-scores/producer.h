// A block's shared memory in stage 10b, and the producer.
#pragma once

#include "../shared/ring_barriers.h"

// Three rings, as in stage 09b. A query and a key have one byte an element, a value two. So a slot of queries is too
// small for the output, which gathers in a tile of its own.
template <int HEAD_DIM> struct Shared {
  enum { CONSUMERS = CONSUMERS_OF(HEAD_DIM), ROWS = ROWS_OF(HEAD_DIM) };
  enum { QUERY_SLOTS = QUERY_SLOTS_OF(HEAD_DIM), SLOTS = SLOTS_OF(HEAD_DIM) };
  half o[ROWS * HEAD_DIM];
  half v[SLOTS][KEYS * HEAD_DIM];
  uint8_t q[QUERY_SLOTS][ROWS * HEAD_DIM];
  uint8_t k[SLOTS][KEYS * HEAD_DIM];
  uint64_t q_full[QUERY_SLOTS], q_empty[QUERY_SLOTS];
  uint64_t k_full[SLOTS], k_empty[SLOTS], v_full[SLOTS], v_empty[SLOTS];
  int tile[QUERY_SLOTS];           // the number of the tile whose queries are there; -1: none
  float score_scale[QUERY_SLOTS];  // of that tile's head

  __device__ void init() {
    if (threadIdx.x > 0) return;
    init_ring(q_full, q_empty, 1, CONSUMERS * 4);
    init_ring(k_full, k_empty, 1, CONSUMERS * 4);
    init_ring(v_full, v_empty, 1, CONSUMERS * 4);
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "see tiles.h");

#include "../09b-diagonal/loads.h"

template <int HEAD_DIM, bool CAUSAL> struct Producer : ProducerBase<Producer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = ProducerBase<Producer, HEAD_DIM, CAUSAL>;
  using Base::shared, Base::tensors, Base::problem, Base::q;

  // Writes next to the tile's number what its scores are multiplied by. It loads the scales before the wait for a free
  // slot, so their latency is hidden.
  __device__ void announce(int number, const Tile &tile) {
    int head = tile.head * problem.scale_stride;
    float score_scale = problem.scale * tensors.q_scale[head] * tensors.k_scale[head];
    Base::announce(number, tile);
    shared.score_scale[q.slot] = score_scale;
  }
  __device__ void load_v(int t, int head) {
    if (t >= 0) Base::load(this->v, shared.v, shared.v_full, shared.v_empty, &tensors.v, t * KEYS, head);
  }
};

template <int HEAD_DIM, bool CAUSAL>
__device__ void produce(Shared<HEAD_DIM> &shared, const Tensors &tensors, const Problem &problem) {
  if (threadIdx.x == 0) Producer<HEAD_DIM, CAUSAL>{{shared, tensors, problem}}.run();
}
