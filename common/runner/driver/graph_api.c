// The functions of graphs.
#include <stdlib.h>
#include <string.h>

#include "graph.h"

// ---- nodes ----

// Adds a node and returns it in *result.
static CUresult add_operation(CUgraphNode *result, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              Operation operation) {
  if (!graph || !result || (count && !dependencies)) {
    operation_free(&operation);
    return CUDA_ERROR_INVALID_VALUE;
  }
  *result = graph_add(graph, dependencies, count, &operation);
  return *result ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// Puts another operation of the same kind into a node.
static CUresult replace(CUgraphNode node, Operation operation) {
  if (!node || node->operation.kind != operation.kind) {
    operation_free(&operation);
    return CUDA_ERROR_INVALID_VALUE;
  }
  operation_free(&node->operation);
  node->operation = operation;
  return CUDA_SUCCESS;
}

// The node of an executable graph that was made from a node of the graph.
static CUgraphNode node_in(CUgraphExec exec, CUgraphNode original) {
  for (size_t i = 0; exec && i < exec->graph->nodes.count; i++)
    if (exec->graph->nodes.items[i]->original == original) return exec->graph->nodes.items[i];
  return NULL;
}

static CUresult kernel_operation(const CUDA_KERNEL_NODE_PARAMS_v2 *p, Operation *operation) {
  Function *function = p->func ? (Function *)(void *)p->func : (Function *)(void *)p->kern;
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  Launch launch = {.function = function,
                   .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                   .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                   .shared = p->sharedMemBytes};
  CUresult status = launch_pack(function, p->kernelParams, p->extra, &launch.parameters);
  *operation = (Operation){.kind = OPERATION_LAUNCH, .function = "cuGraphLaunch", .as.launch = launch};
  return status;
}

static Operation fill_operation(const CUDA_MEMSET_NODE_PARAMS *p) {
  return (Operation){.kind = OPERATION_FILL,
                     .function = "cuGraphLaunch",
                     .as.fill = {p->dst, p->value, (int)p->elementSize, p->width, p->height, p->pitch}};
}

static Operation copy_operation(const CUDA_MEMCPY3D *copy) {
  return (Operation){.kind = OPERATION_COPY, .function = "cuGraphLaunch", .as.copy = *copy};
}

static Operation host_operation(const CUDA_HOST_NODE_PARAMS *p) {
  return (Operation){.kind = OPERATION_HOST, .function = "cuGraphLaunch", .as.host = *p};
}

#define NODE CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count

API(cuGraphAddKernelNode_v2, (NODE, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)) {
  ENTER();
  Operation operation;
  CUresult status = kernel_operation(parameters, &operation);
  return status == CUDA_SUCCESS ? add_operation(node, graph, after, count, operation) : status;
}

API(cuGraphAddMemcpyNode, (NODE, const CUDA_MEMCPY3D *copy, CUcontext context)) {
  ENTER();
  (void)context;
  return add_operation(node, graph, after, count, copy_operation(copy));
}

API(cuGraphAddMemsetNode, (NODE, const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)) {
  ENTER();
  (void)context;
  return add_operation(node, graph, after, count, fill_operation(parameters));
}

API(cuGraphAddHostNode, (NODE, const CUDA_HOST_NODE_PARAMS *parameters)) {
  ENTER();
  return add_operation(node, graph, after, count, host_operation(parameters));
}

API(cuGraphAddEmptyNode, (NODE)) {
  ENTER();
  return add_operation(node, graph, after, count, (Operation){.kind = OPERATION_EMPTY});
}

API(cuGraphAddEventRecordNode, (NODE, CUevent event)) {
  ENTER();
  return add_operation(node, graph, after, count, (Operation){.kind = OPERATION_RECORD, .as.event = event});
}

API(cuGraphAddEventWaitNode, (NODE, CUevent event)) {
  ENTER();
  return add_operation(node, graph, after, count, (Operation){.kind = OPERATION_WAIT, .as.event = event});
}

// What CUDA does not allow of a graph with conditional nodes or memory nodes.
static bool is_single(CUgraph graph) { return conditional_in(graph) || graph_memory_in(graph); }

static CUresult refuse_single(const char *what) {
  core_say("a graph with conditional nodes or memory nodes cannot be %s", what);
  return CUDA_ERROR_NOT_SUPPORTED;
}

API(cuGraphAddChildGraphNode, (NODE, CUgraph child)) {
  ENTER();
  if (!child) return CUDA_ERROR_INVALID_VALUE;
  if (is_single(child)) return refuse_single("a child of another graph");
  return add_operation(node, graph, after, count, (Operation){.kind = OPERATION_GRAPH, .as.graph = graph_clone(child)});
}

#if CUDA_VERSION >= 12020
static const CUDA_KERNEL_NODE_PARAMS_v2 *kernel_of(const CUgraphNodeParams *p) { return (const void *)&p->kernel; }

static CUDA_HOST_NODE_PARAMS host_of(const CUgraphNodeParams *p) {
  return (CUDA_HOST_NODE_PARAMS){p->host.fn, p->host.userData};
}

static CUDA_MEMSET_NODE_PARAMS fill_of(const CUgraphNodeParams *p) {
  return (CUDA_MEMSET_NODE_PARAMS){p->memset.dst,         p->memset.pitch, p->memset.value,
                                   p->memset.elementSize, p->memset.width, p->memset.height};
}

#if CUDA_VERSION >= 12030
static CUresult add_condition(NODE, CUgraphNodeParams *p) {
  ENTER();
  Operation operation;
  CUresult status = condition_of(p, &operation);
  if (status == CUDA_SUCCESS) status = add_operation(node, graph, after, count, operation);
  if (status == CUDA_SUCCESS) p->conditional.phGraph_out = (*node)->operation.as.condition.bodies;
  return status;
}
#endif

static CUresult add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                         CUgraphNodeParams *p) {
  CUDA_HOST_NODE_PARAMS host = host_of(p);
  CUDA_MEMSET_NODE_PARAMS fill = fill_of(p);
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_EMPTY: return cuGraphAddEmptyNode(node, graph, after, count);
  case CU_GRAPH_NODE_TYPE_KERNEL: return cuGraphAddKernelNode_v2(node, graph, after, count, kernel_of(p));
  case CU_GRAPH_NODE_TYPE_MEMCPY: return cuGraphAddMemcpyNode(node, graph, after, count, &p->memcpy.copyParams, NULL);
  case CU_GRAPH_NODE_TYPE_HOST: return cuGraphAddHostNode(node, graph, after, count, &host);
  case CU_GRAPH_NODE_TYPE_MEMSET: return cuGraphAddMemsetNode(node, graph, after, count, &fill, NULL);
  case CU_GRAPH_NODE_TYPE_GRAPH: return cuGraphAddChildGraphNode(node, graph, after, count, p->graph.graph);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return cuGraphAddEventRecordNode(node, graph, after, count, p->eventRecord.event);
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return cuGraphAddEventWaitNode(node, graph, after, count, p->eventWait.event);
#if CUDA_VERSION >= 12030
  case CU_GRAPH_NODE_TYPE_CONDITIONAL: return add_condition(node, graph, after, count, p);
#endif
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    return cuGraphAddMemAllocNode(node, graph, after, count, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)&p->alloc);
  case CU_GRAPH_NODE_TYPE_MEM_FREE: return cuGraphAddMemFreeNode(node, graph, after, count, p->free.dptr);
  default: return core_missing("cuGraphAddNode of this type");
  }
}

