// Stage 01's launch: three kernels, one after the other, for as many heads at a time as the score buffer holds.
#include "harness/stage.h"

enum { TILE = 64, SCORE_THREADS = 128, OUTPUT_ROWS = 8, WARP = 32, SOFTMAX_WARPS = 4 };  // as in kernel.cu

static int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Scores and weights are fp32: 4 S^2 bytes a head, the whole trouble with this stage. 8 GiB of them at a time are
// enough for batch 4, heads 32, seqlen 4096; a larger problem is done in several passes.
static const size_t SCORES_LIMIT = (size_t)8 << 30;

static size_t head_scores(const Shape *shape) { return sizeof(float) * shape->seqlen * shape->seqlen; }

static int heads_per_pass(const Shape *shape) {
  size_t heads = (size_t)shape->batch * shape->heads, fit = SCORES_LIMIT / head_scores(shape);
  if (fit < 1) fit = 1;
  if (fit > 65535) fit = 65535;  // the most that gridDim.y and gridDim.z can be
  return (int)(heads < fit ? heads : fit);
}

static size_t workspace(const Shape *shape) { return heads_per_pass(shape) * head_scores(shape); }

// One pass: `heads` heads from head `first` on.
static bool launch_heads(Device *device, const Attention *a, int first, int heads) {
  int seqlen = a->shape.seqlen, head_dim = a->shape.head_dim, causal = a->shape.causal;
  size_t offset = sizeof(uint16_t) * first * seqlen * head_dim;
  DeviceAddress q = a->q + offset, k = a->k + offset, v = a->v + offset, o = a->o + offset, s = a->workspace;
  float scale = a->scale;

  DeviceLaunch scores = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "scores_64" : "scores_128"),
      .grid = {ceil_div(seqlen, TILE), ceil_div(seqlen, TILE), heads},
      .block = {SCORE_THREADS},
      .arguments = ARGUMENTS(&q, &k, &s, &seqlen, &scale, &causal),
  };
  DeviceLaunch softmax = {
      .kernel = device_kernel(device, a->module, "softmax"),
      .grid = {ceil_div(seqlen, SOFTMAX_WARPS), heads},
      .block = {WARP, SOFTMAX_WARPS},
      .arguments = ARGUMENTS(&s, &seqlen, &causal),
  };
  DeviceLaunch output = {
      .kernel = device_kernel(device, a->module, head_dim == 64 ? "output_64" : "output_128"),
      .grid = {ceil_div(seqlen, OUTPUT_ROWS), heads},
      .block = {head_dim},
      .arguments = ARGUMENTS(&s, &v, &o, &seqlen, &causal),
  };
  return device_launch(device, &scores) && device_launch(device, &softmax) && device_launch(device, &output);
}

static bool launch(Device *device, const Attention *a) {
  int heads = a->shape.batch * a->shape.heads, step = heads_per_pass(&a->shape);
  for (int first = 0; first < heads; first += step) {
    int count = heads - first < step ? heads - first : step;
    if (!launch_heads(device, a, first, count)) return false;
  }
  return true;
}

const Stage stage = {
    .name = "01-wmma-qk",
    .title = "the scores on tensor cores; they still wait in device memory",
    .launch = launch,
    .workspace = workspace,
};
