// Memory nodes of graphs: what a graph allocates is fresh in each launch. With an argument: a mistake.
#include <cstring>

#include "check.h"

enum { COUNT = 64 };

__global__ void fill(int *values, const int *seed) {
  if (*seed >= 0) values[threadIdx.x] = *seed + threadIdx.x;
}
__global__ void sum(const int *values, int *result) {
  int total = 0;
  for (int i = 0; i < COUNT; i++) total += values[i];
  *result = total;
}

static int *seed, *result;

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t after, void *kernel, int threads,
                                  void **arguments) {
  cudaGraphNode_t node;
  cudaKernelNodeParams parameters = {};
  parameters.func = kernel;
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(threads);
  parameters.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&node, graph, &after, 1, &parameters));
  return node;
}

// allocate, fill, sum, and free if so asked. Returns the address.
static int *make(cudaGraph_t *graph, bool frees, bool sums_late) {
  cudaMemAllocNodeParams allocation = {};
  cudaGraphNode_t node, freed;
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location.type = cudaMemLocationTypeDevice;
  allocation.bytesize = COUNT * sizeof(int);
  CHECK(cudaGraphCreate(graph, 0));
  CHECK(cudaGraphAddMemAllocNode(&node, *graph, nullptr, 0, &allocation));
  cudaGraphNodeType type;
  cudaMemAllocNodeParams found;
  CHECK(cudaGraphNodeGetType(node, &type));
  CHECK(cudaGraphMemAllocNodeGetParams(node, &found));
  EXPECT(type == cudaGraphNodeTypeMemAlloc && found.dptr == allocation.dptr && found.bytesize == allocation.bytesize);
  void *to_fill[] = {&allocation.dptr, &seed}, *to_sum[] = {&allocation.dptr, &result};
  node = add_kernel(*graph, node, (void *)fill, COUNT, to_fill);
  if (!sums_late) node = add_kernel(*graph, node, (void *)sum, 1, to_sum);
  if (frees) {
    void *address;
    CHECK(cudaGraphAddMemFreeNode(&freed, *graph, &node, 1, allocation.dptr));
    CHECK(cudaGraphMemFreeNodeGetParams(freed, &address));
    EXPECT(address == allocation.dptr);
    node = freed;
  }
  if (sums_late) add_kernel(*graph, node, (void *)sum, 1, to_sum);
  return (int *)allocation.dptr;
}

static void expect_sum(int first) {
  CHECK(cudaDeviceSynchronize());
  EXPECT(*result == COUNT * first + COUNT * (COUNT - 1) / 2);
}

static size_t used(cudaGraphMemAttributeType attribute) {
  size_t bytes;
  CHECK(cudaDeviceGetGraphMemAttribute(0, attribute, &bytes));
  return bytes;
}

static void right() {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  make(&graph, true, false);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (*seed = 1; *seed < 4; ++*seed) {
    CHECK(cudaGraphLaunch(exec, nullptr));
    expect_sum(*seed);
    EXPECT(used(cudaGraphMemAttrUsedMemCurrent) == 0 && used(cudaGraphMemAttrUsedMemHigh) == COUNT * sizeof(int));
  }
  // What a graph does not free is the program's, which frees it before the next launch, or lets the launch do it.
  int *memory = make(&graph, false, false), host[COUNT];
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 2; round++) {
    CHECK(cudaGraphLaunch(exec, nullptr));
    CHECK(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[5] == *seed + 5 && used(cudaGraphMemAttrUsedMemCurrent) == sizeof host);
    CHECK(round ? cudaFree(memory) : cudaFreeAsync(memory, nullptr));
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaFree(memory));
  // The same nodes, captured.
  cudaStream_t stream;
  size_t nodes;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&memory, COUNT * sizeof(int), stream));
  fill<<<1, COUNT, 0, stream>>>(memory, seed);
  sum<<<1, 1, 0, stream>>>(memory, result);
  CHECK(cudaFreeAsync(memory, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 4);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (*seed = 10; *seed < 12; ++*seed) {
    CHECK(cudaGraphLaunch(exec, stream));
    expect_sum(*seed);
  }
  CHECK(cudaDeviceGraphMemTrim(0));
}

static void wrong(const char *what) {
  cudaGraph_t graph, clone;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  make(&graph, strcmp(what, "again"), !strcmp(what, "after-free"));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  if (!strcmp(what, "again")) EXPECT(cudaGraphLaunch(exec, nullptr) == cudaErrorInvalidValue);
  if (!strcmp(what, "stale")) {
    *seed = -1;
    CHECK(cudaGraphLaunch(exec, nullptr));
  }
  if (!strcmp(what, "refused")) {
    EXPECT(cudaGraphClone(&clone, graph) == cudaErrorNotSupported);
    EXPECT(cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, result) == cudaErrorInvalidValue);
  }
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

int main(int argc, char **argv) {
  CHECK(cudaMallocManaged(&seed, sizeof *seed));
  CHECK(cudaMallocManaged(&result, sizeof *result));
  *seed = 1;
  if (argc > 1) {
    wrong(argv[1]);
  } else {
    right();
    printf("right\n");
  }
  return 0;
}
