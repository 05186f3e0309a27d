"""The cases: each fails as its page says, our repair passes, what does not help is refused, and the command grades.

Runs in the repository's root (or a folder that looks like it), with ./hopper-run built: python3 tests/test_cases.py
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "common/course")
# pylint: disable=wrong-import-position
import case as course
from workshop import make

CASES = [course.Case(folder) for folder in sorted(glob.glob(course.CASES))]
BUILT = "build/cases/test"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def programs_of(one):
    """(patch, program) for the kernel as it is (no patch), mended, and with each repair that does not help."""
    for path in ["", f"{one.folder}/mended.patch", *sorted(glob.glob(f"{one.folder}/wrong/*.patch"))]:
        folder = os.path.join(BUILT, one.number, os.path.basename(path).removesuffix(".patch") or "given")
        os.makedirs(folder, exist_ok=True)
        kernel = os.path.join(folder, "patched.cuh")
        text = read(f"{one.folder}/kernel.cuh")
        with open(kernel, "w", encoding="utf-8") as file:
            file.write(text)
        if path:
            subprocess.run(["patch", "--silent", "--fuzz=0", kernel, path], check=True)
        yield path, course.Program(one, kernel, folder)


class Repairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = {one: list(programs_of(one)) for one in CASES}
        made = make(["-k", f"-j{os.cpu_count()}",
                     *(program.main for programs in cls.programs.values() for _, program in programs)])
        if made.returncode:
            raise AssertionError(made.stdout)

    def test_pages_have_a_report_and_runs(self):
        self.assertEqual([one.number for one in CASES], [f"{number:02}" for number in range(1, len(CASES) + 1)])
        for one in CASES:
            with self.subTest(one.number):
                self.assertRegex(one.text, r"^> ")
                self.assertGreaterEqual(len(one.all("run")), 3)
                self.assertEqual(len(one.all("shows")), 1)
                self.assertRegex(one.title, f"^Case {one.number}\\. ")
                self.assertGreaterEqual(len(self.programs[one]), 4)

    def test_fail_as_given_pass_when_mended_and_fail_when_that_does_not_help(self):
        for one, programs in self.programs.items():
            for path, program in programs:
                with self.subTest(path or one.folder):
                    passed, lines = course.judge(one, program)
                    text = "\n".join(lines)
                    self.assertEqual(passed, path.endswith("mended.patch"), text)
                    if not path:  # a case whose numbers are right, without a finding, is judged by its machine code
                        self.assertIn(one.all("shows")[0], text if not one.all("products") else
                                      "\n".join(program.run(one.all("run")[0], "--strict")[1]))
                    for shown in re.findall("^Shows: (.*)", read(path), re.MULTILINE) if "/wrong/" in path else []:
                        self.assertIn(shown, text)

    def test_patches_say_what_they_do(self):
        for one, programs in self.programs.items():
            for path, _ in programs[1:]:
                with self.subTest(path):
                    title, blank, *_ = read(path).splitlines()
                    self.assertRegex(title, r"^[A-Z_].*[^.]$")
                    if path.endswith("mended.patch"):
                        self.assertEqual(blank, "")
                        self.assertGreater(len(course.repair(one)[0]), 200)
                    else:
                        self.assertRegex(blank, "^Shows: ")


def command(word, mine, solution=""):
    done = subprocess.run([sys.executable, "common/course/case.py", word, *([solution] if solution else [])], text=True,
                          env=dict(os.environ, MINE=mine), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


class Command(unittest.TestCase):
    def test_leads_from_the_report_to_the_repair(self):
        one = CASES[4]
        with tempfile.TemporaryDirectory(dir="build") as mine:
            code, text = command("case-05", mine)
            self.assertEqual(code, 0, text)
            self.assertIn("Once a week", text)
            self.assertIn(f"edit {mine}/case-05/kernel.cuh", text)
            self.assertIn("global-memory race: reads what another thread writes", text)
            self.assertIn(f"at {mine}/case-05/kernel.cuh:", text)

            code, text = command("case-05", mine)
            self.assertEqual(code, 1, text)
            self.assertIn("NOT YET", text)
            code, text = command("case-05", mine, "solution")
            self.assertEqual((code, text.count("\n")), (2, 1), text)
            self.assertIn("not passed yet", text)
            code, text = command("case-05", mine, "solution")
            self.assertEqual(code, 0)
            self.assertIn("+    __threadfence();", text)

            self.assertNotIn("[x]", command("case", mine)[1])
            subprocess.run(["patch", "--silent", f"{mine}/case-05/kernel.cuh", f"{one.folder}/mended.patch"], check=True)
            code, text = command("case-05", mine)
            self.assertEqual(code, 0, text)
            self.assertIn("PASSED", text)
            self.assertIn("A fence on both sides", text)
            self.assertEqual(re.findall(r"\[x\] make (\S+)", command("case", mine)[1]), ["case-05"])

    def test_says_what_does_not_build(self):
        with tempfile.TemporaryDirectory(dir="build") as mine:
            self.assertEqual(command("case-01", mine)[0], 0)
            with open(f"{mine}/case-01/kernel.cuh", "a", encoding="ascii") as file:
                file.write("int wrong = ;\n")
            code, text = command("case-01", mine)
            self.assertEqual(code, 1, text)
            self.assertIn("it does not build", text)
            self.assertIn(f"{mine}/case-01/kernel.cuh(26): error", text)

    def test_refuses_what_it_cannot_do_in_one_line(self):
        with tempfile.TemporaryDirectory(dir="build") as mine:
            os.makedirs(f"{mine}/case-02")
            for word, solution, line in (("case-99", "", "case-99: there is no such case; there are 01 02"),
                                         ("case-03", "solution", "make case-03 comes first"),
                                         ("case-02", "", "kernel.cuh is gone")):
                code, text = command(word, mine, solution)
                self.assertEqual((code, text.count("\n")), (2, 1), text)
                self.assertIn(line, text)


if __name__ == "__main__":
    unittest.main(verbosity=0)
