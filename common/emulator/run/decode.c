// Decodes a kernel: gives every register, immediate and variable its place, and has each instruction decoded as its
// row of the table of instructions says.
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "../flow/families.h"
#include "../memory/passes.h"
#include "../scalar/contraction.h"
#include "../tensor/wgmma_registers.h"
#include "../host/host_memory.h"
#include "../warp/decoder.h"

enum {
  MAX_STATIC_SHARED = 1 << 24,
  MAX_LOCAL = 512 << 10,  // of a thread: CUDA C++ programming guide, table of technical specifications
  MAX_PARAM = 32764,      // of a kernel: PTX ISA 5.1.6.1
  MAX_FUNCTIONS = 1024,   // of one kernel
  RECURSIVE_LOCAL = 64 << 10,
  STACK_LOCAL = 64 << 10,  // for alloca
};

// ---- functions ----

static uint64_t align_up(uint64_t value, uint64_t alignment) {
  return alignment > 1 ? (value + alignment - 1) / alignment * alignment : value;
}

static void add_function(Program *program, int index) {
  if (program->function_of[index]) return;
  program->functions[program->function_count++].ptx = &program->module->functions[index];
  program->function_of[index] = program->function_count;
}

// Adds the functions that an operand names, which may be inside a list.
static void add_functions(Program *program, const PtxOperand *operands, int count) {
  for (int i = 0; i < count; i++) {
    add_functions(program, operands[i].items, operands[i].item_count);
    if (operands[i].kind == PTX_OPERAND_FUNCTION && operands[i].index >= 0) add_function(program, operands[i].index);
  }
}

// The parser keeps one copy of equal texts: instructions are alike when their opcode and modifiers are the same
// pointers.
static bool are_alike(const PtxInstruction *a, const PtxInstruction *b) {
  if (a->opcode != b->opcode || a->modifier_count != b->modifier_count) return false;
  for (int i = 0; i < a->modifier_count; i++)
    if (a->modifiers[i] != b->modifiers[i]) return false;
  return true;
}

static size_t known_place(const PtxInstruction *source) {
  uint64_t hash = (uint64_t)(uintptr_t)source->opcode;
  for (int i = 0; i < source->modifier_count; i++)
    hash = hash * 0x9e3779b97f4a7c15ull + (uint64_t)(uintptr_t)source->modifiers[i];
  return hash * 0x9e3779b97f4a7c15ull >> 32 & (KNOWN_ROWS - 1);
}

// The row of an instruction: mostly one like it was looked up before.
static const Instruction *row_of(Decoder *decoder, const PtxInstruction *source) {
  size_t place = known_place(source);
  const PtxInstruction *like = decoder->known[place].like;
  if (!like || !are_alike(like, source)) {
    decoder->known[place].like = source;
    decoder->known[place].row = instruction_find(source);
  }
  return decoder->known[place].row;
}

// Whether a function calls through a register.
static bool calls_indirectly(Decoder *decoder, const PtxFunction *ptx) {
  for (int i = 0; i < ptx->instruction_count; i++) {
    const PtxInstruction *source = &ptx->instructions[i];
    const Instruction *row = row_of(decoder, source);
    for (int o = 0; o < source->operand_count && row && row->calls; o++)
      if (source->operands[o].kind == PTX_OPERAND_REGISTER) return true;
  }
  return false;
}

// Adds the functions whose address any function of the module takes: another kernel may have left it in memory.
static void add_addresses(Decoder *decoder) {
  Program *program = decoder->program;
  PtxModule *module = decoder->module;
  for (int f = 0; f < module->function_count; f++) {
    const PtxFunction *ptx = &module->functions[f];
    PtxError malformed;
    if (!ptx_parse_body(module, f, &malformed)) continue;
    for (int i = 0; i < ptx->instruction_count; i++)
      if (!strcmp(ptx->instructions[i].opcode, "mov"))
        add_functions(program, ptx->instructions[i].operands, ptx->instructions[i].operand_count);
  }
}

