"""The book as it is built: whole, light, valid, readable, and from no other host. make test-book runs this.

Runs in the repository's root, after make book: build/book-tools/bin/python tests/book/test_pages_of_book.py
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import html5lib

sys.path.insert(0, "common/book")
# pylint: disable=wrong-import-position
import bench
import checks
import contents
import exercises
import quizzes
from change import Misfit, patched
from book import Book
from render import Writer
from tree import STAGES, Broken, address, files_of, markdown, number_of

BOOK = "build/book"
LARGEST = 1_000_000  # bytes of a page with all that it loads, before anything runs


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def page(path):
    return read(os.path.join(BOOK, path))


PAGES = sorted(os.path.relpath(path, BOOK) for path in glob.glob(f"{BOOK}/**/*.html", recursive=True))


class Whole(unittest.TestCase):
    def test_has_no_fault(self):
        self.assertEqual(checks.faults(BOOK), [])

    def test_has_each_lesson_and_note_with_all_its_words(self):
        """Every line of the Markdown that is plain prose stands on its page, and a picture's words at the picture."""
        compared = 0
        for path in markdown():
            tree = html5lib.parse(page(address(path)), namespaceHTMLElements=False)
            article = tree.find(".//article")
            shown = " ".join([*article.itertext(), *(image.get("alt", "") for image in article.iter("img"))])
            shown = " ".join(shown.split())
            for line in read(path).splitlines():
                if re.fullmatch(r"[A-Z][\w ,.;:()'-]{30,}", line):
                    compared += 1
                    self.assertIn(line, shown, path)
        self.assertGreater(compared, 500)

    def test_climbs_the_ladder_page_by_page(self):
        here, climbed = address(f"stages/{STAGES[0]}"), []
        while here.startswith("stages/"):
            climbed.append(here.split("/")[1])
            following = re.search(r'<a rel="next" href="([^"]*)"', page(here))[1]
            here = checks.resolved(here, following)
        self.assertEqual(climbed, STAGES)

    def test_shows_a_task_with_its_hole_and_without_its_solution(self):
        """The stage's own lines are folded, and each line of the hole stands there."""
        tasks = 0
        for stage in STAGES:
            for name, kind, _, parts in exercises.exercises(stage):
                if kind == "try":
                    tree = html5lib.parse(page(f"stages/{stage}/{name}"), namespaceHTMLElements=False)
                    listings = [element for element in tree.iter("pre") if element.get("class") == "source"]
                    shown = {line for element in listings for line in "".join(element.itertext()).splitlines()}
                    new = [line[1:] for line in parts[0].patch.splitlines() if re.match(r"\+(?!\+\+ b/)", line)]
                    self.assertEqual([line for line in new if line.strip() and line not in shown], [], name)
                    hints = re.findall("<summary>Hint ", page(f"stages/{stage}/{name}"))
                    self.assertEqual(len(hints), len(parts[0].all("Hint")))
                    tasks += 1
        self.assertGreater(tasks, 100)


    def test_shows_a_case_with_its_code_and_repair(self):
        cases = glob.glob("examples/cases/[0-9]*")
        for case in cases:
            here = f"{case}/index.html"
            for name in ("kernel.cuh.html", "main.cu.html"):
                self.assertTrue(checks.Page(f"{BOOK}/{here}").leads_to(here, f"{case}/{name}"), f"{case}: {name}")
            article = html5lib.parse(page(here), namespaceHTMLElements=False).find(".//article")
            repair = "".join("".join(one.itertext()) for one in article.iter("details"))
            title, *lines = [line for line in read(f"{case}/mended.patch").splitlines() if line]
            new = [line for line in lines if re.match(r"\+(?!\+\+ b/)", line)]
            shown = repair.replace("`", "")
            self.assertEqual([line for line in (title, *new) if line.replace("`", "") not in shown], [], case)
        self.assertGreater(len(cases), 10)

    def test_shows_what_is_new_as_the_terminal_does(self):
        """Each line that make diff-NN prints, and no other. Its own stage.mk may name the stage below."""
        shown = 0
        for stage in STAGES:
            number = number_of(stage)
            done = subprocess.run(["make", "-s", f"diff-{number}"], capture_output=True, text=True, check=False)
            path = f"stages/{stage}/diff.html"
            self.assertEqual(os.path.exists(os.path.join(BOOK, path)), done.returncode == 0, stage)
            if done.returncode == 0:
                article = html5lib.parse(page(path), namespaceHTMLElements=False).find(".//article")
                headline, *lines = done.stdout.splitlines()
                self.assertIn(headline, "".join(article.itertext()))
                texts = ["".join(element.itertext()) for element in article.iter() if element.tag in ("p", "pre")]
                seen = "\n".join(texts[texts.index(f"make diff-{number}") + 1:]).splitlines()
                self.assertEqual([line for line in seen if line], [line for line in lines if line], stage)
                shown += 1
        self.assertGreater(shown, 35)


