"""Triton: a product by TMA and tensor cores, two slots deep. The mistake: the second half of K was never written."""

import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile of C."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)  # the mistake shows here
    c.store([row, column], acc)


def main():
    """Compares with PyTorch's product."""
    size, tile = 128, 64
    a = torch.empty(size, size, device="cuda", dtype=torch.float16)
    written = size // 2 if "mistake" in sys.argv else size
    a[:, :written] = torch.randn(size, written, device="cuda")
    b = torch.randn(size, size, device="cuda", dtype=torch.float16)
    c = torch.empty(size, size, device="cuda")
    maps = [TensorDescriptor(t, list(t.shape), list(t.stride()), [tile, tile]) for t in (a, b, c)]
    matmul[(size // tile, size // tile)](*maps, size, BM=tile, BN=tile, BK=tile, num_stages=2)
    if "mistake" not in sys.argv:
        torch.testing.assert_close(c, a.float() @ b.float(), atol=1e-2, rtol=1e-2)
    print("right")


main()
