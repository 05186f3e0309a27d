// Stage 04, one wgmma: every form is right; --explain says what the PTX ISA says; wrong kernels and wrong descriptors
// are told apart. The suite gpu_stages has what only a GPU can show.
#define _GNU_SOURCE  // memmem
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/program.h"

TestSuite(single_wgmma, .timeout = 100);

static const char STAGE[] = "stage-04";
static const char *const inputs[] = {"normal", "ones", "arange", "large", "identity"};
enum { INPUTS = sizeof inputs / sizeof *inputs };

static Output *run_expecting(const char *options, int code) {
  Output *output = run_line(STAGE, options);
  cr_expect_eq(output->code, code, "%s: exit code %d\n%s%s", options, output->code, output->out, output->err);
  return output;
}

static void expect_text(const Output *output, const char *options, const char *text) {
  cr_expect(strstr(output->out, text), "%s: no \"%s\" in\n%s", options, text, output->out);
}

// ---- results ----

static void expect_right(const char *options) {
  Output *output = run_expecting(options, 0);
  expect_text(output, options, "\nresult    right: none of 524,288 numbers differ");
  expect_text(output, options, "one after another: none of 385,024 numbers differ\n");
  cr_expect(!strstr(output->out, "of these with swizzle"), "%s: a table of nothing in\n%s", options, output->out);
  free(output);
}

Test(single_wgmma, every_form_is_right) {
  char options[100];
  for (int i = 0; i < INPUTS; i++) {
    snprintf(options, sizeof options, "--device=emulator --input=%s --seed=%d", inputs[i], i + 2);
    expect_right(options);
  }
  for (int schedule = 1; schedule <= 4; schedule++) {
    snprintf(options, sizeof options, "--schedule=%d", schedule);
    expect_right(options);
    Output *output = run_line(STAGE, options);
    expect_text(output, options, "\nhazards   none\n");
    free(output);
  }
}

// The error against fp64, which the model of the tensor core has no part in: what was asked for is far away.
Test(single_wgmma, error_against_fp64) {
  Output *output = run_expecting("--device=emulator", 0);
  const char *line = strstr(output->out, "against fp64: max error ");
  double max, mean;
  cr_assert(line && sscanf(line, "against fp64: max error %lf %*[^)]), mean error %lf", &max, &mean) == 2, "%s",
            output->out);
  cr_expect(max > 0 && max < 1e-2 / 1000 && mean > 0 && mean < 1e-3 / 1000, "%g %g", max, mean);
  free(output);
}

// The swizzles differ for those who write the tiles: 8, 4 and 2 chunks of a line meet in the same banks, or none.
Test(single_wgmma, bank_conflicts_by_swizzle) {
  Output *output = run_expecting("--device=emulator", 0);
  // 16 launches of each swizzle: 4 slices, 2 tiles, 512 chunks, 8 of them at a time
  expect_text(output, "", "stores that fill the tiles: none 28,672, 32B 12,288, 64B 4,096, 128B 0\n");
  free(output);
}

// ---- kernels that were broken on purpose ----

// Runs the stage on its own PTX after an edit of sed.
static Output *run_edited(const char *edit) {
  char path[] = "/tmp/hopper-ladder-ptx-XXXXXX", ptx[1000], command[3000], line[200];
  int file = mkstemp(path);
  cr_assert(file >= 0);
  close(file);
  snprintf(ptx, sizeof ptx, "%s/kernels/04-single-wgmma.ptx", getenv("BUILT") ? getenv("BUILT") : "build");
  snprintf(command, sizeof command, "sed '%s' '%s' >%s && ! cmp -s '%s' %s", edit, ptx, path, ptx, path);
  cr_assert_eq(system(command), 0, "%s: changes nothing", edit);
  snprintf(line, sizeof line, "--ptx=%s", path);
  Output *output = run_line(STAGE, line);
  unlink(path);
  return output;
}

// D is full of NaN before D = A B. Where it counts, every number is NaN, and so are the errors.
Test(single_wgmma, nan_is_the_largest_error) {
  Output *output = run_edited("s/setp.ne.b32 accumulate, %r[0-9]*, 0/setp.ne.b32 accumulate, 1, 0/");
  expect_text(output, "", "against fp64: max error nan (limit 0.01), mean error nan (limit 0.001)\n");
  free(output);
}

