"""CuTe DSL: a product by TMA and wgmma. hopper_run_cute encodes the TMA descriptors and launches the PTX. The mistake:
no wait for the tiles."""

import sys

import cutlass
import torch
from cutlass import cute
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.tensor_utils import LayoutEnum
from cutlass.utils import hopper_helpers
from hopper_run_cute import launch, tensor_map

M, N, K = 128, 64, 192
TILE = 64
HALF = cutlass.Float16


@cute.kernel
def multiply(
    mma: cute.TiledMma,
    copy_a: cute.CopyAtom,
    a: cute.Tensor,
    copy_b: cute.CopyAtom,
    b: cute.Tensor,
    d: cute.Tensor,
    layout: cute.ComposedLayout,
    waits: cutlass.Constexpr,
):
    """D = A B^T: a warpgroup computes a tile of D, in steps of one tile of A and of B."""
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    allocator = cutlass.memory.SmemAllocator()
    tile_a = allocator.allocate_tensor(HALF, layout.outer, 1024, layout.inner)
    tile_b = allocator.allocate_tensor(HALF, layout.outer, 1024, layout.inner)
    loaded = allocator.allocate_array(cutlass.Int64, 1)
    if thread == 0:
        cute.arch.mbarrier_init(loaded, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()

    def partition(copy, tile, tensor, index):
        tiles = cute.group_modes(cute.local_tile(tensor, (TILE, TILE), (index, None)), 0, 2)
        return cpasync.tma_partition(copy, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), tiles)

    to_a, from_a = partition(copy_a, tile_a, a, row)
    to_b, from_b = partition(copy_b, tile_b, b, column)
    own = mma.get_slice(thread)
    operand_a = mma.make_fragment_A(own.partition_A(tile_a))
    operand_b = mma.make_fragment_B(own.partition_B(tile_b))
    target = own.partition_C(cute.local_tile(d, (TILE, TILE), (row, column)))
    sums = cute.make_rmem_tensor(target.shape, cutlass.Float32)
    mma.set(warpgroup.Field.ACCUMULATE, False)
    for step in cutlass.range(K // TILE, unroll=1):
        if cute.arch.warp_idx() == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(loaded, 2 * TILE * TILE * 2)
            cute.copy(copy_a, from_a[None, step], to_a[None, 0], tma_bar_ptr=loaded)
            cute.copy(copy_b, from_b[None, step], to_b[None, 0], tma_bar_ptr=loaded)
        if cutlass.const_expr(waits):
            cute.arch.mbarrier_wait(loaded, step % 2)
        warpgroup.fence()
        for k in cutlass.range_constexpr(TILE // 16):
            first, second = operand_a[None, None, k, 0], operand_b[None, None, k, 0]
            cute.gemm(mma, sums, first, second, sums)  # the mistake shows here
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, target)


@cute.jit
def host(a: cute.Tensor, b: cute.Tensor, d: cute.Tensor, waits: cutlass.Constexpr):
    """Would launch the kernel."""
    k_major = OperandMajorMode.K
    mma = hopper_helpers.make_trivial_tiled_mma(
        HALF, HALF, k_major, k_major, cutlass.Float32, (1, 1, 1), (TILE, TILE)
    )
    layout = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (TILE, TILE, TILE), HALF, 1)
    one = cute.slice_(layout, (None, None, 0))
    copy_a, source_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, one, (TILE, TILE))
    copy_b, source_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), b, one, (TILE, TILE))
    multiply(mma, copy_a, source_a, copy_b, source_b, d, layout, waits).launch(
        grid=(M // TILE, N // TILE, 1), block=(128, 1, 1)
    )


def main():
    """Compares with PyTorch's result."""
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randn(N, K, device="cuda", dtype=torch.float16)
    d = torch.empty(M, N, device="cuda")
    compiled = cute.compile(host, from_dlpack(a), from_dlpack(b), from_dlpack(d), "mistake" not in sys.argv)
    maps = [tensor_map(tensor, (TILE, TILE), swizzle=128) for tensor in (a, b)]
    shape = {"grid": (M // TILE, N // TILE, 1), "block": (128, 1, 1), "shared": 2 * TILE * TILE * 2 + 8}
    for wrong in ([None, *maps], [*maps, None, d], [None, *maps, 0.5]):
        try:
            launch(compiled, wrong, **shape)
        except TypeError as error:
            assert "parameters are 1 bytes, 128 bytes, 128 bytes, 8 bytes;" in str(error), error
        else:
            raise AssertionError("a wrong list of arguments is accepted")
    launch(compiled, [None, *maps, d], **shape)
    torch.testing.assert_close(d, a.float() @ b.float().T, rtol=1e-3, atol=1e-3)
    print("right")


main()
