// The running machine: a launch is a grid of clusters, a cluster is one or more blocks, a block is warps, a warp is 32
// lanes. This header is what the families' execute functions and the scheduler share.
//
// It says what the machine's parts hold, and has in them what the race check keeps of each: `check`. What rooms above
// this one add (asynchronous operations, values that nothing defines) they own: here are only pointers to it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../check/threads.h"
#include "../host/host_memory.h"
#include "program.h"

struct Advice;
struct Unwaited;

typedef struct Block Block;
typedef struct Cluster Cluster;
typedef struct Launch Launch;
typedef struct Worker Worker;

// Where generic addresses point. Shared addresses inside a window are those of shared::cluster: the block's rank plus
// one above bit 24, or zero for the block's own; the hardware's layout differs, and no program may depend on it.
#define LOCAL_WINDOW 0x100000000000ull
#define SHARED_WINDOW 0x200000000000ull
#define PARAM_WINDOW 0x300000000000ull
#define FUNCTION_WINDOW 0x400000000000ull  // function addresses: the index in the module
#define GLOBAL_WINDOW 0x700000000000ull
#define WINDOW_MASK 0xffffffffull
// The first bytes of shared memory belong to the system, as on the hardware; so no variable has address 0.
#define SHARED_BASE 1024u
// Of these the last are for a program that asks for them by %reserved_smem_offset_1: cooperative_groups keeps the
// barriers of tiles of several warps in 288 bytes there.
#define RESERVED_SHARED 512u
#define SHARED_RANK_SHIFT 24

// Lanes of a warp that stand at the same instruction.
//
// Threads have their own program counters. Lanes at one pc form a group and execute together; a divergent branch splits
// a group, and groups that meet again merge. A group that reaches an instruction which needs more lanes than it has
// (.aligned: all of the warp; .sync: those of the member mask) waits there for them.
typedef enum GroupState { GROUP_READY, GROUP_CONVERGING, GROUP_BARRIER } GroupState;

typedef struct Group {
  Mask mask;
  uint32_t pc;
  GroupState state;
  int depth;        // of calls, of its deepest lane
  uint32_t visits;  // times it was chosen while the warp was divergent; ages it, so that no group starves
  int barrier;      // it waits at, when state is GROUP_BARRIER: one of the block's, or CLUSTER_BARRIER
} Group;

// What a strong read or an atomic found: when it finds the same again, and nothing has changed since, it polls in vain.
typedef struct Poll {
  const Inst *inst;
  uint64_t found;     // addresses and values, hashed
  uint64_t progress;  // the cluster's then
  uint64_t address;   // of the first lane
} Poll;

enum { POLLS = 4 };

// A warp's registers as setmaxnreg leaves them: setmaxnreg.c
typedef struct RegisterShare {
  int registers;     // a thread; what the launch gave while adjusted is 0
  int adjusted;      // setmaxnreg executed so far
  bool asked;        // it waits at one for registers
  const Inst *last;  // the last one executed, by which lane and at which clock of its
  int lane;
  uint32_t clock;
} RegisterShare;

struct Warp {
  uint8_t *registers;  // first: warp_registers() in program.h
  Mask carry;          // the condition code of add.cc, sub.cc and mad.cc: scalar/integer.c
  Block *block;
  int index;  // in its block
  CheckWarp check;
  Mask live;                // lanes that have not exited
  uint32_t left[LANES];     // of those that have: the block's phases then
  const Inst *exit;         // where the last of those did
  uint32_t fenced[LANES];   // the block's phases at each lane's last fence.proxy.async
  uint32_t pc;              // of the running group's next instruction
  bool yield;               // set by instructions that poll: another warp's turn
  uint64_t idle_since;      // Cluster.progress when it last polled in vain, plus one; 0 when it did not
  Poll polls[POLLS];        // strong reads and atomics, the latest of each instruction
  bool regroup;             // set by control instructions: the groups changed, choose again
  int current;              // index of the running group
  Group groups[LANES + 1];  // one more for a moment: lanes leave the running group before it is removed
  int group_count;
  Mask cluster_arrived;                 // lanes that have arrived at the cluster's barrier, in its present phase
  Mask cluster_waits;                   // lanes that have arrived there and not waited yet
  struct GroupQueue *groups_in_flight;  // GROUP_KINDS of them, or NULL: async.h
  struct WgmmaState *wgmma;             // wgmma_registers.h; NULL before its first use
  struct Undefined *undefined;          // undefined.h; NULL before the first such value
  bool has_undefined;                   // a register holds one now
  bool found_unwritten;                 // set by the checks: the load has read bytes that nothing has written
  bool rehearses;                       // an instruction is only tried: it reports nothing
  uint8_t meanwhile;                    // what is under way: a bit for each Meanwhile
  const Inst *waits_at;                 // the mbarrier wait that has just found its phase not over
  RegisterShare share;
  struct CallStack *calls;     // of each lane, or NULL: control.c
  uint8_t *local;              // LANES x local_size bytes, and as many bytes that say which were written
  struct Region *last_region;  // of a global access: the next one is usually in the same allocation
};

