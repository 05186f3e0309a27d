// The objects behind mbarrier instructions: see mbarrier_object.h.
#include "mbarrier_object.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../report/hazard.h"
#include "../report/steps.h"
#include "../memory/access.h"
#include "../host/host_memory.h"

// A thread's last poll that failed.
typedef struct Wait {
  const Inst *inst;  // NULL: none since it last succeeded
  uint64_t address;
  uint32_t parity;
} Wait;

struct MbarrierTable {
  Mbarrier **items;  // hash of addresses
  size_t capacity, count;
  Wait *waits;  // one per thread of the cluster
};

// ---- the table ----

MbarrierTable *mbarriers_new(const Cluster *cluster) {
  MbarrierTable *table = host_allocate(1, sizeof *table);
  table->waits = host_allocate((size_t)cluster->check.lane_count, sizeof *table->waits);
  return table;
}

void mbarriers_free(MbarrierTable *table) {
  if (!table) return;
  for (size_t i = 0; i < table->capacity; i++) {
    if (!table->items[i]) continue;
    clocks_release(table->items[i]->arrived);
    clocks_release(table->items[i]->armed);
    clocks_release(table->items[i]->completed);
    free(table->items[i]->uses);
    free(table->items[i]);
  }
  free(table->items);
  free(table->waits);
  free(table);
}

static Mbarrier **table_slot(const MbarrierTable *table, uint64_t address) {
  size_t i = (size_t)(address * 0x9e3779b97f4a7c15ull >> 40) & (table->capacity - 1);
  while (table->items[i] && table->items[i]->address != address) i = (i + 1) & (table->capacity - 1);
  return &table->items[i];
}

static void table_grow(MbarrierTable *table) {
  MbarrierTable old = *table;
  table->capacity = old.capacity ? old.capacity * 2 : 32;
  table->items = host_allocate(table->capacity, sizeof *table->items);
  for (size_t i = 0; i < old.capacity; i++)
    if (old.items[i]) *table_slot(table, old.items[i]->address) = old.items[i];
  free(old.items);
}

// The object of an address, made when there is none.
static Mbarrier *table_entry(MbarrierTable *table, uint64_t address) {
  if (table->count * 2 >= table->capacity) table_grow(table);
  Mbarrier **slot = table_slot(table, address);
  if (*slot) return *slot;
  *slot = host_allocate(1, sizeof **slot);
  (*slot)->address = address;
  table->count++;
  return *slot;
}

Mbarrier *mbarrier_at(const Cluster *cluster, uint64_t address) {
  const MbarrierTable *table = cluster->mbarriers;
  Mbarrier *found = table->capacity ? *table_slot(table, address) : NULL;
  return found && found->live ? found : NULL;
}

// ---- the eight bytes ----

enum { COUNT_BITS = 20, TX_BITS = 21, EXPECTED_SHIFT = 20, TX_SHIFT = 40, PHASE_SHIFT = 61 };

MbarrierState mbarrier_state(const Mbarrier *mbarrier) {
  uint64_t word = mbarrier->word;
  return (MbarrierState){.pending = (uint32_t)word & MBARRIER_MAX,
                         .expected = (uint32_t)(word >> EXPECTED_SHIFT) & MBARRIER_MAX,
                         .tx = (int32_t)((int64_t)(word << (64 - TX_SHIFT - TX_BITS)) >> (64 - TX_BITS)),
                         .phase = (uint32_t)(word >> PHASE_SHIFT)};
}

static uint64_t word_of(MbarrierState state) {
  uint64_t tx = (uint64_t)(uint32_t)state.tx & ((1u << TX_BITS) - 1);
  return state.pending | (uint64_t)state.expected << EXPECTED_SHIFT | tx << TX_SHIFT |
         (uint64_t)state.phase << PHASE_SHIFT;
}

static void set_state(Mbarrier *mbarrier, MbarrierState state) {
  mbarrier->word = word_of(state);
  memcpy(mbarrier->region->data + mbarrier->offset, &mbarrier->word, MBARRIER_BYTES);
}

static void record_change(const Mbarrier *mbarrier, Origin origin, EmulatorStepKind kind) {
  if (!warp_launch(origin.warp)->record) return;
  MbarrierState state = mbarrier_state(mbarrier);
  step_mbarrier(origin.warp, origin.inst, 1u << origin.lane,
                &(MbarrierStep){kind, mbarrier->address, mbarrier->phase, state.pending, state.tx});
}

