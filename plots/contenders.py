"""What peers.py times: each contender is a name and a function that makes, for one problem, the call to time.

    prepare(problem) -> call        call() queues one forward pass on PyTorch's current stream and returns O
                                    Refused, with the reason, where the contender cannot do the problem
    version() -> text               which release it is, where that is known

A problem is one of problem.py, in fp16 or in e4m3. O is fp16; in e4m3 FlashAttention-3's is bf16, and cuDNN's is
ScaledCodes. Those of the backward pass are in backward.py.
"""
import contextlib
import ctypes
import os
import sys
from typing import NamedTuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common", "library"))

import hopper_ladder


class Refused(Exception):
    """A contender cannot do a problem; the text says why."""


class Contender(NamedTuple):
    name: str
    prepare: object
    version: object = str  # "" for the project's own


class ScaledCodes(NamedTuple):
    """An output in e4m3: an element's value is its code's times the scale."""
    codes: object
    scale: object  # a tensor of one fp32 number

    def values(self):
        return self.codes.float() * self.scale


def new_output(problem, element="float16"):
    """Room for O. It holds NaN, so that elements which a contender does not write are found."""
    import torch

    return torch.full(problem.q.shape, float("nan"), dtype=getattr(torch, element), device=problem.q.device)


POINTERS = {"f16": 4, "e4m3": 7}  # by the problem's type: how many pointers_of returns


def pointers_of(problem, output):
    """Pointers to Q, K, V and O, then in e4m3 to the scales of Q, K and V."""
    return [tensor.data_ptr() for tensor in (problem.q, problem.k, problem.v, output, *problem.scales)]


# ---- the stages: libhopper_ladder.so, through common/library/hopper_ladder.py ----


F16_STAGE = "10-stale-max"  # takes turns with the e4m3 stages, on the same values in fp16


def number_of(name):
    """A stage's number is what its name begins with: "02b-shared-tiles" is "02b"."""
    return name.split("-")[0]


def is_stage(name):
    return name[:1].isdigit()


def reads_f16(number, dtype):
    """Whether the stage with a number reads fp16 where the problems are of a type: f16 or e4m3."""
    return dtype == "f16" or number == number_of(F16_STAGE)


def does(stage, kind):
    """Whether a stage does problems of a kind: f16, e4m3 or backward."""
    if stage.decode:
        return kind == "decode"
    if stage.backward:
        return kind == "backward"
    is_f16 = stage.type == hopper_ladder.F16
    return kind != "backward" and is_f16 == reads_f16(number_of(stage.name.decode()), kind)


def type_of(library, number):
    """The type of the tensors that the stage with a number reads, one of hopper_ladder's."""
    return next(stage.type for stage in hopper_ladder.stages(library) if stage.number.decode() == number)


def stages_of(library, kind="f16"):
    """The stages of the library that do problems of a kind, as {number: name}."""
    names = [stage.name.decode() for stage in hopper_ladder.stages(library) if does(stage, kind)]
    return {number_of(name): name for name in names}


def current_stream():
    import torch

    return torch.cuda.current_stream().cuda_stream


def library_call(library, function, call, result):
    """The call of a function of the library, which returns its result. Refused if it would not do it."""
    call.stream = current_stream()

    def run():
        if function(call):
            raise Refused(library.hl_error().decode())
        return result

    call.flags = hopper_ladder.CHECK
    run()
    call.flags = 0
    return run


def stage(library, number, name, dtype="f16"):
    """The library's stage with a number, as it is to be called."""
    is_f16 = reads_f16(number, dtype)

    def prepare(problem):
        problem = problem.dequantised if is_f16 and problem.scales else problem
        output = new_output(problem)
        call = hopper_ladder.call(problem.q, problem.k, problem.v, output, problem.causal, number)
        if not is_f16:
            call.type = type_of(library, number)
            if call.type == hopper_ladder.E4M3_SCORES:
                call.v = hopper_ladder.tensor(problem.dequantised.v)
            q_scale, k_scale, v_scale = (hopper_ladder.Scale(scale.data_ptr(), 0) for scale in problem.scales)
            call.q_scale, call.k_scale = q_scale, k_scale
            if call.type == hopper_ladder.E4M3:
                call.v_scale = v_scale
        return library_call(library, library.hl_attention, call, output)

    return Contender(name, prepare)


