// Hazards: what they are called, what to do about them, and the list of those met.
#include "hazard.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../warp/host_memory.h"
#include "agents.h"

static const struct {
  const char *name, *advice;
} kinds[HAZARD_KIND_COUNT] = {
    [HAZARD_OUT_OF_BOUNDS] = {"out-of-bounds access",
                              "Check the index against the size of the array, and mask the tail of the last tile."},
    [HAZARD_MISALIGNED] =
        {"misaligned access",
         "An access of n bytes needs an address that is a multiple of n: align the array, or use a narrower access."},
    [HAZARD_UNINITIALISED_READ] = {"uninitialised read", "Write the bytes before they are read, or do not read them."},
    [HAZARD_SHARED_RACE] = {"shared-memory race",
                            "Put a barrier (__syncthreads, __syncwarp, an mbarrier) between the two accesses."},
    [HAZARD_GLOBAL_RACE] = {"global-memory race", "Order the two with a barrier inside a block, with atomics and "
                                                  "fences between blocks, or with a second launch."},
    [HAZARD_DIVERGENT_ALIGNED] =
        {"divergent .aligned instruction",
         "All lanes of the warp (or of the member mask) must execute it together: move it out of the branch."},
    [HAZARD_BARRIER_MISUSE] =
        {"barrier misuse",
         "All users of a barrier must agree on its number and on its count of threads, a multiple of the warp size."},
    [HAZARD_DEADLOCK] = {"deadlock",
                         "Every thread that a barrier expects must reach it: count the threads that arrive."},
    [HAZARD_PROXY_FENCE] = {"missing proxy fence", "Put fence.proxy.async after the writes, in the threads that wrote, "
                                                   "before the barrier that hands the data over."},
    [HAZARD_READ_BEFORE_WAIT] = {"read before wait",
                                 "Wait for the copy (wait_group, or the mbarrier's phase) before its data is read."},
    [HAZARD_OVERWRITE_IN_FLIGHT] =
        {"overwrite in flight",
         "Wait until the asynchronous operation has finished with the memory before it is written again."},
    [HAZARD_REGISTER_IN_FLIGHT] =
        {"register touched in flight",
         "Between wgmma.mma_async and its wgmma.wait_group leave its accumulator and A registers alone."},
    [HAZARD_WGMMA_FENCE] =
        {"missing wgmma.fence",
         "Put wgmma.fence after the last use of the accumulator or A registers, before the first wgmma.mma_async."},
    [HAZARD_DESCRIPTOR] = {"bad descriptor", "All threads of the warpgroup give the same descriptor: the address >> 4, "
                                             "the two byte offsets >> 4, the swizzle mode."},
    [HAZARD_MBARRIER_MISUSE] = {"mbarrier misuse", "Initialise an mbarrier once, before use, with the number of "
                                                   "arrivals of one phase; wait with the parity of the phase."},
    [HAZARD_EXPECT_TX] = {"wrong expect_tx", "The bytes expected in a phase must be those of all its copies together, "
                                             "announced before the phase can complete."},
    [HAZARD_TENSOR_MAP] = {"bad tensor map", "Make the map with the device's encoder, pass it as a __grid_constant__ "
                                             "parameter, and use the dimensions it has."},
    [HAZARD_SETMAXNREG] = {"setmaxnreg misuse", "All warps of a warpgroup execute it, with a multiple of 8 from 24 to "
                                                "256, within what the block's launch allotted."},
    [HAZARD_TRAP] = {"trap", "The kernel stopped itself, or could not go on."},
    [HAZARD_STEP_LIMIT] = {"step limit", "The kernel ran longer than allowed: look for a loop that never ends."},
};

const char *hazard_name(HazardKind kind) { return kinds[kind].name; }
const char *hazard_advice(HazardKind kind) { return kinds[kind].advice; }

static bool has_file(const PtxModule *module, const PtxLocation *location) {
  return location && location->file >= 0 && location->file < module->file_count && module->files[location->file];
}

// The length of the path of the folder that has the file's folder; of the file's own folder where that would be the root.
static size_t surroundings(const char *file) {
  size_t length = strlen(file), folders = 0;
  while (length > 0 && (file[length - 1] != '/' || ++folders < 2)) length--;
  if (length > 1) return length;
  const char *slash = strrchr(file, '/');
  return slash ? (size_t)(slash + 1 - file) : 0;
}

