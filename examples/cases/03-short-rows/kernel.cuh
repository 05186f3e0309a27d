// The largest score of each row, for a softmax. A warp takes a row.
#pragma once

__global__ void row_max(const float *scores, float *largest, int columns) {
  int lane = threadIdx.x;
  const float *row = scores + blockIdx.x * columns;
  if (lane >= columns) return;  // nothing to do
  float best = row[lane];
  for (int i = lane + 32; i < columns; i += 32) best = fmaxf(best, row[i]);
  for (int step = 16; step; step /= 2) best = fmaxf(best, __shfl_xor_sync(0xffffffff, best, step));
  if (lane == 0) largest[blockIdx.x] = best;
}

void run_row_max(const float *scores, float *largest, int rows, int columns) {
  row_max<<<rows, 32>>>(scores, largest, columns);
}
