// The 64 bits that tell wgmma where a matrix lies. A wrong one multiplies something else, and nothing on the GPU says
// so.
#include "ptx.h"

// Fills the tiles from `in`, as core matrices or as rows: the values do not matter here.
__device__ void fill(void *tile, const half *in, int bytes) {
  for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) ((uint4 *)tile)[i] = ((const uint4 *)in)[i % 256];
  fence_async();
  __syncthreads();
}

// The address is wanted in units of 16 bytes, and given in bytes.
// launch unshifted: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void unshifted(const half *in, float *out) {
  __shared__ struct {
    half before[8192];
    Tiles tiles;
  } shared;
  fill(&shared, in, sizeof shared);
  uint64_t a = describe(shared.tiles.a);
#ifndef REPAIRED
  a = (a & ~0x3fffull) | shared_address(shared.tiles.a);
#endif
  float d[4] = {};
  multiply(d, a, describe(shared.tiles.b));  // HAZARD(unshifted): bad descriptor
  put(out, d);
}

// The same of a tile near the start of shared memory: the bits fit, and name a place beyond its end.
// launch unshifted_low: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void unshifted_low(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
  uint64_t b = describe(tiles.b);
#ifndef REPAIRED
  b = (b & ~0x3fffull) | (shared_address(tiles.b) & 0x3fff);
#endif
  float d[4] = {};
  multiply(d, describe(tiles.a), b);  // HAZARD(unshifted_low): out-of-bounds access
  put(out, d);
}

// Leading and stride offset are exchanged: 8-row groups lie 256 bytes apart, and the two halves of K 128.
// launch swapped: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void swapped(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
#ifdef REPAIRED
  uint64_t a = descriptor(tiles.a, 128, 256, NO_SWIZZLE);
#else
  uint64_t a = descriptor(tiles.a, 256, 128, NO_SWIZZLE);
#endif
  float d[4] = {};
  multiply(d, a, describe(tiles.b));  // HAZARD(swapped): bad descriptor
  put(out, d);
}

// Offsets in elements instead of bytes.
// launch in_elements: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void in_elements(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
#ifdef REPAIRED
  uint64_t a = descriptor(tiles.a, 128, 256, NO_SWIZZLE);
#else
  uint64_t a = descriptor(tiles.a, 64, 128, NO_SWIZZLE);
#endif
  float d[4] = {};
  multiply(d, a, describe(tiles.b));  // HAZARD(in_elements): bad descriptor
  put(out, d);
}

// Rows padded to 48 bytes, as they would be for ldmatrix: a core matrix is 128 bytes on end, so that no two offsets
// describe it.
// launch padded_rows: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void padded_rows(const half *in, float *out) {
  __shared__ Tiles tiles;
  __shared__ alignas(128) half padded[64][24];
  fill(&tiles, in, sizeof tiles);
  fill(padded, in, sizeof padded);
#ifdef REPAIRED
  uint64_t a = describe(tiles.a);
#else
  uint64_t a = descriptor(padded, 16, 8 * sizeof padded[0], NO_SWIZZLE);
#endif
  float d[4] = {};
  multiply(d, a, describe(tiles.b));  // HAZARD(padded_rows): bad descriptor
  put(out, d);
}

// PTX wants a tile under the 128-byte swizzle to start where the swizzle's pattern does, at a multiple of 1024 bytes, or to
// name a base offset; this one starts behind an mbarrier and its padding.
// launch swizzle_atom: grid 1 block 128 shared 20480 args half[2048] float[512]=zero
extern "C" __global__ void swizzle_atom(const half *in, float *out) {
  extern __shared__ char shared[];
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
  fill(shared, in, 20480);
  unsigned start = (shared_address(shared) + 1023) / 1024 * 1024;
#ifndef REPAIRED
  start += 128;
#endif
  float d[4] = {};
  multiply(d, descriptor_at(start, 16, 1024, SWIZZLE_128B), describe(tiles.b));  // HAZARD(swizzle_atom): formal bad descriptor
  put(out, d);
}

