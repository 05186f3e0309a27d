// Hazards as a reader sees them: their order, which of them are one report, and its text.
#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "hazard.h"

// ---- order ----

static int compare_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

static int compare_numbers(int a, int b) { return (a > b) - (a < b); }

// The first frame beyond the kernel's own line and the calls in the same file that led there.
static int own_end(const HazardPlace *place) {
  int end = place->own + 1;
  while (end < place->frame_count && !strcmp(place->frames[place->own].file, place->frames[end].file)) end++;
  return end;
}

static int compare_frame_range(const HazardPlace *a, int a_begin, int a_end, const HazardPlace *b, int b_begin,
                               int b_end) {
  int order = compare_numbers(a_end - a_begin, b_end - b_begin);
  for (; a_begin < a_end && !order; a_begin++, b_begin++) {
    order = compare_numbers(a->frames[a_begin].line, b->frames[b_begin].line);
    if (!order) order = compare_text(a->frames[a_begin].file, b->frames[b_begin].file);
  }
  return order;
}

static int compare_calls(const HazardPlace *a, const HazardPlace *b) {
  return compare_frame_range(a, a->own, own_end(a), b, b->own, own_end(b));
}

// Of the frames in other files. Calls in the kernel's own file are no difference: a report lists them.
static int compare_frames(const HazardPlace *a, const HazardPlace *b) {
  if (!a->file || !b->file) return 0;
  int order = compare_frame_range(a, 0, a->inner, b, 0, b->inner);
  return order ? order : compare_frame_range(a, own_end(a), a->frame_count, b, own_end(b), b->frame_count);
}

// Where no source line is known, that of the PTX stands for it.
static int compare_lines(const HazardPlace *a, const HazardPlace *b) {
  int order = compare_text(a->file, b->file);
  if (!order && !a->file) return compare_numbers(a->ptx_line, b->ptx_line);
  return order ? order : compare_numbers(a->line, b->line);
}

// 0 for two that are one report.
static int compare_reports(const Hazard *a, const Hazard *b) {
  int order = compare_lines(&a->here, &b->here);
  if (!order) order = compare_numbers((int)a->kind, (int)b->kind);
  if (!order) order = compare_numbers((int)a->grade, (int)b->grade);
  if (!order) order = compare_numbers(a->has_other, b->has_other);
  if (!order) order = compare_lines(&a->other, &b->other);
  if (!order) order = compare_frames(&a->here, &b->here);
  if (!order) order = compare_frames(&a->other, &b->other);
  return order ? order : compare_text(a->kernel, b->kernel);
}

static int compare_hazards(const void *left, const void *right) {
  const Hazard *a = left, *b = right;
  int order = compare_reports(a, b);
  if (!order) order = compare_numbers(a->here.ptx_line, b->here.ptx_line);
  return order ? order : compare_numbers(a->other.ptx_line, b->other.ptx_line);
}

// How many hazards the first report takes.
static int report_length(const Hazard *hazards, int count) {
  int length = 1;
  while (length < count && !compare_reports(&hazards[0], &hazards[length])) length++;
  return length;
}

// ---- what another finding makes superfluous ----

static bool is_at(const Hazard *hazard, int ptx_line, const char *kernel) {
  return !compare_text(hazard->kernel, kernel) &&
         (hazard->here.ptx_line == ptx_line || (hazard->has_other && hazard->other.ptx_line == ptx_line));
}

// Stores whose race is formal may owe it to chance, as the equal values of two that have read the same: a fault there
// says all.
static bool is_chance(const Hazard *hazard, const Hazard *all, int count) {
  if (!hazard->of_stores || hazard->grade != HAZARD_FORMAL) return false;
  for (int i = 0; i < count; i++)
    if (all[i].grade == HAZARD_FAULT && all[i].kind == hazard->kind &&
        (is_at(&all[i], hazard->here.ptx_line, hazard->kernel) ||
         is_at(&all[i], hazard->other.ptx_line, hazard->kernel)))
      return true;
  return false;
}

// New mbarriers are noted once for a kernel: at the first place.
static bool is_noted(const Hazard *hazard, const Hazard *before, int count) {
  if (hazard->kind != HAZARD_PROXY_FENCE || hazard->grade != HAZARD_NOTE) return false;
  for (int i = 0; i < count; i++)
    if (before[i].kind == hazard->kind && before[i].grade == HAZARD_NOTE &&
        !compare_text(before[i].kernel, hazard->kernel))
      return true;
  return false;
}

