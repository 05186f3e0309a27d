// What the lessons show is what the programs print: the report in a stage's README, line by line, numbers aside.
// Tables of times show what was recorded on an H200, to the digit.
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

// What a cell of a table of times stands for: a quantity of one stage or peer, in one recorded problem.
typedef struct Recorded {
  char stage[64], quantity[16];
  int seqlen, head_dim, causal;
} Recorded;

// The number behind name ("S = 4096") in a heading, or otherwise when the heading does not have it.
static int heading_number(const char *heading, const char *name, int otherwise) {
  const char *at = strstr(heading, name);
  return at ? atoi(at + strlen(name)) : otherwise;
}

// Adds what one heading says: "TFLOPS, S = 4096", "D = 64, causal".
static void add_heading(Recorded *cell, const char *heading) {
  if (strstr(heading, "TFLOPS")) strcpy(cell->quantity, "tflops");
  if (strstr(heading, "ms")) strcpy(cell->quantity, "median_ms");
  cell->seqlen = heading_number(heading, "S = ", cell->seqlen);
  cell->head_dim = heading_number(heading, "D = ", cell->head_dim);
  if (strstr(heading, "causal")) cell->causal = 1;
}

// Takes the next cell of a table's row, without spaces around it; NULL behind the last.
static char *next_cell(char **row) {
  char *cell = *row + strspn(*row, "| "), *end = strchr(cell, '|');
  if (!end) return NULL;
  *row = end;
  while (end > cell && end[-1] == ' ') end--;
  if (**row) *(*row)++ = 0;
  *end = 0;
  return cell;
}

// The name of a row's stage as the CSV has it: "[03 cp-async](...)" is 03-cp-async.
static void stage_name(char *name, size_t size, const char *cell) {
  if (*cell == '[') cell++;
  snprintf(name, size, "%.*s", (int)strcspn(cell, "],"), cell);
  if (isdigit((unsigned char)name[0]) && name[2] == ' ') name[2] = '-';
}

// The column of a CSV's header with this name, counted from 0; -1 without one.
static int column_of(const char *header, const char *name) {
  size_t length = strlen(name);
  for (int column = 0;; column++, header++) {
    size_t end = strcspn(header, ",\n");
    if (end == length && !strncmp(header, name, end)) return column;
    header += end;
    if (*header != ',') return -1;
  }
}

// The field of a CSV's row under the header's name.
static const char *field(const char *csv, const char *row, const char *name) {
  for (int column = column_of(csv, name); column > 0; column--) row = strchr(row, ',') + 1;
  return row;
}

// The recorded number of a cell; -1 when there is no such row.
static double recorded(const char *csv, const Recorded *cell) {
  size_t length = strlen(cell->stage);
  for (const char *row = strchr(csv, '\n'); row && row[1]; row = strchr(row + 1, '\n')) {
    const char *line = row + 1;
    if (!strncmp(line, cell->stage, length) && line[length] == ',' &&
        atoi(field(csv, line, "seqlen")) == cell->seqlen && atoi(field(csv, line, "head_dim")) == cell->head_dim &&
        atoi(field(csv, line, "causal")) == cell->causal)
      return atof(field(csv, line, cell->quantity));
  }
  return -1;
}

// Compares the numbers of one row with the recorded ones, rounded to the digits that it shows. Returns how many.
static int compare_row(const char *lesson, const char *csv, const char *header, char *row) {
  char headings[1000], *rest = headings;
  snprintf(headings, sizeof headings, "%s", header);
  Recorded common = {0};
  add_heading(&common, next_cell(&rest));
  char *name = next_cell(&row);
  add_heading(&common, name);
  stage_name(common.stage, sizeof common.stage, name);
  int numbers = 0;
  for (char *shown, *heading; (shown = next_cell(&row)) && (heading = next_cell(&rest)); numbers++) {
    Recorded cell = common;
    add_heading(&cell, heading);
    char expected[32];
    int decimals = strchr(shown, '.') ? (int)strlen(strchr(shown, '.') + 1) : 0;
    snprintf(expected, sizeof expected, "%.*f", decimals, recorded(csv, &cell));
    cr_expect_str_eq(shown, expected, "%s, row \"%s\", column \"%s\": shown %s, recorded %s", lesson, name, heading,
                     shown, expected);
  }
  return numbers;
}

// Compares the tables that stand directly under a line with MARK. Returns how many numbers they have.
static int compare_tables(const char *lesson, const char *csv, char *readme) {
  static const char MARK[] = "<!-- recorded: plots/data/nvidia-h200.csv -->";
  int numbers = 0, row = -1;
  char header[1000] = "";
  for (char *rest = readme, *line; (line = strsep(&rest, "\n"));) {
    if (!strcmp(line, MARK)) {
      row = 0;
    } else if (row >= 0 && *line == '|') {
      if (row == 0) snprintf(header, sizeof header, "%s", line);
      if (row >= 2) numbers += compare_row(lesson, csv, header, line);
      row++;
    } else if (row > 0) {
      row = -1;
    }
  }
  return numbers;
}

// True for the lesson of a stage that has recorded times, and for the top README.
static bool is_recorded(const char *lesson, const char *csv) {
  char row[64];
  if (strncmp(lesson, "stages/", 7)) return true;
  snprintf(row, sizeof row, "\n%.*s,", (int)strcspn(lesson + 7, "/"), lesson + 7);
  return strstr(csv, row);
}

Test(lessons, tables_show_what_was_recorded) {
  char pattern[1000], path[1000];
  glob_t found;
  size_t size;
  snprintf(path, sizeof path, "%s/plots/data/nvidia-h200.csv", root_path());
  char *csv = read_whole(path, &size);
  cr_assert(csv, "no %s", path);
  snprintf(pattern, sizeof pattern, "%s/stages/[0-9][0-9]-*/README.md", root_path());
  cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "no lessons in %s", root_path());
  snprintf(pattern, sizeof pattern, "%s/README.md", root_path());
  cr_assert_eq(glob(pattern, GLOB_APPEND, NULL, &found), 0, "no README.md in %s", root_path());
  for (size_t i = 0; i < found.gl_pathc; i++) {
    const char *lesson = found.gl_pathv[i] + strlen(root_path()) + 1;
    char *readme = read_whole(found.gl_pathv[i], &size);
    int numbers = compare_tables(lesson, csv, readme);
    cr_expect(numbers || !is_recorded(lesson, csv), "%s has no table of recorded times", lesson);
    free(readme);
  }
  globfree(&found);
  free(csv);
}
