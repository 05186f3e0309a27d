// Deadlocks: finds the cause among all that wait, and names it. See stuck.h.
#include "stuck.h"

#include <stdlib.h>
#include <string.h>

#include "../report/hazard.h"
#include "../flow/flow.h"
#include "../tensor/setmaxnreg.h"
#include "../tensor/warpgroup.h"
#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "../warp/warp.h"
#include "run.h"
#include "waiters.h"

// ---- the cause ----

// What a report says first, where, and what to do about it.
typedef struct Cause {
  WaitText text;
  const Waiter *at;
  const char *advice;  // NULL: that of every deadlock
} Cause;

static const char *const same_rounds =
    "Both sides must take the same number of rounds: compare where their loops end. A side that leaves early still has "
    "to arrive as often as the other one waits.";
static const char *const check_parity =
    "No thread arrives for this phase. Does the wait ask for the parity of the phase that is meant?";
static const char *const let_arrive = "Let the threads that make what is waited for arrive there.";
static const char *const expect_is_no_arrival = "mbarrier.expect_tx announces bytes and is no arrival: use "
                                                "mbarrier.arrive.expect_tx, or let the thread arrive, too.";
static const char *const count_arrivals =
    "Initialise the mbarrier for the arrivals of one phase, one for each thread that arrives. Or let those arrive that "
    "are missing.";
static const char *const count_threads =
    "The count of a barrier is that of all threads that meet in one phase, 32 for each warp. It is too large, or warps "
    "are missing.";
static const char *const let_one_begin =
    "One side must begin. If the mbarrier stands for an empty slot, the first wait for it asks for parity 1, which is "
    "over at once.";
static const char *const signal_first = "One of them must signal before it waits: compare the order of both sides.";
static const char *const fewer_blocks =
    "Blocks that wait for each other must all fit on the GPU at a time: start no more than that, or launch "
    "cooperatively, which refuses more.";

// A named barrier whose phases the program's own arrivals can mix up: barrier.c has reported them.
static bool explain_unordered(Cause *cause, const Waiter *waiter) {
  if (waiter->kind != WAITS_AT_BARRIER || waiter->barrier == CLUSTER_BARRIER) return false;
  const Cluster *cluster = waiter->warp->block->cluster;
  const Barrier *barrier = &waiter->warp->block->barriers[waiter->barrier];
  if (!barrier->unordered_count) return false;
  WarpSet twice = {{0}};
  const Inst *second = NULL;
  for (int w = 0; w < cluster_warps(cluster); w++)
    if (barrier->uses[w].twice) {
      if (set_is_empty(&twice)) second = barrier->uses[w].twice;
      set_add(&twice, cluster_warp(cluster, w));
    }
  if (set_is_empty(&twice) && set_count(&waiter->before) * LANES <= barrier->expected) return false;
  cause->at = waiter;
  if (set_is_empty(&twice)) {
    text_put(&cause->text, "barrier %d waits for %d threads, and %d use it: ", waiter->barrier, barrier->expected,
             set_count(&waiter->before) * LANES);
    text_set(&cause->text, cluster, &waiter->before);
    cause->advice = barrier_count_users;
  } else {
    text_put(&cause->text, "barrier %d is out of step, for ", waiter->barrier);
    text_set(&cause->text, cluster, &twice);
    text_put(&cause->text, " arrived twice without waiting between, at ");
    text_line(&cause->text, cluster->launch, second);
    cause->advice = barrier_wait_between;
  }
  return true;
}

// As many came as could, and they are not enough.
static void explain_too_few(Cause *cause, const Waiter *waiter) {
  const Cluster *cluster = waiter->warp->block->cluster;
  WaitText *text = &cause->text;
  put_target(text, waiter);
  if (waiter->kind == WAITS_AT_MBARRIER) {
    MbarrierState state = mbarrier_state(waiter->mbarrier);
    text_put(text, " waits for %u arrivals, and only %u come: from ", state.expected, state.expected - state.pending);
    cause->advice = count_arrivals;
  } else {
    const Barrier *barrier = &waiter->warp->block->barriers[waiter->barrier];
    text_put(text, " waits for %d threads, and only %d come: ",
             barrier->expected ? barrier->expected : waiter->warp->block->live_threads, barrier->arrived);
    cause->advice = count_threads;
  }
  text_set(text, cluster, &waiter->came);
}

static bool all_have_exited(const Cluster *cluster, const WarpSet *set) {
  for (int w = 0; w < cluster_warps(cluster); w++)
    if (set_has(set, cluster_warp(cluster, w)) && cluster_warp(cluster, w)->live) return false;
  return true;
}

