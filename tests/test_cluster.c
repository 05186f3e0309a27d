// Clusters on the emulator: the shared memory of other blocks, barrier.cluster, multicast, and bulk copies of
// contiguous bytes; and scopes. The kernels are in tests/pairs/cluster.pairs and tests/pairs/scopes.pairs.
#include <criterion/criterion.h>

#include "support/run_kernel.h"
#include "support/run_ptx.h"

TestSuite(cluster, .timeout = 120);

Test(cluster, pairs) { run_pairs("cluster"); }

// What a thread of the block with rank r puts into its tile is 256 r + thread.
static uint32_t neighbour(unsigned block, unsigned thread) { return (block ^ 1) % 4 * 256 + thread; }
static uint32_t of_rank_zero(unsigned block, unsigned thread) { return (void)block, thread; }

Test(cluster, shared_memory_of_other_blocks) {
  run_and_check("cluster", "ld.shared::cluster", 8, 4, neighbour);
  run_and_check("cluster", "generic address", 8, 4, neighbour);
  run_and_check("cluster", "getctarank", 8, 4, neighbour);
  run_and_check("cluster", "st.shared::cluster", 8, 4, neighbour);
  run_and_check("cluster", "mapa of a variable", 4, 4, of_rank_zero);
}

static uint32_t sum_of_ranks(unsigned block, unsigned thread) {
  return (void)block, 4 * thread + (0 + 1 + 2 + 3) * 256;
}

Test(cluster, the_barrier) {
  run_and_check("cluster", "atom.shared::cluster", 4, 4, sum_of_ranks);
  run_and_check("cluster", "a warp that exits", 4, 4, neighbour);
  run_and_check("cluster", "relaxed arrival after a fence", 4, 4, neighbour);
}

// Each cluster of four loads four rows; a thread shows its word of the first two.
static uint32_t rows_of_cluster(unsigned block, unsigned thread) { return input_word(thread + 128 * (block / 4)); }

Test(cluster, multicast) {
  run_and_check("cluster", "multicast to four blocks", 8, 4, rows_of_cluster);
  run_and_check("cluster", "multicast to two blocks", 2, 2, rows_of_cluster);
  run_and_check("cluster", "multicast of halves", 2, 2, rows_of_cluster);
}

static uint32_t copied(unsigned block, unsigned thread) { return (void)block, input_word(thread + 4); }
static uint32_t added(unsigned block, unsigned thread) { return (void)block, input_word(thread) + thread; }

Test(cluster, bulk_copies) {
  run_and_check("cluster", "global to shared", 1, 0, copied);
  run_and_check("cluster", "global to shared::cta", 1, 0, copied);
  run_and_check("cluster", "shared to global", 1, 0, copied);
  run_and_check("cluster", "shared to another block", 2, 2, neighbour);
  run_and_check("cluster", "reduction to global", 1, 0, added);
  run_and_check("cluster", "reduction to shared", 2, 2, added);
}

static uint32_t plus_300(unsigned block, unsigned thread) { return (void)block, thread + 300; }

Test(cluster, asynchronous_stores) {
  run_pairs("st_async");
  run_and_check("st_async", "one value", 2, 2, neighbour);
  run_and_check("st_async", "one value", 8, 4, neighbour);
  run_and_check("st_async", "generic addresses, immediate offset", 4, 4, neighbour);
  run_and_check("st_async", "pairs of 64 bits", 2, 2, neighbour);
  run_and_check("st_async", "the own block's tile", 2, 2, neighbour);
  run_and_check("st_async", "a sum of all blocks", 2, 2, plus_300);
  run_and_check("st_async", "a largest number", 4, 4, plus_300);
}

static uint32_t of_thread(unsigned block, unsigned thread) { return (void)block, thread; }

Test(cluster, fences_and_hints) { run_and_check("cluster", "fences and hints", 1, 0, of_thread); }

static uint32_t other_warp(unsigned block, unsigned thread) { return block % 2 * 256 + (thread ^ 32); }
static uint32_t first_warp(unsigned block, unsigned thread) { return thread < 32 ? 0 : other_warp(block, thread); }

Test(cluster, scopes) {
  run_pairs("scopes");
  run_and_check("scopes", "inside a block", 4, 2, first_warp);
  run_and_check("scopes", "relaxed arrival for the own block", 4, 2, other_warp);
  run_and_check("scopes", "a counter of both blocks", 4, 2, other_warp);
  run_and_check("scopes", "handed on in the block", 2, 2, neighbour);
}

Test(cluster, refused) {
  static const RefusedTest tests[] = {
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r0], %h0, [%r1]", "32 or 64 bits"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r0], {%rd0, %rd1, %rd2, %rd3}, [%r1]", "32 or"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r0], %r2, [%r1]", "needs 2 registers"},
      {"st.async.shared::cluster.b32 [%r0], %r2, [%r1]", "completes on"},
      {"st.async.release.gpu.global.b32 [%rd0], %r2", "unknown modifier"},
      {"mapa.shared::cluster.b32 %r0, %r1, %r2", ".u32 and .u64"},
      {"mapa.shared::cluster.u32 %rd0, %r1, %r2", "needs .u32"},
      {"barrier.cluster.aligned", ".arrive or .wait"},
      {"fence.proxy.weird", "unknown modifier"},
      {"fence.proxy.tensormap::generic.acquire.gpu [%rd0], 64", "128"},
      {"cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes.bulk_group [%rd0], [%r0], 16", "completes on"},
      {"cp.async.bulk.shared::cluster.global [%r0], [%rd0], 16", "operands"},
      {"cp.async.bulk.wait_group %r0", "number of groups"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.b32 [%rd0], [%r0], 16", "no such reduction"},
  };
  RUN_REFUSED_TESTS(tests);
}
