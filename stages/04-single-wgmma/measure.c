// How long it takes, on a GPU: one wgmma, one launch, and as many as all SMs can do.
#include <stdlib.h>

#include "parts.h"

// What bounds an SM: its tensor cores do 4096 FLOP of fp16 a clock, its shared memory delivers 128 bytes.
static const double TENSOR_FLOP = 4096, SHARED_BYTES = 128;

// A round of a throughput kernel is four wgmmas of each warpgroup. As many rounds as make about this many clocks: 4 ms.
static const double BUSY_CLOCKS = 8e6;

static const int WARPGROUPS[] = {1, 2, 4};
enum { CHOICES = 3, MAX_ROWS = 64, ROW_SIZE = 256 };

// Rows of the CSV, gathered until all is measured.
typedef struct Rows {
  char text[MAX_ROWS][ROW_SIZE];
  int count;
} Rows;

static double wgmma_flops(int n) { return 2.0 * LINES * n * 16; }
static double tensor_clocks(int n) { return wgmma_flops(n) / TENSOR_FLOP; }

// B is 16 x N numbers of 2 bytes; A, when it is in shared memory, 64 x 16.
static double shared_clocks(const Form *form) {
  return (32.0 * form->n + (form->a_in_registers ? 0 : 2048)) / SHARED_BYTES;
}

static double bound_clocks(const Form *form) { return fmax(tensor_clocks(form->n), shared_clocks(form)); }

static const char *a_name(const Form *form) { return form->a_in_registers ? "registers" : "shared"; }

// "m64n64k16    shared    ", the first columns of each table.
static void print_form(FILE *out, const Form *form) {
  char shape[16];
  snprintf(shape, sizeof shape, "m64n%dk16", form->n);
  fprintf(out, "          %-12s %-10s", shape, a_name(form));
}

// ---- the CSV ----

static const char COLUMNS[] = "quantity,n,a,warpgroups,clocks,bound_clocks,median_ms,min_ms,max_ms,repeats,tflops,mhz";

// clocks, or timing, or both: what was not measured stays empty.
static void add_row(Rows *rows, const char *quantity, const Form *form, int warpgroups, double clocks,
                    const Timing *timing, double flops, double mhz) {
  char measured[32] = "", bound[32] = "", times[96] = ",,,,", clock[32] = "";
  if (clocks > 0) snprintf(measured, sizeof measured, "%.2f", clocks);
  if (clocks > 0 && mhz > 0) snprintf(bound, sizeof bound, "%.0f", bound_clocks(form));
  if (timing)
    snprintf(times, sizeof times, "%.6f,%.6f,%.6f,%d,%.6f", timing->median, timing->min, timing->max, timing->repeats,
             flops / timing->median * 1e-9);
  if (mhz > 0) snprintf(clock, sizeof clock, "%.0f", mhz);
  snprintf(rows->text[rows->count++], ROW_SIZE, "%s,%d,%s,%d,%s,%s,%s,%s", quantity, form->n, a_name(form), warpgroups,
           measured, bound, times, clock);
}

static int write_csv(const Session *session, const Rows *rows) {
  const char *lines[MAX_ROWS];
  char error[ERROR_SIZE];
  if (!session->options.csv) return EXIT_RIGHT;
  for (int i = 0; i < rows->count; i++) lines[i] = rows->text[i];
  if (!csv_append_rows(session->options.csv, session->stage, device_info(session->device), COLUMNS, lines, rows->count,
                       error))
    return session_fail(session, EXIT_USAGE, "%s", error);
  return EXIT_RIGHT;
}

// ---- latency ----

// As in kernel.cu.
typedef struct Span {
  int64_t begin, end;
  uint64_t begin_ns, end_ns;
} Span;

// The fewest clocks of the tries of one wgmma; negative when a call of the device failed.
static double latency_clocks(const Session *session, const Inputs *inputs, const Form *form, DeviceAddress d,
                             DeviceAddress made) {
  Device *device = session->device;
  int64_t clocks[TRIES], fewest = -1;
  DeviceLaunch launch = {
      .kernel = form_kernel(session, form, "latency"),
      .block = {WARPGROUP},
      .dynamic_shared = tiles_size(form->n),
      .arguments = ARGUMENTS(&inputs->a_device, &inputs->b_device, &d, &made),
  };
  if (!device_launch(device, &launch) || !device_download(device, clocks, made, sizeof clocks)) return -1;
  for (int t = 0; t < TRIES; t++)
    if (fewest < 0 || clocks[t] < fewest) fewest = clocks[t];
  return (double)fewest;
}

