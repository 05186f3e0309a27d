// The video instructions: arithmetic on bytes, half-words and words that are parts of 32-bit registers. PTX ISA 9.7.18.
//
// The scalar ones select one part of each source and compute with it. The SIMD ones, vadd2 and vadd4 for example,
// select two half-words or four bytes from the eight bytes of b:a. What they compute fits 64 bits, so that nothing
// wraps before it is saturated or cut to size.
//
// An H200 has no scalar video instructions. ptxas makes several integer instructions of each, and these depart from the
// PTX ISA in places. The emulator computes what the H200 does; comments mark these places by "Not as the ISA says".
// notes/tensor-core-arithmetic.md has them in a table.
#include <stdlib.h>
#include <string.h>

#include "../warp/lanes.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "families.h"

typedef enum VideoOperation {
  V_ADD,
  V_SUB,
  V_ABSDIFF,
  V_MIN,
  V_MAX,
  V_AVRG,
  V_SHL,
  V_SHR,
  V_SET,
  V_MAD
} VideoOperation;
typedef enum VideoCompare { V_EQ, V_NE, V_LT, V_LE, V_GT, V_GE } VideoCompare;
typedef enum VideoSecond { NO_SECOND, SECOND_ADD, SECOND_MIN, SECOND_MAX } VideoSecond;

enum { MOST_PARTS = 4 };

// What one instruction does: Inst.extra.
typedef struct VideoPlan {
  VideoOperation operation;
  VideoCompare compare;
  VideoSecond second;                // with c
  int parts, bits;                   // that the operation works on at once, and the bits of one in d
  int a[MOST_PARTS], b[MOST_PARTS];  // the first bit, of b:a in a SIMD instruction, of each part from the lowest
  int a_bits, b_bits;
  bool a_signed, b_signed;
  bool d_signed;             // the result is saturated, and compared with c, as a signed number
  bool written[MOST_PARTS];  // the results that go to d
  int d_first;               // a scalar instruction's result goes to the bits of d from this on
  bool merges;               // the bits of d that have no result are those of c
  bool saturates, wraps;
  bool negates_product, negates_c, plus_one;  // of vmad
  int shift;                                  // of vmad's result
} VideoPlan;

// ---- execution ----

static s64 select_part(u64 from, int first, int bits, bool is_signed) {
  u64 part = from << (64 - bits - first);
  return is_signed ? (s64)part >> (64 - bits) : (s64)(part >> (64 - bits));
}

