// What a graph is, for the two files of graphs.
#pragma once

#include "driver.h"

struct CUgraphNode_st {
  CUgraph graph;
  Operation operation;
  NodeList after;
  NodeList early;  // of those the launches that may still run when this one begins: programmatic edges
  bool enabled;
  bool done;             // in the run that is under way
  uint32_t launch;       // its number there
  CUgraphNode copy;      // while a graph is cloned
  CUgraphNode original;  // of a clone's node
  void **arguments;      // for cuGraphKernelNodeGetParams
};

struct CUgraph_st {
  NodeList nodes;
};

struct CUgraphExec_st {
  CUgraph graph;  // a clone
  unsigned long long flags;
};

void graph_remove(CUgraphNode node);
// The edge between the two is programmatic, if its data says so; NULL: no data.
bool graph_add_edge_data(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *edge);
void node_list_remove(NodeList *list, CUgraphNode node);

// ---- graph_memory.c ----

// Whether a graph has memory nodes. It cannot be cloned then, nor be a child.
bool graph_memory_in(const struct CUgraph_st *graph);
// Called before each launch: what the last one has allocated must be free again, or is freed where the flags say so.
CUresult graph_memory_begin(const struct CUgraph_st *graph, unsigned long long flags);

// ---- conditional.c ----

// Whether a graph has conditional nodes. It cannot be cloned then, nor be a child.
bool conditional_in(const struct CUgraph_st *graph);
// Called when the graph is destroyed, when an executable one is made of it and destroyed again, and at each launch.
void conditional_forget_graph(const struct CUgraph_st *graph);
CUresult conditional_instantiate(const struct CUgraph_st *graph);
void conditional_end(const struct CUgraph_st *graph);
void conditional_begin(const struct CUgraph_st *graph);
#if CUDA_VERSION >= 12030
// The operation of a conditional node, with empty bodies.
CUresult condition_of(const CUgraphNodeParams *parameters, Operation *operation);
#endif
