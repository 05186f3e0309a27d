// Tensor copies: boxes of up to five dimensions between a tensor in global memory and shared memory. PTX ISA 5.5 and
// 9.7.9.25.5.
//
//   coordinates + box --rows--> pieces of a tensor's row, or what is filled --swizzle--> places in shared memory
//
// In tile mode a box has so many rows along each of the outer dimensions. In im2col mode it has so many pixels: they
// follow each other along W, then H, then D, inside of the map's box, and go on in the next image.
//
// In shared memory a box lies row by row, its innermost dimension first. Rows are as long as the box is wide; under a
// swizzle they are as long as its span, and the 16-byte units of each are exchanged by address bits:
//
//   128B: bits 4-6 ^= bits 7-9    64B: bits 4-5 ^= bits 7-8    32B: bit 4 ^= bit 7
//
// In an interleaved layout an element has 16 or 32 bytes, a slice of channels, whatever the map's type. The dimensions
// are W, (H, (D,)) slices, N, and a box has one slice. Where there are steps along W, and in im2col mode, a row is one
// element.
#include <stdio.h>
#include <string.h>

#include "../report/hazard.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "bulk.h"
#include "families.h"
#include "tensor_map.h"

enum { SHARED_ALIGNMENT = 128, UNIT = 16, MOST_ROWS = 1 << 19 };

typedef struct TensorPlan {
  AddressPlan map, shared, mbarrier;
  int rank;
  Slot coordinates[EMULATOR_TENSOR_RANK];
  bool im2col, has_offsets;                // a store in im2col mode has none
  Slot offsets[EMULATOR_TENSOR_RANK - 2];  // 16 bits each
  bool multicast;
  Slot ranks;             // the block mask of a multicast, 16 bits
  const char *reduction;  // NULL of a copy
} TensorPlan;

// How a box's rows follow each other along an outer dimension: from `start` on by steps; after `last` they begin again
// at `first`, a step on along the next dimension.
typedef struct Axis {
  int64_t start, first, last, step;
  int64_t offset;  // from there to the tensor's element
} Axis;

// A box of a tensor, as one instruction names it.
typedef struct Box {
  TensorMapFields map;
  int64_t start[EMULATOR_TENSOR_RANK];
  int unit;                         // bytes from element to element of a row: an element's, or a slice's
  int count;                        // units of a row
  int outer;                        // the first dimension outside of a row: 1, or 0 if rows are single slices
  Axis axes[EMULATOR_TENSOR_RANK];  // from that dimension on
  int element;                      // bytes
  uint32_t row, pitch, rows;        // bytes of a row, from row to row, and how many rows
} Box;

// ---- the tensor map ----

static bool bad_map(Warp *warp, const Inst *inst, int lane, uint64_t address, const char *detail) {
  hazard_stop(warp, inst, lane, HAZARD_TENSOR_MAP, address, EMULATOR_TENSOR_MAP_BYTES, "%s", detail);
  return false;
}

// Reads the map at a generic address. False after a report.
static bool read_map(Warp *warp, const Inst *inst, int lane, uint64_t address, TensorMapFields *map) {
  const TensorPlan *plan = inst->extra;
  uint64_t window = address & ~WINDOW_MASK;
  if (window == LOCAL_WINDOW)
    return bad_map(
        warp, inst, lane, address,
        "the tensor map is in local memory, a thread's copy of the parameter: declare it const __grid_constant__");
  if (window == SHARED_WINDOW)
    return bad_map(warp, inst, lane, address,
                   "a tensor map is in parameter, constant or global memory, not in shared memory");
  if (address % TENSOR_MAP_ALIGNMENT)
    return bad_map(warp, inst, lane, address, "the tensor map's address is not a multiple of 64");
  Access access;
  if (!memory_find(warp, inst, lane, SPACE_GENERIC, address, EMULATOR_TENSOR_MAP_BYTES, 1, ACCESS_READ, &access))
    return false;
  bool decoded = tensor_map_decode(access.data, map);
  map_fences_check(warp, inst, lane, &access, map);
  if (!decoded) return bad_map(warp, inst, lane, address, "these 128 bytes are no tensor map of this device");
  if (plan->im2col != (map->pixels > 0))
    return bad_map(warp, inst, lane, address,
                   plan->im2col ? "the instruction copies in im2col mode, the map is made for tile mode"
                                : "the instruction copies in tile mode, the map is made for im2col mode");
  if (map->rank == plan->rank) return true;
  char detail[80];
  snprintf(detail, sizeof detail, "the map has %d dimension%s, the instruction %d", map->rank,
           map->rank == 1 ? "" : "s", plan->rank);
  return bad_map(warp, inst, lane, address, detail);
}

