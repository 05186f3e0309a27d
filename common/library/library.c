// libhopper_ladder.so: checks the arguments, finds the device of the caller's context, and calls the stage's launch.
//
// The Makefile compiles each attention stage's stage.c and embed.S a second time, with `stage` and its cubin renamed to
// stage_NN, stage_NN_cubin; it defines their list, STAGES(X), as X(00) X(01) X(02) X(02b) ...
#include "hopper_ladder.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/stage.h"

// ---- the stages ----

#define DECLARE(number)                                                                                                \
  extern const Stage stage_##number;                                                                                   \
  extern const char stage_##number##_ptx[], stage_##number##_cubin[], stage_##number##_cubin_end[];
STAGES(DECLARE)

typedef struct Entry {
  const char *number;
  const Stage *stage;
  const char *ptx, *cubin, *cubin_end;
} Entry;

#define ENTRY(number)                                                                                                  \
  {#number, &stage_##number, stage_##number##_ptx, stage_##number##_cubin, stage_##number##_cubin_end},
static const Entry entries[] = {STAGES(ENTRY)};
enum { STAGE_COUNT = sizeof entries / sizeof *entries };

static HlStage descriptions[STAGE_COUNT];

static void describe_stages(void) {
  for (int i = 0; i < STAGE_COUNT; i++) {
    const Stage *stage = entries[i].stage;
    descriptions[i] =
        (HlStage){entries[i].number, stage->name, stage->title, (HlInputs)stage->inputs, stage->backward, stage->lse};
  }
}

int hl_stage_count(void) { return STAGE_COUNT; }

const HlStage *hl_stage(int index) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, describe_stages);
  return index >= 0 && index < STAGE_COUNT ? &descriptions[index] : NULL;
}

// ---- errors ----

static _Thread_local char error_text[512];

const char *hl_error(void) { return error_text; }

static HlStatus fail_call(HlStatus status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static HlStatus fail_call(HlStatus status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_text, sizeof error_text, format, arguments);
  va_end(arguments);
  return status;
}

static HlStatus fail_device(const DeviceError *error) {
  static const HlStatus statuses[] = {
      [DEVICE_OK] = HL_FAILED,       [DEVICE_ABSENT] = HL_ABSENT, [DEVICE_UNSUPPORTED] = HL_UNSUPPORTED,
      [DEVICE_INVALID] = HL_INVALID, [DEVICE_FAULT] = HL_FAILED,  [DEVICE_OUT_OF_MEMORY] = HL_OUT_OF_MEMORY,
      [DEVICE_FAILED] = HL_FAILED,
  };
  return fail_call(statuses[error->code], "%s", error->text);
}

// ---- arguments ----

