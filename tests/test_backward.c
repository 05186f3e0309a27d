// The harness's part of the backward pass: the fp64 gradients against finite differences of the fp64 forward pass, the
// limit against kernels that are right and kernels that are nearly right, and what the report says.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "harness/harness.h"
#include "support/exact_forward.h"
#include "support/sanitized.h"

TestSuite(backward);

enum { DIM = 64 };

// A problem with O and the log-sum-exp as an exact forward pass leaves them.
static Problem make_problem(Shape shape, InputKind input, uint64_t seed) {
  Problem problem;
  cr_assert(problem_create(&problem, &shape, input, seed) && problem_add_gradients(&problem, input, seed));
  exact_forward(&problem);
  return problem;
}

// ---- inputs ----

// dO has a random stream of its own, and the other tensors are those of the forward pass.
Test(backward, d_o_is_an_input_of_its_own) {
  Shape shape = {.batch = 2, .heads = 2, .seqlen = 50, .head_dim = 64};
  Problem a = make_problem(shape, INPUT_NORMAL, 7), b = make_problem(shape, INPUT_NORMAL, 7), forward;
  Problem large = make_problem(shape, INPUT_EXPLODE, 7);
  cr_assert(problem_create(&forward, &shape, INPUT_NORMAL, 7));
  size_t size = a.elements * sizeof(Half);
  cr_expect(!memcmp(a.d_o, b.d_o, size), "the same seed, another dO");
  cr_expect(!memcmp(a.q, forward.q, size) && !memcmp(a.v, forward.v, size), "other inputs than the forward pass has");
  cr_expect(memcmp(a.d_o, a.q, size) && memcmp(a.d_o, a.k, size) && memcmp(a.d_o, a.v, size),
            "dO is like another tensor");
  int wrong = 0;
  for (size_t i = 0; i < a.elements; i++)
    wrong += fabs(half_to_float(large.d_o[i]) - 1024 * (double)half_to_float(a.d_o[i])) > 1;
  cr_expect_eq(wrong, 0, "explode: %d elements of dO are not 1024 times as large", wrong);
  Problem *all[] = {&a, &b, &large, &forward};
  for (int i = 0; i < 4; i++) problem_free(all[i]);
}

// vanish: dQ is nearly 0 in most rows, though the keys are about 32.
Test(backward, vanish_leaves_no_gradient) {
  Problem problem = make_problem((Shape){1, 1, 200, DIM, false}, INPUT_VANISH, 1);
  ReferenceHead head;
  double row[DIM];
  int vanished = 0;
  cr_assert(reference_open(&head, &problem, 0));
  for (int i = 0; i < 200; i++) {
    reference_gradient(&head, OUTPUT_D_Q, i, row);
    double largest = 0;
    for (int d = 0; d < DIM; d++) largest = larger(largest, fabs(row[d]));
    vanished += largest < 1e-3;
  }
  cr_expect(vanished > 150, "dQ has %d rows of 200 that are nearly 0", vanished);
  reference_close(&head);
  problem_free(&problem);
}

// ---- finite differences ----

// The sum over all outputs of dO O: its derivatives by Q, K and V are the gradients.
static double loss(ReferenceHead *head) {
  double sum = 0, o[DIM];
  for (int row = 0; row < head->seqlen; row++) {
    reference_row(head, row, o);
    for (int d = 0; d < DIM; d++) sum += o[d] * head->d_o[row * DIM + d];
  }
  return sum;
}

static double difference_quotient(ReferenceHead *head, double *element) {
  double value = *element, step = 0x1p-8;
  *element = value + step;
  double above = loss(head), distance = *element;
  *element = value - step;
  double below = loss(head);
  distance -= *element;
  *element = value;
  return (above - below) / distance;
}

// O and the log-sum-exp as fp64 has them, not rounded to fp16.
static void make_exact(ReferenceHead *head) {
  double o[DIM];
  for (int row = 0; row < head->seqlen; row++) {
    ReferenceQuery *query = &head->queries[row];
    reference_row(head, row, o);
    reference_lse(head, row, &query->lse);
    query->delta = 0;
    for (int d = 0; d < DIM; d++) query->delta += o[d] * head->d_o[row * DIM + d];
  }
}

