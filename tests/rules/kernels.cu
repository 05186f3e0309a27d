// The kernels of the rules: see rules.h. Each block writes RULE_WORDS words, which must be the same in every block.
#include "../../common/ptx/fence.h"
#include "../../common/ptx/wgmma.h"
#include "rules.h"

// ---- delays, and an end for what waits forever ----

// Up to 4,096 clocks, other ones for each seed, block, warp and place in the program.
static __device__ void delay(const RuleInput *in, uint32_t place) {
  if (!in->seed) return;
  uint32_t x = in->seed * 2654435761u ^ (blockIdx.x * 32 + threadIdx.x / 32) * 40503u ^ place * 69069u;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  int64_t clocks = x % 4 ? x >> 8 & 511 : x >> 8 & 4095, begin = clock64();
  while (clock64() - begin < clocks) {}
}

// Long enough for the other warps to do everything that they can.
static __device__ void long_delay() {
  int64_t begin = clock64();
  while (clock64() - begin < 20000) {}
}

static __device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

static __device__ volatile uint32_t *output_of_block(uint32_t *out) { return out + blockIdx.x * RULE_WORDS; }

// The warps beyond in->threads: what the others have not done at the limit, they wait for forever.
static __device__ void watch(const RuleInput *in, volatile uint32_t *finished) {
  int64_t begin = clock64();
  while (*finished < in->threads)
    if (clock64() - begin > in->limit) __trap();
}

// ---- named barriers ----

static __device__ void barrier_step(uint32_t op, uint32_t count) {
  if (op == OP_ARRIVE) asm volatile("bar.arrive 1, %0;" ::"r"(count) : "memory");
  if (op == OP_SYNC) asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory");
  if (op == OP_RED)
    asm volatile("{\n.reg .b32 d; .reg .pred p;\nsetp.eq.u32 p, 0, 0;\nbar.red.popc.u32 d, 1, %0, p;\n}" ::"r"(count)
                 : "memory");
}

// Word w of the output: the steps that warp w has done. With delays the steps before a long one come before all later.
extern "C" __global__ void barrier_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint32_t finished;
  volatile uint32_t *done = output_of_block(out);
  uint32_t warp = threadIdx.x / 32;
  if (threadIdx.x == 0) finished = 0;
  __syncthreads();
  if (threadIdx.x >= in->threads) {
    watch(in, &finished);
    return;
  }
  uint32_t steps = 0;
  for (uint32_t i = 0; i < BARRIER_STEPS; i++) {
    uint32_t word = __shfl_sync(~0u, in->program[warp * BARRIER_STEPS + i], 0), op = word >> 16;
    if (op == OP_NONE) break;
    if (op == OP_DELAY)
      long_delay();
    else
      delay(in, i), barrier_step(op, word & 0xffff);
    steps++;
    if (threadIdx.x % 32 == 0) done[warp] = steps;
    __threadfence_system();
    __syncwarp();
  }
  atomicAdd(&finished, 1);
}

// ---- lanes ----

static __device__ uint32_t shuffle_case(uint32_t variant, uint32_t value) {
  uint32_t d = value;
  switch (variant) {
  case 0:
  case 17: asm volatile("shfl.sync.bfly.b32 %0, %0, 16, 31, 0xffffffff;" : "+r"(d)); break;
  case 1: asm volatile("shfl.sync.down.b32 %0, %0, 8, 31, 0xffffffff;" : "+r"(d)); break;
  case 2: asm volatile("shfl.sync.up.b32 %0, %0, 3, 0, 0xffffffff;" : "+r"(d)); break;
  case 3: asm volatile("shfl.sync.idx.b32 %0, %0, 20, 31, 0xffffffff;" : "+r"(d)); break;
  case 4:
  case 15: asm volatile("shfl.sync.bfly.b32 %0, %0, 16, 31, 0xffff;" : "+r"(d)); break;
  case 5: asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+r"(d)); break;
  case 16: asm volatile("shfl.sync.idx.b32 %0, %0, 20, 31, 0xffff;" : "+r"(d)); break;
  }
  return d;
}

