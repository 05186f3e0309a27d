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

// nvcc writes the name of a source file into the PTX with \\, \" and the bytes of other letters in octal digits. The report
// must find the file, and so the source lines, under its own name.
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
