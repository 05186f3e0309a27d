// Hazards: what they are called, what helps against all of a kind, and the list of those met. How they are printed is
// in report.c.
#include "hazard.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../check/threads.h"
#include "../check/overlap.h"
#include "../host/host_memory.h"
#include "../warp/instruction.h"

// The advice is what helps against every cause of the kind. A report that knows its cause has advice of its own.
static const struct {
  const char *name, *advice;
} hazard_kinds[HAZARD_KIND_COUNT] = {
    [HAZARD_OUT_OF_BOUNDS] = {"out-of-bounds access", NULL},
    [HAZARD_MISALIGNED] = {"misaligned access", NULL},
    [HAZARD_UNINITIALISED_READ] = {"uninitialised read", "Write the bytes before they are read, or do not read them."},
    [HAZARD_SHARED_RACE] = {"shared-memory race", NULL},
    [HAZARD_GLOBAL_RACE] = {"global-memory race", "Order the two accesses: with a barrier inside a block, with atomics "
                                                  "and fences between blocks, or with a second launch."},
    [HAZARD_DIVERGENT_ALIGNED] = {"divergent .aligned instruction",
                                  "All lanes of the warp (or of the member mask) must execute the instruction "
                                  "together: move it out of the branch."},
    [HAZARD_BARRIER_MISUSE] =
        {"barrier misuse",
         "All users of a barrier must agree on its number and on its count of threads, a multiple of the warp size."},
    [HAZARD_DEADLOCK] = {"deadlock",
                         "Every thread that a barrier expects must reach it: count the threads that arrive. A loop "
                         "that polls ends only if another thread writes; does its counter change?"},
    [HAZARD_PROXY_FENCE] =
        {"missing proxy fence",
         "Put fence.proxy.async after the loads or stores, in the threads that made them, before the "
         "barrier that hands the memory over."},
    [HAZARD_READ_BEFORE_WAIT] = {"read before wait",
                                 "Wait for the copy (wait_group, or the mbarrier's phase) before its data is read."},
    [HAZARD_OVERWRITE_IN_FLIGHT] =
        {"overwrite in flight",
         "Wait until the asynchronous operation has finished with the memory before it is written again."},
    [HAZARD_REGISTER_IN_FLIGHT] =
        {"register touched in flight",
         "Do not touch the accumulator and the A registers of a wgmma.mma_async before its wgmma.wait_group."},
    [HAZARD_WGMMA_FENCE] =
        {"missing wgmma.fence",
         "Put a wgmma.fence between the last use of the accumulator or A registers and the first wgmma.mma_async."},
    [HAZARD_DESCRIPTOR] = {"bad descriptor",
                           "A descriptor holds the address and the two byte offsets, each >> 4 (once), the "
                           "base offset and the swizzle mode, the same in all threads of the warpgroup."},
    [HAZARD_MBARRIER_MISUSE] = {"mbarrier misuse", NULL},
    [HAZARD_EXPECT_TX] =
        {"wrong expect_tx",
         "Expect in each phase the bytes of all its copies together, and announce them before the phase can complete."},
    [HAZARD_TENSOR_MAP] = {"bad tensor map", "Make the map with the device's encoder, pass it as a __grid_constant__ "
                                             "parameter, and use the dimensions it has."},
    [HAZARD_SETMAXNREG] = {"setmaxnreg misuse",
                           "All warps of a warpgroup must execute it, with a multiple of 8 from 24 to 256. The block "
                           "must not need more registers than its launch allotted."},
    [HAZARD_TRAP] = {"trap", NULL},
    [HAZARD_STEP_LIMIT] = {"step limit", "The kernel ran longer than allowed: look for a loop that never ends."},
};

const char *hazard_name(HazardKind kind) { return hazard_kinds[kind].name; }
const char *hazard_advice(HazardKind kind) { return hazard_kinds[kind].advice; }

// The second line of a report's text is its advice.
static void take_advice(Hazard *hazard) {
  char *second = strchr(hazard->detail, '\n');
  const char *advice = second ? second + 1 : hazard_kinds[hazard->kind].advice;
  snprintf(hazard->advice, sizeof hazard->advice, "%s", advice ? advice : "");
  if (second) *second = 0;
}

// ---- the list ----

enum {
  MOST_HAZARDS = 1000,  // nobody reads more
  MOST_ALIKE = 32,      // at one pair of source lines
};

// Two findings differ if one of these does.
struct FindingKey {
  HazardKind kind;
  HazardGrade grade;
  const PtxInstruction *here, *other;  // NULL: none
  const PtxFunction *kernel;
  const PtxModule *other_module;
  uint64_t lines;  // a hash of the kind, the grade and the source lines of both, with those of the inlined calls
};

