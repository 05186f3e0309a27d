"""The stages in WebAssembly do what their programs do, bit for bit: reports, exit codes, hazards, all counters of each
line, a checksum of all outputs, and steps. With one thread, for with more a launch that stops does not repeat exactly.

Runs in the repository's root after make web: python3 tests/test_web.py [stage numbers] [classes of tests]. QUICK=1 in
the environment leaves out most mistakes, and all but one run of each stage.
"""
import concurrent.futures
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "common/course")
# pylint: disable=wrong-import-position
import course
from workshop import number_of

QUICK = "QUICK" in os.environ
NUMBERS = [word for word in sys.argv[1:] if word[0].isdigit()] or [number_of(stage) for stage in course.STAGES]
STAGES = [stage for stage in course.STAGES if number_of(stage) in NUMBERS]
QUICK_MISTAKES = 2  # of each stage

# Runs of a stage that has the options, by one of them.
RUNS = {
    "--seqlen": ("--seqlen=97", "--seqlen=192 --schedule=7 --input=large"),
    "--causal": ("--seqlen=129 --causal --head-dim=128",),
    "--lse": ("--lse --input=waves",),
    "--rotate": ("--rotate --scales=head --input=outliers",),
    "--deterministic": ("--seqlen=160 --deterministic",),
    "--window": ("--seqlen=130 --window=33 --schedule=2",),
    "--keys": ("--keys=131 --head-dim=128 --schedule=3",),
    "--size": ("--m=130 --n=72 --k=136 --schedule=3",),
    "--hazards": ("--hazards=off", "--counters", "--steps", "--steps --values=33", "--step-limit=100", "--no-such-option"),
}


def runs_of(stage):
    """The options of the runs that are compared."""
    shown = subprocess.run([f"./stage-{number_of(stage)}", "--help"], capture_output=True, text=True, check=True).stdout
    words = {word.split("=")[0] for word in shown.split()}
    return ["", *(run for option, runs in RUNS.items() if option in words and not QUICK for run in runs)]


def run(command, options):
    """What a program says and does: exit code, report, errors, the record, and the steps that --steps asks for."""
    with tempfile.TemporaryDirectory() as folder:
        path, steps = os.path.join(folder, "record.json"), os.path.join(folder, "steps")
        options = [option.replace("--steps", f"--steps={steps}") for option in options]
        done = subprocess.run([*command, *options, f"--json={path}"], capture_output=True, text=True, errors="replace",
                              check=False)
        record = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                record = json.load(file)
        if os.path.exists(steps):
            with open(steps, "rb") as file:
                record["steps"] = hashlib.sha256(file.read()).hexdigest()
    return done.returncode, done.stdout, done.stderr.replace("./stage", "stage"), record


def native(stage, options):
    return run([f"./stage-{number_of(stage)}", "--device=emulator", "--threads=1"], options)


def web(stage, options):
    return run(["node", "common/web/node.js", number_of(stage), f"build/kernels/{stage}.ptx"], options)


def all_at_once(function, things):
    """function(*thing) of each, as many at a time as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(things, pool.map(lambda thing: function(*thing), things)))


class SameRun(unittest.TestCase):
    maxDiff = 2000

    def expect_same(self, one, other):
        """Of the record of the web's run only what --json has: the rest is how run.js gives the report."""
        self.assertEqual(other[0], one[0], other[2])
        self.assertEqual(other[1], one[1])
        self.assertEqual(other[2], one[2])
        for name, value in one[3].items():
            self.assertEqual(other[3].get("code" if name == "exit_code" else name), value, name)


class Runs(SameRun):
    def test_are_the_same(self):
        pairs = [(stage, options) for stage in STAGES for options in runs_of(stage)]
        for (stage, options), (one, other) in all_at_once(
                lambda stage, options: (native(stage, options.split()), web(stage, options.split())), pairs):
            with self.subTest(stage, options=options):
                self.expect_same(one, other)
                if "--no-such" not in options and "--step-limit" not in options:
                    self.assertEqual(one[0], 0, one[2])
                    self.assertTrue(one[3]["lines"])


class Mistakes(SameRun):
    def test_are_the_same(self):
        """Those that run, and change nothing that is compiled for the host."""
        def show(stage, change):
            workshop = course.Workshop(f"web-{number_of(stage)}-{change.key}", stage)
            try:
                workshop.change(change)
                runs = change.all("Run")
                said, built = workshop.build(runs=runs)
                if not built or not workshop.ptx:
                    return said
                both = [[*options.split(), f"--ptx={workshop.ptx}"] for options in runs]
                return [(native(stage, options), web(stage, options)) for options in both]
            finally:
                shutil.rmtree(workshop.folder, ignore_errors=True)
        most = QUICK_MISTAKES if QUICK else None
        changed = [(stage, change) for stage in STAGES for change in course.changes(stage, "breaks")[:most]
                   if change.all("Run")]
        for (stage, change), pairs in all_at_once(show, changed):
            compared = isinstance(pairs, list)
            for one, other in pairs if compared else ():
                with self.subTest(f"{number_of(stage)}-{change.key}", title=change.title):
                    self.expect_same(one, other)
            print(f"{number_of(stage)}-{change.key}: {f'{len(pairs)} runs' if compared else 'not compared'}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[1:] if not word[0].isdigit()]])
