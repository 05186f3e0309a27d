// Integers of 8 to 128 bits: operators, intrinsics, the packed ones, and those for dynamic programming.
#include "function.cuh"

// clang-format off
#define SECTION "integer"
#define OPERATORS(T)                                                                                                   \
  FUNCTION(T, (T x, T y), (T)(x + y))                                                                                  \
  FUNCTION(T, (T x, T y), (T)(x - y))                                                                                  \
  FUNCTION(T, (T x, T y), (T)(x * y))                                                                                  \
  FUNCTION(T, (T x, T y), y == 0 ? (T)1 : (T)(x / y))                                                                  \
  FUNCTION(T, (T x, T y), y == 0 ? (T)1 : (T)(x % y))                                                                  \
  FUNCTION(T, (T x, T y, T z), (T)(x * y + z))                                                                         \
  FUNCTION(T, (T x), (T)-x)                                                                                            \
  FUNCTION(T, (T x, T y), (T)(x & y))                                                                                  \
  FUNCTION(T, (T x, T y), (T)(x | y))                                                                                  \
  FUNCTION(T, (T x, T y), (T)(x ^ ~y))                                                                                 \
  FUNCTION(T, (T x, int n), (T)(x << (n & (8 * sizeof(T) - 1))))                                                       \
  FUNCTION(T, (T x, int n), (T)(x >> (n & (8 * sizeof(T) - 1))))                                                       \
  FUNCTION(int, (T x, T y), x < y)                                                                                     \
  FUNCTION(int, (T x, T y), x <= y)                                                                                    \
  FUNCTION(int, (T x, T y), x == y)                                                                                    \
  FUNCTION(T, (T x, T y), x < y ? x : y)                                                                               \
  FUNCTION(T, (T x, T y), x > y ? x : y)

OPERATORS(u8) OPERATORS(s8) OPERATORS(u16) OPERATORS(s16) OPERATORS(u32) OPERATORS(s32) OPERATORS(u64) OPERATORS(s64)
OPERATORS(u128) OPERATORS(s128)
// Division by what the compiler knows.
#define BY_CONSTANTS(T)                                                                                                \
  FUNCTION(T, (T x), x / 3) FUNCTION(T, (T x), x % 7) FUNCTION(T, (T x), x / 10) FUNCTION(T, (T x), x % 16)            \
  FUNCTION(T, (T x), x / 641) FUNCTION(T, (T x), x / 8)
BY_CONSTANTS(u32) BY_CONSTANTS(s32) BY_CONSTANTS(u64) BY_CONSTANTS(s64) BY_CONSTANTS(u128) BY_CONSTANTS(s128)
// Wide by narrow, in all pairs that programs write.
FUNCTION(u128, (u64 x, u64 y), (u128)x * y)
FUNCTION(s128, (s64 x, s64 y), (s128)x * y)
FUNCTION(u64, (u128 x, u64 y), y ? (u64)(x / y) : 0)
FUNCTION(u64, (u128 x, u64 y), y ? (u64)(x % y) : 0)
FUNCTION(u128, (u128 x, u32 y), y ? x / y : 0)
FUNCTION(u64, (u64 x, u64 y, u64 z), z ? (u64)((u128)x * y % z) : 0)
FUNCTION(u64, (u32 x, u32 y), (u64)x * y)
FUNCTION(s64, (s32 x, s32 y), (s64)x * y)
FUNCTION(u64, (u32 x, u32 y, u64 z), (u64)x * y + z)
FUNCTION(s64, (s32 x, s32 y, s64 z), (s64)x * y + z)

