"""What no result, no hazard and no counter shows: the judge alters the PTX of a kernel, and runs it again."""
import re
import tempfile

from workshop import run

# An addition to floats in global memory: red of one, or of a vector of four.
ADDITION = re.compile(r"\bred\.global\.add(?:\.v4)?\.f32\s+(\[[^]]*\]),\s*\{?([^;{}]*)\}?;")


def altered(program, options, alter):
    """The report of a run whose PTX `alter` has changed, and its exit code. `program` is a workshop or a stage."""
    with open(program.kernels(), encoding="utf-8") as file:
        text = alter(file.read())
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", dir="build", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        return run(program.program, ["--device=emulator", f"--ptx={file.name}", *options])


def plain_addition(match):
    """The same as a load, a sum and a store for each float, in PTX."""
    address, values = match[1], re.split(r",\s*", match[2].strip())
    lines = [f"ld.global.f32 sum, {place}; add.f32 sum, sum, {value}; st.global.f32 {place}, sum;"
             for i, value in enumerate(values) for place in [address.replace("]", f"+{4 * i}]")]]
    return "{ .reg .f32 sum; " + " ".join(lines) + " }"


def without_atomics(program, options):
    """The run in which no addition to global memory is atomic. The emulator finds no fault in atomic additions without
    an order, but here it reports a race."""
    return altered(program, options, lambda text: ADDITION.sub(plain_addition, text))


def rows_of_first_tiles(program, number, options):
    """Which rows of O are missing if each block computes its first tile alone, and block b begins with tile `number` +
    b. It shows which tiles have these numbers. For kernels whose blocks take further tiles from a counter."""
    def alter(text):
        text = re.sub(r"mov\.u32\s+(%r\d+), %ctaid\.x;", rf"mov.u32 \1, %ctaid.x; add.u32 \1, \1, {number};", text)
        return re.sub(r"atom\.global\.inc\.u32\s+(%r\d+), [^;]*;", r"mov.u32 \1, 0x20000000;", text)
    text, _ = altered(program, ["--hazards=off", *options], alter)
    return re.findall(r"[\d,]+ of [\d,]+ are NaN.*", text)


def beginning(kernel, lines):
    """A change of the PTX: these lines are the first of a kernel. NAME in them is the kernel's name."""
    return lambda text: re.sub(rf"(\.entry ({kernel}\w*)\([^)]*\)[^{{]*\{{)",
                               lambda head: head[1] + lines.replace("NAME", head[2]), text)


def leaving(kernel, relation, number):
    """A change of the PTX: blocks whose number along x is so related to `number` leave the kernel at once."""
    return beginning(kernel, "{ .reg .pred leaves; .reg .u32 number; mov.u32 number, %ctaid.x; "
                             f"setp.{relation}.u32 leaves, number, {number}; @leaves ret; }}")


def gradients_of_first_blocks(program, kernel, blocks, options):
    """How many elements of dK and dV are wrong if only a kernel's first blocks run, to find their tiles."""
    text, _ = altered(program, options, leaving(kernel, "ge", blocks))
    return re.findall(r"([\d,]+) of [\d,]+ elements of (d[KV]) differ", text)


def bytes_of_blocks(program, kernel, blocks, options):
    """How many bytes bulk copies and TMA load for each block alone."""
    def of_block(block):
        text, _ = altered(program, ["--hazards=off", *options], leaving(kernel, "ne", block))
        read = re.search(r"bulk copies read ([\d,]+) bytes of global memory", text)
        return int(read[1].replace(",", "")) if read else 0
    return [of_block(block) for block in range(blocks)]


def loads_of_warps(program, kernel, warps, options):
    """How many loads from global memory each warp of a kernel executes, without those that have a guard already."""
    def of_warp(warp):
        guarded = (rf"{{ .reg .pred mine; .reg .u32 warp; mov.u32 warp, %tid.x; shr.u32 warp, warp, 5; "
                   rf"setp.eq.u32 mine, warp, {warp}; @mine \1 }}")

        def alter(text):
            return re.sub(rf"\.entry {kernel}.*?^\}}", lambda body: re.sub(
                r"^\s*(ld\.(?:\w+\.)*?global[^;]*;)", guarded, body[0], flags=re.MULTILINE), text,
                          flags=re.MULTILINE | re.DOTALL)
        text, _ = altered(program, ["--hazards=off", *options], alter)
        read = re.search(r"global memory: ([\d,]+) loads", text)
        return int(read[1].replace(",", "")) if read else 0
    of_others = of_warp(warps)  # other kernels
    return [of_warp(warp) - of_others for warp in range(warps)]


def bytes_at_parameter(program, kernel, parameter, options):
    """How many bytes the allocation has to which a parameter of a kernel points: the report of a read from there,
    before anything is written, says so. None if there is no such report."""
    text, _ = altered(program, options, beginning(kernel, (
        f"{{ .reg .u64 place; .reg .u32 word; .reg .pred is; ld.param.u64 place, [NAME_param_{parameter}]; "
        "ld.global.u32 word, [place]; setp.eq.u32 is, word, 1; @is trap; }")))
    found = re.search(r"uninitialised read: .*? byte 0 of an allocation of (\d+) bytes", text)
    return int(found[1]) if found else None
