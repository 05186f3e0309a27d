// The tensor copies of tensor_copies.txt: record_tensors.cu runs them on an H200, test_tensor_golden.c on the emulator,
// with the same PTX kernel on the same memory. A line of the file is a case, and what the H200 did after "->", as
// tensor_results.h explains:
//
//   load type=f16 size=16,7,6,3 stride=32,256,2048 lower=-1,-1 upper=-1,-1 channels=8 pixels=20 at=0,-1,-1,0 offset=0,1
//
// A copy is a load, a store, a prefetch or a reduction, which has the operation's name; with pixels= it is in im2col mode, and
// otherwise in tile mode, with box=. Dimensions stand innermost first. The tensor begins at byte base= of a memory.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

enum {
  TENSOR_DIMENSIONS = 5,
  TENSOR_MEMORY = 1 << 17,  // bytes; the tensor begins at TENSOR_BASE, if its case has no other base
  TENSOR_BASE = 1 << 15,
  TENSOR_TILE = 1 << 15,  // bytes of shared memory
  TENSOR_EMPTY = 0xee,    // what the side holds that receives the copy
};

typedef struct TensorCase {
  bool store, im2col;  // a reduction is a store; a prefetch, too, which leaves the memory as it is
  bool prefetch;
  char reduction[4];                              // "add", or "" of a copy
  uint32_t base;                                  // byte of the memory
  int type, rank, interleave, swizzle, fill_nan;  // as CUtensorMapDataType and its kin count
  uint64_t size[TENSOR_DIMENSIONS];
  uint64_t stride[TENSOR_DIMENSIONS];  // bytes, from the second dimension on
  uint32_t box[TENSOR_DIMENSIONS], step[TENSOR_DIMENSIONS];
  uint32_t channels, pixels;
  int lower[TENSOR_DIMENSIONS], upper[TENSOR_DIMENSIONS];  // of the dimensions between the first and the last
  int at[TENSOR_DIMENSIONS], offset[TENSOR_DIMENSIONS];
} TensorCase;

// What the kernel is given.
typedef struct TensorInput {
  int32_t at[8], offset[8];
  uint32_t bytes;  // that the mbarrier expects of a load
  uint32_t unused[15];
  uint8_t tile[TENSOR_TILE];
} TensorInput;

typedef struct TensorOutput {
  uint32_t completed;  // the mbarrier's phase is over
  uint32_t missing;    // bytes that the copy did not bring: the kernel completed these itself
  uint32_t unused[30];
  uint8_t tile[TENSOR_TILE];
} TensorOutput;

// ---- reading a case ----

// The numbers of "1,2,3", of which there may be five: how many.
static inline int tensor_numbers(const char *text, int64_t numbers[TENSOR_DIMENSIONS]) {
  int count = 0;
  while (count < TENSOR_DIMENSIONS) {
    numbers[count++] = strtoll(text, (char **)&text, 10);
    if (*text++ != ',') break;
  }
  return count;
}

static inline int tensor_word(const char *text, const char *const words[], int count) {
  for (int i = 0; i < count; i++)
    if (!strcmp(text, words[i])) return i;
  return -1;
}

#define TENSOR_ARRAY(array, first)                                                                                     \
  for (int tensor_i = 0; tensor_i < count && tensor_i + (first) < TENSOR_DIMENSIONS; tensor_i++)                       \
  (array)[tensor_i + (first)] = numbers[tensor_i]

// One "name=value". False when it is none.
static inline bool tensor_field(TensorCase *c, const char *name, const char *value) {
  static const char *const types[] = {"u8",  "u16", "u32",  "s32",    "u64",  "s64",    "f16",
                                      "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz"};
  static const char *const swizzles[] = {"0", "32", "64", "128"}, *const interleaves[] = {"0", "16", "32"};
  int64_t numbers[TENSOR_DIMENSIONS];
  int count = tensor_numbers(value, numbers);
  if (!strcmp(name, "size")) {
    TENSOR_ARRAY(c->size, 0);
    c->rank = count;
  } else if (!strcmp(name, "stride"))
    TENSOR_ARRAY(c->stride, 1);
  else if (!strcmp(name, "box"))
    TENSOR_ARRAY(c->box, 0);
  else if (!strcmp(name, "step"))
    TENSOR_ARRAY(c->step, 0);
  else if (!strcmp(name, "lower"))
    TENSOR_ARRAY(c->lower, 0);
  else if (!strcmp(name, "upper"))
    TENSOR_ARRAY(c->upper, 0);
  else if (!strcmp(name, "at"))
    TENSOR_ARRAY(c->at, 0);
  else if (!strcmp(name, "offset"))
    TENSOR_ARRAY(c->offset, 0);
  else if (!strcmp(name, "base"))
    c->base = (uint32_t)numbers[0];
  else if (!strcmp(name, "channels"))
    c->channels = (uint32_t)numbers[0];
  else if (!strcmp(name, "pixels"))
    c->pixels = (uint32_t)numbers[0], c->im2col = true;
  else if (!strcmp(name, "type"))
    return (c->type = tensor_word(value, types, sizeof types / sizeof *types)) >= 0;
  else if (!strcmp(name, "swizzle"))
    return (c->swizzle = tensor_word(value, swizzles, 4)) >= 0;
  else if (!strcmp(name, "interleave"))
    return (c->interleave = tensor_word(value, interleaves, 3)) >= 0;
  else if (!strcmp(name, "fill"))
    return (c->fill_nan = !strcmp(value, "nan"));
  else
    return false;
  return true;
}

