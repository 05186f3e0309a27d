// What a run prints: a few lines, each with its word in front.
#include <inttypes.h>

#include "../emulator/emulator.h"
#include "harness.h"

const char *format_count(char text[32], uint64_t count) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%" PRIu64, count), out = 0;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) text[out++] = ',';
    text[out++] = digits[i];
  }
  text[out] = 0;
  return text;
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

// ---- what runs where ----

void report_head(FILE *out, const Stage *stage, const DeviceInfo *device) {
  fprintf(out, "stage     %s: %s\n", stage->name, stage->title);
  if (device->kind == DEVICE_GPU) {
    fprintf(out, "device    %s (%d SMs, %d MHz, driver %s, CUDA %s)\n", device->name, device->sm_count,
            device->sm_clock_mhz, device->driver, device->cuda);
    return;
  }
  fprintf(out, "device    %s on this CPU: checks and counts, never times", device->name);
  fprintf(out, device->note[0] ? "\n          (%s)\n" : "\n", device->note);
}

void report_problem(FILE *out, const Options *options, const DeviceInfo *device) {
  Shape shape = options_shape(options);
  fprintf(out, "problem   batch %d, heads %d, seqlen %d, head dim %d, %s; input %s, seed %" PRIu64, shape.batch,
          shape.heads, shape.seqlen, shape.head_dim, shape.causal ? "causal" : "not causal",
          options_input_name(options), options->seed);
  bool all_given = options_given(options, OPTION_BATCH) && options_given(options, OPTION_HEADS) &&
                   options_given(options, OPTION_SEQLEN);
  if (device->kind == DEVICE_EMULATOR && !all_given)
    fprintf(out, "\n          (defaults are small on the emulator; on a GPU batch 4, heads 32, seqlen 4096)");
  fprintf(out, "\n");
}

// ---- right or wrong ----

// "[b][h][row][d]"
static void print_place(FILE *out, const Shape *shape, size_t index) {
  size_t d = index % shape->head_dim, row = index / shape->head_dim % shape->seqlen;
  size_t head = index / shape->head_dim / shape->seqlen;
  fprintf(out, "[%zu][%zu][%zu][%zu]", head / shape->heads, head % shape->heads, row, d);
}

static void print_differences(FILE *out, const Problem *problem, const CheckResult *result) {
  fprintf(out, "          the first that differ, O[batch][head][row][d]:\n");
  for (int i = 0; i < result->difference_count; i++) {
    const Difference *difference = &result->differences[i];
    fprintf(out, "          O");
    print_place(out, &problem->shape, difference->index);
    if (isnan(difference->got))
      fprintf(out, ": got NaN, expected %.6g\n", difference->expected);
    else
      fprintf(out, ": got %.6g, expected %.6g, off by %.2g (limit %.2g)\n", difference->got, difference->expected,
              fabs(difference->got - difference->expected), difference->limit);
  }
  uint64_t more = result->wrong - (uint64_t)result->difference_count;
  char text[32];
  if (more) fprintf(out, "          and %s more\n", format_count(text, more));
}

static void report_right(FILE *out, const CheckResult *result) {
  char compared[32];
  format_count(compared, result->compared);
  if (result->complete)
    fprintf(out, "result    right: all %s elements", compared);
  else
    fprintf(out, "result    right: %s elements (%d rows of each head)", compared, result->rows_per_head);
  fprintf(out, ", max error %.2g, the worst element at %.0f %% of its limit\n", result->max_error, 100 * result->worst);
}

static void report_wrong(FILE *out, const Problem *problem, const CheckResult *result) {
  char wrong[32], compared[32], not_finite[32], all[32];
  fprintf(out, "result    WRONG: %s of %s elements differ from the fp64 reference", format_count(wrong, result->wrong),
          format_count(compared, result->compared));
  if (!result->complete) fprintf(out, " (%d rows of each head were compared)", result->rows_per_head);
  if (result->max_error != 0) fprintf(out, ", max error %.2g", result->max_error);
  fprintf(out, "\n");
  if (result->not_finite) {
    fprintf(out, "          %s of %s are NaN or infinite (never written?), the first is O",
            format_count(not_finite, result->not_finite), format_count(all, problem->elements));
    print_place(out, &problem->shape, result->first_not_finite);
    fprintf(out, "\n");
  }
  if (result->difference_count) print_differences(out, problem, result);
}

