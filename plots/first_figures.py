"""The pictures of notes/attention.md and of lessons 00 to 03: see figures.py, which draws them."""
import math

from picture import AMBER, BLUE, GREEN, ORANGE, PALE, PURPLE, QUAD, SKY, Picture

# ---- attention with four keys: notes/attention.md ----

QUERIES = (0, 2, 0, 0), (2, 0, 0, 0), (2, 0, 0, 2), (1, 2, 0, 1)
KEYS = (2, 1, 1, 0), (0, 1, 2, 0), (1, 0, 3, -1), (1, 2, 0, 1)
VALUES = (8, 0, 2, 0), (0, 8, 2, 0), (0, 0, 8, 4), (4, 4, 0, 8)
SCORES = [[sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) for k in KEYS] for q in QUERIES]


def softmax(row):
    """The weights of a row of scores."""
    powers = [math.exp(score - max(row)) for score in row]
    return [power / sum(powers) for power in powers]


def average(weights):
    """The values' average under these weights."""
    return [sum(weight * value[d] for weight, value in zip(weights, VALUES)) for d in range(len(VALUES[0]))]


def short(number):
    return f"{number:.3f}" if number % 1 else f"{number:.0f}"


def draw_matrix(picture, left, top, title, rows, names, own=None, bars=False, columns=""):
    """Numbers in cells, with the name of each row; row `own` is framed. Bars show how large weights are."""
    width, height = 46, 32
    picture.text(left, top - (26 if columns else 10), title, 15, bold=True)
    if columns:
        picture.row([left + (j + 0.5) * width for j in range(4)], top - 7, [f"{columns}{j}" for j in range(4)], 13,
                    "grey")
    for i, row in enumerate(rows):
        y = top + i * height
        picture.text(left - 7, y + 21, f"{names}{i}" if names else "", 13, "end", "grey")
        for j, number in enumerate(row):
            picture.box(left + j * width, y, width, height)
            if bars and number:
                picture.box(left + j * width + 3, y + height - 7, number * (width - 6), 4, BLUE)
        picture.row([left + (j + 0.5) * width for j in range(len(row))], y + (19 if bars else 21), map(short, row), 14)
    if own is not None:
        picture.frame(left, top + own * height, len(rows[0]) * width, height)


def attention():
    picture = Picture("attention", 440, "Attention with four keys", "D = 4, so the scores are divided by 2; framed: "
                      "what belongs to query 3")
    weights = [softmax(row) for row in SCORES]
    top, below = 122, 296
    draw_matrix(picture, 46, top, "Q", QUERIES, "q", 3)
    draw_matrix(picture, 312, top, "Kᵀ: a column is a key", list(zip(*KEYS)), "", columns="k")
    draw_matrix(picture, 590, top, "S = Q Kᵀ / 2", SCORES, "", 3, columns="k")
    draw_matrix(picture, 46, below, "P = softmax(S)", weights, "q", 3, bars=True)
    draw_matrix(picture, 312, below, "V", VALUES, "v")
    draw_matrix(picture, 590, below, "O = P V", [average(row) for row in weights], "o", 3)
    for x, y, words in ((261, top, "·"), (535, top, "/ 2 ="), (261, below, "·"), (535, below, "=")):
        picture.words(x, y + 64, words, 28 if words == "·" else 20)
    return picture


def causal_mask():
    picture = Picture("causal-mask", 262, "What a causal mask does to the weights",
                      "left: each query sees all keys; right: query i sees the keys 0 to i")
    hidden = [[score if j <= i else -math.inf for j, score in enumerate(row)] for i, row in enumerate(SCORES)]
    for left, title, scores in ((120, "P without a mask", SCORES), (480, "P with a causal mask", hidden)):
        draw_matrix(picture, left, 112, title, [softmax(row) for row in scores], "q", bars=True, columns="k")
    return picture


# ---- how much of a model attention is ----

