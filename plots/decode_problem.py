"""One decode problem on the GPU, and what its output should be.

Q and O are [batch][heads][queries][head_dim], in bf16. The cache K and V is [batch][kv_heads][keys][head_dim], or in
pages [pages][kv_heads][page][head_dim], in bf16, and once more in e4m3 with one scale for each of the two. The last
query is that of a sequence's last key, and queries are causal among themselves.
"""
import math
import random
from typing import NamedTuple

from problem import quantise_tensor

SPARE_PAGES = 3  # which nobody uses
CHECKED = 4  # so many key heads are computed in fp64
LIMIT = 0.02  # of the relative error of a query head; right kernels have some thousandths


class DecodePoint(NamedTuple):
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    keys: int
    ragged: bool = False
    page: int = 0  # 0: the cache is not in pages
    queries: int = 1

    def __str__(self):
        more = ["ragged"] * self.ragged + [f"page{self.page}"] * (self.page > 0)
        more += [f"queries{self.queries}"] * (self.queries > 1)
        return "/".join(map(str, (self.batch, self.heads, self.kv_heads, self.head_dim, self.keys, *more)))

    def lengths(self):
        """The keys of each sequence: all, or random numbers from 1 on that are always the same."""
        if not self.ragged:
            return self.batch * [self.keys]
        return random.Random(1).choices(range(1, self.keys + 1), k=self.batch)

    def used_elements(self):
        """Of K, and as many of V: those of keys that exist."""
        return sum(self.lengths()) * self.kv_heads * self.head_dim

    def cache_bytes(self, element_size=2):
        """What a kernel must read."""
        return 2 * element_size * self.used_elements()

    def all_bytes(self):
        """The bf16 cache with room for the longest sequence in each."""
        return 4 * self.batch * self.kv_heads * self.keys * self.head_dim


class Cache(NamedTuple):
    k: object
    v: object
    scales: tuple = ()  # of an e4m3 cache: of K and V, a tensor of one fp32 number each


class DecodeProblem(NamedTuple):
    point: DecodePoint
    q: object
    bf16: Cache
    e4m3: Cache
    lengths: object  # int32, [batch]; None: all sequences have all keys
    block_table: object  # int32, [batch][keys / page]; None: the cache is not in pages
    pages: int


def cache_shape(point):
    """Of K, and of V; and how many pages there are, 0 without pages."""
    if not point.page:
        return (point.batch, point.kv_heads, point.keys, point.head_dim), 0
    pages = point.batch * (point.keys // point.page) + SPARE_PAGES
    return (pages, point.kv_heads, point.page, point.head_dim), pages


def page_order(point, pages):
    """Which page is where: [batch][keys / page], in random order among all."""
    order = random.Random(1).sample(range(pages), pages)
    each = point.keys // point.page
    return [order[each * b:each * (b + 1)] for b in range(point.batch)]


def make_decode_problem(point, device="cuda"):
    import torch

    generator = torch.Generator(device).manual_seed(1)
    shape, pages = cache_shape(point)
    q_shape = point.batch, point.heads, point.queries, point.head_dim
    q, k, v = (torch.randn(each, generator=generator, device=device, dtype=torch.bfloat16)
               for each in (q_shape, shape, shape))
    k_codes, k_scale = quantise_tensor(k)
    v_codes, v_scale = quantise_tensor(v)
    lengths = torch.tensor(point.lengths(), dtype=torch.int32, device=device) if point.ragged else None
    table = torch.tensor(page_order(point, pages), dtype=torch.int32, device=device) if point.page else None
    return DecodeProblem(point, q, Cache(k, v), Cache(k_codes, v_codes, (k_scale, v_scale)), lengths, table, pages)


def rows_of_head(problem, tensor, batch, kv_head, count):
    """The first keys of a key head of a sequence, from K or V: [count][head_dim] in fp64."""
    if problem.block_table is None:
        rows = tensor[batch, kv_head]
    else:
        pages = problem.block_table[batch].long()
        rows = tensor[pages, kv_head].reshape(-1, tensor.shape[-1])
    return rows[:count].float().double()


def exact_head(problem, cache, batch, kv_head):
    """The output of the query heads of one key head, in fp64: [heads][queries][head_dim]."""
    import torch

    point, count = problem.point, problem.point.lengths()[batch]
    group = point.heads // point.kv_heads
    q = problem.q[batch, kv_head * group:(kv_head + 1) * group].double()
    k, v = (rows_of_head(problem, tensor, batch, kv_head, count) for tensor in (cache.k, cache.v))
    if cache.scales:
        k, v = k * cache.scales[0].double(), v * cache.scales[1].double()
    scores = q @ k.T / math.sqrt(point.head_dim)
    key = torch.arange(count, device=q.device)
    query = torch.arange(point.queries, device=q.device)[:, None]
    scores = scores.masked_fill(key > query + count - point.queries, -math.inf)
    return scores.softmax(-1).nan_to_num(0) @ v  # a query that sees no key: 0


class DecodeReference:
    """The right output of some key heads, from the bf16 cache and from the e4m3 one."""

    def __init__(self, problem):
        point = problem.point
        every = [(batch, kv_head) for batch in range(point.batch) for kv_head in range(point.kv_heads)]
        self.heads = sorted(random.Random(1).sample(every, min(CHECKED, len(every))))
        self.group = point.heads // point.kv_heads
        self.exact = {cache: [exact_head(problem, getattr(problem, cache), *head) for head in self.heads]
                      for cache in ("bf16", "e4m3")}

    def errors(self, output, cache):
        """The root of the sum of the squared differences over that of the squared exact elements: of all checked query
        heads together, and of the worst one."""
        import torch

        got = torch.stack([output[batch, kv_head * self.group:(kv_head + 1) * self.group].double()
                           for batch, kv_head in self.heads])
        exact = torch.stack(self.exact[cache])
        differences, elements = ((each**2).sum((2, 3)) for each in (got - exact, exact))
        tiny = 1e-30  # where no key is seen, all is 0
        return (float((differences.sum() / (elements.sum() + tiny))**0.5),
                float((differences / (elements + tiny)).max()**0.5))

    def differences(self, output, cache):
        """What is wrong with an output, in one line; "" when nothing is."""
        count = int(output.isnan().sum())
        if count:
            return f"{count} of {output.numel()} elements are NaN"
        _, worst = self.errors(output, cache)
        return "" if worst <= LIMIT else f"the relative error of a head is {worst:.3g}; at most {LIMIT} is allowed"
