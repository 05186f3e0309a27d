// Advice on two accesses that conflict: see advice.h.
#include "advice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "../warp/instruction.h"
#include "source_line.h"
#include "update.h"
#include "../host/host_memory.h"

void advice_add(Advice *advice, const char *format, ...) {
  size_t left = sizeof advice->text - advice->used;
  va_list arguments;
  va_start(arguments, format);
  size_t length = (size_t)vsnprintf(advice->text + advice->used, left, format, arguments);
  va_end(arguments);
  advice->used += length < left ? length : left - 1;
}

// ---- what the accesses are called ----

// "the store at line 12"
typedef struct AccessText {
  char text[64];
} AccessText;

static AccessText access_text(const Launch *launch, const Party *party) {
  AccessText text;
  const Instruction *row = party->inst->row;
  bool is_plain = row->memory == MEMORY_LOAD || row->memory == MEMORY_STORE;
  snprintf(text.text, sizeof text.text, "the %s at %s",
           is_atomic(row)  ? "atomic"
           : !is_plain     ? "access"
           : party->writes ? "store"
                           : "load",
           named_line(launch->program->module, party->inst->source).text);
  return text;
}

static LineText line_of(const Launch *launch, const Inst *inst) {
  return named_line(launch->program->module, inst->source);
}

enum { CALLS = 16 };

// Whether the second stands in a line above the first, so that only a later round of a loop, perhaps unrolled, leads to
// it. Functions are inlined: the outermost call in which the two differ decides, and not the lines in the functions.
static bool is_above(const Launch *launch, const Inst *second, const Inst *first) {
  const char *files[2];
  int lines[2][CALLS], line;
  const PtxModule *module = launch->program->module;
  if (!instruction_line(module, second->source, &files[0], &line)) return false;
  if (!instruction_line(module, first->source, &files[1], &line) || strcmp(files[0], files[1])) return false;
  int a = source_lines(module, second->source, lines[0], CALLS);
  int b = source_lines(module, first->source, lines[1], CALLS);
  while (a > 1 && b > 1 && lines[0][a - 1] == lines[1][b - 1]) a--, b--;
  return lines[0][a - 1] < lines[1][b - 1];
}

// ---- a barrier ----

// Which barrier joins two threads.
typedef struct JoiningBarrier {
  const char *name;
  InstructionTest *test;
} JoiningBarrier;

static JoiningBarrier meeting_of(const Cluster *near, const Party *one, const Party *other) {
  uint32_t threads = threads_of_block(&near->check);
  if (one->cluster != other->cluster) return (JoiningBarrier){NULL, NULL};
  if (threads == LANES && one->thread / LANES == other->thread / LANES)
    return (JoiningBarrier){"__syncwarp()", is_warp_barrier};
  if (one->thread / LANES == other->thread / LANES)
    return (JoiningBarrier){"__syncthreads(), or __syncwarp() if one warp alone shares the bytes,", is_warp_barrier};
  if (one->thread / threads == other->thread / threads) return (JoiningBarrier){"__syncthreads()", is_block_barrier};
  return (JoiningBarrier){"a cluster barrier (cluster.sync())", is_cluster_barrier};
}

// The way from the first access to the second has no barrier.
static void ask_for_barrier(Advice *advice, const Launch *launch, const char *barrier, const Party *first,
                            const Party *second, const Ways *ways, const char *another) {
  bool later = !ways->onward || is_above(launch, second->inst, first->inst);
  advice_add(advice, "%s%s after %s, before %s%s", another, barrier, access_text(launch, first).text,
             later ? "the next round's " : "", access_text(launch, second).text + (later ? strlen("the ") : 0));
}

