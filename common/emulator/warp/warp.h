// The groups of a warp's lanes, as instructions move, stop and release them.
#pragma once

#include "machine.h"

void warp_start(Warp *warp, uint32_t pc);
// Whether some lane can execute.
bool warp_ready(const Warp *warp);
// The running group polled in vain: nothing it could do helps until something in the cluster changes.
void warp_idle(Warp *warp);
// Polled: an instruction of the running group has found this, at the address its first lane has. Idle, when it found
// the same before and nothing has changed.
void warp_poll(Warp *warp, const Inst *inst, uint64_t address, uint64_t found);
// The same in global memory. When it has found something new, clusters that wait may find it too, and do so before this
// one goes on: else they would learn at once of all that it does until it waits next, and a barrier missing there would
// not show.
void warp_poll_global(Warp *warp, const Inst *inst, uint64_t address, uint64_t found);
// Lanes of mask, which are all or some of the running group, go to pc.
void warp_jump(Warp *warp, Mask mask, uint32_t pc);
// Lanes of mask leave the running group: they exit, or warp_hold has put them into another one.
void warp_leave(Warp *warp, Mask mask);
// The lanes of mask, at inst, which waits for something: they come back to it at the warp's next turn.
void warp_retry(Warp *warp, const Inst *inst, Mask mask);
// Lanes of mask stop at the current instruction, as a group of their own in that state.
Group *warp_hold(Warp *warp, Mask mask, GroupState state);
// The same at a barrier, until warp_release.
void warp_wait(Warp *warp, Mask mask, int barrier);
void warp_release(Warp *warp, int barrier);
// Lanes of a group that has stopped go on behind the instruction: it has been executed for them.
void warp_resume(Warp *warp, int group, Mask lanes);
// What the warp's host thread has counted of the instruction.
InstCounts *warp_counts(const Warp *warp, const Inst *inst);
// What is under way while the warp executes an instruction: a bit for each Meanwhile.
static inline unsigned warp_meanwhile(const Warp *warp, const Cluster *cluster) {
  return warp->meanwhile | (unsigned)(cluster->loads > 0) << MEANWHILE_LOAD;
}
// Counts an instruction (1), or that it was none (-1), under each of these kinds, and the cluster's pending loads.
void counts_add_meanwhile(InstCounts *counts, const Cluster *cluster, unsigned kinds, int number);
// A wgmma or a copy of the warp's own is pending from here on, or none is any more; the same of a turn.
static inline void warp_set_meanwhile(Warp *warp, Meanwhile kind, bool is_under_way) {
  warp->meanwhile = (uint8_t)((warp->meanwhile & ~(1u << kind)) | (unsigned)is_under_way << kind);
}
