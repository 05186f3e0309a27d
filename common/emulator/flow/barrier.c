// Barriers of a block and of a warp. PTX ISA 9.7.13.1 and .2.
#include "flow.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../check/clocks.h"
#include "../report/hazard.h"
#include "../check/order.h"
#include "../report/waits.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/warp.h"
#include "families.h"

typedef enum BarrierAction { BARRIER_SYNC, BARRIER_ARRIVE, BARRIER_POPC, BARRIER_AND, BARRIER_OR } BarrierAction;

// Operands of a barrier beside the Inst's a (its number) and b (its count of threads).
typedef struct BarrierPlan {
  BarrierAction action;
  bool has_count;
  bool aligned;
  Slot predicate;  // of bar.red
  bool negated;
} BarrierPlan;

// ---- completion ----

// Threads that an arrival counts for: an aligned barrier counts whole warps.
static int counted(const BarrierPlan *plan, Mask mask) {
  return plan->aligned && plan->has_count ? LANES : __builtin_popcount(mask);
}

static bool is_barrier_complete(const Block *block, const Barrier *barrier) {
  return barrier->arrived >= (barrier->expected ? barrier->expected : block->live_threads);
}

// Hands the result of bar.red to the lanes that waited for it.
static void give_results(Warp *warp, const Barrier *barrier, int number) {
  const Inst *code = warp_launch(warp)->program->code;
  for (int g = 0; g < warp->group_count; g++) {
    const Group *group = &warp->groups[g];
    const Inst *inst = &code[group->pc];
    const BarrierPlan *plan = inst->extra;
    if (group->state != GROUP_BARRIER || group->barrier != number || plan->action < BARRIER_POPC) continue;
    if (plan->action == BARRIER_POPC) {
      u32 *d = SLOT(warp, inst->d, u32);
      EACH_LANE(group->mask, d[LANE] = (u32)barrier->reduce_count);
      continue;
    }
    bool holds = plan->action == BARRIER_AND ? barrier->reduce_count == barrier->arrived : barrier->reduce_count > 0;
    Mask *d = SLOT(warp, inst->d, Mask);
    *d = (*d & ~group->mask) | (holds ? group->mask : 0);
  }
}

static Mask lanes_at_barrier(const Warp *warp, int number) {
  Mask mask = 0;
  for (int g = 0; g < warp->group_count; g++)
    if (warp->groups[g].state == GROUP_BARRIER && warp->groups[g].barrier == number) mask |= warp->groups[g].mask;
  return mask;
}

static void complete_barrier(Block *block, int number) {
  Barrier *barrier = &block->barriers[number];
  for (int w = 0; w < block->warp_count; w++) {
    Warp *warp = &block->warps[w];
    Mask waiting = lanes_at_barrier(warp, number);
    if (!waiting) continue;
    race_acquire(&warp->check, waiting, barrier->joined);
    if (barrier->reducing) give_results(warp, barrier, number);
    if (barrier->passed_on) warp_set_meanwhile(warp, MEANWHILE_TURN, true);
    warp_release(warp, number);
  }
  // Phases of one warp need not come after each other: what follows must come after all of them.
  if (barrier->former_expected == LANES && barrier->former)
    clocks_join(&block->cluster->check, &barrier->joined, barrier->former);
  clocks_release(barrier->former);
  block->phases += barrier->expected == 0;
  if (!block->met[0].inst && barrier->least.inst != barrier->most.inst) {
    block->met[0] = barrier->least;
    block->met[1] = barrier->most;
  }
  barrier->former = barrier->joined;
  barrier->former_first = barrier->first;
  barrier->former_expected = barrier->expected;
  barrier->joined = NULL;
  barrier->expected = -1;
  barrier->passed_on = false;
  barrier->arrived = barrier->reduce_count = 0;
  barrier->least = barrier->most = (Meeting){NULL, NULL};
  barrier->phase++;
  block->cluster->progress++;
}

void barriers_after_exit(Block *block) {
  for (int i = 0; i < BARRIERS; i++)
    if (block->barriers[i].expected == 0 && is_barrier_complete(block, &block->barriers[i])) complete_barrier(block, i);
}

// ---- arrival ----

