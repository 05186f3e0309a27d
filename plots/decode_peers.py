"""Times the decode stages in turn with other decode kernels, on this machine's GPU:

    make peers OPTIONS=--pass=decode                           all points; the rows go to plots/data/decode
    make library build/libread.so && python3 plots/peers.py --pass=decode --points=32/32/8/128/4096/page16 --rounds=10

All in one process and on the same tensors, by the timer of peers.py: the contenders take turns, and the L2 cache is
overwritten before each run. Then the GPU waits for a moment, so that the host has queued all of a call before it
begins: what is timed is the GPU's work. A contender whose output is wrong is reported and not timed.

In the same turns two kernels read as many bytes and compute nothing. The faster one is the machine's read rate, of
which a row shows its percentage.

A point is BATCH/HEADS/KV_HEADS/HEAD_DIM/KEYS, and more if it differs: /ragged (lengths from 1 to KEYS), /page16 (the
cache in pages of 16 keys), /queries4 (four queries a sequence). 4/32/8/128/* stands for all numbers of keys up to 8 GB
of cache.

Recording takes long, and may be interrupted: points whose rows the file has are not timed again, and --seconds=N stops
before a point when so much time has passed. The same command goes on.

cuDNN and FlashAttention-2 come with PyTorch, FlashAttention-3 with `make flash-attention-3`. FlashInfer takes part
where its Python package is installed.
"""
import argparse
import csv
import os
import re
import statistics
import sys
import time

import decode_contenders
import hopper_ladder
import peers
from contenders import FLASH_ATTENTION_3, Refused, ScaledCodes
from decode_problem import DecodePoint, DecodeReference, make_decode_problem
from flashinfer_peer import FLASHINFER, load_flashinfer

READERS = os.path.join(peers.ROOT, "build", "libread.so")
FLASH_ATTENTION_3_DECODE = os.path.join(peers.ROOT, "build", "libflash_attention_3_decode.so")
DECODE_PEERS = "cuDNN", "FlashAttention-2", FLASH_ATTENTION_3, FLASHINFER
KEYS = tuple(1 << bits for bits in range(10, 18))
BATCHES = 1, 4, 32, 128
HEADS = (32, 8), (64, 8), (32, 32), (8, 1)
HEAD_DIMS = 128, 64
CACHE_LIMIT = 8 << 30  # bytes
WAIT_CLOCKS = 400_000  # of the GPU before each run: 0.2 ms, longer than any call takes on the host
DECODE_ROUNDS = 15
LONGEST_ROUND = 0.02  # seconds of a round: where it takes longer, there are fewer rounds
COLUMNS = ("stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,kv_heads,keys,head_dim,queries,page,lengths,cache,"
           "median_ms,min_ms,max_ms,repeats,gb_per_s,read_median_ms,read_gb_per_s,percent_of_read,"
           "clock_mhz,clock_min_mhz,version,relative_error")
POINT_COLUMNS = "batch", "heads", "kv_heads", "head_dim", "keys", "lengths", "page", "queries"


# ---- points ----


def parse_decode_point(text):
    """The points that a text stands for: several where it has a *."""
    match = re.fullmatch(r"(\d{1,5})/(\d{1,3})/(\d{1,3})/(64|128)/(\d{1,6}|\*)(/ragged)?(?:/page(\d{2,4}))?"
                         r"(?:/queries([1-8]))?", text)
    if not match:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no point; BATCH/HEADS/KV_HEADS/HEAD_DIM/KEYS is allowed, HEAD_DIM 64 or 128, KEYS a number "
            "or *, and then /ragged, /page16 and /queries2, in this order")
    batch, heads, kv_heads, head_dim = map(int, match.groups()[:4])
    page, queries = int(match[7] or 0), int(match[8] or 1)
    points = [DecodePoint(batch, heads, kv_heads, head_dim, keys, bool(match[6]), page, queries)
              for keys in (KEYS if match[5] == "*" else (int(match[5]),))]
    if match[5] == "*":
        points = [point for point in points if point.all_bytes() <= CACHE_LIMIT]
    for point in points:
        check_point(text, point)
    return points


