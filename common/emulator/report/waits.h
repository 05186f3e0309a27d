// Words of a report on threads that wait.
#pragma once

#include "signals.h"

typedef struct WaitText {
  char text[HAZARD_DETAIL];  // cut off if it is longer
  size_t used;
} WaitText;

void text_put(WaitText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
// "warp 3", "warps 4 to 7", "warps 0, 2 to 5": a bit each.
void text_warps(WaitText *text, uint32_t warps);
// "line 5", and "line 5, called at 17 from 24" where a function of the kernel's own file has it: the two calls that are
// next.
void text_line(WaitText *text, const Launch *launch, const Inst *inst);

// Warps of a cluster: of each block, a bit for each of its warps.
enum { MOST_BLOCKS = 16 };  // of a cluster

typedef struct WarpSet {
  uint32_t warps[MOST_BLOCKS];
} WarpSet;

void set_add(WarpSet *set, const Warp *warp);
bool set_has(const WarpSet *set, const Warp *warp);
bool set_is_empty(const WarpSet *set);
int set_count(const WarpSet *set);
// Those of a that are not in b.
WarpSet set_without(const WarpSet *a, const WarpSet *b);
// Whether a has all that b has.
bool set_contains(const WarpSet *a, const WarpSet *b);
// "warps 0 to 3", and in a cluster of several blocks "block 1's warps 0 to 3 and block 0's warp 4".
void text_set(WaitText *text, const Cluster *cluster, const WarpSet *set);
