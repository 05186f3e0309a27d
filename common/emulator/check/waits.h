// The text of a deadlock's report: which warps wait where, and for what.
#pragma once

#include "../warp/machine.h"

typedef struct WaitList {
  char text[HAZARD_DETAIL];
  size_t used;
  int left_out;  // entries that the text has no room for
} WaitList;

// Adds "warps 4 to 7 at line 48 (...)": some warps of warp's block, a bit each, the lanes of each that wait, at which
// instruction, and for what.
void waits_add(WaitList *list, const Warp *warp, uint32_t warps, Mask lanes, const Inst *inst, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
// The whole text, with the warps that have exited, and how many entries it has no room for.
const char *waits_text(WaitList *list, const Cluster *cluster);
