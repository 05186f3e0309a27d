// Races: remembers the accesses of each byte, and reports those that nothing orders. See race.h.
#include "race.h"

#include <stdio.h>
#include <string.h>

#include "../warp/instruction.h"
#include "advice.h"
#include "agents.h"
#include "flights.h"
#include "hazard.h"
#include "overlap.h"
#include "read_sets.h"
#include "source_line.h"
#include "unwritten.h"

// ---- actors and order ----

static Epoch epoch_at(const Launch *launch, uint32_t cluster, uint32_t pc, uint32_t thread, uint32_t clock) {
  const EpochLayout *layout = launch->epochs;
  return EPOCH_KERNEL | (uint64_t)cluster << layout->cluster_shift | (uint64_t)pc << layout->pc_shift |
         (uint64_t)clock << layout->clock_shift | thread;
}

static uint32_t pc_of(const Actor *actor) { return epoch_pc(actor->layout, actor->place); }

// Whether the actor knows of the thread's accesses at that clock.
static bool knows(const Actor *actor, uint32_t thread, uint32_t clock) {
  const Clocks *known = actor->known;
  if (thread == actor->thread || thread == actor->issuer) return true;
  if (!known) return false;
  if (known->clock[thread] >= clock) return true;
  if (actor->lenient == STRICT || known->planes <= CLOCK_ENDED) return false;
  if (actor->lenient == LENIENT_TO_OPERATIONS && thread < (uint32_t)actor->cluster->lane_count) return false;
  return known->clock[CLOCK_ENDED * known->count + (int)thread] >= clock;
}

// Whether as many neighbouring lanes as there are turns, the actor first, which all have learnt the same, know of accesses by
// the lanes of mask of a warp. Only a lane by itself knows its own.
static bool know_lanes(const Actor *actor, int turns, uint32_t first, Mask mask, uint32_t clock) {
  if (turns > 1 && !actor->known) return false;
  if (mask == FULL_MASK && actor->known && clocks_reach(actor->known, first, LANES, clock)) return true;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    uint32_t thread = first + (uint32_t)__builtin_ctz(rest);
    if (turns == 1 ? !knows(actor, thread, clock) : actor->known->clock[thread] < clock) return false;
  }
  return true;
}

static Strength strength_of(Epoch epoch) { return (Strength)(epoch >> EPOCH_STRENGTH_SHIFT & 3); }

// Whether the actor and another access, by a thread of the actor's cluster (`near`) or of another, need no order: both
// are strong, and the scope of each includes the other's thread. Of an asynchronous reduction that is its issuer.
static bool both_strong(const Actor *actor, Strength other, bool near, uint32_t thread, uint32_t clock) {
  const Cluster *cluster = actor->cluster;
  Strength least = actor->strength < other ? actor->strength : other;
  if (least == WEAK || !near) return least == STRONG_GPU;
  if (least != STRONG_CTA) return true;
  uint32_t block_threads = (uint32_t)(cluster->lane_count / cluster->block_count);
  if (thread >= (uint32_t)cluster->lane_count) thread = agent_issue(cluster, thread, clock).thread;
  return actor->issuer / block_threads == thread / block_threads;
}

static int element_size(const Actor *actor, uint32_t pc) { return actor->cluster->launch->program->code[pc].size; }

// Whether the actor and an access that overlaps it, by the instruction at pc, are of the same size, and so of the same place.
static bool same_size(const Actor *actor, uint32_t pc) {
  int size = element_size(actor, pc);
  return !size || !actor->inst->size || size == actor->inst->size;
}

// Whether that is so of the actor and a remembered access.
static bool is_strong_for(const Actor *actor, Epoch epoch) {
  if (actor->strength == WEAK || strength_of(epoch) == WEAK) return false;
  if (!same_size(actor, epoch_pc(actor->layout, epoch))) return false;
  bool near = epoch_cluster(actor->layout, epoch) == actor->cluster->id;
  return both_strong(actor, strength_of(epoch), near, epoch_thread(actor->layout, epoch),
                     epoch_clock(actor->layout, epoch));
}

// Whether the remembered access comes before what the actor does now.
static bool comes_before(const Actor *actor, Epoch epoch) {
  const EpochLayout *layout = actor->layout;
  if (!(epoch & EPOCH_KERNEL) || (epoch & layout->identity_mask) == actor->identity) return true;
  uint32_t thread = epoch_thread(layout, epoch), clock = epoch_clock(layout, epoch);
  if (epoch_cluster(layout, epoch) == actor->cluster->id) return knows(actor, thread, clock);
  const Clocks *clocks = clocks_imported(actor->known, epoch_cluster(layout, epoch));
  // Of another cluster's set only the cluster is left: knowing anything of it has to do.
  if (!clocks || epoch & EPOCH_SET) return clocks != NULL;
  return clocks->clock[thread] >= clock;
}

// The same, or it needs no order because both are strong.
static bool ordered(const Actor *actor, Epoch epoch) {
  return comes_before(actor, epoch) || is_strong_for(actor, epoch);
}

// ---- what a strong load has seen ----
//
// A thread polls a flag by strong loads, and then sets it back by a plain store. The strong store that ended the polling comes
// before the plain one, also when it releases nothing (PTX ISA 8.9.5, causality order). Vector clocks cannot say that: what
// the other thread did before its strong store, since its last fence, does not come before. So the loads are kept beside
// them. A plain load after the polling is no matter of this: whether the poll saw the store is chance if nobody waits for it.

enum { GRANULE = 4 };  // of memory: a flag

static SyncTable *table_of(const Actor *actor, const Region *region) {
  return region->kind == REGION_SHARED ? actor->cluster->sync : actor->cluster->launch->sync;
}

static const uint8_t *granule_of(const Region *region, uint64_t offset) {
  return region->data + offset / GRANULE * GRANULE;
}

static void observe(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write) {
  if (!(write & EPOCH_KERNEL) || (write & actor->layout->identity_mask) == actor->identity) return;
  if (!is_strong_for(actor, write)) return;
  const uint8_t *end = region->data + offset + size;
  for (const uint8_t *at = granule_of(region, offset); at < end; at += GRANULE)
    sync_observe(table_of(actor, region), at, write, race_epoch(actor));
}

static bool was_observed(const Actor *actor, const Region *region, uint64_t offset, Epoch write) {
  Epoch loads[OBSERVERS];
  if (strength_of(write) == WEAK) return false;
  int count = sync_observers(table_of(actor, region), granule_of(region, offset), write, loads);
  for (int i = 0; i < count; i++)
    if (comes_before(actor, loads[i])) return true;
  return false;
}

