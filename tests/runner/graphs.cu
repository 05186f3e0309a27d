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

int main() {
  int *memory;
  CHECK(cudaMallocManaged(&memory, 2 * n * sizeof(int)));
  memory[0] = 1;
  captured(memory, memory + n);
  made(memory);
  printf("right\n");
}
