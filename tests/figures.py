"""Figures in prose follow from recordings. Below a paragraph a comment says how, in the expressions of this file:

    This stage is 1.08 to 1.18 times as fast as the rung below.
    <!-- 1.08 to 1.18: ratio("03-cp-async", "02e-fragment-reuse") -->

Left of the colon stand words of the paragraph, right of it an expression. One number must be its value, rounded as the
page has it; of two numbers the first is the least value of a list and the second the greatest. Where a figure follows
from no recording, <!-- sourced: WHERE --> says where it comes from: a data sheet, a paper, arithmetic. A table below
<!-- recorded: FILE.csv --> shows what its rows and columns name.

What the emulator counts follows from the kernels as they are (counting.py): counts("02", "instructions") runs
./stage-02. A comment below a table has a few neighbouring cells as its words, "21,552 | 21,024". A tuple has a value
for each number, in their order. The lines of a block of code below <!-- printed: COMMAND --> are what the command
prints.

After a new recording or a change to a kernel, python3 tests/figures.py PAGE... writes the new numbers into pages. Read
what has changed: a sentence may no longer be true.
"""
import csv
import functools
import gzip
import math
import re
import statistics
import sys

import counting

PEERS = "plots/data/nvidia-h200-peers.csv"
DECODE = "plots/data/decode/nvidia-h100-80gb-hbm3-peers.csv"
TUNING = "plots/data/tuning/nvidia-h200.csv.gz"
TUNING_E4M3 = "plots/data/tuning/nvidia-h200-e4m3.csv.gz"
UNIT = r"(?:TFLOPS|[GT]B/s|[MG]Hz|ns|µs|ms|times as (?:fast|long|much time))\b"
FIGURE = re.compile(rf"(\d[\d,]*(?:\.\d+)?)(?=(?: (?:to|and|or|of the) \d[\d,.]*)*\s{UNIT})")
# Counts are numbers of four digits or more, with commas, and smaller ones of what the emulator counts.
COUNTED = "(?:warp )?instructions|loads|stores|(?:bank )?conflicts|atomics|special functions"
COUNT = re.compile(rf"(?<![\w.,^])(?<![Ss]tage )(?<!warp )(?<!line )(\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d+(?= (?:{COUNTED})\b))")
ARCHITECTURE = "65,536 registers, 1,024 threads, 4,096 FLOP"  # of an SM, a block, a clock: no counts
COMMENT = re.compile(r"<!-- (?!answer:|within:|order:|not )((?:(?!-->).)*?): (.*?) -->", re.DOTALL)  # a quiz has its own: quiz.py


@functools.lru_cache(maxsize=None)
def recording(path):
    """The rows of a CSV. Those that hardly anybody reads are compressed: zcat shows them."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="ascii") as file:
        return list(csv.DictReader(file))


# ---- expressions ----

def matches(row, where):
    """Conditions are columns of the recording; S and D stand for seqlen and head_dim. A tuple means any of these.

    A recording without the column "mode" is cold.
    """
    row = {"mode": "cold", **row}
    names = {"S": "seqlen", "D": "head_dim"}
    for name, wanted in where.items():
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if row[names.get(name, name)] not in [str(int(value) if isinstance(value, bool) else value) for value in wanted]:
            return False
    return True


def values(path, column, **where):
    """A column of all rows that have what is asked for."""
    found = [float(row[column]) for row in recording(path) if matches(row, where)]
    if not found:
        raise LookupError(f"{path} has no row with {where}")
    return found


def sanitized(*kinds):
    """How many kernels of the suite of hazards have a mistake of these kinds, and for how many each tool reports
    anything."""
    tools = [values("tests/hazards/sanitizer-h100.csv.gz", "seen", kind=kinds, tool=tool)
             for tool in ("memcheck", "racecheck", "synccheck", "initcheck")]
    return len(tools[0]), *map(sum, tools)


def tflops(stage, **where):
    return values(PEERS, "tflops", stage=stage, **{"mode": "cold", **where})


def clock(stage, **where):
    """The clock that ran, in MHz."""
    return values(PEERS, "clock_mhz", stage=stage, **{"mode": "cold", **where})


def times(stage, **where):
    """Median times in ms."""
    return values(PEERS, "median_ms", stage=stage, **{"mode": "cold", **where})


def ratio(stage, others, path=PEERS, column="tflops", **where):
    """How many times as fast a stage is as another, or as the fastest of several: one number for each problem. With a
    column, how many times as large its value is."""
    others = others if isinstance(others, tuple) else (others,)
    where = {"mode": "cold", **where}
    name = "kernel" if path == TUNING else "stage"
    keys = ("run", "input", "batch", "heads", "seqlen", "head_dim", "causal", "kv_heads", "keys", "queries", "page", "lengths")
    speeds = {}
    for row in recording(path):
        if row[name] in (stage, *others) and matches(row, where):
            speeds.setdefault(tuple(row.get(key) for key in keys), {})[row[name]] = float(row[column])
    found = [speed[stage] / max(speed[other] for other in others) for speed in speeds.values()
             if {stage, *others} <= set(speed)]
    if not found:
        raise LookupError(f"{path} does not have {stage} and {others} with {where}")
    return found


def decode_ms(stage, **where):
    """The median time of a decode, with 32 heads of queries and 8 of keys and D = 128 unless it says otherwise."""
    usual = {"heads": 32, "kv_heads": 8, "head_dim": 128, "queries": 1, "page": 0, "lengths": "full"}
    return values(DECODE, "median_ms", stage=stage, **usual | where)[0]


def decode_ratio(stage, others, **where):
    """How many times as fast a stage decodes as others: one number for each problem that all of them do."""
    return ratio(stage, others, path=DECODE, column="gb_per_s", **where)


def decode_lead(**where):
    """How many times as fast the fastest stage decodes bf16 as the fastest of all others: a number for each problem."""
    keys = ("batch", "heads", "kv_heads", "head_dim", "keys", "queries", "page", "lengths")
    best = {}
    for row in recording(DECODE):
        if matches(row, {"cache": "bf16", **where}):
            of_problem = best.setdefault(tuple(row[key] for key in keys), {True: 0, False: 0})
            ours = row["stage"][0].isdigit()
            of_problem[ours] = max(of_problem[ours], float(row["gb_per_s"]))
    return [speed[True] / speed[False] for speed in best.values()]


def tuned(run, kernel, other="cuDNN", **where):
    """How many times as fast one kernel of the summit's log was as another one of the same run."""
    return ratio(kernel, other, path=TUNING, **{"run": run, "input": "normal", **where})