// Whether an ordered write may still be unseen by the actor: it used the async proxy, the write the generic one, and no
// fence.proxy.async stands between them. PTX ISA 8.6.
static bool unseen(const Actor *actor, Epoch write) {
  if (!actor->async || !(write & EPOCH_KERNEL) || write & EPOCH_ASYNC) return false;
  const Cluster *cluster = actor->cluster;
  const EpochLayout *layout = cluster->launch->epochs;
  bool same = epoch_cluster(layout, write) == cluster->id;
  if (same && epoch_thread(layout, write) == actor->issuer && actor->visible >= epoch_clock(layout, write))
    return false;
  const Clocks *clocks = same ? actor->known : clocks_imported(actor->known, epoch_cluster(layout, write));
  return !clocks ||
         clocks->clock[CLOCK_VISIBLE * clocks->count + (int)epoch_thread(layout, write)] < epoch_clock(layout, write);
}

// ---- reports ----

// Two accesses that nothing orders come in one order or the other, as the schedule has it. What a pair is called and how
// it is told depends on the two alone: whether each reads or writes, whether it is asynchronous, and whether the
// one comes after the other's beginning and has just not waited for it.
typedef enum Doer { THREAD, OPERATION } Doer;

// Whether the actor comes after the beginning of the operation whose access it meets.
static bool after_beginning(const Actor *actor, Epoch epoch) {
  const EpochLayout *layout = actor->layout;
  AsyncIssue issue = agent_issue(actor->cluster, epoch_thread(layout, epoch), epoch_clock(layout, epoch));
  uint32_t threads = issue.warps * LANES;
  bool issued_too = actor->issuer / threads == issue.thread / threads;
  return (issued_too && issue.mask >> actor->issuer % LANES & 1) || knows(actor, issue.thread, issue.clock);
}

static const char *sentence_of_race(Doer reader, Doer writer) {
  static const char *const sentences[][2] = {
      [THREAD] = {"reads what another thread writes, and nothing orders the two",
                  "reads what an asynchronous operation writes, and nothing orders the two: neither has the thread "
                  "waited for it, nor does it begin after the read"},
      [OPERATION] =
          {"an asynchronous operation reads what a thread writes, and nothing orders the two: neither does it "
           "begin after the write, nor has the thread waited for it",
           "an asynchronous operation reads what another one writes, and nothing orders the two: neither "
           "begins after a wait for the other"},
  };
  return sentences[reader][writer];
}

static const char *sentence_of_writes(Doer one, Doer other) {
  return one == THREAD && other == THREAD
             ? "writes what another thread writes, and nothing orders the two"
             : "an asynchronous operation writes what is written elsewhere too, and nothing orders the two";
}

static const char *sentence_of_sizes(const Actor *actor, uint32_t other, bool other_first, char *text, size_t size) {
  int own = actor->inst->size, others = element_size(actor, other);
  snprintf(
      text, size,
      "both are strong, but of different sizes, %d and %d bytes. PTX orders strong accesses only if both are of the "
      "same place and size: one that polls acquires nothing here\n"
      "Store the flag and load it with one type.",
      other_first ? others : own, other_first ? own : others);
  return text;
}

// Whether the other thread, of the same block, had exited when all threads left of the block met at a barrier. For the async
// proxy what it wrote must have been fenced, too: before it exited, or behind the barrier.
static bool exited_before_barrier(const Actor *actor, Epoch other, bool other_writes) {
  const Cluster *cluster = actor->cluster;
  const Block *block = actor->warp->block;
  uint32_t thread = epoch_thread(actor->layout, other), per_block = (uint32_t)block->warp_count * LANES;
  uint32_t lanes = (uint32_t)cluster->lane_count;
  if (actor->issuer >= lanes || thread >= lanes || epoch_cluster(actor->layout, other) != cluster->id ||
      thread / per_block != (uint32_t)block->rank)
    return false;
  const Warp *warp = &block->warps[thread % per_block / LANES];
  int lane = (int)(thread % LANES);
  if (warp->live >> lane & 1 || warp->left[lane] >= block->phases) return false;
  return !actor->async || !other_writes ||
         warp->clocks[lane].covered[CLOCK_VISIBLE] >= epoch_clock(actor->layout, other) ||
         actor->warp->fenced[actor->issuer % LANES] > warp->left[lane];
}

static bool is_ldmatrix(const Inst *inst) { return !strcmp(inst->source->opcode, "ldmatrix"); }

// Whether the two are an ldmatrix and a store by lanes of one warp, in the order of its program: all lanes execute the ldmatrix
// together, shared memory serves a warp's accesses in their order, and ptxas keeps it. A cp.async is a store when it follows.
static bool is_in_order_of_warp(const Actor *actor, Epoch other, bool writes) {
  const Cluster *cluster = actor->cluster;
  uint32_t lanes = (uint32_t)cluster->lane_count, thread = epoch_thread(actor->layout, other);
  if (epoch_cluster(actor->layout, other) != cluster->id || thread >= lanes || actor->issuer >= lanes ||
      thread / LANES != actor->issuer / LANES)
    return false;
  const Inst *one = actor->inst, *two = &cluster->launch->program->code[epoch_pc(actor->layout, other)];
  MemoryUse use = writes ? one->row->memory : two->row->memory;
  bool copies = use == MEMORY_COPY || use == MEMORY_CACHED_COPY;
  if (actor->thread >= lanes) return writes && copies && is_ldmatrix(two);
  return use == MEMORY_STORE && is_ldmatrix(writes ? two : one);
}

// Of two accesses that nothing orders, what the advice knows.
typedef struct Pair {
  const Actor *actor;
  const Region *region;
  uint64_t offset;
  Epoch other;
  bool writes, other_writes;
} Pair;

// The thread of a remembered access of the actor's cluster; of an operation its issuer.
static uint32_t thread_of(const Actor *actor, Epoch epoch) {
  uint32_t thread = epoch_thread(actor->layout, epoch);
  bool is_lane = thread < (uint32_t)actor->cluster->lane_count;
  return is_lane ? thread : agent_issue(actor->cluster, thread, epoch_clock(actor->layout, epoch)).thread;
}

static const Inst *inst_of(const Actor *actor, Epoch epoch) {
  return &actor->cluster->launch->program->code[epoch_pc(actor->layout, epoch)];
}

