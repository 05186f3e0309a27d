// Reads of memory that nothing has written.
#include "kernels.h"

// The result is added to what the buffer holds, and it holds nothing yet.
// launch accumulator: grid 1 block 64 args float[64] float[64]=fresh
extern "C" __global__ void accumulator(const float *in, float *out) {
#ifdef REPAIRED
  out[threadIdx.x] = in[threadIdx.x];
#else
  out[threadIdx.x] += in[threadIdx.x];  // HAZARD(accumulator): uninitialised read
#endif
}

// The threads past the end leave their element of the tile as it is, and all elements are summed.
// launch guarded_tile: grid 2 block 128 args float[200] float[256]=zero 200
extern "C" __global__ void guarded_tile(const float *in, float *out, int n) {
  __shared__ float tile[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
#ifdef REPAIRED
  tile[t] = i < n ? in[i] : 0;
#else
  if (i < n) tile[t] = in[i];
#endif
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 128; k++) sum += tile[k];  // HAZARD(guarded_tile): uninitialised read
  out[i] = sum;
}

// Nobody loads the two elements beside the tile.
// launch halo: grid 1 block 64 args float[64] float[64]=zero
extern "C" __global__ void halo(const float *in, float *out) {
  __shared__ float tile[66];
  int t = threadIdx.x;
  tile[t + 1] = in[t];
#ifdef REPAIRED
  if (t < 2) tile[65 * t] = 0;
#endif
  __syncthreads();
  out[t] = tile[t] + tile[t + 2];  // HAZARD(halo): uninitialised read
}

// Shared memory does not begin as zero.
// launch shared_counter: grid 1 block 64 args int[64] int[1]=zero
extern "C" __global__ void shared_counter(const int *in, int *out) {
  __shared__ int count;
#ifdef REPAIRED
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
#endif
  if (in[threadIdx.x] % 3 == 0) atomicAdd(&count, 1);  // HAZARD(shared_counter): uninitialised read
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}

// Scores above the diagonal are never written, and the maximum is taken over whole rows.
// launch causal_scores: grid 1 block 16 args float[256] float[16]=zero
extern "C" __global__ void causal_scores(const float *in, float *out) {
  __shared__ float scores[16][16];
  int row = threadIdx.x;
  for (int key = 0; key < 16; key++) {
    if (key <= row) scores[row][key] = in[16 * row + key];
#ifdef REPAIRED
    else scores[row][key] = -INFINITY;
#endif
  }
  __syncwarp();
  float most = -INFINITY;
  for (int key = 0; key < 16; key++) most = fmaxf(most, scores[row][key]);  // HAZARD(causal_scores): uninitialised read
  out[row] = most;
}

// Three of four local elements get a value.
// launch local_fourth: grid 1 block 32 args int[32] int[32]=zero
extern "C" __global__ void local_fourth(const int *in, int *out) {
  int choices[4], t = threadIdx.x;
#ifdef REPAIRED
  int count = 4;
#else
  int count = 3;
#endif
  for (int i = 0; i < count; i++) choices[i] = i * in[t];
  out[t] = choices[in[t] % 4];  // HAZARD(local_fourth): uninitialised read
}

// Three floats of a record are written, four are read.
// launch record: grid 1 block 32 args float[128]=fresh float[32]=zero
extern "C" __global__ void record(float *records, float *out) {
  int t = threadIdx.x;
  records[4 * t] = t;
  records[4 * t + 1] = t + 1;
  records[4 * t + 2] = t + 2;
#ifdef REPAIRED
  records[4 * t + 3] = 0;
#endif
  __syncwarp();
  float4 all = ((const float4 *)records)[31 - t];  // HAZARD(record): uninitialised read
  out[t] = all.x + all.y + all.z + all.w;
}

__device__ __noinline__ bool find(const int *in, int *value) {
  bool found = in[threadIdx.x] % 3 == 0;
  if (found) *value = in[threadIdx.x] / 3;
  return found;
}

// The value is used where none was found. nvcc loads it in any case, and selects then: only the selection tells.
// launch found_or_not: grid 1 block 64 args int[64] int[64]=zero
extern "C" __global__ void found_or_not(const int *in, int *out) {
  int value;
  bool found = find(in, &value);
#ifdef REPAIRED
  out[threadIdx.x] = found ? value : -1;
#else
  out[threadIdx.x] = found ? -1 : value;  // HAZARD(found_or_not): uninitialised read
#endif
}
