// The turns of a cluster's warps. See run.h.
#include "run.h"

#include <string.h>

#include "../async/async.h"
#include "../report/hazard.h"
#include "../warp/warp.h"
#include "waiters.h"

enum {
  SLICE = 4096,  // instructions of a warp before the next one's turn, by default
  FAIR_SLICE = 1,
  FAIR_FLIGHT = 256,   // instructions of a cluster after which an operation completes under a fair schedule
  RANDOM_SLICE = 256,  // at most so many under a seed
  // Instructions without a visible event after which a cluster is suspected of spinning: at first, and at most, for
  // each suspicion that turns out wrong doubles it.
  FIRST_QUIET = 1 << 18,
  LONGEST_QUIET = 1 << 22,
  // Turns of warps before another block of a cooperative launch is up under a seed: at least, and more on average.
  LEAST_SLICES = 4,
  MORE_SLICES = 64,
};

// ---- turns ----

static Warp *nth_warp(Cluster *cluster, int number) {
  int per_block = cluster->blocks[0].warp_count;
  return &cluster->blocks[number / per_block].warps[number % per_block];
}

static bool is_idle(const Warp *warp) { return warp->idle_since == warp->block->cluster->progress + 1; }

// The warp whose turn it is: the next one that can run, or under a seed a random one. Warps that poll in vain come
// last: of those only with `idle`. NULL when there is none.
static Warp *choose_warp(Cluster *cluster, bool random, bool idle) {
  int count = cluster->block_count * cluster->blocks[0].warp_count;
  int first = random ? (int)(cluster_random(cluster) % (uint64_t)count) : cluster->next_warp;
  for (int i = 0; i < count; i++) {
    int number = (first + i) % count;
    Warp *warp = nth_warp(cluster, number);
    if (!warp_ready(warp) || (is_idle(warp) && !idle)) continue;
    cluster->next_warp = (number + 1) % count;
    return warp;
  }
  return NULL;
}

static bool has_cluster_exited(const Cluster *cluster) {
  for (int b = 0; b < cluster->block_count; b++)
    if (cluster->blocks[b].live_threads > 0) return false;
  return true;
}

// ---- the step limit ----

static void count_steps(Cluster *cluster, uint64_t executed) {
  Launch *launch = cluster->launch;
  cluster->steps += executed;
  if (!launch->step_limit) return;
  uint64_t steps = atomic_fetch_add(&launch->steps, executed) + executed;
  if (steps <= launch->step_limit || launch->stopped) return;
  const Warp *warp = nth_warp(cluster, 0);
  hazard_stop(warp, &launch->program->code[warp->group_count ? warp->groups[0].pc : 0], 0, HAZARD_STEP_LIMIT, 0, 0,
              "the launch executed more than %llu warp instructions", (unsigned long long)launch->step_limit);
}

// ---- spinning ----
//
// A loop that polls memory changes nothing while it waits: its warp comes back to a state, registers and all, that it
// was in before, while no memory changed. When that holds for every warp of a cluster, only another cluster can help
// it.

// bytes: a multiple of 64.
static uint64_t add_state(uint64_t hash, const uint8_t *bytes, size_t size) {
  // Eight chains side by side, so that none waits for a multiplication.
  uint64_t chain[8] = {0};
  for (size_t i = 0; i < size; i += sizeof chain)
    for (int c = 0; c < 8; c++) {
      uint64_t word;
      memcpy(&word, bytes + i + 8 * (size_t)c, 8);
      chain[c] = (chain[c] ^ word) * 0x9e3779b97f4a7c15ull + (chain[c] >> 29);
    }
  for (int c = 0; c < 8; c++) hash = (hash ^ chain[c]) * 0xbf58476d1ce4e5b9ull;
  return hash;
}

static size_t state_bytes(const Program *program) { return program->register_bytes + program->local_size * LANES; }

static uint64_t warp_state(const Warp *warp) {
  const Program *program = warp_launch(warp)->program;
  uint64_t hash = add_state(0, warp->registers, program->register_bytes);
  hash = add_state(hash, warp->local, program->local_size * LANES);
  for (int g = 0; g < warp->group_count; g++)
    hash = (hash ^ warp->groups[g].mask ^ (uint64_t)warp->groups[g].pc << 32) * 0xbf58476d1ce4e5b9ull;
  return hash;
}

