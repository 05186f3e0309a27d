// hopper-run: other people's programs on the emulator. tests/runner has the programs; each checks what its calls return.
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/sanitized.h"

// What is preloaded into a program cannot have a sanitizer.
TestSuite(runner, .timeout = 120, .disabled = SANITIZED);

static Output *run(const char *line) { return run_line("hopper-run", line); }

// Runs a program of the tests with hopper-run's options and its own arguments.
static Output *run_test(const char *options, const char *program, const char *arguments) {
  char line[1000];
  const char *folder = getenv("RUNNER_TESTS");
  snprintf(line, sizeof line, "%s %s/%s %s", options, folder ? folder : "build/runner/tests", program, arguments);
  return run(line);
}

static void expect_in(const Output *output, const char *text, bool in_err) {
  const char *all = in_err ? output->err : output->out;
  cr_expect(strstr(all, text), "\"%s\" is not in\n%s%s", text, output->out, output->err);
}

#define EXPECT_OUT(text) expect_in(output, text, false)
#define EXPECT_ERR(text) expect_in(output, text, true)
#define EXPECT_CODE(expected)                                                                                          \
  cr_expect_eq(output->code, expected, "exit code %d\n%s%s", output->code, output->out, output->err)

// A program that checks its own results, without a finding in any of three schedules.
static void expect_right(const char *program) {
  static const char *const options[] = {"", "--schedule=1", "--schedule=2 --hazards=off"};
  for (int i = 0; i < 3; i++) {
    Output *output = run_test(options[i], program, "");
    EXPECT_CODE(0);
    EXPECT_OUT("right\n");
    EXPECT_ERR("no findings\n");
    free(output);
  }
}

// ---- right programs ----

// Its RPATH leads to a library of the runtime's name that has nothing in it.
Test(runner, streams_and_an_rpath) { expect_right("streams"); }
Test(runner, memory_of_all_kinds) { expect_right("memory"); }
Test(runner, malloc_in_kernels) { expect_right("heap"); }
Test(runner, integers_of_128_bits) { expect_right("wide_integers"); }
Test(runner, clusters_and_cooperative_launches) { expect_right("launches"); }
Test(runner, tensor_maps) { expect_right("tensor_map"); }
Test(runner, graphs) { expect_right("graphs"); }
Test(runner, driver_api) { expect_right("driver"); }
Test(runner, driver_api_linked_by_nvcc) { expect_right("driver-nvcc"); }
Test(runner, relocatable_device_code) { expect_right("memory-rdc"); }
Test(runner, runtime_of_cuda_12) {
  expect_right("streams-12");
  expect_right("launches-12");
}

Test(runner, device_is_an_h100) {
  Output *output = run_test("", "queries", "");
  EXPECT_CODE(0);
  EXPECT_OUT("NVIDIA H100 80GB HBM3, 132 SMs\n");
  free(output);
}

Test(runner, printf_in_kernels_in_the_order_of_the_program) {
  Output *output = run_test("", "faults", "prints");
  EXPECT_CODE(0);
  static const char expected[] = "thread 0 of prints: 0.5\nthread 1 of prints: 1.5\nlaunch: cudaSuccess";
  cr_expect(!strncmp(output->out, expected, strlen(expected)), "%s", output->out);
  free(output);
}

Test(runner, program_is_found_on_path) {
  Output *output = run("true");
  EXPECT_CODE(0);
  cr_expect_str_empty(output->err);
  free(output);
}

// ---- libraries ----

// A program that needs a library is built where the toolkit has it.
static bool is_built(const char *program) {
  Output *output = run_test("", program, "");
  bool found = !strstr(output->err, "no program of this name");
  free(output);
  return found;
}

Test(runner, compiled_at_run_time) {
  if (!is_built("nvrtc")) cr_skip_test("this toolkit has no NVRTC");
  expect_right("nvrtc");
}

