// wmma.load, wmma.store, wmma.mma: matrices whose layout in registers is the machine's own business. PTX ISA 9.7.15.4.
//
// The layout here is that of nvcc's code for sm_90a: the fragments of two mma.m16n8kK, which make m16n16kK or m32n8k16;
// m8n32k16 is computed as the product of the columns of B with the rows of A. The m8n8 shapes are those of mma.
#include <string.h>

#include "../report/hazard.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "families.h"
#include "product.h"

enum { POINTER_ALIGNMENT = 32, PITCH_ALIGNMENT = 16 };

// Inputs from `low` to `high` have this shape.
typedef struct WmmaShape {
  ElementType low, high;
  int m, n, k;
} WmmaShape;

static const WmmaShape wmma_shapes[] = {
    {ELEMENT_F16, ELEMENT_BF16, 16, 16, 16}, {ELEMENT_F16, ELEMENT_BF16, 32, 8, 16},
    {ELEMENT_F16, ELEMENT_BF16, 8, 32, 16},  {ELEMENT_TF32, ELEMENT_TF32, 16, 16, 8},
    {ELEMENT_S8, ELEMENT_U8, 16, 16, 16},    {ELEMENT_S8, ELEMENT_U8, 32, 8, 16},
    {ELEMENT_S8, ELEMENT_U8, 8, 32, 16},     {ELEMENT_S4, ELEMENT_U4, 8, 8, 32},
    {ELEMENT_B1, ELEMENT_B1, 8, 8, 128},     {ELEMENT_F64, ELEMENT_F64, 8, 8, 4},
};

