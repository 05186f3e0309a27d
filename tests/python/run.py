#!/usr/bin/env python3
"""Runs small programs in Python's kernel languages on hopper-run: right, without a fault; then with the program's
mistake, which must be found at its line.

    run.py PYTHON [PROGRAM...]      PYTHON has the packages; without programs, those whose package it has
"""

import glob
import os
import re
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
PACKAGES = {
    "torch": "torch",
    "triton": "torch",
    "gluon": "torch",
    "numba": "numba_cuda",
    "cuda": "cuda.core",
    "pytest": "pytest",
    "tinygrad": "tinygrad",
    "pycuda": "pycuda",
    "tilelang": "tilelang",
    "cute": "cutlass",
}
# tinygrad writes CUDA C, or PTX.
VARIANTS = {"tinygrad": [{"DEV": "CUDA"}, {"DEV": "CUDA:PTX"}]}


def language(program):
    """The first word of a program's name."""
    return os.path.basename(program).split("_", maxsplit=1)[0]


def has_package(python, program):
    """Whether that Python can import what a program needs."""
    package = PACKAGES[language(program)]
    finds = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", finds], stderr=subprocess.DEVNULL, check=False).returncode == 0


def run(python, program, *arguments, **variables):
    """The exit code, and what it has printed on both streams."""
    result = subprocess.run(
        [os.path.join(ROOT, "hopper-run"), python, program, *arguments],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )
    return result.returncode, result.stdout


def mistaken_lines(program):
    """"FILE:LINE" of the mistake; of each variant, if they have different ones."""
    found = []
    with open(program, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.endswith("# the mistake shows here\n"):
                found.append(f"{os.path.basename(program)}:{number}")
            found += re.findall(r"# (\S+:\d+|PTX line \d+): the mistake shows there", line)
    if not found:
        raise ValueError(f"{program} marks no line")
    return found


def judge(python, program):
    """What is wrong with a program's runs: a list of texts."""
    wrong = []
    variants = VARIANTS.get(language(program), [{}])
    lines = mistaken_lines(program)
    for variables, line in zip(variants, lines if len(lines) > 1 else lines * len(variants)):
        code, text = run(python, program, **variables)
        if code or "right\n" not in text or re.search(r"\d fault", text):
            wrong.append(f"{variables or ''} exit code {code}, and not right without a fault:\n{text}")
        code, text = run(python, program, "mistake", **variables)
        if code == 0 or not re.search(rf"(at|and) \S*{re.escape(line)} ", text):
            wrong.append(f"{variables or ''} exit code {code}, and {line} is not named:\n{text}")
    return wrong


def judge_pytest(python):
    """What is wrong with the plugin for pytest: the one test whose kernel has a race must fail, and tell why."""
    code, text = run(python, "-m", "pytest", "-p", "no:cacheprovider", os.path.join(FOLDER, "pytest"))
    if code == 1 and "1 failed, 2 passed" in text and re.search(r"_ test_race _+\n.*\nshared-memory race", text):
        return []
    return [f"exit code {code}, and not 1 failed, 2 passed:\n{text}"]


def main():
    """Runs all, and returns 1 if one fails."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    python = sys.argv[1]
    programs = sys.argv[2:] or sorted(glob.glob(os.path.join(FOLDER, "programs", "*.py")))
    failed = False
    for program in programs:
        if not has_package(python, program):
            print(f"skipped   {os.path.basename(program)}: {python} lacks its package")
            continue
        wrong = judge(python, program)
        failed |= bool(wrong)
        print("failed   " if wrong else "passed   ", os.path.basename(program), *wrong, sep="\n" if wrong else " ")
    if len(sys.argv) == 2 and has_package(python, "numba_") and has_package(python, "pytest_"):
        wrong = judge_pytest(python)
        failed |= bool(wrong)
        print("failed    pytest" if wrong else "passed    pytest", *wrong, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
