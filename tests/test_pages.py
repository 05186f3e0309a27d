"""What the pages promise: tables show what was recorded, reports what the programs print; links lead somewhere,
commands exist.

Runs in the repository's root (or a folder that looks like it): python3 tests/test_pages.py
"""
import csv
import functools
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import figures
sys.path.insert(0, "common/course")
import mistakes  # pylint: disable=wrong-import-position
from capstone import CAPSTONES  # pylint: disable=wrong-import-position
from change import Change, changes  # pylint: disable=wrong-import-position

STAGES = sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob("stages/[0-9][0-9]*-*/"))
LESSONS = sorted(glob.glob("stages/[0-9]*/README.md"))
PAGES = ["README.md", "tests/hazards/README.md",
         *sorted(glob.glob("notes/*.md") + glob.glob("notes/quizzes/*.md") + glob.glob("common/baselines/*/README.md")), *LESSONS]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.lru_cache(maxsize=None)
def output(*command):
    """What a command prints, on standard output and error."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def number_of(stage):
    """"02b" of "02b-wmma-pv"."""
    return stage.split("-")[0]


def program(number):
    return f"./stage-{number}"


def rungs(backward):
    """The attention kernels of one pass."""
    code = {stage: read(f"stages/{stage}/stage.c") for stage in STAGES}
    return [stage for stage in STAGES if ".launch =" in code[stage] and (".backward = true" in code[stage]) == backward]


# ---- tables ----


class Tables(unittest.TestCase):
    def test_show_what_was_recorded(self):
        numbers = 0
        for page in PAGES:
            for mark, text, (heads, _, *rows) in figures.marked_tables(read(page)):
                for row in rows if mark in ("recorded", "means") else []:
                    with self.subTest(page, row=row[:2]):
                        self.assertEqual(row, figures.right_row(mark, text, heads, row))
                        numbers += len(row) - 1
        self.assertGreater(numbers, 100)

    def test_are_in_every_lesson_of_a_recorded_stage(self):
        timed = {row["stage"] for row in figures.recording("plots/data/nvidia-h200.csv")}
        for page in LESSONS:
            stage = page.split("/")[1]
            if stage in timed or os.path.exists(f"plots/data/{stage}/nvidia-h200.csv"):
                self.assertIn("recorded", [mark for mark, _, _ in figures.marked_tables(read(page))], page)

    def test_show_the_conflicts_that_nsight_compute_counted(self):
        """A table of loads, their conflicts, stores and theirs: a row for each file, first at D = 64, then at 128."""
        for page in LESSONS:
            for mark, paths, (_, _, *rows) in figures.marked_tables(read(page)):
                if mark == "conflicts":
                    counted = [self.conflicts(path, head_dim) for head_dim in ("64", "128") for path in paths.split()]
                    self.assertEqual([(row[2], row[4]) for row in rows], counted, page)

    def conflicts(self, path, head_dim):
        shape = {"batch": "1", "heads": "2", "seqlen": "128", "head_dim": head_dim}
        metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_%s.sum"
        value = {row["metric"]: row["value"] for row in figures.recording(path) if shape.items() <= row.items()}
        return tuple(f"{int(value[metric % op]):,}" for op in ("ld", "st"))


    def test_find_a_matrix_product_and_cublas_beside_it(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("stage,m,n,k,tflops,cublas_tflops\n20-gemm,4096,4096,4096,712.5,700.25\n20-gemm,8192,8192,8192,690,680\n")
            file.flush()
            row = ["20 gemm", "1", "1.00"]
            heads = ["", "TFLOPS, M = N = K = 8192", "cuBLAS TFLOPS, M = N = K = 4096"]
            self.assertEqual(figures.right_row("recorded", file.name, heads, row), ["20 gemm", "690", "700.25"])

    def test_find_a_decode_and_the_read_rate_beside_it(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("stage,batch,heads,kv_heads,keys,head_dim,gb_per_s,read_gb_per_s,percent_of_read\n"
                       "13-decode,1,32,8,1024,128,400,650,61.5\n13-decode,8,32,8,1024,128,2800,2900,96.6\n")
            file.flush()
            row = ["13 decode", "1", "1", "1.0", "1"]
            heads = ["D = 128", *(f"{words}, keys = 1024" for words in ("GB/s, B = 1", "read GB/s, B = 1",
                                                                        "% of the read rate, B = 8", "GB/s, B = 8"))]
            self.assertEqual(figures.right_row("recorded", file.name, heads, row), ["13 decode", "400", "650", "96.6", "2800"])

    def test_a_decode_is_as_usual_where_headings_do_not_say_otherwise(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="ascii") as file:
            file.write("stage,batch,heads,kv_heads,keys,queries,page,lengths,gb_per_s\n")
            for rate, fields in enumerate(("8,4096,1,0,full", "8,4096,1,16,full", "8,4096,1,16,ragged", "8,4096,4,0,full",
                                           "1,4096,1,0,full", "8,1024,1,0,full")):
                file.write(f"13-decode,4,32,{fields},{rate}\n")
            file.flush()
            head = "GB/s, B = 4, heads of queries = 32, heads of keys = 8"
            heads = [head, "keys = 4096", "keys = 4096, pages of 16", "keys = 4096, ragged lengths, pages of 16",
                     "keys = 4096, queries = 4", "keys = 1024"]
            row = figures.right_row("recorded", file.name, heads, ["13 decode", *"99999"])
            self.assertEqual(row, ["13 decode", *"01235"])


class Figures(unittest.TestCase):
    """Measured figures in prose follow from recordings: see figures.py."""

    def test_follow_from_recordings(self):
        for page in PAGES:
            for prose, comments in figures.paragraphs(read(page)):
                for words, expression in comments:
                    if words not in figures.MARKS:
                        with self.subTest(page, words=words):
                            self.assertIn(words, prose)
                            self.assertIsNone(figures.disagreement(words, expression))

    def test_can_be_written_anew(self):
        """A wrong number in a table and one in prose, across a line end: update() mends both and nothing else."""
        row = figures.recording(figures.PEERS)[0]
        path = "plots/data/nvidia-h200.csv"
        right = (f"It reaches {float(row['tflops']):.1f}\nTFLOPS.\n"
                 f"<!-- {float(row['tflops']):.1f} TFLOPS: tflops(\"00-scalar\", S=512, D=64, causal=0) -->\n\n"
                 f"<!-- recorded: {path} -->\n| TFLOPS, D = 64 | S = 512 |\n|---|---|\n"
                 f"| 00 scalar | {float(row['tflops']):.2f} |\n")
        wrong = right.replace(f"{float(row['tflops']):.1f}", "99.9").replace(f"{float(row['tflops']):.2f}", "99.99")
        self.assertNotEqual(wrong, right)
        self.assertEqual(figures.update(wrong), right)

    def test_can_be_a_row_of_a_table(self):
        """A tuple keeps its order, where a list is least and greatest."""
        right = "| | 02 | 02b |\n|---|---|---|\n| loads | 1,984 | 152 |\n<!-- 1,984 | 152: (1984, 152) -->\n"
        (prose, comments), = figures.paragraphs(right)
        self.assertEqual(figures.unfounded(prose, comments), [])
        self.assertEqual(figures.update(right.replace("1,984 | 152", "1,983 | 151")), right)
        self.assertEqual(figures.disagreement("1,984 | 152", "(1984, 153)"), "1,984 | 152: it is 1,984 | 153")
        self.assertIsNone(figures.disagreement("in L2, 32 to 27, which", "(32, 27)"))
        self.assertIsNone(figures.disagreement("1.05 times as fast as FlashAttention-3", "1.05"))

    def test_without_a_source_are_found(self):
        prose = "Stage 03 loads 704 rows with 12 loads, or 1,152 of them, in 35.5 ms on 65,536 registers."
        self.assertEqual(figures.unfounded(prose, []), ["35.5", "12", "1,152"])
        self.assertEqual(figures.unfounded(prose, [("35.5 ms", "")], "12 loads, 11,152 bytes"), ["1,152"])
        self.assertEqual(figures.unfounded(prose, [("sourced", "a paper")]), [])

    def test_are_all_accounted_for(self):
        """By comments; counts also by what the lesson's program prints, or its mistakes show (tests/test_course.py)."""
        for page in set(PAGES) - {mistakes.PAGE}:  # that page is made of what the lessons say
            known = ""
            if page in LESSONS:
                stage = page.split("/")[1]
                shown = [text for change in changes(stage, "breaks") for text in change.all("Shows")]
                known = " ".join([output(program(number_of(stage)), "--device=emulator"), *shown])
            for prose, comments in figures.paragraphs(read(page)):
                with self.subTest(page, prose=prose[:70]):
                    self.assertEqual(figures.unfounded(prose, comments, known), [])


