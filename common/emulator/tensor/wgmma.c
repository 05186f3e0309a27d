// wgmma: the warpgroup's asynchronous matrix multiply. PTX ISA 9.7.16.
//
// A warpgroup is four warps; each executes the instruction and owns 16 of the 64 rows. Here each warp issues an
// operation of its own, which computes its rows; as far as races go the last of them reads all of A and B, for all
// four. They are complete together: groups are groups of the warpgroup (PTX ISA 9.7.16.7.2), and a warp that has
// waited for one knows of all four parts, as kernels rely on in which one thread of a warpgroup hands a buffer back.
#include <string.h>

#include "../report/hazard.h"
#include "../warp/lanes.h"
#include "../warp/warp.h"
#include "families.h"
#include "warpgroup.h"
#include "wgmma_registers.h"

// Where an accumulator comes from that was in flight when it was issued.
typedef struct WgmmaSource {
  AsyncOp *op;  // an earlier wgmma whose result it is; NULL when it was in a register
  uint32_t element;
} WgmmaSource;

// What an operation in flight holds.
typedef struct WgmmaWork {
  bool accumulate;
  MatrixDescriptor a, b;
  uint32_t a_registers[4][LANES], metadata[LANES];
  uint32_t (*values)[LANES];  // accumulators: as they were at issue, or as `sources` will give them; then the results
  WgmmaSource *sources;
} WgmmaWork;

// ---- where a register's elements are in D and A, PTX ISA figures "WGMMA .m64nNk16 register fragment layout" ----

// A pair is two neighbours of a row: of fp32 in registers 2 p and 2 p + 1 of a lane, of fp16 in register p. Returns
// where a lane's is in a matrix of rows of MAX_N: the row (in the warp's 16) times MAX_N, plus the column.
ALWAYS_INLINE int pair_place(int pair, int lane) {
  return (lane / 4 + 8 * (pair % 2)) * MAX_N + 8 * (pair / 2) + 2 * (lane % 4);
}

void wgmma_place(int lane, int number, int *row, int *column) {
  int place = pair_place(number / 2, lane);
  *row = place / MAX_N;
  *column = place % MAX_N + number % 2;
}

// ---- performing: the data moves, the result arrives ----

// Copies a matrix of `rows`, a multiple of 8, from row `first` on: packed rows of `bytes` each.
static void gather(const Block *block, const MatrixDescriptor *descriptor, int first, int rows, int bytes, u8 *packed) {
  const MatrixDescriptor d = *descriptor;
  const u8 *shared = block->shared->data;
  const uint64_t base = block->shared->base;
  int depth = bytes / 2;
  for (int row = 0; row < rows && !d.mn_major; row++)
    for (int k = 0; k < depth; k += UNIT, packed += 16)
      memcpy(packed, shared + (descriptor_address(&d, first + row, k) - base), 16);
  for (int row = 0; row < rows && d.mn_major; row += 8)
    for (int k = 0; k < depth; k++) {
      const u8 *eight = shared + (descriptor_address(&d, first + row, k) - base);
      for (int i = 0; i < 8; i++) memcpy(packed + (row + i) * bytes + 2 * k, eight + 2 * i, 2);
    }
}

// A's fragment: register r of a lane holds four bytes of row lane / 4 (+ 8), from byte 4 * (lane % 4) (+ 16) on.
static void unpack_a(const WgmmaWork *work, u8 *packed) {
  for (int lane = 0; lane < LANES; lane++)
    for (int r = 0; r < 4; r++)
      memcpy(packed + (lane / 4 + 8 * (r % 2)) * A_BYTES + 4 * (lane % 4) + 16 * (r / 2), &work->a_registers[r][lane],
             4);
}

// The accumulators as they are now: what earlier operations have put into them by now, or what was there.
static void collect_inputs(WgmmaWork *work, const WgmmaPlan *plan) {
  for (int i = 0; i < plan->accumulators; i++) {
    if (!work->sources[i].op) continue;
    const WgmmaWork *source = work->sources[i].op->payload;
    memcpy(work->values[i], source->values[work->sources[i].element], sizeof work->values[i]);
    async_release(work->sources[i].op);
    work->sources[i].op = NULL;
  }
}

static bool decodes_alike(const Product *x, const Product *y) {
  return x->b == y->b && x->depth == y->depth && x->negate_b == y->negate_b;
}

