// double: operators, every function of CUDA's mathematics, and the intrinsics.
#include "function.cuh"

// clang-format off
#define SECTION "double"
#define D1(f) FUNCTION(double, (double x), f(x))
#define D2(f) FUNCTION(double, (double x, double y), f(x, y))
#define D3(f) FUNCTION(double, (double x, double y, double z), f(x, y, z))
#define D4(f) FUNCTION(double, (double x, double y, double z, double w), f(x, y, z, w))
#define E1(f) FUNCTION(int, (double x), f(x))
#define E2(f) FUNCTION(int, (double x, double y), f(x, y))

FUNCTION(double, (double x, double y), x + y)
FUNCTION(double, (double x, double y), x - y)
FUNCTION(double, (double x, double y), x * y)
FUNCTION(double, (double x, double y), x / y)
FUNCTION(double, (double x, double y, double z), x * y + z)
FUNCTION(double, (double x), -x)
FUNCTION(double, (double x), 1 / x)
FUNCTION(int, (double x, double y), x < y)
FUNCTION(int, (double x, double y), x <= y)
FUNCTION(int, (double x, double y), x > y)
FUNCTION(int, (double x, double y), x >= y)
FUNCTION(int, (double x, double y), x == y)
FUNCTION(int, (double x, double y), x != y)
FUNCTION(int, (double x, double y), !(x < y))
FUNCTION(int, (double x, double y), !(x >= y))
FUNCTION(int, (double x, double y), x < y || x > y)
FUNCTION(int, (double x, double y), x < y || x >= y)

D1(acos) D1(acosh) D1(asin) D1(asinh) D1(atan) D1(atanh) D1(cbrt) D1(ceil) D1(cos) D1(cosh) D1(cospi) D1(cyl_bessel_i0)
D1(cyl_bessel_i1) D1(erfc) D1(erfcinv) D1(erfcx) D1(erf) D1(erfinv) D1(exp10) D1(exp2) D1(exp) D1(expm1) D1(fabs)
D1(floor) D1(j0) D1(j1) D1(lgamma) D1(log10) D1(log1p) D1(log2) D1(logb) D1(log) D1(nearbyint) D1(normcdf)
D1(normcdfinv) D1(rcbrt) D1(rint) D1(round) D1(rsqrt) D1(sin) D1(sinh) D1(sinpi) D1(sqrt) D1(tan) D1(tanh) D1(tgamma)
D1(trunc) D1(y0) D1(y1)
D2(atan2) D2(copysign) D2(fdim) D2(fmax) D2(fmin) D2(fmod) D2(hypot) D2(nextafter) D2(pow) D2(remainder) D2(rhypot)
D2(max) D2(min)
D3(fma) D3(norm3d) D3(rnorm3d) D4(norm4d) D4(rnorm4d)
E1(ilogb) E1(isfinite) E1(isinf) E1(isnan) E1(signbit)

FUNCTION(long long, (double x), llrint(x))
FUNCTION(long long, (double x), llround(x))
FUNCTION(long, (double x), lrint(x))
FUNCTION(long, (double x), lround(x))
FUNCTION(double, (double x, int n), ldexp(x, n))
FUNCTION(double, (double x, int n), scalbn(x, n))
FUNCTION(double, (double x, long n), scalbln(x, n))
FUNCTION(double, (double x, int n), pow(x, n))
FUNCTION(double, (double x, int n), jn(n & 15, x))
FUNCTION(double, (double x, int n), yn(n & 15, x))

static __device__ double frexp_fraction(double x) { int e; return frexp(x, &e); }
static __device__ int frexp_exponent(double x) { int e; frexp(x, &e); return e; }
static __device__ double modf_fraction(double x) { double i; return modf(x, &i); }
static __device__ double modf_integer(double x) { double i; modf(x, &i); return i; }
static __device__ double remquo_remainder(double x, double y) { int q; return remquo(x, y, &q); }
static __device__ int remquo_quotient(double x, double y) { int q; remquo(x, y, &q); return q; }
static __device__ double sincos_sine(double x) { double s, c; sincos(x, &s, &c); return s; }
static __device__ double sincos_cosine(double x) { double s, c; sincos(x, &s, &c); return c; }
static __device__ double sincospi_sine(double x) { double s, c; sincospi(x, &s, &c); return s; }
static __device__ double sincospi_cosine(double x) { double s, c; sincospi(x, &s, &c); return c; }
static __device__ double norm_of_3(double x, double y, double z) { double v[] = {x, y, z}; return norm(3, v); }
static __device__ double rnorm_of_3(double x, double y, double z) { double v[] = {x, y, z}; return rnorm(3, v); }
D1(frexp_fraction) E1(frexp_exponent) D1(modf_fraction) D1(modf_integer) D2(remquo_remainder) E2(remquo_quotient)
D1(sincos_sine) D1(sincos_cosine) D1(sincospi_sine) D1(sincospi_cosine) D3(norm_of_3) D3(rnorm_of_3)

ROUNDED(D2, __dadd) ROUNDED(D2, __dsub) ROUNDED(D2, __dmul) ROUNDED(D2, __ddiv) ROUNDED(D1, __drcp) ROUNDED(D1, __dsqrt)
ROUNDED(D3, __fma)
#undef SECTION
