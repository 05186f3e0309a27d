// Fences of tensor maps in global memory: see map_fences.h.
#include "map_fences.h"

#include <pthread.h>
#include <stdlib.h>

#include "../check/hazard.h"
#include "../check/order.h"
#include "../memory/access.h"
#include "../warp/host_memory.h"

// The acquiring fences that lanes of a warp have executed for one map since it was written last.
typedef struct MapFence {
  const Region *region;
  uint64_t offset;
  uint64_t writes;  // race_last_writes of the map then
  int warp;
  Mask lanes;
  uint32_t clock[LANES];  // of each lane, then
} MapFence;

struct MapFences {
  MapFence *items;
  int count, capacity;
};

// The map that copies have used at a place: its checksum.
typedef struct UsedMap {
  uint64_t offset;
  uint32_t launch;  // the last one that used it
  uint64_t before;  // what launches before that have used; 0: none has
  uint64_t now;
} UsedMap;

// ---- fences ----

static LastWrites last_writes(const Actor *actor, Region *region, uint64_t offset) {
  LastWrites all = {.ordered = true};
  for (int half = 0; half < EMULATOR_TENSOR_MAP_BYTES; half += TENSOR_MAP_ALIGNMENT) {
    Access part = {.region = region, .offset = offset + (uint64_t)half};
    memory_lock(&part);
    race_last_writes(actor, region, part.offset, TENSOR_MAP_ALIGNMENT, &all);
    memory_unlock(&part);
  }
  return all;
}

// The least scope that has the fence's thread and the one that wrote the map last.
static Strength scope_needed(const Actor *actor, Epoch writer) {
  const Cluster *cluster = actor->cluster;
  if (writer == EPOCH_NONE || epoch_cluster(actor->layout, writer) != cluster->id) return STRONG_GPU;
  uint32_t per_block = (uint32_t)(cluster->lane_count / cluster->block_count);
  return epoch_thread(actor->layout, writer) / per_block == actor->thread / per_block ? STRONG_CTA : STRONG_CLUSTER;
}

static MapFence *fence_of(Block *block, const Region *region, uint64_t offset, int warp) {
  struct MapFences *fences = block->map_fences;
  if (!fences) fences = block->map_fences = host_allocate(1, sizeof *fences);
  for (int i = 0; i < fences->count; i++) {
    MapFence *fence = &fences->items[i];
    if (fence->offset == offset && fence->region == region && fence->warp == warp) return fence;
  }
  fences->items = host_grow(fences->items, fences->count, &fences->capacity, sizeof *fences->items);
  MapFence *added = &fences->items[fences->count++];
  *added = (MapFence){.region = region, .offset = offset, .warp = warp};
  return added;
}

static void acquire(Warp *warp, const Inst *inst, int lane, uint64_t address, Strength scope) {
  Region *region = region_find(warp_launch(warp)->global, address, NULL);
  if (!region || region->kind != REGION_GLOBAL || address - region->base + EMULATOR_TENSOR_MAP_BYTES > region->size)
    return;
  uint64_t offset = address - region->base;
  Actor actor = actor_of_lane(warp, inst, lane, WEAK);
  LastWrites writes = last_writes(&actor, region, offset);
  if (!writes.ordered || scope < scope_needed(&actor, writes.by_kernel)) return;
  MapFence *fence = fence_of(warp->block, region, offset, warp->index);
  if (fence->writes != writes.hash) fence->lanes = 0;
  fence->writes = writes.hash;
  fence->lanes |= 1u << lane;
  fence->clock[lane] = actor.clock;
}

void map_fences_acquire(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES], Strength scope) {
  if (!warp_launch(warp)->hazards) return;
  race_fence(warp, mask, scope);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    acquire(warp, inst, lane, addresses[lane], scope);
  }
  race_advance(warp, mask);
}

void map_fences_free(Block *block) {
  if (block->map_fences) free(block->map_fences->items);
  free(block->map_fences);
}

