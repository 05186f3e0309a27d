"""Writes the index of mistakes, notes/mistakes.md, below its first part: what is seen, and which mistakes cause it.

    python3 common/course/mistakes.py
"""
import re

from change import changes
from course import STAGES
from workshop import number_of

PAGE = "notes/mistakes.md"
BEGIN = "<!-- written by common/course/mistakes.py -->\n"

# What the emulator reports, as common/emulator/report/hazard.c has the names.
HAZARDS = ("out-of-bounds access", "misaligned access", "uninitialised read", "shared-memory race",
           "global-memory race", "barrier misuse", "deadlock", "divergent .aligned instruction", "read before wait",
           "overwrite in flight", "missing proxy fence", "wrong expect_tx", "mbarrier misuse", "bad tensor map",
           "missing wgmma.fence", "register touched in flight", "bad descriptor", "setmaxnreg misuse", "trap",
           "step limit")
WRONG = "Wrong numbers, and no hazard"
REFUSED = "nvcc or ptxas refuses it"
RIGHT = "Right numbers: other counts, another speed, or luck"


def symptoms(change):
    """What a mistake shows: names of hazards, or one of the three other headings."""
    shown = " | ".join(change.all("Shows"))
    found = [name for name in HAZARDS if re.search(rf"(?<![a-z]){re.escape(name)}", shown)]
    if found:
        return found
    if re.search(r"WRONG|NaN|\d of [\d,]+ (?:elements|numbers)", shown):
        return [WRONG]
    return [RIGHT if change.all("Run") and re.search("right|hazards none|instructions|conflicts|loads|stores", shown)
            else REFUSED]


def lines():
    table = {}
    for stage in STAGES:
        for change in changes(stage, "breaks"):
            row = (f"| [`make break-{number_of(stage)}-{change.key}`](../stages/{stage}/README.md#break-it) "
                   f"| {change.title} |")
            for symptom in symptoms(change):
                table.setdefault(symptom, []).append(row)
    for symptom in (*HAZARDS, WRONG, RIGHT, REFUSED):
        if symptom in table:
            yield from ("", f"### {symptom[0].upper()}{symptom[1:]}", "")
            yield from ("| | the mistake |", "|---|---|", *table[symptom])


def page(text):
    """The page with its second part as it should be."""
    return text.partition(BEGIN)[0] + BEGIN + "\n".join(lines()) + "\n"


def main():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page(text))


if __name__ == "__main__":
    main()
