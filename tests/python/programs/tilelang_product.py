"""TileLang: a product by TMA and tensor cores, and a reversal in shared memory. The mistake: the reversal's barrier is
left out."""

import sys

import tilelang
import tilelang.language as T
import torch

# tvm_kernels.cu:21: the mistake shows there, in the CUDA C++ that TileLang writes
BARRIERS = {"tl.disable_thread_storage_sync": "mistake" in sys.argv}


@tilelang.jit(out_idx=[1], pass_configs=BARRIERS)
def reverse(size):
    """A block of as many threads."""

    @T.prim_func
    def main(source: T.Tensor((size,), "float32"), target: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=size):
            tile = T.alloc_shared((size,), "float32")
            for i in T.Parallel(size):
                tile[i] = source[i]
            for i in T.Parallel(size):
                target[i] = tile[size - 1 - i]

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
    x = torch.randn(256, device="cuda")
    result = reverse(256)(x)
    if "mistake" not in sys.argv:
        assert torch.equal(result, x.flip(0))
        a, b = (torch.randn(128, 128, device="cuda").half() for _ in range(2))
        kernel = matmul(128, 64, 64)
        assert "wgmma" in kernel.get_kernel_source() and "tma_load" in kernel.get_kernel_source()
        torch.testing.assert_close(kernel(a, b), a.float() @ b.float(), atol=1e-2, rtol=1e-2)
    print("right")


main()
