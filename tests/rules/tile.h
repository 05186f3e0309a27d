// A tile that the lanes of a warp write and read, in shared memory or in global, and two mbarriers that pass it on.
#pragma once

#include "narrow_rules.h"

// One of 32 words, or of 32 x 8 vectors, in shared memory or in global.
typedef struct Tile {
  uint32_t shared;
  uint4 *global;
} Tile;

template <TilePlace PLACE> static __device__ void put_vectors(Tile tile, uint32_t lane, uint32_t word) {
  for (uint32_t i = 0; i < 8; i++) narrow_store(PLACE, tile.shared, tile.global, lane * 8 + i, word);
}

// How many of the vectors that the neighbour has put are not of the word. The loads are under way when they are handed
// over.
typedef struct Vectors {
  uint4 v[8];
} Vectors;
template <TilePlace PLACE> static __device__ __forceinline__ Vectors get_vectors(Tile tile, uint32_t lane) {
  Vectors read;
  for (uint32_t i = 0; i < 8; i++) read.v[i] = narrow_load(PLACE, tile.shared, tile.global, (lane + 1) % 32 * 8 + i);
  return read;
}
static __device__ __forceinline__ uint32_t mistakes_in(const Vectors *read, uint32_t word) {
  uint32_t mistakes = 0;
  for (uint32_t i = 0; i < 8; i++)
    mistakes += read->v[i].x != word || read->v[i].y != word || read->v[i].z != word || read->v[i].w != word;
  return mistakes;
}

static __device__ void arrive(uint32_t mbarrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}

typedef struct Counts {
  uint32_t late, mistakes;
} Counts;

typedef struct Handshake {
  uint32_t full, empty;  // mbarriers
} Handshake;

// Both sources of the bulk copy, by the first block of two, or by each alike.
static __device__ void prepare_sources(uint32_t rank) {
  for (uint32_t odd = 0; odd < 2 && rank == 0; odd++)
    for (uint32_t i = threadIdx.x; i < TOGETHER_BYTES / 16; i += blockDim.x)
      narrow_store(IN_GLOBAL, 0, narrow_sources[blockIdx.x / 2][odd], i, narrow_word(odd));
  __threadfence();
  asm volatile("fence.proxy.async;" ::: "memory");
}
