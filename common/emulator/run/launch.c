// A launch: the grid's clusters are handed to host threads, each of which runs the warps of its cluster in turns.
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../async/mbarrier_object.h"
#include "../check/read_sets.h"
#include "../check/waits.h"
#include "../flow/control.h"
#include "../tensor/setmaxnreg.h"
#include "../tensor/warpgroup.h"
#include "../tensor/wgmma_registers.h"
#include "../warp/host_memory.h"
#include "../warp/special.h"
#include "../warp/warp.h"
#include "counters.h"
#include "interpreter.h"

enum {
  SLICE = 4096,        // instructions of a warp before the next one's turn, by default
  RANDOM_SLICE = 256,  // at most so many under a seed
  // Instructions without a visible event after which a cluster is suspected of spinning: at first, and at most, for each
  // suspicion that turns out wrong doubles it.
  FIRST_QUIET = 1 << 18,
  LONGEST_QUIET = 1 << 22,
};

// ---- a cluster's life ----

// Registers start as poison: PTX leaves them undefined.
static void fill_registers(Warp *warp) {
  const Program *program = warp_launch(warp)->program;
  memset(warp->registers, REGION_POISON, program->register_bytes);
  for (int i = 0; i < program->constant_count; i++) {
    const Constant *constant = &program->constants[i];
    uint8_t *slot = warp->registers + constant->slot;
    if (constant->size == 1) {
      *(Mask *)slot = constant->value ? FULL_MASK : 0;
      continue;
    }
    const uint64_t value[2] = {constant->value, constant->high};
    for (int lane = 0; lane < LANES; lane++) memcpy(slot + lane * constant->size, value, (size_t)constant->size);
  }
  for (int i = 0; i < program->special_count; i++) {
    const Special *special = &program->specials[i];
    Mask mask = 0;
    for (int lane = 0; lane < LANES; lane++) {
      uint64_t value = special_value(warp, special->id, special->component, lane);
      mask |= (Mask)(value != 0) << lane;
      if (special->size > 1)
        memcpy(warp->registers + special->slot + lane * special->size, &value, (size_t)special->size);
    }
    if (special->size == 1) *(Mask *)(warp->registers + special->slot) = mask;
  }
}

static void start_warp(Block *block, int index) {
  const Launch *launch = block->cluster->launch;
  Warp *warp = &block->warps[index];
  *warp = (Warp){.block = block, .index = index};
  warp->first_thread = (uint32_t)((block->rank * block->warp_count + index) * LANES);
  int threads = block->thread_count - index * LANES;
  warp->live = threads >= LANES ? FULL_MASK : (1u << threads) - 1;
  warp->registers = aligned_alloc(64, (launch->program->register_bytes + 63) & ~(size_t)63);
  if (!warp->registers) out_of_memory();
  fill_registers(warp);
  size_t local = launch->program->local_size * LANES;
  warp->local = host_allocate(2 * local, 1);
  usage_add(&launch->emulator->usage.data, local);
  usage_add(&launch->emulator->usage.shadow, local);
  memset(warp->local, REGION_POISON, local);
  warp->clocks = host_allocate(LANES, sizeof(LaneClocks));
  for (int lane = 0; lane < LANES; lane++) warp->clocks[lane].own = 1;
  warp_start(warp, launch->program->functions[0].start);
}

static void end_warp(Warp *warp) {
  for (int lane = 0; lane < LANES; lane++) {
    clocks_release(warp->clocks[lane].known);
    for (Strength s = STRONG_CTA; s < SCOPES; s++) clocks_release(warp->clocks[lane].pending[s]);
    for (int i = 0; i < 2; i++) clocks_release(warp->clocks[lane].learnt[i].from);
  }
  free(warp->clocks);
  async_warp_end(warp);
  wgmma_state_free(warp->wgmma);
  call_stacks_free(warp);
  free(warp->registers);
  free(warp->local);
  RegionUsage *usage = &warp_launch(warp)->emulator->usage;
  usage_subtract(&usage->data, warp_launch(warp)->program->local_size * LANES);
  usage_subtract(&usage->shadow, warp_launch(warp)->program->local_size * LANES);
}

