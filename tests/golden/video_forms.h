// The video instructions (PTX ISA 9.7.18) that record_video.cu records on an H200 and test_video_golden.c runs on the
// emulator: their texts, the operands, and PTX kernels around them. Both sides run the same PTX on the same operands.
//
// The forms have all combinations of an instruction's options, except for the parts of a and b. A scalar instruction
// selects these in 49 ways, a SIMD one in more. Each form takes one way, by a hash of its number.
#pragma once

#include <stdio.h>

#include "vectors.h"

enum { VIDEO_LANES = 32, VIDEO_KERNEL_FORMS = 64 };  // operand triples of a form, forms of one kernel

typedef struct VideoForm {
  char text[80];  // "vadd.u32.s32.u32.sat d.b2, a.h1, b, c"
} VideoForm;

typedef void VideoTake(void *context, int number, const VideoForm *form);

typedef struct VideoList {
  VideoTake *take;
  void *context;
  int count;
} VideoList;

static const char *const video_signs[] = {".u32", ".s32"};
static const char *const video_parts[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
// What follows a scalar instruction's types and saturation: a second operation, or the part of d that receives the
// result.
static const struct {
  const char *second, *part;
} video_ends[] = {{"", ""},    {".add", ""}, {".min", ""}, {".max", ""}, {"", ".b0"},
                  {"", ".b1"}, {"", ".b2"},  {"", ".b3"},  {"", ".h0"},  {"", ".h1"}};
static const char *const video_comparisons[] = {".eq", ".ne", ".lt", ".le", ".gt", ".ge"};
enum { VIDEO_PARTS = 7, VIDEO_ENDS = 10, VIDEO_COMPARISONS = 6 };

// `text` has %s where the parts of a and b stand.
static inline void video_scalar(VideoList *list, const char *text) {
  uint32_t hash = golden_hash(20, 0, (uint32_t)list->count, 0);
  VideoForm form;
  snprintf(form.text, sizeof form.text, text, video_parts[hash % VIDEO_PARTS], video_parts[(hash >> 8) % VIDEO_PARTS]);
  list->take(list->context, list->count++, &form);
}

// `head` has everything before the second operation.
static inline void video_scalar_ends(VideoList *list, const char *head) {
  for (int e = 0; e < VIDEO_ENDS; e++) {
    char text[80];
    int third = *video_ends[e].second || *video_ends[e].part;
    snprintf(text, sizeof text, "%s%s d%s, a%%s, b%%s%s", head, video_ends[e].second, video_ends[e].part,
             third ? ", c" : "");
    video_scalar(list, text);
  }
}

static inline void video_scalar_forms(VideoList *list) {
  static const char *const arithmetic[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax"};
  static const char *const shifts[] = {"vshl", "vshr"}, *const modes[] = {".clamp", ".wrap"};
  static const char *const saturations[] = {"", ".sat"};
  char head[64];
  for (int o = 0; o < 5; o++)
    for (int types = 0; types < 8; types++)
      for (int sat = 0; sat < 2; sat++) {
        snprintf(head, sizeof head, "%s%s%s%s%s", arithmetic[o], video_signs[types & 1], video_signs[types >> 1 & 1],
                 video_signs[types >> 2], saturations[sat]);
        video_scalar_ends(list, head);
      }
  for (int o = 0; o < 2; o++)
    for (int types = 0; types < 4; types++)
      for (int options = 0; options < 4; options++) {
        snprintf(head, sizeof head, "%s%s%s.u32%s%s", shifts[o], video_signs[types & 1], video_signs[types >> 1],
                 saturations[options & 1], modes[options >> 1]);
        video_scalar_ends(list, head);
      }
  for (int types = 0; types < 4; types++)
    for (int c = 0; c < VIDEO_COMPARISONS; c++) {
      snprintf(head, sizeof head, "vset%s%s%s", video_signs[types & 1], video_signs[types >> 1], video_comparisons[c]);
      video_scalar_ends(list, head);
    }
}

static inline void video_multiply_add_forms(VideoList *list) {
  static const char *const scales[] = {"", ".shr7", ".shr15"};
  static const struct {
    const char *po, *a, *b, *c;
  } signs[] = {{"", "", "", ""},  {"", "-", "", ""},  {"", "", "-", ""},   {"", "-", "-", ""},
               {"", "", "", "-"}, {"", "-", "-", "-"}, {".po", "", "", ""}};
  for (int types = 0; types < 8; types++)
    for (int sat = 0; sat < 2; sat++)
      for (int scale = 0; scale < 3; scale++)
        for (int s = 0; s < 7; s++) {
          char text[80];
          snprintf(text, sizeof text, "vmad%s%s%s%s%s%s d, %sa%%s, %sb%%s, %sc", video_signs[types & 1],
                   video_signs[types >> 1 & 1], video_signs[types >> 2], signs[s].po, sat ? ".sat" : "", scales[scale],
                   signs[s].a, signs[s].b, signs[s].c);
          video_scalar(list, text);
        }
}

// A SIMD instruction as it stands, and with parts of d, a and b.
static inline void video_simd(VideoList *list, const char *head, int parts) {
  for (int selected = 0; selected < 2; selected++) {
    VideoForm form;
    char mask[8] = "", of_a[8] = "", of_b[8] = "";
    uint32_t hash = golden_hash(21, 0, (uint32_t)list->count, 0), d = 1 + hash % ((1u << parts) - 1);
    if (selected) {
      int at = 0;
      for (int i = parts - 1; i >= 0; i--)
        if (d >> i & 1) mask[at++] = (char)('0' + i);
      for (int i = 0; i < parts; i++) {
        of_a[i] = (char)('0' + (hash >> (4 + 3 * i)) % (2 * (uint32_t)parts));
        of_b[i] = (char)('0' + (hash >> (16 + 3 * i)) % (2 * (uint32_t)parts));
      }
    }
    const char *dot = !selected ? "" : parts == 2 ? ".h" : ".b";
    snprintf(form.text, sizeof form.text, "%s d%s%s, a%s%s, b%s%s, c", head, dot, mask, dot, of_a, dot, of_b);
    list->take(list->context, list->count++, &form);
  }
}

static inline void video_simd_forms(VideoList *list) {
  static const char *const arithmetic[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"};
  static const char *const ends[] = {"", ".sat", ".add"};
  char head[64];
  for (int parts = 2; parts <= 4; parts += 2) {
    for (int o = 0; o < 6; o++)
      for (int types = 0; types < 8; types++)
        for (int e = 0; e < 3; e++) {
          snprintf(head, sizeof head, "%s%d%s%s%s%s", arithmetic[o], parts, video_signs[types & 1],
                   video_signs[types >> 1 & 1], video_signs[types >> 2], ends[e]);
          video_simd(list, head, parts);
        }
    for (int types = 0; types < 4; types++)
      for (int c = 0; c < VIDEO_COMPARISONS; c++)
        for (int add = 0; add < 2; add++) {
          snprintf(head, sizeof head, "vset%d%s%s%s%s", parts, video_signs[types & 1], video_signs[types >> 1],
                   video_comparisons[c], add ? ".add" : "");
          video_simd(list, head, parts);
        }
  }
}

// Hands over all forms; says how many there are.
static inline int video_forms(VideoTake *take, void *context) {
  VideoList list = {take, context, 0};
  video_scalar_forms(&list);
  video_multiply_add_forms(&list);
  video_simd_forms(&list);
  return list.count;
}

// ---- operands ----

// Operand 0, 1 or 2 of one lane: words, half-words or bytes at the edges of their ranges, small numbers as shifts take
// them, and random bits.
static inline uint32_t video_operand(int form, int lane, int operand) {
  static const uint32_t words[] = {0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0x7ffffffe};
  static const uint16_t halves[] = {0, 1, 0xffff, 0x7fff, 0x8000, 0x8001, 0xff, 0x80};
  static const uint8_t bytes[] = {0, 1, 0xff, 0x7f, 0x80, 0x81, 31, 32};
  uint32_t kind = golden_hash(22, (uint32_t)form, (uint32_t)lane, (uint32_t)operand);
  uint32_t h = golden_hash(23, (uint32_t)form, (uint32_t)lane, (uint32_t)operand);
  switch (kind % 6) {
  case 0:
  case 1: return words[h & 7];
  case 2: return halves[h & 7] | (uint32_t)halves[h >> 8 & 7] << 16;
  case 3:
    return bytes[h & 7] | (uint32_t)bytes[h >> 8 & 7] << 8 | (uint32_t)bytes[h >> 16 & 7] << 16 |
           (uint32_t)bytes[h >> 24 & 7] << 24;
  case 4: return h >> (kind >> 8 & 31);
  default: return h;
  }
}

// Those of all forms, a's, b's and c's of one lane together.
static inline void video_operands(int forms, uint32_t *operands) {
  for (int i = 0; i < forms * VIDEO_LANES; i++)
    for (int operand = 0; operand < 3; operand++)
      operands[3 * i + operand] = video_operand(i / VIDEO_LANES, i % VIDEO_LANES, operand);
}

// ---- the file ----

// The results of all forms follow: the lanes' words of the first form, of the second, and so on.
typedef struct VideoRecord {
  char magic[8];  // "HLVIDE1"
  uint32_t forms, lanes;
  uint64_t input_hash;
} VideoRecord;

static inline uint64_t video_hash(const VideoForm *forms, const uint32_t *operands, int count) {
  uint64_t hash = fnv1a(FNV1A_START, operands, (size_t)count * VIDEO_LANES * 3 * sizeof *operands);
  for (int i = 0; i < count; i++) hash = fnv1a(hash, forms[i].text, strlen(forms[i].text));
  return hash;
}

// ---- the kernel ----

typedef struct VideoText {
  char text[1 << 15];
  int used;
} VideoText;

#define VIDEO_PRINT(t, ...)                                                                                            \
  ((t)->used += snprintf((t)->text + (t)->used, sizeof (t)->text - (size_t)(t)->used, __VA_ARGS__))

// A kernel for `count` forms: one warp, whose lanes have the operands of a form at 12 bytes each, and leave d, which
// is c before, at 4 bytes each.
static inline void video_kernel(VideoText *t, const VideoForm *forms, int count) {
  t->used = 0;
  VIDEO_PRINT(t, ".version 8.7\n.target sm_90a\n.address_size 64\n"
                 ".visible .entry video(.param .u64 in, .param .u64 out) .reqntid %d, 1, 1 {\n"
                 ".reg .b32 a, b, c, d, lane;\n.reg .b64 p, q, x;\nmov.u32 lane, %%tid.x;\n"
                 "ld.param.u64 p, [in];\nmul.wide.u32 x, lane, 12;\nadd.u64 p, p, x;\n"
                 "ld.param.u64 q, [out];\nmul.wide.u32 x, lane, 4;\nadd.u64 q, q, x;\n", VIDEO_LANES);
  for (int i = 0; i < count; i++)
    VIDEO_PRINT(t, "ld.global.b32 a, [p+%d]; ld.global.b32 b, [p+%d]; ld.global.b32 c, [p+%d]; mov.b32 d, c;\n"
                   "%s;\nst.global.b32 [q+%d], d;\n", i * VIDEO_LANES * 12, i * VIDEO_LANES * 12 + 4,
                i * VIDEO_LANES * 12 + 8, forms[i].text, i * VIDEO_LANES * 4);
  VIDEO_PRINT(t, "ret;\n}\n");
}
