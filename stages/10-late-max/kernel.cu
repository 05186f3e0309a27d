// Stage 10: the softmax no longer looks for the maximum. The first block of keys says what a row's scores are like; later
// ones are exponentiated against that old maximum at once, and a look at their sum tells whether it still served.
//
// A block stays on its SM and works through tiles: the queries of its warpgroups, 64 each, against all keys of their head.
// One thread of the first warpgroup loads, the other warpgroups compute. For each 128 keys they do
//
//   S = Q K^T        of the next keys          both on the tensor cores, in the background;
//   O += P V         of the last keys
//   P = exp(S)       meanwhile, as soon as S is there
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/ldmatrix.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/mma.h"
#include "ptx/registers.h"
#include "ptx/stmatrix.h"
#include "ptx/tma.h"
#include "ptx/wgmma.h"

enum { WARP = 32, WARPGROUP = 128, WARPGROUP_ROWS = 64, KEYS = 128, PANEL = 64, ROW_BYTES = 2 * PANEL };

// What differs between head dimensions. Registers: of a thread that computes, of one in the loading warpgroup.
template <int HEAD_DIM> struct Config;
template <> struct Config<64> {
  enum { WARPGROUPS = 3, TILES = 3, STAGES = 4, REGISTERS = 160, LOADER_REGISTERS = 32 };
};
template <> struct Config<128> {
  enum { WARPGROUPS = 2, TILES = 3, STAGES = 2, REGISTERS = 240, LOADER_REGISTERS = 24 };
};

// ---- what a block has in shared memory ----

// Rings: of a few tiles of queries, in whose places the output leaves; of blocks of keys; of blocks of values. An entry is
// full when TMA has filled it, and empty when all warps are done with it.
template <int HEAD_DIM> struct Shared : Config<HEAD_DIM> {
  using C = Config<HEAD_DIM>;
  enum { ROWS = C::WARPGROUPS * WARPGROUP_ROWS };
  half q[C::TILES][ROWS * HEAD_DIM];
  half k[C::STAGES][KEYS * HEAD_DIM];
  half v[C::STAGES][KEYS * HEAD_DIM];
  uint64_t q_full[C::TILES], q_empty[C::TILES];
  uint64_t k_full[C::STAGES], k_empty[C::STAGES];
  uint64_t v_full[C::STAGES], v_empty[C::STAGES];
  int tile[C::TILES];  // number of the tile whose queries are there; -1: there are no more
};

__device__ uint32_t address(const void *shared) { return (uint32_t)__cvta_generic_to_shared(shared); }

// Where in a tile of `rows` rows 16 bytes lie, chunk after chunk along the head dimension: panels of 64 columns, one behind
// the other, each with TMA's and wgmma's 128-byte swizzle.
__device__ int swizzled(int rows, int row, int chunk) {
  return (chunk / 8 * rows + row) * ROW_BYTES + (chunk % 8 ^ row % 8) * 16;
}

