"""The course: tasks to write, mistakes to see, and what is done. `make help` lists its commands.

    python3 common/course/course.py COMMAND-NN[-K]

COMMAND is try, hint, solution, grade or break; NN is a stage, K one of its tasks or mistakes. And "progress"; and what
capstone.py does, "capstone-gemm".
"""
import glob
import os
import re
import shutil
import sys
import textwrap

import altered_ptx
import capstone
import holes
from change import changes, goal_parts
from diagnosis import diagnosis
from learner import (MINE, Wrong, indented, keep_given, merge_update, note_passed, passed_as, run_command,
                     state_of)
from workshop import Workshop, make, number_of, read, run

STAGES = sorted(os.path.basename(path.rstrip("/")) for path in glob.glob("stages/[0-9][0-9]*-*/"))
QUICK = "QUICK" in os.environ  # for tests alone, where all is built: see tests/test_course.py
LINES = 12  # of what is wrong, at most

# What an attention kernel must get right: short and long sequences, ends of tiles, masks, inputs, schedules.
RUNS = ("--seqlen=64", "", "--causal --head-dim=128", "--seqlen=97 --head-dim=128", "--seqlen=1 --causal",
        "--seqlen=300 --causal --schedule=1", "--seqlen=200 --head-dim=128 --input=large --schedule=2",
        "--seqlen=640 --heads=1 --causal --schedule=3", "--seqlen=300 --input=waves --head-dim=128 --schedule=4",
        "--seqlen=2 --heads=32 --causal --input=large")
# What a decode kernel must get right: few and many keys, ends of tiles, groups of query heads, inputs, schedules.
DECODE_RUNS = ("", "--keys=1 --heads=1 --kv-heads=1", "--keys=2000 --head-dim=128",
               "--keys=140 --heads=6 --kv-heads=2 --head-dim=128 --schedule=1",
               "--keys=385 --heads=16 --kv-heads=1 --input=large --schedule=2",
               "--keys=1 --heads=64 --kv-heads=64 --input=large",
               "--keys=520 --heads=9 --kv-heads=1 --head-dim=128 --batch=2 --input=waves --schedule=3",
               "--input=vanish --schedule=4")
ALLOWABLE = ("spills", "stack", "serialised")  # where a patch allows all three, ptxas has nothing to refuse
STEPS = "--step-limit=20000000"


# ---- what is wrong, in a dozen lines ----

BACKGROUND = ("stage ", "device ", "problem ", "          (defaults", "          against fp64", "accuracy ",
              "checksum ", "counters ", "          global", "          shared", "          tensor cores",
              "          besides", "          bank conflicts")
RESULT = 7  # lines of a result, at most: stage 04 has a table


def trouble(text):
    """The lines of a report that say what is wrong: the result, two of the elements, the hazards."""
    lines = [line for line in text.splitlines() if not line.startswith(BACKGROUND)]
    elements = [line for line in lines if re.match(r" +\w+\[.*got| {10}and [\d,]+ more$", line)]
    lines = [line for line in lines if line not in elements[2:]]
    hazards = next((i for i, line in enumerate(lines) if line.startswith("hazards")), len(lines))
    return lines[:min(hazards, RESULT)] + lines[hazards:hazards + 1] + faults_first(lines[hazards + 1:])


def faults_first(lines):
    """The hazards of a report, faults before what is formal: only a dozen lines will be shown. A bad descriptor keeps its
    place, as faults may follow from it."""
    blocks = []
    for line in lines:
        if line.startswith("    ") and blocks:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    blocks.sort(key=lambda block: block[0].startswith(("formal: ", "note: "))
                and not block[0].startswith("formal: bad descriptor"))
    return [line for block in blocks for line in block]


def headlines(lines):
    """Without what explains a hazard: its first line and its places stay."""
    return [line for line in lines if not re.match(r"    (?!at |and |  )", line)]


def first(lines, most=LINES):
    return lines[:most] + (["..."] if len(lines) > most else [])


# ---- tasks ----

