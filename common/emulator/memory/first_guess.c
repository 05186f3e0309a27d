// First guesses: see passes.h.
//
// From each load the control-flow graph is walked with what the registers hold then. The loaded value, and what is
// computed from it, may be an operand of arithmetic and of the compare-and-swap. They must be nothing else, neither
// stored nor branched on, up to the branch that finds the compare-and-swap's result to be the loaded value. From there
// on it is verified.
#include "passes.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "atomic.h"
#include "load_store.h"

typedef uint64_t Set;  // of registers: Walk.slots

enum {
  MOST_SLOTS = 64,
  MOST_VISITS = 1 << 14,  // of one walk; a load that takes more is none
  MOST_SUCCESSORS = 256,
  SLOT_UNIT = 64,
  LONGEST_CHAIN = 8,  // of address registers that are made of one another
};

// A walk comes to an instruction before a compare-and-swap with the loaded value, behind one whose result is not
// compared yet, and behind one that has failed.
typedef enum Phase { BEFORE, TRIED, FAILED, PHASES } Phase;

// What registers hold before an instruction, whatever way the walk has come there.
typedef struct Knowledge {
  Set tainted;    // may be the loaded value, or computed from it
  Set stale;      // of these: may be what the load has brought when it was executed before
  Set copies;     // are the loaded value
  Set answers;    // are what the compare-and-swap has found
  Set equal;      // predicates: whether it has found the loaded value
  Set different;  // predicates: whether it has not
  bool in_place;  // the address register of the load is as it was
  bool reached, queued;
} Knowledge;

typedef struct Walk {
  Program *program;
  uint32_t
      *definitions;  // by slot / SLOT_UNIT: the instruction that writes the register, if it is one alone; or NONE, MANY
  Knowledge (*knowledge)[PHASES];  // by instruction
  uint32_t *queue, *visited;       // instructions times PHASES
  uint32_t queue_count, visited_count, visits;
  Slot slots[MOST_SLOTS];
  int slot_count;
  uint32_t load_at;
  PlainLoad load;
  bool is_compared;  // a compare-and-swap has been met
} Walk;

enum { NONE = UINT32_MAX, MANY = UINT32_MAX - 1 };

// ---- registers ----

// 0 when there are too many, or if the register is not among them and shall not be.
static Set bit_of(Walk *walk, Slot slot, bool add) {
  for (int i = 0; i < walk->slot_count; i++)
    if (walk->slots[i] == slot) return 1ull << i;
  if (!add || walk->slot_count == MOST_SLOTS) return 0;
  walk->slots[walk->slot_count] = slot;
  return 1ull << walk->slot_count++;
}

static Set touched(Walk *walk, const Inst *inst, bool written) {
  const Touch *touches = touches_of(walk->program, inst);
  Set set = 0;
  for (int t = 0; t < inst->touch_count; t++)
    if (touches[t].written == written) set |= bit_of(walk, touches[t].slot, false);
  return set;
}

static bool writes(const Program *program, const Inst *inst, Slot slot) {
  const Touch *touches = touches_of(program, inst);
  for (int t = 0; t < inst->touch_count; t++)
    if (touches[t].written && touches[t].slot == slot) return true;
  return false;
}

static void find_definitions(Walk *walk) {
  const Program *program = walk->program;
  size_t units = program->register_bytes / SLOT_UNIT + 1;
  walk->definitions = host_allocate(units, sizeof *walk->definitions);
  for (size_t i = 0; i < units; i++) walk->definitions[i] = NONE;
  for (uint32_t pc = 0; pc < program->count; pc++)
    for (int t = 0; t < program->code[pc].touch_count; t++) {
      const Touch *touch = &program->touches[program->code[pc].touch_start + (uint32_t)t];
      uint32_t *definition = &walk->definitions[touch->slot / SLOT_UNIT];
      if (touch->written) *definition = *definition == NONE ? pc : MANY;
    }
}

// ---- addresses ----

// An address as a register or, where it is 0, the number alone, and bytes from there on.
typedef struct Root {
  Slot slot;
  int64_t offset;
} Root;

static bool find_constant(const Program *program, Slot slot, uint64_t *value) {
  for (int i = 0; i < program->constant_count; i++)
    if (program->constants[i].slot == slot) {
      *value = program->constants[i].value;
      return true;
    }
  return false;
}

