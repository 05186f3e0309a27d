// Comparisons and selections on the emulator: every operator of every type, alone and combined with a predicate.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/run_ptx.h"
#include "support/small_float.h"

TestSuite(compare);

// ---- what a comparison computes, by its text ----

// How x stands to y. The bits are chosen so that an operator is the set of relations that make it true.
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

static const struct {
  const char *name;
  int relations;
} operators[] = {
    {"eq", EQUAL},
    {"ne", LESS | GREATER},
    {"lt", LESS},
    {"le", LESS | EQUAL},
    {"gt", GREATER},
    {"ge", GREATER | EQUAL},
    {"lo", LESS},
    {"ls", LESS | EQUAL},
    {"hi", GREATER},
    {"hs", GREATER | EQUAL},
    {"equ", EQUAL | UNORDERED},
    {"neu", LESS | GREATER | UNORDERED},
    {"ltu", LESS | UNORDERED},
    {"leu", LESS | EQUAL | UNORDERED},
    {"gtu", GREATER | UNORDERED},
    {"geu", GREATER | EQUAL | UNORDERED},
    {"num", LESS | EQUAL | GREATER},
    {"nan", UNORDERED},
};

enum { OPERATORS = sizeof operators / sizeof operators[0] };

static Quad float_value(const Sample *sample, int index, int part) {
  const ValueType *type = &sample->types[index];
  uint64_t bits = sample->in[index];
  bool ftz = has_modifier(sample, ".ftz");
  if (type->kind == VALUE_FLOAT) {
    Quad value = type->bits == 32 ? (Quad)float_of(bits) : (Quad)double_of(bits);
    return ftz && value < 0x1p-126 && value > -0x1p-126 ? 0 : value;
  }
  const SmallFloat *format = type->kind == VALUE_F16 ? &small_f16 : &small_bf16;
  uint64_t code = bits >> 16 * part & 0xffff;
  if (ftz && !((code & 0x7fff) >> format->fraction_bits)) code = 0;
  return small_value(format, code);
}

static int relation(const Sample *sample, int part) {
  if (sample->types[0].kind == VALUE_UNSIGNED || sample->types[0].kind == VALUE_SIGNED) {
    Wide x = integer_source(sample, 0), y = integer_source(sample, 1);
    return x < y ? LESS : x > y ? GREATER : EQUAL;
  }
  Quad x = float_value(sample, 0, part), y = float_value(sample, 1, part);
  return x < y ? LESS : x > y ? GREATER : x == y ? EQUAL : UNORDERED;
}

static bool holds(const Sample *sample, int part) {
  for (int i = 0; i < OPERATORS; i++) {
    char modifier[8];
    snprintf(modifier, sizeof modifier, ".%s", operators[i].name);
    if (has_modifier(sample, modifier)) return operators[i].relations & relation(sample, part);
  }
  cr_assert(false, "%s: no operator", sample->text);
  return false;
}

// With the predicate c, which "!%c" in the text negates.
static bool combined(const Sample *sample, bool result) {
  bool c = sample->in[2] ^ (strstr(sample->text, "!%c") != NULL);
  if (has_modifier(sample, ".and")) return result && c;
  if (has_modifier(sample, ".or")) return result || c;
  if (has_modifier(sample, ".xor")) return result != c;
  return result;
}

static void compare(const Sample *sample, uint64_t *out) {
  out[0] = combined(sample, holds(sample, 0));
  out[1] = combined(sample, !holds(sample, 0));
}

// The second result alone.
static void compare_second(const Sample *sample, uint64_t *out) { out[0] = combined(sample, !holds(sample, 0)); }

static void compare_halves(const Sample *sample, uint64_t *out) {
  out[0] = combined(sample, holds(sample, 0));
  out[1] = combined(sample, holds(sample, 1));
}

// ---- setp ----

static void run_operators(const char *const *names, const char *types) {
  for (; *names; names++) {
    char text[64], signature[64];
    snprintf(text, sizeof text, "setp.%s.%s", *names, types);
    snprintf(signature, sizeof signature, "pred: %s %s", types, types);
    const InstructionTest test = {text, signature, compare, 0};
    run_instruction_tests(&test, 1);
  }
}

