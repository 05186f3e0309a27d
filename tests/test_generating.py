#!/usr/bin/env python3
"""examples/generate.py: a whole run on the emulator, its comparison, and what it says when something is missing. And
the calls that hopper_ladder.py makes of PyTorch's tensors for decode. Those that need PyTorch are skipped without it. On
a GPU: python3 tests/test_generating.py Gpu."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = os.environ.get("HL_ROOT") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "examples"), os.path.join(ROOT, "common", "library")]
import hopper_ladder  # pylint: disable=wrong-import-position

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch


def run(*command, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


def generate(*options, **environment):
    return run(sys.executable, "examples/generate.py", *options, **environment)


class Missing(unittest.TestCase):
    def test_pytorch(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w", encoding="ascii") as no_torch:
                no_torch.write("raise ImportError('not for this test')\n")
            result = generate(PYTHONPATH=folder)
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertEqual(result.stderr, "generate.py needs PyTorch for Python: pip install torch\n")

    @unittest.skipUnless(HAS_TORCH, "no PyTorch here")
    def test_gpu(self):
        result = generate(CUDA_VISIBLE_DEVICES="")
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("generate.py: no GPU that PyTorch can use; without one: ./hopper-run", result.stderr)
        self.assertIn(" python3 examples/generate.py --emulator\n", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    @unittest.skipUnless(HAS_TORCH, "no PyTorch here")
    def test_sense(self):
        for options, words in ((["--bytes=300"], "--bytes: 2 to 256 are allowed"),
                               (["--batch=0"], "--batch: 1 or more"),
                               (["--emulator", "--graph"], "--graph: PyTorch records graphs on a GPU alone")):
            result = generate(*options)
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)


@unittest.skipUnless(HAS_TORCH, "no PyTorch here")
class Comparison(unittest.TestCase):
    """Of logits that are made up."""

    def setUp(self):
        import generate as program  # pylint: disable=import-outside-toplevel

        self.limit, self.comparison = program.LIMIT, program.Comparison()
        self.theirs = torch.zeros(2, 256)
        self.theirs[0, 7], self.theirs[1, 9], self.theirs[1, 8] = 10, 10, 9.9999

    def choose(self, ours):
        self.assertEqual(self.comparison.choose(ours, self.theirs).tolist(), [7, 9], "PyTorch's")
        return self.comparison.is_right()

    def test_the_same_but_for_rounding(self):
        self.assertTrue(self.choose(self.theirs * (1 + self.limit / 2)))
        self.assertEqual((self.comparison.ties, self.comparison.chosen), (0, 2))

    def test_two_bytes_that_are_equally_likely(self):
        ours = self.theirs.clone()
        ours[1, 8] = 10.0001
        self.assertTrue(self.choose(ours))
        self.assertEqual(self.comparison.ties, 1)

    def test_another_byte(self):
        ours = self.theirs.clone()
        ours[0, 6] = 11
        self.assertFalse(self.choose(ours))

    def test_the_same_bytes_from_other_logits(self):
        self.assertFalse(self.choose(self.theirs * (1 + 2 * self.limit)))

    def test_nan(self):
        ours = self.theirs.clone()
        ours[0, 7] = torch.nan
        self.assertFalse(self.choose(torch.full_like(self.theirs, torch.nan)))
        self.setUp()
        self.assertFalse(self.choose(ours), "where the byte is the same")


@unittest.skipUnless(HAS_TORCH, "no PyTorch here")
class Calls(unittest.TestCase):
    """The fields of a call, of tensors on the CPU."""

    @staticmethod
    def queries(batch=2):
        return torch.empty(batch, 3, 8, 64, dtype=torch.bfloat16).transpose(1, 2)  # heads side by side

    @staticmethod
    def cache(*shape, dtype=None):
        return torch.empty(*shape, dtype=dtype or torch.bfloat16)

    def test_a_plain_cache(self):
        q, k, v = self.queries(), self.cache(2, 4, 100, 64), self.cache(2, 4, 100, 64)
        lse = torch.empty(2, 8, 3)
        call = hopper_ladder.decode(q, k, v, q, stage="13f", scale=0.5, keys=90, lse=lse)
        self.assertEqual(call.lse, lse.data_ptr())
        self.assertEqual([call.batch, call.heads, call.kv_heads, call.keys, call.head_dim, call.queries],
                         [2, 8, 4, 90, 64, 3])
        self.assertEqual((call.stage, call.type, call.scale, call.page), (b"13f", hopper_ladder.BF16, 0.5, 0))
        self.assertEqual((call.q.data, call.q.batch, call.q.head, call.q.row), (q.data_ptr(), 3 * 8 * 64, 64, 8 * 64))
        self.assertEqual((call.k.data, call.v.data, call.k.row), (k.data_ptr(), v.data_ptr(), 64))
        self.assertEqual((call.lengths, call.block_table), (None, None))

    def test_pages(self):
        """[pages, page, kv_heads, head_dim], and a table with more entries a row than are used."""
        q, k, v = self.queries(), self.cache(20, 16, 4, 64).transpose(1, 2), self.cache(20, 16, 4, 64).transpose(1, 2)
        table, lengths = torch.zeros(2, 10, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
        call = hopper_ladder.decode(q, k, v, q, lengths=lengths, block_table=table[:, :7])
        self.assertEqual((call.page, call.pages, call.table_row, call.keys), (16, 20, 10, 112))
        self.assertEqual((call.lengths, call.block_table), (lengths.data_ptr(), table.data_ptr()))
        self.assertEqual((call.k.batch, call.k.head, call.k.row), (16 * 4 * 64, 64, 4 * 64))

    def test_e4m3(self):
        q, k = self.queries(), self.cache(2, 4, 100, 64, dtype=torch.float8_e4m3fn)
        one, each = torch.ones(1), torch.ones(2, 4)
        call = hopper_ladder.decode(q, k, k, q, k_scale=one, v_scale=each)
        self.assertEqual((call.type, call.k_scale.per_head, call.v_scale.per_head), (hopper_ladder.E4M3, 0, 1))
        self.assertEqual((call.k_scale.data, call.v_scale.data), (one.data_ptr(), each.data_ptr()))

    def test_what_makes_no_sense(self):
        q, k = self.queries(), self.cache(2, 4, 100, 64)
        table, lengths = torch.zeros(2, 7, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
        for tensors, others, words in (
                ((q.half(), k, k, q), {}, "q: torch.float16"),
                ((q, k, k, q[:1]), {}, "o: torch.bfloat16 .1, 8, 3, 64.; torch.bfloat16 of one shape is allowed"),
                ((q, k.half(), k.half(), q), {}, "K is torch.float16"),
                ((q, k, k.float(), q), {}, "V torch.float32: both torch.bfloat16, or both"),
                ((q[0], k, k, q[0]), {}, "q has 3 dimensions, K 4: 4 are allowed"),
                ((q, k[:1], k[:1], q), {}, "they do not go with each other"),
                ((q, k, k[:, :2], q), {}, "they do not go with each other"),
                ((q, k[..., ::2], k[..., ::2], q), {}, "they do not go with each other"),
                ((q, k, k, q), {"lengths": lengths.long()}, "lengths: torch.int64 .2,.; torch.int32 .2,., contiguous"),
                ((q, k, k, q), {"lengths": lengths[:1]}, "lengths: torch.int32 .1,.; torch.int32 .2,."),
                ((q, k, k, q), {"block_table": table.long()}, "block_table: torch.int64 .2, 7.; torch.int32"),
                ((q, k, k, q), {"block_table": table[:1]}, "block_table: torch.int32 .1, 7."),
                ((q, k, k, q), {"block_table": table.t().contiguous().t()}, "rows without gaps, is allowed"),
                ((q, k, k, q), {"lse": torch.ones(2, 3, 8)}, "lse: torch.float32 .2, 3, 8.; torch.float32 .2, 8, 3."),
                ((q, k, k, q), {"k_scale": torch.ones(2, 8)}, "k_scale: torch.float32 .2, 8.; torch.float32 .2, 4."),
                ((q, k, k, q), {"v_scale": torch.ones(1).double()}, "v_scale: torch.float64 .1,.; torch.float32 .1,."),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                hopper_ladder.decode(*tensors, **others)

    def test_attention_decode(self):
        """A new O with the heads side by side, on PyTorch's stream; and the library's words when it refuses."""
        calls = []
        q, k = self.queries(), self.cache(2, 4, 100, 64)
        library = types.SimpleNamespace(hl_attention_decode=lambda call: calls.append(call) or call.flags,
                                        hl_error=lambda: b"its words")
        with mock.patch("torch.cuda.current_stream", lambda device: types.SimpleNamespace(cuda_stream=77)):
            o = hopper_ladder.attention_decode(library, q, k, k, keys=50)
            self.assertEqual((calls[0].stream, calls[0].keys, calls[0].o.data), (77, 50, o.data_ptr()))
            self.assertEqual((o.shape, o.stride()), (q.shape, (3 * 8 * 64, 64, 8 * 64, 1)))
            with self.assertRaisesRegex(RuntimeError, "its words"):
                hopper_ladder.attention_decode(library, q, k, k, flags=1)


@unittest.skipUnless(HAS_TORCH, "no PyTorch here")
class Emulator(unittest.TestCase):
    def test_the_same_text(self):
        result = run("./hopper-run", sys.executable, "examples/generate.py", "--emulator")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], "the same")
        self.assertRegex(result.stdout, "72 bytes chosen, [01] differently")
        self.assertRegex(result.stderr, r"hopper-run: \d+ launches, no findings")
        launches = int(re.search(r"(\d+) launches", result.stderr)[1])
        self.assertEqual(launches, 2 * (3 + 2 * 23), "2 layers: 3 prompts, and 23 times two kernels")


class Gpu(unittest.TestCase):
    def test_the_same_text(self):
        for options in ([], ["--graph"]):
            result = generate(*options)
            if result.returncode == 3:
                self.skipTest(result.stderr.strip())
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    # Without a name, what needs no GPU.
    unittest.main(argv=sys.argv if len(sys.argv) > 1 else [*sys.argv, "Missing", "Comparison", "Calls", "Emulator"])