static __device__ uint32_t collective_case(uint32_t variant, uint32_t lane, uint32_t value) {
  switch (variant) {
  case 6: return __ballot_sync(~0u, lane % 3 == 0);
  case 7: return __all_sync(~0u, lane < 16);
  case 8: return __any_sync(~0u, lane >= 16);
  case 9: return __match_any_sync(~0u, lane % 4);
  case 10: {
    int same;
    uint32_t members = __match_all_sync(~0u, lane / 16, &same);
    return members + (uint32_t)same;
  }
  case 11:
  case 18: return __reduce_add_sync(~0u, value);
  case 12: return __reduce_min_sync(~0u, 1000 - value);
  case 13: return __reduce_and_sync(~0u, lane < 16 ? 0x30f0u | lane : 0);
  case 14: __syncwarp(); return value;
  }
  return shuffle_case(variant, value);
}

// Word l of the output: the result of lane l.
extern "C" __global__ void lane_rules(const RuleInput *in, uint32_t *out) {
  volatile uint32_t *results = output_of_block(out);
  uint32_t lane = threadIdx.x, variant = in->variant;
  uint32_t value = 100 + lane;
  bool leaves = variant == 5 ? lane % 2 == 1 : lane >= 16;
  results[lane] = 0;
  if (leaves && (variant == 15 || variant == 16)) {
    long_delay();
    results[lane] = 1;
    return;
  }
  if (leaves && variant >= 17) long_delay();
  if (leaves) asm volatile("exit;");
  delay(in, 0);
  results[lane] = collective_case(variant, lane, value);
}

// Words 0 and 1 of the output: how many threads of each warp have passed the barrier.
extern "C" __global__ void exit_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint32_t finished;
  uint32_t *passed = out + blockIdx.x * RULE_WORDS, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) finished = 0;
  asm volatile("bar.sync 2;" ::: "memory");
  if (threadIdx.x >= in->threads) {
    watch(in, &finished);
    return;
  }
  if (warp == 0 && threadIdx.x >= 16) {
    long_delay();
    atomicAdd(&finished, 1);
    asm volatile("exit;");
  }
  delay(in, 0);
  if (in->variant == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (in->variant == 1 && warp == 0) asm volatile("bar.arrive 1, 64;" ::: "memory");
  if (in->variant == 1 && warp == 1) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (in->variant == 2) asm volatile("bar.sync 0;" ::: "memory");
  atomicAdd(&passed[warp], 1);
  __threadfence_system();
  atomicAdd(&finished, 1);
}

// ---- mbarriers ----

static __device__ void mbarrier_init(uint32_t mbarrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbarrier), "r"(count) : "memory");
}

// Whether the phase of that parity completes within about a hundred thousand clocks.
static __device__ bool mbarrier_waits(uint32_t mbarrier, uint32_t parity) {
  for (int i = 0; i < 20000; i++) {
    uint32_t done;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(mbarrier), "r"(parity)
                 : "memory");
    if (done) return true;
  }
  return false;
}

static __device__ uint32_t address_in(uint32_t rank, uint32_t address) {
  uint32_t remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

static __device__ uint32_t rank_in_cluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

static __device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Words 0 and 1 of the output: phases that did not complete, and words of other blocks that were not there then.
extern "C" __global__ void remote_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint64_t mbarrier;
  __shared__ volatile uint32_t words[REMOTE_BLOCKS];
  uint32_t lane = threadIdx.x, rank = rank_in_cluster(), here = shared_address(&mbarrier);
  uint32_t late = 0, wrong = 0, one = in->threads / 32;
  if (lane == 0) mbarrier_init(here, REMOTE_BLOCKS);
  cluster_sync();
  for (uint32_t phase = 0; phase < REMOTE_PHASES; phase++) {
    delay(in, phase);
    if (lane < REMOTE_BLOCKS) {
      uint32_t there = address_in(lane, here), word = address_in(lane, shared_address((const void *)&words[rank]));
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(word), "r"(phase * 16 + rank) : "memory");
      if (in->variant == 0)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
      else if (in->variant == 1)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(there), "r"(one)
                     : "memory");
      else
        asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 0;" ::"r"(there)
                     : "memory");
    }
    __syncwarp();
    late += !mbarrier_waits(here, phase & 1);
    if (lane < REMOTE_BLOCKS) wrong += words[lane] != phase * 16 + lane;
    cluster_sync();
  }
  wrong = __reduce_add_sync(~0u, wrong);
  if (lane == 0) output_of_block(out)[0] = late, output_of_block(out)[1] = wrong;
}

