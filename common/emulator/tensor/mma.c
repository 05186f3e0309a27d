// mma.sync of all types but f64, and the warp's matrix product that it shares with wmma. PTX ISA 9.7.15.5, sparse
// 9.7.15.6.
#include <stdio.h>
#include <string.h>

#include "../report/hazard.h"
#include "../warp/float16.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "families.h"
#include "product.h"

// ---- execution ----

enum { MAX_LINES = 32, MAX_COLUMNS = 32 };

// Lines one after the other.
static Strides row_major(const Fragment *fragment) { return (Strides){.line = fragment->elements, .element = 1}; }

// Half of a tile's rows, as two steps along K have them.
static void take_half(const Fragment *fragment, const uint8_t *tile, int half, uint8_t *rows) {
  int bytes = fragment->elements;  // half of a row: elements have 2 bytes
  for (int line = 0; line < fragment->lines; line++)
    memcpy(rows + line * bytes, tile + (2 * line + half) * bytes, (size_t)bytes);
}

static bool find_places(Warp *warp, const Inst *inst, const Multiply *multiply, SparsePlaces *places) {
  const u32 *metadata = SLOT(warp, multiply->metadata, const u32);
  if (product_places(&multiply->product, metadata, multiply->selector, places)) return true;
  hazard_report(warp, inst, 0, HAZARD_DESCRIPTOR, 0, 0, "the metadata of a sparse A does not name %s",
                product_places_rule(&multiply->product));
  return true;  // the hardware goes on with some of the elements
}

static void multiply_step(const Multiply *multiply, const uint8_t *first, const uint8_t *second,
                          const SparsePlaces *places, void *d) {
  ProductScratch *scratch = product_scratch();
  scratch->b_columns = 0;
  product_decode_a(&multiply->product, &scratch->a, multiply->first.lines, first, places);
  product_decode_b(&multiply->product, &scratch->b, multiply->second.lines, second);
  product_multiply(&multiply->product, &scratch->a, &scratch->b, d, multiply->d.elements, true);
}

static void multiply_tiles(Warp *warp, const Inst *inst, const Multiply *multiply, void *d) {
  const Fragment *first = &multiply->first, *second = &multiply->second;
  _Alignas(8) uint8_t a[MAX_TILE_BYTES], b[MAX_TILE_BYTES], a_half[MAX_TILE_BYTES], b_half[MAX_TILE_BYTES];
  SparsePlaces places;
  bool sparse = multiply->product.sparse;
  if (sparse && !find_places(warp, inst, multiply, &places)) return;
  fragment_to_tile(warp, first, a, row_major(first));
  fragment_to_tile(warp, second, b, row_major(second));
  if (multiply->steps == 1) {
    multiply_step(multiply, a, b, sparse ? &places : NULL, d);
    return;
  }
  for (int half = 0; half < 2; half++) {
    take_half(first, a, half, a_half);
    take_half(second, b, half, b_half);
    multiply_step(multiply, a_half, b_half, NULL, d);
  }
}

// With only one of C and D in f16, which wmma allows, the arithmetic is that of f32: C is widened before it, or D is
// rounded after it.
void multiply_fragments(Warp *warp, const Inst *inst, Mask mask) {
  const Multiply *multiply = inst->extra;
  u32 tile[MAX_LINES * MAX_COLUMNS];
  u16 halves[MAX_LINES * MAX_COLUMNS];
  const Fragment *c = &multiply->c, *d = &multiply->d;
  int count = d->lines * d->elements;
  bool wide = c->wide || d->wide;
  if (!fragment_whole_warp(warp, inst, mask)) return;
  fragment_to_tile(warp, c, c->wide ? (void *)tile : halves, row_major(c));
  for (int i = 0; i < count && wide && !c->wide; i++) tile[i] = f32_bits(f32_from_f16(halves[i]));
  multiply_tiles(warp, inst, multiply, wide ? (void *)tile : halves);
  for (int i = 0; i < count && wide && !d->wide; i++) halves[i] = f16_from_f32(f32_from_bits(tile[i]));
  fragment_from_tile(warp, d, d->wide ? (void *)tile : halves, row_major(d));
  warp_counts(warp, inst)->flops +=
      2u * (unsigned)(multiply->first.lines * multiply->second.lines * multiply->product.depth * multiply->steps);
}

// ---- decoding ----