static void stop_misuse(Warp *warp, const Inst *inst, Mask mask, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Where threads disagree on what the barrier is, none can go on.
static void stop_misuse(Warp *warp, const Inst *inst, Mask mask, const char *format, ...) {
  char detail[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  hazard_stop(warp, inst, __builtin_ctz(mask), HAZARD_BARRIER_MISUSE, 0, 0, "%s", detail);
}

typedef struct Text {
  char text[32];
} Text;

static Text line_text(const Warp *warp, const Inst *inst) {
  Text text;
  const char *file;
  int line;
  bool known = instruction_line(warp_launch(warp)->program->module, inst->source, &file, &line);
  snprintf(text.text, sizeof text.text, "%s %d", known ? "line" : "PTX line", known ? line : inst->source->line);
  return text;
}

// Reports that this arrival and the phase's first one do not fit together.
static void disagree(Warp *warp, const Inst *inst, Mask mask, int number, const char *here, const char *first) {
  stop_misuse(warp, inst, mask, "barrier %d: %s here, but %s where the first thread arrived, at %s", number, here,
              first, line_text(warp, warp->block->barriers[number].first).text);
}

static void note_unordered(Warp *warp, const Inst *inst, int number) {
  Barrier *barrier = &warp->block->barriers[number];
  Use *use = use_of(&barrier->uses, warp);
  bool again = use->arrival && use->phase + 1 == barrier->phase;
  if (again && (!use->twice || inst < use->twice)) use->twice = inst;
  int i = 0;
  while (i < barrier->unordered_count && barrier->unordered[i].inst != inst) i++;
  if (i == sizeof barrier->unordered / sizeof *barrier->unordered) return;
  Unordered *noted = &barrier->unordered[i];
  if (i == barrier->unordered_count) *noted = (Unordered){.inst = inst, .expected = barrier->expected};
  noted->again |= again;
  barrier->unordered_count += i == barrier->unordered_count;
}

// An arrival must fall into one phase whatever the schedule: after all arrivals of the phase before. A warp may arrive
// several times in a phase, each counts: an H200 does so (tests/rules). At a barrier of one warp each arrival is a
// phase, whichever comes first. The arrival counts in this phase even if another was possible.
static void check_phase(Warp *warp, const Inst *inst, Mask mask, int number) {
  const BarrierPlan *plan = inst->extra;
  const Barrier *barrier = &warp->block->barriers[number];
  if (plan->aligned && barrier->expected == LANES && barrier->former_expected == LANES) return;
  if (race_knows(&warp->check, mask, barrier->former)) return;
  note_unordered(warp, inst, number);
  hazard_report(warp, inst, __builtin_ctz(mask), HAZARD_BARRIER_MISUSE, 0, 0,
                "barrier %d: nothing orders this arrival after the former ones, the first of them at %s: it may be "
                "counted with those",
                number, line_text(warp, barrier->former_first).text);
}

static Text count_text(int count) {
  Text text = {"all threads"};
  if (count) snprintf(text.text, sizeof text.text, "%d threads", count);
  return text;
}

// The barrier's number and count, which all lanes must agree on. False after a report.
static bool barrier_operands(Warp *warp, const Inst *inst, const BarrierPlan *plan, Mask mask, int *number,
                             int *count) {
  const u32 *numbers = SLOT(warp, inst->a, const u32), *counts = SLOT(warp, inst->b, const u32);
  int first = __builtin_ctz(mask);
  u32 threads = plan->has_count ? counts[first] : 0;
  bool agree = true;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    agree &= numbers[lane] == numbers[first] && (!plan->has_count || counts[lane] == threads);
  }
  *number = (int)numbers[first];
  *count = (int)threads;
  if (!agree)
    stop_misuse(warp, inst, mask, "lanes of one warp name different barriers or counts (%d, %d)", *number, *count);
  else if (numbers[first] >= BARRIERS)
    stop_misuse(warp, inst, mask, "there is no barrier %d: they are 0 to %d", *number, BARRIERS - 1);
  else if (plan->has_count && (threads == 0 || threads % LANES || threads > 1024))
    stop_misuse(warp, inst, mask,
                "barrier %d: the number of threads, %d, is not a multiple of the warp size up to 1024", *number,
                *count);
  else
    return true;
  return false;
}

// Who uses the barrier, and where: for reports.
static void note_arrival(Warp *warp, const Inst *inst, Barrier *barrier) {
  Use *use = use_of(&barrier->uses, warp);
  bool again = use->arrival && use->phase == barrier->phase && barrier->expected > 0;
  if (again && (!use->twice || inst < use->twice)) use->twice = inst;
  use_arrive(&barrier->uses, warp, inst, barrier->phase);
  barrier->counts_differ |= barrier->last_count && barrier->last_count != barrier->expected;
  barrier->last_count = barrier->expected;
  if (barrier->expected) return;
  if (!barrier->least.inst || inst < barrier->least.inst) barrier->least = (Meeting){warp, inst};
  if (!barrier->most.inst || inst > barrier->most.inst) barrier->most = (Meeting){warp, inst};
}

static void execute_barrier(Warp *warp, const Inst *inst, Mask mask) {
  const BarrierPlan *plan = inst->extra;
  Block *block = warp->block;
  int number, count;
  if (!barrier_operands(warp, inst, plan, mask, &number, &count)) return;
  if (foresee(warp, inst, target_of_barrier(block, number), false)) return;
  Barrier *barrier = &block->barriers[number];
  if (barrier->expected < 0) {
    barrier->expected = count;
    barrier->first = inst;
    barrier->reducing = plan->action >= BARRIER_POPC;
  } else if (barrier->expected != count) {
    disagree(warp, inst, mask, number, count_text(count).text, count_text(barrier->expected).text);
    return;
  } else if (barrier->reducing != (plan->action >= BARRIER_POPC)) {
    disagree(warp, inst, mask, number, barrier->reducing ? "no bar.red" : "bar.red",
             barrier->reducing ? "bar.red" : "none");
    return;
  }
  check_phase(warp, inst, mask, number);
  note_arrival(warp, inst, barrier);
  barrier->arrived += counted(plan, mask);
  if (plan->action >= BARRIER_POPC)
    barrier->reduce_count +=
        __builtin_popcount((*SLOT(warp, plan->predicate, const Mask) ^ (plan->negated ? FULL_MASK : 0)) & mask);
  race_release(&warp->check, mask, &barrier->joined);
  if (barrier->expected && barrier->arrived > barrier->expected) {
    stop_misuse(warp, inst, mask, "barrier %d: more threads arrive than the %d it waits for", number,
                barrier->expected);
    return;
  }
  if (plan->action == BARRIER_ARRIVE) {
    barrier->passed_on = true;
    warp_set_meanwhile(warp, MEANWHILE_TURN, false);
  } else {
    warp_wait(warp, mask, number);
  }
  if (is_barrier_complete(block, barrier)) complete_barrier(block, number);
}

// ---- the end of a block ----

const char *const barrier_wait_between =
    "Let the warp wait where it only arrives (bar.sync for bar.arrive), or at another barrier before it arrives again.";
const char *const barrier_count_users = "Write the number of all threads that meet in one phase as the count.";

// The warps that have used the barrier, or those of them that arrived twice, a bit each.
static uint32_t users(const Block *block, const Barrier *barrier, bool twice) {
  uint32_t warps = 0;
  for (int w = 0; w < block->warp_count; w++) {
    const Use *use = &barrier->uses[warp_number(&block->warps[w])];
    if (use->arrival && (use->twice || !twice)) warps |= 1u << w;
  }
  return warps;
}

static int threads_of(const Block *block, uint32_t warps) {
  int last = block->warp_count - 1, rest = block->thread_count - last * LANES;
  return __builtin_popcount(warps) * LANES - (warps >> last & 1 ? LANES - rest : 0);
}

// Gives the reports of arrivals that may be counted in another phase their cause.
static void explain_unordered_arrivals(Block *block, int number) {
  const Barrier *barrier = &block->barriers[number];
  Launch *launch = block->cluster->launch;
  uint32_t all = users(block, barrier, false), twice = users(block, barrier, true);
  WaitText names = {.used = 0};
  text_warps(&names, twice ? twice : all);
  for (int w = 0; twice && w < block->warp_count; w++) {
    if (!(twice >> w & 1)) continue;
    text_put(&names, " arrived twice without waiting between, at ");
    text_line(&names, launch, barrier->uses[warp_number(&block->warps[w])].twice);
    break;
  }
  for (int i = 0; i < barrier->unordered_count; i++) {
    const Unordered *at = &barrier->unordered[i];
    if (at->again)
      hazard_amend(launch, at->inst, HAZARD_BARRIER_MISUSE, barrier_wait_between,
                   "barrier %d: a warp arrives a second time, and has not waited for the end of the phase of its first "
                   "arrival: both may be counted in one phase",
                   number);
    else if (twice)
      hazard_amend(launch, at->inst, HAZARD_BARRIER_MISUSE, barrier_wait_between,
                   "barrier %d: %s. One phase may count both of its arrivals, and end before this warp has come",
                   number, names.text);
    else if (threads_of(block, all) > at->expected && at->expected && !barrier->counts_differ)
      hazard_amend(
          launch, at->inst, HAZARD_BARRIER_MISUSE, barrier_count_users,
          "barrier %d waits for %d threads, and %d use it (%s): it depends on their speed which of them a phase "
          "counts",
          number, at->expected, threads_of(block, all), names.text);
  }
}

static void note_meeting(const Block *block) {
  const Meeting *met = block->met;
  if (!met[0].inst || !block->raced) return;
  hazard_add(
      &(Hazard){.kind = HAZARD_BARRIER_MISUSE, .grade = HAZARD_NOTE}, met[0].warp, met[0].inst, 0,
      "warps of the block met at different __syncthreads, at this one and that at %s. If some warps execute one "
      "more than the others, all later ones join the wrong places: the fault that is reported for this block may "
      "follow from it\n"
      "Let all warps of a block execute the same __syncthreads. Some of them can meet at a named barrier (bar.sync "
      "with a number and a count).",
      line_text(met[0].warp, met[1].inst).text);
}

void barriers_check_end(Block *block) {
  if (!block->cluster->launch->check.on) return;
  for (int i = 0; i < BARRIERS; i++)
    if (block->barriers[i].unordered_count) explain_unordered_arrivals(block, i);
  note_meeting(block);
}

// ---- bar.warp ----

static void execute_warp_barrier(Warp *warp, const Inst *inst, Mask mask) {
  const u32 *members = SLOT(warp, inst->members, const u32);
  while (mask) {
    int first = __builtin_ctz(mask);
    u32 team = members[first] | 1u << first;  // a lane that does not name itself goes on, too: it was reported
    race_warp_sync(&warp->check, mask & team);
    mask &= ~team;
  }
}

// ---- decoding ----

static const char *const barrier_modifiers[] = {"cta", "sync", "arrive", "red", "aligned", "popc", "and", "or", NULL};

// bar{.cta}.sync a{, b};  .arrive a, b;  .red.op d, a{, b}, {!}c;  barrier: the same, aligned only when it says so.
DecodeResult decode_barrier(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  if (!decoder_modifiers(decoder, source, barrier_modifiers)) return DECODE_FAILED;
  BarrierPlan *plan = decoder_allocate(decoder, sizeof *plan);
  bool reduces = ptx_has(source, "red"), arrives = ptx_has(source, "arrive");
  plan->aligned = !strcmp(source->opcode, "bar") || ptx_has(source, "aligned");
  plan->action = !reduces                  ? arrives ? BARRIER_ARRIVE : BARRIER_SYNC
                 : ptx_has(source, "popc") ? BARRIER_POPC
                 : ptx_has(source, "and")  ? BARRIER_AND
                                           : BARRIER_OR;
  int fixed = reduces ? 3 : 1;
  if (!decoder_operands(decoder, source, arrives ? 2 : fixed, fixed + 1)) return DECODE_FAILED;
  const PtxOperand *operands = source->operands + reduces;
  plan->has_count = source->operand_count == fixed + 1;
  inst->a = decoder_source(decoder, &operands[0], PTX_B32);
  inst->b = plan->has_count ? decoder_source(decoder, &operands[1], PTX_B32) : inst->a;
  if (reduces) {
    const PtxOperand *predicate = &source->operands[source->operand_count - 1];
    plan->predicate = decoder_source(decoder, predicate, PTX_PRED);
    plan->negated = predicate->negated;
    inst->d = decoder_destination(decoder, &source->operands[0], plan->action == BARRIER_POPC ? PTX_B32 : PTX_PRED);
  }
  inst->extra = plan;
  inst->converge = plan->aligned ? CONVERGE_ALIGNED : CONVERGE_NONE;
  inst->execute = execute_barrier;
  return DECODED;
}

DecodeResult decode_warp_barrier(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"warp", "sync", NULL};
  static const SyncOperands no_operands = {.a = 0};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1, 1)) return DECODE_FAILED;
  inst->members = decoder_source(decoder, &source->operands[0], PTX_B32);
  inst->converge = CONVERGE_MEMBERS;
  inst->extra = &no_operands;
  inst->execute = execute_warp_barrier;
  return DECODED;
}
