// ldmatrix, stmatrix, movmatrix: 8x8 blocks of 16-bit elements between shared memory and registers, or from registers
// to registers transposed. PTX ISA 9.7.15.5.
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "families.h"
#include "fragment.h"

// Lane 8 * i + r gives the address of row r of block i, 16 bytes; the other lanes' addresses are not looked at.
typedef struct MatrixMove {
  AddressPlan address;
  Space space;
  Mask lanes;  // that give an address
  Fragment fragment;
  Strides strides;  // of its tile: the rows, one after the other
} MatrixMove;

// Rows are lines of the fragment: its blocks lie below each other.
static const Strides straight = {.line = BLOCK, .element = 1};
// .trans: rows are columns of the fragment, its blocks lie beside each other.
static const Strides transposed = {.line = 1, .element = BLOCK};

static Fragment blocks_of(int count, bool is_transposed) {
  return is_transposed ? fragment_of(BLOCK, BLOCK * count, BLOCK, false)
                       : fragment_of(BLOCK * count, BLOCK, BLOCK, false);
}

// ---- execution ----

static Request row_request(Warp *warp, const MatrixMove *move, AccessKind kind, u16 rows[LANES][BLOCK]) {
  Request request = {.space = move->space, .kind = kind, .own_shared = true, .lanes = move->lanes};
  form_addresses(warp, &move->address, move->lanes, request.addresses);
  for (int lane = 0; lane < LANES; lane++) request.bytes[lane] = (uint8_t *)rows[lane];
  return request;
}

static void execute_ldmatrix(Warp *warp, const Inst *inst, Mask mask) {
  const MatrixMove *move = inst->extra;
  u16 rows[LANES][BLOCK];
  if (!fragment_whole_warp(warp, inst, mask)) return;
  Request request = row_request(warp, move, ACCESS_READ, rows);
  if (fragment_access(warp, inst, &request)) fragment_from_tile(warp, &move->fragment, rows, move->strides);
}

static void execute_stmatrix(Warp *warp, const Inst *inst, Mask mask) {
  const MatrixMove *move = inst->extra;
  u16 rows[LANES][BLOCK];
  if (!fragment_whole_warp(warp, inst, mask)) return;
  fragment_to_tile(warp, &move->fragment, rows, move->strides);
  Request request = row_request(warp, move, ACCESS_WRITE, rows);
  fragment_access(warp, inst, &request);
}

typedef struct Transposition {
  Fragment from, to;
} Transposition;

static void execute_movmatrix(Warp *warp, const Inst *inst, Mask mask) {
  const Transposition *transposition = inst->extra;
  u16 tile[BLOCK * BLOCK];
  if (!fragment_whole_warp(warp, inst, mask)) return;
  fragment_to_tile(warp, &transposition->from, tile, straight);
  fragment_from_tile(warp, &transposition->to, tile, transposed);
}

// ---- decoding ----

// ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 r, [p], and stmatrix with its operands the other way round.
static DecodeResult decode_matrix_rows(Decoder *decoder, const PtxInstruction *source, bool is_load, Inst *inst) {
  static const char *const allowed[] = {"sync", "aligned", "m8n8",   "x1",          "x2",
                                        "x4",   "trans",   "shared", "shared::cta", NULL};
  static const char *const counts[] = {"x1", "x2", "x4", NULL};
  PtxType types[4];
  int count = fragment_modifier(source, counts);
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, 2, 2)) return DECODE_FAILED;
  if (!ptx_has(source, "m8n8") || fragment_types(source, types) != 1 || types[0] != PTX_B16)
    return decoder_error(decoder, source, "sm_90 has it for .m8n8 and .b16 only");
  if (count < 0) return decoder_error(decoder, source, "needs one of .x1 .x2 .x4");
  if (!decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  MatrixMove *move = decoder_allocate(decoder, sizeof *move);
  bool trans = ptx_has(source, "trans");
  move->fragment = blocks_of(1 << count, trans);
  move->strides = trans ? transposed : straight;
  move->lanes = FULL_MASK >> (LANES - (BLOCK << count));
  move->space = space_of(source);
  inst->extra = move;
  inst->execute = is_load ? execute_ldmatrix : execute_stmatrix;
  if (!fragment_registers(decoder, source, &source->operands[!is_load], 1 << count, is_load, &move->fragment))
    return DECODE_FAILED;
  return decode_address_plan(decoder, source, &source->operands[is_load], move->space, &move->address);
}

// movmatrix.sync.aligned.m8n8.trans.b16 d, a
DecodeResult decode_movmatrix(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"sync", "aligned", "m8n8", "trans", NULL};
  PtxType types[4];
  if (!fragment_aligned(decoder, source, inst) || !decoder_operands(decoder, source, 2, 2)) return DECODE_FAILED;
  if (!ptx_has(source, "m8n8") || !ptx_has(source, "trans") || fragment_types(source, types) != 1 ||
      types[0] != PTX_B16)
    return decoder_error(decoder, source, "the only form is movmatrix.sync.aligned.m8n8.trans.b16");
  if (!decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  Transposition *transposition = decoder_allocate(decoder, sizeof *transposition);
  transposition->from = transposition->to = blocks_of(1, false);
  transposition->from.register_count = transposition->to.register_count = 1;
  transposition->to.registers[0] = decoder_destination(decoder, &source->operands[0], PTX_B32);
  transposition->from.registers[0] = decoder_source(decoder, &source->operands[1], PTX_B32);
  inst->extra = transposition;
  inst->execute = execute_movmatrix;
  return DECODED;
}

DecodeResult decode_ldmatrix(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_matrix_rows(decoder, source, true, inst);
}

DecodeResult decode_stmatrix(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_matrix_rows(decoder, source, false, inst);
}
