"""libhopper_ladder.so from Python: hopper_ladder.h's structures for ctypes, and PyTorch's tensors as the library's.

    library = hopper_ladder.load("libhopper_ladder.so")
    call = hopper_ladder.call(q, k, v, o, causal=True)      four tensors [batch, heads, seqlen, head_dim], as PyTorch's
    if library.hl_attention(call):                          attention takes them; their strides may be any
        raise RuntimeError(library.hl_error().decode())

    o = hopper_ladder.attention_decode(library, q, k_cache, v_cache, lengths=lengths, block_table=table)
"""
import ctypes
import os

F16, E4M3, E4M3_SCORES, BF16 = range(4)
DETERMINISTIC, CHECK = 1, 2


class EarlierStage(ctypes.Structure):
    """What the library tells of a stage; this much also before it had decode."""
    _fields_ = [("number", ctypes.c_char_p), ("name", ctypes.c_char_p), ("title", ctypes.c_char_p),
                ("type", ctypes.c_int), ("backward", ctypes.c_int32), ("lse", ctypes.c_int32),
                ("strided", ctypes.c_int32)]


class Stage(EarlierStage):
    _fields_ = [("decode", ctypes.c_int32), ("ragged", ctypes.c_int32), ("queries", ctypes.c_int32),
                ("head_dim", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("batch", ctypes.c_int64), ("head", ctypes.c_int64), ("row", ctypes.c_int64)]


class Scale(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("per_head", ctypes.c_int32)]


class Call(ctypes.Structure):
    _fields_ = [("stage", ctypes.c_char_p)] + [
        (name, ctypes.c_int32) for name in ("batch", "heads", "seqlen", "head_dim", "causal")
    ] + [("type", ctypes.c_int), ("scale", ctypes.c_float), ("flags", ctypes.c_uint32)] + [
        (name, Tensor) for name in ("q", "k", "v", "o")
    ] + [("lse", ctypes.c_void_p)] + [(name, Scale) for name in ("q_scale", "k_scale", "v_scale")] + [
        (name, Tensor) for name in ("d_o", "d_q", "d_k", "d_v")
    ] + [("stream", ctypes.c_void_p), ("reserved", ctypes.c_int64 * 8)]


class Decode(ctypes.Structure):
    _fields_ = [("stage", ctypes.c_char_p)] + [
        (name, ctypes.c_int32) for name in ("batch", "heads", "kv_heads", "keys", "head_dim", "queries")
    ] + [("type", ctypes.c_int), ("scale", ctypes.c_float), ("flags", ctypes.c_uint32)] + [
        (name, Tensor) for name in ("q", "o", "k", "v")
    ] + [("lengths", ctypes.c_void_p)] + [(name, ctypes.c_int32) for name in ("page", "pages", "table_row")] + [
        ("block_table", ctypes.c_void_p), ("lse", ctypes.c_void_p), ("k_scale", Scale), ("v_scale", Scale),
        ("stream", ctypes.c_void_p), ("reserved", ctypes.c_int64 * 8)]


def load(path):
    """The library with the types of its functions. OSError where it cannot be loaded; AttributeError where it is
    another, or one from before its calls were structures. One from before it had decode has no hl_attention_decode."""
    library = ctypes.CDLL(os.path.abspath(path))
    if hasattr(library, "hl_supports"):
        raise AttributeError("an older interface")
    library.hl_error.restype = ctypes.c_char_p
    has_decode = hasattr(library, "hl_attention_decode")
    library.hl_stage.restype = ctypes.POINTER(Stage if has_decode else EarlierStage)
    if has_decode:
        library.hl_attention_decode.argtypes = [ctypes.POINTER(Decode)]
    for function in library.hl_attention, library.hl_attention_backward:
        function.argtypes = [ctypes.POINTER(Call)]
    return library


def stages(library):
    found = [library.hl_stage(index).contents for index in range(library.hl_stage_count())]
    names = [name for name, _ in EarlierStage._fields_]
    return [stage if isinstance(stage, Stage) else Stage(*(getattr(stage, name) for name in names)) for stage in found]


def tensor(view):
    """A PyTorch tensor [batch, heads, seqlen, head_dim] as the library's. Its rows must have no gaps."""
    *strides, column = view.stride()
    if column != 1:
        raise ValueError(f"the last dimension has stride {column}: only 1 is allowed")
    return Tensor(view.data_ptr(), *strides)


def call(q, k, v, o, causal=False, stage=None, **others):
    """A call with these tensors. others: fields of Call, in which a PyTorch tensor stands for itself."""
    result = Call(stage.encode() if stage else None, *q.shape, int(causal), q=tensor(q), k=tensor(k), v=tensor(v),
                  o=tensor(o))
    for name, value in others.items():
        if name == "lse":
            value = value.data_ptr()
        elif name.startswith("d_"):
            value = tensor(value)
        setattr(result, name, value)
    return result


# ---- decode ----


def expect(name, view, dtype, shape):
    """A contiguous PyTorch tensor of this type and shape."""
    if str(view.dtype) != dtype or tuple(view.shape) != shape or not view.is_contiguous():
        raise ValueError(f"{name}: {view.dtype} {tuple(view.shape)}; {dtype} {shape}, contiguous, is allowed")


def cache_type(k, v):
    """HL_BF16 or HL_E4M3."""
    types = {"torch.bfloat16": BF16, "torch.float8_e4m3fn": E4M3}
    if k.dtype != v.dtype or str(k.dtype) not in types:
        raise ValueError(f"K is {k.dtype}, V {v.dtype}: both torch.bfloat16, or both torch.float8_e4m3fn, are allowed")
    return types[str(k.dtype)]


def cache_scale(name, view, batch, kv_heads):
    """One float for the tensor, or one for each head of each sequence."""
    expect(name, view, "torch.float32", (1,) if view.numel() == 1 and view.dim() == 1 else (batch, kv_heads))
    return Scale(view.data_ptr(), int(view.dim() == 2))


def set_pages(result, block_table, page, pages):
    """The fields of a cache in pages. Rows of the table may have gaps between them."""
    entries = block_table.shape[1]
    if str(block_table.dtype) != "torch.int32" or len(block_table) != result.batch or block_table.stride(1) != 1:
        raise ValueError(f"block_table: {block_table.dtype} {tuple(block_table.shape)}; torch.int32 "
                         f"({result.batch}, entries), rows without gaps, is allowed")
    result.block_table = block_table.data_ptr()
    result.page, result.pages = page, pages
    result.table_row = block_table.stride(0) if result.batch > 1 else entries
    result.keys = entries * page


def decode(q, k, v, o, *, lengths=None, block_table=None, lse=None, k_scale=None, v_scale=None, stage=None, **others):
    """A call of hl_attention_decode with these tensors:

    q, o              bf16 [batch, heads, queries, head_dim]
    k, v              bf16 or float8_e4m3fn [batch, kv_heads, keys, head_dim]; with a block_table
                      [pages, kv_heads, page, head_dim]. Strides may be any: a cache
                      [pages, page, kv_heads, head_dim] is passed as k.transpose(1, 2)
    lengths           int32 [batch]
    block_table       int32 [batch, entries]
    lse               fp32 [batch, heads, queries], which the call writes
    k_scale, v_scale  fp32 [1] or [batch, kv_heads]
    others            fields of Decode, such as keys, the most that a sequence has; without it, all there is room for
    """
    if q.dim() != 4 or k.dim() != 4:
        raise ValueError(f"q has {q.dim()} dimensions, K {k.dim()}: 4 are allowed")
    (batch, heads, queries, head_dim), (outer, kv_heads, rows, _) = q.shape, k.shape
    if str(q.dtype) != "torch.bfloat16" or q.dtype != o.dtype or o.shape != q.shape:
        raise ValueError(f"q: {q.dtype} {tuple(q.shape)}, o: {o.dtype} {tuple(o.shape)}; torch.bfloat16 of one shape "
                         "is allowed")
    if v.shape != k.shape or k.shape[3] != head_dim or (block_table is None and outer != batch):
        shapes = tuple(k.shape), tuple(v.shape), tuple(q.shape)
        raise ValueError("K {}, V {}: they do not go with each other and q {}".format(*shapes))
    result = Decode(stage.encode() if stage else None, batch, heads, kv_heads, rows, head_dim, queries,
                    cache_type(k, v), q=tensor(q), o=tensor(o), k=tensor(k), v=tensor(v))
    if lengths is not None:
        expect("lengths", lengths, "torch.int32", (batch,))
        result.lengths = lengths.data_ptr()
    if block_table is not None:
        set_pages(result, block_table, rows, outer)
    if lse is not None:
        expect("lse", lse, "torch.float32", (batch, heads, queries))
        result.lse = lse.data_ptr()
    if k_scale is not None:
        result.k_scale = cache_scale("k_scale", k_scale, batch, kv_heads)
    if v_scale is not None:
        result.v_scale = cache_scale("v_scale", v_scale, batch, kv_heads)
    for name, value in others.items():
        setattr(result, name, value)
    return result


def attention_decode(library, q, k, v, o=None, **options):
    """Queues decode() on PyTorch's current stream and returns O. A new one has the heads of a query side by side in
    memory, as the next layer wants them."""
    import torch  # pylint: disable=import-outside-toplevel

    if o is None:
        o = torch.empty_like(q.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    result = decode(q, k, v, o, **options)
    result.stream = torch.cuda.current_stream(q.device).cuda_stream
    if library.hl_attention_decode(result):
        raise RuntimeError(library.hl_error().decode())
    return o
