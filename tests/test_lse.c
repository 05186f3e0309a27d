// The log-sum-exp of the forward pass, --lse: right on the emulator, and refused by a stage that does not store it. A
// test of the reference is in test_backward.c.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "support/program.h"
#include "support/sanitized.h"

TestSuite(lse, .timeout = 300);

// Runs stage 10. lse starts as NaN, so an element that no thread stores is wrong.
static void expect_right(const char *options) {
  char line[300];
  snprintf(line, sizeof line, "--device=emulator --lse %s", options);
  Output *output = run_line("stage-10", line);
  cr_expect_eq(output->code, 0, "%s: exit code %d\n%s%s", line, output->code, output->out, output->err);
  cr_expect(strstr(output->out, " elements of O, max error") && strstr(output->out, " elements of lse, max error"),
            "%s", output->out);
  cr_expect(strstr(output->out, "\nhazards   none\n"), "%s", output->out);
  free(output);
}

// Tiles with rows behind the sequence, and with a causal mask before it: a store there would hit another head's rows.
// Two heads and one, so that the last head's neighbour is the end of the array.
Test(lse, lengths_and_masks) {
  static const int seqlens[] = {100, 1, 63, 129, 193, 300};
  for (size_t i = 0; i < (SANITIZED ? 1 : sizeof seqlens / sizeof *seqlens); i++)
    for (int kind = 0; kind < 4; kind++) {
      char options[100];
      snprintf(options, sizeof options, "--seqlen=%d --heads=%d --head-dim=%d%s --schedule=%zu", seqlens[i],
               1 + (kind + (int)i) % 2, kind & 1 ? 128 : 64, kind & 2 ? " --causal" : "", i % 3);
      expect_right(options);
    }
}

// Sums that shrink, scores computed again, and tiles that keep their exact maximum.
Test(lse, any_shift) {
  static const char *const inputs[] = {"waves", "cliff", "large", "vanish", "ones"};
  for (size_t i = 0; i < (SANITIZED ? 1 : sizeof inputs / sizeof *inputs); i++) {
    char options[100];
    snprintf(options, sizeof options, "--input=%s --seqlen=300 --schedule=%zu%s", inputs[i], i,
             i % 2 ? " --causal" : "");
    expect_right(options);
  }
}

// Runs a decode stage. What is --blocks to others is --splits to 13g.
static void expect_right_of_decode(const char *stage, const char *problem, int schedule) {
  char line[300];
  snprintf(line, sizeof line, "--device=emulator --strict --lse %s --schedule=%d", problem, schedule);
  char *blocks = strcmp(stage, "stage-13g") ? NULL : strstr(line, "--blocks=");
  if (blocks) memcpy(blocks, "--splits=", strlen("--splits="));
  Output *output = run_line(stage, line);
  cr_expect_eq(output->code, 0, "%s %s: exit code %d\n%s%s", stage, line, output->code, output->out, output->err);
  cr_expect(strstr(output->out, "\nresult    right: all ") && strstr(output->out, "\nlse       right: "), "%s %s:\n%s",
            stage, line, output->out);
  cr_expect(strstr(output->out, "\nhazards   none\n"), "%s", output->out);
  free(output);
}

// Decode: whole heads, heads that several workers share, also one whose part has a key that a query does not see, and
// queries without keys.
Test(lse, of_decode) {
  static const char *const stages[] = {"stage-13f", "stage-13g"};
  static const char *const problems[] = {
      "--lengths=3",
      "--batch=2 --keys=225 --lengths=225,192 --blocks=1",
      "--batch=2 --keys=385 --lengths=385,320 --blocks=2",
      "--batch=5 --keys=700 --lengths=700,3,0,1,17 --queries=5 --blocks=3 --head-dim=128",
      "--batch=2 --keys=1400 --lengths=1400,3 --queries=8 --heads=9 --kv-heads=1 --blocks=15 --input=large",
      "--lengths=full --page=none --keys=90 --queries=8 --heads=16 --kv-heads=1 --input=negative",
  };
  for (int i = 0; i < (SANITIZED ? 2 : 6); i++)
    for (int s = 0; s < 2; s++) expect_right_of_decode(stages[s], problems[i], (i + s) % 4);
}

// Of an e4m3 cache. Its weights have a factor, which must be gone from the sums of one worker and of several; and the
// scale of K is in the scores.
Test(lse, of_e4m3_decode) {
  static const char *const problems[] = {
      "--keys=40 --lengths=3 --blocks=1",
      "--batch=4 --keys=300 --lengths=300,0,2,40 --blocks=2",
      "--batch=3 --keys=700 --lengths=700,1,129 --heads=9 --kv-heads=1 --head-dim=128 --blocks=3 --scales=head",
      "--batch=2 --keys=500 --lengths=full --page=none --head-dim=128 --blocks=5 --input=outliers",
      "--batch=2 --keys=260 --lengths=ragged --page=64 --heads=32 --kv-heads=2 --scales=head --input=waves",
  };
  for (int i = 0; i < (SANITIZED ? 2 : 5); i++) expect_right_of_decode("stage-13e", problems[i], i % 4);
}

Test(lse, needs_a_stage_that_stores_it) {
  Output *output = run_line("stage-09b", "--lse");
  cr_expect_eq(output->code, EXIT_USAGE);
  cr_expect(strstr(output->err, "stage-09b: --lse: stage 09b-diagonal "), "%s", output->err);
  free(output);
  output = run_line("stage-09b", "--help");
  cr_expect(!strstr(output->out, "--lse"), "%s", output->out);
  free(output);
}

// A wrong one is found, without a gradient being there.
Test(lse, wrong_one_is_named) {
  const Shape shape = {.batch = 1, .heads = 2, .seqlen = 20, .head_dim = 64, .causal = true};
  Problem problem;
  CheckResult result;
  cr_assert(problem_create(&problem, &shape, INPUT_NORMAL, 1) && problem_add_lse(&problem));
  for (size_t i = 0; i < 40; i++) problem.lse[i] = 0;
  ReferenceHead head;
  for (size_t h = 0; h < 2; h++) {
    cr_assert(reference_open(&head, &problem, h));
    for (int row = 0; row < 20; row++) {
      double exact;
      reference_lse(&head, row, &exact);
      problem.lse[h * 20 + (size_t)row] = (float)exact;
    }
    reference_close(&head);
  }
  cr_assert(check_output(&problem, OUTPUT_LSE, 1, &result));
  cr_expect(check_is_right(&result) && result.compared == 40);
  problem.lse[25] += 1e-4f;
  cr_assert(check_output(&problem, OUTPUT_LSE, 1, &result));
  cr_expect(result.wrong == 1 && result.differences[0].index == 25);
  problem.lse[25] = NAN;
  cr_assert(check_output(&problem, OUTPUT_LSE, 1, &result));
  cr_expect(result.wrong == 1 && result.not_finite == 1);
  problem_free(&problem);
}