// ---- boxes ----

// An interleaved layout's dimension of slices; otherwise none.
static bool is_slices(const TensorMapFields *map, int d) { return map->interleave && d == map->rank - 2; }

// Sets the rows of a box in tile mode, whose coordinates are set.
static void set_tile(Box *box) {
  uint64_t rows = 1;
  for (int d = box->outer; d < box->map.rank; d++) {
    int64_t start = box->start[d], step = box->map.element_stride[d];
    int64_t size = is_slices(&box->map, d) ? 1 : box->map.box[d];
    box->axes[d] = (Axis){.start = start, .first = start, .last = start + size - 1, .step = step};
    rows *= (uint64_t)((size + step - 1) / step);
  }
  box->rows = rows < MOST_ROWS ? (uint32_t)rows : MOST_ROWS;  // beyond any shared memory, as much more would be
}

// The dimensions of pixels are those of im2col mode's corners: corner i belongs to dimension i + outer.
static int pixel_dimensions(const TensorMapFields *map) { return map->rank - 2; }

// The offset along pixel dimension i. The copy gets all of them in 16 bits, where ptxas has put them: with four
// dimensions the low byte of each, with five a sum of 5 bits each, in which one that is too large carries into the
// next.
static int64_t pixel_offset(Warp *warp, const TensorPlan *plan, int lane, int i) {
  if (!plan->has_offsets) return 0;
  if (plan->rank < 5) return SLOT(warp, plan->offsets[i], const u16)[lane] & (plan->rank == 3 ? 0xffff : 0xff);
  u32 packed = 0;
  for (int k = 0; k < 3; k++) packed += (u32)SLOT(warp, plan->offsets[k], const u16)[lane] << 5 * k;
  return packed >> 5 * i & 0x1f;
}

// The same in im2col mode. The images, the last dimension, have no end.
static void set_pixels(Box *box, Warp *warp, const TensorPlan *plan, int lane) {
  const TensorMapFields *map = &box->map;
  int images = map->rank - 1, slices = map->rank - 2;
  for (int i = 0; i < pixel_dimensions(map); i++) {
    int d = i + box->outer;
    box->axes[d] = (Axis){.start = box->start[d],
                          .first = map->lower[i],
                          .last = (int64_t)map->last[d] + map->upper[i],
                          .step = map->element_stride[d],
                          .offset = pixel_offset(warp, plan, lane, i)};
  }
  if (map->interleave)
    box->axes[slices] =
        (Axis){.start = box->start[slices], .first = box->start[slices], .last = box->start[slices], .step = 1};
  box->axes[images] = (Axis){.start = box->start[images], .last = INT64_MAX, .step = map->element_stride[images]};
  box->rows = map->pixels;
}

static Box make_box(Warp *warp, const TensorPlan *plan, int lane, const TensorMapFields *map) {
  bool slices = map->interleave && (plan->im2col || map->element_stride[0] > 1);
  Box box = {.map = *map, .element = tensor_element_size(map->type), .outer = !slices};
  box.unit = map->interleave ? map->interleave : box.element;
  box.count = slices ? 1 : map->box[0];
  for (int d = 0; d < plan->rank; d++) box.start[d] = SLOT(warp, plan->coordinates[d], const s32)[lane];
  if (plan->im2col)
    set_pixels(&box, warp, plan, lane);
  else
    set_tile(&box);
  uint32_t span = (uint32_t)tensor_swizzle_span(map->swizzle);
  box.row = (uint32_t)(box.count * box.unit);
  box.pitch = span && !map->interleave ? span : box.row;
  return box;
}

