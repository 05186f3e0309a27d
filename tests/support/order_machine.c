// Scripts on the race check: see order_machine.h.
#include "order_machine.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/check/agents.h"
#include "emulator/check/order.h"
#include "emulator/check/rows.h"
#include "emulator/run/run.h"
#include "emulator/run/state.h"
#include "emulator/warp/instruction.h"

#define EACH_BYTE 0x0101010101010101ull

typedef struct Begun {
  AgentClock agent;  // agent 0: none
  Clocks *known;     // of what came before it
  int warp;
  Mask lanes;
} Begun;

struct OrderMachine {
  const Script *script;
  Emulator *emulator;
  Launch launch;
  Program program;
  Function function;
  PtxFunction ptx;
  PtxModule module;
  PtxInstruction sources[SCRIPT_EVENTS];
  Inst code[SCRIPT_EVENTS];
  EpochLayout epochs;
  Worker worker;
  Region global;
  Cluster *clusters[SCRIPT_BLOCKS];
  Clocks *mbarriers[SCRIPT_BLOCKS][SCRIPT_NAMES];
  Begun operations[SCRIPT_BLOCKS][SCRIPT_NAMES];
};

// ---- a machine ----

static const Instruction rows[] = {
    [LOAD] = {.name = "ld", .memory = MEMORY_LOAD, .values = VALUES_OF_MEMORY},
    [STRONG_LOAD] = {.name = "ld", .memory = MEMORY_LOAD, .values = VALUES_OF_MEMORY},
    [STORE] = {.name = "st", .memory = MEMORY_STORE, .values = VALUES_OF_MEMORY},
    [STRONG_STORE] = {.name = "st", .memory = MEMORY_STORE, .values = VALUES_OF_MEMORY},
    [ATOMIC] = {.name = "atom", .memory = MEMORY_ATOMIC},
    [BEGIN] = {.name = "cp.async.bulk", .memory = MEMORY_BULK_LOAD},
    [ACTIONS] = {0},
};

static void make_program(OrderMachine *machine) {
  const Script *script = machine->script;
  machine->ptx.name = "script";
  machine->function.ptx = &machine->ptx;
  machine->program = (Program){.module = &machine->module,
                               .code = machine->code,
                               .count = (uint32_t)script->count,
                               .functions = &machine->function,
                               .function_count = 1,
                               .register_bytes = 64,
                               .asynchronous = true};
  for (int i = 0; i < script->count; i++) {
    const Event *event = &script->events[i];
    bool has_size = event->action <= ATOMIC;
    machine->sources[i] = (PtxInstruction){.opcode = rows[event->action].name, .line = i + 1};
    machine->code[i] = (Inst){
        .row = &rows[event->action], .size = (uint8_t)(has_size ? event->size : 0), .source = &machine->sources[i]};
  }
}

static void make_launch(OrderMachine *machine) {
  const Script *script = machine->script;
  unsigned blocks = (unsigned)(script->clusters * script->blocks), threads = (unsigned)script->warps * LANES;
  machine->launch = (Launch){.emulator = machine->emulator,
                             .hazard_list = &machine->emulator->hazards,
                             .program = &machine->program,
                             .grid = {blocks, 1, 1},
                             .block = {threads, 1, 1},
                             .cluster = {(unsigned)script->blocks, 1, 1},
                             .number = 1,
                             .shared_size = SCRIPT_BYTES,
                             .epochs = &machine->epochs,
                             .sync = sync_table_new(&machine->worker.order),
                             .hazards = true,
                             .alone = true};
  epoch_layout(&machine->epochs, (uint64_t)script->clusters, (unsigned)script->blocks * threads + ASYNC_AGENTS,
               SCRIPT_EVENTS);
  machine->worker.launch = &machine->launch;
}

static void advise_nothing(Advice *advice, const Unwaited *unwaited) {
  (void)advice;
  (void)unwaited;
}

OrderMachine *order_machine_open(const Script *script) {
  OrderMachine *machine = aligned_alloc(_Alignof(OrderMachine), sizeof *machine);
  memset(machine, 0, sizeof *machine);
  machine->script = script;
  machine->emulator = emulator_open(&(EmulatorOptions){.hazards = true});
  make_program(machine);
  make_launch(machine);
  region_init(&machine->global, REGION_GLOBAL, GLOBAL_WINDOW, SCRIPT_BYTES, true, &machine->emulator->usage);
  region_host_write(&machine->global, 0, SCRIPT_BYTES);
  for (int c = 0; c < script->clusters; c++) {
    Cluster *cluster = machine->clusters[c] = cluster_start(&machine->worker, (uint32_t)c);
    agents_advise(cluster->agents, advise_nothing);
    for (int b = 0; b < script->blocks; b++) region_host_write(cluster->blocks[b].shared, 0, SCRIPT_BYTES);
  }
  return machine;
}

