// The scalar instructions of the golden vectors and their inputs. Shared by the recorder and the tests.
//
// SCALARS(X) lists them as X(signature, instruction). The signature names the result and the operands, one letter each:
// F a float, H 16 bits (f16, bf16, 16-bit integers), R 32 bits (an integer, or two packed halves), L 64 bits. A file
// record keeps one result per input: 8 bytes for L, 4 for F and R, 2 for H.
#pragma once

#include "vectors.h"

#define SCALARS(X)                                                                                                     \
  X(FF, "ex2.approx.f32")                                                                                              \
  X(FF, "ex2.approx.ftz.f32") X(FF, "lg2.approx.f32") X(FF, "lg2.approx.ftz.f32") X(FF, "rcp.approx.f32")              \
      X(FF, "rcp.approx.ftz.f32") X(FF, "rcp.rn.f32") X(FF, "rcp.rn.ftz.f32") X(FF, "sqrt.approx.f32")                 \
          X(FF, "sqrt.approx.ftz.f32") X(FF, "sqrt.rn.f32") X(FF, "rsqrt.approx.f32") X(FF, "rsqrt.approx.ftz.f32")    \
              X(FF, "sin.approx.f32") X(FF, "sin.approx.ftz.f32") X(FF, "cos.approx.f32") X(FF, "cos.approx.ftz.f32")  \
                  X(FF, "tanh.approx.f32") X(FFF, "div.approx.f32") X(FFF, "div.approx.ftz.f32")                       \
                      X(FFF, "div.full.f32") X(FFF, "div.rn.f32") X(HH, "ex2.approx.f16") X(HH, "tanh.approx.f16")     \
                          X(HH, "ex2.approx.ftz.bf16") X(HH, "tanh.approx.bf16") X(RR, "ex2.approx.f16x2")             \
                              X(RR, "tanh.approx.f16x2") X(RR, "ex2.approx.ftz.bf16x2") CONVERSIONS(X) ARITHMETIC(X)

#define CONVERSIONS(X)                                                                                                 \
  X(HF, "cvt.rn.f16.f32")                                                                                              \
  X(HF, "cvt.rz.f16.f32") X(HF, "cvt.rn.ftz.f16.f32") X(HF, "cvt.rn.sat.f16.f32") X(HF, "cvt.rn.relu.f16.f32")         \
      X(HF, "cvt.rn.bf16.f32") X(HF, "cvt.rz.bf16.f32") X(HF, "cvt.rn.relu.bf16.f32") X(RFF, "cvt.rn.f16x2.f32")       \
          X(RFF, "cvt.rz.f16x2.f32") X(RFF, "cvt.rn.relu.f16x2.f32") X(RFF, "cvt.rn.bf16x2.f32")                       \
              X(RFF, "cvt.rz.bf16x2.f32") X(RFF, "cvt.rn.relu.bf16x2.f32") X(RF, "cvt.rna.tf32.f32")                   \
                  X(FH, "cvt.f32.f16") X(FH, "cvt.ftz.f32.f16") X(FH, "cvt.f32.bf16") X(FF, "cvt.rni.f32.f32")         \
                      X(FF, "cvt.rzi.f32.f32") X(FF, "cvt.rmi.f32.f32") X(FF, "cvt.rpi.f32.f32")                       \
                          X(FF, "cvt.sat.f32.f32") X(FF, "cvt.rni.ftz.f32.f32") X(FF, "cvt.ftz.f32.f32")               \
                              X(RF, "cvt.rni.s32.f32") X(RF, "cvt.rzi.s32.f32") X(RF, "cvt.rmi.s32.f32")               \
                                  X(RF, "cvt.rpi.s32.f32") X(RF, "cvt.rzi.ftz.s32.f32") X(RF, "cvt.rpi.ftz.s32.f32")   \
                                      X(RF, "cvt.rni.u32.f32") X(RF, "cvt.rzi.u32.f32") X(LF, "cvt.rzi.s64.f32")       \
                                          X(LF, "cvt.rzi.u64.f32") X(HF, "cvt.rzi.s16.f32") X(HF, "cvt.rzi.u16.f32")   \
                                              X(FR, "cvt.rn.f32.s32") X(FR, "cvt.rn.f32.u32") X(FR, "cvt.rz.f32.s32")  \
                                                  X(FR, "cvt.rp.f32.u32") X(HR, "cvt.rn.f16.s32")                      \
                                                      X(HR, "cvt.rn.f16.u32") X(HR, "cvt.rz.f16.u32")                  \
                                                          X(HH, "cvt.rn.f16.s16") X(RH, "cvt.rzi.s32.f16")             \
                                                              X(RH, "cvt.rni.u32.f16") X(HH, "cvt.rzi.s16.f16")        \
                                                                  X(HH, "cvt.rni.f16.f16") X(HH, "cvt.rmi.f16.f16")

