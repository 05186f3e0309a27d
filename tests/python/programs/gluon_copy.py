"""Gluon: TMA brings a tile, all threads double it. The mistake: nothing waits for the copy."""

import sys

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def double(source, target, WAITS: gl.constexpr):
    """One tile."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(gl.float32, source.block_type.shape, source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, source.block_type.nbytes)
    tma.async_load(source, [0, 0], bar, tile)
    if WAITS:
        mbarrier.wait(bar, phase=0)
    values = tile.load(layout)  # the mistake shows here
    tile.store(values * 2)
    fence_async_shared()
    tma.async_store(target, [0, 0], tile)
    tma.store_wait(pendings=0)


def main():
    """Compares with twice the source."""
    x = torch.randn(32, 32, device="cuda")
    out = torch.empty_like(x)
    layout = gl.NVMMASharedLayout.get_default_for([32, 32], gl.float32)
    maps = [TensorDescriptor(t, list(t.shape), list(t.stride()), [32, 32], layout) for t in (x, out)]
    double[(1,)](*maps, WAITS="mistake" not in sys.argv)
    if "mistake" not in sys.argv:
        torch.testing.assert_close(out, 2 * x)
    print("right")


main()