API(cuGraphAddNode_v2, (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                        size_t count, CUgraphNodeParams *parameters)) {
  CUresult status = add_node(node, graph, after, count, parameters);
  for (size_t i = 0; i < count && edges && status == CUDA_SUCCESS; i++)
    if (!graph_add_edge_data(after[i], *node, &edges[i])) status = CUDA_ERROR_OUT_OF_MEMORY;
  return status;
}

API(cuGraphAddNode, (NODE, CUgraphNodeParams *parameters)) {
  return cuGraphAddNode_v2(node, graph, after, NULL, count, parameters);
}
#endif

// ---- parameters of nodes, in a graph and in an executable one ----

static CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters) {
  Operation operation;
  CUresult status = kernel_operation(parameters, &operation);
  if (status != CUDA_SUCCESS) return status;
  if (node && node->operation.kind == OPERATION_LAUNCH) {
    memcpy(operation.as.launch.cluster, node->operation.as.launch.cluster, sizeof operation.as.launch.cluster);
    operation.as.launch.cooperative = node->operation.as.launch.cooperative;
  }
  return replace(node, operation);
}

API(cuGraphKernelNodeSetParams_v2, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)) {
  ENTER();
  return set_kernel(node, parameters);
}

API(cuGraphExecKernelNodeSetParams_v2,
    (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)) {
  ENTER();
  return set_kernel(node_in(exec, node), parameters);
}

