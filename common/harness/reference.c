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
// where |o|, rms, mass and the rounded path's error are each the row's largest over d, and |s| is the largest over the keys.
// A limit for each element would be too strict, because single elements of the rounded path are often exact by luck. One for
// the whole tensor would be too loose, because a late row of a causal problem averages over many keys and is far more exact
// than the first. For normal inputs the limit is near 2^-9 / sqrt(seqlen). Right kernels stay below half of it. A kernel
// with one key too many, a scale that is 1 % off or a sum kept in fp16 exceeds it.
#include "harness.h"

// Products of two fp16 or e4m3 numbers are exact in fp64.
double reference_dot(const float *a, const float *b, int count) {
  double sum[8] = {0};
  for (int i = 0; i < count; i += 8)
    for (int lane = 0; lane < 8; lane++) sum[lane] += (double)a[i + lane] * b[i + lane];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// Scores of one query against its first `keys` keys, into head->weights. Returns their maximum; *largest is the largest
// magnitude.
static double compute_scores(ReferenceHead *head, int row, int keys, double *largest) {
  const float *q = head->q + (size_t)row * head->head_dim;
  double max = -INFINITY;
  *largest = 0;
  for (int j = 0; j < keys; j++) {
    double score = head->scale * reference_dot(q, head->k + (size_t)j * head->head_dim, head->head_dim);
    head->weights[j] = score;
    max = larger(max, score);
    *largest = larger(*largest, fabs(score));
  }
  return max;
}

enum { MAX_HEAD_DIM = 128 };

// Sums over the keys of weight times value, for each d.
typedef struct Sums {
  double weight;                  // sum of p
  double exact[MAX_HEAD_DIM];     // sum of p v
  double rounded[MAX_HEAD_DIM];   // the same with p rounded to fp16
  double absolute[MAX_HEAD_DIM];  // sum of p |v|
  double squared[MAX_HEAD_DIM];   // sum of (p v)^2
} Sums;

static void add_key(Sums *restrict sums, double weight, const float *restrict v, int head_dim) {
  double rounded = half_round(weight);
  sums->weight += weight;
  for (int first = 0; first < head_dim; first += REFERENCE_STEP)
    for (int d = first; d < first + REFERENCE_STEP; d++) {
      double term = weight * v[d];
      sums->exact[d] += term;
      sums->rounded[d] += rounded * v[d];
      sums->absolute[d] += fabs(term);
      sums->squared[d] += term * term;
    }
}

static double reference_f16(const ReferenceHead *head, int keys, double largest_score, double *out) {
  Sums sums = {0};
  for (int j = 0; j < keys; j++) add_key(&sums, head->weights[j], head->v + (size_t)j * head->head_dim, head->head_dim);

  double rounded_error = 0, magnitude = 0, mass = 0, rms = 0;
  for (int d = 0; d < head->head_dim; d++) {
    out[d] = sums.exact[d] / sums.weight;
    rounded_error = larger(rounded_error, fabs(half_round(sums.rounded[d] / sums.weight) - out[d]));
    magnitude = larger(magnitude, fabs(out[d]));
    mass = larger(mass, sums.absolute[d] / sums.weight);
    rms = larger(rms, sqrt(sums.squared[d]) / sums.weight);
  }
  return 2 * rounded_error + (0x1p-11 + 0x1p-25 * keys) * magnitude + 0x1p-11 * rms + 0x1p-20 * largest_score * mass +
         0x1p-25;
}

double reference_row(ReferenceHead *head, int row, double *out) {
  int keys = head->causal ? row + 1 : head->seqlen;
  double largest_score, max = compute_scores(head, row, keys, &largest_score);
  for (int j = 0; j < keys; j++) head->weights[j] = exp(head->weights[j] - max);
  return head->inputs == INPUTS_E4M3 ? reference_e4m3(head, row, keys, out)
                                     : reference_f16(head, keys, largest_score, out);
}