static void advise_order(Advice *advice, const Launch *launch, const JoiningBarrier *meeting, const Party *one,
                         const Party *other) {
  const Program *program = launch->program;
  Ways to = ways_between(program, one->inst, other->inst, meeting->test),
       back = ways_between(program, other->inst, one->inst, meeting->test);
  if (to.free && back.free) {
    bool forward = to.onward;
    const Party *first = forward ? one : other, *second = forward ? other : one;
    ask_for_barrier(advice, launch, meeting->name, first, second, forward ? &to : &back, "Put ");
    ask_for_barrier(advice, launch, "another one", second, first, forward ? &back : &to, ", and ");
    advice_add(advice, ", if that replaces what is loaded.");
  } else if (to.free || back.free) {
    const Party *first = to.free ? one : other, *second = to.free ? other : one;
    const Ways *free = to.free ? &to : &back, *closed = to.free ? &back : &to;
    bool like_the_other = closed->on && is_block_barrier(closed->on);
    ask_for_barrier(advice, launch, like_the_other ? "__syncthreads()" : meeting->name, first, second, free, "Put ");
    if (closed->reach && closed->on)
      advice_add(advice, ". The barrier at %s orders the two the other way alone: %s, then %s.",
                 line_of(launch, closed->on).text, access_text(launch, second).text, access_text(launch, first).text);
    else
      advice_add(advice, ".");
  } else if (to.on || back.on) {
    advice_add(
        advice,
        "A barrier stands between the two, at %s, but these two threads do not meet there: which threads execute "
        "it, how often, and with which number and count?",
        line_of(launch, to.on ? to.on : back.on).text);
  } else {
    advice_add(advice, "Put a barrier that both threads reach, or an mbarrier, between the two accesses.");
  }
}

// ---- fences between blocks ----

static bool is_wide(const PtxInstruction *source) {
  return !ptx_has(source, "cta") && !ptx_has(source, "cluster") && !ptx_has(source, "proxy");
}

// __threadfence() is membar.gl, or fence.acq_rel.gpu.
static bool is_wide_fence(const Inst *inst) { return is_wide(inst->source) && inst->row->orders == ORDERS_MEMORY; }

// An access by which one block tells another something: an atomic, or a strong load or store.
static bool is_signal(const Inst *inst, bool writes) {
  const PtxInstruction *source = inst->source;
  if (ptx_has(source, "shared") || ptx_has(source, "shared::cta") || ptx_has(source, "shared::cluster")) return false;
  if (is_atomic(inst->row)) return writes || inst->row->memory != MEMORY_REDUCTION;
  if (inst->row->memory != (writes ? MEMORY_STORE : MEMORY_LOAD)) return false;
  return ptx_has(source, "volatile") || ptx_has(source, "relaxed") || ptx_has(source, writes ? "release" : "acquire");
}

static bool has_own_fence(const Inst *inst, bool writes) {
  const PtxInstruction *source = inst->source;
  return is_wide(source) && (ptx_has(source, "acq_rel") || ptx_has(source, writes ? "release" : "acquire"));
}

// A signal between which and the access, before the access if that is a read and after it if it is a write, no fence
// stands; *fenced: there is one with a fence.
static const Inst *unfenced_signal(const Program *program, const Inst *access, bool writes, bool *fenced) {
  enum { MOST_TRIED = 8 };
  const Inst *found = NULL;
  for (uint32_t pc = 0, tried = 0; pc < program->count && tried < MOST_TRIED; pc++) {
    const Inst *signal = &program->code[pc];
    if (signal == access || !is_signal(signal, writes)) continue;
    Ways ways = ways_between(program, writes ? access : signal, writes ? signal : access, is_wide_fence);
    tried++;
    if (!ways.reach) continue;
    if (ways.free && !has_own_fence(signal, writes))
      found = found ? found : signal;
    else
      *fenced = true;
  }
  return found;
}

