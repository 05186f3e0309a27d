// How the emulator schedules threads: lanes that diverge compute what they would alone, threads that wait for each
// other all get on, and neither the schedule's seed nor the number of host threads changes a result.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "ptx/cuda/divergent.h"
#include "support/ptx_files.h"

TestSuite(scheduling, .timeout = 120);

enum { MAX_ARGUMENTS = 5 };

typedef struct Machine {
  Emulator *emulator;
  EmulatorModule *module;
} Machine;

typedef struct Way {
  uint64_t schedule;
  int threads;
} Way;

// The ways to run a kernel that must all lead to one result.
static const Way ways[] = {{0, 1}, {0, 2}, {1, 1}, {3, 2}, {2, 1}, {0, 5}, {1, 2}, {4, 1}, {12345, 3}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static Machine start(Way way) {
  char path[600];
  if (!getenv("PTX_DIR")) cr_skip_test("PTX_DIR is not set");
  snprintf(path, sizeof path, "%s/scheduling.ptx", getenv("PTX_DIR"));
  Text ptx = read_text(path);
  EmulatorOptions options = {
      .hazards = true, .schedule = way.schedule, .threads = way.threads, .step_limit = 200 << 20};
  Machine machine = {.emulator = emulator_open(&options)};
  EmulatorError error;
  machine.module = emulator_load(machine.emulator, ptx.bytes, ptx.length, &error);
  cr_assert(machine.module, "line %d: %s", error.line, error.message);
  free(ptx.bytes);
  return machine;
}

static uint64_t upload(Machine *machine, const int *values, int count) {
  uint64_t address = emulator_alloc(machine->emulator, (size_t)count * sizeof(int));
  cr_assert(emulator_write(machine->emulator, address, values, (size_t)count * sizeof(int)));
  return address;
}

static uint64_t zeros(Machine *machine, int count) {
  uint64_t address = emulator_alloc(machine->emulator, (size_t)count * sizeof(int));
  cr_assert(emulator_fill(machine->emulator, address, 0, (size_t)count * sizeof(int)));
  return address;
}

static int result(Machine *machine, uint64_t address, int index) {
  int value;
  cr_assert(emulator_read(machine->emulator, &value, address + (uint64_t)index * sizeof value, sizeof value));
  return value;
}

// Launches a kernel whose arguments are pointers and ints, 8 bytes of each given; it must run without a report.
static void launch(Machine *machine, const char *kernel, unsigned grid, unsigned block, const uint64_t *arguments,
                   int count) {
  const void *pointers[MAX_ARGUMENTS];
  for (int i = 0; i < count; i++) pointers[i] = &arguments[i];
  EmulatorLaunch launch = {
      .kernel = kernel, .grid = {grid, 1, 1}, .block = {block, 1, 1}, .arguments = pointers, .argument_count = count};
  EmulatorError error;
  EmulatorStatus status = emulator_launch(machine->emulator, machine->module, &launch, &error);
  cr_assert(status != EMULATOR_INVALID, "%s: %s", kernel, error.message);
  int hazards;
  const Hazard *first = emulator_hazards(machine->emulator, &hazards);
  cr_expect(status == EMULATOR_OK && hazards == 0, "%s: %s line %d: %s", kernel,
            hazards ? hazard_name(first->kind) : "stopped", hazards ? first->here.line : 0,
            hazards ? first->detail : "");
}

#define LAUNCH(machine, kernel, grid, block, ...)                                                                      \
  launch(machine, kernel, grid, block, (uint64_t[]){__VA_ARGS__},                                                      \
         (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

// ---- divergence ----

enum { BLOCKS = 3, BLOCK = 80, THREADS = BLOCKS * BLOCK };

static void make_inputs(int *in) {
  for (int i = 0; i < THREADS; i++) in[i] = (i * 37 + i / 7) % 113;
}

// Runs a kernel of in and out; the results go to out.
static EmulatorCounters run_divergent(Way way, const char *kernel, const int *in, int *out, unsigned block) {
  Machine machine = start(way);
  uint64_t from = upload(&machine, in, THREADS), to = zeros(&machine, THREADS);
  LAUNCH(&machine, kernel, THREADS / block, block, from, to);
  cr_assert(emulator_read(machine.emulator, out, to, THREADS * sizeof(int)));
  EmulatorCounters counters = emulator_counters(machine.emulator);
  emulator_close(machine.emulator);
  return counters;
}

static void expect_function(const char *kernel, int (*function)(int)) {
  int in[THREADS], out[THREADS];
  uint64_t executed = 0;
  make_inputs(in);
  for (int w = 0; w < WAYS; w++) {
    EmulatorCounters counters = run_divergent(ways[w], kernel, in, out, BLOCK);
    for (int i = 0; i < THREADS; i++)
      cr_assert(out[i] == function(in[i]), "%s(%d), schedule %d, %d host threads: %d, expected %d", kernel, in[i],
                (int)ways[w].schedule, ways[w].threads, out[i], function(in[i]));
    uint64_t now = counters.value[COUNTER_THREAD_INST_EXECUTED];
    if (w == 0) executed = now;
    cr_expect(now == executed, "%s, schedule %d, %d host threads: %llu instructions of threads, not %llu", kernel,
              (int)ways[w].schedule, ways[w].threads, (unsigned long long)now, (unsigned long long)executed);
  }
}

#define DIVERGENT_TEST(name)                                                                                           \
  Test(scheduling, name) { expect_function("kernel_" #name, name); }
DIVERGENT_FUNCTIONS(DIVERGENT_TEST)

// What lanes do apart costs a warp instruction each; what they do together costs one for all. Without divergence a warp
// of equal inputs executes one instruction where its threads execute 32.
Test(scheduling, equal_lanes_stay_together) {
  int in[THREADS], out[THREADS];
  for (int i = 0; i < THREADS; i++) in[i] = 97;
  EmulatorCounters counters = run_divergent(ways[0], "kernel_sorted", in, out, BLOCK);
  uint64_t warps = counters.value[COUNTER_INST_EXECUTED], threads = counters.value[COUNTER_THREAD_INST_EXECUTED];
  cr_expect(threads * 3 == warps * 80, "%llu of %llu", (unsigned long long)threads, (unsigned long long)warps);
}

// Lanes whose ways part in an if and a loop meet behind them: with all lanes apart for good it would take 32 times as
// many.
Test(scheduling, lanes_meet_again) {
  int in[THREADS], out[THREADS];
  make_inputs(in);
  EmulatorCounters counters = run_divergent(ways[0], "kernel_collatz", in, out, BLOCK);
  uint64_t warps = counters.value[COUNTER_INST_EXECUTED], threads = counters.value[COUNTER_THREAD_INST_EXECUTED];
  cr_expect(threads > 5 * warps, "%llu of threads, %llu of warps", (unsigned long long)threads,
            (unsigned long long)warps);
}

Test(scheduling, warps_reconverge) {
  enum { WARPS = THREADS / 32 };
  int in[THREADS], out[THREADS];
  make_inputs(in);
  for (int w = 0; w < WAYS; w++) {
    memset(out, 0, sizeof out);
    run_divergent(ways[w], "reconverge", in, out, 32);
    for (int i = 0; i < WARPS * 32; i++) {
      int sum = 0, large = 0;
      for (int lane = i / 32 * 32; lane < i / 32 * 32 + 32; lane++) {
        int x = collatz(in[lane]);
        if (x % 2) x = switches(in[lane]);
        sum += x;
        large += x > 20;
      }
      cr_assert_eq(out[i], sum + large, "thread %d, way %d", i, w);
    }
  }
}

Test(scheduling, teams_shrink) {
  enum { WARPS = THREADS / 32 };
  int in[THREADS], out[THREADS];
  make_inputs(in);
  for (int w = 0; w < WAYS; w++) {
    run_divergent(ways[w], "shrinking_teams", in, out, 32);
    for (int i = 0; i < WARPS * 32; i++) {
      int sum = 0;
      for (int k = 0; k < in[i] % 5; k++) {
        int team = 0, most = 0;
        for (int lane = i / 32 * 32; lane < i / 32 * 32 + 32; lane++) {
          int rounds = in[lane] % 5;
          team += k < rounds;
          if (rounds > most) most = rounds;
        }
        sum += 10 * team + most;
      }
      cr_assert_eq(out[i], sum, "thread %d, way %d", i, w);
    }
  }
}

// ---- forward progress ----

static void in_every_way(void (*body)(Machine *machine)) {
  for (int w = 0; w < WAYS; w++) {
    Machine machine = start(ways[w]);
    body(&machine);
    emulator_close(machine.emulator);
  }
}

static void enter_one_by_one(Machine *machine, unsigned grid, unsigned block) {
  uint64_t lock = zeros(machine, 1), inside = zeros(machine, 1), sum = zeros(machine, 1);
  LAUNCH(machine, "critical_section", grid, block, lock, inside, sum);
  cr_expect_eq(result(machine, sum, 0), (int)(grid * block));
  cr_expect_eq(result(machine, lock, 0), 0);
}
static void lanes_enter(Machine *machine) { enter_one_by_one(machine, 1, 40); }
static void blocks_enter(Machine *machine) { enter_one_by_one(machine, 6, 2); }
Test(scheduling, lanes_enter_one_by_one) { in_every_way(lanes_enter); }
Test(scheduling, blocks_enter_one_by_one) { in_every_way(blocks_enter); }

static void try_until_done(Machine *machine) {
  uint64_t lock = zeros(machine, 1), sum = zeros(machine, 1);
  LAUNCH(machine, "try_lock", 2, 64, lock, sum);
  cr_expect_eq(result(machine, sum, 0), 2 * 63 * 64 / 2);
}
Test(scheduling, try_lock) { in_every_way(try_until_done); }

static void wait_for_lane(Machine *machine) {
  uint64_t out = zeros(machine, 1);
  LAUNCH(machine, "lane_waits", 1, 32, out);
  cr_expect_eq(result(machine, out, 0), 42);
}
Test(scheduling, a_lane_waits_for_another) { in_every_way(wait_for_lane); }

static void to_and_fro(Machine *machine) {
  enum { ROUNDS = 6 };
  uint64_t out = zeros(machine, 1);
  int expected = 1;
  for (int k = 0; k < ROUNDS; k++) expected = 3 * (3 * expected) + 1;
  LAUNCH(machine, "ping_pong", 1, 64, out, ROUNDS);
  cr_expect_eq(result(machine, out, 0), expected);
}
Test(scheduling, warps_hand_over) { in_every_way(to_and_fro); }

static void ask_first(Machine *machine) {
  uint64_t question = zeros(machine, 1), answer = zeros(machine, 1), out = zeros(machine, 1);
  LAUNCH(machine, "ask", 2, 32, question, answer, out, 0);
  cr_expect_eq(result(machine, out, 0), 21);
}
static void ask_last(Machine *machine) {
  uint64_t question = zeros(machine, 1), answer = zeros(machine, 1), out = zeros(machine, 1);
  LAUNCH(machine, "ask", 2, 32, question, answer, out, 1);
  cr_expect_eq(result(machine, out, 0), 21);
}
Test(scheduling, the_first_block_waits_for_the_last) { in_every_way(ask_first); }
Test(scheduling, the_last_block_waits_for_the_first) { in_every_way(ask_last); }

// Many blocks that poll one counter hand over to each other again and again.
static void meet_in_phases(Machine *machine) {
  enum { GRID = 16, PHASES = 12 };
  uint64_t arrived = zeros(machine, 1), values = zeros(machine, GRID * (PHASES + 1));
  int first[GRID];
  for (int i = 0; i < GRID; i++) first[i] = 5 * i + 3;
  cr_assert(emulator_write(machine->emulator, values, first, sizeof first));
  LAUNCH(machine, "grid_phases", GRID, 64, arrived, values, PHASES);
  for (int i = 0; i < GRID; i++) {
    int expected = (first[(i + PHASES) % GRID] + 1) * (1 << PHASES) - 1;
    cr_expect_eq(result(machine, values, GRID * PHASES + i), expected, "block %d", i);
  }
}
Test(scheduling, a_barrier_of_the_grid) { in_every_way(meet_in_phases); }

static void barrier_then_flag(Machine *machine) {
  uint64_t out = zeros(machine, 1);
  LAUNCH(machine, "barrier_and_flag", 1, 96, out);
  cr_expect_eq(result(machine, out, 0), 64);
}
Test(scheduling, spinning_beside_a_barrier) { in_every_way(barrier_then_flag); }
