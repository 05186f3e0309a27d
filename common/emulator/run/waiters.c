// Who waits for what: see waiters.h.
#include "waiters.h"

#include <stdlib.h>

#include "../warp/host_memory.h"
#include "foresee.h"

// ---- who waits ----

static bool wait_alike(const Waiter *a, const Waiter *b) {
  return a->kind == b->kind && a->warp->block == b->warp->block && a->lanes == b->lanes && a->inst == b->inst &&
         a->target == b->target;
}

static void add_waiter(WaiterList *list, const Waiter *waiter) {
  for (int i = 0; i < list->count; i++)
    if (wait_alike(&list->items[i], waiter)) {
      list->items[i].warps |= 1u << waiter->warp->index;
      return;
    }
  list->items = host_grow(list->items, list->count, &list->capacity, sizeof *list->items);
  list->items[list->count] = *waiter;
  list->items[list->count++].warps = 1u << waiter->warp->index;
}

// Lanes that go on, and have polled an mbarrier in vain. Returns them.
static Mask add_mbarrier_waiters(WaiterList *list, const Warp *warp, Mask lanes) {
  Mask found = 0;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    int first = __builtin_ctz(rest);
    Waiter waiter = {.kind = WAITS_AT_MBARRIER, .warp = warp};
    waiter.mbarrier = found >> first & 1 ? NULL : mbarrier_awaited(list->cluster, warp, first, &waiter.inst);
    if (!waiter.mbarrier) continue;
    for (Mask others = rest; others; others &= others - 1) {
      const Inst *inst;
      int lane = __builtin_ctz(others);
      if (mbarrier_awaited(list->cluster, warp, lane, &inst) == waiter.mbarrier && inst == waiter.inst)
        waiter.lanes |= 1u << lane;
    }
    waiter.target = waiter.mbarrier->address;
    found |= waiter.lanes;
    add_waiter(list, &waiter);
  }
  return found;
}

static void add_group_waiter(WaiterList *list, const Warp *warp, const Group *group) {
  Waiter waiter = {.kind = WAITS_FOR_LANES, .warp = warp, .lanes = group->mask};
  waiter.inst = &list->cluster->launch->program->code[group->pc];
  if (group->state == GROUP_READY) {
    waiter.kind = WAITS_FOR_MEMORY;
    waiter.lanes &= ~add_mbarrier_waiters(list, warp, group->mask);
  } else if (group->state == GROUP_BARRIER) {
    waiter.kind = WAITS_AT_BARRIER;
    waiter.barrier = group->barrier;
    waiter.target = target_of_barrier(warp->block, group->barrier);
  }
  if (waiter.lanes) add_waiter(list, &waiter);
}

// ---- who could end it ----

const Use *waiter_uses(const Waiter *waiter) {
  if (waiter->kind == WAITS_AT_MBARRIER) return waiter->mbarrier->uses;
  bool has_uses = waiter->kind == WAITS_AT_BARRIER && waiter->barrier < BARRIERS;
  return has_uses ? waiter->warp->block->barriers[waiter->barrier].uses : NULL;
}

static uint32_t phase_of(const Waiter *waiter) {
  return waiter->mbarrier ? waiter->mbarrier->phase : waiter->warp->block->barriers[waiter->barrier].phase;
}

static void find_past(Waiter *waiter, const Cluster *cluster) {
  const Use *uses = waiter_uses(waiter);
  for (int w = 0; uses && w < cluster_warps(cluster); w++) {
    if (!uses[w].arrival) continue;
    set_add(&waiter->before, cluster_warp(cluster, w));
    if (uses[w].phase == phase_of(waiter)) set_add(&waiter->came, cluster_warp(cluster, w));
  }
}

// Whether the warp waits for the target: then it cannot signal it.
static bool waits_for(const WaiterList *list, const Warp *warp, Target target) {
  for (int i = 0; i < list->count; i++) {
    const Waiter *waiter = &list->items[i];
    if (waiter->target == target && waiter->warp->block == warp->block && waiter->warps >> warp->index & 1) return true;
  }
  return false;
}

static void find_future(const WaiterList *list, Waiter *waiter) {
  for (int i = 0; i < list->foresight.count; i++) {
    const Signal *signal = &list->foresight.items[i];
    if (signal->target == waiter->target && !waits_for(list, signal->warp, waiter->target))
      set_add(&waiter->after, signal->warp);
  }
  if (!waiter->target) return;
  if (set_is_empty(&waiter->after))
    waiter->end = list->foresight.failed ? END_UNKNOWN : END_BY_NONE;
  else
    waiter->end = set_contains(&waiter->came, &waiter->after) ? END_ALL_CAME : END_BY_OTHERS;
}

WaiterList waiters_find(Cluster *cluster) {
  WaiterList list = {.cluster = cluster};
  for (int w = 0; w < cluster_warps(cluster); w++) {
    const Warp *warp = cluster_warp(cluster, w);
    for (int g = 0; g < warp->group_count; g++) add_group_waiter(&list, warp, &warp->groups[g]);
  }
  list.foresight = foresee_signals(cluster);
  for (int i = 0; i < list.count; i++) {
    find_past(&list.items[i], cluster);
    find_future(&list, &list.items[i]);
  }
  return list;
}

void waiters_free(WaiterList *list) {
  free(list->items);
  free(list->foresight.items);
}

const Waiter *waiter_among(const WaiterList *list, const WarpSet *warps) {
  for (int i = 0; i < list->count; i++) {
    const Waiter *waiter = &list->items[i];
    if (waiter->warps & warps->warps[waiter->warp->block->rank]) return waiter;
  }
  return NULL;
}
