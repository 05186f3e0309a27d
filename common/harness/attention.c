// One attention problem from start to end: inputs, launch, check, report, timing.
#include <inttypes.h>

#include "../emulator/emulator.h"
#include "harness.h"

// The device's side of a problem.
typedef struct Run {
  const Stage *stage;
  Attention attention;
} Run;

static DeviceAddress upload_new(Device *device, const void *from, size_t size) {
  DeviceAddress address = device_alloc(device, size);
  device_upload(device, address, from, size);
  return address;
}

static DeviceAddress new_counter(Device *device) {
  DeviceAddress address = device_alloc(device, sizeof(uint32_t));
  device_fill(device, address, 0, sizeof(uint32_t));
  return address;
}

static void upload_f16(Device *device, const Problem *problem, Attention *to) {
  size_t size = problem->elements * sizeof(Half);
  to->q.address = upload_new(device, problem->q, size);
  to->k.address = upload_new(device, problem->k, size);
  to->v.address = upload_new(device, problem->v, size);
}

static void upload_e4m3(Device *device, const Problem *problem, Attention *to) {
  DeviceTensor *tensors[] = {&to->q, &to->k, &to->v};
  DeviceAddress *scales[] = {&to->q_scale, &to->k_scale, &to->v_scale};
  for (int i = 0; i < (problem->inputs == INPUTS_E4M3 ? TENSORS : TENSOR_V); i++) {
    tensors[i]->address = upload_new(device, problem->codes[i], problem->elements);
    *scales[i] = upload_new(device, problem->scales[i], problem_scales(problem) * sizeof(float));
  }
  to->scale_stride = problem->scale_stride;
  if (problem->inputs == INPUTS_E4M3_SCORES)
    to->v.address = upload_new(device, problem->v, problem->elements * sizeof(Half));
}

// An array that a kernel writes. It starts as NaN, so that the check finds elements that no kernel writes.
static DeviceAddress new_output(Device *device, size_t size) {
  DeviceAddress address = device_alloc(device, size);
  device_fill(device, address, 0xff, size);
  return address;
}

static size_t lse_size(const Problem *problem) { return problem->elements / problem->shape.head_dim * sizeof(float); }

static void add_gradients(Device *device, const Problem *problem, Attention *to) {
  size_t size = problem->elements * sizeof(Half);
  to->d_o.address = upload_new(device, problem->d_o, size);
  to->d_q.address = new_output(device, size);
  to->d_k.address = new_output(device, size);
  to->d_v.address = new_output(device, size);
}

// Allocates and uploads the tensors.
static bool upload_problem(const Session *session, const Problem *problem, Run *run) {
  Device *device = session->device;
  *run = (Run){
      .stage = session->stage,
      .attention =
          {
              .shape = problem->shape,
              .window = problem->window,
              .scale = (float)problem_scale(&problem->shape),
              .module = session->module,
              .deterministic = session->options.deterministic,
              .o = {.address = new_output(device, problem->elements * sizeof(Half))},
              .counter = session->stage->counter ? new_counter(device) : 0,
          },
  };
  (problem->inputs == INPUTS_F16 ? upload_f16 : upload_e4m3)(device, problem, &run->attention);
  if (problem->lse) run->attention.lse = new_output(device, lse_size(problem));
  if (problem->d_o) add_gradients(device, problem, &run->attention);
  size_t workspace = session->stage->workspace ? session->stage->workspace(&problem->shape) : 0;
  if (workspace) run->attention.workspace = device_alloc(device, workspace);
  return device_error(device)->code == DEVICE_OK;
}

static void free_tensors(const Session *session, const Run *run) {
  const Attention *a = &run->attention;
  const DeviceAddress addresses[] = {a->q.address,   a->k.address,   a->v.address,   a->o.address,  a->q_scale,
                                     a->k_scale,     a->v_scale,     a->workspace,   a->counter,    a->lse,
                                     a->d_o.address, a->d_q.address, a->d_k.address, a->d_v.address};
  for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) device_free(session->device, addresses[i]);
}

static bool launch_attention(Device *device, void *context) {
  Run *run = context;
  return (run->stage->windowed ? run->stage->windowed : run->stage->launch)(device, &run->attention);
}

// The forward pass before a backward one. The report counts the backward pass alone.
static bool launch_forward(Device *device, Run *run) {
  bool done = run->stage->forward(device, &run->attention) && device_synchronise(device);
  device_clear_counters(device);
  return done;
}

static bool download_gradients(Device *device, const Problem *problem, const Attention *from) {
  size_t size = problem->elements * sizeof(Half);
  return device_download(device, problem->d_q, from->d_q.address, size) &&
         device_download(device, problem->d_k, from->d_k.address, size) &&
         device_download(device, problem->d_v, from->d_v.address, size);
}

static bool launch_and_download(const Session *session, const Problem *problem, Run *run) {
  Device *device = session->device;
  progress_begin(device_info(device)->kind == DEVICE_EMULATOR ? "emulating on this CPU" : "running", 0);
  bool done = (!run->stage->backward || launch_forward(device, run)) && launch_attention(device, run) &&
              device_synchronise(device) &&
              device_download(device, problem->o, run->attention.o.address, problem->elements * sizeof(Half)) &&
              (!problem->lse || device_download(device, problem->lse, run->attention.lse, lse_size(problem))) &&
              (!run->stage->backward || download_gradients(device, problem, &run->attention));
  progress_end();
  return done;
}

