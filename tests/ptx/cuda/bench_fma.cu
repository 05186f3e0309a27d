// What `make bench-emulator` times: full warps of fp32 multiply-adds, four independent chains a thread.
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
