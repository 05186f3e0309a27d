"""plots/peers.py without a GPU: its options, and, with a made-up PyTorch whose clock only contenders move, who is timed
when.

Runs in the repository's root (or a folder that looks like it): python3 tests/peers/test_peers.py
"""
import contextlib
import ctypes
import importlib.util
import io
import math
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
from peers_test import ANOTHER_LIBRARY, ProgramTest, StructureTest  # noqa: E402

import backward  # noqa: E402
import contenders  # noqa: E402
import hopper_ladder  # noqa: E402
import inputs  # noqa: E402
import peers  # noqa: E402
import problem  # noqa: E402
import record  # noqa: E402
import reference  # noqa: E402
import reference_backward  # noqa: E402
import sm_clock  # noqa: E402


class Options(ProgramTest):
    def test_what_makes_no_sense_is_one_line(self):
        for argument, words in {
            "--points=64/full": "'64/full' is no point; HEAD_DIM/MASK/SEQLEN is allowed",
            "--points=96/full/512": "'96/full/512' is no point",
            "--points=64/full/0": "'64/full/0' is no point",
            "--points=64/full/512,": "'' is no point",
            "--sustained=all": "'all' is no point",
            "--stages=two": "'two' is no list of stages; all, none or numbers are allowed",
            "--stages=77": "the library has no f16 stage 77; it has 00, 00b, ",
            "--stages=5b": "the library has no f16 stage 05b; it has 00, 00b, ",
            "--pass=sideways": "'sideways' is no pass; forward, backward and decode are allowed",
            "--type=fp8": "'fp8' is no type; f16 and e4m3 are allowed",
            f"--library={ANOTHER_LIBRARY}": "is another library, or an older one; ",
            f"--against={ANOTHER_LIBRARY}": "is another library",
            "--peers=FA9": "'FA9' is no peer; all, none and FlashAttention-2, FlashAttention-3, cuDNN, CUTLASS, Triton, FlashInfer, math are allowed",
            "--inputs=normal,x8": "'x8' is no input; all and normal, large, sink, ramp, rampdown, waves, outliers, "
                                  "mean are allowed",
            "--rounds=0": "'0' is no number of rounds",
            "--contender=mine": "'mine' is no contender; NAME=FILE.so or NAME:64=FILE.so,128=FILE.so is allowed",
            "--contender=mine:65=/bin/sh": "is no contender",
            "--contender=mine=/no/such.so": "there is no file /no/such.so",
            "--contender=mine=Makefile": "--contender mine: ",
            "--bogus": "unrecognized arguments: --bogus",
        }.items():
            with self.subTest(argument):
                self.expect([argument], 2, words)

    def test_what_another_type_has(self):
        for argument, words in {
            "--stages=05": "the library has no e4m3 stage 05; it has 10, 10b, 10c, 11, 11b, 11c, 11d",
            "--peers=cuDNN": "'cuDNN' is no peer; all, none and FlashAttention-3 FP8, cuDNN FP8 are allowed",
            f"--contender=mine={ANOTHER_LIBRARY}": "undefined symbol: attn_fwd_e4m3",
        }.items():
            with self.subTest(argument):
                self.expect(["--type=e4m3", argument], 2, words)
        for argument, words in {
            "--stages=05": "the library has no backward stage 05; it has 12",
            "--peers=math": "'math' is no peer; all, none and FlashAttention-2, FlashAttention-3, FlashAttention-3 "
                            "deterministic, cuDNN are allowed",
            "--inputs=sink": "'sink' is no input; all and normal, vanish, explode are allowed",
            f"--contender=mine={ANOTHER_LIBRARY}": "undefined symbol: attn_bwd",
            "--type=e4m3": "--pass=backward is in fp16; --type=e4m3 is for the forward pass",
        }.items():
            with self.subTest(argument):
                self.expect(["--pass=backward", argument], 2, words)
        self.expect(["--inputs=vanish"], 2, "'vanish' is no input")
        self.expect(["--stages=12"], 2, "the library has no f16 stage 12; it has 00, 00b, ")
        self.expect(["--stages=11"], 2, "the library has no f16 stage 11; it has 00, 00b, ")
        self.expect(["--peers=FlashAttention-3 FP8"], 2, "'FlashAttention-3 FP8' is no peer; all, none and FlashA")

    def test_what_contradicts_itself(self):
        self.expect(["--record", "--csv=-"], 2, "--record and --csv both say where the rows go")
        self.expect(["--stages=none", "--peers=none"], 2, "there is nothing to time")
        self.expect(["--record", "--against=libhopper_ladder.so"], 2, "--record is for one build")

    def test_what_is_not_there(self):
        for option in "--library", "--against":
            self.expect([option + "=/no/such.so"], 3, "/no/such.so cannot be loaded; `make library` builds it")
        self.expect(["--peers=cuDNN"], 3, "has no PyTorch")

    def test_flash_attention_3(self):
        with mock.patch.object(peers, "FLASH_ATTENTION_3", "no/such.so"), \
                mock.patch.object(peers, "load_flashinfer", mock.Mock(side_effect=contenders.Refused("there is none"))), \
                mock.patch.object(peers, "CUTLASS_FMHA", "no/fmha.so"):
            for option, code in ("all", None), ("cuDNN,FlashAttention-3", 3), ("cuDNN", None):
                printed = io.StringIO()
                with self.subTest(option), contextlib.redirect_stderr(printed):
                    try:
                        found = peers.find_peers(peers.parse_options(["--peers=" + option]))
                        self.assertNotIn("FlashAttention-3", [peer.name for peer in found])
                        self.assertEqual(code, None)
                    except SystemExit as stopped:
                        self.assertEqual(stopped.code, code)
                    line = "FlashAttention-3 is not there; `make flash-attention-3` builds no/such.so\n"
                    info = "peers.py: FlashInfer is left out: there is none\n"
                    fmha = "peers.py: CUTLASS is not there; `make cutlass-fmha` builds no/fmha.so\n"
                    self.assertEqual(printed.getvalue(), "" if option == "cuDNN" else
                                     "peers.py: " + line + (fmha + info) * (option == "all"))

    def test_flash_attention_3_of_before_e4m3(self):
        old = types.SimpleNamespace(flash_attention_3=mock.Mock())
        with mock.patch.object(contenders, "load_flash_attention_3", lambda path: old):
            found = peers.find_peer("FlashAttention-3", "f16", True)
            self.assertEqual([peer.name for peer in found], ["FlashAttention-3"])
            printed = io.StringIO()
            with contextlib.redirect_stderr(printed):
                self.assertEqual(peers.find_peer("FlashAttention-3 FP8", "e4m3", False), [])
                self.assertEqual(peers.find_peer("FlashAttention-3", "backward", False), [])
            for name in "FlashAttention-3 FP8", "FlashAttention-3":
                self.assertIn(f"peers.py: {name} is not there; `make flash-attention-3`", printed.getvalue())

    def test_points(self):
        everything = peers.parse_options([])
        self.assertEqual(len(everything.points), 24)
        sustained = [str(point) for point in everything.sustained]
        self.assertEqual(sustained, ["D 64, full, S 16384, normal", "D 128, full, S 16384, normal"])
        some = peers.parse_options(["--points=128/causal/*,128/*/512,64/full/97"])
        self.assertEqual(len(some.points), 6 + 1 + 1, "each once")
        self.assertEqual(some.sustained, [])
        self.assertEqual(some.points[-1].shape(), (168, 32, 97, 64))
        self.assertEqual(peers.Point(128, True, 16384).shape(), (1, 16, 16384, 128))
        self.assertEqual(peers.Point(128, True, 32768).shape(), (1, 16, 32768, 128))

    def test_inputs(self):
        options = peers.parse_options(["--inputs=sink,large,sink", "--points=64/full/512,128/causal/512"])
        planned = [f"{point}: {' '.join(modes)}" for point, modes in peers.plan(options).items()]
        self.assertEqual(planned, ["D 64, full, S 512, sink: cold", "D 128, causal, S 512, sink: cold",
                                   "D 64, full, S 512, large: cold", "D 128, causal, S 512, large: cold"])
        self.assertEqual(peers.parse_options(["--inputs=all"]).inputs, list(inputs.KINDS))
        self.assertEqual(len(peers.plan(peers.parse_options(["--inputs=all"]))), 24 * len(inputs.KINDS))
        everything = list(peers.plan(peers.parse_options([])).values())
        self.assertEqual((len(everything), everything.count(["cold", "sustained"])), (24, 2))
        both = peers.parse_options(["--inputs=ramp", "--points=none", "--sustained=64/full/512"])
        self.assertEqual(list(peers.plan(both).items()), [(peers.Point(64, False, 512, "ramp"), ["sustained"])])
        backwards = peers.plan(peers.parse_options(["--pass=backward", "--inputs=all"]))
        self.assertEqual((len(backwards), {point.kind for point in backwards}), (24 * 3, {"backward"}))
        e4m3 = peers.plan(peers.parse_options(["--type=e4m3"]))
        self.assertEqual((len(e4m3), {point.kind for point in e4m3}), (24, {"e4m3"}))

    def test_contenders(self):
        parse = contenders.parse_kernel
        self.assertEqual(parse("a=/bin/sh"), ("a", {64: "/bin/sh", 128: "/bin/sh"}))
        self.assertEqual(parse("a:128=/bin/sh"), ("a", {128: "/bin/sh"}))
        self.assertEqual(parse("a:64=/bin/sh,128=/bin/ls"), ("a", {64: "/bin/sh", 128: "/bin/ls"}))

    def test_stages_of_the_library(self):
        found = peers.find_contenders(peers.parse_options(["--stages=03,1", "--peers=cuDNN"]))
        self.assertEqual([contender.name for contender in found], ["03-cp-async", "01-wmma-qk", "cuDNN"])

    def test_stages_on_e4m3(self):
        names = ["10-stale-max", "10b-fp8-scores", "10c-fp8-values", "11-fp8", "11b-fp8-transpose", "11c-fp8-overlap",
                 "11d-fp8-four-consumers"]
        found = peers.find_contenders(peers.parse_options(["--type=e4m3", "--peers=none"]))
        self.assertEqual([contender.name for contender in found], names)
        found = peers.find_contenders(peers.parse_options(["--type=e4m3", "--stages=11c",
                                                           "--against=./libhopper_ladder.so"]))
        self.assertEqual([contender.name for contender in found], [names[5], "old " + names[5]])

    def test_stages_of_the_backward_pass(self):
        found = peers.find_contenders(peers.parse_options(["--pass=backward", "--stages=12", "--peers=cuDNN"]))
        self.assertEqual([contender.name for contender in found], ["12-backward", "cuDNN"])
        everything = peers.find_stages(peers.parse_options(["--pass=backward"]))
        self.assertEqual({contender.name[:2] for contender in everything}, {"12"})

    def test_operations_of_the_backward_pass(self):
        for causal in False, True:
            forward = peers.Point(64, causal, 1024)
            self.assertEqual(forward._replace(kind="backward").flops(), 2.5 * forward.flops())

    def test_old_stages_are_compared_by_title_or_number(self):
        names = ["05-a", "08-pipelining", "08b-ping-pong", "10-stale-max"]
        found = [peers.new_of(old, names) for old in ("05-a", "08-ping-pong", "10-late-max", "11-z")]
        self.assertEqual(found, ["05-a", "08b-ping-pong", "10-stale-max", None])
        for name, new in ("old 08b-p (08-p)", "08b-p"), ("old 05-a", "05-a"), ("CUDA 12.9 05-a", "05-a"), ("cuDNN", "cuDNN"):
            self.assertEqual(peers.without_old(name), new)

    def test_stages_of_another_build(self):
        found = peers.find_contenders(peers.parse_options(["--stages=03,01", "--against=./libhopper_ladder.so"]))
        self.assertEqual([contender.name for contender in found],
                         ["03-cp-async", "01-wmma-qk", "old 01-wmma-qk", "old 03-cp-async"])

    def test_another_build_can_have_a_name(self):
        self.assertEqual(peers.parse_options(["--against=CUDA 12.9=a=b.so"]).against, ("CUDA 12.9=a", "b.so"))
        self.assertEqual(peers.parse_options(["--against=a.so"]).against, ("old", "a.so"))


