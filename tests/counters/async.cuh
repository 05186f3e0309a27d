// The kernels of wgmma and of the copies that run by themselves: bulk copies and TMA. All repeat their instruction as
// often as the launch says, which says the layouts, the sizes and the places too (offsets.h, ARG_...).
#pragma once

#include <cuda.h>

#include "../../common/ptx/mbarrier.h"
#include "../../common/ptx/tma.h"
#include "../../common/ptx/wgmma.h"
#include "../gpu/accumulators.cuh"
#include "kernel.cuh"

// ---- wgmma ----
//
// Both operands begin where shared memory does: what they hold does not matter, and where they lie does not either.

__device__ unsigned long long descriptor_of(const uint16_t *layout) {
  return matrix_descriptor(shared_address(tile), layout[0], layout[1], (Swizzle)layout[2]);
}

#define ZERO_f32(g)                                                                                                    \
  "mov.f32 d" #g "a, 0f00000000;\nmov.f32 d" #g "b, 0f00000000;\nmov.f32 d" #g "c, 0f00000000;\nmov.f32 d" #g          \
  "d, 0f00000000;\n"
#define ZERO_f16(g) "mov.b32 d" #g "a, 0;\nmov.b32 d" #g "b, 0;\n"
// Of all accumulators, so that none is superfluous.
#define SUM_f32(g)                                                                                                     \
  "add.f32 %0, %0, d" #g "a;\nadd.f32 %0, %0, d" #g "b;\nadd.f32 %0, %0, d" #g "c;\nadd.f32 %0, %0, d" #g "d;\n"
#define SUM_f16(g) "mov.b32 x, d" #g "a;\nadd.f32 %0, %0, x;\nmov.b32 x, d" #g "b;\nadd.f32 %0, %0, x;\n"

#define A_SHARED "%2"
#define A_REGISTERS "{a, a, a, a}"

// D: f32 or f16, of the accumulators. GROUPS: N / 8. REST: the signs, then whether A (when in shared memory) and B are
// MN-major.
#define BEGIN_SUMS(D, GROUPS) EACH_##GROUPS(DECLARE_##D, ) EACH_##GROUPS(ZERO_##D, )
#define SUMS(D, GROUPS) "{" EACH_##GROUPS(LIST_##D, ", ") "}, "
#define ONE_WGMMA(D, SHAPE, GROUPS, A, REST)                                                                           \
  "wgmma.mma_async.sync.aligned." SHAPE " " SUMS(D, GROUPS) A ", %3, 1, " REST ";\n"
#define WGMMA_LOOP(body)                                                                                               \
  "mov.u32 n, %1;\n"                                                                                                   \
  "TRIP:\n"                                                                                                            \
  ".pragma \"nounroll\";\n"                                                                                            \
  "wgmma.fence.sync.aligned;\n" EIGHT(body) "wgmma.commit_group.sync.aligned;\n"                                       \
                                            "wgmma.wait_group.sync.aligned 0;\n"                                       \
                                            "sub.u32 n, n, 1;\n"                                                       \
                                            "setp.ne.u32 more, n, 0;\n"                                                \
                                            "@more bra TRIP;\n"
#define WGMMA(name, D, SHAPE, GROUPS, A, REST)                                                                         \
  KERNEL(name) {                                                                                                       \
    const uint16_t *row = offsets.of[blockIdx.x];                                                                      \
    float sum = 0;                                                                                                     \
    asm volatile("{\n.reg .pred more;\n.reg .b32 n, a;\n.reg .f32 x;\nmov.u32 a, %1;\n" BEGIN_SUMS(D, GROUPS)          \
                     WGMMA_LOOP(ONE_WGMMA(D, SHAPE, GROUPS, A, REST)) EACH_##GROUPS(SUM_##D, ) "}"                     \
                 : "+f"(sum)                                                                                           \
                 : "r"((unsigned)row[ARG_TRIPS]), "l"(descriptor_of(row + ARG_A_LEADING)),                             \
                   "l"(descriptor_of(row + ARG_B_LEADING))                                                             \
                 : "memory");                                                                                          \
    keep(sum, memory);                                                                                                 \
  }
