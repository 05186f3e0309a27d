"""The course keeps its word: each mistake shows what its lesson says; each task fails as given and passes when solved.

Runs in the repository's root: python3 tests/test_course.py [stage numbers] [classes of tests]. QUICK=1 in the
environment leaves out what costs most and shows least: ptxas where no lesson speaks of it, and kernels that no run of
the mistake or task launches. A third of the time remains.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

os.environ["MINE"] = "build/no-mine"  # tasks that a developer has begun link their programs to one name
sys.path.insert(0, "common/course")
# pylint: disable=wrong-import-position
import course
import figures
from change import attempts
from diagnosis import diagnosis

NUMBERS = [word for word in sys.argv[1:] if word[0].isdigit()] or [course.number_of(stage) for stage in course.STAGES]
NO_KERNEL = "the module has no kernel"  # with QUICK one may be left out that a run wants after all
STAGES = [stage for stage in course.STAGES if course.number_of(stage) in NUMBERS]


def command(word, mine="mine"):
    """The exit code of a command of the course, and what it prints."""
    done = subprocess.run([sys.executable, "common/course/course.py", word], env=dict(os.environ, MINE=mine), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def on_pages():
    """What the pages say that commands of the course print: {"break-05-1": lines}."""
    shown = {}
    for page in [*glob.glob("stages/*/README.md"), *glob.glob("notes/*.md")]:
        with open(page, encoding="utf-8") as file:
            for words, lines in figures.printed_blocks(file.read()):
                if words.startswith("make "):
                    shown.setdefault(words.removeprefix("make "), []).extend(lines)
    return shown


def all_at_once(function, things):
    """function(thing) of each, as many at a time as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(things, pool.map(function, things)))


class Shown(unittest.TestCase):
    def shows_the_lines_of_pages(self, word, text):
        """Whoever runs it has another folder, and with QUICK the stage's own program runs, with its PTX."""
        def bare(words):
            return re.sub(r"--ptx=\S+ ", "", re.sub(r"(?:\S*/)?(?=stage-\w+ --device)", "", words))
        printed = bare(" ".join(text.split()))
        for line in on_pages().get(word, []):
            self.assertIn(bare(line), printed)


class Mistakes(Shown):
    def test_show_what_the_lessons_say(self):
        def show(word):
            shown = command(word)
            for folder in (*glob.glob(f"build/course/{word}"), *glob.glob(f"build/course/{word}[a-z]")):
                shutil.rmtree(folder)  # a user keeps a few of them, but all take half a gigabyte
            return shown
        words = sorted({f"break-{course.number_of(stage)}-{change.key.rstrip('abcdefgh')}"
                        for stage in STAGES for change in course.changes(stage, "breaks")})
        for word, (code, text) in all_at_once(show, words):
            with self.subTest(word):
                self.assertEqual(code, 0, text)
                self.assertIn("as the lesson says", text)
                self.assertNotIn(NO_KERNEL, text)
                self.shows_the_lines_of_pages(word, text)

    def test_can_be_repeated_as_printed(self):
        """One that runs, one whose log is read, one whose build is refused."""
        for stage, word in (("02", "break-02-1"), ("00", "break-00-4"), ("04", "break-04-10")):
            if stage not in NUMBERS or "QUICK" in os.environ:
                continue
            lines = command(word)[1].splitlines()
            for number, line in enumerate(lines):
                if line.startswith("$ "):
                    done = subprocess.run(line[2:], shell=True, text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, check=False)
                    following = lines[number + 1].split("as the lesson says: ")[-1].split("kernels/")[-1].strip()
                    with self.subTest(word, line=line):
                        self.assertIn(" ".join(following.split()), " ".join(done.stdout.split()))