// Where a byte of the box lies once swizzled: addresses are those of the block's shared memory.
static uint64_t swizzled_address(const Box *box, uint64_t address) {
  uint64_t units = (uint64_t)tensor_swizzle_span(box->map.swizzle) / UNIT;
  return units ? address ^ ((address >> 7 & (units - 1)) << 4) : address;
}

// Adds bytes [from, to) of a row that starts at `address` in shared memory. other: those bytes in global memory, NULL
// when they are filled.
static void add_bytes(Pieces *pieces, const Box *box, const Region *shared, uint64_t address, uint32_t from,
                      uint32_t to, const Access *other) {
  bool whole = box->map.swizzle == EMULATOR_SWIZZLE_NONE;
  Access part = other ? *other : (Access){0};
  while (from < to) {
    uint32_t end = whole ? to : (from / UNIT + 1) * UNIT;
    if (end > to) end = to;
    pieces_add(pieces, other ? &part : NULL, swizzled_address(box, address + from) - shared->base, end - from);
    part.offset += end - from;
    from = end;
  }
}

// Goes on to the next row.
static void next_row(const Box *box, int64_t at[EMULATOR_TENSOR_RANK]) {
  for (int d = box->outer; d < box->map.rank; d++) {
    at[d] += box->axes[d].step;
    if (at[d] <= box->axes[d].last) return;
    at[d] = box->axes[d].first;
  }
}

// Whether a row is inside the tensor along the dimensions outside of it. *address is that of its first dimension's
// element 0, or would be.
static bool row_address(const Box *box, const int64_t at[EMULATOR_TENSOR_RANK], uint64_t *address) {
  bool inside = true;
  *address = box->map.address;
  for (int d = box->outer; d < box->map.rank; d++) {
    int64_t element = at[d] + box->axes[d].offset;
    inside &= element >= 0 && element <= box->map.last[d];
    *address += (uint64_t)element * (d ? box->map.stride[d] : box->map.interleave);
  }
  return inside;
}

// Which bytes of a row lie inside the tensor's first dimension.
static void clip_row(const Box *box, bool loads, uint32_t *from, uint32_t *to) {
  *from = 0;
  *to = box->row;
  if (!box->outer) return;
  int64_t start = box->start[0], size = (int64_t)box->map.last[0] + 1;
  // A store ends only where the row's last 16 bytes end, though the tensor may end inside them: so an H200 does.
  if (!loads) size = (size * box->unit + UNIT - 1) / UNIT * UNIT / box->unit;
  int64_t low = -start, high = size - start;
  if (low < 0) low = 0;
  if (low > box->count) low = box->count;
  if (high < low) high = low;
  if (high > box->count) high = box->count;
  *from = (uint32_t)(low * box->unit);
  *to = (uint32_t)(high * box->unit);
}

// Collects the pieces of a box whose first byte in shared memory is `place`. A load moves sectors outside the tensor
// too, a store does not: so an H200 counts. False after a report.
static bool collect_pieces(Warp *warp, const Inst *inst, int lane, const Box *box, const Access *place, bool loads,
                           Pieces *pieces) {
  const Region *shared = place->region;
  Route route = ((const TensorPlan *)inst->extra)->multicast ? ROUTE_MULTICAST : ROUTE_GLOBAL;
  int64_t at[EMULATOR_TENSOR_RANK];
  for (int d = box->outer; d < box->map.rank; d++) at[d] = box->axes[d].start;
  for (uint32_t row = 0; row < box->rows; row++, next_row(box, at)) {
    uint64_t shared_address = shared->base + place->offset + (uint64_t)row * box->pitch, address;
    uint32_t from, to;
    bool inside = row_address(box, at, &address);
    clip_row(box, loads, &from, &to);
    if (box->outer) address += (uint64_t)box->start[0] * (uint64_t)box->unit;
    if (loads) pieces_add_sectors(pieces, address, shared_address, box->row, route);
    if (from == to || !inside) {
      if (loads) add_bytes(pieces, box, shared, shared_address, 0, box->row, NULL);
      continue;
    }
    Access other;
    address += from;
    if (!loads) pieces_add_sectors(pieces, address, shared_address + from, to - from, ROUTE_GLOBAL);
    if (!memory_find(warp, inst, lane, SPACE_GLOBAL, address, (int)(to - from), 1, loads ? ACCESS_READ : ACCESS_WRITE,
                     &other))
      return false;
    if (loads) add_bytes(pieces, box, shared, shared_address, 0, from, NULL);
    add_bytes(pieces, box, shared, shared_address, from, to, &other);
    if (loads) add_bytes(pieces, box, shared, shared_address, to, box->row, NULL);
  }
  return true;
}

