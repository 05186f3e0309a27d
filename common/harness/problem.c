// One attention problem's inputs.
#include <stdlib.h>

#include "harness.h"

double problem_scale(const Shape *shape) { return 1.0 / sqrt(shape->head_dim); }

double problem_flops(const Shape *shape) {
  double full = 4.0 * shape->batch * shape->heads * (double)shape->seqlen * shape->seqlen * shape->head_dim;
  return shape->causal ? full / 2 : full;
}

// Uniform in (0, 1].
static double random_uniform(uint64_t *state) { return (double)((random_next(state) >> 11) + 1) * 0x1p-53; }

// Normal with mean 0 and deviation 1 (Box and Muller), two at a time.
static void random_normal(uint64_t *state, double pair[2]) {
  double radius = sqrt(-2 * log(random_uniform(state))), angle = 2 * acos(-1.0) * random_uniform(state);
  pair[0] = radius * cos(angle);
  pair[1] = radius * sin(angle);
}

// normal: standard deviation 1, like attention's inputs after a layer norm.
// large:  eight times as large. Scores reach several hundreds, and a softmax that does not subtract the maximum overflows.
static void fill_random(Half *head, const Shape *shape, double factor, uint64_t seed) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;  // even
  double pair[2];
  for (size_t i = 0; i < count; i += 2) {
    random_normal(&seed, pair);
    head[i] = half_from_double(factor * pair[0]);
    head[i + 1] = half_from_double(factor * pair[1]);
  }
}

// arange: an element's value shows its position: -1 to 1 in steps of 1/1024, which fp16 holds exactly. The steps start again
// after a prime number of elements, so that rows repeat only after a long while.
static void fill_arange(Half *head, const Shape *shape, size_t index) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  for (size_t i = 0; i < count; i++) head[i] = half_from_double((double)((i + 97 * index) % 2039) / 1024 - 1);
}

// identity, Q and K: 16 times the identity matrix, repeated every head_dim rows. A query's score with its own key exceeds
// the others by at least 22, so row i of P is 1 at key i (and at i + head_dim, ...). O is V as long as
// seqlen <= head_dim.
static void fill_identity(Half *head, const Shape *shape) {
  for (size_t row = 0; row < (size_t)shape->seqlen; row++)
    for (size_t d = 0; d < (size_t)shape->head_dim; d++)
      head[row * shape->head_dim + d] = half_from_double(row % shape->head_dim == d ? 16 : 0);
}

// waves: 128 keys with low scores alternate with 128 that have high ones, 25 to 35 apart as powers of two. Scores within 128
// keys are similar. A softmax that goes through the keys in tiles meets maxima that grow and others that do not.
static void fill_waves(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  fill_random(head, shape, 0.5, seed);
  for (size_t row = 0; row < (size_t)shape->seqlen; row++) {
    Half *first = head + row * shape->head_dim;
    if (tensor == TENSOR_Q) *first = half_from_double(16);
    if (tensor == TENSOR_K) *first = half_from_double(row / 128 % 2 ? 12 : 0);
  }
}

// cliff: the last 128 keys or fewer are those of normal, and all before them are 64 times as large. A softmax that begins at
// the end and keeps its first maximum meets weights that are beyond fp32.
static void fill_cliff(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  fill_random(head, shape, 1, seed);
  if (tensor != TENSOR_K) return;
  size_t large = (size_t)(shape->seqlen - 1) / 128 * 128 * (size_t)shape->head_dim;
  for (size_t i = 0; i < large; i++) head[i] = half_from_double(64 * (double)half_to_float(head[i]));
}

// outliers: as normal, but one element of a thousand has a second normal number added, ten times as large. FlashAttention-3's
// test of FP8 has these inputs: N(0, 1) + N(0, 100) * Bernoulli(0.001), arXiv 2407.08608, section 4.3.
static void fill_outliers(Half *head, const Shape *shape, uint64_t seed) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  for (size_t i = 0; i < count; i++) {
    double pair[2];
    random_normal(&seed, pair);
    head[i] = half_from_double(pair[0] + (random_uniform(&seed) <= 0.001 ? 10 * pair[1] : 0));
  }
}

// mean: as normal, but the mean of V is 1. Every term of a sum over the keys has about the same size and sign, so that what
// an accumulator rounds away adds up.
static void fill_mean(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  fill_random(head, shape, 1, seed);
  for (size_t i = 0; tensor == TENSOR_V && i < count; i++) head[i] = half_from_double(half_to_float(head[i]) + 1.0);
}

static void fill_ones(Half *head, const Shape *shape) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  for (size_t i = 0; i < count; i++) head[i] = half_from_double(1);
}

typedef struct Filling {
  const Problem *problem;
  InputKind input;
  uint64_t seed;
} Filling;

// Fills one head of one tensor. Each has its own random stream, so the result does not depend on the threads' order.
static void fill_head(void *context, size_t index) {
  const Filling *filling = context;
  const Problem *problem = filling->problem;
  const Shape *shape = &problem->shape;
  Tensor tensor = index / problem->heads;
  size_t head = index % problem->heads;
  Half *tensors[] = {problem->q, problem->k, problem->v};
  Half *to = tensors[tensor] + head * shape->seqlen * shape->head_dim;
  uint64_t seed = filling->seed;
  seed = random_next(&seed) + index;
  seed = random_next(&seed);

  switch (filling->input) {
  case INPUT_NORMAL: fill_random(to, shape, 1, seed); break;
  case INPUT_LARGE: fill_random(to, shape, 8, seed); break;
  case INPUT_ONES: fill_ones(to, shape); break;
  case INPUT_ARANGE: fill_arange(to, shape, head); break;
  case INPUT_WAVES: fill_waves(to, shape, tensor, seed); break;
  case INPUT_CLIFF: fill_cliff(to, shape, tensor, seed); break;
  case INPUT_OUTLIERS: fill_outliers(to, shape, seed); break;
  case INPUT_MEAN: fill_mean(to, shape, tensor, seed); break;
  case INPUT_IDENTITY: tensor == TENSOR_V ? fill_arange(to, shape, head) : fill_identity(to, shape); break;
  }
  progress_add(1);
}

bool problem_create(Problem *problem, const Shape *shape, InputKind input, uint64_t seed) {
  *problem = (Problem){.shape = *shape, .heads = (size_t)shape->batch * shape->heads};
  problem->elements = problem->heads * shape->seqlen * shape->head_dim;
  Half **tensors[] = {&problem->q, &problem->k, &problem->v, &problem->o};
  for (int i = 0; i < 4; i++) {
    *tensors[i] = malloc(problem->elements * sizeof(Half));
    if (!*tensors[i]) {
      problem_free(problem);
      return false;
    }
  }
  Filling filling = {.problem = problem, .input = input, .seed = seed};
  progress_begin("making inputs", TENSORS * problem->heads);
  parallel_for(TENSORS * problem->heads, fill_head, &filling);
  progress_end();
  return true;
}

void problem_free(Problem *problem) {
  free(problem->q);
  free(problem->k);
  free(problem->v);
  free(problem->o);
  for (int tensor = 0; tensor < TENSORS; tensor++) {
    free(problem->codes[tensor]);
    free(problem->scales[tensor]);
  }
  *problem = (Problem){0};
}

size_t problem_scales(const Problem *problem) { return problem->scale_stride ? problem->heads : 1; }
