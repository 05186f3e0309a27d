// atom and red: read-modify-write of global and shared memory. PTX ISA 9.7.13.5 and .6.
#include "atomic.h"

#include <math.h>
#include <string.h>

#include "../report/hazard.h"
#include "../report/undefined.h"
#include "../warp/floating.h"
#include "../warp/instruction.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "access.h"
#include "families.h"

enum { MAX_VECTOR = 8, MAX_BYTES = 16 };

typedef struct Atomic {
  AddressPlan address;
  Space space;
  MemoryOrder order;
  Strength scope;
  int size, count;   // bytes of an element, elements
  bool returns;      // atom, not red
  bool loops;        // in shared memory
  Combine *combine;  // of an element; NULL of 128 bits
  bool compares;     // of 128 bits: cas, not exch
  Slot d[MAX_VECTOR], b[MAX_VECTOR], c;
} Atomic;

// ---- operations ----

#define COMBINE(name, expression)                                                                                      \
  static uint64_t name(uint64_t old, uint64_t b, uint64_t c) {                                                         \
    (void)old;                                                                                                         \
    (void)b;                                                                                                           \
    (void)c;                                                                                                           \
    return (uint64_t)(expression);                                                                                     \
  }

COMBINE(atomic_exch, b)
COMBINE(atomic_cas, old == b ? c : old)
COMBINE(atomic_and, old &b)
COMBINE(atomic_or, old | b)
COMBINE(atomic_xor, old ^ b)
COMBINE(atomic_add, old + b)
COMBINE(atomic_min_u32, (u32)old < (u32)b ? old : b)
COMBINE(atomic_max_u32, (u32)old > (u32)b ? old : b)
COMBINE(atomic_min_s32, (s32)old < (s32)b ? old : b)
COMBINE(atomic_max_s32, (s32)old > (s32)b ? old : b)
COMBINE(atomic_min_u64, old < b ? old : b)
COMBINE(atomic_max_u64, old > b ? old : b)
COMBINE(atomic_min_s64, (s64)old < (s64)b ? old : b)
COMBINE(atomic_max_s64, (s64)old > (s64)b ? old : b)
COMBINE(atomic_inc, (u32)old >= (u32)b ? 0 : old + 1)
COMBINE(atomic_dec, (u32)old == 0 || (u32)old > (u32)b ? b : old - 1)

// Of two NaNs an H200 keeps the added one in global memory and the old one in shared memory.
static f64 add_doubles(f64 x, f64 y) { return last_nan_f64(x, y, x + y); }
COMBINE(atomic_add_f64, f64_bits(add_doubles(f64_from_bits(b), f64_from_bits(old))))
COMBINE(atomic_add_f64_global, f64_bits(add_doubles(f64_from_bits(old), f64_from_bits(b))))

// Subnormals are kept in shared memory and flushed in global memory (PTX ISA: "atom.add.f32 on global memory flushes
// subnormal inputs and results to sign-preserving zero").
COMBINE(atomic_add_f32, f32_bits(canonical_f32(f32_from_bits((u32)old) + f32_from_bits((u32)b))))
COMBINE(atomic_add_f32_flushed,
        f32_bits(flush_f32(canonical_f32(flush_f32(f32_from_bits((u32)old)) + flush_f32(f32_from_bits((u32)b))))))

static u16 add_half(u16 a, u16 b) { return f16_from_f32(f32_from_f16(a) + f32_from_f16(b)); }
static u16 add_bfloat(u16 a, u16 b) { return bf16_from_f32(f32_from_bf16(a) + f32_from_bf16(b)); }
COMBINE(atomic_add_f16, add_half((u16)old, (u16)b))
COMBINE(atomic_add_bf16, add_bfloat((u16)old, (u16)b))
COMBINE(atomic_add_f16x2, add_half((u16)old, (u16)b) | (u32)add_half((u16)(old >> 16), (u16)(b >> 16)) << 16)
COMBINE(atomic_add_bf16x2, add_bfloat((u16)old, (u16)b) | (u32)add_bfloat((u16)(old >> 16), (u16)(b >> 16)) << 16)

