// Reports of conflicts: hazard.h.
#include "hazard.h"

#include <stdio.h>
#include <string.h>

#include "../check/overlap.h"
#include "../warp/instruction.h"
#include "advice.h"
#include "source_line.h"
#include "undefined.h"

// Two accesses of a byte, at least one of which writes.
typedef CheckFinding Pair;

static Cluster *cluster_of(const Actor *actor) { return cluster_of_check(actor->warp->cluster); }

static const Launch *launch_of(const Actor *actor) { return cluster_of(actor)->launch; }

// The instruction of a remembered access.
static const Inst *inst_of(const Actor *actor, Epoch epoch) {
  return &launch_of(actor)->program->code[epoch_pc(actor->layout, epoch)];
}

static const Inst *own_inst(const Actor *actor) { return inst_of(actor, actor->place); }

// Why they conflict. Two accesses that nothing orders come in one order or the other, as the schedule has it: what they
// are called, and how that is told, depends on the two alone.
typedef enum Cause {
  CAUSE_UNORDERED,
  CAUSE_UNWAITED,           // the actor comes after the beginning of the other, an operation, and has not waited for it
  CAUSE_UNWAITED_NARROWLY,  // ... or the arrival that it has waited for hands on nothing
  CAUSE_SCOPE,              // both are strong, but not for each other
  CAUSE_SIZE,               // both are strong, of different sizes
  CAUSE_ORDER_OF_WARP,      // formal: an ldmatrix and a store of one warp
  CAUSE_EXIT,               // formal: a barrier after the exit of the other thread orders them
} Cause;

typedef enum Doer { THREAD, OPERATION } Doer;

// Between clusters an operation is a thread like others: no wait reaches from one to the other.
static bool is_of_same_cluster(const Pair *pair) {
  return epoch_cluster(pair->actor->layout, pair->other) == pair->actor->cluster->id;
}

static Doer doer_of(const Pair *pair) {
  return is_of_same_cluster(pair) && pair->actor->thread >= (uint32_t)pair->actor->cluster->lane_count ? OPERATION
                                                                                                       : THREAD;
}

static Doer other_doer_of(const Pair *pair) {
  uint32_t thread = epoch_thread(pair->actor->layout, pair->other);
  return is_of_same_cluster(pair) && thread >= (uint32_t)pair->actor->cluster->lane_count ? OPERATION : THREAD;
}

// Whether the actor comes after the beginning of the operation whose access it meets.
static bool after_beginning(const Actor *actor, Epoch epoch) {
  const EpochLayout *layout = actor->layout;
  AsyncIssue issue = agent_issue(actor->cluster, epoch_thread(layout, epoch), epoch_clock(layout, epoch));
  uint32_t threads = issue.warps * LANES;
  bool issued_too = actor->issuer / threads == issue.thread / threads;
  return (issued_too && issue.mask >> actor->issuer % LANES & 1) || actor_knows(actor, issue.thread, issue.clock);
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
  int own = actor->site.size, others = actor_site(actor, other)->size;
  snprintf(
      text, size,
      "both are strong, but of different sizes, %d and %d bytes. PTX orders strong accesses only if both are of the "
      "same place and size: one that polls acquires nothing here",
      other_first ? others : own, other_first ? own : others);
  return text;
}

// Whether the other thread, of the same block, had exited when all threads left of the block met at a barrier. For the
// async proxy what it wrote must have been fenced, too: before it exited, or behind the barrier.
static bool exited_before_barrier(const Actor *actor, Epoch other, bool other_writes) {
  const CheckCluster *cluster = actor->cluster;
  const Block *block = warp_of_check(actor->warp)->block;
  uint32_t thread = epoch_thread(actor->layout, other), per_block = threads_of_block(cluster);
  uint32_t lanes = (uint32_t)cluster->lane_count;
  if (actor->issuer >= lanes || thread >= lanes || epoch_cluster(actor->layout, other) != cluster->id ||
      thread / per_block != (uint32_t)block->rank)
    return false;
  const Warp *warp = &block->warps[thread % per_block / LANES];
  int lane = (int)(thread % LANES);
  if (warp->live >> lane & 1 || warp->left[lane] >= block->phases) return false;
  return !actor->async || !other_writes ||
         warp->check.clocks[lane].covered[CLOCK_VISIBLE] >= epoch_clock(actor->layout, other) ||
         warp_of_check(actor->warp)->fenced[actor->issuer % LANES] > warp->left[lane];
}

