// Small kernels that measure the machine: each does one thing again and again, and reads the clock before and after.
//
//   latency   a chain of steps, each of which needs the result of the one before
//   rate      as many independent steps as an SM, or all of them, can have under way
//
// Every kernel also leaves a result that tells how many steps it has done: the program checks that no compiler has
// removed any. `make baseline-machine && nvdisasm -c build/kernels/baseline-machine.cubin` lists what is measured.
#include "machine.h"
#include "ptx/barrier.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/mma.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

enum { WARP = 32, WARPGROUP = 128 };

// The kernels' heads: one block, of at most so many threads.
#define KERNEL(NAME, THREADS)                                                                                          \
  extern "C" __global__ void __launch_bounds__(THREADS) NAME(const __grid_constant__ Arguments arguments)

// Thread 0 stores the clocks of each run, from a barrier of the block to the next.
template <class Round> static __device__ __forceinline__ void timed(const Arguments &arguments, Round round) {
#pragma unroll 1
  for (int run = 0; run < RUNS; run++) {
    int rounds = run == TWICE ? 2 * arguments.rounds : arguments.rounds;
    __syncthreads();
    int64_t begin = clock64();
#pragma unroll 1
    for (int i = 0; i < rounds; i++) round();
    __syncthreads();
    int64_t end = clock64();
    if (threadIdx.x == 0) arguments.clocks[run] = end - begin;
  }
}

static __device__ __forceinline__ void store_result(const Arguments &arguments, uint32_t result) {
  arguments.results[blockIdx.x * blockDim.x + threadIdx.x] = result;
}

static __device__ __forceinline__ uint32_t sum_of(uint4 v) { return v.x + v.y + v.z + v.w; }

// ---- calculations: CHAINS chains in each thread, and the sum of what comes out of them ----

template <int CHAINS, class T, class Step>
static __device__ __forceinline__ T calculate(const Arguments &arguments, int steps, Step step) {
  T x[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; c++) x[c] = T(threadIdx.x * CHAINS + c);
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < steps / CHAINS; i++)
#pragma unroll
      for (int c = 0; c < CHAINS; c++) step(x[c]);
  });
  T sum = x[0];
#pragma unroll
  for (int c = 1; c < CHAINS; c++) sum += x[c];
  return sum;
}

// x = x * 1 + 1. Its rate is not measured: at one instruction a clock in each sub-partition it differed by a factor of
// two from run to run.
KERNEL(multiply_add_latency, WARP) {
  float one = arguments.one;
  float x = calculate<1, float>(arguments, CALCULATIONS, [=](float &x) {
    asm volatile("fma.rn.f32 %0, %0, %1, 0f3f800000;" : "+f"(x) : "f"(one));
  });
  store_result(arguments, __float_as_uint(x));
}

// Fibonacci numbers: every sum is used twice, so that two additions cannot become one of three numbers. ptxas makes
// every other one an IMAD, as it does everywhere, to keep two pipes busy.
KERNEL(add_latency, WARP) {
  uint32_t x = threadIdx.x, y = arguments.one;
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < CALCULATIONS / 2; i++) {
      asm volatile("add.u32 %0, %0, %1;" : "+r"(x) : "r"(y));
      asm volatile("add.u32 %0, %0, %1;" : "+r"(y) : "r"(x));
    }
  });
  store_result(arguments, x);
}

// The larger of x and each of two numbers in turn.
template <int CHAINS> static __device__ __forceinline__ void maximum(const Arguments &arguments) {
  float million = arguments.one * 1e6f, more = million + arguments.one;
  float sum = calculate<CHAINS, float>(arguments, CALCULATIONS / 2, [=](float &x) {
    asm volatile("max.f32 %0, %0, %1;" : "+f"(x) : "f"(million));
    asm volatile("max.f32 %0, %0, %1;" : "+f"(x) : "f"(more));
  });
  store_result(arguments, __float_as_uint(sum));
}

KERNEL(maximum_latency, WARP) { maximum<1>(arguments); }
KERNEL(maximum_rate, RATE_THREADS) { maximum<RATE_CHAINS>(arguments); }