class MadeUpTensor:
    """As far as a contender needs it: its data are at an address."""

    shape = (2, 3, 512, 64)

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address

    def stride(self):
        return (98304, 32768, 64, 1)


class Structures(StructureTest):
    """Those of hopper_ladder.py are those of hopper_ladder.h."""

    def test_offsets(self):
        self.expect_as_in_c('#include "common/library/hopper_ladder.h"', {
            "HlCall": hopper_ladder.Call, "HlDecode": hopper_ladder.Decode, "HlTensor": hopper_ladder.Tensor,
            "HlScale": hopper_ladder.Scale, "HlStage": hopper_ladder.Stage})

    def test_a_stage_of_a_library_without_decode(self):
        """Of an earlier build, whose HlStage is shorter."""
        earlier = hopper_ladder.EarlierStage(number=b"10", lse=1)
        library = types.SimpleNamespace(hl_stage_count=lambda: 1, hl_stage=lambda index: ctypes.pointer(earlier))
        stage = hopper_ladder.stages(library)[0]
        self.assertEqual((stage.number, stage.lse, stage.decode, stage.queries), (b"10", 1, 0, 0))

    def test_a_tensor_with_gaps_in_its_rows(self):
        view = MadeUpTensor(10)
        view.stride = lambda: (98304, 32768, 128, 2)
        with self.assertRaisesRegex(ValueError, "stride 2: only 1 is allowed"):
            hopper_ladder.tensor(view)


