// Stage 12b: the backward pass in one pass over keys. All but dQ is as in stage 12's pass over keys. A launch fills the
// sums of dQ with zeros, and runs backward_terms, then the pass, then finish_queries.
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/global.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

#include "../12-backward/warpgroup.h"

#include "../12-backward/terms.h"

#include "../12-backward/run_pass.h"

// The harness's forward pass, made of the parts above. Its kernels must be in this module, because a stage has one.
#include "../shared/forward_pass.h"

#include "one_pass.h"

// ---- the entry points ----

// Each mask has kernels of its own, without the registers and instructions that only the other needs.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_64(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<64, OVER_KEYS, false, OnePass<64, false>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_64_causal(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<64, OVER_KEYS, true, OnePass<64, true>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_128(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<128, OVER_KEYS, false, OnePass<128, false>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    backward_128_causal(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_pass<128, OVER_KEYS, true, OnePass<128, true>>(tensors, problem, sums);
}
