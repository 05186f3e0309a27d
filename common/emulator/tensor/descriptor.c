// The matrix descriptor of wgmma: see descriptor.h.
#include "descriptor.h"

#include <stddef.h>

enum { DEPTH_BYTES = 32 };  // of a row along K: 16 elements

static uint32_t field(uint64_t bits, int shift) { return (uint32_t)(bits >> shift & 0x3fff) << 4; }

void descriptor_decode(uint64_t bits, bool mn_major, MatrixDescriptor *d) {
  static const uint32_t swizzles[] = {0, 128, 64, 32};
  *d = (MatrixDescriptor){.start = field(bits, 0),
                          .leading = field(bits, 16),
                          .stride = field(bits, 32),
                          .base_offset = (uint32_t)(bits >> 49 & 7),
                          .swizzle = swizzles[bits >> 62],
                          .mn_major = mn_major};
}

// ---- where it reads ----

// The hardware's swizzle: address bits 4 up, as many as the width has, are XORed with those from bit 7 up, less the base
// offset. They are bits of the address in shared memory, as for TMA, wherever the tile begins: tests/rules has all base
// offsets and all starts of an H200.
static uint32_t swizzled(const MatrixDescriptor *d, uint32_t address) {
  uint32_t mask = d->swizzle ? d->swizzle / 16 - 1 : 0;
  return address ^ (((address >> 7) - d->base_offset) & mask) << 4;
}

uint32_t descriptor_address(const MatrixDescriptor *d, int mn, int k) {
  uint32_t row = (uint32_t)mn, depth = (uint32_t)k, address = d->start;
  if (!d->mn_major && !d->swizzle)
    address += row / 8 * d->stride + depth / 8 * d->leading + row % 8 * 16;
  else if (!d->mn_major)
    address += row / 8 * d->stride + row % 8 * d->swizzle + depth * 2;
  else if (!d->swizzle)
    address += row / 8 * d->stride + depth / 8 * d->leading + depth % 8 * 16;
  else
    address +=
        row * 2 / d->swizzle * d->leading + depth / 8 * d->stride + depth % 8 * d->swizzle + row * 2 % d->swizzle;
  return swizzled(d, address);
}

// ---- what is wrong with it ----

// Core matrices, or whole 8-row groups of a swizzled tile, are laid out by two distances; when one covers what the other
// has placed, the two offsets are wrong, and most often swapped.
static bool overlaps(const MatrixDescriptor *d, int rows) {
  uint32_t unit = d->swizzle && !d->mn_major ? 8 * d->swizzle : d->swizzle ? 8 * d->swizzle : 128;
  int outer = d->mn_major && d->swizzle ? (rows * 2 + (int)d->swizzle - 1) / (int)d->swizzle : (rows + 7) / 8;
  int inner = d->swizzle && !d->mn_major ? 1 : 2;  // 16 deep: two groups of eight
  uint32_t outer_step = d->mn_major && d->swizzle ? d->leading : d->stride;
  uint32_t inner_step = d->mn_major && d->swizzle ? d->stride : d->leading;
  for (int o = 0; o < outer; o++)
    for (int i = 0; i < inner; i++)
      for (int p = 0; p <= o; p++)
        for (int j = 0; j < inner; j++) {
          if (p == o && j >= i) continue;
          int64_t distance = (int64_t)(uint32_t)o * outer_step + (int64_t)(uint32_t)i * inner_step -
                             (int64_t)(uint32_t)p * outer_step - (int64_t)(uint32_t)j * inner_step;
          if (distance > -(int64_t)unit && distance < (int64_t)unit) return true;
        }
  return false;
}

// Whether a row of a swizzled tile, as far as it is read, goes on behind the row's end.
static bool crosses_row(const MatrixDescriptor *d, int rows) {
  uint32_t length = d->mn_major ? (uint32_t)rows * 2 : DEPTH_BYTES;
  if (length > d->swizzle) length = d->swizzle;
  return d->swizzle && d->start % d->swizzle + length > d->swizzle;
}

static DescriptorFinding fault(const char *text) { return (DescriptorFinding){HAZARD_FAULT, text}; }
static DescriptorFinding formal(const char *text) { return (DescriptorFinding){HAZARD_FORMAL, text}; }

// PTX ISA 9.7.16.5.1, "matrix base offset": 0 for a tile that starts where its swizzle pattern does, else bits 7-9 of the
// start. A step inside the pattern's first row leaves them as they are.
static DescriptorFinding check_base(const MatrixDescriptor *d) {
  uint32_t mask = d->swizzle ? d->swizzle / 16 - 1 : 0;
  bool at_repeat = !d->swizzle || d->start % (8 * d->swizzle) < d->swizzle;
  if (d->base_offset && (((d->start >> 7) - d->base_offset) & mask))
    return fault("the base offset is neither 0 nor bits 7 to 9 of the start address");
  if (at_repeat || d->base_offset) return (DescriptorFinding){0};
  return formal(
      "the tile does not start at a multiple of its swizzle pattern (256, 512 or 1024 bytes for 32B, 64B, 128B), and its "
      "base offset is 0. An H200 takes the pattern from the address bits, as TMA does (tests/rules): right for a tile "
      "that TMA wrote");
}

DescriptorFinding descriptor_check(uint64_t bits, const MatrixDescriptor *d, int rows) {
  if (bits & 3ull << 14) return fault("bits 14-15 are set: the address was not shifted right by 4");
  if (bits & 3ull << 30) return fault("bits 30-31 are set: the leading byte offset was not shifted right by 4");
  if (bits & 3ull << 47) return fault("bits 47-48 are set: the stride byte offset was not shifted right by 4");
  if (overlaps(d, rows))
    return fault("parts of the matrix share memory: the leading and the stride byte offset do not fit (are they swapped?)");
  if (crosses_row(d, rows)) return fault("the start is so far inside a swizzled row that the tile reaches over its end");
  DescriptorFinding base = check_base(d);
  if (base.text) return base;
  if (bits & 1ull << 46)
    return formal("bit 46 is set, which belongs to another architecture's descriptor. An H200 ignores it (tests/rules)");
  if (bits & 0x3ffull << 52) return formal("reserved bits are set. An H200 ignores them (tests/rules)");
  return (DescriptorFinding){0};
}
