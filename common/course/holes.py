"""The holes in a learner's files. When task K is begun, the files have the holes of K and of all later tasks of the
stage, so that no file shows a solution before its task. The judge puts the stage's lines into the later holes.
"""
import difflib
import os
import re
from typing import NamedTuple

from change import Misfit, changes, edits, text_of

# Where the judge has put line N of the stage, the compiler takes it for line STAGE + N of the same file.
STAGE = 100_000_000
STAGE_LINE = re.compile(r"\b1000(\d{5})\b")


class Hole(NamedTuple):
    """One place of a task in a file of the stage: `text` stands there instead of lines `first` to `end` - 1, counted
    from 0."""
    task: int
    first: int
    end: int
    text: list


def holes_of(stage, path, key):
    """The holes in a file for the learner who begins task `key`, from the top. An earlier task's hole may contain
    places of a later task: its learner writes these lines as well."""
    found = [Hole(int(change.key), first, first + gone, text) for change in changes(stage, "tasks")
             if int(change.key) >= int(key) for other, patch in change.parts() if other == path
             for first, gone, text in edits(path, patch)]
    kept = []
    for hole in sorted(found, key=lambda hole: (hole.first, -hole.end, hole.task)):
        if kept and hole.first < kept[-1].end:
            if hole.end > kept[-1].end or hole.task < kept[-1].task:
                raise Misfit(f"{path}:{hole.first + 1}: the holes of tasks {kept[-1].task} and {hole.task} overlap")
        else:
            kept.append(hole)
    for place, (hole, following) in enumerate(zip(kept, kept[1:])):
        if hole.text and following.text and hole.end == following.first:  # a blank line parts their comments
            kept[place] = hole._replace(text=[*hole.text, ""])
    return kept


def with_holes(path, holes):
    """A file's lines with these holes, and the holes as they lie there."""
    lines, made, places, copied = text_of(path).split("\n"), [], [], 0
    for hole in holes:
        made += lines[copied:hole.first]
        places.append(hole._replace(first=len(made), end=len(made) + len(hole.text)))
        made += hole.text
        copied = hole.end
    return made + lines[copied:], places


def given(stage, path, key):
    """A file as the learner gets it who begins task `key`."""
    return "\n".join(with_holes(path, holes_of(stage, path, key))[0])


def contains(lines, part):
    return any(lines[i:i + len(part)] == part for i in range(len(lines) - len(part) + 1))


class Learner:
    """A learner's file beside the file as it was given: which line is which."""

    def __init__(self, lines, original, holes):
        self.lines, self.original, self.holes = lines, original, holes
        self.at = [None] * len(original)  # where each line that was given stands now
        for block in difflib.SequenceMatcher(None, original, lines, autojunk=False).get_matching_blocks():
            for i in range(block.size):
                self.at[block.a + i] = block.b + i

    def near(self, first):
        """About where a line that was given stands now, counted from 1."""
        return next((self.at[i] for i in range(first, len(self.at)) if self.at[i] is not None), len(self.lines) - 1) + 1

    def untouched(self, hole):
        """Where a hole lies now if nobody has written there: from which line to which. Otherwise None."""
        before, after = ([None, *self.at, None][i] for i in (hole.first, hole.end + 1))
        if not hole.text:
            if None in (before, after):  # the line before it or behind it has changed
                place = after if before is None else before + 1
            else:
                place = after if after == before + 1 else None
            return None if place is None else (place, place)
        here = self.at[hole.first:hole.end]
        if None in here or here[-1] - here[0] != len(here) - 1:
            return None
        # Lines that follow are the learner's solution, unless they belong to another hole.
        following = next((i for i in range(hole.end, len(self.at)) if self.at[i] is not None), len(self.at))
        until = self.at[following] if following < len(self.at) else len(self.lines)
        written, stood = ([line for line in lines if line.strip()] for lines in
                          (self.lines[here[-1] + 1:until], self.original[hole.end:following]))
        if len(written) > len(stood) and not any(other != hole and hole.end <= other.first <= following
                                                 for other in self.holes):
            return None
        return here[0], here[-1] + 1


def filled(stage, path, key, text, name):
    """A learner's file for task `key`, with the stage's lines in the holes of later tasks, and with #line directives
    that keep the numbers of the learner's lines. Also the tasks whose holes the learner has begun, {task: line}. These
    holes stay as they are. `name` is that of the learner's file: a C compiler shows lines of the file that is named."""
    own, mine = text_of(path).split("\n"), text.split("\n")
    holes = holes_of(stage, path, key)
    original, places = with_holes(path, holes)
    learner = Learner(mine, original, places)
    made, copied, begun = [], 0, {}
    of_stage, of_mine = (f' "{path}"', f' "{os.path.abspath(name)}"') if path.endswith(".c") else ("", "")
    for hole, place in zip(holes, places):
        if hole.task == int(key):
            continue
        solution, spot = own[hole.first:hole.end], learner.untouched(place)
        if spot and not hole.text and solution in (mine[spot[0]:spot[0] + len(solution)],
                                                   mine[max(0, spot[0] - len(solution)):spot[0]]):
            continue  # begun when the file had this task's hole alone
        if spot:
            made += mine[copied:spot[0]]
            if solution:
                made += [f"#line {STAGE + hole.first + 1}{of_stage}", *solution]
            made.append(f"#line {spot[1] + 1}{of_mine}")
            copied = spot[1]
        elif not contains(mine, solution):
            begun.setdefault(hole.task, learner.near(place.first))
    if made and of_mine:
        made.insert(0, f"#line 1{of_mine}")
    return made + mine[copied:], begun


def without_directives(lines):
    return [line for line in lines if not line.startswith("#line ")]


def in_words(text, names):
    """A text of the compiler's or the emulator's about files that the judge has filled: lines of the learner's with the
    learner's names of the files, lines of the stage's with the stage's. `names`: {path: the learner's path}."""
    def of_the_stage(match):
        """"stages/02/kernel.cu:44, called at 76": the calls may be the learner's."""
        calls = re.sub(r"\d+", lambda number: str(int(number[0]) - STAGE) if STAGE_LINE.fullmatch(number[0]) else
                       f"{number[0]} of yours", match[3])
        return f"{match[1]}{int(match[2])}{calls}"
    for path, name in names.items():
        text = text.replace(os.path.abspath(name), name)
        text = re.sub(rf"{re.escape(path)}(?!.?{STAGE_LINE.pattern})", name, text)
        text = re.sub(rf"({re.escape(path)}.){STAGE_LINE.pattern}((?:,? (?:called )?(?:at|from) \d+)*)",
                      of_the_stage, text)
    return STAGE_LINE.sub(lambda match: f"{int(match[1])} of the stage", text)


def solution(change, path, name):
    """From a task's holes in a file to the stage's lines, as a patch. Later holes stay."""
    hole, whole = (with_holes(path, [one for one in holes_of(change.stage, path, change.key) if one.task in tasks])[0]
                   for tasks in (range(int(change.key), 100), range(int(change.key) + 1, 100)))
    return difflib.unified_diff(*([line + "\n" for line in lines] for lines in (hole, whole)), name, path)
