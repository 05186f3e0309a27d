// Stage 11c: the softmax of a key tile runs under the output of the key tile before it, and finds its maximum with half the
// instructions, as a maximum of integers.
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

#include "../11-fp8/softmax.h"

template <int HEAD_DIM, bool CAUSAL>
struct Consumer : ExactMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = ExactMax<Consumer, HEAD_DIM, CAUSAL>;
  using Base::release, Base::raise_max, Base::output_done, Base::s, Base::factor, Base::k, Base::v, Base::shared;
  using Base::steps;
  // Keys whose weights are computed while PV runs. With HEAD_DIM = 128, T and P are in registers as well, so they are few.
  enum { UNDER_PV = HEAD_DIM == 64 ? KEYS : 32 };

  // The largest of a row's scores. Of three integers the GPU finds the largest in one instruction, of floats only of two.
  // Floats that are not negative have the order of their bits as integers. Where this thread has negative ones alone, the
  // warp compares floats.
  template <int N> __device__ float row_max(int h) {
    int even = __float_as_int(s[2 * h]), odd = __float_as_int(s[2 * h + 1]);
#pragma unroll
    for (int i = 4; i < N / 2; i += 4) {
      int &largest = i % 8 ? even : odd;
      largest = max(largest, max(__float_as_int(s[i + 2 * h]), __float_as_int(s[i + 2 * h + 1])));
    }
    int largest = max(even, odd);
    if (__any_sync(0xffffffff, largest < 0)) return Base::template row_max<N>(h);
    return quad_max(__int_as_float(largest));
  }

  // PV of the key tile before was computed with the shift before. So its output is added to O before O shrinks by the factor
  // of this key tile.
  __device__ void end_step() {
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    float older[2] = {factor[0], factor[1]};
    raise_max();
    Base::template weights<0, UNDER_PV>();
    computed_here(s[UNDER_PV / 2 - 1]);
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    float newer[2] = {factor[0], factor[1]};
    factor[0] = older[0], factor[1] = older[1];
    output_done();
    factor[0] = newer[0], factor[1] = newer[1];
    trace_done(PV, steps - 1);
    trace(SOFTMAX_REST, steps);
    release(k, shared.k_empty);
    release(v, shared.v_empty);
    Base::template weights<UNDER_PV, KEYS>();
    Base::template pack_weights<KEYS>();
    steps++;
  }
};

#include "../09b-diagonal/entry_points.h"