class Tasks(Shown):
    def setUp(self):
        self.tasks = [task for stage in STAGES for task in course.tasks_of(stage)]

    def test_fail_as_given(self):
        with tempfile.TemporaryDirectory(dir="build") as mine:
            course.MINE = mine
            pages = on_pages()

            def begin_and_try(task):
                command(f"try-{task.name}", mine)
                if "QUICK" not in os.environ or f"try-{task.name}" in pages:
                    return command(f"try-{task.name}", mine)
                begun = course.Task(task.stage, task.change)
                passed, lines = course.judge(begun, begun.workshop(), explain=lambda *_: [])
                return 0 if passed else 1, " ".join(lines)
            for task, (code, text) in all_at_once(begin_and_try, self.tasks):
                with self.subTest(task.name):
                    self.assertEqual(code, 1, text)
                    self.assertNotIn("it does not build", text)
                    self.assertNotIn(NO_KERNEL, text)
                    self.shows_the_lines_of_pages(f"try-{task.name}", text)

    def test_04_1_shows_wrong_distances_before_the_other_swizzles_are_written(self):
        if "04" not in NUMBERS:
            return
        with tempfile.TemporaryDirectory(dir="build") as mine:
            command("try-04-1", mine)
            path = os.path.join(mine, "04", "1", "kernel.cu")
            with open(path, encoding="utf-8") as file:
                hole = file.read()
            for leading, stride, differ in ((1024, 128, "16,384"), (128, 1024, "none")):
                first = (f"if (SWIZZLE == SWIZZLE_NONE) return "
                         f"matrix_descriptor(tile + slice * 256, {leading}, {stride}, SWIZZLE);")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(hole.replace("return matrix_descriptor(tile, 0, 0, SWIZZLE);",
                                            f"{first}\n  return matrix_descriptor(tile, 0, 0, SWIZZLE);"))
                self.assertIn(f"before that, {differ} of 16,384 numbers differ", command("try-04-1", mine)[1])

    def test_pass_when_solved(self):
        def judged(task):
            return course.judge(task, course.Stage(task.stage))
        for task, (passed, lines) in all_at_once(judged, self.tasks):
            with self.subTest(task.name):
                self.assertTrue(passed, lines)


# The stages whose tasks have at least three wrong attempts and a right one each. The list only grows.
WITH_ATTEMPTS = ("00", "00b", "01", "01b", "02", "02b", "02c", "02d", "02e", "03", "04", "05", "05b", "06", "07", "07b",
                 "07c", "08", "08b", "08c", "09", "09b", "10", "10b", "10c", "11", "11b", "11c", "11d", "12", "12b", "12c", "12d",
                 "12e", "13", "13b", "13c", "13d", "13e", "13f")


class Attempts(unittest.TestCase):
    def setUp(self):
        self.attempts = []
        for stage in STAGES:
            those = [(task, attempt) for task in course.tasks_of(stage) for attempt in attempts(stage, task.key)]
            if "QUICK" in os.environ:
                right = [pair for pair in those if pair[1].all("Passes")]
                those = [pair for pair in those if pair not in right][:1] + right[:1]
            self.attempts += those

    def test_get_the_verdict_that_they_deserve(self):
        """A wrong one fails and hears why ("Says:"); a right but different one passes ("Passes:"). Only PTX is made,
        unless ptxas is to refuse it. With QUICK there are two of each stage, a wrong one and a right one. Probes run
        where the report alone does not say why."""
        def judged(pair):
            task, attempt = pair
            workshop = course.Workshop(f"attempt-{task.name}-{os.path.basename(attempt.path)}", task.stage)
            workshop.change(attempt)
            says = [course.squeezed(words) for words in attempt.all("Says")]

            def explain(report, run):
                shown = course.squeezed(" ".join(course.first(course.trouble(report))))
                return [] if all(words in shown for words in says) else diagnosis(report, run)
            verdict = course.judge(task, workshop, quick="it does not build" not in attempt.all("Says"),
                                   passes=not says, explain=explain)
            shutil.rmtree(workshop.folder)
            return verdict
        for (_, attempt), (passed, lines) in all_at_once(judged, self.attempts):
            with self.subTest(attempt.path):
                text = course.squeezed(" ".join(lines))
                self.assertEqual(passed, bool(attempt.all("Passes")), text)
                self.assertNotIn(NO_KERNEL, text)
                self.assertEqual("it does not build" in text, "it does not build" in attempt.all("Says"), text)
                self.assertTrue(passed or attempt.all("Says"), "it must say why")
                for words in attempt.all("Says"):
                    self.assertIn(course.squeezed(words), text)

    def test_are_enough(self):
        for stage in STAGES:
            for task in course.tasks_of(stage):
                if course.number_of(stage) in WITH_ATTEMPTS:
                    right = [bool(attempt.all("Passes")) for attempt in attempts(stage, task.key)]
                    with self.subTest(task.name):
                        self.assertGreaterEqual((right.count(False), right.count(True)), (3, 1))
                        self.assertGreaterEqual(right.count(True), 1)

    def test_are_at_a_task(self):
        for stage in STAGES:
            tasks = [task.key for task in course.tasks_of(stage)]
            for attempt in course.changes(stage, "attempts"):
                with self.subTest(attempt.path):
                    self.assertIn(re.match(r"\d+", attempt.key)[0], tasks)


