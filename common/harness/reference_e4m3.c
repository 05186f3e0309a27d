// How far from the fp64 output a right kernel on e4m3 inputs may be. The scores and the weights come from reference.c,
// which has the limit of fp16 kernels.
//
// What a right kernel rounds. It rounds the weights P = exp(S - max) to e4m3 before P V, and adds up the rounded
// weights for the denominator. Before that it multiplies a row's weights by a factor that puts the largest of them
// anywhere from 2^4 to 2^8, because its maximum may be stale. An FP8 tensor core computes S and, in tiles of 64 to 128
// keys, P V. It adds 32 products at a time and keeps 13 bits below the largest of them and of the sum so far
// (notes/tensor-core-arithmetic.md). The kernel adds up the tiles in fp32 and rounds O to fp16.
//
// The limit of a row. If a weight p is off by e p, the output is off by e p (v - o) / sum of p, because the same weight
// stands in the numerator and in the denominator. So what counts is how far the values are from their mean. The row is
// computed a second time with rounded weights, the largest of them 2^4, where most small weights become zero. Then
//
//   limit = 2 * max over d of |rounded path - exact|  +  terms for the sizes of the roundings:
//     2^-2.5 rms            rms = sqrt(sum of (p (v - o))^2) / sum of p. Errors e are at most 2^-4, 2^-5.2 in the root
//                           mean square, and random. If two keys share the weight, the output is off by up to
//                           2^-3.5 rms; over many keys its deviation is 2^-5.2 rms. Weights that are equal have equal
//                           errors. So rms is also computed with all keys whose weights have one e4m3 code taken
//                           together: the sum of their p (v - o) is one term. The larger rms counts
//     2^-11 t rms           a score is off by a few times 2^-13 of t, its largest product, and its weight by that
//                           factor
//     2^-7 peak / sum of p  a tensor core loses about 2^-14 of a tile's peak with each of the tile's 128 terms. Peak
//                           is the largest magnitude of a term p v or of their sum so far; here it is summed over all
//                           tiles
//     2^-10 |o|             twice half a unit of O's last place
//     2^-25                 half of fp16's smallest number
//
// where |o|, rms, peak and the rounded path's error are each the row's largest over d. Right kernels stay below half of
// the limit. For normal inputs it is near 0.7 / sqrt(seqlen). A kernel exceeds it that has one key too many or too few
// in rows of some hundred keys, a scale that is 10 % off, values in another order than keys, a denominator without the
// last tile or with unrounded weights, or P V in one sum of 13 bits. A scale that is 1 % off passes: it changes the
// weights by less than their rounding does.
//
// A kernel with Q and K in e4m3 and P V in fp16 rounds as a kernel on fp16 does, and its scores are less exact. So its
// rounded path (reference.c) has scores that are added up as an FP8 tensor core adds them, and its limit has one term
// more:
//     2^-11 t rms           scores may be off by more in another order, or if the rounded path's are exact by luck
#include "harness.h"

enum { MAX_HEAD_DIM = 128, TILE = 128, CODES = 128 };
static const double LARGEST_WEIGHT = 0x1p4;

// ---- the exact output, and what tiles of 13 bits may lose ----

// Sums over the keys for each d.
typedef struct Exact {
  double weight;             // of p
  double sum[MAX_HEAD_DIM];  // of p v
  double peaks[MAX_HEAD_DIM];
} Exact;

static double most(double a, double b) { return a > b ? a : b; }

// Adds a tile of so many keys to one step of d. Its own sums stay in registers.
static void add_tile(double *restrict sum, double *restrict peaks, const double *restrict weights,
                     const double *restrict v, int count, int head_dim) {
  double tile[REFERENCE_STEP] = {0}, peak[REFERENCE_STEP] = {0};
  for (int j = 0; j < count; j++, v += head_dim)
    for (int d = 0; d < REFERENCE_STEP; d++) {
      double term = weights[j] * v[d];
      tile[d] += term;
      peak[d] = most(peak[d], most(fabs(term), fabs(tile[d])));
    }
  for (int d = 0; d < REFERENCE_STEP; d++) {
    sum[d] += tile[d];
    peaks[d] += peak[d];
  }
}

static Exact add_values(const ReferenceHead *head, int keys) {
  Exact exact = {0};
  for (int j = 0; j < keys; j++) exact.weight += head->weights[j];
  for (int first = 0; first < keys; first += TILE)
    for (int d = 0; d < head->head_dim; d += REFERENCE_STEP)
      add_tile(exact.sum + d, exact.peaks + d, head->weights + first, head->v + (size_t)first * head->head_dim + d,
               keys - first < TILE ? keys - first : TILE, head->head_dim);
  return exact;
}

// ---- what the rounding of the weights does ----

// Sums over the keys for each d.
typedef struct Deviations {
  double weight;                      // of rounded p
  double rounded[MAX_HEAD_DIM];       // of rounded p (v - o)
  double squared[MAX_HEAD_DIM];       // of (p (v - o))^2
  bool used[CODES];                   // whether a weight has this code
  double alike[CODES][MAX_HEAD_DIM];  // of p (v - o), of the keys whose weights have this code
} Deviations;

// Adds a key's to the sums, of which alike is one.
static void add_terms(Deviations *restrict sums, double *restrict alike, double weight, double rounded,
                      const double *restrict v, const double *restrict mean, int head_dim) {
  for (int first = 0; first < head_dim; first += REFERENCE_STEP)
    for (int d = first; d < first + REFERENCE_STEP; d++) {
      double deviation = v[d] - mean[d], term = weight * deviation;
      sums->rounded[d] += rounded * deviation;
      sums->squared[d] += term * term;
      alike[d] += term;
    }
}

