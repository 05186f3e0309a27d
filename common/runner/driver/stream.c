// Streams and events. Work in a stream is done before the call returns. A stream that captures turns it into nodes of a
// graph instead.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct CUstream_st {
  uint64_t id;
  unsigned flags;
  int priority;
  Capture *capture;  // NULL: none
  NodeList last;     // the nodes that the next one of this stream comes after
  uint32_t launch;   // the number of its last operation, if that is a launch, else 0
  uint32_t early;    // a launch that the next one need not wait for, although it has no attribute for that; or 0
  struct CUstream_st *next;
};

struct CUevent_st {
  unsigned flags;
  bool recorded;
  uint32_t early;    // of a programmatic event: the launch that has recorded it
  Capture *capture;  // in which it was recorded, and after which nodes
  NodeList after;
};

static struct CUstream_st default_stream = {.id = 1}, thread_stream = {.id = 2};
static struct CUstream_st *streams;

struct CUstream_st *stream_of(CUstream handle) {
  if (!handle || handle == CU_STREAM_LEGACY) return &default_stream;
  if (handle == CU_STREAM_PER_THREAD) return &thread_stream;
  for (struct CUstream_st *s = streams; s; s = s->next)
    if (s == handle) return s;
  return NULL;
}

bool stream_captures(CUstream handle) {
  const struct CUstream_st *stream = stream_of(handle);
  return stream && stream->capture;
}

// ---- operations ----

void operation_free(Operation *operation) {
  if (operation->kind == OPERATION_LAUNCH) free(operation->as.launch.parameters);
  if (operation->kind == OPERATION_GRAPH) graph_free(operation->as.graph);
  if (operation->kind == OPERATION_CONDITION) condition_free(&operation->as.condition);
}

Operation operation_clone(const Operation *operation) {
  Operation clone = *operation;
  if (operation->kind == OPERATION_LAUNCH) clone.as.launch = launch_clone(&operation->as.launch);
  if (operation->kind == OPERATION_GRAPH) clone.as.graph = graph_clone(operation->as.graph);
  if (operation->kind == OPERATION_CONDITION) clone.as.condition = condition_clone(&operation->as.condition);
  return clone;
}

static CUresult run_fill(const Fill *fill, const char *function) {
  CUresult status = CUDA_SUCCESS;
  for (size_t y = 0; y < fill->height && status == CUDA_SUCCESS; y++)
    status = memory_fill(fill->to + y * fill->pitch, fill->value, fill->size, fill->width, function);
  return status;
}

CUresult operation_run(const Operation *operation) {
  switch (operation->kind) {
  case OPERATION_LAUNCH: return launch_do(&operation->as.launch);
  case OPERATION_COPY: return copy_run(&operation->as.copy, operation->function);
  case OPERATION_FILL: return run_fill(&operation->as.fill, operation->function);
  case OPERATION_HOST: operation->as.host.fn(operation->as.host.userData); return CUDA_SUCCESS;
  case OPERATION_RECORD: operation->as.event->recorded = true; return CUDA_SUCCESS;
  case OPERATION_GRAPH: return graph_run(operation->as.graph);
  case OPERATION_CONDITION: return condition_run(&operation->as.condition);
  case OPERATION_ALLOCATE: return graph_memory_allocate(operation->as.memory.address, operation->as.memory.size);
  case OPERATION_FREE: return graph_memory_free(operation->as.memory.address);
  default: return CUDA_SUCCESS;
  }
}

// ---- programmatic dependent launch ----

static uint32_t settled;  // launches up to this number have ended for everybody

void stream_settle(void) { settled = emulator_last_launch(core.emulator); }

// The launch in front that this one need not wait for, or 0. Another operation between the two waits for the one in
// front.
static uint32_t prerequisite_of(const struct CUstream_st *stream, const Launch *launch) {
  uint32_t number = launch->programmatic ? stream->launch : stream->early;
  return number > settled ? number : 0;
}

// The legacy default stream waits for all others, and they for it.
static void note_operation(struct CUstream_st *stream, const Operation *operation) {
  for (struct CUstream_st *other = streams; other && stream == &default_stream; other = other->next) other->launch = 0;
  if (stream != &default_stream) default_stream.launch = 0;
  stream->launch = operation->kind == OPERATION_LAUNCH ? emulator_last_launch(core.emulator) : 0;
  stream->early = 0;
}

