// The emulator against what an H200 or an H100 did where PTX or common belief left a rule open: tests/rules/h200.txt
// and h100.txt, recorded by tests/rules/record.cu. A line has a family, a case, and the words that every block wrote,
// or how far threads came that wait forever.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "emulator/tensor/descriptor.h"
#include "rules/rules.h"
#include "support/program.h"
#include "support/ptx_files.h"
#include "support/sanitized.h"

TestSuite(rules, .timeout = 120);

enum { SCHEDULES = SANITIZED ? 1 : 4, MAX_BLOCKS = REMOTE_BLOCKS, LINE_SIZE = 400, SILENT = HAZARD_NOTE + 1 };

// ---- the recording ----

// The line of a case, after its name: false when there is none.
static bool recorded(const char *family, const char *name, char rest[LINE_SIZE]) {
  static const char *const devices[] = {"h200", "h100"};
  static char *texts[2];
  char start[LINE_SIZE], path[600];
  int length = snprintf(start, sizeof start, "\n%s | %s | ", family, name);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/tests/rules/%s.txt", root_path(), devices[i]);
    if (!texts[i]) texts[i] = read_text(path).bytes;
    const char *line = strstr(texts[i], start);
    if (!line && !strncmp(texts[i], start + 1, (size_t)length - 1)) line = texts[i] - 1;
    if (!line) continue;
    snprintf(rest, LINE_SIZE, "%.*s", (int)strcspn(line + length, "\n"), line + length);
    return true;
  }
  return false;
}

// ---- the same on the emulator ----

typedef struct Case {
  const char *family, *name, *kernel;
  uint32_t threads, words, cluster, variant;
  const uint32_t *program;
  size_t program_words;
  int heaviest;  // grade of the heaviest report, or SILENT; of a case that waits forever it is a fault
  bool races;    // the emulator's result depends on the schedule
} Case;

typedef struct Outcome {
  uint32_t out[MAX_BLOCKS][RULE_WORDS];
  int heaviest;
} Outcome;

static int heaviest_of(const Emulator *emulator) {
  int count, heaviest = SILENT;
  const Hazard *hazards = emulator_hazards(emulator, &count);
  for (int i = 0; i < count; i++)
    if ((int)hazards[i].grade < heaviest) heaviest = (int)hazards[i].grade;
  return heaviest;
}

static EmulatorModule *load_kernels(Emulator *emulator) {
  static Text text;
  const char *folder = getenv("PTX_DIR");
  char path[600];
  EmulatorError error = {0};
  snprintf(path, sizeof path, "%s/rules.ptx", folder ? folder : "build/ptx");
  if (!text.bytes) text = read_text(path);
  EmulatorModule *module = emulator_load_assembled(emulator, text.bytes, text.length, &error);
  cr_assert(module, "%s:%d: %s", path, error.line, error.message);
  return module;
}

typedef struct Loaded {
  Emulator *emulator;
  EmulatorModule *kernels;
} Loaded;

// An emulator for each schedule, which all cases of a test use: it reads a kernel once.
static const Loaded *loaded(uint32_t schedule) {
  static Loaded all[SCHEDULES];
  Loaded *one = &all[schedule];
  if (!one->emulator) {
    one->emulator = emulator_open(&(EmulatorOptions){.hazards = true, .schedule = schedule, .step_limit = 1 << 26});
    one->kernels = load_kernels(one->emulator);
  }
  emulator_clear_hazards(one->emulator);
  return one;
}

static uint64_t upload(Emulator *emulator, const void *bytes, size_t size) {
  uint64_t address = emulator_alloc(emulator, size);
  cr_assert(emulator_write(emulator, address, bytes, size));
  return address;
}

// Launches so many blocks in clusters of that size; 0: none.
static void launch(const Loaded *on, const char *kernel, unsigned blocks, unsigned threads, unsigned cluster,
                   const RuleInput *in, uint64_t out) {
  EmulatorError error = {0};
  uint64_t in_address = upload(on->emulator, in, sizeof *in);
  unsigned one = cluster ? 1 : 0;
  EmulatorLaunch launch = {.kernel = kernel,
                           .grid = {blocks, 1, 1},
                           .block = {threads, 1, 1},
                           .cluster = {cluster, one, one},
                           .arguments = (const void *[]){&in_address, &out},
                           .argument_count = 2};
  EmulatorStatus status = emulator_launch(on->emulator, on->kernels, &launch, &error);
  cr_assert_neq(status, EMULATOR_INVALID, "%s", error.message);
}

