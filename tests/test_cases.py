"""The cases: each fails as its page says, our repair passes, what does not help is refused, and the command grades.

Runs in the repository's root (or a folder that looks like it), with ./hopper-run built: python3 tests/test_cases.py
"""
import glob
import hashlib
import os
import re
import shutil
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


def write(path, text):
    """Leaves a file alone that says so already: what was made of it is not made again."""
    if not os.path.exists(path) or read(path) != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def apply(patch, folder):
    """As common/course/change.py does: exactly, and as if the folder were in no repository."""
    environment = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(os.path.abspath(folder)))
    subprocess.run(["git", "apply", os.path.abspath(patch)], cwd=folder, env=environment, check=True)


class Variant(course.Program):
    """A case with its kernel as it is (no patch), mended, or with a repair that does not help. One program has all of a
    case, because most of a compiler's time goes into CUDA's headers; its first argument says which."""

    def __init__(self, one, patch, number):
        folder = os.path.join(BUILT, one.number, os.path.basename(patch).removesuffix(".patch") or "given")
        patched = os.path.join(folder, "patched")
        os.makedirs(patched, exist_ok=True)
        shutil.copy(f"{one.folder}/kernel.cuh", patched)
        if patch:
            apply(patch, patched)
        super().__init__(one, f"{patched}/kernel.cuh", folder)
        self.patch, self.command = patch, [os.path.join(BUILT, one.number, "main"), f"variant-{number}"]

    def make(self, name):
        return (self.command[0], []) if name == "main" else super().make(name)


def variants_of(one):
    """All variants of a case, and the program that has them: each in a namespace of its own, behind the headers."""
    paths = ["", f"{one.folder}/mended.patch", *sorted(glob.glob(f"{one.folder}/wrong/*.patch"))]
    variants = [Variant(one, path, number) for number, path in enumerate(paths)]
    kernels = [read(f"{variant.folder}/kernel.cuh") for variant in variants]
    texts = "".join([read(f"{one.folder}/main.cu"), *kernels])
    headers = {"#include <cstdlib>", "#include <cstring>", *re.findall(r'#include (?:<.*>|"ptx/.*")', texts)}
    main = ["#include \"kernel.cuh\""]
    for number, variant in enumerate(variants):
        main += [f"namespace variant_{number} {{", f"#include \"{os.path.basename(variant.folder)}/main.cu\"", "}"]
    main += ["int main(int argc, char **argv) {", "  switch (atoi(strrchr(argv[1], '-') + 1)) {"]
    main += [f"  case {number}: return variant_{number}::main(argc - 1, argv + 1);" for number in range(len(variants))]
    folder = os.path.join(BUILT, one.number)
    state = hashlib.sha256(texts.encode()).hexdigest()
    write(f"{folder}/main.cu", "\n".join([*main, "  }", "  return 4;", "}"]) + "\n")
    write(f"{folder}/kernel.cuh", "\n".join([*sorted(headers), f"// of {state}"]) + "\n")
    return variants


class Repairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.variants = {one: variants_of(one) for one in CASES}
        made = make(["-k", f"-j{os.cpu_count()}", *(variants[0].command[0] for variants in cls.variants.values())])
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
                self.assertGreaterEqual(len(self.variants[one]), 4)

    def test_fail_as_given_pass_when_mended_and_fail_when_that_does_not_help(self):
        for one, variants in self.variants.items():
            if one.all("products") and make(["nvdisasm"]).returncode:
                print(f"case {one.number} is NOT tested: there is no nvdisasm, and it cannot be had", file=sys.stderr)
                continue
            for variant in variants:
                with self.subTest(variant.patch or one.folder):
                    passed, lines = course.judge(one, variant)
                    text = "\n".join(lines)
                    self.assertEqual(passed, variant.patch.endswith("mended.patch"), text)
                    if "/wrong/" in variant.patch:
                        for shown in re.findall("^Shows: (.*)", read(variant.patch), re.MULTILINE):
                            self.assertIn(shown, text)
                    elif not passed:  # a case with right numbers and no finding is judged by its machine code
                        _, lines = variant.run(one.all("run")[0])
                        self.assertIn(one.all("shows")[0], "\n".join(lines) if one.all("products") else text)

    def test_patches_say_what_they_do(self):
        for variants in self.variants.values():
            for path in (variant.patch for variant in variants[1:]):
                with self.subTest(path):
                    title, second, *_ = read(path).splitlines()
                    self.assertRegex(title, r"^[A-Z_].*[^.]$")
                    self.assertRegex(second, "^$" if path.endswith("mended.patch") else "^Shows: ")
        for one in CASES:
            self.assertGreater(len(course.repair(one)[0]), 200, one.number)


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
            apply(f"{one.folder}/mended.patch", f"{mine}/case-05")
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
