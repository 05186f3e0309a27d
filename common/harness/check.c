// Compares what the device computed with the reference.
#include <pthread.h>
#include <stdlib.h>

#include "harness.h"

enum { MAX_HEAD_DIM = 128, EDGE = 16 };

// Rows are sampled when their scores would take more multiply-adds than this, which take one core about two seconds.
static const double WORK_LIMIT = 0x1p29;

typedef struct Check {
  const Problem *problem;
  uint64_t seed;
  CheckResult *result;
  pthread_mutex_t mutex;
  bool out_of_memory;
} Check;

static int rows_per_head(const Problem *problem) {
  const Shape *shape = &problem->shape;
  double row = (double)shape->seqlen * shape->head_dim, rows = WORK_LIMIT / row / (double)problem->heads;
  if (rows >= shape->seqlen) return shape->seqlen;
  int least = shape->seqlen < 4 ? shape->seqlen : 4;
  return rows > least ? (int)rows : least;
}

static int compare_rows(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

void check_choose_rows(int *rows, int count, int size, uint64_t seed) {
  for (int i = 0; i < count; i++) {
    if (count == size)
      rows[i] = i;
    else if (i == 0)
      rows[i] = 0;
    else if (i == 1)
      rows[i] = size - 1;
    else if (i % 4 == 3)
      rows[i] = (int)(random_bits(&seed) % (uint64_t)size);
    else
      rows[i] = (int)(random_bits(&seed) % (uint64_t)(size / EDGE + 1)) * EDGE - i % 2;
    if (rows[i] < 0) rows[i] = 0;
    if (rows[i] >= size) rows[i] = size - 1;
  }
  qsort(rows, (size_t)count, sizeof *rows, compare_rows);
}

// ---- one row ----

int check_columns(const Problem *problem, OutputTensor output) {
  return output == OUTPUT_LSE ? 1 : problem->shape.head_dim;
}

static double got(const Problem *problem, OutputTensor output, size_t index) {
  const Half *const tensors[OUTPUTS] = {problem->o, NULL, problem->d_q, problem->d_k, problem->d_v};
  return output == OUTPUT_LSE ? problem->lse[index] : half_to_float(tensors[output][index]);
}

// Whether the element has the bits that attention.c fills an output with. A calculation gives another NaN, 0x7fff.
static bool is_unwritten(const Problem *problem, OutputTensor output, size_t index) {
  const Half *const tensors[OUTPUTS] = {problem->o, NULL, problem->d_q, problem->d_k, problem->d_v};
  uint32_t bits = 0xffffffff;
  if (output == OUTPUT_LSE)
    memcpy(&bits, problem->lse + index, sizeof bits);
  else
    bits = 0xffff0000u | tensors[output][index];
  return bits == 0xffffffff;
}

// What the row should be, and its limit.
static double expect_row(ReferenceHead *head, OutputTensor output, int row, double *out) {
  if (output == OUTPUT_O) return reference_row(head, row, out);
  if (output == OUTPUT_LSE) return reference_lse(head, row, out);
  return reference_gradient(head, output, row, out);
}

static void add_difference(CheckResult *result, const Difference *difference) {
  result->wrong++;
  if (result->difference_count < MAX_DIFFERENCES) result->differences[result->difference_count++] = *difference;
}

static void add_squares(Squares *squares, double got, double expected) {
  squares->difference += (got - expected) * (got - expected);
  squares->reference += expected * expected;
}

double check_relative_error(const Squares *squares) { return sqrt(squares->difference / squares->reference); }

// Every comparison with NaN is false. So the test is whether the error is within the limit, not whether it exceeds it.
static void compare_row(const Problem *problem, size_t first, const double *expected, double limit,
                        CheckResult *result) {
  for (int d = 0; d < check_columns(problem, result->output); d++) {
    double value = got(problem, result->output, first + d), error = fabs(value - expected[d]);
    result->compared++;
    add_squares(&result->kernel, value, expected[d]);
    if (!(error <= limit)) add_difference(result, &(Difference){first + d, value, expected[d], limit});
    result->max_error = larger(result->max_error, error);
    result->worst = larger(result->worst, error / limit);
  }
}

static void count_not_finite(const Problem *problem, size_t first, size_t count, CheckResult *result) {
  for (size_t i = first; i < first + count; i++) {
    if (isfinite(got(problem, result->output, i))) continue;
    if (result->not_finite++ == 0) result->first_not_finite = i;
    if (is_unwritten(problem, result->output, i)) result->unwritten++;
  }
}

// ---- one head, then all of them ----

static int compare_differences(const void *a, const void *b) {
  const Difference *left = a, *right = b;
  return (left->index > right->index) - (left->index < right->index);
}

static void add_sums(Squares *to, const Squares *from) {
  to->difference += from->difference;
  to->reference += from->reference;
}

// Heads finish in any order. Of their differences those that come first in the tensor are kept.
static void merge(CheckResult *all, const CheckResult *head) {
  Difference both[2 * MAX_DIFFERENCES];
  int count = all->difference_count + head->difference_count;
  memcpy(both, all->differences, (size_t)all->difference_count * sizeof *both);
  memcpy(both + all->difference_count, head->differences, (size_t)head->difference_count * sizeof *both);
  qsort(both, (size_t)count, sizeof *both, compare_differences);
  all->difference_count = count < MAX_DIFFERENCES ? count : MAX_DIFFERENCES;
  memcpy(all->differences, both, (size_t)all->difference_count * sizeof *both);

  if (head->not_finite && (!all->not_finite || head->first_not_finite < all->first_not_finite))
    all->first_not_finite = head->first_not_finite;
  all->not_finite += head->not_finite;
  all->unwritten += head->unwritten;
  all->compared += head->compared;
  all->wrong += head->wrong;
  all->max_error = larger(all->max_error, head->max_error);
  all->worst = larger(all->worst, head->worst);
  add_sums(&all->kernel, &head->kernel);
  add_sums(&all->quantisation, &head->quantisation);
}

// A head with the inputs that the kernel reads and, if that is not fp16, with the fp16 inputs.
typedef struct Heads {
  ReferenceHead own, f16;
} Heads;

static bool open_heads(Heads *heads, const Problem *problem, size_t index) {
  *heads = (Heads){0};
  if (!reference_open(&heads->own, problem, index)) return false;
  if (problem->inputs == INPUTS_F16 || reference_open_f16(&heads->f16, problem, index)) return true;
  reference_close(&heads->own);
  return false;
}

static void close_heads(Heads *heads) {
  reference_close(&heads->own);
  reference_close(&heads->f16);
}

static void check_output_row(const Problem *problem, size_t index, Heads *heads, int row, CheckResult *result) {
  int columns = check_columns(problem, result->output);
  double expected[MAX_HEAD_DIM], exact[MAX_HEAD_DIM];
  double limit = expect_row(&heads->own, result->output, row, expected);
  compare_row(problem, (index * (size_t)problem->shape.seqlen + (size_t)row) * (size_t)columns, expected, limit,
              result);
  if (problem->inputs == INPUTS_F16) return;
  reference_row(&heads->f16, row, exact);
  for (int d = 0; d < columns; d++) add_squares(&result->quantisation, expected[d], exact[d]);
}

static bool check_rows(const Check *check, size_t index, CheckResult *result) {
  const Problem *problem = check->problem;
  size_t head_size = (size_t)problem->shape.seqlen * check_columns(problem, result->output);
  int count = check->result->rows_per_head;
  Heads heads;
  int *rows = malloc((size_t)count * sizeof *rows);
  if (!rows || !open_heads(&heads, problem, index)) {
    free(rows);
    return false;
  }
  check_choose_rows(rows, count, problem->shape.seqlen, check->seed + index);  // each head has its own
  for (int i = 0; i < count; i++) {
    if (i > 0 && rows[i] == rows[i - 1]) continue;
    check_output_row(problem, index, &heads, rows[i], result);
    progress_add(1);
  }
  count_not_finite(problem, index * head_size, head_size, result);
  close_heads(&heads);
  free(rows);
  return true;
}

static void check_head(void *context, size_t index) {
  Check *check = context;
  CheckResult result = {.output = check->result->output};
  bool done = check_rows(check, index, &result);
  pthread_mutex_lock(&check->mutex);
  if (done)
    merge(check->result, &result);
  else
    check->out_of_memory = true;
  pthread_mutex_unlock(&check->mutex);
}

bool check_output(const Problem *problem, OutputTensor output, uint64_t seed, CheckResult *result) {
  int rows = rows_per_head(problem);
  *result = (CheckResult){.output = output, .complete = rows == problem->shape.seqlen, .rows_per_head = rows};
  Check check = {.problem = problem, .seed = seed, .result = result, .mutex = PTHREAD_MUTEX_INITIALIZER};
  progress_begin("reference on the CPU", problem->heads * (uint64_t)rows);
  parallel_for(problem->heads, check_head, &check);
  progress_end();
  return !check.out_of_memory;
}

bool check_fits_window(const Problem *problem, const CheckResult *result, int window) {
  size_t columns = (size_t)check_columns(problem, result->output), first = result->differences[0].index / columns;
  size_t seqlen = (size_t)problem->shape.seqlen;
  double expected[MAX_HEAD_DIM];
  ReferenceHead head;
  CheckResult row = {.output = result->output};
  if (!reference_open(&head, problem, first / seqlen)) return false;
  head.window = window;
  double limit = expect_row(&head, result->output, (int)(first % seqlen), expected);
  compare_row(problem, first * columns, expected, limit, &row);
  reference_close(&head);
  return row.wrong == 0;
}

bool check_is_right(const CheckResult *result) {
  return result->compared > 0 && result->wrong == 0 && result->not_finite == 0;
}

int check_problem(const Problem *problem, uint64_t seed, CheckResult results[OUTPUTS]) {
  int count = problem->d_o ? OUTPUTS : problem->lse ? OUTPUT_LSE + 1 : 1;
  for (int i = 0; i < count; i++) {
    if (!check_output(problem, i, seed, &results[i])) return 0;
    if (i == OUTPUT_LSE && !check_all_right(results, i + 1)) return i + 1;
  }
  return count;
}

bool check_all_right(const CheckResult *results, int count) {
  for (int i = 0; i < count; i++)
    if (!check_is_right(&results[i])) return false;
  return true;
}
