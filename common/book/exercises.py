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


def patched(path, patch):
    """The lines of a file after a patch, and the numbers of those that are new. What is only gone marks the line after it.
    As with git, a hunk may have moved."""
    old = read(path).split("\n")
    new, changed, place = [], set(), 0
    for start, text in re.findall(r"^@@ -(\d+)[^@]*@@[^\n]*\n((?:[-+ ][^\n]*\n|\n)+)", patch, re.MULTILINE):
        lines = text.split("\n")[:-1]
        before = [line[1:] for line in lines if line[:1] != "+"]
        spots = [spot for spot in range(place, len(old)) if old[spot:spot + len(before)] == before]
        if not spots:
            raise Broken(f"{path} has no such lines any more as a task of it changes at line {start}")
        spot = min(spots, key=lambda spot, start=int(start): abs(spot + 1 - start))
        new += old[place:spot]
        place = spot + len(before)
        for line in lines:
            if line[:1] in "+-" and line:
                changed.add(len(new) + 1)
            if line[:1] != "-":
                new.append(line[1:])
    return new + old[place:], changed


def holes(change):
    """Each file of a task as the learner gets it: the lines around the holes, with those of the hole marked."""
    for part in re.split(r"^(?=diff --git )", change.patch, flags=re.MULTILINE)[1:]:
        path = re.search(r"^\+\+\+ b/(.*)$", part, re.MULTILINE)[1]
        lines, changed = patched(path, part)
        coloured = listing.coloured("\n".join(lines), CudaLexer)
        near = {number for spot in changed for number in range(spot - AROUND, spot + AROUND + 1) if 1 <= number < len(lines)}
        body, last = "", 0
        for number in sorted(near):
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
        rows.append(f'<span class="{kind}">{html.escape(line)}\n</span>' if kind else f"<span>{html.escape(line)}\n</span>")
    return f'<pre class="difference"><code>{"".join(rows)}</code></pre>'


def folded(summary, body):
    return f"<details><summary>{summary}</summary>\n{body}</details>"


def inline(text):
    """A line of a patch's head: words for a terminal, with backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def command(words):
    return f"<pre><code>{html.escape(words)}</code></pre>"


def task_page(stage, change):
    """The body of a task's page."""
    name = f"{number_of(stage)}-{change.key}"
    goals = "".join(f"<li>{html.escape(goal)}</li>" for goal in change.all("Goal"))
    hints = "".join(folded(f"Hint {place}", f"<p>{inline(hint)}</p>") for place, hint in enumerate(change.all("Hint"), 1))
    shown = "".join(f'<h2 id="{os.path.basename(path)}">{html.escape(path)}</h2>{text}' for path, text in holes(change))
    return (f"<h1>Task {name}: {inline(change.title)}</h1>\n"
            f"<p>At home this command begins the task, and judges what you wrote when you type it again:</p>\n"
            f"{command(f'make try-{name}')}\n"
            f"{f'<p>Right numbers are not enough here. The judge also looks at:</p><ul>{goals}</ul>' if goals else ''}"
            f"{shown}\n<h2 id=\"help\">Help</h2>\n{hints}\n"
            f"{folded('The lines of the stage: the solution', difference(change))}")


def mistake_page(stage, number, parts):
    """The body of the page of a mistake, and of its parts."""
    name = f"{number_of(stage)}-{number}"
    body = [f"<h1>Mistake {name}: {inline(parts[0].title)}</h1>\n<p>Guess what happens before you look.</p>\n"
            f"{command(f'make break-{name}')}\n"]
    for part in parts:
        head = f'<h2 id="part-{part.key}">{inline(part.title)}</h2>' if part is not parts[0] else ""
        rows = [f"<dt>{'Run with' if field == 'Run' else 'Shows'}</dt><dd><code>{html.escape(words or 'no options')}</code></dd>"
                for field, words in part.fields if field in ("Run", "Shows")]
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
