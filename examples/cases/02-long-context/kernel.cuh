// Gathers the keys of one sequence from a paged cache. A page holds 16 tokens, a token `row` bytes.
#pragma once
#include <cstdint>

enum { TOKENS = 16, THREADS = 256 };

// Block (p, t) copies token t of the sequence's page p, which is page pages[p] of the cache.
__global__ void gather(const int8_t *cache, const int *pages, int8_t *keys, int row) {
  int from = (pages[blockIdx.x] * TOKENS + blockIdx.y) * row;
  int to = (blockIdx.x * TOKENS + blockIdx.y) * row;
  for (int i = threadIdx.x; i < row; i += THREADS) keys[to + i] = cache[from + i];
}

void run_gather(const int8_t *cache, const int *pages, int8_t *keys, int count, int row) {
  gather<<<dim3(count, TOKENS), THREADS>>>(cache, pages, keys, row);
}
