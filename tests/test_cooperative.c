// Blocks that wait for each other: cooperative launches and grid.sync(), and flags between the blocks of ordinary
// launches, which get on as far as an H100 holds them at a time. What orders the blocks' accesses, and a missing order
// as a race.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "support/ptx_files.h"
#include "support/sanitized.h"

TestSuite(cooperative, .timeout = 120);

enum { MAX_ARGUMENTS = 5 };

typedef struct Machine {
  Emulator *emulator;
  EmulatorModule *module;
  EmulatorError error;
} Machine;

typedef struct Way {
  uint64_t schedule;
  int threads;
} Way;

static const Way ways[] = {{0, 1}, {0, 2}, {1, 1}, {3, 2}, {2, 1}, {0, 5}, {12345, 3}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static Machine start(Way way) {
  char path[600];
  if (!getenv("PTX_DIR")) cr_skip_test("PTX_DIR is not set");
  snprintf(path, sizeof path, "%s/cooperative.ptx", getenv("PTX_DIR"));
  Text ptx = read_text(path);
  Machine machine = {.emulator = emulator_open(&(EmulatorOptions){
                         .hazards = true, .schedule = way.schedule, .threads = way.threads, .step_limit = 400 << 20})};
  machine.module = emulator_load(machine.emulator, ptx.bytes, ptx.length, &machine.error);
  cr_assert(machine.module, "line %d: %s", machine.error.line, machine.error.message);
  free(ptx.bytes);
  return machine;
}

// Memory with 0, 1, 2, ... times the factor.
static uint64_t numbers(Machine *machine, int count, int factor) {
  uint64_t address = emulator_alloc(machine->emulator, (size_t)count * sizeof(int));
  for (int i = 0; i < count; i++) {
    int value = factor * i;
    cr_assert(emulator_write(machine->emulator, address + (uint64_t)i * sizeof value, &value, sizeof value));
  }
  return address;
}

static int result(Machine *machine, uint64_t address, int index) {
  int value;
  cr_assert(emulator_read(machine->emulator, &value, address + (uint64_t)index * sizeof value, sizeof value));
  return value;
}

typedef struct Shape {
  unsigned grid, block, cluster;
  size_t shared;
  bool cooperative;
} Shape;

// Launches a kernel whose arguments are pointers and ints, 8 bytes of each given.
static EmulatorStatus launch(Machine *machine, const char *kernel, Shape shape, const uint64_t *arguments, int count) {
  const void *pointers[MAX_ARGUMENTS];
  for (int i = 0; i < count; i++) pointers[i] = &arguments[i];
  EmulatorLaunch request = {.kernel = kernel,
                            .grid = {shape.grid, 1, 1},
                            .block = {shape.block, 1, 1},
                            .cluster = {shape.cluster},
                            .dynamic_shared = shape.shared,
                            .arguments = pointers,
                            .argument_count = count,
                            .cooperative = shape.cooperative};
  return emulator_launch(machine->emulator, machine->module, &request, &machine->error);
}

#define LAUNCH(machine, kernel, shape, ...)                                                                            \
  launch(machine, kernel, shape, (uint64_t[]){__VA_ARGS__}, (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

static void expect_clean(Machine *machine, EmulatorStatus status, const char *kernel, Way way) {
  int count;
  const Hazard *first = emulator_hazards(machine->emulator, &count);
  cr_expect(status == EMULATOR_OK && count == 0, "%s, schedule %d, %d host threads: %s: %s", kernel, (int)way.schedule,
            way.threads, count ? hazard_name(first->kind) : machine->error.message, count ? first->detail : "");
}

static void expect_global_race(Machine *machine, EmulatorStatus status, const char *kernel, Way way) {
  int count;
  const Hazard *first = emulator_hazards(machine->emulator, &count);
  cr_expect(status == EMULATOR_OK && count > 0 && first->kind == HAZARD_GLOBAL_RACE,
            "%s, schedule %d, %d host threads: no race, but %s", kernel, (int)way.schedule, way.threads,
            count ? first->detail : machine->error.message);
}

// ---- grid.sync() ----

enum { NONE = -1, PHASES = 4 };

// value -> 2 * value + 1, from block to block, so many times.
static int after_phases(int phases, int i, int block, int all) {
  return ((i + phases * block) % all + 1) * (1 << phases) - 1;
}

static void run_phases(Way way, Shape shape, int phases) {
  Machine machine = start(way);
  int all = (int)(shape.grid * shape.block);
  uint64_t values = numbers(&machine, all * (phases + 1), 1);
  expect_clean(&machine, LAUNCH(&machine, "phases", shape, values, (uint64_t)phases, (uint64_t)NONE), "phases", way);
  for (int i = 0; i < all; i++)
    cr_assert_eq(result(&machine, values, phases * all + i), after_phases(phases, i, (int)shape.block, all),
                 "thread %d", i);
  emulator_close(machine.emulator);
}

Test(cooperative, a_grid_meets) {
  for (int w = 0; w < WAYS; w++) run_phases(ways[w], (Shape){.grid = 7, .block = 96, .cooperative = true}, PHASES);
}

Test(cooperative, a_grid_of_clusters_meets) {
  for (int w = 0; w < WAYS; w++)
    run_phases(ways[w], (Shape){.grid = 8, .block = 64, .cluster = 2, .cooperative = true}, PHASES);
}

// Two blocks an SM, which meet twice. Of whole blocks the test takes more than a minute under ASan.
Test(cooperative, a_full_gpu_meets) {
  run_phases((Way){0, 2}, (Shape){.grid = 264, .block = SANITIZED ? 64 : 1024, .cooperative = true}, 2);
}

Test(cooperative, arriving_and_waiting_may_be_apart) {
  enum { ALL = 5 * 64 };
  for (int w = 0; w < WAYS; w++) {
    Machine machine = start(ways[w]);
    uint64_t values = numbers(&machine, ALL, 0), out = numbers(&machine, ALL, 0);
    Shape shape = {.grid = 5, .block = 64, .cooperative = true};
    expect_clean(&machine, LAUNCH(&machine, "arrive_then_wait", shape, values, out), "arrive_then_wait", ways[w]);
    for (int i = 0; i < ALL; i++) cr_assert_eq(result(&machine, out, i), ALL - 1 - i + 3 * i);
    emulator_close(machine.emulator);
  }
}

// Barriers of tiles of two warps are in the system's part of shared memory.
Test(cooperative, tiles_of_several_warps_meet) {
  enum { ALL = 192, TILE = 64 };
  for (int w = 0; w < WAYS; w++) {
    Machine machine = start(ways[w]);
    uint64_t values = numbers(&machine, ALL, 5), out = numbers(&machine, ALL, 0);
    Shape shape = {.grid = 1, .block = ALL};
    expect_clean(&machine, LAUNCH(&machine, "tiles_of_warps", shape, values, out), "tiles_of_warps", ways[w]);
    for (int i = 0; i < ALL; i++)
      cr_assert_eq(result(&machine, out, i), 5 * (i / TILE * TILE + TILE - 1 - i % TILE) + 2, "thread %d", i);
    emulator_close(machine.emulator);
  }
}

// The workspace is as it was at first, even if the launch before was stopped in the middle of a barrier.
Test(cooperative, launches_follow_each_other) {
  Machine machine = start(ways[0]);
  Shape shape = {.grid = 3, .block = 32, .cooperative = true};
  uint64_t values = numbers(&machine, 96 * (PHASES + 1), 1), few = numbers(&machine, 96 * 2, 1);
  for (int i = 0; i < 3; i++) {
    cr_expect_eq(LAUNCH(&machine, "phases", shape, few, PHASES, (uint64_t)NONE), EMULATOR_FAULT, "out of bounds");
    emulator_clear_hazards(machine.emulator);
    expect_clean(&machine, LAUNCH(&machine, "phases", shape, values, PHASES, (uint64_t)NONE), "phases", ways[0]);
  }
  emulator_close(machine.emulator);
}

Test(cooperative, a_missing_sync_is_a_race) {
  enum { ALL = 5 * 64 };
  for (int w = 0; w < WAYS; w++)
    for (int missing = 0; missing < PHASES - 1; missing++) {
      Machine machine = start(ways[w]);
      uint64_t values = numbers(&machine, ALL * (PHASES + 1), 1);
      Shape shape = {.grid = 5, .block = 64, .cooperative = true};
      expect_global_race(&machine, LAUNCH(&machine, "phases", shape, values, PHASES, (uint64_t)missing), "phases",
                         ways[w]);
      emulator_close(machine.emulator);
    }
}

Test(cooperative, a_write_before_the_others_have_read_is_a_race) {
  enum { ALL = 3 * 64, ROUNDS = 3 };
  for (int w = 0; w < WAYS; w++)
    for (int missing = NONE; missing < ROUNDS; missing++) {
      Machine machine = start(ways[w]);
      uint64_t values = numbers(&machine, ALL, 1);
      Shape shape = {.grid = 3, .block = 64, .cooperative = true};
      EmulatorStatus status = LAUNCH(&machine, "exchange", shape, values, ROUNDS, (uint64_t)missing);
      (missing == NONE ? expect_clean : expect_global_race)(&machine, status, "exchange", ways[w]);
      emulator_close(machine.emulator);
    }
}

Test(cooperative, more_blocks_than_a_gpu_holds_are_refused) {
  static const struct {
    Shape shape;
    const char *reason;  // NULL: none
  } launches[] = {
      {{.grid = 265, .block = 1024}, "265 blocks, but an H100 holds at most 264 of 1024 threads and 0 bytes"},
      {{.grid = 133, .block = 32, .shared = 116 << 10}, "133 blocks, but an H100 holds at most 132 of 32 threads"},
      {{.grid = 264, .block = 32, .shared = 113 << 10}, NULL},
      {{.grid = 4225, .block = 32}, "4225 blocks, but an H100 holds at most 4224"},
      {{.grid = 136, .block = 64, .cluster = 8, .shared = 200 << 10}, "136 blocks, but an H100 holds at most 128"},
  };
  for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
    Machine machine = start(ways[0]);
    Shape shape = launches[i].shape;
    shape.cooperative = true;
    uint64_t values = numbers(&machine, 1, 0);
    EmulatorStatus status = LAUNCH(&machine, "phases", shape, values, 0, 0);
    cr_expect_eq(status, launches[i].reason ? EMULATOR_INVALID : EMULATOR_OK, "%s", machine.error.message);
    cr_expect(!launches[i].reason || strstr(machine.error.message, launches[i].reason), "%s", machine.error.message);
    emulator_close(machine.emulator);
  }
}

Test(cooperative, an_ordinary_launch_cannot_sync) {
  Machine machine = start(ways[0]);
  uint64_t values = numbers(&machine, 64 * 2, 0);
  cr_expect_eq(LAUNCH(&machine, "phases", ((Shape){.grid = 2, .block = 32}), values, 1, (uint64_t)NONE),
               EMULATOR_FAULT);
  int count;
  const Hazard *hazard = emulator_hazards(machine.emulator, &count);
  cr_assert_eq(count, 1);
  cr_expect_str_eq(hazard_name(hazard->kind), "trap");
  cr_expect(strstr(hazard->detail, "grid.sync(), which needs a cooperative launch"), "%s", hazard->detail);
  emulator_close(machine.emulator);
}

// ---- ordinary launches ----

// Blocks that count how often they look are never where they were before, and let the others run all the same.
Test(cooperative, a_wait_may_count_its_rounds) {
  enum { GRID = 12, ROUNDS = 3 };
  for (int w = 0; w < WAYS; w++) {
    Machine machine = start(ways[w]);
    uint64_t arrived = numbers(&machine, 2, 0), values = numbers(&machine, GRID, 1), out = numbers(&machine, GRID, 0);
    EmulatorStatus status = LAUNCH(&machine, "counted_barrier", ((Shape){.grid = GRID, .block = 64}), arrived, values,
                                   out, ROUNDS, 1 << 20);
    expect_clean(&machine, status, "counted_barrier", ways[w]);
    for (int b = 0; b < GRID; b++) {
      int expected = 0;
      for (int p = 1; p <= ROUNDS; p++) expected += (b + 1) % GRID + p * (p + 1) / 2;
      cr_expect_eq(result(&machine, out, b), expected, "block %d", b);
    }
    emulator_close(machine.emulator);
  }
}

Test(cooperative, a_wait_may_count_in_local_memory) {
  for (int w = 0; w < WAYS; w++) {
    Machine machine = start(ways[w]);
    uint64_t flag = numbers(&machine, 1, 0), out = numbers(&machine, 4 * 32, 0);
    expect_clean(&machine, LAUNCH(&machine, "counts_in_local_memory", ((Shape){.grid = 4, .block = 32}), flag, out),
                 "counts_in_local_memory", ways[w]);
    cr_expect_eq(result(&machine, out, 3 * 32 - 1), 1);
    emulator_close(machine.emulator);
  }
}

Test(cooperative, a_wait_may_end_by_a_count_in_local_memory) {
  for (int w = 0; w < WAYS; w++) {
    Machine machine = start(ways[w]);
    uint64_t flag = numbers(&machine, 1, 0), out = numbers(&machine, 32, 0);
    expect_clean(&machine, LAUNCH(&machine, "gives_up_by_local_memory", ((Shape){.grid = 1, .block = 32}), flag, out),
                 "gives_up_by_local_memory", ways[w]);
    cr_expect_eq(result(&machine, out, 31), 10000);
    emulator_close(machine.emulator);
  }
}

static void scan(Way way, int backwards) {
  enum { GRID = 40 };
  Machine machine = start(way);
  uint64_t in = numbers(&machine, GRID, 1), out = numbers(&machine, 2 * GRID, 0), ready = numbers(&machine, GRID, 0);
  Shape shape = {.grid = GRID, .block = 64};
  expect_clean(&machine, LAUNCH(&machine, "look_back", shape, in, out, ready, (uint64_t)backwards), "look_back", way);
  for (int b = 0; b < GRID; b++) cr_expect_eq(result(&machine, out, b), b * (b - 1) / 2, "block %d", b);
  emulator_close(machine.emulator);
}

Test(cooperative, blocks_look_back) {
  for (int w = 0; w < WAYS; w++) scan(ways[w], 0);
}
Test(cooperative, blocks_look_ahead) {
  for (int w = 0; w < WAYS; w++) scan(ways[w], 1);
}

Test(cooperative, a_flag_orders_what_two_blocks_do) {
  enum { TILES = 6 };
  for (int w = 0; w < WAYS; w++)
    for (int relaxed = 0; relaxed < 2; relaxed++) {
      Machine machine = start(ways[w]);
      uint64_t partial = numbers(&machine, TILES * 64, 0), out = numbers(&machine, TILES * 64, 0);
      uint64_t flags = numbers(&machine, TILES, 0);
      EmulatorStatus status =
          LAUNCH(&machine, "fix_up", ((Shape){.grid = 2 * TILES, .block = 64}), partial, out, flags, (uint64_t)relaxed);
      (relaxed ? expect_global_race : expect_clean)(&machine, status, "fix_up", ways[w]);
      cr_expect_eq(result(&machine, out, 5 * 64 + 63), 50 + 63 + 1);
      emulator_close(machine.emulator);
    }
}

Test(cooperative, order_is_handed_on_by_a_fence_alone) {
  for (int w = 0; w < WAYS; w++)
    for (int fence = 0; fence < 2; fence++) {
      Machine machine = start(ways[w]);
      uint64_t data = numbers(&machine, 1, 0), flags = numbers(&machine, 2, 0), out = numbers(&machine, 1, 0);
      EmulatorStatus status =
          LAUNCH(&machine, "hand_on", ((Shape){.grid = 3, .block = 1}), data, flags, out, (uint64_t)fence);
      (fence ? expect_clean : expect_global_race)(&machine, status, "hand_on", ways[w]);
      cr_expect_eq(result(&machine, out, 0), 42);
      emulator_close(machine.emulator);
    }
}

Test(cooperative, a_fence_hands_on_what_was_learnt_before_it) {
  for (int w = 0; w < WAYS; w++)
    for (int asks = 0; asks < 2; asks++) {
      Machine machine = start(ways[w]);
      uint64_t data = numbers(&machine, 2, 0), flags = numbers(&machine, 3, 0), out = numbers(&machine, 1, 0);
      EmulatorStatus status =
          LAUNCH(&machine, "hand_on_one_of_two", ((Shape){.grid = 3, .block = 64}), data, flags, out, (uint64_t)asks);
      (asks ? expect_clean : expect_global_race)(&machine, status, "hand_on_one_of_two", ways[w]);
      cr_expect_eq(result(&machine, out, 0), 81);
      emulator_close(machine.emulator);
    }
}

// A block that has seen all arrive goes on when those have looked that run on other host threads. Else block 1, which
// takes longer, would first look when block 0 has arrived once more, and learn of what it has done since.
Test(cooperative, a_block_that_looks_late_learns_no_more) {
  for (int i = 0; i < 4; i++) {
    Way way = {0, 2};
    Machine machine = start(way);
    uint64_t arrived = numbers(&machine, 1, 0), data = numbers(&machine, 1, 0), out = numbers(&machine, 1, 0);
    Shape shape = {.grid = 2, .block = 1, .cooperative = true};
    EmulatorStatus status = LAUNCH(&machine, "write_after_meeting", shape, arrived, data, out, 20000, 100000);
    expect_global_race(&machine, status, "write_after_meeting", way);
    emulator_close(machine.emulator);
  }
}

// An ordinary launch has as many blocks under way as an H100 would: here one on each of 132 SMs.
Test(cooperative, more_blocks_than_a_gpu_holds_do_not_meet) {
  for (int w = 0; w < 3; w++) {
    Machine machine = start(ways[w]);
    uint64_t arrived = numbers(&machine, 1, 0);
    expect_clean(&machine, LAUNCH(&machine, "meet", ((Shape){.grid = 132, .block = 32, .shared = 200 << 10}), arrived),
                 "meet", ways[w]);
    arrived = numbers(&machine, 1, 0);
    cr_expect_eq(LAUNCH(&machine, "meet", ((Shape){.grid = 135, .block = 32, .shared = 200 << 10}), arrived),
                 EMULATOR_FAULT);
    int count;
    const Hazard *hazard = emulator_hazards(machine.emulator, &count);
    cr_assert_eq(count, 1);
    cr_expect_str_eq(hazard_name(hazard->kind), "deadlock");
    cr_expect(strstr(hazard->detail, "3 blocks have not started: an H100 has no room"), "%s", hazard->detail);
    emulator_close(machine.emulator);
  }
}
