"""What the bench beside a lesson has: bench.json in the stage's folder, and the bench itself, bench.html.

    stage, fields   the stage's number; the options for which there is a field, with what they are without being set
    files           the files whose lines may be shown
    mistakes: [{key, title, runs, edits, refused, variant, needs, prints}]
        runs        [options, [what the report must show, ...]] of each run that the lesson asks for
        edits       {path: [[line, how many lines go, [the lines that come, as HTML]], ...]}
        refused     what nvcc says, where it does not compile
        variant     the key once more, where the host's code changes: it is compiled into the emulator's module
        needs       why it cannot run here, after "Mistake 2": the harness changes, or ptxas is what is asked
        prints      what it prints at home, then
"""
import functools
import html
import os
import re

import listing
from break_ptx import concerns_host, has_variant
from change import edits, patched
from tree import files_of, headers_of, number_of, read

HERE = os.path.dirname(__file__)
PTX = "build/book-ptx"
WEB = "build/web"
WORKER = ("worker.js", "run.js", "stages.js", "stages.wasm")
INPUTS = ("normal", "ones", "arange", "large", "identity", "waves", "cliff", "outliers", "mean", "negative")

HEAD_DIM, CAUSAL = ["head-dim", [64, 128]], ["causal", False]
# By the word with which stage.c says what the stage computes: its options and their values. A list has those to choose from.
FIELDS = {".decode =": [["keys", 400], ["heads", 8], ["kv-heads", 2], HEAD_DIM],
          ".gemm =": [["m", 384], ["n", 512], ["k", 192]],
          ".windowed =": [["seqlen", 300]],
          ".launch =": [["seqlen", 128], HEAD_DIM, CAUSAL]}
EVERYWHERE = [["input", list(INPUTS)], ["schedule", 0]]


@functools.cache
def is_there(stage):
    """Whether the emulator and the stage's kernel have been made for the browser: make book-runs."""
    needed = [f"{PTX}/{number_of(stage)}.ptx.gz", *(f"{WEB}/{name}" for name in WORKER)]
    return all(os.path.exists(path) for path in needed)


def fields_of(stage):
    """The options of a stage for which the bench has a field."""
    code = read(f"stages/{stage}/stage.c")
    fields = next((fields + EVERYWHERE for word, fields in FIELDS.items() if word in code), [])
    return [field for field in fields if field is not HEAD_DIM or not re.search(r"\.head_dim = \d", code)]


def edits_of(change):
    """The edits of a mistake, with the new lines as HTML."""
    found = {}
    for path, patch in change.parts():
        coloured = listing.coloured("\n".join(patched(path, patch)[0]), listing.lexer_of(path))
        found[path], moved = [], 0
        for line, gone, come in edits(path, patch):
            found[path].append([line, gone, coloured[line + moved:line + moved + len(come)]])
            moved += len(come) - gone
    return found


def runs_of(change):
    """The runs of a mistake, and what each must show."""
    runs, is_run = [], False
    for field, words in change.fields:
        if field == "Run":
            runs.append([words, []])
            is_run = True
        elif field == "Shows" and is_run:
            runs[-1][1].append(words)
        else:
            is_run = False  # what ptxas says: a browser cannot ask it
    return runs


def why_not(change):
    """Why a mistake cannot run in the page."""
    if any(path.startswith("common/harness/") for path in change.files):
        return "changes the harness, and the page has only one."
    return "shows in what ptxas reports, and there is no ptxas in a browser."


def mistake(change):
    """What the bench knows of a mistake."""
    name = f"{number_of(change.stage)}-{change.key}"
    refused = read(f"{PTX}/{name}.txt") if os.path.exists(f"{PTX}/{name}.txt") else None
    variant = change.key if has_variant(change) else None
    can_run = os.path.exists(f"{PTX}/{name}.ptx.gz") and runs_of(change) and (variant or not concerns_host(change))
    needs = None if can_run or refused else why_not(change)
    return {"key": change.key, "title": change.title, "runs": runs_of(change), "edits": edits_of(change),
            "refused": refused, "variant": variant, "needs": needs, "prints": change.all("Shows") if needs else []}


def data_of(stage, mistakes):
    """bench.json of a stage."""
    files = files_of(stage) + [path for path in headers_of(stage) if path.startswith(("common/ptx/", "stages/"))]
    return {"stage": number_of(stage), "fields": fields_of(stage), "files": files,
            "mistakes": [mistake(change) for change in mistakes]}


def kernels_of(data):
    """The files with the PTX of a stage and of its mistakes; `data` is its bench.json."""
    keys = [one["key"] for one in data["mistakes"] if not one["needs"] and not one["refused"]]
    return [f"{PTX}/{name}.ptx.gz" for name in (data["stage"], *(f"{data['stage']}-{key}" for key in keys))]


def frame(stage):
    """The bench of a lesson's page, empty."""
    return read(os.path.join(HERE, "bench.html")).replace("$stage", html.escape(number_of(stage)))
