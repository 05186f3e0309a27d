// Matrix instructions of one warp: mma.sync, ldmatrix, stmatrix, movmatrix, wmma.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "matrices.h"

#define MMA_F32(NAME, TEXT, A_LIST, B_LIST, ...)                                                                       \
  do {                                                                                                                 \
    float d[4];                                                                                                        \
    memcpy(d, c, 16);                                                                                                  \
    asm volatile("mma.sync.aligned." TEXT " {%0, %1, %2, %3}, " A_LIST ", " B_LIST ", {%0, %1, %2, %3};"               \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : __VA_ARGS__);                                                                                       \
    memcpy(out->NAME[lane], d, 16);                                                                                    \
  } while (0)
#define MMA_F16(NAME, TEXT, A_LIST, B_LIST, ...)                                                                       \
  do {                                                                                                                 \
    uint32_t d[2] = {c[0], c[1]};                                                                                      \
    asm volatile("mma.sync.aligned." TEXT " {%0, %1}, " A_LIST ", " B_LIST ", {%0, %1};"                               \
                 : "+r"(d[0]), "+r"(d[1])                                                                              \
                 : __VA_ARGS__);                                                                                       \
    memcpy(out->NAME[lane], d, 8);                                                                                     \
  } while (0)

__device__ static void multiply(const FragmentCase *in, FragmentResult *out, int lane) {
  const uint32_t *a = in->a[lane], *b = in->b[lane], *c = in->c[lane];
#define K16 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
#define K8 "r"(a[0]), "r"(a[1]), "r"(b[0])
  MMA_F32(f32_f16, "m16n8k16.row.col.f32.f16.f16.f32", "{%4, %5, %6, %7}", "{%8, %9}", K16);
  MMA_F32(f32_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", "{%4, %5, %6, %7}", "{%8, %9}", K16);
  MMA_F32(f32_f16_k8, "m16n8k8.row.col.f32.f16.f16.f32", "{%4, %5}", "{%6}", K8);
  MMA_F32(f32_bf16_k8, "m16n8k8.row.col.f32.bf16.bf16.f32", "{%4, %5}", "{%6}", K8);
  MMA_F16(f16_f16, "m16n8k16.row.col.f16.f16.f16.f16", "{%2, %3, %4, %5}", "{%6, %7}", K16);
  MMA_F16(f16_f16_k8, "m16n8k8.row.col.f16.f16.f16.f16", "{%2, %3}", "{%4}", K8);
}

#define LOAD_1(T, d) asm volatile("ldmatrix.sync.aligned.m8n8.x1" T ".shared.b16 {%0}, [%1];" : "=r"((d)[0]) : "r"(row))
#define LOAD_2(T, d)                                                                                                   \
  asm volatile("ldmatrix.sync.aligned.m8n8.x2" T ".shared.b16 {%0, %1}, [%2];" : "=r"((d)[0]), "=r"((d)[1]) : "r"(row))
#define LOAD_4(T, d)                                                                                                   \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" T ".shared.b16 {%0, %1, %2, %3}, [%4];"                                 \
               : "=r"((d)[0]), "=r"((d)[1]), "=r"((d)[2]), "=r"((d)[3])                                                \
               : "r"(row))
#define STORE_1(T)                                                                                                     \
  asm volatile("stmatrix.sync.aligned.m8n8.x1" T ".shared.b16 [%0], {%1};" ::"r"(row), "r"(a[0]) : "memory")
