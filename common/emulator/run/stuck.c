// Deadlocks: finds the cause among all that wait, and names it. See stuck.h.
#include "stuck.h"

#include <stdio.h>
#include <string.h>

#include "../check/hazard.h"
#include "../flow/barrier.h"
#include "../memory/memory.h"
#include "../tensor/setmaxnreg.h"
#include "../tensor/warpgroup.h"
#include "../warp/instruction.h"
#include "waiters.h"

// ---- words ----

static WarpSet warps_of(const Waiter *waiter) {
  WarpSet set = {{0}};
  set.warps[waiter->warp->block->rank] = waiter->warps;
  return set;
}

static const char *verb(const WarpSet *set, const char *one, const char *several) {
  return set_count(set) == 1 ? one : several;
}

// "warps 0 to 3", with the lanes where some of a warp's do something else.
static void put_waiter(WaitText *text, const Waiter *waiter) {
  WarpSet own = warps_of(waiter);
  if (waiter->lanes != waiter->warp->live) text_put(text, "lanes 0x%08x of ", waiter->lanes);
  text_set(text, waiter->warp->block->cluster, &own);
}

static const char *wait_verb(const Waiter *waiter) {
  WarpSet own = warps_of(waiter);
  return waiter->lanes == waiter->warp->live ? verb(&own, "waits", "wait") : "wait";
}

static void put_target(WaitText *text, const Waiter *waiter) {
  if (waiter->kind == WAITS_AT_MBARRIER)
    text_put(text, "the mbarrier at 0x%llx", (unsigned long long)(waiter->target & ((1u << SHARED_RANK_SHIFT) - 1)));
  else if (waiter->barrier == CLUSTER_BARRIER)
    text_put(text, "the cluster's barrier");
  else
    text_put(text, "barrier %d", waiter->barrier);
}

// ---- a line for each that waits ----

// "1 of 9 arrivals and 512 bytes are missing"
static void put_missing(WaitText *text, const Mbarrier *mbarrier) {
  MbarrierState state = mbarrier_state(mbarrier);
  text_put(text, "%u of %u arrival%s", state.pending, state.expected, state.expected == 1 ? "" : "s");
  if (state.tx) text_put(text, " and %d byte%s", state.tx, state.tx == 1 ? "" : "s");
  text_put(text, " %s missing", state.pending == 1 && !state.tx ? "is" : "are");
}

// The warp's own and its polls of memory: the latest.
static const Poll *last_poll(const Warp *warp) {
  const Poll *last = NULL;
  for (int p = 0; p < POLLS; p++) {
    const Poll *poll = &warp->polls[p];
    if (!poll->inst || (last && poll->progress < last->progress)) continue;
    if (!last || poll->progress > last->progress || poll->inst < last->inst) last = poll;
  }
  return last;
}

static bool has_exited(const Launch *launch, const Cluster *cluster, const HazardPlace *place) {
  uint32_t thread = place->thread[0] + launch->block[0] * (place->thread[1] + launch->block[1] * place->thread[2]);
  for (int b = 0; b < cluster->block_count; b++)
    if (!memcmp(cluster->blocks[b].index, place->block, sizeof place->block))
      return !(cluster->blocks[b].warps[thread / LANES].live >> thread % LANES & 1);
  return false;
}

static bool is_plain_store(const Inst *inst) { return inst->row->memory == MEMORY_STORE; }

// " for the 4 bytes at 0x7000, which hold 3, stored at line 12 by block (0,0,0) thread (0,0,0), which has exited". Of atomics by
// several threads the last one differs from schedule to schedule: it is not named.
static void put_memory(WaitText *text, const Cluster *cluster, const Warp *warp) {
  const Launch *launch = cluster->launch;
  const Poll *poll = last_poll(warp);
  uint64_t value = 0;
  if (!poll) return;
  size_t size = ptx_type_size(ptx_instruction_type(poll->inst->source));
  const Region *region = region_find(launch->global, poll->address, NULL);
  if (!region || size > sizeof value || !memory_peek(warp, 0, poll->address, &value, size)) return;
  text_put(text, " for the %d bytes at 0x%llx, which hold %lld", (int)size, (unsigned long long)poll->address,
           size == 4 ? (long long)(int32_t)value : (long long)value);
  HazardPlace place;
  const Inst *writer = last_writer(cluster, region, poll->address - region->base, &place);
  if (!writer) {
    text_put(text, ", and no thread of this launch has stored there");
    return;
  }
  text_put(text, ", stored at ");
  text_line(text, launch, writer);
  if (!is_plain_store(writer) && !has_exited(launch, cluster, &place)) return;
  text_put(text, " by block (%u,%u,%u) thread (%u,%u,%u)%s", place.block[0], place.block[1], place.block[2],
           place.thread[0], place.thread[1], place.thread[2],
           has_exited(launch, cluster, &place) ? ", which has exited" : "");
}

