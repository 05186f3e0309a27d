"""Compiles, for WebAssembly, the host code of each mistake that changes it: the stage's C files once more, as the mistake
has them. They go into the same module as the stages, for they are small: a launch, a tensor map.

    variants.py FOLDER OBJECTS COMPILER FLAGS...

FOLDER/05b/6/stage.o is mistake 6 of stage 05b, and defines stage_05b_6; FOLDER/variants.h lists all for main.c. What else
the stage's own objects define for each other, in OBJECTS/05b-single-tma, gets the same ending. An object is made again
only if one of its sources has changed.
"""
import glob
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(__file__)
sys.path[:0] = [os.path.join(HERE, "..", "book"), os.path.join(HERE, "..", "course")]
# pylint: disable=wrong-import-position
from break_ptx import alone, has_variant, host_files, is_made, key_of
from change import changes
from tree import STAGES, number_of
from workshop import Workshop


def variants():
    """The mistakes of all stages that change the host's code."""
    return [change for stage in STAGES for change in changes(stage, "breaks") if has_variant(change)]


def shared_names(objects):
    """What the objects in a folder define for each other."""
    shown = subprocess.run(["emnm", "-g", "--defined-only", *glob.glob(f"{objects}/*.o")], capture_output=True, text=True,
                           check=True).stdout
    return {line.split()[2] for line in shown.splitlines() if len(line.split()) == 3}


def compile_variant(folder, change, objects, command):
    """The objects of one mistake."""
    number = number_of(change.stage)
    to = os.path.abspath(os.path.join(folder, number, change.key))
    key = key_of(host_files(change.stage), change.patch + shlex.join(command))
    if is_made(to, "made", key):
        return
    print(f"  EMCC {number}-{change.key}", flush=True)
    os.makedirs(to, exist_ok=True)
    workshop = Workshop(f"web-{number}-{change.key}", change.stage)
    workshop.change(change)
    sources = [path for path in host_files(change.stage) if path.endswith(".c")]
    for path in sources:
        workshop.own(path)  # a header that it names by ../ is then the mistake's
    renamed = [f"-D{name}={name}_{number}_{change.key}" for name in sorted({"stage", *shared_names(f"{objects}/{change.stage}")})]
    for path in sources:
        made = os.path.join(to, os.path.basename(path)[:-2] + ".o")
        subprocess.run([*command, *renamed, "-c", path, "-o", made], cwd=workshop.folder, check=True)
    shutil.rmtree(workshop.folder)
    with open(os.path.join(to, "made.key"), "w", encoding="utf-8") as file:
        file.write(key)


def main(folder, objects, command):
    """Makes what is missing or old."""
    os.makedirs(folder, exist_ok=True)
    chosen = variants()
    for change in chosen:
        with alone(f"web-{number_of(change.stage)}-{change.key}"):
            compile_variant(folder, change, objects, command)
    wanted = {os.path.join(folder, number_of(change.stage), change.key) for change in chosen}
    for path in glob.glob(f"{folder}/*/*/*.o"):
        if os.path.dirname(path) not in wanted:
            os.remove(path)
    listed = "".join(f" X({number_of(change.stage)}, {change.key})" for change in chosen)
    text = f"// The mistakes that change the host's code: number of the stage, key.\n#define VARIANTS(X){listed}\n"
    path = os.path.join(folder, "variants.h")
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
