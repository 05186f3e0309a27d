#!/usr/bin/env python3
"""Times the stages in turn with FlashAttention, cuDNN and any other kernel, on this machine's GPU:

    make library && python3 plots/peers.py                              every stage and peer at all 24 points
    python3 plots/peers.py --stages=03 --points='64/*/4096,128/causal/*' --contender=mine=build/mine.so

All in one process, on the same tensors, by the same timer. A contender whose output is wrong is reported
and not timed. After a burn-in the contenders take turns, round by round and in a new order each time: a GPU's clock
depends on what it did before, and the first kernel after a pause runs up to 10 % faster. Before each run the L2 cache
is overwritten. Contenders that take four times as long as the fastest, or longer, take turns after the others.

--inputs does the same on other inputs than normal ones (plots/inputs.py): a softmax may be slower where maxima move.

--type=e4m3 times the FP8 stages on e4m3 tensors (plots/problem.py), in turn with FlashAttention-3's FP8 kernel and with
stage 10, which reads the same values in fp16. A table shows the relative errors, also of contenders that are wrong.

--pass=backward times the stages of the backward pass in turn with FlashAttention's and cuDNN's. A time has all kernels
of a pass, and no forward pass. Stages and FlashAttention-3 read an O and a log-sum-exp that were computed in fp64.
FlashAttention-2 and cuDNN are called by torch.autograd.grad (plots/backward.py). The TFLOPS count 2.5 times the forward
pass's operations. A table shows the relative errors of dQ, dK and dV.

--pass=decode times the decode stages, which are bound by memory: plots/decode_peers.py. It has other points and
options, which --pass=decode --help lists.

--against=OLD/libhopper_ladder.so compares two builds: the stages of both libraries take turns, and a table shows how
many times as fast each new stage is as the old one. --against='CUDA 12.9=FILE.so' calls them that and not "old".

FlashAttention-2, cuDNN and Triton come with PyTorch, FlashAttention-3 with `make flash-attention-3`, CUTLASS's example
88 with `make cutlass-fmha`. FlashInfer and cuDNN's FP8 pass need their Python packages (plots/flashinfer_peer.py,
plots/cudnn_fp8.py). Each row has the SM clock
that ran, and each peer's its version.

The sustained mode runs each contender back to back for 0.6 s at a time: what is left when power limits the clock.
"""
import argparse
import datetime
import glob
import os
import random
import re
import statistics
import sys
from typing import NamedTuple

import backward
import contenders
import hopper_ladder
import inputs
import record
import reference_backward
from cudnn_fp8 import CUDNN_FP8, MISSING as CUDNN_FP8_MISSING, cudnn_fp8, import_cudnn
from flashinfer_peer import FLASHINFER, flashinfer_prefill, load_flashinfer
from problem import BackwardProblem, Problem, quantise, with_groups
from reference import Reference, ReferenceE4m3
from sm_clock import SmClock
from triton_peer import TRITON, triton_peer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKENS, WIDTH = 16384, 2048  # batch * seqlen and heads * head_dim of every problem, as in common/build/bench.sh
SEQLENS = (512, 1024, 2048, 4096, 8192, 16384)
BURN_IN_SECONDS = 0.3
SLOW = 4  # times the fastest: measured apart from the others
SLOW_SECONDS, SLOW_ROUNDS = 0.5, 3  # a slow one has as many rounds as fit, but not fewer than these
SUSTAINED_SECONDS, SUSTAINED_ROUNDS = 0.6, 3
COLUMNS = ("stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,"
           "median_ms,min_ms,max_ms,repeats,tflops,"  # so far the stages'
           "mode,clock_mhz,clock_min_mhz,version")  # with --inputs also the input, and ERRORS
FLASH_ATTENTION_3 = os.path.join(ROOT, "build", "libflash_attention_3.so")
CUTLASS_FMHA = os.path.join(ROOT, "build", "libcutlass_fmha.so")
TYPES = "f16", "e4m3"  # of Q, K and V
PASSES = "forward", "backward"
DECODE = "--pass=decode"  # hands over to decode_peers.py
# A kind of problem is a type of the forward pass, or the backward pass, which is in fp16.
BACKWARD = "backward"
FP8 = contenders.FLASH_ATTENTION_3_FP8
PEERS = {"f16": ("FlashAttention-2", contenders.FLASH_ATTENTION_3, "cuDNN", contenders.CUTLASS, TRITON,
                 FLASHINFER, "math"), "e4m3": (FP8, CUDNN_FP8),
         BACKWARD: ("FlashAttention-2", contenders.FLASH_ATTENTION_3, backward.FLASH_ATTENTION_3_DETERMINISTIC,
                    "cuDNN")}