// ---- reports ----

void mbarrier_fault(MbarrierFault fault, Origin origin, uint64_t address, const char *format, ...) {
  char detail[HAZARD_DETAIL];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  bool stops = fault == MBARRIER_MISUSE_STOPS || fault == MBARRIER_EXPECT_STOPS;
  HazardKind kind = fault < MBARRIER_EXPECT ? HAZARD_MBARRIER_MISUSE : HAZARD_EXPECT_TX;
  (stops ? hazard_stop : hazard_report)(origin.warp, origin.inst, origin.lane, kind, address, MBARRIER_BYTES, "%s",
                                        detail);
}

// ---- finding, making and ending them ----

static uint64_t cluster_address(const Cluster *cluster, const Access *access) {
  int rank = 0;
  while (cluster->blocks[rank].shared != access->region) rank++;
  return (uint64_t)(rank + 1) << SHARED_RANK_SHIFT | (access->region->base + access->offset);
}

Mbarrier *mbarrier_find(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address) {
  Origin origin = {warp, lane, inst};
  Access access;
  if (!memory_find(warp, inst, lane, space, address, MBARRIER_BYTES, MBARRIER_BYTES, ACCESS_WRITE, &access))
    return NULL;
  if (!access.region || access.region->kind != REGION_SHARED) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, address,
                   "an mbarrier lives in shared memory, and this address is not there\n"
                   "Give the address that __cvta_generic_to_shared returns for a __shared__ variable.");
    return NULL;
  }
  const Cluster *cluster = warp->block->cluster;
  const MbarrierTable *table = cluster->mbarriers;
  uint64_t own_address = cluster_address(cluster, &access);
  Mbarrier *mbarrier = table->capacity ? *table_slot(table, own_address) : NULL;
  if (!mbarrier) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, address,
                   "no mbarrier.init was executed for this mbarrier, or none yet: a barrier must stand between\n"
                   "Initialise it in one thread, and put __syncthreads() (for other blocks cluster.sync()) before the "
                   "first use.");
  } else if (!mbarrier->live) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, address,
                   "the mbarrier was invalidated (mbarrier.inval) and not initialised again\n"
                   "Invalidate it after its last use, or initialise it again before this one.");
  } else if (memcmp(access.data, &mbarrier->word, MBARRIER_BYTES)) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, address,
                   "an instruction that is not an mbarrier instruction has written the mbarrier's eight bytes\n"
                   "Find the store that reaches these eight bytes: does an array next to them overflow, or share their "
                   "memory?");
  } else {
    return mbarrier;
  }
  return NULL;
}

Mbarrier *mbarrier_of_copy(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address,
                           const Region *shared) {
  Mbarrier *mbarrier = mbarrier_find(warp, inst, lane, space, address);
  if (mbarrier && foresee(warp, inst, mbarrier->address, true)) return NULL;
  if (!mbarrier || mbarrier->region == shared) return mbarrier;
  mbarrier_fault(MBARRIER_MISUSE_STOPS, (Origin){warp, lane, inst}, address,
                 "the mbarrier must be in the shared memory of the block that the copy writes\n"
                 "Give the copy an mbarrier of its destination's block: mapa with the same rank for both.");
  return NULL;
}

// Whether a thread that knows this comes after the initialisation.
static bool comes_after_init(Origin origin, const Clocks *known, const Mbarrier *mbarrier) {
  uint32_t thread = warp_thread(mbarrier->init.warp, mbarrier->init.lane);
  return thread == warp_thread(origin.warp, origin.lane) || (known && known->clock[thread] >= mbarrier->init_clock);
}

// False after a report.
static bool check_init(Origin origin, const Clocks *known, const Mbarrier *mbarrier) {
  if (comes_after_init(origin, known, mbarrier)) return true;
  LineText line = named_line(warp_launch(origin.warp)->program->module, mbarrier->init.inst->source);
  bool other_block = origin.warp->block != mbarrier->init.warp->block;
  mbarrier_fault(MBARRIER_MISUSE, origin, mbarrier->address,
                 "nothing orders the mbarrier's initialisation, at %s, before this use: a barrier must stand between\n"
                 "Put %s after %s, before the first use by another thread.",
                 line.text, other_block ? "a cluster barrier (cluster.sync())" : "__syncthreads()", line.text);
  return false;
}

