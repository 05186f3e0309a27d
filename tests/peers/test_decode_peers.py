"""peers.py --pass=decode without a GPU: its points and options, who is called with which pointers, and, with made-up
contenders, what is recorded and how a recording goes on.

Runs in the repository's root (or a folder that looks like it): python3 tests/peers/test_decode_peers.py
"""
import argparse
import contextlib
import csv
import ctypes
import io
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
from peers_test import ANOTHER_LIBRARY, ProgramTest, StructureTest  # noqa: E402

import contenders  # noqa: E402
import decode_contenders  # noqa: E402
import decode_peers  # noqa: E402
import decode_problem  # noqa: E402
import hopper_ladder  # noqa: E402
import peers  # noqa: E402
from decode_problem import DecodePoint  # noqa: E402


class Options(ProgramTest):
    options = ("--pass=decode",)

    def test_what_makes_no_sense_is_one_line(self):
        for argument, words in {
            "--points=32/8/128/4096": "'32/8/128/4096' is no point; BATCH/HEADS/KV_HEADS/HEAD_DIM/KEYS is allowed",
            "--points=1/32/8/96/4096": "HEAD_DIM 64 or 128",
            "--points=1/32/8/64/4096/page16/ragged": "is no point",
            "--points=0/32/8/64/4096": "1 to 16 query heads share a key head",
            "--points=1/34/2/64/4096": "1 to 16 query heads share a key head",
            "--points=1/33/2/64/4096": "1 to 16 query heads share a key head",
            "--points=1/32/8/64/4096/page48": "a page has 16, 32, 64 ... keys",
            "--points=1/32/8/64/100/page16": "KEYS are whole pages",
            "--points=128/32/32/128/16384": "K and V have at most 8 GB, and here they have 34.4",
            "--points=1/32/8/64/4096/queries9": "is no point",
            "--peers=math": "'math' is no peer; all, none and cuDNN, FlashAttention-2, FlashAttention-3, FlashInfer",
            "--seconds=0": "'0' is no number of seconds",
            "--stages=two": "'two' is no list of stages",
            "--stages=12": "the library has no decode stage 12; it has 13, 13b, 13c, 13d, 13e, 13f",
            f"--library={ANOTHER_LIBRARY}": "is another library, or one from before it had hl_attention_decode",
        }.items():
            with self.subTest(argument):
                self.expect([argument], 2, words)
        self.expect(["--record", "--csv=a"], 2, "--record and --csv both say where the rows go")
        self.expect(["--stages=none", "--peers=none"], 2, "there is nothing to time")

    def test_what_is_not_there(self):
        self.expect(["--library=/no/such.so"], 3, "/no/such.so cannot be loaded; `make library` builds it, and ")
        self.expect(["--peers=FlashInfer"], 3, "FlashInfer is left out: it cannot be imported: ")
        self.expect(["--peers=cuDNN"], 3, "has no PyTorch")
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as printed:
            decode_peers.open_readers("/no/such.so")
        self.assertEqual(printed.getvalue(),
                         "peers.py: /no/such.so cannot be loaded; `make build/libread.so` builds it\n")
        with mock.patch.object(decode_peers, "FLASH_ATTENTION_3_DECODE", os.path.join(peers.ROOT, "no", "such.so")):
            printed = io.StringIO()
            with contextlib.redirect_stderr(printed):
                self.assertEqual(decode_peers.find_decode_peer("FlashAttention-3", False), [])
        self.assertEqual(printed.getvalue(),
                         "peers.py: FlashAttention-3 is not there; `make flash-attention-3` builds no/such.so\n")

    def test_points(self):
        parse = decode_peers.parse_decode_points
        self.assertEqual(parse("4/32/8/128/4096,4/32/8/128/4096"), [DecodePoint(4, 32, 8, 128, 4096)])
        self.assertEqual(parse("4/64/8/64/96/ragged/page16/queries3"), [DecodePoint(4, 64, 8, 64, 96, True, 16, 3)])
        self.assertEqual([point.keys for point in parse("128/32/8/128/*")], [1024, 2048, 4096, 8192, 16384])
        for text in "4/64/8/64/96/ragged/page16/queries3", "1/8/1/128/1024":
            self.assertEqual(str(parse(text)[0]), text)
        with self.assertRaises(argparse.ArgumentTypeError):
            parse("")

    def test_default_points(self):
        points = decode_peers.default_points()
        self.assertEqual(len(points), len(set(points)))
        self.assertLessEqual(max(point.all_bytes() for point in points), 8 << 30)
        for column, values in (("batch", {1, 4, 32, 128}), ("head_dim", {64, 128}), ("queries", {1, 2, 4, 8}),
                               ("page", {0, 16, 64}), ("ragged", {False, True})):
            self.assertEqual({getattr(point, column) for point in points}, values)
        self.assertEqual({(point.heads, point.kv_heads) for point in points}, {(32, 8), (64, 8), (32, 32), (8, 1)})
        self.assertEqual({point.keys for point in points}, {1 << bits for bits in range(10, 18)})


