"""What peers.py times: each contender is a name and a function that makes, for one problem, the call to time.

    prepare(problem) -> call        call() queues one forward pass on PyTorch's current stream and returns O
                                    Refused, with the reason, where the contender cannot do the problem
    version() -> text               which release it is, where that is known

A problem has fp16 tensors q, k, v of [batch][heads][seqlen][head_dim] on the GPU, and causal.
"""
import ctypes
import os
from typing import NamedTuple


class Refused(Exception):
    """A contender cannot do a problem; the text says why."""


class Contender(NamedTuple):
    name: str
    prepare: object
    version: object = str  # "" for the project's own


# ---- the stages: libhopper_ladder.so, through its C interface (common/library/hopper_ladder.h) ----


class Stage(ctypes.Structure):
    # The number is a text; in builds of before 2026-11-22 an int, which is smaller than any address.
    # inputs is 0 for fp16, 1 for e4m3. Builds without hl_attention_e4m3 do not have it, and builds without
    # hl_attention_backward have no `backward`.
    _fields_ = [("number", ctypes.c_size_t), ("name", ctypes.c_char_p), ("title", ctypes.c_char_p),
                ("inputs", ctypes.c_int), ("backward", ctypes.c_int32)]


class Shape(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("batch", "heads", "seqlen", "head_dim", "causal")]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("stride", ctypes.c_int64 * 4)]


def load_library(path):
    """The library with the types of its functions; OSError where it cannot be loaded, AttributeError where it is
    another."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.hl_error.restype = ctypes.c_char_p
    library.hl_stage.restype = ctypes.POINTER(Stage)
    library.number = str.encode if library.hl_stage(0).contents.number > 99 else int
    number = ctypes.c_char_p if library.number is str.encode else ctypes.c_int
    library.hl_supports.argtypes = [number, ctypes.POINTER(Shape)]
    tensors = 4 * [ctypes.POINTER(Tensor)]
    library.hl_attention.argtypes = [number, ctypes.POINTER(Shape), *tensors, ctypes.c_void_p]
    return library


def number_of(name):
    """A stage's number is what its name begins with: "02b-shared-tiles" is "02b"."""
    return name.split("-")[0]


def is_stage(name):
    return name[:1].isdigit()


def stages_of(library):
    """The stages of the library that read fp16 and do the forward pass, as {number: name}."""
    stages = [library.hl_stage(index).contents for index in range(library.hl_stage_count())]
    names = [stage.name.decode() for stage in stages
             if not (hasattr(library, "hl_attention_e4m3") and stage.inputs)
             and not (hasattr(library, "hl_attention_backward") and stage.backward)]
    return {number_of(name): name for name in names}


def view(tensor):
    """A PyTorch tensor as the library's."""
    return Tensor(tensor.data_ptr(), (ctypes.c_int64 * 4)(*tensor.stride()))


def current_stream():
    import torch

    return torch.cuda.current_stream().cuda_stream


def stage(library, number, name):
    """The library's stage with a number, as it is to be called."""
    number = library.number(number)

    def prepare(problem):
        import torch

        output = torch.full_like(problem.q, float("nan"))
        shape = Shape(*problem.q.shape, int(problem.causal))
        tensors = [view(tensor) for tensor in (problem.q, problem.k, problem.v, output)]
        stream = current_stream()
        if library.hl_supports(number, shape):
            raise Refused(library.hl_error().decode())

        def call():
            if library.hl_attention(number, shape, *tensors, stream):
                raise Refused(library.hl_error().decode())
            return output

        return call

    return Contender(name, prepare)


# ---- another kernel: a shared library with int attn_fwd(B, H, S, q, k, v, o, causal, stream), 0 for success ----


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


def kernel(name, files):
    """OSError where a file cannot be loaded, AttributeError where it has no attn_fwd."""
    functions = {}
    for head_dim, path in files.items():
        functions[head_dim] = ctypes.CDLL(os.path.abspath(path)).attn_fwd
        functions[head_dim].argtypes = 3 * [ctypes.c_int] + 4 * [ctypes.c_void_p] + [ctypes.c_int, ctypes.c_void_p]

    def prepare(problem):
        import torch

        batch, heads, seqlen, head_dim = problem.q.shape
        if head_dim not in functions:
            raise Refused(f"no library for head dim {head_dim}")
        output = torch.full_like(problem.q, float("nan"))
        pointers = [tensor.data_ptr() for tensor in (problem.q, problem.k, problem.v, output)]
        stream = current_stream()

        def call():
            code = functions[head_dim](batch, heads, seqlen, *pointers, int(problem.causal), stream)
            if code:
                raise Refused(f"attn_fwd returned {code}")
            return output

        return call

    return Contender(name, prepare)


# ---- FlashAttention-3: common/baselines/flash-attention-3, which `make flash-attention-3` builds ----

FLASH_ATTENTION_3 = "FlashAttention-3"


def load_flash_attention_3(path):
    """OSError where it cannot be loaded, AttributeError where it is another library."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.flash_attention_3_version.restype = ctypes.c_char_p
    library.flash_attention_3_workspace.restype = ctypes.c_size_t
    library.flash_attention_3.argtypes = 5 * [ctypes.c_int] + [ctypes.c_float] + 6 * [ctypes.c_void_p]
    return library


def flash_attention_3(library):
    def prepare(problem):
        import torch

        batch, heads, seqlen, head_dim = problem.q.shape
        output = torch.full_like(problem.q, float("nan"))
        size = library.flash_attention_3_workspace(batch, heads, seqlen)
        workspace = torch.empty(size, dtype=torch.uint8, device="cuda")
        pointers = [tensor.data_ptr() for tensor in (problem.q, problem.k, problem.v, output)]
        scale, stream = head_dim**-0.5, current_stream()

        def call():
            code = library.flash_attention_3(batch, heads, seqlen, head_dim, int(problem.causal), scale, *pointers,
                                             workspace.data_ptr(), stream)
            if code:
                raise Refused(f"flash_attention_3 returned {code}")
            return output

        return call

    return Contender(FLASH_ATTENTION_3, prepare, lambda: library.flash_attention_3_version().decode())


# ---- PyTorch: backends of torch.nn.functional.scaled_dot_product_attention ----

BACKENDS = {"FlashAttention-2": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION", "math": "MATH"}


def pytorch(name):
    def prepare(problem):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        backend = getattr(SDPBackend, BACKENDS[name])

        def call():
            try:
                with sdpa_kernel(backend):
                    return scaled_dot_product_attention(problem.q, problem.k, problem.v, is_causal=problem.causal)
            except torch.OutOfMemoryError as error:
                raise Refused("out of GPU memory") from error
            except RuntimeError as error:
                raise Refused(str(error).splitlines()[0]) from error

        return call

    def version():
        import torch

        release = f"PyTorch {torch.__version__}"
        digits = torch.backends.cudnn.version()  # 91002: 9.10.2
        cudnn = f"cuDNN {digits // 10000}.{digits // 100 % 100}.{digits % 100}"
        return f"{cudnn} with {release}" if name == "cuDNN" else release

    return Contender(name, prepare, version)
