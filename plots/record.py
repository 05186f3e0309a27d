#!/usr/bin/env python3
"""Makes plots/data/DEVICE.csv, the times that the lessons, the plots and the programs show, when peers.py has timed
everything (`make peers`):

    python3 plots/record.py plots/data/nvidia-h200-peers.csv ./baseline-cublas

It has the rows of DEVICE-peers.csv with a cold L2 cache, one contender after another, and those of the baselines, whose
programs run here on the same problems. A name without new rows, as when no baseline is given, keeps those it had.
"""
import csv
import os
import subprocess
import sys

PROBLEM = ("batch", "heads", "seqlen", "head_dim", "causal")
LEFT_OUT = "math"  # attention that is not fused: the baseline on cuBLAS stands for it


class Unusable(Exception):
    """A file that record.py cannot use; the text says why, in one line."""


def read(path):
    """The columns and the rows of a CSV, each row as {column: field}."""
    try:
        with open(path, encoding="ascii", newline="") as file:
            reader = csv.DictReader(file)
            return list(reader.fieldnames or []), list(reader)
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path}: {getattr(error, 'strerror', None) or 'it is no CSV'}") from error


def read_peers(path):
    """The columns of DEVICE.csv, which are those up to the mode and the clock that ran, and the rows for it."""
    columns, rows = read(path)
    for column in "stage", *PROBLEM, "mode":
        if column not in columns:
            raise Unusable(f"{path}: it has no column {column}; peers.py --record writes such a file")
    kept = columns[:columns.index("mode")] + ["clock_mhz"] * ("clock_mhz" in columns)
    return kept, [row for row in rows if row["mode"] == "cold" and row["stage"] != LEFT_OUT]


def baseline_rows(program, problems):
    """A program's own rows, one for each problem; none, with a line that says why, where it does not run."""
    rows = []
    for problem in problems:
        options = [f"--{name.replace('_', '-')}={value}" for name, value in zip(PROBLEM, problem) if name != "causal"]
        options += ["--causal"] if problem[-1] == "1" else []
        command = [program, "--device=gpu", *options, "--csv=-"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            done = subprocess.CompletedProcess(command, 1, "", error.strerror)
        found = list(csv.DictReader(done.stdout.splitlines()))
        if done.returncode or len(found) != 1 or not {"stage", "tflops", *PROBLEM} <= set(found[0]):
            print(f"{program} is left out: {(done.stderr.splitlines() or ['it writes no times'])[-1]}", file=sys.stderr)
            return []
        rows += found
    return rows


def write(path, columns, rows):
    """Writes a CSV beside its name, which it takes when it is whole: nothing is lost when that is interrupted."""
    try:
        with open(path + ".partial", "w", encoding="ascii", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        os.replace(path + ".partial", path)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from error


def record(peers, programs):
    """Writes DEVICE.csv beside DEVICE-peers.csv."""
    columns, rows = read_peers(peers)
    problems = dict.fromkeys(tuple(row[name] for name in PROBLEM) for row in rows)
    for program in programs:
        rows += baseline_rows(program, problems)
    path = peers.replace("-peers.csv", ".csv")
    fresh = {row["stage"] for row in rows}
    kept = [row for row in read(path)[1] if row["stage"] not in fresh] if os.path.exists(path) else []
    rows += kept
    names = list(dict.fromkeys(row["stage"] for row in rows))
    write(path, columns, sorted(rows, key=lambda row: names.index(row["stage"])))
    if kept:
        print(f"as they were: {', '.join(dict.fromkeys(row['stage'] for row in kept))}", file=sys.stderr)
    print(f"recorded {path}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].endswith("-peers.csv"):
        print("record.py: usage: python3 plots/record.py plots/data/DEVICE-peers.csv [PROGRAM...]", file=sys.stderr)
        sys.exit(2)
    try:
        record(sys.argv[1], sys.argv[2:])
    except Unusable as why:
        print(f"record.py: {why}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("record.py: stopped; what was recorded before is as it was", file=sys.stderr)
        sys.exit(130)
