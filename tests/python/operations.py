#!/usr/bin/env python3
"""Runs tinygrad's own tests of its operations on hopper-run: those that operations.toml names may fail, and no other.

    operations.py PYTHON BACKEND [NAME...]     CUDA or CUDA:PTX; with names, those tests alone

The tests come from the commit that operations.toml pins, into build/tinygrad. MIRROR is as for tutorials.py. Its slow
tests, 67 of 427, are left out. A fault stops a launch, and CUDA then refuses all that follows in the process: so the
tests are run a few at a time.
"""

import os
import re
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "others"))
from programs import ROOT, fetch, hopper_run  # pylint: disable=wrong-import-position

FILE = os.path.join("test", "backend", "test_ops.py")
TOGETHER = 30  # tests in one process
SECONDS = 3600


def named_tests(folder, names):
    """The tests of test_ops.py, as pytest names them."""
    found, group = [], ""
    with open(os.path.join(folder, FILE), encoding="utf-8") as file:
        for line in file:
            group = (re.match(r"class (\w+)", line) or [None, group])[1]
            test = re.match(r"  def (test_\w+)", line)
            if test and (not names or test[1] in names):
                found.append(f"{FILE}::{group}::{test[1]}")
    return found


def may_fail(plan, backend):
    """The tests that fail for a known reason with a back end."""
    return {test for entry in plan["fails"] if entry.get("backend", backend) == backend for test in entry["tests"]}


def main():
    """Runs them, prints how many passed, and returns 1 if another one failed than may, or one that may has passed."""
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    python, backend = os.path.abspath(sys.argv[1]), sys.argv[2]
    with open(os.path.join(HERE, "operations.toml"), "rb") as file:
        plan = tomllib.load(file)
    folder = fetch(plan["repository"], os.path.join(ROOT, "build", "tinygrad"))
    # The package that is installed is tested, and not the repository's.
    os.environ.update(DEV=backend, SKIP_SLOW_TEST="1", PYTHONSAFEPATH="1")
    tests = named_tests(folder, sys.argv[3:])
    passed, failed, lost = 0, set(), []
    options = ["-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "--override-ini", "addopts="]
    options += ["--import-mode=importlib"]
    for first in range(0, len(tests), TOGETHER):
        some = tests[first : first + TOGETHER]
        _, text, _ = hopper_run(folder, [python, *options, *some], SECONDS)
        right = set(re.findall(r"^PASSED (\S+::test_\w+)", text, re.MULTILINE))
        wrong = set(re.findall(r"^(?:FAILED|ERROR|SUBFAILED\S*) (\S+::test_\w+)", text, re.MULTILINE))
        skipped = int((re.findall(r"(\d+) skipped.* in [\d.]+s", text) or [0])[-1])
        if len(right | wrong) + skipped < len(some):
            lost.append(f"{len(some) - len(right | wrong) - skipped} from {some[0]} on:\n{text[-2000:]}")
        passed += len(right - wrong)
        failed |= {test.rsplit("::", maxsplit=1)[1] for test in wrong}
    allowed = may_fail(plan, backend) & {test.rsplit("::", maxsplit=1)[1] for test in tests}
    for test in sorted(failed - allowed):
        print(f"failed    {test}")
    for test in sorted(allowed - failed):
        print(f"passed    {test}, which operations.toml has as one that fails")
    for words in lost:
        print(f"no result {words}")
    print(f"{backend}: {passed} passed, {len(failed & allowed)} failed for a known reason")
    return 1 if failed != allowed or lost or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
