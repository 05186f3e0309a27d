// mbarriers count arrivals and bytes, phase after phase. Whoever waits names a phase by its parity alone.
#include "ptx.h"

enum { THREADS = 64, BYTES = THREADS * sizeof(float) };

__device__ void init(uint64_t *barrier, int arrivals) {
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, arrivals);
    fence_mbarrier_init();
  }
  __syncthreads();
}

// The expected bytes are elements.
// launch expects_too_few: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void expects_too_few(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0) {
#ifdef REPAIRED
    mbarrier_arrive_expect(&full, BYTES);
#else
    mbarrier_arrive_expect(&full, THREADS);      // HAZARD(expects_too_few): wrong expect_tx
#endif
    bulk_load(tile, in, BYTES, &full);
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// Two copies complete on the mbarrier, and one was expected.
// launch second_copy: grid 1 block 64 args float[128] float[64]=zero
extern "C" __global__ void second_copy(const float *in, float *out) {
  __shared__ alignas(16) float keys[THREADS], values[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0) {
#ifdef REPAIRED
    mbarrier_arrive_expect(&full, sizeof keys + sizeof values);
#else
    mbarrier_arrive_expect(&full, sizeof keys);  // HAZARD(second_copy): wrong expect_tx
#endif
    bulk_load(keys, in, sizeof keys, &full);  // ALSO(second_copy): read before wait
    bulk_load(values, in + 64, sizeof values, &full);  // ALSO(second_copy): formal overwrite in flight
  }
  mbarrier_wait(&full, 0);
  out[t] = keys[63 - t] * values[t];  // ALSO(second_copy): shared-memory race
}

// A tail is copied, and a whole tile expected: the phase never ends.
// launch expects_too_many: grid 1 block 64 args float[48] float[64]=zero 48
extern "C" __global__ void expects_too_many(const float *in, float *out, int n) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0) {
#ifdef REPAIRED
    mbarrier_arrive_expect(&full, n * sizeof *in);
#else
    mbarrier_arrive_expect(&full, BYTES);        // HAZARD(expects_too_many): wrong expect_tx
#endif
    bulk_load(tile, in, n * sizeof *in, &full);
  }
  mbarrier_wait(&full, 0);
  if (t < n) out[t] = tile[n - 1 - t];
}

// An arrival, and nothing said of bytes: the phase may end before the copy does.
// launch expects_nothing: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void expects_nothing(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0) {
#ifdef REPAIRED
    mbarrier_arrive_expect(&full, BYTES);
#endif
    bulk_load(tile, in, BYTES, &full);  // HAZARD(expects_nothing): wrong expect_tx
#ifndef REPAIRED
    mbarrier_arrive(&full);
#endif
  }
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];  // ALSO(expects_nothing): read before wait, ALSO(expects_nothing): formal overwrite in flight
}

// Phase 0 is waited for with parity 1, which is that of the phase before: it counts as over.
// launch wrong_parity: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void wrong_parity(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0) {
    mbarrier_arrive_expect(&full, BYTES);
    bulk_load(tile, in, BYTES, &full);  // ALSO(wrong_parity): shared-memory race, ALSO(wrong_parity): formal overwrite in flight
  }
#ifdef REPAIRED
  mbarrier_wait(&full, 0);
#else
  mbarrier_wait(&full, 1);                       // HAZARD(wrong_parity): mbarrier misuse
#endif
  out[t] = tile[63 - t];  // ALSO(wrong_parity): uninitialised read, ALSO(wrong_parity): read before wait
}

