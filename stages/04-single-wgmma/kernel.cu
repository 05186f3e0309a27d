// Stage 04: one instruction. A warpgroup, 128 threads, multiplies A (64 x 16) by B (16 x N): fp16 factors, fp32 sums.
//
//   product      one m64n64k16: tiles go to shared memory, descriptors say where, wgmma multiplies
//   latency      one, with the clock read before and after
//   throughput   as many as the warpgroups of a block can issue
//
// A and B are 64 numbers deep. A wgmma multiplies 16 of them, so a tile has four slices. Each block of `product` takes
// one of them.
#include <cuda_fp16.h>
#include <stdint.h>

#include "ptx/fence.h"
#include "ptx/wgmma.h"

enum { WARPGROUP = 128, LINES = 64, CHUNKS = 8, TILE_BYTES = LINES * CHUNKS * 16, SLICES = 4, TRIES = 4 };

// ---- tiles in shared memory ----

// Bytes of a line that a swizzle keeps together; 0 without one.
__device__ constexpr uint32_t swizzle_width(Swizzle swizzle) {
  return swizzle == SWIZZLE_128B ? 128 : swizzle == SWIZZLE_64B ? 64 : swizzle == SWIZZLE_32B ? 32 : 0;
}

// Where in a tile a chunk of 16 bytes lies. A tile has `lines` lines of 8 chunks, 64 numbers.
//
//   no swizzle   core matrices: chunk c of eight lines fills 128 bytes; then comes chunk c + 1 of the same lines
//   a swizzle    panels as wide as the swizzle. In a panel line follows line, and chunks change places: the bits of the
//                offset that number the chunks of a line, from bit 4 up, are XORed with those from bit 7 up
//
// The hardware takes these bits from the address. They are the same in the offset, because a tile begins at a multiple
// of 1024 bytes.
template <Swizzle SWIZZLE> __device__ uint32_t place(int lines, int line, int chunk) {
  const uint32_t width = swizzle_width(SWIZZLE);
  if constexpr (width == 0) {  // the compiler leaves the other branch out, which would divide by 0
    return line / 8 * 1024 + chunk * 128 + line % 8 * 16;
  } else {
    uint32_t offset = chunk * 16 / width * lines * width + line * width + chunk * 16 % width;
    return offset ^ (offset >> 7 & (width / 16 - 1)) << 4;
  }
}

// Copies a matrix of `lines` lines into a tile, with ordinary stores.
template <Swizzle SWIZZLE> __device__ void load_tile(char *tile, const half *matrix, int lines) {
  for (int i = threadIdx.x; i < lines * CHUNKS; i += blockDim.x)
    *(uint4 *)(tile + place<SWIZZLE>(lines, i / CHUNKS, i % CHUNKS)) = *(const uint4 *)(matrix + i * 8);
}

// ---- descriptors ----

// Lines are rows of A or columns of B, 64 deep: a slice is 32 bytes of each line. K-major.
template <Swizzle SWIZZLE> __device__ uint64_t slice_of_lines(uint32_t tile, int lines, int slice) {
  const uint32_t width = swizzle_width(SWIZZLE);
  if constexpr (width == 0) {
    return matrix_descriptor(tile + slice * 2 * 128, 128, 1024, SWIZZLE);
  } else {
    uint32_t panel = slice * 32 / width, inside = slice * 32 % width;
    return matrix_descriptor(tile + panel * lines * width + inside, 16, 8 * width, SWIZZLE);  // 16: not looked at
  }
}

// Lines are rows of B, 64 wide: a slice is 16 lines. MN-major, as V is in attention.
template <Swizzle SWIZZLE> __device__ uint64_t slice_across_lines(uint32_t tile, int lines, int slice) {
  const uint32_t width = swizzle_width(SWIZZLE);
  if constexpr (width == 0)
    return matrix_descriptor(tile + slice * 2 * 1024, 1024, 128, SWIZZLE);
  else
    return matrix_descriptor(tile + slice * 16 * width, lines * width, 8 * width, SWIZZLE);
}

// ---- registers: thread t of a warpgroup, its warp w = t / 32, its lane l = t % 32 ----

__device__ int thread_row() { return threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4; }
__device__ int thread_column() { return threadIdx.x % 4 * 2; }

// A slice of A, rows of 64 numbers: a[j] is two neighbours in row 16 w + l / 4 + 8 (j % 2), from column 8 (j / 2) +
// 2 (l % 4) on.
__device__ void load_fragment(uint32_t (&fragment)[4], const half *a, int slice) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
    int row = thread_row() + j % 2 * 8, column = slice * 16 + j / 2 * 8 + thread_column();
    fragment[j] = *(const uint32_t *)(a + row * LINES + column);
  }
}

// A pair of D, rows of N numbers: d[2 i] and d[2 i + 1] are neighbours in row 16 w + l / 4 + 8 (i % 2), from column
// 8 (i / 2) + 2 (l % 4) on.
template <int N> __device__ float2 *pair(float *d, int i) {
  return (float2 *)(d + (thread_row() + i % 2 * 8) * N + i / 2 * 8 + thread_column());
}