// Memory of zeros for the blocks' stores, with a tensor map of it.
static void give_memory(Emulator *emulator, uint32_t blocks, RuleInput *in) {
  size_t bytes = (size_t)blocks * END_COPIES * END_WORDS * 4;
  EmulatorError error = {0};
  void *zeros = calloc(bytes, 1);
  in->memory = upload(emulator, zeros, bytes);
  free(zeros);
  EmulatorTensorSpec spec = {.type = EMULATOR_TENSOR_U32,
                             .rank = 2,
                             .address = in->memory,
                             .size = {END_ROW_WORDS, bytes / 4 / END_ROW_WORDS},
                             .stride = {0, END_ROW_WORDS * 4},
                             .box = {END_ROW_WORDS, END_WORDS / END_ROW_WORDS}};
  cr_assert(emulator_tensor_map(&spec, (uint8_t *)in->map, &error), "%s", error.message);
}

static Outcome run_case(const Case *c, uint32_t schedule) {
  const Loaded *on = loaded(schedule);
  Emulator *emulator = on->emulator;
  RuleInput in = {.threads = c->threads, .seed = schedule, .limit = 1 << 30, .variant = c->variant};
  Outcome outcome = {.out = {{0}}};
  give_memory(emulator, c->cluster ? c->cluster : 1, &in);
  if (c->program) memcpy(in.program, c->program, c->program_words * sizeof *c->program);
  uint64_t out_address = upload(emulator, outcome.out, sizeof outcome.out);
  launch(on, c->kernel, c->cluster ? c->cluster : 1, c->threads, c->cluster, &in, out_address);
  cr_assert(emulator_read(emulator, outcome.out, out_address, sizeof outcome.out));
  outcome.heaviest = heaviest_of(emulator);
  return outcome;
}

// "2 1 0 0"
static void words_text(const Case *c, const uint32_t *words, char text[LINE_SIZE]) {
  int used = 0;
  for (uint32_t i = 0; i < c->words; i++)
    used += snprintf(text + used, LINE_SIZE - (size_t)used, "%s%x", i ? " " : "", words[i]);
}

static void check_case(const Case *c) {
  char line[LINE_SIZE], words[LINE_SIZE];
  cr_assert(recorded(c->family, c->name, line), "%s | %s: not recorded", c->family, c->name);
  bool stuck = !strncmp(line, "stuck: ", 7);
  *strstr(line, " | ") = 0;
  for (uint32_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Outcome outcome = run_case(c, schedule);
    int expected = stuck ? (int)HAZARD_FAULT : c->heaviest;
    cr_expect_eq(outcome.heaviest, expected, "%s | %s, schedule %u: grade %d, not %d", c->family, c->name, schedule,
                 outcome.heaviest, expected);
    for (uint32_t block = 0; block < (c->cluster ? c->cluster : 1) && !stuck && !c->races; block++) {
      words_text(c, outcome.out[block], words);
      cr_expect_str_eq(words, line, "%s | %s, schedule %u", c->family, c->name, schedule);
    }
  }
}

// Named barriers: how far each warp comes; and threads that wait forever, or an instruction that the GPU refuses, is a
// fault in every schedule.
Test(rules, named_barriers) {
  for (int i = 0; i < BARRIER_CASES; i++)
    check_case(&(Case){"barrier", barrier_cases[i].name, "barrier_rules", 32 * BARRIER_WARPS, BARRIER_WARPS, 0, 0,
                       &barrier_cases[i].steps[0][0], BARRIER_WARPS * BARRIER_STEPS, SILENT, false});
}

// What is shuffled from a lane that has exited, or that its reader does not name as a member, is undefined. The kernel
// stores it.
Test(rules, lanes_that_do_not_take_part) {
  static const uint32_t faults = 1u << 0 | 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 15 | 1u << 16 | 1u << 17;
  for (uint32_t i = 0; i < LANE_CASES; i++)
    check_case(&(Case){"lanes", lane_cases[i], "lane_rules", 32, 32, 0, i, NULL, 0,
                       faults >> i & 1 ? (int)HAZARD_FAULT : SILENT, false});
  for (uint32_t i = 0; i < EXIT_CASES; i++)
    check_case(&(Case){"exit", exit_cases[i], "exit_rules", 64, 2, 0, i, NULL, 0, HAZARD_FORMAL, false});
}

