// Accesses of a warp's lanes to each other's places, in the order of the program, and no __syncwarp between.
#pragma once

#include "../../common/ptx/cp_async.h"
#include "../../common/ptx/ldmatrix.h"
#include "../../common/ptx/mma.h"
#include "../../common/ptx/stmatrix.h"
#include "fence_rules.h"

// Eight times four matrices of a tile. Each lane gives its neighbour's rows, and rows of one matrix meet in the banks.
typedef struct Fragments {
  uint32_t w[8][4];
} Fragments;

static __device__ __forceinline__ Fragments get_matrices(Tile tile, uint32_t lane) {
  Fragments read;
  for (uint32_t i = 0; i < 8; i++) ldmatrix(read.w[i], tile.shared + 16 * ((lane + 1) % 32 * 8 + i));
  return read;
}

static __device__ __forceinline__ void put_matrices(Tile tile, uint32_t lane, uint32_t word) {
  for (uint32_t i = 0; i < 8; i++) stmatrix(tile.shared + 16 * (lane * 8 + i), word, word, word, word);
}

static __device__ __forceinline__ uint32_t mistakes_in(const Fragments *read, uint32_t word) {
  uint32_t mistakes = 0;
  for (uint32_t i = 0; i < 8; i++)
    for (uint32_t j = 0; j < 4; j++) mistakes += read->w[i][j] != word;
  return mistakes;
}

// Rows times ones: each product is the sum of 16 numbers of the tile.
static __device__ __forceinline__ void multiply(float (&d)[8][4], const uint32_t (&a)[8][4]) {
  for (uint32_t i = 0; i < 8; i++) {
    for (uint32_t j = 0; j < 4; j++) d[i][j] = 0;
    mma(d[i], a[i], 0x3c003c00, 0x3c003c00);
  }
}

static __device__ __forceinline__ uint32_t mistakes_in(const float (&d)[8][4], uint32_t word) {
  uint32_t mistakes = 0;
  for (uint32_t i = 0; i < 8; i++)
    for (uint32_t j = 0; j < 4; j++) mistakes += d[i][j] != 16 * float_of_half(word & 0xffff);
  return mistakes;
}

// What the lane's neighbour has loaded last is stored first.
template <TilePlace PLACE>
static __device__ __forceinline__ void put_backwards(Tile tile, uint32_t lane, uint32_t word) {
  for (uint32_t i = 8; i-- > 0;) narrow_store(PLACE, tile.shared, tile.global, lane * 8 + i, word);
}

static __device__ __forceinline__ void copy_backwards(Tile tile, uint32_t lane, uint32_t round) {
  for (uint32_t i = 8; i-- > 0;)
    cp_async(tile.shared + 16 * (lane * 8 + i), &fence_sources[round & 1][lane * 8 + i], 16);
}

// Not to be made one with the same instructions of another way.
template <int WAY> static __device__ __forceinline__ void mark() { asm volatile("// %0" ::"n"(WAY) : "memory"); }

template <TilePlace PLACE, int WAY>
static __device__ __forceinline__ uint32_t load_and_store(Tile tile, uint32_t lane, uint32_t round) {
  mark<WAY>();
  Vectors read = get_vectors<PLACE>(tile, lane);
  put_backwards<PLACE>(tile, lane, narrow_word(round + 1));
  mark<WAY>();
  return mistakes_in(&read, narrow_word(round));
}

template <TilePlace PLACE, int WAY>
static __device__ __forceinline__ uint32_t store_and_load(Tile tile, uint32_t lane, uint32_t round) {
  mark<WAY>();
  put_vectors<PLACE>(tile, lane, narrow_word(round + 1));
  Vectors read = get_vectors<PLACE>(tile, lane);
  mark<WAY>();
  return mistakes_in(&read, narrow_word(round + 1));
}

static __device__ __forceinline__ uint32_t matrices_and_store(const RuleInput *in, Tile tile, uint32_t lane,
                                                              uint32_t round, bool two_ways) {
  uint32_t next = narrow_word(round + 1);
  Fragments read = get_matrices(tile, lane);
  if (!two_ways) {
    put_backwards<IN_OWN_SHARED>(tile, lane, next);
  } else if ((lane ^ round) & 1) {
    delay(in, round + 64);
    put_backwards<IN_OWN_SHARED>(tile, lane, next);
    mark<0>();
  } else {
    put_backwards<IN_OWN_SHARED>(tile, lane, next);
    mark<1>();
  }
  return mistakes_in(&read, narrow_word(round));
}

static __device__ __forceinline__ uint32_t product_and_store(Tile tile, uint32_t lane, uint32_t round, bool matrices) {
  float d[8][4];
  if (matrices) {
    Fragments read = get_matrices(tile, lane);
    multiply(d, read.w);
  } else {
    Vectors read = get_vectors<IN_OWN_SHARED>(tile, lane);
    Fragments a;
    for (uint32_t i = 0; i < 8; i++)
      a.w[i][0] = read.v[i].x, a.w[i][1] = read.v[i].y, a.w[i][2] = read.v[i].z, a.w[i][3] = read.v[i].w;
    multiply(d, a.w);
  }
  put_backwards<IN_OWN_SHARED>(tile, lane, narrow_word(round + 1));
  return mistakes_in(d, narrow_word(round));
}

