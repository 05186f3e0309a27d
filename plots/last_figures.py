"""The pictures of the lessons from stage 10 on. figures.py writes them."""
from picture import AMBER, BLUE, ORANGE, PALE, PURPLE, QUAD, SKY, YELLOW, Picture


# ---- lesson 10 ----

def bars(picture, left, top, unit, parts):
    """Parts of a lane, one after the other: (how long, colour, words)."""
    for length, colour, words in parts:
        picture.box(left, top, length * unit - 1, 34, colour, words, 15)
        left += length * unit


def stale_max():
    picture = Picture("stale-max", 320, "What a warp does in a step", "a drawing, not measured: how long each part "
                      "takes is assumed")
    left, unit = 160, 50
    for top, title, softmax, product in (
            (96, "09b: search first", [(3.2, ORANGE, "find the maximum"), (1, "", "wait"), (6, SKY, "ex2 of all keys"),
                                       (1, PALE, "pack")], 4.2),
            (206, "10: check last", [(2.4, SKY, "ex2: first keys"), (1, "", "wait"), (3.6, SKY, "ex2: other keys"),
                                     (1, PALE, "pack"), (1, AMBER, "check")], 3.4)):
        picture.text(20, top, title, 16, bold=True)
        picture.text(20, top + 33, "warp", 15)
        picture.text(20, top + 71, "tensor cores", 15)
        bars(picture, left, top + 11, unit, softmax)
        bars(picture, left, top + 49, unit, [(product, BLUE, "PV of the tile before")])
        x = left + product * unit
        picture.line((x, top + 4), (x, top + 86), dash="4 3")
    picture.line((left, 304), (780, 304), tips="end")
    picture.text(20, 309, "time, from QK's end", 14, style="grey")
    return picture


# ---- lesson 11b ----

def key_of(position):
    """Which of 16 keys stands at a position of a row of V transposed, as the weights have them."""
    return 2 * (position // 4) + position % 2 + 8 * (position // 2 % 2)


def byte_transpose():
    picture = Picture("byte-transpose", 470, "Bytes, transposed in pairs", "V's columns 0 and 1 of 16 keys; a colour "
                      "for each lane of the first four; a number is a key")
    top, size = 120, 17
    picture.text(20, 92, "two columns of V", 15, bold=True)
    for key in range(16):
        y = top + key * (size + 2)
        for column in range(2):
            picture.box(60 + 42 * column, y, 40, size, QUAD[key % 8 // 2], f"{key}", 13)
    picture.row([80, 122], top - 8, ["col 0", "col 1"], 13, "grey")
    picture.text(230, 92, "ldmatrix.trans: registers of lane 0", 15, bold=True)
    draw_register(picture, 230, 120, "x[0]", ["0, col 0", "0, col 1", "1, col 0", "1, col 1"])
    draw_register(picture, 230, 166, "x[1]", ["8, col 0", "8, col 1", "9, col 0", "9, col 1"])
    picture.line((440, 206), (440, 242), tips="end")
    picture.text(454, 230, "two prmt", 15)
    draw_register(picture, 230, 248, "even", ["0, col 0", "1, col 0", "8, col 0", "9, col 0"])
    draw_register(picture, 230, 294, "odd", ["0, col 1", "1, col 1", "8, col 1", "9, col 1"])
    picture.line((440, 334), (440, 370), tips="end")
    picture.text(454, 358, "stmatrix: four lanes make a row", 15)
    for i, (name, y) in enumerate((("column 0", 378), ("column 1", 418))):
        picture.text(222, y + 24, name, 15, "end")
        for position in range(16):
            key = key_of(position)
            picture.box(230 + 34 * position, y, 33, 34, QUAD[key % 8 // 2], str(key), 15)
    return picture


def draw_register(picture, left, y, name, four):
    picture.text(left, y + 24, name, 15)
    for i, words in enumerate(four):
        picture.box(left + 56 + 92 * i, y, 90, 34, QUAD[0], words, 15)


FIGURES = stale_max, byte_transpose