#define STORE_2(T)                                                                                                     \
  asm volatile("stmatrix.sync.aligned.m8n8.x2" T ".shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(a[0]), "r"(a[1])        \
               : "memory")
#define STORE_4(T)                                                                                                     \
  asm volatile("stmatrix.sync.aligned.m8n8.x4" T ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(a[0]),          \
               "r"(a[1]), "r"(a[2]), "r"(a[3])                                                                         \
               : "memory")

__device__ static void fill(uint32_t *image, const FragmentCase *in, int lane) {
  __syncwarp();
  for (int i = lane; i < 256 * 4; i += 32) image[i] = in->image[i];
  __syncwarp();
}

__device__ static void keep(const uint32_t *image, uint32_t *stored, int lane) {
  __syncwarp();
  for (int i = lane; i < 256 * 4; i += 32) stored[i] = image[i];
}

#define STORED(store, image, stored)                                                                                   \
  do {                                                                                                                 \
    fill(image, in, lane);                                                                                             \
    store;                                                                                                             \
    keep(image, stored, lane);                                                                                         \
  } while (0)

extern "C" __global__ void fragments(const FragmentCase *cases, FragmentResult *results) {
  __shared__ __align__(128) uint32_t image[256 * 4];
  const FragmentCase *in = &cases[blockIdx.x];
  FragmentResult *out = &results[blockIdx.x];
  int lane = threadIdx.x;
  const uint32_t *a = in->a[lane];
  uint32_t row = (uint32_t)__cvta_generic_to_shared(image) + 16 * in->row[lane], d[14];
  multiply(in, out, lane);
  fill(image, in, lane);
  LOAD_1("", d);
  LOAD_2("", d + 1);
  LOAD_4("", d + 3);
  LOAD_1(".trans", d + 7);
  LOAD_2(".trans", d + 8);
  LOAD_4(".trans", d + 10);
  for (int i = 0; i < 14; i++) out->load[lane][i] = d[i];
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out->moved[lane]) : "r"(a[0]));
  STORED(STORE_1(""), image, out->stored[0]);
  STORED(STORE_2(""), image, out->stored[1]);
  STORED(STORE_4(""), image, out->stored[2]);
  STORED(STORE_1(".trans"), image, out->stored[3]);
  STORED(STORE_2(".trans"), image, out->stored[4]);
  STORED(STORE_4(".trans"), image, out->stored[5]);
}

using namespace nvcuda;

__device__ static const float *matrix_c(const WmmaInput *in, float) { return in->c32; }
__device__ static const half *matrix_c(const WmmaInput *in, half) { return (const half *)in->c16; }

template <int M, int N, typename In, typename LayoutA, typename LayoutB, typename C, typename D>
__device__ static void multiply_wmma(const WmmaInput *in, D *out, wmma::layout_t layout) {
  wmma::fragment<wmma::matrix_a, M, N, 16, In, LayoutA> a;
  wmma::fragment<wmma::matrix_b, M, N, 16, In, LayoutB> b;
  wmma::fragment<wmma::accumulator, M, N, 16, C> c;
  wmma::fragment<wmma::accumulator, M, N, 16, D> d;
  wmma::load_matrix_sync(a, (const In *)in->a, MATRIX_SIZE);
  wmma::load_matrix_sync(b, (const In *)in->b, MATRIX_SIZE);
  wmma::load_matrix_sync(c, matrix_c(in, C()), MATRIX_SIZE, layout);
  wmma::mma_sync(d, a, b, c);
  wmma::store_matrix_sync(out, d, MATRIX_SIZE, layout);
}

#define WMMA(NAME, M, N, IN, A, B, C, D, LAYOUT)                                                                       \
  extern "C" __global__ void NAME(const WmmaInput *in, D *out) {                                                       \
    multiply_wmma<M, N, IN, wmma::A##_major, wmma::B##_major, C, D>(in, out, wmma::mem_##LAYOUT##_major);              \
  }
WMMA(wmma_16_16_rr, 16, 16, half, row, row, float, float, row)
WMMA(wmma_16_16_rc, 16, 16, half, row, col, float, float, row)
WMMA(wmma_16_16_cr, 16, 16, half, col, row, float, float, col)
WMMA(wmma_16_16_cc, 16, 16, half, col, col, float, float, col)
WMMA(wmma_32_8_rr, 32, 8, half, row, row, float, float, row)
WMMA(wmma_32_8_cc, 32, 8, half, col, col, float, float, col)
WMMA(wmma_8_32_rc, 8, 32, half, row, col, float, float, row)
WMMA(wmma_8_32_cr, 8, 32, half, col, row, float, float, col)
WMMA(wmma_16_16_f16, 16, 16, half, row, col, half, half, row)
WMMA(wmma_32_8_f16, 32, 8, half, col, row, half, half, col)
WMMA(wmma_8_32_f16, 8, 32, half, row, row, half, half, row)
WMMA(wmma_16_16_f32_of_f16, 16, 16, half, row, col, half, float, row)
WMMA(wmma_16_16_f16_of_f32, 16, 16, half, row, col, float, half, row)
WMMA(wmma_16_16_bf16, 16, 16, __nv_bfloat16, row, col, float, float, row)
WMMA(wmma_32_8_bf16, 32, 8, __nv_bfloat16, col, col, float, float, row)
WMMA(wmma_8_32_bf16, 8, 32, __nv_bfloat16, row, row, float, float, col)
