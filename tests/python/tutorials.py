#!/usr/bin/env python3
"""Runs Triton's and Gluon's tutorials on hopper-run, as they are but for their sizes: right, and without a fault.

    tutorials.py PYTHON [NAME...]   PYTHON has the packages; without names, all tutorials of tutorials.toml

They come from the commit that tutorials.toml pins, into build/tutorials; nothing of them is kept in this repository.
Where GitHub cannot be reached, MIRROR names another place, as MIRROR='/mirror/{owner}/{name}', and TUTORIALS a folder
that has the tutorials of any version: python/tutorials in a checkout of Triton.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "others"))
from programs import ROOT, edit, fetch, findings  # pylint: disable=wrong-import-position

FOLDER = os.path.join(ROOT, "build", "tutorials")
SECONDS = 1800


def run(python, tutorial, folder):
    """The exit code, and what the tutorial has printed on both streams."""
    command = [os.path.join(ROOT, "hopper-run"), python, *tutorial.get("command", [])]
    command += [os.path.basename(tutorial["file"]), *tutorial.get("arguments", [])]
    environment = {**os.environ, "MPLBACKEND": "agg", **tutorial.get("variables", {})}
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as stopped:
        return None, (stopped.stdout or b"").decode(errors="replace")
    return result.returncode, result.stdout


def judge(python, tutorial, folder):
    """What is wrong with a tutorial's run: a text, or None."""
    code, text = run(python, tutorial, folder)
    number = len(re.findall(tutorial["says"], text))
    if code == 0 and number == tutorial.get("times", 1) and not findings(text)["fault"]:
        if "not" not in tutorial or not re.search(tutorial["not"], text):
            return None
    return f"exit code {code}, and {tutorial['says']!r} {number} times:\n{text}"


def main():
    """Runs all, and returns 1 if one fails."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(os.path.join(HERE, "tutorials.toml"), "rb") as file:
        plan = tomllib.load(file)
    sources = os.environ.get("TUTORIALS") or os.path.join(fetch(plan["repository"], FOLDER), "python", "tutorials")
    failed = False
    for tutorial in plan["tutorial"]:
        name = tutorial.get("name", tutorial["file"])
        if sys.argv[2:] and not any(wanted in name for wanted in sys.argv[2:]):
            continue
        copy = os.path.join(FOLDER, "edited", re.sub(r"\W+", "-", name))
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(os.path.join(sources, os.path.dirname(tutorial["file"])), copy)
        edit(copy, [os.path.basename(tutorial["file"])], tutorial["edits"])
        begin = time.time()
        wrong = judge(os.path.abspath(sys.argv[1]), tutorial, copy)
        failed |= wrong is not None
        print(f"{'failed ' if wrong else 'passed '} {time.time() - begin:5.0f} s  {name}", flush=True)
        print(wrong or "", end="\n" if wrong else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
