// Vector clocks: what threads know of each other, and how synchronisation passes it on. See clocks.h.
#include "clocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../warp/host_memory.h"
#include "hazard.h"

// ---- clocks ----

static void retain_times(Clocks *clocks, int times) {
  if (clocks) atomic_fetch_add_explicit(&clocks->references, times, memory_order_relaxed);
}

void clocks_retain(Clocks *clocks) { retain_times(clocks, 1); }

static size_t clocks_size(int count, int planes) {
  return sizeof(Clocks) + (size_t)planes * (size_t)count * sizeof(uint32_t);
}

static void release_times(Clocks *clocks, int times) {
  if (!clocks || atomic_fetch_sub_explicit(&clocks->references, times, memory_order_acq_rel) > times) return;
  for (int i = 0; i < clocks->import_count; i++) clocks_release(clocks->imports[i].clocks);
  usage_subtract(clocks->usage,
                 clocks_size(clocks->count, clocks->planes) + (size_t)clocks->import_count * sizeof(Import));
  free(clocks->imports);
  free(clocks);
}

void clocks_release(Clocks *clocks) { release_times(clocks, 1); }

static uint32_t *plane(Clocks *clocks, ClockPlane which) {
  return clocks->clock + (size_t)which * (size_t)clocks->count;
}

static void copy_plane(Clocks *clocks, ClockPlane to, ClockPlane from) {
  memcpy(plane(clocks, to), plane(clocks, from), (size_t)clocks->count * sizeof(uint32_t));
}

static Clocks *clocks_of(uint32_t cluster, int count, int planes, Usage *usage) {
  Clocks *clocks = host_allocate(1, clocks_size(count, planes));
  atomic_init(&clocks->references, 1);
  clocks->cluster = cluster;
  clocks->count = count;
  clocks->planes = planes;
  clocks->usage = usage;
  usage_add(usage, clocks_size(count, planes));
  return clocks;
}

// Of the same cluster's threads, with nothing known of them.
static Clocks *clocks_like(const Clocks *clocks, Usage *usage) {
  return clocks_of(clocks->cluster, clocks->count, clocks->planes, usage);
}

static bool has_several_blocks(const Cluster *cluster) { return cluster->block_count > 1; }

static Clocks *clocks_new(const Cluster *cluster) {
  int planes = has_several_blocks(cluster) ? CLOCK_PLANES : CLOCK_FENCED_CLUSTER;
  return clocks_of(cluster->id, cluster->clock_count, planes, &cluster->worker->order);
}

// A vector's length is a multiple of LANES. Loops over it go by STEP: one that does a fixed number of times the same the
// compiler makes wide instructions of.
enum { STEP = 16 };

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void merge_array(Clocks *restrict into, const Clocks *restrict from) {
  for (int i = 0; i < into->planes * into->count; i += STEP)
    for (int j = 0; j < STEP; j++) into->clock[i + j] = larger(into->clock[i + j], from->clock[i + j]);
}

static bool dominates(const Clocks *big, const Clocks *small) {
  if (small->import_count) return false;
  for (int i = 0; i < big->planes * big->count; i += STEP) {
    uint32_t above = 0;
    for (int j = 0; j < STEP; j++) above |= small->clock[i + j] > big->clock[i + j];
    if (above) return false;
  }
  return true;
}

// Adds another cluster's clocks to those that `into` has imported.
static void merge_import(Clocks *into, Clocks *from) {
  for (int i = 0; i < into->import_count; i++) {
    Import *import = &into->imports[i];
    if (import->cluster != from->cluster) continue;
    if (import->clocks == from || dominates(import->clocks, from)) return;
    Clocks *merged = clocks_like(from, into->usage);
    merge_array(merged, from);
    merge_array(merged, import->clocks);
    clocks_release(import->clocks);
    import->clocks = merged;
    return;
  }
  into->imports = realloc(into->imports, ((size_t)into->import_count + 1) * sizeof(Import));
  if (!into->imports) out_of_memory();
  usage_add(into->usage, sizeof(Import));
  // Its own imports stay behind: clusters that learn from each other would build a chain of them without end.
  Clocks *held = from;
  if (from->import_count)
    merge_array(held = clocks_like(from, into->usage), from);
  else
    clocks_retain(from);
  into->imports[into->import_count++] = (Import){from->cluster, held};
}

