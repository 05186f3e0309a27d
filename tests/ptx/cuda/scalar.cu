// Arithmetic of every width: integers to 128 bits, float, double, half2 and bfloat162, conversions, bit operations,
// atomics, votes and shuffles.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace cg = cooperative_groups;

extern "C" __global__ void integers(int *a, unsigned *b, long long *c, unsigned long long *d, short *s,
                                    signed char *t) {
  int i = threadIdx.x;
  a[i] = a[i] / (s[i] + 1) + a[i] % 7 + __mulhi(a[i], 12345) + abs(a[i]) + __popc(b[i]) + __clz(a[i]) + __ffs(a[i]);
  b[i] = __brev(b[i]) ^ __byte_perm(b[i], a[i], 0x3214) | __funnelshift_l(b[i], a[i], 5) + __sad(a[i], 3, b[i]);
  c[i] = c[i] / 3 + (c[i] >> t[i]) - __mul64hi(c[i], 77);
  d[i] = __umul64hi(d[i], c[i]) + (unsigned long long)(((unsigned __int128)d[i] * d[i + 1]) >> 70);
  s[i] = (short)(s[i] * t[i] + min(s[i], (short)3));
  t[i] = (signed char)(t[i] + __dp4a(a[i], (int)b[i], 1));
  b[i] += __vadd4(b[i], b[i + 1]) + __vmaxs2(b[i], 3);
}

extern "C" __global__ void floats(float *x, double *y, int *n) {
  int i = threadIdx.x;
  x[i] = sinf(x[i]) + cosf(x[i]) * tanf(x[i]) + powf(x[i], 1.7f) + fmodf(x[i], 3.0f) + __fdividef(x[i], 7.0f) +
         __frcp_rz(x[i]) + __fmaf_ru(x[i], x[i], 2.0f) + erff(x[i]) + tanhf(x[i]) + __saturatef(x[i]) + 1.5e-3f;
  y[i] = sin(y[i]) + exp(y[i]) / sqrt(y[i]) + fma(y[i], 2.5, 1e-300) + __ddiv_rd(y[i], 3.0) + 6.02214076e23;
  n[i] = __float2int_rn(x[i]) + (int)y[i] + __double2hiint(y[i]) + isnan(x[i]) + signbit(y[i]) + __float_as_int(x[i]);
}

extern "C" __global__ void halves(__half2 *h, __nv_bfloat162 *b, float *x, __nv_fp8_e4m3 *f8) {
  int i = threadIdx.x;
  h[i] = __hfma2(h[i], h[i + 1], __float2half2_rn(0.5f)) + h2exp2(h[i]) + __hmax2(h[i], h[i + 1]);
  b[i] = __hfma2_relu(b[i], b[i + 1], __float2bfloat162_rn(x[i])) * b[i];
  x[i] = __low2float(h[i]) + __bfloat162float(__high2bfloat16(b[i])) + (float)(__half)x[i] + (float)f8[i];
  if (__hlt(h[i].x, h[i].y) || __hbne2(h[i], h[i + 1])) f8[i] = __nv_fp8_e4m3(x[i]);
}

extern "C" __global__ void together(int *a, float *x, unsigned long long *d, double *y, unsigned short *s) {
  int i = threadIdx.x;
  atomicAdd(&a[0], i);
  atomicAdd_block(&x[1], 1.0f);
  atomicAdd(y, 2.0);
  atomicMax(d, (unsigned long long)i);
  a[i] = atomicCAS(&a[3], i, 7) + atomicExch_system(&a[4], i) + atomicInc((unsigned *)&a[5], 9);
  s[i] = atomicCAS(&s[7], (unsigned short)1, (unsigned short)2);
  unsigned mask = __ballot_sync(0xffffffffu, a[i] > 3);
  a[i] += __shfl_xor_sync(mask, a[i], 16) + __any_sync(mask, i) + __all_sync(mask, i) + __match_any_sync(mask, i & 3);
  a[i] += __reduce_add_sync(0xffffffffu, i) + __popc(__activemask());
  auto warp = cg::tiled_partition<8>(cg::this_thread_block());
  x[i] = cg::reduce(warp, x[i], cg::plus<float>());
  __threadfence();
  __nanosleep(20);
  d[i] = clock64() + clock();
}