Test(runner, cublas) {
  if (!is_built("blas")) cr_skip_test("this toolkit has no cuBLAS");
  expect_right("blas");
}

// Each unwritten column is read, and is a finding of its own.
Test(runner, cublas_reads_what_nobody_has_written) {
  if (!is_built("blas")) cr_skip_test("this toolkit has no cuBLAS");
  Output *output = run_test("", "blas", "factor");
  EXPECT_CODE(1);
  EXPECT_OUT("right\n");
  EXPECT_ERR("uninitialised read: cuBLAS reads a matrix of 5 x 3, in column 1");
  cr_expect(!strstr(output->err, "in column 0"), "%s", output->err);
  free(output);
  output = run_test("", "blas", "sum");
  EXPECT_CODE(1);
  EXPECT_ERR("uninitialised read: cuBLAS reads a matrix of 4 x 3, in column 0");
  free(output);
}

// ---- findings and exit codes ----

Test(runner, race_has_its_line_and_exit_code_1) {
  Output *output = run_test("", "faults", "races");
  EXPECT_CODE(1);
  EXPECT_OUT("synchronise: cudaSuccess");
  EXPECT_ERR("hopper-run: 1 launch, 2 faults\n");
  EXPECT_ERR("shared-memory race");
  EXPECT_ERR("at tests/runner/faults.cu:16 ");
  EXPECT_ERR("and tests/runner/faults.cu:15 ");
  free(output);
}

Test(runner, hazards_off) {
  Output *output = run_test("--hazards=off", "faults", "races");
  EXPECT_CODE(0);
  EXPECT_ERR("no findings\n");
  free(output);
}

Test(runner, exit_code_of_the_program_comes_first) {
  Output *output = run_test("", "faults", "races 7");
  EXPECT_CODE(7);
  EXPECT_ERR("shared-memory race");
  free(output);
  output = run_test("", "faults", "prints 7");
  EXPECT_CODE(7);
  free(output);
}

Test(runner, findings_survive_an_abort) {
  Output *output = run_test("", "faults", "abort");
  EXPECT_CODE(128 + 6);
  EXPECT_ERR("hopper-run: the program was ended by signal 6");
  EXPECT_ERR("shared-memory race");
  free(output);
}

Test(runner, counters) {
  Output *output = run_test("--counters", "faults", "prints");
  EXPECT_CODE(0);
  EXPECT_ERR("counters  ");
  EXPECT_ERR("if (threadIdx.x < 2) printf");
  free(output);
}

// ---- a launch that is stopped ----

// The launch succeeds; every call after it fails with this error, which says what stopped it.
static void expect_stopped(const char *options, const char *kernel, const char *error, const char *reason) {
  char after[200];
  Output *output = run_test(options, "faults", kernel);
  EXPECT_CODE(1);
  EXPECT_OUT("launch: cudaSuccess");
  for (int i = 0; i < 5; i++) {
    static const char *const calls[] = {"synchronise", "after", "allocation", "copy", "last"};
    snprintf(after, sizeof after, "%s: %s: ", calls[i], error);
    EXPECT_OUT(after);
  }
  EXPECT_OUT(reason);
  EXPECT_ERR(reason);
  free(output);
}

Test(runner, out_of_bounds) {
  expect_stopped("", "out_of_bounds", "cudaErrorIllegalAddress",
                 "out_of_bounds(int*) stopped at tests/runner/faults.cu:7: out-of-bounds access: 4000 bytes from");
  expect_stopped("--hazards=off", "out_of_bounds", "cudaErrorIllegalAddress", "out-of-bounds access");
}

Test(runner, misaligned) {
  expect_stopped("", "misaligned", "cudaErrorMisalignedAddress", "faults.cu:8: misaligned access");
}

Test(runner, failed_assertion) {
  expect_stopped("", "fails", "cudaErrorAssert", "assertion failed: out == nullptr, tests/runner/faults.cu:9");
}

