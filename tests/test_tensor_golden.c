// Tensor copies on the emulator, byte for byte as an H200 made them: the cases and results in golden/tensor_copies.txt.
// TENSOR_COPIES names another file.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support/tensor_copies.h"

TestSuite(tensor_golden, .timeout = 120);

enum { MOST_CASES = 2000, MOST_REPORTS = 12, REPORT = 1000 };

static const char *const states[] = {"did nothing", "refused the map", "stopped", "never completed", "copied"};

// ---- the file ----

typedef struct Lines {
  char *text[MOST_CASES];
  int number[MOST_CASES];  // in the file
  int count;
} Lines;

static const Lines *read_lines(void) {
  static Lines lines;
  static char line[TENSOR_LINE + 2], path[4096];
  if (lines.count) return &lines;
  const char *root = getenv("HL_ROOT"), *other = getenv("TENSOR_COPIES");
  snprintf(path, sizeof path, other ? "%s" : "%s/tests/golden/tensor_copies.txt", other ? other : root ? root : ".");
  FILE *file = fopen(path, "r");
  cr_assert(file, "%s: cannot be read; HL_ROOT must be the repository's root", path);
  for (int number = 1; fgets(line, sizeof line, file); number++) {
    line[strcspn(line, "\n")] = 0;
    if (!line[0] || line[0] == '#') continue;
    cr_assert(lines.count < MOST_CASES, "%s: more cases than %d", path, MOST_CASES);
    lines.number[lines.count] = number;
    lines.text[lines.count++] = strdup(line);
  }
  fclose(file);
  return &lines;
}

// ---- comparing ----

// Puts what two results have from the first group on that differs: the texts of both.
static void append_groups(const TensorCase *c, const TensorResult *recorded, const TensorResult *result,
                          char report[REPORT]) {
  static char texts[2][TENSOR_LINE];
  tensor_write_result(c, recorded, texts[0]);
  tensor_write_result(c, result, texts[1]);
  size_t same = 0, used = strlen(report);
  while (texts[0][same] && texts[0][same] == texts[1][same]) same++;
  while (same && texts[0][same] != ' ') same--;
  snprintf(report + used, REPORT - used, "\n  H200:     ...%.90s\n  emulator: ...%.90s", texts[0] + same,
           texts[1] + same);
}

static bool differ(const TensorCase *c, const char *what, const TensorResult *recorded, const TensorResult *result,
                   char report[REPORT]) {
  size_t words = recorded->known / 2, first = words, wrong = 0;
  for (size_t i = words; i-- > 0;)
    if (tensor_at(recorded->after, i) != tensor_at(result->after, i)) first = i, wrong++;
  if (wrong) {
    snprintf(report, REPORT,
             "%s: %zu of the %s's words differ, the first at byte %zu: the H200 left %u there, the "
             "emulator %u",
             what, wrong, c->store ? "memory" : "tile", 2 * first, tensor_at(recorded->after, first),
             tensor_at(result->after, first));
    append_groups(c, recorded, result, report);
  } else if (recorded->has_hash && fnv1a(FNV1A_START, result->after, tensor_received(c)) != recorded->hash)
    snprintf(report, REPORT, "%s: bytes differ from %zu on", what, recorded->known);
  else
    return false;
  return true;
}

// Whether the emulator did something else than is recorded; *report then says what.
static bool is_wrong(const TensorCase *c, const char *what, const TensorResult *recorded, const TensorResult *result,
                     const char *why, char report[REPORT]) {
  if (recorded->state != result->state) {
    snprintf(report, REPORT, "%s: the H200 %s, the emulator %s%s%s", what, states[recorded->state],
             states[result->state], *why ? ": " : "", why);
    return true;
  }
  if (recorded->state != TENSOR_DONE) return false;
  if (recorded->bytes != result->bytes) {
    snprintf(report, REPORT, "%s: the H200 counted %u bytes, the emulator %u", what, recorded->bytes, result->bytes);
    return true;
  }
  return differ(c, what, recorded, result, report);
}

// ---- the tests ----

// Of one kind of copies: "load", "store", "reduce" or "prefetch", in tile or im2col mode, of this interleave.
static bool is_of(const TensorCase *c, const char *kind, bool im2col, int interleave) {
  const char *its = c->prefetch ? "prefetch" : c->reduction[0] ? "reduce" : c->store ? "store" : "load";
  return !strcmp(its, kind) && c->im2col == im2col && c->interleave == interleave;
}

