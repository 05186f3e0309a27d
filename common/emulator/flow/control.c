// bra, brx, call, ret, exit, trap: where execution goes on. PTX ISA 9.7.12.
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#include "../async/bulk.h"
#include "../report/hazard.h"
#include "../report/undefined.h"
#include "../tensor/warpgroup.h"
#include "../host/host_memory.h"
#include "../warp/lanes.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "families.h"

enum { MAX_CALL_DEPTH = 256 };

// ---- branches ----

static void execute_bra(Warp *warp, const Inst *inst, Mask mask) { warp_jump(warp, mask, (uint32_t)inst->immediate); }

static void execute_brx(Warp *warp, const Inst *inst, Mask mask) {
  const BranchTable *table = inst->extra;
  const u32 *index = SLOT(warp, inst->a, const u32);
  while (mask) {
    u32 which = index[__builtin_ctz(mask)];
    Mask same = 0;
    for (Mask rest = mask; rest; rest &= rest - 1)
      if (index[__builtin_ctz(rest)] == which) same |= rest & -rest;
    if (which >= table->count) {
      hazard_stop(warp, inst, __builtin_ctz(same), HAZARD_TRAP, 0, 0, "brx.idx takes entry %u of a table of %u", which,
                  table->count);
      return;
    }
    warp_jump(warp, same, table->targets[which]);
    mask &= ~same;
  }
}

static void execute_exit(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  warp_exit(warp, mask);
}

static void execute_trap(Warp *warp, const Inst *inst, Mask mask) {
  const Launch *launch = warp_launch(warp);
  bool grid_sync = !launch->cooperative && special_knows_grid_sync(launch->program);
  hazard_stop(warp, inst, __builtin_ctz(mask), HAZARD_TRAP, 0, 0, "the kernel executed %s%s", inst->source->opcode,
              grid_sync ? ": it has grid.sync(), which needs a cooperative launch"
                        : "\nIf the source has none here, the compiler has found that what it says is undefined: a "
                          "pointer that is never set, or a function that ends without a result.");
}

// ---- calls ----
//
// A function's registers have fixed slots, and its parameters bytes for each lane beside them. A call copies arguments
// to parameters and remembers the way back, per lane: lanes in different calls of one function may well run together.
// Only a function that is entered again before it returned has its lanes' registers saved.

// Bytes to copy for each lane between an argument and a parameter.
typedef struct Copy {
  Slot from, to;
  int from_stride, to_stride, size;
} Copy;

// A call site, bound to one function that it may call.
struct Binding {
  const Function *caller, *callee;
  int in_count, out_count;
  Copy *in, *out;
};

// What Inst.extra of a call points to: one binding for a direct call, one per candidate for an indirect one.
typedef struct CallSite {
  int count;
  Binding *bindings;
} CallSite;

static void copy_undefined(Warp *warp, const Copy *copy, int lane) {
  undefined_copy(warp, lane, copy->from, copy->from_stride, 0, copy->to, copy->to_stride, 0, copy->size);
}

static void copy_argument(Warp *warp, const Copy *copy, Mask mask) {
  const u8 *from = SLOT(warp, copy->from, const u8);
  u8 *to = SLOT(warp, copy->to, u8);
  EACH_LANE(mask, memcpy(to + LANE * copy->to_stride, from + LANE * copy->from_stride, (size_t)copy->size));
  for (Mask rest = mask; rest && warp->has_undefined; rest &= rest - 1) copy_undefined(warp, copy, __builtin_ctz(rest));
}

void call_stacks_free(Warp *warp) {
  for (int lane = 0; warp->calls && lane < LANES; lane++) {
    CallStack *stack = &warp->calls[lane];
    for (int i = 0; i < stack->depth; i++) free(stack->frames[i].saved);
    free(stack->frames);
  }
  free(warp->calls);
  warp->calls = NULL;
}

static bool is_active(const CallStack *stack, const Function *function) {
  for (int i = 0; i < stack->depth; i++)
    if (stack->frames[i].binding->callee == function) return true;
  return false;
}

