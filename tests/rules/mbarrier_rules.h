// Arrivals at several blocks' mbarriers, and mbarriers that are new to the async proxy.
#pragma once

#include "block.h"

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

// Words 0 to 3 of the output: whether test_wait sees the phase of a parity completed, after 0 to 3 phases; words 4 to
// 7: whether try_wait does.
extern "C" __global__ void parity_rules(const RuleInput *in, uint32_t *out) {
  __shared__ uint64_t mbarrier;
  uint32_t here = shared_address(&mbarrier), parity = in->program[0];
  if (threadIdx.x) return;
  mbarrier_init(here, 1);
  for (uint32_t phase = 0; phase < PARITY_PHASES; phase++) {
    uint32_t tested, tried;
    delay(in, phase);
    asm volatile("{\n.reg .pred p, q;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%2], %3;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 q, [%2], %3;\n"
                 "selp.u32 %0, 1, 0, p;\nselp.u32 %1, 1, 0, q;\n}"
                 : "=r"(tested), "=r"(tried)
                 : "r"(here), "r"(parity)
                 : "memory");
    output_of_block(out)[phase] = tested;
    output_of_block(out)[PARITY_PHASES + phase] = tried;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(here) : "memory");
  }
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
