#!/usr/bin/env python3
"""An index of the kernels of this folder, as CSV: what must be reported of each, at which line, and how it is launched.

    python3 tests/hazards/index.py                  every kernel; one that is right as it stands has "none" as its kind
    python3 tests/hazards/index.py tma.cu           those of some files

It is made of the comments that kernels.h explains. A kernel with several lines to be reported has a row for each.
"""
import csv
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ["file", "kernel", "kind", "grade", "line", "other_lines", "launch"]


def markers(lines, role, kernel):
    """(number of the line, text) of the comments HAZARD(kernel), OTHER(kernel) or ALSO(kernel)."""
    for number, line in enumerate(lines, 1):
        for text in re.findall(rf"// .*?{role}\({kernel}\)(?:: ([^,]*))?", line):
            yield number, text.strip()


def rows(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for line in lines:
        launch = re.match(r"// launch (\w+): (.*)", line)
        if not launch:
            continue
        kernel = launch.group(1)
        others = " ".join(str(number) for number, _ in markers(lines, "OTHER", kernel))
        found = list(markers(lines, "HAZARD", kernel)) or [("", "none")]
        for number, text in found:
            grade, kind = re.match(r"(?:(formal|note) )?(.*)", text).groups()
            grade = "" if kind == "none" else grade or "fault"
            yield dict(zip(COLUMNS, (os.path.basename(path), kernel, kind, grade, number, others, launch.group(2))))


def main(files):
    files = files or sorted(name for name in os.listdir(HERE) if name.endswith(".cu"))
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for name in files:
        writer.writerows(rows(os.path.join(HERE, os.path.basename(name))))


if __name__ == "__main__":
    main(sys.argv[1:])
