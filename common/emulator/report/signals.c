// Arrivals at barriers and mbarriers: see signals.h.
#include "signals.h"

#include "../host/host_memory.h"

Use *use_of(Use **uses, const Warp *warp) {
  if (!*uses) *uses = host_allocate((size_t)cluster_warps(warp->block->cluster), sizeof **uses);
  return &(*uses)[warp_number(warp)];
}

void use_arrive(Use **uses, const Warp *warp, const Inst *inst, uint32_t phase) {
  Use *use = use_of(uses, warp);
  use->arrival = inst;
  use->phase = phase;
  use->arrivals++;
}

void use_pass(Use **uses, const Warp *warp, const Inst *inst, Mask lanes, uint32_t over) {
  Use *use = use_of(uses, warp);
  if (use->over != over) use->passed = 0;
  bool early = over == 0 || use->passed & lanes;
  if (early && !use->early) {
    use->early = inst;
    use->early_over = over;
  }
  use->passed |= lanes;
  use->over = over;
}

bool foresee(const Warp *warp, const Inst *inst, Target target, bool is_copy) {
  const Cluster *cluster = warp->block->cluster;
  Foresight *foresight = cluster->foresight;
  if (!foresight) return false;
  uint32_t pc = (uint32_t)(inst - cluster->launch->program->code);
  for (int i = 0; i < foresight->count; i++) {
    const Signal *known = &foresight->items[i];
    if (known->target == target && known->warp == warp && known->is_copy == is_copy) return true;
  }
  foresight->items = host_grow(foresight->items, foresight->count, &foresight->capacity, sizeof *foresight->items);
  foresight->items[foresight->count++] = (Signal){target, warp, pc, is_copy};
  return true;
}