CUresult stream_do(CUstream handle, Operation *operation) {
  struct CUstream_st *stream = stream_of(handle);
  CUresult status = CUDA_SUCCESS;
  if (!stream) {
    status = CUDA_ERROR_INVALID_HANDLE;
  } else if (!stream->capture) {
    if (operation->kind == OPERATION_LAUNCH)
      operation->as.launch.prerequisite = prerequisite_of(stream, &operation->as.launch);
    status = operation_run(operation);
    note_operation(stream, operation);
  } else {
    CUgraphNode node = graph_add(stream->capture->graph, stream->last.items, stream->last.count, operation);
    if (!node) return CUDA_ERROR_OUT_OF_MEMORY;
    stream->last.count = 0;
    node_list_add(&stream->last, node);
    return CUDA_SUCCESS;
  }
  operation_free(operation);
  return status;
}

// ---- streams ----

static CUresult create_stream(CUstream *stream, unsigned flags, int priority) {
  static uint64_t last_id = 2;
  if (!stream) return CUDA_ERROR_INVALID_VALUE;
  *stream = calloc(1, sizeof **stream);
  if (!*stream) return CUDA_ERROR_OUT_OF_MEMORY;
  **stream = (struct CUstream_st){.id = ++last_id, .flags = flags, .priority = priority, .next = streams};
  streams = *stream;
  return CUDA_SUCCESS;
}

API(cuStreamCreate, (CUstream * stream, unsigned flags)) {
  ENTER();
  return create_stream(stream, flags, 0);
}

