// Asynchronous operations: see async.h.
#include "async.h"

#include <stdlib.h>

#include "../report/hazard.h"
#include "../report/steps.h"
#include "../check/order.h"
#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "../warp/warp.h"

struct AsyncEngine {
  Cluster *cluster;
  AsyncOp *first, *last;  // pending, in order of issue
  int self_completing;    // of those
};

// ---- the engine ----

AsyncEngine *async_engine_new(Cluster *cluster) {
  AsyncEngine *engine = host_allocate(1, sizeof *engine);
  engine->cluster = cluster;
  return engine;
}

void async_engine_free(AsyncEngine *engine) {
  if (!engine) return;
  // From the last: one that waits for another's result is released before it.
  while (engine->last) {
    AsyncOp *op = engine->last;
    engine->last = op->previous;
    async_release(op);
  }
  free(engine);
}

static void link_pending(AsyncEngine *engine, AsyncOp *op) {
  op->previous = engine->last;
  if (engine->last)
    engine->last->next = op;
  else
    engine->first = op;
  engine->last = op;
  engine->self_completing += op->self_completing;
  engine->cluster->loads += op->inst->row->memory == MEMORY_BULK_LOAD;
}

static void unlink_pending(AsyncEngine *engine, AsyncOp *op) {
  if (op->previous)
    op->previous->next = op->next;
  else
    engine->first = op->next;
  if (op->next)
    op->next->previous = op->previous;
  else
    engine->last = op->previous;
  op->next = op->previous = NULL;
  engine->self_completing -= op->self_completing;
  engine->cluster->loads -= op->inst->row->memory == MEMORY_BULK_LOAD;
}

AsyncOp *async_issue_part(Warp *warp, const Inst *inst, Mask mask, AsyncPerform *perform, bool self_completing,
                          size_t payload_size) {
  AsyncOp *op = host_allocate(1, sizeof *op);
  op->warp = warp;
  op->lane = __builtin_ctz(mask);
  op->inst = inst;
  op->perform = perform;
  op->self_completing = self_completing;
  op->references = 1;
  op->payload = payload_size ? host_allocate(1, payload_size) : NULL;
  link_pending(warp->block->cluster->async, op);
  if (warp_launch(warp)->record) op->step = step_operation_begins(warp, inst, mask);
  if (inst->row->memory == MEMORY_BULK_LOAD) warp_counts(warp, inst)->loads_in_flight += warp->block->cluster->loads;
  return op;
}

AsyncIssue async_issue_by(const AsyncOp *op, Mask mask, uint32_t warps) {
  return (AsyncIssue){warp_thread(op->warp, op->lane), op->warp->check.clocks[op->lane].own, mask, warps};
}

void async_make_agent(AsyncOp *op, AsyncIssue issue) {
  AgentClock begun = agent_begin(op->warp->check.cluster, issue);
  op->agent = begun.agent;
  op->clock = begun.clock;
  if (!begun.wrapped) return;
  hazard_stop(op->warp, op->inst, op->lane, HAZARD_STEP_LIMIT, 0, 0,
              "more asynchronous operations than the race check can count; run with --hazards=off");
}

AsyncOp *async_issue(Warp *warp, const Inst *inst, Mask mask, AsyncPerform *perform, bool self_completing,
                     size_t payload_size) {
  AsyncOp *op = async_issue_part(warp, inst, mask, perform, self_completing, payload_size);
  async_make_agent(op, async_issue_by(op, mask, 1));
  return op;
}

void async_make_collective(AsyncOp *op, Mask mask) { race_release(&op->warp->check, mask, &op->known); }

Actor async_actor(const AsyncOp *op, int lane, bool proxy) {
  Actor actor = actor_of_lane(&op->warp->check, pc_of_inst(op->warp, op->inst), lane, WEAK);
  actor_set_agent(&actor, op->agent, op->clock);
  if (op->known) actor.known = op->known;
  actor.async = proxy;
  return actor;
}

void async_retain(AsyncOp *op) { op->references++; }

void async_release(AsyncOp *op) {
  if (--op->references > 0) return;
  if (!op->performed && op->discard) op->discard(op);
  clocks_release(op->known);
  free(op->payload);
  free(op);
}