// A register gets back what it held before the call: that was defined, or it has been forgotten that it was not.
static void define_lane(Warp *warp, const Function *function, int index, int lane) {
  const PtxRegister *reg = &function->ptx->registers[index];
  int size = slot_element_size(reg->type);
  for (int v = 0; v < reg->vector; v++)
    undefined_clear(warp, 1u << lane, function->registers[index] + (Slot)(v * (size == 1 ? 64 : size * LANES)), size);
}

// Moves one lane's registers and parameters of a function between the warp and a buffer. Returns the bytes; with no
// buffer only counts them.
static size_t exchange_lane(Warp *warp, const Function *function, int lane, u8 *buffer, bool save) {
  size_t used = 0;
  for (int r = 0; r < function->ptx->register_count; r++) {
    const PtxRegister *reg = &function->ptx->registers[r];
    if (!save) define_lane(warp, function, r, lane);
    if (reg->type == PTX_PRED) {
      Mask *mask = SLOT(warp, function->registers[r], Mask);
      if (buffer && save) buffer[used] = *mask >> lane & 1;
      if (buffer && !save) *mask = (*mask & ~(1u << lane)) | (Mask)buffer[used] << lane;
      used++;
      continue;
    }
    size_t size = ptx_type_size(reg->type) < 2 ? 2 : ptx_type_size(reg->type);
    for (int v = 0; v < reg->vector; v++, used += size) {
      u8 *element = SLOT(warp, function->registers[r], u8) + ((size_t)v * LANES + (size_t)lane) * size;
      if (buffer) memcpy(save ? buffer + used : element, save ? element : buffer + used, size);
    }
  }
  for (int p = 0; p < function->place_count; p++) {
    const Place *place = &function->places[p];
    if (!place->stride) continue;
    u8 *element = SLOT(warp, place->slot, u8) + lane * place->stride;
    if (buffer) memcpy(save ? buffer + used : element, save ? element : buffer + used, (size_t)place->stride);
    used += (size_t)place->stride;
  }
  return used;
}

static bool push_frame(Warp *warp, const Inst *inst, const Binding *binding, int lane) {
  CallStack *stack = &warp->calls[lane];
  const Program *program = warp_launch(warp)->program;
  bool deep = stack->depth == MAX_CALL_DEPTH ||
              stack->local_base + binding->caller->local_size + binding->callee->local_size > program->stack_limit;
  if (deep && stack->depth > 0) {
    hazard_stop(warp, inst, lane, HAZARD_TRAP, 0, 0, "stack overflow: %d calls deep", stack->depth);
    return false;
  }
  stack->frames = host_grow(stack->frames, stack->depth, &stack->capacity, sizeof(CallFrame));
  u8 *saved = NULL;
  if (is_active(stack, binding->callee)) {
    saved = malloc(exchange_lane(warp, binding->callee, lane, NULL, true) + 1);
    if (!saved) out_of_memory();
    exchange_lane(warp, binding->callee, lane, saved, true);
  }
  uint64_t pointer = program->stack ? SLOT(warp, program->stack, const u64)[lane] : 0;
  stack->frames[stack->depth++] = (CallFrame){(uint32_t)(inst - program->code) + 1, binding, pointer, saved};
  stack->local_base += binding->caller->local_size;
  return true;
}

// A recursive function is its own caller: arguments are read before its registers become the callee's.
static void enter(Warp *warp, const Inst *inst, const Binding *binding, Mask mask) {
  if (!warp->calls) warp->calls = host_allocate(LANES, sizeof(CallStack));
  for (Mask rest = mask; rest; rest &= rest - 1)
    if (!push_frame(warp, inst, binding, __builtin_ctz(rest))) return;
  for (int i = 0; i < binding->in_count; i++) copy_argument(warp, &binding->in[i], mask);
  warp->groups[warp->current].depth++;
  warp_jump(warp, mask, binding->callee->start);
  if (warp->groups[warp->current].mask != mask) warp->groups[warp->current].depth--;  // the lanes that do not call
}

