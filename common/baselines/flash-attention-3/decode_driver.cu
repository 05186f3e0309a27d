// Calls FlashAttention-3 as its own PyTorch module does for one or a few queries and a cache (mha_fwd in
// hopper/flash_api.cpp), with FlashAttention's own heuristics: whether the keys are split and in how many parts, and
// whether the query heads of a key head are packed into one tile.
#include "flash_attention_3_decode.h"

#include <cuda_runtime.h>
#include <cutlass/numeric_types.h>

#include <cmath>
#include <cstdint>

#include "flash.h"
#include "heuristics.h"
#include "tile_size.h"

namespace {

using Element = cutlass::bfloat16_t;

// The workspace: what the scheduler writes for itself, the log-sum-exp of each row, and of each part of the keys O and
// the log-sum-exp, in fp32.
struct Workspace {
  size_t lse, lse_parts, o_parts, size;
};

int round_up(int size, int multiple) { return (size + multiple - 1) / multiple * multiple; }

Workspace lay_out(const Flash_fwd_params &params) {
  auto end = [](size_t begin, size_t bytes) { return (begin + bytes + 255) / 256 * 256; };
  size_t rows = (size_t)params.b * params.h * params.seqlen_q, parts = params.num_splits > 1 ? params.num_splits : 0;
  Workspace at = {};
  at.lse = end(0, sizeof(int) * (4 * (size_t)round_up(params.b, 4) + 1));
  at.lse_parts = end(at.lse, sizeof(float) * rows);
  at.o_parts = end(at.lse_parts, sizeof(float) * rows * parts);
  at.size = end(at.o_parts, sizeof(float) * rows * parts * params.d);
  return at;
}

void set_sizes(Flash_fwd_params &params, const FlashAttention3Decode &call) {
  params.b = params.b_k = call.batch;
  params.h = call.heads;
  params.h_k = call.kv_heads;
  params.seqlen_q = call.queries;
  params.seqlen_k = call.keys;
  params.seqlen_q_rounded = round_up(call.queries, 128);
  params.seqlen_k_rounded = round_up(call.keys, 128);
  params.total_q = call.batch * call.queries;
  params.total_k = call.batch * call.keys;
  params.d = params.d_rounded = params.dv = params.dv_rounded = call.head_dim;
  params.page_size = call.page ? call.page : 1;
  params.num_pages = call.pages;
  params.page_table_batch_stride = call.page ? call.keys / call.page : 0;
}

void set_strides(Flash_fwd_params &params, const FlashAttention3Decode &call) {
  int64_t d = call.head_dim, rows = call.page ? call.page : call.keys;
  params.q_row_stride = params.o_row_stride = params.k_row_stride = params.v_row_stride = d;
  params.q_head_stride = params.o_head_stride = call.queries * d;
  params.q_batch_stride = params.o_batch_stride = call.heads * call.queries * d;
  params.k_head_stride = params.v_head_stride = rows * d;
  params.k_batch_stride = params.v_batch_stride = call.kv_heads * rows * d;
  params.v_dim_stride = 1;
}

void set_pointers(Flash_fwd_params &params, const FlashAttention3Decode &call) {
  params.q_ptr = const_cast<void *>(call.q);
  params.k_ptr = const_cast<void *>(call.k);
  params.v_ptr = const_cast<void *>(call.v);
  params.o_ptr = call.o;
  params.seqused_k = const_cast<int *>(call.lengths);
  params.page_table = const_cast<int *>(call.block_table);
}

// With one query a causal mask hides nothing. mha_fwd still keeps it for a paged cache and head dimension 128, where
// the tile of a masked kernel is better.
void set_mask(Flash_fwd_params &params) {
  params.is_causal = params.seqlen_q > 1 || (params.page_table && params.d == 128);
  params.window_size_left = params.seqlen_k - 1;
  params.window_size_right = params.is_causal ? 0 : params.seqlen_q - 1;
}

// Pages are read with cp.async and not with TMA: mha_fwd takes TMA only where the rows of a key head fill more than a
// tile, which those of a decode do not.
void choose_kernel(Flash_fwd_params &params) {
  bool paged = params.page_table;
  auto tile = tile_size_fwd_sm90(params.d, params.dv, params.is_causal, false, sizeof(Element), false, paged, false);
  int tile_m = std::get<0>(tile), tile_n = std::get<1>(tile), group = params.h / params.h_k;
  int n_blocks = (params.seqlen_k + tile_n - 1) / tile_n, m_blocks = (params.seqlen_q * group + tile_m - 1) / tile_m;
  int tiles = (params.seqused_k ? 1 : params.b) * params.h_k * m_blocks;
  int head_bytes = params.seqlen_k * (params.d + params.dv) * (int)sizeof(Element);
  params.num_splits = num_splits_heuristic(tiles, params.num_sm, n_blocks, m_blocks, head_bytes, params.is_causal, 128);
  params.pack_gqa =
      paged || params.num_splits > 1 || (group > 1 && should_pack_gqa(false, params.seqlen_q, group, tile_m));
}

bool needs_counter(const Flash_fwd_params &params) {
  return (params.is_causal && params.num_splits == 1) || params.seqused_k;
}

// Where lengths differ, a kernel of FlashAttention's writes the scheduler's arrays and sets the counter to 0.
void set_scheduler(Flash_fwd_params &params, void *workspace) {
  int *at = static_cast<int *>(workspace), each = round_up(params.b, 4);
  int arrays = (params.seqused_k ? 2 : 0) + 1 + (params.is_causal ? 1 : 0);
  params.varlen_sort_batches = true;
  params.head_swizzle = params.is_causal;
  params.tile_count_semaphore_offset = arrays * each;
  params.tile_count_semaphore = needs_counter(params) ? at + arrays * each : nullptr;
  if (!params.seqused_k) return;
  params.prepare_varlen_pdl = params.b <= 992;
  params.num_splits_dynamic_ptr = at;
  params.num_m_blocks_ptr = at + each;
  params.varlen_batch_idx_ptr = at + 2 * each;
  params.num_nheads_in_l2_ptr = params.is_causal ? at + 3 * each : nullptr;
}

// [part][batch][head][query]
void set_parts(Flash_fwd_params &params, void *workspace) {
  Workspace at = lay_out(params);
  char *base = static_cast<char *>(workspace);
  params.softmax_lse_ptr = base + at.lse;
  if (params.num_splits == 1) return;
  params.softmax_lseaccum_ptr = base + at.lse_parts;
  params.oaccum_ptr = base + at.o_parts;
  params.lseaccum_head_stride = params.seqlen_q;
  params.lseaccum_batch_stride = params.h * params.lseaccum_head_stride;
  params.lseaccum_split_stride = params.b * params.lseaccum_batch_stride;
  params.oaccum_row_stride = params.d;
  params.oaccum_head_stride = params.lseaccum_head_stride * params.d;
  params.oaccum_batch_stride = params.lseaccum_batch_stride * params.d;
  params.oaccum_split_stride = params.lseaccum_split_stride * params.d;
}

cudaError_t make_params(Flash_fwd_params &params, const FlashAttention3Decode &call) {
  int device;
  cudaError_t error = cudaGetDevice(&device);
  if (!error) error = cudaDeviceGetAttribute(&params.num_sm, cudaDevAttrMultiProcessorCount, device);
  if (!error && call.head_dim != 64 && call.head_dim != 128) error = cudaErrorInvalidValue;
  if (error) return error;
  params.arch = 90;
  params.is_bf16 = true;
  params.scale_softmax = 1 / std::sqrt((float)call.head_dim);
  params.p_dropout = params.rp_dropout = 1;  // no dropout: every weight is kept
  params.p_dropout_in_uint8_t = 255;
  set_sizes(params, call);
  set_strides(params, call);
  set_pointers(params, call);
  set_mask(params);
  choose_kernel(params);
  return cudaSuccess;
}

// The kernels that split the keys or read pages are always those that pack heads.
template <int HEAD_DIM> void run(Flash_fwd_params &params, cudaStream_t stream) {
  bool split = params.num_splits > 1, paged = params.page_table;
  if (split && paged)
    run_mha_fwd_<90, Element, HEAD_DIM, HEAD_DIM, true, true, false, true>(params, stream);
  else if (split)
    run_mha_fwd_<90, Element, HEAD_DIM, HEAD_DIM, true, false, false, true>(params, stream);
  else if (paged)
    run_mha_fwd_<90, Element, HEAD_DIM, HEAD_DIM, false, true, false, true>(params, stream);
  else if (params.pack_gqa)
    run_mha_fwd_<90, Element, HEAD_DIM, HEAD_DIM, false, false, false, true>(params, stream);
  else
    run_mha_fwd_<90, Element, HEAD_DIM, HEAD_DIM, false, false, false, false>(params, stream);
  if (split) run_mha_fwd_combine_<Element, float, HEAD_DIM>(params, stream, true);
}

}  // namespace

// The build defines the two commits as texts.
#define TEXT(number) #number
#define VERSION(major, minor) TEXT(major) "." TEXT(minor)
const char *flash_attention_3_decode_version(void) {
  return "FlashAttention " FLASH_ATTENTION_COMMIT " with CUTLASS " CUTLASS_COMMIT
         " and CUDA " VERSION(__CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__);
}

size_t flash_attention_3_decode_workspace(const FlashAttention3Decode *call) {
  Flash_fwd_params params = {};
  return make_params(params, *call) ? 0 : lay_out(params).size;
}

int flash_attention_3_decode(const FlashAttention3Decode *call) {
  Flash_fwd_params params = {};
  cudaStream_t stream = static_cast<cudaStream_t>(call->stream);
  cudaError_t error = make_params(params, *call);
  if (error) return error;
  set_scheduler(params, call->workspace);
  set_parts(params, call->workspace);
  if (params.tile_count_semaphore && !params.seqused_k)
    error = cudaMemsetAsync(params.tile_count_semaphore, 0, sizeof(int), stream);
  if (error) return error;
  (params.d == 64 ? run<64> : run<128>)(params, stream);
  return cudaSuccess;
}