// Which shapes exist, by A's type. PTX ISA table of mma's shapes; fp8 with a sparse A needs f32 accumulators.
static const struct {
  ElementType low, high;  // A's and B's types
  bool sparse;
  int m, k;
} mma_shapes[] = {
    {ELEMENT_F16, ELEMENT_BF16, false, 16, 8},   {ELEMENT_F16, ELEMENT_BF16, false, 16, 16},
    {ELEMENT_F16, ELEMENT_BF16, true, 16, 16},   {ELEMENT_F16, ELEMENT_BF16, true, 16, 32},
    {ELEMENT_TF32, ELEMENT_TF32, false, 16, 4},  {ELEMENT_TF32, ELEMENT_TF32, false, 16, 8},
    {ELEMENT_TF32, ELEMENT_TF32, true, 16, 8},   {ELEMENT_TF32, ELEMENT_TF32, true, 16, 16},
    {ELEMENT_E4M3, ELEMENT_E5M2, false, 16, 16}, {ELEMENT_E4M3, ELEMENT_E5M2, false, 16, 32},
    {ELEMENT_E4M3, ELEMENT_E5M2, true, 16, 64},  {ELEMENT_S8, ELEMENT_U8, false, 8, 16},
    {ELEMENT_S8, ELEMENT_U8, false, 16, 16},     {ELEMENT_S8, ELEMENT_U8, false, 16, 32},
    {ELEMENT_S8, ELEMENT_U8, true, 16, 32},      {ELEMENT_S8, ELEMENT_U8, true, 16, 64},
    {ELEMENT_S4, ELEMENT_U4, false, 8, 32},      {ELEMENT_S4, ELEMENT_U4, false, 16, 32},
    {ELEMENT_S4, ELEMENT_U4, false, 16, 64},     {ELEMENT_S4, ELEMENT_U4, true, 16, 64},
    {ELEMENT_S4, ELEMENT_U4, true, 16, 128},     {ELEMENT_B1, ELEMENT_B1, false, 8, 128},
    {ELEMENT_B1, ELEMENT_B1, false, 16, 128},    {ELEMENT_B1, ELEMENT_B1, false, 16, 256},
};

// The list of shapes for an error.
static DecodeResult wrong_mma_shape(Decoder *decoder, const PtxInstruction *source, ElementType a, bool sparse) {
  char list[120] = "";
  int used = 0;
  for (size_t i = 0; i < sizeof mma_shapes / sizeof *mma_shapes; i++)
    if (a >= mma_shapes[i].low && a <= mma_shapes[i].high && sparse == mma_shapes[i].sparse)
      used += snprintf(list + used, sizeof list - (size_t)used, "%s.m%dn8k%d", used ? " or " : "", mma_shapes[i].m,
                       mma_shapes[i].k);
  return decoder_error(decoder, source, "the shape must be %s", list);
}

static bool shape_exists(ElementType a, bool sparse, int m, int n, int k) {
  for (size_t i = 0; i < sizeof mma_shapes / sizeof *mma_shapes; i++)
    if (a >= mma_shapes[i].low && a <= mma_shapes[i].high && sparse == mma_shapes[i].sparse && m == mma_shapes[i].m &&
        n == 8 && k == mma_shapes[i].k)
      return true;
  return false;
}

// A and B may differ among FP8, and in sign.
static bool can_multiply(ElementType a, ElementType b) {
  static const ElementType low[] = {ELEMENT_E4M3, ELEMENT_S8, ELEMENT_S4};
  for (int i = 0; i < 3; i++)
    if (a >= low[i] && a <= low[i] + 1 && b >= low[i] && b <= low[i] + 1) return true;
  return a == b;
}

// The types of D, A, B and C that the arithmetic exists for.
static bool types_fit(const PtxInstruction *source, ElementType types[4], bool sparse) {
  if (element_types(source, types) != 4 || types[0] != types[3] || !can_multiply(types[1], types[2])) return false;
  ElementType d = types[0], a = types[1];
  if (element_is_integer(a)) return d == ELEMENT_S32;
  bool half_too = a == ELEMENT_F16 || ((a == ELEMENT_E4M3 || a == ELEMENT_E5M2) && !sparse);
  return a <= ELEMENT_E5M2 && (d == ELEMENT_F32 || (half_too && d == ELEMENT_F16));
}

// .row.col, in this order.
static bool layouts_fit(const PtxInstruction *source) {
  int count = 0, row = -1, col = -1;
  for (int m = 0; m < source->modifier_count; m++) {
    if (!strcmp(source->modifiers[m], "row")) row = count++;
    if (!strcmp(source->modifiers[m], "col")) col = count++;
  }
  return count == 2 && row == 0 && col == 1;
}

