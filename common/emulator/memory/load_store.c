// ld, st and their kin: every space, width and vector. PTX ISA 9.7.9.8 to 9.7.9.13.
#include "load_store.h"

#include <string.h>

#include "../report/hazard.h"
#include "../report/undefined.h"
#include "../warp/instruction.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "access.h"
#include "families.h"
#include "transfer.h"

#define HASH_FACTOR 0x9e3779b97f4a7c15ull

// ---- execution ----

static SyncTable *sync_table(Warp *warp, const Access *access) {
  return access->region->kind == REGION_SHARED ? warp->check.cluster->sync : warp_launch(warp)->check.sync;
}

static LanePlaces places_of(Warp *warp, const Inst *inst, const Transfer *transfer, Mask mask,
                            const uint64_t addresses[LANES], AccessKind kind) {
  return (LanePlaces){.warp = warp,
                      .inst = inst,
                      .space = transfer->space,
                      .bytes = transfer->size * transfer->count,
                      .kind = kind,
                      .addresses = addresses,
                      .left = mask};
}

static int address_size(const Transfer *transfer) { return transfer->address.narrow ? 4 : 8; }

// What a strong load finds, for warp_poll.
static uint64_t add_found(uint64_t found, uint64_t address, const u8 *data, int bytes) {
  for (int i = 0; i < bytes; i += 8)
    found = (found ^ read_bytes(data + i, bytes - i < 8 ? bytes - i : 8)) * HASH_FACTOR;
  return (found ^ address) * HASH_FACTOR;
}

static void load_strong(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  uint64_t found = mask;
  for (LanePlaces place = places_of(warp, inst, transfer, mask, addresses, ACCESS_READ); next_place(&place);) {
    const Access *at = &place.at;
    if (warp_launch(warp)->check.on && at->region)
      race_read(&warp->check, pc_of_inst(warp, inst), place.lanes, at->region, at->offset, bytes, transfer->strength);
    if (warp_launch(warp)->check.on && at->valid) check_local(warp, at, bytes);
    set_elements(warp, transfer, place.lanes, at->data);
    found = add_found(found, addresses[place.lane], at->data, bytes);
    for (Mask rest = place.lanes; at->region && rest; rest &= rest - 1)
      sync_load(sync_table(warp, at), &(Elements){at->data, (size_t)transfer->size, transfer->count}, &warp->check,
                __builtin_ctz(rest), transfer->order, transfer->strength);
  }
  uint64_t first = addresses[__builtin_ctz(mask)];
  (first >= GLOBAL_WINDOW ? warp_poll_global : warp_poll)(warp, inst, first, found);
}

// A load that is judged when its value is stored: passes.h.
static void load_postponed(Warp *warp, const Inst *inst, const Transfer *transfer, Mask mask,
                           const uint64_t addresses[LANES]) {
  u8 undefined[MAX_BYTES];
  for (LanePlaces place = places_of(warp, inst, transfer, mask, addresses, ACCESS_READ); next_place(&place);) {
    warp->found_unwritten |= find_unwritten(warp, &place.at, place.bytes, undefined);
    set_elements(warp, transfer, place.lanes, place.at.data);
  }
}

static void judge_elements(Warp *warp, const Inst *inst, const Transfer *transfer, Mask mask,
                           const uint64_t addresses[LANES]) {
  for (LanePlaces place = places_of(warp, inst, transfer, mask, addresses, ACCESS_READ); next_place(&place);)
    if (place.at.region)
      race_read(&warp->check, pc_of_inst(warp, inst), place.lanes, place.at.region, place.at.offset, place.bytes, WEAK);
}

static void load_elements(Warp *warp, const Inst *inst, const Transfer *transfer, Mask mask,
                          const uint64_t addresses[LANES]) {
  if (transfer->postponed && warp_launch(warp)->check.on)
    load_postponed(warp, inst, transfer, mask, addresses);
  else
    weak_load(warp, inst, transfer, mask, addresses);
  if (warp->found_unwritten) note_undefined(warp, inst, transfer, mask, addresses);
}

