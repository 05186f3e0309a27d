// cvt: between every pair of integer and floating-point types, one number or two packed. PTX ISA 9.7.9, cvt and
// cvt.pack.
//
// The conversions that kernels do most have handlers of their own (the table at the end). All others go through 64-bit
// arrays of one element per lane:
//
//   slot --load--> raw bits --> integer or double --round, saturate--> raw bits --store--> slot
//
// where every number of every type fits exactly, so that a value is rounded once.
#include <math.h>

#include "../warp/floating.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "families.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))
#define EACH INDEPENDENT for (int i = 0; i < LANES; i++)

typedef enum Encoding { UNSIGNED, SIGNED, F16, BF16, F32, F64, TF32, E4M3, E5M2 } Encoding;

// A type that cvt knows.
typedef struct Kind {
  const char *name;
  Encoding encoding;
  int bits;         // of one number
  int parts;        // numbers in a register: 1, or 2 when packed, the first in the low half
  PtxType storage;  // the register's type
} Kind;

static const Kind number_kinds[] = {
    {"u8", UNSIGNED, 8, 1, PTX_U8},    {"u16", UNSIGNED, 16, 1, PTX_U16}, {"u32", UNSIGNED, 32, 1, PTX_U32},
    {"u64", UNSIGNED, 64, 1, PTX_U64}, {"s8", SIGNED, 8, 1, PTX_S8},      {"s16", SIGNED, 16, 1, PTX_S16},
    {"s32", SIGNED, 32, 1, PTX_S32},   {"s64", SIGNED, 64, 1, PTX_S64},   {"f16", F16, 16, 1, PTX_F16},
    {"bf16", BF16, 16, 1, PTX_BF16},   {"f32", F32, 32, 1, PTX_F32},      {"f64", F64, 64, 1, PTX_F64},
    {"tf32", TF32, 32, 1, PTX_B32},    {"f16x2", F16, 16, 2, PTX_F16X2},  {"bf16x2", BF16, 16, 2, PTX_BF16X2},
    {"e4m3x2", E4M3, 8, 2, PTX_B16},   {"e5m2x2", E5M2, 8, 2, PTX_B16},
};

static const SmallFormat formats[] = {
    [F16] = FORMAT_F16,   [BF16] = FORMAT_BF16, [F32] = FORMAT_F32,
    [TF32] = FORMAT_TF32, [E4M3] = FORMAT_E4M3, [E5M2] = FORMAT_E5M2,
};

// The rounding modifiers: rni and its kin round to an integer, in any type.
static const struct {
  const char *name;
  Rounding rounding;
  bool to_integer;
} roundings[] = {
    {"rn", ROUND_NEAREST, false}, {"rz", ROUND_ZERO, false},          {"rm", ROUND_DOWN, false},
    {"rp", ROUND_UP, false},      {"rna", ROUND_NEAREST_AWAY, false}, {"rni", ROUND_NEAREST, true},
    {"rzi", ROUND_ZERO, true},    {"rmi", ROUND_DOWN, true},          {"rpi", ROUND_UP, true},
};

// What one instruction does: Inst.extra.
typedef struct Plan {
  const Kind *to, *from;
  bool rounded;  // a rounding modifier was given
  Rounding rounding;
  bool to_integer;
  unsigned flags;          // FORM_...
  int to_size, from_size;  // bytes of a slot's element
  bool two_sources;        // a goes to the high part, b to the low one
} Plan;

static bool is_float(const Kind *kind) { return kind->encoding >= F16; }

// ---- raw bits of a slot: size bytes an element, or one part of each element when packed ----

static void load_raw(u64 *to, const u8 *slot, int size, const Kind *kind, int part) {
  if (kind->parts == 2 && kind->bits == 16) {
    EACH to[i] = ((const u16 *)slot)[2 * i + part];
  } else if (kind->parts == 2) {
    EACH to[i] = slot[2 * i + part];
  } else if (size == 2) {
    EACH to[i] = ((const u16 *)slot)[i];
  } else if (size == 4) {
    EACH to[i] = ((const u32 *)slot)[i];
  } else {
    EACH to[i] = ((const u64 *)slot)[i];
  }
}

