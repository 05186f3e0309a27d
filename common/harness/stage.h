// The description of a stage for the harness. A stage.c includes this header alone and defines `const Stage stage`.
#pragma once

#include "../device/device.h"

// O = softmax(Q K^T / sqrt(head_dim)) V for each head of each batch. Q, K, V and O are laid out
// [batch][heads][seqlen][head_dim]. Causal: query i sees keys 0 to i.
typedef struct Shape {
  int batch, heads, seqlen, head_dim;
  bool causal;
} Shape;

// The type of Q, K and V; in a decode stage, of K and V. O is fp16 with all. e4m3 is FP8 with 4 bits of exponent and 3
// of fraction (e4m3.h): an element is one byte, a code, and its value is that of the code times a scale.
typedef enum StageInputs {
  INPUTS_F16,
  INPUTS_E4M3,         // all three
  INPUTS_E4M3_SCORES,  // what the scores are made of: Q and K. V is fp16, and has no scale
} StageInputs;

// A tensor in device memory. The elements of a row lie one after the other.
typedef struct DeviceTensor {
  DeviceAddress address;     // first, so that a pointer to a DeviceTensor is also one to a kernel's parameter
  int64_t batch, head, row;  // elements from one batch, head, row to the next; all 0: as Shape says, without gaps
} DeviceTensor;

// The tensor with its strides written out. (tensor_maps.c)
DeviceTensor tensor_with_strides(const Shape *shape, DeviceTensor tensor);

// One launch: where the tensors lie in device memory.
typedef struct Attention {
  Shape shape;
  int window;   // of the keys that a causal mask leaves, a query sees the last so many; 0: all
  float scale;  // of the scores; 1 / sqrt(head_dim), if nobody wants another
  DeviceTensor q, k, v, o;
  // e4m3 only: arrays of floats. Element (b * heads + h) * scale_stride of q_scale is the scale of Q in head h of batch
  // b. scale_stride is 0 (one scale for the tensor) or 1 (one for each head), the same for Q, K and V. Where V is fp16,
  // v_scale is 0.
  DeviceAddress q_scale, k_scale, v_scale;
  int scale_stride;
  // The log of the sum of exp(score) of each query, float, [batch][heads][seqlen]. The backward pass reads it. In the
  // forward pass 0, or where a stage with `lse` writes it.
  DeviceAddress lse;
  // Backward pass only: the gradient of the loss with respect to O, which is given; and those with respect to Q, K and
  // V.
  DeviceTensor d_o, d_q, d_k, d_v;
  bool deterministic;       // backward pass only: two launches with the same inputs give the same bits
  DeviceAddress workspace;  // as many bytes as the stage's workspace function returned, not initialised
  DeviceAddress counter;    // if the stage needs one
  DeviceModule *module;     // what nvcc made of the stage's kernel.cu
} Attention;

// Queues kernels. False when a call of the device failed.
typedef bool AttentionLaunch(Device *device, const Attention *attention);

// For fp16 kernels that need head_size bytes of workspace for each head. The first function returns the bytes for as
// many heads as 8 GiB hold; the second launches so many heads at a time, each time as one batch. (passes.c)
size_t passes_workspace(const Shape *shape, size_t head_size);
bool passes_launch(Device *device, const Attention *attention, size_t head_size, AttentionLaunch *launch);

// For kernels that use TMA: makes the map of one of the problem's tensors, as [batch * heads][seqlen][head_dim]. A box
// has `rows` rows, at most 256, and 64 columns, with the 128-byte swizzle. (tensor_maps.c)
bool attention_tensor_map(Device *device, const Shape *shape, DeviceTensor tensor, int rows, TensorMap *map);
// The same with a box of 16, 32 or 64 columns, and a swizzle as wide as its rows: 32, 64 or 128 bytes.
bool attention_tensor_map_columns(Device *device, const Shape *shape, DeviceTensor tensor, int rows, int columns,
                                  TensorMap *map);
// The same for an e4m3 tensor. A box has whole rows of head_dim bytes, with a swizzle as wide as a row: 64 or 128
// bytes.
bool attention_tensor_map_e4m3(Device *device, const Shape *shape, DeviceTensor tensor, int rows, TensorMap *map);

// C = A B^T: A is [m][k], B is [n][k], C is [m][n], fp16, row after row without gaps; sums are fp32. So both factors
// are read along k, as wgmma reads them best: element (i, j) of C is the product of row i of A and row j of B.
typedef struct Gemm {
  int m, n, k;  // n and k are multiples of 8
  DeviceAddress a, b, c;
  DeviceModule *module;  // what nvcc made of the stage's kernel.cu
} Gemm;

// Queues kernels. False when a call of the device failed.
typedef bool GemmLaunch(Device *device, const Gemm *gemm);

// For kernels that use TMA: makes the map of one of the matrices, [rows][columns]. A box has box_rows rows, at most
// 256, and 64 columns, with the 128-byte swizzle. (tensor_maps.c)
bool gemm_tensor_map(Device *device, DeviceAddress matrix, int rows, int columns, int box_rows, TensorMap *map);

// Decode: each sequence of the batch has one query a head, and the keys and values of all tokens before it, its cache.
// heads / kv_heads query heads share the keys and values of one head (grouped-query attention): query head h reads head
// h / (heads / kv_heads). K and V are [batch][kv_heads][keys][head_dim], Q and O [batch][heads][queries][head_dim].
typedef struct DecodeShape {
  int batch, heads, kv_heads, keys, head_dim;
  // Of each sequence, 1 except in stages with `queries`. The last query is that of the last key: query t of n sees all
  // keys but the last n - 1 - t.
  int queries;
  // Stages with `ragged`: the keys of a page, a power of two and at least 16; 0: the cache is not in pages.
  int page;
} DecodeShape;

