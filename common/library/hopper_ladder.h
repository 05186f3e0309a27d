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
// also asks for the log-sum-exp gets what hl_attention_backward needs for the gradients. hl_attention_decode answers
// the last queries of sequences whose keys and values lie in a cache. Any thread may call; the library runs one call at
// a time.
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

// The type of Q, K and V; of a stage for decode, the type of K and V.
typedef enum HlType {
  HL_F16 = 0,
  HL_E4M3 = 1,         // FP8, one byte an element
  HL_E4M3_SCORES = 2,  // Q and K are HL_E4M3, V is HL_F16
  HL_BF16 = 3,         // decode alone
} HlType;

typedef struct HlStage {
  const char *number;  // "03"; a rung between 02 and 03 has a letter, "02b"
  const char *name;    // "03-cp-async"
  const char *title;   // its idea, half a line
  HlType type;
  int32_t backward;  // 0: a stage for hl_attention or, with decode, hl_attention_decode; 1: for hl_attention_backward
  int32_t lse;       // 1: it can write the log-sum-exp, too
  int32_t strided;   // 1: heads and rows may lie anywhere; 0: tensors, of a decode stage Q and O, must be contiguous
  int32_t decode;    // 1: a stage for hl_attention_decode
  // Of a stage for decode. ragged: lengths may differ, and the cache may lie in pages. queries: of a sequence, at most.
  int32_t ragged, queries;
  int32_t head_dim;  // the only one that it does; 0: both
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
// multiple of 128. A CUDA graph uses the workspace that its stream had when it was captured, which stays until
// hl_release. So it must not run at the same time as that stream's other work, or as another graph captured there.
//
// The first call of a stage in a context loads its kernels. It cannot do so, or allocate a workspace, while its stream
// is captured: then it fails with HL_INVALID. Make the same call once before the capture.
HL_API HlStatus hl_attention(const HlCall *call);

// The backward pass: reads q, k, v, o, lse and d_o, and writes d_q, d_k and d_v, the gradients of a loss with respect
// to Q, K and V. d_o, that with respect to O, must be finite. O and lse are those of hl_attention, or of another
// forward pass. Each element of lse is finite, or +infinity for a query that adds nothing. All else is as for
// hl_attention.
HL_API HlStatus hl_attention_backward(const HlCall *call);

// ---- decode ----

// Each sequence of a batch has a cache, the keys and values of all its tokens, and one or a few queries. The last query
// is that of the last key; query t of n sees all keys but the last n - 1 - t. heads / kv_heads query heads share the
// keys and values of one key head (grouped-query attention): query head h reads key head h / (heads / kv_heads). A
// query that sees no key has O = 0.
//
//   const HlDecode call = {.batch = 8, .heads = 32, .kv_heads = 8, .head_dim = 128, .keys = 4096, .type = HL_BF16,
//                          .lengths = lengths, .page = 16, .pages = 2048, .block_table = table,
//                          .q.data = query, .k.data = key_pool, .v.data = value_pool, .o.data = output};
//   if (hl_attention_decode(&call)) fprintf(stderr, "%s\n", hl_error());
//
// A field that is left out is 0. Except for the sizes and the type, 0 has a meaning: the fastest stage, one query, all
// sequences of one length, a cache without pages.
typedef struct HlDecode {
  const char *stage;        // its number, "13d"; NULL: the fastest that does what the call asks for
  int32_t batch;            // sequences, 1 to 65535
  int32_t heads, kv_heads;  // of Q and O; of K and V. heads is 1 to 16 times kv_heads, which is 1 to 65535
  int32_t keys;             // of a sequence, or with `lengths` at most, 1 to 1048576
  int32_t head_dim;         // 64 or 128
  int32_t queries;          // of each sequence, 1 to 8; 0: 1
  HlType type;              // of K and V: HL_BF16 or HL_E4M3. Q and O are bf16
  float scale;              // of the scores, positive; 0: 1 / sqrt(head_dim)
  uint32_t flags;           // HL_CHECK. With HL_DETERMINISTIC nothing changes: the same call gives the same bits anyhow
  // [batch][heads][queries][head_dim]
  HlTensor q, o;
  // Without pages [batch][kv_heads][keys][head_dim]: room for `keys` keys of every sequence. In pages
  // [pages][kv_heads][page][head_dim], with the stride from page to page in the place of that from batch to batch.
  HlTensor k, v;
  // The keys of each sequence, [batch], in device memory. A number below 0 counts as 0, one above `keys` as `keys`.
  // The kernels do not read the rest of the cache. NULL: each sequence has `keys`.
  const int32_t *lengths;
  // A cache in pages: key j of sequence b is row j % page of page block_table[b * table_row + j / page], from 0 to
  // pages - 1. Entries for keys that a sequence does not have are not looked at. In device memory.
  int32_t page;       // keys of a page, a power of two and at least 16; 0: no pages
  int32_t pages;      // in the memory of K, and of V, 1 to 16777216
  int32_t table_row;  // entries from one sequence to the next; 0: keys / page, rounded up
  const int32_t *block_table;
  // Of each query, as in HlCall, [batch][heads][queries]; -infinity where a query sees no key. It serves to combine O
  // with that over other keys. NULL: it is not written. Stages 13e, 13f and 13g write it.
  float *lse;
  // Of an e4m3 cache; per_head: batch * kv_heads scales, those of a sequence one after another, also where its keys lie
  // in pages. Both per_head must be the same.
  HlScale k_scale, v_scale;
  void *stream;         // a CUstream or cudaStream_t; NULL: the default stream
  int64_t reserved[8];  // for later versions: 0
} HlDecode;

// Reads q, k and v, and writes o. All that is said of hl_attention's stream, workspace and kernels holds here. The
// workspace: none with 13, 13c, 13g and 22; head_dim + 1 floats for each query and part of its keys with 13b; up to
// 34 MiB with 13d, 13e and 13f.
//
// The fastest stage is 13e with an e4m3 cache, 13g with several queries, lse, or strides of Q or O. With lengths or
// pages it is 22 for head_dim 128, and 13g for 64. Without any of these it is 13 for 128 key heads and more,
// batch * kv_heads, as nothing is split; but 13c for 248 and more with 1 GiB and more. With fewer it is 13b where K and
// V have more than 96 MiB, or, with up to 3 key heads, more than 4 MiB for each. Else it is 22 for up to 1024 keys with
// head_dim 128, and 13c.
//
// In a CUDA graph. A call that is captured queues kernels, and does nothing else, once the same call has run on the
// same stream: before the capture, make it once. Otherwise the call fails with HL_INVALID, and the capture goes on
// without it. So does every call that needs a workspace on a thread's own default stream. Each replay reads lengths,
// block_table, scales, Q, K and V anew. So between replays the caller may append to the cache and let the lengths grow,
// up to the call's `keys`, and give sequences other pages. Addresses, sizes and strides are those of the captured call.
// How many blocks a launch has depends on `keys`: a graph that is captured with the most that a sequence will ever have
// is right for all lengths.
HL_API HlStatus hl_attention_decode(const HlDecode *call);

// Frees the library's kernels and workspaces in the current context; none of its kernels may be running, and no graph
// that has captured some may run again. Later calls load and allocate again. A context that is destroyed frees all of
// it, and needs no call.
HL_API HlStatus hl_release(void);

#ifdef __cplusplus
}
#endif