// Whether such a fence by a thread of the block comes before the actor.
static bool is_fenced(const Actor *actor, const Region *region, uint64_t offset, uint64_t writes) {
  const Block *block = actor->warp->block;
  const struct MapFences *fences = block->map_fences;
  for (int i = 0; fences && i < fences->count; i++) {
    const MapFence *fence = &fences->items[i];
    if (fence->offset != offset || fence->region != region || fence->writes != writes) continue;
    for (Mask rest = fence->lanes; rest; rest &= rest - 1) {
      int lane = __builtin_ctz(rest);
      if (actor_knows(actor, warp_thread(&block->warps[fence->warp], lane), fence->clock[lane])) return true;
    }
  }
  return false;
}

// ---- copies that the GPU may have ----

// Notes the use. Whether earlier launches have used another map at the place.
static bool note_use(Region *region, uint64_t offset, uint32_t launch, uint64_t checksum) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  UsedMap *used = NULL;
  for (int i = 0; i < region->used_map_count && !used; i++)
    if (region->used_maps[i].offset == offset) used = &region->used_maps[i];
  if (!used) {
    region->used_maps =
        host_grow(region->used_maps, region->used_map_count, &region->used_map_capacity, sizeof *region->used_maps);
    used = &region->used_maps[region->used_map_count++];
    *used = (UsedMap){.offset = offset, .launch = launch};
  }
  if (used->launch != launch) used->before = used->now;
  used->launch = launch;
  used->now = checksum;
  bool may_be_old = used->before && used->before != checksum;
  pthread_mutex_unlock(&lock);
  return may_be_old;
}

static void report_unfenced_map(const Actor *actor, uint64_t address, bool may_be_old) {
  hazard_report_graded(
      may_be_old ? HAZARD_FAULT : HAZARD_FORMAL, actor->warp, actor->inst, actor->lane, HAZARD_PROXY_FENCE, address,
      EMULATOR_TENSOR_MAP_BYTES,
      may_be_old
          ? "the tensor map in global memory has been overwritten since an earlier launch used it, and no "
            "fence.proxy.tensormap in this block makes the GPU read it afresh: the copy may follow the old map\n"
            "Before the first copy, execute fence.proxy.tensormap::generic.acquire.sys [map], 128 in each block, "
            "or pass the map as a const __grid_constant__ parameter."
          : "the tensor map lies in global memory, and no fence.proxy.tensormap in this block comes before its use "
            "(CUDA programming guide). No other map was ever used at this address, so the GPU has no old copy\n"
            "Before the first copy, execute fence.proxy.tensormap::generic.acquire.sys [map], 128 in each block, "
            "or pass the map as a const __grid_constant__ parameter.");
}

void map_fences_check(Warp *warp, const Inst *inst, int lane, const Access *map, const TensorMapFields *fields) {
  Region *region = map->region;
  if (!warp_launch(warp)->hazards || !region) return;
  Actor actor = actor_of_lane(warp, inst, lane, WEAK);
  access_read(&actor, region, map->offset, NULL, EMULATOR_TENSOR_MAP_BYTES);
  if (region->kind != REGION_GLOBAL) return;
  bool may_be_old = note_use(region, map->offset, warp_launch(warp)->number, fields->checksum);
  LastWrites writes = last_writes(&actor, region, map->offset);
  uint64_t address = region->base + map->offset;
  if (!writes.ordered || is_fenced(&actor, region, map->offset, writes.hash)) return;
  if (writes.by_kernel == EPOCH_NONE)
    report_unfenced_map(&actor, address, may_be_old);
  else
    hazard_report_conflict(
        HAZARD_FAULT, warp, inst, lane, HAZARD_PROXY_FENCE, address, EMULATOR_TENSOR_MAP_BYTES, writes.by_kernel, false,
        "the copy uses a tensor map that the kernel has written, and no fence.proxy.tensormap::generic.acquire of this "
        "block stands between\n"
        "Write the map by tensormap.cp_fenceproxy or put fence.proxy.tensormap::generic.release after the writes. In "
        "the "
        "block that copies, execute fence.proxy.tensormap::generic.acquire [map], 128 before the first copy.");
}
