#!/usr/bin/env python3
"""Generates text with this project's kernels: prefill by hl_attention, then a byte at a time by hl_attention_decode,
with the keys and values in pages. PyTorch's attention generates the same.

    make library && python3 examples/generate.py             on a Hopper GPU, with PyTorch for CUDA
    ./hopper-run python3 examples/generate.py --emulator     without a GPU: a tiny model

notes/generating.md explains it. The exit code is 0 if both generate the same text, 1 if they do not, 2 if an option
makes no sense, and 3 if the GPU, PyTorch or the library is missing.
"""
import argparse
import functools
import os
import sys

import train  # the model and how it learns; exits where PyTorch is missing
import hopper_ladder  # train.py has told Python where this is

import torch
from torch.nn.attention import SDPBackend

PAGE = 16  # keys
LIMIT = 2.0**-8  # of the relative difference from PyTorch's logits: the last place of a bf16 number


# ---- the model, with attention and places that are given ----


def logits_of(model, bytes_, places, attention):
    """Of the last byte of each row. attention(layer, q, k, v) returns O."""
    x = model.bytes(bytes_) + model.places(places)
    for layer, block in enumerate(model.blocks):
        x = block(x, functools.partial(attention, layer))
    return model.head(model.norm(x[:, -1]))


# ---- ours: one pool of pages for all sequences ----