// A load or store.
typedef struct WmmaMove {
  AddressPlan address;
  Space space;
  Slot stride;        // from one row (.row) or column (.col) in memory to the next, in elements
  int bits;           // of an element
  bool stride_given;  // or else lines are packed
  bool across;  // what is contiguous in memory are not lines of the fragment but their first elements, second, ...
  int blocks_at_once;  // in one request
  Fragment fragment;
  // Inputs that do not have 16 bits, and f64, move in whole rows of memory:
  bool in_rows;
  int rows, row_bytes;
  bool doubles;
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
static void check_alignment(Warp *warp, const Inst *inst, const WmmaMove *move, uint64_t base, u32 stride) {
  if (base % POINTER_ALIGNMENT)
    hazard_report(warp, inst, 0, HAZARD_MISALIGNED, base, 0, "the matrix's address is not a multiple of %d",
                  POINTER_ALIGNMENT);
  else if (move->stride_given && (uint64_t)stride * (uint64_t)move->bits / 8 % PITCH_ALIGNMENT)
    hazard_report(warp, inst, 0, HAZARD_MISALIGNED, base, 0,
                  "the leading dimension of %u elements is not a multiple of %d", stride,
                  PITCH_ALIGNMENT * 8 / move->bits);
}

// The matrix's address and the bytes from one of its rows or columns to the next.
static void find_matrix(Warp *warp, const Inst *inst, const WmmaMove *move, uint64_t *base, uint64_t *pitch) {
  uint64_t addresses[LANES];
  const u32 *strides = SLOT(warp, move->stride, const u32);
  form_addresses(warp, &move->address, FULL_MASK, addresses);
  *base = addresses[0];
  *pitch = (uint64_t)strides[0] * (uint64_t)move->bits / 8;
  check_lanes(warp, inst, addresses, strides);
  check_alignment(warp, inst, move, *base, strides[0]);
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
  int size = move->bits / 8, row_bytes = (move->across ? fragment->lines : fragment->elements) * size;
  for (int r = row + first; r < row + BLOCK; r += step)
    for (int at = column * size; at < (column + BLOCK) * size; at += UNIT_BYTES) {
      int lane = __builtin_popcount(request->lanes);
      request->addresses[lane] = base + (uint64_t)r * pitch + (uint64_t)at;
      request->bytes[lane] = tile + r * row_bytes + at;
      request->lanes |= 1u << lane;
    }
}

// Moves whole rows, as many as 32 lanes can.
static bool move_rows(Warp *warp, const Inst *inst, const WmmaMove *move, AccessKind kind, uint64_t base,
                      uint64_t pitch, uint8_t *tile) {
  int unit = move->row_bytes < UNIT_BYTES ? move->row_bytes : UNIT_BYTES, units = move->rows * move->row_bytes / unit;
  for (int first = 0; first < units; first += LANES) {
    Request request = {.space = move->space, .kind = kind, .bytes_each = unit};
    for (int lane = 0; lane < LANES && first + lane < units; lane++) {
      int at = (first + lane) * unit;
      request.addresses[lane] = base + (uint64_t)(at / move->row_bytes) * pitch + (uint64_t)(at % move->row_bytes);
      request.bytes[lane] = tile + at;
      request.lanes |= 1u << lane;
    }
    if (!fragment_access(warp, inst, &request)) return false;
  }
  return true;
}

// Moves the whole tile, in the requests that nvcc's code makes. f32 across lines take two for each block: in one
// register a lane has an even element, in the other an odd one.
static bool move_tile(Warp *warp, const Inst *inst, const WmmaMove *move, AccessKind kind, uint8_t *tile) {
  uint64_t base, pitch;
  find_matrix(warp, inst, move, &base, &pitch);
  if (move->in_rows) return move_rows(warp, inst, move, kind, base, pitch, tile);
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

// Turns rows of memory into lines of the fragment, or back.
static void transpose(const WmmaMove *move, const uint8_t *from, uint8_t *to, bool to_lines) {
  int size = move->bits / 8, columns = move->row_bytes / size;
  for (int r = 0; r < move->rows; r++)
    for (int c = 0; c < columns; c++) {
      int in_memory = (r * columns + c) * size, in_lines = (c * move->rows + r) * size;
      memcpy(to + (to_lines ? in_lines : in_memory), from + (to_lines ? in_memory : in_lines), (size_t)size);
    }
}

// Element r of a lane, in its line and in its register.
static double *double_at(Warp *warp, const WmmaMove *move, uint8_t *lines, int r, int lane, double **in_register) {
  int own = move->fragment.register_count, elements = move->fragment.elements;  // 1 and 4, or 2 and 8
  *in_register = SLOT(warp, move->fragment.registers[r], double) + lane;
  return (double *)(void *)lines + lane / 4 * elements + lane % 4 * own + r;
}

static void move_lines(Warp *warp, const WmmaMove *move, uint8_t *lines, bool to_registers) {
  const Fragment *fragment = &move->fragment;
  Strides straight = {.line = fragment->elements, .element = 1};
  if (move->doubles) {
    for (int r = 0; r < fragment->register_count; r++)
      for (int lane = 0; lane < LANES; lane++) {
        double *in_register, *in_line = double_at(warp, move, lines, r, lane, &in_register);
        *(to_registers ? in_register : in_line) = to_registers ? *in_line : *in_register;
      }
  } else if (to_registers) {
    fragment_from_tile(warp, fragment, lines, straight);
  } else {
    fragment_to_tile(warp, fragment, lines, straight);
  }
}

static void execute_wmma_load(Warp *warp, const Inst *inst, Mask mask) {
  const WmmaMove *move = inst->extra;
  _Alignas(UNIT_BYTES) uint8_t tile[MAX_TILE_BYTES], lines[MAX_TILE_BYTES];
  if (!fragment_whole_warp(warp, inst, mask) || !move_tile(warp, inst, move, ACCESS_READ, tile)) return;
  if (!move->in_rows) {
    fragment_from_tile(warp, &move->fragment, tile, tile_strides(move));
    return;
  }
  if (move->across) transpose(move, tile, lines, true);
  move_lines(warp, move, move->across ? lines : tile, true);
}

static void execute_wmma_store(Warp *warp, const Inst *inst, Mask mask) {
  const WmmaMove *move = inst->extra;
  _Alignas(UNIT_BYTES) uint8_t tile[MAX_TILE_BYTES], lines[MAX_TILE_BYTES];
  if (!fragment_whole_warp(warp, inst, mask)) return;
  if (move->in_rows) {
    move_lines(warp, move, move->across ? lines : tile, false);
    if (move->across) transpose(move, lines, tile, false);
  } else {
    fragment_to_tile(warp, &move->fragment, tile, tile_strides(move));
  }
  move_tile(warp, inst, move, ACCESS_WRITE, tile);
}

// ---- decoding ----

// m8n32k16 has its parts exchanged: multiply.h.
static bool is_exchanged(const WmmaShape *shape) { return shape->n == 32; }

// The shape of an instruction whose inputs are of a type; NULL when there is none.
static const WmmaShape *find_shape(const PtxInstruction *source, ElementType input) {
  int m, n, k;
  if (!shape_of(source, &m, &n, &k)) return NULL;
  for (size_t i = 0; i < sizeof wmma_shapes / sizeof *wmma_shapes; i++)
    if (m == wmma_shapes[i].m && n == wmma_shapes[i].n && k == wmma_shapes[i].k && input >= wmma_shapes[i].low &&
        input <= wmma_shapes[i].high)
      return &wmma_shapes[i];
  return NULL;
}

static int line_group(int lines, int largest) { return lines < largest ? lines : largest; }

// The fragment of operand 'a', 'b', 'c' or 'd'.
static Fragment operand_fragment(char operand, const WmmaShape *shape, ElementType type) {
  int m = shape->m, n = shape->n, units = shape->k * element_bits(type) / 16;
  bool wide = element_bits(type) == 32;
  if (operand == 'a') return fragment_of(m, units, line_group(m, 16), false);
  if (operand == 'b') return fragment_of(n, units, n <= 16 ? 8 : 16, false);
  Fragment fragment = is_exchanged(shape) ? fragment_of(n, m, 16, wide) : fragment_of(m, n, line_group(m, 16), wide);
  if (type == ELEMENT_S32) fragment.type = PTX_S32;
  return fragment;
}

// m8n8k4: a lane has A's and B's element (lane / 4, lane % 4), and two neighbours of C and D.
static Fragment fragment_of_doubles(char operand) {
  return (Fragment){.lines = 8, .elements = operand <= 'b' ? 4 : 8, .type = PTX_F64};
}

// How many registers nvcc's fragments have. Those of A and B in f16 are 8 in every shape, as on sm_70.
static int declared_registers(char operand, const Fragment *fragment, ElementType type) {
  bool input = operand == 'a' || operand == 'b';
  if (type == ELEMENT_F64) return input ? 1 : 2;
  return input && type == ELEMENT_F16 ? MAX_REGISTERS : fragment->block_count * (fragment->wide ? 2 : 1);
}

// Whether lines of the fragment are rows of the matrix.
static bool lines_are_rows(char operand, const WmmaShape *shape) {
  return operand == 'a' || (operand != 'b' && !is_exchanged(shape));
}

// The operand that a load or store moves: load.a load.b load.c store.d; 0 when it is none of them.
static char moved_operand(const PtxInstruction *source, bool is_load) {
  static const char *const operands[] = {"a", "b", "c", "d", NULL};
  int index = fragment_modifier(source, operands);
  return index < 0 || (index < 3) != is_load ? 0 : *operands[index];
}

static bool is_accumulator_of(ElementType type, const WmmaShape *shape) {
  if (shape->low == ELEMENT_F64) return type == ELEMENT_F64;
  if (element_is_integer(shape->low)) return type == ELEMENT_S32;
  return type == ELEMENT_F32 || (type == ELEMENT_F16 && shape->low == ELEMENT_F16);
}

// The shape of a load or store of the operand; NULL when there is none with its type.
static const WmmaShape *moved_shape(const PtxInstruction *source, char operand, ElementType type) {
  if (operand <= 'b') return find_shape(source, type);
  int m, n, k;
  if (!shape_of(source, &m, &n, &k)) return NULL;
  for (size_t i = 0; i < sizeof wmma_shapes / sizeof *wmma_shapes; i++)
    if (m == wmma_shapes[i].m && n == wmma_shapes[i].n && k == wmma_shapes[i].k &&
        is_accumulator_of(type, &wmma_shapes[i]))
      return &wmma_shapes[i];
  return NULL;
}

static void plan_move(Decoder *decoder, const PtxInstruction *source, char operand, const WmmaShape *shape,
                      ElementType type, bool is_row, WmmaMove *move) {
  bool input = operand == 'a' || operand == 'b';
  int lines = operand == 'b' || (!input && is_exchanged(shape)) ? shape->n : shape->m;
  int along = input ? shape->k : is_exchanged(shape) ? shape->m : shape->n;
  move->doubles = type == ELEMENT_F64;
  move->fragment = move->doubles ? fragment_of_doubles(operand) : operand_fragment(operand, shape, type);
  move->bits = element_bits(type);
  move->space = space_of(source);
  move->across = is_row != lines_are_rows(operand, shape);
  move->in_rows = move->bits != 16 && (input || move->doubles);
  move->rows = move->across ? along : lines;
  move->row_bytes = (move->across ? lines : along) * move->bits / 8;
  // nvcc loads inputs from .shared with ldmatrix, up to four blocks at a time, and all else block by block.
  move->blocks_at_once = input && move->space == SPACE_SHARED ? 4 : 1;
  move->stride_given = source->operand_count == 3;
  move->stride = move->stride_given ? decoder_source(decoder, &source->operands[2], PTX_B32)
                                    : decoder_constant(decoder, (uint64_t)(move->across ? lines : along), 4);
}

// wmma.load.a.sync.aligned.layout.shape{.space}.type r, [p] {, stride}, and wmma.store.d with r and [p] exchanged
static DecodeResult decode_wmma_transfer(Decoder *decoder, const PtxInstruction *source, bool is_load, Inst *inst) {
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
                                 NULL};
  static const char *const layouts[] = {"row", "col", NULL};
  int layout = fragment_modifier(source, layouts);
  char operand = moved_operand(source, is_load);
  ElementType types[4];
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, 2, 3)) return DECODE_FAILED;
  if (!operand) return decoder_error(decoder, source, "must be wmma.load.a, .load.b, .load.c or wmma.store.d");
  const WmmaShape *shape = element_types(source, types) == 1 ? moved_shape(source, operand, types[0]) : NULL;
  if (!shape) return decoder_error(decoder, source, "there is no such shape with this type of %c", operand);
  bool sub_byte = operand <= 'b' && element_bits(types[0]) < 8;
  if (layout < 0) return decoder_error(decoder, source, "needs one of .row .col");
  if (sub_byte && (layout == 0) != (operand == 'a'))
    return decoder_error(decoder, source, "elements below a byte need .row of a and .col of b");
  if (!element_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  WmmaMove *move = decoder_allocate(decoder, sizeof *move);
  plan_move(decoder, source, operand, shape, types[0], layout == 0, move);
  inst->extra = move;
  inst->execute = is_load ? execute_wmma_load : execute_wmma_store;
  int count = declared_registers(operand, &move->fragment, types[0]);
  if (!fragment_registers(decoder, source, &source->operands[!is_load], count, is_load, &move->fragment))
    return DECODE_FAILED;
  return decode_address_plan(decoder, source, &source->operands[is_load], move->space, &move->address);
}

