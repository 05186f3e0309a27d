"""Capstones: kernels from an empty file. A specification, a judge, and no hole.

    make capstone-NAME     begins it in mine/capstone-NAME; the next time, builds and judges what is there
    make grade-NAME        judges it as it is, for a teacher
    make solution-NAME     shows our own kernel, once the learner's has passed

Each is built as one more stage of a workshop, so it has a stage's program with a stage's options.
"""
import functools
import glob
import os
import re
import shutil
from typing import NamedTuple

from learner import MINE, Wrong, indented, note_passed, passed_as, state_of
from workshop import Workshop, make, number_of, run

TEMPLATES = "common/course/capstones"
STAGE = "99-capstone"  # of the workshop
STEPS = "--step-limit=20000000"


ALL = "smsp__inst_executed.sum"
# Made of several counters: how often a loop polls an mbarrier depends on the schedule and shows no skill. counters().
ALL_ONCE, UNDER_LOAD_ONCE = "warp instructions without polls", "those under a load"
POLL = 2  # instructions: try_wait, and the branch back


class Goal(NamedTuple):
    """A counter, of which at most `limit` is allowed; or, with at_least, at least. `of`: the counter that it is divided
    by. A share of instructions is shown in percent. Without a counter it is what a score costs: a lane's instructions
    for each score that the larger problem has more. `options`: of the run that is counted, if it is not the kind's."""
    words: str
    counter: str
    limit: float
    at_least: bool = False
    of: str = ""
    options: str = ""

    def shown(self, value):
        """A value of this goal, as the report and the specification show it."""
        if self.of in (ALL, ALL_ONCE):
            return f"{100 * value:.0f} %"
        return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


class Kind(NamedTuple):
    """What a capstone computes. `folder`: of its template. `runs`: (options, what is special about them). `counted`:
    the options of the run whose counters are compared with the goals; `more`: those of the larger problem, which has
    `scores` more scores. `gpu`: those of the run that is timed."""
    folder: str
    runs: tuple
    counted: str
    goals: tuple
    gpu: tuple
    more: str = ""
    scores: int = 0


