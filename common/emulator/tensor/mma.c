// mma.sync, and the warp's matrix product that it shares with wmma. PTX ISA 9.7.15.5.
#include <string.h>

#include "../warp/float16.h"
#include "../warp/warp.h"
#include "families.h"
#include "multiply.h"

// ---- execution ----

enum { MAX_LINES = 32, MAX_ELEMENTS = 16 };

// Lines one after the other.
static Strides row_major(const Fragment *fragment) { return (Strides){.line = fragment->elements, .element = 1}; }

static void read_operands(Warp *warp, const Multiply *multiply, TensorA *a, TensorB *b) {
  const Fragment *first = &multiply->first, *second = &multiply->second;
  u16 tile[MAX_LINES * MAX_ELEMENTS];
  int depth = first->elements;
  fragment_to_tile(warp, first, tile, row_major(first));
  tensor_decode_a(a, multiply->format, first->lines, depth, tile, depth, 1, false);
  fragment_to_tile(warp, second, tile, row_major(second));
  tensor_decode_b(b, multiply->format, second->lines, depth, tile, 1, depth, false);
}

static void multiply_f16(Warp *warp, const Multiply *multiply, const TensorA *a, const TensorB *b) {
  u16 tile[MAX_LINES * MAX_ELEMENTS];
  Strides strides = row_major(&multiply->d);
  fragment_to_tile(warp, &multiply->c, tile, strides);
  tensor_step_f16(a, b, tile, strides.line, true);
  fragment_from_tile(warp, &multiply->d, tile, strides);
}

// With only one of C and D in f16, which wmma allows, the arithmetic is that of f32: C is widened before it, or D is
// rounded after it.
static void multiply_f32(Warp *warp, const Multiply *multiply, const TensorA *a, const TensorB *b) {
  f32 tile[MAX_LINES * MAX_ELEMENTS];
  u16 halves[MAX_LINES * MAX_ELEMENTS];
  int count = multiply->d.lines * multiply->d.elements;
  Strides strides = row_major(&multiply->d);
  fragment_to_tile(warp, &multiply->c, multiply->c.wide ? (void *)tile : halves, strides);
  for (int i = 0; i < count && !multiply->c.wide; i++) tile[i] = f32_from_f16(halves[i]);
  tensor_step_f32(a, b, tile, strides.line, true);
  for (int i = 0; i < count && !multiply->d.wide; i++) halves[i] = f16_from_f32(tile[i]);
  fragment_from_tile(warp, &multiply->d, multiply->d.wide ? (void *)tile : halves, strides);
}

void multiply_fragments(Warp *warp, const Inst *inst, Mask mask) {
  const Multiply *multiply = inst->extra;
  TensorA a;
  TensorB b;
  if (!fragment_whole_warp(warp, inst, mask)) return;
  read_operands(warp, multiply, &a, &b);
  if (multiply->c.wide || multiply->d.wide)
    multiply_f32(warp, multiply, &a, &b);
  else
    multiply_f16(warp, multiply, &a, &b);
  warp_counts(warp, inst)->flops +=
      2u * (unsigned)(multiply->first.lines * multiply->second.lines * multiply->first.elements);
}

// ---- decoding ----

// The types of D, A, B and C that the arithmetic exists for.
static bool types_fit(const PtxInstruction *source, PtxType types[4]) {
  if (fragment_types(source, types) != 4 || types[0] != types[3] || types[1] != types[2]) return false;
  if (types[1] == PTX_F16) return types[0] == PTX_F16 || types[0] == PTX_F32;
  return types[1] == PTX_BF16 && types[0] == PTX_F32;
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

// mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype d, a, b, c
DecodeResult decode_mma(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const shapes[] = {"m16n8k8", "m16n8k16", NULL};
  static const char *const allowed[] = {"sync", "aligned", "m16n8k8", "m16n8k16", "row", "col", NULL};
  PtxType types[4];
  int shape = fragment_modifier(source, shapes), k_blocks = shape + 1;
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, 4, 4)) return DECODE_FAILED;
  if (!types_fit(source, types))
    return decoder_error(decoder, source, "the types must be .f32.f16.f16.f32, .f16.f16.f16.f16 or .f32.bf16.bf16.f32");
  if (shape < 0) return decoder_error(decoder, source, "the shape must be .m16n8k8 or .m16n8k16");
  if (!layouts_fit(source)) return decoder_error(decoder, source, "the layouts must be .row.col");
  if (!decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  Multiply *multiply = decoder_allocate(decoder, sizeof *multiply);
  bool wide = types[0] == PTX_F32;
  const PtxOperand *operands = source->operands;
  multiply->format = types[1] == PTX_F16 ? TENSOR_F16 : TENSOR_BF16;
  multiply->first = fragment_of(16, 8 * k_blocks, 16, false);
  multiply->second = fragment_of(8, 8 * k_blocks, 8, false);
  multiply->c = multiply->d = fragment_of(16, 8, 16, wide);
  inst->extra = multiply;
  inst->execute = multiply_fragments;
  bool fit = fragment_registers(decoder, source, &operands[0], wide ? 4 : 2, true, &multiply->d) &&
             fragment_registers(decoder, source, &operands[1], 2 * k_blocks, false, &multiply->first) &&
             fragment_registers(decoder, source, &operands[2], k_blocks, false, &multiply->second) &&
             fragment_registers(decoder, source, &operands[3], wide ? 4 : 2, false, &multiply->c);
  return fit ? DECODED : DECODE_FAILED;
}
