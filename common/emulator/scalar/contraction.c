// Finds the products and sums of each basic block, decides which are fused, and changes them: see contraction.h.
#include "contraction.h"

#include <stdlib.h>
#include <string.h>

#include "../warp/forms.h"
#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"

enum { SLOT_UNIT = 64, MOST_SUCCESSORS = 256, NONE = -1 };

typedef struct Product {
  Inst *mul;
  int uses;      // operands of sums
  bool remains;  // something uses it as it is, rounded: it is fused no more
  bool needed;   // only a neg.ftz does, which ptxas fuses as a sum
  bool fused;
  bool stale;  // a factor's register changes before a sum reads the product
} Product;

// An add or a sub. The products that its two operands are, or NONE, and the operand that is fused.
typedef struct Sum {
  Inst *inst;
  int products[2], fused;
  bool negated[2];
} Sum;

// What a register holds in the block that has this number.
typedef struct Value {
  uint32_t block;
  int product;            // or NONE
  bool negated, flushed;  // by a neg; by a neg.ftz
  uint32_t reads;
} Value;

typedef struct Search {
  Decoder *decoder;
  Program *program;
  Value *values;      // by slot / SLOT_UNIT, as the next two
  uint32_t *reads;    // how often the program reads it
  uint32_t *written;  // where it was written last, plus 1
  bool *starts;       // by instruction: a block begins there
  uint32_t *visited, *stack;
  uint32_t block, visit;
  Product *products;  // of the block, as the next two
  Sum *sums;
  Slot *holders;  // registers that have held a product
  int product_count, sum_count, holder_count, product_capacity, sum_capacity, holder_capacity;
  Slot negatives[2];  // for execute_signed: a factor's and an addend's
} Search;

// ---- instructions ----

static bool is_contractible(unsigned type) { return type >= PTX_F16 && type <= PTX_F64; }
static bool is_packed(unsigned type) { return type == PTX_F16X2 || type == PTX_BF16X2; }

static bool is_rounded(const PtxInstruction *source) {
  return ptx_has(source, "rn") || ptx_has(source, "rz") || ptx_has(source, "rm") || ptx_has(source, "rp");
}

static bool has_opcode(const Inst *inst, const char *opcode) { return !strcmp(inst->source->opcode, opcode); }

static bool is_product(const Inst *inst) {
  return has_opcode(inst, "mul") && is_contractible(inst->type) && !inst->guarded && !(inst->flags & FORM_SAT) &&
         !is_rounded(inst->source);
}

static bool is_sum(const Inst *inst) {
  bool adds = has_opcode(inst, "add") || has_opcode(inst, "sub");
  return adds && is_contractible(inst->type) && !is_rounded(inst->source);
}

static bool is_copy(const Search *search, const Inst *inst) {
  const Touch *touches = touches_of(search->program, inst);
  return inst->row->registers == REGISTERS_RENAMED && inst->touch_count == 2 && !inst->guarded && touches[0].written &&
         !touches[1].written && touches[0].size == touches[1].size;
}

static bool is_alike(const Inst *inst, const Inst *mul) {
  return inst->type == mul->type && !((inst->flags ^ mul->flags) & FORM_FTZ);
}

// Whether ptxas makes a neg of the product an operand's sign.
static bool is_sign(const Inst *inst, const Inst *mul) {
  bool flushes = inst->flags & FORM_FTZ;
  return has_opcode(inst, "neg") && inst->type == mul->type && inst->type != PTX_BF16X2 && !inst->guarded &&
         (!flushes || (inst->type == PTX_F32 && is_alike(inst, mul)));
}

// ---- basic blocks, as ptxas sees them ----

static bool is_division_with_branches(const Inst *inst) {
  PtxType type = ptx_instruction_type(inst->source);
  if (has_opcode(inst, "div") || has_opcode(inst, "rem"))
    return is_contractible(type) ? is_rounded(inst->source) : type != PTX_U32;
  if (has_opcode(inst, "rcp") || has_opcode(inst, "sqrt")) return is_rounded(inst->source);
  return has_opcode(inst, "rsqrt") && type == PTX_F64 && !ptx_has(inst->source, "ftz");
}

static bool is_fence_with_branches(const Inst *inst) {
  return (has_opcode(inst, "membar") || has_opcode(inst, "fence")) && !ptx_has(inst->source, "proxy") &&
         !ptx_has(inst->source, "mbarrier_init");
}

