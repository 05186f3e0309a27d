// What the blocks of a cluster have of each row is combined here. The rows are shared out among the blocks. A thread
// reads 4 columns of each half of a row from the shared memory of all blocks. The next thread reads the next 4 columns,
// so that a load of a warp reads whole lines, without bank conflicts.
#pragma once

#include "../13d-ragged/rows.h"
#include "ptx/cluster.h"

#include "rows_consumer.h"

// lse: where the caller wants the log-sum-exp, [batch][key head][row]; else a null pointer.
template <int HEAD_DIM>
__device__ void answer(const Work &work, const RowParts<HEAD_DIM> &parts, int batch, int head, int first, float *lse) {
  constexpr int CHUNKS = HEAD_DIM / 8, HALF = HEAD_DIM / 2;
  int rank = cluster_rank(), blocks = cluster_size(), rows = min(rows_of(work) - first, (int)ROWS);
  int begin = rows * rank / blocks, end = rows * (rank + 1) / blocks;
  for (int i = begin * CHUNKS + threadIdx.x; i < end * CHUNKS; i += BLOCK_THREADS) {
    int row = i / CHUNKS, column = i % CHUNKS * 4;
    uint32_t o_at = shared_address(parts.o[row] + column), max_at = shared_address(parts.max + row);
    uint32_t sum_at = shared_address(parts.sum + row);
    float max = -INFINITY, sum = 0;
    float4 o[2] = {};
    for (int b = 0; b < blocks; b++) max = fmaxf(max, load_cluster(in_block(max_at, b)));
    float base = RowsConsumer<HEAD_DIM>::finite(max);
#pragma unroll 2
    for (int b = 0; b < blocks; b++) {
      float weight = power_of_two(load_cluster(in_block(max_at, b)) - base);  // of a block without keys 2^-infinity, 0
      sum += weight * load_cluster(in_block(sum_at, b));
      uint32_t part = in_block(o_at, b);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float4 x = load_cluster_four(part + h * HALF * (int)sizeof(float));
        o[h].x += weight * x.x;
        o[h].y += weight * x.y;
        o[h].z += weight * x.z;
        o[h].w += weight * x.w;
      }
    }
    float inverse = sum > 0 ? 1 / sum : 0;
    __nv_bfloat16 *to = work.problem.o + row_offset(work, work.o, batch, head, first + row) + column;
#pragma unroll
    for (int h = 0; h < 2; h++)
      *(uint2 *)(to + h * HALF) =
          uint2{pack_bf16(o[h].x * inverse, o[h].y * inverse), pack_bf16(o[h].z * inverse, o[h].w * inverse)};
    if (lse && column == 0)
      lse[(size_t)(batch * work.problem.kv_heads + head) * rows_of(work) + first + row] = logf(sum) + base * LN_2;
  }
}
