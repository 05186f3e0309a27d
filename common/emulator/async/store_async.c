// st.async and red.async: a store into the shared memory of a block of the cluster, or a reduction there, whose bytes
// an mbarrier of that block counts. PTX ISA 9.7.9.12 and 9.7.13.7.
//
// They are asynchronous, and in the generic proxy: no fence.proxy.async stands between them and ordinary loads and
// stores.
#include <string.h>

#include "../report/hazard.h"
#include "../report/steps.h"
#include "../check/order.h"
#include "../memory/access.h"
#include "../memory/atomic.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "bulk.h"
#include "families.h"

enum { MAX_ELEMENTS = 4, MAX_BYTES = 16 };

typedef struct StorePlan {
  AddressPlan to, mbarrier;
  Space space;
  int size, count;   // bytes of an element, elements
  Combine *combine;  // of red.async
  Slot values[MAX_ELEMENTS];
} StorePlan;

typedef struct Store {
  u8 *to;
  uint64_t mbarrier;
  u32 size;
  Combine *combine;
  u8 bytes[MAX_BYTES];
} Store;

// A reduction is of one element.
static void reduce(const Store *store) {
  uint64_t old = 0, value = 0;
  memcpy(&old, store->to, store->size);
  memcpy(&value, store->bytes, store->size);
  value = store->combine(old, value, 0);
  memcpy(store->to, &value, store->size);
}

static void perform(Cluster *cluster, AsyncOp *op) {
  const Store *store = op->payload;
  if (store->combine)
    reduce(store);
  else
    memcpy(store->to, store->bytes, store->size);
  mbarrier_complete(cluster, op, store->mbarrier, store->size);
}

// Finds the bytes that a lane writes. False after a report.
static bool find_destination(Warp *warp, const Inst *inst, int lane, uint64_t address, int bytes, Access *to) {
  const StorePlan *plan = inst->extra;
  if (!memory_find(warp, inst, lane, plan->space, address, bytes, bytes, ACCESS_WRITE, to)) return false;
  bool shared = to->region && to->region->kind == REGION_SHARED;
  if (shared && warp->block->cluster->block_count > 1) return true;
  hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, bytes,
              shared ? "%s.async needs a cluster of more than one block"
                     : "%s.async writes the shared memory of a cluster, and the address is elsewhere",
              inst->source->opcode);
  return false;
}

static bool store_lane(Warp *warp, const Inst *inst, int lane, uint64_t address, uint64_t mbarrier_address) {
  const StorePlan *plan = inst->extra;
  int bytes = plan->size * plan->count;
  Access to;
  if (!find_destination(warp, inst, lane, address, bytes, &to)) return false;
  Mbarrier *mbarrier = mbarrier_of_copy(warp, inst, lane, plan->space, mbarrier_address, to.region);
  if (!mbarrier) return false;
  AsyncOp *op = async_issue(warp, inst, 1u << lane, perform, true, sizeof(Store));
  op->mbarrier = mbarrier->address;
  if (op->step) step_operation_is_copy(warp, op->step, mbarrier->address, (u32)bytes);
  op->known = race_lane_clocks(&warp->check, lane);
  mbarrier_touch_async(op, lane, mbarrier, false);
  Store *store = op->payload;
  *store = (Store){.to = to.data, .mbarrier = mbarrier->address, .size = (u32)bytes, .combine = plan->combine};
  for (int e = 0; e < plan->count; e++)
    memcpy(store->bytes + e * plan->size, SLOT(warp, plan->values[e], const u8) + lane * plan->size,
           (size_t)plan->size);
  if (!warp_launch(warp)->check.on) return true;
  Actor actor = async_actor(op, lane, false);
  if (plan->combine) {
    actor.strength = STRONG_CLUSTER;  // "the reduce operation is a relaxed memory operation", of cluster scope
    access_read(&actor, to.region, to.offset, NULL, (uint64_t)bytes);
  }
  access_write(&actor, to.region, to.offset, NULL, (uint64_t)bytes);
  return true;
}