// The entry and every function that it names, directly or not. Function addresses may also sit in a module variable's
// initializer: a program with such a table may call any function. False and an error when a body is malformed.
static bool collect_functions(Decoder *decoder, const PtxFunction *entry) {
  Program *program = decoder->program;
  PtxModule *module = decoder->module;
  program->functions = program_allocate(program, ((size_t)module->function_count + 1) * sizeof(Function));
  program->function_of = program_allocate(program, (size_t)module->function_count * sizeof(int));
  add_function(program, entry->index);
  for (int v = 0; v < module->variable_count; v++)
    for (int r = 0; r < module->variables[v]->relocation_count; r++) {
      int callee = module->variables[v]->relocations[r].function;
      if (callee >= 0 && !module->functions[callee].is_entry) add_function(program, callee);
    }
  bool any_address = false;
  for (int f = 0; f < program->function_count; f++) {
    const PtxFunction *ptx = program->functions[f].ptx;
    PtxError malformed;
    if (!ptx_parse_body(module, ptx->index, &malformed)) {
      if (malformed.out_of_memory) out_of_memory();
      decoder_fail(decoder, malformed.line, "%s", malformed.message);
      return false;
    }
    for (int i = 0; i < ptx->instruction_count; i++)
      add_functions(program, ptx->instructions[i].operands, ptx->instructions[i].operand_count);
    if (any_address || !calls_indirectly(decoder, ptx)) continue;
    add_addresses(decoder);
    any_address = true;
  }
  return true;
}

// Slots of a function's registers.
static void place_registers(Decoder *decoder, Function *function) {
  const PtxFunction *ptx = function->ptx;
  function->first_slot = (Slot)decoder->program->register_bytes;
  function->registers = decoder_allocate(decoder, ((size_t)ptx->register_count + 1) * sizeof(Slot));
  for (int i = 0; i < ptx->register_count; i++)
    for (int v = 0; v < ptx->registers[i].vector; v++) {
      Slot slot = decoder_slot(decoder, slot_element_size(ptx->registers[i].type));
      if (v == 0) function->registers[i] = slot;
    }
}

static Place *add_place(Function *function, const PtxVariable *variable) {
  Place *place = &function->places[function->place_count++];
  place->variable = variable;
  return place;
}

// A parameter of a device function: bytes for each lane among the registers.
static void place_param(Decoder *decoder, Function *function, const PtxVariable *variable) {
  Place *place = add_place(function, variable);
  uint64_t size = align_up(variable->size, 8);
  if (size > 1 << 16) {
    decoder_fail(decoder, variable->line, "parameter %s is too large", variable->name);
    return;
  }
  place->stride = (int)size;
  place->slot = decoder_slot(decoder, (int)size < 8 ? 8 : (int)size);
}

static void place_function_variables(Decoder *decoder, Function *function) {
  const PtxFunction *ptx = function->ptx;
  Program *program = decoder->program;
  int count = ptx->param_count + ptx->return_count + ptx->variable_count;
  function->places = decoder_allocate(decoder, ((size_t)count + 1) * sizeof(Place));
  for (int i = 0; i < ptx->param_count; i++) {
    if (!ptx->is_entry) {
      place_param(decoder, function, ptx->params[i]);
      continue;
    }
    program->param_size = align_up(program->param_size, ptx->params[i]->alignment);
    add_place(function, ptx->params[i])->address = program->param_size;
    program->param_size += ptx->params[i]->size;
    if (ptx->params[i]->size > MAX_PARAM || program->param_size > MAX_PARAM) {
      decoder_fail(decoder, ptx->params[i]->line, "a kernel has at most %d bytes of parameters, %s goes beyond",
                   MAX_PARAM, ptx->params[i]->name);
      return;
    }
  }
  for (int i = 0; i < ptx->return_count; i++) place_param(decoder, function, ptx->returns[i]);
  for (int i = 0; i < ptx->variable_count; i++) {
    const PtxVariable *variable = ptx->variables[i];
    if (variable->space == PTX_PARAM) {
      place_param(decoder, function, variable);
    } else if (variable->space == PTX_LOCAL) {
      function->local_size = align_up(function->local_size, variable->alignment);
      add_place(function, variable)->address = function->local_size;
      function->local_size += variable->size;
    } else if (variable->space == PTX_SHARED && !variable->is_extern) {
      program->shared_size = align_up(program->shared_size, variable->alignment);
      add_place(function, variable)->address = SHARED_BASE + program->shared_size;
      program->shared_size += variable->size;
    }
    if (program->shared_size > MAX_STATIC_SHARED || variable->size > MAX_STATIC_SHARED) {
      decoder_fail(decoder, variable->line, "%s is too large", variable->name);
      return;
    }
    if (function->local_size > MAX_LOCAL) {
      decoder_fail(decoder, variable->line, "a thread has at most %d bytes of local memory, %s goes beyond", MAX_LOCAL,
                   variable->name);
      return;
    }
  }
  function->local_size = align_up(function->local_size, 16);
  function->end_slot = (Slot)program->register_bytes;
}

