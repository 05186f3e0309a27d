// libhopper_ladder.so: finds the stage of a call and the device of the caller's context, and calls the stage's launch.
//
// The Makefile compiles stage.c and embed.S of each stage of attention and decode a second time, with `stage` and its
// cubin renamed to stage_NN, stage_NN_cubin; it defines their list, STAGES(X), as X(00) X(01) X(02) X(02b) ...
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
    descriptions[i] = (HlStage){
        .number = entries[i].number,
        .name = stage->name,
        .title = stage->title,
        .type = stage->decode && stage->inputs == INPUTS_F16 ? HL_BF16 : (HlType)stage->inputs,
        .backward = stage->backward,
        .lse = stage->lse,
        .strided = stage->strided,
        .decode = stage->decode != NULL,
        .ragged = stage->ragged,
        .head_dim = stage->head_dim,
        .queries = !stage->decode   ? 0
                   : stage->queries ? stage->queries
                                    : 1,
    };
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
  return stage->launch && stage->backward == backward && (int)stage->inputs == (int)call->type &&
         (backward || !call->lse || stage->lse);
}

static HlStatus find_newest(const HlCall *call, bool backward, int *index) {
  for (*index = STAGE_COUNT - 1; *index >= 0; --*index)
    if (does(entries[*index].stage, call, backward)) return HL_OK;
  return call_fail(HL_UNSUPPORTED, "no stage of this library does that: %s pass, type %d%s",
                   backward ? "backward" : "forward", (int)call->type, !backward && call->lse ? ", with lse" : "");
}

static HlStatus find_number(const char *number, int *index) {
  for (*index = 0; *index < STAGE_COUNT; ++*index)
    if (!strcmp(entries[*index].number, number)) return HL_OK;
  char list[300];
  list_stages(list, sizeof list);
  return call_fail(HL_INVALID, "stage %s: this library has no such stage; it has %s", number, list);
}

static HlStatus find_stage(const HlCall *call, bool backward, int *index) {
  if (!call) return call_fail(HL_INVALID, "call: a null pointer");
  return call->stage ? find_number(call->stage, index) : find_newest(call, backward, index);
}

// Whether the tensor, Q or O, is contiguous.
static bool is_contiguous(const DecodeShape *shape, DeviceTensor tensor) {
  const DeviceTensor whole = {.address = tensor.address};
  const DeviceTensor plain = decode_tensor_with_strides(shape->heads, shape->queries, shape->head_dim, whole);
  return tensor.batch == plain.batch && tensor.head == plain.head && tensor.row == plain.row;
}

// Stage 22 reads sequences of different lengths and pages faster than 13g, where it can, and 13g faster than 13d. Of
// the others the fastest on an H100 (plots/data/decode). With about as many key heads as SMs nothing is to be split;
// with very many and long ones, the blocks of large clusters read side by side. With fewer key heads, one launch is
// better for a small cache, and free blocks are for a large one: between 67 and 134 MB; or 4 MB for each of so few that
// clusters, of up to 16 blocks, leave most SMs idle. The last fence of 13c counts where an answer takes a few
// microseconds.
static const char *fastest_of_bf16(const Decode *decode) {
  const int64_t small_cache = 96 << 20, small_head = 4 << 20;  // bytes
  const int64_t large_cache = 1 << 30, few_heads = 4, many_heads = 128, very_many_heads = 248;
  const int few_keys = 1024;
  const DecodeShape *shape = &decode->shape;
  if (!is_contiguous(shape, decode->q) || !is_contiguous(shape, decode->o)) return "13g";
  if (decode->lengths || shape->page) return shape->head_dim == 128 ? "22" : "13g";
  int64_t key_heads = (int64_t)shape->batch * shape->kv_heads, head_bytes = (int64_t)shape->keys * shape->head_dim * 4;
  int64_t bytes = key_heads * head_bytes;
  if (key_heads >= many_heads) return key_heads >= very_many_heads && bytes >= large_cache ? "13c" : "13";
  if (bytes > small_cache || (key_heads < few_heads && head_bytes > small_head)) return "13b";
  return shape->head_dim == 128 && shape->keys <= few_keys ? "22" : "13c";
}