static void execute_st_async(Warp *warp, const Inst *inst, Mask mask) {
  const StorePlan *plan = inst->extra;
  uint64_t to[LANES], mbarrier[LANES];
  form_addresses(warp, &plan->to, mask, to);
  form_addresses(warp, &plan->mbarrier, mask, mbarrier);
  count_access(warp, inst, plan->space, mask, to, plan->size * plan->count, ACCESS_WRITE);
  for (Mask rest = mask; rest; rest &= rest - 1)
    if (!store_lane(warp, inst, __builtin_ctz(rest), to[__builtin_ctz(rest)], mbarrier[__builtin_ctz(rest)])) return;
}

// ---- decoding ----

static bool is_stored_type(PtxType type) {
  switch (type) {
  case PTX_B32:
  case PTX_U32:
  case PTX_S32:
  case PTX_F32:
  case PTX_B64:
  case PTX_U64:
  case PTX_S64:
  case PTX_F64: return true;
  default: return false;
  }
}

// The registers to be stored: one, or as many as the vector has.
static bool decode_values(Decoder *decoder, const PtxInstruction *source, StorePlan *plan) {
  const PtxOperand *operand = &source->operands[1];
  PtxType type = ptx_instruction_type(source);
  bool is_vector = operand->kind == PTX_OPERAND_VECTOR;
  plan->size = (int)ptx_type_size(type);
  plan->count = ptx_has(source, "v4") ? 4 : ptx_has(source, "v2") ? 2 : 1;
  if (!is_stored_type(type) || plan->size * plan->count > MAX_BYTES) {
    decoder_error(decoder, source, "stores 32 or 64 bits, .v2 of either or .v4 of 32 bits");
    return false;
  }
  if ((is_vector ? operand->item_count : 1) != plan->count) {
    decoder_error(decoder, source, "needs %d registers", plan->count);
    return false;
  }
  for (int e = 0; e < plan->count; e++)
    plan->values[e] = decoder_source(decoder, is_vector ? &operand->items[e] : operand, type);
  return true;
}

// The operands and what both instructions have in common.
static DecodeResult decode_store_plan(Decoder *decoder, const PtxInstruction *source, StorePlan *plan, Inst *inst) {
  if (!ptx_has(source, "mbarrier::complete_tx::bytes"))
    return decoder_error(decoder, source, "completes on .mbarrier::complete_tx::bytes");
  plan->space = space_of(source);
  inst->extra = plan;
  inst->execute = execute_st_async;
  decoder->program->asynchronous = true;
  if (!decode_values(decoder, source, plan)) return DECODE_FAILED;
  if (decode_address_plan(decoder, source, &source->operands[0], plan->space, &plan->to) != DECODED)
    return DECODE_FAILED;
  return decode_address_plan(decoder, source, &source->operands[2], plan->space, &plan->mbarrier);
}

// st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.v2|.v4}.type [to], value, [mbarrier];
DecodeResult decode_st_async(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"async", "weak", "shared::cluster", "mbarrier::complete_tx::bytes", "v2",
                                        "v4",    NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 3, 3)) return DECODE_FAILED;
  StorePlan *plan = decoder_allocate(decoder, sizeof *plan);
  return decode_store_plan(decoder, source, plan, inst);
}

// red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.op.type [to], value, [mbarrier];
DecodeResult decode_red_async(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "async", "relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes", "inc", "dec", "min", "max",
      "add", "and", "or", "xor", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 3, 3)) return DECODE_FAILED;
  StorePlan *plan = decoder_allocate(decoder, sizeof *plan);
  PtxType type = ptx_instruction_type(source);
  const char *name = bulk_reduction_name(source);
  bool exists = type == PTX_U32 || type == PTX_S32 || type == PTX_B32 || (type == PTX_U64 && ptx_has(source, "add"));
  plan->combine = name && exists ? reduction_find(name, type, false) : NULL;
  if (!plan->combine) return decoder_error(decoder, source, "no such operation on .%s", ptx_type_name(type));
  return decode_store_plan(decoder, source, plan, inst);
}
