// Instructions that work lane by lane, for instructions.cu and its test: one line a family.
//
// U(result, a, text), B(result, a, b, text), T(result, a, b, c, text, rest): one, two, three operands, as letters:
// H 16 bits, R 32 bits, P two packed halves, L 64 bits, F an f32, D an f64. C(a, b, text): a comparison into a
// predicate. W(result, a, b, name, text): several PTX instructions, %0 of %1 and %2.
#pragma once

#include <stdint.h>

enum { INSTRUCTION_INPUTS = 2048, INSTRUCTION_THREADS = 128 };

enum { LETTER_H, LETTER_R, LETTER_P, LETTER_L, LETTER_F, LETTER_D, LETTERS };

typedef struct InstructionInput {
  uint64_t value[LETTERS][3][INSTRUCTION_INPUTS];
} InstructionInput;

// clang-format off
#define ROUNDED_U(U, O, A, op, type) U(O, A, op ".rn" type) U(O, A, op ".rz" type) U(O, A, op ".rm" type) U(O, A, op ".rp" type)
#define ROUNDED_B(B, O, op, type) B(O, O, O, op ".rn" type) B(O, O, O, op ".rz" type) B(O, O, O, op ".rm" type) B(O, O, O, op ".rp" type)
#define ROUNDED_T(T, O, op, type)                                                                                      \
  T(O, O, O, O, op ".rn" type, "") T(O, O, O, O, op ".rz" type, "") T(O, O, O, O, op ".rm" type, "") T(O, O, O, O, op ".rp" type, "")

// ---- integers ----

#define INTEGER(U, B, T, O, type)                                                                                      \
  B(O, O, O, "add." type) B(O, O, O, "sub." type) B(O, O, O, "mul.lo." type) B(O, O, O, "mul.hi." type)                \
  T(O, O, O, O, "mad.lo." type, "") T(O, O, O, O, "mad.hi." type, "") T(O, O, O, O, "sad." type, "")                   \
  B(O, O, O, "div." type) B(O, O, O, "rem." type) B(O, O, O, "min." type) B(O, O, O, "max." type)                      \
  B(O, O, R, "shr." type)
#define BITS(U, B, O, type)                                                                                            \
  B(O, O, O, "and." type) B(O, O, O, "or." type) B(O, O, O, "xor." type) U(O, O, "not." type) U(O, O, "cnot." type)    \
  B(O, O, R, "shl." type) B(O, O, R, "shr." type)
#define COUNTS(U, B, T, O, b, u, s)                                                                                    \
  U(R, O, "popc." b) U(R, O, "clz." b) U(O, O, "brev." b) U(R, O, "bfind." u) U(R, O, "bfind." s)                      \
  U(R, O, "bfind.shiftamt." u) U(R, O, "bfind.shiftamt." s) T(O, O, R, R, "bfe." u, "") T(O, O, R, R, "bfe." s, "")