void report_check(FILE *out, const Problem *problem, const CheckResult *result) {
  if (check_is_right(result))
    report_right(out, result);
  else
    report_wrong(out, problem, result);
}

// ---- hazards ----

// "hazards   2 (1 formal, 3 notes)": faults, and what weighs less.
static void print_grades(FILE *out, const int found[HAZARD_GRADES]) {
  int formal = found[HAZARD_FORMAL], notes = found[HAZARD_NOTE];
  if (found[HAZARD_FAULT])
    fprintf(out, "hazards   %d", found[HAZARD_FAULT]);
  else
    fprintf(out, "hazards   none");
  if (formal) fprintf(out, " (%d formal%s", formal, notes ? ", " : ")");
  if (notes) fprintf(out, "%s%d note%s)", formal ? "" : " (", notes, plural((uint64_t)notes));
  fprintf(out, "\n");
}

int report_hazards(FILE *out, const Options *options, const Device *device) {
  if (device_info(device)->kind != DEVICE_EMULATOR) return 0;
  int count;
  const Hazard *hazards = device_hazards(device, &count);
  HazardReports found = emulator_count_reports(hazards, count);
  if (count == 0 && options->hazards == 1)
    fprintf(out, "hazards   not looked for (--hazards=off)\n");
  else
    print_grades(out, found.count);
  emulator_print_hazards(out, hazards, count);
  return found.count[HAZARD_FAULT] + (options->strict ? found.count[HAZARD_FORMAL] : 0);
}

// ---- time ----

void report_timing(FILE *out, const Timing *timing, double flops) {
  fprintf(out, "time      %.4f ms, the median of %d repeat%s (%.4f to %.4f ms); %.3g TFLOPS\n", timing->median,
          timing->repeats, plural((uint64_t)timing->repeats), timing->min, timing->max, flops / timing->median * 1e-9);
}

void report_recorded(FILE *out, const Stage *stage, const Shape *shape, const Timing *timing, double flops) {
  Recorded row;
  if (!recorded_find(stage->name, shape, &row)) return;
  fprintf(out, "compared  you: %.3g TFLOPS, %s recorded: %.3g (on %s)\n", flops / timing->median * 1e-9, row.device,
          row.tflops, row.date);
}

// ---- counters ----

// "fp32 41 %, memory 22 %, ..." of the warp instructions, the classes that have any.
static void print_classes(FILE *out, const EmulatorCounters *counters) {
  static const struct {
    CounterKind kind;
    const char *name;
  } classes[] = {
      {COUNTER_INST_INTEGER, "integer"}, {COUNTER_INST_FP32, "fp32"},       {COUNTER_INST_FP64, "fp64"},
      {COUNTER_INST_FP16, "fp16"},       {COUNTER_INST_SPECIAL, "special"}, {COUNTER_INST_CONVERT, "convert"},
      {COUNTER_INST_MEMORY, "memory"},   {COUNTER_INST_CONTROL, "control"}, {COUNTER_INST_SYNCHRONISATION, "barrier"},
      {COUNTER_INST_TENSOR, "tensor"},   {COUNTER_INST_ASYNC_COPY, "copy"}, {COUNTER_INST_OTHER, "other"},
  };
  double total = (double)counters->value[COUNTER_INST_EXECUTED];
  const char *separator = "";
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    double share = 100 * (double)counters->value[classes[i].kind] / total;
    if (share < 0.5) continue;
    fprintf(out, "%s%s %.0f %%", separator, classes[i].name, share);
    separator = ", ";
  }
}

// "1,234 loads of 4.0 sectors, 98,304 bytes asked for"
static void print_global(FILE *out, const char *what, uint64_t requests, uint64_t sectors, uint64_t bytes) {
  char text[32], byte_text[32];
  fprintf(out, "%s %s%s", format_count(text, requests), what, plural(requests));
  if (requests)
    fprintf(out, " of %.1f sectors, %s bytes", (double)sectors / (double)requests, format_count(byte_text, bytes));
}

// Those that return the old value and those that do not.
static void print_global_atomics(FILE *out, const uint64_t *value) {
  uint64_t requests = value[COUNTER_GLOBAL_ATOMIC_REQUESTS] + value[COUNTER_GLOBAL_REDUCTION_REQUESTS];
  uint64_t sectors = value[COUNTER_GLOBAL_ATOMIC_SECTORS] + value[COUNTER_GLOBAL_REDUCTION_SECTORS];
  if (!requests) return;
  fprintf(out, "; ");
  print_global(out, "atomic", requests, sectors, value[COUNTER_GLOBAL_ATOMIC_BYTES]);
}

