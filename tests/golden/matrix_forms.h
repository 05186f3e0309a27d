// The matrix instructions beyond fp16 and bf16, which record_matrices.cu records on an H200 and test_matrix_golden.c
// runs on the emulator: what each is called, its inputs, and a PTX kernel around it. Both sides run the same PTX on the
// same bytes, so that layouts of registers, of metadata and of shared memory are compared as well as arithmetic.
//
// A form is the instruction's text as far as its operands, and after a space what the operands are: "selector 1" (of
// sparse metadata), "registers" (A of wgmma), "-A", "-B", "n-major" (B of wgmma).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_FP8(FORM, HEAD, D, TAIL)                                                                                \
  FORM(HEAD "." D ".e4m3.e4m3" TAIL)                                                                                   \
  FORM(HEAD "." D ".e4m3.e5m2" TAIL)                                                                                   \
  FORM(HEAD "." D ".e5m2.e4m3" TAIL)                                                                                   \
  FORM(HEAD "." D ".e5m2.e5m2" TAIL)
#define MATRIX_INTEGERS(FORM, HEAD, BITS, TAIL)                                                                        \
  FORM(HEAD ".s32.s" BITS ".s" BITS TAIL)                                                                              \
  FORM(HEAD ".s32.s" BITS ".u" BITS TAIL)                                                                              \
  FORM(HEAD ".satfinite.s32.u" BITS ".s" BITS TAIL)                                                                    \
  FORM(HEAD ".satfinite.s32.u" BITS ".u" BITS TAIL)                                                                    \
  FORM(HEAD ".satfinite.s32.s" BITS ".s" BITS TAIL)
#define MATRIX_BITS(FORM, HEAD) FORM(HEAD ".s32.b1.b1.s32.xor.popc") FORM(HEAD ".s32.b1.b1.s32.and.popc")
#define MATRIX_DOUBLES(FORM, HEAD)                                                                                     \
  FORM(HEAD ".f64.f64.f64.f64")                                                                                        \
  FORM(HEAD ".rz.f64.f64.f64.f64") FORM(HEAD ".rm.f64.f64.f64.f64") FORM(HEAD ".rp.f64.f64.f64.f64")
#define MATRIX_SPARSE_HALVES(FORM, HEAD, TAIL)                                                                         \
  FORM(HEAD ".f32.f16.f16.f32" TAIL) FORM(HEAD ".f16.f16.f16.f16" TAIL) FORM(HEAD ".f32.bf16.bf16.f32" TAIL)
#define MATRIX_WGMMA(FORM, TYPES)                                                                                      \
  FORM("wgmma.mma_async.sync.aligned.m64n16" TYPES) FORM("wgmma.mma_async.sync.aligned.m64n16" TYPES " registers")
#define MATRIX_WGMMA_SPARSE(FORM, TYPES, OPTIONS)                                                                      \
  FORM("wgmma.mma_async.sp.sync.aligned.m64n16" TYPES OPTIONS)                                                         \
  FORM("wgmma.mma_async.sp.sync.aligned.m64n16" TYPES " registers" OPTIONS)
#define MATRIX_WGMMA_INTEGERS(FORM, TYPES)                                                                             \
  MATRIX_WGMMA(FORM, "k32.s32." TYPES)                                                                                 \
  MATRIX_WGMMA(FORM, "k32.satfinite.s32." TYPES) MATRIX_WGMMA_SPARSE(FORM, "k64.satfinite.s32." TYPES, "")
#define MATRIX_WGMMA_FP8(FORM, TYPES)                                                                                  \
  MATRIX_WGMMA(FORM, "k32.f32." TYPES)                                                                                 \
  MATRIX_WGMMA(FORM, "k32.f16." TYPES)                                                                                 \
  MATRIX_WGMMA_SPARSE(FORM, "k64.f32." TYPES, "") MATRIX_WGMMA_SPARSE(FORM, "k64.f16." TYPES, "")