static __device__ void bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t mbarrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(mbarrier)
               : "memory");
}

static __device__ void bulk_copy_to_all(uint32_t to, const void *from, uint32_t bytes, uint32_t mbarrier,
                                        uint16_t blocks) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
               "[%3], %4;" ::"r"(to),
               "l"(from), "r"(bytes), "r"(mbarrier), "h"(blocks)
               : "memory");
}

static __device__ void mbarrier_expect(uint32_t mbarrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(bytes) : "memory");
}

// Words 0 and 1 of the output: mbarriers that did not complete, and words that had not been copied then. 64 threads.
extern "C" __global__ void init_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(128) volatile uint32_t tile[INIT_BARRIERS][4];
  __shared__ uint64_t mbarriers[INIT_BARRIERS];
  uint32_t variant = in->variant, late = 0, wrong = 0;
  for (uint32_t i = threadIdx.x; i < INIT_BARRIERS * 4; i += 64) tile[i / 4][i % 4] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (variant == 3) mbarriers[threadIdx.x % INIT_BARRIERS] = ~0ull;
  __syncthreads();
  for (uint32_t i = 0; i < INIT_BARRIERS; i++) {
    uint32_t mbarrier = shared_address(&mbarriers[variant == 5 ? 0 : i]), to = shared_address((const void *)tile[i]);
    if (threadIdx.x == 0) {
      delay(in, i);
      mbarrier_init(mbarrier, 1);
      if (variant == 1) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      if (variant == 2) {
        mbarrier_expect(mbarrier, 16);
        bulk_copy(to, in->program, 16, mbarrier);
      }
      if (variant == 4) mbarrier_expect(mbarrier, 16);
    }
    if (variant == 4)
      cluster_sync();
    else
      __syncthreads();
    if (threadIdx.x == 32 && variant != 2 && variant != 4) {
      mbarrier_expect(mbarrier, 16);
      bulk_copy(to, in->program, 16, mbarrier);
    }
    if (threadIdx.x == 32 && variant == 4 && rank_in_cluster() == 0)
      bulk_copy_to_all(to, in->program, 16, mbarrier, (1 << REMOTE_BLOCKS) - 1);
    late += !mbarrier_waits(mbarrier, 0);
    for (uint32_t j = 0; j < 4; j++) wrong += tile[i][j] != in->program[j];
    if (variant == 5) __syncthreads();
  }
  if (variant == 4) cluster_sync();
  if (threadIdx.x == 63) output_of_block(out)[0] = late, output_of_block(out)[1] = wrong;
}

// ---- wgmma ----

// Before the fence, or ptxas moves zeros into the registers behind it.
template <int COUNT> static __device__ __forceinline__ void zeros(float (&d)[COUNT]) {
  for (int i = 0; i < COUNT; i++) asm volatile("mov.f32 %0, 0f00000000;" : "=f"(d[i]));
  wgmma_fence();
}

template <int COUNT> static __device__ __forceinline__ void wait_for_product(float (&d)[COUNT]) {
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_results(d);
}

template <int A_MN_MAJOR, int B_MN_MAJOR>
static __device__ __forceinline__ void product_16(float (&d)[8], uint64_t a, uint64_t b) {
  zeros(d);
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
               "{" OPERANDS_0 "}, %8, %9, p, 1, 1, %10, %11;\n}"
               : REGISTERS_8(d, 0)
               : "l"(a), "l"(b), "n"(A_MN_MAJOR), "n"(B_MN_MAJOR));
  wait_for_product(d);
}

