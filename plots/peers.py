#!/usr/bin/env python3
"""Times the attention that PyTorch ships, on this machine's GPU, as the stages time themselves: fp16, forward, each run after
the L2 cache was overwritten, the median of REPEAT runs after a warm-up. Prints rows in the columns of the stages' --csv:

    python3 plots/peers.py "SEQLENS" REPEAT >>rows.csv

FlashAttention-2 and cuDNN are two backends of torch.nn.functional.scaled_dot_product_attention; one that this PyTorch does not
have is left out, with a line on standard error.
"""
import datetime
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

PEERS = {"FlashAttention-2": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
TOKENS, WIDTH = 16384, 2048  # of every problem, as in common/build/bench.sh
WARM_UP_MILLISECONDS = 50


def driver_version():
    """The kernel driver's version, as the stages read it; "unknown" without the file."""
    try:
        words = open("/proc/driver/nvidia/version", encoding="ascii").readline().split()
    except OSError:
        return "unknown"
    return next((word for word in words if word.count(".") and word.replace(".", "").isdigit()), "unknown")


def timed(work):
    """Milliseconds of one run, by the driver's events."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop)


def measure(work, repeat):
    """The times of `repeat` runs, each with a cold L2 cache."""
    flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.int8, device="cuda")
    elapsed = 0.0
    while elapsed < WARM_UP_MILLISECONDS:
        elapsed += max(timed(work), 1e-3)
    times = []
    for i in range(repeat):
        flush.fill_(i % 100)
        times.append(timed(work))
    return times


def row(peer, shape, causal, times):
    """One line of CSV."""
    batch, heads, seqlen, head_dim = shape
    flops = 4 * batch * heads * seqlen * seqlen * head_dim / (2 if causal else 1)
    median = statistics.median(times)
    device = torch.cuda.get_device_properties(0)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    clock = torch.cuda.get_device_properties(0).clock_rate // 1000 if hasattr(device, "clock_rate") else "unknown"
    times_text = f"{median:.6f},{min(times):.6f},{max(times):.6f},{len(times)}"
    return (f"{peer},{device.name},{clock},{driver_version()},{torch.version.cuda},{now},"
            f"{batch},{heads},{seqlen},{head_dim},{int(causal)},{times_text},{flops / median / 1e9:.3f}")


def main(seqlens, repeat):
    torch.manual_seed(1)
    for head_dim in (64, 128):
        for causal in (False, True):
            for seqlen in seqlens:
                shape = (max(1, TOKENS // seqlen), WIDTH // head_dim, seqlen, head_dim)
                q, k, v = (torch.randn(shape, dtype=torch.float16, device="cuda") for _ in range(3))
                for peer, backend in PEERS.items():
                    try:
                        with sdpa_kernel(backend):
                            times = measure(lambda: scaled_dot_product_attention(q, k, v, is_causal=causal), repeat)
                        print(row(peer, shape, causal, times), flush=True)
                    except RuntimeError as error:
                        print(f"peers.py: {peer} left out: {str(error).splitlines()[0]}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdigit() or not all(word.isdigit() for word in sys.argv[1].split()):
        sys.exit('peers.py: usage: python3 plots/peers.py "512 1024" REPEAT')
    main([int(word) for word in sys.argv[1].split()], int(sys.argv[2]))
