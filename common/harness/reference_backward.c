// What the gradients of attention should be, in fp64 on the CPU, and how far from them a right fp16 kernel may be.
//
//   P  = exp(score - lse)    dS = P (dP - delta)    with score = scale Q K^T, dP = dO V^T, delta = sum over d of dO O
//   dQ = scale dS K          dK = scale dS^T Q      dV = P^T dO
//
// O and lse, the log of the sum of exp(score), are those that the device's forward pass computed. They are compared
// themselves. So a row of a gradient costs seqlen * head_dim, and what is compared is the backward pass alone.
//
// The limit of a row, as in reference.c: a kernel rounds the factors P or dS to fp16 before the last product, and the
// gradient at the end; it computes everything else in fp32. So the row is computed again with those two roundings, and
//
//   limit = 2 * max over d of |rounded path - exact|  +  terms for the sizes of the roundings:
//     2^-11 |g|                 half a unit of the gradient's last place
//     2^-25 terms (|g| + root)  adding up so many terms in fp32; root is the square root of the sum of their squares
//     2 root of the roundings   the same root of: half a unit of each factor's last place, times what it is multiplied
//                               by. These errors are random; and a factor in the middle between two fp16 numbers may
//                               become either
//     sum of the errors         what fp32 makes of a factor before it is rounded, times what it is multiplied by
//     2^-25                     half of fp16's smallest number
//
// Here |g|, the roots and the sum are the row's largest over d. Those of dQ and dK are multiplied by scale, as the
// gradient is. Where a factor or the gradient exceeds fp16, the rounded path is not finite. The limit omits it there:
// an infinite limit would let every finite number pass. The errors of a factor, where |k| and |v| are the largest norms
// of a key and a value of the head:
//
//     of P      2^-22 (scale |q| |k| + |lse| + 1) of it: tensor cores add up a score's terms in fp32 and truncate, and
//               lse is rounded when it becomes a power of two
//     of dS     the same part of it, and 2^-21 |dO| |v| P: dP and delta are sums of head_dim terms, and where they are
//               alike only their errors are left
//
// The limit of lse is the first one and 2^-25 for each key, for the sum.
#include "harness.h"

enum { MAX_HEAD_DIM = 128 };

// ---- one head's inputs ----

static double norm(const double *row, int head_dim) { return sqrt(reference_dot(row, row, head_dim)); }

static double largest_norm(const double *rows, int count, int head_dim) {
  double largest = 0;
  for (int i = 0; i < count; i++) largest = larger(largest, norm(rows + (size_t)i * head_dim, head_dim));
  return largest;
}

void reference_queries(ReferenceHead *head, const double *o, const float *lse) {
  int head_dim = head->head_dim;
  double key = largest_norm(head->k, head->seqlen, head_dim), value = largest_norm(head->v, head->seqlen, head_dim);
  for (int i = 0; i < head->seqlen; i++) {
    size_t first = (size_t)i * head_dim;
    head->queries[i] = (ReferenceQuery){
        .lse = lse[i],
        .delta = o ? reference_dot(head->d_o + first, o + first, head_dim) : 0,
        .weight_error = 0x1p-22 * (head->scale * norm(head->q + first, head_dim) * key + fabs((double)lse[i]) + 1),
        .gradient_error = o ? 0x1p-21 * norm(head->d_o + first, head_dim) * value : 0,
    };
  }
}

// ---- one row of the log-sum-exp ----

double reference_lse(ReferenceHead *head, int row, double *out) {
  int keys = head->causal ? row + 1 : head->seqlen, head_dim = head->head_dim;
  double max = -INFINITY, sum = 0;
  reference_dots(head->q + (size_t)row * head_dim, head->k, keys, head_dim, head->weights);
  for (int j = 0; j < keys; j++) max = larger(max, head->weights[j] *= head->scale);
  for (int j = 0; j < keys; j++) sum += exp(head->weights[j] - max);
  *out = max + log(sum);
  return head->queries[row].weight_error + 0x1p-25 * keys;
}

// ---- one row of a gradient ----

// Of the query and the key: P, or dS, and what belongs to it. score: the product of the query and the key; gradient:
// that of the query's dO and the value.
static ReferenceFactor factor(const ReferenceHead *head, OutputTensor output, const ReferenceQuery *query, double score,
                              double gradient) {
  double p = exp(head->scale * score - query->lse), ds = p * (gradient - query->delta);
  ReferenceFactor factor = {ds, .error = fabs(ds) * query->weight_error + p * query->gradient_error};
  if (output == OUTPUT_D_V) factor = (ReferenceFactor){p, .error = p * query->weight_error};
  factor.rounded = half_round(factor.value);
  factor.half_unit = larger(0x1p-11 * fabs(factor.value), 0x1p-25);
  return factor;
}

