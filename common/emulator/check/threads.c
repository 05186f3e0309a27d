// How the race check begins and ends with a cluster and a warp: see threads.h.
#include "threads.h"

#include <stdlib.h>

#include "clocks.h"
#include "order.h"
#include "read_sets.h"
#include "sync_table.h"
#include "../host/host_memory.h"

static int clock_planes(const CheckCluster *cluster) {
  if (has_several_blocks(cluster)) return CLOCK_PLANES;
  return cluster->launch->has_late_loads ? CLOCK_FENCED_CLUSTER : CLOCK_LOADED;
}

void check_cluster_begin(CheckCluster *cluster, const CheckLaunch *launch, uint32_t id, int blocks, int block_warps,
                         Usage *usage) {
  int lanes = blocks * block_warps * LANES;
  *cluster = (CheckCluster){.launch = launch, .id = id, .block_count = blocks, .lane_count = lanes, .usage = usage};
  cluster->clock_count = lanes + (launch->asynchronous ? ASYNC_AGENTS : 0) + (launch->overlaps ? LANES : 0);
  cluster->planes = clock_planes(cluster);
  if (launch->asynchronous) cluster->agents = agents_new(usage);
  cluster->read_sets = read_sets_new(usage);
  cluster->sync = sync_table_new(usage);
  cluster->shared = host_allocate((size_t)blocks, sizeof *cluster->shared);
}

void check_cluster_end(CheckCluster *cluster) {
  agents_free(cluster->agents);
  sync_table_free(cluster->sync);
  read_sets_free(cluster->read_sets);
  free(cluster->shared);
}

void check_warp_begin(CheckWarp *warp, CheckCluster *cluster, int number, const uint32_t *pc) {
  uint32_t first = (uint32_t)(number * LANES);
  *warp = (CheckWarp){.cluster = cluster, .first_thread = first, .pc = pc};
  warp->rank = (int)(first / threads_of_block(cluster));
  warp->clocks = host_allocate(LANES, sizeof(LaneClocks));
  for (int lane = 0; lane < LANES; lane++) warp->clocks[lane].own = 1;
}

static void forget_clocks(LaneClocks *clocks) {
  clocks_release(clocks->known);
  for (Strength s = STRONG_CTA; s < SCOPES; s++) clocks_release(clocks->pending[s]);
  for (int i = 0; i < 2; i++) clocks_release(clocks->learnt[i].from);
  clocks_release(clocks->handed_on.clocks);
  clocks_release(clocks->handed_on.known);
  for (int i = 0; i < 2; i++) {
    clocks_release(clocks->joined[i].a);
    clocks_release(clocks->joined[i].b);
    clocks_release(clocks->joined[i].both);
  }
}

void check_warp_end(CheckWarp *warp) {
  for (int lane = 0; lane < LANES; lane++) forget_clocks(&warp->clocks[lane]);
  free(warp->clocks);
  flights_free(warp->flights);
}

// ---- epochs: how many bits each field has ----

bool epoch_layout(EpochLayout *layout, uint64_t clusters, uint64_t threads, uint64_t instructions) {
  int bits[3];
  const uint64_t counts[3] = {threads, instructions, clusters};
  for (int i = 0; i < 3; i++)
    for (bits[i] = 1; counts[i] > 1ull << bits[i];) bits[i]++;
  int clock_bits = EPOCH_FIELDS - bits[0] - bits[1] - bits[2];
  if (clock_bits < 12) return false;
  if (clock_bits > 32) clock_bits = 32;
  layout->clock_shift = bits[0];
  layout->pc_shift = layout->clock_shift + clock_bits;
  layout->cluster_shift = layout->pc_shift + bits[1];
  layout->clock_mask = (1ull << clock_bits) - 1;
  layout->thread_mask = (1ull << bits[0]) - 1;
  layout->pc_mask = (1ull << bits[1]) - 1;
  layout->set_mask = (1ull << layout->pc_shift) - 1;
  layout->cluster_mask = (1ull << bits[2]) - 1;
  layout->identity_mask =
      EPOCH_KERNEL | EPOCH_SET | layout->thread_mask | layout->cluster_mask << layout->cluster_shift;
  return true;
}

// ---- agents: asynchronous operations as the race check numbers them ----

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
