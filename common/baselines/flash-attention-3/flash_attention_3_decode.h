// FlashAttention-3's decode as C functions. decode_driver.cu makes them of a checkout of FlashAttention;
// `make flash-attention-3` builds a library of them beside that of flash_attention_3.h.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FA3_API __attribute__((visibility("default")))

// bf16, in device memory. Q and O are [batch][heads][queries][head_dim]; K and V are [batch][kv_heads][keys][head_dim],
// or, if page is not 0, [pages][kv_heads][page][head_dim]. The last query is that of the last key: the mask is causal.
// plots/decode_contenders.py has the same structure.
typedef struct FlashAttention3Decode {
  int batch, heads, kv_heads, keys, head_dim, queries, page, pages;
  const void *q, *k, *v;
  void *o;
  const int *lengths;      // [batch]: the keys of each sequence; NULL: all have `keys`
  const int *block_table;  // [batch][keys / page]: the pages of each sequence
  void *workspace;         // as many bytes as flash_attention_3_decode_workspace says, at a multiple of 256 bytes
  void *stream;            // a cudaStream_t
} FlashAttention3Decode;

FA3_API const char *flash_attention_3_decode_version(void);
FA3_API size_t flash_attention_3_decode_workspace(const FlashAttention3Decode *call);
// Queues O = softmax(Q K^T / sqrt(head_dim)) V on the stream, and returns at once: 0, or a cudaError_t.
FA3_API int flash_attention_3_decode(const FlashAttention3Decode *call);

#ifdef __cplusplus
}
#endif
