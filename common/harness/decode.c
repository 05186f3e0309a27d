// One decode problem from start to end: inputs, launch, check, report, timing.
#include <inttypes.h>
#include <stdlib.h>

#include "../emulator/emulator.h"
#include "harness.h"

enum { LARGEST_GROUP = 16 };  // query heads of a key head
enum { SPARE_PAGES = 3 };     // which nobody uses
enum { EMULATOR_BLOCKS = 2 };
enum { LENGTHS_FIELD_SIZE = 200 };
enum { EMULATOR_SPLITS = 4 };  // where the user gives none: stages choose for a GPU, by its many SMs

typedef struct DecodeRun {
  const Session *session;
  Decode decode;
  const DecodeProblem *problem;
} DecodeRun;

static bool launch_decode(Device *device, void *context) {
  const DecodeRun *run = context;
  return run->session->stage->decode(device, &run->decode);
}

// ---- time ----

static size_t element_size(const DecodeProblem *problem) { return problem->codes[0] ? sizeof(E4m3) : sizeof(Bf16); }

// What a kernel must read: K and V, once.
static double cache_bytes(const DecodeRun *run) {
  return 2.0 * (double)element_size(run->problem) * (double)decode_used_elements(run->problem);
}

static double gigabytes_per_second(const DecodeRun *run, const Timing *timing) {
  return cache_bytes(run) / timing->median * 1e-6;
}

// As many bytes of K, and of V, for kernels that only read.
static uint64_t bytes_of_each(const DecodeRun *run) { return (uint64_t)(cache_bytes(run) / 2); }

// Kernels that read K and V and compute nothing (common/harness/read.h), for what the machine can do in the same run.
// Which one is faster depends on the size.
static bool launch_loads(Device *device, void *context) {
  const DecodeRun *run = context;
  const Decode *d = &run->decode;
  uint64_t bytes = bytes_of_each(run);
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
  uint64_t bytes = bytes_of_each(run);
  DeviceLaunch launch = {
      .kernel = device_kernel(device, d->module, "read_copies"),
      .grid = {(unsigned)device_info(device)->sm_count, 2},
      .block = {32},
      .dynamic_shared = 12 * 8192,
      .arguments = ARGUMENTS(&d->k.address, &d->v.address, &bytes),
  };
  return device_launch(device, &launch);
}

// What the user wrote of the sequences' lengths, as a field of CSV: with spaces for the commas.
static const char *lengths_field(const Session *session, char text[LENGTHS_FIELD_SIZE]) {
  const char *given = session->options.lengths ? session->options.lengths : "ragged";
  snprintf(text, LENGTHS_FIELD_SIZE, "%s", session->stage->ragged ? given : "full");
  for (char *comma = strchr(text, ','); comma; comma = strchr(comma, ',')) *comma = ' ';
  return text;
}

// One row: the stage's time, and what reading alone takes in the same run. `splits` is empty if the stage shares no
// head out among blocks.
static int record_decode(const DecodeRun *run, const Timing *timing, const Timing *read) {
  const Session *session = run->session;
  const DecodeShape *shape = &run->decode.shape;
  char row[600], error[ERROR_SIZE], input[INPUT_NAME_SIZE], lengths[LENGTHS_FIELD_SIZE];
  int blocks =
      session->stage->splits ? session->stage->splits(&run->decode, device_info(session->device)->sm_count) : 0;
  char splits[12] = "";
  if (blocks) snprintf(splits, sizeof splits, "%d", blocks);
  snprintf(row, sizeof row, "%d,%d,%d,%d,%d,%d,%d,%s,%s,%s,%.6f,%.6f,%.6f,%d,%.1f,%.6f,%.1f,%.1f", shape->batch,
           shape->heads, shape->kv_heads, shape->keys, shape->head_dim, shape->queries, shape->page,
           lengths_field(session, lengths), splits, options_input_name(&session->options, input), timing->median,
           timing->min, timing->max, timing->repeats, gigabytes_per_second(run, timing), read->median,
           gigabytes_per_second(run, read), 100 * read->median / timing->median);
  if (csv_append_rows(
          session->options.csv, session->stage, device_info(session->device),
          "batch,heads,kv_heads,keys,head_dim,queries,page,lengths,splits,input,median_ms,min_ms,max_ms,repeats,"
          "gb_per_s,read_median_ms,read_gb_per_s,percent_of_read",
          (const char *const[]){row}, 1, error))
    return EXIT_RIGHT;
  return session_fail(session, EXIT_USAGE, "%s", error);
}

static int time_decode(DecodeRun *run) {
  const Session *session = run->session;
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
      own->median, own->repeats, own->min, own->max, gigabytes_per_second(run, own), 1e-6 * cache_bytes(run),
      read->median, read->min, read->max, gigabytes_per_second(run, read), 100 * read->median / own->median);
  return session->options.csv ? record_decode(run, own, read) : EXIT_RIGHT;
}

// ---- the program ----