static const struct {
  const char *operation;
  PtxType type;
  Combine *combine;
} atomic_operations[] = {
    {"exch", PTX_B32, atomic_exch},     {"exch", PTX_B64, atomic_exch},       {"cas", PTX_B16, atomic_cas},
    {"cas", PTX_B32, atomic_cas},       {"cas", PTX_B64, atomic_cas},         {"and", PTX_B32, atomic_and},
    {"and", PTX_B64, atomic_and},       {"or", PTX_B32, atomic_or},           {"or", PTX_B64, atomic_or},
    {"xor", PTX_B32, atomic_xor},       {"xor", PTX_B64, atomic_xor},         {"add", PTX_U32, atomic_add},
    {"add", PTX_S32, atomic_add},       {"add", PTX_U64, atomic_add},         {"add", PTX_S64, atomic_add},
    {"add", PTX_F32, atomic_add_f32},   {"add", PTX_F64, atomic_add_f64},     {"add", PTX_F16, atomic_add_f16},
    {"add", PTX_BF16, atomic_add_bf16}, {"add", PTX_F16X2, atomic_add_f16x2}, {"add", PTX_BF16X2, atomic_add_bf16x2},
    {"min", PTX_U32, atomic_min_u32},   {"min", PTX_S32, atomic_min_s32},     {"min", PTX_U64, atomic_min_u64},
    {"min", PTX_S64, atomic_min_s64},   {"max", PTX_U32, atomic_max_u32},     {"max", PTX_S32, atomic_max_s32},
    {"max", PTX_U64, atomic_max_u64},   {"max", PTX_S64, atomic_max_s64},     {"inc", PTX_U32, atomic_inc},
    {"dec", PTX_U32, atomic_dec},
};

// Of asynchronous reductions and of vectors alone: a NaN loses to a number.
COMBINE(atomic_min_f16, f16_from_f32(min_f32(f32_from_f16((u16)old), f32_from_f16((u16)b))))
COMBINE(atomic_max_f16, f16_from_f32(max_f32(f32_from_f16((u16)old), f32_from_f16((u16)b))))
COMBINE(atomic_min_bf16, bf16_from_f32(min_f32(f32_from_bf16((u16)old), f32_from_bf16((u16)b))))
COMBINE(atomic_max_bf16, bf16_from_f32(max_f32(f32_from_bf16((u16)old), f32_from_bf16((u16)b))))

// Of vectors alone: two numbers in 32 bits.
#define COMBINE_PAIR(name, one)                                                                                        \
  COMBINE(name, (u32)one((u16)old, (u16)b, 0) | (u32)one((u16)(old >> 16), (u16)(b >> 16), 0) << 16)
COMBINE_PAIR(atomic_min_f16x2, atomic_min_f16)
COMBINE_PAIR(atomic_max_f16x2, atomic_max_f16)
COMBINE_PAIR(atomic_min_bf16x2, atomic_min_bf16)
COMBINE_PAIR(atomic_max_bf16x2, atomic_max_bf16)

// What global memory does in place of an operation.
static Combine *global_combine(Combine *combine) {
  return combine == atomic_add_f32   ? atomic_add_f32_flushed
         : combine == atomic_add_f64 ? atomic_add_f64_global
                                     : combine;
}

// Asynchronous reductions keep subnormals, unlike atomics on global memory: so an H200 did.
Combine *reduction_find(const char *operation, PtxType type, bool global) {
  if (!strcmp(operation, "add") && type == PTX_F32) return atomic_add_f32;
  if (!strcmp(operation, "min") && type == PTX_F16) return atomic_min_f16;
  if (!strcmp(operation, "max") && type == PTX_F16) return atomic_max_f16;
  if (!strcmp(operation, "min") && type == PTX_BF16) return atomic_min_bf16;
  if (!strcmp(operation, "max") && type == PTX_BF16) return atomic_max_bf16;
  for (size_t i = 0; i < sizeof atomic_operations / sizeof *atomic_operations; i++)
    if (atomic_operations[i].type == type && !strcmp(operation, atomic_operations[i].operation))
      return global ? global_combine(atomic_operations[i].combine) : atomic_operations[i].combine;
  return NULL;
}

