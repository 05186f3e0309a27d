// Barriers of a block on the emulator: what bar.red gives, whom a barrier lets go, and what is reported.
#include <criterion/criterion.h>
#include <string.h>

#include "support/run_kernel.h"
#include "support/run_ptx.h"

TestSuite(barriers, .timeout = 60);

#define BEGIN                                                                                                          \
  PTX_HEADER ".visible .entry test(.param .u64 in, .param .u64 out) {\n"                                               \
             ".reg .u64 %i, %o, %w; .reg .u32 %t, %l, %c, %v, %r<6>; .reg .pred %p, %q;\n"                             \
             ".shared .u32 tile[96];\n"                                                                                \
             "mov.u32 %t, %tid.x; mov.u32 %l, %laneid; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];\n"               \
             "mul.wide.u32 %w, %t, 4; add.u64 %i, %i, %w;\n"
#define END "ret;\n}\n"

enum { THREADS = 96, WORDS = 6 };

// ---- bar.red ----

static void launch_with(Machine *machine, const uint32_t *in, uint32_t *out, size_t out_size) {
  uint64_t from = machine_upload(machine, in, THREADS * sizeof *in), to = machine_upload(machine, NULL, out_size);
  cr_expect_eq(machine_launch(machine, (Shape){1, THREADS, 0}, (const void *[]){&from, &to}, 2), EMULATOR_OK);
  expect_clean(machine);
  machine_download(machine, out, to, out_size);
}

// Every thread gets what all threads' predicates give, plain and negated. `set` of them are true, from thread `first`
// on.
static void vote(int first, int set) {
  static const char text[] = BEGIN
      "ld.global.u32 %v, [%i]; setp.ne.u32 %p, %v, 0;\n"
      "bar.red.popc.u32 %r0, 1, %p; bar.red.popc.u32 %r1, 1, 96, !%p;\n"
      "bar.red.and.pred %q, 1, %p; selp.u32 %r2, 1, 0, %q; bar.red.and.pred %q, 1, 96, !%p; selp.u32 %r3, 1, 0, %q;\n"
      "bar.red.or.pred %q, 1, %p; selp.u32 %r4, 1, 0, %q; bar.red.or.pred %q, 1, 96, !%p; selp.u32 %r5, 1, 0, %q;\n"
      "mad.wide.u32 %w, %t, 24, %o;\n"
      "st.global.v2.u32 [%w], {%r0, %r1}; st.global.v2.u32 [%w+8], {%r2, %r3}; st.global.v2.u32 [%w+16], {%r4, "
      "%r5};\n" END;
  uint32_t in[THREADS] = {0}, out[THREADS][WORDS];
  for (int i = 0; i < set; i++) in[first + i] = 1;
  const uint32_t expected[WORDS] = {(uint32_t)set, (uint32_t)(THREADS - set), set == THREADS, set == 0, set > 0,
                                    set < THREADS};
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    launch_with(&machine, in, out[0], sizeof out);
    for (int t = 0; t < THREADS; t++) cr_expect_arr_eq(out[t], expected, sizeof expected, "%d true: thread %d", set, t);
    machine_close(&machine);
  }
}

Test(barriers, votes) {
  vote(0, 0);
  vote(70, 1);
  vote(20, 32);
  vote(1, THREADS - 1);
  vote(0, THREADS);
}

// The halves of each warp meet at a barrier each, with one predicate for both results: a half keeps that of the other.
Test(barriers, halves_of_a_warp_vote_apart) {
  static const char text[] = BEGIN "setp.ge.u32 %p, %l, 16; setp.ne.u32 %q, %t, %t;\n"  // false
                                   "@%p bra UPPER;\n"
                                   "setp.eq.u32 %p, %t, 0; barrier.cta.red.or.pred %q, 1, 64, %p; bra MET;\n"
                                   "UPPER: setp.eq.u32 %p, %t, 95; barrier.cta.red.or.pred %q, 2, 64, %p;\n"
                                   "MET: bar.warp.sync 0xffffffff;\n"
                                   "selp.u32 %v, 1, 0, %q; mad.wide.u32 %w, %t, 4, %o; st.global.u32 [%w], %v;\n" END;
  enum { ALL = 128 };  // 64 lower and 64 upper lanes
  uint32_t out[ALL];
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    uint64_t to = machine_upload(&machine, NULL, sizeof out);
    cr_expect_eq(machine_launch(&machine, (Shape){1, ALL, 0}, (const void *[]){&to, &to}, 2), EMULATOR_OK);
    expect_clean(&machine);
    machine_download(&machine, out, to, sizeof out);
    for (int t = 0; t < ALL; t++) cr_expect_eq(out[t], 1, "schedule %d: thread %d", (int)schedule, t);
    machine_close(&machine);
  }
}