// What an address is made from by mov, cvta and the addition of constants, each of which its register has from nowhere
// else.
static Root root_of(const Walk *walk, const AddressPlan *address) {
  Root root = {address->slot, address->offset};
  uint64_t value;
  for (int i = 0; i < LONGEST_CHAIN; i++) {
    uint32_t pc = walk->definitions[root.slot / SLOT_UNIT];
    if (pc == NONE || pc == MANY || walk->program->code[pc].guarded) break;
    const Inst *inst = &walk->program->code[pc];
    const PtxInstruction *source = inst->source;
    const Touch *touches = touches_of(walk->program, inst);
    bool adds = inst->row->address == ADDRESS_ADDED && source->operands[2].kind == PTX_OPERAND_INTEGER;
    bool copies = inst->row->address == ADDRESS_COPIED;
    bool of_constant = inst->row->registers == REGISTERS_RENAMED && inst->touch_count == 1 &&
                       find_constant(walk->program, inst->a, &value);
    if (!of_constant && ((!adds && !copies) || inst->touch_count != 2 || touches[1].written)) break;
    if (adds) root.offset += source->operands[2].value;
    root.slot = of_constant ? inst->a : touches[1].slot;
  }
  if (find_constant(walk->program, root.slot, &value)) root = (Root){0, root.offset + (int64_t)value};
  return root;
}

static bool is_same_place(const Walk *walk, const AddressPlan *one, const AddressPlan *other) {
  if (one->slot == other->slot) return one->offset == other->offset;
  Root a = root_of(walk, one), b = root_of(walk, other);
  return a.slot == b.slot && a.offset == b.offset && (!a.slot || walk->definitions[a.slot / SLOT_UNIT] != MANY);
}

// ---- what an instruction does ----

static bool computes(const Inst *inst) {
  const Instruction *row = inst->row;
  bool arithmetic = row->counter >= COUNTER_INST_INTEGER && row->counter <= COUNTER_INST_CONVERT;
  return row->registers == REGISTERS_RENAMED || (arithmetic && row->values != VALUES_OF_MEMORY);
}

static void forget_slots(Knowledge *after, Set written) {
  after->copies &= ~written;
  after->answers &= ~written;
  after->equal &= ~written;
  after->different &= ~written;
}

// setp.eq or setp.ne of the loaded value and of what the compare-and-swap has found, bit by bit: that verifies the
// guess.
static bool verifies(Walk *walk, const Inst *inst, const Knowledge *before) {
  PtxType type = ptx_instruction_type(inst->source);
  if (!inst->row->compares || inst->source->operand_count != 3 || inst->touch_count != 3 || type == PTX_F32 ||
      type == PTX_F64 || (!ptx_has(inst->source, "eq") && !ptx_has(inst->source, "ne")))
    return false;
  Set a = bit_of(walk, inst->a, false), b = bit_of(walk, inst->b, false);
  return (a & before->copies && b & before->answers) || (b & before->copies && a & before->answers);
}

// A compare-and-swap. False if it makes another use of the loaded value than a first guess.
static bool pass_swap(Walk *walk, const Inst *inst, const Swap *swap, const Knowledge *before, Knowledge *after,
                      Phase *phase) {
  Set found = bit_of(walk, swap->found, true), expected = bit_of(walk, swap->expected, false);
  Set other = bit_of(walk, swap->address->slot, false) | (inst->guarded ? bit_of(walk, inst->guard, false) : 0);
  if (!found || other & before->tainted) return false;
  forget_slots(after, found);
  if (!inst->guarded) after->tainted &= ~found, after->stale &= ~found;
  if (!(expected & before->copies)) return !((expected | bit_of(walk, swap->desired, false)) & before->tainted);
  if (inst->guarded || swap->size != walk->load.size || !before->in_place ||
      !is_same_place(walk, walk->load.address, swap->address))
    return false;
  walk->is_compared = true;
  after->answers = found;
  after->equal = after->different = 0;
  *phase = TRIED;
  return true;
}

// Any other instruction. False if it uses the value in a way that no compare-and-swap verifies.
static bool pass_other(Walk *walk, const Inst *inst, const Knowledge *before, Knowledge *after) {
  const Touch *touches = touches_of(walk->program, inst);
  Set read = touched(walk, inst, false);
  bool uses = read & before->tainted, verified = verifies(walk, inst, before);
  if (uses && (!computes(inst) || (inst->guarded && bit_of(walk, inst->guard, false) & before->tainted))) return false;
  bool renames = inst->row->registers == REGISTERS_RENAMED && inst->touch_count == 2 && !inst->guarded;
  for (int t = 0; t < inst->touch_count; t++) {
    if (!touches[t].written) continue;
    bool matters = uses || verified || (renames && read & before->answers);
    Set to = bit_of(walk, touches[t].slot, matters);
    if (matters && !to) return false;
    forget_slots(after, to);
    if (!inst->guarded) after->tainted &= ~to, after->stale &= ~to;
    if (uses && !verified) after->tainted |= to;
    if (read & before->stale) after->stale |= to;
    if (renames && read & before->copies) after->copies |= to;
    if (renames && read & before->answers) after->answers |= to;
    if (verified && !inst->guarded) *(ptx_has(inst->source, "eq") ? &after->equal : &after->different) |= to;
  }
  return true;
}

// ---- the walk ----