class Pages(unittest.TestCase):
    def test_show_what_commands_of_the_course_print(self):
        words = {f"break-{course.number_of(stage)}-{change.key.rstrip('abcdefgh')}"
                 for stage in course.STAGES for change in course.changes(stage, "breaks")}
        words |= {f"try-{task.name}" for stage in course.STAGES for task in course.tasks_of(stage)}
        self.assertGreater(len(on_pages()), 0)
        self.assertEqual(set(on_pages()) - words, set(), "no test runs these")


class Errors(unittest.TestCase):
    def test_name_what_is_wrong_and_what_there_is(self):
        """In one line, with exit code 2."""
        for word, line in (("try-3", "try-3: there is no such stage; there are 00 00b 01 01b"),
                           ("hint-00-x", "stage 00 has the tasks 1, 2, 3, 4, and no x"),
                           ("break-00-9", "lesson 00 has the mistakes 1, 2, 3, 4, 4b, 5, 6, 6b, and no 9"),
                           ("break-00", "lesson 00 has the mistakes 1, 2, 3, 4, 4b, 5, 6, 6b, and one must be named"),
                           ("solve-00", "solve-00: commands are try, hint, solution, grade, break")):
            with self.subTest(word):
                code, text = command(word)
                self.assertEqual((code, text.count("\n")), (2, 1), text)
                self.assertIn(line, text)
        with tempfile.NamedTemporaryFile(dir="build") as file:
            self.assertEqual(command("try-00", file.name), (2, f"course: {file.name}/00: Not a directory\n"))


class Reports(unittest.TestCase):
    def test_of_what_is_wrong_show_two_elements_and_do_not_count_the_rest(self):
        elements = [" " * 10 + f"O[0][0][0][{d}]: got 1, expected 2" for d in range(8)]
        lines = ["stage     00", "result    WRONG: 20 of 40 elements differ", *elements, " " * 10 + "and 12 more", "hazards   none"]
        self.assertEqual(course.trouble("\n".join(lines)), [lines[1], *elements[:2], lines[-1]])


class Grades(unittest.TestCase):
    def test_show_the_first_thing_that_is_wrong(self):
        lines = ["stage-03 --device=emulator", "result    WRONG: 2 of 4 elements differ", " " * 14 + "O[0]: got 1",
                 "hazards   2", "race: one", "    at a.cu:1", "    met 3 times", "race: two", "    at a.cu:2"]
        self.assertEqual(course.briefly(lines), [*lines[:2], *lines[3:6]])


if __name__ == "__main__":
    # Before the tests: they run side by side, and would build one stage several times at once.
    if subprocess.run(["make", "--no-print-directory", *(f"stage-{number}" for number in NUMBERS)], check=False).returncode:
        sys.exit(2)
    unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[1:] if not word[0].isdigit()], verbosity=0)
