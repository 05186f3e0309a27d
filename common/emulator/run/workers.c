// Clusters over host threads. See run.h.
#include "run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../async/mbarrier_object.h"
#include "../async/tensor_map.h"
#include "../check/clocks.h"
#include "../check/sync_table.h"
#include "../report/undefined.h"
#include "../flow/flow.h"
#include "../tensor/wgmma_registers.h"
#include "../host/host_memory.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "state.h"
#include "waiters.h"

// ---- the queue of clusters ----
//
// Workers start clusters in order, as long as an H100 would have room for one more. A cluster stops at a place of its
// program and waits in the queue, for one of three reasons:
//
//   it spins      it can only wait for another         until others have run since it last looked
//                 cluster to change memory
//   it yields     it probably does, but may also       until its turn comes again
//                 go on at once
//   it has news   it has read what others may          until all others that may find the same have looked, those
//                 wait for                             that run among them

typedef struct Waiting {
  Cluster *cluster;
  Outcome why;
  uint64_t seen;   // of Queue.progress, when it last looked
  uint64_t since;  // of Queue.turn
} Waiting;

// A cluster's turn to run, on one of the host threads.
typedef struct Turn {
  uint64_t number;   // from 1
  uint64_t seen;     // of Queue.progress at the beginning: what others do since then it may miss
  Cluster *cluster;  // NULL: a fresh one
  uint32_t fresh;    // its id
  bool looks;        // it may find what others have news of, and comes back then
} Turn;

typedef struct Queue {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t next, count;  // clusters not yet started
  uint32_t resident;     // how many may be under way
  Waiting *waiting;      // the longest first
  uint32_t waiting_count;
  uint32_t *able;  // scratch: of those that wait
  uint32_t running;
  Turn *turns;  // of each host thread
  int thread_count;
  uint64_t turn;      // the last one's number
  uint64_t progress;  // of all clusters that waited or ended
  bool stands_still;  // one of the host threads reports that
  uint64_t random;    // state of a generator; 0: none, all take turns
} Queue;

typedef enum Take { TAKE_CLUSTER, TAKE_WAIT, TAKE_NONE, TAKE_DEADLOCK } Take;  // TAKE_WAIT: for those that run

static bool may_look(const Queue *queue, const Waiting *waiting) {
  return waiting->why == CLUSTER_SPINS && waiting->seen != queue->progress;
}

// The number of the first turn that looks and has not ended.
static uint64_t first_to_look(const Queue *queue) {
  uint64_t first = UINT64_MAX;
  for (int i = 0; i < queue->thread_count; i++)
    if (queue->turns[i].looks && queue->turns[i].number < first) first = queue->turns[i].number;
  return first;
}

// Writes which of those that wait may go on, the longest first. Returns how many.
static uint32_t find_able(const Queue *queue, uint32_t *able) {
  uint32_t count = 0;
  uint64_t looking = first_to_look(queue);
  bool others_first = false;
  for (uint32_t i = 0; i < queue->waiting_count; i++) others_first |= may_look(queue, &queue->waiting[i]);
  for (uint32_t i = 0; i < queue->waiting_count; i++) {
    const Waiting *waiting = &queue->waiting[i];
    others_first |= waiting->why == CLUSTER_YIELDS;
    if (waiting->why == CLUSTER_YIELDS || may_look(queue, waiting) ||
        (waiting->why == CLUSTER_HAS_NEWS && !others_first && waiting->since < looking))
      able[count++] = i;
  }
  return count;
}

// The one that has waited longest of those that may go on, or a random one. False when there is none.
static bool take_waiting(Queue *queue, Turn *turn) {
  uint32_t count = find_able(queue, queue->able);
  if (!count) return false;
  uint32_t i = queue->able[queue->random ? random_next(&queue->random) % count : 0];
  turn->cluster = queue->waiting[i].cluster;
  turn->looks |= queue->waiting[i].why != CLUSTER_HAS_NEWS;
  queue->waiting_count--;
  memmove(&queue->waiting[i], &queue->waiting[i + 1], (queue->waiting_count - i) * sizeof *queue->waiting);
  return true;
}

static bool take_fresh(Queue *queue, Turn *turn) {
  if (queue->next == queue->count || queue->running + queue->waiting_count == queue->resident) return false;
  turn->fresh = queue->next++;
  return true;
}

static Take queue_look(Launch *launch, Turn *turn) {
  Queue *queue = launch->queue;
  Turn next = {.number = queue->turn + 1, .seen = queue->progress, .looks = launch->cooperative};
  if (!take_fresh(queue, &next) && !take_waiting(queue, &next))
    return queue->running ? TAKE_WAIT : queue->waiting_count && !queue->stands_still ? TAKE_DEADLOCK : TAKE_NONE;
  *turn = next;
  queue->turn++;
  queue->running++;
  return TAKE_CLUSTER;
}

