// Products and sums that ptxas fuses, and those that it does not (common/emulator/scalar/contraction.h). record_contraction.cu
// records them on a GPU, and test_contraction.c runs them on the emulator.
//
// A form is a pattern and a type. The pattern's text has no rounding modifiers; its meaning says the same with them, so that
// there is nothing to fuse. A kernel computes y and z of a, b, c, d and e; x, u, v, w are free, and P holds in odd lanes.
#pragma once

#include <stdio.h>

#include "vectors.h"

enum { CONTRACTION_LANES = 32, CONTRACTION_OPERANDS = 5, CONTRACTION_WORDS = 2 };

typedef struct ContractionPattern {
  const char *text, *meaning;  // .T is the type, .B the type of its bits
  const char *types;           // of contraction_types, between spaces; NULL: all
} ContractionPattern;

static const char *const contraction_types[] = {"f32", "ftz.f32", "f64", "f16", "ftz.f16", "f16x2", "bf16", "bf16x2"};
enum { CONTRACTION_TYPES = sizeof contraction_types / sizeof *contraction_types };

// clang-format off
#define CONTRACTION_SCALARS " f32 ftz.f32 f64 f16 ftz.f16 bf16 "
#define CONTRACTION_PACKED " f16x2 bf16x2 "
#define CONTRACTION_SIGNS " f32 f64 f16 f16x2 bf16 "  // neg is an operand's sign