typedef enum Visit { NOT_YET, ON_THE_WAY, DONE } Visit;

static bool calls_in_circle(const Program *program, const Function *function, Visit *visits);

static bool operands_lead_in_circle(const Program *program, const PtxOperand *operands, int count, Visit *visits) {
  for (int i = 0; i < count; i++) {
    const Function *callee = program_function(program, &operands[i]);
    if ((callee && calls_in_circle(program, callee, visits)) ||
        operands_lead_in_circle(program, operands[i].items, operands[i].item_count, visits))
      return true;
  }
  return false;
}

// Whether the calls of a function lead back to one that is on the way to it.
static bool calls_in_circle(const Program *program, const Function *function, Visit *visits) {
  Visit *visit = &visits[function - program->functions];
  if (*visit != NOT_YET) return *visit == ON_THE_WAY;
  *visit = ON_THE_WAY;
  for (int i = 0; i < function->ptx->instruction_count; i++) {
    const PtxInstruction *source = &function->ptx->instructions[i];
    if (operands_lead_in_circle(program, source->operands, source->operand_count, visits)) return true;
  }
  *visit = DONE;
  return false;
}

// Whether a function has alloca or its kin.
static bool uses_stack(Decoder *decoder, const PtxFunction *ptx) {
  for (int i = 0; i < ptx->instruction_count; i++) {
    const Instruction *row = row_of(decoder, &ptx->instructions[i]);
    if (row && row->uses_stack) return true;
  }
  return false;
}

// How much local memory a thread needs: more where a function may be entered again before it returns. Through a
// register any may be called.
static void measure_local(Decoder *decoder) {
  Program *program = decoder->program;
  Visit *visits = program_allocate(program, (size_t)program->function_count * sizeof *visits);
  bool again = calls_in_circle(program, &program->functions[0], visits), stack = false;
  for (int f = 0; f < program->function_count; f++) {
    again |= calls_indirectly(decoder, program->functions[f].ptx);
    stack |= uses_stack(decoder, program->functions[f].ptx);
    program->local_size += program->functions[f].local_size;
  }
  if (again && program->local_size) program->local_size += RECURSIVE_LOCAL;
  program->stack_limit = program->local_size = align_up(program->local_size, 16);
  if (stack) program->local_size += STACK_LOCAL;
}

static void decode_guard(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  PtxOperand guard = {.kind = PTX_OPERAND_REGISTER, .index = source->guard, .component = -1};
  inst->guarded = true;
  inst->guard_negated = source->guard_negated;
  inst->guard = decoder_source(decoder, &guard, PTX_PRED);
}

static void report_unknown(Decoder *decoder, const PtxInstruction *source) {
  char known[300];
  instruction_list(source->opcode, known, sizeof known);
  decoder_error(decoder, source, "unknown instruction%s", known);
}

static void decode_instruction(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  decoder->source = source;
  inst->source = source;
  inst->row = row_of(decoder, source);
  inst->touch_start = decoder->program->touch_count;
  if (source->guard >= 0) decode_guard(decoder, source, inst);
  if (inst->row)
    inst->row->decode(decoder, source, inst);
  else
    report_unknown(decoder, source);
  if (!inst->execute && !decoder->failed) decoder_error(decoder, source, "it is malformed");
  inst->touch_count = (uint16_t)(decoder->program->touch_count - inst->touch_start);
}

// The end of a function's body returns.
static const PtxInstruction implicit_return = {.opcode = "ret", .guard = -1};

static void decode_function(Decoder *decoder, Function *function) {
  decoder->function = function;
  const PtxFunction *ptx = function->ptx;
  Inst *code = decoder->program->code + function->start;
  decoder->failed |= !target_check_function(ptx, decoder->error);
  for (int i = 0; i < ptx->instruction_count && !decoder->failed; i++)
    decode_instruction(decoder, &ptx->instructions[i], &code[i]);
  if (!decoder->failed) decode_instruction(decoder, &implicit_return, &code[ptx->instruction_count]);
  if (!decoder->failed) cfg_analyse(decoder->program, function);
}

