"""Triton: the sum of a vector. The mistake: blocks add to it by a load and a store, not by an atomic operation."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add_up(x, total, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    """Adds a block."""
    part = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    if ATOMIC:
        tl.atomic_add(total, part)
    else:
        tl.store(total, tl.load(total) + part)  # the mistake shows here


def main():
    """Compares with PyTorch's sum."""
    x, total = torch.ones(1024, device="cuda"), torch.zeros(1, device="cuda")
    add_up[(4,)](x, total, ATOMIC="mistake" not in sys.argv, BLOCK=256)
    torch.testing.assert_close(total, x.sum(0, keepdim=True))
    print("right")


main()
