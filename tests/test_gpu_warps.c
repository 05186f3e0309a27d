// What a warp's lanes do together, on the GPU and on the emulator: shuffles, votes, reductions, atomics, matrices.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden/scalars.h"
#include "gpu/instructions.h"
#include "gpu/lanes.h"
#include "gpu/matrices.h"
#include "support/agreement.h"

// ---- lanes ----

// The results of lanes.cu in order; those with members come again for the lanes of a mask.
static const char *const lane_results[] = {"shfl.idx, any c",
                                           "its predicate",
                                           "shfl.up, any c",
                                           "its predicate",
                                           "shfl.down, any c",
                                           "its predicate",
                                           "shfl.bfly, any c",
                                           "its predicate",
                                           "shfl.idx",
                                           "its predicate",
                                           "shfl.up",
                                           "its predicate",
                                           "shfl.down",
                                           "its predicate",
                                           "shfl.bfly",
                                           "its predicate",
                                           "vote.all",
                                           "vote.all, !p",
                                           "vote.any",
                                           "vote.any, !p",
                                           "vote.uni",
                                           "vote.uni, !p",
                                           "vote.ballot",
                                           "match.any.b32",
                                           "match.any.b64",
                                           "match.all",
                                           "its predicate",
                                           "redux.add.u32",
                                           "redux.add.s32",
                                           "redux.min.u32",
                                           "redux.min.s32",
                                           "redux.max.u32",
                                           "redux.max.s32",
                                           "redux.and",
                                           "redux.or",
                                           "redux.xor",
                                           "elect",
                                           "ld.u8",
                                           "ld.s8",
                                           "ld.u16",
                                           "ld.s16"};
enum { NAMED = sizeof lane_results / sizeof *lane_results, FIRST_WITH_MEMBERS = 16, WITH_MEMBERS = 21 };

// One row for each result of lanes.cu, over all cases.
static void compare_lane_result(uint8_t *const results[SIDES], int result) {
  char name[64], text[200] = "";
  int wrong = 0;
  const uint32_t *real = (const uint32_t *)results[REAL], *emulated = (const uint32_t *)results[EMULATED];
  for (int i = 0; i < LANE_CASES; i++)
    for (int lane = 0; lane < 32; lane++) {
      int at = (i * LANE_RESULTS + result) * 32 + lane;
      if (real[at] != emulated[at] && !wrong++)
        snprintf(text, sizeof text, "first in case %d, lane %d: GPU %08x, emulator %08x", i, lane, real[at],
                 emulated[at]);
    }
  bool masked = result >= LANE_RESULTS / 2;
  int named = masked ? result - LANE_RESULTS / 2 + FIRST_WITH_MEMBERS : result;
  snprintf(name, sizeof name, "%s%s", lane_results[named],
           masked                         ? ", some lanes"
           : result >= FIRST_WITH_MEMBERS ? ", all lanes"
                                          : "");
  agreement_row("lanes", name, text);
}

Test(gpu_agreement, lanes) {
  static LaneCase cases[LANE_CASES];
  uint64_t random = 11;
  agreement_begin();
  for (int i = 0; i < LANE_CASES; i++) {
    uint32_t same = random_bits(&random);
    for (int lane = 0; lane < 32; lane++) {
      cases[i].value[lane] = random_bits(&random);
      cases[i].other[lane] = i % 4 ? random_bits(&random) : same;  // a vote that all agree on, now and then
    }
    cases[i].mask = random_bits(&random) | 1u << i % 32;
    cases[i].clamp = random_bits(&random) & 0x1f1f;
  }
  Trial trial = {.module = "lanes",
                 .kernel = "lanes",
                 .blocks = LANE_CASES,
                 .threads = 32,
                 .in = cases,
                 .in_size = sizeof cases,
                 .out_size = sizeof(uint32_t[LANE_CASES][LANE_RESULTS][32])};
  uint8_t *results[SIDES];
  if (agreement_run(&trial, "lanes", "all", results)) {
    for (int result = 0; result < NAMED; result++) compare_lane_result(results, result);
    for (int result = 0; result < WITH_MEMBERS; result++) compare_lane_result(results, LANE_RESULTS / 2 + result);
    free(results[REAL]);
    free(results[EMULATED]);
  }
  agreement_end();
}

// ---- atomics ----

typedef struct Atomic {
  const char *letter, *text;
} Atomic;

#define ENTRY(letter, text) {#letter, text},
static const Atomic atomics_global[] = {GLOBAL_ATOMICS(ENTRY, ENTRY)};
static const Atomic atomics_shared[] = {SHARED_ATOMICS(ENTRY, ENTRY)};
enum { ATOMIC_COUNT = sizeof atomics_global / sizeof *atomics_global };

