// A loop around atomicCAS whose first guess is a plain load. All blocks change the same words.
#pragma once

#include "block.h"

// Eight bytes each. The last block of a launch checks them, and makes ones of them again.
static __device__ unsigned long long guess_words[GUESS_WORDS] = {1, 1, 1, 1, 1, 1, 1, 1};
static __device__ uint32_t guess_blocks;

// Without a fixed point, so that an update that is lost shows.
template <typename T> static __device__ T guess_next(T x) { return (T)(x * 3 + 1); }

template <typename T> static __device__ __forceinline__ void change(T *place) {
  T seen = *place, guess;
  do {
    guess = seen;
    seen = atomicCAS(place, guess, guess_next(guess));
  } while (seen != guess);
}

static __device__ __forceinline__ void add_one(unsigned long long *place) {
  unsigned long long seen = *place, guess;
  do {
    guess = seen;
    seen =
        atomicCAS(place, guess, (unsigned long long)__double_as_longlong(1.0 + __longlong_as_double((long long)guess)));
  } while (seen != guess);
}

static __device__ __forceinline__ void change_half(uint32_t *place, bool high) {
  uint32_t seen = *place, guess;
  do {
    guess = seen;
    uint32_t half = guess_next((uint16_t)(high ? guess >> 16 : guess));
    seen = atomicCAS(place, guess, high ? guess & 0xffff | half << 16 : guess & 0xffff0000 | half);
  } while (seen != guess);
}

// The loop ends by the guess alone, when that is large enough already.
static __device__ __forceinline__ void raise(uint32_t *place, uint32_t to) {
  uint32_t seen = *place;
  while (seen < to) {
    uint32_t guess = seen;
    seen = atomicCAS(place, guess, to);
    if (seen == guess) break;
  }
}

static __device__ __forceinline__ void change_word(uint32_t variant, unsigned long long *word, bool high,
                                                   uint32_t value) {
  switch (variant) {
  case 0: change((unsigned short *)word); break;
  case 1: change((uint32_t *)word); break;
  case 2: change(word); break;
  case 3: add_one(word); break;
  case 4: change_half((uint32_t *)word, high); break;
  case 10: raise((uint32_t *)word, value); break;
  case 11: *(uint32_t *)word = guess_next(*(uint32_t *)word); break;
  }
}

// What a word must be after so many changes, by each of two halves of the lanes.
static __device__ unsigned long long changed(uint32_t variant, uint32_t changes, uint32_t greatest) {
  unsigned long long x = 1, high = 0;
  if (variant == 3) return (unsigned long long)__double_as_longlong(2.0 * changes);
  if (variant == 10) return greatest;
  for (uint32_t i = 0; i < (variant == 4 ? changes : 2 * changes); i++) x = guess_next(x), high = guess_next(high);
  return variant == 0                    ? x & 0xffff
         : variant == 1 || variant == 11 ? (uint32_t)x
         : variant == 4                  ? (x & 0xffff) | (high & 0xffff) << 16
                                         : x;
}

// Words 0 and 1 of the output: 0, and whether an update was lost. 16 lanes of each warp take part, two for a word.
extern "C" __global__ void __launch_bounds__(GUESS_THREADS) guess_rules(const RuleInput *in, uint32_t *out) {
  __shared__ unsigned long long words[GUESS_WORDS];
  __shared__ bool is_last;
  uint32_t lane = threadIdx.x % 32, warps = GUESS_THREADS / 32, rounds = in->program[0], variant = in->variant;
  bool shared = variant >= 5 && variant < 10, wrong = false;
  if (threadIdx.x < GUESS_WORDS) words[threadIdx.x] = 1;
  __syncthreads();
  for (uint32_t round = 0; round < rounds; round++) {
    delay(in, round);
    if (lane >= 2 * GUESS_WORDS) continue;
    uint32_t value = round * warps * gridDim.x + blockIdx.x * warps + threadIdx.x / 32 + 2;
    if (shared)
      change_word(variant - 5, &words[lane % GUESS_WORDS], lane >= GUESS_WORDS, value);
    else
      change_word(variant, &guess_words[lane % GUESS_WORDS], lane >= GUESS_WORDS, value);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&guess_blocks, 1) == gridDim.x - 1;
  __syncthreads();
  if (is_last && threadIdx.x < GUESS_WORDS && !shared) {
    __threadfence();
    unsigned long long word = ((volatile unsigned long long *)guess_words)[threadIdx.x];
    wrong = word != changed(variant, rounds * warps * gridDim.x, rounds * warps * gridDim.x + 1);
    guess_words[threadIdx.x] = 1;
  }
  if (is_last && threadIdx.x == 0) guess_blocks = 0;
  if (shared && threadIdx.x < GUESS_WORDS)
    wrong = words[threadIdx.x] != changed(variant - 5, rounds * warps, rounds * warps + 1);
  wrong = __syncthreads_or(wrong);
  if (threadIdx.x == 0) output_of_block(out)[0] = 0, output_of_block(out)[1] = wrong;
}
