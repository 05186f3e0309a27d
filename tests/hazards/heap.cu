// malloc, free, new and delete in kernels: each allocation has its own bounds, and its own end.
#include "kernels.h"

// One int too many.
// launch too_small: grid 1 block 64 args int[64]=zero
extern "C" __global__ void too_small(int *out) {
#ifdef REPAIRED
  int *own = (int *)malloc(5 * sizeof(int));
#else
  int *own = (int *)malloc(4 * sizeof(int));
#endif
  for (int i = 0; i < 5; i++) own[i] = i;  // HAZARD(too_small): out-of-bounds access
  out[threadIdx.x] = own[threadIdx.x % 4];
  free(own);
}

// malloc leaves the memory as it is.
// launch not_cleared: grid 1 block 64 args int[64]=zero
extern "C" __global__ void not_cleared(int *out) {
  int *own = new int[2];
  own[0] = threadIdx.x;
#ifdef REPAIRED
  own[1] = 0;
#endif
  out[threadIdx.x] = own[threadIdx.x & 1];  // HAZARD(not_cleared): uninitialised read
  delete[] own;
}

// The memory is used after its end.
// launch used_after_free: grid 1 block 64 args int[64]=zero
extern "C" __global__ void used_after_free(int *out) {
  volatile int *own = new int(threadIdx.x);
#ifndef REPAIRED
  delete own;
#endif
  out[threadIdx.x] = *own;  // HAZARD(used_after_free): out-of-bounds access
#ifdef REPAIRED
  delete own;
#endif
}

// The first thread frees what all read, and does not wait for them.
// launch freed_too_early: grid 1 block 64 args int[64]=zero
extern "C" __global__ void freed_too_early(int *out) {
  __shared__ volatile int *common;
  if (threadIdx.x == 32) *(common = new int) = 7;
  __syncthreads();
  out[threadIdx.x] = *common;  // HAZARD(freed_too_early): global-memory race
  // ALSO(freed_too_early): out-of-bounds access
#ifdef REPAIRED
  __syncthreads();
#endif
  if (threadIdx.x == 0) delete common;  // OTHER(freed_too_early)
}

// Each thread frees the memory that all of them share.
// launch freed_twice: grid 1 block 64 args int[64]=zero
extern "C" __global__ void freed_twice(int *out) {
  __shared__ int *common;
  if (threadIdx.x == 0) common = new int[64];
  __syncthreads();
  common[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = common[63 - threadIdx.x];
  __syncthreads();
#ifdef REPAIRED
  if (threadIdx.x == 0)
#endif
    delete[] common;  // HAZARD(freed_twice): out-of-bounds access
}

// The pointer has moved on.
// launch freed_inside: grid 1 block 1 args int[4]=zero
extern "C" __global__ void freed_inside(int *out) {
  int *own = (int *)malloc(4 * sizeof(int)), *next = own;
  for (int i = 0; i < 4; i++) *next++ = i;
  for (int i = 0; i < 4; i++) out[i] = *--next;
#ifndef REPAIRED
  own++;
#endif
  free(own);  // HAZARD(freed_inside): out-of-bounds access
}

// Blocks allocate and free, and a null pointer may be freed. Nothing is wrong.
// launch lists: grid 8 block 64 args int[512]=zero
extern "C" __global__ void lists(int *out) {
  struct Node {
    int value;
    Node *next;
  } *list = nullptr;
  for (int i = 0; i < 5; i++) list = new Node{i + (int)threadIdx.x, list};
  int sum = 0;
  for (Node *node = list, *next; node; node = next) {
    sum += node->value;
    next = node->next;
    delete node;
  }
  free(nullptr);
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
