// Loads that may be under way when memory is handed on: see passes.h.
//
// From each load the control-flow graph is walked up to the first uses of its value. A use by ptxas may stand elsewhere
// than in PTX: what is used before an instruction in PTX may be used after it in the machine code. That cannot be seen
// here.
#include "passes.h"

#include <stdlib.h>
#include <string.h>

#include "../check/clocks.h"
#include "../check/order.h"
#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "memory.h"

enum {
  MOST_CARRIERS = 64,    // registers that have the value
  MOST_STEPS = 1 << 14,  // instructions of one walk; a load that is used later than that is not watched
};

typedef struct Walk {
  Program *program;
  uint32_t *reached;           // by instruction: the number of the last walk that came there
  uint32_t *path, path_count;  // instructions between the load and the uses of its value
  uint32_t *uses, use_count;
  uint8_t *useful;  // by instruction of the path: the value is used behind it
  uint32_t number;
  Slot carriers[MOST_CARRIERS];
  int carrier_count;
} Walk;

static bool carries_value(const Walk *walk, Slot slot) {
  for (int i = 0; i < walk->carrier_count; i++)
    if (walk->carriers[i] == slot) return true;
  return false;
}

static void add_carrier(Walk *walk, Slot slot) {
  if (!carries_value(walk, slot) && walk->carrier_count < MOST_CARRIERS) walk->carriers[walk->carrier_count++] = slot;
}

// A mov of the value to another register, which ptxas makes nothing of.
static bool renames(Walk *walk, const Inst *inst) {
  const Touch *touches = touches_of(walk->program, inst);
  if (inst->row->registers != REGISTERS_RENAMED || inst->touch_count != 2 || !touches[0].written ||
      touches[1].written || !carries_value(walk, touches[1].slot))
    return false;
  add_carrier(walk, touches[0].slot);
  return true;
}

static bool touches_value(const Walk *walk, const Inst *inst, bool written) {
  const Touch *touches = touches_of(walk->program, inst);
  for (int t = 0; t < inst->touch_count; t++)
    if (touches[t].written == written && carries_value(walk, touches[t].slot)) return true;
  return false;
}

// ---- the graph ----

// The instructions that may follow: their number. A walk ends at a call.
static uint32_t successors(const Program *program, uint32_t pc, uint32_t most, uint32_t *list) {
  return program->code[pc].row->calls ? 0 : program_successors(program, pc, most, list);
}

enum { MOST_SUCCESSORS = 256 };

// Adds what may follow an instruction to the path, or to the uses.
static void extend_path(Walk *walk, uint32_t pc) {
  uint32_t next[MOST_SUCCESSORS], count = successors(walk->program, pc, MOST_SUCCESSORS, next);
  for (uint32_t i = 0; i < count; i++) {
    const Inst *inst = &walk->program->code[next[i]];
    if (walk->reached[next[i]] == walk->number) continue;
    walk->reached[next[i]] = walk->number;
    bool used = !renames(walk, inst) && (touches_value(walk, inst, false) || touches_value(walk, inst, true));
    if (used)
      walk->uses[walk->use_count++] = next[i];
    else
      walk->path[walk->path_count++] = next[i];
  }
}

static void walk_from_load(Walk *walk, uint32_t load) {
  const Inst *inst = &walk->program->code[load];
  const Touch *touches = touches_of(walk->program, inst);
  walk->number++;
  walk->path_count = walk->use_count = 0;
  walk->carrier_count = 0;
  for (int t = 0; t < inst->touch_count; t++)
    if (touches[t].written) add_carrier(walk, touches[t].slot);
  extend_path(walk, load);
  for (uint32_t i = 0; i < walk->path_count && i < MOST_STEPS; i++) extend_path(walk, walk->path[i]);
}

static bool hands_on(const Inst *inst) {
  MemoryUse memory = inst->row->memory;
  return inst->row->counter == COUNTER_INST_SYNCHRONISATION ||
         (memory >= MEMORY_BULK_LOAD && memory <= MEMORY_BULK_CLUSTER);
}

