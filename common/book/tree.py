"""Which files of the repository are in the book, and the address of each one's page. Addresses mirror the repository:

    stages/06-tma/README.md   stages/06-tma/index.html     Markdown
    notes/attention.md        notes/attention.html
    common/ptx/ring.h         common/ptx/ring.h.html       a listing with line numbers
    plots/figure-ring.svg     plots/figure-ring.svg        itself
"""
import functools
import glob
import os
import posixpath
import re

STAGES = sorted(os.path.basename(path.rstrip("/")) for path in glob.glob("stages/[0-9][0-9]*-*/"))
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
LARGEST = 300_000  # bytes of a file that becomes a listing; a longer one is copied as it is


class Broken(Exception):
    """Something that a page promises and the repository does not have: one line."""


@functools.cache
def read(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.cache
def markdown():
    """The paths of all Markdown files of the book."""
    places = ("README.md", "stages/*/README.md", "notes/**/*.md", "common/**/*.md", "examples/**/*.md", "tests/**/*.md")
    return [path for place in places for path in sorted(glob.glob(place, recursive=True))]


def number_of(stage):
    """"02b" of "02b-mma-registers"."""
    return stage.split("-")[0]


@functools.cache
def is_listing(path):
    """Whether a file is shown with line numbers: it is a text of reasonable length."""
    if os.path.getsize(path) > LARGEST:
        return False
    with open(path, "rb") as file:
        return b"\0" not in file.read()


@functools.cache
def address(path):
    """The address of the page about a file or a folder, from the book's root."""
    if os.path.isdir(path):
        readme = posixpath.join(path, "README.md")
        return address(readme) if os.path.exists(readme) else posixpath.join(path, "index.html")
    if posixpath.basename(path) == "README.md":
        return posixpath.join(posixpath.dirname(path), "index.html")
    if path.endswith(".md"):
        return path[:-3] + ".html"
    return path if path.endswith(".svg") or not is_listing(path) else path + ".html"


def between(here, there):
    """The link from the page at one address to another address."""
    return "../" * here.count("/") + there


@functools.cache
def files_of(stage):
    """The files of a stage: first the kernel, then what is launched and included."""
    found = [path for path in glob.glob(f"stages/{stage}/*") if os.path.isfile(path) and not path.endswith(".md")]
    first = ["kernel.cu", "stage.c", "tiles.h"]
    order = {name: place for place, name in enumerate(first)}
    return sorted(found, key=lambda path: (order.get(os.path.basename(path), len(first)), path))


def included(path):
    """The headers of the repository that a file includes by itself."""
    for name in INCLUDE.findall(read(path)):
        for folder in (posixpath.dirname(path), "common"):
            header = posixpath.normpath(posixpath.join(folder, name))
            if os.path.exists(header):
                yield header
                break


@functools.cache
def headers_of(stage):
    """The headers from other folders that a stage's files include, in the end."""
    own, found, todo = files_of(stage), [], [path for path in files_of(stage) if path.endswith((".c", ".cu", ".h"))]
    while todo:
        for header in included(todo.pop(0)):
            if header not in found and header not in own:
                found.append(header)
                todo.append(header)
    return sorted(found)