static const ContractionPattern contraction_patterns[] = {
  // One product, one sum.
  {"mul.T x,a,b; add.T y,x,c;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; add.T y,c,x;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; sub.T y,x,c;", "neg.T v,c; fma.rn.T y,a,b,v;", NULL},
  {"mul.T x,a,b; sub.T y,c,x;", "neg.T v,a; fma.rn.T y,v,b,c;", NULL},
  {"mul.T x,a,a; add.T y,x,a;", "fma.rn.T y,a,a,a;", NULL},
  {"mul.T x,a,b; mov.B u,x; mov.B v,u; add.T y,v,c;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; @P add.T y,x,c;", "@P fma.rn.T y,a,b,c;", NULL},
  {"mul.f32 x,a,0f40400000; add.f32 y,x,c;", "mov.b32 v,0f40400000; fma.rn.f32 y,a,v,c;", " f32 "},
  {"mul.f64 x,0d3FB999999999999A,a; sub.f64 y,x,0d3FB999999999999A;",
   "mov.f64 v,0d3FB999999999999A; mov.f64 w,0dBFB999999999999A; fma.rn.f64 y,v,a,w;", " f64 "},

  // The registers of the factors change.
  {"mul.T a,a,b; add.T y,a,c;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T b,a,b; add.T b,c,b; mov.B y,b;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; mov.B a,d; mov.B b,e; add.T y,x,c; add.T z,a,b;", "fma.rn.T y,a,b,c; add.rn.T z,d,e;", NULL},
  {"mul.T x,a,b; @P mov.B a,d; sub.T y,c,x; mov.B z,a;", "neg.T v,a; fma.rn.T y,v,b,c; mov.B z,a; @P mov.B z,d;", NULL},

  // neg
  {"mul.T x,a,b; neg.T v,x; add.T y,v,c;", "neg.T v,a; fma.rn.T y,v,b,c;", CONTRACTION_SIGNS},
  {"mul.T x,a,b; neg.T v,x; sub.T y,v,c;", "neg.T v,a; neg.T w,c; fma.rn.T y,v,b,w;", CONTRACTION_SIGNS},
  {"mul.T x,a,b; neg.T v,x; mov.B w,v; sub.T y,c,w;", "fma.rn.T y,a,b,c;", CONTRACTION_SIGNS},
  {"mul.T x,a,b; neg.T v,x; neg.T v,v; add.T y,v,c;", "fma.rn.T y,a,b,c;", CONTRACTION_SIGNS},
  {"mul.T x,a,b; neg.T v,x; add.T y,v,c; add.T z,x,d;", "neg.T v,a; fma.rn.T y,v,b,c; fma.rn.T z,a,b,d;",
   CONTRACTION_SIGNS " ftz.f32 "},
  {"mul.T x,a,b; neg.T z,x; add.T y,z,c;", "mul.rn.T x,a,b; neg.T z,x; add.rn.T y,z,c;",
   " f32 f64 f16 ftz.f16 f16x2 bf16 bf16x2 "},
  {"mul.T x,a,b; neg.T v,x; add.T y,v,c;", "neg.T v,a; fma.rn.T y,v,b,c;", " ftz.f32 "},
  {"mul.T x,a,b; neg.T v,x; sub.T y,v,c;", "neg.T v,a; neg.T w,c; fma.rn.T y,v,b,w;", " ftz.f32 "},
  {"mul.T x,a,b; neg.T z,x; add.T y,c,z;", "mul.rn.T z,a,b; neg.T z,z; neg.T v,a; fma.rn.T y,v,b,c;", " ftz.f32 "},
  {"mul.T x,a,b; neg.T v,x; sub.T y,c,v;", "mul.rn.T x,a,b; add.rn.T y,x,c;", " ftz.f32 "},
  {"mul.T x,a,b; neg.T v,x; neg.T v,v; add.T y,v,c;", "mul.rn.T x,a,b; add.rn.T y,x,c;", " ftz.f32 "},
  {"mul.T x,a,b; neg.T v,x; add.T y,v,c;", "mul.rn.T x,a,b; neg.T v,x; add.rn.T y,v,c;", " ftz.f16 bf16x2 "},
  {"mul.f32 x,a,b; neg.ftz.f32 v,x; add.f32 y,v,c;", "mul.rn.f32 x,a,b; neg.ftz.f32 v,x; add.rn.f32 y,v,c;", " f32 "},
  {"mul.T x,a,b; abs.T v,x; add.T y,v,c;", "mul.rn.T x,a,b; abs.T v,x; add.rn.T y,v,c;", NULL},

  // Modifiers
  {"mul.rn.T x,a,b; add.T y,x,c;", "mul.rn.T x,a,b; add.rn.T y,x,c;", NULL},
  {"mul.T x,a,b; add.rn.T y,x,c;", "mul.rn.T x,a,b; add.rn.T y,x,c;", NULL},
  {"mul.T x,a,b; sub.rn.T y,c,x;", "mul.rn.T x,a,b; sub.rn.T y,c,x;", NULL},
  {"mul.rz.T x,a,b; add.T y,x,c;", "mul.rz.T x,a,b; add.rn.T y,x,c;", " f32 f64 "},
  {"mul.T x,a,b; add.rz.T y,x,c;", "mul.rn.T x,a,b; add.rz.T y,x,c;", " f32 f64 "},
  {"mul.T x,a,b; add.sat.T y,x,c;", "fma.rn.sat.T y,a,b,c;", " f32 ftz.f32 f16 ftz.f16 f16x2 "},
  {"mul.T x,a,b; sub.sat.T y,c,x;", "neg.T v,a; fma.rn.sat.T y,v,b,c;", " f32 ftz.f32 f16 f16x2 "},
  {"mul.sat.T x,a,b; add.T y,x,c;", "mul.rn.sat.T x,a,b; add.rn.T y,x,c;", " f32 ftz.f32 f16 ftz.f16 f16x2 "},
  {"mul.ftz.T x,a,b; add.T y,x,c;", "mul.rn.ftz.T x,a,b; add.rn.T y,x,c;", " f32 f16 f16x2 "},
  {"mul.T x,a,b; add.ftz.T y,x,c;", "mul.rn.T x,a,b; add.rn.ftz.T y,x,c;", " f32 f16 f16x2 "},

  // Several uses of a product
  {"mul.T x,a,b; add.T y,x,c; sub.T z,d,x;", "fma.rn.T y,a,b,c; neg.T v,a; fma.rn.T z,v,b,d;", NULL},
  {"mul.T z,a,b; add.T y,z,c;", "mul.rn.T z,a,b; add.rn.T y,z,c;", NULL},
  {"mul.T x,a,b; mov.B z,x; add.T y,x,c;", "mul.rn.T z,a,b; add.rn.T y,z,c;", NULL},
  {"mul.T x,a,b; add.T y,x,c; mul.T z,x,d;", "mul.rn.T x,a,b; add.rn.T y,x,c; mul.rn.T z,x,d;", NULL},
  {"mul.T x,a,b; add.T y,x,c; add.rn.T z,x,d;", "mul.rn.T x,a,b; add.rn.T y,x,c; add.rn.T z,x,d;", NULL},
  {"mul.T x,a,b; fma.rn.T y,c,d,x; add.T z,x,e;", "mul.rn.T x,a,b; fma.rn.T y,c,d,x; add.rn.T z,x,e;", NULL},
  {"mul.T x,a,b; add.T y,x,x;", "mul.rn.T x,a,b; add.rn.T y,x,x;", NULL},
  {"mul.T x,a,b; add.T y,x,c; add.T z,x,x;", "mul.rn.T x,a,b; add.rn.T y,x,c; add.rn.T z,x,x;", NULL},
  {"mul.T x,a,b; mul.T u,x,d; add.T y,u,c;", "mul.rn.T x,a,b; fma.rn.T y,x,d,c;", NULL},
  {"mul.T x,a,b; add.T u,x,c; add.T y,u,d;", "fma.rn.T u,a,b,c; add.rn.T y,u,d;", NULL},

  // Two products in a sum
  {"mul.T x,a,b; mul.T w,c,d; add.T y,x,w;", "mul.rn.T w,c,d; fma.rn.T y,a,b,w;", NULL},
  {"mul.T x,a,b; mul.T w,c,d; add.T y,w,x;", "mul.rn.T x,a,b; fma.rn.T y,c,d,x;", NULL},
  {"mul.T x,a,b; mul.T w,c,d; sub.T y,x,w;", "mul.rn.T w,c,d; neg.T w,w; fma.rn.T y,a,b,w;", NULL},
  {"mul.T x,a,c; mul.T w,b,d; sub.T y,x,w; mul.T u,a,d; mul.T v,b,c; add.T z,u,v;",
   "mul.rn.T w,b,d; neg.T w,w; fma.rn.T y,a,c,w; mul.rn.T v,b,c; fma.rn.T z,a,d,v;", NULL},
  {"mul.T x,a,b; mul.T w,c,d; mul.T v,e,e; add.T u,x,w; add.T y,u,v;", "mul.rn.T w,c,d; fma.rn.T u,a,b,w; fma.rn.T y,e,e,u;",
   NULL},
  {"mul.T x,a,b; mul.T w,c,d; add.T y,x,w; add.T z,x,e;", "mul.rn.T x,a,b; fma.rn.T y,c,d,x; add.rn.T z,x,e;", NULL},
  {"mul.T x,a,b; mul.T w,c,d; add.T z,w,e; add.T y,x,w;", "mul.rn.T w,c,d; add.rn.T z,w,e; fma.rn.T y,a,b,w;",
   CONTRACTION_SCALARS},
  {"mul.T x,a,b; mul.T w,c,d; add.T z,w,e; add.T y,x,w;", "mul.rn.T w,c,d; fma.rn.T z,c,d,e; fma.rn.T y,a,b,w;",
   CONTRACTION_PACKED},
  {"mul.T x,a,b; mul.T w,c,d; add.T y,x,w; sub.T z,w,x;", "mul.rn.T w,c,d; fma.rn.T y,a,b,w; neg.T v,a; fma.rn.T z,v,b,w;",
   NULL},
  {"mul.T x,a,b; mul.T w,c,d; add.T u,w,e; add.T v,x,e; add.T y,x,w; mul.T z,u,v;",
   "mul.rn.T w,c,d; fma.rn.T u,c,d,e; fma.rn.T v,a,b,e; fma.rn.T y,a,b,w; mul.rn.T z,u,v;", NULL},
  {"mul.T x,a,b; mul.T w,c,d; add.T y,x,w; sub.T u,x,e; add.T v,x,c; sub.T z,w,e; mul.T u,u,v; mul.T z,z,u;",
   "mul.rn.T x,a,b; fma.rn.T y,c,d,x; sub.rn.T u,x,e; add.rn.T v,x,c; neg.T e,e; fma.rn.T z,c,d,e; mul.rn.T u,u,v; "
   "mul.rn.T z,z,u;", NULL},

  // Guards, and the life of a register
  {"mov.B x,d; @P mul.T x,a,b; add.T y,x,c;", "mov.B x,d; @P mul.rn.T x,a,b; add.rn.T y,x,c;", NULL},
  {"mul.T x,a,b; mov.B v,d; @P mov.B v,x; add.T y,v,c;", "mul.rn.T x,a,b; mov.B v,d; @P mov.B v,x; add.rn.T y,v,c;", NULL},
  {"mul.T x,a,b; add.T y,x,c; @P mov.B x,d; mov.B z,x;", "mul.rn.T x,a,b; add.rn.T y,x,c; @P mov.B x,d; mov.B z,x;", NULL},
  {"mul.T x,a,b; add.T y,x,c; mov.B x,d; mov.B z,x;", "fma.rn.T y,a,b,c; mov.B z,d;", NULL},

  // Basic blocks
  {"mul.T x,a,b; bra L; L: add.T y,x,c;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; bar.sync 0; L: add.T y,x,c;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; @P bra L; add.T y,x,c; L:", "mul.rn.T x,a,b; @!P add.rn.T y,x,c;", NULL},
  {"@P bra L; mul.T x,a,b; add.T y,x,c; L:", "@!P fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; @P bra L; mov.B z,d; L: add.T y,x,c;", "mul.rn.T x,a,b; @!P mov.B z,d; add.rn.T y,x,c;", NULL},
  {"mul.T x,a,b; add.T y,x,c; @P bra L; add.T z,x,d; bar.warp.sync 0x55555555; L:",
   "mul.rn.T x,a,b; add.rn.T y,x,c; @!P add.rn.T z,x,d;", NULL},
  {"mul.T x,a,b; @P nanosleep.u32 1; add.T y,x,c;", "mul.rn.T x,a,b; add.rn.T y,x,c;", NULL},
  {"mul.T x,a,b; nanosleep.u32 1; add.T y,x,c;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; membar.cta; add.T y,x,c;", "mul.rn.T x,a,b; add.rn.T y,x,c;", NULL},
  {"mul.T x,a,b; fence.acq_rel.gpu; add.T y,x,c;", "mul.rn.T x,a,b; add.rn.T y,x,c;", NULL},
  {"mul.T x,a,b; fence.proxy.async; add.T y,x,c;", "fma.rn.T y,a,b,c;", NULL},
  {"mul.T x,a,b; div.rn.T z,d,e; add.T y,x,c;", "mul.rn.T x,a,b; div.rn.T z,d,e; add.rn.T y,x,c;", " f32 ftz.f32 f64 "},
  {"mul.T x,a,b; rcp.rz.T z,d; add.T y,x,c;", "mul.rn.T x,a,b; rcp.rz.T z,d; add.rn.T y,x,c;", " f32 ftz.f32 f64 "},
  {"mul.T x,a,b; sqrt.rp.T z,d; add.T y,x,c;", "mul.rn.T x,a,b; sqrt.rp.T z,d; add.rn.T y,x,c;", " f32 ftz.f32 f64 "},
  {"mul.T x,a,b; rem.s32 i,lane,k; setp.gt.s32 P,i,2; add.T y,x,c; @P mov.B z,d;",
   "mul.rn.T x,a,b; rem.s32 i,lane,k; setp.gt.s32 P,i,2; add.rn.T y,x,c; @P mov.B z,d;", " f32 f16x2 "},
  {"mul.T x,a,b; rem.u32 i,lane,k; setp.gt.u32 P,i,2; add.T y,x,c; @P mov.B z,d;",
   "rem.u32 i,lane,k; setp.gt.u32 P,i,2; fma.rn.T y,a,b,c; @P mov.B z,d;", " f32 f16x2 "},
  {"mov.B y,c; L: mul.T x,a,b; add.T y,x,y; bar.warp.sync -1; sub.u32 k,k,1; setp.ne.u32 P,k,0; @P bra L;",
   "mov.B y,c; L: fma.rn.T y,a,b,y; bar.warp.sync -1; sub.u32 k,k,1; setp.ne.u32 P,k,0; @P bra L;", NULL},
  {"mov.B y,c; mul.T x,a,b; L: add.T y,x,y; bar.warp.sync -1; sub.u32 k,k,1; setp.ne.u32 P,k,0; @P bra L;",
   "mov.B y,c; mul.rn.T x,a,b; L: add.rn.T y,x,y; bar.warp.sync -1; sub.u32 k,k,1; setp.ne.u32 P,k,0; @P bra L;", NULL},
};
// clang-format on

