// What the files of this program have of each other.
#pragma once

typedef int (*Operation)(int);

// Template and inline functions are in both files, and once in the program; so is a static variable inside.
template <class T> __device__ T count_up(T value) {
  static __device__ int counter;
  return value + atomicAdd(&counter, 1);
}

template <class T> __global__ void in_both_files(T *out) { *out = count_up<T>(40); }

extern __device__ int shared_value;
extern __device__ int numbers[];
extern __constant__ float factors[4];
extern __device__ Operation add_hidden_pointer;
extern __managed__ int managed_value;
extern __device__ int add_hidden(int value);
extern __device__ int from_the_library(int value);
extern __shared__ int dynamic[];

void launch_in_part(int *out);