def tuned_e4m3(run, kernel, other="FlashAttention-3 FP8", **where):
    """The same for the log of eight bits."""
    return ratio(kernel, other, **{"path": TUNING_E4M3, "run": run, "input": "normal", **where})


def counted(number, metric, **where):
    """What Nsight Compute counted for a stage: counted("10", "sm__...")."""
    return values(f"plots/data/ncu/stage-{number}.csv", "value", metric=metric, **where)


def durations(number, phase, **where):
    """How long the phases of a stage's timeline took, in ns."""
    rows = recording(f"plots/data/trace/stage-{number}.csv.gz")
    return [float(row["end_ns"]) - float(row["start_ns"]) for row in rows if matches(row, {"phase": phase, **where})]


def emulated(stage, column, **where):
    """What the emulator counted: plots/data/counters.csv."""
    return values("plots/data/counters.csv", column, stage=stage, **where)


def machine(quantity, measure="latency", column="value"):
    """What ./baseline-machine measured: one number."""
    return values("plots/data/machine/nvidia-h200.csv", column, quantity=quantity, measure=measure)[0]


def in_suite(suite, **where):
    """What was found in the programs of a suite by others: all findings, by program. tests/suites/results.csv.gz."""
    found = {}
    for row in recording("tests/suites/results.csv.gz"):
        if row["suite"] == suite and matches(row, {key: value for key, value in where.items() if key != "input"}) and \
                row["input"].startswith(where.get("input", "")):
            found.setdefault(row["program"], []).append(row["found"])
    return found


def programs(suite, **where):
    """How many programs of a suite there are, with columns of the recording."""
    return len(in_suite(suite, **where))


def reported(suite, word, **where):
    """In how many of them a report has a word, with some input or with one that begins so: input="DAG_5n"."""
    return sum(any(word in one for one in found) for found in in_suite(suite, **where).values())


def quiet(suite, **where):
    """In how many of them nothing is reported, with any input."""
    return sum(set(found) == {"none"} for found in in_suite(suite, **where).values())


def cost(suite, column):
    """What a suite costs, in seconds of a core."""
    return values("tests/suites/costs.csv", column, suite=suite)[0]


EXPRESSIONS = {name: globals()[name] for name in (
    "values", "sanitized", "tflops", "clock", "times", "ratio", "decode_ms", "decode_ratio", "decode_lead", "tuned", "tuned_e4m3", "counted", "durations", "emulated", "machine",
    "programs", "reported", "quiet", "cost")} | {
        name: getattr(counting, name) for name in ("counts", "near", "executed", "registers")} | {
        "mean": statistics.geometric_mean, "median": statistics.median, "average": statistics.mean,
        "exp": math.exp, "log": math.log, "min": min, "max": max, "len": len, "sum": sum, "round": round}


