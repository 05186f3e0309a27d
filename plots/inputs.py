"""What the tensors hold that peers.py times the contenders on: normal, large, waves, outliers, mean, vanish and explode
as --input of the stages makes them (common/harness/problem.c), and three that move the maximum of a row of scores,
which an online softmax follows. The backward pass has normal, vanish and explode.

All start from the same normal numbers. A score is a query times a key over sqrt(head_dim), and a row of scores belongs
to one query.
"""


def normal(q, k, v):
    """Deviation 1, and so that of the scores."""
    return q, k, v


def large(q, k, v):
    """Times eight: scores of some hundreds, and most of a row's weight on one key."""
    return 8 * q, 8 * k, 8 * v


def sink(q, k, v):
    """An attention sink: of each query the score with the first key is 4 sqrt(head_dim), far above all others."""
    direction = q[:, :, :1].sign()
    k[:, :, :1] = 4 * direction
    return q + direction, k, v


def ramp(q, k, v):
    """Scores grow along the keys, from a deviation of 0.2 to one of 6."""
    return q, scale_keys(k, 0.2, 6), v


def rampdown(q, k, v):
    """The same from 6 to 0.2."""
    return q, scale_keys(k, 6, 0.2), v


def waves(q, k, v):
    """128 keys with low scores and 128 with high ones by turns; within them all are much alike."""
    import torch

    q, k, v = q / 2, k / 2, v / 2
    q[..., 0] = 16
    k[..., 0] = 12 * (torch.arange(k.shape[2], device=k.device) // 128 % 2)
    return q, k, v


def outliers(q, k, v):
    """One element of a thousand has a second normal number added, ten times as large: the inputs of FlashAttention-3's
    test of FP8 (arXiv 2407.08608, section 4.3)."""
    return [add_outliers(tensor, seed) for seed, tensor in enumerate((q, k, v), 2)]


def mean(q, k, v):
    """The mean of V is 1: what an accumulator rounds away adds up."""
    return q, k, v + 1


KINDS = {make.__name__: make for make in (normal, large, sink, ramp, rampdown, waves, outliers, mean)}
# Of the backward pass: how many times as large as normal Q and K are, and how many times dO, which is like V.
#   vanish: most queries give all their weight to one key, and dS is what rounding leaves
#   explode: the gradients, which are linear in dO, are as large as a scaled loss may make them
BACKWARD_KINDS = {"normal": (1, 1), "vanish": (32, 1), "explode": (1, 1024)}


def add_outliers(tensor, seed):
    import torch

    generator = torch.Generator(tensor.device).manual_seed(seed)
    chosen = torch.rand(tensor.shape, device=tensor.device, generator=generator) < 0.001
    return tensor + 10 * chosen * torch.randn(tensor.shape, device=tensor.device, generator=generator)


def scale_keys(k, first, last):
    import torch

    return k * torch.linspace(first, last, k.shape[2], device=k.device)[:, None]


def make(kind, shape, device="cuda"):
    """Q, K and V in fp16, of shape [batch][heads][seqlen][head_dim]; always the same."""
    return [tensor.half() for tensor in KINDS[kind](*random_tensors(3, shape, device))]


def make_backward(kind, shape, device="cuda"):
    """Q, K, V and dO in the same way."""
    scores, gradient = BACKWARD_KINDS[kind]
    q, k, v, d_o = random_tensors(4, shape, device)
    return [tensor.half() for tensor in (scores * q, scores * k, v, gradient * d_o)]


def random_tensors(count, shape, device):
    """Normal numbers that fp16 holds, in fp32, so that what is made of them is rounded once."""
    import torch

    generator = torch.Generator(device).manual_seed(1)
    return [torch.randn(shape, dtype=torch.float16, device=device, generator=generator).float() for _ in range(count)]