static InstructionInput operands;

static int letter_index(const char *letter) { return (int)(strchr("HRPLFD", *letter) - "HRPLFD"); }

// Every third compare-and-swap finds what it compares with.
static void make_operands(void) {
  uint64_t random = 3;
  for (int operand = 0; operand < 3; operand++)
    for (int i = 0; i < INSTRUCTION_INPUTS; i++) {
      float narrow;
      uint32_t bits = scalar_input_f32(i * 2 % INSTRUCTION_INPUTS, operand);
      memcpy(&narrow, &bits, sizeof narrow);
      double wide = narrow;
      bool same = operand == 1 && i % 3 == 0;
      operands.value[LETTER_H][operand][i] = scalar_input_16(i * 2 % INSTRUCTION_INPUTS, operand);
      operands.value[LETTER_P][operand][i] = scalar_input_r(i * 2 % INSTRUCTION_INPUTS, operand, 1);
      operands.value[LETTER_F][operand][i] = bits;
      memcpy(&operands.value[LETTER_D][operand][i], &wide, sizeof wide);
      for (int letter = LETTER_R; letter <= LETTER_L; letter += LETTER_L - LETTER_R)
        operands.value[letter][operand][i] = same ? operands.value[letter][0][i]
                                                  : ((uint64_t)random_bits(&random) << 32 | random_bits(&random)) >>
                                                        (random_bits(&random) % 60 + (letter == LETTER_R ? 4 : 0));
      operands.value[LETTER_R][operand][i] &= 0xffffffff;
    }
}

static void compare_atomic(const Atomic *atomic, const AtomicResult *real, const AtomicResult *emulated) {
  char text[300] = "";
  int wrong = 0;
  for (int i = 0; i < ATOMIC_INPUTS; i++)
    if (memcmp(&real[i], &emulated[i], sizeof real[i]) && !wrong++)
      snprintf(text, sizeof text, "first of %llx, %llx: GPU returns %llx, stores %llx; emulator %llx, %llx",
               (unsigned long long)operands.value[letter_index(atomic->letter)][0][i],
               (unsigned long long)operands.value[letter_index(atomic->letter)][1][i], (unsigned long long)real[i].old,
               (unsigned long long)real[i].now, (unsigned long long)emulated[i].old,
               (unsigned long long)emulated[i].now);
  if (wrong) snprintf(text + strlen(text), sizeof text - strlen(text), " (%d of %d)", wrong, ATOMIC_INPUTS);
  agreement_row("atomic", atomic->text, text);
}

static void run_atomics(const char *kernel, const Atomic *atomics) {
  static AtomicResult before[ATOMIC_COUNT][ATOMIC_INPUTS];
  for (int a = 0; a < ATOMIC_COUNT; a++)
    for (int i = 0; i < ATOMIC_INPUTS; i++) before[a][i].now = operands.value[letter_index(atomics[a].letter)][0][i];
  Trial trial = {.module = "lanes",
                 .kernel = kernel,
                 .blocks = ATOMIC_COUNT * ATOMIC_BLOCKS,
                 .threads = ATOMIC_THREADS,
                 .in = &operands,
                 .in_size = sizeof operands,
                 .out = before,
                 .out_size = sizeof before};
  uint8_t *results[SIDES];
  if (!agreement_run(&trial, "atomic", kernel, results)) return;
  for (int a = 0; a < ATOMIC_COUNT; a++)
    compare_atomic(&atomics[a], (const AtomicResult *)results[REAL] + a * ATOMIC_INPUTS,
                   (const AtomicResult *)results[EMULATED] + a * ATOMIC_INPUTS);
  free(results[REAL]);
  free(results[EMULATED]);
}

Test(gpu_agreement, atomics) {
  static uint32_t inputs[1024], before[32];
  uint64_t random = 17;
  agreement_begin();
  make_operands();
  run_atomics("atomics_global", atomics_global);
  run_atomics("atomics_shared", atomics_shared);
  for (int i = 0; i < 1024; i++) inputs[i] = random_bits(&random);
  agreement_compare(&(Trial){.module = "lanes",
                             .kernel = "atomics_contended",
                             .blocks = 8,
                             .threads = 128,
                             .in = inputs,
                             .in_size = sizeof inputs,
                             .out = before,
                             .out_size = sizeof before},
                    "atomic", "many threads on few places", 4);
  agreement_end();
}

// ---- matrices ----

