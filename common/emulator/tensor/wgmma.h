// wgmma's hold on registers: which ones an instruction in flight still uses, and which were written since wgmma.fence.
#pragma once

#include "../warp/decoder.h"

typedef struct WgmmaState WgmmaState;

// Called after a program is decoded: finds the registers that wgmma uses, and marks the instructions that touch them.
void wgmma_watch_program(Program *program);
// Called before a marked instruction executes. False when the instruction is a mov of accumulators in flight, and is done:
// it only gives them another name.
bool wgmma_touch(Warp *warp, const Inst *inst, Mask mask);
// The last lanes of a warp exit: reports a wgmma that others of its warpgroup have executed and it has not.
void wgmma_check_exit(const Warp *warp);
// Nothing in the cluster moves: when a warp waits for a wgmma that others of its warpgroup never execute, reports that, and
// returns true.
bool wgmma_explain_deadlock(const Cluster *cluster);
void wgmma_state_free(WgmmaState *state);
