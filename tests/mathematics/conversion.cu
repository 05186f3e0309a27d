// Conversions: casts between all types, the intrinsics with their roundings, and those of cuda_fp8.h.
#include <cuda_fp8.h>

#include "function.cuh"

// clang-format off
#define SECTION "conversion"
#define CAST(R, A) FUNCTION(R, (A x), (R)x)
#define TO_NUMBERS(A)                                                                                                  \
  CAST(u8, A) CAST(s8, A) CAST(u16, A) CAST(s16, A) CAST(u32, A) CAST(s32, A) CAST(u64, A) CAST(s64, A)                \
  CAST(float, A) CAST(double, A)
#define TO_ALL(A) TO_NUMBERS(A) CAST(u128, A) CAST(s128, A) CAST(__half, A) CAST(__nv_bfloat16, A)
TO_ALL(u8) TO_ALL(s8) TO_ALL(u16) TO_ALL(s16) TO_ALL(u32) TO_ALL(s32) TO_ALL(u64) TO_ALL(s64) TO_ALL(float)
TO_ALL(double) TO_NUMBERS(u128) TO_NUMBERS(s128) TO_NUMBERS(__half) TO_NUMBERS(__nv_bfloat16)
FUNCTION(__nv_bfloat16, (__half x), __float2bfloat16(__half2float(x)))
FUNCTION(__half, (__nv_bfloat16 x), __float2half(__bfloat162float(x)))

