// Clusters on the emulator: the shared memory of other blocks, barrier.cluster, multicast, and bulk copies of contiguous bytes.
#include <criterion/criterion.h>
#include <string.h>

#include "support/run_kernel.h"
#include "support/run_ptx.h"

TestSuite(cluster, .timeout = 120);

#define END "ret;\n}\n"
#define CLUSTER_SYNC "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
// %c is the block's rank, %o the out of its own 64 words.
#define RANK "mov.u32 %c, %cluster_ctarank; mov.u32 %v, %clusterid.x; mov.u32 %n, %cluster_nctarank; mad.lo.u32 %v, %v, %n, %c;\n" \
  "mul.wide.u32 %s, %v, 256; add.u64 %o, %o, %s;\n"
// Thread %t writes a word of its own block's tile; %a is its address.
#define PUT "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; shl.b32 %v, %c, 8; add.u32 %v, %v, %t; st.shared.u32 [%a], %v;\n"
#define STORE_V "mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n"

enum { OUT_WORDS = 1024 };

// Runs a text of a pair's prologue, and expects out to be what `expect` says of each block and thread.
typedef uint32_t OfThread(unsigned block, unsigned thread);

static uint32_t input_word(uint32_t index) { return index * 2654435761u; }

static void check(const char *name, const char *text, unsigned grid, unsigned cluster, OfThread *expect) {
  uint32_t input[OUT_WORDS], got[OUT_WORDS];
  for (uint32_t i = 0; i < OUT_WORDS; i++) input[i] = input_word(i);
  for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
    Machine machine = machine_open(text, REPAIRED, schedule);
    uint64_t in = machine_upload(&machine, input, sizeof input), out = machine_upload(&machine, NULL, sizeof got);
    emulator_fill(machine.emulator, out, 0, sizeof got);
    Map map = make_map(&(EmulatorTensorSpec){.type = EMULATOR_TENSOR_U32, .rank = 2, .address = in, .size = {32, 32}, .stride = {0, 128}, .box = {32, 4}});
    const void *arguments[] = {&map, &in, &out};
    cr_expect_eq(machine_launch(&machine, grid, 64, cluster, arguments, 3), EMULATOR_OK);
    expect_clean(&machine);
    machine_download(&machine, got, out, sizeof got);
    for (unsigned i = 0; i < grid * 64; i++)
      cr_expect_eq(got[i], expect(i / 64, i % 64), "%s, schedule %d: block %u thread %u has %#x, expected %#x", name, (int)schedule, i / 64, i % 64,
                   got[i], expect(i / 64, i % 64));
    machine_close(&machine);
  }
}

// ---- addresses and the barrier ----

static uint32_t neighbour(unsigned block, unsigned thread) { return ((block ^ 1) % 4) * 256 + thread; }
static uint32_t of_rank_zero(unsigned block, unsigned thread) { return (void)block, thread; }

// Reads the tile of the block with rank %c ^ 1.
#define READ_NEIGHBOUR "xor.b32 %n, %c, 1; mapa.shared::cluster.u32 %v, %a, %n; ld.shared::cluster.u32 %v, [%v];\n"