class Llama:
    """A layer of Llama 3.1 8B, as its config.json describes it."""
    WIDTH, HEADS, KEY_HEADS, HEAD_DIM, INNER = 4096, 32, 8, 128, 14336
    WEIGHTS = 2 * WIDTH * HEADS * HEAD_DIM + 2 * WIDTH * KEY_HEADS * HEAD_DIM + 3 * WIDTH * INNER
    LINEAR = 2 * WEIGHTS  # FLOP for each token
    PER_KEY = 4 * HEADS * HEAD_DIM / 2  # FLOP of attention for each token and token of the text; causal: half


def crossing():
    picture = Picture("crossing", 372, "Attention against the linear layers", "floating-point operations for each "
                      "token in a layer of Llama 3.1 8B, with a causal mask")
    left, top, width, height = 110, 86, 640, 220
    longest, most = 131072, 1.2e9
    def at(seqlen, flop):
        return left + width * seqlen / longest, top + height * (1 - flop / most)
    for step in range(0, 13, 3):
        picture.line(at(0, step * 1e8), at(longest, step * 1e8), style="faint", width=1)
        picture.text(left - 8, at(0, step * 1e8)[1] + 5, f"{step / 10:g}", 14, "end")
    for seqlen in range(0, longest + 1, 16384):
        picture.text(at(seqlen, 0)[0], top + height + 20, f"{seqlen:,}", 13, "middle")
    picture.text(left + width / 2, top + height + 44, "tokens in the text", 14, "middle")
    picture.text(20, top - 10, "GFLOP", 14)
    for colour, end, words, place in ((ORANGE, Llama.LINEAR, "linear layers", (100000, 3.2e8)),
                                      (BLUE, Llama.PER_KEY * longest, "attention", (84000, 9.2e8))):
        start = at(0, Llama.LINEAR if colour == ORANGE else 0)
        picture.parts.append(f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{left + width}" y2="{at(0, end)[1]:g}" '
                             f'stroke="{colour}" stroke-width="4"/>')
        picture.text(*at(*place), words, 15, "middle", bold=True)
    cross = Llama.LINEAR / Llama.PER_KEY
    picture.line(at(cross, 0), at(cross, Llama.LINEAR), dash="5 4")
    picture.text(at(cross, 0)[0] - 8, at(0, 0.6e8)[1], f"equal at {cross:,.0f}", 15, "end")
    return picture


# ---- lesson 00 ----

class Scalar:
    """Sizes of stages/00-scalar/tiles.h."""
    KEYS, SCORE_ROWS, SOFTMAX_WARPS, OUTPUT_ROWS = 128, 32, 4, 8


def scalar():
    picture = Picture("scalar", 404, "Which part of a matrix a block and a thread compute",
                      "stage 00, one head of 128 queries and keys, D = 64")
    size, top = 1.7, 134
    for left, title, columns in ((20, "scores", 128), (291, "softmax", 128), (562, "output", 64)):
        picture.text(left, 90, title, 17, bold=True)
        picture.box(left, top, columns * size, 128 * size)
    for left, words in ((20, "128 keys"), (291, "128 keys")):
        picture.text(left, top - 9, words, 14)
    picture.text(562, top - 9, "64 columns of V", 14)
    picture.box(20, top, Scalar.KEYS * size, Scalar.SCORE_ROWS * size, SKY)
    picture.box(20 + 40 * size, top, 3, Scalar.SCORE_ROWS * size, BLUE)
    picture.box(291, top, 128 * size, Scalar.SOFTMAX_WARPS * size * 2, SKY)
    picture.box(291, top + 2 * size, 128 * size, 2 * size, BLUE)
    picture.box(562, top, 64 * size, Scalar.OUTPUT_ROWS * size, SKY)
    picture.box(562 + 20 * size, top, 3, Scalar.OUTPUT_ROWS * size, BLUE)
    for left, y, words in ((20, Scalar.SCORE_ROWS, "a thread: one key,\n32 queries"),
                           (291, 8, "a warp: one row\n(drawn twice as high)"),
                           (562, 8, "a thread:\none column,\n8 rows")):
        for i, line in enumerate(words.split("\n")):
            picture.text(left + 8, top + y * size + 30 + 19 * i, line, 15)
    picture.legend(20, 386, [(SKY, "one block", 130), (BLUE, "one thread; of softmax one warp", 0)])
    return picture