// What the line begins with. False when it is no copy.
static inline bool tensor_kind(TensorCase *c, const char *kind) {
  static const char *const reductions[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  c->store = strcmp(kind, "load") != 0;
  c->prefetch = !strcmp(kind, "prefetch");
  if (!c->store || c->prefetch || !strcmp(kind, "store")) return true;
  int i = tensor_word(kind, reductions, sizeof reductions / sizeof *reductions);
  if (i >= 0) strcpy(c->reduction, reductions[i]);
  return i >= 0;
}

// A line up to " ->". False when it is no case.
static inline bool tensor_case(const char *line, TensorCase *c) {
  char text[512], *rest = text;
  size_t length = strstr(line, " ->") ? (size_t)(strstr(line, " ->") - line) : strcspn(line, "\n");
  if (length >= sizeof text) return false;
  memcpy(text, line, length);
  text[length] = 0;
  memset(c, 0, sizeof *c);
  for (int i = 0; i < TENSOR_DIMENSIONS; i++) c->step[i] = 1;
  char *kind = strtok_r(rest, " ", &rest), *word;
  c->base = TENSOR_BASE;
  if (!kind || !tensor_kind(c, kind)) return false;
  while ((word = strtok_r(NULL, " ", &rest))) {
    char *equals = strchr(word, '=');
    if (!equals) return false;
    *equals = 0;
    if (!tensor_field(c, word, equals + 1)) return false;
  }
  return c->rank > 0;
}

// ---- memory ----

// Words that count from 0.
static inline void tensor_count(uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(i / 2 >> 8 * (i % 2));
}

// The tensor's memory and the tile before the copy. A reduction finds words that count in both.
static inline void tensor_prepare(const TensorCase *c, uint8_t *memory, TensorInput *in) {
  memset(in, 0, sizeof *in);
  memcpy(in->at, c->at, sizeof c->at);
  memcpy(in->offset, c->offset, sizeof c->offset);
  memset(memory, TENSOR_EMPTY, TENSOR_MEMORY);
  memset(in->tile, TENSOR_EMPTY, TENSOR_TILE);
  if (c->store) tensor_count(in->tile, TENSOR_TILE);
  if (!c->store || c->reduction[0]) tensor_count(memory, TENSOR_MEMORY);
}

// What a load brings. Along the first dimension steps count only in an interleaved layout, whose elements are 16 or 32 bytes
// of channels, and whose box is one such slice.
static inline uint32_t tensor_likely_bytes(const TensorCase *c) {
  static const uint32_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  uint32_t bytes = c->interleave ? 16 * (uint32_t)c->interleave : sizes[c->type];
  if (c->im2col) return bytes * (c->interleave ? 1 : c->channels) * c->pixels;
  for (int d = 0; d < c->rank; d++) {
    bool steps = (d || c->interleave) && c->step[d];
    if (!c->interleave || d != c->rank - 2) bytes *= steps ? (c->box[d] + c->step[d] - 1) / c->step[d] : c->box[d];
  }
  return bytes;
}

// The side that receives the copy: how many bytes it has.
static inline size_t tensor_received(const TensorCase *c) { return c->store ? TENSOR_MEMORY : TENSOR_TILE; }

// ---- the kernel ----

// Kernels with the same number are the same.
static inline int tensor_kernel_number(const TensorCase *c) {
  static const char *const kinds[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
  int kind = c->prefetch ? 10 : c->store ? 1 + tensor_word(c->reduction, kinds, 9) : 0;
  return (kind * 2 + c->im2col) * TENSOR_DIMENSIONS + c->rank - 1;
}
enum { TENSOR_KERNELS = 11 * 2 * TENSOR_DIMENSIONS };

// Writes the kernel "copy" for a case's kind, mode and rank: one warp, and an mbarrier for the loads. Its parameters are the map,
// a TensorInput and a TensorOutput. If the mbarrier expects more bytes than a load brings, the kernel completes the others
// one by one, after it has polled for half a millisecond, and so counts them.
static inline void tensor_kernel(const TensorCase *c, char *text, size_t size) {
  char at[64] = "", offset[64] = "", copy[300];
  for (int d = 0; d < c->rank; d++) sprintf(at + strlen(at), "%sat%d", d ? ", " : "", d);
  for (int d = 0; d < c->rank - 2; d++) sprintf(offset + strlen(offset), "%soffset%d", d ? ", " : "", d);
  if (c->prefetch)
    snprintf(copy, sizeof copy, "cp.async.bulk.prefetch.tensor.%dd.L2.global.%s [map_at, {%s}]%s%s%s;\n", c->rank,
             c->im2col ? "im2col" : "tile", at, c->im2col ? ", {" : "", c->im2col ? offset : "", c->im2col ? "}" : "");
  else if (c->store)
    snprintf(copy, sizeof copy,
             "cp%s.async.bulk.tensor.%dd.global.shared::cta%s%s.%s.bulk_group [map_at, {%s}], [tile];\n"
             "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
             c->reduction[0] ? ".reduce" : "", c->rank, c->reduction[0] ? "." : "", c->reduction,
             c->im2col ? "im2col_no_offs" : "tile", at);
  else
    snprintf(copy, sizeof copy,
             "cp.async.bulk.tensor.%dd.shared::cluster.global.%s.mbarrier::complete_tx::bytes "
             "[tile], [map_at, {%s}], [barrier]%s%s%s;\n",
             c->rank, c->im2col ? "im2col" : "tile", at, c->im2col ? ", {" : "", c->im2col ? offset : "",
             c->im2col ? "}" : "");
  snprintf(text, size,
           ".version 8.7\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
           ".visible .entry copy(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out) .reqntid 32, 1, 1 {\n"
           ".reg .b32 t, i, n, bytes, missing, v, at0, at1, at2, at3, at4, s; .reg .b16 offset0, offset1, offset2;\n"
           ".reg .b64 p, q, x, map_at; .reg .pred first, more, done;\n"
           ".shared .align 8 .b64 barrier;\n"
           "mov.u32 t, %%tid.x; setp.eq.u32 first, t, 0; mov.u64 map_at, map; cvta.param.u64 map_at, map_at;\n"
           "ld.param.u64 p, [in]; ld.param.u64 q, [out]; mov.u32 s, tile;\n"
           "ld.global.b32 at0, [p]; ld.global.b32 at1, [p+4]; ld.global.b32 at2, [p+8]; ld.global.b32 at3, [p+12];\n"
           "ld.global.b32 at4, [p+16]; ld.global.b16 offset0, [p+32]; ld.global.b16 offset1, [p+36];\n"
           "ld.global.b16 offset2, [p+40]; ld.global.b32 bytes, [p+64]; mov.u32 missing, 0;\n"
           "shl.b32 i, t, 2; cvt.u64.u32 x, i; add.u64 p, p, x; add.u64 q, q, x; add.u32 s, s, i;\n"
           "FILL: ld.global.b32 v, [p+128]; st.shared.b32 [s], v; add.u64 p, p, 128; add.u32 s, s, 128;\n"
           "add.u32 i, i, 128; setp.lt.u32 more, i, %d; @more bra FILL;\n"
           "@first mbarrier.init.shared.b64 [barrier], 1; @first fence.mbarrier_init.release.cluster;\n"
           "fence.proxy.async; barrier.sync 0; @!first bra END;\n"
           "mbarrier.arrive.expect_tx.shared.b64 _, [barrier], bytes; mov.u32 n, 0;\n"
           "%s"
           "WAIT: mbarrier.test_wait.parity.shared.b64 done, [barrier], 0; @done bra END; nanosleep.u32 200;\n"
           "add.u32 n, n, 1; setp.lt.u32 more, n, 2000; @more bra WAIT;\n"
           "MISSING: setp.ge.u32 more, missing, bytes; @more bra END; add.u32 missing, missing, 1;\n"
           "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [barrier], 1;\n"
           "mbarrier.test_wait.parity.shared.b64 done, [barrier], 0; @!done bra MISSING;\n"
           "END: barrier.sync 0; mov.u32 s, tile; shl.b32 i, t, 2; add.u32 s, s, i;\n"
           "KEEP: ld.shared.b32 v, [s]; st.global.b32 [q+128], v; add.u64 q, q, 128; add.u32 s, s, 128;\n"
           "add.u32 i, i, 128; setp.lt.u32 more, i, %d; @more bra KEEP;\n"
           "@!first bra LEAVE; ld.param.u64 q, [out]; st.global.b32 [q+4], missing;\n"
           "mbarrier.test_wait.parity.shared.b64 done, [barrier], 0; selp.b32 v, 1, 0, done; st.global.b32 [q], v;\n"
           "LEAVE: ret;\n}\n",
           TENSOR_TILE, copy, TENSOR_TILE);
}
