// Memory nodes of graphs. An allocation has its address when its node is added. The memory is there from the run of
// that node, fresh in each launch, until a node or the program frees it.
#include <stdlib.h>
#include <string.h>

#include "graph.h"

// What graphs allocate, by address. Entries stay, because an address belongs to its graph for good.
typedef struct Reserved {
  uint64_t address;
  size_t size;
  struct Reserved *next;
} Reserved;

static Reserved *reserved;
static uint64_t most_used;

static Reserved *find_reserved(uint64_t address) {
  Reserved *entry = reserved;
  while (entry && entry->address != address) entry = entry->next;
  return entry;
}

static bool is_allocated(uint64_t address) {
  const Allocation *allocation = memory_at(address);
  return allocation && allocation->base == address;
}

static uint64_t used(void) {
  uint64_t bytes = 0;
  for (const Reserved *entry = reserved; entry; entry = entry->next)
    if (is_allocated(entry->address)) bytes += entry->size;
  return bytes;
}

static CUresult reserve_address(size_t size, uint64_t *address) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  Reserved *entry = calloc(1, sizeof *entry);
  *address = entry ? memory_reserve(size) : 0;
  if (!*address) {
    free(entry);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *entry = (Reserved){*address, size, reserved};
  reserved = entry;
  return CUDA_SUCCESS;
}

static Operation memory_operation(OperationKind kind, uint64_t address, size_t size) {
  return (Operation){.kind = kind, .function = "cuGraphLaunch", .as.memory = {address, size}};
}

// ---- running ----

CUresult graph_memory_allocate(uint64_t address, size_t size) {
  CUresult status = memory_renew(address, size);
  if (status == CUDA_SUCCESS && used() > most_used) most_used = used();
  return status;
}

CUresult graph_memory_free(uint64_t address) { return memory_release(address, "a graph's free"); }

bool graph_memory_in(const struct CUgraph_st *graph) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    OperationKind kind = graph->nodes.items[i]->operation.kind;
    if (kind == OPERATION_ALLOCATE || kind == OPERATION_FREE) return true;
  }
  return false;
}

CUresult graph_memory_begin(const struct CUgraph_st *graph, unsigned long long flags) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const Operation *operation = &graph->nodes.items[i]->operation;
    if (operation->kind != OPERATION_ALLOCATE || !is_allocated(operation->as.memory.address)) continue;
    if (!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)) {
      core_say(
          "a graph is launched again, and 0x%llx, which it has allocated, was not freed: free it, or instantiate the "
          "graph with cudaGraphInstantiateFlagAutoFreeOnLaunch",
          (unsigned long long)operation->as.memory.address);
      return CUDA_ERROR_INVALID_VALUE;
    }
    memory_release(operation->as.memory.address, "a graph's launch");
  }
  return CUDA_SUCCESS;
}

// ---- nodes ----

CUresult graph_memory_capture(CUstream stream, CUdeviceptr *address, size_t size) {
  uint64_t result;
  CUresult status = reserve_address(size, &result);
  if (status != CUDA_SUCCESS) return status;
  *address = result;
  Operation operation = memory_operation(OPERATION_ALLOCATE, result, size);
  return stream_do(stream, &operation);
}

static CUresult not_of_a_graph(uint64_t address) {
  core_say("a graph frees 0x%llx, which no graph has allocated", (unsigned long long)address);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_memory_capture_free(CUstream stream, CUdeviceptr address) {
  if (!find_reserved(address)) return not_of_a_graph(address);
  Operation operation = memory_operation(OPERATION_FREE, address, 0);
  return stream_do(stream, &operation);
}

static CUresult add_memory_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                Operation operation) {
  if (!node || !graph || (count && !after)) return CUDA_ERROR_INVALID_VALUE;
  *node = graph_add(graph, after, count, &operation);
  return *node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API(cuGraphAddMemAllocNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count,
                             CUDA_MEM_ALLOC_NODE_PARAMS *parameters)) {
  ENTER();
  uint64_t address;
  if (!parameters || parameters->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
  if (core_device(parameters->poolProps.location.id) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  CUresult status = reserve_address(parameters->bytesize, &address);
  if (status != CUDA_SUCCESS) return status;
  parameters->dptr = address;
  return add_memory_node(node, graph, after, count,
                         memory_operation(OPERATION_ALLOCATE, address, parameters->bytesize));
}

API(cuGraphAddMemFreeNode,
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUdeviceptr address)) {
  ENTER();
  if (!find_reserved(address)) return not_of_a_graph(address);
  return add_memory_node(node, graph, after, count, memory_operation(OPERATION_FREE, address, 0));
}

API(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *result)) {
  ENTER();
  if (!node || !result || node->operation.kind != OPERATION_ALLOCATE) return CUDA_ERROR_INVALID_VALUE;
  *result = (CUDA_MEM_ALLOC_NODE_PARAMS){
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
      .bytesize = node->operation.as.memory.size,
      .dptr = node->operation.as.memory.address};
  return CUDA_SUCCESS;
}

API(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *result)) {
  ENTER();
  if (!node || !result || node->operation.kind != OPERATION_FREE) return CUDA_ERROR_INVALID_VALUE;
  *result = node->operation.as.memory.address;
  return CUDA_SUCCESS;
}

// ---- how much it is. Nothing is kept in reserve ----

API(cuDeviceGraphMemTrim, (CUdevice device)) {
  ENTER();
  return core_device(device);
}

API(cuDeviceGetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attribute, void *value)) {
  ENTER();
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  bool most = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
  *(cuuint64_t *)value = most ? most_used : used();
  return CUDA_SUCCESS;
}

// The most that was used can be set to 0 alone, and counts from now on.
API(cuDeviceSetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attribute, void *value)) {
  ENTER();
  if (core_device(device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
  bool most = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (!most || !value || *(cuuint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
  most_used = used();
  return CUDA_SUCCESS;
}
