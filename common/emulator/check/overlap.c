// Launches that may run at the same time: see overlap.h.
#include "overlap.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "actor.h"
#include "order.h"

typedef enum BlockPast {
  BLOCK_WAITED = 1,         // a thread of the block has executed griddepcontrol.wait
  BLOCK_TRIGGERED = 2,      // the block has executed launch_dependents,
  BLOCK_TRIGGERED_LATE = 4  // after a wait
} BlockPast;

// ---- the past ----

static void forget_launch(PastLaunch *past) {
  for (uint32_t i = 0; past->released && i < past->clusters; i++) free(past->released[i]);
  free(past->released);
  free(past->blocks);
  if (past->number) pthread_mutex_destroy(&past->lock);
  *past = (PastLaunch){0};
}

void overlap_forget(LaunchHistory *history, const struct PtxModule *module) {
  for (int i = 0; i < PAST_LAUNCHES; i++)
    if (history->items[i].number && (!module || history->items[i].shape.module == module))
      forget_launch(&history->items[i]);
}

static PastLaunch *past_of(LaunchHistory *history, uint32_t number) {
  PastLaunch *past = &history->items[number % PAST_LAUNCHES];
  return number && past->number == number ? past : NULL;
}

static void add_to(LaunchSet *set, uint32_t number) {
  if (set->count < OVERLAPS) set->numbers[set->count++] = number;
}

static bool has_triggered(const PastLaunch *past) {
  for (uint32_t i = 0; past->blocks && i < past->clusters * past->cluster_blocks; i++)
    if (past->blocks[i] & BLOCK_TRIGGERED) return true;
  return false;
}

// Whether launches in front of this one were over when the next one could begin: that is when each block has executed
// launch_dependents or ended, so one that waited before it is enough.
static bool next_begins_after_wait(const PastLaunch *past) {
  for (uint32_t i = 0; past->blocks && i < past->clusters * past->cluster_blocks; i++)
    if (past->blocks[i] & BLOCK_TRIGGERED_LATE || past->blocks[i] == BLOCK_WAITED) return true;
  return false;
}

// What may run with a launch whose prerequisite is `front`. Of a launch in front of that one only one that lets others
// begin early counts.
static void find_overlaps(LaunchHistory *history, PastLaunch *own, const PastLaunch *front) {
  const LaunchSet *start = next_begins_after_wait(front) ? &front->after_wait : &front->at_start;
  const LaunchSet *end = front->waited ? &front->after_wait : &front->at_start;
  add_to(&own->at_start, front->number);
  for (int i = 0; i < start->count; i++) add_to(&own->at_start, start->numbers[i]);
  for (int i = 0; i < end->count; i++) {
    const PastLaunch *past = past_of(history, end->numbers[i]);
    if (past && has_triggered(past)) add_to(&own->after_wait, past->number);
  }
}

// Shadows keep what launches from that one on did.
static void keep_from(const RegionTable *table, uint32_t number) {
  for (int i = 0; i < table->count; i++) table->items[i]->shadow.kept_from = number;
}

void overlap_begin(CheckLaunch *launch, const LaunchShape *shape, LaunchHistory *history, const RegionTable *global,
                   uint32_t prerequisite, uint32_t clusters) {
  if (!launch->on) return;
  const PastLaunch *front = past_of(history, prerequisite);
  PastLaunch own = {.number = launch->number, .shape = *shape, .epochs = launch->epochs, .clusters = clusters};
  own.cluster_blocks = shape->cluster[0] * shape->cluster[1] * shape->cluster[2];
  own.block_lanes = (shape->block[0] * shape->block[1] * shape->block[2] + LANES - 1) / LANES * LANES;
  own.cluster_lanes = own.cluster_blocks * own.block_lanes;
  if (front) find_overlaps(history, &own, front);
  PastLaunch *past = &history->items[launch->number % PAST_LAUNCHES];
  forget_launch(past);
  *past = own;
  pthread_mutex_init(&past->lock, NULL);
  launch->history = history;
  launch->past = past;
  launch->overlaps = past->at_start.count > 0;
  uint32_t first = UINT32_MAX;
  for (int i = 0; i < past->at_start.count; i++)
    if (past->at_start.numbers[i] < first) first = past->at_start.numbers[i];
  if (launch->overlaps || history->keeps) keep_from(global, first);
  history->keeps = launch->overlaps;
}

// ---- griddepcontrol ----

// In vector clocks the end of the prerequisite is one more thread, after all others.
static uint32_t end_of_prerequisite(const CheckCluster *cluster) { return (uint32_t)(cluster->clock_count - LANES); }

static bool knows_end(const CheckCluster *cluster, const Clocks *known) {
  if (!known) return false;
  uint32_t end = end_of_prerequisite(cluster);
  if (known->clock[end]) return true;
  for (int i = 0; i < known->import_count; i++)
    if (known->imports[i].clocks->clock[end]) return true;
  return false;
}

// Of the warp's block.
static uint8_t *block_past(const CheckWarp *warp) {
  PastLaunch *past = warp->cluster->launch->past;
  if (!past->blocks) past->blocks = host_allocate((size_t)past->clusters * past->cluster_blocks, 1);
  return &past->blocks[warp->cluster->id * past->cluster_blocks + (uint32_t)warp->rank];
}