// A warp at an instruction.
typedef struct Meeting {
  struct Warp *warp;
  const Inst *inst;  // NULL: none
} Meeting;

// Arrivals by an instruction that might be counted in another phase.
typedef struct Unordered {
  const Inst *inst;
  bool again;    // the warp's own arrival was in the phase before
  int expected;  // threads
} Unordered;

typedef struct Barrier {
  int arrived;       // threads
  int expected;      // threads; 0: all of the block that have not exited; -1: no thread has arrived yet
  int reduce_count;  // bar.red: threads whose predicate was true
  bool reducing;
  struct Clocks *joined;  // what the arrived threads know, together
  const Inst *first;      // the instruction of the first arrival
  struct Clocks *former;  // `joined` of the phase before
  const Inst *former_first;
  int former_expected;
  bool passed_on;  // some threads only arrive: who waits here gets what those pass on
  // Of this phase the arrivals at the first and the last instruction in the program's order.
  Meeting least, most;
  uint32_t phase;    // from 0
  struct Use *uses;  // by the warps of the cluster: waits.h; NULL before the first
  int last_count;    // `expected` of the last arrival
  bool counts_differ;
  Unordered unordered[4];
  int unordered_count;
} Barrier;

enum { BARRIERS = 16, CLUSTER_BARRIER = BARRIERS, MAX_WARPGROUPS = 8 };

struct Block {
  Cluster *cluster;
  unsigned index[3];  // %ctaid
  int rank;           // in the cluster
  Warp *warps;
  int warp_count;
  int thread_count;
  int live_threads;
  Meeting met[2];         // warps that met at two places, the first time: barriers_check_end
  bool raced;             // an access of its threads was reported to conflict with another
  bool peers_have_begun;  // one of its threads has waited at the cluster's barrier, where all blocks had to come
  uint32_t phases;        // how often all its threads that had not exited have met at a barrier
  struct Region *shared;  // memory: region.h
  struct Clocks *ended;   // what its threads that have exited knew, in a cluster of several blocks
  // As Cluster has them: what relaxed arrivals hand on to the block alone.
  struct Clocks *barrier_joined, *barrier_completed;
  struct MapFences *map_fences;  // of tensor maps in global memory: tensor_map.h; NULL before the first
  Barrier barriers[BARRIERS];
  struct Warpgroup *warpgroups[MAX_WARPGROUPS];  // what its warpgroups have executed together: warpgroup.h
};

// How long nothing visible has happened in a cluster.
typedef struct Quiet {
  uint64_t since, progress;  // Cluster.steps and Cluster.progress at the last look
  uint64_t steps;            // instructions until the next
} Quiet;

struct Cluster {
  Launch *launch;
  Worker *worker;
  uint32_t id;  // in the grid, from 0
  Block *blocks;
  int block_count;
  CheckCluster check;
  struct AsyncEngine *async;        // async.h; NULL in a program without asynchronous operations
  struct MbarrierTable *mbarriers;  // mbarrier_object.h; the same
  int loads;                        // bulk and tensor loads into its shared memory that are pending
  // What arrivals at barrier.cluster hand on: in this phase, in the last.
  struct Clocks *barrier_joined, *barrier_completed;
  uint64_t random;    // state of the schedule's generator
  uint64_t steps;     // warp instructions executed
  int next_warp;      // round robin
  uint64_t progress;  // counts visible events: stores that changed memory, barriers completed, exits
  Quiet quiet;
  bool arrived_narrowly;  // at another block's mbarrier with the scope .cta, which hands on nothing
  struct Clocks *shown;   // of lanes that arrive at several mbarriers by one instruction, while they do: race_show
  struct Foresight *foresight;  // waits.h; NULL except while a hang is explained
  bool has_news;  // it has read something in global memory that others may wait for: their turn, before it goes on
};

// What can be under way while a warp executes something else: counters of overlap, notes/counters.md.
typedef enum Meanwhile {
  MEANWHILE_WGMMA,
  MEANWHILE_LOAD,
  MEANWHILE_TURN,
  MEANWHILE_HOLDING,
  MEANWHILE_KINDS
} Meanwhile;

