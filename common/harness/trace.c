// The timeline of a kernel with time stamps (ptx/trace.h). It launches the kernel once more, reads the stamps that the
// warpgroups of one SM have stored, and writes a CSV with a row for each phase of each warpgroup.
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "../ptx/trace.h"
#include "harness.h"

enum { PLACES = TRACE_BLOCKS * TRACE_WARPGROUPS, MAX_SMS = 1024 };

// ---- reading ----

// Where the kernels' table of stamps lies; 0 when they have none.
static DeviceAddress find_table(Device *device, DeviceModule *module) {
  DeviceAddress table = 0, answer = device_alloc(device, sizeof table);
  DeviceLaunch where = {.kernel = device_kernel(device, module, "trace_where"), .arguments = ARGUMENTS(&answer)};
  if (device_launch(device, &where)) device_download(device, &table, answer, sizeof table);
  device_free(device, answer);
  return table;
}

TraceWarpgroup *trace_measure(Device *device, DeviceModule *module, DeviceWork *work, void *context) {
  size_t size = PLACES * sizeof(TraceWarpgroup);
  TraceWarpgroup *table = malloc(size);
  DeviceAddress address = table ? find_table(device, module) : 0;
  if (address && device_fill(device, address, 0, size) && work(device, context) && device_synchronise(device) &&
      device_download(device, table, address, size))
    return table;
  free(table);
  return NULL;
}

// ---- clocks ----

// Whether two places of the table are of warpgroups on one SM.
static bool together(const TraceWarpgroup *a, const TraceWarpgroup *b) { return a->role && b->role && a->sm == b->sm; }

// Adds how long the SM of this place was at work, in cycles and in nanoseconds.
static void add_sm(const TraceWarpgroup *table, const TraceWarpgroup *any, double *cycles, double *ns) {
  const TraceWarpgroup *first = any, *last = any;
  for (const TraceWarpgroup *place = table; place < table + PLACES; place++) {
    if (!together(place, any)) continue;
    if (place->begin_clock < first->begin_clock) first = place;
    if (place->end_clock > last->end_clock) last = place;
  }
  *cycles += (double)(last->end_clock - first->begin_clock);
  *ns += (double)(last->end_time - first->begin_time);
}

double trace_cycle(const TraceWarpgroup *table) {
  double cycles = 0, ns = 0;
  bool seen[MAX_SMS] = {false};
  for (const TraceWarpgroup *place = table; place < table + PLACES; place++) {
    if (!place->role || !place->end_clock || place->sm >= MAX_SMS || seen[place->sm]) continue;
    seen[place->sm] = true;
    add_sm(table, place, &cycles, &ns);
  }
  return cycles > 0 && ns > 0 ? ns / cycles : 0;
}

// ---- rows ----

// One row of the CSV, with times in cycles of the SM.
typedef struct Interval {
  uint64_t start, end;
  int phase, tile;
  bool background;
} Interval;

enum { MAX_INTERVALS = 2 * TRACE_TILES * TRACE_PHASE_COUNT };

static int compare_starts(const void *a, const void *b) {
  const Interval *left = a, *right = b;
  if (left->start != right->start) return left->start < right->start ? -1 : 1;
  return left->background - right->background;
}

// A stamp is the lower half of the clock, at most 2^32 cycles (two seconds) after the warpgroup began.
static uint64_t whole_clock(const TraceWarpgroup *place, uint32_t stamp) {
  return place->begin_clock + (uint32_t)(stamp - (uint32_t)place->begin_clock);
}

// A warpgroup's phases in the order of their starts. Each lasts until the next one, and the last one until the end, if
// that was recorded. The last tile of a full table is left out, because its end was not recorded. Returns the number of
// phases.
static int list_phases(const TraceWarpgroup *place, Interval *list) {
  int count = 0, kept = 0;
  for (int tile = 0; tile < TRACE_TILES; tile++)
    for (int phase = 0; phase < TRACE_PHASE_COUNT; phase++)
      if (place->mark[tile][phase])
        list[count++] = (Interval){.start = whole_clock(place, place->mark[tile][phase]), .phase = phase, .tile = tile};
  qsort(list, (size_t)count, sizeof *list, compare_starts);
  for (int i = 0; i < count; i++) {
    list[i].end = i + 1 < count ? list[i + 1].start : place->end_clock;
    if (list[i].tile < TRACE_TILES - 1 && list[i].end >= list[i].start) list[kept++] = list[i];
  }
  return kept;
}

