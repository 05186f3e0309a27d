"""libhopper_ladder.so from Python: hopper_ladder.h's structures for ctypes, and PyTorch's tensors as the library's.

    library = hopper_ladder.load("libhopper_ladder.so")
    call = hopper_ladder.call(q, k, v, o, causal=True)      four tensors [batch, heads, seqlen, head_dim], as PyTorch's
    if library.hl_attention(call):                          attention takes them; their strides may be any
        raise RuntimeError(library.hl_error().decode())
"""
import ctypes
import os

F16, E4M3, E4M3_SCORES = 0, 1, 2
DETERMINISTIC, CHECK = 1, 2


class Stage(ctypes.Structure):
    _fields_ = [("number", ctypes.c_char_p), ("name", ctypes.c_char_p), ("title", ctypes.c_char_p),
                ("type", ctypes.c_int), ("backward", ctypes.c_int32), ("lse", ctypes.c_int32),
                ("strided", ctypes.c_int32)]


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


def load(path):
    """The library with the types of its functions. OSError where it cannot be loaded; AttributeError where it is
    another, or one from before its calls were structures."""
    library = ctypes.CDLL(os.path.abspath(path))
    if hasattr(library, "hl_supports"):
        raise AttributeError("an older interface")
    library.hl_error.restype = ctypes.c_char_p
    library.hl_stage.restype = ctypes.POINTER(Stage)
    for function in library.hl_attention, library.hl_attention_backward:
        function.argtypes = [ctypes.POINTER(Call)]
    return library


def stages(library):
    return [library.hl_stage(index).contents for index in range(library.hl_stage_count())]


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
