// Accesses whose address is not a multiple of their size.
#include <cuda_fp16.h>

#include "kernels.h"

// Rows of 33 floats: only every fourth one begins at a multiple of 16 bytes.
// launch odd_pitch: grid 1 block 8 args float[264] float[8]=zero
extern "C" __global__ void odd_pitch(const float *in, float *out) {
  const float *row = in + 33 * threadIdx.x;
#ifdef REPAIRED
  float4 four = make_float4(row[0], row[1], row[2], row[3]);
#else
  float4 four = *(const float4 *)row;  // HAZARD(odd_pitch): misaligned access
#endif
  out[threadIdx.x] = four.x + four.y + four.z + four.w;
}

// Pairs begin at every second float, not at each.
// launch pairs: grid 1 block 32 args float[64] float[32]=zero
extern "C" __global__ void pairs(const float *in, float *out) {
#ifdef REPAIRED
  const float *first = in + 2 * threadIdx.x;
#else
  const float *first = in + threadIdx.x;
#endif
  float2 pair = *(const float2 *)first;  // HAZARD(pairs): misaligned access
  out[threadIdx.x] = pair.x * pair.y;
}

// Points of three floats are no vectors of four.
// launch points: grid 1 block 32 args float[100] float[32]=zero
extern "C" __global__ void points(const float *in, float *out) {
  const float *point = in + 3 * threadIdx.x;
#ifdef REPAIRED
  float3 p = make_float3(point[0], point[1], point[2]);
#else
  float4 p = *(const float4 *)point;  // HAZARD(points): misaligned access
#endif
  out[threadIdx.x] = p.x + p.y + p.z;
}

// Two halves are read as one half2 from an odd index.
// launch half_pair: grid 1 block 32 args half[64] float[32]=zero
extern "C" __global__ void half_pair(const half *in, float *out) {
  int i = threadIdx.x;
#ifdef REPAIRED
  half2 pair = __halves2half2(in[i], in[i + 1]);
#else
  half2 pair = *(const half2 *)(in + i);  // HAZARD(half_pair): misaligned access
#endif
  out[i] = __low2float(pair) + __high2float(pair);
}

// A header of four bytes, then doubles: none of them lies at a multiple of eight.
// launch header: grid 1 block 16 args byte[132] double[16]=zero
extern "C" __global__ void header(const unsigned char *file, double *out) {
  const unsigned char *at = file + 4 + 8 * threadIdx.x;
#ifdef REPAIRED
  double value;
  memcpy(&value, at, sizeof value);
#else
  double value = *(const double *)at;  // HAZARD(header): misaligned access
#endif
  out[threadIdx.x] = value;
}

// The floats begin behind 33 flags of a byte each.
// launch carved: grid 1 block 32 shared 256 args float[32] float[32]=zero
extern "C" __global__ void carved(const float *in, float *out) {
  extern __shared__ unsigned char shared[];
  int t = threadIdx.x;
#ifdef REPAIRED
  float *values = (float *)(shared + 36);
#else
  float *values = (float *)(shared + 33);
#endif
  values[t] = in[t];  // HAZARD(carved): misaligned access
  shared[t] = t & 1;
  __syncwarp();
  out[t] = shared[31 - t] ? values[31 - t] : 0;
}

// Atomics need aligned addresses as all accesses do.
// launch counter: grid 1 block 32 args byte[16]=zero
extern "C" __global__ void counter(unsigned char *record) {
#ifdef REPAIRED
  int *count = (int *)(record + 8);
#else
  int *count = (int *)(record + 6);
#endif
  atomicAdd(count, 1);  // HAZARD(counter): misaligned access
}