Combine *reduction_flushing(Combine *combine) { return combine == atomic_add_f32 ? atomic_add_f32_flushed : combine; }

// ---- execution ----

static uint64_t lane_value(Warp *warp, Slot slot, int size, int lane) {
  uint64_t value = 0;
  memcpy(&value, SLOT(warp, slot, u8) + lane * size, (size_t)size);
  return value;
}

// What becomes of the old bytes of a vector's elements, or of 128 bits.
static void new_value(Warp *warp, const Atomic *atomic, bool global, int lane, const u8 *old, u8 *value) {
  if (!atomic->combine) {
    const u8 *b = SLOT(warp, atomic->b[0], u8) + lane * MAX_BYTES, *c = SLOT(warp, atomic->c, u8) + lane * MAX_BYTES;
    memcpy(value, !atomic->compares ? b : memcmp(old, b, MAX_BYTES) ? old : c, MAX_BYTES);
    return;
  }
  Combine *combine = global ? global_combine(atomic->combine) : atomic->combine;
  size_t size = (size_t)atomic->size;
  for (int e = 0; e < atomic->count; e++) {
    uint64_t element = 0;
    memcpy(&element, old + (size_t)e * size, size);
    element = combine(element, lane_value(warp, atomic->b[e], atomic->size, lane),
                      lane_value(warp, atomic->c, atomic->size, lane));
    memcpy(value + (size_t)e * size, &element, size);
  }
}

// An exchange needs no old value. What it returns is undefined where nothing was written before.
static void note_undefined_exchange(Warp *warp, const Inst *inst, int lane, const Access *access) {
  const Atomic *atomic = inst->extra;
  UndefinedSource source = {.kind = UNWRITTEN,
                            .region = access->region,
                            .offset = access->offset,
                            .address = access->region->base + access->offset,
                            .size = atomic->size * atomic->count,
                            .whole = true};
  warp->found_unwritten = false;
  for (int e = 0; atomic->returns && e < atomic->count; e++)
    undefined_add(warp, inst, lane, &source, atomic->d[e], atomic->size, NULL);
}

// An exchange is executed without looking at its registers: undefined.h.
static void use_registers(Warp *warp, const Inst *inst, Mask mask) {
  const Atomic *atomic = inst->extra;
  undefined_use(warp, inst, mask, atomic->address.slot, atomic->address.narrow ? 4 : 8);
  for (int e = 0; e < atomic->count; e++) {
    undefined_use(warp, inst, mask, atomic->b[e], atomic->size);
    if (atomic->returns) undefined_clear(warp, mask, atomic->d[e], atomic->size);
  }
}

// One lane's read-modify-write; the hardware too does them one after the other.
static void atomic_lane(Warp *warp, const Inst *inst, const LanePlaces *place) {
  const Atomic *atomic = inst->extra;
  const Launch *launch = warp_launch(warp);
  const Access *at = &place->at;
  bool shared = at->region->kind == REGION_SHARED;
  u8 old[MAX_BYTES], value[MAX_BYTES];
  size_t size = (size_t)atomic->size;
  if (launch->check.on)
    race_atomic(&warp->check, pc_of_inst(warp, inst), place->lane, at->region, at->offset, place->bytes, atomic->scope);
  sync_atomic(shared ? warp->check.cluster->sync : launch->check.sync, &(Elements){at->data, size, atomic->count},
              &warp->check, place->lane, atomic->order, atomic->scope);
  memcpy(old, at->data, (size_t)place->bytes);
  new_value(warp, atomic, !shared, place->lane, old, value);
  store_bytes(warp, at, value, place->bytes);
  for (int e = 0; atomic->returns && e < atomic->count; e++)
    memcpy(SLOT(warp, atomic->d[e], u8) + (size_t)place->lane * size, old + (size_t)e * size, size);
  if (warp->found_unwritten) note_undefined_exchange(warp, inst, place->lane, at);
}

