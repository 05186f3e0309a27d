// Sets of reads: see read_sets.h.
#include "read_sets.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"

typedef struct Addition {
  uint32_t from, to;
  unsigned turn;
  ReadNode node;
} Addition;

enum { ADDITIONS = 1024, FIRST_NODES = 256, FIRST_LIMIT = 4096 };
enum { NOT_KEPT, KEPT, PINNED };  // ReadNode.kept

struct ReadSets {
  ReadNode *nodes;           // node 0 is unused
  uint32_t count, capacity;  // nodes that ever were in use, and room for them
  uint32_t free;             // the first of those that no longer are, chained by `parent`; 0: none
  uint32_t used, pinned;     // nodes in use, and those of them that stay for good
  uint32_t limit;            // with how many others a sweep is due
  uint32_t *buckets;         // hash of nodes; capacity * 2 of them
  Addition additions[ADDITIONS];
  Usage *usage;
};

// What sets with room for so many nodes take.
static size_t sets_bytes(uint32_t capacity) {
  return sizeof(ReadSets) + capacity * (sizeof(ReadNode) + 2 * sizeof(uint32_t));
}

ReadSets *read_sets_new(Usage *usage) {
  ReadSets *sets = host_allocate(1, sizeof *sets);
  sets->count = 1;
  sets->limit = FIRST_LIMIT;
  sets->usage = usage;
  usage_add(usage, sets_bytes(0));
  return sets;
}

void read_sets_free(ReadSets *sets) {
  if (!sets) return;
  usage_subtract(sets->usage, sets_bytes(sets->capacity));
  free(sets->nodes);
  free(sets->buckets);
  free(sets);
}

const ReadNode *read_sets_node(const ReadSets *sets, uint32_t index) { return &sets->nodes[index]; }

// ---- equal nodes are one ----

static uint32_t node_hash(const ReadNode *n) {
  uint64_t h = n->parent * 0x9e3779b97f4a7c15ull;
  h = (h ^ n->warp ^ (uint64_t)n->mask << 8) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ n->clock ^ (uint64_t)n->pc << 32 ^ (uint64_t)n->strength << 62) * 0x94d049bb133111ebull;
  return (uint32_t)(h >> 32);
}

static bool same_reads(const ReadNode *a, const ReadNode *b) {
  return a->warp == b->warp && a->mask == b->mask && a->clock == b->clock && a->pc == b->pc &&
         a->strength == b->strength;
}

static uint32_t *find_bucket(ReadSets *sets, const ReadNode *node) {
  uint32_t buckets = sets->capacity * 2, h = node_hash(node) & (buckets - 1);
  for (; sets->buckets[h]; h = (h + 1) & (buckets - 1)) {
    const ReadNode *found = &sets->nodes[sets->buckets[h]];
    if (found->parent == node->parent && same_reads(found, node)) break;
  }
  return &sets->buckets[h];
}

// Called when all nodes are in use.
static void grow_nodes(ReadSets *sets) {
  uint32_t before = sets->capacity;
  sets->capacity = before ? before * 2 : FIRST_NODES;
  usage_add(sets->usage, sets_bytes(sets->capacity) - sets_bytes(before));
  sets->nodes = realloc(sets->nodes, sets->capacity * sizeof *sets->nodes);
  free(sets->buckets);
  sets->buckets = host_allocate((size_t)sets->capacity * 2, sizeof *sets->buckets);
  if (!sets->nodes) out_of_memory();
  for (uint32_t i = 1; i < sets->count; i++) *find_bucket(sets, &sets->nodes[i]) = i;
}

static uint32_t take_node(ReadSets *sets) {
  uint32_t taken = sets->free;
  sets->used++;
  if (!taken) return sets->count++;
  sets->free = sets->nodes[taken].parent;
  return taken;
}

uint32_t read_sets_push(ReadSets *sets, uint32_t parent, ReadNode node) {
  if (!sets->free && sets->count >= sets->capacity) grow_nodes(sets);
  node.parent = parent;
  node.kept = NOT_KEPT;
  node.any_turn = node.mask == FULL_MASK && (!parent || sets->nodes[parent].any_turn);
  uint32_t *bucket = find_bucket(sets, &node);
  if (*bucket == 0) {
    *bucket = take_node(sets);
    sets->nodes[*bucket] = node;
  }
  return *bucket;
}

static uint32_t addition_index(uint32_t from, const ReadNode *node) {
  return (from * 31 + node_hash(node)) % ADDITIONS;
}

uint32_t read_sets_recall(const ReadSets *sets, uint32_t from, const ReadNode *node, unsigned turn) {
  const Addition *addition = &sets->additions[addition_index(from, node)];
  bool fits = addition->turn == turn || addition->turn == ANY_TURN;
  return fits && addition->from == from && same_reads(&addition->node, node) ? addition->to : 0;
}

void read_sets_remember(ReadSets *sets, uint32_t from, const ReadNode *node, unsigned turn, uint32_t to) {
  sets->additions[addition_index(from, node)] = (Addition){from, to, turn, *node};
}

// ---- release ----

bool read_sets_full(const ReadSets *sets) { return sets->used - sets->pinned >= sets->limit; }

void read_sets_keep(ReadSets *sets, uint32_t set) {
  for (; set && sets->nodes[set].kept == NOT_KEPT; set = sets->nodes[set].parent) sets->nodes[set].kept = KEPT;
}

void read_sets_pin(ReadSets *sets, uint32_t set) {
  for (; set && sets->nodes[set].kept != PINNED; set = sets->nodes[set].parent) {
    sets->nodes[set].kept = PINNED;
    sets->pinned++;
  }
}

// The next sweep is due when there are twice as many as are left now: so its work is shared by as many pushes. Pinned
// nodes do not make one due, because it would release none of them.
void read_sets_sweep(ReadSets *sets) {
  memset(sets->additions, 0, sizeof sets->additions);
  memset(sets->buckets, 0, (size_t)sets->capacity * 2 * sizeof *sets->buckets);
  sets->free = 0;
  sets->used = 0;
  for (uint32_t i = 1; i < sets->count; i++) {
    ReadNode *node = &sets->nodes[i];
    if (node->kept == NOT_KEPT) {
      node->parent = sets->free;
      sets->free = i;
      continue;
    }
    if (node->kept == KEPT) node->kept = NOT_KEPT;
    *find_bucket(sets, node) = i;
    sets->used++;
  }
  uint32_t twice = 2 * (sets->used - sets->pinned);
  sets->limit = twice > FIRST_LIMIT ? twice : FIRST_LIMIT;
}