#define ARITHMETIC(X)                                                                                                  \
  X(FFF, "add.f32")                                                                                                    \
  X(FFF, "add.ftz.f32") X(FFF, "add.rz.f32") X(FFF, "add.sat.f32") X(FFF, "sub.f32") X(FFF, "mul.f32")                 \
      X(FFF, "mul.ftz.f32") X(FFF, "mul.rz.f32") X(FFF, "mul.sat.f32") X(FFF, "min.f32") X(FFF, "max.f32")             \
          X(FFF, "min.NaN.f32") X(FFF, "max.NaN.f32") X(FFF, "min.ftz.f32") X(FFF, "max.ftz.f32")                      \
              X(FFF, "max.xorsign.abs.f32") X(FFF, "copysign.f32") X(FF, "abs.f32") X(FF, "neg.f32")                   \
                  X(FF, "abs.ftz.f32") X(FF, "neg.ftz.f32") X(FFFF, "fma.rn.f32") X(FFFF, "fma.rn.ftz.f32")            \
                      X(FFFF, "fma.rz.f32") X(FFFF, "fma.rn.sat.f32") X(FFFF, "fma.rm.f32") X(FFFF, "fma.rp.f32")      \
                          X(HHH, "add.f16") X(HHH, "add.ftz.f16") X(HHH, "sub.f16") X(HHH, "mul.f16")                  \
                              X(HHH, "add.sat.f16") X(HHH, "min.f16") X(HHH, "max.f16") X(HHH, "max.NaN.f16")          \
                                  X(HHH, "min.ftz.f16") X(HH, "abs.f16") X(HH, "neg.f16") X(HH, "abs.bf16")            \
                                      X(HH, "neg.bf16") X(HHHH, "fma.rn.f16") X(HHHH, "fma.rn.ftz.f16")                \
                                          X(HHHH, "fma.rn.sat.f16") X(HHHH, "fma.rn.relu.f16") X(HHHH, "fma.rn.bf16")  \
                                              X(HHHH, "fma.rn.relu.bf16") X(HHH, "add.bf16") X(HHH, "sub.bf16")        \
                                                  X(HHH, "mul.bf16") X(HHH, "min.bf16") X(HHH, "max.bf16")             \
                                                      X(HHH, "max.NaN.bf16") X(RRR, "add.f16x2") X(RRR, "mul.f16x2")   \
                                                          X(RRR, "max.f16x2") X(RRR, "min.NaN.f16x2")                  \
                                                              X(RRR, "add.bf16x2") X(RRR, "mul.bf16x2")                \
                                                                  X(RRR, "max.bf16x2") X(RRRR, "fma.rn.f16x2")         \
                                                                      X(RRRR, "fma.rn.bf16x2")                         \
                                                                          X(RRRR, "fma.rn.relu.bf16x2")

enum { SCALAR_INPUTS = 2048 };

// Inputs that edges meet at, as f32.
static const uint32_t scalar_edges_f32[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
    0x00800001, 0x00400000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x40000000, 0xc0000000,
    0x3f000000, 0xbf000000, 0x3fc00000, 0xbfc00000, 0x40200000, 0x7f7fffff, 0xff7fffff, 0x7f000000,
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0x7fc01234,
    0x7fa00000, 0x477fe000, 0x477fefff, 0x477ff000, 0x477ff001, 0xc77ff000, 0x38800000, 0x387fffff,
    0x387fe000, 0x33800000, 0x33000000, 0x33000001, 0x32ffffff, 0xb3000001, 0x4effffff, 0x4f000000,
    0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5effffff, 0x5f000000, 0x5f800000, 0xdf000000,
    0x46fffe00, 0x47000000, 0xc7000000, 0x477fff00, 0x7f7f8000, 0x7f7f7fff, 0x3f808000, 0x3f818000};