Test(rules, arrivals_at_several_blocks) {
  for (uint32_t i = 0; i < REMOTE_CASES; i++)
    check_case(&(Case){"remote", remote_cases[i], "remote_rules", 32, 2, REMOTE_BLOCKS, i, NULL, 0, SILENT, false});
}

// Whether the GPU was wrong in some block.
static bool was_wrong(const char *family, const char *name) {
  char wrong[LINE_SIZE], rest[LINE_SIZE];
  snprintf(wrong, sizeof wrong, "%s | 0 1", name);
  return recorded(family, wrong, rest);
}

// An arrival of scope .cta at another block's mbarrier. What the GPU ever gets wrong is a fault. The last case reads
// behind the arrival, and depends on the schedule here, too.
Test(rules, arrivals_of_narrow_scope) {
  static const uint32_t rounds[1] = {8};
  for (uint32_t i = 0; i < NARROW_CASES; i++) {
    int grade = i == 0 || i == 2 ? HAZARD_FORMAL : HAZARD_FAULT;
    cr_expect(grade == HAZARD_FAULT || !was_wrong("narrow", narrow_cases[i]), "%s: the GPU was wrong", narrow_cases[i]);
    check_case(&(Case){"narrow", narrow_cases[i], "narrow_rules", NARROW_THREADS, 2, 2, i, rounds, 1, grade,
                       i == NARROW_CASES - 1});
  }
}

// One instruction at two places of the program, by the lanes of a warp.
Test(rules, instructions_at_two_places) {
  for (uint32_t i = 0; i < PLACE_CASES; i++)
    check_case(&(Case){"place", place_cases[i], "place_rules", 32, 32, 0, i, NULL, 0, HAZARD_NOTE, false});
}

// shfl.sync and its kin order no memory. The GPU was wrong where ptxas had moved the loads before the instruction.
Test(rules, instructions_that_order_no_memory) {
  static const uint32_t rounds[1] = {8};
  bool wrong[TOGETHER_INSTRUCTIONS] = {false};
  for (uint32_t i = 0; i < TOGETHER_CASES; i++) {
    char name[120];
    together_name((int)i, name, sizeof name);
    uint32_t cluster = i / TOGETHER_INSTRUCTIONS < TOGETHER_OF_TWO_BLOCKS ? 0 : 2;
    check_case(&(Case){"together", name, "together_rules", 64, 2, cluster, i, rounds, 1, HAZARD_FAULT, true});
    wrong[i % TOGETHER_INSTRUCTIONS] |= was_wrong("together", name);
  }
  for (uint32_t i = 0; i < TOGETHER_INSTRUCTIONS; i++) cr_expect(wrong[i], "%s", together_instructions[i]);
}

// Loads whose threads hand the tile on before they use the values: a bulk copy overwrites what they have not read yet.
// Right are the ways with a fence, and with a use. Of ways 0 and 1 PTX itself has a race. Whether the GPU is wrong in
// the others depends on what ptxas puts before the arrival.
Test(rules, loads_under_way) {
  static const uint32_t rounds[1] = {8};
  for (uint32_t i = 0; i < RELEASE_CASES; i++) {
    char name[100];
    release_name((int)i, name, sizeof name);
    uint32_t way = i / 2;
    static const bool right[RELEASE_WAYS] = {[4] = true, [5] = true, [7] = true, [8] = true};
    bool fault = way < 2 || (i % 2 == 0 && !right[way]);
    cr_expect(fault || !was_wrong("release", name), "%s: the GPU was wrong", name);
    check_case(&(Case){"release", name, "release_rules", RELEASE_THREADS, 2, 0, i, rounds, 1,
                       fault ? (int)HAZARD_FAULT : SILENT, fault});
  }
}

// Two launches of two blocks: the second one sees what the first has stored.
static Outcome run_end_case(uint32_t variant, uint32_t schedule) {
  enum { BLOCKS = 2 };
  const Loaded *on = loaded(schedule);
  Emulator *emulator = on->emulator;
  RuleInput in = {.variant = variant};
  Outcome outcome = {.out = {{0}}};
  give_memory(emulator, BLOCKS, &in);
  uint64_t out_address = upload(emulator, outcome.out, sizeof outcome.out);
  for (in.seed = 0; in.seed < 2; in.seed++) launch(on, "end_rules", BLOCKS, END_THREADS, 0, &in, out_address);
  cr_assert(emulator_read(emulator, outcome.out, out_address, sizeof outcome.out));
  outcome.heaviest = heaviest_of(emulator);
  return outcome;
}

