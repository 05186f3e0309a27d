"""The pictures of the lessons from stage 10 on. figures.py writes them."""
from picture import AMBER, BLUE, ORANGE, PALE, QUAD, SKY, Picture


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
    for name, y in ("column 0", 378), ("column 1", 418):
        picture.text(222, y + 24, name, 15, "end")
        for position in range(16):
            key = key_of(position)
            picture.box(230 + 34 * position, y, 33, 34, QUAD[key % 8 // 2], str(key), 15)
    return picture


def draw_register(picture, left, y, name, four):
    picture.text(left, y + 24, name, 15)
    for i, words in enumerate(four):
        picture.box(left + 56 + 92 * i, y, 90, 34, QUAD[0], words, 15)


# ---- lesson 12 ----

def two_passes():
    picture = Picture("two-passes", 412, "Two passes over the S x S pairs of queries and keys", "a block owns the "
                      "blue tiles and goes through them; no other block adds to its gradients")
    draw_pass(picture, 150, "pass over queries", "owns Q, dO", "streams K, V", "adds up dQ", by_rows=True)
    draw_pass(picture, 560, "pass over keys", "owns K, V", "streams Q, dO", "adds up dK, dV", by_rows=False)
    return picture


def draw_pass(picture, left, title, owns, streams, result, by_rows):
    top, size, tiles, mine = 136, 34, 6, 2
    picture.text(left - 110, 92, title, 16, bold=True)
    picture.text(left + tiles * size / 2, top - 10, "keys", 15, "middle", "grey")
    picture.text(left - 10, top + 20, "queries", 15, "end", "grey")
    for row in range(tiles):
        for column in range(tiles):
            own = (row if by_rows else column) == mine
            picture.box(left + column * size, top + row * size, size - 2, size - 2, SKY if own else PALE)
    middle, begin, end = (mine + 0.5) * size - 1, 6, tiles * size - 8
    if by_rows:
        y = top + middle
        picture.line((left + begin, y), (left + end, y), tips="end", width=2.5)
        picture.text(left - 10, y + 5, owns, 15, "end")
    else:
        x = left + middle
        picture.line((x, top + begin), (x, top + end), tips="end", width=2.5)
    bottom = top + tiles * size + 22
    words = (streams, result) if by_rows else (owns, streams, result)
    for i, line in enumerate(words):
        picture.text(left, bottom + 20 * i, line, 15, bold=line == result)


# ---- lesson 12b ----

def two_barriers():
    picture = Picture("two-barriers", 240, "One buffer for dS, two barriers a step", "a drawing, not measured: "
                      "warpgroup 1 is slower in this step; dashed: a barrier of the block")
    left, unit = 150, 52
    lanes = (("warpgroup 0", ((3, SKY, "S, dP, P, dV, dS"), (1.4, "", "waits"), (1.6, ORANGE, "writes dS"),
                              (0.6, "", ""), (2.4, BLUE, "its half of dQ"), (2, SKY, "next step"))),
             ("warpgroup 1", ((4.4, SKY, "S, dP, P, dV, dS"), (2.2, ORANGE, "writes dS"), (2.4, BLUE, "its half of dQ"),
                              (2, SKY, "next step"))))
    for i, (name, parts) in enumerate(lanes):
        picture.text(20, 125 + 48 * i, name, 15)
        bars(picture, left, 102 + 48 * i, unit, parts)
    for x, words in ((4.4, "no product reads the old dS"), (6.6, "both halves of dS are there")):
        picture.line((left + x * unit, 92), (left + x * unit, 200), dash="4 3")
        picture.text(left + x * unit, 86 if x < 5 else 218, words, 15, "middle")
    return picture


# ---- lesson 12c ----

def ds_ring():
    picture = Picture("ds-ring", 330, "A ring for dS", "a drawing, not measured: two slots, tile t in slot t % 2; "
                      "arrows: dS of a tile is complete")
    left, unit = 150, 60
    tops = {"key warpgroup 0": 96, "key warpgroup 1": 144, "slot 0": 206, "slot 1": 236, "query warpgroup": 282}
    for name, top in tops.items():
        picture.text(20, top + (16 if name.startswith("slot") else 23), name, 15)
    begins = {0: (0, 2.4, 4.9, 7.4), 1: (0.5, 3.1, 5.5, 8.1)}
    for group, times in begins.items():
        for tile, (begin, end) in enumerate(zip(times, (*times[1:], 10.4))):
            end = min(end, 10.4)
            picture.box(left + begin * unit, tops[f"key warpgroup {group}"], (end - begin) * unit - 2, 34, SKY,
                        f"tile {tile}", 15)
    for tile in range(3):
        written, full = begins[0][tile] + 1.5, begins[1][tile] + 2
        end = full + 1.9
        picture.box(left + written * unit, tops[f"slot {tile % 2}"], (full - written) * unit - 1, 24, ORANGE, "")
        x = left + full * unit
        picture.box(x, tops[f"slot {tile % 2}"], (end - 0.6 - full) * unit, 24, AMBER, f"dS {tile}", 14)
        picture.box(x, tops["query warpgroup"], (end - full) * unit - 2, 34, BLUE, f"dQ of tile {tile}", 15)
        picture.line((x, 180), (x, 282), tips="end")
    picture.legend(440, 82, [(ORANGE, "is written", 110), (AMBER, "full, being read", 0)])
    return picture


# ---- lesson 12d ----

def late_dk():
    picture = Picture("late-dk", 316, "What a key warpgroup computes while its products run", "a drawing, not "
                      "measured: n is the tile of a step; all parts are assumed to take as long")
    left, unit = 150, 63
    panels = (("12c: one product, then its result",
               ((BLUE, 0, "S n"), (BLUE, 2, "dP n"), (SKY, 4, "dV n"), (SKY, 5, "dK n"), (BLUE, 6, "S n+1"),
                (BLUE, 8, "dP n+1")),
               ((0, 1, ""), (1, 1, "P n"), (2, 1, ""), (3, 1, "dS n"), (4, 1, "put"), (5, 1, ""),
                (6, 1, ""), (7, 1, "P n+1"), (8, 1, ""))),
              ("12d: two products; work on the first while the second runs",
               ((BLUE, 0, "S n"), (SKY, 1, "dK n-1"), (BLUE, 2, "dP n"), (SKY, 3, "dV n"), (BLUE, 5, "S n+1"),
                (SKY, 6, "dK n"), (BLUE, 7, "dP n+1"), (SKY, 8, "dV n+1")),
               ((0, 1, ""), (1, 1, "P n"), (2, 1, ""), (3, 1, "dS n"), (4, 1, "put"), (5, 1, ""),
                (6, 1, "P n+1"), (7, 1, ""), (8, 1, "dS n+1"))))
    for i, (title, products, work) in enumerate(panels):
        top = 96 + 112 * i
        picture.text(20, top, title, 16, bold=True)
        picture.text(20, top + 35, "tensor cores", 15)
        picture.text(20, top + 73, "warpgroup", 15)
        for colour, begin, words in products:
            picture.box(left + begin * unit, top + 12, unit - 2, 34, colour, words, 15)
        for begin, length, words in work:
            picture.box(left + begin * unit, top + 50, length * unit - 2, 34, ORANGE if words else "",
                        words or "waits", 14)
    return picture


# ---- lesson 21 ----

def kind_of_piece(row, key, size, window):
    """Of `size` queries from `row` on and as many keys from `key` on: its colour, None where no query sees a key."""
    first, last = row - window + 1, row + size - 1  # the first key that any of them sees, and the last
    if key > last or key + size - 1 < first:
        return None
    return ORANGE if key + size - 1 > row else AMBER if key < last - window + 1 else SKY


def window():
    length, window_size, size, unit = 640, 256, 64, 27
    picture = Picture("window", 398, "Which pieces of S a window needs",
                      "S of 640 queries and keys, W = 256; a piece is 64 x 64, a key tile 128 wide")
    left, top = 178, 106
    def at(row, key):
        return left + key * unit / size, top + row * unit / size
    for row in range(0, length, size):
        for key in range(0, length, size):
            colour = kind_of_piece(row, key, size, window_size)
            picture.box(*at(row, key), unit - 1, unit - 1, colour or "")
        x, y = at(row, 0)
        picture.text(x - 10, y + 19, f"{row}-{row + size - 1}", 13, "end", "grey")
        picture.text(left - 150, y + 19, f"consumer {row // size % 2}", 13)
    for edge in range(0, length + 1, 128):
        picture.line(at(0, edge), at(length, edge), width=2)
        picture.line(at(edge, 0), at(edge, length), width=2)
        picture.text(at(0, edge)[0], top - 8, str(edge), 13, "middle", "grey")
    picture.line(at(0, 0), at(length, length), width=1.5)
    picture.line(at(window_size, 0), at(length, length - window_size), width=1.5)
    for i, (colour, words) in enumerate(((ORANGE, "diagonal: mask the keys\nafter the query"),
                                         (SKY, "inside: no mask"),
                                         (AMBER, "edge: mask the keys\nbefore the window"),
                                         ("", "skipped"))):
        picture.box(490, 120 + 62 * i, 20, 20, colour)
        for j, line in enumerate(words.split("\n")):
            picture.text(522, 135 + 62 * i + 19 * j, line, 15)
    picture.text(490, 358, "From query 256 on a consumer has", 15)
    picture.text(490, 377, "five pieces: two tiles and a half.", 15)
    picture.text(left + 5 * unit, 82, "keys", 14, "middle")
    return picture


FIGURES = stale_max, byte_transpose, two_passes, two_barriers, ds_ring, late_dk, window