// And as 16 bits: f16 and bf16 edges together.
static const uint16_t scalar_edges_16[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3800, 0xb800, 0x3c01, 0x3bff,
    0x4000, 0xc000, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfc01, 0x7e00, 0xfe00, 0x7fff, 0xffff, 0x0080, 0x8080,
    0x007f, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffc0, 0x4400};
enum {
  EDGES_F32 = sizeof scalar_edges_f32 / sizeof *scalar_edges_f32,
  EDGES_16 = sizeof scalar_edges_16 / sizeof *scalar_edges_16,
};

// Operand number `operand` of input i, as f32 bits. The first quarter are edges against edges, the second all exponents
// with random fractions, the third moderate numbers (-128 to 128, where exponentials, sines and integers live), the
// last random with operands of close exponents.
static inline uint32_t scalar_input_f32(int i, int operand) {
  uint32_t h = golden_hash(7, 0, (uint32_t)i, (uint32_t)operand);
  if (i < EDGES_F32 && operand == 0) return scalar_edges_f32[i];
  if (i < SCALAR_INPUTS / 4) return scalar_edges_f32[h % EDGES_F32];
  if (i < SCALAR_INPUTS / 2) return operand ? h : (uint32_t)i << 23 ^ (h & 0x007fffff);
  uint32_t exponent = 127 + 7 - (i < SCALAR_INPUTS * 3 / 4 ? (uint32_t)golden_pick(h >> 8, 0, 20) : 0);
  if (i >= SCALAR_INPUTS * 3 / 4)
    exponent = (uint32_t)golden_between(golden_hash(8, 0, (uint32_t)i, 0), 0, 2, 250) + (h & 3);
  return (h & 0x80000000u) | exponent << 23 | (golden_hash(9, 0, (uint32_t)i, (uint32_t)operand) & 0x007fffff);
}

// As 16 bits: edges against edges, then random bits, half of them with close exponents.
static inline uint16_t scalar_input_16(int i, int operand) {
  uint32_t h = golden_hash(10, 0, (uint32_t)i, (uint32_t)operand);
  if (i < EDGES_16 && operand == 0) return scalar_edges_16[i];
  if (i < SCALAR_INPUTS / 4) return scalar_edges_16[h % EDGES_16];
  if (i < SCALAR_INPUTS / 2) return (uint16_t)h;
  uint32_t base = golden_hash(11, 0, (uint32_t)i, 0) & 0x7c00;
  return (uint16_t)((h & 0x83ff) | (base + (h >> 16 & 0x0400)));
}

// As 32 bits: two 16-bit inputs for packed types, integers of all magnitudes for conversions (letter 'R', packed or
// not).
static inline uint32_t scalar_input_r(int i, int operand, int packed) {
  if (packed) return scalar_input_16(i, operand) | (uint32_t)scalar_input_16((i + 1) % SCALAR_INPUTS, operand) << 16;
  uint32_t h = golden_hash(12, 0, (uint32_t)i, (uint32_t)operand);
  uint32_t magnitude = golden_hash(13, 0, (uint32_t)i, (uint32_t)operand) >> (i % 32);
  return i % 5 == 0 ? (1u << (h & 31)) - (h >> 8 & 1) : h & 0x80000000u ? 0u - magnitude : magnitude;
}

// An instruction with 16-bit input and one operand is recorded for all 65536.
static inline int scalar_is_exhaustive(const char *signature, const char *name) {
  return !strcmp(signature, "HH") && strstr(name, "approx");
}

static inline int scalar_result_size(const char *signature) {
  return signature[0] == 'L' ? 8 : signature[0] == 'H' ? 2 : 4;
}

typedef struct ScalarRecord {
  char magic[8];  // "HLSCAL1"
  char signature[8];
  char name[40];
  uint64_t input_hash;
  uint32_t inputs, result_size;
} ScalarRecord;

// The bits of one operand of one input, whatever the instruction.
static inline uint32_t scalar_input(const char *signature, const char *name, int i, int operand) {
  char letter = signature[1 + operand];
  if (scalar_is_exhaustive(signature, name)) return (uint32_t)i;
  if (letter == 'F') return scalar_input_f32(i, operand);
  if (letter == 'H') return scalar_input_16(i, operand);
  return scalar_input_r(i, operand, strstr(name, "x2") != 0);
}
