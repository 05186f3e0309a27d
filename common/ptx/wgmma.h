// wgmma: a warpgroup, four warps, multiplies matrices on the tensor cores. The factors are read from shared memory (the
// first also from registers) while the threads go on. Hopper's, sm_90a. PTX ISA 9.7.16, "wgmma".
//
// Of D, 64 x N, thread t of the warpgroup holds N / 2 numbers, warp w = t / 32, lane l = t % 32:
//
//   d[i] is row 16 w + l / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (l % 4) + i % 2
#pragma once

#include <stdint.h>

// ---- order ----

// Before the first wgmma, and after any write to registers that the next ones read or add to.
static __device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// The wgmmas since the last commit become a group.
static __device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most PENDING groups are running. What the others have read may then be overwritten.
template <int PENDING> static __device__ __forceinline__ void wgmma_wait() {
  static_assert(PENDING >= 0 && PENDING <= 7, "a number of groups");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Stands before a wait, and makes sure that x is computed before that wait. ptxas may move a wait up across arithmetic,
// but not across a store. This store depends on x and never happens: no instruction makes a result with these bits,
// because their NaN is 0x7fffffff (PTX ISA 9.7.3).
static __device__ __forceinline__ void computed_here(float x) {
  asm volatile("{\n.reg .pred never;\nsetp.eq.s32 never, %0, 0x7fffff00;\n@never st.shared.b32 [%0], %0;\n}" ::"r"(
                   __float_as_int(x))
               : "memory");
}

// Comes after the wait. The compiler does not know that the wait is for these registers. This tells it that they change
// here, so that it does not read them earlier. It makes no instruction.
template <int COUNT> static __device__ __forceinline__ void wgmma_results(float (&d)[COUNT]) {
  for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Comes before a product that overwrites d. The compiler takes the instruction for one that may also read d, and would
// keep d's old values until then. This tells it that they are not needed. It makes no instruction.
template <int COUNT> static __device__ __forceinline__ void wgmma_unread(float (&d)[COUNT]) {
  for (int i = 0; i < COUNT; i++) asm volatile("" : "=f"(d[i]));
}

// COUNT registers of an array, from `first` on, as an array: a product has the registers of a whole array. `first` must
// be constant once loops are unrolled.
template <int COUNT, int SIZE>
static __device__ __forceinline__ auto slice(float (&registers)[SIZE], int first) -> float (&)[COUNT] {
  return *(float(*)[COUNT])(registers + first);
}

// ---- the matrix descriptor. PTX ISA 9.7.16.5.1 ----

typedef enum Swizzle { SWIZZLE_NONE = 0, SWIZZLE_128B = 1, SWIZZLE_64B = 2, SWIZZLE_32B = 3 } Swizzle;

// Where a matrix lies in shared memory, in 64 bits. address, leading and stride: bytes, multiples of 16.
//
//                          K-major (rows along K)                     MN-major (rows along M or N)
//   not swizzled  leading  to the next 8 along K                      to the next 8 along K
//                 stride   to the next 8 rows                         to the next 8 along M or N
//   swizzled      leading  ignored                                    to the next panel, as wide as the swizzle
//                 stride   to the next 8 rows                         to the next 8 along K
static __device__ __forceinline__ uint64_t matrix_descriptor(uint32_t address, uint32_t leading, uint32_t stride,
                                                             Swizzle swizzle) {
  return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
         (uint64_t)swizzle << 62;
}

// ---- the instruction. fp16 factors, fp32 sums ----

// PTX names every register. A function cannot make such names, so macros do.
#define OPERANDS_0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define OPERANDS_1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define OPERANDS_2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define OPERANDS_3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define OPERANDS_4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define OPERANDS_5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define OPERANDS_6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define OPERANDS_7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define OPERANDS_8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define OPERANDS_9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define OPERANDS_10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define OPERANDS_11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define OPERANDS_12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define OPERANDS_13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define OPERANDS_14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define OPERANDS_15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define OPERANDS_8x4 OPERANDS_0 ", " OPERANDS_1 ", " OPERANDS_2 ", " OPERANDS_3
#define OPERANDS_8x6 OPERANDS_8x4 ", " OPERANDS_4 ", " OPERANDS_5
#define OPERANDS_8x8 OPERANDS_8x6 ", " OPERANDS_6 ", " OPERANDS_7
#define OPERANDS_8x16                                                                                                  \
  OPERANDS_8x8 ", " OPERANDS_8 ", " OPERANDS_9 ", " OPERANDS_10 ", " OPERANDS_11 ", " OPERANDS_12 ", " OPERANDS_13     \
               ", " OPERANDS_14 ", " OPERANDS_15
#define REGISTERS_8(d, i)                                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),          \
      "+f"(d[i + 7])
#define REGISTERS_8x4(d, i) REGISTERS_8(d, i), REGISTERS_8(d, i + 8), REGISTERS_8(d, i + 16), REGISTERS_8(d, i + 24)
#define REGISTERS_8x6(d, i) REGISTERS_8x4(d, i), REGISTERS_8(d, i + 32), REGISTERS_8(d, i + 40)
#define REGISTERS_8x8(d, i) REGISTERS_8x4(d, i), REGISTERS_8x4(d, i + 32)
#define REGISTERS_8x16(d, i) REGISTERS_8x8(d, i), REGISTERS_8x8(d, i + 64)

#define WGMMA_BEGIN(N, ACCUMULATE)                                                                                     \
  "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " ACCUMULATE ", 0;\n"                                            \
  "wgmma.mma_async.sync.aligned.m64n" N "k16.f32.f16.f16 "

// D = A B + (accumulate ? D : 0) for A of 64 x 16, K-major, and B of 16 x N, both in shared memory. B_MN_MAJOR: B's
// rows lie along N, as those of V do; otherwise along K, as those of K do (and then B is K transposed).
template <int N, bool B_MN_MAJOR = false>
static __device__ __forceinline__ void wgmma(float (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) {
  static_assert(N == 64 || N == 96 || N == 128 || N == 256,
                "PTX allows every multiple of 8 up to 256; these are written out here");
  if constexpr (N == 64)
    asm volatile(WGMMA_BEGIN("64", "%34") "{" OPERANDS_8x4 "}, %32, %33, accumulate, 1, 1, 0, %35;\n}"
                 : REGISTERS_8x4(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
  if constexpr (N == 96)
    asm volatile(WGMMA_BEGIN("96", "%50") "{" OPERANDS_8x6 "}, %48, %49, accumulate, 1, 1, 0, %51;\n}"
                 : REGISTERS_8x6(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
  if constexpr (N == 128)
    asm volatile(WGMMA_BEGIN("128", "%66") "{" OPERANDS_8x8 "}, %64, %65, accumulate, 1, 1, 0, %67;\n}"
                 : REGISTERS_8x8(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
  if constexpr (N == 256)
    asm volatile(WGMMA_BEGIN("256", "%130") "{" OPERANDS_8x16 "}, %128, %129, accumulate, 1, 1, 0, %131;\n}"
                 : REGISTERS_8x16(d, 0)
                 : "l"(a), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
}

// The same with A in registers, four of them with two numbers each:
//
//   a[j] is row 16 w + l / 4 + 8 (j % 2), columns 8 (j / 2) + 2 (l % 4) and the next
//
// which is what pack makes of d[8 k + 2 j] and the next: D of one product is A of another.
template <int N, bool B_MN_MAJOR = false>
static __device__ __forceinline__ void wgmma(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, int accumulate) {
  static_assert(N == 64 || N == 96 || N == 128 || N == 256,
                "PTX allows every multiple of 8 up to 256; these are written out here");
  if constexpr (N == 64)
    asm volatile(WGMMA_BEGIN("64", "%37") "{" OPERANDS_8x4 "}, {%32, %33, %34, %35}, %36, accumulate, 1, 1, %38;\n}"
                 : REGISTERS_8x4(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
  if constexpr (N == 96)
    asm volatile(WGMMA_BEGIN("96", "%53") "{" OPERANDS_8x6 "}, {%48, %49, %50, %51}, %52, accumulate, 1, 1, %54;\n}"
                 : REGISTERS_8x6(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
  if constexpr (N == 128)
    asm volatile(WGMMA_BEGIN("128", "%69") "{" OPERANDS_8x8 "}, {%64, %65, %66, %67}, %68, accumulate, 1, 1, %70;\n}"
                 : REGISTERS_8x8(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
  if constexpr (N == 256)
    asm volatile(WGMMA_BEGIN("256", "%133") "{" OPERANDS_8x16 "}, {%128, %129, %130, %131}, %132, accumulate, 1, 1, "
                                            "%134;\n}"
                 : REGISTERS_8x16(d, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(B_MN_MAJOR));
}
