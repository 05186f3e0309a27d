#!/usr/bin/env python3
"""Draws the lessons' and notes' pictures of what has no recording: owners of registers, places in memory, order.

    python3 plots/figures.py [FOLDER]

writes FOLDER/figure-NAME.svg, plots/ if no folder is named. What a picture shows is computed from the rules that the
kernels use (common/ptx/tile.h, common/ptx/ring.h), not drawn by hand. The pictures up to lesson 03 are in
first_figures.py, some of the lessons 07 to 09 in summit_figures.py,
some of the later ones in last_figures.py, and those on decode in decode_figures.py.
"""
import os
import sys

import decode_figures
import first_figures
import last_figures
import summit_figures
from picture import AMBER, BLUE, GREEN, ORANGE, PALE, PURPLE, QUAD, SKY, YELLOW, Picture, style_on

# ---- the accumulator of wgmma ----

def place_in_d(warp, lane, i):
    """Row and column of d[i]."""
    return 16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2


def accumulator():
    picture = Picture("accumulator", 505, "Which thread holds which number of D",
                      "wgmma m64n64k16: D is 64 x 64 numbers, 32 in each of a warpgroup's 128 threads")
    draw_whole_d(picture, 100, 110, 4.5)
    draw_part_of_d(picture, 478, 128)
    picture.legend(100, 448, [(colour, f"lane % 4 = {q}", 126) for q, colour in enumerate(QUAD)])
    picture.legend(622, 448, [(BLUE, "lane 5 of warp 1", 0)])
    picture.text(400, 485, "d[i] of lane l in warp w: row 16w + l/4 + 8 (i/2 % 2), column 8 (i/4) + 2 (l % 4) + i % 2",
                 15, "middle")
    return picture


