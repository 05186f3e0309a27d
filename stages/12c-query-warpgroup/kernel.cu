// Stage 12c: stage 12b's pass over keys with three warpgroups. A launch runs the same kernels before and after it.
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/global.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
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

#include "../12b-one-pass/one_pass.h"

#include "query_warpgroup.h"

// ---- the entry points ----

// Each mask has kernels of its own, without the registers and instructions that only the other needs.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    backward_64(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_roles<64, false, KeyWarpgroup<64, false>, QueryWarpgroup<64, false>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    backward_64_causal(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_roles<64, true, KeyWarpgroup<64, true>, QueryWarpgroup<64, true>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    backward_128(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_roles<128, false, KeyWarpgroup<128, false>, QueryWarpgroup<128, false>>(tensors, problem, sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1)
    backward_128_causal(const __grid_constant__ Tensors tensors, const Problem problem, const QuerySums sums) {
  run_roles<128, true, KeyWarpgroup<128, true>, QueryWarpgroup<128, true>>(tensors, problem, sums);
}
