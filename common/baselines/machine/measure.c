// On a GPU: how many clocks a step takes, how many operations a clock holds, and what all SMs together can read.
#include <stdlib.h>

#include "parts.h"

enum { MOST_ROWS = 64, ROW_SIZE = 256, MOST_TRIES = 1000 };

static const size_t FAR_SIZE = (size_t)4 << 30;  // so much larger than the L2 cache that nothing of it is found there
enum { L2_ROUNDS = 400 };
enum { CLOCK_ROUNDS = 2000, WARM_UPS = 200 };                // a round is about a thousand clocks
enum { QUEUING_ROUNDS = 5 * CLOCK_ROUNDS, LAUNCHES = 400 };  // the GPU's queue has room for twice as many

typedef struct Row {
  const char *name, *measure, *unit;
  double median, least, greatest, mhz;
  int tries;
} Row;

typedef struct Rows {
  Row row[MOST_ROWS];
  int count;
} Rows;

static int at_most(uint64_t tries) { return tries < MOST_TRIES ? (int)tries : MOST_TRIES; }

static int tries_of(const Bench *bench) { return at_most(bench->session->options.repeat); }

static int compare_doubles(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static void add_row(Rows *rows, Row row, double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare_doubles);
  row.median = (values[(count - 1) / 2] + values[count / 2]) / 2;
  row.least = values[0];
  row.greatest = values[count - 1];
  row.tries = count;
  rows->row[rows->count++] = row;
}

// What the driver says of the GPU.
static void add_sizes(const Bench *bench, Rows *rows) {
  const DeviceInfo *device = device_info(bench->device);
  add_row(rows, (Row){"SMs", "size", "SMs", .mhz = 0}, (double[]){device->sm_count}, 1);
  add_row(rows, (Row){"L2", "size", "MiB", .mhz = 0}, (double[]){(double)device->l2_size * 0x1p-20}, 1);
  add_row(rows, (Row){"device memory", "size", "GiB", .mhz = 0}, (double[]){(double)device->memory * 0x1p-30}, 1);
}

// ---- the clock ----

// The SM's clock while one thread calculates; negative when a call of the device has failed.
static double clock_mhz(const Bench *bench) {
  int64_t spans[2];
  if (!bench_launch_one(bench, "sm_clock", CLOCK_ROUNDS) ||
      !device_download(bench->device, spans, bench->clocks, sizeof spans))
    return -1;
  return (double)spans[0] / (double)spans[1] * 1e3;
}

static bool warm_up_clock(const Bench *bench) {
  for (int i = 0; i < WARM_UPS; i++)
    if (!bench_launch_one(bench, "sm_clock", CLOCK_ROUNDS)) return false;
  return device_synchronise(bench->device);
}

static bool measure_clock(const Bench *bench, Rows *rows) {
  double values[MOST_TRIES];
  for (int t = 0; t < tries_of(bench); t++)
    if ((values[t] = clock_mhz(bench)) < 0) return false;
  add_row(rows, (Row){"SM clock", "rate", "MHz", .mhz = values[0]}, values, tries_of(bench));
  return true;
}

// ---- inside an SM ----

// What a round more costs: the kernel's last run has as many rounds more as its last but one has.
static bool measure_quantity(Bench *bench, const Quantity *quantity, Rows *rows) {
  double values[MOST_TRIES], mhz = clock_mhz(bench);
  // Each try is about another line of the L2 cache, and some are farther away than others.
  int tries = at_most(bench->session->options.repeat * (quantity->content == RINGS ? 20 : 1));
  for (int t = 0; t < tries; t++) {
    int64_t clocks[RUNS];
    if (!bench_launch(bench, quantity, quantity->rounds, t) ||
        !device_download(bench->device, clocks, bench->clocks, sizeof clocks))
      return false;
    double work = (double)quantity->rounds * quantity->steps * quantity->work;
    double spent = (double)(clocks[TWICE] - clocks[ONCE]);
    values[t] = quantity->is_rate ? work / spent : spent / work;
  }
  Row row = {quantity->name, quantity->is_rate ? "rate" : "latency", quantity->unit, .mhz = mhz};
  add_row(rows, row, values, tries);
  return mhz > 0;
}

// ---- the whole GPU ----

typedef struct Work {
  const Bench *bench;
  Whole whole;
} Work;

static bool launch_whole(Device *device, void *context) {
  const Work *work = context;
  (void)device;
  return bench_launch_whole(work->bench, &work->whole);
}

