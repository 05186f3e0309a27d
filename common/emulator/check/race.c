// Races: judges each access by those that shadow memory remembers, and remembers it. See race.h.
#include "race.h"

#include <string.h>

#include "actor.h"
#include "last_reads.h"
#include "overlap.h"
#include "read_sets.h"

static void report(const Actor *actor, CheckFinding finding) {
  finding.warp = actor->warp;
  finding.lane = actor->lane;
  finding.actor = actor;
  actor->cluster->launch->report(&finding);
}

// Of an access by the actor to bytes that the other access has touched.
static void report_other(FindingKind kind, const Actor *actor, const Span *span, Epoch other) {
  report(actor, (CheckFinding){.kind = kind, .span = span, .other = other});
}

static void report_race(const Actor *actor, const Span *span, Epoch other, bool writes, bool other_writes) {
  report(actor,
         (CheckFinding){FOUND_RACE, .span = span, .other = other, .writes = writes, .other_writes = other_writes});
}

static void report_guess(const Actor *actor, const Span *span, Epoch other, bool writes) {
  report(actor, (CheckFinding){FOUND_GUESS, .span = span, .other = other, .writes = writes, .other_writes = !writes});
}

static Epoch epoch_at(const CheckLaunch *launch, uint32_t cluster, uint32_t pc, uint32_t thread, uint32_t clock) {
  const EpochLayout *layout = &launch->epochs;
  return EPOCH_KERNEL | (uint64_t)cluster << layout->cluster_shift | (uint64_t)pc << layout->pc_shift |
         (uint64_t)clock << layout->clock_shift | thread;
}

// ---- reads ----

// False after a report.
static bool check_read(const Actor *actor, const Span *span, Epoch write) {
  bool formal =
      write != EPOCH_NONE && actor->own && !actor_is_ordered(actor, write) && actor_is_ordered(actor->own, write);
  const Actor *judge = formal ? actor->own : actor;
  if (write == EPOCH_NONE)
    report_other(FOUND_UNWRITTEN, actor, span, EPOCH_NONE);
  else if (!actor_is_ordered(judge, write))
    report_race(actor, span, write, false, true);
  else if (actor_may_not_see(judge, write))
    report_other(FOUND_UNSEEN, actor, span, write);
  else if (formal)
    report_other(FOUND_OWN_PART, actor, span, write);
  else if (actor->site.first_guess && !actor_follows(actor, write))
    report_guess(actor, span, write, false);
  else {
    if (actor->strength != WEAK) actor_observe(actor, span->region, span->offset, span->size, write);
    return true;
  }
  return false;
}

void race_read_by(const Actor *actor, Region *region, uint64_t offset, int size) {
  uint32_t launch = actor->cluster->launch->number;
  if (actor->cluster->launch->overlaps) overlap_check(actor, region, offset, size, false);
  for (int run; size > 0; size -= run, offset += (uint64_t)run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset, size, launch, &cell);
    check_read(actor, &(Span){region, offset, run}, cell.write);
    last_reads_make_room(actor->cluster, &cell);
    Epoch read = last_reads_with(actor, 1u << actor->thread % LANES, cell.read);
    last_reads_remember(actor->cluster, region, offset, run, &cell, read);
  }
}

// A cell's reads with those of the lanes of mask: lanes of one clock that know the same, nearly always all, are one
// entry.
static Epoch reads_with_lanes(CheckWarp *warp, uint32_t pc, Mask mask, Epoch read, Strength strength) {
  while (mask) {
    int first = __builtin_ctz(mask);
    Mask same = 0;
    for (Mask rest = mask; rest; rest &= rest - 1)
      if (warp->clocks[__builtin_ctz(rest)].own == warp->clocks[first].own &&
          warp->clocks[__builtin_ctz(rest)].known == warp->clocks[first].known)
        same |= rest & -rest;
    Actor actor = actor_of_lane(warp, pc, first, strength);
    read = last_reads_with(&actor, same, read);
    mask &= ~same;
  }
  return read;
}