API(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D *copy)) {
  ENTER();
  return replace(node, copy_operation(copy));
}

API(cuGraphExecMemcpyNodeSetParams,
    (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)) {
  ENTER();
  (void)context;
  return replace(node_in(exec, node), copy_operation(copy));
}

API(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters)) {
  ENTER();
  return replace(node, fill_operation(parameters));
}

API(cuGraphExecMemsetNodeSetParams,
    (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)) {
  ENTER();
  (void)context;
  return replace(node_in(exec, node), fill_operation(parameters));
}

API(cuGraphHostNodeSetParams, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)) {
  ENTER();
  return replace(node, host_operation(parameters));
}

API(cuGraphExecHostNodeSetParams, (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)) {
  ENTER();
  return replace(node_in(exec, node), host_operation(parameters));
}

#if CUDA_VERSION >= 12020
static CUresult set_any(CUgraphNode node, const CUgraphNodeParams *p) {
  CUDA_HOST_NODE_PARAMS host = host_of(p);
  CUDA_MEMSET_NODE_PARAMS fill = fill_of(p);
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: return set_kernel(node, kernel_of(p));
  case CU_GRAPH_NODE_TYPE_MEMCPY: return replace(node, copy_operation(&p->memcpy.copyParams));
  case CU_GRAPH_NODE_TYPE_HOST: return replace(node, host_operation(&host));
  case CU_GRAPH_NODE_TYPE_MEMSET: return replace(node, fill_operation(&fill));
  default: return core_missing("cuGraphNodeSetParams of this type");
  }
}

API(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams *parameters)) {
  ENTER();
  return set_any(node, parameters);
}

API(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters)) {
  ENTER();
  return set_any(node_in(exec, node), parameters);
}
#endif

API(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned enabled)) {
  ENTER();
  CUgraphNode found = node_in(exec, node);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  found->enabled = enabled;
  return CUDA_SUCCESS;
}

API(cuGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned *enabled)) {
  ENTER();
  const struct CUgraphNode_st *found = node_in(exec, node);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  *enabled = found->enabled;
  return CUDA_SUCCESS;
}