static void execute_call(Warp *warp, const Inst *inst, Mask mask) {
  const CallSite *site = inst->extra;
  enter(warp, inst, site->bindings, mask);
}

static void execute_call_indirect(Warp *warp, const Inst *inst, Mask mask) {
  const CallSite *site = inst->extra;
  const u64 *address = SLOT(warp, inst->a, const u64);
  while (mask) {
    u64 target = address[__builtin_ctz(mask)];
    Mask same = 0;
    for (Mask rest = mask; rest; rest &= rest - 1)
      if (address[__builtin_ctz(rest)] == target) same |= rest & -rest;
    const Binding *binding = NULL;
    for (int i = 0; i < site->count; i++)
      if (FUNCTION_WINDOW + (u64)site->bindings[i].callee->ptx->index == target) binding = &site->bindings[i];
    if (!binding) {
      hazard_stop(warp, inst, __builtin_ctz(same), HAZARD_TRAP, target, 0,
                  "0x%llx is no function with these parameters", (unsigned long long)target);
      return;
    }
    enter(warp, inst, binding, same);
    mask &= ~same;
  }
}

// One lane leaves its function. Returns where it goes on.
static uint32_t pop_frame(Warp *warp, int lane) {
  CallStack *stack = &warp->calls[lane];
  CallFrame frame = stack->frames[--stack->depth];
  stack->local_base -= frame.binding->caller->local_size;
  Slot pointer = warp_launch(warp)->program->stack;
  if (pointer) SLOT(warp, pointer, u64)[lane] = frame.stack;
  u8 few[256], *results = few;
  const Binding *binding = frame.binding;
  // The results go into the caller's registers, which a restore may overwrite: so they wait until it is done.
  size_t used = 0;
  for (int i = 0; i < binding->out_count; i++) used += (size_t)binding->out[i].size;
  if (used > sizeof few && !(results = malloc(used))) out_of_memory();
  used = 0;
  for (int i = 0; i < binding->out_count; i++) {
    const Copy *copy = &binding->out[i];
    memcpy(results + used, SLOT(warp, copy->from, u8) + lane * copy->from_stride, (size_t)copy->size);
    used += (size_t)copy->size;
  }
  if (frame.saved) exchange_lane(warp, binding->callee, lane, frame.saved, false);
  free(frame.saved);
  used = 0;
  for (int i = 0; i < binding->out_count; i++) {
    const Copy *copy = &binding->out[i];
    memcpy(SLOT(warp, copy->to, u8) + lane * copy->to_stride, results + used, (size_t)copy->size);
    if (warp->has_undefined) copy_undefined(warp, copy, lane);
    used += (size_t)copy->size;
  }
  if (results != few) free(results);
  return frame.back;
}

// ret: lanes of one group may return to different callers, and leave the kernel from its entry.
static void execute_ret(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  Mask leaving = 0;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (!warp->calls || warp->calls[lane].depth == 0) leaving |= 1u << lane;
  }
  Mask returning = mask & ~leaving;
  uint32_t target[LANES];
  for (Mask rest = returning; rest; rest &= rest - 1)
    target[__builtin_ctz(rest)] = pop_frame(warp, __builtin_ctz(rest));
  if (leaving) warp_exit(warp, leaving);
  while (returning) {
    int first = __builtin_ctz(returning);
    Mask same = 0;
    for (Mask rest = returning; rest; rest &= rest - 1)
      if (target[__builtin_ctz(rest)] == target[first]) same |= rest & -rest;
    Group *group = &warp->groups[warp->current];
    group->depth--;
    warp_jump(warp, same, target[first]);
    if (warp->groups[warp->current].mask != same) warp->groups[warp->current].depth++;
    returning &= ~same;
  }
  warp->regroup = true;
}

// ---- decoding ----

DecodeResult decode_bra(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"uni", NULL};
  if (!decoder_operands(decoder, source, 1, 1) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  if (source->operands[0].kind != PTX_OPERAND_LABEL) return decoder_error(decoder, source, "needs a label");
  inst->execute = execute_bra;
  inst->control = CONTROL_BRANCH;
  inst->immediate = decoder_label(decoder, source->operands[0].index);
  return DECODED;
}

