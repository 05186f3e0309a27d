// TMA, the tensor memory accelerator: one thread asks for a box of a tensor, and the copy runs by itself. The tensor
// map (CUtensorMap, made by the host) knows the tensor's address, sizes and strides, the box and the swizzle. Elements
// outside the tensor read as zeros and are not written. TMA uses the async proxy. `shared::cluster` includes the
// block's own shared memory, where all copies here go.
// PTX ISA 9.7.9.27.1, "cp.async.bulk.tensor".
#pragma once

#include "harness/kernel.h"
#include <stdint.h>

// Loads the box that begins at column x, row y, matrix z. Its bytes count on the mbarrier as they land.
static __device__ __forceinline__ void tma_load(uint32_t to, const TensorMap *map, uint32_t barrier, int x, int y,
                                                int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
               "[%2];" ::"r"(to),
               "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
               : "memory");
}

// The same for a tensor of two dimensions, a matrix.
static __device__ __forceinline__ void tma_load(uint32_t to, const TensorMap *map, uint32_t barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
               "[%2];" ::"r"(to),
               "l"(map), "r"(barrier), "r"(x), "r"(y)
               : "memory");
}

// The same for a tensor of five dimensions, the innermost first.
static __device__ __forceinline__ void tma_load(uint32_t to, const TensorMap *map, uint32_t barrier, int x, int y,
                                                int z, int u, int v) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
               "%6, %7}], [%2];" ::"r"(to),
               "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v)
               : "memory");
}

// Loads `bytes` bytes that lie one after another and need no map. Both addresses and the number are multiples of 16.
// PTX ISA 9.7.9.25.4.1, "cp.async.bulk".
static __device__ __forceinline__ void bulk_load(uint32_t to, const void *from, uint32_t barrier, int bytes) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

// Stores a box. The thread must commit it, and wait before the shared memory is used again or the block ends.
static __device__ __forceinline__ void tma_store(const TensorMap *map, uint32_t from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(from),
               "r"(x), "r"(y), "r"(z)
               : "memory");
}

// The same for a matrix.
static __device__ __forceinline__ void tma_store(const TensorMap *map, uint32_t from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from),
               "r"(x), "r"(y)
               : "memory");
}

// The stores that this thread has started since its last commit become a group. PTX ISA 9.7.9.25.4.
static __device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's groups have not yet read their shared memory.
template <int PENDING> static __device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Waits until at most PENDING of this thread's groups have not finished writing.
template <int PENDING> static __device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}
