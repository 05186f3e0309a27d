// Special registers that keep their value while a thread runs, PTX ISA chapter 10. The clocks are in move.c.
//
// Where the hardware would give an address, a place or a time, here is what a program can rely on: block i of the grid
// runs on SM i modulo 132, a warp's %warpid is its index in the block, %gridid counts launches from 1, and what no
// driver has set reads 0 (%envreg, %current_graph_exec, and %pm, whose value PTX leaves undefined).
#include "special.h"

#include <string.h>

typedef enum SpecialRegister {
  SPECIAL_TID,
  SPECIAL_NTID,
  SPECIAL_CTAID,
  SPECIAL_NCTAID,
  SPECIAL_CLUSTERID,
  SPECIAL_NCLUSTERID,
  SPECIAL_CLUSTER_CTAID,
  SPECIAL_CLUSTER_NCTAID,
  SPECIAL_CLUSTER_CTARANK,
  SPECIAL_CLUSTER_NCTARANK,
  SPECIAL_EXPLICIT_CLUSTER,
  SPECIAL_LANEID,
  SPECIAL_WARPID,
  SPECIAL_NWARPID,
  SPECIAL_SMID,
  SPECIAL_NSMID,
  SPECIAL_GRIDID,
  SPECIAL_LANEMASK_EQ,
  SPECIAL_LANEMASK_LE,
  SPECIAL_LANEMASK_LT,
  SPECIAL_LANEMASK_GE,
  SPECIAL_LANEMASK_GT,
  SPECIAL_DYNAMIC_SHARED,
  SPECIAL_TOTAL_SHARED,
  SPECIAL_AGGREGATE_SHARED,
  SPECIAL_RESERVED_BEGIN,
  SPECIAL_RESERVED_END,
  SPECIAL_RESERVED_CAP,
  SPECIAL_RESERVED_0,
  SPECIAL_RESERVED_1,
  SPECIAL_GRID_WORKSPACE_HIGH,
  SPECIAL_GRID_WORKSPACE_LOW,
  SPECIAL_STACK,  // no register of PTX: stack.c
  SPECIAL_ZERO,
} SpecialRegister;

static const struct {
  const char *name;
  int size;
  SpecialRegister id;
} specials[] = {
    {"tid", 4, SPECIAL_TID},
    {"ntid", 4, SPECIAL_NTID},
    {"ctaid", 4, SPECIAL_CTAID},
    {"nctaid", 4, SPECIAL_NCTAID},
    {"clusterid", 4, SPECIAL_CLUSTERID},
    {"nclusterid", 4, SPECIAL_NCLUSTERID},
    {"cluster_ctaid", 4, SPECIAL_CLUSTER_CTAID},
    {"cluster_nctaid", 4, SPECIAL_CLUSTER_NCTAID},
    {"cluster_ctarank", 4, SPECIAL_CLUSTER_CTARANK},
    {"cluster_nctarank", 4, SPECIAL_CLUSTER_NCTARANK},
    {"is_explicit_cluster", 1, SPECIAL_EXPLICIT_CLUSTER},
    {"laneid", 4, SPECIAL_LANEID},
    {"warpid", 4, SPECIAL_WARPID},
    {"nwarpid", 4, SPECIAL_NWARPID},
    {"smid", 4, SPECIAL_SMID},
    {"nsmid", 4, SPECIAL_NSMID},
    {"gridid", 8, SPECIAL_GRIDID},
    {"lanemask_eq", 4, SPECIAL_LANEMASK_EQ},
    {"lanemask_le", 4, SPECIAL_LANEMASK_LE},
    {"lanemask_lt", 4, SPECIAL_LANEMASK_LT},
    {"lanemask_ge", 4, SPECIAL_LANEMASK_GE},
    {"lanemask_gt", 4, SPECIAL_LANEMASK_GT},
    {"dynamic_smem_size", 4, SPECIAL_DYNAMIC_SHARED},
    {"total_smem_size", 4, SPECIAL_TOTAL_SHARED},
    {"aggr_smem_size", 4, SPECIAL_AGGREGATE_SHARED},
    {"reserved_smem_offset_begin", 4, SPECIAL_RESERVED_BEGIN},
    {"reserved_smem_offset_end", 4, SPECIAL_RESERVED_END},
    {"reserved_smem_offset_cap", 4, SPECIAL_RESERVED_CAP},
    {"reserved_smem_offset_0", 4, SPECIAL_RESERVED_0},
    {"reserved_smem_offset_1", 4, SPECIAL_RESERVED_1},
    {"current_graph_exec", 8, SPECIAL_ZERO},
    {"stack pointer", 8, SPECIAL_STACK},
    // What the driver keeps there is documented nowhere. cooperative_groups of CUDA 13 takes the address of the workspace
    // of grid.sync() from these two, and 0 for a launch that is not cooperative.
    {"envreg1", 4, SPECIAL_GRID_WORKSPACE_HIGH},
    {"envreg2", 4, SPECIAL_GRID_WORKSPACE_LOW},
};

