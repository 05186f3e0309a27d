// For the launches of stages 09 to 10: which heads are worked on together.
#pragma once

#include "harness/stage.h"

static int minimum(int a, int b) { return a < b ? a : b; }

// How many heads are worked on together: as many as keep their K and V in the L2 cache.
static int head_group(const Shape *shape, int heads) {
  long head_bytes = 4L * shape->seqlen * shape->head_dim, budget = (shape->seqlen <= 1024 ? 8L : 32L) << 20;
  int group = 1;
  while (group < heads && 2 * group * head_bytes <= budget) group *= 2;
  return minimum(group, heads);
}
