// The emulator's own tensor maps: what a tensor copy knows of a tensor in global memory, in 128 bytes. PTX ISA 5.5.8.
//
// On the GPU the bytes are the hardware's and opaque; here they are a magic number, the fields, and a checksum, so
// that bytes which are no tensor map (an uninitialised variable, a GPU's map, a pointer to a pointer) are reported as
// such.
#pragma once

#include "../emulator.h"
#include "../memory/memory.h"

enum { TENSOR_MAP_ALIGNMENT = 64 };

typedef struct TensorMapFields {
  uint64_t magic;
  // 0. CUTLASS clears bit 21 of this word in the map of a small tensor, against a mistake of the driver.
  uint64_t unused;
  uint64_t address;
  uint64_t stride[EMULATOR_TENSOR_RANK];  // bytes between neighbours of a dimension; of the first the element's size
  uint32_t last[EMULATOR_TENSOR_RANK];    // the last element of each dimension: its size minus one
  uint16_t box[EMULATOR_TENSOR_RANK];
  uint8_t element_stride[EMULATOR_TENSOR_RANK];
  uint8_t rank, type, swizzle, fill_nan, interleave;
  uint16_t pixels;  // of a copy in im2col mode, 0 in tile mode
  int16_t lower[EMULATOR_TENSOR_RANK - 2], upper[EMULATOR_TENSOR_RANK - 2];
  uint64_t checksum;  // of all the bytes before it
} TensorMapFields;

_Static_assert(sizeof(TensorMapFields) <= EMULATOR_TENSOR_MAP_BYTES, "a tensor map has 128 bytes");

// For a kernel that changes a map: the fields of one that may break the encoder's rules, and its bytes with new fields.
// False when the bytes are neither a tensor map nor all zero. A kernel may begin with zeros and set each field;
// Triton's device descriptors are made so.
bool tensor_map_read(const uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES], TensorMapFields *fields);
void tensor_map_write(TensorMapFields *fields, uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES]);
// False when the bytes are no tensor map, or one that breaks the rules.
bool tensor_map_decode(const uint8_t bytes[EMULATOR_TENSOR_MAP_BYTES], TensorMapFields *fields);
// Bytes of an element.
int tensor_element_size(EmulatorTensorType type);
// Bytes that the swizzle works on: 32, 64 or 128, or 0 without one.
int tensor_swizzle_span(EmulatorTensorSwizzle swizzle);

// ---- tensor_map_edit.c ----

// Tensor maps in global memory. The GPU keeps copies of maps that it has used, and a write through the generic proxy
// does not reach them: fence.proxy.tensormap::generic.acquire makes a block read a map afresh. PTX ISA 9.7.13.4; CUDA
// C++ programming guide, "Using TMA to transfer multi-dimensional arrays": a map in global memory "requires a fence in
// each thread block before any thread in the block uses the updated tensor map". Parameters and constants need none.

// fence.proxy.tensormap::generic.acquire of the scope, by the lanes of mask for the maps at their addresses.
void map_fences_acquire(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES], Strength scope);
// A tensor copy by the lane uses the map that lies there: reports a race with a write of it, and a missing fence.
void map_fences_check(Warp *warp, const Inst *inst, int lane, const Access *map, const TensorMapFields *fields);
void map_fences_free(Block *block);