// ---- reports ----

// Every schedule must report this as the first hazard.
static void expect_first(const char *text, HazardKind kind, const char *detail) {
  uint32_t in[THREADS] = {0};
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    uint64_t from = machine_upload(&machine, in, sizeof in), to = machine_upload(&machine, NULL, sizeof in);
    machine_launch(&machine, (Shape){1, THREADS, 0}, (const void *[]){&from, &to}, 2);
    int count;
    const Hazard *first = emulator_hazards(machine.emulator, &count);
    cr_expect(count > 0 && first->kind == kind && strstr(first->detail, detail),
              "schedule %d: not \"%s\" but \"%s\" for\n%s", (int)schedule, detail, count ? first->detail : "", text);
    machine_close(&machine);
  }
}

static void expect_silence(const char *text) {
  uint32_t in[THREADS] = {0}, out[THREADS];
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    launch_with(&machine, in, out, sizeof out);
    machine_close(&machine);
  }
}

Test(barriers, counts_that_are_none) {
  expect_first(BEGIN "bar.sync 1, 48;\n" END, HAZARD_BARRIER_MISUSE, "the number of threads, 48, is not a multiple");
  expect_first(BEGIN "bar.sync 1, 2048;\n" END, HAZARD_BARRIER_MISUSE, "up to 1024");
  expect_first(BEGIN "mov.u32 %c, 0; bar.sync 1, %c;\n" END, HAZARD_BARRIER_MISUSE, "the number of threads, 0,");
  expect_first(BEGIN "setp.lt.u32 %p, %l, 16; selp.u32 %c, 96, 64, %p; bar.sync 1, %c;\n" END, HAZARD_BARRIER_MISUSE,
               "lanes of one warp name different barriers or counts");
}

// A warp that arrives as a whole ends a phase for 32 threads at once, so two warps need no order. Lanes that may arrive
// one by one do.
Test(barriers, a_barrier_of_one_warp_that_two_use) {
  expect_silence(BEGIN "barrier.cta.sync.aligned 1, 32;\n" END);
  expect_first(BEGIN "barrier.cta.sync 1, 32;\n" END, HAZARD_BARRIER_MISUSE,
               "barrier 1 waits for 32 threads, and 96 use it (warps 0 to 2)");
}

// Warps 0 and 1 each had a phase of their own at barrier 1. Warp 1 has met warp 2 since, warp 0 has not.
#define OWN_PHASES "setp.ge.u32 %p, %t, 64; @%p bra MEET; bar.sync 1, 32;\nMEET:"
Test(barriers, phases_of_single_warps_all_count) {
  expect_silence(BEGIN OWN_PHASES "bar.sync 2, 96;\nsetp.lt.u32 %p, %t, 32; @%p ret; bar.sync 1, 64;\n" END);
  expect_first(BEGIN OWN_PHASES "setp.lt.u32 %p, %t, 32; @%p ret; bar.sync 2, 64;\nbar.sync 1, 64;\n" END,
               HAZARD_BARRIER_MISUSE, "barrier 1: ");
}

// A phase of two warps, and one of a third warp beside it.
Test(barriers, a_single_warp_beside_two) {
  expect_first(BEGIN "setp.ge.u32 %p, %t, 64; @%p bra ALONE; bar.sync 1, 64; ret;\nALONE: bar.sync 1, 32;\n" END,
               HAZARD_BARRIER_MISUSE, "barrier 1: ");
}

