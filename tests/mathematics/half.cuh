// The functions of half and half2, or of __nv_bfloat16 and __nv_bfloat162: T and T2.
// clang-format off
#define H1(f) FUNCTION(T, (T x), f(x))
#define H2(f) FUNCTION(T, (T x, T y), f(x, y))
#define H3(f) FUNCTION(T, (T x, T y, T z), f(x, y, z))
#define P1(f) FUNCTION(T2, (T2 x), f(x))
#define P2(f) FUNCTION(T2, (T2 x, T2 y), f(x, y))
#define P3(f) FUNCTION(T2, (T2 x, T2 y, T2 z), f(x, y, z))
#define HI1(f) FUNCTION(int, (T x), f(x))
#define HI2(f) FUNCTION(int, (T x, T y), f(x, y))
#define PI2(f) FUNCTION(u32, (T2 x, T2 y), f(x, y))

FUNCTION(T, (T x, T y), x + y)
FUNCTION(T, (T x, T y), x - y)
FUNCTION(T, (T x, T y), x * y)
FUNCTION(T, (T x, T y), x / y)
FUNCTION(T, (T x, T y, T z), x * y + z)
FUNCTION(T, (T x, T y, T z), z - x * y)
FUNCTION(T, (T x), -x)
FUNCTION(int, (T x, T y), x < y)
FUNCTION(int, (T x, T y), x == y)
FUNCTION(int, (T x, T y), x != y)
FUNCTION(T2, (T2 x, T2 y), x + y)
FUNCTION(T2, (T2 x, T2 y), x - y)
FUNCTION(T2, (T2 x, T2 y), x * y)
FUNCTION(T2, (T2 x, T2 y), x / y)
FUNCTION(T2, (T2 x, T2 y, T2 z), x * y + z)
FUNCTION(int, (T2 x, T2 y), x < y)

H1(__habs) H1(__hneg) H1(hceil) H1(hcos) H1(hexp) H1(hexp10) H1(hexp2) H1(hfloor) H1(hlog) H1(hlog10) H1(hlog2) H1(hrcp)
H1(hrint) H1(hrsqrt) H1(hsin) H1(hsqrt) H1(htrunc)
H2(__hadd) H2(__hadd_rn) H2(__hadd_sat) H2(__hsub) H2(__hsub_rn) H2(__hsub_sat) H2(__hmul) H2(__hmul_rn) H2(__hmul_sat)
H2(__hdiv) H2(__hmax) H2(__hmin) H2(__hmax_nan) H2(__hmin_nan) H3(__hfma) H3(__hfma_sat) H3(__hfma_relu)
HI1(__hisinf) HI1(__hisnan)
HI2(__heq) HI2(__hne) HI2(__hle) HI2(__hge) HI2(__hlt) HI2(__hgt) HI2(__hequ) HI2(__hneu) HI2(__hleu) HI2(__hgeu)
HI2(__hltu) HI2(__hgtu)
P1(__habs2) P1(__hneg2) P1(h2ceil) P1(h2cos) P1(h2exp) P1(h2exp10) P1(h2exp2) P1(h2floor) P1(h2log) P1(h2log10)
P1(h2log2) P1(h2rcp) P1(h2rint) P1(h2rsqrt) P1(h2sin) P1(h2sqrt) P1(h2trunc) P1(__hisnan2) P1(__lowhigh2highlow)
P2(__hadd2) P2(__hadd2_rn) P2(__hadd2_sat) P2(__hsub2) P2(__hsub2_rn) P2(__hsub2_sat) P2(__hmul2) P2(__hmul2_rn)
P2(__hmul2_sat) P2(__h2div) P2(__hmax2) P2(__hmin2) P2(__hmax2_nan) P2(__hmin2_nan) P3(__hfma2) P3(__hfma2_sat)
P3(__hfma2_relu) P3(__hcmadd)
P2(__heq2) P2(__hne2) P2(__hle2) P2(__hge2) P2(__hlt2) P2(__hgt2) P2(__hequ2) P2(__hneu2) P2(__hleu2) P2(__hgeu2)
P2(__hltu2) P2(__hgtu2)
PI2(__heq2_mask) PI2(__hne2_mask) PI2(__hle2_mask) PI2(__hge2_mask) PI2(__hlt2_mask) PI2(__hgt2_mask) PI2(__hequ2_mask)
PI2(__hneu2_mask) PI2(__hleu2_mask) PI2(__hgeu2_mask) PI2(__hltu2_mask) PI2(__hgtu2_mask)
PI2(__hbeq2) PI2(__hbne2) PI2(__hble2) PI2(__hbge2) PI2(__hblt2) PI2(__hbgt2) PI2(__hbequ2) PI2(__hbneu2) PI2(__hbleu2)
PI2(__hbgeu2) PI2(__hbltu2) PI2(__hbgtu2)
#if CUDART_VERSION >= 12080
H1(htanh) H1(htanh_approx) P1(h2tanh) P1(h2tanh_approx)
#endif
#undef H1
#undef H2
#undef H3
#undef P1
#undef P2
#undef P3
#undef HI1
#undef HI2
#undef PI2
