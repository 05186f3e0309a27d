// Lanes that come to a .sync instruction at several places of the program: see meeting.h.
//
// shfl.sync and its kin wait until all lanes of the member mask have executed one "with the same qualifiers and the same
// membermask value" (PTX ISA 9.7.9.6, 9.7.13.2). That may stand in both branches of an if. One of the instructions, the host,
// is executed for all; the others' lanes are its guests: their operands are put into its registers, and these get their
// values back.
#include "meeting.h"

#include <string.h>

#include "../check/hazard.h"
#include "../warp/warp.h"

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