Test(cluster, shared_memory_of_other_blocks) {
  check("ld.shared::cluster", PAIR_PROLOGUE RANK PUT CLUSTER_SYNC READ_NEIGHBOUR STORE_V CLUSTER_SYNC END, 8, 4, neighbour);
  check("generic address", PAIR_PROLOGUE RANK PUT CLUSTER_SYNC
        "xor.b32 %n, %c, 1; cvt.u64.u32 %s, %a; cvta.shared.u64 %s, %s; mapa.u64 %s, %s, %n; ld.u32 %v, [%s];\n" STORE_V CLUSTER_SYNC END, 8, 4, neighbour);
  check("getctarank", PAIR_PROLOGUE RANK PUT CLUSTER_SYNC
        "xor.b32 %n, %c, 1; mapa.shared::cluster.u32 %a, %a, %n; getctarank.shared::cluster.u32 %v, %a; shl.b32 %v, %v, 8; add.u32 %v, %v, %t;\n"
        STORE_V END, 8, 4, neighbour);
  check("st.shared::cluster", PAIR_PROLOGUE RANK "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; xor.b32 %n, %c, 1;\n"
        "mapa.shared::cluster.u32 %n, %a, %n; shl.b32 %v, %c, 8; add.u32 %v, %v, %t; st.shared::cluster.u32 [%n], %v;\n" CLUSTER_SYNC
        "ld.shared.u32 %v, [%a];\n" STORE_V END, 8, 4, neighbour);
  check("mapa of a variable", PAIR_PROLOGUE RANK PUT CLUSTER_SYNC "mapa.shared::cluster.u32 %a, tile, 0; shl.b32 %v, %t, 2; add.u32 %a, %a, %v;\n"
        "ld.shared::cluster.u32 %v, [%a];\n" STORE_V CLUSTER_SYNC END, 4, 4, of_rank_zero);
}

static uint32_t sum_of_ranks(unsigned block, unsigned thread) { return (void)block, 4 * thread + (0 + 1 + 2 + 3) * 256; }

Test(cluster, atomics_and_threads_that_exit) {
  check("atom.shared::cluster", PAIR_PROLOGUE RANK "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; mov.u32 %v, 0; st.shared.u32 [%a], %v;\n" CLUSTER_SYNC
        "mapa.shared::cluster.u32 %n, %a, 0; shl.b32 %v, %c, 8; add.u32 %v, %v, %t; red.shared::cluster.add.u32 [%n], %v;\n" CLUSTER_SYNC
        "ld.shared::cluster.u32 %v, [%n];\n" STORE_V CLUSTER_SYNC END, 4, 4, sum_of_ranks);
  // Warp 1 leaves: the barrier does not wait for it.
  check("exit", PAIR_PROLOGUE RANK PUT "@%w1 bra LEAVE;\n" CLUSTER_SYNC READ_NEIGHBOUR STORE_V CLUSTER_SYNC "bra DONE;\n"
        "LEAVE: add.u32 %v, %t, 0; xor.b32 %n, %c, 1; shl.b32 %n, %n, 8; add.u32 %v, %v, %n;\n" STORE_V "DONE: " END, 4, 4, neighbour);
  check("relaxed arrival after a fence", PAIR_PROLOGUE RANK PUT "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
        READ_NEIGHBOUR STORE_V CLUSTER_SYNC END, 4, 4, neighbour);
}

