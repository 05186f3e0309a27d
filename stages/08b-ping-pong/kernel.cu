// Stage 08: ping-pong. While one warpgroup has its softmax, another has the tensor cores; and within a warpgroup the
// softmax of one block of keys runs under the output of the block before.
//
// A block does the queries of its warpgroups, 64 each, against all keys of their head. One thread of the first warpgroup
// loads. The others, for each block of 128 keys, do
//
//   S = Q K^T     of the next block       both on the tensor cores, in the background,
//   O += P V      of the last block       the warpgroups one after another;
//   P = exp(S)    of the next block       meanwhile, as soon as S is there
#include "../07-warp-specialization/loader.h"

#include "ptx/barrier.h"
#include "ptx/math.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

// ---- a warpgroup that computes ----

template <int HEAD_DIM, bool CAUSAL> struct Worker {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Problem &problem;
  int warpgroup, warp, lane;
  Ring<S::STAGES> k, v;
  int steps = 0;     // for trace: blocks whose scores have been started
  int row, key = 0;  // the warpgroup's first query, the first key of the block at hand

  // Of two rows, l / 4 and l / 4 + 8 of the warp's sixteen, for every 8 columns two neighbours: s[4 n + 2 h + e], row h.
  float s[KEYS / 2];         // scores, then weights
  uint32_t p[KEYS / 16][4];  // weights in fp16, the A of the next product
  float o[HEAD_DIM / 2];
  float shift[2];   // a weight is 2^(score * scale + shift)
  float sum[2];     // of the weights in this thread's columns
  float factor[2];  // by which older weights shrink

  // ---- order ----

  template <int PLACES> __device__ void wait(const Ring<PLACES> &ring, const uint64_t *full) {
    mbarrier_wait(shared_address(full + ring.place), ring.parity);
  }
  template <int PLACES> __device__ void release(Ring<PLACES> &ring, const uint64_t *empty) {
    if (lane == 0) mbarrier_arrive(shared_address(empty + ring.place));
    ring.advance();
  }
  // The warpgroups take turns in issuing products, so that one has its softmax while another has the tensor cores.
  __device__ void take_turn() { barrier_sync(1 + warpgroup, 2 * WARPGROUP); }
  __device__ void pass_turn() { barrier_arrive(1 + (warpgroup + 1) % S::WORKERS, 2 * WARPGROUP); }

  // ---- products ----

  // Starts S = Q K^T.
  __device__ void scores() {
    uint64_t a = k_major(shared_address(shared.q) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[k.place]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) wgmma<KEYS>(s, columns_16(a, S::ROWS, d), columns_16(b, KEYS, d), d > 0);
    wgmma_commit();
  }

  // Starts O += P V, or O = P V for a tile's first block.
  __device__ void output(int accumulate) {
    uint64_t b = mn_major(shared_address(shared.v[v.place]), KEYS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(o, p[n], rows_16(b, n), n > 0 ? 1 : accumulate);
    wgmma_commit();
  }

  // ---- softmax ----

  // In the first block at hand, scores that must not count become minus infinity.
  __device__ void mask() {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * warp + 8 * h + lane / 4, keys = CAUSAL ? min(i + 1, problem.seqlen) : problem.seqlen;
      int left = keys - (key + lane % 4 * 2);  // what this row may see from this thread's first column on
#pragma unroll
      for (int n = 0; n < KEYS / 8; n++)
        for (int e = 0; e < 2; e++)
          if (8 * n + e >= left) s[4 * n + 2 * h + e] = -INFINITY;
    }
  }

  // The largest of a row's scores.
  __device__ float row_max(int h) {
    float even = s[2 * h], odd = s[2 * h + 1];
#pragma unroll
    for (int i = 4; i < KEYS / 2; i += 4) {
      even = fmaxf(even, s[i + 2 * h]);
      odd = fmaxf(odd, s[i + 2 * h + 1]);
    }
    return quad_max(fmaxf(even, odd));
  }

  // Weights in the place of scores; adds them up.
  __device__ void weights() {
    float odd[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < KEYS / 2; i += 4)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        s[i + 2 * h] = power_of_two(s[i + 2 * h] * problem.scale + shift[h]);
        s[i + 2 * h + 1] = power_of_two(s[i + 2 * h + 1] * problem.scale + shift[h]);
        sum[h] += s[i + 2 * h];
        odd[h] += s[i + 2 * h + 1];
      }
    sum[0] += odd[0];
    sum[1] += odd[1];
  }

  // Weights of the first block.
  __device__ void first_weights() {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      shift[h] = -row_max(h) * problem.scale;
      sum[h] = 0;
    }
    weights();
  }

  // Looks for larger maxima in the scores of a later block. As in stage 03, the shift stays behind by a factor of up to 2^8
  // in the weights. True if it was raised: then older weights shrink by `factor`.
  __device__ bool raise_max() {
    float lower[2];
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], -row_max(h) * problem.scale);
    if (!__any_sync(0xffffffff, fmaxf(shift[0] - lower[0], shift[1] - lower[1]) > 8)) return false;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      factor[h] = power_of_two(lower[h] - shift[h]);
      shift[h] = lower[h];
      sum[h] *= factor[h];
    }
    return true;
  }

  // The same for the output, when the product that was under way is done.
  __device__ void shrink_output() {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] *= factor[i / 2 % 2];
  }

  __device__ void pack_weights() {
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      for (int j = 0; j < 4; j++) p[n][j] = pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]);
  }

  // ---- a tile, step by step ----

  // Scores of one block and output of the one before, both in the background; weights of the first under the second.
  __device__ void step(int accumulate) {
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(WAIT_TURN, steps);
    take_turn();
    trace(QK, steps);
    scores();
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    output(accumulate);
    pass_turn();
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    bool grew = raise_max();
    weights();
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    trace_done(PV, steps - 1);
    trace(RESCALE, steps);
    release(v, shared.v_empty);
    if (grew) shrink_output();
    pack_weights();
    steps++;
  }

  // The first block, with nothing else under way.
  __device__ void first_block() {
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(WAIT_TURN, steps);
    take_turn();
    trace(QK, steps);
    scores();
    pass_turn();
    trace(WAIT_QK, steps);
    wgmma_wait<0>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    mask();
    first_weights();
    pack_weights();
    steps++;
  }

  // The last output, with nothing else under way.
  __device__ void last_output(int accumulate) {
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(WAIT_TURN, steps);
    take_turn();
    trace(PV, steps - 1);
    output(accumulate);
    pass_turn();
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(o);
    trace_done(PV, steps - 1);
  }

  // Blocks right of this warpgroup's rows, which only other warpgroups need, are let pass.
  __device__ void skip(int count) {
    for (int i = 0; i < count; i++) {
      wait(k, shared.k_full);
      take_turn();
      pass_turn();
      release(k, shared.k_empty);
      wait(v, shared.v_full);
      release(v, shared.v_empty);
    }
  }

  // Writes O / sum for this warp's queries. It passes through the shared memory that held them, so that 16 bytes a lane and
  // whole rows leave. (All products have read the queries: the last turn was a barrier.)
  __device__ void store(int head) {
    int tile_row = warpgroup * WARPGROUP_ROWS + warp * 16, first = row + warp * 16;
    char *tile = (char *)shared.q;
    half *to = problem.o + ((size_t)head * problem.seqlen + first) * HEAD_DIM;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float scale = 1 / quad_sum(sum[h]);
#pragma unroll
      for (int n = 0; n < HEAD_DIM / 8; n++)
        *(uint32_t *)(tile + swizzled(S::ROWS, tile_row + 8 * h + lane / 4, n) + lane % 4 * 4) =
            pack(o[4 * n + 2 * h] * scale, o[4 * n + 2 * h + 1] * scale);
    }
    __syncwarp();
    const int chunks = HEAD_DIM / 8;
    for (int i = lane; i < 16 * chunks; i += WARP)
      if (first + i / chunks < problem.seqlen)
        *(uint4 *)(to + i * 8) = *(uint4 *)(tile + swizzled(S::ROWS, tile_row + i / chunks, i % chunks));
  }

  __device__ void run(const Tile &tile) {
    trace_begin(CONSUMER);
    row = tile.row + warpgroup * WARPGROUP_ROWS;
    int keys = CAUSAL ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen, blocks = (keys + KEYS - 1) / KEYS;
    if (warpgroup == S::WORKERS - 1) pass_turn();
    mbarrier_wait(shared_address(&shared.q_full), 0);
    skip(tile.blocks - blocks);
    key = (blocks - 1) * KEYS;
    first_block();
    int accumulate = 0;
    for (; key > 0; accumulate = 1) {
      key -= KEYS;
      step(accumulate);
    }
    last_output(accumulate);
    trace(STORE, steps);
    store(tile.head);
    if (warpgroup == 0) take_turn();  // which the last warpgroup has passed on
    trace_end();
  }
};