void mbarrier_touch(Warp *warp, const Inst *inst, Mask mask, const Mbarrier *mbarrier) {
  if (!warp_launch(warp)->check.on) return;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (!check_init((Origin){warp, lane, inst}, warp->check.clocks[lane].known, mbarrier)) return;
  }
  race_read(&warp->check, pc_of_inst(warp, inst), mask, mbarrier->region, mbarrier->offset, MBARRIER_BYTES, STRONG_GPU);
}

void mbarrier_touch_async(const AsyncOp *op, int lane, const Mbarrier *mbarrier, bool proxy) {
  if (!warp_launch(op->warp)->check.on) return;
  Actor actor = async_actor(op, lane, proxy && !mbarrier->announced);
  if (!check_init((Origin){op->warp, lane, op->inst}, actor.known, mbarrier)) return;
  actor.strength = STRONG_GPU;
  actor.unseen_is_known = "the async proxy uses an mbarrier that was initialised without fence.mbarrier_init or "
                          "fence.proxy.async between. An H200 sees the initialisation without either (tests/rules)\n"
                          "Put fence.mbarrier_init.release.cluster after the initialisation, before the barrier.";
  race_read_by(&actor, mbarrier->region, mbarrier->offset, MBARRIER_BYTES);
}

// A copy that is under way to the mbarrier; NULL when there is none.
static const AsyncOp *copy_in_flight(const Cluster *cluster, uint64_t address) {
  for (const AsyncOp *op = async_first_pending(cluster); op; op = op->next)
    if (op->mbarrier == address && !op->performed) return op;
  return NULL;
}

// An initialisation where an mbarrier is: known to work if no phase of it has begun.
static void report_again(Origin origin, const Mbarrier *mbarrier) {
  MbarrierState state = mbarrier_state(mbarrier);
  const Cluster *cluster = origin.warp->block->cluster;
  if (state.pending != state.expected || state.tx || copy_in_flight(cluster, mbarrier->address))
    mbarrier_fault(MBARRIER_MISUSE, origin, mbarrier->address,
                   "there is an mbarrier already, and a phase of it has begun: a second mbarrier.init needs an "
                   "mbarrier.inval before it\nInitialise it once, in one thread, before the loop that uses it; or "
                   "invalidate it after its last phase.");
  else
    hazard_report_graded(HAZARD_FORMAL, origin.warp, origin.inst, origin.lane, HAZARD_MBARRIER_MISUSE,
                         mbarrier->address, MBARRIER_BYTES,
                         "there is an mbarrier already: a second mbarrier.init needs an mbarrier.inval before it. An "
                         "H200 initialises it again (tests/rules)\nInitialise it once, in one thread.");
}

void mbarrier_create(Warp *warp, const Inst *inst, int lane, const Access *access, uint32_t count) {
  Cluster *cluster = warp->block->cluster;
  Mbarrier *mbarrier = table_entry(cluster->mbarriers, cluster_address(cluster, access));
  Origin origin = {warp, lane, inst};
  bool again = mbarrier->live && !memcmp(access->data, &mbarrier->word, MBARRIER_BYTES);
  if (again) report_again(origin, mbarrier);
  if (count == 0 || count > MBARRIER_MAX) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, mbarrier->address,
                   "an mbarrier waits for 1 to %d arrivals, not %u\n"
                   "Initialise it with the number of arrivals of one phase.",
                   MBARRIER_MAX, count);
    return;
  }
  MbarrierState state = {.pending = count, .expected = count};
  uint64_t word = word_of(state);  // lanes of one instruction may write the same: kernels let a whole warp initialise
  access_write_lane(warp, inst, lane, access, &word, MBARRIER_BYTES);
  clocks_release(mbarrier->arrived);
  clocks_release(mbarrier->armed);
  clocks_release(mbarrier->completed);
  free(mbarrier->uses);
  *mbarrier = (Mbarrier){.address = mbarrier->address,
                         .region = access->region,
                         .offset = access->offset,
                         .live = true,
                         .init = origin,
                         .init_clock = warp->check.clocks[lane].own};
  set_state(mbarrier, state);
  record_change(mbarrier, origin, EMULATOR_STEP_MBARRIER_BEGINS);
  cluster->progress++;
}

