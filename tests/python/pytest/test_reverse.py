"""Three tests of a kernel; only the middle one has a race. tests/python/run.py runs them."""

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
    values[i] = tile[255 - i]


def launch(waits):
    """Launches it, and looks at nothing."""
    reverse[1, 256](cuda.to_device(np.arange(256, dtype=np.float32)), waits)


def test_right():
    """With the barrier."""
    launch(True)


def test_race():
    """Without."""
    launch(False)


def test_right_after_it():
    """The race before it is not this test's."""
    launch(True)
