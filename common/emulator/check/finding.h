// What the race check finds, as plain values. The room above makes reports of it.
#pragma once

#include "actor.h"

typedef enum FindingKind {
  FOUND_UNWRITTEN,    // a read of bytes that nothing has written
  FOUND_RACE,         // two accesses, of which at least one writes, and nothing orders them
  FOUND_EQUAL,        // the same, but both store the same bytes
  FOUND_GUESS,        // the same of a write by atomics and a plain load that makes the first guess of one
  FOUND_UNSEEN,       // the async proxy may not see the other, a write, which comes before
  FOUND_LATE_LOAD,    // the other, a load that comes before a write by the async proxy, may still be under way
  FOUND_OWN_PART,     // only the actor's `own` comes after the other, a write
  FOUND_NARROW,       // only an arrival of too narrow a scope orders the two
  FOUND_BLOCK_END,    // the actor's block ends, and the other access to its shared memory does not come before
  FOUND_PAST,         // the other access is an earlier launch's, `past`, and nothing orders the two
  FOUND_CLOCK_LIMIT,  // a lane has synchronised more often than a clock can count
  FOUND_SET_LIMIT,    // there are more sets of reads than an epoch can number
} FindingKind;

typedef struct CheckFinding {
  FindingKind kind;
  CheckWarp *warp;  // who
  int lane;
  const Actor *actor;         // the same; NULL: FOUND_CLOCK_LIMIT
  const Span *span;           // which bytes
  Epoch other;                // the remembered access
  bool writes, other_writes;  // the actor, and the other
  bool formal;                // of FOUND_BLOCK_END: an arrival of too narrow a scope orders the two
  const struct PastLaunch *past;
  bool has_waited, triggered;  // of FOUND_PAST
} CheckFinding;
