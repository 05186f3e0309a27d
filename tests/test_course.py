"""The course keeps its word: each mistake shows what its lesson says; each task fails as given and passes when solved.

Runs in the repository's root: python3 tests/test_course.py [stage numbers] [classes of tests]. QUICK=1 in the
environment leaves out what costs most and shows least: ptxas where no lesson speaks of it, and kernels that no run of
the mistake or task launches. A third of the time remains. PART=2/3 tests a third of the mistakes, tasks and attempts
(part.py).
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
import holes
from change import attempts, text_of
from diagnosis import diagnosis
from part import part_of
from workshop import make

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
        for word, (code, text) in all_at_once(show, part_of(words)):
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
        self.tasks = part_of(task for stage in STAGES for task in course.tasks_of(stage))

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


def solved(task, path):
    """A learner's file when the task is solved with the stage's lines: the later holes are there."""
    return "\n".join(holes.with_holes(path, [hole for hole in holes.holes_of(task.stage, path, task.key)
                                             if hole.task != int(task.key)])[0])


class Holes(unittest.TestCase):
    """A learner's file has the holes of later tasks, and the judge puts the stage's lines there."""

    def setUp(self):
        self.files = [(task, path) for stage in STAGES for task in course.tasks_of(stage) for path in task.files]

    def filled(self, name, path, text):
        stage = next(stage for stage in course.STAGES if course.number_of(stage) == name.split("-")[0])
        lines, begun = holes.filled(stage, path, name.split("-")[1], text, "mine.c")
        return "\n".join(holes.without_directives(lines)), begun

    def test_are_there_from_the_first_task_on(self):
        """All tasks of a stage fit together, and each has a hole in every file that it is about."""
        for stage in STAGES:
            tasks = course.tasks_of(stage)
            for path in {path for task in tasks for path in task.change.files}:
                with self.subTest(path):
                    self.assertEqual({str(hole.task) for hole in holes.holes_of(stage, path, tasks[0].key)},
                                     {task.key for task in tasks if path in task.change.files})

    def test_later_ones_are_filled_with_the_lines_of_the_stage(self):
        """A solved file becomes the stage's. One as it was given lacks its own task's lines alone."""
        for task, path in self.files:
            with self.subTest(task.name, path=path):
                self.assertEqual(self.filled(task.name, path, solved(task, path)), (text_of(path), {}))
                own = [hole for hole in holes.holes_of(task.stage, path, task.key) if hole.task == int(task.key)]
                self.assertEqual(self.filled(task.name, path, task.given(path)),
                                 ("\n".join(holes.with_holes(path, own)[0]), {}))

    def test_lines_keep_their_numbers(self):
        """Each line that the compiler gets is the learner's or the stage's with that number, and none is left out."""
        for task, path in self.files:
            mine, own, number, previous, left = solved(task, path).split("\n"), text_of(path).split("\n"), 0, "", set()
            for line in holes.filled(task.stage, path, task.key, "\n".join(mine), "mine.c")[0]:
                directive = re.match(r"#line (\d+)", line)
                if directive:
                    self.assertFalse(previous.endswith("\\"), f"{task.name}, {path}: inside of a macro")
                    number = int(directive[1]) - 1
                else:
                    number += 1
                    left.add(number)
                    stands = own[number - holes.STAGE - 1] if number > holes.STAGE else mine[number - 1]
                    if line != stands:
                        self.fail(f"{task.name}, {path}: {number}: {line}")
                previous = line
            later = [hole for hole in holes.holes_of(task.stage, path, task.key) if hole.task != int(task.key)]
            for hole in holes.with_holes(path, later)[1]:
                left.update(range(hole.first + 1, hole.end + 1))
            for hole in later:
                left -= {holes.STAGE + line + 1 for line in range(hole.first, hole.end)}
            self.assertEqual(left, set(range(1, len(mine) + 1)), (task.name, path))

    def test_a_file_that_was_begun_when_it_had_one_hole_stays(self):
        for task, path in self.files:
            own = [hole for hole in holes.holes_of(task.stage, path, task.key) if hole.task == int(task.key)]
            for text in ("\n".join(holes.with_holes(path, own)[0]), text_of(path)):
                with self.subTest(task.name, path=path):
                    self.assertEqual(holes.filled(task.stage, path, task.key, text, "mine.c"), (text.split("\n"), {}))

    def test_that_the_learner_has_begun_stay(self):
        """And those beside which the learner has written something do not."""
        task, path = course.current("02c-lean-softmax", "1"), "stages/02c-lean-softmax/kernel.cu"
        text = solved(task, path)
        hole = [one for one in holes.with_holes(path, holes.holes_of(task.stage, path, "1"))[1] if one.task == 3][0]
        last = "\n".join(hole.text) + "\n"
        written = "    rows.max[h] = max[h];\n"
        for changed, begun in ((text.replace(last, last + written), [3]),  # below the comment
                               (text.replace(last, written), [3]),         # in its place
                               (text.replace(hole.text[0], hole.text[0] + " and more"), [3]),
                               (text.replace(last, last + "\n\n"), []),
                               (text.replace(last, "    // a note of mine\n" + last), []),
                               (text + "// a note of mine\n", []),
                               ("// a note of mine\n\n" + text, [])):
            with self.subTest(changed[:40], begun=begun):
                self.assertEqual(text.count(last), 1)
                self.assertEqual(list(self.filled("02c-1", path, changed)[1]), begun)

    def test_that_only_take_lines_away_are_filled_where_these_were(self):
        """04-3 takes its lines from below products. A learner has changed the lines before or after them."""
        path = "stages/04-single-wgmma/kernel.cu"
        text = solved(course.current("04-single-wgmma", "1"), path)
        self.assertNotIn("wgmma_commit();", text)
        for old, new in (("operands.a, operands.b, accumulate);", "operands.a, operands.b,  accumulate);"),
                         ("multiply(sums, factors, ", "multiply(sums,  factors, "), ("  span.end =", "  span.end  ="),
                         ("    if (threadIdx.x == 0) clocks", "    if (!threadIdx.x) clocks")):
            with self.subTest(old):
                changed, begun = self.filled("04-1", path, text.replace(old, new))
                self.assertEqual((changed.replace(new, old), begun), (text_of(path), {}))
        begun = self.filled("04-1", path, text.replace("factors, 0);\n", "factors, 0);\n    wgmma_commit();\n"))[1]
        self.assertEqual(list(begun), [3])

    def test_reports_name_the_lines_of_the_learner(self):
        """Below filled holes: a name that the compiler does not know, and a barrier that is missing."""
        if "01b" not in NUMBERS:
            return
        with tempfile.TemporaryDirectory(dir="build") as mine:
            course.MINE = mine
            task, path = course.current("01b-wmma-pv", "1"), "stages/01b-wmma-pv/kernel.cu"
            task.begin()
            barrier = "    __syncwarp();  // all lanes have stored their part\n"
            before, _, after = solved(task, path).rpartition(barrier)
            self.assertIn("TASK 01b-3", before)

            def judged(words):
                with open(task.mine(path), "w", encoding="utf-8") as file:
                    file.write(before + words + after)
                passed, lines = course.judge(task, task.workshop(), quick=True, explain=lambda *_: [])
                return passed, "\n".join(lines)
            line = before.count("\n") + 1
            self.assertIn(f'{task.mine(path)}({line}): error: identifier "unknown" is undefined',
                          judged("unknown();\n")[1])
            passed, said = judged("")
            self.assertFalse(passed)
            found = {int(number) for number in re.findall(rf"{re.escape(task.mine(path))}:(\d+)", said)}
            self.assertIn("shared-memory race", said)
            self.assertLessEqual(found, set(range(line - 1, line + 4)))
            self.assertTrue(judged(barrier)[0])
            # The lines of the stage rely on a name that the learner has changed.
            before = "int own = threadIdx.x / WARP".join(before.rsplit("int warp = threadIdx.x / WARP", 1))
            number = text_of(path).partition("&weights[16 * warp]")[0].count("\n") + 1
            self.assertIn(f'{path}({number}): error: identifier "warp" is undefined', judged(barrier)[1])

    def test_in_host_code_show_the_line_of_the_learner(self):
        """gcc reads it from the file: the line below the holes of 13b-3 calls what does not exist."""
        if "13b" not in NUMBERS:
            return
        with tempfile.TemporaryDirectory(dir="build") as mine:
            course.MINE = mine
            task, path = course.current("13b-split-kv", "1"), "stages/13b-split-kv/stage.c"
            task.begin()
            with open(task.mine(path), "a", encoding="utf-8") as file:
                file.write("static int none = missing;\n")
            passed, lines = course.judge(task, task.workshop(), explain=lambda *_: [])
            line = text_of(task.mine(path)).count("\n")
            self.assertFalse(passed)
            self.assertIn(f"{task.mine(path)}:{line}:19: error: ", " ".join(lines))
            self.assertIn(f"{line} | static int none = missing;", " ".join(lines))

    def test_name_the_lines_of_a_file_that_is_the_stages(self):
        """Task 06-1 is in another file. The learner's kernel.cu has holes where the judge takes the stage's."""
        if "06" not in NUMBERS:
            return
        with tempfile.TemporaryDirectory(dir="build") as mine:
            course.MINE = mine
            task = course.current("06-tma", "1")
            task.begin()
            task.workshop()
            for path, shown in (("stages/06-tma/kernel.cu", "stages/06-tma/kernel.cu"),
                                ("common/harness/tensor_maps.c", f"{mine}/06/1/tensor_maps.c")):
                self.assertEqual(task.in_my_words(f"at {path}:56, called at 188"), f"at {shown}:56, called at 188")

    def test_reach_the_learner_when_the_stage_has_changed(self):
        """As after git pull: a comment, another hole's words and a line of the stage are new, and the hole of the task
        that is begun. What the learner has written stays."""
        path = "stages/02c-lean-softmax/kernel.cu"
        with tempfile.TemporaryDirectory(dir="build") as mine:
            course.MINE = mine
            task = course.current("02c-lean-softmax", "1")
            today = task.given(path)
            first, third = (re.search(rf"TASK 02c-{key}\. .*", today)[0] for key in "13")
            older = today.replace(first, "TASK 02c-1. Older.").replace(third, "TASK 02c-3. Older.")
            older = older.replace("#include", "#include <older.h>\n#include", 1)
            others = task.given
            task.given = lambda file: older if file == path else others(file)
            task.begin()
            written = "    // mine, in place of the hole's first line"
            changed = re.sub(r".*TASK 02c-1\. Older\.", written, older)
            with open(task.mine(path), "w", encoding="utf-8") as file:
                file.write(changed)
            task = course.current("02c-lean-softmax", "1")
            said = task.update()
            self.assertEqual(len(said), 1)
            self.assertIn(f"{task.mine(path)}: the stage has changed since you began.", said[0])
            self.assertEqual(text_of(task.mine(path)), re.sub(r".*TASK 02c-1\. .*", written, today))
            self.assertEqual(text_of(task.mine(path) + ".old"), changed)
            self.assertEqual(task.update(), [])

    def test_stay_in_a_solution(self):
        """make solution-02c-2 shows the lines of task 2, and of task 3, which stands below it, the hole."""
        code, text = command("solution-02c-2")
        self.assertEqual(code, 0)
        added = [line[1:] for line in text.splitlines() if re.match(r"\+(?!\+\+)", line)]
        taken = [line[1:] for line in course.current("02c-lean-softmax", "2").change.patch.splitlines()
                 if re.match("-(?!--)", line)]
        self.assertEqual(added, taken)
        self.assertIn("TASK 02c-3.", text)

    def test_words_of_both_files(self):
        names = {"stages/02/kernel.cu": "mine/02/1/kernel.cu"}
        for text, expected in (("stages/02/kernel.cu:44, called at 100000076",
                                "mine/02/1/kernel.cu:44, called at 76 of the stage"),
                               ("stages/02/kernel.cu:100000044, called at 76, at 80 from 100000090  block (0,0,0)",
                                "stages/02/kernel.cu:44, called at 76 of yours, at 80 of yours from 90  block (0,0,0)"),
                               ("stages/02/kernel.cu(100000044): error", "stages/02/kernel.cu(44): error"),
                               ("line 100000062 (called at 76) uses", "line 62 of the stage (called at 76) uses"),
                               ("1000000440 bytes", "1000000440 bytes")):
            self.assertEqual(holes.in_words(text, names), expected)


# The stages whose tasks have at least three wrong attempts and a right one each. The list only grows.
WITH_ATTEMPTS = ("00", "00b", "01", "01b", "02", "02b", "02c", "02d", "02e", "03", "04", "05", "05b", "06", "07", "07b",
                 "07c", "08", "08b", "08c", "09", "09b", "10", "10b", "10c", "11", "11b", "11c", "11d", "12", "12b", "12c", "12d",
                 "12e", "13", "13b", "13c", "13d", "13e", "13f", "13g")


class Attempts(unittest.TestCase):
    def setUp(self):
        self.attempts = []
        for stage in STAGES:
            those = [(task, attempt) for task in course.tasks_of(stage) for attempt in attempts(stage, task.key)]
            if "QUICK" in os.environ:
                right = [pair for pair in those if pair[1].all("Passes")]
                those = [pair for pair in those if pair not in right][:1] + right[:1]
            self.attempts += those
        self.attempts = part_of(self.attempts)

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
    built = make([f"stage-{number}" for number in NUMBERS])
    if built.returncode:
        sys.exit(built.stdout)
    unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[1:] if not word[0].isdigit()], verbosity=0)