// The lower halves of warps 0 and 1 meet warp 2, which has written. The upper halves meet each other, and know nothing
// of it.
Test(barriers, lanes_at_another_barrier_learn_nothing) {
  expect_first(BEGIN "mov.u32 %v, tile; setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%v], 0;\nbar.sync 0;\n"
                     "setp.ge.u32 %p, %t, 64; @%p st.shared.u32 [%v], 1; @%p bra LOWER;\n"
                     "setp.lt.u32 %p, %l, 16; @%p bra LOWER;\n"
                     "barrier.cta.sync 2, 32; setp.lt.u32 %p, %t, 32; @%p ld.shared.u32 %c, [%v]; ret;\n"
                     "LOWER: barrier.cta.sync 1, 64;\n" END,
               HAZARD_SHARED_RACE, "nothing orders");
}

// Runs the text, and expects of the first hazard its sentence, and in its advice a word.
static void expect_advice(const char *text, const char *detail, const char *advice) {
  uint32_t in[THREADS] = {0};
  Machine machine = machine_open(text, 0);
  uint64_t from = machine_upload(&machine, in, sizeof in), to = machine_upload(&machine, NULL, sizeof in);
  machine_launch(&machine, (Shape){1, THREADS, 0}, (const void *[]){&from, &to}, 2);
  int count;
  const Hazard *first = emulator_hazards(machine.emulator, &count);
  cr_assert_gt(count, 0);
  cr_expect(strstr(first->detail, detail), "no \"%s\" in \"%s\"", detail, first->detail);
  cr_expect(first->advice && strstr(first->advice, advice), "no \"%s\" in \"%s\"", advice,
            first->advice ? first->advice : "");
  machine_close(&machine);
}

// The cause is known when the block has ended: a wait that is missing is no wrong count, nor the other way round.
Test(barriers, misuse_by_cause) {
  expect_advice(BEGIN
                "setp.lt.u32 %p, %t, 32; setp.ge.u32 %q, %t, 64; @%q ret;\n"
                "@!%p bra MEET; bar.arrive 1, 64; bar.arrive 1, 64; ret;\nMEET: bar.sync 1, 64; bar.sync 1, 64;\n" END,
                "arrived twice without waiting between, at PTX line 10", "Let the warp wait");
  expect_advice(BEGIN "bar.sync 1, 64;\n" END, "barrier 1 waits for 64 threads, and 96 use it (warps 0 to 2)",
                "Write the number of all threads");
}

// Warp 2 has one __syncthreads less. A race comes of it, and the note names both places that met.
Test(barriers, meeting_at_two_places) {
  static const char text[] =
      BEGIN "mov.u32 %v, tile; setp.ge.u32 %p, %t, 64;\n@%p bra LESS;\nbar.sync 0;\n"
            "LESS: setp.eq.u32 %q, %t, 0; @%q st.shared.u32 [%v], 0;\nbar.sync 0;\nld.shared.u32 %c, [%v];\n"
            "@%p ret;\n" END;
  uint32_t in[THREADS] = {0};
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, schedule);
    uint64_t from = machine_upload(&machine, in, sizeof in), to = machine_upload(&machine, NULL, sizeof in);
    machine_launch(&machine, (Shape){1, THREADS, 0}, (const void *[]){&from, &to}, 2);
    int count, notes = 0;
    const Hazard *hazards = emulator_hazards(machine.emulator, &count);
    for (int i = 0; i < count; i++) {
      if (hazards[i].grade != HAZARD_NOTE) continue;
      notes++;
      cr_expect(strstr(hazards[i].detail, "at this one and that at PTX line 13"), "%s", hazards[i].detail);
      cr_expect_eq(hazards[i].here.ptx_line, 11, "PTX line %d", hazards[i].here.ptx_line);
    }
    cr_expect_eq(notes, 1, "schedule %d: %d notes", (int)schedule, notes);
    machine_close(&machine);
  }
}

Test(barriers, refused) {
  static const RefusedTest tests[] = {
      {"bar.arrive 1", "needs 2"},
      {"bar.red.popc.u32 %r0, 1", "operands"},
      {"bar.frobnicate 1, 64", "unknown modifier"},
  };
  RUN_REFUSED_TESTS(tests);
}
