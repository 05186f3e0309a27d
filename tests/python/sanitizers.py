#!/usr/bin/env python3
"""What Triton's own sanitizers find on a GPU: kernels in Gluon and Triton, right and with one mistake each.

    sanitizers.py            on a GPU: runs each case with ConSan, and with GSan if Triton has it, and prints a table
    sanitizers.py CASE [wrong]     one case; hopper-run python tests/python/sanitizers.py CASE wrong shows its report

The mistakes are those that notes/python.md compares.
"""

import concurrent.futures
import importlib.util
import os
import re
import subprocess
import sys

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import ampere, hopper
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
from triton.runtime import _allocation

if not hasattr(tma, "async_load"):  # its names up to Triton 3.7
    tma.async_load, tma.async_store = tma.async_copy_global_to_shared, tma.async_copy_shared_to_global
if not hasattr(ampere.async_copy, "async_load"):
    ampere.async_copy.async_load = ampere.async_copy.async_copy_global_to_shared
SIZE = gl.constexpr(64)
ROUNDS = gl.constexpr(4)  # of the ring
NO_WAIT, NO_FENCE = gl.constexpr(1), gl.constexpr(2)  # mistakes of the ring


# ---- the kernels: WRONG leaves something out ----


@gluon.jit
def tma_load(source, target, WRONG: gl.constexpr):
    """Nothing waits for a copy."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(gl.float32, source.block_type.shape, source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, source.block_type.nbytes)
    tma.async_load(source, [0, 0], bar, tile)
    if not WRONG:
        mbarrier.wait(bar, phase=0)
    values = tile.load(layout)
    mbarrier.wait(bar, phase=0)
    tile.store(values * 2)
    fence_async_shared()
    tma.async_store(target, [0, 0], tile)
    tma.store_wait(pendings=0)


@gluon.jit
def tma_store(source, target, WRONG: gl.constexpr):
    """Overwrites a tile that TMA still reads."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(gl.float32, source.block_type.shape, source.layout)
    ones = gl.full([SIZE, SIZE], 1.0, gl.float32, layout)
    tile.store(ones)
    fence_async_shared()
    tma.async_store(target, [0, 0], tile)
    if not WRONG:
        tma.store_wait(pendings=0)
    tile.store(ones * 2)
    fence_async_shared()
    tma.store_wait(pendings=0)


@gluon.jit
def copies(source, target, WRONG: gl.constexpr):
    """Reads what cp.async still writes."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    rows = gl.arange(0, SIZE, gl.SliceLayout(1, layout))[:, None]
    places = rows * SIZE + gl.arange(0, SIZE, gl.SliceLayout(0, layout))[None, :]
    shared: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 1, [1, 0])
    tile = gl.allocate_shared_memory(gl.float32, [SIZE, SIZE], shared)
    ampere.async_copy.async_load(tile, source + places)
    ampere.async_copy.commit_group()
    if not WRONG:
        ampere.async_copy.wait_group(0)
    values = tile.load(layout)
    ampere.async_copy.wait_group(0)
    gl.store(target + places, values * 2)


@gluon.jit
def product(source, target, WRONG: gl.constexpr):
    """Overwrites an operand that wgmma still reads."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([SIZE, SIZE], gl.float16)
    rows = gl.arange(0, SIZE, gl.SliceLayout(1, layout))[:, None]
    places = rows * SIZE + gl.arange(0, SIZE, gl.SliceLayout(0, layout))[None, :]
    values = gl.load(source + places).to(gl.float16)
    tile = gl.allocate_shared_memory(gl.float16, [SIZE, SIZE], shared)
    tile.store(values)
    fence_async_shared()
    zeros = gl.zeros([SIZE, SIZE], gl.float32, sums)
    result = hopper.warpgroup_mma(tile, tile, zeros, is_async=True)
    if not WRONG:
        result = hopper.warpgroup_mma_wait(num_outstanding=0, deps=(result, ))
    tile.store(values * 2)
    result = hopper.warpgroup_mma_wait(num_outstanding=0, deps=(result, ))
    gl.store(target + places, gl.convert_layout(result, layout))


