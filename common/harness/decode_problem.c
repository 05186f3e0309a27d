// A decode problem's inputs, what O should be, and how far from it a right kernel may be.
//
// The limit is that of reference.c, with bf16's roundings in the place of fp16's: a kernel rounds the weights
// P = exp(S - max) to bf16 before P V, and O at the end, and computes everything else in fp32. The row is computed a
// second time with those two roundings, and
//
//   limit = 2 * max over d of |rounded path - exact|  +  2^-9 |o| + 2^-25 keys |o| + 2^-9 rms + 2^-20 |s| mass + 2^-134
//
// (with an e4m3 cache, weights are rounded to fp16, and 2^-12 rms).
//
// The log-sum-exp may be off by 2^-20 of the largest score, 2^-22 (|lse| + 1) for the roundings of the logarithm and of
// the result, and 2^-25 for each key that is added. Where a query sees no key, it is -infinity.
//
// 2^-9 is half a unit of bf16's last place, and 2^-134 half of its smallest number. A kernel may share the keys out
// among warps and blocks. Their parts are in fp32, and are combined in fp32, so the limit does not ask how many.
#include <inttypes.h>
#include <stdlib.h>

#include "../emulator/host/fnv.h"
#include "harness.h"

enum { MAX_HEAD_DIM = 128 };

size_t decode_rows(const DecodeShape *shape) {
  return (size_t)shape->batch * (size_t)shape->heads * (size_t)shape->queries;
}

size_t decode_query_elements(const DecodeShape *shape) { return decode_rows(shape) * (size_t)shape->head_dim; }

size_t decode_cache_elements(const DecodeShape *shape) {
  return (size_t)shape->batch * (size_t)shape->kv_heads * (size_t)shape->keys * (size_t)shape->head_dim;
}

size_t decode_used_elements(const DecodeProblem *problem) {
  const DecodeShape *shape = &problem->shape;
  size_t keys = 0;
  for (int b = 0; b < shape->batch; b++) keys += (size_t)problem->lengths[b];
  return keys * (size_t)shape->kv_heads * (size_t)shape->head_dim;
}

size_t decode_scales(const DecodeProblem *problem) {
  return problem->scale_stride ? (size_t)problem->shape.batch * (size_t)problem->shape.kv_heads : 1;
}

// ---- inputs ----

typedef struct CacheFilling {
  const DecodeShape *shape;
  Bf16 *to;
  Tensor tensor;
  int rows;  // of a head
  InputKind input;
  uint64_t seed;
} CacheFilling;

// Fills one head as problem.c does, in place, and rounds it to bf16. Each head has its own random stream.
static void fill_cache_head(void *context, size_t head) {
  const CacheFilling *filling = context;
  Shape rows = {.batch = 1, .heads = 1, .seqlen = filling->rows, .head_dim = filling->shape->head_dim};
  size_t count = (size_t)rows.seqlen * (size_t)rows.head_dim;
  Bf16 *to = filling->to + head * count;
  uint64_t seed = filling->seed;
  seed = random_bits(&seed) + TENSORS * head + filling->tensor;
  seed = random_bits(&seed);
  problem_fill_head(to, &rows, filling->tensor, head, filling->input, seed);
  for (size_t i = 0; i < count; i++) to[i] = bf16_from_double(half_to_float(to[i]));
}

bool decode_problem_create(DecodeProblem *problem, const DecodeShape *shape, InputKind input, uint64_t seed) {
  size_t queries = decode_query_elements(shape), cache = decode_cache_elements(shape);
  *problem = (DecodeProblem){
      .shape = *shape,
      .q = malloc(queries * sizeof(Bf16)),
      .o = malloc(queries * sizeof(Bf16)),
      .k = malloc(cache * sizeof(Bf16)),
      .v = malloc(cache * sizeof(Bf16)),
      .lengths = malloc((size_t)shape->batch * sizeof(int)),
  };
  if (!problem->q || !problem->k || !problem->v || !problem->o || !problem->lengths) {
    decode_problem_free(problem);
    return false;
  }
  for (int b = 0; b < shape->batch; b++) problem->lengths[b] = shape->keys;
  size_t heads = (size_t)shape->batch * (size_t)shape->heads, kv_heads = (size_t)shape->batch * (size_t)shape->kv_heads;
  progress_begin("making inputs", 0);
  parallel_for(heads, fill_cache_head, &(CacheFilling){shape, problem->q, TENSOR_Q, shape->queries, input, seed});
  parallel_for(kv_heads, fill_cache_head, &(CacheFilling){shape, problem->k, TENSOR_K, shape->keys, input, seed});
  parallel_for(kv_heads, fill_cache_head, &(CacheFilling){shape, problem->v, TENSOR_V, shape->keys, input, seed});
  progress_end();
  return true;
}

