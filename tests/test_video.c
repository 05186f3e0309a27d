// The video instructions on the emulator, against sums of the bytes and half-words that they select. Where an H200
// departs from the PTX ISA, the result expected here is the H200's: notes/tensor-core-arithmetic.md says where.
// test_video_golden.c compares with recorded results of all forms.
#include <criterion/criterion.h>

#include "support/run_ptx.h"

TestSuite(video);

// The function `name`, whose result is an expression of the sources x, y, z.
#define EXPECT(name, result)                                                                                           \
  static void name(const Sample *sample, uint64_t *out) {                                                              \
    Wide x = (Wide)sample->in[0], y = (Wide)sample->in[1], z = (Wide)sample->in[2];                                    \
    (void)x, (void)y, (void)z;                                                                                         \
    out[0] = (uint64_t)(result);                                                                                       \
  }

// Number `index` of the parts of x that have that many bits, with and without a sign.
static Wide u(Wide x, int index, int bits) { return x >> index * bits & (((Wide)1 << bits) - 1); }
static Wide s(Wide x, int index, int bits) {
  Wide part = u(x, index, bits);
  return part >> (bits - 1) ? part - ((Wide)1 << bits) : part;
}
static Wide clamp(Wide x, Wide low, Wide high) { return x < low ? low : x > high ? high : x; }
static Wide clamp_s(Wide x, int bits) { return clamp(x, -((Wide)1 << (bits - 1)), ((Wide)1 << (bits - 1)) - 1); }
static Wide clamp_u(Wide x, int bits) { return clamp(x, 0, ((Wide)1 << bits) - 1); }
static Wide less(Wide x, Wide y) { return x < y ? x : y; }
static Wide more(Wide x, Wide y) { return x > y ? x : y; }
static Wide apart(Wide x, Wide y) { return x < y ? y - x : x - y; }

#define WORDS(text, f)                                                                                                 \
  { text, "b32: b32 b32 b32", f, 0 }
#define TWO_WORDS(text, f)                                                                                             \
  { text, "b32: b32 b32", f, 0 }

// ---- scalar ----

EXPECT(add_words, x + y)
EXPECT(sub_clamped, clamp_s(s(x, 0, 32) - y, 32))
EXPECT(sub_unsigned, clamp_u(s(x, 0, 32) - s(y, 0, 32), 32))
EXPECT(add_parts, clamp_s(u(x, 3, 8) + s(y, 1, 16), 32))
EXPECT(absdiff_into_half, u(clamp_s(apart(s(x, 0, 8), s(y, 2, 8)), 16), 0, 16) | (z & 0xffff0000))
EXPECT(min_plus, less(s(x, 0, 32), s(y, 0, 32)) + s(z, 0, 32))
EXPECT(max_most, more(more(s(x, 1, 16), u(y, 2, 8)), z))
// A sum with its top bit set counts as more than any c.
EXPECT(add_least, u(x + y, 31, 1) ? z : less(u(x + y, 0, 32), z))
EXPECT(add_into_byte, (u(x + y, 0, 8) << 16) | (z & 0xff00ffff))
// A negative difference becomes 255, as a large one does.
EXPECT(sub_clamped_into_byte, ((x < y ? 255 : clamp_u(x - y, 8)) << 24) | (z & 0x00ffffff))
// No upper bound.
EXPECT(add_clamped_unsigned, s(x, 0, 32) + y < 0 ? 0 : x + y)
EXPECT(add_into_high_half, ((x + y) & 0xffff0000) | (z & 0xffff))

Test(video, arithmetic) {
  const InstructionTest tests[] = {
      TWO_WORDS("vadd.u32.u32.u32", add_words),
      TWO_WORDS("vadd.s32.s32.u32", add_words),
      TWO_WORDS("vsub.s32.s32.u32.sat", sub_clamped),
      TWO_WORDS("vsub.u32.s32.s32.sat", sub_unsigned),
      TWO_WORDS("vadd.s32.u32.s32.sat %d, %a.b3, %b.h1", add_parts),
      WORDS("vabsdiff.s32.s32.s32.sat %d.h0, %a.b0, %b.b2, %c", absdiff_into_half),
      WORDS("vmin.s32.s32.s32.sat.add", min_plus),
      WORDS("vmax.u32.s32.u32.max %d, %a.h1, %b.b2, %c", max_most),
      WORDS("vadd.u32.u32.u32.min", add_least),
      WORDS("vadd.u32.u32.u32 %d.b2, %a, %b, %c", add_into_byte),
      WORDS("vsub.u32.u32.u32.sat %d.b3, %a, %b, %c", sub_clamped_into_byte),
      TWO_WORDS("vadd.u32.s32.u32.sat", add_clamped_unsigned),
      WORDS("vadd.s32.u32.u32 %d.h1, %a, %b, %c", add_into_high_half),
  };
  RUN_TESTS(tests);
}

