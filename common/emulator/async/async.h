// Asynchronous operations: cp.async, bulk and tensor copies, wgmma.
//
// An operation is issued by lanes of a warp and happens later. For the race check it is an agent, a thread of its own:
// at its issue its reads and writes are checked and remembered (race_read_by, race_write_by with async_actor), knowing
// what the issuing lanes know. Its data moves when it is performed: as late as the program allows, or at a random
// moment under a seed. So a missing wait gives both a report and wrong numbers.
//
//   issue --> pending --> performed (data moved; bytes completed) --> known to the threads that wait
//
// Operations that nothing but a wait completes (cp.async and wgmma groups) are performed by that wait. The others
// (those that complete on an mbarrier, and bulk groups) complete by themselves: when no warp of the cluster can go on.
#pragma once

#include "../report/advice.h"
#include "../check/threads.h"
#include "../check/race.h"

typedef struct AsyncEngine AsyncEngine;
typedef struct AsyncOp AsyncOp;

// Moves an operation's data, and completes its bytes on its mbarrier. Called once.
typedef void AsyncPerform(Cluster *cluster, AsyncOp *op);

struct AsyncOp {
  AsyncOp *next, *previous;  // among the engine's pending ones, in order of issue
  Warp *warp;                // the issuer
  int lane;                  // its first lane
  const Inst *inst;
  uint32_t agent, clock;  // the thread and clock it is in the race check; clock 0: none
  uint32_t number;        // of wgmma: how many the warp had issued with it
  uint32_t step;          // its number in the record of steps
  AsyncPerform *perform;
  void (*discard)(AsyncOp *op);  // releases what the payload holds, when it was never performed; or NULL
  bool self_completing;          // may be performed at any time; else only by async_finish
  bool performed;
  int references;
  Clocks *known;      // what comes before it: of a collective operation all that its lanes knew and had done, until its
                      // operands are read; of a bulk load what its issuer knew; NULL of others
  uint64_t mbarrier;  // shared address (with its rank) that it will complete bytes on; 0 when none
  void *payload;      // the family's own: freed with the operation
};

AsyncEngine *async_engine_new(Cluster *cluster);
void async_engine_free(AsyncEngine *engine);
void async_warp_end(Warp *warp);

// A new operation by the lanes of mask, pending, with a zeroed payload of that size and one reference (the engine's).
AsyncOp *async_issue(Warp *warp, const Inst *inst, Mask mask, AsyncPerform *perform, bool self_completing,
                     size_t payload_size);
// The same of one of several warps that issue an operation together: it is no agent in the race check until
// async_make_agent, which one of the parts is to be, makes it one for all.
AsyncOp *async_issue_part(Warp *warp, const Inst *inst, Mask mask, AsyncPerform *perform, bool self_completing,
                          size_t payload_size);
AsyncIssue async_issue_by(const AsyncOp *op, Mask mask, uint32_t warps);
void async_make_agent(AsyncOp *op, AsyncIssue issue);
// The operation is one of all lanes of mask together (wgmma), not one of each: it comes after what any of them has
// done.
void async_make_collective(AsyncOp *op, Mask mask);
// What accesses memory for the operation on behalf of a lane. proxy: through the async proxy (TMA, wgmma; not
// cp.async).
Actor async_actor(const AsyncOp *op, int lane, bool proxy);
// Performs the operation unless it has been.
void async_finish(Cluster *cluster, AsyncOp *op);
void async_retain(AsyncOp *op);
void async_release(AsyncOp *op);
// The lanes of mask have waited for the operation: finishes it, and they know of it.
void async_wait(Warp *warp, Mask mask, AsyncOp *op);
// Performs one pending operation that completes by itself: the oldest, or one chosen by the random number. False when
// there is none.
bool async_advance(Cluster *cluster, uint64_t random);
// The pending operations, oldest first: for checks that look for those of an mbarrier.
AsyncOp *async_first_pending(const Cluster *cluster);

// ---- groups: cp.async, cp.async.bulk and wgmma commit operations to groups and wait for all but the latest N ----

// The last wait that an operation was still in flight after, for reports.
typedef struct PassedWait {
  const Inst *inst;  // NULL: none
  int lane;
  uint32_t clock;    // of the lane then
  uint32_t newer;    // commits since the operation, that of its own group among them; 0: it was in no group yet
  const Inst *open;  // an operation that was in no group yet, or NULL
} PassedWait;

typedef struct GroupEntry {
  AsyncOp *op;
  PassedWait passed;
  Mask waiting;           // lanes that have not waited for it yet
  uint32_t group[LANES];  // of each lane: how many commits came before it
} GroupEntry;

typedef struct GroupQueue {
  GroupEntry *entries;  // in order of issue
  int count, capacity;
  uint32_t commits[LANES];
} GroupQueue;

// A bulk store is in two groups: its reading of shared memory, and the whole of it.
typedef enum GroupKind { GROUP_CP_ASYNC, GROUP_BULK_READ, GROUP_BULK, GROUP_WGMMA, GROUP_KINDS } GroupKind;

GroupQueue *async_groups(Warp *warp, GroupKind kind);
// Adds the operation to the open group of the lanes of mask; takes a reference.
void group_add(GroupQueue *queue, Mask mask, AsyncOp *op);
void group_commit(GroupQueue *queue, Mask mask);
// The lanes wait, by inst, for all but their latest `allowed` groups; uncommitted operations too when everything is
// true.
void group_wait(Warp *warp, const Inst *inst, GroupQueue *queue, Mask mask, uint32_t allowed, bool everything);
// The wait of the lanes, by inst, has left the entry in flight.
void group_pass(const Warp *warp, const Inst *inst, const GroupQueue *queue, GroupEntry *entry, Mask mask);

// ---- unwaited.c: what the person must change ----

// For agents_advise.
void async_advise_wait(Advice *advice, const Unwaited *unwaited);
// An instruction uses registers of the warp's wgmma of that number, for which the warp has not waited.
void async_advise_registers(Advice *advice, Warp *warp, const Inst *use, uint32_t number);
