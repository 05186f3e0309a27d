// Words of a report on threads that wait: see waits.h.
#include "waits.h"

#include <stdarg.h>
#include <stdio.h>

#include "source_line.h"
#include "../host/host_memory.h"

void text_put(WaitText *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = sizeof text->text - text->used;
  size_t length = (size_t)vsnprintf(text->text + text->used, left, format, arguments);
  text->used += length < left ? length : left - 1;
  va_end(arguments);
}

void text_warps(WaitText *text, uint32_t warps) {
  text_put(text, "warp%s ", warps & (warps - 1) ? "s" : "");
  for (bool more = false; warps; more = true) {
    int first = __builtin_ctz(warps), last = first;
    while (last < LANES - 1 && warps >> (last + 1) & 1) last++;
    text_put(text, "%s%d", more ? ", " : "", first);
    if (last > first) text_put(text, " to %d", last);
    warps &= last == LANES - 1 ? 0 : ~0u << (last + 1);
  }
}

void text_line(WaitText *text, const Launch *launch, const Inst *inst) {
  enum { MOST_CALLS = 2 };
  int lines[MOST_CALLS + 1], count = source_lines(launch->program->module, inst->source, lines, MOST_CALLS + 1);
  if (!count) text_put(text, "PTX line %d", inst->source->line);
  for (int i = 0; i < count; i++)
    text_put(text, "%s%d", i == 0 ? "line " : i == 1 ? ", called at " : " from ", lines[i]);
}

// ---- sets of warps ----

void set_add(WarpSet *set, const Warp *warp) { set->warps[warp->block->rank] |= 1u << warp->index; }

bool set_has(const WarpSet *set, const Warp *warp) { return set->warps[warp->block->rank] >> warp->index & 1; }

int set_count(const WarpSet *set) {
  int count = 0;
  for (int b = 0; b < MOST_BLOCKS; b++) count += __builtin_popcount(set->warps[b]);
  return count;
}

bool set_is_empty(const WarpSet *set) { return set_count(set) == 0; }

WarpSet set_without(const WarpSet *a, const WarpSet *b) {
  WarpSet set;
  for (int i = 0; i < MOST_BLOCKS; i++) set.warps[i] = a->warps[i] & ~b->warps[i];
  return set;
}

bool set_contains(const WarpSet *a, const WarpSet *b) {
  for (int block = 0; block < MOST_BLOCKS; block++)
    if (b->warps[block] & ~a->warps[block]) return false;
  return true;
}

void text_set(WaitText *text, const Cluster *cluster, const WarpSet *set) {
  bool more = false;
  for (int b = 0; b < cluster->block_count; b++) {
    if (!set->warps[b]) continue;
    if (more) text_put(text, " and ");
    if (cluster->block_count > 1) text_put(text, "block %d's ", b);
    text_warps(text, set->warps[b]);
    more = true;
  }
}

// ---- arrivals at barriers and mbarriers ----

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
