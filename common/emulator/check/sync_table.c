// Keeps the clocks that strong stores and atomics release at an address. See sync_table.h.
#include "sync_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "order.h"

// In a cluster of several blocks a release of .cta scope is for the releasing block alone, and a fence of .cta scope
// hands on less to the others than to its own. So there a place has an entry for all, and one for each block that
// has released something there to itself.
typedef struct SyncEntry {
  const void *place;  // NULL: free
  uint32_t size;      // bytes of the store
  uint32_t block;     // in the grid, from 1; ALL_BLOCKS
  uint32_t sequence;  // of stores to the place, each of which ends what was released before it
  Clocks *released;
} SyncEntry;

enum { ALL_BLOCKS = 0 };

// The loads that have returned what the last write to a place stored.
typedef struct Observed {
  const void *place;  // NULL: free
  Epoch write;
  int count;
  Epoch loads[OBSERVERS];
} Observed;

struct SyncTable {
  pthread_mutex_t lock;
  SyncEntry *entries;
  size_t capacity, count;
  Observed *observed;
  size_t observed_capacity, observed_count;
  Usage *usage;
};

SyncTable *sync_table_new(Usage *usage) {
  SyncTable *table = host_allocate(1, sizeof *table);
  table->usage = usage;
  pthread_mutex_init(&table->lock, NULL);
  return table;
}

void sync_table_free(SyncTable *table) {
  if (!table) return;
  for (size_t i = 0; i < table->capacity; i++) clocks_release(table->entries[i].released);
  usage_subtract(table->usage, table->capacity * sizeof *table->entries);
  usage_subtract(table->usage, table->observed_capacity * sizeof *table->observed);
  free(table->entries);
  free(table->observed);
  pthread_mutex_destroy(&table->lock);
  free(table);
}

static SyncEntry *sync_slot(const SyncTable *table, const void *place, uint32_t block) {
  size_t i = (size_t)(((uintptr_t)place + block) * 0x9e3779b97f4a7c15ull >> 20) & (table->capacity - 1);
  const SyncEntry *entries = table->entries;
  while (entries[i].place && (entries[i].place != place || entries[i].block != block))
    i = (i + 1) & (table->capacity - 1);
  return &table->entries[i];
}

static const void *element_place(const Elements *elements, int e) {
  return (const char *)elements->first + (size_t)e * elements->size;
}

static uint32_t block_of(const CheckWarp *warp) {
  const CheckCluster *cluster = warp->cluster;
  return cluster->id * (uint32_t)cluster->block_count + (uint32_t)warp->rank + 1;
}

// Returns the clock that was released by stores of the size since the last store to the place, or NULL.
static Clocks *released_at(const SyncTable *table, const void *place, size_t size, uint32_t block) {
  if (!table->count) return NULL;
  const SyncEntry *entry = sync_slot(table, place, block);
  bool is_current = entry->sequence == sync_slot(table, place, ALL_BLOCKS)->sequence;
  return is_current && entry->size == size ? entry->released : NULL;
}

static void grow_entries(SyncTable *table) {
  SyncEntry *old = table->entries;
  size_t old_capacity = table->capacity;
  table->capacity = old_capacity ? old_capacity * 2 : 64;
  table->entries = host_allocate(table->capacity, sizeof *table->entries);
  // A page that is read before it is written costs two faults.
  memset(table->entries, 0, table->capacity * sizeof *table->entries);
  usage_add(table->usage, (table->capacity - old_capacity) * sizeof *table->entries);
  for (size_t i = 0; i < old_capacity; i++)
    if (old[i].place) *sync_slot(table, old[i].place, old[i].block) = old[i];
  free(old);
}

// Sets the clock that is released at the place from now on. The table takes the reference over.
static void set_released(SyncTable *table, const void *place, size_t size, uint32_t block, uint32_t sequence,
                         Clocks *released) {
  if (table->count * 2 >= table->capacity) grow_entries(table);
  SyncEntry *entry = sync_slot(table, place, block);
  table->count += !entry->place;
  entry->place = place;
  entry->size = (uint32_t)size;
  entry->block = block;
  entry->sequence = sequence;
  clocks_replace(&entry->released, released);
}