// Whether the two are an ldmatrix and a store by lanes of one warp, in the order of its program: all lanes execute the
// ldmatrix together, shared memory serves a warp's accesses in their order, and ptxas keeps it. A cp.async is a store
// when it follows.
static bool is_in_order_of_warp(const Actor *actor, Epoch other, bool writes) {
  const CheckCluster *cluster = actor->cluster;
  uint32_t lanes = (uint32_t)cluster->lane_count, thread = epoch_thread(actor->layout, other);
  if (epoch_cluster(actor->layout, other) != cluster->id || thread >= lanes || actor->issuer >= lanes ||
      thread / LANES != actor->issuer / LANES)
    return false;
  const Inst *one = own_inst(actor), *two = inst_of(actor, other);
  MemoryUse use = writes ? one->row->memory : two->row->memory;
  bool copies = use == MEMORY_COPY || use == MEMORY_CACHED_COPY;
  if (actor->thread >= lanes) return writes && copies && two->row->in_warp_order;
  return use == MEMORY_STORE && (writes ? two : one)->row->in_warp_order;
}

// The thread of a remembered access of the actor's cluster; of an operation its issuer.
static uint32_t thread_of(const Actor *actor, Epoch epoch) {
  uint32_t thread = epoch_thread(actor->layout, epoch);
  bool is_lane = thread < (uint32_t)actor->cluster->lane_count;
  return is_lane ? thread : agent_issue(actor->cluster, thread, epoch_clock(actor->layout, epoch)).thread;
}

// The actor's block in its cluster. A wgmma is an issuer of its own.
static uint32_t own_rank(const Actor *actor) { return (uint32_t)warp_of_check(actor->warp)->block->rank; }

// Neither has waited for the other; `other` is an operation's access, after whose beginning the actor comes.
static void advise_wait(Advice *advice, const Pair *pair) {
  const Actor *actor = pair->actor;
  uint32_t agent = epoch_thread(actor->layout, pair->other), clock = epoch_clock(actor->layout, pair->other);
  Unwaited unwaited = {.cluster = cluster_of(actor),
                       .inst = inst_of(actor, pair->other),
                       .agent = agent,
                       .clock = clock,
                       .issue = agent_issue(actor->cluster, agent, clock),
                       .thread = actor->issuer,
                       .rank = own_rank(actor),
                       .known = actor->known,
                       .use = own_inst(actor)};
  launch_of(actor)->advise_wait(advice, &unwaited);
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
  const Launch *launch = launch_of(actor);
  uint32_t cluster = epoch_cluster(actor->layout, pair->other);
  bool near = cluster == actor->cluster->id, shared = pair->span->region->kind == REGION_SHARED;
  Party one = {own_inst(actor), pair->writes, actor->cluster->id, actor->issuer},
        other = {inst_of(actor, pair->other), pair->other_writes, cluster,
                 near ? thread_of(actor, pair->other) : epoch_thread(actor->layout, pair->other)};
  uint32_t threads = threads_of_block(actor->cluster);
  bool same_block = near && own_rank(actor) == other.thread / threads;
  if (is_operation || other_is_operation) {
    advise_operations(advice, launch, &one, is_operation, &other, !same_block);
    return;
  }
  if (shared && same_block && pair->writes && pair->other_writes && one.inst != other.inst)
    if (advise_overlap(advice, cluster_of(actor), pair->span->region, pair->span->offset, &one, pair->other)) return;
  advise_threads(advice, launch, cluster_of(actor), shared, &one, &other);
}

typedef struct RaceText {
  char text[HAZARD_DETAIL];
} RaceText;

static RaceText with_advice(const char *sentence, const Advice *advice) {
  RaceText text;
  snprintf(text.text, sizeof text.text, "%s\n%s", sentence, advice->text);
  return text;
}

static Cause cause_of(const Pair *pair) {
  const Actor *actor = pair->actor;
  if (pair->writes != pair->other_writes && is_in_order_of_warp(actor, pair->other, pair->writes))
    return CAUSE_ORDER_OF_WARP;
  if (exited_before_barrier(actor, pair->other, pair->other_writes)) return CAUSE_EXIT;
  if (other_doer_of(pair) == OPERATION && after_beginning(actor, pair->other))
    return cluster_of(actor)->arrived_narrowly ? CAUSE_UNWAITED_NARROWLY : CAUSE_UNWAITED;
  if (actor->strength == WEAK || epoch_strength(pair->other) == WEAK) return CAUSE_UNORDERED;
  return actor_same_size(actor, epoch_pc(actor->layout, pair->other)) ? CAUSE_SCOPE : CAUSE_SIZE;
}

static bool is_unwaited(Cause cause) { return cause == CAUSE_UNWAITED || cause == CAUSE_UNWAITED_NARROWLY; }

