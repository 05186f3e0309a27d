// Streams and events.
#include "runtime.h"

API(cudaStreamCreate, (cudaStream_t * stream)) { return DO(cuStreamCreate(stream, 0)); }
API(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags)) { return DO(cuStreamCreate(stream, flags)); }

API(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority)) {
  return DO(cuStreamCreateWithPriority(stream, flags, priority));
}

API(cudaStreamDestroy, (cudaStream_t stream)) { return DO(cuStreamDestroy_v2(stream)); }
API(cudaStreamSynchronize, (cudaStream_t stream)) { return DO(cuStreamSynchronize(stream)); }
API(cudaStreamQuery, (cudaStream_t stream)) { return DO(cuStreamQuery(stream)); }
API(cudaStreamGetPriority, (cudaStream_t stream, int *result)) { return DO(cuStreamGetPriority(stream, result)); }
API(cudaStreamGetFlags, (cudaStream_t stream, unsigned *result)) { return DO(cuStreamGetFlags(stream, result)); }
API(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id)) { return DO(cuStreamGetId(stream, id)); }

API(cudaStreamGetDevice, (cudaStream_t stream, int *device)) {
  (void)stream;
  *device = 0;
  return DO(CUDA_SUCCESS);
}

API(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags)) {
  return DO(cuStreamWaitEvent(stream, event, flags));
}

API(cudaStreamAddCallback, (cudaStream_t stream, CUstreamCallback callback, void *data, unsigned flags)) {
  return DO(cuStreamAddCallback(stream, callback, data, flags));
}

API(cudaStreamSetAttribute, (cudaStream_t stream, cudaStreamAttrID id, const cudaStreamAttrValue *value)) {
  return DO(cuStreamSetAttribute(stream, (CUstreamAttrID)id, (const CUstreamAttrValue *)(const void *)value));
}

API(cudaStreamGetAttribute, (cudaStream_t stream, cudaStreamAttrID id, cudaStreamAttrValue *value)) {
  return DO(cuStreamGetAttribute(stream, (CUstreamAttrID)id, (CUstreamAttrValue *)(void *)value));
}

API(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from)) { return DO(cuStreamCopyAttributes(to, from)); }
API(cudaCtxResetPersistingL2Cache, (void)) { return DO(cuCtxResetPersistingL2Cache()); }

// ---- events ----

API(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags)) { return DO(cuEventCreate(event, flags)); }
API(cudaEventCreate, (cudaEvent_t * event)) { return cudaEventCreateWithFlags(event, 0); }
API(cudaEventDestroy, (cudaEvent_t event)) { return DO(cuEventDestroy_v2(event)); }
API(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream)) { return DO(cuEventRecord(event, stream)); }

API(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags)) {
  return DO(cuEventRecordWithFlags(event, stream, flags));
}

API(cudaEventQuery, (cudaEvent_t event)) { return DO(cuEventQuery(event)); }
API(cudaEventSynchronize, (cudaEvent_t event)) { return DO(cuEventSynchronize(event)); }

API(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end)) {
  return DO(cuEventElapsedTime(milliseconds, start, end));
}

API(cudaEventElapsedTime_v2, (float *milliseconds, cudaEvent_t start, cudaEvent_t end)) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

// ---- capture ----

API(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode)) {
  return DO(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
}

API(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph)) { return DO(cuStreamEndCapture(stream, graph)); }

API(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status)) {
  return DO(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

API(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode)) {
  return DO(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

#define V3                                                                                                             \
  (cudaStream_t stream, enum cudaStreamCaptureStatus * status, unsigned long long *id, cudaGraph_t *graph,             \
   const cudaGraphNode_t **nodes, const void **edges, size_t *count)
#define CALL_V3                                                                                                        \
  DO(cuStreamGetCaptureInfo_v3(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, nodes,                \
                               (const CUgraphEdgeData **)edges, count))
#if RUNTIME == 12
API(cudaStreamGetCaptureInfo, (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id)) {
  return DO(cuStreamGetCaptureInfo(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id));
}

API(cudaStreamGetCaptureInfo_v2, (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                  cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count)) {
  return DO(cuStreamGetCaptureInfo_v2(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, nodes, count));
}

API(cudaStreamGetCaptureInfo_v3, V3) { return CALL_V3; }
#else
API(cudaStreamGetCaptureInfo, V3) { return CALL_V3; }
#endif

API(cudaStreamBeginCaptureToGraph, (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
                                    const CUgraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode)) {
  return DO(cuStreamBeginCaptureToGraph(stream, graph, nodes, edges, count, (CUstreamCaptureMode)mode));
}

#define UPDATE                                                                                                         \
  (cudaStream_t stream, cudaGraphNode_t * nodes, const CUgraphEdgeData *edges, size_t count, unsigned flags)
#define CALL_UPDATE DO(cuStreamUpdateCaptureDependencies_v2(stream, nodes, edges, count, flags))

#if RUNTIME == 12
API(cudaStreamUpdateCaptureDependencies, (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags)) {
  return DO(cuStreamUpdateCaptureDependencies(stream, nodes, count, flags));
}

API(cudaStreamUpdateCaptureDependencies_v2, UPDATE) { return CALL_UPDATE; }
#else
API(cudaStreamUpdateCaptureDependencies, UPDATE) { return CALL_UPDATE; }
#endif
