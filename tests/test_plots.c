// The ladder's plot: gnuplot draws made-up recordings into a scratch folder, and the SVG's text says what was drawn.
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char header[] =
    "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,min_ms,"
    "max_ms,repeats,tflops\n";
// A made-up GPU; the rows' last field is their TFLOPS.
#define ROW(stage, shape, tflops)                                                                                      \
  stage ",Test GPU,1234,1.2,3.4,2001-02-03T04:05:06Z," shape ",1.5,1.4,1.6,17," tflops "\n"
#define USUAL "4,32,4096,64,0"

static char scratch[] = "/tmp/hopper-ladder-plots-XXXXXX";

static void enter(void) { cr_assert(mkdtemp(scratch)); }

static void leave(void) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", scratch);
  cr_expect(system(command) == 0);
}

TestSuite(plots, .init = enter, .fini = leave);

// The whole of a file in the scratch folder, with a 0 after it; NULL when there is none. The caller frees it.
static char *read_scratch(const char *name, size_t *size) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", scratch, name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = calloc(1, 1 << 20);
  *size = fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  return text;
}

// Runs ladder.gp on rows, with more arguments when they are not "". Returns the exit status; *output is what it
// printed.
static int draw(const char *rows, const char *arguments, char **output) {
  const char *root = getenv("HL_ROOT") ? getenv("HL_ROOT") : ".";
  char command[1000];
  snprintf(command, sizeof command, "%s/data.csv", scratch);
  FILE *file = fopen(command, "w");
  cr_assert(file);
  fprintf(file, "%s%s", header, rows);
  fclose(file);
  snprintf(command, sizeof command, "gnuplot -c '%s/plots/ladder.gp' %s/data.csv %s/ladder %s >%s/output 2>&1", root,
           scratch, scratch, arguments, scratch);
  int status = system(command);
  size_t size;
  *output = read_scratch("output", &size);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Draws rows, which must go well, and returns the SVG's text.
static char *draw_svg(const char *rows, const char *arguments) {
  char *output;
  int status = draw(rows, arguments, &output);
  cr_assert(status == 0, "gnuplot: exit status %d: %s", status, output);
  cr_expect_str_empty(output, "gnuplot printed: %s", output);
  free(output);
  size_t size;
  char *svg = read_scratch("ladder.svg", &size);
  cr_assert(svg, "no ladder.svg");
  return svg;
}

// True when one text element of the SVG is exactly text.
static bool has_text(const char *svg, const char *text) {
  char element[300];
  snprintf(element, sizeof element, ">%s<", text);
  return strstr(svg, element) != NULL;
}

static int lines(const char *text) {
  int count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

Test(plots, rungs_with_numbers_and_speedups) {
  char *svg = draw_svg(ROW("00-scalar", USUAL, "1.75") ROW("01-wmma-qk", USUAL, "7")
                           ROW("02-online-softmax", USUAL, "84") ROW("03-cp-async", USUAL, "42.04"),
                       "");
  cr_expect(strstr(svg, "scalar") && strstr(svg, "wmma-qk") && strstr(svg, "online-softmax") &&
            strstr(svg, "cp-async"));
  cr_expect(has_text(svg, "1.75"));
  cr_expect(has_text(svg, "7.00"));
  cr_expect(has_text(svg, "84.0"));
  cr_expect(has_text(svg, "42.0"));
  cr_expect(has_text(svg, "4.0x"), "wmma-qk is 4 times as fast as scalar");
  cr_expect(has_text(svg, "12x"), "online-softmax is 12 times as fast as wmma-qk");
  cr_expect(has_text(svg, "0.5x"), "a stage that is slower says so");
  free(svg);
}

Test(plots, says_what_was_measured_and_where) {
  char *svg = draw_svg(ROW("00-scalar", USUAL, "1.75"), "");
  cr_expect(strstr(svg, "on one Test GPU"));
  cr_expect(has_text(svg, "batch 4, 32 heads, sequence length 4096, head dim 64, no mask"));
  cr_expect(has_text(svg, "SM clock 1234 MHz, driver 1.2, CUDA 3.4, 2001-02-03, median of 17 runs"));
  free(svg);
}

Test(plots, a_single_rung_has_no_speedup) {
  char *svg = draw_svg(ROW("00-scalar", USUAL, "1.75"), "");
  cr_expect(has_text(svg, "1.75"));
  cr_expect(!strstr(svg, "x</tspan>"), "a number that ends in x");
  free(svg);
}

Test(plots, only_the_rows_of_one_problem) {
  const char *rows = ROW("00-scalar", "4,32,4096,64,1", "0.91") ROW("00-scalar", USUAL, "1.75")
      ROW("00-scalar", "4,16,4096,128,0", "2.92") ROW("00-scalar", "2,32,8192,64,0", "3.93");
  char *svg = draw_svg(rows, "");
  cr_expect(has_text(svg, "1.75"));
  cr_expect(!has_text(svg, "0.91") && !has_text(svg, "2.92") && !has_text(svg, "3.93"));
  free(svg);
  svg = draw_svg(rows, "4 32 4096 64 1");
  cr_expect(has_text(svg, "0.91"));
  cr_expect(!has_text(svg, "1.75") && !has_text(svg, "2.92") && !has_text(svg, "3.93"));
  cr_expect(has_text(svg, "batch 4, 32 heads, sequence length 4096, head dim 64, causal mask"));
  free(svg);
}

// The PNG is there too, and as high as the ladder.
Test(plots, png_grows_with_the_ladder) {
  uint32_t height[2];
  for (int rungs = 1; rungs <= 2; rungs++) {
    free(
        draw_svg(rungs == 1 ? ROW("00-scalar", USUAL, "1") : ROW("00-scalar", USUAL, "1") ROW("01-b", USUAL, "2"), ""));
    size_t size = 0;
    char *png = read_scratch("ladder.png", &size);
    cr_assert(png && size > 1000 && memcmp(png, "\x89PNG\r\n\x1a\n", 8) == 0);
    const uint8_t *at = (const uint8_t *)png + 20;  // the height in the IHDR chunk, big-endian
    height[rungs - 1] = (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
    free(png);
  }
  cr_expect_eq(height[1] - height[0], 120, "one more rung is 60 points, 120 pixels");
}

Test(plots, nothing_to_draw_is_one_line) {
  char *output;
  cr_expect_eq(draw(ROW("00-scalar", "1,1,64,64,0", "1.75"), "", &output), 1);
  cr_expect_eq(lines(output), 1, "%s", output);
  cr_expect(strstr(output, "no row with batch 4, 32 heads, sequence length 4096"), "%s", output);
  free(output);
}

Test(plots, a_missing_file_is_one_line) {
  const char *root = getenv("HL_ROOT") ? getenv("HL_ROOT") : ".";
  char command[600];
  snprintf(command, sizeof command, "gnuplot -c '%s/plots/ladder.gp' %s/none.csv %s/ladder >%s/output 2>&1", root,
           scratch, scratch, scratch);
  int status = system(command);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  size_t size;
  char *output = read_scratch("output", &size);
  cr_expect_eq(lines(output), 1, "%s", output);
  cr_expect(strstr(output, "no recorded data in") && strstr(output, "none.csv"), "%s", output);
  free(output);
}

Test(plots, wrong_use_exits_2) {
  char *output;
  cr_expect_eq(draw(ROW("00-scalar", USUAL, "1.75"), "4 32", &output), 2);
  cr_expect_eq(lines(output), 1, "%s", output);
  cr_expect(strstr(output, "usage:"), "%s", output);
  free(output);
}