// The parity of a bool that was extended with its sign, as Triton has it: -1 is taken for 1.
// launch minus_one: grid 1 block 64 args float[128] float[64]=zero
extern "C" __global__ void minus_one(const float *in, float *out) {
  __shared__ alignas(16) float tiles[2][THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  float sum = 0;
  init(&full, 1);
  for (int k = 0; k < 2; k++) {
    if (t == 0) {
      mbarrier_arrive_expect(&full, BYTES);
      bulk_load(tiles[k], in + 64 * k, BYTES, &full);
    }
#ifdef REPAIRED
    mbarrier_wait(&full, k);
#else
    mbarrier_wait(&full, -k);                    // HAZARD(minus_one): formal mbarrier misuse
#endif
    sum += tiles[k][63 - t];
    __syncthreads();
  }
  out[t] = sum;
}

// The parity stays the same in every round: the second round waits for the first one's phase, which is over.
// launch same_parity: grid 1 block 64 args float[256] float[64]=zero 4
extern "C" __global__ void same_parity(const float *in, float *out, int rounds) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  float sum = 0;
  init(&full, 1);
  for (int k = 0; k < rounds; k++) {
    if (t == 0) {
      mbarrier_arrive_expect(&full, BYTES);  // ALSO(same_parity): mbarrier misuse
      bulk_load(tile, in + 64 * k, BYTES, &full);  // ALSO(same_parity): read before wait
    }
    __syncthreads();
#ifdef REPAIRED
    mbarrier_wait(&full, k % 2);
#else
    mbarrier_wait(&full, 0);                     // HAZARD(same_parity): mbarrier misuse, ALSO(same_parity): deadlock
#endif
    sum += tile[63 - t];  // ALSO(same_parity): read before wait
    __syncthreads();
  }
  out[t] = sum;
}

// Two stages, and the parity changes with every round instead of every second one.
// launch parity_of_round: grid 1 block 64 args float[512] float[64]=zero 8
extern "C" __global__ void parity_of_round(const float *in, float *out, int rounds) {
  enum { STAGES = 2 };
  __shared__ alignas(16) float tiles[STAGES][THREADS];
  __shared__ uint64_t full[STAGES];
  int t = threadIdx.x;
  float sum = 0;
  init(&full[0], 1);
  init(&full[1], 1);
  for (int k = 0; k < rounds; k++) {
    int s = k % STAGES;
    if (t == 0) {
      mbarrier_arrive_expect(&full[s], BYTES);  // ALSO(parity_of_round): mbarrier misuse
      bulk_load(tiles[s], in + 64 * k, BYTES, &full[s]);  // ALSO(parity_of_round): read before wait
    }
    __syncthreads();
#ifdef REPAIRED
    mbarrier_wait(&full[s], k / STAGES % 2);
#else
    mbarrier_wait(&full[s], k % 2);              // HAZARD(parity_of_round): mbarrier misuse
#endif
    sum += tiles[s][63 - t];  // ALSO(parity_of_round): read before wait, ALSO(parity_of_round): deadlock
    __syncthreads();
  }
  out[t] = sum;
}

// The second use of the buffer is waited for after it was read.
// launch waits_late: grid 1 block 64 args float[128] float[64]=zero
extern "C" __global__ void waits_late(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  float sum = 0;
  init(&full, 1);
  if (t == 0) {
    mbarrier_arrive_expect(&full, BYTES);
    bulk_load(tile, in, BYTES, &full);
  }
  mbarrier_wait(&full, 0);
  sum = tile[63 - t];
  fence_async();  // the loads are over
  __syncthreads();
  if (t == 0) {
    mbarrier_arrive_expect(&full, BYTES);
    bulk_load(tile, in + 64, BYTES, &full);  // OTHER(waits_late), ALSO(waits_late): shared-memory race
  }
#ifdef REPAIRED
  mbarrier_wait(&full, 1);
#endif
  sum += tile[63 - t];  // HAZARD(waits_late): read before wait
#ifndef REPAIRED
  mbarrier_wait(&full, 1);
#endif
  out[t] = sum;
}

// Each problem initialises the mbarrier anew, which still is one.
// launch init_again: grid 1 block 64 args float[128] float[64]=zero 2
extern "C" __global__ void init_again(const float *in, float *out, int problems) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < problems; k++) {
    if (t == 0) {
      mbarrier_init(&full, 1);  // HAZARD(init_again): formal mbarrier misuse
      fence_mbarrier_init();
      mbarrier_arrive_expect(&full, BYTES);
      bulk_load(tile, in + 64 * k, BYTES, &full);
    }
    __syncthreads();
    mbarrier_wait(&full, 0);
    sum += tile[63 - t];
    __syncthreads();
#ifdef REPAIRED
    if (t == 0) mbarrier_inval(&full);
#endif
  }
  out[t] = sum;
}

// The producer uses the mbarrier, and no barrier stands between that and its initialisation by another warp.
// launch init_unordered: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void init_unordered(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
#ifdef REPAIRED
  __syncthreads();
