// The stages as a library: attention on device pointers, by any stage, inside any CUDA program.
//
//   cc program.c ./libhopper_ladder.so          (make library builds it; it needs the CUDA driver alone)
//
//   const HlCall call = {.batch = 4, .heads = 32, .seqlen = 4096, .head_dim = 64, .causal = 1,
//                        .q.data = query, .k.data = key, .v.data = value, .o.data = output, .stream = stream};
//   if (hl_attention(&call)) fprintf(stderr, "%s\n", hl_error());
//
// O = softmax(scale * Q K^T) V for each head of each batch; causal: query i sees keys 0 to i. All tensors are in the
// memory of a GPU of compute capability 9.0. O is fp16, and so are Q, K and V unless the call says e4m3. A call that
// also asks for the log-sum-exp gets what hl_attention_backward needs for the gradients. Any thread may call; the
// library runs one call at a time.
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

// What was wrong with this thread's last call that did not return HL_OK, and what is allowed, in one line; "" when
// there was none. Valid until the thread's next call.
HL_API const char *hl_error(void);

// ---- the stages ----

// The type of Q, K and V.
typedef enum HlType {
  HL_F16 = 0,
  HL_E4M3 = 1,         // FP8, one byte an element
  HL_E4M3_SCORES = 2,  // Q and K are HL_E4M3, V is HL_F16
} HlType;

typedef struct HlStage {
  const char *number;  // "03"; a rung between 02 and 03 has a letter, "02b"
  const char *name;    // "03-cp-async"
  const char *title;   // its idea, half a line
  HlType type;
  int32_t backward;  // 0: a stage for hl_attention; 1: for hl_attention_backward
  int32_t lse;       // 1: it can write the log-sum-exp, too
  int32_t strided;   // 1: heads and rows may lie anywhere; 0: tensors must be contiguous
} HlStage;

// The stages of this library are those with index 0 to hl_stage_count() - 1, in alphabetical order: "02", "02b", "03".
// Not every number has one.
HL_API int hl_stage_count(void);
// NULL when there is no such index.
HL_API const HlStage *hl_stage(int index);

// ---- a call ----

typedef struct HlTensor {
  void *data;  // in device memory, aligned to 16 bytes
  // Strides: elements from one batch, head or row to the next, multiples of 16 bytes. All 0: the tensor is contiguous,
  // [batch][heads][seqlen][head_dim]. [batch][seqlen][heads][head_dim] has seqlen * heads * head_dim, head_dim,
  // heads * head_dim. That of a dimension with one element is not looked at. The elements of a row have no gaps.
  int64_t batch, head, row;
} HlTensor;

// The scales of an e4m3 tensor: an element's value is its code's times a scale.
typedef struct HlScale {
  const float *data;  // in device memory, aligned to 4 bytes
  int32_t per_head;   // 0: one scale for the tensor; 1: batch * heads scales, those of a batch one after another
} HlScale;

enum {
  HL_DETERMINISTIC =
      1,         // two calls with the same inputs give the same bits. A forward pass does so anyhow. Backward, from
                 // stage 12b on, it is slower, because blocks wait for each other
  HL_CHECK = 2,  // only checks the call: it needs no GPU, and only lse counts among the pointers
};

// What is left out, and so 0, has a meaning: the newest stage, no mask, fp16, the usual scale, the default stream.
typedef struct HlCall {
  const char *stage;     // its number, "10"; NULL: the newest that does what the call asks for
  int32_t batch, heads;  // 1 to 65536 each
  int32_t seqlen;        // queries and keys, 1 to 1048576; batch * heads * seqlen is at most 2147483647
  int32_t head_dim;      // 64 or 128
  int32_t causal;        // 0 or 1
  HlType type;
  float scale;     // of the scores Q K^T, positive; 0: 1 / sqrt(head_dim)
  uint32_t flags;  // HL_DETERMINISTIC | HL_CHECK
  HlTensor q, k, v, o;
  // For each query the natural logarithm of the sum of exp(scale * score) over the keys that it sees. In device memory,
  // aligned to 4 bytes, [batch][heads][seqlen]. NULL: the forward pass does not write it.
  float *lse;
  // Of each e4m3 tensor. Their per_head must be the same, also that of an fp16 V, which has no data.
  HlScale q_scale, k_scale, v_scale;
  HlTensor d_o, d_q, d_k, d_v;  // the backward pass only
  void *stream;                 // a CUstream or cudaStream_t; NULL: the default stream
  int64_t reserved[8];          // for later versions: 0
} HlCall;

// Reads q, k and v, and writes o and, if it is not NULL, lse. What is written may not overlap any other tensor.
//
// Queues the stage's kernels on the stream, of the context that is current on this thread, and returns at once: a
// mistake inside a kernel shows at the caller's next synchronisation. All batches are one launch where each tensor's
// batch stride is heads times its head stride, as in a contiguous tensor. Otherwise, as in
// [batch][seqlen][heads][head_dim], each batch has a launch of its own, and batches that do not fill the GPU leave a
// part of it idle.
//
// Calls in different streams, of one stage or of several, may run at the same time. The library keeps a workspace for
// each stream, and keeps it for later calls: up to 8 GiB for the scores of stages 00 and 01, a counter for 09 and 10,
// two floats a query for 12, and head_dim + 2 floats and a few counters from 12b on, with seqlen rounded up to a
// multiple of 128. A CUDA graph uses the workspace that its stream had when it was captured. So it must not run at the
// same time as that stream's other work, or as another graph captured there.
//
// The first call of a stage in a context loads its kernels.
HL_API HlStatus hl_attention(const HlCall *call);

// The backward pass: reads q, k, v, o, lse and d_o, and writes d_q, d_k and d_v, the gradients of a loss with respect
// to Q, K and V. d_o, that with respect to O, must be finite. O and lse are those of hl_attention, or of another
// forward pass. Each element of lse is finite, or +infinity for a query that adds nothing. All else is as for
// hl_attention.
HL_API HlStatus hl_attention_backward(const HlCall *call);

// Frees the library's kernels and workspaces in the current context; none of its kernels may be running. Later calls
// load and allocate again. A context that is destroyed frees all of it, and needs no call.
HL_API HlStatus hl_release(void);

#ifdef __cplusplus
}
#endif
