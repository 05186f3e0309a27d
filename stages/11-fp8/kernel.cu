// Stage 11: the weights stay in the registers of the scores. As A of an 8-bit product these registers hold the keys in
// another order, and V^T has its keys in that order. Rows of ones below V^T let the tensor cores add up the weights.
//
// For each tile of keys a consumer does, as in stage 08b,
//
//   S = Q K^T     of this tile            both on the tensor cores, in the background,
//   T = P V       of the previous tile    when it is the consumer's turn;
//   O = O * factor + T, P = exp(S)        when both products are complete
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

#include "../10b-fp8-scores/scores.h"

#include "../10c-fp8-values/promotion.h"

#include "products.h"

#include "../10c-fp8-values/softmax.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : ExactMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {};

#include "../shared/entry_points.h"

#include "key_order.h"

#include "../10c-fp8-values/transpose_values.h"
