// Clusters: addresses in the shared memory of other blocks, and the barrier of all their threads. PTX ISA 9.7.9.23,
// 9.7.9.24, 9.7.13.3.
#include "flow.h"

#include <string.h>

#include "../report/hazard.h"
#include "../check/order.h"
#include "../check/race.h"
#include "../report/waits.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "families.h"

// ---- mapa, getctarank ----

enum { NO_RANK = 0xff };
#define RANK_MASK ((u64)NO_RANK << SHARED_RANK_SHIFT)

static u64 address_of(Warp *warp, const Inst *inst, int lane) {
  return inst->size == 8 ? SLOT(warp, inst->a, const u64)[lane] : SLOT(warp, inst->a, const u32)[lane];
}

// The address of the same place in the shared memory of the block with rank b. Where there is no such block the address
// is of no use, but to have it is no mistake: compilers move mapa out of the branch that checks the rank.
static void execute_mapa(Warp *warp, const Inst *inst, Mask mask) {
  const u32 *ranks = SLOT(warp, inst->b, const u32);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u64 address = address_of(warp, inst, lane), field = ranks[lane] < NO_RANK ? ranks[lane] + 1 : NO_RANK;
    u64 mapped = (address & ~RANK_MASK) | field << SHARED_RANK_SHIFT;
    if (inst->size == 8)
      SLOT(warp, inst->d, u64)[lane] = mapped;
    else
      SLOT(warp, inst->d, u32)[lane] = (u32)mapped;
  }
}

static void execute_getctarank(Warp *warp, const Inst *inst, Mask mask) {
  u32 *d = SLOT(warp, inst->d, u32);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u32 field = (u32)((address_of(warp, inst, lane) & RANK_MASK) >> SHARED_RANK_SHIFT);
    d[lane] = field ? field - 1 : (u32)warp->block->rank;
  }
}

// mapa{.shared::cluster}.type d, address, rank;  getctarank{.shared::cluster}.type d, address;
DecodeResult decode_cluster_address(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"shared::cluster", NULL};
  bool maps = !strcmp(source->opcode, "mapa");
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 2 + maps, 2 + maps))
    return DECODE_FAILED;
  PtxType type = ptx_instruction_type(source);
  if (type != PTX_U32 && type != PTX_U64) return decoder_error(decoder, source, "works on .u32 and .u64");
  inst->size = (uint8_t)ptx_type_size(type);
  inst->a = decoder_source(decoder, &source->operands[1], type);
  inst->d = decoder_destination(decoder, &source->operands[0], maps ? type : PTX_U32);
  if (maps) inst->b = decoder_source(decoder, &source->operands[2], PTX_U32);
  inst->execute = maps ? execute_mapa : execute_getctarank;
  return DECODED;
}

// ---- barrier.cluster ----

static Mask lanes_at_cluster_barrier(const Warp *warp) {
  Mask mask = 0;
  for (int g = 0; g < warp->group_count; g++)
    if (warp->groups[g].state == GROUP_BARRIER && warp->groups[g].barrier == CLUSTER_BARRIER)
      mask |= warp->groups[g].mask;
  return mask;
}

// Whether all threads that have not exited have arrived, and at least one has.
static bool have_all_arrived(const Cluster *cluster) {
  bool anybody = false;
  for (int b = 0; b < cluster->block_count; b++)
    for (int w = 0; w < cluster->blocks[b].warp_count; w++) {
      const Warp *warp = &cluster->blocks[b].warps[w];
      if (warp->live & ~warp->cluster_arrived) return false;
      anybody |= warp->cluster_arrived != 0;
    }
  return anybody;
}

static void next_phase(Clocks **joined, Clocks **completed) {
  clocks_release(*completed);
  *completed = *joined;
  *joined = NULL;
}

static void learn_arrivals(Warp *warp, Mask mask) {
  warp->block->peers_have_begun = true;
  race_acquire(&warp->check, mask, warp->block->cluster->barrier_completed);
  race_acquire(&warp->check, mask, warp->block->barrier_completed);
}

