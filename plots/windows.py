#!/usr/bin/env python3
"""Times stage 21, attention with a sliding window, in turn with kernels by others, on this machine's GPU:

    make windows                                        all points; the rows go to plots/data/21-window/DEVICE.csv
    make build/libwindow.so && python3 plots/windows.py --points=4096/1024 --rounds=10

All in one process and on the same numbers, by the timer of peers.py: after a burn-in the contenders take turns, and
the L2 cache is overwritten before each run. One whose output is wrong is reported and not timed. The TFLOPS count the
scores that a window has, 4 * 96 operations each, and no others.

The others are FlexAttention, which Triton compiles and tunes for each point in a minute or so, and FlashAttention-2.
Both come with PyTorch. FlashAttention-2 and -3 from their own packages (flash_attn, flash_attn_interface) follow, if
they are installed. Each gets tensors in the layout that it is made for. --contender=NAME=FILE.so is another build of
libwindow.so, as of a kernel that is tried.
"""
import argparse
import ctypes
import datetime
import math
import os
import statistics
import sys
from typing import NamedTuple

import peers
from contenders import Contender, Refused, current_stream, pytorch_version, refusals

HEAD_DIM, HEADS, TOKENS = 96, 16, 16384
POINTS = [(seqlen, window) for seqlen in (4096, 16384) for window in (256, 1024, 4096)]
LIBRARY = os.path.join(peers.ROOT, "build", "libwindow.so")
LIMIT = 4e-3  # of a difference from fp64: fp16 rounds numbers up to 4 by up to 2e-3, and the weights as well
COLUMNS = ("stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,head_dim,seqlen,window,"
           "median_ms,min_ms,max_ms,repeats,tflops,clock_mhz,clock_min_mhz,version")


