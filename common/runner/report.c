// The report of a run, which is printed on standard error at the end. Under hopper-run the program writes it to a file
// and hopper-run prints it, so that nothing is lost when the program aborts.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "../harness/counters.h"

// "2 faults, 1 note", or "no findings".
static void print_grade_counts(FILE *out, const int grades[3]) {
  static const char *const names[] = {"fault", "formal finding", "note"};
  const char *separator = "";
  for (int i = 0; i < 3; i++) {
    if (!grades[i]) continue;
    fprintf(out, "%s%d %s%s", separator, grades[i], names[i], plural((uint64_t)grades[i]));
    separator = ", ";
  }
  fprintf(out, *separator ? "\n" : "no findings\n");
}

static void print_all_counters(FILE *out) {
  int count;
  const LineCounters *lines = emulator_line_counters(core.emulator, &count);
  EmulatorCounters totals = emulator_counters(core.emulator);
  print_counters(out, &totals);
  print_line_counters(out, &totals, lines, count);
}

void core_library_reads(const void *address, size_t size, const char *format, ...) {
  LOCK();
  size_t written = emulator_written(locked->emulator, (uint64_t)(uintptr_t)address, size);
  if (written == size || locked->unwritten.count++) return;
  locked->unwritten.address = (uint64_t)(uintptr_t)address + written;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(locked->unwritten.detail, sizeof locked->unwritten.detail, format, arguments);
  va_end(arguments);
  report_update();
}

void core_unwritten(uint64_t address, const char *what) {
  if (core.unwritten.count++) return;
  core.unwritten.address = address;
  snprintf(core.unwritten.detail, sizeof core.unwritten.detail, "%s", what);
  report_update();
}

static void print_unwritten(FILE *out) {
  if (!core.unwritten.count) return;
  fprintf(out, "%s: %s, and nothing was ever written there (at 0x%llx)\n    met in %llu place%s\n    %s\n",
          hazard_name(HAZARD_UNINITIALISED_READ), core.unwritten.detail, (unsigned long long)core.unwritten.address,
          (unsigned long long)core.unwritten.count, plural(core.unwritten.count),
          hazard_advice(HAZARD_UNINITIALISED_READ));
}

// What the emulator and the stand-ins of libraries have found.
static HazardReports count_reports(const Hazard *hazards, int count) {
  HazardReports reports = emulator_count_reports(hazards, count);
  reports.count[HAZARD_FAULT] += core.unwritten.count > 0;
  return reports;
}

static bool incomplete(void) { return core.incomplete || core.refused; }

static void print(FILE *out) {
  int count;
  const Hazard *hazards = emulator_hazards(core.emulator, &count);
  HazardReports reports = count_reports(hazards, count);
  fprintf(out, "hopper-run: %llu launch%s, ", (unsigned long long)core.launches, core.launches == 1 ? "" : "es");
  print_grade_counts(out, reports.count);
  if (incomplete())
    fprintf(out, "hopper-run: kernels of the program did not run, as is said above: they are not checked\n");
  emulator_print_hazards(out, hazards, count);
  print_unwritten(out);
  if (core.counters) print_all_counters(out);
}

// Whether there is a fault, or what counts as one.
static bool failed(void) {
  int count;
  const Hazard *hazards = emulator_hazards(core.emulator, &count);
  HazardReports reports = count_reports(hazards, count);
  return reports.count[HAZARD_FAULT] > 0 || (core.strict && reports.count[HAZARD_FORMAL] > 0);
}

// What the exit code must be if the program's own is 0: 1 for a fault, 2 for kernels that could not run.
static char least_code(void) { return failed() ? '1' : incomplete() ? '2' : '0'; }

// Nothing that a reader would miss.
static bool is_empty(void) {
  int count;
  emulator_hazards(core.emulator, &count);
  return core.launches == 0 && count == 0 && !core.unwritten.count && !incomplete();
}

// ---- what is new ----

// The findings of the last call.
typedef struct Former {
  Hazard *hazards;
  int count;
} Former;

static bool same_place(const HazardPlace *a, const HazardPlace *b) {
  return a->ptx_line == b->ptx_line && a->line == b->line;
}

// How often a finding had been met then.
static uint64_t former_count(const Former *former, const Hazard *hazard) {
  for (int i = 0; i < former->count; i++) {
    const Hazard *other = &former->hazards[i];
    if (other->kind == hazard->kind && other->grade == hazard->grade && other->kernel == hazard->kernel &&
        same_place(&other->here, &hazard->here) && same_place(&other->other, &hazard->other))
      return other->count;
  }
  return 0;
}

int hopper_run_new_findings(char *text, size_t size) {
  static Former former;
  static uint64_t former_unwritten;
  int count = 0, new_count = 0;
  LOCK();
  (void)locked;
  if (size) *text = 0;
  if (!core.initialised || core.process != getpid()) return 0;
  const Hazard *hazards = emulator_hazards(core.emulator, &count);
  size_t bytes = (size_t)count * sizeof *hazards;
  Hazard *all = malloc(bytes + 1), *new = malloc(bytes + 1);
  FILE *out = all && new &&size ? fmemopen(text, size, "w") : NULL;
  if (out) {
    memcpy(all, hazards, bytes);
    for (int i = 0; i < count; i++) {
      uint64_t before = former_count(&former, &hazards[i]);
      if (hazards[i].count == before) continue;
      new[new_count] = hazards[i];
      new[new_count++].count -= before;
    }
    emulator_print_hazards(out, new, new_count);
    bool unwritten = core.unwritten.count != former_unwritten;
    if (unwritten) print_unwritten(out);
    fclose(out);
    int faults = emulator_count_reports(new, new_count).count[HAZARD_FAULT] + unwritten;
    if (core.strict) faults += emulator_count_reports(new, new_count).count[HAZARD_FORMAL];
    free(former.hazards);
    free(new);
    former = (Former){all, count};
    former_unwritten = core.unwritten.count;
    text[size - 1] = 0;
    return faults;
  }
  free(all);
  free(new);
  return 0;
}

// ---- the report ----

// The first byte is that exit code, the second shows whether the report is empty; the text follows.
void report_update(void) {
  const char *folder = getenv("HOPPER_RUN_REPORT");
  char path[4096];
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%ld", folder, (long)getpid());
  FILE *file = fopen(path, "w");
  if (!file) return;
  fputc(least_code(), file);
  fputc(is_empty() ? '-' : '+', file);
  print(file);
  fclose(file);
}

void report_finish(void) {
  fflush(stdout);
  if (getenv("HOPPER_RUN_REPORT"))
    report_update();
  else
    print(stderr);
}

// The emulator's message begins with the kernel's name as PTX has it.
void report_stop(const char *kernel, const EmulatorError *error) {
  const char *rest = strstr(error->message, " stopped");
  snprintf(core.stopped, sizeof core.stopped, "%.120s%s", kernel, rest ? rest : error->message);
  core_say("%s", core.stopped);
}
