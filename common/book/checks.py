"""What a finished book must be: every link leads somewhere, every listing is its file, every stage is whole.

    python3 common/book/checks.py build/book     one line for each fault; the exit code is 1 if there is one
"""
import collections
import glob
import html
import os
import posixpath
import re
import sys
from urllib.parse import parse_qs

from differences import difference
from exercises import exercises
from tree import STAGES, address, files_of, headers_of, read

RANGE = re.compile(r"L(\d+)-L(\d+)")


class Page:
    """The anchors, links and listings of one page. Quotes and brackets of its text are entities, so tags are plain."""

    def __init__(self, path):
        text = read(path)
        ids = re.findall(r'<[^>]* id="([^"]*)"', text)
        self.ids = set(ids)
        self.twice = [name for name, times in collections.Counter(ids).items() if times > 1]
        self.links = [html.unescape(link) for link in re.findall(r'<a [^>]*href="([^"]*)"', text)]
        self.loads = re.findall(r'<(?:link|script|img|source|iframe)[^>]* (?:href|src)="([^"]*)"', text)
        listings = re.findall(r'<pre class="source" data-path="([^"]*)"><code>(.*?)</code></pre>', text, re.DOTALL)
        self.listings = {path: html.unescape(re.sub("<[^>]*>", "", body)) for path, body in listings}

    def leads_to(self, here, there):
        """Whether a link leads from this page, at the address `here`, to another one."""
        return any(resolved(here, link) == there for link in self.links)


def resolved(here, link):
    """The address that a link on the page at `here` leads to, without its anchor."""
    path = link.partition("#")[0]
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), path)) if path else here


def has_anchor(page, anchor):
    """Whether a page has a heading, a line or lines of this name; the bench, if it is a run for it; or an explorable."""
    if anchor.startswith("run&"):
        return "Bench" in page.ids
    if anchor.startswith("watch&"):
        return f"Watch-{parse_qs(anchor[6:])['name'][0]}" in page.ids
    lines = RANGE.fullmatch(anchor)
    if lines:
        return int(lines[1]) <= int(lines[2]) and f"L{lines[1]}" in page.ids and f"L{lines[2]}" in page.ids
    return anchor in page.ids


def faults_of_links(root, pages):
    """Links to pages or anchors that are not there, and everything that would be fetched from elsewhere."""
    for here, page in pages.items():
        for name in page.twice:
            yield f"{here}: two elements have the name {name}"
        for link in page.loads:
            if "://" in link or link.startswith("//"):
                yield f"{here}: it would fetch {link} from another host"
        for link in page.links + page.loads:
            if re.match(r"[a-z]+:", link):
                continue
            there, anchor = resolved(here, link), link.partition("#")[2]
            if not os.path.isfile(os.path.join(root, there)):
                yield f"{here}: the link {link} leads to no page"
            elif anchor and there in pages and not has_anchor(pages[there], anchor):
                what = "line" if RANGE.fullmatch(anchor) else "heading or line"
                yield f"{here}: the link {link} leads to no {what} of {there}"


def faults_of_listings(pages):
    """Listings that are not what their file says now."""
    for here, page in pages.items():
        for path, text in page.listings.items():
            if not os.path.exists(path):
                yield f"{here}: {path} is no file any more"
            elif text != read(path).removesuffix("\n") + "\n":
                yield f"{here}: it is not what {path} says now"


def faults_of_stages(pages):
    """Files, tasks and mistakes of a stage, and what is new in it, to which its lesson does not lead."""
    for stage in STAGES:
        lesson = address(f"stages/{stage}")
        if lesson not in pages:
            yield f"{lesson}: the lesson of {stage} is missing"
            continue
        wanted = [address(path) for path in files_of(stage) + headers_of(stage)]
        wanted += [f"stages/{stage}/{name}" for name, *_ in exercises(stage)]
        wanted += [f"stages/{stage}/diff.html"] if difference(stage) else []
        for page in wanted:
            if not pages[lesson].leads_to(lesson, page):
                yield f"{lesson}: no link leads to {page}"


def faults_of_styles(root):
    """What a style or a script would fetch from elsewhere."""
    for path in glob.glob(f"{root}/*.css") + glob.glob(f"{root}/*.js"):
        for found in re.findall(r"url\(\s*['\"]?(?!data:)[^)]*\)|@import[^;]*|['\"`]https?:[^'\"`]*", read(path)):
            yield f"{os.path.relpath(path, root)}: it would fetch {found}"


def faults(root):
    """All faults of the book in this folder, a line each."""
    pages = {os.path.relpath(path, root): Page(path) for path in sorted(glob.glob(f"{root}/**/*.html", recursive=True))}
    kinds = (faults_of_links(root, pages), faults_of_listings(pages), faults_of_stages(pages), faults_of_styles(root))
    return [fault for kind in kinds for fault in kind]


if __name__ == "__main__":
    FOUND = faults(sys.argv[1])
    print("\n".join(FOUND) or "the book is whole")
    sys.exit(1 if FOUND else 0)
