// ld, st and their kin: every space, width and vector. PTX ISA 9.7.9.8 to 9.7.9.13.
#include <string.h>

#include "../check/hazard.h"
#include "../check/rows.h"
#include "../warp/lanes.h"
#include "../warp/operands.h"
#include "../warp/warp.h"
#include "access_counts.h"
#include "discarded.h"
#include "families.h"

enum { MAX_VECTOR = 4, MAX_BYTES = 16 };
#define HASH_FACTOR 0x9e3779b97f4a7c15ull

// What a load or store needs beside the Inst: where its elements are in registers.
typedef struct Transfer {
  AddressPlan address;
  Space space;
  MemoryOrder order;
  Strength strength;
  int count;  // elements
  int size;   // bytes of one in memory
  bool is_signed;
  Slot slots[MAX_VECTOR];
  int slot_sizes[MAX_VECTOR];  // bytes of one in its register, >= size
  bool sink[MAX_VECTOR];
} Transfer;

// ---- elements between memory and registers ----

// memcpy of a size that is nearly always one of these: a move, not a call.
static void copy_bytes(u8 *to, const u8 *from, int size) {
  switch (size) {
  case 2: memcpy(to, from, 2); break;
  case 4: memcpy(to, from, 4); break;
  case 8: memcpy(to, from, 8); break;
  case 16: memcpy(to, from, 16); break;
  default: memcpy(to, from, (size_t)size);
  }
}

static uint64_t read_bytes(const u8 *from, int size) {
  uint64_t value = 0;
  memcpy(&value, from, (size_t)size);
  return value;
}

