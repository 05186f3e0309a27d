// A kernel around wgmma.mma_async, for wgmma_*.cu: the shared memory is as the host wants it, byte for byte, and so are
// the descriptors. PTX ISA 9.7.16.
#pragma once

#include "accumulators.cuh"
#include "wgmma.h"

// Eight columns' accumulators in a thread: loaded, stored.
#define LOAD_f32(g) "ld.global.v4.f32 {" LIST_f32(g) "}, [c];\nadd.u64 c, c, 2048;\n"
#define LOAD_f16(g) "ld.global.v2.b32 {" LIST_f16(g) "}, [c];\nadd.u64 c, c, 1024;\n"
#define STORE_f32(g) "st.global.v4.f32 [d], {" LIST_f32(g) "};\nadd.u64 d, d, 2048;\n"
#define STORE_f16(g) "st.global.v2.b32 [d], {" LIST_f16(g) "};\nadd.u64 d, d, 1024;\n"
#define BYTES_f32 16
#define BYTES_f16 8

// GROUPS = N / 8. NEXT prepares a step's A, MMA_A names it, LAST ends the step.
#define WGMMA_ASM(N, GROUPS, D, TYPES, NEXT, MMA_A, REST, LAST)                                                        \
  asm volatile(                                                                                                        \
      "{\n.reg .pred accumulate, more;\n.reg .b64 s, c, d, a, da, db;\n.reg .b32 n, x, a0, a1, a2, "                   \
      "a3;\n" EACH_##GROUPS(DECLARE_##D, ) "mov.u64 s, %0;\nmov.u32 n, %1;\nmov.u64 c, %2;\nmov.u64 d, %2;\nmov.u64 "  \
                                           "a, %3;\n" EACH_##GROUPS(                                                   \
                                               LOAD_##D, ) "STEP:\nld.global.v2.b64 {da, db}, [s];\nadd.u64 da, da, "  \
                                                           "%4;\nadd.u64 db, db, %4;\n"                                \
                                                           "ld.global.b32 x, [s+16];\nsetp.ne.b32 accumulate, x, "     \
                                                           "0;\n" NEXT "wgmma.fence.sync.aligned;\n"                   \
                                                           "wgmma.mma_async.sync.aligned.m64n" #N "k16." TYPES         \
                                                           " {" EACH_##GROUPS(                                         \
                                                               LIST_##D,                                               \
                                                               ", ") "}, " MMA_A ", db, accumulate, " REST ";\n" LAST  \
                                                                     "add.u64 s, s, 32;\nsub.u32 n, n, "               \
                                                                     "1;\nsetp.ne.u32 more, n, 0;\n@more bra STEP;\n"  \
                                                                     "wgmma.commit_group.sync.aligned;\nwgmma.wait_"   \
                                                                     "group.sync.aligned 0;\n" EACH_##GROUPS(          \
                                                                         STORE_##D, ) "}\n" ::"l"(in->step),           \
      "r"(in->steps), "l"(thread_c), "l"(in->a[0][threadIdx.x]), "l"(base)                                             \
      : "memory")

#define SHARED_A "da"
#define REGISTERS_A "{a0, a1, a2, a3}"
#define LOAD_A "ld.global.v4.b32 {a0, a1, a2, a3}, [a];\nadd.u64 a, a, 2048;\n"
#define WAIT "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"

extern __shared__ __align__(1024) uint8_t wgmma_shared[];

// Ordinary stores, so that the matrices need a proxy fence. The result is the start, as a descriptor counts it.
__device__ static uint64_t copy_image(const WgmmaInput *in) {
  const uint4 *image = (const uint4 *)in->image;
  for (int i = threadIdx.x; i < WGMMA_SHARED / 16; i += 128) ((uint4 *)wgmma_shared)[i] = image[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  return (uint64_t)__cvta_generic_to_shared(wgmma_shared) >> 4;
}

#define WGMMA_KERNEL(NAME, D, ...)                                                                                     \
  extern "C" __global__ void __launch_bounds__(128) NAME(const WgmmaInput *in, uint8_t *out) {                         \
    uint64_t base = copy_image(in);                                                                                    \
    uint8_t *thread_c = out + threadIdx.x * BYTES_##D;                                                                 \
    __VA_ARGS__;                                                                                                       \
  }

// wgmma_<N>_<types>_<A's and B's transposition>, A from shared memory; SIGNS are the two scales.
#define SHARED_KERNEL(NAME, N, GROUPS, D, TYPES, SIGNS, TRANSPOSED)                                                    \
  WGMMA_KERNEL(NAME, D, WGMMA_ASM(N, GROUPS, D, TYPES, "", SHARED_A, SIGNS ", " TRANSPOSED, ""))
#define REGISTER_KERNEL(NAME, N, GROUPS, D, TYPES, SIGNS, TRANSPOSED)                                                  \
  WGMMA_KERNEL(NAME, D, WGMMA_ASM(N, GROUPS, D, TYPES, LOAD_A, REGISTERS_A, SIGNS ", " TRANSPOSED, WAIT))
