// For the programs of this folder: CHECK ends a program whose call of the runtime fails.
#pragma once

#include "expect.h"

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t error = (call);                                                                                        \
    if (error != cudaSuccess) {                                                                                        \
      printf("line %d: %s: %s\n", __LINE__, cudaGetErrorName(error), cudaGetErrorString(error));                       \
      exit(10);                                                                                                        \
    }                                                                                                                  \
  } while (0)