// Of two accesses in different blocks: what another block is told it must also be able to see.
static void advise_blocks(Advice *advice, const Launch *launch, const Party *one, const Party *other) {
  const Party *write = one->writes ? one : other, *read = one->writes ? other : one;
  bool released = false, acquired = false;
  const Inst *tells = unfenced_signal(launch->program, write->inst, true, &released),
             *asks = unfenced_signal(launch->program, read->inst, false, &acquired);
  bool lacks_release = tells && !released, lacks_acquire = asks && !acquired;
  if (!lacks_release && !lacks_acquire) {
    advice_add(advice, "%s", hazard_advice(HAZARD_GLOBAL_RACE));
    return;
  }
  advice_add(advice, "A flag or an atomic alone hands no other memory on.");
  if (lacks_release)
    advice_add(advice, " Put __threadfence() after %s, before %s.", access_text(launch, write).text,
               line_of(launch, tells).text);
  if (lacks_acquire)
    advice_add(advice, " Put __threadfence() after %s, before %s: in each thread that reads, or before a barrier.",
               line_of(launch, asks).text, access_text(launch, read).text);
}

static bool change_one_place(const Program *program, const Party *one, const Party *other) {
  if (one->inst == other->inst) return ends_update(program, one->inst);
  return one->writes ? is_update(program, other->inst, one->inst) : is_update(program, one->inst, other->inst);
}

void advise_threads(Advice *advice, const Launch *launch, const Cluster *near, bool shared, const Party *one,
                    const Party *other) {
  if (change_one_place(launch->program, one, other)) {
    advice_add(advice, "Both threads load a value here, change it and store it, so one of the changes can be lost. Use "
                       "an atomic, or give each thread a place of its own and combine these later. If one thread is "
                       "meant to follow the other, put a barrier between them.");
    return;
  }
  JoiningBarrier meeting = meeting_of(near, one, other);
  if (one->inst == other->inst && one->writes && other->writes) {
    advice_add(advice, "Let one thread store, or give each thread a place of its own%s.",
               shared ? "" : ", or use an atomic");
    if (!meeting.test || !ways_between(launch->program, one->inst, one->inst, meeting.test).free) return;
    advice_add(advice, " If the two stores belong to different rounds of the loop, put %s between the rounds.",
               meeting.name);
  } else if (meeting.test) {
    advise_order(advice, launch, &meeting, one, other);
  } else {
    advise_blocks(advice, launch, one, other);
  }
}

// ---- overlapping arrays ----

typedef struct Footprint {
  uint64_t begin, end;  // offsets in the region
} Footprint;

// The bytes around an offset that lanes of one warp wrote by one instruction, at one clock.
static Footprint footprint(const Cluster *cluster, const Region *region, uint64_t offset, Epoch write) {
  const EpochLayout *layout = &cluster->launch->check.epochs;
  uint64_t lane = LANE_MASK;
  Footprint print = {offset, offset};
  for (uint64_t at = 0, run; at < region->size; at += run) {
    Cell cell;
    run = (uint64_t)shadow_run(&region->shadow, at, (int)(region->size - at), cluster->launch->check.number, &cell);
    if ((cell.write & ~lane) != (write & ~lane) || epoch_cluster(layout, cell.write) != cluster->id) continue;
    if (at < print.begin) print.begin = at;
    if (at + run > print.end) print.end = at + run;
  }
  return print;
}

// A store reaches bytes that belong to another variable than the one whose address it began with.
static bool advise_index(Advice *advice, const Launch *launch, const Inst *inst, uint64_t address) {
  uint64_t size;
  const Place *from = shared_variable_of(launch->program, inst), *in = shared_variable(launch, address, &size);
  if (!from || !in || from == in) return false;
  NameText name = variable_name(from->variable), other = variable_name(in->variable);
  advice_add(advice, "The store at %s indexes `%s`, and reaches `%s`: check the index against the size of `%s`.",
             line_of(launch, inst).text, name.text, other.text, name.text);
  return true;
}

