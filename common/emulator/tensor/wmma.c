// wmma.load, wmma.store, wmma.mma: matrices of 16-bit or f32 elements whose layout in registers is the machine's own
// business. PTX ISA 9.7.15.4.
//
// The layout here is that of nvcc's code for sm_90a: the fragments of two mma.m16n8k16, which make m16n16k16 or
// m32n8k16; m8n32k16 is computed as the product of the columns of B with the rows of A.
#include <string.h>

#include "../check/hazard.h"
#include "../warp/lanes.h"
#include "../warp/operands.h"
#include "families.h"
#include "multiply.h"

enum { DEPTH = 16, POINTER_ALIGNMENT = 32, PITCH_ALIGNMENT = 16 };

static const char *const shapes[] = {"m16n16k16", "m32n8k16", "m8n32k16", NULL};
static const int shape_rows[] = {16, 32, 8}, shape_columns[] = {16, 8, 32};

// A load or store.
typedef struct WmmaMove {
  AddressPlan address;
  Space space;
  Slot stride;  // from one row (.row) or column (.col) in memory to the next, in elements
  int size;     // bytes of an element
  bool across;  // what is contiguous in memory are not lines of the fragment but their first elements, second, ...
  int blocks_at_once;  // in one request
  Fragment fragment;
} WmmaMove;

// ---- execution ----

// All lanes must give the same address and stride. Lane 0's are used.
static void check_lanes(Warp *warp, const Inst *inst, const uint64_t addresses[LANES], const u32 *strides) {
  for (int lane = 1; lane < LANES; lane++) {
    if (addresses[lane] == addresses[0] && strides[lane] == strides[0]) continue;
    hazard_report(warp, inst, lane, HAZARD_DIVERGENT_ALIGNED, addresses[lane], 0,
                  "lane %d gives address 0x%llx and stride %u, lane 0 0x%llx and %u: they must be the same", lane,
                  (unsigned long long)addresses[lane], strides[lane], (unsigned long long)addresses[0], strides[0]);
    return;
  }
}

// The alignment that load_matrix_sync asks for in the CUDA C++ programming guide. The accesses themselves need less.
static void check_alignment(Warp *warp, const Inst *inst, uint64_t base, u32 stride, int size) {
  if (base % POINTER_ALIGNMENT)
    hazard_report(warp, inst, 0, HAZARD_MISALIGNED, base, 0, "the matrix's address is no multiple of %d",
                  POINTER_ALIGNMENT);
  else if ((uint64_t)stride * (uint64_t)size % PITCH_ALIGNMENT)
    hazard_report(warp, inst, 0, HAZARD_MISALIGNED, base, 0,
                  "the leading dimension of %u elements is no multiple of %d", stride, PITCH_ALIGNMENT / size);
}

// The matrix's address and the bytes from one of its rows or columns to the next.
static void find_matrix(Warp *warp, const Inst *inst, const WmmaMove *move, uint64_t *base, uint64_t *pitch) {
  uint64_t addresses[LANES];
  const u32 *strides = SLOT(warp, move->stride, const u32);
  form_addresses(warp, &move->address, FULL_MASK, addresses);
  *base = addresses[0];
  *pitch = (uint64_t)strides[0] * (uint64_t)move->size;
  check_lanes(warp, inst, addresses, strides);
  check_alignment(warp, inst, *base, strides[0], move->size);
}

// A tile as it lies in memory, packed.
static Strides tile_strides(const WmmaMove *move) {
  return move->across ? (Strides){.line = 1, .element = move->fragment.lines}
                      : (Strides){.line = move->fragment.elements, .element = 1};
}

// Adds to the request the memory rows first, first + step, ... of one block, which are a unit or, of f32, two.
static void add_block(Request *request, const WmmaMove *move, int block, int first, int step, uint64_t base,
                      uint64_t pitch, uint8_t *tile) {
  const Fragment *fragment = &move->fragment;
  int line = fragment->blocks[block].line, element = fragment->blocks[block].element;
  int row = move->across ? element : line, column = move->across ? line : element;
  int row_bytes = (move->across ? fragment->lines : fragment->elements) * move->size;
  for (int r = row + first; r < row + BLOCK; r += step)
    for (int at = column * move->size; at < (column + BLOCK) * move->size; at += UNIT_BYTES) {
      int lane = __builtin_popcount(request->lanes);
      request->addresses[lane] = base + (uint64_t)r * pitch + (uint64_t)at;
      request->bytes[lane] = tile + r * row_bytes + at;
      request->lanes |= 1u << lane;
    }
}