class Stage:
    """The stage itself in the place of a workshop: a solved task. The same options report the same: they run once."""

    runs = {}

    def __init__(self, stage):
        self.stage = stage
        self.program = f"stage-{number_of(stage)}"

    def build(self, *_):
        return "", True

    def kernels(self):
        return os.path.join("build", "kernels", f"{self.stage}.ptx")

    def command(self, options):
        return f"./{self.program} --device=emulator {options}".rstrip()

    def run(self, options):
        key = self.program, tuple(options)
        if key not in self.runs:
            self.runs[key] = run(self.program, ["--device=emulator", *options])
        return self.runs[key]


class Task:
    """Task K of a stage: its hole, and the user's copy of the files, mine/NN/K. It has later tasks' holes as well."""

    def __init__(self, stage, change):
        self.stage, self.change = stage, change
        self.key = change.key if change else "0"
        self.name = f"{number_of(stage)}-{self.key}"
        self.folder = os.path.join(MINE, number_of(stage), self.key)
        own = [path for suffix in ("cu", "h", "c") for path in glob.glob(f"stages/{stage}/*.{suffix}")]
        self.files = sorted({*own, *(change.files if change else [])})
        self.of_the_stage = set()  # files that the judge takes from the stage: none of their lines is the user's
        self.begun_later = []  # for each later hole that the user has begun, a line that says so

    def title(self):
        return self.change.title if self.change else "the stage as it is, to change as you like"

    def mine(self, path):
        return os.path.join(self.folder, os.path.basename(path))

    def begun(self):
        return os.path.isdir(self.folder)

    def given(self, path):
        """A file of the stage as the learner gets it."""
        return holes.given(self.stage, path, self.key) if self.change else read(path)

    def later(self):
        """The keys of later tasks that have holes in these files."""
        return sorted({str(hole.task) for path in self.files if self.change
                       for hole in holes.holes_of(self.stage, path, self.key)} - {self.key})

    def begin(self):
        """Copies the stage with the holes to mine/NN/K."""
        os.makedirs(self.folder)
        for path in self.files:
            keep_given(self.folder, os.path.basename(path), self.given(path))
            with open(self.mine(path), "w", encoding="utf-8") as file:
                file.write(self.given(path))

    def update(self):
        """Merges into the user's files what has changed in the stage since they were begun: a line about each."""
        return [line for line in (merge_update(self.folder, os.path.basename(path), self.given(path))
                                  for path in self.files) if line]

    def state(self):
        """What identifies the user's files as they are now."""
        return state_of(map(self.mine, self.files))

    def passed(self):
        """Whether the files passed as they are now; None: they passed and have changed."""
        state = passed_as(self.folder)
        return (True if state == self.state() else None) if state else False

    def in_my_words(self, text):
        """Paths of the stage as paths of the user's files."""
        return holes.in_words(text, {path: self.mine(path) for path in self.files if path not in self.of_the_stage})

    def link(self, program):
        """Lets the user's folder have the program that was made of its files: runs are printed with this name."""
        path = os.path.join(self.folder, os.path.basename(program))
        try:
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(os.path.abspath(program), path)
        except OSError:  # a folder of another one's
            return program
        return path

    def workshop(self):
        """The stage with the user's files. The holes of later tasks have the stage's lines."""
        workshop = Workshop(f"try-{self.name}", self.stage)
        self.begun_later, self.of_the_stage = [], set()
        for path in self.files:
            if not os.path.exists(self.mine(path)):
                raise Wrong(f"{self.mine(path)} is gone; rm -r {self.folder} lets make try-{self.name} begin anew")
            mine = read(self.mine(path))
            lines, begun = (holes.filled(self.stage, path, self.key, mine, self.mine(path)) if self.change else
                            (mine.split("\n"), {}))
            self.begun_later += [f"{self.mine(path)}:{line}: you have begun task {number_of(self.stage)}-{key}, so its "
                                 "hole stays as it is" for key, line in begun.items()]
            if lines == mine.split("\n"):
                workshop.replace(path, self.mine(path))
            elif holes.without_directives(lines) != read(path).split("\n"):
                workshop.write(path, "\n".join(lines))
            else:
                self.of_the_stage.add(path)
        return workshop


