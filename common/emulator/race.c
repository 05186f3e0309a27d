// Memory cells: remembers who touched each byte, and reports accesses that nothing orders. See race.h.
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "warp.h"

// ---- sets of reads ----
//
// Many threads read one byte between two writes, and a later write must come after each of them. A set is a chain of
// nodes, one per warp and clock; chains are immutable and equal ones are shared, so a cell holds one index.

typedef struct ReadNode {
  uint32_t parent;  // the rest of the chain, 0: none
  uint32_t warp;    // in the cluster
  Mask mask;        // lanes that read
  uint32_t clock;   // theirs
  uint32_t pc;
  bool strong;
} ReadNode;

// "Set `from`, when `entry` is added, is set `to`": most additions have just been made for the byte before.
typedef struct Addition {
  uint32_t from, to;
  ReadNode entry;
} Addition;

enum { ADDITIONS = 1024, FIRST_NODES = 256 };

struct ReadSets {
  ReadNode *nodes;  // node 0 is nobody's
  uint32_t count, capacity;
  uint32_t *buckets;  // hash of nodes; capacity * 2 of them
  Addition additions[ADDITIONS];  // a cache
};

ReadSets *read_sets_new(void) {
  ReadSets *sets = calloc(1, sizeof *sets);
  if (!sets) abort();
  sets->count = 1;
  return sets;
}

void read_sets_free(ReadSets *sets) {
  if (!sets) return;
  free(sets->nodes);
  free(sets->buckets);
  free(sets);
}

static uint32_t node_hash(const ReadNode *n) {
  uint64_t h = n->parent * 0x9e3779b97f4a7c15ull;
  h = (h ^ n->warp ^ (uint64_t)n->mask << 8) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ n->clock ^ (uint64_t)n->pc << 32 ^ (uint64_t)n->strong << 63) * 0x94d049bb133111ebull;
  return (uint32_t)(h >> 32);
}

static bool same_entry(const ReadNode *a, const ReadNode *b) {
  return a->warp == b->warp && a->mask == b->mask && a->clock == b->clock && a->pc == b->pc && a->strong == b->strong;
}

static uint32_t *find_bucket(ReadSets *sets, const ReadNode *node) {
  uint32_t buckets = sets->capacity * 2, h = node_hash(node) & (buckets - 1);
  for (; sets->buckets[h]; h = (h + 1) & (buckets - 1)) {
    const ReadNode *found = &sets->nodes[sets->buckets[h]];
    if (found->parent == node->parent && same_entry(found, node)) break;
  }
  return &sets->buckets[h];
}

static void grow_sets(ReadSets *sets) {
  sets->capacity = sets->capacity ? sets->capacity * 2 : FIRST_NODES;
  sets->nodes = realloc(sets->nodes, sets->capacity * sizeof *sets->nodes);
  free(sets->buckets);
  sets->buckets = calloc((size_t)sets->capacity * 2, sizeof *sets->buckets);
  if (!sets->nodes || !sets->buckets) abort();
  for (uint32_t i = 1; i < sets->count; i++) *find_bucket(sets, &sets->nodes[i]) = i;
}

// The chain `parent` with one node more.
static uint32_t push(ReadSets *sets, uint32_t parent, ReadNode entry) {
  if (sets->count >= sets->capacity) grow_sets(sets);
  entry.parent = parent;
  uint32_t *bucket = find_bucket(sets, &entry);
  if (*bucket == 0) {
    sets->nodes[sets->count] = entry;
    *bucket = sets->count++;
  }
  return *bucket;
}

// Whether b remembers nothing that a does not: the same lanes of the same warp, no later.
static bool covers(const ReadNode *a, const ReadNode *b) {
  return a->warp == b->warp && (b->mask & ~a->mask) == 0 && b->clock <= a->clock && (b->strong || !a->strong);
}

// The set with the entry added and whatever it covers left out.
static uint32_t add_entry(ReadSets *sets, uint32_t set, const ReadNode *entry) {
  uint32_t kept[64];
  int count = 0;
  uint32_t rest = set;
  bool covered_any = false;
  for (; rest && count < 64; rest = sets->nodes[rest].parent) {
    const ReadNode *node = &sets->nodes[rest];
    if (covers(node, entry) && node->clock == entry->clock) return set;
    if (covers(entry, node)) covered_any = true;
    else kept[count++] = rest;
  }
  if (!covered_any) return push(sets, set, *entry);
  uint32_t result = rest;
  while (count > 0) result = push(sets, result, sets->nodes[kept[--count]]);
  return push(sets, result, *entry);
}