// Adds to `into`, which one of its cluster learns, what was released of a cluster with fences of .gpu scope. From here
// on none of the learner's own has covered it.
static void learn_of(Clocks *into, uint32_t cluster, Clocks *fenced) {
  if (fenced && cluster == into->cluster)
    clocks_merge_array(into, fenced);
  else if (fenced)
    clocks_merge_import(into, &(Import){.cluster = cluster, .clocks = fenced});
}

// A new reference to what the cluster may learn from what was released.
static Clocks *for_cluster(const CheckCluster *cluster, Clocks *released) {
  if (released->cluster == cluster->id) {
    clocks_retain(released);
    return released;
  }
  Clocks *part = clocks_new(cluster), *fenced = clocks_as_import(released, CLOCK_FENCED_GPU);
  learn_of(part, released->cluster, fenced);
  clocks_release(fenced);
  for (int i = 0; i < released->import_count; i++)
    learn_of(part, released->imports[i].cluster, released->imports[i].fenced[STRONG_GPU]);
  return part;
}

// A strong read learns what was released there by threads that its scope includes: at once when it acquires, else with
// the next fence of that scope. near: the least scope that has those of its cluster.
static void learn_released(CheckWarp *warp, int lane, Clocks *released, MemoryOrder order, Strength scope,
                           Strength near) {
  const CheckCluster *cluster = warp->cluster;
  if (!released) return;
  Strength needed = released->cluster == cluster->id ? near : STRONG_GPU;
  if (scope < needed) return;
  LaneClocks *clocks = &warp->clocks[lane];
  Learnt *learnt = &clocks->learnt[near != STRONG_CTA];
  bool acquires = order == ORDER_ACQUIRE || order == ORDER_ACQ_REL;
  if (learnt->from == released && (learnt->acquired || !acquires)) return;
  clocks_retain(released);
  clocks_replace(&learnt->from, released);
  learnt->acquired = acquires;
  Clocks *part = for_cluster(cluster, released);
  forget_alike(warp);
  if (!acquires) warp->unacquired |= 1u << lane;
  clocks_join(cluster, acquires ? &clocks->known : &clocks->pending[needed], part);
  clocks_release(part);
}

// What a strong read of the place learns.
static void learn_at(const SyncTable *table, const void *place, size_t size, CheckWarp *warp, int lane,
                     MemoryOrder order, Strength scope) {
  bool several = has_several_blocks(warp->cluster);
  if (several) learn_released(warp, lane, released_at(table, place, size, block_of(warp)), order, scope, STRONG_CTA);
  learn_released(warp, lane, released_at(table, place, size, ALL_BLOCKS), order, scope,
                 several ? STRONG_CLUSTER : STRONG_CTA);
}

static void learn_from(const SyncTable *table, const Elements *elements, CheckWarp *warp, int lane, MemoryOrder order,
                       Strength scope) {
  for (int e = 0; e < elements->count; e++)
    learn_at(table, element_place(elements, e), elements->size, warp, lane, order, scope);
}

// A new reference to what a relaxed write hands on: what the lane's last fence covered.
static Clocks *handed_on(const CheckWarp *warp, int lane) {
  LaneClocks *clocks = &warp->clocks[lane];
  HandedOn *last = &clocks->handed_on;
  if (!last->clocks || last->known != clocks->known || memcmp(last->covered, clocks->covered, sizeof last->covered)) {
    Clocks *fenced = clocks_fenced_part(clocks->known, CLOCK_FENCED);
    if (!fenced && !clocks->covered[CLOCK_FENCED]) return NULL;
    if (!fenced) fenced = clocks_new(warp->cluster);
    clocks_add_fenced(fenced, warp, lane, CLOCK_FENCED);
    clocks_replace(&last->clocks, fenced);
    clocks_retain(clocks->known);
    clocks_replace(&last->known, clocks->known);
    memcpy(last->covered, clocks->covered, sizeof last->covered);
  }
  clocks_retain(last->clocks);
  return last->clocks;
}

