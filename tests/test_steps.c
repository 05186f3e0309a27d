// --fair and --steps: one instruction of each warp in turn, and the record of what warps, copies and mbarriers do then.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator/emulator.h"
#include "support/program.h"

TestSuite(steps, .timeout = 60);

enum { MAX_STEPS_READ = 1 << 17 };

static EmulatorStep steps[MAX_STEPS_READ];

// Runs a stage and reads its record. Returns how many steps it has. output: to be freed.
static int record(const char *stage, const char *options, Output **output) {
  char path[] = "/tmp/steps-XXXXXX", line[300];
  int file = mkstemp(path);
  cr_assert(file >= 0);
  close(file);
  snprintf(line, sizeof line, "--steps=%s --json=- %s", path, options);
  *output = run_line(stage, line);
  cr_assert_eq((*output)->code, 0, "%s", (*output)->err);
  FILE *in = fopen(path, "rb");
  cr_assert(in);
  int count = (int)fread(steps, sizeof *steps, MAX_STEPS_READ, in);
  cr_assert(count > 0 && feof(in));
  fclose(in);
  unlink(path);
  return count;
}

static uint64_t number_after(const char *text, const char *name) {
  const char *found = strstr(text, name);
  cr_assert(found, "no %s", name);
  return strtoull(found + strlen(name), NULL, 10);
}

// As many lanes execute instructions as the counters say; each of these has a line of the source.
Test(steps, have_every_instruction) {
  Output *output;
  int count = record("stage-06", "--seqlen=160", &output);
  uint64_t lanes = 0;
  for (int i = 0; i < count; i++) {
    if (steps[i].kind != EMULATOR_STEP_INSTRUCTION) continue;
    lanes += (unsigned)__builtin_popcount(steps[i].lanes);
    cr_assert(steps[i].line > 0 && steps[i].ptx_line > 0 && steps[i].file >= 0, "step %d has no line", i);
  }
  cr_expect_eq(lanes, number_after(output->out, "\"smsp__thread_inst_executed_pred_on.sum\":"));
  cr_expect(strstr(output->out, "\"steps_complete\":true,\"step_files\":[\"stages/06-tma/kernel.cu\"]"));
  free(output);
}

// All eight warps of the block can run at first: none comes again before the others have.
Test(steps, are_of_each_warp_in_turn) {
  enum { WARPS = 8, ROUNDS = 10 };
  Output *output;
  record("stage-06", "--heads=1", &output);
  cr_expect_eq(steps[0].kind, EMULATOR_STEP_LAUNCH_BEGINS);
  for (int i = 0; i < WARPS * ROUNDS; i++) {
    cr_assert_eq(steps[1 + i].kind, EMULATOR_STEP_INSTRUCTION);
    cr_expect_eq(steps[1 + i].warp, i % WARPS, "step %d is of warp %d", 1 + i, steps[1 + i].warp);
  }
  free(output);
}

// Each copy and wgmma begins, and then ends, once.
Test(steps, have_every_operation) {
  static unsigned char state[MAX_STEPS_READ];
  Output *output;
  int count = record("stage-08", "--seqlen=256", &output), begun = 0, ended = 0;
  for (int i = 0; i < count; i++) {
    const EmulatorStep *step = &steps[i];
    if (step->kind != EMULATOR_STEP_OPERATION_BEGINS && step->kind != EMULATOR_STEP_OPERATION_ENDS) continue;
    bool begins = step->kind == EMULATOR_STEP_OPERATION_BEGINS;
    cr_assert(step->what < sizeof state && state[step->what] == (begins ? 0 : 1), "operation %u", step->what);
    state[step->what]++;
    *(begins ? &begun : &ended) += 1;
  }
  cr_expect(begun > 20, "%d operations", begun);
  cr_expect_eq(begun, ended);
  free(output);
}

// The phases of each mbarrier of a block end in order.
Test(steps, have_every_phase) {
  enum { BLOCKS = 8, WORDS = 1 << 15 };
  static int32_t next[BLOCKS][WORDS];
  Output *output;
  int count = record("stage-08", "--seqlen=256", &output), phases = 0;
  for (int i = 0; i < count; i++) {
    const EmulatorStep *step = &steps[i];
    if (step->kind != EMULATOR_STEP_PHASE_ENDS) continue;
    cr_assert(step->block < BLOCKS && step->mbarrier / 8 < WORDS && step->warp == -1);
    cr_expect_eq(step->phase, next[step->block][step->mbarrier / 8]++);
    phases++;
  }
  cr_expect(phases > 20, "%d phases", phases);
  free(output);
}

