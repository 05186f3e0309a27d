// mbarrier instructions, PTX ISA 9.7.13.15; what they do to the objects is in mbarrier_object.c.
#include "../check/order.h"
#include "../report/hazard.h"
#include "../report/steps.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "families.h"
#include "mbarrier_object.h"

typedef enum WaitKind { WAIT_STATE, WAIT_PARITY } WaitKind;

// Operands of an mbarrier instruction beside the Inst's d (result) and a (state, parity or bytes).
typedef struct MbarrierPlan {
  AddressPlan address;
  Space space;
  bool relaxed;
  Strength scope;        // of arrive
  bool drop, completes;  // of arrive
  bool expects;          // arrive.expect_tx: a holds bytes
  bool returns;          // a state
  Slot count;            // of init and arrive
  WaitKind wait;
} MbarrierPlan;

// What an instruction does for lanes that name the same mbarrier. False after a report.
typedef bool PerObject(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier);

static void each_object(Warp *warp, const Inst *inst, Mask mask, PerObject *perform) {
  const MbarrierPlan *plan = inst->extra;
  uint64_t addresses[LANES];
  form_addresses(warp, &plan->address, mask, addresses);
  while (mask) {
    Mask same = at_one_place(mask, addresses);
    int lane = __builtin_ctz(mask);
    Mbarrier *mbarrier = mbarrier_find(warp, inst, lane, plan->space, addresses[lane]);
    if (!mbarrier) return;
    mbarrier_touch(warp, inst, same, mbarrier);
    if (!perform(warp, inst, same, mbarrier)) return;
    mask &= ~same;
  }
}

// ---- init and inval ----

static void execute_mbarrier_init(Warp *warp, const Inst *inst, Mask mask) {
  const MbarrierPlan *plan = inst->extra;
  const u32 *counts = SLOT(warp, plan->count, const u32);
  uint64_t addresses[LANES];
  form_addresses(warp, &plan->address, mask, addresses);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    Access access;
    if (!memory_find(warp, inst, lane, plan->space, addresses[lane], MBARRIER_BYTES, MBARRIER_BYTES, ACCESS_WRITE,
                     &access))
      return;
    if (!access.region || access.region->kind != REGION_SHARED) {
      mbarrier_fault(MBARRIER_MISUSE_STOPS, (Origin){warp, lane, inst}, addresses[lane],
                     "an mbarrier lives in shared memory, and this address is not there");
      return;
    }
    mbarrier_create(warp, inst, lane, &access, counts[lane]);
  }
}

static bool invalidate_object(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier) {
  int lane = __builtin_ctz(mask);
  if (mask & (mask - 1))
    mbarrier_fault(MBARRIER_MISUSE, (Origin){warp, lane, inst}, mbarrier->address,
                   "several threads invalidate one mbarrier");
  mbarrier_destroy(warp, inst, lane, mbarrier);
  return true;
}

static void execute_mbarrier_inval(Warp *warp, const Inst *inst, Mask mask) {
  each_object(warp, inst, mask, invalidate_object);
}

// ---- arrive, expect_tx, complete_tx ----

// The threads that wait are of the mbarrier's block: an arrival from another block orders nothing unless its scope has
// both.
static void release_to(Warp *warp, Mask mask, const MbarrierPlan *plan, Mbarrier *mbarrier) {
  if (!mask) return;
  bool remote = mbarrier->address >> SHARED_RANK_SHIFT != (uint64_t)warp->block->rank + 1;
  bool too_narrow = remote && plan->scope == STRONG_CTA;
  mbarrier->loose |= plan->relaxed || too_narrow;
  if (too_narrow) {
    warp->block->cluster->arrived_narrowly = true;
    race_release_narrow(&warp->check, mask, warp->block->cluster->shown, &mbarrier->arrived);
  } else if (plan->relaxed) {
    race_release_relaxed(&warp->check, mask, &mbarrier->arrived, remote ? STRONG_CLUSTER : STRONG_CTA);
  } else {
    race_release(&warp->check, mask, &mbarrier->arrived);
  }
}

