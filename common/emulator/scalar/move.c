// mov, cvta, isspacep: moves, packing and unpacking, the addresses of things, clocks. PTX ISA 9.7.9.
#include <string.h>

#include "../warp/machine.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "families.h"

// ---- execution ----

LANE_OPERATION(move_16, u16, u16, u16, u16, x)
LANE_OPERATION(move_32, u32, u32, u32, u32, x)
LANE_OPERATION(move_64, u64, u64, u64, u64, x)

static void move_128(Warp *warp, const Inst *inst, Mask mask) {
  u64 *d = SLOT(warp, inst->d, u64);
  const u64 *a = SLOT(warp, inst->a, u64);
  EACH_LANE(mask, d[2 * LANE] = a[2 * LANE]; d[2 * LANE + 1] = a[2 * LANE + 1]);
}

static void move_predicate(Warp *warp, const Inst *inst, Mask mask) {
  Mask *d = SLOT(warp, inst->d, Mask), a = *SLOT(warp, inst->a, const Mask) ^ (Mask)inst->flags;
  *d = (*d & ~mask) | (a & mask);
}

// The address of a .local variable: each function call has its own. LLVM keeps it in 32 bits.
static void move_local_address_32(Warp *warp, const Inst *inst, Mask mask) {
  u32 *d = SLOT(warp, inst->d, u32);
  EACH_LANE(mask, d[LANE] = (u32)((u64)inst->immediate + (warp->calls ? warp->calls[LANE].local_base : 0)));
}

static void move_local_address_64(Warp *warp, const Inst *inst, Mask mask) {
  u64 *d = SLOT(warp, inst->d, u64);
  EACH_LANE(mask, d[LANE] = (u64)inst->immediate + (warp->calls ? warp->calls[LANE].local_base : 0));
}

// The clocks count the warp instructions that the cluster has executed: they mean no time. The count grows when a
// warp's turn ends; so the turn ends here, and the next reading is a larger number.
static u64 read_clock(Warp *warp) {
  warp->yield = warp->regroup = true;
  return warp->block->cluster->steps;
}

static void move_clock_32(Warp *warp, const Inst *inst, Mask mask) {
  u32 *d = SLOT(warp, inst->d, u32), now = (u32)(read_clock(warp) >> inst->immediate);
  EACH_LANE(mask, d[LANE] = now);
}

static void move_clock_64(Warp *warp, const Inst *inst, Mask mask) {
  u64 *d = SLOT(warp, inst->d, u64), now = read_clock(warp);
  EACH_LANE(mask, d[LANE] = now);
}

// The parts of a packed move: slots of 2, 4 or 8 bytes a lane; a byte has one of 2.
typedef struct Parts {
  int count, size, stride;  // bytes of one, and between lanes in its slot
  bool sink[8];
  Slot slots[8];
} Parts;

static void pack_parts(Warp *warp, const Inst *inst, Mask mask) {
  const Parts *parts = inst->extra;
  size_t size = (size_t)parts->size, whole = size * (size_t)parts->count;
  for (int p = 0; p < parts->count; p++) {
    u8 *d = SLOT(warp, inst->d, u8) + size * (size_t)p;
    const u8 *a = SLOT(warp, parts->slots[p], const u8);
    EACH_LANE(mask, memcpy(d + (size_t)LANE * whole, a + LANE * parts->stride, size));
  }
}

static void unpack_parts(Warp *warp, const Inst *inst, Mask mask) {
  const Parts *parts = inst->extra;
  size_t size = (size_t)parts->size, whole = size * (size_t)parts->count;
  u8 copy[LANES * 16];  // a part may be the register that is being unpacked
  memcpy(copy, SLOT(warp, inst->a, u8), whole * LANES);
  for (int p = 0; p < parts->count; p++) {
    u8 *d = SLOT(warp, parts->slots[p], u8);
    const u8 *a = copy + size * (size_t)p;
    if (parts->sink[p]) continue;
    if (size == 1) EACH_LANE(mask, d[2 * LANE + 1] = 0);
    EACH_LANE(mask, memcpy(d + LANE * parts->stride, a + (size_t)LANE * whole, size));
  }
}

// The commonest two, as the loops that they are: half2 and 64-bit pairs.
static void pack_16x2(Warp *warp, const Inst *inst, Mask mask) {
  const Parts *parts = inst->extra;
  u32 *d = SLOT(warp, inst->d, u32);
  const u16 *a = SLOT(warp, parts->slots[0], const u16), *b = SLOT(warp, parts->slots[1], const u16);
  EACH_LANE(mask, d[LANE] = (u32)a[LANE] | (u32)b[LANE] << 16);
}