#define MMA "mma.sync.aligned."
#define MMA_SP "mma.sp::ordered_metadata.sync.aligned."
#define WGMMA "wgmma.mma_async.sync.aligned.m64n16"
#define WGMMA_SP "wgmma.mma_async.sp.sync.aligned.m64n16"
#define WMMA "wmma.mma.sync.aligned."
#define WMMA_INTEGERS(FORM, SHAPE)                                                                                     \
  FORM(WMMA "row.col." SHAPE ".s32.s8.s8.s32") FORM(WMMA "col.row." SHAPE ".s32.u8.u8.s32.satfinite")

// clang-format off
#define MATRIX_FORMS(FORM)                                                                                             \
  MATRIX_FP8(FORM, MMA "m16n8k16.row.col", "f32", ".f32") MATRIX_FP8(FORM, MMA "m16n8k16.row.col", "f16", ".f16")      \
  MATRIX_FP8(FORM, MMA "m16n8k32.row.col", "f32", ".f32") MATRIX_FP8(FORM, MMA "m16n8k32.row.col", "f16", ".f16")      \
  MATRIX_FP8(FORM, MMA_SP "m16n8k64.row.col", "f32", ".f32 selector 0")                                                \
  FORM(MMA "m16n8k4.row.col.f32.tf32.tf32.f32") FORM(MMA "m16n8k8.row.col.f32.tf32.tf32.f32")                          \
  FORM(MMA_SP "m16n8k8.row.col.f32.tf32.tf32.f32 selector 0")                                                          \
  FORM("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 selector 3")                                             \
  FORM(MMA_SP "m16n8k16.row.col.f32.tf32.tf32.f32 selector 0")                                                         \
  FORM(MMA_SP "m16n8k16.row.col.f32.tf32.tf32.f32 selector 1")                                                         \
  MATRIX_DOUBLES(FORM, MMA "m8n8k4.row.col") MATRIX_DOUBLES(FORM, MMA "m16n8k4.row.col")                               \
  MATRIX_DOUBLES(FORM, MMA "m16n8k8.row.col") MATRIX_DOUBLES(FORM, MMA "m16n8k16.row.col")                             \
  MATRIX_SPARSE_HALVES(FORM, MMA_SP "m16n8k16.row.col", " selector 2")                                                 \
  FORM("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 selector 3")                                              \
  MATRIX_SPARSE_HALVES(FORM, MMA_SP "m16n8k32.row.col", " selector 0")                                                 \
  FORM(MMA_SP "m16n8k32.row.col.f32.f16.f16.f32 selector 1")                                                           \
  MATRIX_INTEGERS(FORM, MMA "m8n8k16.row.col", "8", ".s32") MATRIX_INTEGERS(FORM, MMA "m16n8k16.row.col", "8", ".s32") \
  MATRIX_INTEGERS(FORM, MMA "m16n8k32.row.col", "8", ".s32") MATRIX_INTEGERS(FORM, MMA "m8n8k32.row.col", "4", ".s32") \
  MATRIX_INTEGERS(FORM, MMA "m16n8k32.row.col", "4", ".s32") MATRIX_INTEGERS(FORM, MMA "m16n8k64.row.col", "4", ".s32")\
  MATRIX_INTEGERS(FORM, MMA_SP "m16n8k32.row.col", "8", ".s32 selector 1")                                             \
  MATRIX_INTEGERS(FORM, MMA_SP "m16n8k64.row.col", "8", ".s32 selector 0")                                             \
  MATRIX_INTEGERS(FORM, MMA_SP "m16n8k64.row.col", "4", ".s32 selector 1")                                             \
  MATRIX_INTEGERS(FORM, MMA_SP "m16n8k128.row.col", "4", ".s32 selector 0")                                            \
  MATRIX_BITS(FORM, MMA "m8n8k128.row.col") MATRIX_BITS(FORM, MMA "m16n8k128.row.col")                                 \
  MATRIX_BITS(FORM, MMA "m16n8k256.row.col")                                                                           \
  MATRIX_WGMMA_FP8(FORM, "e4m3.e4m3") MATRIX_WGMMA_FP8(FORM, "e4m3.e5m2")                                              \
  MATRIX_WGMMA_FP8(FORM, "e5m2.e4m3") MATRIX_WGMMA_FP8(FORM, "e5m2.e5m2")                                              \
  FORM(WGMMA "k32.f32.e4m3.e4m3 -A") FORM(WGMMA "k32.f32.e4m3.e5m2 registers -B") FORM(WGMMA "k32.f16.e5m2.e5m2 -A")   \
  MATRIX_WGMMA(FORM, "k8.f32.tf32.tf32") FORM(WGMMA "k8.f32.tf32.tf32 -A") FORM(WGMMA "k8.f32.tf32.tf32 -B")           \
  MATRIX_WGMMA_SPARSE(FORM, "k16.f32.tf32.tf32", "") MATRIX_WGMMA_SPARSE(FORM, "k16.f32.tf32.tf32", " selector 1")     \
  MATRIX_WGMMA_SPARSE(FORM, "k32.f32.f16.f16", "") MATRIX_WGMMA_SPARSE(FORM, "k32.f32.f16.f16", " selector 1")         \
  MATRIX_WGMMA_SPARSE(FORM, "k32.f16.f16.f16", " n-major") MATRIX_WGMMA_SPARSE(FORM, "k32.f32.bf16.bf16", " n-major")  \
  FORM(WGMMA_SP "k32.f32.f16.f16 -A")                                                                                  \
  MATRIX_WGMMA_INTEGERS(FORM, "s8.s8") MATRIX_WGMMA_INTEGERS(FORM, "s8.u8") MATRIX_WGMMA_INTEGERS(FORM, "u8.s8")       \
  MATRIX_WGMMA_INTEGERS(FORM, "u8.u8") MATRIX_WGMMA(FORM, "k256.s32.b1.b1.and.popc")                                   \
  FORM(WMMA "row.col.m16n16k8.f32.tf32.tf32.f32") FORM(WMMA "col.row.m16n16k8.f32.tf32.tf32.f32")                      \
  FORM(WMMA "row.row.m8n8k4.f64.f64.f64.f64") FORM(WMMA "col.col.m8n8k4.rz.f64.f64.f64.f64")                           \
  WMMA_INTEGERS(FORM, "m16n16k16") WMMA_INTEGERS(FORM, "m32n8k16") WMMA_INTEGERS(FORM, "m8n32k16")                     \
  FORM(WMMA "row.col.m8n8k32.s32.s4.s4.s32") FORM(WMMA "row.col.m8n8k32.s32.u4.u4.s32.satfinite")                      \
  FORM("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32")                                                \
  FORM("wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32")
