// Bulk copies of contiguous bytes: cp.async.bulk, cp.reduce.async.bulk, their prefetch and their groups.
// PTX ISA 9.7.9.25.4.
#include "bulk.h"

#include <stdlib.h>
#include <string.h>

#include "../report/hazard.h"
#include "../report/steps.h"
#include "../check/order.h"
#include "../memory/access.h"
#include "../host/host_memory.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "families.h"

enum { UNIT = 16 };  // addresses and sizes of a bulk copy are multiples of it

// ---- pieces ----

void pieces_add(Pieces *pieces, const Access *other, uint64_t shared_offset, uint32_t size) {
  if (size == 0) return;
  pieces->items = host_grow(pieces->items, pieces->count, &pieces->capacity, sizeof(Piece));
  pieces->items[pieces->count++] = (Piece){.other = other ? other->region : NULL,
                                           .other_offset = other ? other->offset : 0,
                                           .shared_offset = shared_offset,
                                           .size = size};
}

// The bytes from x on that are left of a block of `block` bytes, and of `size` bytes.
static uint32_t left_of(uint64_t x, uint32_t block, uint32_t size) {
  uint32_t left = block - (uint32_t)(x % block);
  return left < size ? left : size;
}

// A request stays in a line of shared memory and a line of global memory. The latter shows in a multicast alone, which
// moves the request's sectors by twos. What goes from block to block is cut once more, counted from the copy's
// beginning.
void pieces_add_sectors(Pieces *pieces, uint64_t address, uint64_t shared, uint32_t size, Route route) {
  enum { SHARED_LINE = 128, GLOBAL_LINE = 256, BLOCK_TO_BLOCK = 1024 };
  uint64_t unit = route == ROUTE_MULTICAST ? 2 : 1;
  for (uint32_t done = 0, part; done < size; done += part) {
    uint64_t first = address + done;
    part = left_of(shared + done, SHARED_LINE, size - done);
    part = left_of(first, GLOBAL_LINE, part);
    if (route == ROUTE_BLOCK_TO_BLOCK) part = left_of(done, BLOCK_TO_BLOCK, part);
    uint64_t sectors = (first + part - 1) / SECTOR_BYTES - first / SECTOR_BYTES + 1;
    pieces->sectors += (sectors + unit - 1) / unit * unit;
  }
}

void pieces_free(Pieces *pieces) {
  free(pieces->items);
  *pieces = (Pieces){0};
}

static void check_range(const Actor *actor, Region *region, uint64_t offset, uint32_t size, bool writes) {
  if (writes)
    access_write(actor, region, offset, NULL, size);
  else
    access_read(actor, region, offset, NULL, size);
}

// Checks and remembers one side of a copy. Pieces that follow each other are checked as one.
static void check_side(const Actor *actor, const Pieces *pieces, Region *shared, bool writes) {
  Region *region = NULL;
  uint64_t start = 0;
  uint32_t size = 0;
  for (int i = 0; i < pieces->count; i++) {
    const Piece *piece = &pieces->items[i];
    Region *next = shared ? shared : piece->other;
    uint64_t offset = shared ? piece->shared_offset : piece->other_offset;
    if (!next) continue;
    if (next == region && offset == start + size) {
      size += piece->size;
      continue;
    }
    if (region) check_range(actor, region, start, size, writes);
    region = next;
    start = offset;
    size = piece->size;
  }
  if (region) check_range(actor, region, start, size, writes);
}

// Counts what a copy moves on both sides.
static void count_pieces(Warp *warp, const Inst *inst, const Pieces *pieces, bool loads, BulkMode mode) {
  InstCounts *counts = warp_counts(warp, inst);
  counts->bulk_sectors += pieces->sectors;
  for (int i = 0; i < pieces->count; i++) {
    const Region *other = pieces->items[i].other;
    uint64_t *shared = loads ? &counts->shared_written : &counts->shared_read;
    *shared += pieces->items[i].size;
    if (!other || mode.again) continue;
    uint64_t *source = other->kind == REGION_SHARED ? &counts->shared_read : &counts->global_read;
    *(loads ? source : &counts->global_written) += pieces->items[i].size;
  }
}

