// Checks a call of decode: its numbers, what its stage can do, where its tensors lie, and that O lies apart from all
// else.
#include "places.h"

#include <inttypes.h>
#include <math.h>

// ---- what the stage can do ----

static const char *decode_type_name(HlType type) {
  static const char *const names[] = {"HL_F16", "HL_E4M3", "HL_E4M3_SCORES", "HL_BF16"};
  return names[type];
}

static HlStatus check_decode_stage(const Stage *stage, const HlDecode *call) {
  if (!stage->decode)
    return call_fail(HL_INVALID, "stage %s: it is not for decode; call %s", stage->name,
                     stage->backward ? "hl_attention_backward" : "hl_attention");
  if ((unsigned)call->type > HL_BF16)
    return call_fail(HL_INVALID, "type %d: HL_BF16 and HL_E4M3 are allowed", (int)call->type);
  if (call->type != HL_BF16 && call->type != HL_E4M3)
    return call_fail(HL_INVALID, "type %s: HL_BF16 and HL_E4M3 are allowed", decode_type_name(call->type));
  HlType type = stage->inputs == INPUTS_E4M3 ? HL_E4M3 : HL_BF16;
  if (call->type == type && (stage->lse || !call->lse)) return HL_OK;
  if (call->type == type) return call_fail(HL_UNSUPPORTED, "lse: stage %s does not write the log-sum-exp", stage->name);
  return call_fail(HL_INVALID, "type %s: stage %s reads %s", decode_type_name(call->type), stage->name,
                   decode_type_name(type));
}

// ---- numbers ----

static HlStatus check_heads(const HlDecode *call) {
  HlStatus status = check_size("batch", call->batch, 65535);
  if (!status) status = check_size("kv_heads", call->kv_heads, 65535);
  if (status) return status;
  int32_t kv_heads = call->kv_heads, group = call->heads / kv_heads;
  if (call->heads % kv_heads || group < 1 || group > 16)
    return call_fail(HL_INVALID, "heads %" PRId32 ": multiples of kv_heads, %" PRId32 ", up to 16 times are allowed",
                     call->heads, kv_heads);
  int64_t heads = (int64_t)call->batch * call->heads;
  if (heads <= INT32_MAX) return HL_OK;
  return call_fail(HL_INVALID, "batch * heads is %" PRId64 ": at most %" PRId32 " is allowed", heads, INT32_MAX);
}

static HlStatus check_queries(const Stage *stage, const HlDecode *call) {
  if (call->queries < 0 || call->queries > 8)
    return call_fail(HL_INVALID, "queries %" PRId32 ": 1 to 8 are allowed, or 0 for 1", call->queries);
  if (call->queries <= 1 || call->queries <= stage->queries) return HL_OK;
  return call_fail(HL_UNSUPPORTED, "queries %" PRId32 ": stage %s answers one query a sequence", call->queries,
                   stage->name);
}

static HlStatus check_pages(const Stage *stage, const HlDecode *call) {
  if (!call->page) {
    if (call->block_table) return call_fail(HL_INVALID, "block_table: a cache without pages, page 0, has none");
    if (call->pages)
      return call_fail(HL_INVALID, "pages %" PRId32 ": a cache without pages, page 0, has 0", call->pages);
    if (call->table_row)
      return call_fail(HL_INVALID, "table_row %" PRId32 ": a cache without pages, page 0, has 0", call->table_row);
    return HL_OK;
  }
  if (!stage->ragged) return call_fail(HL_UNSUPPORTED, "page: stage %s reads a cache without pages", stage->name);
  if (call->page < 16 || call->page > 1 << 20 || call->page & (call->page - 1))
    return call_fail(HL_INVALID, "page %" PRId32 ": powers of two from 16 to 1048576 are allowed, or 0 for no pages",
                     call->page);
  HlStatus status = check_size("pages", call->pages, 1 << 24);
  int32_t least = (call->keys - 1) / call->page + 1;
  if (!status && call->table_row && call->table_row < least)
    return call_fail(HL_INVALID,
                     "table_row %" PRId32 ": %" PRId32 " keys lie in %" PRId32 " pages; as many or more are allowed, "
                     "or 0",
                     call->table_row, call->keys, least);
  return status;
}

static HlStatus check_decode_shape(const Stage *stage, const HlDecode *call) {
  HlStatus status = check_heads(call);
  if (!status) status = check_size("keys", call->keys, 1 << 20);
  if (status) return status;
  if (call->head_dim != 64 && call->head_dim != 128)
    return call_fail(HL_INVALID, "head_dim %" PRId32 ": 64 and 128 are allowed", call->head_dim);
  if (stage->head_dim && call->head_dim != stage->head_dim)
    return call_fail(HL_UNSUPPORTED, "head_dim %" PRId32 ": stage %s does %d alone", call->head_dim, stage->name,
                     stage->head_dim);
  status = check_queries(stage, call);
  if (!status) status = check_pages(stage, call);
  if (!status && call->lengths && !stage->ragged)
    return call_fail(HL_UNSUPPORTED, "lengths: stage %s wants all sequences to have `keys` keys", stage->name);
  return status;
}

// ---- pointers ----

