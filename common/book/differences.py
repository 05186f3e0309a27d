"""The page of what is new in a stage's kernel, diff.html: what make diff-NN prints. The place of each part is a link."""
import functools
import html
import os
import re
import subprocess
from typing import NamedTuple

import listing
from pygments.lexers import CudaLexer
from tree import Broken, address, between, number_of, read

KINDS = {"+": "new", "-": "gone"}
PLACE = re.compile(r"(stages/\S+):(\d+)")


class Difference(NamedTuple):
    """The first line that is printed, the stage below, how many lines are new, and the parts: (path, line, lines)."""
    headline: str
    below: str
    new: int
    parts: list


def printed(stage):
    """What make diff-NN prints; None for the lowest stage of its kind."""
    made = f"stages/{stage}/stage.mk"
    named = re.search(rf"^BELOW_{re.escape(stage)} := (\S+)", read(made), re.MULTILINE) if os.path.exists(made) else None
    command = ["sh", "common/build/diff.sh", number_of(stage), *([named[1]] if named else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        return None
    if done.returncode:
        raise Broken(f"make diff-{number_of(stage)}: {done.stderr.strip()}")
    return done.stdout


@functools.cache
def difference(stage):
    """What is new in a stage; None for the lowest of its kind."""
    text = printed(stage)
    if text is None:
        return None
    headline, *lines = text.splitlines()
    words = re.fullmatch(r"\S+ against (\S+): (\d+) new device lines, \d+ gone", headline)
    parts = []
    for line, before in zip(lines, [None, *lines]):
        place = PLACE.fullmatch(line) if before == "" else None
        if place:
            parts.append((place[1], int(place[2]), []))
        elif parts:
            parts[-1][2].append(line)
    for _, _, shown in parts[:-1]:
        shown.pop()  # the empty line before the next place
    return Difference(headline, words[1], int(words[2]), parts)


def shown_part(lines):
    """Lines that begin with +, - or a blank, as code."""
    coloured = listing.coloured("".join(f"{line[1:]}\n" for line in lines), CudaLexer)
    rows = []
    for line, code in zip(lines, coloured):
        kind = f' class="{KINDS[line[0]]}"' if line[:1] in KINDS else ""
        rows.append(f"<span{kind}>{line[:1]}{code}\n</span>")
    return f'<pre class="difference"><code>{"".join(rows)}</code></pre>\n'


def page(stage, here, want):
    """The body of the page; `want` gives the address of a file's page."""
    found = difference(stage)
    lesson = html.escape(between(here, address(f"stages/{found.below}")))
    body = [f"<h1>What is new in {stage}</h1>\n"
            f'<p>{found.headline.replace(found.below, f"<a href={chr(34)}{lesson}{chr(34)}>{found.below}</a>")}. '
            "A line with + is new, one with - is gone. The stages' own headers stand where the kernel includes them.</p>\n"
            f"<pre><code>make diff-{number_of(stage)}</code></pre>\n"]
    for path, line, lines in found.parts:
        place = html.escape(f"{between(here, want(path))}#L{line}")
        body.append(f'<p class="path"><a href="{place}">{path}:{line}</a></p>\n{shown_part(lines)}')
    return "".join(body)
