// --json: what the emulator saw, for programs that show it. An address is a string: a number of JSON could not hold all
// of them.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../emulator/emulator.h"
#include "harness.h"

// ---- values ----

static void print_characters(FILE *out, const char *text, size_t length) {
  putc('"', out);
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '"' || text[i] == '\\')
      fprintf(out, "\\%c", text[i]);
    else if ((unsigned char)text[i] < ' ')
      fprintf(out, "\\u%04x", (unsigned)text[i]);
    else
      putc(text[i], out);
  }
  putc('"', out);
}

static void print_text(FILE *out, const char *text) {
  if (text)
    print_characters(out, text, strlen(text));
  else
    fputs("null", out);
}

// An array with one text for each line.
static void print_text_lines(FILE *out, const char *text) {
  putc('[', out);
  for (const char *line = text; line && *line;) {
    size_t length = strcspn(line, "\n");
    if (line != text) putc(',', out);
    print_characters(out, line, length);
    line += length + (line[length] == '\n');
  }
  putc(']', out);
}

static void print_index(FILE *out, const unsigned index[3]) {
  fprintf(out, "[%u,%u,%u]", index[0], index[1], index[2]);
}

// ---- hazards ----

static void print_json_place(FILE *out, const HazardPlace *place) {
  fputs("{\"file\":", out);
  print_text(out, place->file);
  fprintf(out, ",\"line\":%d,\"ptx\":%d,\"block\":", place->line, place->ptx_line);
  print_index(out, place->block);
  fputs(",\"thread\":", out);
  print_index(out, place->thread);
  fputs(",\"frames\":[", out);
  for (int i = 0; i < place->frame_count; i++) {
    const HazardFrame *frame = &place->frames[i];
    fputs(i ? ",{\"file\":" : "{\"file\":", out);
    print_text(out, frame->file);
    fprintf(out, ",\"line\":%d,\"function\":", frame->line);
    print_text(out, frame->function);
    putc('}', out);
  }
  fputs("]}", out);
}

// As the report has it.
static void print_report_of(FILE *out, const Hazard *hazard) {
  char *text = NULL;
  size_t size;
  FILE *memory = open_memstream(&text, &size);
  if (memory) emulator_print_hazard(memory, hazard);
  if (memory) fclose(memory);
  print_text(out, text);
  free(text);
}

static void print_hazard(FILE *out, const Hazard *hazard) {
  static const char *const grades[HAZARD_GRADES] = {"fault", "formal", "note"};
  fputs("{\"kind\":", out);
  print_text(out, hazard_name(hazard->kind));
  fprintf(out, ",\"grade\":\"%s\",\"stopped\":%s,\"count\":%" PRIu64 ",\"address\":\"0x%" PRIx64 "\",\"size\":%d",
          grades[hazard->grade], hazard->stopped ? "true" : "false", hazard->count, hazard->address, hazard->size);
  fputs(",\"kernel\":", out);
  print_text(out, hazard->kernel);
  fputs(",\"detail\":", out);
  print_text(out, hazard->detail);
  fputs(",\"advice\":", out);
  print_text(out, hazard->advice[0] ? hazard->advice : hazard_advice(hazard->kind));
  fputs(",\"text\":", out);
  print_report_of(out, hazard);
  fputs(",\"waits\":", out);
  print_text_lines(out, hazard->lines);
  fputs(",\"here\":", out);
  print_json_place(out, &hazard->here);
  fputs(",\"other\":", out);
  if (hazard->has_other)
    print_json_place(out, &hazard->other);
  else
    fputs("null", out);
  putc('}', out);
}

// ---- counters: those that are not 0 ----

static void print_counters_of(FILE *out, const EmulatorCounters *counters) {
  bool first = true;
  putc('{', out);
  for (CounterKind kind = 0; kind < COUNTER_KIND_COUNT; kind++) {
    if (!counters->value[kind]) continue;
    fprintf(out, "%s\"%s\":%" PRIu64, first ? "" : ",", counter_name(kind), counters->value[kind]);
    first = false;
  }
  putc('}', out);
}

static void print_line_of(FILE *out, const LineCounters *line) {
  fputs("{\"file\":", out);
  print_text(out, line->file);
  fprintf(out, ",\"line\":%d,\"counters\":", line->line);
  print_counters_of(out, &line->counters);
  putc('}', out);
}

// ---- steps: those of --steps name files by their numbers ----

static void print_step_files(FILE *out, const Device *device) {
  int count;
  bool complete;
  device_steps(device, &count, &complete);
  fprintf(out, ",\n\"steps_complete\":%s,\"step_files\":[", complete ? "true" : "false");
  const char *file;
  for (int i = 0; (file = device_step_file(device, i)); i++) {
    if (i) putc(',', out);
    print_text(out, file);
  }
  putc(']', out);
}

// ---- the file ----

static void print_run(FILE *out, const Session *session, int code) {
  const Device *device = session->device;
  const DeviceError *error = device_error(device);
  fputs("{\"stage\":", out);
  print_text(out, session->stage->name);
  fprintf(out, ",\"exit_code\":%d,\"error\":", code);
  print_text(out, error->code == DEVICE_OK ? NULL : error->text);
  fprintf(out, ",\n\"outputs\":\"%016" PRIx64 "\",\n\"hazards\":[", device_downloads(device));
  int count;
  const Hazard *hazards = device_hazards(device, &count);
  for (int i = 0; i < count; i++) {
    fputs(i ? ",\n" : "\n", out);
    print_hazard(out, &hazards[i]);
  }
  EmulatorCounters totals = {0};
  device_counters(device, &totals);
  fputs("],\n\"counters\":", out);
  print_counters_of(out, &totals);
  fputs(",\n\"lines\":[", out);
  const LineCounters *lines = device_line_counters(device, &count);
  for (int i = 0; i < count; i++) {
    fputs(i ? ",\n" : "\n", out);
    print_line_of(out, &lines[i]);
  }
  fputs("]", out);
  if (session->options.steps) print_step_files(out, device);
  fputs("}\n", out);
}

bool json_write(const char *path, const Session *session, int code) {
  bool is_file = strcmp(path, "-") != 0;
  FILE *out = is_file ? fopen(path, "w") : stdout;
  if (!out) return false;
  print_run(out, session, code);
  bool written = !ferror(out);
  return !(is_file ? fclose(out) : fflush(out)) && written;
}