// Lanes arrive one after the other. What they release belongs to the phase that they arrive in: before the arrival that
// completes it, it is handed over.
static bool arrive_object(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier) {
  const MbarrierPlan *plan = inst->extra;
  Cluster *cluster = warp->block->cluster;
  const u32 *counts = SLOT(warp, plan->count, const u32), *bytes = SLOT(warp, inst->a, const u32);
  u64 *states = SLOT(warp, inst->d, u64);
  Mask arrived = 0;
  if (foresee(warp, inst, mbarrier->address, false)) return true;
  warp_set_meanwhile(warp, MEANWHILE_HOLDING, false);
  use_arrive(&mbarrier->uses, warp, inst, mbarrier->phase);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    Origin origin = {warp, lane, inst};
    MbarrierState state = mbarrier_state(mbarrier);
    if (!plan->relaxed) mbarrier_check_phase(warp, inst, lane, mbarrier);
    arrived |= 1u << lane;
    if (plan->returns) states[lane] = mbarrier->word;
    if (state.pending == counts[lane]) {
      release_to(warp, arrived, plan, mbarrier);
      arrived = 0;
    }
    if (plan->expects && !mbarrier_expect(cluster, mbarrier, origin, bytes[lane])) return false;
    if (!mbarrier_arrive(cluster, mbarrier, origin, counts[lane], plan->drop, plan->completes)) return false;
  }
  release_to(warp, arrived, plan, mbarrier);
  return true;
}

// Lanes may arrive at several blocks' mbarriers by one instruction. What one of them shows, the others have done, too.
static void execute_mbarrier_arrive(Warp *warp, const Inst *inst, Mask mask) {
  Cluster *cluster = warp->block->cluster;
  bool several = mask & (mask - 1) && cluster->block_count > 1;
  cluster->shown = several ? race_show(&warp->check, mask) : NULL;
  each_object(warp, inst, mask, arrive_object);
  clocks_release(cluster->shown);
  cluster->shown = NULL;
}

static bool change_bytes(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier, int sign) {
  const u32 *bytes = SLOT(warp, inst->a, const u32);
  if (warp->block->cluster->foresight) return true;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (!mbarrier_expect(warp->block->cluster, mbarrier, (Origin){warp, lane, inst}, sign * (int64_t)bytes[lane]))
      return false;
  }
  return true;
}

static bool expect_object(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier) {
  return change_bytes(warp, inst, mask, mbarrier, 1);
}
static bool complete_object(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier) {
  return change_bytes(warp, inst, mask, mbarrier, -1);
}

static void execute_mbarrier_expect_tx(Warp *warp, const Inst *inst, Mask mask) {
  each_object(warp, inst, mask, expect_object);
}
static void execute_mbarrier_complete_tx(Warp *warp, const Inst *inst, Mask mask) {
  each_object(warp, inst, mask, complete_object);
}

// ---- test_wait and try_wait ----

static const char *const stale_state =
    "the state is that of a phase long past: only the current phase and the one before can be waited for";

// Whether the phase that a lane asks for has completed; *parity is that of the phase. A phase
// long past counts as completed, and of a parity the last bit alone.
static void test_phase(Warp *warp, const Inst *inst, int lane, const Mbarrier *mbarrier, bool *completed, u32 *parity) {
  const MbarrierPlan *plan = inst->extra;
  Origin origin = {warp, lane, inst};
  if (plan->wait == WAIT_PARITY) {
    u32 given = SLOT(warp, inst->a, const u32)[lane];
    if (given > 1)
      hazard_report_graded(HAZARD_FORMAL, warp, inst, lane, HAZARD_MBARRIER_MISUSE, mbarrier->address, MBARRIER_BYTES,
                           "a phase's parity is 0 or 1, not %d. The hardware looks at the last bit alone, so this "
                           "waits for parity %u",
                           (int)given, given & 1);
    *parity = given & 1;
    *completed = *parity != (mbarrier->phase & 1);
    return;
  }
  // The state of an arrival is the object as it was: its last three bits of the phase tell which.
  u64 state = SLOT(warp, inst->a, const u64)[lane];
  u32 behind = (mbarrier->phase - (u32)(state >> 61)) & 7;
  *parity = (u32)(state >> 61) & 1;
  *completed = behind > 0;
  if (behind > 1) mbarrier_fault(MBARRIER_MISUSE, origin, mbarrier->address, "%s", stale_state);
}

