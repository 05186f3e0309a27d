// Decode, stages 13 and up: right in every shape, split, input and schedule, and the same bits each time; what the
// harness refuses, and what its check finds.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "harness/harness.h"
#include "support/program.h"
#include "support/sanitized.h"

TestSuite(decode, .timeout = 300);
TestSuite(decode_check, .timeout = 60);
TestSuite(gpu_decode, .timeout = 300);

static const char *const decoders[] = {"stage-13", "stage-13b", "stage-13c"};
enum { DECODERS = sizeof decoders / sizeof *decoders, FIRST_WITH_SPLITS = 1 };

// Runs a problem and returns the checksum of its O. Stage 13g shares out the keys of each head, not all keys: what is
// --blocks to others is --splits to it.
static unsigned right_checksum(const char *stage, const char *options) {
  char line[300];
  unsigned checksum = 0;
  snprintf(line, sizeof line, "--device=emulator --strict %s", options);
  char *blocks = strcmp(stage, "stage-13g") ? NULL : strstr(line, "--blocks=");
  if (blocks) memcpy(blocks, "--splits=", strlen("--splits="));
  Output *output = run_line(stage, line);
  cr_expect_eq(output->code, 0, "%s %s: exit code %d\n%s%s", stage, line, output->code, output->out, output->err);
  cr_expect(strstr(output->out, "\nresult    right: all "), "%s %s:\n%s", stage, line, output->out);
  cr_expect(strstr(output->out, "\nhazards   none\n"), "%s %s:\n%s", stage, line, output->out);
  const char *at = strstr(output->out, "checksum of O ");
  cr_expect(at && sscanf(at, "checksum of O %x", &checksum) == 1, "%s %s:\n%s", stage, line, output->out);
  free(output);
  return checksum;
}

