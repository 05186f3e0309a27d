#!/usr/bin/env python3
"""Other people's suites of races, on the emulator: does hopper-run find what their programs are named after?

    python3 tests/suites/run.py                    all suites of suites.toml
    python3 tests/suites/run.py indigo scor        some of them
    python3 tests/suites/run.py --record           all, and writes tests/suites/results.csv

The suites come from public repositories, at the commits that suites.toml pins, into build/suites; nothing of them is kept
in this repository. Where GitHub cannot be reached, MIRROR names another place: MIRROR='/mirror/{owner}/{name}'. The
programs are small, and most of the time of a compilation is nvcc's own. So many are compiled as one unit, each in a
namespace of its own, and each runs as a process of its own.

Exit code: 0, when each program gets the verdict that suites.toml expects; otherwise 1.
"""
import collections
import concurrent.futures
import csv
import glob
import os
import re
import sys
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "others"))
from programs import FLAGS, ROOT, fetch, hopper_run, run  # pylint: disable=wrong-import-position

FOLDER = os.path.join(ROOT, "build", "suites")
RESULTS = os.path.join(HERE, "results.csv")
SECONDS = 120  # after which a program is stopped
UNIT = 64  # programs that are compiled together
STEPS = "--step-limit=20000000"  # no program needs a tenth of that
COLUMNS = ["suite", "program", "named", "expected", "input", "found", "seconds"]

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
        lines += [f"#define {name} {value or ''}" for name, value in re.findall(r"^//--.*? -D(\w+)=?(\S+)?", source)]
        lines += [f"namespace program_{number} {{", f'#include "{program.path}"']
        lines += [main_of(suite, program)] if suite.get("main") == "launch" else []
        lines += ["}"] + [f"#undef {name}" for name in re.findall(r"(?:^\s*#define |^//--.* -D)(\w+)", source, re.MULTILINE)]
    cases = [f"    case {number}: return start(program_{number}::main, count - 1, words + 1);"
             for number in range(len(programs))]
    return "\n".join(lines + ["int main(int count, char **words) {", "  switch (atoi(words[1])) {"] + cases +
                     ["  }", "  return 2;", "}", ""])


def compile_unit(suite, sources, number, programs):
    """The path of the compiled unit. One whose source has not changed is kept."""
    path = os.path.join(FOLDER, "built", f"{suite['name']}-{number}")
    source = unit_source(suite, programs)
    if os.path.exists(path):
        with open(path + ".cu", encoding="utf-8") as file:
            if file.read() == source:
                return path
    with open(path + ".cu", "w", encoding="utf-8") as file:
        file.write(source)
    include = [f"-I{os.path.join(sources, folder)}" for folder in suite.get("include", [])] + [f"-I{HERE}"]
    done = run(["nvcc"] + FLAGS + include + [path + ".cu", "-o", path], FOLDER)
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
    """The kinds of faults that a run reports, in one word: "none", "shared-memory race + trap". And its seconds."""
    code, output, seconds = hopper_run(FOLDER, [STEPS, unit, str(number)] + arguments, SECONDS)
    kinds = sorted(set(NAMES.findall(output)))
    if code is None or code > 2 or (code == 2 and not kinds):
        return f"not run ({code})", seconds
    return " + ".join(kinds) or "none", seconds


def is_right(expected, found):
    """Whether the findings on all inputs are what is expected: a kind on one of them, "none" on any, or "no race"."""
    if any(one.startswith("not run") for one in found):
        return False
    if expected == "some schedules":
        return True
    if expected == "none":
        return all(one == "none" for one in found)
    if expected.startswith("no "):
        return not any(expected.removeprefix("no ") in one for one in found)
    return any(expected in one for one in found)


def cpu_seconds():
    """Of all processes that have ended."""
    return os.times().children_user + os.times().children_system


def spent(begin, end):
    return f"{end[0] - begin[0]:.0f} s ({end[1] - begin[1]:.0f} s of a core)"


def run_suite(suite, pool):
    """Rows of results."""
    sources = fetch(suite, FOLDER)
    programs = programs_of(suite, sources)
    os.makedirs(os.path.join(FOLDER, "built"), exist_ok=True)
    begin = time.time(), cpu_seconds()
    units = [programs[first:first + UNIT] for first in range(0, len(programs), UNIT)]
    paths = list(pool.map(lambda number: compile_unit(suite, sources, number, units[number]), range(len(units))))
    compiled = time.time(), cpu_seconds()
    runs = [(program, paths[index // UNIT], index % UNIT, words) for words in suite.get("inputs", [[]])
            for index, program in enumerate(programs)]
    folder = os.path.join(sources, suite.get("inputs_in", "."))
    results = pool.map(lambda one: found_by(one[1], one[2], [os.path.join(folder, word) if "." in word else word
                                                             for word in one[3]]), runs)
    rows = [dict(zip(COLUMNS, (suite["name"], program.name, program.named, program.expected, " ".join(words), found,
                               f"{seconds:.2f}"))) for (program, _, _, words), (found, seconds) in zip(runs, results)]
    print(f"{suite['name']}: {len(programs)} programs, {len(runs)} runs; compiled in {spent(begin, compiled)}, "
          f"run in {spent(compiled, (time.time(), cpu_seconds()))}")
    return rows


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


def main(arguments):
    with open(os.path.join(HERE, "suites.toml"), "rb") as file:
        suites = tomllib.load(file)["suite"]
    record = arguments == ["--record"]
    chosen = [suite for suite in suites if record or not arguments or suite["name"] in arguments]
    if not chosen or (arguments and not record and len(chosen) < len(set(arguments))):
        sys.exit(__doc__)
    rows, all_right = [], True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for suite in chosen:
            of_suite = run_suite(suite, pool)
            all_right &= judge(of_suite)
            rows += of_suite
    if record:
        with open(RESULTS, "w", encoding="ascii", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
