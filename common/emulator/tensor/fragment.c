// Fragments: see fragment.h.
#include "fragment.h"

#include <string.h>

#include "../report/hazard.h"
#include "../memory/access.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"

// ---- layout ----

Fragment fragment_of(int lines, int elements, int group, bool wide) {
  Fragment fragment = {.lines = lines, .elements = elements, .wide = wide, .type = wide ? PTX_F32 : PTX_B32};
  for (int first = 0; first < lines; first += group)
    for (int element = 0; element < elements; element += BLOCK)
      for (int line = first; line < first + group; line += BLOCK) {
        int block = fragment.block_count++;
        fragment.blocks[block].line = line;
        fragment.blocks[block].element = element;
      }
  return fragment;
}

// Where register r's first element is in a tile: its block begins there; the second register of f32 begins one further.
static int block_offset(const Fragment *fragment, int r, Strides strides) {
  int block = r / (fragment->wide ? 2 : 1) % fragment->block_count, further = fragment->wide ? r % 2 : 0;
  return fragment->blocks[block].line * strides.line + (fragment->blocks[block].element + further) * strides.element;
}

// A block of f32 to one of its two registers, and back: from every second element on.
static void words_from_block(u32 *d, const u32 *block, Strides strides) {
  for (int lane = 0; lane < LANES; lane++) d[lane] = block[lane / 4 * strides.line + 2 * (lane % 4) * strides.element];
}

static void words_to_block(const u32 *a, u32 *block, Strides strides) {
  for (int lane = 0; lane < LANES; lane++) block[lane / 4 * strides.line + 2 * (lane % 4) * strides.element] = a[lane];
}

// A block of 16-bit elements to its register, and back. A line whose elements are neighbours is four lanes' registers.
static void pairs_from_block(u32 *d, const u16 *block, Strides strides) {
  for (int line = 0; line < BLOCK; line++, d += 4, block += strides.line) {
    if (strides.element == 1) {
      memcpy(d, block, UNIT_BYTES);
      continue;
    }
    for (int i = 0; i < 4; i++) d[i] = block[2 * i * strides.element] | (u32)block[(2 * i + 1) * strides.element] << 16;
  }
}

static void pairs_to_block(const u32 *a, u16 *block, Strides strides) {
  for (int line = 0; line < BLOCK; line++, a += 4, block += strides.line) {
    if (strides.element == 1) {
      memcpy(block, a, UNIT_BYTES);
      continue;
    }
    for (int i = 0; i < 4; i++) {
      block[2 * i * strides.element] = (u16)a[i];
      block[(2 * i + 1) * strides.element] = (u16)(a[i] >> 16);
    }
  }
}

void fragment_to_tile(Warp *warp, const Fragment *fragment, void *tile, Strides strides) {
  int own = fragment->block_count * (fragment->wide ? 2 : 1);
  for (int r = 0; r < own; r++) {
    const u32 *a = SLOT(warp, fragment->registers[r], const u32);
    int offset = block_offset(fragment, r, strides);
    if (fragment->wide)
      words_to_block(a, (u32 *)tile + offset, strides);
    else
      pairs_to_block(a, (u16 *)tile + offset, strides);
  }
}

void fragment_from_tile(Warp *warp, const Fragment *fragment, const void *tile, Strides strides) {
  for (int r = 0; r < fragment->register_count; r++) {
    u32 *d = SLOT(warp, fragment->registers[r], u32);
    int offset = block_offset(fragment, r, strides);
    if (fragment->wide)
      words_from_block(d, (const u32 *)tile + offset, strides);
    else
      pairs_from_block(d, (const u16 *)tile + offset, strides);
  }
}

// ---- execution ----

bool fragment_whole_warp(Warp *warp, const Inst *inst, Mask mask) {
  if (mask == FULL_MASK) return true;
  hazard_report(warp, inst, __builtin_ctz(mask), HAZARD_DIVERGENT_ALIGNED, 0, 0,
                "it needs all 32 lanes of a warp; lanes 0x%08x have exited or do not exist", ~mask);
  return false;
}

static bool wrong_space(Warp *warp, const Inst *inst, int lane, uint64_t address, const char *detail) {
  hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, UNIT_BYTES, "%s", detail);
  return false;
}

static int unit_bytes(const Request *request) { return request->bytes_each ? request->bytes_each : UNIT_BYTES; }

static bool check_space(Warp *warp, const Inst *inst, int lane, const Request *request, const Access *access) {
  uint64_t address = request->addresses[lane];
  if (!access->region) return wrong_space(warp, inst, lane, address, "a matrix must lie in shared or global memory");
  if (request->own_shared && access->region != warp->block->shared)
    return wrong_space(warp, inst, lane, address, "the address is not in the shared memory of the thread's own block");
  return true;
}

bool fragment_access(Warp *warp, const Inst *inst, const Request *request) {
  int size = unit_bytes(request);
  count_matrix_rows(warp, inst, request->space, request->lanes, request->addresses, request->kind);
  for (Mask rest = request->lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    Access access;
    if (!memory_find(warp, inst, lane, request->space, request->addresses[lane], size, size, request->kind, &access))
      return false;
    if (!check_space(warp, inst, lane, request, &access)) return false;
    if (request->kind == ACCESS_READ)
      access_read_lane(warp, inst, lane, &access, request->bytes[lane], (uint64_t)size);
    else
      access_write_lane(warp, inst, lane, &access, request->bytes[lane], (uint64_t)size);
  }
  return true;
}

// ---- decoding ----

bool fragment_registers(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand, int count,
                        bool is_destination, Fragment *fragment) {
  int have = operand->kind == PTX_OPERAND_VECTOR ? operand->item_count : 0;
  if (have != count) {
    decoder_error(decoder, source, "operand %d must be a vector of %d register%s, has %d",
                  (int)(operand - source->operands) + 1, count, count > 1 ? "s" : "", have);
    return false;
  }
  fragment->register_count = count;
  for (int r = 0; r < count; r++)
    fragment->registers[r] = is_destination ? decoder_destination(decoder, &operand->items[r], fragment->type)
                                            : decoder_source(decoder, &operand->items[r], fragment->type);
  return true;
}

int fragment_modifier(const PtxInstruction *source, const char *const *names) {
  int found = -1;
  for (int m = 0; m < source->modifier_count; m++)
    for (int n = 0; names[n]; n++) {
      if (strcmp(source->modifiers[m], names[n])) continue;
      if (found >= 0) return -1;
      found = n;
    }
  return found;
}

int fragment_types(const PtxInstruction *source, PtxType types[4]) {
  int count = 0;
  for (int m = 0; m < source->modifier_count; m++) {
    PtxType type = ptx_type_from_name(source->modifiers[m]);
    if (type != PTX_NO_TYPE && count++ < 4) types[count - 1] = type;
  }
  return count;
}

bool fragment_aligned(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  inst->converge = CONVERGE_ALIGNED;
  if (ptx_has(source, "sync") && ptx_has(source, "aligned")) return true;
  decoder_error(decoder, source, "needs .sync.aligned");
  return false;
}
