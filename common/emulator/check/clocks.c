// Vector clocks: what threads know of each other. See clocks.h.
#include "clocks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"

// ---- clocks ----

void clocks_retain_times(Clocks *clocks, int times) {
  if (clocks) atomic_fetch_add_explicit(&clocks->references, times, memory_order_relaxed);
}

void clocks_retain(Clocks *clocks) { clocks_retain_times(clocks, 1); }

static size_t clocks_size(int count, int planes) {
  return sizeof(Clocks) + (size_t)planes * (size_t)count * sizeof(uint32_t);
}

void clocks_release(Clocks *clocks) { clocks_release_times(clocks, 1); }

void clocks_release_times(Clocks *clocks, int times) {
  if (!clocks || atomic_fetch_sub_explicit(&clocks->references, times, memory_order_acq_rel) > times) return;
  for (int i = 0; i < clocks->import_count; i++) {
    clocks_release(clocks->imports[i].clocks);
    for (Strength s = STRONG_CTA; s < SCOPES; s++) clocks_release(clocks->imports[i].fenced[s]);
  }
  for (Strength s = STRONG_CTA; s < SCOPES; s++) clocks_release(clocks->observed[s]);
  usage_subtract(clocks->usage,
                 clocks_size(clocks->count, clocks->planes) + (size_t)clocks->import_count * sizeof(Import));
  free(clocks->imports);
  free(clocks);
}