// ---- moving bytes ----

static void combine_bytes(u8 *to, const u8 *from, uint32_t size, const void *how) {
  const BulkMode *mode = how;
  for (uint32_t i = 0; i < size; i += (uint32_t)mode->element) {
    uint64_t old = 0, value = 0;
    memcpy(&old, to + i, (size_t)mode->element);
    memcpy(&value, from + i, (size_t)mode->element);
    value = mode->combine(old, value, 0);
    memcpy(to + i, &value, (size_t)mode->element);
  }
}

static void fill_bytes(u8 *to, uint32_t size, BulkMode mode) {
  if (!mode.fill)
    memset(to, 0, size);
  else
    for (uint32_t i = 0; i < size; i += (uint32_t)mode.element) memcpy(to + i, &mode.fill, (size_t)mode.element);
}

static void convert_bytes(u8 *bytes, uint32_t size, BulkMode mode) {
  for (uint32_t i = 0; i < size; i += 4) {
    u32 bits;
    memcpy(&bits, bytes + i, sizeof bits);
    bits = mode.convert(bits);
    memcpy(bytes + i, &bits, sizeof bits);
  }
}

// ---- loads ----

typedef struct Load {
  Region *shared;
  uint64_t mbarrier;
  uint32_t bytes;
  BulkMode mode;
  int count;
  Piece pieces[];
} Load;

static void perform_load(Cluster *cluster, AsyncOp *op) {
  const Load *load = op->payload;
  for (int i = 0; i < load->count; i++) {
    const Piece *piece = &load->pieces[i];
    u8 *to = load->shared->data + piece->shared_offset;
    if (!piece->other)
      fill_bytes(to, piece->size, load->mode);
    else if (load->mode.combine)
      combine_bytes(to, piece->other->data + piece->other_offset, piece->size, &load->mode);
    else
      access_read(NULL, piece->other, piece->other_offset, to, piece->size);
    if (piece->other && load->mode.convert) convert_bytes(to, piece->size, load->mode);
  }
  mbarrier_complete(cluster, op, load->mbarrier, load->bytes);
}

void bulk_issue_load(Warp *warp, const Inst *inst, int lane, const Pieces *pieces, Region *shared,
                     const Mbarrier *mbarrier, uint32_t bytes, BulkMode mode) {
  size_t list = (size_t)pieces->count * sizeof(Piece);
  AsyncOp *op = async_issue(warp, inst, 1u << lane, perform_load, true, sizeof(Load) + list);
  Load *load = op->payload;
  *load = (Load){.shared = shared, .mbarrier = mbarrier->address, .bytes = bytes, .mode = mode, .count = pieces->count};
  if (list) memcpy(load->pieces, pieces->items, list);
  op->mbarrier = mbarrier->address;
  if (op->step) step_operation_is_copy(warp, op->step, mbarrier->address, bytes);
  op->known = race_lane_clocks(&warp->check, lane);
  mbarrier_touch_async(op, lane, mbarrier, true);
  count_pieces(warp, inst, pieces, true, mode);
  if (!warp_launch(warp)->check.on) return;
  Actor actor = async_actor(op, lane, true);
  check_side(&actor, pieces, NULL, false);
  if (mode.combine) actor.strength = STRONG_GPU;
  check_side(&actor, pieces, shared, true);
}

// ---- stores ----

typedef struct Store {
  AsyncOp *read;  // performed before this one, and pending until then
  bool has_read;
  BulkMode mode;
  int count;
  u8 *bytes;  // read from shared memory; behind the pieces
  Piece pieces[];
} Store;

typedef struct StoreRead {
  Region *shared;
  Store *store;  // of an operation that cannot end before this one
} StoreRead;

static void perform_read(Cluster *cluster, AsyncOp *op) {
  (void)cluster;
  const StoreRead *read = op->payload;
  Store *store = read->store;
  u8 *to = store->bytes;
  for (int i = 0; i < store->count; to += store->pieces[i++].size)
    memcpy(to, read->shared->data + store->pieces[i].shared_offset, store->pieces[i].size);
  store->has_read = true;
}