static bool names_variable(const PtxOperand *operands, int count, const PtxVariable *variable) {
  for (int i = 0; i < count; i++)
    if (operands[i].variable == variable || names_variable(operands[i].items, operands[i].item_count, variable))
      return true;
  return false;
}

// Whether a function of the program names the variable: a kernel is given only the shared memory that it uses.
static bool is_used(const Program *program, const PtxVariable *variable) {
  for (int f = 0; f < program->function_count; f++) {
    const PtxFunction *ptx = program->functions[f].ptx;
    for (int i = 0; i < ptx->instruction_count; i++)
      if (names_variable(ptx->instructions[i].operands, ptx->instructions[i].operand_count, variable)) return true;
  }
  return false;
}

// What the race check knows of the instructions.
static void make_sites(Program *program) {
  program->sites = program_allocate(program, program->count * sizeof *program->sites);
  for (uint32_t pc = 0; pc < program->count; pc++) {
    const Inst *inst = &program->code[pc];
    program->sites[pc] = (Site){.size = inst->size, .stores = inst->row->memory == MEMORY_STORE};
  }
}

Program *program_decode(PtxModule *module, const PtxFunction *entry, const Place *variables, int variable_count,
                        EmulatorError *error) {
  Program *program = host_allocate(1, sizeof *program);
  program->module = module;
  program->register_bytes = 64;  // slot 0 belongs to no register
  Decoder decoder = {.program = program, .module = module, .error = error};
  if (!collect_functions(&decoder, entry)) {
    program_free(program);
    return NULL;
  }
  for (int f = 0; f < program->function_count; f++) {
    Function *function = &program->functions[f];
    function->start = program->count;
    program->count += (uint32_t)function->ptx->instruction_count + 1;
    function->end = program->count;
    place_registers(&decoder, function);
    place_function_variables(&decoder, function);
  }

  // Module-level shared variables and the dynamic array follow the functions' own.
  Place *places = decoder_allocate(&decoder, ((size_t)variable_count + 1) * sizeof(Place));
  uint64_t dynamic_alignment = 16;
  for (int i = 0; i < variable_count; i++) {
    places[i] = variables[i];
    const PtxVariable *variable = variables[i].variable;
    if (variable->space != PTX_SHARED || !is_used(program, variable)) continue;
    if (variable->is_extern && variable->alignment > dynamic_alignment) dynamic_alignment = variable->alignment;
    if (variable->is_extern) continue;
    if (variable->size > MAX_STATIC_SHARED || program->shared_size > MAX_STATIC_SHARED) {
      decoder_fail(&decoder, variable->line, "%s is too large", variable->name);
      continue;
    }
    program->shared_size = align_up(program->shared_size, variable->alignment);
    places[i].address = SHARED_BASE + program->shared_size;
    program->shared_size += variable->size;
  }
  program->dynamic_offset = align_up(program->shared_size, dynamic_alignment);
  for (int i = 0; i < variable_count; i++)
    if (places[i].variable->space == PTX_SHARED && places[i].variable->is_extern)
      places[i].address = SHARED_BASE + program->dynamic_offset;
  if (program->shared_size > MAX_STATIC_SHARED) decoder_fail(&decoder, entry->line, "too much static shared memory");
  decoder.variables = program->variables = places;
  decoder.variable_count = program->variable_count = variable_count;

  if (program->function_count > MAX_FUNCTIONS)
    decoder_fail(&decoder, entry->line, "a kernel calls at most %d functions", MAX_FUNCTIONS);
  if (!decoder.failed) measure_local(&decoder);
  if (program->local_size > MAX_LOCAL)
    decoder_fail(&decoder, entry->line,
                 "a thread has at most %d bytes of local memory, the kernel's functions together go beyond", MAX_LOCAL);
  program->code = decoder_allocate(&decoder, program->count * sizeof(Inst));
  for (int f = 0; f < program->function_count && !decoder.failed; f++)
    decode_function(&decoder, &program->functions[f]);
  free(decoder.constant_buckets);
  if (!decoder.failed) contract_products(&decoder);
  if (!decoder.failed) make_sites(program);
  if (!decoder.failed) find_postponed_loads(program);
  if (!decoder.failed) find_dead_elements(program);
  if (!decoder.failed) find_late_loads(program);
  if (!decoder.failed) find_first_guesses(program);
  if (!decoder.failed) wgmma_watch_program(program);
  if (!decoder.failed) return program;
  program_free(program);
  return NULL;
}

