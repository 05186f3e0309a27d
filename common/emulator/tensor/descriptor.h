// The shared-memory matrix descriptor of wgmma, and where it puts a matrix's elements. PTX ISA 9.7.16.5.1.
//
//   bits 0-13   start address >> 4
//   bits 16-29  leading-dimension byte offset (LBO) >> 4
//   bits 32-45  stride byte offset (SBO) >> 4
//   bits 49-51  base offset, of a swizzle pattern that does not start at its own repeat
//   bits 62-63  swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
//   the others  0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../emulator.h"

typedef struct MatrixDescriptor {
  uint32_t start, leading, stride;  // bytes
  uint32_t base_offset;
  uint32_t swizzle;   // bytes: 0 (none), 32, 64, 128
  int swizzle_shift;  // its logarithm
  bool mn_major;      // neighbours in memory are neighbours along M or N, not along K
} MatrixDescriptor;

// Splits the bits.
void descriptor_decode(uint64_t bits, bool mn_major, MatrixDescriptor *descriptor);

// ---- where it reads ----

// Bits of an address that the swizzle changes, from bit 4 up.
static inline uint32_t descriptor_mask(const MatrixDescriptor *d) { return d->swizzle ? d->swizzle / 16 - 1 : 0; }

// The hardware's swizzle: these bits are XORed with those from bit 7 up, less the base offset. They are bits of the
// address in shared memory, as for TMA, wherever the tile begins: tests/rules has all starts and base offsets, of an
// H200.
static inline uint32_t descriptor_swizzled(const MatrixDescriptor *d, uint32_t address) {
  return address ^ (((address >> 7) - d->base_offset) & descriptor_mask(d)) << 4;
}

// The shared address of 16 bytes. K-major: of row mn, from k on, which counts elements of 16 bits and is a multiple of
// 8. MN-major: of depth k, from row mn (a multiple of 8) on. Inline: it is called for each 16 bytes of each product.
static inline uint32_t descriptor_address(const MatrixDescriptor *d, int mn, int k) {
  uint32_t row = (uint32_t)mn, depth = (uint32_t)k, address = d->start;
  if (!d->mn_major && !d->swizzle)
    address += row / 8 * d->stride + depth / 8 * d->leading + row % 8 * 16;
  else if (!d->mn_major)
    address += row / 8 * d->stride + row % 8 * d->swizzle + depth * 2;
  else if (!d->swizzle)
    address += row / 8 * d->stride + depth / 8 * d->leading + depth % 8 * 16;
  else
    address += (row * 2 >> d->swizzle_shift) * d->leading + depth / 8 * d->stride + depth % 8 * d->swizzle +
               (row * 2 & (d->swizzle - 1));
  return descriptor_swizzled(d, address);
}

// ---- what is wrong with it ----

// One sentence on what is wrong, or NULL. The next call in the thread overwrites it.
typedef struct DescriptorFinding {
  HazardGrade grade;  // fault or formal
  const char *text;
} DescriptorFinding;

// What is wrong with a descriptor's bits, whatever the matrix.
DescriptorFinding descriptor_check(uint64_t bits, const MatrixDescriptor *descriptor);
// NULL, or what is wrong with a matrix of that many rows of `row_bytes` each: two parts of it share memory, or a
// swizzled line goes on behind its end. As above.
const char *descriptor_misfit(const MatrixDescriptor *descriptor, int rows, int row_bytes);