static uint64_t mix_hash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

static uint64_t mix_lines(uint64_t hash, const PtxInstruction *source) {
  const PtxLocation *location = source ? source->location : NULL;
  if (!location) return mix_hash(hash, source ? (uint64_t)source->line : 0);
  for (; location; location = location->inlined_at)
    hash = mix_hash(mix_hash(hash, (uint64_t)location->file), (uint64_t)location->line);
  return mix_hash(hash, 1);
}

static FindingKey key_of(const Launch *launch, const Hazard *hazard, const Inst *here, const Inst *other) {
  FindingKey key = {hazard->kind,
                    hazard->grade,
                    here ? here->source : NULL,
                    other ? other->source : NULL,
                    launch->program->functions[0].ptx,
                    launch->program->module,
                    0};
  uint64_t hash = mix_hash(mix_hash(0, hazard->kind), hazard->grade);
  key.lines = mix_lines(mix_lines(mix_hash(hash, (uint64_t)(uintptr_t)key.kernel), key.here), key.other);
  return key;
}

static bool same_key(const FindingKey *a, const FindingKey *b) {
  return a->lines == b->lines && a->here == b->here && a->other == b->other && a->kind == b->kind &&
         a->grade == b->grade && a->kernel == b->kernel;
}

static Hazard *find_known(const HazardList *list, const FindingKey *key) {
  for (int i = 0; i < list->count; i++)
    if (same_key(&list->keys[i], key)) return &list->items[i];
  return NULL;
}

// The last hazard of the same source lines, when there are as many as are kept; else NULL.
static Hazard *find_alike(const HazardList *list, const FindingKey *key) {
  int alike = 0, last = 0;
  for (int i = 0; i < list->count; i++)
    if (list->keys[i].lines == key->lines) alike++, last = i;
  return alike < MOST_ALIKE ? NULL : &list->items[last];
}

static Hazard *append(HazardList *list, const Launch *launch, const Hazard *hazard, const FindingKey *key) {
  int capacity = list->capacity;
  list->items = host_grow(list->items, list->count, &list->capacity, sizeof *list->items);
  list->keys = host_grow(list->keys, list->count, &capacity, sizeof *list->keys);
  Hazard *added = &list->items[list->count];
  list->keys[list->count++] = *key;
  *added = *hazard;
  added->kernel = key->kernel->name;
  if (hazard->lines) added->lines = strcpy(host_allocate(strlen(hazard->lines) + 1, 1), hazard->lines);
  find_frames(launch->program->module, key->here, &added->here);
  find_frames(key->other_module, key->other, &added->other);
  return added;
}

// A finding that stops a launch is always kept. Returns NULL for another one when there are too many already.
static Hazard *remember(HazardList *list, const Launch *launch, const Hazard *hazard, const FindingKey *key) {
  Hazard *known = find_known(list, key);
  if (known) {
    known->count++;
    known->stopped |= hazard->stopped;
    return known;
  }
  Hazard *alike = hazard->stopped ? NULL : find_alike(list, key);
  if (alike) {
    alike->count++;
    alike->more = true;
    return alike;
  }
  return list->count < MOST_HAZARDS || hazard->stopped ? append(list, launch, hazard, key) : NULL;
}

// Adds a hazard, unless the launch has stopped: what it does after that is not reported.
static void add_key(Launch *launch, const Hazard *hazard, FindingKey key) {
  HazardList *list = launch->hazard_list;
  pthread_mutex_lock(&list->lock);
  if (!launch->stopped) {
    const Hazard *kept = remember(list, launch, hazard, &key);
    if (hazard->stopped) list->stopped_by = *kept;
    launch->stopped |= hazard->stopped;
  }
  pthread_mutex_unlock(&list->lock);
}

static void add_hazard(Launch *launch, const Hazard *hazard, const Inst *here, const Inst *other) {
  add_key(launch, hazard, key_of(launch, hazard, here, other));
}

void hazards_clear(HazardList *list) {
  for (int i = 0; i < list->count; i++) {
    free((HazardFrame *)list->items[i].here.frames);
    free((HazardFrame *)list->items[i].other.frames);
    free((char *)list->items[i].lines);
  }
  list->count = 0;
}

void hazards_free(HazardList *list) {
  hazards_clear(list);
  free(list->items);
  free(list->keys);
  free(list->sorted);
}

// ---- reports ----