// ---- modes ----

// A load of .tf32 rounds to the nearest, ties to even. A NaN becomes this one, and subnormals stay, of .tf32ftz too: so
// an H200 does.
static u32 round_tf32(u32 bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fffe000;
  return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

// What a load fills elements outside the tensor with: zero, or a quiet NaN, which an H200 makes of 16 bits again and
// again.
static BulkMode load_mode(const Box *box) {
  BulkMode mode = {.element = box->element};
  if (box->map.fill_nan) mode.fill = 0x7ff77ff77ff77ff7ull >> (64 - 8 * box->element);
  if (box->map.type == EMULATOR_TENSOR_TF32 || box->map.type == EMULATOR_TENSOR_TF32_FTZ) mode.convert = round_tf32;
  return mode;
}

// What a reduction does with the tensor's elements, NULL if it does not exist: there are bitwise ones of .u32, .s32 and
// .u64 alone, and .s64 cannot be added. So an H200 does.
static Combine *combine_of(const char *operation, EmulatorTensorType type) {
  static const PtxType types[] = {
      [EMULATOR_TENSOR_U8] = PTX_U8,        [EMULATOR_TENSOR_U16] = PTX_U16,     [EMULATOR_TENSOR_U32] = PTX_U32,
      [EMULATOR_TENSOR_S32] = PTX_S32,      [EMULATOR_TENSOR_U64] = PTX_U64,     [EMULATOR_TENSOR_S64] = PTX_S64,
      [EMULATOR_TENSOR_F16] = PTX_F16,      [EMULATOR_TENSOR_BF16] = PTX_BF16,   [EMULATOR_TENSOR_F32] = PTX_F32,
      [EMULATOR_TENSOR_F64] = PTX_F64,      [EMULATOR_TENSOR_F32_FTZ] = PTX_F32, [EMULATOR_TENSOR_TF32] = PTX_F32,
      [EMULATOR_TENSOR_TF32_FTZ] = PTX_F32,
  };
  bool bitwise = !strcmp(operation, "and") || !strcmp(operation, "or") || !strcmp(operation, "xor");
  bool flushes = type == EMULATOR_TENSOR_F32_FTZ || type == EMULATOR_TENSOR_TF32_FTZ;
  if (bitwise && (type == EMULATOR_TENSOR_U32 || type == EMULATOR_TENSOR_S32))
    return reduction_find(operation, PTX_B32, true);
  if (bitwise) return type == EMULATOR_TENSOR_U64 ? reduction_find(operation, PTX_B64, true) : NULL;
  if (!strcmp(operation, "add") && type == EMULATOR_TENSOR_S64) return NULL;
  Combine *combine = reduction_find(operation, types[type], true);
  return flushes ? reduction_flushing(combine) : combine;
}

// False after a report.
static bool reduce_mode(Warp *warp, const Inst *inst, int lane, const Box *box, BulkMode *mode) {
  const TensorPlan *plan = inst->extra;
  *mode = (BulkMode){.element = box->element};
  if (!plan->reduction) return true;
  mode->combine = combine_of(plan->reduction, (EmulatorTensorType)box->map.type);
  if (mode->combine) return true;
  return bad_map(warp, inst, lane, box->map.address, "the reduction does not exist for the element type of the map");
}

// ---- execution ----

// The next functions check the first element of a box. An H200 reports a copy that breaks one of their rules as an
// illegal instruction, and the kernel stops. To them a reduction is a store, and a prefetch is a load. notes/tma.md has
// the measurements. Each function returns false after a report.

// Without interleave a box begins at a multiple of 16 bytes in its rows.
static bool check_row_start(Warp *warp, const Inst *inst, int lane, const Box *box) {
  int64_t start = box->start[0];
  if (box->map.interleave || start * box->element % UNIT == 0) return true;
  hazard_stop(
      warp, inst, lane, HAZARD_MISALIGNED, 0, 0,
      "the innermost coordinate %lld times %d bytes is not a multiple of %d: the kernel stops, as an H200 does\n"
      "Begin the box at a coordinate whose bytes are a multiple of %d: copy a wider box and skip its first columns.",
      (long long)start, box->element, UNIT, UNIT);
  return false;
}

// A store does not begin before the tensor's first element along any dimension.
static bool check_store_start(Warp *warp, const Inst *inst, int lane, const Box *box) {
  int before = 0;
  for (int d = 0; d < box->map.rank; d++) before += box->start[d] < 0;
  if (!before) return true;
  hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, 0, 0,
              "a store's coordinates must not be negative, and %d of these %s: the kernel stops, as an H200 does\n"
              "Begin the box at 0, or store this part with ordinary stores: only a load may begin before the tensor.",
              before, before == 1 ? "is" : "are");
  return false;
}