// Finds the stage of a call, and checks the call.
static HlStatus find_decode(const HlDecode *call, int *index, Decode *decode) {
  if (!call) return call_fail(HL_INVALID, "call: a null pointer");
  const char *most = call->type == HL_E4M3            ? "13e"
                     : call->queries > 1 || call->lse ? "13g"
                                                      : "13d";  // what does all there is to do
  HlStatus status = find_number(call->stage ? call->stage : most, index);
  if (!status) status = decode_call_check(entries[*index].stage, call, decode);
  if (status || call->stage || strcmp(most, "13d")) return status;
  return find_number(fastest_of_bf16(decode), index);
}

// ---- what the library has in each context ----

// What the launches in one stream use one after another, whatever their stages: a workspace with undefined contents,
// and a counter, which each launch finds at 0 and leaves at 0.
typedef struct Stream {
  uint64_t id;
  void *handle;                      // which a later stream may have, too; NULL: that of several streams
  DeviceAddress workspace, counter;  // 0: none was needed yet
  size_t workspace_size;
  bool counter_begun;  // it was set to 0
  bool captured;       // a CUDA graph has the workspace's address
  struct Stream *next;
} Stream;

// A workspace that became too small, and that a CUDA graph may still use.
typedef struct Kept {
  DeviceAddress workspace;
  struct Kept *next;
} Kept;