static HazardPlace place_of_thread(const unsigned size[3], const Inst *inst, const unsigned block[3], uint32_t thread) {
  HazardPlace place = {.ptx_line = inst ? inst->source->line : 0};
  memcpy(place.block, block, sizeof place.block);
  place.thread[0] = thread % size[0];
  place.thread[1] = thread / size[0] % size[1];
  place.thread[2] = thread / size[0] / size[1];
  return place;
}

static HazardPlace place_of(const Launch *launch, const Inst *inst, const unsigned block[3], uint32_t thread) {
  return place_of_thread(launch->block, inst, block, thread);
}

static bool is_reported(const Warp *warp) {
  const Launch *launch = warp_launch(warp);
  return launch->check.on && !launch->stopped && !warp->rehearses;
}

static void report_like(Hazard hazard, const Warp *warp, const Inst *inst, int lane, const char *format,
                        va_list arguments) {
  Launch *launch = warp_launch(warp);
  hazard.count = 1;
  hazard.here = place_of(launch, inst, warp->block->index, (uint32_t)(warp->index * LANES + lane));
  vsnprintf(hazard.detail, sizeof hazard.detail, format, arguments);
  take_advice(&hazard);
  add_hazard(launch, &hazard, inst, NULL);
}

static void report_formatted(HazardGrade grade, bool stops, const Warp *warp, const Inst *inst, int lane,
                             HazardKind kind, uint64_t address, int size, const char *format, va_list arguments) {
  Hazard hazard = {.kind = kind, .grade = grade, .stopped = stops, .address = address, .size = size};
  report_like(hazard, warp, inst, lane, format, arguments);
}

void hazard_add(const Hazard *hazard, const Warp *warp, const Inst *inst, int lane, const char *format, ...) {
  if (warp_launch(warp)->stopped || warp->rehearses || !(hazard->stopped || warp_launch(warp)->check.on)) return;
  va_list arguments;
  va_start(arguments, format);
  report_like(*hazard, warp, inst, lane, format, arguments);
  va_end(arguments);
}

void hazard_amend(const Launch *launch, const Inst *inst, HazardKind kind, const char *advice, const char *format,
                  ...) {
  HazardList *list = launch->hazard_list;
  FindingKey key = key_of(launch, &(Hazard){.kind = kind}, inst, NULL);
  pthread_mutex_lock(&list->lock);
  Hazard *known = find_known(list, &key);
  if (known) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(known->detail, sizeof known->detail, format, arguments);
    va_end(arguments);
    snprintf(known->advice, sizeof known->advice, "%s", advice);
  }
  pthread_mutex_unlock(&list->lock);
}

void hazard_report(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                   const char *format, ...) {
  if (!is_reported(warp)) return;
  va_list arguments;
  va_start(arguments, format);
  report_formatted(HAZARD_FAULT, false, warp, inst, lane, kind, address, size, format, arguments);
  va_end(arguments);
}

void hazard_report_graded(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                          uint64_t address, int size, const char *format, ...) {
  if (!is_reported(warp)) return;
  va_list arguments;
  va_start(arguments, format);
  report_formatted(grade, false, warp, inst, lane, kind, address, size, format, arguments);
  va_end(arguments);
}

void hazard_stop(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                 const char *format, ...) {
  if (warp_launch(warp)->stopped || warp->rehearses) return;
  va_list arguments;
  va_start(arguments, format);
  report_formatted(HAZARD_FAULT, true, warp, inst, lane, kind, address, size, format, arguments);
  va_end(arguments);
}

void hazards_stop_reason(const HazardList *list, const char *kernel, EmulatorError *error) {
  const Hazard *hazard = &list->stopped_by;
  error->line = hazard->here.ptx_line;
  char where[200] = "";
  if (hazard->here.file) snprintf(where, sizeof where, " at %.180s:%d", hazard->here.file, hazard->here.line);
  snprintf(error->message, sizeof error->message, "%.80s stopped%s: %s: %.200s", kernel, where,
           hazard_name(hazard->kind), hazard->detail);
}

// Where the access of an epoch was made: an asynchronous one where it was issued.
static HazardPlace place_of_epoch(const Cluster *cluster, Epoch epoch, const Inst *inst) {
  const Launch *launch = cluster->launch;
  const EpochLayout *layout = &launch->check.epochs;
  const CheckCluster *near = &cluster->check;
  unsigned block[3];
  uint32_t lanes = threads_of_block(near);
  uint32_t of = epoch_cluster(layout, epoch), thread = epoch_thread(layout, epoch);
  // Of another cluster neither the issuer of an operation is known here nor which threads a set of reads stands for.
  if (of != cluster->id && (epoch & EPOCH_SET || thread >= (uint32_t)near->lane_count)) thread = 0;
  if (thread >= (uint32_t)near->lane_count) thread = agent_issue(near, thread, epoch_clock(layout, epoch)).thread;
  cluster_block_index(launch, of, (int)(thread / lanes), block);
  return place_of(launch, inst, block, thread % lanes);
}

