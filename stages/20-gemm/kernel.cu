// Stage 20: a matrix product, C = A B^T. Blocks stay on their SM and work through tiles of C, 128 x 256. A producer
// fills a ring with tiles of A and B, 64 deep; two consumers multiply them, 64 rows of C each:
//
//   producer    loads the next tile's factors while the consumers finish the last one
//   consumer    sums stay in registers, 128 a thread. At a tile's end the consumer packs them to fp16. It stores them
//               through shared memory and TMA while the next tile's first products run
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/registers.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

#include "output.h"

// A block's shared memory: the ring, and boxes of C on their way out. A full barrier completes when TMA has filled the
// slot, an empty one when all consumer warps have released it.
struct Shared {
  half a[SLOTS][ROWS * DEPTH], b[SLOTS][COLUMNS * DEPTH];
  half c[CONSUMERS * 4][STORE_PANELS * STORE_ROWS * PANEL];  // of each consumer warp
  uint64_t full[SLOTS], empty[SLOTS];

  __device__ void init() {
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(full + i), 1);
      mbarrier_init(shared_address(empty + i), CONSUMERS * 4);
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared) == SHARED_BYTES, "see tiles.h");

// The first row and column of tile number t. GROUP rows of tiles are a group, and a group's tiles are numbered column
// by column. So the tiles that all SMs work on at a time are about a square of C, and use the fewest rows of A and B.
struct Tile {
  int row, column;
};

__device__ Tile find_tile(const Problem &problem, int t) {
  int first = t / (GROUP * problem.columns) * GROUP;  // row of tiles of the group
  int rows = min(GROUP, problem.rows - first);        // the last group may have fewer
  int number = t - first * problem.columns;
  return {(first + number % rows) * ROWS, number / rows * COLUMNS};
}

// ---- the producer: one thread ----

struct Producer {
  Shared &shared;
  const Matrices &matrices;
  const Problem &problem;
  Ring<SLOTS> ring;

  // Loads 64 columns of the tile's rows of A and of B, once the next slot is empty. What lies behind the end of a
  // matrix arrives as zeros, and counts as bytes.
  __device__ void load(const Tile &tile, int k) {
    uint32_t full = shared_address(shared.full + ring.slot);
    mbarrier_wait(shared_address(shared.empty + ring.slot), ring.parity ^ 1);
    mbarrier_arrive_expect(full, SLOT_BYTES);
    tma_load(shared_address(shared.a[ring.slot]), &matrices.a, full, k * DEPTH, tile.row);
    tma_load(shared_address(shared.b[ring.slot]), &matrices.b, full, k * DEPTH, tile.column);
    ring.advance();
  }

  __device__ void run() {
    for (int t = blockIdx.x; t < problem.rows * problem.columns; t += gridDim.x) {
      Tile tile = find_tile(problem, t);
      for (int k = 0; k < problem.depth; k++) load(tile, k);
    }
  }
};

// ---- a consumer: one warpgroup ----

struct Consumer {
  Shared &shared;
  const Matrices &matrices;
  const Problem &problem;
  int warpgroup;
  bool elected;                  // one thread of each warp
  Ring<SLOTS> ring, read;        // the next slot to multiply, and to release
  float c[COLUMNS / 2];          // sums, of 64 rows
  uint32_t packed[COLUMNS / 4];  // the previous tile's sums, as fp16

  __device__ void release() {
    if (elected) mbarrier_arrive(shared_address(shared.empty + read.slot));
    read.advance();
  }

  // Starts c += A B^T for the 64 columns of A and B in a slot; c = A B^T for the tile's first ones.
  __device__ void multiply(int slot, int accumulate) {
    uint64_t a = k_major(shared_address(shared.a[slot]) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.b[slot]));
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < DEPTH / 16; i++)
      wgmma<COLUMNS>(c, columns_16(a, ROWS, i), columns_16(b, COLUMNS, i), i > 0 ? 1 : accumulate);
    wgmma_commit();
  }

  // Starts the next product of a tile, once its slot is full.
  __device__ void start(int accumulate) {
    mbarrier_wait(shared_address(shared.full + ring.slot), ring.parity);
    multiply(ring.slot, accumulate);
    ring.advance();
  }

  // Stores this warp's rows of the tile whose sums `packed` holds.
  __device__ void store(uint32_t boxes, const Tile &tile) {
    int warp = threadIdx.x % WARPGROUP / WARP;
    store_rows(packed, &matrices.c, boxes, tile.row + warpgroup * WARPGROUP_ROWS + warp * STORE_ROWS, tile.column,
               elected);
  }

  // All of a tile's products. Two are in flight at a time: while one runs, the next is queued. The previous tile is
  // stored while the first two run.
  __device__ void sum(bool stores, uint32_t boxes, const Tile &before) {
    int depth = problem.depth;
    wgmma_unread(c);
    start(0);
    if (depth > 1) start(1);
    if (stores) store(boxes, before);
    for (int k = 2; k < depth; k++) {
      wgmma_wait<1>();
      release();
      start(1);
    }
    wgmma_wait<0>();
    wgmma_results(c);
    if (depth > 1) release();
    release();
#pragma unroll
    for (int i = 0; i < COLUMNS / 4; i++) packed[i] = pack(c[2 * i], c[2 * i + 1]);
  }

  __device__ void run() {
    uint32_t boxes = shared_address(shared.c[warpgroup * 4 + threadIdx.x % WARPGROUP / WARP]);
    Tile before;
    bool stores = false;
    for (int t = blockIdx.x; t < problem.rows * problem.columns; t += gridDim.x) {
      Tile tile = find_tile(problem, t);
      sum(stores, boxes, before);
      before = tile;
      stores = true;
    }
    if (stores) store(boxes, before);
    if (elected) tma_store_wait_read<0>();  // the block's shared memory must stay until it has been read
  }
};

// ---- the kernel ----

// Grid: as many blocks as SMs, or as tiles if those are fewer. Block: the producer's warpgroup, then the consumers.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm(const __grid_constant__ Matrices matrices, const Problem problem) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Shared &shared = *(Shared *)memory;
  if (threadIdx.x == 0) shared.init();
  __syncthreads();                                                      // the mbarriers are there
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  if (warpgroup == 0) {
    registers_decrease<PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) Producer{shared, matrices, problem}.run();
  } else {
    registers_increase<CONSUMER_REGISTERS>();
    Consumer{shared, matrices, problem, warpgroup - 1, threadIdx.x % WARP == 0}.run();
  }
}