static uint64_t extend(uint64_t value, int size, bool is_signed) {
  int shift = 64 - 8 * size;
  return is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

static void set_element(Warp *warp, const Transfer *transfer, int e, int lane, const u8 *bytes) {
  int size = transfer->size, slot_size = transfer->slot_sizes[e];
  u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * slot_size;
  if (transfer->sink[e]) return;
  if (size == slot_size) {
    copy_bytes(slot, bytes, size);
    return;
  }
  uint64_t value = extend(read_bytes(bytes, size), size, transfer->is_signed);
  memcpy(slot, &value, (size_t)slot_size);
}

static void get_element(Warp *warp, const Transfer *transfer, int e, int lane, u8 *bytes) {
  const u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * transfer->slot_sizes[e];
  copy_bytes(bytes, slot, transfer->size);
}

static void set_elements(Warp *warp, const Transfer *transfer, Mask lanes, const u8 *bytes) {
  for (Mask rest = lanes; rest; rest &= rest - 1)
    for (int e = 0; e < transfer->count; e++)
      set_element(warp, transfer, e, __builtin_ctz(rest), bytes + e * transfer->size);
}

// ---- elements of several lanes between memory and registers ----
//
// The lanes' elements are one after the other in memory, `step` bytes apart; with step 0 all read the same.

#define COPY_ELEMENTS(TYPE, to, to_step, from, from_step, count)                                                       \
  for (int LANE = 0; LANE < (count); LANE++) {                                                                         \
    TYPE VALUE;                                                                                                        \
    memcpy(&VALUE, (from) + LANE * (from_step), sizeof VALUE);                                                         \
    memcpy((to) + LANE * (to_step), &VALUE, sizeof VALUE);                                                             \
  }

// Copies so many elements of a size, each so many bytes after the one before.
static inline void copy_elements(u8 *restrict to, int to_step, const u8 *restrict from, int from_step, int size,
                                 int count) {
  if (from_step == size && to_step == size && size * count == 4 * LANES)
    memcpy(to, from, 4 * LANES);
  else if (size == 4)
    COPY_ELEMENTS(u32, to, to_step, from, from_step, count)
  else if (size == 8)
    COPY_ELEMENTS(u64, to, to_step, from, from_step, count)
  else if (size == 2)
    COPY_ELEMENTS(u16, to, to_step, from, from_step, count)
  else
    for (int lane = 0; lane < count; lane++) copy_bytes(to + lane * to_step, from + lane * from_step, size);
}

static void load_row(Warp *warp, const Transfer *transfer, int lane, int count, const u8 *bytes, int step) {
  for (int e = 0; e < transfer->count; e++) {
    int size = transfer->size, slot_size = transfer->slot_sizes[e];
    const u8 *from = bytes + e * size;
    if (transfer->sink[e]) continue;
    if (size == slot_size)
      copy_elements(SLOT(warp, transfer->slots[e], u8) + lane * size, size, from, step, size, count);
    else
      for (int i = 0; i < count; i++) set_element(warp, transfer, e, lane + i, from + i * step);
  }
}

static void gather_row(Warp *warp, const Transfer *transfer, int lane, int count, u8 *bytes) {
  int size = transfer->size, step = size * transfer->count;
  for (int e = 0; e < transfer->count; e++) {
    int slot_size = transfer->slot_sizes[e];
    const u8 *slot = SLOT(warp, transfer->slots[e], u8) + lane * slot_size;
    copy_elements(bytes + e * size, step, slot, slot_size, size, count);
  }
}

// ---- execution ----

static SyncTable *sync_table(Warp *warp, const Access *access) {
  return access->region->kind == REGION_SHARED ? warp->block->cluster->sync : warp_launch(warp)->sync;
}

// Local memory is a thread's own: nothing to race with, but it may be read before it was written.
static void check_local(Warp *warp, const Inst *inst, int lane, const Access *access, uint64_t address, int bytes) {
  if (inst->c && (*SLOT(warp, inst->c, const Mask) >> lane & 1) != (inst->flags == SELECTED_IF_TRUE)) return;
  for (int i = 0; i < bytes; i++)
    if (!access->valid[i]) {
      hazard_report(warp, inst, lane, HAZARD_UNINITIALISED_READ, address, bytes,
                    "nothing was ever written to this local memory");
      return;
    }
}

// What a strong load finds, for warp_poll.
static uint64_t add_found(uint64_t found, uint64_t address, const u8 *data, int bytes) {
  for (int i = 0; i < bytes; i += 8)
    found = (found ^ read_bytes(data + i, bytes - i < 8 ? bytes - i : 8)) * HASH_FACTOR;
  return (found ^ address) * HASH_FACTOR;
}

// The lanes of mask from the first on whose addresses each are that of the lane before and `step` more. As many as that.
static int evenly_spaced(Mask mask, const uint64_t addresses[LANES], uint64_t step) {
  int first = __builtin_ctz(mask), count = 1;
  if (mask == FULL_MASK) {
    uint64_t different = 0;
    for (int lane = 0; lane < LANES; lane++) different |= addresses[lane] ^ (addresses[0] + (uint64_t)lane * step);
    if (!different) return LANES;
  }
  while (first + count < LANES && mask >> (first + count) & 1 &&
         addresses[first + count] == addresses[first + count - 1] + step)
    count++;
  return count;
}

// How many of the lanes' elements, one after the other from that of the access on, are inside its region and its page.
static int inside_page(const Access *access, int bytes, int count) {
  uint64_t page = SHADOW_PAGE - (access->offset & (SHADOW_PAGE - 1)), left = access->region->size - access->offset;
  uint64_t most = (page < left ? page : left) / (uint64_t)bytes;
  return most < 1 ? 1 : most < (uint64_t)count ? (int)most : count;
}

// So many lanes of mask, from its first one on.
static Mask first_lanes(Mask mask, int count) { return FULL_MASK >> (LANES - count) << __builtin_ctz(mask); }

static void load_strong(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  uint64_t found = mask;
  Neighbour neighbour = {0};
  for (Mask left = mask, same; left; left &= ~same) {
    int lane = __builtin_ctz(left);
    Access access;
    same = first_lanes(left, evenly_spaced(left, addresses, 0));
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_READ, &neighbour, &access))
      break;
    if (!access.region) same = left & -left;
    memory_lock(&access);
    if (warp_launch(warp)->hazards && access.region)
      race_read(warp, inst, same, access.region, access.offset, bytes, transfer->strength);
    if (warp_launch(warp)->hazards && access.valid) check_local(warp, inst, lane, &access, addresses[lane], bytes);
    set_elements(warp, transfer, same, access.data);
    found = add_found(found, addresses[lane], access.data, bytes);
    memory_unlock(&access);
    for (Mask rest = same; access.region && rest; rest &= rest - 1)
      sync_load(sync_table(warp, &access), access.data, warp, __builtin_ctz(rest), transfer->order, transfer->strength);
  }
  uint64_t first = addresses[__builtin_ctz(mask)];
  (first >= GLOBAL_WINDOW ? warp_poll_global : warp_poll)(warp, inst, first, found);
}

