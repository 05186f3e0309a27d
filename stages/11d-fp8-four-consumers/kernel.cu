// Stage 11d: serial consumers. Each does one thing after the other: QK, the softmax, PV. While one waits, the others
// compute. So T can take the registers of S, P stays in registers, and there is room for one consumer more: four with
// HEAD_DIM = 64, three with 128.
//
// Its search is stage 11c's, its producer stage 11b's.
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/ldmatrix.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile_bytes.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma_e4m3.h"

#include "../11b-fp8-transpose/producer.h"

#include "../09b-diagonal/consumer.h"
#include "counting_ring.h"

#include "../10b-fp8-scores/scores.h"

#include "../10c-fp8-values/promotion.h"

#include "../11-fp8/products.h"

#include "../10c-fp8-values/softmax.h"

#include "../11c-fp8-overlap/integer_max.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : IntegerMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = IntegerMax<Consumer, HEAD_DIM, CAUSAL>;
  using Base::s, Base::p, Base::t, Base::o, Base::sum, Base::factor, Base::q, Base::k, Base::v, Base::shared, Base::key;
  using Base::wait, Base::release, Base::take_turn, Base::pass_turn, Base::problem, Base::warpgroup, Base::steps;
  static constexpr bool WEIGHTS_IN_MEMORY = false, STRIDED = true;

  // The weights of 32 keys, packed.
  template <int FROM> __device__ void weights_of_32() {
    Base::template weights<FROM, FROM + 32>();
    Base::template pack_keys<FROM, FROM + 32>();
  }

  // The weights of a key tile, those of the last 32 keys in a turn: their P has registers that T will not need. ptxas
  // may move exponentials up across take_turn, but not before the search ends, because they need the shift. And it may
  // move them down across pass_turn, but not across the loop that waits for V. So that wait comes after all weights.
  __device__ void weights_and_turn() {
    trace(WAIT_TURN, steps);
    take_turn();
    trace(SOFTMAX_REST, steps);
    weights_of_32<96>();
    computed_here(__uint_as_float(p[3][0] ^ p[3][1] ^ p[3][2] ^ p[3][3]));
    pass_turn();
    weights_of_32<64>();
    weights_of_32<32>();
    weights_of_32<0>();
  }

  // Starts columns FROM to TO of T = P V. From column HEAD_DIM on they are sums of the weights.
  template <int FROM, int TO> __device__ void output() {
    uint64_t b = k_major_bytes<KEYS>(shared_address(shared.v[v.slot]) + FROM * KEYS);
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < KEYS / 32; n++)
      wgmma_e4m3<TO - FROM>(slice<(TO - FROM) / 2>(t, FROM / 2), p[n], columns_32(b, n), n > 0);
    wgmma_commit();
  }

  // When they are done: O = O * factor + T.
  template <int FROM, int TO> __device__ void output_done() {
    wgmma_results(slice<(TO - FROM) / 2>(t, FROM / 2));
#pragma unroll
    for (int i = FROM / 2; i < min(TO, HEAD_DIM) / 2; i++) o[i] = o[i] * factor[i / 2 % 2] + t[i];
    if (TO > HEAD_DIM)
      for (int h = 0; h < 2; h++) sum[h] = sum[h] * factor[h] + t[HEAD_DIM / 2 + 2 * h];
  }

  // T = P V, and O = O * factor + T. With HEAD_DIM = 128 T comes in two groups: half is added while the rest still
  // runs.
  __device__ void add_output() {
    const int HALF = HEAD_DIM == 64 ? 0 : HEAD_DIM / 2;
    output<HALF, HEAD_DIM + ONES>();
    if constexpr (HALF > 0) output<0, HALF>();
    trace(WAIT_PV, steps);
    wgmma_wait<(HALF > 0)>();
    output_done<HALF, HEAD_DIM + ONES>();
    if constexpr (HALF > 0) {
      wgmma_wait<0>();
      output_done<0, HALF>();
    }
  }

  // A key tile from its scores to its output.
  template <bool FIRST> __device__ void key_tile() {
    trace(WAIT_K, steps);
    wait(k, shared.k_full);
    trace(QK, steps);
    Base::template scores<KEYS>();
    trace(WAIT_QK, steps);
    wgmma_wait<0>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    release(k, shared.k_empty);
    if constexpr (FIRST) {
      if (CAUSAL || key + KEYS > problem.seqlen) Base::template mask<KEYS>();
      Base::first_shift();
      Base::tile_begins();
    } else {
      Base::raise_max(factor);
    }
    weights_and_turn();
    trace(WAIT_V, steps);
    wait(v, shared.v_full);
    trace(PV, steps);
    add_output();
    trace_done(PV, steps);
    release(v, shared.v_empty);
    steps++;
  }

  __device__ int number() { return warpgroup; }  // kept in a register: it is needed twice in each key tile

  // The first key of a tile's first key tile. Without a mask it is computed again, which saves a register.
  __device__ int first_key() {
    int seqlen = problem.seqlen;
    asm volatile("" : "+r"(seqlen));
    return CAUSAL ? key : (seqlen - 1) / KEYS * KEYS;
  }

  // Skips keys and values to the right of this warpgroup's rows.
  __device__ bool find_next() {
    if (!Base::find_next()) return false;
    Base::skip_values();
    return true;
  }

  __device__ void run() {
    trace_begin(CONSUMER);
    if (warpgroup == Base::S::CONSUMERS - 1) pass_turn();  // the first turn is consumer 0's
    while (find_next()) {
      key_tile<true>();
      for (int tiles = first_key() / KEYS; tiles > 0; tiles--) key_tile<false>();
      trace(STORE, steps - 1);
      Base::store(sum, q.slot, 0, 0);
      q.advance();
    }
    if (warpgroup == 0) take_turn();  // the turn that the last consumer has passed on
    trace_end();
  }
};

#include "../shared/entry_points.h"