template <bool B_MN_MAJOR>
static __device__ __forceinline__ void product_64(float (&d)[32], uint32_t (&a)[4], uint64_t b) {
  for (uint32_t j = 0; j < 4; j++) asm volatile("" : "+r"(a[j]));  // computed before the fence
  zeros(d);
  wgmma<64, B_MN_MAJOR>(d, a, b, 0);
  wait_for_product(d);
}

// B or A of ones on its diagonal, 16 columns: K-major, not swizzled.
static __device__ void store_ones(uint16_t *matrix) {
  for (uint32_t i = threadIdx.x; i < 256; i += 128) {
    uint32_t row = i / 16, k = i % 16;
    matrix[row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8] = row == k ? 0x3c00 : 0;
  }
}

static __device__ uint16_t half_bits(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Where element (row, k) of A lies, in elements.
static __device__ uint32_t place_in_a(uint32_t variant, uint32_t row, uint32_t k) {
  if (variant == 0) return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8;
  uint32_t byte = variant == 2 ? row / 16 * 512 + k * 32 + row % 16 * 2 : row * 128 + k * 2;
  byte ^= variant == 2 ? (byte >> 7 & 1) << 4 : (byte >> 7 & 7) << 4;
  return byte / 2;
}

static __device__ uint64_t descriptor_of_a(uint32_t variant, uint32_t address) {
  return variant == 0   ? matrix_descriptor(address, 128, 256, SWIZZLE_NONE)
         : variant == 2 ? matrix_descriptor(address, 512, 256, SWIZZLE_32B)
                        : matrix_descriptor(address, 16, 1024, SWIZZLE_128B);
}

// Word 0 of the output: elements of the products that are not those of the rows that the warp has just written. The
// warps write A, and each goes on by itself.
extern "C" __global__ void rows_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(1024) uint16_t a[RULE_ROWS * 64];
  __shared__ alignas(128) uint16_t ones[256];
  __shared__ uint32_t wrong;
  uint32_t variant = in->variant, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t written = variant == 4 ? (warp + 1) % 4 : warp, mistakes = 0;
  if (threadIdx.x == 0) wrong = 0;
  store_ones(ones);
  for (uint32_t i = threadIdx.x; i < RULE_ROWS * 64; i += 128) a[i] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  uint64_t desc_a = descriptor_of_a(variant, shared_address(a)),
           desc_b = matrix_descriptor(shared_address(ones), 128, 256, SWIZZLE_NONE);
  for (uint32_t round = 1; round <= ROWS_ROUNDS; round++) {
    delay(in, round);
    for (uint32_t i = lane; i < 256; i += 32)
      a[place_in_a(variant, written * 16 + i / 16, i % 16)] = (uint16_t)(RULE_FIRST_BITS + round * 256 + i);
    __syncwarp();
    if (variant != 3) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    float d[8];
    if (variant == 2)
      product_16<1, 0>(d, desc_a, desc_b);
    else
      product_16<0, 0>(d, desc_a, desc_b);
    for (uint32_t i = 0; i < 8; i++) {
      uint32_t row = lane / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      mistakes += half_bits(d[i]) != RULE_FIRST_BITS + round * 256 + row * 16 + column;
    }
  }
  atomicAdd(&wrong, mistakes);
  __syncthreads();
  if (threadIdx.x == 0) output_of_block(out)[0] = wrong;
}

// ---- arrivals of scope .cta at another block's mbarrier ----

enum TilePlace { IN_OWN_SHARED, IN_OTHER_SHARED, IN_GLOBAL };

// Of each cluster: what the multicast copy copies in even and in odd rounds; and the tile in global memory.
static __device__ uint4 narrow_sources[NARROW_CLUSTERS][2][NARROW_BYTES / 16];
static __device__ uint4 narrow_tiles[NARROW_CLUSTERS][NARROW_BYTES / 16];