CONFLICTS = (
    Goal("bank conflicts of loads", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 0),
    Goal("bank conflicts of stores", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", 0))
ASYNCHRONOUS = (
    Goal("loads of global memory by threads", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 0),
    Goal("stores to global memory by threads", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 0),
    Goal("cp.async of threads", "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts_cache_access.sum", 0),
    *CONFLICTS)


def overlap(products, loads):
    """The least shares of all warp instructions, of loads without polls."""
    return (Goal("instructions while products of the warp run", "inst_under_wgmma", products, True, ALL),
            Goal("instructions while loads are under way", UNDER_LOAD_ONCE, loads, True, ALL_ONCE))


# One tile, several, ragged ones, one element; each kind of inputs; each schedule. And more slots than a ring has.
PRODUCT = Kind(
    folder="",
    runs=tuple((options, "") for options in (
        "--m=128 --n=256 --k=64", "", "--m=1 --n=8 --k=8", "--m=129 --n=264 --k=72 --schedule=1",
        "--size=512 --input=identity --schedule=2", "--m=700 --n=520 --k=328 --input=mean --schedule=3",
        "--m=64 --n=1024 --k=1024 --input=ones --schedule=4", "--m=1100 --n=40 --k=640 --input=outliers",
        "--m=256 --n=2048 --k=136 --input=arange")),
    counted="--size=1024",
    goals=(*ASYNCHRONOUS,
           Goal("FLOP of the tensor cores", "tensor_flops", 2 * 1024**3),
           Goal("instructions of the tensor cores", "inst_tensor", 2 * 1024**3 // (2 * 64 * 128 * 16 // 4)),
           Goal("special functions", "inst_mufu", 2000)),
    gpu=("--size=4096",))


def seen(seqlen, window):
    """How many scores a head has, if each query sees the last `window` keys up to its own."""
    return window * (window + 1) // 2 + (seqlen - window) * window


# The run's key tiles, if each 64 queries have whole tiles of 128 keys: 64 queries x 128 keys x 4 * 96 operations.
WINDOW_TILES = 2 * (1 + 2 + 3 + 4) + 24 * 5
# With this window each 128 queries have a last key tile that their second half does not see.
EDGE, EDGE_TILES = "--seqlen=2048 --window=449 --heads=1", (1 + 2 + 3 + 4) + 12 * 5 + (1 + 2 + 3) + 13 * 4
WINDOW = Kind(
    folder="window",
    runs=(("--seqlen=128 --window=128 --heads=1", "one tile, and a window as long"),
          ("--seqlen=300 --window=5000", "a window longer than the sequence: a causal mask alone"),
          ("--seqlen=256 --window=1 --heads=1", "a window of one key: O is V"),
          ("--seqlen=640 --window=128 --heads=1 --schedule=1", "a window as long as a tile"),
          ("--seqlen=1 --window=1", "a single query"),
          ("", "a window that begins inside a tile"),
          ("--seqlen=700 --window=201 --heads=1 --input=large --schedule=2", "maxima that grow by far"),
          ("--seqlen=513 --window=64 --input=outliers --schedule=3", "one query in the last tile, and a short window"),
          ("--seqlen=1100 --heads=1 --window=333 --input=waves --schedule=4", "more key tiles than a ring has slots"),
          ("--batch=2 --heads=5 --seqlen=130 --window=70 --input=negative", "more tiles than SMs, and negative scores"),
          ("--seqlen=900 --heads=1 --window=447 --input=cliff --schedule=5",
           "keys before the window have large scores")),
    counted="--seqlen=2048 --window=512 --heads=1",
    more="--seqlen=2048 --window=1024 --heads=1",
    scores=seen(2048, 1024) - seen(2048, 512),
    goals=(*ASYNCHRONOUS,
           Goal("FLOP of the tensor cores", "tensor_flops", WINDOW_TILES * 64 * 128 * 4 * 96),
           Goal("FLOP of the tensor cores", "tensor_flops", EDGE_TILES * 64 * 128 * 4 * 96, options=EDGE),
           Goal("instructions of the tensor cores", "inst_tensor", WINDOW_TILES * 128 * 4 * 96 // (2 * 64 * 16 // 4)),
           Goal("special functions", "inst_mufu", 37000),
           Goal("bytes that TMA reads from global memory", "bulk_global_read_bytes",
                2 * 96 * (2048 + 2 * 128 * WINDOW_TILES // 2)),
           Goal("instructions of a lane for each score inside the window", "", 8.5),
           *overlap(0.4, 0.8)),
    gpu=("--seqlen=4096", "--window=1024"))


# Whole tiles of 32 keys are allowed, of sequences that are counted in tiles of 16.
DECODE_KEYS = 2016 + 32 + 544
DECODE = Kind(
    folder="decode",
    runs=(("--heads=4 --kv-heads=1 --keys=16 --lengths=full --page=none --splits=1",
           "a single tile: the two products and the softmax"),
          ("--heads=6 --kv-heads=2 --keys=200 --lengths=full --page=none --splits=1",
           "one block, several tiles, of which the last is not full"),
          ("--keys=400 --lengths=full --page=none", "four blocks share the keys of a head"),
          ("--heads=4 --kv-heads=1 --keys=500 --lengths=full --page=none --splits=3 --schedule=1",
           "columns of O that three blocks cannot share evenly"),
          ("--batch=3 --keys=300 --lengths=300,73,130 --page=none --schedule=2",
           "each sequence has its own length, and the rows behind its end are NaN"),
          ("--batch=3 --keys=300 --lengths=1,0,300 --page=none --splits=7",
           "fewer tiles than blocks, and a sequence without keys"),
          ("--batch=3 --keys=700 --lengths=700,9,130 --splits=6", "pages of 16 keys, in any order"),
          ("--batch=2 --keys=900 --page=128 --input=outliers --schedule=3", "pages of 128 keys"),
          ("--heads=16 --kv-heads=1 --keys=640 --lengths=full --input=large --schedule=4",
           "16 query heads share a key head, and maxima grow by far"),
          ("--batch=2 --heads=2 --kv-heads=1 --keys=4000 --lengths=2700,4000 --splits=1 --input=waves --schedule=5",
           "a block has more than 128 tiles"),
          ("--batch=30 --keys=70 --heads=5 --kv-heads=5 --splits=2 --input=negative",
           "many sequences, negative scores"),
          ("--keys=640 --lengths=full --page=none --input=vanish", "the maxima of the parts are far apart")),
    counted="--batch=4 --lengths=2000,1,530,0 --keys=4000 --heads=16 --kv-heads=2 --splits=4",
    goals=(Goal("bytes that threads store to global memory", "global_store_bytes", 4 * 16 * 128 * 2),
           Goal("bytes that bulk copies write to global memory", "bulk_global_write_bytes", 4 * 16 * 128 * 2),
           Goal("bytes that atomics add to global memory", "global_atomic_bytes", 0),
           Goal("bytes that TMA reads from global memory", "bulk_global_read_bytes", DECODE_KEYS * 2 * 2 * 256),
           Goal("bytes that threads load from global memory", "global_load_bytes", 400000),
           Goal("loads of global memory by a warp", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 2400),
           Goal("FLOP of the tensor cores", "tensor_flops", DECODE_KEYS * 2 * 2 * 2 * 8 * 128),
           *CONFLICTS,
           Goal("loads in flight in a cluster, whenever one starts", "loads_in_flight", 48, True, "inst_async_copy")),
    gpu=("--batch=32", "--keys=8192"))


class Capstone:
    """`stage` is ours. `speed` is asked of a GPU: of cuBLAS's speed, or of our stage's where there is no cuBLAS."""

    def __init__(self, name, title, stage, kind, speed, goals=()):
        self.name, self.title, self.stage, self.kind, self.speed = name, title, stage, kind, speed
        self.goals = (*kind.goals, *goals)
        self.folder = os.path.join(MINE, f"capstone-{name}")

    def files(self):
        return sorted(path for suffix in ("cu", "h", "c") for path in glob.glob(f"{self.folder}/*.{suffix}"))

    def passed(self):
        """Whether the files have passed. They may have changed since."""
        return bool(passed_as(self.folder))

    def begin(self):
        os.makedirs(self.folder)
        for name in ("kernel.cu", "stage.c", "tiles.h"):
            shutil.copy(os.path.join(TEMPLATES, self.kind.folder, name), self.folder)
        shutil.copy(os.path.join(TEMPLATES, f"{self.name}.md"), os.path.join(self.folder, "README.md"))

    def workshop(self):
        workshop = Workshop(f"capstone-{self.name}", STAGE)
        workshop.add_stage(self.folder)
        return workshop

    def in_my_words(self, text):
        """Paths of the workshop as those of the learner's files."""
        program = f"stage-{STAGE.split('-', maxsplit=1)[0]}"
        return text.replace(f"stages/{STAGE}/", f"{self.folder}/").replace(program, self.name)


def product(read, instructions):
    """Of a product the goals that depend on the stage, and those behind them. Plain loops take 260,000 instructions
    without a cluster, and 340,000 with one."""
    return (Goal("bytes that TMA reads from global memory", "bulk_global_read_bytes", read),
            Goal("warp instructions without polls", ALL_ONCE, instructions), *overlap(0.5, 0.8))


CAPSTONES = {capstone.name: capstone for capstone in (
    Capstone("gemm", "a warp-specialised matrix product", "20-gemm", PRODUCT, 0.9,
             product(2 * 1024**3 * 3 // 256, 400000)),
    Capstone("multicast", "the same on clusters of two, with multicast", "20b-multicast", PRODUCT, 0.9,
             product(2 * 1024**3 // 128, 420000)),
    Capstone("window", "attention with head dimension 96 and a sliding window", "21-window", WINDOW, 0.7),
    Capstone("decode", "decode for a server, in one launch", "22-paged-cluster", DECODE, 0.8))}


def name_of(stage):
    """The capstone whose solution this stage is."""
    return next(capstone.name for capstone in CAPSTONES.values() if capstone.stage == stage)


# ---- the judge ----

def judge(capstone, trouble):
    """Builds and runs it: (whether it passed, the lines that say why or why not). `trouble` shortens a report."""
    workshop, kind = capstone.workshop(), capstone.kind
    text, built = workshop.build()
    if not built:
        return False, ["it does not build:", *capstone.in_my_words(text).splitlines()[:12]]

    def not_right(options, words, text):
        return False, [f"{workshop.program} --device=emulator {options}".rstrip(), *([f"({words})"] if words else []),
                       *trouble(capstone.in_my_words(text))]
    for options, words in kind.runs:
        text, code = workshop.run([STEPS, *options.split()])
        if code:
            return not_right(options, words, text)
    said = [f"right in {len(kind.runs)} runs on the emulator, without a hazard"]
    count = functools.cache(lambda options: counters(workshop, options))
    for goal in capstone.goals:
        try:
            line, reached = compare(kind, goal, count)
        except NotRight as wrong:
            return not_right(wrong.options, "whose counters are compared", wrong.text)
        if not reached:
            return False, [line]
        said.append(line)
    return on_the_gpu(capstone, workshop, said, trouble)


def compare(kind, goal, count):
    """A line about a goal, and whether it is reached. count(options): the counters of a run."""
    options = goal.options or kind.counted
    counted = count(options)
    if not goal.counter:
        value = 32 * (count(kind.more)[ALL] - counted[ALL]) / kind.scores
        options = f"{kind.more} against {options}"
    else:
        value = counted[goal.counter] / counted[goal.of] if goal.of else counted[goal.counter]
    reached = value >= goal.limit if goal.at_least else value <= goal.limit
    asked = "at least" if goal.at_least else "at most"
    return f"{goal.words}: {goal.shown(value)} ({options}; the goal is {asked} {goal.shown(goal.limit)})", reached


class NotRight(Exception):
    """A run whose counters are wanted is not right."""

    def __init__(self, options, text):
        super().__init__(options)
        self.options, self.text = options, text


def counters(workshop, options):
    """All counters of one run, by name."""
    text, code = workshop.run(["--hazards=off", "--counters-csv=-", *options.split()])
    if code:
        raise NotRight(options, text)
    rows = [line.split(",") for line in text.splitlines() if line.count(",") > 20]
    counted = {name: int(value) for name, value in zip(*rows) if value.isdigit()}
    polls = counted["inst_synchronisation"] - counted["inst_synchronisation_without_polls"]
    under_load = counted["inst_under_load"] - counted["inst_under_load_without_polls"]
    counted[ALL_ONCE] = counted[ALL] - POLL * polls
    counted[UNDER_LOAD_ONCE] = counted["inst_under_load"] - POLL * under_load
    return counted


def times(text):
    """The row of CSV that a program prints, by column."""
    return dict(zip(*[line.split(",") for line in text.splitlines() if line.count(",") > 5]))


def on_the_gpu(capstone, workshop, said, trouble):
    """Where there is a GPU: right there, too, and nearly as fast as cuBLAS, or as our own stage."""
    options = ["--device=gpu", "--csv=-", *capstone.kind.gpu]
    text, code = run(workshop.program, options)
    if code == 3:
        return True, said
    shown = " ".join(capstone.kind.gpu)
    if code:
        return False, [f"{workshop.program} --device=gpu {shown}", *trouble(capstone.in_my_words(text))]
    row = times(text)
    if "cublas_median_ms" in row:
        peer, other = "cuBLAS", row["cublas_median_ms"]
    else:
        peer, program = "our own", f"stage-{number_of(capstone.stage)}"
        other = times(run(program, options)[0])["median_ms"] if not make([program]).returncode else ""
    if not other:
        return True, [*said, f"on the GPU {row['tflops']} TFLOPS; there is no {peer} to compare with"]
    speed = float(other) / float(row["median_ms"])
    line = f"on the GPU {speed:.2f} times as fast as {peer} ({shown}; the goal is at least {capstone.speed})"
    return (True, [*said, line]) if speed >= capstone.speed else (False, [line])


# ---- commands ----

def command_capstone(capstone, trouble):
    if not os.path.isdir(capstone.folder):
        capstone.begin()
        print(f"Capstone {capstone.name}: {capstone.title}.\n\n    read {capstone.folder}/README.md\n"
              f"    edit {', '.join(capstone.files())}\n    make capstone-{capstone.name}    builds and judges it")
        return 0
    passed, lines = judge(capstone, trouble)
    print(f"{'PASSED' if passed else 'NOT YET'}  capstone {capstone.name}: {capstone.title}")
    print(indented(lines))
    if passed:
        note_passed(capstone.folder, state_of(capstone.files()))
        print(f"make solution-{capstone.name} shows ours. Its lesson: stages/{capstone.stage}/README.md")
    return 0 if passed else 1


def command_grade(capstone, trouble):
    """Judges it as it is, for a teacher: exit code 0 if it passes."""
    there = os.path.isdir(capstone.folder)
    passed, lines = judge(capstone, trouble) if there else (False, [f"not begun: there is no {capstone.folder}"])
    print(f"{'PASSED' if passed else 'FAILED'}  capstone {capstone.name}: {capstone.title}")
    if not passed:
        print(indented(lines[:5]))
    return 0 if passed else 1


def command_solution(capstone, _):
    if not capstone.passed():
        raise Wrong(f"solution-{capstone.name}: it is shown when yours has passed; "
                    f"make capstone-{capstone.name} judges it")
    for path in sorted(glob.glob(f"stages/{capstone.stage}/*.h") + glob.glob(f"stages/{capstone.stage}/kernel.cu")):
        with open(path, encoding="utf-8") as file:
            print(f"---- {path}\n\n{file.read()}")
    return 0


COMMANDS = {"capstone": command_capstone, "grade": command_grade, "solution": command_solution}


def command(word, trouble):
    """The exit code of "capstone-gemm", "grade-gemm" and the like; None when the word is of no capstone."""
    match = re.fullmatch(r"([a-z]+)-(.+)", word)
    if not match or (match[1] != "capstone" and match[2] not in CAPSTONES):
        return None
    if match[1] not in COMMANDS or match[2] not in CAPSTONES:
        raise Wrong(f"{word}: capstones are {', '.join(CAPSTONES)}, and what can be done is {', '.join(COMMANDS)}")
    if match[1] != "solution":
        done = make(["build/libhopper.a", "build/common/harness/main.o"])  # what a workshop shares
        if done.returncode:
            raise Wrong(f"what every stage needs does not build:\n{done.stdout}")
    return COMMANDS[match[1]](CAPSTONES[match[2]], trouble)


def progress():
    """A line for each capstone."""
    return [f"{'capstone ' + capstone.name:28}[{'x' if capstone.passed() else ' '}]" for capstone in CAPSTONES.values()]
