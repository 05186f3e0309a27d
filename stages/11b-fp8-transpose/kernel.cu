// Stage 11b: V is transposed on its way. TMA loads it as it is, and two warps of the producer's warpgroup transpose
// each tile in shared memory, while the consumers are at work.
//
// All else is stage 11's.
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

#include "producer.h"

#include "../09b-diagonal/consumer.h"

#include "../10b-fp8-scores/scores.h"

#include "../10c-fp8-values/promotion.h"

#include "../11-fp8/products.h"

#include "../10c-fp8-values/softmax.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : ExactMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {};

#include "../shared/entry_points.h"
