// Vectors of clocks, for the files that pass them on. clocks.h says what they mean.
#pragma once

#include "clocks.h"

static inline uint32_t *clocks_plane(Clocks *clocks, ClockPlane which) {
  return clocks->clock + (size_t)which * (size_t)clocks->count;
}

static inline bool has_several_blocks(const Cluster *cluster) { return cluster->block_count > 1; }

static inline uint32_t later_clock(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint32_t earlier_clock(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Lanes of the warp may know more than they did, or have another clock.
static inline void forget_alike(Warp *warp) { warp->alike[0] = warp->alike[1] = 0; }

static inline void clocks_replace(Clocks **holder, Clocks *with) {
  clocks_release(*holder);
  *holder = with;
}

// With nothing known.
Clocks *clocks_new(const Cluster *cluster);
// Adds an array of clocks, without imports, in those planes that both have.
void clocks_merge_array(Clocks *restrict into, const Clocks *restrict from);
void clocks_merge_import(Clocks *into, const Import *from);
// Adds everything that `from` knows to `into`, which has no other holder yet.
void clocks_merge(Clocks *into, Clocks *from);
// As another cluster has it: what a plane covers of what is known of the clocks' own cluster. NULL for nothing.
Clocks *clocks_as_import(const Clocks *from, ClockPlane covered);
// A new reference to what a and b know together.
Clocks *clocks_joined(const Cluster *cluster, Clocks *a, Clocks *b);
// Makes *holder a vector that has no other holder.
void clocks_make_own(const Cluster *cluster, Clocks **holder);
// Whether the plane covers all that is known, of other clusters too; makes it cover that, of clocks without other holders.
bool clocks_covered(Clocks *clocks, ClockPlane which);
void clocks_cover(Clocks *clocks, ClockPlane which);
// What a relaxed store hands on of what is known, that is, what the last fence has covered: a new reference, NULL for nothing.
Clocks *clocks_fenced_part(const Clocks *known, ClockPlane fence);

// What one thread knows, itself included: a release, order.c. What it has done itself, as far as a fence has covered it.
Clocks *clocks_snapshot(Warp *warp, int lane);
void clocks_add_fenced(Clocks *into, const Warp *warp, int lane, ClockPlane fence);