// Makes the keys that do not exist NaN: a kernel must not let them have a weight.
static void end_sequences(const DecodeProblem *problem) {
  const DecodeShape *shape = &problem->shape;
  size_t head_dim = (size_t)shape->head_dim;
  for (int head = 0; head < shape->batch * shape->kv_heads; head++)
    for (int key = problem->lengths[head / shape->kv_heads]; key < shape->keys; key++) {
      size_t at = ((size_t)head * (size_t)shape->keys + (size_t)key) * head_dim;
      memset(problem->k + at, 0xff, head_dim * sizeof(Bf16));
      memset(problem->v + at, 0xff, head_dim * sizeof(Bf16));
    }
}

// Numbers with commas between them, to the end also where there are fewer sequences.
static bool read_lengths(DecodeProblem *problem, const char *lengths) {
  const char *at = lengths;
  for (int b = 0; b < problem->shape.batch || at != lengths; b++) {
    char *end;
    long length = strtol(at, &end, 10);
    if (end == at || length < 0 || length > problem->shape.keys || (*end && *end != ',')) return false;
    if (b < problem->shape.batch) problem->lengths[b] = (int)length;
    at = *end ? end + 1 : lengths;
  }
  return true;
}

bool decode_problem_set_lengths(DecodeProblem *problem, const char *lengths, uint64_t seed) {
  const DecodeShape *shape = &problem->shape;
  if (!strcmp(lengths, "full")) return true;
  if (!strcmp(lengths, "ragged"))
    for (int b = 0; b < shape->batch; b++) problem->lengths[b] = 1 + (int)(random_bits(&seed) % (uint64_t)shape->keys);
  else if (!read_lengths(problem, lengths))
    return false;
  end_sequences(problem);
  return true;
}

// ---- an e4m3 cache ----

typedef struct CacheQuantisation {
  DecodeProblem *problem;
  double *largest;  // [K and V][key head]
} CacheQuantisation;

static size_t key_heads(const DecodeProblem *problem) {
  return (size_t)problem->shape.batch * (size_t)problem->shape.kv_heads;
}

// `index` counts the key heads of K, then those of V. Calls work with the elements that exist.
static const Bf16 *used_of(const CacheQuantisation *quantisation, size_t index, size_t *count) {
  const DecodeProblem *problem = quantisation->problem;
  size_t head = index % key_heads(problem), head_dim = (size_t)problem->shape.head_dim;
  *count = (size_t)problem->lengths[head / (size_t)problem->shape.kv_heads] * head_dim;
  return (index < key_heads(problem) ? problem->k : problem->v) + head * (size_t)problem->shape.keys * head_dim;
}

static void find_largest_of_head(void *context, size_t index) {
  const CacheQuantisation *quantisation = context;
  size_t count;
  const Bf16 *from = used_of(quantisation, index, &count);
  double largest = 0;
  for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(bf16_to_float(from[i])));
  quantisation->largest[index] = largest;
}

static void make_codes_of_head(void *context, size_t index) {
  const CacheQuantisation *quantisation = context;
  const DecodeProblem *problem = quantisation->problem;
  size_t count, heads = key_heads(problem), tensor = index / heads, head = index % heads;
  size_t all = (size_t)problem->shape.keys * (size_t)problem->shape.head_dim;
  const Bf16 *from = used_of(quantisation, index, &count);
  E4m3 *to = problem->codes[tensor] + head * all;
  double scale = problem->scales[tensor][head * (size_t)problem->scale_stride];
  for (size_t i = 0; i < count; i++) to[i] = e4m3_from_double(bf16_to_float(from[i]) / scale);
  memset(to + count, 0xff, all - count);
}

