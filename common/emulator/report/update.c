// Updates without an atomic: see update.h.
#include "update.h"

#include <stdlib.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "source_line.h"

static bool has_one_address(const Inst *inst, MemoryUse memory, int address) {
  const PtxInstruction *source = inst->source;
  return inst->row->memory == memory && source->operand_count >= 2 &&
         source->operands[address].kind == PTX_OPERAND_ADDRESS && source->operands[address].item_count == 1;
}

static bool loads_one_place(const Inst *inst) { return has_one_address(inst, MEMORY_LOAD, 1); }
static bool stores_one_place(const Inst *inst) { return has_one_address(inst, MEMORY_STORE, 0); }

static bool is_same_address(const PtxOperand *a, const PtxOperand *b) {
  const PtxOperand *one = &a->items[0], *other = &b->items[0];
  return a->value == b->value && one->kind == other->kind && one->index == other->index && one->value == other->value &&
         one->variable == other->variable;
}

// ---- what follows from a load ----

// A mark for each register of a function.
static void mark(bool *marks, const PtxOperand *operand) {
  if (operand->kind == PTX_OPERAND_REGISTER) marks[operand->index] = true;
  for (int i = 0; i < operand->item_count; i++) mark(marks, &operand->items[i]);
}

static bool is_marked(const bool *marks, const PtxOperand *operand) {
  if (operand->kind == PTX_OPERAND_REGISTER && marks[operand->index]) return true;
  for (int i = 0; i < operand->item_count; i++)
    if (is_marked(marks, &operand->items[i])) return true;
  return false;
}

static bool has_marked_guard(const bool *marks, const PtxInstruction *source) {
  return source->guard >= 0 && marks[source->guard];
}

static void follow(bool *marks, const PtxInstruction *source) {
  bool follows = has_marked_guard(marks, source);
  for (int i = 1; i < source->operand_count && !follows; i++) follows = is_marked(marks, &source->operands[i]);
  if (follows) mark(marks, &source->operands[0]);
}

// Whether each thread that passed the instruction before comes to the one behind, or fails to by what it has loaded.
static bool leads_on(const bool *marks, const Inst *inst, bool *decided) {
  if (inst->row->calls || inst->row->orders == ORDERS_BLOCK || inst->row->orders == ORDERS_WARP ||
      inst->row->orders == ORDERS_CLUSTER)
    return false;
  if (inst->control == CONTROL_NEXT) return true;
  *decided = true;
  return has_marked_guard(marks, inst->source);
}

static bool changes_base(const PtxOperand *address, const PtxInstruction *source) {
  const PtxOperand *base = &address->items[0];
  return base->kind == PTX_OPERAND_REGISTER && source->operand_count &&
         source->operands[0].kind == PTX_OPERAND_REGISTER && source->operands[0].index == base->index;
}

static bool belong(const Inst *load, const Inst *store, bool *marks) {
  const PtxOperand *address = &load->source->operands[1];
  if (!is_same_address(address, &store->source->operands[0])) return false;
  bool decided = false;
  mark(marks, &load->source->operands[0]);
  for (const Inst *inst = load + 1; inst < store; inst++) {
    if (!leads_on(marks, inst, &decided) || changes_base(address, inst->source)) return false;
    follow(marks, inst->source);
  }
  int guard = store->source->guard;
  if (guard >= 0 && marks[guard]) return true;
  bool is_for_the_same = guard == load->source->guard && store->source->guard_negated == load->source->guard_negated;
  return is_for_the_same && (decided || is_marked(marks, &store->source->operands[1]));
}

static bool is_pair(const Program *program, const Inst *load, const Inst *store) {
  const Function *function = home_of(program, load);
  if (!function || store <= load || store >= program->code + function->end) return false;
  bool *marks = host_allocate((size_t)function->ptx->register_count + 1, sizeof *marks);
  bool found = belong(load, store, marks);
  free(marks);
  return found;
}

bool is_update(const Program *program, const Inst *load, const Inst *store) {
  if (!loads_one_place(load) || !stores_one_place(store)) return false;
  for (uint32_t pc = (uint32_t)(load - program->code) + 1; pc < program->count; pc++) {
    const Inst *inst = &program->code[pc];
    bool is_copy = inst == store || (stores_one_place(inst) && are_copies(inst, store));
    if (is_copy && is_pair(program, load, inst)) return true;
  }
  return false;
}

bool ends_update(const Program *program, const Inst *store) {
  if (!stores_one_place(store)) return false;
  for (uint32_t pc = 0; pc < (uint32_t)(store - program->code); pc++)
    if (loads_one_place(&program->code[pc]) && is_pair(program, &program->code[pc], store)) return true;
  return false;
}
