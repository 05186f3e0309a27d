// What the kernels' results must be: the tensor core's arithmetic, bit for bit, and the same in fp64.
#pragma once

#include <stdbool.h>

#include "harness/half.h"

enum { MODEL_ROWS = 64, MODEL_DEPTH = 64, MODEL_SLICES = 4 };

// d (64 rows of n) = or += A B as one wgmma computes it, for one slice of 16. a: 64 rows, b: n columns, of 64 numbers.
void model_multiply(const Half *a, const Half *b, int n, int slice, float *d, bool accumulate);
// One number of A B in fp64: exact, but for the last bits of sums that need more than 53.
double model_exact(const Half *a, const Half *b, int slice, int row, int column);