template <bool STORES_FIRST>
static __device__ __forceinline__ uint32_t by_two_ways(const RuleInput *in, Tile tile, uint32_t lane, uint32_t round) {
  if ((lane ^ round) & 1) {
    delay(in, round);
    return STORES_FIRST ? store_and_load<IN_OWN_SHARED, 0>(tile, lane, round)
                        : load_and_store<IN_OWN_SHARED, 0>(tile, lane, round);
  }
  return STORES_FIRST ? store_and_load<IN_OWN_SHARED, 1>(tile, lane, round)
                      : load_and_store<IN_OWN_SHARED, 1>(tile, lane, round);
}

// A lane's own vectors are stored, and the next lane's are loaded, 128 bytes further on: ptxas sees that these are
// others, and may load first. Behind the last lane's is nothing new.
template <bool MATRICES>
static __device__ __forceinline__ uint32_t store_and_load_next(Tile tile, uint32_t lane, uint32_t round) {
  uint32_t own = tile.shared + lane * 128, word = narrow_word(round + 1), mistakes;
  for (uint32_t i = 0; i < 8; i++) narrow_store(IN_OWN_SHARED, own, NULL, i, word);
  if (MATRICES) {
    Fragments read;
    for (uint32_t i = 0; i < 8; i++) ldmatrix(read.w[i], own + 128 + 16 * i);
    mistakes = mistakes_in(&read, word);
  } else {
    Vectors read;
    for (uint32_t i = 0; i < 8; i++) read.v[i] = narrow_load(IN_OWN_SHARED, own + 128, NULL, i);
    mistakes = mistakes_in(&read, word);
  }
  return lane < (MATRICES ? 28 : 31) ? mistakes : 0;
}

template <bool MATRICES>
static __device__ __forceinline__ uint32_t round_and_round(const RuleInput *in, Tile tile, uint32_t lane) {
  uint32_t mistakes = 0, rounds = in->program[0];
  for (uint32_t round = 0; round < rounds; round++) {
    delay(in, round);
    mistakes += MATRICES ? matrices_and_store(in, tile, lane, round, false)
                         : load_and_store<IN_OWN_SHARED, 3>(tile, lane, round);
  }
  return mistakes;
}

static __device__ __forceinline__ uint32_t converged_round(const RuleInput *in, Tile tile, uint32_t lane,
                                                           uint32_t round) {
  uint32_t next = narrow_word(round + 1);
  if (in->variant == 11 || in->variant == 12) {
    if ((lane ^ round) & 1) delay(in, round);
  } else {
    delay(in, round);
  }
  switch (in->variant) {
  case 0: return matrices_and_store(in, tile, lane, round, false);
  case 2: return matrices_and_store(in, tile, lane, round, true);
  case 3: return product_and_store(tile, lane, round, true);
  case 4: {
    Fragments read = get_matrices(tile, lane);
    copy_backwards(tile, lane, round + 1);
    asm volatile("cp.async.wait_all;" ::: "memory");
    return mistakes_in(&read, narrow_word(round));
  }
  case 5:
  case 6: {
    if (in->variant == 5)
      put_vectors<IN_OWN_SHARED>(tile, lane, next);
    else
      put_matrices(tile, lane, next);
    Fragments read = get_matrices(tile, lane);
    return mistakes_in(&read, next);
  }
  case 7:
  case 11: return load_and_store<IN_OWN_SHARED, 2>(tile, lane, round);
  case 8: return product_and_store(tile, lane, round, false);
  case 9:
  case 12: return store_and_load<IN_OWN_SHARED, 2>(tile, lane, round);
  case 13: return by_two_ways<false>(in, tile, lane, round);
  case 14: return by_two_ways<true>(in, tile, lane, round);
  case 15: return load_and_store<IN_GLOBAL, 2>(tile, lane, round);
  case 16: return store_and_load<IN_GLOBAL, 2>(tile, lane, round);
  case 17: return store_and_load_next<true>(tile, lane, round);
  default: return store_and_load_next<false>(tile, lane, round);
  }
}

// Words 0 and 1 of the output: 0, and whether anything was read that is not of the round. Each warp has a tile of its
// own.
extern "C" __global__ void __launch_bounds__(CONVERGED_THREADS) converged_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(128) uint4 tiles[CONVERGED_THREADS / 32][33 * 8];
  __shared__ uint32_t counts_of_block[2];
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, rounds = in->program[0];
  Tile tile = {shared_address(tiles[warp]), memory_of_block(in) + warp * (TOGETHER_BYTES / 16)};
  Counts counts = {0, 0};
  if (threadIdx.x == 0) counts_of_block[0] = counts_of_block[1] = 0;
  for (uint32_t odd = 0; odd < 2; odd++)
    for (uint32_t i = threadIdx.x; i < TOGETHER_BYTES / 16; i += CONVERGED_THREADS)
      narrow_store(IN_GLOBAL, 0, fence_sources[odd], i, narrow_word(odd));
  put_vectors<IN_OWN_SHARED>(tile, lane, narrow_word(0));
  put_vectors<IN_GLOBAL>(tile, lane, narrow_word(0));
  if (lane < 8) narrow_store(IN_OWN_SHARED, tile.shared, NULL, 256 + lane, narrow_word(0));
  __syncthreads();
  if (in->variant == 1) counts.mistakes = round_and_round<true>(in, tile, lane);
  if (in->variant == 10) counts.mistakes = round_and_round<false>(in, tile, lane);
  for (uint32_t round = 0; round < rounds && in->variant != 1 && in->variant != 10; round++) {
    counts.mistakes += converged_round(in, tile, lane, round);
    __syncwarp();
  }
  add_counts(counts_of_block, &counts);
  __syncthreads();
  if (threadIdx.x == 0) put_counts(counts_of_block, out);
}