void overlap_wait(CheckWarp *warp, Mask mask) {
  const CheckLaunch *launch = warp->cluster->launch;
  if (!launch->on) return;
  pthread_mutex_lock(&launch->past->lock);
  launch->past->waited = true;
  *block_past(warp) |= BLOCK_WAITED;
  pthread_mutex_unlock(&launch->past->lock);
  if (launch->overlaps) race_learn_agent(warp, mask, end_of_prerequisite(warp->cluster), 1);
}

// "A release fence preceding a griddepcontrol.launch_dependents in program-order synchronizes with the start of a
// dependent grid".
static void release_dependents(PastLaunch *past, const CheckWarp *warp, int lane) {
  const CheckCluster *cluster = warp->cluster;
  const LaneClocks *clocks = &warp->clocks[lane];
  if (!past->released) past->released = host_allocate(past->clusters, sizeof *past->released);
  uint32_t **released = &past->released[cluster->id], self = thread_of_lane(warp, lane);
  if (!*released) *released = host_allocate((size_t)cluster->clock_count, sizeof **released);
  for (int i = 0; clocks->known && i < cluster->clock_count; i++)
    (*released)[i] = later_clock((*released)[i], clocks->known->clock[CLOCK_FENCED_GPU * clocks->known->count + i]);
  (*released)[self] = later_clock((*released)[self], clocks->covered[CLOCK_FENCED_GPU]);
}

void overlap_trigger(CheckWarp *warp, Mask mask) {
  const CheckLaunch *launch = warp->cluster->launch;
  if (!launch->on) return;
  PastLaunch *past = launch->past;
  pthread_mutex_lock(&past->lock);
  uint8_t *block = block_past(warp);
  bool is_first = !(*block & BLOCK_TRIGGERED);
  *block |= BLOCK_TRIGGERED;
  for (Mask rest = mask; rest && is_first; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (launch->overlaps && knows_end(warp->cluster, warp->clocks[lane].known)) *block |= BLOCK_TRIGGERED_LATE;
    release_dependents(past, warp, lane);
  }
  pthread_mutex_unlock(&past->lock);
}

// ---- accesses ----

bool overlap_concerns(const CheckWarp *warp, Mask mask) {
  const CheckLaunch *launch = warp->cluster->launch;
  if (!launch->overlaps) return false;
  if (launch->past->after_wait.count > 0) return true;
  const Clocks *last = NULL;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const Clocks *known = warp->clocks[__builtin_ctz(rest)].known;
    if (known && known == last) continue;
    last = known;
    if (!knows_end(warp->cluster, known)) return true;
  }
  return false;
}

static bool is_released(const PastLaunch *past, Epoch epoch) {
  const uint32_t *released = past->released ? past->released[epoch_cluster(&past->epochs, epoch)] : NULL;
  if (!released) return false;
  // Which threads a set of reads stands for is known no more.
  if (epoch & EPOCH_SET) return true;
  return released[epoch_thread(&past->epochs, epoch)] >= epoch_clock(&past->epochs, epoch);
}

static bool is_by_triggered(const PastLaunch *past, Epoch epoch) {
  if (!past->blocks) return false;
  uint32_t thread = epoch & EPOCH_SET ? 0 : epoch_thread(&past->epochs, epoch);
  uint32_t rank = thread < past->cluster_lanes ? thread / past->block_lanes : 0;
  return past->blocks[epoch_cluster(&past->epochs, epoch) * past->cluster_blocks + rank] & BLOCK_TRIGGERED;
}

// False when both are atomics or the like, which need no order, or something orders them.
static bool conflicts(const Actor *actor, const PastLaunch *past, Epoch other) {
  if (!(other & EPOCH_KERNEL) || is_released(past, other)) return false;
  Strength strength = (Strength)(other >> EPOCH_STRENGTH_SHIFT & 3);
  return actor->strength != STRONG_GPU || strength != STRONG_GPU;
}

static void check_against(const Actor *actor, Region *region, uint64_t offset, int size, bool writes,
                          const PastLaunch *past, bool has_waited) {
  for (int done = 0, run; done < size; done += run) {
    Cell cell;
    uint64_t at = offset + (uint64_t)done;
    run = shadow_run_past(&region->shadow, at, size - done, actor->cluster->launch->number, past->number, &cell);
    Epoch others[3] = {cell.write, writes ? cell.read : EPOCH_NONE, writes ? cell.foreign : EPOCH_NONE};
    for (int i = 0; i < 3; i++) {
      if (!conflicts(actor, past, others[i])) continue;
      const Span span = {region, at, run};
      actor->cluster->launch->report(&(CheckFinding){.kind = FOUND_PAST,
                                                     .warp = actor->warp,
                                                     .lane = actor->lane,
                                                     .actor = actor,
                                                     .span = &span,
                                                     .other = others[i],
                                                     .writes = writes,
                                                     .other_writes = i == 0,
                                                     .past = past,
                                                     .has_waited = has_waited,
                                                     .triggered = is_by_triggered(past, others[i])});
      return;
    }
  }
}

void overlap_check(const Actor *actor, Region *region, uint64_t offset, int size, bool writes) {
  const CheckLaunch *launch = actor->cluster->launch;
  if (region->kind != REGION_GLOBAL) return;
  bool has_waited = knows_end(actor->cluster, actor->known);
  const LaunchSet *set = has_waited ? &launch->past->after_wait : &launch->past->at_start;
  for (int i = 0; i < set->count; i++) {
    const PastLaunch *past = past_of(launch->history, set->numbers[i]);
    if (past) check_against(actor, region, offset, size, writes, past, has_waited);
  }
}