def runs_of(stage):
    """The runs that judge a task which names none."""
    with open(f"stages/{stage}/stage.c", encoding="utf-8") as file:
        return DECODE_RUNS if ".decode =" in file.read() else RUNS


def judge(task, workshop, quick=QUICK, passes=False, explain=diagnosis):
    """Builds and runs a workshop as the task demands: (whether it passed, the lines that say why or why not). For
    tests: `quick` makes only PTX, and `passes` says what is expected: of one that fails the first run's kernel will
    do."""
    allow = " ".join(task.change.all("Allow")) if task.change else ""
    fields = {field: task.change.with_causes(field) if task.change else [] for field in ("Run", *CHECKS, "Goal")}
    runs = fields["Run"] or [(options, None) for options in runs_of(task.stage)]
    launched = [options for options, _ in sum(fields.values(), start=[] if fields["Run"] else runs)]
    text, built = workshop.build(allow, launched if quick else None, None if passes else 1)
    if not built:
        return False, ["it does not build:", *first(task.in_my_words(text).splitlines())]
    if task.begun() and isinstance(workshop, Workshop) and not workshop.ptx:
        workshop.program = task.link(workshop.program)
    notes = []
    for options, cause in runs:
        text, code = workshop.run([STEPS, "--strict", *options.split()])
        notes += re.findall(r"^note: .*", text, re.MULTILINE)
        if code:
            why = [f"cause     {cause}"] if cause else explain(text, lambda others: workshop.run([STEPS, *others]))
            return False, [workshop.command(options), *first(trouble(task.in_my_words(text))), *why]
    for check, options, cause in ((check, *one) for field, check in CHECKS.items() for one in fields[field]):
        met, lines = check(task, workshop, options)
        if not met:
            return False, lines + ([f"cause     {cause}"] if cause else [])
    said = [f"right in {len(runs)} run{'s' * (len(runs) > 1)} on the emulator, without a hazard", *notes[:1]]
    for goal, cause in fields["Goal"]:
        met, line = reaches(goal, workshop)
        said.append(line)
        if not met:
            return False, [line] + ([f"cause     {cause}"] if cause else [])
    fast, lines = on_the_gpu(task, workshop)
    return fast, said + lines if fast else lines


def orders_its_additions(task, workshop, options):
    """Whether something orders all additions to global memory, and what is reported if nothing does."""
    text, code = altered_ptx.without_atomics(workshop, [STEPS, *options.split()])
    return not code, [f"with {options}, if additions to global memory were not atomic:",
                      *first(trouble(task.in_my_words(text)))]


def begins_alike(_, workshop, words):
    """Whether the first blocks of a kernel have the same tiles as the stage's. `words`: "16 backward --causal"."""
    blocks, kernel, *options = words.split()
    found, expected = (altered_ptx.gradients_of_first_blocks(program, kernel, blocks, options)
                       for program in (workshop, Stage(workshop.stage)))
    return found == expected, [f"with {' '.join(options)} the first {blocks} blocks have other tiles than they should"]


def numbers_alike(_, workshop, words):
    """Whether tiles have the same numbers as the stage's, from a number on. `words`: "14 --causal"."""
    number, *options = words.split()
    found, expected = (altered_ptx.rows_of_first_tiles(program, number, options)
                       for program in (workshop, Stage(workshop.stage)))
    return found == expected, [f"with {' '.join(options)} the tiles from number {number} on are not those that they "
                               "should be"]


def shares_alike(_, workshop, words):
    """Whether the blocks of a kernel load about as much as each other. `words`: "5 decode 8192 --splits=5": the five
    blocks' bytes differ by at most 8192."""
    blocks, kernel, most, *options = words.split()
    found = altered_ptx.bytes_of_blocks(workshop, kernel, int(blocks), options)
    return max(found) - min(found) <= int(most), [
        f"with {' '.join(options)} the blocks load {', '.join(f'{count:,}' for count in found)} bytes; two of them may "
        f"differ by {int(most):,}"]


