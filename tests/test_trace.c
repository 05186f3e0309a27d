// Time stamps in kernels: without -DTRACE they are nothing; with it they change no result, and each is where it should
// be. (The emulator's clock means no time, and stands still for a while, but it never goes back.) And what the CSV
// makes of a table of stamps.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/harness.h"
#include "ptx/trace.h"
#include "support/program.h"

TestSuite(trace, .timeout = 120);
TestSuite(gpu_trace, .timeout = 300);

// The file build/FOLDER/NAME.ptx. The caller frees it.
static char *built_ptx(const char *folder, const char *name, size_t *size) {
  char path[1000];
  snprintf(path, sizeof path, "%s/%s/%s.ptx", getenv("BUILT") ? getenv("BUILT") : "build", folder, name);
  char *text = read_whole(path, size);
  cr_assert(text, "%s cannot be read", path);
  return text;
}

// ---- without -DTRACE ----

// Takes the next line that is no debug information, which numbers the source's lines: .loc, .file, .section to the end.
static char *next_line(char **rest) {
  for (char *line; (line = strtok_r(*rest, "\n", rest));) {
    if (!strncmp(line, "\t.section", 9)) return NULL;
    if (strncmp(line, "\t.loc\t", 6) && strncmp(line, "\t.file\t", 7)) return line;
  }
  return NULL;
}

// A mark is one of four macros, the same in all kernels, and stage 06 uses each: its kernel is also compiled from a
// text without its marks.
Test(trace, marks_leave_no_instruction) {
  size_t size;
  char *marked = built_ptx("kernels", "06-tma", &size), *unmarked = built_ptx("unmarked", "06-tma", &size);
  char *left = marked, *right = unmarked, *line = NULL, *other = NULL;
  int lines = 0;
  do {
    line = next_line(&left);
    other = next_line(&right);
    cr_assert((line == NULL) == (other == NULL) && (!line || !strcmp(line, other)),
              "'%s' with marks, '%s' without", line ? line : "the end", other ? other : "the end");
    lines++;
  } while (line);
  cr_expect(lines > 100, "only %d lines compared", lines);
  free(marked);
  free(unmarked);
}

// ---- with -DTRACE, on the emulator ----

Test(trace, a_traced_stage_is_right) {
  char names[1000], line[1200];
  snprintf(names, sizeof names, "%s", getenv("TRACED") ? getenv("TRACED") : "");
  cr_expect(*names, "no stage has time stamps");
  for (char *rest = names, *name; (name = strtok_r(rest, " ", &rest));) {
    const char *stage = program_of(name);
    for (int head_dim = 64; head_dim <= 128; head_dim *= 2) {
      snprintf(line, sizeof line, "--seqlen=200 --causal --head-dim=%d --ptx=%s/trace/%s.ptx", head_dim,
               getenv("BUILT"), name);
      Output *output = run_line(stage, line);
      cr_expect_eq(output->code, 0, "%s %s: %s%s", stage, line, output->out, output->err);
      free(output);
    }
  }
}

// ---- reading a CSV ----

#define HEADER "stage,device,date,block,warpgroup,role,phase,start_ns,end_ns,tile\n"

// What trace_print prints, with a cycle of half a nanosecond: so many rows (0: any number).
static char *printed(const TraceWarpgroup *table, int rows) {
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  int count = trace_print(file, "07-x,GPU,then", table, 0.5);
  cr_expect(count == rows || !rows, "%d rows", count);
  fclose(file);
  return text;
}

// One row of the CSV.
typedef struct Row {
  int block, warpgroup, tile;
  char role[16], phase[32];
  double start, end;
} Row;

// Reads a row's fields behind stage, device and date.
static bool read_row(const char *line, Row *row) {
  for (int i = 0; i < 3; i++) {
    line = strchr(line, ',');
    if (!line++) return false;
  }
  return sscanf(line, "%d,%d,%15[^,],%31[^,],%lf,%lf,%d", &row->block, &row->warpgroup, row->role, row->phase,
                &row->start, &row->end, &row->tile) == 7;
}