static void start_cluster(Cluster *cluster, Worker *worker, uint32_t id) {
  Launch *launch = worker->launch;
  *cluster = (Cluster){.launch = launch, .worker = worker, .id = id};
  cluster->block_count = (int)(launch->cluster[0] * launch->cluster[1] * launch->cluster[2]);
  cluster->blocks = host_allocate((size_t)cluster->block_count, sizeof(Block));
  cluster->random = launch->schedule * 0x9e3779b97f4a7c15ull + id * 0xbf58476d1ce4e5b9ull + 1;
  int threads = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
  cluster->lane_count = cluster->block_count * ((threads + LANES - 1) / LANES) * LANES;
  cluster->clock_count = cluster->lane_count + (launch->program->asynchronous ? ASYNC_AGENTS : 0);
  if (launch->program->asynchronous) cluster->agents = agents_new(cluster);
  if (launch->program->asynchronous) cluster->async = async_engine_new(cluster);
  if (launch->program->asynchronous) cluster->mbarriers = mbarriers_new(cluster);
  cluster->read_sets = read_sets_new(&worker->order);
  cluster->sync = sync_table_new(&worker->order);
  for (int rank = 0; rank < cluster->block_count; rank++) {
    Block *block = &cluster->blocks[rank];
    *block = (Block){.cluster = cluster, .rank = rank, .thread_count = threads, .live_threads = threads};
    cluster_block_index(launch, id, rank, block->index);
    block->warp_count = (threads + LANES - 1) / LANES;
    block->warps = host_allocate((size_t)block->warp_count, sizeof(Warp));
    block->shared = host_allocate(1, sizeof(Region));
    if (!region_init(block->shared, REGION_SHARED, SHARED_BASE, launch->shared_size, launch->hazards,
                     &launch->emulator->usage))
      out_of_memory();
    for (int b = 0; b < BARRIERS; b++) block->barriers[b].expected = -1;
    for (int w = 0; w < block->warp_count; w++) start_warp(block, w);
  }
}

static void end_cluster(Cluster *cluster) {
  for (int rank = 0; rank < cluster->block_count; rank++) {
    Block *block = &cluster->blocks[rank];
    for (int w = 0; w < block->warp_count; w++) end_warp(&block->warps[w]);
    for (int b = 0; b < BARRIERS; b++) {
      clocks_release(block->barriers[b].joined);
      clocks_release(block->barriers[b].former);
    }
    for (int g = 0; g < MAX_WARPGROUPS; g++) free(block->warpgroups[g]);
    free(block->warps);
    region_destroy(block->shared);
    free(block->shared);
    clocks_release(block->ended);
    clocks_release(block->barrier_joined);
    clocks_release(block->barrier_completed);
  }
  async_engine_free(cluster->async);
  agents_free(cluster->agents);
  mbarriers_free(cluster->mbarriers);
  clocks_release(cluster->barrier_joined);
  clocks_release(cluster->barrier_completed);
  sync_table_free(cluster->sync);
  read_sets_free(cluster->read_sets);
  free(cluster->blocks);
}

// ---- schedule ----

static Warp *warp_number(Cluster *cluster, int number) {
  int per_block = cluster->blocks[0].warp_count;
  return &cluster->blocks[number / per_block].warps[number % per_block];
}

static bool is_idle(const Warp *warp) { return warp->idle_since == warp->block->cluster->progress + 1; }

// The warp whose turn it is: the next one that can run, or under a seed a random one. Warps that poll in vain come last: of
// those only with `idle`. NULL when there is none.
static Warp *choose_warp(Cluster *cluster, bool random, bool idle) {
  int count = cluster->block_count * cluster->blocks[0].warp_count;
  int first = random ? (int)(cluster_random(cluster) % (uint64_t)count) : cluster->next_warp;
  for (int i = 0; i < count; i++) {
    int number = (first + i) % count;
    Warp *warp = warp_number(cluster, number);
    if (!warp_ready(warp) || (is_idle(warp) && !idle)) continue;
    cluster->next_warp = (number + 1) % count;
    return warp;
  }
  return NULL;
}

// ---- when nothing moves ----

static bool has_exited(const Cluster *cluster) {
  for (int b = 0; b < cluster->block_count; b++)
    if (cluster->blocks[b].live_threads > 0) return false;
  return true;
}

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

// Every thread waits, and none polls.
static void report_stuck(Cluster *cluster) {
  const Warp *stuck;
  if (report_divergence(cluster, false) || mbarrier_explain_deadlock(cluster)) return;
  const Group *at = find_group(cluster, GROUP_BARRIER, &stuck);
  const Inst *inst = &cluster->launch->program->code[at->pc];
  WaitList waits;
  hazard_stop(stuck, inst, __builtin_ctz(at->mask), HAZARD_DEADLOCK, 0, 0, "no thread can go on: %s",
              describe_waits(cluster, &waits));
}