// Blocks that exit while TMA still reads or writes their memory: the GPU waits. The last case shows that it would have
// been seen: a block that overwrites what its stores have not read yet is wrong.
Test(rules, blocks_that_exit_early) {
  for (uint32_t i = 0; i < END_CASES; i++) {
    char wrong[LINE_SIZE], rest[LINE_SIZE];
    bool overwrites = i == END_CASES - 1;
    snprintf(wrong, sizeof wrong, "%s | 1", end_cases[i]);
    cr_expect_eq(recorded("end", wrong, rest), overwrites, "%s", end_cases[i]);
    for (uint32_t schedule = 0; schedule < SCHEDULES; schedule++) {
      Outcome outcome = run_end_case(i, schedule);
      int expected = overwrites ? HAZARD_FAULT : HAZARD_FORMAL;
      cr_expect_eq(outcome.heaviest, expected, "%s: grade %d", end_cases[i], outcome.heaviest);
      cr_expect(overwrites || !outcome.out[0][0], "%s: wrong", end_cases[i]);
    }
  }
}

// A case of the families below, whose outcome is words 0 and 1. What the GPU ever got wrong is a fault.
static void check_idiom(const char *family, const char *name, const char *kernel, uint32_t threads, uint32_t cluster,
                        uint32_t variant, int grade) {
  static const uint32_t rounds[1] = {4};
  cr_expect(grade == HAZARD_FAULT || !was_wrong(family, name), "%s | %s: the GPU was wrong", family, name);
  check_case(&(Case){family, name, kernel, threads, 2, cluster, variant, rounds, 1, grade, grade == HAZARD_FAULT});
}

// Where a proxy fence stands: behind the barrier it serves as well as in front of it, and a cp.async needs none.
Test(rules, proxy_fences) {
  static const int grades[FENCE_WAYS] = {SILENT,       SILENT,        SILENT,      HAZARD_FAULT, SILENT,
                                         HAZARD_FAULT, HAZARD_FAULT,  SILENT,      SILENT,       HAZARD_FORMAL,
                                         SILENT,       HAZARD_FORMAL, HAZARD_FAULT};
  for (uint32_t i = 0; i < FENCE_CASES; i++) {
    char name[100];
    int grade = grades[i / FENCE_USERS];
    fence_name((int)i, name, sizeof name);
    cr_expect_eq(grade == HAZARD_FAULT, was_wrong("fence", name), "%s", name);
    if (grade == SILENT && strstr(name, "tensor")) grade = HAZARD_FORMAL;  // the map lies in global memory
    check_idiom("fence", name, "fence_rules", FENCE_THREADS, 0, i, grade);
  }
}

Test(rules, warps_that_store_and_exit) {
  static const int grades[LEAVE_CASES] = {HAZARD_FORMAL, HAZARD_FORMAL, HAZARD_FAULT, HAZARD_FAULT};
  for (uint32_t i = 0; i < LEAVE_CASES; i++)
    check_idiom("leave", leave_cases[i], "leave_rules", LEAVE_WARPS * 32, 0, i, grades[i]);
}

// ptxas makes one of equal stores; reductions and loads count for each lane. Tensor maps in global memory are formal.
Test(rules, copies_by_all_lanes) {
  static const int grades[SAME_CASES] = {HAZARD_FORMAL, HAZARD_FORMAL, SILENT,       HAZARD_FORMAL,
                                         HAZARD_FAULT,  HAZARD_FAULT,  HAZARD_FAULT, HAZARD_FAULT};
  for (uint32_t i = 0; i < SAME_CASES; i++) check_idiom("same", same_cases[i], "same_rules", 64, 0, i, grades[i]);
}

Test(rules, parts_of_b) {
  static const int grades[COLUMNS_CASES] = {HAZARD_FORMAL, HAZARD_FORMAL, HAZARD_FORMAL,
                                            HAZARD_FAULT,  HAZARD_FORMAL, HAZARD_FAULT};
  for (uint32_t i = 0; i < COLUMNS_CASES; i++)
    check_idiom("columns", columns_cases[i], "columns_rules", 128, 0, i, grades[i]);
}

