#!/usr/bin/env python3
"""Runs numba-cuda's own tests on hopper-run: the files that numba.toml names must pass, without a fault, but for the
tests that it names with a reason.

    numba_tests.py PYTHON [FILE...]     with names, those files alone, as test_mandel

The tests come with the package. Each file runs in a process of its own, because a fault ends a process's use of CUDA.
"""

import os
import re
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "others"))
from programs import ROOT, hopper_run  # pylint: disable=wrong-import-position

SECONDS = 600
# Runs the tests of a file, the first argument, but for those that the others name.
RUN = """
import sys, unittest


def tests_of(suite):
    for test in suite:
        yield from tests_of(test) if isinstance(test, unittest.TestSuite) else [test]


tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromName("numba.cuda.tests.cudapy." + sys.argv[1])))
names = [test.id().rsplit(".", 1)[1] for test in tests]
if missing := set(sys.argv[2:]) - set(names):
    sys.exit(f"no such test: {missing}")
suite = unittest.TestSuite(test for test, name in zip(tests, names) if name not in sys.argv[2:])
sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
"""


def main():
    """Runs them, prints how many files and tests passed, and returns 1 if a file failed or ran no test."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    python = os.path.abspath(sys.argv[1])
    with open(os.path.join(HERE, "numba.toml"), "rb") as file:
        plan = tomllib.load(file)
    files = sys.argv[2:] or plan["files"]
    left_out = [test.split(".") for reason in plan["fails"] for test in reason.get("tests", [])]
    bad, tests = 0, 0
    for name in files:
        without = [test for file, test in left_out if file == name]
        code, text, _ = hopper_run(ROOT, [python, "-c", RUN, name, *without], SECONDS)
        ran = re.search(r"^Ran (\d+) tests? in [^\n]*\n+OK(?: \(.*?skipped=(\d+))?", text, re.MULTILINE)
        passed = int(ran[1]) - int(ran[2] or 0) if ran else 0
        if code != 0 or not passed:
            bad += 1
            print(f"failed    {name}: exit {code}\n{text[-1500:]}")
        tests += passed
    print(f"numba-cuda: {len(files) - bad} of {len(files)} files passed, {tests} tests")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