// The four warps of a warpgroup use one B: the last one decoded serves again while its bytes are the same.
static const ProductOperand *decode_b(const WgmmaPlan *plan, const u8 *packed) {
  size_t size = (size_t)(plan->n * plan->b_bytes);
  ProductScratch *scratch = product_scratch();
  if (scratch->b_columns == plan->n && decodes_alike(&scratch->b_product, &plan->product) &&
      !memcmp(scratch->b_packed, packed, size))
    return &scratch->b;
  memcpy(scratch->b_packed, packed, size);
  scratch->b_columns = plan->n;
  scratch->b_product = plan->product;
  product_decode_b(&plan->product, &scratch->b, plan->n, packed);
  return &scratch->b;
}

// Moves the accumulators between the lanes and a matrix of fp16 or fp32, in rows of MAX_N. Inlined for each format, and
// unrolled so that the places are constants: it is a large part of a product's time.
ALWAYS_INLINE void move_accumulators(const WgmmaPlan *plan, WgmmaWork *work, void *matrix, size_t size, bool to_lanes) {
  const int registers = size == sizeof(u16) ? 1 : 2;  // of a pair
  for (int pair = 0; pair < plan->accumulators / registers; pair++) {
    u8 *corner = (u8 *)matrix + (size_t)pair_place(pair, 0) * size;
    u32(*values)[LANES] = &work->values[pair * registers];
    _Pragma("GCC unroll 32") for (int lane = 0; lane < LANES; lane++) {
      u8 *elements = corner + (size_t)pair_place(0, lane) * size;
      for (int i = 0; i < registers; i++)
        memcpy(to_lanes ? (u8 *)&values[i][lane] : elements + 4 * i,
               to_lanes ? elements + 4 * i : (u8 *)&values[i][lane], 4);
    }
  }
}

static void multiply_matrices(const WgmmaPlan *plan, WgmmaWork *work, const ProductOperand *a,
                              const ProductOperand *b) {
  union {
    u32 wide[WARP_ROWS][MAX_N];
    u16 f16[WARP_ROWS][MAX_N];
  } d;
  if (plan->half_accumulators) {
    if (work->accumulate) move_accumulators(plan, work, &d, sizeof(u16), false);
    product_multiply(&plan->product, a, b, &d, MAX_N, work->accumulate);
    move_accumulators(plan, work, &d, sizeof(u16), true);
  } else {
    if (work->accumulate) move_accumulators(plan, work, &d, sizeof(u32), false);
    product_multiply(&plan->product, a, b, &d, MAX_N, work->accumulate);
    move_accumulators(plan, work, &d, sizeof(u32), true);
  }
}

static void perform_wgmma(Cluster *cluster, AsyncOp *op) {
  (void)cluster;
  const WgmmaPlan *plan = op->inst->extra;
  WgmmaWork *work = op->payload;
  _Alignas(16) u8 a_packed[WARP_ROWS * A_BYTES], b_packed[MAX_N * MAX_B_BYTES];
  ProductOperand *a = &product_scratch()->a;
  SparsePlaces places;
  if (plan->a_in_registers)
    unpack_a(work, a_packed);
  else
    gather(op->warp->block, &work->a, op->warp->index % WARPGROUP_WARPS * WARP_ROWS, WARP_ROWS, A_BYTES, a_packed);
  gather(op->warp->block, &work->b, 0, plan->n, plan->b_bytes, b_packed);
  if (plan->product.sparse) product_places(&plan->product, work->metadata, plan->selector, &places);
  product_decode_a(&plan->product, a, WARP_ROWS, a_packed, plan->product.sparse ? &places : NULL);
  const ProductOperand *b = decode_b(plan, b_packed);
  collect_inputs(work, plan);
  multiply_matrices(plan, work, a, b);
  op->warp->wgmma->performed = op->number;
  registers_receive(op->warp, op->number, work->values);
}

// A launch that stopped leaves operations that are never performed.
static void discard_wgmma(AsyncOp *op) {
  const WgmmaPlan *plan = op->inst->extra;
  WgmmaWork *work = op->payload;
  for (int i = 0; i < plan->accumulators; i++)
    if (work->sources[i].op) async_release(work->sources[i].op);
}

// ---- issue ----

static bool bad_descriptor(Warp *warp, const Inst *inst, const char *which, uint64_t bits, const char *what) {
  hazard_stop(warp, inst, 0, HAZARD_DESCRIPTOR, bits, 0, "descriptor of %s 0x%016llx: %s", which,
              (unsigned long long)bits, what);
  return false;
}

