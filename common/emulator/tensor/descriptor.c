// The matrix descriptor of wgmma: see descriptor.h.
#include "descriptor.h"

#include <stdarg.h>
#include <stdio.h>

// A sentence, in the thread's own buffer.
static const char *sentence(const char *format, ...) {
  static _Thread_local char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

static uint32_t address_field(uint64_t bits, int shift) { return (uint32_t)(bits >> shift & 0x3fff) << 4; }

void descriptor_decode(uint64_t bits, bool mn_major, MatrixDescriptor *d) {
  static const uint32_t swizzles[] = {0, 128, 64, 32};
  *d = (MatrixDescriptor){.start = address_field(bits, 0),
                          .leading = address_field(bits, 16),
                          .stride = address_field(bits, 32),
                          .base_offset = (uint32_t)(bits >> 49 & 7),
                          .swizzle = swizzles[bits >> 62],
                          .swizzle_shift = swizzles[bits >> 62] ? __builtin_ctz(swizzles[bits >> 62]) : 0,
                          .mn_major = mn_major};
}

// ---- what is wrong with it ----

// What a matrix consists of: core matrices, or eight lines of a swizzled panel. Each is one piece of `unit` bytes, and
// two distances lay them out: `outer` steps, and `inner` ones, along K.
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

static const char *overlap(const MatrixDescriptor *d, int rows, int row_bytes) {
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

// A line of a swizzled tile, as far as it is read, goes on behind its end.
static const char *crossing(const MatrixDescriptor *d, int rows, int row_bytes) {
  uint32_t length = (uint32_t)(d->mn_major ? rows * 2 : row_bytes), begin = d->swizzle ? d->start % d->swizzle : 0;
  if (d->mn_major && length > d->swizzle) length = d->swizzle;  // the rest lies in the next panels
  if (!d->swizzle || begin + length <= d->swizzle) return NULL;
  return sentence("the start, 0x%x, is %u bytes inside a line of %u, and the next %u bytes reach over its end",
                  d->start, begin, d->swizzle, length);
}

const char *descriptor_misfit(const MatrixDescriptor *d, int rows, int row_bytes) {
  const char *shared = overlap(d, rows, row_bytes);
  return shared ? shared : crossing(d, rows, row_bytes);
}

static DescriptorFinding fault(const char *text) { return (DescriptorFinding){HAZARD_FAULT, text}; }
static DescriptorFinding formal(const char *text) { return (DescriptorFinding){HAZARD_FORMAL, text}; }

// PTX ISA 9.7.16.5.1, "matrix base offset": 0 for a tile that starts where its swizzle pattern does, else bits 7-9 of
// that place. A step inside the pattern's first line leaves them as they are.
static DescriptorFinding check_tile_start(const MatrixDescriptor *d) {
  if (!d->swizzle) return (DescriptorFinding){0};
  uint32_t repeat = 8 * d->swizzle, past = d->start % repeat;
  if (d->base_offset && (((d->start >> 7) - d->base_offset) & descriptor_mask(d)))
    return fault("a base offset is set, and it is not bits 7 to 9 of the start address");
  if (d->base_offset || past < d->swizzle) return (DescriptorFinding){0};
  return formal(sentence("the tile does not start at a multiple of its swizzle pattern: 0x%x is %u bytes past a "
                         "multiple of %u, and the base "
                         "offset is 0. An H200 takes the pattern from bits of the address, as TMA does (tests/rules): "
                         "right for lines that "
                         "TMA wrote, or that follow its pattern",
                         d->start, past, repeat));
}

DescriptorFinding descriptor_check(uint64_t bits, const MatrixDescriptor *d) {
  static const char ignored[] = "An H200 ignores them (tests/rules)";
  if (bits & 3ull << 47)
    return fault("bits 46-48 are set: they belong to another architecture's descriptor, or the stride was not shifted "
                 "right by 4");
  if (bits & 3ull << 14) return fault("bits 14-15 are set: the address was not shifted right by 4");
  if (bits & 3ull << 30) return fault("bits 30-31 are set: the leading byte offset was not shifted right by 4");
  DescriptorFinding start = check_tile_start(d);
  if (start.text) return start;
  if (bits & 1ull << 46)
    return formal(sentence("bits 46-48 are set: they belong to another architecture's descriptor. %s", ignored));
  if (bits & 0x3ffull << 52)
    return formal(sentence("reserved bits are set: 52-61 are 0 in a descriptor for wgmma. %s", ignored));
  return (DescriptorFinding){0};
}
