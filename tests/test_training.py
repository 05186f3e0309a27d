#!/usr/bin/env python3
"""notes/train.py: a whole run on the emulator, and what it says when something is missing. Those that need PyTorch are
skipped without it. On a GPU: python3 tests/test_training.py Gpu."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("HL_ROOT") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HAS_TORCH = importlib.util.find_spec("torch") is not None


def run(*command, **environment):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def train(*options, **environment):
    return run(sys.executable, "notes/train.py", *options, **environment)


class Missing(unittest.TestCase):
    def test_pytorch(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w", encoding="ascii") as no_torch:
                no_torch.write("raise ImportError('not for this test')\n")
            result = train(PYTHONPATH=folder)
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertEqual(result.stderr, "train.py needs PyTorch for Python: pip install torch\n")

    @unittest.skipUnless(HAS_TORCH, "no PyTorch here")
    def test_gpu(self):
        result = train(CUDA_VISIBLE_DEVICES="")
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("no GPU that PyTorch can use; without one: ./hopper-run", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)


@unittest.skipUnless(HAS_TORCH, "no PyTorch here")
class Emulator(unittest.TestCase):
    def test_both_passes(self):
        result = run("./hopper-run", sys.executable, "notes/train.py", "--emulator")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], "alike")
        self.assertIn("no findings", result.stderr)


class Gpu(unittest.TestCase):
    def test_like_pytorch(self):
        result = train()
        if result.returncode == 3:
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    # Without a name, what needs no GPU.
    unittest.main(argv=sys.argv if len(sys.argv) > 1 else [*sys.argv, "Missing", "Emulator"])