// Adds everything that `from` knows to `into`, which has no other holder yet.
static void merge(Clocks *into, Clocks *from) {
  if (from->cluster == into->cluster)
    merge_array(into, from);
  else
    merge_import(into, from);
  for (int i = 0; i < from->import_count; i++)
    if (from->imports[i].cluster == into->cluster)
      merge_array(into, from->imports[i].clocks);
    else
      merge_import(into, from->imports[i].clocks);
}

// A new reference to what a and b know together.
static Clocks *join(const Cluster *cluster, Clocks *a, Clocks *b) {
  bool a_is_ours = a && a->cluster == cluster->id, b_is_ours = b && b->cluster == cluster->id;
  if (a == b || !b) {
    clocks_retain(a);
    return a;
  }
  if (b_is_ours && (!a || (a_is_ours && dominates(b, a)))) {
    clocks_retain(b);
    return b;
  }
  if (a_is_ours && b_is_ours && dominates(a, b)) {
    clocks_retain(a);
    return a;
  }
  Clocks *joined = clocks_new(cluster);
  if (a) merge(joined, a);
  merge(joined, b);
  return joined;
}

static void replace(Clocks **holder, Clocks *with) {
  clocks_release(*holder);
  *holder = with;
}

// ---- releases and acquires ----

static void forget_alike(Warp *warp) { warp->alike[0] = warp->alike[1] = 0; }

// Lanes mostly differ never, or one of them does from all the others: two groups are remembered.
Mask race_alike(Warp *warp, int lane) {
  for (int i = 0; i < 2; i++)
    if (warp->alike[i] >> lane & 1) return warp->alike[i];
  const LaneClocks *clocks = warp->clocks;
  Mask alike = 0;
  for (int i = 0; i < LANES; i++)
    alike |= (Mask)(clocks[i].own == clocks[lane].own && clocks[i].known == clocks[lane].known) << i;
  warp->alike[warp->alike[0] != 0] = alike;
  return alike;
}

// Advances a thread's clock: accesses from here on are not covered by what it has just released.
static void advance(Warp *warp, int lane) {
  LaneClocks *clocks = &warp->clocks[lane];
  forget_alike(warp);
  if (clocks->own++ < warp_launch(warp)->epochs->clock_mask) return;
  clocks->own = 1;
  hazard_stop(warp, NULL, lane, HAZARD_STEP_LIMIT, 0, 0,
              "a thread synchronised more often than the race check can count; run with --hazards=off");
}

// Makes *holder a vector that has no other holder.
static void make_own(const Cluster *cluster, Clocks **holder) {
  if (*holder && atomic_load_explicit(&(*holder)->references, memory_order_acquire) == 1) return;
  Clocks *copy = clocks_new(cluster);
  if (*holder) merge(copy, *holder);
  replace(holder, copy);
}

// Adds what the lane's fences have covered of its own accesses.
static void add_covered(Clocks *into, const Warp *warp, int lane) {
  if (!warp->clocks[lane].covered[CLOCK_KNOWN]) return;  // none yet
  for (int p = 0; p < into->planes; p++) {
    uint32_t *clock = &plane(into, (ClockPlane)p)[warp_thread(warp, lane)];
    *clock = larger(*clock, warp->clocks[lane].covered[p]);
  }
}

void race_release(Warp *warp, Mask mask, Clocks **joined) {
  if (!warp_launch(warp)->hazards) return;
  make_own(warp->block->cluster, joined);
  const Clocks *merged = NULL;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    LaneClocks *clocks = &warp->clocks[lane];
    if (clocks->known && clocks->known != merged) merge(*joined, clocks->known);
    merged = clocks->known;
  }
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    add_covered(*joined, warp, lane);
    (*joined)->clock[warp_thread(warp, lane)] = warp->clocks[lane].own;
    advance(warp, lane);
  }
}

void race_acquire(Warp *warp, Mask mask, Clocks *joined) {
  if (!joined) return;
  forget_alike(warp);
  for (Mask rest = mask, same; rest; rest &= ~same) {
    Clocks *before = warp->clocks[__builtin_ctz(rest)].known;
    Clocks *after = join(warp->block->cluster, before, joined);
    same = 0;
    for (Mask lanes = rest; lanes; lanes &= lanes - 1) {
      LaneClocks *clocks = &warp->clocks[__builtin_ctz(lanes)];
      if (clocks->known != before) continue;
      clocks->known = after;
      same |= lanes & -lanes;
    }
    retain_times(after, __builtin_popcount(same) - 1);
    release_times(before, __builtin_popcount(same));
  }
}