// Which of D's, A's, B's and C's types an instruction names: f16 inputs are not written, D and C then follow each
// other.
static bool multiply_types(const PtxInstruction *source, ElementType types[4]) {
  int count = element_types(source, types);
  if (count == 2) {
    types[3] = types[1];
    types[1] = types[2] = ELEMENT_F16;
    return types[0] <= ELEMENT_F32 && types[3] <= ELEMENT_F32;
  }
  return count == 4 && types[1] == types[2] && types[0] == types[3] && types[1] != ELEMENT_F16;
}

// The layouts of A and B, which the loads have dealt with already; elements below a byte have but one.
static bool has_two_layouts(const PtxInstruction *source, ElementType input) {
  int count = 0;
  const char *layouts[2] = {"", ""};
  for (int m = 0; m < source->modifier_count; m++)
    if ((!strcmp(source->modifiers[m], "row") || !strcmp(source->modifiers[m], "col")) && count++ < 2)
      layouts[count - 1] = source->modifiers[m];
  if (element_bits(input) < 8 && (*layouts[0] != 'r' || *layouts[1] != 'c')) return false;
  return count == 2;
}

// .satfinite of integers; .xor.popc or .and.popc of single bits.
static bool wmma_options_fit(const PtxInstruction *source, ElementType input) {
  bool popc = ptx_has(source, "popc"), one = ptx_has(source, "xor") != ptx_has(source, "and");
  if (popc != (input == ELEMENT_B1) || (popc && !one)) return false;
  if (!popc && (ptx_has(source, "xor") || ptx_has(source, "and"))) return false;
  return !ptx_has(source, "satfinite") || (element_is_integer(input) && !popc);
}