DecodeResult decode_brx(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"idx", "uni", NULL};
  if (!decoder_operands(decoder, source, 2, 2) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  const PtxFunction *function = decoder->function->ptx;
  const PtxBranchTargets *targets = NULL;
  for (int i = 0; i < function->branch_targets_count && source->operands[1].name; i++)
    if (!strcmp(function->branch_targets[i].name, source->operands[1].name)) targets = &function->branch_targets[i];
  if (!targets) return decoder_error(decoder, source, "needs the name of a .branchtargets list");
  BranchTable *table = decoder_allocate(decoder, sizeof *table + (size_t)targets->label_count * sizeof(uint32_t));
  table->count = (uint32_t)targets->label_count;
  for (int i = 0; i < targets->label_count; i++) table->targets[i] = decoder_label(decoder, targets->labels[i]);
  inst->a = decoder_source(decoder, &source->operands[0], PTX_U32);
  inst->extra = table;
  inst->execute = execute_brx;
  inst->control = CONTROL_TABLE;
  return DECODED;
}

static const Place *param_place(const Function *function, const PtxVariable *variable) {
  for (int i = 0; i < function->place_count; i++)
    if (function->places[i].variable == variable) return &function->places[i];
  return NULL;
}

// The bytes of an argument: a .param variable of the caller, or a register or immediate of the parameter's type.
static bool argument_bytes(Decoder *decoder, const PtxOperand *argument, const PtxVariable *param, bool is_result,
                           Slot *slot, int *stride) {
  int size = (int)param->size;
  if (argument->kind == PTX_OPERAND_VARIABLE && argument->variable) {
    const Place *place = decoder_place(decoder, argument->variable);
    if (!place || !place->stride || argument->variable->size != param->size) return false;
    *slot = place->slot;
    *stride = place->stride;
    return true;
  }
  *slot =
      is_result ? decoder_destination(decoder, argument, param->type) : decoder_source(decoder, argument, param->type);
  *stride = size < 2 ? 2 : size;
  return !decoder->failed && param->type != PTX_PRED;
}

// The list of copies between a call's arguments and a function's parameters; NULL when they do not fit.
static Copy *bind_list(Decoder *decoder, const Function *callee, const PtxOperand *list,
                       const PtxVariable *const *params, int count, bool is_result) {
  if ((list ? list->item_count : 0) != count) return NULL;
  Copy *copies = decoder_allocate(decoder, ((size_t)count + 1) * sizeof(Copy));
  for (int i = 0; i < count; i++) {
    const Place *place = param_place(callee, params[i]);
    Slot slot;
    int stride;
    if (!place || !argument_bytes(decoder, &list->items[i], params[i], is_result, &slot, &stride)) return NULL;
    int size = (int)params[i]->size;
    copies[i] = is_result ? (Copy){place->slot, slot, place->stride, stride, size}
                          : (Copy){slot, place->slot, stride, place->stride, size};
  }
  return copies;
}

static bool bind(Decoder *decoder, const Function *callee, const PtxOperand *results, const PtxOperand *arguments,
                 Binding *binding) {
  const PtxFunction *ptx = callee->ptx;
  *binding = (Binding){
      .caller = decoder->function, .callee = callee, .in_count = ptx->param_count, .out_count = ptx->return_count};
  binding->in = bind_list(decoder, callee, arguments, ptx->params, ptx->param_count, false);
  binding->out = bind_list(decoder, callee, results, ptx->returns, ptx->return_count, true);
  return binding->in && binding->out;
}

