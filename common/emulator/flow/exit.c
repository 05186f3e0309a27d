// Threads exit: what they leave behind is checked, and threads that waited for them go on. PTX ISA 9.7.12.
#include "exit.h"

#include "../async/bulk.h"
#include "../check/hazard.h"
#include "../tensor/setmaxnreg.h"
#include "../tensor/warpgroup.h"
#include "../warp/warp.h"
#include "barrier.h"
#include "cluster.h"

// Lanes that wait at an instruction for some that now exit go on without them. Where the instruction has a member mask PTX
// promises that (PTX ISA 9.7.9.6, "non-exited threads"). Where it is .aligned, all lanes of the warp were to execute it.
static void check_waiting(Warp *warp, Mask exiting) {
  const Inst *code = warp_launch(warp)->program->code;
  for (int i = 0; i < warp->group_count; i++) {
    Group *group = &warp->groups[i];
    if (group->state != GROUP_CONVERGING) continue;
    const Inst *inst = &code[group->pc];
    group->state = GROUP_READY;
    if (inst->converge != CONVERGE_ALIGNED) continue;
    hazard_report_graded(HAZARD_FORMAL, warp, inst, __builtin_ctz(group->mask), HAZARD_DIVERGENT_ALIGNED, 0, 0,
                         "lanes 0x%08x execute it, lanes 0x%08x of the same warp exit without it. An H200 goes on "
                         "without lanes that have exited (tests/rules)",
                         group->mask, exiting);
  }
}

void warp_exit(Warp *warp, Mask mask) {
  if (warp->block->cluster->foresight) {
    warp_leave(warp, mask);
    warp->live &= ~mask;
    return;
  }
  bulk_check_exit(warp, mask);
  cluster_check_exit(warp, mask);
  warp_leave(warp, mask);
  warp->live &= ~mask;
  warp->exit = &warp_launch(warp)->program->code[warp->pc - 1];
  for (Mask rest = mask; rest; rest &= rest - 1) warp->left[__builtin_ctz(rest)] = warp->block->phases;
  if (!warp->live) setmaxnreg_check_exit(warp);
  if (!warp->live) wgmma_check_exit(warp);
  check_waiting(warp, mask);
  warp->block->live_threads -= __builtin_popcount(mask);
  warp->block->cluster->progress++;
  barriers_after_exit(warp->block);
  if (!warp->block->live_threads) barriers_check_end(warp->block);
  cluster_barrier_after_exit(warp->block->cluster);
}
