// What GPUVerify's CUDA tests count on: its annotations, as far as they can be executed, and hosts for kernels that
// have none. Preconditions and assertions are checked when they are met; what only helps a proof (invariants,
// postconditions) is left out.
#pragma once

#include <cassert>
#include <cooperative_groups.h>
#include <curand_kernel.h>
#include <type_traits>

#define __requires(condition) assert(condition)
#define __assert(condition) assert(condition)
#define __enabled() true  // of a thread that gets there
#define __implies(a, b) (!(a) || (b))
#define __assume(condition)
#define __ensures(condition)
#define __axiom(condition)
#define __invariant(condition) ((void)0)
#define __global_invariant(condition) ((void)0)
#define __requires_fresh_array(array)

// As cooperative groups had it once.
template <class Group> __device__ void synchronize(const Group &group) { group.sync(); }

// Enough for each of these kernels: 1024 x 1024 elements of 4 bytes, or 2 x 2064 of them.
enum { BUFFER_BYTES = 4 << 20, MOST_THREADS = 1024 };

template <class T> T *zeros() {
  void *buffer;
  cudaMalloc(&buffer, BUFFER_BYTES);
  cudaMemset(buffer, 0, BUFFER_BYTES);
  return (T *)buffer;
}

// Arguments that the suite does not choose: buffers of zeros, zero for a number, and a struct of addresses of one
// buffer.
template <class T> struct Argument {
  static T make() {
    if constexpr (!std::is_class_v<T> || sizeof(T) % sizeof(void *))
      return T{};
    else {
      void *addresses[sizeof(T) / sizeof(void *)];
      T made;
      for (void *&address : addresses) address = &address == addresses ? zeros<void>() : addresses[0];
      memcpy((void *)&made, addresses, sizeof made);
      return made;
    }
  }
};
template <class T> struct Argument<T *> {
  static T *make() { return zeros<T>(); }
};

// Some of these tests have blocks of 2,048 threads, more than a GPU has.
inline dim3 block_of(unsigned x, unsigned y = 1, unsigned z = 1) {
  return dim3(x < MOST_THREADS ? x : MOST_THREADS, y, z);
}

// A function of the device as a value of the host.
template <class F> F device_function(const F &symbol) {
  F function;
  cudaMemcpyFromSymbol(&function, symbol, sizeof function);
  return function;
}

template <class... T> void **pointers(T &...values) {
  static void *all[sizeof...(T) + 1];
  int count = 0;
  (void)std::initializer_list<int>{(all[count++] = (void *)&values, 0)...};
  return all;
}

// A small grid may synchronise all of its blocks. 1, if the launch failed.
template <class... T> int launch_with(void (*kernel)(T...), dim3 grid, dim3 block, T... arguments) {
  if (grid.x * grid.y <= 64)
    cudaLaunchCooperativeKernel((const void *)kernel, grid, block, pointers(arguments...), 0, 0);
  else
    cudaLaunchKernel((const void *)kernel, grid, block, pointers(arguments...), 0, 0);
  return cudaDeviceSynchronize() != cudaSuccess;
}

template <class... T, class... U> int launch(void (*kernel)(T...), dim3 grid, dim3 block, U... arguments) {
  if constexpr (sizeof...(U) == sizeof...(T))
    return launch_with<T...>(kernel, grid, block, T(arguments)...);
  else
    return launch_with<T...>(kernel, grid, block, Argument<T>::make()...);
}