bool race_knows(const Warp *warp, Mask mask, const Clocks *joined) {
  const Clocks *last = NULL;
  uint32_t self = warp_thread(warp, 0) / LANES;
  for (Mask rest = mask; joined && rest; rest &= rest - 1) {
    const Clocks *known = warp->clocks[__builtin_ctz(rest)].known;
    if (known && (known == last || known == joined)) continue;
    last = known;
    for (int i = 0; i < joined->count; i++)
      if (joined->clock[i] > (known ? known->clock[i] : 0) && (uint32_t)i / LANES != self) return false;
  }
  return true;
}

void race_warp_sync(Warp *warp, Mask mask) {
  Clocks *joined = NULL;
  race_release(warp, mask, &joined);
  race_acquire(warp, mask, joined);
  clocks_release(joined);
}

// What one thread knows, itself included.
static Clocks *snapshot(Warp *warp, int lane) {
  Clocks *clocks = NULL;
  race_release(warp, 1u << lane, &clocks);
  return clocks;
}

static bool plane_covers(Clocks *clocks, ClockPlane which) {
  return !memcmp(plane(clocks, which), plane(clocks, CLOCK_KNOWN), (size_t)clocks->count * sizeof(uint32_t));
}

// Lanes that know the same go on sharing it after a fence: what each has done itself stands beside it.
static void cover(Warp *warp, Mask mask, ClockPlane which) {
  const Clocks *before = NULL;
  Clocks *after = NULL;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    LaneClocks *clocks = &warp->clocks[__builtin_ctz(rest)];
    clocks->covered[CLOCK_KNOWN] = clocks->covered[which] = clocks->own;
    if (!clocks->known || plane_covers(clocks->known, which)) continue;
    if (clocks->known != before) {
      clocks_release(after);
      before = clocks->known;
      after = clocks_new(warp->block->cluster);
      merge(after, clocks->known);
      copy_plane(after, which, CLOCK_KNOWN);
    }
    clocks_retain(after);
    replace(&clocks->known, after);
  }
  clocks_release(after);
}

void race_fence(Warp *warp, Mask mask, Strength scope) {
  if (!warp_launch(warp)->hazards) return;
  const Cluster *cluster = warp->block->cluster;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    LaneClocks *clocks = &warp->clocks[__builtin_ctz(rest)];
    for (Strength needed = STRONG_CTA; needed <= scope; needed++) {
      if (!clocks->pending[needed]) continue;
      replace(&clocks->known, join(cluster, clocks->known, clocks->pending[needed]));
      replace(&clocks->pending[needed], NULL);
    }
  }
  cover(warp, mask, CLOCK_FENCED);
  if (scope >= STRONG_CLUSTER && has_several_blocks(cluster)) cover(warp, mask, CLOCK_FENCED_CLUSTER);
  if (scope >= STRONG_GPU) cover(warp, mask, CLOCK_FENCED_GPU);
  for (Mask rest = mask; rest; rest &= rest - 1) advance(warp, __builtin_ctz(rest));
}

void race_proxy_fence(Warp *warp, Mask mask) {
  if (!warp_launch(warp)->hazards) return;
  cover(warp, mask, CLOCK_VISIBLE);
  for (Mask rest = mask; rest; rest &= rest - 1) advance(warp, __builtin_ctz(rest));
}

Clocks *race_lane_clocks(Warp *warp, int lane) {
  LaneClocks *clocks = &warp->clocks[lane];
  uint32_t covered = clocks->covered[CLOCK_KNOWN];
  if (!covered || (clocks->known && clocks->known->clock[warp_thread(warp, lane)] >= covered)) {
    clocks_retain(clocks->known);
    return clocks->known;
  }
  Clocks *all = clocks_new(warp->block->cluster);
  if (clocks->known) merge(all, clocks->known);
  add_covered(all, warp, lane);
  return all;
}

void clocks_add_agent(Cluster *cluster, Clocks **joined, uint32_t agent, uint32_t clock) {
  make_own(cluster, joined);
  if ((*joined)->clock[agent] < clock) (*joined)->clock[agent] = clock;
}