void async_finish(Cluster *cluster, AsyncOp *op) {
  if (op->performed) return;
  op->performed = true;
  uint32_t outer = op->step ? step_operation_ends(op->warp, op->inst, 1u << op->lane, op->step) : 0;
  op->perform(cluster, op);
  if (op->step) step_operation_is_over(op->warp, outer);
  cluster->progress++;
  if (op->clock) agent_end(&cluster->check, op->agent);
  unlink_pending(cluster->async, op);
  async_release(op);
}

void async_wait(Warp *warp, Mask mask, AsyncOp *op) {
  async_retain(op);
  async_finish(warp->block->cluster, op);
  race_learn_agent(&warp->check, mask, op->agent, op->clock);
  async_release(op);
}

bool async_advance(Cluster *cluster, uint64_t random) {
  AsyncEngine *engine = cluster->async;
  if (!engine || engine->self_completing == 0) return false;
  uint64_t skip = random % (uint64_t)engine->self_completing;
  AsyncOp *op = engine->first;
  for (;; op = op->next) {
    if (!op->self_completing) continue;
    if (skip-- == 0) break;
  }
  async_finish(cluster, op);
  return true;
}

AsyncOp *async_first_pending(const Cluster *cluster) { return cluster->async ? cluster->async->first : NULL; }

// ---- groups ----

GroupQueue *async_groups(Warp *warp, GroupKind kind) {
  if (!warp->groups_in_flight) warp->groups_in_flight = host_allocate(GROUP_KINDS, sizeof(GroupQueue));
  return &warp->groups_in_flight[kind];
}

void async_warp_end(Warp *warp) {
  for (int kind = 0; warp->groups_in_flight && kind < GROUP_KINDS; kind++) {
    GroupQueue *queue = &warp->groups_in_flight[kind];
    for (int i = 0; i < queue->count; i++) async_release(queue->entries[i].op);
    free(queue->entries);
  }
  free(warp->groups_in_flight);
  warp->groups_in_flight = NULL;
}

void group_add(GroupQueue *queue, Mask mask, AsyncOp *op) {
  queue->entries = host_grow(queue->entries, queue->count, &queue->capacity, sizeof(GroupEntry));
  GroupEntry *entry = &queue->entries[queue->count++];
  *entry = (GroupEntry){.op = op, .waiting = mask};
  for (int lane = 0; lane < LANES; lane++) entry->group[lane] = queue->commits[lane];
  async_retain(op);
}

void group_commit(GroupQueue *queue, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) queue->commits[__builtin_ctz(rest)]++;
}

// The lanes of mask for which the entry's group is among those to wait for.
static Mask lanes_to_wait(const GroupQueue *queue, const GroupEntry *entry, Mask mask, uint32_t allowed,
                          bool everything) {
  Mask lanes = mask & entry->waiting, result = 0;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (everything || (uint64_t)entry->group[lane] + allowed < queue->commits[lane]) result |= rest & -rest;
  }
  return result;
}

void group_pass(const Warp *warp, const Inst *inst, const GroupQueue *queue, GroupEntry *entry, Mask mask) {
  Mask left = entry->waiting & mask;
  if (!left) return;
  int lane = __builtin_ctz(left);
  const GroupEntry *last = &queue->entries[queue->count - 1];
  bool is_open = last->waiting >> lane & 1 && last->group[lane] == queue->commits[lane];
  uint32_t newer = queue->commits[lane] - entry->group[lane];
  entry->passed = (PassedWait){inst, lane, warp->check.clocks[lane].own, newer, is_open ? last->op->inst : NULL};
}

void group_wait(Warp *warp, const Inst *inst, GroupQueue *queue, Mask mask, uint32_t allowed, bool everything) {
  int kept = 0;
  for (int i = 0; i < queue->count; i++) {
    GroupEntry *entry = &queue->entries[i];
    Mask lanes = lanes_to_wait(queue, entry, mask, allowed, everything);
    if (lanes) async_wait(warp, lanes, entry->op);
    entry->waiting &= ~lanes;
    group_pass(warp, inst, queue, entry, mask);
    if (entry->waiting)
      queue->entries[kept++] = *entry;
    else
      async_release(entry->op);
  }
  queue->count = kept;
}