typedef struct Context {
  Device *device;
  DeviceModule *modules[STAGE_COUNT];  // NULL until a stage is first called
  Stream *streams;
  Kept *kept;
  bool capturing;  // the stream of the call at hand is captured
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

// A stream that is captured for a CUDA graph can queue kernels, and nothing else is allowed in the meantime.
static bool expect_no_capture(Context *context, const char *what) {
  return !context->capturing || device_fail(context->device, DEVICE_INVALID,
                                            "the stream is captured, and this call has to %s first; make the same call "
                                            "on it once before the capture",
                                            what);
}

static bool load_stage(Context *context, int index) {
  DeviceModule **module = &context->modules[index];
  if (!*module && expect_no_capture(context, "load its kernels"))
    *module = load_entry(context->device, &entries[index]);
  return *module != NULL;
}

static Stream *new_stream(Context *context, uint64_t id, void *handle) {
  Stream *stream = calloc(1, sizeof *stream);
  if (!stream) {
    device_fail(context->device, DEVICE_OUT_OF_MEMORY, "out of host memory");
    return NULL;
  }
  // Each thread has a default stream of its own, and all have this handle.
  bool is_of_each_thread = handle == (void *)0x2;  // CU_STREAM_PER_THREAD
  *stream = (Stream){.id = id, .handle = is_of_each_thread ? NULL : handle, .next = context->streams};
  return context->streams = stream;
}

// Finds or makes the entry of the current stream; NULL on failure. CUDA does not tell the id of a stream that is
// captured. Then it is the last one that had this handle.
static Stream *find_stream(Context *context, void *handle) {
  uint64_t id = 0;
  Stream *stream = context->streams;
  if (!context->capturing && !device_stream_id(context->device, &id)) return NULL;
  while (stream && (context->capturing ? stream->handle != handle : stream->id != id)) stream = stream->next;
  if (stream || !expect_no_capture(context, "allocate a workspace")) return stream;
  return new_stream(context, id, handle);
}

// Gives up the workspace. The driver frees it only after the work that was queued before, but does not know what graphs
// use.
static bool drop_workspace(Context *context, Stream *stream) {
  if (!stream->captured) return device_free(context->device, stream->workspace);
  Kept *kept = malloc(sizeof *kept);
  if (!kept) return device_fail(context->device, DEVICE_OUT_OF_MEMORY, "out of host memory");
  *kept = (Kept){stream->workspace, context->kept};
  context->kept = kept;
  stream->captured = false;
  return true;
}

// Makes the workspace larger if it has less than size bytes.
static bool reserve_workspace(Context *context, Stream *stream, size_t size) {
  if (stream->workspace_size < size) {
    if (!expect_no_capture(context, "allocate a workspace") || !drop_workspace(context, stream)) return false;
    stream->workspace = device_alloc(context->device, size);
    stream->workspace_size = stream->workspace ? size : 0;
  }
  stream->captured |= context->capturing;
  return stream->workspace_size >= size;
}

// Allocates the counter if there is none yet, and queues a fill with 0 before the next launch.
static bool reserve_counter(Context *context, Stream *stream) {
  Device *device = context->device;
  if (!stream->counter && expect_no_capture(context, "allocate a counter"))
    stream->counter = device_alloc(device, sizeof(uint32_t));
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

// A call that has been checked: of attention, or else of decode.
typedef struct Call {
  int stage;  // its index
  Attention attention;
  Decode decode;
  void *stream;
} Call;

static bool queue_attention(Context *context, Call *call) {
  const Stage *stage = entries[call->stage].stage;
  Attention *attention = &call->attention;
  int launches;
  split_batches(attention, &launches);
  size_t size = stage->workspace ? stage->workspace(&attention->shape) : 0;
  attention->module = context->modules[call->stage];
  if (size || stage->counter) {
    Stream *stream = find_stream(context, call->stream);
    if (!stream || !reserve_workspace(context, stream, size)) return false;
    if (stage->counter && !reserve_counter(context, stream)) return false;
    attention->workspace = stream->workspace;
    attention->counter = stream->counter;
  }
  for (int batch = 0; batch < launches; batch++) {
    if (batch) next_batch(attention, stage->inputs);
    if (!stage->launch(context->device, attention)) return false;
  }
  return true;
}

static bool queue_decode(Context *context, Call *call) {
  const Stage *stage = entries[call->stage].stage;
  Decode *decode = &call->decode;
  int sm_count = device_info(context->device)->sm_count;
  size_t size = stage->decode_workspace ? stage->decode_workspace(&decode->shape, 0, sm_count) : 0;
  decode->module = context->modules[call->stage];
  if (size) {
    Stream *stream = find_stream(context, call->stream);
    if (!stream || !reserve_workspace(context, stream, size)) return false;
    decode->workspace = stream->workspace;
  }
  return stage->decode(context->device, decode);
}

static HlStatus launch_locked(Call *call) {
  HlStatus status;
  Context *context = open_context(&status);
  if (!context) return status;
  device_use_stream(context->device, call->stream);
  bool is_decode = entries[call->stage].stage->decode;
  if (device_is_capturing(context->device, &context->capturing) && load_stage(context, call->stage) &&
      (is_decode ? queue_decode : queue_attention)(context, call))
    return HL_OK;
  status = fail_device(device_error(context->device));
  device_clear_error(context->device);
  return status;
}

static HlStatus launch(Call *call) {
  pthread_mutex_lock(&lock);
  HlStatus status = launch_locked(call);
  pthread_mutex_unlock(&lock);
  return status;
}

static HlStatus run(const HlCall *call, bool backward) {
  Call checked = {.stage = 0};
  HlStatus status = find_stage(call, backward, &checked.stage);
  if (!status) status = call_check(entries[checked.stage].stage, call, backward, &checked.attention);
  if (status || call->flags & HL_CHECK) return status;
  checked.stream = call->stream;
  return launch(&checked);
}

HlStatus hl_attention(const HlCall *call) { return run(call, false); }

HlStatus hl_attention_backward(const HlCall *call) { return run(call, true); }

HlStatus hl_attention_decode(const HlDecode *call) {
  Call checked = {.stage = 0};
  HlStatus status = find_decode(call, &checked.stage, &checked.decode);
  if (status || call->flags & HL_CHECK) return status;
  checked.stream = call->stream;
  return launch(&checked);
}

static void free_context(Context *context) {
  for (Stream *stream = context->streams, *next; stream; stream = next) {
    next = stream->next;
    device_free(context->device, stream->workspace);
    device_free(context->device, stream->counter);
    free(stream);
  }
  for (Kept *kept = context->kept, *next; kept; kept = next) {
    next = kept->next;
    device_free(context->device, kept->workspace);
    free(kept);
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
