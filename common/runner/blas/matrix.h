// Matrices of the stand-ins for cuBLAS. A program usually calls cuBLAS to have something to compare its own kernels
// with, so the products are computed plainly on the CPU: those of fp16 and bf16 as a tensor core does, all others in
// double precision.
#pragma once

#include <cuda.h>
#include <library_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A matrix in device memory, column by column, as in BLAS.
typedef struct Matrix {
  const void *address;
  cudaDataType_t type;
  int64_t rows, columns;
  int64_t leading;  // elements from one column to the next
  bool backwards;   // the first column lies last, as in a vector with a negative step
} Matrix;

// Bytes of an element; 0: a type that is not supported.
size_t matrix_element(cudaDataType_t type);
double matrix_decode(const void *element, cudaDataType_t type);
void matrix_encode(void *element, cudaDataType_t type, double value);

// Copies the matrix, or its transpose, to a new array on the host, without gaps. NULL when it cannot be read.
double *matrix_load(const Matrix *matrix, bool transposed);
// Rounds values to the matrix's type and writes them; the gaps between columns stay as they are.
bool matrix_store(const Matrix *matrix, const double *values);

// D = alpha op(A) op(B) + beta C. With beta 0, C need not hold numbers; with alpha 0, nor need A and B.
typedef struct Product {
  Matrix a, b, c, d;
  bool a_transposed, b_transposed;
  double alpha, beta;
} Product;

// The new D on the host, rows x columns without gaps; NULL when A, B or C cannot be read.
double *matrix_product(const Product *product);

// c = a b for a of rows x depth, b of depth x columns, column by column without gaps.
void matrix_multiply(double *c, const double *a, const double *b, int64_t rows, int64_t columns, int64_t depth);

// Copies an array of so many pointers to matrices, which lies in device memory. NULL when it, or one of the pointers,
// is no address that the device can read; a line says so.
void **matrix_pointers(const void *address, int count);

// A scalar that lies on the host, or in device memory. False when it cannot be read.
bool matrix_scalar(const void *address, cudaDataType_t type, bool on_device, double *value);

// One line on standard error that names the function; "not supported" in cuBLAS' numbers.
int blas_missing(const char *function);