// Decodes a descriptor, checks it and its memory's bounds: `rows` of `bytes` each. False when the launch cannot go on.
static bool decode_operand(Warp *warp, const Inst *inst, const char *which, uint64_t bits, int rows, int bytes,
                           bool mn_major, MatrixDescriptor *d) {
  descriptor_decode(bits, mn_major, d);
  DescriptorFinding finding = descriptor_check(bits, d);
  if (finding.text && finding.grade == HAZARD_FAULT) return bad_descriptor(warp, inst, which, bits, finding.text);
  if (finding.text)
    hazard_report_graded(finding.grade, warp, inst, 0, HAZARD_DESCRIPTOR, bits, 0, "descriptor of %s 0x%016llx: %s",
                         which, (unsigned long long)bits, finding.text);
  const char *misfit = descriptor_misfit(d, rows, bytes);
  if (misfit) return bad_descriptor(warp, inst, which, bits, misfit);
  const Region *shared = warp->block->shared;
  for (int mn = 0; mn < rows; mn += mn_major ? 8 : 1)
    for (int k = 0; k < bytes / 2; k += mn_major ? 1 : UNIT) {
      uint32_t address = descriptor_address(d, mn, k);
      if (address >= shared->base && address - shared->base + 16 <= shared->size) continue;
      hazard_stop(
          warp, inst, 0, HAZARD_OUT_OF_BOUNDS, address, 16,
          "the descriptor of %s, start 0x%x, leading %u, stride %u, reaches byte %lld of a block's %llu bytes of "
          "shared memory\nA descriptor has the address >> 4 and the two byte offsets >> 4: are all three shifted, and "
          "do the "
          "offsets fit the matrix?",
          which, d->start, d->leading, d->stride, (long long)address - SHARED_BASE,
          (unsigned long long)warp_launch(warp)->shared_size);
      return false;
    }
  return true;
}

// The descriptor in a slot, the same in all lanes and all warps, is that of the turn's operand 0 (A) or 1 (B). False
// after a report.
static bool take_operand(Warp *warp, const Inst *inst, WarpgroupTurn *turn, bool first, int operand) {
  static const char *const names[] = {"A", "B"};
  const WgmmaPlan *plan = inst->extra;
  const u64 *lanes = SLOT(warp, operand ? plan->b : plan->a[0], const u64);
  uint64_t bits = lanes[0], different = 0;
  for (int lane = 0; lane < LANES; lane++) different |= lanes[lane] ^ bits;
  if (different)  // lane 0's is used
    hazard_report(warp, inst, 0, HAZARD_DESCRIPTOR, bits, 0,
                  "descriptor of %s 0x%016llx: lanes of the warp hold different ones", names[operand],
                  (unsigned long long)bits);
  if (!first && turn->bits[operand] != bits)
    return bad_descriptor(warp, inst, names[operand], bits,
                          "another warp of the warpgroup gives a different one, and it is of the whole matrix");
  turn->bits[operand] = bits;
  MatrixDescriptor *d = &turn->operands[operand];
  if (!first) return true;
  return operand ? decode_operand(warp, inst, "B", bits, plan->n, plan->b_bytes, plan->b_mn_major, d)
                 : decode_operand(warp, inst, "A", bits, ROWS, A_BYTES, plan->a_mn_major, d);
}

// Remembers the reads of some rows of a matrix: in runs of bytes that follow each other.
static void read_matrix(const Actor *actor, Region *shared, const MatrixDescriptor *d, int first, int rows, int bytes) {
  uint32_t start = 0, end = 0;
  for (int mn = first; mn < first + rows; mn += d->mn_major ? 8 : 1)
    for (int k = 0; k < bytes / 2; k += d->mn_major ? 1 : UNIT) {
      uint32_t address = descriptor_address(d, mn, k);
      if (address == end) {
        end += 16;
        continue;
      }
      if (address + 16 == start) {
        start = address;
        continue;
      }
      if (end > start) race_read_by(actor, shared, start - shared->base, (int)(end - start));
      start = address;
      end = address + 16;
    }
  if (end > start) race_read_by(actor, shared, start - shared->base, (int)(end - start));
}

static AsyncOp *find_wgmma(Warp *warp, uint32_t number) {
  const GroupQueue *queue = async_groups(warp, GROUP_WGMMA);
  for (int i = queue->count - 1; i >= 0; i--)
    if (queue->entries[i].op->number == number) return queue->entries[i].op;
  return NULL;
}