Test(single_wgmma, mistakes_are_seen) {
  static const struct {
    const char *edit, *result, *hazard;
  } cases[] = {
      {"/wgmma.fence/d", "right", "missing wgmma.fence"},
      {"/fence.proxy.async/d", "right", "missing proxy fence"},
      {"/wgmma.wait_group/d", "WRONG", "register touched in flight"},
      {"/wgmma.commit_group/d", "WRONG", "register touched in flight"},
      {"/bar.sync/d", "right", "read before wait\nuninitialised read\nshared-memory race"},  // wrong in others
      {"s/setp.ne.b32 accumulate, %r[0-9]*, 0/setp.ne.b32 accumulate, 1, 0/", "WRONG", NULL},  // D of before counts
      {"/m64n64k16/s/accumulate, 1, 1, 0, 0;/accumulate, 1, 1, 0, 1;/", "WRONG",
       "bad descriptor"},                                                      // B is read as N-major
      {"s/accumulate, 1, 1, 0, 0;/accumulate, 1, -1, 0, 0;/", "WRONG", NULL},  // A is negated
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Output *output = run_edited(cases[i].edit);
    char result[40];
    snprintf(result, sizeof result, "result    %s: ", cases[i].result);
    cr_expect_eq(output->code, 1, "%s: exit code %d\n%s", cases[i].edit, output->code, output->out);
    expect_text(output, cases[i].edit, result);
    bool named = !cases[i].hazard;
    for (const char *name = cases[i].hazard; name; name = strchr(name, '\n') ? strchr(name, '\n') + 1 : NULL)
      named |= memmem(output->out, strlen(output->out), name, strcspn(name, "\n")) != NULL;
    cr_expect(named, "%s: not named %s:\n%s", cases[i].edit, cases[i].hazard, output->out);
    if (!cases[i].hazard) expect_text(output, cases[i].edit, "\nhazards   none\n");
    free(output);
  }
}

// The operand list of old notes: a fourth operand, accumulators to start from.
Test(single_wgmma, a_fourth_operand_is_refused) {
  Output *output = run_edited("s/\\(m64n64k16[^{]*\\)\\({[^}]*}\\)\\(.*\\), accumulate.*/\\1\\2\\3, \\2;/");
  cr_expect_eq(output->code, 2, "exit code %d", output->code);
  cr_expect(strstr(output->err, "PTX line ") && strstr(output->err, "wgmma.mma_async"), "%s", output->err);
  free(output);
}

// ---- --explain ----

// Descriptors as the PTX ISA's figures give them: for 64 lines of 64 numbers, at byte 1024 and 9216 of shared memory.
Test(single_wgmma, explains_its_descriptors) {
  static const char *const lines[] = {
      "  A, K-major                   none                 32B                 64B                128B\n"
      "    bits         0x0000004000080040  0xc000001000010040  0x8000002000010040  0x4000004000010040\n"
      "    start                    0x0400              0x0400              0x0400              0x0400\n"
      "    leading                     128                  16                  16                  16\n"
      "    stride                     1024                 256                 512                1024\n"
      "    base offset                   0                   0                   0                   0\n"
      "    swizzle                       0                   3                   2                   1\n"
      "    slice 1            start 0x0500        start 0x0c00        start 0x0420        start 0x0420\n",
      "    bits         0x0000004000080240  0xc000001000010240  0x8000002000010240  0x4000004000010240\n",
      "    bits         0x0000000800400240  0xc000001000800240  0x8000002001000240  0x4000004002000240\n",
      "    slice 3            start 0x3c00        start 0x2a00        start 0x3000        start 0x3c00\n",
      "    bits 62-63  swizzle         1  128 bytes",
      "    bits  0-13  start          64  x 16 = byte 0x0400",
  };
  Output *output = run_expecting("--device=emulator --explain", 0);
  cr_expect_str_empty(output->err);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) expect_text(output, "--explain", lines[i]);
  free(output);
}

// Where a chunk of 16 bytes lies: `line` is its row of A, its column of a K-major B, its row of an N-major B.
static unsigned place(unsigned tile, unsigned width, unsigned line, unsigned chunk) {
  if (!width) return tile + line / 8 * 1024 + chunk * 128 + line % 8 * 16;
  unsigned chunks = width / 16, exchange = line / (128 / width) % chunks;  // lines of 128 bytes are numbered
  return tile + chunk / chunks * 64 * width + line * width + (chunk % chunks ^ exchange) * 16;
}

