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

// ---- graphs ----

CUgraph graph_new(void) { return calloc(1, sizeof(struct CUgraph_st)); }

static void free_node(CUgraphNode node) {
  operation_free(&node->operation);
  free(node->after.items);
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
    size_t left = 0;
    for (size_t d = 0; d < other->after.count; d++)
      if (other->after.items[d] != node) other->after.items[left++] = other->after.items[d];
    other->after.count = left;
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
  }
  return clone;
}

// ---- order ----

static bool is_ready(const struct CUgraphNode_st *node) {
  for (size_t i = 0; i < node->after.count; i++)
    if (!node->after.items[i]->done) return false;
  return true;
}

// Runs each node when all nodes that it depends on have run. In the order in which nodes were added this nearly always takes
// one pass. A cycle is an error.
CUresult graph_run(CUgraph graph) {
  size_t left = graph->nodes.count;
  for (size_t i = 0; i < graph->nodes.count; i++) graph->nodes.items[i]->done = false;
  while (left > 0) {
    size_t before = left;
    for (size_t i = 0; i < graph->nodes.count; i++) {
      CUgraphNode node = graph->nodes.items[i];
      if (node->done || !is_ready(node)) continue;
      CUresult status = node->enabled ? operation_run(&node->operation) : CUDA_SUCCESS;
      if (status != CUDA_SUCCESS) return status;
      if (core.sticky != CUDA_SUCCESS) return CUDA_SUCCESS;  // the calls that come after it return it
      node->done = true;
      left--;
    }
    if (left == before) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
