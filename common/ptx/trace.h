// Time stamps inside a kernel, for the timelines of `make trace-NN`.
//
//   trace_begin(CONSUMER);      once, before the warpgroup's first mark; or PRODUCER, or ALL for one that does both
//   trace(SOFTMAX, t);          from here on the warpgroup does the softmax of tile t, until its next mark
//   trace_done(COPY, t);        what trace(COPY, t) started in the background is known to be done
//   trace_end();                once, after the warpgroup's last phase
//
// A mark is one line of its own, and is reached by whole warps or by one thread that stands for its warpgroup. The
// warpgroup's first thread (threadIdx.x % 128 == 0) stores the clock; for all others a mark does nothing. So a phase is
// what the first warp does, and a producer must be that warp's first lane. Instructions are marked when they are
// issued: a phase that starts work and does not wait for it is short, and trace_done says how long the work took.
//
// Each (tile, phase) of a warpgroup has one place in a table: mark it once. Tiles are counted from 0 through all that
// the warpgroup does, and those from TRACE_TILES on are not recorded. Marks are independent of each other, and none
// waits.
//
// Without -DTRACE a mark is nothing: no instruction, no register (tests/test_trace.c compares the PTX). With it the
// module has a table, and a kernel that returns its address; common/harness/trace.c makes a CSV of it. The compiler
// moves nothing volatile past a mark, so it cannot mix the instructions of two phases as it otherwise does: the traced
// kernel is somewhat slower.
#pragma once

#include <stdint.h>

// The phases, and what they are called in the CSV. Some share a name: two waits in one tile need two places.
#define TRACE_PHASES(X)                                                                                                \
  X(COPY, "copy")            /* starts the copies of a tile */                                                         \
  X(WAIT_K, "load wait")     /* until a tile has landed: K, or K and V at once */                                      \
  X(WAIT_V, "load wait")     /* until V has */                                                                         \
  X(WAIT_FREE, "free wait")  /* a producer: until its consumers have left a place for the tile */                      \
  X(WAIT_TURN, "turn wait")  /* until another warpgroup lets this one go on: ping-pong */                              \
  X(WAIT_QK, "wgmma wait")   /* until scores that were started before are there */                                     \
  X(WAIT_PV, "wgmma wait")   /* until an output is, and V has been read */                                             \
  X(BARRIER, "barrier wait") /* until all threads of the block have come here */                                       \
  X(QK, "QK")                                                                                                          \
  X(SOFTMAX, "softmax")                                                                                                \
  X(SOFTMAX_REST, "softmax") /* behind a wait that stands in the middle of it */                                       \
  X(RESCALE, "rescale")      /* of O, where it is a step of its own */                                                 \
  X(PV, "PV")                                                                                                          \
  X(STORE, "store")

#define TRACE_NAME(name, text) TRACE_##name,
enum TracePhase { TRACE_PHASES(TRACE_NAME) TRACE_PHASE_COUNT };
#undef TRACE_NAME

enum TraceRole { TRACE_NO_ROLE, TRACE_ALL, TRACE_PRODUCER, TRACE_CONSUMER };
enum { TRACE_BLOCKS = 512, TRACE_WARPGROUPS = 5, TRACE_TILES = 64 };  // what the table has room for

// What a warpgroup has recorded. All zeros: nothing, because the kernel has no such block or warpgroup.
typedef struct TraceWarpgroup {
  uint64_t begin_clock, end_clock;                // cycles of the SM; each SM counts its own
  uint64_t begin_time, end_time;                  // ns, the same for all SMs but coarse: they show how long a cycle is
  uint32_t role, sm;                              // TraceRole; the SM it ran on
  uint32_t mark[TRACE_TILES][TRACE_PHASE_COUNT];  // lower half of the clock when the phase began, odd; 0: it did not
  uint32_t done[TRACE_TILES][TRACE_PHASE_COUNT];  // the same when its work in the background was known to be done
} TraceWarpgroup;

#if defined TRACE && defined __CUDACC__

__device__ TraceWarpgroup trace_table[TRACE_BLOCKS][TRACE_WARPGROUPS];

extern "C" __global__ void trace_where(TraceWarpgroup **table) { *table = trace_table[0]; }

// The caller's place in the table, NULL for a thread that stores nothing. Volatile instructions read the thread's
// index, so it is computed again for each mark. A kernel that needs all its registers has none to keep it in.
__device__ inline TraceWarpgroup *trace_place() {
  unsigned thread, x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
  unsigned block = x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), warpgroup = thread / 128;
  bool stores = thread % 128 == 0 && block < TRACE_BLOCKS && warpgroup < TRACE_WARPGROUPS;
  return stores ? &trace_table[block][warpgroup] : nullptr;
}

// The clobber keeps accesses of memory, and other volatile instructions, on their side of the mark. PTX ISA 10.22-24,
// "%clock", "%clock64", "%globaltimer".
__device__ inline uint32_t trace_clock() {
  uint32_t clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock)::"memory");
  return clock | 1;
}

__device__ inline void trace_now(uint64_t &clock, uint64_t &time) {
  asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(clock), "=l"(time)::"memory");
}

__device__ inline void trace_first(TraceRole role) {
  if (TraceWarpgroup *place = trace_place()) {
    asm volatile("mov.u32 %0, %%smid;" : "=r"(place->sm));
    place->role = role;
    trace_now(place->begin_clock, place->begin_time);
  }
}

__device__ inline void trace_mark(TracePhase phase, int tile) {
  if (TraceWarpgroup *place = trace_place())
    if (tile < TRACE_TILES) place->mark[tile][phase] = trace_clock();
}

__device__ inline void trace_mark_done(TracePhase phase, int tile) {
  if (TraceWarpgroup *place = trace_place())
    if (tile < TRACE_TILES) place->done[tile][phase] = trace_clock();
}

__device__ inline void trace_last() {
  if (TraceWarpgroup *place = trace_place()) trace_now(place->end_clock, place->end_time);
}

#define trace_begin(role) trace_first(TRACE_##role)
#define trace(phase, tile) trace_mark(TRACE_##phase, tile)
#define trace_done(phase, tile) trace_mark_done(TRACE_##phase, tile)
#define trace_end() trace_last()

#else

#define trace_begin(role) ((void)0)
#define trace(phase, tile) ((void)0)
#define trace_done(phase, tile) ((void)0)
#define trace_end() ((void)0)

#endif