// Launches it with an O and lse of NaN, so that the check finds elements that are never written, and fetches them.
static bool compute_decode(DecodeRun *run, const DecodeProblem *problem) {
  Device *device = run->session->device;
  size_t size = sizeof(Bf16) * decode_query_elements(&problem->shape);
  size_t lse = problem->lse ? sizeof(float) * decode_rows(&problem->shape) : 0;
  progress_begin(device_info(device)->kind == DEVICE_EMULATOR ? "emulating on this CPU" : "running", 0);
  bool done = device_fill(device, run->decode.o.address, 0xff, size) &&
              (!lse || device_fill(device, run->decode.lse, 0xff, lse)) && launch_decode(device, run) &&
              device_synchronise(device) && device_download(device, problem->o, run->decode.o.address, size) &&
              (!lse || device_download(device, problem->lse, run->decode.lse, lse));
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
  const Stage *stage = session->stage;
  char input[INPUT_NAME_SIZE];
  fprintf(session->out,
          "problem   decode, batch %d, heads %d of queries and %d of keys, keys %s%d, head dim %d, %s; input %s, seed "
          "%" PRIu64 "%s\n",
          shape->batch, shape->heads, shape->kv_heads, stage->ragged ? "up to " : "", shape->keys, shape->head_dim,
          stage->inputs == INPUTS_E4M3 ? "bf16, keys and values e4m3" : "bf16", options_input_name(options, input),
          options->seed, options->lse ? "; with the log-sum-exp" : "");
  if (stage->ragged) fprintf(session->out, "          lengths %.60s", options->lengths ? options->lengths : "ragged");
  if (shape->page) fprintf(session->out, ", pages of %d keys", shape->page);
  if (stage->queries)
    fprintf(session->out, ", %d %s a sequence", shape->queries, shape->queries == 1 ? "query" : "queries");
  if (stage->ragged) fprintf(session->out, "\n");
  bool all_given = options_given(options, OPTION_BATCH) && options_given(options, OPTION_HEADS) &&
                   options_given(options, OPTION_KV_HEADS) && options_given(options, OPTION_KEYS);
  if (device_info(session->device)->kind == DEVICE_EMULATOR && !all_given)
    fprintf(session->out, "          (defaults are small on the emulator; on a GPU batch 4, heads 32 and 8, keys "
                          "4096)\n");
}

static DeviceAddress upload_array(Device *device, const void *from, size_t size) {
  DeviceAddress address = device_alloc(device, size);
  device_upload(device, address, from, size);
  return address;
}

// Into how many parts the keys of a head are split, or how many blocks share all keys; 0 lets the stage choose.
static int wanted_splits(const Session *session) {
  const Options *options = &session->options;
  if (options_given(options, OPTION_SPLITS)) return (int)options->splits;
  if (options_given(options, OPTION_BLOCKS)) return (int)options->blocks;
  if (device_info(session->device)->kind != DEVICE_EMULATOR) return 0;
  return session->stage->splits ? EMULATOR_SPLITS : session->stage->ragged ? EMULATOR_BLOCKS : 0;
}

// ---- a cache in pages ----

// Where the pages of the sequences lie: [batch][pages of the longest], in random order among the pages of a pool. Where
// a sequence has no page, the table has a number that no page has.
typedef struct BlockTable {
  int *entries;
  int row, pages;  // of a sequence; of the pool
} BlockTable;

static bool make_block_table(const DecodeProblem *problem, uint64_t seed, BlockTable *table) {
  enum { NO_PAGE = 0x7fffffff };
  const DecodeShape *shape = &problem->shape;
  table->row = (shape->keys + shape->page - 1) / shape->page;
  table->pages = shape->batch * table->row + SPARE_PAGES;
  int *order = malloc((size_t)table->pages * sizeof(int));
  table->entries = malloc((size_t)(shape->batch * table->row) * sizeof(int));
  bool done = order && table->entries;
  for (int i = 0; done && i < table->pages; i++) {
    int other = (int)(random_bits(&seed) % (uint64_t)(i + 1));
    order[i] = order[other];
    order[other] = i;
  }
  for (int i = 0; done && i < shape->batch * table->row; i++)
    table->entries[i] = i % table->row * shape->page < problem->lengths[i / table->row] ? order[i] : NO_PAGE;
  free(order);
  return done;
}

// K (0) or V (1) in pages, [pages][kv_heads][page][head_dim]; what nobody uses is NaN.
static DeviceAddress upload_pages(Device *device, const DecodeProblem *problem, int tensor, const BlockTable *table) {
  const DecodeShape *shape = &problem->shape;
  const void *dense = problem->codes[tensor] ? (const void *)problem->codes[tensor] : tensor ? problem->v : problem->k;
  size_t row = element_size(problem) * (size_t)shape->head_dim, page = row * (size_t)shape->page;
  size_t heads = (size_t)shape->kv_heads, size = (size_t)table->pages * heads * page;
  char *pool = malloc(size);
  if (!pool) return 0;
  memset(pool, 0xff, size);
  for (int b = 0; b < shape->batch; b++)
    for (int first = 0; first < problem->lengths[b]; first += shape->page) {
      size_t number = (size_t)table->entries[b * table->row + first / shape->page];
      int rows = shape->keys - first < shape->page ? shape->keys - first : shape->page;
      for (size_t h = 0; h < heads; h++) {
        const char *from = (const char *)dense + (((size_t)b * heads + h) * (size_t)shape->keys + (size_t)first) * row;
        memcpy(pool + (number * heads + h) * page, from, (size_t)rows * row);
      }
    }
  DeviceAddress address = upload_array(device, pool, size);
  free(pool);
  return address;
}