// threadIdx.x, read anew. What is computed from it the compiler cannot compute early, to keep in registers meanwhile.
__device__ int thread_index() {
  int index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

// Where in a ring someone is. The parity is that of the entry's next full; its last empty has the other one.
template <int ENTRIES> struct Ring {
  int entry = 0;
  uint32_t parity = 0;
  __device__ void advance() {
    if (++entry == ENTRIES) {
      entry = 0;
      parity ^= 1;
    }
  }
};

// ---- what is to be done ----

// How TMA finds them in global memory: boxes of 64 columns, swizzled; rows of one head, as many as are used together.
struct Tensors {
  CUtensorMap q, k, v, o;
};

struct Problem {
  int seqlen, heads;  // heads of all batches
  int head_tiles;     // tiles of a head
  int group;          // causal: heads that are worked on together, so that their K and V stay in the L2 cache
  float scale;        // log2(e) / sqrt(HEAD_DIM): exp(x) is computed as 2^(x log2 e)
};

// Causal: tiles given out beyond each block's first, and blocks that have left. Both are 0 between launches.
__device__ unsigned tiles_given, blocks_left;

struct Tile {
  int head, row, blocks;  // the tile's first query; blocks of keys that any of its rows may see
};

// Tile number t. Without a mask, tiles of a head follow each other. With one they have different lengths: in a group of
// heads the longest go first, so that the blocks finish together.
template <bool CAUSAL, int ROWS> __device__ Tile find_tile(const Problem &problem, int t) {
  Tile tile;
  if (CAUSAL) {
    int first = t / (problem.group * problem.head_tiles) * problem.group;
    int group = min(problem.group, problem.heads - first), i = t - first * problem.head_tiles;
    tile.head = first + i % group;
    tile.row = (problem.head_tiles - 1 - i / group) * ROWS;
  } else {
    tile.head = t / problem.head_tiles;
    tile.row = t % problem.head_tiles * ROWS;
  }
  int keys = CAUSAL ? min(tile.row + ROWS, problem.seqlen) : problem.seqlen;
  tile.blocks = (keys + KEYS - 1) / KEYS;
  return tile;
}

// ---- the thread that loads ----

template <int HEAD_DIM, bool CAUSAL> struct Loader {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  Ring<S::TILES> q;
  Ring<S::STAGES> k, v;

  // Loads a box of `rows` rows, in panels of 64 columns, when the entry is empty.
  template <int ENTRIES>
  __device__ void load(Ring<ENTRIES> &ring, half *to, int rows, uint64_t *full, uint64_t *empty, const CUtensorMap *map,
                       int row, int head) {
    uint32_t barrier = address(full + ring.entry), tile = address(to) + ring.entry * rows * HEAD_DIM * 2;
    mbarrier_wait(address(empty + ring.entry), ring.parity ^ 1);
    mbarrier_arrive_expect(barrier, rows * HEAD_DIM * 2);
#pragma unroll
    for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
      tma_load(tile + panel * rows * ROW_BYTES, map, barrier, panel * PANEL, row, head);
    ring.advance();
  }

  // Without a mask the tiles are dealt out like cards; with one a block takes the next when it has time.
  __device__ int next_tile(int tile) { return CAUSAL ? atomicAdd(&tiles_given, 1) + gridDim.x : tile + gridDim.x; }

  __device__ void run() {
    int tiles = problem.heads * problem.head_tiles, t = blockIdx.x, last_head = 0, last_block = -1;
    while (t < tiles) {
      Tile tile = find_tile<CAUSAL, S::ROWS>(problem, t);
      mbarrier_wait(address(shared.q_empty + q.entry), q.parity ^ 1);
      shared.tile[q.entry] = t;
      load(q, shared.q[0], S::ROWS, shared.q_full, shared.q_empty, &tensors.q, tile.row, tile.head);
      t = next_tile(t);
      for (int block = tile.blocks - 1; block >= 0; block--) {  // V one block behind, as it is used
        load(k, shared.k[0], KEYS, shared.k_full, shared.k_empty, &tensors.k, block * KEYS, tile.head);
        if (last_block >= 0)
          load(v, shared.v[0], KEYS, shared.v_full, shared.v_empty, &tensors.v, last_block * KEYS, last_head);
        last_head = tile.head;
        last_block = block;
      }
    }
    mbarrier_wait(address(shared.q_empty + q.entry), q.parity ^ 1);
    shared.tile[q.entry] = -1;
    mbarrier_arrive(address(shared.q_full + q.entry));
    if (last_block >= 0)
      load(v, shared.v[0], KEYS, shared.v_full, shared.v_empty, &tensors.v, last_block * KEYS, last_head);
    if (CAUSAL && atomicInc(&blocks_left, gridDim.x - 1) == gridDim.x - 1) atomicExch(&tiles_given, 0);  // the last
  }
};

// ---- a warpgroup that computes ----

template <int HEAD_DIM, bool CAUSAL> struct Worker {
  using S = Shared<HEAD_DIM>;
  S &shared;
  const Tensors &tensors;
  const Problem &problem;
  int warpgroup;
  bool elected;  // one thread of each warp
  Ring<S::TILES> q;
  Ring<S::STAGES> k, v;
  int skipped = 0;   // blocks of the tile that lie right of this warpgroup's rows
  int leaving = -1;  // the entry of q whose place holds an output on its way out

  // Of two rows, l / 4 and l / 4 + 8 of the warp's sixteen, for every 8 columns two neighbours: s[4 n + 2 h + e], row h.
  float s[KEYS / 2];         // scores, then weights
  uint32_t p[KEYS / 16][4];  // weights in fp16, the A of the next product
  float o[HEAD_DIM / 2];
  float shift[2], sum[2];  // a weight is 2^(score * scale + shift); sum: of this thread's columns only, until the end
  float new_sum[2];        // of the block whose weights are in s
  int head, row, key;      // of that block: its head, the warpgroup's first query, its first key

  // ---- order ----

  template <int ENTRIES> __device__ void wait(const Ring<ENTRIES> &ring, const uint64_t *full) {
    mbarrier_wait(address(full + ring.entry), ring.parity);
  }
  template <int ENTRIES> __device__ void release(Ring<ENTRIES> &ring, const uint64_t *empty) {
    if (elected) mbarrier_arrive(address(empty + ring.entry));
    ring.advance();
  }
  // The warpgroups take turns in issuing products, so that one has its softmax while another has the tensor cores.
  __device__ void take_turn() { barrier_sync(1 + warpgroup, 2 * WARPGROUP); }
  __device__ void pass_turn() { barrier_arrive(1 + (warpgroup + 1) % S::WARPGROUPS, 2 * WARPGROUP); }

  // ---- products ----

  // Starts S = Q K^T, for the block's first N keys.
  template <int N> __device__ void scores(int q_entry) {
    uint64_t a = matrix_descriptor(address(shared.q[q_entry]) + warpgroup * WARPGROUP_ROWS * ROW_BYTES, 16,
                                   8 * ROW_BYTES, SWIZZLE_128B);
    uint64_t b = matrix_descriptor(address(shared.k[k.entry]), 16, 8 * ROW_BYTES, SWIZZLE_128B);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++)
      wgmma<N>(*(float(*)[N / 2]) s, a + (d / 4 * S::ROWS * ROW_BYTES + d % 4 * 32 >> 4),
               b + (d / 4 * KEYS * ROW_BYTES + d % 4 * 32 >> 4), d > 0);
    wgmma_commit();
  }

  // Starts O += P V, or O = P V for a tile's first block.
  __device__ void output(int accumulate) {
    uint64_t b = matrix_descriptor(address(shared.v[v.entry]), KEYS * ROW_BYTES, 8 * ROW_BYTES, SWIZZLE_128B);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      wgmma<HEAD_DIM, true>(o, p[n], b + (n * 16 * ROW_BYTES >> 4), n > 0 ? 1 : accumulate);
    wgmma_commit();
  }

  // ---- softmax ----

  // Scores of a tile's first block that must not count become minus infinity.
  template <int N> __device__ void mask() {
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
    for (int h = 0; h < 2; h++) {
      int i = row + 16 * warp + 8 * h + lane / 4, keys = CAUSAL ? min(i + 1, problem.seqlen) : problem.seqlen;
      int left = keys - (key + lane % 4 * 2);  // what this row may see from this thread's first column on
#pragma unroll
      for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 2; e++)
          if (8 * n + e >= left) s[4 * n + 2 * h + e] = -INFINITY;
    }
  }

  // The largest of a row's numbers. Four neighbouring lanes share a row, and all of them get it.
  template <int N> __device__ float row_max(int h) {
    float even = fmaxf(s[2 * h], s[2 * h + 4]), odd = fmaxf(s[2 * h + 1], s[2 * h + 5]);
#pragma unroll
    for (int i = 8; i < N / 2; i += 4) {
      even = fmaxf(even, s[i + 2 * h]);
      odd = fmaxf(odd, s[i + 2 * h + 1]);
    }
    float max = fmaxf(even, odd);
    max = fmaxf(max, __shfl_xor_sync(0xffffffff, max, 1));
    return fmaxf(max, __shfl_xor_sync(0xffffffff, max, 2));
  }

  // The sum of one number from each of these four lanes.
  __device__ float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
  }

  // Weights in the place of scores, and their sum, as the shift of the row says.
  template <int N> __device__ void weights() {
    float odd[2] = {0, 0};
    new_sum[0] = new_sum[1] = 0;
#pragma unroll
    for (int i = 0; i < N / 2; i += 4)
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
    shift[0] = -row_max<N>(0) * problem.scale;
    shift[1] = -row_max<N>(1) * problem.scale;
    weights<N>();
    sum[0] = new_sum[0];
    sum[1] = new_sum[1];
  }

  // Adds the new weights' sum, unless some of them are too large for fp16.
  __device__ void accept_weights() {
    const float limit = 32768;  // each weight is at most its thread's sum
    if (__builtin_expect(__any_sync(0xffffffff, fmaxf(new_sum[0], new_sum[1]) > limit), 0)) shrink();
    sum[0] += new_sum[0];
    sum[1] += new_sum[1];
  }

  // A row has scores far above the old maximum: brings the sum of its new weights down to between 1 and 2, and with it all
  // that is older. Weights are fp32 here, which ends at 2^128, so that they are seldom lost.
  __device__ void shrink() {
    float row_sums[2] = {row_sum(new_sum[0]), row_sum(new_sum[1])};
    if (__any_sync(0xffffffff, fmaxf(row_sums[0], row_sums[1]) == INFINITY)) return start_again();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int exponent = max(0, min((__float_as_int(row_sums[h]) >> 23) - 127, 126));
      float factor = __int_as_float((127 - exponent) << 23);
      shift[h] -= exponent;
      new_sum[h] *= factor;
#pragma unroll
      for (int i = 0; i < KEYS / 2; i += 4)
        for (int e = 0; e < 2; e++) s[i + 2 * h + e] *= factor;
      scale_older(h, factor);
    }
  }

  // What was summed up before the block at hand.
  __device__ void scale_older(int h, float factor) {
    sum[h] *= factor;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i += 4)
      for (int e = 0; e < 2; e++) o[i + 2 * h + e] *= factor;
  }

  // A score is above the old maximum by so much that its weight is infinite, and the scores are lost. The warp computes its
  // part of them once more, by itself, and takes their maximum.
  __device__ void start_again() {
    uint32_t q_tile = address(shared.q[q.entry]), k_tile = address(shared.k[k.entry]);
    int thread = thread_index() - WARPGROUP, lane = thread % WARP;
    int row = thread / WARP * 16 + lane % 16, key = lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) s[i] = 0;
