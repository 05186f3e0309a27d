// How synchronisation passes on what threads know. See order.h.
#include "order.h"

#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "../host/host_memory.h"
#include "clocks.h"

// ---- releases and acquires ----

// Lanes mostly differ never, or one of them does from all the others: two groups are remembered.
Mask race_alike(CheckWarp *warp, int lane) {
  for (int i = 0; i < 2; i++)
    if (warp->alike[i] >> lane & 1) return warp->alike[i];
  const LaneClocks *clocks = warp->clocks;
  Mask alike = 0;
  for (int i = 0; i < LANES; i++)
    alike |= (Mask)(clocks[i].own == clocks[lane].own && clocks[i].known == clocks[lane].known) << i;
  warp->alike[warp->alike[0] != 0] = alike;
  return alike;
}

// Advances a thread's clock: accesses from here on are not covered by what it has just released.
static void advance(CheckWarp *warp, int lane) {
  LaneClocks *clocks = &warp->clocks[lane];
  forget_alike(warp);
  if (clocks->own++ < warp->cluster->launch->epochs.clock_mask) return;
  clocks->own = 1;
  warp->cluster->launch->report(&(CheckFinding){.kind = FOUND_CLOCK_LIMIT, .warp = warp, .lane = lane});
}

// Adds what the lane's fences have covered of its own accesses.
static void add_covered(Clocks *into, const CheckWarp *warp, int lane) {
  if (!warp->clocks[lane].covered[CLOCK_KNOWN]) return;  // none yet
  for (int p = 0; p < into->planes; p++) {
    uint32_t *clock = &clocks_plane(into, (ClockPlane)p)[thread_of_lane(warp, lane)];
    *clock = later_clock(*clock, warp->clocks[lane].covered[p]);
  }
}

void race_advance(CheckWarp *warp, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) advance(warp, __builtin_ctz(rest));
}

// Adds up to where the loads of the warp are over. A lane shows that of all: what one has waited for is over for all.
static void add_loaded(Clocks *into, const CheckWarp *warp) {
  if (!warp->cluster->launch->has_late_loads) return;
  uint32_t *loaded = &clocks_plane(into, CLOCK_LOADED)[thread_of_lane(warp, 0)];
  for (int lane = 0; lane < LANES; lane++) loaded[lane] = later_clock(loaded[lane], flights_ended(warp, lane));
}

static void add_unacquired(Clocks *into, const CheckWarp *warp, Mask mask) {
  for (Mask rest = mask & warp->unacquired; rest; rest &= rest - 1)
    for (Strength s = STRONG_CTA; s < SCOPES; s++)
      clocks_add_observed(into, s, warp->clocks[__builtin_ctz(rest)].pending[s]);
}

void race_release(CheckWarp *warp, Mask mask, Clocks **joined) {
  if (!warp->cluster->launch->on) return;
  clocks_make_own(warp->cluster, joined);
  const Clocks *merged = NULL;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    LaneClocks *clocks = &warp->clocks[lane];
    if (clocks->known && clocks->known != merged) clocks_merge(*joined, clocks->known);
    merged = clocks->known;
  }
  add_loaded(*joined, warp);
  add_unacquired(*joined, warp, mask);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    add_covered(*joined, warp, lane);
    (*joined)->clock[thread_of_lane(warp, lane)] = warp->clocks[lane].own;
    advance(warp, lane);
  }
}

void race_acquire(CheckWarp *warp, Mask mask, Clocks *joined) {
  if (!joined) return;
  forget_alike(warp);
  for (Mask rest = mask, same; rest; rest &= ~same) {
    Clocks *before = warp->clocks[__builtin_ctz(rest)].known;
    Clocks *after = clocks_joined(warp->cluster, before, joined);
    same = 0;
    for (Mask lanes = rest; lanes; lanes &= lanes - 1) {
      LaneClocks *clocks = &warp->clocks[__builtin_ctz(lanes)];
      if (clocks->known != before) continue;
      clocks->known = after;
      same |= lanes & -lanes;
    }
    clocks_retain_times(after, __builtin_popcount(same) - 1);
    clocks_release_times(before, __builtin_popcount(same));
  }
}

bool race_knows(const CheckWarp *warp, Mask mask, const Clocks *joined) {
  const Clocks *last = NULL;
  uint32_t self = thread_of_lane(warp, 0) / LANES;
  for (Mask rest = mask; joined && rest; rest &= rest - 1) {
    const Clocks *known = warp->clocks[__builtin_ctz(rest)].known;
    if (known && (known == last || known == joined)) continue;
    last = known;
    for (int i = 0; i < joined->count; i++)
      if (joined->clock[i] > (known ? known->clock[i] : 0) && (uint32_t)i / LANES != self) return false;
  }
  return true;
}