// Drops these from sorted hazards: returns how many are left.
static int without_superfluous(Hazard *hazards, int count, const HazardList *list) {
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (!is_chance(&hazards[i], list->items, list->count) && !is_noted(&hazards[i], hazards, kept))
      hazards[kept++] = hazards[i];
  return kept;
}

// Causes come before what may follow from them: bytes that a race or a missing wait left unwritten, a phase that ends
// with copies of another one; and at last what stopped the launch.
typedef enum Rank { RANK_CAUSE, RANK_CONSEQUENCE, RANK_END, RANKS } Rank;

static Rank rank_of(const Hazard *hazards, int length) {
  for (int i = 0; i < length; i++)
    if (hazards[i].stopped) return RANK_END;
  bool may_follow = hazards[0].kind == HAZARD_UNINITIALISED_READ || hazards[0].kind == HAZARD_EXPECT_TX;
  return may_follow ? RANK_CONSEQUENCE : RANK_CAUSE;
}

const Hazard *hazards_sorted(HazardList *list, int *count) {
  free(list->sorted);
  size_t bytes = (size_t)list->count * sizeof(Hazard);
  Hazard *by_line = host_allocate((size_t)list->count + 1, sizeof(Hazard)), *next;
  next = list->sorted = host_allocate((size_t)list->count + 1, sizeof(Hazard));
  if (list->count) memcpy(by_line, list->items, bytes);
  qsort(by_line, (size_t)list->count, sizeof(Hazard), compare_hazards);
  int left = without_superfluous(by_line, list->count, list);
  for (Rank rank = 0; rank < RANKS; rank++)
    for (int i = 0, length; i < left; i += length) {
      length = report_length(&by_line[i], left - i);
      if (rank_of(&by_line[i], length) != rank) continue;
      memcpy(next, &by_line[i], (size_t)length * sizeof(Hazard));
      next += length;
    }
  free(by_line);
  *count = left;
  return list->sorted;
}

HazardReports emulator_count_reports(const Hazard *hazards, int count) {
  HazardReports reports = {{0}};
  for (int i = 0; i < count; i += report_length(&hazards[i], count - i)) reports.count[hazards[i].grade]++;
  return reports;
}

// ---- the lines of the source ----

enum { MOST_CALLS = 4, MOST_CHAINS = 3 };  // that are printed

static const HazardPlace *place_in(const Hazard *hazard, bool other) { return other ? &hazard->other : &hazard->here; }

// "52 from 230 from 260"
static void print_chain(FILE *out, const HazardPlace *place) {
  int end = own_end(place), calls = end - place->own - 1;
  for (int i = 0; i < calls && i < MOST_CALLS; i++)
    fprintf(out, "%s%d", i ? " from " : "", place->frames[place->own + 1 + i].line);
  if (calls > MOST_CALLS) fprintf(out, " from ...");
}

// "kernel.cu:44, called at 229, at 52 from 230": the place in the kernel's own file, and the calls in that file that
// led there, in all hazards of a report.
static void print_own_lines(FILE *out, const Hazard *hazards, int length, bool other) {
  const HazardPlace *printed[MOST_CHAINS], *first = place_in(&hazards[0], other);
  int chains = 0;
  fprintf(out, "%s:%d", first->file, first->line);
  for (int i = 0; i < length; i++) {
    const HazardPlace *place = place_in(&hazards[i], other);
    bool known = own_end(place) == place->own + 1;
    for (int c = 0; c < chains && !known; c++) known = !compare_calls(printed[c], place);
    if (known) continue;
    if (chains == MOST_CHAINS) {
      fprintf(out, ", ...");
      return;
    }
    fprintf(out, chains ? ", at " : ", called at ");
    print_chain(out, place);
    printed[chains++] = place;
  }
}

// The frames from begin on, a line each: when they are many, the first ones and the last.
static void print_calls(FILE *out, const HazardPlace *place, int begin, int end, const char *first, const char *word) {
  for (int i = begin; i < end; i++) {
    const HazardFrame *frame = &place->frames[i];
    int left_out = end - begin - MOST_CALLS;
    if (left_out > 0 && i == begin + MOST_CALLS - 1) {
      fprintf(out, "       (%d more)\n", left_out);
      i += left_out - 1;
      continue;
    }
    fprintf(out, "       %s %s:%d", i == begin ? first : word, frame->file, frame->line);
    fprintf(out, frame->function ? ", %s\n" : "\n", frame->function);
  }
}

