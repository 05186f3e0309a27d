// Clusters: blocks that run at the same time on neighbouring SMs, and reach into each other's shared memory. PTX ISA
// 3.2, "Cooperative Thread Arrays"; 9.7.13.5, "barrier.cluster".
#pragma once

#include <stdint.h>

#include "harness/kernel.h"

// The number of this block in its cluster, from 0 on.
static __device__ __forceinline__ int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Waits until all threads of all blocks of the cluster have come here. What they wrote before is seen after it.
static __device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The two halves of a barrier that tells when all threads have come here, and no more: what a thread wrote before it
// arrived, others may not see. So no fence stands in front. That of cluster_sync waits until the whole GPU could see
// it.
static __device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
static __device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// The number of blocks in this cluster.
static __device__ __forceinline__ int cluster_size() {
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
  return size;
}

// From an address in this block's shared memory to that of the same place in another block's. PTX ISA 9.7.9.23, "mapa".
static __device__ __forceinline__ uint32_t in_block(uint32_t address, int rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// Stores into the shared memory of any block of the cluster: an address from in_block. PTX ISA 9.7.9.11, "st".
static __device__ __forceinline__ void store_cluster(uint32_t to, float x) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
static __device__ __forceinline__ void store_cluster(uint32_t to, float2 x) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x.x), "f"(x.y) : "memory");
}

// Loads from the shared memory of any block of the cluster: an address from in_block. PTX ISA 9.7.9.8, "ld".
static __device__ __forceinline__ float load_cluster(uint32_t from) {
  float x;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
  return x;
}
static __device__ __forceinline__ float4 load_cluster_four(uint32_t from) {
  float4 x;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(from)
               : "memory");
  return x;
}

// Arrives at an mbarrier of any block of the cluster: an address from in_block. PTX ISA 9.7.13.15.13.
static __device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Stores 4 or 8 bytes in any block of the cluster: addresses from in_block. When they have arrived they count on an
// mbarrier of the same block. A thread that waits for it sees what this thread did before: the count has release
// semantics at the scope of the cluster. The cluster has more than one block. PTX ISA 9.7.9.12, "st.async".
static __device__ __forceinline__ void store_async(uint32_t to, uint32_t value, uint32_t barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(value),
               "r"(barrier)
               : "memory");
}
static __device__ __forceinline__ void store_async(uint32_t to, float2 x, uint32_t barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(to),
               "f"(x.x), "f"(x.y), "r"(barrier)
               : "memory");
}

// Waits at one of this block's mbarriers that other blocks' threads complete. PTX ISA 9.7.13.15.16.
static __device__ __forceinline__ void mbarrier_wait_cluster(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred complete;\n"
               "again:\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%0], %1;\n"
               "@!complete bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

// Loads a box of a matrix once, and writes it to several blocks: bit i of `blocks` stands for block i. In each of them
// the box goes to the same place, and its bytes count on the mbarrier at the same place. PTX ISA 9.7.9.27.1.
static __device__ __forceinline__ void tma_load_multicast(uint32_t to, const TensorMap *map, uint32_t barrier, int x,
                                                          int y, uint16_t blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
               "[%1, {%3, %4}], [%2], %5;" ::"r"(to),
               "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(blocks)
               : "memory");
}