class Faults(unittest.TestCase):
    """Each fault of a book is found, in one line. A book of two lines is enough."""

    def found(self, body, other=""):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a.html", body), ("b.html", other)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            pages = {name: checks.Page(os.path.join(folder, name)) for name in ("a.html", "b.html")}
            return [*checks.faults_of_links(folder, pages), *checks.faults_of_listings(pages)]

    def test_of_links(self):
        lines = '<span id="L1">a</span><span id="L2">b</span>'
        self.assertEqual(self.found('<a href="b.html#L1-L2">x</a><a href="#here">y</a><b id="here"></b>', lines), [])
        self.assertEqual(self.found('<a href="c.html">x</a>'), ["a.html: the link c.html leads to no page"])
        self.assertIn("leads to no heading", self.found('<a href="b.html#x">x</a>')[0])
        self.assertIn("leads to no line of b.html", self.found('<a href="b.html#L2-L3">x</a>', lines)[0])
        self.assertIn("leads to no line of b.html", self.found('<a href="b.html#L2-L1">x</a>', lines)[0])
        self.assertIn("would fetch", self.found('<img src="https://example.org/x.png">')[0])
        self.assertIn("two elements", self.found('<b id="x"></b><i id="x"></i>')[0])

    def test_of_listings(self):
        listing = '<pre class="source" data-path="{}"><code>{}</code></pre>'
        text = read("stages/06-tma/tiles.h").replace("&", "&amp;").replace("<", "&lt;")
        self.assertEqual(self.found(listing.format("stages/06-tma/tiles.h", text)), [])
        self.assertIn("not what", self.found(listing.format("stages/06-tma/tiles.h", text.replace("64", "65")))[0])
        self.assertIn("no file any more", self.found(listing.format("stages/06-tma/gone.h", text))[0])

    def test_of_stages(self):
        """A lesson without a link to one of its files, and a lesson that is missing."""
        lessons = [address(f"stages/{stage}") for stage in STAGES]
        pages = {lesson: checks.Page(os.path.join(BOOK, lesson)) for lesson in lessons}
        self.assertEqual(list(checks.faults_of_stages(pages)), [])
        here, kernel = address(f"stages/{STAGES[0]}"), address(files_of(STAGES[0])[0])
        pages[here].links = [link for link in pages[here].links if checks.resolved(here, link) != kernel]
        del pages[address(f"stages/{STAGES[1]}")]
        self.assertEqual(list(checks.faults_of_stages(pages)),
                         [f"{here}: no link leads to {kernel}",
                          f"{address(f'stages/{STAGES[1]}')}: the lesson of {STAGES[1]} is missing"])

    def test_of_the_repository(self):
        """What the Markdown promises and the repository does not have stops the build."""
        book = Book(BOOK)
        for href in ("gone.md", "../../common/ptx/gone.h"):
            with self.assertRaisesRegex(Broken, f"README.md: the link {href} leads to no file"):
                book.link("stages/06-tma/README.md", "stages/06-tma/index.html", href, {})
        with self.assertRaisesRegex(Broken, "there is no picture"):
            book.picture("stages/06-tma/README.md", "gone.svg")
        with self.assertRaisesRegex(Broken, "knows <details>"):
            Writer("x.md", None).html_of("<script>alert(1)</script>\n")
        with self.assertRaisesRegex(Misfit, "no such lines any more"):
            patched("stages/06-tma/tiles.h", "@@ -3,2 +3,2 @@\n-a line that is not there\n+another\n")


class Bench(unittest.TestCase):
    def test_offers_no_option_that_the_stage_refuses(self):
        built = [stage for stage in STAGES if os.path.exists(f"stage-{number_of(stage)}")]
        if not built:
            self.skipTest("no stage is built: make root")
        for stage in built:
            program = f"./stage-{number_of(stage)}"
            shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
            for name, _ in bench.fields_of(stage):
                with self.subTest(stage, field=name):
                    self.assertIn(f"--{name}", shown)


class Light(unittest.TestCase):
    def test_pages_weigh_less_than_a_megabyte(self):
        """With style, script and all pictures; the search's index comes when somebody searches."""
        for path in PAGES:
            one = checks.Page(os.path.join(BOOK, path))
            loads = {path, *(checks.resolved(path, link) for link in one.loads)}
            with self.subTest(path):
                self.assertLess(sum(os.path.getsize(os.path.join(BOOK, load)) for load in loads), LARGEST)
        self.assertLess(os.path.getsize(f"{BOOK}/search.json"), LARGEST)

    def test_nothing_comes_from_another_host(self):
        for name in ("book.css", "book.js"):
            self.assertNotRegex(page(name), r"https?://|@import")


