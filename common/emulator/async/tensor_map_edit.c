// Kernels that make tensor maps: tensormap.replace changes a field of one, in shared or global memory, and
// tensormap.cp_fenceproxy copies one from shared to global memory for the tensor copies that come. PTX ISA 9.7.9.28 and
// 9.7.13.16.
//
// The maps are the emulator's own (tensor_map.h). Between two replacements a map may break the encoder's rules; whether
// it keeps them is asked when a copy uses it.
#include "tensor_map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../report/hazard.h"
#include "../check/order.h"
#include "../memory/access.h"
#include "../host/host_memory.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "families.h"

typedef enum MapField {
  MAP_ADDRESS,
  MAP_RANK,
  MAP_BOX,
  MAP_SIZE,
  MAP_STRIDE,
  MAP_ELEMENT_STRIDE,
  MAP_TYPE,
  MAP_INTERLEAVE,
  MAP_SWIZZLE,
  MAP_FILL,
} MapField;

// What tensormap.replace does: Inst.extra. The new value is in slot a.
typedef struct ReplacePlan {
  AddressPlan address;
  Space space;
  MapField field;
  int dimension;
} ReplacePlan;

// What tensormap.cp_fenceproxy does.
typedef struct CopyPlan {
  AddressPlan to, from;
} CopyPlan;

// ---- memory ----

// Finds the bytes of a map. False after a report.
static bool find_map(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address, AccessKind kind,
                     Access *access) {
  if (!memory_find(warp, inst, lane, space, address, EMULATOR_TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT, kind, access))
    return false;
  if (access->region) return true;
  hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, EMULATOR_TENSOR_MAP_BYTES,
              "a tensor map that a kernel makes is in global or shared memory");
  return false;
}

// ---- tensormap.replace ----

static void replace_field(const ReplacePlan *plan, TensorMapFields *map, uint64_t value) {
  int d = plan->dimension;
  switch (plan->field) {
  case MAP_ADDRESS: map->address = value; break;
  case MAP_RANK: map->rank = (uint8_t)(value + 1); break;
  case MAP_BOX: map->box[d] = (uint16_t)(value > UINT16_MAX ? 0 : value); break;
  case MAP_SIZE: map->last[d] = (uint32_t)value - 1; break;
  case MAP_STRIDE: map->stride[d + 1] = value; break;  // the first dimension's is not in a map
  case MAP_ELEMENT_STRIDE: map->element_stride[d] = (uint8_t)(value > UINT8_MAX ? 0 : value); break;
  case MAP_TYPE:
    map->type = (uint8_t)value;
    map->stride[0] = (uint64_t)tensor_element_size((EmulatorTensorType)value);
    break;
  case MAP_INTERLEAVE: map->interleave = (uint8_t)(value ? 8 << value : 0); break;
  case MAP_SWIZZLE: map->swizzle = (uint8_t)value; break;
  case MAP_FILL: map->fill_nan = (uint8_t)value; break;
  }
}

static bool replace_lane(Warp *warp, const Inst *inst, int lane, uint64_t address, uint64_t value) {
  const ReplacePlan *plan = inst->extra;
  Access access;
  u8 bytes[EMULATOR_TENSOR_MAP_BYTES];
  TensorMapFields map;
  if (!find_map(warp, inst, lane, plan->space, address, ACCESS_WRITE, &access)) return false;
  access_read_lane(warp, inst, lane, &access, bytes, sizeof bytes);
  if (!tensor_map_read(bytes, &map)) {
    hazard_stop(warp, inst, lane, HAZARD_TENSOR_MAP, address, EMULATOR_TENSOR_MAP_BYTES,
                "these 128 bytes are neither a tensor map of this device nor zeros: there is no field to replace");
    return false;
  }
  replace_field(plan, &map, value);
  tensor_map_write(&map, bytes);
  access_write_lane(warp, inst, lane, &access, bytes, sizeof bytes);
  return true;
}

static void execute_tensormap_replace(Warp *warp, const Inst *inst, Mask mask) {
  const ReplacePlan *plan = inst->extra;
  const bool wide = plan->field == MAP_ADDRESS || plan->field == MAP_STRIDE;
  uint64_t addresses[LANES];
  form_addresses(warp, &plan->address, mask, addresses);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    uint64_t value = wide ? SLOT(warp, inst->a, const u64)[lane] : SLOT(warp, inst->a, const u32)[lane];
    if (!replace_lane(warp, inst, lane, addresses[lane], value)) return;
  }
}

// ---- tensormap.cp_fenceproxy ----