// One instruction's counts, of one worker thread.
typedef struct InstCounts {
  uint64_t warps, threads;  // executed
  uint64_t enabled;         // of those threads, the ones whose guard was true
  uint64_t shared_requests, wavefronts, conflicts;
  uint64_t global_requests, sectors, bytes;
  uint64_t loop_loads, loop_wavefronts, loop_conflicts;  // loads of shared memory in an atomic operation's loop
  uint64_t cluster_requests, cluster_sectors;            // of another block's shared memory
  uint64_t local_requests, local_sectors, local_bytes;
  uint64_t flops;
  uint64_t shared_read, shared_written, global_read, global_written;  // bytes, by wgmma and asynchronous copies
  uint64_t bulk_sectors;                                              // that a bulk or tensor copy moves
  uint64_t under[MEANWHILE_KINDS];                                    // of `warps`, while that was under way
  uint64_t pending_loads;                                             // bulk ones of the cluster, at each of `warps`
  uint64_t failed_polls;                                              // of `warps`: the mbarrier was not ready
  uint64_t failed_polls_under_load;                                   // of these, while a load was under way
  uint64_t at_once;          // waits for an mbarrier or the cluster that ended at the first look
  uint64_t loads_in_flight;  // once each bulk load has started
  uint64_t registers;        // of the warp's threads once setmaxnreg has changed its share
} InstCounts;

struct Worker {
  Launch *launch;
  int number;                // of the host thread
  InstCounts *counts;        // one per instruction of the program
  _Alignas(64) Usage order;  // vector clocks and sets of reads; a cache line for each: they change often
};

struct Launch {
  Emulator *emulator;
  struct RegionTable *global;      // memory: region.h
  struct HazardList *hazard_list;  // hazard.h
  const struct Program *program;
  unsigned grid[3], block[3], cluster[3];
  bool explicit_cluster;
  bool cooperative;         // all its clusters are under way at a time
  uint64_t grid_workspace;  // address of what grid.sync() counts in, 0 unless cooperative
  size_t shared_size;       // bytes of a block, static and dynamic, without the system's
  size_t dynamic_shared;
  uint8_t *params;
  CheckLaunch check;
  // What a report says of an operation that somebody has not waited for; of the room of the operations.
  void (*advise_wait)(struct Advice *advice, const struct Unwaited *unwaited);
  _Atomic(const Inst *) noted_swizzle;  // the copy whose note on its swizzle stands for all: tensor_copy.c
  bool alone;                           // one host thread runs it
  uint64_t schedule;
  bool fair;                  // one instruction of each warp in turn
  struct StepRecord *record;  // report/steps.h; NULL: none
  uint64_t step_limit;
  uint8_t *undefined_reported;  // by instruction: that a value of it which nothing defines was used: undefined.h
  _Atomic bool stopped;         // by hazard_stop: no thread goes on
  _Atomic uint64_t steps;
  struct Queue *queue;       // of clusters: workers.c
  _Atomic uint32_t waiting;  // clusters that may wait for what another one does
};

static inline Launch *warp_launch(const Warp *warp) { return warp->block->cluster->launch; }
// The thread's index in its cluster, which is how the race check names threads.
static inline uint32_t warp_thread(const Warp *warp, int lane) { return thread_of_lane(&warp->check, lane); }
// The number of an instruction in the program, which is how the race check names them.
static inline uint32_t pc_of_inst(const Warp *warp, const Inst *inst) {
  return (uint32_t)(inst - warp_launch(warp)->program->code);
}
// Of whom the race check speaks.
static inline Warp *warp_of_check(const CheckWarp *check) { return (Warp *)((char *)check - offsetof(Warp, check)); }
static inline Cluster *cluster_of_check(const CheckCluster *check) {
  return (Cluster *)((char *)check - offsetof(Cluster, check));
}

// Of warp.c.

// The next 64 bits of a generator.
uint64_t random_next(uint64_t *state);
// Those of the cluster's schedule.
uint64_t cluster_random(Cluster *cluster);
// The index of the block with that rank in a cluster.
void cluster_block_index(const Launch *launch, uint32_t cluster, int rank, unsigned index[3]);

// ---- calls of functions ----

// A lane's way back from the calls it is in.
typedef struct Binding Binding;  // control.c

typedef struct CallFrame {
  uint32_t back;  // the instruction behind the call
  const Binding *binding;
  uint64_t stack;  // alloca's pointer of this lane
  uint8_t *saved;  // the callee's registers of this lane, when it was entered again before it returned
} CallFrame;

typedef struct CallStack {
  CallFrame *frames;
  int depth, capacity;
  uint64_t local_base;  // where the running function's .local variables begin
} CallStack;
