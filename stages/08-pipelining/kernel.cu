// Stage 08: pipelining. In one step a consumer issues two products: the scores of tile i and the output of tile i - 1.
// Then it computes the softmax of tile i while the tensor cores are busy with that output.
//
// In step i a consumer does
//
//   S = Q K^T     of tile i         both on the tensor cores, in the background;
//   O += P V      of tile i - 1
//   P = exp(S)    of tile i         meanwhile, as soon as S is there
#include <cuda_fp16.h>
#include <stdint.h>

#include "../07c-last-tile-first/tiles.h"

#include "ptx/barrier.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
#include "ptx/ring.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

#include "producer.h"

// ---- a consumer: one warpgroup ----

template <int HEAD_DIM, bool CAUSAL> struct Consumer {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Problem &problem;
  int warpgroup, warp, lane;
  int row;  // the warpgroup's first query
  Ring<S::QUERY_SLOTS> q;
  Ring<S::SLOTS> k, v;
  int steps = 0;  // for trace: key tiles whose scores have been started

  // Lane l has parts of rows l / 4 (h = 0) and l / 4 + 8 (h = 1): s[4 n + 2 h + e] is in column 8 n + 2 (l % 4) + e.
  float s[KEYS / 2];         // scores, then weights
  uint32_t p[KEYS / 16][4];  // weights in fp16, the A of the next product
  float o[HEAD_DIM / 2];
  float shift[2];   // a weight is 2^(score * scale + shift)
  float sum[2];     // of the weights in this thread's columns
  float factor[2];  // by which older weights shrink

  // Starts S = Q K^T. The fence is for s, which ordinary instructions have used since the last product.
  __device__ void scores() {
    uint64_t a = k_major(shared_address(shared.q[q.slot]) + warpgroup * WARPGROUP_ROWS * ROW_BYTES);
    uint64_t b = k_major(shared_address(shared.k[k.slot]));
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) wgmma<KEYS>(s, columns_16(a, S::ROWS, d), columns_16(b, KEYS, d), d > 0);
    wgmma_commit();
  }

  // Sets scores to minus infinity: those of keys after the last one and, with a causal mask, those of keys after the
  // query. `key` is the tile's first key.
  __device__ void mask(int key) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * warp + 8 * h + lane / 4, keys = CAUSAL ? min(i + 1, problem.seqlen) : problem.seqlen;
      int left = keys - (key + lane % 4 * 2);  // keys that the row may see, from this lane's first column on
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

  // Lazy rescaling, as in stage 02c: when a maximum has grown so much that a weight would exceed 2^8, the shift
  // follows it. This function then returns true, and everything older must shrink by `factor`: the sum shrinks here,
  // the output later, in shrink_output.
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

  // To be called after the wait for the output, because until then the tensor cores write o.
  __device__ void shrink_output() {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++) o[i] *= factor[i / 2 % 2];
  }

  // Packs the weights as fp16. p[n] is the A of a product with keys 16 n to 16 n + 15. This thread's part of that A is
  // made of the weights that it holds in s, so P never leaves the thread.
  __device__ void pack_weights() {
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      for (int j = 0; j < 4; j++) p[n][j] = pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]);
  }

  // Starts O += P V, or O = P V for the first tile.
  __device__ void output(int accumulate) {
    uint64_t b = mn_major(shared_address(shared.v[v.slot]), KEYS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++) wgmma<HEAD_DIM, true>(o, p[n], rows_16(b, n), n > 0 ? 1 : accumulate);
    wgmma_commit();
  }

  // wait: until a ring's next slot is full. release: this warp needs the slot no more, and the ring goes on.
  template <int SLOTS> __device__ void wait(const Ring<SLOTS> &ring, const uint64_t *full) {
    mbarrier_wait(shared_address(full + ring.slot), ring.parity);
  }
  template <int SLOTS> __device__ void release(Ring<SLOTS> &ring, const uint64_t *empty) {
    if (lane == 0) mbarrier_arrive(shared_address(empty + ring.slot));
    ring.advance();
  }

  // The first key tile, with nothing else under way.
  __device__ void first_tile(int key) {
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(QK, steps);
    scores();
    trace(WAIT_QK, steps);
    wgmma_wait<0>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    mask(key);
    first_weights();
    pack_weights();
    steps++;
  }

  // The last output, with nothing else under way.
  __device__ void last_output(int accumulate) {
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    output(accumulate);
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(o);
    trace_done(PV, steps - 1);
  }

  // Skips key tiles to the right of this warpgroup's rows, which belong to other ones: it waits for each and releases
  // it unused.
  __device__ void skip(int count) {
    for (int i = 0; i < count; i++) {
      wait(k, shared.k_full);
      release(k, shared.k_empty);
      wait(v, shared.v_full);
      release(v, shared.v_empty);
    }
  }

  // Writes O / sum for this warp's queries. They go through the shared memory that held the queries: then each lane
  // stores 16 bytes, and the warp stores whole rows.
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
    int keys = CAUSAL ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen, tiles = (keys + KEYS - 1) / KEYS;
    wait(q, shared.q_full);
    skip(tile.key_tiles - tiles);
    first_tile((tiles - 1) * KEYS);
    for (int t = tiles - 2; t >= 0; t--) step(t < tiles - 2);
    last_output(tiles > 1);
    trace(STORE, steps);
    store(tile.head);
    trace_end();
  }

  // ---- softmax ----

  // Replaces the scores by weights, and adds the weights up.
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

  // Weights of the first tile.
  __device__ void first_weights() {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      shift[h] = -row_max(h) * problem.scale;
      sum[h] = 0;
    }
    weights();
  }

  // Starts the scores of one tile and the output of the tile before it. Computes the weights of the one tile while the
  // output of the other runs.
  __device__ void step(int accumulate) {
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(QK, steps);
    scores();
    trace(WAIT_V, steps - 1);
    wait(v, shared.v_full);
    trace(PV, steps - 1);
    output(accumulate);
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
};