// Writes the numbers of all stages, "00, 01, 02, 03", for the message about an unknown one.
static void list_stages(char *text, size_t size) {
  size_t used = 0;
  for (int i = 0; i < STAGE_COUNT && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", entries[i].number);
}

static HlStatus find_stage(const char *number, int *index) {
  if (!number) return fail_call(HL_INVALID, "stage: a null pointer");
  for (int i = 0; i < STAGE_COUNT; i++) {
    *index = i;
    if (!strcmp(entries[i].number, number)) return HL_OK;
  }
  char list[200];
  list_stages(list, sizeof list);
  return fail_call(HL_INVALID, "stage %s: this library has no such stage; it has %s", number, list);
}

static HlStatus check_size(const char *name, int32_t size, int32_t largest) {
  if (size >= 1 && size <= largest) return HL_OK;
  return fail_call(HL_INVALID, "%s %" PRId32 ": 1 to %" PRId32 " are allowed", name, size, largest);
}

// Checks the limits of all stages, then those of this stage. *to is the shape in the stages' own type.
static HlStatus check_shape(const Stage *stage, const HlShape *shape, Shape *to) {
  if (!shape) return fail_call(HL_INVALID, "shape: a null pointer");
  HlStatus status = check_size("batch", shape->batch, 65536);
  if (!status) status = check_size("heads", shape->heads, 65536);
  if (!status) status = check_size("seqlen", shape->seqlen, 1 << 20);
  if (status) return status;
  if (shape->head_dim != 64 && shape->head_dim != 128)
    return fail_call(HL_INVALID, "head_dim %" PRId32 ": 64 and 128 are allowed", shape->head_dim);
  if (shape->causal != 0 && shape->causal != 1)
    return fail_call(HL_INVALID, "causal %" PRId32 ": 0 and 1 are allowed", shape->causal);
  int64_t rows = (int64_t)shape->batch * shape->heads * shape->seqlen;
  if (rows > INT32_MAX)
    return fail_call(HL_INVALID, "batch * heads * seqlen is %" PRId64 ": at most %" PRId32 " is allowed", rows,
                     INT32_MAX);
  *to = (Shape){shape->batch, shape->heads, shape->seqlen, shape->head_dim, shape->causal};
  const char *why = stage->unsupported ? stage->unsupported(to) : NULL;
  return why ? fail_call(HL_UNSUPPORTED, "stage %s: %s", stage->name, why) : HL_OK;
}

// Whether the strides are those of a contiguous tensor, in every dimension that has more than one element.
static bool is_contiguous(const int64_t stride[4], const int64_t size[4], int64_t expected[4]) {
  bool given = stride[0] || stride[1] || stride[2] || stride[3], same = true;
  for (int64_t d = 3, step = 1; d >= 0; step *= size[d--]) {
    expected[d] = step;
    if (size[d] > 1 && stride[d] != step) same = false;
  }
  return same || !given;
}

static HlStatus check_tensor(const char *name, const HlTensor *tensor, const Shape *shape) {
  if (!tensor || !tensor->data) return fail_call(HL_INVALID, "%s: a null pointer", name);
  if ((uintptr_t)tensor->data % 16)
    return fail_call(HL_INVALID, "%s: the address %p is not aligned to 16 bytes", name, tensor->data);
  int64_t size[4] = {shape->batch, shape->heads, shape->seqlen, shape->head_dim}, expected[4];
  const int64_t *stride = tensor->stride;
  if (is_contiguous(stride, size, expected)) return HL_OK;
  return fail_call(
      HL_UNSUPPORTED,
      "%s: strides %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "; only a contiguous tensor is allowed, "
      "%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64,
      name, stride[0], stride[1], stride[2], stride[3], expected[0], expected[1], expected[2], expected[3]);
}

// A tensor among the arguments: its name, for messages, and the bytes of an element.
typedef struct Argument {
  const char *name;
  const HlTensor *tensor;
  size_t element;
} Argument;

// The tensors of a call: inputs, then outputs. The first four are Q, K, V and O.
typedef struct Arguments {
  int inputs, count;
  Argument list[8];
} Arguments;

enum { F16 = 2, E4M3 = 1 };  // bytes

static size_t tensor_bytes(const Argument *argument, const Shape *shape) {
  return (size_t)shape->batch * shape->heads * shape->seqlen * shape->head_dim * argument->element;
}

static bool ranges_overlap(const void *a, size_t a_size, const void *b, size_t b_size) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return x < y + b_size && y < x + a_size;
}

// Checks each tensor, and that no output overlaps another tensor.
static HlStatus check_tensors(const Arguments *arguments, const Shape *shape) {
  const Argument *list = arguments->list;
  for (int i = 0; i < arguments->count; i++) {
    HlStatus status = check_tensor(list[i].name, list[i].tensor, shape);
    if (status) return status;
  }
  for (int i = arguments->inputs; i < arguments->count; i++)
    for (int j = 0; j < i; j++)
      if (ranges_overlap(list[i].tensor->data, tensor_bytes(&list[i], shape), list[j].tensor->data,
                         tensor_bytes(&list[j], shape)))
        return fail_call(HL_INVALID, "%s overlaps %s", list[i].name, list[j].name);
  return HL_OK;
}

