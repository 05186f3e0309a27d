// What the blocks of a cluster have of each row is combined here. The rows are shared out among the blocks, and among
// their warps. A warp reads a row from the shared memory of all blocks.
#pragma once

#include "../13d-ragged/rows.h"
#include "ptx/cluster.h"

#include "rows_consumer.h"

static constexpr float LN_2 = 0.693147181f;

// lse: where the caller wants the log-sum-exp, [batch][key head][row]; else a null pointer.
template <int HEAD_DIM>
__device__ void answer(const Work &work, const RowParts<HEAD_DIM> &parts, int batch, int head, int first, float *lse) {
  constexpr int PAIRS = HEAD_DIM / 2 / WARP;  // of columns, of each lane
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, rank = cluster_rank(), blocks = cluster_size();
  int rows = min(rows_of(work) - first, (int)ROWS);
  for (int row = rows * rank / blocks + warp; row < rows * (rank + 1) / blocks; row += BLOCK_THREADS / WARP) {
    uint32_t o = shared_address(parts.o[row] + 2 * lane);
    uint32_t max_at = shared_address(parts.max + row), sum_at = shared_address(parts.sum + row);
    float max = -INFINITY, sum = 0;
    float2 all[PAIRS] = {};
    for (int b = 0; b < blocks; b++) max = fmaxf(max, load_cluster(in_block(max_at, b)));
    float base = RowsConsumer<HEAD_DIM>::finite(max);
#pragma unroll 4
    for (int b = 0; b < blocks; b++) {
      float weight = power_of_two(load_cluster(in_block(max_at, b)) - base);  // of a block without keys 2^-infinity, 0
      sum += weight * load_cluster(in_block(sum_at, b));
#pragma unroll
      for (int p = 0; p < PAIRS; p++) {
        float2 part = load_cluster_pair(in_block(o + p * WARP * (int)sizeof(float2), b));
        all[p].x += weight * part.x;
        all[p].y += weight * part.y;
      }
    }
    float inverse = sum > 0 ? 1 / sum : 0;
    uint32_t *to = (uint32_t *)(work.problem.o + row_offset(work, work.o, batch, head, first + row));
#pragma unroll
    for (int p = 0; p < PAIRS; p++) to[p * WARP + lane] = pack_bf16(all[p].x * inverse, all[p].y * inverse);
    if (lse && lane == 0)
      lse[(size_t)(batch * work.problem.kv_heads + head) * rows_of(work) + first + row] = logf(sum) + base * LN_2;
  }
}