// A warpgroup's phases follow one another without a gap, and what is in flight ends inside its time; each tile has its
// two products; the first row begins near 0, and all is over in less than a second.
static void check_timeline(const char *name, char *csv, int least) {
  Row row, last = {.block = -1};
  int rows = 0, products = 0;
  char *rest = csv;
  cr_expect(!strncmp(strsep(&rest, "\n"), HEADER, strlen(HEADER) - 1), "%s", name);
  for (char *line; rest && (line = strsep(&rest, "\n")) && *line; rows++) {
    cr_assert(read_row(line, &row), "%s: %s", name, line);
    cr_expect(row.start >= 0 && row.end >= row.start && row.end < 1e9, "%s: %s", name, line);
    if (strstr(row.phase, " in flight")) continue;
    bool same = row.block == last.block && row.warpgroup == last.warpgroup;
    cr_expect(!same || fabs(row.start - last.end) < 0.002, "%s: a gap of %.3f ns before %s", name, row.start - last.end,
              line);
    products += !strcmp(row.phase, "QK") - !strcmp(row.phase, "PV");
    last = row;
  }
  cr_expect(rows >= least, "%s: %d rows", name, rows);
  cr_expect_eq(products, 0, "%s: %d more QK than PV", name, products);
}

// One launch of stage 03 with two blocks, each of two tiles of keys.
typedef struct Launch {
  DeviceModule *module;
  DeviceAddress tensor, o;
} Launch;

enum { SEQLEN = 128, HEADS = 2, HEAD_DIM = 64, TILES = 2 };

static bool launch_stage_03(Device *device, void *context) {
  Launch *launch = context;
  int seqlen = SEQLEN, causal = 0;
  float scale = 0.125f;
  DeviceLaunch attention = {
      .kernel = device_kernel(device, launch->module, "attention_64"),
      .grid = {HEADS},
      .block = {128},
      .dynamic_shared = sizeof(Half) * HEAD_DIM * (128 + 4 * 64),
      .arguments = ARGUMENTS(&launch->tensor, &launch->tensor, &launch->tensor, &launch->o, &seqlen, &scale, &causal),
  };
  return device_launch(device, &attention);
}

static Device *open_emulator(void) {
  DeviceError error;
  Device *device = device_open(&(DeviceOptions){.kind = DEVICE_EMULATOR}, &error);
  cr_assert(device, "%s", error.text);
  return device;
}

// The phases of tile t in stage 03, in their order.
static const enum TracePhase loop[] = {TRACE_WAIT_K, TRACE_BARRIER, TRACE_COPY, TRACE_QK, TRACE_SOFTMAX, TRACE_PV};

Test(trace, stamps_of_stage_03) {
  size_t ptx_size;
  char *ptx = built_ptx("trace", "03-cp-async", &ptx_size);
  Device *device = open_emulator();
  size_t bytes = sizeof(Half) * HEADS * SEQLEN * HEAD_DIM;
  Launch launch = {.module = device_load(device, &(DeviceImage){.ptx = ptx, .ptx_size = ptx_size}),
                   .tensor = device_alloc(device, bytes),
                   .o = device_alloc(device, bytes)};
  cr_assert(device_fill(device, launch.tensor, 0, bytes));
  // The second table has nothing of the first launch in it: stamps of a launch are those of the last one alone.
  free(trace_measure(device, launch.module, launch_stage_03, &launch));
  TraceWarpgroup(*table)[TRACE_WARPGROUPS] = (void *)trace_measure(device, launch.module, launch_stage_03, &launch);
  cr_assert(table, "%s", device_error(device)->text);

  for (int block = 0; block < TRACE_BLOCKS; block++)
    for (int w = 0; w < TRACE_WARPGROUPS; w++) {
      const TraceWarpgroup *place = &table[block][w];
      bool exists = block < HEADS && w == 0;
      cr_expect_eq(place->role, exists ? TRACE_ALL : TRACE_NO_ROLE, "block %d, warpgroup %d", block, w);
      uint32_t last = (uint32_t)place->begin_clock;
      int stamps = 0;
      for (int t = 0; t < TRACE_TILES; t++)
        for (int phase = 0; phase < TRACE_PHASE_COUNT; phase++) stamps += place->mark[t][phase] != 0;
      // COPY of tile 0 stands before the loop; in the loop it is marked for the next tile. STORE comes last.
      cr_expect_eq(stamps, exists ? 1 + TILES * 6 + 1 : 0, "block %d: %d stamps", block, stamps);
      for (int t = 0; exists && t < TILES; t++) {
        for (int i = 0; i < 6; i++) {
          uint32_t stamp = place->mark[t + (loop[i] == TRACE_COPY)][loop[i]];
          cr_expect(stamp >= last, "block %d, tile %d, phase %d", block, t, i);
          last = stamp;
        }
        cr_expect(place->done[t][TRACE_COPY] >= place->mark[t][TRACE_COPY]);
      }
      if (exists) cr_expect(place->mark[TILES - 1][TRACE_STORE] >= last && place->end_clock > place->begin_clock);
    }
  char *csv = printed(&table[0][0], 0);
  check_timeline("emulator", csv, 14);
  free(csv);
  free(table);
  free(ptx);
  device_close(device);
}

