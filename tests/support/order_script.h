// Scripts: what a few threads do to memory and to each other, one event after the other. The model (order_model.h) and
// the race check (order_machine.h) both follow them, and test_order.c compares what they find.
#pragma once

#include "emulator/check/sync_table.h"
#include "emulator/check/clocks.h"

typedef enum Action {
  LOAD,          // weak, by the lanes of mask, each `stride` bytes behind the lane before
  STORE,         // the same, of `value`; with `differs` each lane stores another one
  STRONG_LOAD,   // with an order and a scope
  STRONG_STORE,  // the same
  ATOMIC,        // the same: an exchange
  FENCE,         // fence.acq_rel of the scope
  PROXY_FENCE,   // fence.proxy.async
  WARP_BARRIER,  // of the lanes of mask
  BARRIER,       // of the warps whose bits are set in `warps`
  ARRIVE,        // at the cluster's mbarrier `name`, which is one of block name % blocks; perhaps .relaxed
  WAIT,          // until all arrivals so far have come there; perhaps .relaxed
  BEGIN,         // the operation `name`: it reads, or writes, or both; a collective one is by all lanes of mask
  AWAIT,         // its lanes wait for the operation `name`
  COMPLETE,      // the operation `name` arrives at the mbarrier `at`
  ACTIONS
} Action;

typedef struct Spot {
  int region;  // 0: global memory; else the shared memory of the grid's block region - 1
  int offset;
} Spot;

typedef struct Event {
  Action action;
  int warp;  // in the grid
  Mask mask;
  Spot spot, to;  // to: what an operation writes
  int size, stride;
  MemoryOrder order;
  Strength scope;  // of an operation: how strong its write is
  int name, at;
  uint32_t warps;
  uint8_t value;  // of each byte
  bool differs, relaxed;
  bool reads, writes, proxy, collective;  // of an operation
} Event;

enum { SCRIPT_EVENTS = 48, SCRIPT_BLOCKS = 4, SCRIPT_WARPS = 8, SCRIPT_NAMES = 2, SCRIPT_BYTES = 1600 };
enum { SCRIPT_THREADS = SCRIPT_WARPS * LANES, SCRIPT_REGIONS = 1 + SCRIPT_BLOCKS };

typedef struct Script {
  int clusters, blocks, warps;  // of the grid, of a cluster, of a block
  Mask lanes;                   // of each warp that do anything
  int count;
  Event events[SCRIPT_EVENTS];
} Script;

static inline int block_of_warp(const Script *script, int warp) { return warp / script->warps; }
static inline int cluster_of_warp(const Script *script, int warp) { return warp / script->warps / script->blocks; }
static inline int lane_offset(const Event *event, int lane) {
  return event->spot.offset + (lane - __builtin_ctz(event->mask)) * event->stride;
}
static inline uint8_t lane_value(const Event *event, int lane) {
  return (uint8_t)(event->value + (event->differs ? lane : 0));
}

// How two accesses of a byte stand to each other.
typedef enum Verdict {
  FINE,
  RACE,    // nothing orders them, and they are not both strong
  EQUAL,   // the same, but both are plain stores of the same bytes: a formal finding
  UNSEEN,  // the later one is by the async proxy and may not see the other, a write
} Verdict;

// The first access of a script that stands badly to another one.
typedef struct Finding {
  Verdict verdict;
  int event, thread;
  Spot byte;
  bool may_be_missed;
} Finding;

typedef struct Model Model;  // order_model.h

// A random script, which ends with the first access that the model finds. The model has followed it then. FINE: it has
// found nothing.
void random_script(Script *script, Model *model, Finding *finding, uint64_t seed);
void script_print(const Script *script);