typedef void EachPart(Warp *warp, const Inst *inst, const Transfer *transfer, Mask mask,
                      const uint64_t addresses[LANES]);

static bool all_aligned(Mask mask, const uint64_t addresses[LANES], int bytes) {
  uint64_t bits = 0;
  for (Mask rest = mask; rest; rest &= rest - 1) bits |= addresses[__builtin_ctz(rest)];
  return !(bits & (uint64_t)(bytes - 1));
}

// Calls `part` for each part of a load with dead elements, and once for any other load. A misaligned vector is not
// divided: the report is about all of it.
static void each_part(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES], EachPart *part) {
  const Transfer *transfer = inst->extra;
  if (!transfer->part_count || !all_aligned(mask, addresses, transfer->size * transfer->count)) {
    part(warp, inst, transfer, mask, addresses);
    return;
  }
  for (int p = 0; p < transfer->part_count; p++) {
    uint64_t shifted[LANES];
    for (int lane = 0; lane < LANES; lane++) shifted[lane] = addresses[lane] + (uint64_t)transfer->parts[p].offset;
    part(warp, inst, &transfer->parts[p], mask, shifted);
  }
}

// The lanes of a store, which use what they have loaded.
static void judge_load(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  uint64_t addresses[LANES];
  mask &= guarded_lanes(warp, inst);
  if (!mask) return;
  form_addresses(warp, &transfer->address, mask, addresses);
  each_part(warp, inst, mask, addresses, judge_elements);
  warp->found_unwritten = false;  // that was noted when it was loaded
}

static void execute_ld(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  uint64_t addresses[LANES];
  form_addresses(warp, &transfer->address, mask, addresses);
  count_access(warp, inst, transfer->space, mask, addresses, transfer->size * transfer->count, ACCESS_READ);
  if (warp->has_undefined) {
    undefined_use(warp, inst, mask, transfer->address.slot, address_size(transfer));
    for (int e = 0; e < transfer->count; e++) undefined_clear(warp, mask, transfer->slots[e], transfer->slot_sizes[e]);
  }
  if (transfer->strength == WEAK) {
    each_part(warp, inst, mask, addresses, load_elements);
    return;
  }
  load_strong(warp, inst, mask, addresses);
  if (warp->found_unwritten) note_undefined(warp, inst, transfer, mask, addresses);
}

static void store_strong(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  Actor actor = actor_of_lane(&warp->check, pc_of_inst(warp, inst), __builtin_ctz(mask), transfer->strength);
  for (LanePlaces place = places_of(warp, inst, transfer, mask, addresses, ACCESS_WRITE); next_place(&place);) {
    const Access *at = &place.at;
    u8 value[MAX_BYTES];
    gather_row(warp, transfer, place.lane, 1, value);
    if (at->region)
      sync_store(sync_table(warp, at), &(Elements){at->data, (size_t)transfer->size, transfer->count}, &warp->check,
                 place.lane, transfer->order, transfer->strength);
    if (warp_launch(warp)->check.on && at->region) {
      actor_set_lane(&actor, place.lane);
      race_write_by(&actor, at->region, at->offset, place.bytes, value);
    }
    store_bytes(warp, at, value, place.bytes);
  }
}

static void execute_st(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  uint64_t addresses[LANES];
  form_addresses(warp, &transfer->address, mask, addresses);
  count_access(warp, inst, transfer->space, mask, addresses, transfer->size * transfer->count, ACCESS_WRITE);
  if (warp->has_undefined) undefined_use(warp, inst, mask, transfer->address.slot, address_size(transfer));
  if (transfer->judges && warp_launch(warp)->check.on) judge_load(warp, transfer->judges, mask);
  (transfer->strength == WEAK ? weak_store : store_strong)(warp, inst, mask, addresses);
  if (warp->has_undefined) store_undefined(warp, inst, mask, addresses);
}

// A kernel's parameter read by name: the same for every lane, and never out of bounds.
static void load_kernel_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  for (int e = 0; e < transfer->count; e++) undefined_clear(warp, mask, transfer->slots[e], transfer->slot_sizes[e]);
  set_elements(warp, transfer, mask, warp_launch(warp)->params + inst->immediate);
}

