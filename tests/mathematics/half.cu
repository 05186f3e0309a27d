// half and half2: operators, functions and intrinsics.
#include "function.cuh"

// clang-format off
#define SECTION "half"
#define T __half
#define T2 __half2
#include "half.cuh"
#undef T
#undef T2
#undef SECTION
