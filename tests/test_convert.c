// cvt on the emulator: every pair of types with every rounding that it has. Integers are checked with exact integers,
// floats by searching the destination's codes for the one that the rounding asks for.
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run_ptx.h"
#include "support/small_float.h"

TestSuite(convert);

// ---- what a conversion computes, by its text: cvt.modifiers.to.from ----

static const struct {
  const char *name;
  const SmallFloat *format;
} formats[] = {
    {"f16", &small_f16}, {"f16x2", &small_f16}, {"bf16", &small_bf16},   {"bf16x2", &small_bf16}, {"f32", &small_f32},
    {"f64", &small_f64}, {"tf32", &small_tf32}, {"e4m3x2", &small_e4m3}, {"e5m2x2", &small_e5m2},
};

typedef struct Types {
  char to[8], from[8];
  const SmallFloat *to_format, *from_format;  // NULL of an integer
} Types;

static const SmallFloat *find_format(const char *name) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
    if (!strcmp(formats[i].name, name)) return formats[i].format;
  return NULL;
}

static Types read_types(const Sample *sample) {
  Types types = {.to_format = NULL};
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(sample->text, " "), sample->text);
  char *from = strrchr(name, '.');
  *from = '\0';
  snprintf(types.from, sizeof types.from, "%.7s", from + 1);
  snprintf(types.to, sizeof types.to, "%.7s", strrchr(name, '.') + 1);
  types.to_format = find_format(types.to);
  types.from_format = find_format(types.from);
  return types;
}

static int mode_of(const Sample *sample) {
  return has_modifier(sample, ".rna") ? ROUND_TIES_AWAY : rounding_of(sample);
}
static bool rounds_to_integer(const Sample *sample) {
  return has_modifier(sample, ".rni") || has_modifier(sample, ".rzi") || has_modifier(sample, ".rmi") ||
         has_modifier(sample, ".rpi");
}

// The integer that a finite number rounds to, as a float; -0 when it is negative.
static double integral(double x, int mode) {
  double below = floor(x), above = below + 1;
  if (below == x) return x;
  bool up = mode == FE_UPWARD || (mode == FE_TOWARDZERO && x < 0);
  if (mode == FE_TONEAREST) up = x - below > 0.5 || (x - below == 0.5 && fmod(below, 2) != 0);
  return copysign(up ? above : below, x);
}