// call (results), function, (arguments): the lists may be missing, and a prototype may follow.
DecodeResult decode_call(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"uni", NULL};
  if (!decoder_operands(decoder, source, 1, 4) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  const PtxOperand *operand = source->operands, *end = operand + source->operand_count;
  const PtxOperand *results = operand->kind == PTX_OPERAND_LIST ? operand++ : NULL;
  const PtxOperand *target = operand < end ? operand++ : NULL;
  const PtxOperand *arguments = operand < end && operand->kind == PTX_OPERAND_LIST ? operand++ : NULL;
  const Program *program = decoder->program;
  inst->control = CONTROL_NEXT;
  if (!target || (target->kind != PTX_OPERAND_FUNCTION && target->kind != PTX_OPERAND_REGISTER))
    return decoder_error(decoder, source, "needs a function or a register");
  const Function *callee = program_function(program, target);
  if (target->kind == PTX_OPERAND_FUNCTION && !callee)
    return system_call_decode(decoder, source, target->name, results, arguments, inst);

  CallSite *site = decoder_allocate(decoder, sizeof *site);
  site->bindings = decoder_allocate(decoder, (callee ? 1 : (size_t)program->function_count) * sizeof(Binding));
  inst->extra = site;
  if (callee) {
    inst->execute = execute_call;
    site->count = 1;
    if (bind(decoder, callee, results, arguments, site->bindings)) return DECODED;
    return decoder_error(decoder, source, "the arguments do not fit the parameters of %s", target->name);
  }
  inst->execute = execute_call_indirect;
  inst->a = decoder_source(decoder, target, PTX_B64);
  for (int i = 1; i < program->function_count; i++)
    if (bind(decoder, &program->functions[i], results, arguments, &site->bindings[site->count])) site->count++;
  return DECODED;
}

static DecodeResult decode_end(Decoder *decoder, const PtxInstruction *source, Execute *execute, Inst *inst) {
  static const char *const allowed[] = {"uni", NULL};
  if (!decoder_operands(decoder, source, 0, 0) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  inst->execute = execute;
  inst->control = CONTROL_END;
  return DECODED;
}

DecodeResult decode_ret(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_end(decoder, source, execute_ret, inst);
}

DecodeResult decode_exit(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_end(decoder, source, execute_exit, inst);
}

DecodeResult decode_trap(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  return decode_end(decoder, source, execute_trap, inst);
}

// ---- threads exit ----

// Lanes that wait at an instruction for some that now exit go on without them. Where the instruction has a member mask
// PTX promises that (PTX ISA 9.7.9.6, "non-exited threads"). Where it is .aligned, all lanes of the warp were to
// execute it.
static void check_waiting(Warp *warp, Mask exiting) {
  const Inst *code = warp_launch(warp)->program->code;
  for (int i = 0; i < warp->group_count; i++) {
    Group *group = &warp->groups[i];
    if (group->state != GROUP_CONVERGING) continue;
    const Inst *inst = &code[group->pc];
    group->state = GROUP_READY;
    if (inst->converge != CONVERGE_ALIGNED) continue;
    hazard_report_graded(HAZARD_FORMAL, warp, inst, __builtin_ctz(group->mask), HAZARD_DIVERGENT_ALIGNED, 0, 0,
                         "lanes 0x%08x execute it, lanes 0x%08x of the same warp exit without it. An H200 goes on "
                         "without lanes that have exited (tests/rules)",
                         group->mask, exiting);
  }
}

void warp_exit(Warp *warp, Mask mask) {
  if (warp->block->cluster->foresight) {
    warp_leave(warp, mask);
    warp->live &= ~mask;
    return;
  }
  bulk_check_exit(warp, mask);
  cluster_check_exit(warp, mask);
  warp_leave(warp, mask);
  warp->live &= ~mask;
  warp->exit = &warp_launch(warp)->program->code[warp->pc - 1];
  for (Mask rest = mask; rest; rest &= rest - 1) warp->left[__builtin_ctz(rest)] = warp->block->phases;
  if (!warp->live) setmaxnreg_check_exit(warp);
  if (!warp->live) wgmma_check_exit(warp);
  check_waiting(warp, mask);
  warp->block->live_threads -= __builtin_popcount(mask);
  warp->block->cluster->progress++;
  barriers_after_exit(warp->block);
  if (!warp->block->live_threads) barriers_check_end(warp->block);
  cluster_barrier_after_exit(warp->block->cluster);
}

// ---- alloca ----
//
// The stack is the end of the thread's local memory, and grows downwards; control.c takes it back when a function
// returns. A special register that has no name holds its pointer.

enum { DEFAULT_ALIGNMENT = 8, MOST_ALIGNMENT = 1 << 12 };

// Inst.b is the stack pointer, immediate the alignment, size that of the result.
static void execute_alloca(Warp *warp, const Inst *inst, Mask mask) {
  const Program *program = warp_launch(warp)->program;
  u64 *pointer = SLOT(warp, inst->b, u64);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u64 size = inst->size == 8 ? SLOT(warp, inst->a, const u64)[lane] : SLOT(warp, inst->a, const u32)[lane];
    u64 room = pointer[lane] - program->stack_limit;
    if (size > room || ((pointer[lane] - size) & ~(u64)(inst->immediate - 1)) < program->stack_limit) {
      hazard_stop(warp, inst, lane, HAZARD_TRAP, pointer[lane], 0, "stack overflow: %llu bytes, and %llu are left",
                  (unsigned long long)size, (unsigned long long)room);
      return;
    }
    pointer[lane] = (pointer[lane] - size) & ~(u64)(inst->immediate - 1);
    if (inst->size == 8)
      SLOT(warp, inst->d, u64)[lane] = pointer[lane];
    else
      SLOT(warp, inst->d, u32)[lane] = (u32)pointer[lane];
  }
}