// What an instruction with @p only computes, ptxas selects afterwards; around anything else it makes a branch.
static bool is_selected(const Inst *inst) {
  CounterKind class = inst->row->counter;
  return (class >= COUNTER_INST_INTEGER && class <= COUNTER_INST_CONVERT) || inst->row->values == VALUES_MOVED;
}

static bool ends_block(const Inst *inst) {
  return (inst->guarded && !is_selected(inst)) || is_division_with_branches(inst) || is_fence_with_branches(inst) ||
         has_opcode(inst, "call") || has_opcode(inst, "setmaxnreg") || has_opcode(inst, "brkpt") ||
         has_opcode(inst, "pmevent");
}

// A block begins behind another one's end, and wherever not only the instruction before leads.
static void find_starts(Search *search) {
  const Program *program = search->program;
  uint32_t next[MOST_SUCCESSORS];
  for (int f = 0; f < program->function_count; f++) search->starts[program->functions[f].start] = true;
  for (uint32_t pc = 0; pc < program->count; pc++) {
    const Inst *inst = &program->code[pc];
    uint32_t count = program_successors(program, pc, MOST_SUCCESSORS, next);
    bool goes_on = count == 1 && next[0] == pc + 1 && !ends_block(inst);
    if (!goes_on && pc + 1 < program->count) search->starts[pc + 1] = true;
    for (uint32_t i = 0; i < count; i++)
      if (next[i] != pc + 1) search->starts[next[i]] = true;
  }
}

// ---- registers ----

static Value *lane_operand(Search *search, Slot slot) {
  Value *value = &search->values[slot / SLOT_UNIT];
  if (value->block != search->block) *value = (Value){.block = search->block, .product = NONE};
  return value;
}

static void count_reads(Search *search) {
  for (uint32_t t = 0; t < search->program->touch_count; t++) {
    const Touch *touch = &search->program->touches[t];
    if (!touch->written) search->reads[touch->slot / SLOT_UNIT]++;
  }
}

typedef enum Access { NO_ACCESS, WRITES, READS } Access;

// What an instruction does first with a register; what it writes under a guard depends on what was there.
static Access access_of(const Search *search, const Inst *inst, Slot slot) {
  const Touch *touches = touches_of(search->program, inst);
  Access access = NO_ACCESS;
  for (int t = 0; t < inst->touch_count; t++) {
    if (touches[t].slot != slot) continue;
    if (!touches[t].written || inst->guarded) return READS;
    access = WRITES;
  }
  return access;
}

// Whether a register may be read from an instruction on before it is written.
static bool is_read_from(Search *search, uint32_t pc, Slot slot) {
  uint32_t count = 0, next[MOST_SUCCESSORS];
  search->visit++;
  search->stack[count++] = pc;
  search->visited[pc] = search->visit;
  while (count) {
    pc = search->stack[--count];
    Access access = access_of(search, &search->program->code[pc], slot);
    if (access == READS) return true;
    if (access == WRITES) continue;
    for (uint32_t i = program_successors(search->program, pc, MOST_SUCCESSORS, next); i--;) {
      if (search->visited[next[i]] == search->visit) continue;
      search->visited[next[i]] = search->visit;
      search->stack[count++] = next[i];
    }
  }
  return false;
}

// ---- the products and sums of a block ----

static int note_product(Search *search, Inst *mul) {
  search->products = host_grow(search->products, search->product_count, &search->product_capacity, sizeof(Product));
  search->products[search->product_count] = (Product){.mul = mul};
  return search->product_count++;
}

static void hold(Search *search, Slot slot, Value value) {
  value.reads = 0;
  *lane_operand(search, slot) = value;
  search->holders = host_grow(search->holders, search->holder_count, &search->holder_capacity, sizeof(Slot));
  search->holders[search->holder_count++] = slot;
}

// The value is used as it is.
static void use_value(Search *search, const Value *value) {
  Product *product = &search->products[value->product];
  *(value->flushed ? &product->needed : &product->remains) = true;
}

static bool is_written_since(const Search *search, Slot slot, const Inst *mul) {
  return search->written[slot / SLOT_UNIT] > (uint32_t)(mul - search->program->code);
}

