#!/usr/bin/env python3
"""Other people's suites of races, on the emulator: does hopper-run find what their programs are named after?

    python3 tests/suites/run.py                    all suites of suites.toml
    python3 tests/suites/run.py indigo scor        some of them
    python3 tests/suites/run.py --record           all, and writes results.csv.gz and costs.csv in tests/suites
    python3 tests/suites/run.py --tables           writes the tables of judgements in notes/suites.md

The suites come from public repositories, at the commits that suites.toml pins, into build/suites; nothing of them is
kept in this repository. Where GitHub cannot be reached, MIRROR names another place: MIRROR='/mirror/{owner}/{name}'.
The programs are small, and most of the time of a compilation is nvcc's own. So many are compiled as one unit, each in a
namespace of its own, and each runs as a process of its own.

Exit code: 0, when each program gets the verdict that suites.toml expects; otherwise 1.
"""
import collections
import concurrent.futures
import csv
import glob
import gzip
import hashlib
import io
import os
import re
import shutil
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "others"))
from programs import FLAGS, ROOT, fetch, hopper_run, run, write_table  # pylint: disable=wrong-import-position

FOLDER = os.path.join(ROOT, "build", "suites")
RESULTS = os.path.join(HERE, "results.csv.gz")
NOTE = os.path.join(ROOT, "notes", "suites.md")
COSTS = os.path.join(HERE, "costs.csv")
SECONDS = 120  # after which a program is stopped
UNIT = 64  # programs that are compiled together
STEPS = "--step-limit=20000000"  # no program needs a tenth of that
COLUMNS = ["suite", "program", "named", "expected", "input", "found"]
COST_COLUMNS = ["suite", "programs", "runs", "compile_core_seconds", "run_core_seconds", "processor"]

Program = collections.namedtuple("Program", "name path named expected")

# A program's main has its arguments or none.
START = """#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
static int start(int (*program)(), int, char **) { return program(); }
static int start(int (*program)(int, char **), int count, char **words) { return program(count, words); }
"""


# ---- programs ----

def first_match(name, rules):
    """The verdict of the first rule [pattern, verdict] that matches, or None."""
    return next((verdict for pattern, verdict in rules if re.search(pattern, name)), None)


def programs_of(suite, sources):
    """The programs below a folder, in the order of their names, without those that the suite leaves out."""
    found = []
    for path in sorted(glob.glob(os.path.join(sources, suite["files"]), recursive=True)):
        name = os.path.relpath(path, os.path.join(sources, suite["root"])).removesuffix(".cu").removesuffix("/kernel")
        with open(path, encoding="utf-8") as file:
            label = name if suite["named"] == "name" else file.readline()
        named = first_match(label, suite["rules"])
        if named is None or name in suite.get("out", {}):
            continue
        found.append(Program(name, path, named, suite.get("judged", {}).get(name, {}).get("verdict", named)))
    return found


def main_of(suite, program):
    """Source of a main for a program that has none: launches its kernels as the comment at its head says."""
    with open(program.path, encoding="utf-8") as file:
        source = file.read()
    shapes = []
    for word in ("gridDim", "blockDim"):
        numbers = re.search(rf"--{word}=\[?([\d,]+)", source).group(1)
        shapes.append(f"dim3({numbers})" if word == "gridDim" else f"block_of({numbers})")
    arguments = suite.get("arguments", {}).get(program.name)
    calls = [f"launch({kernel}, {', '.join(shapes)}{', ' + arguments if arguments else ''})"
             for kernel in re.findall(r"__global__\s+void\s+(\w+)\s*\(", source)]
    return f"{suite.get('before_main', {}).get(program.name, '')}\nint main() {{ return {' | '.join(calls)}; }}"


def unit_source(suite, programs):
    """One source that holds several programs. Its first argument says which of them runs."""
    lines = [START + suite.get("before", "")]
    for number, program in enumerate(programs):
        with open(program.path, encoding="utf-8") as file:
            source = file.read()
        lines += [f"#define {name} {value or ''}" for name, value in
                  re.findall(r"^//--.*? -D(\w+)=?(\S+)?", source, re.MULTILINE)]
        lines += [f"namespace program_{number} {{", f'#include "{program.path}"']
        lines += [main_of(suite, program)] if suite.get("main") == "launch" else []
        macros = re.findall(r"(?:^\s*#define |^//--.* -D)(\w+)", source, re.MULTILINE)
        lines += ["}"] + [f"#undef {name}" for name in macros]
    cases = [f"    case {number}: return start(program_{number}::main, count - 1, words + 1);"
             for number in range(len(programs))]
    return "\n".join(lines + ["int main(int count, char **words) {", "  switch (atoi(words[1])) {"] + cases +
                     ["  }", "  return 2;", "}", ""])


def compile_unit(suite, sources, number, programs):
    """The path of the compiled unit. It is kept until its source, the flags or our header change."""
    path = os.path.join(FOLDER, "built", f"{suite['name']}-{number}")
    flags = FLAGS + suite.get("flags", [])
    with open(os.path.join(HERE, "gpuverify.h"), "rb") as file:
        header = hashlib.sha256(file.read()).hexdigest()[:16]
    source = f"// {' '.join(flags)} {header}\n{unit_source(suite, programs)}"
    if os.path.exists(path):
        with open(path + ".cu", encoding="utf-8") as file:
            if file.read() == source:
                return path
        os.remove(path)
    with open(path + ".cu", "w", encoding="utf-8") as file:
        file.write(source)
    include = [f"-I{os.path.join(sources, folder)}" for folder in suite.get("include", [])] + [f"-I{HERE}"]
    done = run(["nvcc"] + flags + include + [path + ".cu", "-o", path], FOLDER)
    if done.returncode:
        sys.exit(f"{path}.cu does not compile:\n{done.stderr[-3000:]}")
    return path