# ---- tables ----


def marked_tables(text):
    """(mark, text of the mark, rows as lists of cells) of each table below <!-- MARK: TEXT -->."""
    pattern = r"<!-- (\w+): (.*) -->\n((?:\|.*\n)+)"
    for mark, text, table in re.findall(pattern, text):
        yield mark, text, [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def printed_blocks(text):
    """(command, lines) of each block below <!-- printed: COMMAND -->. Which block of a grid a report names may change."""
    for command, block in re.findall(r"<!-- printed: (.*) -->\n\n((?:    .*\n|\n)+)", text):
        yield command, [" ".join(re.split(r"\.\.\.| block \(", line)[0].split()) for line in block.splitlines() if line.strip()]


# What headings say of the columns of a recording, and which column a table shows; "ms" is in "TFLOPS" and stands last.
CONDITIONS = {"S = ": "seqlen", "D = ": "head_dim", "N = ": "n", "K = ": "k", r"(?<!of )keys = ": "keys", "B = ": "batch",
              "heads of queries = ": "heads", "heads of keys = ": "kv_heads", "warpgroups = ": "warpgroups", "window = ": "window",
              r"(?<!of )queries = ": "queries", "pages of ": "page", "page = ": "page", "blocks = ": "splits",
              "bytes = ": "bytes"}
QUANTITIES = {"cuBLAS TFLOPS": "cublas_tflops", "TFLOPS": "tflops", "clocks": "clocks", "MHz": "mhz",
              "% of the read rate": "percent_of_read", "read GB/s": "read_gb_per_s", "GB/s": "gb_per_s", "ms": "median_ms"}
# A recording of the machine has one value a row, and its spread; a row is found by what was measured, and its unit.
VALUES = ("least", "greatest", "value")
WORDS = ("what it holds", "seen by", "met in")  # columns of a table that no recording has


def is_usual(row, headings):
    """Whether a decode problem is as usual in what its headings do not say."""
    usual = {"lengths": "ragged" if "ragged" in re.sub("13d[ -]ragged", "", headings) else "full"}
    for column, words in ("queries", r"(?<!of )queries = "), ("page", "pages of |page = "):
        if not re.search(words, headings):
            usual[column] = "1" if column == "queries" else "0"
    return all(row.get(column, value) == value for column, value in usual.items())


def agrees(row, headings):
    """Whether a row of a recording has what a cell's headings say."""
    for words, column in CONDITIONS.items():
        number = re.search(words + r"(\d+)", headings)
        if number and row.get(column) != number[1]:
            return False
    if not is_usual(row, headings):
        return False
    sustained = "back to back" in headings or "sustained" in headings
    source = re.search(r"\bA (\w+)", headings)  # where wgmma's A comes from
    return (row.get("causal", "0") == str(int("causal" in headings)) and
            row.get("mode", "cold") == ("sustained" if sustained else "cold") and
            row.get("measure", "") in headings and row.get("unit", "") in headings and
            (not source or row.get("a", source[1]) == source[1]))


def recorded(path, name, headings):
    """The one recorded number that a cell's headings name; None where a machine's recording has none."""
    column = "quantity" if "quantity" in recording(path)[0] else "stage"
    rows = [row for row in recording(path) if row[column] == name and agrees(row, headings)]
    if not rows and "measure" in recording(path)[0]:
        return None
    if len(rows) != 1:
        raise AssertionError(f"{path} has {len(rows)} rows for '{name}' and '{headings}'")
    if "value" in rows[0]:
        return float(rows[0][next((column for column in VALUES if column in headings), "value")])
    return float(rows[0][next(column for words, column in QUANTITIES.items() if words in headings)])


def name_of(cell):
    """A row's name in the recording: "[03 cp-async](...), D = 64" is 03-cp-async."""
    name = re.split(r"[\],]", cell.lstrip("["))[0]
    return re.sub(r"^(\d\d[a-z]?) ", r"\1-", name)


def cell(path, name, head, column, like):
    """What a cell must show: the recorded number with as many decimals as `like`, or words as they are."""
    if column in WORDS:
        return like
    number = recorded(path, name_of(name), f"{name} | {head} | {column}")
    return "" if number is None else shown(number, like)


def mean_of_run(path, other, run, kernel, column, like):
    """How many times as fast as another a kernel was in a run, in the mean over a column's head dimension."""
    head_dim = column.removeprefix("D = ")
    return shown(statistics.geometric_mean(tuned_e4m3(run, kernel.strip("`"), other, path=path, D=head_dim)), like)


def right_row(mark, text, heads, row):
    """What a row must be, of a table below <!-- recorded: FILE --> or <!-- means: FILE over STAGE -->."""
    if mark == "means":
        path, _, other = text.partition(" over ")
        run, kernel, _, *cells = row
        return row[:3] + [mean_of_run(path, other, run, kernel, column, like) for column, like in zip(heads[3:], cells)]
    name, *cells = row
    return [name] + [cell(text, name, heads[0], column, like) for column, like in zip(heads[1:], cells)]


# ---- prose ----

def paragraphs(text):
    """(prose, [(words, expression)]) of each paragraph, item or table: code and headings are left out."""
    text = re.sub(r"^```.*?^```$|^<!-- tables: begin -->$.*?^<!-- tables: end -->$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.split("\n") if not re.match(r"(    |#)", line) or "<!--" in line]
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:\d+\.|-) )", "\n".join(lines)):
        comments = [(" ".join(words.split()), " ".join(expression.split())) for words, expression in COMMENT.findall(block)]
        prose = " ".join(re.sub(r"<!--.*?-->|`[^`]*`", "", block, flags=re.DOTALL).split())
        yield prose, comments


def shown(value, like):
    """A number as the page has it: with as many decimals as `like`, and its commas."""
    decimals = len(like.partition(".")[2])
    return f"{value:,.{decimals}f}" if "," in like else f"{value:.{decimals}f}"


def corrected(words, expression):
    """The words with the numbers that the expression has. The 3 of FlashAttention-3 is part of a name."""
    numbers = [match for match in re.finditer(r"\b[SDN] = \d+|(?<![A-Za-z])(?<![A-Za-z]-)\d+(?:,\d{3})*(?:\.\d+)?", words)
               if match[0][0].isdigit()]
    result = eval(expression, {"__builtins__": {}}, EXPRESSIONS)  # pylint: disable=eval-used  # our own pages
    if isinstance(result, list):
        result = sorted(result)
        result = [result[0], result[-1]] if len(numbers) == 2 else result
    expected = result if isinstance(result, (list, tuple)) else [result]
    if len(expected) != len(numbers):
        raise ValueError(f"{words}: {len(numbers)} numbers, but {expression} has {len(expected)} values")
    for match, value in reversed(list(zip(numbers, expected))):
        words = words[:match.start()] + shown(value, match[0]) + words[match.end():]
    return words


def disagreement(words, expression):
    """What is wrong with one comment: None, or a line."""
    right = corrected(words, expression)
    return None if right == words else f"{words}: it is {right}"


def unfounded(prose, comments, known=""):
    """The figures of a paragraph for which no comment stands, and the counts that no known text has either."""
    if any(words in MARKS for words, _ in comments):
        return []
    covered = " ".join(words for words, _ in comments)
    return [figure for figure in FIGURE.findall(prose) if not occurs(figure, covered)] + [
        count for count in COUNT.findall(prose) if not occurs(count, f"{covered} {known} {ARCHITECTURE}")]


def occurs(number, text):
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d.,]*\d)", text)


