// What attention's output on e4m3 inputs should be, in fp64, and how far from it a right e4m3 kernel may be.
#include "harness.h"

enum { MAX_HEAD_DIM = 128 };

// Sums over the keys of weight times value, for each d.
typedef struct Sums {
  double weight, rounded_weight;
  double exact[MAX_HEAD_DIM], rounded[MAX_HEAD_DIM], absolute[MAX_HEAD_DIM], squared[MAX_HEAD_DIM];
} Sums;

static void add_key(Sums *sums, double weight, const float *v, int head_dim) {
  double rounded = 0x1p-6 * e4m3_round(weight * 0x1p6);
  sums->weight += weight;
  sums->rounded_weight += rounded;
  for (int d = 0; d < head_dim; d++) {
    double term = weight * v[d];
    sums->exact[d] += term;
    sums->rounded[d] += rounded * v[d];
    sums->absolute[d] += fabs(term);
    sums->squared[d] += term * term;
  }
}

double reference_e4m3(const ReferenceHead *head, int row, int keys, double *out) {
  (void)row;
  Sums sums = {0};
  for (int j = 0; j < keys; j++) add_key(&sums, head->weights[j], head->v + (size_t)j * head->head_dim, head->head_dim);
  double rounded_error = 0, mass = 0, rms = 0;
  for (int d = 0; d < head->head_dim; d++) {
    out[d] = head->value_scale * sums.exact[d] / sums.weight;
    double rounded = half_round(head->value_scale * sums.rounded[d] / sums.rounded_weight);
    rounded_error = larger(rounded_error, fabs(rounded - out[d]));
    mass = larger(mass, head->value_scale * sums.absolute[d] / sums.weight);
    rms = larger(rms, head->value_scale * sqrt(sums.squared[d]) / sums.weight);
  }
  return 2 * rounded_error + 0x1p-8 * mass + 0x1p-3 * rms + 0x1p-25;
}