class Valid(unittest.TestCase):
    def test_pages_parse_without_an_error(self):
        """As HTML5 wants it: all lessons and notes, and every tenth of the others."""
        texts = [address(path) for path in markdown()]
        for path in texts + [path for path in PAGES if path not in texts][::10]:
            parser = html5lib.HTMLParser(strict=False)
            parser.parse(page(path))
            with self.subTest(path):
                self.assertEqual([(where, code) for where, code, _ in parser.errors][:3], [])

    def test_pages_have_one_title_and_no_gap_between_headings(self):
        for path in PAGES:
            levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", page(path))]
            with self.subTest(path):
                self.assertEqual(levels.count(1), 1)
                self.assertTrue(all(after <= before + 1 for before, after in zip(levels, levels[1:])), levels)

    def test_pictures_and_fields_have_words(self):
        for path in PAGES:
            labels = re.compile(r"<label>[^<]*(?:<[^>]*>[^<]*)*?\w[^<]*(?:<[^>]*>[^<]*)*?</label>")
            shown = r'<(?:img|input)\b(?![^>]*type="hidden")[^>]*>'
            for tag in re.findall(shown, labels.sub("", page(path))):
                with self.subTest(path):
                    self.assertRegex(tag, r'(alt|aria-label)="[^"]{3,}"')


def luminance(colour):
    """The relative luminance of #rrggbb, as WCAG has it."""
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Readable(unittest.TestCase):
    def test_words_stand_out_from_what_is_behind_them(self):
        """4.5 to 1 at least, by day and by night."""
        pairs = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", page("book.css"))
        colours = {name: (day, night) for name, day, night in pairs}
        grounds = ("paper", "panel", "new", "gone", "mark")
        for name in set(colours) - {*grounds, "rule"}:
            for ground in grounds if name not in ("quiet", "link", "accent") else grounds[:2]:
                for one, other in zip(colours[name], colours[ground]):
                    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
                    with self.subTest(f"{name} on {ground}: {one} on {other}"):
                        self.assertGreaterEqual((light + 0.05) / (dark + 0.05), 4.5)


class Index(unittest.TestCase):
    def test_finds_sections_by_their_words(self):
        index = json.loads(page("search.json"))

        def having(word):
            places, section = index["words"][word], 0
            for step in places[::2]:
                section += step
                yield index["pages"][section][0]
        self.assertIn("stages/06-tma/index.html#a-ring-of-slots", having("parity"))
        self.assertIn("notes/glossary.html#mbarrier", having("mbarrier"))
        for link, _, _ in index["pages"]:
            path, _, anchor = link.partition("#")
            self.assertIn(path, PAGES)
            self.assertTrue(not anchor or f'id="{anchor}"' in page(path), link)


class Goals(unittest.TestCase):
    def test_are_sentences_with_the_same_numbers(self):
        for goal, words in (("waits: w <= stage", "waits: at most as many as the stage's (<code>w</code>)"),
                            ("waits: w >= 80% of stage with --causal",
                             "waits: at least 80 % of the stage's, with <code>--causal</code> (<code>w</code>)"),
                            ("loads of K: l = 77000", "loads of K: exactly 77,000 (<code>l</code>)")):
            self.assertEqual(exercises.goal_in_words(goal), words)


class Contents(unittest.TestCase):
    def test_lead_from_some_lesson_to_each_quiz(self):
        found = sorted(path for stage in STAGES for path in quizzes.after(stage))
        self.assertEqual(sorted(set(found)), sorted(glob.glob("notes/quizzes/[0-9]*.md")))

    def test_lead_from_each_quiz_to_its_lessons(self):
        for stage in STAGES:
            for path in quizzes.after(stage):
                here = address(path)
                self.assertTrue(checks.Page(f"{BOOK}/{here}").leads_to(here, address(f"stages/{stage}")), path)

    def test_mark_the_lesson_of_a_task(self):
        marked = re.findall(r'aria-current="(\w+)">([^<]*)', page("stages/06-tma/try-1.html"))
        self.assertEqual(marked, [("true", "06: TMA")])

    def test_lead_from_the_first_page_to_a_lesson(self):
        first = re.search("<p>.*?</p>", page("index.html"), re.DOTALL)[0]
        self.assertEqual("#start-in-the-browser" in first, os.path.exists(f"{BOOK}/web/worker.js"))
        self.assertEqual(re.findall(r'rel="next" href="([^"]*)"', page("index.html")), ["stages/00-scalar/index.html"])

    def test_miss_nothing(self):
        paths = [path for chapter in contents.chapters() for path in chapter.paths]
        self.assertEqual(sorted(paths), sorted(markdown()))

    def test_are_checked(self):
        """A note that the list of notes forgets stops the build."""
        text = contents.read
        try:
            contents.read = lambda path: text(path).replace("- [TMA](tma.md)", "- [TMA](counters.md)")
            with self.assertRaisesRegex(Broken, "notes/README.md does not list notes/tma.md"):
                contents.notes()
        finally:
            contents.read = text


if __name__ == "__main__":
    if not os.path.exists(BOOK):
        sys.exit("test-book: make book comes first")
    unittest.main()
