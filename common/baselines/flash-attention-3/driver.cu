// Calls FlashAttention-3 as its own PyTorch module does for such a problem (mha_fwd and mha_bwd in
// hopper/flash_api.cpp). Forward: no split of the keys, no packed heads, and a tile counter that is 0 before each
// causal launch. Backward: three kernels, which need no memory that is set before.
#include "flash_attention_3.h"

#include <cuda_runtime.h>
#include <cutlass/numeric_types.h>

#include <cstdint>

#include "flash.h"

namespace {

// The workspace of the forward pass: a counter from which the blocks of a causal launch take their tiles, then the
// log-sum-exp of each row, which the kernel always stores.
constexpr size_t LSE_OFFSET = 256;

struct Tensors {
  const void *q, *k, *v;
  void *o, *workspace;
};

void set_sizes(Flash_fwd_params &params, int batch, int heads, int seqlen, int head_dim) {
  params.b = params.b_k = batch;
  params.h = params.h_k = heads;
  params.seqlen_q = params.seqlen_k = seqlen;
  params.seqlen_q_rounded = params.seqlen_k_rounded = (seqlen + 127) / 128 * 128;
  params.total_q = params.total_k = batch * seqlen;
  params.d = params.d_rounded = params.dv = params.dv_rounded = head_dim;
  params.page_size = 1;
  params.num_splits = 1;
}

void set_strides(Flash_fwd_params &params, int64_t heads, int64_t seqlen, int64_t head_dim) {
  params.q_row_stride = params.k_row_stride = params.v_row_stride = params.o_row_stride = head_dim;
  params.q_head_stride = params.k_head_stride = params.v_head_stride = params.o_head_stride = seqlen * head_dim;
  params.q_batch_stride = params.k_batch_stride = params.v_batch_stride = params.o_batch_stride =
      heads * seqlen * head_dim;
  params.v_dim_stride = 1;
}

void set_pointers(Flash_fwd_params &params, const Tensors &tensors) {
  params.q_ptr = const_cast<void *>(tensors.q);
  params.k_ptr = const_cast<void *>(tensors.k);
  params.v_ptr = const_cast<void *>(tensors.v);
  params.o_ptr = tensors.o;
  params.softmax_lse_ptr = static_cast<char *>(tensors.workspace) + LSE_OFFSET;
  params.tile_count_semaphore = params.is_causal ? static_cast<int *>(tensors.workspace) : nullptr;
}

void set_mask(Flash_fwd_params &params, bool causal) {
  params.is_causal = causal;
  params.window_size_left = params.seqlen_k - 1;
  params.window_size_right = causal ? 0 : params.seqlen_q - 1;
}

// No dropout: every weight is kept.
void set_scales(Flash_fwd_params &params, float scale) {
  params.scale_softmax = scale;
  params.p_dropout = params.rp_dropout = 1;
  params.p_dropout_in_uint8_t = 255;
}

cudaError_t set_device(Flash_fwd_params &params) {
  int device;
  cudaError_t error = cudaGetDevice(&device);
  params.arch = 90;
  return error ? error : cudaDeviceGetAttribute(&params.num_sm, cudaDevAttrMultiProcessorCount, device);
}

Flash_fwd_params make_params(int batch, int heads, int seqlen, int head_dim, bool causal, float scale,
                             const Tensors &tensors) {
  Flash_fwd_params params = {};
  set_sizes(params, batch, heads, seqlen, head_dim);
  set_strides(params, heads, seqlen, head_dim);
  set_mask(params, causal);
  set_pointers(params, tensors);
  set_scales(params, scale);
  return params;
}

// FlashAttention reads a scale for each batch and head. With strides of 0, which make_params leaves, all read the same.
void set_descales(Flash_fwd_params &params, const float *q_scale, const float *k_scale, const float *v_scale) {
  params.is_e4m3 = true;
  params.q_descale_ptr = const_cast<float *>(q_scale);
  params.k_descale_ptr = const_cast<float *>(k_scale);
  params.v_descale_ptr = const_cast<float *>(v_scale);
}

template <typename Element, int HEAD_DIM> void run(Flash_fwd_params &params, cudaStream_t stream) {
  run_mha_fwd_<90, Element, HEAD_DIM, HEAD_DIM, false, false, false, false>(params, stream);
}

bool has_kernel(int head_dim) { return head_dim == 64 || head_dim == 128; }

template <typename Element> int launch(Flash_fwd_params &params, void *stream) {
  if (!has_kernel(params.d)) return cudaErrorInvalidValue;
  cudaError_t error = set_device(params);
  cudaStream_t queue = static_cast<cudaStream_t>(stream);
  if (!error && params.is_causal) error = cudaMemsetAsync(params.tile_count_semaphore, 0, sizeof(int), queue);
  if (error) return error;
  (params.d == 64 ? run<Element, 64> : run<Element, 128>)(params, queue);
  return cudaSuccess;
}

// ---- backward ----

struct Gradients {
  const void *d_o;
  void *d_q, *d_k, *d_v;
};

// The queries of a block's tile: kBlockM_sm90 in mha_bwd. It must be that of the kernels, which is written down in
// hopper/flash_bwd_launch_template.h.
int query_tile(int head_dim, bool causal) { return head_dim == 64 ? 128 : causal ? 64 : 80; }

int round_up(int size, int multiple) { return (size + multiple - 1) / multiple * multiple; }

// The workspace of the backward pass, as offsets: dQ in fp32, to which blocks add; delta and the log-sum-exp as a power
// of two, of each row; and a counter of each tile, at which blocks wait for their turn if the order of the sums is
// fixed.
struct Workspace {
  size_t dq_accum, delta, lse_log2, semaphore, size;
};

Workspace lay_out(size_t all_heads, int seqlen, int head_dim, bool causal) {
  int tile = query_tile(head_dim, causal), rows = round_up(seqlen, tile);
  auto end = [](size_t begin, size_t bytes) { return (begin + bytes + 255) / 256 * 256; };
  Workspace at = {};
  at.delta = end(at.dq_accum, all_heads * rows * head_dim * sizeof(float));
  at.lse_log2 = end(at.delta, all_heads * rows * sizeof(float));
  at.semaphore = end(at.lse_log2, all_heads * rows * sizeof(float));
  at.size = end(at.semaphore, all_heads * (rows / tile) * sizeof(int));
  return at;
}

void set_backward_sizes(Flash_bwd_params &params, int batch, int heads, int seqlen, int head_dim, bool causal) {
  set_sizes(params, batch, heads, seqlen, head_dim);
  params.seqlen_q_rounded = round_up(seqlen, query_tile(head_dim, causal));
}

void set_gradient_strides(Flash_bwd_params &params) {
  params.do_row_stride = params.dq_row_stride = params.dk_row_stride = params.dv_row_stride = params.q_row_stride;
  params.do_head_stride = params.dq_head_stride = params.dk_head_stride = params.dv_head_stride = params.q_head_stride;
  params.do_batch_stride = params.dq_batch_stride = params.dk_batch_stride = params.dv_batch_stride =
      params.q_batch_stride;
}

void set_gradients(Flash_bwd_params &params, const Gradients &gradients, const float *lse) {
  params.softmax_lse_ptr = const_cast<float *>(lse);
  params.tile_count_semaphore = nullptr;  // blocks of this pass find their tiles without one
  params.do_ptr = const_cast<void *>(gradients.d_o);
  params.dq_ptr = gradients.d_q;
  params.dk_ptr = gradients.d_k;
  params.dv_ptr = gradients.d_v;
}

void set_workspace(Flash_bwd_params &params, void *workspace) {
  Workspace at = lay_out((size_t)params.b * params.h, params.seqlen_q, params.d, params.is_causal);
  char *base = static_cast<char *>(workspace);
  params.dq_accum_ptr = base + at.dq_accum;
  params.dsoftmax_sum = base + at.delta;
  params.softmax_lse_log2_ptr = base + at.lse_log2;
  params.dq_semaphore = reinterpret_cast<int *>(base + at.semaphore);
}

int launch_backward(Flash_bwd_params &params, void *stream) {
  cudaError_t error = set_device(params);
  if (error) return error;
  auto run_backward =
      params.d == 64 ? run_mha_bwd_<90, cutlass::half_t, 64, false> : run_mha_bwd_<90, cutlass::half_t, 128, false>;
  run_backward(params, static_cast<cudaStream_t>(stream));
  return cudaSuccess;
}

}  // namespace

