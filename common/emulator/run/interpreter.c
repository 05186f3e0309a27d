// How a warp executes: groups of lanes at one instruction, split by divergent branches, merged where they meet.
#include "interpreter.h"

#include "../check/hazard.h"
#include "../check/undefined.h"
#include "../warp/warp.h"
#include "meeting.h"

// A group is passed over after this many turns in which others of its warp could not run.
enum { TURN_SHIFT = 10 };

// ---- which group is next ----

static void remove_group(Warp *warp, int index) { warp->groups[index] = warp->groups[--warp->group_count]; }

// Merges groups that stand at one instruction, unless one is at a barrier: there each has arrived on its own.
static void merge_groups(Warp *warp) {
  for (int i = 0; i < warp->group_count; i++)
    for (int j = warp->group_count - 1; j > i; j--) {
      Group *a = &warp->groups[i], *b = &warp->groups[j];
      if (a->pc != b->pc || a->state == GROUP_BARRIER || b->state == GROUP_BARRIER) continue;
      a->mask |= b->mask;
      a->state = GROUP_READY;
      if (b->depth > a->depth) a->depth = b->depth;
      if (b->visits > a->visits) a->visits = b->visits;
      remove_group(warp, j);
    }
}

static bool about_to_exit(const Inst *code, const Group *group) {
  return group->depth == 0 && code[group->pc].control == CONTROL_END && !code[group->pc].guarded;
}

// Whether a runs before b: the one with fewer turns, then one that exits at once (so that an early return is over before
// the others reach a barrier), then the deeper call, then the one further behind.
static bool runs_before(const Inst *code, const Group *a, const Group *b) {
  bool a_exits = about_to_exit(code, a), b_exits = about_to_exit(code, b);
  if (a_exits != b_exits) return a_exits;
  uint32_t a_turns = a->visits >> TURN_SHIFT, b_turns = b->visits >> TURN_SHIFT;
  if (a_turns != b_turns) return a_turns < b_turns;
  if (a->depth != b->depth) return a->depth > b->depth;
  return code[a->pc].priority < code[b->pc].priority;
}

static int choose_group(Warp *warp, const Inst *code) {
  if (warp->group_count > 1) merge_groups(warp);
  int best = -1;
  for (int i = 0; i < warp->group_count; i++)
    if (warp->groups[i].state == GROUP_READY && (best < 0 || runs_before(code, &warp->groups[i], &warp->groups[best])))
      best = i;
  if (best >= 0 && warp->group_count > 1) warp->groups[best].visits++;
  return best;
}

// ---- instructions that need other lanes ----

// The lanes of `mask` whose required lanes are all in it.
static Mask converged_lanes(Warp *warp, const Inst *inst, Mask mask) {
  if (inst->converge == CONVERGE_ALIGNED) return (warp->live & ~mask) ? 0 : mask;
  const uint32_t *members = SLOT(warp, inst->members, const uint32_t);
  Mask complete = 0;
  for (Mask rest = mask; rest;) {
    uint32_t member_mask = members[__builtin_ctz(rest)];
    Mask same = 0;
    for (Mask lanes = rest; lanes; lanes &= lanes - 1)
      if (members[__builtin_ctz(lanes)] == member_mask) same |= lanes & -lanes;
    if ((member_mask & warp->live & ~same) == 0) complete |= same;
    rest &= ~same;
  }
  return complete;
}

// A lane that executes a .sync instruction must name itself. PTX ISA 9.7.9, shfl.sync and its kin. It goes on as if it did.
static void check_names_itself(Warp *warp, const Inst *inst, Mask mask) {
  const uint32_t *members = SLOT(warp, inst->members, const uint32_t);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (members[lane] >> lane & 1) continue;
    hazard_report(warp, inst, lane, HAZARD_DIVERGENT_ALIGNED, members[lane], 0,
                  "the lane executes it but is not in its own member mask 0x%08x", members[lane]);
    return;
  }
}

// Makes the lanes that `exec` still lacks partners for wait. Returns those that may execute now.
static Mask converge(Warp *warp, const Inst *inst, Mask exec) {
  if (inst->converge == CONVERGE_MEMBERS) check_names_itself(warp, inst, exec);
  Mask complete = converged_lanes(warp, inst, exec), incomplete = exec & ~complete;
  if (!incomplete) return exec;
  warp_hold(warp, incomplete, GROUP_CONVERGING);
  if (inst->converge == CONVERGE_MEMBERS) meet_held_lanes(warp);
  return complete;
}

// ---- the loop ----

// Counts an instruction that the lanes pass, though their guard be false: only those of exec do something.
static void count_execution(InstCounts *counts, Mask lanes, Mask exec) {
  if (!lanes) return;
  counts->warps++;
  counts->threads += (unsigned)__builtin_popcount(lanes);
  counts->enabled += (unsigned)__builtin_popcount(exec);
}

// Executes the running group until it must be chosen anew. Returns the number of instructions.
static int run_group(Warp *warp, const Inst *code, InstCounts *counts, int budget) {
  const Launch *launch = warp_launch(warp);
  Group *group = &warp->groups[warp->current];
  Mask mask = group->mask;
  uint32_t pc = group->pc;
  bool divergent = warp->group_count > 1;
  warp->regroup = false;
  for (int executed = 1;; executed++) {
    const Inst *inst = &code[pc];
    Mask exec = mask;
    if (inst->guarded) exec &= *SLOT(warp, inst->guard, const Mask) ^ (inst->guard_negated ? FULL_MASK : 0);
    warp->pc = pc + 1;
    Mask waits = inst->converge && exec ? exec & ~converge(warp, inst, exec) : 0;
    exec &= ~waits;
    count_execution(&counts[pc], mask & ~waits, exec);
    if (warp->has_undefined)
      undefined_execute(warp, inst, mask & ~waits, exec);
    else if (exec)
      inst->execute(warp, inst, exec);
    pc = warp->pc;
    if (warp->regroup || executed >= budget || (divergent && code[pc].leader) || launch->stopped) {
      warp->groups[warp->current].pc = pc;
      return executed;
    }
  }
}

int warp_run(Warp *warp, int budget) {
  const Launch *launch = warp_launch(warp);
  const Inst *code = launch->program->code;
  InstCounts *counts = warp->block->cluster->worker->counts;
  int executed = 0;
  warp->yield = false;
  warp->idle_since = 0;
  while (executed < budget && !warp->yield && !launch->stopped) {
    warp->current = choose_group(warp, code);
    if (warp->current < 0) break;
    executed += run_group(warp, code, counts, budget - executed);
    if (!warp->groups[warp->current].mask) remove_group(warp, warp->current);
  }
  return executed;
}
