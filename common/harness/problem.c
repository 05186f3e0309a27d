// One attention problem's inputs.
#include <stdlib.h>

#include "harness.h"

double problem_scale(const Shape *shape) { return 1.0 / sqrt(shape->head_dim); }

double problem_flops(const Shape *shape) {
  double full = 4.0 * shape->batch * shape->heads * (double)shape->seqlen * shape->seqlen * shape->head_dim;
  return shape->causal ? full / 2 : full;
}

double problem_windowed_flops(const Shape *shape, int window) {
  double most = window < shape->seqlen ? window : shape->seqlen, seen = most * (most + 1) / 2;
  seen += (shape->seqlen - most) * most;
  return 4.0 * shape->batch * shape->heads * seen * shape->head_dim;
}

double problem_backward_flops(const Shape *shape) { return 2.5 * problem_flops(shape); }

double random_uniform(uint64_t *state) { return (double)((random_bits(state) >> 11) + 1) * 0x1p-53; }

// By Box and Muller, who get two at a time.
void random_normal(uint64_t *state, double pair[2]) {
  double radius = sqrt(-2 * log(random_uniform(state))), angle = 2 * acos(-1.0) * random_uniform(state);
  pair[0] = radius * cos(angle);
  pair[1] = radius * sin(angle);
}

// normal: standard deviation 1, like attention's inputs after a layer norm.
// large:  eight times as large. Scores reach several hundreds, and a softmax that does not subtract the maximum
// overflows.
static void fill_random(Half *head, const Shape *shape, double factor, uint64_t seed) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;  // even
  double pair[2];
  for (size_t i = 0; i < count; i += 2) {
    random_normal(&seed, pair);
    head[i] = half_from_double(factor * pair[0]);
    head[i + 1] = half_from_double(factor * pair[1]);
  }
}

// arange: an element's value shows its position: -1 to 1 in steps of 1/1024, which fp16 holds exactly. The steps start
// again after a prime number of elements, so that rows repeat only after a long while.
static void fill_arange(Half *head, const Shape *shape, size_t index) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  for (size_t i = 0; i < count; i++) head[i] = half_from_double((double)((i + 97 * index) % 2039) / 1024 - 1);
}

// identity, Q and K: 16 times the identity matrix, repeated every head_dim rows. A query's score with its own key
// exceeds the others by at least 22, so row i of P is 1 at key i (and at i + head_dim, ...). O is V as long as
// seqlen <= head_dim.
static void fill_identity(Half *head, const Shape *shape) {
  for (size_t row = 0; row < (size_t)shape->seqlen; row++)
    for (size_t d = 0; d < (size_t)shape->head_dim; d++)
      head[row * shape->head_dim + d] = half_from_double(row % shape->head_dim == d ? 16 : 0);
}

// waves: 128 keys with low scores alternate with 128 that have high ones, 25 to 35 apart as powers of two. Scores
// within 128 keys are similar. A softmax that goes through the keys in tiles meets maxima that grow and others that do
// not.
static void fill_waves(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  fill_random(head, shape, 0.5, seed);
  for (size_t row = 0; row < (size_t)shape->seqlen; row++) {
    Half *first = head + row * shape->head_dim;
    if (tensor == TENSOR_Q) *first = half_from_double(16);
    if (tensor == TENSOR_K) *first = half_from_double(row / 128 % 2 ? 12 : 0);
  }
}

// cliff: the last 128 keys or fewer are those of normal, and all before them are 64 times as large. A softmax that
// begins at the end and keeps its first maximum meets weights that are beyond fp32.
static void fill_cliff(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  fill_random(head, shape, 1, seed);
  if (tensor != TENSOR_K) return;
  size_t large = (size_t)(shape->seqlen - 1) / 128 * 128 * (size_t)shape->head_dim;
  for (size_t i = 0; i < large; i++) head[i] = half_from_double(64 * (double)half_to_float(head[i]));
}

// outliers: as normal, but one element of a thousand has a second normal number added, ten times as large.
// FlashAttention-3's test of FP8 has these inputs: N(0, 1) + N(0, 100) * Bernoulli(0.001), arXiv 2407.08608, section
// 4.3.
static void fill_outliers(Half *head, const Shape *shape, uint64_t seed) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  for (size_t i = 0; i < count; i++) {
    double pair[2];
    random_normal(&seed, pair);
    head[i] = half_from_double(pair[0] + (random_uniform(&seed) <= 0.001 ? 10 * pair[1] : 0));
  }
}

