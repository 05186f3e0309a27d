// Asynchronous copies and what they synchronise with: cp.async, bulk and tensor copies, mbarriers, clusters.
#include <cuda.h>

#include "copies.h"

extern __shared__ __align__(1024) uint8_t tile[];

__device__ static uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ static uint32_t barrier_address() { return shared_address(tile) + COPY_TILE; }
__device__ static void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ static void init_barrier(uint32_t count) {
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier_address()), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
}

__device__ static void expect(uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier_address()), "r"(bytes) : "memory");
}

// Whether the phase with that parity ends; a wait that would never end is given up.
__device__ static uint32_t wait(uint32_t parity) {
  uint32_t done = 0;
  for (int i = 0; i < 2000 && !done; i++)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(barrier_address()), "r"(parity)
                 : "memory");
  return done;
}

// The tile as the host has given it, or full of one byte, ready for an asynchronous copy.
__device__ static void fill_tile(const uint8_t *data) {
  for (int i = threadIdx.x; i < COPY_TILE / 16; i += COPY_THREADS)
    ((uint4 *)tile)[i] = data ? ((const uint4 *)data)[i] : make_uint4(0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee);
  fence_async();
  __syncthreads();
}

__device__ static void keep_tile(CopyResult *out, uint32_t completed) {
  __syncthreads();
  for (int i = threadIdx.x; i < COPY_TILE / 16; i += COPY_THREADS) ((uint4 *)out->tile)[i] = ((const uint4 *)tile)[i];
  if (threadIdx.x == 0) out->completed = completed;
}

__device__ static void wait_stores() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

// ---- tensor copies ----

#define TO_1 "[%1, {%2}]"
#define TO_2 "[%1, {%2, %3}]"
#define TO_3 "[%1, {%2, %3, %4}]"
#define TO_4 "[%1, {%2, %3, %4, %5}]"
#define TO_5 "[%1, {%2, %3, %4, %5, %6}]"
#define OPERANDS                                                                                                       \
  "r"(shared_address(tile) + in->offset), "l"(&map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]),            \
      "r"(barrier_address())

#define TENSOR_LOAD(RANK)                                                                                              \
  extern "C" __global__ void tensor_load_##RANK##d(const __grid_constant__ CUtensorMap map, const CopyInput *in,       \
                                                   CopyResult *out) {                                                  \
    const int *c = in->coordinates;                                                                                    \
    init_barrier(1);                                                                                                   \
    fill_tile(0);                                                                                                      \
    if (threadIdx.x == 0) {                                                                                            \
      expect(in->bytes);                                                                                               \
      asm volatile("cp.async.bulk.tensor." #RANK                                                                       \
                   "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], " TO_##RANK ", [%7];" ::OPERANDS  \
                   : "memory");                                                                                        \
    }                                                                                                                  \
    keep_tile(out, wait(0));                                                                                           \
  }
TENSOR_LOAD(1)
TENSOR_LOAD(2)
TENSOR_LOAD(3)
TENSOR_LOAD(4)
TENSOR_LOAD(5)

#define TENSOR_STORE(NAME, RANK, REDUCE, OPERATION)                                                                    \
  extern "C" __global__ void NAME(const __grid_constant__ CUtensorMap map, const CopyInput *in, uint8_t *out) {        \
    const int *c = in->coordinates;                                                                                    \
    fill_tile(in->data);                                                                                               \
    if (threadIdx.x == 0) {                                                                                            \
      asm volatile("cp" REDUCE ".async.bulk.tensor." #RANK "d.global.shared::cta" OPERATION                            \
                   ".tile.bulk_group " TO_##RANK ", [%0];" ::OPERANDS                                                  \
                   : "memory");                                                                                        \
      wait_stores();                                                                                                   \
    }                                                                                                                  \
  }
TENSOR_STORE(tensor_store_1d, 1, "", "")
TENSOR_STORE(tensor_store_2d, 2, "", "")
TENSOR_STORE(tensor_store_3d, 3, "", "")
TENSOR_STORE(tensor_store_4d, 4, "", "")
TENSOR_STORE(tensor_store_5d, 5, "", "")
#define TENSOR_REDUCE(NAME, OPERATION) TENSOR_STORE(tensor_reduce_##NAME, 2, ".reduce", OPERATION)
TENSOR_REDUCTIONS(TENSOR_REDUCE)

// ---- bulk copies ----

extern "C" __global__ void bulk_load(const CopyInput *in, CopyResult *out) {
  init_barrier(1);
  fill_tile(0);
  if (threadIdx.x == 0) {
    expect(in->bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(tile) + 48),
                 "l"(in->data + 16), "r"(in->bytes), "r"(barrier_address())
                 : "memory");
  }
  keep_tile(out, wait(0));
}

extern "C" __global__ void bulk_store(const CopyInput *in, uint8_t *out) {
  fill_tile(in->data);
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + 16),
                 "r"(shared_address(tile) + 32), "r"(in->bytes)
                 : "memory");
    wait_stores();
  }
}

