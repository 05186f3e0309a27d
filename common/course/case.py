"""Cases: programs that are wrong, each with the words of the user who reported it. The learner mends the kernel.

    python3 common/course/case.py case[-NN] [solution]

A case is a folder, examples/cases/NN-NAME: README.md (the symptom), kernel.cuh (to mend), main.cu (the user's program,
whose check is not to be changed), mended.patch (our repair, and what was wrong) and wrong/*.patch (repairs that do not
help, for tests/test_cases.py). Comments in README.md say how a case is judged:

    <!-- run: ARGUMENTS -->            of the program; the first run is the user's, and meets several schedules
    <!-- shows: TEXT -->               what the user's run shows, in the program's words or the emulator's
    <!-- keeps: PATTERN: SENTENCE -->  a pattern that the kernel or its PTX must still have, and what to say if not
    <!-- products: N -->               so many HGMMA at least for each that the SASS waits for

Exit codes: 0 the case has begun or passes, 1 it does not pass yet, 2 the request is wrong.
"""
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys

from learner import MINE, Wrong, indented, note_passed, passed_as, read_note, run_command, state_of, write_note
from workshop import make

CASES = "examples/cases/[0-9][0-9]-*/"
BUILT = "build/cases"
SCHEDULES = range(4)  # of the user's own run; the others have schedule 0
LINES = 14  # of what is wrong, at most


class Case:
    """One case, and the learner's copy of it: mine/case-NN."""

    def __init__(self, folder):
        self.folder = folder.rstrip("/")
        self.number = os.path.basename(self.folder)[:2]
        self.mine = os.path.join(MINE, f"case-{self.number}")
        with open(os.path.join(self.folder, "README.md"), encoding="utf-8") as file:
            page = file.read()
        self.marks = re.findall(r"<!-- (run|shows|keeps|products): (.*) -->", page)
        self.title, _, text = re.sub(r"<!--.*-->\n", "", page).partition("\n")
        self.title, self.text = self.title.removeprefix("# "), text.strip()

    def all(self, mark):
        return [text for kind, text in self.marks if kind == mark]

    def kernel(self):
        """The learner's kernel, or one line that says how to get it back."""
        path = os.path.join(self.mine, "kernel.cuh")
        if not os.path.exists(path):
            raise Wrong(f"{path} is gone; rm -r {self.mine} lets make case-{self.number} begin anew")
        return path

    def begin(self):
        os.makedirs(self.mine)
        for name in ("README.md", "kernel.cuh", "main.cu"):
            shutil.copy(os.path.join(self.folder, name), self.mine)

    def passed(self):
        """Whether the kernel has passed. It may have changed since."""
        return bool(passed_as(self.mine))


