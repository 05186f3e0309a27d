"""The pictures of the lessons from stage 10 on. figures.py writes them."""
from picture import AMBER, BLUE, GREEN, ORANGE, PALE, SKY, Picture


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


FIGURES = (stale_max,)