static void choose_cache_scales(const CacheQuantisation *quantisation) {
  const DecodeProblem *problem = quantisation->problem;
  size_t heads = key_heads(problem);
  for (size_t tensor = 0; tensor < 2; tensor++) {
    double all = 0;
    for (size_t head = 0; head < heads; head++) {
      double largest = quantisation->largest[tensor * heads + head];
      all = fmax(all, largest);
      if (!problem->scale_stride) largest = all;
      problem->scales[tensor][head * (size_t)problem->scale_stride] = largest > 0 ? (float)(largest / E4M3_LARGEST) : 1;
    }
  }
}

bool decode_problem_quantise(DecodeProblem *problem, bool per_head) {
  problem->scale_stride = per_head;
  size_t heads = key_heads(problem), elements = decode_cache_elements(&problem->shape);
  CacheQuantisation quantisation = {.problem = problem, .largest = malloc(2 * heads * sizeof(double))};
  bool done = quantisation.largest;
  for (int tensor = 0; tensor < 2; tensor++) {
    problem->codes[tensor] = malloc(elements);
    problem->scales[tensor] = malloc(decode_scales(problem) * sizeof(float));
    done = done && problem->codes[tensor] && problem->scales[tensor];
  }
  if (done) {
    progress_begin("quantising", 0);
    parallel_for(2 * heads, find_largest_of_head, &quantisation);
    choose_cache_scales(&quantisation);
    parallel_for(2 * heads, make_codes_of_head, &quantisation);
    progress_end();
  }
  free(quantisation.largest);
  return done;
}

bool decode_problem_add_lse(DecodeProblem *problem) {
  problem->lse = malloc(decode_rows(&problem->shape) * sizeof(float));
  return problem->lse;
}

void decode_problem_free(DecodeProblem *problem) {
  free(problem->lse);
  free(problem->lengths);
  for (int tensor = 0; tensor < 2; tensor++) {
    free(problem->codes[tensor]);
    free(problem->scales[tensor]);
  }
  free(problem->q);
  free(problem->k);
  free(problem->v);
  free(problem->o);
  *problem = (DecodeProblem){0};
}

// ---- the reference: one query ----

// Row `key` of K (0) or V (1) in key head `head`, widened. The one place that knows where a key lies.
static void load_key(const DecodeProblem *problem, int tensor, size_t head, int key, double *to) {
  int head_dim = problem->shape.head_dim;
  size_t at = (head * (size_t)problem->shape.keys + (size_t)key) * (size_t)head_dim;
  if (problem->codes[tensor]) {
    double scale = problem->scales[tensor][head * (size_t)problem->scale_stride];
    for (int d = 0; d < head_dim; d++) to[d] = scale * e4m3_to_float(problem->codes[tensor][at + (size_t)d]);
  } else {
    const Bf16 *from = tensor ? problem->v : problem->k;
    for (int d = 0; d < head_dim; d++) to[d] = bf16_to_float(from[at + (size_t)d]);
  }
}

// The keys that a row of Q sees: of [batch][heads][queries].
static int keys_seen(const DecodeProblem *problem, size_t row) {
  const DecodeShape *shape = &problem->shape;
  size_t queries = (size_t)shape->queries, query = row % queries;
  int keys = problem->lengths[row / queries / (size_t)shape->heads] - (shape->queries - 1 - (int)query);
  return keys > 0 ? keys : 0;
}

// Weights are rounded to bf16; with an e4m3 cache, which fp16 holds exactly, to fp16, after a multiplication that makes
// the largest 2^10, so that small ones keep their bits.
static double round_weight(const DecodeProblem *problem, double weight) {
  return problem->codes[0] ? half_round(weight * 0x1p10) * 0x1p-10 : bf16_round(weight);
}

// Of a query's scores.
typedef struct DecodeScores {
  double max, largest;  // the largest, and the largest magnitude
} DecodeScores;

// The weights of a query, the largest of them 1.
static DecodeScores decode_weights(const DecodeProblem *problem, size_t head, int keys, const double *query,
                                   double *weights) {
  int head_dim = problem->shape.head_dim;
  double row[MAX_HEAD_DIM], scale = 1 / sqrt(head_dim), max = -INFINITY, largest = 0;
  for (int key = 0; key < keys; key++) {
    load_key(problem, 0, head, key, row);
    double score = weights[key] = scale * reference_dot(query, row, head_dim);
    max = larger(max, score);
    largest = larger(largest, fabs(score));
  }
  for (int key = 0; key < keys; key++) weights[key] = exp(weights[key] - max);
  return (DecodeScores){max, largest};
}