// In im2col mode the first pixel's place is inside the map's box; and a store's map has all its box inside the tensor.
static bool check_first_pixel(Warp *warp, const Inst *inst, int lane, const Box *box, bool loads) {
  const TensorMapFields *map = &box->map;
  for (int i = 0; i < pixel_dimensions(map); i++) {
    int d = i + box->outer;
    const Axis *axis = &box->axes[d];
    bool starts = axis->start >= axis->first && axis->start <= axis->last;
    if (starts && (loads || (map->lower[i] >= 0 && map->upper[i] <= 0))) continue;
    hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, 0, 0,
                starts
                    ? "the map's box of pixels, %lld to %lld in dimension %d, reaches out of the tensor, which is for "
                      "loads: the kernel stops, as an H200 does"
                    : "the map's box of pixels is %lld to %lld in dimension %d, and the first pixel %lld: the kernel "
                      "stops, as an H200 does",
                (long long)axis->first, (long long)axis->last, d, (long long)axis->start);
    return false;
  }
  return true;
}

static bool check_box_start(Warp *warp, const Inst *inst, int lane, const Box *box, bool loads) {
  if (!check_row_start(warp, inst, lane, box)) return false;
  if (!loads && !check_store_start(warp, inst, lane, box)) return false;
  return !box->map.pixels || check_first_pixel(warp, inst, lane, box, loads);
}

// A tile under a swizzle that begins where its pattern does not. The bits that are swizzled are the address's, and a
// program that swizzles offsets in its tile reads other bytes. A box of less than a whole pattern may be a part of a
// tile that begins with one; and what wgmma reads it swizzles as the copy does. Once a launch.
static void check_swizzle(Warp *warp, const Inst *inst, int lane, const Box *box, const Access *place, bool loads) {
  Launch *launch = warp_launch(warp);
  uint32_t span = (uint32_t)tensor_swizzle_span((EmulatorTensorSwizzle)box->map.swizzle), pattern = 8 * span;
  uint32_t bytes = box->rows * box->pitch;
  if (!span || !launch->check.on || (loads && launch->program->watched)) return;
  uint64_t address = place->region->base + place->offset, behind = address % pattern;
  if (!behind || (bytes < pattern && address % bytes == 0)) return;
  if (launch->noted_swizzle && launch->noted_swizzle != inst) return;
  launch->noted_swizzle = inst;
  hazard_report_graded(HAZARD_NOTE, warp, inst, lane, HAZARD_MISALIGNED, address, (int)bytes,
                       "the tile is under a %u-byte swizzle and does not begin at a multiple of %u. The copy swizzles "
                       "bits of the address "
                       "in shared memory, so an offset in the tile that is swizzled alone leads to other bytes\n"
                       "Align the tile to %u bytes; or XOR bits of the address, and not of the offset, where the "
                       "program reads or writes "
                       "it.",
                       span, pattern, pattern);
}

