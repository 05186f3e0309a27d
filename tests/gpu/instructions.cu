// Every instruction of instructions.h, on inputs of the host's choice.
#include "letters.cuh"

#define ENTRY(result, statement)                                                                                       \
  case __COUNTER__ - FIRST: {                                                                                          \
    TYPE_##result d;                                                                                                   \
    statement;                                                                                                         \
    bits = widen(d);                                                                                                   \
    break;                                                                                                             \
  }
#define U(R, A, text) ENTRY(R, asm volatile(text " %0, %1;" : "=" KIND_##R(d) : KIND_##A(GET(A, 0))))
#define B(R, A, B, text)                                                                                               \
  ENTRY(R, asm volatile(text " %0, %1, %2;" : "=" KIND_##R(d) : KIND_##A(GET(A, 0)), KIND_##B(GET(B, 1))))
#define T(R, A, B, C, text, rest)                                                                                      \
  ENTRY(R, asm volatile(text " %0, %1, %2, %3" rest ";"                                                                \
                        : "=" KIND_##R(d)                                                                              \
                        : KIND_##A(GET(A, 0)), KIND_##B(GET(B, 1)), KIND_##C(GET(C, 2))))
#define C(A, B, text)                                                                                                  \
  ENTRY(R, asm volatile("{.reg .pred p; " text " p, %1, %2; selp.b32 %0, 1, 0, p;}"                                    \
                        : "=r"(d)                                                                                      \
                        : KIND_##A(GET(A, 0)), KIND_##B(GET(B, 1))))
#define W(R, A, B, name, text) ENTRY(R, asm volatile(text : "=" KIND_##R(d) : KIND_##A(GET(A, 0)), KIND_##B(GET(B, 1))))

// A block for each instruction. A kernel of that many registers is slow to start on the emulator: few threads, a loop.
extern "C" __global__ void instructions(const InstructionInput *in, uint64_t *out) {
  enum { FIRST = __COUNTER__ + 1 };
#pragma unroll 1
  for (int i = threadIdx.x; i < INSTRUCTION_INPUTS; i += INSTRUCTION_THREADS) {
    uint64_t bits = 0;
    switch (blockIdx.x) { INSTRUCTIONS(U, B, T, C, W) }
    out[blockIdx.x * INSTRUCTION_INPUTS + i] = bits;
  }
}