// Sums over the keys of weight times value, for each d.
typedef struct DecodeSums {
  double weight, exact[MAX_HEAD_DIM], rounded[MAX_HEAD_DIM], absolute[MAX_HEAD_DIM], squared[MAX_HEAD_DIM];
} DecodeSums;

static void add_value_rows(const DecodeProblem *problem, size_t head, int keys, const double *weights,
                           DecodeSums *sums) {
  double row[MAX_HEAD_DIM];
  for (int key = 0; key < keys; key++) {
    load_key(problem, 1, head, key, row);
    double weight = weights[key], rounded = round_weight(problem, weight);
    sums->weight += weight;
    for (int d = 0; d < problem->shape.head_dim; d++) {
      double term = weight * row[d];
      sums->exact[d] += term;
      sums->rounded[d] = add_product(rounded, row[d], sums->rounded[d]);
      sums->absolute[d] += fabs(term);
      sums->squared[d] = add_product(term, term, sums->squared[d]);
    }
  }
}

// The answer to a query in fp64, and how far from it a right kernel's may be.
typedef struct DecodeAnswer {
  double o[MAX_HEAD_DIM], limit, lse, lse_limit;
} DecodeAnswer;

static void answer_query(const DecodeProblem *problem, size_t head, int keys, const double *query, double *weights,
                         DecodeAnswer *answer) {
  DecodeSums sums = {0};
  *answer = (DecodeAnswer){.limit = 0x1p-134, .lse = -INFINITY};
  if (keys == 0) return;
  double *out = answer->o, unit = problem->codes[0] ? 0x1p-12 : 0x1p-9;
  DecodeScores scores = decode_weights(problem, head, keys, query, weights);
  add_value_rows(problem, head, keys, weights, &sums);
  double rounded_error = 0, magnitude = 0, mass = 0, rms = 0;
  for (int d = 0; d < problem->shape.head_dim; d++) {
    out[d] = sums.exact[d] / sums.weight;
    rounded_error = larger(rounded_error, fabs(bf16_round(sums.rounded[d] / sums.weight) - out[d]));
    magnitude = larger(magnitude, fabs(out[d]));
    mass = larger(mass, sums.absolute[d] / sums.weight);
    rms = larger(rms, sqrt(sums.squared[d]) / sums.weight);
  }
  answer->limit = 2 * rounded_error + (0x1p-9 + 0x1p-25 * keys) * magnitude + unit * rms +
                  0x1p-20 * scores.largest * mass + 0x1p-134;
  answer->lse = scores.max + log(sums.weight);
  answer->lse_limit = 0x1p-20 * scores.largest + 0x1p-22 * (fabs(answer->lse) + 1) + 0x1p-25 * keys;
}

// ---- the check ----

// Key heads are chosen when all would take more multiply-adds than this.
static const double DECODE_WORK_LIMIT = 0x1p29;

typedef struct DecodeChecking {
  const DecodeProblem *problem;
  int *number;         // of each chosen key head; sorted
  DecodeCheck *heads;  // of each chosen key head
  atomic_bool out_of_memory;
} DecodeChecking;

static void compare_lse(const DecodeProblem *problem, size_t query, const DecodeAnswer *answer, DecodeLseCheck *check) {
  double value = problem->lse[query], error = value == answer->lse ? 0 : fabs(value - answer->lse);
  check->compared++;
  check->max_error = larger(check->max_error, error);
  if (error > 0) check->worst = larger(check->worst, error / answer->lse_limit);
  if (error <= answer->lse_limit) return;  // false for NaN
  if (check->wrong++ == 0) check->first = (Difference){query, value, answer->lse, answer->lse_limit};
}

static void compare_query(const DecodeProblem *problem, size_t query, const DecodeAnswer *answer, DecodeCheck *check) {
  const double *expected = answer->o, limit = answer->limit;
  for (int d = 0; d < problem->shape.head_dim; d++) {
    size_t index = query * (size_t)problem->shape.head_dim + (size_t)d;
    double value = bf16_to_float(problem->o[index]), error = fabs(value - expected[d]);
    check->compared++;
    check->max_error = larger(check->max_error, error);
    check->worst = larger(check->worst, error / limit);
    check->squares.difference += (value - expected[d]) * (value - expected[d]);
    check->squares.reference += expected[d] * expected[d];
    if (error <= limit) continue;  // false for NaN
    check->wrong++;
    if (check->difference_count < MAX_DIFFERENCES)
      check->differences[check->difference_count++] = (Difference){index, value, expected[d], limit};
  }
}