// The box that a lane names, with where it begins in shared memory, which a load writes. False after a report.
static bool find_box(Warp *warp, const Inst *inst, int lane, uint64_t map_address, uint64_t shared_address,
                     AccessKind kind, Box *box, Access *place) {
  TensorMapFields map;
  if (!read_map(warp, inst, lane, map_address, &map)) return false;
  *box = make_box(warp, inst->extra, lane, &map);
  if (!check_box_start(warp, inst, lane, box, kind == ACCESS_WRITE)) return false;
  if (!memory_find(warp, inst, lane, SPACE_SHARED, shared_address, (int)(box->rows * box->pitch), SHARED_ALIGNMENT,
                   kind, place))
    return false;
  check_swizzle(warp, inst, lane, box, place, kind == ACCESS_WRITE);
  return true;
}

// Loads the box into one block's shared memory. again: after that to another block of a multicast.
static bool load_box(Warp *warp, const Inst *inst, int lane, uint64_t map_address, uint64_t shared_address,
                     uint64_t mbarrier_address, bool again) {
  Box box;
  Access place;
  if (!find_box(warp, inst, lane, map_address, shared_address, ACCESS_WRITE, &box, &place)) return false;
  Mbarrier *mbarrier = mbarrier_of_copy(warp, inst, lane, SPACE_SHARED, mbarrier_address, place.region);
  Pieces pieces = {0};
  bool done = mbarrier && collect_pieces(warp, inst, lane, &box, &place, true, &pieces);
  BulkMode mode = load_mode(&box);
  mode.again = again;
  if (done) bulk_issue_load(warp, inst, lane, &pieces, place.region, mbarrier, box.rows * box.row, mode);
  pieces_free(&pieces);
  return done;
}

// Loads the same box to the same place in each block of the mask.
static bool multicast_box(Warp *warp, const Inst *inst, int lane, u32 ranks, uint64_t map_address,
                          uint64_t shared_address, uint64_t mbarrier_address) {
  if (!bulk_check_ranks(warp, inst, lane, ranks)) return false;
  for (u32 rest = ranks; rest; rest &= rest - 1) {
    int rank = __builtin_ctz(rest);
    if (!load_box(warp, inst, lane, map_address, bulk_address_in(shared_address, rank),
                  bulk_address_in(mbarrier_address, rank), rest != ranks))
      return false;
  }
  return true;
}

static void execute_tensor_load(Warp *warp, const Inst *inst, Mask mask) {
  const TensorPlan *plan = inst->extra;
  uint64_t maps[LANES], to[LANES], mbarriers[LANES];
  form_addresses(warp, &plan->map, mask, maps);
  form_addresses(warp, &plan->shared, mask, to);
  form_addresses(warp, &plan->mbarrier, mask, mbarriers);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    bool done = plan->multicast ? multicast_box(warp, inst, lane, SLOT(warp, plan->ranks, const u16)[lane], maps[lane],
                                                to[lane], mbarriers[lane])
                                : load_box(warp, inst, lane, maps[lane], to[lane], mbarriers[lane], false);
    if (!done) return;
  }
}

// Stores the box for the lanes, which name the same one.
static bool store_box(Warp *warp, const Inst *inst, Mask lanes, uint64_t map_address, uint64_t shared_address) {
  int lane = __builtin_ctz(lanes);
  Box box;
  Access place;
  BulkMode mode;
  if (!find_box(warp, inst, lane, map_address, shared_address, ACCESS_READ, &box, &place)) return false;
  if (!reduce_mode(warp, inst, lane, &box, &mode)) return false;
  Pieces pieces = {0};
  bool done = collect_pieces(warp, inst, lane, &box, &place, false, &pieces);
  if (done) bulk_issue_store(warp, inst, lanes, &pieces, place.region, mode);
  pieces_free(&pieces);
  return done;
}