Test(backward, gradients_are_finite_differences) {
  enum { ROWS = 9 };
  for (int causal = 0; causal < 2; causal++) {
    Problem problem = make_problem((Shape){1, 1, ROWS, DIM, causal}, INPUT_NORMAL, 3);
    ReferenceHead head;
    cr_assert(reference_open(&head, &problem, 0));
    make_exact(&head);
    double *tensors[] = {head.q, head.k, head.v};
    for (int i = 0; i < 3; i++)
      for (int row = 0; row < ROWS; row++) {
        double gradient[DIM];
        reference_gradient(&head, OUTPUT_D_Q + i, row, gradient);
        for (int d = 0; d < DIM; d += 7) {
          double quotient = difference_quotient(&head, tensors[i] + row * DIM + d);
          cr_expect_float_eq(gradient[d], quotient, 1e-5, "tensor %d, row %d, d %d, causal %d: %.9g, not %.9g", i, row,
                             d, causal, gradient[d], quotient);
        }
      }
    reference_close(&head);
    problem_free(&problem);
  }
}

// Scores 0 and 1, as 8 * 1 / sqrt(64).
Test(backward, log_sum_exp_by_hand) {
  Problem problem = make_problem((Shape){.batch = 1, .heads = 1, .seqlen = 2, .head_dim = 64}, INPUT_NORMAL, 1);
  memset(problem.q, 0, problem.elements * sizeof(Half));
  memset(problem.k, 0, problem.elements * sizeof(Half));
  problem.q[5] = half_from_double(8);
  problem.k[64 + 5] = half_from_double(1);
  ReferenceHead head;
  double lse;
  cr_assert(reference_open(&head, &problem, 0));
  reference_lse(&head, 0, &lse);
  cr_expect_float_eq(lse, log(1 + exp(1.0)), 1e-15, "%.17g", lse);
  reference_lse(&head, 1, &lse);
  cr_expect_float_eq(lse, log(2.0), 1e-15, "%.17g", lse);
  reference_close(&head);
  problem_free(&problem);
}

// ---- the limit: kernels as one would write them, in fp32 with P and dS in fp16 ----

// A mistake that a kernel may have.
typedef enum Mistake {
  NO_MISTAKE,
  NO_DELTA,         // dS = P dP
  NO_SCALE,         // dQ and dK are not multiplied by the scale
  SCALE_OFF,        // the scores' scale is 1 % too large
  NO_MASK,          // P is computed again without the mask
  MASK_OFF_BY_ONE,  // a causal query sees one key too many
  TILE_MISSING,     // 64 keys are left out
  QUERY_MISSING,    // the last query adds nothing to dK and dV
  TRANSPOSED,       // dQ and dK are computed with dS^T for dS
  HALF_SUMS,        // the gradients are kept in fp16
} Mistake;

// One head: its inputs, widened, its matrices, [query][key], and its gradients, as an fp32 kernel has them.
typedef struct Model {
  const Problem *problem;
  size_t head;
  Mistake mistake;
  float *q, *k, *v, *o, *d_o;
  float *p, *ds;
} Model;

static float *widen(const Model *model, const Half *tensor) {
  size_t count = (size_t)model->problem->shape.seqlen * DIM;
  float *wide = malloc(count * sizeof *wide);
  cr_assert(wide);
  for (size_t i = 0; i < count; i++) wide[i] = half_to_float(tensor[model->head * count + i]);
  return wide;
}

static void open_model(Model *model) {
  const Problem *problem = model->problem;
  model->q = widen(model, problem->q);
  model->k = widen(model, problem->k);
  model->v = widen(model, problem->v);
  model->o = widen(model, problem->o);
  model->d_o = widen(model, problem->d_o);
}

static void close_model(Model *model) {
  free(model->q);
  free(model->k);
  free(model->v);
  free(model->o);
  free(model->d_o);
}

static float dot(const float *a, int a_row, const float *b, int b_row) {
  enum { LANES = 8 };  // sums that do not wait for each other
  float sums[LANES] = {0}, sum = 0;
  for (int d = 0; d < DIM; d += LANES)
    for (int lane = 0; lane < LANES; lane++) sums[lane] += a[a_row * DIM + d + lane] * b[b_row * DIM + d + lane];
  for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
  return sum;
}