static void add_deviation(Deviations *sums, double weight, const double *v, const double *mean, int head_dim) {
  E4m3 code = e4m3_from_double(weight * LARGEST_WEIGHT);
  double rounded = e4m3_to_float(code) / LARGEST_WEIGHT, *alike = sums->alike[code];
  if (!sums->used[code]) memset(alike, 0, sizeof sums->alike[code]);
  sums->used[code] = true;
  sums->weight += rounded;
  add_terms(sums, alike, weight, rounded, v, mean, head_dim);
}

static void add_deviations(const ReferenceHead *head, int keys, const double *mean, Deviations *sums) {
  sums->weight = 0;
  memset(sums->rounded, 0, sizeof sums->rounded);
  memset(sums->squared, 0, sizeof sums->squared);
  memset(sums->used, 0, sizeof sums->used);
  for (int j = 0; j < keys; j++)
    add_deviation(sums, head->weights[j], head->v + (size_t)j * head->head_dim, mean, head->head_dim);
}

// The square of the root mean square for one d, times that of the sum of p.
static double squared_of(const Deviations *sums, int d) {
  double alike = 0;
  for (int code = 0; code < CODES; code++)
    if (sums->used[code]) alike += sums->alike[code][d] * sums->alike[code][d];
  return larger(alike, sums->squared[d]);
}

// ---- how exact scores are ----

// The largest product of two elements in the scores of one row.
static double largest_product(const ReferenceHead *head, int row, int keys) {
  const double *q = head->q + (size_t)row * head->head_dim;
  double all = 0;
  for (int first = 0; first < head->head_dim; first += REFERENCE_STEP) {
    const double *k = head->k + first;
    double largest[REFERENCE_STEP] = {0};
    for (int j = 0; j < keys; j++, k += head->head_dim)
      for (int d = 0; d < REFERENCE_STEP; d++) largest[d] = most(fabs(k[d]), largest[d]);
    for (int d = 0; d < REFERENCE_STEP; d++) all = larger(all, largest[d] * fabs(q[first + d]));
  }
  return all;
}

// ---- a kernel with fp16 weights and values ----

enum { PRODUCTS = 32 };  // of one step

// The power of two below a magnitude: its exponent alone.
static double power_below(double magnitude) {
  uint64_t bits;
  memcpy(&bits, &magnitude, sizeof bits);
  bits &= 0x7ffull << 52;
  memcpy(&magnitude, &bits, sizeof bits);
  return magnitude;
}

// The same for a factor of a product, an e4m3 number: subnormal ones have the exponent of the smallest normal number.
static double power_of_factor(double factor) { return factor == 0 ? 0 : most(power_below(factor), 0x1p-6); }

// sum + the sum of PRODUCTS a[i] b[i]: each is cut to 13 bits below the largest, and so is the result.
static double tensor_core_step(double sum, const double *restrict a, const double *restrict b) {
  double top = power_below(sum);
  for (int i = 0; i < PRODUCTS; i++) top = most(top, power_of_factor(a[i]) * power_of_factor(b[i]));
  if (top == 0) return 0;
  double unit = 0x1p-13 * top, per_unit = 1 / unit, units = trunc(sum * per_unit);
  for (int i = 0; i < PRODUCTS; i++) units += trunc(a[i] * b[i] * per_unit);
  double last = 0x1p-13 * power_below(units);
  return last == 0 ? 0 : trunc(units / last) * last * unit;
}

double reference_tensor_core(const double *a, const double *b, int count) {
  double sum = 0;
  for (int i = 0; i < count; i += PRODUCTS) sum = tensor_core_step(sum, a + i, b + i);
  return sum;
}

double reference_e4m3_scores(const ReferenceHead *head, int row, int keys, const double *out) {
  Deviations sums;
  double weight = 0, rms = 0;
  add_deviations(head, keys, out, &sums);
  for (int j = 0; j < keys; j++) weight += head->weights[j];
  for (int d = 0; d < head->head_dim; d++) rms = larger(rms, sqrt(squared_of(&sums, d)) / weight);
  return 0x1p-11 * head->scale * largest_product(head, row, keys) * rms;
}

// ---- a kernel with weights and values in e4m3 ----

double reference_e4m3(const ReferenceHead *head, int row, int keys, double *out) {
  Exact exact = add_values(head, keys);
  for (int d = 0; d < head->head_dim; d++) out[d] = exact.sum[d] / exact.weight;
  Deviations sums;
  add_deviations(head, keys, out, &sums);

  double rounded_error = 0, rms = 0, peak = 0, magnitude = 0;
  for (int d = 0; d < head->head_dim; d++) {
    rounded_error = larger(rounded_error, fabs(sums.rounded[d]) / sums.weight);
    rms = larger(rms, sqrt(squared_of(&sums, d)) / exact.weight);
    peak = larger(peak, exact.peaks[d] / exact.weight);
    magnitude = larger(magnitude, fabs(out[d]));
    out[d] *= head->value_scale;
  }
  double product = head->scale * largest_product(head, row, keys);
  double limit = 2 * rounded_error + (0x1.6ap-3 + 0x1p-11 * product) * rms + 0x1p-7 * peak + 0x1p-10 * magnitude;
  return head->value_scale * limit + 0x1p-25;
}