static void check_line(const TensorCase *c, const char *line, int number, int *wrong) {
  static TensorResult recorded, result;
  char what[500], report[REPORT], why[400] = "";
  snprintf(what, sizeof what, "line %d, %.*s", number, (int)strcspn(line, ">") - 2, line);
  cr_assert(tensor_read_result(c, line, &recorded), "%s: no result", what);
  tensor_copy_run(c, recorded.bytes, &result, why);
  if (is_wrong(c, what, &recorded, &result, why, report) && (*wrong)++ < MOST_REPORTS) cr_expect(false, "%s", report);
}

// There must be so many, all recorded.
static void check_copies(const char *kind, bool im2col, int interleave, int cases) {
  const Lines *lines = read_lines();
  int count = 0, wrong = 0;
  for (int i = 0; i < lines->count; i++) {
    TensorCase c;
    cr_assert(tensor_case(lines->text[i], &c), "line %d: no case", lines->number[i]);
    if (!is_of(&c, kind, im2col, interleave)) continue;
    count++;
    check_line(&c, lines->text[i], lines->number[i], &wrong);
  }
  cr_expect_eq(count, cases, "%d cases", count);
  cr_expect_eq(wrong, 0, "%d of %d copies are wrong", wrong, count);
}

Test(tensor_golden, tile_loads) { check_copies("load", false, 0, 115); }
Test(tensor_golden, tile_stores) { check_copies("store", false, 0, 48); }
Test(tensor_golden, tile_reductions) { check_copies("reduce", false, 0, 114); }
Test(tensor_golden, im2col_loads) { check_copies("load", true, 0, 421); }
Test(tensor_golden, im2col_stores) { check_copies("store", true, 0, 46); }
Test(tensor_golden, im2col_reductions) { check_copies("reduce", true, 0, 19); }

Test(tensor_golden, interleave_16_tile_loads) { check_copies("load", false, 1, 142); }
Test(tensor_golden, interleave_16_im2col_loads) { check_copies("load", true, 1, 68); }
Test(tensor_golden, interleave_16_stores) {
  check_copies("store", false, 1, 18);
  check_copies("store", true, 1, 11);
  check_copies("reduce", false, 1, 4);
  check_copies("reduce", true, 1, 1);
}

Test(tensor_golden, interleave_32_tile_loads) { check_copies("load", false, 2, 136); }
Test(tensor_golden, interleave_32_im2col_loads) { check_copies("load", true, 2, 59); }
Test(tensor_golden, interleave_32_stores) {
  check_copies("store", false, 2, 18);
  check_copies("store", true, 2, 3);
  check_copies("reduce", false, 2, 4);
  check_copies("reduce", true, 2, 1);
}

Test(tensor_golden, prefetches) {
  check_copies("prefetch", false, 0, 7);
  check_copies("prefetch", true, 0, 5);
  check_copies("prefetch", false, 1, 1);
  check_copies("prefetch", true, 1, 1);
  check_copies("prefetch", false, 2, 1);
}

// Every result that the emulator gives reads back as it was written, and a wrong byte, byte count or state is found.
Test(tensor_golden, a_wrong_byte_is_found) {
  static TensorResult result, read;
  static char text[TENSOR_LINE + 10];
  const Lines *lines = read_lines();
  char report[REPORT], why[400] = "";
  int copied = 0;
  for (int i = 0; i < lines->count; i++) {
    TensorCase c;
    cr_assert(tensor_case(lines->text[i], &c));
    tensor_copy_record(&c, &result, why);
    strcpy(text, " ->");
    tensor_write_result(&c, &result, text + 3);
    cr_assert(tensor_read_result(&c, text, &read), "%s%s", lines->text[i], text);
    cr_assert(!is_wrong(&c, lines->text[i], &read, &result, why, report), "%s", report);
    if (result.state != TENSOR_DONE) continue;
    copied++;
    result.bytes += 16;
    cr_assert(is_wrong(&c, "", &read, &result, why, report), "%s: 16 bytes more", lines->text[i]);
    result.bytes -= 16;
    result.after[read.known - 1] ^= 1;
    cr_assert(is_wrong(&c, "", &read, &result, why, report), "%s: the last byte", lines->text[i]);
    result.state = TENSOR_STOPPED;
    cr_assert(is_wrong(&c, "", &read, &result, why, report), "%s: stopped", lines->text[i]);
  }
  cr_expect(copied > lines->count / 2, "%d of %d copied", copied, lines->count);
}