# ---- verdicts ----

def hazard_names():
    """The names of all hazards, as reports begin with them."""
    with open(os.path.join(ROOT, "common", "emulator", "check", "hazard.c"), encoding="utf-8") as file:
        return re.findall(r"\[HAZARD_\w+\] =\s*\{\"([^\"]+)\"", file.read())


NAMES = re.compile(rf"^({'|'.join(map(re.escape, hazard_names()))}):", re.MULTILINE)


def found_by(unit, number, arguments):
    """The kinds of faults that a run reports, as one text: "none", "shared-memory race + trap"."""
    code, output, _ = hopper_run(FOLDER, [STEPS, unit, str(number)] + arguments, SECONDS)
    kinds = sorted(set(NAMES.findall(output)))
    if code is None or code > 2 or (code == 2 and not kinds):
        return f"not run ({code})"
    return " + ".join(kinds) or "none"


def is_right(expected, found):
    """Whether the findings on all inputs are what is expected: a kind on one of them, "none" on any, or "no race"."""
    if any(one.startswith("not run") for one in found):
        return False
    if expected == "open":
        return True
    if expected == "none":
        return all(one == "none" for one in found)
    if expected.startswith("no "):
        return not any(expected.removeprefix("no ") in one for one in found)
    return any(expected in one or (expected == "fault" and one != "none") for one in found)


def core_seconds():
    """Of all processes that have ended: what they cost, however busy the machine is."""
    times = os.times()
    return times.children_user + times.children_system


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return re.search(r"^model name\s*: (.*)", file.read(), re.MULTILINE).group(1)


def run_suite(suite, pool):
    """Rows of results, and one of costs."""
    sources = fetch(suite, FOLDER)
    programs = programs_of(suite, sources)
    os.makedirs(os.path.join(FOLDER, "built"), exist_ok=True)
    begin = core_seconds()
    units = [programs[first:first + UNIT] for first in range(0, len(programs), UNIT)]
    paths = list(pool.map(lambda number: compile_unit(suite, sources, number, units[number]), range(len(units))))
    compiled = core_seconds()
    folder = os.path.join(sources, suite.get("inputs_in", "."))
    runs = [(words, index) for words in suite.get("inputs", [[]]) for index in range(len(programs))]

    def one(run_of):
        words, index = run_of
        arguments = [os.path.join(folder, word) if "." in word else word for word in words]
        program = programs[index]
        return dict(zip(COLUMNS, (suite["name"], program.name, program.named, program.expected, " ".join(words),
                                  found_by(paths[index // UNIT], index % UNIT, arguments))))

    rows = list(pool.map(one, runs))
    return rows, dict(zip(COST_COLUMNS, (suite["name"], len(programs), len(runs), round(compiled - begin),
                                         round(core_seconds() - compiled), processor())))


def judge(rows):
    """Prints a table of the rows of one suite, and those that are wrong. Whether there are none."""
    found = collections.defaultdict(list)
    for row in rows:
        found[row["program"], row["named"], row["expected"]].append(row["found"])
    table = collections.Counter()
    for (name, named, expected), kinds in found.items():
        good = is_right(expected, kinds)
        table[named, expected, good] += 1
        if not good:
            print(f"NOT {name}: {expected} expected, found {', '.join(kinds)}")
    print(f"  {'named':22} {'expected':22} {'as expected':>12} {'not':>5}")
    for named, expected in sorted({key[:2] for key in table}):
        print(f"  {named:22} {expected:22} {table[named, expected, True]:12} {table[named, expected, False]:5}")
    return not any(count for (_, _, good), count in table.items() if not good)


# ---- tables ----

def table(suite):
    """The judgements of a suite, a row for those with one reason, and what is left out."""
    rows = collections.defaultdict(list)
    for name, judged in suite.get("judged", {}).items():
        rows[judged["verdict"], judged["why"]].append(name)
    for name, why in suite.get("out", {}).items():
        rows["left out", why].append(name)
    yield "| programs | verdict | why |"
    yield "|---|---|---|"
    for (verdict, why), names in rows.items():
        yield f"| {', '.join(f'`{name}`' for name in names)} | {verdict} | {why} |"


def write(path, columns, rows):
    """Writes a CSV, compressed where the name says so: the same bytes for the same rows, at any time."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    text = file.getvalue().encode("ascii")
    with open(path, "wb") as written:
        written.write(gzip.compress(text, mtime=0) if path.endswith(".gz") else text)


def main(arguments):
    with open(os.path.join(HERE, "suites.toml"), "rb") as file:
        suites = tomllib.load(file)["suite"]
    if arguments == ["--tables"]:
        for suite in suites:
            if "judged" in suite:
                write_table(NOTE, f"judgements of {suite['name']}", table(suite))
        return 0
    record = arguments == ["--record"]
    chosen = [suite for suite in suites if record or not arguments or suite["name"] in arguments]
    if not chosen or (arguments and not record and len(chosen) < len(set(arguments))):
        sys.exit(__doc__)
    if record:  # the costs are those of compiling, too
        shutil.rmtree(os.path.join(FOLDER, "built"), ignore_errors=True)
    results, costs, all_right = [], [], True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for suite in chosen:
            rows, cost = run_suite(suite, pool)
            print(f"{cost['suite']}: {cost['programs']} programs, {cost['runs']} runs; seconds of a core: "
                  f"{cost['compile_core_seconds']} to compile them, {cost['run_core_seconds']} to run them")
            all_right &= judge(rows)
            results += rows
            costs.append(cost)
    if record:
        write(RESULTS, COLUMNS, results)
        write(COSTS, COST_COLUMNS, costs)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
