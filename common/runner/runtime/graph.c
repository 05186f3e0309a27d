// Graphs: their handles are the driver's.
#include <string.h>

#include "runtime.h"

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))
#define NODE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count

// ---- parameters of nodes ----

static cudaError_t kernel_parameters(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS_v2 *result) {
  *result = (CUDA_KERNEL_NODE_PARAMS_v2){.gridDimX = p->gridDim.x,
                                         .gridDimY = p->gridDim.y,
                                         .gridDimZ = p->gridDim.z,
                                         .blockDimX = p->blockDim.x,
                                         .blockDimY = p->blockDim.y,
                                         .blockDimZ = p->blockDim.z,
                                         .sharedMemBytes = p->sharedMemBytes,
                                         .kernelParams = p->kernelParams,
                                         .extra = p->extra};
  return runtime_function(&result->func, p->func);
}

static CUDA_MEMSET_NODE_PARAMS memset_parameters(const struct cudaMemsetParams *p) {
  return (CUDA_MEMSET_NODE_PARAMS){ADDRESS(p->dst), p->pitch, p->value, p->elementSize, p->width, p->height};
}

static CUDA_MEMCPY3D row(void *to, const void *from, size_t size) {
  return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = ADDRESS(from),
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = ADDRESS(to),
                         .WidthInBytes = size,
                         .Height = 1,
                         .Depth = 1};
}

static CUDA_MEMCPY3D copy_parameters(const struct cudaMemcpy3DParms *p) {
  CUDA_MEMCPY3D copy = row(p->dstPtr.ptr, p->srcPtr.ptr, p->extent.width);
  copy.srcPitch = p->srcPtr.pitch;
  copy.srcHeight = p->srcPtr.ysize;
  copy.srcXInBytes = p->srcPos.x;
  copy.srcY = p->srcPos.y;
  copy.srcZ = p->srcPos.z;
  copy.dstPitch = p->dstPtr.pitch;
  copy.dstHeight = p->dstPtr.ysize;
  copy.dstXInBytes = p->dstPos.x;
  copy.dstY = p->dstPos.y;
  copy.dstZ = p->dstPos.z;
  copy.Height = p->extent.height;
  copy.Depth = p->extent.depth;
  return copy;
}

// ---- nodes ----

API(cudaGraphAddKernelNode, (NODE, const struct cudaKernelNodeParams *parameters)) {
  CUDA_KERNEL_NODE_PARAMS_v2 p;
  cudaError_t status = kernel_parameters(parameters, &p);
  return status ? runtime_result(status) : DO(cuGraphAddKernelNode_v2(node, graph, after, count, &p));
}

API(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters)) {
  CUDA_KERNEL_NODE_PARAMS_v2 p;
  cudaError_t status = kernel_parameters(parameters, &p);
  return status ? runtime_result(status) : DO(cuGraphKernelNodeSetParams_v2(node, &p));
}

API(cudaGraphExecKernelNodeSetParams,
    (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters)) {
  CUDA_KERNEL_NODE_PARAMS_v2 p;
  cudaError_t status = kernel_parameters(parameters, &p);
  return status ? runtime_result(status) : DO(cuGraphExecKernelNodeSetParams_v2(exec, node, &p));
}

// The function is the driver's handle, which the runtime takes where it takes a host function.
API(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, struct cudaKernelNodeParams *result)) {
  CUDA_KERNEL_NODE_PARAMS_v2 p = {0};
  cudaError_t status = DO(cuGraphKernelNodeGetParams_v2(node, &p));
  *result = (struct cudaKernelNodeParams){.func = p.func,
                                          .gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ},
                                          .blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ},
                                          .sharedMemBytes = p.sharedMemBytes,
                                          .kernelParams = p.kernelParams};
  return status;
}

API(cudaGraphAddMemcpyNode, (NODE, const struct cudaMemcpy3DParms *parameters)) {
  CUDA_MEMCPY3D copy = copy_parameters(parameters);
  return DO(cuGraphAddMemcpyNode(node, graph, after, count, &copy, NULL));
}