#pragma unroll 1
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      uint32_t a[4], b[4];
      ldmatrix(a, q_tile + swizzled(S::ROWS, row, 2 * d + lane / 16));
#pragma unroll
      for (int n = 0; n < KEYS / 16; n++) {
        ldmatrix(b, k_tile + swizzled(KEYS, 16 * n + key, 2 * d + lane / 8 % 2));
        mma(*(float(*)[4])(s + 8 * n), a, b[0], b[1]);
        mma(*(float(*)[4])(s + 8 * n + 4), a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float lower = fminf(shift[h], -row_max<KEYS>(h) * problem.scale);
      scale_older(h, power_of_two(lower - shift[h]));
      shift[h] = lower;
    }
    weights<KEYS>();
  }

  // The weights of N keys as fp16; those of the others are 0.
  template <int N> __device__ void pack_weights() {
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
      for (int j = 0; j < 4; j++) {
        p[n][j] = n < N / 16 ? pack(s[8 * n + 2 * j], s[8 * n + 2 * j + 1]) : 0;
        if (N < KEYS)
          asm volatile("" : "+r"(p[n][j]));  // a register even where it is a constant: wgmma takes no others
      }
  }

  // ---- a tile, step by step ----

  // Scores of one block and output of the one before, both in the background; weights of the first under the second.
  __device__ void step(int accumulate) {
    wait(k, shared.k_full);
    take_turn();
    scores<KEYS>(q.entry);
    wait(v, shared.v_full);
    output(accumulate);
    pass_turn();
    wgmma_wait<1>();
    wgmma_results(s);
    weights<KEYS>();
    release_queries();
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    release(v, shared.v_empty);
    accept_weights();
    release(k, shared.k_empty);
    pack_weights<KEYS>();
  }

  // The first block of the first tile, with nothing else under way.
  template <int N> __device__ void first_block() {
    wait(k, shared.k_full);
    take_turn();
    scores<N>(q.entry);
    pass_turn();
    wgmma_wait<0>();
    wgmma_results(s);
    release(k, shared.k_empty);
    mask<N>();
    first_weights<N>();
    pack_weights<N>();
  }

  // The last output of a tile under the first scores of the next, whose place is set already; the old one is left.
  template <int N> __device__ void next_tile(int accumulate, const Ring<S::TILES> &old_q, int old_head, int old_row) {
    wait(k, shared.k_full);
    take_turn();
    scores<N>(q.entry);
    wait(v, shared.v_full);
    output(accumulate);
    pass_turn();
    float old_sum[2] = {sum[0], sum[1]};
    wgmma_wait<1>();
    wgmma_results(s);
    release(k, shared.k_empty);
    if (CAUSAL || key + KEYS > problem.seqlen) mask<N>();
    first_weights<N>();
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    release(v, shared.v_empty);
    store(old_sum, old_q.entry, old_head, old_row);
    pack_weights<N>();
    skip_values();
  }

  // O / sum, to the place of the warp's own queries, and from there to global memory.
  __device__ void store(const float (&row_sums)[2], int entry, int head, int row) {
    float factor[2] = {1 / row_sum(row_sums[0]), 1 / row_sum(row_sums[1])};
    int thread = thread_index() % WARPGROUP, warp = thread / WARP, lane = thread % WARP;
    uint32_t place = address(shared.q[entry]) + (warpgroup * WARPGROUP_ROWS + warp * 16) * ROW_BYTES;
#pragma unroll
    for (int d = 0; d < HEAD_DIM / 16; d++) {
      const float *x = o + 8 * d;
      stmatrix(place + swizzled(S::ROWS, lane % 16, 2 * d + lane / 16), pack(x[0] * factor[0], x[1] * factor[0]),
               pack(x[2] * factor[1], x[3] * factor[1]), pack(x[4] * factor[0], x[5] * factor[0]),
               pack(x[6] * factor[1], x[7] * factor[1]));
    }
    fence_async_proxy();
    __syncwarp();
    if (elected) {
#pragma unroll
      for (int panel = 0; panel < HEAD_DIM / PANEL; panel++)
        tma_store(&tensors.o, place + panel * S::ROWS * ROW_BYTES, panel * PANEL, row + warp * 16, head);
      tma_store_commit();
    }
    leaving = entry;
  }

  // When the output has left, its place can take queries again.
  __device__ void release_queries() {
    if (leaving < 0) return;
    if (elected) {
      tma_store_wait_read<0>();
      mbarrier_arrive(address(shared.q_empty + leaving));
    }
    leaving = -1;
  }

  // ---- all tiles ----

  // Waits for the next tile's queries; false when there are no more tiles. Blocks of keys that only other warpgroups need
  // are let pass.
  __device__ bool find_next() {
    wait(q, shared.q_full);
    int t = shared.tile[q.entry];
    if (t < 0) return false;
    Tile tile = find_tile<CAUSAL, S::ROWS>(problem, t);
    head = tile.head;
    row = tile.row + warpgroup * WARPGROUP_ROWS;
    int keys = CAUSAL ? min(row + WARPGROUP_ROWS, problem.seqlen) : problem.seqlen;
    int blocks = (keys + KEYS - 1) / KEYS;
    skipped = tile.blocks - blocks;
    if constexpr (CAUSAL && S::ROWS % KEYS)
      for (int i = 0; i < skipped; i++) {
        wait(k, shared.k_full);
        take_turn();
        pass_turn();
        release(k, shared.k_empty);
      }
    key = (blocks - 1) * KEYS;
    return true;
  }
  __device__ void skip_values() {
    if constexpr (CAUSAL && S::ROWS % KEYS)
      for (int i = 0; i < skipped; i++) {
        wait(v, shared.v_full);
        release(v, shared.v_empty);
      }
  }

  // The diagonal leaves only half of a tile's first block to this warpgroup.
  __device__ bool half_block() { return CAUSAL && row % KEYS == 0; }

  __device__ void run() {
    int accumulate;
    if (warpgroup == S::WARPGROUPS - 1) pass_turn();
    find_next();
    skip_values();
    if (half_block())
      first_block<KEYS / 2>();
    else
      first_block<KEYS>();
    while (true) {
      for (accumulate = 0; key > 0; accumulate = 1) {
        key -= KEYS;
        step(accumulate);
      }
      release_queries();
      Ring<S::TILES> old_q = q;
      int old_head = head, old_row = row;
      q.advance();
      if (!find_next()) {
        finish(accumulate, old_q.entry, old_head, old_row);
        return;
      }
      if (half_block())
        next_tile<KEYS / 2>(accumulate, old_q, old_head, old_row);
      else
        next_tile<KEYS>(accumulate, old_q, old_head, old_row);
    }
  }

  // The last output of the last tile, with nothing else under way.
  __device__ void finish(int accumulate, int entry, int head, int row) {
    take_turn();
    wait(v, shared.v_full);
    output(accumulate);
    pass_turn();
    wgmma_wait<0>();
    wgmma_results(o);
    store(sum, entry, head, row);
    if (elected) tma_store_wait<0>();
    if (warpgroup == 0) take_turn();  // the turn that the last warpgroup passed on
  }
};

