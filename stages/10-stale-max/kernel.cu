// Stage 10: a softmax that does not search for the maximum. Only a tile's first keys get their exact maximum. All later
// weights are computed with this stale maximum at once, and a check of their sum shows whether they fit into fp16. If
// the scores of the first keys are far apart, later weights would hardly fit. Such a tile searches in each step, as in
// stage 09b.
//
// All else is stage 09b's. For each tile of keys a consumer does
//
//   S = Q K^T     of this tile            both on the tensor cores, in the background,
//   O += P V      of the previous tile    when it is the consumer's turn;
//   P = exp(S)    of this tile            meanwhile, as soon as S is there
#include <cuda_fp16.h>
#include <stdint.h>

#include "../09b-diagonal/tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
#include "ptx/log_sum_exp.h"
#include "ptx/math.h"
#include "ptx/mbarrier.h"
#include "ptx/quad.h"
#include "ptx/registers.h"
#include "ptx/ring.h"
#include "ptx/stmatrix.h"
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

#include "../09b-diagonal/producer.h"

#include "../09b-diagonal/consumer.h"
#include "scores_again.h"

// Votes on a tile, by the slot of its queries: how many threads of each warp found its scores far apart. They lie
// outside of the dynamic shared memory that struct Shared describes, because that struct is stage 09b's.
__shared__ int votes[QUERY_SLOTS_OF(64)][CONSUMERS_OF(64)][WARPGROUP / WARP];  // HEAD_DIM = 128 has fewer

template <int HEAD_DIM, bool CAUSAL, bool LSE = false>  // LSE: also stores the log-sum-exp of each row
struct Consumer : ConsumerBase<Consumer<HEAD_DIM, CAUSAL, LSE>, HEAD_DIM, CAUSAL> {
  using Base = ConsumerBase<Consumer, HEAD_DIM, CAUSAL>;
  using S = typename Base::S;
  using Base::arrive, Base::release, Base::release_queries, Base::begin_step, Base::raise_max, Base::shrink_output;
  using Base::s, Base::o, Base::shift, Base::sum, Base::factor, Base::q, Base::k, Base::v, Base::shared, Base::problem;
  using Base::warpgroup, Base::elected, Base::head, Base::row, Base::key, Base::steps;
  float new_sum[2];  // of the weights of this key tile; sum has those of the earlier ones

