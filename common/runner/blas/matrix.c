// Reading, writing and multiplying the matrices of the stand-ins for cuBLAS.
#include "matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../emulator/tensor/tensor_core.h"
#include "../../emulator/warp/float16.h"

void core_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));
void core_library_reads(const void *address, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

int blas_missing(const char *function) {
  enum { NOT_SUPPORTED = 15 };  // CUBLAS_STATUS_NOT_SUPPORTED
  core_say_once("%s: the emulator does not have this function; it returns \"not supported\"", function);
  return NOT_SUPPORTED;
}

size_t matrix_element(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_8I: return 1;
  case CUDA_R_16F:
  case CUDA_R_16BF: return 2;
  case CUDA_R_32F:
  case CUDA_R_32I: return 4;
  case CUDA_R_64F: return 8;
  default: return 0;
  }
}

// The value of a variable of this C type at an address.
#define AT(type, address)                                                                                              \
  __extension__({                                                                                                      \
    type value_;                                                                                                       \
    memcpy(&value_, address, sizeof value_);                                                                           \
    value_;                                                                                                            \
  })

double matrix_decode(const void *element, cudaDataType_t type) {
  switch (type) {
  case CUDA_R_8I: return AT(int8_t, element);
  case CUDA_R_16F: return f32_from_f16(AT(uint16_t, element));
  case CUDA_R_16BF: return f32_from_bf16(AT(uint16_t, element));
  case CUDA_R_32F: return AT(float, element);
  case CUDA_R_32I: return AT(int32_t, element);
  case CUDA_R_64F: return AT(double, element);
  default: return NAN;
  }
}

#define PUT(type, address, value) memcpy(address, &(type){(type)(value)}, sizeof(type))

void matrix_encode(void *element, cudaDataType_t type, double value) {
  switch (type) {
  case CUDA_R_8I: PUT(int8_t, element, fmax(-128, fmin(127, rint(value)))); break;
  case CUDA_R_16F: PUT(uint16_t, element, narrow((SmallFormat)FORMAT_F16, value, ROUND_NEAREST, false)); break;
  case CUDA_R_16BF: PUT(uint16_t, element, narrow((SmallFormat)FORMAT_BF16, value, ROUND_NEAREST, false)); break;
  case CUDA_R_32F: PUT(float, element, value); break;
  case CUDA_R_32I: PUT(int32_t, element, (int64_t)value); break;
  case CUDA_R_64F: PUT(double, element, value); break;
  default: break;
  }
}

// Bytes from the first element to the end of the last.
static size_t span(const Matrix *matrix) {
  if (matrix->rows == 0 || matrix->columns == 0) return 0;
  return (size_t)((matrix->columns - 1) * matrix->leading + matrix->rows) * matrix_element(matrix->type);
}

// Elements from the address to a column.
static int64_t column_offset(const Matrix *matrix, int64_t column) {
  return (matrix->backwards ? matrix->columns - 1 - column : column) * matrix->leading;
}

double *matrix_load(const Matrix *matrix, bool transposed) {
  size_t size = matrix_element(matrix->type), count = (size_t)(matrix->rows * matrix->columns);
  uint8_t *bytes = malloc(span(matrix) + 1);
  double *values = malloc((count + 1) * sizeof *values);
  if (!bytes || !values || !size ||
      (span(matrix) && cuMemcpy((CUdeviceptr)bytes, (CUdeviceptr)matrix->address, span(matrix)) != CUDA_SUCCESS)) {
    free(bytes);
    free(values);
    return NULL;
  }
  for (int64_t column = 0; column < matrix->columns; column++)
    core_library_reads((const uint8_t *)matrix->address + (size_t)column_offset(matrix, column) * size,
                       (size_t)matrix->rows * size, "cuBLAS reads a matrix of %lld x %lld, in column %lld",
                       (long long)matrix->rows, (long long)matrix->columns, (long long)column);
  for (int64_t column = 0; column < matrix->columns; column++)
    for (int64_t row = 0; row < matrix->rows; row++)
      values[transposed ? row * matrix->columns + column : column * matrix->rows + row] =
          matrix_decode(bytes + (size_t)(column_offset(matrix, column) + row) * size, matrix->type);
  free(bytes);
  return values;
}

bool matrix_store(const Matrix *matrix, const double *values) {
  size_t size = matrix_element(matrix->type);
  uint8_t *bytes = malloc((size_t)matrix->rows * size + 1);
  bool done = bytes && size;
  for (int64_t column = 0; done && column < matrix->columns; column++) {
    for (int64_t row = 0; row < matrix->rows; row++)
      matrix_encode(bytes + (size_t)row * size, matrix->type, values[column * matrix->rows + row]);
    CUdeviceptr to = (CUdeviceptr)matrix->address + (size_t)column_offset(matrix, column) * size;
    done = matrix->rows == 0 || cuMemcpy(to, (CUdeviceptr)bytes, (size_t)matrix->rows * size) == CUDA_SUCCESS;
  }
  free(bytes);
  return done;
}

