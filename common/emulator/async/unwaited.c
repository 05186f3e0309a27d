// What the person must change where a program has not waited for an asynchronous operation.
#include <stdio.h>
#include <string.h>

#include "../report/source_line.h"
#include "../warp/instruction.h"
#include "async.h"

static LineText line_of_inst(const Cluster *cluster, const Inst *inst) {
  return named_line(cluster->launch->program->module, inst->source);
}

// ---- groups ----

// What the operations of a group are committed and waited for by.
static const char *const group_words[GROUP_KINDS][2] = {
    [GROUP_CP_ASYNC] = {"cp.async.commit_group", "cp.async.wait_group"},
    [GROUP_BULK_READ] = {"cp.async.bulk.commit_group", "cp.async.bulk.wait_group.read"},
    [GROUP_BULK] = {"cp.async.bulk.commit_group", "cp.async.bulk.wait_group"},
    [GROUP_WGMMA] = {"wgmma.commit_group", "wgmma.wait_group"},
};

// Why the operation was still in flight behind the wait that its thread executed last, and what waits for it: at the
// use, or NULL if another thread uses it.
static void advise_passed(Advice *advice, const Cluster *cluster, GroupKind kind, const Inst *inst,
                          const PassedWait *passed, const Inst *use) {
  LineText wait = line_of_inst(cluster, passed->inst);
  long long allowed = passed->inst->immediate;
  if (passed->newer == 0) {
    advice_add(advice,
               "The wait at %s did not count this one: it was in no group yet. Put %s after %s, before the wait.",
               wait.text, group_words[kind][0], line_of_inst(cluster, inst).text);
    return;
  }
  if (allowed == 1)
    advice_add(advice, "The wait at %s leaves the newest group in flight, and this one is in it.", wait.text);
  else
    advice_add(advice, "The wait at %s leaves the newest %lld groups in flight, and this one is in number %u of them.",
               wait.text, allowed, passed->newer);
  if (passed->open) {
    advice_add(advice, " The operation at %s was in no group yet and did not count: put %s after it, before the wait.",
               line_of_inst(cluster, passed->open).text, group_words[kind][0]);
    return;
  }
  advice_add(advice, " Wait by %s %u", group_words[kind][1], passed->newer - 1);
  if (use) advice_add(advice, " before %s", line_of_inst(cluster, use).text);
  advice_add(advice, ".");
}

// The operation's entry in a queue of the warp that issued it, if the lane has not waited for it.
static const GroupEntry *find_entry(const Warp *warp, const Unwaited *unwaited, GroupKind *kind) {
  for (*kind = 0; warp->groups_in_flight && *kind < GROUP_KINDS; (*kind)++) {
    const GroupQueue *queue = &warp->groups_in_flight[*kind];
    for (int i = 0; i < queue->count; i++)
      if (queue->entries[i].op->agent == unwaited->agent && queue->entries[i].op->clock == unwaited->clock)
        return &queue->entries[i];
  }
  return NULL;
}

static const Warp *warp_of(const Cluster *cluster, uint32_t thread) {
  uint32_t warps = (uint32_t)cluster->blocks[0].warp_count, warp = thread / LANES;
  return &cluster->blocks[warp / warps].warps[warp % warps];
}

// Whether the thread is among those that issued the operation.
static bool issued(const Unwaited *unwaited) {
  uint32_t threads = unwaited->issue.warps * LANES;
  return unwaited->thread / threads == unwaited->issue.thread / threads &&
         unwaited->issue.mask >> unwaited->thread % LANES & 1;
}

// "thread 32", "thread 32 of block 1 of the cluster"
static void add_thread(Advice *advice, const Cluster *cluster, uint32_t thread) {
  uint32_t threads = threads_of_block(&cluster->check);
  advice_add(advice, "thread %u", thread % threads);
  if (cluster->block_count > 1) advice_add(advice, " of block %u of the cluster", thread / threads);
}

// The kind of groups that the operation is waited for by. False of one that completes on an mbarrier.
static bool group_kind(const Unwaited *unwaited, GroupKind *kind) {
  if (find_entry(warp_of(unwaited->cluster, unwaited->issue.thread), unwaited, kind)) return true;
  switch (unwaited->inst->row->memory) {
  case MEMORY_MATRICES: *kind = GROUP_WGMMA; break;
  case MEMORY_BULK_STORE:
  case MEMORY_BULK_REDUCE: *kind = GROUP_BULK; break;
  case MEMORY_COPY:
  case MEMORY_CACHED_COPY: *kind = GROUP_CP_ASYNC; break;
  default: *kind = GROUP_KINDS;
  }
  return *kind < GROUP_KINDS;
}