void mbarrier_destroy(Warp *warp, const Inst *inst, int lane, Mbarrier *mbarrier) {
  const Access access = {.region = mbarrier->region, .offset = mbarrier->offset};
  access_write_lane(warp, inst, lane, &access, NULL, MBARRIER_BYTES);
  mbarrier->live = false;
  warp->block->cluster->progress++;
}

void mbarrier_announce(Warp *warp, Mask mask) {
  const MbarrierTable *table = warp->block->cluster->mbarriers;
  for (size_t i = 0; table && i < table->capacity; i++) {
    Mbarrier *mbarrier = table->items[i];
    if (mbarrier && mbarrier->live && mbarrier->init.warp == warp && mask >> mbarrier->init.lane & 1)
      mbarrier->announced = true;
  }
}

// ---- phases ----

// What to change where copies, the last of them by this instruction, have brought more than was expected.
static const char *advice_for_more(const Inst *copy) {
  return copy && ptx_has(copy->source, "tensor")
             ? "A tensor copy moves its map's whole box, also what lies outside of the tensor. If the box is larger "
               "than the "
               "tile in shared memory, make the box smaller where the map is encoded; else expect the bytes of the "
               "whole box."
             : "Expect the bytes of all copies of the phase together, before it can complete.";
}

// The phase may have ended: all arrivals have come, and all bytes. A copy that is still under way, or bytes that were
// not expected, show that the phase would end at another moment in another run. It goes on as the counts have it.
static void end_phase(Cluster *cluster, Mbarrier *mbarrier) {
  MbarrierState state = mbarrier_state(mbarrier);
  if (state.pending > 0 || state.tx > 0) return;
  const AsyncOp *copy = copy_in_flight(cluster, mbarrier->address);
  Origin culprit = mbarrier->expect.inst ? mbarrier->expect
                   : copy                ? (Origin){copy->warp, copy->lane, copy->inst}
                                         : mbarrier->copy;
  const char *fault = mbarrier->expect.inst ? "expect_tx announced too few bytes" : "no expect_tx announced the copy";
  if (state.tx < 0 && culprit.inst)
    mbarrier_fault(MBARRIER_EXPECT, culprit, mbarrier->address,
                   "%s: all arrivals of the phase have come, and its copies wrote %d byte%s more than expected\n%s",
                   fault, -state.tx, state.tx == -1 ? "" : "s", advice_for_more(mbarrier->copy.inst));
  if (state.tx < 0) return;
  if (copy)
    mbarrier_fault(
        MBARRIER_EXPECT, culprit, mbarrier->address,
        "%s: the phase completes while a copy to this mbarrier is still under way\n"
        "The copy at %s is not in the bytes that this phase expects. Add its bytes if it belongs to the phase. If it "
        "belongs to a later one, issue it after the end of this one. If several threads issue it, let one.",
        fault, named_line(cluster->launch->program->module, copy->inst->source).text);
  if (cluster->launch->record) step_phase_ends(cluster, mbarrier->address, mbarrier->phase, state.expected);
  mbarrier->phase++;
  set_state(mbarrier,
            (MbarrierState){.pending = state.expected, .expected = state.expected, .phase = mbarrier->phase & 7});
  if (mbarrier->arrived) clocks_join(&cluster->check, &mbarrier->completed, mbarrier->arrived);
  clocks_release(mbarrier->arrived);
  mbarrier->arrived = NULL;
  mbarrier->expect = mbarrier->copy = (Origin){0};
  mbarrier->loose = false;
}

bool mbarrier_expect(Cluster *cluster, Mbarrier *mbarrier, Origin origin, int64_t bytes) {
  MbarrierState state = mbarrier_state(mbarrier);
  int64_t tx = state.tx + bytes;
  if (tx > MBARRIER_MAX || tx < -MBARRIER_MAX) {
    mbarrier_fault(MBARRIER_EXPECT_STOPS, origin, mbarrier->address,
                   "a phase can wait for %d bytes, these would make it %lld", MBARRIER_MAX, (long long)tx);
    return false;
  }
  if (bytes > 0) mbarrier->expect = origin;
  mbarrier->has_bytes = true;
  state.tx = (int32_t)tx;
  set_state(mbarrier, state);
  record_change(mbarrier, origin, EMULATOR_STEP_MBARRIER_CHANGES);
  cluster->progress++;
  end_phase(cluster, mbarrier);
  return true;
}

