// The ways between two instructions: see ways.h.
#include "ways.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"

bool is_block_barrier(const Inst *inst) {
  return inst->row->orders == ORDERS_BLOCK && !ptx_has(inst->source, "arrive");
}

bool is_warp_barrier(const Inst *inst) { return is_block_barrier(inst) || inst->row->orders == ORDERS_WARP; }

bool is_cluster_barrier(const Inst *inst) {
  return inst->row->orders == ORDERS_CLUSTER && ptx_has(inst->source, "wait");
}

bool is_proxy_fence(const Inst *inst) { return inst->row->orders == ORDERS_PROXIES && ptx_has(inst->source, "async"); }

// ---- the walk ----

typedef struct Walk {
  const Program *program;
  uint8_t *seen;   // by instruction
  uint32_t *todo;  // to be followed
  uint32_t count;
} Walk;

static void visit(Walk *walk, int64_t pc) {
  if (pc >= walk->program->count || walk->seen[pc]) return;
  walk->seen[pc] = 1;
  walk->todo[walk->count++] = (uint32_t)pc;
}

static void visit_successors(Walk *walk, uint32_t pc) {
  const Inst *inst = &walk->program->code[pc];
  if (inst->control == CONTROL_NEXT || inst->guarded) visit(walk, (int64_t)pc + 1);
  if (inst->control == CONTROL_BRANCH) visit(walk, inst->immediate);
  const BranchTable *table = inst->control == CONTROL_TABLE ? inst->extra : NULL;
  for (uint32_t t = 0; table && t < table->count; t++) visit(walk, table->targets[t]);
}

// Where a walk ends, if there is a test: at what passes it, and at calls.
static bool stops(const Inst *inst, InstructionTest *test) {
  return test && !inst->guarded && (test(inst) || inst->row->calls);
}

static void follow_ways(Walk *walk, InstructionTest *test) {
  while (walk->count) {
    uint32_t pc = walk->todo[--walk->count];
    if (!stops(&walk->program->code[pc], test)) visit_successors(walk, pc);
  }
}

static void walk_ways_from(Walk *walk, uint32_t pc, InstructionTest *test) {
  memset(walk->seen, 0, walk->program->count);
  visit_successors(walk, pc);
  follow_ways(walk, test);
}

// Instructions of one kind that stand in one line of the source: in copies of the body of a loop.
static bool are_copies(const Inst *a, const Inst *b) {
  const PtxLocation *one = a->source->location, *other = b->source->location;
  if (!one || a->execute != b->execute) return false;
  for (; one && other && one->file == other->file && one->line == other->line; other = other->inlined_at)
    one = one->inlined_at;
  return !one && !other;
}

// From all copies of the instruction.
static void walk_from_copies(Walk *walk, const Inst *from, InstructionTest *test) {
  memset(walk->seen, 0, walk->program->count);
  for (uint32_t pc = 0; pc < walk->program->count; pc++) {
    if (!are_copies(from, &walk->program->code[pc])) continue;
    visit_successors(walk, pc);
    follow_ways(walk, test);
  }
}

// Whether an instruction is followed by `to`, or by one that leads there.
static bool leads(const Walk *walk, uint32_t pc, uint32_t to, const uint8_t *leading, InstructionTest *test) {
  const Program *program = walk->program;
  const Inst *inst = &program->code[pc];
  const BranchTable *table = inst->control == CONTROL_TABLE ? inst->extra : NULL;
  uint32_t next[2] = {program->count, program->count};
  if ((inst->control == CONTROL_NEXT || inst->guarded) && pc + 1 < program->count) next[0] = pc + 1;
  if (inst->control == CONTROL_BRANCH) next[1] = (uint32_t)inst->immediate;
  for (uint32_t i = 0; i < 2 + (table ? table->count : 0); i++) {
    uint32_t successor = i < 2 ? next[i] : table->targets[i - 2];
    if (successor >= program->count) continue;
    if (successor == to || (leading[successor] && !stops(&program->code[successor], test))) return true;
  }
  return false;
}

// The last instruction that passes the test, of all in `reached`, from which `to` is reached without another.
static const Inst *last_on_the_way(const Walk *walk, const uint8_t *reached, uint32_t to, InstructionTest *test) {
  const Program *program = walk->program;
  uint8_t *leading = host_allocate(program->count, 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t pc = program->count; pc-- > 0;)
      if (!leading[pc] && leads(walk, pc, to, leading, test)) leading[pc] = changed = true;
  }
  const Inst *last = NULL;
  for (uint32_t pc = 0; pc < program->count; pc++) {
    const Inst *inst = &program->code[pc];
    bool is_on = reached[pc] && leading[pc] && !inst->guarded && test(inst);
    if (is_on && (pc < to || !last)) last = inst;
  }
  free(leading);
  return last;
}

Ways ways_between(const Program *program, const Inst *from, const Inst *to, InstructionTest *test) {
  Walk walk = {.program = program,
               .seen = host_allocate(program->count, 1),
               .todo = host_allocate(program->count, sizeof(uint32_t))};
  uint8_t *reached = host_allocate(program->count, 1);
  uint32_t start = (uint32_t)(from - program->code), end = (uint32_t)(to - program->code);
  Ways ways = {.onward = end > start};
  walk_ways_from(&walk, start, NULL);
  bool copies = !walk.seen[end];  // the loop was unrolled completely
  if (copies) walk_from_copies(&walk, from, NULL);
  ways.reach = walk.seen[end];
  memcpy(reached, walk.seen, program->count);
  if (copies)
    walk_from_copies(&walk, from, test);
  else
    walk_ways_from(&walk, start, test);
  ways.free = walk.seen[end];
  if (ways.reach) ways.on = last_on_the_way(&walk, reached, end, test);
  free(walk.seen);
  free(walk.todo);
  free(reached);
  return ways;
}