#define BULK_REDUCE(NAME, OPERATION)                                                                                   \
  extern "C" __global__ void bulk_reduce_##NAME(const CopyInput *in, uint8_t *out) {                                   \
    fill_tile(in->data);                                                                                               \
    if (threadIdx.x == 0) {                                                                                            \
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group" OPERATION " [%0], [%1], %2;" ::"l"(out),       \
                   "r"(shared_address(tile)), "r"(in->bytes)                                                           \
                   : "memory");                                                                                        \
      wait_stores();                                                                                                   \
    }                                                                                                                  \
  }
BULK_REDUCTIONS(BULK_REDUCE)

// ---- cp.async: thread t reads t % (size + 1) bytes of its own 16 and zeros for the rest ----

#define CP_ASYNC(MODE, SIZE, PLACE)                                                                                    \
  asm volatile("cp.async." MODE ".shared.global [%0], [%1], " #SIZE ", %2;" ::"r"(to + (PLACE)*16 * COPY_THREADS),     \
               "l"(from), "r"(t % (SIZE + 1))                                                                          \
               : "memory")

extern "C" __global__ void cp_async(const CopyInput *in, CopyResult *out) {
  uint32_t t = threadIdx.x, to = shared_address(tile) + 16 * t;
  const uint8_t *from = in->data + 16 * t;
  fill_tile(0);
  CP_ASYNC("ca", 4, 0);
  CP_ASYNC("ca", 8, 1);
  CP_ASYNC("ca", 16, 2);
  CP_ASYNC("cg", 16, 3);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 4 * 16 * COPY_THREADS), "l"(from) : "memory");
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 8, p;}" ::"r"(
                   to + 5 * 16 * COPY_THREADS),
               "l"(from), "r"(t & 1)
               : "memory");
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  keep_tile(out, 1);
}

// ---- mbarriers: what test_wait and pending_count promise, by one thread ----

__device__ static uint64_t arrive(uint32_t count) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(barrier_address()), "r"(count)
               : "memory");
  return state;
}

__device__ static uint32_t pending(uint64_t state) {
  uint32_t count;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
  return count;
}

__device__ static uint32_t test(uint64_t state) {
  uint32_t done;
  asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(barrier_address()), "l"(state)
               : "memory");
  return done;
}

__device__ static uint32_t test_parity(uint32_t parity) {
  uint32_t done;
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(barrier_address()), "r"(parity)
               : "memory");
  return done;
}

extern "C" __global__ void mbarriers(const CopyInput *in, uint32_t *out) {
  int n = 0;
  uint64_t state;
  init_barrier(5);
  out[n++] = test_parity(0);
  out[n++] = test_parity(1);
  state = arrive(2);
  out[n++] = pending(state);
  out[n++] = test(state);
  out[n++] = pending(arrive(1));
  asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier_address()) : "memory");
  out[n++] = pending(state);
  out[n++] = test(state);
  state = arrive(1);  // the fifth: the phase ends
  out[n++] = pending(state);
  out[n++] = test(state);
  out[n++] = test_parity(0);
  out[n++] = test_parity(1);
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared.b64 [%0], 64;" ::"r"(barrier_address()) : "memory");
  state = arrive(4);  // all of the four that are left; the bytes are missing
  out[n++] = pending(state);
  out[n++] = test(state);
  out[n++] = test_parity(1);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared.b64 [%0], 64;" ::"r"(barrier_address()) : "memory");
  out[n++] = test(state);
  out[n++] = test_parity(1);
  out[n++] = pending(arrive(1));
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(barrier_address()) : "memory");
  out[n++] = in->bytes;
}

// ---- clusters of two blocks ----

__device__ static uint32_t rank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

__device__ static uint32_t in_block(uint32_t address, uint32_t block) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(block));
  return mapped;
}

__device__ static void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Each block reads the other's tile, adds to it, and arrives on its mbarrier.
extern "C" __global__ void cluster_exchange(const CopyInput *in, uint32_t *out) {
  uint32_t *words = (uint32_t *)tile, t = threadIdx.x, value, old, *mine = out + blockIdx.x * 4 * COPY_THREADS;
  const uint32_t *data = (const uint32_t *)in->data;
  words[t] = data[blockIdx.x * COPY_THREADS + t];
  init_barrier(COPY_THREADS);
  cluster_barrier();
  uint32_t there = in_block(shared_address(&words[t]), rank() ^ 1);
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
  cluster_barrier();
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(there), "r"(t) : "memory");
  asm volatile(
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(barrier_address(), rank() ^ 1))
      : "memory");
  mine[t] = value;
  mine[COPY_THREADS + t] = old;
  mine[2 * COPY_THREADS + t] = wait(0);
  cluster_barrier();
  mine[3 * COPY_THREADS + t] = words[t];
}

// Each block copies from the first half of its tile to a second half, which must be in a launch with a cluster:
// coordinate 0 tells to whose, and by which address.
extern "C" __global__ void bulk_shared(const CopyInput *in, CopyResult *out) {
  uint32_t half = shared_address(tile) + COPY_TILE / 2, to = half, barrier = barrier_address();
  int target = in->coordinates[0];
  init_barrier(1);
  fill_tile(in->data + blockIdx.x * COPY_TILE);
  if (threadIdx.x == 0) expect(in->bytes);
  cluster_barrier();
  if (target != COPY_TO_OWN) {
    uint32_t block = target == COPY_TO_OTHER ? rank() ^ 1 : rank();
    to = in_block(half, block);
    barrier = in_block(barrier, block);
  }
  if (threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "r"(shared_address(tile) + 32), "r"(in->bytes), "r"(barrier)
        : "memory");
  keep_tile(&out[blockIdx.x], wait(0));
  cluster_barrier();
}

// The first block loads a box into both.
extern "C" __global__ void tensor_multicast(const __grid_constant__ CUtensorMap map, const CopyInput *in,
                                            CopyResult *out) {
  const int *c = in->coordinates;
  init_barrier(1);
  fill_tile(0);
  if (threadIdx.x == 0) expect(in->bytes);
  cluster_barrier();
  if (threadIdx.x == 0 && rank() == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(tile)),
        "l"(&map), "r"(c[0]), "r"(c[1]), "r"(barrier_address()), "h"((uint16_t)3)
        : "memory");
  keep_tile(&out[blockIdx.x], wait(0));
  cluster_barrier();
}
