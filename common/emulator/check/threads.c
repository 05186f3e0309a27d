// How the race check begins and ends with a cluster and a warp: see threads.h.
#include "threads.h"

#include <stdlib.h>

#include "agents.h"
#include "clocks.h"
#include "flights.h"
#include "read_sets.h"
#include "sync_table.h"

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