EXPECT(shl_clamp, x << less(y, 32))
EXPECT(shl_wrap_saturated, clamp_s(s(s(x, 0, 32) * ((Wide)1 << (y & 31)), 0, 34), 32))
EXPECT(shr_clamp, s(x, 0, 32) >> less(u(y, 1, 8), 32))
EXPECT(shr_wrap_into_half, (x >> (y & 31) & 0xffff0000) | (z & 0xffff))
EXPECT(set_less, s(x, 1, 8) < y)
EXPECT(set_count, (u(x, 0, 8) >= u(y, 3, 8)) + z)
EXPECT(set_least, less(s(x, 0, 32) > y, s(z, 0, 32)))
EXPECT(set_byte, (Wide)(x != y) << 8 | (z & 0xffff00ff))

Test(video, shifts_and_comparisons) {
  const InstructionTest tests[] = {
      TWO_WORDS("vshl.u32.u32.u32.clamp", shl_clamp),
      TWO_WORDS("vshl.s32.s32.u32.sat.wrap", shl_wrap_saturated),
      TWO_WORDS("vshr.s32.s32.u32.clamp %d, %a, %b.b1", shr_clamp),
      WORDS("vshr.u32.u32.u32.wrap %d.h1, %a, %b, %c", shr_wrap_into_half),
      TWO_WORDS("vset.s32.u32.lt %d, %a.b1, %b", set_less),
      WORDS("vset.u32.u32.ge.add %d, %a.b0, %b.b3, %c", set_count),
      WORDS("vset.s32.u32.gt.min", set_least),
      WORDS("vset.u32.u32.ne %d.b1, %a, %b, %c", set_byte),
  };
  RUN_TESTS(tests);
}

// Words are signed, whatever their types; parts of them are not.
EXPECT(mad_unsigned, (s(x, 0, 32) * s(y, 0, 32) + s(z, 0, 32)) >> 15)
EXPECT(mad_signed, clamp_s((s(x, 1, 8) * s(y, 1, 16) + s(z, 0, 32)) >> 7, 32))
EXPECT(mad_negated, s(z, 0, 32) - s(x, 1, 8) * s(y, 1, 16))
EXPECT(mad_minus, clamp_s(s(x, 0, 32) * s(y, 0, 32) - s(z, 0, 32), 32))
EXPECT(mad_half_minus, clamp_s(u(x, 1, 16) * s(y, 0, 32) - s(z, 0, 32), 32))
EXPECT(mad_plus_one, clamp_u(s(x, 0, 32) * s(y, 0, 32) + s(z, 0, 32) + 1, 32))

Test(video, multiply_add) {
  const InstructionTest tests[] = {
      WORDS("vmad.u32.u32.u32.shr15", mad_unsigned),
      WORDS("vmad.s32.s32.s32.sat.shr7 %d, %a.b1, %b.h1, %c", mad_signed),
      WORDS("vmad.s32.s32.s32 %d, -%a.b1, %b.h1, %c", mad_negated),
      WORDS("vmad.s32.s32.u32.sat %d, %a, %b, -%c", mad_minus),
      WORDS("vmad.u32.u32.u32.sat %d, %a.h1, %b, -%c", mad_half_minus),
      WORDS("vmad.u32.u32.u32.po.sat", mad_plus_one),
  };
  RUN_TESTS(tests);
}

// ---- two half-words, four bytes ----

// The sum of f of each pair of parts, and the word that they make.
typedef Wide Combine(Wide x, Wide y);

static Wide total(Wide x, Wide y, int bits, bool is_signed, Combine *f) {
  Wide sum = 0;
  for (int i = 0; i < 32 / bits; i++)
    sum += is_signed ? f(s(x, i, bits), s(y, i, bits)) : f(u(x, i, bits), u(y, i, bits));
  return sum;
}

static Wide packed(Wide x, Wide y, int bits, bool is_signed, Combine *f) {
  Wide word = 0;
  for (int i = 0; i < 32 / bits; i++)
    word |= u(is_signed ? f(s(x, i, bits), s(y, i, bits)) : f(u(x, i, bits), u(y, i, bits)), 0, bits) << i * bits;
  return word;
}