void order_machine_close(OrderMachine *machine) {
  for (int c = 0; c < machine->script->clusters; c++) {
    for (int i = 0; i < SCRIPT_NAMES; i++) {
      clocks_release(machine->mbarriers[c][i]);
      clocks_release(machine->operations[c][i].known);
    }
    cluster_end(machine->clusters[c]);
  }
  region_destroy(&machine->global);
  sync_table_free(machine->launch.sync);
  emulator_close(machine->emulator);
  free(machine);
}

const Hazard *order_machine_report(const OrderMachine *machine) {
  const HazardList *list = &machine->emulator->hazards;
  return list->count ? &list->items[0] : NULL;
}

// ---- accesses ----

static Warp *warp_of(const OrderMachine *machine, int warp) {
  const Script *script = machine->script;
  Cluster *cluster = machine->clusters[cluster_of_warp(script, warp)];
  return &cluster->blocks[block_of_warp(script, warp) % script->blocks].warps[warp % script->warps];
}

static Region *region_of(OrderMachine *machine, int region) {
  int blocks = machine->script->blocks;
  return region ? machine->clusters[(region - 1) / blocks]->blocks[(region - 1) % blocks].shared : &machine->global;
}

// An event that accesses memory, by a warp.
typedef struct Step {
  OrderMachine *machine;
  const Event *event;
  const Inst *inst;
  Warp *warp;
  Region *region;
  SyncTable *sync;
} Step;

static void put(const Step *step, int lane) {
  if (step->event->action == LOAD || step->event->action == STRONG_LOAD) return;
  memset(step->region->data + lane_offset(step->event, lane), lane_value(step->event, lane), (size_t)step->event->size);
}

// How many lanes from this one on are at places one after the other, on one page.
static int row_length(const Event *event, int lane) {
  int count = 1, left = SHADOW_PAGE - lane_offset(event, lane) % SHADOW_PAGE;
  if (event->stride != event->size) return 1;
  while (lane + count < LANES && event->mask >> (lane + count) & 1 && (count + 1) * event->size <= left) count++;
  return count;
}

static int access_row(const Step *step, RowActor *row, int lane, int count) {
  const Event *event = step->event;
  uint64_t offset = (uint64_t)lane_offset(event, lane);
  uint8_t values[SHADOW_PAGE];
  if (event->action == LOAD) return race_read_row(row, step->region, offset, lane, count, event->size);
  for (int i = 0; i < count; i++) memset(values + i * event->size, lane_value(event, lane + i), (size_t)event->size);
  return race_write_row(row, step->region, offset, lane, count, event->size, values);
}

static void access_lane(const Step *step, RowActor *row, Scatter *scatter, int lane) {
  const Event *event = step->event;
  uint64_t offset = (uint64_t)lane_offset(event, lane), value = lane_value(event, lane) * EACH_BYTE;
  bool loads = event->action == LOAD;
  if ((loads ? race_read_lane : race_write_lane)(scatter, row, step->region, offset, lane, event->size)) return;
  actor_set_lane(&row->actor, lane);
  if (loads)
    race_read_by(&row->actor, step->region, offset, event->size);
  else
    race_write_by(&row->actor, step->region, offset, event->size, &value);
}

// As memory/weak_access.c: fewer than four lanes in a row are served one by one, if they know the same.
static void access_weakly(const Step *step) {
  const Event *event = step->event;
  RowActor row;
  race_row(&row, step->warp, step->inst, __builtin_ctz(event->mask));
  if (event->action == LOAD && !event->stride && (event->mask & (event->mask - 1))) {
    race_read_together(&row, step->region, (uint64_t)event->spot.offset, event->mask, event->size);
    return;
  }
  Scatter scatter = race_scatter(&row);
  for (Mask left = event->mask; left;) {
    int lane = __builtin_ctz(left), count = row_length(event, lane);
    if (count < 4 && row.alike >> lane & 1) {
      access_lane(step, &row, &scatter, lane);
      count = 1;
    } else {
      count = access_row(step, &row, lane, count);
      scatter = race_scatter(&row);
    }
    for (int i = 0; i < count; i++, left &= left - 1) put(step, lane + i);
  }
}

// As load_strong, store_strong and atomic_lane of memory/.
static void access_strongly(const Step *step, Mask lanes) {
  const Event *event = step->event;
  int lane = __builtin_ctz(lanes);
  uint64_t offset = (uint64_t)lane_offset(event, lane);
  const Elements elements = {step->region->data + offset, (size_t)event->size, 1};
  Actor actor = actor_of_lane(step->warp, step->inst, lane, event->scope);
  const uint64_t value = lane_value(event, lane) * EACH_BYTE;
  switch (event->action) {
  case STRONG_LOAD:
    race_read(step->warp, step->inst, lanes, step->region, offset, event->size, event->scope);
    for (; lanes; lanes &= lanes - 1)
      sync_load(step->sync, &elements, step->warp, __builtin_ctz(lanes), event->order, event->scope);
    break;
  case STRONG_STORE:
    sync_store(step->sync, &elements, step->warp, lane, event->order, event->scope);
    actor_set_lane(&actor, lane);
    race_write_by(&actor, step->region, offset, event->size, &value);
    break;
  default:
    race_atomic(step->warp, step->inst, lane, step->region, offset, event->size, event->scope);
    sync_atomic(step->sync, &elements, step->warp, lane, event->order, event->scope);
  }
  put(step, lane);
}