Test(cluster, hazards) {
  static const Pair pairs[] = {
      {.name = "no barrier before the read", .text = PAIR_PROLOGUE RANK PUT "F:bar.sync 0;\nR:barrier.cluster.arrive.aligned;\nR:barrier.cluster.wait.aligned;\n"
       "xor.b32 %n, %c, 1; mapa.shared::cluster.u32 %v, %a, %n; \nld.shared::cluster.u32 %v, [%v]; // here\n" CLUSTER_SYNC END,
       HAZARD_SHARED_RACE, "nothing orders", .grid = 2, .cluster = 2, .or_kind = HAZARD_UNINITIALISED_READ},
      {.name = "relaxed arrival", .text = PAIR_PROLOGUE RANK PUT "F:barrier.cluster.arrive.relaxed.aligned;\nR:barrier.cluster.arrive.release.aligned;\n"
       "barrier.cluster.wait.aligned;\nxor.b32 %n, %c, 1; mapa.shared::cluster.u32 %v, %a, %n; \nld.shared::cluster.u32 %v, [%v]; // here\n" CLUSTER_SYNC END,
       HAZARD_SHARED_RACE, "nothing orders", .grid = 2, .cluster = 2},
      {.name = "arrives twice", .text = PAIR_PROLOGUE "barrier.cluster.arrive.aligned;\nR:barrier.cluster.wait.aligned;\nbarrier.cluster.arrive.aligned; // here\n"
       "barrier.cluster.wait.aligned;\n" END, HAZARD_BARRIER_MISUSE, "second time", .grid = 2, .cluster = 2},
      {.name = "waits without arrival", .text = PAIR_PROLOGUE "R:barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned; // here\n" END,
       HAZARD_BARRIER_MISUSE, "without a barrier.cluster.arrive", .grid = 2, .cluster = 2},
      {.name = "one block does not arrive", .text = PAIR_PROLOGUE RANK "setp.eq.u32 %q, %c, 0; mov.u32 %v, 0;\nF:@%q bra SPIN;\nbarrier.cluster.arrive.aligned;\n"
       "barrier.cluster.wait.aligned;\nF:bra DONE;\nSPIN:\nF:bar.sync 1, 128; // here\nDONE: " END,
       HAZARD_DEADLOCK, "cluster's barrier", .grid = 2, .cluster = 2},
      {.name = "no such rank", .text = PAIR_PROLOGUE "F:mapa.shared::cluster.u32 %a, tile, 2; // here\nR:mapa.shared::cluster.u32 %a, tile, 1;\n" END,
       HAZARD_OUT_OF_BOUNDS, "rank 2", .grid = 2, .cluster = 2},
      {.name = "misuse by divergence", .text = PAIR_PROLOGUE "F:@%p barrier.cluster.arrive.aligned;\nF:@!%p barrier.cluster.arrive.aligned; // here\n"
       "R:barrier.cluster.arrive.aligned;\nbarrier.cluster.wait;\n" END, HAZARD_DIVERGENT_ALIGNED, "", .grid = 2, .cluster = 2},
  };
  RUN_PAIRS(pairs);
}

// A block's shared memory ends with it; whether the other one comes too late depends on the schedule, so that only what is
// certain is asked for: a report under some schedule, none of the repaired one under any.
Test(cluster, exit_before_a_remote_read) {
  static const char text[] = PAIR_PROLOGUE RANK PUT CLUSTER_SYNC "setp.eq.u32 %q, %c, 1;\n@%q bra LAST;\n" READ_NEIGHBOUR STORE_V
      "LAST:\nR:barrier.cluster.arrive;\nR:barrier.cluster.wait;\n" END;
  int reports = 0;
  for (int variant = 0; variant < 2; variant++)
    for (uint64_t schedule = 0; schedule < 40; schedule++) {
      Machine machine = machine_open(text, (Variant)variant, schedule);
      uint64_t out = machine_upload(&machine, NULL, 4096);
      Map map = {{0}};
      const void *arguments[] = {&map, &out, &out};
      machine_launch(&machine, 2, 64, 2, arguments, 3);
      int count;
      const Hazard *hazards = emulator_hazards(machine.emulator, &count);
      if (variant == REPAIRED) expect_clean(&machine);
      else reports += count > 0 && hazards[0].kind == HAZARD_OUT_OF_BOUNDS && strstr(hazards[0].detail, "has exited");
      machine_close(&machine);
    }
  cr_expect(reports > 0, "nobody noticed that the block had gone");
}

// ---- mbarriers of other blocks ----

