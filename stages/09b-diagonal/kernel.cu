// Stage 09b: the diagonal. Under a causal mask every second consumer sees only half of its first key tile, and computes
// only that half. A head is cut into tiles so that its incomplete tile has the fewest keys.
//
// For each tile of keys a consumer does, as in stage 08b,
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
#include "ptx/tile.h"
#include "ptx/tma.h"
#include "ptx/trace.h"
#include "ptx/wgmma.h"

#include "producer.h"

#include "consumer.h"

#include "softmax.h"

template <int HEAD_DIM, bool CAUSAL> struct Consumer : LazyMax<Consumer<HEAD_DIM, CAUSAL>, HEAD_DIM, CAUSAL> {};

#include "../shared/entry_points.h"
