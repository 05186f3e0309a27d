// The matrix descriptor of wgmma: see descriptor.h.
#include "descriptor.h"

#include <stddef.h>

static uint32_t field(uint64_t bits, int shift) { return (uint32_t)(bits >> shift & 0x3fff) << 4; }

const char *descriptor_decode(uint64_t bits, bool mn_major, MatrixDescriptor *d) {
  static const uint32_t swizzles[] = {0, 128, 64, 32};
  const uint64_t reserved = 3ull << 14 | 3ull << 30 | 7ull << 46 | 0x3ffull << 52;
  *d = (MatrixDescriptor){.start = field(bits, 0),
                          .leading = field(bits, 16),
                          .stride = field(bits, 32),
                          .base_offset = (uint32_t)(bits >> 49 & 7),
                          .swizzle = swizzles[bits >> 62],
                          .mn_major = mn_major};
  if (bits >> 46 & 7) return "bits 46-48 are set, which belong to another architecture's descriptor";
  if (bits & 3ull << 14) return "bits 14-15 are set: the address was not shifted right by 4";
  if (bits & reserved) return "reserved bits are set";
  if (d->base_offset)
    return "a base offset is set: the emulator wants swizzled tiles that start at a multiple of their repeat";
  // The first row of a tile is the first of its swizzle pattern: only a step along K may move the address inside a row.
  if (d->swizzle && !mn_major && d->start % (8 * d->swizzle) >= d->swizzle)
    return "the tile does not start at a multiple of its swizzle pattern (256, 512 or 1024 bytes for 32B, 64B, 128B)";
  if (d->swizzle && mn_major && d->start % (8 * d->swizzle))
    return "the tile does not start at a multiple of its swizzle pattern (256, 512 or 1024 bytes for 32B, 64B, 128B)";
  return NULL;
}

// The hardware's swizzle: address bits 4 up, as many as the width has, are XORed with those from bit 7 up.
static uint32_t swizzled(uint32_t address, uint32_t width) {
  uint32_t mask = width ? width / 16 - 1 : 0;
  return address ^ (address >> 7 & mask) << 4;
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
  return swizzled(address, d->swizzle);
}

const char *descriptor_overlap(const MatrixDescriptor *d, int rows, int row_bytes) {
  // Core matrices, or whole 8-row groups of a swizzled tile, are laid out by two distances; when one covers what the other
  // has placed, the two offsets are wrong, and most often swapped.
  uint32_t unit = d->swizzle && !d->mn_major ? 8 * d->swizzle : d->swizzle ? 8 * d->swizzle : 128;
  int outer = d->mn_major && d->swizzle ? (rows * 2 + (int)d->swizzle - 1) / (int)d->swizzle : (rows + 7) / 8;
  int inner = d->swizzle && !d->mn_major ? 1 : row_bytes / 16;  // groups of eight elements of 16 bits
  uint32_t outer_step = d->mn_major && d->swizzle ? d->leading : d->stride;
  uint32_t inner_step = d->mn_major && d->swizzle ? d->stride : d->leading;
  for (int o = 0; o < outer; o++)
    for (int i = 0; i < inner; i++)
      for (int p = 0; p <= o; p++)
        for (int j = 0; j < inner; j++) {
          if (p == o && j >= i) continue;
          int64_t distance = (int64_t)(uint32_t)o * outer_step + (int64_t)(uint32_t)i * inner_step -
                             (int64_t)(uint32_t)p * outer_step - (int64_t)(uint32_t)j * inner_step;
          if (distance > -(int64_t)unit && distance < (int64_t)unit)
            return "parts of the matrix share memory: the leading and the stride byte offset do not fit (are they "
                   "swapped?)";
        }
  return NULL;
}
