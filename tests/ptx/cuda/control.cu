// Control flow: a switch, a jump table (inline: nvcc makes none), loops with and without pragmas, local arrays, early
// exits, inlining in depth.
__device__ __forceinline__ float inner(float x, int i) { return x * i + 1.0f / (x + i); }
__device__ __forceinline__ float middle(float x, int i) { return inner(x, i) - inner(x + 1, i + 1); }
__device__ __forceinline__ float outer(float x, int i) { return middle(x, i) * middle(x, -i); }

// 10, 20 or 30. The braces give every inlined copy labels of its own.
__device__ __forceinline__ int jump(int which) {
  int result;
  asm("{\n"
      "table: .branchtargets ten, twenty, thirty;\n"
      "brx.idx %1, table;\n"
      "ten: mov.b32 %0, 10; bra.uni done;\n"
      "twenty: mov.b32 %0, 20; bra.uni done;\n"
      "thirty: mov.b32 %0, 30;\n"
      "done:\n"
      "}"
      : "=r"(result)
      : "r"(which));
  return result;
}

extern "C" __global__ void control(float *x, const int *choice, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  switch (choice[i]) {
  case 0: v += 1; break;
  case 1: v *= 3; break;
  case 2: v = -v;  // fall through
  case 3: v = sqrtf(v); break;
  case 4: v = exp2f(v); break;
  case 5: v = __logf(v); break;
  case 6: v = x[i + 1]; break;
  case 7: v = fmaxf(v, 0.0f); break;
  case 8: v = outer(v, i); break;
  case 9: v = floorf(v); break;
  case 12: v = fabsf(v) * 7; break;
  default: return;
  }
  float local[24];
  for (int j = 0; j < 24; j++) local[j] = v * j;
#pragma unroll 1
  for (int j = 0; j < n; j++) v += local[choice[j] % 24] * outer(v, j);
  do v = v * 0.5f;
  while (v > 1.0f);
  x[i] = v + jump(i % 3) * jump(n % 3);
}
