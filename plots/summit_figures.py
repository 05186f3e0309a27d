"""The pictures of lessons 07b to 09: see figures.py, which draws them."""
from picture import AMBER, SKY, Picture

# ---- registers that move: lesson 07b ----


class Registers:
    """An example, and no stage's numbers: two warpgroups of 128 threads, with so many registers a thread."""
    LAUNCH, FEW, MANY, THREADS = 128, 40, 216, 128


def registers():
    picture = Picture("registers", 336, "Registers move between warpgroups", "an example: a block of two warpgroups; "
                      f"the launch gave it 256 · {Registers.LAUNCH} = {256 * Registers.LAUNCH:,} registers")
    left, unit, height = 160, 2.4, 44
    few, launch, many = Registers.FEW, Registers.LAUNCH, Registers.MANY
    rows = (("at launch", "all threads have the same number", ((launch, SKY, f"A: {launch} a thread"),
                                                      (launch, AMBER, f"B: {launch} a thread"))),
            (f"A: dec {few}", "A releases at once", ((few, SKY, f"A: {few}"), (launch - few, "", f"free: {launch - few}"),
                                                   (launch, AMBER, f"B: {launch}"))),
            (f"B: inc {many}", f"B waits until {many - launch} a thread are free, and takes them", ((few, SKY, f"A: {few}"),
                                                                        (many, AMBER, f"B: {many} a thread"))))
    for i, (name, words, parts) in enumerate(rows):
        y, x = 98 + 76 * i, left
        picture.text(20, y + height / 2 + 5, name, 16, bold=True)
        picture.text(left, y - 7, words, 14, style="grey")
        for count, colour, label in parts:
            picture.box(x, y, count * unit - 2, height, colour, label, 15)
            x += count * unit
    picture.text(left, 320, f"128 · {few} + 128 · {many} = {128 * (few + many):,}: no more than the launch gave", 15)
    return picture


FIGURES = (registers,)
