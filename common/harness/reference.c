// What attention's output should be, in fp64 on the CPU, and how far from it a right fp16 kernel may be.
//
// The limit of a row. A tensor-core kernel rounds the weights P = exp(S - max) to fp16 before P V, and O to fp16 at the
// end; it computes everything else in fp32. So the row is computed a second time with those two roundings, and
//
//   limit = 2 * max over d of |rounded path - exact|  +  terms for the sizes of the roundings:
//     2^-11 |o|             half a unit of O's last place, which the rounded path may have missed by luck
//     2^-25 seqlen |o|      adding up seqlen terms in fp32
//     2^-11 rms             each weight's rounding error is at most 2^-11 of it, and random. A sum of such errors has a
//                           deviation near 0.4 * 2^-11 * sqrt(sum of (p v)^2) / sum of p =: 0.4 * 2^-11 rms
//     2^-20 |s| mass        a score of size |s|, summed in fp32 (tensor cores truncate), is off by up to 2^-20 |s|, and
//                           its weight by that factor; mass is sum of (p |v|) / sum of p
//     2^-25                 half of fp16's smallest number
//
// where |o|, rms, mass and the rounded path's error are each the row's largest over d, and |s| is the largest over the
// keys. A limit for each element would be too strict, because single elements of the rounded path are often exact by
// luck. One for the whole tensor would be too loose, because a late row of a causal problem averages over many keys and
// is far more exact than the first. For normal inputs the limit is near 2^-9 / sqrt(seqlen). Right kernels stay below
// half of it. A kernel with one key too many, a scale that is 1 % off or a sum kept in fp16 exceeds it.
#include "harness.h"