void race_learn_agent(Warp *warp, Mask mask, uint32_t agent, uint32_t clock) {
  if (!warp_launch(warp)->hazards) return;
  Clocks *done = NULL;
  clocks_add_agent(warp->block->cluster, &done, agent, clock);
  race_acquire(warp, mask, done);
  clocks_release(done);
}

// A copy of clocks, without imports, that knows no more than what a plane of it covers.
static Clocks *narrowed(const Clocks *clocks, ClockPlane to) {
  Clocks *copy = clocks_like(clocks, clocks->usage);
  memcpy(copy->clock, clocks->clock, clocks_size(clocks->count, clocks->planes) - sizeof(Clocks));
  copy_plane(copy, CLOCK_KNOWN, to);
  for (int p = CLOCK_VISIBLE; p < clocks->planes; p++) {
    uint32_t *part = plane(copy, (ClockPlane)p);
    for (int i = 0; i < copy->count; i += STEP)
      for (int j = 0; j < STEP; j++) part[i + j] = smaller(part[i + j], copy->clock[i + j]);
  }
  return copy;
}

// Whether no fence has covered anything of it.
static bool is_unfenced(const Clocks *clocks, ClockPlane fence) {
  const uint32_t *fenced = clocks->clock + (int)fence * clocks->count;
  uint32_t any = 0;
  for (int i = 0; i < clocks->count; i++) any |= fenced[i];
  return !any && !clocks->import_count;
}

// What a relaxed store by the lane hands on, what the last fence covered, without what it has done itself: a new
// reference, NULL for nothing.
static Clocks *fenced_part(const Clocks *known, ClockPlane fence) {
  if (!known || is_unfenced(known, fence)) return NULL;
  Clocks *part = narrowed(known, fence);
  for (int i = 0; i < known->import_count; i++) merge_import(part, known->imports[i].clocks);
  return part;
}

// And that.
static void add_fenced(Clocks *into, const Warp *warp, int lane, ClockPlane fence) {
  const uint32_t *covered = warp->clocks[lane].covered;
  for (int p = 0; p < into->planes; p++) {
    uint32_t *clock = &plane(into, (ClockPlane)p)[warp_thread(warp, lane)];
    *clock = larger(*clock, smaller(covered[p], covered[fence]));
  }
}

void race_release_relaxed(Warp *warp, Mask mask, Clocks **joined, Strength scope) {
  const Clocks *last = NULL;
  ClockPlane fence = scope == STRONG_CTA ? CLOCK_FENCED : CLOCK_FENCED_CLUSTER;
  if (!has_several_blocks(warp->block->cluster)) fence = CLOCK_FENCED;
  if (!warp_launch(warp)->hazards) return;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const Clocks *known = warp->clocks[__builtin_ctz(rest)].known;
    if (known == last) continue;
    last = known;
    Clocks *fenced = fenced_part(known, fence);
    clocks_join(warp->block->cluster, joined, fenced);
    clocks_release(fenced);
  }
  make_own(warp->block->cluster, joined);
  for (Mask rest = mask; rest; rest &= rest - 1) add_fenced(*joined, warp, __builtin_ctz(rest), fence);
}

void race_acquire_relaxed(Warp *warp, Mask mask, Clocks *joined) {
  for (Mask rest = mask; joined && rest; rest &= rest - 1)
    clocks_join(warp->block->cluster, &warp->clocks[__builtin_ctz(rest)].pending[STRONG_CTA], joined);
}

void clocks_join(const Cluster *cluster, Clocks **holder, Clocks *more) {
  replace(holder, join(cluster, *holder, more));
}

Clocks *clocks_common(const Cluster *cluster, Clocks *const *holders, int count) {
  Clocks *common = clocks_new(cluster);
  merge_array(common, holders[0]);
  for (int h = 1; h < count; h++)
    for (int i = 0; i < common->planes * common->count; i += STEP)
      for (int j = 0; j < STEP; j++) common->clock[i + j] = smaller(common->clock[i + j], holders[h]->clock[i + j]);
  return common;
}

// ---- what was released through memory ----

