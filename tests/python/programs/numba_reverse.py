"""numba: a block reverses a vector through shared memory. The mistake: no barrier between the store and the load."""

import sys

import numpy as np
from numba import cuda, float32


@cuda.jit(lineinfo=True)
def reverse(values, waits):
    """256 threads."""
    tile = cuda.shared.array(256, float32)
    i = cuda.threadIdx.x
    tile[i] = values[i]
    if waits:
        cuda.syncthreads()
    values[i] = tile[255 - i]  # the mistake shows here


def main():
    """Compares with numpy's."""
    x = np.arange(256, dtype=np.float32)
    values = cuda.to_device(x)
    reverse[1, 256](values, "mistake" not in sys.argv)
    if "mistake" not in sys.argv:
        np.testing.assert_array_equal(values.copy_to_host(), x[::-1])
    print("right")


main()
