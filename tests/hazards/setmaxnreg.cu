// setmaxnreg moves registers between warpgroups: what one gives back the others may take. The launch allots them, as
// many a thread as __launch_bounds__(threads, blocks) lets fit, 65536 / (384 * 1), in eights, are 168; but no more than the
// kernel's largest setmaxnreg.inc.
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
  if (threadIdx.x < 128) registers_dec<40>();  // HAZARD(no_bounds): note setmaxnreg misuse
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// .inc to fewer than there are: ptxas starts the kernel with its largest count, 200.
// launch inc_to_fewer: grid 1 block 256 args float[256] float[256]=zero
extern "C" __global__ void __launch_bounds__(256, 1) inc_to_fewer(const float *in, float *out) {
  if (threadIdx.x < 128) {
    registers_inc<200>();
  } else {
#ifdef REPAIRED
    registers_dec<160>();
#else
    registers_inc<160>();  // HAZARD(inc_to_fewer): setmaxnreg misuse
#endif
  }
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

// 24 + 240 of 255 that would fit: ptxas starts the kernel with 240, so the consumers' .inc changes nothing.
// launch inc_to_the_same: grid 1 block 256 args float[256] float[256]=zero
extern "C" __global__ void __launch_bounds__(256, 1) inc_to_the_same(const float *in, float *out) {
  if (threadIdx.x < 128)
    registers_dec<24>();
  else
    registers_inc<240>();
  out[threadIdx.x] = 2 * in[threadIdx.x];
}

// All of it together, and nothing wrong: a producer that loads by TMA, two consumers whose products take turns, tiles given
// back, results stored by TMA from shared memory that the next tile's results use again.
// launch ping_pong: grid 1 block 384 args half[4096] half[1024] float[2048]=zero 2 5
extern "C" __global__ void __launch_bounds__(384, 1)
    ping_pong(const half *queries, const half *keys, float *out, int tiles, int steps) {
  enum { STAGES = 2, CONSUMERS = 2, TURN = 1, RESULT = TURN + CONSUMERS };
  __shared__ alignas(128) half q[CONSUMERS][1024], k[STAGES][128];
  __shared__ alignas(16) float result[CONSUMERS][512];
  __shared__ uint64_t q_full[CONSUMERS], q_empty[CONSUMERS], full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) {
    for (int c = 0; c < CONSUMERS; c++) mbarrier_init(&q_full[c], 1), mbarrier_init(&q_empty[c], 4);
    for (int s = 0; s < STAGES; s++) mbarrier_init(&full[s], 1), mbarrier_init(&empty[s], 4 * CONSUMERS);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    registers_dec<24>();
    if (threadIdx.x != 0) return;
    for (int tile = 0, step = 0; tile < tiles; tile++) {
      for (int c = 0; c < CONSUMERS; c++) {
        mbarrier_wait(&q_empty[c], (tile + 1) % 2);
        mbarrier_arrive_expect(&q_full[c], sizeof q[c]);
        bulk_load(q[c], queries + 1024 * (CONSUMERS * tile + c), sizeof q[c], &q_full[c]);
      }
      for (int i = 0; i < steps; i++, step++) {
        int s = step % STAGES;
        mbarrier_wait(&empty[s], (step / STAGES + 1) % 2);
        mbarrier_arrive_expect(&full[s], sizeof k[s]);
        bulk_load(k[s], keys + 128 * i, sizeof k[s], &full[s]);
      }
    }
    return;
  }
  registers_inc<240>();
  int c = threadIdx.x / 128 - 1, t = threadIdx.x % 128;
  if (c == 1) barrier_arrive(TURN + 0, 256);
  for (int tile = 0, step = 0; tile < tiles; tile++) {
    float d[4] = {};
    mbarrier_wait(&q_full[c], tile % 2);
    for (int i = 0; i < steps; i++, step++) {
      int s = step % STAGES;
      mbarrier_wait(&full[s], step / STAGES % 2);
      barrier_sync(TURN + c, 256);
      wgmma_fence();
      wgmma(d, describe(q[c]), describe(k[s]));
      wgmma_commit();
      barrier_arrive(TURN + 1 - c, 256);
      wgmma_wait<0>();
      if (t % 32 == 0) mbarrier_arrive(&empty[s]);
      for (int j = 0; j < 4; j++) d[j] *= 0.5f;
    }
    if (t % 32 == 0) mbarrier_arrive(&q_empty[c]);
    if (t == 0) bulk_wait_read<0>();
    barrier_sync(RESULT + c, 128);
    for (int j = 0; j < 4; j++) result[c][4 * t + j] = d[j];
    fence_async();
    barrier_sync(RESULT + c, 128);
    if (t == 0) {
      bulk_store(out + 512 * (CONSUMERS * tile + c), result[c], sizeof result[c]);
      bulk_commit();
    }
  }
  if (t == 0) bulk_wait<0>();
}
