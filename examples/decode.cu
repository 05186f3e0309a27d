// Decode from a program of your own: two sequences in a cache of pages, and a step of decode as a CUDA graph, which is
// replayed while the sequences grow. All keys are 0, so each weighs the same, and O is the mean of the values. Token j
// has the value j.
#include <cuda_bf16.h>
#include <stdio.h>
#include <stdlib.h>

#include "hopper_ladder.h"

enum { BATCH = 2, HEADS = 8, KV_HEADS = 2, HEAD_DIM = 64, PAGE = 16, PAGES = 9, ENTRIES = 4 };

// Which page has tokens 0 to 15 of a sequence, which one 16 to 31, and so on. Page 8 is nobody's.
static const int32_t table[BATCH][ENTRIES] = {{5, 0, 3, 6}, {2, 7, 1, 4}};
static __nv_bfloat16 values[PAGES][KV_HEADS][PAGE][HEAD_DIM], o[BATCH][HEADS][HEAD_DIM];

static void must(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "decode: %s\n", cudaGetErrorString(error));
  exit(1);
}

static void decode(const HlDecode *call) {
  if (!hl_attention_decode(call)) return;
  fprintf(stderr, "decode: %s\n", hl_error());
  exit(1);
}

// `size` bytes on the GPU, a copy of `from`, or zeros.
static void *on_gpu(size_t size, const void *from = nullptr) {
  void *memory;
  must(cudaMalloc(&memory, size));
  must(from ? cudaMemcpy(memory, from, size, cudaMemcpyHostToDevice) : cudaMemset(memory, 0, size));
  return memory;
}

int main() {
  for (int b = 0; b < BATCH; b++)
    for (int token = 0; token < ENTRIES * PAGE; token++)
      for (int i = 0; i < KV_HEADS * HEAD_DIM; i++)
        values[table[b][token / PAGE]][i / HEAD_DIM][token % PAGE][i % HEAD_DIM] = __float2bfloat16((float)token);
  int32_t lengths[BATCH] = {15, 33};

  HlDecode call = {};
  call.batch = BATCH, call.heads = HEADS, call.kv_heads = KV_HEADS, call.head_dim = HEAD_DIM;
  call.keys = ENTRIES * PAGE;  // the most that a sequence will ever have
  call.type = HL_BF16;
  call.page = PAGE, call.pages = PAGES;
  call.block_table = (int32_t *)on_gpu(sizeof table, table);
  call.lengths = (int32_t *)on_gpu(sizeof lengths, lengths);
  call.q.data = on_gpu(sizeof o);
  call.k.data = on_gpu(sizeof values);
  call.v.data = on_gpu(sizeof values, values);
  call.o.data = on_gpu(sizeof o);

  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  call.stream = stream;
  decode(&call);  // loads the kernels, and allocates the stream's workspace

  cudaGraph_t graph;
  cudaGraphExec_t step;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  decode(&call);
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphInstantiate(&step, graph, 0));

  for (int i = 0; i < 3; i++) {
    for (int b = 0; b < BATCH; b++) lengths[b]++;  // a program of use would append keys and values here
    must(cudaMemcpyAsync((void *)call.lengths, lengths, sizeof lengths, cudaMemcpyHostToDevice, stream));
    must(cudaGraphLaunch(step, stream));
    must(cudaMemcpyAsync(o, call.o.data, sizeof o, cudaMemcpyDeviceToHost, stream));
    must(cudaStreamSynchronize(stream));
    printf("%d and %d tokens: the means are %g and %g\n", lengths[0], lengths[1], __bfloat162float(o[0][0][0]),
           __bfloat162float(o[1][HEADS - 1][HEAD_DIM - 1]));
  }
  return 0;
}
