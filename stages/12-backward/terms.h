// The kernel before the passes: what they need of each query.
#pragma once

// shift and delta of a tile of queries; the lanes of a warp share 32 / LANES queries. Past the last query, shift is
// minus infinity, which makes weights 0, and delta is 0.
//
// Grid: tiles of queries, head after head. Block: 256.
template <int HEAD_DIM> __device__ void backward_terms(const Problem &problem) {
  const int LANES = HEAD_DIM / 8;  // of a query: each has 16 bytes of O and of dO
  int head = blockIdx.x / problem.head_tiles, first = blockIdx.x % problem.head_tiles * ROWS;
  int own_row = first + threadIdx.x / LANES, column = threadIdx.x % LANES * 8;
  const half *own_o = problem.o + head * problem.o_head + own_row * problem.o_row + column;
  const half *own_d_o = problem.d_o + head * problem.d_o_head + own_row * problem.d_o_row + column;
  const int STEP = THREADS / LANES;
#pragma unroll
  for (int r = 0; r < ROWS; r += STEP, own_o += STEP * problem.o_row, own_d_o += STEP * problem.d_o_row) {
    int row = first + r + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    size_t query = (size_t)head * problem.seqlen + row, padded = (size_t)head * problem.head_tiles * ROWS + row;
    bool exists = row < problem.seqlen;
    uint4 o = {}, d_o = {};
    if (exists) {
      o = *(uint4 *)own_o;
      d_o = *(uint4 *)own_d_o;
    }
    float delta = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float2 x = __half22float2(((half2 *)&o)[i]), y = __half22float2(((half2 *)&d_o)[i]);
      delta += x.x * y.x + x.y * y.y;
    }
    for (int distance = 1; distance < LANES; distance *= 2) delta += __shfl_xor_sync(0xffffffff, delta, distance);
    if (lane > 0) continue;
    problem.shift[padded] = exists ? problem.weight_exponent - problem.lse[query] * 1.44269504f : -INFINITY;
    problem.delta[padded] = delta * power_of_two(-problem.weight_exponent);
  }
}

extern "C" __global__ void backward_terms_64(const Problem problem) { backward_terms<64>(problem); }
extern "C" __global__ void backward_terms_128(const Problem problem) { backward_terms<128>(problem); }
