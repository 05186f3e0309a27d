// Slots of operands: see decoder.h.
#include "decoder.h"

#include <stdlib.h>
#include <string.h>

#include "float16.h"
#include "../host/host_memory.h"

enum { MAX_REGISTER_BYTES = 1 << 28 };

// ---- slots ----

Slot decoder_slot(Decoder *decoder, int size) {
  // A predicate's Mask has a cache line of its own too, so that every slot can be read as a vector.
  size_t bytes = size == 1 ? 64 : (size_t)size * LANES;
  Program *program = decoder->program;
  if (program->register_bytes + bytes > MAX_REGISTER_BYTES) {
    decoder_fail(decoder, decoder->source ? decoder->source->line : 0, "the kernel needs too many registers");
    return 0;
  }
  Slot slot = (Slot)program->register_bytes;
  program->register_bytes += (bytes + 63) & ~(size_t)63;
  return slot;
}

int slot_element_size(PtxType type) {
  size_t size = ptx_type_size(type);
  return type == PTX_PRED ? 1 : size < 2 ? 2 : (int)size;
}

static unsigned constant_hash(uint64_t value, int size, int buckets) {
  return (unsigned)((value * 0x9e3779b97f4a7c15ull + (uint64_t)size) >> 40) % (unsigned)buckets;
}

static void constants_rehash(Decoder *decoder, int buckets) {
  free(decoder->constant_buckets);
  decoder->constant_buckets = malloc((size_t)buckets * sizeof(int));
  if (!decoder->constant_buckets) out_of_memory();
  decoder->constant_bucket_count = buckets;
  memset(decoder->constant_buckets, -1, (size_t)buckets * sizeof(int));
  const Program *program = decoder->program;
  for (int i = 0; i < program->constant_count; i++) {
    unsigned h = constant_hash(program->constants[i].value, program->constants[i].size, buckets);
    while (decoder->constant_buckets[h] >= 0) h = (h + 1) % (unsigned)buckets;
    decoder->constant_buckets[h] = i;
  }
}

Slot decoder_constant(Decoder *decoder, uint64_t value, int size) {
  Program *program = decoder->program;
  if (program->constant_count * 2 >= decoder->constant_bucket_count)
    constants_rehash(decoder, decoder->constant_bucket_count ? decoder->constant_bucket_count * 2 : 64);
  unsigned buckets = (unsigned)decoder->constant_bucket_count, h = constant_hash(value, size, (int)buckets);
  for (; decoder->constant_buckets[h] >= 0; h = (h + 1) % buckets) {
    const Constant *constant = &program->constants[decoder->constant_buckets[h]];
    if (constant->value == value && constant->size == size) return constant->slot;
  }
  program->constants =
      host_grow(program->constants, program->constant_count, &decoder->constant_capacity, sizeof(Constant));
  Slot slot = decoder_slot(decoder, size);
  decoder->constant_buckets[h] = program->constant_count;
  program->constants[program->constant_count++] = (Constant){slot, size, value, (int64_t)value < 0 ? ~0ull : 0};
  return slot;
}

static Slot special_slot(Decoder *decoder, const PtxOperand *operand, int size) {
  int own_size = 0, component = operand->component < 0 ? 0 : operand->component;
  int id = special_find(operand->name, &own_size);
  if (id < 0) {
    decoder_error(decoder, decoder->source, "unknown special register %%%s", operand->name);
    return 0;
  }
  if ((own_size == 1) != (size == 1)) {
    decoder_error(decoder, decoder->source, "%%%s is %s", operand->name, size == 1 ? "no predicate" : "a predicate");
    return 0;
  }
  if (component > 2 && own_size != 0) component = 3;
  Program *program = decoder->program;
  for (int i = 0; i < program->special_count; i++) {
    const Special *special = &program->specials[i];
    if (special->id == id && special->component == component && special->size == size) return special->slot;
  }
  program->specials = host_grow(program->specials, program->special_count, &decoder->special_capacity, sizeof(Special));
  Slot slot = decoder_slot(decoder, size);
  program->specials[program->special_count++] = (Special){slot, size, id, component};
  return slot;
}

// ---- operands ----

static double literal_value(const PtxOperand *operand) {
  if (operand->kind != PTX_OPERAND_FLOAT) return 0;
  return operand->is_f32 ? f32_from_bits((uint32_t)operand->value) : f64_from_bits((uint64_t)operand->value);
}

// The bits of an integer read as a type of that size.
static bool integer_bits(int64_t value, size_t size, uint64_t *bits) {
  if (size == 0 || size > 8) return false;
  *bits = size == 8 ? (uint64_t)value : (uint64_t)value & ((1ull << 8 * (size < 2 ? 2 : size)) - 1);
  return true;
}

// The bits of an immediate read as type.
static bool immediate_bits(const PtxOperand *operand, PtxType type, uint64_t *bits) {
  bool is_float = operand->kind == PTX_OPERAND_FLOAT;
  double number = literal_value(operand);
  switch (type) {
  case PTX_F64: *bits = f64_bits(number); return is_float;
  case PTX_F32:
  case PTX_B32:
    // A 0f literal keeps its bits, also those of a NaN.
    *bits = is_float && !operand->is_f32 ? f32_bits((float)number) : (uint32_t)operand->value;
    return is_float || type == PTX_B32;
  case PTX_B64: *bits = is_float ? f64_bits(number) : (uint64_t)operand->value; return true;
  case PTX_F16: *bits = narrow((SmallFormat)FORMAT_F16, number, ROUND_NEAREST, false); return is_float;
  case PTX_BF16: *bits = narrow((SmallFormat)FORMAT_BF16, number, ROUND_NEAREST, false); return is_float;
  case PTX_PRED: *bits = operand->value != 0; return !is_float;
  default: return integer_bits(operand->value, ptx_type_size(type), bits) && !is_float;
  }
}

