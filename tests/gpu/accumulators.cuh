// The accumulators of wgmma by name, for every N: a statement of inline assembly cannot number 128 registers and what
// follows them, so they are PTX registers of the statement's own: d0a d0b d0c d0d for the first eight columns, d1a ...
// for the next.
#pragma once

// EACH_3(F, ", "): F(0) ", " F(1) ", " F(2)
#define EACH_1(F, S) F(0)
#define EACH_2(F, S) EACH_1(F, S) S F(1)
#define EACH_3(F, S) EACH_2(F, S) S F(2)
#define EACH_4(F, S) EACH_3(F, S) S F(3)
#define EACH_5(F, S) EACH_4(F, S) S F(4)
#define EACH_6(F, S) EACH_5(F, S) S F(5)
#define EACH_7(F, S) EACH_6(F, S) S F(6)
#define EACH_8(F, S) EACH_7(F, S) S F(7)
#define EACH_9(F, S) EACH_8(F, S) S F(8)
#define EACH_10(F, S) EACH_9(F, S) S F(9)
#define EACH_11(F, S) EACH_10(F, S) S F(10)
#define EACH_12(F, S) EACH_11(F, S) S F(11)
#define EACH_13(F, S) EACH_12(F, S) S F(12)
#define EACH_14(F, S) EACH_13(F, S) S F(13)
#define EACH_15(F, S) EACH_14(F, S) S F(14)
#define EACH_16(F, S) EACH_15(F, S) S F(15)
#define EACH_17(F, S) EACH_16(F, S) S F(16)
#define EACH_18(F, S) EACH_17(F, S) S F(17)
#define EACH_19(F, S) EACH_18(F, S) S F(18)
#define EACH_20(F, S) EACH_19(F, S) S F(19)
#define EACH_21(F, S) EACH_20(F, S) S F(20)
#define EACH_22(F, S) EACH_21(F, S) S F(21)
#define EACH_23(F, S) EACH_22(F, S) S F(22)
#define EACH_24(F, S) EACH_23(F, S) S F(23)
#define EACH_25(F, S) EACH_24(F, S) S F(24)
#define EACH_26(F, S) EACH_25(F, S) S F(25)
#define EACH_27(F, S) EACH_26(F, S) S F(26)
#define EACH_28(F, S) EACH_27(F, S) S F(27)
#define EACH_29(F, S) EACH_28(F, S) S F(28)
#define EACH_30(F, S) EACH_29(F, S) S F(29)
#define EACH_31(F, S) EACH_30(F, S) S F(30)
#define EACH_32(F, S) EACH_31(F, S) S F(31)

// Eight columns' accumulators in a thread: as a list, declared.
#define LIST_f32(g) "d" #g "a, d" #g "b, d" #g "c, d" #g "d"
#define LIST_f16(g) "d" #g "a, d" #g "b"
#define DECLARE_f32(g) ".reg .f32 " LIST_f32(g) ";\n"
#define DECLARE_f16(g) ".reg .b32 " LIST_f16(g) ";\n"