// ---- where divergent lanes meet ----
//
// Threads that went different ways meet again soonest if the group that is furthest behind runs first. "Behind" is an
// order of the basic blocks in which a block comes after everything that can lead to it, loops aside, and a loop's body
// before its exit: the reverse postorder of a depth-first search that leaves loops first (thread frontiers, Diamos et
// al., MICRO 2011). Nothing but speed depends on it: instructions that need other lanes wait for them wherever they
// are.

typedef struct BasicBlock {
  uint32_t start, end;  // instructions
  int *successors;
  int successor_count;
  int loop_depth;
  int next_successor;  // of the search
  int state;           // of the search: 0 new, 1 on the stack, 2 finished
} BasicBlock;

typedef struct BackEdge {
  int from, to;
} BackEdge;

typedef struct Graph {
  const Inst *code;
  BasicBlock *blocks;
  int count;
  int *block_of;  // by instruction, from the function's start
  uint32_t start;
  int *stack;
  int *finished;  // blocks in postorder
  int finished_count;
  BackEdge *back_edges;
  int back_edge_count;
} Graph;

static void mark_leaders(Inst *code, const Function *function) {
  code[function->start].leader = true;
  for (uint32_t i = function->start; i < function->end; i++) {
    if (code[i].control == CONTROL_NEXT) continue;
    if (i + 1 < function->end) code[i + 1].leader = true;
    if (code[i].control == CONTROL_BRANCH) code[code[i].immediate].leader = true;
    const BranchTable *table = code[i].extra;
    for (uint32_t t = 0; code[i].control == CONTROL_TABLE && t < table->count; t++)
      code[table->targets[t]].leader = true;
  }
}

static void split_blocks(Graph *graph, const Function *function) {
  for (uint32_t i = function->start; i < function->end; i++) graph->count += graph->code[i].leader;
  graph->blocks = host_allocate((size_t)graph->count, sizeof *graph->blocks);
  graph->block_of = host_allocate(function->end - function->start, sizeof(int));
  int block = -1;
  for (uint32_t i = function->start; i < function->end; i++) {
    if (graph->code[i].leader) graph->blocks[++block].start = i;
    graph->blocks[block].end = i + 1;
    graph->block_of[i - function->start] = block;
  }
}

static void add_successor(Graph *graph, BasicBlock *block, uint32_t target) {
  block->successors[block->successor_count++] = graph->block_of[target - graph->start];
}

static void link_blocks(Graph *graph, const Function *function) {
  for (int b = 0; b < graph->count; b++) {
    BasicBlock *block = &graph->blocks[b];
    const Inst *last = &graph->code[block->end - 1];
    const BranchTable *table = last->control == CONTROL_TABLE ? last->extra : NULL;
    block->successors = host_allocate(2 + (table ? table->count : 0), sizeof(int));
    bool falls_through = last->control == CONTROL_NEXT || last->guarded;
    if (falls_through && block->end < function->end) add_successor(graph, block, block->end);
    if (last->control == CONTROL_BRANCH) add_successor(graph, block, (uint32_t)last->immediate);
    for (uint32_t t = 0; table && t < table->count; t++) add_successor(graph, block, table->targets[t]);
  }
}

// Depth-first search from a block, without recursion. Appends blocks to `finished` in postorder and remembers every
// edge to a block that is on the stack: the back edge of a loop.
static void search(Graph *graph, int root) {
  int depth = 0;
  if (graph->blocks[root].state) return;
  graph->stack[depth++] = root;
  graph->blocks[root].state = 1;
  while (depth > 0) {
    int b = graph->stack[depth - 1];
    BasicBlock *block = &graph->blocks[b];
    if (block->next_successor == block->successor_count) {
      block->state = 2;
      graph->finished[graph->finished_count++] = b;
      depth--;
      continue;
    }
    int to = block->successors[block->next_successor++];
    if (graph->blocks[to].state == 1 && graph->back_edge_count < graph->count)
      graph->back_edges[graph->back_edge_count++] = (BackEdge){b, to};
    if (graph->blocks[to].state) continue;
    graph->blocks[to].state = 1;
    graph->stack[depth++] = to;
  }
}

