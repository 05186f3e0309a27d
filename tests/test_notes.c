// The example of notes/embedding.md: the note shows the program as it is, and what it prints.
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"

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
