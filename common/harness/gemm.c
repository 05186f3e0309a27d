// One matrix product from start to end: inputs, launch, check, report, timing beside cuBLAS.
#include <inttypes.h>

#include "../emulator/emulator.h"
#include "cublas.h"
#include "harness.h"

// The device's side of a problem, and cuBLAS on a GPU that has it.
typedef struct GemmRun {
  const Session *session;
  Gemm gemm;
  Cublas *cublas;
} GemmRun;

static double gemm_flops(const Gemm *gemm) { return 2.0 * gemm->m * gemm->n * gemm->k; }

// ---- what is launched ----

static bool launch_gemm(Device *device, void *context) {
  const GemmRun *run = context;
  return run->session->stage->gemm(device, &run->gemm);
}

// cuBLAS counts columns first, so it takes our rows for its columns: what it stores as C^T = B A^T, n x m, is our C.
static bool launch_cublas_gemm(Device *device, void *context) {
  const GemmRun *run = context;
  const Gemm *gemm = &run->gemm;
  Matrices a = {.data = (const void *)(uintptr_t)gemm->a, .pitch = gemm->k};
  Matrices b = {.data = (const void *)(uintptr_t)gemm->b, .pitch = gemm->k, .transposed = true};
  Matrices c = {.data = (const void *)(uintptr_t)gemm->c, .pitch = gemm->n};
  const char *failure = cublas_multiply(run->cublas, gemm->n, gemm->m, gemm->k, 1, &b, &a, &c, 1);
  return !failure || device_fail(device, DEVICE_FAILED, "cuBLAS: %s", failure);
}

// Launches it with a C of NaN, so that the check finds elements that are never written, and fetches C.
static bool compute_product(GemmRun *run, const GemmProblem *problem, DeviceWork *work) {
  Device *device = run->session->device;
  size_t size = sizeof(Half) * (size_t)problem->m * (size_t)problem->n;
  progress_begin(device_info(device)->kind == DEVICE_EMULATOR ? "emulating on this CPU" : "running", 0);
  bool done = device_fill(device, run->gemm.c, 0xff, size) && work(device, run) && device_synchronise(device) &&
              device_download(device, problem->c, run->gemm.c, size);
  progress_end();
  return done;
}

// ---- time ----

static double tflops(const GemmRun *run, const Timing *timing) {
  return gemm_flops(&run->gemm) / timing->median * 1e-9;
}

// One row: the stage's time, and cuBLAS's from the same run, whose columns are empty where there is none.
static int record_times(const GemmRun *run, const Timing *own, const Timing *cublas) {
  const Session *session = run->session;
  const Gemm *gemm = &run->gemm;
  char row[300], error[ERROR_SIZE], input[INPUT_NAME_SIZE];
  int length = snprintf(row, sizeof row, "%d,%d,%d,%s,%.6f,%.6f,%.6f,%d,%.3f", gemm->m, gemm->n, gemm->k,
                        options_input_name(&session->options, input), own->median, own->min, own->max, own->repeats,
                        tflops(run, own));
  if (run->cublas)
    snprintf(row + length, sizeof row - (size_t)length, ",%.6f,%.6f,%.6f,%.3f", cublas->median, cublas->min,
             cublas->max, tflops(run, cublas));
  else
    snprintf(row + length, sizeof row - (size_t)length, ",,,,");
  if (csv_append_rows(session->options.csv, session->stage, device_info(session->device),
                      "m,n,k,input,median_ms,min_ms,max_ms,repeats,tflops,cublas_median_ms,cublas_min_ms,cublas_max_ms,"
                      "cublas_tflops",
                      (const char *const[]){row}, 1, error))
    return EXIT_RIGHT;
  return session_fail(session, EXIT_USAGE, "%s", error);
}

static int time_beside_cublas(GemmRun *run) {
  const Session *session = run->session;
  TimedWork works[] = {{launch_gemm, run}, {launch_cublas_gemm, run}};
  Timing timings[2];
  if (!timing_measure_each(session->device, works, run->cublas ? 2 : 1, (int)session->options.repeat, timings))
    return session_fail_device(session);
  report_timing(session->out, &timings[0], gemm_flops(&run->gemm));
  if (run->cublas)
    fprintf(session->out, "cuBLAS    %.4f ms (%.4f to %.4f ms); %.3g TFLOPS; the stage is %.3f times as fast\n",
            timings[1].median, timings[1].min, timings[1].max, tflops(run, &timings[1]),
            timings[1].median / timings[0].median);
  return session->options.csv ? record_times(run, &timings[0], &timings[1]) : EXIT_RIGHT;
}