#define INTEGERS(U, B, T, W)                                                                                           \
  INTEGER(U, B, T, H, "u16") INTEGER(U, B, T, H, "s16") INTEGER(U, B, T, R, "u32") INTEGER(U, B, T, R, "s32")          \
  INTEGER(U, B, T, L, "u64") INTEGER(U, B, T, L, "s64") BITS(U, B, H, "b16") BITS(U, B, R, "b32") BITS(U, B, L, "b64") \
  COUNTS(U, B, T, R, "b32", "u32", "s32") COUNTS(U, B, T, L, "b64", "u64", "s64")                                      \
  U(H, H, "abs.s16") U(R, R, "abs.s32") U(L, L, "abs.s64") U(H, H, "neg.s16") U(R, R, "neg.s32") U(L, L, "neg.s64")    \
  B(R, R, R, "add.sat.s32") B(R, R, R, "sub.sat.s32") T(R, R, R, R, "mad.hi.sat.s32", "")                              \
  B(R, H, H, "mul.wide.u16") B(R, H, H, "mul.wide.s16") B(L, R, R, "mul.wide.u32") B(L, R, R, "mul.wide.s32")          \
  T(R, H, H, R, "mad.wide.u16", "") T(R, H, H, R, "mad.wide.s16", "")                                                  \
  T(L, R, R, L, "mad.wide.u32", "") T(L, R, R, L, "mad.wide.s32", "")                                                  \
  B(R, R, R, "mul24.lo.u32") B(R, R, R, "mul24.hi.u32") B(R, R, R, "mul24.lo.s32") B(R, R, R, "mul24.hi.s32")          \
  T(R, R, R, R, "mad24.lo.u32", "") T(R, R, R, R, "mad24.hi.s32", "")                                                  \
  T(R, R, R, R, "shf.l.wrap.b32", "") T(R, R, R, R, "shf.l.clamp.b32", "")                                             \
  T(R, R, R, R, "shf.r.wrap.b32", "") T(R, R, R, R, "shf.r.clamp.b32", "")                                             \
  T(R, R, R, R, "prmt.b32", "") T(R, R, R, R, "prmt.b32.f4e", "") T(R, R, R, R, "prmt.b32.b4e", "")                    \
  T(R, R, R, R, "prmt.b32.rc8", "") T(R, R, R, R, "prmt.b32.ecl", "") T(R, R, R, R, "prmt.b32.ecr", "")                \
  T(R, R, R, R, "prmt.b32.rc16", "")                                                                                   \
  T(R, R, R, R, "lop3.b32", ", 0xca") T(R, R, R, R, "lop3.b32", ", 0x96") T(R, R, R, R, "lop3.b32", ", 0xe8")          \
  T(R, R, R, R, "lop3.b32", ", 0x01") T(R, R, R, R, "lop3.b32", ", 0x1b")                                              \
  T(R, R, R, R, "dp4a.u32.u32", "") T(R, R, R, R, "dp4a.s32.s32", "") T(R, R, R, R, "dp4a.u32.s32", "")                \
  T(R, R, R, R, "dp2a.lo.s32.s32", "") T(R, R, R, R, "dp2a.hi.u32.u32", "")                                            \
  W(R, R, R, "bfi.b32", "bfi.b32 %0, %1, %2, 5, 11;") W(L, L, L, "bfi.b64", "bfi.b64 %0, %1, %2, 60, 9;")              \
  W(R, R, R, "bfi.b32 by register", "{.reg .b32 x, y; and.b32 x, %2, 255; shr.u32 y, %2, 24; bfi.b32 %0, %1, %2, x, y;}") \
  W(R, R, R, "bmsk.clamp", "bmsk.clamp.b32 %0, %1, %2;") W(R, R, R, "bmsk.wrap", "bmsk.wrap.b32 %0, %1, %2;")          \
  W(R, R, R, "szext.clamp", "szext.clamp.s32 %0, %1, %2;") W(R, R, R, "szext.wrap", "szext.wrap.u32 %0, %1, %2;")      \
  W(R, R, R, "fns", "{.reg .b32 x; and.b32 x, %2, 15; fns.b32 %0, %1, x, 3;}")                                         \
  W(R, R, R, "add.cc", "{.reg .b32 x; add.cc.u32 x, %1, %2; addc.u32 %0, %2, x;}")                                     \
  W(R, R, R, "sub.cc", "{.reg .b32 x; sub.cc.u32 x, %1, %2; subc.u32 %0, %2, x;}")                                     \
  W(L, L, L, "add.cc.u64", "{.reg .b64 x; add.cc.u64 x, %1, %2; addc.u64 %0, %2, x;}")                                 \
  W(R, R, R, "mad.cc", "{.reg .b32 x; mad.lo.cc.u32 x, %1, %2, %1; madc.hi.u32 %0, %1, %2, x;}")                       \
  W(R, R, R, "slct.s32", "slct.b32.s32 %0, %1, %2, %1;") W(F, F, F, "slct.f32", "slct.f32.f32 %0, %1, %2, %1;")

// ---- floats ----

#define FLOATS_32(U, B, T)                                                                                             \
  ROUNDED_B(B, F, "add", ".f32") ROUNDED_B(B, F, "add", ".ftz.f32") ROUNDED_B(B, F, "add", ".sat.f32")                 \
  ROUNDED_B(B, F, "sub", ".f32") ROUNDED_B(B, F, "sub", ".ftz.f32") ROUNDED_B(B, F, "sub", ".ftz.sat.f32")             \
  ROUNDED_B(B, F, "mul", ".f32") ROUNDED_B(B, F, "mul", ".ftz.f32") ROUNDED_B(B, F, "mul", ".sat.f32")                 \
  ROUNDED_T(T, F, "fma", ".f32") ROUNDED_T(T, F, "fma", ".ftz.f32") ROUNDED_T(T, F, "fma", ".sat.f32")                 \
  ROUNDED_B(B, F, "div", ".f32") ROUNDED_B(B, F, "div", ".ftz.f32")                                                    \
  ROUNDED_U(U, F, F, "rcp", ".f32") ROUNDED_U(U, F, F, "rcp", ".ftz.f32")                                              \
  ROUNDED_U(U, F, F, "sqrt", ".f32") ROUNDED_U(U, F, F, "sqrt", ".ftz.f32")                                            \
  U(F, F, "abs.f32") U(F, F, "abs.ftz.f32") U(F, F, "neg.f32") U(F, F, "neg.ftz.f32") B(F, F, F, "copysign.f32")       \
  B(F, F, F, "min.f32") B(F, F, F, "min.ftz.f32") B(F, F, F, "min.NaN.f32") B(F, F, F, "min.xorsign.abs.f32")          \
  B(F, F, F, "max.f32") B(F, F, F, "max.ftz.f32") B(F, F, F, "max.NaN.f32") B(F, F, F, "max.ftz.NaN.xorsign.abs.f32")
