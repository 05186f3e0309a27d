// RMS norm: each row of x is divided by the root of the mean of its squares. A block of 128 threads takes a row.
#pragma once

enum { THREADS = 128 };

__global__ void rms_norm(const float *x, float *y, int columns) {
  __shared__ float squares[THREADS];
  const float *row = x + (size_t)blockIdx.x * columns;
  int t = threadIdx.x;
  float sum = 0;
  for (int first = 0; first < columns; first += THREADS) {
    if (first + t < columns) squares[t] = row[first + t] * row[first + t];
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
      if (t < half) squares[t] += squares[t + half];
      __syncthreads();
    }
    sum += squares[0];
    __syncthreads();
  }
  float factor = rsqrtf(sum / columns + 1e-6f);
  for (int i = t; i < columns; i += THREADS) y[(size_t)blockIdx.x * columns + i] = row[i] * factor;
}

void run_rms_norm(const float *x, float *y, int rows, int columns) { rms_norm<<<rows, THREADS>>>(x, y, columns); }