static bool is_formal(Cause cause) { return cause == CAUSE_ORDER_OF_WARP || cause == CAUSE_EXIT; }

// A report names the reader first; of two writes the one that stands later in the program; and one that has not waited.
static bool is_other_first(const Pair *pair, Cause cause) {
  const Actor *actor = pair->actor;
  if (is_unwaited(cause) || !pair->writes) return false;
  return !pair->other_writes || epoch_pc(actor->layout, pair->other) > actor_pc(actor);
}

static HazardKind race_kind(const Span *span) {
  return span->region->kind == REGION_SHARED ? HAZARD_SHARED_RACE : HAZARD_GLOBAL_RACE;
}

static HazardKind kind_of_race(const Pair *pair, Cause cause) {
  if (is_unwaited(cause)) return pair->writes ? HAZARD_OVERWRITE_IN_FLIGHT : HAZARD_READ_BEFORE_WAIT;
  return race_kind(pair->span);
}

static const char *sentence_of_cause(const Pair *pair, Cause cause) {
  Doer doer = doer_of(pair), other = other_doer_of(pair);
  switch (cause) {
  case CAUSE_UNWAITED:
    return !pair->writes        ? "reads what an asynchronous operation writes, and has not waited for it"
           : pair->other_writes ? "writes what an asynchronous operation writes, and has not waited for it"
                                : "writes what an asynchronous operation reads, and has not waited for it";
  case CAUSE_UNWAITED_NARROWLY:
    return pair->writes
               ? "writes what an asynchronous operation accesses, and has not waited for it. An arrival from another "
                 "block hands on nothing if its scope is .cta, the default: it needs .release.cluster"
               : "reads what an asynchronous operation writes, and has not waited for it. An arrival from another "
                 "block hands on nothing if its scope is .cta, the default: it needs .release.cluster";
  case CAUSE_SCOPE:
    return "both are strong, and the scope of one (.cta, .cluster) does not include the thread that does the other";
  case CAUSE_ORDER_OF_WARP:
    return "a store and an ldmatrix by lanes of one warp, with no __syncwarp between. All lanes execute the ldmatrix "
           "together, and an H200 keeps the order (tests/rules)";
  case CAUSE_EXIT:
    return "only a barrier that came after the other thread's exit orders the two. PTX counts no exit as an arrival, "
           "but the barrier waits for all threads that have not exited (CUDA programming guide, __syncthreads)";
  default:
    return pair->writes && pair->other_writes ? sentence_of_writes(doer, other)
           : pair->writes                     ? sentence_of_race(other, doer)
                                              : sentence_of_race(doer, other);
  }
}

static void advise_on_cause(Advice *advice, const Pair *pair, Cause cause) {
  switch (cause) {
  case CAUSE_UNWAITED: advise_wait(advice, pair); break;
  case CAUSE_UNWAITED_NARROWLY: advice_add(advice, "Write .release.cluster at arrivals for another block."); break;
  case CAUSE_SCOPE:
    advice_add(advice, "Give both accesses a scope that includes the other thread: atomicAdd() in the place of "
                       "atomicAdd_block(), .gpu in the place of .cta.");
    break;
  case CAUSE_SIZE: advice_add(advice, "Store the flag and load it with one type."); break;
  case CAUSE_ORDER_OF_WARP: advice_add(advice, "Put __syncwarp() between the two."); break;
  case CAUSE_EXIT: advice_add(advice, "Let all threads of the block reach the barrier before they exit."); break;
  default: advise_race(advice, pair, doer_of(pair) == OPERATION, other_doer_of(pair) == OPERATION);
  }
}

// ---- reports ----

static bool is_known_pair(const Pair *pair, HazardGrade grade, HazardKind kind, bool other_first) {
  return hazard_known_conflict(grade, warp_of_check(pair->warp), own_inst(pair->actor), kind, pair->other, other_first);
}

static void report_pair(const Pair *pair, HazardGrade grade, HazardKind kind, bool other_first, const char *text) {
  hazard_report_conflict(grade, warp_of_check(pair->warp), own_inst(pair->actor), pair->lane, kind,
                         span_address(pair->span), pair->span->size, pair->other, other_first, text);
}

