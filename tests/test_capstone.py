"""Capstones: the empty kernel fails, ours passes, and kernels that are right but miss a goal fail by it.

Runs in the repository's root: python3 tests/test_capstone.py.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "common/course")
# pylint: disable=wrong-import-position
import capstone


def command(word, mine):
    """The exit code of a command of the course, and what it prints."""
    done = subprocess.run([sys.executable, "common/course/course.py", word], env=dict(os.environ, MINE=mine), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def write_ours(name, mine, **changes):
    """Our stage as the learner's files. changes: FILE=(OLD, NEW), where _ stands for the dot in FILE."""
    folder = os.path.join(mine, f"capstone-{name}")
    os.makedirs(folder)
    for path in glob.glob(f"stages/{capstone.CAPSTONES[name].stage}/*.[ch]*"):
        with open(path, encoding="utf-8") as file:
            text = file.read().replace('"../20-gemm/', f'"{os.getcwd()}/stages/20-gemm/')
        for where, (old, new) in changes.items():
            if where == os.path.basename(path).replace(".", "_"):
                assert text.count(old) == 1, f"{old} in {path}"
                text = text.replace(old, new)
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write(text)


class Capstones(unittest.TestCase):
    def setUp(self):
        self.mine = tempfile.mkdtemp(dir="build")

    def tearDown(self):
        shutil.rmtree(self.mine)

    def test_begin_with_an_empty_kernel_that_fails_and_show_no_solution(self):
        for name in capstone.CAPSTONES:
            with self.subTest(name):
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 0, text)
                self.assertIn("README.md", text)
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 1, text)
                self.assertIn("got NaN", text)
                self.assertEqual(command(f"grade-{name}", self.mine)[0], 1)
                code, text = command(f"solution-{name}", self.mine)
                self.assertEqual((code, text.count("\n")), (2, 1), text)

    def test_pass_with_our_kernels_and_then_show_them(self):
        for name in capstone.CAPSTONES:
            with self.subTest(name):
                write_ours(name, self.mine)
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 0, text)
                self.assertEqual(command(f"grade-{name}", self.mine)[0], 0)
                self.assertIn("struct Consumer", command(f"solution-{name}", self.mine)[1])

    def test_fail_by_the_goal_that_is_missed(self):
        for name, line, changes in (
                ("gemm", "bytes that TMA reads", {"tiles_h": ("COLUMNS = 256", "COLUMNS = 128")}),
                ("gemm", "special functions", {"kernel_cu": ("      start(1);\n",
                                                             "      start(problem.depth / k < problem.depth);\n")}),
                ("gemm", "overwrite in flight", {"kernel_cu": ("      wgmma_wait<1>();\n", "")}),
                ("gemm", "it does not build", {"tiles_h": ("CONSUMER_REGISTERS = 240", "CONSUMER_REGISTERS = 152")}),
                ("gemm", "instructions while products", {"kernel_cu": ("wgmma_wait<1>()", "wgmma_wait<0>()")}),
                ("gemm", "instructions while loads", {"tiles_h": ("SLOTS = 4", "SLOTS = 2")}),
                ("multicast", "bytes that TMA reads", {"tiles_h": ("CLUSTER = 2", "CLUSTER = 1")})):
            with self.subTest(line):
                shutil.rmtree(os.path.join(self.mine, f"capstone-{name}"), ignore_errors=True)
                write_ours(name, self.mine, **changes)
                code, text = command(f"capstone-{name}", self.mine)
                self.assertEqual(code, 1, text)
                self.assertIn(line, text)

    def test_name_what_there_is(self):
        for word in ("capstone-none", "try-gemm", "hint-multicast"):
            code, text = command(word, self.mine)
            self.assertEqual((code, text.count("\n")), (2, 1), text)
            self.assertIn("capstones are gemm, multicast", text)
        for word, name in (("try-20", "gemm"), ("grade-20", "gemm"), ("hint-20b", "multicast")):
            code, text = command(word, self.mine)
            self.assertEqual((code, text.count("\n")), (2, 1), text)
            self.assertIn(f"make capstone-{name}", text)


if __name__ == "__main__":
    unittest.main(verbosity=0)
