// Happens-before by brute force: a model of the race check for small scripts.
//
// Every access, and every synchronisation that hands something on, is a node, and each node has the set of all nodes
// that come before it. There are no clocks, no planes and no sets of reads: whether one access comes before another is
// a bit.
#pragma once

#include "order_script.h"

enum { MODEL_NODES = 4096, MODEL_WORDS = MODEL_NODES / 64, MODEL_ACCESSES = 2048 };

// A strong load that has read what a strong write stored.
typedef struct Observer {
  int node, offset, size;
} Observer;

typedef struct Access {
  int node, event, thread;  // of an operation the thread that has issued it
  Spot spot;
  int size;
  Strength strength;
  bool writes, stores, by_operation, by_proxy;
  uint8_t value;
  int handover;  // what it hands on, or 0
  Observer observers[OBSERVERS];
  int observer_count;
} Access;

// What a strong write hands on to those who read it.
typedef struct Handover {
  int next;  // what an atomic has found there, or 0
  int thread;
  int nodes[SCOPES];  // by the least scope that has the writer and the reader, or 0
} Handover;

// A node of a list. What a relaxed read has found the thread's next fence of at least the scope acquires.
typedef struct Link {
  int next, node;
  Strength scope;
} Link;

// A fence counts for a relaxed write if its token has come to the writer. Tokens go where order goes, but not from
// cluster to cluster.
typedef struct Fence {
  int node, token;
  Strength scope;
} Fence;

typedef struct Read {
  int next, access;
} Read;

typedef struct Operation {
  int over;    // a node: its accesses come before; 0: no operation
  int handed;  // ... and what an mbarrier hands on with it
  int warp;
  Mask lanes;
} Operation;

// The nodes that come directly before an access.
typedef struct Doer {
  int nodes[LANES], count;
} Doer;

// Indices begin with 1.
struct Model {
  const Script *script;
  uint64_t before[MODEL_NODES][MODEL_WORDS];
  Access accesses[MODEL_ACCESSES];
  Handover handovers[MODEL_ACCESSES];
  Link links[8 * MODEL_ACCESSES];
  Fence fences[MODEL_NODES], proxy_fences[MODEL_NODES];
  Read reads[8 * MODEL_ACCESSES];
  int nodes, access_count, handover_count, link_count, fence_count, proxy_fence_count, read_count;
  uint64_t tokens[MODEL_WORDS];  // which nodes are
  int last[SCRIPT_THREADS];      // node of each thread
  int pending[SCRIPT_THREADS];   // list of each thread: what it has read and not acquired
  int known[SCRIPT_THREADS];     // ... and what it has acquired, and its last fence
  int last_write[SCRIPT_REGIONS][SCRIPT_BYTES];
  int first_read[SCRIPT_REGIONS][SCRIPT_BYTES];  // since then
  int mbarriers[SCRIPT_BLOCKS][SCRIPT_NAMES];    // of each cluster
  Operation operations[SCRIPT_BLOCKS][SCRIPT_NAMES];
  Access found;  // the access of the finding
  Doer found_doer;
};

void model_begin(Model *model, const Script *script);
// The next event happens. False when it stands badly to one before: *finding, and nothing may follow.
bool model_follow(Model *model, int event, Finding *finding);
// Whether the event would stand badly to one before.
bool model_objects(Model *model, const Event *event);
// Whether the finding may name the event's access, by that thread, as the other one. Of another cluster's reads and
// operations the thread is not known.
bool model_agrees(const Model *model, const Finding *finding, int event, int thread);
