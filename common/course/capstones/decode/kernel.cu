#include <cuda_bf16.h>
#include <stdint.h>

#include "tiles.h"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    decode(const __grid_constant__ Maps maps, const Problem problem) {}
