// The kernel before the passes: what they need of each query.
#pragma once

// shift and delta of a tile of queries; a warp does one query after another. Past the last query, shift is minus infinity,
// which makes weights 0, and delta is 0.
//
// Grid: tiles of queries, head after head. Block: 256.
template <int HEAD_DIM> __device__ void backward_terms(const Problem &problem) {
  int head = blockIdx.x / problem.head_tiles, first = blockIdx.x % problem.head_tiles * ROWS, lane = threadIdx.x % WARP;
  for (int row = first + threadIdx.x / WARP; row < first + ROWS; row += THREADS / WARP) {
    size_t query = (size_t)head * problem.seqlen + row, padded = (size_t)head * problem.head_tiles * ROWS + row;
    bool exists = row < problem.seqlen;
    float delta = 0;
    for (int d = 2 * lane; d < HEAD_DIM && exists; d += 2 * WARP) {
      float2 o = __half22float2(*(half2 *)(problem.o + query * HEAD_DIM + d));
      float2 d_o = __half22float2(*(half2 *)(problem.d_o + query * HEAD_DIM + d));
      delta += o.x * d_o.x + o.y * d_o.y;
    }
    for (int distance = 1; distance < WARP; distance *= 2) delta += __shfl_xor_sync(0xffffffff, delta, distance);
    if (lane > 0) continue;
    problem.shift[padded] = exists ? -problem.lse[query] * 1.44269504f : -INFINITY;
    problem.delta[padded] = delta;
  }
}

extern "C" __global__ void backward_terms_64(const Problem problem) { backward_terms<64>(problem); }
extern "C" __global__ void backward_terms_128(const Problem problem) { backward_terms<128>(problem); }