// The phase that is over, or the one that is not.
static void record_wait(const Warp *warp, const Inst *inst, Mask lanes, EmulatorStepKind kind,
                        const Mbarrier *mbarrier) {
  MbarrierState state = mbarrier_state(mbarrier);
  u32 phase = mbarrier->phase - (kind == EMULATOR_STEP_WAIT_PASSES);
  MbarrierStep step = {kind, mbarrier->address, phase, state.pending, state.tx};
  if (lanes) step_mbarrier(warp, inst, lanes, &step);
}

static bool wait_object(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier) {
  const MbarrierPlan *plan = inst->extra;
  Mask done = 0, *result = SLOT(warp, inst->d, Mask);
  u32 parity = 0;
  if (warp->block->cluster->foresight) {
    *result |= mask;
    return true;
  }
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    bool completed;
    test_phase(warp, inst, lane, mbarrier, &completed, &parity);
    mbarrier_check_parity(warp, inst, lane, mbarrier, parity);
    if (completed)
      done |= 1u << lane;
    else
      mbarrier_note_wait(warp, inst, 1u << lane, mbarrier, parity);
  }
  *result = (*result & ~mask) | done;
  if (warp_launch(warp)->record) {
    record_wait(warp, inst, done, EMULATOR_STEP_WAIT_PASSES, mbarrier);
    record_wait(warp, inst, mask & ~done, EMULATOR_STEP_WAIT_FAILS, mbarrier);
  }
  if (!done) return true;
  warp_set_meanwhile(warp, MEANWHILE_HOLDING, true);
  mbarrier_note_wait(warp, inst, done, NULL, 0);
  use_pass(&mbarrier->uses, warp, inst, done, mbarrier->phase);
  mbarrier_seen(mbarrier);
  if (plan->relaxed)
    race_acquire_relaxed(&warp->check, done, mbarrier->completed);
  else
    race_acquire(&warp->check, done, mbarrier->completed);
  return true;
}

static void execute_mbarrier_wait(Warp *warp, const Inst *inst, Mask mask) {
  each_object(warp, inst, mask, wait_object);
  bool complete = *SLOT(warp, inst->d, const Mask) & mask;
  if (complete && warp->waits_at != inst) warp_counts(warp, inst)->at_once++;
  warp->waits_at = complete ? NULL : inst;
  if (complete) return;
  InstCounts *counts = warp_counts(warp, inst);
  counts->failed_polls++;
  counts->failed_polls_under_load += warp_meanwhile(warp, warp->block->cluster) >> MEANWHILE_LOAD & 1;
  warp_idle(warp);
}

// ---- pending_count ----

static void execute_mbarrier_pending_count(Warp *warp, const Inst *inst, Mask mask) {
  const u64 *states = SLOT(warp, inst->a, const u64);
  u32 *d = SLOT(warp, inst->d, u32);
  EACH_LANE(mask, d[LANE] = (u32)states[LANE] & MBARRIER_MAX);
}

// ---- cp.async.mbarrier.arrive ----

// The copies that an asynchronous arrival waits for: of each agent the last clock, for the ones before are over.
typedef struct AsyncArrival {
  uint64_t mbarrier;
  u32 lanes;
  u32 clocks[ASYNC_AGENTS];  // 0: none of this agent
} AsyncArrival;

static AsyncOp *pending_operation(const Cluster *cluster, u32 agent, u32 clock) {
  AsyncOp *op = async_first_pending(cluster);
  while (op && (op->agent != agent || op->clock != clock)) op = op->next;
  return op;
}