enum { CONTRACTION_PATTERNS = sizeof contraction_patterns / sizeof *contraction_patterns };
enum { CONTRACTION_MOST_FORMS = CONTRACTION_PATTERNS * CONTRACTION_TYPES };

typedef struct ContractionForm {
  const ContractionPattern *pattern;
  const char *type;
  int bits, width;  // of its registers, and of the numbers in them
} ContractionForm;

static inline int contraction_has_type(const ContractionPattern *pattern, const char *type) {
  char word[16];
  snprintf(word, sizeof word, " %s ", type);
  return !pattern->types || strstr(pattern->types, word);
}

// All forms; returns how many.
static inline int contraction_forms(ContractionForm *forms) {
  int count = 0;
  for (int i = 0; i < CONTRACTION_MOST_FORMS; i++) {
    const ContractionPattern *pattern = &contraction_patterns[i / CONTRACTION_TYPES];
    const char *type = contraction_types[i % CONTRACTION_TYPES];
    if (!contraction_has_type(pattern, type)) continue;
    int width = strstr(type, "64") ? 64 : strstr(type, "32") ? 32 : 16;
    ContractionForm form = {pattern, type, strstr(type, "x2") ? 32 : width, width};
    forms[count++] = form;
  }
  return count;
}

// ---- operands: 8 bytes each, of which the type takes the low ones ----

