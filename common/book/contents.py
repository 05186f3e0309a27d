"""What is in the book, and in which order: the ladder as notes/path.md has it, the notes as notes/README.md lists
them. A stage or a note that those pages forget is an error."""
import functools
import html
import os
import re
from typing import NamedTuple

from tree import STAGES, Broken, address, between, markdown, read

STAGE_ROW = re.compile(r"^\| \[[^]]*\]\(\.\./stages/([^/]+)/README\.md\)", re.MULTILINE)
NOTE = re.compile(r"^- \[[^]]*\]\(([^)]+\.md)\)", re.MULTILINE)


class Chapter(NamedTuple):
    """A group of pages."""
    title: str
    paths: list


@functools.cache
def title_of(path):
    """The title of a Markdown file, without marks."""
    return re.sub(r"`", "", re.match(r"# (.*)", read(path))[1])


def ladder():
    """The stages, by the sections of the path."""
    found, known = [], set()
    for section in re.split(r"^## ", read("notes/path.md"), flags=re.MULTILINE)[1:]:
        rows = [stage for stage in STAGE_ROW.findall(section) if stage not in known]
        known.update(rows)
        if rows:
            found.append(Chapter(section.partition("\n")[0], [f"stages/{stage}/README.md" for stage in rows]))
    for stage in STAGES:
        if stage not in known:
            raise Broken(f"notes/path.md has no row for stages/{stage}")
        if not os.path.exists(f"stages/{stage}/README.md"):
            raise Broken(f"stages/{stage} has no lesson: README.md is missing")
    return found


def notes():
    """The notes, by the paragraphs of their list."""
    found, known = [], {"notes/README.md"}
    for title, items in re.findall(r"^(To [^:\n]+):\n((?:.+\n)+)", read("notes/README.md"), re.MULTILINE):
        paths = [os.path.normpath(f"notes/{path}") for path in NOTE.findall(items)]
        found.append(Chapter(f"Notes to {title[3:]}", paths))
        known.update(paths)
    found[0].paths.insert(0, "notes/README.md")
    for path in markdown():
        if re.fullmatch(r"notes/[^/]+\.md", path) and path not in known:
            raise Broken(f"notes/README.md does not list {path}")
    return found


def chapters():
    """Everything, in order."""
    some = [Chapter("Hopper Ladder", ["README.md"]), *ladder(), *notes()]
    named = {path for chapter in some for path in chapter.paths}
    rest = [path for path in markdown() if path not in named]
    for title, start in (("Quizzes", "notes/quizzes/"), ("Cases", "examples/cases/"),
                         ("Capstones from an empty file", "common/course/"), ("More", "")):
        some.append(Chapter(title, [path for path in rest if path.startswith(start)]))
        rest = [path for path in rest if not path.startswith(start)]
    return some


def item(path, here, headings, near):
    """One entry of the contents; of the page itself also its sections. `near`: the lesson to which the page belongs."""
    words = title_of(path).removeprefix("Stage ").removeprefix("Quiz ").removeprefix("Case ")
    is_here = address(path) == here
    current = ' aria-current="page"' if is_here else ' aria-current="true"' if path == near else ""
    sections = "".join(f'<li><a href="#{html.escape(anchor)}">{html.escape(title)}</a></li>'
                       for level, anchor, title in headings if level == 2) if is_here else ""
    return (f'<li><a href="{between(here, address(path))}"{current}>{html.escape(words)}</a>'
            f'{f"<ol>{sections}</ol>" if sections else ""}</li>')


def shown(parts, here, headings=(), near=None):
    """The contents as every page has them. The chapter of the page `here`, or of the path `near`, is unfolded."""
    text = []
    for chapter in parts:
        is_open = " open" if any(address(path) == here or path == near for path in chapter.paths) else ""
        items = "\n".join(item(path, here, headings, near) for path in chapter.paths)
        title = html.escape(chapter.title)
        text.append(f"<details{is_open}><summary>{title}</summary>\n<ul>\n{items}\n</ul>\n</details>")
    return "\n".join(text)


def turn(parts, here):
    """The links to the previous and the next page."""
    paths = [path for chapter in parts for path in chapter.paths]
    place = next((place for place, path in enumerate(paths) if address(path) == here), None)
    if place is None:
        return ""
    links = []
    for relation, words, other in (("prev", "Previous", place - 1), ("next", "Next", place + 1)):
        if 0 <= other < len(paths):
            links.append(f'<a rel="{relation}" href="{between(here, address(paths[other]))}"><small>{words}</small> '
                         f'{html.escape(title_of(paths[other]))}</a>')
    return f'<nav class="turn" aria-label="Previous and next page">{"".join(links)}</nav>'