// All arrivals of the phase have come: nothing but copies holds it up now.
static void arm(Mbarrier *mbarrier) {
  clocks_release(mbarrier->armed);
  mbarrier->armed = mbarrier->loose ? NULL : mbarrier->arrived;
  clocks_retain(mbarrier->armed);
  mbarrier->armed_phase = mbarrier->phase;
}

bool mbarrier_arrive(Cluster *cluster, Mbarrier *mbarrier, Origin origin, uint32_t count, bool drop, bool completes) {
  MbarrierState state = mbarrier_state(mbarrier);
  if (count == 0 || count > MBARRIER_MAX) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, mbarrier->address, "an arrival counts for 1 to %d, not %u",
                   MBARRIER_MAX, count);
  } else if (count > state.pending) {
    mbarrier_fault(
        MBARRIER_MISUSE_STOPS, origin, mbarrier->address,
        "more arrivals than the mbarrier was initialised for: phase %u waits for %u more, this one counts %u\n"
        "Initialise the mbarrier with the number of arrivals of one phase, those of copies and of expect_tx "
        "included; and let no thread arrive again before it has waited for the phase.",
        mbarrier->phase, state.pending, count);
  } else if (drop && count > state.expected) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, mbarrier->address,
                   "arrive_drop takes %u from the arrivals of the next phase, which are %u\n"
                   "A thread drops out once: use mbarrier.arrive, or a larger count at mbarrier.init.",
                   count, state.expected);
  } else if (!completes && count == state.pending && state.tx == 0) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, mbarrier->address,
                   "the last arrival of a phase completes it, and .noComplete promised that it does not\n"
                   "Leave .noComplete out.");
  } else {
    state.pending -= count;
    if (drop) state.expected -= count;
    set_state(mbarrier, state);
    record_change(mbarrier, origin, EMULATOR_STEP_MBARRIER_CHANGES);
    if (state.pending == 0) arm(mbarrier);
    cluster->progress++;
    end_phase(cluster, mbarrier);
    return true;
  }
  return false;
}

// Whether the lane knows what the first `count` threads, a multiple of LANES, have handed on; its own doings it does.
static bool lane_knows(const Warp *warp, int lane, const Clocks *clocks, int count) {
  const Clocks *known = warp->check.clocks[lane].known;
  if (!clocks || clocks == known) return true;
  uint32_t unknown = 0, own = warp_thread(warp, lane);
  if (!known)
    for (int i = 0; i < count; i++) unknown += clocks->clock[i] > 0;
  else  // LANES at a time: the compiler makes wide instructions of that
    for (int i = 0; i < count; i += LANES)
      for (int j = 0; j < LANES; j++) unknown += clocks->clock[i + j] > known->clock[i + j];
  return unknown == (clocks->clock[own] > (known ? known->clock[own] : 0));
}

void mbarrier_check_parity(Warp *warp, const Inst *inst, int lane, const Mbarrier *mbarrier, uint32_t parity) {
  const Cluster *cluster = warp->block->cluster;
  uint32_t armed = mbarrier->armed_phase;
  if (!mbarrier->armed || parity == (armed & 1) || !lane_knows(warp, lane, mbarrier->armed, cluster->check.lane_count))
    return;
  bool over = mbarrier->phase != armed;
  if (over && lane_knows(warp, lane, mbarrier->completed, cluster->check.clock_count)) return;
  mbarrier_fault(
      MBARRIER_MISUSE, (Origin){warp, lane, inst}, mbarrier->address,
      "the thread asks for a phase of parity %u, and what is under way is phase %u, of parity %u: the wait "
      "ends at once, or never\nWait with the parity of the phase: 0 in the first phase of the mbarrier, then 1, "
      "then 0 again. A thread that waits before the first phase, for a slot that is free from the start, "
      "takes parity 1.",
      parity, armed, armed & 1);
}

