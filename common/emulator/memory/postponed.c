// Loads that are judged when their value is stored: see passes.h.
#include "passes.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "load_store.h"

enum { FARTHEST = 128, MOST_CARRIERS = 16, MOST_STORES = 8 };

typedef struct Search {
  Program *program;
  uint16_t *reads;  // count_register_reads
  bool *targets;    // by instruction: a branch leads there
} Search;

// From a load straight on: the registers that hold what follows from its value, and the stores that use it.
typedef struct Chain {
  Slot carriers[MOST_CARRIERS];
  int carrier_count;
  Inst *stores[MOST_STORES];
  int store_count;
  uint32_t reads;  // of carriers
  bool conditional;
} Chain;

static void find_targets(Search *search) {
  for (uint32_t i = 0; i < search->program->count; i++) {
    const Inst *inst = &search->program->code[i];
    if (inst->control == CONTROL_BRANCH) search->targets[inst->immediate] = true;
    const BranchTable *table = inst->control == CONTROL_TABLE ? inst->extra : NULL;
    for (uint32_t t = 0; table && t < table->count; t++) search->targets[table->targets[t]] = true;
  }
}

static bool chain_carries(const Chain *chain, Slot slot) {
  for (int c = 0; c < chain->carrier_count; c++)
    if (chain->carriers[c] == slot) return true;
  return false;
}

// Other instructions may write the register as well: Triton sets the one of each load to 0 before. It matters only who
// reads it, and all_reads sees to that.
static bool add_carriers(const Search *search, Chain *chain, const Inst *inst) {
  const Touch *touches = touches_of(search->program, inst);
  for (int t = 0; t < inst->touch_count; t++) {
    if (!touches[t].written) continue;
    if (chain_carries(chain, touches[t].slot)) continue;
    if (chain->carrier_count == MOST_CARRIERS) return false;
    chain->carriers[chain->carrier_count++] = touches[t].slot;
  }
  return true;
}

static int count_carried(const Search *search, const Chain *chain, const Inst *inst) {
  const Touch *touches = touches_of(search->program, inst);
  int count = 0;
  for (int t = 0; t < inst->touch_count; t++) count += !touches[t].written && chain_carries(chain, touches[t].slot);
  return count;
}

static bool is_plain(const Inst *inst) {
  CounterKind class = inst->row->counter;
  return (class >= COUNTER_INST_INTEGER && class <= COUNTER_INST_CONVERT) || inst->row->values == VALUES_MOVED;
}

// Whether the chain may go on behind the instruction: it orders nothing, and if it jumps, the other lanes go straight
// on.
static bool goes_on(const Inst *inst) {
  if (inst->control == CONTROL_BRANCH || inst->control == CONTROL_END) return inst->guarded;
  return inst->control == CONTROL_NEXT && (is_plain(inst) || is_weak_access(inst)) && inst->converge == CONVERGE_NONE;
}

// False when the value is used otherwise than by a store.
static bool follow_chain(const Search *search, Chain *chain, Inst *inst) {
  int carried = count_carried(search, chain, inst);
  chain->reads += (uint32_t)carried;
  if (!carried) return true;
  if (is_plain(inst) && !(inst->guarded && chain_carries(chain, inst->guard))) return add_carriers(search, chain, inst);
  if (!is_plain_store(inst) || chain_carries(chain, inst->guard) || chain_carries(chain, address_register(inst)) ||
      chain->store_count == MOST_STORES)
    return false;
  chain->conditional |= inst->guarded;
  chain->stores[chain->store_count++] = inst;
  return true;
}

static uint32_t all_reads(const Search *search, const Chain *chain) {
  uint32_t reads = 0;
  for (int c = 0; c < chain->carrier_count; c++) reads += search->reads[chain->carriers[c] / READS_UNIT];
  return reads;
}

// Whether an instruction changes what the store has to know of the load: its address, and the lanes that have loaded.
static bool writes_address(const Search *search, const Inst *load, const Inst *inst) {
  const Touch *touches = touches_of(search->program, inst);
  for (int t = 0; t < inst->touch_count; t++)
    if (touches[t].written &&
        (touches[t].slot == address_register(load) || (load->guarded && touches[t].slot == load->guard)))
      return true;
  return false;
}

static void try_load(Search *search, uint32_t pc) {
  Program *program = search->program;
  Inst *load = &program->code[pc];
  Chain chain = {.carrier_count = 0};
  bool branched = false;
  if (!add_carriers(search, &chain, load) || writes_address(search, load, load)) return;
  for (uint32_t i = pc + 1; i < program->count && i - pc < FARTHEST && !search->targets[i]; i++) {
    Inst *inst = &program->code[i];
    if (!follow_chain(search, &chain, inst) || writes_address(search, load, inst)) return;
    chain.conditional |= branched && chain.store_count;
    if (!goes_on(inst)) break;
    branched |= inst->control != CONTROL_NEXT;
  }
  if (!chain.store_count || !chain.conditional || chain.reads != all_reads(search, &chain)) return;
  for (int s = 0; s < chain.store_count; s++)
    if (!can_judge_load(chain.stores[s])) return;
  for (int s = 0; s < chain.store_count; s++) judge_load_at(load, chain.stores[s]);
}

void find_postponed_loads(Program *program) {
  Search search = {.program = program,
                   .reads = count_register_reads(program),
                   .targets = host_allocate(program->count + 1, sizeof(bool))};
  find_targets(&search);
  for (uint32_t pc = 0; pc < program->count; pc++)
    if (is_plain_load(&program->code[pc])) try_load(&search, pc);
  free(search.reads);
  free(search.targets);
}
