// A tile by TMA, with a tensor map from cuTensorMapEncodeTiled, which the runtime looks up.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "check.h"

enum { ROWS = 16, COLUMNS = 64 };

__device__ uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

__global__ void copy_tile(const __grid_constant__ CUtensorMap map, half *out, int row) {
  __shared__ alignas(128) half tile[ROWS * COLUMNS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
                 "r"((int)sizeof tile));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(tile)),
        "l"(&map), "r"(0), "r"(row), "r"(shared_address(&barrier))
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }" ::"r"(
          shared_address(&barrier))
      : "memory");
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) out[i] = tile[i];
}

int main() {
  const int rows = 40;
  half *in, *out;
  CHECK(cudaMallocManaged(&in, rows * COLUMNS * sizeof(half)));
  CHECK(cudaMallocManaged(&out, ROWS * COLUMNS * sizeof(half)));
  for (int i = 0; i < rows * COLUMNS; i++) in[i] = __int2half_rn(i % 1000);
  void *entry = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 13000
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result));
#else
  CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &result));
#endif
  EXPECT(result == cudaDriverEntryPointSuccess);
  auto encode = (decltype(&cuTensorMapEncodeTiled))entry;
  CUtensorMap map;
  cuuint64_t size[2] = {COLUMNS, rows}, stride[1] = {COLUMNS * sizeof(half)};
  cuuint32_t box[2] = {COLUMNS, ROWS}, steps[2] = {1, 1};
  auto make = [&](void *address) {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, address, size, stride, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  EXPECT(make((char *)in + 4) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(make(in) == CUDA_SUCCESS);
  copy_tile<<<1, 128>>>(map, out, 30);  // rows 40 to 45 are outside: zeros
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < ROWS * COLUMNS; i++)
    EXPECT(__half2float(out[i]) == (i / COLUMNS < 10 ? __half2float(in[30 * COLUMNS + i]) : 0));
  printf("right\n");
}
