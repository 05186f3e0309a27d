// The little of cuBLAS that is needed here, taken from libcublas at run time: nothing is linked, and no header of it
// need be installed. Names and numbers are those of the cuBLAS documentation.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct Cublas Cublas;

// NULL and one line in error when there is no cuBLAS, or it fails.
Cublas *cublas_open(char *error, size_t size);
void cublas_close(Cublas *cublas);

// A matrix of each of many heads, one head after another. cuBLAS counts columns first: element (row, column) of a
// matrix is at row + column * pitch.
typedef struct Matrices {
  const void *data;    // of the first head, in device memory
  bool transposed;     // the matrix that is multiplied is this one transposed
  bool fp32;           // otherwise fp16
  int pitch;           // elements from one column to the next
  long long distance;  // elements from one head's to the next
} Matrices;

// C = factor * A B for each head, where A is m x k, B k x n and C m x n; products are added up in fp32. Queued on the
// default stream. NULL when that went well, otherwise cuBLAS's word for what did not.
const char *cublas_multiply(Cublas *cublas, int m, int n, int k, float factor, const Matrices *a, const Matrices *b,
                            const Matrices *c, int heads);