// x = 2^-x, which comes to rest at 0.6412. The sign is part of the instruction.
template <int CHAINS> static __device__ __forceinline__ void exponential(const Arguments &arguments) {
  float sum = calculate<CHAINS, float>(arguments, CALCULATIONS, [](float &x) {
    asm volatile("{\n.reg .f32 minus;\nneg.f32 minus, %0;\nex2.approx.ftz.f32 %0, minus;\n}" : "+f"(x));
  });
  store_result(arguments, __float_as_uint(sum));
}

KERNEL(exponential_latency, WARP) { exponential<1>(arguments); }
KERNEL(exponential_rate, RATE_THREADS) { exponential<RATE_CHAINS>(arguments); }

// x and 1.5 rounded to fp16, and the pair's 32 bits taken for the next x.
template <int CHAINS> static __device__ __forceinline__ void convert(const Arguments &arguments) {
  float high = arguments.one * 1.5f;
  float sum = calculate<CHAINS, float>(arguments, CALCULATIONS, [=](float &x) {
    asm volatile("{\n.reg .b32 pair;\ncvt.rn.f16x2.f32 pair, %1, %0;\nmov.b32 %0, pair;\n}" : "+f"(x) : "f"(high));
  });
  store_result(arguments, __float_as_uint(sum));
}

KERNEL(convert_latency, WARP) { convert<1>(arguments); }
KERNEL(convert_rate, RATE_THREADS) { convert<RATE_CHAINS>(arguments); }

// Each lane takes what the next one has.
template <int CHAINS> static __device__ __forceinline__ void shuffle(const Arguments &arguments) {
  int next = (threadIdx.x + arguments.one) % WARP;
  uint32_t sum = calculate<CHAINS, uint32_t>(arguments, SHUFFLES * CHAINS,
                                             [=](uint32_t &x) { x = __shfl_sync(0xffffffff, x, next); });
  store_result(arguments, sum);
}

KERNEL(shuffle_latency, WARP) { shuffle<1>(arguments); }
KERNEL(shuffle_rate, RATE_THREADS) { shuffle<RATE_CHAINS>(arguments); }

// D += A B of 16 x 8 with 16 products each. A is all ones; column c of B is all 1 + c % 3.
template <int CHAINS> static __device__ __forceinline__ void multiply_in_warps(const Arguments &arguments) {
  const uint32_t a[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
  half column = __int2half_rn(1 + threadIdx.x % WARP / 4 % 3);
  half2 both = __half2half2(column);
  uint32_t b = *(uint32_t *)&both;
  float d[CHAINS][4] = {};
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < CALCULATIONS / CHAINS; i++)
#pragma unroll
      for (int c = 0; c < CHAINS; c++) mma(d[c], a, b, b);
  });
  uint32_t result = 0;
#pragma unroll
  for (int c = 0; c < CHAINS; c++)
#pragma unroll
    for (int i = 0; i < 4; i++) result = result * 31 + (uint32_t)d[c][i];
  store_result(arguments, result);
}

KERNEL(mma_latency, WARP) { multiply_in_warps<1>(arguments); }
KERNEL(mma_rate, MMA_THREADS) { multiply_in_warps<RATE_CHAINS>(arguments); }

// ---- wgmma: row i of A is all 1 + i % 3, column j of B all 1 + j % 5, 16 of each ----

template <int N> struct Factors {
  uint64_t a, b;         // descriptors
  uint32_t fragment[4];  // A in registers
};

static __device__ __forceinline__ uint32_t two_of(int value) {
  half2 both = __half2half2(__int2half_rn(value));
  return *(uint32_t *)&both;
}

// Tiles of 128 bytes a row; what is the same all along a row needs no swizzle to be found.
static __device__ __forceinline__ void fill_tile(uint8_t *tile, int rows, int modulus) {
  for (int i = threadIdx.x; i < rows * ROW_BYTES / 4; i += blockDim.x)
    ((uint32_t *)tile)[i] = two_of(1 + i / (ROW_BYTES / 4) % modulus);
}

