"""What peers.py --pass=decode times. A contender's prepare(problem) -> call is as in contenders.py, on a problem of
decode_problem.py; call() queues the kernels of one decode step and returns O. `cache` says which cache it reads: "bf16"
or "e4m3".

All read the same tensors. PyTorch's attention has neither lengths nor pages, so it takes part where all sequences are
full.
"""
import ctypes
import os
from typing import NamedTuple

from contenders import BACKENDS, Refused, ScaledCodes, current_stream, pytorch_version, refusals

ELEMENT_SIZES = {"bf16": 2, "e4m3": 1}


class DecodeContender(NamedTuple):
    name: str
    prepare: object
    version: object = str  # "" for the project's own
    cache: str = "bf16"


def new_decode_output(problem):
    """Room for O. It holds NaN, so that elements which a contender does not write are found."""
    import torch

    return torch.full(problem.q.shape, float("nan"), dtype=torch.bfloat16, device=problem.q.device)


def pointer(tensor):
    return None if tensor is None else tensor.data_ptr()


def workspace_of(size):
    """Device memory, or None where none is needed."""
    import torch

    return torch.empty(size, dtype=torch.uint8, device="cuda") if size else None


# ---- the stages: build/libdecode.so, made of plots/decode_stages.c ----


class DecodeCall(ctypes.Structure):
    """That of decode_stages.c."""
    _fields_ = [(name, ctypes.c_int) for name in (
        "stage", "batch", "heads", "kv_heads", "keys", "head_dim", "queries", "page", "pages")] + [
            (name, ctypes.c_void_p) for name in (
                "q", "k", "v", "o", "lengths", "block_table", "k_scale", "v_scale", "workspace", "stream")]


def load_decode_stages(path):
    """OSError where it cannot be loaded, AttributeError where it is another library."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.decode_stage.restype = library.decode_forward.restype = library.decode_read.restype = ctypes.c_char_p
    library.decode_stage.argtypes = [ctypes.c_int] + 3 * [ctypes.POINTER(ctypes.c_int)]
    library.decode_workspace.restype = ctypes.c_size_t
    library.decode_workspace.argtypes = library.decode_forward.argtypes = [ctypes.POINTER(DecodeCall)]
    library.decode_read.argtypes = [ctypes.POINTER(DecodeCall), ctypes.c_size_t, ctypes.c_int]
    return library


class DecodeStage(NamedTuple):
    index: int
    name: str
    cache: str
    ragged: bool
    queries: int  # at most


def decode_stages(library):
    """All stages of the library, by number."""
    found = {}
    while True:
        numbers = [ctypes.c_int() for _ in range(3)]
        name = library.decode_stage(len(found), *map(ctypes.byref, numbers))
        if name is None:
            return found
        e4m3, ragged, queries = (number.value for number in numbers)
        found[name.decode().split("-")[0]] = DecodeStage(len(found), name.decode(), "e4m3" if e4m3 else "bf16",
                                                         bool(ragged), queries)


def decode_call(problem, cache, index, output):
    """The call of a stage with an index, without workspace."""
    point = problem.point
    k_scale, v_scale = (scale.data_ptr() for scale in cache.scales) if cache.scales else (None, None)
    return DecodeCall(index, point.batch, point.heads, point.kv_heads, point.keys, point.head_dim, point.queries,
                      point.page, problem.pages, problem.q.data_ptr(), cache.k.data_ptr(), cache.v.data_ptr(),
                      output.data_ptr(), pointer(problem.lengths), pointer(problem.block_table), k_scale, v_scale,
                      stream=current_stream())


def decode_stage(library, stage):
    def prepare(problem):
        point = problem.point
        if point.queries > stage.queries:
            raise Refused(f"it takes at most {stage.queries} {'query' if stage.queries == 1 else 'queries'} a sequence")
        if (point.ragged or point.page) and not stage.ragged:
            raise Refused("it has neither lengths nor pages")
        output = new_decode_output(problem)
        call = decode_call(problem, getattr(problem, stage.cache), stage.index, output)
        call.keeps = workspace_of(library.decode_workspace(call))
        call.workspace = pointer(call.keeps)

        def run():
            failure = library.decode_forward(call)
            if failure:
                raise Refused(failure.decode())
            return output

        return run

    return DecodeContender(stage.name, prepare, cache=stage.cache)


def reads(library, problem, cache, copies):
    """A call that reads the bytes of the problem's keys and values, and computes nothing. They are the first ones of
    the two tensors."""
    output = new_decode_output(problem)
    call = decode_call(problem, getattr(problem, cache), 0, output)
    size = ELEMENT_SIZES[cache] * problem.point.used_elements()

    def run():
        failure = library.decode_read(call, size, int(copies))
        if failure:
            raise Refused(failure.decode())
        return output

    return run


# ---- PyTorch: backends of torch.nn.functional.scaled_dot_product_attention ----


def decode_pytorch(name):
    def prepare(problem):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        point, (k, v, _) = problem.point, problem.bf16
        if point.ragged or point.page:
            raise Refused("PyTorch's attention has neither lengths nor pages")
        if point.queries > 1 and name != "FlashAttention-2":
            raise Refused("PyTorch's causal mask begins at the first key")
        backend = getattr(SDPBackend, BACKENDS[name])

        def one_query():
            with refusals(), sdpa_kernel(backend):
                return scaled_dot_product_attention(problem.q, k, v, enable_gqa=point.heads > point.kv_heads)

        def several():  # FlashAttention-2's own causal mask ends at the last key
            rows = [tensor.transpose(1, 2) for tensor in (problem.q, k, v)]
            with refusals():
                return torch.ops.aten._flash_attention_forward(  # pylint: disable=protected-access
                    *rows, None, None, point.queries, point.keys, 0.0, True, False,
                    scale=point.head_dim**-0.5)[0].transpose(1, 2)

        return one_query if point.queries == 1 else several

    return DecodeContender(name, prepare, lambda: pytorch_version(name))


# ---- FlashAttention-3: common/baselines/flash-attention-3/decode_driver.cu ----


class FlashAttention3Decode(ctypes.Structure):
    """That of flash_attention_3_decode.h."""
    _fields_ = [(name, ctypes.c_int) for name in (
        "batch", "heads", "kv_heads", "keys", "head_dim", "queries", "page", "pages")] + [
            (name, ctypes.c_void_p) for name in ("q", "k", "v", "o", "lengths", "block_table", "workspace", "stream")]


def load_flash_attention_3_decode(path):
    """OSError where it cannot be loaded, AttributeError where it is another library."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.flash_attention_3_decode_version.restype = ctypes.c_char_p
    library.flash_attention_3_decode_workspace.restype = ctypes.c_size_t
    for function in library.flash_attention_3_decode_workspace, library.flash_attention_3_decode:
        function.argtypes = [ctypes.POINTER(FlashAttention3Decode)]
    return library


