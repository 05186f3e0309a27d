"""numba: blocks that read what other blocks have written, behind a barrier of the grid. The mistake: no barrier."""

import sys
import warnings

import numpy
from numba import cuda

warnings.simplefilter("ignore")  # of a grid that is small for a GPU


@cuda.jit(lineinfo=True)
def reverse(values, doubled, result, waits):
    """The doubled values, last one first."""
    i = cuda.grid(1)
    doubled[i] = 2 * values[i]
    if waits:
        cuda.cg.this_grid().sync()
    result[i] = doubled[values.size - 1 - i]  # the mistake shows here


def main():
    """Compares with NumPy's result."""
    values = numpy.arange(256, dtype=numpy.float32)
    doubled, result = cuda.device_array_like(values), cuda.device_array_like(values)
    for _ in range(2):
        reverse[4, 64](cuda.to_device(values), doubled, result, "mistake" not in sys.argv)
    if "mistake" not in sys.argv:
        assert numpy.array_equal(result.copy_to_host(), 2 * values[::-1])
    print("right")


main()