// Neither has waited for the other; `other` is an operation's access, after whose beginning the actor comes.
static void advise_wait(Advice *advice, const Pair *pair) {
  const Actor *actor = pair->actor;
  uint32_t agent = epoch_thread(actor->layout, pair->other), clock = epoch_clock(actor->layout, pair->other);
  Unwaited unwaited = {.cluster = actor->cluster,
                       .inst = inst_of(actor, pair->other),
                       .agent = agent,
                       .clock = clock,
                       .issue = agent_issue(actor->cluster, agent, clock),
                       .thread = actor->issuer,
                       .known = actor->known,
                       .use = actor->inst};
  agents_advice(actor->cluster)(advice, &unwaited);
}

// Neither access knows of the other, and at least one is an operation's. The parties are the issuers.
static void advise_operations(Advice *advice, const Launch *launch, const Party *one, bool one_is_operation,
                              const Party *other, bool other_block) {
  const Party *operation = one_is_operation ? one : other, *access = one_is_operation ? other : one;
  const PtxModule *module = launch->program->module;
  LineText issue = named_line(module, operation->inst->source), use = named_line(module, access->inst->source);
  const char *reach = other_block ? ", at one in the memory of the block that issues the operation," : "";
  if (one->inst == other->inst)
    advice_add(advice,
               "Several threads issue this operation for the same bytes: let one thread issue it. If they belong "
               "to different rounds, the second must begin after a wait for the first.");
  else if (operation->writes && access->writes)
    advice_add(advice,
               "Begin the operation at %s after the write at %s: each thread that writes arrives at an mbarrier "
               "afterwards%s and the thread that issues the operation waits for all these arrivals.",
               issue.text, use.text, reach);
  else if (operation->writes)
    advice_add(
        advice,
        "If %s needs the new bytes, wait for the operation before it. If it needs the old ones: each thread that "
        "reads arrives at an mbarrier afterwards%s and the thread that issues the operation at %s waits for all "
        "these arrivals.",
        use.text, reach, issue.text);
  else
    advice_add(
        advice,
        "If the operation at %s reads what %s writes, put a barrier after the write, before the operation begins. "
        "If %s replaces what the operation reads, wait for the operation before.",
        issue.text, use.text, use.text);
}

static void advise_race(Advice *advice, const Pair *pair, bool is_operation, bool other_is_operation) {
  const Actor *actor = pair->actor;
  const Launch *launch = actor->cluster->launch;
  uint32_t cluster = epoch_cluster(actor->layout, pair->other);
  bool near = cluster == actor->cluster->id, shared = pair->region->kind == REGION_SHARED;
  Party one = {actor->inst, pair->writes, actor->cluster->id, actor->issuer},
        other = {inst_of(actor, pair->other), pair->other_writes, cluster,
                 near ? thread_of(actor, pair->other) : epoch_thread(actor->layout, pair->other)};
  uint32_t threads = (uint32_t)(actor->cluster->lane_count / actor->cluster->block_count);
  bool same_block = one.cluster == other.cluster && one.thread / threads == other.thread / threads;
  if (is_operation || other_is_operation) {
    advise_operations(advice, launch, &one, is_operation, &other, !same_block);
    return;
  }
  if (shared && same_block && pair->writes && pair->other_writes && one.inst != other.inst)
    if (advise_overlap(advice, actor->cluster, pair->region, pair->offset, &one, pair->other)) return;
  advise_threads(advice, launch, actor->cluster, shared, &one, &other);
}

typedef struct RaceText {
  char text[HAZARD_DETAIL];
} RaceText;

static RaceText with_advice(const char *sentence, const Advice *advice) {
  RaceText text;
  snprintf(text.text, sizeof text.text, "%s\n%s", sentence, advice->text);
  return text;
}

// Reports a pair: its reader first; of two writes the one that stands later in the program.
static void report_race(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch other, bool writes,
                        bool other_writes) {
  const EpochLayout *layout = actor->layout;
  uint32_t lanes = (uint32_t)actor->cluster->lane_count;
  // Between clusters an operation is a thread like others: no wait reaches from one to the other.
  bool near = epoch_cluster(layout, other) == actor->cluster->id;
  Doer doer = near && actor->thread >= lanes ? OPERATION : THREAD;
  Doer other_doer = near && epoch_thread(layout, other) >= lanes ? OPERATION : THREAD;
  HazardKind kind = region->kind == REGION_SHARED ? HAZARD_SHARED_RACE : HAZARD_GLOBAL_RACE;
  const char *sentence = writes && other_writes ? sentence_of_writes(doer, other_doer)
                         : writes               ? sentence_of_race(other_doer, doer)
                                                : sentence_of_race(doer, other_doer);
  bool strong = actor->strength != WEAK && strength_of(other) != WEAK;
  if (strong)
    sentence = "both are strong, and the scope of one (.cta, .cluster) does not include the thread that does the other";
  bool other_first = writes && (!other_writes || epoch_pc(layout, other) > pc_of(actor));
  char sizes[300];
  bool other_size = strong && !same_size(actor, epoch_pc(layout, other));
  if (other_size) sentence = sentence_of_sizes(actor, epoch_pc(layout, other), other_first, sizes, sizeof sizes);
  bool unwaited = other_doer == OPERATION && after_beginning(actor, other);
  bool narrow = unwaited && actor->cluster->arrived_narrowly;
  if (unwaited) {
    kind = writes ? HAZARD_OVERWRITE_IN_FLIGHT : HAZARD_READ_BEFORE_WAIT;
    sentence = !writes        ? "reads what an asynchronous operation writes, and has not waited for it"
               : other_writes ? "writes what an asynchronous operation writes, and has not waited for it"
                              : "writes what an asynchronous operation reads, and has not waited for it";
    if (narrow)
      sentence = writes ? "writes what an asynchronous operation accesses, and has not waited for it. An arrival from "
                          "another block hands on nothing if its scope is .cta, the default: it needs .release.cluster"
                        : "reads what an asynchronous operation writes, and has not waited for it. An arrival from "
                          "another block hands on nothing if its scope is .cta, the default: it needs .release.cluster";
    other_first = false;
  }
  bool in_order = writes != other_writes && is_in_order_of_warp(actor, other, writes);
  bool formal = in_order || exited_before_barrier(actor, other, other_writes);
  if (in_order)
    sentence =
        "a store and an ldmatrix by lanes of one warp, with no __syncwarp between. All lanes execute the ldmatrix "
        "together, and an H200 keeps the order (tests/rules)";
  else if (formal)
    sentence =
        "only a barrier that came after the other thread's exit orders the two. PTX counts no exit as an arrival, "
        "but the barrier waits for all threads that have not exited (CUDA programming guide, __syncthreads)";
  HazardGrade grade = formal ? HAZARD_FORMAL : HAZARD_FAULT;
  if (hazard_known_conflict(grade, actor->warp, actor->inst, kind, other, other_first)) return;
  Advice advice = {.used = 0};
  const Pair pair = {actor, region, offset, other, writes, other_writes};
  if (in_order)
    advice_add(&advice, "Put __syncwarp() between the two.");
  else if (formal)
    advice_add(&advice, "Let all threads of the block reach the barrier before they exit.");
  else if (narrow)
    advice_add(&advice, "Write .release.cluster at arrivals for another block.");
  else if (other_size && !unwaited)
    advice_add(&advice, "Access the place with one size everywhere.");
  else if (strong && !unwaited)
    advice_add(&advice, "Give both accesses a scope that includes the other thread: atomicAdd() in the place of "
                        "atomicAdd_block(), .gpu in the place of .cta.");
  else if (unwaited)
    advise_wait(&advice, &pair);
  else
    advise_race(&advice, &pair, doer == OPERATION, other_doer == OPERATION);
  hazard_report_conflict(grade, actor->warp, actor->inst, actor->lane, kind, region->base + offset, size, other,
                         other_first, with_advice(sentence, &advice).text);
}