void race_read(CheckWarp *warp, uint32_t pc, Mask mask, Region *region, uint64_t offset, int size, Strength strength) {
  Actor actor = actor_of_lane(warp, pc, __builtin_ctz(mask), strength);
  if ((mask & (mask - 1)) == 0) {
    race_read_by(&actor, region, offset, size);
    return;
  }
  uint32_t launch = warp->cluster->launch->number;
  for (Mask rest = warp->cluster->launch->overlaps ? mask : 0; rest; rest &= rest - 1) {
    actor_set_lane(&actor, __builtin_ctz(rest));
    overlap_check(&actor, region, offset, size, false);
  }
  for (int run; size > 0; size -= run, offset += (uint64_t)run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset, size, launch, &cell);
    for (Mask rest = mask; rest; rest &= rest - 1) {
      actor_set_lane(&actor, __builtin_ctz(rest));
      if (!check_read(&actor, &(Span){region, offset, run}, cell.write) || !(cell.write & EPOCH_KERNEL)) break;
    }
    last_reads_make_room(actor.cluster, &cell);
    Epoch read = reads_with_lanes(warp, pc, mask, cell.read, strength);
    last_reads_remember(actor.cluster, region, offset, run, &cell, read);
  }
}

// ---- writes ----

// A read that does not come before the actor's write; EPOCH_NONE when all do.
static Epoch unordered_read(const Actor *actor, Epoch read) {
  const CheckCluster *cluster = actor->cluster;
  const EpochLayout *layout = &cluster->launch->epochs;
  if (!(read & EPOCH_SET) || epoch_cluster(layout, read) != cluster->id)
    return actor_is_ordered(actor, read) ? EPOCH_NONE : read;
  const ReadNode *node;
  for (uint32_t n = epoch_set(layout, read); n; n = node->parent) {
    node = read_sets_node(cluster->read_sets, n);
    Mask mask = turned(node->mask, epoch_turn(read));
    Strength strength = (Strength)node->strength;
    uint32_t warp = node->warp * (uint32_t)LANES;
    if (actor->strength != WEAK && actor_same_size(actor, node->pc) &&
        actor_both_strong(actor, strength, true, warp + (uint32_t)__builtin_ctz(mask), node->clock))
      continue;
    for (Mask rest = mask; rest; rest &= rest - 1) {
      uint32_t thread = warp + (uint32_t)__builtin_ctz(rest);
      if (!actor_knows(actor, thread, node->clock))
        return epoch_at(cluster->launch, cluster->id, node->pc, thread, node->clock) | (uint64_t)strength
                                                                                           << EPOCH_STRENGTH_SHIFT;
    }
  }
  return EPOCH_NONE;
}

// A first guess (memory/passes.h) among the reads that needs no order with the actor's strong write, and has none.
static Epoch unordered_guess(const Actor *actor, Epoch read) {
  const CheckCluster *cluster = actor->cluster;
  const Site *sites = cluster->launch->sites;
  const EpochLayout *layout = actor->layout;
  if (!cluster->launch->has_first_guesses || !(read & EPOCH_KERNEL)) return EPOCH_NONE;
  if (!(read & EPOCH_SET) || epoch_cluster(layout, read) != cluster->id)
    return sites[epoch_pc(layout, read)].first_guess && !actor_follows(actor, read) ? read : EPOCH_NONE;
  const ReadNode *node;
  for (uint32_t n = epoch_set(layout, read); n; n = node->parent) {
    node = read_sets_node(cluster->read_sets, n);
    Mask lanes = sites[node->pc].first_guess ? turned(node->mask, epoch_turn(read)) : 0;
    for (; lanes; lanes &= lanes - 1) {
      uint32_t thread = node->warp * (uint32_t)LANES + (uint32_t)__builtin_ctz(lanes);
      if (!actor_knows(actor, thread, node->clock))
        return epoch_at(cluster->launch, cluster->id, node->pc, thread, node->clock);
    }
  }
  return EPOCH_NONE;
}

// Whether a load of the thread at that clock may be under way, as far as the actor knows, which comes after it.
static bool in_flight(const Actor *actor, uint32_t pc, uint32_t thread, uint32_t clock) {
  const Clocks *known = actor->known;
  if (thread >= (uint32_t)actor->cluster->lane_count || !actor_site(actor, pc)->late_load) return false;
  return !known || (known->clock[CLOCK_LOADED * known->count + (int)thread] < clock &&
                    known->clock[CLOCK_VISIBLE * known->count + (int)thread] < clock);
}