// Those of a query and the keys [begin, end), or of a key and these queries, into head->factors.
static void find_factors(ReferenceHead *head, OutputTensor output, int row, int begin, int end) {
  bool of_query = output == OUTPUT_D_Q;
  int head_dim = head->head_dim;
  size_t at = (size_t)row * head_dim, first = (size_t)begin * head_dim;
  double *scores = head->weights + begin, *gradients = head->rounded + begin;
  reference_dots((of_query ? head->q : head->k) + at, (of_query ? head->k : head->q) + first, end - begin, head_dim,
                 scores);
  if (output == OUTPUT_D_V)
    memset(gradients, 0, (size_t)(end - begin) * sizeof *gradients);
  else
    reference_dots((of_query ? head->d_o : head->v) + at, (of_query ? head->v : head->d_o) + first, end - begin,
                   head_dim, gradients);
  for (int i = begin; i < end; i++)
    head->factors[i] = factor(head, output, &head->queries[of_query ? row : i], head->weights[i], head->rounded[i]);
}

// Sums of factor times row, for each d.
typedef struct Sums {
  double exact[MAX_HEAD_DIM];
  double rounded[MAX_HEAD_DIM];    // with the factors rounded to fp16
  double squared[MAX_HEAD_DIM];    // of (factor x)^2
  double roundings[MAX_HEAD_DIM];  // of (half a unit of the factor's last place x)^2
  double errors[MAX_HEAD_DIM];     // of |error x|
} Sums;

// One step of d, for all rows: its sums stay in registers.
static void add_rows(Sums *restrict sums, const ReferenceFactor *restrict factors, const double *restrict row,
                     int count, int head_dim, int first) {
  double exact[REFERENCE_STEP] = {0}, rounded[REFERENCE_STEP] = {0}, squared[REFERENCE_STEP] = {0},
         roundings[REFERENCE_STEP] = {0}, errors[REFERENCE_STEP] = {0};
  row += first;
  for (int i = 0; i < count; i++, row += head_dim) {
    ReferenceFactor factor = factors[i];
    for (int d = 0; d < REFERENCE_STEP; d++) {
      double term = factor.value * row[d], rounding = factor.half_unit * row[d];
      exact[d] += term;
      rounded[d] = add_product(factor.rounded, row[d], rounded[d]);
      squared[d] = add_product(term, term, squared[d]);
      roundings[d] = add_product(rounding, rounding, roundings[d]);
      errors[d] = add_product(factor.error, fabs(row[d]), errors[d]);
    }
  }
  memcpy(sums->exact + first, exact, sizeof exact);
  memcpy(sums->rounded + first, rounded, sizeof rounded);
  memcpy(sums->squared + first, squared, sizeof squared);
  memcpy(sums->roundings + first, roundings, sizeof roundings);
  memcpy(sums->errors + first, errors, sizeof errors);
}

// The gradient is scale times the sums of so many terms. Returns its limit.
static double finish_gradient(const Sums *sums, double scale, int terms, int head_dim, double *out) {
  double rounded_error = 0, magnitude = 0, root = 0, roundings = 0, errors = 0;
  for (int d = 0; d < head_dim; d++) {
    double rounded = half_round(scale * sums->rounded[d]);
    out[d] = scale * sums->exact[d];
    if (isfinite(rounded)) rounded_error = larger(rounded_error, fabs(rounded - out[d]));
    magnitude = larger(magnitude, fabs(out[d]));
    root = larger(root, scale * sqrt(sums->squared[d]));
    roundings = larger(roundings, scale * sqrt(sums->roundings[d]));
    errors = larger(errors, scale * sums->errors[d]);
  }
  return 2 * rounded_error + 0x1p-11 * magnitude + 0x1p-25 * terms * (magnitude + root) + 2 * roundings + errors +
         0x1p-25;
}

double reference_gradient(ReferenceHead *head, OutputTensor output, int row, double *out) {
  bool of_query = output == OUTPUT_D_Q;
  const double *rows = of_query ? head->k : output == OUTPUT_D_K ? head->q : head->d_o;
  int begin = head->causal && !of_query ? row : 0, end = head->causal && of_query ? row + 1 : head->seqlen;
  Sums sums;
  find_factors(head, output, row, begin, end);
  for (int d = 0; d < head->head_dim; d += REFERENCE_STEP)
    add_rows(&sums, head->factors + begin, rows + (size_t)begin * head->head_dim, end - begin, head->head_dim, d);
  return finish_gradient(&sums, output == OUTPUT_D_V ? 1 : head->scale, end - begin, head->head_dim, out);
}
