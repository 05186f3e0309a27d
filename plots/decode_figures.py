"""The pictures of the lessons on decode, 13 to 13d. figures.py writes them."""
from picture import BLUE, GREEN, ORANGE, PALE, PURPLE, SKY, Picture

# ---- lesson 13 ----

GROUP, COLUMNS = 4, 8  # query heads of a key head; columns of an mma's result


def draw_columns(picture, left, top, height, words):
    """Eight columns: a group's queries, then zeros."""
    for column in range(COLUMNS):
        picture.box(left + 30 * column, top, 29, height, BLUE if column < GROUP else PALE,
                    words.format(column) if column < GROUP else "0", 14)


def decode():
    picture = Picture("decode", 440, "Both products of a decode", "keys and values are the rows, the queries of one "
                      "key head the columns of an mma")
    for top, title, rows, first, words, second, result in (
            (110, "Sᵀ = K Qᵀ", "16 keys", "D numbers of a key", "q{}", "D rows", "scores of 16 keys"),
            (290, "Oᵀ += Vᵀ Pᵀ", "16 columns of V", "16 keys", "p{}", "16 rows: keys", "16 columns of O")):
        picture.text(20, top - 16, title, 17, bold=True)
        wide = 250 if first.startswith("D") else 130
        picture.box(130, top, wide, 96, SKY, first, 15)
        picture.words(66, top + 48, rows.replace(" of", "\nof") if "of" in rows else rows, 14)
        picture.words(400, top + 48, "·", 26)
        draw_columns(picture, 420, top, 96, words)
        picture.text(420 + 120, top + 114, second, 14, "middle", "grey")
        picture.words(674, top + 48, "=", 20)
        for column in range(COLUMNS):
            picture.box(690 + 11 * column, top, 10, 96, GREEN if column < GROUP else PALE)
        picture.text(734, top + 114, result, 14, "middle", "grey")
    picture.legend(130, 428, [(SKY, "from the cache, once", 200), (BLUE, "4 query heads, or their weights", 270),
                              (PALE, "no query: zeros", 0)])
    return picture


# ---- lesson 13c ----

BLOCKS = 4
COLOURS = BLUE, ORANGE, GREEN, PURPLE


def cluster():
    picture = Picture("cluster", 432, "Four blocks of a cluster combine their parts", "each reads a quarter of the keys; a "
                      "colour stands for the block that answers for these columns")
    left, wide, gap = 150, 142, 16
    for block in range(BLOCKS):
        x = left + block * (wide + gap)
        picture.text(x + wide / 2, 92, f"block {block}", 16, "middle", bold=True)
        picture.box(x, 104, wide, 40, SKY, f"keys: quarter {block}", 14)
        for part in range(BLOCKS):
            picture.box(x + part * wide / 4, 184, wide / 4 - 1, 34, COLOURS[part])
            picture.box(x + part * wide / 4, 310, wide / 4 - 1, 34, COLOURS[block])
        picture.box(x, 372, wide, 34, COLOURS[block], f"O: quarter {block}", 14)
        for part in range(BLOCKS):  # the part for block `part` lands in its place number `block`
            to = left + part * (wide + gap) + (block + 0.5) * wide / 4
            picture.line((x + (part + 0.5) * wide / 4, 219), (to, 308), width=1, tips="end",
                         style="line" if part != block else "faint")
    for y, words in ((128, "read"), (205, "O of its keys"), (265, "send"), (331, "parts of all"), (393, "combine")):
        picture.text(20, y, words, 15)
    for y, words in ((164, "first barrier: all have begun"), (358, "second barrier: all have sent")):
        picture.line((left, y), (left + 4 * wide + 3 * gap, y), dash="6 4")
        picture.text(20, y + 5, words.split(":")[0], 13, style="grey")
    return picture


# ---- lesson 13d ----

TILES = {"A": 5, "B": 1, "C": 0, "D": 3}  # of each key head of a sequence
KEY_HEADS, WORKERS = 2, 4


def ragged():
    picture = Picture("ragged", 330, "One list of tiles, shared out among four warps", "four sequences with two key heads "
                      "each; sequence C has no keys")
    heads = [(name, head, tiles) for name, tiles in TILES.items() for head in range(KEY_HEADS) if tiles]
    total = KEY_HEADS * sum(TILES.values())
    first = [worker * total // WORKERS for worker in range(WORKERS + 1)]
    left, wide = 20, 42
    at = 0
    for i, (name, head, tiles) in enumerate(heads):
        x = left + wide * at
        picture.words(x + wide * tiles / 2, 90, f"{name}, head {head}" if tiles > 1 else f"{name}\n{head}", 14)
        for tile in range(tiles):
            picture.box(x + wide * tile, 110, wide - 2, 40, (SKY, PALE)[i % 2], str(tile), 14)
        at += tiles
    for worker in range(WORKERS):
        x, end = left + wide * first[worker], left + wide * first[worker + 1] - 2
        picture.box(x, 176, end - x, 34, COLOURS[worker], f"worker {worker}", 14)
        begun = 0
        finds = []
        for name, head, tiles in heads:
            low, high = max(begun, first[worker]), min(begun + tiles, first[worker + 1])
            if low < high:
                finds.append(f"{name}, head {head}: " + ("O" if high - low == tiles else "first part" if low == begun
                                                         else "last part"))
            begun += tiles
        for line, words in enumerate(finds):
            picture.text(x, 236 + 22 * line, words, 14)
    for bound in first[1:-1]:
        x = left + wide * bound - 1
        picture.line((x, 104), (x, 214), dash="6 4")
    return picture


FIGURES = decode, cluster, ragged