// ---- the kernel ----

template <int HEAD_DIM, bool CAUSAL> __device__ void attention(const Tensors &tensors, const Problem &problem) {
  using S = Shared<HEAD_DIM>;
  extern __shared__ __align__(1024) char memory[];  // where a swizzle of 128 bytes begins anew
  S &shared = *(S *)memory;
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::TILES; i++) {
      mbarrier_init(address(shared.q_full + i), 1);
      mbarrier_init(address(shared.q_empty + i), S::WARPGROUPS * 4);  // one of each warp
    }
    for (int i = 0; i < S::STAGES; i++) {
      mbarrier_init(address(shared.k_full + i), 1);
      mbarrier_init(address(shared.v_full + i), 1);
      mbarrier_init(address(shared.k_empty + i), S::WARPGROUPS * 4);
      mbarrier_init(address(shared.v_empty + i), S::WARPGROUPS * 4);
    }
    mbarrier_fence_init();
  }
  __syncthreads();
  int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);  // the shuffle tells ptxas that it is uniform
  if (warpgroup == 0) {
    registers_decrease<S::LOADER_REGISTERS>();
    if (threadIdx.x == 0) Loader<HEAD_DIM, CAUSAL>{shared, tensors, problem}.run();
  } else {
    registers_increase<S::REGISTERS>();
    Worker<HEAD_DIM, CAUSAL> worker = {shared, tensors, problem, warpgroup - 1, threadIdx.x % WARP == 0};
    worker.run();
  }
}

template <int HEAD_DIM> constexpr int THREADS = (Config<HEAD_DIM>::WARPGROUPS + 1) * WARPGROUP;

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