# What the others are compared with at the end: the fastest of each group.
YARDSTICKS = {"f16": (("cuDNN",), ("cuDNN", contenders.FLASH_ATTENTION_3)),
              "e4m3": ((FP8,), (CUDNN_FP8,), (contenders.F16_STAGE,)),
              BACKWARD: (("cuDNN",), ("cuDNN", contenders.FLASH_ATTENTION_3), (contenders.FLASH_ATTENTION_3,))}
REFERENCES = {"f16": Reference, "e4m3": ReferenceE4m3, BACKWARD: reference_backward.ReferenceBackward}
# The columns of the relative errors.
ERRORS = {"f16": (), "e4m3": ("relative_error", "quantisation_error"),
          BACKWARD: tuple(f"relative_error_{name.lower()}" for name in reference_backward.GRADIENTS)}
QUANTISATION = "quantisation"  # among the relative errors of the contenders
WRONG = "wrong"  # the mode of a contender that was not timed, where rows have its errors
OLD = "old"  # before the name of the stage that one of --against's library is compared with, unless it says another
LONG = 2048  # from this seqlen on, no rung may be slower than the one below


class Point(NamedTuple):
    head_dim: int
    causal: bool
    seqlen: int
    input: str = "normal"
    kind: str = "f16"  # or e4m3, or backward
    heads: int = 0  # 0: WIDTH / head_dim
    kv_heads: int = 0  # 0: as many as heads of queries

    def problem_name(self):
        groups = f", heads {self.heads} and {self.kv_heads}" if self.heads else ""
        return f"D {self.head_dim}, {'causal' if self.causal else 'full'}, S {self.seqlen}{groups}"

    def __str__(self):
        return f"{self.problem_name()}, {self.input}"

    def shape(self):
        return max(1, TOKENS // self.seqlen), self.heads or WIDTH // self.head_dim, self.seqlen, self.head_dim

    def flops(self):
        batch, heads, seqlen, head_dim = self.shape()
        forward = 4 * batch * heads * seqlen**2 * head_dim / (2 if self.causal else 1)
        return 2.5 * forward if self.kind == BACKWARD else forward

    def problem(self):
        if self.kind == BACKWARD:
            q, k, v, d_o = inputs.make_backward(self.input, self.shape())
            return BackwardProblem(q, k, v, self.causal, d_o, *reference_backward.forward(q, k, v, self.causal))
        f16 = Problem(*inputs.make(self.input, self.shape()), self.causal)
        f16 = with_groups(f16, self.kv_heads) if self.heads else f16
        return f16 if self.kind == "f16" else quantise(f16)


# ---- options ----


def fail(code, text):
    print(f"peers.py: {text}", file=sys.stderr)
    sys.exit(code)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(2, message)


def parse_points(text):
    """'64/*/4096,128/causal/*' as a list of points, in order and each once; 'none' is none."""
    points = []
    for part in [] if text == "none" else text.split(","):
        match = re.fullmatch(r"(64|128|\*)/(full|causal|\*)/([1-9][0-9]{0,6}|\*)(?:/([1-9]\d?):([1-9]\d?))?", part)
        if not match or match[4] and int(match[4]) % int(match[5]):
            raise argparse.ArgumentTypeError(
                f"'{part}' is no point; HEAD_DIM/MASK/SEQLEN is allowed: 64, 128 or *; full, causal or *; "
                "a number or *; and then heads of Q and of K, /64:8")
        head_dim, mask, seqlen, heads, kv_heads = match.groups(default=0)
        points += [Point(d, causal, s, heads=int(heads), kv_heads=int(kv_heads))
                   for d in ((64, 128) if head_dim == "*" else (int(head_dim),))
                   for causal in ((False, True) if mask == "*" else (mask == "causal",))
                   for s in (SEQLENS if seqlen == "*" else (int(seqlen),))]
    return list(dict.fromkeys(points))


def parse_stages(text):
    if text in ("all", "none"):
        return text
    if not re.fullmatch(r"\d\d?[a-z]?(,\d\d?[a-z]?)*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of stages; all, none or numbers are allowed: 02b,03")
    return [number.zfill(3 if number[-1].isalpha() else 2) for number in text.split(",")]


def parse_type(text):
    if text not in TYPES:
        raise argparse.ArgumentTypeError(f"'{text}' is no type; {' and '.join(TYPES)} are allowed")
    return text


def parse_pass(text):
    if text not in PASSES:
        raise argparse.ArgumentTypeError(f"'{text}' is no pass; {', '.join(PASSES)} and decode are allowed")
    return text


def parse_peers(text):
    return text if text == "all" else [] if text == "none" else text.split(",")


def check_peers(options):
    allowed = PEERS[options.kind]
    for name in options.peers if options.peers != "all" else ():
        if name not in allowed:
            fail(2, f"--peers: '{name}' is no peer; all, none and {', '.join(allowed)} are allowed")


def parse_inputs(text):
    return list(dict.fromkeys(text.split(",")))


def check_inputs(options):
    """Replaces "all" by the inputs of this kind of problem."""
    kinds = list(inputs.BACKWARD_KINDS if options.kind == BACKWARD else inputs.KINDS)
    options.inputs = kinds if options.inputs == ["all"] else options.inputs
    for name in options.inputs or ():
        if name not in kinds:
            fail(2, f"--inputs: '{name}' is no input; all and {', '.join(kinds)} are allowed")


def parse_kernel(text):
    try:
        return contenders.parse_kernel(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parse_against(text):
    called, equals, path = text.rpartition("=")
    return (called if equals else OLD), path


def parse_rounds(text):
    if not re.fullmatch("[1-9][0-9]{0,4}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of rounds; 1 to 99999 are allowed")
    return int(text)


def parse_options(arguments):
    parser = Parser(prog="peers.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                    allow_abbrev=False)
    add = parser.add_argument
    add("--type", type=parse_type, default="f16", metavar="TYPE", help="of Q, K and V: f16 or e4m3 (f16)")
    add("--pass", type=parse_pass, default="forward", metavar="PASS", dest="direction",
        help="forward, backward or decode (forward); backward is in fp16")
    add("--stages", type=parse_stages, default="all", metavar="NN,NN", help="stages of the library: all, none, 02b,03")
    add("--peers", type=parse_peers, metavar="NAME,NAME",
        help=f"all, none, {', '.join(PEERS['f16'])}; with --type=e4m3 {', '.join(PEERS['e4m3'])}; "
             f"with --pass=backward {', '.join(PEERS[BACKWARD])} (all; none with --against)")
    add("--contender", type=parse_kernel, action="append", default=[], metavar="NAME=FILE.so",
        help="a library with int attn_fwd(int B, int H, int S, const void *q, const void *k, const void *v, void *o, "
             "int causal, void *stream); with --type=e4m3 attn_fwd_e4m3, which has const float *q_scale, const float "
             "*k_scale, const float *v_scale after o; with --pass=backward attn_bwd (plots/backward.py); "
             "NAME:64=FILE,128=FILE for one library each head dimension; may be given again")
    add("--points", type=parse_points, metavar="D/MASK/S,...",
        help=f"head dim, mask and seqlen, * for all: 64/causal/4096 (*/*/*, S of {SEQLENS[0]} to {SEQLENS[-1]}); "
             f"batch is {TOKENS} / S, heads {WIDTH} / D; of grouped heads 128/full/32768/64:8")
    add("--sustained", type=parse_points, metavar="D/MASK/S,...",
        help="points of the sustained mode, or none (*/full/16384; none with --points, --inputs or --against)")
    add("--inputs", type=parse_inputs, metavar="NAME,NAME",
        help=f"what the tensors hold: all, {', '.join(inputs.KINDS)}; with --pass=backward all, "
             f"{', '.join(inputs.BACKWARD_KINDS)} (normal)")
    add("--rounds", type=parse_rounds, default=40, metavar="N", help="runs of each contender at each point (40)")
    add("--library", default=os.path.join(ROOT, "libhopper_ladder.so"), metavar="FILE", help="of the stages")
    add("--against", type=parse_against, metavar="[NAME=]FILE",
        help="another build of the library, to compare its stages with these; NAME stands before theirs (old)")
    add("--record", action="store_true",
        help="write plots/data/DEVICE-peers.csv, with --inputs DEVICE-inputs.csv; with --type=e4m3 DEVICE-e4m3.csv and "
             "DEVICE-e4m3-inputs.csv, with --pass=backward DEVICE-backward.csv and DEVICE-backward-inputs.csv; of all "
             "fp16 stages, peers and points of the forward pass also DEVICE.csv, whose times the lessons show")
    add("--csv", metavar="FILE|-", help="write the rows to a file, or to standard output")
    options = parser.parse_args(arguments)
    if options.record and options.csv:
        parser.error("--record and --csv both say where the rows go; give one of them")
    if options.record and options.against:
        parser.error("--record is for one build; --against compares two")
    if options.direction == BACKWARD and options.type != "f16":
        parser.error(f"--pass=backward is in fp16; --type={options.type} is for the forward pass")
    options.kind = BACKWARD if options.direction == BACKWARD else options.type
    if options.peers is None:
        options.peers = parse_peers("none" if options.against else "all")
    check_peers(options)
    check_inputs(options)
    if options.sustained is None:
        cold_only = options.points or options.inputs or options.against
        options.sustained = parse_points("none" if cold_only else "*/full/16384")
    if options.points is None:
        options.points = parse_points("*/*/*")
    if options.kind == BACKWARD and grouped(options):
        parser.error("--points: grouped heads are for the forward pass")
    return options


def open_library(path, kind):
    """The library, and its stages for a kind of problem as {number: name}."""
    try:
        library = hopper_ladder.load(path)
    except OSError:
        fail(3, f"{path} cannot be loaded; `make library` builds it, and --stages=none does without it")
    except AttributeError:
        fail(2, f"{path} is another library, or an older one; common/library/hopper_ladder.h has the functions")
    return library, contenders.stages_of(library, kind)


def stage(library, number, name, kind):
    return (backward.stage(library, number, name) if kind == BACKWARD else
            contenders.stage(library, number, name, kind))


def find_stages(options):
    """The stages that are asked for."""
    if options.stages == "none":
        return []
    library, names = open_library(options.library, options.kind)
    numbers = list(names) if options.stages == "all" else options.stages
    for number in numbers:
        if number not in names:
            fail(2, f"--stages: the library has no {options.kind} stage {number}; it has {', '.join(names)}")
    return [stage(library, number, names[number], options.kind) for number in numbers]


def new_of(old, names):
    """The stage among names that an old one is compared with: that with its title, or else that with its number."""
    number, _, title = old.partition("-")
    alike = [name for name in names if name.partition("-")[2] == title]
    return next(iter(alike + [name for name in names if contenders.number_of(name) == number]), None)


def find_old(options, stages):
    """Old stages, each called after the one it is compared with: "old 05-a", "old 08b-ping-pong (08-ping-pong)"."""
    if not options.against:
        return []
    called, path = options.against
    library, names = open_library(path, options.kind)
    news = {number: new_of(name, [each.name for each in stages]) for number, name in names.items()}
    titles = {number: f"{called} {new}" + (f" ({names[number]})" if new != names[number] else "")
              for number, new in news.items() if new}
    return [stage(library, number, title, options.kind) for number, title in titles.items()]


def without_old(name):
    """The name that an old stage has been called after; any other name as it is."""
    match = re.fullmatch(r".+ (\d\d[a-z]?-[a-z-]+)(?: \(.*\))?", name)
    return match[1] if match else name


def find_peer(name, kind, needed):
    """In a list, which is empty where the peer may be missing and is."""
    if name in contenders.BACKENDS:
        return [(backward if kind == BACKWARD else contenders).pytorch(name)]
    if name == TRITON:
        return [triton_peer()]
    if name == FLASHINFER:
        return find_flashinfer(needed)
    if name == CUDNN_FP8:
        return find_cudnn_fp8(needed)
    try:
        if name == contenders.CUTLASS:
            return [contenders.cutlass_fmha(contenders.load_cutlass_fmha(CUTLASS_FMHA))]
        library = contenders.load_flash_attention_3(FLASH_ATTENTION_3)
        if kind == BACKWARD:
            return [backward.flash_attention_3(library, name == backward.FLASH_ATTENTION_3_DETERMINISTIC)]
        return [contenders.flash_attention_3(library, kind)]
    except (OSError, AttributeError):
        target, path = ("cutlass-fmha", CUTLASS_FMHA) if name == contenders.CUTLASS else (
            "flash-attention-3", FLASH_ATTENTION_3)
        missing = f"{name} is not there; `make {target}` builds {os.path.relpath(path)}"
        if needed:
            fail(3, missing)
        print(f"peers.py: {missing}", file=sys.stderr)
        return []


def find_flashinfer(needed):
    try:
        return [flashinfer_prefill(load_flashinfer())]
    except contenders.Refused as reason:
        if needed:
            fail(3, f"{FLASHINFER} is left out: {reason}")
        print(f"peers.py: {FLASHINFER} is left out: {reason}", file=sys.stderr)
        return []


def find_cudnn_fp8(needed):
    try:
        return [cudnn_fp8(import_cudnn())]
    except (ImportError, OSError):
        if needed:
            fail(3, CUDNN_FP8_MISSING)
        print(f"peers.py: {CUDNN_FP8_MISSING}", file=sys.stderr)
        return []


def find_peers(options):
    names, needed = (PEERS[options.kind], False) if options.peers == "all" else (options.peers, True)
    return [peer for name in names for peer in find_peer(name, options.kind, needed)]


def find_contenders(options):
    found = find_stages(options)
    found += find_old(options, found)
    for name, files in options.contender:
        try:
            found.append(backward.kernel(name, files) if options.kind == BACKWARD else
                         contenders.kernel(name, files, options.kind))
        except (OSError, AttributeError) as error:
            fail(2, f"--contender {name}: {error}")
    found += find_peers(options)
    names = [contender.name for contender in found]
    for name in names:
        if names.count(name) > 1:
            fail(2, f"two contenders are called {name}")
    if not found:
        fail(2, "there is nothing to time: --stages, --peers and --contender name none")
    return found


def require_gpu():
    try:
        import torch
    except ImportError:
        fail(3, f"{sys.executable} has no PyTorch; it makes the tensors, and FlashAttention-2 and cuDNN come with it")
    if not torch.cuda.is_available():
        fail(3, "PyTorch finds no GPU, and only a GPU can time a kernel")
    if torch.cuda.get_device_capability() != (9, 0):
        fail(3, f"the GPU is a {torch.cuda.get_device_name()}; one of compute capability 9.0 is needed")


# ---- measuring ----


class Entrant(NamedTuple):
    """A contender at one point, its output found right."""

    name: str
    call: object
    estimate: float  # milliseconds


class Runs(NamedTuple):
    """What was measured of an entrant, one number for each run."""

    milliseconds: list
    megahertz: list  # of the SM clock; some may be missing

    def median(self):
        return statistics.median(self.milliseconds)


def event():
    import torch

    mark = torch.cuda.Event(enable_timing=True)
    mark.record()
    return mark


def timed(call, count=1):
    """Queues some calls between two events."""
    start = event()
    for _ in range(count):
        call()
    return start, event()


def milliseconds(events):
    start, stop = events
    stop.synchronize()
    return start.elapsed_time(stop)


def reference_of(point, problem):
    return REFERENCES[point.kind](problem)


def enter(contender, point, problem, reference, errors):
    """The entrant, or None with a line that says why not. In both cases errors[name] becomes what the rows of this kind
    of problem have: in e4m3 its relative error, in the backward pass those of the three gradients."""
    try:
        call = contender.prepare(problem)
        output = call()
        output = output.values() if isinstance(output, contenders.ScaledCodes) else output
        wrong = reference.differences(output)
        if point.kind == "e4m3":
            errors[contender.name], _ = reference.relative_errors(output)
        if point.kind == BACKWARD:
            errors[contender.name] = reference.relative_errors(output)
        if not wrong:
            return Entrant(contender.name, call, max(1e-3, min(milliseconds(timed(call)) for _ in range(3))))
        print(f"peers.py: {contender.name} is WRONG and not timed at {point}: {wrong}", file=sys.stderr)
    except contenders.Refused as reason:
        print(f"peers.py: {contender.name} is left out at {point}: {reason}", file=sys.stderr)
    return None


def take_turns(entrants, rounds, run):
    """Calls run(entrant) round by round, in a new order each time. Returns what it returned for each, by name."""
    order, shuffler, queued = list(entrants), random.Random(1), {entrant.name: [] for entrant in entrants}
    for _ in range(rounds):
        shuffler.shuffle(order)
        for entrant in order:
            queued[entrant.name].append(run(entrant))
    return queued


def measure_turns(entrants, rounds, before, calls):
    """{name: Runs} of some rounds: each queues before(), then as many calls of the entrant as calls[name] says."""
    clock = SmClock(2 * rounds * len(entrants))

    def run(entrant):
        before()
        return clock.stamp(), timed(entrant.call, calls[entrant.name]), clock.stamp()

    queued = take_turns(entrants, rounds, run)
    # The host waits here and not before: it stays ahead of the GPU, so that no gap between launches is measured.
    return {name: Runs([milliseconds(events) / calls[name] for _, events, _ in runs],
                       clock.megahertz([(first, last) for first, _, last in runs])) for name, runs in queued.items()}


def burn_in(entrants):
    rounds = 1 + int(BURN_IN_SECONDS * 1000 / sum(entrant.estimate for entrant in entrants))
    take_turns(entrants, rounds, lambda entrant: timed(entrant.call))


def cache_flush():
    """A function that queues writing twice the L2 cache's size."""
    import torch

    size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
    return torch.empty(size, dtype=torch.int8, device="cuda").zero_


def paces(entrants):
    """The entrants in groups, fastest first: in a group none takes SLOW times as long as the fastest. An old stage and
    the new one are in the same."""
    pace = {}
    for entrant in entrants:
        name = without_old(entrant.name)
        pace[name] = min(entrant.estimate, pace.get(name, entrant.estimate))
    groups, fastest = {}, 0
    for entrant in sorted(entrants, key=lambda entrant: pace[without_old(entrant.name)]):
        estimate = pace[without_old(entrant.name)]
        fastest = fastest if 0 < estimate <= SLOW * fastest else estimate
        groups.setdefault(fastest, []).append(entrant)
    return list(groups.values())


def measure_cold(entrants, rounds):
    """The Runs of each entrant, by name: one call each time, after the L2 cache was overwritten."""
    fast, *slower = paces(entrants)
    flush, once = cache_flush(), {entrant.name: 1 for entrant in entrants}
    burn_in(fast)
    found = measure_turns(fast, rounds, flush, once)
    for group in slower:
        fit = max(SLOW_ROUNDS, int(SLOW_SECONDS * 1000 / max(entrant.estimate for entrant in group)))
        found.update(measure_turns(group, min(rounds, fit), flush, once))
    return {entrant.name: found[entrant.name] for entrant in entrants}


def measure_sustained(entrants):
    """Runs of calls back to back, each run's time that of one call; slow entrants have none."""
    fast = paces(entrants)[0]
    calls = {entrant.name: 1 + int(SUSTAINED_SECONDS * 1000 / entrant.estimate) for entrant in fast}
    burn_in(fast)
    return measure_turns(fast, SUSTAINED_ROUNDS, lambda: None, calls)


def free_memory():
    """Gives back what PyTorch keeps for later, so that others find room on the GPU."""
    import torch

    torch.cuda.empty_cache()


def measure(found, point, modes, rounds):
    """{mode: {name: Runs}} of one point, and the relative errors by name, in e4m3 among them QUANTISATION."""
    problem = point.problem()
    reference = reference_of(point, problem)
    errors = {QUANTISATION: reference.quantisation} if point.kind == "e4m3" else {}
    entered = [enter(contender, point, problem, reference, errors) for contender in found]
    entrants = [entrant for entrant in entered if entrant]
    del reference
    free_memory()
    if not entrants:
        return {}, errors
    return {mode: measure_cold(entrants, rounds) if mode == "cold" else measure_sustained(entrants)
            for mode in modes}, errors


# ---- what comes out ----


def driver_version():
    """The kernel driver's version, as the stages read it; "unknown" without the file."""
    try:
        words = open("/proc/driver/nvidia/version", encoding="ascii").readline().split()
    except OSError:
        return "unknown"
    return next((word for word in words if re.fullmatch(r"[0-9.]*\.[0-9.]*", word)), "unknown")


def device_columns():
    """The device's columns of a row: name, clock, driver, CUDA. The clock is the highest, in MHz."""
    import torch

    device = torch.cuda.get_device_properties(0)
    clock = device.clock_rate // 1000 if hasattr(device, "clock_rate") else "unknown"
    return f"{device.name},{clock},{driver_version()},{torch.version.cuda}"


def times(point, runs):
    """The columns median_ms to tflops; empty, and 0 repeats, of what was not timed."""
    if not runs.milliseconds:
        return ",,,0,"
    measured, median = runs.milliseconds, runs.median()
    return (f"{median:.6f},{min(measured):.6f},{max(measured):.6f},{len(measured)},"
            f"{point.flops() / median / 1e9:.3f}")


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def row(name, device, point, mode, runs, version=""):
    """One line of CSV, without the input and the errors."""
    shape = ",".join(str(size) for size in point.shape())
    clocks = f"{statistics.median(runs.megahertz):.0f},{min(runs.megahertz):.0f}" if runs.megahertz else ","
    return f"{name},{device},{now()},{shape},{int(point.causal)},{times(point, runs)},{mode},{clocks},{version}"


def columns(options):
    return ",".join([COLUMNS, *["input"] * bool(options.inputs), *["kv_heads"] * grouped(options),
                     *ERRORS[options.kind]])


def grouped(options):
    """Whether a point has grouped heads: then all rows have one more column."""
    return any(point.heads for point in (*options.points, *options.sustained))


def more_columns(options, point, name, errors):
    """What a row has beside row()'s."""
    named = [point.input] if options.inputs else []
    named += [str(point.kv_heads or point.shape()[1])] * grouped(options)
    if options.kind == BACKWARD:
        return named + [f"{error:.8f}" for error in errors[name]]
    return named + [f"{errors[each]:.6f}" for each in (name, QUANTISATION) if options.kind == "e4m3"]


def rows_of(options, device, versions, point, measured, errors):
    """The rows of one point: of each mode, and of contenders that were wrong for their errors' sake."""
    timed_names = {name for runs in measured.values() for name in runs}
    wrong = {name: Runs([], []) for name in errors if name not in timed_names and name != QUANTISATION}
    for mode, runs in (*measured.items(), (WRONG, wrong)):
        for name in runs:
            line = row(name, device, point, mode, runs[name], versions[name])
            yield ",".join([line, *more_columns(options, point, name, errors)])


def spread(values):
    """The median, and half of the range of the middle half in percent of it."""
    median = statistics.median(values)
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (median, median, median)
    return median, 50 * (high - low) / median


def tflops(point, runs):
    """The median and its spread: "451 ±0.3"."""
    median, percent = spread(runs.milliseconds)
    return f"{point.flops() / median / 1e9:.4g} ±{percent:.1f}"


def print_tables(results, out):
    """One table for each mode, head dim, mask and input: a line for each contender, a column for each seqlen."""
    groups = {}
    for (point, mode), runs in results.items():
        groups.setdefault((mode, point.head_dim, point.causal, point.input), {})[point] = runs
    for (mode, head_dim, causal, kind), points in groups.items():
        names = list(dict.fromkeys(name for runs in points.values() for name in runs))
        width = max(len(name) for name in names)
        mask = "causal" if causal else "full"
        print(f"\nTFLOPS, D {head_dim}, {mask}, {kind}, {mode} (median ± half the middle half, %)", file=out)
        print(" " * width + "".join(f"{'S ' + str(point.seqlen):>15}" for point in points), file=out)
        for name in names:
            cells = [tflops(point, runs[name]) if name in runs else "-" for point, runs in points.items()]
            print(name.ljust(width) + "".join(f"{cell:>15}" for cell in cells), file=out)


def print_summary(title, ratios, out):
    """A line for each name in {name: [(ratio, point)]}: the geometric mean, and the least with its problem."""
    width = max([len(title), *map(len, ratios)])
    if ratios:
        print(f"\n{title:{width}}  mean   least", file=out)
    for name, pairs in ratios.items():
        mean, (least, point) = statistics.geometric_mean(ratio for ratio, _ in pairs), min(pairs)
        print(f"{name:{width}}  {mean:.3f}  {least:.3f} ({point.problem_name()})", file=out)


def by_head_dim(name, pairs):
    """All pairs of a ratio and a point, and those of each head dim if there are several."""
    parts = {}
    for ratio, point in pairs:
        parts.setdefault(f"{name}, D {point.head_dim}", []).append((ratio, point))
    return {name: pairs, **(parts if len(parts) > 1 else {})}


def print_ratios(results, yardstick, out):
    """How many times as fast as the fastest of the yardstick's contenders: a line for each mode, input and contender,
    over the points that all of the yardstick have, and then one for each head dim where there are two."""
    ratios = {}
    for (point, mode), runs in results.items():
        for name in runs if set(yardstick) <= set(runs) else ():
            if name not in yardstick:
                ratio = min(runs[each].median() for each in yardstick) / runs[name].median()
                ratios.setdefault(f"{mode}, {point.input}, {name}", []).append((ratio, point))
    ratios = {line: pairs for name, all_pairs in ratios.items() for line, pairs in by_head_dim(name, all_pairs).items()}
    best = f"the best of {' and '.join(yardstick)}" if len(yardstick) > 1 else yardstick[0]
    print_summary(f"times as fast as {best}", ratios, out)


def print_against(results, out):
    """How many times as fast each stage is as the old one: a table for each stage, and a line for all its points."""
    pairs = {}
    for (point, mode), runs in results.items():
        for old in runs:
            new = without_old(old)
            if new != old and new in runs:
                times = zip(runs[old].milliseconds, runs[new].milliseconds)
                ratio = spread([before / after for before, after in times])
                pairs.setdefault(f"{mode}, {point.input}, {old.removeprefix(OLD + ' ')}", []).append((*ratio, point))
    for name, ratios in pairs.items():
        print(f"\n{name}: times as fast as the old one (median ± half the middle half, %)", file=out)
        for ratio, percent, point in ratios:
            print(f"  {ratio:.3f} ±{percent:.1f}  {point.problem_name()}", file=out)
    medians = {name: [(ratio, point) for ratio, _, point in ratios] for name, ratios in pairs.items()}
    print_summary("times as fast as the old one", medians, out)


def print_rungs(results, out):
    """How many times as fast each rung is as the one below, where sequences are long, and which are slower."""
    ratios = {}
    for (point, mode), runs in results.items():
        rungs = sorted(name for name in runs if contenders.is_stage(name))
        for below, name in zip(rungs, rungs[1:]) if mode == "cold" and point.seqlen >= LONG else ():
            ratio = runs[below].median() / runs[name].median()
            ratios.setdefault(f"{point.input}, {name} / {below}", []).append((ratio, point))
    print_summary(f"times as fast as the rung below, S >= {LONG}", ratios, out)
    slower = [name for name, pairs in ratios.items() if min(pairs)[0] < 1]
    if ratios:
        print(f"slower at some point: {'; '.join(slower) or 'none'}", file=out)


def print_gradient_errors(errors, out):
    """The relative errors of the three gradients over the points, a line for each input and contender."""
    found = {}
    for point, by_name in errors.items():
        for name in by_name if point.kind == BACKWARD else ():
            found.setdefault(f"{point.input}, {name}", []).append(by_name[name])
    width = max([len("relative error (%)"), *map(len, found)])
    if found:
        titles = "".join(f"{name + ': median, most':>20}" for name in reference_backward.GRADIENTS)
        print(f"\n{'relative error (%)':{width}}{titles}", file=out)
    for line, triples in found.items():
        pairs = [(100 * statistics.median(each), 100 * max(each)) for each in zip(*triples)]
        print(f"{line:{width}}" + "".join(f"{median:12.4f}{most:8.4f}" for median, most in pairs), file=out)


def print_errors(errors, out):
    """The relative errors in e4m3 over the points, a line for each input and contender."""
    percents, ratios = {}, {}
    for point, found in errors.items():
        for name, error in found.items() if point.kind == "e4m3" else ():
            line = f"{point.input}, {name}"
            percents.setdefault(line, []).append(100 * error)
            if FP8 in found and name not in (FP8, QUANTISATION):
                ratios.setdefault(line, []).append((error / found[FP8], point))
    width = max([len("relative error (%)"), *map(len, percents)])
    if percents:
        print(f"\n{'relative error (%)':{width}}   least  median    most  times {FP8}: median, most", file=out)
    for line, values in percents.items():
        numbers = "".join(f"{number:8.3f}" for number in (min(values), statistics.median(values), max(values)))
        print(f"{line:{width}}{numbers}{ratio_text(ratios.get(line))}", file=out)


def ratio_text(ratios):
    """What follows a contender's errors: how many times FlashAttention-3's they are, in the median and at most."""
    if not ratios:
        return ""
    median, (most, point) = statistics.median(ratio for ratio, _ in ratios), max(ratios)
    return f"  {median:.3f}  {most:.3f} ({point.problem_name()})"


def print_clocks(results, out):
    """Between which SM clocks each contender ran."""
    clocks = {}
    for (_, mode), runs in results.items():
        for name in runs:
            if runs[name].megahertz:
                clocks.setdefault(f"{mode}, {name}", []).extend(runs[name].megahertz)
    width = max([8, *map(len, clocks)])
    if clocks:
        print(f"\n{'SM clock':{width}}   least  median    most (MHz)", file=out)
    for name, megahertz in clocks.items():
        numbers = min(megahertz), statistics.median(megahertz), max(megahertz)
        print(f"{name:{width}}" + "".join(f"{number:8.0f}" for number in numbers), file=out)


def print_all(results, errors, yardsticks, out):
    print_tables(results, out)
    for yardstick in yardsticks:
        print_ratios(results, yardstick, out)
    print_against(results, out)
    print_rungs(results, out)
    print_errors(errors, out)
    print_gradient_errors(errors, out)
    print_clocks(results, out)


class Rows:
    """Where the rows go. A file is written beside its name, and takes it when all has gone well."""

    def __init__(self, options, device):
        name = device.split(",")[0].lower().replace(" ", "-")
        kind = "-".join([options.kind] * (options.kind != "f16") + ["inputs"] * bool(options.inputs)) or "peers"
        self.path = os.path.join(ROOT, "plots", "data", f"{name}-{kind}.csv") if options.record else options.csv
        self.file = None
        if self.path == "-":
            self.file = sys.stdout
        elif self.path:
            try:
                self.file = open(self.path + ".partial", "w", encoding="ascii")
            except OSError as error:
                fail(2, f"{self.path}: {error.strerror}")
        self.write(columns(options))

    def write(self, line):
        if self.file:
            print(line, file=self.file, flush=True)

    def finish(self):
        if self.path and self.path != "-":
            self.file.close()
            os.replace(self.path + ".partial", self.path)
            print(f"recorded {self.path}", file=sys.stderr)


def plan(options):
    """The points in order, input by input, each with its modes."""
    modes = {}
    for kind in options.inputs or ["normal"]:
        for mode, points in ("cold", options.points), ("sustained", options.sustained):
            for point in points:
                modes.setdefault(point._replace(input=kind, kind=options.kind), []).append(mode)
    return modes


def is_whole(options):
    """Whether everything is timed that DEVICE.csv has from here."""
    everything = options.kind, options.stages, options.peers, options.points
    return everything == ("f16", "all", "all", parse_points("*/*/*")) and not options.inputs


def main(arguments):
    if DECODE in arguments:
        import decode_peers
        return decode_peers.main([argument for argument in arguments if argument != DECODE])
    options = parse_options(arguments)
    found = find_contenders(options)
    require_gpu()
    device = device_columns()
    versions = {contender.name: contender.version() for contender in found}
    rows, results, errors, modes = Rows(options, device), {}, {}, plan(options)
    for index, point in enumerate(modes, 1):
        measured, errors[point] = measure(found, point, modes[point], options.rounds)
        for line in rows_of(options, device, versions, point, measured, errors[point]):
            rows.write(line)
        for mode, runs in measured.items():
            results[point, mode] = runs
            medians = (f"{name} {tflops(point, runs[name])}" for name in runs)
            print(f"[{index}/{len(modes)}] {point}, {mode}: " + ", ".join(medians), file=sys.stderr, flush=True)
    print_all(results, errors, YARDSTICKS[options.kind], sys.stderr if options.csv == "-" else sys.stdout)
    rows.finish()
    if options.record and is_whole(options):
        free_memory()
        record.record(rows.path, sorted(glob.glob(os.path.join(ROOT, "baseline-*"))))
    return None


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except record.Unusable as why:
        fail(2, why)
    except KeyboardInterrupt:
        fail(130, "stopped; rows of the points that were done stay in the .partial file, if one was to be written")