// Pairs with ldmatrix are in order. Plain loads and stores are so only if ptxas leaves them: the last case shows it.
Test(rules, lanes_in_their_order) {
  static const uint32_t formal = 0x7f | 1u << 17;
  for (uint32_t i = 0; i < CONVERGED_CASES; i++)
    check_idiom("converged", converged_cases[i], "converged_rules", CONVERGED_THREADS, 0, i,
                formal >> i & 1 ? (int)HAZARD_FORMAL : (int)HAZARD_FAULT);
  cr_expect(was_wrong("converged", converged_cases[CONVERGED_CASES - 1]));
}

Test(rules, equal_values) {
  for (uint32_t i = 0; i < EQUAL_CASES; i++) {
    char name[60];
    bool equal = i % EQUAL_KINDS < EQUAL_KINDS - 1;
    equal_name((int)i, name, sizeof name);
    cr_expect_eq(equal, !was_wrong("equal", name), "%s", name);
    check_idiom("equal", name, "equal_rules", EQUAL_THREADS, i / EQUAL_KINDS == 2 ? 2 : 0, i,
                equal ? (int)HAZARD_FORMAL : (int)HAZARD_FAULT);
  }
}

// The last but one ends by a guess that nothing verifies; the last one loses changes.
Test(rules, first_guesses) {
  for (uint32_t i = 0; i < GUESS_CASES; i++)
    check_idiom("guess", guess_cases[i], "guess_rules", GUESS_THREADS, 0, i,
                i < GUESS_CASES - 2 ? (int)HAZARD_FORMAL : (int)HAZARD_FAULT);
  cr_expect(was_wrong("guess", guess_cases[GUESS_CASES - 1]));
}

// A thread knows of one arrival, and counts on another lane's of the same instruction.
Test(rules, arrivals_of_one_instruction) {
  static const uint32_t rounds[1] = {8};
  for (uint32_t i = 0; i < CHAIN_CASES; i++)
    check_case(&(Case){"chain", chain_cases[i], "chain_rules", 64, 2, 2, i, rounds, 1, HAZARD_FORMAL, false});
}

// Own rows of A, with and without the proxy fence; and another warp's rows. An H200 was right with all of them.
Test(rules, rows_of_a) {
  static const int heaviest[ROWS_CASES] = {HAZARD_FORMAL, HAZARD_FORMAL, HAZARD_FORMAL, HAZARD_FAULT, HAZARD_FAULT};
  for (uint32_t i = 0; i < ROWS_CASES; i++)
    check_case(&(Case){"rows", rows_cases[i], "rows_rules", 128, 1, 0, i, NULL, 0, heaviest[i], i == 4});
}

Test(rules, new_mbarriers) {
  static const uint32_t copied[4] = {1, 2, 3, 4};
  static const int grades[INIT_CASES] = {HAZARD_NOTE, SILENT, HAZARD_NOTE, HAZARD_NOTE, HAZARD_NOTE, HAZARD_FORMAL};
  for (uint32_t i = 0; i < INIT_CASES; i++)
    check_case(&(Case){"init", init_cases[i], "init_rules", 64, 2, i == 4 ? REMOTE_BLOCKS : 0u, i, copied, 4, grades[i],
                       false});
}

Test(rules, registers) {
  for (uint32_t i = 0; i < REGISTER_CASES; i++) {
    char kernel[16];
    snprintf(kernel, sizeof kernel, "registers_%u", i);
    int grade = i >= 3 ? HAZARD_FORMAL : SILENT;
    check_case(&(Case){"registers", register_cases[i], kernel, i == 2 ? 128 : 256, 8, 0, i, NULL, 0, grade, false});
  }
}

// Of a parity the GPU takes the last bit alone. PTX allows 0 and 1.
Test(rules, parities) {
  for (uint32_t i = 0; i < PARITY_CASES; i++) {
    char name[80];
    parity_name((int)i, name, sizeof name);
    check_case(&(Case){"parity", name, "parity_rules", 32, PARITY_WORDS, 0, i, &parities[i], 1,
                       parities[i] > 1 ? HAZARD_FORMAL : SILENT, false});
  }
}

// ---- matrix descriptors ----

// Which element of the shared memory is (row, k), by the emulator's rule.
static uint32_t element(const MatrixDescriptor *d, int row, int k) {
  int mn = d->mn_major ? row / 8 * 8 : row, depth = d->mn_major ? k : k / 8 * 8;
  return descriptor_address(d, mn, depth) / 2 + (uint32_t)(row - mn + k - depth);
}