// .satfinite of integers; .xor.popc or .and.popc of single bits, and only of those.
static bool mma_options_fit(const PtxInstruction *source, ElementType a) {
  bool operation = ptx_has(source, "xor") != ptx_has(source, "and"), bits = a == ELEMENT_B1;
  bool any = ptx_has(source, "xor") || ptx_has(source, "and") || ptx_has(source, "popc");
  if (bits ? !operation || !ptx_has(source, "popc") : any) return false;
  return !ptx_has(source, "satfinite") || (element_is_integer(a) && !bits);
}

// The metadata register and the selector, which says whose registers of four lanes are used.
static bool decode_metadata(Decoder *decoder, const PtxInstruction *source, Multiply *multiply) {
  const PtxOperand *selector = &source->operands[5];
  int count = product_selectors(&multiply->product);
  multiply->metadata = decoder_source(decoder, &source->operands[4], PTX_B32);
  multiply->selector = (int)selector->value;
  if (selector->kind == PTX_OPERAND_INTEGER && selector->value >= 0 && selector->value < count) return true;
  decoder_error(decoder, source, "the sparsity selector is an immediate from 0 to %d", count - 1);
  return false;
}

static void plan_mma(const PtxInstruction *source, const ElementType types[4], int m, int k, bool sparse,
                     Multiply *multiply) {
  int a_units = k * element_bits(types[1]) / (sparse ? 32 : 16), b_units = k * element_bits(types[2]) / 16;
  bool wide = types[0] != ELEMENT_F16;
  multiply->product = (Product){.a = types[1],
                                .b = types[2],
                                .d = types[0],
                                .depth = k,
                                .sparse = sparse,
                                .saturate = ptx_has(source, "satfinite"),
                                .exclusive_or = ptx_has(source, "xor"),
                                .converted = types[1] == ELEMENT_E4M3 || types[1] == ELEMENT_E5M2};
  multiply->steps = 1;
  multiply->first = fragment_of(m, a_units, m, false);
  multiply->second = fragment_of(8, b_units, 8, false);
  multiply->c = multiply->d = fragment_of(m, 8, m, wide);
  if (types[0] == ELEMENT_S32) multiply->c.type = multiply->d.type = PTX_S32;
}

static int own_registers(const Fragment *fragment) { return fragment->block_count * (fragment->wide ? 2 : 1); }

// mma{.sp}.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype{.op.popc} d, a, b, c{, metadata, selector}
DecodeResult decode_mma(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {
      "sync", "aligned", "row", "col", "satfinite", "xor", "and", "popc", "sp", "sp::ordered_metadata", NULL};
  ElementType types[4] = {ELEMENT_F32};
  int m = 0, n = 0, k = 0;
  bool sparse = ptx_has(source, "sp") || ptx_has(source, "sp::ordered_metadata");
  bool doubles = element_types(source, types) == 4 && types[0] == ELEMENT_F64;
  int operands = sparse ? 6 : 4;
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, operands, operands))
    return DECODE_FAILED;
  shape_of(source, &m, &n, &k);
  if (!layouts_fit(source)) return decoder_error(decoder, source, "the layouts must be .row.col");
  if (doubles) return decode_multiply_f64(decoder, source, n == 8 && !sparse ? m : 0, k, inst);
  if (!types_fit(source, types, sparse))
    return decoder_error(decoder, source, "there is no product with these types of D, A, B and C");
  if (!shape_exists(types[1], sparse, m, n, k)) return wrong_mma_shape(decoder, source, types[1], sparse);
  if (!mma_options_fit(source, types[1]))
    return decoder_error(decoder, source, ".satfinite is for integers, .xor.popc or .and.popc for .b1");
  if (!element_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  Multiply *multiply = decoder_allocate(decoder, sizeof *multiply);
  plan_mma(source, types, m, k, sparse, multiply);
  inst->extra = multiply;
  inst->execute = multiply_fragments;
  const PtxOperand *o = source->operands;
  Fragment *const fragments[] = {&multiply->d, &multiply->first, &multiply->second, &multiply->c};
  for (int i = 0; i < 4; i++)
    if (!fragment_registers(decoder, source, &o[i], own_registers(fragments[i]), i == 0, fragments[i]))
      return DECODE_FAILED;
  return !sparse || decode_metadata(decoder, source, multiply) ? DECODED : DECODE_FAILED;
}
