// Kernels that depend on which threads run when: lanes that diverge, and threads that wait for each other. For
// tests/test_scheduling.c.
#include "divergent.h"

#define DIVERGENT_KERNEL(name)                                                                                         \
  extern "C" __global__ void kernel_##name(const int *in, int *out) {                                                  \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                     \
    out[i] = name(in[i]);                                                                                              \
  }
DIVERGENT_FUNCTIONS(DIVERGENT_KERNEL)

// After lanes have gone different ways, all meet again: the sum over the warp of what each found.
extern "C" __global__ void reconverge(const int *in, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, x = collatz(in[i]);
  if (x % 2) x = switches(in[i]);
  unsigned large = __ballot_sync(0xffffffff, x > 20);
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffff, x, d);
  out[i] = x + __popc(large);
}

// Lanes shuffle with those that are in the same round of the same loop.
extern "C" __global__ void shrinking_teams(const int *in, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, rounds = in[i] % 5, sum = 0;
  unsigned team = 0xffffffff;
  for (int k = 0;; k++) {
    team = __ballot_sync(team, k < rounds);
    if (k >= rounds) break;
    sum += __popc(team) * 10 + __reduce_max_sync(team, rounds);
  }
  out[i] = sum;
}

// ---- threads that wait for each other ----

// All threads, of one warp and of others, enter one after the other. inside must be 0 whenever one enters.
extern "C" __global__ void critical_section(int *lock, int *inside, int *sum) {
  while (atomicCAS(lock, 0, 1)) {}
  __threadfence();
  int others = *inside;
  *inside = 1;
  *sum += 1 + 1000 * others;
  *inside = 0;
  __threadfence();
  atomicExch(lock, 0);
}

// The same where taking the lock and giving it back are in the two arms of one loop.
extern "C" __global__ void try_lock(int *lock, int *sum) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *sum += threadIdx.x;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// A lane waits for a lane of its own warp that goes the other way.
extern "C" __global__ void lane_waits(int *out) {
  __shared__ volatile int flag;
  int lane = threadIdx.x;
  flag = 0;
  __syncwarp();
  if (lane == 0) {
    while (flag == 0) {}
    *out = flag;
  } else if (lane == 31) {
    flag = 42;
  }
}

// Two warps hand a value to and fro, each spinning until it is its turn.
extern "C" __global__ void ping_pong(int *out, int rounds) {
  __shared__ volatile int turn;
  __shared__ int value;
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    turn = 0;
    value = 1;
  }
  __syncthreads();
  if (threadIdx.x % 32) return;
  for (int k = 0; k < rounds; k++) {
    while (turn % 2 != warp) {}
    __threadfence_block();
    value = 3 * value + warp;
    __threadfence_block();
    turn = turn + 1;
  }
  while (turn < 2 * rounds) {}
  __threadfence_block();
  if (warp == 1) *out = value;
}

// A block asks, another answers; which of the two comes first in the grid must not matter.
extern "C" __global__ void ask(volatile int *question, volatile int *answer, int *out, int asker) {
  if (threadIdx.x) return;
  if (blockIdx.x == asker) {
    *question = 20;
    while (*answer == 0) {}
    *out = *answer;
  } else {
    while (*question == 0) {}
    *answer = *question + 1;
  }
}

// The grid meets between phases, in each of which a block uses what its neighbour did in the last.
extern "C" __global__ void grid_phases(int *arrived, int *values, int phases) {
  for (int phase = 0; phase < phases; phase++) {
    if (threadIdx.x == 0) {
      int from = (blockIdx.x + 1) % gridDim.x;
      values[(phase + 1) * gridDim.x + blockIdx.x] = 2 * values[phase * gridDim.x + from] + 1;
      __threadfence();
      atomicAdd(arrived, 1);
      while (*(volatile int *)arrived < (phase + 1) * gridDim.x) {}
      __threadfence();
    }
    __syncthreads();
  }
}

// Some warps spin on a flag that is set only after others have met at a barrier.
extern "C" __global__ void barrier_and_flag(int *out) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (flag < 64) {}
    if (threadIdx.x == 0) *out = flag;
  } else {
    asm volatile("bar.sync 1, 64;" : : : "memory");
    atomicAdd((int *)&flag, 1);
  }
}
