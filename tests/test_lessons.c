// What the lessons show is what the programs print: the report in a stage's README, line by line, numbers aside.
// Tables of times show what was recorded on an H200, to the digit.
#include <criterion/criterion.h>
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  snprintf(pattern, sizeof pattern, "%s/stages/[0-9][0-9]*-*/README.md", root_path());
  cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "no lessons in %s", root_path());
  for (size_t i = 0; i < found.gl_pathc; i++) {
    const char *folder = strstr(found.gl_pathv[i], "/stages/") + strlen("/stages/");
    size_t size;
    char *readme = read_whole(found.gl_pathv[i], &size);
    Output *output = run_line(program_of(folder), "--device=emulator");
    char *printed = without_numbers(output->out);
    cr_expect(compare(folder, readme, printed) >= 6, "%s shows no report", folder);
    free(printed);
    free(output);
    free(readme);
  }
  globfree(&found);
}

// Words of a table's headings, and what they say of the rows of a CSV: "S = 4096" wants 4096 as seqlen.
static const struct {
  const char *words, *column;
} numbers[] = {{"S = ", "seqlen"}, {"D = ", "head_dim"}, {"N = ", "n"}, {"warpgroups = ", "warpgroups"}};

// The columns that tables show.
static const struct {
  const char *words, *column;
} quantities[] = {{"TFLOPS", "tflops"}, {"clocks", "clocks"}, {"MHz", "mhz"}, {"ms", "median_ms"}};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

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