static bool is_hidden(const Model *model, int query, int key) {
  if (model->mistake == TILE_MISSING && key / 64 == 1) return true;
  if (model->mistake == NO_MASK || !model->problem->shape.causal) return false;
  return key > query + (model->mistake == MASK_OFF_BY_ONE);
}

static void compute_pair(const Model *model, int query, int key, float delta) {
  const Problem *problem = model->problem;
  int seqlen = problem->shape.seqlen;
  float scale = (float)problem_scale(&problem->shape) * (model->mistake == SCALE_OFF ? 1.01f : 1);
  float s = dot(model->q, query, model->k, key) * scale;
  float p = is_hidden(model, query, key) ? 0 : expf(s - problem->lse[model->head * seqlen + query]);
  float ds = p * (dot(model->d_o, query, model->v, key) - delta);
  model->p[query * seqlen + key] = (float)half_round(p);
  model->ds[query * seqlen + key] = (float)half_round(ds);
}

// Adds factor times a row to a row of sums.
static void add_row(const Model *model, float *restrict sums, float factor, const float *restrict tensor, int row) {
  for (int d = 0; d < DIM; d++) sums[d] += factor * tensor[row * DIM + d];
  for (int d = 0; d < DIM && model->mistake == HALF_SUMS; d++) sums[d] = (float)half_round(sums[d]);
}

static void store_row(const Model *model, Half *tensor, int row, const float *sums, float scale) {
  for (int d = 0; d < DIM; d++)
    tensor[(model->head * model->problem->shape.seqlen + row) * DIM + d] = half_from_double(sums[d] * scale);
}

static void compute_gradients(const Model *model, int row) {
  const Problem *problem = model->problem;
  int seqlen = problem->shape.seqlen, queries = model->mistake == QUERY_MISSING ? seqlen - 1 : seqlen;
  float scale = model->mistake == NO_SCALE ? 1 : (float)problem_scale(&problem->shape);
  float d_q[DIM] = {0}, d_k[DIM] = {0}, d_v[DIM] = {0};
  bool transposed = model->mistake == TRANSPOSED;
  for (int i = 0; i < seqlen; i++) {
    float own = model->ds[row * seqlen + i], other = model->ds[i * seqlen + row];
    add_row(model, d_q, transposed ? other : own, model->k, i);
    if (i >= queries) continue;
    add_row(model, d_k, transposed ? own : other, model->q, i);
    add_row(model, d_v, model->p[i * seqlen + row], model->d_o, i);
  }
  store_row(model, problem->d_q, row, d_q, scale);
  store_row(model, problem->d_k, row, d_k, scale);
  store_row(model, problem->d_v, row, d_v, 1);
}

static void run_model(const Problem *problem, Mistake mistake) {
  size_t seqlen = (size_t)problem->shape.seqlen, size = seqlen * seqlen * sizeof(float);
  Model model = {.problem = problem, .mistake = mistake, .p = malloc(size), .ds = malloc(size)};
  cr_assert(model.p && model.ds);
  for (; model.head < problem->heads; model.head++) {
    open_model(&model);
    for (int query = 0; query < (int)seqlen; query++) {
      float delta = mistake == NO_DELTA ? 0 : dot(model.d_o, query, model.o, query);
      for (int key = 0; key < (int)seqlen; key++) compute_pair(&model, query, key, delta);
    }
    for (int row = 0; row < (int)seqlen; row++) compute_gradients(&model, row);
    close_model(&model);
  }
  free(model.p);
  free(model.ds);
}

static void expect_right(Shape shape, InputKind input, uint64_t seed) {
  Problem problem = make_problem(shape, input, seed);
  CheckResult results[OUTPUTS];
  run_model(&problem, NO_MISTAKE);
  cr_assert_eq(check_problem(&problem, 1, results), OUTPUTS, "input %d: O or lse", input);
  for (int i = 0; i < OUTPUTS; i++)
    cr_expect(check_is_right(&results[i]) && results[i].worst < 0.5,
              "output %d of seqlen %d, input %d, causal %d, seed %d: %.2f of the limit", i, shape.seqlen, input,
              shape.causal, (int)seed, results[i].worst);
  problem_free(&problem);
}