// The last of the four warps has executed the turn: as far as races go, its operation now reads A and B, after what all
// four warps know of. For each warp's own rows of A it is formal if only that warp knows, and for B if one of the four
// does.
static void read_operands(AsyncOp *op, WarpgroupTurn *turn) {
  const WgmmaPlan *plan = op->inst->extra;
  Cluster *cluster = op->warp->block->cluster;
  Clocks *known[WARPGROUP_WARPS];
  for (int i = 0; i < WARPGROUP_WARPS; i++) {
    AsyncOp *part = find_wgmma(warpgroup_warp(op->warp, i), op->number);
    known[i] = part->known;
    part->known = NULL;  // it is not needed again, and operations in flight are many
  }
  Clocks *common = clocks_common(&cluster->check, known, WARPGROUP_WARPS);
  async_make_agent(op, turn->issue);
  turn->agent = op->agent;
  turn->clock = op->clock;
  Actor actor = async_actor(op, op->lane, true);
  actor.known = common;
  actor.issuer = op->agent;  // what its own lanes have done must be known to the other warps, too
  Clocks *any = NULL;
  for (int i = 0; i < WARPGROUP_WARPS; i++) clocks_join(&cluster->check, &any, known[i]);
  Actor own = actor;
  own.known = any;
  actor.own = &own;
  actor.own_is_known = "warps of the warpgroup have written parts of B, and no barrier of the four stands between. The "
                       "product begins when all four are there, and an H200 was right (tests/rules)\n"
                       "Put a barrier of the warpgroup between the stores and the wgmma.";
  read_matrix(&actor, op->warp->block->shared, &turn->operands[1], 0, plan->n, plan->b_bytes);
  clocks_release(any);
  actor.own_is_known =
      "the other warps of the warpgroup have not synchronised with the warp that wrote these rows of A. "
      "They are its own 16 rows, and an H200 multiplies them rightly all the same (tests/rules)\n"
      "Put a barrier of the warpgroup between the stores and the wgmma.";
  for (int i = 0; i < WARPGROUP_WARPS && !plan->a_in_registers; i++) {
    own.known = known[i];
    read_matrix(&actor, op->warp->block->shared, &turn->operands[0], i * WARP_ROWS, WARP_ROWS, A_BYTES);
  }
  for (int i = 0; i < WARPGROUP_WARPS; i++) clocks_release(known[i]);
  clocks_release(common);
}

// A fence must stand between any use of an accumulator or a register of A by another instruction and its use here; the
// metadata of a sparse A needs none. PTX ISA 9.7.16.7.1.
static void check_fence(Warp *warp, const Inst *inst, const WgmmaPlan *plan) {
  const WgmmaState *state = warp->wgmma;
  int touched = 0;
  for (int i = 0; i < plan->accumulators; i++)
    touched += state->names[plan->d[i] / SLOT_UNIT].touched == state->fences + 1;
  for (int i = 0; i < 4 && plan->a_in_registers; i++)
    touched += state->names[plan->a[i] / SLOT_UNIT].touched == state->fences + 1;
  if (touched)
    hazard_report(warp, inst, 0, HAZARD_WGMMA_FENCE, 0, 0,
                  "%d of its registers %s read or written after the last wgmma.fence", touched,
                  touched == 1 ? "was" : "were");
  else if (state->fences == 0)
    hazard_report(warp, inst, 0, HAZARD_WGMMA_FENCE, 0, 0,
                  "no wgmma.fence stands before the warp's first wgmma.mma_async");
}

// The metadata of a sparse A is read as the registers of A are, and must not change while it is in flight.
static void take_metadata(AsyncOp *op, const Inst *inst, const WgmmaPlan *plan) {
  WgmmaState *state = op->warp->wgmma;
  WgmmaWork *work = op->payload;
  SparsePlaces places;
  RegisterName *name = &state->names[plan->metadata / SLOT_UNIT];
  memcpy(work->metadata, SLOT(op->warp, plan->metadata, u32), sizeof work->metadata);
  if (!product_places(&plan->product, work->metadata, plan->selector, &places))
    hazard_report(op->warp, inst, 0, HAZARD_DESCRIPTOR, 0, 0, "the metadata of a sparse A does not name %s",
                  product_places_rule(&plan->product));
  if (register_in_flight(state, plan->metadata))
    hazard_report(op->warp, inst, 0, HAZARD_REGISTER_IN_FLIGHT, 0, 0,
                  "its metadata is an accumulator of a wgmma in flight");
  name->read_by = op->number;
  name->used = state->fences + 1;
}

