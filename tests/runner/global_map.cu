// Tensor maps in global memory: a block that uses one executes fence.proxy.tensormap before. An argument names a
// mistake.
#include <cuda.h>

#include <cstdint>
#include <cstring>

#include "check.h"

enum { N = 64 };

__constant__ CUtensorMap constant_map;

__device__ uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

__device__ void copy(const CUtensorMap *map, float *tile, uint64_t *full) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full)));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(shared_address(full)));
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(
          shared_address(tile)),
      "l"(map), "r"(0), "r"(shared_address(full))
      : "memory");
}

__device__ void fence(const CUtensorMap *map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(map) : "memory");
}

__device__ void wait(uint64_t *full) {
  asm volatile(
      "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }" ::"r"(
          shared_address(full))
      : "memory");
}

// fences: of each block, in a warp of its own; 1: of block 0 alone; 2: of all.
__global__ void copy_tile(const CUtensorMap *map, float *out, int fences) {
  __shared__ alignas(128) float tile[N];
  __shared__ alignas(8) uint64_t full;
  if (threadIdx.x == 32 && blockIdx.x < (fences == 2 ? gridDim.x : fences)) fence(map);
  __syncthreads();
  if (threadIdx.x == 0) copy(map, tile, &full);
  __syncthreads();
  wait(&full);
  out[blockIdx.x * N + threadIdx.x] = tile[threadIdx.x];
}

__global__ void copy_constant(float *out) {
  __shared__ alignas(128) float tile[N];
  __shared__ alignas(8) uint64_t full;
  if (threadIdx.x == 0) copy(&constant_map, tile, &full);
  __syncthreads();
  wait(&full);
  out[threadIdx.x] = tile[threadIdx.x];
}

// Another kernel makes the map.
__global__ void write_map(CUtensorMap *to, const __grid_constant__ CUtensorMap from) {
  ((int *)to)[threadIdx.x] = ((const int *)&from)[threadIdx.x];
}

static CUtensorMap encode(const float *values) {
  CUtensorMap map;
  void *entry = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 13000
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result));
#else
  CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &result));
#endif
  cuuint64_t size[1] = {N}, stride[1] = {0};
  cuuint32_t box[1] = {N}, step[1] = {1};
  EXPECT(((decltype(&cuTensorMapEncodeTiled))entry)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, (void *)values, size,
                                                    stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                                    CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  bool by_kernel = !strcmp(what, "kernel"), one_block = !strcmp(what, "block"), same = !strcmp(what, "same");
  int fences = !*what ? 2 : one_block ? 1 : 0;
  float *values, *out;
  CUtensorMap *map;
  CHECK(cudaMallocManaged(&values, 2 * N * sizeof(float)));
  CHECK(cudaMallocManaged(&out, 2 * N * sizeof(float)));
  CHECK(cudaMalloc(&map, sizeof *map));
  for (int i = 0; i < 2 * N; i++) values[i] = (float)i;
  for (int l = 0; l < 2; l++) {
    CUtensorMap host = encode(values + (same ? 0 : l) * N);
    if (by_kernel || (!*what && l == 1))
      write_map<<<1, 32>>>(map, host);
    else
      CHECK(cudaMemcpy(map, &host, sizeof host, cudaMemcpyHostToDevice));
    copy_tile<<<2, N>>>(map, out, fences);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) EXPECT(out[N + i] == values[(same ? 0 : l) * N + i]);
    if (*what) continue;
    CHECK(cudaMemcpyToSymbol(constant_map, &host, sizeof host));
    copy_constant<<<1, N>>>(out);
    CHECK(cudaDeviceSynchronize());
    EXPECT(out[N - 1] == values[l * N + N - 1]);
  }
  printf("right\n");
}