static void report_unordered(const Pair *pair) {
  const Actor *actor = pair->actor;
  Cause cause = cause_of(pair);
  HazardGrade grade = is_formal(cause) ? HAZARD_FORMAL : HAZARD_FAULT;
  HazardKind kind = kind_of_race(pair, cause);
  bool other_first = is_other_first(pair, cause);
  if (is_known_pair(pair, grade, kind, other_first)) return;
  Advice advice = {.used = 0};
  char sizes[300];
  const char *sentence = cause == CAUSE_SIZE ? sentence_of_sizes(actor, epoch_pc(actor->layout, pair->other),
                                                                 other_first, sizes, sizeof sizes)
                                             : sentence_of_cause(pair, cause);
  advise_on_cause(&advice, pair, cause);
  report_pair(pair, grade, kind, other_first, with_advice(sentence, &advice).text);
}

// Whether a cp.async wrote.
static bool was_copied(const Actor *actor, Epoch write) {
  MemoryUse use = inst_of(actor, write)->row->memory;
  return use == MEMORY_COPY || use == MEMORY_CACHED_COPY;
}

static void report_unseen(const Pair *pair) {
  const Actor *actor = pair->actor;
  bool copied = was_copied(actor, pair->other);
  const char *known = actor->unseen_is_known;
  HazardGrade grade = copied ? HAZARD_FORMAL : known ? HAZARD_NOTE : HAZARD_FAULT;
  if (is_known_pair(pair, grade, HAZARD_PROXY_FENCE, false)) return;
  Advice advice = {.used = 0};
  bool near = epoch_cluster(actor->layout, pair->other) == actor->cluster->id;
  advise_proxy_fence(&advice, launch_of(actor), inst_of(actor, pair->other), own_inst(actor),
                     near && thread_of(actor, pair->other) == actor->issuer);
  const char *sentence =
      copied ? "the async proxy uses bytes that a cp.async has copied, and no fence.proxy.async stands between. The "
               "copy is waited for, and an H200 is right without the fence (tests/rules)"
             : "the async proxy uses bytes written through the generic proxy, and no fence.proxy.async stands between";
  report_pair(pair, grade, HAZARD_PROXY_FENCE, false, known ? known : with_advice(sentence, &advice).text);
}

static void report_equal(const Pair *pair) {
  const Actor *actor = pair->actor;
  report_pair(pair, HAZARD_FORMAL, race_kind(pair->span), epoch_pc(actor->layout, pair->other) > actor_pc(actor),
              "writes what another thread writes, and nothing orders the two. Both store the same bytes, and "
              "an H200 has them after either order (tests/rules)\nLet one of the threads store, or put a barrier "
              "between.");
}

static void report_first_guess(const Pair *pair) {
  report_pair(pair, HAZARD_FORMAL, race_kind(pair->span), pair->writes,
              "a plain load reads what others change by atomics, and nothing orders the two. The value is "
              "only the first guess of a compare-and-swap on the same place, which fails if it is wrong: an "
              "H200 lost no change (tests/rules)\nLoad the guess as volatile, or by an atomic load.");
}

static void report_narrow(const Pair *pair) {
  bool of_thread = epoch_thread(pair->actor->layout, pair->other) < (uint32_t)pair->actor->cluster->lane_count;
  report_pair(
      pair, HAZARD_FORMAL, HAZARD_SHARED_RACE, true,
      of_thread ? "only an arrival at another block's mbarrier orders the two, and its scope is .cta, the default: PTX "
                  "asks for .release.cluster. On an H200 no copy was so fast that it overtook the load; a store of the "
                  "other block was (tests/rules)\nWrite .release.cluster at the arrival."
                : "only an arrival at another block's mbarrier orders the two, and its scope is .cta, the default: PTX "
                  "asks for .release.cluster. The first of them is over when its waiter arrives, and an H200 was right "
                  "(tests/rules)\nWrite .release.cluster at the arrival.");
}

static void report_late_load(const Pair *pair) {
  const Actor *actor = pair->actor;
  if (is_known_pair(pair, HAZARD_FAULT, HAZARD_PROXY_FENCE, true)) return;
  Advice advice = {.used = 0};
  advise_proxy_fence(&advice, launch_of(actor), inst_of(actor, pair->other), own_inst(actor),
                     thread_of(actor, pair->other) == actor->issuer);
  const char *sentence = "an asynchronous operation writes what a load may not have read yet: the thread handed the "
                         "bytes on before it used the value, with no fence.proxy.async between. An H200 may load the "
                         "new bytes (tests/rules)";
  report_pair(pair, HAZARD_FAULT, HAZARD_PROXY_FENCE, true, with_advice(sentence, &advice).text);
}

