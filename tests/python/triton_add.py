"""Triton: a sum of two vectors. The mistake: no mask, so the last block runs past the end."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    """A block of the sum."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n if MASKED else i < n + BLOCK
    a = tl.load(x + i, mask=mask)  # the mistake shows here
    tl.store(out + i, a + tl.load(y + i, mask=mask), mask=mask)


def main():
    """Compares with PyTorch's sum."""
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.empty_like(x)
    add[(triton.cdiv(1000, 256),)](x, y, out, 1000, MASKED="mistake" not in sys.argv, BLOCK=256)
    torch.testing.assert_close(out, x + y)
    print("right")


main()
