"""The stages in WebAssembly do what their programs do, bit for bit: reports, exit codes, hazards, all counters of each
line, a checksum of all outputs, and steps. So do the pairs of tests/hazards. With one thread, for with more a launch that
stops does not repeat exactly.

Runs in the repository's root after make web: python3 tests/test_web.py [stage numbers] [classes of tests]. QUICK=1 in
the environment leaves out most mistakes, and all but one run of each stage.
"""
import concurrent.futures
import filecmp
import gzip
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = ["common/course", "common/book"]
# pylint: disable=wrong-import-position
import break_ptx
import course
from workshop import Workshop, number_of, read

QUICK = "QUICK" in os.environ
NUMBERS = [word for word in sys.argv[1:] if word[0].isdigit()] or [number_of(stage) for stage in course.STAGES]
STAGES = [stage for stage in course.STAGES if number_of(stage) in NUMBERS]
QUICK_MISTAKES = 2  # of each stage
KERNELS = "build/book-ptx"  # of the mistakes, as the book has them

# Runs of a stage that has the options, by one of them.
RUNS = {
    "--seqlen": ("--seqlen=97", "--seqlen=192 --schedule=7 --input=large"),
    "--causal": ("--seqlen=129 --causal --head-dim=128",),
    "--lse": ("--lse --input=waves",),
    "--rotate": ("--rotate --scales=head --input=outliers",),
    "--deterministic": ("--seqlen=160 --deterministic",),
    "--window": ("--seqlen=130 --window=33 --schedule=2",),
    "--keys": ("--keys=131 --schedule=3", "--keys=131 --head-dim=128 --schedule=3"),
    "--size": ("--m=130 --n=72 --k=136 --schedule=3",),
    "--hazards": ("--hazards=off", "--counters", "--steps", "--steps --values=33", "--step-limit=100", "--no-such-option"),
}


def runs_of(stage):
    """The options of the runs that are compared."""
    shown = subprocess.run([f"./stage-{number_of(stage)}", "--help"], capture_output=True, text=True, check=True).stdout
    words = {word.split("=")[0] for word in shown.split()}
    return ["", *(run for option, runs in RUNS.items() if option in words and not QUICK for run in runs
                  if "--head-dim" in words or "--head-dim" not in run)]


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


def native(stage, options, program=None):
    return run([program or f"./stage-{number_of(stage)}", "--device=emulator", "--threads=1"], options)


def web(stage, options):
    return run(["node", "common/web/node.js", number_of(stage), f"build/kernels/{stage}.ptx"], options)


def program_of(change, folder):
    """A stage's program with the host code of a mistake that changes it, and the stage's own kernels."""
    workshop = Workshop(f"web-native-{number_of(change.stage)}-{change.key}", change.stage)
    workshop.change(change)
    sources = [path for path in break_ptx.host_files(change.stage) if path.endswith(".c")]
    for path in sources:
        workshop.own(path)
    program = os.path.join(folder, f"stage-{number_of(change.stage)}")
    parts = [os.path.abspath(f"build/{path}")
             for path in (f"stages/{change.stage}/embed.o", "common/harness/main.o", "libhopper.a")]
    subprocess.run([*shlex.split(read("build/flags")), "-w", *sources, *parts, "-ldl", "-lm", "-pthread", "-o", program],
                   cwd=workshop.folder, check=True)
    shutil.rmtree(workshop.folder)
    return program


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
        """Those that run. A mistake that changes the stage's host code has it in both; one that changes the harness would
        need a module of its own."""
        def show(_, change):
            name = f"{number_of(change.stage)}-{change.key}"
            break_ptx.make_break(KERNELS, change)
            if not os.path.exists(f"{KERNELS}/{name}.ptx.gz"):
                return "nvcc refuses it"
            if break_ptx.concerns_host(change) and not break_ptx.has_variant(change):
                return "it changes the harness"
            with tempfile.TemporaryDirectory() as folder, gzip.open(f"{KERNELS}/{name}.ptx.gz") as kernel:
                ptx, program, variant = os.path.join(folder, "kernel.ptx"), None, []
                with open(ptx, "wb") as file:
                    file.write(kernel.read())
                if break_ptx.has_variant(change):
                    program, variant = program_of(change, folder), [f"--variant={change.key}"]
                both = [[course.STEPS, *options.split(), f"--ptx={ptx}"] for options in change.all("Run")]
                return [(native(change.stage, options, program), web(change.stage, options + variant)) for options in both]
        most = QUICK_MISTAKES if QUICK else None
        changed = [(stage, change) for stage in STAGES for change in course.changes(stage, "breaks")[:most]
                   if change.all("Run")]
        os.makedirs(KERNELS, exist_ok=True)
        for (stage, change), pairs in all_at_once(show, changed):
            compared = isinstance(pairs, list)
            for one, other in pairs if compared else ():
                with self.subTest(f"{number_of(stage)}-{change.key}", title=change.title):
                    self.expect_same(one, other)
            print(f"{number_of(stage)}-{change.key}: {f'{len(pairs)} runs' if compared else f'not compared: {pairs}'}")


class AtOnce(unittest.TestCase):
    def test_makes_do_not_disturb_each_other(self):
        """Several make one mistake's host code at the same time: each ends well, and it is what one alone makes. The
        compiler is the native one here."""
        program = ("import sys; sys.path[:0] = ['common/web']; import variants; "
                   "chosen = [one for one in variants.variants() if (one.stage, one.key) == ('05b-single-tma', '6')]; "
                   "variants.variants = lambda: chosen; variants.main(sys.argv[1], 'build/stages', sys.argv[2:])")
        command = [*shlex.split(read("build/flags")), "-w"]
        with tempfile.TemporaryDirectory(dir="build") as folder:
            def begin(name):
                return subprocess.Popen([sys.executable, "-c", program, f"{folder}/{name}", *command],
                                        stdout=subprocess.DEVNULL)
            self.assertEqual(begin("alone").wait(), 0)
            makes = [begin(name) for name in ("one", "one", "other", "other")]
            self.assertEqual([make.wait() for make in makes], [0] * len(makes))
            names = os.listdir(f"{folder}/alone/05b/6")
            self.assertIn("map.o", names)
            for name in ("one", "other"):
                same, _, _ = filecmp.cmpfiles(f"{folder}/alone/05b/6", f"{folder}/{name}/05b/6", names, shallow=False)
                self.assertEqual(sorted(same), sorted(names))


class Hazards(unittest.TestCase):
    def test_are_the_same(self):
        """Each kernel of tests/hazards, faulty and repaired, in each schedule: reports, counters of each line, memory."""
        programs = {"native": ["build/run-tests", "--filter=hazards/*"],
                    "web": ["node", "tests/web/suites.js", "build/web/suites.js", "hazards/"]}
        with tempfile.TemporaryDirectory(dir="build") as folder:
            for name, command in programs.items():
                place = os.path.join(folder, name)
                os.makedirs(place)
                environment = {**os.environ, "HL_ROOT": "./", "HAZARD_PTX_DIR": "build/hazards", "HAZARD_RECORD": place}
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            folders = [os.path.join(folder, name) for name in programs]
            names = os.listdir(folders[0])
            self.assertEqual(sorted(names), sorted(os.listdir(folders[1])))
            _, different, unread = filecmp.cmpfiles(*folders, names, shallow=False)
            self.assertEqual(different + unread, [])
            self.assertGreater(len(names), 1000)
            print(f"{len(names)} runs of hazards")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[1:] if not word[0].isdigit()]])