# ---- the suite of hazards ----


class HazardSuite(unittest.TestCase):
    """What others use of tests/hazards: its index, and the programs that launch its kernels."""

    def test_index_has_each_kernel_and_each_marked_line(self):
        rows = list(csv.DictReader(output(sys.executable, "tests/hazards/index.py").splitlines()))
        sources = {os.path.basename(path): read(path) for path in glob.glob("tests/hazards/*.cu")}
        launched = {(name, kernel) for name, text in sources.items() for kernel in re.findall(r"^// launch (\w+):", text, re.M)}
        self.assertEqual({(row["file"], row["kernel"]) for row in rows}, launched)
        marked = {(name, number) for name, text in sources.items()
                  for number, line in enumerate(text.split("\n"), 1) if " HAZARD(" in line}
        self.assertEqual({(row["file"], int(row["line"])) for row in rows if row["line"]}, marked)

    def test_programs_make_each_argument_and_launch_each_kernel(self):
        program = output(sys.executable, "tests/hazards/program.py", "tma.cu")
        for kernel in re.findall(r"^// launch (\w+):", read("tests/hazards/tma.cu"), re.M):
            self.assertIn(f"return launch((const void *){kernel}, ", program)
        self.assertIn("CUtensorMap argument2 = make_map(argument0, {8, 8}, {8, 4}, CU_TENSOR_MAP_SWIZZLE_NONE);", program)