// All queries of one chosen key head.
static void check_key_head(void *context, size_t i) {
  DecodeChecking *checking = context;
  const DecodeProblem *problem = checking->problem;
  const DecodeShape *shape = &problem->shape;
  size_t head = (size_t)checking->number[i];
  size_t group = (size_t)(shape->heads / shape->kv_heads * shape->queries);  // rows
  if (i > 0 && checking->number[i] == checking->number[i - 1]) return;
  DecodeAnswer answer;
  double query[MAX_HEAD_DIM], *weights = malloc((size_t)shape->keys * sizeof *weights);
  for (size_t row = head * group; weights && row < (head + 1) * group; row++) {
    for (int d = 0; d < shape->head_dim; d++) query[d] = bf16_to_float(problem->q[row * (size_t)shape->head_dim + d]);
    answer_query(problem, head, keys_seen(problem, row), query, weights, &answer);
    compare_query(problem, row, &answer, &checking->heads[i]);
    if (problem->lse) compare_lse(problem, row, &answer, &checking->heads[i].lse);
  }
  if (!weights) checking->out_of_memory = true;
  free(weights);
  progress_add(1);
}

// Heads are added in order, so the differences that stay are the first ones.
static void add_key_head(DecodeCheck *all, const DecodeCheck *head) {
  all->compared += head->compared;
  all->wrong += head->wrong;
  all->max_error = larger(all->max_error, head->max_error);
  all->worst = larger(all->worst, head->worst);
  all->squares.difference += head->squares.difference;
  all->squares.reference += head->squares.reference;
  for (int i = 0; i < head->difference_count && all->difference_count < MAX_DIFFERENCES; i++)
    all->differences[all->difference_count++] = head->differences[i];
  if (all->lse.wrong == 0) all->lse.first = head->lse.first;
  all->lse.compared += head->lse.compared;
  all->lse.wrong += head->lse.wrong;
  all->lse.max_error = larger(all->lse.max_error, head->lse.max_error);
  all->lse.worst = larger(all->lse.worst, head->lse.worst);
}

static int choose_heads(const DecodeShape *shape) {
  double each = (double)shape->heads / shape->kv_heads * shape->queries * shape->keys * shape->head_dim;
  double heads = DECODE_WORK_LIMIT / each, all = (double)shape->batch * shape->kv_heads;
  if (heads >= all) return (int)all;
  double least = all < 4 ? all : 4;
  return (int)(heads > least ? heads : least);
}

bool decode_check(const DecodeProblem *problem, uint64_t seed, DecodeCheck *check) {
  const DecodeShape *shape = &problem->shape;
  *check = (DecodeCheck){.heads = choose_heads(shape)};
  size_t count = (size_t)check->heads;
  DecodeChecking checking = {
      .problem = problem,
      .number = malloc(count * sizeof(int)),
      .heads = calloc(count, sizeof(DecodeCheck)),
  };
  bool done = checking.number && checking.heads;
  if (done) {
    check_choose_rows(checking.number, check->heads, shape->batch * shape->kv_heads, seed);
    progress_begin("reference on the CPU", count);
    parallel_for(count, check_key_head, &checking);
    progress_end();
    for (size_t i = 0; i < count; i++) add_key_head(check, &checking.heads[i]);
    for (size_t i = 0; i < decode_query_elements(shape); i++)
      if (!bf16_is_finite(problem->o[i]) && check->not_finite++ == 0) check->first_not_finite = i;
    for (size_t i = 0; problem->lse && i < decode_rows(shape); i++) check->lse.never_written += isnan(problem->lse[i]);
    done = !checking.out_of_memory;
  }
  free(checking.number);
  free(checking.heads);
  return done;
}

static bool o_is_right(const DecodeCheck *check) {
  return check->compared > 0 && check->wrong == 0 && check->not_finite == 0;
}

static bool lse_is_right(const DecodeLseCheck *check) { return check->wrong == 0 && check->never_written == 0; }

bool decode_check_is_right(const DecodeCheck *check) { return o_is_right(check) && lse_is_right(&check->lse); }

// ---- what it prints ----