// Moves the whole tile, in the requests that nvcc's code makes. f32 across lines take two for each block: in one
// register a lane has an even element, in the other an odd one.
static bool move_tile(Warp *warp, const Inst *inst, const WmmaMove *move, AccessKind kind, uint8_t *tile) {
  uint64_t base, pitch;
  find_matrix(warp, inst, move, &base, &pitch);
  int step = move->across && move->fragment.wide ? 2 : 1, count = move->fragment.block_count;
  for (int block = 0; block < count; block += move->blocks_at_once)
    for (int first = 0; first < step; first++) {
      Request request = {.space = move->space, .kind = kind};
      for (int b = block; b < block + move->blocks_at_once && b < count; b++)
        add_block(&request, move, b, first, step, base, pitch, tile);
      if (!fragment_access(warp, inst, &request)) return false;
    }
  return true;
}

static void load(Warp *warp, const Inst *inst, Mask mask) {
  const WmmaMove *move = inst->extra;
  _Alignas(UNIT_BYTES) uint8_t tile[MAX_TILE_BYTES];
  if (!fragment_whole_warp(warp, inst, mask) || !move_tile(warp, inst, move, ACCESS_READ, tile)) return;
  fragment_from_tile(warp, &move->fragment, tile, tile_strides(move));
}

static void store(Warp *warp, const Inst *inst, Mask mask) {
  const WmmaMove *move = inst->extra;
  _Alignas(UNIT_BYTES) uint8_t tile[MAX_TILE_BYTES];
  if (!fragment_whole_warp(warp, inst, mask)) return;
  fragment_to_tile(warp, &move->fragment, tile, tile_strides(move));
  move_tile(warp, inst, move, ACCESS_WRITE, tile);
}

// ---- decoding ----

// m8n32k16 has its parts exchanged: multiply.h.
static bool is_exchanged(int shape) { return shape_rows[shape] < 16; }

// The fragment of operand 'a', 'b', 'c' or 'd'.
static Fragment operand_fragment(char operand, int shape, bool wide) {
  int rows = shape_rows[shape], columns = shape_columns[shape];
  if (operand == 'a') return fragment_of(rows, DEPTH, rows < 16 ? 8 : 16, false);
  if (operand == 'b') return fragment_of(columns, DEPTH, columns <= 16 ? 8 : 16, false);
  return is_exchanged(shape) ? fragment_of(columns, rows, 16, wide) : fragment_of(rows, columns, 16, wide);
}

// How many registers nvcc's fragments have. Those of A and B in f16 are 8 in every shape, as on sm_70.
static int declared_registers(char operand, const Fragment *fragment, PtxType type) {
  bool input = operand == 'a' || operand == 'b';
  return input && type == PTX_F16 ? MAX_REGISTERS : fragment->block_count * (fragment->wide ? 2 : 1);
}

// Whether lines of the fragment are rows of the matrix.
static bool lines_are_rows(char operand, int shape) {
  return operand == 'a' || (operand != 'b' && !is_exchanged(shape));
}

// The operand that a load or store moves: load.a load.b load.c store.d; 0 when it is none of them.
static char moved_operand(const PtxInstruction *source, bool is_load) {
  static const char *const operands[] = {"a", "b", "c", "d", NULL};
  int index = fragment_modifier(source, operands);
  return index < 0 || (index < 3) != is_load ? 0 : *operands[index];
}

static bool moved_type_fits(const PtxInstruction *source, char operand, PtxType *type) {
  PtxType types[4];
  if (fragment_types(source, types) != 1) return false;
  *type = types[0];
  return *type == PTX_F16 || *type == (operand == 'a' || operand == 'b' ? PTX_BF16 : PTX_F32);
}

static void plan_move(Decoder *decoder, const PtxInstruction *source, char operand, int shape, bool is_row,
                      WmmaMove *move) {
  const Fragment *fragment = &move->fragment;
  bool input = operand == 'a' || operand == 'b';
  move->size = fragment->wide ? 4 : 2;
  move->space = space_of(source);
  move->across = is_row != lines_are_rows(operand, shape);
  // nvcc loads inputs from .shared with ldmatrix, up to four blocks at a time, and all else block by block.
  move->blocks_at_once = input && move->space == SPACE_SHARED ? 4 : 1;
  uint64_t packed = (uint64_t)(move->across ? fragment->lines : fragment->elements);
  move->stride = source->operand_count == 3 ? decoder_source(decoder, &source->operands[2], PTX_B32)
                                            : decoder_constant(decoder, packed, 4);
}