void decoder_touch(Decoder *decoder, Touch touch) {
  Program *program = decoder->program;
  program->touches = host_grow(program->touches, (int)program->touch_count, &decoder->touch_capacity, sizeof(Touch));
  program->touches[program->touch_count++] = touch;
}

static Slot register_slot(Decoder *decoder, const PtxOperand *operand, PtxType *type) {
  const PtxFunction *ptx = decoder->function->ptx;
  const PtxRegister *reg = &ptx->registers[operand->index];
  *type = reg->type;
  Slot slot = decoder->function->registers[operand->index];
  int component = operand->component < 0 ? 0 : operand->component;
  if (reg->vector > 1 && operand->component < 0) {
    decoder_error(decoder, decoder->source, "vector register %s needs a component", reg->name);
    return 0;
  }
  if (component >= reg->vector) {
    decoder_error(decoder, decoder->source, "%s has no such component", reg->name);
    return 0;
  }
  size_t stride = ((size_t)(reg->type == PTX_PRED ? 64 : slot_element_size(reg->type) * LANES) + 63) & ~(size_t)63;
  return slot + (Slot)((size_t)component * stride);
}

static Slot register_of_size(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, bool written,
                             int *size_out) {
  PtxType have;
  Slot slot = register_slot(decoder, operand, &have);
  int size = slot_element_size(have), need = slot_element_size(type);
  decoder_touch(decoder, (Touch){slot, written, (uint8_t)size});
  bool fits = (have == PTX_PRED) == (type == PTX_PRED) && (wide ? size >= need : size == need);
  if (!fits)
    decoder_error(decoder, decoder->source, "register %s is .%s, the instruction needs .%s",
                  decoder->function->ptx->registers[operand->index].name, ptx_type_name(have), ptx_type_name(type));
  if (size_out) *size_out = size;
  return slot;
}

static Slot source_slot(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, int *size_out) {
  int size = slot_element_size(type);
  if (size_out) *size_out = size;
  uint64_t bits = 0;
  switch (operand->kind) {
  case PTX_OPERAND_REGISTER: return register_of_size(decoder, operand, type, wide, false, size_out);
  case PTX_OPERAND_INTEGER:
  case PTX_OPERAND_FLOAT:
    if (immediate_bits(operand, type, &bits)) return decoder_constant(decoder, bits, size);
    decoder_error(decoder, decoder->source, "an immediate does not fit .%s", ptx_type_name(type));
    return 0;
  case PTX_OPERAND_SPECIAL:
    if (size <= 8) return special_slot(decoder, operand, size);
    break;
  case PTX_OPERAND_VARIABLE:
    if (operand->variable && operand->variable->space != PTX_LOCAL && (size == 4 || size == 8)) {
      const Place *place = decoder_place(decoder, operand->variable);
      if (!place) return 0;
      return decoder_constant(decoder, place->address + (uint64_t)operand->value, size);
    }
    break;
  default: break;
  }
  decoder_error(decoder, decoder->source, "an operand is of the wrong kind for .%s", ptx_type_name(type));
  return 0;
}

Slot decoder_source(Decoder *decoder, const PtxOperand *operand, PtxType type) {
  return source_slot(decoder, operand, type, false, NULL);
}

Slot decoder_wide_source(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size_out) {
  return source_slot(decoder, operand, type, true, slot_size_out);
}

static Slot destination_slot(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, int *size_out) {
  if (size_out) *size_out = slot_element_size(type);
  if (operand->kind == PTX_OPERAND_SINK) return decoder_slot(decoder, slot_element_size(type));
  if (operand->kind == PTX_OPERAND_REGISTER && !operand->negated)
    return register_of_size(decoder, operand, type, wide, true, size_out);
  decoder_error(decoder, decoder->source, "the destination must be a register");
  return 0;
}

Slot decoder_destination(Decoder *decoder, const PtxOperand *operand, PtxType type) {
  return destination_slot(decoder, operand, type, false, NULL);
}

Slot decoder_wide_destination(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size_out) {
  return destination_slot(decoder, operand, type, true, slot_size_out);
}

// ---- special registers: %tid and its kin ----
//
// Where the hardware would give an address, a place or a time, here is what a program can rely on: block i of the grid
// runs on SM i modulo 132, a warp's %warpid is its index in the block, %gridid counts launches from 1, and what no
// driver has set reads 0 (%envreg, %current_graph_exec, and %pm, whose value PTX leaves undefined).

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
  SPECIAL_STACK,  // no register of PTX: flow/control.c
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
    // What the driver keeps there is documented nowhere. cooperative_groups of CUDA 13 takes the address of the
    // workspace of grid.sync() from these two, and 0 for a launch that is not cooperative.
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
  case SPECIAL_GRIDID: return launch->check.number;
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