template <int N> static __device__ __forceinline__ Factors<N> make_factors() {
  __shared__ __align__(1024) uint8_t tiles[(64 + N) * ROW_BYTES];
  fill_tile(tiles, 64, 3);
  fill_tile(tiles + 64 * ROW_BYTES, N, 5);
  fence_async_proxy();
  __syncthreads();
  Factors<N> factors;
  factors.a = k_major(shared_address(tiles));
  factors.b = k_major(shared_address(tiles) + 64 * ROW_BYTES);
  int row = threadIdx.x % WARPGROUP / WARP * 16 + threadIdx.x % WARP / 4;
#pragma unroll
  for (int j = 0; j < 4; j++) factors.fragment[j] = two_of(1 + (row + j % 2 * 8) % 3);
  return factors;
}

template <int N, bool A_IN_REGISTERS>
static __device__ __forceinline__ void multiply(float (&d)[N / 2], const Factors<N> &factors) {
  if constexpr (A_IN_REGISTERS)
    wgmma<N>(d, factors.fragment, factors.b, 1);
  else
    wgmma<N>(d, factors.a, factors.b, 1);
}

// A round is GROUP_COUNT groups of TOGETHER products, each group with its fence, commit and wait.
template <int N, bool A_IN_REGISTERS, int GROUP_COUNT, int TOGETHER>
static __device__ __forceinline__ void multiply_in_warpgroups(const Arguments &arguments) {
  Factors<N> factors = make_factors<N>();
  float d[N / 2] = {};
  timed(arguments, [&] {
#pragma unroll
    for (int group = 0; group < GROUP_COUNT; group++) {
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < TOGETHER; i++) multiply<N, A_IN_REGISTERS>(d, factors);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_results(d);
    }
  });
  uint32_t result = 0;
#pragma unroll
  for (int i = 0; i < N / 2; i++) result = result * 31 + (uint32_t)d[i];
  store_result(arguments, result);
}

KERNEL(wgmma_64_latency, WARPGROUP) { multiply_in_warpgroups<64, false, GROUPS, 1>(arguments); }
KERNEL(wgmma_256_latency, WARPGROUP) { multiply_in_warpgroups<256, false, GROUPS, 1>(arguments); }
KERNEL(wgmma_64_rate, 4 * WARPGROUP) { multiply_in_warpgroups<64, false, 1, PRODUCTS>(arguments); }
KERNEL(wgmma_256_rate, 2 * WARPGROUP) { multiply_in_warpgroups<256, false, 1, PRODUCTS>(arguments); }
KERNEL(wgmma_64_registers_rate, 4 * WARPGROUP) { multiply_in_warpgroups<64, true, 1, PRODUCTS>(arguments); }
KERNEL(wgmma_256_registers_rate, 2 * WARPGROUP) { multiply_in_warpgroups<256, true, 1, PRODUCTS>(arguments); }

// ---- loads: each gives the address of the next ----

KERNEL(shared_latency, WARP) {
  __shared__ uint32_t words[WORD_ROWS * WARP];
  for (int i = threadIdx.x; i < WORD_ROWS * WARP; i += WARP)
    words[i] = shared_address(words + (i + WARP) % (WORD_ROWS * WARP));
  uint32_t place = shared_address(words + threadIdx.x);
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < CHASES; i++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(place)::"memory");
  });
  store_result(arguments, (place - shared_address(words)) / 4);
}

#define CHASE(LOAD)                                                                                                    \
  const uint8_t *place = arguments.memory;                                                                             \
  timed(arguments, [&] {                                                                                               \
    _Pragma("unroll") for (int i = 0; i < CHASES; i++) asm volatile(LOAD " %0, [%0];" : "+l"(place)::"memory");        \
  });                                                                                                                  \
  store_result(arguments, (uint32_t)(place - arguments.memory))

KERNEL(l1_latency, 1) { CHASE("ld.global.u64"); }
KERNEL(l2_latency, 1) { CHASE("ld.global.cg.u64"); }

// The operand is what was there before: Fibonacci numbers again.
KERNEL(atomic_latency, 1) {
  uint32_t x = 1;
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < CHASES; i++)
      asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(x) : "l"(arguments.memory) : "memory");
  });
  store_result(arguments, x);
}

// ---- loads: 16 bytes for each thread, from LOADS places half a KiB apart ----
// After each round the place moves by 0 bytes, which ptxas does not know: otherwise it loads once, before the loop.