static void perform_write(Cluster *cluster, AsyncOp *op) {
  Store *store = op->payload;
  if (!store->has_read) async_finish(cluster, store->read);
  const u8 *from = store->bytes;
  for (int i = 0; i < store->count; from += store->pieces[i++].size) {
    const Piece *piece = &store->pieces[i];
    if (store->mode.combine)
      access_change(piece->other, piece->other_offset, from, piece->size, combine_bytes, &store->mode);
    else
      access_write(NULL, piece->other, piece->other_offset, from, piece->size);
  }
}

Mask bulk_alike(Mask lanes, const void *values, size_t size) {
  const u8 *bytes = values, *first = bytes + (size_t)__builtin_ctz(lanes) * size;
  for (Mask rest = lanes; rest; rest &= rest - 1)
    if (memcmp(bytes + (size_t)__builtin_ctz(rest) * size, first, size)) lanes &= ~(rest & -rest);
  return lanes;
}

// By PTX each of the lanes stores for itself, and nothing orders their stores.
static void report_alike(Warp *warp, const Inst *inst, Mask lanes, const Pieces *pieces) {
  if ((lanes & (lanes - 1)) == 0 || pieces->count == 0) return;
  const Piece *first = &pieces->items[0];
  hazard_report_graded(HAZARD_FORMAL, warp, inst, __builtin_ctz(lanes), HAZARD_GLOBAL_RACE,
                       first->other->base + first->other_offset, (int)first->size,
                       "%d lanes start this store, each of the same bytes to the same place, and nothing orders them. "
                       "ptxas makes one store of it, and an H200 stores the right bytes (tests/rules)\nLet one lane "
                       "start it: elect.sync chooses one.",
                       __builtin_popcount(lanes));
}

void bulk_issue_store(Warp *warp, const Inst *inst, Mask lanes, const Pieces *pieces, Region *shared, BulkMode mode) {
  size_t list = (size_t)pieces->count * sizeof(Piece), bytes = 0;
  for (int i = 0; i < pieces->count; i++) bytes += pieces->items[i].size;
  AsyncOp *read = async_issue(warp, inst, lanes, perform_read, true, sizeof(StoreRead));
  AsyncOp *write = async_issue(warp, inst, lanes, perform_write, true, sizeof(Store) + list + bytes);
  Store *store = write->payload;
  *store = (Store){.read = read, .mode = mode, .count = pieces->count};
  store->bytes = (u8 *)store->pieces + list;
  if (list) memcpy(store->pieces, pieces->items, list);
  *(StoreRead *)read->payload = (StoreRead){shared, store};
  group_add(async_groups(warp, GROUP_BULK_READ), lanes, read);
  group_add(async_groups(warp, GROUP_BULK), lanes, write);
  count_pieces(warp, inst, pieces, false, mode);
  if (!warp_launch(warp)->check.on) return;
  report_alike(warp, inst, lanes, pieces);
  for (Mask rest = lanes; rest; rest &= rest - 1) {  // each must come after what was done to the bytes
    int lane = __builtin_ctz(rest);
    Actor reader = async_actor(read, lane, true), writer = async_actor(write, lane, true);
    check_side(&reader, pieces, shared, false);
    if (mode.combine) writer.strength = STRONG_GPU;
    check_side(&writer, pieces, NULL, true);
  }
}

// ---- multicast and mbarriers ----

uint64_t bulk_address_in(uint64_t address, int rank) {
  return (uint64_t)(rank + 1) << SHARED_RANK_SHIFT | (address & ((1ull << SHARED_RANK_SHIFT) - 1));
}

bool bulk_check_ranks(Warp *warp, const Inst *inst, int lane, uint32_t mask) {
  int blocks = warp->block->cluster->block_count;
  if (mask && mask >> blocks == 0) return true;
  hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, 0, 0,
              "the multicast mask 0x%x names blocks that a cluster of %d does not have, or none\n"
              "Set the bits of ranks from 0 to the cluster's number of blocks minus one.",
              mask, blocks);
  return false;
}

// ---- cp.async.bulk, cp.reduce.async.bulk ----