// A new reference to what a strong write releases to its own block.
static Clocks *released_by(CheckWarp *warp, int lane, MemoryOrder order, Strength scope) {
  const CheckCluster *cluster = warp->cluster;
  if (order != ORDER_RELEASE && order != ORDER_ACQ_REL) return handed_on(warp, lane);
  Clocks *all = clocks_snapshot(warp, lane);
  clocks_cover(all, CLOCK_FENCED);
  if (scope >= STRONG_CLUSTER && has_several_blocks(cluster)) clocks_cover(all, CLOCK_FENCED_CLUSTER);
  if (scope >= STRONG_GPU) clocks_cover(all, CLOCK_FENCED_GPU);
  return all;
}

// A new reference to what of that other blocks learn, and the own one in a cluster of one. The scope of the write
// itself is no matter: who reads it from outside that races with it, or has found an atomic of a wider scope that
// continues it.
static Clocks *for_all_blocks(const CheckCluster *cluster, Clocks *released) {
  if (!released) return NULL;
  if (has_several_blocks(cluster) && !clocks_covered(released, CLOCK_FENCED_CLUSTER))
    return clocks_fenced_part(released, CLOCK_FENCED_CLUSTER);
  clocks_retain(released);
  return released;
}

void sync_load(SyncTable *table, const Elements *elements, CheckWarp *warp, int lane, MemoryOrder order,
               Strength scope) {
  if (!warp->cluster->launch->on) return;
  pthread_mutex_lock(&table->lock);
  learn_from(table, elements, warp, lane, order, scope);
  pthread_mutex_unlock(&table->lock);
}

// Of a place where nothing was ever released the table has no entry.
static void store_released(SyncTable *table, const void *place, size_t size, const CheckWarp *warp, Clocks *released) {
  const CheckCluster *cluster = warp->cluster;
  bool was_any = table->count && sync_slot(table, place, ALL_BLOCKS)->place;
  if (!released && !was_any) return;
  uint32_t sequence = was_any ? sync_slot(table, place, ALL_BLOCKS)->sequence + 1 : 0;
  set_released(table, place, size, ALL_BLOCKS, sequence, for_all_blocks(cluster, released));
  if (released && has_several_blocks(cluster)) {
    clocks_retain(released);
    set_released(table, place, size, block_of(warp), sequence, released);
  }
}

void sync_store(SyncTable *table, const Elements *elements, CheckWarp *warp, int lane, MemoryOrder order,
                Strength scope) {
  if (!warp->cluster->launch->on) return;
  Clocks *released = released_by(warp, lane, order, scope);
  pthread_mutex_lock(&table->lock);
  for (int e = 0; e < elements->count; e++)
    store_released(table, element_place(elements, e), elements->size, warp, released);
  clocks_release(released);
  pthread_mutex_unlock(&table->lock);
}

// A new reference to what a and b know together. Places that a lane adds to mostly had the same before: they share what
// they have then, too.
static Clocks *joined_again(Joined *last, const CheckCluster *cluster, Clocks *a, Clocks *b) {
  if (!last->both || last->a != a || last->b != b) {
    clocks_retain(a);
    clocks_replace(&last->a, a);
    clocks_retain(b);
    clocks_replace(&last->b, b);
    clocks_replace(&last->both, clocks_joined(cluster, a, b));
  }
  clocks_retain(last->both);
  return last->both;
}