static bool is_known(const Warp *warp, HazardGrade grade, HazardKind kind, const Inst *here, const Inst *other) {
  Launch *launch = warp_launch(warp);
  if (!is_reported(warp)) return true;
  FindingKey key = key_of(launch, &(Hazard){.kind = kind, .grade = grade}, here, other);
  HazardList *list = launch->hazard_list;
  pthread_mutex_lock(&list->lock);
  Hazard *known = find_known(list, &key);
  if (known) known->count++;
  pthread_mutex_unlock(&list->lock);
  return known;
}

bool hazard_known(HazardGrade grade, const Warp *warp, const Inst *inst, HazardKind kind) {
  return is_known(warp, grade, kind, inst, NULL);
}

bool hazard_known_conflict(HazardGrade grade, const Warp *warp, const Inst *inst, HazardKind kind, Epoch other,
                           bool other_first) {
  Launch *launch = warp_launch(warp);
  const Inst *its = &launch->program->code[epoch_pc(&launch->check.epochs, other)];
  return is_known(warp, grade, kind, other_first ? its : inst, other_first ? inst : its);
}

void hazard_report_conflict(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                            uint64_t address, int size, Epoch other, bool other_first, const char *detail) {
  Launch *launch = warp_launch(warp);
  if (!is_reported(warp)) return;
  const Inst *its = &launch->program->code[epoch_pc(&launch->check.epochs, other)];
  Hazard hazard = {.kind = kind, .grade = grade, .address = address, .size = size, .count = 1, .has_other = true};
  warp->block->raced |= grade == HAZARD_FAULT;
  hazard.of_stores = inst->row->memory == MEMORY_STORE && its->row->memory == MEMORY_STORE;
  HazardPlace own = place_of(launch, inst, warp->block->index, (uint32_t)(warp->index * LANES + lane));
  HazardPlace others = place_of_epoch(warp->block->cluster, other, its);
  hazard.here = other_first ? others : own;
  hazard.other = other_first ? own : others;
  snprintf(hazard.detail, sizeof hazard.detail, "%s", detail);
  take_advice(&hazard);
  add_hazard(launch, &hazard, other_first ? its : inst, other_first ? inst : its);
}

// Who issued an operation, and which threads a set of reads stands for, is known no more.
static HazardPlace place_of_past(const PastLaunch *past, Epoch epoch, const Inst *inst) {
  Launch shape = {.program = past->shape.program};
  memcpy(shape.grid, past->shape.grid, sizeof shape.grid);
  memcpy(shape.cluster, past->shape.cluster, sizeof shape.cluster);
  uint32_t thread = epoch_thread(&past->epochs, epoch);
  if (epoch & EPOCH_SET || thread >= past->cluster_lanes) thread = 0;
  unsigned block[3];
  cluster_block_index(&shape, epoch_cluster(&past->epochs, epoch), (int)(thread / past->block_lanes), block);
  return place_of_thread(past->shape.block, inst, block, thread % past->block_lanes);
}

void hazard_report_past(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                        uint64_t address, int size, const PastLaunch *past, Epoch other, const char *detail) {
  Launch *launch = warp_launch(warp);
  if (!is_reported(warp)) return;
  const Inst *its = &past->shape.program->code[epoch_pc(&past->epochs, other)];
  Hazard hazard = {.kind = kind, .grade = grade, .address = address, .size = size, .count = 1, .has_other = true};
  hazard.here = place_of(launch, inst, warp->block->index, (uint32_t)(warp->index * LANES + lane));
  hazard.other = place_of_past(past, other, its);
  snprintf(hazard.detail, sizeof hazard.detail, "%s", detail);
  take_advice(&hazard);
  FindingKey key = key_of(launch, &hazard, inst, its);
  key.other_module = past->shape.program->module;
  add_key(launch, &hazard, key);
}

const Inst *last_writer(const Cluster *cluster, const Region *region, uint64_t offset, HazardPlace *place) {
  const Launch *launch = cluster->launch;
  Cell cell;
  if (!launch->check.on || !region->shadow.pages) return NULL;
  shadow_run(&region->shadow, offset, 1, launch->check.number, &cell);
  if (!(cell.write & EPOCH_KERNEL)) return NULL;
  const Inst *inst = &launch->program->code[epoch_pc(&launch->check.epochs, cell.write)];
  *place = place_of_epoch(cluster, cell.write, inst);
  return inst;
}
