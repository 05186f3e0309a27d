"""Makes the book: static pages of all lessons and notes, from the Markdown and the code where they stand. The names that
the pages' frame has for its own elements begin with a capital, which no anchor of a heading has.

    book.py FOLDER     FOLDER may be served by any host; common/build/book.mk calls this

What a page promises and the repository does not have is an error, a line each, and the exit code is 1.
"""
import collections
import html
import json
import os
import posixpath
import re
import shutil
import string
import sys
from typing import NamedTuple
from urllib.parse import urlencode

import bench
import checks
import contents
import differences
import exercises
import listing
import quizzes
import watch
from change import Misfit
from definitions import definitions
from render import Writer, anchor_of, words_of
from search_index import Index
from tree import STAGES, Broken, address, between, files_of, headers_of, is_listing, markdown, number_of, read

HERE = os.path.dirname(__file__)
GLOSSARY = "notes/glossary.md"
START = "## Start\n"  # of the README: what a page can do comes before it, and its first paragraph leads there
NEEDED = "**You need no GPU.**"
NEEDED_HERE = "**You need no GPU**, and on these pages [nothing but a browser](#start-in-the-browser)."
ASSETS = ("book.css", "book.js", "quiz.js", "bench.js", "watch.css", "watch.js", "icon.svg")
LAB = '<button id="Lab" type="button" aria-expanded="false" aria-controls="Bench" hidden>Bench</button>\n'
COMMAND = re.compile(r"make (break|try|hint|solution|quiz|case|capstone|diff)-([a-z0-9]+)(?:-(\d+))?")
RUN = re.compile(r"\./stage-(\w+)((?: --[\w-]+(?:=[\w.,:-]+)?)*)")
FOR_TERMINALS = re.compile(r"csv|--(?:json|steps|trace|ptx|repeat|threads)|=gpu|=N\b")  # they need a GPU, or files
NAME = re.compile(r"(\w+)(?:<[^<>]*>)?(?:\(.*\))?")

# What a picture of gnuplot's looks like at night: its paper, its words, its lines, and its two darkest colours.
NIGHT = {"#ffffff": "#0d1117", "#222222": "#e6edf3", "#666666": "#8d949c", "#dddddd": "#3a4047", "#aaaaaa": "#6b727a",
         "#0072b2": "#3d9be0", "#d55e00": "#e8742a"}


def at_night(svg):
    """A picture that follows the page's theme. Those that do already stay as they are."""
    if "prefers-color-scheme" in svg:
        return svg
    rules = "".join(f'[fill="{day}"]{{fill:{night}}}[stroke="{day}"]{{stroke:{night}}}[color="{day}"]{{color:{night}}}'
                    for day, night in NIGHT.items())
    return re.sub(r"(<svg[^>]*>)", rf"\1\n<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>", svg, count=1)


class Around(NamedTuple):
    """What is around the body of a page: its kind, its headings, the lesson that it belongs to, and the bench."""
    kind: str
    headings: tuple = ()
    near: str = None
    scripts: tuple = ()
    bench: str = ""


def link_to(here, there, words):
    """A link from the page at one address to another address."""
    return f'<a href="{html.escape(between(here, there))}">{html.escape(words)}</a>'


