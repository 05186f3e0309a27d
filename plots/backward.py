"""What peers.py times of the backward pass: contenders as in contenders.py, but call() queues one backward pass, with
all its kernels, and returns dQ, dK and dV. They are fp16, as the inputs are.

The stages, FlashAttention-3 and --contender read the problem's O and log-sum-exp. PyTorch's contenders keep what their
own forward pass computed, once, before any time is taken. Their call is torch.autograd.grad: the backward kernels of
that backend, and whatever PyTorch queues around them. Nothing is added to .grad.
"""
import ctypes

import contenders
import hopper_ladder
from contenders import Contender, Refused

FLASH_ATTENTION_3_DETERMINISTIC = "FlashAttention-3 deterministic"
POINTERS = 9  # pointers_of returns


def new_gradients(problem):
    return [contenders.new_output(problem) for _ in range(3)]


def pointers_of(problem, gradients):
    """Pointers to Q, K, V, O, dO and the log-sum-exp, then to dQ, dK and dV."""
    inputs = problem.q, problem.k, problem.v, problem.o, problem.d_o, problem.lse
    return [tensor.data_ptr() for tensor in (*inputs, *gradients)]


def stage(library, number, name):
    """The library's stage with a number."""

    def prepare(problem):
        gradients = new_gradients(problem)
        d_q, d_k, d_v = gradients
        call = hopper_ladder.call(problem.q, problem.k, problem.v, problem.o, problem.causal, number, lse=problem.lse,
                                  d_o=problem.d_o, d_q=d_q, d_k=d_k, d_v=d_v)
        return contenders.library_call(library, library.hl_attention_backward, call, gradients)

    return Contender(name, prepare)


# ---- another kernel ----
#
#   int attn_bwd(int B, int H, int S, const void *q, const void *k, const void *v, const void *o, const void *d_o,
#                const float *lse, void *d_q, void *d_k, void *d_v, int causal, void *stream)


def kernel(name, files):
    """OSError where a file cannot be loaded, AttributeError where it lacks the function."""
    functions = contenders.functions_of(files, "attn_bwd", POINTERS)

    def prepare(problem):
        gradients = new_gradients(problem)
        pointers = pointers_of(problem, gradients)
        return contenders.kernel_call(functions, "attn_bwd", problem, pointers, gradients)

    return Contender(name, prepare)


# ---- FlashAttention-3 ----


def flash_attention_3(library, deterministic=False):
    """AttributeError where the library was built before it had a backward pass."""
    name = FLASH_ATTENTION_3_DETERMINISTIC if deterministic else contenders.FLASH_ATTENTION_3
    backward, workspace_size = library.flash_attention_3_backward, library.flash_attention_3_backward_workspace
    workspace_size.restype = ctypes.c_size_t
    backward.argtypes = 6 * [ctypes.c_int] + [ctypes.c_float] + (POINTERS + 2) * [ctypes.c_void_p]

    def prepare(problem):
        import torch

        causal = int(problem.causal)
        gradients, shape = new_gradients(problem), problem.q.shape
        workspace = torch.empty(workspace_size(*shape, causal), dtype=torch.uint8, device="cuda")
        pointers = pointers_of(problem, gradients)
        scale, stream = shape[-1]**-0.5, contenders.current_stream()

        def call():
            code = backward(*shape, causal, int(deterministic), scale, *pointers, workspace.data_ptr(), stream)
            if code:
                raise Refused(f"{name} returned {code}")
            return gradients

        return call

    return Contender(name, prepare, lambda: library.flash_attention_3_version().decode())


# ---- PyTorch ----


def interleaved(tensor):
    """The same tensor with the heads of a token side by side in memory, as a model's linear layers leave them. PyTorch
    copies O and dO before FlashAttention-2's backward pass if they are not; a model would not pay for that."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


def pytorch(name):
    def prepare(problem):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        inputs = [interleaved(tensor).requires_grad_() for tensor in (problem.q, problem.k, problem.v)]
        d_o = interleaved(problem.d_o)
        with contenders.refusals(), sdpa_kernel(getattr(SDPBackend, contenders.BACKENDS[name])):
            o = scaled_dot_product_attention(*inputs, is_causal=problem.causal)

        def call():
            with contenders.refusals():
                return torch.autograd.grad(o, inputs, d_o, retain_graph=True)

        return call

    return Contender(name, prepare, lambda: contenders.pytorch_version(name))