typedef struct BulkPlan {
  AddressPlan to, from, mbarrier;
  Space to_space, from_space;
  Slot size;
  bool multicast;
  Slot ranks;  // the block mask of a multicast, 16 bits
  BulkMode mode;
} BulkPlan;

static bool size_is_whole(Warp *warp, const Inst *inst, int lane, uint64_t address, u32 size) {
  if (size % UNIT == 0) return true;
  hazard_stop(
      warp, inst, lane, HAZARD_MISALIGNED, address, (int)size,
      "a bulk copy moves a multiple of %d bytes, not %u\nRound the size up to a multiple of %d, in the copy and in "
      "expect_tx, if both buffers have room for it; or copy the last bytes with ordinary loads and stores.",
      UNIT, size, UNIT);
  return false;
}

// From shared memory to shared memory, also within one block, is for launches with a cluster: in others it is an
// illegal instruction to an H200. notes/tma.md has the measurements.
static bool check_cluster_launch(Warp *warp, const Inst *inst, int lane, uint64_t address, u32 size) {
  const BulkPlan *plan = inst->extra;
  if (plan->from_space != SPACE_SHARED || warp_launch(warp)->explicit_cluster) return true;
  hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, (int)size,
              "a copy from shared to shared memory needs a launch with a cluster: the kernel stops, as an H200 does\n"
              "Launch with a cluster (__cluster_dims__, or cudaLaunchKernelEx), also for one block.");
  return false;
}

// Finds one side of a copy. False after a report.
static bool find_side(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address, u32 size, AccessKind kind,
                      Access *access) {
  if (!memory_find(warp, inst, lane, space, address, (int)size, UNIT, kind, access)) return false;
  bool shared = access->region && access->region->kind == REGION_SHARED;
  if (access->region && shared == (space == SPACE_SHARED)) return true;
  hazard_stop(
      warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, (int)size,
      "the address is not in the space that the instruction names\n"
      "Give a .shared operand the address that __cvta_generic_to_shared returns, and a .global one a pointer to "
      "device memory.");
  return false;
}

// A copy into one block's shared memory. again: after that to another block of a multicast.
static bool load_lane(Warp *warp, const Inst *inst, int lane, uint64_t to_address, uint64_t mbarrier_address,
                      const Access *from, u32 size, bool again) {
  const BulkPlan *plan = inst->extra;
  BulkMode mode = plan->mode;
  Access to;
  if (!find_side(warp, inst, lane, SPACE_SHARED, to_address, size, ACCESS_WRITE, &to)) return false;
  Mbarrier *mbarrier = mbarrier_of_copy(warp, inst, lane, SPACE_SHARED, mbarrier_address, to.region);
  if (!mbarrier) return false;
  Pieces pieces = {0};
  pieces_add(&pieces, from, to.offset, size);
  pieces_add_sectors(&pieces, from->region->base + from->offset, to_address, size,
                     plan->multicast                    ? ROUTE_MULTICAST
                     : plan->from_space == SPACE_SHARED ? ROUTE_BLOCK_TO_BLOCK
                                                        : ROUTE_GLOBAL);
  mode.again = again;
  bulk_issue_load(warp, inst, lane, &pieces, to.region, mbarrier, size, mode);
  pieces_free(&pieces);
  return true;
}

// A copy to the same place in each block of the mask.
static bool multicast_lane(Warp *warp, const Inst *inst, int lane, u32 ranks, uint64_t to_address,
                           uint64_t mbarrier_address, const Access *from, u32 size) {
  if (!bulk_check_ranks(warp, inst, lane, ranks)) return false;
  for (u32 rest = ranks; rest; rest &= rest - 1) {
    int rank = __builtin_ctz(rest);
    if (!load_lane(warp, inst, lane, bulk_address_in(to_address, rank), bulk_address_in(mbarrier_address, rank), from,
                   size, rest != ranks))
      return false;
  }
  return true;
}

