// A matrix product's inputs, what C should be, and how far from it a right kernel may be.
//
// The limit of an element. The kernel adds up its terms in fp32, 16 at a time, and rounds the sum to fp16. A tensor
// core aligns the 16 products and the sum before to the largest of them, cuts each off 25 bits below, and cuts the
// result off after 24 bits (notes/tensor-core-arithmetic.md). With `most`, no less than any product or sum on the way,
//
//   limit = steps * (17 * 2^-25 + 2^-23) * most  +  half a unit of the fp16 result's last place
//
// A right kernel may come close to it, because the last rounding alone may be half a unit. A kernel that leaves out one
// term, adds it twice, or keeps its sums in fp16 exceeds it.
#include <stdlib.h>

#include "harness.h"

const char gemm_input_kinds[] = "normal|ones|arange|identity|outliers|mean";

// ---- inputs ----

static double normal_number(uint64_t *state) {
  double pair[2];
  random_normal(state, pair);
  return pair[0];
}

typedef struct MatrixFilling {
  Half *matrix;
  int columns;
  bool is_a;
  InputKind input;
  uint64_t seed;
} MatrixFilling;

// normal:   mean 0, deviation 1.
// ones:     every element of C is k: it shows how many terms are left out or added twice.
// arange:   a pattern of 64 different numbers in which neighbours of a row or a column differ.
// identity: A[i][p] is 1 where p = i mod k, and 0 elsewhere; B is arange. So C[i][j] is B[j][i mod k], which shows what
//           has come to which place.
// outliers: normal, but one element of a thousand is about ten times as large.
// mean:     normal with mean 1. The sums grow, and what an accumulator cuts off adds up.
static double element(const MatrixFilling *filling, size_t row, int column, uint64_t *state) {
  switch (filling->input) {
  case INPUT_ONES: return 1;
  case INPUT_OUTLIERS: return normal_number(state) + (random_uniform(state) <= 0.001 ? 10 * normal_number(state) : 0);
  case INPUT_MEAN: return normal_number(state) + 1;
  case INPUT_IDENTITY:
    if (filling->is_a) return row % (size_t)filling->columns == (size_t)column;
    // fall through
  case INPUT_ARANGE: return ((double)((row * 29 + (size_t)column * 7) % 64) - 31.5) / 16;
  default: return normal_number(state);
  }
}

// Each row has its own random stream, so the result does not depend on the threads' order.
static void fill_row(void *context, size_t row) {
  const MatrixFilling *filling = context;
  uint64_t state = filling->seed;
  state = random_bits(&state) + 2 * row + filling->is_a;
  state = random_bits(&state);
  for (int column = 0; column < filling->columns; column++)
    filling->matrix[row * (size_t)filling->columns + (size_t)column] =
        half_from_double(element(filling, row, column, &state));
}

bool gemm_problem_create(GemmProblem *problem, int m, int n, int k, InputKind input, uint64_t seed) {
  *problem = (GemmProblem){.m = m, .n = n, .k = k};
  problem->a = malloc(sizeof(Half) * (size_t)m * (size_t)k);
  problem->b = malloc(sizeof(Half) * (size_t)n * (size_t)k);
  problem->c = malloc(sizeof(Half) * (size_t)m * (size_t)n);
  if (!problem->a || !problem->b || !problem->c) {
    gemm_problem_free(problem);
    return false;
  }
  progress_begin("making inputs", 0);
  parallel_for((size_t)m, fill_row, &(MatrixFilling){problem->a, k, true, input, seed});
  parallel_for((size_t)n, fill_row, &(MatrixFilling){problem->b, k, false, input, seed});
  progress_end();
  return true;
}

void gemm_problem_free(GemmProblem *problem) {
  free(problem->a);
  free(problem->b);
  free(problem->c);
  *problem = (GemmProblem){0};
}

// ---- the reference ----

enum { STEP = 16 };  // terms that a tensor core adds at a time

// Chosen rows of a matrix, widened to double (exactly), with zeros up to a multiple of STEP.
typedef struct ChosenRows {
  int count, columns;
  int *number;      // of each row; sorted
  double *values;   // [count][columns]
  double *largest;  // magnitude in each row
} ChosenRows;