// Adds to what is released at each element of a lane's atomic. A read-modify-write continues the release sequence that
// it read from, PTX ISA 8.10.
static void add_released(SyncTable *table, const Elements *elements, uint32_t block, const CheckWarp *warp, int lane,
                         Clocks *more) {
  Joined *joined = &warp->clocks[lane].joined[block == ALL_BLOCKS];
  for (int e = 0; e < elements->count; e++) {
    const void *place = element_place(elements, e);
    Clocks *here = released_at(table, place, elements->size, block);
    uint32_t sequence = table->count ? sync_slot(table, place, ALL_BLOCKS)->sequence : 0;
    set_released(table, place, elements->size, block, sequence, joined_again(joined, warp->cluster, here, more));
  }
}

// An atomic that releases nothing ends what others of another size have released there.
static void end_other_sizes(SyncTable *table, const Elements *elements, const CheckWarp *warp) {
  for (int e = 0; e < elements->count && table->count; e++) {
    const void *place = element_place(elements, e);
    const SyncEntry *entry = sync_slot(table, place, ALL_BLOCKS);
    if (entry->place && entry->size != elements->size) store_released(table, place, elements->size, warp, NULL);
  }
}

void sync_atomic(SyncTable *table, const Elements *elements, CheckWarp *warp, int lane, MemoryOrder order,
                 Strength scope) {
  if (!warp->cluster->launch->on) return;
  const CheckCluster *cluster = warp->cluster;
  pthread_mutex_lock(&table->lock);
  learn_from(table, elements, warp, lane, order, scope);
  Clocks *released = released_by(warp, lane, order, scope);
  if (released) {
    Clocks *wide = for_all_blocks(cluster, released);
    add_released(table, elements, ALL_BLOCKS, warp, lane, wide);
    if (has_several_blocks(cluster)) add_released(table, elements, block_of(warp), warp, lane, released);
    clocks_release(wide);
  } else {
    end_other_sizes(table, elements, warp);
  }
  clocks_release(released);
  pthread_mutex_unlock(&table->lock);
}

// ---- what strong loads have seen ----

static Observed *observed_slot(const SyncTable *table, const void *place) {
  size_t i = (size_t)((uintptr_t)place * 0x9e3779b97f4a7c15ull >> 20) & (table->observed_capacity - 1);
  Observed *observed = table->observed;
  while (observed[i].place && observed[i].place != place) i = (i + 1) & (table->observed_capacity - 1);
  return &observed[i];
}

static void grow_observed(SyncTable *table) {
  Observed *old = table->observed;
  size_t old_capacity = table->observed_capacity;
  table->observed_capacity = old_capacity ? old_capacity * 2 : 16;
  table->observed = host_allocate(table->observed_capacity, sizeof *table->observed);
  usage_add(table->usage, (table->observed_capacity - old_capacity) * sizeof *table->observed);
  for (size_t i = 0; i < old_capacity; i++)
    if (old[i].place) *observed_slot(table, old[i].place) = old[i];
  free(old);
}

// The first loads are kept: what comes after a thread's first one is most.
static void add_observer(Observed *seen, Epoch load) {
  for (int i = 0; i < seen->count; i++)
    if (seen->loads[i] == load) return;
  if (seen->count < OBSERVERS) seen->loads[seen->count++] = load;
}

void sync_observe(SyncTable *table, const void *place, Epoch write, Epoch load) {
  pthread_mutex_lock(&table->lock);
  if (table->observed_count * 2 >= table->observed_capacity) grow_observed(table);
  Observed *seen = observed_slot(table, place);
  table->observed_count += !seen->place;
  if (seen->write != write) seen->count = 0;
  seen->place = place;
  seen->write = write;
  add_observer(seen, load);
  pthread_mutex_unlock(&table->lock);
}

int sync_observers(SyncTable *table, const void *place, Epoch write, Epoch loads[OBSERVERS]) {
  pthread_mutex_lock(&table->lock);
  const Observed *seen = table->observed_capacity ? observed_slot(table, place) : NULL;
  int count = seen && seen->place && seen->write == write ? seen->count : 0;
  for (int i = 0; i < count; i++) loads[i] = seen->loads[i];
  pthread_mutex_unlock(&table->lock);
  return count;
}