// ---- the step limit ----

static void count_steps(Cluster *cluster, uint64_t executed) {
  Launch *launch = cluster->launch;
  cluster->steps += executed;
  if (!launch->step_limit) return;
  uint64_t steps = atomic_fetch_add(&launch->steps, executed) + executed;
  if (steps <= launch->step_limit || launch->stopped) return;
  const Warp *warp = warp_number(cluster, 0);
  hazard_stop(warp, &launch->program->code[warp->group_count ? warp->groups[0].pc : 0], 0, HAZARD_STEP_LIMIT, 0, 0,
              "the launch executed more than %llu warp instructions", (unsigned long long)launch->step_limit);
}

// ---- spinning ----
//
// A loop that polls memory changes nothing while it waits: its warp comes back to a state, registers and all, that it was in
// before, while no memory changed. When that holds for every warp of a cluster, only another cluster can help it.

static uint64_t warp_state(const Warp *warp) {
  const uint64_t *words = (const uint64_t *)warp->registers;
  // Eight chains side by side, so that none waits for a multiplication; slots are multiples of eight words.
  uint64_t chain[8] = {0}, hash = 0;
  for (size_t i = 0; i < warp_launch(warp)->program->register_bytes / 8; i += 8)
    for (int c = 0; c < 8; c++) chain[c] = (chain[c] ^ words[i + (size_t)c]) * 0x9e3779b97f4a7c15ull + (chain[c] >> 29);
  for (int c = 0; c < 8; c++) hash = (hash ^ chain[c]) * 0xbf58476d1ce4e5b9ull;
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
  size_t most = BYTES / cluster->launch->program->register_bytes;
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
    Warp *warp = warp_number(cluster, i);
    if (warp_ready(warp) && !repeats(warp)) return false;
  }
  return true;
}

static void report_spinning(Cluster *cluster) {
  // Registers first: warps that got theirs wait, in wgmma or at an mbarrier, for those of their warpgroup that did not.
  if (report_divergence(cluster, true) || setmaxnreg_explain_deadlock(cluster) || wgmma_explain_deadlock(cluster) ||
      mbarrier_explain_deadlock(cluster))
    return;
  for (int b = 0; b < cluster->block_count; b++)
    for (int w = 0; w < cluster->blocks[b].warp_count; w++) {
      const Warp *warp = &cluster->blocks[b].warps[w];
      if (!warp_ready(warp)) continue;
      WaitList waits;
      const Group *group = &warp->groups[0];
      hazard_stop(warp, &cluster->launch->program->code[group->pc], __builtin_ctz(group->mask), HAZARD_DEADLOCK, 0, 0,
                  "every thread polls memory that no thread will write: %s", describe_waits(cluster, &waits));
      return;
    }
}

// ---- running a cluster ----

typedef enum Outcome { CLUSTER_DONE, CLUSTER_SPINS, CLUSTER_STOPPED } Outcome;

// Runs until all threads have exited, the launch stops, or the cluster can only wait for another.
static Outcome run_cluster(Cluster *cluster) {
  Launch *launch = cluster->launch;
  bool random = launch->schedule != 0;
  uint64_t progress = ++cluster->progress;  // other clusters': warps that polled in vain look again
  uint64_t quiet_since = cluster->steps, quiet_steps = FIRST_QUIET;
  while (!launch->stopped) {
    if (random && cluster_random(cluster) % 4 == 0) async_advance(cluster, cluster_random(cluster));
    Warp *warp = choose_warp(cluster, random, false);
    // No thread can go on: only now, as late as it may be, does an asynchronous operation complete.
    if (!warp && async_advance(cluster, random ? cluster_random(cluster) : 0)) continue;
    if (!warp && choose_warp(cluster, false, true)) {
      if (is_spinning(cluster)) return CLUSTER_SPINS;
      continue;
    }
    if (!warp) {
      if (has_exited(cluster)) return CLUSTER_DONE;
      report_stuck(cluster);
      return CLUSTER_STOPPED;
    }
    int budget = random ? 1 + (int)(cluster_random(cluster) % RANDOM_SLICE) : SLICE;
    count_steps(cluster, (uint64_t)warp_run(warp, budget));
    if (cluster->steps - quiet_since < quiet_steps) continue;
    bool quiet = cluster->progress == progress;
    // A warp that polls memory may wait, through another warp, for an asynchronous operation.
    if (quiet && async_advance(cluster, random ? cluster_random(cluster) : 0)) quiet = false;
    if (quiet && is_spinning(cluster)) return CLUSTER_SPINS;
    quiet_steps = !quiet ? FIRST_QUIET : quiet_steps < LONGEST_QUIET ? 2 * quiet_steps : LONGEST_QUIET;
    progress = cluster->progress;
    quiet_since = cluster->steps;
  }
  return CLUSTER_STOPPED;
}