// A step of two rows instead of two columns: the tile starts inside the pattern.
// launch step_along_rows: grid 1 block 128 shared 12288 args half[2048] float[512]=zero
extern "C" __global__ void step_along_rows(const half *in, float *out) {
  extern __shared__ char shared[];
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
  fill(shared, in, 12288);
  unsigned start = (shared_address(shared) + 1023) / 1024 * 1024;
#ifdef REPAIRED
  enum { STEP = 32 };
#else
  enum { STEP = 256 };
#endif
  float d[4] = {};
  for (int k = 0; k < 2; k++) {
    uint64_t a = descriptor_at(start + STEP * k, 16, 1024, SWIZZLE_128B);
    multiply(d, a, describe(tiles.b));  // HAZARD(step_along_rows): formal bad descriptor
  }
  put(out, d);
}

// A base offset of a tile that starts where the pattern does: the pattern is turned by two rows.
// launch wrong_base: grid 1 block 128 shared 12288 args half[2048] float[512]=zero
extern "C" __global__ void wrong_base(const half *in, float *out) {
  extern __shared__ char shared[];
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
  fill(shared, in, 12288);
  uint64_t a = descriptor_at((shared_address(shared) + 1023) / 1024 * 1024, 16, 1024, SWIZZLE_128B);
#ifndef REPAIRED
  a |= 2ull << 49;
#endif
  float d[4] = {};
  multiply(d, a, describe(tiles.b));  // HAZARD(wrong_base): bad descriptor
  put(out, d);
}

// The fourth slice of a line of 128 bytes is the last: this one begins so late that half of it is the next row's.
// launch over_the_line: grid 1 block 128 shared 12288 args half[2048] float[512]=zero
extern "C" __global__ void over_the_line(const half *in, float *out) {
  extern __shared__ char shared[];
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
  fill(shared, in, 12288);
  unsigned start = (shared_address(shared) + 1023) / 1024 * 1024;
#ifdef REPAIRED
  start += 96;
#else
  start += 112;
#endif
  float d[4] = {};
  multiply(d, descriptor_at(start, 16, 1024, SWIZZLE_128B), describe(tiles.b));  // HAZARD(over_the_line): bad descriptor
  put(out, d);
}

// Bit 46 belongs to the descriptor of another architecture.
// launch bit_46: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void bit_46(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
  uint64_t a = describe(tiles.a);
#ifndef REPAIRED
  a |= 1ull << 46;
#endif
  float d[4] = {};
  multiply(d, a, describe(tiles.b));  // HAZARD(bit_46): formal bad descriptor
  put(out, d);
}

// The fields are put together in 32 bits: stride and swizzle fall off.
// launch half_a_descriptor: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void half_a_descriptor(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
#ifdef REPAIRED
  uint64_t a = describe(tiles.a);
#else
  unsigned a = (unsigned)describe(tiles.a);
#endif
  float d[4] = {};
  multiply(d, a, describe(tiles.b));  // HAZARD(half_a_descriptor): bad descriptor
  put(out, d);
}

// The last tile of the loop lies behind the last one there is.
// launch one_tile_more: grid 1 block 128 args half[2048] float[512]=zero 2
extern "C" __global__ void one_tile_more(const half *in, float *out, int steps) {
  __shared__ Tiles tiles[2];
  fill(tiles, in, sizeof tiles);
#ifdef REPAIRED
  int first = 0;
#else
  int first = 1;
#endif
  float d[4] = {};
  for (int k = first; k < first + steps; k++)
    multiply(d, describe(tiles[k].a), describe(tiles[k].b));  // HAZARD(one_tile_more): out-of-bounds access
  put(out, d);
}

// Each warp gives the start of its own 16 rows, as with mma.sync: but the descriptor is of all 64.
// launch own_rows: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void own_rows(const half *in, float *out) {
  __shared__ Tiles tiles[2];
  fill(tiles, in, sizeof tiles);
#ifdef REPAIRED
  const half *a = tiles[0].a;
#else
  const half *a = tiles[0].a + threadIdx.x / 32 * 256;
#endif
  float d[4] = {};
  multiply(d, describe(a), describe(tiles[0].b));  // HAZARD(own_rows): bad descriptor
  put(out, d);
}

// Each lane gives its own element's address.
// launch own_element: grid 1 block 128 args half[2048] float[512]=zero
extern "C" __global__ void own_element(const half *in, float *out) {
  __shared__ Tiles tiles;
  fill(&tiles, in, sizeof tiles);
#ifdef REPAIRED
  const half *b = tiles.b;
#else
  const half *b = tiles.b + threadIdx.x % 32;
#endif
  float d[4] = {};
  multiply(d, describe(tiles.a), describe(b));  // HAZARD(own_element): bad descriptor
  put(out, d);
}