// Clocks for each wgmma of a chain, in which one adds to the D of the one before: what a single warpgroup does in the
// throughput kernel. The second launch counts, when the instructions have come.
static double chain_clocks(const Session *session, const Inputs *inputs, const Form *form, DeviceAddress d,
                           DeviceAddress made) {
  Device *device = session->device;
  Span span;
  int rounds = CHAIN / SLICES;
  DeviceLaunch launch = {
      .kernel = form_kernel(session, form, "throughput"),
      .block = {WARPGROUP},
      .dynamic_shared = tiles_size(form->n),
      .arguments = ARGUMENTS(&inputs->a_device, &inputs->b_device, &d, &made, &rounds),
  };
  if (!device_launch(device, &launch) || !device_launch(device, &launch) ||
      !device_download(device, &span, made, sizeof span))
    return -1;
  return (double)(span.end - span.begin) / CHAIN;
}

static bool measure_latency(const Session *session, const Inputs *inputs, Rows *rows) {
  Device *device = session->device;
  DeviceAddress d = device_alloc(device, sizeof(float) * LINES * MAX_N), made = device_alloc(device, 256);
  bool done = d && made;
  fprintf(session->out, "latency   clocks of one wgmma with its fence, commit and wait; and of each in a chain of %d\n",
          CHAIN);
  fprintf(session->out, "          %-12s %-10s %6s %14s\n", "shape", "A from", "one", "each in chain");
  for (int f = 0; f < FORMS && done; f++) {
    const Form *form = &forms[f];
    double one = latency_clocks(session, inputs, form, d, made), each = chain_clocks(session, inputs, form, d, made);
    done = one >= 0 && each >= 0;
    print_form(session->out, form);
    fprintf(session->out, " %6.0f %14.1f\n", one, each);
    add_row(rows, "latency", form, 1, one, NULL, 0, 0);
    add_row(rows, "chain", form, 1, each, NULL, 0, 0);
  }
  device_free(device, d);
  device_free(device, made);
  return done;
}

// ---- one launch ----

typedef struct Work {
  const Session *session;
  DeviceLaunch launch;
} Work;

static bool do_work(Device *device, void *context) {
  const Work *work = context;
  return device_launch(device, &work->launch);
}

// A kernel that does a single wgmma: what is measured is the launch.
static bool measure_launch(const Session *session, const Inputs *inputs, Rows *rows) {
  Device *device = session->device;
  DeviceAddress d = device_alloc(device, sizeof(float) * LINES * MAX_N), clocks = device_alloc(device, 256);
  Timing timing;
  int swizzle = swizzle_modes[SWIZZLES - 1].code, no = 0;
  Work work = {session,
               {.kernel = device_kernel(device, session->module, "product_shared_k"),
                .block = {WARPGROUP},
                .dynamic_shared = tiles_size(LINES),
                .arguments = ARGUMENTS(&inputs->a_device, &inputs->b_device, &d, &clocks, &swizzle, &no)}};
  bool done = timing_measure(device, do_work, &work, (int)session->options.repeat, &timing);
  device_free(device, d);
  device_free(device, clocks);
  if (!done) return false;
  char count[32];
  double flops = wgmma_flops(forms[0].n);
  fprintf(session->out, "launch    %.4f ms for a kernel with one m64n64k16, the median of %d (%.4f to %.4f ms)\n",
          timing.median, timing.repeats, timing.min, timing.max);
  fprintf(session->out, "          %s FLOP in that time are %.3g GFLOPS, not TFLOPS: it is the time of a launch\n",
          format_count(count, (uint64_t)flops), flops / timing.median * 1e-6);
  add_row(rows, "launch", &forms[0], 1, 0, &timing, flops, 0);
  return true;
}

// ---- the busy machine ----

// How one form did with a number of warpgroups on each SM.
typedef struct Busy {
  Timing timing;
  double flops;   // of all SMs
  double clocks;  // that an SM has spent on a wgmma, on average
  double mhz;     // the clock at which it ran
} Busy;

