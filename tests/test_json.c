// --json: what the emulator saw, for programs; and --threads, with which a launch that stops repeats exactly.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"

TestSuite(json, .timeout = 60);

static void expect_text(const Output *output, const char *text) {
  cr_expect(strstr(output->out, text), "no '%s' in: %s", text, output->out);
}

// The 16 digits of the checksum.
static void copy_outputs(const Output *output, char outputs[17]) {
  const char *found = strstr(output->out, "\"outputs\":\"");
  cr_assert(found, "%s", output->out);
  memcpy(outputs, found + strlen("\"outputs\":\""), 16);
  outputs[16] = 0;
}

Test(json, has_counters_of_lines) {
  Output *output = run_line("stage-03", "--json=- --heads=1 --seqlen=64");
  cr_expect_eq(output->code, 0);
  cr_expect(strstr(output->err, "result    right"), "the report is on standard error: %s", output->err);
  cr_expect(!strncmp(output->out, "{\"stage\":\"03-cp-async\",\"exit_code\":0,\"error\":null,", 50), "%s", output->out);
  expect_text(output, "\"hazards\":[],\n\"counters\":{\"smsp__inst_executed.sum\":");
  expect_text(output, "{\"file\":\"stages/03-cp-async/kernel.cu\",\"line\":");
  expect_text(output, "\"tensor_flops\":2097152");  // two products of 128 x 64 x 64
  cr_expect(!strcmp(output->out + strlen(output->out) - 3, "]}\n"), "%s", output->out);
  free(output);
}

Test(json, tells_outputs_apart) {
  char outputs[3][17];
  static const char *const options[] = {"--json=- --heads=1 --seqlen=64 --schedule=3", "--json=- --heads=1 --seqlen=64",
                                        "--json=- --heads=1 --seqlen=64 --seed=2"};
  for (int i = 0; i < 3; i++) {
    Output *output = run_line("stage-03", options[i]);
    copy_outputs(output, outputs[i]);
    free(output);
  }
  cr_expect_str_eq(outputs[0], outputs[1], "another order of warps gives the same bits");
  cr_expect(strcmp(outputs[1], outputs[2]), "other inputs give other bits");
}

Test(json, has_hazards_with_their_lines) {
  Output *output = run_line("stage-03", "--json=- --step-limit=100 --threads=1");
  cr_expect_eq(output->code, 1);
  expect_text(output, "\"exit_code\":1,\"error\":\"");
  expect_text(output, "{\"kind\":\"step limit\",\"grade\":\"fault\",\"stopped\":true,\"count\":1,");
  expect_text(output, "\"here\":{\"file\":\"stages/03-cp-async/");
  expect_text(output, "\"frames\":[{\"file\":\"");
  expect_text(output, "\"other\":null}");
  free(output);
}

// With two threads another block may have been stopped, and some counts differ.
Test(json, repeats_exactly_with_one_thread) {
  Output *first = run_line("stage-08", "--json=- --step-limit=3000 --threads=1");
  for (int i = 0; i < 3; i++) {
    Output *again = run_line("stage-08", "--json=- --step-limit=3000 --threads=1");
    cr_expect_str_eq(again->out, first->out);
    free(again);
  }
  free(first);
}

Test(json, wrong_use) {
  static const struct {
    const char *options, *error;
  } cases[] = {
      {"--json=/nowhere/at/all.json", "stage-00: --json=/nowhere/at/all.json: No such file or directory\n"},
      {"--device=gpu --json=x", "stage-00: --json: a GPU cannot do that; use --device=emulator\n"},
      {"--json", "stage-00: --json needs a value: write --json=FILE|-\n"},
      {"--threads=0", "stage-00: --threads=0: too small; 1 to 256 are allowed\n"},
      {"--threads=257", "stage-00: --threads=257: too large; 1 to 256 are allowed\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Output *output = run_line("stage-00", cases[i].options);
    cr_expect_eq(output->code, 2, "%s: exit code %d", cases[i].options, output->code);
    cr_expect_str_eq(output->err, cases[i].error);
    cr_expect_str_empty(output->out);
    free(output);
  }
}