// Opens cuBLAS and checks its product, too: the time of a wrong one means nothing. Without cuBLAS it prints why.
static int prepare_cublas(GemmRun *run, const GemmProblem *problem) {
  const Session *session = run->session;
  char why[ERROR_SIZE];
  GemmCheck check;
  run->cublas = cublas_open(why, sizeof why);
  if (!run->cublas) {
    fprintf(session->out, "cuBLAS    not here: %s\n", why);
    return EXIT_RIGHT;
  }
  if (!compute_product(run, problem, launch_cublas_gemm)) return session_fail_device(session);
  if (!gemm_check(problem, session->options.seed, &check) || !gemm_check_is_right(&check))
    return session_fail(session, EXIT_WRONG, "cuBLAS's product is wrong");
  return EXIT_RIGHT;
}

static int time_and_compare(GemmRun *run, const GemmProblem *problem) {
  int code = prepare_cublas(run, problem);
  if (code == EXIT_RIGHT) code = time_beside_cublas(run);
  cublas_close(run->cublas);
  return code;
}

// ---- the program ----

static int compute_and_check(GemmRun *run, const GemmProblem *problem) {
  const Session *session = run->session;
  const Options *options = &session->options;
  FILE *out = session->out;
  GemmCheck check;
  bool done = compute_product(run, problem, launch_gemm);
  if (!done && device_error(session->device)->code != DEVICE_FAULT) return session_fail_device(session);
  if (!done) {
    fprintf(out, "result    WRONG: the kernel was stopped\n");
    report_hazards(out, options, session->device);
    return session_fail_device(session);
  }
  if (!gemm_check(problem, options->seed, &check))
    return session_fail(session, EXIT_USAGE, "the host has no memory for the reference; use a smaller --size");
  gemm_report_check(out, problem, &check);
  int hazards = report_hazards(out, options, session->device);
  report_counters(out, session->device);
  if (options->counters) report_line_counters(out, session->device);
  if (!gemm_check_is_right(&check) || hazards) return EXIT_WRONG;
  if (options->counters_csv) return session_record_counters(session, NULL);
  int code = options->repeat ? time_and_compare(run, problem) : EXIT_RIGHT;
  return code == EXIT_RIGHT && options->trace ? trace_run(session, launch_gemm, run) : code;
}

static void report_gemm_problem(const Session *session, const GemmProblem *problem) {
  const Options *options = &session->options;
  char input[INPUT_NAME_SIZE];
  bool all_given =
      options_given(options, OPTION_SIZE) ||
      (options_given(options, OPTION_M) && options_given(options, OPTION_N) && options_given(options, OPTION_K));
  fprintf(session->out, "problem   C = A B^T, m %d, n %d, k %d; input %s, seed %" PRIu64 "\n", problem->m, problem->n,
          problem->k, options_input_name(options, input), options->seed);
  if (device_info(session->device)->kind == DEVICE_EMULATOR && !all_given)
    fprintf(session->out, "          (defaults are small on the emulator; on a GPU m, n and k are 4096)\n");
}

static DeviceAddress upload_matrix(Device *device, const Half *matrix, size_t elements) {
  DeviceAddress address = device_alloc(device, elements * sizeof(Half));
  device_upload(device, address, matrix, elements * sizeof(Half));
  return address;
}

static int run_on_problem(const Session *session, const GemmProblem *problem) {
  Device *device = session->device;
  size_t m = (size_t)problem->m, n = (size_t)problem->n, k = (size_t)problem->k;
  GemmRun run = {
      .session = session,
      .gemm =
          {
              .m = problem->m,
              .n = problem->n,
              .k = problem->k,
              .a = upload_matrix(device, problem->a, m * k),
              .b = upload_matrix(device, problem->b, n * k),
              .c = device_alloc(device, m * n * sizeof(Half)),
              .module = session->module,
          },
  };
  bool ready = device_error(device)->code == DEVICE_OK;
  int code = ready ? compute_and_check(&run, problem) : session_fail_device(session);
  device_free(device, run.gemm.a);
  device_free(device, run.gemm.b);
  device_free(device, run.gemm.c);
  return code;
}

int gemm_run(Session *session) {
  const Options *options = &session->options;
  if (options->n % 8 || options->k % 8)
    return session_fail(session, EXIT_USAGE,
                        "--%s=%" PRIu64 ": n and k must be multiples of 8, because TMA's rows begin at multiples of 16 "
                        "bytes",
                        options->n % 8 ? "n" : "k", options->n % 8 ? options->n : options->k);
  GemmProblem problem;
  if (!gemm_problem_create(&problem, (int)options->m, (int)options->n, (int)options->k, options->input, options->seed))
    return session_fail(session, EXIT_USAGE, "the host has no memory for these matrices; use a smaller --size");
  report_head(session->out, session->stage, device_info(session->device));
  report_gemm_problem(session, &problem);
  int code = run_on_problem(session, &problem);
  gemm_problem_free(&problem);
  return code;
}
