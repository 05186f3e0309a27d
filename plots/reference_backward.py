"""What the gradients of attention should be, in fp64 on the GPU, and how far from them a right kernel may be.

Each row of a gradient has the limit of common/harness/reference_backward.c, which says where its terms come from, times
SLACK. The stages' own check is the strict one. PyTorch's contenders compute O and the log-sum-exp themselves, so O may
differ by half a unit of its last place, and delta by what follows.
"""
import math

from reference import chunks, line_of_differences, scores_of

GRADIENTS = "dQ", "dK", "dV"
SLACK = 8


def by_head(tensor):
    """[batch][heads][...] as [batch * heads][...]."""
    return tensor.reshape(-1, *tensor.shape[2:])


def forward(q, k, v, causal):
    """O in fp16 and the log-sum-exp in fp32, each the nearest to the exact one."""
    import torch

    shape, (q, k, v) = q.shape, map(by_head, (q, k, v))
    o, lse = torch.empty_like(q), torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    for some, rows in chunks(len(q), shape[2]):
        scores, _ = scores_of(q[some, rows], k[some], rows, causal)
        exact = scores.logsumexp(-1)
        o[some, rows] = (scores.sub_(exact[..., None]).exp_() @ v[some].double()).half()
        lse[some, rows] = exact.float()
    return o.reshape(shape), lse.reshape(shape[:3])


def norm(rows):
    return rows.double().square().sum(-1, keepdim=True).sqrt()


class Sums:
    """Sums of factor times row for each element of a gradient: exact, with the factors rounded to fp16, of the squares,
    of the squares of the roundings, and of the factors' errors."""

    def __init__(self, like):
        import torch

        self.exact, self.rounded, self.squared, self.roundings, self.errors = (
            torch.zeros(like.shape, dtype=torch.float64, device=like.device) for _ in range(5))

    def add(self, where, factor, error, rows):
        rows = rows.double()
        squares = rows.square()
        half_units = (2**-11 * factor.abs()).clamp_(min=2**-25).mul_(factor != 0)
        self.exact[where] += factor @ rows
        self.rounded[where] += factor.half().double() @ rows
        self.squared[where] += factor.square() @ squares
        self.roundings[where] += half_units.square_() @ squares
        self.errors[where] += error @ rows.abs()

    def finish(self, scale, terms):
        """The gradient, which is scale times the sums of so many terms, and the limit of each of its rows."""
        exact, rounded = scale * self.exact, (scale * self.rounded).half().double()
        off = (rounded - exact).abs().masked_fill_(~rounded.isfinite(), 0).amax(-1, keepdim=True)
        magnitude = exact.abs().amax(-1, keepdim=True)
        root, roundings = (scale * squares.amax(-1, keepdim=True).sqrt() for squares in (self.squared, self.roundings))
        errors = scale * self.errors.amax(-1, keepdim=True)
        limit = 2 * off + 2**-11 * magnitude + 2**-25 * terms * (magnitude + root) + 2 * roundings + errors + 2**-25
        return exact, SLACK * limit


def terms_of(q, causal):
    """How many keys each query adds up, and how many queries each key."""
    import torch

    seqlen = q.shape[1]
    if not causal:
        return seqlen, seqlen
    keys = torch.arange(1, seqlen + 1, device=q.device)[:, None]
    return keys, seqlen + 1 - keys


class ReferenceBackward:
    """The right gradients of one problem of the backward pass, computed once, for those of all contenders."""

    def __init__(self, problem):
        q, k, v, o, d_o, lse = map(by_head, (problem.q, problem.k, problem.v, problem.o, problem.d_o, problem.lse))
        seqlen, head_dim = q.shape[1:]
        self.scale = 1 / math.sqrt(head_dim)
        sums = [Sums(tensor) for tensor in (q, k, v)]
        for some, rows in chunks(len(q), seqlen):
            own = [tensor[some, rows] for tensor in (q, o, d_o, lse)]
            self.add(sums, some, rows, own, k[some], v[some], problem.causal)
        keys, queries = terms_of(q, problem.causal)
        self.gradients = [each.finish(scale, terms) for each, scale, terms in
                          zip(sums, (self.scale, self.scale, 1), (keys, queries, queries))]

    def add(self, sums, some, rows, own, k, v, causal):
        """Adds what some queries of some heads add to all gradients."""
        q, o, d_o, lse = own
        lse = lse.double()[..., None]
        weight_error = 2**-22 * (self.scale * norm(q) * norm(k).amax(1, keepdim=True) + lse.abs() + 1)
        gradient_error = norm(d_o) * (2**-21 * norm(v).amax(1, keepdim=True) + 2**-11 * norm(o))
        delta = (d_o.double() * o.double()).sum(-1, keepdim=True)
        scores, _ = scores_of(q, k, rows, causal)
        p = scores.sub_(lse).exp_()
        sums[2].add((some,), p.transpose(1, 2), (p * weight_error).transpose(1, 2), d_o)
        ds = (d_o.double() @ v.double().transpose(1, 2)).sub_(delta).mul_(p)
        error = p.mul_(gradient_error).add_(ds.abs().mul_(weight_error))
        sums[0].add((some, rows), ds, error, k)
        sums[1].add((some,), ds.transpose(1, 2), error.transpose(1, 2), q)

    def differences(self, output):
        """What is wrong with dQ, dK and dV, in one line; "" when nothing is. NaN is wrong."""
        lines = (line_of_differences(by_head(got), exact, limit)
                 for got, (exact, limit) in zip(output, self.gradients))
        return "; ".join(f"{name}: {line}" for name, line in zip(GRADIENTS, lines) if line)

    def relative_errors(self, output):
        """Of dQ, dK and dV: the root of the sum of the squared differences over that of the squared exact elements."""
        return tuple(float(((by_head(got).double() - exact).square().sum() / exact.square().sum()).sqrt())
                     for got, (exact, _) in zip(output, self.gradients))