Test(cluster, remote_arrivals) {
  // Every thread of both blocks arrives at rank 0's mbarrier, which orders the tiles for rank 0's readers.
  static const Pair pairs[] = {
      {.name = "remote arrival", .text = PAIR_PROLOGUE RANK
       "@%p mbarrier.init.shared::cta.b64 [bar], 128; @%p fence.mbarrier_init.release.cluster;\n"
       "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n" PUT
       "mapa.shared::cluster.u32 %n, bar, 0;\n"
       "F:mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%n];\nR:mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%n];\n"
       "setp.eq.u32 %q, %c, 1;\n@%q bra DONE;\n"
       "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0;\n@!%q bra W;\n"
       "mapa.shared::cluster.u32 %v, %a, 1;\nld.shared::cluster.u32 %v, [%v]; // here\n" STORE_V
       "DONE: barrier.cluster.arrive;\nbarrier.cluster.wait;\n" END, HAZARD_SHARED_RACE, "nothing orders", .grid = 2, .cluster = 2},
      {.name = "no cluster barrier after init", .text = PAIR_PROLOGUE RANK "setp.eq.u32 %x, %c, 0; and.pred %x, %x, %p;\n"
       "@%x mbarrier.init.shared::cta.b64 [bar], 64; @%x fence.mbarrier_init.release.cluster;\n"
       "R:barrier.cluster.arrive.relaxed.aligned;\nR:barrier.cluster.wait.aligned;\nF:bar.sync 0;\n"
       "setp.eq.u32 %q, %c, 0;\n@%q bra DONE;\nmapa.shared::cluster.u32 %n, bar, 0;\n"
       "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%n]; // here\n"
       "DONE: barrier.cluster.arrive;\nbarrier.cluster.wait;\n" END, HAZARD_SHARED_RACE, "nothing orders", .grid = 2, .cluster = 2,
       .or_kind = HAZARD_MBARRIER_MISUSE},
  };
  RUN_PAIRS(pairs);
}

// ---- multicast ----

static uint32_t multicast_word(unsigned block, unsigned thread) { return input_word(thread + 128 * (block / 4)); }

Test(cluster, multicast) {
  // Rank 0 loads for all; every block expects the bytes on its own mbarrier.
#define MULTICAST(mask)                                                                                                             \
  PAIR_PROLOGUE RANK "@%p mbarrier.init.shared::cta.b64 [bar], 1; @%p fence.mbarrier_init.release.cluster;\n" CLUSTER_SYNC EXPECT("bar", "512") \
  CLUSTER_SYNC "setp.eq.u32 %x, %c, 0; and.pred %x, %x, %p; mov.b16 %h, " mask "; mov.u32 %n, %clusterid.x; shl.b32 %n, %n, 2; mov.b64 %s1, 0;\n"                \
  "@%x cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [tile], [%m, {0, %n}], [bar], %h, %s1;\n"    \
  WAIT("W", "bar", "0") "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a];\n" STORE_V END
  check("4 blocks", MULTICAST("15"), 8, 4, multicast_word);
  check("2 blocks", MULTICAST("3"), 2, 2, multicast_word);
  // Each of two blocks loads half of the tile for both.
  check("halves", PAIR_PROLOGUE RANK "@%p mbarrier.init.shared::cta.b64 [bar], 1; @%p fence.mbarrier_init.release.cluster;\n" CLUSTER_SYNC EXPECT("bar", "256")
        CLUSTER_SYNC "mov.b16 %h, 3; shl.b32 %n, %c, 7; mov.u32 %a, tile; add.u32 %a, %a, %n; cvt.u64.u32 %s, %n; add.u64 %s, %i, %s;\n"
        "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a], [%s], 128, [bar], %h;\n"
        WAIT("W", "bar", "0") "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a];\n" STORE_V END, 2, 2, multicast_word);
}

Test(cluster, multicast_hazards) {
  static const Pair pairs[] = {
      // The other block must have read its tile before rank 0 refills it: its own bar.sync does not tell rank 0.
      {.name = "refilled while the other block reads", .text = PAIR_PROLOGUE RANK
       "@%p mbarrier.init.shared::cta.b64 [bar], 1; @%p fence.mbarrier_init.release.cluster;\n" CLUSTER_SYNC PUT "ld.shared.u32 %v, [%a];\n" EXPECT("bar", "512")
       "fence.proxy.async;\nF:fence.acq_rel.cluster;\nF:bar.sync 0;\nR:barrier.cluster.arrive.aligned;\nR:barrier.cluster.wait.aligned;\n"
       "setp.eq.u32 %x, %c, 0; and.pred %x, %x, %p; mov.b16 %h, 3;\n"
       "@%x cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%m, {0, 0}], [bar], %h; // here\n"
       WAIT("W", "bar", "0") END, HAZARD_SHARED_RACE, "", .grid = 2, .cluster = 2, .or_kind = HAZARD_OVERWRITE_IN_FLIGHT},
  };
  RUN_PAIRS(pairs);
}

