// What is measured inside one SM, and what its kernels must have computed.
#include <stdlib.h>

#include "parts.h"

enum { WARP = 32, WARPGROUP = 128 };

// ---- what a thread's result must be ----

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t chains_of(const Quantity *quantity) { return quantity->is_rate ? RATE_CHAINS : 1; }

// The sum over a thread's chains of what a step makes of their first numbers, again and again.
static uint32_t sum_of_chains(const Quantity *quantity, uint32_t thread, uint32_t steps, float step(float x)) {
  uint32_t chains = chains_of(quantity);
  float sum = 0;
  for (uint32_t c = 0; c < chains; c++) {
    float x = (float)(thread * chains + c);
    for (uint32_t i = 0; i < steps / chains; i++) x = step(x);
    sum += x;
  }
  return bits_of(sum);
}

static float plus_one(float x) { return x * 1 + 1; }
static uint32_t counted_sum(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  return sum_of_chains(quantity, thread, steps, plus_one);
}

static float at_least(float x) { return fmaxf(x, 1000001); }
static uint32_t largest(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  return sum_of_chains(quantity, thread, steps, at_least);
}

static float half_power(float x) { return exp2f(-x); }
static uint32_t powers(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  return sum_of_chains(quantity, thread, steps, half_power);
}

static float packed(float x) { return float_of((uint32_t)half_from_double(1.5) << 16 | half_from_double(x)); }
static uint32_t converted(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  return sum_of_chains(quantity, thread, steps, packed);
}

static uint32_t fibonacci(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity;
  uint32_t x = thread, y = 1;
  for (uint32_t i = 0; i < steps / 2; i++) {
    x += y;
    y += x;
  }
  return x;
}

// Each lane has the next one's number, and that has the one's after it.
static uint32_t passed_on(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  uint32_t chains = chains_of(quantity), sum = 0;
  uint32_t from = thread / WARP * WARP + (thread + steps / chains) % WARP;
  for (uint32_t c = 0; c < chains; c++) sum += from * chains + c;
  return sum;
}

// mma: 16 products of 1 with 1 + column % 3 a step. The thread's numbers are in columns 2 (t % 4) and the next.
static uint32_t multiplied(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  uint32_t chains = chains_of(quantity), result = 0;
  for (uint32_t i = 0; i < 4 * chains; i++)
    result = result * 31 + steps / chains * 16 * (1 + (thread % 4 * 2 + i % 2) % 3);
  return result;
}

// wgmma: 16 products of 1 + row % 3 with 1 + column % 5 a step.
static uint32_t multiplied_wide(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  uint32_t n = (uint32_t)atoi(strchr(quantity->name, 'n') + 1), result = 0, lane = thread % WARP;
  for (uint32_t i = 0; i < n / 2; i++) {
    uint32_t row = thread % WARPGROUP / WARP * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    result = result * 31 + steps * 16 * (1 + row % 3) * (1 + column % 5);
  }
  return result;
}

static uint32_t rows_on(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity;
  return (thread + steps % WORD_ROWS * WARP) % (WORD_ROWS * WARP);
}

static uint32_t round_the_ring(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity, (void)thread;
  return steps % RING * 8;
}

// The value before the last addition, of the sums 1, 2, 3, 5, ...
static uint32_t before_last(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity, (void)thread;
  uint32_t x = 1, memory = 1;
  for (uint32_t i = 0; i < steps; i++) {
    uint32_t old = memory;
    memory += x;
    x = old;
  }
  return x;
}

// The words of a chunk of 16 bytes, of those that say where they are.
static uint32_t chunk(uint32_t i) { return 4 * (4 * i) + 6; }

static uint32_t loaded(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < (uint32_t)quantity->steps; i++) sum += chunk(thread + i * WARP);
  return sum * (steps / (uint32_t)quantity->steps);
}

static uint32_t last_copied(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity;
  return chunk((steps - 1) % COPIES * WARP + thread);
}

// A tile's rows have 32 words, one for each of the warp's threads. In row r the swizzle puts chunk c of four words
// in the place of chunk c ^ r % 8. Memory has as many tiles as are loaded, or COPIES.
static uint32_t last_tile(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  uint32_t tile = (steps - 1) % (quantity->content == NEW_WORDS ? steps : COPIES), sum = 0;
  for (uint32_t row = 0; row < TILE_ROWS; row++)
    sum += (tile * TILE_ROWS + row) * WARP + (thread / 4 ^ row % 8) * 4 + thread % 4;
  return sum;
}

static uint32_t met(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity;
  return steps + (thread ^ WARP);
}

static uint32_t taken(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity;
  return steps + thread % WARPGROUP;
}

static uint32_t passed(const Quantity *quantity, uint32_t thread, uint32_t steps) {
  (void)quantity;
  return steps + (thread >= WARP ? 1000 : 0);
}

bool quantity_agrees(const Quantity *quantity, uint32_t got, uint32_t expected) {
  if (quantity->expected == powers) return fabsf(float_of(got) - float_of(expected)) <= 1e-5f;
  return got == expected;
}

// ---- the table ----

#define CLOCKS false, "clocks"
#define OPERATIONS true, "operations/clock"
#define BYTES true, "bytes/clock"
#define FLOP true, "FLOP/clock"