// What ld finds is reported when something depends on it: undefined.h.
static void report_unwritten(const CheckFinding *finding) {
  Warp *warp = warp_of_check(finding->warp);
  const Inst *inst = own_inst(finding->actor);
  const Span *span = finding->span;
  if (inst->row->values == VALUES_OF_MEMORY) {
    warp->found_unwritten = true;
    return;
  }
  if (hazard_known(HAZARD_FAULT, warp, inst, HAZARD_UNINITIALISED_READ)) return;
  hazard_report(warp, inst, finding->lane, HAZARD_UNINITIALISED_READ, span_address(span), span->size, "%s",
                unwritten_text(warp_launch(warp), inst, span->region, span->offset, "").text);
}

static void report_block_end(const Pair *pair) {
  report_pair(
      pair, pair->formal ? HAZARD_FORMAL : HAZARD_FAULT, HAZARD_OUT_OF_BOUNDS, false,
      pair->formal
          ? "the block exits, and its shared memory with it. Only an arrival whose scope is .cta, the default, "
            "shows that a thread of another block is done there: PTX asks for .release.cluster. But its wait has "
            "ended, so the arrival has come\nWrite .release.cluster at the arrival."
          : "the block exits, and its shared memory with it, without knowing that a thread of another block is done "
            "there: barrier.cluster is missing before the end\nPut a cluster barrier (cluster.sync()) before the end "
            "of the kernel, for all blocks: a block stays until its peers are done with its shared memory.");
}

// Programmatic dependent launch: check/overlap.h.
static void report_past(const Pair *pair) {
  const Launch *launch = launch_of(pair->actor);
  // grid.sync() counts there.
  if (launch->grid_workspace && pair->span->region->base == launch->grid_workspace) return;
  char text[1200];
  const char *its = pair->past->shape.program->functions[0].ptx->readable;
  int used =
      snprintf(text, sizeof text, "%s %s what the kernel %s, launched before it, %s, and nothing orders the two: ",
               launch->program->functions[0].ptx->readable, pair->writes ? "writes" : "reads", its,
               pair->other_writes ? "writes" : "reads");
  size_t left = sizeof text - (size_t)used;
  if (pair->has_waited)
    snprintf(
        text + used, left,
        "the kernel between them has begun early (programmatic dependent launch) and never executes "
        "griddepcontrol.wait. So %s may run even after that kernel has ended, and the wait here is for that kernel "
        "alone\n"
        "Call cudaGridDependencySynchronize() (griddepcontrol.wait) in the kernel between them.",
        its);
  else if (pair->triggered)
    snprintf(
        text + used, left,
        "by programmatic dependent launch it begins when %s has executed griddepcontrol.launch_dependents, and the "
        "thread has not waited for the end of %s\n"
        "Call cudaGridDependencySynchronize() (griddepcontrol.wait) before this access.",
        its, its);
  else
    snprintf(
        text + used, left,
        "for programmatic dependent launch CUDA promises that memory only after griddepcontrol.wait. But the block "
        "of %s has not executed griddepcontrol.launch_dependents, so it has ended before (CUDA programming guide)\n"
        "Call cudaGridDependencySynchronize() (griddepcontrol.wait) before this access, or launch the kernel "
        "without the attribute.",
        its);
  hazard_report_past(pair->triggered ? HAZARD_FAULT : HAZARD_FORMAL, warp_of_check(pair->warp), own_inst(pair->actor),
                     pair->lane, HAZARD_GLOBAL_RACE, span_address(pair->span), pair->span->size, pair->past,
                     pair->other, text);
}

static void report_limit(const CheckFinding *finding, const char *text) {
  const Inst *inst = finding->actor ? own_inst(finding->actor) : NULL;
  hazard_stop(warp_of_check(finding->warp), inst, finding->lane, HAZARD_STEP_LIMIT, 0, 0, "%s; run with --hazards=off",
              text);
}

void conflict_report(const CheckFinding *finding) {
  switch (finding->kind) {
  case FOUND_UNWRITTEN: report_unwritten(finding); break;
  case FOUND_RACE: report_unordered(finding); break;
  case FOUND_EQUAL: report_equal(finding); break;
  case FOUND_GUESS: report_first_guess(finding); break;
  case FOUND_UNSEEN: report_unseen(finding); break;
  case FOUND_LATE_LOAD: report_late_load(finding); break;
  case FOUND_OWN_PART:
    report_pair(finding, HAZARD_FORMAL, HAZARD_SHARED_RACE, false, finding->actor->own_is_known);
    break;
  case FOUND_NARROW: report_narrow(finding); break;
  case FOUND_BLOCK_END: report_block_end(finding); break;
  case FOUND_PAST: report_past(finding); break;
  case FOUND_CLOCK_LIMIT:
    report_limit(finding, "a thread synchronised more often than the race check can count");
    break;
  case FOUND_SET_LIMIT: report_limit(finding, "more patterns of reads than the race check can count"); break;
  }
}