static void free_chosen(ChosenRows *chosen) {
  free(chosen->number);
  free(chosen->values);
  free(chosen->largest);
}

static bool choose(ChosenRows *chosen, int count, const Half *matrix, int rows, int columns, uint64_t seed) {
  int padded = (columns + STEP - 1) / STEP * STEP;
  *chosen = (ChosenRows){
      .count = count,
      .columns = padded,
      .number = malloc((size_t)count * sizeof(int)),
      .values = calloc((size_t)count * (size_t)padded, sizeof(double)),
      .largest = calloc((size_t)count, sizeof(double)),
  };
  if (!chosen->number || !chosen->values || !chosen->largest) return false;
  check_choose_rows(chosen->number, count, rows, seed);
  for (int i = 0; i < count; i++)
    for (int column = 0; column < columns; column++) {
      double value = half_to_float(matrix[(size_t)chosen->number[i] * (size_t)columns + (size_t)column]);
      chosen->values[(size_t)i * (size_t)padded + (size_t)column] = value;
      chosen->largest[i] = larger(chosen->largest[i], fabs(value));
    }
  return true;
}

// Half a unit of the last place of x in fp16, whose smallest number is 2^-24.
static double half_unit(double x) {
  int exponent;
  frexp(x, &exponent);  // x < 2^exponent
  return x == 0 || exponent < -13 ? 0x1p-25 : ldexp(1, exponent - 12);
}

// One element of C in fp64, from a row of A and one of B; and its limit.
static double exact_element(const ChosenRows *a, int i, const ChosenRows *b, int j, double *limit) {
  const double *left = a->values + (size_t)i * (size_t)a->columns, *right = b->values + (size_t)j * (size_t)b->columns;
  double sum = 0, most = a->largest[i] * b->largest[j];
  for (int p = 0; p < a->columns; p += STEP) {
    sum += reference_dot(left + p, right + p, STEP);
    most = larger(most, fabs(sum));
  }
  double cut_off = a->columns / STEP * (17 * 0x1p-25 + 0x1p-23) * most;
  *limit = cut_off + half_unit(fabs(sum) + cut_off);
  return sum;
}

// ---- the check ----

// Elements are chosen when all would take more multiply-adds than this.
static const double GEMM_WORK_LIMIT = 0x1p29;

typedef struct GemmChecking {
  const GemmProblem *problem;
  ChosenRows a, b;  // rows of A are rows of C, rows of B are columns of C
  GemmCheck *rows;  // of each chosen row of C
} GemmChecking;

static void check_row_of_c(void *context, size_t i) {
  const GemmChecking *checking = context;
  const GemmProblem *problem = checking->problem;
  GemmCheck *check = &checking->rows[i];
  int row = checking->a.number[i];
  if (i > 0 && row == checking->a.number[i - 1]) return;
  for (int j = 0; j < checking->b.count; j++) {
    if (j > 0 && checking->b.number[j] == checking->b.number[j - 1]) continue;
    size_t index = (size_t)row * (size_t)problem->n + (size_t)checking->b.number[j];
    double limit, expected = exact_element(&checking->a, (int)i, &checking->b, j, &limit);
    double got = half_to_float(problem->c[index]), error = fabs(got - expected);
    check->compared++;
    check->max_error = larger(check->max_error, error);
    check->worst = larger(check->worst, error / limit);
    if (error <= limit) continue;  // false for NaN
    check->wrong++;
    if (check->difference_count < MAX_DIFFERENCES)
      check->differences[check->difference_count++] = (Difference){index, got, expected, limit};
  }
  progress_add(1);
}

// Rows are added in order, so the differences that stay are the first ones.
static void add_row_of_c(GemmCheck *all, const GemmCheck *row) {
  all->compared += row->compared;
  all->wrong += row->wrong;
  all->max_error = larger(all->max_error, row->max_error);
  all->worst = larger(all->worst, row->worst);
  for (int i = 0; i < row->difference_count && all->difference_count < MAX_DIFFERENCES; i++)
    all->differences[all->difference_count++] = row->differences[i];
}