// The build defines the two commits as texts.
#define TEXT(number) #number
#define VERSION(major, minor) TEXT(major) "." TEXT(minor)
const char *flash_attention_3_version(void) {
  return "FlashAttention " FLASH_ATTENTION_COMMIT " with CUTLASS " CUTLASS_COMMIT
         " and CUDA " VERSION(__CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__);
}

size_t flash_attention_3_workspace(int batch, int heads, int seqlen) {
  return LSE_OFFSET + sizeof(float) * batch * heads * seqlen;
}

int flash_attention_3(int batch, int heads, int seqlen, int head_dim, int causal, float scale, const void *q,
                      const void *k, const void *v, void *o, void *workspace, void *stream) {
  Flash_fwd_params params = make_params(batch, heads, seqlen, head_dim, causal, scale, {q, k, v, o, workspace});
  return launch<cutlass::half_t>(params, stream);
}

int flash_attention_3_e4m3(int batch, int heads, int seqlen, int head_dim, int causal, float scale, const void *q,
                           const void *k, const void *v, void *o, const float *q_scale, const float *k_scale,
                           const float *v_scale, void *workspace, void *stream) {
  Flash_fwd_params params = make_params(batch, heads, seqlen, head_dim, causal, scale, {q, k, v, o, workspace});
  set_descales(params, q_scale, k_scale, v_scale);
  return launch<cutlass::float_e4m3_t>(params, stream);
}

size_t flash_attention_3_backward_workspace(int batch, int heads, int seqlen, int head_dim, int causal) {
  return lay_out((size_t)batch * heads, seqlen, head_dim, causal).size;
}

int flash_attention_3_backward(int batch, int heads, int seqlen, int head_dim, int causal, int deterministic,
                               float scale, const void *q, const void *k, const void *v, const void *o, const void *d_o,
                               const float *lse, void *d_q, void *d_k, void *d_v, void *workspace, void *stream) {
  if (!has_kernel(head_dim)) return cudaErrorInvalidValue;
  Flash_bwd_params params = {};
  set_backward_sizes(params, batch, heads, seqlen, head_dim, causal);
  set_strides(params, heads, seqlen, head_dim);
  set_gradient_strides(params);
  set_mask(params, causal);
  set_pointers(params, {q, k, v, const_cast<void *>(o), workspace});
  set_gradients(params, {d_o, d_q, d_k, d_v}, lse);
  set_workspace(params, workspace);
  set_scales(params, scale);
  params.deterministic = deterministic;
  return launch_backward(params, stream);
}