// The product that an operand of a sum is, or NONE. ptxas does not see that two signs, the first with .ftz, are none.
static int use_product(Search *search, const Inst *sum, Slot operand, bool is_subtracted) {
  const Value *value = lane_operand(search, operand);
  int number = value->product;
  if (number == NONE) return NONE;
  Product *product = &search->products[number];
  if (!is_alike(sum, product->mul) || (value->flushed && is_subtracted)) {
    use_value(search, value);
    return NONE;
  }
  product->uses++;
  product->stale |= is_written_since(search, product->mul->a, product->mul) ||
                    is_written_since(search, product->mul->b, product->mul);
  return number;
}

static void add_sum(Search *search, Inst *inst) {
  Sum sum = {.inst = inst, .fused = NONE};
  const Slot operands[2] = {inst->a, inst->b};
  for (int i = 0; i < 2; i++) {
    sum.products[i] = use_product(search, inst, operands[i], i == 1 && has_opcode(inst, "sub"));
    sum.negated[i] = lane_operand(search, operands[i])->negated;
  }
  if (sum.products[0] != NONE && sum.products[0] == sum.products[1]) search->products[sum.products[0]].remains = true;
  search->sums = host_grow(search->sums, search->sum_count, &search->sum_capacity, sizeof(Sum));
  search->sums[search->sum_count++] = sum;
}

// Counts what an instruction reads. The products that it reads, but as a sum's operands, are used as they are.
static void pass_reads(Search *search, const Inst *inst, bool passes_on) {
  const Touch *touches = touches_of(search->program, inst);
  for (int t = 0; t < inst->touch_count; t++) {
    Value *value = lane_operand(search, touches[t].slot);
    value->reads += !touches[t].written;
    bool uses = touches[t].written ? inst->guarded : !passes_on && !is_sum(inst);
    if (value->product != NONE && uses) use_value(search, value);
  }
}

static void pass_writes(Search *search, uint32_t pc) {
  const Inst *inst = &search->program->code[pc];
  const Touch *touches = touches_of(search->program, inst);
  for (int t = 0; t < inst->touch_count; t++) {
    if (!touches[t].written) continue;
    *lane_operand(search, touches[t].slot) = (Value){.block = search->block, .product = NONE};
    search->written[touches[t].slot / SLOT_UNIT] = pc + 1;
  }
}

// Whether an instruction gives a product to another register, as *source says.
static bool passes_product(Search *search, const Inst *inst, Value *source) {
  bool is_neg = has_opcode(inst, "neg");
  if (!is_neg && !is_copy(search, inst)) return false;
  *source = *lane_operand(search, inst->a);
  if (source->product == NONE) return false;
  if (is_neg && (source->flushed || !is_sign(inst, search->products[source->product].mul))) return false;
  source->negated ^= is_neg;
  source->flushed |= is_neg && inst->flags & FORM_FTZ;
  return true;
}

static void pass(Search *search, uint32_t pc) {
  Inst *inst = &search->program->code[pc];
  Value source;
  bool passes_on = passes_product(search, inst, &source);
  pass_reads(search, inst, passes_on);
  if (is_sum(inst)) add_sum(search, inst);
  pass_writes(search, pc);
  if (passes_on) hold(search, inst->d, source);
  if (is_product(inst)) hold(search, inst->d, (Value){.block = search->block, .product = note_product(search, inst)});
}

// A product that another block reads remains.
static void leave_block(Search *search, uint32_t end) {
  uint32_t next[MOST_SUCCESSORS], count = program_successors(search->program, end - 1, MOST_SUCCESSORS, next);
  for (int h = 0; h < search->holder_count; h++) {
    const Value *value = lane_operand(search, search->holders[h]);
    if (value->product == NONE || value->reads == search->reads[search->holders[h] / SLOT_UNIT]) continue;
    for (uint32_t i = 0; i < count; i++)
      if (is_read_from(search, next[i], search->holders[h])) use_value(search, value);
  }
}

// ---- the decision ----

static void fuse(Search *search, Sum *sum, int operand) {
  int addend = sum->products[1 - operand];
  sum->fused = operand;
  search->products[sum->products[operand]].fused = true;
  if (addend != NONE) search->products[addend].remains = true;
}

// The uses of a product that an operand may be fused with; 0: it is none.
static int fusible_uses(const Search *search, const Sum *sum, int operand) {
  int number = sum->products[operand];
  return number == NONE || search->products[number].remains ? 0 : search->products[number].uses;
}