// written: lse is an output itself, and may not overlap an input either.
static HlStatus check_lse(const float *lse, bool written, const Arguments *arguments, const Shape *shape) {
  if (!lse) return fail_call(HL_INVALID, "lse: a null pointer");
  if ((uintptr_t)lse % sizeof *lse)
    return fail_call(HL_INVALID, "lse: the address %p is not aligned to 4 bytes", (const void *)lse);
  size_t size = (size_t)shape->batch * shape->heads * shape->seqlen * sizeof *lse;
  for (int i = written ? 0 : arguments->inputs; i < arguments->count; i++) {
    const Argument *other = &arguments->list[i];
    if (ranges_overlap(other->tensor->data, tensor_bytes(other, shape), lse, size))
      return fail_call(HL_INVALID, "%s overlaps lse", other->name);
  }
  return HL_OK;
}

static HlStatus check_scale(const char *name, const HlScale *scale) {
  if (!scale || !scale->data) return fail_call(HL_INVALID, "%s: a null pointer", name);
  if ((uintptr_t)scale->data % sizeof(float))
    return fail_call(HL_INVALID, "%s: the address %p is not aligned to 4 bytes", name, (const void *)scale->data);
  if (scale->per_head != 0 && scale->per_head != 1)
    return fail_call(HL_INVALID, "%s: per_head %" PRId32 ": 0 and 1 are allowed", name, scale->per_head);
  return HL_OK;
}

static HlStatus check_scales(const HlScale *const scales[3]) {
  static const char *const names[] = {"q_scale", "k_scale", "v_scale"};
  for (int i = 0; i < 3; i++) {
    HlStatus status = check_scale(names[i], scales[i]);
    if (status) return status;
    if (scales[i]->per_head != scales[0]->per_head)
      return fail_call(HL_INVALID,
                       "%s: per_head %" PRId32 ", but that of q_scale is %" PRId32 "; all three must be the same",
                       names[i], scales[i]->per_head, scales[0]->per_head);
  }
  return HL_OK;
}

// Checks that the function that was called is the one for this stage.
static HlStatus check_function(const Stage *stage, const char *called) {
  const char *what = "its inputs are fp16", *function = "hl_attention";
  if (stage->inputs == INPUTS_E4M3) what = "its inputs are e4m3", function = "hl_attention_e4m3";
  if (stage->backward) what = "it is for the backward pass", function = "hl_attention_backward";
  if (!strcmp(called, function)) return HL_OK;
  return fail_call(HL_INVALID, "stage %s: %s; call %s", stage->name, what, function);
}

// ---- what the library has in each context ----

// What the launches in one stream use one after another, whatever their stages: a workspace with undefined contents, and a
// counter, which each launch finds at 0 and leaves at 0.
typedef struct Stream {
  uint64_t id;
  DeviceAddress workspace, counter;  // 0: none was needed yet
  size_t workspace_size;
  bool counter_begun;  // it was set to 0
  struct Stream *next;
} Stream;

typedef struct Context {
  Device *device;
  DeviceModule *modules[STAGE_COUNT];  // NULL until a stage is first called
  Stream *streams;
  struct Context *next;
} Context;

static Context *contexts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // held for all that follows

// The link that leads to the current context, which is NULL when the library has nothing there yet.
static Context **find_context(void) {
  Context **link = &contexts;
  while (*link && !device_is_current((*link)->device)) link = &(*link)->next;
  return link;
}