static uint64_t to_integer(const Sample *sample, const Types *types, double x) {
  int bits = atoi(types->to + 1);
  bool is_signed = types->to[0] == 's', wide = bits == 64 || !strcmp(types->from, "f64");
  Wide high = ((Wide)1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
  if (isnan(x)) return wide ? 1ull << (bits - 1) : 0;
  double whole = isinf(x) ? x : integral(x, rounding_of(sample));
  Wide result = whole >= 0x1p100 ? high : whole <= -0x1p100 ? low : (Wide)whole;
  return (uint64_t)(result > high ? high : result < low ? low : result);
}

// Codes of f32 below the smallest normal become zero of their sign.
static uint64_t flush(uint64_t code) { return code & 0x7f800000 ? code : code & 0x80000000; }

// A NaN of f64 in fewer bits, or one of f32 in 64: quiet, with its sign and the high bits of its payload, as an H200
// has it. Between other types, and with .ftz, it is the format's own NaN.
static uint64_t convert_nan(const Sample *sample, const Types *types, uint64_t code) {
  const SmallFloat *to = types->to_format, *from = types->from_format;
  bool narrows = from == &small_f64 && (to == &small_f32 || to == &small_f16 || to == &small_bf16);
  if (has_modifier(sample, ".ftz") && to == &small_f64) return 0x7fffffffe0000000;  // f32's own
  if (!narrows && !(from == &small_f32 && to == &small_f64)) return to->nan;
  uint64_t sign = code >> (from->exponent_bits + from->fraction_bits), payload = code << (64 - from->fraction_bits);
  uint64_t exponent = (1ull << to->exponent_bits) - 1;
  return (sign << to->exponent_bits | exponent) << to->fraction_bits |
         (payload | 1ull << 63) >> (64 - to->fraction_bits);
}

static uint64_t to_float(const Sample *sample, const Types *types, Quad x) {
  const SmallFloat *format = types->to_format;
  int sign_bit = format->exponent_bits + format->fraction_bits;
  uint64_t one = (((1ull << (format->exponent_bits - 1)) - 1) << format->fraction_bits), minus = 1ull << sign_bit;
  Quad zero = signbit((double)x) ? -0.0 : 0.0;
  uint64_t code = small_round(format, x, zero, mode_of(sample), has_modifier(sample, ".satfinite"));
  bool is_nan = x != x;
  // An H200 flushes what is below 2^-126 once it is rounded to 24 bits, as if there were smaller exponents.
  if (has_modifier(sample, ".ftz") && !is_nan && format == &small_f32) {
    uint64_t scaled = small_round(format, x * 0x1p126, zero, mode_of(sample), false);
    if ((scaled & ~minus) < one) code &= minus;
  }
  if (has_modifier(sample, ".sat")) code = is_nan || code & minus ? 0 : code > one ? one : code;
  if (has_modifier(sample, ".relu") && !is_nan && code & minus) code = 0;
  return !strcmp(types->to, "tf32") ? code << 13 : code;
}

static uint64_t convert_number(const Sample *sample, const Types *types, uint64_t code, Wide integer) {
  Quad x = (Quad)integer;
  if (types->from_format) {
    bool flushes = has_modifier(sample, ".ftz") && types->from_format == &small_f32;
    if (flushes && types->to_format != &small_f16) code = flush(code);  // an H200 leaves f16's sources alone
    x = small_value(types->from_format, code);
    if (!types->to_format) return to_integer(sample, types, (double)x);
    if (rounds_to_integer(sample) && x - x == 0) x = integral((double)x, rounding_of(sample));
    bool passes_nan = x != x && !has_modifier(sample, ".sat") && strcmp(types->to, "tf32");
    return passes_nan ? convert_nan(sample, types, code) : to_float(sample, types, x);
  }
  if (types->to_format) return to_float(sample, types, x);
  if (!has_modifier(sample, ".sat")) return (uint64_t)integer;
  int bits = atoi(types->to + 1);
  bool is_signed = types->to[0] == 's';
  Wide high = ((Wide)1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
  return (uint64_t)(integer > high ? high : integer < low ? low : integer);
}

// One number. A register wider than an integer type is extended by the check. Two conversions pass NaNs on, as the
// golden vectors show: bf16 to f32 moves bits, and .rna to tf32 cuts what it does not round.
static void convert(const Sample *sample, uint64_t *out) {
  Types types = read_types(sample);
  bool moves = !strcmp(sample->text, "cvt.f32.bf16"), cuts = !strcmp(sample->text, "cvt.rna.tf32.f32");
  if (moves || (cuts && isnan(float_of(sample->in[0])))) {
    out[0] = moves ? sample->in[0] << 16 : sample->in[0] & 0xffffe000;
    return;
  }
  out[0] = convert_number(sample, &types, sample->in[0], integer_source(sample, 0));
}

// Two f32 to a packed register, the first in the high half.
static void convert_pair(const Sample *sample, uint64_t *out) {
  Types types = read_types(sample);
  int width = 1 + types.to_format->exponent_bits + types.to_format->fraction_bits;
  out[0] = convert_number(sample, &types, sample->in[0], 0) << width | convert_number(sample, &types, sample->in[1], 0);
}

// Both halves of a packed register.
static void convert_packed(const Sample *sample, uint64_t *out) {
  Types types = read_types(sample);
  int to = 1 + types.to_format->exponent_bits + types.to_format->fraction_bits;
  int from = 1 + types.from_format->exponent_bits + types.from_format->fraction_bits;
  uint64_t mask = (1ull << from) - 1;
  out[0] = convert_number(sample, &types, sample->in[0] >> from & mask, 0) << to |
           convert_number(sample, &types, sample->in[0] & mask, 0);
}

// ---- every pair ----

static const char *const integers[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", NULL};
static const char *const floats[] = {"f16", "bf16", "f32", "f64", NULL};
static const char *const roundings[] = {".rn", ".rz", ".rm", ".rp", NULL};
static const char *const integer_roundings[] = {".rni", ".rzi", ".rmi", ".rpi", NULL};

static void run_one(const char *modifiers, const char *to, const char *from) {
  char text[64], types[32];
  snprintf(text, sizeof text, "cvt%s.%s.%s", modifiers, to, from);
  snprintf(types, sizeof types, "%s: %s", to, from);
  const InstructionTest test = {text, types, convert, 0};
  run_instruction_tests(&test, 1);
}

Test(convert, integers_to_integers) {
  for (const char *const *to = integers; *to; to++)
    for (const char *const *from = integers; *from; from++) {
      run_one("", *to, *from);
      run_one(".sat", *to, *from);
    }
}

Test(convert, integers_to_floats) {
  for (const char *const *to = floats; *to; to++)
    for (const char *const *from = integers; *from; from++)
      for (const char *const *rounding = roundings; *rounding; rounding++) run_one(*rounding, *to, *from);
  run_one(".rn.sat", "f32", "s32");
  run_one(".rz.sat", "f16", "s64");
  run_one(".rn.ftz", "f32", "u32");
}

Test(convert, floats_to_integers) {
  for (const char *const *to = integers; *to; to++)
    for (const char *const *from = floats; *from; from++)
      for (const char *const *rounding = integer_roundings; *rounding; rounding++) run_one(*rounding, *to, *from);
  run_one(".rzi.sat", "u32", "f32");
  run_one(".rpi.ftz", "s32", "f32");
  run_one(".rmi.ftz.sat", "s64", "f32");
}

Test(convert, floats_to_floats) {
  static const char *const narrowing[][2] = {{"f16", "f32"}, {"f16", "f64"},  {"bf16", "f32"}, {"bf16", "f64"},
                                             {"f32", "f64"}, {"bf16", "f16"}, {"f16", "bf16"}};
  static const char *const widening[][2] = {
      {"f32", "f16"}, {"f64", "f16"}, {"f32", "bf16"}, {"f64", "bf16"}, {"f64", "f32"}};
  for (int i = 0; i < 7; i++)
    for (const char *const *rounding = roundings; *rounding; rounding++)
      run_one(*rounding, narrowing[i][0], narrowing[i][1]);
  for (int i = 0; i < 5; i++) run_one("", widening[i][0], widening[i][1]);
  for (const char *const *type = floats; *type; type++) {
    run_one("", *type, *type);
    for (const char *const *rounding = integer_roundings; *rounding; rounding++) run_one(*rounding, *type, *type);
  }
}

Test(convert, options) {
  const InstructionTest tests[] = {
      {"cvt.ftz.f32.f32", "f32: f32", convert, 0},
      {"cvt.sat.f32.f32", "f32: f32", convert, 0},
      {"cvt.ftz.sat.f32.f32", "f32: f32", convert, 0},
      {"cvt.rni.ftz.sat.f32.f32", "f32: f32", convert, 0},
      {"cvt.sat.f64.f64", "f64: f64", convert, 0},
      {"cvt.rzi.sat.f16.f16", "f16: f16", convert, 0},
      {"cvt.rn.ftz.f32.f64", "f32: f64", convert, 0},
      {"cvt.rp.ftz.sat.f32.f64", "f32: f64", convert, 0},
      {"cvt.rn.sat.f32.f64", "f32: f64", convert, 0},
      {"cvt.rp.ftz.f16.f32", "f16: f32", convert, 0},
      {"cvt.rm.ftz.f16.f32", "f16: f32", convert, 0},
      {"cvt.f64.f32", "b64: f32", convert, 0},
      {"cvt.ftz.f64.f32", "b64: f32", convert, 0},
      {"cvt.sat.f64.f32", "f64: f32", convert, 0},
      {"cvt.ftz.f32.f16", "f32: f16", convert, 0},
      {"cvt.sat.f32.f16", "f32: f16", convert, 0},
      {"cvt.rn.ftz.f16.f32", "f16: f32", convert, 0},
      {"cvt.rn.sat.f16.f32", "f16: f32", convert, 0},
      {"cvt.rn.relu.f16.f32", "f16: f32", convert, 0},
      {"cvt.rz.satfinite.f16.f32", "f16: f32", convert, 0},
      {"cvt.rn.relu.satfinite.f16.f32", "f16: f32", convert, 0},
      {"cvt.rn.satfinite.relu.bf16.f32", "bf16: f32", convert, 0},
      {"cvt.rn.satfinite.bf16.f32", "bf16: f32", convert, 0},
      {"cvt.f16.bf16", "f16: bf16", convert, 0},
      {"cvt.rna.tf32.f32", "b32: f32", convert, 0},
      {"cvt.rna.satfinite.tf32.f32", "b32: f32", convert, 0},
      {"cvt.rn.tf32.f32", "b32: f32", convert, 0},
      {"cvt.rz.relu.tf32.f32", "b32: f32", convert, 0},
      // registers wider than their types
      {"cvt.u8.u32", "u8@32: u32", convert, 0},
      {"cvt.s8.s32", "s8@64: s32", convert, 0},
      {"cvt.s16.s64", "s16@32: s64", convert, 0},
      {"cvt.u32.u16", "u32@64: u16@32", convert, 0},
      {"cvt.s32.s8", "s32: s8@64", convert, 0},
      {"cvt.rn.f32.s8", "f32: s8@32", convert, 0},
      {"cvt.f32.f16", "f32: f16@32", convert, 0},
      {"cvt.rn.f16.f32", "f16@32: f32", convert, 0},
      {"cvt.rzi.s8.f32", "s8@32: f32", convert, 0},
      {"cvt.sat.s16.u32", "s16@64: u32@64", convert, 0},
  };
  RUN_TESTS(tests);
}

Test(convert, packed) {
  const InstructionTest tests[] = {
      {"cvt.rn.f16x2.f32", "f16x2: f32 f32", convert_pair, 0},
      {"cvt.rz.f16x2.f32", "f16x2: f32 f32", convert_pair, 0},
      {"cvt.rn.relu.f16x2.f32", "f16x2: f32 f32", convert_pair, 0},
      {"cvt.rz.relu.satfinite.f16x2.f32", "f16x2: f32 f32", convert_pair, 0},
      {"cvt.rn.bf16x2.f32", "bf16x2: f32 f32", convert_pair, 0},
      {"cvt.rz.bf16x2.f32", "bf16x2: f32 f32", convert_pair, 0},
      {"cvt.rn.relu.bf16x2.f32", "bf16x2: f32 f32", convert_pair, 0},
      {"cvt.rn.satfinite.bf16x2.f32", "bf16x2: f32 f32", convert_pair, 0},
      {"cvt.rn.f16x2.f32 %a, %a, %b;\nmov.b32 %d, %a", "b32: b32 b32", convert_pair, 0},
      {"cvt.rz.f16x2.f32 %a, %a, %b;\nmov.b32 %d, %a", "b32: b32 b32", convert_pair, 0},
      {"cvt.rn.satfinite.e4m3x2.f32", "b16: f32 f32", convert_pair, 0},
      {"cvt.rn.satfinite.relu.e4m3x2.f32", "b16: f32 f32", convert_pair, 0},
      {"cvt.rn.satfinite.e5m2x2.f32", "b16: f32 f32", convert_pair, 0},
      {"cvt.rn.satfinite.relu.e5m2x2.f32", "b16: f32 f32", convert_pair, 0},
      {"cvt.rn.satfinite.e4m3x2.f16x2", "b16: f16x2", convert_packed, 0},
      {"cvt.rn.satfinite.relu.e4m3x2.f16x2", "b16: f16x2", convert_packed, 0},
      {"cvt.rn.satfinite.e5m2x2.f16x2", "b16: f16x2", convert_packed, 0},
  };
  RUN_TESTS(tests);
}

Test(convert, every_small_float) {
  const InstructionTest tests[] = {
      {"cvt.f32.f16", "f32: f16", convert, 0},
      {"cvt.f32.bf16", "f32: bf16", convert, 0},
      {"cvt.f64.f16", "f64: f16", convert, 0},
      {"cvt.rzi.s32.f16", "s32: f16", convert, 0},
      {"cvt.rn.f16x2.e4m3x2", "f16x2: b16", convert_packed, 0},
      {"cvt.rn.relu.f16x2.e4m3x2", "f16x2: b16", convert_packed, 0},
      {"cvt.rn.f16x2.e5m2x2", "f16x2: b16", convert_packed, 0},
  };
  RUN_EXHAUSTIVE_TESTS(tests);
}

// ---- cvt.pack ----

static uint64_t clamp(Wide x, int bits, bool is_signed) {
  Wide high = ((Wide)1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
  return (uint64_t)(x > high ? high : x < low ? low : x) & ((1ull << bits) - 1);
}

// cvt.pack.sat.to.s32.b32: a, then b, then the low bits of c, from the top.
static void pack(const Sample *sample, uint64_t *out) {
  char type = sample->text[strlen("cvt.pack.sat.")];
  int bits = atoi(sample->text + strlen("cvt.pack.sat.u"));
  uint64_t a = clamp(integer_source(sample, 0), bits, type == 's'),
           b = clamp(integer_source(sample, 1), bits, type == 's');
  out[0] = sample->in[2] << 2 * bits | a << bits | b;
}

Test(convert, packing_integers) {
  const InstructionTest tests[] = {
      {"cvt.pack.sat.u16.s32", "b32: s32 s32", pack, 0},
      {"cvt.pack.sat.s16.s32", "b32: s32 s32", pack, 0},
      {"cvt.pack.sat.u8.s32.b32", "b32: s32 s32 b32", pack, 0},
      {"cvt.pack.sat.s8.s32.b32", "b32: s32 s32 b32", pack, 0},
      {"cvt.pack.sat.u4.s32.b32", "b32: s32 s32 b32", pack, 0},
      {"cvt.pack.sat.s4.s32.b32", "b32: s32 s32 b32", pack, 0},
      {"cvt.pack.sat.u2.s32.b32", "b32: s32 s32 b32", pack, 0},
      {"cvt.pack.sat.s2.s32.b32", "b32: s32 s32 b32", pack, 0},
  };
  RUN_TESTS(tests);
}

// ---- refused, as ptxas does ----

Test(convert, refused) {
  const RefusedTest tests[] = {
      {"cvt.f32.s32 %f0, %r1", "needs .rn"},
      {"cvt.s32.f32 %r0, %f1", "needs .rni"},
      {"cvt.rn.s32.f32 %r0, %f1", "needs .rni"},
      {"cvt.rn.f32.f32 %f0, %f1", "takes .rni"},
      {"cvt.f32.f64 %f0, %fd1", "needs .rn"},
      {"cvt.rni.f64.f32 %fd0, %f1", "takes no rounding"},
      {"cvt.rn.u32.u64 %r0, %rd1", "takes no rounding"},
      {"cvt.rn.sat.bf16.f32 %h0, %f1", "takes no .sat"},
      {"cvt.sat.f32.bf16 %f0, %h1", "takes no .sat"},
      {"cvt.rn.ftz.f16.f64 %h0, %fd1", "f32 only"},
      {"cvt.ftz.f16.f16 %h0, %h1", "f32 only"},
      {"cvt.rm.relu.f16.f32 %h0, %f1", "takes no .relu"},
      {"cvt.rn.relu.satfinite.tf32.f32 %r0, %f1", ".rna"},
      {"cvt.rn.e4m3x2.f32 %h0, %f1, %f2", "needs .satfinite"},
      {"cvt.rn.bf16x2.e5m2x2 %r0, %h1", "no such conversion"},
      {"cvt.f32.tf32 %f0, %r1", "no such conversion"},
      {"cvt.rn.f16x2.f32 %r0, %f1", "operands"},
      {"cvt.rn.f16.f32 %h0, %f1, %f2", "operands"},
      {"cvt.rn.rn.f16.f32 %h0, %f1", "repeated"},
      {"cvt.rn.ftz.ftz.f32.f64 %f0, %fd1", "repeated"},
      {"cvt.rs.f16.f32 %h0, %f1", "unknown"},
      {"cvt.rn.f32 %f0, %f1", "type"},
      {"cvt.u32.u64 %h0, %rd1", "register %h0"},
      {"cvt.rn.f16x2.e4m3x2 %r0, %rd1", "register %rd1"},
      {"cvt.rn.satfinite.e4m3x2.f16x2 %h0, %rd1", "register %rd1"},
      {"cvt.u64.u32 %rd0, %h1", "register %h1"},
      {"cvt.rn.f16.f32 %h0, -%f1", "negated"},
      {"cvt.pack.sat.u16.u32 %r0, %r1, %r2", "cvt.pack"},
      {"cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2", "operands"},
  };
  RUN_REFUSED_TESTS(tests);
}