static void perform_arrival(Cluster *cluster, AsyncOp *op) {
  const AsyncArrival *arrival = op->payload;
  Mbarrier *mbarrier = mbarrier_at(cluster, arrival->mbarrier);
  for (u32 i = 0; i < ASYNC_AGENTS; i++) {
    u32 agent = (u32)cluster->check.lane_count + i, clock = arrival->clocks[i];
    if (!clock) continue;
    AsyncOp *copy = pending_operation(cluster, agent, clock);
    if (copy) async_finish(cluster, copy);
    if (mbarrier && cluster->launch->check.on) clocks_add_agent(&cluster->check, &mbarrier->arrived, agent, clock);
  }
  mbarrier_arrive_async(cluster, op, arrival->mbarrier, arrival->lanes);
}

// The lanes' arrivals, when the cp.async that they have issued so far are done. flags: .noinc; else the phase waits
// for these arrivals besides those that it was initialised for.
static bool arrive_later(Warp *warp, const Inst *inst, Mask mask, Mbarrier *mbarrier) {
  const GroupQueue *queue = async_groups(warp, GROUP_CP_ASYNC);
  u32 lanes = (u32)__builtin_popcount(mask);
  if (foresee(warp, inst, mbarrier->address, false)) return true;
  use_arrive(&mbarrier->uses, warp, inst, mbarrier->phase);
  if (!inst->flags && !mbarrier_add_pending(mbarrier, (Origin){warp, __builtin_ctz(mask), inst}, lanes)) return false;
  AsyncArrival *arrival = async_issue(warp, inst, mask, perform_arrival, true, sizeof *arrival)->payload;
  arrival->mbarrier = mbarrier->address;
  arrival->lanes = lanes;
  for (int i = 0; i < queue->count; i++) {
    const AsyncOp *copy = queue->entries[i].op;
    u32 *last = &arrival->clocks[copy->agent - (u32)warp->block->cluster->check.lane_count];
    if (queue->entries[i].waiting & mask) *last = copy->clock;  // an agent's copies are in the order of their clocks
  }
  return true;
}

static void execute_mbarrier_arrive_async(Warp *warp, const Inst *inst, Mask mask) {
  each_object(warp, inst, mask, arrive_later);
}

// ---- decoding ----

DecodeResult decode_mbarrier_arrive_async(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"async", "mbarrier", "arrive", "noinc", "shared", "shared::cta", NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1, 1)) return DECODE_FAILED;
  MbarrierPlan *plan = decoder_allocate(decoder, sizeof *plan);
  plan->space = space_of(source);
  inst->flags = ptx_has(source, "noinc");
  inst->extra = plan;
  inst->execute = execute_mbarrier_arrive_async;
  decoder->program->asynchronous = true;
  return decode_address_plan(decoder, source, &source->operands[0], plan->space, &plan->address);
}

// What the instructions of mbarriers have in common. NULL after an error.
static MbarrierPlan *decode_mbarrier_plan(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait", "parity",
      "pending_count", "noComplete", "relaxed", "acquire", "release", "cta", "cluster", "shared",
      "shared::cta", "shared::cluster", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed)) return NULL;
  if (ptx_instruction_type(source) != PTX_B64) {
    decoder_error(decoder, source, "works on .b64");
    return NULL;
  }
  MbarrierPlan *plan = decoder_allocate(decoder, sizeof *plan);
  plan->space = space_of(source);
  plan->relaxed = ptx_has(source, "relaxed");
  plan->scope = ptx_has(source, "cluster") ? STRONG_CLUSTER : STRONG_CTA;  // "if not specified it defaults to .cta"
  inst->extra = plan;
  decoder->program->asynchronous = true;
  return plan;
}

DecodeResult decode_mbarrier_init(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  MbarrierPlan *plan = decode_mbarrier_plan(decoder, source, inst);
  if (!plan || !decoder_operands(decoder, source, 2, 2)) return DECODE_FAILED;
  plan->count = decoder_source(decoder, &source->operands[1], PTX_B32);
  inst->execute = execute_mbarrier_init;
  return decode_address_plan(decoder, source, &source->operands[0], plan->space, &plan->address);
}