static void execute_tensor_store(Warp *warp, const Inst *inst, Mask mask) {
  const TensorPlan *plan = inst->extra;
  uint64_t maps[LANES], from[LANES];
  form_addresses(warp, &plan->map, mask, maps);
  form_addresses(warp, &plan->shared, mask, from);
  for (Mask rest = mask, same; rest; rest &= ~same) {
    int lane = __builtin_ctz(rest);
    same = plan->reduction ? rest & -rest : bulk_alike(bulk_alike(rest, maps, sizeof *maps), from, sizeof *from);
    for (int d = 0; d < plan->rank; d++)
      same = bulk_alike(same, SLOT(warp, plan->coordinates[d], const u32), sizeof(u32));
    if (!store_box(warp, inst, same, maps[lane], from[lane])) return;
  }
}

// A prefetch into the L2 cache moves nothing that a program sees; its map and its box are those of a load all the same.
static void execute_tensor_prefetch(Warp *warp, const Inst *inst, Mask mask) {
  const TensorPlan *plan = inst->extra;
  uint64_t maps[LANES];
  TensorMapFields map;
  form_addresses(warp, &plan->map, mask, maps);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (!read_map(warp, inst, lane, maps[lane], &map)) return;
    Box box = make_box(warp, plan, lane, &map);
    if (!check_box_start(warp, inst, lane, &box, true)) return;
  }
}

// ---- decoding ----

// [map, {coordinates}]
static DecodeResult decode_box(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand,
                               TensorPlan *plan) {
  if (operand->kind != PTX_OPERAND_ADDRESS || operand->item_count != 2 || operand->items[1].kind != PTX_OPERAND_VECTOR)
    return decoder_error(decoder, source, "needs [map, {coordinates}]");
  const PtxOperand *coordinates = &operand->items[1];
  if (coordinates->item_count != plan->rank)
    return decoder_error(decoder, source, "needs %d coordinate%s, has %d", plan->rank, plan->rank == 1 ? "" : "s",
                         coordinates->item_count);
  for (int d = 0; d < plan->rank; d++) plan->coordinates[d] = decoder_source(decoder, &coordinates->items[d], PTX_B32);
  PtxOperand map = *operand;
  map.item_count = 1;
  return decode_address_plan(decoder, source, &map, SPACE_GENERIC, &plan->map);
}

// {offsets} of im2col mode, one for each dimension between the channels and the images.
static bool decode_offsets(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand,
                           TensorPlan *plan) {
  int count = plan->rank - 2;
  if (operand->kind != PTX_OPERAND_VECTOR || operand->item_count != count)
    return decoder_error(decoder, source, "needs %d im2col offset%s in braces", count, count == 1 ? "" : "s"), false;
  for (int i = 0; i < count; i++) plan->offsets[i] = decoder_source(decoder, &operand->items[i], PTX_B16);
  return true;
}

static int tensor_rank(const PtxInstruction *source) {
  static const char *const names[] = {"1d", "2d", "3d", "4d", "5d"};
  for (int i = 0; i < EMULATOR_TENSOR_RANK; i++)
    if (ptx_has(source, names[i])) return i + 1;
  return 0;
}

// What loads, stores and prefetches have in common: their modifiers, the number of dimensions and the mode. operands:
// what they have without a cache policy; of these the im2col offsets, if there are any, are number `offsets`. NULL
// after an error.
static TensorPlan *decode_tensor_plan(Decoder *decoder, const PtxInstruction *source, int operands, int offsets,
                                      Inst *inst) {
  // clang-format off
  static const char *const allowed[] = {
      "reduce", "async", "bulk", "tensor", "prefetch", "1d", "2d", "3d", "4d", "5d", "tile", "im2col", "im2col_no_offs",
      "L2", "shared::cluster", "shared::cta", "global", "mbarrier::complete_tx::bytes", "bulk_group",
      "multicast::cluster", "L2::cache_hint", "add", "min", "max", "inc", "dec", "and", "or", "xor", NULL};
  // clang-format on
  if (!decoder_modifiers(decoder, source, allowed)) return NULL;
  TensorPlan *plan = decoder_allocate(decoder, sizeof *plan);
  plan->rank = tensor_rank(source);
  inst->extra = plan;
  if (!plan->rank) {
    decoder_error(decoder, source, "needs a number of dimensions, .1d to .5d");
    return NULL;
  }
  bool hint = ptx_has(source, "L2::cache_hint");
  plan->has_offsets = ptx_has(source, "im2col");
  plan->im2col = plan->has_offsets || ptx_has(source, "im2col_no_offs");
  if (plan->im2col && plan->rank < 3) {
    decoder_error(decoder, source, "im2col mode needs 3 to 5 dimensions");
    return NULL;
  }
  operands += plan->has_offsets + hint;
  if (!decoder_operands(decoder, source, operands, operands)) return NULL;
  if (plan->has_offsets && !decode_offsets(decoder, source, &source->operands[offsets], plan)) return NULL;
  if (hint) decoder_source(decoder, &source->operands[source->operand_count - 1], PTX_B64);
  return plan;
}