// A device function's parameters are bytes beside its registers: `immediate` of `size` a lane.
static void load_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  const u8 *bytes = SLOT(warp, inst->a, const u8) + inst->immediate;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    set_elements(warp, transfer, 1u << lane, bytes + (size_t)lane * inst->flags);
    for (int e = 0; e < transfer->count && warp->has_undefined; e++) {
      undefined_clear(warp, 1u << lane, transfer->slots[e], transfer->slot_sizes[e]);
      undefined_copy(warp, lane, inst->a, (int)inst->flags, (int)inst->immediate + e * transfer->size,
                     transfer->slots[e], transfer->slot_sizes[e], 0, transfer->size);
    }
  }
}

static void store_param(Warp *warp, const Inst *inst, Mask mask) {
  const Transfer *transfer = inst->extra;
  u8 *bytes = SLOT(warp, inst->a, u8) + inst->immediate;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    for (int e = 0; e < transfer->count; e++) {
      get_element(warp, transfer, e, lane, bytes + (size_t)lane * inst->flags + e * transfer->size);
      undefined_copy(warp, lane, transfer->slots[e], transfer->slot_sizes[e], 0, inst->a, (int)inst->flags,
                     (int)inst->immediate + e * transfer->size, transfer->size);
    }
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
  inst->size = (uint8_t)transfer->size;
  transfer->space = space_of(source);
  transfer->order = order_of(source);
  transfer->strength = transfer->order == ORDER_WEAK ? WEAK : scope_of(source);
  if (is_load && transfer->count > 1) transfer->parts = decoder_allocate(decoder, MAX_PARTS * sizeof *transfer);
  if (transfer->space == SPACE_PARAM && decode_param_place(decoder, source, address, is_load, inst))
    return decoder->failed ? DECODE_FAILED : DECODED;
  if (!is_load && (transfer->space == SPACE_CONST || transfer->space == SPACE_PARAM))
    return decoder_error(decoder, source, "this space cannot be written");
  inst->execute = is_load ? execute_ld : execute_st;
  return decode_address_plan(decoder, source, address, transfer->space, &transfer->address);
}

DecodeResult decode_ld(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, true, inst);
}

DecodeResult decode_st(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_transfer(decoder, source, false, inst);
}

// ---- for other files of this room ----

static const Transfer *plain_transfer(const Inst *inst, MemoryUse use) {
  const Transfer *transfer = inst->row->values == VALUES_OF_MEMORY && inst->row->memory == use ? inst->extra : NULL;
  bool reaches_others = transfer && (transfer->space == SPACE_GENERIC || transfer->space == SPACE_GLOBAL ||
                                     transfer->space == SPACE_SHARED);
  return reaches_others && transfer->strength == WEAK ? transfer : NULL;
}

bool is_plain_load(const Inst *inst) { return plain_transfer(inst, MEMORY_LOAD); }
bool is_plain_store(const Inst *inst) { return plain_transfer(inst, MEMORY_STORE); }
bool plain_load_of(const Inst *inst, PlainLoad *load) {
  const Transfer *transfer = inst->extra;
  if (!is_plain_load(inst) || transfer->count != 1 || transfer->sink[0]) return false;
  *load = (PlainLoad){&transfer->address, transfer->size, transfer->slots[0]};
  return true;
}

bool is_weak_access(const Inst *inst) {
  return inst->row->memory == MEMORY_LOAD || inst->row->memory == MEMORY_STORE
             ? inst->row->values == VALUES_OF_MEMORY && ((const Transfer *)inst->extra)->strength == WEAK
             : false;
}

Slot address_register(const Inst *inst) { return ((const Transfer *)inst->extra)->address.slot; }
bool can_judge_load(const Inst *store) { return !((const Transfer *)store->extra)->judges; }

void judge_load_at(Inst *load, Inst *store) {
  ((Transfer *)(uintptr_t)load->extra)->postponed = true;
  ((Transfer *)(uintptr_t)store->extra)->judges = load;
}

