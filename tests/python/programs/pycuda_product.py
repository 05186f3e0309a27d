"""PyCUDA: a sum of arrays, and a product by tensor cores. The mistake: a barrier is missing."""

import sys

import numpy
import pycuda.autoinit  # pylint: disable=unused-import  # makes a context
import pycuda.driver
from pycuda import gpuarray
from pycuda.compiler import SourceModule

KERNEL = """#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void matmul(const half *a, const half *b, float *c, int n) {
  __shared__ half tile[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_part;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b_part;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
  wmma::fill_fragment(sums, 0.0f);
  for (int k = 0; k < n; k += 16) {
    tile[threadIdx.x] = a[(row + threadIdx.x / 16) * n + k + threadIdx.x % 16];
#ifndef MISTAKE
    __syncthreads();
#endif
    wmma::load_matrix_sync(a_part, tile, 16);
    wmma::load_matrix_sync(b_part, b + k * n + column, n);
    wmma::mma_sync(sums, a_part, b_part, sums);
    __syncthreads();
  }
  if (threadIdx.x < 32) wmma::store_matrix_sync(c + row * n + column, sums, n, wmma::mem_row_major);
}
"""
# kernel.cu:16: the mistake shows there


def main():
    """Compares with NumPy's results."""
    generator = numpy.random.default_rng(0)
    x, y = (generator.random(1000, dtype=numpy.float32) for _ in range(2))
    assert numpy.array_equal((gpuarray.to_gpu(x) + gpuarray.to_gpu(y)).get(), x + y)
    assert abs(gpuarray.sum(gpuarray.to_gpu(x)).get() - x.sum()) < 0.1
    a, b = (generator.random((64, 64), dtype=numpy.float32).astype(numpy.float16) for _ in range(2))
    c = numpy.zeros((64, 64), numpy.float32)
    options = ["-DMISTAKE"] if "mistake" in sys.argv else []
    matmul = SourceModule(KERNEL, no_extern_c=True, options=options).get_function("matmul")
    arrays = pycuda.driver.In(a), pycuda.driver.In(b), pycuda.driver.Out(c)
    matmul(*arrays, numpy.int32(64), block=(256, 1, 1), grid=(4, 4))
    if "mistake" not in sys.argv:
        assert numpy.allclose(c, a.astype(numpy.float32) @ b.astype(numpy.float32), atol=1e-2)
    print("right")


main()