#endif
  if (t == 32) {
    mbarrier_arrive_expect(&full, BYTES);  // HAZARD(init_unordered): mbarrier misuse
    bulk_load(tile, in, BYTES, &full);  // ALSO(init_unordered): mbarrier misuse
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// Nobody initialises the second of two mbarriers.
// launch one_of_two: grid 1 block 64 args float[128] float[64]=zero
extern "C" __global__ void one_of_two(const float *in, float *out) {
  __shared__ alignas(16) float tiles[2][THREADS];
  __shared__ uint64_t full[2];
  int t = threadIdx.x;
  init(&full[0], 1);
#ifdef REPAIRED
  init(&full[1], 1);
#endif
  for (int k = 0; k < 2 && t == 0; k++) {
    mbarrier_arrive_expect(&full[k], BYTES);  // HAZARD(one_of_two): mbarrier misuse
    bulk_load(tiles[k], in + 64 * k, BYTES, &full[k]);
  }
  mbarrier_wait(&full[0], 0);
  mbarrier_wait(&full[1], 0);  // ALSO(one_of_two): mbarrier misuse
  out[t] = tiles[0][63 - t] + tiles[1][t];
}

// A warp is expected, and every thread arrives: the phases run away.
// launch too_many_arrive: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void too_many_arrive(const float *in, float *out) {
  __shared__ float tile[THREADS];
  __shared__ uint64_t done;
  int t = threadIdx.x;
#ifdef REPAIRED
  init(&done, THREADS);
#else
  init(&done, THREADS / 32);
#endif
  tile[t] = in[t];
  mbarrier_arrive(&done);  // HAZARD(too_many_arrive): mbarrier misuse
  mbarrier_wait(&done, 0);  // ALSO(too_many_arrive): deadlock
  out[t] = tile[63 - t];
}

// Every thread is expected, and one of each warp arrives.
// launch too_few_arrive: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void too_few_arrive(const float *in, float *out) {
  __shared__ float tile[THREADS];
  __shared__ uint64_t done;
  int t = threadIdx.x;
#ifdef REPAIRED
  init(&done, THREADS / 32);
#else
  init(&done, THREADS);
#endif
  tile[t] = in[t];
  __syncwarp();
  if (t % 32 == 0) mbarrier_arrive(&done);
  mbarrier_wait(&done, 0);  // HAZARD(too_few_arrive): deadlock
  out[t] = tile[63 - t];
}

// All threads tell the bytes, not one of them.
// launch all_expect: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void all_expect(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
#ifdef REPAIRED
  if (t == 0)
#endif
    mbarrier_arrive_expect(&full, BYTES);  // HAZARD(all_expect): mbarrier misuse
  if (t == 0) bulk_load(tile, in, BYTES, &full);
  mbarrier_wait(&full, 0);
  out[t] = tile[63 - t];
}

// A fresh mbarrier is in phase 0: the first wait for an empty buffer must name the phase before, or nobody ever begins.
// launch first_empty: grid 1 block 64 args float[128] float[32]=zero 4
extern "C" __global__ void first_empty(const float *in, float *out, int rounds) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x;
  init(&full, 1);
  init(&empty, 32);
  if (t == 32) {
    for (int k = 0; k < rounds; k++) {
#ifdef REPAIRED
      mbarrier_wait(&empty, (k + 1) % 2);
#else
      mbarrier_wait(&empty, k % 2);  // HAZARD(first_empty): deadlock
#endif
      mbarrier_arrive_expect(&full, 128);
      bulk_load(tile, in + 32 * k, 128, &full);
    }
  } else if (t < 32) {
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
      mbarrier_wait(&full, k % 2);  // ALSO(first_empty): deadlock
      sum += tile[31 - t];
      mbarrier_arrive(&empty);
    }
    out[t] = sum;
  }
}

