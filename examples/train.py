#!/usr/bin/env python3
"""Trains a small language model with this project's attention, forward and backward, and the same model with PyTorch's.

    make library && python3 examples/train.py              on a Hopper GPU, with PyTorch for CUDA
    ./hopper-run python3 examples/train.py --emulator      without a GPU: a tiny model, two steps

notes/training.md explains it. The exit code is 0 if both train alike, 1 if they do not, 2 if an option makes no sense,
and 3 if the GPU, PyTorch or the library is missing.
"""
import argparse
import ctypes
import glob
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.basename(sys.argv[0])  # this one, or generate.py
sys.path.insert(0, os.path.join(ROOT, "common", "library"))

import alike
import hopper_ladder

try:
    import torch
    from torch import nn
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import cross_entropy, scaled_dot_product_attention
except ImportError:
    print(f"{PROGRAM} needs PyTorch for Python: pip install torch", file=sys.stderr)
    sys.exit(3)

HEAD_DIM = 64
ON_EMULATOR = f"./hopper-run python3 examples/{PROGRAM} --emulator"


class Missing(Exception):
    """Something that the program needs is not there; the text says what."""


# ---- where the tensors of a call are: on the GPU already, or copied to the emulator and back ----


class Gpu:
    name = "cuda"

    def __init__(self):
        if not torch.cuda.is_available():
            raise Missing(f"no GPU that PyTorch can use; without one: {ON_EMULATOR}")

    def run(self, function, call, tensors):
        call.stream = torch.cuda.current_stream().cuda_stream
        return function(call)


class Emulator:
    """Tensors of the CPU, copied to memory of the driver that hopper-run preloads."""
    name = "cpu"

    def __init__(self):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise Missing(f"--emulator needs hopper-run: {ON_EMULATOR}") from None
        torch.set_num_threads(1)  # the emulator has threads of its own, and the model is tiny
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.check("cuInit", 0)
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.check("cuCtxSetCurrent", context)

    def check(self, function, *arguments):
        code = getattr(self.driver, function)(*arguments)
        if code:
            raise Missing(f"{function} returned {code}")

    def upload(self, tensor):
        """All memory from the tensor's first element to its last."""
        address = ctypes.c_uint64()
        elements = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        size = ctypes.c_size_t(elements * tensor.element_size())
        self.check("cuMemAlloc_v2", ctypes.byref(address), size)
        self.check("cuMemcpyHtoD_v2", address, ctypes.c_void_p(tensor.data_ptr()), size)
        return address, size

    def run(self, function, call, tensors):
        """tensors: those of the call by name. Each goes to the emulator and back; those that are read come unchanged."""
        memory = {name: self.upload(tensor) for name, tensor in tensors.items()}
        for name, (address, _) in memory.items():
            if isinstance(getattr(call, name), hopper_ladder.Tensor):
                getattr(call, name).data = address.value
            else:
                setattr(call, name, address.value)
        code = function(call)
        self.check("cuCtxSynchronize")
        for name, (address, size) in memory.items():
            self.check("cuMemcpyDtoH_v2", ctypes.c_void_p(tensors[name].data_ptr()), address, size)
            self.check("cuMemFree_v2", address)
        return code


# ---- the library's two calls, and what PyTorch's autograd needs to use them ----


def new_like(tensor):
    """A tensor [batch, heads, seqlen, head_dim] whose heads lie side by side in memory, as the next layer wants."""
    return torch.empty_like(tensor.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)