bool advise_overlap(Advice *advice, const Cluster *cluster, const Region *region, uint64_t offset, const Party *now,
                    Epoch before) {
  const Launch *launch = cluster->launch;
  const Inst *inst = &launch->program->code[epoch_pc(&launch->check.epochs, before)];
  uint64_t address = region->base + offset;
  if (advise_index(advice, launch, inst, address) || advise_index(advice, launch, now->inst, address)) return true;
  Footprint print = footprint(cluster, region, offset, before);
  enum { LARGEST_ACCESS = 16 };
  if (print.end - print.begin > LARGEST_ACCESS)
    advice_add(advice, "The store at %s covers 0x%llx to 0x%llx here; lane %u of it writes what %s stores at 0x%llx. ",
               line_of(launch, inst).text, (unsigned long long)(region->base + print.begin),
               (unsigned long long)(region->base + print.end - 1),
               (unsigned)(epoch_thread(&launch->check.epochs, before) % LANES), line_of(launch, now->inst).text,
               (unsigned long long)address);
  advice_add(advice, "If they are two arrays, the index of one leaves it: mask it, or make room; a barrier would only "
                     "hide that. If they are one: ");
  return false;
}

// ---- fences ----

void advise_proxy_fence(Advice *advice, const Launch *launch, const Inst *access, const Inst *use, bool same_thread) {
  Ways ways = ways_between(launch->program, access, use, is_proxy_fence);
  LineText line = line_of(launch, access);
  bool is_copy = is_asynchronous_copy(access->row);  // a fence before the wait for it is too early
  if (is_copy)
    advice_add(advice,
               "Put fence.proxy.async after the wait for the copy at %s, in each thread that issues it, before the "
               "barrier that hands the memory over.",
               line.text);
  else if (ways.reach && ways.free && ways.on)
    advice_add(advice,
               "The fence.proxy.async at %s is not on every way from %s to %s: a branch or a loop that did not run "
               "leaves it out. Put one where every way passes it, after %s and before the barrier.",
               line_of(launch, ways.on).text, line.text, line_of(launch, use).text, line.text);
  else if (ways.reach && !ways.free && ways.on && !same_thread)
    advice_add(
        advice,
        "The fence.proxy.async at %s was not executed by the thread of %s between the two: each thread that made "
        "an access must execute it, after that and before the barrier.",
        line_of(launch, ways.on).text, line.text);
  else
    advice_add(advice,
               "Put fence.proxy.async after %s, in each thread that executes it, before the barrier that hands the "
               "memory over.",
               line.text);
}

// ---- the ways between two instructions ----

bool is_block_barrier(const Inst *inst) {
  return inst->row->orders == ORDERS_BLOCK && !ptx_has(inst->source, "arrive");
}

bool is_warp_barrier(const Inst *inst) { return is_block_barrier(inst) || inst->row->orders == ORDERS_WARP; }

bool is_cluster_barrier(const Inst *inst) {
  return inst->row->orders == ORDERS_CLUSTER && ptx_has(inst->source, "wait");
}

bool is_proxy_fence(const Inst *inst) { return inst->row->orders == ORDERS_PROXIES && ptx_has(inst->source, "async"); }

// ---- the walk ----

typedef struct Walk {
  const Program *program;
  uint8_t *seen;   // by instruction
  uint32_t *todo;  // to be followed
  uint32_t count;
} Walk;

static void visit(Walk *walk, int64_t pc) {
  if (pc >= walk->program->count || walk->seen[pc]) return;
  walk->seen[pc] = 1;
  walk->todo[walk->count++] = (uint32_t)pc;
}

static void visit_successors(Walk *walk, uint32_t pc) {
  const Inst *inst = &walk->program->code[pc];
  if (inst->control == CONTROL_NEXT || inst->guarded) visit(walk, (int64_t)pc + 1);
  if (inst->control == CONTROL_BRANCH) visit(walk, inst->immediate);
  const BranchTable *table = inst->control == CONTROL_TABLE ? inst->extra : NULL;
  for (uint32_t t = 0; table && t < table->count; t++) visit(walk, table->targets[t]);
}