# ---- reports ----


def report(page):
    """The lines of the report that a lesson shows."""
    words = "stage|device|problem|result|hazards|counters"
    found = re.findall(rf"^    ((?:{words}) .*(?:\n {{14}}.*)*)$", read(page), re.MULTILINE)
    return [line.strip() for lines in found for line in lines.splitlines()]


class Reports(unittest.TestCase):
    def test_are_what_the_programs_print(self):
        """With all numbers: the emulator counts the same in each run."""
        for page in LESSONS:
            stage = page.split("/")[1]
            printed = " ".join(output(program(number_of(stage)), "--device=emulator").split())
            shown = report(page)
            self.assertGreaterEqual(len(shown), 6, f"{stage} shows no report")
            for line in shown:
                with self.subTest(stage, line=line):
                    self.assertIn(" ".join(line.split("...")[0].split()), printed)

    def test_of_other_commands_are_what_they_print(self):
        """Those of stages and of make explain; tests/test_course.py has the others of the course."""
        commands = set()
        for page in PAGES:
            for command, lines in figures.printed_blocks(read(page)):
                if command.startswith(("./", "python3 common/course/explain.py")):
                    commands.add(command)
                    printed = " ".join(output(*command.split()).split())
                    for line in lines:
                        with self.subTest(page, line=line):
                            self.assertIn(line, printed)
        self.assertGreaterEqual(len(commands), 5)


# ---- links and commands ----