// Follows the counts of each mbarrier: arrivals only come, the bytes that copies bring are those that threads
// announce, and a phase ends when nothing is missing.
Test(steps, have_every_count_of_an_mbarrier) {
  enum { BLOCKS = 8, WORDS = 1 << 15 };
  static struct Known {
    bool live, ends;
    int32_t arrivals, pending, bytes, phase;
  } known[BLOCKS][WORDS];
  static int32_t brings[MAX_STEPS_READ];  // by the number of a copy
  Output *output;
  int count = record("stage-06", "--seqlen=384 --heads=1", &output), arrivals = 0, copied = 0;
  for (int i = 0; i < count; i++) {
    const EmulatorStep *step = &steps[i];
    if (step->kind == EMULATOR_STEP_OPERATION_BEGINS && step->mbarrier) brings[step->what] = step->bytes;
    if (step->kind < EMULATOR_STEP_MBARRIER_BEGINS || step->kind > EMULATOR_STEP_WAIT_FAILS) continue;
    cr_assert(step->block < BLOCKS && step->mbarrier / 8 < WORDS);
    struct Known *one = &known[step->block][step->mbarrier / 8];
    if (step->kind == EMULATOR_STEP_MBARRIER_BEGINS) {
      cr_expect(!one->live && step->pending > 0 && !step->bytes && !step->phase);
      *one = (struct Known){.live = true, .arrivals = step->pending, .pending = step->pending};
      continue;
    }
    cr_assert(one->live);
    bool passes = step->kind == EMULATOR_STEP_WAIT_PASSES;
    cr_expect_eq(step->phase, one->phase - passes, "step %d", i);
    if (step->kind == EMULATOR_STEP_PHASE_ENDS) {
      cr_expect(one->pending == 0 && one->bytes == 0 && one->ends, "step %d", i);
      cr_expect_eq(step->pending, one->arrivals);
      one->pending = one->arrivals;
      one->phase++;
      one->ends = false;
    } else if (step->kind == EMULATOR_STEP_MBARRIER_CHANGES) {
      bool moves_bytes = step->bytes != one->bytes;
      cr_expect(moves_bytes ? step->pending == one->pending : step->pending == one->pending - 1, "step %d", i);
      if (step->what) cr_expect_eq(one->bytes - step->bytes, brings[step->what], "step %d", i);
      copied += step->what ? one->bytes - step->bytes : 0;
      arrivals += one->pending - step->pending;
      one->pending = step->pending;
      one->bytes = step->bytes;
      one->ends = !one->pending && !one->bytes;
    } else {
      cr_expect(step->pending == one->pending && step->bytes == one->bytes, "step %d", i);
    }
    cr_expect_eq(one->ends, step->kind == EMULATOR_STEP_MBARRIER_CHANGES && !step->pending && !step->bytes);
  }
  cr_expect(arrivals > 100, "%d arrivals", arrivals);
  cr_expect_eq((uint64_t)copied, number_after(output->out, "\"bulk_shared_write_bytes\":"));
  free(output);
}

// --values: all results of one thread, and no other's. With ones each score is 64: the thread loads 32 of them from
// each of two tiles, and finds the maximum of each.
Test(steps, have_the_values_of_a_thread) {
  Output *output;
  int count = record("stage-02", "--heads=1 --input=ones --values=37", &output), scores = 0, last = -1;
  for (int i = 0; i < count; i++) {
    const EmulatorStep *step = &steps[i];
    if (step->kind == EMULATOR_STEP_INSTRUCTION && step->warp == 1) last = step->ptx_line;
    if (step->kind != EMULATOR_STEP_VALUE) continue;
    cr_assert(step->warp == 1 && step->lanes == 1u << 5 && step->ptx_line == last && step->line > 0, "step %d", i);
    float value;
    memcpy(&value, &step->what, sizeof value);
    scores += value == 64;
  }
  cr_expect(scores >= 2 * 2 * (32 + 1), "%d", scores);
  free(output);
}

// Another order, the same numbers.
Test(steps, change_no_result) {
  Output *fair = run_line("stage-08", "--json=- --fair"), *other = run_line("stage-08", "--json=-");
  cr_expect_eq(fair->code, 0);
  const char *one = strstr(fair->out, "\"outputs\":"), *two = strstr(other->out, "\"outputs\":");
  cr_assert(one && two);
  cr_expect(!strncmp(one, two, strlen("\"outputs\":\"0123456789abcdef\"")));
  free(fair);
  free(other);
}

Test(steps, wrong_use) {
  static const struct {
    const char *options, *error;
  } cases[] = {
      {"--steps=/nowhere/at/all", "stage-00: --steps=/nowhere/at/all: No such file or directory\n"},
      {"--fair --schedule=7", "stage-00: --schedule=7 is a random order, and --fair a fair one; give one of the two\n"},
      {"--steps=x --schedule=7",
       "stage-00: --schedule=7 is a random order, and --steps a fair one; give one of the two\n"},
      {"--values=3", "stage-00: --values=3 adds values to the steps of a run; give --steps=FILE as well\n"},
      {"--device=gpu --steps=x", "stage-00: --steps: a GPU cannot do that; use --device=emulator\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Output *output = run_line("stage-00", cases[i].options);
    cr_expect_eq(output->code, 2, "%s: exit code %d", cases[i].options, output->code);
    cr_expect_str_eq(output->err, cases[i].error);
    free(output);
  }
}