class Paged:
    """The sequences of a batch. The keys and values of each layer lie in a pool [pages, heads, PAGE, head_dim]."""

    def __init__(self, library, model, batch, capacity, stage=None):
        self.library, self.model, self.stage = library, model, stage
        device = model.head.weight.device
        entries = -(-capacity // PAGE)
        shape = batch * entries + 1, model.blocks[0].heads, PAGE, train.HEAD_DIM  # a page more than is used
        self.k = [torch.full(shape, torch.nan, dtype=torch.bfloat16, device=device) for _ in model.blocks]
        self.v = [torch.full_like(pool, torch.nan) for pool in self.k]
        # Pages come in no order, as on a server where other sequences have ended.
        order = torch.randperm(batch * entries, generator=torch.Generator().manual_seed(1)) + 1
        self.table = order.to(torch.int32).view(batch, entries).to(device)
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=device)

    def append(self, layer, rows, places, k, v):
        """Puts k and v [rows, heads, places, head_dim] where the sequences `rows` have these places."""
        pages, at = self.table[rows[:, None], places // PAGE], places % PAGE
        for pool, new in ((self.k[layer], k), (self.v[layer], v)):
            pool[pages, :, at] = new.transpose(1, 2).bfloat16()

    def prefill(self, row, prompt):
        """Reads the prompt of a sequence. The logits after it."""
        places = torch.arange(len(prompt), device=prompt.device)[None]
        rows = torch.tensor([row], device=prompt.device)

        def attention(layer, q, k, v):
            self.append(layer, rows, places, k, v)
            return self.library.forward(q, k, v)[0]

        self.lengths[row] = len(prompt)
        return logits_of(self.model, prompt[None], places, attention)[0]

    def step(self, new):
        """Reads a byte of each sequence. The logits after them. The lengths are the caller's to move on."""
        places = self.lengths.long()[:, None]
        rows = torch.arange(len(new), device=new.device)
        lengths = self.lengths + 1

        def attention(layer, q, k, v):
            self.append(layer, rows, places, k, v)
            q = q.bfloat16()
            o = train.new_like(q)
            tensors = {"q": q, "k": self.k[layer], "v": self.v[layer], "o": o, "lengths": lengths,
                       "block_table": self.table}
            self.library.run_call(self.library.library.hl_attention_decode,
                                  hopper_ladder.decode(stage=self.stage, **tensors), tensors)
            return o

        return logits_of(self.model, new[:, None], places, attention)

    def advance(self):
        self.lengths += 1


class Graph:
    """A step of Paged as a CUDA graph: recorded once, and then replayed for longer and longer sequences."""

    def __init__(self, paged, new):
        self.paged, self.new = paged, new.clone()
        self.graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            paged.step(self.new)  # loads the kernels, allocates the stream's workspace; a replay writes the same again
        with torch.cuda.graph(self.graph, stream=stream):
            self.logits = paged.step(self.new)

    def prefill(self, row, prompt):
        return self.paged.prefill(row, prompt)

    def step(self, new):
        self.new.copy_(new)
        self.graph.replay()
        return self.logits.clone()

    def advance(self):
        self.paged.advance()


# ---- PyTorch's: a tensor for each sequence and layer, which grows ----


class Plain:
    def __init__(self, model, batch):
        self.model = model
        self.caches = [[None] * len(model.blocks) for _ in range(batch)]
        self.attention = train.torch_attention(SDPBackend.MATH)

    def prefill(self, row, prompt):
        def attention(layer, q, k, v):
            self.caches[row][layer] = k.bfloat16(), v.bfloat16()
            return self.attention(q, k, v)

        return logits_of(self.model, prompt[None], torch.arange(len(prompt), device=prompt.device)[None], attention)[0]

    def step(self, new):
        def attention(row, layer, q, k, v):
            old_k, old_v = self.caches[row][layer]
            k, v = torch.cat((old_k, k.bfloat16()), 2), torch.cat((old_v, v.bfloat16()), 2)
            self.caches[row][layer] = k, v
            with train.sdpa_kernel(SDPBackend.MATH):
                return train.scaled_dot_product_attention(q.bfloat16(), k, v)

        logits = []
        for row, byte in enumerate(new):
            place = torch.full((1, 1), self.caches[row][0][0].shape[2], device=new.device)
            logits.append(logits_of(self.model, byte.view(1, 1), place, functools.partial(attention, row))[0])
        return torch.stack(logits)

    def advance(self):
        """The tensors have grown."""


# ---- the comparison ----


class Comparison:
    """Of the logits of two models that have read the same bytes, and of the bytes that they choose."""

    def __init__(self):
        self.apart, self.lead = torch.tensor(0.0, dtype=torch.float64), float("inf")
        self.chosen, self.ties, self.different = 0, 0, 0

    def choose(self, ours, theirs):
        """PyTorch's next bytes. Each choice counts."""
        ours, theirs = ours.double(), theirs.double()
        apart = (ours - theirs).norm(dim=1) / theirs.norm(dim=1)
        self.apart = torch.maximum(self.apart, apart.max().cpu())  # NaN is the largest
        best = theirs.topk(2, dim=1)
        self.lead = min(self.lead, (best.values[:, 0] - best.values[:, 1]).min().item())
        chosen = best.indices[:, 0]
        for row in (ours.argmax(dim=1) != chosen).nonzero()[:, 0]:
            # Right kernels round differently. So they may choose differently where PyTorch's lead is within what the
            # logits of this row differ by.
            lead = theirs[row, chosen[row]] - theirs[row, ours[row].argmax()]
            tie = lead <= 2 * (ours[row] - theirs[row]).abs().max()
            self.ties += bool(tie)
            self.different += not tie
        self.chosen += len(chosen)
        return chosen

    def is_right(self):
        return self.different == 0 and self.apart <= LIMIT  # false for NaN

    def report(self):
        ties = f", {self.ties} of them all but equally likely" if self.ties else ""
        print(f"{self.chosen} bytes chosen, {self.ties + self.different} differently{ties}; the logits are at most "
              f"{self.apart:.1e} apart, and the least lead of a byte is {self.lead:.4f}")


@torch.no_grad()
def generate(paged, plain, prompts, count, graph):
    """The bytes that follow each prompt."""
    comparison = Comparison()
    first = [comparison.choose(paged.prefill(row, prompt)[None], plain.prefill(row, prompt)[None])
             for row, prompt in enumerate(prompts)]
    texts = [torch.cat(first)]
    ours = Graph(paged, texts[0]) if graph else paged
    while len(texts) < count:
        texts.append(comparison.choose(ours.step(texts[-1]), plain.step(texts[-1])))
        for each in (ours, plain):
            each.advance()
    return torch.stack(texts, 1), comparison


def new_prompts(text, batch, longest, device):
    """Pieces of the text of different lengths."""
    random = torch.Generator().manual_seed(7)
    lengths = [longest - (longest // 2) * row // batch for row in range(batch)]
    first = torch.randint(len(text) - longest, (batch,), generator=random)
    return [text[i:i + length].to(device) for i, length in zip(first, lengths)]


def show(prompt, generated):
    def printable(bytes_):
        return bytes(bytes_.tolist()).decode("utf-8", "replace").replace("\n", " ")

    print(f"  {printable(prompt[-30:])} | {printable(generated)}")


def parse():
    parser = argparse.ArgumentParser(description="generates text with the attention of this project and with PyTorch's")
    parser.add_argument("--emulator", action="store_true", help="without a GPU, started by hopper-run: a tiny model")
    parser.add_argument("--steps", type=int, help="of the training before (default: 400; 150 with the tiny model)")
    parser.add_argument("--batch", type=int, help="sequences (default: 8; 3 with the tiny model)")
    parser.add_argument("--bytes", type=int, help="that are generated for each (default: 128; 24 with the tiny model)")
    parser.add_argument("--size", choices=train.SIZES, help="of the model (default: small; tiny on the emulator)")
    parser.add_argument("--stage", metavar="NN", help="of the decode ladder (default: the fastest)")
    parser.add_argument("--graph", action="store_true", help="on a GPU: a step is a CUDA graph")
    parser.add_argument("--library", default=os.path.join(train.ROOT, "libhopper_ladder.so"), metavar="FILE")
    options = parser.parse_args()
    options.size = options.size or ("tiny" if options.emulator else "small")
    tiny, small = {"steps": 150, "batch": 3, "bytes": 24}, {"steps": 400, "batch": 8, "bytes": 128}
    defaults = tiny if options.size == "tiny" else small
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    longest = train.SIZES[options.size]["seqlen"] // 2
    if options.steps < 0 or options.batch < 1 or not 2 <= options.bytes <= longest:
        parser.error(f"--steps: 0 or more; --batch: 1 or more; --bytes: 2 to {longest} are allowed")
    if options.graph and options.emulator:
        parser.error("--graph: PyTorch records graphs on a GPU alone")
    return options


def main():
    options = parse()
    device = train.Emulator() if options.emulator else train.Gpu()
    library = train.Library(options.library, device, None, None)
    text, size = train.read_text(), train.SIZES[options.size]
    # On a GPU the model learns with our kernels. On the emulator that would take long.
    attention = train.torch_attention(SDPBackend.MATH) if options.emulator else train.our_attention(library)
    model = train.new_model(size, 1, device.name)
    losses = train.fit(model, text, size, options.steps, 1, device.name, attention) if options.steps else []
    print(f"the model has learned for {options.steps} steps" + (f": loss {losses[-1]:.3f}" if losses else ""))
    prompts = new_prompts(text, options.batch, size["seqlen"] // 2, device.name)
    paged = Paged(library, model, options.batch, size["seqlen"], options.stage)
    texts, comparison = generate(paged, Plain(model, options.batch), prompts, options.bytes, options.graph)
    for prompt, generated in zip(prompts, texts):
        show(prompt, generated)
    comparison.report()
    print("the same" if comparison.is_right() else "DIFFERENT")
    return 0 if comparison.is_right() else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except train.Missing as error:
        print(f"generate.py: {error}", file=sys.stderr)
        sys.exit(3)