class Problems(unittest.TestCase):
    def test_bytes(self):
        point = DecodePoint(2, 8, 2, 64, 100)
        self.assertEqual((point.cache_bytes(), point.cache_bytes(1)), (2 * 2 * 2 * 2 * 64 * 100, 2 * 2 * 2 * 64 * 100))
        ragged = point._replace(ragged=True)
        self.assertEqual(ragged.lengths(), ragged.lengths(), "always the same")
        self.assertEqual(ragged.cache_bytes(), 4 * 2 * 64 * sum(ragged.lengths()))
        self.assertTrue(all(1 <= length <= 100 for length in ragged._replace(batch=500).lengths()))

    def test_pages(self):
        point = DecodePoint(3, 8, 2, 64, 96, page=16)
        shape, pages = decode_problem.cache_shape(point)
        self.assertEqual((shape, pages), ((21, 2, 16, 64), 21))
        order = decode_problem.page_order(point, pages)
        self.assertEqual([len(row) for row in order], [6, 6, 6])
        every = sum(order, [])
        self.assertEqual((len(set(every)), max(every) < 21, every != sorted(every)), (18, True, True))
        self.assertEqual(decode_problem.cache_shape(point._replace(page=0)), ((3, 2, 96, 64), 0))


class MadeUpTensor:
    def __init__(self, address, shape=(2, 8, 1, 64)):
        self.address, self.shape = address, shape

    def data_ptr(self):
        return self.address


def made_up_problem(point=DecodePoint(2, 8, 2, 64, 96), lengths=None, table=None):
    return decode_problem.DecodeProblem(
        point, MadeUpTensor(10), decode_problem.Cache(MadeUpTensor(11), MadeUpTensor(12)),
        decode_problem.Cache(MadeUpTensor(13), MadeUpTensor(14), (MadeUpTensor(15), MadeUpTensor(16))), lengths, table,
        7)


class Structures(StructureTest):
    def test_flash_attention_3(self):
        self.expect_as_in_c('#include "common/baselines/flash-attention-3/flash_attention_3_decode.h"',
                            {"FlashAttention3Decode": decode_contenders.FlashAttention3Decode})


