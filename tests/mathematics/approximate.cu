// The instructions that PTX ISA calls approximate, by themselves. What functions make of them is in the other files.
#include "function.cuh"

// clang-format off
#define SECTION "approximate"
#define ONE_F32(name, text) \
  static __device__ float name(float x) { float y; asm(text " %0, %1;" : "=f"(y) : "f"(x)); return y; }                \
  FUNCTION(float, (float x), name(x))
#define TWO_F32(name, text) \
  static __device__ float name(float x, float y) { float z; asm(text " %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y)); return z; } \
  FUNCTION(float, (float x, float y), name(x, y))
#define ONE_F64(name, text) \
  static __device__ double name(double x) { double y; asm(text " %0, %1;" : "=d"(y) : "d"(x)); return y; }             \
  FUNCTION(double, (double x), name(x))
#define ONE_16(T, name, text) \
  static __device__ T name(T x) { u16 a, b; memcpy(&a, &x, 2); asm(text " %0, %1;" : "=h"(b) : "h"(a)); memcpy(&x, &b, 2); return x; } \
  FUNCTION(T, (T x), name(x))

ONE_F32(ex2_approx, "ex2.approx.f32")
ONE_F32(ex2_approx_ftz, "ex2.approx.ftz.f32")
ONE_F32(lg2_approx, "lg2.approx.f32")
ONE_F32(lg2_approx_ftz, "lg2.approx.ftz.f32")
ONE_F32(rcp_approx, "rcp.approx.f32")
ONE_F32(rcp_approx_ftz, "rcp.approx.ftz.f32")
ONE_F32(sqrt_approx, "sqrt.approx.f32")
ONE_F32(sqrt_approx_ftz, "sqrt.approx.ftz.f32")
ONE_F32(rsqrt_approx, "rsqrt.approx.f32")
ONE_F32(rsqrt_approx_ftz, "rsqrt.approx.ftz.f32")
ONE_F32(sin_approx, "sin.approx.f32")
ONE_F32(sin_approx_ftz, "sin.approx.ftz.f32")
ONE_F32(cos_approx, "cos.approx.f32")
ONE_F32(cos_approx_ftz, "cos.approx.ftz.f32")
ONE_F32(tanh_approx, "tanh.approx.f32")
TWO_F32(div_approx, "div.approx.f32")
TWO_F32(div_approx_ftz, "div.approx.ftz.f32")
TWO_F32(div_full, "div.full.f32")
TWO_F32(div_full_ftz, "div.full.ftz.f32")
ONE_F64(rcp_approx_f64, "rcp.approx.ftz.f64")
ONE_F64(rsqrt_approx_f64, "rsqrt.approx.ftz.f64")
ONE_F64(rsqrt_approx_without_ftz_f64, "rsqrt.approx.f64")
ONE_16(__half, ex2_approx_f16, "ex2.approx.f16")
ONE_16(__half, tanh_approx_f16, "tanh.approx.f16")
ONE_16(__nv_bfloat16, ex2_approx_bf16, "ex2.approx.ftz.bf16")
ONE_16(__nv_bfloat16, tanh_approx_bf16, "tanh.approx.bf16")
// The high words of numbers from 1 to 4, of which the f64 instructions are functions.
FUNCTION(double, (u32 x), rcp_approx_f64(__hiloint2double(0x3ff00000 | (x & 0xfffff), 0)))
FUNCTION(double, (u32 x), rsqrt_approx_f64(__hiloint2double(0x3ff00000 + (x & 0x1fffff), 0)))
FUNCTION(double, (u32 x, u32 y), rcp_approx_f64(__hiloint2double(0x3ff00000 | (x & 0xfffff), y)))
#undef SECTION