FUNCTION(int, (int x), abs(x))
FUNCTION(s64, (s64 x), llabs(x))
FUNCTION(int, (int x, int y), min(x, y))
FUNCTION(u32, (u32 x, u32 y), max(x, y))
FUNCTION(s64, (s64 x, s64 y), max(x, y))
FUNCTION(u64, (u64 x, u64 y), min(x, y))
FUNCTION(u32, (u32 x), __brev(x))
FUNCTION(u64, (u64 x), __brevll(x))
FUNCTION(int, (int x), __clz(x))
FUNCTION(int, (s64 x), __clzll(x))
FUNCTION(int, (int x), __ffs(x))
FUNCTION(int, (s64 x), __ffsll(x))
FUNCTION(int, (u32 x), __popc(x))
FUNCTION(int, (u64 x), __popcll(x))
FUNCTION(u32, (u32 x, u32 y, s32 z), __fns(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __byte_perm(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __funnelshift_l(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __funnelshift_lc(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __funnelshift_r(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __funnelshift_rc(x, y, z))
FUNCTION(int, (int x, int y), __hadd(x, y))
FUNCTION(int, (int x, int y), __rhadd(x, y))
FUNCTION(u32, (u32 x, u32 y), __uhadd(x, y))
FUNCTION(u32, (u32 x, u32 y), __urhadd(x, y))
FUNCTION(int, (int x, int y), __mul24(x, y))
FUNCTION(u32, (u32 x, u32 y), __umul24(x, y))
FUNCTION(int, (int x, int y), __mulhi(x, y))
FUNCTION(u32, (u32 x, u32 y), __umulhi(x, y))
FUNCTION(s64, (s64 x, s64 y), __mul64hi(x, y))
FUNCTION(u64, (u64 x, u64 y), __umul64hi(x, y))
FUNCTION(u32, (int x, int y, u32 z), __sad(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __usad(x, y, z))
FUNCTION(int, (int x, int y, int z), __dp4a(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __dp4a(x, y, z))
FUNCTION(int, (int x, int y, int z), __dp2a_lo(x, y, z))
FUNCTION(int, (int x, int y, int z), __dp2a_hi(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __dp2a_lo(x, y, z))
FUNCTION(u32, (u32 x, u32 y, u32 z), __dp2a_hi(x, y, z))

#define U1(f) FUNCTION(u32, (u32 x), f(x))
#define U2(f) FUNCTION(u32, (u32 x, u32 y), f(x, y))
#define U3(f) FUNCTION(u32, (u32 x, u32 y, u32 z), f(x, y, z))
#define S2(f) FUNCTION(int, (int x, int y), f(x, y))
#define S3(f) FUNCTION(int, (int x, int y, int z), f(x, y, z))
#define BOTH(ROW, f) ROW(f##2) ROW(f##4)
BOTH(U1, __vabs) BOTH(U1, __vabsss) BOTH(U1, __vneg) BOTH(U1, __vnegss)
BOTH(U2, __vabsdiffs) BOTH(U2, __vabsdiffu) BOTH(U2, __vadd) BOTH(U2, __vaddss) BOTH(U2, __vaddus) BOTH(U2, __vavgs)
BOTH(U2, __vavgu) BOTH(U2, __vhaddu) BOTH(U2, __vmaxs) BOTH(U2, __vmaxu) BOTH(U2, __vmins) BOTH(U2, __vminu)
BOTH(U2, __vsads) BOTH(U2, __vsadu) BOTH(U2, __vsub) BOTH(U2, __vsubss) BOTH(U2, __vsubus)
BOTH(U2, __vcmpeq) BOTH(U2, __vcmpges) BOTH(U2, __vcmpgeu) BOTH(U2, __vcmpgts) BOTH(U2, __vcmpgtu) BOTH(U2, __vcmples)
BOTH(U2, __vcmpleu) BOTH(U2, __vcmplts) BOTH(U2, __vcmpltu) BOTH(U2, __vcmpne)
BOTH(U2, __vseteq) BOTH(U2, __vsetges) BOTH(U2, __vsetgeu) BOTH(U2, __vsetgts) BOTH(U2, __vsetgtu) BOTH(U2, __vsetles)
BOTH(U2, __vsetleu) BOTH(U2, __vsetlts) BOTH(U2, __vsetltu) BOTH(U2, __vsetne)

S3(__viaddmax_s32) S3(__viaddmin_s32) S3(__viaddmax_s32_relu) S3(__viaddmin_s32_relu) U3(__viaddmax_u32)
U3(__viaddmin_u32) U3(__viaddmax_s16x2) U3(__viaddmin_s16x2) U3(__viaddmax_s16x2_relu) U3(__viaddmin_s16x2_relu)
U3(__viaddmax_u16x2) U3(__viaddmin_u16x2)
S3(__vimax3_s32) S3(__vimin3_s32) S3(__vimax3_s32_relu) S3(__vimin3_s32_relu) U3(__vimax3_u32) U3(__vimin3_u32)
U3(__vimax3_s16x2) U3(__vimin3_s16x2) U3(__vimax3_s16x2_relu) U3(__vimin3_s16x2_relu) U3(__vimax3_u16x2)
U3(__vimin3_u16x2) S2(__vimax_s32_relu) S2(__vimin_s32_relu) U2(__vimax_s16x2_relu) U2(__vimin_s16x2_relu)

template <class T, class F> static __device__ u64 chosen(F f, T x, T y) {
  bool first;
  T best = f(x, y, &first);
  return (u64)first << 32 | (u32)best;
}
template <class F> static __device__ u64 chosen_halves(F f, u32 x, u32 y) {
  bool high, low;
  u32 best = f(x, y, &high, &low);
  return (u64)high << 33 | (u64)low << 32 | best;
}
#define CHOICE(T, f) FUNCTION(u64, (T x, T y), chosen<T>([](T a, T b, bool *p) { return f(a, b, p); }, x, y))
#define CHOICES(f) FUNCTION(u64, (u32 x, u32 y), chosen_halves([](u32 a, u32 b, bool *p, bool *q) { return f(a, b, p, q); }, x, y))
CHOICE(int, __vibmax_s32) CHOICE(int, __vibmin_s32) CHOICE(u32, __vibmax_u32) CHOICE(u32, __vibmin_u32)
CHOICES(__vibmax_s16x2) CHOICES(__vibmin_s16x2) CHOICES(__vibmax_u16x2) CHOICES(__vibmin_u16x2)
#undef SECTION