def warps_alike(_, workshop, words):
    """Whether the warps of a kernel execute about as many loads from global memory as each other. `words`: "4 combine
    100 --splits=64": the four warps' loads differ by at most 100."""
    warps, kernel, most, *options = words.split()
    found = altered_ptx.loads_of_warps(workshop, kernel, int(warps), options)
    return max(found) - min(found) <= int(most), [
        f"with {' '.join(options)} the warps of {kernel} execute {', '.join(f'{count:,}' for count in found)} loads "
        f"from global memory; two of them may differ by {int(most):,}"]


def has_room(_, workshop, words):
    """Whether the allocation has the right size to which a kernel's parameter points. `words`: "8320 decode 2
    --splits=4": parameter 2 of decode points to 8320 bytes."""
    expected, kernel, parameter, *options = words.split()
    found = altered_ptx.bytes_at_parameter(workshop, kernel, parameter, options)
    return found == int(expected), [f"with {' '.join(options)} the memory has {found or 0:,} bytes, and "
                                    f"{int(expected):,} are needed"]


CHECKS = {"Ordered": orders_its_additions, "First": begins_alike, "Tiles": numbers_alike, "Shares": shares_alike,
          "Warps": warps_alike, "Room": has_room}


def counters(program, options):
    """All counters of one run of a workshop or a stage, by name."""
    text, _ = program.run(["--counters-csv=-", *options.split()])
    rows = [line for line in text.splitlines() if line.count(",") > 20]
    return dict(zip(rows[0].split(","), rows[1].split(",")))


def reaches(goal, workshop):
    """Whether a task's goal is met, and a line about it."""
    words, counter, relation, share, limit, options = goal_parts(goal)
    number = int(counters(workshop, options or "")[counter])
    if limit == "stage":
        limit = counters(Stage(workshop.stage), options or "")[counter]
    limit = int(limit) * int(share or 100) // 100
    met = {"=": number == limit, "<=": number <= limit, ">=": number >= limit}[relation]
    most = {"=": "", "<=": "at most ", ">=": "at least "}[relation]
    return met, f"{words}: {number:,} ({options or 'default options'}; the goal is {most}{limit:,})"


LEAST_SPEED = 0.8  # of the stage's own, on a GPU


def on_the_gpu(task, workshop):
    """Where there is a GPU: right there, too, and nearly as fast as the stage."""
    stage = f"stage-{number_of(task.stage)}"
    text, code = run(workshop.program, ["--device=gpu", "--repeat=0"])
    if code == 3:
        return True, []
    if code:
        return False, [f"{workshop.program} --device=gpu", *first(trouble(task.in_my_words(text)))]
    times = [median_ms(program) for program in (stage, workshop.program)]
    if None in times:  # stage 04 has times of its own
        return True, ["right on the GPU"]
    speed = times[0] / times[1]
    return speed >= LEAST_SPEED, [f"on the GPU {speed:.2f} times as fast as stage {number_of(task.stage)} "
                                  f"(the goal is at least {LEAST_SPEED})"]


def median_ms(program):
    text, _ = run(program, ["--device=gpu", "--csv=-"])
    rows = [line.split(",") for line in text.splitlines() if line.count(",") > 5]
    return float(rows[1][rows[0].index("median_ms")]) if len(rows) == 2 and "median_ms" in rows[0] else None


# ---- commands ----

def tasks_of(stage):
    return [Task(stage, change) for change in changes(stage, "tasks")]


def current(stage, key):
    """The task with this key; without one, the first that has not passed."""
    if key == "0":
        return Task(stage, None)
    tasks = tasks_of(stage)
    if key:
        found = [task for task in tasks if task.key == key]
        if not found:
            raise Wrong(f"stage {number_of(stage)} has the tasks {', '.join(task.key for task in tasks)}, and no {key}")
        return found[0]
    return next((task for task in tasks if not task.passed()), tasks[-1])


def made(stage):
    """The stage's own program, and with it everything that a workshop shares."""
    if QUICK:
        return
    done = make([f"stage-{number_of(stage)}"])
    if done.returncode:
        raise Wrong(f"stage {number_of(stage)} itself does not build:\n{done.stdout}")


