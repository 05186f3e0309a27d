// The instructions of gpu/instructions.h on the GPU and on the emulator: edge values and random ones.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/harness/half.h"
#include "golden/scalars.h"
#include "gpu/instructions.h"
#include "support/agreement.h"

typedef struct Instruction {
  const char *result;  // letters, as in instructions.h
  const char *operands;
  const char *text;
} Instruction;

#define ENTRY_U(R, A, text) {#R, #A, text},
#define ENTRY_B(R, A, B, text) {#R, #A #B, text},
#define ENTRY_T(R, A, B, C, text, rest) {#R, #A #B #C, text rest},
#define ENTRY_C(A, B, text) {"R", #A #B, text},
#define ENTRY_W(R, A, B, name, text) {#R, #A #B, name},
static const Instruction instructions[] = {INSTRUCTIONS(ENTRY_U, ENTRY_B, ENTRY_T, ENTRY_C, ENTRY_W)};
enum { INSTRUCTION_COUNT = sizeof instructions / sizeof *instructions };

static InstructionInput input;

// ---- inputs ----

// All magnitudes, and values near the powers of two; a quarter small, which shifts and positions are.
static uint64_t integer_input(int i, uint64_t *random) {
  uint64_t bits = (uint64_t)random_bits(random) << 32 | random_bits(random);
  unsigned shift = random_bits(random) % 64;
  switch (i % 4) {
  case 0: return bits >> shift;
  case 1: return 0 - (bits >> shift);
  case 2: return (1ull << shift) + bits % 3 - 1;
  default: return i % 8 == 3 ? bits : bits % 72;
  }
}

static uint32_t f32_input(int i, int operand) { return scalar_input_f32(i, operand); }

static uint64_t f64_input(int i, int operand, uint64_t *random) {
  float narrow;
  uint32_t bits = f32_input(i, operand);
  memcpy(&narrow, &bits, sizeof narrow);
  double wide = narrow;
  uint64_t result, noise = (uint64_t)random_bits(random) << 32 | random_bits(random);
  memcpy(&result, &wide, sizeof result);
  if (i % 4 == 1) return result ^ (noise & 0x1fffffff);  // below f32's last bit
  if (i % 8 == 7) return noise;                          // any exponent
  if (i % 16 == 3) return (result & ~0xfffffull) | (noise & 3);
  return result;
}

static void make_inputs(void) {
  uint64_t random = 5;
  for (int operand = 0; operand < 3; operand++)
    for (int i = 0; i < INSTRUCTION_INPUTS; i++) {
      uint64_t(*value)[3][INSTRUCTION_INPUTS] = input.value;
      value[LETTER_H][operand][i] = scalar_input_16(i, operand);
      value[LETTER_R][operand][i] = (uint32_t)integer_input(i + operand, &random);
      value[LETTER_P][operand][i] = scalar_input_r(i, operand, 1);
      value[LETTER_L][operand][i] = integer_input(i + operand, &random);
      value[LETTER_F][operand][i] = f32_input(i, operand);
      value[LETTER_D][operand][i] = f64_input(i, operand, &random);
    }
}

static uint64_t operand_of(const Instruction *instruction, int operand, int i) {
  static const char letters[] = "HRPLFD";
  return input.value[strchr(letters, instruction->operands[operand]) - letters][operand][i];
}

// ---- results ----

// How far approximate results may be apart, as in test_golden.c: units in the last place, or a distance.
static const struct {
  const char *prefix;
  int64_t ulps;
  double distance;
} tolerances[] = {
    {"ex2.approx.f32", 2, 0},    {"ex2.approx.ftz.f32", 2, 0},  {"lg2.approx.", 2, 0x1p-22},
    {"rcp.approx.", 1, 0},       {"sqrt.approx.", 1, 0},        {"rsqrt.approx.", 2, 0},
    {"sin.approx.", 0, 0x1p-21}, {"cos.approx.", 0, 0x1p-21},   {"tanh.approx.f32", 134, 0},
    {"div.approx.", 2, 0},       {"div.full.", 2, 0},           {"ex2.approx.f16", 1, 0},
    {"tanh.approx.f16", 1, 0},   {"ex2.approx.ftz.bf16", 1, 0}, {"tanh.approx.bf16", 1, 0},
};

