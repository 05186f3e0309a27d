"""Where a tile lies for TMA and wgmma, and what the 64 bits of a matrix descriptor say. make explain runs it:

    make explain OPTIONS="--rows=128 --columns=128 --size=2 --major=mn --swizzle=128 --start=0x2400"
    make explain OPTIONS=0x4000008000400240

The first form begins with a tile in device memory, an array of ROWS rows whose COLUMNS elements are neighbours. It
shows the tensor map's box, where the chunks of 16 bytes lie in shared memory, and the descriptor of each slice: what
one wgmma reads, 32 bytes of each row along K (K-major), or 16 rows (MN-major). The second form begins with a
descriptor.

The tile lies in panels, as TMA writes it: columns as wide as the swizzle, 16 bytes without one, one panel behind the
other. PTX ISA 9.7.16.5.1, "Shared memory matrix layout". tests/test_explain.py holds this to the emulator.
"""
import argparse
import dataclasses
import sys

CHUNK = 16  # bytes that stay together
CODES = {0: 0, 128: 1, 64: 2, 32: 3}  # bits 62-63
SHARED = 227 * 1024  # bytes of a block
BOX_ROWS = 256  # a tensor map's box has at most as many
TYPES = {1: "UINT8 (e4m3, e5m2, s8, u8)", 2: "FLOAT16 or BFLOAT16", 4: "FLOAT32 or TFLOAT32"}
USED = {"K": ("not used: it is 1 under a swizzle", "to the next 8 rows"),
        "MN": ("to the next panel along M or N", "to the next 8 along K"),
        "K, no swizzle": ("to the next 16 bytes along K", "to the next 8 rows"),
        "MN, no swizzle": ("to the next 8 along K", "to the next 8 along M or N")}


class Refused(Exception):
    """What is wrong with the input, in one line."""


def swizzled(address, swizzle, base_offset=0):
    """XORs bits 4 and up with bits 7 and up of the address, less the base offset: three, two or one of them."""
    mask = swizzle // CHUNK - 1 if swizzle else 0
    return address ^ ((address >> 7) - base_offset & mask) << 4