// A load of the remembered reads that may be under way; EPOCH_NONE when all are over.
static Epoch load_in_flight(const Actor *actor, Epoch read) {
  const CheckCluster *cluster = actor->cluster;
  const EpochLayout *layout = actor->layout;
  if (!actor->async || !cluster->launch->has_late_loads || !(read & EPOCH_KERNEL)) return EPOCH_NONE;
  if (epoch_cluster(layout, read) != cluster->id) return EPOCH_NONE;
  if (!(read & EPOCH_SET))
    return in_flight(actor, epoch_pc(layout, read), epoch_thread(layout, read), epoch_clock(layout, read)) ? read
                                                                                                           : EPOCH_NONE;
  const ReadNode *node;
  for (uint32_t n = epoch_set(layout, read); n; n = node->parent) {
    node = read_sets_node(cluster->read_sets, n);
    for (Mask rest = turned(node->mask, epoch_turn(read)); rest; rest &= rest - 1) {
      uint32_t thread = node->warp * (uint32_t)LANES + (uint32_t)__builtin_ctz(rest);
      if (in_flight(actor, node->pc, thread, node->clock))
        return epoch_at(cluster->launch, cluster->id, node->pc, thread, node->clock);
    }
  }
  return EPOCH_NONE;
}

// Whether the remembered write is another lane's of this same instruction, and wrote the same value.
static bool same_store(const Actor *actor, const Span *span, Epoch write, const uint8_t *value) {
  const EpochLayout *layout = actor->layout;
  uint32_t thread = epoch_thread(layout, write);
  return value && epoch_pc(layout, write) == actor_pc(actor) && epoch_cluster(layout, write) == actor->cluster->id &&
         thread / LANES == actor->thread / LANES &&
         actor->warp->clocks[thread % LANES].own == epoch_clock(layout, write) &&
         !memcmp(span->region->data + span->offset, value, (size_t)span->size);
}

// Whether the actor stores the bytes that another thread's plain store has put there: no order of the two makes a
// difference.
static bool stores_equal(const Actor *actor, const Span *span, Epoch write, const uint8_t *value) {
  const CheckCluster *cluster = actor->cluster;
  const Site *other = actor_site(actor, epoch_pc(actor->layout, write));
  bool near = epoch_cluster(actor->layout, write) == cluster->id;
  if (near && epoch_thread(actor->layout, write) >= (uint32_t)cluster->lane_count) return false;
  return value && epoch_strength(write) == WEAK && actor->site.stores && other->stores &&
         !memcmp(span->region->data + span->offset, value, (size_t)span->size);
}

static Epoch any_unordered_read(const Actor *actor, const Cell *cell) {
  Epoch read = unordered_read(actor, cell->read);
  return read != EPOCH_NONE ? read : unordered_read(actor, cell->foreign);
}

// Whether all that was done to the bytes of shared memory comes before the actor if an arrival of too narrow a scope
// shows what has ended: operations that somebody has waited for, and loads if the actor is slow. Of stores it shows
// nothing.
static bool ended(const Actor *actor, const Region *region, const Cell *cell, bool is_slow) {
  Actor lenient = *actor;
  lenient.lenient = cell->write & EPOCH_ASYNC ? LENIENT_TO_OPERATIONS : STRICT;
  if (region->kind != REGION_SHARED || !actor_is_ordered(&lenient, cell->write)) return false;
  lenient.lenient = is_slow ? LENIENT : LENIENT_TO_OPERATIONS;
  return any_unordered_read(&lenient, cell) == EPOCH_NONE;
}

static void check_guesses(const Actor *actor, const Span *span, const Cell *cell) {
  Epoch guess = unordered_guess(actor, cell->read);
  if (guess == EPOCH_NONE) guess = unordered_guess(actor, cell->foreign);
  if (guess != EPOCH_NONE) report_guess(actor, span, guess, true);
}