// ---- the queue of clusters ----
//
// Workers take clusters in order. One that spins is parked, and taken up again when others have moved since.

typedef struct Parked {
  Cluster *cluster;
  uint64_t seen;  // of Queue.progress, when it last looked
} Parked;

typedef struct Queue {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t next, count;  // clusters not yet started
  Parked *parked;
  int parked_count;
  int running;
  uint64_t progress;  // of all clusters that were parked or ended
} Queue;

typedef enum Take { TAKE_CLUSTER, TAKE_WAIT, TAKE_NONE, TAKE_DEADLOCK } Take;  // TAKE_WAIT: for those that run

// Takes a cluster to run: a fresh one (*fresh is its id), or a parked one that may go on. *seen: the progress until then.
static Take queue_look(Queue *queue, uint32_t *fresh, Cluster **parked, uint64_t *seen) {
  Take take = queue->running ? TAKE_WAIT : queue->parked_count ? TAKE_DEADLOCK : TAKE_NONE;
  *seen = queue->progress;
  *parked = NULL;
  if (queue->next < queue->count) {
    *fresh = queue->next++;
    take = TAKE_CLUSTER;
  }
  for (int i = 0; i < queue->parked_count && take != TAKE_CLUSTER; i++) {
    if (queue->parked[i].seen == queue->progress) continue;
    *parked = queue->parked[i].cluster;
    queue->parked[i] = queue->parked[--queue->parked_count];
    take = TAKE_CLUSTER;
  }
  if (take == TAKE_DEADLOCK) *parked = queue->parked[0].cluster;
  if (take == TAKE_CLUSTER) queue->running++;
  return take;
}

// The same, when all clusters that are left run or are parked: waits until one of them comes back.
static Take queue_take(Queue *queue, uint32_t *fresh, Cluster **parked, uint64_t *seen) {
  Take take;
  pthread_mutex_lock(&queue->lock);
  while ((take = queue_look(queue, fresh, parked, seen)) == TAKE_WAIT) pthread_cond_wait(&queue->changed, &queue->lock);
  pthread_mutex_unlock(&queue->lock);
  return take;
}

// seen: the progress when the cluster was taken. What others have done since it may have missed.
static void queue_return(Queue *queue, Cluster *cluster, Outcome outcome, uint64_t progress, uint64_t seen) {
  pthread_mutex_lock(&queue->lock);
  queue->running--;
  queue->progress += progress;
  if (outcome == CLUSTER_SPINS) {
    queue->parked = realloc(queue->parked, ((size_t)queue->parked_count + 1) * sizeof *queue->parked);
    if (!queue->parked) out_of_memory();
    queue->parked[queue->parked_count++] = (Parked){cluster, seen + progress};
  }
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
}

static void *work(void *argument) {
  Worker *worker = argument;
  Launch *launch = worker->launch;
  while (!launch->stopped) {
    uint32_t fresh = 0;
    uint64_t seen;
    Cluster *cluster;
    Take take = queue_take(launch->queue, &fresh, &cluster, &seen);
    if (take == TAKE_NONE) break;
    if (take == TAKE_DEADLOCK) {
      report_spinning(cluster);
      break;
    }
    if (!cluster) {
      cluster = host_allocate(1, sizeof *cluster);
      start_cluster(cluster, worker, fresh);
    }
    cluster->worker = worker;
    uint64_t before = cluster->progress + 1;  // run_cluster() begins with one
    Outcome outcome = run_cluster(cluster);
    uint64_t progress = cluster->progress - before;
    if (outcome != CLUSTER_SPINS) {
      end_cluster(cluster);
      free(cluster);
    }
    queue_return(launch->queue, cluster, outcome, progress, seen);
  }
  return NULL;
}

// ---- the launch ----

static int worker_count(const Emulator *emulator, uint32_t clusters) {
  long cores = emulator->options.threads > 0 ? emulator->options.threads : sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < 1) cores = 1;
  return cores < (long)clusters ? (int)cores : (int)clusters;
}