// Lanes that have nothing to do with each other, as long as all is simple: their elements in the neighbour's region, and
// in one register each of their own size. Returns those done.
ALWAYS_INLINE Mask load_scattered(Warp *warp, const Transfer *transfer, const RowActor *row, const Neighbour *neighbour,
                                  const uint64_t addresses[LANES], Mask mask, const int size) {
  Scatter scatter = race_scatter(row);
  Region *region = neighbour->region;
  u8 *slot = SLOT(warp, transfer->slots[0], u8);
  const u8 *data = region->data;
  uint64_t difference = neighbour->offset - neighbour->address, most = region->size - (uint64_t)size;
  Mask rest = mask;
  for (; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    uint64_t offset = addresses[lane] + difference;
    if (!(row->alike >> lane & 1) || offset > most || addresses[lane] & (uint64_t)(size - 1)) break;
    if (!race_read_lane(&scatter, row, region, offset, lane, size)) break;
    copy_bytes(slot + lane * size, data + offset, size);
  }
  return mask & ~rest;
}

// Whether lanes may be served by load_scattered or store_scattered.
static bool is_simple(const Launch *launch, const Transfer *transfer, int size) {
  return launch->alone && launch->hazards && !launch->lane_by_lane && transfer->count == 1 && transfer->size == size &&
         transfer->slot_sizes[0] == size && !transfer->sink[0];
}

// Lanes that read one place, or places one after the other, are served together.
static void load(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  const Launch *launch = warp_launch(warp);
  uint64_t addresses[LANES];
  form_addresses(warp, &transfer->address, mask, addresses);
  count_access(warp, inst, transfer->space, mask, addresses, bytes, ACCESS_READ);
  if (transfer->strength != WEAK) {
    load_strong(warp, inst, mask, addresses);
    return;
  }
  Neighbour neighbour = {0};
  PageLock *lock = NULL;
  RowActor row;
  if (launch->hazards) race_row(&row, warp, inst, __builtin_ctz(mask));
  for (Mask left = mask, done; left; left &= ~done) {
    int lane = __builtin_ctz(left), count = 1, step = bytes;
    Access access;
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_READ, &neighbour, &access))
      break;
    if (access.region) {
      count = evenly_spaced(left, addresses, 0);
      if (count > 1)
        step = 0;
      else
        count = inside_page(&access, bytes, evenly_spaced(left, addresses, (uint64_t)bytes));
      if (count == 1 && is_simple(launch, transfer, 4) &&
          (done = load_scattered(warp, transfer, &row, &neighbour, addresses, left, 4)))
        continue;
    }
    done = first_lanes(left, count);
    if (!launch->alone) memory_lock_next(&lock, &access);
    if (launch->hazards && access.region && !step)
      race_read_together(&row, access.region, access.offset, done, bytes);
    else if (launch->hazards && access.region)
      done = first_lanes(left, count = race_read_row(&row, access.region, access.offset, lane, count, bytes));
    else if (launch->hazards && access.valid)
      check_local(warp, inst, lane, &access, addresses[lane], bytes);
    load_row(warp, transfer, lane, count, access.data, step);
  }
  memory_unlock_last(&lock);
}

static void store_bytes(Warp *warp, const Access *access, const u8 *value, int bytes) {
  if (access->valid) memset(access->valid, 1, (size_t)bytes);
  if (!memcmp(access->data, value, (size_t)bytes)) return;
  copy_bytes(access->data, value, bytes);
  if (access->region) warp->block->cluster->progress++;  // local memory nobody else sees
}

static void store_strong(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  Neighbour neighbour = {0};
  Actor actor = race_lane(warp, inst, __builtin_ctz(mask), transfer->strength);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u8 value[MAX_BYTES];
    Access access;
    gather_row(warp, transfer, lane, 1, value);
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_WRITE, &neighbour, &access))
      break;
    if (access.region)
      sync_store(sync_table(warp, &access), access.data, warp, lane, transfer->order, transfer->strength);
    memory_lock(&access);
    if (warp_launch(warp)->hazards && access.region) {
      race_set_lane(&actor, lane);
      race_write_by(&actor, access.region, access.offset, bytes, value);
    }
    store_bytes(warp, &access, value, bytes);
    memory_unlock(&access);
  }
}

