"""What attention's output should be, in fp64 on the GPU, and how far from it a right fp16 kernel may be: the same limit
for each row as common/harness/reference.c has, which says where its terms come from."""
import math

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
        got = output.reshape(self.exact.shape).double()
        wrong = ~((got - self.exact).abs() <= self.limit)
        count = int(wrong.sum())
        if not count:
            return ""
        head, row, column = (int(index) for index in wrong.nonzero()[0])
        return (f"{count} of {wrong.numel()} elements are wrong; the first, head {head} row {row} element {column}, is "
                f"{float(got[head, row, column]):.6g} and should be {float(self.exact[head, row, column]):.6g}")