API(cudaGraphAddMemcpyNode1D, (NODE, void *to, const void *from, size_t size, enum cudaMemcpyKind kind)) {
  CUDA_MEMCPY3D copy = row(to, from, size);
  (void)kind;
  return DO(cuGraphAddMemcpyNode(node, graph, after, count, &copy, NULL));
}

API(cudaGraphMemcpyNodeSetParams1D,
    (cudaGraphNode_t node, void *to, const void *from, size_t size, enum cudaMemcpyKind kind)) {
  CUDA_MEMCPY3D copy = row(to, from, size);
  (void)kind;
  return DO(cuGraphMemcpyNodeSetParams(node, &copy));
}

API(cudaGraphExecMemcpyNodeSetParams1D,
    (cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from, size_t size, enum cudaMemcpyKind kind)) {
  CUDA_MEMCPY3D copy = row(to, from, size);
  (void)kind;
  return DO(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, NULL));
}

API(cudaGraphExecMemcpyNodeSetParams,
    (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *parameters)) {
  CUDA_MEMCPY3D copy = copy_parameters(parameters);
  return DO(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, NULL));
}

API(cudaGraphAddMemsetNode, (NODE, const struct cudaMemsetParams *parameters)) {
  CUDA_MEMSET_NODE_PARAMS p = memset_parameters(parameters);
  return DO(cuGraphAddMemsetNode(node, graph, after, count, &p, NULL));
}

API(cudaGraphExecMemsetNodeSetParams,
    (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *parameters)) {
  CUDA_MEMSET_NODE_PARAMS p = memset_parameters(parameters);
  return DO(cuGraphExecMemsetNodeSetParams(exec, node, &p, NULL));
}

API(cudaGraphAddHostNode, (NODE, const struct cudaHostNodeParams *p)) {
  return DO(cuGraphAddHostNode(node, graph, after, count, &(CUDA_HOST_NODE_PARAMS){p->fn, p->userData}));
}

API(cudaGraphExecHostNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *p)) {
  return DO(cuGraphExecHostNodeSetParams(exec, node, &(CUDA_HOST_NODE_PARAMS){p->fn, p->userData}));
}

API(cudaGraphAddEmptyNode, (NODE)) { return DO(cuGraphAddEmptyNode(node, graph, after, count)); }

API(cudaGraphAddChildGraphNode, (NODE, cudaGraph_t child)) {
  return DO(cuGraphAddChildGraphNode(node, graph, after, count, child));
}

API(cudaGraphAddEventRecordNode, (NODE, cudaEvent_t event)) {
  return DO(cuGraphAddEventRecordNode(node, graph, after, count, event));
}

API(cudaGraphAddEventWaitNode, (NODE, cudaEvent_t event)) {
  return DO(cuGraphAddEventWaitNode(node, graph, after, count, event));
}

// ---- memory ----

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
               "the parameters of an allocation are laid out alike");

API(cudaGraphAddMemAllocNode, (NODE, struct cudaMemAllocNodeParams *parameters)) {
  return DO(cuGraphAddMemAllocNode(node, graph, after, count, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)parameters));
}

API(cudaGraphAddMemFreeNode, (NODE, void *pointer)) {
  return DO(cuGraphAddMemFreeNode(node, graph, after, count, ADDRESS(pointer)));
}

API(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, struct cudaMemAllocNodeParams *result)) {
  return DO(cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)result));
}

API(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *result)) {
  return DO(cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)result));
}

API(cudaDeviceGraphMemTrim, (int device)) { return DO(cuDeviceGraphMemTrim(device)); }

API(cudaDeviceGetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType attribute, void *value)) {
  return DO(cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value));
}

API(cudaDeviceSetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType attribute, void *value)) {
  return DO(cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value));
}

