// What a run found. It goes to standard error, at the end; hopper-run, where it is the parent, prints it from a file, so
// that nothing is lost when the program aborts.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "../harness/counters.h"

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

// "2 faults, 1 note", or "no findings".
static void print_grades(FILE *out, const int grades[3]) {
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

static void print(FILE *out) {
  int count;
  const Hazard *hazards = emulator_hazards(core.emulator, &count);
  HazardReports reports = emulator_count_reports(hazards, count);
  fprintf(out, "hopper-run: %llu launch%s, ", (unsigned long long)core.launches, core.launches == 1 ? "" : "es");
  print_grades(out, reports.count);
  emulator_print_hazards(out, hazards, count);
  if (core.counters) print_all_counters(out);
}

// Whether the program's exit code must not be 0.
static bool failed(void) {
  int count;
  const Hazard *hazards = emulator_hazards(core.emulator, &count);
  HazardReports reports = emulator_count_reports(hazards, count);
  return reports.count[HAZARD_FAULT] > 0 || (core.strict && reports.count[HAZARD_FORMAL] > 0);
}

// The first byte is 1 when a fault was found; the text follows.
void report_update(void) {
  const char *folder = getenv("HOPPER_RUN_REPORT");
  char path[4096];
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%ld", folder, (long)getpid());
  FILE *file = fopen(path, "w");
  if (!file) return;
  fputc(failed() ? '1' : '0', file);
  print(file);
  fclose(file);
}

void report_end(void) {
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
