"""Mutation testing: makes one small mistake after another in a copy of the repository, and sees whether a test fails.

    python3 tests/mutants/run.py [WORD]

The mistakes, mutants, are in mutants.txt, which explains its format. With a WORD, only those are made whose file, suite
or text has it. The copies are build/mutants/0, 1 and so on, as many as the environment's JOBS, or one for four cores.
Each keeps its objects, so that a mutant costs the files that it changes. A mutant runs the suite that is expected to
kill it. Those that survive then run the whole `make test`. Exits with 0 when all died, 1 when one survived, 2 when the
list is wrong or the tests fail without any mutant.
"""
import concurrent.futures
import dataclasses
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.txt")
COPIES = ROOT / "build/mutants"
CORES = os.cpu_count()
JOBS = int(os.environ.get("JOBS", max(1, CORES // 4)))
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

    def apply(self, copy):
        """Makes the mistake in a copy. Returns the text as it was, and the number of its first changed line."""
        text = (copy / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise Unusable(f"{LIST.name}:{self.line}: {self.file} has this text {text.count(self.old)} times, not once")
        (copy / self.file).write_text(text.replace(self.old, self.new), encoding="utf-8")
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


# ---- the copies ----

def refresh(copy):
    """Makes a copy as the repository is. A changed file is newer there than any object."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split("\0")
    files = [name for name in listed if name and (ROOT / name).is_file()]
    fresh = not copy.exists()
    for name in files:
        here, there = ROOT / name, copy / name
        if there.exists() and here.read_bytes() == there.read_bytes():
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copy2 if fresh else shutil.copy)(here, there)
    for folder in {name.split("/")[0] for name in files if "/" in name}:
        for there in (copy / folder).rglob("*"):
            if there.is_file() and str(there.relative_to(copy)) not in files:
                there.unlink()
    if fresh:
        copy_objects(copy)


def copy_objects(copy):
    (copy / "build").mkdir()
    for each in (ROOT / "build").iterdir():
        there = copy / "build" / each.name
        if each.name.startswith("cuda"):  # a compiler
            there.symlink_to(each)
        elif each.is_dir() and each.name not in NOT_COPIED:
            shutil.copytree(each, there, symlinks=True)
        elif each.is_file():
            shutil.copy2(each, there)
    # Their reports name the files that they were compiled from, by absolute paths.
    shutil.rmtree(copy / "build/runner/tests", ignore_errors=True)


# ---- tests ----

def run_tests(copy, pattern, limit):
    """Builds a copy and runs its tests: None when they pass, else what failed first."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["CRITERION_FAIL_FAST"] = "1"
    with subprocess.Popen(["make", f"-j{max(1, CORES // JOBS)}", "test", f"TESTS={pattern}"], cwd=copy, env=environment,
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


def check_unchanged(copies, pattern):
    """The tests must pass without a mutant. Returns the limit for runs with one."""
    def check(copy):
        start = time.monotonic()
        failed = run_tests(copy, pattern, LONGEST_RUN)
        if failed:
            raise Unusable(f"without any mutant the tests fail: {failed}")
        return 60 + 5 * (time.monotonic() - start)
    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        return max(pool.map(check, copies))


def judge(copy, mutant, limit, pattern):
    """Runs a mutant's tests in a copy: whether it survived."""
    start = time.monotonic()
    text, line = mutant.apply(copy)
    try:
        killer = run_tests(copy, pattern, limit)
    except Unusable as error:
        raise Unusable(f"{LIST.name}:{mutant.line}: {error}") from error
    finally:
        (copy / mutant.file).write_text(text, encoding="utf-8")
    verdict = f"killed by {killer}" if killer else f"survives {pattern}"
    print(f"{mutant.file}:{line}: {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
    return not killer


def judge_all(copies, mutants, limit, pattern_of):
    """Those that survive."""
    free = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)
    def judge_one(mutant):
        copy = free.get()
        try:
            return judge(copy, mutant, limit, pattern_of(mutant))
        finally:
            free.put(copy)
    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        return [mutant for mutant, survives in zip(mutants, pool.map(judge_one, mutants)) if survives]


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    mutants = [mutant for mutant in read_list() if mutant.matches(word)]
    if not mutants:
        raise Unusable(f"no mutant has {word} in its file, suite or text")
    copies = [COPIES / str(number) for number in range(min(JOBS, len(mutants)))]
    for copy in copies:
        refresh(copy)
    limit = check_unchanged(copies, f"@({'|'.join(sorted({mutant.suite for mutant in mutants}))})")
    survivors = judge_all(copies, mutants, limit, lambda mutant: mutant.suite)
    if survivors:
        print(f"{len(survivors)} of {len(mutants)} survived; now the whole suite", flush=True)
        survivors = judge_all(copies, survivors, check_unchanged(copies, "*"), lambda mutant: "*")
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