// The dot products of `a` and four rows: sums that do not wait for each other.
enum { ROWS = 4, LANES = REFERENCE_STEP };
static void dots_of_four(const double *restrict a, const double *restrict rows, int count, double *restrict dots) {
  double sums[ROWS][LANES] = {0};
  for (int i = 0; i < count; i += LANES)
    _Pragma("GCC unroll 4") for (int row = 0; row < ROWS; row++) for (int lane = 0; lane < LANES; lane++)
        sums[row][lane] = add_product(a[i + lane], rows[row * count + i + lane], sums[row][lane]);
  for (int row = 0; row < ROWS; row++) {
    const double *sum = sums[row];
    dots[row] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
}

double reference_dot(const double *a, const double *b, int count) {
  double sum[LANES] = {0};
  for (int i = 0; i < count; i += LANES)
    for (int lane = 0; lane < LANES; lane++) sum[lane] = add_product(a[i + lane], b[i + lane], sum[lane]);
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void reference_dots(const double *a, const double *rows, int row_count, int count, double *dots) {
  int row = 0;
  for (; row + ROWS <= row_count; row += ROWS) dots_of_four(a, rows + (size_t)row * count, count, dots + row);
  for (; row < row_count; row++) dots[row] = reference_dot(a, rows + (size_t)row * count, count);
}

// Scores of one query against `keys` keys from `first` on, into head->weights. Returns their maximum; *largest is the
// largest magnitude.
static double compute_scores(ReferenceHead *head, int row, int first, int keys, double *largest) {
  double max = -INFINITY;
  *largest = 0;
  reference_dots(head->q + (size_t)row * head->head_dim, head->k + (size_t)first * head->head_dim, keys, head->head_dim,
                 head->weights);
  for (int j = 0; j < keys; j++) {
    double score = head->weights[j] *= head->scale;
    max = larger(max, score);
    *largest = larger(*largest, fabs(score));
  }
  return max;
}

enum { MAX_HEAD_DIM = 128 };

// Sums over the keys of weight times value, for each d. rounded_weight in reference_f16 is the sum of the weights that
// `rounded` was made of.
typedef struct Sums {
  double weight;                  // sum of p
  double exact[MAX_HEAD_DIM];     // sum of p v
  double rounded[MAX_HEAD_DIM];   // the same with p rounded to fp16
  double absolute[MAX_HEAD_DIM];  // sum of p |v|
  double squared[MAX_HEAD_DIM];   // sum of (p v)^2
} Sums;

// One step of d, for all keys: its sums stay in registers.
static void add_keys(Sums *restrict sums, const ReferenceHead *restrict head, const double *restrict values, int keys,
                     int first) {
  double exact[REFERENCE_STEP] = {0}, rounded[REFERENCE_STEP] = {0}, absolute[REFERENCE_STEP] = {0},
         squared[REFERENCE_STEP] = {0};
  const double *v = values + first;
  for (int j = 0; j < keys; j++, v += head->head_dim) {
    double weight = head->weights[j], rounded_weight = head->rounded[j];
    for (int d = 0; d < REFERENCE_STEP; d++) {
      double term = weight * v[d];
      exact[d] += term;
      rounded[d] = add_product(rounded_weight, v[d], rounded[d]);
      absolute[d] += fabs(term);
      squared[d] = add_product(term, term, squared[d]);
    }
  }
  memcpy(sums->exact + first, exact, sizeof exact);
  memcpy(sums->rounded + first, rounded, sizeof rounded);
  memcpy(sums->absolute + first, absolute, sizeof absolute);
  memcpy(sums->squared + first, squared, sizeof squared);
}

// The weights of the rounded path, from scores of an FP8 tensor core where Q and K are e4m3. Returns their sum before
// they are rounded.
static double round_weights(const ReferenceHead *head, int row, int keys, double max) {
  double sum = 0;
  for (int j = 0; j < keys; j++) {
    double weight = head->weights[j];
    if (head->inputs == INPUTS_E4M3_SCORES) {
      const double *q = head->q + (size_t)row * head->head_dim, *k = head->k + (size_t)j * head->head_dim;
      weight = exp(reference_tensor_core(q, k, head->head_dim) * head->scale - max);
    }
    sum += weight;
    head->rounded[j] = half_round(weight);
  }
  return sum;
}

// values: those of the first key whose weight head->weights has.
static double reference_f16(const ReferenceHead *head, const double *values, int keys, double rounded_weight,
                            double largest_score, double *out) {
  Sums sums = {0};
  for (int j = 0; j < keys; j++) sums.weight += head->weights[j];
  for (int d = 0; d < head->head_dim; d += REFERENCE_STEP) add_keys(&sums, head, values, keys, d);

  double rounded_error = 0, magnitude = 0, mass = 0, rms = 0;
  for (int d = 0; d < head->head_dim; d++) {
    out[d] = sums.exact[d] / sums.weight;
    rounded_error = larger(rounded_error, fabs(half_round(sums.rounded[d] / rounded_weight) - out[d]));
    magnitude = larger(magnitude, fabs(out[d]));
    mass = larger(mass, sums.absolute[d] / sums.weight);
    rms = larger(rms, sqrt(sums.squared[d]) / sums.weight);
  }
  return 2 * rounded_error + (0x1p-11 + 0x1p-25 * keys) * magnitude + 0x1p-11 * rms + 0x1p-20 * largest_score * mass +
         0x1p-25;
}

double reference_row(ReferenceHead *head, int row, double *out) {
  int keys = head->causal ? row + 1 : head->seqlen,
      first = head->window && head->window < keys ? keys - head->window : 0;
  keys -= first;
  double largest_score, max = compute_scores(head, row, first, keys, &largest_score);
  for (int j = 0; j < keys; j++) head->weights[j] = exp(head->weights[j] - max);
  if (head->inputs == INPUTS_E4M3) return reference_e4m3(head, row, keys, out);
  const double *values = head->v + (size_t)first * (size_t)head->head_dim;
  double limit = reference_f16(head, values, keys, round_weights(head, row, keys, max), largest_score, out);
  return head->inputs == INPUTS_E4M3_SCORES ? limit + reference_e4m3_scores(head, row, keys, out) : limit;
}