// wmma.load.a.sync.aligned.layout.shape{.space}.type r, [p] {, stride}, and wmma.store.d with r and [p] exchanged
static DecodeResult decode_transfer(Decoder *decoder, const PtxInstruction *source, bool is_load, Inst *inst) {
  const char *const allowed[] = {is_load ? "load" : "store",
                                 "a",
                                 "b",
                                 "c",
                                 "d",
                                 "sync",
                                 "aligned",
                                 "global",
                                 "shared",
                                 "shared::cta",
                                 "row",
                                 "col",
                                 "m16n16k16",
                                 "m32n8k16",
                                 "m8n32k16",
                                 NULL};
  static const char *const layouts[] = {"row", "col", NULL};
  int shape = fragment_modifier(source, shapes), layout = fragment_modifier(source, layouts);
  char operand = moved_operand(source, is_load);
  PtxType type;
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, 2, 3)) return DECODE_FAILED;
  if (!operand) return decoder_error(decoder, source, "must be wmma.load.a, .load.b, .load.c or wmma.store.d");
  if (!moved_type_fits(source, operand, &type))
    return decoder_error(decoder, source, "the type must be .f16 or, of %s",
                         operand <= 'b' ? "a and b, .bf16" : "c and d, .f32");
  if (shape < 0) return decoder_error(decoder, source, "the shape must be .m16n16k16, .m32n8k16 or .m8n32k16");
  if (layout < 0) return decoder_error(decoder, source, "needs one of .row .col");
  if (!decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  WmmaMove *move = decoder_allocate(decoder, sizeof *move);
  move->fragment = operand_fragment(operand, shape, type == PTX_F32);
  plan_move(decoder, source, operand, shape, layout == 0, move);
  inst->extra = move;
  inst->execute = is_load ? load : store;
  int count = declared_registers(operand, &move->fragment, type);
  if (!fragment_registers(decoder, source, &source->operands[!is_load], count, is_load, &move->fragment))
    return DECODE_FAILED;
  return decode_address_plan(decoder, source, &source->operands[is_load], move->space, &move->address);
}

// D's and C's types follow each other for f16 inputs; for bf16 all four types are written.
static bool multiply_types_fit(const PtxInstruction *source, PtxType *d, PtxType *input, PtxType *c) {
  PtxType types[4] = {PTX_NO_TYPE};
  int count = fragment_types(source, types);
  *d = types[0];
  *input = count == 4 ? PTX_BF16 : PTX_F16;
  *c = types[count == 4 ? 3 : 1];
  if (count == 4) return *d == PTX_F32 && *c == PTX_F32 && types[1] == PTX_BF16 && types[2] == PTX_BF16;
  return count == 2 && (*d == PTX_F16 || *d == PTX_F32) && (*c == PTX_F16 || *c == PTX_F32);
}

// The layouts of A and B, which the loads have dealt with already.
static bool has_two_layouts(const PtxInstruction *source) {
  int count = 0;
  for (int m = 0; m < source->modifier_count; m++)
    count += !strcmp(source->modifiers[m], "row") || !strcmp(source->modifiers[m], "col");
  return count == 2;
}

// wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype d, a, b, c, and .shape.f32.bf16.bf16.f32
DecodeResult decode_wmma_mma(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"mma",       "sync",     "aligned",  "row", "col",
                                        "m16n16k16", "m32n8k16", "m8n32k16", NULL};
  int shape = fragment_modifier(source, shapes);
  PtxType d, input, c;
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, 4, 4)) return DECODE_FAILED;
  if (!multiply_types_fit(source, &d, &input, &c))
    return decoder_error(decoder, source, "the types must be .f32 or .f16 of D and of C, or .f32.bf16.bf16.f32");
  if (shape < 0) return decoder_error(decoder, source, "the shape must be .m16n16k16, .m32n8k16 or .m8n32k16");
  if (!has_two_layouts(source)) return decoder_error(decoder, source, "needs .row or .col for A and for B");
  if (!decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  Multiply *multiply = decoder_allocate(decoder, sizeof *multiply);
  Fragment *a = is_exchanged(shape) ? &multiply->second : &multiply->first;
  Fragment *b = is_exchanged(shape) ? &multiply->first : &multiply->second;
  multiply->format = input == PTX_F16 ? TENSOR_F16 : TENSOR_BF16;
  *a = operand_fragment('a', shape, false);
  *b = operand_fragment('b', shape, false);
  multiply->c = operand_fragment('c', shape, c == PTX_F32);
  multiply->d = operand_fragment('d', shape, d == PTX_F32);
  inst->extra = multiply;
  inst->execute = multiply_fragments;
  const PtxOperand *operands = source->operands;
  bool fit =
      fragment_registers(decoder, source, &operands[0], declared_registers('d', &multiply->d, d), true, &multiply->d) &&
      fragment_registers(decoder, source, &operands[1], declared_registers('a', a, input), false, a) &&
      fragment_registers(decoder, source, &operands[2], declared_registers('b', b, input), false, b) &&
      fragment_registers(decoder, source, &operands[3], declared_registers('c', &multiply->c, c), false, &multiply->c);
  return fit ? DECODED : DECODE_FAILED;
}

DecodeResult decode_wmma_load(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, true, inst);
}

DecodeResult decode_wmma_store(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, false, inst);
}