// clang-format on

// ---- what a form is ----

typedef enum MatrixType { E4M3, E5M2, F16, BF16, TF32, F32, F64, S4, U4, S8, U8, B1, S32, MATRIX_TYPES } MatrixType;

// Bits of an element; of numbers, those of the fraction and of the exponent.
typedef struct MatrixNumber {
  const char *name;
  int bits, fraction, exponent;
} MatrixNumber;

static const MatrixNumber matrix_numbers[MATRIX_TYPES] = {
    {"e4m3", 8, 3, 4},   {"e5m2", 8, 2, 5},    {"f16", 16, 10, 5}, {"bf16", 16, 7, 8}, {"tf32", 32, 23, 8},
    {"f32", 32, 23, 8},  {"f64", 64, 52, 11},  {"s4", 4, 0, 0},    {"u4", 4, 0, 0},    {"s8", 8, 0, 0},
    {"u8", 8, 0, 0},     {"b1", 1, 0, 0},      {"s32", 32, 0, 0},
};

enum { MATRIX_MAX_M = 64, MATRIX_MAX_N = 32, MATRIX_MAX_K = 256, MATRIX_MAX_IMAGE = 4096, MATRIX_MAX_REGISTERS = 24 };

typedef struct MatrixForm {
  char text[96];  // the instruction
  bool wgmma, sparse, a_in_registers, negate_a, negate_b, n_major;
  bool wmma, a_across, b_across;  // layouts that are not .row.col
  int m, n, k, selector;
  MatrixType d, a, b;
  int threads;
  int d_registers, a_registers, b_registers;  // of register_bits each, in a thread; wgmma's B has none
  int register_bits;
  int image_a, image_b;                       // bytes in shared memory of wgmma's A and B
  int block_in, block_out;                    // bytes of a tile's inputs, results
} MatrixForm;