// cp.async.bulk.tensor.2d.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes [to], [map, {x, y}], [mbarrier]{,
// ranks}{, policy};
// cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [to], [map, {c, w, h, n}],
// [mbarrier], {w, h}{, ranks}{, policy};
DecodeResult decode_tensor_load(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  TensorPlan *plan = decode_tensor_plan(decoder, source, 3 + ptx_has(source, "multicast::cluster"), 3, inst);
  if (!plan) return DECODE_FAILED;
  decoder->program->asynchronous = true;
  if (ptx_has(source, "im2col_no_offs")) return decoder_error(decoder, source, ".im2col_no_offs is for stores");
  if (!ptx_has(source, "mbarrier::complete_tx::bytes"))
    return decoder_error(decoder, source, "completes on .mbarrier::complete_tx::bytes or .bulk_group");
  if (!ptx_has(source, "global") || !(ptx_has(source, "shared::cluster") || ptx_has(source, "shared::cta")))
    return decoder_error(decoder, source, "copies from .global to .shared::cluster");
  plan->multicast = ptx_has(source, "multicast::cluster");
  if (plan->multicast) plan->ranks = decoder_source(decoder, &source->operands[3 + plan->has_offsets], PTX_B16);
  inst->execute = execute_tensor_load;
  if (decode_address_plan(decoder, source, &source->operands[0], SPACE_SHARED, &plan->shared) != DECODED)
    return DECODE_FAILED;
  if (decode_address_plan(decoder, source, &source->operands[2], SPACE_SHARED, &plan->mbarrier) != DECODED)
    return DECODE_FAILED;
  return decode_box(decoder, source, &source->operands[1], plan);
}

// cp{.reduce}.async.bulk.tensor.2d.global.shared::cta{.OPERATION}{.MODE}.bulk_group [map, {x, y}], [from]{, policy};
// The mode is .tile or .im2col_no_offs.
DecodeResult decode_tensor_store(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  TensorPlan *plan = decode_tensor_plan(decoder, source, 2, 2, inst);
  if (!plan) return DECODE_FAILED;
  decoder->program->asynchronous = true;
  if (!ptx_has(source, "global") || !ptx_has(source, "shared::cta"))
    return decoder_error(decoder, source, "copies from .shared::cta to .global");
  if (plan->has_offsets) return decoder_error(decoder, source, ".im2col is for loads, .im2col_no_offs for stores");
  plan->reduction = bulk_reduction_name(source);
  if (ptx_has(source, "reduce") != (plan->reduction != NULL))
    return decoder_error(decoder, source, "a reduction, and it alone, names an operation");
  inst->execute = execute_tensor_store;
  if (decode_address_plan(decoder, source, &source->operands[1], SPACE_SHARED, &plan->shared) != DECODED)
    return DECODE_FAILED;
  return decode_box(decoder, source, &source->operands[0], plan);
}

// cp.async.bulk.prefetch.tensor.2d.L2.global{.tile} [map, {x, y}]{, policy};
// cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [map, {c, w, h, n}], {w, h}{, policy};
DecodeResult decode_tensor_prefetch(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  TensorPlan *plan = decode_tensor_plan(decoder, source, 1, 1, inst);
  if (!plan) return DECODE_FAILED;
  inst->execute = execute_tensor_prefetch;
  return decode_box(decoder, source, &source->operands[0], plan);
}
