// Stage 11c: the softmax of a key tile runs while PV of the previous key tile runs, and finds its maximum with half
// the instructions, as a maximum of integers.
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

#include "../10b-fp8-scores/scores.h"

#include "../10c-fp8-values/promotion.h"

#include "../11-fp8/products.h"

#include "../10c-fp8-values/softmax.h"

#include "consumer.h"

#include "../shared/entry_points.h"
