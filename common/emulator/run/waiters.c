// Who waits for what: see waiters.h.
#include "waiters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../report/hazard.h"
#include "../memory/memory.h"
#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "../flow/flow.h"
#include "../tensor/warpgroup.h"
#include "../warp/warp.h"
#include "run.h"

// ---- who waits ----

static bool wait_alike(const Waiter *a, const Waiter *b) {
  return a->kind == b->kind && a->warp->block == b->warp->block && a->lanes == b->lanes && a->inst == b->inst &&
         a->target == b->target;
}

static void add_waiter(WaiterList *list, const Waiter *waiter) {
  for (int i = 0; i < list->count; i++)
    if (wait_alike(&list->items[i], waiter)) {
      list->items[i].warps |= 1u << waiter->warp->index;
      return;
    }
  list->items = host_grow(list->items, list->count, &list->capacity, sizeof *list->items);
  list->items[list->count] = *waiter;
  list->items[list->count++].warps = 1u << waiter->warp->index;
}

// Lanes that go on, and have polled an mbarrier in vain. Returns them.
static Mask add_mbarrier_waiters(WaiterList *list, const Warp *warp, Mask lanes) {
  Mask found = 0;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    int first = __builtin_ctz(rest);
    Waiter waiter = {.kind = WAITS_AT_MBARRIER, .warp = warp};
    waiter.mbarrier = found >> first & 1 ? NULL : mbarrier_awaited(list->cluster, warp, first, &waiter.inst);
    if (!waiter.mbarrier) continue;
    for (Mask others = rest; others; others &= others - 1) {
      const Inst *inst;
      int lane = __builtin_ctz(others);
      if (mbarrier_awaited(list->cluster, warp, lane, &inst) == waiter.mbarrier && inst == waiter.inst)
        waiter.lanes |= 1u << lane;
    }
    waiter.target = waiter.mbarrier->address;
    found |= waiter.lanes;
    add_waiter(list, &waiter);
  }
  return found;
}

static void add_group_waiter(WaiterList *list, const Warp *warp, const Group *group) {
  Waiter waiter = {.kind = WAITS_FOR_LANES, .warp = warp, .lanes = group->mask};
  waiter.inst = &list->cluster->launch->program->code[group->pc];
  if (group->state == GROUP_READY) {
    waiter.kind = WAITS_FOR_MEMORY;
    waiter.lanes &= ~add_mbarrier_waiters(list, warp, group->mask);
  } else if (group->state == GROUP_BARRIER) {
    waiter.kind = WAITS_AT_BARRIER;
    waiter.barrier = group->barrier;
    waiter.target = target_of_barrier(warp->block, group->barrier);
  }
  if (waiter.lanes) add_waiter(list, &waiter);
}

// ---- who could end it ----

const Use *waiter_uses(const Waiter *waiter) {
  if (waiter->kind == WAITS_AT_MBARRIER) return waiter->mbarrier->uses;
  bool has_uses = waiter->kind == WAITS_AT_BARRIER && waiter->barrier < BARRIERS;
  return has_uses ? waiter->warp->block->barriers[waiter->barrier].uses : NULL;
}

static uint32_t phase_of(const Waiter *waiter) {
  return waiter->mbarrier ? waiter->mbarrier->phase : waiter->warp->block->barriers[waiter->barrier].phase;
}

static void find_past(Waiter *waiter, const Cluster *cluster) {
  const Use *uses = waiter_uses(waiter);
  for (int w = 0; uses && w < cluster_warps(cluster); w++) {
    if (!uses[w].arrival) continue;
    set_add(&waiter->before, cluster_warp(cluster, w));
    if (uses[w].phase == phase_of(waiter)) set_add(&waiter->came, cluster_warp(cluster, w));
  }
}

// Whether the warp waits for the target: then it cannot signal it.
static bool waits_for(const WaiterList *list, const Warp *warp, Target target) {
  for (int i = 0; i < list->count; i++) {
    const Waiter *waiter = &list->items[i];
    if (waiter->target == target && waiter->warp->block == warp->block && waiter->warps >> warp->index & 1) return true;
  }
  return false;
}

