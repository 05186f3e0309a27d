#include "places.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- where a tensor lies ----

Place tensor_place(const char *name, const HlTensor *tensor, const Shape *shape, int bytes, bool written) {
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

uint64_t place_extent(const Place *place) {
  int64_t extent = place->columns;
  for (int d = 0; d < DIMENSIONS; d++) extent += (place->count[d] - 1) * place->stride[d];
  return (uint64_t)extent * (uint64_t)place->bytes;
}

DeviceTensor place_tensor(const Place *place) {
  return (DeviceTensor){place->address, place->stride[0], place->stride[1], place->stride[2]};
}

// ---- numbers ----

HlStatus check_size(const char *name, int32_t size, int32_t largest) {
  if (size >= 1 && size <= largest) return HL_OK;
  return call_fail(HL_INVALID, "%s %" PRId32 ": 1 to %" PRId32 " are allowed", name, size, largest);
}

HlStatus check_options(uint32_t flags, float scale, const int64_t reserved[8]) {
  if (flags & ~(uint32_t)(HL_DETERMINISTIC | HL_CHECK))
    return call_fail(HL_INVALID, "flags 0x%" PRIx32 ": HL_DETERMINISTIC and HL_CHECK are allowed", flags);
  if (scale != 0 && !(scale > 0 && scale < INFINITY))
    return call_fail(HL_INVALID, "scale %g: a positive number is allowed, or 0 for 1 / sqrt(head_dim)", scale);
  for (int i = 0; i < 8; i++)
    if (reserved[i])
      return call_fail(HL_INVALID, "reserved[%d] %" PRId64 ": only 0 is allowed; is the library older than its header?",
                       i, reserved[i]);
  return HL_OK;
}

HlStatus check_address(const char *name, const void *data, unsigned alignment) {
  if (!data) return call_fail(HL_INVALID, "%s: a null pointer", name);
  if ((uintptr_t)data % alignment == 0) return HL_OK;
  return call_fail(HL_INVALID, "%s: the address %p is not aligned to %u bytes", name, data, alignment);
}

// ---- strides ----

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

HlStatus check_strides(const Place *place) {
  for (int d = 0; d < DIMENSIONS; d++)
    if (!is_stride(place, place->stride[d]))
      return call_fail(HL_INVALID, "%s: " STRIDES "; multiples of %d from %d to 2^38 are allowed", place->name,
                       STRIDES_OF(*place), 16 / (int)place->bytes, 16 / (int)place->bytes);
  if (place->written && !rows_are_apart(place))
    return call_fail(HL_INVALID, "%s: " STRIDES "; rows that are written may not overlap", place->name,
                     STRIDES_OF(*place));
  return HL_OK;
}

HlStatus check_contiguous(const Stage *stage, const Place *place, const Shape *shape) {
  Place whole = tensor_place("", &(HlTensor){0}, shape, (int)place->bytes, false);
  if (!memcmp(place->stride, whole.stride, sizeof whole.stride)) return HL_OK;
  return call_fail(HL_UNSUPPORTED,
                   "%s: " STRIDES "; stage %s wants contiguous tensors: %" PRId64 ", %" PRId64 ", %" PRId64,
                   place->name, STRIDES_OF(*place), stage->name, STRIDES_OF(whole));
}

// ---- what may not overlap ----

static bool ranges_meet(uintptr_t a, uint64_t a_size, uintptr_t b, uint64_t b_size) {
  return a < b + b_size && b < a + a_size;
}

HlStatus check_apart(const Place *place, const char *name, const void *data, uint64_t size) {
  if (!ranges_meet(place->address, place_extent(place), (uintptr_t)data, size)) return HL_OK;
  return call_fail(HL_INVALID, "%s overlaps %s", place->name, name);
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
  if (!ranges_meet(written->address, place_extent(written), other->address, place_extent(other))) return false;
  if (memcmp(written->stride, other->stride, sizeof other->stride) || written->bytes != other->bytes) return true;
  if (memcmp(written->count, other->count, sizeof other->count)) return true;
  int order[DIMENSIONS];
  sort_dimensions(written, order);
  int64_t distance = (int64_t)(other->address - written->address) / written->bytes;
  return rows_meet(written, order, DIMENSIONS, distance);
}

HlStatus check_overlap(const Place *places, int count) {
  for (int i = 0; i < count; i++)
    for (int j = 0; places[i].written && j < i; j++)
      if (tensors_meet(&places[i], &places[j]))
        return call_fail(HL_INVALID, "%s overlaps %s", places[i].name, places[j].name);
  return HL_OK;
}