#define CONVERT(R, A, f) FUNCTION(R, (A x), f(x))
#define CONVERT_ROUNDED(R, A, f)                                                                                       \
  CONVERT(R, A, f##_rn) CONVERT(R, A, f##_rz) CONVERT(R, A, f##_ru) CONVERT(R, A, f##_rd)
CONVERT_ROUNDED(float, double, __double2float) CONVERT_ROUNDED(int, double, __double2int)
CONVERT_ROUNDED(u32, double, __double2uint) CONVERT_ROUNDED(s64, double, __double2ll)
CONVERT_ROUNDED(u64, double, __double2ull) CONVERT_ROUNDED(int, float, __float2int)
CONVERT_ROUNDED(u32, float, __float2uint) CONVERT_ROUNDED(s64, float, __float2ll)
CONVERT_ROUNDED(u64, float, __float2ull) CONVERT_ROUNDED(float, int, __int2float)
CONVERT_ROUNDED(float, u32, __uint2float) CONVERT_ROUNDED(float, s64, __ll2float)
CONVERT_ROUNDED(float, u64, __ull2float) CONVERT_ROUNDED(double, s64, __ll2double)
CONVERT_ROUNDED(double, u64, __ull2double)
CONVERT(double, int, __int2double_rn) CONVERT(double, u32, __uint2double_rn)
CONVERT(int, double, __double2hiint) CONVERT(int, double, __double2loint)
CONVERT(s64, double, __double_as_longlong) CONVERT(double, s64, __longlong_as_double)
CONVERT(int, float, __float_as_int) CONVERT(float, int, __int_as_float)
FUNCTION(double, (int x, int y), __hiloint2double(x, y))

#define INTRINSICS(T, name)                                                                                            \
  CONVERT_ROUNDED(T, float, __float2##name) CONVERT(T, double, __double2##name) CONVERT(float, T, __##name##2float)    \
  CONVERT_ROUNDED(int, T, __##name##2int) CONVERT_ROUNDED(u32, T, __##name##2uint)                                     \
  CONVERT_ROUNDED(s64, T, __##name##2ll) CONVERT_ROUNDED(u64, T, __##name##2ull)                                       \
  CONVERT_ROUNDED(s16, T, __##name##2short) CONVERT_ROUNDED(u16, T, __##name##2ushort)                                 \
  CONVERT(s8, T, __##name##2char_rz) CONVERT(u8, T, __##name##2uchar_rz)                                               \
  CONVERT_ROUNDED(T, int, __int2##name) CONVERT_ROUNDED(T, u32, __uint2##name) CONVERT_ROUNDED(T, s64, __ll2##name)    \
  CONVERT_ROUNDED(T, u64, __ull2##name) CONVERT_ROUNDED(T, s16, __short2##name) CONVERT_ROUNDED(T, u16, __ushort2##name)
INTRINSICS(__half, half) INTRINSICS(__nv_bfloat16, bfloat16)
FUNCTION(__half2, (float x, float y), __floats2half2_rn(x, y))
FUNCTION(__half2, (float2 x), __float22half2_rn(x))
FUNCTION(float2, (__half2 x), __half22float2(x))
FUNCTION(__nv_bfloat162, (float x, float y), __floats2bfloat162_rn(x, y))
FUNCTION(__nv_bfloat162, (float2 x), __float22bfloat162_rn(x))
FUNCTION(float2, (__nv_bfloat162 x), __bfloat1622float2(x))

// ---- 8-bit floating point ----

#define FP8(saturate, type)                                                                                            \
  FUNCTION(u8, (float x), __nv_cvt_float_to_fp8(x, saturate, type))                                                    \
  FUNCTION(u8, (double x), __nv_cvt_double_to_fp8(x, saturate, type))                                                  \
  FUNCTION(u8, (__half x), __nv_cvt_halfraw_to_fp8(x, saturate, type))                                                 \
  FUNCTION(u8, (__nv_bfloat16 x), __nv_cvt_bfloat16raw_to_fp8(x, saturate, type))                                      \
  FUNCTION(u16, (float2 x), __nv_cvt_float2_to_fp8x2(x, saturate, type))                                               \
  FUNCTION(u16, (__half2 x), __nv_cvt_halfraw2_to_fp8x2(x, saturate, type))                                            \
  FUNCTION(u16, (__nv_bfloat162 x), __nv_cvt_bfloat16raw2_to_fp8x2(x, saturate, type))
FP8(__NV_NOSAT, __NV_E4M3) FP8(__NV_SATFINITE, __NV_E4M3) FP8(__NV_NOSAT, __NV_E5M2) FP8(__NV_SATFINITE, __NV_E5M2)
FUNCTION(__half, (u8 x), __half(__nv_cvt_fp8_to_halfraw(x, __NV_E4M3)))
FUNCTION(__half, (u8 x), __half(__nv_cvt_fp8_to_halfraw(x, __NV_E5M2)))
FUNCTION(__half2, (u16 x), __half2(__nv_cvt_fp8x2_to_halfraw2(x, __NV_E4M3)))
FUNCTION(__half2, (u16 x), __half2(__nv_cvt_fp8x2_to_halfraw2(x, __NV_E5M2)))

template <class T> static __device__ T of_bits(u8 x) { T y; y.__x = x; return y; }
#define FP8_CLASS(F)                                                                                                   \
  FUNCTION(u8, (float x), F(x).__x) FUNCTION(u8, (double x), F(x).__x) FUNCTION(u8, (__half x), F(x).__x)              \
  FUNCTION(u8, (__nv_bfloat16 x), F(x).__x) FUNCTION(u8, (int x), F(x).__x) FUNCTION(u8, (u64 x), F(x).__x)            \
  FUNCTION(float, (u8 x), (float)of_bits<F>(x)) FUNCTION(double, (u8 x), (double)of_bits<F>(x))                        \
  FUNCTION(__half, (u8 x), (__half)of_bits<F>(x)) FUNCTION(__nv_bfloat16, (u8 x), (__nv_bfloat16)of_bits<F>(x))        \
  FUNCTION(int, (u8 x), (int)of_bits<F>(x)) FUNCTION(u8, (u8 x), (u8)of_bits<F>(x)) FUNCTION(int, (u8 x), (bool)of_bits<F>(x))
FP8_CLASS(__nv_fp8_e4m3) FP8_CLASS(__nv_fp8_e5m2)
#if CUDART_VERSION >= 12080
#define E8M0(saturate, rounding)                                                                                       \
  FUNCTION(u8, (float x), __nv_cvt_float_to_e8m0(x, saturate, rounding))                                               \
  FUNCTION(u8, (double x), __nv_cvt_double_to_e8m0(x, saturate, rounding))                                             \
  FUNCTION(u8, (__nv_bfloat16 x), __nv_cvt_bfloat16raw_to_e8m0(x, saturate, rounding))
E8M0(__NV_NOSAT, cudaRoundZero) E8M0(__NV_NOSAT, cudaRoundPosInf) E8M0(__NV_SATFINITE, cudaRoundZero)
E8M0(__NV_SATFINITE, cudaRoundPosInf)
FUNCTION(__nv_bfloat16, (u8 x), __nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(x)))
#endif
#undef SECTION
