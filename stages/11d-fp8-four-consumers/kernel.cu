// Stage 11d: with HEAD_DIM = 64 there are four consumers instead of three, and each does one thing after the other: QK, the
// softmax, PV. While one waits, the others compute. So T can take the registers of S, and P stays in registers.
//
// With HEAD_DIM = 128, and in all else, it is stage 11c.
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

#include "../11-fp8/products.h"

#include "../11-fp8/softmax.h"

#include "../11c-fp8-overlap/consumer.h"

template <bool CAUSAL> struct Consumer<64, CAUSAL> : IntegerMax<Consumer<64, CAUSAL>, 64, CAUSAL> {
  using Base = IntegerMax<Consumer, 64, CAUSAL>;
  using Base::s, Base::p, Base::shift, Base::factor, Base::sum, Base::q, Base::k, Base::v, Base::shared, Base::key;
  using Base::wait, Base::release, Base::take_turn, Base::pass_turn, Base::shift_of_max, Base::problem;
  using Base::warpgroup, Base::steps;
  static constexpr bool WEIGHTS_IN_MEMORY = false;

  // The shifts follow the maxima, and O and the sums shrink at once, but only if a maximum of the warp has grown.
  __device__ void raise_max() {
    float max[2], lower[2];
    Base::find_max(max);
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], shift_of_max(max[h]));
    if (!__any_sync(0xffffffff, lower[0] < shift[0] || lower[1] < shift[1])) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      factor[h] = power_of_two(lower[h] - shift[h]);
      shift[h] = lower[h];
    }
    Base::shrink_output();
  }

  // The weights of 32 keys, packed.
  template <int FROM> __device__ void weights_of_32() {
    Base::template weights<FROM, FROM + 32>();
    Base::template pack_keys<FROM, FROM + 32>();
  }

  // The weights of a key tile, those of the later keys in a turn: their P has registers that T will not need. ptxas moves
  // exponentials up across take_turn and down across pass_turn, and only the branches before and behind stop it: the one in
  // raise_max, and the wait for V. So that wait comes after all weights. Behind it the last ones could not begin early.
  __device__ void weights_and_turn() {
    trace(WAIT_TURN, steps);
    take_turn();
    trace(SOFTMAX_REST, steps);
    weights_of_32<96>();
    weights_of_32<64>();
    uint32_t all = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) all ^= p[2 + i / 4][i % 4];
    computed_here(__uint_as_float(all));
    pass_turn();
    weights_of_32<32>();
    weights_of_32<0>();
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
      raise_max();
    }
    weights_and_turn();
    trace(WAIT_V, steps);
    wait(v, shared.v_full);
    trace(PV, steps);
    Base::output();
    trace(WAIT_PV, steps);
    wgmma_wait<0>();
    Products<Consumer, 64, CAUSAL>::output_done();  // O += T: the factor has been applied
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

#include "../09b-diagonal/entry_points.h"