static void plan_wmma(const PtxInstruction *source, const ElementType types[4], const WmmaShape *shape,
                      Multiply *multiply) {
  Fragment *a = is_exchanged(shape) ? &multiply->second : &multiply->first;
  Fragment *b = is_exchanged(shape) ? &multiply->first : &multiply->second;
  // nvcc makes tf32's k8 of two k4.
  multiply->steps = types[1] == ELEMENT_TF32 ? 2 : 1;
  multiply->product = (Product){.a = types[1],
                                .b = types[2],
                                .d = types[0] == ELEMENT_F16 && types[3] == ELEMENT_F32 ? ELEMENT_F32 : types[0],
                                .depth = shape->k / multiply->steps,
                                .saturate = ptx_has(source, "satfinite"),
                                .exclusive_or = ptx_has(source, "xor")};
  *a = operand_fragment('a', shape, types[1]);
  *b = operand_fragment('b', shape, types[1]);
  multiply->c = operand_fragment('c', shape, types[3]);
  multiply->d = operand_fragment('d', shape, types[0]);
}

// wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype d, a, b, c, and with all four types: .shape.f32.bf16.bf16.f32
DecodeResult decode_wmma_mma(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"mma",       "sync", "aligned", "row",  "col",
                                        "satfinite", "xor",  "and",     "popc", NULL};
  ElementType types[4] = {ELEMENT_F32};
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, 4, 4)) return DECODE_FAILED;
  if (!multiply_types(source, types))
    return decoder_error(decoder, source, "the types must be .f32 or .f16 of D and of C, or those of D, A, B and C");
  const WmmaShape *shape = find_shape(source, types[1]);
  if (!shape || !is_accumulator_of(types[0], shape) || !is_accumulator_of(types[3], shape) ||
      (types[0] == ELEMENT_F16 && types[1] != ELEMENT_F16))
    return decoder_error(decoder, source, "there is no such shape with these types of D, A, B and C");
  if (!has_two_layouts(source, types[1]))
    return decoder_error(decoder, source, "needs .row or .col for A and for B; below a byte .row.col");
  if (types[1] == ELEMENT_F64) return decode_multiply_f64(decoder, source, shape->m, shape->k, inst);
  if (!wmma_options_fit(source, types[1]))
    return decoder_error(decoder, source, ".satfinite is for integers, .xor.popc or .and.popc for .b1");
  if (!element_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  Multiply *multiply = decoder_allocate(decoder, sizeof *multiply);
  plan_wmma(source, types, shape, multiply);
  inst->extra = multiply;
  inst->execute = multiply_fragments;
  Fragment *a = is_exchanged(shape) ? &multiply->second : &multiply->first;
  Fragment *b = is_exchanged(shape) ? &multiply->first : &multiply->second;
  Fragment *const fragments[] = {&multiply->d, a, b, &multiply->c};
  for (int i = 0; i < 4; i++) {
    int count = declared_registers("dabc"[i], fragments[i], types[i]);
    if (!fragment_registers(decoder, source, &source->operands[i], count, i == 0, fragments[i])) return DECODE_FAILED;
  }
  return DECODED;
}

DecodeResult decode_wmma_load(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_wmma_transfer(decoder, source, true, inst);
}

DecodeResult decode_wmma_store(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_wmma_transfer(decoder, source, false, inst);
}