// False when the host has no memory.
static bool upload_cache(Device *device, const DecodeProblem *problem, uint64_t seed, Decode *decode) {
  const DecodeShape *shape = &problem->shape;
  size_t size = decode_cache_elements(shape) * element_size(problem);
  if (problem->codes[0]) {
    size_t scales = decode_scales(problem) * sizeof(float);
    decode->k_scale = upload_array(device, problem->scales[0], scales);
    decode->v_scale = upload_array(device, problem->scales[1], scales);
    decode->scale_stride = problem->scale_stride;
  }
  if (!shape->page) {
    decode->k.address = upload_array(device, problem->codes[0] ? (void *)problem->codes[0] : problem->k, size);
    decode->v.address = upload_array(device, problem->codes[1] ? (void *)problem->codes[1] : problem->v, size);
    return true;
  }
  BlockTable table;
  bool done = make_block_table(problem, seed, &table);
  if (done) {
    decode->pages = table.pages;
    decode->block_table =
        upload_array(device, table.entries, (size_t)(shape->batch * table.row) * sizeof *table.entries);
    decode->k.address = upload_pages(device, problem, 0, &table);
    decode->v.address = upload_pages(device, problem, 1, &table);
    done = decode->k.address && decode->v.address;
  }
  free(table.entries);
  return done;
}

static int run_decode_problem(const Session *session, const DecodeProblem *problem) {
  Device *device = session->device;
  const Stage *stage = session->stage;
  const DecodeShape *shape = &problem->shape;
  int splits = wanted_splits(session);
  bool full = true;
  for (int b = 0; b < shape->batch; b++) full = full && problem->lengths[b] == shape->keys;
  size_t queries = decode_query_elements(shape) * sizeof(Bf16), lengths = (size_t)shape->batch * sizeof(int);
  size_t workspace =
      stage->decode_workspace ? stage->decode_workspace(shape, splits, device_info(device)->sm_count) : 0;
  DecodeRun run = {
      .session = session,
      .problem = problem,
      .decode =
          {
              .shape = *shape,
              .scale = (float)(1 / sqrt(shape->head_dim)),
              .q = {.address = upload_array(device, problem->q, queries)},
              .o = {.address = device_alloc(device, queries)},
              .lengths = full ? 0 : upload_array(device, problem->lengths, lengths),
              .lse = problem->lse ? device_alloc(device, decode_rows(shape) * sizeof(float)) : 0,
              .splits = splits,
              .workspace = workspace ? device_alloc(device, workspace) : 0,
              .module = session->module,
          },
  };
  Decode *d = &run.decode;
  bool ready = upload_cache(device, problem, session->options.seed, d);
  int code = device_error(device)->code != DEVICE_OK ? session_fail_device(session)
             : ready                                 ? compute_and_check_decode(&run, problem)
                     : session_fail(session, EXIT_USAGE, "the host has no memory for pages; use a smaller --keys");
  const DeviceAddress addresses[] = {d->q.address, d->k.address,   d->v.address, d->o.address, d->workspace,
                                     d->lengths,   d->block_table, d->k_scale,   d->v_scale,   d->lse};
  for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) device_free(device, addresses[i]);
  return code;
}

// The problem's sequences and types, when the tensors are there.
static int prepare_decode_problem(const Session *session, DecodeProblem *problem) {
  const Options *options = &session->options;
  const char *lengths = options->lengths ? options->lengths : "ragged";
  if (session->stage->ragged && !decode_problem_set_lengths(problem, lengths, options->seed))
    return session_fail(session, EXIT_USAGE,
                        "--lengths=%.40s: full, ragged, or numbers from 0 to --keys with commas between them", lengths);
  if (session->stage->inputs == INPUTS_E4M3 && !decode_problem_quantise(problem, options->scales))
    return session_fail(session, EXIT_USAGE, "the host has no memory for e4m3 tensors; use a smaller --keys");
  if (options->lse && !decode_problem_add_lse(problem))
    return session_fail(session, EXIT_USAGE, "the host has no memory for the log-sum-exp; use a smaller --batch");
  return EXIT_RIGHT;
}

int decode_run(Session *session) {
  DecodeShape shape = options_decode_shape(&session->options, session->stage);
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
  int code = prepare_decode_problem(session, &problem);
  if (code == EXIT_RIGHT) code = run_decode_problem(session, &problem);
  decode_problem_free(&problem);
  return code;
}