// ---- the kernel ----

// Grid: tiles of queries, head after head. Block: the producer's warpgroup, then the consumers.
template <int HEAD_DIM, bool CAUSAL> __device__ void attention(const Tensors &tensors, const Problem &problem) {
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  Shared<HEAD_DIM> &shared = *(Shared<HEAD_DIM> *)memory;
  if (threadIdx.x == 0) shared.init();
  __syncthreads();  // the mbarriers are there
  Tile tile = find_tile<HEAD_DIM, CAUSAL>(problem, blockIdx.x);
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // tells ptxas that all lanes have the same
  if (warpgroup == 0) {
    registers_decrease<PRODUCER_REGISTERS_OF(HEAD_DIM)>();
    if (threadIdx.x == 0) Producer<HEAD_DIM>{shared, tensors}.run(tile);
  } else {
    registers_increase<CONSUMER_REGISTERS_OF(HEAD_DIM)>();
    int consumer = warpgroup - 1, thread = threadIdx.x % WARPGROUP, row = tile.row + consumer * WARPGROUP_ROWS;
    Consumer<HEAD_DIM, CAUSAL>{shared, problem, consumer, thread / WARP, thread % WARP, row}.run(tile);
  }
}

// The entry points. Each mask has a kernel of its own, so that neither has registers and instructions for the other.
extern "C" __global__ void __launch_bounds__(THREADS_OF(64), 1)
    attention_64(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<64, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS_OF(64), 1)
    attention_64_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<64, true>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS_OF(128), 1)
    attention_128(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<128, false>(tensors, problem);
}

extern "C" __global__ void __launch_bounds__(THREADS_OF(128), 1)
    attention_128_causal(const __grid_constant__ Tensors tensors, const Problem problem) {
  attention<128, true>(tensors, problem);
}
