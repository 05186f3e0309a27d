// The examples of notes/embedding.md and notes/generating.md: the notes show the programs as they are, and what they
// print.
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/sanitized.h"

int example_main(void);
#define main example_main
#include "../examples/emulator.c"
#undef main

// A copy of text with four spaces before each line that is not empty, as a note shows it. The caller frees it.
static char *indented(const char *text) {
  char *copy = calloc(1, 6 * strlen(text) + 1), *end = copy;
  while (*text) {
    size_t length = strcspn(text, "\n") + 1;
    if (length > strlen(text)) length = strlen(text);
    end += sprintf(end, "%s%.*s", *text == '\n' ? "" : "    ", (int)length, text);
    text += length;
  }
  return copy;
}

static char *read_file(const char *name) {
  char path[1000];
  size_t size;
  snprintf(path, sizeof path, "%s/%s", root_path(), name);
  char *text = read_whole(path, &size);
  cr_assert(text, "cannot read %s", path);
  return text;
}

Test(notes, emulator_shows_the_example) {
  char *note = read_file("notes/embedding.md"), *program = indented(read_file("examples/emulator.c"));
  cr_expect(strstr(note, program), "notes/embedding.md does not show examples/emulator.c as it is");
}

Test(notes, emulator_shows_what_the_example_prints, .init = cr_redirect_stdout) {
  cr_expect_eq(example_main(), 0);
  fflush(stdout);
  char printed[1000] = "";
  FILE *out = cr_get_redirected_stdout();
  printed[fread(printed, 1, sizeof printed - 1, out)] = 0;
  cr_expect(strstr(printed, "shared-memory race: "), "%s", printed);
  cr_expect(strstr(read_file("notes/embedding.md"), indented(printed)), "the example prints\n%s", printed);
}

// From where it makes its call to its end.
static char *main_part_of_decode(void) {
  char *program = read_file("examples/decode.cu"), *start = strstr(program, "  int32_t lengths["),
       *end = strstr(program, "  return 0;\n}\n");
  cr_assert(start && end && start < end);
  *end = 0;
  return indented(start);
}

Test(notes, generating_shows_the_example) {
  cr_expect(strstr(read_file("notes/generating.md"), main_part_of_decode()),
            "notes/generating.md does not show examples/decode.cu as it is");
}

Test(notes, generating_shows_what_the_example_prints, .timeout = 60) {
  if (SANITIZED) cr_skip_test("what is preloaded into a program cannot have a sanitizer");
  char path[1000];
  snprintf(path, sizeof path, "%s/decode", getenv("RUNNER_TESTS"));
  const char *const arguments[] = {path, NULL};
  Output *output = run_program("hopper-run", arguments);
  cr_expect_eq(output->code, 0, "%s", output->err);
  cr_expect(strstr(output->err, "no findings"), "%s", output->err);
  cr_expect(*output->out && strstr(read_file("notes/generating.md"), indented(output->out)), "the example prints\n%s",
            output->out);
  free(output);
}