static void advise_group(Advice *advice, const Unwaited *unwaited, GroupKind kind) {
  const Cluster *cluster = unwaited->cluster;
  GroupKind found;
  const GroupEntry *entry = find_entry(warp_of(cluster, unwaited->issue.thread), unwaited, &found);
  LineText use = line_of_inst(cluster, unwaited->use);
  bool own = issued(unwaited);
  const PassedWait *passed = entry && entry->passed.inst ? &entry->passed : NULL;
  // What another thread did since it was heard of last depends on the schedule.
  uint32_t waiter = passed ? unwaited->issue.thread / LANES * LANES + (uint32_t)passed->lane : 0;
  if (!own && passed && (!unwaited->known || unwaited->known->clock[waiter] < passed->clock)) passed = NULL;
  if (!own) {
    advice_add(advice, "A thread waits for its own operations alone, and ");
    add_thread(advice, cluster, unwaited->issue.thread);
    advice_add(advice, " issued this one. ");
  }
  if (passed)
    advise_passed(advice, cluster, kind, unwaited->inst, passed, own ? unwaited->use : NULL);
  else
    advice_add(advice, "Put %s and %s 0 after %s%s%s.", group_words[kind][0], group_words[kind][1],
               line_of_inst(cluster, unwaited->inst).text, own ? ", before " : ", in the thread that issues it",
               own ? use.text : "");
  if (!own) advice_add(advice, " A barrier or an arrival after the wait hands the memory on, before %s.", use.text);
}

// ---- mbarriers ----

// The shared address, with its rank, of the mbarrier that the operation completes on; 0 when it has completed already.
static uint64_t mbarrier_of(const Unwaited *unwaited) {
  for (const AsyncOp *op = async_first_pending(unwaited->cluster); op; op = op->next)
    if (op->agent == unwaited->agent && op->clock == unwaited->clock) return op->mbarrier;
  return 0;
}

static void advise_mbarrier(Advice *advice, const Unwaited *unwaited) {
  const Cluster *cluster = unwaited->cluster;
  LineText issue = line_of_inst(cluster, unwaited->inst), use = line_of_inst(cluster, unwaited->use);
  // An address in a block's memory has the block's rank and 1 above it; 0 when the operation has completed.
  uint64_t size, mbarrier = mbarrier_of(unwaited), above = mbarrier >> SHARED_RANK_SHIFT;
  const Place *place = shared_variable(cluster->launch, mbarrier & ((1ull << SHARED_RANK_SHIFT) - 1), &size);
  bool again = !strcmp(issue.text, use.text);
  advice_add(advice, "Wait for the mbarrier of the operation at %s", issue.text);
  if (place) advice_add(advice, " (`%s`)", variable_name(place->variable).text);
  if (again)
    advice_add(advice, " before it is issued for the same bytes again");
  else
    advice_add(advice, ", with the parity of its phase, before %s", use.text);
  if (above && above - 1 != unwaited->rank)
    advice_add(advice,
               ". That mbarrier is in block %llu of the cluster: a thread there waits for it, and then arrives at an "
               "mbarrier of this block, with .release.cluster",
               (unsigned long long)above - 1);
  advice_add(advice, ".");
}

void async_advise_wait(Advice *advice, const Unwaited *unwaited) {
  GroupKind kind;
  if (group_kind(unwaited, &kind))
    advise_group(advice, unwaited, kind);
  else
    advise_mbarrier(advice, unwaited);
}

// ---- registers ----

void async_advise_registers(Advice *advice, Warp *warp, const Inst *use, uint32_t number) {
  const Cluster *cluster = warp->block->cluster;
  const GroupQueue *queue = async_groups(warp, GROUP_WGMMA);
  for (int i = 0; i < queue->count; i++) {
    const GroupEntry *entry = &queue->entries[i];
    if (entry->op->number != number) continue;
    if (entry->passed.inst)
      advise_passed(advice, cluster, GROUP_WGMMA, entry->op->inst, &entry->passed, use);
    else
      advice_add(advice, "Put wgmma.commit_group and wgmma.wait_group 0 after the wgmma at %s, before %s.",
                 line_of_inst(cluster, entry->op->inst).text, line_of_inst(cluster, use).text);
    return;
  }
}