// Whether a cp.async wrote.
static bool was_copied(const Actor *actor, Epoch write) {
  MemoryUse use = actor->cluster->launch->program->code[epoch_pc(actor->layout, write)].row->memory;
  return use == MEMORY_COPY || use == MEMORY_CACHED_COPY;
}

static void report_unseen(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write) {
  bool copied = was_copied(actor, write);
  const char *known = actor->unseen_is_known;
  HazardGrade grade = copied ? HAZARD_FORMAL : known ? HAZARD_NOTE : HAZARD_FAULT;
  if (hazard_known_conflict(grade, actor->warp, actor->inst, HAZARD_PROXY_FENCE, write, false)) return;
  Advice advice = {.used = 0};
  bool near = epoch_cluster(actor->layout, write) == actor->cluster->id;
  advise_proxy_fence(&advice, actor->cluster->launch, inst_of(actor, write), actor->inst,
                     near && thread_of(actor, write) == actor->issuer);
  const char *sentence =
      copied ? "the async proxy uses bytes that a cp.async has copied, and no fence.proxy.async stands between. The "
               "copy is "
               "waited for, and an H200 is right without the fence (tests/rules)"
             : "the async proxy uses bytes written through the generic proxy, and no fence.proxy.async stands between";
  hazard_report_conflict(grade, actor->warp, actor->inst, actor->lane, HAZARD_PROXY_FENCE, region->base + offset, size,
                         write, false, known ? known : with_advice(sentence, &advice).text);
}

static void report_own_part(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write) {
  hazard_report_conflict(HAZARD_FORMAL, actor->warp, actor->inst, actor->lane, HAZARD_SHARED_RACE,
                         region->base + offset, size, write, false, actor->own_is_known);
}

static void report_equal(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write) {
  HazardKind kind = region->kind == REGION_SHARED ? HAZARD_SHARED_RACE : HAZARD_GLOBAL_RACE;
  hazard_report_conflict(
      HAZARD_FORMAL, actor->warp, actor->inst, actor->lane, kind, region->base + offset, size, write,
      epoch_pc(actor->layout, write) > pc_of(actor),
      "writes what another thread writes, and nothing orders the two. Both store the same bytes, and "
      "an H200 has them after either order (tests/rules)\nLet one of the threads store, or put a barrier "
      "between.");
}

static void report_guess(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch other,
                         bool other_reads) {
  HazardKind kind = region->kind == REGION_SHARED ? HAZARD_SHARED_RACE : HAZARD_GLOBAL_RACE;
  hazard_report_conflict(HAZARD_FORMAL, actor->warp, actor->inst, actor->lane, kind, region->base + offset, size, other,
                         other_reads,
                         "a plain load reads what others change by atomics, and nothing orders the two. The value is "
                         "only the first guess of a compare-and-swap on the same place, which fails if it is wrong: an "
                         "H200 lost no change (tests/rules)\nLoad the guess as volatile, or by an atomic load.");
}

static void report_narrow(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch other) {
  bool of_thread = epoch_thread(actor->layout, other) < (uint32_t)actor->cluster->lane_count;
  hazard_report_conflict(
      HAZARD_FORMAL, actor->warp, actor->inst, actor->lane, HAZARD_SHARED_RACE, region->base + offset, size, other,
      true,
      of_thread ? "only an arrival at another block's mbarrier orders the two, and its scope is .cta, the default: PTX "
                  "asks for .release.cluster. On an H200 no copy was so fast that it overtook the load; a store of the "
                  "other block was (tests/rules)\nWrite .release.cluster at the arrival."
                : "only an arrival at another block's mbarrier orders the two, and its scope is .cta, the default: PTX "
                  "asks for .release.cluster. The first of them is over when its waiter arrives, and an H200 was right "
                  "(tests/rules)\nWrite .release.cluster at the arrival.");
}

static void report_late_load(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch read) {
  if (hazard_known_conflict(HAZARD_FAULT, actor->warp, actor->inst, HAZARD_PROXY_FENCE, read, true)) return;
  Advice advice = {.used = 0};
  advise_proxy_fence(&advice, actor->cluster->launch, inst_of(actor, read), actor->inst,
                     thread_of(actor, read) == actor->issuer);
  const char *sentence = "an asynchronous operation writes what a load may not have read yet: the thread handed the "
                         "bytes on before it used the value, with no fence.proxy.async between. An H200 may load the "
                         "new bytes (tests/rules)";
  hazard_report_conflict(HAZARD_FAULT, actor->warp, actor->inst, actor->lane, HAZARD_PROXY_FENCE, region->base + offset,
                         size, read, true, with_advice(sentence, &advice).text);
}

// ---- reads ----

// What ld finds is reported when something depends on it: undefined.h.
static void report_unwritten(const Actor *actor, const Region *region, uint64_t offset, int size) {
  if (actor->inst->row->values == VALUES_OF_MEMORY) {
    actor->warp->found_unwritten = true;
    return;
  }
  if (hazard_known(HAZARD_FAULT, actor->warp, actor->inst, HAZARD_UNINITIALISED_READ)) return;
  hazard_report(actor->warp, actor->inst, actor->lane, HAZARD_UNINITIALISED_READ, region->base + offset, size, "%s",
                unwritten_text(actor->cluster->launch, actor->inst, region, offset, "").text);
}