// All words of the tile in that round: two fp16 numbers.
static __device__ uint32_t narrow_word(uint32_t round) { return 0x04000400u + round % 2 * 0x00010001u; }

// Reads and writes 16 bytes of the tile. tile: an address of shared::cta or shared::cluster, or none.
static __device__ uint4 narrow_load(TilePlace place, uint32_t tile, const uint4 *global, uint32_t i) {
  uint4 v;
  if (place == IN_OWN_SHARED)
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(tile + 16 * i)
                 : "memory");
  else if (place == IN_OTHER_SHARED)
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(tile + 16 * i)
                 : "memory");
  else
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(global + i)
                 : "memory");
  return v;
}

static __device__ void narrow_store(TilePlace place, uint32_t tile, uint4 *global, uint32_t i, uint32_t word) {
  if (place == IN_OWN_SHARED)
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(tile + 16 * i), "r"(word) : "memory");
  else if (place == IN_OTHER_SHARED)
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(tile + 16 * i), "r"(word) : "memory");
  else
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(global + i), "r"(word) : "memory");
}

static __device__ void arrive_narrowly(uint32_t mbarrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}

static __device__ void arrive_for_cluster(uint32_t mbarrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}

// Reads this thread's part of the tile, and arrives while the loads are under way. Returns how many vectors of it are not
// those of the round. Neighbouring threads meet in the banks of the shared memory: there the loads queue.
template <TilePlace PLACE, bool LATE>
static __device__ uint32_t read_and_arrive(uint32_t tile, const uint4 *global, uint32_t there, uint32_t word) {
  uint4 v[NARROW_VECTORS];
  uint32_t mistakes = 0;
  if (LATE) arrive_narrowly(there);
  for (uint32_t i = 0; i < NARROW_VECTORS; i++)
    v[i] = narrow_load(PLACE, tile, global, threadIdx.x * NARROW_VECTORS + i);
  if (!LATE) arrive_narrowly(there);
  for (uint32_t i = 0; i < NARROW_VECTORS; i++)
    mistakes += v[i].x != word || v[i].y != word || v[i].z != word || v[i].w != word;
  return mistakes;
}

static __device__ uint32_t multiply_and_arrive(uint32_t tile, uint64_t ones, uint32_t there, uint32_t word) {
  float d[8];
  uint32_t mistakes = 0;
  product_16<0, 0>(d, matrix_descriptor(tile, 128, 256, SWIZZLE_NONE), ones);
  arrive_narrowly(there);
  for (uint32_t i = 0; i < 8; i++) mistakes += half_bits(d[i]) != (word & 0xffff);
  return mistakes;
}

// From the last vector to the first: those that the readers have read last come first.
template <TilePlace PLACE> static __device__ void write_tile(uint32_t tile, uint4 *global, uint32_t word) {
  for (uint32_t i = NARROW_VECTORS; i-- > 0;) narrow_store(PLACE, tile, global, threadIdx.x * NARROW_VECTORS + i, word);
}

template <TilePlace PLACE> static __device__ uint32_t read_tile(uint32_t tile, const uint4 *global, uint32_t word) {
  uint32_t mistakes = 0;
  for (uint32_t i = 0; i < NARROW_VECTORS; i++) {
    uint4 v = narrow_load(PLACE, tile, global, threadIdx.x * NARROW_VECTORS + i);
    mistakes += v.x != word || v.y != word || v.z != word || v.w != word;
  }
  return mistakes;
}

