// The model of the tensor core, from the emulator: see model.h and notes/tensor-core-arithmetic.md.
#include "model.h"

#include "emulator/tensor/tensor_core.h"

void model_multiply(const Half *a, const Half *b, int n, int slice, float *d, bool accumulate) {
  static TensorA left;
  static TensorB right;
  const Half *first = a + slice * TENSOR_DEPTH, *second = b + slice * TENSOR_DEPTH;
  tensor_decode_a(&left, TENSOR_F16, MODEL_ROWS, TENSOR_DEPTH, first, MODEL_DEPTH, 1, false);
  tensor_decode_b(&right, TENSOR_F16, n, TENSOR_DEPTH, second, 1, MODEL_DEPTH, false);
  tensor_step_f32(&left, &right, d, n, accumulate);
}

double model_exact(const Half *a, const Half *b, int slice, int row, int column) {
  double sum = 0;
  for (int k = slice * TENSOR_DEPTH; k < (slice + 1) * TENSOR_DEPTH; k++)
    sum += (double)half_to_float(a[row * MODEL_DEPTH + k]) * half_to_float(b[column * MODEL_DEPTH + k]);
  return sum;
}