static void pack_32x2(Warp *warp, const Inst *inst, Mask mask) {
  const Parts *parts = inst->extra;
  u64 *d = SLOT(warp, inst->d, u64);
  const u32 *a = SLOT(warp, parts->slots[0], const u32), *b = SLOT(warp, parts->slots[1], const u32);
  EACH_LANE(mask, d[LANE] = (u64)a[LANE] | (u64)b[LANE] << 32);
}

LANE_OPERATION(add_window, u64, u64, u64, u64, x + (u64)inst->immediate)
LANE_OPERATION(strip_window, u64, u64, u64, u64, x &WINDOW_MASK)

static void execute_isspacep(Warp *warp, const Inst *inst, Mask mask) {
  Mask *d = SLOT(warp, inst->d, Mask), result = 0;
  const u64 *a = SLOT(warp, inst->a, const u64);
  EACH_LANE(mask, u64 window = a[LANE] & ~WINDOW_MASK;
            bool inside = inst->immediate ? window == (u64)inst->immediate
                                          : window != LOCAL_WINDOW && window != SHARED_WINDOW && window != PARAM_WINDOW;
            result |= (Mask)inside << LANE);
  *d = (*d & ~mask) | (result & mask);
}

// ---- decoding ----

// A mov between registers of one size, or of an immediate or special register.
static DecodeResult decode_plain(Decoder *decoder, const PtxInstruction *source, PtxType type, Inst *inst) {
  static Execute *const by_size[] = {[1] = move_16, [2] = move_16, [4] = move_32, [8] = move_64, [16] = move_128};
  const PtxOperand *from = &source->operands[1];
  inst->d = decoder_destination(decoder, &source->operands[0], type);
  inst->a = decoder_source(decoder, from, type);
  inst->execute = type == PTX_PRED ? move_predicate : by_size[ptx_type_size(type)];
  inst->flags = type == PTX_PRED && from->negated ? FULL_MASK : 0;
  return DECODED;
}

static DecodeResult decode_function_address(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  int function = source->operands[1].index;
  if (function < 0) return decoder_error(decoder, source, "function %s has no body", source->operands[1].name);
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_B64);
  inst->a = decoder_constant(decoder, FUNCTION_WINDOW + (uint64_t)function, 8);
  inst->execute = move_64;
  return DECODED;
}

static DecodeResult decode_address(Decoder *decoder, const PtxInstruction *source, PtxType type, Inst *inst) {
  const PtxOperand *from = &source->operands[1];
  if (from->variable->space != PTX_LOCAL) return decode_plain(decoder, source, type, inst);
  const Place *place = decoder_place(decoder, from->variable);
  if (!place) return DECODE_FAILED;
  bool is_wide = ptx_type_size(type) == 8;
  inst->d = decoder_destination(decoder, &source->operands[0], is_wide ? PTX_B64 : PTX_B32);
  inst->immediate = (int64_t)place->address + from->value;
  inst->execute = is_wide ? move_local_address_64 : move_local_address_32;
  return DECODED;
}

static bool is_clock(const char *name) {
  return !strcmp(name, "clock") || !strcmp(name, "clock_hi") || !strcmp(name, "clock64") ||
         !strncmp(name, "globaltimer", 11);
}

static DecodeResult decode_clock(Decoder *decoder, const PtxInstruction *source, PtxType type, Inst *inst) {
  const char *name = source->operands[1].name;
  size_t length = strlen(name);
  inst->d = decoder_destination(decoder, &source->operands[0], type);
  inst->immediate = length > 3 && !strcmp(name + length - 3, "_hi") ? 32 : 0;
  inst->execute = ptx_type_size(type) == 8 ? move_clock_64 : move_clock_32;
  return DECODED;
}