// ---- bulk copies ----

static uint32_t copied(unsigned block, unsigned thread) { return (void)block, input_word(thread + 4); }
static uint32_t doubled(unsigned block, unsigned thread) { return (void)block, input_word(thread) + thread; }
static uint32_t from_neighbour(unsigned block, unsigned thread) { return (block ^ 1) * 256 + thread; }

Test(cluster, bulk_copies) {
  check("global to shared", PAIR_PROLOGUE INIT("bar", "1") EXPECT("bar", "256")
        "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%i+16], 256, [bar];\n" WAIT("W", "bar", "0") OUTPUT("tile") END, 1, 0, copied);
  check("global to shared::cta", PAIR_PROLOGUE INIT("bar", "1") EXPECT("bar", "256") "createpolicy.fractional.L2::evict_first.b64 %s1, 1.0;\n"
        "@%p cp.async.bulk.prefetch.L2.global [%i], 256;\n"
        "@%p cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [%i+16], 256, [bar], %s1;\n" WAIT("W", "bar", "0") OUTPUT("tile") END,
        1, 0, copied);
  check("shared to global", PAIR_PROLOGUE INIT("bar", "1") EXPECT("bar", "256")
        "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%i+16], 256, [bar];\n" WAIT("W", "bar", "0")
        "@%p cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256;\n@%p cp.async.bulk.commit_group;\n@%p cp.async.bulk.wait_group.read 0;\n" END, 1, 0, copied);
  check("shared to another block", PAIR_PROLOGUE RANK "@%p mbarrier.init.shared::cta.b64 [bar], 1; @%p fence.mbarrier_init.release.cluster;\n" PUT
        "fence.proxy.async.shared::cta;\n" EXPECT("bar", "256") CLUSTER_SYNC "xor.b32 %n, %c, 1; mapa.shared::cluster.u32 %a, tile, %n; add.u32 %a, %a, 1024;\n"
        "mapa.shared::cluster.u32 %n, bar, %n;\n@%p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a], [tile], 256, [%n];\n"
        WAIT("W", "bar", "0") "mov.u32 %a, tile; shl.b32 %v, %t, 2; add.u32 %a, %a, %v; ld.shared.u32 %v, [%a+1024];\n" STORE_V CLUSTER_SYNC END, 2, 2, from_neighbour);
  check("reduction to global", PAIR_PROLOGUE "mov.u32 %c, 0;\n" PUT "mad.wide.u32 %s, %t, 4, %i; ld.global.u32 %v, [%s]; mad.wide.u32 %s, %t, 4, %o; st.global.u32 [%s], %v;\n"
        "fence.proxy.async;\nbar.sync 0;\n@%p cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%o], [tile], 256;\n@%p cp.async.bulk.commit_group;\n"
        "@%p cp.async.bulk.wait_group 0;\n" END, 1, 0, doubled);
  check("reduction to shared", PAIR_PROLOGUE INIT("bar", "1") "mov.u32 %c, 0;\n" PUT "mad.wide.u32 %s, %t, 4, %i; ld.global.u32 %n, [%s]; st.shared.u32 [%a+1024], %n;\n"
        "fence.proxy.async;\n" EXPECT("bar", "256") "bar.sync 0;\n"
        "@%p cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [tile], [tile+1024], 256, [bar];\n" WAIT("W", "bar", "0") OUTPUT("tile") END,
        1, 0, doubled);
}