class Windowed(NamedTuple):
    """Q, K and V, [batch][heads][seqlen][head_dim]; and in `rows` the same as [batch][seqlen][heads][head_dim]."""
    window: int
    q: object
    k: object
    v: object
    rows: tuple

    def flops(self):
        batch, heads, seqlen, head_dim = self.q.shape
        window = min(self.window, seqlen)
        return 4 * batch * heads * head_dim * (window * (window + 1) // 2 + (seqlen - window) * window)


def make_problem(seqlen, window):
    import torch

    shape = max(1, TOKENS // seqlen), HEADS, seqlen, HEAD_DIM
    generator = torch.Generator("cuda").manual_seed(1)
    q, k, v = (torch.randn(shape, generator=generator, device="cuda", dtype=torch.float16) for _ in range(3))
    return Windowed(window, q, k, v, tuple(tensor.transpose(1, 2).contiguous() for tensor in (q, k, v)))


def difference(problem, output):
    """How far the first and the last head are from fp64; NaN is too far."""
    import torch

    seqlen = problem.q.shape[2]
    key = torch.arange(seqlen, device="cuda")
    hidden = (key > key[:, None]) | (key <= key[:, None] - problem.window)
    most = 0.0
    for batch, head in ((0, 0), (-1, -1)):
        q, k, v = (tensor[batch, head].double() for tensor in (problem.q, problem.k, problem.v))
        for first in range(0, seqlen, 2048):  # a part at a time, because of the memory
            part = slice(first, first + 2048)
            scores = (q[part] @ k.T / HEAD_DIM**0.5).masked_fill_(hidden[part], float("-inf"))
            error = (scores.softmax(-1) @ v - output[batch, head, part]).abs().max().item()
            most = error if math.isnan(error) or error > most else most
    return most


# ---- contenders: each has prepare(problem) -> call, and call() returns O as [batch][heads][seqlen][head_dim] ----


def own(name, path):
    library = ctypes.CDLL(os.path.abspath(path))
    library.windowed_forward.restype = ctypes.c_char_p
    library.windowed_forward.argtypes = 4 * [ctypes.c_int] + 5 * [ctypes.c_void_p]

    def prepare(problem):
        import torch

        output = torch.full_like(problem.q, float("nan"))
        tensors = [tensor.data_ptr() for tensor in (problem.q, problem.k, problem.v, output)]
        batch, heads, seqlen, _ = problem.q.shape

        def call():
            failure = library.windowed_forward(batch, heads, seqlen, problem.window, *tensors, current_stream())
            if failure:
                raise Refused(failure.decode())
            return output

        return call

    return Contender(name, prepare)


def flex_attention(mode):
    """Compiled by Triton for a block mask of the window."""
    def prepare(problem):
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention as uncompiled

        window, seqlen = problem.window, problem.q.shape[2]
        torch.compiler.reset()
        mask = create_block_mask(lambda b, h, query, key: (query >= key) & (query - key < window), None, None, seqlen,
                                 seqlen, device="cuda")
        compiled = torch.compile(uncompiled, dynamic=False, mode=mode)

        def call():
            with refusals():
                return compiled(problem.q, problem.k, problem.v, block_mask=mask)

        return call

    return Contender("FlexAttention", prepare, lambda: pytorch_version("FlexAttention"))


def flash_attention_2():
    """The one inside PyTorch, whose operator has the window's two sides."""
    def prepare(problem):
        import torch

        q, k, v = problem.rows
        seqlen = q.shape[1]

        def call():
            with refusals():
                output = torch.ops.aten._flash_attention_forward(  # pylint: disable=protected-access
                    q, k, v, None, None, seqlen, seqlen, 0.0, True, False, scale=HEAD_DIM**-0.5,
                    window_size_left=problem.window - 1, window_size_right=0)[0]
            return output.transpose(1, 2)

        return call

    return Contender("FlashAttention-2", prepare, lambda: pytorch_version("FlashAttention-2"))


def package(name, module):
    """flash_attn_func of a package, or nothing where it is not installed."""
    try:
        imported = __import__(module)
    except ImportError:
        print(f"windows.py: {name} is left out: there is no package {module}", file=sys.stderr)
        return []

    def prepare(problem):
        def call():
            with refusals():
                output = imported.flash_attn_func(*problem.rows, causal=True, window_size=(problem.window - 1, 0))
            return (output[0] if isinstance(output, tuple) else output).transpose(1, 2)

        return call

    return [Contender(name, prepare, lambda: getattr(imported, "__version__", ""))]


# ---- measuring ----


def enter(contender, problem, where):
    """The entrant, or None with a line that says why not."""
    try:
        call = contender.prepare(problem)
        error = difference(problem, call())
        if error <= LIMIT:
            estimate = min(peers.milliseconds(peers.timed(call)) for _ in range(3))
            return peers.Entrant(contender.name, call, max(1e-3, estimate))
        print(f"windows.py: {contender.name} is WRONG and not timed at {where}: off by {error:.2g}", file=sys.stderr)
    except (Refused, ImportError, AttributeError, TypeError) as reason:
        print(f"windows.py: {contender.name} is left out at {where}: {reason}", file=sys.stderr)
    return None


def row(name, device, problem, runs, version):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    batch, heads, seqlen, head_dim = problem.q.shape
    measured, median = runs.milliseconds, runs.median()
    clocks = f"{statistics.median(runs.megahertz):.0f},{min(runs.megahertz):.0f}" if runs.megahertz else ","
    return (f"{name},{device},{now},{batch},{heads},{head_dim},{seqlen},{problem.window},{median:.6f},"
            f"{min(measured):.6f},{max(measured):.6f},{len(measured)},{problem.flops() / median / 1e9:.3f},{clocks},"
            f"{version}")


def measure(contenders, points, rounds):
    """Prints a table, and yields the rows."""
    device = peers.device_columns()
    print(f"{'seqlen':>8}{'window':>8}  " + "".join(f"{each.name:>20}" for each in contenders), file=sys.stderr)
    for seqlen, window in points:
        problem = make_problem(seqlen, window)
        entered = [enter(contender, problem, f"S {seqlen}, W {window}") for contender in contenders]
        entrants = [each for each in entered if each]
        peers.free_memory()
        found = peers.measure_cold(entrants, rounds) if entrants else {}
        speeds = {name: f"{problem.flops() / runs.median() / 1e9:.1f}" for name, runs in found.items()}
        shown = "".join(f"{speeds.get(each.name, '-'):>20}" for each in contenders)
        print(f"{seqlen:>8}{window:>8}  {shown}", file=sys.stderr)
        versions = {each.name: each.version() for each in contenders}
        yield from (row(name, device, problem, runs, versions[name]) for name, runs in found.items())


def parse_points(text):
    return [tuple(int(number) for number in point.split("/")) for point in text.split(",")]


def parse_options():
    parser = argparse.ArgumentParser(prog="windows.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--points", type=parse_points, default=POINTS, metavar="S/W,...", help="4096/1024,16384/256")
    parser.add_argument("--rounds", type=int, default=40, metavar="N", help="runs of each contender at each point (40)")
    parser.add_argument("--contender", action="append", default=[], metavar="NAME=FILE.so", help="another libwindow.so")
    parser.add_argument("--flex-mode", default="max-autotune-no-cudagraphs", metavar="MODE",
                        help="torch.compile's for FlexAttention; \"default\" compiles faster")
    parser.add_argument("--record", action="store_true", help="write plots/data/21-window/DEVICE.csv")
    parser.add_argument("--csv", metavar="FILE", help="write the rows to a file")
    return parser.parse_args()


def main():
    options = parse_options()
    peers.require_gpu()
    if not os.path.exists(LIBRARY):
        peers.fail(3, "build/libwindow.so is not there; `make build/libwindow.so` builds it")
    contenders = [own("21-window", LIBRARY), *(own(*text.split("=", 1)) for text in options.contender),
                  flex_attention(options.flex_mode), flash_attention_2(),
                  *package("FlashAttention-2 (flash_attn)", "flash_attn"),
                  *package("FlashAttention-3", "flash_attn_interface")]
    rows = [COLUMNS, *measure(contenders, options.points, options.rounds)]
    path = options.csv
    if options.record:
        device = peers.device_columns().split(",")[0].lower().replace(" ", "-")
        name = "".join(c for c in device if c.isalnum() or c == "-")
        path = os.path.join(peers.ROOT, "plots", "data", "21-window", f"{name}.csv")
        os.makedirs(os.path.dirname(path), exist_ok=True)
    if path:
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(rows) + "\n")
        print(f"recorded {path}", file=sys.stderr)
    else:
        print("\n".join(rows))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