@gluon.jit
def phase(source, target, WRONG: gl.constexpr):
    """Waits for a phase that never ends."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(gl.float32, source.block_type.shape, source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, source.block_type.nbytes + (4 if WRONG else 0))
    tma.async_load(source, [0, 0], bar, tile)
    mbarrier.wait(bar, phase=0)
    tile.store(tile.load(layout) * 2)
    fence_async_shared()
    tma.async_store(target, [0, 0], tile)
    tma.store_wait(pendings=0)


@gluon.jit
def produce(source, tiles, full, empty, WRONG: gl.constexpr):
    """Brings the tiles of the source one after the other into a ring of two."""
    for i in gl.static_range(ROUNDS):
        if WRONG != NO_WAIT:
            mbarrier.wait(empty.index(i % 2), phase=(i // 2 + 1) % 2)
        mbarrier.expect(full.index(i % 2), source.block_type.nbytes)
        tma.async_load(source, [i * SIZE, 0], full.index(i % 2), tiles.index(i % 2))


@gluon.jit
def consume(target, tiles, full, empty, WRONG: gl.constexpr):
    """Adds up what the ring brings. The fence makes each load end before the next copy into its slot."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    total = gl.zeros([SIZE, SIZE], gl.float32, layout)
    for i in gl.static_range(ROUNDS):
        mbarrier.wait(full.index(i % 2), phase=i // 2 % 2)
        total += tiles.index(i % 2).load(layout)
        if WRONG != NO_FENCE:
            fence_async_shared()
        mbarrier.arrive(empty.index(i % 2), count=1)
    rows = gl.arange(0, SIZE, gl.SliceLayout(1, layout))[:, None]
    gl.store(target + rows * SIZE + gl.arange(0, SIZE, gl.SliceLayout(0, layout))[None, :], total)


@gluon.jit
def ring(source, target, WRONG: gl.constexpr):
    """A warp-specialised ring: the producer does not wait until a slot is empty, or the consumer has no fence."""
    tiles = gl.allocate_shared_memory(gl.float32, [2] + source.block_type.shape, source.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize([
        (consume, (target, tiles, full, empty, WRONG)),
        (produce, (source, tiles, full, empty, WRONG)),
    ], [1], [24])


@triton.jit
def atomics(source, target, WRONG: tl.constexpr):
    """Blocks add to the same numbers, without atomic additions."""
    places = tl.arange(0, 64)
    values = tl.load(source + tl.program_id(0) * 64 + places) * 0 + 1
    if WRONG:
        tl.store(target + places, tl.load(target + places) + values)
    else:
        tl.atomic_add(target + places, values)


@triton.jit
def mask(source, target, WRONG: tl.constexpr):
    """Reads and writes past the end of an array."""
    places = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    inside = places < (5000 if WRONG else 4096)
    tl.store(target + places, tl.load(source + places, inside) * 2, inside)


# ---- their launches ----


def workspace(size, _alignment, _stream):
    """The global memory in which ConSan keeps its state. Without an allocator Triton refuses the launch."""
    return torch.zeros(size, device="cuda", dtype=torch.int8)


SHARED = {"tma_load", "tma_store", "phase"}


def run(name, wrong):
    """Launches a case. Its right form doubles 64 x 64 numbers, unless the case says otherwise."""
    triton.set_allocator(workspace)
    _allocation.set_profile_allocator(workspace)
    kernel = ring if name == "release" else globals()[name]
    rows = ROUNDS.value * 64  # of the ring's source
    x = torch.randn(rows if kernel is ring else 64, 64, device="cuda")
    out = torch.zeros(64, 64, device="cuda")
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float32)

    def mapped(tensor):
        return TensorDescriptor(tensor, list(tensor.shape), [64, 1], [64, 64], layout)

    x[:, 32:] = x[:, :32]  # a box is at most 128 bytes wide: see mapped
    if name in SHARED:
        kernel[(1,)](mapped(x), mapped(out), WRONG=wrong, num_warps=4)
    elif kernel is ring:
        mistake = NO_WAIT if name == "ring" else NO_FENCE
        kernel[(1,)](mapped(x), out, WRONG=mistake.value if wrong else 0, num_warps=4)
    elif name == "atomics":
        kernel[(64,)](x, out, WRONG=wrong)
    elif name == "mask":
        kernel[(5,)](x, out, WRONG=wrong)
    else:
        kernel[(1,)](x, out, WRONG=wrong, num_warps=4)
    torch.cuda.synchronize()
    if wrong:
        return
    expected = {"product": lambda: x.half().float() @ x.half().float(), "tma_store": lambda: torch.ones_like(x)}
    expected["ring"] = expected["release"] = lambda: x.reshape(-1, 64, 64).sum(0)
    if name == "atomics":
        assert (out[0] == 64).all()
    else:
        torch.testing.assert_close(out, expected.get(name, lambda: 2 * x)(), rtol=1e-3, atol=1e-3)


CASES = ["tma_load", "tma_store", "copies", "product", "phase", "ring", "release", "atomics", "mask"]


# ---- the table ----

MODES = {
    "plain": ({}, []),
    "ConSan": ({"TRITON_INSTRUMENTATION_MODE": "consan", "TRITON_ENABLE_EXPERIMENTAL_CONSAN": "1"}, []),
    "GSan": ({}, ["-m", "triton.tools.gsan"]),
}
SAYS = re.compile(r"assert|race|deadlock|illegal|outstanding|error", re.IGNORECASE)


def judge(job):
    """Runs a case in a process of its own, because a failed assertion of a kernel ends a process's use of the GPU."""
    mode, name, form = job
    variables, command = MODES[mode]
    try:
        done = subprocess.run(
            [sys.executable, *command, os.path.abspath(__file__), name, *form],
            env={**os.environ, "CUDA_LAUNCH_BLOCKING": "1", "PYTHONWARNINGS": "ignore", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=40,
            check=False,
        )
        code, text = done.returncode, done.stdout
    except subprocess.TimeoutExpired as stopped:
        code, text = "hangs", (stopped.stdout or b"").decode(errors="replace")
    if code == 0 and "right\n" in text:
        return f"{mode:7} {name:10} {' '.join(form) or 'right':6} nothing"
    said = [line for line in text.splitlines() if SAYS.search(line)] or text.splitlines()[-1:]
    return "\n    ".join([f"{mode:7} {name:10} {' '.join(form) or 'right':6} exit {code}", *said[:2], *said[-1:]])


def table(cases):
    """All cases in all modes, several at a time."""
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "Triton", triton.__version__)
    modes = [mode for mode in MODES if mode != "GSan" or importlib.util.find_spec("triton.tools.gsan")]
    jobs = [(mode, name, form) for mode in modes for name in cases for form in ([], ["wrong"])]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for line in pool.map(judge, jobs):
            print(line[:600], flush=True)


def main():
    """The table, or one case."""
    if len(sys.argv) < 2:
        table(CASES)
        return
    run(sys.argv[1], sys.argv[2:] == ["wrong"])
    print("right")


if __name__ == "__main__":
    main()