// Marks the instructions of the path behind which the value is read: from them, and not only overwritten.
static void find_useful(Walk *walk) {
  for (uint32_t i = 0; i < walk->path_count; i++) walk->useful[walk->path[i]] = 0;
  for (uint32_t i = 0; i < walk->use_count; i++)
    walk->useful[walk->uses[i]] = touches_value(walk, &walk->program->code[walk->uses[i]], false);
  for (bool grown = true; grown;) {
    grown = false;
    for (uint32_t i = walk->path_count; i-- > 0;) {
      uint32_t next[MOST_SUCCESSORS], count = successors(walk->program, walk->path[i], MOST_SUCCESSORS, next);
      for (uint32_t s = 0; s < count && !walk->useful[walk->path[i]]; s++)
        if (walk->reached[next[s]] == walk->number) grown |= walk->useful[walk->path[i]] = walk->useful[next[s]];
    }
  }
}

// ---- what is watched ----

static void execute_watching_loads(Warp *warp, const Inst *inst, Mask mask) {
  const Watch *watch = warp_launch(warp)->program->watches[pc_of_inst(warp, inst)];
  for (int i = 0; i < watch->use_count; i++) flights_end(&warp->check, watch->uses[i]);
  if (watch->load && warp_launch(warp)->check.on) {
    race_advance(&warp->check, mask);
    flights_begin(&warp->check, watch->load, mask);
  }
  watch->execute(warp, inst, mask);
}

static Watch *watch(Program *program, uint32_t pc) {
  if (!program->watches) program->watches = program_allocate(program, program->count * sizeof *program->watches);
  if (program->watches[pc]) return program->watches[pc];
  Watch *watch = program_allocate(program, sizeof *watch);
  watch->execute = program->code[pc].execute;
  program->code[pc].execute = execute_watching_loads;
  return program->watches[pc] = watch;
}

static void add_use(Program *program, uint32_t pc, const LateLoad *load) {
  Watch *use = watch(program, pc);
  const LateLoad **uses = program_allocate(program, (size_t)(use->use_count + 1) * sizeof *uses);
  for (int i = 0; i < use->use_count; i++) uses[i] = use->uses[i];
  uses[use->use_count++] = load;
  use->uses = uses;
}

static void add_late_load(Walk *walk, uint32_t pc) {
  Program *program = walk->program;
  uint32_t count = 0;
  for (uint32_t i = 0; i < walk->path_count; i++)
    if (walk->useful[walk->path[i]] && hands_on(&program->code[walk->path[i]])) walk->path[count++] = walk->path[i];
  if (!count) return;
  LateLoad *load = program_allocate(program, sizeof *load);
  load->handover_count = (int)count;
  load->handovers = program_allocate(program, count * sizeof *load->handovers);
  memcpy(load->handovers, walk->path, count * sizeof *load->handovers);
  watch(program, pc)->load = load;
  program->sites[pc].late_load = true;
  for (uint32_t i = 0; i < walk->use_count; i++) add_use(program, walk->uses[i], load);
}

static bool loads_shared(const Inst *inst) {
  return inst->row->memory == MEMORY_LOAD && space_of(inst->source) == SPACE_SHARED;
}

static bool has_copies_to_shared(const Program *program) {
  for (uint32_t i = 0; i < program->count; i++) {
    MemoryUse memory = program->code[i].row->memory;
    if (memory == MEMORY_BULK_LOAD || memory == MEMORY_BULK_CLUSTER) return true;
  }
  return false;
}

void find_late_loads(Program *program) {
  if (!has_copies_to_shared(program)) return;
  Walk walk = {.program = program};
  walk.reached = host_allocate(program->count, sizeof *walk.reached);
  walk.path = host_allocate(program->count, sizeof *walk.path);
  walk.uses = host_allocate(program->count, sizeof *walk.uses);
  walk.useful = host_allocate(program->count, 1);
  for (uint32_t i = 0; i < program->count; i++) {
    if (!loads_shared(&program->code[i])) continue;
    walk_from_load(&walk, i);
    if (walk.path_count > MOST_STEPS) continue;
    find_useful(&walk);
    add_late_load(&walk, i);
  }
  free(walk.reached);
  free(walk.path);
  free(walk.uses);
  free(walk.useful);
}