static HlStatus check_cache_scales(const HlDecode *call) {
  static const char *const names[] = {"k_scale", "v_scale"};
  const HlScale *scales[] = {&call->k_scale, &call->v_scale};
  HlStatus status = HL_OK;
  for (int i = 0; i < 2 && !status; i++) {
    int32_t per_head = scales[i]->per_head;
    if (call->type == HL_BF16 && scales[i]->data)
      return call_fail(HL_INVALID, "%s: type HL_BF16 has no scales; is the type HL_E4M3?", names[i]);
    if (per_head != 0 && per_head != 1)
      return call_fail(HL_INVALID, "%s: per_head %" PRId32 ": 0 and 1 are allowed", names[i], per_head);
    if (per_head != call->k_scale.per_head)
      return call_fail(HL_INVALID,
                       "%s: per_head %" PRId32 ", but that of k_scale is %" PRId32 "; both must be the same", names[i],
                       per_head, call->k_scale.per_head);
    if (call->type == HL_E4M3 && !(call->flags & HL_CHECK))
      status = check_address(names[i], scales[i]->data, sizeof(float));
  }
  return status;
}

// Q, K, V and O.
enum { PLACES = 4 };

// One more array of a call, of numbers of 4 bytes: the tensor may not overlap it.
static HlStatus check_array(const Place *place, const char *name, const void *data, uint64_t count) {
  HlStatus status = check_address(name, data, 4);
  return status ? status : check_apart(place, name, data, 4 * count);
}

static HlStatus check_decode_lse(const HlDecode *call, const Place *places) {
  uint64_t count = (uint64_t)(places[0].count[0] * places[0].count[1] * places[0].count[2]);
  HlStatus status = HL_OK;
  for (int i = 0; i < PLACES && !status && call->lse; i++) status = check_array(&places[i], "lse", call->lse, count);
  return status;
}

static HlStatus check_arrays(const HlDecode *call, const Place *o) {
  uint64_t batch = (uint64_t)call->batch, heads = batch * (uint64_t)call->kv_heads;
  uint64_t scales = call->k_scale.per_head ? heads : 1;
  int32_t row = call->table_row ? call->table_row : call->page ? (call->keys - 1) / call->page + 1 : 0;
  HlStatus status = call->lengths ? check_array(o, "lengths", call->lengths, batch) : HL_OK;
  if (!status && call->page) status = check_array(o, "block_table", call->block_table, batch * (uint64_t)row);
  if (!status && call->type == HL_E4M3) status = check_array(o, "k_scale", call->k_scale.data, scales);
  if (!status && call->type == HL_E4M3) status = check_array(o, "v_scale", call->v_scale.data, scales);
  return status;
}

static HlStatus check_decode_places(const Stage *stage, const HlDecode *call, const Shape *queries,
                                    const Place *places) {
  bool pointers = !(call->flags & HL_CHECK);
  HlStatus status = HL_OK;
  for (int i = 0; i < PLACES && !status; i++) {
    const Place *place = &places[i];
    bool is_cache = i == 1 || i == 2;
    if (pointers) status = check_address(place->name, (const void *)place->address, 16);
    if (!status) status = check_strides(place);
    if (!status && !is_cache && !stage->strided) status = check_contiguous(stage, place, queries);
  }
  if (!status && pointers) status = check_overlap(places, PLACES);
  if (!status && pointers) status = check_decode_lse(call, places);
  return !status && pointers ? check_arrays(call, &places[3]) : status;
}

// ---- the whole call ----

static DeviceAddress array_address(const void *data) { return (DeviceAddress)(uintptr_t)data; }

static Decode decode_of(const HlDecode *call, const Shape *queries, const Place *places) {
  return (Decode){
      .shape =
          {
              .batch = call->batch,
              .heads = call->heads,
              .kv_heads = call->kv_heads,
              .keys = call->keys,
              .head_dim = call->head_dim,
              .queries = queries->seqlen,
              .page = call->page,
          },
      .scale = call->scale > 0 ? call->scale : (float)(1 / sqrt(call->head_dim)),
      .q = place_tensor(&places[0]),
      .k = place_tensor(&places[1]),
      .v = place_tensor(&places[2]),
      .o = place_tensor(&places[3]),
      .lengths = array_address(call->lengths),
      .block_table = array_address(call->block_table),
      .table_row = call->table_row,
      .pages = call->pages,
      .lse = array_address(call->lse),
      .k_scale = array_address(call->k_scale.data),
      .v_scale = array_address(call->v_scale.data),
      .scale_stride = call->k_scale.per_head,
  };
}

HlStatus decode_call_check(const Stage *stage, const HlDecode *call, Decode *to) {
  HlStatus status = check_decode_stage(stage, call);
  if (!status) status = check_decode_shape(stage, call);
  if (!status) status = check_options(call->flags, call->scale, call->reserved);
  if (!status) status = check_cache_scales(call);
  if (status) return status;
  int bytes = call->type == HL_E4M3 ? 1 : 2;
  const Shape queries = {call->batch, call->heads, call->queries ? call->queries : 1, call->head_dim, false};
  const Shape cache = {call->page ? call->pages : call->batch, call->kv_heads, call->page ? call->page : call->keys,
                       call->head_dim, false};
  const Place places[PLACES] = {
      tensor_place("q", &call->q, &queries, 2, false),
      tensor_place("k", &call->k, &cache, bytes, false),
      tensor_place("v", &call->v, &cache, bytes, false),
      tensor_place("o", &call->o, &queries, 2, true),
  };
  status = check_decode_places(stage, call, &queries, places);
  if (!status) *to = decode_of(call, &queries, places);
  return status;
}