// In a cluster of several blocks a release of .cta scope is for the releasing block alone, and a fence of .cta scope
// hands on less to the others than to its own. So there a place has an entry for all, and one for each block that
// has released something there to itself.
typedef struct SyncEntry {
  const void *place;  // NULL: free
  uint32_t block;     // in the grid, from 1; ALL_BLOCKS
  uint32_t sequence;  // of stores to the place, each of which ends what was released before it
  Clocks *released;
} SyncEntry;

enum { ALL_BLOCKS = 0 };

struct SyncTable {
  pthread_mutex_t lock;
  SyncEntry *entries;
  size_t capacity, count;
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
  free(table->entries);
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

static uint32_t block_of(const Warp *warp) {
  const Cluster *cluster = warp->block->cluster;
  return cluster->id * (uint32_t)cluster->block_count + (uint32_t)warp->block->rank + 1;
}

// What was released there since the last store there; NULL for nothing.
static Clocks *released_at(const SyncTable *table, const void *place, uint32_t block) {
  if (!table->count) return NULL;
  const SyncEntry *entry = sync_slot(table, place, block);
  bool is_current = entry->sequence == sync_slot(table, place, ALL_BLOCKS)->sequence;
  return is_current ? entry->released : NULL;
}

static void grow(SyncTable *table) {
  SyncEntry *old = table->entries;
  size_t old_capacity = table->capacity;
  table->capacity = old_capacity ? old_capacity * 2 : 64;
  table->entries = host_allocate(table->capacity, sizeof *table->entries);
  usage_add(table->usage, (table->capacity - old_capacity) * sizeof *table->entries);
  for (size_t i = 0; i < old_capacity; i++)
    if (old[i].place) *sync_slot(table, old[i].place, old[i].block) = old[i];
  free(old);
}

// What is released there from now on: the table takes the reference over.
static void set_released(SyncTable *table, const void *place, uint32_t block, uint32_t sequence, Clocks *released) {
  if (table->count * 2 >= table->capacity) grow(table);
  SyncEntry *entry = sync_slot(table, place, block);
  table->count += !entry->place;
  entry->place = place;
  entry->block = block;
  entry->sequence = sequence;
  replace(&entry->released, released);
}

// Adds to `into` what `from` hands on to another cluster: what a fence of .gpu scope covered.
static void merge_foreign(Clocks *into, const Clocks *from) {
  Clocks *part = narrowed(from, CLOCK_FENCED_GPU);
  if (from->cluster == into->cluster)
    merge_array(into, part);
  else
    merge_import(into, part);
  clocks_release(part);
}

// A new reference to what the cluster may learn from what was released.
static Clocks *for_cluster(const Cluster *cluster, Clocks *released) {
  if (released->cluster == cluster->id && released->import_count == 0) {
    clocks_retain(released);
    return released;
  }
  Clocks *part = clocks_new(cluster);
  if (released->cluster == cluster->id)
    merge_array(part, released);
  else
    merge_foreign(part, released);
  for (int i = 0; i < released->import_count; i++) merge_foreign(part, released->imports[i].clocks);
  return part;
}

// A strong read learns what was released there by threads that its scope includes: at once when it acquires, else with the
// next fence of that scope. near: the least scope that has those of its cluster.
static void learn(Warp *warp, int lane, Clocks *released, MemoryOrder order, Strength scope, Strength near) {
  const Cluster *cluster = warp->block->cluster;
  if (!released) return;
  Strength needed = released->cluster == cluster->id ? near : STRONG_GPU;
  if (scope < needed) return;
  LaneClocks *clocks = &warp->clocks[lane];
  Learnt *learnt = &clocks->learnt[near != STRONG_CTA];
  bool acquires = order == ORDER_ACQUIRE || order == ORDER_ACQ_REL;
  if (learnt->from == released && (learnt->acquired || !acquires)) return;
  clocks_retain(released);
  replace(&learnt->from, released);
  learnt->acquired = acquires;
  Clocks *part = for_cluster(cluster, released);
  forget_alike(warp);
  clocks_join(cluster, acquires ? &clocks->known : &clocks->pending[needed], part);
  clocks_release(part);
}

// What a strong read of the place learns.
static void learn_at(const SyncTable *table, const void *place, Warp *warp, int lane, MemoryOrder order,
                     Strength scope) {
  bool several = has_several_blocks(warp->block->cluster);
  if (several) learn(warp, lane, released_at(table, place, block_of(warp)), order, scope, STRONG_CTA);
  learn(warp, lane, released_at(table, place, ALL_BLOCKS), order, scope, several ? STRONG_CLUSTER : STRONG_CTA);
}

// A new reference to what a strong write releases to its own block.
static Clocks *released_by(Warp *warp, int lane, MemoryOrder order, Strength scope) {
  const Cluster *cluster = warp->block->cluster;
  if (order != ORDER_RELEASE && order != ORDER_ACQ_REL) {
    Clocks *fenced = fenced_part(warp->clocks[lane].known, CLOCK_FENCED);
    if (!fenced && !warp->clocks[lane].covered[CLOCK_FENCED]) return NULL;
    if (!fenced) fenced = clocks_new(cluster);
    add_fenced(fenced, warp, lane, CLOCK_FENCED);
    return fenced;
  }
  Clocks *all = snapshot(warp, lane);
  copy_plane(all, CLOCK_FENCED, CLOCK_KNOWN);
  if (scope >= STRONG_CLUSTER && has_several_blocks(cluster)) copy_plane(all, CLOCK_FENCED_CLUSTER, CLOCK_KNOWN);
  if (scope >= STRONG_GPU) copy_plane(all, CLOCK_FENCED_GPU, CLOCK_KNOWN);
  return all;
}

// A new reference to what of that a write of the scope releases to other blocks, and to its own in a cluster of one.
static Clocks *for_all_blocks(const Cluster *cluster, Clocks *released, Strength scope) {
  if (!released || (has_several_blocks(cluster) && scope == STRONG_CTA)) return NULL;
  if (has_several_blocks(cluster) && !plane_covers(released, CLOCK_FENCED_CLUSTER))
    return fenced_part(released, CLOCK_FENCED_CLUSTER);
  clocks_retain(released);
  return released;
}

void sync_load(SyncTable *table, const void *place, Warp *warp, int lane, MemoryOrder order, Strength scope) {
  if (!warp_launch(warp)->hazards) return;
  pthread_mutex_lock(&table->lock);
  learn_at(table, place, warp, lane, order, scope);
  pthread_mutex_unlock(&table->lock);
}

// Of a place where nothing was ever released the table has no entry.
void sync_store(SyncTable *table, const void *place, Warp *warp, int lane, MemoryOrder order, Strength scope) {
  if (!warp_launch(warp)->hazards) return;
  const Cluster *cluster = warp->block->cluster;
  Clocks *released = released_by(warp, lane, order, scope);
  pthread_mutex_lock(&table->lock);
  bool was_any = table->count && sync_slot(table, place, ALL_BLOCKS)->place;
  if (released || was_any) {
    uint32_t sequence = was_any ? sync_slot(table, place, ALL_BLOCKS)->sequence + 1 : 0;
    set_released(table, place, ALL_BLOCKS, sequence, for_all_blocks(cluster, released, scope));
    if (released && has_several_blocks(cluster)) {
      clocks_retain(released);
      set_released(table, place, block_of(warp), sequence, released);
    }
  }
  clocks_release(released);
  pthread_mutex_unlock(&table->lock);
}

// Adds to what is released there. A read-modify-write continues the release sequence that it read from, PTX ISA
// 8.10.
static void add_released(SyncTable *table, const void *place, uint32_t block, const Cluster *cluster, Clocks *more) {
  Clocks *before = released_at(table, place, block);
  uint32_t sequence = table->count ? sync_slot(table, place, ALL_BLOCKS)->sequence : 0;
  set_released(table, place, block, sequence, join(cluster, before, more));
}

void sync_atomic(SyncTable *table, const void *place, Warp *warp, int lane, MemoryOrder order, Strength scope) {
  if (!warp_launch(warp)->hazards) return;
  const Cluster *cluster = warp->block->cluster;
  pthread_mutex_lock(&table->lock);
  learn_at(table, place, warp, lane, order, scope);
  Clocks *released = released_by(warp, lane, order, scope);
  if (released) {
    Clocks *wide = for_all_blocks(cluster, released, scope);
    add_released(table, place, ALL_BLOCKS, cluster, wide);
    if (has_several_blocks(cluster)) add_released(table, place, block_of(warp), cluster, released);
    clocks_release(wide);
  }
  clocks_release(released);
  pthread_mutex_unlock(&table->lock);
}
