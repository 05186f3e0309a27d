// The forward pass of CUTLASS's example 88 as C functions. driver.cu makes them of a checkout of CUTLASS; the library
// that `make cutlass-fmha` builds has nothing else.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUTLASS_FMHA_API __attribute__((visibility("default")))

// From what the library was built: "CUTLASS 7127592069c2 with CUDA 13.0".
CUTLASS_FMHA_API const char *cutlass_fmha_version(void);

// The example has two kernels for each head dimension, of which either may be faster: with index 0 two consumer
// warpgroups share a tile, with index 1 they take turns.
enum { CUTLASS_FMHA_KERNELS = 2 };

// Queues O = softmax(Q K^T / sqrt(head_dim)) V on a CUDA stream of the current device, and returns at once: 0, a
// cudaError_t, or -1 where the example does not take such a problem. The tensors are contiguous, fp16,
// [batch][heads][seqlen][head_dim] in device memory; head_dim is 64 or 128, and seqlen a multiple of 128. lse is room
// for batch * heads * seqlen floats, which the kernel writes.
CUTLASS_FMHA_API int cutlass_fmha(int kernel, int batch, int heads, int seqlen, int head_dim, int causal, const void *q,
                                  const void *k, const void *v, void *o, void *lse, void *stream);

#ifdef __cplusplus
}
#endif