static void execute_bulk_load(Warp *warp, const Inst *inst, Mask mask) {
  const BulkPlan *plan = inst->extra;
  uint64_t to[LANES], from[LANES], mbarrier[LANES];
  form_addresses(warp, &plan->to, mask, to);
  form_addresses(warp, &plan->from, mask, from);
  form_addresses(warp, &plan->mbarrier, mask, mbarrier);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u32 size = SLOT(warp, plan->size, const u32)[lane];
    Access source;
    if (!check_cluster_launch(warp, inst, lane, from[lane], size)) return;
    if (!size_is_whole(warp, inst, lane, from[lane], size)) return;
    if (!find_side(warp, inst, lane, plan->from_space, from[lane], size, ACCESS_READ, &source)) return;
    bool done = plan->multicast ? multicast_lane(warp, inst, lane, SLOT(warp, plan->ranks, const u16)[lane], to[lane],
                                                 mbarrier[lane], &source, size)
                                : load_lane(warp, inst, lane, to[lane], mbarrier[lane], &source, size, false);
    if (!done) return;
  }
}

static void execute_bulk_store(Warp *warp, const Inst *inst, Mask mask) {
  const BulkPlan *plan = inst->extra;
  uint64_t to[LANES], from[LANES];
  form_addresses(warp, &plan->to, mask, to);
  form_addresses(warp, &plan->from, mask, from);
  for (Mask rest = mask, same; rest; rest &= ~same) {
    int lane = __builtin_ctz(rest);
    u32 size = SLOT(warp, plan->size, const u32)[lane];
    Access source, destination;
    same = plan->mode.combine ? rest & -rest : bulk_alike(rest, to, sizeof *to);
    same = bulk_alike(bulk_alike(same, from, sizeof *from), SLOT(warp, plan->size, const u32), sizeof size);
    if (!size_is_whole(warp, inst, lane, from[lane], size)) return;
    if (!find_side(warp, inst, lane, SPACE_SHARED, from[lane], size, ACCESS_READ, &source)) return;
    if (!find_side(warp, inst, lane, SPACE_GLOBAL, to[lane], size, ACCESS_WRITE, &destination)) return;
    Pieces pieces = {0};
    pieces_add(&pieces, &destination, source.offset, size);
    pieces_add_sectors(&pieces, to[lane], from[lane], size, ROUTE_GLOBAL);
    bulk_issue_store(warp, inst, same, &pieces, source.region, plan->mode);
    pieces_free(&pieces);
  }
}

// ---- groups ----

static void execute_bulk_commit(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  group_commit(async_groups(warp, GROUP_BULK_READ), mask);
  group_commit(async_groups(warp, GROUP_BULK), mask);
}

// flags: .read, which waits until the sources have been read alone.
static void execute_bulk_wait(Warp *warp, const Inst *inst, Mask mask) {
  group_wait(warp, inst, async_groups(warp, GROUP_BULK_READ), mask, (uint32_t)inst->immediate, false);
  if (!inst->flags) group_wait(warp, inst, async_groups(warp, GROUP_BULK), mask, (uint32_t)inst->immediate, false);
}

void bulk_check_exit(Warp *warp, Mask mask) {
  if (!warp_launch(warp)->check.on) return;
  if (warp->block->live_threads == __builtin_popcount(mask)) mbarrier_check_exit(warp->block);
  if (!warp->groups_in_flight) return;
  GroupQueue *queue = async_groups(warp, GROUP_BULK_READ);
  for (int i = 0; i < queue->count; i++) {
    GroupEntry *entry = &queue->entries[i];
    Mask lanes = entry->waiting & mask;
    if (!lanes) continue;
    hazard_report_graded(
        HAZARD_FORMAL, warp, entry->op->inst, __builtin_ctz(lanes), HAZARD_OVERWRITE_IN_FLIGHT, 0, 0,
        "the thread exits before it knows that this store has read its shared memory, which the block's end gives to "
        "others: cp.async.bulk.wait_group.read 0 is missing. An H200 stored the right bytes (tests/rules)\n"
        "Put cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 after it, before the thread exits.");
    entry->waiting &= ~mask;
  }
}

// ---- decoding ----

// How many operands follow for the modifiers that bring one.
static int extra_operands(const PtxInstruction *source) {
  return ptx_has(source, "multicast::cluster") + ptx_has(source, "L2::cache_hint");
}