// FLOP of a wgmma of 64 x N x 16, and of an mma of 16 x 8 x 16 in each warp.
#define WIDE(N) (2.0 * 64 * (N)*16)
#define NARROW(WARPS) (2.0 * 16 * 8 * 16 * (WARPS))

const Quantity quantities[] = {
    {"FFMA", "multiply_add_latency", CLOCKS, 32, CALCULATIONS, 1, 32, WORDS, counted_sum},
    {"maximum", "maximum_latency", CLOCKS, 32, CALCULATIONS, 1, 32, WORDS, largest},
    {"maximum", "maximum_rate", OPERATIONS, RATE_THREADS, CALCULATIONS, RATE_THREADS, 32, WORDS, largest},
    {"exponential", "exponential_latency", CLOCKS, 32, CALCULATIONS, 1, 32, WORDS, powers},
    {"exponential", "exponential_rate", OPERATIONS, RATE_THREADS, CALCULATIONS, RATE_THREADS, 32, WORDS, powers},
    {"conversion", "convert_latency", CLOCKS, 32, CALCULATIONS, 1, 32, WORDS, converted},
    {"conversion", "convert_rate", OPERATIONS, RATE_THREADS, CALCULATIONS, RATE_THREADS, 32, WORDS, converted},
    {"shuffle", "shuffle_latency", CLOCKS, 32, SHUFFLES, 1, 33, WORDS, passed_on},
    {"shuffle", "shuffle_rate", OPERATIONS, RATE_THREADS, SHUFFLES *RATE_CHAINS, RATE_THREADS, 33, WORDS, passed_on},
    {"integer add", "add_latency", CLOCKS, 32, CALCULATIONS, 1, 32, WORDS, fibonacci},
    {"mma m16n8k16", "mma_latency", CLOCKS, 32, CALCULATIONS, 1, 8, WORDS, multiplied},
    {"mma m16n8k16", "mma_rate", FLOP, MMA_THREADS, CALCULATIONS, NARROW(MMA_THREADS / WARP), 8, WORDS, multiplied},
    {"wgmma m64n64k16", "wgmma_64_latency", CLOCKS, 128, GROUPS, 1, 16, WORDS, multiplied_wide},
    {"wgmma m64n64k16", "wgmma_64_rate", FLOP, 512, PRODUCTS, 4 * WIDE(64), 64, WORDS, multiplied_wide},
    {"wgmma m64n64k16 A in registers", "wgmma_64_registers_rate", FLOP, 512, PRODUCTS, 4 * WIDE(64), 64, WORDS,
     multiplied_wide},
    {"wgmma m64n256k16", "wgmma_256_latency", CLOCKS, 128, GROUPS, 1, 16, WORDS, multiplied_wide},
    {"wgmma m64n256k16", "wgmma_256_rate", FLOP, 256, PRODUCTS, 2 * WIDE(256), 64, WORDS, multiplied_wide},
    {"wgmma m64n256k16 A in registers", "wgmma_256_registers_rate", FLOP, 256, PRODUCTS, 2 * WIDE(256), 64, WORDS,
     multiplied_wide},
    {"shared memory", "shared_latency", CLOCKS, 32, CHASES, 1, 64, WORDS, rows_on},
    {"shared memory", "shared_rate", BYTES, RATE_THREADS, LOADS, 16 * RATE_THREADS, 64, WORDS, loaded},
    {"L1", "l1_latency", CLOCKS, 1, CHASES, 1, 64, RINGS, round_the_ring},
    {"L1", "l1_rate", BYTES, RATE_THREADS, LOADS, 16 * RATE_THREADS, 64, WORDS, loaded},
    {"L2", "l2_latency", CLOCKS, 1, CHASES, 1, 16, RINGS, round_the_ring},
    {"device memory", "l2_latency", CLOCKS, 1, CHASES, 1, 8, CHAIN, NULL},
    {"atomic add", "atomic_latency", CLOCKS, 1, CHASES, 1, 16, ONE, before_last},
    {"cp.async 16 bytes", "cp_async_latency", CLOCKS, 32, COPIES, 1, 32, WORDS, last_copied},
    {"TMA tile in L2", "tma_latency", CLOCKS, 32, COPIES, 1, 16, WORDS, last_tile},
    {"TMA tile in device memory", "tma_latency", CLOCKS, 32, COPIES, 1, 16, NEW_WORDS, last_tile},
    {"__syncthreads 128 threads", "block_barrier", CLOCKS, 128, MEETINGS, 1, 32, WORDS, met},
    {"__syncthreads 256 threads", "block_barrier", CLOCKS, 256, MEETINGS, 1, 32, WORDS, met},
    {"named barrier 128 threads", "named_barrier", CLOCKS, 256, MEETINGS, 1, 32, WORDS, met},
    {"turn of a warpgroup", "turns", CLOCKS, 256, MEETINGS, 2, 32, WORDS, taken},
    {"mbarrier", "mbarrier_latency", CLOCKS, 1, MEETINGS, 1, 32, WORDS, passed},
    {"mbarrier of another warp", "mbarrier_warps", CLOCKS, 64, MEETINGS, 2, 32, WORDS, passed},
    {"mbarrier of another thread", "mbarrier_threads", CLOCKS, 64, MEETINGS, 2, 32, WORDS, passed},
};
const int quantity_count = sizeof quantities / sizeof *quantities;
