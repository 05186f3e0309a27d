// Stage 00b's launch: three kernels, one after the other, for as many heads at a time as the score buffer has room for.
#include "harness/stage.h"
#include "tiles.h"

static int ceil_div(int a, int b) { return (a + b - 1) / b; }

// The scores of a head, and later its weights: S^2 numbers in fp32.
static size_t scores_size(const Shape *shape) { return sizeof(float) * shape->seqlen * shape->seqlen; }

static size_t workspace(const Shape *shape) { return passes_workspace(shape, scores_size(shape)); }

// One pass, for the heads whose scores have room in the buffer.
static bool launch_pass(Device *device, const Attention *a) {
  int seqlen = a->shape.seqlen, head_dim = a->shape.head_dim, causal = a->shape.causal, heads = a->shape.heads;

  DeviceLaunch scores = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "scores_64" : "scores_128"),
      .grid = {ceil_div(seqlen, KEYS), ceil_div(seqlen, ROWS), heads},
      .block = {THREADS},
      .arguments = ARGUMENTS(&a->q, &a->k, &a->workspace, &seqlen, &a->scale, &causal),
  };
  DeviceLaunch softmax = {
      .kernel = device_kernel(device, a->module, "softmax"),
      .grid = {ceil_div(seqlen, SOFTMAX_WARPS), heads},
      .block = {WARP, SOFTMAX_WARPS},
      .arguments = ARGUMENTS(&a->workspace, &seqlen, &causal),
  };
  DeviceLaunch output = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "output_64" : "output_128"),
      .grid = {ceil_div(seqlen, OUTPUT_ROWS), heads},
      .block = {head_dim},
      .arguments = ARGUMENTS(&a->workspace, &a->v, &a->o, &seqlen, &causal),
  };
  return device_launch(device, &scores) && device_launch(device, &softmax) && device_launch(device, &output);
}

static bool launch(Device *device, const Attention *a) {
  return passes_launch(device, a, scores_size(&a->shape), launch_pass);
}

const Stage stage = {
    .name = "00b-tiles",
    .title = "the scores from tiles in shared memory; they still wait in device memory",
    .launch = launch,
    .workspace = workspace,
};