// No warp would arrive.
static void explain_nobody(Cause *cause, const Waiter *waiter) {
  const Cluster *cluster = waiter->warp->block->cluster;
  WarpSet own = waiter_warps(waiter), others = set_without(&waiter->before, &own);
  others = set_without(&others, &waiter->came);
  if (set_is_empty(&others) && !set_is_empty(&waiter->came)) {
    explain_too_few(cause, waiter);
    return;
  }
  put_waiter(&cause->text, waiter);
  if (set_is_empty(&others)) {
    text_put(&cause->text, " %s at ", waiter_verb(waiter));
    put_target(&cause->text, waiter);
    text_put(&cause->text, ", and no thread arrives there%s", set_is_empty(&waiter->before) ? "" : " again");
    if (waiter->mbarrier && !set_is_empty(&waiter->before)) {
      cause->advice = check_parity;
      return;
    }
    bool announced = waiter->mbarrier && waiter->mbarrier->expect.inst;
    cause->advice = announced ? expect_is_no_arrival : let_arrive;
    return;
  }
  text_put(&cause->text, " %s for ", waiter_verb(waiter));
  text_set(&cause->text, cluster, &others);
  if (all_have_exited(cluster, &others))
    text_put(&cause->text, ", which %s exited", verb(&others, "has", "have"));
  else
    text_put(&cause->text, ", which %s there no more", verb(&others, "arrives", "arrive"));
  cause->advice = same_rounds;
}

// The waiter that stands in another one's way, NULL when none does.
static const Waiter *next_of(const WaiterList *list, const Waiter *waiter) {
  WarpSet fresh = set_without(&waiter->after, &waiter->came);
  return waiter->end == END_BY_OTHERS ? waiter_among(list, &fresh) : NULL;
}

static bool is_in_cycle(const WaiterList *list, const Waiter *start) {
  const Waiter *at = start;
  for (int steps = 0; at && steps < list->count; steps++) {
    at = next_of(list, at);
    if (at == start) return true;
  }
  return false;
}

// A waiter that is part of a cycle, one at an mbarrier if there is one: most mistakes are made there. NULL: there is no
// cycle.
static const Waiter *find_cycle(const WaiterList *list) {
  const Waiter *found = NULL;
  for (int i = 0; i < list->count; i++) {
    const Waiter *waiter = &list->items[i];
    bool better = !found || (waiter->mbarrier && !found->mbarrier);
    if (better && is_in_cycle(list, waiter)) found = waiter;
  }
  return found;
}

// "warps 0 to 7 wait for warp 8, and warp 8 waits for warps 0 to 7"
static void explain_cycle(Cause *cause, const WaiterList *list, const Waiter *start) {
  const Waiter *at = start;
  cause->at = start;
  cause->advice = signal_first;
  do {
    const Waiter *next = next_of(list, at);
    WarpSet own = waiter_warps(at), others = waiter_warps(next), fresh = set_without(&at->after, &at->came);
    for (int b = 0; b < MOST_BLOCKS; b++) others.warps[b] &= fresh.warps[b];
    if (at != start) text_put(&cause->text, next == start ? ", and " : ", ");
    text_set(&cause->text, list->cluster, &own);
    text_put(&cause->text, " %s for ", verb(&own, "waits", "wait"));
    text_set(&cause->text, list->cluster, &others);
    if (at->mbarrier && at->mbarrier->phase == 0 && set_is_empty(&at->before)) cause->advice = let_one_begin;
    at = next;
  } while (at != start);
}

static const Waiter *find_end(const WaiterList *list, WaitEnd end) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i].end == end) return &list->items[i];
  return NULL;
}

static const Waiter *find_waiter(const WaiterList *list, WaitKind kind) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i].kind == kind) return &list->items[i];
  return NULL;
}

static void explain_memory(Cause *cause, const Waiter *waiter, Standing blocks) {
  cause->at = waiter;
  if (blocks.not_started) {
    text_put(&cause->text,
             "%llu blocks wait, and %llu blocks have not started: an H100 has no room for them until others end",
             (unsigned long long)blocks.waiting, (unsigned long long)blocks.not_started);
    cause->advice = fewer_blocks;
  } else {
    put_waiter(&cause->text, waiter);
    put_memory(&cause->text, waiter->warp->block->cluster, waiter->warp);
    text_put(&cause->text, ": no thread that goes on will change that");
  }
}

