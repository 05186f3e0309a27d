// For a stage's tiles.h, which kernel.cu and stage.c both include: the names that nvcc and the C compiler share.
#pragma once

#ifdef __CUDACC__
#include <cuda.h>
#include <cuda_fp16.h>
typedef CUtensorMap TensorMap;
// Pointers to device memory.
typedef half *HalfPointer;
typedef float *FloatPointer;
typedef unsigned *CounterPointer;
#else
#include "../device/device.h"
typedef DeviceAddress HalfPointer, FloatPointer, CounterPointer;
#endif
