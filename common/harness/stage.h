// What a stage tells the harness about itself. A stage.c includes this header alone and defines `const Stage stage`.
#pragma once

#include "../device/device.h"

// O = softmax(Q K^T / sqrt(head_dim)) V for each head of each batch. Q, K, V and O are fp16, laid out
// [batch][heads][seqlen][head_dim]. Causal: query i sees keys 0 to i.
typedef struct Shape {
  int batch, heads, seqlen, head_dim;
  bool causal;
} Shape;

// One launch: where the tensors lie in device memory.
typedef struct Attention {
  Shape shape;
  float scale;  // 1 / sqrt(head_dim)
  DeviceAddress q, k, v, o;
  DeviceAddress workspace;  // as many bytes as the stage's workspace function said, not initialised
  DeviceModule *module;     // what nvcc made of the stage's kernel.cu
} Attention;

// An option that only this stage has, shown by --help: --name or, when value is not NULL, --name=VALUE. A value in
// square brackets, "[BITS]", may be left out. session_option gives what the user wrote.
typedef struct StageOption {
  const char *name, *value, *help;
} StageOption;

typedef struct Session Session;

typedef struct Stage {
  const char *name;   // "00-scalar", the folder's name
  const char *title;  // the idea, half a line

  // Queues the kernels. False when a call of the device failed.
  bool (*launch)(Device *device, const Attention *attention);
  // Bytes of device memory that launch needs besides the tensors. NULL: none.
  size_t (*workspace)(const Shape *shape);
  // Why the stage cannot do this shape, and what it can, in one line; NULL when it can. NULL function: it does every
  // shape.
  const char *(*unsupported)(const Shape *shape);

  // A stage that is not an attention kernel does everything itself, with the parts of harness.h: it checks, reports,
  // and returns the exit code. Then launch is NULL.
  int (*run)(Session *session);
  const StageOption *options;  // ends with a NULL name; NULL: none
} Stage;