static inline bool matrix_option(const char *name, const char *option) {
  const char *space = strchr(name, ' ');
  return space && strstr(space, option);
}

static inline MatrixForm matrix_form(const char *name) {
  MatrixForm form;
  char copy[128];
  MatrixType types[4] = {S32, S32, S32, S32};
  int count = 0;
  memset(&form, 0, sizeof form);
  snprintf(form.text, sizeof form.text, "%.*s", (int)strcspn(name, " "), name);
  form.wgmma = !strncmp(form.text, "wgmma", 5);
  form.wmma = !strncmp(form.text, "wmma", 4);
  form.a_across = strstr(form.text, ".col.") && (!strstr(form.text, ".row.") || strstr(form.text, ".col.row."));
  form.b_across = strstr(form.text, ".row.") && (!strstr(form.text, ".col.") || strstr(form.text, ".col.row."));
  form.sparse = strstr(form.text, ".sp") != NULL;
  form.a_in_registers = !form.wgmma || matrix_option(name, "registers");
  form.negate_a = matrix_option(name, "-A");
  form.negate_b = matrix_option(name, "-B");
  form.n_major = matrix_option(name, "n-major");
  if (matrix_option(name, "selector")) form.selector = atoi(strstr(name, "selector ") + 9);
  strcpy(copy, form.text);
  for (char *part = strtok(copy, "."); part; part = strtok(NULL, ".")) {
    sscanf(part, "m%dn%dk%d", &form.m, &form.n, &form.k);
    for (int t = 0; t < MATRIX_TYPES; t++)
      if (!strcmp(part, matrix_numbers[t].name) && count < 4) types[count++] = (MatrixType)t;
  }
  form.d = types[0], form.a = types[1], form.b = types[2];
  form.threads = form.wgmma ? 128 : 32;
  form.register_bits = form.a == F64 ? 64 : 32;
  int lane_bits = form.threads * form.register_bits;
  int a_bits = form.m * form.k * matrix_numbers[form.a].bits / (form.sparse ? 2 : 1);
  int b_bits = form.n * form.k * matrix_numbers[form.b].bits;
  form.d_registers = form.m * form.n * matrix_numbers[form.d].bits / lane_bits;
  if (form.a_in_registers) form.a_registers = a_bits / lane_bits;
  if (!form.wgmma) form.b_registers = b_bits / lane_bits;
  form.image_a = form.wgmma && !form.a_in_registers ? a_bits / 8 : 0;
  form.image_b = form.wgmma ? b_bits / 8 : 0;
  form.block_out = form.threads * form.d_registers * form.register_bits / 8;
  form.block_in = form.image_a + form.image_b + form.block_out +
                  form.threads * (form.a_registers + form.b_registers) * form.register_bits / 8 +
                  (form.sparse ? form.threads * 4 : 0);
  if (form.wmma) {  // matrices in memory; the registers of D, A, B and C, and the matrix D
    form.block_in = (a_bits + b_bits) / 8 + form.block_out;
    form.block_out = 3 * form.block_out + form.threads * (form.a_registers + form.b_registers) * form.register_bits / 8;
  }
  return form;
}

// ---- the kernel ----

typedef struct MatrixText {
  char text[16384];
  int used;
} MatrixText;

#define MATRIX_PRINT(t, ...) ((t)->used += snprintf((t)->text + (t)->used, sizeof (t)->text - (size_t)(t)->used, __VA_ARGS__))

static inline void matrix_list(MatrixText *t, char name, int count) {
  for (int i = 0; i < count; i++) MATRIX_PRINT(t, "%s%c%d", i ? ", " : "{", name, i);
  MATRIX_PRINT(t, "}");
}

// Register i of thread t is word i * threads + t, from the address in `from` on, which moves behind them.
static inline void matrix_move(MatrixText *t, const MatrixForm *f, bool load, char name, int count, const char *base) {
  int bytes = f->register_bits / 8;
  for (int i = 0; i < count; i++)
    if (load)
      MATRIX_PRINT(t, "ld.global.b%d %c%d, [%s+%d];\n", f->register_bits, name, i, base, i * f->threads * bytes);
    else
      MATRIX_PRINT(t, "st.global.b%d [%s+%d], %c%d;\n", f->register_bits, base, i * f->threads * bytes, name, i);
  MATRIX_PRINT(t, "add.u64 %s, %s, %d;\n", base, base, count * f->threads * bytes);
}

