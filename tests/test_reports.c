// What a report tells beside its kind: how much it weighs, whether it stopped the launch, and where: the source line
// with the calls that led there, and the lines of the PTX.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"

TestSuite(reports, .timeout = 60);

typedef struct Report {
  Emulator *emulator;
  EmulatorStatus status;
  EmulatorError error;
  const Hazard *hazards;
  int count;
  char *text;  // of all reports
} Report;

// Runs the kernel k of one block. The files are a kernel, the headers of a library, and one beside the kernel; the
// functions kernel, lib::put, and of lib::Tile store, the destructor and an operator.
static Report report_of(const unsigned block[3], const char *body) {
  char *text = malloc(strlen(body) + 2000);
  sprintf(
      text,
      ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() {\n.shared .align 16 .b8 tile[1024];\n"
      ".reg .b32 %%a, %%t, %%v; .reg .b64 %%d; .reg .pred %%p;\nmov.u32 %%a, tile; mov.u32 %%t, %%tid.x;\n%s\nret;\n}\n"
      ".file 1 \"my/kernel.cu\"\n.file 2 \"lib/put.h\"\n.file 3 \"lib/tile.h\"\n"
      ".file 4 \"my/shift.h\"\n"
      ".section .debug_str\n{\n$S0:\n.b8 95,90,78,51,108,105,98,51,112,117,116,69,118,0\n"  // _ZN3lib3putEv
      // _ZN3lib4TileILi64EE5storeEv
      "$S1:\n.b8 95,90,78,51,108,105,98,52,84,105,108,101,73,76,105,54,52,69,69,53,115,116,111,114,101,69,118,0\n"
      // _ZN3lib4TileILi64EED1Ev
      "$S2:\n.b8 95,90,78,51,108,105,98,52,84,105,108,101,73,76,105,54,52,69,69,68,49,69,118,0\n"
      // _ZNK3lib4TileILi64EEdeEv
      "$S3:\n.b8 95,90,78,75,51,108,105,98,52,84,105,108,101,73,76,105,54,52,69,69,100,101,69,118,0\n}\n",
      body);
  Report r = {.emulator = emulator_open(&(EmulatorOptions){.hazards = true, .threads = 1, .step_limit = 1 << 20})};
  EmulatorModule *module = emulator_load(r.emulator, text, strlen(text), &r.error);
  cr_assert(module, "line %d: %s", r.error.line, r.error.message);
  EmulatorLaunch launch = {.kernel = "k", .grid = {1, 1, 1}, .block = {block[0], block[1], block[2]}};
  r.status = emulator_launch(r.emulator, module, &launch, &r.error);
  cr_assert_neq(r.status, EMULATOR_INVALID, "%s", r.error.message);
  r.hazards = emulator_hazards(r.emulator, &r.count);
  size_t size;
  FILE *file = open_memstream(&r.text, &size);
  emulator_print_hazards(file, r.hazards, r.count);
  fclose(file);
  free(text);
  return r;
}

static Report report(const char *body) { return report_of((const unsigned[3]){64, 1, 1}, body); }

static void end(Report *r) {
  emulator_close(r->emulator);
  free(r->text);
}

static void expect_text(const Report *r, const char *part) {
  cr_expect(strstr(r->text, part), "no \"%s\" in\n%s", part, r->text);
}

static void expect_reports(const Report *r, HazardGrade grade, int count) {
  cr_expect_eq(emulator_count_reports(r->hazards, r->count).count[grade], count, "%s", r->text);
}

// ---- weight ----

Test(reports, a_fault_may_go_on) {
  Report r = report("shfl.sync.idx.b32 %v, %t, 0, 31, 0x0000fffe;\nst.shared.u32 [%a], 1;");
  cr_expect_eq(r.status, EMULATOR_OK);
  cr_assert_eq(r.count, 2);  // two warps store at one address, too
  cr_expect(!r.hazards[0].stopped && !r.hazards[1].stopped && r.hazards[0].grade == HAZARD_FAULT);
  expect_text(&r, "divergent .aligned instruction: the lane executes it");
  end(&r);
}

Test(reports, what_stops_is_marked_and_named) {
  Report r = report(".loc 1 7 3\nld.shared.u32 %v, [%a+4096];\nst.shared.u32 [%a+8192], 1;");
  cr_expect_eq(r.status, EMULATOR_FAULT);
  cr_assert_eq(r.count, 1);
  cr_expect(r.hazards[0].stopped);
  cr_expect_str_eq(r.hazards[0].kernel, "k");
  cr_expect(strstr(r.error.message, "k stopped at my/kernel.cu:7: out-of-bounds access: byte 4096"), "%s",
            r.error.message);
  cr_expect_eq(r.error.line, r.hazards[0].here.ptx_line);
  expect_text(&r, "    the launch stopped here\n");
  end(&r);
}

// The same instruction is reported first, and then stops the launch: the one report says so. Warp 1 has 16 lanes left,
// and nothing orders them after warp 0, whose phase is over. Then warp 2 makes them 48 threads of 32.
Test(reports, a_known_report_that_stops_is_marked) {
  Report r = report_of((const unsigned[3]){96, 1, 1},
                       "setp.ge.u32 %p, %t, 48; @%p setp.lt.u32 %p, %t, 64; @%p ret;\nbarrier.cta.sync 1, 32;");
  cr_expect_eq(r.status, EMULATOR_FAULT);
  cr_assert_eq(r.count, 1, "%s", r.text);
  cr_expect_eq(r.hazards[0].count, 3);
  cr_expect(r.hazards[0].stopped);
  end(&r);
}

Test(reports, a_note_has_its_word_in_front) {
  Report r = report("setmaxnreg.dec.sync.aligned.u32 24;");
  cr_expect_eq(r.status, EMULATOR_OK);
  expect_reports(&r, HAZARD_NOTE, 1);
  expect_reports(&r, HAZARD_FAULT, 0);
  cr_expect(!strncmp(r.text, "note: setmaxnreg misuse: ptxas ignores it", 41), "%s", r.text);
  end(&r);
}

// ---- lines ----

// All threads store at one place, so that each store races with itself.
#define STORE "st.shared.u32 [%a], %t;\n"

Test(reports, a_header_that_the_kernel_calls_needs_no_line) {
  Report r = report(".loc 1 9 1\n.loc 2 3 5, function_name $S0, inlined_at 1 9 1\n" STORE);
  cr_assert_eq(r.count, 1);
  const HazardPlace *place = &r.hazards[0].here;
  cr_expect_str_eq(place->file, "my/kernel.cu");
  cr_expect_eq(place->line, 9);
  cr_assert_eq(place->frame_count, 2);
  cr_expect_eq(place->own, 1);
  cr_expect_str_eq(place->frames[0].file, "lib/put.h");
  cr_expect_eq(place->frames[0].line, 3);
  cr_expect_str_eq(place->frames[0].function, "lib::put");
  cr_expect_str_eq(place->frames[1].function, "k");
  expect_text(&r, "    at my/kernel.cu:9  block (0,0,0) thread (");
  cr_expect(!strstr(r.text, "lib/"), "%s", r.text);
  end(&r);
}

// It is as much the reader's as the kernel: two of its lines are two reports.
Test(reports, a_header_beside_the_kernel_has_its_lines) {
  Report r = report(".loc 1 9 1\n.loc 4 3 5, function_name $S0, inlined_at 1 9 1\n" STORE
                    ".loc 4 5 5, function_name $S0, inlined_at 1 9 1\nst.shared.u32 [%a+16], %t;\n");
  expect_reports(&r, HAZARD_FAULT, 2);
  expect_text(&r, "    at my/kernel.cu:9  block (0,0,0) thread (");
  expect_text(&r, "       in my/shift.h:3, lib::put\n");
  expect_text(&r, "       in my/shift.h:5, lib::put\n");
  end(&r);
}

// The kernel calls at line 9 its function, which stands at line 4, and that calls the library.
#define CHAIN                                                                                                          \
  ".loc 1 9 1\n.loc 1 4 2, function_name $S0, inlined_at 1 9 1\n"                                                      \
  ".loc 3 40 7, function_name $S1, inlined_at 1 4 2\n.loc 2 3 5, function_name $S0, inlined_at 3 40 7\n"

Test(reports, a_longer_chain_is_shown_from_inside) {
  Report r = report(CHAIN STORE);
  cr_assert_eq(r.count, 1);
  expect_text(&r, "    at my/kernel.cu:4, called at 9  block (0,0,0)");
  expect_text(&r, "       in lib/put.h:3, lib::put\n       inlined at lib/tile.h:40, lib::Tile::store\n");
  end(&r);
}

Test(reports, a_destructor_is_no_constructor) {
  Report r = report(
      ".loc 1 9 1\n.loc 1 4 2, function_name $S0, inlined_at 1 9 1\n"
      ".loc 3 40 7, function_name $S2, inlined_at 1 4 2\n.loc 2 3 5, function_name $S3, inlined_at 3 40 7\n" STORE);
  cr_assert_eq(r.count, 1);
  expect_text(&r, "       in lib/put.h:3, lib::Tile::operator*\n       inlined at lib/tile.h:40, lib::Tile::~Tile\n");
  end(&r);
}

Test(reports, a_long_chain_is_shortened) {
  char body[1600], *at = body;
  at += sprintf(at, ".loc 1 9 1\n.loc 3 1 1, function_name $S1, inlined_at 1 9 1\n");
  for (int i = 2; i <= 10; i++) at += sprintf(at, ".loc 3 %d 1, function_name $S1, inlined_at 3 %d 1\n", i, i - 1);
  strcpy(at, STORE);
  Report r = report(body);
  cr_assert_eq(r.hazards[0].here.frame_count, 11);
  expect_text(&r, "       in lib/tile.h:10, lib::Tile::store\n       inlined at lib/tile.h:9, lib::Tile::store\n"
                  "       inlined at lib/tile.h:8, lib::Tile::store\n       (6 more)\n"
                  "       inlined at lib/tile.h:1, lib::Tile::store\n");
  end(&r);
}

// A kernel that stands in a header of the library: there is no line of its own that tells the calls apart.
Test(reports, a_librarys_kernel_is_told_apart_by_its_calls) {
  Report r = report(".loc 3 9 1\n.loc 2 3 5, function_name $S0, inlined_at 3 9 1\n" STORE
                    ".loc 3 10 1\n.loc 2 3 5, function_name $S0, inlined_at 3 10 1\n"
                    "st.shared.u32 [%a+16], %t;\n");
  cr_expect_eq(r.count, 2);
  expect_reports(&r, HAZARD_FAULT, 2);
  expect_text(&r, "    at lib/put.h:3  block");
  expect_text(&r, "       called from lib/tile.h:9, k\n");
  expect_text(&r, "       called from lib/tile.h:10, k\n");
  end(&r);
}

Test(reports, calls_of_a_function_of_the_kernel_are_listed) {
  Report r = report(".loc 1 9 1\n.loc 1 4 2, function_name $S0, inlined_at 1 9 1\n" STORE
                    ".loc 1 12 1\n.loc 1 4 2, function_name $S0, inlined_at 1 12 1\nst.shared.u32 [%a+16], %t;\n");
  cr_expect_eq(r.count, 2, "they have different PTX lines");
  expect_reports(&r, HAZARD_FAULT, 1);
  expect_text(&r, "my/kernel.cu:4, called at 9, at 12  block");
  expect_text(&r, "    2 pairs of PTX lines: 10 and 10, 13 and 13, met ");
  end(&r);
}

// ---- places ----

Test(reports, a_thread_has_three_coordinates) {
  Report r = report_of((const unsigned[3]){4, 2, 3},
                       ".reg .pred %q, %z; setp.eq.u32 %p, %t, 3; setp.eq.and.u32 %q, %tid.y, 1, %p;\n"
                       "setp.eq.and.u32 %z, %tid.z, 2, %q; @%z ld.shared.u32 %v, [%a+4096];");
  cr_assert_eq(r.count, 1);
  expect_text(&r, "block (0,0,0) thread (3,1,2)");
  end(&r);
}

// The read is reported, with the write beside it, whichever came first.
Test(reports, a_read_and_a_write_that_race) {
  static const char *const readers[] = {"lt", "ge"};  // warp 0, warp 1
  for (int i = 0; i < 2; i++) {
    char body[400];
    snprintf(body, sizeof body,
             "setp.eq.u32 %%p, %%t, 0; @%%p st.shared.u32 [%%a], 0; bar.sync 0; setp.%s.u32 %%p, %%t, 32;\n"
             ".loc 1 9 1\n@%%p ld.shared.u32 %%v, [%%a];\n.loc 1 10 1\n@!%%p st.shared.u32 [%%a], 1;",
             readers[i]);
    Report r = report(body);
    cr_assert_gt(r.count, 0);
    cr_expect_eq(r.hazards[0].here.line, 9);
    cr_expect_eq(r.hazards[0].other.line, 10);
    cr_expect_eq(r.hazards[0].here.thread[0] / 32, (unsigned)i);
    end(&r);
  }
}

// ---- many ----

// An unrolled loop has a PTX line for each round. Not all are kept, but all are counted; a second mistake has its
// place.
Test(reports, an_unrolled_loop_is_one_report) {
  enum { ROUNDS = 200, LANES_THAT_MEET = 32 };
  char body[ROUNDS * 40 + 100], *at = body;
  at += sprintf(at, ".loc 1 9 1\n");
  for (int i = 0; i < ROUNDS; i++) at += sprintf(at, "st.shared.u32 [%%a+%d], %%t;\n", 4 * i);
  sprintf(at, ".loc 1 10 1\nst.shared.u32 [%%a+1000], %%t;\n");
  Report r = report(body);
  expect_reports(&r, HAZARD_FAULT, 2);
  cr_expect_lt(r.count, 100);
  uint64_t met = 0;
  bool more = false;
  for (int i = 0; i < r.count; i++) {
    if (r.hazards[i].here.line == 9) met += r.hazards[i].count;
    more |= r.hazards[i].more;
  }
  uint64_t once = r.hazards[r.count - 1].count;  // the store of line 10
  cr_expect_eq(r.hazards[r.count - 1].here.line, 10);
  cr_expect_eq(met, ROUNDS * once, "%llu times, not %d times %llu", (unsigned long long)met, ROUNDS,
               (unsigned long long)once);
  cr_expect(more);
  expect_text(&r, "more than 32 pairs of PTX lines: ");
  end(&r);
}

// Stores of more PTX lines than are kept, all of what .loc says.
static char *unroll(char *at, const char *loc, int offset) {
  at += sprintf(at, "%s\n", loc);
  for (int i = 0; i < 40; i++) at += sprintf(at, "st.shared.u32 [%%a+%d], %%t;\n", offset + 4 * i);
  return at;
}

// How many reports are of a line of this file, called from that line of the kernel; 0: not called.
static int kept(const Report *r, const char *file, int caller) {
  int count = 0;
  for (int i = 0; i < r->count; i++) {
    const HazardPlace *place = &r->hazards[i].here;
    bool called = place->frame_count > 1;
    count += !strcmp(place->frames[0].file, file) && (called ? place->frames[1].line : 0) == caller;
  }
  return count;
}

// So many reports are kept for each file, line and chain of callers. The others are counted with those of their own
// place.
Test(reports, lines_of_different_places_are_kept_apart) {
  char body[8000], *at = body;
  at += sprintf(at, ".loc 1 5 1\nst.shared.u32 [%%a+1000], %%t;\n.loc 1 20 1\n.loc 1 21 1\n");
  at = unroll(at, ".loc 1 3 1", 0);
  at = unroll(at, ".loc 3 3 1", 160);
  at = unroll(at, ".loc 2 3 1, function_name $S0, inlined_at 1 20 1", 320);
  at = unroll(at, ".loc 2 3 1, function_name $S0, inlined_at 1 21 1", 480);
  Report r = report(body);
  cr_expect_eq(kept(&r, "my/kernel.cu", 0), 33, "%s", r.text);
  cr_expect_eq(kept(&r, "lib/tile.h", 0), 32, "%s", r.text);
  cr_expect_eq(kept(&r, "lib/put.h", 20), 32, "%s", r.text);
  cr_expect_eq(kept(&r, "lib/put.h", 21), 32, "%s", r.text);
  for (int i = 0; i < r.count; i++)
    if (r.hazards[i].here.line == 5) cr_expect(!r.hazards[i].more, "%s", r.text);
  end(&r);
}

// Warp 0 reads at line 9 what warp 1 has written at line 10 and at line 11.
Test(reports, a_line_that_races_with_two_is_kept_for_both) {
  char body[8000], *at = body;
  at += sprintf(at, "setp.lt.u32 %%p, %%t, 32; @%%p bra READ;\n");
  at = unroll(at, ".loc 1 10 1", 0);
  at = unroll(at, ".loc 1 11 1", 160);
  at += sprintf(at, "ret;\nREAD:\n.loc 1 9 1\n");
  for (int i = 0; i < 80; i++) at += sprintf(at, "ld.shared.u32 %%v, [%%a+%d];\n", 4 * i);
  Report r = report(body);
  int of[2] = {0, 0};
  for (int i = 0; i < r.count; i++)
    if (r.hazards[i].here.line == 9 && r.hazards[i].other.line >= 10) of[r.hazards[i].other.line - 10]++;
  cr_expect(of[0] == 32 && of[1] == 32, "%d and %d: %s", of[0], of[1], r.text);
  end(&r);
}

static int of_kind(const Report *r, HazardKind kind, bool stopped) {
  int count = 0;
  for (int i = 0; i < r->count; i++) count += r->hazards[i].kind == kind && r->hazards[i].stopped == stopped;
  return count;
}

// 40 reports of one line do not hide another kind of it, nor what stops the launch.
Test(reports, a_full_line_keeps_other_kinds_and_what_stops) {
  char body[8000], *at = unroll(body, ".loc 1 9 1", 0);
  for (int i = 0; i < 40; i++) at += sprintf(at, "barrier.cta.sync 1, 32;\n");
  sprintf(at, "setp.lt.u32 %%p, %%t, 32; @%%p ret;\nld.shared.u32 %%v, [%%a+600];\n"
              "setp.eq.u32 %%p, %%v, 77; @%%p ret;\nbarrier.cta.sync 17, 64;\n");
  Report r = report(body);
  cr_expect_eq(r.status, EMULATOR_FAULT);
  cr_expect_eq(of_kind(&r, HAZARD_SHARED_RACE, false), 32, "%s", r.text);
  cr_expect_eq(of_kind(&r, HAZARD_UNINITIALISED_READ, false), 1, "%s", r.text);
  cr_expect_eq(of_kind(&r, HAZARD_BARRIER_MISUSE, false), 32, "%s", r.text);
  cr_expect_eq(of_kind(&r, HAZARD_BARRIER_MISUSE, true), 1, "%s", r.text);
  end(&r);
}

Test(reports, clearing_leaves_nothing) {
  Report r = report(STORE);
  cr_assert_gt(r.count, 0);
  emulator_clear_hazards(r.emulator);
  emulator_hazards(r.emulator, &r.count);
  cr_expect_eq(r.count, 0);
  end(&r);
}
