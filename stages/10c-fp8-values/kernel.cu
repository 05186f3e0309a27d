// Stage 10c: values and weights in eight bits. wgmma wants V with its keys along the rows, so another kernel transposes
// it first. And an FP8 tensor core keeps only 13 bits of a sum. So PV of each key tile goes into separate registers, T,
// which are then added to the output in fp32.
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
#include "ptx/tile_bytes.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma_e4m3.h"

enum { FILLERS_OF_V = 1 };
#include "shared.h"

template <int HEAD_DIM> struct Shared : Rings<HEAD_DIM> {};

#include "producer.h"

#include "../09b-diagonal/consumer.h"

#include "../10b-fp8-scores/scores.h"

#include "promotion.h"

#include "products.h"

#include "softmax.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : ExactMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {};

#include "../shared/entry_points.h"

#include "key_order.h"

#include "transpose_values.h"