static uint32_t add_read(ReadSets *sets, uint32_t set, const ReadNode *entry) {
  Addition *memo = &sets->additions[(set * 31 + node_hash(entry)) % ADDITIONS];
  if (memo->to && memo->from == set && same_entry(&memo->entry, entry)) return memo->to;
  uint32_t result = add_entry(sets, set, entry);
  *memo = (Addition){set, result, *entry};
  return result;
}

// ---- order ----

static Epoch epoch_of(const Warp *warp, const Inst *inst, int lane, bool strong) {
  const Launch *launch = warp_launch(warp);
  const EpochLayout *layout = &launch->epochs;
  uint64_t pc = (uint64_t)(inst - launch->program->code);
  return EPOCH_KERNEL | (strong ? EPOCH_STRONG : 0) | (uint64_t)warp->block->cluster->id << layout->cluster_shift |
         (uint64_t)warp_thread(warp, lane) << layout->thread_shift | pc << layout->pc_shift | warp->clocks[lane].own;
}

// Whether the lane knows of the thread's accesses at that clock.
static bool knows(const Warp *warp, int lane, uint32_t thread, uint32_t clock) {
  if (thread == warp_thread(warp, lane)) return true;
  const Clocks *known = warp->clocks[lane].known;
  return known && known->clock[thread] >= clock;
}

static const Clocks *imported(const Clocks *known, uint32_t cluster) {
  for (int i = 0; known && i < known->import_count; i++)
    if (known->imports[i].cluster == cluster) return known->imports[i].clocks;
  return NULL;
}

// Whether the remembered access comes before what the lane does now, or needs no order because both are strong.
static bool ordered(const Warp *warp, int lane, Epoch epoch, bool strong) {
  if (!(epoch & EPOCH_KERNEL) || (strong && epoch & EPOCH_STRONG)) return true;
  const EpochLayout *layout = &warp_launch(warp)->epochs;
  uint32_t cluster = epoch_cluster(layout, epoch);
  if (cluster == warp->block->cluster->id) return knows(warp, lane, epoch_thread(layout, epoch), epoch_clock(layout, epoch));
  const Clocks *clocks = imported(warp->clocks[lane].known, cluster);
  // Of another cluster's set only the cluster is left: knowing anything of it has to do.
  if (!clocks || epoch & EPOCH_SET) return clocks != NULL;
  return clocks->clock[epoch_thread(layout, epoch)] >= epoch_clock(layout, epoch);
}

// ---- reports ----

static HazardKind race_kind(const Region *region) {
  return region->kind == REGION_SHARED ? HAZARD_SHARED_RACE : HAZARD_GLOBAL_RACE;
}

static void report_race(const Warp *warp, const Inst *inst, int lane, const Region *region, uint64_t offset, int size,
                        Epoch other, const char *what) {
  hazard_report_conflict(warp, inst, lane, race_kind(region), region->base + offset, size, other, "%s", what);
}

// ---- cells ----

// Forgets what an earlier launch remembered: it all happened before this one.
static void renew_pages(Region *region, uint64_t offset, int size, uint32_t launch) {
  if (region->kind == REGION_SHARED) return;
  for (uint64_t page = offset >> REGION_PAGE_SHIFT; page <= (offset + (uint64_t)size - 1) >> REGION_PAGE_SHIFT; page++) {
    if (region->ages[page] == launch) continue;
    region->ages[page] = launch;
    uint64_t start = page << REGION_PAGE_SHIFT, end = start + (1 << REGION_PAGE_SHIFT);
    for (uint64_t i = start; i < end && i < region->size; i++)
      region->cells[i] = (Cell){.write = region->cells[i].write ? EPOCH_HOST : EPOCH_NONE};
  }
}

static bool same_cell(const Cell *a, const Cell *b) {
  return a->write == b->write && a->read == b->read && a->foreign == b->foreign;
}

// How many of the bytes from the first on have equal cells, which are then treated as one.
static int equal_cells(const Cell *cells, int size) {
  int run = 1;
  while (run < size && same_cell(&cells[run], &cells[0])) run++;
  return run;
}

