// Stage 20b: two blocks, a cluster, work on two tiles of C, one below the other. Both multiply the same rows of B. Each
// block loads half of them, once, and TMA writes them to both blocks' shared memory.
//
//   producer    loads its block's rows of A, and its half of B's rows for both blocks
//   consumer    releases a slot in both blocks, because both producers write to it
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/registers.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

#include "../20-gemm/output.h"

// A block's shared memory: the ring, and boxes of C on their way out. A full barrier completes when both blocks' TMA
// have filled the slot. A consumer warp releases it by four bytes that it stores in both blocks: an empty barrier
// completes when those of all consumer warps of both blocks have arrived.
struct Shared {
  half a[SLOTS][ROWS * DEPTH], b[SLOTS][COLUMNS * DEPTH];
  half c[CONSUMERS * 4][STORE_PANELS * STORE_ROWS * PANEL];  // of each consumer warp
  uint32_t released[SLOTS][RELEASES];                        // where these bytes go; nobody reads them
  uint64_t full[SLOTS], empty[SLOTS];

  __device__ void init() {
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_init(shared_address(full + i), 1);
      mbarrier_init(shared_address(empty + i), 1);
    }
    mbarrier_fence_init();
  }
};
static_assert(sizeof(Shared) == CLUSTER_SHARED_BYTES, "see tiles.h");

// The first row and column of this block's tile in pair number t. The pairs of GROUP_PAIRS rows are a group, and are
// numbered column by column, as in stage 20. problem.rows counts pairs here.
struct Tile {
  int row, column;
};

__device__ Tile find_tile(const Problem &problem, int t, int rank) {
  int first = t / (GROUP_PAIRS * problem.columns) * GROUP_PAIRS;  // row of pairs of the group
  int rows = min(GROUP_PAIRS, problem.rows - first);              // the last group may have fewer
  int number = t - first * problem.columns;
  return {((first + number % rows) * CLUSTER + rank) * ROWS, number / rows * COLUMNS};
}

// The pairs of a cluster: `first`, and then every clusters-th one.
struct Turns {
  int first, clusters, count;
};

__device__ Turns turns_of(const Problem &problem) {
  return {(int)blockIdx.x / CLUSTER, (int)gridDim.x / CLUSTER, problem.rows * problem.columns};
}

// ---- the producer: one thread ----

struct Producer {
  Shared &shared;
  const Matrices &matrices;
  const Problem &problem;
  int rank;
  Ring<SLOTS> ring;

  // Loads 64 columns of A's rows for this block and of half of B's rows for both, once the next slot is empty in both.
  // All of B's rows count on this block's barrier: the other half's bytes may land before it expects them.
  __device__ void load(const Tile &tile, int k) {
    const uint16_t all = (1 << CLUSTER) - 1;
    uint32_t full = shared_address(shared.full + ring.slot), empty = shared_address(shared.empty + ring.slot);
    mbarrier_wait_cluster(empty, ring.parity ^ 1);
    mbarrier_arrive_expect(empty, RELEASES * sizeof(uint32_t));  // when the slot has been used
    mbarrier_arrive_expect(full, SLOT_BYTES);
    tma_load(shared_address(shared.a[ring.slot]), &matrices.a, full, k * DEPTH, tile.row);
    tma_load_multicast(shared_address(shared.b[ring.slot] + rank * SHARE * DEPTH), &matrices.b, full, k * DEPTH,
                       tile.column + rank * SHARE, all);
    ring.advance();
  }

  // Waits until both blocks have released all slots. Until then the other one still stores and loads into this block's
  // shared memory, which ends with the block.
  __device__ void drain() {
    for (int i = 0; i < SLOTS; i++) {
      mbarrier_wait_cluster(shared_address(shared.empty + ring.slot), ring.parity ^ 1);
      ring.advance();
    }
  }

  __device__ void run() {
    Turns turns = turns_of(problem);
    for (int t = turns.first; t < turns.count; t += turns.clusters) {
      Tile tile = find_tile(problem, t, rank);
      for (int k = 0; k < problem.depth; k++) load(tile, k);
    }
    drain();
  }
};

// ---- a consumer: one warpgroup ----

struct Consumer {
  Shared &shared;
  const Matrices &matrices;
  const Problem &problem;
  int rank, warpgroup;
  bool elected;                  // one thread of each warp
  Ring<SLOTS> ring, read;        // the next slot to multiply, and to release
  float c[COLUMNS / 2];          // sums, of 64 rows
  uint32_t packed[COLUMNS / 4];  // the previous tile's sums, as fp16

  // Lane i tells block i.
  __device__ void release() {
    int lane = threadIdx.x % WARP, warp = (rank * CONSUMERS + warpgroup) * 4 + threadIdx.x % WARPGROUP / WARP;
    if (lane < CLUSTER)
      store_async(in_block(shared_address(shared.released[read.slot] + warp), lane), 0,
                  in_block(shared_address(shared.empty + read.slot), lane));
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
    Turns turns = turns_of(problem);
    for (int t = turns.first; t < turns.count; t += turns.clusters) {
      Tile tile = find_tile(problem, t, rank);
      sum(stores, boxes, before);
      before = tile;
      stores = true;
    }
    if (stores) store(boxes, before);
    if (elected) tma_store_wait_read<0>();  // the block's shared memory must stay until it has been read
  }
};

// ---- the kernel ----

// Grid: clusters of two, as many as pairs of SMs, or as pairs of tiles if those are fewer. Block: the producer's
// warpgroup, then the consumers.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm(const __grid_constant__ Matrices matrices, const Problem problem) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Shared &shared = *(Shared *)memory;
  if (threadIdx.x == 0) shared.init();
  cluster_sync();                                                       // the mbarriers of both blocks are there
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  if (warpgroup == 0) {
    registers_decrease<PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) Producer{shared, matrices, problem, cluster_rank()}.run();
  } else {
    registers_increase<CONSUMER_REGISTERS>();
    Consumer{shared, matrices, problem, cluster_rank(), warpgroup - 1, threadIdx.x % WARP == 0}.run();
  }
}
