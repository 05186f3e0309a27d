// Sets of reads: many threads read one byte between two writes, and a later write must come after each of them.
//
// A set is a chain of nodes, one per warp and clock; chains are immutable and equal ones are shared, so that a cell
// needs to hold no more than an index. They belong to a cluster: another one judges by the cell alone.
//
// Where each lane of two warps reads an element of its own, the sets of neighbours differ in the lane alone. So the
// masks of a chain are turned: a cell holds the chain and a lane, its turn, by which the masks must be turned to be
// those of the lanes that read. All 32 elements then share a chain, and their cells differ in the low bits, as those of
// single reads do.
//
//   element   was read by               masks of its reads           chain           turn
//      0      lane 0 of warps 3 and 5   0...001 and 0...001   =   0...001, 0...001     0
//      1      lane 1 of warps 3 and 5   0...010 and 0...010   =   the same             1
//     31      lane 31 of both           1...000 and 1...000   =   the same            31
#pragma once

#include <stdbool.h>

#include "../host/host_memory.h"

typedef struct ReadNode {
  uint32_t parent;  // the rest of the chain, 0: none
  Mask mask;        // lanes that read, turned back
  uint32_t clock;   // theirs
  uint32_t pc;
  uint16_t warp;      // in the cluster
  uint8_t strength;   // a Strength
  uint8_t kept : 2;   // for the next sweep: read_sets.c
  bool any_turn : 1;  // all lanes of the warp, and so the rest of the chain: it is the same in every turn
} ReadNode;

static inline Mask turned(Mask mask, unsigned turn) { return mask << turn | mask >> (-turn & (LANES - 1)); }
static inline Mask turned_back(Mask mask, unsigned turn) { return turned(mask, -turn & (LANES - 1)); }

typedef struct ReadSets ReadSets;

ReadSets *read_sets_new(Usage *usage);
void read_sets_free(ReadSets *sets);

// A node of a set, valid until the next push.
const ReadNode *read_sets_node(const ReadSets *sets, uint32_t index);
// The chain `parent` with one node more.
uint32_t read_sets_push(ReadSets *sets, uint32_t parent, ReadNode node);

// "Set `from`, when `node` is added, is set `to`": most additions have just been made for the byte before. 0 when it is
// not remembered. turn: of the set for which it is so, or ANY_TURN.
enum { ANY_TURN = LANES };
uint32_t read_sets_recall(const ReadSets *sets, uint32_t from, const ReadNode *node, unsigned turn);
void read_sets_remember(ReadSets *sets, uint32_t from, const ReadNode *node, unsigned turn, uint32_t to);

// ---- releasing the sets that no byte holds any more ----

// Whether it is time for it.
bool read_sets_full(const ReadSets *sets);
// A set that is still held.
void read_sets_keep(ReadSets *sets, uint32_t set);
// One that is to be kept for good.
void read_sets_pin(ReadSets *sets, uint32_t set);
// Releases all that was not kept since the last sweep.
void read_sets_sweep(ReadSets *sets);
