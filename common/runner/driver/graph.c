// Graphs: nodes, each with an operation and the nodes that it depends on. A launch runs the nodes one after another.
#include <stdlib.h>
#include <string.h>

#include "graph.h"

// ---- lists of nodes ----

bool node_list_add(NodeList *list, CUgraphNode node) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 8;
    CUgraphNode *items = realloc(list->items, capacity * sizeof *items);
    if (!items) return false;
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count++] = node;
  return true;
}

void node_list_copy(NodeList *to, const NodeList *from) {
  to->count = 0;
  for (size_t i = 0; i < from->count; i++) node_list_add(to, from->items[i]);
}

void node_list_remove(NodeList *list, CUgraphNode node) {
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i] != node) list->items[kept++] = list->items[i];
  list->count = kept;
}

// ---- graphs ----

CUgraph graph_new(void) { return calloc(1, sizeof(struct CUgraph_st)); }

static void free_node(CUgraphNode node) {
  operation_free(&node->operation);
  free(node->after.items);
  free(node->early.items);
  free(node->arguments);
  free(node);
}

void graph_free(CUgraph graph) {
  if (!graph) return;
  conditional_forget_graph(graph);
  for (size_t i = 0; i < graph->nodes.count; i++) free_node(graph->nodes.items[i]);
  free(graph->nodes.items);
  free(graph);
}

CUgraphNode graph_add(CUgraph graph, const CUgraphNode *dependencies, size_t count, Operation *operation) {
  CUgraphNode node = calloc(1, sizeof *node);
  if (!node || !node_list_add(&graph->nodes, node)) {
    free(node);
    operation_free(operation);
    return NULL;
  }
  node->graph = graph;
  node->operation = *operation;
  node->enabled = true;
  for (size_t i = 0; i < count; i++) node_list_add(&node->after, dependencies[i]);
  return node;
}

void graph_remove(CUgraphNode node) {
  NodeList *all = &node->graph->nodes;
  size_t kept = 0;
  for (size_t i = 0; i < all->count; i++) {
    CUgraphNode other = all->items[i];
    if (other == node) continue;
    all->items[kept++] = other;
    node_list_remove(&other->after, node);
    node_list_remove(&other->early, node);
  }
  all->count = kept;
  free_node(node);
}

CUgraph graph_clone(const struct CUgraph_st *graph) {
  CUgraph clone = graph_new();
  if (!clone) return NULL;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    CUgraphNode node = graph->nodes.items[i];
    Operation operation = operation_clone(&node->operation);
    node->copy = graph_add(clone, NULL, 0, &operation);
    if (!node->copy) return NULL;
    node->copy->original = node;
    node->copy->enabled = node->enabled;
  }
  for (size_t i = 0; i < graph->nodes.count; i++) {
    CUgraphNode node = graph->nodes.items[i];
    for (size_t d = 0; d < node->after.count; d++) node_list_add(&node->copy->after, node->after.items[d]->copy);
    for (size_t d = 0; d < node->early.count; d++) node_list_add(&node->copy->early, node->early.items[d]->copy);
  }
  return clone;
}

bool graph_add_edge_data(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *edge) {
  return !edge || edge->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || node_list_add(&to->early, from);
}

// ---- order ----

// The launch that may still run when the node's begins, or 0. A captured launch has the attribute in the place of an
// edge.
static uint32_t prerequisite_of_node(const struct CUgraphNode_st *node) {
  const NodeList *early = &node->early;
  if (!early->count && node->operation.as.launch.programmatic && node->after.count == 1) early = &node->after;
  return early->count ? early->items[early->count - 1]->launch : 0;
}

static CUresult run_node(CUgraphNode node) {
  node->launch = 0;
  if (!node->enabled) return CUDA_SUCCESS;
  bool launches = node->operation.kind == OPERATION_LAUNCH;
  if (launches) node->operation.as.launch.prerequisite = prerequisite_of_node(node);
  CUresult status = operation_run(&node->operation);
  if (launches) node->launch = emulator_last_launch(core.emulator);
  return status;
}

static bool is_ready(const struct CUgraphNode_st *node) {
  for (size_t i = 0; i < node->after.count; i++)
    if (!node->after.items[i]->done) return false;
  return true;
}

// Runs each node when all nodes that it depends on have run. In the order in which nodes were added this nearly always
// takes one pass. A cycle is an error.
CUresult graph_run(CUgraph graph) {
  size_t left = graph->nodes.count;
  for (size_t i = 0; i < graph->nodes.count; i++) graph->nodes.items[i]->done = false;
  while (left > 0) {
    size_t before = left;
    for (size_t i = 0; i < graph->nodes.count; i++) {
      CUgraphNode node = graph->nodes.items[i];
      if (node->done || !is_ready(node)) continue;
      CUresult status = run_node(node);
      if (status != CUDA_SUCCESS) return status;
      if (core.sticky != CUDA_SUCCESS) return CUDA_SUCCESS;  // the calls that come after it return it
      node->done = true;
      left--;
    }
    if (left == before) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
