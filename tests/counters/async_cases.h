// The launches of async.cuh's kernels: the layouts of wgmma's operands, the sizes and places of copies. cases.h puts
// them behind its own.
#pragma once

#include <stdint.h>

#include "offsets.h"

// A tensor of rows, at the beginning of the kernel's `memory`, with the box that a copy takes of it.
typedef struct CaseTensor {
  int element_bytes;  // 2: f16, 4: f32
  int width, height;  // elements, rows
  int pitch;          // bytes from a row to the next
  int box_width, box_height;
  int swizzle;  // bytes: 0, 32, 64 or 128
} CaseTensor;

typedef struct AsyncLaunch {
  const char *name;
  uint16_t argument[ASYNC_ARGS];  // but for ARG_TRIPS, which is 8, or 16 in a second launch
  CaseTensor tensor;
} AsyncLaunch;

// ---- wgmma: how a core matrix's neighbours follow it, in bytes (common/ptx/wgmma.h, matrix_descriptor) ----

#define LAYOUT(name, leading, stride, swizzle)                                                                         \
  {                                                                                                                    \
    name, {0, leading, stride, swizzle, leading, stride, swizzle}, { 0 }                                               \
  }
#define K_PACKED LAYOUT("no swizzle", 128, 256, 0)
#define K_128 LAYOUT("swizzle 128", 16, 1024, 1)

static const AsyncLaunch k_major_few[] = {K_PACKED, K_128};
static const AsyncLaunch k_major[] = {
    K_PACKED,
    LAYOUT("no swizzle: rows first", 4096, 128, 0),
    LAYOUT("swizzle 32", 16, 256, 3),
    LAYOUT("swizzle 64", 16, 512, 2),
    K_128,
    {"A without swizzle: B with swizzle 128", {0, 128, 256, 0, 16, 1024, 1}, {0}},
};
static const AsyncLaunch k_major_twice[] = {LAYOUT("of two warpgroups: swizzle 128", 16, 1024, 1)};
static const AsyncLaunch mn_major[] = {
    LAYOUT("no swizzle", 128, 256, 0),
    LAYOUT("swizzle 32", 512, 256, 3),
    LAYOUT("swizzle 64", 1024, 512, 2),
    LAYOUT("swizzle 128", 2048, 1024, 1),
};

// ---- copies ----

#define BYTES(name, bytes, global)                                                                                     \
  {                                                                                                                    \
    name, {[ARG_BYTES] = bytes, [ARG_GLOBAL] = global}, { 0 }                                                          \
  }

#define BYTES_TO(name, bytes, global, shared)                                                                          \
  {                                                                                                                    \
    name, {[ARG_BYTES] = bytes, [ARG_GLOBAL] = global, [ARG_SHARED] = shared}, { 0 }                                   \
  }

static const AsyncLaunch bulk[] = {
    BYTES_TO("128 bytes to 16", 128, 0, 16),
    BYTES_TO("128 bytes at 16 to 16", 128, 16, 16),
    BYTES_TO("256 bytes at 16 to 64", 256, 16, 64),
    BYTES_TO("1040 bytes at 112 to 16", 1040, 112, 16),
    BYTES("16 bytes", 16, 0),
    BYTES("16 bytes at 16", 16, 16),
    BYTES("32 bytes", 32, 0),
    BYTES("48 bytes at 16", 48, 16),
    BYTES("128 bytes at 16", 128, 16),
    BYTES("1024 bytes", 1024, 0),
    BYTES("1040 bytes at 112", 1040, 112),
    BYTES("16384 bytes", 16384, 0),
};
static const AsyncLaunch bulk_few[] = {
    BYTES("16 bytes", 16, 0),
    BYTES("48 bytes at 16", 48, 16),
    BYTES_TO("1040 bytes at 112 to 16", 1040, 112, 16),
    BYTES("1040 bytes at 112", 1040, 112),
    BYTES("4096 bytes", 4096, 0),
};

// The box begins at element x of row y. Its bytes all land, those outside the tensor as zeros.
#define BOX(name, x, y, size, width, height, pitch, box_width, box_height, swizzle)                                    \
  {                                                                                                                    \
    name, {[ARG_BYTES] = (size) * (box_width) * (box_height), [ARG_X] = (uint16_t)(x), [ARG_Y] = (uint16_t)(y)}, {     \
      size, width, height, pitch, box_width, box_height, swizzle                                                       \
    }                                                                                                                  \
  }
#define WHOLE_ROWS BOX("64 x 16", 0, 0, 2, 64, 64, 128, 64, 16, 0)
#define BELOW BOX("half below the end", 0, 56, 2, 64, 64, 128, 64, 16, 128)
#define NARROW BOX("8 x 8", 0, 0, 2, 64, 64, 128, 8, 8, 0)

