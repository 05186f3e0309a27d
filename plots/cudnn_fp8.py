"""cuDNN's FP8 forward pass, for peers.py --type=e4m3. PyTorch does not call it, so a graph of cuDNN's own Python
package does: pip's nvidia-cudnn-frontend, which uses the cuDNN that PyTorch loads.

On Hopper cuDNN writes O in e4m3. It multiplies O by a scale before it rounds, as it does with the weights P. Both
scales are given beforehand: here P's maps 1, its largest number, to e4m3's largest, and O's maps the largest number of
this problem's O, which a first pass finds. A training framework would take that of the last step.
"""
from contenders import Contender, Refused, ScaledCodes, current_stream
from problem import E4M3_LARGEST

CUDNN_FP8 = "cuDNN FP8"
MISSING = ("cuDNN FP8 is not there; `pip install --no-deps nvidia-cudnn-frontend` installs the Python package that "
           "calls it")


def import_cudnn():
    """The package; ImportError where it is missing. PyTorch is first, because it loads the cuDNN that both use."""
    import torch  # noqa: F401
    import cudnn

    return cudnn


def strides(shape):
    batch, heads, rows, columns = shape
    del batch
    return [heads * rows * columns, rows * columns, columns, 1]


class Graph:
    """One problem as cuDNN's graph. `inputs` and `outputs` are its tensors by name."""

    def __init__(self, cudnn, q_shape, kv_shape, causal):
        self.cudnn, self.handle = cudnn, cudnn.create_handle()
        cudnn.set_stream(handle=self.handle, stream=current_stream())
        fp8, fp32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
        self.graph = cudnn.pygraph(io_data_type=fp8, intermediate_data_type=fp32, compute_data_type=fp32,
                                   handle=self.handle)
        one = [1, 1, 1, 1]
        self.inputs = {name: self.graph.tensor(name=name, dim=list(shape), stride=strides(shape), data_type=fp8)
                       for name, shape in (("q", q_shape), ("k", kv_shape), ("v", kv_shape))}
        self.inputs |= {name: self.graph.tensor(name=name, dim=one, stride=one, data_type=fp32)
                        for name in ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")}
        o, _, amax_s, amax_o = self.graph.sdpa_fp8(**self.inputs, is_inference=True, attn_scale=q_shape[-1]**-0.5,
                                                   use_causal_mask=causal)
        o.set_output(True).set_dim(list(q_shape)).set_stride(strides(q_shape)).set_data_type(fp8)
        for amax in amax_s, amax_o:
            amax.set_output(True).set_dim(one).set_stride(one).set_data_type(fp32)
        self.outputs = {"o": o, "amax_s": amax_s, "amax_o": amax_o}

    def build(self):
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([self.cudnn.heur_mode.A])
        self.graph.check_support()
        self.graph.build_plans()
        return self.graph.get_workspace_size()

    def execute(self, tensors, workspace):
        named = self.inputs | self.outputs
        self.graph.execute({named[name]: tensor for name, tensor in tensors.items()}, workspace, handle=self.handle)


def grouped(problem):
    """K and V with each head once: cuDNN has grouped heads, the stages have copies of them."""
    group = problem.q.shape[1] // problem.kv_heads if problem.kv_heads else 1
    return (problem.k[:, ::group].contiguous(), problem.v[:, ::group].contiguous()) if group > 1 else (
        problem.k, problem.v)


def cudnn_fp8(cudnn):
    def prepare(problem):
        import torch

        k, v = grouped(problem)
        p_scale, o_scale = torch.tensor([float(E4M3_LARGEST)], device="cuda"), torch.ones(1, device="cuda")
        output = torch.full(problem.q.shape, 0x7f, dtype=torch.uint8, device="cuda")  # NaN
        codes = {name: tensor.view(torch.uint8) for name, tensor in (("q", problem.q), ("k", k), ("v", v))}
        descales = dict(zip(("descale_q", "descale_k", "descale_v"), problem.scales))
        tensors = {**codes, **descales, "descale_s": 1 / p_scale, "scale_s": p_scale, "scale_o": o_scale, "o": output,
                   "amax_s": torch.zeros(1, device="cuda"), "amax_o": torch.zeros(1, device="cuda")}
        try:
            graph = Graph(cudnn, problem.q.shape, k.shape, problem.causal)
            workspace = torch.empty(max(1, graph.build()), dtype=torch.uint8, device="cuda")
            graph.execute(tensors, workspace)
            o_scale.copy_(E4M3_LARGEST / tensors["amax_o"])
        except Exception as error:  # pylint: disable=broad-except  # the package has classes of its own
            raise Refused(f"cuDNN: {' '.join(str(error).split())[:200]}") from error

        def call():
            graph.execute(tensors, workspace)
            return ScaledCodes(output.view(torch.float8_e4m3fn), 1 / o_scale)

        return call

    return Contender(CUDNN_FP8, prepare, lambda: cudnn_version(cudnn))


def cudnn_version(cudnn):
    digits = cudnn.backend_version()
    return f"cuDNN {digits // 10000}.{digits // 100 % 100}.{digits % 100} with its frontend {cudnn.__version__}"
