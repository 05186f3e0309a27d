#!/usr/bin/env python3
"""examples/train.py: a whole run on the emulator, and what it says when something is missing. Those that need PyTorch
are skipped without it. On a GPU: python3 tests/test_training.py Gpu."""
import importlib.util
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("HL_ROOT") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "examples"))
import alike  # pylint: disable=wrong-import-position

HAS_TORCH = importlib.util.find_spec("torch") is not None


def run(*command, **environment):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def train(*options, **environment):
    return run(sys.executable, "examples/train.py", *options, **environment)


def curve(seed, floor=1.5, noise=0.0):
    """A simulated one of 400 steps: the loss falls to a floor. The batches are the seed's, the noise is rounding."""
    batches, rounding = random.Random(seed), random.Random(seed + 1000)
    start = floor + batches.gauss(0, 0.02)
    return [start + 4 * math.exp(-step / 60) + batches.gauss(0, 0.1) + rounding.gauss(0, noise) for step in range(400)]


def trainings(ours):
    """Of three seeds, where PyTorch's loss falls to 1.5."""
    return [{"flash": curve(seed), "ours": ours(seed)} for seed in (1, 2, 3)]


class Alike(unittest.TestCase):
    """The comparison without its kernels, on simulated curves and gradients. What is wrong with one seed is enough."""

    def same(self, ours):
        return alike.curves_are_alike(trainings(ours), "flash")[0]

    def test_curves_of_another_rounding(self):
        self.assertTrue(self.same(lambda seed: curve(seed, noise=0.02)))

    def test_curves_that_end_elsewhere(self):
        self.assertFalse(self.same(lambda seed: curve(seed, floor=1.6)))
        self.assertFalse(self.same(lambda seed: curve(seed, floor=1.4)))
        self.assertFalse(self.same(lambda seed: curve(seed, floor=1.6 if seed == 2 else 1.5)))

    def test_curves_that_do_not_fall(self):
        self.assertFalse(self.same(lambda seed: [5.5] * 400))
        flat = [{"flash": [5.5 + seed] * 400, "ours": [5.5 + seed] * 400} for seed in (1, 2, 3)]
        self.assertFalse(alike.curves_are_alike(flat, "flash")[0], "PyTorch's did not either")

    def test_curves_with_nan(self):
        for broken in (1, 2, 3):
            self.assertFalse(self.same(lambda seed: curve(seed)[:-1] + [math.nan if seed == broken else 1.5]))

    def test_gradients_of_a_wrong_scale(self):
        """One hundredth too large; of the other sign; with one NaN."""
        exact = [random.Random(1).gauss(0, 1) for _ in range(1000)]

        def right(ours):
            error = math.sqrt(sum((a - b)**2 for a, b in zip(ours, exact)) / sum(a * a for a in exact))
            return alike.gradients_are_right([1e-4, error, 1e-4])

        rounded = [value * (1 + 2.0**-11 * random.Random(2).uniform(-1, 1)) for value in exact]
        self.assertTrue(right(rounded))
        self.assertFalse(right([1.01 * value for value in rounded]))
        self.assertFalse(right([-value for value in rounded]))
        self.assertFalse(right([*rounded[:-1], math.nan]))

    def test_steps(self):
        theirs = [5.744, 5.6072]
        for second, same in ((5.6071, True), (5.64, False), (5.57, False), (math.nan, False)):
            trained = [{"math": theirs, "ours": theirs}, {"math": theirs, "ours": [5.744, second]}]
            self.assertEqual(alike.steps_are_alike(trained, "math"), same)


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
        result = run("./hopper-run", sys.executable, "examples/train.py", "--emulator")
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
    unittest.main(argv=sys.argv if len(sys.argv) > 1 else [*sys.argv, "Alike", "Missing", "Emulator"])
