// What a run prints: a few lines, each of which begins with a word that says what it reports.
#include <inttypes.h>

#include "../emulator/emulator.h"
#include "../emulator/host/fnv.h"
#include "counters.h"
#include "harness.h"

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

void report_problem(FILE *out, const Stage *stage, const Options *options, const DeviceInfo *device) {
  Shape shape = options_shape(options);
  char input[INPUT_NAME_SIZE];
  fprintf(out, "problem   batch %d, heads %d, seqlen %d, head dim %d, %s", shape.batch, shape.heads, shape.seqlen,
          shape.head_dim, shape.causal ? "causal" : "not causal");
  if (options->windowed) fprintf(out, ", window %" PRIu64, options->window);
  fprintf(out, "; input %s, seed %" PRIu64, options_input_name(options, input), options->seed);
  if (options->deterministic) fprintf(out, "; deterministic");
  if (stage->backward) fprintf(out, "; backward");
  if (options->lse) fprintf(out, "; with the log-sum-exp");
  if (stage->inputs != INPUTS_F16)
    fprintf(out, "; %se4m3 with a scale for each %s%s", stage->inputs == INPUTS_E4M3_SCORES ? "Q and K " : "",
            options->scales ? "head" : "tensor", options->rotate ? ", Q and K rotated" : "");
  bool all_given = options_given(options, OPTION_BATCH) && options_given(options, OPTION_HEADS) &&
                   options_given(options, OPTION_SEQLEN) &&
                   (!options->windowed || options_given(options, OPTION_WINDOW));
  if (device->kind == DEVICE_EMULATOR && !all_given)
    fprintf(out, "\n          (defaults are small on the emulator; on a GPU batch 4, heads 32, seqlen 4096%s)",
            options->windowed ? ", window 1024" : "");
  fprintf(out, "\n");
}

// ---- right or wrong ----

static const char *const output_names[OUTPUTS] = {"O", "lse", "dQ", "dK", "dV"};

// "O[b][h][row][d]"
static void print_element_place(FILE *out, const Problem *problem, OutputTensor output, size_t index) {
  const Shape *shape = &problem->shape;
  size_t columns = (size_t)check_columns(problem, output), row = index / columns, head = row / (size_t)shape->seqlen;
  fprintf(out, "%s[%zu][%zu][%zu]", output_names[output], head / shape->heads, head % shape->heads,
          row % shape->seqlen);
  if (columns > 1) fprintf(out, "[%zu]", index % columns);
}

static void print_differences(FILE *out, const Problem *problem, const CheckResult *result) {
  fprintf(out, "          the first that %s, %s[batch][head][row]%s:\n", result->wrong == 1 ? "differs" : "differ",
          output_names[result->output], check_columns(problem, result->output) > 1 ? "[d]" : "");
  for (int i = 0; i < result->difference_count; i++) {
    const Difference *difference = &result->differences[i];
    fprintf(out, "          ");
    print_element_place(out, problem, result->output, difference->index);
    report_difference(out, difference);
  }
  report_more(out, result->wrong - (uint64_t)result->difference_count);
}

// " of dQ", where there is more than one output.
static void print_output(FILE *out, const Problem *problem, OutputTensor output) {
  if (problem->lse) fprintf(out, " of %s", output_names[output]);
}

static void report_right(FILE *out, const Problem *problem, const CheckResult *result) {
  char compared[32];
  fprintf(out, "right: %s%s elements", result->complete ? "all " : "", format_count(compared, result->compared));
  print_output(out, problem, result->output);
  if (!result->complete) fprintf(out, " (%d rows of each head)", result->rows_per_head);
  fprintf(out, ", max error %.2g, the worst element at %.0f %% of its limit\n", result->max_error, 100 * result->worst);
}

static void report_wrong_output(FILE *out, const Problem *problem, const CheckResult *result) {
  char wrong[32], compared[32], not_finite[32], unwritten[32], all[32];
  fprintf(out, "WRONG: %s of %s elements", format_count(wrong, result->wrong),
          format_count(compared, result->compared));
  print_output(out, problem, result->output);
  fprintf(out, " %s from the fp64 reference", result->wrong == 1 ? "differs" : "differ");
  if (!result->complete) fprintf(out, " (%d rows of each head were compared)", result->rows_per_head);
  if (result->max_error != 0) fprintf(out, ", max error %.2g", result->max_error);
  fprintf(out, "\n");
  if (result->not_finite) {
    uint64_t elements = problem->elements / problem->shape.head_dim * check_columns(problem, result->output);
    fprintf(out, "          %s of %s %s NaN or infinite", format_count(not_finite, result->not_finite),
            format_count(all, elements), result->not_finite == 1 ? "is" : "are");
    if (result->unwritten) fprintf(out, " (never written: %s)", format_count(unwritten, result->unwritten));
    fprintf(out, ", the first is ");
    print_element_place(out, problem, result->output, result->first_not_finite);
    fprintf(out, "\n");
  }
  if (result->difference_count) print_differences(out, problem, result);
}