DecodeResult decode_mbarrier_inval(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  MbarrierPlan *plan = decode_mbarrier_plan(decoder, source, inst);
  if (!plan || !decoder_operands(decoder, source, 1, 1)) return DECODE_FAILED;
  inst->execute = execute_mbarrier_inval;
  return decode_address_plan(decoder, source, &source->operands[0], plan->space, &plan->address);
}

// mbarrier.expect_tx [a], bytes;  .complete_tx
DecodeResult decode_mbarrier_bytes(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  MbarrierPlan *plan = decode_mbarrier_plan(decoder, source, inst);
  if (!plan || !decoder_operands(decoder, source, 2, 2)) return DECODE_FAILED;
  inst->a = decoder_source(decoder, &source->operands[1], PTX_B32);
  inst->execute = ptx_has(source, "expect_tx") ? execute_mbarrier_expect_tx : execute_mbarrier_complete_tx;
  return decode_address_plan(decoder, source, &source->operands[0], plan->space, &plan->address);
}

// arrive{_drop}{.noComplete} state, [a]{, count};  arrive{_drop}.expect_tx state, [a], bytes;  "_" for a state that
// is not needed
DecodeResult decode_mbarrier_arrive(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  MbarrierPlan *plan = decode_mbarrier_plan(decoder, source, inst);
  if (!plan) return DECODE_FAILED;
  plan->drop = ptx_has(source, "arrive_drop");
  plan->completes = !ptx_has(source, "noComplete");
  plan->expects = ptx_has(source, "expect_tx");
  bool has_result = source->operand_count > 0 && source->operands[0].kind != PTX_OPERAND_ADDRESS;
  bool needs_third = plan->expects || !plan->completes;
  if (!decoder_operands(decoder, source, has_result + 1 + needs_third, has_result + 2)) return DECODE_FAILED;
  const PtxOperand *operands = source->operands + has_result;
  bool has_count = source->operand_count == has_result + 2;
  plan->returns = has_result && source->operands[0].kind != PTX_OPERAND_SINK;
  if (plan->returns && ptx_has(source, "shared::cluster"))
    return decoder_error(decoder, source,
                         "an arrival at another block's mbarrier has no state: the destination must be _");
  if (plan->returns) inst->d = decoder_destination(decoder, &source->operands[0], PTX_B64);
  Slot value = has_count ? decoder_source(decoder, &operands[1], PTX_B32) : decoder_constant(decoder, 1, 4);
  plan->count = plan->expects ? decoder_constant(decoder, 1, 4) : value;
  inst->a = value;
  inst->execute = execute_mbarrier_arrive;
  return decode_address_plan(decoder, source, &operands[0], plan->space, &plan->address);
}

// test_wait{.parity} p, [a], state;  try_wait the same, with a time limit that may follow.
DecodeResult decode_mbarrier_wait(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  MbarrierPlan *plan = decode_mbarrier_plan(decoder, source, inst);
  if (!plan || !decoder_operands(decoder, source, 3, 3 + ptx_has(source, "try_wait"))) return DECODE_FAILED;
  plan->wait = ptx_has(source, "parity") ? WAIT_PARITY : WAIT_STATE;
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_PRED);
  inst->a = decoder_source(decoder, &source->operands[2], plan->wait == WAIT_PARITY ? PTX_B32 : PTX_B64);
  if (source->operand_count == 4) decoder_source(decoder, &source->operands[3], PTX_B32);
  inst->execute = execute_mbarrier_wait;
  return decode_address_plan(decoder, source, &source->operands[1], plan->space, &plan->address);
}

DecodeResult decode_mbarrier_pending_count(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  if (!decode_mbarrier_plan(decoder, source, inst) || !decoder_operands(decoder, source, 2, 2)) return DECODE_FAILED;
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_B32);
  inst->a = decoder_source(decoder, &source->operands[1], PTX_B64);
  inst->execute = execute_mbarrier_pending_count;
  return DECODED;
}
