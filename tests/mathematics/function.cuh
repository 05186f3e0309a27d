// The table of functions: FUNCTION adds a row, and a kernel that evaluates it.
//
//   FUNCTION(float, (float x, int n), ldexpf(x, n & 63))
//
// Results and operands are of any type that inputs.cuh knows. A program has one file with FUNCTIONs, and main.cu.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "inputs.cuh"

#define CHECK(call) check_cuda((call), #call)
inline void check_cuda(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "mathematics: %s: %s\n", what, cudaGetErrorString(error));
  exit(3);
}

// How the bits of a result are compared: as numbers of a format, or as they are.
enum Format { FORMAT_BITS, FORMAT_F16, FORMAT_BF16, FORMAT_F32, FORMAT_F64 };

template <class R> struct Result {
  static constexpr Format format = FORMAT_BITS;
  static constexpr int parts = 1;  // numbers in a result
};
#define RESULT_TYPE(R, f, p)                                                                                           \
  template <> struct Result<R> {                                                                                       \
    static constexpr Format format = f;                                                                                \
    static constexpr int parts = p;                                                                                    \
  };
RESULT_TYPE(float, FORMAT_F32, 1)
RESULT_TYPE(double, FORMAT_F64, 1)
RESULT_TYPE(float2, FORMAT_F32, 2)
RESULT_TYPE(__half, FORMAT_F16, 1)
RESULT_TYPE(__half2, FORMAT_F16, 2)
RESULT_TYPE(__nv_bfloat16, FORMAT_BF16, 1)
RESULT_TYPE(__nv_bfloat162, FORMAT_BF16, 2)

struct Operand {
  size_t size;
  const void *(*inputs)(int operand);  // INPUTS of them, on the host
};

struct Function {
  const char *section;  // "float", or "float-fast" with --use_fast_math
  const char *text;     // "ldexpf(x, n & 63): float of (float x, int n)"
  Format format;
  int parts;
  size_t size;  // bytes of a result
  std::vector<Operand> operands;
  void (*run)(size_t count, void *results);  // of the first `count` inputs, a multiple of THREADS
};

std::vector<Function> &functions();

enum { THREADS = 256 };

template <class F, class R, class... A> __global__ void evaluate(R *results, const A *...operands) {
  size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  results[i] = F::apply(operands[i]...);
}

// The inputs of one operand, on the GPU.
template <class T> const T *device_inputs(int operand) {
  static std::vector<T *> uploaded(4);
  T *&p = uploaded[operand];
  if (!p) {
    CHECK(cudaMalloc(&p, INPUTS * sizeof(T)));
    CHECK(cudaMemcpy(p, inputs<T>(operand).data(), INPUTS * sizeof(T), cudaMemcpyHostToDevice));
  }
  return p;
}

template <class F, class S> struct Evaluation;
template <class F, class R, class... A> struct Evaluation<F, R(A...)> {
  template <int... J> static void launch(std::integer_sequence<int, J...>, size_t count, R *results) {
    evaluate<F, R, A...><<<(unsigned)(count / THREADS), THREADS>>>(results, device_inputs<A>(J)...);
  }
  static void run(size_t count, void *results) {
    R *device;
    CHECK(cudaMalloc(&device, count * sizeof(R)));
    launch(std::make_integer_sequence<int, sizeof...(A)>(), count, device);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(results, device, count * sizeof(R), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
  }
  static Function describe(const char *section, const char *text) {
    return {section, text, Result<R>::format, Result<R>::parts, sizeof(R), {{sizeof(A), input_bytes<A>}...}, run};
  }
};

// A program may take every STRIDE-th function alone.
#ifndef STRIDE
#define STRIDE 1
#endif
template <class F, bool taken> struct Row {
  Row(const char *section, const char *text) {
    if constexpr (taken) functions().push_back(Evaluation<F, typename F::Signature>::describe(section, text));
  }
};

// A file defines SECTION, its name. With --use_fast_math FAST is "-fast".
#ifndef FAST
#define FAST ""
#endif
#define FUNCTION(R, PARAMETERS, ...) FUNCTION_ROW(__COUNTER__, R, PARAMETERS, __VA_ARGS__)
#define FUNCTION_ROW(number, R, PARAMETERS, ...) FUNCTION_NUMBER(number, R, PARAMETERS, __VA_ARGS__)
#define FUNCTION_NUMBER(number, R, PARAMETERS, ...)                                                                    \
  struct Function##number {                                                                                            \
    using Signature = R PARAMETERS;                                                                                    \
    static __device__ R apply PARAMETERS { return __VA_ARGS__; }                                                       \
  };                                                                                                                   \
  static const Row<Function##number, number % STRIDE == 0> row##number(SECTION FAST,                                   \
                                                                       #__VA_ARGS__ ": " #R " of " #PARAMETERS);

// f_rn, f_rz, f_ru and f_rd.
#define ROUNDED(ROW, f) ROW(f##_rn) ROW(f##_rz) ROW(f##_ru) ROW(f##_rd)
