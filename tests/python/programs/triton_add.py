"""Triton: a sum of two vectors, with tuned blocks. The mistake: no mask, so the last block runs past the end."""

import math
import sys

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": block}) for block in (256, 512)], key=["n"])
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
    add[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, out, 1000, MASKED="mistake" not in sys.argv)
    torch.testing.assert_close(out, x + y)
    assert len(add.configs_timings) == 2 and math.isnan(triton.testing.do_bench(lambda: x + y))
    print("right")


main()