class Program:
    """The user's program, built with a kernel in a folder of its own. Messages name the file `kernel`, not its copy."""

    def __init__(self, case, kernel, folder=None):
        self.kernel = kernel
        self.folder = folder or os.path.join(BUILT, case.number)
        self.command = [os.path.join(self.folder, "main")]
        os.makedirs(self.folder, exist_ok=True)
        for path, name in ((kernel, "kernel.cuh"), (os.path.join(case.folder, "main.cu"), "main.cu")):
            copy = os.path.join(self.folder, name)
            if not os.path.exists(copy) or not filecmp.cmp(path, copy, shallow=False):
                shutil.copyfile(path, copy)

    def words(self, text):
        return text.replace(os.path.join(self.folder, "kernel.cuh"), self.kernel)

    def make(self, name):
        """The path of what is made from it, main, main.ptx or main.sass; or nothing, and what the compiler says."""
        path = os.path.join(self.folder, name)
        done = make([path])
        lines = [line for line in self.words(done.stdout).splitlines() if line and not line.startswith("make")]
        return (None, ["it does not build:", *lines[:LINES]]) if done.returncode else (path, [])

    def run(self, arguments, *options):
        """(whether nothing is wrong, what the program prints and the first finding) of one run on the emulator."""
        command = ["./hopper-run", *options, *self.command, *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        report = [line for line in done.stderr.splitlines()
                  if not re.match(r"hopper-run: (\d+ launch|.* stopped at )", line)]
        findings = [number for number, line in enumerate(report) if not line.startswith(" ")]
        if len(findings) > 1:
            report = report[:findings[1]] + [f"and {len(findings) - 1} more: the command above shows all"]
        printed = [line.split(" (", maxsplit=1)[0] for line in done.stdout.splitlines()]
        typed = " ".join(["$", *command])
        return done.returncode == 0, [typed, *(self.words(line) for line in (printed + report)[:LINES])]


def judge(case, program):
    """(whether it is mended, the lines that say why or why not)."""
    path, lines = program.make("main")
    if not path:
        return False, lines
    runs = case.all("run")
    for arguments in runs:
        for schedule in SCHEDULES if arguments == runs[0] else [0]:
            right, lines = program.run(arguments, "--strict", f"--schedule={schedule}", "--step-limit=20000000")
            if not right:
                return False, lines
    said = [f"right for {len(runs)} sizes, without a hazard in {len(SCHEDULES)} schedules"]
    for keeps in case.all("keeps"):
        pattern, sentence = keeps.split(": ", maxsplit=1)
        path, lines = program.make("main.ptx")
        if not path or not re.search(pattern, text_of(path) + text_of(program.kernel)):
            return False, lines or [sentence]
    for most in case.all("products"):
        path, lines = program.make("main.sass")
        if not path:
            return False, lines
        products = re.findall(r"HGMMA.*", text_of(path))
        if len(products) < int(most) * sum("gsb0" in product for product in products):
            return False, [said[0], f"ptxas still makes the slow code of it: read {path}"]
        said.append("and ptxas makes the fast code of it")
    return True, said


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def repair(case):
    """What was wrong, and our repair."""
    title, text = re.split(r"^(?=diff --git )", text_of(os.path.join(case.folder, "mended.patch")), maxsplit=1,
                           flags=re.MULTILINE)
    return title.strip(), [line for line in text.splitlines() if not re.match(r"diff --git |--- |\+\+\+ ", line)]


def command_case(case):
    if not os.path.isdir(case.mine):
        case.begin()
        print(f"{case.title}\n\n{case.text}\n\n    edit {case.kernel()}\n"
              f"    make case-{case.number}    builds and judges it\n")
        program = Program(case, case.kernel())
        path, lines = program.make("main")
        if not path:
            raise Wrong("\n".join(lines))
        print("\n".join(program.run(case.all("run")[0])[1]))
        return 0
    passed, lines = judge(case, Program(case, case.kernel()))
    print(f"{'PASSED' if passed else 'NOT YET'}  {case.title}\n{indented(lines)}")
    if not passed:
        return 1
    note_passed(case.mine, state_of([case.kernel()]))
    print(f"\n{repair(case)[0]}\n\nmake case-{case.number} SOLUTION=1 shows our repair.")
    return 0


def command_solution(case):
    if not os.path.isdir(case.mine):
        raise Wrong(f"make case-{case.number} comes first")
    asked = os.path.join(case.mine, ".asked")
    if not case.passed() and not read_note(asked):
        write_note(asked, "once")
        raise Wrong(f"case {case.number} has not passed yet; the same command again shows our repair all the same")
    title, lines = repair(case)
    print(f"{title}\n\n{indented(lines)}")
    return 0


def main(word, solution):
    cases = {case.number: case for case in map(Case, sorted(glob.glob(CASES)))}
    if word == "case":
        for case in cases.values():
            print(f"[{'x' if case.passed() else ' '}] make case-{case.number}   {case.title}")
        return 0
    number = word.removeprefix("case-")
    if number not in cases:
        raise Wrong(f"{word}: there is no such case; there are {' '.join(cases)}")
    return (command_solution if solution else command_case)(cases[number])


if __name__ == "__main__":
    run_command("case", lambda: main(sys.argv[1] if len(sys.argv) > 1 else "case", len(sys.argv) > 2 and sys.argv[2]))
