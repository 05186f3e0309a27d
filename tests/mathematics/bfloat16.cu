// __nv_bfloat16 and __nv_bfloat162: operators, functions and intrinsics.
#include "function.cuh"

// clang-format off
#define SECTION "bfloat16"
#define T __nv_bfloat16
#define T2 __nv_bfloat162
#include "half.cuh"
#undef T
#undef T2
#undef SECTION
