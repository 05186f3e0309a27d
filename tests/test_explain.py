"""make explain against the emulator, whose reading of descriptors was measured on a GPU (tests/rules, tests/gpu).

Runs in the repository's root (or a folder that looks like it): python3 tests/test_explain.py
"""
import contextlib
import ctypes
import io
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "common/course")
import explain  # pylint: disable=wrong-import-position

# The emulator's descriptor, as functions that ctypes can call.
READER = r"""
#include "emulator/tensor/descriptor.c"
uint32_t address(uint64_t bits, int mn_major, int mn, int k) {
  MatrixDescriptor d;
  descriptor_decode(bits, mn_major, &d);
  return descriptor_address(&d, mn, k);
}
int grade(uint64_t bits, int mn_major) {
  MatrixDescriptor d;
  descriptor_decode(bits, mn_major, &d);
  DescriptorFinding finding = descriptor_check(bits, &d);
  return finding.text ? (int)finding.grade : -1;
}
const char *misfit(uint64_t bits, int mn_major, int rows) {
  MatrixDescriptor d;
  descriptor_decode(bits, mn_major, &d);
  return descriptor_misfit(&d, rows, 32);
}
int grade_formal(void) { return HAZARD_FORMAL; }
"""


def built():
    """The emulator's reader as a library."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "reader.c"), os.path.join(folder, "reader.so")
        with open(source, "w", encoding="ascii") as file:
            file.write(READER)
        subprocess.run(["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-Icommon", source, "-o", library], check=True)
        loaded = ctypes.CDLL(library)
    for function, integers in ((loaded.address, 3), (loaded.grade, 1), (loaded.misfit, 2)):
        function.argtypes = [ctypes.c_uint64] + [ctypes.c_int] * integers
    loaded.address.restype, loaded.misfit.restype = ctypes.c_uint32, ctypes.c_char_p
    return loaded


def tiles(count, seed=1):
    """Tiles at random, of each swizzle, majorness and size, at starts that fit the pattern and at others."""
    choose = random.Random(seed)
    kinds = [(mn_major, size, swizzle) for mn_major in (False, True) for size in (1, 2, 4) for swizzle in explain.CODES
             if size == 2 or not mn_major]
    for number in range(count):
        mn_major, size, swizzle = kinds[number % len(kinds)]
        columns = choose.randint(1, 256 // max(swizzle, 32)) * max(swizzle, 32) // size
        rows = choose.randint(1, 16) * (16 if mn_major else 8)
        tile_pattern = choose.random() < 0.3
        start = choose.randrange(0, 0x10000, choose.choice((128, 1024)))
        yield explain.Tile(rows, columns, size, mn_major, swizzle, start, tile_pattern)


class Places(unittest.TestCase):
    emulator = built()

    def expect(self, tile):
        """Of each slice, all chunks lie where the emulator's wgmma reads them, and nothing is wrong with it."""
        chunk = explain.CHUNK // tile.size
        for number in range(tile.slices):
            bits, first = tile.descriptor(number).bits(), number * tile.slice_k
            for mn in range(0, tile.along_mn, chunk if tile.mn_major else 1):
                for k in range(0, tile.slice_k, 1 if tile.mn_major else chunk):
                    row, column = (first + k, mn) if tile.mn_major else (mn, first + k)
                    # the emulator counts elements of 16 bits along the line
                    depth = k if tile.mn_major else k * tile.size // 2
                    self.assertEqual(tile.address(row, column), self.emulator.address(bits, tile.mn_major, mn, depth),
                                     (tile, number, mn, k))
            aligned = not tile.swizzle or tile.start % tile.pattern == 0
            self.assertIn(self.emulator.grade(bits, tile.mn_major), [-1] if aligned else [-1, self.emulator.grade_formal()], tile)
            self.assertIsNone(self.emulator.misfit(bits, tile.mn_major, tile.along_mn), tile)

    def test_are_where_the_emulator_reads(self):
        for tile in tiles(160):
            with self.subTest(tile=tile):
                self.expect(tile)

    def test_no_two_chunks_share_one(self):
        for tile in tiles(40, seed=2):
            places = {tile.address(row, column) for row in range(tile.rows)
                      for column in range(0, tile.columns, explain.CHUNK // tile.size)}
            self.assertEqual(len(places), tile.bytes // explain.CHUNK, tile)
            if not tile.tile_pattern and not (tile.swizzle and tile.start % tile.pattern):
                self.assertEqual((min(places), max(places)), (tile.start, tile.start + tile.bytes - explain.CHUNK), tile)

    def test_bits_come_back(self):
        for tile in tiles(40, seed=3):
            for number in range(tile.slices):
                self.assertEqual(explain.Descriptor.of(tile.descriptor(number).bits()), tile.descriptor(number))


class Page(unittest.TestCase):
    @staticmethod
    def run_with(arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = explain.main(arguments.split())
        return code, out.getvalue(), err.getvalue()

    def test_a_tile(self):
        code, out, err = self.run_with("--rows=128 --columns=128 --major=mn --start=0x2400 --lines=2")
        self.assertEqual((code, err), (0, ""))
        for line in ("box                   64 columns x 128 rows",
                     "copies                2, 32768 bytes together; panels lie 16384 bytes apart",
                     "leading (LBO)         16384 bytes, to the next panel along M or N  (bits 16-29: 1024)",
                     "1      16-31     0x2c00     +2048     +128  0x40000040040002c0",
                     "0x02480  r1 c8    r1 c0    r1 c24   r1 c16   r1 c40   r1 c32   r1 c56   r1 c48"):
            self.assertIn(line + "\n", out)
        self.assertNotIn("0x02500", out)

    def test_the_descriptors_of_stage_04(self):
        """The maps in notes/descriptors.md are of these, and lesson 04 derives the second one."""
        self.assertIn("0x4000004000010040\n", self.run_with("")[1])
        self.assertIn("0x4000004000010042\n", self.run_with("")[1])

    def test_bits(self):
        code, out, _ = self.run_with("0x8000004001000240")
        self.assertEqual(code, 0)
        self.assertIn("start address         0x2400", out)
        self.assertIn("leading (LBO)         4096 bytes, to the next panel along M or N", out)
        self.assertIn("swizzle of 64 bytes", out)
        self.assertNotIn("are set", out)
        self.assertIn("bits 46-48 are set", self.run_with("0x4000404000010040")[1])
        self.assertIn("bits 14-15 are set", self.run_with("0x4000004000014040")[1])

    def test_what_makes_no_sense_gets_one_line(self):
        for arguments, what in (("--columns=20", "--columns=20: a row of 40 bytes"), ("--rows=12", "multiples of 8"),
                                ("--rows=x", "x: not a whole number"), ("--rows=24 --major=mn", "no multiple"),
                                ("--major=mn --size=1", "2-byte elements only"), ("--swizzle=7", "invalid choice"),
                                ("--start=0x410", "multiples of 128"), ("--start=0x38000", "a block has"),
                                ("--rows=0", "at least one"), ("0x1ffffffffffffffff", "not a descriptor"),
                                ("zzz", "not a descriptor"), ("--lines=-1", "--lines=-1"), ("--what=1", "unrecognized")):
            code, out, err = self.run_with(arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), arguments)
            self.assertIn(what, err)


if __name__ == "__main__":
    unittest.main()
