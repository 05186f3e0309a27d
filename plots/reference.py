"""What attention's output should be, in fp64 on the GPU, and how far from it a right kernel may be. An fp16 kernel has
the same limit for each row as in common/harness/reference.c, which says where its terms come from. An e4m3 kernel's
relative error is recorded, and has a coarse limit: the stages' own check is the strict one."""
import math
import random

CHUNK = 1 << 27  # scores at a time, in fp64: 1 GiB


def chunks(heads, seqlen):
    """Slices of heads and rows that have about CHUNK scores."""
    some_heads = max(1, CHUNK // seqlen**2)
    some_rows = min(seqlen, max(1, CHUNK // seqlen))
    for head in range(0, heads, some_heads):
        for row in range(0, seqlen, some_rows):
            yield slice(head, min(head + some_heads, heads)), slice(row, min(row + some_rows, seqlen))


def scores_of(q, k, rows, causal):
    """Scores, -inf where the mask hides a key, and the largest magnitude of those seen, of each row."""
    import torch

    scores = (q.double() / math.sqrt(q.shape[-1])) @ k.double().transpose(1, 2)
    if causal:
        row = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
        hidden = torch.arange(k.shape[1], device=q.device) > row
        largest = scores.masked_fill(hidden, 0).abs().amax(-1)
        return scores.masked_fill_(hidden, -math.inf), largest
    return scores, scores.abs().amax(-1)


def rows_of(q, k, v, rows, causal):
    """The exact output of some rows of some heads, and each row's limit."""
    import torch

    scores, largest = scores_of(q, k, rows, causal)
    weights = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    total = weights.sum(-1, keepdim=True)
    v = v.double()
    exact = weights @ v / total
    rounded = (weights.half().double() @ v / total).half().double()
    mass = (weights @ v.abs() / total).amax(-1)
    rms = ((weights.square_() @ v.square()).sqrt() / total).amax(-1)
    keys = torch.arange(rows.start + 1, rows.stop + 1, device=q.device) if causal else k.shape[1]
    limit = 2 * (rounded - exact).abs().amax(-1) + (2**-11 + 2**-25 * keys) * exact.abs().amax(-1)
    return exact, limit + 2**-11 * rms + 2**-20 * largest * mass + 2**-25


class Reference:
    """The right output of one problem, computed once, for the outputs of all contenders."""

    def __init__(self, problem):
        import torch

        batch, heads, seqlen, head_dim = problem.q.shape
        q, k, v = (tensor.reshape(-1, seqlen, head_dim) for tensor in (problem.q, problem.k, problem.v))
        self.exact = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        self.limit = torch.empty((*q.shape[:2], 1), dtype=torch.float64, device=q.device)
        for some, rows in chunks(batch * heads, seqlen):
            exact, limit = rows_of(q[some, rows], k[some], v[some], rows, problem.causal)
            self.exact[some, rows], self.limit[some, rows, 0] = exact, limit

    def differences(self, output):
        """What is wrong with an output, in one line; "" when nothing is. NaN is wrong."""
        return line_of_differences(output.reshape(self.exact.shape), self.exact, self.limit)


def line_of_differences(got, exact, limit):
    """The same for [head][row][element], with a limit for each row."""
    got = got.double()
    wrong = ~((got - exact).abs() <= limit)
    count = int(wrong.sum())
    if not count:
        return ""
    head, row, column = (int(index) for index in wrong.nonzero()[0])
    return (f"{count} of {wrong.numel()} elements are wrong; the first, head {head} row {row} element {column}, is "
            f"{float(got[head, row, column]):.6g} and should be {float(exact[head, row, column]):.6g}")


# ---- e4m3 ----

ROWS = 256  # of each head are compared
LIMIT = 0.2  # of the relative error; right kernels have some hundredths


def sample_rows(seqlen):
    """Some rows of a head, always the same. They have all places in a tile."""
    return sorted(random.Random(1).sample(range(seqlen), min(seqlen, ROWS)))


def exact_rows(problem, rows):
    """The exact output of some rows of each head, in fp64: [batch][heads][row][head_dim]."""
    import torch

    q, k, v = problem.values()
    scores = q[:, :, rows] @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    if problem.causal:
        keys = torch.arange(k.shape[2], device=k.device)
        scores.masked_fill_(keys > keys[rows][:, None], -math.inf)
    return scores.softmax(-1) @ v


def relative_errors(got, exact):
    """The root of the sum of the squared differences over the sum of the squared exact elements: of all heads together,
    and of the worst head."""
    differences, elements = (tensor.square().sum((2, 3)) for tensor in (got - exact, exact))
    return float((differences.sum() / elements.sum()).sqrt()), float((differences / elements).sqrt().amax())


class ReferenceE4m3:
    """The right output of one e4m3 problem, in some rows of each head. It follows from the e4m3 values, whatever they
    were made from; `quantisation` is its own relative error, against the output of the fp16 problem."""

    def __init__(self, problem):
        self.rows = sample_rows(problem.q.shape[2])
        self.exact = exact_rows(problem, self.rows)
        self.quantisation, _ = relative_errors(self.exact, exact_rows(problem.original, self.rows))

    def relative_errors(self, output):
        return relative_errors(output[:, :, self.rows].double(), self.exact)

    def differences(self, output):
        """What is wrong with an output, in one line; "" when nothing is."""
        count = int(output.isnan().sum())
        if count:
            return f"{count} of {output.numel()} elements are NaN"
        _, worst = self.relative_errors(output)
        return "" if worst <= LIMIT else f"the relative error of a head is {worst:.3g}; at most {LIMIT} is allowed"
