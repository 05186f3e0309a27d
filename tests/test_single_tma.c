// Stage 05b, one TMA load: right at every place; --explain shows the bytes where the rules have them; wrong kernels and
// wrong options are told apart. The suite gpu_single_tma does the same on a GPU.
#define _GNU_SOURCE  // realpath
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/scratch.h"

TestSuite(single_tma, .timeout = 100);
TestSuite(gpu_single_tma, .timeout = 100);

static Output *load_boxes_with(const char *options, int code) {
  Output *output = run_line("stage-05b", options);
  cr_expect_eq(output->code, code, "%s: exit code %d\n%s%s", options, output->code, output->out, output->err);
  return output;
}

static void all_chunks_are_right(const char *options) {
  Output *output = load_boxes_with(options, 0);
  cr_expect(strstr(output->out, "\nresult    right: all 12,240 chunks of 16 bytes "), "%s: %s", options, output->out);
  cr_expect(strstr(output->out, "an mbarrier alone: all 14 waits are as they should be\n"), "%s: %s", options,
            output->out);
  free(output);
}

Test(single_tma, every_box_is_right) {
  char options[100];
  for (int seed = 0; seed < 12; seed++) {
    snprintf(options, sizeof options, "--strict --seed=%d --schedule=%d", seed, seed % 4);
    all_chunks_are_right(options);
  }
}

// ---- --explain ----

// Whether these lines stand in what the program prints, one after another.
static void explains(const char *options, const char *lines) {
  Output *output = load_boxes_with(options, 0);
  cr_expect(strstr(output->out, lines), "%s: no\n%sin\n%s", options, lines, output->out);
  free(output);
}

// Chunk c of row r of the box is at place c ^ r % 8, c ^ r / 2 % 4, c ^ r / 4 % 2.
Test(single_tma, explains_where_chunks_lie) {
  explains("--device=emulator --box=64x4 --at=8,7,1",
           "    0x0400  r7 c8 m1   r7 c16 m1  r7 c24 m1  r7 c32 m1  r7 c40 m1  r7 c48 m1  r7 c56 m1  r7 c64 m1\n"
           "    0x0480  r8 c16 m1  r8 c8 m1   r8 c32 m1  r8 c24 m1  r8 c48 m1  r8 c40 m1  r8 c64 m1  r8 c56 m1\n"
           "    0x0500  r9 c24 m1  r9 c32 m1  r9 c8 m1   r9 c16 m1  r9 c56 m1  r9 c64 m1  r9 c40 m1  r9 c48 m1\n");
  explains("--device=emulator --swizzle=64B --box=32x4",
           "    0x0400  r0 c0      r0 c8      r0 c16     r0 c24     r1 c0      r1 c8      r1 c16     r1 c24\n"
           "    0x0480  r2 c8      r2 c0      r2 c24     r2 c16     r3 c8      r3 c0      r3 c24     r3 c16\n");
  explains("--device=emulator --swizzle=32B --box=16x8",
           "    0x0400  r0 c0      r0 c8      r1 c0      r1 c8      r2 c0      r2 c8      r3 c0      r3 c8\n"
           "    0x0480  r4 c8      r4 c0      r5 c8      r5 c0      r6 c8      r6 c0      r7 c8      r7 c0\n");
  explains("--device=emulator --swizzle=none --box=24x3",
           "    0x0400  r0 c0      r0 c8      r0 c16     r1 c0      r1 c8      r1 c16     r2 c0      r2 c8\n"
           "    0x0480  r2 c16\n");
}

Test(single_tma, explains_what_lies_outside) {
  explains("--device=emulator --swizzle=none --box=24x3 --at=-8,18,0 --fill=nan",
           "    TMA reads 64 bytes of the tensor and fills 80. The mbarrier counts 144.\n");
  explains("--device=emulator --swizzle=none --box=24x3 --at=-8,18,0 --fill=nan",
           "    0x0400  NaN        r18 c0     r18 c8     NaN        r19 c0     r19 c8     NaN        NaN\n"
           "    0x0480  NaN\n");
  explains("--device=emulator --swizzle=none --box=8x2 --at=0,0,2",
           "    TMA reads 0 bytes of the tensor and fills 32. The mbarrier counts 32.\n");
}

