// Loads from shared memory that may still be under way when their thread hands the memory on.
//
// A barrier or an arrival orders what comes after it with what stands before it in the generic proxy. For the async
// proxy that takes a fence.proxy.async (PTX ISA 8.6), before the memory is handed on or before the copy; or a load that
// is over, for its thread has used the value or executed a fence. An H200 lets a bulk copy overwrite what loads have
// not read yet, although their threads have met at a barrier with the one that copies (tests/rules, "release"). Loads
// of one warp end in their order.
#pragma once

#include "../warp/machine.h"

// A load whose value may be used behind an instruction that hands memory on: memory/late_loads.c finds them.
typedef struct LateLoad {
  uint32_t *handovers;  // such instructions between it and a use
  int handover_count;
} LateLoad;

// In the place of the execute function of a late load, and of instructions that use the value of late loads.
typedef struct Watch {
  const LateLoad *load;  // that it is, or NULL
  const LateLoad **uses;
  int use_count;
  Execute *execute;
} Watch;

static inline bool is_late_load(const Program *program, uint32_t pc) {
  const Watch *watch = program->watches ? program->watches[pc] : NULL;
  return watch && watch->load;
}

// The lanes begin the load, or have waited for it and for all before it.
void flights_begin(Warp *warp, const LateLoad *load, Mask lanes);
void flights_end(Warp *warp, const LateLoad *load);
// All that the warp has begun is over: a fence.
void flights_end_all(Warp *warp);
// Up to which of the lane's clocks its loads are over, at the instruction that the warp executes.
uint32_t flights_ended(const Warp *warp, int lane);
void flights_free(struct Flights *flights);
