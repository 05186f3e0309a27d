// Asynchronous operations as the race check numbers them: see agents.h.
#include "agents.h"

#include <stdlib.h>

#include "../host/host_memory.h"

typedef struct Agent {
  uint32_t clock;      // of its last operation
  bool busy;           // that operation is pending
  AsyncIssue *issues;  // of all its operations: that at clock c is number c - 1
  int capacity;
} Agent;

struct AgentTable {
  Agent agents[ASYNC_AGENTS];
  uint32_t next;
  Usage *usage;  // counts the agents' issues
};

AgentTable *agents_new(Usage *usage) {
  AgentTable *table = host_allocate(1, sizeof *table);
  table->usage = usage;
  return table;
}

void agents_free(AgentTable *table) {
  for (int i = 0; table && i < ASYNC_AGENTS; i++) {
    usage_subtract(table->usage, (size_t)table->agents[i].capacity * sizeof(AsyncIssue));
    free(table->agents[i].issues);
  }
  free(table);
}

// An agent without a pending operation. With more operations in flight than agents two share one, and a race between
// just those two can go unseen.
static uint32_t take_agent(AgentTable *table) {
  uint32_t chosen = table->next % ASYNC_AGENTS;
  for (uint32_t i = 0; i < ASYNC_AGENTS; i++) {
    uint32_t candidate = (table->next + i) % ASYNC_AGENTS;
    if (table->agents[candidate].busy) continue;
    chosen = candidate;
    break;
  }
  table->next = chosen + 1;
  return chosen;
}

static void note_issue(AgentTable *table, Agent *agent, uint32_t clock, AsyncIssue issue) {
  int before = agent->capacity;
  agent->issues = host_grow(agent->issues, (int)clock - 1, &agent->capacity, sizeof *agent->issues);
  usage_add(table->usage, (size_t)(agent->capacity - before) * sizeof *agent->issues);
  agent->issues[clock - 1] = issue;
}

AgentClock agent_begin(const CheckCluster *cluster, AsyncIssue issue) {
  const CheckLaunch *launch = cluster->launch;
  uint32_t number = take_agent(cluster->agents);
  Agent *agent = &cluster->agents->agents[number];
  agent->busy = true;
  agent->clock++;
  bool wrapped = launch->on && agent->clock > launch->epochs.clock_mask;
  if (wrapped) agent->clock = 1;
  if (launch->on) note_issue(cluster->agents, agent, agent->clock, issue);
  return (AgentClock){(uint32_t)cluster->lane_count + number, agent->clock, wrapped};
}

void agent_end(const CheckCluster *cluster, uint32_t agent) {
  cluster->agents->agents[agent - (uint32_t)cluster->lane_count].busy = false;
}

AsyncIssue agent_issue(const CheckCluster *cluster, uint32_t agent, uint32_t clock) {
  return cluster->agents->agents[agent - (uint32_t)cluster->lane_count].issues[clock - 1];
}