// Writes the mask's lanes: both parts of a packed register together.
static void store_raw(u8 *slot, u64 codes[2][LANES], int size, const Kind *kind, Mask mask) {
  if (kind->parts == 2) EACH codes[0][i] |= codes[1][i] << kind->bits;
  if (size == 2) {
    EACH_LANE(mask, ((u16 *)slot)[LANE] = (u16)codes[0][LANE]);
  } else if (size == 4) {
    EACH_LANE(mask, ((u32 *)slot)[LANE] = (u32)codes[0][LANE]);
  } else {
    EACH_LANE(mask, ((u64 *)slot)[LANE] = codes[0][LANE]);
  }
}

// ---- integers: 64 bits, extended as their type says ----

static void extend_integers(u64 *x, const Kind *kind) {
  int unused = 64 - kind->bits;
  if (kind->encoding == SIGNED)
    EACH x[i] = (u64)((s64)(x[i] << unused) >> unused);
  else
    EACH x[i] = x[i] << unused >> unused;
}

static u64 largest_integer(const Kind *kind) { return ~0ull >> (64 - kind->bits + (kind->encoding == SIGNED)); }
static u64 smallest_integer(const Kind *kind) { return kind->encoding == SIGNED ? ~largest_integer(kind) : 0; }

// .sat between integer types. A source other than u64 fits an s64.
static void saturate_integers(u64 *x, const Kind *to, const Kind *from) {
  u64 largest = largest_integer(to);
  if (from->encoding == UNSIGNED) {
    EACH x[i] = x[i] < largest ? x[i] : largest;
    return;
  }
  s64 high = largest > INT64_MAX ? INT64_MAX : (s64)largest, low = (s64)smallest_integer(to);
  EACH x[i] = (u64)((s64)x[i] < low ? low : (s64)x[i] > high ? high : (s64)x[i]);
}

// An integer rounded to that many significant bits, which make a double.
static f64 significant(u64 integer, bool is_signed, int bits, Rounding rounding) {
  bool negative = is_signed && (s64)integer < 0;
  u64 magnitude = negative ? 0 - integer : integer;
  int cut = 64 - bits - (magnitude ? __builtin_clzll(magnitude) : 63);
  if (cut > 0) {
    u64 kept = magnitude >> cut, rest = magnitude << (64 - cut);
    kept += rounds_up(rounding, negative, kept, rest);
    return ldexp(negative ? -(f64)kept : (f64)kept, cut);
  }
  return negative ? -(f64)magnitude : (f64)magnitude;
}

static void integers_to_floats(const Plan *plan, f64 *to, const u64 *from) {
  int bits = plan->to->encoding == F64 ? 53 : formats[plan->to->encoding].fraction_bits + 1;
  for (int i = 0; i < LANES; i++) to[i] = significant(from[i], plan->from->encoding == SIGNED, bits, plan->rounding);
}

// ---- floats: doubles ----

static void widen_to_f64(f64 *to, const u64 *from, Encoding encoding) {
  switch (encoding) {
  case F16: EACH to[i] = f32_from_f16((u16)from[i]); break;
  case BF16: EACH to[i] = f32_from_bf16((u16)from[i]); break;
  case E4M3: EACH to[i] = f32_from_f16(f16_from_e4m3((u8)from[i])); break;
  case E5M2: EACH to[i] = f32_from_f16(f16_from_e5m2((u8)from[i])); break;
  case F64: EACH to[i] = f64_from_bits(from[i]); break;
  default: EACH to[i] = f32_from_bits((u32)from[i]); break;
  }
}

// Numbers below the smallest normal f32, also those that rounding would lift to it, are zero of their sign.
static void flush_values(f64 *x) { EACH x[i] = fabs(x[i]) < 0x1p-126 ? copysign(0, x[i]) : x[i]; }

// An f64 that becomes an f32: it is rounded to 24 bits first, as if there were smaller exponents, and zero if still
// below.
static void flush_rounded(f64 *x, Rounding rounding) {
  EACH {
    u32 lifted = narrow((SmallFormat)FORMAT_F32, x[i] * 0x1p126, rounding, false);
    x[i] = fabsf(f32_from_bits(lifted)) < 1 ? copysign(0, x[i]) : x[i];
  }
}