static s64 clamp_to_bits(s64 x, int bits, bool is_signed) {
  s64 high = (1ll << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
  return x < low ? low : x > high ? high : x;
}

static bool compares(VideoCompare compare, s64 a, s64 b) {
  switch (compare) {
  case V_EQ: return a == b;
  case V_NE: return a != b;
  case V_LT: return a < b;
  case V_LE: return a <= b;
  case V_GT: return a > b;
  default: return a >= b;
  }
}

// A shift of more than 32 bits counts as one of 32.
static s64 shift_distance(const VideoPlan *plan, s64 b) { return plan->wraps ? b & 31 : b > 32 ? 32 : b; }

static bool shifts(const VideoPlan *plan) { return plan->operation == V_SHL || plan->operation == V_SHR; }

static s64 compute(const VideoPlan *plan, s64 a, s64 b) {
  switch (plan->operation) {
  case V_ADD: return a + b;
  case V_SUB: return a - b;
  case V_ABSDIFF: return a < b ? b - a : a - b;
  case V_MIN: return a < b ? a : b;
  case V_MAX: return a > b ? a : b;
  case V_AVRG: return (a + b + (a + b >= 0)) >> 1;
  case V_SHL: return (s64)((u64)a << shift_distance(plan, b));
  case V_SHR: return a >> shift_distance(plan, b);
  case V_SET: return compares(plan->compare, a, b);
  default: return 0;
  }
}

// The result of .sat. Not as the ISA says, which clamps x to the range of the part of d that receives it:
// - A shift clamps the low 34 bits of x, as a signed number, to the range of a word, even if d receives a byte.
// - Where d receives a byte or a half-word, a negative x is as good as a huge one.
// - An unsigned word has no upper bound; what is above it wraps.
static s64 saturate(const VideoPlan *plan, s64 x) {
  if (shifts(plan)) return clamp_to_bits((s64)((u64)x << 30) >> 30, 32, plan->d_signed);
  s64 high = (1ll << (plan->bits - plan->d_signed)) - 1;
  if (plan->merges) return (u64)x > (u64)high ? high : x;
  return plan->d_signed ? clamp_to_bits(x, 32, true) : x < 0 ? 0 : x;
}

// A second operation, with c. Not as the ISA says: a sum, a difference and a saturated shift are first cut to a signed
// word, and an unsigned minimum or maximum then compares 64 bits, so that -1 is above every c.
static u32 apply_second(const VideoPlan *plan, s64 x, u32 c) {
  if (plan->second == SECOND_ADD) return (u32)x + c;
  if (plan->operation == V_ADD || plan->operation == V_SUB || (shifts(plan) && plan->saturates)) x = (s32)x;
  bool less = plan->d_signed ? x < (s32)c : (u64)x < c;
  return less == (plan->second == SECOND_MIN) ? (u32)x : c;
}

// The scalar instructions, with one part of each source.
static u32 scalar(const VideoPlan *plan, u32 a, u32 b, u32 c) {
  s64 x = compute(plan, select_part(a, plan->a[0], plan->a_bits, plan->a_signed),
                  select_part(b, plan->b[0], plan->b_bits, plan->b_signed));
  if (plan->saturates) x = saturate(plan, x);
  if (plan->second) return apply_second(plan, x, c);
  if (!plan->merges) return (u32)x;
  u32 field = (u32)((1ull << plan->bits) - 1) << plan->d_first;
  // Not as the ISA says: the high half of d receives the high half of the result, not the low one.
  bool high_half = plan->bits == 16 && plan->d_first == 16;
  return ((high_half ? (u32)x : (u32)x << plan->d_first) & field) | (c & ~field);
}

// The SIMD instructions: the results are added to c, or take their places in it.
static u32 simd(const VideoPlan *plan, u32 a, u32 b, u32 c) {
  u64 both = (u64)b << 32 | a;
  u32 result = c, field = (u32)((1ull << plan->bits) - 1);
  for (int i = 0; i < plan->parts; i++) {
    s64 x = compute(plan, select_part(both, plan->a[i], plan->bits, plan->a_signed),
                    select_part(both, plan->b[i], plan->bits, plan->b_signed));
    if (plan->saturates) x = clamp_to_bits(x, plan->bits, plan->d_signed);
    if (!plan->written[i]) continue;
    if (plan->second)
      result += (u32)x;
    else
      result = (result & ~(field << i * plan->bits)) | ((u32)x & field) << i * plan->bits;
  }
  return result;
}

// vmad: (a * b) + c, negated, one more, scaled. Not as the ISA says: words a, b and c are signed, whatever their types.
static u32 video_multiply_add(const VideoPlan *plan, u32 a, u32 b, u32 c) {
  s64 x = (s64)(s32)select_part(a, plan->a[0], plan->a_bits, plan->a_signed) *
          (s32)select_part(b, plan->b[0], plan->b_bits, plan->b_signed);
  s64 addend = (s32)c;
  x = (plan->negates_product ? -x : x) + (plan->negates_c ? -addend : addend) + plan->plus_one;
  x = plan->d_signed ? x >> plan->shift : (s64)((u64)x >> plan->shift);
  return (u32)(plan->saturates ? clamp_to_bits(x, 32, plan->d_signed) : x);
}

#define VIDEO_HANDLER(name, f)                                                                                         \
  static void name(Warp *warp, const Inst *inst, Mask mask) {                                                          \
    const VideoPlan *plan = inst->extra;                                                                               \
    u32 *d = SLOT(warp, inst->d, u32);                                                                                 \
    const u32 *a = SLOT(warp, inst->a, u32), *b = SLOT(warp, inst->b, u32), *c = SLOT(warp, inst->c, u32);             \
    for (Mask rest = mask; rest; rest &= rest - 1) {                                                                   \
      int lane = __builtin_ctz(rest);                                                                                  \
      d[lane] = f(plan, a[lane], b[lane], c[lane]);                                                                    \
    }                                                                                                                  \
  }

VIDEO_HANDLER(execute_scalar, scalar)
VIDEO_HANDLER(execute_simd, simd)
VIDEO_HANDLER(execute_multiply_add, video_multiply_add)

// ---- decoding ----

static const struct {
  const char *name;  // of the scalar instruction; a SIMD one has a 2 or a 4 behind it
  VideoOperation operation;
} video_operations[] = {{"vadd", V_ADD},   {"vsub", V_SUB}, {"vabsdiff", V_ABSDIFF}, {"vmin", V_MIN}, {"vmax", V_MAX},
                        {"vavrg", V_AVRG}, {"vshl", V_SHL}, {"vshr", V_SHR},         {"vset", V_SET}, {"vmad", V_MAD}};

static const char *const compare_names[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL};
static const char *const second_names[] = {"add", "min", "max", NULL};

// The index of the name that the instruction has, -1 when it has none.
static int find_name(const PtxInstruction *source, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (ptx_has(source, names[i])) return i;
  return -1;
}

// Reads "b2" or "h1": a part of a scalar instruction's operand, which is a word when it names none.
static bool read_part(const PtxOperand *operand, int *first, int *bits) {
  const char *part = operand->part;
  *first = 0;
  *bits = 32;
  if (!part) return true;
  *bits = *part == 'b' ? 8 : 16;
  *first = (part[1] - '0') * *bits;
  return strlen(part) == 2 && *first < 32;
}

// Reads "h32" or "b7654": the parts of b:a that a SIMD instruction works on, the lowest last.
static bool read_parts(const PtxOperand *operand, const char *otherwise, const VideoPlan *plan, int *first) {
  const char *part = operand->part ? operand->part : otherwise;
  if (*part != (plan->parts == 2 ? 'h' : 'b') || (int)strlen(part) != 1 + plan->parts) return false;
  for (int i = 0; i < plan->parts; i++) {
    int number = part[plan->parts - i] - '0';
    if (number < 0 || number >= 2 * plan->parts) return false;
    first[i] = number * plan->bits;
  }
  return true;
}

// Reads "h10" or "b31": which results of a SIMD instruction go to d, all of them when it names none. The numbers
// descend.
static bool read_mask(const PtxOperand *operand, VideoPlan *plan) {
  const char *part = operand->part;
  for (int i = 0; i < plan->parts; i++) plan->written[i] = !part;
  if (!part) return true;
  if (*part != (plan->parts == 2 ? 'h' : 'b')) return false;
  int above = plan->parts;
  for (const char *at = part + 1; *at; at++) {
    int number = *at - '0';
    if (number < 0 || number >= above) return false;
    plan->written[number] = true;
    above = number;
  }
  return true;
}

// The modifiers of an instruction beside its types; NULL: none of these.
static bool check_modifiers(Decoder *decoder, const PtxInstruction *source, const VideoPlan *plan) {
  // clang-format off
  static const char *const of_shift[] = {"sat", "clamp", "wrap", "add", "min", "max", NULL};
  static const char *const of_set[] = {"eq", "ne", "lt", "le", "gt", "ge", "add", "min", "max", NULL};
  static const char *const of_mad[] = {"sat", "po", "shr7", "shr15", NULL};
  static const char *const of_scalar[] = {"sat", "add", "min", "max", NULL};
  static const char *const of_simd[] = {"sat", "add", NULL};
  static const char *const of_simd_set[] = {"eq", "ne", "lt", "le", "gt", "ge", "add", NULL};
  // clang-format on
  bool sets = plan->operation == V_SET;
  return decoder_modifiers(decoder, source,
                           shifts(plan)               ? of_shift
                           : plan->operation == V_MAD ? of_mad
                           : plan->parts > 1          ? sets ? of_simd_set : of_simd
                           : sets                     ? of_set
                                                      : of_scalar);
}

// .dtype.atype.btype, or .atype.btype of vset. Not as the ISA says, where c and d of vset are unsigned: they have the
// type of a.
static bool read_types(const PtxInstruction *source, VideoPlan *plan) {
  bool is_signed[3] = {false};
  int at = plan->operation == V_SET, count = 0;
  for (int i = 0; i < source->modifier_count; i++) {
    PtxType type = ptx_type_from_name(source->modifiers[i]);
    if (type == PTX_NO_TYPE) continue;
    if ((type != PTX_U32 && type != PTX_S32) || at + count > 2) return false;
    is_signed[at + count++] = type == PTX_S32;
  }
  plan->d_signed = is_signed[at];
  plan->a_signed = is_signed[1];
  plan->b_signed = is_signed[2];
  return at + count == 3 && !(shifts(plan) && plan->b_signed);
}

// "vadd2" is vadd of two parts. False when there is no such instruction.
static bool read_opcode(const PtxInstruction *source, VideoPlan *plan) {
  size_t length = strcspn(source->opcode, "24");
  plan->parts = source->opcode[length] ? source->opcode[length] - '0' : 1;
  plan->bits = 32 / plan->parts;
  for (size_t i = 0; i < sizeof video_operations / sizeof *video_operations; i++)
    if (strlen(video_operations[i].name) == length && !strncmp(video_operations[i].name, source->opcode, length)) {
      plan->operation = video_operations[i].operation;
      return true;
    }
  return false;
}

// What stands for the parts of d and of the sources. False when there are no such parts.
static bool read_selections(const PtxInstruction *source, VideoPlan *plan) {
  const PtxOperand *operands = source->operands;
  if (plan->parts > 1)
    return read_mask(&operands[0], plan) &&
           read_parts(&operands[1], plan->parts == 2 ? "h10" : "b3210", plan, plan->a) &&
           read_parts(&operands[2], plan->parts == 2 ? "h32" : "b7654", plan, plan->b);
  plan->merges = operands[0].part;
  return read_part(&operands[0], &plan->d_first, &plan->bits) && read_part(&operands[1], &plan->a[0], &plan->a_bits) &&
         read_part(&operands[2], &plan->b[0], &plan->b_bits);
}

// vmad alone negates operands, and either the product or c.
static bool read_negations(const PtxInstruction *source, VideoPlan *plan) {
  const PtxOperand *operands = source->operands;
  bool a = operands[1].negated, b = operands[2].negated, c = source->operand_count > 3 && operands[3].negated;
  if (operands[0].negated) return false;
  if (plan->operation != V_MAD) return !a && !b && !c;
  plan->negates_product = a != b;
  plan->negates_c = c;
  plan->plus_one = ptx_has(source, "po");
  plan->d_signed = plan->a_signed || plan->b_signed || plan->negates_product || c;
  plan->shift = ptx_has(source, "shr7") ? 7 : ptx_has(source, "shr15") ? 15 : 0;
  return !(plan->negates_product && c) && !(plan->plus_one && (a || b || c));
}

DecodeResult decode_video(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  VideoPlan *plan = decoder_allocate(decoder, sizeof *plan);
  if (!read_opcode(source, plan)) return decoder_error(decoder, source, "unknown instruction");
  if (!check_modifiers(decoder, source, plan) || !decoder_operands(decoder, source, 3, 4)) return DECODE_FAILED;
  if (!read_types(source, plan)) return decoder_error(decoder, source, "needs .u32 or .s32 for each operand");
  if (!read_selections(source, plan)) return decoder_error(decoder, source, "there are no such parts of a register");
  if (!read_negations(source, plan)) return decoder_error(decoder, source, "cannot negate these operands");
  plan->second = (VideoSecond)(find_name(source, second_names) + 1);
  plan->compare = (VideoCompare)find_name(source, compare_names);
  plan->saturates = ptx_has(source, "sat");
  plan->wraps = ptx_has(source, "wrap");
  if (plan->operation == V_SET && (int)plan->compare < 0) return decoder_error(decoder, source, "needs a comparison");
  if (shifts(plan) && plan->wraps == ptx_has(source, "clamp"))
    return decoder_error(decoder, source, "needs .clamp or .wrap");
  if (plan->second && (plan->merges || (plan->parts > 1 && plan->saturates)))
    return decoder_error(decoder, source, "cannot both combine and merge or saturate");
  int needed = 3 + (plan->second || plan->merges || plan->parts > 1 || plan->operation == V_MAD);
  if (!decoder_operands(decoder, source, needed, needed)) return DECODE_FAILED;
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_B32);
  inst->a = decoder_source(decoder, &source->operands[1], PTX_B32);
  inst->b = decoder_source(decoder, &source->operands[2], PTX_B32);
  inst->c = needed > 3 ? decoder_source(decoder, &source->operands[3], PTX_B32) : inst->a;
  inst->extra = plan;
  inst->execute = plan->operation == V_MAD ? execute_multiply_add : plan->parts > 1 ? execute_simd : execute_scalar;
  return DECODED;
}