void race_warp_sync(CheckWarp *warp, Mask mask) {
  Clocks *joined = NULL;
  race_release(warp, mask, &joined);
  race_acquire(warp, mask, joined);
  clocks_release(joined);
}

// What one thread knows, itself included.
Clocks *clocks_snapshot(CheckWarp *warp, int lane) {
  Clocks *clocks = NULL;
  race_release(warp, 1u << lane, &clocks);
  return clocks;
}

// Lanes that know the same go on sharing it after a fence: what each has done itself stands beside it.
static void cover(CheckWarp *warp, Mask mask, ClockPlane which) {
  const Clocks *before = NULL;
  Clocks *after = NULL;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    LaneClocks *clocks = &warp->clocks[__builtin_ctz(rest)];
    clocks->covered[CLOCK_KNOWN] = clocks->covered[CLOCK_LOADED] = clocks->covered[which] = clocks->own;
    if (!clocks->known || clocks_covered(clocks->known, which)) continue;
    if (clocks->known != before) {
      clocks_release(after);
      before = clocks->known;
      after = clocks_new(warp->cluster);
      clocks_merge(after, clocks->known);
      clocks_cover(after, which);
    }
    clocks_retain(after);
    clocks_replace(&clocks->known, after);
  }
  clocks_release(after);
}

// The lane's own strong loads.
static void acquire_pending(CheckWarp *warp, int lane, Strength scope) {
  LaneClocks *clocks = &warp->clocks[lane];
  bool all = true;
  for (Strength needed = STRONG_CTA; needed < SCOPES; needed++) {
    if (!clocks->pending[needed]) continue;
    all &= needed <= scope;
    if (needed > scope) continue;
    clocks_replace(&clocks->known, clocks_joined(warp->cluster, clocks->known, clocks->pending[needed]));
    clocks_replace(&clocks->pending[needed], NULL);
  }
  if (all) warp->unacquired &= ~(1u << lane);
}

void race_fence(CheckWarp *warp, Mask mask, Strength scope) {
  if (!warp->cluster->launch->on) return;
  const CheckCluster *cluster = warp->cluster;
  for (Mask rest = mask & warp->unacquired; rest; rest &= rest - 1) acquire_pending(warp, __builtin_ctz(rest), scope);
  cover(warp, mask, CLOCK_FENCED);
  if (scope >= STRONG_CLUSTER && has_several_blocks(cluster)) cover(warp, mask, CLOCK_FENCED_CLUSTER);
  if (scope >= STRONG_GPU) cover(warp, mask, CLOCK_FENCED_GPU);
  flights_end_all(warp);
  race_advance(warp, mask);
}

void race_fence_sc(CheckWarp *warp, Mask mask, Strength scope) {
  const Clocks *last = NULL;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    Clocks *known = warp->clocks[__builtin_ctz(rest)].known;
    if (!known || known == last) continue;
    clocks_retain(known);
    Mask same = 0;
    for (Mask lanes = rest; lanes; lanes &= lanes - 1)
      if (warp->clocks[__builtin_ctz(lanes)].known == known) same |= lanes & -lanes;
    for (Strength s = STRONG_CTA; s <= scope; s++) race_acquire(warp, same, known->observed[s]);
    last = warp->clocks[__builtin_ctz(rest)].known;
    clocks_release(known);
  }
  race_fence(warp, mask, scope);
}

void race_proxy_fence(CheckWarp *warp, Mask mask) {
  if (!warp->cluster->launch->on) return;
  cover(warp, mask, CLOCK_VISIBLE);
  flights_end_all(warp);
  race_advance(warp, mask);
}

Clocks *race_lane_clocks(CheckWarp *warp, int lane) {
  LaneClocks *clocks = &warp->clocks[lane];
  uint32_t covered = clocks->covered[CLOCK_KNOWN];
  if (!covered || (clocks->known && clocks->known->clock[thread_of_lane(warp, lane)] >= covered)) {
    clocks_retain(clocks->known);
    return clocks->known;
  }
  Clocks *all = clocks_new(warp->cluster);
  if (clocks->known) clocks_merge(all, clocks->known);
  add_covered(all, warp, lane);
  return all;
}

void race_learn_agent(CheckWarp *warp, Mask mask, uint32_t agent, uint32_t clock) {
  if (!warp->cluster->launch->on) return;
  Clocks *done = NULL;
  clocks_add_agent(warp->cluster, &done, agent, clock);
  race_acquire(warp, mask, done);
  clocks_release(done);
}

// Adds what the lane has done itself, and its last such fence has covered.
void clocks_add_fenced(Clocks *into, const CheckWarp *warp, int lane, ClockPlane fence) {
  const uint32_t *covered = warp->clocks[lane].covered;
  for (int p = 0; p < into->planes; p++) {
    uint32_t *clock = &clocks_plane(into, (ClockPlane)p)[thread_of_lane(warp, lane)];
    *clock = later_clock(*clock, earlier_clock(covered[p], covered[fence]));
  }
}

