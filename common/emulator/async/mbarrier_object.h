// mbarriers: objects in shared memory that count the arrivals of threads and the bytes of asynchronous copies, phase
// after phase. PTX ISA 9.7.13.15.
//
//   mbarrier.c          the instructions: init, inval, arrive, expect_tx, complete_tx, the waits, pending_count
//   mbarrier_object.c   the objects: phases, what they hand on between threads, and what is wrong with their use
//
// The program sees eight bytes. They hold, in an encoding of the emulator's own:
//
//   bits 0-19 pending arrivals, 20-39 those of the next phase, 40-60 bytes to come (two's complement), 61-63 phase
//
// What the threads hand on to each other, and which thread did what, is in a table of the cluster.
#pragma once

#include "../report/signals.h"
#include "../memory/memory.h"
#include "async.h"

enum { MBARRIER_BYTES = 8, MBARRIER_MAX = (1 << 20) - 1 };  // the largest count of arrivals, and of bytes

// The thread that did something to an mbarrier, to be named in a report; inst is NULL when none did.
typedef struct Origin {
  Warp *warp;
  int lane;
  const Inst *inst;
} Origin;

typedef struct MbarrierState {
  uint32_t pending;   // arrivals that the phase still waits for
  uint32_t expected;  // arrivals of the next phase
  int32_t tx;         // bytes that the phase still waits for; below 0 when copies were faster than expect_tx
  uint32_t phase;     // the last three bits of its number
} MbarrierState;

typedef struct Mbarrier {
  uint64_t address;  // of shared::cluster: the block's rank plus one, and the offset
  Region *region;
  uint64_t offset;    // in the region
  bool live;          // initialised, and not invalidated since
  bool announced;     // by fence.mbarrier_init: the async proxy may use it
  uint64_t word;      // what the last mbarrier instruction left in memory
  uint32_t phase;     // that it is in, from 0
  Clocks *arrived;    // what the arrivals of this phase hand on
  Clocks *completed;  // and those of the completed ones
  bool has_bytes;     // expect_tx or a copy has changed its bytes
  bool loose;         // this phase has arrivals that hand on nothing: relaxed ones, and those of copies
  Clocks *armed;      // what the arrivals of the last phase that had all of them hand on; NULL when it was loose
  uint32_t armed_phase;
  Origin init;
  uint32_t init_clock;  // of the thread that initialised it, when it did
  Origin expect;        // the last expect_tx of this phase
  Origin copy;          // the last copy that completed in this phase
  Use *uses;            // by the warps of the cluster; NULL before the first
  Origin unseen;        // the last copy, while no thread has waited for its phase
  uint32_t unseen_phase;
} Mbarrier;

typedef struct MbarrierTable MbarrierTable;

MbarrierTable *mbarriers_new(const Cluster *cluster);
void mbarriers_free(MbarrierTable *table);

// ---- for instructions that use an mbarrier ----

// The live mbarrier at an address. NULL after a report, which has stopped the launch: the address is misaligned or not
// shared memory; no mbarrier was initialised there, or it was invalidated or overwritten.
Mbarrier *mbarrier_find(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address);
// The same of an asynchronous copy: the mbarrier must be in the shared memory that the copy writes. NULL also if the
// copy is only foreseen.
Mbarrier *mbarrier_of_copy(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address, const Region *shared);
// The lanes of mask use it: an initialisation or a plain store that nothing orders before is reported.
void mbarrier_touch(Warp *warp, const Inst *inst, Mask mask, const Mbarrier *mbarrier);
// The operation will use it on behalf of a lane; through the async proxy, or as loads and stores do.
void mbarrier_touch_async(const AsyncOp *op, int lane, const Mbarrier *mbarrier, bool proxy);
// The live mbarrier at a shared::cluster address, NULL when there is none (any more).
Mbarrier *mbarrier_at(const Cluster *cluster, uint64_t address);
MbarrierState mbarrier_state(const Mbarrier *mbarrier);

// mbarrier.init by a lane: a new object, even where one was.
void mbarrier_create(Warp *warp, const Inst *inst, int lane, const Access *access, uint32_t count);
// mbarrier.inval
void mbarrier_destroy(Warp *warp, const Inst *inst, int lane, Mbarrier *mbarrier);

// expect_tx and complete_tx: the phase waits for so many bytes more, or less. False when that stopped the launch.
bool mbarrier_expect(Cluster *cluster, Mbarrier *mbarrier, Origin origin, int64_t bytes);
// Counts one thread's arrival, `count` times; drop: the phases from the next one on expect that many fewer. completes:
// false for .noComplete, which must not complete the phase. False when that stopped the launch.
bool mbarrier_arrive(Cluster *cluster, Mbarrier *mbarrier, Origin origin, uint32_t count, bool drop, bool completes);
// Reports an arrival that could be counted in another phase than the present one: the lane does not know that the one
// before is over.
void mbarrier_check_phase(Warp *warp, const Inst *inst, int lane, const Mbarrier *mbarrier);
// Reports a wait for a phase of the wrong parity: the lane knows that a phase of the other one has all its arrivals,
// and does not know that this one is over.
void mbarrier_check_parity(Warp *warp, const Inst *inst, int lane, const Mbarrier *mbarrier, uint32_t parity);
// cp.async.mbarrier.arrive without .noinc: the phase waits for one arrival more.
bool mbarrier_add_pending(Mbarrier *mbarrier, Origin origin, uint32_t count);
// An asynchronous copy to the mbarrier's block is done: what it did is handed on, and its bytes are counted.
void mbarrier_complete(Cluster *cluster, const AsyncOp *op, uint64_t address, uint32_t bytes);
// The operation is done, and arrives: cp.async.mbarrier.arrive.
void mbarrier_arrive_async(Cluster *cluster, const AsyncOp *op, uint64_t address, uint32_t count);

// fence.mbarrier_init by the lanes of mask.
void mbarrier_announce(Warp *warp, Mask mask);

// A thread has waited for the last completed phase, and knows of its copies.
void mbarrier_seen(Mbarrier *mbarrier);
// The block's last threads exit: reports copies into its shared memory that no thread waited for.
void mbarrier_check_exit(const Block *block);

// A lane polled in vain, or (mbarrier NULL) no longer waits: a deadlock's report names the lanes that wait.
void mbarrier_note_wait(Warp *warp, const Inst *inst, Mask mask, const Mbarrier *mbarrier, uint32_t parity);
// The mbarrier that a lane has last polled in vain, and where, if its phase is not over yet; else NULL.
const Mbarrier *mbarrier_awaited(const Cluster *cluster, const Warp *warp, int lane, const Inst **inst);
// Nothing in the cluster moves, and threads wait for the mbarrier: when only bytes are wrong, reports the expect_tx or
// the copy, and returns true.
bool mbarrier_explain_bytes(const Mbarrier *mbarrier);
// The mbarriers of the cluster, in the order of their addresses; NULL past the last.
const Mbarrier *mbarrier_after(const Cluster *cluster, const Mbarrier *before);

// The faults of an mbarrier: it is misused, or a phase expects a wrong number of bytes. Two of them stop the launch,
// because they leave the mbarrier in no meaningful state.
typedef enum MbarrierFault {
  MBARRIER_MISUSE,
  MBARRIER_MISUSE_STOPS,
  MBARRIER_EXPECT,
  MBARRIER_EXPECT_STOPS,
} MbarrierFault;
void mbarrier_fault(MbarrierFault fault, Origin origin, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
