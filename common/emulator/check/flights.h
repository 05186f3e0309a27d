// Loads from shared memory that may still be under way when their thread hands the memory on.
//
// A barrier or an arrival orders what comes after it with what stands before it in the generic proxy. For the async
// proxy that takes a fence.proxy.async (PTX ISA 8.6), before the memory is handed on or before the copy; or a load that
// is over, for its thread has used the value or executed a fence. An H200 lets a bulk copy overwrite what loads have
// not read yet, although their threads have met at a barrier with the one that copies (tests/rules, "release"). Loads
// of one warp end in their order.
#pragma once

#include "threads.h"

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