static void run(Launch *launch, uint32_t clusters) {
  Queue queue = {.count = clusters};
  int count = worker_count(launch->emulator, clusters);
  Worker *workers = aligned_alloc(_Alignof(Worker), (size_t)count * sizeof *workers);
  if (!workers) out_of_memory();
  memset(workers, 0, (size_t)count * sizeof *workers);
  pthread_t *threads = host_allocate((size_t)count, sizeof *threads);
  pthread_mutex_init(&queue.lock, NULL);
  pthread_cond_init(&queue.changed, NULL);
  launch->queue = &queue;
  launch->sync = sync_table_new(&workers[0].order);
  for (int i = 0; i < count; i++) {
    workers[i].launch = launch;
    workers[i].counts = host_allocate(launch->program->count, sizeof(InstCounts));
  }
  int started = 1;
  while (started < count && !pthread_create(&threads[started], NULL, work, &workers[started])) started++;
  work(&workers[0]);
  for (int i = 1; i < started; i++) pthread_join(threads[i], NULL);

  counters_collect(launch->emulator, launch->program, workers, count);
  for (int i = 0; i < count; i++) free(workers[i].counts);
  for (int i = 0; i < queue.parked_count; i++) {
    end_cluster(queue.parked[i].cluster);
    free(queue.parked[i].cluster);
  }
  free(queue.parked);
  sync_table_free(launch->sync);
  size_t order = 0;
  for (int i = 0; i < count; i++) order += usage_most(&workers[i].order);
  if (order > launch->emulator->most_order) launch->emulator->most_order = order;
  free(workers);
  free(threads);
  pthread_mutex_destroy(&queue.lock);
  pthread_cond_destroy(&queue.changed);
}

static EmulatorStatus invalid(EmulatorError *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static EmulatorStatus invalid(EmulatorError *error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error->line = 0;
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return EMULATOR_INVALID;
}

// Limits of compute capability 9.0, CUDA C++ programming guide, table of technical specifications.
enum { MAX_BLOCK_THREADS = 1024, MAX_BLOCK_Z = 64, MAX_GRID_YZ = 65535, MAX_CLUSTER = 16, MAX_SHARED = 227 * 1024 };
// The emulator's own: registers and local memory of a cluster, in the host's bytes.
#define MAX_CLUSTER_BYTES (2ull << 30)

static EmulatorStatus check_shape(const Launch *launch, const PtxFunction *entry, EmulatorError *error) {
  const unsigned *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
  for (int axis = 0; axis < 3; axis++) {
    if (!grid[axis] || !block[axis]) return invalid(error, "%s: a grid or block dimension is 0", entry->name);
    if (block[axis] > MAX_BLOCK_THREADS)
      return invalid(error, "%s: block dimension %d is %u, at most %d", entry->name, axis, block[axis],
                     MAX_BLOCK_THREADS);
    if (axis > 0 && grid[axis] > MAX_GRID_YZ)
      return invalid(error, "%s: grid dimension %d is %u, at most %d", entry->name, axis, grid[axis], MAX_GRID_YZ);
    if (grid[axis] % cluster[axis])
      return invalid(error, "%s: grid dimension %u is no multiple of the cluster's %u", entry->name, grid[axis],
                     cluster[axis]);
    if (entry->required_threads[axis] && entry->required_threads[axis] != block[axis] && entry->required_threads[0])
      return invalid(error, "%s: needs blocks of (%u,%u,%u)", entry->name, entry->required_threads[0],
                     entry->required_threads[1], entry->required_threads[2]);
  }
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2], most = 1;
  for (int axis = 0; axis < 3; axis++) most *= entry->max_threads[axis] ? entry->max_threads[axis] : 1;
  if (threads > MAX_BLOCK_THREADS || block[2] > MAX_BLOCK_Z)
    return invalid(error, "%s: a block has at most %d threads and %d along z, this one %llu and %u", entry->name,
                   MAX_BLOCK_THREADS, MAX_BLOCK_Z, (unsigned long long)threads, block[2]);
  if (entry->max_threads[0] && threads > most)
    return invalid(error, "%s: its __launch_bounds__ allow %llu threads a block, not %llu", entry->name,
                   (unsigned long long)most, (unsigned long long)threads);
  if ((uint64_t)cluster[0] * cluster[1] * cluster[2] > MAX_CLUSTER)
    return invalid(error, "%s: a cluster has at most %d blocks", entry->name, MAX_CLUSTER);
  uint64_t warps = (threads + LANES - 1) / LANES * cluster[0] * cluster[1] * cluster[2];
  uint64_t warp_bytes = launch->program->register_bytes + 2 * LANES * launch->program->local_size;
  if (warps * warp_bytes > MAX_CLUSTER_BYTES)
    return invalid(error, "%s: registers and local memory of a cluster need %llu MB, the emulator gives it %llu MB",
                   entry->name, (unsigned long long)(warps * warp_bytes >> 20), MAX_CLUSTER_BYTES >> 20);
  if (launch->shared_size > MAX_SHARED)
    return invalid(error, "%s: %zu bytes of shared memory, a block has at most %d", entry->name, launch->shared_size,
                   MAX_SHARED);
  if ((uint64_t)grid[0] * grid[1] * grid[2] > 1u << 31)
    return invalid(error, "%s: more blocks than the emulator counts", entry->name);
  return EMULATOR_OK;
}