// The name of a row's stage as the CSV has it: "[02b wmma-pv](...)" is 02b-wmma-pv.
static void stage_name(char *name, size_t size, const char *cell) {
  if (*cell == '[') cell++;
  snprintf(name, size, "%.*s", (int)strcspn(cell, "],"), cell);
  if (isdigit((unsigned char)name[0])) name[strcspn(name, " ")] = '-';
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

// The field of a CSV's row under the header's name; NULL when there is no such column.
static const char *field(const char *csv, const char *row, const char *name) {
  int column = column_of(csv, name);
  for (int i = 0; i < column; i++) row = strchr(row, ',') + 1;
  return column < 0 ? NULL : row;
}

// True when a CSV's row has what a cell's headings say: the number behind each name, the mask, whether it was measured
// back to back or in turns with others, where A comes from.
static bool agrees(const char *csv, const char *row, const char *headings) {
  for (size_t i = 0; i < LENGTH(numbers); i++) {
    const char *at = strstr(headings, numbers[i].words), *has = field(csv, row, numbers[i].column);
    if (at && (!has || atoi(has) != atoi(at + strlen(numbers[i].words)))) return false;
  }
  const char *causal = field(csv, row, "causal"), *a = field(csv, row, "a"), *from = strstr(headings, "A ");
  const char *mode = field(csv, row, "mode");
  if (causal && atoi(causal) != (strstr(headings, "causal") != NULL)) return false;
  if (mode && (*mode == 's') != (strstr(headings, "back to back") != NULL)) return false;  // sustained
  return !a || !from || !strncmp(a, from + 2, strcspn(a, ","));
}

// The one row with this name, which is a stage or what a stage measures, that agrees with the headings; NULL when there
// is none or more than one.
static const char *recorded_row(const char *csv, const char *name, const char *headings) {
  const char *column = column_of(csv, "quantity") < 0 ? "stage" : "quantity", *found = NULL;
  size_t length = strlen(name);
  for (const char *row = strchr(csv, '\n'); row && row[1]; row = strchr(row + 1, '\n')) {
    const char *has = field(csv, row + 1, column);
    if (strncmp(has, name, length) || has[length] != ',' || !agrees(csv, row + 1, headings)) continue;
    if (found) return NULL;
    found = row + 1;
  }
  return found;
}

// The recorded number of a cell; -1 when its headings do not name one.
static double recorded(const char *csv, const char *name, const char *headings) {
  const char *row = recorded_row(csv, name, headings);
  for (size_t i = 0; row && i < LENGTH(quantities); i++)
    if (strstr(headings, quantities[i].words)) return atof(field(csv, row, quantities[i].column));
  return -1;
}

// Compares the numbers of one row with the recorded ones, rounded to the digits that it shows. Returns how many. What a
// cell stands for is said by the row's name, by the corner of the table and by the column's heading.
static int compare_row(const char *lesson, const char *csv, const char *header, char *row) {
  char head[1000], name[64], headings[1000], *rest = head;
  snprintf(head, sizeof head, "%s", header);
  const char *corner = next_cell(&rest), *row_name = next_cell(&row);
  stage_name(name, sizeof name, row_name);
  int count = 0;
  for (char *shown, *heading; (shown = next_cell(&row)) && (heading = next_cell(&rest)); count++) {
    char expected[32];
    int decimals = strchr(shown, '.') ? (int)strlen(strchr(shown, '.') + 1) : 0;
    snprintf(headings, sizeof headings, "%s | %s | %s", row_name, corner, heading);
    snprintf(expected, sizeof expected, "%.*f", decimals, recorded(csv, name, headings));
    cr_expect_str_eq(shown, expected, "%s, row \"%s\", column \"%s\": shown %s, recorded %s", lesson, row_name, heading,
                     shown, expected);
  }
  return count;
}

// The recording that a line names, "<!-- recorded: plots/data/nvidia-h200.csv -->"; NULL when it is no such line. The
// caller frees it.
static char *named_recording(const char *lesson, const char *line) {
  char name[200], path[1000];
  size_t size;
  if (sscanf(line, "<!-- recorded: %199s -->", name) != 1) return NULL;
  snprintf(path, sizeof path, "%s/%s", root_path(), name);
  char *csv = read_whole(path, &size);
  cr_assert(csv, "%s names %s, and there is none", lesson, name);
  return csv;
}

// Compares the tables that stand directly under a line that names a recording. Returns how many numbers they have.
static int compare_tables(const char *lesson, char *readme) {
  int count = 0, row = 0;
  char header[1000] = "", *csv = NULL;
  for (char *rest = readme, *line; (line = strsep(&rest, "\n"));) {
    if (csv && *line == '|') {
      if (row == 0) snprintf(header, sizeof header, "%s", line);
      if (row >= 2) count += compare_row(lesson, csv, header, line);
      row++;
    } else {
      free(csv);
      csv = named_recording(lesson, line);
      row = 0;
    }
  }
  free(csv);
  return count;
}

// True for a stage that is in the CSV or has one of its own, and for what is no stage's lesson.
static bool is_recorded(const char *lesson, const char *csv) {
  char row[64], own[1000];
  if (strncmp(lesson, "stages/", 7)) return true;
  int length = (int)strcspn(lesson + 7, "/");
  snprintf(row, sizeof row, "\n%.*s,", length, lesson + 7);
  snprintf(own, sizeof own, "%s/plots/data/%.*s/nvidia-h200.csv", root_path(), length, lesson + 7);
  return strstr(csv, row) || !access(own, R_OK);
}

Test(lessons, tables_show_what_was_recorded) {
  char pattern[1000], path[1000];
  glob_t found;
  size_t size;
  snprintf(path, sizeof path, "%s/plots/data/nvidia-h200.csv", root_path());
  char *csv = read_whole(path, &size);
  cr_assert(csv, "no %s", path);
  snprintf(pattern, sizeof pattern, "%s/stages/[0-9][0-9]*-*/README.md", root_path());
  cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "no lessons in %s", root_path());
  snprintf(pattern, sizeof pattern, "%s/{README.md,common/baselines/*/README.md}", root_path());
  cr_assert_eq(glob(pattern, GLOB_APPEND | GLOB_BRACE, NULL, &found), 0, "no README.md in %s", root_path());
  for (size_t i = 0; i < found.gl_pathc; i++) {
    const char *lesson = found.gl_pathv[i] + strlen(root_path()) + 1;
    char *readme = read_whole(found.gl_pathv[i], &size);
    int count = compare_tables(lesson, readme);
    cr_expect(count || !is_recorded(lesson, csv), "%s has no table of recorded times", lesson);
    free(readme);
  }
  globfree(&found);
  free(csv);
}