// One launch: where the tensors lie in device memory. They are bf16: 8 bits of exponent, 7 of fraction; except that
// the cache of a stage with e4m3 inputs is e4m3.
typedef struct Decode {
  DecodeShape shape;
  float scale;              // of the scores; 1 / sqrt(head_dim), if nobody wants another
  DeviceTensor q, k, v, o;  // Q and O have `queries` rows a head
  // Stages with `ragged`. lengths: int32, [batch], the keys of each sequence, 0 to shape.keys; 0: all have shape.keys.
  // block_table: int32, [batch][table_row]: key j of a sequence is row j % page of page block_table[j / page]. K and V
  // are [pages][kv_heads][page][head_dim] then, with strides from page to page in the place of those from batch to
  // batch. 0: the cache is not in pages. table_row 0: shape.keys / page, rounded up.
  // Where a query sees no key, its O is 0.
  DeviceAddress lengths, block_table;
  int table_row, pages;
  DeviceAddress lse;  // as Attention's, [batch][heads][queries]; 0, or where a stage with `lse` writes it
  // An e4m3 cache: arrays of floats. Element (b * kv_heads + h) * scale_stride is the scale of K (V) in key head h of
  // sequence b. scale_stride is 0 (one scale for the tensor) or 1.
  DeviceAddress k_scale, v_scale;
  int scale_stride;
  int splits;               // into how many parts the keys are shared out, or how many blocks share them; 0: the stage
                            // chooses
  DeviceAddress workspace;  // as many bytes as the stage's decode_workspace returned, not initialised
  DeviceModule *module;     // what nvcc made of the stage's kernel.cu
} Decode;

// Queues kernels. False when a call of the device failed.
typedef bool DecodeLaunch(Device *device, const Decode *decode);

// The tensor with its strides written out, if they are all 0: of K and V, or of Q and O, with `rows` rows a head and
// `heads` heads. (tensor_maps.c)
DeviceTensor decode_tensor_with_strides(int heads, int rows, int head_dim, DeviceTensor tensor);

// Makes the map of K or V, as [batch][kv_heads][head_dim / 64][keys][64]: a box has `rows` keys, at most 256, with all
// their head_dim columns, in panels of 64 columns with the 128-byte swizzle, one panel after another. Keys from `keys`
// on read as zeros. (tensor_maps.c)
bool decode_tensor_map(Device *device, const DecodeShape *shape, DeviceTensor tensor, int rows, TensorMap *map);
// The same for an e4m3 cache, with one panel of head_dim bytes and a swizzle as wide.
bool decode_tensor_map_e4m3(Device *device, const DecodeShape *shape, DeviceTensor tensor, int rows, TensorMap *map);

// An option that only this stage has, shown by --help: --name or, when value is not NULL, --name=VALUE. A value in
// square brackets, "[BITS]", may be left out. session_option gives what the user wrote.
typedef struct StageOption {
  const char *name, *value, *help;
} StageOption;

typedef struct Session Session;

typedef struct Stage {
  const char *name;   // "00-scalar", the folder's name
  const char *title;  // the idea, half a line

  StageInputs inputs;  // fp16 when not given
  AttentionLaunch *launch;
  // The backward pass: launch computes d_q, d_k and d_v from the other tensors. And before it forward, which is not
  // timed, computes o and lse.
  bool backward;
  AttentionLaunch *forward;
  // A stage of the forward pass or of decode: it also writes lse, when its address is not 0.
  bool lse;
  // Whether launch obeys strides, of heads and rows. From one batch to the next there must be `heads` heads. A stage of
  // decode always obeys those of K and V; this says whether it obeys those of Q and O.
  bool strided;
  // Bytes of device memory that launch needs besides the tensors. NULL: none.
  size_t (*workspace)(const Shape *shape);
  // Whether launch needs a counter that its blocks share: a uint32_t in device memory, which is 0 before and after each
  // launch. Launches that may run at the same time have different counters.
  bool counter;
  // Returns in one line why the stage cannot do this shape, and which it can; NULL when it can. A NULL function: the
  // stage does every shape.
  const char *(*unsupported)(const Shape *shape);

  // A stage that computes attention with a sliding window has this in the place of launch. Its problems have head_dim
  // 96, a causal mask and a window.
  AttentionLaunch *windowed;

  // A stage that computes a matrix product has this in the place of launch.
  GemmLaunch *gemm;

  // A stage of the decode ladder has this in the place of launch, and the bytes of device memory that it needs besides
  // the tensors; a NULL function: none. `splits`: how many blocks share the keys of a head; a NULL function: one block
  // has them or, with `ragged`, any number of blocks share all keys. `ragged`: whether lengths may differ and the cache
  // may be in pages. `queries`: how many a sequence may have; 0: one. `head_dim`: the only one that it does; 0: 64 and
  // 128.
  DecodeLaunch *decode;
  size_t (*decode_workspace)(const DecodeShape *shape, int splits, int sm_count);
  int (*splits)(const Decode *decode, int sm_count);
  bool ragged;
  int queries, head_dim;

  // A stage that is none of these does everything itself, with the parts of harness.h: it checks, reports,
  // and returns the exit code. Then launch is NULL, unless run prepares something and goes on with attention_run.
  int (*run)(Session *session);
  const StageOption *options;  // ends with a NULL name; NULL: none
} Stage;