static void execute_atomic(Warp *warp, const Inst *inst, Mask mask) {
  const Atomic *atomic = inst->extra;
  int bytes = atomic->size * atomic->count;
  uint64_t addresses[LANES];
  form_addresses(warp, &atomic->address, mask, addresses);
  if (warp->has_undefined && inst->row->values == VALUES_OF_MEMORY) use_registers(warp, inst, mask);
  if (atomic->loops)
    count_atomic_loop(warp, inst, atomic->space, mask, addresses, bytes);
  else
    count_access(warp, inst, atomic->space, mask, addresses, bytes, ACCESS_ATOMIC);
  LanePlaces place = {.warp = warp,
                      .inst = inst,
                      .space = atomic->space,
                      .bytes = bytes,
                      .kind = atomic->count > 1 ? ACCESS_ATOMIC_VECTOR : ACCESS_ATOMIC,
                      .addresses = addresses,
                      .left = mask};
  while (next_place(&place)) atomic_lane(warp, inst, &place);
  // One that changes memory is progress; so all there is to find is that none did.
  warp_poll(warp, inst, addresses[__builtin_ctz(mask)], mask);
}

bool swap_of(const Inst *inst, Swap *swap) {
  const Atomic *atomic = inst->extra;
  if (inst->row->memory != MEMORY_SWAP || !atomic->returns) return false;
  *swap = (Swap){&atomic->address, atomic->size, atomic->d[0], atomic->b[0], atomic->c};
  return true;
}

// ---- decoding ----

static PtxType bits_of_size(size_t size) {
  return size == 2 ? PTX_B16 : size == 4 ? PTX_B32 : size == 8 ? PTX_B64 : PTX_B128;
}

static const struct {
  const char *operation;
  PtxType type;
  Combine *combine;
} vector_operations[] = {
    {"add", PTX_F32, atomic_add_f32},       {"add", PTX_F16, atomic_add_f16},
    {"add", PTX_BF16, atomic_add_bf16},     {"add", PTX_F16X2, atomic_add_f16x2},
    {"add", PTX_BF16X2, atomic_add_bf16x2}, {"min", PTX_F16, atomic_min_f16},
    {"max", PTX_F16, atomic_max_f16},       {"min", PTX_BF16, atomic_min_bf16},
    {"max", PTX_BF16, atomic_max_bf16},     {"min", PTX_F16X2, atomic_min_f16x2},
    {"max", PTX_F16X2, atomic_max_f16x2},   {"min", PTX_BF16X2, atomic_min_bf16x2},
    {"max", PTX_BF16X2, atomic_max_bf16x2},
};

static Combine *find_combine(const PtxInstruction *source, PtxType type, bool vector) {
  for (size_t i = 0; i < sizeof vector_operations / sizeof *vector_operations && vector; i++)
    if (vector_operations[i].type == type && ptx_has(source, vector_operations[i].operation))
      return vector_operations[i].combine;
  for (size_t i = 0; i < sizeof atomic_operations / sizeof *atomic_operations && !vector; i++)
    if (atomic_operations[i].type == type && ptx_has(source, atomic_operations[i].operation))
      return atomic_operations[i].combine;
  return NULL;
}

// Whether ptxas makes a loop of the operation on shared memory, which loads, combines, and compares and swaps: shared
// memory adds no floating-point numbers, and all that it does with 64 bits is to exchange them. (Of 16 bits it makes
// another loop, whose counts were not recorded: they count as one operation.)
static bool is_loop(Combine *combine, int size) {
  if (combine == atomic_exch || combine == atomic_cas) return false;
  return size >= 8 || combine == atomic_add_f32 || combine == atomic_add_f16x2 || combine == atomic_add_bf16x2;
}