// Compares the eight cells of a map's row. Returns how many hold something.
static int compare_cells(const char *row, bool n_major, unsigned tile, unsigned width) {
  unsigned address = (unsigned)strtoul(row, NULL, 16), first, second;
  int cells = 0;
  size_t length = strcspn(row + 4, "\n") + 4;
  for (size_t i = 0; i < 8 && 12 + 9 * i < length; i++) {
    char letters[2];
    if (sscanf(row + 12 + 9 * i, "%c%u %c%u", &letters[0], &first, &letters[1], &second) != 4) continue;
    unsigned expected = place(tile, width, first, second / 8);
    cr_expect_eq(address + 16 * i, expected, "%c%u %c%u at 0x%zx, not 0x%x", letters[0], first, letters[1], second,
                 address + 16 * i, expected);
    cr_expect(n_major ? letters[0] == 'k' && letters[1] == 'n' : letters[1] == 'k');
    cells++;
  }
  return cells;
}

Test(single_wgmma, maps_are_those_of_the_ptx_isa) {
  Output *output = run_expecting("--device=emulator --explain", 0);
  int cells[2][4] = {{0}};
  bool n_major = false;
  unsigned width = 0;
  for (char *rest = output->out, *line; (line = strsep(&rest, "\n"));) {
    char matrix, major, swizzle[8];
    if (sscanf(line, " %c, %c-major, swizzle %7[^,], slice 0", &matrix, &major, swizzle) == 3) {
      n_major = matrix == 'B';
      width = (unsigned)atoi(swizzle);
    }
    if (!strncmp(line, "    0x", 6))
      cells[n_major][width ? width / 32 - width / 128 : 0] +=
          compare_cells(line, n_major, n_major ? 0x2400 : 0x400, width);
  }
  // Eight rows of 128 bytes each; of a slice of lines 64B and 128B have a half and a quarter.
  static const int expected[2][4] = {{64, 64, 32, 16}, {64, 64, 64, 64}};
  cr_expect_arr_eq(cells, expected, sizeof expected);
  free(output);
}

// Accumulators as the PTX ISA's figure has them.
Test(single_wgmma, explains_who_holds_d) {
  Output *output = run_expecting("--device=emulator --explain", 0);
  expect_text(output, "",
              "    row 0    t0 d[0] d[1]    t1 d[0] d[1]    t2 d[0] d[1]    t3 d[0] d[1]    t0 d[4] d[5]\n");
  expect_text(output, "",
              "    row 15   t28 d[2] d[3]   t29 d[2] d[3]   t30 d[2] d[3]   t31 d[2] d[3]   t28 d[6] d[7]\n");
  free(output);
}

Test(single_wgmma, explains_any_descriptor) {
  static const struct {
    const char *bits;
    int code;
    const char *says, *also;
  } cases[] = {
      {"0x4000004000010040", 0, "for A, 64 rows: right\n    for B, N columns: right up to N = 256\n",
       "right up to N = 64"},
      {"0X4000004000010040", 0, "for A, 64 rows: right", "leading    16 bytes: not looked at"},
      {"4611686293305360448", 0, "The descriptor 0x4000004000010040", "byte 0x0400"},
      {"0x4000004002000240", 0, "to the next panel, 64 wide", "k0 m8"},
      {"0x0000004000080040", 0, "leading   128 bytes: to the next 8 along K", "m0 k8"},
      // (address & 0x1ffff) | (bytes / 8) << 32 | 1 << 46, found in old notes
      {"0x0000401000000400", 1, "bit 46 set", "for A, 64 rows: WRONG: parts of the matrix share memory"},
      {"0x4000004000014400", 1, "the start address was not divided by 16", "bits 14-15 are set"},
      {"0x0000004080000040", 1, "the leading byte offset was not divided by 16", "bits 30-31 are set: the leading"},
      {"0x4010004000010040", 0, "fields of tcgen05", "reserved bits are set"},
      {"0x4000004000010048", 0, "its swizzle pattern: 0x480 is 128 bytes past a multiple of 1024", "stride   1024"},
      {"0x4002004000010040", 1, "a base offset is set", "begins at another row"},
      {"0x0000004000080020", 1, "the first 1024 bytes of shared memory", "0x0200"},
      {"0x4000004000013f00", 1, "past the end of shared memory", "byte 0x3f000"},
      {"0x0000000000000040", 1, "share memory: the leading byte offset is 0", "WRONG for every N"},
      {"0x4000000800010040", 0, "share memory: the stride byte offset is 128", "right up to N = 8;"},
      {"0x0000000800100040", 0, "with a leading byte offset of 256 and a stride of 128 (are they exchanged?)",
       "N = 16;"},
      {"0x0000000800080040", 0, "with a leading byte offset of 128 and a stride of 128\n", "right up to N = 8;"},
      {"0", 1, "share memory", "0x0000000000000000"},
      {"0xffffffffffffffff", 1, "bits 46-48 are set", "bits 62-63  swizzle         3"},
  };
  char options[100];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(options, sizeof options, "--explain=%s", cases[i].bits);
    Output *output = run_expecting(options, cases[i].code);
    expect_text(output, options, cases[i].says);
    expect_text(output, options, cases[i].also);
    free(output);
  }
}