KERNEL(shared_rate, RATE_THREADS) {
  __shared__ __align__(16) uint4 chunks[RATE_THREADS + LOADS * WARP];
  for (int i = threadIdx.x; i < RATE_THREADS + LOADS * WARP; i += RATE_THREADS)
    chunks[i] = make_uint4(4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
  uint32_t place = shared_address(chunks + threadIdx.x), sum = 0;
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      uint4 v;
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(place + i * WARP * 16)
                   : "memory");
      sum += sum_of(v);
    }
    place += arguments.one - 1;
  });
  store_result(arguments, sum);
}

KERNEL(l1_rate, RATE_THREADS) {
  const uint8_t *place = arguments.memory + threadIdx.x * 16;
  uint32_t sum = 0;
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      uint4 v;
      asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "l"(place + i * WARP * 16)
                   : "memory");
      sum += sum_of(v);
    }
    place += arguments.one - 1;
  });
  store_result(arguments, sum);
}

// ---- all SMs read, or copy, all of memory: timed from outside ----

static __device__ __forceinline__ uint4 load_past_l1(const uint8_t *from) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

// Blocks take chunk after chunk, `rounds` times all of them.
KERNEL(read_all, READERS) {
  const uint32_t chunks = arguments.size / CHUNK_BYTES;
  uint32_t sum = 0;
#pragma unroll 1
  for (uint32_t i = blockIdx.x; i < chunks * arguments.rounds; i += gridDim.x) {
    uint4 v[READS];
    const uint8_t *chunk = arguments.memory + (uint64_t)(i % chunks) * CHUNK_BYTES;
#pragma unroll
    for (int j = 0; j < READS; j++) v[j] = load_past_l1(chunk + (j * READERS + threadIdx.x) * 16);
#pragma unroll
    for (int j = 0; j < READS; j++) sum += sum_of(v[j]);
  }
  store_result(arguments, sum);
}

// Each block copies a piece.
KERNEL(copy_all, COPIERS) {
  const uint64_t place = ((uint64_t)blockIdx.x * COPY_READS * COPIERS + threadIdx.x) * 16;
  uint4 v[COPY_READS];
#pragma unroll
  for (int i = 0; i < COPY_READS; i++) v[i] = load_past_l1(arguments.memory + place + i * COPIERS * 16);
#pragma unroll
  for (int i = 0; i < COPY_READS; i++) *(uint4 *)(arguments.destination + place + i * COPIERS * 16) = v[i];
}

// ---- barriers. After the clock has stopped, one more meeting passes a number on: it shows that they meet ----

template <class Meet> static __device__ __forceinline__ void meet_often(const Arguments &arguments, Meet meet) {
  __shared__ uint32_t places[256];
  uint32_t met = 0;
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < MEETINGS; i++) meet();
    met += MEETINGS;
  });
  places[threadIdx.x] = threadIdx.x;
  meet();
  store_result(arguments, met + places[threadIdx.x ^ WARP]);
}

KERNEL(block_barrier, 256) {
  meet_often(arguments, [] { __syncthreads(); });
}

// Two warpgroups, each with a barrier of its own.
KERNEL(named_barrier, 256) {
  int barrier = 1 + threadIdx.x / WARPGROUP;
  meet_often(arguments, [=] { barrier_sync(barrier, WARPGROUP); });
}

// Two warpgroups take turns: each waits on its own barrier and arrives at the other's. A step is two turns.
KERNEL(turns, 256) {
  __shared__ uint32_t places[WARPGROUP];
  int mine = 1 + threadIdx.x / WARPGROUP, other = 3 - mine;
  uint32_t taken = 0;
  if (mine == 2) barrier_arrive(1, 256);
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < MEETINGS; i++) {
      barrier_sync(mine, 256);
      barrier_arrive(other, 256);
    }
    taken += MEETINGS;
  });
  barrier_sync(mine, 256);
  if (mine == 1) {
    places[threadIdx.x] = threadIdx.x;
    barrier_arrive(other, 256);
  }
  store_result(arguments, taken + places[threadIdx.x % WARPGROUP]);
}