#define APPROXIMATE(U, B)                                                                                              \
  U(F, F, "ex2.approx.f32") U(F, F, "ex2.approx.ftz.f32") U(F, F, "lg2.approx.f32") U(F, F, "lg2.approx.ftz.f32")      \
  U(F, F, "rcp.approx.f32") U(F, F, "rcp.approx.ftz.f32") U(F, F, "rsqrt.approx.f32") U(F, F, "rsqrt.approx.ftz.f32")  \
  U(F, F, "sqrt.approx.f32") U(F, F, "sqrt.approx.ftz.f32") U(F, F, "sin.approx.f32") U(F, F, "sin.approx.ftz.f32")    \
  U(F, F, "cos.approx.f32") U(F, F, "cos.approx.ftz.f32") U(F, F, "tanh.approx.f32")                                   \
  B(F, F, F, "div.approx.f32") B(F, F, F, "div.approx.ftz.f32") B(F, F, F, "div.full.f32") B(F, F, F, "div.full.ftz.f32") \
  U(H, H, "ex2.approx.f16") U(H, H, "tanh.approx.f16") U(H, H, "ex2.approx.ftz.bf16") U(H, H, "tanh.approx.bf16")      \
  U(P, P, "ex2.approx.f16x2") U(P, P, "tanh.approx.f16x2") U(P, P, "ex2.approx.ftz.bf16x2") U(P, P, "tanh.approx.bf16x2")
#define FLOATS_64(U, B, T)                                                                                             \
  ROUNDED_B(B, D, "add", ".f64") ROUNDED_B(B, D, "sub", ".f64") ROUNDED_B(B, D, "mul", ".f64")                         \
  ROUNDED_T(T, D, "fma", ".f64") B(D, D, D, "div.rn.f64") U(D, D, "rcp.rn.f64") U(D, D, "sqrt.rn.f64")                 \
  B(D, D, D, "min.f64") B(D, D, D, "max.f64") U(D, D, "abs.f64") U(D, D, "neg.f64") B(D, D, D, "copysign.f64")
#define HALVES(U, B, T, O, type, ftz)                                                                                  \
  B(O, O, O, "add" type) B(O, O, O, "sub" type) B(O, O, O, "mul" type) T(O, O, O, O, "fma.rn" type, "")                \
  T(O, O, O, O, "fma.rn.relu" type, "") U(O, O, "abs" type) U(O, O, "neg" type)                                        \
  B(O, O, O, "min" type) B(O, O, O, "max" type) B(O, O, O, "min.NaN" type) B(O, O, O, "max.NaN" type)                  \
  B(O, O, O, "min.xorsign.abs" type) B(O, O, O, "max.NaN.xorsign.abs" type)
#define HALVES_F16(U, B, T, O, type)                                                                                   \
  B(O, O, O, "add.ftz" type) B(O, O, O, "sub.sat" type) B(O, O, O, "mul.ftz.sat" type) B(O, O, O, "add.rn" type)       \
  T(O, O, O, O, "fma.rn.ftz" type, "") T(O, O, O, O, "fma.rn.sat" type, "") T(O, O, O, O, "fma.rn.ftz.relu" type, "")  \
  U(O, O, "abs.ftz" type) U(O, O, "neg.ftz" type) B(O, O, O, "min.ftz" type) B(O, O, O, "max.ftz.NaN" type)
#define FLOATS_16(U, B, T)                                                                                             \
  HALVES(U, B, T, H, ".f16", ) HALVES(U, B, T, P, ".f16x2", ) HALVES(U, B, T, H, ".bf16", ) HALVES(U, B, T, P, ".bf16x2", ) \
  HALVES_F16(U, B, T, H, ".f16") HALVES_F16(U, B, T, P, ".f16x2")

// ---- conversions ----