// All lanes execute it together, with the same operands: the first copies for all, and then all release.
static void execute_tensormap_copy(Warp *warp, const Inst *inst, Mask mask) {
  const CopyPlan *plan = inst->extra;
  int lane = __builtin_ctz(mask);
  uint64_t to_addresses[LANES], from_addresses[LANES];
  Access to, from;
  u8 bytes[EMULATOR_TENSOR_MAP_BYTES];
  form_addresses(warp, &plan->to, mask, to_addresses);
  form_addresses(warp, &plan->from, mask, from_addresses);
  if (!find_map(warp, inst, lane, SPACE_SHARED, from_addresses[lane], ACCESS_READ, &from)) return;
  if (!find_map(warp, inst, lane, SPACE_GLOBAL, to_addresses[lane], ACCESS_WRITE, &to)) return;
  access_read_lane(warp, inst, lane, &from, bytes, sizeof bytes);
  access_write_lane(warp, inst, lane, &to, bytes, sizeof bytes);
  warp->block->cluster->progress++;
  race_fence(&warp->check, mask, (Strength)inst->flags);
}

// ---- decoding ----

static const struct {
  const char *name;
  MapField field;
  bool has_dimension, is_constant;
} map_fields[] = {
    {"global_address", MAP_ADDRESS, false, false},
    {"rank", MAP_RANK, false, false},
    {"box_dim", MAP_BOX, true, false},
    {"global_dim", MAP_SIZE, true, false},
    {"global_stride", MAP_STRIDE, true, false},
    {"element_stride", MAP_ELEMENT_STRIDE, true, false},
    {"elemtype", MAP_TYPE, false, true},
    {"interleave_layout", MAP_INTERLEAVE, false, true},
    {"swizzle_mode", MAP_SWIZZLE, false, true},
    {"fill_mode", MAP_FILL, false, true},
};

// The value of a field that is a constant, as the emulator's maps have it. False after an error.
static bool decode_constant(Decoder *decoder, const PtxInstruction *source, MapField field, Inst *inst) {
  // In the order of PTX's numbers.
  static const int types[] = {EMULATOR_TENSOR_U8,      EMULATOR_TENSOR_U16, EMULATOR_TENSOR_U32,  EMULATOR_TENSOR_S32,
                              EMULATOR_TENSOR_U64,     EMULATOR_TENSOR_S64, EMULATOR_TENSOR_F16,  EMULATOR_TENSOR_F32,
                              EMULATOR_TENSOR_F32_FTZ, EMULATOR_TENSOR_F64, EMULATOR_TENSOR_BF16, EMULATOR_TENSOR_TF32,
                              EMULATOR_TENSOR_TF32_FTZ};
  enum { TYPES = sizeof types / sizeof *types };
  const PtxOperand *operand = &source->operands[1];
  int64_t value = operand->value;
  if (operand->kind != PTX_OPERAND_INTEGER)
    return decoder_error(decoder, source, "the new value must be a constant"), false;
  int last = field == MAP_TYPE ? TYPES - 1 : field == MAP_SWIZZLE ? 3 : field == MAP_INTERLEAVE ? 2 : 1;
  if (value < 0 || value > last)
    return decoder_error(decoder, source, "the emulator has no tensor map with %lld", (long long)value), false;
  inst->a = decoder_constant(decoder, (uint64_t)(field == MAP_TYPE ? types[value] : value), 4);
  return true;
}

// tensormap.replace.tile.field{.space}.b1024.type [address]{, dimension}, value;
DecodeResult decode_tensormap_replace(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "replace", "tile", "global", "shared::cta", "global_address", "rank", "box_dim", "global_dim", "global_stride",
      "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 2, 3)) return DECODE_FAILED;
  size_t f = 0;
  while (f < sizeof map_fields / sizeof *map_fields && !ptx_has(source, map_fields[f].name)) f++;
  if (f == sizeof map_fields / sizeof *map_fields) return decoder_error(decoder, source, "names no field");
  if (!decoder_operands(decoder, source, 2 + map_fields[f].has_dimension, 2 + map_fields[f].has_dimension))
    return DECODE_FAILED;
  ReplacePlan *plan = decoder_allocate(decoder, sizeof *plan);
  *plan = (ReplacePlan){.space = space_of(source), .field = map_fields[f].field};
  const PtxOperand *operands = source->operands;
  if (map_fields[f].has_dimension) {
    int limit = plan->field == MAP_STRIDE ? EMULATOR_TENSOR_RANK - 1 : EMULATOR_TENSOR_RANK;
    if (operands[1].kind != PTX_OPERAND_INTEGER || operands[1].value < 0 || operands[1].value >= limit)
      return decoder_error(decoder, source, "the dimension is a constant from 0 to %d", limit - 1);
    plan->dimension = (int)operands[1].value;
  }
  bool wide = plan->field == MAP_ADDRESS || plan->field == MAP_STRIDE;
  if (ptx_has(source, "b64") != wide) return decoder_error(decoder, source, "this field is .b%d", wide ? 64 : 32);
  if (!map_fields[f].is_constant)
    inst->a = decoder_source(decoder, &operands[1 + map_fields[f].has_dimension], wide ? PTX_B64 : PTX_B32);
  else if (!decode_constant(decoder, source, plan->field, inst))
    return DECODE_FAILED;
  inst->extra = plan;
  inst->execute = execute_tensormap_replace;
  return decode_address_plan(decoder, source, &operands[0], plan->space, &plan->address);
}

// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [to], [from], 128;
DecodeResult decode_tensormap_copy(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", "cta", "cluster", "gpu", "sys",
      "sync", "aligned", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 3, 3)) return DECODE_FAILED;
  const PtxOperand *operands = source->operands;
  if (operands[2].kind != PTX_OPERAND_INTEGER || operands[2].value != EMULATOR_TENSOR_MAP_BYTES)
    return decoder_error(decoder, source, "the size of a tensor map is %d", EMULATOR_TENSOR_MAP_BYTES);
  CopyPlan *plan = decoder_allocate(decoder, sizeof *plan);
  inst->extra = plan;
  inst->flags = scope_of(source);
  inst->converge = CONVERGE_ALIGNED;
  inst->execute = execute_tensormap_copy;
  if (decode_address_plan(decoder, source, &operands[0], SPACE_GLOBAL, &plan->to) != DECODED) return DECODE_FAILED;
  return decode_address_plan(decoder, source, &operands[1], SPACE_SHARED, &plan->from);
}

// ---- tensor maps in global memory: fences ----

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
  const CheckCluster *cluster = actor->cluster;
  if (writer == EPOCH_NONE || epoch_cluster(actor->layout, writer) != cluster->id) return STRONG_GPU;
  uint32_t per_block = threads_of_block(cluster);
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
  Actor actor = actor_of_lane(&warp->check, pc_of_inst(warp, inst), lane, WEAK);
  LastWrites writes = last_writes(&actor, region, offset);
  if (!writes.ordered || scope < scope_needed(&actor, writes.by_kernel)) return;
  MapFence *fence = fence_of(warp->block, region, offset, warp->index);
  if (fence->writes != writes.hash) fence->lanes = 0;
  fence->writes = writes.hash;
  fence->lanes |= 1u << lane;
  fence->clock[lane] = actor.clock;
}

void map_fences_acquire(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES], Strength scope) {
  if (!warp_launch(warp)->check.on) return;
  race_fence(&warp->check, mask, scope);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    acquire(warp, inst, lane, addresses[lane], scope);
  }
  race_advance(&warp->check, mask);
}

void map_fences_free(Block *block) {
  if (block->map_fences) free(block->map_fences->items);
  free(block->map_fences);
}

// Whether such a fence by a thread of the block comes before the actor.
static bool is_fenced(const Actor *actor, const Block *block, const Region *region, uint64_t offset, uint64_t writes) {
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

static void report_unfenced_map(const Warp *warp, const Inst *inst, int lane, uint64_t address, bool may_be_old) {
  hazard_report_graded(
      may_be_old ? HAZARD_FAULT : HAZARD_FORMAL, warp, inst, lane, HAZARD_PROXY_FENCE, address,
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
  if (!warp_launch(warp)->check.on || !region) return;
  Actor actor = actor_of_lane(&warp->check, pc_of_inst(warp, inst), lane, WEAK);
  access_read(&actor, region, map->offset, NULL, EMULATOR_TENSOR_MAP_BYTES);
  if (region->kind != REGION_GLOBAL) return;
  bool may_be_old = note_use(region, map->offset, warp_launch(warp)->check.number, fields->checksum);
  LastWrites writes = last_writes(&actor, region, map->offset);
  uint64_t address = region->base + map->offset;
  if (!writes.ordered || is_fenced(&actor, warp->block, region, map->offset, writes.hash)) return;
  if (writes.by_kernel == EPOCH_NONE)
    report_unfenced_map(warp, inst, lane, address, may_be_old);
  else
    hazard_report_conflict(
        HAZARD_FAULT, warp, inst, lane, HAZARD_PROXY_FENCE, address, EMULATOR_TENSOR_MAP_BYTES, writes.by_kernel, false,
        "the copy uses a tensor map that the kernel has written, and no fence.proxy.tensormap::generic.acquire of this "
        "block stands between\n"
        "Write the map by tensormap.cp_fenceproxy or put fence.proxy.tensormap::generic.release after the writes. In "
        "the "
        "block that copies, execute fence.proxy.tensormap::generic.acquire [map], 128 before the first copy.");
}