// Groups of 1 to 16; both sides of the edges of a tile, of a turn of all warps, and of the rings; several sequences.
static const char *const shapes[] = {
    "--keys=1 --heads=1 --kv-heads=1",
    "--keys=15 --heads=8 --kv-heads=1 --head-dim=128",
    "--keys=17 --heads=4 --kv-heads=4 --head-dim=128",
    "--keys=64 --heads=16 --kv-heads=1 --head-dim=128",
    "--keys=65 --heads=9 --kv-heads=1 --head-dim=128 --batch=2",
    "--keys=193 --heads=6 --kv-heads=2 --head-dim=128",
    "--keys=520 --heads=8 --kv-heads=2 --head-dim=128",
    "--keys=31 --heads=2 --kv-heads=2",
    "--keys=33 --heads=7 --kv-heads=1",
    "--keys=128 --heads=30 --kv-heads=2 --batch=2",
    "--keys=129 --heads=3 --kv-heads=3 --batch=3",
    "--keys=385 --heads=16 --kv-heads=1",
    "--keys=1001 --heads=8 --kv-heads=2",
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

Test(decode, is_right_in_every_shape) {
  char options[200];
  for (int i = 0; i < (SANITIZED ? 4 : SHAPES); i++)
    for (int d = 0; d < DECODERS; d++) {
      snprintf(options, sizeof options, "%s --schedule=%d", shapes[i], (i + d) % 4);
      right_checksum(decoders[d], options);
    }
}

// Also more parts than tiles, parts of one tile, and a last part that is shorter.
Test(decode, is_right_for_every_split) {
  static const int splits[] = {1, 2, 3, 5, 8, 11, 16};
  char options[200];
  for (int i = 0; i < (SANITIZED ? 3 : 7); i++)
    for (int d = FIRST_WITH_SPLITS; d < DECODERS; d++) {
      snprintf(options, sizeof options, "--keys=%d --heads=%d --kv-heads=1 --splits=%d --head-dim=%d --schedule=%d",
               100 + 77 * i, 1 + 2 * i, splits[i], i % 2 ? 64 : 128, i);
      right_checksum(decoders[d], options);
    }
  if (!SANITIZED) right_checksum("stage-13b", "--keys=3000 --heads=1 --kv-heads=1 --splits=91");
}

Test(decode, is_right_with_every_input) {
  static const char *const inputs[] = {"normal", "ones",     "arange", "large",    "identity", "waves",
                                       "cliff",  "outliers", "mean",   "negative", "vanish"};
  char options[200];
  for (int i = 0; i < (SANITIZED ? 2 : 11); i++)
    for (int d = 0; d < DECODERS; d++) {
      snprintf(options, sizeof options, "--input=%s --keys=%d --seed=%d%s", inputs[i], 300 + 37 * i, i,
               (i + d) % 2 ? " --head-dim=128" : "");
      right_checksum(decoders[d], options);
    }
}

// The order in which warps and blocks run must not show in the result. A kernel that combines parts in the order of
// their arrival would fail.
Test(decode, gives_the_same_bits_in_every_schedule) {
  char options[200];
  for (int d = 0; d < DECODERS; d++) {
    unsigned first = 0;
    for (int schedule = 0; schedule < (SANITIZED ? 2 : 6); schedule++) {
      snprintf(options, sizeof options, "--keys=777 --head-dim=128 --schedule=%d%s", schedule,
               d >= FIRST_WITH_SPLITS ? " --splits=6" : "");
      unsigned checksum = right_checksum(decoders[d], options);
      if (schedule == 0) first = checksum;
      cr_expect_eq(checksum, first, "%s %s", decoders[d], options);
    }
  }
}

// ---- lengths and pages ----

static const char *const paged[] = {"stage-13d", "stage-13e", "stage-13f", "stage-13g"};
enum { PAGED = sizeof paged / sizeof *paged };

// Lengths on both sides of the edges of pages and tiles, 0 and 1 among them; heads of one tile, many sequences in the
// share of a warp, and heads shared by many warps. Unused rows of pages, and pages that nobody has, are NaN.
static const char *const ragged_problems[] = {
    "--lengths=0",
    "--lengths=full --page=none --batch=2",
    "--lengths=1,0,15,16,17,0,31,32,33 --batch=9 --keys=40",
    "--lengths=63,64,65,0,127,1 --batch=6 --keys=130 --page=64 --head-dim=128",
    "--lengths=ragged --page=none --batch=5 --keys=200 --heads=9 --kv-heads=1",
    "--lengths=ragged --page=32 --batch=40 --keys=30 --heads=2 --kv-heads=2 --head-dim=128",
    "--lengths=0,700,0,3 --batch=4 --keys=700 --heads=16 --kv-heads=1 --blocks=3",
    "--lengths=ragged --batch=70 --keys=9 --heads=1 --kv-heads=1 --blocks=5 --page=256",
    "--lengths=1300 --keys=2000 --heads=6 --kv-heads=2 --blocks=9 --head-dim=128 --page=128",
    "--lengths=ragged --batch=3 --keys=900 --heads=3 --kv-heads=3 --blocks=1",
};
enum { RAGGED_PROBLEMS = sizeof ragged_problems / sizeof *ragged_problems };

Test(decode, is_right_for_every_length_and_page) {
  char options[300];
  for (int i = 0; i < (SANITIZED ? 4 : RAGGED_PROBLEMS); i++)
    for (int d = 0; d < PAGED; d++) {
      snprintf(options, sizeof options, "%s --schedule=%d --seed=%d", ragged_problems[i], (i + d) % 4, i);
      right_checksum(paged[d], options);
    }
}

Test(decode, is_right_with_every_input_and_ragged_lengths) {
  static const char *const inputs[] = {"normal", "ones",     "arange", "large",    "identity", "waves",
                                       "cliff",  "outliers", "mean",   "negative", "vanish"};
  char options[300];
  for (int i = 0; i < (SANITIZED ? 2 : 11); i++)
    for (int d = 0; d < PAGED; d++) {
      snprintf(options, sizeof options, "--input=%s --keys=%d --seed=%d --batch=2%s%s", inputs[i], 200 + 37 * i, i,
               (i + d) % 2 ? " --head-dim=128" : "", d == 1 && i % 3 ? " --scales=head" : "");
      right_checksum(paged[d], options);
    }
}

// For the same lengths there is one result, whatever the order of the warps and wherever the pages lie. (Stage 13g adds
// in another order where pages are smaller than its tiles, but only with two panels, a head_dim of 128.)
Test(decode, gives_the_same_bits_for_the_same_lengths) {
  static const char *const layouts[] = {"--page=16", "--page=64 --schedule=1", "--page=none --schedule=2",
                                        "--page=16 --schedule=3"};
  char options[300];
  for (int d = 0; d < PAGED; d++) {
    unsigned first = 0;
    for (int i = 0; i < (SANITIZED ? 2 : 4); i++) {
      snprintf(options, sizeof options, "--batch=4 --keys=300 --lengths=300,0,77,5 --blocks=3 %s", layouts[i]);
      unsigned checksum = right_checksum(paged[d], options);
      if (i == 0) first = checksum;
      cr_expect_eq(checksum, first, "%s %s", paged[d], options);
    }
  }
}

// 1 to 8 queries; 8, 16, 32 rows of a block, and several blocks for a key head's rows. Also fewer keys than queries,
// so that some queries see none.
Test(decode, is_right_for_several_queries) {
  static const char *const problems[] = {
      "--queries=1 --heads=16 --kv-heads=1",
      "--queries=2 --heads=4 --kv-heads=1 --head-dim=128",
      "--queries=3 --heads=5 --kv-heads=1 --page=none",
      "--queries=8 --heads=4 --kv-heads=1 --head-dim=128",
      "--queries=8 --heads=3 --kv-heads=1",
      "--queries=7 --heads=15 --kv-heads=1 --head-dim=128",
      "--queries=8 --heads=32 --kv-heads=2",
      "--queries=5 --heads=8 --kv-heads=8 --page=64",
  };
  char options[300];
  for (int i = 0; i < (SANITIZED ? 2 : 8); i++) {
    snprintf(options, sizeof options, "%s --batch=5 --keys=90 --lengths=90,3,0,1,%d --schedule=%d", problems[i],
             i % 2 ? 17 : 64, i);
    right_checksum("stage-13f", options);
    right_checksum("stage-13g", options);
  }
  // A worker begins with a tile of one key, which only the last query sees.
  right_checksum("stage-13f", "--batch=2 --heads=4 --kv-heads=1 --keys=225 --lengths=225,192 --blocks=1");
  right_checksum("stage-13g", "--batch=2 --heads=4 --kv-heads=1 --keys=385 --lengths=385,384 --blocks=2");
}

// Stage 13g with two panels: pages of every size, so boxes of 16, 32 and 64 keys; the bits are those of the order of
// keys, which a page of 64 or more does not change. Clusters of 1 to 16 blocks, also with more blocks than tiles.
Test(decode, is_right_across_pages_and_in_clusters_of_every_size) {
  static const char *const layouts[] = {"--page=16 --schedule=1", "--page=32", "--page=64", "--page=128 --schedule=2",
                                        "--page=none --schedule=3"};
  static const char *const parts[] = {
      "--keys=1500 --lengths=1500 --heads=3 --kv-heads=1 --blocks=16 --schedule=1",
      "--keys=1300 --lengths=1300,700 --batch=2 --heads=16 --kv-heads=1 --queries=8 --head-dim=128 --blocks=7",
      "--keys=200 --lengths=full --page=none --heads=4 --kv-heads=4 --batch=2 --blocks=1",
      "--keys=200 --lengths=full --page=none --heads=4 --kv-heads=4 --batch=2 --blocks=3 --schedule=2",
      "--keys=64 --lengths=full --page=none --heads=4 --kv-heads=4 --batch=2 --head-dim=128 --blocks=16",
  };
  char options[300];
  unsigned first = 0;
  for (int i = 0; i < (SANITIZED ? 2 : 5); i++) {
    snprintf(options, sizeof options, "--head-dim=128 --batch=4 --keys=300 --lengths=300,0,77,5 --blocks=3 %s",
             layouts[i]);
    unsigned checksum = right_checksum("stage-13g", options);
    if (i == 2) first = checksum;
    if (i >= 2) cr_expect_eq(checksum, first, "%s", options);
    right_checksum("stage-13g", parts[i]);
  }
}

// One query is what 13d computes, in the same order.
Test(decode, with_one_query_a_sequence_13f_gives_the_bits_of_13d) {
  static const char problem[] = "--batch=3 --keys=200 --lengths=200,0,31 --blocks=3";
  char options[200];
  snprintf(options, sizeof options, "%s --queries=1", problem);
  cr_expect_eq(right_checksum("stage-13d", problem), right_checksum("stage-13f", options));
}

// ---- clusters and pages: stage 22 ----

// Stage 22 with each of the problems, in the schedules one after the other.
static void right_in_schedules(const char *const *problems, int count, const char *shared) {
  char options[300];
  for (int i = 0; i < count; i++) {
    snprintf(options, sizeof options, "%s %s --schedule=%d --seed=%d", shared, problems[i], i % 4, i);
    right_checksum("stage-22", options);
  }
}

static void same_in_layouts(const char *const layouts[4], const char *problem) {
  char options[300];
  unsigned first = 0;
  for (int i = 0; i < (SANITIZED ? 2 : 4); i++) {
    snprintf(options, sizeof options, "%s %s", problem, layouts[i]);
    unsigned checksum = right_checksum("stage-22", options);
    if (i == 0) first = checksum;
    cr_expect_eq(checksum, first, "stage-22 %s", options);
  }
}

// Sequences with fewer tiles than their cluster has blocks, and empty ones; parts of a cluster that do not divide the
// columns evenly; the same bits wherever the pages lie and whatever the order of the warps.
Test(decode, is_right_for_clusters_and_pages) {
  static const char *const problems[] = {
      "--lengths=0 --splits=3",
      "--keys=1 --heads=1 --kv-heads=1 --splits=8",
      "--lengths=1,0,15,16,17,0,31,32,33 --batch=9 --keys=40 --splits=2",
      "--lengths=63,64,65,0,127,1 --batch=6 --keys=130 --page=64 --heads=6 --kv-heads=2 --splits=3",
      "--lengths=ragged --page=none --batch=3 --keys=200 --heads=9 --kv-heads=1 --splits=7",
      "--lengths=700,3 --batch=2 --keys=700 --heads=16 --kv-heads=1 --splits=5",
      "--lengths=1300 --keys=2000 --heads=6 --kv-heads=2 --splits=1 --page=128",
      "--lengths=full --keys=2300 --heads=1 --kv-heads=1 --splits=1 --page=32",
  };
  static const char *const layouts[] = {"--page=16", "--page=64 --schedule=1", "--page=none --schedule=2",
                                        "--page=16 --schedule=3"};
  right_in_schedules(problems, SANITIZED ? 3 : 8, "");
  same_in_layouts(layouts, "--batch=4 --keys=300 --lengths=300,0,77,5 --splits=6");
}

// Clusters of eight with at most a tile for each warp have a kernel of their own. Tiles that are not full, blocks and
// warps without keys, as many tiles as warps, and unused rows of NaN; the same bits wherever the pages lie.
Test(decode, is_right_for_few_keys) {
  static const char *const problems[] = {
      "--lengths=1,0,15,16,17,0,31,32,33 --batch=9 --keys=40",
      "--lengths=1024,1 --batch=2 --keys=1024 --heads=8 --kv-heads=1 --input=large",
      "--lengths=1023,513,1009 --batch=3 --keys=1024 --page=64 --heads=6 --kv-heads=2 --input=outliers",
      "--lengths=full --keys=1024 --page=none --heads=3 --kv-heads=3 --input=negative",
      "--lengths=full --keys=1000 --page=none --heads=10 --kv-heads=2 --input=vanish",
      "--lengths=0 --heads=5 --kv-heads=1",
  };
  static const char *const layouts[] = {"--page=16", "--page=128 --schedule=1", "--page=none --schedule=2",
                                        "--page=16 --schedule=3"};
  right_in_schedules(problems, SANITIZED ? 3 : 6, "--splits=8");
  same_in_layouts(layouts, "--batch=4 --keys=500 --lengths=500,0,77,5 --splits=8");
}

// The kernel that combines has more warps where a head has many parts, and some of them have none.
Test(decode, is_right_where_many_workers_share_a_head) {
  static const char *const problems[] = {
      "--keys=2000 --lengths=full --heads=3 --kv-heads=1 --blocks=5",
      "--keys=5000 --lengths=full --heads=2 --kv-heads=1 --blocks=20",
      "--keys=9000 --lengths=9000,40,0 --batch=3 --heads=1 --kv-heads=1 --blocks=66",
  };
  static const char *const stages[] = {"stage-13d", "stage-13e", "stage-13f"};
  for (int i = 0; i < (SANITIZED ? 2 : 3); i++)
    for (int s = 0; s < 3; s++) right_checksum(stages[s], problems[i]);
}

// ---- what the harness refuses ----

static void expect_refused(const char *stage, const char *options, const char *words) {
  Output *output = run_line(stage, options);
  cr_expect_eq(output->code, 2, "%s %s: exit code %d", stage, options, output->code);
  cr_expect(strstr(output->err, words), "%s %s: %s", stage, options, output->err);
  cr_expect_eq(strchr(output->err, '\n') + 1 - output->err, (long)strlen(output->err), "one line: %s", output->err);
  free(output);
}

Test(decode, refuses_what_makes_no_sense_in_one_line) {
  expect_refused("stage-13", "--heads=3 --kv-heads=2", "1 to 16 query heads share a key head");
  expect_refused("stage-13b", "--heads=34 --kv-heads=2", "1 to 16 query heads share a key head");
  expect_refused("stage-13", "--splits=2", "has one block for each head's keys");
  expect_refused("stage-13c", "--splits=0", "--splits=0: too small");
  expect_refused("stage-13", "--seqlen=64", "has one query a sequence");
  expect_refused("stage-13", "--causal", "has one query a sequence");
  expect_refused("stage-13", "--keys=0", "--keys=0: too small");
  expect_refused("stage-05", "--keys=64", "does not decode");
  expect_refused("stage-13b", "--lengths=3", "has sequences of one length");
  expect_refused("stage-13c", "--page=16", "has sequences of one length");
  expect_refused("stage-13d", "--splits=2", "shares all keys out");
  expect_refused("stage-13d", "--device=emulator --lengths=3,x", "full, ragged, or numbers from 0 to --keys");
  expect_refused("stage-13d", "--device=emulator --keys=7 --lengths=8", "full, ragged, or numbers from 0 to --keys");
  expect_refused("stage-13d", "--page=48", "one of 16|32|64|128|256|none is allowed");
  expect_refused("stage-13e", "--rotate", "does not rotate");
  expect_refused("stage-13e", "--queries=2", "has one query a sequence");
  expect_refused("stage-13f", "--queries=9", "1 to 8 are allowed");
  expect_refused("stage-13f", "--causal", "decodes");
  expect_refused("stage-22", "--head-dim=64", "has one head dimension");
  expect_refused("stage-22", "--blocks=2", "shares out the keys of each head");
  expect_refused("stage-22", "--queries=2", "has one query a sequence");
}

// ---- bf16 ----

// Every bf16 number stays itself, and halfway cases go to the even neighbour, also where a float would be halfway
// because it was rounded.
Test(decode_check, bf16_is_rounded_to_the_nearest) {
  for (unsigned bits = 0; bits < 0x10000; bits++) {
    Bf16 x = (Bf16)bits;
    if ((x & 0x7fff) > 0x7f80) continue;
    cr_expect_eq(bf16_from_double(bf16_to_float(x)), x, "%04x", bits);
    if ((x & 0x7fff) >= 0x7f7f || x & 0x8000) continue;
    double low = bf16_to_float(x), middle = (low + bf16_to_float((Bf16)(x + 1))) / 2;
    cr_expect_eq(bf16_from_double(middle), x + (x & 1), "%04x", bits);
    if (x < 0x0080) continue;
    cr_expect_eq(bf16_from_double(middle * (1 + 0x1p-40)), x + 1, "%04x", bits);
    cr_expect_eq(bf16_from_double(-middle * (1 - 0x1p-40)), x | 0x8000, "%04x", bits);
  }
  cr_expect_eq(bf16_from_double(1e300), 0x7f80);
  cr_expect(isnan(bf16_to_float(bf16_from_double(NAN))));
}

// ---- what the check finds ----

// A problem whose O is right: fp64, rounded. weight_of may change a key's weight.
static DecodeProblem solved(DecodeShape shape, InputKind input, double (*weight_of)(int key, double weight)) {
  DecodeProblem problem;
  cr_assert(decode_problem_create(&problem, &shape, input, 1));
  size_t dim = (size_t)shape.head_dim;
  for (int row = 0; row < shape.batch * shape.heads; row++) {
    size_t cache = (size_t)(row / (shape.heads / shape.kv_heads)) * (size_t)shape.keys * dim;
    double sum = 0, o[128] = {0};
    for (int key = 0; key < shape.keys; key++) {
      double score = 0;
      for (size_t d = 0; d < dim; d++)
        score += (double)bf16_to_float(problem.q[(size_t)row * dim + d]) *
                 bf16_to_float(problem.k[cache + (size_t)key * dim + d]);
      double weight = exp(score / sqrt(shape.head_dim));
      if (weight_of) weight = weight_of(key, weight);
      sum += weight;
      for (size_t d = 0; d < dim; d++) o[d] += weight * bf16_to_float(problem.v[cache + (size_t)key * dim + d]);
    }
    for (size_t d = 0; d < dim; d++) problem.o[(size_t)row * dim + d] = bf16_from_double(o[d] / sum);
  }
  return problem;
}

static DecodeCheck check_of(const DecodeProblem *problem) {
  DecodeCheck check;
  cr_assert(decode_check(problem, 1, &check));
  return check;
}

static const DecodeShape small = {.batch = 2, .heads = 6, .kv_heads = 2, .keys = 300, .head_dim = 64, .queries = 1};

Test(decode_check, takes_the_exact_answer_for_right) {
  static const InputKind inputs[] = {INPUT_NORMAL, INPUT_ONES, INPUT_ARANGE, INPUT_WAVES, INPUT_MEAN};
  for (int i = 0; i < 5; i++) {
    DecodeProblem problem = solved(small, inputs[i], NULL);
    DecodeCheck check = check_of(&problem);
    cr_expect(decode_check_is_right(&check) && check.compared == 2 * 6 * 64 && check.worst < 0.6, "input %d: %g",
              inputs[i], check.worst);
    decode_problem_free(&problem);
  }
}

static double without_the_last_key(int key, double weight) { return key == 299 ? 0 : weight; }
static double last_tile_twice(int key, double weight) { return key >= 288 ? 2 * weight : weight; }
static double in_fewer_bits(int key, double weight) { return (void)key, ldexp(rint(ldexp(weight, 3)), -3); }

// A key that is left out, a tile that counts twice, weights that are rounded too much.
Test(decode_check, finds_what_kernels_get_wrong) {
  double (*const mistakes[])(int, double) = {without_the_last_key, last_tile_twice, in_fewer_bits};
  for (int i = 0; i < 3; i++) {
    DecodeProblem problem = solved(small, INPUT_NORMAL, mistakes[i]);
    DecodeCheck check = check_of(&problem);
    cr_expect(!decode_check_is_right(&check) && check.wrong > 10, "mistake %d: %d wrong", i, (int)check.wrong);
    decode_problem_free(&problem);
  }
}

Test(decode_check, finds_one_wrong_element_and_says_where) {
  static const Bf16 wrong[] = {0x4000, 0x7fff, 0x7f80};
  for (int i = 0; i < 3; i++) {
    DecodeProblem problem = solved(small, INPUT_NORMAL, NULL);
    problem.o[7 * 64 + 5] = wrong[i];
    DecodeCheck check = check_of(&problem);
    cr_expect(!decode_check_is_right(&check) && check.wrong == 1 && check.differences[0].index == 7 * 64 + 5);
    cr_expect_eq(check.not_finite, i > 0);
    decode_problem_free(&problem);
  }
}

// The log-sum-exp has an own limit: one that is off by 1e-4, NaN, or finite where a query sees no key.
Test(decode_check, finds_a_wrong_log_sum_exp) {
  const DecodeShape shape = {.batch = 2, .heads = 2, .kv_heads = 1, .keys = 2, .head_dim = 64, .queries = 3};
  DecodeProblem problem;
  cr_assert(decode_problem_create(&problem, &shape, INPUT_ONES, 1) && decode_problem_add_lse(&problem));
  for (int row = 0; row < 12; row++) {  // all scores are 8; the queries see 0, 1, and 2 keys
    problem.lse[row] = row % 3 ? 8 + logf((float)(row % 3)) : -INFINITY;
    for (int d = 0; d < 64; d++) problem.o[row * 64 + d] = row % 3 ? bf16_from_double(1) : 0;
  }
  DecodeCheck check = check_of(&problem);
  cr_expect(decode_check_is_right(&check) && check.lse.compared == 12 && check.lse.worst < 0.6, "%g", check.lse.worst);
  const float wrong[] = {8 + 1e-4f, NAN, -1e30f};
  const int rows[] = {4, 11, 9};
  for (int i = 0; i < 3; i++) {
    float right = problem.lse[rows[i]];
    problem.lse[rows[i]] = wrong[i];
    check = check_of(&problem);
    cr_expect(!decode_check_is_right(&check) && check.wrong == 0 && check.lse.wrong == 1);
    cr_expect(check.lse.first.index == (size_t)rows[i] && check.lse.never_written == (i == 1));
    problem.lse[rows[i]] = right;
  }
  decode_problem_free(&problem);
}

// Where not all heads are compared, an element that is never written is found all the same.
Test(decode_check, finds_nan_in_what_is_not_compared) {
  DecodeShape large = {.batch = 12, .heads = 16, .kv_heads = 1, .keys = 1 << 15, .head_dim = 128, .queries = 1};
  if (SANITIZED) cr_skip_test("slow, and the same code as small problems");
  DecodeProblem problem;
  cr_assert(decode_problem_create(&problem, &large, INPUT_ONES, 1));
  for (size_t i = 0; i < decode_query_elements(&large); i++) problem.o[i] = 0x3f80;
  problem.o[100 * 128 + 1] = 0xffff;
  DecodeCheck check = check_of(&problem);
  cr_expect(check.heads < 12 && check.not_finite == 1 && check.first_not_finite == 100 * 128 + 1);
  decode_problem_free(&problem);
}

// ---- on a GPU ----

// The goals that are not of time: right at the sizes that serve models, and the same bits each time.
Test(gpu_decode, is_right_and_the_same_each_time) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  static const char *const problems[] = {
      "--batch=1 --keys=1024 --head-dim=128",
      "--batch=64 --keys=4096 --head-dim=128",
      "--batch=1 --keys=131072 --head-dim=128",
      "--batch=16 --heads=64 --kv-heads=8 --keys=5001",
      "--batch=7 --heads=32 --kv-heads=32 --keys=2047 --head-dim=128",
      "--batch=5 --heads=16 --kv-heads=1 --keys=8191",
  };
  char line[300];
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
    for (int d = 0; d < DECODERS; d++) {
      char first[32] = "";
      for (int repeat = 0; repeat < 3; repeat++) {
        snprintf(line, sizeof line, "--device=gpu --repeat=0 %s", problems[i]);
        Output *output = run_line(decoders[d], line);
        const char *checksum = strstr(output->out, "checksum of O ");
        cr_expect_eq(output->code, 0, "%s %s:\n%s%s", decoders[d], line, output->out, output->err);
        cr_assert(checksum);
        if (!*first) snprintf(first, sizeof first, "%.22s", checksum);
        cr_expect(!strncmp(checksum, first, 22), "%s %s: not the same bits", decoders[d], line);
        free(output);
      }
    }
}

