// For a stage's tiles.h, which kernel.cu and stage.c both include: the names that nvcc and the C compiler share.
#pragma once

#ifdef __CUDACC__
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>
typedef CUtensorMap TensorMap;
// Pointers to device memory.
typedef half *HalfPointer;
typedef const float *FloatPointer;
typedef const int *IntPointer;
typedef float *FloatOutput;
typedef uint8_t *BytePointer;
typedef unsigned *CounterPointer;
#else
#include "../device/device.h"
typedef DeviceAddress HalfPointer, FloatPointer, IntPointer, FloatOutput, BytePointer, CounterPointer;
#endif
