// Hopper's instructions as functions, one line of PTX each. PTX ISA 9.7.9 (copies), 9.7.13 (mbarriers, fences), 9.7.16
// (wgmma).
#pragma once

#include <cuda_fp16.h>
#include <stdint.h>

#include "kernels.h"

#define PTX __device__ __forceinline__

PTX unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// ---- cp.async: the thread's own copies, in groups ----

PTX unsigned load_matrix(const void *row) {
  unsigned x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(x) : "r"(shared_address(row)) : "memory");
  return x;
}

PTX void cp_async(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(to)), "l"(from) : "memory");
}
PTX void cp_async_float(float *to, const float *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(shared_address(to)), "l"(from) : "memory");
}
PTX void cp_async_part(void *to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(to)), "l"(from), "r"(bytes)
               : "memory");
}
PTX void cp_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int N> PTX void cp_async_wait() { asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory"); }
PTX void cp_async_arrive(uint64_t *b) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(shared_address(b)) : "memory");
}

// ---- fences ----

PTX void fence_async() { asm volatile("fence.proxy.async;" : : : "memory"); }
PTX void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"); }

// ---- mbarriers ----

PTX void mbarrier_init(uint64_t *b, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(shared_address(b)), "r"(arrivals) : "memory");
}
PTX void mbarrier_inval(uint64_t *b) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" : : "r"(shared_address(b)) : "memory");
}
PTX void mbarrier_arrive(uint64_t *b) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" : : "r"(shared_address(b)) : "memory");
}
PTX void mbarrier_arrive_at(unsigned b) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" : : "r"(b) : "memory");
}
PTX void mbarrier_arrive_narrow(unsigned b) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" : : "r"(b) : "memory");
}
PTX void mbarrier_arrive_expect(uint64_t *b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(shared_address(b)), "r"(bytes) : "memory");
}
PTX bool mbarrier_try(uint64_t *b, int parity) {
  int done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(shared_address(b)), "r"(parity)
               : "memory");
  return done;
}
PTX void mbarrier_wait(uint64_t *b, int parity) {
  while (!mbarrier_try(b, parity)) {}
}

// ---- bulk copies of contiguous bytes ----

PTX void bulk_load(void *to, const void *from, int bytes, uint64_t *b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(b))
               : "memory");
}
PTX void bulk_multicast(void *to, const void *from, int bytes, uint64_t *b, int ranks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
      :
      : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(b)), "h"((short)ranks)
      : "memory");
}
// To another block of the cluster, whose mbarrier counts the bytes.
PTX void bulk_to_peer(unsigned to, const void *from, int bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(to), "r"(shared_address(from)), "r"(bytes), "r"(barrier)
               : "memory");
}
PTX void bulk_store(void *to, const void *from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               :
               : "l"(to), "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
PTX void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
template <int N> PTX void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" : : "n"(N) : "memory"); }
template <int N> PTX void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(N) : "memory"); }

// ---- tensor copies of boxes ----

struct alignas(64) TensorMap {
  char bytes[128];
};

PTX void tensor_load(void *to, const TensorMap *map, int x, int y, uint64_t *b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               :
               : "r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(b))
               : "memory");
}
PTX void tensor_store(const TensorMap *map, int x, int y, const void *from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
               :
               : "l"(map), "r"(x), "r"(y), "r"(shared_address(from))
               : "memory");
}

// ---- wgmma: m64n8k16, fp16 in, fp32 out ----

enum { NO_SWIZZLE = 0, SWIZZLE_128B = 1, SWIZZLE_64B = 2, SWIZZLE_32B = 3 };

// The descriptor of a matrix at a shared address, with its two offsets in bytes. PTX ISA 9.7.16.5.1.
PTX uint64_t descriptor_at(unsigned address, int leading, int stride, int swizzle) {
  return (address & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
         (uint64_t)swizzle << 62;
}
PTX uint64_t descriptor(const void *p, int leading, int stride, int swizzle) {
  return descriptor_at(shared_address(p), leading, stride, swizzle);
}

PTX void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
PTX void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int N> PTX void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory"); }
// D += A B
PTX void wgmma(float (&d)[4], uint64_t a, uint64_t b) {
  asm volatile("{ wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0; }"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b)
               : "memory");
}
// The same from the first fence to the last wait.
PTX void multiply(float (&d)[4], uint64_t a, uint64_t b) {
  wgmma_fence();
  wgmma(d, a, b);
  wgmma_commit();
  wgmma_wait<0>();
}
PTX void wgmma_registers(float (&d)[4], const unsigned (&a)[4], uint64_t b) {
  asm volatile(
      "{ wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
      : "memory");
}

// A is 64 x 16 and B 8 x 16, both as core matrices of 8 rows by 16 bytes: those along K follow each other.
struct alignas(128) Tiles {
  half a[1024], b[128];
};

PTX uint64_t describe(const half *p) { return descriptor(p, 128, 256, NO_SWIZZLE); }
PTX void put(float *out, const float (&d)[4]) {
  for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = d[i];
}

// ---- clusters ----

PTX unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
PTX unsigned shared_address_in(const void *p, unsigned rank) {
  unsigned mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(shared_address(p)), "r"(rank));
  return mapped;
}
PTX float load_cluster(unsigned address) {
  float x;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory");
  return x;
}
PTX void store_cluster(unsigned address, float x) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(address), "f"(x) : "memory");
}
// st.async: the mbarrier of the block that it writes counts the bytes.
PTX void store_async(unsigned address, float x, unsigned barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];"
               :
               : "r"(address), "f"(x), "r"(barrier)
               : "memory");
}
PTX void store_async_four(unsigned address, float4 x, unsigned barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
               :
               : "r"(address), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(barrier)
               : "memory");
}
PTX void add_cta(unsigned address, int x) {
  asm volatile("red.relaxed.cta.shared::cluster.add.s32 [%0], %1;" : : "r"(address), "r"(x) : "memory");
}
PTX void add_cluster(unsigned address, int x) {
  asm volatile("red.relaxed.cluster.shared::cluster.add.s32 [%0], %1;" : : "r"(address), "r"(x) : "memory");
}
PTX void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" : : : "memory"); }
PTX void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory"); }
PTX void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" : : : "memory"); }

// ---- roles ----

template <int N> PTX void registers_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(N)); }
template <int N> PTX void registers_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(N)); }
PTX bool elect() {
  int one;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(one));
  return one;
}