static void complete_phase(Cluster *cluster) {
  next_phase(&cluster->barrier_joined, &cluster->barrier_completed);
  for (int b = 0; b < cluster->block_count; b++) {
    next_phase(&cluster->blocks[b].barrier_joined, &cluster->blocks[b].barrier_completed);
    for (int w = 0; w < cluster->blocks[b].warp_count; w++) {
      Warp *warp = &cluster->blocks[b].warps[w];
      Mask waiting = lanes_at_cluster_barrier(warp);
      warp->cluster_arrived = 0;
      if (!waiting) continue;
      learn_arrivals(warp, waiting);
      warp->cluster_waits &= ~waiting;
      warp_release(warp, CLUSTER_BARRIER);
    }
  }
  cluster->progress++;
}

void cluster_barrier_after_exit(Cluster *cluster) {
  if (have_all_arrived(cluster)) complete_phase(cluster);
}

void cluster_check_exit(Warp *warp, Mask mask) {
  Block *block = warp->block;
  const Launch *launch = block->cluster->launch;
  if (!launch->check.on || block->cluster->block_count == 1) return;
  race_release(&warp->check, mask, &block->ended);
  if (block->live_threads > __builtin_popcount(mask)) return;
  Actor last = actor_of_lane(&warp->check, warp->pc - 1, __builtin_ctz(mask), WEAK);
  last.known = block->ended;
  race_end_block(&last, block->shared);
}

static void report_cluster_barrier(Warp *warp, const Inst *inst, Mask mask, const char *what) {
  hazard_report(warp, inst, __builtin_ctz(mask), HAZARD_BARRIER_MISUSE, 0, 0, "%s", what);
}

// Hands on what fences have covered: one of .cta scope to the lanes' own block, wider ones to all.
static void release_relaxed(Warp *warp, Mask mask) {
  Cluster *cluster = warp->block->cluster;
  race_release_relaxed(&warp->check, mask, &cluster->barrier_joined, STRONG_CLUSTER);
  if (cluster->block_count > 1) race_release_relaxed(&warp->check, mask, &warp->block->barrier_joined, STRONG_CTA);
}

// flags: .relaxed
static void execute_cluster_arrive(Warp *warp, const Inst *inst, Mask mask) {
  Cluster *cluster = warp->block->cluster;
  if (foresee(warp, inst, target_of_barrier(warp->block, CLUSTER_BARRIER), false)) return;
  if (warp->cluster_waits & mask) {
    report_cluster_barrier(
        warp, inst, warp->cluster_waits & mask,
        "a thread arrives at the cluster's barrier a second time without barrier.cluster.wait between");
    mask &= ~warp->cluster_waits;  // it counts once
    if (!mask) return;
  }
  if (inst->flags)
    release_relaxed(warp, mask);
  else
    race_release(&warp->check, mask, &cluster->barrier_joined);
  warp->cluster_arrived |= mask;
  warp->cluster_waits |= mask;
  cluster->progress++;
  if (have_all_arrived(cluster)) complete_phase(cluster);
}

static void execute_cluster_wait(Warp *warp, const Inst *inst, Mask mask) {
  if (warp->block->cluster->foresight) return;
  if (mask & ~warp->cluster_waits) {
    report_cluster_barrier(warp, inst, mask & ~warp->cluster_waits,
                           "a thread waits at the cluster's barrier without a barrier.cluster.arrive before");
    mask &= warp->cluster_waits;  // the others have nothing to wait for
    if (!mask) return;
  }
  Mask passing = mask & ~warp->cluster_arrived, waiting = mask & warp->cluster_arrived;
  learn_arrivals(warp, passing);
  warp->cluster_waits &= ~passing;
  if (waiting)
    warp_wait(warp, waiting, CLUSTER_BARRIER);
  else if (passing)
    warp_counts(warp, inst)->at_once++;
}

// barrier.cluster.arrive{.release|.relaxed}{.aligned};  barrier.cluster.wait{.acquire}{.aligned};
DecodeResult decode_cluster_barrier(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"cluster", "arrive", "wait", "release", "relaxed", "acquire", "aligned", NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 0, 0)) return DECODE_FAILED;
  bool arrives = ptx_has(source, "arrive");
  if (arrives == ptx_has(source, "wait")) return decoder_error(decoder, source, "is .arrive or .wait");
  inst->flags = ptx_has(source, "relaxed");
  inst->converge = ptx_has(source, "aligned") ? CONVERGE_ALIGNED : CONVERGE_NONE;
  inst->execute = arrives ? execute_cluster_arrive : execute_cluster_wait;
  return DECODED;
}
