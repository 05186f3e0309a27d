"""TileLang: a sum, and a product by TMA and tensor cores. The mistake: the sum's last block has no limit."""

import sys

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[2])
def add(size, rows, block):
    """A sum of vectors of `size` numbers, `rows` of which are there."""

    @T.prim_func
    def main(
        a: T.Tensor((rows,), "float32"),
        b: T.Tensor((rows,), "float32"),
        c: T.Tensor((rows,), "float32"),
    ):
        with T.Kernel(T.ceildiv(size, block), threads=block) as x:
            for i in T.Parallel(block):
                c[x * block + i] = a[x * block + i] + b[x * block + i]

    return main


@tilelang.jit(out_idx=[2])
def matmul(size, tile, depth):
    """A product, two slots deep."""

    @T.prim_func
    def main(
        a: T.Tensor((size, size), "float16"),
        b: T.Tensor((size, size), "float16"),
        c: T.Tensor((size, size), "float32"),
    ):
        with T.Kernel(T.ceildiv(size, tile), T.ceildiv(size, tile), threads=128) as (x, y):
            a_tile = T.alloc_shared((tile, depth), "float16")
            b_tile = T.alloc_shared((depth, tile), "float16")
            sums = T.alloc_fragment((tile, tile), "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(size, depth), num_stages=2):
                T.copy(a[y * tile, k * depth], a_tile)
                T.copy(b[k * depth, x * tile], b_tile)
                T.gemm(a_tile, b_tile, sums)
            T.copy(sums, c[y * tile, x * tile])

    return main


def main():
    """Compares with PyTorch's results."""
    x, y = (torch.randn(1024, device="cuda") for _ in range(2))
    torch.testing.assert_close(add(1024, 1024, 256)(x, y), x + y)
    a, b = (torch.randn(128, 128, device="cuda").half() for _ in range(2))
    kernel = matmul(128, 64, 64)
    source = kernel.get_kernel_source()
    assert "wgmma" in source and "tma_load" in source
    torch.testing.assert_close(kernel(a, b), a.float() @ b.float(), atol=1e-2, rtol=1e-2)
    print("right")


main()