// GB/s. moved: bytes for each byte of memory.
static bool measure_whole(const Bench *bench, const char *name, Whole whole, double moved, Rows *rows) {
  double values[MOST_TRIES], mhz = clock_mhz(bench);
  Work work = {bench, whole};
  for (int t = -1; t < tries_of(bench); t++) {  // one to warm up
    double milliseconds;
    if (!device_time(bench->device, launch_whole, &work, &milliseconds)) return false;
    if (t >= 0) values[t] = moved * (double)whole.size * whole.rounds / milliseconds * 1e-6;
  }
  add_row(rows, (Row){name, "rate", "GB/s", .mhz = mhz}, values, tries_of(bench));
  return true;
}

static bool measure_bandwidth(const Bench *bench, Rows *rows) {
  Device *device = bench->device;
  DeviceAddress from = device_alloc(device, FAR_SIZE), to = device_alloc(device, FAR_SIZE);
  bool done = device_fill(device, from, 1, FAR_SIZE) &&
              measure_whole(bench, "L2", (Whole){bench->memory, 0, bench->size, L2_ROUNDS}, 1, rows) &&
              measure_whole(bench, "device memory", (Whole){from, 0, FAR_SIZE, 1}, 1, rows) &&
              measure_whole(bench, "device memory copy", (Whole){from, to, FAR_SIZE, 1}, 2, rows);
  device_free(device, from);
  device_free(device, to);
  return done;
}

// Kernels that do nothing, queued while another one keeps the GPU busy: the host is not what they wait for.
typedef struct Queue {
  const Bench *bench;
  int launches;
} Queue;

static bool launch_queue(Device *device, void *context) {
  const Queue *queue = context;
  (void)device;
  if (!bench_launch_one(queue->bench, "sm_clock", QUEUING_ROUNDS)) return false;
  for (int i = 0; i < queue->launches; i++)
    if (!bench_launch_one(queue->bench, "empty", 1)) return false;
  return true;
}

// What LAUNCHES more of them cost.
static bool measure_launch(const Bench *bench, Rows *rows) {
  double values[MOST_TRIES], mhz = clock_mhz(bench);
  Queue few = {bench, LAUNCHES}, many = {bench, 2 * LAUNCHES};
  for (int t = -1; t < tries_of(bench); t++) {  // one to warm up
    double less, more;
    if (!device_time(bench->device, launch_queue, &few, &less) ||
        !device_time(bench->device, launch_queue, &many, &more))
      return false;
    if (t >= 0) values[t] = (more - less) * 1e6 / LAUNCHES;
  }
  add_row(rows, (Row){"kernel launch", "latency", "ns", .mhz = mhz}, values, tries_of(bench));
  return true;
}

// ---- report and CSV ----

static void print_rows(FILE *out, const Rows *rows, const char *measure, const char *meaning) {
  fprintf(out, "%-9s %s\n", measure, meaning);
  for (int i = 0; i < rows->count; i++) {
    const Row *row = &rows->row[i];
    if (strcmp(row->measure, measure)) continue;
    fprintf(out, "          %-32s %9.2f %9.2f %9.2f  %s\n", row->name, row->median, row->least, row->greatest,
            row->unit);
  }
}

static int write_csv(const Session *session, const Rows *rows) {
  char text[MOST_ROWS][ROW_SIZE], error[ERROR_SIZE];
  const char *lines[MOST_ROWS];
  if (!session->options.csv) return EXIT_RIGHT;
  for (int i = 0; i < rows->count; i++) {
    const Row *row = &rows->row[i];
    snprintf(text[i], ROW_SIZE, "%s,%s,%.3f,%s,%.3f,%.3f,%d,%.0f", row->name, row->measure, row->median, row->unit,
             row->least, row->greatest, row->tries, row->mhz);
    lines[i] = text[i];
  }
  if (!csv_append_rows(session->options.csv, session->stage, device_info(session->device),
                       "quantity,measure,value,unit,least,greatest,tries,clock_mhz", lines, rows->count, error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  return EXIT_RIGHT;
}

int measure_all(Bench *bench) {
  static Rows rows;
  const Session *session = bench->session;
  rows.count = 0;
  add_sizes(bench, &rows);
  bool done = warm_up_clock(bench) && measure_clock(bench, &rows);
  for (int i = 0; i < quantity_count && done; i++) done = measure_quantity(bench, &quantities[i], &rows);
  if (!done || !measure_bandwidth(bench, &rows) || !measure_launch(bench, &rows)) return session_fail_device(session);
  print_rows(session->out, &rows, "size", "as the driver says");
  print_rows(session->out, &rows, "latency", "of a step whose result the next one needs: median, least, greatest");
  print_rows(session->out, &rows, "rate", "of an SM in a clock, or of the GPU in a second: median, least, greatest");
  return write_csv(session, &rows);
}