static void round_to_integers(f64 *x, Rounding rounding) {
  switch (rounding) {
  case ROUND_ZERO: EACH x[i] = trunc(x[i]); break;
  case ROUND_DOWN: EACH x[i] = floor(x[i]); break;
  case ROUND_UP: EACH x[i] = ceil(x[i]); break;
  default: EACH x[i] = rint(x[i]); break;
  }
}

// Already rounded numbers to integers, clamped to the type's range. NaN gives 0, or the highest bit alone when either
// side has 64 bits.
static void floats_to_integers(const Plan *plan, u64 *to, const f64 *from) {
  u64 largest = largest_integer(plan->to), smallest = smallest_integer(plan->to);
  f64 above = ldexp(1, plan->to->bits - (plan->to->encoding == SIGNED));
  f64 below = plan->to->encoding == SIGNED ? -above : 0;
  u64 nan = plan->to->bits == 64 || plan->from->bits == 64 ? 1ull << (plan->to->bits - 1) : 0;
  for (int i = 0; i < LANES; i++) {
    f64 x = from[i];
    if (x != x)
      to[i] = nan;
    else if (x >= above)
      to[i] = largest;
    else if (x <= below)
      to[i] = smallest;
    else
      to[i] = x < 0 ? (u64)(s64)x : (u64)x;
  }
}

// A NaN of f64 that becomes an f32, f16 or bf16 keeps its sign and the high bits of its payload, and is quiet: so an
// H200 does, with f64 alone.
static u64 narrow_nan(const SmallFormat *format, f64 x) {
  u64 payload = f64_bits(x) << 12 >> (64 - format->fraction_bits), quiet = 1ull << (format->fraction_bits - 1);
  return f64_bits(x) >> 63 << format->sign_bit | format->infinity | quiet | payload;
}

static void narrow_all(const Plan *plan, u64 *to, const f64 *from) {
  if (plan->to->encoding == F64) {
    // With .ftz, and without it not, an H200 makes every NaN f32's one before it widens it.
    const f64 nan = f32_from_bits(CANONICAL_NAN);
    const bool canonical = plan->flags & FORM_FTZ;
    EACH to[i] = f64_bits(canonical && from[i] != from[i] ? nan : from[i]);
    return;
  }
  const SmallFormat *format = &formats[plan->to->encoding];
  const int shift = plan->to->encoding == TF32 ? 13 : 0;  // the high 19 bits of its register
  for (int i = 0; i < LANES; i++)
    to[i] = (u64)narrow(*format, from[i], plan->rounding, plan->flags & FORM_SATFINITE) << shift;
  if (plan->from->encoding == F64)
    for (int i = 0; i < LANES; i++) to[i] = from[i] != from[i] ? narrow_nan(format, from[i]) : to[i];
}

// Raw bits of floats to raw bits of the destination's type.
static void convert_floats(const Plan *plan, u64 *codes, f64 *x) {
  bool ftz = plan->flags & FORM_FTZ;
  // An H200 does not flush what becomes an f16: rounded up or down, a subnormal f32 is not zero.
  if (ftz && plan->from->encoding == F64) flush_rounded(x, plan->rounding);
  if (ftz && plan->from->encoding != F64 && plan->to->encoding != F16) flush_values(x);
  if (plan->to_integer) round_to_integers(x, plan->rounding);
  if (!is_float(plan->to)) {
    floats_to_integers(plan, codes, x);
    return;
  }
  if (plan->flags & FORM_SAT) EACH x[i] = saturate_f64(x[i]);
  if (plan->flags & FORM_RELU) EACH x[i] = relu_f64(x[i]);
  narrow_all(plan, codes, x);
}

static void convert_part(const Plan *plan, u64 *codes, const u8 *source, int part) {
  u64 raw[LANES];
  f64 x[LANES];
  load_raw(raw, source, plan->from_size, plan->from, part);
  if (is_float(plan->from)) {
    widen_to_f64(x, raw, plan->from->encoding);
    convert_floats(plan, codes, x);
    return;
  }
  extend_integers(raw, plan->from);
  if (is_float(plan->to)) {
    integers_to_floats(plan, x, raw);
    convert_floats(plan, codes, x);
    return;
  }
  if (plan->flags & FORM_SAT) saturate_integers(raw, plan->to, plan->from);
  memcpy(codes, raw, sizeof raw);
}