// Whether a file is the kernel's own: the one where the kernel stands. When that is a header, the kernel has no file of its
// own, and the folder and those beside it count: stages share such headers.
static bool is_own(const char *file, const char *kernel) {
  size_t length = strlen(kernel);
  if (length > 3 && !strcmp(kernel + length - 3, ".cu")) return !strcmp(file, kernel);
  size_t folder = surroundings(kernel);
  return folder ? !strncmp(file, kernel, folder) : !strchr(file, '/');
}

bool instruction_line(const PtxModule *module, const PtxInstruction *source, const char **file, int *line) {
  *file = NULL;
  *line = 0;
  const PtxLocation *outermost = source ? source->location : NULL;
  while (outermost && outermost->inlined_at) outermost = outermost->inlined_at;
  if (!has_file(module, outermost)) return false;
  const PtxLocation *location = source->location;
  while (!has_file(module, location) || !is_own(module->files[location->file], module->files[outermost->file]))
    location = location->inlined_at;
  *file = module->files[location->file];
  *line = location->line;
  return true;
}

static HazardPlace place_of(const Launch *launch, const Inst *inst, const unsigned block[3], uint32_t thread) {
  HazardPlace place = {0};
  if (inst) {
    place.ptx_line = inst->source->line;
    instruction_line(launch->program->module, inst->source, &place.file, &place.line);
  }
  memcpy(place.block, block, sizeof place.block);
  const unsigned *size = launch->block;
  place.thread[0] = thread % size[0];
  place.thread[1] = thread / size[0] % size[1];
  place.thread[2] = thread / size[0] / size[1];
  return place;
}

static bool same_place(const HazardPlace *a, const HazardPlace *b) {
  bool lines_known = a->file && b->file;
  return lines_known ? a->line == b->line && !strcmp(a->file, b->file) : a->ptx_line == b->ptx_line;
}

static bool same_hazard(const Hazard *a, const Hazard *b) {
  return a->kind == b->kind && a->has_other == b->has_other && same_place(&a->here, &b->here) &&
         (!a->has_other || same_place(&a->other, &b->other));
}

enum { MOST_HAZARDS = 1000 };

// A reader of so many does not read on; but what stops a launch is always kept.
static void remember(HazardList *list, const Hazard *hazard) {
  Hazard *known = NULL;
  for (int i = 0; i < list->count && !known; i++)
    if (same_hazard(&list->items[i], hazard)) known = &list->items[i];
  if (known) {
    known->count++;
    known->stopped |= hazard->stopped;
  } else if (list->count < MOST_HAZARDS || hazard->stopped) {
    list->items = host_grow(list->items, list->count, &list->capacity, sizeof(Hazard));
    list->items[list->count++] = *hazard;
  }
}

// Adds a hazard, unless the launch has stopped: what it does after that is not reported.
static void add(Launch *launch, const Hazard *hazard) {
  HazardList *list = launch->hazard_list;
  pthread_mutex_lock(&list->lock);
  if (!launch->stopped) {
    remember(list, hazard);
    if (hazard->stopped) list->stopped_by = *hazard;
    launch->stopped |= hazard->stopped;
  }
  pthread_mutex_unlock(&list->lock);
}

static bool is_reported(const Launch *launch) { return launch->hazards && !launch->stopped; }

static Hazard make_hazard(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                          uint64_t address, int size, const char *format, va_list arguments) {
  const Block *block = warp->block;
  Hazard hazard = {.kind = kind, .grade = grade, .address = address, .size = size, .count = 1};
  hazard.here = place_of(warp_launch(warp), inst, block->index, (uint32_t)(warp->index * LANES + lane));
  vsnprintf(hazard.detail, sizeof hazard.detail, format, arguments);
  return hazard;
}

void hazard_report(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                   const char *format, ...) {
  if (!is_reported(warp_launch(warp))) return;
  va_list arguments;
  va_start(arguments, format);
  Hazard hazard = make_hazard(HAZARD_FAULT, warp, inst, lane, kind, address, size, format, arguments);
  va_end(arguments);
  add(warp_launch(warp), &hazard);
}

