// Checks a call: its numbers, where its tensors lie, and that what is written lies apart from all else.
#include "check.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- errors ----

static _Thread_local char error_text[512];

const char *hl_error(void) { return error_text; }

HlStatus call_fail(HlStatus status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_text, sizeof error_text, format, arguments);
  va_end(arguments);
  return status;
}

// ---- numbers ----

static HlStatus check_size(const char *name, int32_t size, int32_t largest) {
  if (size >= 1 && size <= largest) return HL_OK;
  return call_fail(HL_INVALID, "%s %" PRId32 ": 1 to %" PRId32 " are allowed", name, size, largest);
}

// Checks the limits of all stages, then those of this stage.
static HlStatus check_shape(const Stage *stage, const HlCall *call, Shape *to) {
  HlStatus status = check_size("batch", call->batch, 65536);
  if (!status) status = check_size("heads", call->heads, 65536);
  if (!status) status = check_size("seqlen", call->seqlen, 1 << 20);
  if (status) return status;
  if (call->head_dim != 64 && call->head_dim != 128)
    return call_fail(HL_INVALID, "head_dim %" PRId32 ": 64 and 128 are allowed", call->head_dim);
  if (call->causal != 0 && call->causal != 1)
    return call_fail(HL_INVALID, "causal %" PRId32 ": 0 and 1 are allowed", call->causal);
  int64_t rows = (int64_t)call->batch * call->heads * call->seqlen;
  if (rows > INT32_MAX)
    return call_fail(HL_INVALID, "batch * heads * seqlen is %" PRId64 ": at most %" PRId32 " is allowed", rows,
                     INT32_MAX);
  *to = (Shape){call->batch, call->heads, call->seqlen, call->head_dim, call->causal};
  const char *why = stage->unsupported ? stage->unsupported(to) : NULL;
  return why ? call_fail(HL_UNSUPPORTED, "stage %s: %s", stage->name, why) : HL_OK;
}

static HlStatus check_options(const HlCall *call) {
  if (call->flags & ~(uint32_t)(HL_DETERMINISTIC | HL_CHECK))
    return call_fail(HL_INVALID, "flags 0x%" PRIx32 ": HL_DETERMINISTIC and HL_CHECK are allowed", call->flags);
  if (call->scale != 0 && !(call->scale > 0 && call->scale < INFINITY))
    return call_fail(HL_INVALID, "scale %g: a positive number is allowed, or 0 for 1 / sqrt(head_dim)", call->scale);
  for (size_t i = 0; i < sizeof call->reserved / sizeof *call->reserved; i++)
    if (call->reserved[i])
      return call_fail(HL_INVALID,
                       "reserved[%zu] %" PRId64 ": only 0 is allowed; is the library older than its header?", i,
                       call->reserved[i]);
  return HL_OK;
}

static const char *type_name(int type) {
  static const char *const names[] = {[HL_F16] = "HL_F16", [HL_E4M3] = "HL_E4M3", [HL_E4M3_SCORES] = "HL_E4M3_SCORES"};
  return names[type];
}

// Checks that the stage does what this function was called for.
static HlStatus check_stage(const Stage *stage, const HlCall *call, bool backward) {
  if (stage->backward != backward)
    return call_fail(HL_INVALID, "stage %s: it is for the %s pass; call %s", stage->name,
                     backward ? "forward" : "backward", backward ? "hl_attention" : "hl_attention_backward");
  if ((int)call->type < HL_F16 || (int)call->type > HL_E4M3_SCORES)
    return call_fail(HL_INVALID, "type %d: HL_F16, HL_E4M3 and HL_E4M3_SCORES are allowed", (int)call->type);
  if ((int)call->type != (int)stage->inputs)
    return call_fail(HL_INVALID, "type %s: stage %s reads %s", type_name((int)call->type), stage->name,
                     type_name((int)stage->inputs));
  if (!backward && call->lse && !stage->lse)
    return call_fail(HL_UNSUPPORTED, "lse: stage %s does not write the log-sum-exp", stage->name);
  return HL_OK;
}