static void execute_cvt(Warp *warp, const Inst *inst, Mask mask) {
  const Plan *plan = inst->extra;
  u64 codes[2][LANES];
  for (int part = 0; part < plan->to->parts; part++) {
    Slot slot = plan->two_sources && part == 0 ? inst->b : inst->a;
    convert_part(plan, codes[part], SLOT(warp, slot, u8), part);
  }
  // A register wider than its type is filled with the type's sign or zeros.
  if (!is_float(plan->to)) extend_integers(codes[0], plan->to);
  store_raw(SLOT(warp, inst->d, u8), codes, plan->to_size, plan->to, mask);
}

// ---- cvt.pack: two s32 saturated to fewer bits, above the low bits of c ----

// x clamped, in as many bits as `ones` has.
static inline u32 saturate_to_field(s32 x, s32 low, s32 high, u32 ones) {
  x = x < low ? low : x;
  return (u32)(x > high ? high : x) & ones;
}

static void execute_cvt_pack(Warp *warp, const Inst *inst, Mask mask) {
  const Kind *to = inst->extra;
  u32 *d = SLOT(warp, inst->d, u32);
  const s32 *a = SLOT(warp, inst->a, s32), *b = SLOT(warp, inst->b, s32);
  const u32 *c = SLOT(warp, inst->c, u32);
  const s32 high = (s32)largest_integer(to), low = (s32)smallest_integer(to);
  const u32 ones = (1u << to->bits) - 1;
  const int bits = to->bits, kept = bits < 16 ? 2 * bits : 0;  // two 16-bit numbers leave no room for c
  EACH_LANE(mask, u32 x = saturate_to_field(a[LANE], low, high, ones);
            u32 y = saturate_to_field(b[LANE], low, high, ones);
            d[LANE] = (kept ? c[LANE] << kept : 0) | x << bits | y);
}

static const Kind field_u16 = {"u16", UNSIGNED, 16, 1, PTX_B32};
static const Kind field_s16 = {"s16", SIGNED, 16, 1, PTX_B32};
static const Kind field_u8 = {"u8", UNSIGNED, 8, 1, PTX_B32};
static const Kind field_s8 = {"s8", SIGNED, 8, 1, PTX_B32};
static const Kind field_u4 = {"u4", UNSIGNED, 4, 1, PTX_B32};
static const Kind field_s4 = {"s4", SIGNED, 4, 1, PTX_B32};
static const Kind field_u2 = {"u2", UNSIGNED, 2, 1, PTX_B32};
static const Kind field_s2 = {"s2", SIGNED, 2, 1, PTX_B32};

static const Form pack_forms[] = {
    FORM_WITH_FLAGS("cvt.pack.sat.u16.s32", "b32 s32 s32", execute_cvt_pack, &field_u16),
    FORM_WITH_FLAGS("cvt.pack.sat.s16.s32", "b32 s32 s32", execute_cvt_pack, &field_s16),
    FORM_WITH_FLAGS("cvt.pack.sat.u8.s32.b32", "b32 s32 s32 b32", execute_cvt_pack, &field_u8),
    FORM_WITH_FLAGS("cvt.pack.sat.s8.s32.b32", "b32 s32 s32 b32", execute_cvt_pack, &field_s8),
    FORM_WITH_FLAGS("cvt.pack.sat.u4.s32.b32", "b32 s32 s32 b32", execute_cvt_pack, &field_u4),
    FORM_WITH_FLAGS("cvt.pack.sat.s4.s32.b32", "b32 s32 s32 b32", execute_cvt_pack, &field_s4),
    FORM_WITH_FLAGS("cvt.pack.sat.u2.s32.b32", "b32 s32 s32 b32", execute_cvt_pack, &field_u2),
    FORM_WITH_FLAGS("cvt.pack.sat.s2.s32.b32", "b32 s32 s32 b32", execute_cvt_pack, &field_s2),
};

// ---- handlers of the most frequent conversions ----

