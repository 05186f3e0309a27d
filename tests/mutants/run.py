"""Mutation testing: makes one small mistake after another in a copy of the repository, and sees whether a test fails.

    python3 tests/mutants/run.py [WORD]

The mistakes, mutants, are in mutants.txt, which explains its format. With a WORD, only those are made whose file, suite
or text has it. The copy is build/mutants. It keeps its objects, so that a mutant costs the files that it changes. Each
mutant runs the suite that is expected to kill it. Those that survive then run the whole `make test`. Exits with 0 when
all died, 1 when one survived, 2 when the list is wrong or the tests fail without any mutant.
"""
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.txt")
COPY = ROOT / "build/mutants"
NOT_COPIED = {"mutants", "asan", "tsan", "fuzz", "trace"}  # of build/
LONGEST_RUN = 900  # seconds, without a mutant


class Unusable(Exception):
    """Why nothing can be said about the tests, in one line."""


@dataclasses.dataclass
class Mutant:
    file: str
    suite: str
    line: int  # in the list
    old: str = ""
    new: str = ""

    def matches(self, word):
        return any(word in text for text in (self.file, self.suite, self.old, self.new))

    def apply(self):
        """Makes the mistake in the copy. Returns the text as it was, and the number of its first changed line."""
        text = (COPY / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise Unusable(f"{LIST.name}:{self.line}: {self.file} has this text {text.count(self.old)} times, not once")
        (COPY / self.file).write_text(text.replace(self.old, self.new), encoding="utf-8")
        return text, text[:text.index(self.old)].count("\n") + 1


def read_mutant(lines, number):
    """A mutant from its lines, the first of which has this number in the list."""
    old = [line[2:] for line in lines[1:] if line.startswith("-")]
    new = [line[2:] for line in lines[1:] if line.startswith("+")]
    words = lines[0].split()
    if len(words) != 2 or not old or len(old) + len(new) != len(lines) - 1 or old == new:
        raise Unusable(f"{LIST.name}:{number}: FILE SUITE, then lines with - and lines with + are expected")
    return Mutant(*words, number, "\n".join(old), "\n".join(new))


def read_list():
    mutants, lines = [], []
    for number, line in enumerate(LIST.read_text(encoding="utf-8").splitlines() + [""], 1):
        if line.strip() and not line.startswith("#"):
            lines.append(line)
        elif lines:
            mutants.append(read_mutant(lines, number - len(lines)))
            lines = []
    return mutants


# ---- the copy ----

def refresh():
    """Makes the copy as the repository is. A changed file is newer there than any object."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split("\0")
    files = [name for name in listed if name and (ROOT / name).is_file()]
    fresh = not COPY.exists()
    for name in files:
        here, there = ROOT / name, COPY / name
        if there.exists() and here.read_bytes() == there.read_bytes():
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copy2 if fresh else shutil.copy)(here, there)
    for folder in {name.split("/")[0] for name in files if "/" in name}:
        for there in (COPY / folder).rglob("*"):
            if there.is_file() and str(there.relative_to(COPY)) not in files:
                there.unlink()
    if fresh:
        copy_objects()


def copy_objects():
    (COPY / "build").mkdir()
    for each in (ROOT / "build").iterdir():
        there = COPY / "build" / each.name
        if each.name.startswith("cuda"):  # a compiler
            there.symlink_to(each)
        elif each.is_dir() and each.name not in NOT_COPIED:
            shutil.copytree(each, there, symlinks=True)
        elif each.is_file():
            shutil.copy2(each, there)
    # Their reports name the files that they were compiled from, by absolute paths.
    shutil.rmtree(COPY / "build/runner/tests", ignore_errors=True)


# ---- tests ----

def run_tests(pattern, limit):
    """Builds the copy and runs its tests: None when they pass, else what failed first."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["CRITERION_FAIL_FAST"] = "1"
    with subprocess.Popen(["make", f"-j{os.cpu_count()}", "test", f"TESTS={pattern}"], cwd=COPY, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as make:
        try:
            output, _ = make.communicate(timeout=limit)
        except BaseException as stopped:  # Ctrl-C too: what runs in a session of its own does not get it
            os.killpg(make.pid, signal.SIGKILL)
            if isinstance(stopped, subprocess.TimeoutExpired):
                return f"the limit of {limit:.0f} s"
            raise
    if make.returncode == 0:
        return None
    failed = re.search(r"\[FAIL\] (\w+)::(\w+)", output)
    if failed:
        return "/".join(failed.groups())
    wrong = re.search(r".*\berror\b:.*", output)
    if wrong:
        raise Unusable(f"it does not compile: {wrong[0]}")
    return (output.splitlines() or ["make"])[-1]


def check_unchanged(pattern):
    """The tests must pass without a mutant. Returns the limit for runs with one."""
    start = time.monotonic()
    failed = run_tests(pattern, LONGEST_RUN)
    if failed:
        raise Unusable(f"without any mutant the tests fail: {failed}")
    return 60 + 5 * (time.monotonic() - start)


def judge(mutants, limit, pattern_of):
    """Runs each mutant's tests. Returns those that survived."""
    survivors = []
    for mutant in mutants:
        start = time.monotonic()
        text, line = mutant.apply()
        try:
            killer = run_tests(pattern_of(mutant), limit)
        except Unusable as error:
            raise Unusable(f"{LIST.name}:{mutant.line}: {error}") from error
        finally:
            (COPY / mutant.file).write_text(text, encoding="utf-8")
        if not killer:
            survivors.append(mutant)
        verdict = f"killed by {killer}" if killer else f"survives {pattern_of(mutant)}"
        print(f"{mutant.file}:{line}: {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
    return survivors


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    mutants = [mutant for mutant in read_list() if mutant.matches(word)]
    if not mutants:
        raise Unusable(f"no mutant has {word} in its file, suite or text")
    refresh()
    limit = check_unchanged(f"@({'|'.join(sorted({mutant.suite for mutant in mutants}))})")
    survivors = judge(mutants, limit, lambda mutant: mutant.suite)
    if survivors:
        print(f"{len(survivors)} of {len(mutants)} survived; now the whole suite", flush=True)
        survivors = judge(survivors, check_unchanged("*"), lambda mutant: "*")
    for mutant in survivors:
        print(f"{LIST.name}:{mutant.line}: SURVIVED, {mutant.file}")
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("mutants: stopped", file=sys.stderr)
        sys.exit(130)
    except Unusable as why:
        print(f"mutants: {why}", file=sys.stderr)
        sys.exit(2)