#define TO_INTEGERS(U, O, type)                                                                                        \
  TO_INTEGER(U, H, O, "u16." type) TO_INTEGER(U, H, O, "s16." type) TO_INTEGER(U, R, O, "u32." type)                   \
  TO_INTEGER(U, R, O, "s32." type) TO_INTEGER(U, L, O, "u64." type) TO_INTEGER(U, L, O, "s64." type)
#define TO_INTEGER(U, O, A, types) U(O, A, "cvt.rni." types) U(O, A, "cvt.rzi." types) U(O, A, "cvt.rmi." types) U(O, A, "cvt.rpi." types)
#define FROM_INTEGERS(U, O, type)                                                                                      \
  ROUNDED_U(U, O, H, "cvt", type ".u16") ROUNDED_U(U, O, H, "cvt", type ".s16") ROUNDED_U(U, O, R, "cvt", type ".u32") \
  ROUNDED_U(U, O, R, "cvt", type ".s32") ROUNDED_U(U, O, L, "cvt", type ".u64") ROUNDED_U(U, O, L, "cvt", type ".s64")
#define INTEGER_TO(U, A, type)                                                                                         \
  U(R, A, "cvt.u8." type) U(R, A, "cvt.s8." type) U(H, A, "cvt.u16." type) U(H, A, "cvt.s16." type)                    \
  U(R, A, "cvt.u32." type) U(R, A, "cvt.s32." type) U(L, A, "cvt.u64." type) U(L, A, "cvt.s64." type)
// .sat exists where the source has values that the result cannot hold.
#define SATURATED(U)                                                                                                   \
  U(R, H, "cvt.sat.u8.u16") U(R, H, "cvt.sat.s8.u16") U(H, H, "cvt.sat.s16.u16")                                       \
  U(R, H, "cvt.sat.u8.s16") U(R, H, "cvt.sat.s8.s16") U(H, H, "cvt.sat.u16.s16") U(R, H, "cvt.sat.u32.s16")            \
  U(L, H, "cvt.sat.u64.s16") U(R, R, "cvt.sat.u8.u32") U(R, R, "cvt.sat.s8.u32") U(H, R, "cvt.sat.u16.u32")            \
  U(H, R, "cvt.sat.s16.u32") U(R, R, "cvt.sat.s32.u32") U(R, R, "cvt.sat.u8.s32") U(R, R, "cvt.sat.s8.s32")            \
  U(H, R, "cvt.sat.u16.s32") U(H, R, "cvt.sat.s16.s32") U(R, R, "cvt.sat.u32.s32") U(L, R, "cvt.sat.u64.s32")          \
  U(R, L, "cvt.sat.u8.u64") U(R, L, "cvt.sat.s8.u64") U(H, L, "cvt.sat.u16.u64") U(H, L, "cvt.sat.s16.u64")            \
  U(R, L, "cvt.sat.u32.u64") U(R, L, "cvt.sat.s32.u64") U(L, L, "cvt.sat.s64.u64") U(R, L, "cvt.sat.u8.s64")           \
  U(R, L, "cvt.sat.s8.s64") U(H, L, "cvt.sat.u16.s64") U(H, L, "cvt.sat.s16.s64") U(R, L, "cvt.sat.u32.s64")           \
  U(R, L, "cvt.sat.s32.s64") U(L, L, "cvt.sat.u64.s64")
