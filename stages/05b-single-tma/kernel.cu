// Stage 05b: one instruction. A thread asks TMA for a box of a tensor, and an mbarrier shows when its bytes have landed
// in shared memory.
//
//   load      boxes, one after another, into the same tile, on the same mbarrier
//   phases    an mbarrier alone: what ends a phase, and which wait would end
//   latency   one load, with the clock read before and after
#include <stdint.h>

#include "load.h"

#include "ptx/mbarrier.h"
#include "ptx/tile.h"
#include "ptx/tma.h"

// A block's shared memory. The patterns of all swizzles begin at a multiple of 1024 bytes, and so must the tile.
struct Shared {
  char tile[MAX_TILE];
  uint64_t full;  // completes when the tile has landed
};
static_assert(sizeof(Shared) == SHARED_BYTES, "see load.h");

// ---- one load ----

// One thread prepares the mbarrier: a phase needs one arrival, that of the thread that loads.
__device__ void init(Shared &shared) {
  mbarrier_init(shared_address(&shared.full), 1);
  mbarrier_fence_init();
}

// One thread starts a load. The mbarrier counts all bytes of the box, also those outside of the tensor.
__device__ void start(Shared &shared, const TensorMap *map, const Box &box, Corner at) {
  mbarrier_arrive_expect(shared_address(&shared.full), box.rows * box.columns * ELEMENT);
  tma_load(shared_address(shared.tile), map, shared_address(&shared.full), at.x, at.y, at.z);
}

// Waits until the load of this round has landed. Each round is a phase of the mbarrier.
__device__ void wait_for(Shared &shared, int round) { mbarrier_wait(shared_address(&shared.full), round % 2); }

// Where in the tile a chunk of 16 bytes of a row lies. The box lies row by row. A swizzle then exchanges chunks: it
// XORs the address bits that number a chunk, from bit 4 up, with those from bit 7 up.
__device__ uint32_t place(const Box &box, int row, int chunk) {
  uint32_t offset = row * box.columns * ELEMENT + chunk * CHUNK;
  uint32_t mask = box.swizzle ? box.swizzle / CHUNK - 1 : 0;
  return offset ^ (offset >> 7 & mask) << 4;
}

// Round r loads the box at corners[r]. All threads then copy the tile to device memory, as it lies and row by row.
//
// Grid: 1. Block: 128. lying, by_rows: [rounds][chunks of the box]
extern "C" __global__ void __launch_bounds__(THREADS)
    load(const __grid_constant__ TensorMap map, const Box box, const Corner *corners, int rounds, uint4 *lying,
         uint4 *by_rows) {
  extern __shared__ __align__(1024) char memory[];
  Shared &shared = *(Shared *)memory;
  if (threadIdx.x == 0) init(shared);
  __syncthreads();  // the mbarrier is there

  int width = box.columns / IN_CHUNK, chunks = box.rows * width;
  for (int round = 0; round < rounds; round++) {
    if (threadIdx.x == 0) start(shared, &map, box, corners[round]);
    wait_for(shared, round);
    for (int i = threadIdx.x; i < chunks; i += THREADS) {
      lying[round * chunks + i] = *(uint4 *)(shared.tile + i * CHUNK);
      by_rows[round * chunks + i] = *(uint4 *)(shared.tile + place(box, i / width, i % width));
    }
    __syncthreads();  // all threads have used the tile: the next load may overwrite it
  }
}

// ---- an mbarrier alone ----

// Whether the phase of that parity is complete. PTX ISA 9.7.13.15.16, "mbarrier.test_wait".
__device__ int is_complete(uint32_t barrier, uint32_t parity) {
  int is;
  asm volatile("{\n"
               ".reg .pred complete;\n"
               "mbarrier.test_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
               "selp.b32 %0, 1, 0, complete;\n"
               "}"
               : "=r"(is)
               : "r"(barrier), "r"(parity)
               : "memory");
  return is;
}

// Counts bytes as TMA does when they land. PTX ISA 9.7.13.15.12, "mbarrier.complete_tx".
__device__ void land(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ void look(Look *&looks, uint32_t barrier) {
  *looks++ = Look{{is_complete(barrier, 0), is_complete(barrier, 1)}};
}

// Looks at phase 1 alone. Once all arrivals are there, the emulator reports a wait for the previous phase as a mistake.
__device__ void look_at_phase_1(Look *&looks, uint32_t barrier) {
  *looks++ = Look{{NOT_ASKED, is_complete(barrier, 1)}};
}

// Two phases of an mbarrier that expects two arrivals, event by event. Grid: 1. Block: 1. looks: [LOOKS]
extern "C" __global__ void phases(Look *looks) {
  __shared__ uint64_t object;
  uint32_t barrier = shared_address(&object);
  mbarrier_init(barrier, 2);
  look(looks, barrier);
  mbarrier_arrive_expect(barrier, 1024);
  look(looks, barrier);
  land(barrier, 1024);
  look(looks, barrier);
  mbarrier_arrive(barrier);  // the last arrival ends phase 0
  look(looks, barrier);
  mbarrier_arrive(barrier);
  look(looks, barrier);
  mbarrier_arrive_expect(barrier, 1024);
  look_at_phase_1(looks, barrier);
  land(barrier, 512);
  look_at_phase_1(looks, barrier);
  land(barrier, 512);  // the last byte ends phase 1
  look(looks, barrier);
}

// ---- how long it takes ----

// Clocks of a load in each round: until it has been started, and until the thread knows that the tile is there.
// Grid: 1. Block: 1. clocks: [rounds]
extern "C" __global__ void latency(const __grid_constant__ TensorMap map, const Box box, const Corner *corners,
                                   int rounds, int2 *clocks) {
  extern __shared__ __align__(1024) char memory[];
  Shared &shared = *(Shared *)memory;
  init(shared);
  for (int round = 0; round < rounds; round++) {
    Corner at = corners[round];
    int64_t begin = clock64();
    start(shared, &map, box, at);
    int64_t started = clock64();
    wait_for(shared, round);
    int64_t end = clock64();
    clocks[round] = make_int2((int)(started - begin), (int)(end - begin));
  }
}