static void execute_stacksave(Warp *warp, const Inst *inst, Mask mask) {
  const u64 *pointer = SLOT(warp, inst->b, u64);
  if (inst->size == 8)
    EACH_LANE(mask, SLOT(warp, inst->d, u64)[LANE] = pointer[LANE]);
  else
    EACH_LANE(mask, SLOT(warp, inst->d, u32)[LANE] = (u32)pointer[LANE]);
}

static void execute_stackrestore(Warp *warp, const Inst *inst, Mask mask) {
  const Program *program = warp_launch(warp)->program;
  u64 *pointer = SLOT(warp, inst->b, u64);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u64 saved = inst->size == 8 ? SLOT(warp, inst->a, const u64)[lane] : SLOT(warp, inst->a, const u32)[lane];
    if (saved < pointer[lane] || saved > program->local_size) {
      hazard_stop(warp, inst, lane, HAZARD_TRAP, saved, 0, "this is no pointer that stacksave gave");
      return;
    }
    pointer[lane] = saved;
  }
}

// stacksave.type d;  stackrestore.type a;  alloca.type d, size{, alignment};
DecodeResult decode_stack(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {NULL};
  static const PtxOperand pointer = {
      .kind = PTX_OPERAND_SPECIAL, .name = "stack pointer", .index = -1, .component = -1};
  bool takes = *source->opcode == 'a', restores = !takes && source->opcode[5] == 'r';
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1 + takes, 1 + 2 * takes))
    return DECODE_FAILED;
  PtxType type = ptx_instruction_type(source);
  if (type != PTX_U32 && type != PTX_U64) return decoder_error(decoder, source, "is .u32 or .u64");
  const PtxOperand *operands = source->operands;
  inst->immediate = source->operand_count > 2 ? operands[2].value : DEFAULT_ALIGNMENT;
  if (inst->immediate < 1 || inst->immediate > MOST_ALIGNMENT || inst->immediate & (inst->immediate - 1))
    return decoder_error(decoder, source, "the alignment is a power of two up to %d", MOST_ALIGNMENT);
  inst->size = (uint8_t)ptx_type_size(type);
  inst->b = decoder->program->stack = decoder_source(decoder, &pointer, PTX_U64);
  if (takes || restores) inst->a = decoder_source(decoder, &operands[takes], type);
  if (!restores) inst->d = decoder_destination(decoder, &operands[0], type);
  inst->execute = takes ? execute_alloca : restores ? execute_stackrestore : execute_stacksave;
  return DECODED;
}