// The consumers never give a buffer back: with the ring full, producer and consumers wait for each other.
// launch never_released: grid 1 block 64 args float[256] float[32]=zero 8
extern "C" __global__ void never_released(const float *in, float *out, int rounds) {
  enum { STAGES = 2 };
  __shared__ alignas(16) float tiles[STAGES][32];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  int t = threadIdx.x;
  for (int s = 0; s < STAGES; s++) init(&full[s], 1), init(&empty[s], 32);
  if (t == 32) {
    for (int k = 0; k < rounds; k++) {
      int s = k % STAGES;
      mbarrier_wait(&empty[s], (k / STAGES + 1) % 2);  // HAZARD(never_released): deadlock
      mbarrier_arrive_expect(&full[s], 128);
      bulk_load(tiles[s], in + 32 * k, 128, &full[s]);
    }
  } else if (t < 32) {
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
      int s = k % STAGES;
      mbarrier_wait(&full[s], k / STAGES % 2);  // ALSO(never_released): deadlock
      sum += tiles[s][31 - t];
#ifdef REPAIRED
      mbarrier_arrive(&empty[s]);
#endif
    }
    out[t] = sum;
  }
}

// The producer counts whole tiles and leaves, and the consumers wait for the tail.
// launch producer_exits: grid 1 block 64 args float[128] float[32]=zero 100
extern "C" __global__ void producer_exits(const float *in, float *out, int n) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x;
  init(&full, 1);
  init(&empty, 32);
  if (t == 32) {
#ifdef REPAIRED
    int rounds = (n + 31) / 32;
#else
    int rounds = n / 32;
#endif
    for (int k = 0; k < rounds; k++) {
      mbarrier_wait(&empty, (k + 1) % 2);
      mbarrier_arrive_expect(&full, 128);
      bulk_load(tile, in + 32 * k, 128, &full);
    }
  } else if (t < 32) {
    float sum = 0;
    for (int k = 0; k < (n + 31) / 32; k++) {
      mbarrier_wait(&full, k % 2);  // HAZARD(producer_exits): deadlock
      if (32 * k + t < n) sum += tile[t];
      mbarrier_arrive(&empty);
    }
    out[t] = sum;
  }
}

// The tile is one float too long, and the mbarrier lies behind it.
// launch overrun: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void overrun(const float *in, float *out) {
  __shared__ struct {
    float tile[THREADS];
    uint64_t done;
  } shared;
  int t = threadIdx.x;
  init(&shared.done, THREADS);
#ifdef REPAIRED
  int shift = 0;
#else
  int shift = 1;
#endif
  shared.tile[t + shift] = in[t];
  __syncthreads();
  mbarrier_arrive(&shared.done);  // HAZARD(overrun): mbarrier misuse
  mbarrier_wait(&shared.done, 0);
  out[t] = shared.tile[63 - t + shift];
}

// The mbarrier is invalidated, to make room, while a copy is on its way to it.
// launch inval_early: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void inval_early(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0) {
    mbarrier_arrive_expect(&full, BYTES);
    bulk_load(tile, in, BYTES, &full);  // OTHER(inval_early)
#ifndef REPAIRED
    mbarrier_inval(&full);  // HAZARD(inval_early): overwrite in flight
#endif
  }
  __syncthreads();
  mbarrier_wait(&full, 0);  // ALSO(inval_early): mbarrier misuse
  out[t] = tile[63 - t];
}

// Who waits for the phase knows of the copy; who only meets the others before they have waited does not.
// launch one_waits: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void one_waits(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0) {
    mbarrier_arrive_expect(&full, BYTES);
    bulk_load(tile, in, BYTES, &full);  // OTHER(one_waits)
  }
#ifdef REPAIRED
  if (t == 0) mbarrier_wait(&full, 0);
  __syncthreads();
#else
  __syncthreads();
  if (t == 0) mbarrier_wait(&full, 0);
#endif
  out[t] = tile[63 - t];  // HAZARD(one_waits): read before wait
}

// The producer does not wait for the consumers: the second tile falls on the first.
// launch no_empty: grid 1 block 64 args float[128] float[32]=zero 2
extern "C" __global__ void no_empty(const float *in, float *out, int rounds) {
  __shared__ alignas(16) float tile[32];
  __shared__ uint64_t full, empty;
  int t = threadIdx.x;
  init(&full, 1);
  init(&empty, 32);
  if (t == 32) {
    for (int k = 0; k < rounds; k++) {
#ifdef REPAIRED
      mbarrier_wait(&empty, (k + 1) % 2);
#endif
      mbarrier_arrive_expect(&full, 128);  // HAZARD(no_empty): mbarrier misuse
      bulk_load(tile, in + 32 * k, 128, &full);
    }
  } else if (t < 32) {
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
      mbarrier_wait(&full, k % 2);
      sum += tile[31 - t];
      mbarrier_arrive(&empty);
    }
    out[t] = sum;
  }
}

