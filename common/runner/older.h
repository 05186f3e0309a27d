// Types that the headers of CUDA 12.0 to 12.3 lack, so that the stand-ins can be built with those too. Behind cuda.h.
#pragma once

#if CUDA_VERSION < 12030
typedef struct CUgraphEdgeData_st {
  unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;
#endif
#if CUDA_VERSION < 12040
typedef enum CUfunctionLoadingState_enum { CU_FUNCTION_LOADING_STATE_LOADED = 1 } CUfunctionLoadingState;
#endif
#if CUDA_VERSION < 12010
typedef struct CUkern_st *cudaKernel_t;
#endif
