"""Triton: the gradient of a layer norm's weight; the last program to arrive adds up the parts of all. The mistake: the
atomic that counts the programs is relaxed, and hands no other memory on."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def weight_gradient(
    x, dy, mean, rstd, parts, dw, count, rows, cols, SEM: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr,
    BLOCK: tl.constexpr
):
    """ROWS rows make a part."""
    pid, i = tl.program_id(0), tl.arange(0, BLOCK)
    part = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid * ROWS, min(rows, (pid + 1) * ROWS)):
        xs = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
        gradients = tl.load(dy + row * cols + i, mask=i < cols, other=0.0)
        part += gradients * (xs - tl.load(mean + row)) * tl.load(rstd + row)
    tl.store(parts + pid * cols + i, part, mask=i < cols)
    arrived = tl.atomic_add(count, 1, sem=SEM)
    if arrived == tl.num_programs(0) - 1:
        p = tl.arange(0, PARTS)[:, None]
        there = (p < tl.num_programs(0)) & (i < cols)[None, :]
        everything = tl.load(parts + p * cols + i[None, :], mask=there, other=0.0)  # the mistake shows here
        tl.store(dw + i, tl.sum(everything, 0), mask=i < cols)


def main():
    """Compares with PyTorch's gradient."""
    rows, cols = 37, 200
    x, dy = (torch.randn(rows, cols, device="cuda") for _ in range(2))
    weight = torch.ones(cols, device="cuda", requires_grad=True)
    torch.nn.functional.layer_norm(x, (cols,), weight).backward(dy)
    rstd = torch.rsqrt(x.var(1, correction=0) + 1e-5)
    parts, dw = torch.empty(5, cols, device="cuda"), torch.empty(cols, device="cuda")
    count = torch.zeros(1, device="cuda", dtype=torch.int32)
    sem = "relaxed" if "mistake" in sys.argv else "acq_rel"
    weight_gradient[(5,)](x, dy, x.mean(1), rstd, parts, dw, count, rows, cols, SEM=sem, ROWS=8, PARTS=8, BLOCK=256)
    if "mistake" not in sys.argv:
        torch.testing.assert_close(dw, weight.grad, atol=1e-4, rtol=1e-4)
    print("right")


main()