template <int N> __device__ void load_sums(float (&sums)[N / 2], float *d) {
#pragma unroll
  for (int i = 0; i < N / 4; i++) {
    float2 both = *pair<N>(d, i);
    sums[2 * i] = both.x;
    sums[2 * i + 1] = both.y;
  }
}

template <int N> __device__ void store_sums(float *d, const float (&sums)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 4; i++) *pair<N>(d, i) = make_float2(sums[2 * i], sums[2 * i + 1]);
}

// ---- one wgmma ----

typedef struct Operands {
  uint64_t a, b;  // descriptors
} Operands;

// Brings both tiles to shared memory and describes a slice. A line of b is a column of B: numbers along K. With
// B_MN_MAJOR it is a row of B: numbers along N.
template <Swizzle SWIZZLE, bool B_MN_MAJOR> __device__ Operands load_slice(const half *a, const half *b, int slice) {
  extern __shared__ __align__(1024) char shared[];
  load_tile<SWIZZLE>(shared, a, LINES);
  load_tile<SWIZZLE>(shared + TILE_BYTES, b, LINES);
  fence_async_proxy();  // ordinary stores have written the tiles; wgmma reads them through the async proxy
  __syncthreads();
  uint32_t a_tile = (uint32_t)__cvta_generic_to_shared(shared), b_tile = a_tile + TILE_BYTES;
  Operands operands;
  operands.a = slice_of_lines<SWIZZLE>(a_tile, LINES, slice);
  operands.b =
      B_MN_MAJOR ? slice_across_lines<SWIZZLE>(b_tile, LINES, slice) : slice_of_lines<SWIZZLE>(b_tile, LINES, slice);
  return operands;
}

// Block s multiplies slice s: D[s] = A B, or D[s] += A B. It also stores its descriptors, for --explain.
// Grid: 4 slices. Block: one warpgroup.
template <bool A_IN_REGISTERS, bool B_MN_MAJOR>
__device__ void product(const half *a, const half *b, float *d, Operands *made, Swizzle swizzle, int accumulate) {
  int slice = blockIdx.x;
  Operands operands = swizzle == SWIZZLE_128B  ? load_slice<SWIZZLE_128B, B_MN_MAJOR>(a, b, slice)
                      : swizzle == SWIZZLE_64B ? load_slice<SWIZZLE_64B, B_MN_MAJOR>(a, b, slice)
                      : swizzle == SWIZZLE_32B ? load_slice<SWIZZLE_32B, B_MN_MAJOR>(a, b, slice)
                                               : load_slice<SWIZZLE_NONE, B_MN_MAJOR>(a, b, slice);
  uint32_t fragment[4];
  load_fragment(fragment, a, slice);
  float sums[32];
  d += slice * LINES * 64;
  load_sums<64>(sums, d);

  wgmma_fence();  // ordinary instructions have written sums and fragment; wgmma uses them
  if constexpr (A_IN_REGISTERS)
    wgmma<64, B_MN_MAJOR>(sums, fragment, operands.b, accumulate);
  else
    wgmma<64, B_MN_MAJOR>(sums, operands.a, operands.b, accumulate);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_results(sums);

  store_sums<64>(d, sums);
  if (threadIdx.x == 0) made[slice] = operands;
}

// ---- many wgmmas ----

// What the wgmmas of a warpgroup read: A, 64 rows, and B, N columns, K-major, 128B swizzle. The next slice's descriptor
// is 32 bytes further on.
template <int N, bool A_IN_REGISTERS> struct Factors {
  Operands slice_0;
  uint32_t fragment[SLICES][4];
};

template <int N, bool A_IN_REGISTERS>
__device__ void load_factors(Factors<N, A_IN_REGISTERS> &factors, const half *a, const half *b) {
  extern __shared__ __align__(1024) char shared[];
  load_tile<SWIZZLE_128B>(shared, a, LINES);
  load_tile<SWIZZLE_128B>(shared + TILE_BYTES, b, N);
  fence_async_proxy();
  __syncthreads();
  uint32_t tile = (uint32_t)__cvta_generic_to_shared(shared);
  factors.slice_0.a = slice_of_lines<SWIZZLE_128B>(tile, LINES, 0);
  factors.slice_0.b = slice_of_lines<SWIZZLE_128B>(tile + TILE_BYTES, N, 0);
#pragma unroll
  for (int slice = 0; slice < SLICES && A_IN_REGISTERS; slice++) load_fragment(factors.fragment[slice], a, slice);
}

// D += A B for one slice.
template <int N, bool A_IN_REGISTERS>
__device__ void multiply(float (&sums)[N / 2], const Factors<N, A_IN_REGISTERS> &factors, int slice) {
  if constexpr (A_IN_REGISTERS)
    wgmma<N>(sums, factors.fragment[slice], factors.slice_0.b + slice * 2, 1);
  else
    wgmma<N>(sums, factors.slice_0.a + slice * 2, factors.slice_0.b + slice * 2, 1);
}