// False after a report.
static bool check_read(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write) {
  bool formal = write != EPOCH_NONE && actor->own && !ordered(actor, write) && ordered(actor->own, write);
  const Actor *judge = formal ? actor->own : actor;
  if (write == EPOCH_NONE)
    report_unwritten(actor, region, offset, size);
  else if (!ordered(judge, write))
    report_race(actor, region, offset, size, write, false, true);
  else if (unseen(judge, write))
    report_unseen(actor, region, offset, size, write);
  else if (formal)
    report_own_part(actor, region, offset, size, write);
  else if (race_is_guess(actor->inst, actor->cluster->launch) && !comes_before(actor, write))
    report_guess(actor, region, offset, size, write, false);
  else {
    if (actor->strength != WEAK) observe(actor, region, offset, size, write);
    return true;
  }
  return false;
}

// ---- reads that later ones stand for ----
//
// A read that comes before another need not be remembered beside it: what comes after the later one comes after both.
// That is so of what threads read, for they hand on all that they know. A thread that has waited for an operation
// knows of it and of the operations before it, and not of all that its threads had read. And a weak read is not
// replaced by a strong one, which strong writes need not come after.

// Whether b remembers nothing that a does not: the same lanes of the same warp, no later.
static bool covers(const ReadNode *a, const ReadNode *b) {
  return a->warp == b->warp && (b->mask & ~a->mask) == 0 && b->clock <= a->clock && a->strength <= b->strength;
}

// Whether lanes of a warp, or an agent, that read at the clock and with the strength come before the reads of the actor and
// the lanes after it, one a turn.
static bool superseded(const Actor *actor, int turns, uint32_t warp, Mask mask, uint32_t clock, Strength strength) {
  uint32_t lanes = (uint32_t)actor->cluster->lane_count;
  if (actor->strength > strength || (actor->thread >= lanes && warp * LANES < lanes)) return false;
  return know_lanes(actor, turns, warp * LANES, mask, clock);
}

// The lanes of a mask in `turns` turns, one after the other.
static Mask turned_all(Mask mask, unsigned turn, int turns) {
  if (turns == LANES || mask == FULL_MASK) return mask ? FULL_MASK : 0;
  Mask all = 0;
  for (int i = 0; i < turns; i++) all |= turned(mask, turn + (unsigned)i);
  return all;
}

// Whether the two differ in the lanes of a warp alone, and one node can stand for both. Agents come and go one by one.
static bool differ_in_lanes(const Actor *actor, const ReadNode *a, const ReadNode *b) {
  return a->warp == b->warp && a->clock == b->clock && a->pc == b->pc && a->strength == b->strength &&
         actor->thread < (uint32_t)actor->cluster->lane_count;
}

// The set when its last node and the entry are one, as for lanes that diverge and read a byte one after the other. What stands
// below was judged when that node was added, at the same clock.
static uint32_t merge_entry(ReadSets *sets, uint32_t set, const ReadNode *entry) {
  ReadNode both = *read_sets_node(sets, set);
  both.mask |= entry->mask;
  return read_sets_push(sets, both.parent, both);
}

// The set with the entry, which is the actor's, added, and whatever it covers or supersedes left out: in so many turns,
// by as many lanes that know the same. *dropped: something was left out.
static uint32_t add_entry(ReadSets *sets, uint32_t set, unsigned turn, int turns, const ReadNode *entry,
                          const Actor *actor, bool *dropped) {
  uint32_t kept[64];
  int count = 0, above = 0;          // how many are kept, and how many of them stand above the last one left out
  uint32_t rest = set, below = set;  // what stands below that one is the chain that it was
  for (; rest && count < 64; rest = read_sets_node(sets, rest)->parent) {
    const ReadNode *node = read_sets_node(sets, rest);
    if (covers(node, entry) && node->clock == entry->clock) return set;
    if (covers(entry, node) || superseded(actor, turns, node->warp, turned_all(node->mask, turn, turns), node->clock,
                                          (Strength)node->strength)) {
      *dropped = true;
      above = count;
      below = node->parent;
    } else {
      kept[count++] = rest;
    }
  }
  while (above > 0) below = read_sets_push(sets, below, *read_sets_node(sets, kept[--above]));
  return read_sets_push(sets, below, *entry);
}

// The same, remembered. What an actor knows grows while its clock stands: then more is kept than need be. What another lane
// of its warp knows is another matter: of what was superseded, in another turn, nothing is said.
static uint32_t add_read(ReadSets *sets, uint32_t set, unsigned turn, int turns, const ReadNode *entry,
                         const Actor *actor) {
  uint32_t result = read_sets_recall(sets, set, entry, turns == 1 ? turn : ANY_TURN);
  if (result) return result;
  bool merges = set && differ_in_lanes(actor, read_sets_node(sets, set), entry), dropped = false;
  result = merges ? merge_entry(sets, set, entry) : add_entry(sets, set, turn, turns, entry, actor, &dropped);
  if (!dropped || turns == 1) read_sets_remember(sets, set, entry, dropped ? turn : ANY_TURN, result);
  return result;
}

static uint32_t set_of(const EpochLayout *layout, Epoch read) {
  return (uint32_t)((read & layout->set_mask) >> LANE_BITS);
}

static unsigned turn_of(Epoch read) { return (unsigned)(read & LANE_MASK); }

// The set that a cell's read, of this cluster, stands for, in its turn.
static uint32_t as_set(const Cluster *cluster, Epoch read) {
  const EpochLayout *layout = cluster->launch->epochs;
  if (read == EPOCH_NONE) return 0;
  if (read & EPOCH_SET) return set_of(layout, read);
  uint32_t thread = epoch_thread(layout, read);
  return read_sets_push(cluster->read_sets, 0,
                        (ReadNode){.warp = (uint16_t)(thread / LANES),
                                   .mask = 1,
                                   .clock = epoch_clock(layout, read),
                                   .pc = epoch_pc(layout, read),
                                   .strength = (uint8_t)strength_of(read)});
}

// Whether the cell's only read comes before the actor's.
static bool only_superseded(const Actor *actor, Epoch read) {
  const EpochLayout *layout = actor->layout;
  if (!(read & EPOCH_KERNEL) || read & EPOCH_SET) return false;
  uint32_t thread = epoch_thread(layout, read);
  return superseded(actor, 1, thread / LANES, 1u << thread % LANES, epoch_clock(layout, read), strength_of(read));
}