static void find_future(const WaiterList *list, Waiter *waiter) {
  for (int i = 0; i < list->foresight.count; i++) {
    const Signal *signal = &list->foresight.items[i];
    if (signal->target == waiter->target && !waits_for(list, signal->warp, waiter->target))
      set_add(&waiter->after, signal->warp);
  }
  if (!waiter->target) return;
  if (set_is_empty(&waiter->after))
    waiter->end = list->foresight.failed ? END_UNKNOWN : END_BY_NONE;
  else
    waiter->end = set_contains(&waiter->came, &waiter->after) ? END_ALL_CAME : END_BY_OTHERS;
}

WaiterList waiters_find(Cluster *cluster) {
  WaiterList list = {.cluster = cluster};
  for (int w = 0; w < cluster_warps(cluster); w++) {
    const Warp *warp = cluster_warp(cluster, w);
    for (int g = 0; g < warp->group_count; g++) add_group_waiter(&list, warp, &warp->groups[g]);
  }
  list.foresight = foresee_signals(cluster);
  for (int i = 0; i < list.count; i++) {
    find_past(&list.items[i], cluster);
    find_future(&list, &list.items[i]);
  }
  return list;
}

void waiters_free(WaiterList *list) {
  free(list->items);
  free(list->foresight.items);
}

const Waiter *waiter_among(const WaiterList *list, const WarpSet *warps) {
  for (int i = 0; i < list->count; i++) {
    const Waiter *waiter = &list->items[i];
    if (waiter->warps & warps->warps[waiter->warp->block->rank]) return waiter;
  }
  return NULL;
}

// ---- a line for each waiter ----

// ---- words ----

WarpSet waiter_warps(const Waiter *waiter) {
  WarpSet set = {{0}};
  set.warps[waiter->warp->block->rank] = waiter->warps;
  return set;
}

const char *verb(const WarpSet *set, const char *one, const char *several) {
  return set_count(set) == 1 ? one : several;
}

// "warps 0 to 3", with the lanes where some of a warp's do something else.
void put_waiter(WaitText *text, const Waiter *waiter) {
  WarpSet own = waiter_warps(waiter);
  if (waiter->lanes != waiter->warp->live) text_put(text, "lanes 0x%08x of ", waiter->lanes);
  text_set(text, waiter->warp->block->cluster, &own);
}

const char *waiter_verb(const Waiter *waiter) {
  WarpSet own = waiter_warps(waiter);
  return waiter->lanes == waiter->warp->live ? verb(&own, "waits", "wait") : "wait";
}

void put_target(WaitText *text, const Waiter *waiter) {
  if (waiter->kind == WAITS_AT_MBARRIER)
    text_put(text, "the mbarrier at 0x%llx", (unsigned long long)(waiter->target & ((1u << SHARED_RANK_SHIFT) - 1)));
  else if (waiter->barrier == CLUSTER_BARRIER)
    text_put(text, "the cluster's barrier");
  else
    text_put(text, "barrier %d", waiter->barrier);
}

// ---- a line for each that waits ----

// "1 of 9 arrivals and 512 bytes are missing"
static void put_missing(WaitText *text, const Mbarrier *mbarrier) {
  MbarrierState state = mbarrier_state(mbarrier);
  text_put(text, "%u of %u arrival%s", state.pending, state.expected, state.expected == 1 ? "" : "s");
  if (state.tx) text_put(text, " and %d byte%s", state.tx, state.tx == 1 ? "" : "s");
  text_put(text, " %s missing", state.pending == 1 && !state.tx ? "is" : "are");
}

// The warp's own and its polls of memory: the latest.
static const Poll *last_poll(const Warp *warp) {
  const Poll *last = NULL;
  for (int p = 0; p < POLLS; p++) {
    const Poll *poll = &warp->polls[p];
    if (!poll->inst || (last && poll->progress < last->progress)) continue;
    if (!last || poll->progress > last->progress || poll->inst < last->inst) last = poll;
  }
  return last;
}

static bool has_thread_exited(const Launch *launch, const Cluster *cluster, const HazardPlace *place) {
  uint32_t thread = place->thread[0] + launch->block[0] * (place->thread[1] + launch->block[1] * place->thread[2]);
  for (int b = 0; b < cluster->block_count; b++)
    if (!memcmp(cluster->blocks[b].index, place->block, sizeof place->block))
      return !(cluster->blocks[b].warps[thread / LANES].live >> thread % LANES & 1);
  return false;
}

static bool is_store(const Inst *inst) { return inst->row->memory == MEMORY_STORE; }