def command_try(stage, key):
    task = current(stage, key)
    if not task.begun():
        task.begin()
        where = ", ".join(task.mine(path) for path in (task.change.files if task.change else task.files))
        print(f"Task {task.key} of stage {number_of(stage)}: {task.title()}.\n\n    edit {where}\n"
              f"    make try-{task.name}       builds and judges it")
        if task.change:
            print(f"    make hint-{task.name}      one hint after another\n"
                  f"    make solution-{task.name}  the stage's own lines")
        later = task.later()
        if later:
            words = (f"hole of task {later[0]}" if len(later) == 1 else
                     f"holes of tasks {', '.join(later[:-1])} and {later[-1]}")
            print(f"\nYou also see the {words}. Leave {'it' if len(later) == 1 else 'them'} for later: the judge puts "
                  "the stage's lines there.")
        return 0
    made(stage)
    updated = task.update()
    passed, lines = judge(task, task.workshop())
    lines += updated + task.begun_later
    if not passed:
        print(f"NOT YET  task {task.name}: {task.title()}\n{indented(lines)}")
        return 1
    print(f"PASSED  task {task.name}: {task.title()}\n{indented(lines)}")
    if task.change:
        note_passed(task.folder, task.state())
        left = [other for other in tasks_of(stage) if not other.passed()]
        print(f"make try-{left[0].name} is next: {left[0].title()}" if left else
              f"All tasks of stage {number_of(stage)} are done. make progress shows what is next.")
    return 0


def command_hint(stage, key):
    task = current(stage, key)
    if not task.change:
        raise Wrong("task 0 has no hints")
    if not task.begun():
        raise Wrong(f"make try-{task.name} comes first")
    hints = task.change.all("Hint")
    counted = os.path.join(task.folder, ".hints")
    shown = os.path.getsize(counted) if os.path.exists(counted) else 0
    shown = min(shown + 1, len(hints))
    with open(counted, "w", encoding="ascii") as file:
        file.write("." * shown)
    for number, hint in enumerate(hints[:shown], 1):
        print(textwrap.fill(f"{number}. {hint}", 110, subsequent_indent="   "))
    if shown == len(hints):
        print(f"That is the last hint. make solution-{task.name} shows the stage's lines.")
    return 0


def command_solution(stage, key):
    """From the hole to the stage."""
    task = current(stage, key)
    if not task.change:
        raise Wrong("task 0 has no solution")
    for path in task.change.files:
        sys.stdout.writelines(holes.solution(task.change, path, task.mine(path)))
    return 0


def briefly(lines):
    """Of what judge() says, the run and the first thing that is wrong in it: no elements, no second hazard."""
    return headlines([line for line in lines if line.strip() and not line.startswith(" " * 10)])[:5]


def command_grade(stage, key):
    """Judges tasks as they are, for a teacher: exit code 0 if they all pass."""
    failed = 0
    made(stage)
    for task in [current(stage, key)] if key else tasks_of(stage):
        passed, lines = (judge(task, task.workshop()) if task.begun() else
                         (False, [f"not begun: there is no {task.folder}"]))
        print(f"{'PASSED' if passed else 'FAILED'}  {task.name}: {task.title()}")
        if not passed:
            print(indented(briefly(lines)))
        failed += not passed
    return 1 if failed else 0


def command_progress():
    done = changed = total = 0
    following = None
    for stage in STAGES:
        tasks = tasks_of(stage)
        if not tasks:
            continue  # a capstone
        states = [task.passed() for task in tasks]
        marks = " ".join({True: "[x]", None: "[~]", False: "[ ]"}[state] for state in states)
        print(f"{stage:28}{marks}")
        done += states.count(True)
        changed += states.count(None)
        total += len(tasks)
        following = following or next((task for task, state in zip(tasks, states) if not state), None)
    print("\n".join(capstone.progress()))
    print(f"{done} of {total} tasks {'is' if done == 1 else 'are'} done" +
          ("; [~] has changed since it passed" if changed else ""))
    if following:
        print(f"next: make try-{following.name}, {following.title()}")
    return 0


