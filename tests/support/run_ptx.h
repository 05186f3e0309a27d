// Runs PTX on the emulator, for the tests of its instructions.
//
// A test of an instruction is one line of a table:
//
//   {"mad.lo.s32", "s32: s32 s32 s32", mad_lo, 0},
//
// the instruction, the types of its destination and sources, a C function that says what it computes, and how many
// units in the last place the result may be off. It runs over edge values of the types, their combinations, and random
// values.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/emulator.h"

__extension__ typedef __int128 Wide;

typedef enum ValueKind { VALUE_UNSIGNED, VALUE_SIGNED, VALUE_F16, VALUE_BF16, VALUE_FLOAT, VALUE_PREDICATE } ValueKind;

typedef struct ValueType {
  const char *name;  // "s8", "f16x2", "pred", ...
  ValueKind kind;
  int bits;             // of the value
  const char *storage;  // type of its register
  int register_bits;    // a register may be wider than its value: "u8@32"
} ValueType;

enum { MAX_SOURCES = 4, MAX_RESULTS = 2 };

// One set of sources of a tested instruction: a register's bits each, predicates as 0 or 1.
typedef struct Sample {
  const char *text;  // of the instruction, for functions that serve several forms of it
  const ValueType *types;
  uint64_t in[MAX_SOURCES];
} Sample;

// Says what the instruction's results are. Bits beyond a result's type are ignored.
typedef void Expect(const Sample *sample, uint64_t *out);

typedef struct InstructionTest {
  const char *text;   // operands are added unless it has some: %d %d2 are the results, %a %b %c %e the sources
  const char *types;  // "s32: s32 s32 s32"; two results: "b32 pred: b32 b32"
  Expect *expect;
  int ulps;  // of a float result
} InstructionTest;

// A line of a table for one type T, and of any form.
// clang-format off
#define ONE_SOURCE(T, op, expect) {op "." #T, #T ": " #T, expect, 0}
#define TWO_SOURCES(T, op, expect) {op "." #T, #T ": " #T " " #T, expect, 0}
#define THREE_SOURCES(T, op, expect) {op "." #T, #T ": " #T " " #T " " #T, expect, 0}
#define INSTRUCTION(text, types, expect, ulps) {text, types, expect, ulps}
// clang-format on

#define RUN_TESTS(tests) run_instruction_tests(tests, (int)(sizeof(tests) / sizeof(tests)[0]))
void run_instruction_tests(const InstructionTest *tests, int count);
// The same for instructions with one 16-bit source, over all its values.
#define RUN_EXHAUSTIVE_TESTS(tests) run_exhaustive_tests(tests, (int)(sizeof(tests) / sizeof(tests)[0]))
void run_exhaustive_tests(const InstructionTest *tests, int count);

// Whether the instruction has a modifier: ".ftz".
bool has_modifier(const Sample *sample, const char *modifier);
// The host's rounding mode (fenv.h) that .rn .rz .rm .rp and .rni .rzi .rmi .rpi stand for; to nearest when there is
// none.
int rounding_of(const Sample *sample);

// A source as a number of its type.
Wide integer_source(const Sample *sample, int index);
float float_source(const Sample *sample, int index);
double double_source(const Sample *sample, int index);

uint64_t float_bits(float value);
uint64_t double_bits(double value);
float float_of(uint64_t bits);
double double_of(uint64_t bits);

// An instruction that must be refused, with a word of the reason. Registers %r0-7 %rd0-7 %h0-7 %f0-7 %fd0-7 %p0-7
// exist.
typedef struct RefusedTest {
  const char *text;
  const char *reason;
} RefusedTest;

#define RUN_REFUSED_TESTS(tests) run_refused_tests(tests, (int)(sizeof(tests) / sizeof(tests)[0]))
void run_refused_tests(const RefusedTest *tests, int count);