// The kernel must set its counter back to 0, because the next launch starts from there.
static bool check_counter(const Session *session, const Run *run) {
  uint32_t left = 0;
  if (run->attention.counter) device_download(session->device, &left, run->attention.counter, sizeof left);
  if (left) fprintf(session->out, "          WRONG: the kernel leaves its counter at %" PRIu32 " instead of 0\n", left);
  return left == 0;
}

static double flops_of(const Session *session, const Problem *problem) {
  if (problem->window) return problem_windowed_flops(&problem->shape, problem->window);
  return (session->stage->backward ? problem_backward_flops : problem_flops)(&problem->shape);
}

// A row of CSV. Scripts know one of the ladder by its columns, so one with a window has another order.
static bool append_time(const Session *session, const Problem *problem, const Timing *timing, double flops,
                        char error[ERROR_SIZE]) {
  const char *path = session->options.csv;
  const DeviceInfo *device = device_info(session->device);
  const Shape *shape = &problem->shape;
  char row[200];
  if (!problem->window) return csv_append(path, session->stage, device, shape, timing, flops, error);
  snprintf(row, sizeof row, "%d,%d,%d,%d,%d,%.6f,%.6f,%.6f,%d,%.3f", shape->batch, shape->heads, shape->head_dim,
           shape->seqlen, problem->window, timing->median, timing->min, timing->max, timing->repeats,
           flops / timing->median * 1e-9);
  return csv_append_rows(path, session->stage, device,
                         "batch,heads,head_dim,seqlen,window,median_ms,min_ms,max_ms,repeats,tflops",
                         (const char *const[]){row}, 1, error);
}

// Times a kernel whose result is right: the time of a wrong kernel means nothing.
static int time_and_record(const Session *session, const Problem *problem, Run *run) {
  const Options *options = &session->options;
  double flops = flops_of(session, problem);
  Timing timing;
  char error[ERROR_SIZE];
  if (!timing_measure(session->device, launch_attention, run, (int)options->repeat, &timing))
    return session_fail_device(session);
  report_timing(session->out, &timing, flops);
  report_recorded(session->out, session->stage, &problem->shape, &timing, flops);
  if (options->csv && !append_time(session, problem, &timing, flops, error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  return EXIT_RIGHT;
}

static int launch_and_check(const Session *session, const Problem *problem, Run *run) {
  FILE *out = session->out;
  CheckResult results[OUTPUTS];
  bool done = launch_and_download(session, problem, run);
  if (!done && device_error(session->device)->code != DEVICE_FAULT) return session_fail_device(session);
  if (!done) {
    fprintf(out, "result    WRONG: the kernel was stopped\n");
    report_hazards(out, &session->options, session->device);
    return session_fail_device(session);
  }
  int count = check_problem(problem, session->options.seed, results);
  if (!count)
    return session_fail(session, EXIT_USAGE, "the host has no memory for the reference; use a smaller --seqlen");
  report_check(out, problem, results, count);
  report_checksums(out, problem);
  report_accuracy(out, problem, &results[0]);
  bool zero = check_counter(session, run);
  int hazards = report_hazards(out, &session->options, session->device);
  report_counters(out, session->device);
  if (session->options.counters) report_line_counters(out, session->device);
  if (!check_all_right(results, count) || !zero || hazards) return EXIT_WRONG;
  if (session->options.counters_csv) return session_record_counters(session, problem->window ? NULL : &problem->shape);
  int code = session->options.repeat ? time_and_record(session, problem, run) : EXIT_RIGHT;
  return code == EXIT_RIGHT && session->options.trace ? trace_run(session, launch_attention, run) : code;
}

static int run_problem(const Session *session, const Problem *problem) {
  Run run;
  int code =
      upload_problem(session, problem, &run) ? launch_and_check(session, problem, &run) : session_fail_device(session);
  free_tensors(session, &run);
  return code;
}

// Makes the inputs that the stage reads.
static bool create_problem(const Session *session, const Shape *shape, Problem *problem) {
  const Options *options = &session->options;
  if (!problem_create(problem, shape, options->input, options->seed)) return false;
  if (options->windowed) problem->window = (int)options->window;
  if (options->lse && !problem_add_lse(problem)) return false;
  if (session->stage->backward && !problem_add_gradients(problem, options->input, options->seed)) return false;
  if (session->stage->inputs == INPUTS_F16) return true;
  if (problem_quantise(problem, session->stage->inputs, options->scales, options->rotate, options->seed)) return true;
  problem_free(problem);
  return false;
}

int attention_run(Session *session) {
  Shape shape = options_shape(&session->options);
  const char *why = session->stage->unsupported ? session->stage->unsupported(&shape) : NULL;
  if (why) return session_fail(session, EXIT_USAGE, "%s", why);
  report_head(session->out, session->stage, device_info(session->device));
  report_problem(session->out, session->stage, &session->options, device_info(session->device));

  Problem problem;
  if (!create_problem(session, &shape, &problem))
    return session_fail(session, EXIT_USAGE,
                        "the host has no memory for these tensors; use a smaller --seqlen, --heads or --batch");
  int code = run_problem(session, &problem);
  problem_free(&problem);
  return code;
}
