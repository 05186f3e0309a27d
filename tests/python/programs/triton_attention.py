"""Triton: causal flash attention, four heads of 500 rows. The mistake: the last tile of keys is not masked."""

import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def attend(q, k, v, out, rows, scale, MASKED: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A tile of queries of a head."""
    start, base = tl.program_id(0) * BM, tl.program_id(1) * rows * D
    m, n, d = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    queries = tl.load(q + base + m[:, None] * D + d[None, :], mask=m[:, None] < rows, other=0.0)
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for first in range(0, start + BM, BN):
        limit = rows if MASKED else rows + BN
        there = (first + n) < limit
        keys = k + base + (first + n)[None, :] * D + d[:, None]
        keys = tl.load(keys, mask=there[None, :], other=0.0)  # the mistake shows here
        scores = tl.dot(queries, keys) * scale
        scores = tl.where(m[:, None] >= (first + n)[None, :], scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - new[:, None])
        shrink = tl.exp(most - new)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + base + (first + n)[:, None] * D + d[None, :], mask=there[:, None], other=0.0)
        sums = tl.dot(weights.to(tl.float16), values, sums * shrink[:, None])
        most = new
    tl.store(out + base + m[:, None] * D + d[None, :], (sums / total[:, None]).to(tl.float16), mask=m[:, None] < rows)


def main():
    """Compares with PyTorch's attention."""
    heads, rows, size = 4, 500, 64
    q, k, v = (torch.randn(heads, rows, size, device="cuda", dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)

    def launch():
        grid = (triton.cdiv(rows, 64), heads)
        attend[grid](q, k, v, out, rows, 0.125, MASKED="mistake" not in sys.argv, D=size, BM=64, BN=64, num_stages=3)
        torch.cuda.synchronize()

    launch()  # compiles it
    begin = time.process_time()
    launch()
    print(f"{time.process_time() - begin:.2f} s of CPU")
    expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    torch.testing.assert_close(out.float(), expected, atol=5e-3, rtol=1e-2)
    print("right")


main()
