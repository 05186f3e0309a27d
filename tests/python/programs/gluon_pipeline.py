"""Gluon: a product by wgmma, whose tiles TMA brings into a ring of three slots. The mistake: a slot is filled again
while the newest product still reads it."""

import sys

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

SIZE = gl.constexpr(64)  # of the tiles
SLOTS = gl.constexpr(3)


@gluon.jit
def load(a, b, tile, row, bars, a_tiles, b_tiles, slot):
    """Brings a tile of each matrix into a slot."""
    mbarrier.expect(bars.index(slot), a.block_type.nbytes + b.block_type.nbytes)
    tma.async_load(a, [row, tile * SIZE], bars.index(slot), a_tiles.index(slot))
    tma.async_load(b, [tile * SIZE, 0], bars.index(slot), b_tiles.index(slot))


@gluon.jit
def multiply(a, b, out, tiles, OUTSTANDING: gl.constexpr):
    """64 rows of the product."""
    row = gl.program_id(0) * SIZE
    a_tiles = gl.allocate_shared_memory(gl.float16, [SLOTS, SIZE, SIZE], a.layout)
    b_tiles = gl.allocate_shared_memory(gl.float16, [SLOTS, SIZE, SIZE], b.layout)
    bars = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(SLOTS):
        mbarrier.init(bars.index(i), count=1)
        load(a, b, i, row, bars, a_tiles, b_tiles, i)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, SIZE, 16])
    sums = gl.zeros([SIZE, SIZE], gl.float32, layout)
    for tile in range(tiles):
        slot = tile % SLOTS
        mbarrier.wait(bars.index(slot), phase=tile // SLOTS & 1)
        sums = warpgroup_mma(a_tiles.index(slot), b_tiles.index(slot), sums, is_async=True)  # the mistake shows here
        sums = warpgroup_mma_wait(num_outstanding=OUTSTANDING, deps=(sums,))
        if tile + SLOTS < tiles:
            load(a, b, tile + SLOTS, row, bars, a_tiles, b_tiles, slot)
    sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    rows, columns = gl.arange(0, SIZE, gl.SliceLayout(1, layout)), gl.arange(0, SIZE, gl.SliceLayout(0, layout))
    gl.store(out + (row + rows)[:, None] * SIZE + columns[None, :], sums)


def main():
    """Compares with PyTorch's product."""
    a = torch.randn(128, 320, device="cuda", dtype=torch.float16)
    b = torch.randn(320, 64, device="cuda", dtype=torch.float16)
    out = torch.empty(128, 64, device="cuda")
    shared = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    maps = [TensorDescriptor(t, list(t.shape), list(t.stride()), [64, 64], shared) for t in (a, b)]
    multiply[(2,)](*maps, out, 5, OUTSTANDING=1 if "mistake" in sys.argv else 0, num_warps=4)
    if "mistake" not in sys.argv:
        torch.testing.assert_close(out, a.float() @ b.float(), atol=1e-2, rtol=1e-2)
    print("right")


main()