// Bits as f32's, of a 16-bit format's too; `unit` is one in the last place.
static bool close_f32(const char *text, uint32_t a, uint32_t b, int64_t unit) {
  float x, y;
  memcpy(&x, &a, sizeof x);
  memcpy(&y, &b, sizeof y);
  if (a == b) return true;
  if (!isfinite(x) || !isfinite(y)) return false;
  int64_t p = a & 0x80000000 ? -(int64_t)(a & 0x7fffffff) : a, q = b & 0x80000000 ? -(int64_t)(b & 0x7fffffff) : b;
  for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++)
    if (!strncmp(text, tolerances[i].prefix, strlen(tolerances[i].prefix)))
      return llabs(p - q) <= tolerances[i].ulps * unit || fabs((double)x - y) <= tolerances[i].distance;
  return false;
}

static bool close_16(const char *text, uint16_t a, uint16_t b) {
  if (a == b) return true;
  if (strstr(text, "bf16")) return close_f32(text, (uint32_t)a << 16, (uint32_t)b << 16, 1 << 16);
  float x = half_to_float(a), y = half_to_float(b);
  int p = a & 0x8000 ? -(a & 0x7fff) : a, q = b & 0x8000 ? -(b & 0x7fff) : b;
  return isfinite(x) && isfinite(y) && abs(p - q) <= 1;
}

static bool agree(const Instruction *instruction, uint64_t a, uint64_t b) {
  const char *text = instruction->text;
  if (a == b) return true;
  if (!strstr(text, "approx") && !strstr(text, "div.full")) return false;
  if (*instruction->result == 'F') return close_f32(text, (uint32_t)a, (uint32_t)b, 1);
  return close_16(text, (uint16_t)a, (uint16_t)b) && close_16(text, (uint16_t)(a >> 16), (uint16_t)(b >> 16));
}

static void compare_instruction(const Instruction *instruction, const uint64_t *real, const uint64_t *emulated) {
  char name[100], text[300] = "";
  int wrong = 0, noted = 0;
  snprintf(name, sizeof name, "%s (%s of %s)", instruction->text, instruction->result, instruction->operands);
  for (int i = 0; i < INSTRUCTION_INPUTS; i++)
    if (!agree(instruction, real[i], emulated[i])) {
      int used = wrong ? 0 : snprintf(text, sizeof text, "first of");
      for (size_t j = 0; used && j < strlen(instruction->operands); j++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %llx",
                         (unsigned long long)operand_of(instruction, (int)j, i));
      if (used)
        snprintf(text + used, sizeof text - (size_t)used, ": GPU %llx, emulator %llx", (unsigned long long)real[i],
                 (unsigned long long)emulated[i]);
      wrong++;
    }
  if (wrong) snprintf(text + strlen(text), sizeof text - strlen(text), " (%d of %d)", wrong, INSTRUCTION_INPUTS);
  for (int i = 0; wrong && i < INSTRUCTION_INPUTS && noted < 8; i++)
    if (!agree(instruction, real[i], emulated[i]) && ++noted)
      agreement_note(
          "  %llx %llx %llx: GPU %llx, emulator %llx\n", (unsigned long long)operand_of(instruction, 0, i),
          instruction->operands[1] ? (unsigned long long)operand_of(instruction, 1, i) : 0,
          instruction->operands[1] && instruction->operands[2] ? (unsigned long long)operand_of(instruction, 2, i) : 0,
          (unsigned long long)real[i], (unsigned long long)emulated[i]);
  agreement_row("instruction", name, text);
}

Test(gpu_agreement, instructions) {
  agreement_begin();
  make_inputs();
  uint8_t *results[SIDES];
  Trial trial = {.module = "instructions",
                 .kernel = "instructions",
                 .blocks = INSTRUCTION_COUNT,
                 .threads = INSTRUCTION_THREADS,
                 .in = &input,
                 .in_size = sizeof input,
                 .out_size = (size_t)INSTRUCTION_COUNT * INSTRUCTION_INPUTS * 8};
  if (agreement_run(&trial, "instruction", "all", results)) {
    for (int i = 0; i < INSTRUCTION_COUNT; i++) {
      size_t first = (size_t)i * INSTRUCTION_INPUTS * 8;
      compare_instruction(&instructions[i], (const uint64_t *)(results[REAL] + first),
                          (const uint64_t *)(results[EMULATED] + first));
    }
    free(results[REAL]);
    free(results[EMULATED]);
  }
  agreement_end();
}
