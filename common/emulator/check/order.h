// How synchronisation passes on what threads know: releases, acquires and fences.
#pragma once

#include "clocks.h"
#include "threads.h"

// Adds to *joined what the lanes of mask know and have done, then advances their clocks: the release half of a barrier.
void race_release(CheckWarp *warp, Mask mask, Clocks **joined);
// The lanes of mask learn what joined holds (which may be NULL: nothing): the acquire half.
void race_acquire(CheckWarp *warp, Mask mask, Clocks *joined);
// The relaxed halves: what the lanes knew at their last fence is handed on, what they read counts from their next
// fence. scope: of the fence, at least.
void race_release_relaxed(CheckWarp *warp, Mask mask, Clocks **joined, Strength scope);
void race_acquire_relaxed(CheckWarp *warp, Mask mask, Clocks *joined);
// The release half of an arrival whose scope leaves out the threads that wait. It orders nothing. What the lanes know
// and have done goes into CLOCK_ENDED of *joined: operations that they have waited for are over, and loads nearly
// (race.c, ended). shown: what race_show has given, NULL for nothing: that, too.
void race_release_narrow(CheckWarp *warp, Mask mask, Clocks *shown, Clocks **joined);
// What the lanes know and have done when they execute an instruction together, in CLOCK_ENDED of a new reference: it
// orders nothing.
Clocks *race_show(CheckWarp *warp, Mask mask);
// The lanes of the warp that have the lane's clock and know the same, the lane itself among them.
Mask race_alike(CheckWarp *warp, int lane);
// A new reference to what a lane knows, with what its fences have covered of its own.
Clocks *race_lane_clocks(CheckWarp *warp, int lane);
// Whether the lanes of mask know of all that joined holds; what their own warp did they know.
bool race_knows(const CheckWarp *warp, Mask mask, const Clocks *joined);
// Both, among the lanes of mask: bar.warp.sync.
void race_warp_sync(CheckWarp *warp, Mask mask);
// What the lanes do from here on has another clock.
void race_advance(CheckWarp *warp, Mask mask);
// fence / membar by the lanes of mask.
void race_fence(CheckWarp *warp, Mask mask, Strength scope);
// fence.sc, which membar is too: it also acquires what strong loads of other threads have read, if they come before it.
// Of a writer's fence.sc and this one the writer's is the first in the Fence-SC order: else the load would come before
// the store whose value it has read. And a fence.sc synchronises with those that follow it there (PTX ISA 8.9.3). Other
// fences do so only with loads of their own thread.
void race_fence_sc(CheckWarp *warp, Mask mask, Strength scope);
// fence.proxy.async: what the lanes know becomes visible to the async proxy.
void race_proxy_fence(CheckWarp *warp, Mask mask);
// The lanes learn that the agent has done all up to the clock.
void race_learn_agent(CheckWarp *warp, Mask mask, uint32_t agent, uint32_t clock);

// ---- for what strong stores release: sync_table.c ----

// What one thread knows, itself included: a release. What it has done itself, as far as a fence has covered it.
Clocks *clocks_snapshot(CheckWarp *warp, int lane);
void clocks_add_fenced(Clocks *into, const CheckWarp *warp, int lane, ClockPlane fence);

// Loads from shared memory that may still be under way when their thread hands the memory on.
//
// A barrier or an arrival orders what comes after it with what stands before it in the generic proxy. For the async
// proxy that takes a fence.proxy.async (PTX ISA 8.6), before the memory is handed on or before the copy; or a load that
// is over, for its thread has used the value or executed a fence. An H200 lets a bulk copy overwrite what loads have
// not read yet, although their threads have met at a barrier with the one that copies (tests/rules, "release"). Loads
// of one warp end in their order.

// A load whose value may be used behind an instruction that hands memory on: memory/late_loads.c finds them.
typedef struct LateLoad {
  uint32_t *handovers;  // such instructions between it and a use
  int handover_count;
} LateLoad;

// The lanes begin the load, or have waited for it and for all before it.
void flights_begin(CheckWarp *warp, const LateLoad *load, Mask lanes);
void flights_end(CheckWarp *warp, const LateLoad *load);
// All that the warp has begun is over: a fence.
void flights_end_all(CheckWarp *warp);
// Up to which of the lane's clocks its loads are over, at the instruction that the warp executes.
uint32_t flights_ended(const CheckWarp *warp, int lane);
void flights_free(struct Flights *flights);
