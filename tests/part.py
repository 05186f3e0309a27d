"""PART=2/3 in the environment: of each list of cases a third is tested, from the second case on. All, without it."""
import os

FIRST, STEP = (int(word) for word in os.environ.get("PART", "1/1").split("/"))


def part_of(cases):
    return list(cases)[FIRST - 1::STEP]