Test(cluster, bulk_hazards) {
  static const Pair pairs[] = {
      {.name = "size", .text = PAIR_PROLOGUE INIT("bar", "1") "F:mov.u32 %n, 24;\nR:mov.u32 %n, 32;\n" EXPECT("bar", "%n")
       "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%i], %n, [bar]; // here\n" WAIT("W", "bar", "0") END,
       HAZARD_MISALIGNED, "multiple of 16 bytes, not 24"},
      {.name = "source", .text = PAIR_PROLOGUE INIT("bar", "1") "F:add.u64 %i, %i, 8;\n" EXPECT("bar", "32")
       "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%i], 32, [bar]; // here\n" WAIT("W", "bar", "0") END,
       HAZARD_MISALIGNED, "multiple of 16"},
      {.name = "end of the source", .text = PAIR_PROLOGUE INIT("bar", "1") "F:add.u64 %i, %i, 4080;\n" EXPECT("bar", "32")
       "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%i], 32, [bar]; // here\n" WAIT("W", "bar", "0") END,
       HAZARD_OUT_OF_BOUNDS, "4080 bytes from the start"},
      {.name = "end of the tile", .text = PAIR_PROLOGUE INIT("bar", "1") "F:mov.u32 %a, 9216;\nR:mov.u32 %a, tile;\n" EXPECT("bar", "64")
       "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%i], 64, [bar]; // here\n" WAIT("W", "bar", "0") END,
       HAZARD_OUT_OF_BOUNDS, "shared memory"},
      // Reading it back needs the whole store, not only its reading of shared memory.
      {.name = "read back after wait_group.read", .text = PAIR_PROLOGUE "mov.u32 %c, 0;\n" PUT "fence.proxy.async;\nbar.sync 0;\n"
       "@%p cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256;\n@%p cp.async.bulk.commit_group;\n"
       "F:@%p cp.async.bulk.wait_group.read 0;\nR:@%p cp.async.bulk.wait_group 0;\n@%p ld.global.u32 %v, [%o]; // here\n" END,
       HAZARD_READ_BEFORE_WAIT, "has not waited"},
      {.name = "not committed", .text = PAIR_PROLOGUE "mov.u32 %c, 0;\n" PUT "fence.proxy.async;\nbar.sync 0;\n"
       "@%p cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 256;\nR:@%p cp.async.bulk.commit_group;\n@%p cp.async.bulk.wait_group 0;\n"
       "@%p st.shared.u32 [%a], %t; // here\nF:@%p cp.async.bulk.commit_group;\nF:@%p cp.async.bulk.wait_group 0;\n" END,
       HAZARD_OVERWRITE_IN_FLIGHT, "reads"},
  };
  RUN_PAIRS(pairs);
}

// ---- fences and hints ----

static uint32_t of_thread(unsigned block, unsigned thread) { return (void)block, thread; }

Test(cluster, fences_and_hints) {
  check("all forms", PAIR_PROLOGUE
        "fence.sc.cluster; fence.acq_rel.gpu; fence.acquire.sync_restrict::shared::cluster.cluster; fence.release.sync_restrict::shared::cta.cluster;\n"
        "fence.proxy.alias; fence.proxy.async; fence.proxy.async.global; fence.proxy.async.shared::cluster; membar.gl;\n"
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster; fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n"
        "fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.sys [%m], 128;\n"
        "griddepcontrol.wait; griddepcontrol.launch_dependents; nanosleep.u32 20; mov.u32 %n, 30; nanosleep.u32 %n;\n"
        "createpolicy.fractional.L2::evict_last.b64 %s, 0.5; createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %s, 1.0;\n"
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %s, [%i], 64, 128; prefetch.tensormap [%m];\n"
        "mov.u32 %v, %t;\n" STORE_V END, 1, 0, of_thread);
}

Test(cluster, refused) {
  static const RefusedTest tests[] = {
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