Test(single_wgmma, refuses_what_is_no_descriptor) {
  static const char *const wrong[] = {"--explain=zz",  "--explain=0x",   "--explain=0x12345678123456789",
                                      "--explain=-1",  "--explain=+1",   "--explain=18446744073709551616",
                                      "--explain= 1",  "--explain=1 ",   "--explain=0x1g",
                                      "--explain=1e5", "--explain=0x 1", "--explain=1\n2"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Output *output = run_program(STAGE, (const char *const[]){wrong[i], NULL});
    cr_expect_eq(output->code, 2, "%s: exit code %d", wrong[i], output->code);
    cr_expect_str_empty(output->out, "%s: %s", wrong[i], output->out);
    cr_expect(strstr(output->err, "not a descriptor; 0x0 to 0xffffffffffffffff is allowed\n"), "%s", output->err);
    cr_expect_eq(strchr(output->err, '\n') - output->err + 1, (long)strlen(output->err), "one line: %s", output->err);
    free(output);
  }
}

Test(single_wgmma, has_no_options_of_attention) {
  Output *output = run_expecting("--seqlen=64", 2);
  cr_expect(strstr(output->err, "stage-04: --seqlen: ") && strstr(output->err, "not an attention kernel"), "%s",
            output->err);
  free(output);
}

// ---- on a GPU ----

TestSuite(gpu_single_wgmma, .timeout = 300);

static void gpu_only(void) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
}

Test(gpu_single_wgmma, every_form_is_right, .init = gpu_only) {
  char options[100];
  for (int i = 0; i < 4 * INPUTS; i++) {
    snprintf(options, sizeof options, "--device=gpu --repeat=0 --input=%s --seed=%d", inputs[i % INPUTS], i + 1);
    expect_right(options);
  }
}

// The kernels make the same descriptors on both devices, hence the same explanation.
Test(gpu_single_wgmma, explains_the_same, .init = gpu_only) {
  Output *gpu = run_expecting("--device=gpu --explain", 0), *emulator = run_expecting("--device=emulator --explain", 0);
  const char *one = strstr(gpu->out, "\n1. "), *other = strstr(emulator->out, "\n1. ");
  cr_assert(one && other);
  cr_expect_str_eq(one, other);
  free(gpu);
  free(emulator);
}

// The fewest clocks of an SM for one wgmma of a shape, with any number of warpgroups; *bound: the least possible.
static double fewest_clocks(const char *csv, int n, const char *a, double *bound) {
  double fewest = -1;
  char wanted[64];
  snprintf(wanted, sizeof wanted, ",throughput,%d,%s,", n, a);
  for (const char *row = csv; (row = strstr(row, wanted)); row++) {
    double clocks;
    cr_assert_eq(sscanf(row + strlen(wanted), "%*d,%lf,%lf", &clocks, bound), 2, "%s", row);
    if (fewest < 0 || clocks < fewest) fewest = clocks;
  }
  cr_assert(fewest > 0, "no row %s in\n%s", wanted, csv);
  return fewest;
}

// Other tests share the GPU, and may take it away in the middle of a measurement: several tries, of which one must
// reach the bound. Too few clocks are wrong in any of them.
Test(gpu_single_wgmma, fills_the_machine, .init = gpu_only) {
  double reached[2][3] = {{0}};
  for (int attempt = 0; attempt < 8; attempt++) {
    Output *output = run_expecting("--device=gpu --repeat=5 --csv=-", 0);
    cr_expect(strstr(output->err, "GFLOPS, not TFLOPS"), "%s", output->err);
    for (int i = 0; i < 3; i++)
      for (int registers = 0; registers < 2; registers++) {
        double bound, clocks = fewest_clocks(output->out, 64 << i, registers ? "registers" : "shared", &bound);
        cr_expect(bound / clocks <= 1.01, "m64n%dk16: %.2f clocks are less than the %.0f that it needs", 64 << i,
                  clocks, bound);
        if (bound / clocks > reached[registers][i]) reached[registers][i] = bound / clocks;
      }
    free(output);
  }
  for (int i = 0; i < 3; i++)
    for (int registers = 0; registers < 2; registers++)
      cr_expect(reached[registers][i] >= 0.9, "m64n%dk16, A from %s: %.0f %% of the bound", 64 << i,
                registers ? "registers" : "shared memory", 100 * reached[registers][i]);
}
