// libhopper_ladder.so: finds the stage of a call and the device of the caller's context, and calls the stage's launch.
//
// The Makefile compiles each attention stage's stage.c and embed.S a second time, with `stage` and its cubin renamed to
// stage_NN, stage_NN_cubin; it defines their list, STAGES(X), as X(00) X(01) X(02) X(02b) ...
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

// ---- the stages ----

#define DECLARE(number)                                                                                                \
  extern const Stage stage_##number;                                                                                   \
  extern const char stage_##number##_cubin[], stage_##number##_cubin_end[];
STAGES(DECLARE)

typedef struct Entry {
  const char *number;
  const Stage *stage;
  const char *cubin, *cubin_end;
} Entry;

#define ENTRY(number) {#number, &stage_##number, stage_##number##_cubin, stage_##number##_cubin_end},
static const Entry entries[] = {STAGES(ENTRY)};
enum { STAGE_COUNT = sizeof entries / sizeof *entries };

static HlStage descriptions[STAGE_COUNT];

static void describe_stages(void) {
  for (int i = 0; i < STAGE_COUNT; i++) {
    const Stage *stage = entries[i].stage;
    descriptions[i] = (HlStage){entries[i].number, stage->name, stage->title,  (HlType)stage->inputs,
                                stage->backward,   stage->lse,  stage->strided};
  }
}

int hl_stage_count(void) { return STAGE_COUNT; }

const HlStage *hl_stage(int index) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, describe_stages);
  return index >= 0 && index < STAGE_COUNT ? &descriptions[index] : NULL;
}

// ---- errors ----

static HlStatus fail_device(const DeviceError *error) {
  static const HlStatus statuses[] = {
      [DEVICE_OK] = HL_FAILED,       [DEVICE_ABSENT] = HL_ABSENT, [DEVICE_UNSUPPORTED] = HL_UNSUPPORTED,
      [DEVICE_INVALID] = HL_INVALID, [DEVICE_FAULT] = HL_FAILED,  [DEVICE_OUT_OF_MEMORY] = HL_OUT_OF_MEMORY,
      [DEVICE_FAILED] = HL_FAILED,
  };
  return call_fail(statuses[error->code], "%s", error->text);
}

// ---- which stage ----

