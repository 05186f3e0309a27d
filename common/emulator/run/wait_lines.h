// The lines of a report on threads that wait: where and for what, who has come, who would come, and who has exited.
#pragma once

#include "waiters.h"

enum { MOST_LINES = 20 };

typedef struct Lines {
  char text[MOST_LINES * 400];  // each line ends with a newline
  size_t used;
  int count, left_out;
} Lines;

void describe_waits(const WaiterList *list, Lines *lines);

// ---- parts of them ----

WarpSet waiter_warps(const Waiter *waiter);
// "warps 0 to 3", with the lanes where some of a warp's do something else; and "waits" or "wait", which goes with it.
void put_waiter(WaitText *text, const Waiter *waiter);
const char *waiter_verb(const Waiter *waiter);
// The one word for a set of one warp, else the other.
const char *verb(const WarpSet *set, const char *one, const char *several);
// "barrier 3", "the mbarrier at 0x600"
void put_target(WaitText *text, const Waiter *waiter);
// What a warp polls in global memory, what it finds, and who has stored that; nothing when that is not known.
void put_memory(WaitText *text, const Cluster *cluster, const Warp *warp);