// Clocks of one wgmma, from its fence to the end of its wait. It is tried a few times, because the first time the
// instructions themselves come from memory. Grid: 1. Block: one warpgroup.
template <int N, bool A_IN_REGISTERS> __device__ void latency(const half *a, const half *b, float *d, int64_t *clocks) {
  Factors<N, A_IN_REGISTERS> factors;
  load_factors(factors, a, b);
  float sums[N / 2] = {};
#pragma unroll
  for (int t = 0; t < TRIES; t++) {
    int64_t begin = clock64();
    wgmma_fence();
    multiply(sums, factors, 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(sums);
    if (threadIdx.x == 0) clocks[t] = clock64() - begin;
  }
  store_sums<N>(d, sums);
}

// When a warpgroup was busy, by its SM's clock and by the whole GPU's timer.
typedef struct Span {
  int64_t begin, end;  // clocks
  uint64_t begin_ns, end_ns;
} Span;

__device__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
  return now;
}

// Each warpgroup issues four wgmmas, one a slice, `repeats` times. While it issues four, the previous four are running.
// Grid: one block for each SM. Block: any number of warpgroups; all read the same tiles.
template <int N, bool A_IN_REGISTERS>
__device__ void throughput(const half *a, const half *b, float *d, Span *spans, int repeats) {
  Factors<N, A_IN_REGISTERS> factors;
  load_factors(factors, a, b);
  float sums[N / 2] = {};
  Span span;
  span.begin = clock64();
  span.begin_ns = nanoseconds();
#pragma unroll 1
  for (int i = 0; i < repeats; i++) {
    wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < SLICES; slice++) multiply(sums, factors, slice);
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  wgmma_results(sums);
  span.end = clock64();
  span.end_ns = nanoseconds();

  int warpgroup = blockIdx.x * (blockDim.x / WARPGROUP) + threadIdx.x / WARPGROUP;
  if (threadIdx.x % WARPGROUP == 0) spans[warpgroup] = span;
  store_sums<N>(d + (size_t)warpgroup * LINES * N, sums);
}

// ---- entry points ----

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    product_shared_k(const half *a, const half *b, float *d, Operands *made, Swizzle swizzle, int accumulate) {
  product<false, false>(a, b, d, made, swizzle, accumulate);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    product_shared_n(const half *a, const half *b, float *d, Operands *made, Swizzle swizzle, int accumulate) {
  product<false, true>(a, b, d, made, swizzle, accumulate);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    product_registers_k(const half *a, const half *b, float *d, Operands *made, Swizzle swizzle, int accumulate) {
  product<true, false>(a, b, d, made, swizzle, accumulate);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    product_registers_n(const half *a, const half *b, float *d, Operands *made, Swizzle swizzle, int accumulate) {
  product<true, true>(a, b, d, made, swizzle, accumulate);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    latency_shared_64(const half *a, const half *b, float *d, int64_t *clocks) {
  latency<64, false>(a, b, d, clocks);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    latency_shared_128(const half *a, const half *b, float *d, int64_t *clocks) {
  latency<128, false>(a, b, d, clocks);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    latency_shared_256(const half *a, const half *b, float *d, int64_t *clocks) {
  latency<256, false>(a, b, d, clocks);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    latency_registers_64(const half *a, const half *b, float *d, int64_t *clocks) {
  latency<64, true>(a, b, d, clocks);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    latency_registers_128(const half *a, const half *b, float *d, int64_t *clocks) {
  latency<128, true>(a, b, d, clocks);
}

extern "C" __global__ void __launch_bounds__(WARPGROUP)
    latency_registers_256(const half *a, const half *b, float *d, int64_t *clocks) {
  latency<256, true>(a, b, d, clocks);
}

// An SM has 65,536 registers: enough for four warpgroups with N = 64 or 128. With N = 256 they are enough for two: D
// alone takes 128 registers of a thread.
extern "C" __global__ void __launch_bounds__(4 * WARPGROUP)
    throughput_shared_64(const half *a, const half *b, float *d, Span *spans, int repeats) {
  throughput<64, false>(a, b, d, spans, repeats);
}

extern "C" __global__ void __launch_bounds__(4 * WARPGROUP)
    throughput_shared_128(const half *a, const half *b, float *d, Span *spans, int repeats) {
  throughput<128, false>(a, b, d, spans, repeats);
}

extern "C" __global__ void __launch_bounds__(2 * WARPGROUP)
    throughput_shared_256(const half *a, const half *b, float *d, Span *spans, int repeats) {
  throughput<256, false>(a, b, d, spans, repeats);
}

extern "C" __global__ void __launch_bounds__(4 * WARPGROUP)
    throughput_registers_64(const half *a, const half *b, float *d, Span *spans, int repeats) {
  throughput<64, true>(a, b, d, spans, repeats);
}

extern "C" __global__ void __launch_bounds__(4 * WARPGROUP)
    throughput_registers_128(const half *a, const half *b, float *d, Span *spans, int repeats) {
  throughput<128, true>(a, b, d, spans, repeats);
}

extern "C" __global__ void __launch_bounds__(2 * WARPGROUP)
    throughput_registers_256(const half *a, const half *b, float *d, Span *spans, int repeats) {
  throughput<256, true>(a, b, d, spans, repeats);
}