#define INTEGRAL(U, O, type) U(O, O, "cvt.rni." type) U(O, O, "cvt.rzi." type) U(O, O, "cvt.rmi." type) U(O, O, "cvt.rpi." type)
#define CONVERSIONS_ALL(U, B)                                                                                          \
  TO_INTEGERS(U, F, "f32") TO_INTEGERS(U, D, "f64") TO_INTEGERS(U, H, "f16") TO_INTEGERS(U, H, "bf16")                 \
  FROM_INTEGERS(U, F, ".f32") FROM_INTEGERS(U, D, ".f64") FROM_INTEGERS(U, H, ".f16") FROM_INTEGERS(U, H, ".bf16")     \
  INTEGER_TO(U, R, "u32") INTEGER_TO(U, R, "s32") INTEGER_TO(U, H, "u16") INTEGER_TO(U, H, "s16")                      \
  INTEGER_TO(U, L, "u64") INTEGER_TO(U, L, "s64") SATURATED(U)                                                         \
  INTEGRAL(U, F, "f32.f32") INTEGRAL(U, F, "ftz.f32.f32") INTEGRAL(U, D, "f64.f64") INTEGRAL(U, H, "f16.f16")          \
  ROUNDED_U(U, H, F, "cvt", ".f16.f32") ROUNDED_U(U, H, F, "cvt", ".ftz.f16.f32") ROUNDED_U(U, H, D, "cvt", ".f16.f64") \
  ROUNDED_U(U, F, D, "cvt", ".f32.f64") ROUNDED_U(U, F, D, "cvt", ".ftz.sat.f32.f64")                                  \
  U(H, F, "cvt.rn.bf16.f32") U(H, F, "cvt.rz.bf16.f32") U(H, F, "cvt.rn.relu.bf16.f32") U(H, F, "cvt.rz.relu.f16.f32") \
  U(H, F, "cvt.rn.sat.f16.f32") U(R, F, "cvt.rna.tf32.f32") U(R, F, "cvt.rn.tf32.f32") U(R, F, "cvt.rz.relu.tf32.f32") \
  B(P, F, F, "cvt.rn.f16x2.f32") B(P, F, F, "cvt.rz.f16x2.f32") B(P, F, F, "cvt.rn.relu.f16x2.f32")                    \
  B(P, F, F, "cvt.rn.bf16x2.f32") B(P, F, F, "cvt.rz.bf16x2.f32") B(P, F, F, "cvt.rz.relu.bf16x2.f32")                 \
  B(H, F, F, "cvt.rn.satfinite.e4m3x2.f32") B(H, F, F, "cvt.rn.satfinite.e5m2x2.f32")                                  \
  U(H, P, "cvt.rn.satfinite.e4m3x2.f16x2") U(H, P, "cvt.rn.satfinite.relu.e5m2x2.f16x2")                               \
  U(P, H, "cvt.rn.f16x2.e4m3x2") U(P, H, "cvt.rn.relu.f16x2.e5m2x2")                                                   \
  U(F, H, "cvt.f32.f16") U(F, H, "cvt.ftz.f32.f16") U(F, H, "cvt.f32.bf16") U(D, H, "cvt.f64.f16") U(D, F, "cvt.f64.f32") \
  U(D, F, "cvt.ftz.f64.f32") U(F, F, "cvt.sat.f32.f32") U(F, F, "cvt.ftz.f32.f32") U(F, F, "cvt.rni.sat.f32.f32")

// ---- comparisons ----

#define ORDER(C, A, type) C(A, A, "setp.eq." type) C(A, A, "setp.ne." type) C(A, A, "setp.lt." type) C(A, A, "setp.le." type) C(A, A, "setp.gt." type) C(A, A, "setp.ge." type)
#define ORDER_FLOAT(C, A, type)                                                                                        \
  ORDER(C, A, type) C(A, A, "setp.equ." type) C(A, A, "setp.neu." type) C(A, A, "setp.ltu." type) C(A, A, "setp.leu." type) \
  C(A, A, "setp.gtu." type) C(A, A, "setp.geu." type) C(A, A, "setp.num." type) C(A, A, "setp.nan." type)
#define COMPARISONS(B, C, W)                                                                                           \
  ORDER(C, H, "s16") ORDER(C, R, "s32") ORDER(C, L, "s64") ORDER(C, R, "u32") ORDER(C, L, "u64")                       \
  C(H, H, "setp.eq.b16") C(R, R, "setp.ne.b32") C(R, R, "setp.lo.u32") C(R, R, "setp.ls.u32") C(R, R, "setp.hi.u32")   \
  ORDER_FLOAT(C, F, "f32") ORDER_FLOAT(C, F, "ftz.f32") ORDER_FLOAT(C, D, "f64")                                       \
  ORDER_FLOAT(C, H, "f16") ORDER_FLOAT(C, H, "ftz.f16") ORDER_FLOAT(C, H, "bf16")                                      \
  B(R, F, F, "set.lt.u32.f32") B(F, F, F, "set.geu.ftz.f32.f32") B(R, R, R, "set.gt.s32.s32") B(F, R, R, "set.le.f32.u32") \
  B(P, P, P, "set.lt.f16x2.f16x2") B(P, P, P, "set.gtu.bf16x2.bf16x2")                                                 \
  TEST(W, "finite") TEST(W, "infinite") TEST(W, "number") TEST(W, "notanumber") TEST(W, "normal") TEST(W, "subnormal")
#define TEST(W, which) W(R, F, F, "testp." which, "{.reg .pred p; testp." which ".f32 p, %1; selp.b32 %0, 1, 0, p;}")

#define INSTRUCTIONS(U, B, T, C, W)                                                                                    \
  INTEGERS(U, B, T, W) FLOATS_32(U, B, T) FLOATS_64(U, B, T) FLOATS_16(U, B, T) CONVERSIONS_ALL(U, B)                  \
  COMPARISONS(B, C, W) APPROXIMATE(U, B)
// clang-format on