static void print_thread(FILE *out, const HazardPlace *place) {
  fprintf(out, "  block (%u,%u,%u) thread (%u,%u,%u)\n", place->block[0], place->block[1], place->block[2],
          place->thread[0], place->thread[1], place->thread[2]);
}

static void print_place(FILE *out, const char *role, const Hazard *hazards, int length, bool other) {
  const HazardPlace *place = place_in(&hazards[0], other);
  fprintf(out, "    %s ", role);
  if (place->file)
    print_own_lines(out, hazards, length, other);
  else
    fprintf(out, "PTX line %d", place->ptx_line);
  print_thread(out, place);
  print_calls(out, place, 0, place->inner, "in", "inlined at");
  if (place->file) print_calls(out, place, own_end(place), place->frame_count, "called from", "called from");
}

// ---- the lines of the PTX ----

enum { MOST_LINES = 6 };  // that are printed

static void print_pair(FILE *out, const Hazard *hazard) {
  fprintf(out, "%d", hazard->here.ptx_line);
  if (hazard->has_other) fprintf(out, " and %d", hazard->other.ptx_line);
}

// "PTX lines 120 and 98", or "12 pairs of PTX lines: 120 and 98, 133 and 98, ...".
static void print_ptx_lines(FILE *out, const Hazard *hazards, int length) {
  bool pairs = hazards[0].has_other, more = false;
  for (int i = 0; i < length; i++) more |= hazards[i].more;
  if (length > 1)
    fprintf(out, "%s%d %s: ", more ? "more than " : "", length, pairs ? "pairs of PTX lines" : "PTX lines");
  else
    fprintf(out, pairs ? "PTX lines " : "PTX line ");
  for (int i = 0; i < length && i < MOST_LINES; i++) {
    if (i) fprintf(out, ", ");
    print_pair(out, &hazards[i]);
  }
  if (length > MOST_LINES) fprintf(out, ", ...");
}

static void print_count(FILE *out, const Hazard *hazards, int length) {
  uint64_t count = 0;
  for (int i = 0; i < length; i++) count += hazards[i].count;
  bool has_lines = hazards[0].here.file;  // else the places above name the PTX's
  if (!has_lines && count == 1) return;
  fprintf(out, "    ");
  if (has_lines) print_ptx_lines(out, hazards, length);
  if (count > 1) fprintf(out, "%smet %llu times", has_lines ? ", " : "", (unsigned long long)count);
  fprintf(out, "\n");
}

// ---- the report ----

static void print_lines(FILE *out, const char *lines) {
  for (const char *end; lines && (end = strchr(lines, '\n')); lines = end + 1)
    fprintf(out, "    %.*s\n", (int)(end - lines), lines);
}

static void print_report(FILE *out, const Hazard *hazards, int length) {
  static const char *const words[HAZARD_GRADES] = {"", "formal: ", "note: "};
  const Hazard *first = &hazards[0];
  bool stopped = false;
  for (int i = 0; i < length; i++) stopped |= hazards[i].stopped;
  fprintf(out, "%s%s: %s", words[first->grade], hazard_name(first->kind), first->detail);
  if (first->size)
    fprintf(out, " (%d byte%s at 0x%llx)", first->size, first->size > 1 ? "s" : "", (unsigned long long)first->address);
  fputc('\n', out);
  print_place(out, "at", hazards, length, false);
  if (first->has_other) print_place(out, "and", hazards, length, true);
  print_count(out, hazards, length);
  print_lines(out, first->lines);
  if (stopped) fprintf(out, "    the launch stopped here\n");
  if (*first->advice) fprintf(out, "    %s\n", first->advice);
}

// Whether a fault of the same kernel that may be its cause comes before the report.
static bool may_follow(const Hazard *hazards, int at, int length) {
  if (rank_of(&hazards[at], length) == RANK_CAUSE) return false;
  for (int i = 0; i < at; i++)
    if (hazards[i].grade == HAZARD_FAULT && !compare_text(hazards[i].kernel, hazards[at].kernel)) return true;
  return false;
}

void emulator_print_hazards(FILE *out, const Hazard *hazards, int count) {
  for (int i = 0, length; i < count; i += length) {
    length = report_length(&hazards[i], count - i);
    print_report(out, &hazards[i], length);
    if (may_follow(hazards, i, length)) fprintf(out, "    This may follow from what is reported above.\n");
  }
}

void emulator_print_hazard(FILE *out, const Hazard *hazard) { print_report(out, hazard, 1); }