# ---- mistakes ----

def squeezed(text):
    return " ".join(text.split())


def line_with(words, text):
    """The line of a text that has the words, with blanks squeezed; "" when none has them all."""
    return next((line for line in text.splitlines() if squeezed(words) in squeezed(line)), "")


def show_break(change):
    """Builds and runs a copy with a mistake. Prints what happens beside what the lesson says; 0 if they agree."""
    stage = change.stage
    name = f"{number_of(stage)}-{change.key}"
    workshop = Workshop(f"break-{name}", stage)
    copies = " and ".join(os.path.join(workshop.folder, path) for path in change.files)
    print(f"Mistake {name}: {change.title}\nin {copies}, "
          f"{'a copy' if len(change.files) == 1 else 'copies'} whose lines the reports name\n")
    print(indented(change.shown()), "\n")
    workshop.change(change)
    allowed = " ".join(change.all("Allow")).split()
    asks_ptxas = change.all("Log") or not change.all("Run") or 0 < len(allowed) < len(ALLOWABLE)
    text, built = workshop.build(" ".join(allowed), change.all("Run") if QUICK and not asks_ptxas else None)
    missing, printed = 0, ""
    if not built:
        printed = indented(first([line for line in text.splitlines() if "All that ptxas reports" not in line]))
        print(f"$ {workshop.typed}\n{printed}")
    for field, words in change.fields:
        if field == "Run" and built:
            text, _ = workshop.run([STEPS, *words.split()])
            printed = indented(first(headlines(trouble(text)), 2 * LINES))
            print(f"$ {workshop.program} --device=emulator {words}\n{printed}")
        elif field == "Log":
            log = os.path.join(workshop.folder, "build", "kernels", f"{stage}.log")
            with open(log, encoding="utf-8") as file:
                text = file.read()
            printed = ""
            print(f"$ cat {log}")
        elif field == "Shows":
            seen = squeezed(words) in squeezed(text)
            missing += not seen
            line = line_with(words, text)
            if line and line.strip() not in printed:  # a counter, or a line of the log
                printed += indented([line]) + "\n"
                print(indented([squeezed(line)]))
            print(f"  {'as the lesson says' if seen else 'NOT AS THE LESSON SAYS'}: {words}")
    return 1 if missing else 0


def command_break(stage, key):
    all_changes = changes(stage, "breaks")
    chosen = [change for change in all_changes if re.fullmatch(re.escape(key) + "[a-z]?", change.key)]
    if not key or not chosen:
        wrong = f"no {key}" if key else "one must be named"
        keys = ", ".join(change.key for change in all_changes)
        raise Wrong(f"lesson {number_of(stage)} has the mistakes {keys}, and {wrong}; "
                    f"make break-{number_of(stage)}-{all_changes[0].key} shows the first")
    made(stage)
    return max(show_break(change) for change in chosen)


COMMANDS = {"try": command_try, "hint": command_hint, "solution": command_solution, "grade": command_grade,
            "break": command_break}


def main(word):
    if word == "progress":
        return command_progress()
    code = capstone.command(word, lambda text: first(trouble(text)))
    if code is not None:
        return code
    match = re.fullmatch(r"([a-z]+)-([^-]+)(?:-(.+))?", word)
    if not match or match[1] not in COMMANDS:
        raise Wrong(f"{word}: commands are {', '.join(COMMANDS)}, then -NN, a stage, and -K, a number; or progress")
    stages = [stage for stage in STAGES if number_of(stage) == match[2]]
    if not stages:
        raise Wrong(f"{word}: there is no such stage; there are {' '.join(map(number_of, STAGES))}")
    if match[1] != "break" and match[3] != "0" and not tasks_of(stages[0]):
        raise Wrong(f"stage {match[2]} has no tasks, because it is a capstone: "
                    f"make capstone-{capstone.name_of(stages[0])}")
    return COMMANDS[match[1]](stages[0], match[3] or "")


if __name__ == "__main__":
    run_command("course", lambda: main(sys.argv[1] if len(sys.argv) == 2 else ""), (Wrong, ValueError))