// Whether it knows it if what arrivals of too narrow a scope show counts, too.
static bool lane_has_seen(const Warp *warp, int lane, const Clocks *clocks, int count) {
  const Clocks *known = warp->check.clocks[lane].known;
  if (!known || known->planes <= CLOCK_ENDED) return false;
  const uint32_t *seen = known->clock, *ended = known->clock + CLOCK_ENDED * known->count;
  uint32_t own = warp_thread(warp, lane);
  for (int i = 0; i < count; i++)
    if ((uint32_t)i != own && clocks->clock[i] > seen[i] && clocks->clock[i] > ended[i]) return false;
  return true;
}

void mbarrier_check_phase(Warp *warp, const Inst *inst, int lane, const Mbarrier *mbarrier) {
  int count = warp->block->cluster->check.clock_count;
  if (lane_knows(warp, lane, mbarrier->completed, count)) return;
  if (lane_has_seen(warp, lane, mbarrier->completed, count))
    hazard_report_graded(
        HAZARD_FORMAL, warp, inst, lane, HAZARD_MBARRIER_MISUSE, mbarrier->address, MBARRIER_BYTES,
        "the thread arrives in phase %u. Only an arrival whose scope is .cta, the default, shows it "
        "that phase %u is over: PTX asks for .release.cluster. An H200 counts the arrival in the right "
        "phase (tests/rules)\nWrite .release.cluster at the arrival.",
        mbarrier->phase, mbarrier->phase - 1);
  else
    mbarrier_fault(MBARRIER_MISUSE, (Origin){warp, lane, inst}, mbarrier->address,
                   "the thread arrives in phase %u and does not know that phase %u is over: in another run its arrival "
                   "counts there, one too many\nLet each thread wait for a phase before it arrives for the next one.",
                   mbarrier->phase, mbarrier->phase - 1);
}

bool mbarrier_add_pending(Mbarrier *mbarrier, Origin origin, uint32_t count) {
  MbarrierState state = mbarrier_state(mbarrier);
  state.pending += count;
  if (state.pending > MBARRIER_MAX) {
    mbarrier_fault(MBARRIER_MISUSE_STOPS, origin, mbarrier->address, "a phase waits for at most %d arrivals",
                   MBARRIER_MAX);
    return false;
  }
  set_state(mbarrier, state);
  record_change(mbarrier, origin, EMULATOR_STEP_MBARRIER_CHANGES);
  return true;
}

// The object that an operation in flight was issued for; NULL after a report when it is gone. A thread that waits for
// the operation is also ordered after everything that came before it in the thread that issued it.
static Mbarrier *object_of(Cluster *cluster, const AsyncOp *op, uint64_t address) {
  Mbarrier *mbarrier = mbarrier_at(cluster, address);
  Origin origin = {op->warp, op->lane, op->inst};
  if (!mbarrier)
    mbarrier_fault(MBARRIER_MISUSE, origin, address,
                   "the mbarrier was invalidated while an asynchronous operation that completes on it was under way\n"
                   "Wait for the operation's phase before mbarrier.inval.");
  if (!mbarrier || !warp_launch(op->warp)->check.on) return mbarrier;
  clocks_add_agent(&cluster->check, &mbarrier->arrived, op->agent, op->clock);
  if (op->known) clocks_join(&cluster->check, &mbarrier->arrived, op->known);
  return mbarrier;
}

void mbarrier_complete(Cluster *cluster, const AsyncOp *op, uint64_t address, uint32_t bytes) {
  Mbarrier *mbarrier = object_of(cluster, op, address);
  if (!mbarrier) return;
  Origin origin = {op->warp, op->lane, op->inst};
  mbarrier->copy = mbarrier->unseen = origin;
  mbarrier->unseen_phase = mbarrier->phase;
  mbarrier_expect(cluster, mbarrier, origin, -(int64_t)bytes);
}

void mbarrier_arrive_async(Cluster *cluster, const AsyncOp *op, uint64_t address, uint32_t count) {
  Mbarrier *mbarrier = object_of(cluster, op, address);
  if (mbarrier) mbarrier->loose = true;
  if (mbarrier) mbarrier_arrive(cluster, mbarrier, (Origin){op->warp, op->lane, op->inst}, count, false, true);
}

// ---- the end of a block ----

void mbarrier_seen(Mbarrier *mbarrier) {
  if (mbarrier->phase != mbarrier->unseen_phase) mbarrier->unseen = (Origin){0};
}

