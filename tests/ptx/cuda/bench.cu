// What `make bench-emulator` times: kernels as nvcc compiles them.

// Full warps of fp32 multiply-adds, four independent chains a thread.
extern "C" __global__ void fma_chains(float *out, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i, b = a + 1, c = a + 2, d = a + 3;
  for (int step = 0; step < steps; step++) {
    a = a * 0.5f + 1;
    b = b * 0.5f + 2;
    c = c * 0.5f + 3;
    d = d * 0.5f + 4;
  }
  out[i] = a + b + c + d;
}

// An initialiser: each thread writes one element.
extern "C" __global__ void initialise(float *out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = 0.25f * (i % 16);
}

// A reference kernel: each thread computes one element of a product of square matrices.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int size) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= size || column >= size) return;
  float sum = 0;
  for (int k = 0; k < size; k++) sum += a[row * size + k] * b[k * size + column];
  c[row * size + column] = sum;
}
