// Tiles, slices and pixels by TMA, with tensor maps from cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, which the
// runtime looks up.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "check.h"

enum { ROWS = 16, COLUMNS = 64, PIXELS = 32, CHANNELS = 16, WIDTH = 8, SLICE = 8 };

__device__ uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

__device__ void begin(uint64_t *barrier, int bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes));
}

__device__ void wait(uint64_t *barrier) {
  asm volatile(
      "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0; @!done bra again; }" ::"r"(
          shared_address(barrier))
      : "memory");
}

__global__ void copy_tile(const __grid_constant__ CUtensorMap map, half *out, int row) {
  __shared__ alignas(128) half tile[ROWS * COLUMNS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    begin(&barrier, sizeof tile);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(tile)),
        "l"(&map), "r"(0), "r"(row), "r"(shared_address(&barrier))
        : "memory");
  }
  __syncthreads();
  wait(&barrier);
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) out[i] = tile[i];
}

// WIDTH places of two images, in one slice of their channels.
__global__ void copy_slices(const __grid_constant__ CUtensorMap map, half *out, int w, int slice) {
  __shared__ alignas(128) half tile[2 * WIDTH * SLICE];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    begin(&barrier, sizeof tile);
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
        "[%5];" ::"r"(shared_address(tile)),
        "l"(&map), "r"(w), "r"(slice), "r"(0), "r"(shared_address(&barrier))
        : "memory");
  }
  __syncthreads();
  wait(&barrier);
  for (int i = threadIdx.x; i < 2 * WIDTH * SLICE; i += blockDim.x) out[i] = tile[i];
}

// Pixels of an image of rows of columns, from a place on, one tap of a filter further.
__global__ void copy_pixels(const __grid_constant__ CUtensorMap map, half *out, int w, int h, int tap_w, int tap_h) {
  __shared__ alignas(128) half tile[PIXELS * CHANNELS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    begin(&barrier, sizeof tile);
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
                 "%3, %4, %5}], "
                 "[%6], {%7, %8};" ::"r"(shared_address(tile)),
                 "l"(&map), "r"(0), "r"(w), "r"(h), "r"(0), "r"(shared_address(&barrier)), "h"((short)tap_w),
                 "h"((short)tap_h)
                 : "memory");
  }
  __syncthreads();
  wait(&barrier);
  for (int i = threadIdx.x; i < PIXELS * CHANNELS; i += blockDim.x) out[i] = tile[i];
}

static void *find(const char *name) {
  void *entry = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 13000
  CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &result));
#else
  CHECK(cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &result));
#endif
  EXPECT(result == cudaDriverEntryPointSuccess);
  return entry;
}

static void check_tile(half *in, half *out) {
  const int rows = 40;
  auto encode = (decltype(&cuTensorMapEncodeTiled))find("cuTensorMapEncodeTiled");
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
}

// An interleaved layout, N C/8 W 8: two images of three slices of 20 places.
static void check_slices(half *in, half *out) {
  const int width = 20, slices = 3;
  auto encode = (decltype(&cuTensorMapEncodeTiled))find("cuTensorMapEncodeTiled");
  CUtensorMap map;
  cuuint64_t size[3] = {width, slices, 2},
             stride[2] = {width * SLICE * sizeof(half), slices * width * SLICE * sizeof(half)};
  cuuint32_t box[3] = {WIDTH, 1, 2}, steps[3] = {1, 1, 1};
  CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, in, size, stride, box, steps, CU_TENSOR_MAP_INTERLEAVE_16B,
             CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  EXPECT(result == CUDA_SUCCESS);
  copy_slices<<<1, 128>>>(map, out, 15, 1);  // places 20 to 22 are outside: zeros
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 2 * WIDTH * SLICE; i++) {
    int image = i / (WIDTH * SLICE), w = 15 + i / SLICE % WIDTH;
    float expected = w < width ? __half2float(in[((image * slices + 1) * width + w) * SLICE + i % SLICE]) : 0;
    EXPECT(__half2float(out[i]) == expected);
  }
}

// What the taps of a 3 x 3 filter see of an image of 7 x 5 pixels, with a border of one pixel of zeros.
static void check_pixels(half *in, half *out) {
  const int width = 7, height = 5, one[2] = {-1, -1};
  auto encode = (decltype(&cuTensorMapEncodeIm2col))find("cuTensorMapEncodeIm2col");
  CUtensorMap map;
  cuuint64_t size[4] = {CHANNELS, width, height, 1},
             stride[3] = {CHANNELS * sizeof(half), width * CHANNELS * sizeof(half),
                          width * height * CHANNELS * sizeof(half)};
  cuuint32_t steps[4] = {1, 1, 1, 1};
  auto make = [&](int pixels) {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, in, size, stride, one, one, CHANNELS, pixels, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  EXPECT(make(0) == CUDA_ERROR_INVALID_VALUE && make(1025) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(make(PIXELS) == CUDA_SUCCESS);
  for (int tap = 0; tap < 9; tap++) {
    copy_pixels<<<1, 128>>>(map, out, -1, 0, tap % 3, tap / 3);  // the first place of the filter's second row
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < PIXELS * CHANNELS; i++) {
      int pixel = i / CHANNELS, w = pixel % width - 1 + tap % 3, h = pixel / width + tap / 3;
      bool inside = w >= 0 && w < width && h < height && pixel < 4 * width;  // there is no second image
      EXPECT(__half2float(out[i]) == (inside ? __half2float(in[(h * width + w) * CHANNELS + i % CHANNELS]) : 0));
    }
  }
}

int main() {
  half *in, *out;
  CHECK(cudaMallocManaged(&in, 40 * COLUMNS * sizeof(half)));
  CHECK(cudaMallocManaged(&out, ROWS * COLUMNS * sizeof(half)));
  for (int i = 0; i < 40 * COLUMNS; i++) in[i] = __int2half_rn(i % 1000);
  check_tile(in, out);
  check_slices(in, out);
  check_pixels(in, out);
  printf("right\n");
}