API(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type)) {
  static const CUgraphNodeType types[] = {
    [OPERATION_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY,
    [OPERATION_LAUNCH] = CU_GRAPH_NODE_TYPE_KERNEL,
    [OPERATION_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
    [OPERATION_FILL] = CU_GRAPH_NODE_TYPE_MEMSET,
    [OPERATION_HOST] = CU_GRAPH_NODE_TYPE_HOST,
    [OPERATION_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
    [OPERATION_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
    [OPERATION_GRAPH] = CU_GRAPH_NODE_TYPE_GRAPH,
    [OPERATION_ALLOCATE] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    [OPERATION_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE,
#if CUDA_VERSION >= 12030
    [OPERATION_CONDITION] = CU_GRAPH_NODE_TYPE_CONDITIONAL,
#endif
  };
  ENTER();
  *type = types[node->operation.kind];
  return CUDA_SUCCESS;
}

// The kernel's arguments point into the node.
API(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *p)) {
  ENTER();
  const Launch *launch = &node->operation.as.launch;
  if (node->operation.kind != OPERATION_LAUNCH) return CUDA_ERROR_INVALID_VALUE;
  const Function *function = launch->function;
  if (!node->arguments) node->arguments = calloc((size_t)function->parameter_count + 1, sizeof(void *));
  for (int i = 0; i < function->parameter_count && node->arguments; i++)
    node->arguments[i] = launch->parameters + emulator_parameter_offset(function->module->loaded, function->name, i);
  *p = (CUDA_KERNEL_NODE_PARAMS_v2){.func = (CUfunction)(void *)launch->function,
                                    .gridDimX = launch->grid[0],
                                    .gridDimY = launch->grid[1],
                                    .gridDimZ = launch->grid[2],
                                    .blockDimX = launch->block[0],
                                    .blockDimY = launch->block[1],
                                    .blockDimZ = launch->block[2],
                                    .sharedMemBytes = launch->shared,
                                    .kernelParams = node->arguments};
  return CUDA_SUCCESS;
}

// ---- the shape of a graph ----

API(cuGraphCreate, (CUgraph * graph, unsigned flags)) {
  ENTER();
  (void)flags;
  *graph = graph_new();
  return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API(cuGraphDestroy, (CUgraph graph)) {
  ENTER();
  graph_free(graph);
  return CUDA_SUCCESS;
}

API(cuGraphDestroyNode, (CUgraphNode node)) {
  ENTER();
  graph_remove(node);
  return CUDA_SUCCESS;
}

API(cuGraphClone, (CUgraph * clone, CUgraph graph)) {
  ENTER();
  if (graph && is_single(graph)) return refuse_single("cloned");
  *clone = graph ? graph_clone(graph) : NULL;
  return *clone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuGraphNodeFindInClone, (CUgraphNode * node, CUgraphNode original, CUgraph clone)) {
  ENTER();
  *node = node_in(&(struct CUgraphExec_st){.graph = clone}, original);
  return *node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Writes a list, as far as the caller has room; without an array just its length.
static CUresult give_list(const NodeList *list, CUgraphNode *nodes, size_t *count) {
  size_t room = nodes ? *count : 0;
  for (size_t i = 0; i < room; i++) nodes[i] = i < list->count ? list->items[i] : NULL;
  *count = nodes && room < list->count ? room : list->count;
  return CUDA_SUCCESS;
}

API(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) {
  ENTER();
  return give_list(&graph->nodes, nodes, count);
}

API(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) {
  ENTER();
  NodeList roots = {0};
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i]->after.count == 0) node_list_add(&roots, graph->nodes.items[i]);
  CUresult status = give_list(&roots, nodes, count);
  free(roots.items);
  return status;
}

API(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) {
  ENTER();
  return give_list(&node->after, nodes, count);
}

API(cuGraphNodeGetDependencies_v2, (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)) {
  if (edges && nodes) memset(edges, 0, *count * sizeof *edges);
  return cuGraphNodeGetDependencies(node, nodes, count);
}

static bool comes_after(const struct CUgraphNode_st *node, const struct CUgraphNode_st *other) {
  for (size_t i = 0; i < node->after.count; i++)
    if (node->after.items[i] == other) return true;
  return false;
}

API(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) {
  ENTER();
  NodeList dependents = {0};
  for (size_t i = 0; i < node->graph->nodes.count; i++)
    if (comes_after(node->graph->nodes.items[i], node)) node_list_add(&dependents, node->graph->nodes.items[i]);
  CUresult status = give_list(&dependents, nodes, count);
  free(dependents.items);
  return status;
}

API(cuGraphNodeGetDependentNodes_v2, (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)) {
  if (edges && nodes) memset(edges, 0, *count * sizeof *edges);
  return cuGraphNodeGetDependentNodes(node, nodes, count);
}

API(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)) {
  ENTER();
  size_t room = from && to ? *count : 0, found = 0;
  for (size_t i = 0; i < graph->nodes.count; i++)
    for (size_t d = 0; d < graph->nodes.items[i]->after.count; d++, found++) {
      if (found >= room) continue;
      from[found] = graph->nodes.items[i]->after.items[d];
      to[found] = graph->nodes.items[i];
    }
  *count = room && room < found ? room : found;
  return CUDA_SUCCESS;
}

API(cuGraphGetEdges_v2, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)) {
  if (edges && from) memset(edges, 0, *count * sizeof *edges);
  return cuGraphGetEdges(graph, from, to, count);
}

API(cuGraphAddDependencies, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
  ENTER();
  (void)graph;
  for (size_t i = 0; i < count; i++)
    if (!node_list_add(&to[i]->after, from[i])) return CUDA_ERROR_OUT_OF_MEMORY;
  return CUDA_SUCCESS;
}

API(cuGraphAddDependencies_v2,
    (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)) {
  CUresult status = cuGraphAddDependencies(graph, from, to, count);
  for (size_t i = 0; i < count && edges && status == CUDA_SUCCESS; i++)
    if (!graph_add_edge_data(from[i], to[i], &edges[i])) status = CUDA_ERROR_OUT_OF_MEMORY;
  return status;
}

API(cuGraphRemoveDependencies, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
  ENTER();
  (void)graph;
  for (size_t i = 0; i < count; i++) {
    node_list_remove(&to[i]->after, from[i]);
    node_list_remove(&to[i]->early, from[i]);
  }
  return CUDA_SUCCESS;
}

API(cuGraphRemoveDependencies_v2,
    (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)) {
  (void)edges;
  return cuGraphRemoveDependencies(graph, from, to, count);
}

// ---- executable graphs ----

API(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) {
  ENTER();
  if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
  CUresult status = conditional_instantiate(graph);
  if (status != CUDA_SUCCESS) return status;
  *exec = calloc(1, sizeof **exec);
  if (*exec) **exec = (struct CUgraphExec_st){graph_clone(graph), flags};
  return *exec && (*exec)->graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API(cuGraphInstantiate_v2, (CUgraphExec * exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)) {
  if (node) *node = NULL;
  if (log && size) *log = 0;
  return cuGraphInstantiateWithFlags(exec, graph, 0);
}

API(cuGraphInstantiateWithParams, (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)) {
  parameters->hErrNode_out = NULL;
  parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return cuGraphInstantiateWithFlags(exec, graph, parameters->flags);
}

API(cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t *flags)) {
  ENTER();
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

// A graph of the same shape takes the place of the one inside.
API(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result)) {
  ENTER();
  bool alike = exec && graph && exec->graph->nodes.count == graph->nodes.count;
  for (size_t i = 0; alike && i < graph->nodes.count; i++)
    alike = exec->graph->nodes.items[i]->operation.kind == graph->nodes.items[i]->operation.kind;
  if (result) *result = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
  if (!alike) {
    if (result) result->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  // Nodes of the first graph still name those of the exec: the new ones take over their originals.
  conditional_end(exec->graph);
  CUresult status = conditional_instantiate(graph);
  if (status != CUDA_SUCCESS) return status;
  CUgraph clone = graph_clone(graph);
  if (!clone) return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < clone->nodes.count; i++)
    clone->nodes.items[i]->original = exec->graph->nodes.items[i]->original;
  graph_free(exec->graph);
  exec->graph = clone;
  return CUDA_SUCCESS;
}

API(cuGraphExecDestroy, (CUgraphExec exec)) {
  ENTER();
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  conditional_end(exec->graph);
  graph_free(exec->graph);
  free(exec);
  return CUDA_SUCCESS;
}

API(cuGraphUpload, (CUgraphExec exec, CUstream stream)) {
  ENTER();
  return exec && stream_of(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// In a stream that captures, the graph becomes a child of the one that is captured.
API(cuGraphLaunch, (CUgraphExec exec, CUstream stream)) {
  ENTER();
  if (!exec || !stream_of(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!stream_captures(stream)) {
    CUresult status = graph_memory_begin(exec->graph, exec->flags);
    if (status != CUDA_SUCCESS) return status;
    conditional_begin(exec->graph);
    return graph_run(exec->graph);
  }
  if (is_single(exec->graph)) return refuse_single("launched into a stream that captures");
  Operation operation = {.kind = OPERATION_GRAPH, .function = "cuGraphLaunch", .as.graph = graph_clone(exec->graph)};
  return stream_do(stream, &operation);
}
