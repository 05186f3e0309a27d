// Attention as one would write it first: a matrix product by cuBLAS, a softmax, another product by cuBLAS. The scores,
// fp32, and the weights, fp16, wait in device memory; as many heads at a time as the workspace holds.
#include "harness/cublas.h"
#include "harness/harness.h"

enum { THREADS = 256 };                   // as in kernel.cu
static const float WEIGHT_SCALE = 32768;  // as there

static Cublas *cublas;  // open while the program runs

static size_t scores_size(const Shape *shape) { return sizeof(float) * shape->seqlen * shape->seqlen; }
static size_t weights_size(const Shape *shape) { return sizeof(Half) * shape->seqlen * shape->seqlen; }
static size_t head_size(const Shape *shape) { return scores_size(shape) + weights_size(shape); }
static size_t workspace(const Shape *shape) { return passes_workspace(shape, head_size(shape)); }

static void *pointer(DeviceAddress address) { return (void *)(uintptr_t)address; }

// Row after row is, for cuBLAS, the transposed matrix: it is told to make S^T = K Q^T and O^T = V^T P^T.
static bool launch_pass(Device *device, const Attention *a) {
  int seqlen = a->shape.seqlen, head_dim = a->shape.head_dim, causal = a->shape.causal, heads = a->shape.heads;
  DeviceAddress weights = a->workspace + heads * scores_size(&a->shape);
  long long tensor = (long long)seqlen * head_dim, square = (long long)seqlen * seqlen;
  Matrices q = {.data = pointer(a->q.address), .pitch = head_dim, .distance = tensor};
  Matrices k = {.data = pointer(a->k.address), .pitch = head_dim, .distance = tensor, .transposed = true};
  Matrices v = {.data = pointer(a->v.address), .pitch = head_dim, .distance = tensor};
  Matrices o = {.data = pointer(a->o.address), .pitch = head_dim, .distance = tensor};
  Matrices s = {.data = pointer(a->workspace), .pitch = seqlen, .distance = square, .fp32 = true};
  Matrices p = {.data = pointer(weights), .pitch = seqlen, .distance = square};
  DeviceLaunch softmax = {
      .kernel = device_kernel(device, a->module, "softmax"),
      .grid = {seqlen, heads},
      .block = {THREADS},
      .arguments = ARGUMENTS(&a->workspace, &weights, &seqlen, &causal),
  };

  const char *failure = cublas_multiply(cublas, seqlen, seqlen, head_dim, a->scale, &k, &q, &s, heads);
  if (failure) return device_fail(device, DEVICE_FAILED, "cuBLAS, Q K^T: %s", failure);
  if (!device_launch(device, &softmax)) return false;
  failure = cublas_multiply(cublas, head_dim, seqlen, seqlen, 1 / WEIGHT_SCALE, &v, &p, &o, heads);
  return !failure || device_fail(device, DEVICE_FAILED, "cuBLAS, P V: %s", failure);
}

static bool launch_cublas(Device *device, const Attention *attention) {
  return passes_launch(device, attention, head_size(&attention->shape), launch_pass);
}

static int run_cublas(Session *session) {
  const DeviceInfo *device = device_info(session->device);
  char error[ERROR_SIZE];
  if (device->kind == DEVICE_EMULATOR && device->note[0])
    return session_fail(session, EXIT_ABSENT, "cuBLAS runs on a GPU alone, and here is none (%s)", device->note);
  if (device->kind == DEVICE_EMULATOR)
    return session_fail(session, EXIT_ABSENT, "cuBLAS runs on a GPU alone: there is no emulator of it");
  cublas = cublas_open(error, sizeof error);
  if (!cublas) return session_fail(session, EXIT_ABSENT, "%s", error);
  int code = attention_run(session);
  cublas_close(cublas);
  return code;
}

const Stage stage = {
    .name = "cuBLAS",
    .title = "two matrix products by cuBLAS, and a softmax of ours between them",
    .launch = launch_cublas,
    .workspace = workspace,
    .run = run_cublas,
};