// Two finite numbers in a register, f16 or bf16 alike: exponents in the middle of both.
static uint32_t random_pair(uint64_t *random) {
  uint32_t low = (random_bits(random) & 0x83ff) | (0x2c00 + (random_bits(random) & 0x1c00));
  uint32_t high = (random_bits(random) & 0x83ff) | (0x2c00 + (random_bits(random) & 0x1c00));
  return low | high << 16;
}

typedef struct Part {
  const char *name;
  size_t offset, size;
} Part;

#define PART(name)                                                                                                     \
  { #name, offsetof(FragmentResult, name), sizeof(((FragmentResult *)0)->name) }
static const Part parts[] = {PART(f32_f16),    PART(f32_bf16), PART(f16_f16), PART(f32_f16_k8), PART(f32_bf16_k8),
                             PART(f16_f16_k8), PART(load),     PART(moved),   PART(stored)};

static void compare_part(const Part *part, uint8_t *const results[SIDES]) {
  char text[200] = "";
  int wrong = 0;
  for (int i = 0; i < FRAGMENT_CASES; i++)
    for (size_t word = 0; word < part->size / 4; word++) {
      size_t at = (size_t)i * sizeof(FragmentResult) + part->offset + 4 * word;
      if (memcmp(results[REAL] + at, results[EMULATED] + at, 4) && !wrong++)
        snprintf(text, sizeof text, "first in case %d, word %zu of %zu: GPU %08x, emulator %08x", i, word,
                 part->size / 4, *(uint32_t *)(results[REAL] + at), *(uint32_t *)(results[EMULATED] + at));
    }
  agreement_row("fragment", part->name, text);
}

Test(gpu_agreement, fragments) {
  static FragmentCase cases[FRAGMENT_CASES];
  uint64_t random = 23;
  agreement_begin();
  for (int i = 0; i < FRAGMENT_CASES; i++) {
    for (size_t j = 0; j < sizeof cases[i].a / 4; j++) (&cases[i].a[0][0])[j] = random_pair(&random);
    for (size_t j = 0; j < sizeof cases[i].b / 4; j++) (&cases[i].b[0][0])[j] = random_pair(&random);
    for (size_t j = 0; j < sizeof cases[i].c / 4; j++) (&cases[i].c[0][0])[j] = random_pair(&random);
    for (size_t j = 0; j < sizeof cases[i].image / 4; j++) cases[i].image[j] = random_bits(&random);
    uint32_t factor = random_bits(&random) | 1, first = random_bits(&random);
    for (uint32_t lane = 0; lane < 32; lane++) cases[i].row[lane] = (first + factor * lane) % 256;
  }
  Trial trial = {.module = "matrices",
                 .kernel = "fragments",
                 .blocks = FRAGMENT_CASES,
                 .threads = 32,
                 .in = cases,
                 .in_size = sizeof cases,
                 .out_size = FRAGMENT_CASES * sizeof(FragmentResult)};
  uint8_t *results[SIDES];
  if (agreement_run(&trial, "fragment", "all", results)) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) compare_part(&parts[i], results);
    free(results[REAL]);
    free(results[EMULATED]);
  }
  agreement_end();
}

Test(gpu_agreement, wmma) {
  static const char *const kernels[] = {
      "wmma_16_16_rr",         "wmma_16_16_rc",   "wmma_16_16_cr",  "wmma_16_16_cc",
      "wmma_32_8_rr",          "wmma_32_8_cc",    "wmma_8_32_rc",   "wmma_8_32_cr",
      "wmma_16_16_f16",        "wmma_32_8_f16",   "wmma_8_32_f16",  "wmma_16_16_f32_of_f16",
      "wmma_16_16_f16_of_f32", "wmma_16_16_bf16", "wmma_32_8_bf16", "wmma_8_32_bf16"};
  static WmmaInput input;
  uint64_t random = 29;
  agreement_begin();
  for (size_t i = 0; i < sizeof input.a / 2; i++) {
    input.a[i] = (uint16_t)random_pair(&random);
    input.b[i] = (uint16_t)random_pair(&random);
    input.c16[i] = (uint16_t)random_pair(&random);
    uint32_t bits = random_pair(&random);
    memcpy(&input.c32[i], &bits, 4);
  }
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    agreement_compare(&(Trial){.module = "matrices",
                               .kernel = kernels[i],
                               .threads = 32,
                               .in = &input,
                               .in_size = sizeof input,
                               .out_size = sizeof(float[MATRIX_SIZE * MATRIX_SIZE])},
                      "wmma", kernels[i], 2);
  agreement_end();
}
