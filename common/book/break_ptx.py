"""Compiles what the bench of the book runs: each stage's kernel, and the kernel of each mistake that its lesson shows.

    break_ptx.py FOLDER [NN...]     all stages, or those with these numbers

FOLDER/06.ptx.gz is the kernel of stage 06, FOLDER/06-5b.ptx.gz that of its mistake 5b, FOLDER/07-slots-2.ptx.gz a
variant that only an explorable runs (watch.py). FOLDER/04-3.txt is what nvcc says of a kernel that it refuses. A file is
made again only if one of its sources has changed. Of a mistake that changes what the host does this is the kernel alone;
common/web/variants.py compiles its host code.
"""
import concurrent.futures
import contextlib
import fcntl
import glob
import gzip
import hashlib
import os
import shutil
import sys

from tree import STAGES, Broken, files_of, included, number_of, read

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "course"))
# pylint: disable=wrong-import-position
from change import changes
from workshop import Workshop

# With these every kernel of a stage is launched by one.
RUNS = [f"--head-dim={head_dim} --lse {mask}" for head_dim in (64, 128) for mask in ("", "--causal")]

# Kernels that no lesson has: (the stage, what is replaced in its kernel.cu), by the name of the PTX. Each text stands
# there once. They are for a head dimension of 64.
SLOTS = "KEYS = KEYS_OF(HEAD_DIM), SLOTS = SLOTS_OF(HEAD_DIM)"
SIZE = ("static_assert(sizeof(Shared<64>) == SHARED_BYTES(64) && sizeof(Shared<128>) == SHARED_BYTES(128), "
        '"see tiles.h");', "")
VARIANTS = {f"07-slots-{slots}": ("07-warp-specialization",
                                  [(SLOTS, SLOTS.replace("SLOTS_OF(HEAD_DIM)", str(slots))), SIZE]) for slots in (2, 3)}


def with_headers(paths):
    """Files, and all headers that they include."""
    found = list(paths)
    for path in found:  # it grows
        found += [header for header in included(path) if header not in found]
    return found


def host_files(stage):
    """The files that the host's code is made from: a stage's .c files and their headers."""
    return with_headers(path for path in files_of(stage) if path.endswith(".c"))


def kernel_files(stage):
    """The files that a stage's PTX is made from."""
    return with_headers([f"stages/{stage}/kernel.cu"])


def concerns_host(change):
    """Whether a mistake changes what the host is compiled from."""
    return any(path.endswith(".c") or path in host_files(change.stage) for path in change.files)


def has_variant(change):
    """Whether a mistake that runs changes the host's code, and of that only the stage's: then this code is compiled once
    more, as the mistake has it."""
    return bool(concerns_host(change) and change.all("Run") and all(path.startswith("stages/") for path in change.files))


def key_of(paths, patch=""):
    """What is made from these files and a patch, in a few letters."""
    texts = [read(path) for path in paths]
    texts += [patch, read("build/nvcc-flags") if os.path.exists("build/nvcc-flags") else ""]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def is_made(folder, name, key):
    """Whether a kernel is there, and made from what there is now."""
    if not os.path.exists(f"{folder}/{name}.key"):
        return False
    with open(f"{folder}/{name}.key", encoding="utf-8") as file:
        return file.read() == key


@contextlib.contextmanager
def alone(name):
    """One process at a time makes a thing of this name. Two would change and compile in one workshop, and one of them
    could compile what the other has just put back unchanged: a mistake that is none, and nothing would say so."""
    os.makedirs("build/course", exist_ok=True)
    with open(f"build/course/{name}.lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
        yield


def put(folder, name, key, kernel=None, refusal=None):
    """Writes one kernel, or why there is none. The key comes last: what was interrupted does not look made."""
    for path in glob.glob(f"{folder}/{name}.ptx.gz") + glob.glob(f"{folder}/{name}.txt"):
        os.remove(path)
    if refusal is None:
        with open(f"{folder}/{name}.ptx.gz", "wb") as file:
            file.write(gzip.compress(kernel.encode(), 9, mtime=0))
    else:
        with open(f"{folder}/{name}.txt", "w", encoding="utf-8") as file:
            file.write(refusal)
    with open(f"{folder}/{name}.key", "w", encoding="utf-8") as file:
        file.write(key)


def make_break(folder, change):
    """The kernel of one mistake. The workshop compiles it as make break-NN-K does."""
    name = f"{number_of(change.stage)}-{change.key}"
    key = key_of(kernel_files(change.stage), change.patch)
    with alone(f"book-{name}"):
        if is_made(folder, name, key):
            return
        print(f"  PTX {name}", flush=True)
        workshop = Workshop(f"book-{name}", change.stage)
        workshop.change(change)
        text, built = workshop.build_kernels(RUNS)
        if built:
            with open(workshop.kernels(), encoding="utf-8") as file:
                put(folder, name, key, kernel=file.read())
        else:
            put(folder, name, key, refusal=text)
        shutil.rmtree(workshop.folder)


def make_variant(folder, name):
    """The kernel of an explorable: a stage's with other words in some places."""
    stage, changed = VARIANTS[name]
    path = f"stages/{stage}/kernel.cu"
    text = read(path)
    for old, new in changed:
        if text.count(old) != 1:
            raise Broken(f"{path}: the explorable's kernel {name} needs these words there once: {old}")
        text = text.replace(old, new)
    key = key_of(kernel_files(stage), text)
    with alone(f"book-{name}"):
        if is_made(folder, name, key):
            return
        print(f"  PTX {name}", flush=True)
        workshop = Workshop(f"book-{name}", stage)
        workshop.own(path)
        with open(os.path.join(workshop.folder, path), "w", encoding="utf-8") as file:
            file.write(text)
        said, built = workshop.build(runs=["--head-dim=64"])
        if not built:
            raise Broken(f"the explorable's kernel {name} does not compile: {said}")
        put(folder, name, key, kernel=read(workshop.kernels()))
        shutil.rmtree(workshop.folder)


def make_stage(folder, stage):
    """The kernel of a stage, which is built already."""
    key = key_of(kernel_files(stage))
    if not is_made(folder, number_of(stage), key):
        with open(f"build/kernels/{stage}.ptx", encoding="utf-8") as file:
            put(folder, number_of(stage), key, kernel=file.read())


def main(folder, numbers):
    """Makes what is missing or old, as many at a time as there are cores."""
    os.makedirs(folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = []
        for stage in STAGES:
            if not numbers or number_of(stage) in numbers:
                make_stage(folder, stage)
                made += [pool.submit(make_break, folder, change) for change in changes(stage, "breaks")]
                made += [pool.submit(make_variant, folder, name) for name in VARIANTS if VARIANTS[name][0] == stage]
        for one in made:
            one.result()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