// ptxas first takes the products that only one sum reads, of numbers that are not packed.
static void fuse_single_products(Search *search) {
  for (int s = 0; s < search->sum_count; s++) {
    Sum *sum = &search->sums[s];
    if (is_packed(sum->inst->type)) continue;
    if (fusible_uses(search, sum, 0) == 1)
      fuse(search, sum, 0);
    else if (fusible_uses(search, sum, 1) == 1)
      fuse(search, sum, 1);
  }
}

// Then all others, and of two in one sum that with fewer uses.
static void fuse_products(Search *search) {
  for (int s = 0; s < search->sum_count; s++) {
    Sum *sum = &search->sums[s];
    int first = fusible_uses(search, sum, 0), second = fusible_uses(search, sum, 1);
    if (sum->fused != NONE || (!first && !second)) continue;
    fuse(search, sum, !first || (second && second < first));
  }
}

// ---- the change ----

// A mul that keeps its factors for its sums, before it changes their registers or another instruction does.
typedef struct Keeper {
  Inst mul;
  Slot a, b;
} Keeper;

static void keep_lanes(Warp *warp, Slot to, Slot from, size_t size, Mask mask) {
  uint8_t *target = SLOT(warp, to, uint8_t);
  const uint8_t *source = SLOT(warp, from, uint8_t);
  EACH_LANE(mask, memcpy(target + (size_t)LANE * size, source + (size_t)LANE * size, size));
}

static void execute_keeping(Warp *warp, const Inst *inst, Mask mask) {
  const Keeper *keeper = inst->extra;
  size_t size = ptx_type_size(inst->type);
  keep_lanes(warp, keeper->a, inst->a, size, mask);
  keep_lanes(warp, keeper->b, inst->b, size, mask);
  keeper->mul.execute(warp, &keeper->mul, mask);
}

// An fma with another sign of a factor or of the addend, which are in slots of their own.
typedef struct Signed {
  Inst fma;
  Slot factor, addend;  // 0: has its sign
} Signed;

// f64 keeps the sign of a NaN, and in the other types every NaN is the same.
static void negate_lanes(Warp *warp, Slot to, Slot from, PtxType type) {
  const u32 sign = type == PTX_F32 ? 0x80000000 : 0x80008000;
  if (type == PTX_F64) {
    f64 *d = SLOT(warp, to, f64);
    const f64 *a = SLOT(warp, from, f64);
    EACH_LANE(FULL_MASK, d[LANE] = a[LANE] != a[LANE] ? a[LANE] : -a[LANE]);
  } else {
    u32 *d = SLOT(warp, to, u32);
    const u32 *a = SLOT(warp, from, u32);
    for (size_t i = 0; i < ptx_type_size(type) * LANES / sizeof *d; i++) d[i] = a[i] ^ sign;
  }
}

static void execute_signed(Warp *warp, const Inst *inst, Mask mask) {
  const Signed *own = inst->extra;
  if (own->factor) negate_lanes(warp, own->fma.a, own->factor, inst->type);
  if (own->addend) negate_lanes(warp, own->fma.c, own->addend, inst->type);
  own->fma.execute(warp, &own->fma, mask);
}

static void make_signed(Search *search, Inst *fma, bool factor, bool addend) {
  for (int i = 0; i < 2; i++)
    if (!search->negatives[i]) search->negatives[i] = decoder_slot(search->decoder, sizeof(f64));
  Signed *own = decoder_allocate(search->decoder, sizeof *own);
  *own = (Signed){*fma, factor ? fma->a : 0, addend ? fma->c : 0};
  if (factor) own->fma.a = search->negatives[0];
  if (addend) own->fma.c = search->negatives[1];
  fma->extra = own;
  fma->execute = execute_signed;
}

// The instruction's touches, now at the end of the program's: more of them can follow.
static void move_touches(Search *search, Inst *inst) {
  Program *program = search->program;
  uint32_t start = program->touch_count;
  for (int t = 0; t < inst->touch_count; t++) {
    const Touch touch = program->touches[inst->touch_start + (uint32_t)t];
    program->touches[inst->touch_start + (uint32_t)t].slot = 0;
    decoder_touch(search->decoder, touch);
  }
  inst->touch_start = start;
}