@dataclasses.dataclass(frozen=True)
class Descriptor:
    """The fields of a matrix descriptor. start, leading, stride and swizzle are bytes."""
    start: int
    leading: int
    stride: int
    base_offset: int
    swizzle: int

    def bits(self):
        return (self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | self.base_offset << 49
                | CODES[self.swizzle] << 62)

    @classmethod
    def of(cls, bits):
        return cls((bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4, bits >> 49 & 7,
                   {code: swizzle for swizzle, code in CODES.items()}[bits >> 62])


@dataclasses.dataclass(frozen=True)
class Tile:
    """rows, columns: elements, of `size` bytes. mn_major: columns lie along M or N, else along K. start: the address of
    its first byte in shared memory. tile_pattern: the swizzle counts from the tile's start and not from address 0."""
    rows: int
    columns: int
    size: int
    mn_major: bool
    swizzle: int
    start: int
    tile_pattern: bool = False

    def __post_init__(self):
        unit = "columns" if self.mn_major else "rows"
        if self.mn_major and self.size != 2:
            raise Refused(f"--major=mn --size={self.size}: wgmma reads MN-major tiles of 2-byte elements only")
        if self.rows < 1 or self.columns < 1:
            raise Refused("--rows, --columns: a tile has at least one of each")
        if self.columns * self.size % self.width:
            raise Refused(f"--columns={self.columns}: a row of {self.columns * self.size} bytes is no multiple of the "
                          f"panel, {self.width} bytes")
        if self.along_mn % 8:
            raise Refused(f"--{unit}={self.along_mn}: M and N are multiples of 8")
        if self.along_k % self.slice_k:
            raise Refused(f"--{'rows' if self.mn_major else 'columns'}={self.along_k}: one wgmma reads {self.slice_k} "
                          "along K, and this is no multiple")
        if self.start % 128 or self.start < 0:
            raise Refused(f"--start={self.start:#x}: TMA writes to multiples of 128 bytes")
        if self.start + self.bytes > SHARED:
            raise Refused(f"the tile ends at byte {self.start + self.bytes:,}, and a block has {SHARED:,}")

    @property
    def width(self):
        """Bytes of a panel's line."""
        return self.swizzle or CHUNK

    @property
    def bytes(self):
        return self.rows * self.columns * self.size

    @property
    def panel(self):
        """Bytes from one panel to the next."""
        return self.rows * self.width

    @property
    def along_mn(self):
        return self.columns if self.mn_major else self.rows

    @property
    def along_k(self):
        return self.rows if self.mn_major else self.columns

    @property
    def slice_k(self):
        """Elements along K that one wgmma reads: 32 bytes of them."""
        return 32 // self.size

    @property
    def slices(self):
        return self.along_k // self.slice_k

    @property
    def base_offset(self):
        return self.start >> 7 & 7 if self.tile_pattern and self.swizzle else 0

    @property
    def pattern(self):
        """Bytes after which the swizzle repeats."""
        return 8 * self.swizzle

    def address(self, row, column):
        """Of an element, in shared memory."""
        panel, byte = divmod(column * self.size, self.width)
        return swizzled(self.start + panel * self.panel + row * self.width + byte, self.swizzle, self.base_offset)

    def slice_start(self, number):
        """The start address of a slice: where its first element would lie without the swizzle."""
        if self.mn_major:
            return self.start + number * self.slice_k * self.width
        panel, byte = divmod(number * 32, self.width)
        return self.start + panel * self.panel + byte

    def descriptor(self, number=0):
        eight = 8 * self.width
        if self.mn_major and self.swizzle:
            leading, stride = self.panel, eight
        elif self.mn_major:
            leading, stride = eight, self.panel
        else:
            leading, stride = CHUNK if self.swizzle else self.panel, eight
        return Descriptor(self.slice_start(number), leading, stride, self.base_offset, self.swizzle)


# ---- what is printed ----

def name_of_swizzle(swizzle):
    return f"swizzle of {swizzle} bytes" if swizzle else "no swizzle"


def picture(tile, lines):
    """128 bytes a line: which chunk of the tile lies where, by its row and its first column."""
    places = {tile.address(row, column): f"r{row} c{column}" for row in range(tile.rows)
              for column in range(0, tile.columns, CHUNK // tile.size)}
    first = tile.start // 128 * 128
    yield "byte     " + " ".join(f"{'+' + str(byte):<8}" for byte in range(0, 128, CHUNK)).rstrip()
    for line in range(first, min(first + lines * 128, tile.start + tile.bytes), 128):
        chunks = (places.get(line + byte, ".") for byte in range(0, 128, CHUNK))
        yield f"{line:#07x}  " + " ".join(f"{chunk:<8}" for chunk in chunks).rstrip()
    if first + lines * 128 < tile.start + tile.bytes:
        yield f"and so on, to byte {tile.start + tile.bytes - 1:#07x}; --lines shows more"


def steps(tile):
    """The starts of the slices, as what is added to the first one."""
    yield f"{'slice':<7}{'k':<10}{'start':<9}{'added':>7}  {'encoded':>7}  descriptor"
    for number in range(tile.slices):
        added = tile.slice_start(number) - tile.start
        first = number * tile.slice_k
        yield (f"{number:<7}{f'{first}-{first + tile.slice_k - 1}':<10}{tile.slice_start(number):<#9x}"
               f"{added:>+7}  {added >> 4:>+7}  {tile.descriptor(number).bits():#018x}")


def fields(descriptor, mn_major):
    leading, stride = USED[("MN" if mn_major else "K") + ("" if descriptor.swizzle else ", no swizzle")]
    yield f"start address         {descriptor.start:#x}  (bits 0-13: {descriptor.start >> 4:#x})"
    yield f"leading (LBO)         {descriptor.leading} bytes, {leading}  (bits 16-29: {descriptor.leading >> 4})"
    yield f"stride (SBO)          {descriptor.stride} bytes, {stride}  (bits 32-45: {descriptor.stride >> 4})"
    yield f"base offset           {descriptor.base_offset}  (bits 49-51)"
    yield f"swizzle               {name_of_swizzle(descriptor.swizzle)}  (bits 62-63: {CODES[descriptor.swizzle]})"


def start_notes(tile):
    if not tile.swizzle or tile.start % tile.pattern == 0:
        return
    past = tile.start % tile.pattern
    yield (f"The start is {past} bytes past a multiple of {tile.pattern}, after which the swizzle repeats. PTX wants "
           "such a tile to")
    if tile.tile_pattern:
        yield ("have this base offset. TMA does not write it like that: its pattern is of the address "
               "(--pattern=address).")
    else:
        yield "have a base offset. With 0 the pattern is of the address: as TMA writes it, and right on an H200."


def explain_tile(tile, lines):
    majors = "columns lie along M or N, rows along K" if tile.mn_major else "columns lie along K, rows along M or N"
    yield (f"{tile.rows} rows of {tile.columns} elements of {tile.size} byte{'s' * (tile.size > 1)}, {majors}; "
           f"{name_of_swizzle(tile.swizzle)}")
    yield ""
    panels, boxes = tile.bytes // tile.panel, -(-tile.rows // BOX_ROWS)
    kind = f"CU_TENSOR_MAP_SWIZZLE_{f'{tile.swizzle}B' if tile.swizzle else 'NONE'}"
    yield f"tensor map            {TYPES[tile.size]}, {kind}"
    yield f"box                   {tile.width // tile.size} columns x {min(tile.rows, BOX_ROWS)} rows"
    yield f"copies                {panels * boxes}, {tile.bytes} bytes together; panels lie {tile.panel} bytes apart"
    yield ""
    yield from fields(tile.descriptor(), tile.mn_major)
    yield f"trans-a, trans-b      {int(tile.mn_major)}"
    if not tile.mn_major and tile.rows > 64:
        yield f"the next 64 rows of A {64 * tile.width:+} bytes, encoded {64 * tile.width >> 4:+}"
    yield from start_notes(tile)
    yield ""
    yield from steps(tile)
    yield ""
    yield from picture(tile, lines)


def explain_bits(bits):
    descriptor = Descriptor.of(bits)
    yield f"the descriptor {bits:#018x}"
    for first, last, what in ((14, 15, "the address was not divided by 16"), (30, 31, "LBO was not divided by 16"),
                              (46, 48, "SBO was not divided by 16, or the bits are another architecture's"),
                              (52, 61, "they are reserved")):
        if bits >> first & (1 << last - first + 1) - 1:
            yield f"bits {first}-{last} are set, and must be 0: {what}"
    for mn_major in (False, True):
        unit = "k" if mn_major else "row"
        yield ""
        yield f"read as {'MN' if mn_major else 'K'}-major"
        yield from ("  " + line for line in fields(descriptor, mn_major))
        width = descriptor.swizzle or CHUNK
        yield (f"  lines of {width} bytes, one for each {unit}; the chunk at byte x of line y, of the first eight, "
               "lies at")
        yield (f"  swizzle({descriptor.start:#x} + {width} y + x)" if descriptor.swizzle
               else f"  {descriptor.start:#x} + 16 y")
    yield ""
    yield f"./stage-04 --explain={bits:#x} shows all chunks of one product, and what is wrong with it"


# ---- the command line ----

class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(message)


def whole(text):
    try:
        return int(text, 0)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: not a whole number") from error


def parser():
    result = Parser(prog="make explain", description="explains a tile in shared memory, or a matrix descriptor")
    result.add_argument("bits", nargs="?", help="a descriptor of 64 bits, such as 0x4000004000010040: what it says")
    result.add_argument("--rows", type=whole, default=64, help="of the tile in device memory (64)")
    result.add_argument("--columns", type=whole, default=64, help="neighbours in device memory (64)")
    result.add_argument("--size", type=whole, choices=sorted(TYPES), default=2, help="bytes of an element (2)")
    result.add_argument("--major", choices=("k", "mn"), default="k", help="what columns lie along (k)")
    result.add_argument("--swizzle", type=whole, choices=sorted(CODES), default=128, help="bytes, 0 for none (128)")
    result.add_argument("--start", type=whole, default=0x400, help="the tile's address in shared memory (0x400)")
    result.add_argument("--pattern", choices=("address", "tile"), default="address",
                        help="what the swizzle counts from: address 0, as TMA does, or the tile's start")
    result.add_argument("--lines", type=whole, default=8, help="lines of the picture, of 128 bytes each (8)")
    return result


def explain(arguments):
    options = parser().parse_args(arguments)
    if options.bits is None:
        tile = Tile(options.rows, options.columns, options.size, options.major == "mn", options.swizzle, options.start,
                    options.pattern == "tile")
        if options.lines < 0:
            raise Refused(f"--lines={options.lines}: 0 and more is allowed")
        return explain_tile(tile, options.lines)
    try:
        bits = int(options.bits, 0)
    except ValueError:
        bits = -1
    if not 0 <= bits < 1 << 64:
        raise Refused(f"{options.bits}: not a descriptor; 0x0 to 0xffffffffffffffff is allowed")
    return explain_bits(bits)


def main(arguments):
    try:
        for line in explain(arguments):
            print(line)
    except Refused as refused:
        print(f"make explain: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
