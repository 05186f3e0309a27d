"""The pictures of lessons 07 to 09: see figures.py, which draws them."""
from picture import AMBER, BLUE, GREEN, ORANGE, PALE, PURPLE, QUAD, SKY, YELLOW, Picture

# ---- slots of K and V: lesson 07 ----

class Slots:
    """A schedule, and no measurement: one consumer, two slots for K and two for V. QK and PV take 1 unit of time, a
    softmax 3, a copy 1.5; the first two tiles have landed at time 0."""
    STEP, COPY, COUNT = 5, 1.5, 2
    USE = {"K": (0, 1), "V": (4, 5)}  # in a step

    @classmethod
    def life(cls, kind, tile, rings):
        """When a tile's copy begins, when it has landed, and from when to when it is used. With one ring for both
        (stage 06) a thread loads during QK into the slot of the previous tile; with a ring each (stage 07) the producer
        loads as soon as the slot is empty."""
        begin, end = (cls.STEP * tile + time for time in cls.USE[kind])
        if tile < cls.COUNT:
            return -cls.COPY, 0, begin, end
        empty = cls.STEP * (tile - cls.COUNT) + (cls.USE[kind][1] if rings > 1 else cls.STEP + 0.25)
        return empty, empty + cls.COPY, begin, end


def slots():
    picture = Picture("slots", 462, "How long a tile keeps its slot",
                      "a schedule, not measured: one consumer, two slots for K and two for V")
    left, unit, units, height = 120, 44, 15, 24
    def bar(y, begin, end, colour, words):
        begin, end = max(begin, 0), min(end, units)
        if end > begin:
            picture.box(left + begin * unit, y, (end - begin) * unit - 1, height, colour,
                        words if (end - begin) * unit > 9 * len(words) else "", 14)
    for top, title, rings in ((88, "stage 06: one ring; a slot is released after PV, and filled during the next QK", 1),
                              (268, "stage 07: a ring each; K is loaded again after QK, V after PV", 2)):
        picture.text(20, top, title, 16, bold=True)
        for lane, words in enumerate(("consumer", "K, slot 0", "K, slot 1", "V, slot 0", "V, slot 1")):
            picture.text(20, top + 12 + lane * 28 + 18, words, 15)
        for tile in range(units // Slots.STEP):
            for words, begin, end, colour in (("QK", 0, 1, BLUE), ("softmax", 1, 4, ORANGE), ("PV", 4, 5, SKY)):
                bar(top + 12, Slots.STEP * tile + begin, Slots.STEP * tile + end, colour, f"{words} {tile}")
        for lane, kind in enumerate("KV"):
            for tile in range(units // Slots.STEP + 2):
                y = top + 40 + 28 * (2 * lane + tile % Slots.COUNT)
                begin, landed, use, end = Slots.life(kind, tile, rings)
                bar(y, begin, landed, GREEN, f"{kind} {tile}")
                bar(y, landed, use, PALE, f"{kind} {tile}")
                bar(y, use, end, {"K": BLUE, "V": SKY}[kind], f"{kind} {tile}")
    picture.legend(left, 446, [(GREEN, "is being copied", 160), (PALE, "full", 90), (BLUE, "QK reads it", 135),
                               (SKY, "PV reads it", 0)])
    return picture


# ---- registers that move: lesson 07b ----


class Registers:
    """An example, and no stage's numbers: two warpgroups of 128 threads, with so many registers a thread."""
    LAUNCH, FEW, MANY, THREADS = 128, 40, 216, 128


def registers():
    picture = Picture("registers", 336, "Registers move between warpgroups", "an example: a block of two warpgroups; "
                      f"the launch gave it 256 · {Registers.LAUNCH} = {256 * Registers.LAUNCH:,} registers")
    left, unit, height = 160, 2.4, 44
    few, launch, many = Registers.FEW, Registers.LAUNCH, Registers.MANY
    a, b = (few, SKY, f"A: {few}"), (launch, AMBER, f"B: {launch}")
    rows = (("at launch", "all threads have the same number",
             ((launch, SKY, f"A: {launch} a thread"), (launch, AMBER, f"B: {launch} a thread"))),
            (f"A: dec {few}", "A releases at once", (a, (launch - few, "", f"free: {launch - few}"), b)),
            (f"B: inc {many}", f"B waits until {many - launch} a thread are free, and takes them",
             (a, (many, AMBER, f"B: {many} a thread"))))
    for i, (name, words, parts) in enumerate(rows):
        y, x = 98 + 76 * i, left
        picture.text(20, y + height / 2 + 5, name, 16, bold=True)
        picture.text(left, y - 7, words, 14, style="grey")
        for count, colour, label in parts:
            picture.box(x, y, count * unit - 2, height, colour, label, 15)
            x += count * unit
    picture.text(left, 320, f"128 · {few} + 128 · {many} = {128 * (few + many):,}: no more than the launch gave", 15)
    return picture



# ---- one matrix of stmatrix: lesson 08c ----

def holder(row, column):
    """The lane that holds a number of an 8 x 8 matrix: 8 rows of four lanes, two neighbours each."""
    return 4 * row + column // 2


def stmatrix():
    picture = Picture("stmatrix", 412, "One 8 x 8 matrix of stmatrix", "left: the lane that holds two of its fp16 "
                      "numbers; right: the lane that gives the address of a row")
    left, top, width, height, side = 60, 118, 84, 30, 520
    picture.text(left, top - 14, "in registers", 15, bold=True)
    picture.text(side, top - 14, "in shared memory", 15, bold=True)
    for row in range(8):
        y = top + row * height
        for column in range(0, 8, 2):
            picture.box(left + column // 2 * width, y, width - 2, height - 2, QUAD[column // 2],
                        f"lane {holder(row, column)}", 14)
        picture.text(left - 8, y + 20, str(row), 14, "end", "grey")
        picture.line((left + 4 * width + 4, y + 14), (side - 8, y + 14), tips="end", width=1)
        picture.box(side, y, 230, height - 2, "", f"16 bytes at lane {row}'s address", 13)
    picture.text(left, top + 8 * height + 26, "The eight addresses may be anywhere. Here the swizzle puts them into "
                 "different banks.", 15)
    picture.text(left, top + 8 * height + 48, "Of four matrices, lanes 8 to 15 give the rows of matrix 1, lanes 16 "
                 "to 23 those of 2, and so on.", 15)
    return picture


# ---- the longest tiles first: lesson 09 ----

def schedule(tiles, sms):
    """Gives each tile, in this order, to the SM that is free first: (SM, begin, key tiles)."""
    free, given = [0] * sms, []
    for key_tiles in tiles:
        sm = free.index(min(free))
        given.append((sm, free[sm], key_tiles))
        free[sm] += key_tiles
    return given


def longest_first():
    """Two heads at D = 128, S = 1024, causal: tile i of a head has i + 1 key tiles."""
    picture = Picture("longest-first", 410, "The order of the tiles decides when the last SM is done",
                      "two heads, D = 128, S = 1024, causal, on four SMs; a number says how many key tiles a tile has")
    colours = (SKY, AMBER, GREEN, YELLOW, BLUE, PURPLE, ORANGE, PALE)
    left, unit, height, sms = 90, 32, 27, 4
    for top, title, order in ((108, "longest first", range(8, 0, -1)), (266, "shortest first", range(1, 9))):
        given = schedule([key_tiles for key_tiles in order for _ in range(2)], sms)
        end = max(begin + key_tiles for _, begin, key_tiles in given)
        picture.text(20, top - 12, f"{title}: done after {end} steps", 16, bold=True)
        for sm in range(sms):
            picture.text(20, top + sm * (height + 3) + 19, f"SM {sm}", 15)
        for sm, begin, key_tiles in given:
            picture.box(left + begin * unit, top + sm * (height + 3), key_tiles * unit - 2, height,
                        colours[key_tiles - 1], str(key_tiles), 15)
        picture.line((left + end * unit, top - 6), (left + end * unit, top + sms * (height + 3)), dash="5 4")
    return picture


FIGURES = slots, registers, stmatrix, longest_first
