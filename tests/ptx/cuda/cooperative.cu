// Kernels whose blocks wait for each other: with grid.sync(), with barriers and flags of their own. For
// tests/test_cooperative.c.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned load_acquire(const unsigned *address) {
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

__device__ void store_release(unsigned *address, unsigned value) {
  asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

// ---- grid.sync() ----

// In each phase every thread uses what a thread of the next block did in the last. The grid does not meet after phase
// `missing`.
extern "C" __global__ void phases(int *values, int count, int missing) {
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank(), all = grid.num_threads();
  for (int p = 0; p < count; p++) {
    values[(p + 1) * all + i] = 2 * values[p * all + (i + blockDim.x) % all] + 1;
    if (p != missing) grid.sync();
  }
}

// In each round every thread reads all values and then replaces its own. The grid does not meet before the writes of round
// `missing`: then some threads may still read what others write.
extern "C" __global__ void exchange(int *values, int count, int missing) {
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank(), all = grid.num_threads();
  for (int r = 0; r < count; r++) {
    int sum = 0;
    for (int k = 0; k < all; k++) sum += values[k];
    if (r != missing) grid.sync();
    values[i] = sum + i;
    grid.sync();
  }
}

// The two halves of a barrier, with work between them.
extern "C" __global__ void arrive_then_wait(int *values, int *out) {
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank(), all = grid.num_threads();
  values[i] = i;
  auto token = grid.barrier_arrive();
  int own = 3 * i;
  grid.barrier_wait(std::move(token));
  out[i] = values[all - 1 - i] + own;
}

// ---- tiles of several warps ----

// The threads of each tile of 64 exchange their values; the tiles do not wait for each other.
extern "C" __global__ void tiles_of_warps(const int *values, int *out) {
  __shared__ int shared[192];
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  int *own = shared + 64 * tile.meta_group_rank(), i = tile.thread_rank();
  for (int round = 0; round < 3; round++) {
    own[i] = values[threadIdx.x] + round;
    tile.sync();
    out[threadIdx.x] = own[63 - i];
    tile.sync();
  }
}

// ---- barriers and flags by hand ----

// Every block arrives, and looks at most `most` times whether all have.
extern "C" __global__ void counted_barrier(unsigned *arrived, int *values, int *out, int phases, int most) {
  for (int p = 1; p <= phases; p++) {
    if (threadIdx.x == 0) {
      values[blockIdx.x] += p;
      __threadfence();
      atomicAdd(arrived, 1);
      int looks = 0;
      while (load_acquire(arrived) < p * gridDim.x)
        if (++looks == most) __trap();
      out[blockIdx.x] += values[(blockIdx.x + 1) % gridDim.x];
      __threadfence();
      atomicAdd(arrived + 1, 1);
      for (unsigned wait = 8; load_acquire(arrived + 1) < p * gridDim.x; wait += wait < 256) __nanosleep(wait);
    }
    __syncthreads();
  }
}

// The same count kept in local memory, as a compiler without optimisation would.
extern "C" __global__ void counts_in_local_memory(unsigned *flag, int *out) {
  volatile int looks[2] = {0, 0};
  if (blockIdx.x == gridDim.x - 1) {
    if (threadIdx.x == 0) store_release(flag, 7);
  } else {
    while (load_acquire(flag) == 0) looks[threadIdx.x & 1] = looks[threadIdx.x & 1] + 1;
    out[blockIdx.x * blockDim.x + threadIdx.x] = looks[1 - (threadIdx.x & 1)] == 0;
  }
}

// Looks at most 10,000 times. The count is in local memory alone: at most places of the loop the registers are the same
// in every round.
extern "C" __global__ void gives_up_by_local_memory(const unsigned *flag, int *out) {
  int looks;
  asm volatile(
      "{\n"
      ".local .u32 looks;\n"
      ".reg .u32 %%value;\n"
      ".reg .pred %%again;\n"
      "mov.u32 %%value, 0;\n"
      "st.local.u32 [looks], %%value;\n"
      "look:\n"
      "ld.acquire.gpu.u32 %%value, [%1];\n"
      "setp.ne.u32 %%again, %%value, 0;\n"
      "@%%again bra done;\n"
      "ld.local.u32 %%value, [looks];\n"
      "add.u32 %%value, %%value, 1;\n"
      "st.local.u32 [looks], %%value;\n"
      "setp.lt.u32 %%again, %%value, 10000;\n"
      "mov.u32 %%value, 0;\n"
      "@%%again bra look;\n"
      "done:\n"
      "ld.local.u32 %0, [looks];\n"
      "}"
      : "=r"(looks)
      : "l"(flag)
      : "memory");
  out[threadIdx.x] = looks;
}

// A prefix sum in one pass: each block waits for the one before. With `backwards` the last one begins, as no decoupled
// look-back does that takes its blocks' numbers as they are.
extern "C" __global__ void look_back(const int *in, int *out, unsigned *ready, int backwards) {
  __shared__ int before;
  int block = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  int *sums = out + gridDim.x;
  if (threadIdx.x == 0) {
    before = 0;
    if (block > 0) {
      while (load_acquire(&ready[block - 1]) == 0) {}
      before = sums[block - 1];
    }
    sums[block] = before + in[block];
    store_release(&ready[block], 1);
    out[block] = before;
  }
}

// Two blocks share each tile: the second adds its half and raises a flag, for which the first waits. `relaxed` flags order
// nothing.
extern "C" __global__ void fix_up(int *partial, int *out, unsigned *flags, int relaxed) {
  int tile = blockIdx.x / 2;
  if (blockIdx.x % 2) {
    partial[tile * blockDim.x + threadIdx.x] = 10 * tile + threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
      if (relaxed)
        *(volatile unsigned *)&flags[tile] = 1;
      else
        store_release(&flags[tile], 1);
    }
  } else {
    if (threadIdx.x == 0)
      while (load_acquire(&flags[tile]) == 0) {}
    __syncthreads();
    out[tile * blockDim.x + threadIdx.x] = partial[tile * blockDim.x + threadIdx.x] + 1;
  }
}