Test(compare, every_operator) {
  static const char *const equality[] = {"eq", "ne", NULL};
  static const char *const order[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL};
  static const char *const unsigned_order[] = {"lo", "ls", "hi", "hs", NULL};
  static const char *const unordered[] = {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", NULL};
  static const char *const bits[] = {"b16", "b32", "b64", NULL};
  static const char *const unsigned_types[] = {"u16", "u32", "u64", NULL};
  static const char *const signed_types[] = {"s16", "s32", "s64", NULL};
  static const char *const floats[] = {"f16", "bf16", "f32", "f64", NULL};
  for (int i = 0; bits[i]; i++) run_operators(equality, bits[i]);
  for (int i = 0; unsigned_types[i]; i++) run_operators(order, unsigned_types[i]);
  for (int i = 0; unsigned_types[i]; i++) run_operators(unsigned_order, unsigned_types[i]);
  for (int i = 0; signed_types[i]; i++) run_operators(order, signed_types[i]);
  for (int i = 0; floats[i]; i++) run_operators(order, floats[i]);
  for (int i = 0; floats[i]; i++) run_operators(unordered, floats[i]);
}

Test(compare, setp) {
  const InstructionTest tests[] = {
      {"setp.lt.ftz.f32", "pred: f32 f32", compare, 0},
      {"setp.ftz.neu.f32", "pred: f32 f32", compare, 0},
      {"setp.equ.ftz.f16", "pred: f16 f16", compare, 0},
      {"setp.lt.s32 %d|%d2, %a, %b", "pred pred: s32 s32", compare, 0},
      {"setp.ltu.f64 %d|%d2, %a, %b", "pred pred: f64 f64", compare, 0},
      {"setp.le.and.u64 %d|%d2, %a, %b, %c", "pred pred: u64 u64 pred", compare, 0},
      {"setp.gt.or.s16 %d|%d2, %a, %b, !%c", "pred pred: s16 s16 pred", compare, 0},
      {"setp.nan.xor.ftz.f32 %d|%d2, %a, %b, !%c", "pred pred: f32 f32 pred", compare, 0},
      {"setp.ne.and.b32 %d, %a, %b, !%c", "pred: b32 b32 pred", compare, 0},
      {"setp.ge.or.f32 %d, %a, %b, %c", "pred: f32 f32 pred", compare, 0},
      {"setp.eq.xor.u16 %d, %a, %b, %c", "pred: u16 u16 pred", compare, 0},
      {"setp.lt.s32 _|%d, %a, %b", "pred: s32 s32", compare_second, 0},
      {"setp.lt.s32 %d|_, %a, %b", "pred: s32 s32", compare, 0},
      {"setp.eq.and.f32 %c, %a, %b, %c;\nnot.pred %d, %c;\nnot.pred %d, %d", "pred: f32 f32 pred", compare, 0},
      {"setp.lt.f16x2 %d|%d2, %a, %b", "pred pred: f16x2 f16x2", compare_halves, 0},
      {"setp.geu.ftz.f16x2 %d|%d2, %a, %b", "pred pred: f16x2 f16x2", compare_halves, 0},
      {"setp.ne.and.bf16x2 %d|%d2, %a, %b, !%c", "pred pred: bf16x2 bf16x2 pred", compare_halves, 0},
      {"setp.gt.xor.ftz.f16x2 %d|%d2, %a, %b, %c", "pred pred: f16x2 f16x2 pred", compare_halves, 0},
      {"setp.leu.bf16x2", "pred: bf16x2 bf16x2", compare, 0},
  };
  RUN_TESTS(tests);
}

// ---- set ----

static void set_ones(const Sample *sample, uint64_t *out) { out[0] = combined(sample, holds(sample, 0)) ? ~0ull : 0; }
static void set_f32(const Sample *sample, uint64_t *out) {
  out[0] = combined(sample, holds(sample, 0)) ? float_bits(1.0f) : 0;
}

// Halves of 16 bits: all ones, or 1.0 of the format.
static void set_halves(const Sample *sample, uint64_t *out, uint64_t value) {
  out[0] = combined(sample, holds(sample, 0)) ? value : 0;
  if (sample->types[0].bits == 32 && combined(sample, holds(sample, 1))) out[0] |= value << 16;
}

static void set_half_ones(const Sample *sample, uint64_t *out) { set_halves(sample, out, 0xffff); }
static void set_f16(const Sample *sample, uint64_t *out) { set_halves(sample, out, 0x3c00); }
static void set_bf16(const Sample *sample, uint64_t *out) { set_halves(sample, out, 0x3f80); }

// For sources that are not half precision.
static void set_f16_of_words(const Sample *sample, uint64_t *out) { out[0] = holds(sample, 0) ? 0x3c00 : 0; }
static void set_bf16_of_words(const Sample *sample, uint64_t *out) { out[0] = holds(sample, 0) ? 0x3f80 : 0; }

Test(compare, set) {
  const InstructionTest tests[] = {
      {"set.lt.u32.f32", "u32: f32 f32", set_ones, 0},
      {"set.gtu.s32.f64", "s32: f64 f64", set_ones, 0},
      {"set.ne.ftz.u32.f32", "u32: f32 f32", set_ones, 0},
      {"set.lt.and.ftz.s32.f32 %d, %a, %b, !%c", "s32: f32 f32 pred", set_ones, 0},
      {"set.hs.or.u32.u64 %d, %a, %b, %c", "u32: u64 u64 pred", set_ones, 0},
      {"set.eq.xor.u32.b16 %d, %a, %b, %c", "u32: b16 b16 pred", set_ones, 0},
      {"set.lt.f32.s32", "f32: s32 s32", set_f32, 0},
      {"set.ge.f32.f32", "f32: f32 f32", set_f32, 0},
      {"set.lt.f16.f16", "f16: f16 f16", set_f16, 0},
      {"set.lt.f16.u32", "f16: u32 u32", set_f16_of_words, 0},
      {"set.leu.bf16.f32", "bf16: f32 f32", set_bf16_of_words, 0},
      {"set.gt.bf16.bf16", "bf16: bf16 bf16", set_bf16, 0},
      {"set.lt.u16.f16", "u16: f16 f16", set_half_ones, 0},
      {"set.ne.s32.f16", "s32: f16 f16", set_ones, 0},
      {"set.eq.u16.bf16", "u16: bf16 bf16", set_half_ones, 0},
      {"set.lt.ftz.f16x2.f16x2", "f16x2: f16x2 f16x2", set_f16, 0},
      {"set.lt.u32.f16x2", "u32: f16x2 f16x2", set_half_ones, 0},
      {"set.neu.and.bf16x2.bf16x2 %d, %a, %b, %c", "bf16x2: bf16x2 bf16x2 pred", set_bf16, 0},
      {"set.num.s32.bf16x2", "s32: bf16x2 bf16x2", set_half_ones, 0},
  };
  RUN_TESTS(tests);
}

// ---- selp, slct, testp ----

static void select_by_predicate(const Sample *sample, uint64_t *out) {
  out[0] = sample->in[2] ? sample->in[0] : sample->in[1];
}
static void select_by_not(const Sample *sample, uint64_t *out) {
  out[0] = sample->in[2] ? sample->in[1] : sample->in[0];
}
static void select_by_integer(const Sample *sample, uint64_t *out) {
  out[0] = integer_source(sample, 2) >= 0 ? sample->in[0] : sample->in[1];
}

// A negative subnormal counts as -0 with .ftz, and that is not negative.
static void select_by_float(const Sample *sample, uint64_t *out) {
  float c = float_source(sample, 2);
  if (has_modifier(sample, ".ftz") && fabsf(c) < 0x1p-126f) c = 0;
  out[0] = c >= 0 ? sample->in[0] : sample->in[1];
}

static void select_constants(const Sample *sample, uint64_t *out) { out[0] = sample->in[0] ? (uint64_t)-1 : 42; }

#define SELP(T) INSTRUCTION("selp." #T, #T ": " #T " " #T " pred", select_by_predicate, 0)
#define SLCT(T)                                                                                                        \
  INSTRUCTION("slct." #T ".s32", #T ": " #T " " #T " s32", select_by_integer, 0),                                      \
      INSTRUCTION("slct." #T ".f32", #T ": " #T " " #T " f32", select_by_float, 0),                                    \
      INSTRUCTION("slct.ftz." #T ".f32", #T ": " #T " " #T " f32", select_by_float, 0)
#define EVERY_TYPE(ROW)                                                                                                \
  ROW(b16), ROW(u16), ROW(s16), ROW(b32), ROW(u32), ROW(s32), ROW(f32), ROW(b64), ROW(u64), ROW(s64), ROW(f64)

Test(compare, selections) {
  const InstructionTest tests[] = {
      EVERY_TYPE(SELP),
      {"selp.b32 %d, %a, %b, !%c", "b32: b32 b32 pred", select_by_not, 0},
      {"selp.s32 %d, -1, 42, %a", "s32: pred", select_constants, 0},
      EVERY_TYPE(SLCT),
  };
  RUN_TESTS(tests);
}

static int classify(const Sample *sample) {
  return sample->types[0].bits == 32 ? fpclassify(float_source(sample, 0)) : fpclassify(double_source(sample, 0));
}

#define TESTP(op, condition)                                                                                           \
  static void test_##op(const Sample *sample, uint64_t *out) {                                                         \
    int class = classify(sample);                                                                                      \
    out[0] = (condition);                                                                                              \
  }
TESTP(finite, class != FP_INFINITE && class != FP_NAN)
TESTP(infinite, class == FP_INFINITE)
TESTP(number, class != FP_NAN)
TESTP(notanumber, class == FP_NAN)
TESTP(normal, class == FP_NORMAL || class == FP_ZERO)
TESTP(subnormal, class == FP_SUBNORMAL)

#define TESTP_ROWS(op)                                                                                                 \
  INSTRUCTION("testp." #op ".f32", "pred: f32", test_##op, 0),                                                         \
      INSTRUCTION("testp." #op ".f64", "pred: f64", test_##op, 0)

Test(compare, testp) {
  const InstructionTest tests[] = {
      TESTP_ROWS(finite),     TESTP_ROWS(infinite), TESTP_ROWS(number),
      TESTP_ROWS(notanumber), TESTP_ROWS(normal),   TESTP_ROWS(subnormal),
  };
  RUN_TESTS(tests);
}

// ---- refused, as ptxas does ----

Test(compare, refused) {
  const RefusedTest tests[] = {
      {"setp.lt.b32 %p0, %r1, %r2", ".lt does not go with .b32"},
      {"setp.lo.s32 %p0, %r1, %r2", ".lo does not go with .s32"},
      {"setp.ltu.u32 %p0, %r1, %r2", ".ltu"},
      {"setp.lo.f32 %p0, %f1, %f2", ".lo"},
      {"setp.lt.ftz.bf16 %p0, %h1, %h2", ".ftz"},
      {"setp.lt.ftz.s32 %p0, %r1, %r2", ".ftz"},
      {"setp.lt.gt.s32 %p0, %r1, %r2", ".gt"},
      {"setp.lt.and.or.s32 %p0, %r1, %r2, %p1", ".or"},
      {"setp.s32 %p0, %r1, %r2", "comparison"},
      {"setp.lt %p0, %r1, %r2", "type"},
      {"setp.lt.s32 %p0, %r1", "operands"},
      {"setp.lt.s32 %p0, %r1, %r2, %p1", "operands"},
      {"setp.lt.and.s32 %p0, %r1, %r2", "operands"},
      {"setp.lt.and.s32 %p0, %r1, %r2, %r3", "register %r3"},
      {"setp.lt.s32 %r0, %r1, %r2", "register %r0"},
      {"setp.lt.f16 %p0|%p1, %h1, %h2", "one destination"},
      {"setp.lt.s32 %p0, %r1, %rd2", "register %rd2"},
      {"setp.eq.s8 %p0, %h1, %h2", "s8"},
      {"set.lt.u16.f32 %h0, %f1, %f2", "cannot write .u16"},
      {"set.lt.f32.f16 %f0, %h1, %h2", "cannot write .f32"},
      {"set.lt.u32 %r0, %r1, %r2", "type"},
      {"selp.f16 %h0, %h1, %h2, %p1", "selp"},
      {"selp.b32 %r0, %r1, %r2, %r3", "register %r3"},
      {"selp.b32 %r0, %r1, %r2", "operands"},
      {"slct.ftz.b32.s32 %r0, %r1, %r2, %r3", "no such form"},
      {"slct.b32 %r0, %r1, %r2, %r3", "no such form"},
      {"testp.finite.f16 %p0, %h1", "testp"},
      {"testp.odd.f32 %p0, %f1", "needs one of"},
  };
  RUN_REFUSED_TESTS(tests);
}
