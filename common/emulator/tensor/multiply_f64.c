// mma.sync and wmma.mma of f64: m8n8k4 and, of mma alone, m16n8k4, m16n8k8 and m16n8k16. PTX ISA 9.7.15.5.
//
// The tensor core adds one product after another to C, in the order of K, each by a fused multiply-add.
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "../warp/floating.h"
#include "../warp/lanes.h"
#include "../warp/operands.h"
#include "../warp/rounded.h"
#include "../warp/warp.h"
#include "multiply.h"

enum { COLUMNS = 8, MAX_ROWS = 16, MAX_K = 16, MAX_OWN = 8 };

typedef struct MultiplyF64 {
  int rows, depth;
  int host_mode;      // in which the product is computed,
  Rounding rounding;  // or to nearest and by software
  void (*multiply)(Warp *warp, const struct MultiplyF64 *plan);
  Slot d[4], a[MAX_OWN], b[4], c[4];
} MultiplyF64;

// Lane l has A's element (l / 4, l % 4), B's (l % 4, l / 4), and of C and D two neighbours of row l / 4. Of 16 rows each
// second register is 8 rows further, of C and D each second pair; otherwise the next one is 4 further along K.
static f64 *element_of_a(f64 a[MAX_ROWS][MAX_K], const MultiplyF64 *plan, int i, int lane) {
  int blocks = plan->rows / 8;
  return &a[lane / 4 + i % blocks * 8][lane % 4 + i / blocks * 4];
}

// fma.f64: of NaNs the second factor's comes first, then the addend's. An invalid operation gives a negative NaN.
static f64 fma_f64_nan(f64 x, f64 y, f64 z, Rounding rounding) {
  f64 result = rounding == ROUND_NEAREST ? fma(x, y, z) : rounded_fma(x, y, z, rounding);
  if (result == result) return result;
  if (x == x && y == y && z == z) return f64_from_bits(0xfff8000000000000);
  return y != y ? quiet_f64(y) : z != z ? quiet_f64(z) : quiet_f64(x);
}

static void multiply_lanes(Warp *warp, const MultiplyF64 *plan) {
  f64 a[MAX_ROWS][MAX_K], b[MAX_K][COLUMNS];
  int rows = plan->rows, depth = plan->depth;
  for (int i = 0; i < rows * depth / LANES; i++)
    for (int lane = 0; lane < LANES; lane++) *element_of_a(a, plan, i, lane) = SLOT(warp, plan->a[i], const f64)[lane];
  for (int i = 0; i < depth / 4; i++)
    for (int lane = 0; lane < LANES; lane++) b[lane % 4 + i * 4][lane / 4] = SLOT(warp, plan->b[i], const f64)[lane];
  for (int i = 0; i < rows / 4; i++)
    for (int lane = 0; lane < LANES; lane++) {
      int m = lane / 4 + i / 2 * 8, n = lane % 4 * 2 + i % 2;
      f64 sum = SLOT(warp, plan->c[i], const f64)[lane];
      for (int k = 0; k < depth; k++) sum = fma_f64_nan(a[m][k], b[k][n], sum, plan->rounding);
      SLOT(warp, plan->d[i], f64)[lane] = sum;
    }
}

static void execute_multiply_f64(Warp *warp, const Inst *inst, Mask mask) {
  const MultiplyF64 *plan = inst->extra;
  if (!fragment_whole_warp(warp, inst, mask)) return;
  fesetround(plan->host_mode);
  plan->multiply(warp, plan);  // by a pointer, so that no compiler moves it out from between
  fesetround(FE_TONEAREST);
  warp_counts(warp, inst)->flops += 2u * (unsigned)(plan->rows * COLUMNS * plan->depth);
}

static bool decode_registers(Decoder *decoder, const PtxInstruction *source, int operand, int count, Slot *slots) {
  const PtxOperand *o = &source->operands[operand];
  int have = o->kind == PTX_OPERAND_VECTOR ? o->item_count : 0;
  if (have != count) {
    decoder_error(decoder, source, "operand %d must be a vector of %d register%s, has %d", operand + 1, count,
                  count > 1 ? "s" : "", have);
    return false;
  }
  for (int i = 0; i < count; i++)
    slots[i] = operand == 0 ? decoder_destination(decoder, &o->items[i], PTX_F64)
                            : decoder_source(decoder, &o->items[i], PTX_F64);
  return true;
}

DecodeResult decode_multiply_f64(Decoder *decoder, const PtxInstruction *source, int m, int k, Inst *inst) {
  static const char *const roundings[] = {"rn", "rz", "rm", "rp", NULL};
  static const char *const allowed[] = {"sync", "aligned", "row", "col", "mma", "rn", "rz", "rm", "rp", NULL};
  bool exists = m == 8 ? k == 4 : m == 16 && (k == 4 || k == 8 || k == 16);
  ElementType types[4] = {ELEMENT_F64};
  for (int i = 0; i < element_types(source, types); i++)
    if (types[i] != ELEMENT_F64) return decoder_error(decoder, source, "the types must all be .f64");
  if (!exists) return decoder_error(decoder, source, "the shape must be .m8n8k4, .m16n8k4, .m16n8k8 or .m16n8k16");
  if (!element_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  MultiplyF64 *plan = decoder_allocate(decoder, sizeof *plan);
  int found = fragment_modifier(source, roundings);
  Rounding rounding = found < 0 ? ROUND_NEAREST : (Rounding)found;
  plan->rows = m;
  plan->depth = k;
  plan->rounding = rounds_by_software() ? rounding : ROUND_NEAREST;
  plan->host_mode = host_mode(rounds_by_software() ? ROUND_NEAREST : rounding);
  plan->multiply = multiply_lanes;
  inst->extra = plan;
  inst->execute = execute_multiply_f64;
  bool fit = decode_registers(decoder, source, 0, m / 4, plan->d) &&
             decode_registers(decoder, source, 1, m * k / LANES, plan->a) &&
             decode_registers(decoder, source, 2, k / 4, plan->b) &&
             decode_registers(decoder, source, 3, m / 4, plan->c);
  return fit ? DECODED : DECODE_FAILED;
}