static const Program *find_program(const EmulatorModule *module, const char *name) {
  for (int i = 0; i < module->program_count; i++)
    if (!strcmp(module->programs[i]->functions[0].ptx->name, name)) return module->programs[i];
  return NULL;
}

static void fill_params(Launch *launch, const PtxFunction *entry, const void *const *arguments) {
  const Function *function = &launch->program->functions[0];
  launch->params = host_allocate(launch->program->param_size, 1);
  for (int i = 0; i < entry->param_count; i++)
    memcpy(launch->params + function->places[i].address, arguments[i], entry->params[i]->size);
}

EmulatorStatus emulator_launch(Emulator *emulator, EmulatorModule *module, const EmulatorLaunch *request,
                               EmulatorError *error) {
  const Program *program = find_program(module, request->kernel);
  if (!program) return invalid(error, "the module has no kernel %s", request->kernel);
  const PtxFunction *entry = program->functions[0].ptx;
  if (request->argument_count != entry->param_count)
    return invalid(error, "%s takes %d arguments, not %d", entry->name, entry->param_count, request->argument_count);
  if (request->dynamic_shared > MAX_SHARED)
    return invalid(error, "%s: %zu bytes of shared memory, a block has at most %d", entry->name,
                   request->dynamic_shared, MAX_SHARED);

  EpochLayout epochs = {0};
  Launch launch = {.emulator = emulator,
                   .global = &emulator->global,
                   .hazard_list = &emulator->hazards,
                   .program = program,
                   .epochs = &epochs,
                   .dynamic_shared = request->dynamic_shared};
  for (int axis = 0; axis < 3; axis++) {
    launch.grid[axis] = request->grid[axis];
    launch.block[axis] = request->block[axis];
    unsigned required = entry->required_cluster[axis];
    launch.cluster[axis] = request->cluster[axis] ? request->cluster[axis] : required ? required : 1;
    launch.explicit_cluster |= request->cluster[axis] || required;
  }
  launch.shared_size =
      (request->dynamic_shared ? program->dynamic_offset : program->shared_size) + request->dynamic_shared;
  EmulatorStatus status = check_shape(&launch, entry, error);
  if (status != EMULATOR_OK) return status;

  uint64_t blocks = (uint64_t)launch.grid[0] * launch.grid[1] * launch.grid[2];
  uint64_t cluster_blocks = (uint64_t)launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  uint64_t block_threads = (uint64_t)launch.block[0] * launch.block[1] * launch.block[2];
  uint64_t cluster_threads = cluster_blocks * ((block_threads + LANES - 1) / LANES * LANES) + ASYNC_AGENTS;
  launch.hazards = emulator->options.hazards;
  if (launch.hazards && !epoch_layout(&epochs, blocks / cluster_blocks, cluster_threads, program->count))
    return invalid(error, "%s: too many blocks, threads and instructions for the race check; run with --hazards=off",
                   entry->name);
  launch.schedule = emulator->options.schedule;
  launch.step_limit = emulator->options.step_limit;
  launch.number = ++emulator->launches;
  fill_params(&launch, entry, request->arguments);
  run(&launch, (uint32_t)(blocks / cluster_blocks));
  free(launch.params);
  if (!launch.stopped) return EMULATOR_OK;
  hazards_stop_reason(&emulator->hazards, entry->name, error);
  return EMULATOR_FAULT;
}
