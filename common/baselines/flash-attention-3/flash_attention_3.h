// FlashAttention-3's passes as C functions. driver.cu makes them of a checkout of FlashAttention; the library that
// `make flash-attention-3` builds has nothing else, and needs no PyTorch.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FA3_API __attribute__((visibility("default")))

// From what the library was built: "FlashAttention 0251105a2fb1 with CUTLASS 7127592069c2 and CUDA 13.0".
FA3_API const char *flash_attention_3_version(void);

// The bytes of device memory that a call of the forward pass needs beside its tensors.
FA3_API size_t flash_attention_3_workspace(int batch, int heads, int seqlen);

// Queues O = softmax(scale * Q K^T) V on a CUDA stream of the current device, and returns at once: 0, or a cudaError_t.
// The tensors are contiguous, fp16, [batch][heads][seqlen][head_dim] in device memory; head_dim is 64 or 128. The
// workspace begins at a multiple of 256 bytes. FlashAttention's own checks end the process where a launch fails.
FA3_API int flash_attention_3(int batch, int heads, int seqlen, int head_dim, int causal, float scale, const void *q,
                              const void *k, const void *v, void *o, void *workspace, void *stream);

// The same on e4m3 tensors. Each has one scale, a float in device memory: an element's value is its code's times the
// scale. O is bf16, which is what FlashAttention-3 writes for such inputs.
FA3_API int flash_attention_3_e4m3(int batch, int heads, int seqlen, int head_dim, int causal, float scale,
                                   const void *q, const void *k, const void *v, void *o, const float *q_scale,
                                   const float *k_scale, const float *v_scale, void *workspace, void *stream);

// The bytes of device memory that a call of the backward pass needs beside its tensors.
FA3_API size_t flash_attention_3_backward_workspace(int batch, int heads, int seqlen, int head_dim, int causal);

// The backward pass, on fp16 tensors as above: dQ, dK and dV, the gradients of a loss with respect to Q, K and V, from
// dO, that with respect to O. lse is in device memory, [batch][heads][seqlen]: for each query the natural logarithm of
// the sum of exp(scale * score). deterministic is 0 or 1: with 0, FlashAttention's default, blocks add to dQ in any
// order; with 1 each waits for its turn, and two calls give the same bits.
FA3_API int flash_attention_3_backward(int batch, int heads, int seqlen, int head_dim, int causal, int deterministic,
                                       float scale, const void *q, const void *k, const void *v, const void *o,
                                       const void *d_o, const float *lse, void *d_q, void *d_k, void *d_v,
                                       void *workspace, void *stream);

#ifdef __cplusplus
}
#endif
