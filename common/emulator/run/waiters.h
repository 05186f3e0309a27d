// Who waits for what in a cluster that stands still, and who could end that.
#pragma once

#include "../async/mbarrier_object.h"
#include "../report/waits.h"
#include "../warp/machine.h"

typedef enum WaitKind {
  WAITS_AT_BARRIER,  // of the block or the cluster
  WAITS_AT_MBARRIER,
  WAITS_FOR_LANES,   // of its warp, at an .aligned or .sync instruction
  WAITS_FOR_MEMORY,  // polls
} WaitKind;

// What makes a wait hopeless.
typedef enum WaitEnd {
  END_UNKNOWN,    // of memory and lanes; or a warp could not be followed
  END_BY_OTHERS,  // other warps would signal, if they went on
  END_ALL_CAME,   // all that would signal have done so in this phase
  END_BY_NONE,    // no warp would signal
} WaitEnd;

// Warps of a block in which the same lanes wait for the same.
typedef struct Waiter {
  WaitKind kind;
  const Warp *warp;  // the first
  uint32_t warps;
  Mask lanes;
  const Inst *inst;
  Target target;
  int barrier;
  const Mbarrier *mbarrier;
  WaitEnd end;
  WarpSet came;    // warps that have signalled in this phase
  WarpSet before;  // warps that have ever signalled
  WarpSet after;   // warps that would signal, if they went on
} Waiter;

typedef struct WaiterList {
  Cluster *cluster;
  Waiter *items;
  int count, capacity;
  Foresight foresight;
} WaiterList;

// Finds all. The cluster's warps cannot go on after that.
WaiterList waiters_find(Cluster *cluster);
void waiters_free(WaiterList *list);
// What the warps of the cluster have done at a waiter's barrier; NULL: nothing.
const Use *waiter_uses(const Waiter *waiter);
// The waiter that one of the warps is part of, NULL when none is.
const Waiter *waiter_among(const WaiterList *list, const WarpSet *warps);

// ---- a line for each waiter ----

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

// ---- what other warps would still do ----

// Follows each warp of the cluster on, past every wait, to its end or for some thousand instructions, and notes what it
// would signal. Nothing that others see is changed, but the registers of the warps are: the launch must end after that.
// items is to be freed.
Foresight foresee_signals(Cluster *cluster);

// ---- stuck.c ----

// Reports of a cluster whose threads cannot go on.

// Every thread waits, and none polls.
void report_stuck(Cluster *cluster);
// How many blocks of a grid wait, have ended and have not started.
typedef struct Standing {
  uint64_t waiting, ended, not_started;
} Standing;

// Threads poll memory, and no cluster that could change it goes on; blocks that have not started find no room while
// these wait.
void report_spinning(Cluster *cluster, Standing blocks);