# ---- another kernel: a shared library with a function that returns 0 for success ----
#
#   int attn_fwd(int B, int H, int S, const void *q, const void *k, const void *v, void *o, int causal, void *stream)
#   int attn_fwd_e4m3(int B, int H, int S, const void *q, const void *k, const void *v, void *o, const float *q_scale,
#                     const float *k_scale, const float *v_scale, int causal, void *stream)
#
# All pointers are to the GPU's memory, and O is fp16 in both.

ATTN_FWD = {"f16": "attn_fwd", "e4m3": "attn_fwd_e4m3"}


def parse_kernel(text):
    """"NAME=FILE", or "NAME:64=FILE,128=FILE" with a file for each head dimension, as (name, {head_dim: file}).
    ValueError where it is neither."""
    if ":" not in text.split("=")[0]:
        name, equals, path = text.partition("=")
        files = {64: path, 128: path}
    else:
        name, _, rest = text.partition(":")
        parts = [part.partition("=") for part in rest.split(",")]
        files = {int(part[0]): part[2] for part in parts if part[0] in ("64", "128")}
        equals = len(files) == len(parts)
    if not name or not equals or not all(files.values()) or "," in name:
        raise ValueError(f"'{text}' is no contender; NAME=FILE.so or NAME:64=FILE.so,128=FILE.so is allowed")
    missing = [path for path in files.values() if not os.path.isfile(path)]
    if missing:
        raise ValueError(f"'{text}': there is no file {missing[0]}")
    return name, files


def kernel(name, files, dtype="f16"):
    """OSError where a file cannot be loaded, AttributeError where it lacks the function."""
    functions = functions_of(files, ATTN_FWD[dtype], POINTERS[dtype])

    def prepare(problem):
        output = new_output(problem)
        return kernel_call(functions, ATTN_FWD[dtype], problem, pointers_of(problem, output), output)

    return Contender(name, prepare)


def functions_of(files, symbol, pointers):
    """The function of each head dimension's library, which takes so many pointers to tensors."""
    functions = {}
    for head_dim, path in files.items():
        function = getattr(ctypes.CDLL(os.path.abspath(path)), symbol)
        function.argtypes = 3 * [ctypes.c_int] + pointers * [ctypes.c_void_p] + [ctypes.c_int, ctypes.c_void_p]
        functions[head_dim] = function
    return functions


def kernel_call(functions, symbol, problem, pointers, output):
    """The call of such a function, which returns its output."""
    batch, heads, seqlen, head_dim = problem.q.shape
    if head_dim not in functions:
        raise Refused(f"no library for head dim {head_dim}")
    stream = current_stream()

    def call():
        code = functions[head_dim](batch, heads, seqlen, *pointers, int(problem.causal), stream)
        if code:
            raise Refused(f"{symbol} returned {code}")
        return output

    return call


# ---- FlashAttention-3: common/baselines/flash-attention-3, which `make flash-attention-3` builds ----

FLASH_ATTENTION_3, FLASH_ATTENTION_3_FP8 = "FlashAttention-3", "FlashAttention-3 FP8"