// ---- synchronisation ----

static void meet(OrderMachine *machine, const Event *event) {
  Clocks *joined = NULL;
  for (int warp = 0; warp < SCRIPT_WARPS; warp++)
    if (event->warps >> warp & 1) race_release(warp_of(machine, warp), event->mask, &joined);
  for (int warp = 0; warp < SCRIPT_WARPS; warp++)
    if (event->warps >> warp & 1) race_acquire(warp_of(machine, warp), event->mask, joined);
  clocks_release(joined);
}

static void arrive(Warp *warp, const Event *event, Clocks **mbarrier) {
  bool remote = event->name % warp->block->cluster->block_count != warp->block->rank;
  if (event->relaxed)
    race_release_relaxed(warp, event->mask, mbarrier, remote ? STRONG_CLUSTER : STRONG_CTA);
  else
    race_release(warp, event->mask, mbarrier);
}

// As async_issue and its users: a collective operation comes after what all its lanes have done.
static void begin(const Step *step, Begun *operation) {
  const Event *event = step->event;
  Warp *warp = step->warp;
  int lane = __builtin_ctz(event->mask);
  Mask lanes = event->collective ? event->mask : 1u << lane;
  AsyncIssue issue = {warp_thread(warp, lane), warp->clocks[lane].own, lanes, 1};
  clocks_release(operation->known);
  *operation = (Begun){.agent = agent_begin(warp->block->cluster, issue), .warp = event->warp, .lanes = lanes};
  if (event->collective)
    race_release(warp, lanes, &operation->known);
  else
    operation->known = race_lane_clocks(warp, lane);
  Actor actor = actor_of_lane(warp, step->inst, lane, WEAK);
  actor_set_agent(&actor, operation->agent.agent, operation->agent.clock);
  actor.known = operation->known;
  actor.async = event->proxy;
  if (event->reads) race_read_by(&actor, step->region, (uint64_t)event->spot.offset, event->size);
  if (!event->writes) return;
  Region *to = region_of(step->machine, event->to.region);
  actor.strength = event->scope;
  race_write_by(&actor, to, (uint64_t)event->to.offset, event->size, NULL);
  memset(to->data + event->to.offset, event->value, (size_t)event->size);
}

static void await(const OrderMachine *machine, Cluster *cluster, const Begun *operation) {
  if (!operation->agent.agent) return;
  agent_end(cluster, operation->agent.agent);
  race_learn_agent(warp_of(machine, operation->warp), operation->lanes, operation->agent.agent, operation->agent.clock);
}

// As mbarrier_complete.
static void complete(Cluster *cluster, const Begun *operation, Clocks **mbarrier) {
  if (!operation->agent.agent) return;
  agent_end(cluster, operation->agent.agent);
  clocks_add_agent(cluster, mbarrier, operation->agent.agent, operation->agent.clock);
  if (operation->known) clocks_join(cluster, mbarrier, operation->known);
}

void order_machine_follow(OrderMachine *machine, int index) {
  const Event *event = &machine->script->events[index];
  Warp *warp = warp_of(machine, event->warp);
  Cluster *cluster = warp->block->cluster;
  Begun *operation = &machine->operations[cluster->id][event->name];
  Clocks **mbarriers = machine->mbarriers[cluster->id];
  SyncTable *sync = event->spot.region ? cluster->sync : machine->launch.sync;
  const Step step = {machine, event, &machine->code[index], warp, region_of(machine, event->spot.region), sync};
  switch (event->action) {
  case LOAD:
  case STORE: access_weakly(&step); break;
  case STRONG_LOAD:
  case STRONG_STORE:
  case ATOMIC:
    for (Mask rest = event->mask, same; rest; rest &= ~same) {
      same = event->action == STRONG_LOAD && !event->stride ? rest : rest & -rest;
      access_strongly(&step, same);
    }
    break;
  case FENCE: race_fence(warp, event->mask, event->scope); break;
  case PROXY_FENCE: race_proxy_fence(warp, event->mask); break;
  case WARP_BARRIER: race_warp_sync(warp, event->mask); break;
  case BARRIER: meet(machine, event); break;
  case ARRIVE: arrive(warp, event, &mbarriers[event->name]); break;
  case WAIT: (event->relaxed ? race_acquire_relaxed : race_acquire)(warp, event->mask, mbarriers[event->name]); break;
  case BEGIN: begin(&step, operation); break;
  case AWAIT: await(machine, cluster, operation); break;
  case COMPLETE: complete(cluster, operation, &mbarriers[event->at]); break;
  default: break;
  }
}
