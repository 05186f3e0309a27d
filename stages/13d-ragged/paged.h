// What the launches of stage 13d and those after it share.
#pragma once

#include "../13-decode/launch.h"

#include "work.h"

enum { LABEL_BYTES = 16 };
// Of struct Rings: the slots, a label and an mbarrier for each.
enum { RINGS_BYTES = WARPS * (RING_BYTES + SLOTS * (LABEL_BYTES + BARRIER_BYTES)) };

static inline int rows_of_head(const DecodeShape *shape) { return shape->heads / shape->kv_heads * shape->queries; }

// A block for each SM: its warps have enough bytes in flight, and more workers would leave more parts. But no more
// blocks than have a tile for each slot of their warps when all sequences are as long as can be. `chunks`: so many
// blocks share each worker's tiles.
static inline int paged_blocks(const DecodeShape *shape, int wanted, int sm_count, int tile_keys, int chunks) {
  long tiles = (long)shape->batch * shape->kv_heads * ((shape->keys + tile_keys - 1) / tile_keys);
  long useful = (tiles + WARPS * SLOTS - 1) / (WARPS * SLOTS), fit = (long)sm_count * BLOCKS_PER_SM / chunks;
  long blocks = useful < fit ? useful : fit;
  if (blocks > sm_count) blocks = sm_count;
  return wanted ? wanted : blocks > 1 ? (int)blocks : 1;
}

static inline size_t leftover_floats(const DecodeShape *shape, int blocks) {
  return (size_t)(2 * blocks * WARPS * rows_of_head(shape)) * (size_t)shape->head_dim;
}

static inline size_t leftover_bytes(const DecodeShape *shape, int blocks) {
  size_t rows = leftover_floats(shape, blocks) / (size_t)shape->head_dim;
  return (leftover_floats(shape, blocks) + rows) * sizeof(float);
}

static inline Leftovers paged_leftovers(const Decode *decode, int blocks) {
  size_t o_bytes = leftover_floats(&decode->shape, blocks) * sizeof(float);
  return (Leftovers){.o = decode->workspace, .lse = decode->workspace + o_bytes, .workers = blocks * WARPS};
}

static inline Strides strides_of(const DecodeShape *shape, DeviceTensor tensor) {
  tensor = decode_tensor_with_strides(shape->heads, shape->queries, shape->head_dim, tensor);
  return (Strides){tensor.batch, tensor.head, tensor.row};
}

static inline int log2_of(int power) {
  int shift = 0;
  while (1 << shift < power) shift++;
  return shift;
}

// Of the block table, as Decode says; 0: there is none.
static inline int table_row_of(const Decode *decode) {
  const DecodeShape *shape = &decode->shape;
  if (!decode->block_table) return 0;
  return decode->table_row ? decode->table_row : (shape->keys + shape->page - 1) / shape->page;
}

static inline Work paged_work(const Decode *decode, int tile_keys) {
  const DecodeShape *shape = &decode->shape;
  bool paged = decode->block_table != 0;
  return (Work){
      .problem = decode_problem(decode),
      .q = strides_of(shape, decode->q),
      .o = strides_of(shape, decode->o),
      .batch = shape->batch,
      .queries = shape->queries,
      .lengths = decode->lengths,
      .block_table = decode->block_table,
      .table_row = table_row_of(decode),
      .page_shift = paged ? log2_of(shape->page) : 0,
      .boxes = paged && shape->page < tile_keys ? tile_keys / shape->page : 1,
  };
}

// A cache that is not in pages has one for each sequence.
static inline DecodeShape pool_of(const Decode *decode) {
  DecodeShape pool = decode->shape;
  if (decode->block_table) pool.batch = decode->pages, pool.keys = decode->shape.page;
  return pool;
}

// Warps of a block that combines a head's parts, of which sequences of the same length have this many. A warp has four
// under way at a time, and the next four when these have come.
static inline unsigned combine_warps(const DecodeShape *shape, const Leftovers *leftovers) {
  int parts = leftovers->workers / (shape->batch * shape->kv_heads), warps = WARPS;
  while (warps < COMBINE_WARPS && 4 * warps < parts) warps *= 2;
  return (unsigned)warps;
}

static inline bool launch_combine(Device *device, const Decode *decode, const Work *work, const Leftovers *leftovers) {
  const DecodeShape *shape = &decode->shape;
  unsigned warps = combine_warps(shape, leftovers);
  char name[32];
  snprintf(name, sizeof name, "combine_%d%s", shape->head_dim, decode->lse ? "_lse" : "");
  DeviceLaunch combine = {
      .kernel = device_kernel(device, decode->module, name),
      .grid = {(unsigned)rows_of_head(shape), (unsigned)shape->kv_heads, (unsigned)shape->batch},
      .block = {WARP * warps},
      .dynamic_shared = warps * (unsigned)shape->head_dim * sizeof(float),
      .early = true,
      .arguments = decode->lse ? ARGUMENTS(work, leftovers, &decode->lse) : ARGUMENTS(work, leftovers),
  };
  return device_launch(device, &combine);
}