// " for the 4 bytes at 0x7000, which hold 3, stored at line 12 by block (0,0,0) thread (0,0,0), which has exited". Of
// atomics by several threads the last one differs from schedule to schedule: it is not named.
void put_memory(WaitText *text, const Cluster *cluster, const Warp *warp) {
  const Launch *launch = cluster->launch;
  const Poll *poll = last_poll(warp);
  uint64_t value = 0;
  if (!poll) return;
  size_t size = ptx_type_size(ptx_instruction_type(poll->inst->source));
  const Region *region = region_find(launch->global, poll->address, NULL);
  if (!region || size > sizeof value || !memory_peek(warp, 0, poll->address, &value, size)) return;
  text_put(text, " for the %d bytes at 0x%llx, which hold %lld", (int)size, (unsigned long long)poll->address,
           size == 4 ? (long long)(int32_t)value : (long long)value);
  HazardPlace place;
  const Inst *writer = last_writer(cluster, region, poll->address - region->base, &place);
  if (!writer) {
    text_put(text, ", and no thread of this launch has stored there");
    return;
  }
  text_put(text, ", stored at ");
  text_line(text, launch, writer);
  if (!is_store(writer) && !has_thread_exited(launch, cluster, &place)) return;
  text_put(text, " by block (%u,%u,%u) thread (%u,%u,%u)%s", place.block[0], place.block[1], place.block[2],
           place.thread[0], place.thread[1], place.thread[2],
           has_thread_exited(launch, cluster, &place) ? ", which has exited" : "");
}

// Of the cluster's barrier.
static void put_not_come(WaitText *text, const Cluster *cluster) {
  WarpSet set = {{0}};
  for (int w = 0; w < cluster_warps(cluster); w++) {
    const Warp *warp = cluster_warp(cluster, w);
    if (warp->live & ~warp->cluster_arrived) set_add(&set, warp);
  }
  text_put(text, ": ");
  text_set(text, cluster, &set);
  text_put(text, " %s not come", verb(&set, "has", "have"));
}

static void put_wait(WaitText *text, const Waiter *waiter) {
  const Cluster *cluster = waiter->warp->block->cluster;
  WarpSet own = waiter_warps(waiter);
  put_waiter(text, waiter);
  text_put(text, " %s at ", waiter_verb(waiter));
  text_line(text, cluster->launch, waiter->inst);
  if (waiter->kind == WAITS_FOR_MEMORY) {
    put_memory(text, cluster, waiter->warp);
  } else if (waiter->kind == WAITS_FOR_LANES) {
    text_put(text, " for other lanes of %s", verb(&own, "its warp", "their warps"));
  } else if (waiter->kind == WAITS_AT_MBARRIER) {
    text_put(text, " for phase %u (parity %u) of ", waiter->mbarrier->phase, waiter->mbarrier->phase & 1);
    put_target(text, waiter);
    text_put(text, ": ");
    put_missing(text, waiter->mbarrier);
  } else if (waiter->barrier == CLUSTER_BARRIER) {
    text_put(text, " for all threads of the cluster");
    put_not_come(text, cluster);
  } else {
    const Barrier *barrier = &waiter->warp->block->barriers[waiter->barrier];
    text_put(text, " for ");
    put_target(text, waiter);
    text_put(text, ": %d of %d threads have come", barrier->arrived,
             barrier->expected ? barrier->expected : waiter->warp->block->live_threads);
  }
}

// Of the warps the one whose arrival stands first in the program.
static const Inst *first_arrival(const Waiter *waiter, const WarpSet *warps) {
  const Cluster *cluster = waiter->warp->block->cluster;
  const Use *uses = waiter_uses(waiter);
  const Inst *first = NULL;
  for (int w = 0; w < cluster_warps(cluster); w++)
    if (set_has(warps, cluster_warp(cluster, w)) && (!first || uses[w].arrival < first)) first = uses[w].arrival;
  return first;
}

// "; warps 0 to 7 have arrived at line 230"
static void put_arrived(WaitText *text, const Waiter *waiter, const WarpSet *warps, const char *one,
                        const char *several) {
  const Cluster *cluster = waiter->warp->block->cluster;
  if (set_is_empty(warps)) return;
  text_put(text, "; ");
  text_set(text, cluster, warps);
  text_put(text, " %s at ", verb(warps, one, several));
  text_line(text, cluster->launch, first_arrival(waiter, warps));
}

