"""Says why ptxas.sh refuses a kernel: what ptxas reports, in which kernels, near which source line, what it means, what
usually causes it, and where to read more.

    python3 refused.py WORD KERNEL.ptx KERNEL.log

WORD is what is refused: stack, spills, serialised or setmaxnreg. Lines that begin with two blanks explain the
one above.
"""
import os
import re
import sys

MEANINGS = (  # words of a remark of ptxas; what the remark means; what usually causes it
    ("arrive is injected", "ordinary instructions write registers of a wgmma, and no wgmma.fence follows; "
     "ptxas inserts one", "wgmma_fence() is missing before the first wgmma, or the registers are written after it"),
    ("wait is injected", "registers of a wgmma are used before a wait; ptxas inserts one",
     "wgmma_wait is missing, comes too late or leaves too many groups in flight; wgmma_commit is missing before it"),
    ("insufficient register", "the registers do not suffice for products in flight",
     "more values are alive during a product than in the stage, such as one more array"),
    ("function boundary", "a function call stands between a wgmma and its wait",
     "printf or assert is called, or a function that is not inlined (__forceinline__)"),
    ("Extern calls", "a function of another file is called beside a wgmma", ""),
    ("defining input registers", "the registers of A are written while a wgmma may still read them",
     "the next weights are packed before the wait for the product that reads the older ones"),
    ("accumulator registers", "the sums of a wgmma are used while it may still be running",
     "wgmma_wait is missing before the use, comes after it, or leaves too many groups in flight"),
    ("unable to determine register count", "ptxas does not know how many registers a thread has at launch, "
     "and ignores setmaxnreg", "the kernel has no __launch_bounds__"),
    ("minimum register",
     "the code after setmaxnreg needs more registers than that gives it; ptxas ignores every setmaxnreg",
     "the number is too small for what the warpgroup computes"),
)
SPILL = re.compile(r"\b[1-9]\d* bytes spill")


def source(ptx, number):
    """The source line that line `number` of the PTX was made from: in a stage's file, if the line was inlined there. The
    compiler marks what it made of no line in particular as line 0; the line before that helps more."""
    files = dict(re.findall(r'^\t\.file\t(\d+) "([^"]*)"', ptx, re.MULTILINE))
    lines = [line for line in ptx.splitlines()[:number] if re.match(r"\t\.loc\t\d+ [1-9]", line)]
    places = re.findall(r"(?:loc\t|inlined_at )(\d+) (\d+)", lines[-1]) if lines else []
    if places and not files.get(places[0][0], "").startswith("stages/"):
        places.reverse()
    return ":".join((files.get(places[0][0], "?"), places[0][1])) if places else ""


def places(ptx, numbers):
    """Up to three source lines: "FILE:LINE, LINE"."""
    text = file = ""
    for place in list(dict.fromkeys(filter(None, (source(ptx, number) for number in numbers))))[:3]:
        text += ", " * bool(text) + place.removeprefix(file)
        file = place[:place.rindex(":") + 1]
    return text


def run_time_indices(ptx):
    """Numbers of the PTX's lines that access a local array at an address that is not its beginning and a constant."""
    known = set()
    for number, line in enumerate(ptx.splitlines(), 1):
        if "__local_depot" in line:
            known = set()
        constant = re.match(r"\tadd\.u64 \t(%rd\d+), %SPL, ", line)
        if constant:
            known.add(constant[1])
        address = re.match(r"\t(?:ld|st)[.\w]*\.local[.\w]* .*\[(%rd\d+)", line)
        if address and address[1] not in known:
            yield number


def memory(ptx, log, stack, ptx_path):
    """Of spills, and of stack frames if `stack`."""
    for kernel, rest in re.findall(r"Compiling entry function '([^']*)'(.*?)(?=Compiling entry|\Z)", log, re.DOTALL):
        frame = re.search(r"\d+ bytes stack frame.*", rest)
        used = re.search(r"Used (\d+) registers", rest)
        if frame and re.search(r"\b[1-9]", frame[0]):
            yield f"{kernel}: {frame[0]}" + (f"; {used[1]} registers are in use" if used else "")
    if "vprintf" in ptx and stack:
        yield "ptxas.sh: printf keeps its arguments in local memory, which is device memory."
        number = os.path.basename(ptx_path).split("-")[0]
        yield f"  The emulator runs the PTX all the same: ./stage-{number} --device=emulator --ptx={ptx_path}"
    elif "__local_depot" in ptx and stack:
        yield "ptxas.sh: an array lies in local memory, which is device memory: registers have no index."
        where = places(ptx, run_time_indices(ptx))
        if where:
            yield f"  The index is known only at run time here: {where}"
        yield "  Usually: a loop over the array is not unrolled, an index depends on the thread, or a pointer is used."
    elif SPILL.search(log):
        yield ("ptxas.sh: registers are spilled to local memory, which is device memory: "
               "a thread needs more than it may have.")
        yield ("  Usually: more values are alive at once than in the stage (one more array, a load long before its "
               "use),\n  or __launch_bounds__ asks for more threads in a block, or for more blocks on an SM.")
    else:
        yield "ptxas.sh: the kernel has a stack frame in local memory, which is device memory."
        yield "  Usually: an index into an array is known only at run time, or a function is not inlined."


def remarks(ptx, log):
    """Of what ptxas mentions with a number, C7500 to C7599: each number once."""
    found = re.findall(r"\((C75\d\d)\) (?:Potential Performance Loss: )?(.*)", log)
    for code in dict.fromkeys(code for code, _ in found):
        words = [text for other, text in found if other == code]
        said = re.sub(r" in around line \d+| in (the )?function '.*", "", words[0]).replace("  ", " ")
        kernels = dict.fromkeys(re.findall(r"function '([^']*)'", " ".join(words)))
        where = places(ptx, map(int, re.findall(r"around line (\d+)", " ".join(words))))
        meaning, causes = next((row[1:] for row in MEANINGS if row[0] in said), (said, ""))
        yield (f"{', '.join(kernels)}: " if kernels else "") + f"{said} ({code})"
        yield "ptxas.sh: " + meaning + (f", near {where}" if where else "") + "."
        if "serialized" in said:
            yield "  So ptxas has serialised the products: each waits for the one before."
        if causes:
            yield f"  Usually: {causes}."


def main(word, ptx_path, log_path):
    ptx, log = (open(path, encoding="utf-8", errors="replace").read() if os.path.exists(path) else ""
                for path in (ptx_path, log_path))
    is_memory = word in ("stack", "spills")
    print(*(memory(ptx, log, word == "stack", ptx_path) if is_memory else remarks(ptx, log)), sep="\n")
    print(f"  All that ptxas reports: cat {log_path}")
    stage = os.path.splitext(os.path.basename(ptx_path))[0]
    words = f"{word} spills" if word == "stack" and SPILL.search(log) else word
    print(f"  For the author of a stage: its stage.mk may allow it, ALLOW_{stage} := {words}")


main(*sys.argv[1:])