// wgmma's operands: a copy of the image in shared memory, K-major without swizzle, B from byte MATRIX_MAX_IMAGE on.
static inline void matrix_image(MatrixText *t, const MatrixForm *f) {
  int b_row = f->k * matrix_numbers[f->b].bits / 8;  // bytes along K
  MATRIX_PRINT(t, "mov.u32 s, image; mov.u32 w, %%tid.x; shl.b32 w, w, 2; add.u32 s, s, w; cvt.u64.u32 x, w; add.u64 x, x, p;\n");
  for (int i = 0; i < f->image_a + f->image_b; i += 512) {
    int at = i < f->image_a ? i : i - f->image_a + MATRIX_MAX_IMAGE;
    MATRIX_PRINT(t, "ld.global.b32 w, [x+%d]; st.shared.b32 [s+%d], w;\n", i, at);
  }
  MATRIX_PRINT(t, "add.u64 p, p, %d;\nfence.proxy.async;\nbar.sync 0;\n", f->image_a + f->image_b);
  MATRIX_PRINT(t, "mov.u32 s, image; shr.u32 s, s, 4; cvt.u64.u32 x, s; or.b64 da, x, %llu; add.u64 x, x, %d;\n",
               128ull >> 4 << 16 | 256ull >> 4 << 32, MATRIX_MAX_IMAGE >> 4);
  // n-major: groups of 8 along K 128 bytes apart, groups of 8 along N all of K apart.
  MATRIX_PRINT(t, "or.b64 db, x, %llu;\n", 128ull >> 4 << 16 | (unsigned long long)(b_row / 16 * 128) >> 4 << 32);
}