def flash_attention_3_decode(library):
    def prepare(problem):
        point, cache = problem.point, problem.bf16
        output = new_decode_output(problem)
        call = FlashAttention3Decode(point.batch, point.heads, point.kv_heads, point.keys, point.head_dim,
                                     point.queries, point.page, problem.pages, problem.q.data_ptr(),
                                     cache.k.data_ptr(), cache.v.data_ptr(), output.data_ptr(),
                                     pointer(problem.lengths), pointer(problem.block_table), stream=current_stream())
        call.keeps = workspace_of(library.flash_attention_3_decode_workspace(call))
        call.workspace = pointer(call.keeps)

        def run():
            code = library.flash_attention_3_decode(call)
            if code:
                raise Refused(f"FlashAttention-3 returned {code}")
            return output

        return run

    return DecodeContender("FlashAttention-3", prepare, lambda: library.flash_attention_3_decode_version().decode())


# ---- FlashInfer: its Python package, which compiles a kernel when it is first asked for ----


def load_flashinfer():
    """The package; Refused, with what is missing, where it cannot be imported."""
    try:
        import flashinfer
        return flashinfer
    except Exception as error:  # pylint: disable=broad-except  # whatever another project's modules raise
        raise Refused(f"it cannot be imported: {' '.join(str(error).split())[:160]}") from error


def flashinfer_decode(package, cache="bf16"):
    """A cache that is not in pages is to FlashInfer one page a sequence. Its plan, which the host makes once for many
    layers, is not in the time. Nor is the scale of an e4m3 V, which FlashInfer would multiply O by in another kernel: a
    model can have it in the next layer's weights."""
    def prepare(problem):
        import torch

        point, (k, v, scales) = problem.point, getattr(problem, cache)
        if point.queries > 1:
            raise Refused("FlashInfer's decode takes one query a sequence")
        page, lengths = point.page or point.keys, point.lengths()
        counts = [-(-length // page) for length in lengths]
        ends = [sum(counts[:b]) for b in range(point.batch + 1)]
        table = problem.block_table.tolist() if point.page else [[b] for b in range(point.batch)]
        pages = [number for row, count in zip(table, counts) for number in row[:count]]
        last = [length - (count - 1) * page for length, count in zip(lengths, counts)]
        indptr, indices, last = (torch.tensor(numbers, dtype=torch.int32, device="cuda")
                                 for numbers in (ends, pages, last))
        try:
            wrapper = package.BatchDecodeWithPagedKVCacheWrapper(
                torch.empty(128 << 20, dtype=torch.uint8, device="cuda"), "HND", use_tensor_cores=True)
            wrapper.plan(indptr, indices, last, point.heads, point.kv_heads, point.head_dim, page,
                         q_data_type=torch.bfloat16, kv_data_type=k.dtype, sm_scale=point.head_dim**-0.5)
        except Exception as error:  # pylint: disable=broad-except
            raise Refused(f"FlashInfer: {' '.join(str(error).split())[:160]}") from error
        q = problem.q[:, :, 0].contiguous()
        k_scale = float(scales[0]) if scales else None

        def run():
            with refusals():
                output = wrapper.run(q, (k, v), k_scale=k_scale)[:, :, None]
            return ScaledCodes(output, scales[1]) if scales else output

        return run

    name = "FlashInfer" if cache == "bf16" else "FlashInfer e4m3"
    return DecodeContender(name, prepare, lambda: f"FlashInfer {package.__version__}", cache)
