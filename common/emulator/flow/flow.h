// What the scheduler and other rooms ask of branches, barriers and clusters.
#pragma once

#include "../warp/decoder.h"
#include "../warp/machine.h"

// ---- the barriers of a block, when threads exit or cannot go on: barrier.c ----

// Completes the barriers that wait for no further thread: threads that have exited are not expected.
void barriers_after_exit(Block *block);
// The block has ended, or stands still: now it is known who uses which barrier, and what was reported of them names the
// cause. Warps that met at different places are noted when something in the block was a fault.
void barriers_check_end(Block *block);

// What to do about a warp that arrives twice in one phase, and about a count that is not that of the users.
extern const char *const barrier_wait_between, *const barrier_count_users;

// ---- a cluster's barrier and its blocks' shared memory, when threads exit: cluster.c ----

// Completes barrier.cluster when it waits for no further thread.
void cluster_barrier_after_exit(Cluster *cluster);
// Lanes of the warp exit: other blocks of the cluster must be done with the block's shared memory.
void cluster_check_exit(Warp *warp, Mask mask);

// ---- calls that a warp leaves behind: control.c ----

void call_stacks_free(Warp *warp);

// ---- threads exit ----

// Lanes of the running group exit.
void warp_exit(Warp *warp, Mask mask);

// ---- functions that the system provides to kernels, printf, assert, malloc and free: system_call.c ----

// Decodes a call of a function without a body; an error when there is none of that name.
DecodeResult system_call_decode(Decoder *decoder, const PtxInstruction *source, const char *name,
                                const PtxOperand *results, const PtxOperand *arguments, Inst *inst);
