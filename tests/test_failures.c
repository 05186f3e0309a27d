// What the programs do where the machine does not play along: a line on standard error and one of the exit codes that
// README.md promises.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/harness.h"
#include "support/program.h"
#include "support/scratch.h"

TestSuite(failures, .timeout = 120, .init = scratch_enter, .fini = scratch_leave);

static int lines_of(const char *text) {
  int lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

// Runs a command, which has $ROOT: it must end with the code, and print one line on standard error, with the words in
// it.
static void expect_failure(const char *command, int code, const char *words) {
  char whole[1500];
  snprintf(whole, sizeof whole, "(%s) 2>errors; code=$?; cat errors; exit $code", command);
  int got = scratch_run(whole);
  cr_expect_eq(got, code, "%s: exit code %d, not %d: %s", command, got, code, scratch_output);
  cr_expect_eq(lines_of(scratch_output), 1, "%s: not one line: %s", command, scratch_output);
  cr_expect(strstr(scratch_output, words), "%s: no '%s' in: %s", command, words, scratch_output);
}

// ---- memory ----

#ifndef __SANITIZE_ADDRESS__  // which needs a large address space of its own
// With more and more memory, from too little for a launch to enough: no run ends without a word.
Test(failures, out_of_memory_is_told) {
  int told = 0, code = 2;
  for (int kilobytes = 8000; kilobytes <= 40000; kilobytes += 1000) {
    char command[200];
    snprintf(command, sizeof command,
             "ulimit -v %d && \"$ROOT\"/stage-00 --device=emulator --seqlen=64 >report 2>errors; code=$?; cat errors; "
             "exit $code",
             kilobytes);
    code = scratch_run(command);
    cr_expect(code == 0 || code == 2, "%d KB: exit code %d: %s", kilobytes, code, scratch_output);
    cr_expect_eq(lines_of(scratch_output), code != 0, "%d KB: %s", kilobytes, scratch_output);
    told += strstr(scratch_output, "the emulator needs more memory than the host has") != NULL;
  }
  cr_expect_eq(code, 0, "the largest is not enough: %s", scratch_output);
  cr_expect_geq(told, 1, "no run ended inside a launch");
}
#endif

// ---- names ----

// nvcc writes the name of a source file into the PTX with \\, \" and the bytes of other letters in octal digits. The
// report must find the file, and so the source lines, under its own name.
Test(failures, a_source_file_may_have_any_name) {
  static const char *const names[][2] = {
      {"with a space", "with a space"}, {"\303\274mlaut", "\\303\\274mlaut"},
      {"[brackets]*?", "[brackets]*?"}, {"back\\slash", "back\\\\slash"},
      {"ends\\", "ends\\\\"},           {"qu\"ote'", "qu\\\"ote'"},
      {"n\\303", "n\\\\303"},
  };
  static const char kernel[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() {\n.loc 1 2 1\n"
                               "ret; }\n.file 1 \"";
  cr_assert(scratch_run("pwd") == 0);
  scratch_output[strcspn(scratch_output, "\n")] = 0;
  cr_assert(chdir(scratch_output) == 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char ptx[400], *listing;
    size_t length;
    scratch_write(names[i][0], "first line\nthe line that counts\n");
    int size = snprintf(ptx, sizeof ptx, "%s%s\"\n", kernel, names[i][1]);
    DeviceError error;
    Device *device = device_open(&(DeviceOptions){.kind = DEVICE_EMULATOR}, &error);
    DeviceModule *module = device_load(device, &(DeviceImage){.ptx = ptx, .ptx_size = (size_t)size});
    device_launch(device, &(DeviceLaunch){.kernel = device_kernel(device, module, "k")});
    cr_expect_eq(device_error(device)->code, DEVICE_OK, "%s: %s", names[i][1], device_error(device)->text);
    FILE *out = open_memstream(&listing, &length);
    report_line_counters(out, device);
    fclose(out);
    device_close(device);
    snprintf(ptx, sizeof ptx, "\n%s\n", names[i][0]);
    cr_expect(strstr(listing, ptx), "%s: not named in:\n%s", names[i][0], listing);
    cr_expect(strstr(listing, "the line that counts"), "%s: not read:\n%s", names[i][0], listing);
    free(listing);
  }
}

// Around each line that has counts two more are shown, and dots where lines are left out.
Test(failures, a_listing_shows_the_lines_around) {
  static const char kernel[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() {\n.reg .u32 %a;\n"
                               ".loc 1 5 1\nmov.u32 %a, 1;\n.loc 1 12 1\nret; }\n.file 1 \"source\"\n";
  char *listing;
  size_t length;
  DeviceError error;
  scratch_write("source", "1st\n2nd\n3rd\n4th\n5th\n6th\n7th\n8th\n9th\n10th\n11th\n12th\n13th\n");
  cr_assert(scratch_run("pwd") == 0);
  scratch_output[strcspn(scratch_output, "\n")] = 0;
  cr_assert(chdir(scratch_output) == 0);
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_EMULATOR}, &error);
  DeviceModule *module = device_load(device, &(DeviceImage){.ptx = kernel, .ptx_size = sizeof kernel - 1});
  device_launch(device, &(DeviceLaunch){.kernel = device_kernel(device, module, "k")});
  FILE *out = open_memstream(&listing, &length);
  report_line_counters(out, device);
  fclose(out);
  device_close(device);
  // Without the numbers: the texts in the order of the file.
  char *source = strstr(listing, "\nsource\n"), shown[200] = "";
  cr_assert(source, "%s", listing);
  for (const char *at = source; (at = strpbrk(at, ".123456789")); at += strcspn(at, " \n")) {
    size_t word = strcspn(at, " \n");
    bool text = !strncmp(at, "...", 3) || (word > 2 && strchr("tnrs", at[word - 2]));
    if (text) snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%.*s ", (int)word, at);
  }
  cr_expect_str_eq(shown, "3rd 4th 5th 6th 7th ... 10th 11th 12th ", "%s", listing);
  free(listing);
}

// ---- output ----

// A report that nobody can read is no success, wherever it goes.
Test(failures, a_report_that_is_lost_is_no_success) {
  expect_failure("\"$ROOT\"/stage-00 --device=emulator >/dev/full", 2, "standard output: No space left on device");
  expect_failure("\"$ROOT\"/stage-00 --device=emulator --counters >/dev/full", 2, "standard output: ");
  expect_failure("\"$ROOT\"/stage-04 --device=emulator >/dev/full", 2, "standard output: No space left on device");
  expect_failure("\"$ROOT\"/stage-00 --help >/dev/full", 2, "standard output: No space left on device");
  expect_failure("\"$ROOT\"/stage-00 --device=emulator >&-", 2, "standard output is closed");
  expect_failure("\"$ROOT\"/stage-00 --device=emulator --counters-csv=/dev/full >report", 2,
                 "--counters-csv=/dev/full: No space left on device");
  expect_failure("\"$ROOT\"/stage-00 --device=emulator --counters-csv=- 2>report >/dev/full; code=$?; tail -n 1 report "
                 ">&2; exit $code",
                 2, "--counters-csv=-: No space left on device");
}

// A closed stream's number goes to the next file that is opened: the report must not end up in the CSV.
Test(failures, a_closed_stream_is_not_taken_for_a_file) {
  cr_expect_eq(scratch_run("\"$ROOT\"/stage-00 --device=emulator --counters-csv=a.csv <&- 2>&- >report"), 0);
  size_t size;
  char *csv = scratch_read("a.csv", &size);
  cr_assert(csv);
  cr_expect_eq(lines_of(csv), 2, "%s", csv);
  cr_expect(!strncmp(csv, "stage,batch,", 12), "%.80s", csv);
  free(csv);
}

// A wrong result stays one, also where its report is lost.
Test(failures, a_wrong_result_keeps_its_code) {
  expect_failure("\"$ROOT\"/stage-00 --device=emulator --step-limit=1000 >/dev/full 2>all; code=$?; tail -n 1 all >&2; "
                 "exit $code",
                 1, "standard output: not all of the report was written");
}

// ---- files that cannot be read or written ----

Test(failures, files_of_options) {
  expect_failure("\"$ROOT\"/stage-00 --ptx=/dev/zero", 2, "--ptx=/dev/zero: File too large");
  expect_failure("\"$ROOT\"/stage-00 --ptx=.", 2, "--ptx=.: Is a directory");
  expect_failure("\"$ROOT\"/stage-00 --counters-csv=none/a.csv", 2, "--counters-csv=none/a.csv: No such file");
}

// Stage 04 has no shape: those columns are empty, and the counters are there.
Test(failures, stage_04_writes_its_counters) {
  cr_expect_eq(scratch_run("\"$ROOT\"/stage-04 --device=emulator --counters-csv=a.csv >report"), 0, "%s",
               scratch_output);
  size_t size;
  char *csv = scratch_read("a.csv", &size), *row = csv ? strchr(csv, '\n') : NULL;
  unsigned long executed = 0;
  cr_assert(row, "%s", csv);
  cr_expect(sscanf(row, "\n04-single-wgmma,,,,,,%lu,", &executed) == 1 && executed > 100000, "%.80s", row);
  cr_expect_eq(lines_of(csv), 2, "%s", csv);
  free(csv);
}

// ---- kernels that do not end ----

Test(failures, the_step_limit_ends_a_launch) {
  cr_expect_eq(scratch_run("\"$ROOT\"/stage-00 --device=emulator --step-limit=1000"), 1);
  cr_expect(strstr(scratch_output, "step limit: the launch executed more than 1000 warp instructions"), "%s",
            scratch_output);
  cr_expect_eq(scratch_run("\"$ROOT\"/stage-00 --device=emulator --step-limit=0"), 0, "%s", scratch_output);
  expect_failure("\"$ROOT\"/stage-00 --device=gpu --step-limit=5", 2, "--step-limit: a GPU cannot do that");
}

// What stage 00 needs is a 64th of the default, or less, for any problem; and there is a default for the largest.
Test(failures, the_default_step_limit_grows_with_the_problem) {
  Options options = {.batch = 2, .heads = 3, .seqlen = 100, .head_dim = 1};
  options.given = 1u << OPTION_BATCH | 1u << OPTION_HEADS | 1u << OPTION_SEQLEN;
  cr_expect_eq(options_step_limit(&options), (1u << 30) + 64ull * 6 * 100 * 100 * 128);
  options.given = 0;
  cr_expect_eq(options_step_limit(&options), (1u << 30) + 64ull * 2 * 128 * 128 * 128);
  options = (Options){.batch = 65536, .heads = 65536, .seqlen = 1 << 20, .given = ~0u & ~(1u << OPTION_STEP_LIMIT)};
  cr_expect_eq(options_step_limit(&options), 0, "more than 2^63 is no limit");
  options.given = 1u << OPTION_STEP_LIMIT;
  options.step_limit = 7;
  cr_expect_eq(options_step_limit(&options), 7);
}

// ---- folders that cannot be written ----

// What a script prints where a file stands in the way of the folder that it needs; a disk that is full or a tree that
// is read-only look the same to it.
static void expect_no_folder(const char *script, const char *folder) {
  char command[300], words[200];
  snprintf(command, sizeof command, "sh \"$ROOT\"/common/build/%s", script);
  snprintf(words, sizeof words, "%s cannot be written: the disk is full, the tree is read-only, or it is no folder",
           folder);
  expect_failure(command, 2, words);
}

Test(failures, scripts_tell_that_they_cannot_write) {
  cr_expect_eq(scratch_run("mkdir plots && touch build plots/data && ln -s \"$ROOT\"/common ."), 0);
  expect_no_folder("ladder.sh '' ./stage-00", "build");
  expect_no_folder("listing.sh ptx 00-scalar", "build/listing");
  expect_no_folder("counters.sh ./stage-00", "plots/data");
  expect_no_folder("bench.sh ./stage-00", "build/bench");
}

Test(failures, make_tells_that_it_cannot_write) {
  cr_expect_eq(scratch_run("touch build && for f in Makefile common stages tests plots; do ln -s \"$ROOT\"/$f .; done"),
               0);
  expect_failure("make BUILD=build stage-00", 2, "build cannot be written: the disk is full, the tree is read-only");
  cr_expect_eq(scratch_run("make BUILD=build help"), 0);
  cr_expect(strstr(scratch_output, "make ladder"), "%s", scratch_output);
  cr_expect_not(strstr(scratch_output, "build:") || strstr(scratch_output, "cannot"), "%s", scratch_output);
}