// The registers of an operand: one, or as many as the vector has.
static bool decode_atomic_elements(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand,
                                   PtxType type, bool is_destination, const Atomic *atomic, Slot *slots) {
  bool is_vector = operand->kind == PTX_OPERAND_VECTOR;
  if ((is_vector ? operand->item_count : 1) != atomic->count) {
    decoder_error(decoder, source, "needs %d registers", atomic->count);
    return false;
  }
  for (int e = 0; e < atomic->count; e++) {
    const PtxOperand *element = is_vector ? &operand->items[e] : operand;
    slots[e] = is_destination ? decoder_destination(decoder, element, type) : decoder_source(decoder, element, type);
  }
  return !decoder->failed;
}

// What the instruction does to an element. False after an error.
static bool decode_operation(Decoder *decoder, const PtxInstruction *source, Atomic *atomic) {
  PtxType type = ptx_instruction_type(source);
  atomic->count = ptx_has(source, "v2") ? 2 : ptx_has(source, "v4") ? 4 : ptx_has(source, "v8") ? 8 : 1;
  atomic->size = (int)ptx_type_size(type);
  atomic->compares = ptx_has(source, "cas");
  bool wide = type == PTX_B128 && (atomic->compares || ptx_has(source, "exch"));
  atomic->combine = wide ? NULL : find_combine(source, type, atomic->count > 1);
  atomic->loops = is_loop(atomic->combine, atomic->size);
  if (atomic->size * atomic->count > MAX_BYTES || (atomic->count > 1 && ptx_has(source, "shared")))
    decoder_error(decoder, source, "a vector is in global memory, and has at most %d bytes", MAX_BYTES);
  else if (!wide && !atomic->combine)
    decoder_error(decoder, source, "no such operation on .%s", ptx_type_name(type));
  return !decoder->failed;
}

static DecodeResult decode_atomic(Decoder *decoder, const PtxInstruction *source, bool returns, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "global", "shared", "shared::cta",
      "shared::cluster", "noftz", "L2::cache_hint", "exch", "cas", "and", "or", "xor", "add", "min", "max", "inc",
      "dec", "v2", "v4", "v8", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, returns ? 3 : 2, 5))
    return DECODE_FAILED;
  PtxType type = ptx_instruction_type(source), bits = bits_of_size(ptx_type_size(type));
  Atomic *atomic = decoder_allocate(decoder, sizeof *atomic);
  if (!decode_operation(decoder, source, atomic)) return DECODE_FAILED;
  int needed = returns + 2 + atomic->compares;
  if (!decoder_operands(decoder, source, needed, needed + ptx_has(source, "L2::cache_hint"))) return DECODE_FAILED;
  const PtxOperand *operands = source->operands + returns;
  atomic->returns = returns;
  atomic->space = space_of(source);
  atomic->scope = scope_of(source);
  // "If no .sem qualifier is specified, the operation is relaxed."
  atomic->order = order_of(source) == ORDER_WEAK ? ORDER_RELAXED : order_of(source);
  PtxType operand_type = type == PTX_F32 || type == PTX_F64 ? type : bits;
  if (returns && !decode_atomic_elements(decoder, source, &source->operands[0], bits, true, atomic, atomic->d))
    return DECODE_FAILED;
  if (!decode_atomic_elements(decoder, source, &operands[1], operand_type, false, atomic, atomic->b))
    return DECODE_FAILED;
  atomic->c = atomic->compares ? decoder_source(decoder, &operands[2], bits) : atomic->b[0];
  inst->extra = atomic;
  // Packed types are accessed one number at a time, PTX ISA 8.2.3.
  bool packed = type == PTX_F16X2 || type == PTX_BF16X2;
  inst->size = (uint8_t)(packed ? atomic->size / 2 : atomic->size);
  inst->execute = execute_atomic;
  return decode_address_plan(decoder, source, &operands[0], atomic->space, &atomic->address);
}

DecodeResult decode_atom(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_atomic(decoder, source, true, inst);
}

DecodeResult decode_red(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_atomic(decoder, source, false, inst);
}