// Of the cluster's barrier.
static void put_not_come(WaitText *text, const Cluster *cluster) {
  WarpSet set = {{0}};
  for (int w = 0; w < cluster_warps(cluster); w++) {
    const Warp *warp = cluster_warp(cluster, w);
    if (warp->live & ~warp->cluster_arrived) set_add(&set, warp);
  }
  text_put(text, ": ");
  text_set(text, cluster, &set);
  text_put(text, " %s not come", verb(&set, "has", "have"));
}

static void put_wait(WaitText *text, const Waiter *waiter) {
  const Cluster *cluster = waiter->warp->block->cluster;
  WarpSet own = warps_of(waiter);
  put_waiter(text, waiter);
  text_put(text, " %s at ", wait_verb(waiter));
  text_line(text, cluster->launch, waiter->inst);
  if (waiter->kind == WAITS_FOR_MEMORY) {
    put_memory(text, cluster, waiter->warp);
  } else if (waiter->kind == WAITS_FOR_LANES) {
    text_put(text, " for other lanes of %s", verb(&own, "its warp", "their warps"));
  } else if (waiter->kind == WAITS_AT_MBARRIER) {
    text_put(text, " for phase %u (parity %u) of ", waiter->mbarrier->phase, waiter->mbarrier->phase & 1);
    put_target(text, waiter);
    text_put(text, ": ");
    put_missing(text, waiter->mbarrier);
  } else if (waiter->barrier == CLUSTER_BARRIER) {
    text_put(text, " for all threads of the cluster");
    put_not_come(text, cluster);
  } else {
    const Barrier *barrier = &waiter->warp->block->barriers[waiter->barrier];
    text_put(text, " for ");
    put_target(text, waiter);
    text_put(text, ": %d of %d threads have come", barrier->arrived,
             barrier->expected ? barrier->expected : waiter->warp->block->live_threads);
  }
}

// Of the warps the one whose arrival stands first in the program.
static const Inst *first_arrival(const Waiter *waiter, const WarpSet *warps) {
  const Cluster *cluster = waiter->warp->block->cluster;
  const Use *uses = waiter_uses(waiter);
  const Inst *first = NULL;
  for (int w = 0; w < cluster_warps(cluster); w++)
    if (set_has(warps, cluster_warp(cluster, w)) && (!first || uses[w].arrival < first)) first = uses[w].arrival;
  return first;
}

// "; warps 0 to 7 have arrived at line 230"
static void put_arrived(WaitText *text, const Waiter *waiter, const WarpSet *warps, const char *one,
                        const char *several) {
  const Cluster *cluster = waiter->warp->block->cluster;
  if (set_is_empty(warps)) return;
  text_put(text, "; ");
  text_set(text, cluster, warps);
  text_put(text, " %s at ", verb(warps, one, several));
  text_line(text, cluster->launch, first_arrival(waiter, warps));
}

static WarpSet without(const WarpSet *a, const WarpSet *b) {
  WarpSet set;
  for (int i = 0; i < MOST_BLOCKS; i++) set.warps[i] = a->warps[i] & ~b->warps[i];
  return set;
}

static void put_signallers(WaitText *text, const WaiterList *list, const Waiter *waiter) {
  const Launch *launch = list->cluster->launch;
  WarpSet fresh = without(&waiter->after, &waiter->came);
  const Signal *first = NULL;
  for (int i = 0; i < list->foresight.count; i++) {
    const Signal *signal = &list->foresight.items[i];
    if (signal->target == waiter->target && set_has(&fresh, signal->warp) && (!first || signal->pc < first->pc))
      first = signal;
  }
  if (first) {
    text_put(text, "; ");
    text_set(text, list->cluster, &fresh);
    text_put(text, " would %s at ", first->is_copy ? "copy" : "arrive");
    text_line(text, launch, &launch->program->code[first->pc]);
  } else if (waiter->end == END_BY_NONE || waiter->end == END_ALL_CAME) {
    text_put(text, "; no other warp would arrive%s",
             list->foresight.cut_short ? " in its next thousands of instructions" : "");
  }
}

