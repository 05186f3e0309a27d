// Stage 10: the softmax does not look for the maximum any more. A tile's first block of keys shows what its rows' scores
// are like; later ones are exponentiated against that old maximum at once, and a look at their sum tells whether it served.
// Where the first block shows scores far apart, it would not serve for long: such a tile is done as in stage 09.
//
// The rest is stage 09, too. One thread of the first warpgroup loads. The others, for each block of 128 keys, do
//
//   S = Q K^T     of the next block       both on the tensor cores, in the background,
//   O += P V      of the last block       the warpgroups one after another;
//   P = exp(S)    of the next block       meanwhile, as soon as S is there
#include "../09-persistent/loader.h"
#include "scores_again.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
#include "ptx/stmatrix.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

// ---- a warpgroup that computes ----

// Votes on a tile, by the place of its queries: how many threads of each warp found its scores far apart.
__shared__ int votes[Config<64>::TILES][Config<64>::WORKERS][WARPGROUP / WARP];  // HEAD_DIM = 128 has fewer

template <int HEAD_DIM, bool CAUSAL> struct Worker {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup;
  bool elected;  // one thread of each warp
  Ring<S::TILES> q;
  Ring<S::STAGES> k, v;
  int leaving = -1;    // the place of queries from which an output is on its way out
  int skipped;         // blocks of the tile that lie right of this warpgroup's rows
  int steps = 0;       // for trace: blocks whose scores have been started
  int head, row, key;  // the tile's head, the warpgroup's first query, the first key of the block at hand

  // Of two rows, l / 4 and l / 4 + 8 of the warp's sixteen, for every 8 columns two neighbours: s[4 n + 2 h + e], row h.
  float s[KEYS / 2];         // scores, then weights
  uint32_t p[KEYS / 16][4];  // weights in fp16, the A of the next product
  float o[HEAD_DIM / 2];
  float shift[2];            // a weight is 2^(score * scale + shift)
  float sum[2], new_sum[2];  // of the weights in this thread's columns: up to the last block, of the block at hand
  float factor[2];           // by which older weights shrink

  // ---- order ----

  template <int PLACES> __device__ void wait(const Ring<PLACES> &ring, const uint64_t *full) {
    mbarrier_wait(shared_address(full + ring.place), ring.parity);
  }
  template <int PLACES> __device__ void give_back(const Ring<PLACES> &ring, const uint64_t *empty) {
    if (elected) mbarrier_arrive(shared_address(empty + ring.place));
  }
  template <int PLACES> __device__ void release(Ring<PLACES> &ring, const uint64_t *empty) {
    give_back(ring, empty);
    ring.advance();
  }
  // The warpgroups take turns in issuing products, so that one has its softmax while another has the tensor cores.
  __device__ void take_turn() { barrier_sync(1 + warpgroup, 2 * WARPGROUP); }
  __device__ void pass_turn() { barrier_arrive(1 + (warpgroup + 1) % S::WORKERS, 2 * WARPGROUP); }

  // ---- products ----

  // Starts S = Q K^T, for the first N keys of the block.
  template <int N> __device__ void scores() {
    uint64_t a = k_major(shared_address(shared.q[q.place]) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[k.place]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++)
      wgmma<N>(*(float(*)[N / 2]) s, columns_16(a, S::ROWS, d), columns_16(b, KEYS, d), d > 0);
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

  // In a tile's first block, scores that must not count become minus infinity.
  template <int N> __device__ void mask() {
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * warp + 8 * h + lane / 4, keys = CAUSAL ? min(i + 1, problem.seqlen) : problem.seqlen;
      int left = keys - (key + lane % 4 * 2);  // what this row may see from this thread's first column on
#pragma unroll
      for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 2; e++)
          if (8 * n + e >= left) s[4 * n + 2 * h + e] = -INFINITY;
    }
  }

  // The largest of a row's scores.
  template <int N> __device__ float row_max(int h) {
    float even = s[2 * h], odd = s[2 * h + 1];
#pragma unroll
    for (int i = 4; i < N / 2; i += 4) {
      even = fmaxf(even, s[i + 2 * h]);
      odd = fmaxf(odd, s[i + 2 * h + 1]);
    }
    return quad_max(fmaxf(even, odd));
  }

  // Weights in the place of the scores of keys FROM to TO, and their sum.
  template <int FROM, int TO> __device__ void weights() {
    float odd[2] = {0, 0};
    if (FROM == 0) new_sum[0] = new_sum[1] = 0;
#pragma unroll
    for (int i = FROM / 2; i < TO / 2; i += 4)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        s[i + 2 * h] = power_of_two(s[i + 2 * h] * problem.scale + shift[h]);
        s[i + 2 * h + 1] = power_of_two(s[i + 2 * h + 1] * problem.scale + shift[h]);
        new_sum[h] += s[i + 2 * h];
        odd[h] += s[i + 2 * h + 1];
      }
    new_sum[0] += odd[0];
    new_sum[1] += odd[1];
  }

  // Weights of a tile's first block, against its true maximum.
  template <int N> __device__ void first_weights() {
#pragma unroll
    for (int h = 0; h < 2; h++) shift[h] = -row_max<N>(h) * problem.scale;
    weights<0, N>();
#pragma unroll
    for (int h = 0; h < 2; h++) sum[h] = new_sum[h];
  }

  // In the first block the largest weight is 1. Where scores are far apart all others are next to nothing.
  __device__ void vote() {
    int peaked = __popc(__ballot_sync(0xffffffff, fmaxf(sum[0], sum[1]) < 1 + 1.f / 32));
    if (elected) votes[q.place][warpgroup][thread_index() % WARPGROUP / WARP] = peaked;
  }

  // Whether nearly all threads of the warpgroup voted so, before it took the turn it has. A warpgroup without rows follows
  // the first: all in one loop are faster than in two. (With CUDA 12 there is but one: registers do not suffice for both.)
  __device__ bool peaked() {
    const int(&of)[4] = votes[q.place][row < problem.seqlen ? warpgroup : 0];
    return __CUDACC_VER_MAJOR__ >= 13 && __shfl_sync(0xffffffff, of[0] + of[1] + of[2] + of[3] > WARPGROUP * 7 / 8, 0);
  }

  // As in stage 09. True if there is a new maximum: then older weights shrink by `factor`.
  __device__ bool raise_max() {
    float lower[2];
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], -row_max<KEYS>(h) * problem.scale);
    if (!__any_sync(0xffffffff, fmaxf(shift[0] - lower[0], shift[1] - lower[1]) > 8)) return false;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      factor[h] = power_of_two(lower[h] - shift[h]);
      shift[h] = lower[h];
      sum[h] *= factor[h];
    }
    return true;
  }

  // Are they small enough for fp16, which ends at 65504? No weight is larger than its thread's sum.
  __device__ bool weights_fit() { return !__any_sync(0xffffffff, fmaxf(new_sum[0], new_sum[1]) > 32768); }

  // Some scores are far above the old maximum. As weights they are still there, for fp32 ends at 2^128: a power of two
  // brings a row's sum down to 1 or a little more, and with it all that is older. Not further: fp16 has all its digits
  // only from 2^-14 on, and weights that are much alike are each a small part of their sum.
  __device__ void shrink() {
    float row_sum[2] = {quad_sum(new_sum[0]), quad_sum(new_sum[1])};
    if (__any_sync(0xffffffff, fmaxf(row_sum[0], row_sum[1]) == INFINITY)) return start_again();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int exponent = (__float_as_int(row_sum[h]) >> 23) - 127;
      exponent = exponent < 14 ? 0 : min(exponent, 126);  // 2^-127 is no normal number
      factor[h] = __int_as_float((127 - exponent) << 23);
      shift[h] -= exponent;
      sum[h] *= factor[h];
      new_sum[h] *= factor[h];
#pragma unroll
      for (int i = 0; i < KEYS / 2; i += 4)
        for (int e = 0; e < 2; e++) s[i + 2 * h + e] *= factor[h];
    }
    shrink_output();
  }

  __device__ void shrink_output() {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] *= factor[i / 2 % 2];
  }

  // Some weights are infinite, and the scores are gone. The warp computes them anew, and takes the true maximum.
  __device__ void start_again() {
    int thread = thread_index() - WARPGROUP;
    scores_again<HEAD_DIM, S::ROWS>(s, shared_address(shared.q[q.place]), thread / WARP * 16,
                                    shared_address(shared.k[k.place]), thread % WARP);
    if (raise_max()) shrink_output();
    weights<0, KEYS>();
  }

  // The weights of N keys as fp16; those of the block's others are 0.
  template <int N> __device__ void pack_weights() {
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      for (int j = 0; j < 4; j++) {
        p[n][j] = n < N / 16 ? pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]) : 0;
        if (N < KEYS) asm volatile("" : "+r"(p[n][j]));  // a register, even for a constant: wgmma takes nothing else
      }
  }

  // ---- a tile, step by step ----

  // Scores of one block and output of the one before, both in the background.
  __device__ void begin_step(int accumulate) {
    key -= KEYS;
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(WAIT_TURN, steps);
    take_turn();
    trace(QK, steps);
    scores<KEYS>();
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    output(accumulate);
    pass_turn();
  }

  // Weights of the one block under the output of the other: the first of them until that is there, the rest and its
  // packing behind the wait. The look comes last, and K's place is given back when it has told that K is needed no more.
  template <bool CAREFUL> __device__ void end_step() {
    constexpr int UNDER_PV = CAREFUL ? 8 : HEAD_DIM / 2;  // keys; the search for the maximum takes as long, too
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    if (CAREFUL) give_back(k, shared.k_empty);
    bool grew = CAREFUL && raise_max();
    weights<0, UNDER_PV>();
    computed_here(new_sum[0] + new_sum[1]);
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    trace_done(PV, steps - 1);
    trace(SOFTMAX_REST, steps);
    release(v, shared.v_empty);
    weights<UNDER_PV, KEYS>();
    if (grew) shrink_output();
    pack_weights<KEYS>();
    if (!CAREFUL && !weights_fit()) {
      shrink();
      pack_weights<KEYS>();
    }
    if (!CAREFUL) give_back(k, shared.k_empty);
    k.advance();
#pragma unroll
    for (int h = 0; h < 2; h++) sum[h] += new_sum[h];
    release_queries();
    steps++;
  }

  // All blocks of a tile after the first.
  template <bool CAREFUL> __device__ void other_blocks() {
    while (true) {
      end_step<CAREFUL>();
      if (key == 0) return;
      begin_step(1);
    }
  }

  // The first block of the first tile, with nothing else under way.
  template <int N> __device__ void first_block() {
    wait(k, shared.k_full);
    trace(WAIT_TURN, steps);
    take_turn();
    trace(QK, steps);
    scores<N>();
    pass_turn();
    trace(WAIT_QK, steps);
    wgmma_wait<0>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    mask<N>();
    first_weights<N>();
    vote();
    pack_weights<N>();
    steps++;
  }

  // The last output of a tile under the first scores of the next. What the worker has about the tile is the next's already,
  // and the arguments are the old one's. (In traces the turn counts as "load wait": a mark for it costs registers, and
  // ptxas serialises the products.)
  template <int N> __device__ void next_tile(int accumulate, int old_place, int old_head, int old_row) {
    wait(k, shared.k_full);
    take_turn();
    trace(QK, steps);
    scores<N>();
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    output(accumulate);
    pass_turn();
    float old_sum[2] = {sum[0], sum[1]};
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    if (CAUSAL || key + KEYS > problem.seqlen) mask<N>();
    first_weights<N>();
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    trace_done(PV, steps - 1);
    trace(STORE, steps - 1);
    release(v, shared.v_empty);
    store(old_sum, old_place, old_head, old_row);
    trace(RESCALE, steps);
    vote();
    pack_weights<N>();
    skip_values();
    steps++;
  }

  // The last output of the last tile, with nothing else under way.
  __device__ void last_output(int accumulate, int old_place, int old_head, int old_row) {
    trace(WAIT_TURN, steps);
    take_turn();
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    output(accumulate);
    pass_turn();
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(o);
    trace_done(PV, steps - 1);
    trace(STORE, steps - 1);
    store(sum, old_place, old_head, old_row);
    if (elected) tma_store_wait<0>();
    if (warpgroup == 0) take_turn();  // which the last warpgroup has passed on
  }

  // O / sum, to the place of the warp's own queries, and from there to global memory.
  __device__ void store(const float (&o_sum)[2], int place, int head, int row) {
    float scale[2] = {1 / quad_sum(o_sum[0]), 1 / quad_sum(o_sum[1])};
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
    uint32_t tile = shared_address(shared.q[place]) + (warpgroup * WARPGROUP_ROWS + warp * 16) * ROW_BYTES;
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      const float *x = o + 8 * d;
      stmatrix(tile + swizzled(S::ROWS, lane % 16, 2 * d + lane / 16), pack(x[0] * scale[0], x[1] * scale[0]),
               pack(x[2] * scale[1], x[3] * scale[1]), pack(x[4] * scale[0], x[5] * scale[0]),
               pack(x[6] * scale[1], x[7] * scale[1]));
    }
    fence_async_proxy();
    __syncwarp();
    if (row >= 0 && elected) {
#pragma unroll
      for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
        tma_store(&tensors.o, tile + panel * S::ROWS * ROW_BYTES, panel * PANEL, row + warp * 16, head);
      tma_store_commit();
    }
    leaving = place;
  }

  // When the output has left, its place can take queries again.
  __device__ void release_queries() {
    if (leaving < 0) return;
    if (elected) {
      tma_store_wait_read<0>();
      mbarrier_arrive(shared_address(shared.q_empty + leaving));
    }
    leaving = -1;
  }

  // ---- all tiles ----

  // Waits for the next tile's queries; false when there are no more tiles. Keys that only other warpgroups need are let
  // pass; and skip_values does the same for values, when it is their turn.
  __device__ bool find_next() {
    trace(WAIT_K, steps);
    wait(q, shared.q_full);
    int t = shared.tile[q.place];
    if (t < 0) return false;
    Tile tile = find_tile<CAUSAL, S::ROWS>(problem, t);
    head = tile.head;
    row = tile.row + warpgroup * WARPGROUP_ROWS;
    int keys = CAUSAL ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen;
    int blocks = max((keys + KEYS - 1) / KEYS, 1);  // one also for rows that are none
    key = (blocks - 1) * KEYS;
    skipped = tile.blocks - blocks;
    if constexpr (CAUSAL && S::ROWS % KEYS) {
      for (int i = 0; i < skipped; i++) {
        wait(k, shared.k_full);
        take_turn();
        pass_turn();
        release(k, shared.k_empty);
      }
    }
    return true;
  }
  __device__ void skip_values() {
    if constexpr (CAUSAL && S::ROWS % KEYS) {
      for (int i = 0; i < skipped; i++) {
        wait(v, shared.v_full);
        release(v, shared.v_empty);
      }
    }
  }

  // Does the diagonal leave only half of the tile's first block to this warpgroup? With CUDA 12 it gets all of it: those
  // compilers find no registers for a kernel that has both (C7511).
  __device__ bool half_block() { return __CUDACC_VER_MAJOR__ >= 13 && CAUSAL && row % KEYS == 0; }

  __device__ void run() {
    trace_begin(CONSUMER);
    if (warpgroup == S::WORKERS - 1) pass_turn();
    find_next();
    skip_values();
    if (half_block())
      first_block<KEYS / 2>();
    else
      first_block<KEYS>();
    while (true) {
      int accumulate = key > 0;
      if (key > 0) {
        begin_step(0);
        if (peaked())
          other_blocks<true>();
        else
          other_blocks<false>();
      }
      release_queries();
      int old_place = q.place, old_head = head, old_row = row;
      q.advance();
      if (!find_next()) {
        last_output(accumulate, old_place, old_head, old_row);
        trace_end();
        return;
      }
      if (half_block())
        next_tile<KEYS / 2>(accumulate, old_place, old_head, old_row);
      else
        next_tile<KEYS>(accumulate, old_place, old_head, old_row);
    }
  }
};

// ---- the kernel ----

template <int HEAD_DIM, bool CAUSAL> __device__ void attention(const Tensors &tensors, const Problem &problem) {
  using S = Shared<HEAD_DIM>;
  extern __shared__ __align__(1024) char memory[];
  S &shared = *(S *)memory;
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the shuffle tells ptxas that it is uniform
  if (warpgroup == 0) {
    registers_decrease<S::LOADER_REGISTERS>();
    if (threadIdx.x == 0) Loader<HEAD_DIM, CAUSAL>{shared, tensors, problem}.run();
  } else {
    registers_increase<S::REGISTERS>();
    Worker<HEAD_DIM, CAUSAL>{shared, tensors, problem, warpgroup - 1, threadIdx.x % WARP == 0}.run();
  }
}

// Grid: as many blocks as SMs, or as tiles if those are fewer. Block: a warpgroup that loads, and those that compute.
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