// A number like an f32, in double.
static inline uint64_t contraction_f64(uint32_t f32, uint32_t more) {
  uint64_t sign = (uint64_t)(f32 >> 31) << 63, field = f32 >> 23 & 255, fraction = (uint64_t)(f32 & 0x7fffff) << 29;
  if (!field) return sign | fraction;
  return sign | (field == 255 ? 2047 : field - 127 + 1023) << 52 | fraction | (field == 255 ? 0 : more >> 3);
}

// Mostly numbers of one size, whose sums depend on how their products are rounded. Some lanes have very large and very small
// ones, and some have one operand that is infinite, a NaN or zero.
static inline uint64_t contraction_number(const ContractionForm *form, int number, int lane, int operand) {
  GoldenFormat format = form->width >= 32 ? GOLDEN_F32 : strstr(form->type, "bf16") ? GOLDEN_BF16 : GOLDEN_F16;
  uint32_t id = (uint32_t)number, place = (uint32_t)lane;
  uint32_t choice = golden_hash(40, id, place, 99), h = golden_hash(40, id, place, (uint32_t)operand);
  uint32_t fraction = golden_hash(41, id, place, (uint32_t)operand), low = golden_hash(42, id, place, (uint32_t)operand);
  int exponent = golden_between(h, 0, -1, 1) - (lane & 2);
  if (lane % 8 == 6) exponent += (h >> 16 & 1 ? 1 : -1) * (golden_bias(format) / 2);
  if (lane % 8 == 7 && operand == (int)(choice % CONTRACTION_OPERANDS))
    return format == GOLDEN_F32 && form->width == 64 ? contraction_f64(golden_special(format, choice >> 8 & 15), low)
                                                     : golden_special(format, choice >> 8 & 15);
  uint32_t encoded = golden_encode(format, h >> 31, exponent, fraction);
  return form->width == 64 ? contraction_f64(encoded, low) : encoded;
}