// Takes the accumulators, which from now on name this operation's results, and the A registers.
static void name_registers(AsyncOp *op, const Inst *inst, const WgmmaPlan *plan) {
  Warp *warp = op->warp;
  WgmmaState *state = warp->wgmma;
  WgmmaWork *work = op->payload;
  for (int i = 0; i < 4 && plan->a_in_registers; i++) {
    RegisterName *name = &state->names[plan->a[i] / SLOT_UNIT];
    if (register_in_flight(state, plan->a[i]))
      hazard_report(warp, inst, 0, HAZARD_REGISTER_IN_FLIGHT, 0, 0,
                    "its A register is an accumulator of a wgmma in flight");
    memcpy(work->a_registers[i], SLOT(warp, plan->a[i], u32), sizeof work->a_registers[i]);
    name->read_by = op->number;
    name->used = state->fences + 1;
  }
  for (int i = 0; i < plan->accumulators; i++) {
    RegisterName *name = &state->names[plan->d[i] / SLOT_UNIT];
    AsyncOp *source = name->number > state->performed ? find_wgmma(warp, name->number) : NULL;
    if (name->read_by > state->waited)
      hazard_report(warp, inst, 0, HAZARD_REGISTER_IN_FLIGHT, 0, 0,
                    "its accumulator is an A register of a wgmma in flight");
    memcpy(work->values[i], SLOT(warp, plan->d[i], u32), sizeof work->values[i]);
    if (source) {
      async_retain(source);
      work->sources[i].op = source;
      work->sources[i].element = name->element;
    }
    *name = (RegisterName){.number = op->number, .element = (uint32_t)i, .used = state->fences + 1};
  }
}

// A warp's part of the instruction: its rows of A, and a quarter of the B that serves all four. An H200's shared memory
// is busy for so many bytes, A's and B's once for the warpgroup: notes/counters.md.
static void count_wgmma(Warp *warp, const Inst *inst) {
  const WgmmaPlan *plan = inst->extra;
  InstCounts *counts = warp_counts(warp, inst);
  counts->flops += 2ull * WARP_ROWS * (uint64_t)(plan->n * plan->product.depth);
  counts->shared_read += (uint64_t)(plan->n * plan->b_bytes / WARPGROUP_WARPS);
  if (!plan->a_in_registers) counts->shared_read += WARP_ROWS * A_BYTES;
}

static AsyncOp *new_operation(Warp *warp, const Inst *inst, Mask mask, const WarpgroupTurn *turn) {
  const WgmmaPlan *plan = inst->extra;
  size_t count = (size_t)plan->accumulators;
  size_t size = sizeof(WgmmaWork) + count * (sizeof(WgmmaSource) + sizeof(uint32_t[LANES]));
  AsyncOp *op = async_issue_part(warp, inst, mask, perform_wgmma, false, size);
  WgmmaWork *work = op->payload;
  Mask scale = *SLOT(warp, plan->scale_d, const Mask) ^ (plan->scale_d_negated ? FULL_MASK : 0);
  op->discard = discard_wgmma;
  work->accumulate = (scale & mask) != 0;
  work->a = turn->operands[0];
  work->b = turn->operands[1];
  work->sources = (WgmmaSource *)(work + 1);
  work->values = (uint32_t(*)[LANES])(work->sources + count);
  return op;
}

static void execute_wgmma(Warp *warp, const Inst *inst, Mask mask) {
  const WgmmaPlan *plan = inst->extra;
  WgmmaState *state = wgmma_state(warp);
  uint32_t number = state->issued + 1;
  bool first;
  // A warp that is so far ahead of another waits for it.
  state->awaited =
      number > WARPGROUP_TURNS && !warpgroup_all_have(warp, number - WARPGROUP_TURNS) ? number - WARPGROUP_TURNS : 0;
  if (state->awaited) {
    warp_retry(warp, inst, mask);
    return;
  }
  WarpgroupTurn *turn = warpgroup_turn(warp, inst, number, &first);
  if (!turn || (!plan->a_in_registers && !take_operand(warp, inst, turn, first, 0)) ||
      !take_operand(warp, inst, turn, first, 1))
    return;
  check_fence(warp, inst, plan);
  AsyncOp *op = new_operation(warp, inst, mask, turn);
  op->number = state->issued = number;
  if (plan->product.sparse) take_metadata(op, inst, plan);
  name_registers(op, inst, plan);
  group_add(async_groups(warp, GROUP_WGMMA), mask, op);
  warp_set_meanwhile(warp, MEANWHILE_WGMMA, true);
  if (warp_launch(warp)->check.on) {
    if (warp->index % WARPGROUP_WARPS == 0) turn->issue = async_issue_by(op, mask, WARPGROUP_WARPS);
    async_make_collective(op, mask);
    if (warpgroup_all_have(warp, number)) read_operands(op, turn);
  }
  warpgroup_wake(warp);
  count_wgmma(warp, inst);
}