  // Replaces the scores of keys FROM to TO by weights, and adds the weights up.
  template <int FROM, int TO> __device__ void weights() {
    float odd[2] = {0, 0};
    if (FROM == 0) new_sum[0] = new_sum[1] = 0;
#pragma unroll
    for (int i = FROM / 2; i < TO / 2; i += 4)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        s[i + 2 * h] = power_of_two(s[i + 2 * h] * problem.scale + shift[h]);
        s[i + 2 * h + 1] = power_of_two(s[i + 2 * h + 1] * problem.scale + shift[h]);
        new_sum[h] += s[i + 2 * h];
        odd[h] += s[i + 2 * h + 1];
      }
    new_sum[0] += odd[0];
    new_sum[1] += odd[1];
  }

  // Weights of a tile's first N keys, with their exact maximum.
  template <int N> __device__ void first_weights() {
#pragma unroll
    for (int h = 0; h < 2; h++) shift[h] = -Base::template row_max<N>(h) * problem.scale;
    weights<0, N>();
#pragma unroll
    for (int h = 0; h < 2; h++) sum[h] = new_sum[h];
  }

  // In the first key tile the largest weight is 1. Where scores are far apart all others are next to nothing.
  __device__ void tile_begins() {
    int peaked = __popc(__ballot_sync(0xffffffff, fmaxf(sum[0], sum[1]) < 1 + 1.f / 32));
    if (elected) votes[q.slot][warpgroup][thread_index() % WARPGROUP / WARP] = peaked;
  }

  // Whether nearly all threads of the warpgroup voted for the exact loop, before they took this turn. A consumer whose
  // rows all lie after the sequence follows consumer 0, because consumers in two different loops are slower. (With
  // CUDA 12 there is only the fast loop: registers do not suffice for both.)
  __device__ bool peaked() {
    const int *of_warp = votes[q.slot][row < problem.seqlen ? warpgroup : 0];
    int all = of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3];
    return __CUDACC_VER_MAJOR__ >= 13 && __shfl_sync(0xffffffff, all > WARPGROUP * 7 / 8, 0);
  }

  // Whether the weights are small enough for fp16, which ends at 65504. No weight is larger than its thread's sum.
  __device__ bool weights_fit() { return !__any_sync(0xffffffff, fmaxf(new_sum[0], new_sum[1]) > 32768); }

  // Some scores are far above the stale maximum. Their weights are exact all the same, because fp32 ends at 2^128. A
  // power of two brings a row's sum to at least 1 and less than 2, and everything older shrinks with it. A smaller sum
  // would be too small: fp16 has all its digits only from 2^-14 on, and of 128 weights that are alike each is tiny.
  __device__ void shrink() {
    float row_sum[2] = {quad_sum(new_sum[0]), quad_sum(new_sum[1])};
    if (__any_sync(0xffffffff, fmaxf(row_sum[0], row_sum[1]) == INFINITY)) {
      start_again();
      return;
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int exponent = (__float_as_int(row_sum[h]) >> 23) - 127;
      exponent = exponent < 14 ? 0 : min(exponent, 126);  // rows that do not fit have 15 or more; 2^-127 is not normal
      factor[h] = __int_as_float((127 - exponent) << 23);
      shift[h] -= exponent;
      sum[h] *= factor[h];
      new_sum[h] *= factor[h];
#pragma unroll
      for (int i = 0; i < KEYS / 2; i += 4)
        for (int e = 0; e < 2; e++) s[i + 2 * h + e] *= factor[h];
    }
    shrink_output();
  }

  // Some weights are infinite, and the scores are gone. The warp computes them anew, and takes the exact maximum.
  __device__ void start_again() {
    int thread = thread_index() - WARPGROUP;
    scores_again<HEAD_DIM, S::ROWS>(s, shared_address(shared.q[q.slot]), thread / WARP * 16,
                                    shared_address(shared.k[k.slot]), thread % WARP);
    if (raise_max()) shrink_output();
    weights<0, KEYS>();
  }

  // The weights of this key tile. The output of the previous one still runs. The weights of UNDER_PV keys come
  // before the wait for it, the others and the packing after it. EXACT: with lazy rescaling, as in stage 09b. There the
  // search for the maximum also comes before the wait, so it leaves time for few weights. Not EXACT: with the stale
  // maximum. The check comes last. Then K is no longer needed, and its slot is released.
  template <bool EXACT> __device__ void end_step() {
    constexpr int UNDER_PV = EXACT ? 8 : HEAD_DIM / 2;
    trace(WAIT_QK, steps);
    wgmma_wait<1>();
    wgmma_results(s);
    trace_done(QK, steps);
    trace(SOFTMAX, steps);
    if (EXACT) arrive(k, shared.k_empty);
    bool grew = EXACT && raise_max();
    weights<0, UNDER_PV>();
    computed_here(new_sum[0] + new_sum[1]);
    trace(WAIT_PV, steps - 1);
    wgmma_wait<0>();
    wgmma_results(s);
    wgmma_results(o);
    trace_done(PV, steps - 1);
    trace(SOFTMAX_REST, steps);
    release(v, shared.v_empty);
    weights<UNDER_PV, KEYS>();
    if (grew) shrink_output();
    Base::template pack_weights<KEYS>();
    if (!EXACT && !weights_fit()) {
      shrink();
      Base::template pack_weights<KEYS>();
    }
    if (!EXACT) arrive(k, shared.k_empty);
    k.advance();
#pragma unroll
    for (int h = 0; h < 2; h++) sum[h] += new_sum[h];
    release_queries();
    steps++;
  }

  // All key tiles of a tile after the first.
  template <bool EXACT> __device__ void other_tiles() {
    while (true) {
      end_step<EXACT>();
      if (key == 0) return;
      begin_step(1);
    }
  }
  __device__ int other_tiles() {
    int accumulate = key > 0;
    if (key > 0) {
      begin_step(0);
      if (peaked())
        other_tiles<true>();
      else
        other_tiles<false>();
    }
    if constexpr (LSE) store_log_sum_exp(problem, head, row, thread_index() % WARPGROUP, shift, sum);
    return accumulate;
  }
};

#include "../shared/entry_points.h"
WITH_LSE(attention_64_lse, 64, false)
WITH_LSE(attention_64_causal_lse, 64, true)
WITH_LSE(attention_128_lse, 128, false)
WITH_LSE(attention_128_causal_lse, 128, true)