// How many clusters may be waiting for what another one does. With a single host thread, the one that runs is not among
// them.
static uint32_t count_waiting(const Queue *queue) {
  uint32_t count = queue->waiting_count;
  for (int i = 0; queue->thread_count > 1 && i < queue->thread_count; i++) count += queue->turns[i].looks;
  return count;
}

// When all clusters that are left run or spin: waits until one of them comes back.
static Take queue_take(Launch *launch, Turn *turn) {
  Queue *queue = launch->queue;
  Take take;
  pthread_mutex_lock(&queue->lock);
  while ((take = queue_look(launch, turn)) == TAKE_WAIT) pthread_cond_wait(&queue->changed, &queue->lock);
  queue->stands_still |= take == TAKE_DEADLOCK;
  launch->waiting = count_waiting(queue);
  pthread_mutex_unlock(&queue->lock);
  return take;
}

static void queue_return(Launch *launch, Turn *turn, Outcome outcome, uint64_t progress) {
  Queue *queue = launch->queue;
  pthread_mutex_lock(&queue->lock);
  queue->running--;
  queue->progress += progress;
  if (outcome != CLUSTER_DONE && outcome != CLUSTER_STOPPED)
    queue->waiting[queue->waiting_count++] =
        (Waiting){.cluster = turn->cluster, .why = outcome, .seen = turn->seen + progress, .since = queue->turn};
  turn->looks = false;
  launch->waiting = count_waiting(queue);
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
}

// Nothing runs, and all that wait spin: reports the first in the grid.
static void report_deadlock(const Queue *queue) {
  Cluster *first = queue->waiting[0].cluster;
  for (uint32_t i = 1; i < queue->waiting_count; i++)
    if (queue->waiting[i].cluster->id < first->id) first = queue->waiting[i].cluster;
  uint64_t each = (uint64_t)first->block_count;
  report_spinning(first, (Standing){.waiting = queue->waiting_count * each,
                                    .ended = (queue->next - queue->waiting_count) * each,
                                    .not_started = (queue->count - queue->next) * each});
}

// ---- the host threads ----

static void *work(void *argument) {
  Worker *worker = argument;
  Launch *launch = worker->launch;
  Turn *turn = &launch->queue->turns[worker->number];
  while (!launch->stopped) {
    Take take = queue_take(launch, turn);
    if (take == TAKE_DEADLOCK) report_deadlock(launch->queue);
    if (take != TAKE_CLUSTER) break;
    if (!turn->cluster) turn->cluster = cluster_start(worker, turn->fresh);
    turn->cluster->worker = worker;
    turn->cluster->check.usage = &worker->order;
    uint64_t before = turn->cluster->progress + 1;  // cluster_run() begins with one
    Outcome outcome = cluster_run(turn->cluster);
    uint64_t progress = turn->cluster->progress - before;
    if (outcome == CLUSTER_DONE || outcome == CLUSTER_STOPPED) cluster_end(turn->cluster);
    queue_return(launch, turn, outcome, progress);
  }
  return NULL;
}

static void *work_in_thread(void *worker) {
  if (((Worker *)worker)->launch->emulator->options.tunes_malloc) host_keep_memory();
  return work(worker);
}

// One for a program that allocates: the others look regions up without a lock.
static int worker_count(const Launch *launch, uint32_t clusters) {
  const Emulator *emulator = launch->emulator;
  if (launch->program->allocates) return 1;
  long cores = emulator->options.threads > 0 ? emulator->options.threads : sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < 1) cores = 1;
  return cores < (long)clusters ? (int)cores : (int)clusters;
}

static void run_workers(Worker *workers, int count) {
  pthread_t *threads = host_allocate((size_t)count, sizeof *threads);
  int started = 1;
  while (started < count && !pthread_create(&threads[started], NULL, work_in_thread, &workers[started])) started++;
  work(&workers[0]);
  for (int i = 1; i < started; i++) pthread_join(threads[i], NULL);
  free(threads);
}

void launch_run(Launch *launch, uint32_t clusters, uint32_t resident) {
  int count = worker_count(launch, clusters);
  Queue queue = {.count = clusters, .resident = resident, .thread_count = count, .random = launch->schedule};
  Worker *workers = aligned_alloc(_Alignof(Worker), (size_t)count * sizeof *workers);
  if (!workers) out_of_memory();
  memset(workers, 0, (size_t)count * sizeof *workers);
  uint32_t most = clusters < resident ? clusters : resident;
  queue.waiting = host_allocate(most, sizeof *queue.waiting);
  queue.able = host_allocate(most, sizeof *queue.able);
  queue.turns = host_allocate((size_t)count, sizeof *queue.turns);
  pthread_mutex_init(&queue.lock, NULL);
  pthread_cond_init(&queue.changed, NULL);
  launch->queue = &queue;
  launch->alone = count == 1;
  launch->check.sync = sync_table_new(&workers[0].order);
  for (int i = 0; i < count; i++) {
    workers[i].launch = launch;
    workers[i].number = i;
    workers[i].counts = host_allocate(launch->program->count, sizeof(InstCounts));
  }
  run_workers(workers, count);

  counters_collect(launch->emulator, launch->program, workers, count);
  for (int i = 0; i < count; i++) free(workers[i].counts);
  for (uint32_t i = 0; i < queue.waiting_count; i++) cluster_end(queue.waiting[i].cluster);
  free(queue.waiting);
  free(queue.able);
  free(queue.turns);
  sync_table_free(launch->check.sync);
  size_t order = 0;
  for (int i = 0; i < count; i++) order += usage_most(&workers[i].order);
  if (order > launch->emulator->most_order) launch->emulator->most_order = order;
  free(workers);
  pthread_mutex_destroy(&queue.lock);
  pthread_cond_destroy(&queue.changed);
}