// The work in the background: from the phase that started it to the time when it was known to be done.
static int list_background(const TraceWarpgroup *place, Interval *list) {
  int count = 0;
  for (int tile = 0; tile < TRACE_TILES - 1; tile++)
    for (int phase = 0; phase < TRACE_PHASE_COUNT; phase++)
      if (place->mark[tile][phase] && place->done[tile][phase])
        list[count++] = (Interval){.start = whole_clock(place, place->mark[tile][phase]),
                                   .end = whole_clock(place, place->done[tile][phase]),
                                   .phase = phase,
                                   .tile = tile,
                                   .background = true};
  return count;
}

static const char *role_name(uint32_t role) {
  return role == TRACE_PRODUCER ? "producer" : role == TRACE_CONSUMER ? "consumer" : "all";
}

int trace_print(FILE *file, const char *head, const TraceWarpgroup *table, double cycle) {
#define TRACE_TEXT(name, text) text,
  static const char *const phases[] = {TRACE_PHASES(TRACE_TEXT)};
  Interval list[MAX_INTERVALS];
  const TraceWarpgroup *first = table;
  while (first < table + PLACES && !first->role) first++;
  uint64_t origin = UINT64_MAX;
  for (int i = 0; i < PLACES; i++)
    if (together(&table[i], first) && table[i].begin_clock < origin) origin = table[i].begin_clock;

  int rows = 0;
  fprintf(file, "stage,device,date,block,warpgroup,role,phase,start_ns,end_ns,tile\n");
  for (int i = 0; i < PLACES; i++) {
    if (!together(&table[i], first)) continue;
    int count = list_phases(&table[i], list);
    count += list_background(&table[i], list + count);
    qsort(list, (size_t)count, sizeof *list, compare_starts);
    for (const Interval *now = list; now < list + count; now++)
      fprintf(file, "%s,%d,%d,%s,%s%s,%.3f,%.3f,%d\n", head, i / TRACE_WARPGROUPS, i % TRACE_WARPGROUPS,
              role_name(table[i].role), phases[now->phase], now->background ? " in flight" : "",
              (double)(now->start - origin) * cycle, (double)(now->end - origin) * cycle, now->tile);
    rows += count;
  }
  return rows;
}

// ---- the file ----

// Writes the CSV and reports what it contains. Returns an exit code.
static int write_file(const Session *session, const TraceWarpgroup *table) {
  const char *path = session->options.trace;
  double cycle = trace_cycle(table);
  if (cycle == 0)
    return session_fail(session, EXIT_WRONG,
                        "--trace: no warpgroup recorded its begin and end (trace_begin, trace_end)");
  FILE *file = fopen(path, "w");
  if (!file) return session_fail(session, EXIT_USAGE, "--trace=%.200s: %s", path, strerror(errno));
  char head[200], date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  snprintf(head, sizeof head, "%s,%s,%s", session->stage->name, device_info(session->device)->name, date);
  int rows = trace_print(file, head, table, cycle);
  bool failed = ferror(file) != 0;
  if (fclose(file) || failed) return session_fail(session, EXIT_USAGE, "--trace=%.200s: %s", path, strerror(errno));
  fprintf(session->out, "trace     %d phases of the warpgroups on one SM, at %.0f MHz, in %s\n", rows, 1e3 / cycle,
          path);
  return EXIT_RIGHT;
}

int trace_run(const Session *session, DeviceWork *work, void *context) {
  TraceWarpgroup *table = trace_measure(session->device, session->module, work, context);
  const DeviceError *error = device_error(session->device);
  const char *name = session->stage->name;
  int length = (int)strcspn(name, "-");
  if (error->code == DEVICE_INVALID)
    return session_fail(session, EXIT_USAGE,
                        "--trace: this program has no time stamps; `make trace-%.*s` makes one "
                        "that has them, build/trace/trace-%.*s",
                        length, name, length, name);
  if (error->code != DEVICE_OK) return session_fail_device(session);
  if (!table) return session_fail(session, EXIT_USAGE, "the host has no memory for the time stamps");
  int code = write_file(session, table);
  free(table);
  return code;
}
