// Asynchronous operations as the race check numbers them.
//
// An operation is a thread of its own, an agent: agents come after the lanes of a cluster, and one operation after
// the other is the same agent, at its next clock.
#pragma once

#include "threads.h"

enum { ASYNC_AGENTS = 256 };

// The issue of an operation, as the race check numbers threads.
typedef struct AsyncIssue {
  uint32_t thread, clock;  // the first of the issuing lanes, and its clock then
  Mask mask;               // the lanes
  uint32_t warps;          // that issue it together: 1, or 4 of a warpgroup
} AsyncIssue;

typedef struct AgentTable AgentTable;

AgentTable *agents_new(Usage *usage);
void agents_free(AgentTable *table);

// What an operation is in the race check. wrapped: its agent has begun again at clock 1, after more operations than
// an epoch can count.
typedef struct AgentClock {
  uint32_t agent, clock;
  bool wrapped;
} AgentClock;

AgentClock agent_begin(const CheckCluster *cluster, AsyncIssue issue);
// The agent's operation is over.
void agent_end(const CheckCluster *cluster, uint32_t agent);
// The issue of the operation that an agent was at that clock.
AsyncIssue agent_issue(const CheckCluster *cluster, uint32_t agent, uint32_t clock);
