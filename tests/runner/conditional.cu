// Conditional nodes of graphs: IF, WHILE and SWITCH, whose handles kernels set. With an argument: what CUDA does not
// allow.
#include <cstring>

#include "check.h"

__global__ void count_down(int *left, int *rounds, cudaGraphConditionalHandle handle) {
  *rounds += 1;
  *left -= 1;
  cudaGraphSetConditional(handle, *left > 0);
}
__global__ void set(cudaGraphConditionalHandle handle, const unsigned *value) {
  cudaGraphSetConditional(handle, *value);
}
__global__ void set_even(cudaGraphConditionalHandle handle, const int *left) {
  cudaGraphSetConditional(handle, *left % 2 == 0);
}
__global__ void add(int *sum, int value) { *sum += value; }

static void host_function(void *) {}

static cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t *after, cudaGraphNodeParams *parameters) {
  cudaGraphNode_t node;
  CHECK(cudaGraphAddNode(&node, graph, after, nullptr, after ? 1 : 0, parameters));
  return node;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *after, void *kernel, void **arguments) {
  cudaGraphNodeParams parameters = {cudaGraphNodeTypeKernel};
  parameters.kernel.func = kernel;
  parameters.kernel.gridDim = parameters.kernel.blockDim = dim3(1);
  parameters.kernel.kernelParams = arguments;
  return add_node(graph, after, &parameters);
}

static cudaGraphNode_t add_condition(cudaGraph_t graph, const cudaGraphNode_t *after, cudaGraphConditionalHandle handle,
                                     cudaGraphConditionalNodeType type, int size, cudaGraph_t *bodies) {
  cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = size;
  cudaGraphNode_t node = add_node(graph, after, &parameters);
  cudaGraphNodeType found;
  CHECK(cudaGraphNodeGetType(node, &found));
  EXPECT(found == cudaGraphNodeTypeConditional);
  for (int i = 0; i < size; i++) bodies[i] = parameters.conditional.phGraph_out[i];
  return node;
}

static void launch(cudaGraph_t graph, int times) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < times; i++) CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(exec));
}

// Each launch begins with the default again: 5 rounds, and then one in each launch.
static void while_loop(int *memory) {
  cudaGraph_t graph, body;
  cudaGraphConditionalHandle handle;
  int *left = memory, *rounds = memory + 1;
  *left = 5, *rounds = 0;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  add_condition(graph, nullptr, handle, cudaGraphCondTypeWhile, 1, &body);
  void *arguments[] = {&left, &rounds, &handle};
  add_kernel(body, nullptr, (void *)count_down, arguments);
  launch(graph, 3);
  EXPECT(*rounds == 7 && *left == -2);
}

// A kernel of the graph itself decides; out of range, no body of a SWITCH runs.
static void if_and_switch(int *memory, unsigned *value) {
  for (unsigned v = 0; v < 4; v++) {
    cudaGraph_t graph, either[2], cases[3];
    cudaGraphConditionalHandle of_if, of_switch;
    int *sum = memory, *other = memory + 1;
    *sum = *other = 0, *value = v;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&of_if, graph, 0, 0));
    CHECK(cudaGraphConditionalHandleCreate(&of_switch, graph, 0, 0));
    void *set_if[] = {&of_if, &value}, *set_switch[] = {&of_switch, &value};
    cudaGraphNode_t node = add_kernel(graph, nullptr, (void *)set, set_if);
    node = add_condition(graph, &node, of_if, cudaGraphCondTypeIf, 2, either);
    node = add_kernel(graph, &node, (void *)set, set_switch);
    add_condition(graph, &node, of_switch, cudaGraphCondTypeSwitch, 3, cases);
    for (int i = 0; i < 3; i++) {
      int one = 10 + i;
      void *to_sum[] = {&sum, &one}, *to_other[] = {&other, &one};
      if (i < 2) add_kernel(either[i], nullptr, (void *)add, to_other);
      add_kernel(cases[i], nullptr, (void *)add, to_sum);
    }
    launch(graph, 1);
    EXPECT(*other == (v ? 10 : 11) && *sum == (v < 3 ? 10 + (int)v : 0));
  }
}