// Clocks from the first warpgroup's begin to the last one's end, averaged over the blocks; the clock's rate from the
// same.
static void summarise(const Span *spans, int blocks, int warpgroups, double wgmmas, Busy *busy) {
  double clocks = 0, nanoseconds = 0;
  for (int b = 0; b < blocks; b++) {
    Span block = spans[b * warpgroups];
    for (int w = 1; w < warpgroups; w++) {
      const Span *span = &spans[b * warpgroups + w];
      if (span->begin < block.begin) block.begin = span->begin, block.begin_ns = span->begin_ns;
      if (span->end > block.end) block.end = span->end, block.end_ns = span->end_ns;
    }
    clocks += (double)(block.end - block.begin);
    nanoseconds += (double)(block.end_ns - block.begin_ns);
  }
  busy->clocks = clocks / blocks / wgmmas;
  busy->mhz = clocks / nanoseconds * 1e3;
}

// One block an SM: with so much shared memory asked for there is no room for a second one.
static bool measure_busy(const Session *session, const Inputs *inputs, const Form *form, int warpgroups, Busy *busy) {
  Device *device = session->device;
  int blocks = device_info(device)->sm_count, count = blocks * warpgroups;
  int rounds = (int)(BUSY_CLOCKS / bound_clocks(form) / warpgroups / SLICES);
  size_t spans_size = sizeof(Span) * (size_t)count;
  DeviceAddress d = device_alloc(device, sizeof(float) * LINES * (size_t)form->n * (size_t)count);
  DeviceAddress made = device_alloc(device, spans_size);
  Work work = {session,
               {.kernel = form_kernel(session, form, "throughput"),
                .grid = {blocks},
                .block = {warpgroups * WARPGROUP},
                .dynamic_shared = 120 * 1024,
                .arguments = ARGUMENTS(&inputs->a_device, &inputs->b_device, &d, &made, &rounds)}};
  Span *spans = malloc(spans_size);
  double wgmmas = (double)rounds * SLICES * warpgroups;
  busy->flops = wgmma_flops(form->n) * wgmmas * blocks;
  bool done = spans && timing_measure(device, do_work, &work, (int)session->options.repeat, &busy->timing) &&
              device_download(device, spans, made, spans_size);
  if (done) summarise(spans, blocks, warpgroups, wgmmas, busy);
  free(spans);
  device_free(device, d);
  device_free(device, made);
  return done;
}

static void print_busy(FILE *out, const Form *form, const double clocks[CHOICES], const Busy *best) {
  print_form(out, form);
  fprintf(out, " %6.0f %6.0f  ", tensor_clocks(form->n), shared_clocks(form));
  for (int i = 0; i < CHOICES; i++)
    if (clocks[i] > 0)
      fprintf(out, " %7.1f", clocks[i]);
    else
      fprintf(out, " %7s", "-");
  fprintf(out, " %6.1f %% %8.0f %6.0f\n", 100 * bound_clocks(form) / best->clocks,
          best->flops / best->timing.median * 1e-9, best->mhz);
}

// One form, with each number of warpgroups that registers allow; the fewest clocks a wgmma are the best.
static bool measure_form(const Session *session, const Inputs *inputs, const Form *form, Rows *rows) {
  double clocks[CHOICES] = {0};
  Busy best = {0};
  for (int i = 0; i < CHOICES && WARPGROUPS[i] <= form->warpgroups; i++) {
    Busy busy;
    if (!measure_busy(session, inputs, form, WARPGROUPS[i], &busy)) return false;
    add_row(rows, "throughput", form, WARPGROUPS[i], busy.clocks, &busy.timing, busy.flops, busy.mhz);
    clocks[i] = busy.clocks;
    if (i == 0 || busy.clocks < best.clocks) best = busy;
  }
  print_busy(session->out, form, clocks, &best);
  return true;
}

static bool measure_throughput(const Session *session, const Inputs *inputs, Rows *rows) {
  fprintf(
      session->out,
      "busy      all %d SMs; clocks of an SM for each wgmma: what tensor cores and shared memory need, and what it\n"
      "          takes with 1, 2 and 4 warpgroups on an SM; how much of the bound the best one reaches\n",
      device_info(session->device)->sm_count);
  fprintf(session->out, "          %-12s %-10s %6s %6s   %7s %7s %7s %8s %8s %6s\n", "shape", "A from", "tensor",
          "shared", "1", "2", "4", "reached", "TFLOPS", "MHz");
  for (int f = 0; f < FORMS; f++)
    if (!measure_form(session, inputs, &forms[f], rows)) return false;
  return true;
}

int measure_all(const Session *session, const Inputs *inputs) {
  static Rows rows;
  rows.count = 0;
  if (!measure_latency(session, inputs, &rows) || !measure_launch(session, inputs, &rows) ||
      !measure_throughput(session, inputs, &rows))
    return session_fail_device(session);
  return write_csv(session, &rows);
}