class Calls(unittest.TestCase):
    """What contenders call, with which pointers."""

    def setUp(self):
        tensors = [MadeUpTensor(address) for address in range(10, 17)]
        f16 = problem.Problem(*map(MadeUpTensor, (20, 21, 22)), True)
        self.problems = {"f16": problem.Problem(*tensors[:3], True),
                         "e4m3": problem.Problem(*tensors[:3], True, tuple(tensors[4:]), f16, f16),
                         "backward": problem.BackwardProblem(*tensors[:3], True, d_o=MadeUpTensor(20),
                                                             o=MadeUpTensor(21), lse=MadeUpTensor(22))}
        self.output = tensors[3]
        self.elements = []
        empty = types.SimpleNamespace(data_ptr=lambda: 30)
        torch = types.SimpleNamespace(empty=lambda *size, **options: empty, uint8="uint8")
        for patch in (mock.patch.object(contenders, "new_output", self.new_output),
                      mock.patch.object(contenders, "current_stream", lambda: 40),
                      mock.patch.dict(sys.modules, torch=torch)):
            patch.start()
            self.addCleanup(patch.stop)

    def new_output(self, _, element="float16"):
        self.elements.append(element)
        return self.output

    def library(self):
        functions = {name: mock.Mock(return_value=0) for name in (
            "hl_attention", "attn_fwd", "attn_fwd_e4m3", "flash_attention_3",
            "flash_attention_3_e4m3", "flash_attention_3_workspace", "hl_attention_backward", "attn_bwd",
            "flash_attention_3_backward", "flash_attention_3_backward_workspace")}
        known = [hopper_ladder.Stage(number=b"10b", type=hopper_ladder.E4M3_SCORES),
                 hopper_ladder.Stage(number=b"11c", type=hopper_ladder.E4M3)]
        return types.SimpleNamespace(hl_stage_count=lambda: len(known), hl_stage=lambda i: ctypes.pointer(known[i]),
                                     **functions)

    def call(self, contender, kind):
        self.assertIs(contender.prepare(self.problems[kind])(), self.output)

    def record(self, library, function):
        """The fields of the calls, as they were when the library got them."""
        calls = []
        fields = "stage", "causal", "type", "flags", "stream", "lse"

        def note(call):
            tensors = {name: getattr(call, name).data for name in ("q", "k", "v", "o", "d_o", "d_q", "d_k", "d_v")}
            scales = [getattr(call, name).data for name in ("q_scale", "k_scale", "v_scale")]
            calls.append({**{name: getattr(call, name) for name in fields}, **tensors, "scales": scales})
            return 0

        getattr(library, function).side_effect = note
        return calls

    def test_a_stage(self):
        for kind, number, dtype, addresses, scales in (("f16", "03", 0, [10, 11, 12, 13], [None] * 3),
                                                       ("e4m3", "11c", 1, [10, 11, 12, 13], [14, 15, 16]),
                                                       ("e4m3", "10b", 2, [10, 11, 22, 13], [14, 15, None]),
                                                       ("e4m3", "10", 0, [20, 21, 22, 13], [None] * 3)):
            with self.subTest(number):
                library = self.library()
                calls = self.record(library, "hl_attention")
                self.call(contenders.stage(library, number, "name", kind), kind)
                self.assertEqual([call["flags"] for call in calls], [2, 0], "a check, then the call")
                call = calls[1]
                self.assertEqual((call["stage"], call["causal"], call["type"], call["stream"]),
                                 (number.encode(), 1, dtype, 40))
                self.assertEqual([call[name] for name in "qkvo"], addresses)
                self.assertEqual(call["scales"], scales)

    def test_a_stage_that_refuses(self):
        library = self.library()
        library.hl_attention.return_value = 2
        library.hl_error = lambda: b"no"
        with self.assertRaisesRegex(contenders.Refused, "^no$"):
            contenders.stage(library, "03", "name").prepare(self.problems["f16"])

    def test_another_kernel(self):
        for kind, name, addresses in (("f16", "attn_fwd", [10, 11, 12, 13]),
                                      ("e4m3", "attn_fwd_e4m3", [10, 11, 12, 13, 14, 15, 16])):
            library = self.library()
            with self.subTest(kind), mock.patch.object(contenders.ctypes, "CDLL", lambda path: library):
                self.call(contenders.kernel("mine", {64: "mine.so"}, kind), kind)
                function = getattr(library, name)
                self.assertEqual(function.call_args[0], (2, 3, 512, *addresses, 1, 40))
                self.assertEqual(len(function.argtypes), len(function.call_args[0]))

    def test_flash_attention_3(self):
        for kind, name, addresses in (("f16", "flash_attention_3", [10, 11, 12, 13]),
                                      ("e4m3", "flash_attention_3_e4m3", [10, 11, 12, 13, 14, 15, 16])):
            with self.subTest(kind):
                library = self.library()
                self.call(contenders.flash_attention_3(library, kind), kind)
                function = getattr(library, name)
                self.assertEqual(function.call_args[0], (2, 3, 512, 64, 1, 0.125, *addresses, 30, 40))
                self.assertEqual(len(function.argtypes), len(function.call_args[0]))
        self.assertEqual(self.elements, ["float16", "bfloat16"])

    def call_backward(self, contender):
        self.assertEqual(contender.prepare(self.problems["backward"])(), 3 * [self.output])

    def test_a_backward_stage(self):
        library = self.library()
        calls = self.record(library, "hl_attention_backward")
        self.call_backward(backward.stage(library, "12", "name"))
        self.assertEqual([call["flags"] for call in calls], [2, 0])
        call = calls[1]
        self.assertEqual((call["stage"], call["causal"], call["lse"], call["stream"]), (b"12", 1, 22, 40))
        self.assertEqual([call[name] for name in ("q", "k", "v", "o", "d_o")], [10, 11, 12, 21, 20])
        self.assertEqual([call[name] for name in ("d_q", "d_k", "d_v")], [13, 13, 13])
        self.assertFalse(library.hl_attention.called)

    def test_other_backward_kernels(self):
        pointers = [10, 11, 12, 21, 20, 22, 13, 13, 13]
        library = self.library()
        with mock.patch.object(contenders.ctypes, "CDLL", lambda path: library):
            self.call_backward(backward.kernel("mine", {64: "mine.so"}))
        self.assertEqual(library.attn_bwd.call_args[0], (2, 3, 512, *pointers, 1, 40))
        for deterministic in False, True:
            self.call_backward(backward.flash_attention_3(library, deterministic))
            function = library.flash_attention_3_backward
            self.assertEqual(function.call_args[0], (2, 3, 512, 64, 1, int(deterministic), 0.125, *pointers, 30, 40))
            self.assertEqual(library.flash_attention_3_backward_workspace.call_args[0], (2, 3, 512, 64, 1))
            for each in function, library.attn_bwd:
                self.assertEqual(len(each.argtypes), len(each.call_args[0]))

    def test_what_refuses_is_named(self):
        library = self.library()
        library.flash_attention_3_backward.return_value = 1
        with self.assertRaisesRegex(contenders.Refused, "FlashAttention-3 deterministic returned 1"):
            self.call_backward(backward.flash_attention_3(library, True))
        library.flash_attention_3_e4m3.return_value = 1
        with self.assertRaisesRegex(contenders.Refused, "FlashAttention-3 FP8 returned 1"):
            self.call(contenders.flash_attention_3(library, "e4m3"), "e4m3")


class MadeUpTorch:
    """PyTorch as far as the timing needs it: a clock in milliseconds that stands until a contender runs."""

    def __init__(self):
        self.now, self.log = 0.0, []
        properties = types.SimpleNamespace(name="Test GPU", clock_rate=1980000, L2_cache_size=100)
        self.cuda = types.SimpleNamespace(Event=lambda enable_timing: Event(self), empty_cache=lambda: None,
                                          get_device_properties=lambda index: properties)
        self.version = types.SimpleNamespace(cuda="13.0")
        self.int8 = "int8"

    def empty(self, size, dtype, device):
        assert (size, dtype, device) == (200, "int8", "cuda"), "twice the L2 cache"
        return types.SimpleNamespace(zero_=lambda: self.log.append("flush"))

    def clock(self, room):
        """Stands for an SmClock whose frequency is 100 times the last call's milliseconds."""
        stamps = []

        def stamp():
            stamps.append(self.now)
            assert len(stamps) <= room
            return len(stamps) - 1

        return mock.Mock(stamp=stamp, megahertz=lambda pairs: [100 * (stamps[last] - stamps[first])
                                                               for first, last in pairs])

    def contender(self, name, cost, output="right", refuses=None):
        def call():
            self.log.append(name)
            self.now += cost
            return output

        def prepare(problem):
            if refuses:
                raise contenders.Refused(refuses)
            return call

        return contenders.Contender(name, prepare)


class Event:
    def __init__(self, torch):
        self.torch = torch

    def record(self):
        self.time = self.torch.now

    def synchronize(self):
        self.torch.log.append("wait")

    def elapsed_time(self, other):
        return other.time - self.time