// A WHILE loop whose body is captured; it has an IF of its own, whose handle belongs to the outer graph.
static void nested_and_captured(int *memory) {
  cudaGraph_t graph, body, inner;
  cudaStream_t stream;
  cudaGraphConditionalHandle outer, even;
  cudaStreamCaptureStatus status;
  int *left = memory, *rounds = memory + 1, *sum = memory + 2;
  *left = 6, *rounds = *sum = 0;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, stream>>>(sum, 1000);
  const cudaGraphNode_t *after;
  size_t count;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &after, nullptr, &count));
  EXPECT(status == cudaStreamCaptureStatusActive && count == 1);
  CHECK(cudaGraphConditionalHandleCreate(&outer, graph, 1, cudaGraphCondAssignDefault));
  CHECK(cudaGraphConditionalHandleCreate(&even, graph, 0, 0));
  cudaGraphNode_t node = add_condition(graph, after, outer, cudaGraphCondTypeWhile, 1, &body);
  CHECK(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
  add<<<1, 1, 0, stream>>>(sum, 10000);
  CHECK(cudaStreamEndCapture(stream, &graph));

  CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  set_even<<<1, 1, 0, stream>>>(even, left);
  count_down<<<1, 1, 0, stream>>>(left, rounds, outer);
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &after, nullptr, &count));
  add_condition(body, after, even, cudaGraphCondTypeIf, 1, &inner);
  CHECK(cudaStreamEndCapture(stream, nullptr));
  int one = 1;
  void *arguments[] = {&sum, &one};
  add_kernel(inner, nullptr, (void *)add, arguments);
  launch(graph, 1);
  EXPECT(*rounds == 6 && *left == 0 && *sum == 11003);
}

// One handle, one IF, and what is wrong with it.
static void wrong(const char *what, unsigned *value) {
  cudaGraph_t graph, other, body;
  cudaGraphExec_t exec, second;
  cudaGraphNode_t child;
  cudaGraphConditionalHandle handle, none = 4096;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, strcmp(what, "unset") ? cudaGraphCondAssignDefault : 0));
  void *arguments[] = {strcmp(what, "bad-handle") ? &handle : &none, &value};
  cudaGraphNodeParams parameters = {cudaGraphNodeTypeKernel};
  parameters.kernel.func = (void *)set;
  parameters.kernel.gridDim = dim3(strcmp(what, "race") ? 1 : 2), parameters.kernel.blockDim = dim3(1);
  parameters.kernel.kernelParams = arguments;
  cudaGraphNode_t first = {};
  if (strcmp(what, "unset")) first = add_node(graph, nullptr, &parameters);
  add_condition(graph, first ? &first : nullptr, handle, cudaGraphCondTypeIf, 1, &body);
  if (!strcmp(what, "host")) {
    cudaGraphNodeParams host = {cudaGraphNodeTypeHost};
    host.host.fn = host_function;
    add_node(body, nullptr, &host);
    EXPECT(cudaGraphInstantiate(&exec, graph, 0) == cudaErrorNotSupported);
    return;
  }
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  if (!strcmp(what, "refused")) {
    parameters = {cudaGraphNodeTypeConditional};
    parameters.conditional.handle = handle;
    parameters.conditional.type = cudaGraphCondTypeWhile;
    parameters.conditional.size = 2;
    EXPECT(cudaGraphAddNode(&child, graph, nullptr, nullptr, 0, &parameters) == cudaErrorInvalidValue);
    EXPECT(cudaGraphInstantiate(&second, graph, 0) == cudaErrorNotSupported);
    EXPECT(cudaGraphClone(&other, graph) == cudaErrorNotSupported);
    CHECK(cudaGraphCreate(&other, 0));
    EXPECT(cudaGraphAddChildGraphNode(&child, other, nullptr, 0, graph) == cudaErrorNotSupported);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  cudaGraphLaunch(exec, nullptr);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

int main(int argc, char **argv) {
  int *memory;
  unsigned *value;
  CHECK(cudaMallocManaged(&memory, 16 * sizeof *memory));
  CHECK(cudaMallocManaged(&value, sizeof *value));
  *value = 1;
  if (argc > 1) {
    wrong(argv[1], value);
  } else {
    while_loop(memory);
    if_and_switch(memory, value);
    nested_and_captured(memory);
    printf("right\n");
  }
  return 0;
}