// A wait for a phase that was over long since, or for none: often its parity is wrong.
static void put_early(WaitText *text, const Waiter *waiter) {
  const Use *uses = waiter->kind == WAITS_AT_MBARRIER ? waiter->mbarrier->uses : NULL;
  const Use *use = uses ? &uses[warp_number(waiter->warp)] : NULL;
  // To begin with, an mbarrier that counts no bytes is often waited for so: its slot is empty.
  if (!use || !use->early || (use->early_over == 0 && !waiter->mbarrier->has_bytes)) return;
  WarpSet own = warps_of(waiter);
  text_put(text, "; %s wait at ", verb(&own, "its", "their"));
  text_line(text, waiter->warp->block->cluster->launch, use->early);
  if (use->early_over == 0)
    text_put(text, " ended at once before any phase was over");
  else
    text_put(text, " ended at once a second time after phase %u", use->early_over - 1);
}

static void put_waiter_line(WaitText *text, const WaiterList *list, const Waiter *waiter) {
  WarpSet own = warps_of(waiter), came, earlier;
  put_wait(text, waiter);
  came = without(&waiter->came, &own);
  earlier = without(&waiter->before, &waiter->came);
  earlier = without(&earlier, &waiter->after);
  put_arrived(text, waiter, &came, "has arrived", "have arrived");
  put_arrived(text, waiter, &earlier, "arrived in an earlier phase", "arrived in earlier phases");
  put_signallers(text, list, waiter);
  put_early(text, waiter);
}

enum { MOST_LINES = 20, LINES_SIZE = MOST_LINES * 400 };

// The lines of a report.
typedef struct Lines {
  char text[LINES_SIZE];
  size_t used;
  int count, left_out;
} Lines;

static void add_line(Lines *lines, const WaitText *line) {
  if (lines->count == MOST_LINES || lines->used + line->used + 80 > sizeof lines->text) {
    lines->left_out++;
    return;
  }
  lines->count++;
  lines->used += (size_t)snprintf(lines->text + lines->used, sizeof lines->text - lines->used, "%s\n", line->text);
}

// The warps of a block that have exited, by the place where they did.
static void add_exits(Lines *lines, const Block *block) {
  uint32_t told = 0;
  for (int w = 0; w < block->warp_count; w++) {
    const Warp *warp = &block->warps[w];
    if (warp->live || told >> w & 1) continue;
    WarpSet same = {{0}};
    for (int other = w; other < block->warp_count; other++)
      if (!block->warps[other].live && block->warps[other].exit == warp->exit) set_add(&same, &block->warps[other]);
    told |= same.warps[block->rank];
    WaitText text = {.used = 0};
    text_set(&text, block->cluster, &same);
    text_put(&text, " %s exited at ", verb(&same, "has", "have"));
    text_line(&text, block->cluster->launch, warp->exit);
    add_line(lines, &text);
  }
}

static void describe(const WaiterList *list, Lines *lines) {
  lines->used = 0;
  lines->count = lines->left_out = 0;
  lines->text[0] = 0;
  for (int i = 0; i < list->count; i++) {
    WaitText text = {.used = 0};
    put_waiter_line(&text, list, &list->items[i]);
    add_line(lines, &text);
  }
  for (int b = 0; b < list->cluster->block_count; b++) add_exits(lines, &list->cluster->blocks[b]);
  if (lines->left_out)
    snprintf(lines->text + lines->used, sizeof lines->text - lines->used, "and %d more like these\n", lines->left_out);
}

// ---- the cause ----

// What a report says first, where, and what to do about it.
typedef struct Cause {
  WaitText text;
  const Waiter *at;
  const char *advice;  // NULL: that of every deadlock
} Cause;

static const char *const same_rounds = "Both sides must take the same number of rounds: compare where their loops end. "
                                       "A side that leaves early still has to "
                                       "arrive as often as the other one waits.";
static const char *const check_parity =
    "No thread arrives for this phase. Does the wait ask for the parity of the phase that is meant?";
static const char *const let_arrive = "Let the threads that make what is waited for arrive there.";
static const char *const expect_is_no_arrival = "mbarrier.expect_tx announces bytes and is no arrival: use "
                                                "mbarrier.arrive.expect_tx, or let the thread arrive, too.";
static const char *const count_arrivals = "Initialise the mbarrier for the arrivals that come in one phase: one for "
                                          "each thread that arrives. Or let those arrive "
                                          "that are missing.";
