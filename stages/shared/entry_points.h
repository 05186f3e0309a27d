// The kernels of stages 09b to 11d: a producer, and kernel.cu's Consumer. Stage 10 has another Part, which stores more.
#pragma once

template <int HEAD_DIM, bool CAUSAL, class Part = Consumer<HEAD_DIM, CAUSAL>>
__device__ void attention(const Tensors &tensors, const Problem &problem) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Shared<HEAD_DIM> &shared = *(Shared<HEAD_DIM> *)memory;
  shared.init();
  __syncthreads();                                                      // the mbarriers are there
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  if (warpgroup == 0) {
    registers_decrease<PRODUCER_REGISTERS_OF(HEAD_DIM)>();
    produce<HEAD_DIM, CAUSAL>(shared, tensors, problem);
  } else {
    registers_increase<CONSUMER_REGISTERS_OF(HEAD_DIM)>();
    Part{{shared, tensors, problem, warpgroup - 1, threadIdx.x % WARP == 0}}.run();
  }
}

// Grid: as many blocks as SMs, or as tiles if those are fewer. Block: the producer's warpgroup, then the consumers.
// Each mask has a kernel of its own, without the registers and instructions that only the other one needs.
extern "C" __global__ void __launch_bounds__(THREADS_OF(64), 1)
    attention_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<64, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS_OF(64), 1)
    attention_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<64, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS_OF(128), 1)
    attention_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<128, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS_OF(128), 1)
    attention_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<128, true>(tensors, problem);
}
