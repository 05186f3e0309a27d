// Scripts on the race check: see order_machine.h.
#include "order_machine.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/check/threads.h"
#include "emulator/check/actor.h"
#include "emulator/check/order.h"
#include "emulator/check/rows.h"

#define EACH_BYTE 0x0101010101010101ull

typedef struct Begun {
  AgentClock agent;  // agent 0: none
  Clocks *known;     // of what came before it
  int warp;
  Mask lanes;
} Begun;

struct OrderMachine {
  CheckLaunch launch;  // first: note_finding
  const Script *script;
  Site sites[SCRIPT_EVENTS];
  Region regions[SCRIPT_REGIONS];
  RegionUsage memory;
  Usage order;
  CheckCluster clusters[SCRIPT_BLOCKS];
  CheckWarp warps[SCRIPT_WARPS];
  Clocks *mbarriers[SCRIPT_BLOCKS][SCRIPT_NAMES];
  Begun operations[SCRIPT_BLOCKS][SCRIPT_NAMES];
  bool has_found;
  Conflict found;
};

// ---- what is found ----

// The access of the script that an epoch stands for. Of another cluster neither the issuer of an operation is known nor
// which threads a set of reads stands for.
static Party party_of(const OrderMachine *machine, const CheckCluster *cluster, Epoch epoch) {
  const EpochLayout *layout = &machine->launch.epochs;
  uint32_t of = epoch_cluster(layout, epoch), thread = epoch_thread(layout, epoch);
  bool is_lane = thread < (uint32_t)cluster->lane_count;
  if (of != cluster->id && (epoch & EPOCH_SET || !is_lane)) thread = 0;
  if (of == cluster->id && !is_lane) thread = agent_issue(cluster, thread, epoch_clock(layout, epoch)).thread;
  return (Party){(int)epoch_pc(layout, epoch), (int)(of * (uint32_t)cluster->lane_count + thread)};
}

static void note_finding(const CheckFinding *finding) {
  const CheckCluster *cluster = finding->warp->cluster;
  OrderMachine *machine = (OrderMachine *)cluster->launch;
  if (machine->has_found) return;
  const Actor *actor = finding->actor;
  machine->has_found = true;
  machine->found =
      (Conflict){.verdict = finding->kind == FOUND_RACE     ? RACE
                            : finding->kind == FOUND_EQUAL  ? EQUAL
                            : finding->kind == FOUND_UNSEEN ? UNSEEN
                                                            : FINE,
                 .byte = {(int)(finding->span->region - machine->regions), (int)finding->span->offset},
                 .here = {(int)actor_pc(actor), (int)(cluster->id * (uint32_t)cluster->lane_count + actor->issuer)},
                 .other = party_of(machine, cluster, finding->other)};
}

const Conflict *order_machine_found(const OrderMachine *machine) { return machine->has_found ? &machine->found : NULL; }

// ---- a machine ----

static void add_region(OrderMachine *machine, int number, RegionKind kind) {
  Region *region = &machine->regions[number];
  region_init(region, kind, 0, SCRIPT_BYTES, true, &machine->memory);
  region_host_write(region, 0, SCRIPT_BYTES);
}

static void begin_launch(OrderMachine *machine) {
  const Script *script = machine->script;
  unsigned lanes = (unsigned)(script->blocks * script->warps * LANES);
  machine->launch = (CheckLaunch){.on = true,
                                  .asynchronous = true,
                                  .number = 1,
                                  .sites = machine->sites,
                                  .sync = sync_table_new(&machine->order),
                                  .report = note_finding};
  epoch_layout(&machine->launch.epochs, (uint64_t)script->clusters, lanes + ASYNC_AGENTS, SCRIPT_EVENTS);
  for (int i = 0; i < script->count; i++) {
    const Event *event = &script->events[i];
    machine->sites[i] = (Site){.size = (uint8_t)(event->action <= ATOMIC ? event->size : 0),
                               .stores = event->action == STORE || event->action == STRONG_STORE};
  }
}

OrderMachine *order_machine_open(const Script *script) {
  OrderMachine *machine = calloc(1, sizeof *machine);
  machine->script = script;
  begin_launch(machine);
  add_region(machine, 0, REGION_GLOBAL);
  for (int c = 0; c < script->clusters; c++) {
    CheckCluster *cluster = &machine->clusters[c];
    check_cluster_begin(cluster, &machine->launch, (uint32_t)c, script->blocks, script->warps, &machine->order);
    for (int b = 0; b < script->blocks; b++) {
      int region = 1 + c * script->blocks + b;
      add_region(machine, region, REGION_SHARED);
      cluster->shared[b] = &machine->regions[region];
    }
    int warps = script->blocks * script->warps;
    for (int w = 0; w < warps; w++) check_warp_begin(&machine->warps[c * warps + w], cluster, w, NULL);
  }
  return machine;
}

