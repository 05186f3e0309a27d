// How a warp executes: groups of lanes at one instruction, split by divergent branches, merged where they meet.
#include "run.h"

#include <string.h>

#include "../report/hazard.h"
#include "../report/undefined.h"
#include "../report/steps.h"
#include "../scalar/contraction.h"
#include "../warp/warp.h"

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

// Whether a runs before b: the one with fewer turns, then one that exits at once (so that an early return is over
// before the others reach a barrier), then the deeper call, then the one further behind.
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

// A lane that executes a .sync instruction must name itself. PTX ISA 9.7.9, shfl.sync and its kin. It goes on as if it
// did.
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
static void count_execution(const Warp *warp, const Cluster *cluster, InstCounts *counts, Mask lanes, Mask exec) {
  if (!lanes) return;
  counts->warps++;
  counts->threads += (unsigned)__builtin_popcount(lanes);
  counts->enabled += (unsigned)__builtin_popcount(exec);
  unsigned kinds = warp_meanwhile(warp, cluster);
  if (__builtin_expect(kinds, 0)) counts_add_meanwhile(counts, cluster, kinds, 1);
}

// Executes the running group until it must be chosen anew. Returns the number of instructions.
static int run_group(Warp *warp, const Inst *code, InstCounts *counts, int budget) {
  const Launch *launch = warp_launch(warp);
  const Cluster *cluster = warp->block->cluster;
  Group *group = &warp->groups[warp->current];
  Mask mask = group->mask;
  uint32_t pc = group->pc;
  bool divergent = warp->group_count > 1;
  warp->regroup = false;
  for (int executed = 1;; executed++) {
    const Inst *inst = &code[pc];
    Mask exec = mask;
    if (inst->guarded) exec &= guarded_lanes(warp, inst);
    warp->pc = pc + 1;
    Mask waits = inst->converge && exec ? exec & ~converge(warp, inst, exec) : 0;
    exec &= ~waits;
    count_execution(warp, cluster, &counts[pc], mask & ~waits, exec);
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

// Executes one instruction of the running group, under a fair schedule, and records it.
static int run_recorded(Warp *warp, const Inst *code, InstCounts *counts) {
  const Group *group = &warp->groups[warp->current];
  uint32_t pc = group->pc;
  Mask lanes = group->mask & guarded_lanes(warp, &code[pc]);
  if (lanes) step_instruction(warp, pc, lanes);
  int executed = run_group(warp, code, counts, 1);
  if (lanes && !contraction_left_nothing(&code[pc])) step_values(warp, pc, lanes);
  return executed;
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
    executed += launch->record ? run_recorded(warp, code, counts) : run_group(warp, code, counts, budget - executed);
    if (!warp->groups[warp->current].mask) remove_group(warp, warp->current);
  }
  // Lanes may have come to where others of their warp wait for them with the slice's last instruction.
  if (warp->group_count > 1) merge_groups(warp);
  return executed;
}

// ---- lanes that meet at an instruction ----
//
// shfl.sync and its kin wait until all lanes of the member mask have executed one "with the same qualifiers and the
// same membermask value" (PTX ISA 9.7.9.6, 9.7.13.2). That may stand in both branches of an if. One of the
// instructions, the host, is executed for all; the others' lanes are its guests: their operands are put into its
// registers, and these get their values back.

// ---- operands ----

enum { MEMBERS, A, B, C, INPUTS, D = INPUTS, D2, OPERANDS };

typedef uint64_t Values[LANES];  // of one operand; of a predicate a Mask

static uint8_t *operand(Warp *warp, const Inst *inst, int which) {
  const Slot slots[OPERANDS] = {inst->members, inst->a, inst->b, inst->c, inst->d, inst->d2};
  return warp->registers + slots[which];
}

// Bytes of an element, 0 when the instruction has no such operand.
static int size_of(const Inst *inst, int which) {
  const SyncOperands *sizes = inst->extra;
  const int all[OPERANDS] = {sizeof(uint32_t), sizes->a, sizes->b, sizes->c, sizes->d, sizes->d2};
  return all[which];
}

static void copy_lanes(void *to, const void *from, int size, Mask lanes) {
  if (size == 1) {
    *(Mask *)to = (*(Mask *)to & ~lanes) | (*(const Mask *)from & lanes);
    return;
  }
  for (Mask rest = lanes; rest && size; rest &= rest - 1) {
    size_t offset = (size_t)__builtin_ctz(rest) * (size_t)size;
    memcpy((uint8_t *)to + offset, (const uint8_t *)from + offset, (size_t)size);
  }
}

// ---- teams ----

// The lanes of a group that wait for the same member mask, and the place where they do.
typedef struct Guest {
  int group;
  Mask lanes;
} Guest;

typedef struct Team {
  Guest guests[LANES];  // the first is the host
  int count;
  Mask lanes;
} Team;

static const Inst *inst_of_group(const Warp *warp, int group) {
  return &warp_launch(warp)->program->code[warp->groups[group].pc];
}

static bool waits_for_members(const Warp *warp, int group) {
  return warp->groups[group].state == GROUP_CONVERGING && inst_of_group(warp, group)->converge == CONVERGE_MEMBERS;
}

static Mask lanes_that_name(Warp *warp, int group, Mask members) {
  const uint32_t *named = (const uint32_t *)operand(warp, inst_of_group(warp, group), MEMBERS);
  Mask lanes = 0;
  for (Mask rest = warp->groups[group].mask; rest; rest &= rest - 1)
    if (named[__builtin_ctz(rest)] == members) lanes |= rest & -rest;
  return lanes;
}

// Whether the qualifiers are the same: one function does both, in one way.
static bool same_instruction(const Inst *a, const Inst *b) {
  return a->execute == b->execute && a->flags == b->flags && a->extra == b->extra;
}

// Whether another group stands at the same place: then the two will be one.
static bool will_merge(const Warp *warp, int group) {
  for (int g = 0; g < warp->group_count; g++)
    if (g != group && warp->groups[g].mask && warp->groups[g].pc == warp->groups[group].pc &&
        warp->groups[g].state != GROUP_BARRIER)
      return true;
  return false;
}

// All that wait with the host's lanes.
static Team team_of(Warp *warp, int host, Mask members) {
  Team team = {.guests = {{host, lanes_that_name(warp, host, members)}}, .count = 1};
  team.lanes = team.guests[0].lanes;
  for (int g = host + 1; g < warp->group_count; g++) {
    if (!waits_for_members(warp, g) || will_merge(warp, g) ||
        !same_instruction(inst_of_group(warp, host), inst_of_group(warp, g)))
      continue;
    Mask lanes = lanes_that_name(warp, g, members);
    if (lanes) team.guests[team.count++] = (Guest){g, lanes};
    team.lanes |= lanes;
  }
  return team;
}

// ---- execution ----

// A predicate may be negated, at one place and not at the other.
static void bring(Warp *warp, const Inst *host, const Inst *guest, Mask lanes, Values brought[OPERANDS]) {
  for (int o = 0; o < INPUTS; o++) copy_lanes(brought[o], operand(warp, guest, o), size_of(guest, o), lanes);
  if (size_of(guest, A) == 1 && host->immediate != guest->immediate) *(Mask *)brought[A] ^= lanes;
}

static void execute_for(Warp *warp, const Team *team) {
  const Inst *host = inst_of_group(warp, team->guests[0].group);
  Mask guests = team->lanes & ~team->guests[0].lanes;
  Values saved[OPERANDS] = {{0}}, brought[OPERANDS] = {{0}};
  for (int o = 0; o < OPERANDS; o++) copy_lanes(saved[o], operand(warp, host, o), size_of(host, o), guests);
  for (int g = 1; g < team->count; g++)
    bring(warp, host, inst_of_group(warp, team->guests[g].group), team->guests[g].lanes, brought);
  for (int o = 0; o < INPUTS; o++) copy_lanes(operand(warp, host, o), brought[o], size_of(host, o), guests);
  host->execute(warp, host, team->lanes);
  for (int o = INPUTS; o < OPERANDS; o++) copy_lanes(brought[o], operand(warp, host, o), size_of(host, o), guests);
  for (int o = 0; o < OPERANDS; o++) copy_lanes(operand(warp, host, o), saved[o], size_of(host, o), guests);
  for (int g = 1; g < team->count; g++) {
    const Inst *guest = inst_of_group(warp, team->guests[g].group);
    for (int o = INPUTS; o < OPERANDS; o++)
      copy_lanes(operand(warp, guest, o), brought[o], size_of(guest, o), team->guests[g].lanes);
  }
}

static void count(Warp *warp, const Guest *guest) {
  InstCounts *counts = warp_counts(warp, inst_of_group(warp, guest->group));
  unsigned lanes = (unsigned)__builtin_popcount(guest->lanes);
  counts->warps++;
  counts->threads += lanes;
  counts->enabled += lanes;
}

static void note(Warp *warp, const Team *team) {
  const PtxInstruction *other = inst_of_group(warp, team->guests[1].group)->source;
  hazard_report_graded(
      HAZARD_NOTE, warp, inst_of_group(warp, team->guests[0].group), __builtin_ctz(team->guests[0].lanes),
      HAZARD_DIVERGENT_ALIGNED, 0, 0,
      "lanes 0x%08x and 0x%08x execute it together at two places of the program, here and at PTX line %d. PTX "
      "allows that; it is a mistake if they should have met elsewhere",
      team->guests[0].lanes, team->guests[1].lanes, other->line);
}

// Executes the instruction for the team of the host's lanes that name the members, if it is whole.
static bool meet(Warp *warp, int host, Mask members) {
  Team team = team_of(warp, host, members);
  if (team.count == 1 || members & warp->live & ~team.lanes) return false;
  note(warp, &team);
  execute_for(warp, &team);
  for (int g = 0; g < team.count; g++) {
    count(warp, &team.guests[g]);
    warp_resume(warp, team.guests[g].group, team.guests[g].lanes);
  }
  return true;
}

void meet_held_lanes(Warp *warp) {
  for (int host = 0; host < warp->group_count; host++)
    for (Mask rest = waits_for_members(warp, host) && !will_merge(warp, host) ? warp->groups[host].mask : 0; rest;) {
      Mask members = ((const uint32_t *)operand(warp, inst_of_group(warp, host), MEMBERS))[__builtin_ctz(rest)];
      if (meet(warp, host, members)) return;
      rest &= ~lanes_that_name(warp, host, members);
    }
}
