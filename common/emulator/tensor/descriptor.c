// The matrix descriptor of wgmma: see descriptor.h.
#include "descriptor.h"

#include <stdarg.h>
#include <stdio.h>

// A sentence, in the thread's own buffer.
static const char *sentence(const char *format, ...) {
  static _Thread_local char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// The first row of a tile is the first of its swizzle pattern. Only a step along a row of a K-major tile may move the
// address, and it stays inside of that row.
static const char *misplaced(const MatrixDescriptor *d) {
  if (!d->swizzle) return NULL;
  uint32_t repeat = 8 * d->swizzle, past = d->start % repeat;
  if (past < (d->mn_major ? 1 : d->swizzle)) return NULL;
  if (d->mn_major)
    return sentence(
        "the tile does not start at a multiple of its swizzle pattern: 0x%x is %u bytes past a multiple of %u",
        d->start, past, repeat);
  return sentence(
      "the tile does not start at a multiple of its swizzle pattern: 0x%x is %u bytes past a multiple of %u, "
      "and a step inside a row is less than %u (a descriptor counts 16 bytes as 1)",
      d->start, past, repeat, d->swizzle);
}

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
  if (bits >> 46 & 7)
    return "bits 46-48 are set: they belong to another architecture's descriptor, or the stride was not shifted right "
           "by 4";
  if (bits & 3ull << 14) return "bits 14-15 are set: the address was not shifted right by 4";
  if (bits & 3ull << 30) return "bits 30-31 are set: the leading byte offset was not shifted right by 4";
  if (bits & reserved) return "reserved bits are set: 52-61 are 0 in a descriptor for wgmma";
  if (d->base_offset)
    return "a base offset is set: the emulator wants swizzled tiles that start at a multiple of their repeat";
  return misplaced(d);
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

// What a matrix consists of: core matrices, or eight lines of a swizzled panel. Each is one piece of `unit` bytes, and two
// distances lay them out: `outer` steps, and `inner` ones, along K.
typedef struct Parts {
  uint32_t unit, outer_step, inner_step;
  int outer, inner;
} Parts;

static Parts parts_of(const MatrixDescriptor *d, int rows, int row_bytes) {
  bool panels = d->mn_major && d->swizzle;
  return (Parts){.unit = d->swizzle ? 8 * d->swizzle : 128,
                 .outer = panels ? (rows * 2 + (int)d->swizzle - 1) / (int)d->swizzle : (rows + 7) / 8,
                 .inner = d->swizzle && !d->mn_major ? 1 : row_bytes / 16,
                 .outer_step = panels ? d->leading : d->stride,
                 .inner_step = panels ? d->stride : d->leading};
}

static bool share_memory(const Parts *parts) {
  for (int o = 0; o < parts->outer; o++)
    for (int i = 0; i < parts->inner; i++)
      for (int p = 0; p <= o; p++)
        for (int j = 0; j < parts->inner; j++) {
          if (p == o && j >= i) continue;
          int64_t distance = (int64_t)(o - p) * parts->outer_step + (int64_t)(i - j) * parts->inner_step;
          if (distance > -(int64_t)parts->unit && distance < (int64_t)parts->unit) return true;
        }
  return false;
}

const char *descriptor_overlap(const MatrixDescriptor *d, int rows, int row_bytes) {
  Parts parts = parts_of(d, rows, row_bytes), exchanged = parts;
  if (!share_memory(&parts)) return NULL;
  exchanged.outer_step = parts.inner_step;
  exchanged.inner_step = parts.outer_step;
  bool leading_used = parts.inner > 1 && (parts.outer > 1 || !d->mn_major || !d->swizzle);
  bool leading_short = leading_used && d->leading < parts.unit, stride_short = d->stride < parts.unit;
  static const char begin[] = "parts of the matrix share memory";
  if (leading_short || stride_short)
    return sentence("%s: the %s byte offset is %u, and %s %u bytes in one piece", begin,
                    leading_short ? "leading" : "stride", leading_short ? d->leading : d->stride,
                    d->swizzle ? "eight rows of the pattern are" : "a core matrix, 8 rows of 16 bytes, is", parts.unit);
  return sentence("%s with a leading byte offset of %u and a stride of %u%s", begin, d->leading, d->stride,
                  share_memory(&exchanged) ? "" : " (are they exchanged?)");
}