// As load_scattered.
ALWAYS_INLINE Mask store_scattered(Warp *warp, const Transfer *transfer, const RowActor *row,
                                   const Neighbour *neighbour, const uint64_t addresses[LANES], Mask mask,
                                   const int size) {
  Scatter scatter = race_scatter(row);
  Region *region = neighbour->region;
  const u8 *slot = SLOT(warp, transfer->slots[0], u8);
  u8 *data = region->data;
  uint64_t difference = neighbour->offset - neighbour->address, most = region->size - (uint64_t)size;
  bool changed = false;
  Mask rest = mask;
  for (; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    uint64_t offset = addresses[lane] + difference;
    if (!(row->alike >> lane & 1) || offset > most || addresses[lane] & (uint64_t)(size - 1)) break;
    if (!race_write_lane(&scatter, row, region, offset, lane, size)) break;
    changed |= memcmp(data + offset, slot + lane * size, (size_t)size) != 0;
    copy_bytes(data + offset, slot + lane * size, size);
  }
  warp->block->cluster->progress += changed;
  return mask & ~rest;
}

// Lanes that write places one after the other are served together.
static void store(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  const Launch *launch = warp_launch(warp);
  uint64_t addresses[LANES];
  form_addresses(warp, &transfer->address, mask, addresses);
  count_access(warp, inst, transfer->space, mask, addresses, bytes, ACCESS_WRITE);
  if (transfer->strength != WEAK) {
    store_strong(warp, inst, mask, addresses);
    return;
  }
  Neighbour neighbour = {0};
  PageLock *lock = NULL;
  RowActor row;
  if (launch->hazards) race_row(&row, warp, inst, __builtin_ctz(mask));
  for (Mask left = mask; left;) {
    int lane = __builtin_ctz(left), count = 1;
    u8 value[SHADOW_PAGE];
    Access access;
    if (!memory_find_next(warp, inst, lane, transfer->space, addresses[lane], bytes, ACCESS_WRITE, &neighbour, &access))
      break;
    if (access.region) count = inside_page(&access, bytes, evenly_spaced(left, addresses, (uint64_t)bytes));
    if (access.region && count == 1 && is_simple(launch, transfer, 4)) {
      Mask done = store_scattered(warp, transfer, &row, &neighbour, addresses, left, 4);
      left &= ~done;
      if (done) continue;
    }
    gather_row(warp, transfer, lane, count, value);
    if (!launch->alone) memory_lock_next(&lock, &access);
    if (launch->hazards && access.region)
      count = race_write_row(&row, access.region, access.offset, lane, count, bytes, value);
    store_bytes(warp, &access, value, count * bytes);
    left &= ~first_lanes(left, count);
  }
  memory_unlock_last(&lock);
}

// A kernel's parameter read by name: the same for every lane, and never out of bounds.
static void load_kernel_param(Warp *warp, const Inst *inst, Mask mask) {
  set_elements(warp, inst->extra, mask, warp_launch(warp)->params + inst->immediate);
}

// A device function's parameters are bytes beside its registers: `immediate` of `size` a lane.
static void load_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  const u8 *bytes = SLOT(warp, inst->a, const u8) + inst->immediate;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    set_elements(warp, transfer, 1u << lane, bytes + (size_t)lane * inst->flags);
  }
}

static void store_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  u8 *bytes = SLOT(warp, inst->a, u8) + inst->immediate;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    for (int e = 0; e < transfer->count; e++)
      get_element(warp, transfer, e, lane, bytes + (size_t)lane * inst->flags + e * transfer->size);
  }
}

// ---- decoding ----

static int vector_length(const PtxInstruction *source) {
  return ptx_has(source, "v2") ? 2 : ptx_has(source, "v4") ? 4 : 1;
}

