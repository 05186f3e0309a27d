// Programmatic dependent launch: a kernel that begins before the one in front of it has ended. Without an argument all
// is right; an argument names a mistake, and the line of the access that nothing orders says so.
#include <cstring>

#include "check.h"

enum { N = 64 };

__device__ void trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__global__ void fill(int *data, int value) {
  trigger();
  data[threadIdx.x] = value;  // in front
}

// Its stores are fenced, and only then may others begin.
__global__ void fill_and_release(int *data, int value) {
  data[threadIdx.x] = value;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    trigger();
  }
}

__global__ void fill_before(int *data, int value) {
  data[threadIdx.x] = value;  // before its trigger
  trigger();
}

__global__ void fill_silently(int *data, int value) {
  data[threadIdx.x] = value;  // without a trigger
}

__global__ void read_late(int *data, int *out) {
  trigger();
  data[threadIdx.x] = 7;
  out[threadIdx.x] = data[N + threadIdx.x];  // reads after its trigger
}

__global__ void add(const int *data, int *out, int amount) {
  wait();
  out[threadIdx.x] = data[threadIdx.x] + amount;
}

// One thread waits for all.
__global__ void add_after_barrier(const int *data, int *out, int amount) {
  if (threadIdx.x == 40) wait();
  __syncthreads();
  out[threadIdx.x] = data[threadIdx.x] + amount;
}

// A warp by itself has not learnt of the wait yet.
__global__ void add_by_two_warps(const int *data, int *out, int amount) {
  if (threadIdx.x == 40) wait();
  int mine = data[threadIdx.x];  // without a barrier
  __syncthreads();
  out[threadIdx.x] = mine + amount;
}

__global__ void add_early(const int *data, int *out, int amount) {
  int mine = data[threadIdx.x];  // before its wait
  wait();
  out[threadIdx.x] = mine + amount;
}

__global__ void overwrite_early(int *data) {
  data[N + threadIdx.x] = 3;  // written before its wait
  wait();
}

__global__ void sum_early(int *data, int value) {
  trigger();
  atomicAdd(data, value);
}

// Begins early and touches nothing that others do.
__global__ void pass(int *own) {
  trigger();
  own[threadIdx.x] = 1;
}

__global__ void pass_after_wait(int *own) {
  wait();
  trigger();
  own[threadIdx.x] = 1;
}

template <typename... Parameters, typename... Arguments>
static void launch_early(cudaStream_t stream, void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = N;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, kernel, (Parameters)arguments...));
}

// The waiting kernel is in another stream, after an event of the launch.
static void by_event(cudaStream_t stream, int *data, int *out, void (*kernel)(const int *, int *, int)) {
  cudaEvent_t event;
  cudaStream_t other;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaStreamCreate(&other));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticEvent;
  attribute.val.programmaticEvent.event = event;
  attribute.val.programmaticEvent.triggerAtBlockStart = 0;
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = N;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, fill, data, 5));
  CHECK(cudaStreamWaitEvent(other, event));
  kernel<<<1, N, 0, other>>>(data, out, 1);
  CHECK(cudaDeviceSynchronize());
}

static void by_capture(cudaStream_t stream, int *data, int *out, void (*kernel)(const int *, int *, int)) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  fill<<<1, N, 0, stream>>>(data, 5);
  launch_early(stream, kernel, data, out, 1);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
}

static void by_edge(cudaStream_t stream, int *data, int *out, void (*kernel)(const int *, int *, int)) {
#if CUDART_VERSION >= 13000
  int five = 5, one = 1;
  void *fill_arguments[] = {&data, &five}, *arguments[] = {&data, &out, &one};
  cudaKernelNodeParams parameters = {};
  parameters.func = (void *)fill;
  parameters.gridDim = 1;
  parameters.blockDim = N;
  parameters.kernelParams = fill_arguments;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t front, node;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&front, graph, nullptr, 0, &parameters));
  parameters.func = (void *)kernel;
  parameters.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  cudaGraphEdgeData edge = {};
  edge.type = cudaGraphDependencyTypeProgrammatic;
  edge.from_port = cudaGraphKernelNodePortProgrammatic;
  CHECK(cudaGraphAddDependencies(graph, &front, &node, &edge, 1));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
#else
  by_capture(stream, data, out, kernel);
#endif
}

static void right(cudaStream_t stream, int *data, int *out, int *own) {
  fill<<<1, N, 0, stream>>>(data, 1);
  launch_early(stream, add, data, out, 1);
  launch_early(stream, add, out, data, 1);  // in front of it is a kernel that has waited
  fill<<<1, N, 0, stream>>>(data, 2);
  launch_early(stream, add_after_barrier, data, out, 1);
  fill_and_release<<<1, N, 0, stream>>>(data, 3);
  launch_early(stream, add_early, data, out, 1);
  fill<<<1, N, 0, stream>>>(data, 4);
  add_early<<<1, N, 0, stream>>>(data, out, 1);  // has no attribute
  fill<<<1, N, 0, stream>>>(data, 5);
  CHECK(cudaMemsetAsync(own, 0, N * sizeof(int), stream));
  launch_early(stream, add_early, data, out, 1);  // no launch stands in front of it
  fill<<<1, N, 0, stream>>>(data, 6);
  CHECK(cudaStreamSynchronize(stream));
  launch_early(stream, add_early, data, out, 1);
  sum_early<<<1, N, 0, stream>>>(own, 1);
  launch_early(stream, sum_early, own, 1);  // atomics need no order
  fill<<<1, N, 0, stream>>>(data, 7);
  launch_early(stream, pass_after_wait, own);
  launch_early(stream, add_early, data, out, 1);  // the first one was over when this one could begin
  by_event(stream, data, out, add);
  by_capture(stream, data, out, add);
  by_edge(stream, data, out, add);
  CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int *data, *out, *own;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&data, 2 * N * sizeof(int)));
  CHECK(cudaMalloc(&own, N * sizeof(int)));
  CHECK(cudaMallocManaged(&out, N * sizeof(int)));
  CHECK(cudaMemset(data, 0, 2 * N * sizeof(int)));
  CHECK(cudaMemset(own, 0, N * sizeof(int)));
  if (!*what) right(stream, data, out, own);
  if (!strcmp(what, "read")) {
    fill<<<1, N, 0, stream>>>(data, 5);
    launch_early(stream, add_early, data, out, 1);
  }
  if (!strcmp(what, "warp")) {
    fill<<<1, N, 0, stream>>>(data, 5);
    launch_early(stream, add_by_two_warps, data, out, 1);
  }
  if (!strcmp(what, "before")) {
    fill_before<<<1, N, 0, stream>>>(data, 5);
    launch_early(stream, add_early, data, out, 1);
  }
  if (!strcmp(what, "write")) {
    read_late<<<1, N, 0, stream>>>(data, out);
    launch_early(stream, overwrite_early, data);
  }
  if (!strcmp(what, "silent")) {
    fill_silently<<<1, N, 0, stream>>>(data, 5);
    launch_early(stream, add_early, data, out, 1);
  }
  if (!strcmp(what, "chain")) {
    fill<<<1, N, 0, stream>>>(data, 5);
    launch_early(stream, pass, own);
    launch_early(stream, add, data, out, 1);
  }
  if (!strcmp(what, "event")) by_event(stream, data, out, add_early);
  if (!strcmp(what, "capture")) by_capture(stream, data, out, add_early);
  if (!strcmp(what, "edge")) by_edge(stream, data, out, add_early);
  CHECK(cudaDeviceSynchronize());
  if (!*what) EXPECT(out[N - 1] == 6);
  printf("right\n");
}
