// Groups of lanes: see warp.h.
#include "warp.h"

#include "machine.h"

void warp_start(Warp *warp, uint32_t pc) {
  warp->groups[0] = (Group){.mask = warp->live, .pc = pc, .state = GROUP_READY};
  warp->group_count = warp->live ? 1 : 0;
}

static Group *add_group(Warp *warp, const Group *like, Mask mask, uint32_t pc, GroupState state) {
  Group *group = &warp->groups[warp->group_count++];
  *group = *like;
  group->mask = mask;
  group->pc = pc;
  group->state = state;
  return group;
}

bool warp_ready(const Warp *warp) {
  for (int i = 0; i < warp->group_count; i++)
    if (warp->groups[i].state == GROUP_READY) return true;
  return false;
}

void warp_idle(Warp *warp) {
  int ready = 0;
  for (int i = 0; i < warp->group_count; i++) ready += warp->groups[i].state == GROUP_READY;
  warp->yield = warp->regroup = true;
  if (ready == 1) warp->idle_since = warp->block->cluster->progress + 1;
}

void warp_poll(Warp *warp, const Inst *inst, uint64_t address, uint64_t found) {
  uint64_t progress = warp->block->cluster->progress;
  Poll *poll = &warp->polls[((uintptr_t)inst / sizeof *inst) % POLLS];
  bool in_vain = poll->inst == inst && poll->found == found && poll->progress == progress;
  *poll = (Poll){inst, found, progress, address};
  if (in_vain) warp_idle(warp);
}

void warp_poll_global(Warp *warp, const Inst *inst, uint64_t address, uint64_t found) {
  const Poll *poll = &warp->polls[((uintptr_t)inst / sizeof *inst) % POLLS];
  bool news = poll->inst != inst || poll->found != found;
  warp_poll(warp, inst, address, found);
  if (!news || !warp_launch(warp)->waiting) return;
  warp->block->cluster->has_news = true;
  warp->yield = warp->regroup = true;
}

void warp_jump(Warp *warp, Mask mask, uint32_t pc) {
  Group *group = &warp->groups[warp->current];
  if (mask == group->mask) {
    warp->pc = pc;
  } else {
    group->mask &= ~mask;
    add_group(warp, group, mask, pc, GROUP_READY);
  }
  warp->regroup |= warp->group_count > 1;
}

void warp_leave(Warp *warp, Mask mask) {
  warp->groups[warp->current].mask &= ~mask;
  warp->regroup = true;
}

Group *warp_hold(Warp *warp, Mask mask, GroupState state) {
  const Group *group = &warp->groups[warp->current];
  warp_leave(warp, mask);
  return add_group(warp, group, mask, warp->pc - 1, state);
}

void warp_wait(Warp *warp, Mask mask, int barrier) { warp_hold(warp, mask, GROUP_BARRIER)->barrier = barrier; }

void warp_release(Warp *warp, int barrier) {
  for (int i = 0; i < warp->group_count; i++) {
    Group *group = &warp->groups[i];
    if (group->state != GROUP_BARRIER || group->barrier != barrier) continue;
    group->state = GROUP_READY;
    group->pc++;
  }
  warp->regroup = true;
}

void warp_resume(Warp *warp, int group, Mask lanes) {
  Group *held = &warp->groups[group];
  if (held->mask == lanes) {
    held->pc++;
    held->state = GROUP_READY;
  } else {
    held->mask &= ~lanes;
    add_group(warp, held, lanes, held->pc + 1, GROUP_READY);
  }
  warp->regroup = true;
}

InstCounts *warp_counts(const Warp *warp, const Inst *inst) {
  return &warp->block->cluster->worker->counts[inst - warp_launch(warp)->program->code];
}

void counts_add_meanwhile(InstCounts *counts, const Cluster *cluster, unsigned kinds, int number) {
  for (int i = 0; i < MEANWHILE_KINDS; i++)
    if (kinds >> i & 1) counts->under[i] += (uint64_t)number;
  counts->pending_loads += (uint64_t)(number * cluster->loads);
}

// An instruction counts when it is done, not each time that it looks.
void warp_retry(Warp *warp, const Inst *inst, Mask mask) {
  InstCounts *counts = warp_counts(warp, inst);
  unsigned lanes = (unsigned)__builtin_popcount(mask);
  counts->warps--;
  counts->threads -= lanes;
  counts->enabled -= lanes;
  const Cluster *cluster = warp->block->cluster;
  counts_add_meanwhile(counts, cluster, warp_meanwhile(warp, cluster), -1);
  warp_jump(warp, mask, warp->pc - 1);
  warp_idle(warp);
}

// ---- who is where ----

uint64_t random_next(uint64_t *state) {  // splitmix64
  uint64_t x = *state += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

uint64_t cluster_random(Cluster *cluster) { return random_next(&cluster->random); }

// Clusters and the blocks in them are numbered x first.
void cluster_block_index(const Launch *launch, uint32_t cluster, int rank, unsigned index[3]) {
  unsigned left = cluster, in = (unsigned)rank;
  for (int axis = 0; axis < 3; axis++) {
    unsigned clusters = launch->grid[axis] / launch->cluster[axis];
    index[axis] = left % clusters * launch->cluster[axis] + in % launch->cluster[axis];
    left /= clusters;
    in /= launch->cluster[axis];
  }
}