static void check_read(Warp *warp, const Inst *inst, Mask mask, Region *region, uint64_t offset, int size, Epoch write,
                       bool strong) {
  if (write == EPOCH_NONE) {
    hazard_report(warp, inst, __builtin_ctz(mask), HAZARD_UNINITIALISED_READ, region->base + offset, size,
                  "nothing was ever written there");
    return;
  }
  for (Mask rest = mask; rest && write & EPOCH_KERNEL; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    if (ordered(warp, lane, write, strong)) continue;
    report_race(warp, inst, lane, region, offset, size, write, "reads what another thread writes, and nothing orders the two");
    return;
  }
}

// The sets that a cell with that read, of this cluster, stands for.
static uint32_t as_set(Warp *warp, Epoch read) {
  const EpochLayout *layout = &warp_launch(warp)->epochs;
  if (read == EPOCH_NONE) return 0;
  if (read & EPOCH_SET) return (uint32_t)(read & layout->set_mask);
  uint32_t thread = epoch_thread(layout, read), in_block = thread % (uint32_t)warp->block->thread_count;
  uint32_t rank = thread / (uint32_t)warp->block->thread_count;
  ReadNode entry = {.warp = rank * (uint32_t)warp->block->warp_count + in_block / LANES,
                    .mask = 1u << in_block % LANES,
                    .clock = epoch_clock(layout, read),
                    .pc = epoch_pc(layout, read),
                    .strong = (read & EPOCH_STRONG) != 0};
  return add_read(warp->block->cluster->read_sets, 0, &entry);
}

// The reads of a cell after the lanes of mask, whose clocks are equal, have read it too.
static Epoch reads_with(Warp *warp, const Inst *inst, Mask mask, Epoch read, bool strong) {
  const Launch *launch = warp_launch(warp);
  const EpochLayout *layout = &launch->epochs;
  int lane = __builtin_ctz(mask);
  Epoch own = epoch_of(warp, inst, lane, strong);
  bool single = (mask & (mask - 1)) == 0;
  if (single && read == EPOCH_NONE) return own;
  if (single && !(read & EPOCH_SET) && epoch_thread(layout, read) == epoch_thread(layout, own) && !(strong && !(read & EPOCH_STRONG)))
    return own;
  ReadNode entry = {.warp = (uint32_t)(warp->block->rank * warp->block->warp_count + warp->index),
                    .mask = mask,
                    .clock = warp->clocks[lane].own,
                    .pc = (uint32_t)(inst - launch->program->code),
                    .strong = strong};
  uint32_t set = add_read(warp->block->cluster->read_sets, as_set(warp, read), &entry);
  uint64_t keep = layout->cluster_mask << layout->cluster_shift | layout->pc_mask << layout->pc_shift;
  if (set > layout->set_mask) {
    hazard_report(warp, inst, lane, HAZARD_STEP_LIMIT, 0, 0, "more patterns of reads than the race check can count; %s",
                  "run with --hazards=off");
    launch_stop(warp_launch(warp));
    return own;
  }
  return EPOCH_KERNEL | EPOCH_SET | (own & keep) | set;
}

static Cell cell_after_read(Warp *warp, const Inst *inst, Mask mask, Cell cell, bool strong) {
  const EpochLayout *layout = &warp_launch(warp)->epochs;
  if (cell.read && epoch_cluster(layout, cell.read) != warp->block->cluster->id) {
    cell.foreign = cell.read;
    cell.read = EPOCH_NONE;
  }
  while (mask) {  // lanes of one clock at a time: nearly always all
    uint32_t clock = warp->clocks[__builtin_ctz(mask)].own;
    Mask same = 0;
    for (Mask rest = mask; rest; rest &= rest - 1)
      if (warp->clocks[__builtin_ctz(rest)].own == clock) same |= rest & -rest;
    cell.read = reads_with(warp, inst, same, cell.read, strong);
    mask &= ~same;
  }
  return cell;
}

void race_read(Warp *warp, const Inst *inst, Mask mask, Region *region, uint64_t offset, int size, bool strong) {
  renew_pages(region, offset, size, warp_launch(warp)->number);
  for (int done = 0; done < size;) {
    Cell *cells = region->cells + offset + done;
    int run = equal_cells(cells, size - done);
    check_read(warp, inst, mask, region, offset + (uint64_t)done, run, cells->write, strong);
    Cell after = cell_after_read(warp, inst, mask, *cells, strong);
    for (int i = 0; i < run; i++) cells[i] = after;
    done += run;
  }
}

