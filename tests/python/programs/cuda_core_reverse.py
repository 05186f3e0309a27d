"""cuda.core: numba_reverse.py in CUDA C++. The mistake: no barrier between the store and the load."""

import sys

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """extern "C" __global__ void reverse(float *values, int waits) {
  __shared__ float tile[256];
  tile[threadIdx.x] = values[threadIdx.x];
  if (waits) __syncthreads();
  values[threadIdx.x] = tile[255 - threadIdx.x];
}
"""  # reverse.cu:5: the mistake shows there


def main():
    """Compares with numpy's."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = ProgramOptions(std="c++17", arch="sm_90a", name="reverse.cu")
    kernel = Program(SOURCE, code_type="c++", options=options).compile("cubin").get_kernel("reverse")
    x = np.arange(256, dtype=np.float32)
    values = device.memory_resource.allocate(x.nbytes, stream=stream)
    driver.cuMemcpyHtoD(int(values.handle), x.ctypes.data, x.nbytes)
    launch(stream, LaunchConfig(grid=1, block=256), kernel, values, np.int32("mistake" not in sys.argv))
    stream.sync()
    result = np.empty_like(x)
    driver.cuMemcpyDtoH(result.ctypes.data, int(values.handle), x.nbytes)
    if "mistake" not in sys.argv:
        np.testing.assert_array_equal(result, x[::-1])
    print("right")


main()
