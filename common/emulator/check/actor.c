// What comes before an actor's access: actor.h.
#include "actor.h"
#include "sync_table.h"

bool actors_know(const Actor *actor, int count, uint32_t first, Mask mask, uint32_t clock) {
  if (count > 1 && !actor->known) return false;
  if (mask == FULL_MASK && actor->known && clocks_reach(actor->known, first, LANES, clock)) return true;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    uint32_t thread = first + (uint32_t)__builtin_ctz(rest);
    if (count == 1 ? !actor_knows(actor, thread, clock) : actor->known->clock[thread] < clock) return false;
  }
  return true;
}

// ---- what a strong load has seen ----

enum { GRANULE = 4 };  // of memory: a flag

static SyncTable *table_of(const Actor *actor, const Region *region) {
  return region->kind == REGION_SHARED ? actor->cluster->sync : actor->cluster->launch->sync;
}

static const uint8_t *granule_of(const Region *region, uint64_t offset) {
  return region->data + offset / GRANULE * GRANULE;
}

void actor_observe(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write) {
  if (!(write & EPOCH_KERNEL) || (write & actor->layout->identity_mask) == actor->identity) return;
  if (!actor_is_strong_for(actor, write)) return;
  const uint8_t *end = region->data + offset + size;
  for (const uint8_t *at = granule_of(region, offset); at < end; at += GRANULE)
    sync_observe(table_of(actor, region), at, write, actor_epoch(actor));
}

bool actor_has_observed(const Actor *actor, const Region *region, uint64_t offset, Epoch write) {
  Epoch loads[OBSERVERS];
  if (epoch_strength(write) == WEAK) return false;
  int count = sync_observers(table_of(actor, region), granule_of(region, offset), write, loads);
  for (int i = 0; i < count; i++)
    if (actor_follows(actor, loads[i])) return true;
  return false;
}

bool actor_may_not_see(const Actor *actor, Epoch write) {
  if (!actor->async || !(write & EPOCH_KERNEL) || write & EPOCH_ASYNC) return false;
  const CheckCluster *cluster = actor->cluster;
  const EpochLayout *layout = &cluster->launch->epochs;
  bool same = epoch_cluster(layout, write) == cluster->id;
  if (same && epoch_thread(layout, write) == actor->issuer && actor->visible >= epoch_clock(layout, write))
    return false;
  const Clocks *clocks = same ? actor->known : clocks_imported(actor->known, epoch_cluster(layout, write));
  return !clocks ||
         clocks->clock[CLOCK_VISIBLE * clocks->count + (int)epoch_thread(layout, write)] < epoch_clock(layout, write);
}