static uint64_t hash_case(const DescriptorCase *c, uint64_t hash) {
  MatrixDescriptor d;
  descriptor_decode(c->bits, c->mn_major, &d);
  for (int i = 0; i < RULE_ROWS * RULE_DEPTH; i += 2) {
    int row = i / RULE_DEPTH, k = i % RULE_DEPTH;
    uint32_t two = element(&d, row, k) | element(&d, row, k + 1) << 16;
    hash = fnv1a(hash, &two, sizeof two);
  }
  return hash;
}

static void sweep_name(int sweep, char name[60]) {
  static const char *const widths[] = {"none", "128B", "64B", "32B"};
  DescriptorCase c = sweep_case(sweep, 0);
  snprintf(name, 60, "%s %s %s, base offset %u", c.of_b ? "B" : "A", c.mn_major ? "MN-major" : "K-major",
           widths[c.bits >> 62], (unsigned)(c.bits >> 49 & 7));
}

// All starts in 1,024 bytes, all base offsets, swizzles and majors.
Test(rules, what_descriptors_read) {
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    char name[60], line[LINE_SIZE], text[20];
    uint64_t hash = FNV1A_START;
    sweep_name(sweep, name);
    for (int i = 0; i < SWEEP_CASES; i++) {
      DescriptorCase c = sweep_case(sweep, i);
      hash = hash_case(&c, hash);
    }
    cr_assert(recorded("descriptor", name, line));
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    cr_expect(!strncmp(line, text, 16), "%s: %s, recorded is %s", name, text, line);
  }
}

// Bits that no field has: the H200 read the same with each of them.
Test(rules, unnamed_bits_of_descriptors) {
  for (size_t i = 0; i < UNNAMED_BITS; i++) {
    char name[40], line[LINE_SIZE];
    uint64_t bits = descriptor_bits(1024, 4096, 1024, 0, 1);
    DescriptorCase plain = {bits, 0, 0}, with = {bits | 1ull << unnamed_bits[i], 0, 0};
    snprintf(name, sizeof name, "128B, bit %d set", unnamed_bits[i]);
    cr_assert(recorded("descriptor", name, line));
    cr_expect_eq(!strncmp(line, "same", 4), hash_case(&plain, 0) == hash_case(&with, 0), "%s", name);
  }
}

// Whole products through tiles that begin at 0x480, one for each operand, major, swizzle and two base offsets.
Test(rules, products_of_unaligned_tiles) {
  static uint16_t out[RULE_ROWS * RULE_DEPTH];
  for (int sweep = 0; sweep < 32; sweep++) {
    DescriptorCase c = sweep_case(sweep, 8);
    c.bits = (c.bits & ~(0x3fffull << 16)) | 16384ull >> 4 << 16;  // panels do not touch, whatever the shape
    Emulator *emulator = emulator_open(&(EmulatorOptions){.hazards = true});
    EmulatorModule *module = load_kernels(emulator);
    EmulatorError error = {0};
    uint64_t in_address = upload(emulator, &c, sizeof c), out_address = emulator_alloc(emulator, sizeof out);
    EmulatorLaunch launch = {.kernel = "descriptor_rules",
                             .grid = {1, 1, 1},
                             .block = {128, 1, 1},
                             .dynamic_shared = RULE_SHARED,
                             .arguments = (const void *[]){&in_address, &out_address},
                             .argument_count = 2};
    cr_assert_eq(emulator_launch(emulator, module, &launch, &error), EMULATOR_OK, "%d: %s", sweep, error.message);
    cr_assert(emulator_read(emulator, out, out_address, sizeof out));
    MatrixDescriptor d;
    descriptor_decode(c.bits, c.mn_major, &d);
    for (int i = 0; i < RULE_ROWS * RULE_DEPTH; i++)
      cr_assert_eq(out[i], element(&d, i / RULE_DEPTH, i % RULE_DEPTH), "sweep %d, element %d", sweep, i);
    int expected = !d.swizzle || d.base_offset ? SILENT : (int)HAZARD_FORMAL;
    cr_expect_eq(heaviest_of(emulator), expected, "sweep %d: grade %d", sweep, heaviest_of(emulator));
    emulator_close(emulator);
  }
}
