// What the person must change so that two accesses no longer conflict, as it follows from the cause.
#pragma once

#include "../check/threads.h"
#include "../check/clocks.h"
#include "../check/region.h"
#include "../warp/machine.h"

typedef struct Advice {
  char text[HAZARD_ADVICE];
  size_t used;
} Advice;

void advice_add(Advice *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));

// An access of a conflict, as the advice knows it.
typedef struct Party {
  const Inst *inst;
  bool writes;
  uint32_t cluster, thread;  // a thread's number in its cluster; of an operation, that of its issuer
} Party;

// A thread meets what an operation accesses and has not waited for it.
typedef struct Unwaited {
  const Cluster *cluster;
  const Inst *inst;  // of the operation
  uint32_t agent, clock;
  AsyncIssue issue;
  uint32_t thread;      // that has not waited; of an operation that has not, its issuer; of a wgmma, itself
  uint32_t rank;        // of the block that has not waited, in its cluster
  const Clocks *known;  // what it knows, or NULL
  const Inst *use;      // its access
} Unwaited;

// Two accesses by threads that nothing orders.
void advise_threads(Advice *advice, const Launch *launch, const Cluster *near, bool shared, const Party *one,
                    const Party *other);
// A store and another store by threads, of shared memory, at bytes that `before` wrote last. What each of them stores
// comes before the advice on the order. True when there must be none: an index leaves its array.
bool advise_overlap(Advice *advice, const Cluster *cluster, const Region *region, uint64_t offset, const Party *now,
                    Epoch before);
// An operation of the async proxy uses what a thread has written or reads late, and no fence.proxy.async of that thread
// stands between.
void advise_proxy_fence(Advice *advice, const Launch *launch, const Inst *access, const Inst *use, bool same_thread);

// The paths that execution can take from one instruction to another, and which instructions lie on them.

typedef bool InstructionTest(const Inst *inst);

typedef struct Ways {
  bool reach;      // there is one
  bool free;       // there is one without an instruction that passes the test, as far as the function itself shows
  bool onward;     // the second stands later in the program: else only another round of a loop leads to it
  const Inst *on;  // an instruction that passes, from which the second is reached without another; NULL: none
} Ways;

// A guarded instruction passes no test, since execution may skip it. The code of a function that is called is not
// followed: it may have such an instruction, so a way through a call is taken not to be free.
Ways ways_between(const Program *program, const Inst *from, const Inst *to, InstructionTest *test);

// Tests: barriers of a block, also those for a part of its threads; of a warp; of a cluster. Fences of the async proxy.
bool is_block_barrier(const Inst *inst);
bool is_warp_barrier(const Inst *inst);
bool is_cluster_barrier(const Inst *inst);
bool is_proxy_fence(const Inst *inst);