// One thread arrives and waits: it is the only one.
KERNEL(mbarrier_latency, 1) {
  __shared__ uint64_t barrier;
  mbarrier_init(shared_address(&barrier), 1);
  uint32_t passed = 0;
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < MEETINGS; i++) {
      mbarrier_arrive(shared_address(&barrier));
      mbarrier_wait(shared_address(&barrier), i % 2);
    }
    passed += MEETINGS;
  });
  store_result(arguments, passed);
}

// Two warps: one arrives and waits for the other. A step is there and back. As in the ladder, a warp's first thread
// arrives for all of it; all of its threads wait, or this one alone.
template <bool ALONE> static __device__ __forceinline__ void there_and_back(const Arguments &arguments) {
  __shared__ uint64_t barriers[2];
  __shared__ uint32_t places[2];
  if (threadIdx.x < 2) mbarrier_init(shared_address(barriers + threadIdx.x), 1);
  uint32_t first = shared_address(barriers), second = shared_address(barriers + 1), passed = 0;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  auto step = [&](int phase) {
    if (warp == 0 && lane == 0) mbarrier_arrive(first);
    mbarrier_wait(warp == 0 ? second : first, phase);
    if (!ALONE) __syncwarp();
    if (warp == 1 && lane == 0) mbarrier_arrive(second);
  };
  timed(arguments, [&] {
    if (!ALONE || lane == 0) {
#pragma unroll
      for (int i = 0; i < MEETINGS; i++) step(i % 2);
    }
    passed += MEETINGS;
  });
  if (threadIdx.x == 0) places[0] = 1000;
  step(0);
  store_result(arguments, passed + (warp == 1 ? places[0] : 0));
}

KERNEL(mbarrier_warps, 2 * WARP) { there_and_back<false>(arguments); }
KERNEL(mbarrier_threads, 2 * WARP) { there_and_back<true>(arguments); }

// ---- copies in the background, one at a time: issue, and wait until it has landed ----

KERNEL(cp_async_latency, WARP) {
  __shared__ __align__(16) uint4 landing[WARP];
  uint32_t to = shared_address(landing + threadIdx.x);
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < COPIES; i++) {
      cp_async(to, arguments.memory + (i * WARP + threadIdx.x) * 16, 16);
      cp_async_commit();
      cp_async_wait<0>();
    }
  });
  store_result(arguments, sum_of(landing[threadIdx.x]));
}

// One lane loads and 32 wait, as in the ladder. Tile after tile of memory, from the first again after the last: few of
// them stay in L2, and many do not.
KERNEL(tma_latency, WARP) {
  __shared__ __align__(1024) uint32_t tile[TILE_BYTES / 4];
  __shared__ uint64_t landed;
  uint32_t to = shared_address(tile), barrier = shared_address(&landed);
  int rows = arguments.size / ROW_BYTES, row = 0;
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    mbarrier_fence_init();
  }
  timed(arguments, [&] {
#pragma unroll
    for (int i = 0; i < COPIES; i++) {
      if (threadIdx.x == 0) {
        mbarrier_arrive_expect(barrier, TILE_BYTES);
        tma_load(to, &arguments.tiles, barrier, 0, row, 0);
      }
      row = row + TILE_ROWS < rows ? row + TILE_ROWS : 0;
      mbarrier_wait(barrier, i % 2);
      __syncwarp();
    }
  });
  uint32_t sum = 0;
  for (int i = threadIdx.x; i < TILE_BYTES / 4; i += WARP) sum += tile[i];
  store_result(arguments, sum);
}

// ---- the clock itself, and a launch ----

static __device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
  return now;
}

// Clocks, and the nanoseconds that they took.
KERNEL(sm_clock, 1) {
  float x = 0, one = arguments.one;
  int64_t begin = clock64(), begin_ns = nanoseconds();
#pragma unroll 1
  for (int i = 0; i < arguments.rounds; i++) {
#pragma unroll
    for (int j = 0; j < CALCULATIONS; j++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(one));
  }
  store_result(arguments, __float_as_uint(x));
  arguments.clocks[0] = clock64() - begin;
  arguments.clocks[1] = nanoseconds() - begin_ns;
}

KERNEL(empty, WARP) {}