LANE_OPERATION(cvt_f32_f16, f32, u16, u16, u16, canonical_f32(f32_from_f16(x)))
LANE_OPERATION(cvt_f32_bf16, u32, u16, u16, u16, (u32)x << 16)  // the H200 keeps a NaN's bits here
LANE_OPERATION(cvt_f16_f32, u16, f32, f32, f32, f16_from_f32(x))
LANE_OPERATION(cvt_bf16_f32, u16, f32, f32, f32, bf16_from_f32(x))
LANE_OPERATION(cvt_f16x2_f32, u32, f32, f32, f32, (u32)f16_from_f32(x) << 16 | f16_from_f32(y))
LANE_OPERATION(cvt_bf16x2_f32, u32, f32, f32, f32, (u32)bf16_from_f32(x) << 16 | bf16_from_f32(y))
// Rounds 13 bits off, away from zero; of infinities and NaNs it cuts them, so that a NaN may become an infinity.
LANE_OPERATION(cvt_tf32_f32, u32, u32, u32, u32, (x + (~x & 0x7f800000 ? 0x1000 : 0)) & 0xffffe000)
LANE_OPERATION(cvt_f32_f64, f32, f64, f64, f64, x)  // a NaN is cut to size, here as on the H200
LANE_OPERATION(cvt_f64_f32, f64, f32, f32, f32, x)
LANE_OPERATION(cvt_f32_s32, f32, s32, s32, s32, x)
LANE_OPERATION(cvt_f32_u32, f32, u32, u32, u32, x)
LANE_OPERATION(cvt_f32_s64, f32, s64, s64, s64, x)
LANE_OPERATION(cvt_f32_u64, f32, u64, u64, u64, x)
LANE_OPERATION(cvt_f64_s32, f64, s32, s32, s32, x)
LANE_OPERATION(cvt_f64_u32, f64, u32, u32, u32, x)
LANE_OPERATION(cvt_u64_u32, u64, u32, u32, u32, x)
LANE_OPERATION(cvt_s64_s32, s64, s32, s32, s32, x)
LANE_OPERATION(cvt_u32_u64, u32, u64, u64, u64, x)
LANE_OPERATION(cvt_u32_u16, u32, u16, u16, u16, x)
LANE_OPERATION(cvt_s32_s16, s32, s16, s16, s16, x)
LANE_OPERATION(cvt_u16_u32, u16, u32, u32, u32, x)

static const Form frequent_forms[] = {
    FORM("cvt.f32.f16", "f32 f16", cvt_f32_f16),
    FORM("cvt.f32.bf16", "f32 bf16", cvt_f32_bf16),
    FORM("cvt.rn.f16.f32", "f16 f32", cvt_f16_f32),
    FORM("cvt.rn.bf16.f32", "bf16 f32", cvt_bf16_f32),
    FORM("cvt.rn.f16x2.f32", "b32 f32 f32", cvt_f16x2_f32),
    FORM("cvt.rn.bf16x2.f32", "b32 f32 f32", cvt_bf16x2_f32),
    FORM("cvt.rna.tf32.f32", "b32 f32", cvt_tf32_f32),
    FORM("cvt.rn.f32.f64", "f32 f64", cvt_f32_f64),
    FORM("cvt.f64.f32", "f64 f32", cvt_f64_f32),
    FORM("cvt.rn.f32.s32", "f32 s32", cvt_f32_s32),
    FORM("cvt.rn.f32.u32", "f32 u32", cvt_f32_u32),
    FORM("cvt.rn.f32.s64", "f32 s64", cvt_f32_s64),
    FORM("cvt.rn.f32.u64", "f32 u64", cvt_f32_u64),
    FORM("cvt.rn.f64.s32", "f64 s32", cvt_f64_s32),
    FORM("cvt.rn.f64.u32", "f64 u32", cvt_f64_u32),
    FORM("cvt.u64.u32", "u64 u32", cvt_u64_u32),
    FORM("cvt.s64.s32", "s64 s32", cvt_s64_s32),
    FORM("cvt.u32.u64", "u32 u64", cvt_u32_u64),
    FORM("cvt.s32.s64", "s32 s64", cvt_u32_u64),
    FORM("cvt.u32.u16", "u32 u16", cvt_u32_u16),
    FORM("cvt.s32.s16", "s32 s16", cvt_s32_s16),
    FORM("cvt.u16.u32", "u16 u32", cvt_u16_u32),
    FORM("cvt.s16.s32", "s16 s32", cvt_u16_u32),
};