static void put_signallers(WaitText *text, const WaiterList *list, const Waiter *waiter) {
  const Launch *launch = list->cluster->launch;
  WarpSet fresh = set_without(&waiter->after, &waiter->came);
  const Signal *first = NULL;
  for (int i = 0; i < list->foresight.count; i++) {
    const Signal *signal = &list->foresight.items[i];
    if (signal->target == waiter->target && set_has(&fresh, signal->warp) && (!first || signal->pc < first->pc))
      first = signal;
  }
  if (first) {
    text_put(text, "; ");
    text_set(text, list->cluster, &fresh);
    text_put(text, " would %s at ", first->is_copy ? "copy" : "arrive");
    text_line(text, launch, &launch->program->code[first->pc]);
  } else if (waiter->end == END_BY_NONE || waiter->end == END_ALL_CAME) {
    text_put(text, "; no other warp would arrive%s",
             list->foresight.cut_short ? " in its next thousands of instructions" : "");
  }
}

// A wait for a phase that was over long since, or for none: often its parity is wrong.
static void put_early(WaitText *text, const Waiter *waiter) {
  const Use *uses = waiter->kind == WAITS_AT_MBARRIER ? waiter->mbarrier->uses : NULL;
  const Use *use = uses ? &uses[warp_number(waiter->warp)] : NULL;
  // To begin with, an mbarrier that counts no bytes is often waited for so: its slot is empty.
  if (!use || !use->early || (use->early_over == 0 && !waiter->mbarrier->has_bytes)) return;
  WarpSet own = waiter_warps(waiter);
  text_put(text, "; %s wait at ", verb(&own, "its", "their"));
  text_line(text, waiter->warp->block->cluster->launch, use->early);
  if (use->early_over == 0)
    text_put(text, " ended at once before any phase was over");
  else
    text_put(text, " ended at once a second time after phase %u", use->early_over - 1);
}

static void put_waiter_line(WaitText *text, const WaiterList *list, const Waiter *waiter) {
  WarpSet own = waiter_warps(waiter), came, earlier;
  put_wait(text, waiter);
  came = set_without(&waiter->came, &own);
  earlier = set_without(&waiter->before, &waiter->came);
  earlier = set_without(&earlier, &waiter->after);
  put_arrived(text, waiter, &came, "has arrived", "have arrived");
  put_arrived(text, waiter, &earlier, "arrived in an earlier phase", "arrived in earlier phases");
  put_signallers(text, list, waiter);
  put_early(text, waiter);
}

static void add_line(Lines *lines, const WaitText *line) {
  if (lines->count == MOST_LINES || lines->used + line->used + 80 > sizeof lines->text) {
    lines->left_out++;
    return;
  }
  lines->count++;
  lines->used += (size_t)snprintf(lines->text + lines->used, sizeof lines->text - lines->used, "%s\n", line->text);
}

// The warps of a block that have exited, by the place where they did.
static void add_exits(Lines *lines, const Block *block) {
  uint32_t told = 0;
  for (int w = 0; w < block->warp_count; w++) {
    const Warp *warp = &block->warps[w];
    if (warp->live || told >> w & 1) continue;
    WarpSet same = {{0}};
    for (int other = w; other < block->warp_count; other++)
      if (!block->warps[other].live && block->warps[other].exit == warp->exit) set_add(&same, &block->warps[other]);
    told |= same.warps[block->rank];
    WaitText text = {.used = 0};
    text_set(&text, block->cluster, &same);
    text_put(&text, " %s exited at ", verb(&same, "has", "have"));
    text_line(&text, block->cluster->launch, warp->exit);
    add_line(lines, &text);
  }
}

void describe_waits(const WaiterList *list, Lines *lines) {
  lines->used = 0;
  lines->count = lines->left_out = 0;
  lines->text[0] = 0;
  for (int i = 0; i < list->count; i++) {
    WaitText text = {.used = 0};
    put_waiter_line(&text, list, &list->items[i]);
    add_line(lines, &text);
  }
  for (int b = 0; b < list->cluster->block_count; b++) add_exits(lines, &list->cluster->blocks[b]);
  if (lines->left_out)
    snprintf(lines->text + lines->used, sizeof lines->text - lines->used, "and %d more like these\n", lines->left_out);
}

