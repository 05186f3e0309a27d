"""What the kernels are now, for figures.py: what the emulator counts in a stage's run, and its kernels' registers."""
import csv
import fnmatch
import functools
import glob
import re
import subprocess

# Short names for columns of --counters-csv. Those that are not here stand for themselves.
COLUMNS = {"instructions": "smsp__inst_executed.sum", "special_functions": "inst_mufu",
           "atomics": "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
           "reductions": "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"}


@functools.lru_cache(maxsize=None)
def run(number, *options):
    """What a stage prints on the emulator."""
    command = [f"./stage-{number}", "--device=emulator", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def counts(numbers, columns, options=""):
    """A counter of one stage, or a tuple for several ("09 09b"). Columns with a plus between are added up."""
    names = [COLUMNS.get(column, column) for column in columns.split(" + ")]
    found = []
    for number in numbers.split():
        printed = run(number, "--hazards=off", "--counters-csv=-", *options.split())
        row = next(csv.DictReader(printed.splitlines()))
        found.append(sum(int(row[name]) for name in names))
    return tuple(found) if len(found) > 1 else found[0]


def near(rounded, value):
    """For a count that changes a little from run to run: the number on the page, if it is right within 1 %."""
    return rounded if abs(value / rounded - 1) < 0.01 else value


def executed(number, *functions, having=""):
    """The warp instructions of functions of kernel.cu: the first column of --counters, of all lines with a text."""
    path, = glob.glob(f"stages/{number}-*/kernel.cu")
    shown = run(number, "--counters")
    width = re.search(r"^ +inst .* line$", shown, re.MULTILINE)[0].index("line") + len("line")
    listing, = re.findall(rf"^{path}\n.*\n.*\n((?:.+\n)*)", shown, re.MULTILINE)
    columns = [line[:width].replace(",", "").split() for line in listing.splitlines()]
    executed_of = {int(found[-1]): int(found[0]) for found in columns if len(found) > 1}
    total, function = 0, None
    with open(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            if re.match(r"\w.*\{$", line):
                function = next(iter(re.findall(r"(\w+)\(", line)), None)
            if function in functions and having in line:
                total += executed_of.get(at, 0)
    return total


def registers(number, kernel):
    """The registers of a thread: what ptxas said of a stage's kernels with this name, or with names like
    "attention_*"."""
    log, = glob.glob(f"build/kernels/{number}-*.log")
    with open(log, encoding="utf-8") as file:
        found = re.findall(r"entry function '(\w+)'(?:(?!entry function).)*?Used (\d+) registers", file.read(), re.DOTALL)
    return [int(used) for name, used in found if fnmatch.fnmatch(name, kernel)]