static void copy_plane(Clocks *clocks, ClockPlane to, ClockPlane from) {
  memcpy(clocks_plane(clocks, to), clocks_plane(clocks, from), (size_t)clocks->count * sizeof(uint32_t));
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

Clocks *clocks_new(const CheckCluster *cluster) {
  return clocks_of(cluster->id, cluster->clock_count, cluster->planes, cluster->usage);
}

// A vector's length is a multiple of LANES. Loops over it go by STEP: one that does a fixed number of times the same
// the compiler makes wide instructions of.
enum { STEP = 16 };

// In those planes that both have.
void clocks_merge_array(Clocks *restrict into, const Clocks *restrict from) {
  int planes = into->planes < from->planes ? into->planes : from->planes;
  for (int i = 0; i < planes * into->count; i += STEP)
    for (int j = 0; j < STEP; j++) into->clock[i + j] = later_clock(into->clock[i + j], from->clock[i + j]);
}

// The same of arrays with equal planes.
static bool array_dominates(const Clocks *big, const Clocks *small) {
  for (int i = 0; i < big->planes * big->count; i += STEP) {
    uint32_t above = 0;
    for (int j = 0; j < STEP; j++) above |= small->clock[i + j] > big->clock[i + j];
    if (above) return false;
  }
  return true;
}

// ---- imports ----

enum { IMPORTED_PLANES = 2 };

// The plane that fences of at least the scope cover.
static ClockPlane plane_of_scope(Strength scope) {
  return scope == STRONG_CTA ? CLOCK_FENCED : scope == STRONG_GPU ? CLOCK_FENCED_GPU : CLOCK_FENCED_CLUSTER;
}

static Strength scope_of_plane(ClockPlane plane) {
  return plane == CLOCK_FENCED ? STRONG_CTA : plane == CLOCK_FENCED_GPU ? STRONG_GPU : STRONG_CLUSTER;
}

// Where the import of a cluster is, or would be.
static int import_place(const Clocks *clocks, uint32_t cluster) {
  int low = 0, high = clocks->import_count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (clocks->imports[middle].cluster < cluster)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static Import *find_import(const Clocks *clocks, uint32_t cluster) {
  int place = import_place(clocks, cluster);
  return place < clocks->import_count && clocks->imports[place].cluster == cluster ? &clocks->imports[place] : NULL;
}

const Clocks *clocks_imported(const Clocks *known, uint32_t cluster) {
  const Import *import = known ? find_import(known, cluster) : NULL;
  return import ? import->clocks : NULL;
}

static Import *add_import(Clocks *into, uint32_t cluster) {
  int place = import_place(into, cluster), count = into->import_count;
  // A power of two: there is no room for one more.
  if ((count & (count - 1)) == 0)
    into->imports = realloc(into->imports, (size_t)(count ? 2 * count : 1) * sizeof(Import));
  if (!into->imports) out_of_memory();
  usage_add(into->usage, sizeof(Import));
  memmove(&into->imports[place + 1], &into->imports[place], (size_t)(count - place) * sizeof(Import));
  into->imports[place] = (Import){.cluster = cluster};
  into->import_count++;
  return &into->imports[place];
}

// What *holder and `more`, both of one other cluster, know together: mostly one has all that the other has.
static void join_imported(Clocks **holder, Clocks *more) {
  if (!more || *holder == more || (*holder && array_dominates(*holder, more))) return;
  if (!*holder || array_dominates(more, *holder)) {
    clocks_retain(more);
    clocks_replace(holder, more);
    return;
  }
  Clocks *merged = clocks_of(more->cluster, more->count, more->planes, more->usage);
  clocks_merge_array(merged, more);
  clocks_merge_array(merged, *holder);
  clocks_replace(holder, merged);
}

void clocks_merge_import(Clocks *into, const Import *from) {
  Import *import = find_import(into, from->cluster);
  if (!import) import = add_import(into, from->cluster);
  join_imported(&import->clocks, from->clocks);
  for (Strength s = STRONG_CTA; s < SCOPES; s++) join_imported(&import->fenced[s], from->fenced[s]);
}

// As another cluster has it: what a plane covers of what is known of the clocks' own cluster. NULL for nothing.
Clocks *clocks_as_import(const Clocks *from, ClockPlane covered) {
  const uint32_t *known = from->clock + (size_t)covered * (size_t)from->count;
  const uint32_t *visible = from->clock + (size_t)CLOCK_VISIBLE * (size_t)from->count;
  Clocks *import = clocks_of(from->cluster, from->count, IMPORTED_PLANES, from->usage);
  uint32_t any = 0;
  for (int i = 0; i < from->count; i++) {
    any |= import->clock[i] = known[i];
    import->clock[from->count + i] = earlier_clock(known[i], visible[i]);
  }
  if (any) return import;
  clocks_release(import);
  return NULL;
}

static bool plane_covers(Clocks *clocks, ClockPlane which) {
  return !memcmp(clocks_plane(clocks, which), clocks_plane(clocks, CLOCK_KNOWN),
                 (size_t)clocks->count * sizeof(uint32_t));
}

// Of an import that turns out to be of the own cluster.
static void merge_home(Clocks *into, const Import *import) {
  clocks_merge_array(into, import->clocks);
  for (Strength s = STRONG_CTA; s < SCOPES; s++) {
    if (!import->fenced[s] || (int)plane_of_scope(s) >= into->planes) continue;
    uint32_t *covered = clocks_plane(into, plane_of_scope(s));
    for (int i = 0; i < into->count; i++) covered[i] = later_clock(covered[i], import->fenced[s]->clock[i]);
  }
}

// Adds what a cluster has released of another one, or of the own one, with fences of .gpu scope. It counts as covered.
static void merge_released(Clocks *into, uint32_t cluster, Clocks *fenced) {
  const Import import = {cluster, fenced, {[STRONG_CTA] = fenced, [STRONG_CLUSTER] = fenced, [STRONG_GPU] = fenced}};
  if (fenced && cluster == into->cluster)
    merge_home(into, &import);
  else if (fenced)
    clocks_merge_import(into, &import);
}

// Adds what another cluster has released: an atomic continues it.
static void merge_foreign(Clocks *into, const Clocks *from) {
  Clocks *fenced = clocks_as_import(from, CLOCK_FENCED_GPU);
  merge_released(into, from->cluster, fenced);
  clocks_release(fenced);
  for (int i = 0; i < from->import_count; i++)
    merge_released(into, from->imports[i].cluster, from->imports[i].fenced[STRONG_GPU]);
}

// ---- what is known together ----

static bool import_dominates(const Import *big, const Import *small) {
  if (big->clocks != small->clocks && !array_dominates(big->clocks, small->clocks)) return false;
  for (Strength s = STRONG_CTA; s < SCOPES; s++) {
    const Clocks *more = big->fenced[s], *less = small->fenced[s];
    if (less && less != more && !(more && array_dominates(more, less))) return false;
  }
  return true;
}

static bool dominates(const Clocks *big, const Clocks *small) {
  if (big == small) return true;
  if (small->import_count > big->import_count || !array_dominates(big, small)) return false;
  for (int i = 0; i < small->import_count; i++) {
    const Import *import = find_import(big, small->imports[i].cluster);
    if (!import || !import_dominates(import, &small->imports[i])) return false;
  }
  for (Strength s = STRONG_CTA; s < SCOPES; s++)
    if (small->observed[s] && !(big->observed[s] && dominates(big->observed[s], small->observed[s]))) return false;
  return true;
}

// Drops what was only observed: causality order takes one step of the observation order, and no second one.
static Clocks *without_observed(Clocks *clocks) {
  bool any = false;
  for (Strength s = STRONG_CTA; s < SCOPES; s++) any |= clocks->observed[s] != NULL;
  if (!any) {
    clocks_retain(clocks);
    return clocks;
  }
  Clocks *copy = clocks_of(clocks->cluster, clocks->count, clocks->planes, clocks->usage);
  clocks_merge_array(copy, clocks);
  for (int i = 0; i < clocks->import_count; i++) clocks_merge_import(copy, &clocks->imports[i]);
  return copy;
}

void clocks_add_observed(Clocks *into, Strength scope, Clocks *more) {
  Clocks **held = &into->observed[scope];
  if (!more || *held == more || (*held && dominates(*held, more))) return;
  Clocks *all = without_observed(more);
  if (*held && !dominates(all, *held)) {
    Clocks *both = clocks_of(all->cluster, all->count, all->planes, all->usage);
    clocks_merge(both, all);
    clocks_merge(both, *held);
    clocks_replace(&all, both);
  }
  clocks_replace(held, all);
}

// Adds everything that `from` knows to `into`, which has no other holder yet; of another cluster's what it hands on.
void clocks_merge(Clocks *into, Clocks *from) {
  if (from->cluster != into->cluster) {
    merge_foreign(into, from);
    return;
  }
  clocks_merge_array(into, from);
  for (Strength s = STRONG_CTA; s < SCOPES; s++) clocks_add_observed(into, s, from->observed[s]);
  for (int i = 0; i < from->import_count; i++) clocks_merge_import(into, &from->imports[i]);
}

// A new reference to what a and b know together.
Clocks *clocks_joined(const CheckCluster *cluster, Clocks *a, Clocks *b) {
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
  if (a) clocks_merge(joined, a);
  clocks_merge(joined, b);
  return joined;
}

// Makes *holder a vector that has no other holder.
void clocks_make_own(const CheckCluster *cluster, Clocks **holder) {
  if (*holder && atomic_load_explicit(&(*holder)->references, memory_order_acquire) == 1) return;
  Clocks *copy = clocks_new(cluster);
  if (*holder) clocks_merge(copy, *holder);
  clocks_replace(holder, copy);
}

void clocks_join(const CheckCluster *cluster, Clocks **holder, Clocks *more) {
  clocks_replace(holder, clocks_joined(cluster, *holder, more));
}

Clocks *clocks_common(const CheckCluster *cluster, Clocks *const *holders, int count) {
  Clocks *common = clocks_new(cluster);
  clocks_merge_array(common, holders[0]);
  for (int h = 1; h < count; h++)
    for (int i = 0; i < common->planes * common->count; i += STEP)
      for (int j = 0; j < STEP; j++)
        common->clock[i + j] = earlier_clock(common->clock[i + j], holders[h]->clock[i + j]);
  return common;
}

void clocks_add_agent(CheckCluster *cluster, Clocks **joined, uint32_t agent, uint32_t clock) {
  clocks_make_own(cluster, joined);
  if ((*joined)->clock[agent] < clock) (*joined)->clock[agent] = clock;
}

// ---- what fences cover ----

// Makes the plane of an import cover all that is known.
static void cover_import(Import *import, ClockPlane which) {
  if (which != CLOCK_VISIBLE) {
    Clocks **fenced = &import->fenced[scope_of_plane(which)];
    clocks_retain(import->clocks);
    clocks_replace(fenced, import->clocks);
  } else if (!plane_covers(import->clocks, which)) {
    const Clocks *known = import->clocks;
    Clocks *visible = clocks_of(known->cluster, known->count, known->planes, known->usage);
    clocks_merge_array(visible, known);
    copy_plane(visible, CLOCK_VISIBLE, CLOCK_KNOWN);
    clocks_replace(&import->clocks, visible);
  }
}

static bool import_covers(const Import *import, ClockPlane which) {
  return which == CLOCK_VISIBLE ? plane_covers(import->clocks, which)
                                : import->fenced[scope_of_plane(which)] == import->clocks;
}

// Whether the plane covers all that is known, of other clusters too.
bool clocks_covered(Clocks *clocks, ClockPlane which) {
  for (int i = 0; i < clocks->import_count; i++)
    if (!import_covers(&clocks->imports[i], which)) return false;
  return plane_covers(clocks, which);
}

void clocks_cover(Clocks *clocks, ClockPlane which) {
  copy_plane(clocks, which, CLOCK_KNOWN);
  for (int i = 0; i < clocks->import_count; i++) cover_import(&clocks->imports[i], which);
}

// A copy of clocks, without imports, that knows no more than what a plane of it covers.
static Clocks *narrowed(const Clocks *clocks, ClockPlane to) {
  Clocks *copy = clocks_of(clocks->cluster, clocks->count, clocks->planes, clocks->usage);
  memcpy(copy->clock, clocks->clock, clocks_size(clocks->count, clocks->planes) - sizeof(Clocks));
  copy_plane(copy, CLOCK_KNOWN, to);
  for (int p = CLOCK_VISIBLE; p < clocks->planes; p++) {
    uint32_t *part = clocks_plane(copy, (ClockPlane)p);
    for (int i = 0; i < copy->count; i += STEP)
      for (int j = 0; j < STEP; j++) part[i + j] = earlier_clock(part[i + j], copy->clock[i + j]);
  }
  return copy;
}

// Whether no fence has covered anything of it.
static bool is_unfenced(const Clocks *clocks, ClockPlane fence) {
  const uint32_t *fenced = clocks->clock + (int)fence * clocks->count;
  uint32_t any = 0;
  for (int i = 0; i < clocks->count; i++) any |= fenced[i];
  for (int i = 0; i < clocks->import_count; i++) any |= clocks->imports[i].fenced[scope_of_plane(fence)] != NULL;
  return !any;
}

// What a relaxed store by the lane hands on, what the last fence covered, without what it has done itself: a new
// reference, NULL for nothing.
Clocks *clocks_fenced_part(const Clocks *known, ClockPlane fence) {
  if (!known || is_unfenced(known, fence)) return NULL;
  Clocks *part = narrowed(known, fence);
  Strength scope = scope_of_plane(fence);
  for (int i = 0; i < known->import_count; i++) {
    Import import = known->imports[i];
    if (!import.fenced[scope]) continue;
    import.clocks = import.fenced[scope];
    for (Strength s = STRONG_CTA; s < scope; s++) import.fenced[s] = import.clocks;
    clocks_merge_import(part, &import);
  }
  return part;
}