Test(single_tma, refuses_what_is_no_box) {
  static const struct {
    const char *options, *error;
  } cases[] = {
      {"--box=64", "--box=64: columns and rows are wanted: --box=64x8\n"},
      {"--box=64x8x1", "--box=64x8x1: columns and rows are wanted"},
      {"--swizzle=none --box=12x8", "a row of a box is a multiple of 16 bytes: 8 columns\n"},
      {"--swizzle=none --box=128x257", "1 to 256 elements in each dimension\n"},
      {"--swizzle=none --box=256x256", "the tile has 32 KiB\n"},
      {"--box=32x8", "here a box is as wide as its swizzle"},
      {"--swizzle=16B", "--swizzle=16B: one of none|32B|64B|128B is allowed\n"},
      {"--at=1,2", "--at=1,2: column, row and matrix are wanted"},
      {"--fill=one", "--fill=one: one of zero|nan is allowed\n"},
      {"--input=ones", "--input: here the tensor's elements are numbers that show their place\n"},
      {"--seqlen=64", "is not an attention kernel"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Output *output = load_boxes_with(cases[i].options, 2);
    cr_expect(strstr(output->err, cases[i].error), "%s: %s", cases[i].options, output->err);
    cr_expect_str_empty(output->out, "%s: %s", cases[i].options, output->out);
    free(output);
  }
}

// The rule of 16 bytes: the emulator stops the launch, as an H200 does.
Test(single_tma, stops_at_an_odd_column) {
  Output *output = load_boxes_with("--device=emulator --at=4,0,0", 1);
  cr_expect(strstr(output->out, "misaligned access: the innermost coordinate 4 times 2 bytes"), "%s", output->out);
  free(output);
}

// ---- kernels that were broken on purpose ----

Test(single_tma, sees_wrong_kernels, .init = scratch_enter, .fini = scratch_leave) {
  static const struct {
    const char *edit, *report;
  } cases[] = {
      {"s/1, 0, complete;/0, 1, complete;/", "an mbarrier alone: 14 of 14 waits are not as they should be"},
      {"s/\\(mbarrier.init.shared::cta.b64 .*\\), %r[0-9]*;/\\1, 2;/", "deadlock"},
      {"/bar.sync/d", "race"},
      {"s/, {\\(%r[0-9]*\\), \\(%r[0-9]*\\), \\(%r[0-9]*\\)}/, {\\1, \\3, \\2}/",
       "WRONG: 3,768 of 12,240 chunks of 16 bytes differ"},
  };
  char command[6000], path[5000];
  snprintf(command, sizeof command, "%s/kernels/05b-single-tma.ptx", getenv("BUILT") ? getenv("BUILT") : "build");
  cr_assert(realpath(command, path), "%s", command);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(command, sizeof command, "sed '%s' '%s' >edited.ptx && \"$ROOT\"/stage-05b --ptx=edited.ptx",
             cases[i].edit, path);
    cr_expect_eq(scratch_run(command), 1, "%s: %s", cases[i].edit, scratch_output);
    cr_expect(strstr(scratch_output, cases[i].report), "%s: no %s in %s", cases[i].edit, cases[i].report,
              scratch_output);
  }
}

// ---- on a GPU ----

static void where_there_is_a_gpu(void) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
}

Test(gpu_single_tma, every_box_is_right, .init = where_there_is_a_gpu) {
  char options[100];
  for (int seed = 0; seed < 40; seed++) {
    snprintf(options, sizeof options, "--device=gpu --repeat=0 --seed=%d", seed);
    all_chunks_are_right(options);
  }
}

// The bytes lie alike on both devices, and the waits end alike.
Test(gpu_single_tma, explains_the_same, .init = where_there_is_a_gpu) {
  static const char *const boxes[] = {"--explain", "--swizzle=64B --at=-8,17,1 --fill=nan",
                                      "--swizzle=32B --at=64,16,0", "--swizzle=none --box=40x9 --at=40,-4,1",
                                      "--at=0,0,2 --fill=nan"};
  for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
    char options[2][100];
    snprintf(options[0], sizeof *options, "--device=gpu %s", boxes[i]);
    snprintf(options[1], sizeof *options, "--device=emulator %s", boxes[i]);
    Output *gpu = load_boxes_with(options[0], 0), *emulator = load_boxes_with(options[1], 0);
    char *one = strstr(gpu->out, "\n1. "), *other = strstr(emulator->out, "\n1. ");
    cr_assert(one && other);
    char *end = strstr(other, "\nhazards");
    cr_assert(end);
    cr_expect(!strncmp(one, other, (size_t)(end - other)), "%s:\n%s", boxes[i], one);
    free(gpu);
    free(emulator);
  }
}

// A load takes longer from memory than from L2, and longer than its issue.
Test(gpu_single_tma, measures, .init = where_there_is_a_gpu) {
  Output *output = load_boxes_with("--device=gpu --csv=-", 0);
  int issue, l2, memory;
  const char *words[] = {",issue,8192,", ",l2,8192,", ",memory,8192,"};
  int *const numbers[] = {&issue, &l2, &memory};
  for (int i = 0; i < 3; i++) {
    const char *row = strstr(output->out, words[i]);
    cr_assert(row && sscanf(row + strlen(words[i]), "%d", numbers[i]) == 1, "%s", output->out);
  }
  cr_expect(0 < issue && issue < l2 && l2 < memory && memory < 20000, "%d %d %d", issue, l2, memory);
  free(output);
}
