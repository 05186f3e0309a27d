// One decode problem from start to end: inputs, launch, check, report, timing.
#include <inttypes.h>

#include "../emulator/emulator.h"
#include "harness.h"

enum { LARGEST_GROUP = 16 };   // query heads of a key head
enum { EMULATOR_SPLITS = 4 };  // where the user gives none: stages choose for a GPU, by its many SMs

typedef struct DecodeRun {
  const Session *session;
  Decode decode;
} DecodeRun;

static bool launch_decode(Device *device, void *context) {
  const DecodeRun *run = context;
  return run->session->stage->decode(device, &run->decode);
}

// ---- time ----

// What a kernel must read: K and V, once.
static double cache_bytes(const DecodeShape *shape) {
  return 2.0 * sizeof(Bf16) * (double)decode_cache_elements(shape);
}

static double gigabytes_per_second(const DecodeShape *shape, const Timing *timing) {
  return cache_bytes(shape) / timing->median * 1e-6;
}

// Kernels that read K and V and compute nothing (stages/13-decode/read.h), for what the machine can do in the same run.
// Which one is faster depends on the size.
static bool launch_loads(Device *device, void *context) {
  const DecodeRun *run = context;
  const Decode *d = &run->decode;
  uint64_t bytes = sizeof(Bf16) * decode_cache_elements(&d->shape);
  DeviceLaunch launch = {
      .kernel = device_kernel(device, d->module, "read_loads"),
      .grid = {4 * (unsigned)device_info(device)->sm_count, 2},
      .block = {256},
      .arguments = ARGUMENTS(&d->k.address, &d->v.address, &bytes, &d->o.address),
  };
  return device_launch(device, &launch);
}

static bool launch_copies(Device *device, void *context) {
  const DecodeRun *run = context;
  const Decode *d = &run->decode;
  uint64_t bytes = sizeof(Bf16) * decode_cache_elements(&d->shape);
  DeviceLaunch launch = {
      .kernel = device_kernel(device, d->module, "read_copies"),
      .grid = {(unsigned)device_info(device)->sm_count, 2},
      .block = {32},
      .dynamic_shared = 12 * 8192,
      .arguments = ARGUMENTS(&d->k.address, &d->v.address, &bytes),
  };
  return device_launch(device, &launch);
}

// One row: the stage's time, and what reading alone takes in the same run.
static int record_decode(const DecodeRun *run, const Timing *timing, const Timing *read) {
  const Session *session = run->session;
  const DecodeShape *shape = &run->decode.shape;
  char row[300], error[ERROR_SIZE], input[INPUT_NAME_SIZE];
  snprintf(row, sizeof row, "%d,%d,%d,%d,%d,%s,%.6f,%.6f,%.6f,%d,%.1f,%.6f,%.1f,%.1f", shape->batch, shape->heads,
           shape->kv_heads, shape->keys, shape->head_dim, options_input_name(&session->options, input), timing->median,
           timing->min, timing->max, timing->repeats, gigabytes_per_second(shape, timing), read->median,
           gigabytes_per_second(shape, read), 100 * read->median / timing->median);
  if (csv_append_rows(session->options.csv, session->stage, device_info(session->device),
                      "batch,heads,kv_heads,keys,head_dim,input,median_ms,min_ms,max_ms,repeats,gb_per_s,"
                      "read_median_ms,read_gb_per_s,percent_of_read",
                      (const char *const[]){row}, 1, error))
    return EXIT_RIGHT;
  return session_fail(session, EXIT_USAGE, "%s", error);
}

static int time_decode(DecodeRun *run) {
  const Session *session = run->session;
  const DecodeShape *shape = &run->decode.shape;
  TimedWork works[] = {{launch_decode, run}, {launch_loads, run}, {launch_copies, run}};
  Timing timings[3];
  if (!timing_measure_each(session->device, works, 3, (int)session->options.repeat, timings))
    return session_fail_device(session);
  const Timing *own = &timings[0], *read = &timings[timings[1].median < timings[2].median ? 1 : 2];
  fprintf(
      session->out,
      "time      %.4f ms, the median of %d repeats (%.4f to %.4f ms); %.0f GB/s of %.4g MB of keys and values\n"
      "reading   %.4f ms (%.4f to %.4f ms), for a kernel that only reads them: %.0f GB/s. The stage reaches %.1f %% of "
      "that\n",
      own->median, own->repeats, own->min, own->max, gigabytes_per_second(shape, own), 1e-6 * cache_bytes(shape),
      read->median, read->min, read->max, gigabytes_per_second(shape, read), 100 * read->median / own->median);
  return session->options.csv ? record_decode(run, own, read) : EXIT_RIGHT;
}

// ---- the program ----

// Launches it with an O of NaN, so that the check finds elements that are never written, and fetches O.
static bool compute_decode(DecodeRun *run, const DecodeProblem *problem) {
  Device *device = run->session->device;
  size_t size = sizeof(Bf16) * decode_query_elements(&problem->shape);
  progress_begin(device_info(device)->kind == DEVICE_EMULATOR ? "emulating on this CPU" : "running", 0);
  bool done = device_fill(device, run->decode.o.address, 0xff, size) && launch_decode(device, run) &&
              device_synchronise(device) && device_download(device, problem->o, run->decode.o.address, size);
  progress_end();
  return done;
}

