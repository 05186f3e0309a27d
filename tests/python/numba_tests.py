#!/usr/bin/env python3
"""Runs numba-cuda's own tests on hopper-run: the files that numba.toml names must pass, without a fault.

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


def main():
    """Runs them, prints how many files and tests passed, and returns 1 if a file failed or ran no test."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    python = os.path.abspath(sys.argv[1])
    with open(os.path.join(HERE, "numba.toml"), "rb") as file:
        files = sys.argv[2:] or tomllib.load(file)["files"]
    bad, tests = 0, 0
    for name in files:
        code, text, _ = hopper_run(ROOT, [python, "-m", "unittest", f"numba.cuda.tests.cudapy.{name}"], SECONDS)
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