// Where a walk ends, if there is a test: at what passes it, and at calls.
static bool stops(const Inst *inst, InstructionTest *test) {
  return test && !inst->guarded && (test(inst) || inst->row->calls);
}

static void follow_ways(Walk *walk, InstructionTest *test) {
  while (walk->count) {
    uint32_t pc = walk->todo[--walk->count];
    if (!stops(&walk->program->code[pc], test)) visit_successors(walk, pc);
  }
}

static void walk_ways_from(Walk *walk, uint32_t pc, InstructionTest *test) {
  memset(walk->seen, 0, walk->program->count);
  visit_successors(walk, pc);
  follow_ways(walk, test);
}

// From all copies of the instruction.
static void walk_from_copies(Walk *walk, const Inst *from, InstructionTest *test) {
  memset(walk->seen, 0, walk->program->count);
  for (uint32_t pc = 0; pc < walk->program->count; pc++) {
    if (!are_copies(from, &walk->program->code[pc])) continue;
    visit_successors(walk, pc);
    follow_ways(walk, test);
  }
}

// Whether an instruction is followed by `to`, or by one that leads there.
static bool leads(const Walk *walk, uint32_t pc, uint32_t to, const uint8_t *leading, InstructionTest *test) {
  const Program *program = walk->program;
  const Inst *inst = &program->code[pc];
  const BranchTable *table = inst->control == CONTROL_TABLE ? inst->extra : NULL;
  uint32_t next[2] = {program->count, program->count};
  if ((inst->control == CONTROL_NEXT || inst->guarded) && pc + 1 < program->count) next[0] = pc + 1;
  if (inst->control == CONTROL_BRANCH) next[1] = (uint32_t)inst->immediate;
  for (uint32_t i = 0; i < 2 + (table ? table->count : 0); i++) {
    uint32_t successor = i < 2 ? next[i] : table->targets[i - 2];
    if (successor >= program->count) continue;
    if (successor == to || (leading[successor] && !stops(&program->code[successor], test))) return true;
  }
  return false;
}

// The last instruction that passes the test, of all in `reached`, from which `to` is reached without another.
static const Inst *last_on_the_way(const Walk *walk, const uint8_t *reached, uint32_t to, InstructionTest *test) {
  const Program *program = walk->program;
  uint8_t *leading = host_allocate(program->count, 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t pc = program->count; pc-- > 0;)
      if (!leading[pc] && leads(walk, pc, to, leading, test)) leading[pc] = changed = true;
  }
  const Inst *last = NULL;
  for (uint32_t pc = 0; pc < program->count; pc++) {
    const Inst *inst = &program->code[pc];
    bool is_on = reached[pc] && leading[pc] && !inst->guarded && test(inst);
    if (is_on && (pc < to || !last)) last = inst;
  }
  free(leading);
  return last;
}

Ways ways_between(const Program *program, const Inst *from, const Inst *to, InstructionTest *test) {
  Walk walk = {.program = program,
               .seen = host_allocate(program->count, 1),
               .todo = host_allocate(program->count, sizeof(uint32_t))};
  uint8_t *reached = host_allocate(program->count, 1);
  uint32_t start = (uint32_t)(from - program->code), end = (uint32_t)(to - program->code);
  Ways ways = {.onward = end > start};
  walk_ways_from(&walk, start, NULL);
  bool copies = !walk.seen[end];  // the loop was unrolled completely
  if (copies) walk_from_copies(&walk, from, NULL);
  ways.reach = walk.seen[end];
  memcpy(reached, walk.seen, program->count);
  if (copies)
    walk_from_copies(&walk, from, test);
  else
    walk_ways_from(&walk, start, test);
  ways.free = walk.seen[end];
  if (ways.reach) ways.on = last_on_the_way(&walk, reached, end, test);
  free(walk.seen);
  free(walk.todo);
  free(reached);
  return ways;
}