// ---- the kernel ----

template <int HEAD_DIM, bool CAUSAL> __device__ void attention(const Tensors &tensors, const Problem &problem) {
  using S = Shared<HEAD_DIM>;
  extern __shared__ __align__(1024) char memory[];
  S &shared = *(S *)memory;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(&shared.q_full), 1);
    for (int i = 0; i < S::STAGES; i++) {
      mbarrier_init(shared_address(shared.k_full + i), 1);
      mbarrier_init(shared_address(shared.v_full + i), 1);
      mbarrier_init(shared_address(shared.k_empty + i), S::WORKERS * 4);  // one of each warp
      mbarrier_init(shared_address(shared.v_empty + i), S::WORKERS * 4);
    }
    mbarrier_fence_init();
  }
  __syncthreads();
  Tile tile = find_tile<CAUSAL, S::ROWS>(problem);
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the shuffle tells ptxas that it is uniform
  if (warpgroup == 0) {
    registers_decrease<S::LOADER_REGISTERS>();
    if (threadIdx.x == 0) Loader<HEAD_DIM>{shared, tensors}.run(tile);
  } else {
    registers_increase<S::REGISTERS>();
    int thread = threadIdx.x % WARPGROUP;
    Worker<HEAD_DIM, CAUSAL>{shared, problem, warpgroup - 1, thread / WARP, thread % WARP}.run(tile);
  }
}

// Grid: tiles of queries, head after head. Block: a warpgroup that loads, and those that compute.
template <int HEAD_DIM> constexpr int THREADS = (1 + Config<HEAD_DIM>::WORKERS) * WARPGROUP;

extern "C" __global__ void __launch_bounds__(THREADS<64>, 1)
    attention_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<64, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS<64>, 1)
    attention_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<64, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS<128>, 1)
    attention_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<128, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS<128>, 1)
    attention_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<128, true>(tensors, problem);
}
