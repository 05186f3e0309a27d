#include <cuda_fp16.h>
#include <stdint.h>

#include "tiles.h"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ Tensors tensors, const Problem problem) {}
