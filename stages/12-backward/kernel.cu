// Stage 12: the backward pass. From Q, K, V, O, dO and the forward pass's log-sum-exp it computes dQ, dK and dV:
//
//   P  = exp(scores - lse)           scores = Q K^T / sqrt(HEAD_DIM), computed again
//   dV = P^T dO
//   dS = P * (dP - delta)            dP = dO V^T, and delta = the sum over d of dO O, one number for each query
//   dQ = dS K / sqrt(HEAD_DIM)
//   dK = dS^T Q / sqrt(HEAD_DIM)
//
// The products leave out 1 / sqrt(HEAD_DIM): weights() multiplies Q K^T by it, and store() multiplies dQ and dK.
//
// dQ is a sum over keys; dK and dV are sums over queries. So there are two passes, and no block adds to another block's
// sums. In each pass a block owns a tile of two tensors and streams the tiles of two others. For each pair of streamed
// tiles a warpgroup computes
//
//                               pass over queries     pass over keys
//   own, streamed               Q, dO; K, V           K, V; Q, dO
//   product into s              Q K^T                 K Q^T             own and streamed tile from shared memory
//   product into dp             dP = dO V^T           dP^T = V dO^T
//   weights, score_gradients    P, dS                 P^T, dS^T         in registers
//   accumulate                  dQ += dS K            dK += dS^T Q      streamed tile from shared memory
//   accumulate                                        dV += P^T dO
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

#include "warpgroup.h"

#include "terms.h"

#include "run_pass.h"

// The harness's forward pass, made of the parts above. Its kernels must be in this module, because a stage has one.
#include "../shared/forward_pass.h"

// ---- the entry points ----

// Each mask has kernels of its own, without the registers and instructions that only the other needs.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, OVER_QUERIES, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, OVER_QUERIES, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, OVER_KEYS, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<64, OVER_KEYS, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, OVER_QUERIES, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_queries_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, OVER_QUERIES, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, OVER_KEYS, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_keys_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  run_pass<128, OVER_KEYS, true>(tensors, problem);
}
