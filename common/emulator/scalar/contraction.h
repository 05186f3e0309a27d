// Contraction: ptxas makes one fused multiply-add, rounded once, of a mul and an add or sub that have no rounding
// modifier. PTX ISA 9.7.3, add: "mul/add sequences with no rounding modifiers may be optimized to use
// fused-multiply-add instructions".
//
//   mul.f16 %rs3, %rs1, %rs2;     <- leaves nothing, if only sums read it
//   add.f16 %rs5, %rs3, %rs4;     <- %rs1 * %rs2 + %rs4
//
// Which pairs it fuses was found out with ptxas of CUDA 13.0, from -O1 on: for 6,000 random blocks of f32, f64, f16x2
// and bf16x2 these rules gave the same instructions as ptxas.
//
// - Product and sum are in one basic block, and have the same type and the same .ftz. A mul with .sat or @p stays.
// - Every use of the product is the operand of such a sum, perhaps behind mov or neg. Otherwise none is fused.
// - Where both operands of a sum are products, one of them stays a product: it is an addend.
//
// What ptxas makes of a loop that it unrolls is not known here: a product and a sum of the next trip may come into one
// block.
#pragma once

#include "../warp/decoder.h"

// Called after a program is decoded: makes fma of the sums that ptxas fuses.
void contract_products(Decoder *decoder);

// Whether it is a product that only such sums read: its register stays as it was.
bool contraction_left_nothing(const Inst *mul);

// float.c and half.c: makes the fma of an add or a sub of their types, with its .ftz and .sat; its operands stay.
void float_fuse(Inst *sum);
void half_fuse(Decoder *decoder, Inst *sum);