class Timing(unittest.TestCase):
    def measure(self, found, modes=("cold",), rounds=5):
        """What peers.measure returns of the runs and prints, for contenders of the made-up PyTorch."""
        (results, errors), printed = self.measure_at(peers.Point(64, False, 512), found, modes, rounds)
        self.assertEqual(errors, {})
        return results, printed

    def measure_at(self, point, found, modes=("cold",), rounds=5):
        """All that it returns, and what it prints."""
        reference = mock.Mock(differences=lambda output: "" if output == "right" else "it is " + output,
                              relative_errors=lambda output: (0.01 if output == "right" else 0.5, 1), quantisation=0.04)
        printed = io.StringIO()
        with mock.patch.dict(sys.modules, torch=self.torch), mock.patch.object(peers, "SmClock", self.torch.clock), \
                mock.patch.object(peers, "reference_of", lambda point, problem: reference), \
                mock.patch.object(peers.Point, "problem", lambda point: None), contextlib.redirect_stderr(printed):
            return peers.measure(found, point, modes, rounds), printed.getvalue()

    def setUp(self):
        self.torch = MadeUpTorch()

    def test_each_has_its_own_time(self):
        results, printed = self.measure([self.torch.contender("a", 1.0), self.torch.contender("b", 2.0)])
        self.assertEqual(results, {"cold": {"a": ([1.0] * 5, [100.0] * 5), "b": ([2.0] * 5, [200.0] * 5)}})
        self.assertEqual(printed, "")

    def test_a_wrong_one_is_not_timed(self):
        found = [self.torch.contender("a", 1.0, "wrong"), self.torch.contender("b", 2.0),
                 self.torch.contender("c", 1.0, refuses="no such head dim")]
        results, printed = self.measure(found)
        self.assertEqual(list(results["cold"]), ["b"])
        self.assertEqual(self.torch.log.count("a"), 1)
        self.assertEqual(printed, "peers.py: a is WRONG and not timed at D 64, full, S 512, normal: it is wrong\n"
                                  "peers.py: c is left out at D 64, full, S 512, normal: no such head dim\n")

    def test_errors_in_e4m3_are_those_of_wrong_ones_too(self):
        found = [self.torch.contender("a", 1.0, "wrong"), self.torch.contender("b", 2.0),
                 self.torch.contender("c", 1.0, refuses="no such head dim")]
        (results, errors), _ = self.measure_at(peers.Point(64, False, 512, kind="e4m3"), found)
        self.assertEqual(list(results["cold"]), ["b"])
        self.assertEqual(errors, {"quantisation": 0.04, "a": 0.5, "b": 0.01})

    def test_errors_of_gradients_are_those_of_wrong_ones_too(self):
        found = [self.torch.contender("a", 1.0, "wrong"), self.torch.contender("b", 2.0)]
        (results, errors), printed = self.measure_at(peers.Point(64, False, 512, kind="backward"), found)
        self.assertEqual((list(results["cold"]), errors), (["b"], {"a": (0.5, 1), "b": (0.01, 1)}))
        self.assertIn("a is WRONG and not timed", printed)

    def test_nobody_is_left(self):
        self.assertEqual(self.measure([self.torch.contender("a", 1.0, "wrong")])[0], {})

    def test_they_take_turns_after_a_burn_in(self):
        self.measure([self.torch.contender(name, 1.0) for name in "abc"], rounds=20)
        first = self.torch.log.index("flush")
        before = self.torch.log[:first]
        self.assertGreaterEqual(len([name for name in before if name != "wait"]), 1000 * peers.BURN_IN_SECONDS)
        measured = [name for name in self.torch.log[first:] if name != "wait"]
        self.assertEqual(measured[0::2], ["flush"] * 60, "before each run")
        rounds = ["".join(measured[i + 1:i + 6:2]) for i in range(0, 120, 6)]
        self.assertEqual({"".join(sorted(each)) for each in rounds}, {"abc"}, "each once a round")
        self.assertGreater(len(set(rounds)), 3, "in changing order")
        self.assertNotIn("wait", self.torch.log[first:first + 120], "the host stays ahead of the GPU")

    def test_slow_ones_come_after_the_others(self):
        costs = {"slow": 500.0, "fast": 1.0, "half": 3.9}
        found = [self.torch.contender(name, cost) for name, cost in costs.items()]
        results, _ = self.measure(found, rounds=20)
        self.assertEqual(list(results["cold"]), ["slow", "fast", "half"])
        rounds = [len(runs.milliseconds) for runs in results["cold"].values()]
        self.assertEqual(rounds, [peers.SLOW_ROUNDS, 20, 20])
        first = self.torch.log.index("flush")
        self.assertNotIn("slow", self.torch.log[first:first + 80])

    def test_two_builds_of_a_stage_take_turns(self):
        costs = {"00-slow": 401.0, "05-fast": 100.0, "old 05-fast": 110.0, "old 00-slow": 399.0}
        found = [self.torch.contender(name, cost) for name, cost in costs.items()]
        self.measure(found, rounds=2)
        first = self.torch.log.index("flush")
        measured = [name for name in self.torch.log[first:] if name not in ("wait", "flush")]
        self.assertEqual(sorted(measured[:4]), sorted(costs), "also where one is just slow and the other is not")

    def test_slow_ones_take_turns_among_themselves(self):
        costs = {"a": 500.0, "fast": 1.0, "b": 600.0, "slowest": 2400.0}
        self.measure([self.torch.contender(name, cost) for name, cost in costs.items()])
        measured = [name for name in self.torch.log[self.torch.log.index("flush"):] if name not in ("wait", "flush")]
        self.assertEqual(measured[:5] + measured[-3:], 5 * ["fast"] + 3 * ["slowest"])
        self.assertEqual([set(measured[i:i + 2]) for i in (5, 7, 9)], 3 * [{"a", "b"}])

    def test_sustained_is_back_to_back(self):
        found = [self.torch.contender("a", 2.0), self.torch.contender("b", 100.0)]
        results, _ = self.measure(found, modes=("sustained",))
        calls = int(peers.SUSTAINED_SECONDS * 1000 / 2)
        times, clocks = results["sustained"].pop("a")
        self.assertEqual((times, results), ([2.0] * peers.SUSTAINED_ROUNDS, {"sustained": {}}))
        self.assertEqual(clocks, [100 * 2.0 * (calls + 1)] * peers.SUSTAINED_ROUNDS, "of all calls of a turn")
        self.assertIn("a" * calls, "".join(name for name in self.torch.log if name != "wait"))


def runs_of(*milliseconds, megahertz=()):
    return peers.Runs(list(milliseconds), list(megahertz))


class Clock(unittest.TestCase):
    def test_clocks_over_nanoseconds(self):
        clock = object.__new__(sm_clock.SmClock)
        clock.stamps = mock.Mock(tolist=lambda: [[500, 1000], [2000, 2000], [0, 0], [9000, 2000], [5000, 4000]])
        self.assertEqual(clock.megahertz([(0, 1), (1, 4), (0, 2), (2, 4), (1, 3)]), [1500.0, 1500.0])


