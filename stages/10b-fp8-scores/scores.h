// The product of queries and keys in e4m3.
#pragma once

// Starts the scores of 64 queries and N keys, S = Q K^T, of tiles that a and b describe. One wgmma goes 32 deep.
template <int HEAD_DIM, int N>
static __device__ __forceinline__ void start_scores(float (&s)[N / 2], uint64_t a, uint64_t b) {
  wgmma_fence();
#pragma unroll
  for (int d = 0; d < HEAD_DIM / 32; d++) wgmma_e4m3<N>(s, columns_32(a, d), columns_32(b, d), d > 0);
  wgmma_commit();
}