// ---- decoding ----

static const Kind *find_number_kind(const char *name) {
  for (int i = 0; i < COUNT(number_kinds); i++)
    if (!strcmp(number_kinds[i].name, name)) return &number_kinds[i];
  return NULL;
}

static unsigned find_option(const char *name) {
  return !strcmp(name, "ftz")         ? FORM_FTZ
         : !strcmp(name, "sat")       ? FORM_SAT
         : !strcmp(name, "relu")      ? FORM_RELU
         : !strcmp(name, "satfinite") ? FORM_SATFINITE
                                      : 0;
}

// Reads the modifiers: cvt{.rounding}{.options}.to.from.
static DecodeResult read_cvt_modifiers(Decoder *decoder, const PtxInstruction *source, Plan *plan) {
  int options = source->modifier_count - 2;
  plan->to = options < 0 ? NULL : find_number_kind(source->modifiers[options]);
  plan->from = options < 0 ? NULL : find_number_kind(source->modifiers[options + 1]);
  if (!plan->to || !plan->from)
    return decoder_error(decoder, source, "needs a destination and a source type that cvt knows");
  for (int m = 0; m < options; m++) {
    const char *name = source->modifiers[m];
    unsigned option = find_option(name);
    bool known = option && !(plan->flags & option);
    plan->flags |= option;
    for (int r = 0; r < COUNT(roundings) && !option && !plan->rounded; r++)
      if (!strcmp(name, roundings[r].name)) {
        known = plan->rounded = true;
        plan->rounding = roundings[r].rounding;
        plan->to_integer = roundings[r].to_integer;
      }
    if (!known) return decoder_error(decoder, source, "unknown or repeated modifier .%s", name);
  }
  return DECODED;
}

// Whether every number of one type is a number of the other.
static bool widens(const Kind *to, const Kind *from) {
  return to->encoding == F64 || (to->encoding == F32 && from->encoding != F64) ||
         (to->encoding == F16 && (from->encoding == E4M3 || from->encoding == E5M2));
}

// What is wrong with the rounding, or NULL.
static const char *rounding_error(const Plan *plan) {
  const Kind *to = plan->to, *from = plan->from;
  bool away = plan->rounding == ROUND_NEAREST_AWAY, plain = plan->rounded && !plan->to_integer && !away;
  if (!is_float(to) && !is_float(from)) return plan->rounded ? "takes no rounding between integer types" : NULL;
  if (!is_float(to)) return plan->to_integer ? NULL : "needs .rni, .rzi, .rmi or .rpi";
  if (to->encoding == TF32) return away || (plain && plan->rounding <= ROUND_ZERO) ? NULL : "needs .rn, .rz or .rna";
  if (!is_float(from)) return plain ? NULL : "needs .rn, .rz, .rm or .rp";
  if (from->parts == 2 || to->bits == 8) return plain && plan->rounding == ROUND_NEAREST ? NULL : "needs .rn";
  if (to == from) return !plan->rounded || plan->to_integer ? NULL : "takes .rni, .rzi, .rmi, .rpi or no rounding";
  if (widens(to, from)) return plan->rounded ? "takes no rounding" : NULL;
  if (to->encoding == F16 && from->encoding == BF16)
    return plain || !plan->rounded ? NULL : "takes .rn, .rz, .rm or .rp";
  return plain ? NULL : "needs .rn, .rz, .rm or .rp";
}