// Blocks that measure_loops looks at. A kernel of thousands of loops in each other, which no compiler writes, has some
// of them uncounted: it runs slower for that.
enum { MOST_VISITS = 1 << 22 };

// Counts for every block the loops it is in: a loop is the blocks that reach its back edge without passing its head.
static void measure_loops(Graph *graph) {
  int *first_predecessor = host_allocate((size_t)graph->count + 1, sizeof(int));
  for (int b = 0; b < graph->count; b++)
    for (int s = 0; s < graph->blocks[b].successor_count; s++) first_predecessor[graph->blocks[b].successors[s] + 1]++;
  for (int b = 0; b < graph->count; b++) first_predecessor[b + 1] += first_predecessor[b];
  int *predecessors = host_allocate((size_t)first_predecessor[graph->count], sizeof(int));
  int *filled = host_allocate((size_t)graph->count, sizeof(int));
  for (int b = 0; b < graph->count; b++)
    for (int s = 0; s < graph->blocks[b].successor_count; s++) {
      int to = graph->blocks[b].successors[s];
      predecessors[first_predecessor[to] + filled[to]++] = b;
    }
  int *seen = host_allocate((size_t)graph->count, sizeof(int));
  for (int e = 0, visits = 0; e < graph->back_edge_count && visits < MOST_VISITS; e++) {
    int depth = 0, mark = e + 1;
    seen[graph->back_edges[e].to] = mark;
    graph->blocks[graph->back_edges[e].to].loop_depth++;
    graph->stack[depth++] = graph->back_edges[e].from;
    while (depth > 0) {
      int b = graph->stack[--depth];
      if (seen[b] == mark) continue;
      seen[b] = mark;
      visits++;
      graph->blocks[b].loop_depth++;
      for (int p = first_predecessor[b]; p < first_predecessor[b + 1]; p++)
        if (seen[predecessors[p]] != mark && depth < graph->count) graph->stack[depth++] = predecessors[p];
    }
  }
  free(first_predecessor);
  free(predecessors);
  free(filled);
  free(seen);
}

// Puts the successors that leave loops first: they finish first, and so come last in the reverse postorder.
static void sort_successors(Graph *graph) {
  for (int b = 0; b < graph->count; b++) {
    int *list = graph->blocks[b].successors, count = graph->blocks[b].successor_count;
    for (int i = 1; i < count; i++) {
      int block = list[i], at = i;
      for (; at > 0 && graph->blocks[list[at - 1]].loop_depth > graph->blocks[block].loop_depth; at--)
        list[at] = list[at - 1];
      list[at] = block;
    }
  }
}

void cfg_analyse(Program *program, const Function *function) {
  mark_leaders(program->code, function);
  Graph graph = {.code = program->code, .start = function->start};
  split_blocks(&graph, function);
  link_blocks(&graph, function);
  graph.stack = host_allocate((size_t)graph.count + 1, sizeof(int));
  graph.finished = host_allocate((size_t)graph.count, sizeof(int));

  graph.back_edges = host_allocate((size_t)graph.count, sizeof(BackEdge));

  search(&graph, 0);
  measure_loops(&graph);

  sort_successors(&graph);
  for (int b = 0; b < graph.count; b++) graph.blocks[b].state = graph.blocks[b].next_successor = 0;
  graph.finished_count = 0;
  search(&graph, 0);
  for (int b = 1; b < graph.count; b++) search(&graph, b);  // what cannot be reached

  uint32_t priority = function->start;
  for (int f = graph.finished_count - 1; f >= 0; f--) {
    const BasicBlock *block = &graph.blocks[graph.finished[f]];
    for (uint32_t i = block->start; i < block->end; i++) program->code[i].priority = priority++;
  }
  for (int b = 0; b < graph.count; b++) free(graph.blocks[b].successors);
  free(graph.blocks);
  free(graph.block_of);
  free(graph.stack);
  free(graph.finished);
  free(graph.back_edges);
}
