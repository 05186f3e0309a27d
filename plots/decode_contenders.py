"""What peers.py --pass=decode times. A contender's prepare(problem) -> call is as in contenders.py, on a problem of
decode_problem.py; call() queues the kernels of one decode step and returns O. `cache` says which cache it reads: "bf16"
or "e4m3".

All read the same tensors. PyTorch's attention has neither lengths nor pages, so it takes part where all sequences are
full.
"""
import ctypes
import os
from typing import NamedTuple

from contenders import (BACKENDS, Refused, ScaledCodes, current_stream, hopper_ladder, library_call, pytorch_version,
                        refusals)
from flashinfer_peer import flashinfer_refuses, flashinfer_workspace

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


# ---- the stages: libhopper_ladder.so, through common/library/hopper_ladder.py ----

CACHES = {hopper_ladder.BF16: "bf16", hopper_ladder.E4M3: "e4m3"}


def decode_stages(library):
    """The library's decode stages, by number; none where it is from before it had any."""
    return {stage.number.decode(): stage for stage in hopper_ladder.stages(library) if stage.decode}


def decode_stage(library, stage):
    cache_name = CACHES[stage.type]

    def prepare(problem):
        cache, output = getattr(problem, cache_name), new_decode_output(problem)
        k_scale, v_scale = cache.scales or (None, None)
        call = hopper_ladder.decode(problem.q, cache.k, cache.v, output, lengths=problem.lengths,
                                    block_table=problem.block_table, k_scale=k_scale, v_scale=v_scale,
                                    stage=stage.number.decode())
        return library_call(library, library.hl_attention_decode, call, output)

    return DecodeContender(stage.name.decode(), prepare, cache=cache_name)


# ---- reading alone: build/libread.so, made of plots/read_rate.c ----


def load_readers(path):
    """OSError where it cannot be loaded, AttributeError where it is another library."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.read_cache.restype = ctypes.c_char_p
    address = ctypes.c_void_p
    library.read_cache.argtypes = [address, address, ctypes.c_size_t, address, ctypes.c_int, address]
    return library


def reads(library, problem, cache_name, copies):
    """A call that reads the bytes of the problem's keys and values, and computes nothing. They are the first ones of
    the two tensors."""
    cache, output = getattr(problem, cache_name), new_decode_output(problem)
    size = ELEMENT_SIZES[cache_name] * problem.point.used_elements()
    arguments = cache.k.data_ptr(), cache.v.data_ptr(), size, output.data_ptr(), int(copies), current_stream()

    def run():
        failure = library.read_cache(*arguments)
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


# ---- FlashInfer: flashinfer_peer.py ----

FLASHINFER_PAGE = 16  # FlashInfer shares out pages among blocks, so a sequence needs many


def in_pages(problem, cache):
    """K, V and the pages of each sequence: those of the problem, or a view of a cache without pages as one in pages.
    The pages of a key head lie one after the other there, and its neighbour's begin `keys` rows further on."""
    point, tensors = problem.point, (cache.k, cache.v)
    if point.page:
        return tensors, problem.block_table.tolist()
    if point.keys % FLASHINFER_PAGE:
        raise Refused(f"FlashInfer gets pages of {FLASHINFER_PAGE} keys")
    each, page = point.keys // FLASHINFER_PAGE, FLASHINFER_PAGE * point.head_dim
    sequence = point.kv_heads * each  # pages from one to the next
    shape = sequence * (point.batch - 1) + each, point.kv_heads, FLASHINFER_PAGE, point.head_dim
    strides = page, point.keys * point.head_dim, point.head_dim, 1
    return (tuple(tensor.as_strided(shape, strides) for tensor in tensors),
            [list(range(sequence * b, sequence * b + each)) for b in range(point.batch)])


def flashinfer_decode(package, cache="bf16"):
    """FlashInfer's plan, which the host makes once for many layers, is not in the time. Nor is the scale of an e4m3 V,
    which FlashInfer would multiply O by in another kernel: a model can have it in the next layer's weights."""
    def prepare(problem):
        import torch

        point, scales = problem.point, getattr(problem, cache).scales
        if point.queries > 1:
            raise Refused("FlashInfer's decode takes one query a sequence")
        (k, v), table = in_pages(problem, getattr(problem, cache))
        page, lengths = k.shape[2], point.lengths()
        counts = [-(-length // page) for length in lengths]
        ends = [sum(counts[:b]) for b in range(point.batch + 1)]
        pages = [number for row, count in zip(table, counts) for number in row[:count]]
        last = [length - (count - 1) * page for length, count in zip(lengths, counts)]
        indptr, indices, last = (torch.tensor(numbers, dtype=torch.int32, device="cuda")
                                 for numbers in (ends, pages, last))
        try:
            wrapper = package.BatchDecodeWithPagedKVCacheWrapper(flashinfer_workspace(), "HND", use_tensor_cores=True)
            wrapper.plan(indptr, indices, last, point.heads, point.kv_heads, point.head_dim, page,
                         q_data_type=torch.bfloat16, kv_data_type=k.dtype, sm_scale=point.head_dim**-0.5)
        except Exception as error:  # pylint: disable=broad-except
            raise flashinfer_refuses(error) from error
        q = problem.q[:, :, 0].contiguous()
        k_scale = float(scales[0]) if scales else None

        def run():
            with refusals():
                output = wrapper.run(q, (k, v), k_scale=k_scale)[:, :, None]
            return ScaledCodes(output, scales[1]) if scales else output

        return run

    name = "FlashInfer" if cache == "bf16" else "FlashInfer e4m3"
    return DecodeContender(name, prepare, lambda: f"FlashInfer {package.__version__}", cache)