DecodeResult decode_bulk_group(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"async", "bulk", "commit_group", "wait_group", "read", NULL};
  bool waits = ptx_has(source, "wait_group");
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, waits, waits))
    return DECODE_FAILED;
  decoder->program->asynchronous = true;
  inst->flags = ptx_has(source, "read");
  inst->execute = waits ? execute_bulk_wait : execute_bulk_commit;
  if (!waits) return DECODED;
  if (source->operands[0].kind != PTX_OPERAND_INTEGER || source->operands[0].value < 0 ||
      source->operands[0].value > INT32_MAX)
    return decoder_error(decoder, source, "needs a number of groups");
  inst->immediate = source->operands[0].value;
  return DECODED;
}

DecodeResult decode_bulk_prefetch(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"async", "bulk", "prefetch", "L2", "global", "L2::cache_hint", NULL};
  int operands = 2 + extra_operands(source);
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, operands, operands))
    return DECODE_FAILED;
  inst->execute = execute_nothing;  // a hint to the L2 cache
  return DECODED;
}

const char *bulk_reduction_name(const PtxInstruction *source) {
  static const char *const names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (ptx_has(source, names[i])) return names[i];
  return NULL;
}

// The reduction that a cp.reduce names. False after an error.
static bool decode_reduction(Decoder *decoder, const PtxInstruction *source, bool global, BulkMode *mode) {
  PtxType type = ptx_instruction_type(source);
  const char *name = bulk_reduction_name(source);
  mode->combine = name ? reduction_find(name, type, global) : NULL;
  mode->element = (int)ptx_type_size(type);
  if (mode->combine) return true;
  decoder_error(decoder, source, "no such reduction on .%s", ptx_type_name(type));
  return false;
}

// cp{.reduce}.async.bulk.DST.SRC.mbarrier::complete_tx::bytes [to], [from], size, [mbarrier]{, ranks}{, policy};
// cp{.reduce}.async.bulk.global.shared::cta.bulk_group [to], [from], size{, policy};
DecodeResult decode_bulk(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "reduce", "async", "bulk", "shared::cluster", "shared::cta", "global", "mbarrier::complete_tx::bytes",
      "bulk_group", "multicast::cluster", "L2::cache_hint", "add", "min", "max", "inc", "dec", "and", "or",
      "xor", "noftz", NULL};
  // clang-format on
  bool stores = ptx_has(source, "bulk_group"), reduces = ptx_has(source, "reduce");
  int operands = 3 + !stores + extra_operands(source);
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, operands, operands))
    return DECODE_FAILED;
  if (stores == ptx_has(source, "mbarrier::complete_tx::bytes"))
    return decoder_error(decoder, source, "completes on .mbarrier::complete_tx::bytes or .bulk_group");
  decoder->program->asynchronous = true;
  BulkPlan *plan = decoder_allocate(decoder, sizeof *plan);
  plan->to_space = stores ? SPACE_GLOBAL : SPACE_SHARED;
  plan->from_space = stores || !ptx_has(source, "global") ? SPACE_SHARED : SPACE_GLOBAL;
  if (stores && !ptx_has(source, "global"))
    return decoder_error(decoder, source, "a .bulk_group copies from .shared::cta to .global");
  if (reduces && !decode_reduction(decoder, source, stores, &plan->mode)) return DECODE_FAILED;
  plan->size = decoder_source(decoder, &source->operands[2], PTX_B32);
  plan->multicast = ptx_has(source, "multicast::cluster");
  if (plan->multicast) plan->ranks = decoder_source(decoder, &source->operands[4], PTX_B16);
  if (ptx_has(source, "L2::cache_hint")) decoder_source(decoder, &source->operands[source->operand_count - 1], PTX_B64);
  inst->extra = plan;
  inst->execute = stores ? execute_bulk_store : execute_bulk_load;
  if (!stores && decode_address_plan(decoder, source, &source->operands[3], SPACE_SHARED, &plan->mbarrier) != DECODED)
    return DECODE_FAILED;
  if (decode_address_plan(decoder, source, &source->operands[0], plan->to_space, &plan->to) != DECODED)
    return DECODE_FAILED;
  return decode_address_plan(decoder, source, &source->operands[1], plan->from_space, &plan->from);
}
