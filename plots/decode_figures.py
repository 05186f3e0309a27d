"""The pictures of the lessons on decode, 13 to 13c. figures.py writes them."""
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


FIGURES = decode, cluster