// mean: as normal, but the mean of V is 1. Every term of a sum over the keys has about the same size and sign, so that
// what an accumulator rounds away adds up.
static void fill_mean(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  fill_random(head, shape, 1, seed);
  for (size_t i = 0; tensor == TENSOR_V && i < count; i++) head[i] = half_from_double(half_to_float(head[i]) + 1.0);
}

// negative: all scores are negative, and those of a key tile are larger than those of the tile behind it, by a factor
// of 2^17 in the weights. A search for the maximum that is right only for positive scores misses this.
static void fill_negative(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  fill_random(head, shape, 0.5, seed);
  for (size_t row = 0; row < (size_t)shape->seqlen; row++) {
    Half *first = head + row * shape->head_dim;
    if (tensor == TENSOR_Q) *first = half_from_double(16);
    if (tensor == TENSOR_K) *first = half_from_double(-4 - 6 * (double)(row / 128 % 3));
  }
}

// vanish: Q and K are 32 times as large, so that a query's weights are 1 for one key and 0 for the others. Then dP
// equals delta where the weight is 1: dS, the difference times the weight, is what rounding leaves.
static void fill_vanish(Half *head, const Shape *shape, Tensor tensor, uint64_t seed) {
  fill_random(head, shape, tensor == TENSOR_V ? 1 : 32, seed);
}

// rows, columns: Q and K are those of identity, and an element of V shows its row or its column, modulo 64. The 64
// numbers are 7.5, 8, 9, 10, ..., 14, and these times 2, 4, ... 128. The largest, 1792, is 4 * 448: e4m3 has them all
// (quantise.c), so that an FP8 kernel's O shows them, too.
static double number_of_place(size_t place) {
  static const double steps[] = {7.5, 8, 9, 10, 11, 12, 13, 14};
  return ldexp(steps[place % 8], (int)(place / 8 % 8));
}

static void fill_rows(Half *head, const Shape *shape) {
  for (size_t i = 0; i < (size_t)shape->seqlen * shape->head_dim; i++)
    head[i] = half_from_double(number_of_place(i / (size_t)shape->head_dim));
}

static void fill_columns(Half *head, const Shape *shape) {
  for (size_t i = 0; i < (size_t)shape->seqlen * shape->head_dim; i++)
    head[i] = half_from_double(number_of_place(i % (size_t)shape->head_dim));
}

// places: dQ shows dS. Q is 0, so all weights are 1 / seqlen. dO is the identity matrix, so dP is the transpose of V,
// whose numbers show their positions as in arange. A key of the next 32 has the negative number of one of the 32
// before. So delta is 0, and dS is dP / seqlen. K is 512 times the identity matrix: with seqlen = head_dim = 64, dQ is
// dP.
static void fill_places(Half *head, const Shape *shape, Tensor tensor, bool is_d_o) {
  size_t head_dim = (size_t)shape->head_dim;
  for (size_t i = 0; i < (size_t)shape->seqlen * head_dim; i++) {
    size_t row = i / head_dim, column = i % head_dim;
    double position = (double)((row % 32 * head_dim + column) % 2048 + 1) / 2048;
    double identity = row % head_dim == column;
    head[i] = half_from_double(tensor == TENSOR_Q   ? 0
                               : tensor == TENSOR_K ? 512 * identity
                               : is_d_o             ? identity
                               : row / 32 % 2       ? -position
                                                    : position);
  }
}

static void fill_ones(Half *head, const Shape *shape) {
  size_t count = (size_t)shape->seqlen * shape->head_dim;
  for (size_t i = 0; i < count; i++) head[i] = half_from_double(1);
}