# ---- a page with the numbers of a new recording ----

MARKS = ("recorded", "means", "conflicts", "sourced", "printed", "tables", "watch")  # comments that are no expressions


def update_table(match):
    head, rule, *rows = match[3].splitlines()
    heads, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in (head, *rows))
    lines = [head, rule, *(f"| {' | '.join(right_row(match[1], match[2], heads, row))} |" for row in rows)]
    return f"<!-- {match[1]}: {match[2]} -->\n" + "\n".join(lines) + "\n"


def in_place(words, text):
    """The words with the white space of a text that has as many."""
    spaces = re.findall(r"\s+", text) + [""]
    return "".join(word + space for word, space in zip(words.split(), spaces))


def update(text):
    """A page's text with the numbers that its comments name."""
    text = re.sub(r"<!-- (recorded|means): (.*) -->\n((?:\|.*\n)+)", update_table, text)
    for match in reversed(list(COMMENT.finditer(text))):
        words, expression = (" ".join(part.split()) for part in match.groups())
        right = words if words in MARKS else corrected(words, expression)
        if right != words:
            start = max(text.rfind(end, 0, match.start()) + 1 for end in ("\n\n", "\n1. ", "\n- "))
            pattern = r"\s+".join(map(re.escape, words.split()))
            block = re.sub(pattern, lambda found: in_place(right, found[0]), text[start:match.start()], count=1)
            text = text[:start] + block + match[0].replace(match[1], right, 1) + text[match.end():]
    return text


def main(pages):
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        new = update(text)
        if new != text:
            with open(page, "w", encoding="utf-8") as file:
                file.write(new)
            print(f"{page}: new numbers")


if __name__ == "__main__":
    main(sys.argv[1:])