void hazard_report_graded(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                          uint64_t address, int size, const char *format, ...) {
  if (!is_reported(warp_launch(warp))) return;
  va_list arguments;
  va_start(arguments, format);
  Hazard hazard = make_hazard(grade, warp, inst, lane, kind, address, size, format, arguments);
  va_end(arguments);
  add(warp_launch(warp), &hazard);
}

void hazard_stop(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                 const char *format, ...) {
  if (warp_launch(warp)->stopped) return;
  va_list arguments;
  va_start(arguments, format);
  Hazard hazard = make_hazard(HAZARD_FAULT, warp, inst, lane, kind, address, size, format, arguments);
  va_end(arguments);
  hazard.stopped = true;
  add(warp_launch(warp), &hazard);
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
static HazardPlace place_of_epoch(const Cluster *cluster, Epoch epoch) {
  const Launch *launch = cluster->launch;
  const EpochLayout *layout = launch->epochs;
  unsigned block[3];
  uint32_t lanes = (uint32_t)(cluster->lane_count / cluster->block_count);
  uint32_t of = epoch_cluster(layout, epoch), thread = epoch_thread(layout, epoch);
  // Of another cluster neither the issuer of an operation is known here nor which threads a set of reads stands for.
  if (of != cluster->id && (epoch & EPOCH_SET || thread >= (uint32_t)cluster->lane_count)) thread = 0;
  if (thread >= (uint32_t)cluster->lane_count) thread = agent_issue(cluster, thread, epoch_clock(layout, epoch)).thread;
  cluster_block_index(launch, of, (int)(thread / lanes), block);
  return place_of(launch, &launch->program->code[epoch_pc(layout, epoch)], block, thread % lanes);
}

void hazard_report_conflict(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                            uint64_t address, int size, Epoch other, bool other_first, const char *detail) {
  Launch *launch = warp_launch(warp);
  if (!is_reported(launch)) return;
  Hazard hazard = {.kind = kind, .grade = grade, .address = address, .size = size, .count = 1, .has_other = true};
  HazardPlace own = place_of(launch, inst, warp->block->index, (uint32_t)(warp->index * LANES + lane));
  HazardPlace others = place_of_epoch(warp->block->cluster, other);
  hazard.here = other_first ? others : own;
  hazard.other = other_first ? own : others;
  snprintf(hazard.detail, sizeof hazard.detail, "%s", detail);
  add(launch, &hazard);
}

// ---- printing ----

static int compare_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

static int compare_hazards(const void *left, const void *right) {
  const Hazard *a = left, *b = right;
  int order = compare_text(a->here.file, b->here.file);
  if (!order) order = (a->here.line > b->here.line) - (a->here.line < b->here.line);
  if (!order) order = (int)a->kind - (int)b->kind;
  if (!order) order = (a->here.ptx_line > b->here.ptx_line) - (a->here.ptx_line < b->here.ptx_line);
  if (!order) order = (a->other.line > b->other.line) - (a->other.line < b->other.line);
  return order ? order : (a->other.ptx_line > b->other.ptx_line) - (a->other.ptx_line < b->other.ptx_line);
}

const Hazard *hazards_sorted(HazardList *list, int *count) {
  if (list->count) qsort(list->items, (size_t)list->count, sizeof(Hazard), compare_hazards);
  *count = list->count;
  return list->items;
}

static void print_place(FILE *out, const char *role, const HazardPlace *place) {
  fprintf(out, "    %s ", role);
  if (place->file)
    fprintf(out, "%s:%d", place->file, place->line);
  else
    fprintf(out, "PTX line %d", place->ptx_line);
  fprintf(out, "  block (%u,%u,%u) thread (%u,%u,%u)\n", place->block[0], place->block[1], place->block[2],
          place->thread[0], place->thread[1], place->thread[2]);
}

void emulator_print_hazard(FILE *out, const Hazard *hazard) {
  fprintf(out, "%s: %s", hazard_name(hazard->kind), hazard->detail);
  if (hazard->size)
    fprintf(out, " (%d byte%s at 0x%llx)", hazard->size, hazard->size > 1 ? "s" : "",
            (unsigned long long)hazard->address);
  fputc('\n', out);
  print_place(out, "at", &hazard->here);
  if (hazard->has_other) print_place(out, "and", &hazard->other);
  if (hazard->count > 1) fprintf(out, "    met %llu times\n", (unsigned long long)hazard->count);
  fprintf(out, "    %s\n", hazard_advice(hazard->kind));
}