def check_point(text, point):
    if not point.batch or not point.keys or not point.kv_heads or point.heads % point.kv_heads or \
            not 1 <= point.heads // point.kv_heads <= 16:
        raise argparse.ArgumentTypeError(f"'{text}' is no point; 1 to 16 query heads share a key head, each as many")
    if point.page and (point.page & (point.page - 1) or point.page < 16 or point.keys % point.page):
        raise argparse.ArgumentTypeError(f"'{text}' is no point; a page has 16, 32, 64 ... keys, and KEYS are whole "
                                         "pages")
    if point.all_bytes() > CACHE_LIMIT:
        raise argparse.ArgumentTypeError(f"'{text}' is no point; K and V have at most 8 GB, and here they have "
                                         f"{point.all_bytes() / 1e9:.1f}")


def parse_decode_points(text):
    return list(dict.fromkeys(point for part in text.split(",") for point in parse_decode_point(part)))


def reach(keys):
    """All batches, heads and head dimensions with so many keys, those that models have most often first."""
    points = [DecodePoint(batch, *heads, head_dim, keys) for head_dim in HEAD_DIMS for heads in HEADS
              for batch in BATCHES]
    return [point for point in points if point.all_bytes() <= CACHE_LIMIT]


def default_points():
    """What says most comes first, for those who have little time."""
    usual = [DecodePoint(batch, 32, 8, 128, keys) for batch in BATCHES for keys in (1024, 4096, 16384, 131072)]
    cut = [DecodePoint(batch, 32, 8, 128, 4096, ragged, page) for batch in BATCHES[1:]
           for ragged, page in ((True, 0), (False, 16), (True, 16), (True, 64))]
    several = [DecodePoint(32, heads, 8, head_dim, 4096, queries=queries) for head_dim in HEAD_DIMS
               for heads in (32, 64) for queries in (2, 4, 8)]
    several += [DecodePoint(32, 32, 8, head_dim, 4096, True, page, queries) for head_dim in HEAD_DIMS
                for page in (0, 16) for queries in (2, 4, 8)]
    whole = [point for keys in (4096, 16384, 1024, 65536, 131072, 8192, 2048, 32768) for point in reach(keys)]
    first = [point for point in usual if point.all_bytes() <= CACHE_LIMIT]
    return list(dict.fromkeys(first + cut + several + whole))


# ---- options ----


def parse_seconds(text):
    if not re.fullmatch("[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds; 1 to 999999 are allowed")
    return int(text)


