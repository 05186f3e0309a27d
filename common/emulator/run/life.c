// The life of a cluster: its blocks and warps, and what they begin with. See life.h.
#include "life.h"

#include <stdlib.h>
#include <string.h>

#include "../async/map_fences.h"
#include "../async/mbarrier_object.h"
#include "../check/flights.h"
#include "../check/read_sets.h"
#include "../check/sync_table.h"
#include "../check/undefined.h"
#include "../flow/control.h"
#include "../tensor/wgmma_registers.h"
#include "../warp/host_memory.h"
#include "../warp/special.h"
#include "../warp/warp.h"
#include "state.h"

// Registers start as poison: PTX leaves them undefined.
static void fill_registers(Warp *warp) {
  const Program *program = warp_launch(warp)->program;
  memset(warp->registers, REGION_POISON, program->register_bytes);
  for (int i = 0; i < program->constant_count; i++) {
    const Constant *constant = &program->constants[i];
    uint8_t *slot = warp->registers + constant->slot;
    if (constant->size == 1) {
      *(Mask *)slot = constant->value ? FULL_MASK : 0;
      continue;
    }
    const uint64_t value[2] = {constant->value, constant->high};
    for (int lane = 0; lane < LANES; lane++) memcpy(slot + lane * constant->size, value, (size_t)constant->size);
  }
  for (int i = 0; i < program->special_count; i++) {
    const Special *special = &program->specials[i];
    Mask mask = 0;
    for (int lane = 0; lane < LANES; lane++) {
      uint64_t value = special_value(warp, special->id, special->component, lane);
      mask |= (Mask)(value != 0) << lane;
      if (special->size > 1)
        memcpy(warp->registers + special->slot + lane * special->size, &value, (size_t)special->size);
    }
    if (special->size == 1) *(Mask *)(warp->registers + special->slot) = mask;
  }
}

static void start_warp(Block *block, int index) {
  const Launch *launch = block->cluster->launch;
  Warp *warp = &block->warps[index];
  *warp = (Warp){.block = block, .index = index};
  warp->first_thread = (uint32_t)((block->rank * block->warp_count + index) * LANES);
  int threads = block->thread_count - index * LANES;
  warp->live = threads >= LANES ? FULL_MASK : (1u << threads) - 1;
  warp->registers = aligned_alloc(64, (launch->program->register_bytes + 63) & ~(size_t)63);
  if (!warp->registers) out_of_memory();
  fill_registers(warp);
  size_t local = launch->program->local_size * LANES;
  warp->local = host_allocate(2 * local, 1);
  usage_add(&launch->emulator->usage.data, local);
  usage_add(&launch->emulator->usage.shadow, local);
  memset(warp->local, REGION_POISON, local);
  warp->clocks = host_allocate(LANES, sizeof(LaneClocks));
  for (int lane = 0; lane < LANES; lane++) warp->clocks[lane].own = 1;
  warp_start(warp, launch->program->functions[0].start);
}

static void end_warp(Warp *warp) {
  for (int lane = 0; lane < LANES; lane++) {
    clocks_release(warp->clocks[lane].known);
    for (Strength s = STRONG_CTA; s < SCOPES; s++) clocks_release(warp->clocks[lane].pending[s]);
    for (int i = 0; i < 2; i++) clocks_release(warp->clocks[lane].learnt[i].from);
    clocks_release(warp->clocks[lane].handed_on.clocks);
    clocks_release(warp->clocks[lane].handed_on.known);
    for (int i = 0; i < 2; i++) {
      clocks_release(warp->clocks[lane].joined[i].a);
      clocks_release(warp->clocks[lane].joined[i].b);
      clocks_release(warp->clocks[lane].joined[i].both);
    }
  }
  free(warp->clocks);
  async_warp_end(warp);
  wgmma_state_free(warp->wgmma);
  flights_free(warp->flights);
  undefined_free(warp->undefined);
  call_stacks_free(warp);
  free(warp->registers);
  free(warp->local);
  RegionUsage *usage = &warp_launch(warp)->emulator->usage;
  usage_subtract(&usage->shadow, warp_launch(warp)->program->local_size * LANES);
  usage_subtract(&usage->data, warp_launch(warp)->program->local_size * LANES);
}

