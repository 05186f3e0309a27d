// The inputs: for each type and each operand INPUTS numbers, from an integer hash, the same on every machine.
//
// Of eight neighbours two are edges (an operand's edges meet the other operands' edges in random order), two random
// bits, one of about the other operands' magnitude, one of moderate magnitude, one uniform in a small range, and one an
// integer, a half-way value or a large angle, or right next to it. Random bits of a first operand of 16 bits count
// through all of them, several times.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

enum : size_t { INPUTS = 1 << 20 };

// Sebastiano Vigna's splitmix64, of three numbers.
inline u64 input_hash(u64 purpose, u64 operand, u64 i) {
  u64 x = (purpose << 56) + (operand << 48) + i + 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

// ---- floating-point numbers ----

template <class T> struct Float;
#define FLOAT_TYPE(T, W, fraction, exponent, to_bits)                                                                  \
  template <> struct Float<T> {                                                                                        \
    using Word = W;                                                                                                    \
    enum { FRACTION = fraction, EXPONENT = exponent };                                                                 \
    static W from_double(double x) {                                                                                   \
      T rounded = to_bits(x);                                                                                          \
      W bits;                                                                                                          \
      memcpy(&bits, &rounded, sizeof bits);                                                                            \
      return bits;                                                                                                     \
    }                                                                                                                  \
  };
FLOAT_TYPE(float, u32, 23, 8, (float))
FLOAT_TYPE(double, u64, 52, 11, (double))
FLOAT_TYPE(__half, u16, 10, 5, __double2half)
FLOAT_TYPE(__nv_bfloat16, u16, 7, 8, __double2bfloat16)

// Where functions change their course: each is an edge with both signs, and with its neighbours.
inline const std::vector<double> &turning_points() {
  static const std::vector<double> points = {1.0 / 3,
                                             0.1,
                                             0.3,
                                             0.7,
                                             0.9,
                                             1.5,
                                             2.5,
                                             3,
                                             3.5,
                                             5,
                                             6,
                                             7,
                                             10,
                                             11,
                                             12,
                                             13,
                                             100,
                                             1000,
                                             1e5,
                                             1e10,
                                             0.34657359027997264,
                                             0.6931471805599453,
                                             1.0397207708399179,
                                             1.4142135623730951,
                                             0.70710678118654752,
                                             2.718281828459045,
                                             0.7853981633974483,
                                             1.5707963267948966,
                                             2.356194490192345,
                                             3.141592653589793,
                                             4.71238898038469,
                                             6.283185307179586,
                                             7.853981633974483,
                                             9.42477796076938,
                                             105615,
                                             105414.36,
                                             1.6367e22,
                                             2147483648.0 * 3.141592653589793,
                                             9.1,
                                             10.0546875,
                                             9.19455,
                                             13.6,
                                             18.4,
                                             26.54,
                                             27.23,
                                             38.47,
                                             35.04,
                                             34.03,
                                             171.6243,
                                             170.6,
                                             184.6,
                                             88.72283,
                                             88.7228,
                                             89.4159,
                                             -87.33654,
                                             103.97208,
                                             104,
                                             709.782712893384,
                                             710.4758600739439,
                                             745.1332191019411,
                                             708.3964185322641,
                                             127.5,
                                             149.5,
                                             150,
                                             1074.5,
                                             1075,
                                             38.53184,
                                             37.92978,
                                             45.15450,
                                             308.2547155599167,
                                             323.6060156,
                                             16.6,
                                             17.3,
                                             8.66,
                                             9.01,
                                             4.97,
                                             0.55,
                                             0.625,
                                             0.5625,
                                             0.4375,
                                             2.4375,
                                             0.46875,
                                             0.84375,
                                             1.25,
                                             2.857,
                                             255,
                                             255.5,
                                             127,
                                             128.5,
                                             32767.5,
                                             65535.5,
                                             32766.5,
                                             65504,
                                             65519,
                                             65520,
                                             65535,
                                             65536.5,
                                             2147483647,
                                             2147483647.5,
                                             2147483646.5,
                                             4294967295.0,
                                             4294967295.5,
                                             9223372036854775807.0,
                                             18446744073709551615.0,
                                             8388607.5,
                                             8388608.5,
                                             4194303.5,
                                             4194304.5,
                                             16777217,
                                             4503599627370495.5,
                                             4503599627370497.5,
                                             9007199254740993.0,
                                             240,
                                             247,
                                             248,
                                             448,
                                             464,
                                             465,
                                             480,
                                             57344,
                                             61440,
                                             61441,
                                             0.001953125,
                                             0.0009765625,
                                             0.00146484375,
                                             1.52587890625e-5,
                                             7.62939453125e-6,
                                             5.960464477539063e-8,
                                             2.9802322387695312e-8,
                                             8.940696716308594e-8,
                                             6.103515625e-5,
                                             6.097555160522461e-5,
                                             3.3895313892515355e38,
                                             3.3961775292304957e38,
                                             3.4028235677973366e38,
                                             3.4028234663852886e38,
                                             1.1754943508222875e-38,
                                             1.401298464324817e-45,
                                             7.006492321624085e-46,
                                             2.1019476964872256e-45,
                                             1.1754942807573643e-38,
                                             9.183549615799121e-41,
                                             2.4,
                                             0.61632,
                                             0.89357,
                                             2.40482555769577,
                                             3.83170597020751,
                                             5.52007811028631,
                                             7.01558666981561,
                                             8.65372791291101,
                                             2.197141,
                                             3.957678,
                                             5.429681,
                                             1.46163214496836,
                                             2.45702,
                                             2.74768,
                                             3.14358,
                                             3.95529};
  return points;
}

template <class T> const std::vector<typename Float<T>::Word> &float_edges() {
  using F = Float<T>;
  using W = typename F::Word;
  static std::vector<W> edges;
  if (edges.size()) return edges;
  const W one = 1, infinity = (W)(((one << F::EXPONENT) - 1) << F::FRACTION), quiet = (W)(one << (F::FRACTION - 1));
  const W normal = (W)(one << F::FRACTION), sign = (W)(one << (F::FRACTION + F::EXPONENT));
  std::vector<W> magnitudes = {0,
                               1,
                               2,
                               3,
                               (W)(normal - 1),
                               (W)(normal - 2),
                               normal,
                               (W)(normal + 1),
                               quiet,
                               (W)(2 * normal),
                               (W)(2 * normal - 1),
                               infinity,
                               (W)(infinity - 1),
                               (W)(infinity - 2),
                               (W)(infinity - normal),
                               (W)(infinity | quiet),
                               (W)(infinity | 1),
                               (W)(sign - 1),
                               (W)(infinity | quiet | 0x12),
                               (W)(infinity | quiet >> 1)};
  for (int e = -1080; e <= 1030; e++) {
    bool dense = (e >= -30 && e <= 34) || e % 64 == 0 || (e >= -152 && e <= -145) || (e >= -128 && e <= -125) ||
                 (e >= 50 && e <= 66) || (e >= 126 && e <= 128) || (e >= -56 && e <= -50) || e < -1073 || e > 1021;
    W power = F::from_double(ldexp(1, e));
    if (!dense || power >= infinity || !power) continue;
    for (int d = -1; d <= 1; d++) magnitudes.push_back((W)(power + d));
  }
  for (double point : turning_points()) {
    W bits = (W)(F::from_double(point) & ~sign);
    if (bits >= infinity) continue;
    for (int d = -1; d <= 1; d++) magnitudes.push_back((W)((bits + d) & ~sign));
  }
  for (W m : magnitudes) edges.push_back(m), edges.push_back((W)(m | sign));
  return edges;
}

template <class T> typename Float<T>::Word float_input(int operand, size_t i) {
  using F = Float<T>;
  using W = typename F::Word;
  const std::vector<W> &edges = float_edges<T>();
  const u64 h = input_hash(1, operand, i), h2 = input_hash(2, operand, i), shared = input_hash(3, 0, i);
  const size_t nth = (i >> 3) * 2 + (i & 1);
  const W fraction = (W)(h & (((W)1 << F::FRACTION) - 1)), sign = (W)((W)(h >> 63) << (F::FRACTION + F::EXPONENT));
  const u64 exponents = 1ull << F::EXPONENT, bias = exponents / 2 - 1;
  const double uniform = (double)(s64)h2 * 0x1p-63;
  switch (i & 7) {
  case 0:
  case 1: return operand == 0 && nth < edges.size() ? edges[nth] : edges[h % edges.size()];
  case 2:
  case 3: return operand == 0 && sizeof(W) == 2 ? (W)nth : (W)h;
  case 4: return (W)(sign | (W)(1 + (shared % (exponents - 5)) + (h2 & 3)) << F::FRACTION | fraction);
  case 5: return (W)(sign | (W)(bias - 12 + h2 % 24) << F::FRACTION | fraction);
  case 6: {
    static const double scales[] = {1, 1, 8, 8, 40, 110, 800, 2400};
    return F::from_double(uniform * scales[i >> 3 & 7]);
  }
  default: {
    double near = (i >> 3 & 3) == 0   ? rint(uniform * 64)
                  : (i >> 3 & 3) == 1 ? rint(uniform * 1024) * 0.5
                  : (i >> 3 & 3) == 2 ? ldexp(rint(uniform * 65536), (int)(h2 % 48) - 8)
                                      : ldexp(rint(uniform * 65536), (int)(h2 % 40) - 8) * 1.5707963267948966;
    W bits = F::from_double(near), moved = (W)(bits + h % 3 - 1);
    return bits << 1 ? moved : bits;
  }
  }
}

// ---- integers ----

template <class U> U integer_edge(u64 h) {
  const int bits = 8 * (int)sizeof(U);
  U power = (U)((U)1 << (h >> 8) % bits);
  switch (h & 7) {
  case 0: return power;
  case 1: return (U)(power - 1);
  case 2: return (U)(power + 1);
  case 3: return (U)((U)0 - power);
  case 4: return (U)((h >> 8 & 7) - 3);
  case 5: return (U)((U)1 << (bits - 1)) - (U)(h >> 8 & 3) + 1;
  case 6: return (U)(power - 1) << (h >> 16) % bits;
  default: return (U)((U)0 - (U)(h >> 8 & 1));
  }
}

// Bytes and half-words at their edges, for the instructions of packed integers.
inline u64 packed_edges(u64 h) {
  static const u8 bytes[] = {0, 1, 0xff, 0x7f, 0x80, 0x81, 0xfe, 0x40};
  u64 x = 0;
  for (int i = 0; i < 8; i++) x |= (u64)bytes[h >> (3 * i) & 7] << 8 * i;
  return h >> 60 & 1 ? (x & 0xff00ff00ff00ffull) * 0x101 : x;
}

template <class U> U integer_input(int operand, size_t i) {
  const u64 h = input_hash(4, operand, i), h2 = input_hash(5, operand, i);
  U random = (U)h2;
  if (sizeof(U) > 8) random = (U)((u128)h2 << 64 | input_hash(6, operand, i));
  const size_t nth = (i >> 3) * 2 + (i & 1);
  switch (i & 7) {
  case 0:
  case 1: return integer_edge<U>(h);
  case 2:
  case 3: return operand == 0 && sizeof(U) <= 2 ? (U)nth : random;
  case 4:
  case 5: {
    U magnitude = (U)(random >> h % (8 * sizeof(U)));
    return h >> 63 ? (U)((U)0 - magnitude) : magnitude;
  }
  case 6: return (U)(h % 600 - (h >> 63) * 300);
  default: return (U)(sizeof(U) <= 8 ? packed_edges(h) : (u128)packed_edges(h) << 64 | packed_edges(h2));
  }
}

// ---- any type ----

template <class T> T input(int operand, size_t i) {
  T value;
  if constexpr (std::is_same_v<T, __half2> || std::is_same_v<T, __nv_bfloat162>) {
    using Part = std::conditional_t<std::is_same_v<T, __half2>, __half, __nv_bfloat16>;
    u16 parts[2] = {float_input<Part>(operand, i), float_input<Part>(operand, (i + 8 * 1021 + 3) % INPUTS)};
    memcpy(&value, parts, sizeof value);
  } else if constexpr (std::is_same_v<T, float2>) {
    u32 parts[2] = {float_input<float>(operand, i), float_input<float>(operand, (i + 8 * 1021 + 3) % INPUTS)};
    memcpy(&value, parts, sizeof value);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, __half> ||
                       std::is_same_v<T, __nv_bfloat16>) {
    auto bits = float_input<T>(operand, i);
    memcpy(&value, &bits, sizeof value);
  } else {
    using U = std::conditional_t<
        sizeof(T) == 1, u8,
        std::conditional_t<sizeof(T) == 2, u16,
                           std::conditional_t<sizeof(T) == 4, u32, std::conditional_t<sizeof(T) == 8, u64, u128>>>>;
    U bits = integer_input<U>(operand, i);
    memcpy(&value, &bits, sizeof value);
  }
  return value;
}

template <class T> const std::vector<T> &inputs(int operand) {
  static std::vector<T> made[4];
  std::vector<T> &values = made[operand];
  if (values.empty())
    for (size_t i = 0; i < INPUTS; i++) values.push_back(input<T>(operand, i));
  return values;
}

template <class T> const void *input_bytes(int operand) { return inputs<T>(operand).data(); }