static void keep_factors(Search *search, Inst *mul) {
  int size = (int)ptx_type_size(mul->type);
  Keeper *keeper = decoder_allocate(search->decoder, sizeof *keeper);
  *keeper = (Keeper){*mul, decoder_slot(search->decoder, size), decoder_slot(search->decoder, size)};
  move_touches(search, mul);
  decoder_touch(search->decoder, (Touch){keeper->a, true, (uint8_t)size});
  decoder_touch(search->decoder, (Touch){keeper->b, true, (uint8_t)size});
  mul->touch_count += 2;
  mul->extra = keeper;
  mul->execute = execute_keeping;
}

bool contraction_left_nothing(const Inst *mul) {
  const Inst *inst = mul->execute == execute_keeping ? &((const Keeper *)mul->extra)->mul : mul;
  return inst->execute == execute_nothing;
}

// Nothing needs the rounded product if all its sums are fused.
static void change_product(Search *search, Product *product) {
  Inst *mul = product->mul;
  bool is_read = product->remains || product->needed;
  if (!is_read) mul->execute = execute_nothing;
  if (product->stale) keep_factors(search, mul);
}

static void change_operands(Search *search, const Sum *sum, Slot a, Slot b) {
  Inst *inst = sum->inst;
  const Slot product = sum->fused ? inst->b : inst->a;
  const uint8_t size = (uint8_t)ptx_type_size(inst->type);
  move_touches(search, inst);
  for (int t = 0; t < inst->touch_count; t++) {
    Touch *touch = &search->program->touches[inst->touch_start + (uint32_t)t];
    if (!touch->written && touch->slot == product) touch->slot = a;
  }
  decoder_touch(search->decoder, (Touch){b, false, size});
  inst->touch_count++;
  inst->c = sum->fused ? inst->a : inst->b;
  inst->a = a;
  inst->b = b;
}

static void change_sum(Search *search, const Sum *sum) {
  Inst *inst = sum->inst;
  const Inst *mul = search->products[sum->products[sum->fused]].mul;
  const Keeper *keeper = mul->execute == execute_keeping ? mul->extra : NULL;
  bool subtracts = has_opcode(inst, "sub"), minus_addend = subtracts && sum->fused == 0;
  bool minus_product = sum->negated[sum->fused] != (subtracts && sum->fused == 1);
  change_operands(search, sum, keeper ? keeper->a : mul->a, keeper ? keeper->b : mul->b);
  if (inst->type == PTX_F32 || inst->type == PTX_F64)
    float_fuse(inst);
  else
    half_fuse(search->decoder, inst);
  if (minus_product || minus_addend) make_signed(search, inst, minus_product, minus_addend);
}

// ---- the program ----

static void contract_block(Search *search, uint32_t end) {
  leave_block(search, end);
  fuse_single_products(search);
  fuse_products(search);
  for (int p = 0; p < search->product_count; p++)
    if (search->products[p].fused) change_product(search, &search->products[p]);
  for (int s = 0; s < search->sum_count; s++)
    if (search->sums[s].fused != NONE) change_sum(search, &search->sums[s]);
  search->product_count = search->sum_count = search->holder_count = 0;
  search->block++;
}

static bool has_product(const Program *program) {
  for (uint32_t pc = 0; pc < program->count; pc++)
    if (is_product(&program->code[pc])) return true;
  return false;
}

static void contract_blocks(Search *search) {
  const uint32_t count = search->program->count;
  for (uint32_t pc = 0; pc < count; pc++) {
    pass(search, pc);
    if (pc + 1 == count || search->starts[pc + 1]) contract_block(search, pc + 1);
  }
}

void contract_products(Decoder *decoder) {
  Program *program = decoder->program;
  if (!has_product(program)) return;
  const size_t units = program->register_bytes / SLOT_UNIT + 1;
  Search search = {.decoder = decoder,
                   .program = program,
                   .values = host_allocate(units, sizeof(Value)),
                   .reads = host_allocate(units, sizeof(uint32_t)),
                   .written = host_allocate(units, sizeof(uint32_t)),
                   .starts = host_allocate(program->count, sizeof(bool)),
                   .visited = host_allocate(program->count, sizeof(uint32_t)),
                   .stack = host_allocate(program->count, sizeof(uint32_t)),
                   .block = 1};
  count_reads(&search);
  find_starts(&search);
  contract_blocks(&search);
  free(search.values);
  free(search.reads);
  free(search.written);
  free(search.starts);
  free(search.visited);
  free(search.stack);
  free(search.products);
  free(search.sums);
  free(search.holders);
}