// ---- fence, commit, wait ----

static void execute_wgmma_fence(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  (void)mask;
  wgmma_state(warp)->fences++;
}

// Under a seed some operations are performed early, in order: any moment between issue and wait is legal. An H200's
// product does not begin before all four warps have executed it (tests/rules).
static void perform_some(Warp *warp, GroupQueue *queue) {
  Cluster *cluster = warp->block->cluster;
  if (!warp_launch(warp)->schedule || queue->count == 0) return;
  uint64_t count = cluster_random(cluster) % (uint64_t)(queue->count + 1);
  for (uint64_t i = 0; i < count && warpgroup_all_have(warp, queue->entries[i].op->number); i++)
    async_finish(cluster, queue->entries[i].op);
}

static void execute_wgmma_commit(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  GroupQueue *queue = async_groups(warp, GROUP_WGMMA);
  group_commit(queue, mask);
  perform_some(warp, queue);
}

// The last wgmma that a wait for all but the latest `allowed` groups waits for; 0 when there is none.
static uint32_t last_to_wait_for(const GroupQueue *queue, int lane, uint32_t allowed) {
  uint32_t number = 0;
  for (int i = 0; i < queue->count && queue->entries[i].group[lane] + allowed < queue->commits[lane]; i++)
    number = queue->entries[i].op->number;
  return number;
}

static void execute_wgmma_wait(Warp *warp, const Inst *inst, Mask mask) {
  GroupQueue *queue = async_groups(warp, GROUP_WGMMA);
  WgmmaState *state = wgmma_state(warp);
  uint32_t number = last_to_wait_for(queue, __builtin_ctz(mask), (uint32_t)inst->immediate);
  for (int i = 0; i < queue->count; i++)
    if (queue->entries[i].op->number > number) group_pass(warp, inst, queue, &queue->entries[i], mask);
  if (!number) return;
  state->awaited = warpgroup_all_have(warp, number) ? 0 : number;
  if (state->awaited) {
    warp_retry(warp, inst, mask);
    return;
  }
  warpgroup_finish(warp, number);
  warpgroup_learn(warp, mask, state->waited, number);
  state->waited = number;
  int done = 0;
  while (done < queue->count && queue->entries[done].op->number <= number) async_release(queue->entries[done++].op);
  queue->count -= done;
  memmove(queue->entries, queue->entries + done, (size_t)queue->count * sizeof *queue->entries);
  warp_set_meanwhile(warp, MEANWHILE_WGMMA, queue->count > 0);
}

// ---- decoding ----

// What all forms of wgmma need. False after an error.
static bool decode_aligned(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  decoder->program->asynchronous = true;
  inst->converge = CONVERGE_ALIGNED;
  if (ptx_has(source, "sync") && ptx_has(source, "aligned")) return true;
  decoder_error(decoder, source, "needs .sync.aligned");
  return false;
}

DecodeResult decode_wgmma(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  if (!decode_aligned(decoder, source, inst)) return DECODE_FAILED;
  WgmmaPlan *plan = decoder_allocate(decoder, sizeof *plan);
  inst->extra = plan;
  inst->execute = execute_wgmma;
  return wgmma_plan_decode(decoder, source, plan) ? DECODED : DECODE_FAILED;
}

// wgmma.fence, .commit_group, .wait_group N
DecodeResult decode_wgmma_group(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  bool waits = ptx_has(source, "wait_group"), commits = ptx_has(source, "commit_group");
  if (!decode_aligned(decoder, source, inst)) return DECODE_FAILED;
  if (source->modifier_count != 3) return decoder_error(decoder, source, "unknown form of wgmma");
  if (!decoder_operands(decoder, source, waits, waits)) return DECODE_FAILED;
  if (waits && (source->operands[0].kind != PTX_OPERAND_INTEGER || source->operands[0].value < 0 ||
                source->operands[0].value > 7))
    return decoder_error(decoder, source, "N is an immediate from 0 to 7");
  if (waits) inst->immediate = source->operands[0].value;
  inst->execute = waits ? execute_wgmma_wait : commits ? execute_wgmma_commit : execute_wgmma_fence;
  return DECODED;
}
