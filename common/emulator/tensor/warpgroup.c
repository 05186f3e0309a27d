// The turns of a warpgroup: see warpgroup.h.
#include "warpgroup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../report/hazard.h"
#include "../check/order.h"
#include "../host/host_memory.h"
#include "wgmma_registers.h"

static uint32_t issued_by(const Warp *warp) { return warp->wgmma ? warp->wgmma->issued : 0; }

static Warpgroup *group_of(const Warp *warp) {
  Warpgroup **group = &warp->block->warpgroups[warp->index / WARPGROUP_WARPS];
  if (!*group) *group = host_allocate(1, sizeof **group);
  return *group;
}

Warp *warpgroup_warp(const Warp *warp, int index) {
  return &warp->block->warps[warp->index / WARPGROUP_WARPS * WARPGROUP_WARPS + index];
}

static bool is_whole(const Warp *warp) {
  return (warp->index / WARPGROUP_WARPS + 1) * WARPGROUP_WARPS <= warp->block->warp_count;
}

WarpgroupTurn *warpgroup_past_turn(const Warp *warp, uint32_t number) {
  return &group_of(warp)->turns[number % WARPGROUP_TURNS];
}

// ---- what is wrong ----

static void divergent(const Warp *warp, const Inst *inst, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void divergent(const Warp *warp, const Inst *inst, const char *format, ...) {
  char detail[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  hazard_stop(warp, inst, 0, HAZARD_DIVERGENT_ALIGNED, 0, 0, "%s", detail);
}

static void report_different(const Warp *warp, const Inst *inst, const Inst *theirs) {
  const char *file;
  int line;
  bool known = instruction_line(warp_launch(warp)->program->module, theirs->source, &file, &line);
  divergent(warp, inst, "another warp of the warpgroup executes a different wgmma, at %s %d",
            known ? "line" : "PTX line", known ? line : theirs->source->line);
}

// The warp never executes what another of its warpgroup does: the first wgmma that it lacks.
static void report_missing(const Warp *warp, const Warp *other, const char *does) {
  divergent(other, warpgroup_past_turn(warp, issued_by(warp) + 1)->inst,
            "warp %d executes it, and warp %d of the same warpgroup %s without it", other->index, warp->index, does);
}

void wgmma_check_exit(const Warp *warp) {
  for (int i = 0; i < WARPGROUP_WARPS && is_whole(warp); i++) {
    const Warp *other = warpgroup_warp(warp, i);
    if (issued_by(other) <= issued_by(warp)) continue;
    report_missing(warp, other, "exits");
    return;
  }
}

const Warp *wgmma_missing(const Cluster *cluster, const Warp **waits) {
  for (int b = 0; b < cluster->block_count; b++)
    for (int w = 0; w < cluster->blocks[b].warp_count; w++) {
      const Warp *warp = &cluster->blocks[b].warps[w];
      uint32_t awaited = warp->wgmma && warp->live ? warp->wgmma->awaited : 0;
      for (int i = 0; awaited && i < WARPGROUP_WARPS; i++) {
        if (issued_by(warpgroup_warp(warp, i)) >= awaited) continue;
        *waits = warp;
        return warpgroup_warp(warp, i);
      }
    }
  return NULL;
}

void wgmma_explain_deadlock(const Warp *missing, const Warp *waits) {
  report_missing(missing, waits, "waits elsewhere");
}

// ---- turns ----

WarpgroupTurn *warpgroup_turn(Warp *warp, const Inst *inst, uint32_t number, bool *first) {
  if (!is_whole(warp) || warp->live != FULL_MASK) {
    divergent(warp, inst, "a warpgroup is four full warps, and this warp's is not");
    return NULL;
  }
  for (int i = 0; i < WARPGROUP_WARPS; i++) {
    const Warp *other = warpgroup_warp(warp, i);
    if (other->live || issued_by(other) >= number) continue;
    divergent(warp, inst, "warp %d of the same warpgroup has exited without it", other->index);
    return NULL;
  }
  Warpgroup *group = group_of(warp);
  WarpgroupTurn *turn = &group->turns[number % WARPGROUP_TURNS];
  *first = number > group->newest;
  if (*first) {
    group->newest = number;
    *turn = (WarpgroupTurn){.inst = inst};
  } else if (turn->inst != inst) {
    report_different(warp, inst, turn->inst);
    return NULL;
  }
  return turn;
}

bool warpgroup_all_have(const Warp *warp, uint32_t number) {
  for (int i = 0; i < WARPGROUP_WARPS; i++)
    if (issued_by(warpgroup_warp(warp, i)) < number) return false;
  return true;
}

void warpgroup_wake(const Warp *warp) {
  for (int i = 0; i < WARPGROUP_WARPS; i++) {
    const WgmmaState *other = warpgroup_warp(warp, i)->wgmma;
    if (other && other->awaited) warp->block->cluster->progress++;
  }
}

void warpgroup_finish(Warp *warp, uint32_t number) {
  int next[WARPGROUP_WARPS] = {0};
  for (;;) {
    AsyncOp *lowest = NULL;
    int chosen = 0;
    for (int i = 0; i < WARPGROUP_WARPS; i++) {
      const GroupQueue *queue = async_groups(warpgroup_warp(warp, i), GROUP_WGMMA);
      AsyncOp *op = next[i] < queue->count ? queue->entries[next[i]].op : NULL;
      if (!op || op->number > number || (lowest && op->number >= lowest->number)) continue;
      lowest = op;
      chosen = i;
    }
    if (!lowest) return;
    async_finish(warp->block->cluster, lowest);
    next[chosen]++;
  }
}

void warpgroup_learn(Warp *warp, Mask mask, uint32_t after, uint32_t number) {
  Cluster *cluster = warp->block->cluster;
  Clocks *done = NULL;
  if (!cluster->launch->check.on) return;
  if (number - after > WARPGROUP_TURNS) after = number - WARPGROUP_TURNS;
  for (uint32_t n = after + 1; n <= number; n++) {
    const WarpgroupTurn *turn = warpgroup_past_turn(warp, n);
    clocks_add_agent(&cluster->check, &done, turn->agent, turn->clock);
  }
  race_acquire(&warp->check, mask, done);
  clocks_release(done);
}
