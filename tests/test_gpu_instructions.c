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
  if (i % 4 == 1) return result ^ (noise & 0x1fffffff);          // below f32's last bit
  if (i % 8 == 7) return noise;                                   // any exponent
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

// f32 bits in the order of the numbers, so that a difference counts units in the last place.
static int64_t ordered(uint32_t bits) { return bits & 0x80000000 ? -(int64_t)(bits & 0x7fffffff) : bits; }

static float f32_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// A 16-bit result as f32 bits of its own format: one unit in its last place is many of f32's.
static uint32_t widened(const char *text, uint16_t bits) {
  float value = strstr(text, "bf16") ? f32_of((uint32_t)bits << 16) : half_to_float(bits);
  uint32_t wide;
  memcpy(&wide, &value, sizeof wide);
  return wide;
}

// Approximate results: 2 units in the last place; for lg2, sin and cos, which cross zero, 2^-21 as well (sin and cos of
// large angles are the exact product's, but their GPU error is absolute), tanh 2^-10 of the value, of 16 bits 2 units.
static bool close_f32(const char *text, uint32_t a, uint32_t b) {
  float x = f32_of(a), y = f32_of(b);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (a == b) return true;
  if (llabs(ordered(a) - ordered(b)) <= 2) return true;
  if (!strncmp(text, "lg2", 3) || !strncmp(text, "sin", 3) || !strncmp(text, "cos", 3)) return fabsf(x - y) <= 0x1p-20f;
  return !strncmp(text, "tanh", 4) && fabsf(x - y) <= 0x1p-10f * fabsf(x);
}

static bool close_16(const char *text, uint16_t a, uint16_t b) {
  float x = f32_of(widened(text, a)), y = f32_of(widened(text, b));
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  return labs((long)ordered((uint32_t)a << 16) - (long)ordered((uint32_t)b << 16)) >> 16 <= 2;
}

static bool agree(const Instruction *instruction, uint64_t a, uint64_t b) {
  bool approximate = strstr(instruction->text, "approx") || strstr(instruction->text, "full");
  if (a == b || !approximate) return a == b;
  if (*instruction->result == 'F') return close_f32(instruction->text, (uint32_t)a, (uint32_t)b);
  return close_16(instruction->text, (uint16_t)a, (uint16_t)b) && close_16(instruction->text, (uint16_t)(a >> 16), (uint16_t)(b >> 16));
}

static void compare_instruction(const Instruction *instruction, const uint64_t *real, const uint64_t *emulated) {
  char name[100], text[300] = "";
  int wrong = 0, noted = 0;
  snprintf(name, sizeof name, "%s (%s of %s)", instruction->text, instruction->result, instruction->operands);
  for (int i = 0; i < INSTRUCTION_INPUTS; i++)
    if (!agree(instruction, real[i], emulated[i])) {
      int used = wrong ? 0 : snprintf(text, sizeof text, "first of");
      for (size_t j = 0; used && j < strlen(instruction->operands); j++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %llx", (unsigned long long)operand_of(instruction, (int)j, i));
      if (used)
        snprintf(text + used, sizeof text - (size_t)used, ": GPU %llx, emulator %llx", (unsigned long long)real[i], (unsigned long long)emulated[i]);
      wrong++;
    }
  if (wrong) snprintf(text + strlen(text), sizeof text - strlen(text), " (%d of %d)", wrong, INSTRUCTION_INPUTS);
  agreement_row("instruction", name, text);
  for (int i = 0; wrong && i < INSTRUCTION_INPUTS && noted < 8; i++)
    if (!agree(instruction, real[i], emulated[i]) && ++noted)
      agreement_note("  %llx %llx %llx: GPU %llx, emulator %llx\n", (unsigned long long)operand_of(instruction, 0, i),
                     instruction->operands[1] ? (unsigned long long)operand_of(instruction, 1, i) : 0,
                     instruction->operands[1] && instruction->operands[2] ? (unsigned long long)operand_of(instruction, 2, i) : 0,
                     (unsigned long long)real[i], (unsigned long long)emulated[i]);
}

Test(gpu_agreement, instructions) {
  agreement_begin();
  make_inputs();
  uint8_t *results[SIDES];
  Trial trial = {.module = "instructions", .kernel = "instructions", .blocks = INSTRUCTION_COUNT * INSTRUCTION_BLOCKS,
                 .threads = INSTRUCTION_THREADS, .in = &input, .in_size = sizeof input,
                 .out_size = (size_t)INSTRUCTION_COUNT * INSTRUCTION_INPUTS * 8};
  if (agreement_run(&trial, "instruction", "all", results)) {
    for (int i = 0; i < INSTRUCTION_COUNT; i++) {
      size_t first = (size_t)i * INSTRUCTION_INPUTS * 8;
      compare_instruction(&instructions[i], (const uint64_t *)(results[REAL] + first), (const uint64_t *)(results[EMULATED] + first));
    }
    free(results[REAL]);
    free(results[EMULATED]);
  }
  agreement_end();
}