def butterfly_steps(numbers):
    """What each lane holds before and after each step: the larger of its own number and its partner's."""
    steps, distance = [list(numbers)], len(numbers) // 2
    while distance:
        last = steps[-1]
        steps.append([max(number, last[lane ^ distance]) for lane, number in enumerate(last)])
        distance //= 2
    return steps


def butterfly():
    numbers = 3, 1, 4, 1, 5, 9, 2, 6
    picture = Picture("butterfly", 372, "A maximum by shuffles", "8 lanes in 3 steps: each takes the larger of its own "
                      "number and its partner's; 32 lanes need 5 steps")
    steps = butterfly_steps(numbers)
    left, width, gap, top, high = 190, 76, 74, 108, 30
    picture.row([left + lane * width for lane in range(8)], top - 12, [f"lane {lane}" for lane in range(8)], 14, "grey")
    for i, row in enumerate(steps):
        y = top + i * gap
        if i:
            distance = 8 >> i
            picture.text(20, y - 18, f"lane ^ {distance}", 15)
            for lane in range(8):
                x, partner = left + lane * width, left + (lane ^ distance) * width
                picture.line((x, y - gap + high), (partner, y - 2), style="line", width=1, tips="end")
        for lane, number in enumerate(row):
            best = number == max(numbers)
            picture.box(left + lane * width - 20, y, 40, high, BLUE if best else "", str(number), 17)
    return picture


# ---- lesson 00b ----

class Tile:
    """Sizes of stage 00b. A thread's scores are drawn side by side; where they are best, its second task asks."""
    ROWS, KEYS, THREAD_ROWS, THREAD_KEYS = 64, 64, 8, 4
    WARP, LANE = 1, 5  # the thread that is drawn

    def __init__(self):
        self.row = 16 * self.WARP + self.LANE // 16 * self.THREAD_ROWS
        self.key = self.LANE % 16 * self.THREAD_KEYS


def tiles():
    picture = Picture("tiles", 496, "A block's tile of scores, and the part of one thread", "64 queries x 64 keys; "
                      "framed: warp 1; blue: the 32 scores of a thread, here side by side")
    tile, size, left, top, columns, step = Tile(), 4.5, 346, 188, 16, 5
    side, from_q, from_k = tile.ROWS * size, left - 12 - columns * 7, top - 12 - columns * 5
    rows, keys = top + tile.row * size, left + tile.key * size
    high, wide = tile.THREAD_ROWS * size, tile.THREAD_KEYS * size
    picture.box(from_q, top, columns * 7, side)
    picture.box(left, from_k, side, columns * 5)
    picture.box(left, top, side, side)
    picture.box(from_q, rows, columns * 7, high, PALE)
    picture.box(from_q + step * 7, rows, 14, high, ORANGE)
    picture.box(keys, from_k, wide, columns * 5, PALE)
    picture.box(keys, from_k + step * 5, wide, 10, ORANGE)
    picture.box(keys, rows, wide, high, BLUE)
    picture.frame(left, top + 16 * tile.WARP * size, side, 16 * size, 2)
    picture.text(from_q, top - 9, "Q: 64 rows of D", 15)
    for i, words in enumerate(("Kᵀ: 64 columns;", "each is a row of K", "in shared memory")):
        picture.text(left + side + 14, from_k + 18 + 19 * i, words, 15)
    for i, words in enumerate(("One step of the thread:", "it loads 12 pieces of 8", "numbers (orange), and",
                               "does 256 multiply-adds.", "A number of a query", "serves 4 scores, a",
                               "number of a key 8.")):
        picture.text(20, top + 66 + 19 * i, words, 15)
    for warp in range(4):
        picture.text(left + side + 14, top + (16 * warp + 9) * size, f"warp {warp}: 16 queries", 15)
    return picture


def group_of(row, chunk, pitch):
    """Where a chunk of 16 bytes lies when rows are `pitch` bytes apart: its line of 128, its group of four banks."""
    place = row * pitch + 16 * chunk
    return place // 128, place % 128 // 16