// Words 0 and 1 of the output: waits that did not end, and whether anything was read that is not of the round.
extern "C" __global__ void __launch_bounds__(NARROW_THREADS) narrow_rules(const RuleInput *in, uint32_t *out) {
  __shared__ alignas(1024) uint4 tile[NARROW_BYTES / 16];
  __shared__ alignas(128) uint16_t ones[256];
  __shared__ uint64_t mbarriers[2];
  __shared__ uint32_t counts[2];
  uint32_t variant = in->variant, rank = rank_in_cluster(), late = 0, mistakes = 0, rounds = in->program[0];
  bool copies = variant == 0 || variant == 2;
  uint32_t bytes = variant == 2 ? NARROW_PRODUCT_BYTES : NARROW_BYTES;
  uint32_t here = shared_address(tile), other = address_in(1 - rank, here);
  uint32_t handed = shared_address(&mbarriers[0]), returned = shared_address(&mbarriers[1]);
  uint32_t handed_there = address_in(0, handed), returned_there = address_in(1, returned);
  uint4 *global = narrow_tiles[blockIdx.x / 2];
  uint64_t desc_ones = matrix_descriptor(shared_address(ones), 128, 256, SWIZZLE_NONE);
  if (threadIdx.x == 0) {
    counts[0] = counts[1] = 0;
    mbarrier_init(handed, NARROW_THREADS);
    mbarrier_init(returned, copies ? 1 : NARROW_THREADS);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  store_ones(ones);
  write_tile<IN_OWN_SHARED>(here, global, narrow_word(0));
  if (rank == 0) {
    write_tile<IN_GLOBAL>(here, global, narrow_word(0));
    for (uint32_t odd = 0; odd < 2; odd++)
      write_tile<IN_GLOBAL>(here, narrow_sources[blockIdx.x / 2][odd], narrow_word(odd));
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  cluster_sync();
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t word = narrow_word(round), next = narrow_word(round + 1);
    if (rank == 1) {
      delay(in, round);
      if (copies && threadIdx.x == 0) mbarrier_expect(returned, bytes);
      switch (variant) {
      case 0:
      case 1: mistakes += read_and_arrive<IN_OWN_SHARED, false>(here, global, handed_there, word); break;
      case 2: mistakes += multiply_and_arrive(here, desc_ones, handed_there, word); break;
      case 3: mistakes += read_and_arrive<IN_OTHER_SHARED, false>(other, global, handed_there, word); break;
      case 4: mistakes += read_and_arrive<IN_GLOBAL, false>(here, global, handed_there, word); break;
      case 5: write_tile<IN_OWN_SHARED>(here, global, next), arrive_narrowly(handed_there); break;
      case 6: write_tile<IN_OTHER_SHARED>(other, global, next), arrive_narrowly(handed_there); break;
      case 7: write_tile<IN_GLOBAL>(here, global, next), arrive_narrowly(handed_there); break;
      case 8: mistakes += read_and_arrive<IN_OWN_SHARED, true>(here, global, handed_there, word); break;
      }
      late += !mbarrier_waits(returned, round & 1);
    } else if (!copies || threadIdx.x == 0) {
      late += !mbarrier_waits(handed, round & 1);
      switch (variant) {
      case 0:
      case 2: bulk_copy_to_all(here, narrow_sources[blockIdx.x / 2][(round + 1) & 1], bytes, returned, 1 << 1); break;
      case 1:
      case 8: write_tile<IN_OTHER_SHARED>(other, global, next); break;
      case 3: write_tile<IN_OWN_SHARED>(here, global, next); break;
      case 4: write_tile<IN_GLOBAL>(here, global, next); break;
      case 5: mistakes += read_tile<IN_OTHER_SHARED>(other, global, next); break;
      case 6: mistakes += read_tile<IN_OWN_SHARED>(here, global, next); break;
      case 7: mistakes += read_tile<IN_GLOBAL>(here, global, next); break;
      }
      if (!copies) arrive_for_cluster(returned_there);
    }
  }
  atomicAdd(&counts[0], late);
  atomicAdd(&counts[1], mistakes);
  cluster_sync();
  if (threadIdx.x == 0) output_of_block(out)[0] = counts[0], output_of_block(out)[1] = counts[1] != 0;
}

// ---- what descriptors read ----

// A or B, 64 x 16, times ones on a diagonal, is what the descriptor reads. Block i takes cases[i], and writes for each row
// and depth which element of the shared memory it was: 1,024 numbers.
static __device__ void read_a(const DescriptorCase *c, uint64_t desc, uint64_t ones, uint16_t *out) {
  float d[8];
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (c->mn_major)
    product_16<1, 0>(d, desc, ones);
  else
    product_16<0, 0>(d, desc, ones);
  for (uint32_t i = 0; i < 8; i++) {
    uint32_t row = 16 * warp + lane / 4 + 8 * (i / 2 % 2), k = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    out[row * RULE_DEPTH + k] = (uint16_t)(half_bits(d[i]) - RULE_FIRST_BITS);
  }
}

static __device__ void read_b(const DescriptorCase *c, uint64_t desc, uint16_t *out) {
  float d[32];
  uint32_t lane = threadIdx.x % 32, a[4] = {0, 0, 0, 0};
  for (uint32_t j = 0; j < 4 && threadIdx.x < 32; j++) {
    uint32_t row = lane / 4 + 8 * (j % 2), k = 8 * (j / 2) + 2 * (lane % 4);
    a[j] = (row == k ? 0x3c00u : 0) | (row == k + 1 ? 0x3c00u << 16 : 0);
  }
  if (c->mn_major)
    product_64<true>(d, a, desc);
  else
    product_64<false>(d, a, desc);
  for (uint32_t i = 0; i < 32 && threadIdx.x < 32; i++) {
    uint32_t k = lane / 4 + 8 * (i / 2 % 2), n = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    out[n * RULE_DEPTH + k] = (uint16_t)(half_bits(d[i]) - RULE_FIRST_BITS);
  }
}

extern "C" __global__ void __launch_bounds__(128) descriptor_rules(const DescriptorCase *cases, uint16_t *out) {
  extern __shared__ uint8_t memory[];
  const DescriptorCase *c = &cases[blockIdx.x];
  uint32_t begin = (shared_address(memory) + 1023) / 1024 * 1024;
  uint16_t *elements = (uint16_t *)(memory + (begin - shared_address(memory)));
  for (uint32_t i = threadIdx.x; i < RULE_ELEMENTS; i += 128) elements[i] = (uint16_t)(RULE_FIRST_BITS + i);
  store_ones(elements + RULE_ELEMENTS);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  uint64_t desc = c->bits + (begin >> 4), ones = matrix_descriptor(begin + RULE_BYTES, 128, 256, SWIZZLE_NONE);
  out += (size_t)blockIdx.x * RULE_ROWS * RULE_DEPTH;
  if (c->of_b)
    read_b(c, desc, out);
  else
    read_a(c, desc, ones, out);
}

// ---- setmaxnreg ----

template <int REGISTERS> static __device__ void registers_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> static __device__ void registers_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// Word w of the output: warp w has its registers.
template <int DEC, int INC> static __device__ void registers(const RuleInput *in, uint32_t *out) {
  __shared__ uint32_t finished;
  volatile uint32_t *done = output_of_block(out);
  if (threadIdx.x == 0) finished = 0;
  __syncthreads();
  if (threadIdx.x >= in->threads) {
    watch(in, &finished);
    return;
  }
  if (DEC && threadIdx.x < 128) {
    delay(in, 0);
    registers_dec<DEC ? DEC : 24>();
  } else {
    registers_inc<INC>();
  }
  if (threadIdx.x % 32 == 0) done[threadIdx.x / 32] = 1;
  __threadfence_system();
  atomicAdd(&finished, 1);
  // The registers stay with their warps.
  while (*(volatile uint32_t *)&finished < in->threads) {}
}

extern "C" __global__ void __maxnreg__(64) registers_0(const RuleInput *in, uint32_t *out) {
  registers<24, 104>(in, out);
}
extern "C" __global__ void __maxnreg__(64) registers_1(const RuleInput *in, uint32_t *out) {
  registers<24, 112>(in, out);
}
extern "C" __global__ void __maxnreg__(64) registers_2(const RuleInput *in, uint32_t *out) {
  registers<0, 72>(in, out);
}