// The registers of a load or store: one, or as many as the vector has.
static bool decode_elements(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand, PtxType type,
                            bool is_load, Transfer *transfer) {
  transfer->count = vector_length(source);
  transfer->size = (int)ptx_type_size(type);
  transfer->is_signed = type >= PTX_S8 && type <= PTX_S64;
  bool is_vector = operand->kind == PTX_OPERAND_VECTOR;
  if (type == PTX_PRED || transfer->size == 0) {
    decoder_error(decoder, source, "needs a type such as .b32");
    return false;
  }
  if ((is_vector ? operand->item_count : 1) != transfer->count || transfer->size * transfer->count > MAX_BYTES) {
    decoder_error(decoder, source, "the vector's registers do not match .v%d of .%s", transfer->count,
                  ptx_type_name(type));
    return false;
  }
  for (int e = 0; e < transfer->count; e++) {
    const PtxOperand *element = is_vector ? &operand->items[e] : operand;
    int *size = &transfer->slot_sizes[e];
    transfer->sink[e] = element->kind == PTX_OPERAND_SINK;
    transfer->slots[e] = is_load ? decoder_wide_destination(decoder, element, type, size)
                                 : decoder_wide_source(decoder, element, type, size);
  }
  return !decoder->failed;
}

// ld.param and st.param of a name: no address, but a place known now. False when it is a register's address.
static bool decode_param_place(Decoder *decoder, const PtxInstruction *source, const PtxOperand *address, bool is_load,
                               Inst *inst) {
  const PtxOperand *base = address->kind == PTX_OPERAND_ADDRESS && address->item_count == 1 ? &address->items[0] : NULL;
  if (!base || base->kind != PTX_OPERAND_VARIABLE || !base->variable || base->variable->space != PTX_PARAM)
    return false;
  const Place *place = decoder_place(decoder, base->variable);
  const Transfer *transfer = inst->extra;
  int64_t offset = address->value + base->value, bytes = transfer->size * transfer->count;
  if (!place) return true;
  if (offset < 0 || offset > (int64_t)base->variable->size - bytes) {
    decoder_error(decoder, source, "bytes %lld to %lld are outside %s of %llu bytes", (long long)offset,
                  (long long)(offset + bytes - 1), base->variable->name, (unsigned long long)base->variable->size);
    return true;
  }
  bool is_kernel = !place->stride;
  if (is_kernel && !is_load) decoder_error(decoder, source, "a kernel's parameters cannot be written");
  inst->immediate = offset + (is_kernel ? (int64_t)place->address : 0);
  inst->a = place->slot;
  inst->flags = (uint32_t)place->stride;
  inst->execute = !is_load ? store_param : is_kernel ? load_kernel_param : load_param;
  return true;
}

static const char *const allowed[] = {"weak",
                                      "relaxed",
                                      "acquire",
                                      "release",
                                      "volatile",
                                      "mmio",
                                      "cta",
                                      "cluster",
                                      "gpu",
                                      "sys",
                                      "global",
                                      "shared",
                                      "shared::cta",
                                      "shared::cluster",
                                      "local",
                                      "const",
                                      "param",
                                      "param::entry",
                                      "param::func",
                                      "nc",
                                      "v2",
                                      "v4",
                                      "ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "L1::evict_normal",
                                      "L1::evict_unchanged",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L1::no_allocate",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_last",
                                      "L2::cache_hint",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B",
                                      NULL};

static DecodeResult decode_transfer(Decoder *decoder, const PtxInstruction *source, bool is_load, Inst *inst) {
  if (!decoder_operands(decoder, source, 2, 3) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  const PtxOperand *registers = &source->operands[!is_load], *address = &source->operands[is_load];
  Transfer *transfer = decoder_allocate(decoder, sizeof *transfer);
  if (!decode_elements(decoder, source, registers, ptx_instruction_type(source), is_load, transfer))
    return DECODE_FAILED;
  inst->extra = transfer;
  transfer->space = space_of(source);
  transfer->order = order_of(source);
  transfer->strength = transfer->order == ORDER_WEAK ? WEAK : scope_of(source);
  if (transfer->space == SPACE_PARAM && decode_param_place(decoder, source, address, is_load, inst))
    return decoder->failed ? DECODE_FAILED : DECODED;
  if (!is_load && (transfer->space == SPACE_CONST || transfer->space == SPACE_PARAM))
    return decoder_error(decoder, source, "this space cannot be written");
  inst->execute = is_load ? load : store;
  return decode_address_plan(decoder, source, address, transfer->space, &transfer->address);
}

DecodeResult decode_ld(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, true, inst);
}

DecodeResult decode_st(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, false, inst);
}

// Hints to the caches: without effect on what a program computes.
DecodeResult decode_cache_hint(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  (void)decoder;
  (void)source;
  inst->execute = execute_nothing;
  return DECODED;
}