static int compute_and_check_decode(DecodeRun *run, const DecodeProblem *problem) {
  const Session *session = run->session;
  const Options *options = &session->options;
  FILE *out = session->out;
  DecodeCheck check;
  bool done = compute_decode(run, problem);
  if (!done && device_error(session->device)->code != DEVICE_FAULT) return session_fail_device(session);
  if (!done) {
    fprintf(out, "result    WRONG: the kernel was stopped\n");
    report_hazards(out, options, session->device);
    return session_fail_device(session);
  }
  if (!decode_check(problem, options->seed, &check))
    return session_fail(session, EXIT_USAGE, "the host has no memory for the reference; use a smaller --keys");
  decode_report_check(out, problem, &check);
  int hazards = report_hazards(out, options, session->device);
  report_counters(out, session->device);
  if (options->counters) report_line_counters(out, session->device);
  if (!decode_check_is_right(&check) || hazards) return EXIT_WRONG;
  if (options->counters_csv) return session_record_counters(session, NULL);
  int code = options->repeat ? time_decode(run) : EXIT_RIGHT;
  return code == EXIT_RIGHT && options->trace ? trace_run(session, launch_decode, run) : code;
}

static void report_decode_problem(const Session *session, const DecodeShape *shape) {
  const Options *options = &session->options;
  char input[INPUT_NAME_SIZE];
  fprintf(session->out,
          "problem   decode, batch %d, heads %d of queries and %d of keys, keys %d, head dim %d, bf16; input %s, seed "
          "%" PRIu64 "\n",
          shape->batch, shape->heads, shape->kv_heads, shape->keys, shape->head_dim, options_input_name(options, input),
          options->seed);
  bool all_given = options_given(options, OPTION_BATCH) && options_given(options, OPTION_HEADS) &&
                   options_given(options, OPTION_KV_HEADS) && options_given(options, OPTION_KEYS);
  if (device_info(session->device)->kind == DEVICE_EMULATOR && !all_given)
    fprintf(session->out, "          (defaults are small on the emulator; on a GPU batch 4, heads 32 and 8, keys "
                          "4096)\n");
}

static DeviceAddress upload_bf16(Device *device, const Bf16 *from, size_t elements) {
  DeviceAddress address = device_alloc(device, elements * sizeof(Bf16));
  device_upload(device, address, from, elements * sizeof(Bf16));
  return address;
}

// The number of parts that the keys of a head are split into; 0 lets the stage choose.
static int wanted_splits(const Session *session) {
  if (options_given(&session->options, OPTION_SPLITS)) return (int)session->options.splits;
  return session->stage->splits && device_info(session->device)->kind == DEVICE_EMULATOR ? EMULATOR_SPLITS : 0;
}

static int run_decode_problem(const Session *session, const DecodeProblem *problem) {
  Device *device = session->device;
  const Stage *stage = session->stage;
  const DecodeShape *shape = &problem->shape;
  int splits = wanted_splits(session);
  size_t queries = decode_query_elements(shape), cache = decode_cache_elements(shape);
  size_t workspace =
      stage->decode_workspace ? stage->decode_workspace(shape, splits, device_info(device)->sm_count) : 0;
  DecodeRun run = {
      .session = session,
      .decode =
          {
              .shape = *shape,
              .scale = (float)(1 / sqrt(shape->head_dim)),
              .q = {.address = upload_bf16(device, problem->q, queries)},
              .k = {.address = upload_bf16(device, problem->k, cache)},
              .v = {.address = upload_bf16(device, problem->v, cache)},
              .o = {.address = device_alloc(device, queries * sizeof(Bf16))},
              .splits = splits,
              .workspace = workspace ? device_alloc(device, workspace) : 0,
              .module = session->module,
          },
  };
  bool ready = device_error(device)->code == DEVICE_OK;
  int code = ready ? compute_and_check_decode(&run, problem) : session_fail_device(session);
  const Decode *d = &run.decode;
  const DeviceAddress addresses[] = {d->q.address, d->k.address, d->v.address, d->o.address, d->workspace};
  for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) device_free(device, addresses[i]);
  return code;
}

int decode_run(Session *session) {
  DecodeShape shape = options_decode_shape(&session->options);
  if (shape.heads % shape.kv_heads || shape.heads / shape.kv_heads > LARGEST_GROUP)
    return session_fail(session, EXIT_USAGE,
                        "--heads=%d --kv-heads=%d: 1 to %d query heads share a key head, each as many", shape.heads,
                        shape.kv_heads, LARGEST_GROUP);
  DecodeProblem problem;
  report_head(session->out, session->stage, device_info(session->device));
  report_decode_problem(session, &shape);
  if (!decode_problem_create(&problem, &shape, session->options.input, session->options.seed))
    return session_fail(session, EXIT_USAGE,
                        "the host has no memory for these tensors; use a smaller --keys, --kv-heads or --batch");
  int code = run_decode_problem(session, &problem);
  decode_problem_free(&problem);
  return code;
}