static inline void matrix_wgmma(MatrixText *t, const MatrixForm *f) {
  MATRIX_PRINT(t, "wgmma.fence.sync.aligned;\n%s ", f->text);
  matrix_list(t, 'd', f->d_registers);
  MATRIX_PRINT(t, ", ");
  if (f->a_in_registers)
    matrix_list(t, 'a', f->a_registers);
  else
    MATRIX_PRINT(t, "da");
  MATRIX_PRINT(t, ", db");
  if (f->sparse) MATRIX_PRINT(t, ", e, %d", f->selector);
  MATRIX_PRINT(t, ", yes");
  if (f->d != S32) MATRIX_PRINT(t, ", %d, %d", f->negate_a ? -1 : 1, f->negate_b ? -1 : 1);
  if (f->a == F16 || f->a == BF16) MATRIX_PRINT(t, "%s, %d", f->a_in_registers ? "" : ", 0", f->n_major);
  MATRIX_PRINT(t, ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
}

static inline void matrix_mma(MatrixText *t, const MatrixForm *f) {
  MATRIX_PRINT(t, "%s ", f->text);
  matrix_list(t, 'd', f->d_registers);
  MATRIX_PRINT(t, ", ");
  matrix_list(t, 'a', f->a_registers);
  MATRIX_PRINT(t, ", ");
  matrix_list(t, 'b', f->b_registers);
  MATRIX_PRINT(t, ", ");
  matrix_list(t, 'd', f->d_registers);
  if (f->sparse) MATRIX_PRINT(t, ", e, 0x%x", f->selector);
  MATRIX_PRINT(t, ";\n");
}

// wmma: A, B and C from memory; afterwards all registers, and D, go to memory.
static inline void matrix_wmma(MatrixText *t, const MatrixForm *f) {
  char shape[16];
  const char *layouts[] = {f->a_across ? "col" : "row", f->b_across ? "row" : "col", "row"};
  MatrixType types[] = {f->a, f->b, f->d};
  int counts[] = {f->a_registers, f->b_registers, f->d_registers};
  int bytes[] = {f->m * f->k * matrix_numbers[f->a].bits / 8, f->k * f->n * matrix_numbers[f->b].bits / 8};
  snprintf(shape, sizeof shape, "m%dn%dk%d", f->m, f->n, f->k);
  for (int i = 0; i < 3; i++) {
    MATRIX_PRINT(t, "wmma.load.%c.sync.aligned.%s.%s.global.%s ", 'a' + i, layouts[i], shape, matrix_numbers[types[i]].name);
    matrix_list(t, (char)('a' + i), counts[i]);
    MATRIX_PRINT(t, ", [p];\n");
    if (i < 2) MATRIX_PRINT(t, "add.u64 p, p, %d;\n", bytes[i]);
  }
  MATRIX_PRINT(t, "%s ", f->text);
  matrix_list(t, 'd', counts[2]);
  for (int i = 0; i < 3; i++) {
    MATRIX_PRINT(t, ", ");
    matrix_list(t, (char)('a' + i), counts[i]);
  }
  MATRIX_PRINT(t, ";\nwmma.store.d.sync.aligned.row.%s.global.%s [q], ", shape, matrix_numbers[f->d].name);
  matrix_list(t, 'd', counts[2]);
  MATRIX_PRINT(t, ";\nadd.u64 q, q, %d;\nmov.u32 w, %%tid.x;\nmul.wide.u32 x, w, %d;\nadd.u64 q, q, x;\n",
               f->m * f->n * matrix_numbers[f->d].bits / 8, f->register_bits / 8);
  matrix_move(t, f, false, 'd', counts[2], "q");
  matrix_move(t, f, false, 'a', counts[0], "q");
  matrix_move(t, f, false, 'b', counts[1], "q");
  matrix_move(t, f, false, 'c', counts[2], "q");
  MATRIX_PRINT(t, "ret;\n}\n");
}

// A block takes tile number %ctaid.x.
static inline void matrix_kernel(const MatrixForm *f, MatrixText *t) {
  t->used = 0;
  MATRIX_PRINT(t, ".version 8.7\n.target sm_90a\n.address_size 64\n"
                  ".visible .entry matrix(.param .u64 in, .param .u64 out) .reqntid %d, 1, 1 {\n"
                  ".reg .b%d d<%d>, a<%d>, b<%d>, c<%d>;\n.reg .b32 e, s, w;\n.reg .b64 p, q, x, da, db;\n.reg .pred yes;\n",
               f->threads, f->register_bits, MATRIX_MAX_REGISTERS, MATRIX_MAX_REGISTERS, MATRIX_MAX_REGISTERS,
               MATRIX_MAX_REGISTERS);
  if (f->wgmma) MATRIX_PRINT(t, ".shared .align 1024 .b8 image[%d];\n", 2 * MATRIX_MAX_IMAGE);
  MATRIX_PRINT(t, "setp.eq.u32 yes, 0, 0;\nmov.u32 w, %%ctaid.x;\nld.param.u64 p, [in];\nmul.wide.u32 x, w, %d;\n"
                  "add.u64 p, p, x;\nld.param.u64 q, [out];\nmul.wide.u32 x, w, %d;\nadd.u64 q, q, x;\n",
               f->block_in, f->block_out);
  if (f->wmma) {
    matrix_wmma(t, f);
    return;
  }
  if (f->wgmma) matrix_image(t, f);
  MATRIX_PRINT(t, "mov.u32 w, %%tid.x;\nmul.wide.u32 x, w, %d;\nadd.u64 q, q, x;\n", f->register_bits / 8);
  if (f->sparse)
    MATRIX_PRINT(t, "mul.wide.u32 x, w, 4; add.u64 x, x, p; ld.global.b32 e, [x]; add.u64 p, p, %d;\nmul.wide.u32 x, w, 4;\n",
                 f->threads * 4);
  MATRIX_PRINT(t, "add.u64 p, p, x;\n");
  matrix_move(t, f, true, 'd', f->d_registers, "p");
  matrix_move(t, f, true, 'a', f->a_registers, "p");
  matrix_move(t, f, true, 'b', f->b_registers, "p");
  if (f->wgmma)
    matrix_wgmma(t, f);
  else
    matrix_mma(t, f);
  matrix_move(t, f, false, 'd', f->d_registers, "q");
  MATRIX_PRINT(t, "ret;\n}\n");
}
