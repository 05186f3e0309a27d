// The mbarriers of a ring's slots. The kernel includes the PTX headers first.
#pragma once

// Initialises them; one thread calls this, and mbarrier_fence_init after the last ring. A slot is full after `fillers`
// arrivals, with the bytes that they announce, and empty after one arrival of each consumer warp.
template <int SLOTS>
static __device__ __forceinline__ void init_ring(uint64_t (&full)[SLOTS], uint64_t (&empty)[SLOTS], int fillers,
                                                 int consumer_warps) {
  for (int i = 0; i < SLOTS; i++) {
    mbarrier_init(shared_address(full + i), fillers);
    mbarrier_init(shared_address(empty + i), consumer_warps);
  }
}