Epoch race_add_reads(const Actor *actor, Mask mask, Epoch read, unsigned step, int turns) {
  const Cluster *cluster = actor->cluster;
  const EpochLayout *layout = cluster->launch->epochs;
  Epoch own = race_epoch(actor);
  uint32_t set = as_set(cluster, read);
  bool any_turn = !set || read_sets_node(cluster->read_sets, set)->any_turn;
  if (turns > 1 && step == 0 && !any_turn) return EPOCH_NONE;
  unsigned turn = any_turn ? (unsigned)__builtin_ctz(mask) : turn_of(read);
  ReadNode entry = {.warp = (uint16_t)(actor->thread / LANES),
                    .mask = turned_back(mask, turn),
                    .clock = actor->clock,
                    .pc = pc_of(actor),
                    .strength = (uint8_t)actor->strength};
  set = add_read(cluster->read_sets, set, turn, turns, &entry, actor);
  if (set > layout->set_mask >> LANE_BITS) {
    hazard_stop(actor->warp, actor->inst, actor->lane, HAZARD_STEP_LIMIT, 0, 0,
                "more patterns of reads than the race check can count; run with --hazards=off");
    return own;
  }
  uint64_t keep = layout->cluster_mask << layout->cluster_shift | layout->pc_mask << layout->pc_shift;
  // A set of another cluster's is judged by this word alone: it is as strong as the weakest of its reads.
  Strength least = read == EPOCH_NONE || actor->strength < strength_of(read) ? actor->strength : strength_of(read);
  return EPOCH_KERNEL | EPOCH_SET | (uint64_t)least << EPOCH_STRENGTH_SHIFT | (own & keep) |
         (uint64_t)set << LANE_BITS | turn;
}

// The reads of a cell after the actor, and with it the lanes of mask that share its warp and clock, have read it too.
static Epoch reads_with(const Actor *actor, Mask mask, Epoch read) {
  const Cluster *cluster = actor->cluster;
  const EpochLayout *layout = cluster->launch->epochs;
  Epoch own = race_epoch(actor);
  bool single = (mask & (mask - 1)) == 0;
  bool own_before = (read & layout->identity_mask) == actor->identity && actor->strength <= strength_of(read);
  if (single && (read == EPOCH_NONE || own_before)) return own;
  if (only_superseded(actor, read)) read = EPOCH_NONE;
  if (single && read == EPOCH_NONE) return own;
  return race_add_reads(actor, mask, read, 0, 1);
}

// A cell's reads before one of this cluster is added: one of another is moved aside.
static void make_room(const Cluster *cluster, Cell *cell) {
  if (!cell->read || epoch_cluster(cluster->launch->epochs, cell->read) == cluster->id) return;
  cell->foreign = cell->read;
  cell->read = EPOCH_NONE;
}

// Releases the sets that no byte holds any more. Those that bytes of global memory have held stay: other clusters use it
// at the same time.
static void collect_sets(const Cluster *cluster) {
  const Launch *launch = cluster->launch;
  for (int rank = 0; rank < cluster->block_count; rank++) {
    const Region *shared = cluster->blocks[rank].shared;
    for (uint64_t offset = 0, run; offset < shared->size; offset += run) {
      Cell cell;
      run = (uint64_t)shadow_run(&shared->shadow, offset, (int)(shared->size - offset), launch->number, &cell);
      if (cell.read & EPOCH_SET) read_sets_keep(cluster->read_sets, set_of(launch->epochs, cell.read));
    }
  }
  read_sets_sweep(cluster->read_sets);
}

void race_keep_reads(const Cluster *cluster, const Region *region, Epoch read) {
  if (!(read & EPOCH_SET)) return;
  if (region->kind != REGION_SHARED) read_sets_pin(cluster->read_sets, set_of(cluster->launch->epochs, read));
  if (read_sets_full(cluster->read_sets)) collect_sets(cluster);
}

// The bytes, whose cells are equal, have been read: `read` takes the place of the cell's.
static void remember_read(const Cluster *cluster, Region *region, uint64_t offset, int size, const Cell *cell,
                          Epoch read) {
  if (read == cell->read) return;
  shadow_read(&region->shadow, offset, size, cluster->launch->number, read, cell->foreign);
  race_keep_reads(cluster, region, read);
}

void race_read_by(const Actor *actor, Region *region, uint64_t offset, int size) {
  uint32_t launch = actor->cluster->launch->number;
  if (actor->cluster->launch->overlaps) overlap_check(actor, region, offset, size, false);
  for (int run; size > 0; size -= run, offset += (uint64_t)run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset, size, launch, &cell);
    check_read(actor, region, offset, run, cell.write);
    make_room(actor->cluster, &cell);
    Epoch read = reads_with(actor, 1u << actor->thread % LANES, cell.read);
    remember_read(actor->cluster, region, offset, run, &cell, read);
  }
}

// A cell's reads with those of the lanes of mask: lanes of one clock that know the same, nearly always all, are one entry.
static Epoch reads_with_lanes(Warp *warp, const Inst *inst, Mask mask, Epoch read, Strength strength) {
  while (mask) {
    int first = __builtin_ctz(mask);
    Mask same = 0;
    for (Mask rest = mask; rest; rest &= rest - 1)
      if (warp->clocks[__builtin_ctz(rest)].own == warp->clocks[first].own &&
          warp->clocks[__builtin_ctz(rest)].known == warp->clocks[first].known)
        same |= rest & -rest;
    Actor actor = race_lane(warp, inst, first, strength);
    read = reads_with(&actor, same, read);
    mask &= ~same;
  }
  return read;
}

void race_read(Warp *warp, const Inst *inst, Mask mask, Region *region, uint64_t offset, int size, Strength strength) {
  Actor actor = race_lane(warp, inst, __builtin_ctz(mask), strength);
  if ((mask & (mask - 1)) == 0) {
    race_read_by(&actor, region, offset, size);
    return;
  }
  uint32_t launch = warp_launch(warp)->number;
  for (Mask rest = warp_launch(warp)->overlaps ? mask : 0; rest; rest &= rest - 1) {
    race_set_lane(&actor, __builtin_ctz(rest));
    overlap_check(&actor, region, offset, size, false);
  }
  for (int run; size > 0; size -= run, offset += (uint64_t)run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset, size, launch, &cell);
    for (Mask rest = mask; rest; rest &= rest - 1) {
      race_set_lane(&actor, __builtin_ctz(rest));
      if (!check_read(&actor, region, offset, run, cell.write) || !(cell.write & EPOCH_KERNEL)) break;
    }
    make_room(actor.cluster, &cell);
    Epoch read = reads_with_lanes(warp, inst, mask, cell.read, strength);
    remember_read(actor.cluster, region, offset, run, &cell, read);
  }
}

