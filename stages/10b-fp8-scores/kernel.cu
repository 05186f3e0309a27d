// Stage 10b: scores from eight bits. Q and K are e4m3, each with a scale, so S = Q K^T runs at twice the speed on half
// the bytes. The weights and V stay fp16.
//
// All else is stage 09b's: for each tile of keys a consumer does
//
//   S = Q K^T     of this tile            both on the tensor cores, in the background,
//   O += P V      of the previous tile    when it is the consumer's turn;
//   P = exp(S)    of this tile            meanwhile, as soon as S is there
#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

#include "ptx/barrier.h"
#include "ptx/fence.h"
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

#include "producer.h"

#include "../09b-diagonal/consumer.h"

#include "../09b-diagonal/softmax.h"

#include "scores.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : LazyMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {
  using Base = LazyMax<Consumer, HEAD_DIM, CAUSAL>;
  using Base::s, Base::q, Base::k, Base::shared, Base::warpgroup;
  float scale;  // of this head's scores: Q's scale times K's times log2(e) / sqrt(HEAD_DIM)

  __device__ float score_scale() { return scale; }

  // Starts S = Q K^T, for the first N keys of the key tile.
  template <int N> __device__ void scores() {
    uint64_t a = k_major_bytes<HEAD_DIM>(shared_address(shared.q[q.slot]) + warpgroup * WARPGROUP_ROWS * HEAD_DIM);
    uint64_t b = k_major_bytes<HEAD_DIM>(shared_address(shared.k[k.slot]));
    start_scores<HEAD_DIM, N>(slice<N / 2>(s, 0), a, b);
  }

  // The first weights of a tile, with the scale of its head.
  template <int N> __device__ void first_weights() {
    scale = shared.score_scale[q.slot];
    Base::template first_weights<N>();
  }

  // No half key tiles with HEAD_DIM = 64: `scale` has the register that they would need.
  __device__ bool half_tile() { return HEAD_DIM == 128 && Base::half_tile(); }

  __device__ half *output_tile(int) { return shared.o; }
};

#include "../shared/entry_points.h"
