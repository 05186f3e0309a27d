// The stand-in for libcublasLt.so: products, followed by a bias, ReLU or GELU. Every other function that the real
// library exports prints a line and returns "not supported".
#include <cublasLt.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = calloc(1, 1);
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

// ---- descriptors: what they were made with, and attributes by their numbers ----

enum { ATTRIBUTES = 48 };

typedef struct Attributes {
  uint64_t value[ATTRIBUTES];
  bool set[ATTRIBUTES];
} Attributes;

static cublasStatus_t set_attribute(Attributes *attributes, unsigned which, const void *from, size_t size) {
  if (which >= ATTRIBUTES || size > sizeof(uint64_t)) return (cublasStatus_t)blas_missing("cublasLt: an attribute");
  attributes->value[which] = 0;
  memcpy(&attributes->value[which], from, size);
  attributes->set[which] = true;
  return CUBLAS_STATUS_SUCCESS;
}

typedef struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scalar;
  Attributes attributes;
} Operation;

typedef struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  Attributes attributes;
} Layout;

// Defines the function that frees a descriptor.
#define DESTROY(name, type)                                                                                            \
  cublasStatus_t name(type descriptor) {                                                                               \
    free(descriptor);                                                                                                  \
    return CUBLAS_STATUS_SUCCESS;                                                                                      \
  }
DESTROY(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
DESTROY(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
DESTROY(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor, cublasComputeType_t compute,
                                        cudaDataType_t scalar) {
  Operation *operation = calloc(1, sizeof *operation);
  *descriptor = (cublasLtMatmulDesc_t)operation;
  if (!operation) return CUBLAS_STATUS_ALLOC_FAILED;
  operation->compute = compute;
  operation->scalar = scalar;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
                                              const void *from, size_t size) {
  return set_attribute(&((Operation *)descriptor)->attributes, attribute, from, size);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *descriptor, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  Layout *layout = calloc(1, sizeof *layout);
  *descriptor = (cublasLtMatrixLayout_t)layout;
  if (!layout) return CUBLAS_STATUS_ALLOC_FAILED;
  layout->type = type;
  layout->rows = rows;
  layout->columns = columns;
  layout->leading = leading;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t descriptor,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *from,
                                                size_t size) {
  return set_attribute(&((Layout *)descriptor)->attributes, attribute, from, size);
}

// A preference influences the choice of an algorithm, and here there is only one.
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *descriptor) {
  *descriptor = calloc(1, 1);
  return *descriptor ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t descriptor,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *from,
                                                    size_t size) {
  (void)descriptor, (void)attribute, (void)from, (void)size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[], int *found) {
  (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
  if (asked < 1) return CUBLAS_STATUS_INVALID_VALUE;
  results[0] = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

// ---- the product ----

static Matrix matrix_of(const void *address, const Layout *layout) {
  return (Matrix){address, layout->type, (int64_t)layout->rows, (int64_t)layout->columns, layout->leading, false};
}

// GELU as cuBLAS computes it, with the hyperbolic tangent.
static double gelu(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x))); }

// Adds the bias, one number a row, and applies what the epilogue asks for. False when the bias cannot be read, or the
// epilogue is another.
static cublasStatus_t apply_epilogue(const Attributes *attributes, cudaDataType_t type, double *d, int64_t rows,
                                     int64_t columns) {
  uint64_t epilogue = attributes->value[CUBLASLT_MATMUL_DESC_EPILOGUE];
  if (!attributes->set[CUBLASLT_MATMUL_DESC_EPILOGUE]) epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const uint64_t known =
      CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU;
  if (epilogue & ~known)
    return (cublasStatus_t)blas_missing("cublasLtMatmul with another epilogue than bias, ReLU, GELU");
  double *bias = NULL;
  if (epilogue & CUBLASLT_EPILOGUE_BIAS) {
    if (attributes->set[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE])
      type = (cudaDataType_t)attributes->value[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE];
    const void *address = (const void *)attributes->value[CUBLASLT_MATMUL_DESC_BIAS_POINTER];
    bias = matrix_load(&(Matrix){address, type, rows, 1, rows, false}, false);
    if (!bias) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  for (int64_t i = 0; i < rows * columns; i++) {
    if (bias) d[i] += bias[i % rows];
    if (epilogue & CUBLASLT_EPILOGUE_RELU) d[i] = fmax(d[i], 0);
    if ((epilogue & CUBLASLT_EPILOGUE_GELU) == CUBLASLT_EPILOGUE_GELU) d[i] = gelu(d[i]);
  }
  free(bias);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_size,
                              cudaStream_t stream) {
  (void)handle, (void)algorithm, (void)workspace, (void)workspace_size, (void)stream;
  const Operation *operation = (const Operation *)descriptor;
  const Attributes *attributes = &operation->attributes;
  const Layout *layouts[] = {(Layout *)a_layout, (Layout *)b_layout, (Layout *)c_layout, (Layout *)d_layout};
  if (attributes->value[CUBLASLT_MATMUL_DESC_POINTER_MODE] > CUBLASLT_POINTER_MODE_DEVICE)
    return (cublasStatus_t)blas_missing("cublasLtMatmul with a vector of alphas");
  for (int i = 0; i < 4; i++) {
    if (!layouts[i]) return CUBLAS_STATUS_INVALID_VALUE;
    const Attributes *of = &layouts[i]->attributes;
    if (!matrix_element(layouts[i]->type) || of->value[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] > 1 ||
        (of->set[CUBLASLT_MATRIX_LAYOUT_ORDER] && of->value[CUBLASLT_MATRIX_LAYOUT_ORDER] != CUBLASLT_ORDER_COL))
      return (cublasStatus_t)blas_missing("cublasLtMatmul with batches, by rows, or with this type");
  }
  Product product = {
      .a = matrix_of(a, layouts[0]),
      .b = matrix_of(b, layouts[1]),
      .c = matrix_of(c, layouts[2]),
      .d = matrix_of(d, layouts[3]),
      .a_transposed = attributes->value[CUBLASLT_MATMUL_DESC_TRANSA] != CUBLAS_OP_N,
      .b_transposed = attributes->value[CUBLASLT_MATMUL_DESC_TRANSB] != CUBLAS_OP_N,
  };
  bool on_device = attributes->value[CUBLASLT_MATMUL_DESC_POINTER_MODE] == CUBLASLT_POINTER_MODE_DEVICE;
  if (!matrix_scalar(alpha, operation->scalar, on_device, &product.alpha) ||
      !matrix_scalar(beta, operation->scalar, on_device, &product.beta))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  double *values = matrix_product(&product);
  if (!values) return CUBLAS_STATUS_EXECUTION_FAILED;
  cublasStatus_t status = apply_epilogue(attributes, product.d.type, values, product.d.rows, product.d.columns);
  if (status == CUBLAS_STATUS_SUCCESS && !matrix_store(&product.d, values)) status = CUBLAS_STATUS_EXECUTION_FAILED;
  free(values);
  return status;
}