// ---- what other warps would still do ----
//
// start copies or wait for them do nothing; barriers and mbarriers ask foresee() what to do.

enum { STEPS = 1 << 14 };  // of a warp

static void do_nothing(Warp *warp, const Inst *inst, Mask mask) { (void)warp, (void)inst, (void)mask; }

// printf, malloc and the like
static bool is_system_call(const Program *program, const Inst *inst) {
  const PtxInstruction *source = inst->source;
  if (!inst->row->calls) return false;
  for (int i = 0; i < source->operand_count; i++)
    if (source->operands[i].kind == PTX_OPERAND_FUNCTION) return !program_function(program, &source->operands[i]);
  return false;
}

// Whether it signals something: then it asks foresee().
static bool may_signal(const PtxInstruction *source, MemoryUse memory) {
  bool is_async_store = ptx_has(source, "async") && (memory == MEMORY_STORE || memory == MEMORY_REDUCTION);
  return is_async_store || memory == MEMORY_BULK_LOAD || memory == MEMORY_BULK_CLUSTER ||
         (ptx_has(source, "mbarrier") && ptx_has(source, "arrive"));
}

static bool changes_memory(const PtxInstruction *source, MemoryUse memory) {
  if (memory == MEMORY_NONE || memory == MEMORY_LOAD) return false;
  return !ptx_has(source, "local") && !ptx_has(source, "param");
}

// Whether the instruction is executed while warps are only followed.
static bool is_followed(const Program *program, const Inst *inst) {
  const PtxInstruction *source = inst->source;
  MemoryUse memory = inst->row->memory;
  if (may_signal(source, memory)) return true;
  return !changes_memory(source, memory) && !is_system_call(program, inst) && !inst->row->skipped;
}

static Inst *copy_code(const Program *program) {
  Inst *code = host_allocate(program->count, sizeof *code);
  memcpy(code, program->code, program->count * sizeof *code);
  for (uint32_t i = 0; i < program->count; i++)
    if (!is_followed(program, &code[i])) code[i].execute = do_nothing;
  return code;
}

// Returns false if the warp did not reach its end. Its registers change; the state that reports read does not.
static bool follow_to_end(Warp *warp) {
  Warp before = *warp;
  warp->undefined = NULL;  // nothing is checked
  warp->has_undefined = false;
  for (int g = 0; g < warp->group_count; g++) {
    Group *group = &warp->groups[g];
    if (group->state == GROUP_BARRIER) group->pc++;
    group->state = GROUP_READY;
  }
  for (int left = STEPS; left > 0 && warp_ready(warp) && !warp_launch(warp)->stopped;) left -= warp_run(warp, left);
  bool ended = !warp->live;
  // Made when they are first needed, perhaps just now: the warp frees them.
  before.calls = warp->calls;
  before.groups_in_flight = warp->groups_in_flight;
  before.wgmma = warp->wgmma;
  before.check.flights = warp->check.flights;
  *warp = before;
  return ended;
}

Foresight foresee_signals(Cluster *cluster) {
  Foresight foresight = {.items = NULL};
  HazardList list = {.items = NULL};
  Launch *running = cluster->launch, launch = *running;
  Program program = *running->program;
  InstCounts *counts = cluster->worker->counts;
  pthread_mutex_init(&list.lock, NULL);
  program.code = copy_code(running->program);
  launch.program = &program;
  launch.hazard_list = &list;
  launch.check.on = false;
  launch.step_limit = 0;
  cluster->launch = &launch;
  cluster->check.launch = &launch.check;
  cluster->foresight = &foresight;
  cluster->worker->counts = host_allocate(program.count, sizeof(InstCounts));
  for (int w = 0; w < cluster_warps(cluster); w++) {
    Warp *warp = (Warp *)cluster_warp(cluster, w);
    launch.stopped = false;
    if (!warp->live || follow_to_end(warp)) continue;
    foresight.cut_short = true;
    foresight.failed |= launch.stopped;
  }
  free(cluster->worker->counts);
  cluster->worker->counts = counts;
  cluster->foresight = NULL;
  cluster->launch = running;
  cluster->check.launch = &running->check;
  free(program.code);
  hazards_clear(&list);
  hazards_free(&list);
  pthread_mutex_destroy(&list.lock);
  return foresight;
}