Test(runner, deadlock) { expect_stopped("", "spins", "cudaErrorLaunchTimeout", "deadlock"); }

Test(runner, step_limit) { expect_stopped("--step-limit=20", "prints", "cudaErrorLaunchTimeout", "step limit"); }

Test(runner, reset_makes_the_device_new) {
  Output *output = run_test("", "faults", "reset");
  EXPECT_CODE(1);
  EXPECT_OUT("reset: cudaSuccess: no error\nthread 0 of prints: 0.5\n");
  free(output);
}

// ---- what cannot run ----

Test(runner, wrong_shape_of_a_launch) {
  Output *output = run_test("", "faults", "configuration");
  EXPECT_OUT("launch: cudaErrorInvalidConfiguration: ");
  EXPECT_ERR("prints(int*) was not launched: a block of (2000,1,1) threads");
  free(output);
}

// The program prints the functions that it calls; each must have its own line of hopper-run, with the version's suffix
// where the header has one.
Test(runner, missing_functions_are_named) {
  Output *output = run_test("", "missing", "");
  int count = 0;
  EXPECT_CODE(2);  // one of its kernels has multimem
  EXPECT_OUT("\nright\n");
  cr_expect(!strstr(output->out, "something else"), "%s", output->out);
  EXPECT_ERR("hopper-run: sum_of_all(float*) was not launched: multimem.red.relaxed.sys.global.add.f32: unknown "
             "instruction");
  for (char *line = strtok(output->out, "\n"); line; line = strtok(NULL, "\n")) {
    char *end = strstr(line, ": not supported"), plain[200], suffixed[200];
    if (!end) continue;
    *end = 0;
    snprintf(plain, sizeof plain, "hopper-run: %s: the emulator does not have this function", line);
    snprintf(suffixed, sizeof suffixed, "hopper-run: %s_v2: the emulator does not have this function", line);
    cr_expect(strstr(output->err, plain) || strstr(output->err, suffixed), "%s is not named", line);
    count++;
  }
  cr_expect_eq(count, 21, "%d functions", count);
  free(output);
}

Test(runner, static_runtime_is_refused) {
  Output *output = run_test("", "static", "prints");
  EXPECT_CODE(2);
  EXPECT_ERR("is linked with the static CUDA runtime: build it with nvcc -cudart shared\n");
  cr_expect_str_empty(output->out);
  free(output);
}

Test(runner, cubin_that_no_ptx_replaces) {
  Output *output = run_test("", "driver", "gives-up");
  EXPECT_CODE(2);
  EXPECT_ERR("hopper-run: the program loads a cubin");
  EXPECT_ERR("kernels of the program did not run");
  free(output);
}

Test(runner, library_that_needs_a_gpu_is_named) {
  Output *output = run_test("", "library", "");
  EXPECT_ERR("hopper-run: libneeds_gpu.so needs a GPU");
  cr_expect(!strstr(output->out, "the library says 0\n"), "%s", output->out);
  free(output);
}

Test(runner, program_without_ptx) {
  Output *output = run_test("", "no-ptx", "prints");
  cr_expect_neq(output->code, 0);
  EXPECT_OUT("launch: cudaErrorNoKernelImageForDevice");
  EXPECT_ERR("build it with nvcc -gencode arch=compute_90a,code=compute_90a\n");
  EXPECT_ERR("kernels of the program did not run");
  free(output);
}

Test(runner, wrong_use) {
  static const struct {
    const char *line, *error;
  } cases[] = {{"", "no program is named"},
               {"--hazard=on true", "unknown option --hazard=on"},
               {"--hazards=maybe true", "on or off is needed"},
               {"--schedule true", "--schedule needs a value"},
               {"--schedule=x true", "a whole number"},
               {"--strict=1 true", "takes no value"},
               {"./no-such-program", "no program of this name"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Output *output = run(cases[i].line);
    EXPECT_CODE(2);
    EXPECT_ERR(cases[i].error);
    free(output);
  }
}
