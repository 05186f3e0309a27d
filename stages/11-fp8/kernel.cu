// Stage 11: products in eight bits. Q, K and V are e4m3, and so are the weights. wgmma is then 32
// deep instead of 16, but both factors must be K-major, so another kernel transposes V first.
//
// For each tile of keys a consumer does, as in stage 08b,
//
//   S = Q K^T     of this tile            both on the tensor cores, in the background,
//   T = P V       of the tile before      when it is the consumer's turn;
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

#include "products.h"

#include "softmax.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : ExactMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {};

#include "../shared/entry_points.h"

#include "transpose_values.h"