// The inner loop goes down a column of A and of C, so that it vectorises.
void matrix_multiply(double *c, const double *a, const double *b, int64_t rows, int64_t columns, int64_t depth) {
  memset(c, 0, (size_t)(rows * columns) * sizeof *c);
  for (int64_t column = 0; column < columns; column++)
    for (int64_t k = 0; k < depth; k++) {
      double factor = b[column * depth + k];
      const double *from = a + k * rows;
      double *to = c + column * rows;
      for (int64_t row = 0; row < rows; row++) to[row] += factor * from[row];
    }
}

// For fp16 and bf16, the products of an H200: in steps of 16 along K, each rounded as the tensor core rounds it.
// Kernels that add in the same order get the same bits as cuBLAS, and programs rely on that.
static bool multiply_by_steps(double *c, const double *a, const double *b, const Product *p, int64_t depth) {
  enum { TILE = TENSOR_MAX_LINES };
  TensorFormat format = p->a.type == CUDA_R_16F ? TENSOR_F16 : TENSOR_BF16;
  int64_t rows = p->d.rows, columns = p->d.columns;
  struct Tiles {
    TensorA a;
    TensorB b;
    uint16_t a_bits[TENSOR_DEPTH * TILE], b_bits[TENSOR_DEPTH * TILE];
    float d[TILE * TILE];
  } *t = malloc(sizeof *t);
  if (!t) return false;
  for (int64_t row = 0; row < rows; row += TILE)
    for (int64_t column = 0; column < columns; column += TILE) {
      int high = (int)(rows - row < TILE ? rows - row : TILE),
          wide = (int)(columns - column < TILE ? columns - column : TILE);
      for (int64_t k = 0; k < depth; k += TENSOR_DEPTH) {
        int deep = (int)(depth - k < TENSOR_DEPTH ? depth - k : TENSOR_DEPTH);
        for (int i = 0; i < deep; i++) {
          for (int r = 0; r < high; r++)
            matrix_encode(&t->a_bits[i * TILE + r], p->a.type, a[(k + i) * rows + row + r]);
          for (int n = 0; n < wide; n++)
            matrix_encode(&t->b_bits[i * TILE + n], p->b.type, b[(column + n) * depth + k + i]);
        }
        tensor_decode_a(&t->a, format, high, deep, t->a_bits, 1, TILE, false);
        tensor_decode_b(&t->b, format, wide, deep, t->b_bits, TILE, 1, false);
        tensor_step_f32(&t->a, &t->b, t->d, TILE, k > 0);
      }
      for (int r = 0; r < high; r++)
        for (int n = 0; n < wide; n++) c[(column + n) * rows + row + r] = depth > 0 ? (double)t->d[r * TILE + n] : 0;
    }
  free(t);
  return true;
}

double *matrix_product(const Product *p) {
  int64_t rows = p->d.rows, columns = p->d.columns, depth = p->a_transposed ? p->a.rows : p->a.columns;
  bool reads_factors = p->alpha != 0 && depth > 0;
  double *a = reads_factors ? matrix_load(&p->a, p->a_transposed) : NULL;
  double *b = reads_factors ? matrix_load(&p->b, p->b_transposed) : NULL;
  double *old = p->beta != 0 ? matrix_load(&p->c, false) : NULL, *d = NULL;
  bool steps = p->a.type == p->b.type && (p->a.type == CUDA_R_16F || p->a.type == CUDA_R_16BF);
  if (((a && b) || !reads_factors) && (old || p->beta == 0)) d = calloc((size_t)(rows * columns + 1), sizeof *d);
  if (d && reads_factors && !(steps && multiply_by_steps(d, a, b, p, depth)))
    matrix_multiply(d, a, b, rows, columns, depth);
  for (int64_t i = 0; d && i < rows * columns; i++) d[i] = p->alpha * d[i] + (old ? p->beta * old[i] : 0);
  free(a);
  free(b);
  free(old);
  return d;
}

static bool is_pointer_of_device(const void *address) {
  CUmemorytype type;
  return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)address) == CUDA_SUCCESS;
}

void **matrix_pointers(const void *address, int count) {
  size_t size = (size_t)count * sizeof(void *);
  void **pointers = malloc(size + 1);
  bool done = pointers && is_pointer_of_device(address) &&
              cuMemcpy((CUdeviceptr)pointers, (CUdeviceptr)address, size) == CUDA_SUCCESS;
  if (done) core_library_reads(address, size, "cuBLAS reads %d pointers to the matrices of a batch", count);
  if (pointers && !done)
    core_say_once("cuBLAS: the array of pointers of a batch, at %p, is not in device memory", address);
  for (int i = 0; done && i < count; i++) {
    done = is_pointer_of_device(pointers[i]);
    if (!done) core_say_once("cuBLAS: matrix %d of a batch, at %p, is not in device memory", i, pointers[i]);
  }
  if (done) return pointers;
  free(pointers);
  return NULL;
}

bool matrix_scalar(const void *address, cudaDataType_t type, bool on_device, double *value) {
  uint64_t element = 0;
  if (on_device && cuMemcpy((CUdeviceptr)&element, (CUdeviceptr)address, matrix_element(type)) != CUDA_SUCCESS)
    return false;
  *value = matrix_decode(on_device ? &element : address, type);
  return true;
}