// A store may not begin before the tensor: the kernel would stop.
#define STORABLE                                                                                                       \
  WHOLE_ROWS, NARROW, BELOW, BOX("64 x 16 swizzle 128", 0, 0, 2, 64, 64, 128, 64, 16, 128),                            \
      BOX("32 x 16 swizzle 64", 0, 0, 2, 64, 64, 128, 32, 16, 64),                                                     \
      BOX("16 x 16 swizzle 32", 0, 0, 2, 64, 64, 128, 16, 16, 32),                                                     \
      BOX("64 x 64 swizzle 128", 0, 0, 2, 64, 64, 128, 64, 64, 128),                                                   \
      BOX("32 x 16 of f32 swizzle 128", 0, 0, 4, 32, 64, 128, 32, 16, 128),                                            \
      BOX("8 x 8 at 8", 8, 0, 2, 64, 64, 128, 8, 8, 0),                                                                \
      BOX("64 x 16 at 8 of wide rows", 8, 0, 2, 128, 64, 256, 64, 16, 128),                                            \
      BOX("64 x 16 of rows 144 bytes apart", 0, 0, 2, 64, 64, 144, 64, 16, 128),                                       \
      BOX("128 x 8 at 8 of wide rows", 8, 0, 2, 256, 32, 512, 128, 8, 0),                                              \
      BOX("40 x 8 at 8 of wide rows", 8, 0, 2, 256, 32, 512, 40, 8, 0),                                                \
      BOX("8 x 64 of rows 16 bytes apart", 0, 0, 2, 8, 64, 16, 8, 64, 0),                                              \
      BOX("half beyond the right", 32, 0, 2, 64, 64, 128, 64, 16, 128),                                                \
      BOX("all outside", 0, 64, 2, 64, 64, 128, 64, 16, 128)

static const AsyncLaunch boxes[] = {
    STORABLE,
    BOX("half before the start", 0, -8, 2, 64, 64, 128, 64, 16, 128),
};
static const AsyncLaunch boxes_stored[] = {STORABLE};
static const AsyncLaunch boxes_few[] = {WHOLE_ROWS, NARROW, BELOW};

// ---- kernels and their launches ----

typedef struct AsyncGroup {
  const char *kernel;
  unsigned blocks, threads;
  const AsyncLaunch *launches;
  int count;
  int trip_counts;  // 2: each once more with twice the trips
} AsyncGroup;

#define ASYNC(kernel, blocks, threads, list, trip_counts)                                                              \
  { kernel, blocks, threads, list, (int)(sizeof(list) / sizeof(list)[0]), trip_counts }
#define WARPGROUPS(kernel, count, list) ASYNC(kernel, 1, 128 * (count), list, 2)
#define COPIES(kernel, list) ASYNC(kernel, 1, 32, list, 1)
#define CLUSTERS(kernel, list) ASYNC(kernel, 2, 32, list, 1)

static const AsyncGroup async_groups[] = {
    WARPGROUPS("wgmma_n8", 1, k_major_few),
    WARPGROUPS("wgmma_n16", 1, k_major_few),
    WARPGROUPS("wgmma_n24", 1, k_major_few),
    WARPGROUPS("wgmma_n64", 1, k_major),
    WARPGROUPS("wgmma_n64", 2, k_major_twice),
    WARPGROUPS("wgmma_n96", 1, k_major_few),
    WARPGROUPS("wgmma_n128", 1, k_major_few),
    WARPGROUPS("wgmma_n192", 1, k_major_few),
    WARPGROUPS("wgmma_n256", 1, k_major),
    WARPGROUPS("wgmma_n8_mn_major", 1, mn_major),
    WARPGROUPS("wgmma_n64_mn_major", 1, mn_major),
    WARPGROUPS("wgmma_n128_mn_major", 1, mn_major),
    WARPGROUPS("wgmma_n256_mn_major", 1, mn_major),
    WARPGROUPS("wgmma_n8_a_registers", 1, k_major_few),
    WARPGROUPS("wgmma_n64_a_registers", 1, k_major_few),
    WARPGROUPS("wgmma_n128_a_registers", 1, k_major_few),
    WARPGROUPS("wgmma_n256_a_registers", 1, k_major_few),
    WARPGROUPS("wgmma_n64_a_registers_mn_major", 1, mn_major),
    WARPGROUPS("wgmma_n64_bf16", 1, k_major_few),
    WARPGROUPS("wgmma_n64_f16_sums", 1, k_major_few),
    COPIES("bulk_load", bulk),
    COPIES("bulk_store", bulk),
    COPIES("bulk_reduce", bulk_few),
    COPIES("bulk_prefetch", bulk_few),
    CLUSTERS("bulk_load_multicast", bulk_few),
    CLUSTERS("bulk_to_block", bulk_few),
    COPIES("tensor_load", boxes),
    COPIES("tensor_store", boxes_stored),
    COPIES("tensor_reduce", boxes_few),
    CLUSTERS("tensor_load_multicast", boxes_few),
};
