// The inputs and outputs of copies.cu.
#pragma once

#include <stdint.h>

enum {
  COPY_TILE = 32 * 1024,           // bytes of shared memory that a copy may use
  COPY_SHARED = COPY_TILE + 1024,  // and an mbarrier behind them
  COPY_THREADS = 128,
  COPY_DATA = 64 * 1024,
};

// Where bulk_shared copies to: the block itself by its own address, or by that in the cluster; the other block.
enum { COPY_TO_OWN, COPY_TO_MAPPED_OWN, COPY_TO_OTHER, COPY_TARGETS };

typedef struct CopyInput {
  int32_t coordinates[5];
  uint32_t bytes;   // that an mbarrier expects, or that a bulk copy moves
  uint32_t offset;  // where in the tile a box begins, a multiple of 128
  uint32_t unused[57];
  uint8_t data[COPY_DATA];  // at 256: the tensor of loads, the tile of stores
} CopyInput;

// What a load leaves in shared memory, and whether its mbarrier has completed.
typedef struct CopyResult {
  uint8_t tile[COPY_TILE];
  uint32_t completed, unused[3];
} CopyResult;

// Reductions: T(name, operation) of tensors, of the element type in the map; B(name, operation with type) of bulk
// copies. clang-format off
#define TENSOR_REDUCTIONS(T) T(add, ".add") T(min, ".min") T(max, ".max") T(inc, ".inc") T(dec, ".dec") T(and, ".and") T(or, ".or") T(xor, ".xor")
#define BULK_REDUCTIONS(B)                                                                                             \
  B(add_u32, ".add.u32") B(min_u32, ".min.u32") B(max_u32, ".max.u32") B(inc_u32, ".inc.u32") B(dec_u32, ".dec.u32")   \
  B(min_s32, ".min.s32") B(max_s32, ".max.s32") B(add_u64, ".add.u64") B(min_u64, ".min.u64") B(max_s64, ".max.s64")   \
  B(and_b32, ".and.b32") B(or_b64, ".or.b64") B(xor_b32, ".xor.b32") B(add_f32, ".add.f32") B(add_f64, ".add.f64")     \
  B(add_f16, ".add.noftz.f16") B(add_bf16, ".add.noftz.bf16") B(min_f16, ".min.f16") B(max_f16, ".max.f16")            \
  B(min_bf16, ".min.bf16") B(max_bf16, ".max.bf16")
// clang-format on