class Library:
    def __init__(self, path, device, forward, backward):
        try:
            self.library = hopper_ladder.load(path)
        except (OSError, AttributeError) as error:
            raise Missing(f"the library: {error}; make library builds it") from None
        self.device = device
        stages = hopper_ladder.stages(self.library)
        self.forward_stage = forward or newest(stage for stage in stages if stage.lse and not stage.decode)
        self.backward_stage = backward or newest(stage for stage in stages if stage.backward)

    def run_call(self, function, call, tensors):
        """tensors: those of the call, by name."""
        if self.device.run(function, call, tensors):
            raise Missing(self.library.hl_error().decode())

    def run(self, function, stage, **tensors):
        self.run_call(function, hopper_ladder.call(causal=True, stage=stage, **tensors), tensors)

    def forward(self, q, k, v):
        """O and the log-sum-exp."""
        o, lse = new_like(q), torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        self.run(self.library.hl_attention, self.forward_stage, q=q, k=k, v=v, o=o, lse=lse)
        return o, lse

    def backward(self, q, k, v, o, d_o, lse):
        """dQ, dK and dV."""
        d_q, d_k, d_v = gradients = [new_like(q) for _ in range(3)]
        self.run(self.library.hl_attention_backward, self.backward_stage, q=q, k=k, v=v, o=o, d_o=d_o, lse=lse, d_q=d_q,
                 d_k=d_k, d_v=d_v)
        return gradients


def newest(stages):
    """The number of the last one in the library's list."""
    numbers = [stage.number.decode() for stage in stages]
    if not numbers:
        raise Missing("the library has no stage for this")
    return numbers[-1]


def our_attention(library):
    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(context, q, k, v):
            o, lse = library.forward(q, k, v)
            context.save_for_backward(q, k, v, o, lse)
            return o

        @staticmethod
        def backward(context, d_o):
            q, k, v, o, lse = context.saved_tensors
            return tuple(library.backward(q, k, v, o, d_o, lse))

    return Attention.apply


# ---- PyTorch's attention ----


def torch_attention(backend):
    def attention(q, k, v):
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, is_causal=True)

    return attention


def exact_attention(q, k, v):
    """In fp64, but for the inputs and the output."""
    return torch_attention(SDPBackend.MATH)(q.double(), k.double(), v.double()).half()


# ---- the model: a transformer over bytes. Only the attention is in fp16 ----


class Block(nn.Module):
    def __init__(self, heads):
        super().__init__()
        width = heads * HEAD_DIM
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, attention):
        batch, seqlen, width = x.shape
        qkv = self.qkv(self.norms[0](x)).half().view(batch, seqlen, 3, self.heads, HEAD_DIM).permute(2, 0, 3, 1, 4)
        o = attention(*qkv)
        x = x + self.out(o.float().transpose(1, 2).reshape(batch, seqlen, width))
        return x + self.mlp(self.norms[1](x))


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        width = size["heads"] * HEAD_DIM
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(size["seqlen"], width)
        self.blocks = nn.ModuleList(Block(size["heads"]) for _ in range(size["layers"]))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def loss(self, batch, attention):
        x = self.bytes(batch[:, :-1]) + self.places.weight
        for block in self.blocks:
            x = block(x, attention)
        return cross_entropy(self.head(self.norm(x)).flatten(0, 1), batch[:, 1:].flatten())


SIZES = {
    "small": {"layers": 4, "heads": 4, "seqlen": 512, "batch": 16},
    "tiny": {"layers": 2, "heads": 1, "seqlen": 72, "batch": 2},
}


def read_text():
    paths = sorted(glob.glob(os.path.join(ROOT, "notes", "*.md")) + glob.glob(os.path.join(ROOT, "stages", "*", "README.md")))
    return torch.frombuffer(bytearray(b"".join(open(path, "rb").read() for path in paths)), dtype=torch.uint8).long()


def batches(text, size, steps, seed, device):
    """The same for all contenders."""
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        first = torch.randint(len(text) - size["seqlen"], (size["batch"],), generator=random)
        yield torch.stack([text[i:i + size["seqlen"] + 1] for i in first]).to(device)


# ---- training ----

SCALE = 2.0**12  # of the loss at first; GradScaler changes it


def new_model(size, seed, device):
    torch.manual_seed(seed)
    return Model(size).to(device)


