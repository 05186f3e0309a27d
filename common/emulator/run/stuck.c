// Deadlocks: finds the cause among all that wait, and names it. See stuck.h.
#include "stuck.h"

#include <stdio.h>

#include "../async/mbarrier_object.h"
#include "../check/hazard.h"
#include "../check/waits.h"
#include "../tensor/setmaxnreg.h"
#include "../tensor/warpgroup.h"
#include "../warp/warp.h"

// Whether two groups of one block wait for the same at the same place.
static bool wait_alike(const Group *a, const Group *b) {
  return a->mask == b->mask && a->pc == b->pc && a->state == b->state &&
         (a->state != GROUP_BARRIER || a->barrier == b->barrier);
}

// The warps of a block in which lanes wait as this group does, a bit each.
static uint32_t warps_alike(const Block *block, const Group *group) {
  uint32_t warps = 0;
  for (int w = 0; w < block->warp_count; w++)
    for (int g = 0; g < block->warps[w].group_count; g++)
      if (wait_alike(&block->warps[w].groups[g], group)) warps |= 1u << w;
  return warps;
}

static void describe_group(WaitList *list, const Warp *warp, const Group *group) {
  const Block *block = warp->block;
  uint32_t warps = warps_alike(block, group);
  if (warps & ((1u << warp->index) - 1)) return;  // described with the first of them
  const Inst *inst = &warp_launch(warp)->program->code[group->pc];
  if (group->state != GROUP_BARRIER) {
    waits_add(list, warp, warps, group->mask, inst, "%s", "");
  } else if (group->barrier == CLUSTER_BARRIER) {
    waits_add(list, warp, warps, group->mask, inst, " (the cluster's barrier)");
  } else {
    const Barrier *barrier = &block->barriers[group->barrier];
    waits_add(list, warp, warps, group->mask, inst, " (barrier %d: %d of %d threads)", group->barrier, barrier->arrived,
              barrier->expected ? barrier->expected : block->live_threads);
  }
}

// Where the warps of a cluster wait, for the detail of a deadlock.
static const char *describe_waits(const Cluster *cluster, WaitList *list) {
  *list = (WaitList){.used = 0};
  for (int b = 0; b < cluster->block_count; b++)
    for (int w = 0; w < cluster->blocks[b].warp_count; w++) {
      const Warp *warp = &cluster->blocks[b].warps[w];
      for (int g = 0; g < warp->group_count; g++) describe_group(list, warp, &warp->groups[g]);
    }
  return waits_text(list, cluster);
}

// The first group that waits in a state, and its warp; NULL when none does.
static const Group *find_group(const Cluster *cluster, GroupState state, const Warp **warp) {
  for (int b = 0; b < cluster->block_count; b++)
    for (int w = 0; w < cluster->blocks[b].warp_count; w++) {
      *warp = &cluster->blocks[b].warps[w];
      for (int g = 0; g < (*warp)->group_count; g++)
        if ((*warp)->groups[g].state == state) return &(*warp)->groups[g];
    }
  return NULL;
}

// Lanes that wait at an .aligned or .sync instruction for others of their warp, which do not come: that is the cause of
// whatever else waits. But where others poll, lanes at an .aligned barrier may just wait for the end of that, and only those
// that named their partners do not. False when there are none.
static bool report_divergence(Cluster *cluster, bool others_poll) {
  const Warp *warp;
  const Group *group = find_group(cluster, GROUP_CONVERGING, &warp);
  if (!group || (others_poll && cluster->launch->program->code[group->pc].converge == CONVERGE_ALIGNED)) return false;
  WaitList waits;
  hazard_stop(warp, &cluster->launch->program->code[group->pc], __builtin_ctz(group->mask), HAZARD_DIVERGENT_ALIGNED, 0,
              0, "lanes 0x%08x wait for the others of their warp, which wait elsewhere: %s", group->mask,
              describe_waits(cluster, &waits));
  return true;
}

void report_stuck(Cluster *cluster) {
  const Warp *stuck;
  if (report_divergence(cluster, false) || mbarrier_explain_deadlock(cluster)) return;
  const Group *at = find_group(cluster, GROUP_BARRIER, &stuck);
  const Inst *inst = &cluster->launch->program->code[at->pc];
  WaitList waits;
  hazard_stop(stuck, inst, __builtin_ctz(at->mask), HAZARD_DEADLOCK, 0, 0, "no thread can go on: %s",
              describe_waits(cluster, &waits));
}

// The first warp that can run, which therefore polls; NULL when none can.
static const Warp *first_ready(const Cluster *cluster) {
  for (int b = 0; b < cluster->block_count; b++)
    for (int w = 0; w < cluster->blocks[b].warp_count; w++)
      if (warp_ready(&cluster->blocks[b].warps[w])) return &cluster->blocks[b].warps[w];
  return NULL;
}

void report_spinning(Cluster *cluster, uint64_t not_started) {
  // Registers first: warps that got theirs wait, in wgmma or at an mbarrier, for those of their warpgroup that did not.
  if (report_divergence(cluster, true) || setmaxnreg_explain_deadlock(cluster) || wgmma_explain_deadlock(cluster) ||
      mbarrier_explain_deadlock(cluster))
    return;
  const Warp *warp = first_ready(cluster);
  const Group *group = &warp->groups[0];
  const Inst *inst = &cluster->launch->program->code[group->pc];
  char room[120] = "";
  WaitList waits;
  if (not_started)
    snprintf(room, sizeof room, " (%llu blocks have not started: an H100 has no room for them until others end)",
             (unsigned long long)not_started);
  hazard_stop(warp, inst, __builtin_ctz(group->mask), HAZARD_DEADLOCK, 0, 0,
              "every thread polls memory that no thread will write%s: %s", room, describe_waits(cluster, &waits));
}