static void print_shared(FILE *out, const char *what, uint64_t requests, uint64_t conflicts) {
  char text[32], conflict_text[32];
  fprintf(out, "%s %s%s with %s bank conflict%s", format_count(text, requests), what, plural(requests),
          format_count(conflict_text, conflicts), plural(conflicts));
}

// "besides: wgmma read 4,096 bytes of shared memory; ...": what is no load or store of a warp, where there is some.
static void print_besides(FILE *out, const uint64_t *value) {
  static const struct {
    CounterKind kind;
    const char *what;
  } parts[] = {
      {COUNTER_WGMMA_SHARED_READ_BYTES, "wgmma read %s bytes of shared memory"},
      {COUNTER_CP_ASYNC_SHARED_WRITE_BYTES, "cp.async wrote %s bytes of shared memory"},
      {COUNTER_BULK_SHARED_WRITE_BYTES, "bulk copies wrote %s bytes of shared memory"},
      {COUNTER_BULK_SHARED_READ_BYTES, "bulk copies read %s bytes of shared memory"},
      {COUNTER_BULK_GLOBAL_READ_BYTES, "bulk copies read %s bytes of global memory"},
      {COUNTER_BULK_GLOBAL_WRITE_BYTES, "bulk copies wrote %s bytes of global memory"},
      {COUNTER_CLUSTER_LOAD_SECTORS, "%s sectors loaded from other blocks' shared memory"},
      {COUNTER_CLUSTER_STORE_SECTORS, "%s sectors stored in other blocks' shared memory"},
      {COUNTER_CLUSTER_ATOMIC_SECTORS, "%s sectors of atomics in other blocks' shared memory"},
      {COUNTER_LOCAL_LOAD_BYTES, "%s bytes of local memory loaded"},
      {COUNTER_LOCAL_STORE_BYTES, "%s bytes of local memory stored"},
      {COUNTER_INST_MUFU, "%s special functions (MUFU)"},
  };
  const char *before = "\n          besides: ";
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    char text[32];
    if (!value[parts[i].kind]) continue;
    fprintf(out, "%s", before);
    fprintf(out, parts[i].what, format_count(text, value[parts[i].kind]));
    before = "; ";
  }
}

void report_counters(FILE *out, const Device *device) {
  EmulatorCounters counters;
  if (!device_counters(device, &counters)) return;
  const uint64_t *value = counters.value;
  char text[32];
  if (!value[COUNTER_INST_EXECUTED]) return;
  fprintf(out, "counters  %s warp instructions: ", format_count(text, value[COUNTER_INST_EXECUTED]));
  print_classes(out, &counters);
  fprintf(out, "\n          global memory: ");
  print_global(out, "load", value[COUNTER_GLOBAL_LOAD_REQUESTS], value[COUNTER_GLOBAL_LOAD_SECTORS],
               value[COUNTER_GLOBAL_LOAD_BYTES]);
  fprintf(out, "; ");
  print_global(out, "store", value[COUNTER_GLOBAL_STORE_REQUESTS], value[COUNTER_GLOBAL_STORE_SECTORS],
               value[COUNTER_GLOBAL_STORE_BYTES]);
  print_global_atomics(out, value);
  fprintf(out, "\n          shared memory: ");
  print_shared(out, "load", value[COUNTER_SHARED_LOADS], value[COUNTER_SHARED_LOAD_BANK_CONFLICTS]);
  fprintf(out, "; ");
  print_shared(out, "store", value[COUNTER_SHARED_STORES], value[COUNTER_SHARED_STORE_BANK_CONFLICTS]);
  if (value[COUNTER_SHARED_ATOMICS]) {
    fprintf(out, "; ");
    print_shared(out, "atomic", value[COUNTER_SHARED_ATOMICS], value[COUNTER_SHARED_ATOMIC_BANK_CONFLICTS]);
  }
  if (value[COUNTER_TENSOR_FLOPS])
    fprintf(out, "\n          tensor cores: %s FLOP", format_count(text, value[COUNTER_TENSOR_FLOPS]));
  print_besides(out, value);
  fprintf(out, "\n");
}
