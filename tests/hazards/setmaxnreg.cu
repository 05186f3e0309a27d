// setmaxnreg moves registers between warpgroups: what one gives back the others may take. The launch allots them, as
// many a thread as __launch_bounds__(threads, blocks) lets fit: 65536 / (384 * 1), in eights, are 168.
#include "ptx.h"

// Two consumers with 240 and a producer with 32: 512 a thread, and three times 168 are 504.
// launch budget: grid 1 block 384 args float[384] float[384]=zero
extern "C" __global__ void __launch_bounds__(384, 1) budget(const float *in, float *out) {
  if (threadIdx.x < 128) {
#ifdef REPAIRED
    registers_dec<24>();
#else
    registers_dec<32>();
#endif
  } else {
    registers_inc<240>();  // HAZARD(budget): setmaxnreg misuse
  }
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// The consumers ask for more, and the producer keeps what it has.
// launch keeps_all: grid 1 block 256 args float[256] float[256]=zero
extern "C" __global__ void __launch_bounds__(256, 2) keeps_all(const float *in, float *out) {
  if (threadIdx.x < 128) {
#ifdef REPAIRED
    registers_dec<40>();
#endif
    out[threadIdx.x] = -in[threadIdx.x];
  } else {
    registers_inc<216>();  // HAZARD(keeps_all): setmaxnreg misuse
    out[threadIdx.x] = 2 * in[threadIdx.x];
  }
}

// The producer is one warp, and only that gives registers back: its three neighbours belong to the warpgroup too.
// launch one_warp: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void __launch_bounds__(128, 1) one_warp(const float *in, float *out) {
#ifndef REPAIRED
  if (threadIdx.x < 32)
#endif
    registers_dec<24>();  // HAZARD(one_warp): setmaxnreg misuse
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// The warps of a warpgroup ask for different numbers.
// launch two_numbers: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void __launch_bounds__(128, 2) two_numbers(const float *in, float *out) {
#ifdef REPAIRED
  registers_dec<40>();
#else
  if (threadIdx.x < 64)
    registers_dec<40>();  // HAZARD(two_numbers): setmaxnreg misuse
  else
    registers_dec<48>();  // OTHER(two_numbers)
#endif
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// ptxas must know what the launch allots: without the number of blocks it ignores setmaxnreg.
#ifdef REPAIRED
#define BOUNDS __launch_bounds__(256, 1)
#else
#define BOUNDS __launch_bounds__(256)
#endif
// launch no_bounds: grid 1 block 256 args float[256] float[256]=zero
extern "C" __global__ void BOUNDS no_bounds(const float *in, float *out) {
  if (threadIdx.x < 128) registers_dec<40>();  // HAZARD(no_bounds): setmaxnreg misuse
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// .inc to fewer than there are: 128 threads of a block have 256 each.
// launch inc_to_fewer: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void __launch_bounds__(128, 1) inc_to_fewer(const float *in, float *out) {
#ifdef REPAIRED
  registers_dec<160>();
#else
  registers_inc<160>();   // HAZARD(inc_to_fewer): setmaxnreg misuse
#endif
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// .dec to more than there are: four blocks of 256 threads have 64 each.
// launch dec_to_more: grid 1 block 256 args float[256] float[256]=zero
extern "C" __global__ void __launch_bounds__(256, 4) dec_to_more(const float *in, float *out) {
  if (threadIdx.x < 128) {
#ifdef REPAIRED
    registers_dec<40>();
#else
    registers_dec<72>();  // HAZARD(dec_to_more): setmaxnreg misuse
#endif
  }
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// Before its next setmaxnreg a warpgroup must have met after the last one.
// launch twice: grid 1 block 128 args float[128] float[128]=zero
extern "C" __global__ void __launch_bounds__(128, 1) twice(const float *in, float *out) {
  registers_dec<40>();  // OTHER(twice)
  out[threadIdx.x] = 2 * in[threadIdx.x];
#ifdef REPAIRED
  __syncthreads();
#endif
  registers_inc<80>();  // HAZARD(twice): setmaxnreg misuse
  out[threadIdx.x] += 1;
}

// The FlashAttention split: 24 + 240 + 240 of 168 each fit to the last register.
// launch to_the_last: grid 1 block 384 args float[384] float[384]=zero
extern "C" __global__ void __launch_bounds__(384, 1) to_the_last(const float *in, float *out) {
  if (threadIdx.x < 128)
    registers_dec<24>();
  else
    registers_inc<240>();
  out[threadIdx.x] = 2 * in[threadIdx.x];
}