class Output(unittest.TestCase):
    def test_columns_are_the_stages_and_more(self):
        columns = "stage,device,sm_clock_mhz,driver,cuda,date,batch,heads,seqlen,head_dim,causal,median_ms,min_ms," \
                  "max_ms,repeats,tflops,"
        self.assertTrue(peers.COLUMNS.startswith(columns))
        with open("plots/data/nvidia-h200.csv", encoding="ascii") as file:
            self.assertTrue((file.readline().rstrip("\n") + ",").startswith(columns))

    def test_a_row(self):
        runs = runs_of(3.0, 1.0, 2.0, 2.5, megahertz=[1700.4, 1500.0, 1600.0])
        for measured, clocks in (runs, "1600,1500"), (runs._replace(megahertz=[]), ","):
            row = peers.row("mine", "Test GPU,1980,1.2,13.0", peers.Point(128, True, 4096), "cold", measured, "1.0")
            self.assertRegex(row, r"^mine,Test GPU,1980,1.2,13.0,20..-..-..T..:..:..Z,4,16,4096,128,1,"
                                  rf"2.250000,1.000000,3.000000,4,122.168,cold,{clocks},1.0$")
            self.assertEqual(row.count(","), peers.COLUMNS.count(","))

    def options(self, dtype="f16", record=False, csv=None, inputs=None):
        return types.SimpleNamespace(kind=dtype, record=record, csv=csv, inputs=inputs, points=[], sustained=[])

    def test_files_are_whole_or_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "times.csv")
            rows = peers.Rows(self.options(csv=path), "Test GPU,1980")
            rows.write("a row")
            self.assertEqual(os.listdir(folder), ["times.csv.partial"])
            with contextlib.redirect_stderr(io.StringIO()):
                rows.finish()
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), peers.COLUMNS + "\na row\n")
            self.assertEqual(os.listdir(folder), ["times.csv"])

    def test_record_names_the_device_and_what_was_varied(self):
        for dtype, kinds, name in (("f16", None, "peers"), ("f16", ["normal"], "inputs"), ("e4m3", None, "e4m3"),
                                   ("e4m3", ["normal"], "e4m3-inputs"), ("backward", None, "backward"),
                                   ("backward", ["normal"], "backward-inputs")):
            with mock.patch("builtins.open") as opened:
                peers.Rows(self.options(dtype, record=True, inputs=kinds), "NVIDIA H200,1980")
            self.assertTrue(opened.call_args[0][0].endswith(f"/plots/data/nvidia-h200-{name}.csv.partial"))

    def test_rows_name_the_input_where_inputs_are_named(self):
        for arguments, header, row in (([], peers.COLUMNS, "cold,1700,1600,1.0"),
                                       (["--inputs=normal,ramp"], peers.COLUMNS + ",input",
                                        "cold,1700,1600,1.0,ramp")):
            with self.subTest(arguments):
                printed = self.main("--points=64/full/512", "--csv=-", *arguments).splitlines()
                self.assertEqual(printed[0], header)
                self.assertTrue(printed[-1].startswith("mine,Test GPU,1980,") and printed[-1].endswith("," + row))
                self.assertEqual(len(printed), 3 if arguments else 2)

    def test_rows_have_errors_in_e4m3(self):
        errors = {"quantisation": 0.04, "mine": 0.0251234567, "other": 0.7}
        for arguments, more in ([], ""), (["--inputs=mean"], ",mean"):
            with self.subTest(arguments):
                lines = self.main("--type=e4m3", "--points=64/full/512", "--sustained=none", "--csv=-", *arguments,
                                  errors=errors).splitlines()
                header = peers.COLUMNS + (",input" if more else "") + ",relative_error,quantisation_error"
                self.assertEqual((lines[0], len(lines)), (header, 3))
                for line, end in zip(lines[1:], (f",2,68.719,cold,1700,1600,1.0{more},0.025123,0.040000",
                                                 f",32,32,512,64,0,,,,0,,wrong,,,2.0{more},0.700000,0.040000")):
                    self.assertTrue(line.endswith(end), line)
                self.assertEqual({line.count(",") for line in lines}, {header.count(",")})

    def test_rows_have_the_errors_of_the_gradients(self):
        errors = {"mine": (0.0002512345, 0.0003, 0.0004), "other": (0.7, 0.8, math.nan)}
        for arguments, more in ([], ""), (["--inputs=vanish"], ",vanish"):
            with self.subTest(arguments):
                lines = self.main("--pass=backward", "--points=64/full/512", "--sustained=none", "--csv=-", *arguments,
                                  errors=errors).splitlines()
                header = peers.COLUMNS + (",input" if more else "") + "".join(
                    f",relative_error_{name}" for name in ("dq", "dk", "dv"))
                self.assertEqual((lines[0], len(lines)), (header, 3))
                for line, end in zip(lines[1:], (
                        f",2,171.799,cold,1700,1600,1.0{more},0.00025123,0.00030000,0.00040000",
                        f",32,32,512,64,0,,,,0,,wrong,,,2.0{more},0.70000000,0.80000000,nan")):
                    self.assertTrue(line.endswith(end), line)

    def test_what_lessons_show_follows_a_whole_run(self):
        for arguments, whole in {"--record": True, "--record --rounds=9": True, "--record --stages=03": False,
                                 "--record --peers=cuDNN": False, "--record --points=64/*/*": False,
                                 "--record --inputs=normal": False, "--record --type=e4m3": False,
                                 "--record --pass=backward": False,
                                 "--csv=-": False}.items():
            with self.subTest(arguments), mock.patch.object(peers.record, "record") as recorded, \
                    mock.patch("builtins.open"), mock.patch("os.replace"), mock.patch.object(peers, "free_memory"):
                self.main(*arguments.split())
                self.assertEqual(recorded.call_count, whole)
                if whole:
                    self.assertTrue(recorded.call_args[0][0].endswith("/plots/data/test-gpu-peers.csv"))

    def main(self, *arguments, errors=None):
        """What a run prints to standard output in which "mine" takes a millisecond a call and "other" is wrong."""
        times = {"cold": {"mine": runs_of(1.0, 1.0, megahertz=[1600, 1800])}}
        errors = errors or ({"mine": (0.1, 0.1, 0.1)} if "--pass=backward" in arguments else
                            {peers.QUANTISATION: 0.1, "mine": 0.1})
        found = [contenders.Contender("mine", None, lambda: "1.0"), contenders.Contender("other", None, lambda: "2.0")]
        printed = io.StringIO()
        with mock.patch.multiple(peers, find_contenders=lambda options: found, require_gpu=lambda: None,
                                 device_columns=lambda: "Test GPU,1980,1.2,13.0",
                                 measure=lambda found, point, *rest: (times, errors if point.kind != "f16" else {})), \
                contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            peers.main(list(arguments))
        return printed.getvalue()

    def test_tables(self):
        point = peers.Point(64, False, 1024)
        out = io.StringIO()
        peers.print_tables({(point, "cold"): {"a": runs_of(1.0, 1.0, 1.0), "longer": runs_of(2.0)},
                            (peers.Point(64, False, 2048), "cold"): {"a": runs_of(2.0)}}, out)
        self.assertEqual(out.getvalue(), "\nTFLOPS, D 64, full, normal, cold (median ± half the middle half, %)\n"
                                         "               S 1024         S 2048\n"
                                         "a          137.4 ±0.0     137.4 ±0.0\n"
                                         "longer     68.72 ±0.0              -\n")

    def test_the_spread_is_half_of_the_middle_half(self):
        self.assertEqual(peers.spread([5, 1, 4, 2, 3]), (3, 50))

    def test_ratios_to_the_yardstick(self):
        first, second = peers.Point(64, False, 1024, "sink"), peers.Point(128, True, 512, "sink")
        out = io.StringIO()
        peers.print_ratios({(first, "cold"): {"a": runs_of(1.0, 1.0), "cuDNN": runs_of(2.0)},
                            (second, "cold"): {"a": runs_of(4.0), "cuDNN": runs_of(2.0, 2.0), "b": runs_of(1.0)},
                            (first._replace(input="waves"), "cold"): {"a": runs_of(1.0), "cuDNN": runs_of(4.0)},
                            (first, "sustained"): {"a": runs_of(1.0)}}, ("cuDNN",), out)
        self.assertEqual(out.getvalue(), "\ntimes as fast as cuDNN  mean   least\n"
                                         "cold, sink, a           1.000  0.500 (D 128, causal, S 512)\n"
                         "cold, sink, a, D 64     2.000  2.000 (D 64, full, S 1024)\n"
                         "cold, sink, a, D 128    0.500  0.500 (D 128, causal, S 512)\n"
                                         "cold, sink, b           2.000  2.000 (D 128, causal, S 512)\n"
                                         "cold, waves, a          4.000  4.000 (D 64, full, S 1024)\n")

    def test_two_builds(self):
        first, second = peers.Point(64, False, 1024), peers.Point(128, True, 512)
        out = io.StringIO()
        three = {"05-a": runs_of(2.0, 1.0, 2.0), "old 05-a": runs_of(4.0, 2.0, 4.0), "06-b": runs_of(1.0)}
        peers.print_against({(first, "cold"): three,
                             (second, "cold"): {"05-a": runs_of(2.0, 4.0), "old 05-a": runs_of(1.0, 2.0)}}, out)
        self.assertEqual(out.getvalue(), "\ncold, normal, 05-a: times as fast as the old one "
                                         "(median ± half the middle half, %)\n"
                                         "  2.000 ±0.0  D 64, full, S 1024\n"
                                         "  0.500 ±0.0  D 128, causal, S 512\n"
                                         "\ntimes as fast as the old one  mean   least\n"
                                         "cold, normal, 05-a            1.000  0.500 (D 128, causal, S 512)\n")

    def test_rungs(self):
        point, long = peers.Point(64, False, 2048), peers.Point(64, False, 4096)
        out = io.StringIO()
        slow, fast, slower = runs_of(2.0), runs_of(1.0), runs_of(1.1)
        peers.print_rungs({(point, "cold"): {"02b-c": fast, "02-a": slow, "03-d": slower, "cuDNN": fast},
                           (long, "cold"): {"02b-c": fast, "02-a": runs_of(8.0), "03-d": fast, "old 03-d": slow},
                           (long, "sustained"): {"02b-c": slow, "02-a": fast},
                           (peers.Point(64, False, 512), "cold"): {"02-a": fast, "02b-c": slow}}, out)
        self.assertEqual(out.getvalue(),
                         "\ntimes as fast as the rung below, S >= 2048  mean   least\n"
                         "normal, 02b-c / 02-a                        4.000  2.000 (D 64, full, S 2048)\n"
                         "normal, 03-d / 02b-c                        0.953  0.909 (D 64, full, S 2048)\n"
                         "slower at some point: normal, 03-d / 02b-c\n")

    def test_no_yardstick_no_ratios(self):
        out = io.StringIO()
        peers.print_ratios({(peers.Point(64, False, 1024), "cold"): {"a": runs_of(1.0)}}, ("cuDNN",), out)
        self.assertEqual(out.getvalue(), "")

    def test_ratios_to_the_best_of_two(self):
        point = peers.Point(64, False, 1024)
        out = io.StringIO()
        peers.print_ratios({(point, "cold"): {"a": runs_of(1.0), "x": runs_of(3.0), "y": runs_of(2.0)},
                            (point._replace(seqlen=512), "cold"): {"a": runs_of(1.0), "x": runs_of(4.0)}},
                           ("x", "y"), out)
        self.assertEqual(out.getvalue(), "\ntimes as fast as the best of x and y  mean   least\n"
                                         "cold, normal, a                       2.000  2.000 (D 64, full, S 1024)\n")

    def test_errors(self):
        first, second = peers.Point(64, False, 1024, kind="e4m3"), peers.Point(128, True, 512, kind="e4m3")
        out = io.StringIO()
        peers.print_errors({first: {"quantisation": 0.04, "a": 0.02, "FlashAttention-3 FP8": 0.04},
                            second: {"quantisation": 0.05, "a": 0.03, "FlashAttention-3 FP8": 0.02},
                            first._replace(input="mean"): {"quantisation": 0.01, "a": 0.5}}, out)
        title = "relative error (%)             least  median    most  times FlashAttention-3 FP8: median, most"
        self.assertEqual(out.getvalue(), f"\n{title}\n"
                         "normal, quantisation           4.000   4.500   5.000\n"
                         "normal, a                      2.000   2.500   3.000  1.000  1.500 (D 128, causal, S 512)\n"
                         "normal, FlashAttention-3 FP8   2.000   3.000   4.000\n"
                         "mean, quantisation             1.000   1.000   1.000\n"
                         "mean, a                       50.000  50.000  50.000\n")
        out = io.StringIO()
        peers.print_gradient_errors({first: {"a": 0.1}}, out)
        peers.print_errors({first: {}}, out)
        self.assertEqual(out.getvalue(), "", "of fp16")

    def test_errors_of_gradients(self):
        first, second = peers.Point(64, False, 1024, kind="backward"), peers.Point(128, True, 512, kind="backward")
        out = io.StringIO()
        found = {first: {"a": (0.01, 0.02, 0.03)}, second: {"a": (0.03, 0.02, 0.01), "b": (0.5, 0.25, 1.0)}}
        peers.print_errors(found, out)
        self.assertEqual(out.getvalue(), "", "not those of e4m3")
        peers.print_gradient_errors(found, out)
        titles = "    dQ: median, most    dK: median, most    dV: median, most\n"
        self.assertEqual(out.getvalue(), f"\nrelative error (%){titles}"
                         "normal, a               2.0000  3.0000      2.0000  2.0000      2.0000  3.0000\n"
                         "normal, b              50.0000 50.0000     25.0000 25.0000    100.0000100.0000\n")

    def test_clocks(self):
        point = peers.Point(64, False, 1024)
        out = io.StringIO()
        peers.print_clocks({(point, "cold"): {"a": runs_of(1.0, megahertz=[1500, 1700]), "b": runs_of(1.0)},
                            (point._replace(seqlen=512), "cold"): {"a": runs_of(1.0, megahertz=[1980.0])}}, out)
        self.assertEqual(out.getvalue(), "\nSM clock   least  median    most (MHz)\n"
                                         "cold, a     1500    1700    1980\n")