// Adds what is known on one more way to the instruction.
static void merge_way(Walk *walk, uint32_t pc, Phase phase, const Knowledge *by) {
  Knowledge *here = &walk->knowledge[pc][phase], old = *here;
  if (!by->tainted) return;  // nothing is left that could be used
  if (here->reached) {
    here->tainted |= by->tainted;
    here->stale |= by->stale;
    here->copies &= by->copies;
    here->answers &= by->answers;
    here->equal &= by->equal;
    here->different &= by->different;
    here->in_place &= by->in_place;
    if (!memcmp(here, &old, sizeof old)) return;
  } else {
    *here = *by;
    here->reached = true;
    here->queued = false;
    walk->visited[walk->visited_count++] = pc * PHASES + phase;
  }
  if (here->queued) return;
  here->queued = true;
  walk->queue[walk->queue_count++] = pc * PHASES + phase;
}

// Goes on behind a branch. Its predicate may say whether the guess was right.
static void continue_ways(Walk *walk, uint32_t pc, Phase phase, const Knowledge *after) {
  const Inst *inst = &walk->program->code[pc];
  uint32_t next[MOST_SUCCESSORS], count = program_successors(walk->program, pc, MOST_SUCCESSORS, next);
  Set guard = inst->guarded && inst->control == CONTROL_BRANCH ? bit_of(walk, inst->guard, false) : 0;
  bool decides = phase == TRIED && guard & (after->equal | after->different) && count == 2;
  for (uint32_t i = 0; i < count; i++) {
    if (!decides) {
      merge_way(walk, next[i], phase, after);
      continue;
    }
    bool is_taken = next[i] == (uint32_t)inst->immediate, is_true = is_taken != inst->guard_negated;
    bool was_right = is_true == ((guard & after->equal) != 0);
    Knowledge behind = *after;
    if (was_right) behind = (Knowledge){.tainted = after->stale, .stale = after->stale};
    merge_way(walk, next[i], FAILED, &behind);
  }
}

// Passes one instruction. False if the load is no first guess.
static bool pass_instruction(Walk *walk, uint32_t pc, Phase phase) {
  const Inst *inst = &walk->program->code[pc];
  const Knowledge before = walk->knowledge[pc][phase];
  Knowledge after = before;
  Swap swap;
  after.queued = false;
  if (pc == walk->load_at) {  // again: what is left of the value before must be out of use
    Set own = bit_of(walk, walk->load.to, false);
    Knowledge anew = {.tainted = before.tainted | own, .stale = before.tainted & ~own, .copies = own, .in_place = true};
    continue_ways(walk, pc, BEFORE, &anew);
    return true;
  }
  if (writes(walk->program, inst, walk->load.address->slot)) after.in_place = false;
  if (inst->row->memory == MEMORY_SWAP && swap_of(inst, &swap)) {
    if (!pass_swap(walk, inst, &swap, &before, &after, &phase)) return false;
  } else if (!pass_other(walk, inst, &before, &after)) {
    return false;
  }
  continue_ways(walk, pc, phase, &after);
  return true;
}

static void begin_walk(Walk *walk, uint32_t pc) {
  for (uint32_t i = 0; i < walk->visited_count; i++)
    walk->knowledge[walk->visited[i] / PHASES][walk->visited[i] % PHASES].reached = false;
  walk->queue_count = walk->visited_count = walk->visits = 0;
  walk->slot_count = 0;
  walk->load_at = pc;
  walk->is_compared = false;
}

static bool makes_first_guess(Walk *walk, uint32_t pc) {
  begin_walk(walk, pc);
  Set to = bit_of(walk, walk->load.to, true);
  Knowledge first = {.tainted = to, .copies = to, .in_place = true};
  continue_ways(walk, pc, BEFORE, &first);
  while (walk->queue_count) {
    uint32_t place = walk->queue[--walk->queue_count];
    walk->knowledge[place / PHASES][place % PHASES].queued = false;
    if (++walk->visits > MOST_VISITS || !pass_instruction(walk, place / PHASES, (Phase)(place % PHASES))) return false;
  }
  return walk->is_compared;
}

static bool has_swap(const Program *program) {
  for (uint32_t i = 0; i < program->count; i++)
    if (program->code[i].row->memory == MEMORY_SWAP) return true;
  return false;
}

void find_first_guesses(Program *program) {
  if (!has_swap(program)) return;
  Walk walk = {.program = program};
  find_definitions(&walk);
  walk.knowledge = host_allocate(program->count, sizeof *walk.knowledge);
  walk.queue = host_allocate(program->count, PHASES * sizeof *walk.queue);
  walk.visited = host_allocate(program->count, PHASES * sizeof *walk.visited);
  for (uint32_t pc = 0; pc < program->count; pc++) {
    const Inst *inst = &program->code[pc];
    if (inst->guarded || !plain_load_of(inst, &walk.load) || !makes_first_guess(&walk, pc)) continue;
    program->has_first_guesses = program->sites[pc].first_guess = true;
  }
  free(walk.definitions);
  free(walk.knowledge);
  free(walk.queue);
  free(walk.visited);
}
