// Stage 08c: the output leaves by TMA. stmatrix puts a warp's accumulators into the swizzled tile with one instruction
// for 16 columns, and one thread hands the tile to the copy engine.
//
// For each tile of keys a consumer does, as in stage 08b,
//
//   S = Q K^T     of this tile            both on the tensor cores, in the background,
//   O += P V      of the previous tile    when it is the consumer's turn;
//   P = exp(S)    of this tile            meanwhile, as soon as S is there
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

#include "../08-pipelining/producer.h"

// ---- a consumer: one warpgroup ----

// threadIdx.x, read by a volatile instruction. This keeps the compiler from computing addresses from it before the main
// loop and holding them in registers all the while.
__device__ int thread_index() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

template <int HEAD_DIM, bool CAUSAL> struct Consumer {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup;
  bool elected;  // one thread of each warp
  Ring<S::QUERY_SLOTS> q;
  Ring<S::SLOTS> k, v;
  int steps = 0;       // for trace: key tiles whose scores have been started
  int head, row, key;  // the tile's head, the warpgroup's first query, the first key of the key tile at hand

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
  __device__ void mask() {
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
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
  // follows it. This function then returns true, and everything older must shrink by `factor`.
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

  // The output shrinks later, when the product that was under way is done.
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
    if (elected) mbarrier_arrive(shared_address(empty + ring.slot));
    ring.advance();
  }

  // The consumers take turns in issuing products. Consumer w waits for its turn at barrier 1 + w.
  __device__ void take_turn() { barrier_sync(1 + warpgroup, 2 * WARPGROUP); }
  __device__ void pass_turn() { barrier_arrive(1 + (warpgroup + 1) % S::CONSUMERS, 2 * WARPGROUP); }

  // The first key tile, with nothing else under way.
  __device__ void first_tile() {
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

  // The scores of one key tile and the output of the previous one, both in the background, in one turn.
  __device__ void begin_step(int accumulate) {
    key -= KEYS;
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

  // Skips key tiles to the right of this warpgroup's rows, which belong to other ones: it waits for each and releases
  // it unused.
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

  // O / sum, to the slot of the warp's own queries, and from there to global memory. (All of the warpgroup's products
  // have read the queries: the last turn was a barrier.)
  __device__ void store() {
    float scale[2] = {1 / quad_sum(sum[0]), 1 / quad_sum(sum[1])};
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
    uint32_t tile = shared_address(shared.q[q.slot]) + (warpgroup * WARPGROUP_ROWS + warp * STORE_ROWS) * ROW_BYTES;
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      const float *x = o + 8 * d;
      stmatrix(tile + swizzled(S::ROWS, lane % 16, 2 * d + lane / 16), pack(x[0] * scale[0], x[1] * scale[0]),
               pack(x[2] * scale[1], x[3] * scale[1]), pack(x[4] * scale[0], x[5] * scale[0]),
               pack(x[6] * scale[1], x[7] * scale[1]));
    }
    fence_async_proxy();
    __syncwarp();
    if (elected) {
#pragma unroll
      for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
        tma_store(&tensors.o, tile + panel * S::ROWS * ROW_BYTES, panel * PANEL, row + warp * STORE_ROWS, head);
      tma_store_commit();
      tma_store_wait_read<0>();  // the block's shared memory must stay until it has been read
    }
  }

  __device__ void run(const Tile &tile) {
    trace_begin(CONSUMER);
    head = tile.head;
    row = tile.row + warpgroup * WARPGROUP_ROWS;
    int keys = CAUSAL ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen, tiles = (keys + KEYS - 1) / KEYS;
    if (warpgroup == S::CONSUMERS - 1) pass_turn();  // the first turn is consumer 0's
    wait(q, shared.q_full);
    skip(tile.key_tiles - tiles);
    key = (tiles - 1) * KEYS;
    first_tile();
    int accumulate = key > 0;
    other_tiles();
    last_output(accumulate);
    trace(STORE, steps);
    store();
    if (warpgroup == 0) take_turn();  // the turn that the last consumer has passed on
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

  // The weights of this key tile, while the output of the previous one still runs.
  __device__ void end_step() {
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

  // All key tiles after the first.
  __device__ void other_tiles() {
    for (int accumulate = 0; key > 0; accumulate = 1) {
      begin_step(accumulate);
      end_step();
    }
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
    Consumer<HEAD_DIM, CAUSAL>{shared, tensors, problem, warpgroup - 1, threadIdx.x % WARP == 0}.run(tile);
  }
}

// The entry points. Each mask has its own kernel, without the registers and instructions that only the other needs.
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