#define WGMMA_SHARED(N, GROUPS) WGMMA(wgmma_n##N, f32, "m64n" #N "k16.f32.f16.f16", GROUPS, A_SHARED, "1, 1, 0, 0")
#define WGMMA_SHARED_MN(N, GROUPS)                                                                                     \
  WGMMA(wgmma_n##N##_mn_major, f32, "m64n" #N "k16.f32.f16.f16", GROUPS, A_SHARED, "1, 1, 1, 1")
#define WGMMA_REGISTERS(N, GROUPS)                                                                                     \
  WGMMA(wgmma_n##N##_a_registers, f32, "m64n" #N "k16.f32.f16.f16", GROUPS, A_REGISTERS, "1, 1, 0")
WGMMA_SHARED(8, 1)
WGMMA_SHARED(16, 2)
WGMMA_SHARED(24, 3)
WGMMA_SHARED(64, 8)
WGMMA_SHARED(96, 12)
WGMMA_SHARED(128, 16)
WGMMA_SHARED(192, 24)
WGMMA_SHARED(256, 32)
WGMMA_SHARED_MN(8, 1)
WGMMA_SHARED_MN(64, 8)
WGMMA_SHARED_MN(128, 16)
WGMMA_SHARED_MN(256, 32)
WGMMA_REGISTERS(8, 1)
WGMMA_REGISTERS(64, 8)
WGMMA_REGISTERS(128, 16)
WGMMA_REGISTERS(256, 32)
WGMMA(wgmma_n64_a_registers_mn_major, f32, "m64n64k16.f32.f16.f16", 8, A_REGISTERS, "1, 1, 1")
WGMMA(wgmma_n64_bf16, f32, "m64n64k16.f32.bf16.bf16", 8, A_SHARED, "1, 1, 0, 0")
WGMMA(wgmma_n64_f16_sums, f16, "m64n64k16.f16.f16.f16", 8, A_SHARED, "1, 1, 0, 0")

// ---- copies: the first thread of a block asks for one at a time, and waits for it ----

#define CLUSTER_KERNEL(name)                                                                                           \
  extern "C" __global__ void __cluster_dims__(2, 1, 1) name(const __grid_constant__ Offsets offsets, char *memory)
#define TENSOR_PARAMETERS                                                                                              \
  (const __grid_constant__ Offsets offsets, char *memory, const __grid_constant__ CUtensorMap map)
#define TENSOR_KERNEL(name) extern "C" __global__ void name TENSOR_PARAMETERS
#define TENSOR_CLUSTER_KERNEL(name) extern "C" __global__ void __cluster_dims__(2, 1, 1) name TENSOR_PARAMETERS

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ unsigned block_of_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The same place in the shared memory of another block.
__device__ unsigned in_block(unsigned address, unsigned block) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}

struct Copy {
  unsigned tile, barrier, bytes;  // in shared memory
  char *global;
  int x, y;
};

// Reads the launch's arguments and prepares the barrier on which the bytes count.
__device__ Copy begin_copies(const Offsets &offsets, char *memory, const uint64_t *barrier) {
  const uint16_t *row = offsets.of[blockIdx.x];
  Copy copy = {shared_address(tile) + row[ARG_SHARED],
               shared_address(barrier),
               row[ARG_BYTES],
               memory + row[ARG_GLOBAL],
               (int16_t)row[ARG_X],
               (int16_t)row[ARG_Y]};
  if (threadIdx.x == 0) {
    mbarrier_init(copy.barrier, 1);
    mbarrier_fence_init();
  }
  __syncthreads();
  return copy;
}

// LOAD is a statement that starts a load to `copy.tile`, which counts on `copy.barrier`.
#define LOADS(LOAD)                                                                                                    \
  __shared__ uint64_t barrier;                                                                                         \
  Copy copy = begin_copies(offsets, memory, &barrier);                                                                 \
  if (threadIdx.x) return;                                                                                             \
  REPEAT_LOOP {                                                                                                        \
    mbarrier_arrive_expect(copy.barrier, (int)copy.bytes);                                                             \
    LOAD;                                                                                                              \
    mbarrier_wait(copy.barrier, i & 1);                                                                                \
  }
// The first block's loads land in both blocks of the cluster, LANDS says in which of them.
#define LOADS_OF_CLUSTER(LOAD, LANDS)                                                                                  \
  __shared__ uint64_t barrier;                                                                                         \
  Copy copy = begin_copies(offsets, memory, &barrier);                                                                 \
  unsigned block = block_of_cluster();                                                                                 \
  REPEAT_LOOP {                                                                                                        \
    if (threadIdx.x == 0 && (LANDS)) mbarrier_arrive_expect(copy.barrier, (int)copy.bytes);                            \
    cluster_sync();                                                                                                    \
    if (threadIdx.x == 0 && block == 0) LOAD;                                                                          \
    if (LANDS) mbarrier_wait(copy.barrier, i & 1);                                                                     \
  }                                                                                                                    \
  cluster_sync();
#define STORES(STORE)                                                                                                  \
  __shared__ uint64_t barrier;                                                                                         \
  Copy copy = begin_copies(offsets, memory, &barrier);                                                                 \
  if (threadIdx.x) return;                                                                                             \
  REPEAT_LOOP {                                                                                                        \
    STORE;                                                                                                             \
    tma_store_commit();                                                                                                \
    tma_store_wait<0>();                                                                                               \
  }

#define BULK_LOAD "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
#define TENSOR_LOAD "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
#define EVERY_BLOCK ((uint16_t)3)

KERNEL(bulk_load){LOADS(asm volatile(BULK_LOAD " [%0], [%1], %2, [%3];" ::"r"(copy.tile), "l"(copy.global),
                                     "r"(copy.bytes), "r"(copy.barrier)
                                     : "memory"))}

CLUSTER_KERNEL(bulk_load_multicast){
    LOADS_OF_CLUSTER(asm volatile(BULK_LOAD ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(copy.tile),
                                  "l"(copy.global), "r"(copy.bytes), "r"(copy.barrier), "h"(EVERY_BLOCK)
                                  : "memory"),
                     true)}

// From the first block's shared memory to the second's.
CLUSTER_KERNEL(bulk_to_block){LOADS_OF_CLUSTER(
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
                 "[%3];" ::"r"(in_block(copy.tile, 1)),
                 "r"(copy.tile), "r"(copy.bytes), "r"(in_block(copy.barrier, 1))
                 : "memory"),
    block == 1)}

