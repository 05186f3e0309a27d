"""The pages of tasks and mistakes, made of the patches in a stage's folder: try-3.html and break-5.html.

A page of a task shows the files with the hole, the hints folded, and the command that judges it; the stage's own lines
are folded last. A page of a mistake shows what changes, and folded what happens.
"""
import functools
import html
import os
import re
import sys

import listing
from pygments.lexers import CudaLexer
from tree import Broken, number_of, read

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "course"))
# pylint: disable=wrong-import-position
from change import changes

AROUND = 8  # lines of context of a hole


def edits(path, patch):
    """What a patch does to a file: (line, how many lines go there, the lines that come), from the top, counted from 0.
    As with git, a hunk may have moved."""
    old, place, found = read(path).split("\n"), 0, []
    for start, text in re.findall(r"^@@ -(\d+)[^@]*@@[^\n]*\n((?:[-+ ][^\n]*\n|\n)+)", patch, re.MULTILINE):
        lines = text.split("\n")[:-1]
        before = [line[1:] for line in lines if line[:1] != "+"]
        spots = [spot for spot in range(place, len(old)) if old[spot:spot + len(before)] == before]
        if not spots:
            raise Broken(f"{path} has no such lines any more as a patch of it changes at line {start}")
        place = min(spots, key=lambda spot, start=int(start): abs(spot + 1 - start))
        gone, new = 0, []
        for line in lines + [" "]:
            if line[:1] == "-":
                gone += 1
            elif line[:1] == "+":
                new.append(line[1:])
            else:
                found += [(place, gone, new)] if gone or new else []
                place, gone, new = place + gone + 1, 0, []
        place -= 1  # of the line that was added here
    return found


def patched(path, patch):
    """The lines of a file after a patch, and the numbers of those that are new. Where lines are only gone, the next one
    counts as new."""
    old = read(path).split("\n")
    new, changed, place = [], set(), 0
    for spot, gone, come in edits(path, patch):
        new += old[place:spot]
        changed.update(range(len(new) + 1, len(new) + max(1, len(come)) + 1))
        new += come
        place = spot + gone
    return new + old[place:], changed


def parts_of(change):
    """(path, patch) of each file that a change touches."""
    for part in re.split(r"^(?=diff --git )", change.patch, flags=re.MULTILINE)[1:]:
        yield re.search(r"^\+\+\+ b/(.*)$", part, re.MULTILINE)[1], part


def holes(change):
    """Each file of a task as the learner gets it: the lines around the holes, with those of the hole marked."""
    for path, part in parts_of(change):
        lines, changed = patched(path, part)
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


def difference(change):
    """The lines that a patch changes, + and -."""
    rows = []
    for line in change.shown():
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


def task_page(stage, change):
    """The body of a task's page."""
    name = f"{number_of(stage)}-{change.key}"
    goals = "".join(f"<li>{html.escape(goal)}</li>" for goal in change.all("Goal"))
    hints = "".join(folded(f"Hint {place}", f"<p>{inline(hint)}</p>")
                    for place, hint in enumerate(change.all("Hint"), 1))
    shown = "".join(f'<h2 id="{os.path.basename(path)}">{html.escape(path)}</h2>{text}' for path, text in holes(change))
    return (f"<h1>Task {name}: {inline(change.title)}</h1>\n"
            f"<p>At home this command begins the task, and judges what you wrote when you type it again:</p>\n"
            f"{command(f'make try-{name}')}\n"
            f"{f'<p>Right numbers are not enough here. The judge also looks at:</p><ul>{goals}</ul>' if goals else ''}"
            f"{shown}\n<h2 id=\"help\">Help</h2>\n{hints}\n"
            f"{folded('The lines of the stage: the solution', difference(change))}")


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
        body.append(f"{head}{difference(part)}{folded('What happens', '<dl>' + ''.join(rows) + '</dl>')}")
    return "\n".join(body)


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