Test(backward, limit_lets_a_right_kernel_pass) {
  static const int seqlens[] = {1, 2, 3, 17, 65, 200};
  for (size_t i = 0; i < sizeof seqlens / sizeof *seqlens; i++)
    for (InputKind input = INPUT_NORMAL; input <= INPUT_EXPLODE; input++)
      for (uint64_t seed = 1; seed <= (SANITIZED ? 1 : 4); seed++)
        expect_right((Shape){1, 2, seqlens[i], DIM, seed % 2}, input, seed);
}

// The gradients that each mistake must make wrong: a bit for each output.
Test(backward, limit_stops_nearly_right_kernels) {
  enum { Q = 1 << OUTPUT_D_Q, K = 1 << OUTPUT_D_K, V = 1 << OUTPUT_D_V };
  static const struct {
    Mistake mistake;
    const char *name;
    bool causal;
    int wrong;
  } cases[] = {
      {NO_DELTA, "no delta", false, Q | K},
      {NO_SCALE, "no scale", false, Q | K},
      {SCALE_OFF, "scale 1 % off", false, Q | K | V},
      {NO_MASK, "no mask", true, Q | K | V},
      {MASK_OFF_BY_ONE, "mask off by one", true, Q | K | V},
      {TILE_MISSING, "tile missing", false, Q | K | V},
      {QUERY_MISSING, "query missing", false, K | V},
      {TRANSPOSED, "dS transposed", false, Q | K},
      {HALF_SUMS, "sums in fp16", false, Q | K | V},
  };
  Problem problems[] = {make_problem((Shape){1, 1, 300, DIM, false}, INPUT_NORMAL, 1),
                        make_problem((Shape){1, 1, 300, DIM, true}, INPUT_NORMAL, 1)};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const Problem *problem = &problems[cases[i].causal];
    CheckResult results[OUTPUTS];
    run_model(problem, cases[i].mistake);
    cr_assert_eq(check_problem(problem, 1, results), OUTPUTS);
    for (int output = OUTPUT_D_Q; output < OUTPUTS; output++)
      cr_expect_eq(results[output].wrong > 0, cases[i].wrong >> output & 1, "%s, output %d: %.2f of the limit",
                   cases[i].name, output, results[output].worst);
  }
  for (int i = 0; i < 2; i++) problem_free(&problems[i]);
}

// dO so large that dV exceeds fp16, as the sum over queries of P = 1, 1/2, 1/3, ... times 60000: a kernel that stores
// fp16's largest number is wrong.
Test(backward, limit_stops_a_kernel_that_saturates) {
  Problem problem =
      make_problem((Shape){.batch = 1, .heads = 1, .seqlen = 20, .head_dim = DIM, .causal = true}, INPUT_ONES, 1);
  CheckResult result;
  for (size_t i = 0; i < problem.elements; i++) problem.d_o[i] = half_from_double(60000);
  run_model(&problem, NO_MISTAKE);
  cr_assert(check_output(&problem, OUTPUT_D_V, 1, &result));
  cr_expect(result.not_finite > 0 && result.not_finite < result.compared && result.wrong == result.not_finite,
            "%d infinite, %d wrong", (int)result.not_finite, (int)result.wrong);
  for (size_t i = 0; i < problem.elements; i++)
    if (!half_is_finite(problem.d_v[i])) problem.d_v[i] = half_from_double(65504);
  uint64_t infinite = result.not_finite;
  cr_assert(check_output(&problem, OUTPUT_D_V, 1, &result));
  cr_expect(result.not_finite == 0 && result.wrong == infinite, "%d wrong", (int)result.wrong);
  problem_free(&problem);
}