// A read that does not come before the lane's write; EPOCH_NONE when all do.
static Epoch unordered_read(const Warp *warp, int lane, Epoch read, bool strong) {
  const Launch *launch = warp_launch(warp);
  const EpochLayout *layout = &launch->epochs;
  const Cluster *cluster = warp->block->cluster;
  if (!(read & EPOCH_SET) || epoch_cluster(layout, read) != cluster->id)
    return ordered(warp, lane, read, strong) ? EPOCH_NONE : read;
  const ReadNode *nodes = cluster->read_sets->nodes;
  for (uint32_t n = (uint32_t)(read & layout->set_mask); n; n = nodes[n].parent) {
    if (strong && nodes[n].strong) continue;
    uint32_t rank = nodes[n].warp / (uint32_t)warp->block->warp_count;
    uint32_t first = rank * (uint32_t)warp->block->thread_count + nodes[n].warp % (uint32_t)warp->block->warp_count * LANES;
    for (Mask rest = nodes[n].mask; rest; rest &= rest - 1) {
      uint32_t thread = first + (uint32_t)__builtin_ctz(rest);
      if (knows(warp, lane, thread, nodes[n].clock)) continue;
      return EPOCH_KERNEL | (uint64_t)cluster->id << layout->cluster_shift | (uint64_t)thread << layout->thread_shift |
             (uint64_t)nodes[n].pc << layout->pc_shift | nodes[n].clock;
    }
  }
  return EPOCH_NONE;
}

// Whether the remembered write is another lane's of this same instruction, and wrote the same value.
static bool same_store(const Warp *warp, const Inst *inst, int lane, const Region *region, uint64_t offset, int size,
                       Epoch write, const uint8_t *value) {
  const EpochLayout *layout = &warp_launch(warp)->epochs;
  Epoch own = epoch_of(warp, inst, lane, false);
  uint32_t thread = epoch_thread(layout, write), self = epoch_thread(layout, own);
  int other = (int)thread - (int)self + lane;  // its lane, if it is of this warp
  return value && epoch_pc(layout, write) == epoch_pc(layout, own) && epoch_cluster(layout, write) == epoch_cluster(layout, own) &&
         other >= 0 && other < LANES && warp->clocks[other].own == epoch_clock(layout, write) &&
         !memcmp(region->data + offset, value, (size_t)size);
}

void race_write(Warp *warp, const Inst *inst, int lane, Region *region, uint64_t offset, int size, const void *value,
                bool strong) {
  renew_pages(region, offset, size, warp_launch(warp)->number);
  Cell after = {.write = epoch_of(warp, inst, lane, strong)};
  for (int done = 0; done < size;) {
    Cell *cells = region->cells + offset + done;
    int run = equal_cells(cells, size - done);
    uint64_t at = offset + (uint64_t)done;
    const uint8_t *bytes = value ? (const uint8_t *)value + done : NULL;
    if (!ordered(warp, lane, cells->write, strong) &&
        !same_store(warp, inst, lane, region, at, run, cells->write, bytes)) {
      report_race(warp, inst, lane, region, at, run, cells->write, "writes what another thread writes, and nothing orders the two");
    } else {
      Epoch read = unordered_read(warp, lane, cells->read, strong);
      if (read == EPOCH_NONE) read = unordered_read(warp, lane, cells->foreign, strong);
      if (read != EPOCH_NONE)
        report_race(warp, inst, lane, region, at, run, read, "writes what another thread reads, and nothing orders the two");
    }
    for (int i = 0; i < run; i++) cells[i] = after;
    done += run;
  }
}

void race_atomic(Warp *warp, const Inst *inst, int lane, Region *region, uint64_t offset, int size) {
  renew_pages(region, offset, size, warp_launch(warp)->number);
  for (int i = 0; i < size; i++) {
    if (region->cells[offset + (uint64_t)i].write != EPOCH_NONE) continue;
    check_read(warp, inst, 1u << lane, region, offset, size, EPOCH_NONE, true);
    break;
  }
  race_write(warp, inst, lane, region, offset, size, NULL, true);
}
