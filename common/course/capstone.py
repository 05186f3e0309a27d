"""Capstones: kernels from an empty file. A specification, a judge, and no hole.

    make capstone-NAME     begins it in mine/capstone-NAME; the next time, builds and judges what is there
    make grade-NAME        judges it as it is, for a teacher
    make solution-NAME     shows our own kernel, once the learner's has passed

Each is built as one more stage of a workshop, so it has a stage's program with a stage's options.
"""
import glob
import os
import re
import shutil

from workshop import Workshop, make, run

TEMPLATES = "common/course/capstones"
STAGE = "99-capstone"  # of the workshop
STEPS = "--step-limit=20000000"

# One tile, several, ragged ones, one element; each kind of inputs; each schedule. And more slots than a ring has.
RUNS = ("--m=128 --n=256 --k=64", "", "--m=1 --n=8 --k=8", "--m=129 --n=264 --k=72 --schedule=1",
        "--size=512 --input=identity --schedule=2", "--m=700 --n=520 --k=328 --input=mean --schedule=3",
        "--m=64 --n=1024 --k=1024 --input=ones --schedule=4", "--m=1100 --n=40 --k=640 --input=outliers",
        "--m=256 --n=2048 --k=136 --input=arange")

# The options of the run whose counters are compared with the goals; and each goal: its name, the counter, the most
# that it may show.
COUNTED = "--size=1024"
GOALS = (("loads of global memory by threads", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 0),
         ("stores to global memory by threads", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 0),
         ("cp.async of threads", "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts_cache_access.sum", 0),
         ("FLOP of the tensor cores", "tensor_flops", 2 * 1024**3),
         ("instructions of the tensor cores", "inst_tensor", 2 * 1024**3 // (2 * 64 * 128 * 16 // 4)),
         ("bank conflicts of loads", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 0),
         ("bank conflicts of stores", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", 0),
         ("special functions", "inst_mufu", 2000),
         ("warp instructions", "smsp__inst_executed.sum", 700000))

# Goals of overlap: the name, the counter, and the least share of all warp instructions that it must show.
OVERLAP = (("instructions while products of the warp run", "inst_under_wgmma", 0.5),
           ("instructions while loads are under way", "inst_under_load", 0.8))


class Capstone:
    """`stage` is ours; `read`, how many bytes TMA may read from global memory; `speed`, of cuBLAS's, is asked of a GPU."""

    def __init__(self, name, title, stage, read, speed):
        self.name, self.title, self.stage, self.speed = name, title, stage, speed
        self.goals = (*GOALS, ("bytes that TMA reads from global memory", "bulk_global_read_bytes", read))
        self.folder = os.path.join(os.environ.get("MINE", "mine"), f"capstone-{name}")

    def files(self):
        return sorted(path for suffix in ("cu", "h", "c") for path in glob.glob(f"{self.folder}/*.{suffix}"))

    def passed(self):
        """Whether the files have passed. They may have changed since."""
        return os.path.exists(os.path.join(self.folder, ".passed"))

    def begin(self):
        os.makedirs(self.folder)
        for name in ("kernel.cu", "stage.c", "tiles.h"):
            shutil.copy(os.path.join(TEMPLATES, name), self.folder)
        shutil.copy(os.path.join(TEMPLATES, f"{self.name}.md"), os.path.join(self.folder, "README.md"))

    def workshop(self):
        workshop = Workshop(f"capstone-{self.name}", STAGE)
        workshop.add_stage(self.folder)
        return workshop

    def in_my_words(self, text):
        """Paths of the workshop as those of the learner's files."""
        return text.replace(f"stages/{STAGE}/", f"{self.folder}/").replace(f"stage-{STAGE.split('-', maxsplit=1)[0]}", self.name)


CAPSTONES = {capstone.name: capstone for capstone in (
    Capstone("gemm", "a warp-specialised matrix product", "20-gemm", 2 * 1024**3 * 3 // 256, 0.9),
    Capstone("multicast", "the same on clusters of two, with multicast", "20b-multicast", 2 * 1024**3 // 128, 0.9))}


def name_of(stage):
    """The capstone whose solution this stage is."""
    return next(capstone.name for capstone in CAPSTONES.values() if capstone.stage == stage)


# ---- the judge ----

def judge(capstone, trouble):
    """Builds and runs it: (whether it passed, the lines that say why or why not). `trouble` shortens a report."""
    workshop = capstone.workshop()
    text, built = workshop.build()
    if not built:
        return False, ["it does not build:", *capstone.in_my_words(text).splitlines()[:12]]
    for options in RUNS:
        text, code = workshop.run([STEPS, *options.split()])
        if code:
            return False, [f"{workshop.program} --device=emulator {options}".rstrip(), *trouble(capstone.in_my_words(text))]
    said = [f"right in {len(RUNS)} runs on the emulator, without a hazard"]
    counted = counters(workshop)
    for words, counter, limit in capstone.goals:
        line = f"{words}: {int(counted[counter]):,} ({COUNTED}; the goal is at most {limit:,})"
        if int(counted[counter]) > limit:
            return False, [line]
        said.append(line)
    for words, counter, least in OVERLAP:
        share = int(counted[counter]) / int(counted["smsp__inst_executed.sum"])
        line = f"{words}: {100 * share:.0f} % ({COUNTED}; the goal is at least {100 * least:.0f} %)"
        if share < least:
            return False, [line]
        said.append(line)
    return on_the_gpu(capstone, workshop, said, trouble)


def counters(workshop):
    """All counters of one run, by name."""
    text, _ = workshop.run(["--hazards=off", "--counters-csv=-", COUNTED])
    rows = [line.split(",") for line in text.splitlines() if line.count(",") > 20]
    return dict(zip(*rows))


def on_the_gpu(capstone, workshop, said, trouble):
    """Where there is a GPU: right there, too, and nearly as fast as cuBLAS."""
    text, code = run(workshop.program, ["--device=gpu", "--csv=-", "--size=4096"])
    if code == 3:
        return True, said
    if code:
        return False, [f"{workshop.program} --device=gpu --size=4096", *trouble(capstone.in_my_words(text))]
    rows = [line.split(",") for line in text.splitlines() if line.count(",") > 5]
    times = dict(zip(*rows))
    if not times["cublas_median_ms"]:
        return True, [*said, f"on the GPU {times['tflops']} TFLOPS; there is no cuBLAS to compare with"]
    speed = float(times["cublas_median_ms"]) / float(times["median_ms"])
    line = f"on the GPU {speed:.2f} times as fast as cuBLAS (--size=4096; the goal is at least {capstone.speed})"
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
    print("\n".join(f"    {line}" for line in lines))
    if passed:
        with open(os.path.join(capstone.folder, ".passed"), "w", encoding="ascii"):
            pass
        print(f"make solution-{capstone.name} shows ours. Its lesson: stages/{capstone.stage}/README.md")
    return 0 if passed else 1


def command_grade(capstone, trouble):
    """Judges it as it is, for a teacher: exit code 0 if it passes."""
    there = os.path.isdir(capstone.folder)
    passed, lines = judge(capstone, trouble) if there else (False, [f"not begun: there is no {capstone.folder}"])
    print(f"{'PASSED' if passed else 'FAILED'}  capstone {capstone.name}: {capstone.title}")
    if not passed:
        print("\n".join(f"    {line}" for line in lines[:5]))
    return 0 if passed else 1


def command_solution(capstone, _):
    if not capstone.passed():
        raise ValueError(f"solution-{capstone.name}: it is shown when yours has passed; make capstone-{capstone.name} judges it")
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
        raise ValueError(f"{word}: capstones are {', '.join(CAPSTONES)}, and what can be done is {', '.join(COMMANDS)}")
    if match[1] != "solution":
        done = make(["build/libhopper.a", "build/common/harness/main.o"])  # what a workshop shares
        if done.returncode:
            raise ValueError(f"what every stage needs does not build:\n{done.stdout}")
    return COMMANDS[match[1]](CAPSTONES[match[2]], trouble)


def progress():
    """A line for each capstone."""
    return [f"{'capstone ' + capstone.name:28}[{'x' if capstone.passed() else ' '}]" for capstone in CAPSTONES.values()]
