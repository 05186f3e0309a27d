"""The explorables of the lessons: frames in which watch.js shows the record of a run, step by step. A lesson says where
one belongs by a comment on a line of its own, <!-- watch: ring -->. It names a key of WATCHES.

Each says in one sentence what to look at, and asks a question before the run is played. What is shown comes from
the emulator in the page: the record of --steps, or its answer where things lie (common/web/layout.h).
"""
import html
import os
from typing import NamedTuple

import bench
from break_ptx import VARIANTS
from tree import Broken, between, number_of


class Watched(NamedTuple):
    """An explorable: title and texts, and the recorded picture of a GPU that belongs beside it."""
    title: str
    look: str
    question: str
    answer: str
    trace: str = ""


WATCHES = {
    "swizzle": Watched(
        "Which banks does a load touch?",
        "Look at the columns of the eight marked chunks: chunks in one column lie in the same four banks, and have to "
        "wait for each other.",
        "With rows of 128 bytes a load takes eight wavefronts. Which other distances from row to row, up to 256 "
        "bytes, make it as slow as that, and which make it fast without a swizzle?",
        "256 is as slow: it is a multiple of 128, so all rows begin in the same bank. 144, 176, 208 and 240 are fast, "
        "because their number of chunks is odd: eight steps of an odd number of chunks, modulo 8, give eight "
        "different columns. 160 and 224 take two wavefronts, and 192 takes four."),
    "phases": Watched(
        "The phases of a slot's mbarriers",
        "Look at what a phase still waits for, arrivals and bytes: a barrier's colour changes, and its parity with "
        "it, when both have come down to 0. The loading thread is one of warp 4.",
        "Which of a slot's three barriers never waits for bytes, and which phase does the first wait for it ask for?",
        "“empty” only counts the arrivals of the eight warps. The first wait for it asks for phase −1, the one before "
        "the first, whose parity is 1. It counts as over, so the wait passes at once.",
        "06"),
    "ring": Watched(
        "A ring of slots",
        "Look at how far the producer is ahead of the consumers: a slot is filled again only when all eight consumer "
        "warps have released it.",
        "With two slots instead of four, does the producer wait more often? And how many tiles of K can be in flight "
        "or waiting at most?",
        "Yes: with two slots it has to wait for a release before every tile from the third one on. As many tiles as "
        "there are slots: the producer never begins to fill a slot that has not been released.",
        "07"),
    "descriptor": Watched(
        "Where wgmma finds an element",
        "Look at where the two chunks of a row lie in shared memory: the swizzle moves them, and the descriptor only "
        "says how to find the first one.",
        "From one slice to the next, which fields of the descriptor change? And by how much, under a swizzle of 128 "
        "bytes?",
        "Only the start. A slice is 16 numbers or 32 bytes further along the line, and the field counts 16 bytes: it "
        "grows by 2."),
    "ping-pong": Watched(
        "Two consumers take turns",
        "Look at the products of the two consumers: one consumer issues both of its products, QK and PV, before the "
        "other one issues any.",
        "Without turns (mistake 6), in which order do the two consumers issue their products?",
        "In any order. Here, where each warp executes one instruction in turn, both issue QK at the same time, and "
        "then both issue PV. Each product then has to share the tensor cores with one of the other consumer.",
        "08b"),
    "online-softmax": Watched(
        "A maximum and a sum that correct themselves",
        "Look at the sum when a tile brings a larger maximum: it is multiplied by the factor before the new weights "
        "are added.",
        "What is the factor in a tile that brings no larger maximum? And in the first tile?",
        "1, because 2 to the power of 0 is 1. In the first tile it is 0: the maximum before it is the lowest number, "
        "so nothing is left of a sum that was 0 anyway."),
    "stale-max": Watched(
        "A stale maximum, and the check after it",
        "Look at the largest weight of each tile: with the stale maximum it may be far above 1, and the kernel only "
        "acts when a sum is larger than 32768.",
        "With the input “waves”, does the reference rise with every larger score?",
        "No. It stays where it is until a thread's sum of weights exceeds 32768. Then the row is divided by a power "
        "of two, and the reference rises by the exponent of that power.",
        "10"),
}


def kernels_of(stage):
    """The files with the variants of a stage that are there."""
    paths = [f"{bench.PTX}/{name}.ptx.gz" for name, (of, _) in VARIANTS.items() if of == stage]
    return [path for path in paths if os.path.exists(path)]


ORDER = ("This is an order in which a GPU could do it, and not time: the emulator has no clock. The warps that "
         "can go on take turns, one instruction each.")


def frame(name, here, stage):
    """An explorable on the page at `here`, a stage's lesson; nothing where there is no emulator for the browser."""
    if name not in WATCHES:
        raise Broken(f"{here}: there is no explorable {name}; common/book/watch.py has {', '.join(WATCHES)}")
    if not bench.is_there(stage):
        return ""
    one, escape = WATCHES[name], html.escape
    trace = ""
    if one.trace:
        picture = between(here, f"plots/trace-{one.trace}.svg")
        trace = ('<details class="recorded"><summary>The same on a GPU, in time</summary>\n'
                 f'<p class="scroll" tabindex="0"><img src="{escape(picture)}" loading="lazy" alt="Recorded on an H200: '
                 f'the phases of each warpgroup of stage {escape(one.trace)} on one SM, in microseconds"></p></details>\n')
    order = f'<p class="order">{escape(ORDER)}</p>\n' if name not in ("swizzle", "descriptor") else ""
    return (f'<section class="watch" id="Watch-{name}" data-watch="{name}" data-stage="{number_of(stage)}" '
            f'aria-labelledby="Watch-{name}-title">\n<p class="title" id="Watch-{name}-title">{escape(one.title)}</p>\n'
            f'<p class="look">{escape(one.look)}</p>\n'
            f'<details class="predict"><summary>Predict: {escape(one.question)}</summary>\n<p>{escape(one.answer)}</p>'
            f'</details>\n<div class="stage-of-watch"><p class="now" role="status">'
            f'It runs in your browser when you come to it.</p></div>\n{order}{trace}</section>\n')