class Book:
    """The folder that is made, and what is known of all pages."""

    def __init__(self, folder):
        self.folder = folder
        self.parts = contents.chapters()
        self.index = Index()
        self.wanted = collections.deque()  # files that a page leads to
        self.known = set(markdown())
        self.users = collections.defaultdict(list)  # of each file, the stages that are made from it
        for stage in STAGES:
            for path in files_of(stage) + headers_of(stage):
                self.users[path].append(stage)
        self.template = string.Template(read(os.path.join(HERE, "page.html")))
        self.terms = dict(re.findall(r"^### (.*)\n((?:(?!#).*\n)+)", read(GLOSSARY), re.MULTILINE))
        self.terms = {anchor_of(term): (term, text) for term, text in self.terms.items()}

    # ---- files ----

    def put(self, path, text):
        """Writes a file of the book."""
        place = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)

    def want(self, path):
        """The address of a file's page; it will be made."""
        if path not in self.known:
            self.known.add(path)
            self.wanted.append(path)
        return address(path)

    def put_page(self, here, title, body, around):
        """Writes a page: the frame around its body."""
        full = title if title == "Hopper Ladder" else f"{title} · Hopper Ladder"
        self.put(here, self.template.substitute(
            title=html.escape(full), root="../" * here.count("/"), kind=around.kind, body=body,
            bench=around.bench, lab=LAB if around.bench else "",
            scripts="".join(f'<script src="{between(here, name)}" defer></script>\n' if name.endswith(".js") else
                            f'<link rel="stylesheet" href="{between(here, name)}">\n' for name in around.scripts),
            contents=contents.shown(self.parts, here, around.headings, around.near),
            turn=contents.turn(self.parts, here)))

    # ---- what the words of a page lead to ----

    def link(self, path, here, href, terms):
        """(address, attributes) of a link on the page of `path`. The page at `here` shows it."""
        if re.match(r"[a-z]+:", href):
            return href, {"rel": "external"}
        target, _, anchor = href.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
        if not os.path.exists(target):
            raise Broken(f"{path}: the link {href} leads to no file")
        attributes = {}
        if target == GLOSSARY and anchor in self.terms and address(GLOSSARY) != here:
            attributes = {"class": "term", "data-term": anchor}
            terms.setdefault(anchor)
        there = self.want(target.removesuffix("/README.md") if target.endswith("/README.md") else target)
        same = there == here and anchor
        return ("" if same else between(here, there)) + (f"#{anchor}" if anchor else ""), attributes

    def command(self, here, stage, names, words):
        """The address of what a piece of code names: a mistake, a task, a quiz, a file or a definition of the stage."""
        match = COMMAND.fullmatch(words)
        if match:
            return self.page_of_command(here, *match.groups())
        match = RUN.fullmatch(words)
        if match:
            return self.run_of(here, *match.groups())
        if stage or here.startswith("examples/cases/"):
            for folder in (posixpath.dirname(here), "."):
                path = posixpath.normpath(posixpath.join(folder, words))
                if re.fullmatch(r"[\w./-]+\.(cuh?|h|c|py|mk)", words) and os.path.isfile(path):
                    return between(here, self.want(path))
        if stage:
            name = NAME.fullmatch(words)
            if name and name[1] in names:
                path, line = names[name[1]]
                return f"{between(here, self.want(path))}#L{line}"
        return None

    @staticmethod
    def run_of(here, number, options):
        """The address of a run of a stage's program, where a page can run it."""
        stage = next((stage for stage in STAGES if number_of(stage) == number), None)
        if not stage or not bench.is_there(stage) or FOR_TERMINALS.search(options):
            return None
        there = address(f"stages/{stage}")
        words = [("kernel", ""), *(("o", word) for word in options.split() if not word.startswith("--device="))]
        return ("" if there == here else between(here, there)) + f"#run&{urlencode(words)}"

    @staticmethod
    def page_of_command(here, kind, number, key):
        """The address of the page that shows what make KIND-NUMBER-KEY is about."""
        stages = [stage for stage in STAGES if number_of(stage) == number]
        places = {"quiz": f"notes/quizzes/{number}-", "case": f"examples/cases/{number}-",
                  "capstone": f"common/course/capstones/{number}.md"}
        if kind in places:
            paths = [path for path in markdown() if path.startswith(places[kind])]
            return between(here, address(paths[0])) if paths else None
        if kind == "diff":
            return between(here, f"stages/{stages[0]}/diff.html") if stages and differences.difference(stages[0]) else None
        kind = "break" if kind == "break" else "try"
        known = [name for name, *_ in exercises.exercises(stages[0])] if stages and key else []
        name = f"{kind}-{key}.html"
        return between(here, f"stages/{stages[0]}/{name}") if name in known else None

    def picture(self, path, src):
        """(address, SVG) of a picture on the page of `path`."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), src))
        if not os.path.exists(target):
            raise Broken(f"{path}: there is no picture {src}")
        return between(address(path), self.want(target)), read(target)

    # ---- pages ----

    def put_markdown(self, path):
        """The page of a Markdown file."""
        here, terms = address(path), {}
        stage = next((stage for stage in STAGES if path == f"stages/{stage}/README.md"), None)
        names = definitions(stage) if stage else {}
        writer = Writer(path, lambda href: self.link(path, here, href, terms),
                        lambda words: self.command(here, stage, names, words), lambda src: self.picture(path, src),
                        lambda name: watch.frame(name, here, stage))
        text = read(path)
        if path == "README.md" and bench.is_there(STAGES[0]):
            front = read(os.path.join(HERE, "front.markdown"))
            text = text.replace(NEEDED, NEEDED_HERE, 1).replace(START, f"{front}\n{START}", 1)
        body = writer.html_of(text)
        title = contents.title_of(path)
        is_quiz = path.startswith("notes/quizzes/")
        if path.startswith("examples/cases/"):
            body += exercises.end_of_case(posixpath.dirname(path))
        if is_quiz:
            lessons = " ".join(link_to(here, address(f"stages/{each}"), contents.title_of(f"stages/{each}/README.md"))
                               for each in quizzes.before(path))
            body = f'<p class="path">{lessons}</p>\n{quizzes.with_fields(path, body)}'
        if stage:
            body = body.replace("</h1>\n", "</h1>\n" + self.code_of(stage, here), 1)
        has_bench = stage and bench.is_there(stage)
        watches = ["watch.css", "watch.js"] if 'class="watch"' in body else []
        self.put_page(here, title, f"<article>\n{body}</article>\n{self.definitions_of(terms, here)}",
                      Around("lesson" if stage else "note", headings=writer.headings,
                             scripts=["quiz.js"] if is_quiz else ["bench.js", *watches] if has_bench else [],
                             bench=bench.frame(stage) if has_bench else ""))
        if has_bench:
            self.put_bench(stage)
        self.add_to_index(here, title, writer, text)

    def add_to_index(self, here, title, writer, text):
        """Lets the search find a page, section by section."""
        place, heading, words = here, title, []
        headings = iter(writer.headings[:])
        for token, following in zip(tokens := writer.markdown.parse(text), [*tokens[1:], None]):
            if token.type == "heading_open":
                self.index.add(place, title, heading, " ".join(words))
                level, anchor, heading = next(headings)
                place, words = (here if level == 1 else f"{here}#{anchor}"), []
            elif token.type == "inline" and (not following or following.type != "heading_close"):
                words.append(words_of(token))
            elif token.type in ("code_block", "fence"):
                words.append(token.content)
        self.index.add(place, title, heading, " ".join(words))

    def definitions_of(self, terms, here):
        """The glossary's lines about the terms of a page, to unfold where a term stands."""
        text = ""
        for anchor in terms:
            term, meaning = self.terms[anchor]
            writer = Writer(GLOSSARY, lambda href: (self.link(GLOSSARY, here, href, {})[0], {}))
            text += (f'<div id="Term-{html.escape(anchor)}"><p><dfn>{html.escape(term)}</dfn></p>\n'
                     f'{writer.html_of(meaning)}</div>\n')
        return f'<div id="Terms" hidden>\n{text}</div>' if text else ""

    def code_of(self, stage, here):
        """Where the code of a lesson is: the stage's files, the headers from elsewhere, its tasks and mistakes."""
        def links(paths):
            return "\n".join(link_to(here, self.want(path), path.removeprefix(f"stages/{stage}/")) for path in paths)
        headers = headers_of(stage)
        rows = [("Code", links(files_of(stage))),
                ("Headers", f"<details><summary>{len(headers)} from other folders</summary>{links(headers)}</details>")]
        new = differences.difference(stage)
        rows.append(("New", f'<a href="diff.html">{new.new} lines against {number_of(new.below)}</a>' if new else ""))
        for kind, words in (("try", "Tasks"), ("break", "Mistakes")):
            rows.append((words, " ".join(f'<a href="{name}" title="{html.escape(parts[0].title)}">{number}</a>'
                                         for name, each, number, parts in exercises.exercises(stage) if each == kind)))
        rows.append(("Quizzes", " ".join(link_to(here, address(path), os.path.basename(path)[:2]) for path in quizzes.after(stage))))
        body = "".join(f"<dt>{words}</dt><dd>{text}</dd>" for words, text in rows if text)
        return f'<nav class="code" aria-label="The code of this stage"><dl>{body}</dl></nav>\n'

    def put_bench(self, stage):
        """What the bench of a lesson loads: its data and kernels, and the emulator, which all lessons share."""
        mistakes = [change for _, kind, _, parts in exercises.exercises(stage) if kind == "break" for change in parts]
        data = bench.data_of(stage, mistakes)
        self.put(f"stages/{stage}/bench.json", json.dumps(data, ensure_ascii=False, separators=(",", ":")))
        for path in data["files"]:
            self.want(path)
        for name in bench.WORKER:
            self.copy(os.path.join(bench.WEB, name), f"web/{name}")
        for path in bench.kernels_of(data) + watch.kernels_of(stage):
            self.copy(path, f"ptx/{os.path.basename(path)}")

    def copy(self, path, to):
        """Puts a file into the book as it is."""
        to = os.path.join(self.folder, to)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(path, to)

    def put_exercises(self, stage):
        """The pages of a stage's tasks and mistakes, and of what is new in it."""
        lesson = f"stages/{stage}/README.md"
        back = f'<p class="path"><a href="index.html">{html.escape(contents.title_of(lesson))}</a></p>'
        for name, kind, number, parts in exercises.exercises(stage):
            here = f"stages/{stage}/{name}"
            if kind == "try":
                body = exercises.task_page(stage, parts[0])
            else:
                body = exercises.mistake_page(stage, number, parts, bench.is_there(stage))
            title = f"{'Task' if kind == 'try' else 'Mistake'} {number_of(stage)}-{number}"
            self.put_page(here, title, f"<article>{back}{body}</article>", Around("exercise", near=lesson))
            self.index.add(here, title, f"{title}: {parts[0].title}", "")
        if differences.difference(stage):
            here = f"stages/{stage}/diff.html"
            body = differences.page(stage, here, self.want)
            self.put_page(here, f"New in {stage}", f"<article>{back}{body}</article>", Around("exercise", near=lesson))

    def put_file(self, path):
        """What a link to a file or a folder leads to."""
        if os.path.isdir(path):
            self.put_folder(path)
        elif address(path) == path:
            if path.endswith(".svg"):
                self.put(path, at_night(read(path)))
            else:
                self.copy(path, path)
        elif is_listing(path):
            here = address(path)
            lessons = " ".join(link_to(here, address(f"stages/{stage}"), number_of(stage))
                               for stage in self.users[path])
            used = f'<p class="path">In stage {lessons}</p>' if lessons else ""
            near = f"stages/{self.users[path][0]}/README.md" if self.users[path] else None
            body = f"<h1>{html.escape(path)}</h1>{used}{listing.listing(path, read(path))}"
            self.put_page(here, path, f"<article>{body}</article>", Around("listing", near=near))

    def put_folder(self, path):
        """A folder without a README: its files."""
        here = address(path)
        names = sorted(name for name in os.listdir(path) if not name.startswith((".", "__")))
        rows = "".join(f'<li>{link_to(here, self.want(posixpath.join(path, name)), name)}</li>' for name in names)
        self.put_page(here, path, f"<article><h1>{html.escape(path)}</h1><ul>{rows}</ul></article>", Around("listing"))

    def make(self):
        """Everything."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        for name in ASSETS:
            shutil.copy(os.path.join(HERE, name), self.folder)
        for path in markdown():
            self.put_markdown(path)
        for stage in STAGES:
            self.put_exercises(stage)
        while self.wanted:
            path = self.wanted.popleft()
            if not os.path.isdir(path) or not os.path.exists(posixpath.join(path, "README.md")):
                self.put_file(path)
        self.put("search.json", self.index.json())


def main(folder):
    """Makes and checks a book; the exit code."""
    try:
        book = Book(folder)
        book.make()
    except (Broken, Misfit) as error:
        print(f"book: {error}", file=sys.stderr)
        return 1
    found = checks.faults(folder)
    for fault in found:
        print(f"book: {fault}", file=sys.stderr)
    if not found:
        print(f"{folder} has {len(markdown())} pages and {len(STAGES)} lessons. To read it: "
              f"python3 -m http.server -d {folder} 8000, and http://localhost:8000")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
