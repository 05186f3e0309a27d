// A handle of cuBLAS, for the files of its stand-in.
#pragma once

#include <cublas_v2.h>

struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t pointers;  // where alpha, beta and results lie
  cublasMath_t math;
  cublasAtomicsMode_t atomics;
};