KERNEL(bulk_store){STORES(asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(copy.global),
                                       "r"(copy.tile), "r"(copy.bytes)
                                       : "memory"))}

KERNEL(bulk_reduce){
    STORES(asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(copy.global),
                        "r"(copy.tile), "r"(copy.bytes)
                        : "memory"))}

KERNEL(bulk_prefetch){
    STORES(asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(copy.global), "r"(copy.bytes)
                        : "memory"))}

TENSOR_KERNEL(tensor_load){LOADS(asm volatile(TENSOR_LOAD " [%0], [%1, {%3, %4}], [%2];" ::"r"(copy.tile), "l"(&map),
                                              "r"(copy.barrier), "r"(copy.x), "r"(copy.y)
                                              : "memory"))}

TENSOR_CLUSTER_KERNEL(tensor_load_multicast){
    LOADS_OF_CLUSTER(asm volatile(TENSOR_LOAD ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(copy.tile),
                                  "l"(&map), "r"(copy.barrier), "r"(copy.x), "r"(copy.y), "h"(EVERY_BLOCK)
                                  : "memory"),
                     true)}

TENSOR_KERNEL(tensor_store){
    STORES(asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
                        "r"(copy.tile), "r"(copy.x), "r"(copy.y)
                        : "memory"))}

TENSOR_KERNEL(tensor_reduce){STORES(
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
                 "r"(copy.tile), "r"(copy.x), "r"(copy.y)
                 : "memory"))}

// ---- loads and stores of another block's shared memory ----

CLUSTER_KERNEL(ld_cluster_b32) {
  unsigned x, there = in_block(shared_address(tile + my_offset(offsets)), block_of_cluster() ^ 1);
  cluster_sync();
  asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(x) : "r"(there) : "memory");
  keep(x, memory);
  cluster_sync();
}

// The own block's, by an address that mapa made.
CLUSTER_KERNEL(ld_cluster_own_b32) {
  unsigned x, there = in_block(shared_address(tile + my_offset(offsets)), block_of_cluster());
  asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(x) : "r"(there) : "memory");
  keep(x, memory);
}

CLUSTER_KERNEL(st_cluster_own_b32) {
  unsigned there = in_block(shared_address(tile + my_offset(offsets)), block_of_cluster());
  asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(there), "r"(threadIdx.x) : "memory");
}

CLUSTER_KERNEL(atom_cluster_add) {
  unsigned old, there = in_block(shared_address(tile + my_offset(offsets)), block_of_cluster() ^ 1);
  cluster_sync();
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(there), "r"(threadIdx.x + 1) : "memory");
  keep(old, memory);
  cluster_sync();
}

CLUSTER_KERNEL(st_cluster_b32) {
  unsigned there = in_block(shared_address(tile + my_offset(offsets)), block_of_cluster() ^ 1);
  cluster_sync();
  asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(there), "r"(threadIdx.x) : "memory");
  cluster_sync();
}
