// hopper-run: other people's programs on the emulator. tests/runner has the programs; each checks what its calls
// return.
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "support/sanitized.h"
#include "support/scratch.h"

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

// The loader splits lists of libraries at blanks, and nvcc writes the bytes of such a name otherwise.
Test(runner, folder_may_have_any_name) {
  scratch_enter();
  int code = scratch_run(
      "mkdir -p 'odd ä [x]/tests' 'odd ä [x]/build' && cd odd* && cp -r \"$ROOT/build/runner\" build && "
      "cp \"$ROOT/hopper-run\" . && ln -s \"$ROOT/tests/runner\" tests && "
      "nvcc=$(cd \"$ROOT\" && realpath \"$(cut -d' ' -f1 build/nvcc-flags)\") && "
      "release=$(\"$nvcc\" --version | sed -n 's/.*release \\([0-9]*\\).*/\\1/p') && "
      "\"$nvcc\" -lineinfo -gencode arch=compute_90a,code=compute_90a -cudart shared tests/runner/faults.cu "
      "-Lbuild/runner/link-$release -lcuda -o faults && ./hopper-run ./faults races");
  cr_expect_eq(code, 1, "%s", scratch_output);
  cr_expect(strstr(scratch_output, "at tests/runner/faults.cu:16 "), "%s", scratch_output);
  cr_expect_not(strstr(scratch_output, "ERROR"), "%s", scratch_output);
  scratch_leave();
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
Test(runner, dependent_launches) { expect_right("dependent"); }
Test(runner, tensor_maps_in_global_memory) { expect_right("global_map"); }
Test(runner, driver_api) { expect_right("driver"); }
Test(runner, driver_api_linked_by_nvcc) { expect_right("driver-nvcc"); }
Test(runner, relocatable_device_code) { expect_right("memory-rdc"); }
Test(runner, device_code_of_several_files) { expect_right("linked"); }
Test(runner, device_code_of_several_files_by_dlink) { expect_right("linked-by-ld"); }
Test(runner, linker_takes_objects_and_libraries) {
  const char *folder = getenv("RUNNER_TESTS");
  char files[500];
  if (!folder) folder = "build/runner/tests";
  snprintf(files, sizeof files, "%s/linked-parts/part-right.o %s/linked-parts/libdevice-code.a", folder, folder);
  Output *output = run_test("", "link_files", files);
  EXPECT_CODE(0);
  EXPECT_OUT("right\n");
  EXPECT_ERR("no findings\n");
  free(output);
}

Test(runner, memory_nodes_of_graphs) { expect_right("graph_memory"); }
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

// The loader would take another library of cuBLAS' name, along the library's RPATH.
Test(runner, cublas_of_a_library_that_python_opens) {
  if (!is_built("blas")) cr_skip_test("this toolkit has no cuBLAS");
  const char *folder = getenv("RUNNER_TESTS");
  char line[1000];
  snprintf(line, sizeof line, "python3 tests/runner/opens_library.py %s/libuses_cublas.so",
           folder ? folder : "build/runner/tests");
  Output *output = run(line);
  EXPECT_CODE(0);
  EXPECT_OUT("cuBLAS works\n");
  free(output);
}

// pytest, for one, puts a finder before all others that loads every file that matches python_files.
Test(runner, modules_that_any_finder_finds_are_prepared) {
  Output *output = run("python3 tests/runner/prepared.py");
  EXPECT_CODE(0);
  EXPECT_OUT("prepared\n");
  free(output);
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

Test(runner, cublas_reads_a_sum_or_a_triangle_that_nobody_has_written) {
  if (!is_built("blas")) cr_skip_test("this toolkit has no cuBLAS");
  Output *output = run_test("", "blas", "gemv");
  EXPECT_CODE(1);
  EXPECT_ERR("uninitialised read: cuBLAS reads a matrix of 1 x 4, in column 0");
  free(output);
  output = run_test("", "blas", "triangle");
  EXPECT_CODE(1);
  EXPECT_ERR("uninitialised read: cublasStrsm reads A in column 1, rows 1 to 2, and nothing was ever written there");
  EXPECT_ERR("met in 1 place\n");
  free(output);
  output = run_test("", "blas", "pointers");
  EXPECT_CODE(1);
  EXPECT_ERR("uninitialised read: cuBLAS reads 2 pointers to the matrices of a batch");
  EXPECT_ERR("cuBLAS: matrix 1 of a batch, at 0x");
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

// The first line of a program's source that has the text.
static int line_with(const char *program, const char *text) {
  char path[200], line[300];
  snprintf(path, sizeof path, "tests/runner/%s.cu", program);
  FILE *file = fopen(path, "r");
  int number = 0, found = 0;
  cr_assert(file, "%s", path);
  while (!found && fgets(line, sizeof line, file)) {
    number++;
    if (strstr(line, text)) found = number;
  }
  fclose(file);
  return found;
}

// A finding at the line that has the one comment, and, unless it is NULL, the other.
static void expect_finding(const char *program, const char *mistake, int code, const char *summary,
                           const char *sentence, const char *here, const char *other) {
  for (int schedule = 0; schedule < 3; schedule++) {
    char option[40], place[100];
    snprintf(option, sizeof option, "--schedule=%d", schedule);
    Output *output = run_test(option, program, mistake);
    EXPECT_CODE(code);
    EXPECT_ERR(summary);
    EXPECT_ERR(sentence);
    snprintf(place, sizeof place, "at tests/runner/%s.cu:%d", program, line_with(program, here));
    EXPECT_ERR(place);
    snprintf(place, sizeof place, "and tests/runner/%s.cu:%d", program, other ? line_with(program, other) : 0);
    if (other) EXPECT_ERR(place);
    free(output);
  }
}

Test(runner, reads_before_griddepcontrol_wait) {
  static const char read[] = "add_early reads what the kernel fill, launched before it, writes";
  expect_finding("dependent", "read", 1, "1 fault\n", read, "// before its wait", "// in front");
  expect_finding("dependent", "event", 1, "1 fault\n", read, "// before its wait", "// in front");
  expect_finding("dependent", "capture", 1, "1 fault\n", read, "// before its wait", "// in front");
  expect_finding("dependent", "edge", 1, "1 fault\n", read, "// before its wait", "// in front");
  expect_finding("dependent", "before", 1, "1 fault\n", "add_early reads what the kernel fill_before",
                 "// before its wait", "// before its trigger");
  expect_finding("dependent", "warp", 1, "1 fault\n", "add_by_two_warps reads what", "// without a barrier",
                 "// in front");
}

Test(runner, writes_before_griddepcontrol_wait) {
  expect_finding("dependent", "write", 1, "1 fault\n",
                 "overwrite_early writes what the kernel read_late, launched before it, reads",
                 "// written before its wait", "// reads after its trigger");
}

Test(runner, dependent_launch_without_a_trigger_is_formal) {
  expect_finding("dependent", "silent", 0, "1 formal finding\n", "formal: global-memory race", "// before its wait",
                 "// without a trigger");
}

Test(runner, dependent_launches_in_a_chain) {
  expect_finding("dependent", "chain", 1, "1 fault\n", "the kernel between them",
                 "out[threadIdx.x] = data[threadIdx.x] + amount;", "// in front");
}

Test(runner, tensor_map_without_its_fence) {
  expect_finding("global_map", "host", 1, "1 fault, 1 formal", "has been overwritten since an earlier launch used it",
                 "\"l\"(map), \"r\"(0)", NULL);
  expect_finding("global_map", "kernel", 1, "1 fault, 1 formal", "has been overwritten since an earlier launch used it",
                 "\"l\"(map), \"r\"(0)", NULL);
  expect_finding("global_map", "block", 1, "1 fault, 1 formal", "has been overwritten since an earlier launch used it",
                 "\"l\"(map), \"r\"(0)", NULL);
  expect_finding("global_map", "same", 0, "1 formal", "formal: missing proxy fence", "\"l\"(map), \"r\"(0)", NULL);
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

// ---- one device, several processes ----

static int count_of(const char *text, const char *part) {
  int count = 0;
  for (; (text = strstr(text, part)) != NULL; text++) count++;
  return count;
}

Test(runner, program_for_any_number_of_devices) {
  Output *output = run_test("", "devices", "");
  EXPECT_CODE(0);
  EXPECT_OUT("right\n");
  cr_expect_eq(count_of(output->err, "hopper-run"), 1, "%s", output->err);
  free(output);
}

Test(runner, other_devices_are_refused_and_one_line_says_so) {
  Output *output = run_test("", "devices", "others");
  EXPECT_CODE(0);
  EXPECT_OUT("right\n");
  cr_expect_eq(count_of(output->err, "hopper-run emulates one GPU"), 1, "%s", output->err);
  EXPECT_ERR("no findings\n");
  free(output);
}

// A forked process, and one that launches nothing, have no report of their own.
Test(runner, processes_without_launches_report_nothing) {
  Output *output = run_test("", "processes", "");
  EXPECT_CODE(0);
  EXPECT_OUT("right\n");
  cr_expect_eq(count_of(output->err, "hopper-run: "), 1, "%s", output->err);
  EXPECT_ERR("hopper-run: 1 launch, no findings\n");
  free(output);
  output = run_test("", "processes", "counts");
  EXPECT_CODE(0);
  cr_expect_str_eq(output->err, "hopper-run: 0 launches, no findings\n");
  free(output);
}

Test(runner, forked_process_cannot_use_cuda) {
  Output *output = run_test("", "processes", "uses");
  EXPECT_CODE(0);
  EXPECT_OUT("right\n");
  cr_expect_eq(count_of(output->err, "that was forked after its parent had used it"), 1, "%s", output->err);
  free(output);
}

// ---- memory nodes ----

// The first launch has written it, and the second one has not.
Test(runner, memory_of_a_graph_is_fresh_in_each_launch) {
  Output *output = run_test("", "graph_memory", "stale");
  EXPECT_CODE(1);
  EXPECT_OUT("cudaSuccess\n");
  EXPECT_ERR("uninitialised read");
  EXPECT_ERR("at tests/runner/graph_memory.cu:13 ");
  free(output);
}

Test(runner, memory_that_a_graph_has_freed) {
  Output *output = run_test("", "graph_memory", "after-free");
  EXPECT_CODE(1);
  EXPECT_OUT("cudaErrorIllegalAddress\n");
  EXPECT_ERR("out-of-bounds access");
  free(output);
}

Test(runner, memory_nodes_where_cuda_allows_none) {
  Output *output = run_test("", "graph_memory", "again");
  EXPECT_CODE(0);
  EXPECT_ERR("a graph is launched again, and 0x");
  free(output);
  output = run_test("", "graph_memory", "refused");
  EXPECT_CODE(0);
  EXPECT_ERR("a graph with conditional nodes or memory nodes cannot be cloned");
  EXPECT_ERR("which no graph has allocated");
  free(output);
}

// ---- conditional nodes ----

#define NEEDS_CUDA_13()                                                                                                \
  if (!is_built("conditional")) cr_skip_test("the program is written for CUDA 13")

Test(runner, conditional_nodes_of_graphs) {
  NEEDS_CUDA_13();
  expect_right("conditional");
}

Test(runner, conditional_handle_that_nothing_has_set) {
  NEEDS_CUDA_13();
  Output *output = run_test("", "conditional", "unset");
  EXPECT_CODE(1);
  EXPECT_OUT("cudaSuccess\n");
  EXPECT_ERR("uninitialised read: a conditional node of a graph reads a handle that has no default");
  free(output);
}

Test(runner, conditional_handle_that_is_none) {
  NEEDS_CUDA_13();
  Output *output = run_test("", "conditional", "bad-handle");
  EXPECT_CODE(1);
  EXPECT_OUT("cudaErrorIllegalAddress\n");
  EXPECT_ERR("conditional.cu:13: out-of-bounds access: cudaGraphSetConditional: this is no handle");
  free(output);
}

Test(runner, conditional_handle_that_two_blocks_set) {
  NEEDS_CUDA_13();
  Output *output = run_test("", "conditional", "race");
  EXPECT_CODE(1);
  EXPECT_ERR("global-memory race");
  EXPECT_ERR("at tests/runner/conditional.cu:13 ");
  free(output);
}

Test(runner, conditional_nodes_where_cuda_allows_none) {
  NEEDS_CUDA_13();
  Output *output = run_test("", "conditional", "refused");
  EXPECT_CODE(0);
  EXPECT_ERR("is instantiated twice");
  EXPECT_ERR("memory nodes cannot be cloned");
  EXPECT_ERR("memory nodes cannot be a child of another graph");
  free(output);
  output = run_test("", "conditional", "host");
  EXPECT_CODE(0);
  EXPECT_ERR("the body of a conditional node has a host function");
  free(output);
}

// ---- what cannot run ----

Test(runner, variable_that_no_file_defines) {
  Output *output = run_test("", "linked-missing-variable", "");
  EXPECT_OUT("cudaErrorInvalidPtx");
  EXPECT_ERR("defined_nowhere is defined nowhere\n");
  free(output);
}

Test(runner, texts_that_the_linker_cannot_link) {
  Output *output = run_test("", "driver", "wrong-links");
  EXPECT_CODE(2);
  EXPECT_ERR("line 4: base is defined nowhere\n");
  EXPECT_ERR("'base' is defined in two files of the program, first on line 18\n");
  free(output);
}

// Only the kernel that calls it does not run.
Test(runner, function_that_no_file_defines) {
  Output *output = run_test("", "linked-missing-function", "");
  EXPECT_ERR("calls_nothing(int*) was not launched: call.uni: nothing defines the function defined_nowhere");
  EXPECT_ERR("10 launches");
  free(output);
}

Test(runner, function_that_two_files_define) {
  Output *output = run_test("", "linked-twice", "");
  EXPECT_OUT("cudaErrorInvalidPtx");
  EXPECT_ERR("'defined_in_two_files' is defined in two files of the program");
  free(output);
}

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