// A read that does not come before the actor's write; EPOCH_NONE when all do.
static Epoch unordered_read(const Actor *actor, Epoch read) {
  const Cluster *cluster = actor->cluster;
  const EpochLayout *layout = cluster->launch->epochs;
  if (!(read & EPOCH_SET) || epoch_cluster(layout, read) != cluster->id)
    return ordered(actor, read) ? EPOCH_NONE : read;
  const ReadNode *node;
  for (uint32_t n = set_of(layout, read); n; n = node->parent) {
    node = read_sets_node(cluster->read_sets, n);
    Mask mask = turned(node->mask, turn_of(read));
    Strength strength = (Strength)node->strength;
    uint32_t warp = node->warp * (uint32_t)LANES;
    if (actor->strength != WEAK && same_size(actor, node->pc) &&
        both_strong(actor, strength, true, warp + (uint32_t)__builtin_ctz(mask), node->clock))
      continue;
    for (Mask rest = mask; rest; rest &= rest - 1) {
      uint32_t thread = warp + (uint32_t)__builtin_ctz(rest);
      if (!knows(actor, thread, node->clock))
        return epoch_at(cluster->launch, cluster->id, node->pc, thread, node->clock) | (uint64_t)strength
                                                                                           << EPOCH_STRENGTH_SHIFT;
    }
  }
  return EPOCH_NONE;
}

// A first guess (memory/first_guess.h) among the reads that needs no order with the actor's strong write, and has none.
static Epoch unordered_guess(const Actor *actor, Epoch read) {
  const Cluster *cluster = actor->cluster;
  const Program *program = cluster->launch->program;
  const EpochLayout *layout = actor->layout;
  if (!program->first_guesses || !(read & EPOCH_KERNEL)) return EPOCH_NONE;
  if (!(read & EPOCH_SET) || epoch_cluster(layout, read) != cluster->id)
    return program->first_guesses[epoch_pc(layout, read)] && !comes_before(actor, read) ? read : EPOCH_NONE;
  const ReadNode *node;
  for (uint32_t n = set_of(layout, read); n; n = node->parent) {
    node = read_sets_node(cluster->read_sets, n);
    Mask lanes = program->first_guesses[node->pc] ? turned(node->mask, turn_of(read)) : 0;
    for (; lanes; lanes &= lanes - 1) {
      uint32_t thread = node->warp * (uint32_t)LANES + (uint32_t)__builtin_ctz(lanes);
      if (!knows(actor, thread, node->clock))
        return epoch_at(cluster->launch, cluster->id, node->pc, thread, node->clock);
    }
  }
  return EPOCH_NONE;
}

bool race_knows_reads(const Actor *actor, Epoch read, unsigned step, int turns) {
  const ReadNode *node;
  uint32_t self = actor->thread / LANES;
  Mask own = 1u << actor->thread % LANES;
  for (uint32_t n = set_of(actor->layout, read); n; n = node->parent) {
    node = read_sets_node(actor->cluster->read_sets, n);
    bool is_own = node->warp == self && turned(node->mask, turn_of(read)) == own && (step || turns == 1);
    Mask mask = turned_all(node->mask, turn_of(read), step ? turns : 1);
    if (!is_own && !know_lanes(actor, turns, node->warp * (uint32_t)LANES, mask, node->clock)) return false;
  }
  return true;
}

// Whether a load of the thread at that clock may be under way, as far as the actor knows, which comes after it.
static bool in_flight(const Actor *actor, uint32_t pc, uint32_t thread, uint32_t clock) {
  const Clocks *known = actor->known;
  if (thread >= (uint32_t)actor->cluster->lane_count || !is_late_load(actor->cluster->launch->program, pc))
    return false;
  return !known || (known->clock[CLOCK_LOADED * known->count + (int)thread] < clock &&
                    known->clock[CLOCK_VISIBLE * known->count + (int)thread] < clock);
}

// A load of the remembered reads that may be under way; EPOCH_NONE when all are over.
static Epoch load_in_flight(const Actor *actor, Epoch read) {
  const Cluster *cluster = actor->cluster;
  const EpochLayout *layout = actor->layout;
  if (!actor->async || !cluster->launch->program->watches || !(read & EPOCH_KERNEL)) return EPOCH_NONE;
  if (epoch_cluster(layout, read) != cluster->id) return EPOCH_NONE;
  if (!(read & EPOCH_SET))
    return in_flight(actor, epoch_pc(layout, read), epoch_thread(layout, read), epoch_clock(layout, read)) ? read
                                                                                                           : EPOCH_NONE;
  const ReadNode *node;
  for (uint32_t n = set_of(layout, read); n; n = node->parent) {
    node = read_sets_node(cluster->read_sets, n);
    for (Mask rest = turned(node->mask, turn_of(read)); rest; rest &= rest - 1) {
      uint32_t thread = node->warp * (uint32_t)LANES + (uint32_t)__builtin_ctz(rest);
      if (in_flight(actor, node->pc, thread, node->clock))
        return epoch_at(cluster->launch, cluster->id, node->pc, thread, node->clock);
    }
  }
  return EPOCH_NONE;
}

// Whether the remembered write is another lane's of this same instruction, and wrote the same value.
static bool same_store(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write,
                       const uint8_t *value) {
  const EpochLayout *layout = actor->layout;
  uint32_t thread = epoch_thread(layout, write);
  return value && epoch_pc(layout, write) == pc_of(actor) && epoch_cluster(layout, write) == actor->cluster->id &&
         thread / LANES == actor->thread / LANES &&
         actor->warp->clocks[thread % LANES].own == epoch_clock(layout, write) &&
         !memcmp(region->data + offset, value, (size_t)size);
}

// Whether the actor stores the bytes that another thread's plain store has put there: no order of the two makes a difference.
static bool stores_equal(const Actor *actor, const Region *region, uint64_t offset, int size, Epoch write,
                         const uint8_t *value) {
  const Cluster *cluster = actor->cluster;
  const Inst *other = &cluster->launch->program->code[epoch_pc(actor->layout, write)];
  bool near = epoch_cluster(actor->layout, write) == cluster->id;
  if (near && epoch_thread(actor->layout, write) >= (uint32_t)cluster->lane_count) return false;
  return value && strength_of(write) == WEAK && actor->inst->row->memory == MEMORY_STORE &&
         other->row->memory == MEMORY_STORE && !memcmp(region->data + offset, value, (size_t)size);
}

static Epoch any_unordered_read(const Actor *actor, const Cell *cell) {
  Epoch read = unordered_read(actor, cell->read);
  return read != EPOCH_NONE ? read : unordered_read(actor, cell->foreign);
}

