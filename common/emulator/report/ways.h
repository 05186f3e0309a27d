// What stands between two instructions of a program, on the ways that execution can take from one to the other.
#pragma once

#include "../warp/machine.h"

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