#if CUDA_VERSION >= 12020
// The parameters of a node of any kind, as the driver has them.
static cudaError_t any_parameters(const struct cudaGraphNodeParams *p, CUgraphNodeParams *result) {
  *result = (CUgraphNodeParams){.type = (CUgraphNodeType)p->type};
  CUDA_MEMSET_NODE_PARAMS fill;
  switch (p->type) {
  case cudaGraphNodeTypeKernel:
    return kernel_parameters((const void *)&p->kernel, (CUDA_KERNEL_NODE_PARAMS_v2 *)(void *)&result->kernel);
  case cudaGraphNodeTypeMemcpy: result->memcpy.copyParams = copy_parameters(&p->memcpy.copyParams); break;
  case cudaGraphNodeTypeMemset:
    fill = memset_parameters((const void *)&p->memset);
    result->memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = fill.dst,
                                                  .pitch = fill.pitch,
                                                  .value = fill.value,
                                                  .elementSize = fill.elementSize,
                                                  .width = fill.width,
                                                  .height = fill.height};
    break;
  case cudaGraphNodeTypeHost:
    result->host.fn = p->host.fn;
    result->host.userData = p->host.userData;
    break;
  case cudaGraphNodeTypeGraph: result->graph.graph = p->graph.graph; break;
  case cudaGraphNodeTypeWaitEvent: result->eventWait.event = p->eventWait.event; break;
  case cudaGraphNodeTypeEventRecord: result->eventRecord.event = p->eventRecord.event; break;
  case cudaGraphNodeTypeMemAlloc: memcpy(&result->alloc, &p->alloc, sizeof result->alloc); break;
  case cudaGraphNodeTypeMemFree: result->free.dptr = ADDRESS(p->free.dptr); break;
#if CUDA_VERSION >= 12030
  case cudaGraphNodeTypeConditional:
    result->conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = p->conditional.handle,
                                                         .type = (CUgraphConditionalNodeType)p->conditional.type,
                                                         .size = p->conditional.size};
    break;
#endif
  default: break;
  }
  return cudaSuccess;
}

static cudaError_t add_any(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                           const CUgraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *parameters) {
  CUgraphNodeParams p;
  cudaError_t status = any_parameters(parameters, &p);
  if (status) return runtime_result(status);
  status = DO(cuGraphAddNode_v2(node, graph, after, edges, count, &p));
  if (p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) parameters->alloc.dptr = (void *)(uintptr_t)p.alloc.dptr;
#if CUDA_VERSION >= 12030
  if (p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) parameters->conditional.phGraph_out = p.conditional.phGraph_out;
#endif
  return status;
}

#if CUDA_VERSION >= 12030
API(cudaGraphConditionalHandleCreate,
    (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned value, unsigned flags)) {
  return DO(cuGraphConditionalHandleCreate((CUgraphConditionalHandle *)handle, graph, NULL, value, flags));
}
#endif

#define ANY_NODE                                                                                                       \
  cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, const CUgraphEdgeData *edges, size_t count,  \
      struct cudaGraphNodeParams *parameters

#if RUNTIME == 12
API(cudaGraphAddNode, (NODE, struct cudaGraphNodeParams *parameters)) {
  return add_any(node, graph, after, NULL, count, parameters);
}

API(cudaGraphAddNode_v2, (ANY_NODE)) {
#else
API(cudaGraphAddNode, (ANY_NODE)) {
#endif
  return add_any(node, graph, after, edges, count, parameters);
}

API(cudaGraphNodeSetParams, (cudaGraphNode_t node, struct cudaGraphNodeParams *parameters)) {
  CUgraphNodeParams p;
  cudaError_t status = any_parameters(parameters, &p);
  return status ? runtime_result(status) : DO(cuGraphNodeSetParams(node, &p));
}

API(cudaGraphExecNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, struct cudaGraphNodeParams *parameters)) {
  CUgraphNodeParams p;
  cudaError_t status = any_parameters(parameters, &p);
  return status ? runtime_result(status) : DO(cuGraphExecNodeSetParams(exec, node, &p));
}
#endif

API(cudaGraphDestroyNode, (cudaGraphNode_t node)) { return DO(cuGraphDestroyNode(node)); }

API(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type)) {
  return DO(cuGraphNodeGetType(node, (CUgraphNodeType *)type));
}

API(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled)) {
  return DO(cuGraphNodeSetEnabled(exec, node, enabled));
}