// Whether all that was done to the bytes of shared memory comes before the actor if an arrival of too narrow a scope shows what
// has ended: operations that somebody has waited for, and loads if the actor is slow. Of stores it shows nothing.
static bool ended(const Actor *actor, const Region *region, const Cell *cell, bool is_slow) {
  Actor lenient = *actor;
  lenient.lenient = cell->write & EPOCH_ASYNC ? LENIENT_TO_OPERATIONS : STRICT;
  if (region->kind != REGION_SHARED || !ordered(&lenient, cell->write)) return false;
  lenient.lenient = is_slow ? LENIENT : LENIENT_TO_OPERATIONS;
  return any_unordered_read(&lenient, cell) == EPOCH_NONE;
}

static void check_guesses(const Actor *actor, const Region *region, uint64_t offset, int size, const Cell *cell) {
  Epoch guess = unordered_guess(actor, cell->read);
  if (guess == EPOCH_NONE) guess = unordered_guess(actor, cell->foreign);
  if (guess != EPOCH_NONE) report_guess(actor, region, offset, size, guess, true);
}

static void check_write(const Actor *actor, const Region *region, uint64_t offset, int size, const Cell *cell,
                        const uint8_t *value) {
  bool after_write = ordered(actor, cell->write) || was_observed(actor, region, offset, cell->write);
  if (!after_write && same_store(actor, region, offset, size, cell->write, value)) return;
  if (!after_write && stores_equal(actor, region, offset, size, cell->write, value)) {
    report_equal(actor, region, offset, size, cell->write);
    after_write = true;
  }
  Epoch other = after_write ? any_unordered_read(actor, cell) : cell->write;
  if (other == EPOCH_NONE) {
    Epoch late = load_in_flight(actor, cell->read);
    if (unseen(actor, cell->write)) report_unseen(actor, region, offset, size, cell->write);
    if (late != EPOCH_NONE) report_late_load(actor, region, offset, size, late);
    if (actor->strength != WEAK) check_guesses(actor, region, offset, size, cell);
  } else if (ended(actor, region, cell, actor->async)) {
    Epoch read = any_unordered_read(actor, cell);
    report_narrow(actor, region, offset, size, read != EPOCH_NONE ? read : other);
  } else {
    report_race(actor, region, offset, size, other, true, !after_write);
  }
}

void race_write_by(const Actor *actor, Region *region, uint64_t offset, int size, const void *bytes) {
  const uint8_t *value = bytes;
  uint32_t launch = actor->cluster->launch->number;
  if (actor->cluster->launch->overlaps) overlap_check(actor, region, offset, size, true);
  for (int done = 0, run; done < size; done += run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset + (uint64_t)done, size - done, launch, &cell);
    check_write(actor, region, offset + (uint64_t)done, run, &cell, value ? value + done : NULL);
  }
  shadow_write(&region->shadow, offset, size, launch, race_epoch(actor));
}

void race_write(Warp *warp, const Inst *inst, int lane, Region *region, uint64_t offset, int size, const void *value) {
  Actor actor = race_lane(warp, inst, lane, WEAK);
  race_write_by(&actor, region, offset, size, value);
}

void race_atomic(Warp *warp, const Inst *inst, int lane, Region *region, uint64_t offset, int size, Strength strength) {
  Actor actor = race_lane(warp, inst, lane, strength);
  for (int done = 0, run; done < size; done += run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset + (uint64_t)done, size - done, warp_launch(warp)->number, &cell);
    if (cell.write != EPOCH_NONE) continue;
    report_unwritten(&actor, region, offset, size);
    break;
  }
  race_write_by(&actor, region, offset, size, NULL);
}

// ---- for others ----

bool race_knows_thread(const Actor *actor, uint32_t thread, uint32_t clock) { return knows(actor, thread, clock); }

void race_last_writes(const Actor *actor, const Region *region, uint64_t offset, int size, LastWrites *writes) {
  for (int done = 0, run; done < size; done += run) {
    Cell cell;
    run = shadow_run(&region->shadow, offset + (uint64_t)done, size - done, actor->cluster->launch->number, &cell);
    writes->hash = (writes->hash ^ cell.write ^ (uint64_t)run << 32) * 0x9e3779b97f4a7c15ull;
    writes->ordered &= ordered(actor, cell.write);
    if (cell.write & EPOCH_KERNEL) writes->by_kernel = cell.write;
  }
}

// ---- the end of a block ----

static bool is_of_other_block(const Actor *actor, Epoch epoch) {
  const Block *block = actor->warp->block;
  uint32_t thread = epoch_thread(actor->layout, epoch), per_block = (uint32_t)block->warp_count * LANES;
  return epoch != EPOCH_NONE && thread < (uint32_t)actor->cluster->lane_count &&
         thread / per_block != (uint32_t)block->rank;
}

static void report_end(const Actor *actor, const Region *shared, uint64_t offset, int size, Epoch other, bool formal) {
  hazard_report_conflict(
      formal ? HAZARD_FORMAL : HAZARD_FAULT, actor->warp, actor->inst, actor->lane, HAZARD_OUT_OF_BOUNDS,
      shared->base + offset, size, other, false,
      formal
          ? "the block exits, and its shared memory with it. Only an arrival whose scope is .cta, the default, "
            "shows that a thread of another block is done there: PTX asks for .release.cluster. But its wait has "
            "ended, so the arrival has come\nWrite .release.cluster at the arrival."
          : "the block exits, and its shared memory with it, without knowing that a thread of another block is done "
            "there: barrier.cluster is missing before the end\nPut a cluster barrier (cluster.sync()) before the end "
            "of the kernel, for all blocks: a block stays until its peers are done with its shared memory.");
}

void race_end_block(const Actor *actor, const Region *shared) {
  bool is_told = false;  // the formal one
  for (uint64_t offset = 0, run; offset < shared->size; offset += run) {
    Cell cell;
    int size = (int)(shared->size - offset);
    run = (uint64_t)shadow_run(&shared->shadow, offset, size, actor->cluster->launch->number, &cell);
    bool after_write = ordered(actor, cell.write) || was_observed(actor, shared, offset, cell.write);
    Epoch other = after_write ? unordered_read(actor, cell.read) : cell.write;
    if (!is_of_other_block(actor, other)) continue;
    bool formal = ended(actor, shared, &cell, true);
    if (!formal || !is_told) report_end(actor, shared, offset, (int)run, other, formal);
    if (!formal) return;
    is_told = true;
  }
}
