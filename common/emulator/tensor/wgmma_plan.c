// Decoding wgmma.mma_async: see wgmma_registers.h.
#include "wgmma_registers.h"

#include <string.h>

#include "../warp/decoder.h"

// Which K goes with A's and B's types; of a sparse A twice that.
static int depth_of(ElementType type) { return A_BYTES * 8 / element_bits(type); }

// N: any multiple of 8 for floating-point numbers, and for integers from 32 on only of 16.
static bool n_exists(int n, ElementType a) {
  if (n < 8 || n > MAX_N || n % 8) return false;
  return !element_is_integer(a) || n <= 32 || n % 16 == 0;
}

static DecodeResult wrong_wgmma_shape(Decoder *decoder, const PtxInstruction *source, const Product *product) {
  return decoder_error(decoder, source, "the shape must be .m64nNk%d with N from 8 to 256 in steps of 8%s",
                       depth_of(product->a) * (product->sparse ? 2 : 1),
                       element_is_integer(product->a) ? ", above 32 of 16" : "");
}

// An immediate operand that is one of two values; false after an error.
static bool immediate_choice(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand, int no, int yes,
                             const char *what, bool *chosen) {
  if (operand->kind != PTX_OPERAND_INTEGER || (operand->value != no && operand->value != yes)) {
    decoder_error(decoder, source, "%s is %d or %d", what, no, yes);
    return false;
  }
  *chosen = operand->value == yes;
  return true;
}

// d, a, b: registers and descriptors.
static bool decode_matrices(Decoder *decoder, const PtxInstruction *source, WgmmaPlan *plan) {
  const PtxOperand *d = &source->operands[0], *a = &source->operands[1];
  plan->accumulators = plan->half_accumulators ? plan->n / 4 : plan->n / 2;
  if (d->kind != PTX_OPERAND_VECTOR || d->item_count != plan->accumulators) {
    decoder_error(decoder, source, "D needs a list of %d registers", plan->accumulators);
    return false;
  }
  PtxType type = plan->half_accumulators ? PTX_B32 : plan->product.d == ELEMENT_S32 ? PTX_S32 : PTX_F32;
  for (int i = 0; i < plan->accumulators; i++) {
    decoder_source(decoder, &d->items[i], type);
    plan->d[i] = decoder_destination(decoder, &d->items[i], type);
  }
  plan->a_in_registers = a->kind == PTX_OPERAND_VECTOR;
  if (plan->a_in_registers && a->item_count != 4) {
    decoder_error(decoder, source, "A needs a list of 4 registers, or a descriptor");
    return false;
  }
  for (int i = 0; i < 4 && plan->a_in_registers; i++) plan->a[i] = decoder_source(decoder, &a->items[i], PTX_B32);
  if (!plan->a_in_registers) plan->a[0] = decoder_source(decoder, a, PTX_B64);
  plan->b = decoder_source(decoder, &source->operands[2], PTX_B64);
  return true;
}

// D's, A's and B's types.
static bool decode_types(Decoder *decoder, const PtxInstruction *source, WgmmaPlan *plan) {
  ElementType types[4] = {ELEMENT_F32};
  int count = element_types(source, types);
  ElementType d = types[0], a = types[1], b = types[2];
  bool fp8 = a == ELEMENT_E4M3 || a == ELEMENT_E5M2, bytes = a == ELEMENT_S8 || a == ELEMENT_U8;
  bool alike = fp8 ? b == ELEMENT_E4M3 || b == ELEMENT_E5M2 : bytes ? b == ELEMENT_S8 || b == ELEMENT_U8 : a == b;
  bool exists = element_is_integer(a) ? d == ELEMENT_S32 && a != ELEMENT_S4 && a != ELEMENT_U4
                                      : d == ELEMENT_F32 || (d == ELEMENT_F16 && (fp8 || a == ELEMENT_F16));
  plan->half_accumulators = d == ELEMENT_F16;
  plan->product =
      (Product){.a = a, .b = b, .d = d, .sparse = ptx_has(source, "sp"), .saturate = ptx_has(source, "satfinite")};
  if (count == 3 && a <= ELEMENT_B1 && alike && exists && !(a == ELEMENT_B1 && plan->product.sparse)) return true;
  decoder_error(decoder, source, "there is no product with these types of D, A and B");
  return false;
}