// dO is like V, but for explode: there it is 1024 times as large. The gradients are linear in dO.
void problem_fill_head(Half *to, const Shape *shape, Tensor tensor, size_t head, InputKind input, uint64_t seed) {
  bool is_d_o = tensor == TENSOR_D_O;
  if (is_d_o) tensor = TENSOR_V;
  switch (input) {
  case INPUT_NORMAL: fill_random(to, shape, 1, seed); break;
  case INPUT_LARGE: fill_random(to, shape, 8, seed); break;
  case INPUT_ONES: fill_ones(to, shape); break;
  case INPUT_ARANGE: fill_arange(to, shape, head); break;
  case INPUT_WAVES: fill_waves(to, shape, tensor, seed); break;
  case INPUT_CLIFF: fill_cliff(to, shape, tensor, seed); break;
  case INPUT_OUTLIERS: fill_outliers(to, shape, seed); break;
  case INPUT_MEAN: fill_mean(to, shape, tensor, seed); break;
  case INPUT_NEGATIVE: fill_negative(to, shape, tensor, seed); break;
  case INPUT_VANISH: fill_vanish(to, shape, tensor, seed); break;
  case INPUT_EXPLODE: fill_random(to, shape, is_d_o ? 1024 : 1, seed); break;
  case INPUT_ROWS: tensor == TENSOR_V ? fill_rows(to, shape) : fill_identity(to, shape); break;
  case INPUT_COLUMNS: tensor == TENSOR_V ? fill_columns(to, shape) : fill_identity(to, shape); break;
  case INPUT_PLACES: fill_places(to, shape, tensor, is_d_o); break;
  case INPUT_IDENTITY: tensor == TENSOR_V ? fill_arange(to, shape, head) : fill_identity(to, shape); break;
  }
}

typedef struct Filling {
  const Problem *problem;
  Tensor first;  // of the tensors to fill
  InputKind input;
  uint64_t seed;
} Filling;

// Fills one head of one tensor. Each has its own random stream, so the result does not depend on the threads' order.
static void fill_head(void *context, size_t index) {
  const Filling *filling = context;
  const Problem *problem = filling->problem;
  const Shape *shape = &problem->shape;
  Half *tensors[] = {problem->q, problem->k, problem->v, problem->d_o};
  index += filling->first * problem->heads;
  Half *to = tensors[index / problem->heads] + index % problem->heads * shape->seqlen * shape->head_dim;
  uint64_t seed = filling->seed;
  seed = random_bits(&seed) + index;
  seed = random_bits(&seed);
  problem_fill_head(to, shape, index / problem->heads, index % problem->heads, filling->input, seed);
  progress_add(1);
}

// Allocates four tensors. When there is no memory, frees the problem and returns false.
static bool allocate_tensors(Problem *problem, Half **const tensors[4]) {
  for (int i = 0; i < 4; i++) {
    *tensors[i] = malloc(problem->elements * sizeof(Half));
    if (!*tensors[i]) {
      problem_free(problem);
      return false;
    }
  }
  return true;
}

static void fill_tensors(Filling filling, size_t tensors) {
  progress_begin("making inputs", tensors * filling.problem->heads);
  parallel_for(tensors * filling.problem->heads, fill_head, &filling);
  progress_end();
}

bool problem_create(Problem *problem, const Shape *shape, InputKind input, uint64_t seed) {
  *problem = (Problem){.shape = *shape, .heads = (size_t)shape->batch * shape->heads};
  problem->elements = problem->heads * shape->seqlen * shape->head_dim;
  if (!allocate_tensors(problem, (Half * *[]){&problem->q, &problem->k, &problem->v, &problem->o})) return false;
  fill_tensors((Filling){.problem = problem, .first = TENSOR_Q, .input = input, .seed = seed}, TENSORS);
  return true;
}

bool problem_add_lse(Problem *problem) {
  problem->lse = malloc(problem->heads * problem->shape.seqlen * sizeof(float));
  if (problem->lse) return true;
  problem_free(problem);
  return false;
}

bool problem_add_gradients(Problem *problem, InputKind input, uint64_t seed) {
  if (!problem_add_lse(problem)) return false;
  if (!allocate_tensors(problem, (Half * *[]){&problem->d_o, &problem->d_q, &problem->d_k, &problem->d_v}))
    return false;
  fill_tensors((Filling){.problem = problem, .first = TENSOR_D_O, .input = input, .seed = seed}, 1);
  return true;
}

void problem_free(Problem *problem) {
  free(problem->q);
  free(problem->k);
  free(problem->v);
  free(problem->o);
  free(problem->d_o);
  free(problem->lse);
  free(problem->d_q);
  free(problem->d_k);
  free(problem->d_v);
  for (int tensor = 0; tensor < TENSORS; tensor++) {
    free(problem->codes[tensor]);
    free(problem->scales[tensor]);
  }
  *problem = (Problem){0};
}

size_t problem_scales(const Problem *problem) { return problem->scale_stride ? problem->heads : 1; }
