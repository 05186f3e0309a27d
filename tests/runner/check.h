// For the programs of this folder: CHECK ends a program whose call fails, EXPECT one whose result is wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t error = (call);                                                                                        \
    if (error != cudaSuccess) {                                                                                        \
      printf("line %d: %s: %s\n", __LINE__, cudaGetErrorName(error), cudaGetErrorString(error));                       \
      exit(10);                                                                                                        \
    }                                                                                                                  \
  } while (0)

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      printf("line %d: not so: %s\n", __LINE__, #condition);                                                           \
      exit(11);                                                                                                        \
    }                                                                                                                  \
  } while (0)
