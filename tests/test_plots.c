// The plots of recorded times: gnuplot draws made-up recordings into a scratch folder, and the SVG's text says what was
// drawn.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scratch.h"
#include "support/svg_text.h"

static const char header[] =
    "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,min_ms,"
    "max_ms,repeats,tflops\n";
// A made-up GPU; the rows' last field is their TFLOPS.
#define ROW(stage, shape, tflops)                                                                                      \
  stage ",Test GPU,1234,1.2,3.4,2001-02-03T04:05:06Z," shape ",1.5,1.4,1.6,17," tflops "\n"
#define USUAL "4,32,4096,64,0"

TestSuite(plots, .init = scratch_enter, .fini = scratch_leave);

// Runs plots/script on a file, with more arguments when they are not "". Returns the exit status.
static int draw_file(const char *script, const char *file, const char *arguments) {
  char command[300];
  snprintf(command, sizeof command, "gnuplot -c \"$ROOT\"/plots/%s %s drawn %s", script, file, arguments);
  return scratch_run(command);
}

// The same on text.
static int draw_text(const char *script, const char *text, const char *arguments) {
  scratch_write("data.csv", text);
  return draw_file(script, "data.csv", arguments);
}

// The same on rows below the usual header.
static int draw(const char *script, const char *rows, const char *arguments) {
  char *text = malloc(sizeof header + strlen(rows));
  sprintf(text, "%s%s", header, rows);
  int code = draw_text(script, text, arguments);
  free(text);
  return code;
}

// What gnuplot has drawn, when it went well, as the SVG's text. The caller frees it.
static char *drawn_svg(int status) {
  cr_assert(status == 0, "gnuplot: exit status %d: %s", status, scratch_output);
  cr_expect_str_empty(scratch_output, "gnuplot printed: %s", scratch_output);
  size_t size;
  char *svg = scratch_read("drawn.svg", &size);
  cr_assert(svg, "no drawn.svg");
  return svg;
}

// Draws rows, which must go well, and returns the SVG's text. The caller frees it.
static char *draw_svg(const char *script, const char *rows, const char *arguments) {
  int status = draw(script, rows, arguments);
  return drawn_svg(status);
}

static char *draw_ladder(const char *rows, const char *arguments) { return draw_svg("ladder.gp", rows, arguments); }

