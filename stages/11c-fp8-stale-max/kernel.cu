// Stage 11c: the stale maximum of stage 10 for weights in eight bits, of which far fewer fit. A check of the packed weights
// shows whether all of them do, and if not, the warpgroup computes its scores again. From then on it looks for the maximum.
//
// All else is stage 11b's.
#include <cuda_fp16.h>
#include <stdint.h>

#include "../11-fp8/tiles.h"

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

#include "../11-fp8/products.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : Products<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = Products<Consumer, HEAD_DIM, CAUSAL>;
  using S = typename Base::S;
  using Base::release, Base::begin_step, Base::number, Base::output_done, Base::shrink_output, Base::s, Base::p;
  using Base::shift, Base::factor, Base::q, Base::k, Base::v, Base::shared, Base::key, Base::steps;
  float scale;  // of this head's scores, with log2(e) / sqrt(HEAD_DIM)
  bool exact;   // some weights of this tile did not fit

  // The first key tile's largest weight is 2^4, and later ones may be 2^4 times as large: e4m3 ends at 448. 2^-10 and below
  // becomes 0.
  __device__ float shift_of_max(float max) { return 4 - max * scale; }

  // Weights in the place of the scores of keys FROM to TO.
  template <int FROM, int TO> __device__ void weights() {
#pragma unroll
    for (int i = FROM / 2; i < TO / 2; i++) s[i] = power_of_two(s[i] * scale + shift[i / 2 % 2]);
  }

  template <int> __device__ void first_weights() {
    scale = shared.score_scale[q.slot];
#pragma unroll
    for (int h = 0; h < 2; h++) shift[h] = shift_of_max(Base::template row_max<KEYS>(h));
    weights<0, KEYS>();
  }
  __device__ void tile_begins() {
    Base::tile_begins();
    exact = __CUDACC_VER_MAJOR__ < 13;  // with CUDA 12 always: its ptxas finds no registers for the check
  }

  // Lazy rescaling, as in stage 02c: when a weight would exceed 2^8, the row's shift follows its maximum. True if so: then
  // everything older shrinks by `factor`.
  __device__ bool raise_max() {
    float lower[2];
#pragma unroll
    for (int h = 0; h < 2; h++) lower[h] = fminf(shift[h], shift_of_max(Base::template row_max<KEYS>(h)));
    if (!__any_sync(0xffffffff, fmaxf(shift[0] - lower[0], shift[1] - lower[1]) > 4)) return false;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      factor[h] = power_of_two(lower[h] - shift[h]);
      shift[h] = lower[h];
    }
    return true;
  }

  // Whether all weights of the warpgroup, as rounded, are below 2^8, which is 0x78 in e4m3.
  __device__ bool weights_fit() {
    uint32_t large = 0;
#pragma unroll
    for (int n = 0; n < KEYS / 32; n++)
#pragma unroll
      for (int j = 0; j < 4; j++) large |= p[n][j] + 0x08080808;
    return !barrier_or(2 + S::CONSUMERS + number(), WARPGROUP, large & 0x80808080);
  }

  // Some packed weights do not fit, and s no longer holds scores. K is still in its slot. All four warps are here, so wgmma
  // can compute the scores again.
  __device__ void start_again() {
    Base::template scores<KEYS>();
    wgmma_wait<0>();
    wgmma_results(s);
    if (raise_max()) shrink_output();
    weights<0, KEYS>();
    Base::template pack_weights<KEYS>();
    exact = true;
  }

  // With HEAD_DIM = 128 a quarter of the weights is computed before the wait for PV.
  __device__ void end_step() {
    const int UNDER_PV = HEAD_DIM == 64 ? 0 : 32;
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    bool grew = HEAD_DIM == 128 && exact && raise_max();
    weights<0, UNDER_PV>();
    if (UNDER_PV) computed_here(s[UNDER_PV / 2 - 1]);
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    output_done();
    trace_done(PV, steps - 1);
    trace(SOFTMAX_REST, steps);
    release(v, shared.v_empty);
    if (HEAD_DIM == 64) grew = exact && raise_max();
    if (grew) shrink_output();
    weights<UNDER_PV, KEYS>();
    Base::template pack_weights<KEYS>();
    if (!exact && !weights_fit()) start_again();
    release(k, shared.k_empty);
    steps++;
  }

  __device__ int other_tiles() {
    while (key > 0) {
      begin_step(1);
      end_step();
    }
    return 1;
  }
};

#include "../09b-diagonal/entry_points.h"
