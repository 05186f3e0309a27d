"""One attention problem on the GPU, in fp16 or in e4m3, or one of the backward pass, in fp16.

In e4m3 each of Q, K and V has one scale, and an element's value is its code's times the scale. The scale makes the
tensor's largest magnitude 448, e4m3's largest number, as common/harness/quantise.c does.
"""
from typing import NamedTuple

E4M3_LARGEST = 448


class Problem(NamedTuple):
    q: object  # all three of [batch][heads][seqlen][head_dim]
    k: object
    v: object
    causal: bool
    scales: tuple = ()  # of Q, K and V in e4m3: a tensor of one fp32 number each
    original: object = None  # of one in e4m3: the fp16 problem that it was made from
    dequantised: object = None  # of one in e4m3: its values in fp16, which rounds them to 11 bits
    kv_heads: int = 0  # of grouped heads: so many heads of K and V differ, and each stands several times; 0: all differ

    def values(self):
        """The exact values of Q, K and V, in fp64."""
        tensors = [tensor.float().double() for tensor in (self.q, self.k, self.v)]
        return [tensor * scale.double() for tensor, scale in zip(tensors, self.scales)] if self.scales else tensors


def with_groups(problem, kv_heads):
    """The problem with the first kv_heads heads of K and V, each for a group of neighbouring heads of Q."""
    group = problem.q.shape[1] // kv_heads
    k, v = (tensor[:, :kv_heads].repeat_interleave(group, dim=1) for tensor in (problem.k, problem.v))
    return problem._replace(k=k, v=v, kv_heads=kv_heads)


class BackwardProblem(NamedTuple):
    q: object  # this and the other tensors, but for lse, of [batch][heads][seqlen][head_dim]
    k: object
    v: object
    causal: bool
    d_o: object  # the gradient with respect to O
    o: object
    lse: object  # the natural logarithm of the sum of exp(score), in fp32, [batch][heads][seqlen]


def quantise(problem):
    """An fp16 problem in e4m3."""
    codes, scales = zip(*(quantise_tensor(tensor) for tensor in (problem.q, problem.k, problem.v)))
    values = [(tensor.float() * scale).half() for tensor, scale in zip(codes, scales)]
    return Problem(*codes, problem.causal, scales, problem, Problem(*values, problem.causal), problem.kv_heads)


def quantise_tensor(tensor):
    """The codes of a tensor that is not all zeros, and its scale. PyTorch rounds to the nearest, ties to even."""
    import torch

    scale = tensor.float().abs().amax() / E4M3_LARGEST
    codes = (tensor.float() / scale).clamp(-E4M3_LARGEST, E4M3_LARGEST).to(torch.float8_e4m3fn)
    return codes, scale.reshape(1)