// A relaxed arrival tells nobody that it has come, and so who waits may ask for the phase before: nothing is wrong here.
// launch relaxed_arrival: grid 1 block 64 args float[4] float[4]=zero
extern "C" __global__ void relaxed_arrival(const float *in, float *out) {
  __shared__ alignas(16) float tile[4];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 2);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (t == 0) asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" : : "r"(shared_address(&full)) : "memory");
  if (t < 32) return;
  if (t == 32) {
    mbarrier_arrive_expect(&full, sizeof tile);
    mbarrier_wait(&full, 1);
    bulk_load(tile, in, sizeof tile, &full);
  }
  mbarrier_wait(&full, 0);
  if (t < 36) out[t - 32] = tile[t - 32];
}

// So it is with a copy's arrival: the thread that asks for the phase before need not know that it has come.
// launch copy_arrives: grid 1 block 64 args float[8] float[4]=zero
extern "C" __global__ void copy_arrives(const float *in, float *out) {
  __shared__ alignas(16) float tile[4], other[4];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(&full, 2);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (t == 32) {
    cp_async(other, in + 4);
    cp_async_arrive(&full);
    mbarrier_arrive_expect(&full, sizeof tile);
  }
#pragma unroll 1
  for (int i = 0; i < 8; i++) __syncthreads();  // time for the copy
  if (t == 32) {
    mbarrier_wait(&full, 1);
    bulk_load(tile, in, sizeof tile, &full);
  }
  mbarrier_wait(&full, 0);
  if (t < 4) out[t] = tile[t] + other[t];
}

// The first phase ended by a relaxed arrival. The second one is waited for with the first one's parity all the same.
// launch same_parity_again: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void same_parity_again(const float *in, float *out) {
  __shared__ alignas(16) float tile[THREADS];
  __shared__ uint64_t full;
  int t = threadIdx.x;
  init(&full, 1);
  if (t == 0)
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" : : "r"(shared_address(&full)) : "memory");
  mbarrier_wait(&full, 0);
  __syncthreads();
  if (t == 0) {
    mbarrier_arrive_expect(&full, BYTES);
    bulk_load(tile, in, BYTES, &full);  // ALSO(same_parity_again): read before wait
  }
  __syncthreads();
#ifdef REPAIRED
  mbarrier_wait(&full, 1);
#else
  mbarrier_wait(&full, 0);  // HAZARD(same_parity_again): mbarrier misuse, ALSO(same_parity_again): deadlock
#endif
  out[t] = tile[63 - t];  // ALSO(same_parity_again): formal overwrite in flight
}

// All threads leave the mbarrier for good: no phase will follow, and nothing is wrong.
// launch all_drop_out: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void all_drop_out(const float *in, float *out) {
  __shared__ float tile[THREADS];
  __shared__ uint64_t done;
  int t = threadIdx.x;
  init(&done, THREADS);
  tile[t] = in[t];
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" : : "r"(shared_address(&done)) : "memory");
  mbarrier_wait(&done, 0);
  out[t] = tile[63 - t];
}

// The lanes of warp 0 read one element in turn, by one instruction, and the last of them alone says that it has been read.
// launch last_reader: grid 1 block 64 args int[1] int[32]=zero
extern "C" __global__ void last_reader(const int *in, int *out) {
  __shared__ int x;
  __shared__ uint64_t done;
  int t = threadIdx.x;
  if (t == 0) x = 1 + *in;
  init(&done, 1);
  if (t >= 32) {
    mbarrier_wait(&done, 0);
    if (t == 32) x = 2;  // OTHER(last_reader)
    return;
  }
#pragma unroll 1
  for (int lane = 0; lane < 32; lane++)
    if (t == lane) out[t] = *(volatile int *)&x;  // HAZARD(last_reader): shared-memory race
#ifdef REPAIRED
  __syncwarp();
#endif
  if (t == 31) mbarrier_arrive(&done);
}
