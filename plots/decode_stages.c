// The decode stages as functions that plots/decode_peers.py calls, build/libdecode.so: in the context and the stream of
// the caller. common/build/plots.mk defines their list, STAGES(X), as X(13) X(13b) ...
#include <math.h>
#include <stdio.h>

#include "../common/harness/stage.h"

#define DECODE_API __attribute__((visibility("default")))

#define DECLARE(number)                                                                                                \
  extern const Stage stage_##number;                                                                                   \
  extern const char stage_##number##_ptx[], stage_##number##_cubin[], stage_##number##_cubin_end[];
STAGES(DECLARE)

static const struct Entry {
  const Stage *stage;
  const char *ptx, *cubin, *cubin_end;
} entries[] = {
#define ENTRY(number)                                                                                                  \
  {&stage_##number, stage_##number##_ptx, stage_##number##_cubin, stage_##number##_cubin_end},
    STAGES(ENTRY)};
enum { STAGE_COUNT = sizeof entries / sizeof *entries };

// One call: a stage by its index, and stage.h's Decode. Pointers are to device memory; those that a problem lacks are
// NULL. decode_peers.py has the same structure.
typedef struct DecodeCall {
  int stage, batch, heads, kv_heads, keys, head_dim, queries, page, pages;
  void *q, *k, *v, *o, *lengths, *block_table;
  void *k_scale, *v_scale;  // an e4m3 cache: one float each
  void *workspace, *stream;
} DecodeCall;

// Which stage has this index, and what it does. NULL when there is none.
DECODE_API const char *decode_stage(int index, int *e4m3, int *ragged, int *queries);
// The bytes of the workspace of a call; 0 also where there is no GPU, which decode_forward then says.
DECODE_API size_t decode_workspace(const DecodeCall *call);
// Queues the stage's kernels. NULL, or in one line what went wrong.
DECODE_API const char *decode_forward(const DecodeCall *call);
// Queues a kernel that reads `bytes` of K and as many of V and computes nothing: with loads, or with bulk copies. The
// output is written only if a sum comes out that never does.
DECODE_API const char *decode_read(const DecodeCall *call, size_t bytes, int copies);

// The first call's device, for all later ones: the caller has one context.
static Device *attached;
static DeviceModule *modules[STAGE_COUNT];
static DeviceError failure;

static const char *problem_text(void) { return attached ? device_error(attached)->text : failure.text; }

static bool attach_once(void) {
  if (!attached) attached = device_attach(&failure);
  return attached;
}

// A GPU runs the cubin. The stand-in for the driver that hopper-run preloads takes the PTX alone.
static bool load_once(int index) {
  if (!attach_once()) return false;
  device_clear_error(attached);
  if (modules[index]) return true;
  const struct Entry *entry = &entries[index];
  DeviceImage image = {.cubin = entry->cubin, .cubin_size = (size_t)(entry->cubin_end - entry->cubin)};
  modules[index] = device_load(attached, &image);
  if (modules[index] || device_error(attached)->code != DEVICE_UNSUPPORTED) return modules[index];
  device_clear_error(attached);
  image.ptx = entry->ptx;
  return (modules[index] = device_load(attached, &image));
}

static DeviceAddress address_of(const void *pointer) { return (DeviceAddress)(uintptr_t)pointer; }

static DecodeShape shape_of(const DecodeCall *call) {
  return (DecodeShape){.batch = call->batch,
                       .heads = call->heads,
                       .kv_heads = call->kv_heads,
                       .keys = call->keys,
                       .head_dim = call->head_dim,
                       .queries = call->queries,
                       .page = call->page};
}

const char *decode_stage(int index, int *e4m3, int *ragged, int *queries) {
  if (index < 0 || index >= STAGE_COUNT) return NULL;
  const Stage *stage = entries[index].stage;
  *e4m3 = stage->inputs == INPUTS_E4M3;
  *ragged = stage->ragged;
  *queries = stage->queries ? stage->queries : 1;
  return stage->name;
}

size_t decode_workspace(const DecodeCall *call) {
  const Stage *stage = entries[call->stage].stage;
  DecodeShape shape = shape_of(call);
  if (!stage->decode_workspace || !attach_once()) return 0;
  return stage->decode_workspace(&shape, 0, device_info(attached)->sm_count);
}

const char *decode_forward(const DecodeCall *call) {
  if (!load_once(call->stage)) return problem_text();
  device_use_stream(attached, call->stream);
  Decode decode = {
      .shape = shape_of(call),
      .scale = (float)(1 / sqrt(call->head_dim)),
      .q.address = address_of(call->q),
      .k.address = address_of(call->k),
      .v.address = address_of(call->v),
      .o.address = address_of(call->o),
      .lengths = address_of(call->lengths),
      .block_table = address_of(call->block_table),
      .pages = call->pages,
      .k_scale = address_of(call->k_scale),
      .v_scale = address_of(call->v_scale),
      .workspace = address_of(call->workspace),
      .module = modules[call->stage],
  };
  return entries[call->stage].stage->decode(attached, &decode) ? NULL : problem_text();
}

// All stages' kernels have the two that only read: stages/13-decode/read.h.
const char *decode_read(const DecodeCall *call, size_t bytes, int copies) {
  if (!load_once(call->stage)) return problem_text();
  device_use_stream(attached, call->stream);
  unsigned sm_count = (unsigned)device_info(attached)->sm_count;
  DeviceLaunch loads = {
      .kernel = device_kernel(attached, modules[call->stage], "read_loads"),
      .grid = {4 * sm_count, 2},
      .block = {256},
      .arguments = ARGUMENTS(&call->k, &call->v, &bytes, &call->o),
  };
  DeviceLaunch bulk = {
      .kernel = device_kernel(attached, modules[call->stage], "read_copies"),
      .grid = {sm_count, 2},
      .block = {32},
      .dynamic_shared = 12 * 8192,
      .arguments = ARGUMENTS(&call->k, &call->v, &bytes),
  };
  return device_launch(attached, copies ? &bulk : &loads) ? NULL : problem_text();
}