// How many rows and columns to compare: all of both, or about as many of each.
static void choose_counts(const GemmProblem *problem, GemmCheck *check) {
  double elements = GEMM_WORK_LIMIT / problem->k;
  check->rows = problem->m;
  check->columns = problem->n;
  if ((double)problem->m * problem->n <= elements) return;
  int side = (int)sqrt(elements);
  if (problem->m <= side)
    check->columns = (int)(elements / problem->m);
  else if (problem->n <= side)
    check->rows = (int)(elements / problem->n);
  else
    check->rows = check->columns = side;
}

bool gemm_check(const GemmProblem *problem, uint64_t seed, GemmCheck *check) {
  *check = (GemmCheck){0};
  choose_counts(problem, check);
  GemmChecking checking = {.problem = problem, .rows = calloc((size_t)check->rows, sizeof(GemmCheck))};
  bool done = choose(&checking.a, check->rows, problem->a, problem->m, problem->k, seed);
  done = choose(&checking.b, check->columns, problem->b, problem->n, problem->k, seed + 1) && done && checking.rows;
  if (done) {
    progress_begin("reference on the CPU", (uint64_t)check->rows);
    parallel_for((size_t)check->rows, check_row_of_c, &checking);
    progress_end();
    for (int i = 0; i < check->rows; i++) add_row_of_c(check, &checking.rows[i]);
    for (size_t i = 0; i < (size_t)problem->m * (size_t)problem->n; i++)
      if (!half_is_finite(problem->c[i]) && check->not_finite++ == 0) check->first_not_finite = i;
  }
  free(checking.rows);
  free_chosen(&checking.a);
  free_chosen(&checking.b);
  return done;
}

bool gemm_check_is_right(const GemmCheck *check) {
  return check->compared > 0 && check->wrong == 0 && check->not_finite == 0;
}

// ---- what it prints ----

static void print_element(FILE *out, const GemmProblem *problem, size_t index) {
  fprintf(out, "C[%zu][%zu]", index / (size_t)problem->n, index % (size_t)problem->n);
}

static void print_wrong_elements(FILE *out, const GemmProblem *problem, const GemmCheck *check) {
  fprintf(out, "          the first that %s, C[row][column]:\n", check->wrong == 1 ? "differs" : "differ");
  for (int i = 0; i < check->difference_count; i++) {
    const Difference *difference = &check->differences[i];
    fprintf(out, "          ");
    print_element(out, problem, difference->index);
    report_difference(out, difference);
  }
  report_more(out, check->wrong - (uint64_t)check->difference_count);
}

static void report_wrong_product(FILE *out, const GemmProblem *problem, const GemmCheck *check) {
  char wrong[32], compared[32];
  fprintf(out, "WRONG: %s of %s elements %s from the fp64 reference", format_count(wrong, check->wrong),
          format_count(compared, check->compared), check->wrong == 1 ? "differs" : "differ");
  if (check->max_error != 0) fprintf(out, ", max error %.2g", check->max_error);
  fprintf(out, "\n");
  if (check->not_finite) {
    fprintf(out, "          %s of %s %s NaN or infinite (never written?), the first is ",
            format_count(wrong, check->not_finite), format_count(compared, (uint64_t)problem->m * (uint64_t)problem->n),
            check->not_finite == 1 ? "is" : "are");
    print_element(out, problem, check->first_not_finite);
    fprintf(out, "\n");
  }
  if (check->wrong) print_wrong_elements(out, problem, check);
}

void gemm_report_check(FILE *out, const GemmProblem *problem, const GemmCheck *check) {
  char compared[32];
  bool all = check->rows == problem->m && check->columns == problem->n;
  fprintf(out, "result    ");
  if (!gemm_check_is_right(check)) return report_wrong_product(out, problem, check);
  fprintf(out, "right: %s%s elements", all ? "all " : "", format_count(compared, check->compared));
  if (!all) fprintf(out, " (in %d rows and %d columns)", check->rows, check->columns);
  fprintf(out, ", max error %.2g, the worst element at %.0f %% of its limit\n", check->max_error, 100 * check->worst);
}