// Writes the numbers of all stages, "00, 01, 02, 03", for the message about an unknown one.
static void list_stages(char *text, size_t size) {
  size_t used = 0;
  for (int i = 0; i < STAGE_COUNT && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", entries[i].number);
}

static bool does(const Stage *stage, const HlCall *call, bool backward) {
  return stage->backward == backward && (int)stage->inputs == (int)call->type && (backward || !call->lse || stage->lse);
}

static HlStatus find_newest(const HlCall *call, bool backward, int *index) {
  for (*index = STAGE_COUNT - 1; *index >= 0; --*index)
    if (does(entries[*index].stage, call, backward)) return HL_OK;
  return call_fail(HL_UNSUPPORTED, "no stage of this library does that: %s pass, type %d%s",
                   backward ? "backward" : "forward", (int)call->type, !backward && call->lse ? ", with lse" : "");
}

static HlStatus find_stage(const HlCall *call, bool backward, int *index) {
  if (!call) return call_fail(HL_INVALID, "call: a null pointer");
  if (!call->stage) return find_newest(call, backward, index);
  for (*index = 0; *index < STAGE_COUNT; ++*index)
    if (!strcmp(entries[*index].number, call->stage)) return HL_OK;
  char list[200];
  list_stages(list, sizeof list);
  return call_fail(HL_INVALID, "stage %s: this library has no such stage; it has %s", call->stage, list);
}

// ---- what the library has in each context ----

// What the launches in one stream use one after another, whatever their stages: a workspace with undefined contents,
// and a counter, which each launch finds at 0 and leaves at 0.
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
    *status = call_fail(HL_OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  new->device = device_attach(&error);
  if (new->device) return *link = new;
  *status = fail_device(&error);
  free(new);
  return NULL;
}

// The PTX is in a library of its own, beside this one. It stays loaded, because its modules refer to it.
static const char *find_ptx(Device *device, const char *number) {
  char name[40];
  snprintf(name, sizeof name, "stage_%s_ptx", number);
  void *library = dlopen("libhopper_ladder_ptx.so", RTLD_NOW);
  const char *ptx = library ? dlsym(library, name) : NULL;
  if (!ptx)
    device_fail(
        device, DEVICE_ABSENT,
        "this driver runs PTX, as hopper-run's does: libhopper_ladder_ptx.so must be beside libhopper_ladder.so");
  return ptx;
}

// A GPU runs the cubin. The stand-in for the driver that hopper-run preloads does not support it.
static DeviceModule *load_entry(Device *device, const Entry *entry) {
  DeviceImage image = {.cubin = entry->cubin, .cubin_size = (size_t)(entry->cubin_end - entry->cubin)};
  DeviceModule *module = device_load(device, &image);
  if (module || device_error(device)->code != DEVICE_UNSUPPORTED) return module;
  device_clear_error(device);
  image.ptx = find_ptx(device, entry->number);
  return device_load(device, &image);
}

static bool load_stage(Context *context, int index) {
  DeviceModule **module = &context->modules[index];
  if (!*module) *module = load_entry(context->device, &entries[index]);
  return *module != NULL;
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

static bool is_one_launch(const Shape *shape, const DeviceTensor *tensor) {
  return shape->batch == 1 || tensor->batch == shape->heads * tensor->head;
}

// Moves all tensors on by a batch. An element has two bytes, one if it is e4m3.
static void next_batch(Attention *attention, StageInputs inputs) {
  int64_t heads = attention->shape.heads;
  const int64_t bytes[] = {inputs == INPUTS_F16 ? 2 : 1, inputs == INPUTS_F16 ? 2 : 1, inputs == INPUTS_E4M3 ? 1 : 2};
  DeviceTensor *read[] = {&attention->q, &attention->k, &attention->v};
  DeviceTensor *others[] = {&attention->o, &attention->d_o, &attention->d_q, &attention->d_k, &attention->d_v};
  DeviceAddress *scales[] = {&attention->q_scale, &attention->k_scale, &attention->v_scale};
  for (int i = 0; i < 3; i++) read[i]->address += (uint64_t)(read[i]->batch * bytes[i]);
  for (int i = 0; i < 5; i++) others[i]->address += (uint64_t)(others[i]->batch * 2);
  for (int i = 0; i < 3; i++)
    if (*scales[i]) *scales[i] += (uint64_t)(heads * attention->scale_stride) * sizeof(float);
  if (attention->lse) attention->lse += (uint64_t)(heads * attention->shape.seqlen) * sizeof(float);
}

// Makes a call one launch for all batches, or one for each where heads of different batches do not follow each other.
static void split_batches(Attention *attention, int *launches) {
  const Shape *shape = &attention->shape;
  const DeviceTensor *tensors[] = {&attention->q,   &attention->k,   &attention->v,   &attention->o,
                                   &attention->d_o, &attention->d_q, &attention->d_k, &attention->d_v};
  *launches = 1;
  for (int i = 0; i < 8; i++)
    if (!is_one_launch(shape, tensors[i])) *launches = shape->batch;
  attention->shape.batch /= *launches;
}

static bool launch(Context *context, int index, Attention *attention) {
  const Stage *stage = entries[index].stage;
  int launches;
  split_batches(attention, &launches);
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
  for (int batch = 0; batch < launches; batch++) {
    if (batch) next_batch(attention, stage->inputs);
    if (!stage->launch(context->device, attention)) return false;
  }
  return true;
}

static HlStatus launch_locked(int index, Attention *attention, void *stream) {
  HlStatus status;
  Context *context = open_context(&status);
  if (!context) return status;
  device_use_stream(context->device, stream);
  if (launch(context, index, attention)) return HL_OK;
  status = fail_device(device_error(context->device));
  device_clear_error(context->device);
  return status;
}

static HlStatus run(const HlCall *call, bool backward) {
  int index = 0;
  Attention attention;
  HlStatus status = find_stage(call, backward, &index);
  if (!status) status = call_check(entries[index].stage, call, backward, &attention);
  if (status || call->flags & HL_CHECK) return status;
  pthread_mutex_lock(&lock);
  status = launch_locked(index, &attention, call->stream);
  pthread_mutex_unlock(&lock);
  return status;
}

HlStatus hl_attention(const HlCall *call) { return run(call, false); }

HlStatus hl_attention_backward(const HlCall *call) { return run(call, true); }

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
