// What the lessons show is what the programs print: the report in a stage's README, line by line, numbers aside.
#include <criterion/criterion.h>
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"

TestSuite(lessons);

// Copies text with each number, "1,234" or "0.5", as one '#', and runs of spaces as one space. The caller frees it.
static char *without_numbers(const char *text) {
  char *copy = malloc(strlen(text) + 1), *end = copy;
  for (const char *c = text; *c;) {
    if (isdigit((unsigned char)*c)) {
      while (isdigit((unsigned char)*c) || ((*c == ',' || *c == '.') && isdigit((unsigned char)c[1]))) c++;
      *end++ = '#';
    } else if (*c == ' ') {
      while (*c == ' ') c++;
      *end++ = ' ';
    } else {
      *end++ = *c++;
    }
  }
  *end = 0;
  return copy;
}

// True for a line of a report: four spaces and one of its words.
static bool is_report(const char *line) {
  static const char *const words[] = {"stage ", "device ", "problem ", "result ", "hazards ", "counters "};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strncmp(line, "    ", 4) && !strncmp(line + 4, words[i], strlen(words[i]))) return true;
  return false;
}

// Expects each line of the lesson's report in the output, up to its "..." when it has one. Returns how many there are.
static int compare(const char *lesson, char *readme, const char *printed) {
  int lines = 0;
  for (char *rest = readme, *line; (line = strtok_r(rest, "\n", &rest));) {
    if (!is_report(line)) continue;
    char *dots = strstr(line, "...");
    if (dots) *dots = 0;
    char *expected = without_numbers(line + 4);
    cr_expect(strstr(printed, expected), "%s shows \"%s\"; the program prints\n%s", lesson, line, printed);
    free(expected);
    lines++;
  }
  return lines;
}

Test(lessons, reports_are_what_the_programs_print) {
  char pattern[1000];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/stages/[0-9][0-9]-*/README.md", root_path());
  cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "no lessons in %s", root_path());
  for (size_t i = 0; i < found.gl_pathc; i++) {
    const char *folder = strstr(found.gl_pathv[i], "/stages/") + strlen("/stages/");
    char stage[16];
    snprintf(stage, sizeof stage, "stage-%.2s", folder);
    size_t size;
    char *readme = read_whole(found.gl_pathv[i], &size);
    Output *output = run_line(stage, "--device=emulator");
    char *printed = without_numbers(output->out);
    cr_expect(compare(folder, readme, printed) >= 6, "%s shows no report", folder);
    free(printed);
    free(output);
    free(readme);
  }
  globfree(&found);
}
