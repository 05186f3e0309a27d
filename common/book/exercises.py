"""The pages of tasks and mistakes, made of the patches in a stage's folder: try-3.html and break-5.html.

A page of a task shows the files with their holes, the hints folded, and the command that judges it; the stage's own
lines are folded last. A page of a mistake shows what changes, and folded what happens.
"""
import functools
import html
import os
import re
import sys

import listing
from pygments.lexers import CudaLexer
from tree import number_of, read

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "course"))
# pylint: disable=wrong-import-position
import holes
from change import changes, goal_parts

AROUND = 8  # lines of context of a hole


def with_holes(change):
    """Each file of a task as the learner gets it: the lines around the holes, with those of the hole marked."""
    for path in change.files:
        lines, places = holes.with_holes(path, holes.holes_of(change.stage, path, change.key))
        # Where lines are only gone, the next one counts as new.
        changed = {number for hole in places if hole.task == int(change.key)
                   for number in range(hole.first + 1, max(hole.first + 1, hole.end) + 1)}
        coloured = listing.coloured("\n".join(lines), CudaLexer)
        near = {number for spot in changed for number in range(spot - AROUND, spot + AROUND + 1)}
        body, last = "", 0
        for number in sorted(near & set(range(1, len(lines)))):
            if number != last + 1:
                body += '<span class="gap">…\n</span>'
            mark = ' class="new"' if number in changed and lines[number - 1].strip() else ""
            body += f'<span{mark} data-n="{number}">{coloured[number - 1]}\n</span>'
            last = number
        yield path, f'<pre class="source"><code>{body}</code></pre>'


def difference(lines):
    """The lines of a patch."""
    rows = []
    for line in lines:
        kind = {"+": "new", "-": "gone", "@": "gap"}.get(line[:1], "") if not line.startswith("+++") else "gap"
        rows.append(f'<span{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{html.escape(line)}\n</span>')
    return f'<pre class="difference"><code>{"".join(rows)}</code></pre>'


def folded(summary, body):
    """A block that the reader unfolds."""
    return f"<details><summary>{summary}</summary>\n{body}</details>"


def inline(text):
    """A line of a patch's head: words for a terminal, with backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def command(words):
    """A block with a command to type."""
    return f"<pre><code>{html.escape(words)}</code></pre>"


def goal_in_words(goal):
    """A goal as a reader has it."""
    words, counter, sign, percent, limit, options = goal_parts(goal)
    relation = {"<=": "at most", ">=": "at least", "=": "exactly"}[sign]
    whole = f"{percent} % of the stage's" if percent else "as many as the stage's"
    much = whole if limit == "stage" else f"{int(limit):,}"
    where = f", with <code>{html.escape(options)}</code>" if options else ""
    return f"{html.escape(words)}: {relation} {much}{where} (<code>{html.escape(counter)}</code>)"


def task_page(stage, change):
    """The body of a task's page."""
    name = f"{number_of(stage)}-{change.key}"
    goals = "".join(f"<li>{goal_in_words(goal)}</li>" for goal in change.all("Goal"))
    hints = "".join(folded(f"Hint {place}", f"<p>{inline(hint)}</p>")
                    for place, hint in enumerate(change.all("Hint"), 1))
    solution = [line.rstrip("\n") for path in change.files for line in holes.solution(change, path, path)
                if not line.startswith("--- ")]
    shown = "".join(f'<h2 id="{os.path.basename(path)}">{html.escape(path)}</h2>{text}'
                    for path, text in with_holes(change))
    return (f"<h1>Task {name}: {inline(change.title)}</h1>\n"
            f"<p>Find the lines that the marked place needs. A browser cannot compile them: write them down, and compare "
            f"them with the solution below. At home this command begins the task, and judges what you wrote when you "
            f"type it again:</p>\n{command(f'make try-{name}')}\n"
            f"{f'<p>Right numbers are not enough here. The judge also looks at:</p><ul>{goals}</ul>' if goals else ''}"
            f"{shown}\n<h2 id=\"help\">Help</h2>\n{hints}\n"
            f"{folded('The lines of the stage: the solution', difference(solution))}")


def mistake_page(stage, number, parts, can_run):
    """The body of the page of a mistake, and of its parts. Where the lesson has a bench, it can run there."""
    name = f"{number_of(stage)}-{number}"
    there = f' <a href="index.html#run&amp;guess={number}">Run it beside the lesson.</a>' if can_run else ""
    body = [f"<h1>Mistake {name}: {inline(parts[0].title)}</h1>\n<p>Guess what happens before you look.{there}</p>\n",
            command(f"make break-{name}")]
    for part in parts:
        head = f'<h2 id="part-{part.key}">{inline(part.title)}</h2>' if part is not parts[0] else ""
        names = {"Run": "Run with", "Shows": "Shows"}
        rows = [f"<dt>{names[field]}</dt><dd><code>{html.escape(words or 'no options')}</code></dd>"
                for field, words in part.fields if field in names]
        body.append(f"{head}{difference(part.shown())}{folded('What happens', '<dl>' + ''.join(rows) + '</dl>')}")
    return "\n".join(body)


def end_of_case(folder):
    """What a page about a case has after the report: the command, and folded what was wrong."""
    number = os.path.basename(folder)[:2]
    text, patch = re.split(r"^(?=diff --git )", read(f"{folder}/mended.patch"), maxsplit=1, flags=re.MULTILINE)
    title, *cause = text.strip().split("\n\n")
    lines = [line for line in patch.splitlines() if not re.match(r"diff --git |--- |\+\+\+ ", line)]
    words = "".join(f"<p>{inline(' '.join(part.split()))}</p>\n" for part in cause)
    repair = folded("Our repair", f"<p>{inline(title)}.</p>\n{words}{difference(lines)}")
    return ("<p>At home this command shows what it does, and judges your repair when you type it again:</p>\n"
            f"{command(f'make case-{number}')}\n{repair}")


@functools.cache
def exercises(stage):
    """(file name, kind, number, changes) of each task and each mistake of a stage."""
    found = []
    for kind, folder in (("try", "tasks"), ("break", "breaks")):
        groups = {}
        for change in changes(stage, folder):
            groups.setdefault(re.match(r"\d+", change.key)[0], []).append(change)
        found += [(f"{kind}-{number}.html", kind, number, parts) for number, parts in groups.items()]
    return found