class Record(unittest.TestCase):
    """plots/record.py, on the recorded files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.recorded = self.copy("nvidia-h200.csv")
        self.peers = os.path.join(self.folder, "nvidia-h200-peers.csv")
        self.copy("nvidia-h200-peers.csv")

    def copy(self, name):
        """Copies a recorded file to the folder; returns its lines."""
        with open(os.path.join("plots", "data", name), encoding="ascii") as file:
            text = file.read()
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(text)
        return text.splitlines()

    def record(self, *programs):
        """The lines of DEVICE.csv after a recording, and what it prints."""
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            record.record(self.peers, programs)
        with open(os.path.join(self.folder, "nvidia-h200.csv"), encoding="ascii") as file:
            return file.read().splitlines(), printed.getvalue()

    def program(self, text):
        path = os.path.join(self.folder, "baseline-test")
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def baseline(self):
        """One that writes a row with the problem that it is given."""
        header = self.recorded[0].removesuffix(",clock_mhz")
        return self.program(
            'causal=0; for option; do case $option in --causal) causal=1;; --device=gpu | --csv=-) ;;\n'
            '  --head-dim=*) d=${option#*=};; --*=*) eval "${option#--}";; esac; done\n'
            f'echo {header}; echo cuBLAS,Test GPU,1,2,3,now,$batch,$heads,$seqlen,$d,$causal,4,3,5,20,7\n')

    def test_what_is_recorded_comes_out_again(self):
        lines, printed = self.record()
        self.assertEqual(lines, self.recorded)
        self.assertIn("as they were: cuBLAS\n", printed)

    def test_only_cold_rows_of_the_peers(self):
        os.remove(os.path.join(self.folder, "nvidia-h200.csv"))
        lines, printed = self.record()
        self.assertEqual(lines, [line for line in self.recorded if not line.startswith("cuBLAS,")])
        self.assertNotIn("as they were", printed)

    def test_a_baseline_is_measured_on_the_same_problems(self):
        lines, printed = self.record(self.baseline())
        self.assertEqual(len(lines), len(self.recorded))
        self.assertEqual([line.split(",")[6:11] for line in lines], [line.split(",")[6:11] for line in self.recorded])
        self.assertEqual(sum(",4,3,5,20,7" in line for line in lines), 24)
        self.assertNotIn("as they were", printed)

    def test_a_baseline_that_does_not_run_keeps_its_rows(self):
        for text in "echo no library >&2; exit 3", "echo no library >&2; echo other,columns; echo 1,2":
            with self.subTest(text):
                lines, printed = self.record(self.program(text))
                self.assertEqual(lines, self.recorded)
                self.assertIn("baseline-test is left out: no library\nas they were: cuBLAS\n", printed)

    def test_a_baseline_that_is_not_there(self):
        lines, printed = self.record("/no/such/baseline")
        self.assertEqual(lines, self.recorded)
        self.assertIn("/no/such/baseline is left out: No such file or directory\n", printed)

    def test_the_clock_that_ran(self):
        header, fields = self.recorded[0].removesuffix(",clock_mhz"), self.recorded[1].split(",")[:16]
        with open(self.peers, "w", encoding="ascii") as file:
            print(header + ",mode,clock_mhz,clock_min_mhz,version", file=file)
            for stage, more in ("00-scalar", "cold,1700,1600,"), ("cuDNN", "cold,,,9"), ("00-scalar", "sustained,1,1,"):
                print(",".join([stage, *fields[1:], more]), file=file)
        lines, _ = self.record(self.baseline())
        self.assertEqual(lines[0], header + ",clock_mhz")
        rest = "," + ",".join(fields[1:]) + ","
        self.assertEqual([line for line in lines if line.startswith(("00-", "cuDNN"))],
                         ["00-scalar" + rest + "1700", "cuDNN" + rest])
        self.assertEqual(sum(line.startswith("cuBLAS,Test GPU,") and line.endswith(",7,") for line in lines), 1)
        self.assertEqual({line.count(",") for line in lines}, {lines[0].count(",")})

    def test_an_interruption_loses_nothing(self):
        with mock.patch.object(record.csv.DictWriter, "writerows", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.record()
        with open(os.path.join(self.folder, "nvidia-h200.csv"), encoding="ascii") as file:
            self.assertEqual(file.read().splitlines(), self.recorded)

    def test_a_file_that_cannot_be_used_is_one_line(self):
        no_csv = os.path.join(self.folder, "no-peers.csv")
        with open(no_csv, "wb") as file:
            file.write(b"\xff\xfe")
        other = os.path.join(self.folder, "other-peers.csv")
        with open(other, "w", encoding="ascii") as file:
            file.write("stage,date\n")
        for arguments, words in {("/no/such-peers.csv",): "/no/such-peers.csv: No such file or directory",
                                 (no_csv,): f"{no_csv}: it is no CSV",
                                 (other,): f"{other}: it has no column batch; peers.py --record writes such a file",
                                 (): "usage: "}.items():
            with self.subTest(words):
                command = [sys.executable, "plots/record.py", *arguments]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr.count("\n"), done.stdout), (2, 1, ""))
                self.assertIn("record.py: " + words, done.stderr)


@unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch here")
class Inputs(unittest.TestCase):
    """What the inputs do to the scores; PyTorch's CPU will do."""

    def scores(self, kind, shape):
        """Scores of each head, and V."""
        q, k, v = inputs.make(kind, shape, device="cpu")
        self.assertEqual({(tensor.shape, str(tensor.dtype)) for tensor in (q, k, v)}, {(shape, "torch.float16")})
        return q.double() @ k.double().transpose(2, 3) / math.sqrt(shape[3]), v.double()

    def test_normal_and_large(self):
        scores, v = self.scores("normal", (2, 2, 512, 64))
        larger, larger_v = self.scores("large", (2, 2, 512, 64))
        self.assertAlmostEqual(float(scores.std()), 1, delta=0.05)
        self.assertLess(float((larger - 64 * scores).abs().max()), 1e-2)
        self.assertTrue(bool((larger_v == 8 * v).all()))

    def test_a_sink_is_far_above_the_others(self):
        for head_dim in 64, 128:
            scores, _ = self.scores("sink", (1, 3, 512, head_dim))
            self.assertAlmostEqual(float(scores[..., 1:, 0].mean()), 4 * math.sqrt(head_dim), delta=0.5)
            self.assertGreater(float((scores[..., 0] - scores[..., 1:].amax(-1)).min()), 4)

    def test_ramps(self):
        for kind, first, last in ("ramp", 0.2, 6), ("rampdown", 6, 0.2):
            scores, _ = self.scores(kind, (2, 4, 1024, 64))
            self.assertAlmostEqual(float(scores[..., :16].std()), first, delta=0.3)
            self.assertAlmostEqual(float(scores[..., -16:].std()), last, delta=0.3)

    def test_waves_are_those_of_the_stages(self):
        for head_dim, apart in (64, 24), (128, 17):
            scores, v = self.scores("waves", (2, 2, 512, head_dim))
            low, high = scores[..., :128], scores[..., 128:256]
            self.assertAlmostEqual(float(high.mean() - low.mean()), apart, delta=0.3)
            self.assertLess(float(high.std()), 1)
            self.assertAlmostEqual(float((scores[..., 256:384].mean() - low.mean())), 0, delta=0.3)
            self.assertAlmostEqual(float(v.std()), 0.5, delta=0.02)

    def test_outliers_are_few_and_large(self):
        tensors = inputs.make("outliers", (2, 4, 512, 64), device="cpu")
        for tensor, normal in zip(tensors, inputs.make("normal", (2, 4, 512, 64), device="cpu")):
            added = (tensor.double() - normal.double()).abs()
            self.assertAlmostEqual(float((added > 0.1).double().mean()), 0.001, delta=0.0003)
            self.assertAlmostEqual(float(added[added > 0.1].square().mean().sqrt()), 10, delta=2)
        self.assertGreater(float((tensors[0] - tensors[1]).abs().max()), 10, "each has its own")

    def test_the_mean_is_that_of_v(self):
        q, k, v = inputs.make("mean", (2, 4, 512, 64), device="cpu")
        for tensor, expected in (q, 0), (k, 0), (v, 1):
            self.assertAlmostEqual(float(tensor.double().mean()), expected, delta=0.02)


@unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch here")
class E4m3(unittest.TestCase):
    """Problems in e4m3, and what errors are; PyTorch's CPU will do."""

    def problem(self, kind="normal", shape=(2, 3, 512, 64), causal=True):
        return problem.quantise(problem.Problem(*inputs.make(kind, shape, device="cpu"), causal))

    def attention(self, tensors, causal):
        """Row by row."""
        import torch

        q, k, v = tensors
        output = torch.empty_like(v)
        for row in range(q.shape[2]):
            keys = row + 1 if causal else k.shape[2]
            scores = (k[:, :, :keys] * q[:, :, row:row + 1]).sum(-1) / math.sqrt(q.shape[3])
            output[:, :, row] = (scores.softmax(-1)[..., None] * v[:, :, :keys]).sum(-2)
        return output

    def test_the_largest_element_is_448(self):
        for kind in "normal", "outliers":
            quantised = self.problem(kind)
            for codes, scale, tensor in zip(quantised[:3], quantised.scales, quantised.original[:3]):
                self.assertEqual((str(codes.dtype), scale.shape), ("torch.float8_e4m3fn", (1,)))
                self.assertEqual(float(codes.float().abs().max()), 448)
                self.assertAlmostEqual(float(scale), float(tensor.float().abs().max()) / 448, places=9)

    def test_elements_are_the_nearest_codes(self):
        import torch

        codes = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
        quantised = self.problem("outliers", (1, 1, 256, 64))
        for codes_got, scale, tensor in zip(quantised[:3], quantised.scales, quantised.original[:3]):
            exact = (tensor.double() / scale.double()).flatten()
            least = (exact.abs()[:, None] - codes).abs().amin(1)
            off = (codes_got.float().double().flatten() - exact).abs()
            self.assertLess(float((off - least).max()), 1e-4)

    def test_values(self):
        quantised = self.problem()
        for value, codes, scale, f16 in zip(quantised.values(), quantised[:3], quantised.scales,
                                            quantised.dequantised[:3]):
            self.assertTrue(bool((value == codes.float().double() * float(scale)).all()))
            self.assertEqual(str(f16.dtype), "torch.float16")
            self.assertLess(float(((f16.double() - value).abs() - 2**-11 * value.abs()).max()), 2**-20)

    def test_rows_are_exact(self):
        for causal in False, True:
            quantised = self.problem(causal=causal)
            checked = reference.ReferenceE4m3(quantised)
            self.assertEqual(len(set(checked.rows)), reference.ROWS)
            exact = self.attention(quantised.values(), causal)
            self.assertLess(float((exact[:, :, checked.rows] - checked.exact).abs().max()), 1e-12)
            before = self.attention(quantised.original.values(), causal)
            off = (exact - before)[:, :, checked.rows]
            expected = math.sqrt(float(off.square().sum() / before[:, :, checked.rows].square().sum()))
            self.assertAlmostEqual(checked.quantisation, expected, places=9)
            self.assertGreater(expected, 0.01)

    def test_short_sequences_are_checked_whole(self):
        self.assertEqual(reference.sample_rows(97), list(range(97)))

    def test_what_is_wrong(self):
        quantised = self.problem(causal=False)
        checked = reference.ReferenceE4m3(quantised)
        right = self.attention(quantised.values(), False)
        self.assertEqual(checked.differences(right.half()), "")
        error, worst = checked.relative_errors(1.1 * right)
        self.assertAlmostEqual(error, 0.1, places=9)
        self.assertAlmostEqual(worst, 0.1, places=9)
        one_head = right.clone()
        one_head[1, 2] *= 1.5
        self.assertLess(checked.relative_errors(one_head)[0], 0.25)
        self.assertEqual(checked.differences(one_head),
                         "the relative error of a head is 0.5; at most 0.2 is allowed")
        hole = right.clone()
        row = next(row for row in range(512) if row not in checked.rows)
        hole[0, 0, row, 7] = math.nan
        self.assertEqual(checked.differences(hole), "1 of 196608 elements are NaN")


@unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch here")
class Backward(unittest.TestCase):
    """The backward pass: its inputs, its reference, and PyTorch's own; PyTorch's CPU will do."""

    def problem(self, kind="normal", shape=(2, 2, 97, 64), causal=True):
        q, k, v, d_o = inputs.make_backward(kind, shape, device="cpu")
        return problem.BackwardProblem(q, k, v, causal, d_o, *reference_backward.forward(q, k, v, causal))

    def gradients(self, each, mistake=None):
        """By automatic differentiation in fp64, rounded to fp16."""
        import torch

        q, k, v = (tensor.double().requires_grad_() for tensor in (each.q, each.k, each.v))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        if each.causal:
            hidden = torch.ones(scores.shape[2:], dtype=torch.bool).triu(2 if mistake == "one key too many" else 1)
            scores = scores.masked_fill(hidden, -math.inf)
        if mistake == "no maximum's gradient":
            scores = scores - scores.logsumexp(-1, keepdim=True).detach()
            output = scores.exp() @ v
        else:
            output = scores.softmax(-1) @ v
        return [tensor.half() for tensor in torch.autograd.grad(output, (q, k, v), each.d_o.double())]

    def test_inputs(self):
        shape = (2, 3, 256, 64)
        normal = inputs.make_backward("normal", shape, device="cpu")
        for tensor, same in zip(normal, inputs.make("normal", shape, device="cpu")):
            self.assertTrue(bool((tensor == same).all()))
        self.assertAlmostEqual(float(normal[3].float().std()), 1, delta=0.02)
        self.assertFalse(bool((normal[3] == normal[2]).all()))
        for kind, factors in ("vanish", (32, 32, 1, 1)), ("explode", (1, 1, 1, 1024)):
            for tensor, before, factor in zip(inputs.make_backward(kind, shape, device="cpu"), normal, factors):
                self.assertTrue(bool((tensor == factor * before).all()))

    def test_the_forward_pass(self):
        each = self.problem()
        scores = (each.q.double() @ each.k.double().transpose(2, 3) / 8).tril()
        for row in 0, 1, 96:
            seen = scores[:, :, row, :row + 1]
            self.assertLess(float((seen.logsumexp(-1) - each.lse[:, :, row]).abs().max()), 1e-6)
            exact = (seen.softmax(-1)[:, :, None] @ each.v[:, :, :row + 1].double())[:, :, 0]
            self.assertLess(float(((exact - each.o[:, :, row]).abs() - 2**-11 * exact.abs()).max()), 1e-7)

    def test_right_gradients(self):
        for kind in inputs.BACKWARD_KINDS:
            for causal in False, True:
                with self.subTest(kind, causal=causal):
                    each = self.problem(kind, causal=causal)
                    checked = reference_backward.ReferenceBackward(each)
                    right = self.gradients(each)
                    self.assertEqual(checked.differences(right), "")
                    most = 1e-3 if kind != "vanish" else 2
                    self.assertLess(max(checked.relative_errors(right)), most)

    def test_blocks_of_rows_and_heads_make_no_difference(self):
        each = self.problem()
        whole = reference_backward.ReferenceBackward(each)
        with mock.patch.object(reference, "CHUNK", 97 * 30):
            self.assertGreater(len(list(reference.chunks(4, 97))), 4)
            parts = reference_backward.ReferenceBackward(each)
        for (exact, limit), (again, limit_again) in zip(whole.gradients, parts.gradients):
            self.assertLess(float((exact - again).abs().max()), 1e-12)
            self.assertLess(float((limit / limit_again - 1).abs().max()), 1e-9)

    def test_wrong_gradients(self):
        each = self.problem()
        checked = reference_backward.ReferenceBackward(each)
        for mistake, names in ("one key too many", ["dQ", "dK", "dV"]), ("no maximum's gradient", ["dQ", "dK"]):
            line = checked.differences(self.gradients(each, mistake))
            self.assertEqual([part.split(":")[0] for part in line.split("; ") if part[0] == "d"], names, line)
        right = self.gradients(each)
        right[1][1, 0, 5, 7] = math.nan
        words = "dK: 1 of 24832 elements are wrong; the first, head 2 row 5 element 7, is nan and should be "
        self.assertTrue(checked.differences(right).startswith(words))
        right[1][1, 0, 5, 7] = 1.01 * float(checked.gradients[1][0][2, 5].abs().max())
        self.assertNotEqual(checked.differences(right), "")

    def test_relative_errors(self):
        each = self.problem()
        checked = reference_backward.ReferenceBackward(each)
        scaled = [factor * exact.reshape(each.q.shape) for factor, (exact, _) in zip((1.1, 1, 0.5), checked.gradients)]
        for got, expected in zip(checked.relative_errors(scaled), (0.1, 0, 0.5)):
            self.assertAlmostEqual(got, expected, places=9)

    def test_what_pytorch_computes(self):
        each = self.problem()
        checked = reference_backward.ReferenceBackward(each)
        call = backward.pytorch("math").prepare(each)
        for _ in range(2):
            got = call()
            self.assertEqual([tensor.shape for tensor in got], 3 * [each.q.shape])
            self.assertLess(max(checked.relative_errors(got)), 0.01)


if __name__ == "__main__":
    unittest.main(verbosity=0)
