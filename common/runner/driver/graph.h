// What a graph is, for the two files of graphs.
#pragma once

#include "driver.h"

struct CUgraphNode_st {
  CUgraph graph;
  Operation operation;
  NodeList after;
  bool enabled;
  bool done;             // in the run that is under way
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