void race_release_relaxed(CheckWarp *warp, Mask mask, Clocks **joined, Strength scope) {
  const Clocks *last = NULL;
  ClockPlane fence = scope == STRONG_CTA ? CLOCK_FENCED : CLOCK_FENCED_CLUSTER;
  if (!has_several_blocks(warp->cluster)) fence = CLOCK_FENCED;
  if (!warp->cluster->launch->on) return;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const Clocks *known = warp->clocks[__builtin_ctz(rest)].known;
    if (known == last) continue;
    last = known;
    Clocks *fenced = clocks_fenced_part(known, fence);
    clocks_join(warp->cluster, joined, fenced);
    clocks_release(fenced);
  }
  clocks_make_own(warp->cluster, joined);
  for (Mask rest = mask; rest; rest &= rest - 1) clocks_add_fenced(*joined, warp, __builtin_ctz(rest), fence);
}

// Adds all that `from` knows to what has ended.
static void add_ended(Clocks *into, Clocks *from) {
  const uint32_t *known = clocks_plane(from, CLOCK_KNOWN), *before = clocks_plane(from, CLOCK_ENDED);
  uint32_t *ended = clocks_plane(into, CLOCK_ENDED);
  for (int i = 0; i < from->count; i++) ended[i] = later_clock(ended[i], later_clock(known[i], before[i]));
}

Clocks *race_show(CheckWarp *warp, Mask mask) {
  if (!warp->cluster->launch->on) return NULL;
  Clocks *shown = clocks_new(warp->cluster);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const LaneClocks *clocks = &warp->clocks[__builtin_ctz(rest)];
    if (clocks->known) add_ended(shown, clocks->known);
    clocks_plane(shown, CLOCK_ENDED)[thread_of_lane(warp, __builtin_ctz(rest))] = clocks->own;
  }
  return shown;
}

void race_release_narrow(CheckWarp *warp, Mask mask, Clocks *shown, Clocks **joined) {
  Clocks *all = NULL;
  race_release(warp, mask, &all);
  if (!all) return;
  clocks_make_own(warp->cluster, joined);
  add_ended(*joined, all);
  if (shown) add_ended(*joined, shown);
  clocks_release(all);
}

void race_acquire_relaxed(CheckWarp *warp, Mask mask, Clocks *joined) {
  if (joined) warp->unacquired |= mask;
  for (Mask rest = mask; joined && rest; rest &= rest - 1)
    clocks_join(warp->cluster, &warp->clocks[__builtin_ctz(rest)].pending[STRONG_CTA], joined);
}

// ---- loads under way ----

typedef struct Flight {
  const LateLoad *load;
  Mask lanes;
  uint32_t clock[LANES];  // of the lanes, then
} Flight;

enum { MOST_FLIGHTS = 64 };  // a scoreboard has far fewer: what began before the last so many is over

typedef struct Flights {
  int count;
  Flight flights[MOST_FLIGHTS];  // the oldest first
} Flights;

static void end_first(Flights *flights, int count) {
  flights->count -= count;
  memmove(flights->flights, flights->flights + count, (size_t)flights->count * sizeof(Flight));
}

void flights_begin(CheckWarp *warp, const LateLoad *load, Mask lanes) {
  if (!warp->flights) warp->flights = host_allocate(1, sizeof *warp->flights);
  Flights *flights = warp->flights;
  if (flights->count == MOST_FLIGHTS) end_first(flights, 1);
  Flight *flight = &flights->flights[flights->count++];
  flight->load = load;
  flight->lanes = lanes;
  for (int lane = 0; lane < LANES; lane++) flight->clock[lane] = warp->clocks[lane].own;
}

void flights_end(CheckWarp *warp, const LateLoad *load) {
  for (int i = warp->flights ? warp->flights->count : 0; i-- > 0;)
    if (warp->flights->flights[i].load == load) {
      end_first(warp->flights, i + 1);
      return;
    }
}

void flights_end_all(CheckWarp *warp) {
  if (warp->flights) warp->flights->count = 0;
}

static bool crosses(const LateLoad *load, uint32_t pc) {
  for (int i = 0; i < load->handover_count; i++)
    if (load->handovers[i] == pc) return true;
  return false;
}

uint32_t flights_ended(const CheckWarp *warp, int lane) {
  const Flights *flights = warp->flights;
  for (int i = 0; flights && i < flights->count; i++) {
    const Flight *flight = &flights->flights[i];
    if (flight->lanes >> lane & 1 && crosses(flight->load, *warp->pc - 1)) return flight->clock[lane] - 1;
  }
  return warp->clocks[lane].own;
}

void flights_free(Flights *flights) { free(flights); }