// ---- tensors ----

enum { DIMENSIONS = 3 };  // batch, head, row

// A tensor of the call as it lies in memory; sizes and strides are in elements.
typedef struct Place {
  const char *name;
  uintptr_t address;
  bool written;
  int64_t bytes;  // of an element
  int64_t columns, count[DIMENSIONS], stride[DIMENSIONS];
} Place;

// The stride of a dimension with one element is not the caller's, but one that goes with the others.
static Place tensor_place(const char *name, const HlTensor *tensor, const Shape *shape, int bytes, bool written) {
  DeviceTensor t = tensor_with_strides(shape, (DeviceTensor){0, tensor->batch, tensor->head, tensor->row});
  DeviceTensor whole = tensor_with_strides(shape, (DeviceTensor){.address = 0});
  if (shape->batch == 1) t.batch = whole.batch;
  if (shape->heads == 1) t.head = t.batch;
  if (shape->seqlen == 1) t.row = whole.row;
  return (Place){
      .name = name,
      .address = (uintptr_t)tensor->data,
      .written = written,
      .bytes = bytes,
      .columns = shape->head_dim,
      .count = {shape->batch, shape->heads, shape->seqlen},
      .stride = {t.batch, t.head, t.row},
  };
}

// The dimensions in the order of their strides, from the largest to the smallest.
static void sort_dimensions(const Place *place, int order[DIMENSIONS]) {
  for (int d = 0; d < DIMENSIONS; d++) {
    int at = d;
    for (; at > 0 && place->stride[order[at - 1]] < place->stride[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
}

// Whether no two rows share memory: each stride leads past all that the smaller ones reach.
static bool rows_are_apart(const Place *place) {
  int order[DIMENSIONS];
  sort_dimensions(place, order);
  int64_t reach = place->columns;
  for (int i = DIMENSIONS - 1; i >= 0; i--) {
    int64_t count = place->count[order[i]], stride = place->stride[order[i]];
    if (count > 1 && stride < reach) return false;
    reach += (count - 1) * stride;
  }
  return true;
}

#define STRIDES "strides %" PRId64 ", %" PRId64 ", %" PRId64 " (batch, head, row)"
#define STRIDES_OF(place) (place).stride[0], (place).stride[1], (place).stride[2]

static bool is_stride(const Place *place, int64_t stride) {
  return stride > 0 && stride < (int64_t)1 << 38 && stride * place->bytes % 16 == 0;
}

static HlStatus check_strides(const Stage *stage, const Place *place, const Shape *shape) {
  for (int d = 0; d < DIMENSIONS; d++)
    if (!is_stride(place, place->stride[d]))
      return call_fail(HL_INVALID, "%s: " STRIDES "; multiples of %d from %d to 2^38 are allowed", place->name,
                       STRIDES_OF(*place), 16 / (int)place->bytes, 16 / (int)place->bytes);
  if (place->written && !rows_are_apart(place))
    return call_fail(HL_INVALID, "%s: " STRIDES "; rows that are written may not overlap", place->name,
                     STRIDES_OF(*place));
  Place whole = tensor_place("", &(HlTensor){0}, shape, (int)place->bytes, false);
  if (stage->strided || !memcmp(place->stride, whole.stride, sizeof whole.stride)) return HL_OK;
  return call_fail(HL_UNSUPPORTED,
                   "%s: " STRIDES "; stage %s wants contiguous tensors: %" PRId64 ", %" PRId64 ", %" PRId64,
                   place->name, STRIDES_OF(*place), stage->name, STRIDES_OF(whole));
}

static HlStatus check_address(const char *name, const void *data, unsigned alignment) {
  if (!data) return call_fail(HL_INVALID, "%s: a null pointer", name);
  if ((uintptr_t)data % alignment == 0) return HL_OK;
  return call_fail(HL_INVALID, "%s: the address %p is not aligned to %u bytes", name, data, alignment);
}

// ---- what may not overlap ----

// From the first byte of a tensor to the one behind its last.
static uint64_t extent_of(const Place *place) {
  int64_t extent = place->columns;
  for (int d = 0; d < DIMENSIONS; d++) extent += (place->count[d] - 1) * place->stride[d];
  return (uint64_t)(extent * place->bytes);
}

static bool ranges_meet(uintptr_t a, uint64_t a_size, uintptr_t b, uint64_t b_size) {
  return a < b + b_size && b < a + a_size;
}

// Whether a row of one tensor meets a row of another with the same strides, which begins `distance` elements behind it.
// The remainder of each dimension must be within reach of those with smaller strides, so only two multiples can do.
static bool rows_meet(const Place *place, const int order[], int dimensions, int64_t distance) {
  if (dimensions == 0) return distance < place->columns && -distance < place->columns;
  int64_t stride = place->stride[*order], last = place->count[*order] - 1;
  if (last == 0) return rows_meet(place, order + 1, dimensions - 1, distance);
  int64_t below = distance / stride - (distance % stride < 0);
  for (int64_t n = below; n <= below + 1; n++)
    if (n <= last && -n <= last && rows_meet(place, order + 1, dimensions - 1, distance - n * stride)) return true;
  return false;
}

// Slices of one tensor, as of a fused [batch][seqlen][3][heads][head_dim], lie between each other's rows.
static bool tensors_meet(const Place *written, const Place *other) {
  if (!ranges_meet(written->address, extent_of(written), other->address, extent_of(other))) return false;
  if (memcmp(written->stride, other->stride, sizeof other->stride) || written->bytes != other->bytes) return true;
  int order[DIMENSIONS];
  sort_dimensions(written, order);
  int64_t distance = (int64_t)(other->address - written->address) / written->bytes;
  return rows_meet(written, order, DIMENSIONS, distance);
}

// The tensors of a call. The first four are Q, K, V and O.
typedef struct Places {
  int count;
  Place list[8];
} Places;

static Places list_places(const HlCall *call, bool backward, const Shape *shape) {
  int in = call->type == HL_F16 ? 2 : 1, values = call->type == HL_E4M3 ? 1 : 2, out = 2;  // bytes of an element
  return (Places){
      .count = backward ? 8 : 4,
      .list = {tensor_place("q", &call->q, shape, in, false), tensor_place("k", &call->k, shape, in, false),
               tensor_place("v", &call->v, shape, values, false), tensor_place("o", &call->o, shape, out, !backward),
               tensor_place("d_o", &call->d_o, shape, in, false), tensor_place("d_q", &call->d_q, shape, out, true),
               tensor_place("d_k", &call->d_k, shape, out, true), tensor_place("d_v", &call->d_v, shape, out, true)},
  };
}

static HlStatus check_overlap(const Places *places) {
  for (int i = 0; i < places->count; i++)
    for (int j = 0; places->list[i].written && j < i; j++)
      if (tensors_meet(&places->list[i], &places->list[j]))
        return call_fail(HL_INVALID, "%s overlaps %s", places->list[i].name, places->list[j].name);
  return HL_OK;
}

// The forward pass writes lse, so it may not overlap an input either.
static HlStatus check_lse(const HlCall *call, bool backward, const Places *places, const Shape *shape) {
  if (!backward && !call->lse) return HL_OK;
  HlStatus status = check_address("lse", call->lse, sizeof *call->lse);
  if (status) return status;
  uint64_t size = (uint64_t)shape->batch * shape->heads * shape->seqlen * sizeof *call->lse;
  for (int i = 0; i < places->count; i++) {
    const Place *place = &places->list[i];
    if ((place->written || !backward) && ranges_meet(place->address, extent_of(place), (uintptr_t)call->lse, size))
      return call_fail(HL_INVALID, "%s overlaps lse", place->name);
  }
  return HL_OK;
}

// ---- scales ----

static HlStatus check_scales(const HlCall *call, bool pointers) {
  static const char *const names[] = {"q_scale", "k_scale", "v_scale"};
  const HlScale *scales[] = {&call->q_scale, &call->k_scale, &call->v_scale};
  for (int i = 0; i < 3; i++) {
    int32_t per_head = scales[i]->per_head;
    bool has_scale = call->type == HL_E4M3 || (call->type == HL_E4M3_SCORES && i < 2);
    if (!has_scale && scales[i]->data)
      return call_fail(HL_INVALID, "%s: type %s has no %s; is the type HL_E4M3?", names[i], type_name((int)call->type),
                       call->type == HL_F16 ? "scales" : "scale of V");
    if (per_head != 0 && per_head != 1)
      return call_fail(HL_INVALID, "%s: per_head %" PRId32 ": 0 and 1 are allowed", names[i], per_head);
    if (per_head != scales[0]->per_head)
      return call_fail(HL_INVALID,
                       "%s: per_head %" PRId32 ", but that of q_scale is %" PRId32 "; all three must be the "
                       "same",
                       names[i], per_head, scales[0]->per_head);
    if (has_scale && pointers) {
      HlStatus status = check_address(names[i], scales[i]->data, sizeof(float));
      if (status) return status;
    }
  }
  return HL_OK;
}

// ---- the whole call ----

static HlStatus check_places(const Stage *stage, const HlCall *call, bool backward, const Places *places,
                             const Shape *shape) {
  bool pointers = !(call->flags & HL_CHECK);
  HlStatus status = HL_OK;
  for (int i = 0; i < places->count && !status; i++) {
    const Place *place = &places->list[i];
    if (pointers) status = check_address(place->name, (const void *)place->address, 16);
    if (!status) status = check_strides(stage, place, shape);
  }
  if (!status && pointers) status = check_overlap(places);
  if (!status && pointers) status = check_lse(call, backward, places, shape);
  return status;
}

static DeviceTensor tensor_of(const Places *places, int index) {
  const Place *place = &places->list[index];
  if (index >= places->count) return (DeviceTensor){.address = 0};
  return (DeviceTensor){place->address, place->stride[0], place->stride[1], place->stride[2]};
}

static DeviceAddress tensor_address(const void *data) { return (DeviceAddress)(uintptr_t)data; }

static Attention attention_of(const HlCall *call, const Shape *shape, const Places *places) {
  return (Attention){
      .shape = *shape,
      .scale = call->scale > 0 ? call->scale : (float)(1 / sqrt(shape->head_dim)),
      .q = tensor_of(places, 0),
      .k = tensor_of(places, 1),
      .v = tensor_of(places, 2),
      .o = tensor_of(places, 3),
      .d_o = tensor_of(places, 4),
      .d_q = tensor_of(places, 5),
      .d_k = tensor_of(places, 6),
      .d_v = tensor_of(places, 7),
      .lse = tensor_address(call->lse),
      .q_scale = tensor_address(call->q_scale.data),
      .k_scale = tensor_address(call->k_scale.data),
      .v_scale = tensor_address(call->v_scale.data),
      .scale_stride = call->q_scale.per_head,
      .deterministic = call->flags & HL_DETERMINISTIC,
  };
}

HlStatus call_check(const Stage *stage, const HlCall *call, bool backward, Attention *to) {
  Shape shape;
  HlStatus status = check_stage(stage, call, backward);
  if (!status) status = check_shape(stage, call, &shape);
  if (!status) status = check_options(call);
  if (!status) status = check_scales(call, !(call->flags & HL_CHECK));
  if (status) return status;
  const Places places = list_places(call, backward, &shape);
  status = check_places(stage, call, backward, &places, &shape);
  if (!status) *to = attention_of(call, &shape, &places);
  return status;
}