def draw_whole_d(picture, left, top, cell):
    """All of D, a stripe for each pair of columns, and the numbers of one thread."""
    def at(row, column):
        return left + cell * column, top + cell * row + 5 * (row // 16)
    for warp in range(4):
        for pair in range(32):
            x, y = at(16 * warp, 2 * pair)
            picture.box(x, y, 2 * cell, 16 * cell, QUAD[pair % 4])
        x, y = at(16 * warp + 8, 0)
        picture.words(left - 46, y, f"warp {warp}\nrows {16 * warp}-{16 * warp + 15}", 13)
    for i in range(0, 32, 2):
        picture.box(*at(*place_in_d(1, 5, i)), 2 * cell, cell, BLUE)
    x, y = at(16, 0)
    picture.frame(x - 1, y - 1, 16 * cell + 2, 16 * cell + 2)
    picture.text(left, top - 10, "columns 0-63", 14)
    for corner, height in ((y, 128), (y + 16 * cell, 420)):
        picture.line((x + 16 * cell, corner), (477, height), style="faint", dash="5 4")


def draw_part_of_d(picture, left, top):
    """Warp 1's 16 rows of 16 columns: each pair of numbers with its lane."""
    width, height, gap = 37, 16.5, 28
    for half in range(2):
        for block in range(2):
            i = 4 * block + 2 * half
            y = top + half * (8 * height + gap)
            picture.text(left + (4 * block + 2) * width, y - 8, f"d{i} d{i + 1}", 15, "middle", bold=True)
            for lane in range(32):
                row, column = place_in_d(1, lane, i)
                x, y = left + column / 2 * width, top + (row - 16) * height + half * gap
                mine = lane == 5
                picture.box(x, y, width, height, BLUE if mine else QUAD[lane % 4])
                picture.words(x + width / 2, y + height / 2, str(lane), 14, "white" if mine else "dark")
    picture.text(left, top - 32, "rows 16-31, columns 0-15: the lane", 15)


# ---- where tiles lie in shared memory ----

CHUNKS = BLUE, SKY, ORANGE, AMBER, GREEN, YELLOW, PURPLE, PALE  # a colour for each chunk of a row
SLICES = SKY, ORANGE, YELLOW, GREEN  # a colour for each 16 along k


def place_in_row(row, chunk):
    """Where in a row of 128 bytes a chunk of 16 lies, under the 128-byte swizzle."""
    return chunk ^ row % 8


def swizzle():
    picture = Picture("swizzle", 420, "The 128-byte swizzle", "8 rows of 8 chunks, 16 bytes each; framed: "
                      "chunk 2 of every row, one 8 x 8 matrix of fp16")
    draw_chunks(picture, 60, "not swizzled", lambda row, chunk: chunk)
    draw_chunks(picture, 450, "swizzled", place_in_row)
    picture.text(60, 402, "one group of 4 banks: 8 clocks", 15)
    picture.text(450, 402, "eight groups, all 32 banks: 1 clock", 15)
    return picture


def draw_chunks(picture, left, title, place):
    top, width, height = 124, 40, 31
    picture.text(left, top - 32, title, 16, bold=True)
    for group in range(8):
        picture.text(left + (group + 0.5) * width, top - 8, f"{4 * group}-{4 * group + 3}", 12, "middle", "grey")
    picture.text(left - 6, top - 8, "banks", 12, "end", "grey")
    for row in range(8):
        picture.text(left - 8, top + (row + 0.65) * height, f"row {row}", 13, "end")
        for chunk in range(8):
            picture.box(left + place(row, chunk) * width, top + row * height, width - 1, height - 1, CHUNKS[chunk],
                        str(chunk), 16)
    for row in range(8):
        picture.frame(left + place(row, 2) * width + 1, top + row * height + 1, width - 3, height - 3)


def majors():
    picture = Picture("majors", 640, "Two ways for wgmma to read a tile", "tiles of 64 keys in a 128-byte swizzle; "
                      "a colour for each wgmma of the product: 16 along k")
    draw_k_major(picture, 96, 120)
    draw_mn_major(picture, 470, 120)
    picture.legend(60, 622, [(colour, f"wgmma {i}", 115) for i, colour in enumerate(SLICES)])
    return picture


def draw_k_major(picture, left, top):
    """K: each row's chunks belong to four slices, two to each."""
    width, height = 29, 6.6
    picture.text(left - 76, top - 34, "K-major: K, in S = Q Kᵀ", 16, bold=True)
    for row in range(64):
        for chunk in range(8):
            picture.box(left + place_in_row(row, chunk) * width, top + row * height, width, height, SLICES[chunk // 2])
    for i in range(4):
        picture.text(left + 2 * i * width, top - 8, f"+{32 * i}", 14)
    picture.text(left - 8, top - 8, "start", 14, "end")
    draw_rows(picture, left, 8 * width, top, height)
    picture.line((left + 8 * width + 14, top), (left + 8 * width + 14, top + 8 * height), tips="both")
    picture.words(left + 8 * width + 52, top + 4 * height, "stride\n1024\nbytes", 14)
    picture.words(left + 4 * width, top + 64 * height + 32, "next wgmma: start + 32 bytes\nleading: not looked at", 15)


def draw_mn_major(picture, left, top):
    """V: a slice is 16 rows. With D = 128 a tile has a second panel of 64 columns."""
    width, height, gap = 118, 6.6, 12
    picture.text(left - 76, top - 34, "MN-major: V, in O = P V", 16, bold=True)
    for panel in range(2):
        x = left + panel * (width + gap)
        picture.text(x, top - 8, f"d {64 * panel}-{64 * panel + 63}", 14)
        for i in range(4):
            y = top + 16 * i * height
            picture.box(x, y, width, 16 * height, SLICES[i])
            if panel == 0:
                picture.words(x + width / 2, y + 4 * height, f"start +{2048 * i}", 14, style_on(SLICES[i]))
        draw_rows(picture, x, width, top, height, named=panel == 0)
    right = left + 2 * width + gap + 12
    picture.line((right, top), (right, top + 8 * height), tips="both")
    picture.words(right + 35, top + 4 * height, "stride\n1024\nbytes", 14)
    y = top + 64 * height + 12
    picture.line((left, y), (left + width + gap, y), tips="both")
    picture.words(left + width, y + 20, "leading: next 64 columns, rows · 128 bytes", 15)
    picture.words(left + width, y + 39, "next wgmma: start + 2048 bytes", 15)


def draw_rows(picture, left, width, top, height, named=True):
    """A line behind every 8 rows, and the names of some."""
    for row in range(8, 64, 8):
        picture.line((left, top + row * height), (left + width, top + row * height), style="rule", width=1)
    for row in (0, 16, 32, 48) if named else ():
        picture.text(left - 8, top + row * height + 11, f"key {row}", 13, "end")


# ---- one TMA load ----

class TensorBox:
    """The tensor of lesson 05b in chunks of 8 columns, and a box of 64 columns and 8 rows that reaches outside."""
    ROWS, CHUNKS, PADDING, MATRICES = 20, 9, 1, 2
    ROW, CHUNK, BOX_ROWS, BOX_CHUNKS = 15, 4, 8, 8

    @classmethod
    def cells(cls):
        """Of each chunk of the box: row and chunk in the box, whether it is inside of the tensor."""
        return [(row, chunk, cls.ROW + row < cls.ROWS and cls.CHUNK + chunk < cls.CHUNKS)
                for row in range(cls.BOX_ROWS) for chunk in range(cls.BOX_CHUNKS)]


def tensor_box():
    picture = Picture("tensor-box", 500, "A box that reaches outside of its tensor", "fp16, 2 matrices of 20 rows of 72 "
                      "columns; a box of 64 columns and 8 rows from column 32, row 15 on")
    left, width, height = 60, 22, 8
    tops = 108, 108 + (TensorBox.ROWS + 6) * height
    picture.text(left, 84, "device memory: a line is a row", 15, bold=True)
    for matrix, top in enumerate(tops):
        draw_matrix(picture, left, top, width, height)
        picture.words(left - 30, top + TensorBox.ROWS * height / 2, f"matrix\n{matrix}", 14)
    for row, chunk, inside in TensorBox.cells():
        if inside:
            picture.box(left + (TensorBox.CHUNK + chunk) * width, tops[0] + (TensorBox.ROW + row) * height, width - 1,
                        height - 1, CHUNKS[chunk])
    picture.frame(left + TensorBox.CHUNK * width - 1, tops[0] + TensorBox.ROW * height - 1,
                  TensorBox.BOX_CHUNKS * width + 1, TensorBox.BOX_ROWS * height + 1)
    picture.text(left + 10.2 * width, tops[0] + 16, "16 bytes of padding", 14)
    picture.text(left, tops[1] + TensorBox.ROWS * height + 20, "stride: 160 bytes from row to row", 14, style="grey")
    draw_tile_of_box(picture, 440, 150)
    return picture


def draw_matrix(picture, left, top, width, height):
    for row in range(TensorBox.ROWS):
        picture.box(left, top + row * height, TensorBox.CHUNKS * width - 1, height - 1)
        picture.box(left + TensorBox.CHUNKS * width, top + row * height, TensorBox.PADDING * width - 1, height - 1, PALE)


def draw_tile_of_box(picture, left, top):
    """The tile as it lies, a line for each 128 bytes."""
    width, height = 42, 32
    picture.text(left - 44, 84, "shared memory, swizzle of 128 bytes", 15, bold=True)
    for place in range(TensorBox.BOX_CHUNKS):
        picture.text(left + (place + 0.5) * width, top - 8, f"+{16 * place}", 13, "middle", "grey")
    for row, chunk, inside in TensorBox.cells():
        picture.box(left + place_in_row(row, chunk) * width, top + row * height, width - 1, height - 1,
                    CHUNKS[chunk] if inside else "", f"c{8 * (TensorBox.CHUNK + chunk)}" if inside else "0", 14)
    for row in range(TensorBox.BOX_ROWS):
        picture.text(left - 8, top + (row + 0.65) * height, f"row {TensorBox.ROW + row}", 13, "end")
    inside = 16 * sum(inside for _, _, inside in TensorBox.cells())
    picture.text(left - 44, top + 8 * height + 28, f"read from the tensor: {inside} bytes", 15)
    picture.text(left - 44, top + 8 * height + 50, f"counted by the mbarrier: {16 * len(TensorBox.cells()):,} bytes", 15)


# ---- the phases of an mbarrier ----

def mbarrier():
    """Two loads of lesson 05b on one mbarrier, each a box of 1,024 bytes. That it lands in two halves is assumed."""
    picture = Picture("mbarrier", 466, "Two phases of an mbarrier", "it expects one arrival in each phase; each load "
                      "brings 1,024 bytes")
    start, round_length, end = 150, 318, 786
    lanes = "thread 0", "TMA", "arrivals\nmissing", "bytes\nmissing", "phase", "other\nthreads"
    tops = [80 + 56 * i for i in range(len(lanes))]
    for top, words in zip(tops, lanes):
        picture.words(56, top + 18, words, 15)
    def bar(lane, begin, to, colour, words):
        picture.box(begin, tops[lane], to - begin - 2, 36, colour, words, 14)
    def count(lane, begin, to, number):
        bar(lane, begin, to, AMBER if number else "", f"{number:,}")
    bar(0, 106, start, PALE, "init")
    idle = start  # since when the counts are 1 and 0
    for number in range(2):
        begin = start + number * round_length
        load, landing, half, landed, read = (begin + step for step in (96, 158, 198, 240, 304))
        for x in (load, landed):
            picture.line((x, 74), (x, tops[-1] + 46), style="faint", dash="5 4")
        for bars in ((0, begin, load, BLUE, "arrive,\nexpect"), (0, load, landing, BLUE, "load"),
                     (0, landing, landed, "", f"wait {number}"), (1, landing, half, GREEN, "512"),
                     (1, half, landed, GREEN, "512"), (5, begin, landed, "", f"wait for parity {number}"),
                     (0, landed, read, ORANGE, "read"), (5, landed, read, ORANGE, "read"),
                     (4, idle, landed, (SKY, PURPLE)[number], f"phase {number}, parity {number}")):
            bar(*bars)
        for counts in ((2, idle, load, 1), (2, load, landed, 0), (3, idle, load, 0), (3, load, half, 1024),
                       (3, half, landed, 512)):
            count(*counts)
        idle = landed
    count(2, idle, end, 1)
    count(3, idle, end, 0)
    bar(4, idle, end, SKY, "phase 2")
    picture.text(start + 240, tops[-1] + 64, "both counts are 0: the phase ends", 15, "middle")
    picture.line((110, tops[-1] + 76), (end, tops[-1] + 76), tips="end")
    picture.text(110, tops[-1] + 68, "time", 14, style="grey")
    return picture


# ---- the ring ----

PARITY = SKY, PURPLE  # the colour of a phase


class RingTime:
    """Stage 06 at D = 64: when a tile is loaded, has landed, is used and released, in steps. The thread that loads is
    three tiles ahead: in step t it waits for the slot of tile t - 1. How long a copy takes is assumed."""
    SLOTS, AHEAD, COPY = 4, 3, 1.4

    def __init__(self, tile):
        self.slot, self.parity = tile % self.SLOTS, tile // self.SLOTS % 2
        self.load = tile - self.AHEAD + 0.25 if tile >= self.AHEAD else 0.25 * tile - 2.25
        self.landed = self.load + self.COPY
        self.use, self.release = tile, tile + 1


def ring():
    picture = Picture("ring", 530, "The ring over time", "stage 06 at D = 64: tile t lies in slot t % 4; "
                      "in step t it is used, and tile t + 3 is loaded")
    step, left, top, steps = 56, 215, 130, 10
    def at(time):
        return left + min(time, steps) * step
    for t in range(steps):
        picture.text(at(t + 0.5), top - 12, str(t), 15, "middle")
        picture.line((at(t), top - 6), (at(t), top + 4 * 44), style="faint", width=1)
    picture.text(at(0) - 10, top - 12, "step", 15, "end")
    for slot in range(RingTime.SLOTS):
        picture.text(20, top + 44 * slot + 24, f"slot {slot}", 15)
    for tile in range(13):
        draw_tile(picture, tile, at, top)
    picture.legend(20, 88, [(GREEN, "is being copied", 160), (PALE, "full, waits for its step", 215),
                            (ORANGE, "is used", 0)])
    first = [RingTime(tile) for tile in range(0, 9, 4)]
    draw_phases(picture, at, top + 210, "k_full of slot 0: each warp waits for a parity before it uses the tile",
                [t.landed for t in first], [(t.use, t.parity) for t in first])
    draw_phases(picture, at, top + 312, "empty of slot 0: the loading thread waits for a parity before it loads",
                [t.release for t in first], [(t.load, t.parity ^ 1) for t in first])
    return picture


def draw_tile(picture, tile, at, top):
    time = RingTime(tile)
    for begin, end, colour in ((time.load, time.landed, GREEN), (time.landed, time.use, PALE),
                               (time.use, time.release, ORANGE)):
        width = at(end) - at(begin) - 1
        if width > 0:
            words = "" if colour == PALE or width < 30 else str(tile) if width < 60 else f"tile {tile}"
            picture.box(at(begin), top + 44 * time.slot, width, 36, colour, words, 16)


def draw_phases(picture, at, y, words, ends, waits):
    """An mbarrier: the phases under way, and the parities that are waited for."""
    picture.text(20, y, words, 15, bold=True)
    for n, (begin, end) in enumerate(zip([-2.35] + ends, ends + [99])):
        width = at(end) - at(begin) - 1
        picture.box(at(begin), y + 10, width, 26, PARITY[n % 2], f"phase {n}, parity {n % 2}" if width > 140 else
                    f"phase {n}" if width > 60 else "", 15)
    for time, parity in waits:
        picture.line((at(time), y + 58), (at(time), y + 39), tips="end")
        picture.text(at(time) + 6, y + 56, f"parity {parity}", 15)


# ---- which unit computes when ----

class Chart:
    """Lanes over time, of a schedule and not measured: a product takes 1 unit of time when it has the tensor cores
    alone, a softmax 3, a copy 1."""
    LEFT, UNIT, UNITS, HEIGHT = 140, 46, 14, 28
    COLOURS = {"QK": BLUE, "PV": SKY, "softmax": ORANGE, "K": GREEN, "V": GREEN, "waits": ""}

    def __init__(self, picture):
        self.picture = picture

    def panel(self, top, title, *lanes):
        """Begins a group of lanes; returns where the next one may begin."""
        self.picture.text(20, top, title, 16, bold=True)
        self.tops = {lane: top + 14 + i * (self.HEIGHT + 4) for i, lane in enumerate(lanes)}
        for lane, y in self.tops.items():
            self.picture.text(20, y + 20, lane, 14)
        bottom = top + 14 + len(lanes) * (self.HEIGHT + 4)
        for x in range(self.LEFT, self.LEFT + self.UNITS * self.UNIT + 1, self.UNIT):
            self.picture.line((x, top + 10), (x, bottom), style="faint", width=1)
        return bottom + 34

    def bar(self, lane, kind, tile, begin, length):
        begin, end = max(begin, 0), min(begin + length, self.UNITS)
        if end <= begin:
            return
        words = kind if kind == "waits" else f"{kind} {tile}"
        room = (end - begin) * self.UNIT > 9 * len(words)
        self.picture.box(self.LEFT + begin * self.UNIT, self.tops[lane], (end - begin) * self.UNIT - 1, self.HEIGHT,
                         self.COLOURS[kind], words if room else "", 14)

    def step(self, tile, begin, consumer, tensor_cores, share=1):
        """Stages 08 and 08b: QK of a tile and PV of the one before are issued together, and the softmax follows QK. A
        product takes `share` units."""
        self.bar(consumer, "waits", tile, begin, share)
        self.bar(tensor_cores, "QK", tile, begin, share)
        self.bar(tensor_cores, "PV", tile - 1, begin + share, share)
        self.bar(consumer, "softmax", tile, begin + share, 3)


def pipelining():
    picture = Picture("pipelining", 330, "Software pipelining in one consumer",
                      "a schedule, not measured: a product takes 1 unit of time, a softmax 3")
    chart = Chart(picture)
    lanes = "consumer", "tensor cores"
    top = chart.panel(96, "07b: each product is waited for as soon as it is issued", *lanes)
    for tile in range(1, 4):
        begin = 5 * tile - 5
        chart.bar("tensor cores", "QK", tile, begin, 1)
        chart.bar("consumer", "waits", tile, begin, 1)
        chart.bar("consumer", "softmax", tile, begin + 1, 3)
        chart.bar("tensor cores", "PV", tile, begin + 4, 1)
        chart.bar("consumer", "waits", tile, begin + 4, 1)
    chart.panel(top, "08: the softmax of a tile runs while PV of the tile before does", *lanes)
    for tile in range(1, 5):
        chart.step(tile, 4 * tile - 4, *lanes)
    picture.legend(140, 312, [(BLUE, "S = Q Kᵀ", 120), (ORANGE, "softmax", 110), (SKY, "O += P V", 0)])
    return picture


def ping_pong():
    picture = Picture("ping-pong", 494, "Producer, consumers and tensor cores",
                      "a schedule, not measured, D = 128: a product alone takes 1 unit of time, a softmax 3, a copy 1")
    chart = Chart(picture)
    lanes = "producer", "consumer 0", "consumer 1", "tensor cores: 0", "tensor cores: 1"
    top = chart.panel(96, "08: both issue at once and share the tensor cores", *lanes)
    for tile in range(1, 5):
        chart.step(tile, 5 * tile - 5, lanes[1], lanes[3], share=2)
        chart.step(tile, 5 * tile - 5, lanes[2], lanes[4], share=2)
        copies(chart, tile, 5 * tile - 3, 5 * tile)
    top = chart.panel(top, "08b: they take turns; one has its softmax while the other has its products", *lanes)
    for tile in range(0, 5):
        chart.step(tile, 4 * tile - 4, lanes[1], lanes[3])
        chart.step(tile, 4 * tile - 2, lanes[2], lanes[4])
        copies(chart, tile, 4 * tile - 1, 4 * tile + 2)
    return picture


def copies(chart, tile, scores, end):
    """Two slots for K and two for V: when both consumers have a tile's scores there is room for K of the tile after
    next, and when both have ended the step for V of the next tile."""
    chart.bar("producer", "K", tile + 2, scores, 1)
    chart.bar("producer", "V", tile + 1, end, 1)


# ---- an SM ----

def sm():
    picture = Picture("sm", 652, "One SM of Hopper and its memories", "sizes and counts as NVIDIA states them")
    picture.box(20, 76, 760, 422)
    picture.text(34, 101, "SM, one of 132: four sub-partitions, at most 64 warps in all", 16, bold=True)
    for i in range(4):
        draw_sub_partition(picture, 34 + 185 * i, 114)
    picture.box(34, 370, 732, 52, GREEN, "L1 cache and shared memory: 256 KB\n"
                "shared at most 228 KB, 227 KB of them for one block; wgmma reads its tiles here", 15)
    picture.box(560, 450, 206, 36, AMBER, "TMA: copies tiles", 16)
    picture.box(20, 542, 760, 38, SKY, "L2 cache, for all SMs: 50 MB (H100), 60 MB (H200)", 16)
    picture.box(20, 608, 760, 38, PURPLE, "device memory: 141 GB of HBM3e (H200)", 16)
    picture.text(150, 465, "loads, stores, cp.async", 15)
    for x, y, to in (140, 422, 542), (663, 422, 450), (663, 486, 542), (400, 580, 608):
        picture.line((x, y), (x, to), tips="both")
    return picture


def draw_sub_partition(picture, left, top):
    width, inside = 176, 158
    picture.box(left, top, width, 220)
    for y, height, colour, words in ((9, 32, PALE, "warp scheduler"),
                                     (48, 54, YELLOW, "registers: 64 KB\n16,384 x 32 bits"),
                                     (109, 42, BLUE, "tensor core"),
                                     (158, 54, ORANGE, "32 FP32, 16 INT32\n16 FP64, 4 MUFU")):
        picture.box(left + 9, top + y, inside, height, colour, words, 15)
    picture.line((left + width / 2, top + 220), (left + width / 2, top + 256), tips="both")


# ---- proxies ----

def proxies():
    """A store that wgmma reads: time runs to the right."""
    picture = Picture("proxies", 330, "One byte on its way from a store to wgmma", "two proxies lead to the same "
                      "shared memory; time runs to the right, lengths are made up")
    left, right, tops = 200, 780, [92 + 58 * i for i in range(4)]
    store, fence, barrier, multiply = 210, 340, 470, 610  # where each begins
    for y, words in zip(tops, ("thread 0", "a read through the\ngeneric proxy", "a read through the\nasync proxy",
                               "thread 100")):
        for i, line in enumerate(words.split("\n")):
            picture.text(20, y + (24 if "\n" not in words else 15 + 18 * i), line, 15)
    for x, words in ((store, "store"), (fence, "proxy fence"), (barrier, "barrier")):
        picture.box(x, tops[0], 110, 36, BLUE, words, 15)
    for y, seen, before in ((tops[1], store + 110, "old byte"), (tops[2], fence + 110, "old or new byte")):
        picture.box(left, y, seen - left, 36, PALE, before, 15)
        picture.box(seen, y, right - seen, 36, GREEN)
        picture.words(seen + 65, y + 18, "new byte", 15, "white")
    picture.box(left, tops[3], barrier + 110 - left, 36, "", "waits at the barrier", 15)
    picture.box(multiply, tops[3], 110, 36, ORANGE, "wgmma", 15)
    picture.line((store + 110, tops[0] + 36), (store + 110, tops[1] - 1), tips="end", width=2)
    picture.line((fence + 110, tops[0] + 36), (fence + 110, tops[2] - 1), tips="end", width=2)
    picture.line((barrier + 110, tops[0] + 36), (barrier + 110, tops[3] - 1), tips="end", width=2, dash="4 3")
    picture.line((multiply + 55, tops[2] + 36), (multiply + 55, tops[3] - 1), tips="end", width=2)
    return picture


# ---- all of them ----

FIGURES = (*first_figures.FIGURES, *summit_figures.FIGURES, accumulator, swizzle, majors, proxies, tensor_box, mbarrier,
           ring, pipelining, ping_pong, sm, *last_figures.FIGURES, *decode_figures.FIGURES)


def main():
    folder = sys.argv[1] if len(sys.argv) == 2 else os.path.dirname(os.path.abspath(__file__))
    for draw in FIGURES:
        picture = draw()
        with open(f"{folder}/figure-{picture.name}.svg", "w", encoding="utf-8") as file:
            file.write(picture.svg())


if __name__ == "__main__":
    main()