// Two queries have the weight 1/2 + 2^-12 of each key, in the middle between two fp16 numbers, and dO of 1 and -1: dV
// is 0. fp32 leaves a weight on either side of the middle, so a right kernel may round one of them up and one down.
Test(backward, limit_lets_weights_in_the_middle_round_either_way) {
  Problem problem = make_problem((Shape){.batch = 1, .heads = 1, .seqlen = 2, .head_dim = DIM}, INPUT_NORMAL, 1);
  CheckResult result;
  memset(problem.q, 0, problem.elements * sizeof(Half));
  for (int i = 0; i < 2; i++) {
    problem.lse[i] = (float)-log(0.5 + 0x1p-12);
    for (int d = 0; d < DIM; d++) problem.d_o[i * DIM + d] = half_from_double(i ? -1 : 1);
  }
  for (int steps = 1; steps <= 2; steps++) {
    for (size_t i = 0; i < problem.elements; i++) problem.d_v[i] = half_from_double(steps * 0x1p-11);
    cr_assert(check_output(&problem, OUTPUT_D_V, 1, &result));
    cr_expect_eq(result.wrong > 0, steps > 1, "%d steps of fp16: %.2f of the limit", steps, result.worst);
  }
  problem_free(&problem);
}

// ---- the comparison and the report ----

static char *report_of(const Problem *problem, int *count) {
  CheckResult results[OUTPUTS];
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  *count = check_problem(problem, 1, results);
  cr_assert(*count);
  report_check(out, problem, results, *count);
  fclose(out);
  return text;
}

static Problem right_problem(void) {
  Problem problem = make_problem((Shape){1, 2, 20, DIM, true}, INPUT_NORMAL, 1);
  run_model(&problem, NO_MISTAKE);
  return problem;
}

Test(backward, report_names_the_gradients) {
  int count;
  Problem problem = right_problem();
  char *text = report_of(&problem, &count);
  cr_expect_eq(count, OUTPUTS);
  cr_expect_eq(strncmp(text, "result    right: all 2,560 elements of dQ, max error ", 53), 0, "%s", text);
  cr_expect(strstr(text, "\n          right: all 2,560 elements of dK, ") && strstr(text, " of dV, "), "%s", text);
  cr_expect(!strstr(text, "lse"), "%s", text);
  free(text);
  problem_free(&problem);
}

// What is wrong is on the first line, where scripts look for it.
Test(backward, report_begins_with_what_is_wrong) {
  int count;
  Problem problem = right_problem();
  problem.d_v[20 * DIM + 3 * DIM + 7] = half_from_double(100);
  problem.d_v[7] = 0x7e00;
  char *text = report_of(&problem, &count);
  cr_expect_eq(strncmp(text, "result    WRONG: 2 of 2,560 elements of dV differ from ", 55), 0, "%s", text);
  cr_expect(strstr(text, "1 of 2,560 is NaN or infinite, the first is dV[0][0][0][7]\n"), "%s", text);
  cr_expect(strstr(text, "the first that differ, dV[batch][head][row][d]:\n"), "%s", text);
  cr_expect(strstr(text, "          dV[0][1][3][7]: got 100, expected "), "%s", text);
  cr_expect(strstr(text, "\n          right: all 2,560 elements of dQ, "), "%s", text);
  free(text);
  problem_free(&problem);
}

// Gradients that follow from a wrong O mean nothing.
Test(backward, gradients_are_not_compared_when_the_forward_pass_is_wrong) {
  int count;
  Problem problem = right_problem();
  problem.lse[25] += 0.01f;
  problem.d_q[0] = 0x7e00;
  char *text = report_of(&problem, &count);
  cr_expect_eq(count, OUTPUT_LSE + 1);
  cr_expect_eq(strncmp(text, "result    WRONG: 1 of 40 elements of lse differs ", 49), 0, "%s", text);
  cr_expect(strstr(text, "the first that differs, lse[batch][head][row]:\n          lse[0][1][5]: got "), "%s", text);
  cr_expect(!strstr(text, "dQ") && !strstr(text, "right"), "%s", text);
  free(text);
  problem_free(&problem);
}

Test(backward, five_products_are_counted) {
  Shape shape = {.batch = 2, .heads = 3, .seqlen = 100, .head_dim = 64};
  cr_expect_eq(problem_backward_flops(&shape), 5 * 2.0 * 6 * 100 * 100 * 64);
}
