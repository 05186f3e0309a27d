// Checks a call of attention: its numbers, where its tensors lie, and that what is written lies apart from all else.
#include "places.h"

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

static const char *type_name(int type) {
  static const char *const names[] = {[HL_F16] = "HL_F16", [HL_E4M3] = "HL_E4M3", [HL_E4M3_SCORES] = "HL_E4M3_SCORES"};
  return names[type];
}

// Checks that the stage does what this function was called for.
static HlStatus check_stage(const Stage *stage, const HlCall *call, bool backward) {
  if (stage->decode) return call_fail(HL_INVALID, "stage %s: it is for decode; call hl_attention_decode", stage->name);
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

// The forward pass writes lse, so it may not overlap an input either.
static HlStatus check_lse(const HlCall *call, bool backward, const Places *places, const Shape *shape) {
  if (!backward && !call->lse) return HL_OK;
  HlStatus status = check_address("lse", call->lse, sizeof *call->lse);
  if (status) return status;
  uint64_t size = (uint64_t)shape->batch * shape->heads * shape->seqlen * sizeof *call->lse;
  for (int i = 0; i < places->count && !status; i++) {
    const Place *place = &places->list[i];
    if (place->written || !backward) status = check_apart(place, "lse", call->lse, size);
  }
  return status;
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
    if (!status) status = check_strides(place);
    if (!status && !stage->strided) status = check_contiguous(stage, place, shape);
  }
  if (!status && pointers) status = check_overlap(places->list, places->count);
  if (!status && pointers) status = check_lse(call, backward, places, shape);
  return status;
}

static DeviceTensor tensor_of(const Places *places, int index) {
  return index < places->count ? place_tensor(&places->list[index]) : (DeviceTensor){.address = 0};
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
  if (!status) status = check_options(call->flags, call->scale, call->reserved);
  if (!status) status = check_scales(call, !(call->flags & HL_CHECK));
  if (status) return status;
  const Places places = list_places(call, backward, &shape);
  status = check_places(stage, call, backward, &places, &shape);
  if (!status) *to = attention_of(call, &shape, &places);
  return status;
}