Test(trace, a_kernel_without_stamps_is_told) {
  size_t ptx_size;
  char *ptx = built_ptx("kernels", "03-cp-async", &ptx_size);
  Device *device = open_emulator();
  size_t bytes = sizeof(Half) * HEADS * SEQLEN * HEAD_DIM;
  Launch launch = {.module = device_load(device, &(DeviceImage){.ptx = ptx, .ptx_size = ptx_size}),
                   .tensor = device_alloc(device, bytes),
                   .o = device_alloc(device, bytes)};
  cr_expect_null(trace_measure(device, launch.module, launch_stage_03, &launch));
  cr_expect_eq(device_error(device)->code, DEVICE_INVALID);
  free(ptx);
  device_close(device);
}

// ---- the CSV of a table ----

static TraceWarpgroup *new_table(void) {
  TraceWarpgroup *table = calloc(TRACE_BLOCKS * TRACE_WARPGROUPS, sizeof *table);
  cr_assert(table);
  return table;
}

// Phases follow one another; the clock's lower half turns over; a block of another SM is not in the picture.
Test(trace, rows_of_phases) {
  TraceWarpgroup *table = new_table();
  uint64_t begin = 0x5fffffff0;
  table[TRACE_WARPGROUPS] =
      (TraceWarpgroup){.begin_clock = begin, .end_clock = begin + 101, .role = TRACE_CONSUMER, .sm = 9};
  table[TRACE_WARPGROUPS].mark[1][TRACE_PV] = (uint32_t)(begin + 61);
  table[TRACE_WARPGROUPS].mark[0][TRACE_QK] = (uint32_t)(begin + 11);
  table[TRACE_WARPGROUPS].mark[0][TRACE_SOFTMAX] = (uint32_t)(begin + 31);
  table[2 * TRACE_WARPGROUPS] = (TraceWarpgroup){.begin_clock = 5, .end_clock = 50, .role = TRACE_ALL, .sm = 8};
  table[2 * TRACE_WARPGROUPS].mark[0][TRACE_STORE] = 7;
  table[3 * TRACE_WARPGROUPS + 2] = (TraceWarpgroup){.begin_clock = begin - 100, .role = TRACE_PRODUCER, .sm = 9};
  table[3 * TRACE_WARPGROUPS + 2].mark[2][TRACE_COPY] = (uint32_t)(begin - 80);
  table[3 * TRACE_WARPGROUPS + 2].mark[3][TRACE_WAIT_FREE] = (uint32_t)(begin - 70);
  char *text = printed(table, 4);
  cr_expect_str_eq(text, HEADER "07-x,GPU,then,1,0,consumer,QK,55.500,65.500,0\n"
                                "07-x,GPU,then,1,0,consumer,softmax,65.500,80.500,0\n"
                                "07-x,GPU,then,1,0,consumer,PV,80.500,100.500,1\n"
                                "07-x,GPU,then,3,2,producer,copy,10.000,15.000,2\n");
  free(text);
  free(table);
}