// Hints to the caches: without effect on what a program computes.
DecodeResult decode_cache_hint(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  (void)decoder;
  (void)source;
  inst->execute = execute_nothing;
  return DECODED;
}

// ---- values that nothing defines ----

bool find_unwritten(const Warp *warp, const Access *access, int bytes, u8 *undefined) {
  bool found = false;
  memset(undefined, 0, (size_t)bytes);
  for (int i = 0, run = 1; i < bytes; i += run) {
    Cell cell = {0};
    bool written = access->valid && access->valid[i];
    if (access->region) {
      run = shadow_run(&access->region->shadow, access->offset + (uint64_t)i, bytes - i,
                       warp_launch(warp)->check.number, &cell);
      written = cell.write != EPOCH_NONE;
    }
    if (!written) memset(undefined + i, 0xff, (size_t)run);
    found |= !written;
  }
  return found;
}

// A lane's registers hold what was not written: those bytes of the place that `undefined` marks.
static void note_lane(const LanePlaces *place, const Transfer *transfer, int lane, const u8 *undefined) {
  const Access *at = &place->at;
  int written = 0;
  for (int i = 0; i < place->bytes; i++) written += !undefined[i];
  UndefinedSource source = {.kind = at->region ? UNWRITTEN : UNWRITTEN_LOCAL,
                            .region = at->region,
                            .offset = at->offset +
                                      (size_t)((const u8 *)memchr(undefined, 0xff, (size_t)place->bytes) - undefined),
                            .address = place->addresses[lane],
                            .size = place->bytes,
                            .whole = !written};
  for (int e = 0; e < transfer->count; e++) {
    u8 bits[MAX_BYTES] = {0};
    const u8 *own = undefined + e * transfer->size;
    memcpy(bits, own, (size_t)transfer->size);
    for (int i = transfer->size; i < transfer->slot_sizes[e]; i++)  // PTX ISA 9.4.1: copies of the sign, or zeros
      bits[i] = transfer->is_signed ? own[transfer->size - 1] : 0;
    if (!transfer->sink[e])
      undefined_add(place->warp, place->inst, lane, &source, transfer->slots[e], transfer->slot_sizes[e], bits);
  }
}

void note_undefined(Warp *warp, const Inst *inst, const Transfer *transfer, Mask mask,
                    const uint64_t addresses[LANES]) {
  u8 undefined[MAX_BYTES];
  warp->found_unwritten = false;
  for (LanePlaces place = places_of(warp, inst, transfer, mask, addresses, ACCESS_READ); next_place(&place);)
    if (find_unwritten(warp, &place.at, place.bytes, undefined))
      for (Mask rest = place.lanes; rest; rest &= rest - 1)
        note_lane(&place, transfer, __builtin_ctz(rest), undefined);
}

// What is stored without being defined, and is no fault, is undefined in memory, too.
static void forget_written(const Warp *warp, const Access *access, const u8 *bits, int bytes) {
  for (int i = 0, run; i < bytes; i += run) {
    for (run = 1; i + run < bytes && !bits[i + run] == !bits[i];) run++;
    if (!bits[i]) continue;
    if (access->valid) memset(access->valid + i, 0, (size_t)run);
    if (access->region)
      shadow_write(&access->region->shadow, access->offset + (uint64_t)i, run, warp_launch(warp)->check.number,
                   EPOCH_NONE);
  }
}

void store_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int size = transfer->size;
  for (Mask rest = mask; rest; rest &= rest - 1)
    for (int e = 0; e < transfer->count; e++) {
      int lane = __builtin_ctz(rest);
      const u8 *bits;
      Access access;
      uint64_t address = addresses[lane] + (uint64_t)(e * size);
      if (!memory_find(warp, inst, lane, transfer->space, address, size, size, ACCESS_WRITE, &access)) return;
      bits = undefined_store(warp, inst, lane, transfer->slots[e], transfer->slot_sizes[e], access.valid);
      if (!bits) continue;
      memory_lock(&access);
      forget_written(warp, &access, bits, size);
      memory_unlock(&access);
    }
}