def padding():
    picture = Picture("padding", 440, "Eight rows of a tile in the banks", "D = 64: a row has 128 bytes, 8 chunks of "
                      "16; orange: chunk 0 of each row, which one access reads")
    width, height, top = 40, 29, 126
    for left, title, pitch, words in (
            (64, "without padding", 128, "all in banks 0-3: 8 clocks"),
            (448, "with 16 bytes of padding", 144, "each in other banks: 1 clock")):
        picture.text(left, top - 34, title, 16, bold=True)
        picture.row([left + (g + 0.5) * width for g in range(8)], top - 8, [f"{4 * g}-{4 * g + 3}" for g in range(8)],
                    12, "grey")
        picture.text(left - 6, top - 8, "banks", 12, "end", "grey")
        for row in range(8):
            for chunk in range(pitch // 16):
                line, group = group_of(row, chunk, pitch)
                colour = ORANGE if chunk == 0 else PALE if chunk == 8 else ""
                picture.box(left + group * width, top + line * height, width - 1, height - 1, colour)
                if chunk == 0:
                    picture.words(left + (group + 0.5) * width, top + (line + 0.5) * height, f"row {row}", 12, "white")
        picture.text(left, top + 9 * height + 26, words, 15)
    picture.legend(676, 413, [(PALE, "padding", 0)])
    return picture


# ---- lesson 01 ----

def wmma_tile():
    picture = Picture("wmma-tile", 412, "A block's tile of scores", "64 queries x 64 keys; a fragment has 16 x 16 "
                      "elements; framed: one mma_sync of warp 1")
    size, left, top, side = 56, 388, 172, 20
    for d in range(3):
        for n in range(4):
            picture.box(left + n * size, 90 + 26 * d, size - 1, 25, AMBER if d == 1 else "", "b" if d == 1 else "", 15)
    for d in range(4):
        for warp in range(4):
            picture.box(left - 4 * size - 16 + size * d, top + warp * size, size - 1, size - 1, SKY if d == 1 else "",
                        "a" if d == 1 else "", 15)
    for warp in range(4):
        for n in range(4):
            picture.box(left + n * size, top + warp * size, size - 1, size - 1, PALE, f"sum[{n}]", 13)
        picture.text(left + 4 * size + 12, top + (warp + 0.6) * size, f"warp {warp}: 16 queries", 15)
    picture.frame(left + 2 * size, top + size, size - 1, size - 1)
    picture.frame(left + 2 * size, 116, size - 1, 25)
    picture.frame(left - 4 * size - 16 + size, top + size, size - 1, size - 1)
    picture.text(left + 4 * size + 12, 124, "Kᵀ: D rows, 16 a step", 15)
    for i, words in enumerate(("Q: D columns,", "16 a step")):
        picture.text(side, top + 60 + 19 * i, words, 15)
    return picture


# ---- lesson 01b ----

# How the scores travel, kernel by kernel: down is a write to device memory, up a read; in small letters those of rows
# that are still in a cache.
TRIPS = {"00 to 01": (("scores", "D"), ("softmax", "UuduD"), ("output", "U")),
         "01b": (("scores", "D"), ("softmax", "UuD"), ("output", "U")),
         "02": (("attention", ""),)}


def trips():
    picture = Picture("trips", 452, "The trips of the scores through device memory", "an arrow: all scores, 8.6 GB at "
                      "B = 4, H = 32, S = 4096; dashed: the row is still in a cache")
    for n, (stage, kernels) in enumerate(TRIPS.items()):
        top = 84 + 122 * n
        picture.text(20, top + 26, f"stage {stage}", 16, bold=True)
        ways = "".join(way for _, way in kernels)
        far = sum(way.isupper() for way in ways)
        picture.text(20, top + 50, f"{len(ways)} trips, {far} outside" if ways else "no trip", 15)
        if ways:
            picture.text(20, top + 70, f"the caches: {far * 8.6:.0f} GB", 15)
        x = 190
        for name, way in kernels:
            width = 590 if len(kernels) == 1 else 46 * len(way) + 74
            picture.box(x, top, width, 34, BLUE, name, 16)
            for i, arrow in enumerate(way):
                at = x + width / 2 + 46 * (i - (len(way) - 1) / 2)
                ends = (at, top + 36), (at, top + 76)
                picture.line(*(ends if arrow in "Dd" else ends[::-1]), tips="end", width=2,
                             dash="" if arrow.isupper() else "4 4")
            x += width + 12
        picture.box(190, top + 78, 590, 26, PURPLE, f"device memory: {'scores, weights' if ways else 'no scores'}", 15)
    return picture


# ---- lesson 02 ----

def running(scores, tile):
    """(maximum, factor, weights, sum, output) after each tile of a row of the note's example."""
    most, total, output, steps = -math.inf, 0.0, [0.0] * 4, []
    for first in range(0, len(scores), tile):
        part = scores[first:first + tile]
        old, most = most, max(most, *part)
        factor = math.exp(old - most)  # of the first tile 0: there is nothing yet
        weights = [math.exp(score - most) for score in part]
        total = total * factor + sum(weights)
        output = [o * factor + sum(w * value[d] for w, value in zip(weights, VALUES[first:]))
                  for d, o in enumerate(output)]
        steps.append((most, factor, weights, total, output))
    return steps


def online_softmax():
    picture = Picture("online-softmax", 452, "The running numbers of one row", "query 3 of the note on attention: "
                      "its four keys come in two tiles")
    rows = ("scores s", "maximum m", "factor for l and o", "weights exp(s - m)", "sum l", "output o",
            "at the end: o / l")
    steps, tops, width = running(SCORES[3], 2), [114 + 46 * i for i in range(len(rows))], 252
    for y, words in zip(tops, rows):
        picture.text(20, y + 23, words, 15)
    for n, (most, factor, weights, total, output) in enumerate(steps):
        left = 180 + 340 * n
        picture.text(left, 100, f"after tile {n}: keys {2 * n} and {2 * n + 1}", 15, bold=True)
        cells = [SCORES[3][2 * n:2 * n + 2], [most], [factor], weights, [total], output]
        if n:
            cells.append([number / total for number in output])
        for y, numbers, colour in zip(tops, cells, (PALE, "", ORANGE, PALE, "", "", GREEN)):
            for j, number in enumerate(numbers):
                picture.box(left + j * width / len(numbers), y, width / len(numbers) - 2, 34, colour, short(number), 15)
    for y in tops[4:6]:
        picture.line((434, y + 24), (517, y + 24), tips="end", width=2)
        picture.text(474, y + 15, f"× {steps[1][1]:.3f}", 15, "middle")
    return picture


# ---- lesson 02b ----

def place_in_mma(operand, lane, i):
    """Row and column of a lane's number i of mma.m16n8k16. A register of D has one number, a register of A or B two."""
    if operand == "b":
        return 2 * (lane % 4) + i % 2 + 8 * (i // 2), lane // 4
    return lane // 4 + 8 * (i // 2 % 2), 2 * (lane % 4) + i % 2 + 8 * (i // 4)


NUMBERS_IN_MMA = {"a": 8, "b": 4, "d": 4}  # of a lane


def mma():
    picture = Picture("mma", 668, "Which lane holds which numbers of mma.m16n8k16", "D (16 x 8) += A (16 x 16) · B "
                      "(16 x 8); a cell is two numbers and has its lane; blue: lane 5")
    left, top, width, height = 70, 340, 38, 18.5
    right, above = left + 8 * width + 62, 96
    draw_fragment(picture, "a", left, top, width, height)
    draw_fragment(picture, "d", right, top, 2 * width, height)
    draw_fragment(picture, "b", right, above, width, 26)
    for x, y, words in ((left + 2 * width, top - 9, "a0"), (left + 6 * width, top - 9, "a2"),
                        (left + 2 * width, top + 16 * height + 18, "a1"),
                        (left + 6 * width, top + 16 * height + 18, "a3"), (right + 4 * width, top - 9, "d0 d1"),
                        (right + 4 * width, top + 16 * height + 18, "d2 d3"),
                        (right + 8 * width + 22, above + 56, "b0"), (right + 8 * width + 22, above + 160, "b1")):
        picture.text(x, y, words, 15, "middle", bold=True)
    for x, y, words in ((left, top - 30, "A"), (right - 34, top - 9, "D"), (right - 34, above + 16, "B")):
        picture.text(x, y, words, 19, bold=True)
    picture.text(left, above + 14, "A and D: lane l has rows", 15)
    picture.text(left, above + 34, "l / 4 and l / 4 + 8.", 15)
    picture.text(left, above + 62, "B: lane l has column l / 4.", 15)
    picture.text(left, above + 90, "The same four lanes, a quad,", 15)
    picture.text(left, above + 110, "share a row of A and of D.", 15)
    for row in (0, 7, 8, 15):
        picture.text(left - 8, top + (row + 0.75) * height, f"row {row}", 13, "end", "grey")
    return picture


def draw_fragment(picture, operand, left, top, width, height):
    """A cell for each two numbers of a lane, side by side, in B one below the other. A stripe has one colour."""
    cells = {}
    for lane in range(32):
        for i in range(0, NUMBERS_IN_MMA[operand], 2):
            row, column = place_in_mma(operand, lane, i)
            cells[(row // 2, column) if operand == "b" else (row, column // 2)] = lane
    rows, columns = (max(cell[k] for cell in cells) + 1 for k in range(2))
    for line in range(rows if operand == "b" else columns):
        colour = QUAD[cells[(line, 0) if operand == "b" else (0, line)] % 4]
        box = (left, top + line * height, columns * width, height) if operand == "b" else (
            left + line * width, top, width, rows * height)
        picture.box(*box, colour)
    for row, column in (cell for cell, lane in cells.items() if lane == 5):
        picture.box(left + column * width, top + row * height, width, height, BLUE)
    for row in range(rows):
        for mine, style in ((False, "dark"), (True, "white")):
            own = [column for column in range(columns) if (cells[row, column] == 5) == mine]
            if own:
                picture.row([left + (column + 0.5) * width for column in own], top + (row + 0.5) * height + 5,
                            [cells[row, column] for column in own], 13, style)
    half = rows // 2 * height
    picture.line((left, top + half), (left + columns * width, top + half), style="rule", width=2)
    if operand == "a":
        middle = left + columns * width / 2
        picture.line((middle, top), (middle, top + 2 * half), style="rule", width=2)


# ---- lesson 02c ----

# The largest score of each tile of a row, times log2 e: made up, with one large step.
LARGEST = 3, 2.4, 4.2, 3.6, 3.1, 5, 4.1, 5.8, 4.6, 12.5, 8, 13.4, 9.9, 11, 14.2, 10.5


def maxima(largest, limit):
    """The maximum that a lazy softmax has after each tile: it follows when a weight would exceed 2 ** limit."""
    held = [largest[0]]
    for i in range(1, len(largest)):
        exact = max(largest[:i + 1])
        held.append(exact if exact - held[-1] > limit else held[-1])
    return held


def lazy():
    picture = Picture("lazy", 384, "An exact maximum and a lazy one", "one row over 16 tiles, scores made up, in "
                      "powers of two; dots: here the sum and O are rescaled")
    left, bottom, step, unit = 70, 342, 44, 15
    for score in range(0, 13, 4):
        picture.line((left, bottom - score * unit), (left + 16 * step, bottom - score * unit), style="faint", width=1)
        picture.text(left - 8, bottom - score * unit + 5, str(score), 14, "end")
    picture.row([left + (i + 0.5) * step for i in range(16)], bottom + 20, range(16), 13, "grey")
    picture.text(left - 8, bottom + 20, "tile", 13, "end", "grey")
    for i, score in enumerate(LARGEST):
        picture.box(left + i * step + 12, bottom - score * unit, 20, score * unit, PALE)
    for colour, limit in ((ORANGE, 0), (BLUE, 8)):
        held, points = maxima(LARGEST, limit), []
        for i, score in enumerate(held):
            y = bottom - score * unit
            points += [(left + i * step, y), (left + (i + 1) * step, y)]
            if i and score != held[i - 1]:
                picture.parts.append(f'<circle cx="{left + i * step}" cy="{y:g}" r="6" fill="{colour}"/>')
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        picture.parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="4" points="{path}"/>')
    picture.legend(70, 96, [(PALE, "the tile's largest score", 210), (ORANGE, "exact maximum", 155),
                            (BLUE, "lazy: follows when behind by more than 8", 0)])
    return picture


# ---- lesson 02e ----

def reuse():
    picture = Picture("reuse", 352, "One step along the head dimension, by one warp", "a square is a fragment, 16 x 16 "
                      "numbers; blue and amber ones are loaded from shared memory")
    size, left, top = 54, 128, 170
    for stage, groups, corner in (("02d", 1, left), ("02e", 2, left + 7 * size)):
        keys = 4
        picture.text(corner - 1.4 * size, 92, f"stage {stage}: {16 * groups} queries a warp", 16, bold=True)
        for n in range(keys):
            picture.box(corner + n * size, top - 1.3 * size, size - 1, size - 1, AMBER, f"K{n}", 15)
        for group in range(groups):
            y = top + group * size
            picture.box(corner - 1.3 * size, y, size - 1, size - 1, SKY, f"Q{group}", 15)
            for n in range(keys):
                picture.box(corner + n * size, y, size - 1, size - 1, "", f"Q{group}·K{n}", 14)
        picture.text(corner - 1.3 * size, top + 2 * size + 32, f"{groups} + {keys} = {groups + keys} loads", 15)
        picture.text(corner - 1.3 * size, top + 2 * size + 54, f"{groups} · {keys} = {groups * keys} products", 15)
    return picture


# ---- lesson 03 ----

class BufferTime:
    """When a tile is copied and used, in units of time: a copy takes 1.5 (assumed), the use of a tile 2. In stage 02e
    the warps copy, then use. In stage 03 the copy of tile t + 1 starts when the use of tile t does."""
    COPY, USE = 1.5, 2

    def __init__(self, tile, ahead):
        if ahead:
            self.use = self.COPY + self.USE * tile
            self.copy = self.use - self.USE if tile else 0
        else:
            self.copy = (self.COPY + self.USE) * tile
            self.use = self.copy + self.COPY
        self.landed, self.end = self.copy + self.COPY, self.use + self.USE
        self.slot = tile % 2 if ahead else 0


def double_buffer():
    picture = Picture("double-buffer", 362, "One slot and two", "a schedule, not measured: a copy takes 1.5 units of "
                      "time, the use of a tile 2")
    left, unit, end = 130, 58, 11
    for top, title, lanes, ahead in (
            (92, "02e: all warps copy, wait, and then use the tile", ("copy into 0", "use"), False),
            (206, "03: tile t + 1 arrives in one slot while the warps use tile t in the other",
             ("copy into 0", "copy into 1", "use"), True)):
        picture.text(20, top, title, 16, bold=True)
        for i, lane in enumerate(lanes):
            picture.text(20, top + 32 + 34 * i, lane, 15)
        for tile in range(6):
            time = BufferTime(tile, ahead)
            for lane, begin, to, colour in ((time.slot, time.copy, time.landed, GREEN),
                                            (len(lanes) - 1, time.use, time.end, ORANGE)):
                width = (min(to, end) - begin) * unit
                if width > 0:
                    picture.box(left + begin * unit, top + 12 + 34 * lane, width - 1, 30, colour,
                                f"tile {tile}" if width > 50 else "", 15)
            if ahead and time.use < end:
                x = left + time.use * unit
                picture.line((x, top + 6), (x, top + 118), dash="4 3")
    picture.text(left, 346, "dashed: cp_async_wait<0>, then the block's barrier", 15)
    return picture


FIGURES = (attention, causal_mask, crossing, scalar, butterfly, tiles, padding, wmma_tile, trips, online_softmax, mma,
           lazy, reuse, double_buffer)
