"""Figures in prose follow from recordings. Below a paragraph a comment says how, in the expressions of this file:

    This stage is 1.08 to 1.18 times as fast as the rung below.
    <!-- 1.08 to 1.18: ratio("03-cp-async", "02e-fragment-reuse") -->

Left of the colon stand words of the paragraph, right of it an expression. One number must be its value, rounded as the
page has it; of two numbers the first is the least value of a list and the second the greatest. Where a figure follows
from no recording, <!-- sourced: WHERE --> says where it comes from: a data sheet, a paper, arithmetic.
"""
import csv
import functools
import re
import statistics

PEERS = "plots/data/nvidia-h200-peers.csv"
UNIT = r"(?:TFLOPS|[GT]B/s|[MG]Hz|ns|µs|ms|times as (?:fast|long|much time))\b"
FIGURE = re.compile(rf"(\d[\d,]*(?:\.\d+)?)(?=(?: (?:to|and|or|of the) \d[\d,.]*)*\s{UNIT})")
COMMENT = re.compile(r"<!-- (.*?): (.*?) -->", re.DOTALL)


@functools.lru_cache(maxsize=None)
def recording(path):
    with open(path, encoding="ascii") as file:
        return list(csv.DictReader(file))


# ---- expressions ----

def matches(row, where):
    """Conditions are columns of the recording; S and D stand for seqlen and head_dim. A tuple means any of these."""
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


def tflops(stage, **where):
    return values(PEERS, "tflops", stage=stage, **{"mode": "cold", **where})


def clock(stage, **where):
    """The clock that ran, in MHz."""
    return values(PEERS, "clock_mhz", stage=stage, **{"mode": "cold", **where})


def times(stage, **where):
    """Median times in ms."""
    return values(PEERS, "median_ms", stage=stage, **{"mode": "cold", **where})


def ratio(stage, others, path=PEERS, **where):
    """How many times as fast a stage is as another, or as the fastest of several: one number for each problem."""
    others = others if isinstance(others, tuple) else (others,)
    where = {"mode": "cold", **where}
    keys = ("batch", "heads", "seqlen", "head_dim", "causal", *(["input"] if "inputs" in path else []))
    speeds = {}
    for row in recording(path):
        if row["stage"] in (stage, *others) and matches(row, where):
            speeds.setdefault(tuple(row[key] for key in keys), {})[row["stage"]] = float(row["tflops"])
    found = [speed[stage] / max(speed[other] for other in others) for speed in speeds.values()
             if {stage, *others} <= set(speed)]
    if not found:
        raise LookupError(f"{path} does not have {stage} and {others} with {where}")
    return found


def counted(number, metric, **where):
    """What Nsight Compute counted for a stage: counted("10", "sm__...")."""
    return values(f"plots/data/ncu/stage-{number}.csv", "value", metric=metric, **where)


def durations(number, phase, **where):
    """How long the phases of a stage's timeline took, in ns."""
    rows = [row for row in recording(f"plots/data/trace/stage-{number}.csv") if matches(row, {"phase": phase, **where})]
    return [float(row["end_ns"]) - float(row["start_ns"]) for row in rows]


def emulated(stage, column, **where):
    """What the emulator counted: plots/data/counters.csv."""
    return values("plots/data/counters.csv", column, stage=stage, **where)


EXPRESSIONS = {name: globals()[name] for name in (
    "values", "tflops", "clock", "times", "ratio", "counted", "durations", "emulated")} | {
        "mean": statistics.geometric_mean, "median": statistics.median, "average": statistics.mean,
        "min": min, "max": max, "len": len, "sum": sum, "round": round}


# ---- pages ----

def paragraphs(text):
    """(prose, [(words, expression)]) of each paragraph or item: tables, code and headings are left out."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.split("\n") if not re.match(r"(    |\s*\||#)", line) or "<!--" in line]
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:\d+\.|-) )", "\n".join(lines)):
        comments = [(" ".join(words.split()), " ".join(expression.split())) for words, expression in COMMENT.findall(block)]
        prose = " ".join(re.sub(r"<!--.*?-->|`[^`]*`", "", block, flags=re.DOTALL).split())
        yield prose, comments


def shown(value, like):
    """A number as the page has it: with as many decimals as `like`, and its commas."""
    decimals = len(like.partition(".")[2])
    return f"{value:,.{decimals}f}" if "," in like else f"{value:.{decimals}f}"


def disagreement(words, expression):
    """What is wrong with one comment: None, or a line."""
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", re.sub(r"\b[SDN] = \d+", "", words))
    result = eval(expression, {"__builtins__": {}}, EXPRESSIONS)  # pylint: disable=eval-used  # our own pages
    result = sorted(result) if isinstance(result, list) else [result]
    expected = [result[0], result[-1]] if len(numbers) == 2 else result
    if len(expected) != len(numbers):
        return f"{words}: {len(numbers)} numbers, but {expression} has {len(expected)} values"
    right = [shown(value, number) for value, number in zip(expected, numbers)]
    return None if right == numbers else f"{words}: {expression} is {' to '.join(right)}"


def unfounded(prose, comments):
    """The figures of a paragraph for which no comment stands."""
    if any(words == "sourced" for words, _ in comments):
        return []
    covered = " ".join(words for words, _ in comments)
    return [figure for figure in FIGURE.findall(prose) if not re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d.,]*\d)", covered)]