void order_machine_close(OrderMachine *machine) {
  const Script *script = machine->script;
  for (int c = 0; c < script->clusters; c++) {
    for (int i = 0; i < SCRIPT_NAMES; i++) {
      clocks_release(machine->mbarriers[c][i]);
      clocks_release(machine->operations[c][i].known);
    }
    check_cluster_end(&machine->clusters[c]);
  }
  for (int w = 0; w < script->clusters * script->blocks * script->warps; w++) check_warp_end(&machine->warps[w]);
  for (int i = 0; i <= script->clusters * script->blocks; i++) region_destroy(&machine->regions[i]);
  sync_table_free((SyncTable *)machine->launch.sync);
  free(machine);
}

// ---- accesses ----

// An event that accesses memory, by a warp.
typedef struct Step {
  OrderMachine *machine;
  const Event *event;
  uint32_t pc;  // its number
  CheckWarp *warp;
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
  race_row(&row, step->warp, step->pc, event->mask);
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
  Actor actor = actor_of_lane(step->warp, step->pc, lane, event->scope);
  const uint64_t value = lane_value(event, lane) * EACH_BYTE;
  switch (event->action) {
  case STRONG_LOAD:
    race_read(step->warp, step->pc, lanes, step->region, offset, event->size, event->scope);
    for (; lanes; lanes &= lanes - 1)
      sync_load(step->sync, &elements, step->warp, __builtin_ctz(lanes), event->order, event->scope);
    break;
  case STRONG_STORE:
    sync_store(step->sync, &elements, step->warp, lane, event->order, event->scope);
    actor_set_lane(&actor, lane);
    race_write_by(&actor, step->region, offset, event->size, &value);
    break;
  default:
    race_atomic(step->warp, step->pc, lane, step->region, offset, event->size, event->scope);
    sync_atomic(step->sync, &elements, step->warp, lane, event->order, event->scope);
  }
  put(step, lane);
}

// ---- synchronisation ----

static void meet(OrderMachine *machine, const Event *event) {
  Clocks *joined = NULL;
  for (int warp = 0; warp < SCRIPT_WARPS; warp++)
    if (event->warps >> warp & 1) race_release(&machine->warps[warp], event->mask, &joined);
  for (int warp = 0; warp < SCRIPT_WARPS; warp++)
    if (event->warps >> warp & 1) race_acquire(&machine->warps[warp], event->mask, joined);
  clocks_release(joined);
}

static void arrive(CheckWarp *warp, const Event *event, Clocks **mbarrier) {
  bool remote = event->name % warp->cluster->block_count != warp->rank;
  if (event->relaxed)
    race_release_relaxed(warp, event->mask, mbarrier, remote ? STRONG_CLUSTER : STRONG_CTA);
  else
    race_release(warp, event->mask, mbarrier);
}

// As async_issue and its users: a collective operation comes after what all its lanes have done.
static void begin(const Step *step, Begun *operation) {
  const Event *event = step->event;
  CheckWarp *warp = step->warp;
  int lane = __builtin_ctz(event->mask);
  Mask lanes = event->collective ? event->mask : 1u << lane;
  AsyncIssue issue = {thread_of_lane(warp, lane), warp->clocks[lane].own, lanes, 1};
  clocks_release(operation->known);
  *operation = (Begun){.agent = agent_begin(warp->cluster, issue), .warp = event->warp, .lanes = lanes};
  if (event->collective)
    race_release(warp, lanes, &operation->known);
  else
    operation->known = race_lane_clocks(warp, lane);
  Actor actor = actor_of_lane(warp, step->pc, lane, WEAK);
  actor_set_agent(&actor, operation->agent.agent, operation->agent.clock);
  actor.known = operation->known;
  actor.async = event->proxy;
  if (event->reads) race_read_by(&actor, step->region, (uint64_t)event->spot.offset, event->size);
  if (!event->writes) return;
  Region *to = &step->machine->regions[event->to.region];
  actor.strength = event->scope;
  race_write_by(&actor, to, (uint64_t)event->to.offset, event->size, NULL);
  memset(to->data + event->to.offset, event->value, (size_t)event->size);
}

static void await(OrderMachine *machine, CheckCluster *cluster, const Begun *operation) {
  if (!operation->agent.agent) return;
  agent_end(cluster, operation->agent.agent);
  race_learn_agent(&machine->warps[operation->warp], operation->lanes, operation->agent.agent, operation->agent.clock);
}

// As mbarrier_complete.
static void complete(CheckCluster *cluster, const Begun *operation, Clocks **mbarrier) {
  if (!operation->agent.agent) return;
  agent_end(cluster, operation->agent.agent);
  clocks_add_agent(cluster, mbarrier, operation->agent.agent, operation->agent.clock);
  if (operation->known) clocks_join(cluster, mbarrier, operation->known);
}

void order_machine_follow(OrderMachine *machine, int index) {
  const Event *event = &machine->script->events[index];
  CheckWarp *warp = &machine->warps[event->warp];
  CheckCluster *cluster = warp->cluster;
  Begun *operation = &machine->operations[cluster->id][event->name];
  Clocks **mbarriers = machine->mbarriers[cluster->id];
  SyncTable *sync = event->spot.region ? cluster->sync : machine->launch.sync;
  const Step step = {machine, event, (uint32_t)index, warp, &machine->regions[event->spot.region], sync};
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