static int lines(const char *text) {
  int count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

Test(plots, rungs_with_numbers_and_speedups) {
  char *svg = draw_ladder(ROW("00-scalar", USUAL, "1.75") ROW("01-wmma-qk", USUAL, "7")
                              ROW("02-online-softmax", USUAL, "84") ROW("03-cp-async", USUAL, "42.04"),
                          "");
  cr_expect(strstr(svg, "scalar") && strstr(svg, "wmma-qk") && strstr(svg, "online-softmax") &&
            strstr(svg, "cp-async"));
  cr_expect(svg_find_text(svg, "1.75"));
  cr_expect(svg_find_text(svg, "7.00"));
  cr_expect(svg_find_text(svg, "84.0"));
  cr_expect(svg_find_text(svg, "42.0"));
  cr_expect(svg_find_text(svg, "4.0x"), "wmma-qk is 4 times as fast as scalar");
  cr_expect(svg_find_text(svg, "12x"), "online-softmax is 12 times as fast as wmma-qk");
  cr_expect(svg_find_text(svg, "0.50x"), "a stage that is slower says so");
  free(svg);
}

Test(plots, says_what_was_measured_and_where) {
  char *svg = draw_ladder(ROW("00-scalar", USUAL, "1.75"), "");
  cr_expect(strstr(svg, "on one Test GPU"));
  cr_expect(svg_find_text(svg, "batch 4, 32 heads, sequence length 4096, head dim 64, no mask"));
  cr_expect(svg_find_text(svg, "SM at most 1234 MHz, driver 1.2, CUDA 3.4, 2001-02-03, median of 17 runs"));
  free(svg);
}

Test(plots, says_that_some_were_measured_fewer_times) {
  char *svg = draw_ladder(ROW("00-scalar", USUAL, "1.75") "01-wmma-qk,Test GPU,1234,1.2,3.4,2001-02-03T04:05:06Z," USUAL
                                                          ",1.5,1.4,1.6,9,7\n",
                          "");
  cr_expect(svg_find_text(svg, "SM at most 1234 MHz, driver 1.2, CUDA 3.4, 2001-02-03, medians of 9-17 runs"));
  free(svg);
}

// Where the file has the clock that ran, the picture says its range, in the rows that are drawn.
Test(plots, says_which_clock_ran) {
  static const char clocks[] =
      "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,repeats,tflops,clock_"
      "mhz\n"
      "00-scalar,GPU,1980,1,2,3,4,32,4096,64,0,1,17,1,1900\n01-wmma-qk,GPU,1980,1,2,3,4,32,4096,64,0,1,17,2,1500\n"
      "02-c,GPU,1980,1,2,3,4,32,4096,64,0,1,17,2,\n03-d,GPU,1980,1,2,3,4,32,4096,64,1,1,17,2,1100\n";
  char *svg = drawn_svg(draw_text("ladder.gp", clocks, ""));
  cr_expect(svg_find_text(svg, "SM at 1500-1900 MHz, driver 1, CUDA 2, 3, median of 17 runs"));
  free(svg);
  svg = drawn_svg(draw_text("ladder.gp", clocks, "4 32 4096 64 1"));
  cr_expect(svg_find_text(svg, "SM at 1100 MHz, driver 1, CUDA 2, 3, median of 17 runs"));
  free(svg);
}

Test(plots, a_single_rung_has_no_speedup) {
  char *svg = draw_ladder(ROW("00-scalar", USUAL, "1.75"), "");
  cr_expect(svg_find_text(svg, "1.75"));
  cr_expect(!strstr(svg, "x</tspan>"), "a number that ends in x");
  free(svg);
}

Test(plots, only_the_rows_of_one_problem) {
  const char *rows = ROW("00-scalar", "4,32,4096,64,1", "0.91") ROW("00-scalar", USUAL, "1.75")
      ROW("00-scalar", "4,16,4096,128,0", "2.92") ROW("00-scalar", "2,32,8192,64,0", "3.93");
  char *svg = draw_ladder(rows, "");
  cr_expect(svg_find_text(svg, "1.75"));
  cr_expect(!svg_find_text(svg, "0.91") && !svg_find_text(svg, "2.92") && !svg_find_text(svg, "3.93"));
  free(svg);
  svg = draw_ladder(rows, "4 32 4096 64 1");
  cr_expect(svg_find_text(svg, "0.91"));
  cr_expect(!svg_find_text(svg, "1.75") && !svg_find_text(svg, "2.92") && !svg_find_text(svg, "3.93"));
  cr_expect(svg_find_text(svg, "batch 4, 32 heads, sequence length 4096, head dim 64, causal mask"));
  free(svg);
}

// The PNG is there too, and as high as the ladder.
Test(plots, png_grows_with_the_ladder) {
  uint32_t height[2];
  for (int rungs = 1; rungs <= 2; rungs++) {
    free(draw_ladder(rungs == 1 ? ROW("00-scalar", USUAL, "1") : ROW("00-scalar", USUAL, "1") ROW("01-b", USUAL, "2"),
                     ""));
    size_t size = 0;
    char *png = scratch_read("drawn.png", &size);
    cr_assert(png && size > 1000 && memcmp(png, "\x89PNG\r\n\x1a\n", 8) == 0);
    const uint8_t *at = (const uint8_t *)png + 20;  // the height in the IHDR chunk, big-endian
    height[rungs - 1] = (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
    free(png);
  }
  cr_expect_eq(height[1] - height[0], 120, "one more rung is 60 points, 120 pixels");
}

// The peers stand above the ladder by their speed, whatever their order in the file.
Test(plots, peers_above_the_ladder) {
  char *svg = draw_ladder(ROW("cuDNN", USUAL, "48.1") ROW("00-scalar", USUAL, "1.75") ROW("01-wmma-qk", USUAL, "7.5")
                              ROW("FlashAttention-2", USUAL, "30.3"),
                          "");
  double scalar = svg_find_text(svg, "1.75")->y, wmma = svg_find_text(svg, "7.50")->y;
  double slower = svg_find_text(svg, "30.3")->y, faster = svg_find_text(svg, "48.1")->y;
  cr_expect(faster < slower && slower < wmma && wmma < scalar, "%g %g %g %g", faster, slower, wmma, scalar);
  cr_expect(fabs(svg_find_text(svg, "cuDNN")->y - faster) < 10, "the name stands beside its number");
  cr_expect(fabs(svg_find_text(svg, "FlashAttention-2")->y - slower) < 10);
  free(svg);
}

// Ten stages and four peers on all problems of `make bench`, close together at the top as the real ones are. The caller
// frees the rows.
static char *full_recording(void) {
  static const char *const names[] = {
      "00-scalar",          "01-wmma-qk", "02-online-softmax",      "03-cp-async",  "04-single-wgmma",
      "05-wgmma-attention", "06-tma",     "07-warp-specialization", "08-ping-pong", "09-persistent",
      "FlashAttention-2",   "cuDNN",      "FlashAttention-3",       "PyTorch math"};
  static const double speeds[] = {10, 15, 165, 324, 330, 340, 359, 420, 458, 493, 303, 481, 501, 39};
  char *rows = calloc(1, 100000), *end = rows;
  for (int i = 0; i < 14; i++)
    for (int problem = 0; problem < 24; problem++) {
      int seqlen = 512 << problem % 6, head_dim = problem < 12 ? 64 : 128, causal = problem / 6 % 2;
      double tflops = speeds[i] * (head_dim == 128 ? 1.25 : 1) * (causal ? 0.9 : 1) * (1 - 100. / seqlen);
      end += sprintf(end, "%s,Test GPU,1234,1.2,3.4,2001-02-03T04:05:06Z,%d,%d,%d,%d,%d,1.5,1.4,1.6,17,%.3f\n",
                     names[i], 16384 / seqlen, 2048 / head_dim, seqlen, head_dim, causal, tflops);
    }
  return rows;
}

static void expect_no_overlap(const char *svg) {
  const char *overlap = svg_overlap(svg);
  cr_expect(!overlap, "%s", overlap);
}

Test(plots, no_texts_overlap_in_the_ladder) {
  char *rows = full_recording(), *svg = draw_ladder(rows, "");
  expect_no_overlap(svg);
  free(svg);
  svg = draw_ladder(ROW("00-scalar", USUAL, "1.75"), "");
  expect_no_overlap(svg);
  free(svg);
  free(rows);
}

// ---- TFLOPS against the sequence length ----

Test(plots, four_panels_with_named_lines) {
  char *rows = full_recording(), *svg = draw_svg("seqlen.gp", rows, "");
  cr_expect(svg_find_text(svg, "head dim 64, no mask") && svg_find_text(svg, "head dim 64, causal mask"));
  cr_expect(svg_find_text(svg, "head dim 128, no mask") && svg_find_text(svg, "head dim 128, causal mask"));
  cr_expect(svg_find_text(svg, "07 warp-specialization") && svg_find_text(svg, "08 ping-pong") &&
            svg_find_text(svg, "09 persistent"));
  cr_expect(svg_find_text(svg, "dashed: FlashAttention-2 (FA2), cuDNN, FlashAttention-3 (FA3), PyTorch math"));
  cr_expect(svg_find_text(svg, "SM at most 1234 MHz, driver 1.2, CUDA 3.4, 2001-02-03, median of 17 runs"));
  static const char *const names[] = {"00", "01", "02", "03",  "04",    "05",  "06",
                                      "07", "08", "09", "FA2", "cuDNN", "FA3", "math"};
  for (int i = 0; i < 14; i++) cr_expect_eq(svg_count_text(svg, names[i]), 4, "%s: one label a panel", names[i]);
  expect_no_overlap(svg);
  free(svg);
  free(rows);
}

// Labels are parted where lines end close together, and keep their order: the fastest is highest.
Test(plots, labels_keep_the_order_of_lines) {
  char *svg = draw_svg("seqlen.gp",
                       ROW("cuDNN", "4,32,4096,64,0", "100.2") ROW("00-scalar", "4,32,4096,64,0", "100.1")
                           ROW("01-b", "4,32,4096,64,0", "100.3") ROW("02-c", "4,32,4096,64,0", "99"),
                       "");
  double lowest = svg_find_text(svg, "02")->y, low = svg_find_text(svg, "00")->y;
  double high = svg_find_text(svg, "cuDNN")->y, highest = svg_find_text(svg, "01")->y;
  cr_expect(highest < high - 12 && high < low - 12 && low < lowest - 12, "%g %g %g %g", highest, high, low, lowest);
  expect_no_overlap(svg);
  free(svg);
}

// One row is one point: three panels are empty.
Test(plots, one_point_alone) {
  char *svg = draw_svg("seqlen.gp", ROW("00-scalar", "16,16,1024,128,1", "5.5"), "");
  cr_expect_eq(svg_count_text(svg, "00"), 1);
  cr_expect(svg_find_text(svg, "1k") && !svg_find_text(svg, "2k"), "the axis has that length alone");
  expect_no_overlap(svg);
  free(svg);
}

Test(plots, peers_alone) {
  char *svg = draw_svg("seqlen.gp", ROW("cuDNN", "16,16,1024,128,1", "5.5"), "");
  cr_expect(svg_find_text(svg, "dashed: cuDNN") && svg_count_text(svg, "cuDNN") == 1);
  free(svg);
}

// Of other problems than those of make bench none is drawn.
Test(plots, only_problems_of_the_bench) {
  const char *good = ROW("00-scalar", "16,16,1024,128,1", "5.5");
  char rows[2000];
  snprintf(rows, sizeof rows, "%s%s", good,
           ROW("01-b", "15,16,1024,128,1", "5") ROW("02-c", "16,8,1024,128,1", "5") ROW("03-d", "16,16,512,128,1", "5")
               ROW("04-e", "16,16,1024,128,1", "") ROW("05-f", "16,16,1024,128,1", "none")
                   ROW("06-g", "16,16,1024,128,1", "-1") ROW("07-h", "1,16,32768,128,1", "5.6"));
  char *svg = draw_svg("seqlen.gp", rows, "");
  cr_expect_eq(svg_count_text(svg, "00"), 1);
  cr_expect_eq(svg_count_text(svg, "07"), 1, "longer than 16384 is one batch");
  static const char *const others[] = {"01", "02", "03", "04", "05", "06"};
  for (int i = 0; i < 6; i++) cr_expect_eq(svg_count_text(svg, others[i]), 0, "%s", others[i]);
  free(svg);
}

// peers.py says how it measured; what was measured without a pause has its own place.
Test(plots, only_cold_runs) {
  static const char text[] = "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,"
                             "min_ms,max_ms,repeats,tflops,mode\n"
                             "07-a,GPU,1,2,3,now,1,32,16384,64,0,1,1,1,40,400,sustained\n"
                             "08-b,GPU,1,2,3,now,1,32,16384,64,0,1,1,1,40,400,cold\n";
  cr_assert_eq(draw_text("seqlen.gp", text, ""), 0, "%s", scratch_output);
  size_t size;
  char *svg = scratch_read("drawn.svg", &size);
  cr_expect(svg_find_text(svg, "08") && !svg_find_text(svg, "07"));
  free(svg);
}

// ---- the timeline ----

// The last command printed one line, from that script, with that in it.
static void expect_line(const char *script, const char *part) {
  cr_expect_eq(lines(scratch_output), 1, "%s: %s", script, scratch_output);
  cr_expect(strstr(scratch_output, script) == scratch_output, "%s: %s", script, scratch_output);
  cr_expect(strstr(scratch_output, part), "%s: no '%s' in: %s", script, part, scratch_output);
}

#define TRACE_HEADER "stage,device,date,block,warpgroup,role,phase,start_ns,end_ns,tile\n"
#define PHASE(block, warpgroup, role, phase, start, end, tile)                                                         \
  "07-x,Test GPU,2001-02-03T04:05:06Z," #block "," #warpgroup "," role "," phase "," #start "," #end "," #tile "\n"

// Draws phases, which must go well, and returns the SVG's text. The caller frees it.
static char *draw_timeline(const char *rows, const char *arguments) {
  char *text = malloc(sizeof TRACE_HEADER + strlen(rows));
  sprintf(text, TRACE_HEADER "%s", rows);
  int status = draw_text("timeline.gp", text, arguments);
  free(text);
  return drawn_svg(status);
}

// How many bars the SVG has: gnuplot draws the inside of each as one path with a fill.
static int count_bars(const char *svg) {
  int count = 0;
  for (const char *at = svg; (at = strstr(at, "<polygon fill = ")); at++) count++;
  return count;
}

Test(plots, a_lane_for_each_warpgroup) {
  char *svg =
      draw_timeline(PHASE(5, 0, "producer", "copy", 0, 900, 0) PHASE(5, 0, "producer", "copy in flight", 900, 1900, 0)
                        PHASE(5, 1, "consumer", "load wait", 0, 1900, 0) PHASE(5, 1, "consumer", "QK", 1900, 2400, 0)
                            PHASE(5, 1, "consumer", "softmax", 2400, 4000, 0),
                    "");
  cr_expect(svg_find_text(svg, "Who does what when: stage 07 x on one SM"));
  cr_expect(svg_find_text(svg, "Test GPU, 2001-02-03, all phases"));
  cr_expect_eq(svg_count_text(svg, "block 5"), 2);
  const SvgText *above = svg_find_text(svg, "warpgroup 0");
  double first = above ? above->y : 0;
  const SvgText *below = svg_find_text(svg, "warpgroup 1");
  cr_expect(above && below && first < below->y, "the first lane is on top");
  cr_expect(svg_find_text(svg, "producer") && svg_find_text(svg, "consumer"));
  // Each name is in the key and, where it fits, in its bar.
  cr_expect_eq(svg_count_text(svg, "softmax"), 2);
  cr_expect_eq(svg_count_text(svg, "load wait"), 2);
  cr_expect_eq(svg_count_text(svg, "copy in flight"), 0);
  cr_expect(svg_find_text(svg, "thin: in flight, until noticed"));
  expect_no_overlap(svg);
  free(svg);
}

// The window: 5000 ns before the first store to 3000 ns after it, or what the arguments say. What is outside has no bar,
// and no name in the key.
Test(plots, a_window_of_the_timeline) {
  static const char rows[] = PHASE(0, 0, "all", "copy", 0, 100, 0) PHASE(0, 0, "all", "QK", 100, 5000, 0)
      PHASE(0, 0, "all", "softmax", 5000, 6100, 0) PHASE(0, 0, "all", "PV", 6100, 9000, 0)
          PHASE(0, 1, "all", "store", 7500, 7600, 1) PHASE(0, 1, "all", "store", 7000, 7300, 0)
              PHASE(0, 2, "all", "rescale", 10100, 11000, 0);
  char *svg = draw_timeline(rows, "");
  cr_expect(svg_find_text(svg, "Test GPU, 2001-02-03, -5000 to 3000 ns, counted from the first store"));
  cr_expect(!svg_find_text(svg, "copy") && svg_find_text(svg, "softmax") && svg_find_text(svg, "PV") &&
            svg_find_text(svg, "warpgroup 1") && !svg_find_text(svg, "rescale"));
  cr_expect_eq(count_bars(svg), 9, "five phases, and the places of four in the key");
  free(svg);
  svg = draw_timeline(rows, "-1500 200");
  cr_expect(svg_find_text(svg, "Test GPU, 2001-02-03, -1500 to 200 ns, counted from the first store"));
  cr_expect(!svg_find_text(svg, "QK") && svg_find_text(svg, "softmax") && svg_find_text(svg, "PV") &&
            svg_find_text(svg, "store"));
  cr_expect_eq(count_bars(svg), 6);
  free(svg);
}

// Without a store, or with one near the start, the window begins where the recording does.
Test(plots, a_window_from_the_start) {
  char *svg = draw_timeline(PHASE(0, 0, "all", "copy", 0, 100, 0) PHASE(0, 0, "all", "PV", 8500, 9000, 0), "");
  cr_expect(svg_find_text(svg, "Test GPU, 2001-02-03, 0 to 8000 ns, counted from the start"));
  cr_expect_eq(count_bars(svg), 2);
  free(svg);
  svg = draw_timeline(PHASE(0, 0, "all", "copy", 0, 100, 0) PHASE(0, 0, "all", "store", 4000, 9000, 0), "");
  cr_expect(svg_find_text(svg, "Test GPU, 2001-02-03, -4000 to 4000 ns, counted from the first store"));
  cr_expect_eq(count_bars(svg), 4);
  free(svg);
}

// Many short phases of all kinds on four warpgroups of two blocks: nothing overlaps.
Test(plots, a_crowded_timeline) {
  static const char *const phases[] = {"copy",         "load wait",    "free wait",     "turn wait", "wgmma wait",
                                       "barrier wait", "QK",           "softmax",       "rescale",   "PV",
                                       "store",        "QK in flight", "something else"};
  char *rows = calloc(1, 200000), *end = rows;
  for (int lane = 0; lane < 8; lane++)
    for (int i = 0, time = 0; i < 130; i++) {
      int length = 10 + 37 * (i % 9);
      end += sprintf(end, "08-ping-pong,Test GPU,2001-02-03T04:05:06Z,%d,%d,consumer,%s,%d,%d,%d\n", lane / 4 * 132,
                     lane % 4, phases[i % 13], time, time + length, i / 13);
      time += length;
    }
  char *svg = draw_timeline(rows, "");
  expect_no_overlap(svg);
  for (int i = 0; i < 13; i++)
    cr_expect(i == 11 || svg_count_text(svg, phases[i]) >= 1, "%s is not in the key", phases[i]);
  free(svg);
  free(rows);
}

// Several stages in one picture: one below the other, in the same window around each one's first store, each under its
// name.
Test(plots, timelines_of_two_stages) {
  scratch_write("below.csv", TRACE_HEADER "08-y,Test GPU,2001-02-03T04:05:06Z,4,2,all,PV,11500,13000,0\n"
                                          "08-y,Test GPU,2001-02-03T04:05:06Z,4,2,all,store,13000,14000,0\n");
  char *svg = draw_timeline(PHASE(3, 2, "all", "QK", 0, 900, 0) PHASE(3, 2, "all", "softmax", 900, 2500, 0)
                                PHASE(3, 2, "all", "store", 3000, 3100, 0),
                            "-2000 -100 below.csv");
  cr_expect(svg_find_text(svg, "Who does what when: from stage to stage on one SM"));
  cr_expect(svg_find_text(svg, "Test GPU, 2001-02-03, -2000 to -100 ns, counted from the stage's first store"));
  static const char *const downwards[] = {"07 x", "block 3", "08 y", "block 4"};
  double above = 0;
  for (int i = 0; i < 4; i++) {
    const SvgText *text = svg_find_text(svg, downwards[i]);
    cr_assert(text && text->y > above, "%s is not there, or too high up", downwards[i]);
    above = text->y;
  }
  cr_expect_eq(svg_count_text(svg, "warpgroup 2"), 2);
  cr_expect_eq(count_bars(svg), 4, "two phases in the window, and their places in the key");
  expect_no_overlap(svg);
  free(svg);
  static const char rows[] = TRACE_HEADER PHASE(0, 0, "all", "QK", 10, 2000, 0);
  scratch_write("below.csv", TRACE_HEADER "08-y,Test GPU,2001-02-03T04:05:06Z,3,2,all,PV,0,10,0\n");
  cr_expect_eq(draw_text("timeline.gp", rows, "1000 2900 below.csv"), 1);
  expect_line("timeline.gp", "below.csv has no phase between 1000 and 2900 ns");
  cr_expect_eq(draw_text("timeline.gp", rows, "1000 2900 none.csv"), 1);
  expect_line("timeline.gp", "none.csv; on a Hopper GPU, make trace-NN records it");
}

// Two recordings of one stage, before a change and after it, have the same name and the same lanes.
Test(plots, timelines_of_one_stage) {
  static const char rows[] = PHASE(3, 2, "all", "QK", 0, 900, 0) PHASE(3, 1, "all", "QK", 900, 2500, 0);
  char *svg = draw_timeline(rows, "0 2500 data.csv data.csv");
  cr_expect_eq(svg_count_text(svg, "07 x"), 3);
  cr_expect_eq(svg_count_text(svg, "warpgroup 2"), 3);
  cr_expect_eq(svg_count_text(svg, "warpgroup 1"), 3);
  cr_expect_eq(count_bars(svg), 7, "two phases in each, and one place in the key");
  expect_no_overlap(svg);
  free(svg);
}

Test(plots, more_lanes_than_a_picture_holds) {
  char *rows = malloc(20000), *end = rows + sprintf(rows, TRACE_HEADER);
  for (int block = 0; block < 129; block++)
    end += sprintf(end, "07-x,Test GPU,2001-02-03T04:05:06Z,%d,0,all,QK,%d,900,0\n", block, block);
  cr_expect_eq(draw_text("timeline.gp", rows, ""), 1);
  expect_line("timeline.gp", "data.csv has too much between 0 and 900 ns; room is for 128 warpgroups and 64 phases");
  cr_expect_eq(draw_text("timeline.gp", rows, "0 128"), 0, "one block less in the window");
  free(rows);
}

Test(plots, a_timeline_of_nothing) {
  cr_expect_eq(draw_text("timeline.gp", TRACE_HEADER PHASE(0, 0, "all", "QK", 10, 20, 0), "30 40"), 1);
  expect_line("timeline.gp", "has no phase between 30 and 40 ns");
  cr_expect_eq(draw_text("timeline.gp", TRACE_HEADER PHASE(0, 0, "all", "QK", 20, 10, 0), ""), 1);
  expect_line("timeline.gp", "has no phase between");
  cr_expect_eq(draw_text("timeline.gp", TRACE_HEADER PHASE(0, 0, "all", "QK", soon, later, 0), ""), 1);
  expect_line("timeline.gp", "has no phase between");
}

// ---- the roofline ----

// The columns of counters.csv that it needs, in an order of their own.
#define WORK_HEADER                                                                                                    \
  "stage,batch,heads,seqlen,head_dim,causal,tensor_flops,inst_mufu,smsp__inst_executed.sum,"                           \
  "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum,"         \
  "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum,wgmma_shared_read_bytes,cp_async_shared_write_bytes,"        \
  "bulk_shared_write_bytes,bulk_shared_read_bytes,global_store_bytes,bulk_global_write_bytes\n"
// O of one head, which has to be written: 4096 x 64 x 2 bytes.
#define OUTPUT_BYTES "524288"

// Draws the times of rows with the work of work_rows. Returns the exit status.
static int draw_roofline(const char *rows, const char *work_rows) {
  char *text = malloc(sizeof WORK_HEADER + sizeof header + strlen(work_rows) + strlen(rows));
  sprintf(text, WORK_HEADER "%s", work_rows);
  scratch_write("work.csv", text);
  sprintf(text, "%s%s", header, rows);
  scratch_write("data.csv", text);
  free(text);
  return scratch_run("gnuplot -c \"$ROOT\"/plots/roofline.gp data.csv work.csv drawn");
}

static char *roofline_svg(const char *rows, const char *work_rows) {
  int status = draw_roofline(rows, work_rows);
  return drawn_svg(status);
}

// Rows of 128 heads last 1.5 ms at 1234 MHz: 1,851,000 clocks, or 14,460.9 a head; times 132 SMs, 1,908,844. So a head's
// work that takes half of the time is 954,422 clocks: of tensor cores at 4096 operations, ...
Test(plots, each_bound_can_bind) {
  char *svg = roofline_svg(
      ROW("00-tensor", USUAL, "1") ROW("01-exp", USUAL, "1") ROW("02-shared", USUAL, "1") ROW("03-issue", USUAL, "1")
          ROW("04-memory", USUAL, "1") ROW("05-async", USUAL, "1"),
      // 954,422 clocks x 4096
      "00-tensor,1,1,4096,64,0,3909312512,0,0,0,0,0,0,0,0,0," OUTPUT_BYTES ",0\n"
      // 40 %: 763,538 clocks, 2 for each warp instruction
      "01-exp,1,1,4096,64,0,0,381769,0,0,0,0,0,0,0,0," OUTPUT_BYTES ",0\n"
      // 30 % are 572,653 wavefronts, here in three parts
      "02-shared,1,1,4096,64,0,0,0,0,272653,200000,100000,0,0,0,0," OUTPUT_BYTES ",0\n"
      // 20 %: 381,769 clocks, 4 instructions each
      "03-issue,1,1,4096,64,0,0,0,1527075,0,0,0,0,0,0,0," OUTPUT_BYTES ",0\n"
      // 60 % of 1.5 ms / 128 heads at 4.28 TB/s are 30,093,750 bytes: twice what is stored, and as much as two tensors
      "04-memory,1,1,4096,64,0,0,0,0,0,0,0,0,0,0,0,14522587,0\n"
      // 70 %: 1,336,191 clocks of 128 bytes, in four parts
      "05-async,1,1,4096,64,0,0,0,0,0,0,0,100000000,50000000,20000000,1032448,0," OUTPUT_BYTES "\n");
  cr_expect(svg_find_text(svg, "tensor 50 %"));
  cr_expect(svg_find_text(svg, "exp 40 %"));
  cr_expect(svg_find_text(svg, "shared 30 %"));
  cr_expect(svg_find_text(svg, "issue 20 %"));
  cr_expect(svg_find_text(svg, "DRAM 60 %"));
  cr_expect(svg_find_text(svg, "shared 70 %"));
  cr_expect_eq(svg_count_text(svg, "1.50 ms"), 6);
  cr_expect(svg_find_text(svg, "tensor 00") && svg_find_text(svg, "async 05"), "the stages' names");
  cr_expect(svg_find_text(svg, "132 SMs at 1234 MHz (the highest), 4.28 TB/s, 2001-02-03, "
                               "median of 17 runs"));
  expect_no_overlap(svg);
  free(svg);
}

// At half the clock the same work takes twice as long, but that of device memory.
Test(plots, a_roofline_at_the_clock_that_ran) {
  scratch_write(
      "data.csv",
      "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,repeats,tflops,"
      "clock_mhz\n"
      "00-tensor,GPU,1234,1,2,2001-02-03,4,32,4096,64,0,1.5,17,1,617\n"
      "01-exp,GPU,1234,1,2,2001-02-03,4,32,4096,64,0,1.5,17,1,1234\n"
      "04-memory,GPU,1234,1,2,2001-02-03,4,32,4096,64,0,1.5,17,1,617\n");
  scratch_write("work.csv", WORK_HEADER "00-tensor,1,1,4096,64,0,1563725004,0,0,0,0,0,0,0,0,0," OUTPUT_BYTES ",0\n"
                                        "01-exp,1,1,4096,64,0,0,381769,0,0,0,0,0,0,0,0," OUTPUT_BYTES ",0\n"
                                        "04-memory,1,1,4096,64,0,0,0,0,0,0,0,0,0,0,0,14522587,0\n");
  char *svg = drawn_svg(scratch_run("gnuplot -c \"$ROOT\"/plots/roofline.gp data.csv work.csv drawn"));
  cr_expect(svg_find_text(svg, "tensor 40 %"));
  cr_expect(svg_find_text(svg, "exp 40 %"));
  cr_expect(svg_find_text(svg, "DRAM 60 %"));
  cr_expect(svg_find_text(svg, "132 SMs at 617-1234 MHz (measured), 4.28 TB/s, 2001-02-03, "
                               "median of 17 runs"));
  free(svg);
}

// Ten stages: nothing overlaps. Work of more than the whole time is no error: the counts or the clock are then wrong.
Test(plots, a_full_roofline) {
  char *rows = full_recording(), *work = calloc(1, 10000), *end = work;
  for (int i = 0; i < 40; i++) {
    char stage[60];
    const char *at = rows;
    for (int skipped = 0; skipped < i / 4 * 24; skipped++) at = strchr(at, '\n') + 1;
    snprintf(stage, sizeof stage, "%.*s", (int)strcspn(at, ","), at);
    end += sprintf(end, "%s,1,1,4096,%d,%d,%lld,0,%d,0,0,0,0,0,0,0,%d,0\n", stage, i % 4 < 2 ? 64 : 128, i % 2,
                   100000000LL * i, 5000000, 1 << 20);
  }
  char *svg = roofline_svg(rows, work);
  expect_no_overlap(svg);
  cr_expect(svg_find_text(svg, "warp-specialization 07"));
  cr_expect(svg_find_text(svg, "head dim 64, no mask") && svg_find_text(svg, "head dim 128, causal mask"));
  free(svg);
  free(rows);
  free(work);
}

Test(plots, a_roofline_of_nothing) {
  static const char work[] = "01-exp,1,1,4096,64,0,0,1,0,0,0,0,0,0,0,0," OUTPUT_BYTES ",0\n";
  cr_expect_eq(draw_roofline(ROW("00-scalar", USUAL, "1"), work), 1);
  expect_line("roofline.gp", "no stage has both a time at sequence length 4096 in data.csv and its work in work.csv");
  cr_expect_eq(draw_roofline(ROW("01-exp", "4,32,4096,64,1", "1"), work), 1, "the other mask");
  expect_line("roofline.gp", "no stage has both");
  cr_expect_eq(draw_roofline("", work), 1);
  expect_line("roofline.gp", "no recorded data in data.csv; on a Hopper GPU, make bench records it");
  cr_expect_eq(draw_roofline(ROW("01-exp", USUAL, "1"), ""), 1);
  expect_line("roofline.gp", "no recorded data in work.csv; make counters records it");
  cr_expect_eq(scratch_run("gnuplot -c \"$ROOT\"/plots/roofline.gp data.csv data.csv drawn"), 1);
  expect_line("roofline.gp", "data.csv has no column smsp__inst_executed.sum");
  cr_expect_eq(scratch_run("gnuplot -c \"$ROOT\"/plots/roofline.gp data.csv drawn"), 2);
  expect_line("roofline.gp", "usage:");
}

// ---- the ratios on other inputs ----

#define INPUTS_HEADER                                                                                                  \
  "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,min_ms,max_ms,repeats,"     \
  "tflops,mode,input\n"
#define INPUT_ROW(stage, shape, tflops, input)                                                                         \
  stage ",Test GPU,1234,1.2,3.4,2001-02-03T04:05:06Z," shape ",1.5,1.4,1.6,17," tflops ",cold," input "\n"

// Draws the ratios of rows, which must go well, and returns the SVG's text. The caller frees it.
static char *draw_inputs(const char *rows) {
  char *text = malloc(sizeof INPUTS_HEADER + strlen(rows));
  sprintf(text, INPUTS_HEADER "%s", rows);
  int status = draw_text("inputs.gp", text, "");
  free(text);
  return drawn_svg(status);
}

// Of the last stage, whatever the rows' order, on problems that cuDNN has too: 4 and 1 times as fast, in the mean 2.
Test(plots, mean_and_least_ratio_of_each_input) {
  char *svg = draw_inputs(
      INPUT_ROW("10-late-max", USUAL, "400", "sink") INPUT_ROW("09-persistent", USUAL, "1100", "sink")
          INPUT_ROW("cuDNN", USUAL, "100", "sink") INPUT_ROW("cuDNN", "16,16,1024,128,1", "50", "sink")
              INPUT_ROW("10-late-max", "16,16,1024,128,1", "50", "sink") INPUT_ROW("10-late-max", USUAL, "70", "mine")
                  INPUT_ROW("cuDNN", USUAL, "100", "mine") INPUT_ROW("10-late-max", USUAL, "77", "alone")
                      INPUT_ROW("10-late-max", "8,32,2048,64,0", "9000", "sink"));
  cr_expect(svg_find_text(svg, "Stage 10 late-max on other inputs, on one Test GPU"));
  cr_expect(svg_find_text(svg, "SM at most 1234 MHz, driver 1.2, CUDA 3.4, 2001-02-03, median of 17 runs"));
  cr_expect(svg_find_text(svg, "sink") && svg_find_text(svg, "mine") && !svg_find_text(svg, "alone"));
  const SvgText *found = svg_find_text(svg, "2.00");
  cr_assert(found, "the geometric mean");
  double mean = found->y;
  found = svg_find_text(svg, "1.00");
  cr_assert(found, "the least");
  cr_expect_float_eq(found->y, mean, 1, "beside each other");
  cr_expect_eq(svg_count_text(svg, "0.70"), 2, "of one problem both are the same");
  cr_expect(svg_find_text(svg, "0.70")->y > mean, "in the file's order");
  free(svg);
}

// All inputs on all problems: nothing overlaps. Sustained runs are not drawn.
Test(plots, a_full_picture_of_inputs) {
  static const char *const inputs[] = {"normal", "large", "sink", "ramp", "rampdown", "waves"};
  char *rows = calloc(1, 200000), *end = rows;
  for (int i = 0; i < 6 * 24 * 4; i++) {
    int problem = i / 4 % 24, seqlen = 512 << problem % 6, head_dim = problem < 12 ? 64 : 128;
    double tflops = i % 4 == 0 ? 100 : i % 4 == 1 ? 85 + i % 53 : 300;
    end += sprintf(end, "%s,NVIDIA H200,1980,580.159.04,13.0,2001-02-03T04:05:06Z,%d,%d,%d,%d,%d,1,1,1,17,%.3f,%s,%s\n",
                   i % 4 == 0   ? "cuDNN"
                   : i % 4 == 2 ? "09-persistent"
                                : "10-late-max",
                   16384 / seqlen, 2048 / head_dim, seqlen, head_dim, problem / 6 % 2, tflops,
                   i % 4 == 3 ? "sustained" : "cold", inputs[i / 96]);
  }
  char *svg = draw_inputs(rows);
  expect_no_overlap(svg);
  for (int i = 0; i < 6; i++) cr_expect(svg_find_text(svg, inputs[i]), "%s", inputs[i]);
  cr_expect(svg_find_text(svg, "head dim 64, no mask") && svg_find_text(svg, "head dim 128, causal mask"));
  cr_expect(!svg_find_text(svg, "3.00"));
  free(svg);
  free(rows);
}

Test(plots, inputs_of_nothing) {
  cr_expect_eq(draw_text("inputs.gp", INPUTS_HEADER INPUT_ROW("cuDNN", USUAL, "1", "sink"), ""), 1);
  expect_line("inputs.gp", "data.csv has no problem on which both a stage and cuDNN were timed");
  cr_expect_eq(draw_text("inputs.gp", INPUTS_HEADER, ""), 1);
  expect_line("inputs.gp", "make peers OPTIONS='--inputs=all --stages=10' records it");
  cr_expect_eq(draw("inputs.gp", ROW("00-scalar", USUAL, "1"), ""), 1);
  expect_line("inputs.gp", "data.csv has no column mode");
  cr_expect_eq(draw_file("inputs.gp", "data.csv", "7"), 2);
  expect_line("inputs.gp", "usage:");
}

// ---- mistakes: one line each ----

static const char *const scripts[] = {"ladder.gp", "seqlen.gp", "timeline.gp"};
enum { SCRIPTS = sizeof scripts / sizeof *scripts };

Test(plots, nothing_to_draw_is_one_line) {
  static const char *const parts[] = {"no row of a stage with batch 4, 32 heads, sequence length 4096",
                                      "no row with batch x sequence length = 16384"};
  for (int i = 0; i < 2; i++) {
    cr_expect_eq(draw(scripts[i], ROW("00-scalar", "1,1,64,64,0", "1.75"), ""), 1);
    expect_line(scripts[i], parts[i]);
  }
}

// A ladder needs a rung.
Test(plots, peers_alone_are_no_ladder) {
  cr_expect_eq(draw("ladder.gp", ROW("cuDNN", USUAL, "1.75"), ""), 1);
  expect_line("ladder.gp", "no row of a stage with");
}

Test(plots, a_missing_file_is_one_line) {
  for (int i = 0; i < SCRIPTS; i++) {
    cr_expect_eq(draw_file(scripts[i], "none.csv", ""), 1);
    expect_line(scripts[i], i < 2 ? "none.csv; on a Hopper GPU, make bench records it"
                                  : "none.csv; on a Hopper GPU, make trace-NN records it");
    cr_expect_eq(draw_text(scripts[i], "", ""), 1, "an empty file");
    expect_line(scripts[i], "no recorded data in");
    cr_expect_eq(draw_text(scripts[i], i < 2 ? header : TRACE_HEADER, ""), 1, "a header alone");
    expect_line(scripts[i], "no recorded data in");
  }
}

// A file's name is a name, whatever it means to a shell or to gnuplot, and so is that of the picture.
Test(plots, names_are_no_commands) {
  static const char *const names[] = {
      "it's $(touch found) `touch found`", "< touch found", "|touch found", "-", "$rungs", "a=b \"c\""};
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
    char name[100], command[300];
    snprintf(name, sizeof name, "%s.csv", names[i]);
    char *text = malloc(sizeof header + 1000);
    sprintf(text, "%s" ROW("00-scalar", USUAL, "1.75"), header);
    scratch_write(name, text);
    scratch_write("name", names[i]);
    free(text);
    snprintf(command, sizeof command,
             "name=$(cat name); for script in ladder seqlen; do "
             "gnuplot -c \"$ROOT\"/plots/$script.gp \"$name.csv\" \"$name\" && "
             "[ -s \"./$name.svg\" ] && rm \"./$name.svg\" || exit; done; [ ! -e found ]");
    cr_expect_eq(scratch_run(command), 0, "%s: %s", names[i], scratch_output);
  }
}

Test(plots, a_missing_column_is_named) {
  for (int i = 0; i < SCRIPTS; i++) {
    cr_expect_eq(draw_text(scripts[i], "stage,device,sm_clock_mhz,driver,cuda,date\n00-scalar,a,1,2,3,4\n", ""), 1);
    expect_line(scripts[i], i < 2 ? "has no column batch; its first line must name stage device"
                                  : "has no column block; its first line must name stage device");
    cr_expect_eq(draw_text(scripts[i], "not a recording at all\n\n\1\2", ""), 1);
    expect_line(scripts[i], "has no column stage");
  }
}

// What an interrupted recording leaves.
Test(plots, half_a_row_is_one_line) {
  for (int i = 0; i < SCRIPTS; i++) {
    cr_expect_eq(i < 2 ? draw(scripts[i], ROW("00-scalar", USUAL, "1.75") "01-wmma-qk,Test GPU\n", "")
                       : draw_text(scripts[i], TRACE_HEADER PHASE(0, 0, "all", "QK", 10, 20, 0) "07-x,Test GPU\n", ""),
                 1);
    expect_line(scripts[i], i < 2 ? "data.csv, line 3: 2 fields, its header has 16"
                                  : "data.csv, line 3: 2 fields, its header has 10");
  }
}

Test(plots, wrong_use_exits_2) {
  for (int i = 0; i < SCRIPTS; i++) {
    cr_expect_eq(draw(scripts[i], ROW("00-scalar", USUAL, "1.75"), i < 2 ? "4 32 1" : "4"), 2);
    expect_line(scripts[i], "usage:");
  }
}