// The current context, with a device when it is new; NULL and *status when there is none.
static Context *open_context(HlStatus *status) {
  Context **link = find_context();
  if (*link) return *link;
  DeviceError error;
  Context *new = calloc(1, sizeof *new);
  if (!new) {
    *status = fail_call(HL_OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  new->device = device_attach(&error);
  if (new->device) return *link = new;
  *status = fail_device(&error);
  free(new);
  return NULL;
}

static bool load_stage(Context *context, int index) {
  const Entry *entry = &entries[index];
  DeviceImage image = {
      .ptx = entry->ptx, .cubin = entry->cubin, .cubin_size = (size_t)(entry->cubin_end - entry->cubin)};
  if (!context->modules[index]) context->modules[index] = device_load(context->device, &image);
  return context->modules[index] != NULL;
}

// Finds or makes the entry of the current stream; NULL on failure.
static Stream *find_stream(Context *context) {
  uint64_t id;
  if (!device_stream_id(context->device, &id)) return NULL;
  Stream *stream = context->streams;
  while (stream && stream->id != id) stream = stream->next;
  if (stream) return stream;
  stream = calloc(1, sizeof *stream);
  if (!stream) {
    device_fail(context->device, DEVICE_OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  *stream = (Stream){.id = id, .next = context->streams};
  return context->streams = stream;
}

// Makes the workspace larger if it has less than size bytes. The driver frees the old one only after the work that was
// queued before.
static bool reserve_workspace(Device *device, Stream *stream, size_t size) {
  if (stream->workspace_size >= size) return true;
  device_free(device, stream->workspace);
  stream->workspace = device_alloc(device, size);
  stream->workspace_size = stream->workspace ? size : 0;
  return stream->workspace != 0;
}

// Allocates the counter if there is none yet, and queues a fill with 0 before the next launch.
static bool reserve_counter(Device *device, Stream *stream) {
  if (!stream->counter) stream->counter = device_alloc(device, sizeof(uint32_t));
  if (!stream->counter_begun) stream->counter_begun = device_fill(device, stream->counter, 0, sizeof(uint32_t));
  return stream->counter_begun;
}

static bool launch_stage(Context *context, int index, Attention *attention) {
  const Stage *stage = entries[index].stage;
  size_t size = stage->workspace ? stage->workspace(&attention->shape) : 0;
  if (!load_stage(context, index)) return false;
  attention->module = context->modules[index];
  if (size || stage->counter) {
    Stream *stream = find_stream(context);
    if (!stream || !reserve_workspace(context->device, stream, size)) return false;
    if (stage->counter && !reserve_counter(context->device, stream)) return false;
    attention->workspace = stream->workspace;
    attention->counter = stream->counter;
  }
  return stage->launch(context->device, attention);
}

static HlStatus launch_locked(int index, Attention *attention, void *stream) {
  HlStatus status;
  Context *context = open_context(&status);
  if (!context) return status;
  device_use_stream(context->device, stream);
  if (launch_stage(context, index, attention)) return HL_OK;
  status = fail_device(device_error(context->device));
  device_clear_error(context->device);
  return status;
}

HlStatus hl_supports(const char *stage, const HlShape *shape) {
  int index;
  Shape checked;
  HlStatus status = find_stage(stage, &index);
  return status ? status : check_shape(entries[index].stage, shape, &checked);
}

static DeviceAddress device_address(const void *data) { return (DeviceAddress)(uintptr_t)data; }

// Checks the arguments that all stages share and fills in *attention from them. function: which one was called.
static HlStatus begin_call(const char *stage, const char *function, const HlShape *shape, const Arguments *arguments,
                           int *index, Attention *attention) {
  HlStatus status = find_stage(stage, index);
  if (!status) status = check_function(entries[*index].stage, function);
  if (!status) status = check_shape(entries[*index].stage, shape, &attention->shape);
  if (!status) status = check_tensors(arguments, &attention->shape);
  if (status) return status;
  attention->scale = (float)(1 / sqrt(attention->shape.head_dim));
  attention->q = device_address(arguments->list[0].tensor->data);
  attention->k = device_address(arguments->list[1].tensor->data);
  attention->v = device_address(arguments->list[2].tensor->data);
  attention->o = device_address(arguments->list[3].tensor->data);
  return HL_OK;
}

static HlStatus launch_alone(int index, Attention *attention, void *stream) {
  pthread_mutex_lock(&lock);
  HlStatus status = launch_locked(index, attention, stream);
  pthread_mutex_unlock(&lock);
  return status;
}

HlStatus hl_attention(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k, const HlTensor *v,
                      const HlTensor *o, void *stream) {
  int index;
  Attention attention = {0};
  const Arguments arguments = {3, 4, {{"q", q, F16}, {"k", k, F16}, {"v", v, F16}, {"o", o, F16}}};
  HlStatus status = begin_call(stage, __func__, shape, &arguments, &index, &attention);
  return status ? status : launch_alone(index, &attention, stream);
}

static HlStatus check_writes_lse(const Stage *stage) {
  return stage->lse ? HL_OK : fail_call(HL_UNSUPPORTED, "stage %s: it does not write the log-sum-exp", stage->name);
}

HlStatus hl_attention_lse(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k,
                          const HlTensor *v, const HlTensor *o, float *lse, void *stream) {
  int index;
  Attention attention = {0};
  const Arguments arguments = {3, 4, {{"q", q, F16}, {"k", k, F16}, {"v", v, F16}, {"o", o, F16}}};
  HlStatus status = begin_call(stage, "hl_attention", shape, &arguments, &index, &attention);
  if (!status) status = check_writes_lse(entries[index].stage);
  if (!status) status = check_lse(lse, true, &arguments, &attention.shape);
  if (status) return status;
  attention.lse = device_address(lse);
  return launch_alone(index, &attention, stream);
}

HlStatus hl_attention_e4m3(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k,
                           const HlTensor *v, const HlTensor *o, const HlScale *q_scale, const HlScale *k_scale,
                           const HlScale *v_scale, void *stream) {
  int index;
  Attention attention = {0};
  const Arguments arguments = {3, 4, {{"q", q, E4M3}, {"k", k, E4M3}, {"v", v, E4M3}, {"o", o, F16}}};
  HlStatus status = begin_call(stage, __func__, shape, &arguments, &index, &attention);
  if (!status) status = check_scales((const HlScale *const[]){q_scale, k_scale, v_scale});
  if (status) return status;
  attention.q_scale = device_address(q_scale->data);
  attention.k_scale = device_address(k_scale->data);
  attention.v_scale = device_address(v_scale->data);
  attention.scale_stride = q_scale->per_head;
  return launch_alone(index, &attention, stream);
}

static HlStatus backward(bool deterministic, const char *stage, const HlShape *shape, const HlTensor *q,
                         const HlTensor *k, const HlTensor *v, const HlTensor *o, const HlTensor *d_o, const float *lse,
                         const HlTensor *d_q, const HlTensor *d_k, const HlTensor *d_v, void *stream) {
  int index;
  Attention attention = {0};
  const Arguments arguments = {5,
                               8,
                               {{"q", q, F16},
                                {"k", k, F16},
                                {"v", v, F16},
                                {"o", o, F16},
                                {"d_o", d_o, F16},
                                {"d_q", d_q, F16},
                                {"d_k", d_k, F16},
                                {"d_v", d_v, F16}}};
  HlStatus status = begin_call(stage, "hl_attention_backward", shape, &arguments, &index, &attention);
  if (!status) status = check_lse(lse, false, &arguments, &attention.shape);
  if (status) return status;
  attention.deterministic = deterministic;
  attention.d_o = device_address(d_o->data);
  attention.lse = device_address(lse);
  attention.d_q = device_address(d_q->data);
  attention.d_k = device_address(d_k->data);
  attention.d_v = device_address(d_v->data);
  return launch_alone(index, &attention, stream);
}

HlStatus hl_attention_backward(const char *stage, const HlShape *shape, const HlTensor *q, const HlTensor *k,
                               const HlTensor *v, const HlTensor *o, const HlTensor *d_o, const float *lse,
                               const HlTensor *d_q, const HlTensor *d_k, const HlTensor *d_v, void *stream) {
  return backward(false, stage, shape, q, k, v, o, d_o, lse, d_q, d_k, d_v, stream);
}

HlStatus hl_attention_backward_deterministic(const char *stage, const HlShape *shape, const HlTensor *q,
                                             const HlTensor *k, const HlTensor *v, const HlTensor *o,
                                             const HlTensor *d_o, const float *lse, const HlTensor *d_q,
                                             const HlTensor *d_k, const HlTensor *d_v, void *stream) {
  return backward(true, stage, shape, q, k, v, o, d_o, lse, d_q, d_k, d_v, stream);
}

static void free_context(Context *context) {
  for (Stream *stream = context->streams, *next; stream; stream = next) {
    next = stream->next;
    device_free(context->device, stream->workspace);
    device_free(context->device, stream->counter);
    free(stream);
  }
  device_close(context->device);
  free(context);
}

HlStatus hl_release(void) {
  pthread_mutex_lock(&lock);
  Context **link = find_context(), *context = *link;
  if (context) {
    *link = context->next;
    free_context(context);
  }
  pthread_mutex_unlock(&lock);
  return HL_OK;
}