// ---- clusters begin and end ----

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
  check_warp_begin(&warp->check, &block->cluster->check, block->rank * block->warp_count + index, &warp->pc);
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
  warp_start(warp, launch->program->functions[0].start);
}

static void end_warp(Warp *warp) {
  check_warp_end(&warp->check);
  async_warp_end(warp);
  wgmma_state_free(warp->wgmma);
  undefined_free(warp->undefined);
  call_stacks_free(warp);
  free(warp->registers);
  free(warp->local);
  RegionUsage *usage = &warp_launch(warp)->emulator->usage;
  usage_subtract(&usage->shadow, warp_launch(warp)->program->local_size * LANES);
  usage_subtract(&usage->data, warp_launch(warp)->program->local_size * LANES);
}

// A block's shared memory, after the system's part of it if the program asks for that. What the part holds at first is
// undefined, and cooperative_groups clears bits in it: so it counts as written.
static void start_shared(Block *block) {
  const Launch *launch = block->cluster->launch;
  uint64_t reserved = special_knows_reserved_shared(launch->program) ? RESERVED_SHARED : 0;
  block->shared = host_allocate(1, sizeof(Region));
  if (!region_init(block->shared, REGION_SHARED, SHARED_BASE - reserved, launch->shared_size + reserved,
                   launch->check.on, &launch->emulator->usage))
    out_of_memory();
  region_host_write(block->shared, 0, reserved);
}

Cluster *cluster_start(Worker *worker, uint32_t id) {
  Launch *launch = worker->launch;
  Cluster *cluster = host_allocate(1, sizeof *cluster);
  *cluster = (Cluster){.launch = launch, .worker = worker, .id = id};
  cluster->block_count = (int)(launch->cluster[0] * launch->cluster[1] * launch->cluster[2]);
  cluster->blocks = host_allocate((size_t)cluster->block_count, sizeof(Block));
  cluster->random = launch->schedule * 0x9e3779b97f4a7c15ull + id * 0xbf58476d1ce4e5b9ull + 1;
  int threads = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
  int block_warps = (threads + LANES - 1) / LANES;
  check_cluster_begin(&cluster->check, &launch->check, id, cluster->block_count, block_warps, &worker->order);
  if (launch->program->asynchronous) cluster->async = async_engine_new(cluster);
  if (launch->program->asynchronous) cluster->mbarriers = mbarriers_new(cluster);
  for (int rank = 0; rank < cluster->block_count; rank++) {
    Block *block = &cluster->blocks[rank];
    *block = (Block){.cluster = cluster, .rank = rank, .thread_count = threads, .live_threads = threads};
    cluster_block_index(launch, id, rank, block->index);
    block->warp_count = block_warps;
    block->warps = host_allocate((size_t)block->warp_count, sizeof(Warp));
    start_shared(block);
    cluster->check.shared[rank] = block->shared;
    for (int b = 0; b < BARRIERS; b++) block->barriers[b].expected = -1;
    for (int w = 0; w < block->warp_count; w++) start_warp(block, w);
  }
  return cluster;
}

void cluster_end(Cluster *cluster) {
  for (int rank = 0; rank < cluster->block_count; rank++) {
    Block *block = &cluster->blocks[rank];
    for (int w = 0; w < block->warp_count; w++) end_warp(&block->warps[w]);
    for (int b = 0; b < BARRIERS; b++) {
      clocks_release(block->barriers[b].joined);
      clocks_release(block->barriers[b].former);
      free(block->barriers[b].uses);
    }
    for (int g = 0; g < MAX_WARPGROUPS; g++) free(block->warpgroups[g]);
    map_fences_free(block);
    free(block->warps);
    region_destroy(block->shared);
    free(block->shared);
    clocks_release(block->ended);
    clocks_release(block->barrier_joined);
    clocks_release(block->barrier_completed);
  }
  async_engine_free(cluster->async);
  mbarriers_free(cluster->mbarriers);
  clocks_release(cluster->barrier_joined);
  clocks_release(cluster->barrier_completed);
  check_cluster_end(&cluster->check);
  free(cluster->blocks);
  free(cluster);
}