Test(gpu_decode, is_right_for_lengths_pages_and_queries) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  static const char *const problems[] = {
      "--batch=64 --keys=4096 --head-dim=128",
      "--batch=32 --keys=8192 --page=64",
      "--batch=3 --keys=65536 --head-dim=128 --heads=64 --kv-heads=8",
      "--batch=200 --keys=700 --lengths=0,1,699,16,17,64 --head-dim=128",
      "--batch=16 --keys=4096 --lengths=full --page=none --heads=16 --kv-heads=1",
  };
  char line[300];
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
    for (int d = 0; d < PAGED; d++) {
      char first[32] = "";
      for (int repeat = 0; repeat < 3; repeat++) {
        snprintf(line, sizeof line, "--device=gpu --repeat=0 %s", problems[i]);
        Output *output = run_line(paged[d], line);
        const char *checksum = strstr(output->out, "checksum of O ");
        cr_expect_eq(output->code, 0, "%s %s:\n%s%s", paged[d], line, output->out, output->err);
        cr_assert(checksum);
        if (!*first) snprintf(first, sizeof first, "%.22s", checksum);
        cr_expect(!strncmp(checksum, first, 22), "%s %s: not the same bits", paged[d], line);
        free(output);
      }
    }
}

static void expect_row(const char *stage, const char *options, const char *fields) {
  char line[300];
  snprintf(line, sizeof line, "--device=gpu --batch=3 --keys=64 --page=16 --heads=8 --kv-heads=2 --csv=- %s", options);
  Output *output = run_line(stage, line);
  cr_expect_eq(output->code, 0, "%s %s:\n%s", stage, line, output->err);
  cr_expect(strstr(output->out, ",batch,heads,kv_heads,keys,head_dim,queries,page,lengths,splits,input,median_ms,"),
            "%s", output->out);
  cr_expect(strstr(output->out, fields), "%s %s has no %s:\n%s", stage, line, fields, output->out);
  free(output);
}