def fit(model, text, size, steps, seed, device, attention):
    """The loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device, init_scale=SCALE)
    losses = []
    for batch in batches(text, size, steps, seed, device):
        optimizer.zero_grad()
        loss = model.loss(batch, attention)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def train(text, size, steps, seed, device, attention):
    return fit(new_model(size, seed, device), text, size, steps, seed, device, attention)


def gradients(text, size, seed, device, attention):
    """Before the first step: a vector of each of the weights that make Q, K and V, where dQ, dK and dV lead."""
    model = new_model(size, seed, device)
    (SCALE * model.loss(next(batches(text, size, 1, seed, device)), attention)).backward()
    return torch.stack([block.qkv.weight.grad.double() for block in model.blocks], 1).view(3, -1) / SCALE


# ---- the comparison ----


def compare_gradients(run, contestants):
    """Whether our gradients are right."""
    exact = run(gradients, exact_attention)
    for name, attention in contestants.items():
        errors = (run(gradients, attention) - exact).norm(dim=1) / exact.norm(dim=1)
        print(f"gradients of the first step, {name:>5}: relative errors {errors[0]:.1e} by Q, {errors[1]:.1e} by K, "
              f"{errors[2]:.1e} by V")
    return alike.gradients_are_right(errors.tolist())  # ours are the last


def print_curves(curves):
    steps = len(next(iter(curves.values())))
    print("step  " + "".join(f"{name:>12}" for name in curves))
    for step in sorted({*range(0, steps, max(steps // 10, 1)), steps - 1}):
        print(f"{step:4}  " + "".join(f"{losses[step]:12.4f}" for losses in curves.values()))


def compare_curves(trained):
    """trained: for each seed the curves of all contestants. The first is PyTorch's."""
    peer = next(iter(trained[0]))
    same, apart, spread = alike.curves_are_alike(trained, peer)
    print(f"the last quarter of the steps: ours and {peer} are at most {apart:.4f} apart with the same seed; {peer} with "
          f"different seeds {spread:.4f}")
    return same


def parse():
    parser = argparse.ArgumentParser(description="trains a small model with the attention of this project and of PyTorch")
    parser.add_argument("--emulator", action="store_true", help="without a GPU, started by hopper-run: two steps")
    parser.add_argument("--steps", type=int, help="of each training (default: 400; 2 on the emulator)")
    parser.add_argument("--seeds", type=int, help="trainings with each attention (default: 3; 2 on the emulator)")
    parser.add_argument("--size", choices=SIZES, help="of the model (default: small; tiny on the emulator)")
    parser.add_argument("--forward", metavar="NN", help="stage of the forward pass (default: the newest)")
    parser.add_argument("--backward", metavar="NN", help="stage of the backward pass (default: the newest)")
    parser.add_argument("--library", default=os.path.join(ROOT, "libhopper_ladder.so"), metavar="FILE")
    options = parser.parse_args()
    options.steps = options.steps or (2 if options.emulator else 400)
    options.seeds = options.seeds or (2 if options.emulator else 3)
    options.size = options.size or ("tiny" if options.emulator else "small")
    if options.steps < 2 or options.seeds < 2:
        parser.error("--steps and --seeds: 2 or more are allowed")
    return options


def main():
    options = parse()
    device = Emulator() if options.emulator else Gpu()
    library = Library(options.library, device, options.forward, options.backward)
    print(f"attention: stage {library.forward_stage} forward, stage {library.backward_stage} backward")
    contestants = {"math": torch_attention(SDPBackend.MATH), "ours": our_attention(library)}
    if not options.emulator:
        contestants = {"flash": torch_attention(SDPBackend.FLASH_ATTENTION), **contestants}
    text, size = read_text(), SIZES[options.size]
    right = compare_gradients(lambda what, attention: what(text, size, 1, device.name, attention), contestants)
    trained = []
    for seed in range(1, options.seeds + 1):
        trained.append({name: train(text, size, options.steps, seed, device.name, attention)
                        for name, attention in contestants.items()})
        print(f"seed {seed}")
        print_curves(trained[-1])
    same = alike.steps_are_alike(trained, "math") if options.emulator else compare_curves(trained)
    print("alike" if same and right else "DIFFERENT")
    return 0 if same and right else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Missing as error:
        print(f"train.py: {error}", file=sys.stderr)
        sys.exit(3)