static Wide sum(Wide x, Wide y) { return x + y; }
static Wide sum_s16(Wide x, Wide y) { return clamp_s(x + y, 16); }
static Wide difference_u8(Wide x, Wide y) { return clamp_u(x - y, 8); }
static Wide average(Wide x, Wide y) { return (x + y + (x + y >= 0)) >> 1; }
static Wide equal(Wide x, Wide y) { return x == y; }
static Wide at_most(Wide x, Wide y) { return x <= y; }

EXPECT(add2, packed(x, y, 16, false, sum))
EXPECT(add2_saturated, packed(x, y, 16, true, sum_s16))
EXPECT(average4, packed(x, y, 8, false, average))
EXPECT(average2, packed(x, y, 16, true, average))
EXPECT(absdiff4, packed(x, y, 8, false, apart))
EXPECT(absdiff4_total, total(x, y, 8, false, apart) + z)
EXPECT(absdiff2_total, total(x, y, 16, true, apart) + z)
EXPECT(sub4_saturated, packed(x, y, 8, false, difference_u8))
EXPECT(max4, packed(x, y, 8, true, more))
EXPECT(set4, packed(x, y, 8, false, equal))
EXPECT(set2_total, total(x, y, 16, true, at_most) + z)
// Of a only the low half-word, twice, and of b the low one; of the results the high one goes to d.
EXPECT(min2_selected, less(u(x, 0, 16), u(y, 0, 16)) << 16 | (z & 0xffff))
// Bytes 3, 2, 1, 0 of d: from bytes 7 and 0, 4 and 5, 2 and 6, 1 and 1 of b:a. The outer two go to d.
EXPECT(add4_selected, u(u(y, 3, 8) + u(x, 0, 8), 0, 8) << 24 | u(u(x, 1, 8) + u(x, 1, 8), 0, 8) | (z & 0x00ffff00))

Test(video, packed) {
  const InstructionTest tests[] = {
      WORDS("vadd2.u32.u32.u32", add2),
      WORDS("vadd2.s32.s32.s32.sat", add2_saturated),
      WORDS("vavrg4.u32.u32.u32", average4),
      WORDS("vavrg2.s32.s32.s32", average2),
      WORDS("vabsdiff4.u32.u32.u32", absdiff4),
      WORDS("vabsdiff4.u32.u32.u32.add", absdiff4_total),
      WORDS("vabsdiff2.s32.s32.s32.add", absdiff2_total),
      WORDS("vsub4.u32.u32.u32.sat", sub4_saturated),
      WORDS("vmax4.s32.s32.s32", max4),
      WORDS("vset4.u32.u32.eq", set4),
      WORDS("vset2.s32.s32.le.add", set2_total),
      WORDS("vmin2.u32.u32.u32 %d.h1, %a.h00, %b.h22, %c", min2_selected),
      WORDS("vadd4.u32.u32.u32 %d.b30, %a.b7421, %b.b0561, %c", add4_selected),
  };
  RUN_TESTS(tests);
}

Test(video, refused) {
  const RefusedTest tests[] = {
      {"vadd.u32.u32 %r1, %r2, %r3", "needs .u32 or .s32"},
      {"vadd.u32.u32.u64 %r1, %r2, %r3", "needs .u32 or .s32"},
      {"vshl.u32.u32.s32.clamp %r1, %r2, %r3", "needs .u32 or .s32"},
      {"vshl.u32.u32.u32 %r1, %r2, %r3", "needs .clamp or .wrap"},
      {"vset.u32.u32 %r1, %r2, %r3", "needs a comparison"},
      {"vadd.u32.u32.u32 %r1, %r2.h2, %r3", "no such parts"},
      {"vadd2.u32.u32.u32 %r1, %r2.b3210, %r3, %r4", "no such parts"},
      {"vadd2.u32.u32.u32 %r1.h01, %r2, %r3, %r4", "no such parts"},
      {"vadd.u32.u32.u32.add %r1.h0, %r2, %r3, %r4", "cannot both"},
      {"vadd2.u32.u32.u32.sat.add %r1, %r2, %r3, %r4", "cannot both"},
      {"vadd.u32.u32.u32 %r1, -%r2, %r3", "cannot negate"},
      {"vmad.s32.s32.s32 %r1, -%r2, %r3, -%r4", "cannot negate"},
      {"vadd.u32.u32.u32.clamp %r1, %r2, %r3", "unknown modifier .clamp"},
      {"vavrg.u32.u32.u32 %r1, %r2, %r3", "unknown instruction"},
      {"add.u32 %r1, %r2.b0, %r3", "only registers of video instructions have parts"},
  };
  RUN_REFUSED_TESTS(tests);
}
