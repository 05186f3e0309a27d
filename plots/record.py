#!/usr/bin/env python3
"""Makes plots/data/DEVICE.csv, the times that the lessons, the plots and the programs show, when peers.py has timed
everything (`make peers`):

    python3 plots/record.py plots/data/nvidia-h200-peers.csv ./baseline-cublas

It has the rows of DEVICE-peers.csv with a cold L2 cache, one contender after another, and those of the baselines, whose
programs run here on the same problems. A name without new rows, as when no baseline is given, keeps those it had.
"""
import os
import subprocess
import sys

PROBLEM = ("batch", "heads", "seqlen", "head_dim", "causal")
LEFT_OUT = "math"  # attention that is not fused: the baseline on cuBLAS stands for it


def read(path):
    """The header and the rows of a CSV, as lists of fields."""
    with open(path, encoding="ascii") as file:
        lines = [line.rstrip("\n").split(",") for line in file]
    return lines[0], lines[1:]


def cold_rows(header, rows):
    mode = header.index("mode")
    return [row[:mode] for row in rows if row[mode] == "cold" and row[0] != LEFT_OUT]


def baseline_rows(program, header, problems):
    """A program's own rows, one for each problem; none, with a line that says why, where it does not run."""
    rows = []
    for problem in problems:
        options = [f"--{name.replace('_', '-')}={value}" for name, value in zip(PROBLEM, problem) if name != "causal"]
        options += ["--causal"] if problem[-1] == "1" else []
        command = [program, "--device=gpu", *options, "--csv=-"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode or len(lines) != 2 or lines[0] != ",".join(header):
            print(f"{program} is left out: {(done.stderr.splitlines() or ['it writes no times'])[-1]}", file=sys.stderr)
            return []
        rows.append(lines[1].split(","))
    return rows


def record(peers, programs):
    """Writes DEVICE.csv beside DEVICE-peers.csv."""
    header, rows = read(peers)
    header, rows = header[:header.index("mode")], cold_rows(header, rows)
    first, last = header.index(PROBLEM[0]), header.index(PROBLEM[-1])
    problems = dict.fromkeys(tuple(row[first:last + 1]) for row in rows)
    for program in programs:
        rows += baseline_rows(program, header, problems)
    path = peers.replace("-peers.csv", ".csv")
    fresh = {row[0] for row in rows}
    kept = [row for row in read(path)[1] if row[0] not in fresh] if os.path.exists(path) else []
    rows += kept
    names = list(dict.fromkeys(row[0] for row in rows))
    with open(path, "w", encoding="ascii") as file:
        for row in [header, *sorted(rows, key=lambda row: names.index(row[0]))]:
            print(",".join(row), file=file)
    if kept:
        print(f"as they were: {', '.join(dict.fromkeys(row[0] for row in kept))}", file=sys.stderr)
    print(f"recorded {path}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].endswith("-peers.csv"):
        print("record.py: usage: python3 plots/record.py plots/data/DEVICE-peers.csv [PROGRAM...]", file=sys.stderr)
        sys.exit(2)
    record(sys.argv[1], sys.argv[2:])
