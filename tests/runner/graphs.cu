// Graphs: captured from two streams, made of nodes, launched again with other arguments.
#include "check.h"

__global__ void add(int *values, int n, int amount) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += amount;
}

static const int n = 100;

static void captured(int *values, int *other) {
  cudaStream_t stream, side;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&side));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(values, 0, n * sizeof(int), stream));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(side, fork));
  add<<<1, 128, 0, stream>>>(values, n, 3);
  CHECK(cudaMemsetAsync(other, 0, n * sizeof(int), side));
  CHECK(cudaEventRecord(join, side));
  CHECK(cudaStreamWaitEvent(stream, join));
  CHECK(cudaMemcpyAsync(other, values, n / 2 * sizeof(int), cudaMemcpyDeviceToDevice, stream));
  EXPECT(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  unsigned long long id;
  EXPECT(cudaStreamGetId(stream, &id) == cudaErrorStreamCaptureUnsupported);  // so on an H100
  cudaGetLastError();
  CHECK(cudaStreamEndCapture(stream, &graph));
  EXPECT(values[0] == 1);  // nothing has run
  size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT(count == 4);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; i++) EXPECT(values[i] == 3 && other[i] == (i < n / 2 ? 3 : 0));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

static void made(int *values) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t clear, kernel;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams set = {};
  set.dst = values;
  set.elementSize = 4;
  set.value = 1000;
  set.width = n;
  set.height = 1;
  CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &set));
  int length = n, amount = 1;
  void *arguments[] = {&values, &length, &amount};
  cudaKernelNodeParams launch = {};
  launch.func = (void *)add;
  launch.gridDim = 1;
  launch.blockDim = 128;
  launch.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &clear, 1, &launch));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(values[n - 1] == 1001);
  amount = 5;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &launch));
  amount = 6;  // the graph has a copy of the arguments
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(values[0] == 1005);
}

#if CUDART_VERSION >= 12020
// Nodes of any kind through one function, which takes the data of edges since CUDA 13.
static cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t *after, cudaGraphNodeParams *parameters) {
  cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddNode(&node, graph, after, nullptr, after ? 1 : 0, parameters));
#else
  CHECK(cudaGraphAddNode(&node, graph, after, after ? 1 : 0, parameters));
#endif
  return node;
}

static void count_call(void *calls) { ++*(int *)calls; }

static void any_kind(int *values, int *other) {
  cudaGraph_t graph, child;
  cudaGraphExec_t exec;
  int length = n, amount = 1, calls = 0;
  void *arguments[] = {&values, &length, &amount};
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&child, 0));
  cudaGraphNodeParams set = {cudaGraphNodeTypeMemset};
  set.memset.dst = values;
  set.memset.elementSize = 4;
  set.memset.value = 20;
  set.memset.width = n;
  set.memset.height = 1;
  cudaGraphNodeParams launch = {cudaGraphNodeTypeKernel};
  launch.kernel.func = (void *)add;
  launch.kernel.gridDim = 1;
  launch.kernel.blockDim = 128;
  launch.kernel.kernelParams = arguments;
  cudaGraphNodeParams copy = {cudaGraphNodeTypeMemcpy};
  copy.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(values, n * sizeof(int), n, 1);
  copy.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(other, n * sizeof(int), n, 1);
  copy.memcpy.copyParams.extent = make_cudaExtent(n * sizeof(int), 1, 1);
  copy.memcpy.copyParams.kind = cudaMemcpyDefault;
  cudaGraphNodeParams host = {cudaGraphNodeTypeHost};
  host.host.fn = count_call;
  host.host.userData = &calls;
  add_node(child, nullptr, &host);
  cudaGraphNodeParams inner = {cudaGraphNodeTypeGraph};
  inner.graph.graph = child;
  cudaGraphNode_t clear = add_node(graph, nullptr, &set), kernel = add_node(graph, &clear, &launch);
  cudaGraphNode_t copied = add_node(graph, &kernel, &copy);
  add_node(graph, &copied, &inner);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(other[n - 1] == 21 && calls == 1);
  amount = 4;
  CHECK(cudaGraphExecNodeSetParams(exec, kernel, &launch));
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  EXPECT(other[0] == 24 && calls == 2);
}
#endif

int main() {
  int *memory;
  CHECK(cudaMallocManaged(&memory, 2 * n * sizeof(int)));
  memory[0] = 1;
  captured(memory, memory + n);
  made(memory);
#if CUDART_VERSION >= 12020
  any_kind(memory, memory + n);
#endif
  printf("right\n");
}