API(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority)) {
  ENTER();
  return create_stream(stream, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
}

API(cuStreamDestroy_v2, (CUstream stream)) {
  ENTER();
  struct CUstream_st **link = &streams;
  while (*link && *link != stream) link = &(*link)->next;
  if (!*link) return CUDA_ERROR_INVALID_HANDLE;
  *link = stream->next;
  free(stream->last.items);
  free(stream);
  return CUDA_SUCCESS;
}

// A stream that waits for the host has nothing to wait for; while it captures, waiting is an error.
static CUresult wait_for(CUstream handle) {
  const struct CUstream_st *stream = stream_of(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream_settle();
  return CUDA_SUCCESS;
}

API(cuStreamSynchronize, (CUstream stream)) {
  ENTER();
  return wait_for(stream);
}

API(cuStreamQuery, (CUstream stream)) {
  ENTER();
  return wait_for(stream);
}

// Fills one value from a stream.
#define STREAM_VALUE(name, type, value)                                                                                \
  API(name, (CUstream handle, type * result)) {                                                                        \
    ENTER();                                                                                                           \
    const struct CUstream_st *stream = stream_of(handle);                                                              \
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;                                                                     \
    *result = value;                                                                                                   \
    return CUDA_SUCCESS;                                                                                               \
  }

STREAM_VALUE(cuStreamGetPriority, int, stream->priority)
STREAM_VALUE(cuStreamGetFlags, unsigned, stream->flags)
STREAM_VALUE(cuStreamGetCtx, CUcontext, context_current())

// A stream that is captured does not tell its id: so on an H100, with driver 580.
API(cuStreamGetId, (CUstream handle, unsigned long long *id)) {
  ENTER();
  const struct CUstream_st *stream = stream_of(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  *id = stream->id;
  return CUDA_SUCCESS;
}

STREAM_VALUE(cuStreamGetDevice, CUdevice, 0)

// The third result is the stream's part of a GPU (a green context): there are none here.
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *part);
API(cuStreamGetCtx_v2, (CUstream handle, CUcontext *context, CUgreenCtx *part)) {
  if (part) *part = NULL;
  return cuStreamGetCtx(handle, context);
}

STREAM_VALUE(cuStreamIsCapturing, CUstreamCaptureStatus,
             stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE)

API(cuStreamSetAttribute, (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value)) {
  ENTER();
  (void)id, (void)value;
  return stream_of(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API(cuStreamGetAttribute, (CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value)) {
  ENTER();
  (void)id;
  memset(value, 0, sizeof *value);
  return stream_of(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API(cuStreamCopyAttributes, (CUstream to, CUstream from)) {
  ENTER();
  return stream_of(to) && stream_of(from) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags)) {
  ENTER();
  (void)flags;
  if (stream_captures(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  callback(stream, CUDA_SUCCESS, data);
  return CUDA_SUCCESS;
}

// ---- values in memory ----

#define VALUE_OPERATIONS(bits)                                                                                         \
  API(cuStreamWriteValue##bits##_v2, (CUstream stream, CUdeviceptr address, cuuint##bits##_t value, unsigned flags)) { \
    ENTER();                                                                                                           \
    (void)flags;                                                                                                       \
    if (stream_captures(stream)) return core_missing("cuStreamWriteValue" #bits " while a stream captures");           \
    return memory_copy(address, (uint64_t)(uintptr_t)&value, sizeof value, "cuStreamWriteValue" #bits);                \
  }                                                                                                                    \
  API(cuStreamWaitValue##bits##_v2, (CUstream stream, CUdeviceptr address, cuuint##bits##_t value, unsigned flags)) {  \
    ENTER();                                                                                                           \
    cuuint##bits##_t found = 0;                                                                                        \
    if (stream_captures(stream)) return core_missing("cuStreamWaitValue" #bits " while a stream captures");            \
    CUresult status = memory_copy((uint64_t)(uintptr_t)&found, address, sizeof found, "cuStreamWaitValue" #bits);      \
    if (status != CUDA_SUCCESS) return status;                                                                         \
    bool met = (flags & 3) == CU_STREAM_WAIT_VALUE_EQ    ? found == value                                              \
               : (flags & 3) == CU_STREAM_WAIT_VALUE_AND ? (found & value) != 0                                        \
               : (flags & 3) == CU_STREAM_WAIT_VALUE_NOR ? (cuuint##bits##_t) ~(found | value) != 0                    \
                                                         : (int##bits##_t)(found - value) >= 0;                        \
    return met ? CUDA_SUCCESS : core_missing("cuStreamWaitValue" #bits " for a value that comes later");               \
  }

VALUE_OPERATIONS(32)
VALUE_OPERATIONS(64)

// ---- events ----

API(cuEventCreate, (CUevent * event, unsigned flags)) {
  ENTER();
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  *event = calloc(1, sizeof **event);
  if (!*event) return CUDA_ERROR_OUT_OF_MEMORY;
  (*event)->flags = flags;
  return CUDA_SUCCESS;
}

API(cuEventDestroy_v2, (CUevent event)) {
  ENTER();
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  free(event->after.items);
  free(event);
  return CUDA_SUCCESS;
}

API(cuEventRecord, (CUevent event, CUstream handle)) {
  ENTER();
  struct CUstream_st *stream = stream_of(handle);
  if (!event || !stream) return CUDA_ERROR_INVALID_HANDLE;
  event->capture = stream->capture;
  event->early = 0;
  if (stream->capture) {
    node_list_copy(&event->after, &stream->last);
  } else {
    event->recorded = true;
    stream->launch = 0;
  }
  return CUDA_SUCCESS;
}

void event_record_early(CUevent event) {
  if (!event) return;
  event->recorded = true;
  event->capture = NULL;
  event->early = emulator_last_launch(core.emulator);
}

API(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags)) {
  ENTER();
  if (!(flags & CU_EVENT_RECORD_EXTERNAL) || !stream_captures(stream)) return cuEventRecord(event, stream);
  Operation operation = {.kind = OPERATION_RECORD, .function = "cuEventRecord", .as.event = event};
  return stream_do(stream, &operation);
}

API(cuEventQuery, (CUevent event)) {
  ENTER();
  stream_settle();
  return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API(cuEventSynchronize, (CUevent event)) {
  ENTER();
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  stream_settle();
  return event->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

// The emulator has no clock, and any number would be taken for a time. NaN cannot be.
API(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end)) {
  ENTER();
  if (!milliseconds || !start || !end) return CUDA_ERROR_INVALID_HANDLE;
  if (!start->recorded || !end->recorded || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
    return CUDA_ERROR_INVALID_HANDLE;
  core_say_once("the emulator has no clock: the time between two events is NaN");
  *milliseconds = NAN;
  return CUDA_SUCCESS;
}

API(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end)) {
  return cuEventElapsedTime(milliseconds, start, end);
}

API(cuStreamWaitEvent, (CUstream handle, CUevent event, unsigned flags)) {
  ENTER();
  (void)flags;
  struct CUstream_st *stream = stream_of(handle);
  if (!stream || !event) return CUDA_ERROR_INVALID_HANDLE;
  if (!event->capture && stream->capture && event->recorded) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (!event->capture) {
    stream->launch = 0;
    if (event->early) stream->early = event->early;
    return CUDA_SUCCESS;
  }
  if (stream->capture && stream->capture != event->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  stream->capture = event->capture;
  for (size_t i = 0; i < event->after.count; i++) node_list_add(&stream->last, event->after.items[i]);
  return CUDA_SUCCESS;
}

// ---- capture ----

static CUresult begin_capture(CUstream handle, CUgraph graph, const CUgraphNode *nodes, size_t count) {
  static uint64_t last_id;
  struct CUstream_st *stream = stream_of(handle);
  if (!stream || stream == &default_stream)
    return stream ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = calloc(1, sizeof *stream->capture);
  if (!graph) graph = graph_new();
  if (!stream->capture || !graph) return CUDA_ERROR_OUT_OF_MEMORY;
  *stream->capture = (Capture){.graph = graph, .id = ++last_id, .origin = stream};
  stream->last.count = 0;
  for (size_t i = 0; i < count; i++) node_list_add(&stream->last, nodes[i]);
  return CUDA_SUCCESS;
}

API(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode)) {
  ENTER();
  (void)mode;
  return begin_capture(stream, NULL, NULL, 0);
}

API(cuStreamBeginCaptureToGraph, (CUstream stream, CUgraph graph, const CUgraphNode *nodes,
                                  const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)) {
  ENTER();
  (void)edges, (void)mode;
  return begin_capture(stream, graph, nodes, count);
}

API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode)) {
  static _Thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  CUstreamCaptureMode former = current;
  current = *mode;
  *mode = former;
  return CUDA_SUCCESS;
}

// The capture is at an end for every stream that took part.
static void leave_capture(Capture *capture) {
  struct CUstream_st *all[] = {streams, &default_stream, &thread_stream};
  for (int list = 0; list < 3; list++)
    for (struct CUstream_st *s = all[list]; s; s = s->next)
      if (s->capture == capture) {
        s->capture = NULL;
        s->last.count = 0;
      }
  // The capture itself stays: events may name it, and must not mistake another one for it.
}

API(cuStreamEndCapture, (CUstream handle, CUgraph *graph)) {
  ENTER();
  struct CUstream_st *stream = stream_of(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  Capture *capture = stream->capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  leave_capture(capture);
  if (graph) *graph = capture->graph;
  return CUDA_SUCCESS;
}

static CUresult capture_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **nodes, size_t *count) {
  const struct CUstream_st *stream = stream_of(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  *status = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (!stream->capture) return CUDA_SUCCESS;
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph;
  if (nodes) *nodes = stream->last.items;
  if (count) *count = stream->last.count;
  return CUDA_SUCCESS;
}

API(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)) {
  ENTER();
  return capture_info(stream, status, id, NULL, NULL, NULL);
}

API(cuStreamGetCaptureInfo_v2, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **nodes, size_t *count)) {
  ENTER();
  return capture_info(stream, status, id, graph, nodes, count);
}

API(cuStreamGetCaptureInfo_v3, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count)) {
  ENTER();
  if (edges) *edges = NULL;
  return capture_info(stream, status, id, graph, nodes, count);
}

static CUresult update_dependencies(CUstream handle, CUgraphNode *nodes, size_t count, unsigned flags) {
  struct CUstream_st *stream = stream_of(handle);
  if (!stream || !stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->last.count = 0;
  for (size_t i = 0; i < count; i++) node_list_add(&stream->last, nodes[i]);
  return CUDA_SUCCESS;
}

API(cuStreamUpdateCaptureDependencies, (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags)) {
  ENTER();
  return update_dependencies(stream, nodes, count, flags);
}

API(cuStreamUpdateCaptureDependencies_v2,
    (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count, unsigned flags)) {
  ENTER();
  (void)edges;
  return update_dependencies(stream, nodes, count, flags);
}