API(cudaGraphNodeGetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled)) {
  return DO(cuGraphNodeGetEnabled(exec, node, enabled));
}

// ---- the shape of a graph. CUDA 13 has the data of edges in functions that were without in CUDA 12 ----

API(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags)) { return DO(cuGraphCreate(graph, flags)); }
API(cudaGraphDestroy, (cudaGraph_t graph)) { return DO(cuGraphDestroy(graph)); }
API(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph)) { return DO(cuGraphClone(clone, graph)); }

API(cudaGraphNodeFindInClone, (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone)) {
  return DO(cuGraphNodeFindInClone(node, original, clone));
}

API(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)) {
  return DO(cuGraphGetNodes(graph, nodes, count));
}

API(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)) {
  return DO(cuGraphGetRootNodes(graph, nodes, count));
}

#define EDGES_OF(name, driver)                                                                                         \
  API(name, (cudaGraphNode_t node, cudaGraphNode_t * nodes, CUgraphEdgeData * edges, size_t * count)) {                \
    return DO(driver##_v2(node, nodes, edges, count));                                                                 \
  }
#define EDGES(name, driver)                                                                                            \
  API(name, (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const CUgraphEdgeData *edges,  \
             size_t count)) {                                                                                          \
    return DO(driver##_v2(graph, from, to, edges, count));                                                             \
  }
#define GET_EDGES(name)                                                                                                \
  API(name,                                                                                                            \
      (cudaGraph_t graph, cudaGraphNode_t * from, cudaGraphNode_t * to, CUgraphEdgeData * edges, size_t * count)) {    \
    return DO(cuGraphGetEdges_v2(graph, from, to, edges, count));                                                      \
  }

#if RUNTIME == 12
API(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)) {
  return DO(cuGraphNodeGetDependencies(node, nodes, count));
}

API(cudaGraphNodeGetDependentNodes, (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)) {
  return DO(cuGraphNodeGetDependentNodes(node, nodes, count));
}

API(cudaGraphAddDependencies,
    (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count)) {
  return DO(cuGraphAddDependencies(graph, from, to, count));
}

API(cudaGraphRemoveDependencies,
    (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count)) {
  return DO(cuGraphRemoveDependencies(graph, from, to, count));
}

API(cudaGraphGetEdges, (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count)) {
  return DO(cuGraphGetEdges(graph, from, to, count));
}

EDGES_OF(cudaGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies)
EDGES_OF(cudaGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes)
EDGES(cudaGraphAddDependencies_v2, cuGraphAddDependencies)
EDGES(cudaGraphRemoveDependencies_v2, cuGraphRemoveDependencies)
GET_EDGES(cudaGraphGetEdges_v2)
#else
EDGES_OF(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies)
EDGES_OF(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes)
EDGES(cudaGraphAddDependencies, cuGraphAddDependencies)
EDGES(cudaGraphRemoveDependencies, cuGraphRemoveDependencies)
GET_EDGES(cudaGraphGetEdges)
#endif

// ---- executable graphs ----

API(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags)) {
  return DO(cuGraphInstantiateWithFlags(exec, graph, flags));
}

API(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags)) {
  return cudaGraphInstantiate(exec, graph, flags);
}

API(cudaGraphInstantiateWithParams, (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *p)) {
  p->errNode_out = NULL;
  p->result_out = cudaGraphInstantiateSuccess;
  return cudaGraphInstantiate(exec, graph, p->flags);
}

API(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags)) {
  return DO(cuGraphExecGetFlags(exec, (cuuint64_t *)flags));
}

API(cudaGraphExecUpdate, (cudaGraphExec_t exec, cudaGraph_t graph, void *result)) {
  return DO(cuGraphExecUpdate_v2(exec, graph, result));
}

API(cudaGraphExecDestroy, (cudaGraphExec_t exec)) { return DO(cuGraphExecDestroy(exec)); }
API(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream)) { return DO(cuGraphUpload(exec, stream)); }
API(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream)) { return DO(cuGraphLaunch(exec, stream)); }
