"""A change to a stage, kept as a patch: a task (the stage with a hole), a mistake that a lesson shows, or an attempt at
a task (what a learner may write in the hole, wrong or right).

Above the patch stand a title and fields, "Name: text", one a line:

    The refill comes too early
    Run: --seqlen=256
    Shows: shared-memory race

    diff --git a/stages/03-cp-async/kernel.cu b/stages/03-cp-async/kernel.cu
    ...
"""
import glob
import os
import re
import subprocess

GOAL = re.compile(r"(.*): (\S+) (<=|>=|=) (?:(\d+)% of )?(\S+)(?: with (.*))?")
NAME = re.compile(r"(\d+[a-z]?)-[a-z0-9-]+\.patch")


def goal_parts(goal):
    """The words, counter, relation, share, limit and options of a goal, "what it is: COUNTER <= LIMIT [with OPTIONS]", or
    = or >= for <=. The limit may be "stage", which is what the stage has, or a share of it: "80% of stage". What is left
    out is None."""
    return GOAL.fullmatch(goal).groups()


class Misfit(ValueError):
    """A patch that does not fit the files as they are now, in one line."""


class Change:
    """One patch file. `key` is the number in its name, "1" or "1b"; of an attempt it begins with its task's."""

    def __init__(self, path):
        self.path = path
        self.stage = path.split(os.sep)[1]
        self.key = NAME.fullmatch(os.path.basename(path))[1]
        with open(path, encoding="utf-8") as file:
            head, self.patch = re.split(r"^(?=diff --git )", file.read(), maxsplit=1, flags=re.MULTILINE)
        self.title, *lines = [line for line in head.splitlines() if line]
        self.fields = [tuple(re.fullmatch(r"([A-Z][a-z]*): *(.*)", line).groups()) for line in lines]
        self.files = re.findall(r"^\+\+\+ b/(.*)$", self.patch, re.MULTILINE)

    def all(self, name):
        """The texts of all fields with this name."""
        return [text for field, text in self.fields if field == name]

    def with_causes(self, name):
        """The texts of these fields, each with the text of the field "Cause" that follows it, or None."""
        following = [text if field == "Cause" else None for field, text in self.fields[1:]] + [None]
        return [(text, cause) for (field, text), cause in zip(self.fields, following) if field == name]

    def apply(self, folder):
        """Patches the files below `folder`, a copy of the repository. A patch that does not fit exactly is an error."""
        environment = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(os.path.abspath(folder)))
        done = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=folder, env=environment,
                              input=self.patch, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Misfit(f"{self.path} does not fit its stage any more: {done.stderr.splitlines()[0]}")

    def parts(self):
        """(path, patch) of each file that it touches."""
        for part in re.split(r"^(?=diff --git )", self.patch, flags=re.MULTILINE)[1:]:
            yield re.search(r"^\+\+\+ b/(.*)$", part, re.MULTILINE)[1], part

    def shown(self):
        """The lines of the patch that say what changes, and the names of its files where there are several."""
        headings = r"diff --git|index |--- |\+\+\+ " if len(self.files) == 1 else r"diff --git|index |--- "
        return [line for line in self.patch.splitlines() if not re.match(headings, line)]


def attempts(stage, task):
    """The attempts at a task: those of its own, and the mistakes of the lesson that say they are one ("Task: 2")."""
    own = [change for change in changes(stage, "attempts") if re.match(r"\d+", change.key)[0] == task]
    return own + [change for change in changes(stage, "breaks") if task in change.all("Task")]


def changes(stage, kind):
    """The tasks, mistakes or attempts ("tasks", "breaks", "attempts") of a stage, in order."""
    paths = glob.glob(f"stages/{stage}/{kind}/*.patch")
    found = [Change(path) for path in paths if NAME.fullmatch(os.path.basename(path))]
    return sorted(found, key=lambda change: (int(re.match(r"\d+", change.key)[0]), change.key))


# ---- what a patch does to a file, line by line ----

def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def edits(path, patch):
    """What a patch does to a file: (line, how many lines go there, the lines that come), from the top, counted from 0.
    As with git, a hunk may have moved."""
    old, place, found = text_of(path).split("\n"), 0, []
    for start, text in re.findall(r"^@@ -(\d+)[^@]*@@[^\n]*\n((?:[-+ ][^\n]*\n|\n)+)", patch, re.MULTILINE):
        lines = text.split("\n")[:-1]
        before = [line[1:] for line in lines if line[:1] != "+"]
        spots = [spot for spot in range(place, len(old)) if old[spot:spot + len(before)] == before]
        if not spots:
            raise Misfit(f"{path} has no such lines any more as a patch of it changes at line {start}")
        place = min(spots, key=lambda spot, start=int(start): abs(spot + 1 - start))
        gone, new = 0, []
        for line in lines + [" "]:
            if line[:1] == "-":
                gone += 1
            elif line[:1] == "+":
                new.append(line[1:])
            else:
                found += [(place, gone, new)] if gone or new else []
                place, gone, new = place + gone + 1, 0, []
        place -= 1  # of the line that was added here
    return found


def patched(path, patch):
    """The lines of a file after a patch, and the numbers of those that are new. Where lines are only gone, the next one
    counts as new."""
    old = text_of(path).split("\n")
    new, changed, place = [], set(), 0
    for spot, gone, come in edits(path, patch):
        new += old[place:spot]
        changed.update(range(len(new) + 1, len(new) + max(1, len(come)) + 1))
        new += come
        place = spot + gone
    return new + old[place:], changed
