// The extended-precision instructions (PTX ISA 9.7.2) that record_carry.cu records on an H100 and test_carry_golden.c
// runs on the emulator: every instruction that leaves the carry flag, followed by every one that reads it.
//
// A form is a producer, a consumer and a type. A lane with an odd number starts with the flag set, executes both, and
// reads the flag once more: what the consumer left there, or, where it leaves none, still the producer's.
#pragma once

#include <stdio.h>

#include "vectors.h"

enum { CARRY_PRODUCERS = 8, CARRY_CONSUMERS = 8, CARRY_TYPES = 4, CARRY_LANES = 32, CARRY_OPERANDS = 6, CARRY_WORDS = 3 };
enum { CARRY_FORMS = CARRY_PRODUCERS * CARRY_CONSUMERS * CARRY_TYPES, CARRY_KERNEL_FORMS = 32 };

static const char *const carry_producers[CARRY_PRODUCERS] = {"add.cc",    "addc.cc",   "sub.cc",     "subc.cc",
                                                             "mad.lo.cc", "mad.hi.cc", "madc.lo.cc", "madc.hi.cc"};
static const char *const carry_consumers[CARRY_CONSUMERS] = {"addc",    "subc",    "madc.lo",    "madc.hi",
                                                             "addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc"};
static const char *const carry_types[CARRY_TYPES] = {"u32", "s32", "u64", "s64"};

typedef struct CarryForm {
  const char *producer, *consumer, *type;
  int bits;
} CarryForm;

static inline CarryForm carry_form(int number) {
  int type = number % CARRY_TYPES, pair = number / CARRY_TYPES;
  CarryForm form = {carry_producers[pair / CARRY_CONSUMERS], carry_consumers[pair % CARRY_CONSUMERS],
                    carry_types[type], type < 2 ? 32 : 64};
  return form;
}

// ---- operands: the producer's two or three, the consumer's, in 64 bits each; a 32-bit type takes the low half ----

// The ends of both widths and the sign bits, and random bits.
static inline uint64_t carry_operand(int form, int lane, int operand) {
  static const uint64_t edges[] = {0, 1, ~0ull, ~0ull - 1, 0x7fffffff7fffffffull, 0x8000000080000000ull, 0xffffffffull,
                                   0x8000000080000001ull};
  uint32_t h = golden_hash(30, (uint32_t)form, (uint32_t)lane, (uint32_t)operand);
  uint64_t low = golden_hash(31, (uint32_t)form, (uint32_t)lane, (uint32_t)operand);
  uint64_t high = golden_hash(32, (uint32_t)form, (uint32_t)lane, (uint32_t)operand);
  return h % 4 ? edges[h >> 8 & 7] : high << 32 | low;
}

static inline void carry_operands(uint64_t *operands) {
  for (int i = 0; i < CARRY_FORMS * CARRY_LANES; i++)
    for (int j = 0; j < CARRY_OPERANDS; j++)
      operands[i * CARRY_OPERANDS + j] = carry_operand(i / CARRY_LANES, i % CARRY_LANES, j);
}

// ---- the file ----

// The results follow: three words of each lane of the first form, of the second, and so on.
typedef struct CarryRecord {
  char magic[8];  // "HLCARR1"
  uint32_t forms, lanes;
  uint64_t input_hash;
} CarryRecord;

static inline uint64_t carry_hash(const uint64_t *operands) {
  return fnv1a(FNV1A_START, operands, (size_t)CARRY_FORMS * CARRY_LANES * CARRY_OPERANDS * sizeof *operands);
}

// ---- the kernel ----

typedef struct CarryText {
  char text[1 << 15];
  int used;
} CarryText;

#define CARRY_PRINT(t, ...)                                                                                            \
  ((t)->used += snprintf((t)->text + (t)->used, sizeof(t)->text - (size_t)(t)->used, __VA_ARGS__))

// An instruction on three registers; add and sub have no third.
static inline void carry_instruction(CarryText *t, const char *name, const CarryForm *form, const char *d,
                                     const char *operands[3]) {
  CARRY_PRINT(t, "%s.%s %s%d, %s%d, %s%d", name, form->type, d, form->bits, operands[0], form->bits, operands[1],
              form->bits);
  if (strstr(name, "mad")) CARRY_PRINT(t, ", %s%d", operands[2], form->bits);
  CARRY_PRINT(t, ";\n");
}

// Forms `first` to `first + count`: one warp, whose lanes have a form's operands at 8 bytes each, and leave three words
// of 8 bytes: both results, and the flag as addc of zeros gives it.
static inline void carry_kernel(CarryText *t, int first, int count) {
  static const char *const names[CARRY_OPERANDS] = {"a", "b", "c", "e", "f", "g"};
  const char *of_producer[] = {"a", "b", "c"}, *of_consumer[] = {"e", "f", "g"};
  t->used = 0;
  CARRY_PRINT(t, ".version 8.7\n.target sm_90a\n.address_size 64\n"
                 ".visible .entry carry(.param .u64 in, .param .u64 out) .reqntid %d, 1, 1 {\n"
                 ".reg .b32 lane, flag32, a32, b32, c32, d32, e32, f32, g32, h32, z32;\n"
                 ".reg .b64 p, q, x, flag64, a64, b64, c64, d64, e64, f64, g64, h64, z64;\nmov.u32 lane, %%tid.x;\n"
                 "ld.param.u64 p, [in];\nmul.wide.u32 x, lane, %d;\nadd.u64 p, p, x;\n"
                 "ld.param.u64 q, [out];\nmul.wide.u32 x, lane, %d;\nadd.u64 q, q, x;\n"
                 "and.b32 flag32, lane, 1;\ncvt.u64.u32 flag64, flag32;\n",
              CARRY_LANES, CARRY_OPERANDS * 8, CARRY_WORDS * 8);
  for (int i = 0; i < count; i++) {
    const CarryForm form = carry_form(first + i);
    for (int j = 0; j < CARRY_OPERANDS; j++)
      CARRY_PRINT(t, "ld.global.b%d %s%d, [p+%d];\n", form.bits, names[j], form.bits,
                  (i * CARRY_LANES * CARRY_OPERANDS + j) * 8);
    CARRY_PRINT(t, "add.cc.u%d z%d, flag%d, -1;\n", form.bits, form.bits, form.bits);
    carry_instruction(t, form.producer, &form, "d", of_producer);
    carry_instruction(t, form.consumer, &form, "h", of_consumer);
    CARRY_PRINT(t, "addc.u%d z%d, 0, 0;\n", form.bits, form.bits);
    static const char *const words[CARRY_WORDS] = {"d", "h", "z"};
    for (int j = 0; j < CARRY_WORDS; j++)
      CARRY_PRINT(t, "st.global.b%d [q+%d], %s%d;\n", form.bits, (i * CARRY_LANES * CARRY_WORDS + j) * 8, words[j],
                  form.bits);
  }
  CARRY_PRINT(t, "ret;\n}\n");
}