// A block hands on what another has told it: 0 to 1 to 2. Without `fence` the middle one passes on a flag, and no order.
extern "C" __global__ void hand_on(int *data, unsigned *flags, int *out, int fence) {
  if (blockIdx.x == 0) {
    *data = 42;
    store_release(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (load_acquire(&flags[0]) == 0) {}
    if (fence) __threadfence();
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" : : "l"(&flags[1]) : "memory");
  } else {
    while (load_acquire(&flags[1]) == 0) {}
    *out = *data;
  }
}

// Blocks 0 and 1 each tell block 2 of a value. Its first thread learns of both, but its only fence stands between: so
// its relaxed flag hands on the order of block 0's value alone. A thread of another warp, which the flag reaches, uses
// both. With `asks` it has learnt of block 1's value itself.
extern "C" __global__ void hand_on_one_of_two(int *data, unsigned *flags, int *out, int asks) {
  if (blockIdx.x < 2) {
    if (threadIdx.x) return;
    data[blockIdx.x] = 40 + blockIdx.x;
    store_release(&flags[blockIdx.x], 1);
  } else if (threadIdx.x == 0) {
    while (load_acquire(&flags[0]) == 0) {}
    __threadfence();
    while (load_acquire(&flags[1]) == 0) {}
    asm volatile("st.relaxed.gpu.u32 [%0], 1;" : : "l"(&flags[2]) : "memory");
  } else if (threadIdx.x == 32) {
    while (load_acquire(&flags[2]) == 0) {}
    while (asks && load_acquire(&flags[1]) == 0) {}
    *out = data[0] + data[1];
  }
}

// Block 1 says that it has come, and takes its time before it looks who else has. Block 0 comes, looks, writes and says
// so by the same count: nothing keeps block 1 from looking before that.
extern "C" __global__ void write_after_meeting(unsigned *arrived, int *data, int *out, int before, int after) {
  __shared__ volatile int work;
  for (int i = 0; i < before && blockIdx.x == 0; i++) work = i;
  __threadfence();
  atomicAdd(arrived, 1);
  for (int i = 0; i < after && blockIdx.x == 1; i++) work = i;
  while (load_acquire(arrived) < 2) {}
  if (blockIdx.x == 1) {
    *out = *data;
  } else {
    *data = 42;
    __threadfence();
    atomicAdd(arrived, 1);
  }
}

// Every block waits until all have come. More of them than a GPU holds at a time never do.
extern "C" __global__ void meet(unsigned *arrived) {
  extern __shared__ int tile[];
  if (threadIdx.x == 0) {
    tile[0] = atomicAdd(arrived, 1);
    while (load_acquire(arrived) < gridDim.x) {}
  }
}
