"""CuTe DSL: a block reverses its numbers through shared memory, and scales them. The mistake: no barrier."""

import sys

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack
from hopper_run_cute import launch


@cute.kernel
def reverse(
    source: cute.Tensor,
    target: cute.Tensor,
    count: cutlass.Int32,
    factor: cutlass.Float32,
    negates: cutlass.Boolean,
    waits: cutlass.Constexpr,
):
    """A block of 256 threads, of which the first write."""
    i, _, _ = cute.arch.thread_idx()
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(256), 16)
    tile[i] = source[i]
    if cutlass.const_expr(waits):
        cute.arch.sync_threads()
    value = tile[255 - i] * factor  # the mistake shows here
    if i < count:
        target[i] = -value if negates else value


@cute.jit
def host(
    source: cute.Tensor,
    target: cute.Tensor,
    count: cutlass.Int32,
    factor: cutlass.Float32,
    negates: cutlass.Boolean,
    waits: cutlass.Constexpr,
):
    """Would launch the kernel."""
    reverse(source, target, count, factor, negates, waits).launch(grid=(1, 1, 1), block=(256, 1, 1))


def main():
    """Compares with PyTorch's result."""
    x = torch.randn(256, device="cuda")
    result = torch.zeros(256, device="cuda")
    numbers = (200, 0.5, True)
    compiled = cute.compile(host, from_dlpack(x), from_dlpack(result), *numbers, "mistake" not in sys.argv)
    launch(compiled, [x, result, *numbers], grid=(1, 1, 1), block=(256, 1, 1), shared=1024)
    if "mistake" not in sys.argv:
        assert torch.equal(result[:200], x.flip(0)[:200] * -0.5)
        assert not result[200:].any()
    print("right")


main()