static inline uint64_t contraction_operand(const ContractionForm *form, int number, int lane, int operand) {
  uint64_t low = contraction_number(form, number, lane, operand);
  return form->bits == form->width ? low : low | contraction_number(form, number, lane + 32, operand) << 16;
}

static inline void contraction_operands(const ContractionForm *form, int number, uint64_t *operands) {
  for (int i = 0; i < CONTRACTION_LANES * CONTRACTION_OPERANDS; i++)
    operands[i] = contraction_operand(form, number, i / CONTRACTION_OPERANDS, i % CONTRACTION_OPERANDS);
}

// ---- the file ----

// The results follow: two words of each lane of the first form, of the second, and so on.
typedef struct ContractionRecord {
  char magic[8];  // "HLCONT1"
  uint32_t forms, lanes;
  uint64_t input_hash;  // of all texts and operands
} ContractionRecord;

static inline uint64_t contraction_hash(const ContractionForm *forms, int count) {
  uint64_t operands[CONTRACTION_LANES * CONTRACTION_OPERANDS], hash = FNV1A_START;
  for (int i = 0; i < count; i++) {
    contraction_operands(&forms[i], i, operands);
    hash = fnv1a(hash, operands, sizeof operands);
    hash = fnv1a(hash, forms[i].pattern->text, strlen(forms[i].pattern->text));
    hash = fnv1a(hash, forms[i].type, strlen(forms[i].type));
  }
  return hash;
}