// .satfinite is for integers of 8 bits, .and.popc for single bits.
static bool wgmma_options_fit(const PtxInstruction *source, ElementType a) {
  bool bits = a == ELEMENT_B1;
  if (ptx_has(source, "and") != bits || ptx_has(source, "popc") != bits) return false;
  return !ptx_has(source, "satfinite") || (element_is_integer(a) && !bits);
}

// The operands after the matrices: metadata and selector of a sparse A, scale-d, and of floating-point numbers the
// signs of A and B, of 16-bit ones which of those in shared memory are MN-major.
static bool decode_rest(Decoder *decoder, const PtxInstruction *source, WgmmaPlan *plan) {
  Product *product = &plan->product;
  const PtxOperand *operand = &source->operands[3];
  bool numbers = !element_is_integer(product->a), halves = element_bits(product->a) == 16;
  int transposes = !halves ? 0 : plan->a_in_registers ? 1 : 2;
  int count = 4 + 2 * product->sparse + 2 * numbers + transposes;
  if (!decoder_operands(decoder, source, count, count)) return false;
  if (product->sparse) {
    int selectors = product_selectors(product);
    plan->metadata = decoder_source(decoder, &operand[0], PTX_B32);
    plan->selector = (int)operand[1].value;
    if (operand[1].kind != PTX_OPERAND_INTEGER || operand[1].value < 0 || operand[1].value >= selectors) {
      decoder_error(decoder, source, "the sparsity selector is an immediate from 0 to %d", selectors - 1);
      return false;
    }
    operand += 2;
  }
  plan->scale_d = decoder_source(decoder, operand, PTX_PRED);
  plan->scale_d_negated = operand->negated;
  if (numbers && (!immediate_choice(decoder, source, &operand[1], 1, -1, "imm-scale-a", &product->negate_a) ||
                  !immediate_choice(decoder, source, &operand[2], 1, -1, "imm-scale-b", &product->negate_b)))
    return false;
  if (transposes == 2 && !immediate_choice(decoder, source, &operand[3], 0, 1, "imm-trans-a", &plan->a_mn_major))
    return false;
  return !transposes ||
         immediate_choice(decoder, source, &operand[2 + transposes], 0, 1, "imm-trans-b", &plan->b_mn_major);
}

// wgmma.mma_async{.sp}.sync.aligned.shape{.satfinite}.dtype.atype.btype{.and.popc}
bool wgmma_plan_decode(Decoder *decoder, const PtxInstruction *source, WgmmaPlan *plan) {
  static const char *const allowed[] = {"mma_async", "sp", "sync", "aligned", "satfinite", "and", "popc", NULL};
  Product *product = &plan->product;
  int m = 0;
  if (!decode_types(decoder, source, plan)) return false;
  bool exists = shape_of(source, &m, &plan->n, &product->depth) && m == ROWS && n_exists(plan->n, product->a) &&
                product->depth == depth_of(product->a) * (product->sparse ? 2 : 1);
  if (!exists) return wrong_wgmma_shape(decoder, source, product), false;
  if (!wgmma_options_fit(source, product->a))
    return decoder_error(decoder, source, ".satfinite is for 8-bit integers, .and.popc for .b1"), false;
  plan->b_bytes = product->sparse ? 2 * A_BYTES : A_BYTES;
  return element_modifiers(decoder, source, allowed) && decoder_operands(decoder, source, 4, 10) &&
         decode_matrices(decoder, source, plan) && decode_rest(decoder, source, plan);
}
