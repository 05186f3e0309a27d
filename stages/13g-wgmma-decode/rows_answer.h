// What the blocks of a cluster have of each row is combined here. The rows are shared out among the blocks. A thread reads
// 8 columns of a row from the shared memory of all blocks.
#pragma once

#include "../13d-ragged/rows.h"
#include "ptx/cluster.h"

#include "rows_consumer.h"

// lse: where the caller wants the log-sum-exp, [batch][key head][row]; else a null pointer.
template <int HEAD_DIM>
__device__ void answer(const Work &work, const RowParts<HEAD_DIM> &parts, int batch, int head, int first, float *lse) {
  constexpr int CHUNKS = HEAD_DIM / 8;
  int rank = cluster_rank(), blocks = cluster_size(), rows = min(rows_of(work) - first, (int)ROWS);
  int begin = rows * rank / blocks, end = rows * (rank + 1) / blocks;
  for (int i = begin * CHUNKS + threadIdx.x; i < end * CHUNKS; i += BLOCK_THREADS) {
    int row = i / CHUNKS, column = i % CHUNKS * 8;
    uint32_t o_at = shared_address(parts.o[row] + column), max_at = shared_address(parts.max + row);
    uint32_t sum_at = shared_address(parts.sum + row);
    float max = -INFINITY, sum = 0;
    float2 o[4] = {};
    for (int b = 0; b < blocks; b++) max = fmaxf(max, load_cluster(in_block(max_at, b)));
    float base = RowsConsumer<HEAD_DIM>::finite(max);
#pragma unroll 2
    for (int b = 0; b < blocks; b++) {
      float weight = power_of_two(load_cluster(in_block(max_at, b)) - base);  // of a block without keys 2^-infinity, 0
      sum += weight * load_cluster(in_block(sum_at, b));
      uint32_t part = in_block(o_at, b);
#pragma unroll
      for (int p = 0; p < 4; p++) {
        float2 x = load_cluster_pair(part + p * (int)sizeof(float2));
        o[p].x += weight * x.x;
        o[p].y += weight * x.y;
      }
    }
    float inverse = sum > 0 ? 1 / sum : 0;
    *(uint4 *)(work.problem.o + row_offset(work, work.o, batch, head, first + row) + column) =
        uint4{pack_bf16(o[0].x * inverse, o[0].y * inverse), pack_bf16(o[1].x * inverse, o[1].y * inverse),
              pack_bf16(o[2].x * inverse, o[2].y * inverse), pack_bf16(o[3].x * inverse, o[3].y * inverse)};
    if (lse && column == 0)
      lse[(size_t)(batch * work.problem.kv_heads + head) * rows_of(work) + first + row] = logf(sum) + base * LN_2;
  }
}
