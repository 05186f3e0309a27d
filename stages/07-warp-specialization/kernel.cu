// Stage 07: warp specialization. One thread of the first warpgroup does nothing but load, as far ahead as there is room;
// the other warpgroups do nothing but compute, with the registers that the first one gave back.
//
// A block does the queries of its computing warpgroups, 64 each, against all keys of their head. For each block of 128
// keys they do
//
//   scores   S = Q K^T                   wgmma, as in stage 05
//   softmax  P = exp(S - max), sum += P  in registers
//   output   O += P V                    wgmma
#include "loader.h"

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
  int row;        // the warpgroup's first query
  int steps = 0;  // for trace

  // Of two rows, l / 4 and l / 4 + 8 of the warp's sixteen, for every 8 columns two neighbours: s[4 n + 2 h + e], row h.
  float s[KEYS / 2];  // scores, then weights
  float o[HEAD_DIM / 2];
  float shift[2];  // a weight is 2^(score * scale + shift)
  float sum[2];    // of the weights in this thread's columns

  // ---- order ----

  // Until the ring's next place is full; and when this warp is done with it.
  template <int PLACES> __device__ void wait(const Ring<PLACES> &ring, const uint64_t *full) {
    mbarrier_wait(shared_address(full + ring.place), ring.parity);
  }
  template <int PLACES> __device__ void release(Ring<PLACES> &ring, const uint64_t *empty) {
    if (lane == 0) mbarrier_arrive(shared_address(empty + ring.place));
    ring.advance();
  }

  // ---- products ----

  // S = Q K^T.
  __device__ void scores() {
    uint64_t a = k_major(shared_address(shared.q) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[k.place]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) wgmma<KEYS>(s, columns_16(a, S::ROWS, d), columns_16(b, KEYS, d), d > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(s);
  }

  // O += P V.
  __device__ void output(const uint32_t (&p)[KEYS / 16][4]) {
    uint64_t b = mn_major(shared_address(shared.v[v.place]), KEYS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(o, p[n], rows_16(b, n), true);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(o);
  }

  // ---- softmax ----

  // Scores that must not count become minus infinity. key: the first of the block.
  __device__ void mask(int key) {
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

  // Looks for larger maxima in the scores; when there are some, everything older shrinks. As in stage 03, the shift stays
  // behind by a factor of up to 2^8 in the weights.
  __device__ void raise_max() {
    float lower[2];
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], -row_max(h) * problem.scale);
    if (!__any_sync(0xffffffff, fmaxf(shift[0] - lower[0], shift[1] - lower[1]) > 8)) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float factor = power_of_two(lower[h] - shift[h]);
      shift[h] = lower[h];
      sum[h] *= factor;
#pragma unroll
      for (int i = 0; i < HEAD_DIM / 2; i += 4)
        for (int e = 0; e < 2; e++) o[i + 2 * h + e] *= factor;
    }
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

  // ---- a tile ----

  // One block of keys; `masked` if not all rows may see all of it.
  __device__ void step(int key, bool masked) {
    uint32_t p[KEYS / 16][4];
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(QK, steps);
    scores();
    release(k, shared.k_empty);
    trace(SOFTMAX, steps);
    if (masked) mask(key);
    raise_max();
    weights();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      for (int j = 0; j < 4; j++) p[n][j] = pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]);
    trace(WAIT_V, steps);
    wait(v, shared.v_full);
    trace(PV, steps);
    output(p);
    release(v, shared.v_empty);
    steps++;
  }

  // Blocks right of this warpgroup's rows, which only other warpgroups need, are let pass.
  __device__ void skip(int count) {
    for (int i = 0; i < count; i++) {
      wait(k, shared.k_full);
      release(k, shared.k_empty);
      wait(v, shared.v_full);
      release(v, shared.v_empty);
    }
  }

  // Writes O / sum for this warp's queries. It passes through the shared memory that held them, so that 16 bytes a lane and
  // whole rows leave.
  __device__ void store(int head) {
    barrier_sync(1 + warpgroup, WARPGROUP);  // the whole warpgroup's products have read the queries
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
#pragma unroll
    for (int h = 0; h < 2; h++) {
      shift[h] = INFINITY;
      sum[h] = 0;
    }
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] = 0;

    int keys = CAUSAL ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen, blocks = (keys + KEYS - 1) / KEYS;
    mbarrier_wait(shared_address(&shared.q_full), 0);
    skip(tile.blocks - blocks);
    for (int block = blocks - 1; block >= 0; block--) step(block * KEYS, block == blocks - 1);
    trace(STORE, steps);
    store(tile.head);
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
