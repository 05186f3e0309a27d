// fp16 inputs as e4m3: codes, and the scales that they are multiplied with.
//
// The scale of a tensor (or of one of its heads) makes its largest element 448, e4m3's largest number. Where an element
// is far larger than all others, the others become small numbers of e4m3, and those below 2^-6 lose fraction bits. A
// rotation by an orthogonal matrix spreads such an element over all head_dim columns. A query and a key that are
// rotated alike have the same product as before: (q R) (k R)^T = q R R^T k^T. R is a Hadamard matrix, normalised, with
// random signs: each element of q R is a sum of all elements of q, with signs, over sqrt(head_dim). FlashAttention-3
// has this from QuIP (Chee et al. 2023) and calls it incoherent processing: arXiv 2407.08608, section 3.3.
#include <stdlib.h>

#include "harness.h"

enum { MAX_HEAD_DIM = 128 };

// ---- rotation ----

// Multiplies a row by the Hadamard matrix of its size: for each bit of the index, the sum and the difference of each
// two elements that differ in that bit.
static void transform(double *row, int size) {
  for (int bit = 1; bit < size; bit *= 2)
    for (int d = 0; d < size; d++) {
      if (d & bit) continue;
      double a = row[d], b = row[d | bit];
      row[d] = a + b;
      row[d | bit] = a - b;
    }
}

void quantise_rotate(double *row, int size, uint64_t seed) {
  double factor = 1 / sqrt(size);
  for (int d = 0; d < size; d++) row[d] *= random_bits(&seed) >> 63 ? -factor : factor;
  transform(row, size);
}

// ---- the passes over all heads: the largest magnitude, then the codes ----

typedef struct Quantisation {
  Problem *problem;
  bool rotate;
  uint64_t seed;
  double *largest;  // [tensor][head]: the largest magnitude
} Quantisation;

// One row of a tensor, rotated if it is to be.
static void load_rotated_row(const Quantisation *quantisation, size_t tensor, size_t row, double *to) {
  const Problem *problem = quantisation->problem;
  int head_dim = problem->shape.head_dim;
  const Half *tensors[] = {problem->q, problem->k, problem->v};
  const Half *from = tensors[tensor] + row * (size_t)head_dim;
  for (int d = 0; d < head_dim; d++) to[d] = half_to_float(from[d]);
  if (quantisation->rotate && tensor != TENSOR_V) quantise_rotate(to, head_dim, quantisation->seed);
}

static void find_largest(void *context, size_t index) {
  const Quantisation *quantisation = context;
  const Shape *shape = &quantisation->problem->shape;
  size_t heads = quantisation->problem->heads, seqlen = (size_t)shape->seqlen;
  double row[MAX_HEAD_DIM], largest = 0;
  for (size_t i = 0; i < seqlen; i++) {
    load_rotated_row(quantisation, index / heads, index % heads * seqlen + i, row);
    for (int d = 0; d < shape->head_dim; d++) largest = fmax(largest, fabs(row[d]));
  }
  quantisation->largest[index] = largest;
}

static void make_codes(void *context, size_t index) {
  const Quantisation *quantisation = context;
  const Problem *problem = quantisation->problem;
  size_t tensor = index / problem->heads, head = index % problem->heads;
  size_t seqlen = (size_t)problem->shape.seqlen, head_dim = (size_t)problem->shape.head_dim;
  double row[MAX_HEAD_DIM], scale = problem->scales[tensor][head * (size_t)problem->scale_stride];
  for (size_t i = head * seqlen; i < (head + 1) * seqlen; i++) {
    load_rotated_row(quantisation, tensor, i, row);
    for (size_t d = 0; d < head_dim; d++) problem->codes[tensor][i * head_dim + d] = e4m3_from_double(row[d] / scale);
  }
}

// ---- scales ----

// A tensor of zeros has any scale.
static float scale_for(double largest) { return largest > 0 ? (float)(largest / E4M3_LARGEST) : 1; }

static void choose_scales(const Quantisation *quantisation) {
  const Problem *problem = quantisation->problem;
  for (int tensor = 0; tensor < TENSORS; tensor++) {
    const double *largest = quantisation->largest + (size_t)tensor * problem->heads;
    double all = 0;
    for (size_t head = 0; head < problem->heads; head++) {
      all = fmax(all, largest[head]);
      problem->scales[tensor][head * (size_t)problem->scale_stride] =
          scale_for(problem->scale_stride ? largest[head] : all);
    }
  }
}

static bool allocate_codes(Problem *problem, StageInputs inputs, bool per_head) {
  problem->inputs = inputs;
  problem->scale_stride = per_head;
  bool done = true;
  for (int tensor = 0; tensor < TENSORS; tensor++) {
    problem->codes[tensor] = malloc(problem->elements);
    problem->scales[tensor] = malloc(problem_scales(problem) * sizeof(float));
    done = done && problem->codes[tensor] && problem->scales[tensor];
  }
  return done;
}

bool problem_quantise(Problem *problem, StageInputs inputs, bool per_head, bool rotate, uint64_t seed) {
  Quantisation quantisation = {.problem = problem, .rotate = rotate, .seed = seed};
  quantisation.largest = malloc(TENSORS * problem->heads * sizeof(double));
  bool done = allocate_codes(problem, inputs, per_head) && quantisation.largest;
  if (done) {
    progress_begin("quantising", 0);
    parallel_for(TENSORS * problem->heads, find_largest, &quantisation);
    choose_scales(&quantisation);
    parallel_for(TENSORS * problem->heads, make_codes, &quantisation);
    progress_end();
  }
  free(quantisation.largest);
  return done;
}