// A block's shared memory, after the system's part of it if the program asks for that. What the part holds at first is
// undefined, and cooperative_groups clears bits in it: so it counts as written.
static void start_shared(Block *block) {
  const Launch *launch = block->cluster->launch;
  uint64_t reserved = special_knows_reserved_shared(launch->program) ? RESERVED_SHARED : 0;
  block->shared = host_allocate(1, sizeof(Region));
  if (!region_init(block->shared, REGION_SHARED, SHARED_BASE - reserved, launch->shared_size + reserved,
                   launch->hazards, &launch->emulator->usage))
    out_of_memory();
  region_host_write(block->shared, 0, reserved);
}

Cluster *cluster_start(Worker *worker, uint32_t id) {
  Launch *launch = worker->launch;
  Cluster *cluster = host_allocate(1, sizeof *cluster);
  *cluster = (Cluster){.launch = launch, .worker = worker, .id = id};
  cluster->block_count = (int)(launch->cluster[0] * launch->cluster[1] * launch->cluster[2]);
  cluster->blocks = host_allocate((size_t)cluster->block_count, sizeof(Block));
  cluster->random = launch->schedule * 0x9e3779b97f4a7c15ull + id * 0xbf58476d1ce4e5b9ull + 1;
  int threads = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
  cluster->lane_count = cluster->block_count * ((threads + LANES - 1) / LANES) * LANES;
  cluster->clock_count =
      cluster->lane_count + (launch->program->asynchronous ? ASYNC_AGENTS : 0) + (launch->overlaps ? LANES : 0);
  if (launch->program->asynchronous) cluster->agents = agents_new(cluster);
  if (launch->program->asynchronous) cluster->async = async_engine_new(cluster);
  if (launch->program->asynchronous) agents_advise(cluster->agents, async_advise_wait);
  if (launch->program->asynchronous) cluster->mbarriers = mbarriers_new(cluster);
  cluster->read_sets = read_sets_new(&worker->order);
  cluster->sync = sync_table_new(&worker->order);
  for (int rank = 0; rank < cluster->block_count; rank++) {
    Block *block = &cluster->blocks[rank];
    *block = (Block){.cluster = cluster, .rank = rank, .thread_count = threads, .live_threads = threads};
    cluster_block_index(launch, id, rank, block->index);
    block->warp_count = (threads + LANES - 1) / LANES;
    block->warps = host_allocate((size_t)block->warp_count, sizeof(Warp));
    start_shared(block);
    for (int b = 0; b < BARRIERS; b++) block->barriers[b].expected = -1;
    for (int w = 0; w < block->warp_count; w++) start_warp(block, w);
  }
  return cluster;
}

void cluster_end(Cluster *cluster) {
  for (int rank = 0; rank < cluster->block_count; rank++) {
    Block *block = &cluster->blocks[rank];
    for (int w = 0; w < block->warp_count; w++) end_warp(&block->warps[w]);
    for (int b = 0; b < BARRIERS; b++) {
      clocks_release(block->barriers[b].joined);
      clocks_release(block->barriers[b].former);
      free(block->barriers[b].uses);
    }
    for (int g = 0; g < MAX_WARPGROUPS; g++) free(block->warpgroups[g]);
    map_fences_free(block);
    free(block->warps);
    region_destroy(block->shared);
    free(block->shared);
    clocks_release(block->ended);
    clocks_release(block->barrier_joined);
    clocks_release(block->barrier_completed);
  }
  async_engine_free(cluster->async);
  agents_free(cluster->agents);
  mbarriers_free(cluster->mbarriers);
  clocks_release(cluster->barrier_joined);
  clocks_release(cluster->barrier_completed);
  sync_table_free(cluster->sync);
  read_sets_free(cluster->read_sets);
  free(cluster->blocks);
  free(cluster);
}
