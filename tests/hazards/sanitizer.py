#!/usr/bin/env python3
"""Records on a GPU which kernels of this folder compute-sanitizer's tools see something in:

    python3 tests/hazards/sanitizer.py [SECONDS] | gzip -9n >tests/hazards/sanitizer-h100.csv.gz

One line for each kernel with a fault and each tool: "seen" is 1 if the tool reports anything, also if it is something
else; "ended" is 0 if it was still running after 12 seconds. The kernels come in a random order, so that those of the
first SECONDS are a sample of all.
"""
import csv
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ("racecheck", "memcheck", "synccheck", "initcheck")
NVCC = ["nvcc", "-lineinfo", "-w", "-gencode", "arch=compute_90a,code=sm_90a", "-I", HERE]


def own(script, *arguments):
    return subprocess.run([sys.executable, os.path.join(HERE, script), *arguments], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def build(file, folder):
    """A program of the kernels of one file. ptxas refuses setmaxnreg.cu: its mistakes are left out."""
    program = os.path.join(folder, f"program_{file[:-3]}")
    with open(f"{program}.cu", "w", encoding="utf-8") as out:
        out.write(own("program.py", file))
    subprocess.run([*NVCC, f"{program}.cu", "-o", program, "-lcuda"], stderr=subprocess.DEVNULL, check=False)
    return program


def look(program, kernel, tool):
    """(seen, ended) of one tool."""
    options = ["--check-warpgroup-mma", "yes"] if tool in ("memcheck", "synccheck") else []
    command = ["timeout", "-s", "KILL", "12", "compute-sanitizer", "--tool", tool, *options, program, kernel]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace", check=False).stdout
    found = re.findall(r"SUMMARY: (\d+) ", text)
    return int(bool(found and int(found[-1]))), int(bool(found))


def main(seconds):
    end = time.time() + seconds
    rows = [row for row in csv.DictReader(own("index.py").splitlines()) if row["grade"] == "fault"]
    random.Random(1).shuffle(rows)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["file", "kernel", "kind", "tool", "seen", "ended"])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        files = sorted({row["file"] for row in rows})
        programs = dict(zip(files, pool.map(lambda file: build(file, folder), files)))

        def all_tools(row):
            program = programs[row["file"]]
            if not os.path.exists(program) or time.time() > end:
                return row, []
            return row, [look(program, row["kernel"], tool) for tool in TOOLS]
        for row, results in pool.map(all_tools, rows):
            for tool, result in zip(TOOLS, results):
                writer.writerow([row["file"], row["kernel"], row["kind"], tool, *result])


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3600)