// In this order: what others wait for is named before those that wait.
static Cause find_cause(const WaiterList *list, Standing blocks) {
  Cause cause = {.at = &list->items[0]};
  for (int i = 0; i < list->count; i++)
    if (explain_unordered(&cause, &list->items[i])) return cause;
  const Waiter *polls = find_waiter(list, WAITS_FOR_MEMORY), *none = find_end(list, END_BY_NONE),
               *few = find_end(list, END_ALL_CAME), *cycle = find_cycle(list);
  if (polls) {
    explain_memory(&cause, polls, blocks);
  } else if (none) {
    cause.at = none;
    explain_nobody(&cause, none);
  } else if (few) {
    cause.at = few;
    explain_too_few(&cause, few);
  } else if (cycle) {
    explain_cycle(&cause, list, cycle);
  } else {
    text_put(&cause.text, "no thread can go on");
  }
  return cause;
}

// ---- reports ----

// Whether the lanes wait for others of their warp that all poll an mbarrier which the warp itself does not signal: then
// they are not the cause.
static bool waits_for_pollers(const WaiterList *list, const Waiter *waiter) {
  Mask others = waiter->warp->live & ~waiter->lanes;
  for (int i = 0; i < list->count; i++) {
    const Waiter *other = &list->items[i];
    if (other->kind == WAITS_AT_MBARRIER && other->warp->block == waiter->warp->block &&
        other->warps >> waiter->warp->index & 1 && !set_has(&other->after, waiter->warp))
      others &= ~other->lanes;
  }
  return !others;
}

// Lanes that wait at an .aligned or .sync instruction for others of their warp, which do not come: that is the cause of
// whatever else waits. But where others poll, lanes at an .aligned barrier may just wait for the end of that, and only
// those that named their partners do not.
static const Waiter *find_divergence(const WaiterList *list, bool others_poll) {
  for (int i = 0; i < list->count; i++) {
    const Waiter *waiter = &list->items[i];
    bool may_wait = others_poll && waiter->inst->converge == CONVERGE_ALIGNED;
    if (waiter->kind == WAITS_FOR_LANES && !may_wait && !waits_for_pollers(list, waiter)) return waiter;
  }
  return NULL;
}

static void stop(const WaiterList *list, HazardKind kind, const Cause *cause) {
  Lines lines;
  const Waiter *at = cause->at;
  describe_waits(list, &lines);
  for (int b = 0; b < list->cluster->block_count; b++) {
    Block *block = &list->cluster->blocks[b];
    block->raced = true;
    barriers_check_end(block);
  }
  hazard_add(&(Hazard){.kind = kind, .stopped = true, .lines = lines.text}, at->warp, at->inst,
             __builtin_ctz(at->lanes), "%s%s%s", cause->text.text, cause->advice ? "\n" : "",
             cause->advice ? cause->advice : "");
}

// Bytes that no copy brings, or that came unexpected: an expect_tx or a copy is at fault. Phases that have some of
// their bytes come first: where none came, threads that would store them (st.async) may wait for such a phase
// themselves.
static bool explain_bytes(const WaiterList *list) {
  for (int some = 1; some >= 0; some--)
    for (int i = 0; i < list->count; i++) {
      const Mbarrier *mbarrier = list->items[i].mbarrier;
      if (mbarrier && (mbarrier->copy.inst || !some) && mbarrier_explain_bytes(mbarrier)) return true;
    }
  return false;
}

static void report_waiters(Cluster *cluster, bool others_poll, Standing blocks) {
  WaiterList list = waiters_find(cluster);
  const Waiter *divergent = find_divergence(&list, others_poll);
  Cause cause;
  // Registers come next: warps that got theirs wait, in wgmma or at an mbarrier, for those of their warpgroup that did
  // not.
  bool registers =
      !divergent && others_poll && (setmaxnreg_explain_deadlock(cluster) || wgmma_explain_deadlock(cluster));
  if (divergent) {
    cause = (Cause){.at = divergent};
    text_put(&cause.text, "lanes 0x%08x wait for the others of their warp, which wait elsewhere", divergent->lanes);
    stop(&list, HAZARD_DIVERGENT_ALIGNED, &cause);
  } else if (!registers && !explain_bytes(&list)) {
    cause = find_cause(&list, blocks);
    stop(&list, HAZARD_DEADLOCK, &cause);
  }
  waiters_free(&list);
}

void report_stuck(Cluster *cluster) { report_waiters(cluster, false, (Standing){0}); }

void report_spinning(Cluster *cluster, Standing blocks) { report_waiters(cluster, true, blocks); }