// What was started in the background lasts until it is known to be done, whatever the warpgroup does meanwhile.
Test(trace, rows_of_work_in_the_background) {
  TraceWarpgroup *table = new_table();
  table[0] = (TraceWarpgroup){.begin_clock = 1, .end_clock = 41, .role = TRACE_ALL, .sm = 3};
  table[0].mark[0][TRACE_QK] = 11;
  table[0].mark[0][TRACE_SOFTMAX] = 15;
  table[0].done[0][TRACE_QK] = 31;
  table[0].done[1][TRACE_QK] = 33;  // of what never began: not a row
  char *text = printed(table, 3);
  cr_expect_str_eq(text, HEADER "07-x,GPU,then,0,0,all,QK,5.000,7.000,0\n"
                                "07-x,GPU,then,0,0,all,QK in flight,5.000,15.000,0\n"
                                "07-x,GPU,then,0,0,all,softmax,7.000,20.000,0\n");
  free(text);
  free(table);
}

// When the table was too small, what follows its last tile is unknown: that tile is no row, and no row is too long.
Test(trace, rows_of_a_full_table) {
  TraceWarpgroup *table = new_table();
  table[0] = (TraceWarpgroup){.begin_clock = 1, .end_clock = 1000001, .role = TRACE_ALL};
  for (int t = 0; t < TRACE_TILES; t++) table[0].mark[t][TRACE_QK] = (uint32_t)(11 + 10 * t);
  char *text = printed(table, TRACE_TILES - 1);
  cr_expect(strstr(text, ",QK,315.000,320.000,62\n"), "%s", text);
  cr_expect(!strstr(text, ",63\n"), "%s", text);
  free(text);
  free(table);
}

// Two SMs, each with clocks of its own; the nanoseconds come in steps of 1000.
Test(trace, cycle) {
  TraceWarpgroup *table = new_table();
  cr_expect_eq(trace_cycle(table), 0);
  table[0] = (TraceWarpgroup){1000, 3000, 7000, 8000, .role = TRACE_ALL, .sm = 1};
  table[1] = (TraceWarpgroup){5000, 9000, 9000, 11000, .role = TRACE_ALL, .sm = 1};
  table[5] = (TraceWarpgroup){100000, 104000, 8000, 11000, .role = TRACE_ALL, .sm = 0};
  table[6].begin_clock = table[6].end_time = 12345;  // no role: nobody
  cr_expect_float_eq(trace_cycle(table), (4000 + 3000) / (8000 + 4000.0), 1e-12, "%g", trace_cycle(table));
  free(table);
}

// Without a GPU, --trace says that there is no clock.
Test(trace, needs_a_gpu) {
  Output *output = run_line("stage-03", "--device=emulator --trace=/tmp/never");
  cr_expect_eq(output->code, 2);
  cr_expect(strstr(output->err, "--trace: the emulator has no clock"), "%s", output->err);
  free(output);
}

// ---- on a GPU ----

Test(gpu_trace, a_timeline_is_complete) {
  if (!getenv("HL_GPU")) cr_skip_test("no GPU: make test-gpu runs this");
  char names[1000], path[] = "/tmp/hopper-ladder-trace-XXXXXX", command[2000];
  int file = mkstemp(path);
  cr_assert(file >= 0);
  snprintf(names, sizeof names, "%s", getenv("TRACED") ? getenv("TRACED") : "");
  for (char *rest = names, *name; (name = strtok_r(rest, " ", &rest));)
    for (int head_dim = 64; head_dim <= 128; head_dim *= 2) {
      snprintf(command, sizeof command,
               "%s/trace-%.*s --batch=4 --heads=8 --seqlen=1024 --head-dim=%d --repeat=0 --trace=%s >/dev/null",
               getenv("TRACE_PROGRAMS"), (int)strcspn(name, "-"), name, head_dim, path);
      cr_assert_eq(system(command), 0, "%s", command);
      size_t size;
      char *csv = read_whole(path, &size);
      check_timeline(command, csv, 100);
      free(csv);
    }
  close(file);
  unlink(path);
}