// What is wrong with the other modifiers, or NULL.
static const char *option_error(const Plan *plan) {
  const Kind *to = plan->to, *from = plan->from;
  bool brain = to->encoding == BF16 || from->encoding == BF16, small = to->encoding >= TF32 || from->encoding >= TF32;
  bool to_half = to->encoding == F16 || to->encoding == BF16 || small;
  if (plan->flags & FORM_FTZ && to->encoding != F32 && from->encoding != F32) return "takes .ftz with f32 only";
  if (plan->flags & (FORM_FTZ | FORM_SAT) && (small || to->parts == 2)) return "takes neither .ftz nor .sat";
  if (plan->flags & FORM_SAT && brain && is_float(to)) return "takes no .sat";
  if (plan->flags & FORM_RELU && (!to_half || plan->to_integer || plan->rounding > ROUND_ZERO)) return "takes no .relu";
  if (plan->flags & (FORM_RELU | FORM_SATFINITE) && from->encoding != F32 && !small)
    return "takes .relu and .satfinite from f32 only";
  if (plan->flags & FORM_SATFINITE && (!to_half || from->bits == 8)) return "takes no .satfinite";
  if (plan->flags & FORM_SATFINITE && to->encoding == TF32 && plan->rounding != ROUND_NEAREST_AWAY)
    return "takes .satfinite with .rna only";
  if (to->bits == 8 && is_float(to) && !(plan->flags & FORM_SATFINITE)) return "needs .satfinite";
  return NULL;
}

// Packed types go with f32 pairs, and the 8-bit ones with f16x2; tf32 is made from f32.
static bool types_meet(const Kind *to, const Kind *from) {
  if (from->encoding == TF32) return false;
  if (to->encoding == TF32) return from->encoding == F32;
  if (to->bits == 8 && is_float(to)) return from->encoding == F32 || (from->encoding == F16 && from->parts == 2);
  if (from->bits == 8 && is_float(from)) return to->encoding == F16 && to->parts == 2;
  return from->parts == 1 && (to->parts == 1 || from->encoding == F32);
}

// A handler of its own for a frequent conversion whose registers are as wide as their types.
static Execute *find_frequent(const PtxInstruction *source, const Plan *plan) {
  FormMatch match;
  if (plan->to_size != (int)ptx_type_size(plan->to->storage) ||
      plan->from_size != (int)ptx_type_size(plan->from->storage))
    return NULL;
  for (int i = 0; i < COUNT(frequent_forms); i++)
    if (form_matches(&frequent_forms[i], source, &match)) return frequent_forms[i].execute[0];
  return NULL;
}

// cvt.pack.sat.to.s32{.b32} d, a, b{, c};
DecodeResult decode_convert_pack(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  FormMatch match;
  DecodeResult result = form_find(decoder, source, pack_forms, COUNT(pack_forms), &match);
  if (result == DECODED) result = form_operands(decoder, source, match.form, inst);
  if (result != DECODED) return result;
  inst->execute = execute_cvt_pack;
  inst->extra = match.form->plan;
  return DECODED;
}

DecodeResult decode_convert(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  Plan *plan = decoder_allocate(decoder, sizeof *plan);
  if (read_cvt_modifiers(decoder, source, plan) != DECODED) return DECODE_FAILED;
  if (!types_meet(plan->to, plan->from)) return decoder_error(decoder, source, "there is no such conversion on sm_90a");
  const char *error = rounding_error(plan);
  if (!error) error = option_error(plan);
  if (error) return decoder_error(decoder, source, "%s", error);
  plan->two_sources = plan->to->parts == 2 && plan->from->parts == 1;
  int sources = plan->two_sources ? 2 : 1;
  if (!decoder_operands(decoder, source, 1 + sources, 1 + sources)) return DECODE_FAILED;
  const PtxOperand *operands = source->operands;
  for (int i = 1; i <= sources; i++)
    if (operands[i].negated) return decoder_error(decoder, source, "a source cannot be negated");
  inst->d = decoder_wide_destination(decoder, &operands[0], plan->to->storage, &plan->to_size);
  if (plan->from->parts == 1)
    inst->a = decoder_wide_source(decoder, &operands[1], plan->from->storage, &plan->from_size);
  else
    inst->a = decoder_source(decoder, &operands[1], plan->from->storage);
  if (plan->two_sources) inst->b = decoder_source(decoder, &operands[2], plan->from->storage);
  inst->type = (uint8_t)plan->to->storage;
  inst->extra = plan;
  Execute *frequent_handler = find_frequent(source, plan);
  inst->execute = frequent_handler ? frequent_handler : execute_cvt;
  return DECODED;
}
