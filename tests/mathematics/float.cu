// float: operators, every function of CUDA's mathematics, and the intrinsics.
#include "function.cuh"

// clang-format off
#define SECTION "float"
#define F1(f) FUNCTION(float, (float x), f(x))
#define F2(f) FUNCTION(float, (float x, float y), f(x, y))
#define F3(f) FUNCTION(float, (float x, float y, float z), f(x, y, z))
#define F4(f) FUNCTION(float, (float x, float y, float z, float w), f(x, y, z, w))
#define I1(f) FUNCTION(int, (float x), f(x))
#define I2(f) FUNCTION(int, (float x, float y), f(x, y))

FUNCTION(float, (float x, float y), x + y)
FUNCTION(float, (float x, float y), x - y)
FUNCTION(float, (float x, float y), x * y)
FUNCTION(float, (float x, float y), x / y)
FUNCTION(float, (float x, float y, float z), x * y + z)
FUNCTION(float, (float x), -x)
FUNCTION(float, (float x), 1 / x)
FUNCTION(int, (float x, float y), x < y)
FUNCTION(int, (float x, float y), x <= y)
FUNCTION(int, (float x, float y), x > y)
FUNCTION(int, (float x, float y), x >= y)
FUNCTION(int, (float x, float y), x == y)
FUNCTION(int, (float x, float y), x != y)
FUNCTION(int, (float x, float y), !(x < y))
FUNCTION(int, (float x, float y), !(x >= y))
FUNCTION(int, (float x, float y), x < y || x > y)
FUNCTION(int, (float x, float y), x < y || x >= y)

F1(acosf) F1(acoshf) F1(asinf) F1(asinhf) F1(atanf) F1(atanhf) F1(cbrtf) F1(ceilf) F1(cosf) F1(coshf) F1(cospif)
F1(cyl_bessel_i0f) F1(cyl_bessel_i1f) F1(erfcf) F1(erfcinvf) F1(erfcxf) F1(erff) F1(erfinvf) F1(exp10f) F1(exp2f)
F1(expf) F1(expm1f) F1(fabsf) F1(floorf) F1(j0f) F1(j1f) F1(lgammaf) F1(log10f) F1(log1pf) F1(log2f) F1(logbf) F1(logf)
F1(nearbyintf) F1(normcdff) F1(normcdfinvf) F1(rcbrtf) F1(rintf) F1(roundf) F1(rsqrtf) F1(sinf) F1(sinhf) F1(sinpif)
F1(sqrtf) F1(tanf) F1(tanhf) F1(tgammaf) F1(truncf) F1(y0f) F1(y1f)
F2(atan2f) F2(copysignf) F2(fdimf) F2(fdividef) F2(fmaxf) F2(fminf) F2(fmodf) F2(hypotf) F2(nextafterf) F2(powf)
F2(remainderf) F2(rhypotf) F2(max) F2(min)
F3(fmaf) F3(norm3df) F3(rnorm3df) F4(norm4df) F4(rnorm4df)
I1(ilogbf) I1(isfinite) I1(isinf) I1(isnan) I1(signbit)

FUNCTION(long long, (float x), llrintf(x))
FUNCTION(long long, (float x), llroundf(x))
FUNCTION(long, (float x), lrintf(x))
FUNCTION(long, (float x), lroundf(x))
FUNCTION(float, (float x, int n), ldexpf(x, n))
FUNCTION(float, (float x, int n), scalbnf(x, n))
FUNCTION(float, (float x, long n), scalblnf(x, n))
FUNCTION(float, (float x, int n), powf(x, n))
FUNCTION(float, (float x, int n), jnf(n & 15, x))
FUNCTION(float, (float x, int n), ynf(n & 15, x))

static __device__ float frexpf_fraction(float x) { int e; return frexpf(x, &e); }
static __device__ int frexpf_exponent(float x) { int e; frexpf(x, &e); return e; }
static __device__ float modff_fraction(float x) { float i; return modff(x, &i); }
static __device__ float modff_integer(float x) { float i; modff(x, &i); return i; }
static __device__ float remquof_remainder(float x, float y) { int q; return remquof(x, y, &q); }
static __device__ int remquof_quotient(float x, float y) { int q; remquof(x, y, &q); return q; }
static __device__ float2 both_sincosf(float x) { float2 r; sincosf(x, &r.x, &r.y); return r; }
static __device__ float2 both_sincospif(float x) { float2 r; sincospif(x, &r.x, &r.y); return r; }
static __device__ float2 both_sincosf_fast(float x) { float2 r; __sincosf(x, &r.x, &r.y); return r; }
static __device__ float normf_of_3(float x, float y, float z) { float v[] = {x, y, z}; return normf(3, v); }
static __device__ float rnormf_of_3(float x, float y, float z) { float v[] = {x, y, z}; return rnormf(3, v); }
F1(frexpf_fraction) I1(frexpf_exponent) F1(modff_fraction) F1(modff_integer)
F2(remquof_remainder) I2(remquof_quotient)
FUNCTION(float2, (float x), both_sincosf(x))
FUNCTION(float2, (float x), both_sincospif(x))
FUNCTION(float2, (float x), both_sincosf_fast(x))
F3(normf_of_3) F3(rnormf_of_3)

F1(__cosf) F1(__exp10f) F1(__expf) F1(__log10f) F1(__log2f) F1(__logf) F1(__sinf) F1(__tanf) F1(__saturatef)
F1(__frsqrt_rn) F2(__fdividef) F2(__powf)
ROUNDED(F2, __fadd) ROUNDED(F2, __fsub) ROUNDED(F2, __fmul) ROUNDED(F2, __fdiv) ROUNDED(F1, __frcp) ROUNDED(F1, __fsqrt)
ROUNDED(F3, __fmaf) ROUNDED(F3, __fmaf_ieee)
#if CUDART_VERSION >= 12080
F1(__tanhf)
#endif
#undef SECTION
