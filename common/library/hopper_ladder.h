// The stages as a library: attention on device pointers, by any stage, inside any CUDA program.
//
//   cc program.c ./libhopper_ladder.so          (make library builds it; it needs the CUDA driver alone)
//
//   const HlShape shape = {.batch = 4, .heads = 32, .seqlen = 4096, .head_dim = 64, .causal = 1};
//   const HlTensor q = {.data = query}, k = {.data = key}, v = {.data = value}, o = {.data = output};
//   if (hl_attention("03", &shape, &q, &k, &v, &o, stream))
//     fprintf(stderr, "%s\n", hl_error());
//
// O = softmax(Q K^T / sqrt(head_dim)) V for each head of each batch; causal: query i sees keys 0 to i. All tensors are in
// the memory of a GPU of compute capability 9.0. O is fp16, and so are Q, K and V, except for the stages that read e4m3
// (hl_attention_e4m3). hl_attention_lse also gives what hl_attention_backward needs for the gradients of Q, K and V. Any thread may call; the library runs one
// call at a time.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HL_API __attribute__((visibility("default")))

typedef enum HlStatus {
  HL_OK = 0,
  HL_INVALID = 1,        // an argument makes no sense: a null pointer, a size of 0, a stage that does not exist
  HL_UNSUPPORTED = 2,    // the arguments make sense, but this stage cannot do it
  HL_ABSENT = 3,         // there is no CUDA driver, or the current context is not on a GPU of compute capability 9.0
  HL_OUT_OF_MEMORY = 4,  // no room for the stage's workspace
  HL_FAILED = 5,         // the driver refused a call
} HlStatus;

// What was wrong with this thread's last call that did not return HL_OK, in one line; "" when there was none. Valid
// until the thread's next call.
HL_API const char *hl_error(void);

// ---- the stages ----

// The type of Q, K and V.
typedef enum HlInputs {
  HL_INPUTS_F16 = 0,   // hl_attention
  HL_INPUTS_E4M3 = 1,  // FP8, one byte an element: hl_attention_e4m3
} HlInputs;

typedef struct HlStage {
  const char *number;  // "03"; a rung between 02 and 03 has a letter, "02b"
  const char *name;    // "03-cp-async"
  const char *title;   // its idea, half a line
  HlInputs inputs;
  int32_t backward;  // 0: a stage for hl_attention; 1: for hl_attention_backward
  int32_t lse;       // 1: hl_attention_lse can call it, too
} HlStage;

// The stages of this library are those with index 0 to hl_stage_count() - 1, in alphabetical order: "02", "02b", "03".
// Not every number has one.
HL_API int hl_stage_count(void);
// NULL when there is no such index.
HL_API const HlStage *hl_stage(int index);

// ---- attention ----

typedef struct HlShape {
  int32_t batch, heads;  // 1 to 65536 each
  int32_t seqlen;        // queries and keys, 1 to 1048576; batch * heads * seqlen is at most 2147483647
  int32_t head_dim;      // 64 or 128
  int32_t causal;        // 0 or 1
} HlShape;

typedef struct HlTensor {
  void *data;         // in device memory, aligned to 16 bytes
  int64_t stride[4];  // elements from one batch, head, row, element to the next; all 0: contiguous
} HlTensor;

// HL_OK when the stage, named by its number, does this shape. Needs no GPU.
HL_API HlStatus hl_supports(const char *stage, const HlShape *shape);

// Queues the stage's kernels on a CUDA stream (a CUstream or cudaStream_t; NULL is the default stream) of the context
// that is current on this thread, and returns at once: a mistake inside a kernel shows at the caller's next
// synchronisation. Strides must be those of a contiguous [batch][heads][seqlen][head_dim] tensor, whatever a dimension
// of size 1 has. O may not overlap Q, K or V.
//
// Calls in different streams, of one stage or of several, may run at the same time. The library keeps a workspace for each
// stream, and keeps it for later calls: up to 8 GiB for the scores of stages 00 and 01, a counter for 09 and 10, two floats a
// query for 12, and head_dim + 2 floats and a few counters from 12b on, with seqlen rounded up to a multiple of 128. A CUDA graph uses the workspace that its stream had when it was
// captured. So it must not run at the same time as that stream's other work, or as another graph captured there.
//
// The first call of a stage in a context loads its kernels.
HL_API HlStatus hl_attention(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k,
                             const HlTensor *v, const HlTensor *o, void *stream);

// hl_attention by a stage that also writes the log-sum-exp; HL_UNSUPPORTED for the others. lse is in device memory, aligned to
// 4 bytes, [batch][heads][seqlen]: for each query the natural logarithm of the sum of exp(score) over the keys that it sees,
// where a score is Q K^T / sqrt(head_dim). It may not overlap a tensor. O is that of hl_attention, bit for bit.
HL_API HlStatus hl_attention_lse(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k,
                                 const HlTensor *v, const HlTensor *o, float *lse, void *stream);

// The scales of an e4m3 tensor: an element's value is its code's times a scale.
typedef struct HlScale {
  const float *data;  // in device memory, aligned to 4 bytes
  int32_t per_head;   // 0: one scale for the tensor; 1: batch * heads scales, those of a batch one after another
} HlScale;

// hl_attention for a stage whose inputs are e4m3, with the scales of Q, K and V. Their per_head must be the same.
HL_API HlStatus hl_attention_e4m3(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k,
                                  const HlTensor *v, const HlTensor *o, const HlScale *q_scale, const HlScale *k_scale,
                                  const HlScale *v_scale, void *stream);

// The same for the backward pass. dQ, dK and dV are the gradients of a loss with respect to Q, K and V; dO, that with respect
// to O, must be finite. O and lse are those of hl_attention_lse, or of another forward pass. Each element of lse is finite, or
// +infinity for a query that adds nothing. Tensors are as above. dQ, dK and dV may not overlap any other tensor.
HL_API HlStatus hl_attention_backward(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k,
                                      const HlTensor *v, const HlTensor *o, const HlTensor *d_o, const float *lse,
                                      const HlTensor *d_q, const HlTensor *d_k, const HlTensor *d_v, void *stream);

// The same, and two calls with the same inputs give the same bits. From stage 12b on that is slower, because blocks wait for each
// other.
HL_API HlStatus hl_attention_backward_deterministic(const char *stage, const HlShape *shape, const HlTensor *q,
                                                    const HlTensor *k, const HlTensor *v, const HlTensor *o,
                                                    const HlTensor *d_o, const float *lse, const HlTensor *d_q,
                                                    const HlTensor *d_k, const HlTensor *d_v, void *stream);

// Frees the library's kernels and workspaces in the current context; none of its kernels may be running. Later calls load
// and allocate again. A context that is destroyed frees all of it, and needs no call.
HL_API HlStatus hl_release(void);

#ifdef __cplusplus
}
#endif
