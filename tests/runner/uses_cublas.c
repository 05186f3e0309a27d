// A library that is linked with cuBLAS, as PyTorch's are: a program that opens it is not linked with CUDA itself.
#include <cublas_v2.h>

int cublas_works(void);

int cublas_works(void) {
  cublasHandle_t handle;
  return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS && cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS;
}
