// The tensors of a call as they lie in memory: whether their addresses and strides make sense, and what overlaps what.
#pragma once

#include "check.h"

enum { DIMENSIONS = 3 };  // batch, head, row

// A tensor of a call; sizes and strides are in elements.
typedef struct Place {
  const char *name;
  uintptr_t address;
  bool written;
  int64_t bytes;  // of an element
  int64_t columns, count[DIMENSIONS], stride[DIMENSIONS];
} Place;

// A tensor [batch][heads][seqlen][head_dim]. The stride of a dimension with one element is not the caller's, but one
// that goes with the others.
Place tensor_place(const char *name, const HlTensor *tensor, const Shape *shape, int bytes, bool written);
// From the first byte of a tensor to the one behind its last.
uint64_t place_extent(const Place *place);
// The tensor in the stages' own type.
DeviceTensor place_tensor(const Place *place);

// Each returns HL_OK, or the status of call_fail.
HlStatus check_size(const char *name, int32_t size, int32_t largest);
HlStatus check_address(const char *name, const void *data, unsigned alignment);
HlStatus check_strides(const Place *place);
// For a stage that takes nothing else: `shape` is that of the tensor.
HlStatus check_contiguous(const Stage *stage, const Place *place, const Shape *shape);
// An address of device memory that is read or written besides the tensors, and its bytes.
HlStatus check_apart(const Place *place, const char *name, const void *data, uint64_t size);
// No tensor that is written may overlap one before it.
HlStatus check_overlap(const Place *places, int count);
HlStatus check_options(uint32_t flags, float scale, const int64_t reserved[8]);