def parse_decode_options(arguments):
    parser = peers.Parser(prog="peers.py --pass=decode", description=__doc__,
                          formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--stages", type=peers.parse_stages, default="all", metavar="NN,NN", help="all, none, 13b,13d (all)")
    add("--peers", type=peers.parse_peers, default="all", metavar="NAME,NAME",
        help=f"all, none, {', '.join(DECODE_PEERS)} (all)")
    add("--points", type=parse_decode_points, metavar="POINT,...", help="4/32/8/128/4096,32/64/8/128/*/page16 (many)")
    add("--rounds", type=peers.parse_rounds, default=DECODE_ROUNDS, metavar="N",
        help=f"runs of each contender at each point ({DECODE_ROUNDS}; fewer where they take long)")
    add("--seconds", type=parse_seconds, metavar="N", help="begin no point after so many seconds")
    add("--library", default=os.path.join(peers.ROOT, "libhopper_ladder.so"), metavar="FILE", help="of the stages")
    add("--record", action="store_true", help="write plots/data/decode/DEVICE-peers.csv, or go on with it")
    add("--csv", metavar="FILE", help="write the rows to a file, or go on with it")
    options = parser.parse_args(arguments)
    if options.record and options.csv:
        parser.error("--record and --csv both say where the rows go; give one of them")
    for name in options.peers if options.peers != "all" else ():
        if name not in DECODE_PEERS:
            parser.error(f"--peers: '{name}' is no peer; all, none and {', '.join(DECODE_PEERS)} are allowed")
    options.points = options.points or default_points()
    return options


# ---- who takes part ----


def open_readers(path):
    """What only reads."""
    try:
        return decode_contenders.load_readers(path)
    except (OSError, AttributeError):
        peers.fail(3, f"{path} cannot be loaded; `make build/libread.so` builds it")


def find_decode_stages(path, wanted):
    if wanted == "none":
        return []
    try:
        library = hopper_ladder.load(path)
        stages = decode_contenders.decode_stages(library)
    except OSError:
        peers.fail(3, f"{path} cannot be loaded; `make library` builds it, and --stages=none does without it")
    except AttributeError:
        stages = {}
    if not stages:
        peers.fail(2, f"{path} is another library, or one from before it had hl_attention_decode")
    numbers = list(stages) if wanted == "all" else wanted
    for number in numbers:
        if number not in stages:
            peers.fail(2, f"--stages: the library has no decode stage {number}; it has {', '.join(stages)}")
    return [decode_contenders.decode_stage(library, stages[number]) for number in numbers]


def find_flashinfer():
    package = load_flashinfer()
    return [decode_contenders.flashinfer_decode(package, cache) for cache in ("bf16", "e4m3")]


def find_decode_peer(name, needed):
    """In a list, which is empty where the peer may be missing and is."""
    try:
        if name == FLASHINFER:
            return find_flashinfer()
        if name == FLASH_ATTENTION_3:
            library = decode_contenders.load_flash_attention_3_decode(FLASH_ATTENTION_3_DECODE)
            return [decode_contenders.flash_attention_3_decode(library)]
        return [decode_contenders.decode_pytorch(name)]
    except Refused as reason:
        missing = f"{name} is left out: {reason}"
    except (OSError, AttributeError):
        built = os.path.relpath(FLASH_ATTENTION_3_DECODE, peers.ROOT)
        missing = f"{name} is not there; `make flash-attention-3` builds {built}"
    if needed:
        peers.fail(3, missing)
    print(f"peers.py: {missing}", file=sys.stderr)
    return []


def find_decode_contenders(options):
    found = find_decode_stages(options.library, options.stages)
    names, needed = (DECODE_PEERS, False) if options.peers == "all" else (options.peers, True)
    found += [peer for name in names for peer in find_decode_peer(name, needed)]
    if not found:
        peers.fail(2, "there is nothing to time: --stages and --peers name none")
    return found


# ---- measuring ----


TOLD = set()  # the reasons that were printed: each contender's once, and not at every point


def leave_out(name, point, reason):
    if (name, str(reason)) not in TOLD:
        TOLD.add((name, str(reason)))
        print(f"peers.py: {name} is left out at {point} and the like: {reason}", file=sys.stderr)


def enter_decode(contender, problem, reference, errors):
    """The entrant, or None with a line that says why not."""
    try:
        call = contender.prepare(problem)
        output = call()
        output = output.values() if isinstance(output, ScaledCodes) else output
        wrong = reference.differences(output, contender.cache)
        if not wrong:
            errors[contender.name], _ = reference.errors(output, contender.cache)
            estimate = min(peers.milliseconds(peers.timed(call)) for _ in range(3))
            return peers.Entrant(contender.name, call, max(1e-3, estimate))
        print(f"peers.py: {contender.name} is WRONG and not timed at {problem.point}: {wrong}", file=sys.stderr)
    except Refused as reason:
        leave_out(contender.name, problem.point, reason)
    return None


def enter_readers(library, problem, caches):
    """Entrants that only read, as {cache: [names]} and a list."""
    entrants, names = [], {}
    for cache in caches:
        for copies in False, True:
            name = f"read {cache} with {'copies' if copies else 'loads'}"
            call = decode_contenders.reads(library, problem, cache, copies)
            call()
            entrants.append(peers.Entrant(name, call, max(1e-3, peers.milliseconds(peers.timed(call)))))
            names.setdefault(cache, []).append(name)
    return entrants, names


def before_each_run():
    """A function that queues overwriting the L2 cache, and a moment in which the GPU waits for the host."""
    import torch

    flush = peers.cache_flush()

    def queue():
        flush()
        torch.cuda._sleep(WAIT_CLOCKS)  # pylint: disable=protected-access

    return queue


def rounds_of(entrants, wanted):
    seconds = sum(entrant.estimate for entrant in entrants) / 1000
    return max(peers.SLOW_ROUNDS, min(wanted, int(wanted * LONGEST_ROUND / seconds)))


def measure_decode(readers, found, point, rounds):
    """What was measured at a point: ({name: Runs}, {cache: Runs of the faster kernel that reads}, {name: error})."""
    problem = make_decode_problem(point)
    reference = DecodeReference(problem)
    errors, caches = {}, list(dict.fromkeys(contender.cache for contender in found))
    entered = [enter_decode(contender, problem, reference, errors) for contender in found]
    entrants = [entrant for entrant in entered if entrant]
    if not entrants:
        return {}, {}, errors
    more, names = enter_readers(readers, problem, caches)
    entrants += more
    peers.burn_in(entrants)
    once = {entrant.name: 1 for entrant in entrants}
    runs = peers.measure_turns(entrants, rounds_of(entrants, rounds), before_each_run(), once)
    read = {cache: min((runs.pop(name) for name in names[cache]), key=peers.Runs.median) for cache in caches}
    return runs, read, errors


# ---- what comes out ----


def gigabytes_per_second(point, cache, milliseconds):
    return point.cache_bytes(decode_contenders.ELEMENT_SIZES[cache]) / milliseconds * 1e-6


def decode_row(contender, device, point, runs, read, error):
    """One line of CSV."""
    measured, median, read_median = runs.milliseconds, runs.median(), read.median()
    clocks = f"{statistics.median(runs.megahertz):.0f},{min(runs.megahertz):.0f}" if runs.megahertz else ","
    lengths = "ragged" if point.ragged else "full"
    return (f"{contender.name},{device},{peers.now()},{point.batch},{point.heads},{point.kv_heads},{point.keys},"
            f"{point.head_dim},{point.queries},{point.page},{lengths},{contender.cache},"
            f"{median:.6f},{min(measured):.6f},{max(measured):.6f},{len(measured)},"
            f"{gigabytes_per_second(point, contender.cache, median):.1f},{read_median:.6f},"
            f"{gigabytes_per_second(point, contender.cache, read_median):.1f},{100 * read_median / median:.1f},"
            f"{clocks},{contender.version()},{error:.6f}")


def print_point(point, found, runs, read, out):
    """A line for each contender: how fast it was, and how steadily."""
    rates = {cache: gigabytes_per_second(point, cache, each.median()) for cache, each in read.items()}
    shown = ", ".join(f"{cache} {rate:.0f}" for cache, rate in rates.items())
    print(f"{point}: {point.cache_bytes() / 1e6:.4g} MB in bf16; read GB/s: {shown}", file=out)
    for contender in found:
        if contender.name in runs:
            median, percent = peers.spread(runs[contender.name].milliseconds)
            print(f"  {contender.name:24}{1000 * median:10.2f} µs ±{percent:.1f} %"
                  f"{gigabytes_per_second(point, contender.cache, median):9.0f} GB/s"
                  f"{100 * read[contender.cache].median() / median:7.1f} % of the read rate", file=out, flush=True)


def point_of(row):
    *sizes, keys, lengths, page, queries = (row[column] for column in POINT_COLUMNS)
    return DecodePoint(*map(int, sizes), int(keys), lengths == "ragged", int(page), int(queries))


class DecodeRows:
    """Where the rows go: to a file that has those of earlier runs already, or to standard output."""

    def __init__(self, path):
        self.path, self.done = path, set()
        if path and os.path.exists(path):
            self.read()
        elif path:
            self.write([COLUMNS])

    def read(self):
        with open(self.path, encoding="ascii", newline="") as file:
            reader = csv.DictReader(file)
            if ",".join(reader.fieldnames or []) != COLUMNS:
                peers.fail(2, f"{self.path} has other columns than these rows; move it away")
            self.done = {point_of(row) for row in reader}

    def write(self, lines):
        """All rows of a point at once."""
        if not self.path:
            print("\n".join(lines), flush=True)
            return
        try:
            with open(self.path, "a", encoding="ascii") as file:
                file.write("\n".join(lines) + "\n")
        except OSError as error:
            peers.fail(2, f"{self.path}: {error.strerror}")


def recording_path(device):
    name = re.sub("[^a-z0-9-]", "", device.split(",")[0].lower().replace(" ", "-"))
    return os.path.join(peers.ROOT, "plots", "data", "decode", f"{name}-peers.csv")


def main(arguments):
    options, started = parse_decode_options(arguments), time.monotonic()
    found, readers = find_decode_contenders(options), open_readers(READERS)
    peers.require_gpu()
    device = peers.device_columns()
    rows = DecodeRows(recording_path(device) if options.record else options.csv)
    points = [point for point in options.points if point not in rows.done]
    for index, point in enumerate(points):
        if options.seconds and time.monotonic() - started > options.seconds:
            print(f"peers.py: {options.seconds} s have passed; {len(points) - index} points are left, and the same "
                  "command goes on with them", file=sys.stderr)
            break
        runs, read, errors = measure_decode(readers, found, point, options.rounds)
        peers.free_memory()
        print_point(point, found, runs, read, sys.stderr)
        rows.write([decode_row(contender, device, point, runs[contender.name], read[contender.cache],
                               errors[contender.name]) for contender in found if contender.name in runs])