static void check_write(const Actor *actor, const Span *span, const Cell *cell, const uint8_t *value) {
  bool after_write =
      actor_is_ordered(actor, cell->write) || actor_has_observed(actor, span->region, span->offset, cell->write);
  if (!after_write && same_store(actor, span, cell->write, value)) return;
  if (!after_write && stores_equal(actor, span, cell->write, value)) {
    report_other(FOUND_EQUAL, actor, span, cell->write);
    after_write = true;
  }
  Epoch other = after_write ? any_unordered_read(actor, cell) : cell->write;
  if (other == EPOCH_NONE) {
    Epoch late = load_in_flight(actor, cell->read);
    if (actor_may_not_see(actor, cell->write)) report_other(FOUND_UNSEEN, actor, span, cell->write);
    if (late != EPOCH_NONE) report_other(FOUND_LATE_LOAD, actor, span, late);
    if (actor->strength != WEAK) check_guesses(actor, span, cell);
  } else if (ended(actor, span->region, cell, actor->async)) {
    Epoch read = any_unordered_read(actor, cell);
    report_other(FOUND_NARROW, actor, span, read != EPOCH_NONE ? read : other);
  } else {
    report_race(actor, span, other, true, !after_write);
  }
}

void race_write_by(const Actor *actor, Region *region, uint64_t offset, int size, const void *bytes) {
  const uint8_t *value = bytes;
  uint32_t launch = actor->cluster->launch->number;
  if (actor->cluster->launch->overlaps) overlap_check(actor, region, offset, size, true);
  for (int done = 0, run; done < size; done += run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset + (uint64_t)done, size - done, launch, &cell);
    const Span span = {region, offset + (uint64_t)done, run};
    check_write(actor, &span, &cell, value ? value + done : NULL);
  }
  shadow_write(&region->shadow, offset, size, launch, actor_epoch(actor));
}

void race_atomic(CheckWarp *warp, uint32_t pc, int lane, Region *region, uint64_t offset, int size, Strength strength) {
  Actor actor = actor_of_lane(warp, pc, lane, strength);
  for (int done = 0, run; done < size; done += run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset + (uint64_t)done, size - done, warp->cluster->launch->number, &cell);
    if (cell.write != EPOCH_NONE) continue;
    report_other(FOUND_UNWRITTEN, &actor, &(Span){region, offset, size}, EPOCH_NONE);
    break;
  }
  race_write_by(&actor, region, offset, size, NULL);
}

// ---- for others ----

void race_last_writes(const Actor *actor, const Region *region, uint64_t offset, int size, LastWrites *writes) {
  for (int done = 0, run; done < size; done += run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset + (uint64_t)done, size - done, actor->cluster->launch->number, &cell);
    writes->hash = (writes->hash ^ cell.write ^ (uint64_t)run << 32) * 0x9e3779b97f4a7c15ull;
    writes->ordered &= actor_is_ordered(actor, cell.write);
    if (cell.write & EPOCH_KERNEL) writes->by_kernel = cell.write;
  }
}

// ---- the end of a block ----

static bool is_of_other_block(const Actor *actor, Epoch epoch) {
  uint32_t thread = epoch_thread(actor->layout, epoch), per_block = threads_of_block(actor->cluster);
  return epoch != EPOCH_NONE && thread < (uint32_t)actor->cluster->lane_count &&
         thread / per_block != (uint32_t)actor->warp->rank;
}

void race_end_block(const Actor *actor, const Region *shared) {
  bool is_told = false;  // the formal one
  for (uint64_t offset = 0, run; offset < shared->size; offset += run) {
    Cell cell;
    int size = (int)(shared->size - offset);
    run = (uint64_t)shadow_run(&shared->shadow, offset, size, actor->cluster->launch->number, &cell);
    bool after_write = actor_is_ordered(actor, cell.write) || actor_has_observed(actor, shared, offset, cell.write);
    Epoch other = after_write ? unordered_read(actor, cell.read) : cell.write;
    if (!is_of_other_block(actor, other)) continue;
    bool formal = ended(actor, shared, &cell, true);
    const Span span = {shared, offset, (int)run};
    if (!formal || !is_told)
      report(actor, (CheckFinding){FOUND_BLOCK_END, .span = &span, .other = other, .formal = formal});
    if (!formal) return;
    is_told = true;
  }
}
