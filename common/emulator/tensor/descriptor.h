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
  uint32_t swizzle;  // bytes: 0 (none), 32, 64, 128
  bool mn_major;     // neighbours in memory are neighbours along M or N, not along K
} MatrixDescriptor;

// Splits the bits.
void descriptor_decode(uint64_t bits, bool mn_major, MatrixDescriptor *descriptor);
// The shared address of 16 bytes. K-major: of row mn, from k on, which counts elements of 16 bits and is a multiple of 8.
// MN-major: of depth k, from row mn (a multiple of 8) on.
uint32_t descriptor_address(const MatrixDescriptor *descriptor, int mn, int k);

// One sentence on what is wrong, or NULL. The next call in the thread overwrites it.
typedef struct DescriptorFinding {
  HazardGrade grade;  // fault or formal
  const char *text;
} DescriptorFinding;

// What is wrong with a descriptor's bits, whatever the matrix.
DescriptorFinding descriptor_check(uint64_t bits, const MatrixDescriptor *descriptor);
// NULL, or what is wrong with a matrix of that many rows of `row_bytes` each: two parts of it share memory, or a swizzled
// line goes on behind its end. As above.
const char *descriptor_misfit(const MatrixDescriptor *descriptor, int rows, int row_bytes);