// The block's own copies end before an H200 gives its shared memory away.
static void report_unseen_copy(const Block *block, Origin copy, uint64_t mbarrier) {
  bool own = copy.warp->block == block;
  hazard_report_graded(
      own ? HAZARD_FORMAL : HAZARD_FAULT, copy.warp, copy.inst, copy.lane, HAZARD_OVERWRITE_IN_FLIGHT, mbarrier,
      MBARRIER_BYTES,
      "the block exits while this copy into its shared memory may be under way: no thread waited for it%s\n"
      "Wait for the mbarrier of the copy before the block ends. A copy that is not meant for it must not be issued.",
      own ? ". On an H200 the next block's memory stayed as it was (tests/rules)" : "");
}

void mbarrier_check_exit(const Block *block) {
  const Cluster *cluster = block->cluster;
  const MbarrierTable *table = cluster->mbarriers;
  for (const AsyncOp *op = async_first_pending(cluster); op; op = op->next)
    if (!op->performed && op->mbarrier >> SHARED_RANK_SHIFT == (uint64_t)block->rank + 1)
      report_unseen_copy(block, (Origin){op->warp, op->lane, op->inst}, op->mbarrier);
  for (size_t i = 0; table && i < table->capacity; i++) {
    const Mbarrier *mbarrier = table->items[i];
    if (mbarrier && mbarrier->live && mbarrier->region == block->shared && mbarrier->unseen.inst)
      report_unseen_copy(block, mbarrier->unseen, mbarrier->address);
  }
}

// ---- deadlocks ----

void mbarrier_note_wait(Warp *warp, const Inst *inst, Mask mask, const Mbarrier *mbarrier, uint32_t parity) {
  Wait *waits = warp->block->cluster->mbarriers->waits;
  for (Mask rest = mask; rest; rest &= rest - 1)
    waits[warp_thread(warp, __builtin_ctz(rest))] = mbarrier ? (Wait){inst, mbarrier->address, parity} : (Wait){0};
}

const Mbarrier *mbarrier_awaited(const Cluster *cluster, const Warp *warp, int lane, const Inst **inst) {
  if (!cluster->mbarriers) return NULL;
  const Wait *wait = &cluster->mbarriers->waits[warp_thread(warp, lane)];
  if (!wait->inst || !(warp->live >> lane & 1)) return NULL;
  const Mbarrier *mbarrier = mbarrier_at(cluster, wait->address);
  *inst = wait->inst;
  return mbarrier && (mbarrier->phase & 1) == wait->parity ? mbarrier : NULL;
}

const Mbarrier *mbarrier_after(const Cluster *cluster, const Mbarrier *before) {
  const MbarrierTable *table = cluster->mbarriers;
  const Mbarrier *next = NULL;
  for (size_t i = 0; table && i < table->capacity; i++) {
    const Mbarrier *mbarrier = table->items[i];
    if (!mbarrier || !mbarrier->live || (before && mbarrier->address <= before->address)) continue;
    if (!next || mbarrier->address < next->address) next = mbarrier;
  }
  return next;
}

// A wait for bytes that no copy brings is the fault of the expect_tx. So are bytes that came unexpected, or, where
// there is none, the fault of the copy.
bool mbarrier_explain_bytes(const Mbarrier *mbarrier) {
  MbarrierState state = mbarrier_state(mbarrier);
  if (state.tx > 0 && state.pending == 0 && mbarrier->expect.inst) {
    mbarrier_fault(
        MBARRIER_EXPECT_STOPS, mbarrier->expect, mbarrier->address,
        "expect_tx announced %d byte%s more than the copies wrote: phase %u never completes, and threads wait for it",
        state.tx, state.tx == 1 ? "" : "s", mbarrier->phase);
    return true;
  }
  Origin culprit = mbarrier->expect.inst ? mbarrier->expect : mbarrier->copy;
  if (state.tx >= 0 || !culprit.inst) return false;
  mbarrier_fault(
      MBARRIER_EXPECT_STOPS, culprit, mbarrier->address,
      "the copies wrote %d bytes that no expect_tx announced: phase %u never completes, and threads wait for it",
      -state.tx, mbarrier->phase);
  return true;
}
