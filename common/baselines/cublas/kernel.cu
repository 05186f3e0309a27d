// What lies between the two matrix products: the softmax of each row, fp32 scores in, fp16 weights out.
#include <cuda_fp16.h>

enum { THREADS = 256, WARP = 32, WARPS = THREADS / WARP };

// Weights of a row add up to 1, so those of a long one are smaller than fp16's smallest normal number, 2^-14. They are
// stored times this, which no weight can make overflow; the second product divides by it.
constexpr float WEIGHT_SCALE = 32768;

// The maximum of some scores, and the sum of exp(score - maximum).
struct Sum {
  float max, sum;
};

__device__ Sum add(Sum a, Sum b) {
  float max = fmaxf(a.max, b.max);
  if (max == -INFINITY) return a;  // both are of nothing
  return {max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
}

// The sum over all threads of the block; every thread gets it.
__device__ Sum block_sum(Sum own) {
  __shared__ Sum of_warp[WARPS];
  for (int distance = WARP / 2; distance > 0; distance /= 2) {
    float max = __shfl_xor_sync(0xffffffff, own.max, distance), sum = __shfl_xor_sync(0xffffffff, own.sum, distance);
    own = add(own, {max, sum});
  }
  if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = own;
  __syncthreads();
  Sum all = of_warp[0];
  for (int warp = 1; warp < WARPS; warp++) all = add(all, of_warp[warp]);
  return all;
}

// One block, one row i of one head: it reads the scores twice, once for their sum and once for the weights. cuBLAS
// knows no mask, so the weights of keys that query i may not see are stored as zeros.
//
// Grid: rows, heads.
extern "C" __global__ void softmax(const float *s, half *p, int seqlen, int causal) {
  int i = blockIdx.x, keys = causal ? i + 1 : seqlen;
  size_t start = ((size_t)blockIdx.y * seqlen + i) * seqlen;
  s += start;
  p += start;

  Sum own = {-INFINITY, 0};
  for (int j = threadIdx.x; j < keys; j += THREADS) own = add(own, {s[j], 1});
  Sum row = block_sum(own);
  float factor = WEIGHT_SCALE / row.sum;
  for (int j = threadIdx.x; j < seqlen; j += THREADS) p[j] = __float2half(j < keys ? expf(s[j] - row.max) * factor : 0);
}