static void print_row_place(FILE *out, const DecodeProblem *problem, const char *tensor, size_t row) {
  size_t queries = (size_t)problem->shape.queries, head = row / queries, heads = (size_t)problem->shape.heads;
  fprintf(out, "%s[%zu][%zu]", tensor, head / heads, head % heads);
  if (queries > 1) fprintf(out, "[%zu]", row % queries);
}

static void print_query_place(FILE *out, const DecodeProblem *problem, size_t index) {
  size_t head_dim = (size_t)problem->shape.head_dim;
  print_row_place(out, problem, "O", index / head_dim);
  fprintf(out, "[%zu]", index % head_dim);
}

static void print_wrong_queries(FILE *out, const DecodeProblem *problem, const DecodeCheck *check) {
  fprintf(out, "          the first that %s, O[batch][head]%s[d]:\n", check->wrong == 1 ? "differs" : "differ",
          problem->shape.queries > 1 ? "[query]" : "");
  for (int i = 0; i < check->difference_count; i++) {
    const Difference *difference = &check->differences[i];
    fprintf(out, "          ");
    print_query_place(out, problem, difference->index);
    report_difference(out, difference);
  }
  report_more(out, check->wrong - (uint64_t)check->difference_count);
}

static void report_wrong_decode(FILE *out, const DecodeProblem *problem, const DecodeCheck *check) {
  char wrong[32], compared[32];
  fprintf(out, "WRONG: %s of %s elements%s %s from the fp64 reference", format_count(wrong, check->wrong),
          format_count(compared, check->compared), problem->lse ? " of O" : "",
          check->wrong == 1 ? "differs" : "differ");
  if (check->max_error != 0) fprintf(out, ", max error %.2g", check->max_error);
  fprintf(out, "\n");
  if (check->not_finite) {
    fprintf(out, "          %s of %s %s NaN or infinite (never written?), the first is ",
            format_count(wrong, check->not_finite), format_count(compared, decode_query_elements(&problem->shape)),
            check->not_finite == 1 ? "is" : "are");
    print_query_place(out, problem, check->first_not_finite);
    fprintf(out, "\n");
  }
  if (check->wrong) print_wrong_queries(out, problem, check);
}

static void report_lse(FILE *out, const DecodeProblem *problem, const DecodeLseCheck *check) {
  char wrong[32], compared[32];
  format_count(compared, check->compared);
  if (lse_is_right(check)) {
    fprintf(out, "lse       right: %s elements, max error %.2g, the worst element at %.0f %% of its limit\n", compared,
            check->max_error, 100 * check->worst);
    return;
  }
  fprintf(out, "lse       WRONG: %s of %s elements %s from the fp64 reference", format_count(wrong, check->wrong),
          compared, check->wrong == 1 ? "differs" : "differ");
  if (check->never_written) fprintf(out, "; NaN (never written?): %s", format_count(wrong, check->never_written));
  fprintf(out, "\n");
  if (check->wrong == 0) return;
  fprintf(out, "          the first is ");
  print_row_place(out, problem, "lse", check->first.index);
  fprintf(out, ": got %.6g, expected %.6g (limit %.2g)\n", check->first.got, check->first.expected, check->first.limit);
}

static void report_o(FILE *out, const DecodeProblem *problem, const DecodeCheck *check) {
  char compared[32];
  int heads = problem->shape.batch * problem->shape.kv_heads;
  fprintf(out, "result    ");
  if (!o_is_right(check)) return report_wrong_decode(out, problem, check);
  fprintf(out, "right: %s%s elements%s", check->heads == heads ? "all " : "", format_count(compared, check->compared),
          problem->lse ? " of O" : "");
  if (check->heads != heads) fprintf(out, " (of %d key heads)", check->heads);
  fprintf(out, ", max error %.2g, the worst element at %.0f %% of its limit\n", check->max_error, 100 * check->worst);
  uint32_t checksum = fnv1a_32(FNV1A_32_START, problem->o, sizeof(Bf16) * decode_query_elements(&problem->shape));
  fprintf(out, "accuracy  the kernel is off by %.2f %%; checksum of O %08" PRIx32 "\n",
          100 * check_relative_error(&check->squares), checksum);
}

void decode_report_check(FILE *out, const DecodeProblem *problem, const DecodeCheck *check) {
  report_o(out, problem, check);
  if (problem->lse) report_lse(out, problem, &check->lse);
}
