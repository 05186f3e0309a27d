"""CuTe DSL: a block reverses its numbers through shared memory; cuda.core launches its PTX. The mistake: no barrier."""

import re
import sys

import cutlass
import torch
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def reverse(source: cute.Tensor, target: cute.Tensor, waits: cutlass.Constexpr):
    """A block of 256 threads."""
    i, _, _ = cute.arch.thread_idx()
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(256), 16)
    tile[i] = source[i]
    if cutlass.const_expr(waits):
        cute.arch.sync_threads()
    target[i] = tile[255 - i]  # the mistake shows here


@cute.jit
def host(source: cute.Tensor, target: cute.Tensor, waits: cutlass.Constexpr):
    """Would launch the kernel."""
    reverse(source, target, waits).launch(grid=(1, 1, 1), block=(256, 1, 1))


def main():
    """Compares with PyTorch's result."""
    x = torch.randn(256, device="cuda")
    result = torch.empty_like(x)
    compiled = cute.compile(host, from_dlpack(x), from_dlpack(result), "mistake" not in sys.argv)
    ptx = compiled.__ptx__.rstrip("\0")
    kernel = ObjectCode.from_ptx(ptx.encode()).get_kernel(re.search(r"\.entry (\w+)", ptx)[1])
    device = Device()
    device.set_current()
    shape = LaunchConfig(grid=1, block=256, shmem_size=1024)
    launch(device.create_stream(), shape, kernel, x.data_ptr(), result.data_ptr())
    torch.cuda.synchronize()
    if "mistake" not in sys.argv:
        assert torch.equal(result, x.flip(0))
    print("right")


main()
