// wgmma as the four warps of a warpgroup execute it: the n-th of one warp is the n-th of the others, a turn.
// PTX ISA 9.7.16.
#pragma once

#include "../async/async.h"
#include "descriptor.h"
#include "../warp/machine.h"

enum { WARPGROUP_WARPS = 4, WARPGROUP_TURNS = 256 };

typedef struct WarpgroupTurn {
  const Inst *inst;
  uint64_t bits[2];              // descriptors of A and B, of the whole matrices: the same in all warps
  MatrixDescriptor operands[2];  // what they say
  AsyncIssue issue;              // by the group's first warp, for all: the race check's
  uint32_t agent, clock;         // what it is there, once all four have executed it
} WarpgroupTurn;

// The last turns of a warpgroup.
typedef struct Warpgroup {
  uint32_t newest;  // that any of its warps has executed, from 1
  WarpgroupTurn turns[WARPGROUP_TURNS];
} Warpgroup;

Warp *warpgroup_warp(const Warp *warp, int index);
// The turn of a number, which the warp is about to execute; *first: before the others. NULL after a report: it is
// another instruction than theirs, or there is no warpgroup.
WarpgroupTurn *warpgroup_turn(Warp *warp, const Inst *inst, uint32_t number, bool *first);
// The turn of a number that was executed.
WarpgroupTurn *warpgroup_past_turn(const Warp *warp, uint32_t number);
// Whether all four warps have executed a turn.
bool warpgroup_all_have(const Warp *warp, uint32_t number);
// Warps that wait until this one has executed a turn look again.
void warpgroup_wake(const Warp *warp);
// Performs what the four warps have issued up to a number: turn by turn, because they share B.
void warpgroup_finish(Warp *warp, uint32_t number);
// The lanes of mask learn that the turns from the one after `after` up to `number` are complete, in all four warps.
void warpgroup_learn(Warp *warp, Mask mask, uint32_t after, uint32_t number);

// The last lanes of a warp exit: reports a wgmma that others of its warpgroup have executed and it has not.
void wgmma_check_exit(const Warp *warp);
// Nothing in the cluster moves: a warp that another one of its warpgroup waits for in wgmma, NULL if there is none; and
// the report of that.
const Warp *wgmma_missing(const Cluster *cluster, const Warp **waits);
void wgmma_explain_deadlock(const Warp *missing, const Warp *waits);

// ---- setmaxnreg.c ----

// What setmaxnreg.c is asked by the scheduler.

// The last lanes of a warp exit: reports a setmaxnreg that others of its warpgroup have executed and it has not.
void setmaxnreg_check_exit(const Warp *warp);
// Nothing in the cluster moves: when a warp waits for registers, reports the sum that does not fit, and returns true.
bool setmaxnreg_explain_deadlock(const Cluster *cluster);
