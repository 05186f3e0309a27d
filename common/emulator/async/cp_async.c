// cp.async: copies of 4, 8 or 16 bytes a thread from global to shared memory, and their groups. PTX ISA 9.7.9.25.
//
// It works through the generic proxy, like ld and st: what it has written needs a fence.proxy.async before TMA or wgmma
// may read it.
#include <string.h>

#include "../report/hazard.h"
#include "../memory/access.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "async.h"
#include "families.h"

typedef struct CopyPlan {
  AddressPlan to, from;
  int size;              // bytes written: 4, 8 or 16
  bool has_source_size;  // fewer bytes are read, the rest is zero
  Slot source_size;
  bool has_ignore;  // a predicate: read nothing
  Slot ignore;
  bool ignore_negated;
} CopyPlan;

typedef struct CopyWork {
  Mask mask;
  Access to[LANES], from[LANES];
  uint8_t bytes[LANES];  // to read
} CopyWork;

static void perform_copy(Cluster *cluster, AsyncOp *op) {
  (void)cluster;
  const CopyPlan *plan = op->inst->extra;
  CopyWork *work = op->payload;
  for (Mask rest = work->mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u8 value[16] = {0};
    const Access *from = &work->from[lane];
    if (work->bytes[lane]) access_read(NULL, from->region, from->offset, value, work->bytes[lane]);
    memcpy(work->to[lane].data, value, (size_t)plan->size);
  }
}

// How many bytes a lane reads.
static int source_bytes(Warp *warp, const Inst *inst, const CopyPlan *plan, int lane) {
  if (plan->has_ignore && ((*SLOT(warp, plan->ignore, const Mask) >> lane & 1) ^ plan->ignore_negated)) return 0;
  if (!plan->has_source_size) return plan->size;
  uint32_t bytes = SLOT(warp, plan->source_size, const u32)[lane];
  if (bytes <= (uint32_t)plan->size) return (int)bytes;
  hazard_report(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, 0, 0, "src-size is %u, more than the %d bytes of the copy",
                bytes, plan->size);
  return plan->size;
}

// Checks one lane's copy, and remembers its accesses as the operation's.
static bool take_lane(AsyncOp *op, const CopyPlan *plan, int lane, uint64_t to, uint64_t from) {
  Warp *warp = op->warp;
  CopyWork *work = op->payload;
  int bytes = source_bytes(warp, op->inst, plan, lane);
  Actor actor = async_actor(op, lane, false);
  bool hazards = warp_launch(warp)->check.on;
  if (!memory_find(warp, op->inst, lane, SPACE_SHARED, to, plan->size, plan->size, ACCESS_WRITE, &work->to[lane]))
    return false;
  if (bytes &&
      !memory_find(warp, op->inst, lane, SPACE_GLOBAL, from, bytes, plan->size, ACCESS_READ, &work->from[lane]))
    return false;
  work->bytes[lane] = (uint8_t)bytes;
  if (!hazards) return true;
  if (bytes) access_read(&actor, work->from[lane].region, work->from[lane].offset, NULL, (uint64_t)bytes);
  access_write(&actor, work->to[lane].region, work->to[lane].offset, NULL, (uint64_t)plan->size);
  return true;
}

static void execute_cp_async(Warp *warp, const Inst *inst, Mask mask) {
  const CopyPlan *plan = inst->extra;
  uint64_t to[LANES], from[LANES];
  form_addresses(warp, &plan->to, mask, to);
  form_addresses(warp, &plan->from, mask, from);
  AsyncOp *op = async_issue(warp, inst, mask, perform_copy, warp_launch(warp)->schedule != 0, sizeof(CopyWork));
  CopyWork *work = op->payload;
  Mask reading = 0;  // lanes that read something: the others' zeros come from nowhere
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (!take_lane(op, plan, lane, to[lane], from[lane])) return;
    work->mask |= 1u << lane;
    reading |= (Mask)(work->bytes[lane] > 0) << lane;
  }
  if (reading) count_access(warp, inst, SPACE_GLOBAL, reading, from, plan->size, ACCESS_READ);
  warp_counts(warp, inst)->shared_written += (unsigned)(__builtin_popcount(mask) * plan->size);
  group_add(async_groups(warp, GROUP_CP_ASYNC), mask, op);
  warp_set_meanwhile(warp, MEANWHILE_LOAD, true);
}

static void execute_cp_async_commit(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  group_commit(async_groups(warp, GROUP_CP_ASYNC), mask);
}

static void execute_cp_async_wait(Warp *warp, const Inst *inst, Mask mask) {
  GroupQueue *queue = async_groups(warp, GROUP_CP_ASYNC);
  group_wait(warp, inst, queue, mask, (uint32_t)inst->immediate, inst->flags);
  warp_set_meanwhile(warp, MEANWHILE_LOAD, queue->count > 0);
}

// ---- decoding ----

// [to], [from], size{, source size or ignore predicate}{, cache policy}
DecodeResult decode_cp_async(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"async",          "ca",      "cg",       "shared",   "shared::cta", "global",
                                        "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B", NULL};
  bool hint = ptx_has(source, "L2::cache_hint"), all_levels = ptx_has(source, "ca");
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 3 + hint, 4 + hint))
    return DECODE_FAILED;
  if (all_levels == ptx_has(source, "cg")) return decoder_error(decoder, source, "needs .ca or .cg");
  decoder->program->asynchronous = true;
  CopyPlan *plan = decoder_allocate(decoder, sizeof *plan);
  const PtxOperand *size = &source->operands[2];
  bool fits = size->kind == PTX_OPERAND_INTEGER &&
              (size->value == 16 || (all_levels && (size->value == 4 || size->value == 8)));
  if (!fits) return decoder_error(decoder, source, all_levels ? "copies 4, 8 or 16 bytes" : ".cg copies 16 bytes only");
  plan->size = (int)size->value;
  if (source->operand_count == 4 + hint) {
    const PtxOperand *operand = &source->operands[3];
    bool predicate =
        operand->kind == PTX_OPERAND_REGISTER && decoder->function->ptx->registers[operand->index].type == PTX_PRED;
    plan->has_ignore = predicate;
    plan->has_source_size = !predicate;
    if (predicate)
      plan->ignore = decoder_source(decoder, operand, PTX_PRED);
    else
      plan->source_size = decoder_source(decoder, operand, PTX_B32);
    plan->ignore_negated = operand->negated;
  }
  inst->extra = plan;
  inst->execute = execute_cp_async;
  if (decode_address_plan(decoder, source, &source->operands[0], SPACE_SHARED, &plan->to) != DECODED)
    return DECODE_FAILED;
  return decode_address_plan(decoder, source, &source->operands[1], SPACE_GLOBAL, &plan->from);
}

DecodeResult decode_cp_async_group(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  decoder->program->asynchronous = true;
  bool waits = ptx_has(source, "wait_group"), commits = ptx_has(source, "commit_group");
  if (source->modifier_count != 2) return decoder_error(decoder, source, "unknown form");
  if (!decoder_operands(decoder, source, waits, waits)) return DECODE_FAILED;
  if (waits && (source->operands[0].kind != PTX_OPERAND_INTEGER || source->operands[0].value < 0 ||
                source->operands[0].value > INT32_MAX))
    return decoder_error(decoder, source, "N is an immediate, 0 or more");
  if (waits) inst->immediate = source->operands[0].value;
  inst->flags = ptx_has(source, "wait_all");
  inst->execute = commits ? execute_cp_async_commit : execute_cp_async_wait;
  return DECODED;
}
