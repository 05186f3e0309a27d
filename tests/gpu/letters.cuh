// How a kernel of these tests reads an operand of any of the types that instructions.h names by a letter.
#pragma once

#include "instructions.h"

#define TYPE_H uint16_t
#define TYPE_R uint32_t
#define TYPE_P uint32_t
#define TYPE_L uint64_t
#define TYPE_F float
#define TYPE_D double
#define KIND_H "h"
#define KIND_R "r"
#define KIND_P "r"
#define KIND_L "l"
#define KIND_F "f"
#define KIND_D "d"
#define GET(letter, operand) *(const TYPE_##letter *)&in->value[LETTER_##letter][operand][i]

// The result with zeros above it, as 64 bits.
template <typename T> __device__ static uint64_t widen(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