// ---- the kernel ----

typedef struct ContractionText {
  char text[1 << 13];
  int used;
} ContractionText;

#define CONTRACTION_PRINT(t, ...)                                                                                      \
  ((t)->used += snprintf((t)->text + (t)->used, sizeof(t)->text - (size_t)(t)->used, __VA_ARGS__))

// One warp, whose lanes have five operands at 8 bytes each, and leave two words of 8 bytes.
static inline void contraction_kernel(ContractionText *t, const ContractionForm *form, const char *body) {
  t->used = 0;
  CONTRACTION_PRINT(t,
                    ".version 8.7\n.target sm_90a\n.address_size 64\n"
                    ".visible .entry contraction(.param .u64 in, .param .u64 out) .reqntid %d, 1, 1 {\n"
                    ".reg .b32 lane, i, k;\n.reg .b64 p, q, o;\n.reg .pred P;\n.reg .b%d a, b, c, d, e, u, v, w, x, y, z;\n"
                    "mov.u32 lane, %%tid.x;\nand.b32 k, lane, 1;\nsetp.ne.u32 P, k, 0;\nadd.u32 k, lane, 3;\n"
                    "ld.param.u64 p, [in];\nmul.wide.u32 o, lane, %d;\nadd.u64 p, p, o;\n"
                    "ld.param.u64 q, [out];\nmul.wide.u32 o, lane, %d;\nadd.u64 q, q, o;\nmov.b%d y, 0;\nmov.b%d z, 0;\n",
                    CONTRACTION_LANES, form->bits, CONTRACTION_OPERANDS * 8, CONTRACTION_WORDS * 8, form->bits, form->bits);
  for (int i = 0; i < CONTRACTION_OPERANDS; i++)
    CONTRACTION_PRINT(t, "ld.global.b%d %c, [p+%d];\n", form->bits, "abcde"[i], i * 8);
  for (const char *at = body, *end = body + strlen(body); at < end; at++) {
    if (*at == '.' && at[1] == 'T' && at++)
      CONTRACTION_PRINT(t, ".%s", form->type);
    else if (*at == '.' && at[1] == 'B' && at++)
      CONTRACTION_PRINT(t, ".b%d", form->bits);
    else
      CONTRACTION_PRINT(t, "%c", *at);
  }
  CONTRACTION_PRINT(t, "\nst.global.b%d [q], y;\nst.global.b%d [q+8], z;\nret;\n}\n", form->bits, form->bits);
}