// Without a window the first wrong row has one key too many as well: before its window there is only key 0. The head's
// last row tells the two mistakes apart.
static bool last_row_is_causal(const Problem *problem, const CheckResult *result) {
  uint64_t columns = (uint64_t)check_columns(problem, result->output), seqlen = (uint64_t)problem->shape.seqlen;
  uint64_t row = result->differences[0].index / columns, last_row = row / seqlen * seqlen + seqlen - 1;
  CheckResult last = *result;
  last.differences[0].index = last_row * columns;
  return last_row > row && check_fits_window(problem, &last, 0);
}

// Common mistakes with a window: one key too many or too few, and no window at all.
static void report_other_window(FILE *out, const Problem *problem, const CheckResult *result) {
  int window = problem->window, others[] = {window + 1, window - 1, 0};
  if (!window || !result->difference_count || isnan(result->differences[0].got)) return;
  for (int i = 0; i < 3; i++) {
    if (i == 1 && window == 1) continue;  // a window of none would be no window
    if (!check_fits_window(problem, result, others[i])) continue;
    if (i == 0 && last_row_is_causal(problem, result)) continue;
    fprintf(out, "          that row is right for ");
    if (others[i])
      fprintf(out, "a window of %d: the query sees a key too %s\n", others[i], i ? "few" : "many");
    else
      fprintf(out, "a causal mask alone: the query sees the keys before its window\n");
    return;
  }
}

// One output; the report's first line begins with "result".
static const char *report_output(FILE *out, const Problem *problem, const CheckResult *result, const char *begin) {
  fprintf(out, "%-10s", begin);
  if (check_is_right(result)) {
    report_right(out, problem, result);
  } else {
    report_wrong_output(out, problem, result);
    report_other_window(out, problem, result);
  }
  return "";
}

void report_check(FILE *out, const Problem *problem, const CheckResult *results, int count) {
  const char *begin = "result";
  for (int i = 0; i < count; i++)
    if (!check_is_right(&results[i])) begin = report_output(out, problem, &results[i], begin);
  for (int i = 0; i < count; i++)
    if (check_is_right(&results[i]) && (results[i].output > OUTPUT_LSE || !problem->d_o))
      begin = report_output(out, problem, &results[i], begin);
}

static uint32_t checksum(const Half *tensor, size_t elements) {
  return fnv1a_32(FNV1A_32_START, tensor, sizeof *tensor * elements);
}

void report_checksums(FILE *out, const Problem *problem) {
  if (!problem->d_o) return;
  fprintf(out, "checksum  dQ %08" PRIx32 ", dK %08" PRIx32 ", dV %08" PRIx32 "\n",
          checksum(problem->d_q, problem->elements), checksum(problem->d_k, problem->elements),
          checksum(problem->d_v, problem->elements));
}

void report_accuracy(FILE *out, const Problem *problem, const CheckResult *result) {
  if (problem->inputs == INPUTS_F16 || !isfinite(result->kernel.difference)) return;
  fprintf(out, "accuracy  the kernel is off by %.2f %%, the quantisation by %.2f %%\n",
          100 * check_relative_error(&result->kernel), 100 * check_relative_error(&result->quantisation));
}

// ---- hazards ----

// "hazards   2 (1 formal, 3 notes)": faults, and in brackets the findings that weigh less.
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
    fprintf(out, "hazards   not checked (--hazards=off)\n");
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
  fprintf(out, "compared  this run: %.3g TFLOPS; %s, recorded: %.3g (on %s)\n", flops / timing->median * 1e-9,
          row.device, row.tflops, row.date);
}

// ---- counters ----

void report_counters(FILE *out, const Device *device) {
  EmulatorCounters counters;
  if (device_counters(device, &counters)) print_counters(out, &counters);
}

void report_line_counters(FILE *out, const Device *device) {
  int count;
  EmulatorCounters totals;
  const LineCounters *lines = device_line_counters(device, &count);
  if (device_counters(device, &totals)) print_line_counters(out, &totals, lines, count);
}