class Calls(unittest.TestCase):
    """What contenders call, with which pointers."""

    def setUp(self):
        for patch in (mock.patch.object(decode_contenders, "new_decode_output", lambda problem: MadeUpTensor(20)),
                      mock.patch.object(decode_contenders, "workspace_of",
                                        lambda size: MadeUpTensor(30) if size else None),
                      mock.patch.object(contenders, "current_stream", lambda: 40),
                      mock.patch.object(decode_contenders, "current_stream", lambda: 40)):
            patch.start()
            self.addCleanup(patch.stop)
        self.seen = []

    def note(self, call, *more):
        self.seen.append({name: getattr(call, name) for name, _ in call._fields_} | {"more": more})

    def test_the_library_has_the_stages(self):
        stages = decode_contenders.decode_stages(hopper_ladder.load("libhopper_ladder.so"))
        expected = {"13": "bf16", "13b": "bf16", "13c": "bf16", "13d": "bf16", "13e": "e4m3", "13f": "bf16",
                    "22": "bf16"}
        caches = {number: decode_contenders.CACHES[stage.type] for number, stage in stages.items()}
        self.assertLessEqual(expected.items(), caches.items())

    def stage(self, kind=hopper_ladder.BF16):
        return hopper_ladder.Stage(number=b"13x", name=b"13x-name", type=kind, decode=1)

    def test_a_stage(self):
        with mock.patch.object(hopper_ladder, "decode", autospec=True, return_value=hopper_ladder.Decode()) as decode:
            for kind, addresses in (hopper_ladder.BF16, (10, 11, 12)), (hopper_ladder.E4M3, (10, 13, 14)):
                flags = []
                library = types.SimpleNamespace(
                    hl_attention_decode=lambda call, flags=flags: flags.append((call.flags, call.stream)))
                contender = decode_contenders.decode_stage(library, self.stage(kind))
                self.assertEqual((contender.name, contender.cache), ("13x-name", decode_contenders.CACHES[kind]))
                self.assertEqual(contender.prepare(made_up_problem(lengths=50, table=60))().address, 20)
                self.assertEqual(flags, [(hopper_ladder.CHECK, 40), (0, 40)], "a check, then the call")
                tensors, others = decode.call_args
                self.assertEqual(tuple(tensor.address for tensor in tensors), (*addresses, 20))
                scales = (None, None) if kind == hopper_ladder.BF16 else (15, 16)
                given = tuple(scale and scale.address for scale in (others.pop("k_scale"), others.pop("v_scale")))
                self.assertEqual(given, scales)
                self.assertEqual(others, {"lengths": 50, "block_table": 60, "stage": "13x"})

    def test_a_stage_refuses(self):
        library = types.SimpleNamespace(hl_attention_decode=lambda call: 2, hl_error=lambda: b"at most 1 query")
        with mock.patch.object(hopper_ladder, "decode", lambda *arguments, **others: hopper_ladder.Decode()), \
                self.assertRaisesRegex(contenders.Refused, "^at most 1 query$"):
            decode_contenders.decode_stage(library, self.stage()).prepare(made_up_problem())

    def test_reading(self):
        library = types.SimpleNamespace(read_cache=lambda *arguments: self.seen.append(arguments))
        for cache, size, first in ("bf16", 2, 11), ("e4m3", 1, 13):
            decode_contenders.reads(library, made_up_problem(), cache, True)()
            self.assertEqual(self.seen.pop(), (first, first + 1, size * 2 * 2 * 64 * 96, 20, 1, 40))
        library.read_cache = lambda *arguments: b"no"
        with self.assertRaisesRegex(contenders.Refused, "^no$"):
            decode_contenders.reads(library, made_up_problem(), "bf16", False)()

    def test_flash_attention_3(self):
        library = types.SimpleNamespace(flash_attention_3_decode_workspace=lambda call: 5,
                                        flash_attention_3_decode=self.note,
                                        flash_attention_3_decode_version=lambda: b"3")
        contender = decode_contenders.flash_attention_3_decode(library)
        contender.prepare(made_up_problem(DecodePoint(2, 8, 2, 64, 96, page=16), table=MadeUpTensor(60)))()
        call = self.seen.pop()
        self.assertEqual([call[name] for name in ("q", "k", "v", "o", "lengths", "block_table", "workspace", "stream",
                                                  "page", "pages", "keys")],
                         [10, 11, 12, 20, None, 60, 30, 40, 16, 7, 96])
        library.flash_attention_3_decode = lambda call: 7
        with self.assertRaisesRegex(contenders.Refused, "FlashAttention-3 returned 7"):
            contender.prepare(made_up_problem())()

    def test_a_cache_without_pages_is_one_in_pages_to_flashinfer(self):
        point = DecodePoint(3, 8, 2, 64, 96)
        strided = [types.SimpleNamespace(as_strided=lambda *view: view) for _ in "kv"]
        (k, v), table = decode_contenders.in_pages(made_up_problem(point), decode_problem.Cache(*strided))
        shape, strides = k
        self.assertEqual((k, strides), (v, (16 * 64, 96 * 64, 64, 1)))
        for batch, pages in enumerate(table):
            for kv_head in range(2):
                for key in range(96):
                    at = pages[key // 16] * strides[0] + kv_head * strides[1] + key % 16 * strides[2]
                    self.assertEqual(at, ((batch * 2 + kv_head) * 96 + key) * 64)
        last = [size - 1 for size in shape]
        self.assertEqual(sum(map(int.__mul__, last, strides)), 3 * 2 * 96 * 64 - 1, "the view ends where the cache does")
        with self.assertRaisesRegex(contenders.Refused, "pages of 16 keys"):
            decode_contenders.in_pages(made_up_problem(point._replace(keys=90)), decode_problem.Cache(*strided))

    def test_pytorch_refuses_what_it_lacks(self):
        point = DecodePoint(2, 8, 2, 64, 96)
        torch = {name: mock.Mock() for name in ("torch", "torch.nn", "torch.nn.attention", "torch.nn.functional")}
        with mock.patch.dict(sys.modules, torch):
            for name, changed in (("cuDNN", {"ragged": True}), ("FlashAttention-2", {"page": 16}),
                                  ("cuDNN", {"queries": 2})):
                with self.assertRaises(contenders.Refused):
                    decode_contenders.decode_pytorch(name).prepare(made_up_problem(point._replace(**changed)))


class Recording(unittest.TestCase):
    """main with made-up measurements."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "rows.csv")
        self.measured, self.clock, self.slow = [], 0.0, 0.0
        found = [decode_contenders.DecodeContender("13x-a", None),
                 decode_contenders.DecodeContender("13y-b", None, lambda: "1.2", "e4m3"),
                 decode_contenders.DecodeContender("wrong", None)]
        for name, value in (("open_readers", lambda path: None),
                            ("find_decode_contenders", lambda options: found),
                            ("measure_decode", self.measure)):
            self.patch(decode_peers, name, value)
        self.patch(peers, "require_gpu", lambda: None)
        self.patch(peers, "device_columns", lambda: "NVIDIA H100 80GB HBM3,1980,1,13.0")
        self.patch(peers, "free_memory", lambda: None)
        self.patch(decode_peers.time, "monotonic", lambda: self.clock)

    def patch(self, where, name, value):
        patch = mock.patch.object(where, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def measure(self, _library, _found, point, _rounds):
        self.measured.append(str(point))
        self.clock += 10
        runs = {"13x-a": peers.Runs([2.0, 4.0, 3.0], [1700.0, 1800.0]), "13y-b": peers.Runs([1.0], [])}
        return runs, {"bf16": peers.Runs([1.5], []), "e4m3": peers.Runs([0.5], [])}, {"13x-a": 0.25, "13y-b": 0.5}

    def record(self, *arguments):
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            decode_peers.main([f"--csv={self.path}", *arguments])
        return printed.getvalue()

    def rows(self):
        with open(self.path, encoding="ascii", newline="") as file:
            return list(csv.DictReader(file))

    def test_rows(self):
        text = self.record("--points=2/8/2/64/1000/ragged/page16/queries4".replace("1000", "1600"))
        first, second = self.rows()
        self.assertEqual([first[name] for name in decode_peers.POINT_COLUMNS], ["2", "8", "2", "64", "1600", "ragged",
                                                                                "16", "4"])
        numbers = [first[name] for name in ("median_ms", "min_ms", "max_ms", "repeats", "read_median_ms",
                                            "percent_of_read",
                                            "clock_mhz", "clock_min_mhz", "version", "relative_error")]
        self.assertEqual(numbers, ["3.000000", "2.000000", "4.000000", "3", "1.500000", "50.0", "1750", "1700", "",
                                   "0.250000"])
        used = sum(DecodePoint(2, 8, 2, 64, 1600, True).lengths()) * 2 * 64
        self.assertEqual(first["gb_per_s"], f"{4 * used / 3e-3 / 1e9:.1f}")
        self.assertEqual([second[name] for name in ("stage", "cache", "gb_per_s", "version", "percent_of_read")],
                         ["13y-b", "e4m3", f"{2 * used / 1e-3 / 1e9:.1f}", "1.2", "50.0"])
        self.assertIn("3000.00 µs", text)

    def test_it_goes_on(self):
        points = "--points=1/8/2/64/64,2/8/2/64/64,3/8/2/64/64,4/8/2/64/64"
        text = self.record(points, "--seconds=15")
        self.assertEqual(self.measured, ["1/8/2/64/64", "2/8/2/64/64"])
        self.assertIn("15 s have passed; 2 points are left, and the same command goes on with them", text)
        self.record(points, "--seconds=15")
        self.record(points)
        self.assertEqual(len(self.measured), 4, "each once")
        self.assertEqual([row["batch"] for row in self.rows()], ["1", "1", "2", "2", "3", "3", "4", "4"])

    def test_a_file_with_other_columns(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("stage,device\n")
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as printed:
            decode_peers.main([f"--csv={self.path}"])
        self.assertIn("has other columns than these rows; move it away", printed.getvalue())
        self.assertEqual(self.measured, [])

    def test_record_names_the_device(self):
        self.assertEqual(os.path.relpath(decode_peers.recording_path(peers.device_columns()), peers.ROOT),
                         os.path.join("plots", "data", "decode", "nvidia-h100-80gb-hbm3-peers.csv"))

    def test_the_faster_reader_counts(self):
        clock = [types.SimpleNamespace(name="13x-a", cache="bf16")]
        runs = {"13x-a": peers.Runs([3.0], []), "l": peers.Runs([2.0], []), "c": peers.Runs([1.0], [])}
        self.patch(decode_peers, "make_decode_problem", lambda point: None)
        self.patch(decode_peers, "DecodeReference", lambda problem: None)
        self.patch(decode_peers, "enter_decode", lambda *_: peers.Entrant("13x-a", None, 1.0))
        self.patch(decode_peers, "enter_readers", lambda *_: ([], {"bf16": ["l", "c"]}))
        self.patch(decode_peers, "before_each_run", lambda: None)
        self.patch(peers, "burn_in", lambda entrants: None)
        self.patch(peers, "measure_turns", lambda *_: dict(runs))
        found, read, _ = MEASURE(None, clock, DecodePoint(1, 1, 1, 64, 64), 15)
        self.assertEqual((list(found), read["bf16"].milliseconds), (["13x-a"], [1.0]))

    def test_long_runs_have_fewer_rounds(self):
        for milliseconds, rounds in (0.1, 15), (40.0, 7), (1000.0, 3):
            self.assertEqual(decode_peers.rounds_of([peers.Entrant("a", None, milliseconds)], 15), rounds)


MEASURE = decode_peers.measure_decode

if __name__ == "__main__":
    unittest.main()