def headings(page):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", read(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def code(page):
    """The lines of code on a page: those of blocks, and what stands between backticks."""
    text = read(page)
    fenced = re.findall(r"^```.*\n((?:.*\n)*?)```$", text, re.MULTILINE)
    indented = re.findall(r"^    (.*)$", text, re.MULTILINE)
    inline = [" ".join(words.split()) for words in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    return [line for block in fenced for line in block.splitlines()] + indented + inline


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", read(page)):
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                with self.subTest(page, link=link):
                    self.assertTrue("://" in link or os.path.exists(target), "there is no such file")
                    self.assertTrue(not anchor or "://" in link or anchor in headings(target), "no such heading")

    def test_show_every_picture_that_is_kept(self):
        """But those that make trace-NN and make bench draw for their user."""
        shown = {os.path.basename(link) for page in PAGES for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", read(page))}
        kept = {os.path.basename(path) for path in glob.glob("plots/nvidia-h200-*.svg") + glob.glob("plots/figure-*.svg")}
        self.assertEqual(kept - shown, set())


def commands_of_the_course():
    """What course.py, quiz.py and case.py know: try-03, try-03-1, hint-03-1, break-03-1b, quiz-01, case-01, ..."""
    for stage in STAGES:
        number = number_of(stage)
        yield f"try-{number}-0"
        tasks = changes(stage, "tasks")
        for key in ("", *(f"-{task.key}" for task in tasks)) if tasks else ():
            yield from (f"{word}-{number}{key}" for word in ("try", "hint", "solution", "grade"))
        yield from (f"break-{number}-{change.key}" for change in changes(stage, "breaks"))
    for path in glob.glob("notes/quizzes/*.md"):
        yield f"quiz-{os.path.basename(path)[:2]}"
    for name in CAPSTONES:
        yield from (f"{word}-{name}" for word in ("capstone", "solution", "grade"))
    for path in glob.glob("examples/cases/*/README.md"):
        yield f"case-{os.path.basename(os.path.dirname(path))[:2]}"


class Commands(unittest.TestCase):
    def test_of_make_have_a_target(self):
        targets = set(re.findall(r"^([\w./-]+):", output("make", "-prq", ":"), re.MULTILINE))
        targets.update(commands_of_the_course())
        for page in PAGES:
            for line in code(page):
                for words in re.findall(r"(?:^|&& |; )(?:\w+=\S+ )*make ((?:[^&;|#]|\\.)*)", line):
                    for word in re.sub(r"\w+=('[^']*'|\"[^\"]*\"|\S*)", "", words).split(" > ")[0].split():
                        if re.fullmatch(r"[a-z][a-z0-9-]*", word):
                            self.assertIn(word, targets, f"{page}: {line}")

    def test_of_stages_have_their_options(self):
        for page in PAGES:
            for line in code(page):
                for number, words in re.findall(r"\./stage-(\d\d[a-z]?)\b((?: --[^\s;&|>]+)*)", line):
                    self.assertIn(number, map(number_of, STAGES), f"{page}: {line}")
                    known = re.findall(r"^  (--[\w-]+)", output(program(number), "--help"), re.MULTILINE)
                    for option in re.findall(r"(--[\w-]+)", words):
                        self.assertIn(option, [*known, "--help"], f"{page}: {line}")


# ---- the course ----

def section(page, heading):
    """What stands below a heading, up to the next."""
    return (re.findall(rf"^## {heading}\n((?:(?!^## ).*\n?)*)", read(page), re.MULTILINE) or [""])[0]


def items(text):
    """The numbered items of a list, by number."""
    return {int(number): item for number, item in re.findall(r"^(\d+)\. ((?:(?!^\d+\. ).*\n?)*)", text, re.MULTILINE)}


class Course(unittest.TestCase):
    """Each lesson has tasks to write, mistakes to see, and answers. (tests/test_course.py runs them.)"""

    def test_has_tasks_for_each_stage(self):
        total = 0
        capstones = {capstone.stage: capstone.name for capstone in CAPSTONES.values()}
        for stage in STAGES:
            with self.subTest(stage):
                tasks = changes(stage, "tasks")
                if stage in capstones:
                    self.assertEqual(tasks, [], "a capstone has no hole")
                    self.assertIn(f"make capstone-{capstones[stage]}", section(f"stages/{stage}/README.md", "Write it"))
                    continue
                total += len(tasks)
                self.assertIn(len(tasks), range(2, 6), "2 to 5 tasks a stage")
                for task in tasks:
                    self.assertEqual(len(task.all("Hint")), 3, task.path)
                    self.assertIn(f"TASK {number_of(stage)}-{task.key}.", task.patch, task.path)
                    self.assertIn(f"make try-{number_of(stage)}-{task.key}", section(f"stages/{stage}/README.md", "Write it"))
        self.assertGreaterEqual(total, 35)

    def test_has_a_command_for_each_mistake(self):
        for stage in STAGES:
            with self.subTest(stage):
                made = {int(re.match(r"\d+", change.key)[0]) for change in changes(stage, "breaks")}
                described, _, _ = section(f"stages/{stage}/README.md", "Break it").partition("<details>")
                self.assertEqual(made, set(items(described)))
                for change in changes(stage, "breaks"):
                    self.assertTrue(change.all("Shows"), change.path)

    def test_is_told_in_2000_words_a_lesson(self):
        """Prose alone: without tables, code, answers and the comments that found figures."""
        for page in LESSONS:
            text = re.sub(r"<details>.*?</details>|^```.*?^```$|<!--.*?-->", "", read(page), flags=re.DOTALL | re.MULTILINE)
            prose = re.sub(r"^(    .*|\s*\|.*)$", "", text, flags=re.MULTILINE)
            with self.subTest(page):
                self.assertLessEqual(len(prose.split()), 2000)

    def test_has_an_index_of_all_mistakes(self):
        self.assertEqual(read(mistakes.PAGE), mistakes.page(read(mistakes.PAGE)), "python3 common/course/mistakes.py writes it")

    def test_answers_each_question(self):
        for page in LESSONS:
            described, _, answers = section(page, "Break it").partition("<details>")
            asked = {number for number, item in items(described).items() if "?" in re.sub("`[^`]*`", "", item)}
            with self.subTest(page):
                self.assertEqual(asked - set(items(answers)), set(), "questions without an answer")
                for numbers in items(described), items(answers):  # Markdown counts on, whatever number stands there
                    self.assertEqual(list(numbers), list(range(1, len(numbers) + 1)), "a number is left out")


# Lessons that still print more of a task's lines, or set the task below the report. A lesson leaves the list when it is
# rewritten; none comes back.


def squeezed(line):
    """A line of code without its comment and its white space."""
    return "".join(re.sub(r"//.*", "", line).split())


def solution(task):
    """The lines that a task's patch takes away: no blank lines, comments, braces and calls of trace."""
    lines = [squeezed(line[1:]) for line in task.patch.splitlines() if re.match(r"-(?!-- )", line)]
    return [line for line in lines if line.strip("{};") and not line.startswith("trace")]


def told(task, text):
    """How many of them stand in a lesson's blocks of code. The longest come first: one may be part of another."""
    fenced = "".join(re.findall(r"^```.*\n((?:.*\n)*?)```$", text, re.MULTILINE)).splitlines()
    blocks, count = "".join(map(squeezed, fenced + re.findall(r"^    (.*)$", text, re.MULTILINE))), 0
    lines = solution(task)
    for line in sorted(set(lines), key=len, reverse=True):
        if line in blocks:
            count += lines.count(line)
            blocks = blocks.replace(line, "")
    return count


class WriteFirst(unittest.TestCase):
    """Try, then read: the task comes first, and at most a quarter of its lines stand in its lesson."""

    def test_lessons_do_not_print_what_their_tasks_ask_for(self):
        for stage in STAGES:
            if not changes(stage, "tasks"):  # a capstone
                continue
            text = re.sub("<!--.*?-->", "", read(f"stages/{stage}/README.md"), flags=re.DOTALL)
            shares = {task.key: told(task, text) / len(solution(task)) for task in changes(stage, "tasks")}
            late = text.index("\n## Write it\n") > text.index("\n    stage     ")
            with self.subTest(stage):
                self.assertFalse(late, "the tasks stand below the report")
                self.assertLessEqual(max(shares.values()), 0.25, shares)

    def test_lines_are_found_however_they_are_set(self):
        """Squeezed, without their comments, in a block; a brace is no line, and prose is no code."""
        task = Change(glob.glob("stages/03-cp-async/tasks/2-*.patch")[0])
        lines = solution(task)
        self.assertEqual((lines[0], len(lines)), ("cp_async_wait<0>();", 3))
        self.assertEqual(told(task, "Then `__syncthreads();` follows.\n"), 0)
        self.assertEqual(told(task, "Text:\n\n    __syncthreads( );  // all\n    cp_async_wait<0>();\n"), 2)


# ---- the ladder ----


class Ladder(unittest.TestCase):
    def test_has_a_lesson_for_each_rung_and_the_path_names_it(self):
        lessons = [f"stages/{stage}/README.md" for stage in STAGES]
        self.assertEqual([lesson for lesson in lessons if lesson not in LESSONS], [], "these are not there")
        text = read("notes/path.md")
        self.assertEqual([lesson for lesson in lessons if f"(../{lesson})" not in text], [], "no link in notes/path.md")

    def test_shows_what_is_new_in_each_rung(self):
        """How much that may be, no number says: a rung is one idea."""
        for stage in rungs(backward=False)[1:] + rungs(backward=True)[1:]:
            first = output("sh", "common/build/diff.sh", number_of(stage)).splitlines()[0]
            self.assertGreater(int(re.search(r"(\d+) new device lines", first)[1]), 0, first)


if __name__ == "__main__":
    unittest.main(verbosity=0)