static const char *const count_threads = "The count of a barrier is that of all threads that meet in one phase, 32 for "
                                         "each warp. Here it is too large, or warps "
                                         "are missing.";
static const char *const count_users = "Give the number of all threads that meet in one phase as the count. Groups "
                                       "that do not meet need a barrier number each.";
static const char *const wait_between =
    "Let the warp wait where it only arrives (bar.sync for bar.arrive), or at another barrier before it arrives again.";
static const char *const let_one_begin = "One side must begin. If the mbarrier stands for an empty slot, the first "
                                         "wait for it asks for parity 1, which is over at "
                                         "once.";
static const char *const signal_first = "One of them must signal before it waits: compare the order of both sides.";
static const char *const fewer_blocks = "Blocks that wait for each other must all fit on the GPU at a time: start no "
                                        "more than that, or launch cooperatively, "
                                        "which refuses more.";

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
  cause->at = waiter;
  if (set_is_empty(&twice)) {
    text_put(&cause->text, "barrier %d waits for %d threads, and %d use it: ", waiter->barrier, barrier->expected,
             set_count(&waiter->before) * LANES);
    text_set(&cause->text, cluster, &waiter->before);
    cause->advice = count_users;
  } else {
    text_put(&cause->text, "barrier %d is out of step, for ", waiter->barrier);
    text_set(&cause->text, cluster, &twice);
    text_put(&cause->text, " arrived twice without waiting between, at ");
    text_line(&cause->text, cluster->launch, second);
    cause->advice = wait_between;
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
  WarpSet own = warps_of(waiter), others = without(&waiter->before, &own);
  others = without(&others, &waiter->came);
  if (set_is_empty(&others) && !set_is_empty(&waiter->came)) {
    explain_too_few(cause, waiter);
    return;
  }
  put_waiter(&cause->text, waiter);
  if (set_is_empty(&others)) {
    text_put(&cause->text, " %s at ", wait_verb(waiter));
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
  text_put(&cause->text, " %s for ", wait_verb(waiter));
  text_set(&cause->text, cluster, &others);
  if (all_have_exited(cluster, &others))
    text_put(&cause->text, ", which %s exited", verb(&others, "has", "have"));
  else
    text_put(&cause->text, ", which %s there no more", verb(&others, "arrives", "arrive"));
  cause->advice = same_rounds;
}

// The waiter that stands in another one's way, NULL when none does.
static const Waiter *next_of(const WaiterList *list, const Waiter *waiter) {
  WarpSet fresh = without(&waiter->after, &waiter->came);
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

// A waiter that is part of a cycle, one at an mbarrier if there is one: most mistakes are made there. NULL: there is no cycle.
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
    WarpSet own = warps_of(at), others = warps_of(next), fresh = without(&at->after, &at->came);
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

static const Waiter *find_kind(const WaiterList *list, WaitKind kind) {
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
  const Waiter *polls = find_kind(list, WAITS_FOR_MEMORY), *none = find_end(list, END_BY_NONE),
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

// Whether the lanes wait for others of their warp that all poll an mbarrier which the warp itself does not signal: then they
// are not the cause.
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
// whatever else waits. But where others poll, lanes at an .aligned barrier may just wait for the end of that, and only those
// that named their partners do not.
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
  describe(list, &lines);
  for (int b = 0; b < list->cluster->block_count; b++) {
    Block *block = &list->cluster->blocks[b];
    block->raced = true;
    barriers_check_end(block);
  }
  hazard_add(&(Hazard){.kind = kind, .stopped = true, .lines = lines.text}, at->warp, at->inst,
             __builtin_ctz(at->lanes), "%s%s%s", cause->text.text, cause->advice ? "\n" : "",
             cause->advice ? cause->advice : "");
}

// Bytes that no copy brings, or that came unexpected: an expect_tx or a copy is at fault.
static bool explain_bytes(const WaiterList *list) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i].mbarrier && mbarrier_explain_bytes(list->items[i].mbarrier)) return true;
  return false;
}

static void report(Cluster *cluster, bool others_poll, Standing blocks) {
  WaiterList list = waiters_find(cluster);
  const Waiter *divergent = find_divergence(&list, others_poll);
  Cause cause;
  // Registers come next: warps that got theirs wait, in wgmma or at an mbarrier, for those of their warpgroup that did not.
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

void report_stuck(Cluster *cluster) { report(cluster, false, (Standing){0}); }

void report_spinning(Cluster *cluster, Standing blocks) { report(cluster, true, blocks); }