enum {
  SM_COUNT = 132,     // of an H200
  SHARED_UNIT = 128,  // that shared memory is allocated in
};

int special_find(const char *name, int *size) {
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
    if (!strcmp(specials[i].name, name)) {
      *size = specials[i].size;
      return (int)specials[i].id;
    }
  *size = 4;
  return !strncmp(name, "envreg", 6) || !strncmp(name, "pm", 2) ? (int)SPECIAL_ZERO : -1;
}

static bool reads(const Program *program, SpecialRegister id) {
  for (int i = 0; i < program->special_count; i++)
    if (program->specials[i].id == (int)id) return true;
  return false;
}

bool special_knows_grid_sync(const Program *program) { return reads(program, SPECIAL_GRID_WORKSPACE_HIGH); }
bool special_knows_reserved_shared(const Program *program) { return reads(program, SPECIAL_RESERVED_1); }

// The thread's index along one axis of the block.
static uint32_t thread_index(const Warp *warp, int axis, int lane) {
  const unsigned *size = warp_launch(warp)->block;
  unsigned linear = (unsigned)(warp->index * LANES + lane);
  return axis == 0 ? linear % size[0] : axis == 1 ? linear / size[0] % size[1] : linear / size[0] / size[1];
}

static uint64_t in_units(uint64_t bytes) { return (bytes + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT; }

uint64_t special_value(const Warp *warp, int id, int axis, int lane) {
  const Block *block = warp->block;
  const Launch *launch = warp_launch(warp);
  bool vector_end = axis > 2;  // .w of a vector reads 0
  switch ((SpecialRegister)id) {
  case SPECIAL_TID: return vector_end ? 0 : thread_index(warp, axis, lane);
  case SPECIAL_NTID: return vector_end ? 0 : launch->block[axis];
  case SPECIAL_CTAID: return vector_end ? 0 : block->index[axis];
  case SPECIAL_NCTAID: return vector_end ? 0 : launch->grid[axis];
  case SPECIAL_CLUSTERID: return vector_end ? 0 : block->index[axis] / launch->cluster[axis];
  case SPECIAL_NCLUSTERID: return vector_end ? 0 : launch->grid[axis] / launch->cluster[axis];
  case SPECIAL_CLUSTER_CTAID: return vector_end ? 0 : block->index[axis] % launch->cluster[axis];
  case SPECIAL_CLUSTER_NCTAID: return vector_end ? 0 : launch->cluster[axis];
  case SPECIAL_CLUSTER_CTARANK: return (uint64_t)block->rank;
  case SPECIAL_CLUSTER_NCTARANK: return (uint64_t)block->cluster->block_count;
  case SPECIAL_EXPLICIT_CLUSTER: return launch->explicit_cluster;
  case SPECIAL_LANEID: return (uint64_t)lane;
  case SPECIAL_WARPID: return (uint64_t)warp->index;
  case SPECIAL_NWARPID: return (uint64_t)block->warp_count;
  case SPECIAL_SMID:
    return (block->cluster->id * (uint64_t)block->cluster->block_count + (uint64_t)block->rank) % SM_COUNT;
  case SPECIAL_NSMID: return SM_COUNT;
  case SPECIAL_GRIDID: return launch->number;
  case SPECIAL_LANEMASK_EQ: return 1u << lane;
  case SPECIAL_LANEMASK_LE: return FULL_MASK >> (31 - lane);
  case SPECIAL_LANEMASK_LT: return (1u << lane) - 1;
  case SPECIAL_LANEMASK_GE: return FULL_MASK << lane;
  case SPECIAL_LANEMASK_GT: return FULL_MASK << lane << 1;
  case SPECIAL_DYNAMIC_SHARED: return launch->dynamic_shared;
  case SPECIAL_TOTAL_SHARED: return in_units(launch->shared_size);
  case SPECIAL_AGGREGATE_SHARED: return in_units(launch->shared_size) + SHARED_BASE;
  case SPECIAL_RESERVED_BEGIN:
  case SPECIAL_RESERVED_0: return 0;
  case SPECIAL_RESERVED_1: return SHARED_BASE - RESERVED_SHARED;
  case SPECIAL_RESERVED_END:
  case SPECIAL_RESERVED_CAP: return SHARED_BASE;
  case SPECIAL_GRID_WORKSPACE_HIGH: return launch->grid_workspace >> 32;
  case SPECIAL_GRID_WORKSPACE_LOW: return (uint32_t)launch->grid_workspace;
  case SPECIAL_STACK: return launch->program->local_size;
  case SPECIAL_ZERO: return 0;
  }
  return 0;
}