// Whether the warp repeats itself: Brent's search for a cycle, with limits on its length and on the bytes looked at.
static bool repeats(Warp *warp) {
  enum { LONGEST = 8192, BYTES = 1 << 30 };
  Cluster *cluster = warp->block->cluster;
  uint64_t progress = cluster->progress, reference = warp_state(warp);
  uint32_t reference_pc = warp->groups[0].pc;
  size_t most = BYTES / state_bytes(cluster->launch->program);
  int longest = most < LONGEST ? (int)most : LONGEST;
  for (int step = 1, renew = 2; step < longest; step++) {
    count_steps(cluster, (uint64_t)warp_run(warp, 1));
    if (cluster->progress != progress || !warp_ready(warp) || cluster->launch->stopped) return false;
    // Only where the reference stood can the state be the same: elsewhere it need not be computed.
    if (step >= renew) {
      reference = warp_state(warp);
      reference_pc = warp->groups[0].pc;
      renew *= 2;
    } else if (warp->groups[0].pc == reference_pc && warp_state(warp) == reference) {
      return true;
    }
  }
  return false;
}

static bool is_spinning(Cluster *cluster) {
  int count = cluster->block_count * cluster->blocks[0].warp_count;
  for (int i = 0; i < count; i++) {
    Warp *warp = nth_warp(cluster, i);
    if (warp_ready(warp) && !repeats(warp)) return false;
  }
  return true;
}

// ---- running a cluster ----

// Whether a warp has polled memory since the last visible event: then what it waits for may be another cluster's to do.
static bool has_polled(const Cluster *cluster) {
  int count = cluster->block_count * cluster->blocks[0].warp_count;
  for (int i = 0; i < count; i++) {
    const Warp *warp = nth_warp((Cluster *)cluster, i);
    for (int p = 0; p < POLLS && warp_ready(warp); p++)
      if (warp->polls[p].inst && warp->polls[p].progress == cluster->progress) return true;
  }
  return false;
}

// Nothing has happened for a while: CLUSTER_SPINS when it cannot, CLUSTER_YIELDS when another cluster may be waited
// for, though the loop that polls counts, say, its rounds; CLUSTER_GOES_ON when neither.
static Outcome suspect(Cluster *cluster) {
  if (is_spinning(cluster)) return CLUSTER_SPINS;
  return has_polled(cluster) ? CLUSTER_YIELDS : CLUSTER_GOES_ON;
}

// The same after many instructions without a visible event: true is *outcome to be returned.
static bool is_quiet(Cluster *cluster, Outcome *outcome) {
  Quiet *quiet = &cluster->quiet;
  *outcome = CLUSTER_GOES_ON;
  if (cluster->steps - quiet->since < quiet->steps) return false;
  bool moved = cluster->progress != quiet->progress;
  // A warp that polls memory may wait, through another warp, for an asynchronous operation.
  if (!moved && async_advance(cluster, cluster->launch->schedule ? cluster_random(cluster) : 0)) moved = true;
  if (!moved) *outcome = suspect(cluster);
  uint64_t longer = quiet->steps < LONGEST_QUIET ? 2 * quiet->steps : LONGEST_QUIET;
  *quiet = (Quiet){.steps = moved ? FIRST_QUIET : longer, .since = cluster->steps, .progress = cluster->progress};
  return *outcome != CLUSTER_GOES_ON;
}

Outcome cluster_run(Cluster *cluster) {
  Launch *launch = cluster->launch;
  bool random = launch->schedule != 0;
  Outcome outcome;
  cluster->progress++;  // other clusters': warps that polled in vain look again
  cluster->quiet.progress++;
  if (!cluster->quiet.steps) cluster->quiet.steps = FIRST_QUIET;
  for (int slices = 0; !launch->stopped;) {
    if (random && cluster_random(cluster) % 4 == 0) async_advance(cluster, cluster_random(cluster));
    Warp *warp = choose_warp(cluster, random, false);
    // No thread can go on: only now, as late as it may be, does an asynchronous operation complete.
    if (!warp && async_advance(cluster, random ? cluster_random(cluster) : 0)) continue;
    if (!warp && choose_warp(cluster, false, true)) {
      if ((outcome = suspect(cluster)) != CLUSTER_GOES_ON) return outcome;
      continue;
    }
    if (!warp) {
      if (has_cluster_exited(cluster)) return CLUSTER_DONE;
      report_stuck(cluster);
      return CLUSTER_STOPPED;
    }
    int budget = launch->fair ? FAIR_SLICE : random ? 1 + (int)(cluster_random(cluster) % RANDOM_SLICE) : SLICE;
    if (launch->fair && cluster->steps % FAIR_FLIGHT == 0) async_advance(cluster, 0);
    cluster->has_news = false;
    count_steps(cluster, (uint64_t)warp_run(warp, budget));
    if (cluster->has_news) return CLUSTER_HAS_NEWS;
    if (is_quiet(cluster, &outcome)) return outcome;
    if (!random || !launch->cooperative || ++slices < LEAST_SLICES) continue;
    if (cluster_random(cluster) % MORE_SLICES == 0) return CLUSTER_YIELDS;
  }
  return CLUSTER_STOPPED;
}