def load_flash_attention_3(path):
    """OSError where it cannot be loaded, AttributeError where it is another library."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.flash_attention_3_version.restype = ctypes.c_char_p
    library.flash_attention_3_workspace.restype = ctypes.c_size_t
    return library


def flash_attention_3(library, dtype="f16"):
    """AttributeError where the library was built before it had this type."""
    name, element = (FLASH_ATTENTION_3, "float16") if dtype == "f16" else (FLASH_ATTENTION_3_FP8, "bfloat16")
    forward = library.flash_attention_3 if dtype == "f16" else library.flash_attention_3_e4m3
    forward.argtypes = 5 * [ctypes.c_int] + [ctypes.c_float] + (POINTERS[dtype] + 2) * [ctypes.c_void_p]

    def prepare(problem):
        import torch

        batch, heads, seqlen, head_dim = problem.q.shape
        output = new_output(problem, element)
        size = library.flash_attention_3_workspace(batch, heads, seqlen)
        workspace = torch.empty(size, dtype=torch.uint8, device="cuda")
        pointers = pointers_of(problem, output)
        scale, stream = head_dim**-0.5, current_stream()

        def call():
            code = forward(batch, heads, seqlen, head_dim, int(problem.causal), scale, *pointers, workspace.data_ptr(),
                           stream)
            if code:
                raise Refused(f"{name} returned {code}")
            return output

        return call

    return Contender(name, prepare, lambda: library.flash_attention_3_version().decode())


# ---- a contender that has several kernels ----

TRIES = 3


def milliseconds_of(call):
    """The time of a call that has run once, or None if it cannot run."""
    import torch

    try:
        call()
    except Exception:  # pylint: disable=broad-except  # too much shared memory, or a kernel that its compiler fails at
        return None
    times = []
    for _ in range(TRIES):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return min(times)


def fastest_of(calls, reason):
    """The fastest of some calls. Refused, with a reason, where none can run."""
    timed = [(milliseconds_of(call), call) for call in calls]
    able = [pair for pair in timed if pair[0] is not None]
    if not able:
        raise Refused(reason)
    return min(able, key=lambda pair: pair[0])[1]


# ---- CUTLASS's example 88: common/baselines/cutlass-fmha, which `make cutlass-fmha` builds ----

CUTLASS, CUTLASS_KERNELS = "CUTLASS", 2


def load_cutlass_fmha(path):
    """OSError where it cannot be loaded, AttributeError where it is another library."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.cutlass_fmha_version.restype = ctypes.c_char_p
    library.cutlass_fmha.argtypes = 6 * [ctypes.c_int] + 6 * [ctypes.c_void_p]
    return library


def cutlass_fmha(library):
    def prepare(problem):
        import torch

        output, shape = new_output(problem), problem.q.shape
        lse = torch.empty(shape[:3], dtype=torch.float32, device="cuda")
        pointers, stream = [*pointers_of(problem, output), lse.data_ptr()], current_stream()

        def launch(kernel):
            def call():
                code = library.cutlass_fmha(kernel, *shape, int(problem.causal), *pointers, stream)
                if code:
                    raise Refused(f"CUTLASS's example returned {code}")
                return output, lse

            return lambda: call()[0]  # which keeps the log-sum-exp's room

        calls = [launch(kernel) for kernel in range(CUTLASS_KERNELS)]
        return fastest_of(calls, "CUTLASS's example refuses this problem")

    return Contender(CUTLASS, prepare, lambda: library.cutlass_fmha_version().decode())


# ---- PyTorch: backends of torch.nn.functional.scaled_dot_product_attention ----

BACKENDS = {"FlashAttention-2": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION", "math": "MATH"}


@contextlib.contextmanager
def refusals():
    """PyTorch's errors as Refused."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise Refused("out of GPU memory") from error
    except RuntimeError as error:
        raise Refused(str(error).splitlines()[0]) from error


def pytorch(name):
    def prepare(problem):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        backend = getattr(SDPBackend, BACKENDS[name])

        def call():
            with refusals(), sdpa_kernel(backend):
                return scaled_dot_product_attention(problem.q, problem.k, problem.v, is_causal=problem.causal)

        return call

    return Contender(name, prepare, lambda: pytorch_version(name))


def pytorch_version(name):
    import torch

    release = f"PyTorch {torch.__version__}"
    digits = torch.backends.cudnn.version()  # 91002: 9.10.2
    cudnn = f"cuDNN {digits // 10000}.{digits // 100 % 100}.{digits % 100}"
    return f"{cudnn} with {release}" if name == "cuDNN" else release