Test(gpu_decode, records_lengths_pages_queries_and_splits) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  expect_row("stage-13f", "--lengths=5,64,0 --queries=2 --head-dim=64", ",3,8,2,64,64,2,16,5 64 0,,normal,");
  expect_row("stage-13g", "--lengths=full --queries=1 --head-dim=64 --splits=1", ",3,8,2,64,64,1,16,full,1,normal,");
  expect_row("stage-22", "--lengths=full --splits=3", ",3,8,2,64,128,1,16,full,3,normal,");
  expect_row("stage-22", "--lengths=full --splits=100", ",3,8,2,64,128,1,16,full,4,normal,");  // 64 keys are 4 tiles
}

// ---- the kernels that only read ----

static DeviceModule *load_stage_13(Device *device) {
  char path[1000];
  snprintf(path, sizeof path, "%s/kernels/13-decode.ptx", getenv("BUILT") ? getenv("BUILT") : "build");
  DeviceImage image = {0};
  char *ptx = read_whole(path, &image.ptx_size);
  cr_assert(ptx, "cannot read %s", path);
  image.ptx = ptx;
  DeviceModule *module = device_load(device, &image);
  free(ptx);
  return module;
}

// A rate of reading means something only if each byte of K and V is read, once.
Test(decode, is_compared_with_kernels_that_read_all_once) {
  static const uint64_t sizes[] = {128, 8192, 12 * 8192 + 16, 40 * 8192, 1000000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    DeviceError error;
    Device *device = device_open(&(DeviceOptions){.kind = DEVICE_EMULATOR, .hazards = true}, &error);
    DeviceModule *module = load_stage_13(device);
    DeviceAddress k = device_alloc(device, sizes[i]), v = device_alloc(device, sizes[i]), to = device_alloc(device, 16);
    device_fill(device, k, 1, sizes[i]), device_fill(device, v, 1, sizes[i]);
    DeviceLaunch loads = {
        .kernel = device_kernel(device, module, "read_loads"),
        .grid = {3, 2},
        .block = {256},
        .arguments = ARGUMENTS(&k, &v, &sizes[i], &to),
    };
    DeviceLaunch copies = {
        .kernel = device_kernel(device, module, "read_copies"),
        .grid = {2, 2},
        .block = {32},
        .dynamic_shared = 12 * 8192,
        .arguments = ARGUMENTS(&k, &v, &sizes[i]),
    };
    EmulatorCounters counters;
    cr_assert(device_launch(device, &loads) && device_launch(device, &copies) && device_synchronise(device), "%s",
              device_error(device)->text);
    cr_assert(device_counters(device, &counters));
    cr_expect_eq(counters.value[COUNTER_GLOBAL_LOAD_BYTES], 2 * sizes[i], "loads: %d", (int)i);
    cr_expect_eq(counters.value[COUNTER_BULK_GLOBAL_READ_BYTES], 2 * sizes[i], "copies: %d", (int)i);
    int hazards;
    device_hazards(device, &hazards);
    cr_expect_eq(hazards, 0);
    device_close(device);
  }
}