// mov.b32 d, {a, b} and mov.b32 {a, b}, d: the parts share the size of the whole equally.
static DecodeResult decode_packed(Decoder *decoder, const PtxInstruction *source, PtxType type, bool packs,
                                  Inst *inst) {
  static const PtxType by_size[] = {[1] = PTX_B8, [2] = PTX_B16, [4] = PTX_B32, [8] = PTX_B64};
  const PtxOperand *vector = &source->operands[packs], *whole = &source->operands[!packs];
  int count = vector->item_count, bytes = (int)ptx_type_size(type);
  if (count < 2 || count > 8 || bytes % count || type == PTX_PRED || (bytes / count & (bytes / count - 1)))
    return decoder_error(decoder, source, "cannot divide .%s into %d parts of 8, 16, 32 or 64 bits",
                         ptx_type_name(type), count);
  Parts *parts = decoder_allocate(decoder, sizeof *parts);
  parts->count = count;
  parts->size = bytes / count;
  parts->stride = parts->size < 2 ? 2 : parts->size;
  for (int i = 0; i < count; i++) {
    parts->sink[i] = vector->items[i].kind == PTX_OPERAND_SINK;
    parts->slots[i] = packs ? decoder_source(decoder, &vector->items[i], by_size[parts->size])
                            : decoder_destination(decoder, &vector->items[i], by_size[parts->size]);
  }
  inst->extra = parts;
  if (packs)
    inst->d = decoder_destination(decoder, whole, type);
  else
    inst->a = decoder_source(decoder, whole, type);
  bool pair = packs && count == 2;
  inst->execute = pair && bytes == 4 ? pack_16x2 : pair && bytes == 8 ? pack_32x2 : packs ? pack_parts : unpack_parts;
  return DECODED;
}

DecodeResult decode_mov(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {NULL};
  PtxType type = ptx_instruction_type(source);
  if (!decoder_operands(decoder, source, 2, 2) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  if (ptx_type_size(type) == 0) return decoder_error(decoder, source, "needs a type such as .b32");
  const PtxOperand *to = &source->operands[0], *from = &source->operands[1];
  if (from->kind == PTX_OPERAND_VECTOR) return decode_packed(decoder, source, type, true, inst);
  if (to->kind == PTX_OPERAND_VECTOR) return decode_packed(decoder, source, type, false, inst);
  if (from->kind == PTX_OPERAND_FUNCTION) return decode_function_address(decoder, source, inst);
  if (from->kind == PTX_OPERAND_VARIABLE && from->variable) return decode_address(decoder, source, type, inst);
  if (from->kind == PTX_OPERAND_SPECIAL && is_clock(from->name)) return decode_clock(decoder, source, type, inst);
  return decode_plain(decoder, source, type, inst);
}

// The window of the space that cvta or isspacep names; 0 for global and const, which generic addresses are.
static bool space_window(const PtxInstruction *source, uint64_t *window) {
  static const struct {
    const char *name;
    uint64_t window;
  } spaces[] = {{"global", 0},
                {"const", 0},
                {"shared", SHARED_WINDOW},
                {"shared::cta", SHARED_WINDOW},
                {"shared::cluster", SHARED_WINDOW},
                {"local", LOCAL_WINDOW},
                {"param", PARAM_WINDOW},
                {"param::entry", PARAM_WINDOW}};
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    if (ptx_has(source, spaces[i].name)) {
      *window = spaces[i].window;
      return true;
    }
  return false;
}

DecodeResult decode_cvta(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"to",    "global", "const",        "shared", "shared::cta", "shared::cluster",
                                        "local", "param",  "param::entry", NULL};
  uint64_t window;
  if (!decoder_operands(decoder, source, 2, 2) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  if (!space_window(source, &window)) return decoder_error(decoder, source, "needs a state space");
  if (ptx_instruction_type(source) != PTX_U64) return decoder_error(decoder, source, "addresses are .u64");
  const PtxOperand *from = &source->operands[1];
  if (from->kind == PTX_OPERAND_VARIABLE && from->variable && from->variable->space == PTX_LOCAL)
    return decoder_error(decoder, source, "takes the address of a .local variable from a register");
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_B64);
  inst->a = decoder_source(decoder, from, PTX_B64);
  inst->immediate = (int64_t)window;
  inst->execute = !window ? move_64 : ptx_has(source, "to") ? strip_window : add_window;
  return DECODED;
}

DecodeResult decode_isspacep(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"global", "const", "shared",       "shared::cta", "shared::cluster",
                                        "local",  "param", "param::entry", NULL};
  uint64_t window;
  if (!decoder_operands(decoder, source, 2, 2) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  if (!space_window(source, &window)) return decoder_error(decoder, source, "needs a state space");
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_PRED);
  inst->a = decoder_source(decoder, &source->operands[1], PTX_B64);
  inst->immediate = (int64_t)window;
  inst->execute = execute_isspacep;
  return DECODED;
}
