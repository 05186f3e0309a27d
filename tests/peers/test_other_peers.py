"""Contenders of peers.py that come with packages of their own, cuDNN's FP8 pass and Triton, without any of them:
made-up modules stand in their places. And points with grouped heads, which cuDNN has.

Runs in the repository's root (or a folder that looks like it): python3 tests/peers/test_other_peers.py
"""
import contextlib
import io
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, "plots")
import contenders  # noqa: E402
import cudnn_fp8  # noqa: E402
import flashinfer_peer  # noqa: E402
import peers  # noqa: E402
import problem  # noqa: E402
import triton_peer  # noqa: E402


class MadeUpTensor:
    """A tensor that notes what was done with it."""

    def __init__(self, name, shape=(2, 8, 512, 64)):
        self.name, self.shape = name, shape

    def view(self, as_what):
        return MadeUpTensor(f"{self.name} as {as_what}", self.shape)

    def __getitem__(self, where):
        group = where[1].step or 1
        return MadeUpTensor(f"{self.name} head {group}", (self.shape[0], self.shape[1] // group, *self.shape[2:]))

    def contiguous(self):
        return self

    def copy_(self, other):
        self.name = f"{self.name} = {other.name}"

    def __rtruediv__(self, number):
        return MadeUpTensor(f"{number:g} / {self.name}", self.shape)

    def float(self):
        return self

    def __mul__(self, other):
        return f"{self.name} * {other.name}"


TORCH = types.SimpleNamespace(
    tensor=lambda numbers, device: MadeUpTensor(f"{numbers[0]:g}"), ones=lambda n, device: MadeUpTensor("one"),
    zeros=lambda n, device: MadeUpTensor("amax"), full=lambda shape, code, dtype, device: MadeUpTensor("output", shape),
    empty=lambda size, dtype, device: MadeUpTensor(f"{size} bytes"), uint8="bytes", float8_e4m3fn="e4m3")


class Symbol:
    """A tensor of a made-up graph. Its name stands for it; what is set is noted."""

    def __init__(self, name, **what):
        self.name, self.what = name, what

    def __getattr__(self, name):
        def put(value):
            self.what[name] = value
            return self

        return put


class MadeUpCudnn:
    data_type = types.SimpleNamespace(FP8_E4M3="fp8", FLOAT="fp32")
    heur_mode = types.SimpleNamespace(A="A")
    __version__ = "1.2"

    def __init__(self, unsupported=None):
        self.unsupported, self.log, self.executed = unsupported, [], []

    def create_handle(self):
        return "handle"

    def set_stream(self, handle, stream):
        self.log.append((handle, stream))

    def backend_version(self):
        return 91900

    def pygraph(self, **options):
        self.options = options
        return self

    def tensor(self, name, dim, stride, data_type):
        return Symbol(name, dim=dim, stride=stride, data_type=data_type)

    def sdpa_fp8(self, **arguments):
        self.arguments = arguments
        return tuple(Symbol(name) for name in ("o", "stats", "amax_s", "amax_o"))

    def check_support(self):
        if self.unsupported:
            raise RuntimeError(self.unsupported)

    def validate(self):
        self.log.append("validate")

    build_operation_graph = build_plans = validate

    def create_execution_plans(self, modes):
        assert modes == ["A"]

    def get_workspace_size(self):
        return 77

    def execute(self, tensors, workspace, handle):
        assert handle == "handle"
        self.executed.append(({symbol.name: tensor.name for symbol, tensor in tensors.items()}, workspace.name))


def made_up_problem(kv_heads=0):
    tensors = [MadeUpTensor(name) for name in "qkv"]
    scales = tuple(MadeUpTensor(f"scale of {name}") for name in "qkv")
    return problem.Problem(*tensors, True, scales, kv_heads=kv_heads)


class CudnnFp8(unittest.TestCase):
    def setUp(self):
        for patch in (mock.patch.dict(sys.modules, torch=TORCH),
                      mock.patch.object(cudnn_fp8, "current_stream", lambda: 40)):
            patch.start()
            self.addCleanup(patch.stop)

    def test_the_graph(self):
        cudnn = MadeUpCudnn()
        call = cudnn_fp8.cudnn_fp8(cudnn).prepare(made_up_problem())
        self.assertIn(("handle", 40), cudnn.log)
        self.assertEqual({name: value for name, value in cudnn.arguments.items() if not isinstance(value, Symbol)},
                         {"is_inference": True, "attn_scale": 0.125, "use_causal_mask": True})
        self.assertEqual(cudnn.arguments["k"].what, {"dim": [2, 8, 512, 64], "stride": [262144, 32768, 64, 1],
                                                     "data_type": "fp8"})
        first, workspace = cudnn.executed.pop()
        self.assertEqual((first["q"], first["descale_v"], first["descale_s"], first["scale_s"], first["scale_o"]),
                         ("q as bytes", "scale of v", "1 / 448", "448", "one"))
        self.assertEqual(workspace, "77 bytes")
        output = call()
        (second, _), = cudnn.executed
        self.assertEqual(second["scale_o"], "one = 448 / amax", "the largest number of O becomes e4m3's largest")
        self.assertEqual(output.values(), "output as e4m3 * 1 / one = 448 / amax")

    def test_grouped_heads(self):
        cudnn = MadeUpCudnn()
        cudnn_fp8.cudnn_fp8(cudnn).prepare(made_up_problem(kv_heads=2))
        self.assertEqual(cudnn.arguments["q"].what["dim"], [2, 8, 512, 64])
        self.assertEqual(cudnn.arguments["v"].what["dim"], [2, 2, 512, 64])
        self.assertEqual(cudnn.executed[0][0]["v"], "v head 4 as bytes")

    def test_what_cudnn_refuses(self):
        with self.assertRaisesRegex(contenders.Refused, "^cuDNN: no such kernel$"):
            cudnn_fp8.cudnn_fp8(MadeUpCudnn("no such\n  kernel")).prepare(made_up_problem())

    def test_versions(self):
        self.assertEqual(cudnn_fp8.cudnn_version(MadeUpCudnn()), "cuDNN 9.19.0 with its frontend 1.2")

    def test_it_is_missing(self):
        for needed, code in ((False, None), (True, 3)):
            printed = io.StringIO()
            with mock.patch.dict(sys.modules, cudnn=None), contextlib.redirect_stderr(printed):
                try:
                    self.assertEqual(peers.find_peer("cuDNN FP8", "e4m3", needed), [])
                    self.assertIsNone(code)
                except SystemExit as stopped:
                    self.assertEqual(stopped.code, code)
            self.assertEqual(printed.getvalue(), "peers.py: cuDNN FP8 is not there; `pip install --no-deps "
                                                 "nvidia-cudnn-frontend` installs the Python package that calls it\n")

    def test_an_output_in_e4m3_is_judged_by_its_values(self):
        codes = contenders.ScaledCodes(MadeUpTensor("codes"), MadeUpTensor("scale"))
        contender = contenders.Contender("cuDNN FP8", lambda problem: lambda: codes)
        reference = mock.Mock(differences=mock.Mock(return_value="wrong"), relative_errors=lambda output: (0.5, output))
        errors = {}
        with contextlib.redirect_stderr(io.StringIO()):
            point = peers.Point(64, True, 512, kind="e4m3")
            self.assertIsNone(peers.enter(contender, point, None, reference, errors))
        reference.differences.assert_called_once_with("codes * scale")
        self.assertEqual(errors, {"cuDNN FP8": 0.5})


class Groups(unittest.TestCase):
    def test_points(self):
        point, = peers.parse_points("128/causal/32768/64:8")
        self.assertEqual((point.shape(), point.kv_heads), ((1, 64, 32768, 128), 8))
        self.assertEqual(str(point), "D 128, causal, S 32768, heads 64 and 8, normal")
        plain = peers.Point(128, True, 32768)
        self.assertEqual(point.flops(), 4 * plain.flops())

    def test_what_makes_no_sense(self):
        for text in "128/causal/4096/64:7", "128/causal/4096/64", "128/causal/4096/64:0":
            printed = io.StringIO()
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(printed):
                peers.parse_options(["--points=" + text])
            self.assertIn(f"'{text}' is no point; HEAD_DIM/MASK/SEQLEN is allowed", printed.getvalue())
        printed = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(printed):
            peers.parse_options(["--pass=backward", "--points=128/causal/4096/64:8"])
        self.assertIn("grouped heads are for the forward pass", printed.getvalue())

    def test_rows_say_how_many(self):
        options = peers.parse_options(["--points=128/full/512,128/full/512/64:8", "--peers=none"])
        self.assertTrue(peers.columns(options).endswith(",version,kv_heads"))
        self.assertEqual([peers.more_columns(options, point, "a", {}) for point in options.points], [["16"], ["8"]])
        self.assertTrue(peers.columns(peers.parse_options(["--points=128/full/512"])).endswith(",version"))


class SeveralKernels(unittest.TestCase):
    """Contenders that take part with the fastest of their kernels."""

    def setUp(self):
        self.times, self.ran = {}, []
        patch = mock.patch.object(contenders, "milliseconds_of", lambda call: self.times.get(call()))
        patch.start()
        self.addCleanup(patch.stop)

    def prepare(self, times, seqlen=512):
        """What the call of Triton's contender returns, where the tiles take so long; None: Triton refuses them."""
        self.times = dict(zip(triton_peer.TILES, times))
        made_up = types.SimpleNamespace(q=MadeUpTensor("q", (2, 8, seqlen, 64)))
        with mock.patch.object(triton_peer, "launch_of", lambda problem, output, tile: lambda: tile), \
                mock.patch.object(triton_peer, "new_output", lambda problem: None), \
                mock.patch.dict(sys.modules, triton=types.SimpleNamespace(__version__="3")):
            return triton_peer.triton_peer().prepare(made_up)()

    def test_triton_has_its_fastest_tiles(self):
        self.assertEqual(self.prepare((3, 1, 2)), triton_peer.TILES[1])
        self.assertEqual(self.prepare((None, None, 2)), triton_peer.TILES[2])

    def test_what_triton_refuses(self):
        with self.assertRaisesRegex(contenders.Refused, "takes multiples of 128 rows"):
            self.prepare((1, 1, 1), seqlen=520)
        with self.assertRaisesRegex(contenders.Refused, "compiles none of its tile sizes"):
            self.prepare((None, None, None))

    def test_rows_are_whole_tiles(self):
        for rows, keys, *_ in triton_peer.TILES:
            self.assertEqual((triton_peer.LARGEST_ROWS % rows, rows % keys), (0, 0))

    def test_cutlass(self):
        made_up = types.SimpleNamespace(**{name: MadeUpTensor(name) for name in "qkv"}, causal=True, scales=())
        library = types.SimpleNamespace(cutlass_fmha=lambda *arguments: self.ran.append(arguments),
                                        cutlass_fmha_version=lambda: b"1")
        torch = types.SimpleNamespace(empty=lambda shape, dtype, device: MadeUpTensor("lse", shape), float32="fp32")
        with mock.patch.dict(sys.modules, torch=torch), \
                mock.patch.object(contenders, "current_stream", lambda: 40), \
                mock.patch.object(contenders, "new_output", lambda problem: MadeUpTensor("output")), \
                mock.patch.object(MadeUpTensor, "data_ptr", lambda tensor: tensor.name, create=True), \
                mock.patch.object(contenders, "milliseconds_of", lambda call: (call(), -len(self.ran))[1]):
            call = contenders.cutlass_fmha(library).prepare(made_up)
        self.ran.clear()
        self.assertEqual(call().name, "output")
        self.assertEqual(self.ran, [(1, 2, 8, 512, 64, 1, "q", "k", "v", "output", "lse", 40)])

    def test_cutlass_refuses(self):
        with self.assertRaisesRegex(contenders.Refused, "^nothing runs$"):
            contenders.fastest_of([lambda: 1, lambda: 2], "nothing runs")


class FlashInfer(unittest.TestCase):
    """Its prefill, with a made-up package."""

    def setUp(self):
        self.planned = []
        torch = types.SimpleNamespace(arange=lambda *numbers, dtype, device: numbers, int32="int32")
        for patch in (mock.patch.dict(sys.modules, torch=torch),
                      mock.patch.object(flashinfer_peer, "flashinfer_workspace", lambda: "workspace"),
                      mock.patch.object(flashinfer_peer, "token_rows", lambda tensor: types.SimpleNamespace(
                          name=f"rows of {tensor.name}", dtype="fp16")),
                      mock.patch.object(flashinfer_peer, "refusals", contextlib.nullcontext)):
            patch.start()
            self.addCleanup(patch.stop)

    def wrapper(self, workspace, layout):
        self.assertEqual((workspace, layout), ("workspace", "NHD"))
        output = mock.Mock()
        output.view = lambda *shape: types.SimpleNamespace(transpose=lambda a, b: (shape, a, b))
        return types.SimpleNamespace(plan=lambda *arguments, **options: self.planned.append((arguments, options)),
                                     run=lambda q, k, v: self.assertEqual(
                                         [q.name, k.name, v.name], ["rows of q", "rows of k", "rows of v"]) or output)

    def test_prefill(self):
        package = types.SimpleNamespace(BatchPrefillWithRaggedKVCacheWrapper=self.wrapper, __version__="9")
        contender = flashinfer_peer.flashinfer_prefill(package)
        call = contender.prepare(made_up_problem())
        ends = (0, 3 * 512, 512)
        self.assertEqual(self.planned, [((ends, ends, 8, 8, 64), {"causal": True, "sm_scale": 0.125,
                                                                  "q_data_type": "fp16"})])
        self.assertEqual((call(), contender.version()), (((2, 512, 8, 64), 1, 2), "FlashInfer 9"))

    def test_what_it_refuses(self):
        package = types.SimpleNamespace(BatchPrefillWithRaggedKVCacheWrapper=mock.Mock(side_effect=KeyError("no\nway")))
        with self.assertRaisesRegex(contenders.Refused, r"^FlashInfer: 'no\\nway'$"):
            flashinfer_peer.flashinfer_prefill(package).prepare(made_up_problem())

    def test_it_is_missing(self):
        for needed, code in ((False, None), (True, 3)):
            printed = io.StringIO()
            with mock.patch.dict(sys.modules, flashinfer=None), contextlib.redirect_stderr(printed):
                try:
                    self.assertEqual(peers.find_peer("FlashInfer", "f16", needed), [])
                    self.assertIsNone(code)
                except SystemExit as stopped:
                    self.assertEqual(stopped.code, code)
            self.assertIn("peers.py: FlashInfer is left out: it cannot be imported: ", printed.getvalue())


class Times(unittest.TestCase):
    def test_a_call_that_fails_has_none(self):
        with mock.patch.dict(sys.modules, torch=TORCH):
            self.assertIsNone(contenders.milliseconds_of(mock.Mock(side_effect=RuntimeError("too much shared memory"))))


if __name__ == "__main__":
    unittest.main()
