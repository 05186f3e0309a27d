"""PyTorch's own operations on the emulated GPU. Their kernels are machine code, which the emulator does not run. So the
CPU computes them, on copies. Allocations, views and the program's own kernels stay on the emulated GPU."""

import contextlib
import ctypes
import functools

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

# They need no kernel. _unsafe_view is a view, although its schema does not say so.
NATIVE = {"empty", "empty_strided", "set_", "resize_", "_local_scalar_dense", "record_stream", "is_pinned"}
NATIVE |= {"_pin_memory", "_unsafe_view", "is_same_size", "_has_compatible_shallow_copy_type"}
# They copy memory as it is when both sides lie in it alike.
COPIES = {"copy_", "clone"}
# The CPU adds up halves in halves, and a GPU in fp32: over some hundred rows the difference shows.
WIDENED = {"native_layer_norm_backward", "native_group_norm_backward", "native_batch_norm_backward"}
# A view with more rows than this is written back with the gaps between its rows.
MOST_ROWS = 4096


def flat_bytes(tensor, first, count):
    """Bytes of a tensor's memory, without a copy."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage(), first, (count,), (1,))


def span(tensor):
    """Where in its memory a tensor begins, and how many bytes it reaches over."""
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1
    return tensor.storage_offset() * tensor.element_size(), reach * tensor.element_size() if tensor.numel() else 0


def is_dense(tensor):
    """Whether a tensor has no gaps between its elements."""
    return span(tensor)[1] == tensor.numel() * tensor.element_size()


class Copies:
    """The CPU's copies of the tensors of one operation. Tensors that share memory share their copy's memory, too."""

    def __init__(self, tensors):
        self.memory = {}
        self.made = {}
        bounds = {}
        for tensor in tensors:
            first, count = span(tensor)
            key = tensor.untyped_storage().data_ptr()
            low, high = bounds.get(key, (first, first))
            bounds[key] = (min(low, first), max(high, first + count))
        for tensor in tensors:
            key = tensor.untyped_storage().data_ptr()
            low, high = bounds[key]
            if key not in self.memory:
                low -= low % 16
                self.memory[key] = (low, flat_bytes(tensor, low, high - low).cpu())
            low, memory = self.memory[key]
            offset = tensor.storage_offset() - low // tensor.element_size()
            copy = torch.empty(0, dtype=tensor.dtype)
            copy = copy.set_(memory.untyped_storage(), offset, tensor.shape, tensor.stride())
            copy = copy.conj() if tensor.is_conj() else copy
            self.made[id(tensor)] = (tensor, copy._neg_view() if tensor.is_neg() else copy)

    def of(self, tensor):
        """The copy of a tensor."""
        return self.made[id(tensor)][1]

    def original(self, copy):
        """The tensor that a copy belongs to; None for any other tensor."""
        return next((tensor for tensor, other in self.made.values() if other is copy), None)


def write_back(tensor, copy):
    """Copies the elements, and not what lies between them: who reads that may still find that nothing was written."""
    if tensor.shape != copy.shape or tensor.stride() != copy.stride():  # an out= of another size
        tensor.resize_(copy.shape).set_(up(copy).untyped_storage(), 0, copy.shape, copy.stride())
        return
    if tensor.numel() == 0:
        return
    rows = tensor.numel() // tensor.shape[0] if tensor.dim() else 1
    if not is_dense(tensor) and tensor.dim() > 1 and rows > 0 and tensor.shape[0] <= MOST_ROWS:
        for i in range(tensor.shape[0]):
            write_back(tensor.select(0, i), copy.select(0, i))
        return
    first, count = span(tensor)
    flat_bytes(tensor, first, count).copy_(flat_bytes(copy, span(copy)[0], count))


def up(value):
    """The GPU's copy of a tensor that the CPU has computed, with the same strides."""
    value = value.resolve_conj().resolve_neg()
    result = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")
    if is_dense(value):
        write_back(result, value)
    else:  # expanded: the same memory for several elements
        result = torch.empty(value.shape, dtype=value.dtype, device="cuda")
        write_back(result, value.contiguous())
    return result


def compute_in_fp32(func, args, kwargs):
    """The gradients of a normalisation, computed in fp32, and rounded to the formats of its input and its weight."""

    def widen(value):
        return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    given = {argument.name: value for argument, value in zip(func._schema.arguments, args)}
    formats = [(given[name] if given[name] is not None else given["input"]).dtype for name in ("input", "weight")]
    results = func(*tree_map(widen, args), **tree_map(widen, kwargs))
    return tuple(result if result is None else result.to(formats[i > 0]) for i, result in enumerate(results))


def is_cuda(value):
    """Whether it is a tensor on the GPU."""
    return isinstance(value, torch.Tensor) and value.is_cuda


def names_cuda(value):
    """Whether it is a device, and the GPU."""
    return isinstance(value, torch.device) and value.type == "cuda"


@contextlib.contextmanager
def random_numbers(func, leaves):
    """Seeds the CPU's generator as the state of the GPU's says, moves that on, and puts the CPU's back."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        yield
        return
    given = [leaf for leaf in leaves if isinstance(leaf, torch.Generator)]
    if given and given[0].device.type == "cpu":
        yield
        return
    torch.cuda.init()
    generator = given[0] if given else torch.cuda.default_generators[torch.cuda.current_device()]
    offset, state = generator.get_offset(), torch.get_rng_state()
    generator.set_offset(offset + 4)
    torch.default_generator.manual_seed((generator.initial_seed() * 0x9E3779B1 + offset) % (1 << 63))
    try:
        yield
    finally:
        torch.set_rng_state(state)


class CpuOperations(TorchDispatchMode):
    """Sends PyTorch's operations on tensors of the GPU to the CPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        namespace, name = schema.name.split("::")
        if namespace != "aten":  # the program's own: enter_in_kernels sees to what it calls
            return func(*args, **kwargs)
        leaves, shape = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if is_cuda(leaf)]
        if not tensors and not any(names_cuda(leaf) for leaf in leaves):
            return func(*args, **kwargs)
        is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        if name in NATIVE or is_view or self.copies_as_it_is(name, leaves, kwargs):
            return func(*args, **kwargs)
        return self.on_cpu(func, leaves, shape)

    @staticmethod
    def copies_as_it_is(name, leaves, kwargs):
        """Whether a copy needs no kernel."""
        both = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        layouts = (None, torch.contiguous_format, torch.preserve_format)
        if name not in COPIES or kwargs.get("memory_format") not in layouts:
            return False
        first = both[0]
        plain = all(t.is_contiguous() and not t.is_conj() and not t.is_neg() for t in both)
        return plain and all(t.dtype == first.dtype and t.shape == first.shape for t in both)

    def on_cpu(self, func, leaves, shape):
        """Computes an operation on the CPU, and brings its results back."""
        tensors = list({id(leaf): leaf for leaf in leaves if is_cuda(leaf)}.values())
        copies = Copies(tensors)
        devices = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
        to_gpu = names_cuda(devices[0]) if devices else bool(tensors)

        def down(value):
            if is_cuda(value):
                return copies.of(value)
            if isinstance(value, torch.Generator) and value.device.type == "cuda":
                return None
            return torch.device("cpu") if names_cuda(value) else value

        args, kwargs = tree_unflatten([down(leaf) for leaf in leaves], shape)
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        with random_numbers(func, leaves):
            widened = func._schema.name.split("::")[1] in WIDENED
            result = compute_in_fp32(func, args, kwargs) if widened else func(*args, **kwargs)
        for tensor in self.written(func._schema, *tree_unflatten(leaves, shape)):
            write_back(tensor, copies.of(tensor))

        def back(value):
            if not isinstance(value, torch.Tensor):
                return value
            original = copies.original(value)
            return original if original is not None else up(value) if to_gpu and not value.is_cuda else value

        # An operation in place returns its argument, which may be a tensor of the CPU.
        given = {id(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)}
        return tree_map(lambda value: value if id(value) in given else back(value), result)

    @staticmethod
    def written(schema, args, kwargs):
        """The tensors of the GPU that an operation writes."""
        found = []
        for i, argument in enumerate(schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            found += [leaf for leaf in tree_flatten(value)[0] if is_cuda(leaf)]
        return found


def print_from_cpu():
    """Printing switches all modes off: it gets the numbers from the CPU."""
    strings = torch._tensor_str
    contents = strings._tensor_str
    strings._tensor_str = lambda tensor, indent: contents(tensor.cpu() if is_cuda(tensor) else tensor, indent)


def enter_in_kernels(mode):
    """Operations that the program registers run with the mode on, as everything else does."""
    register = torch.library.Library.impl

    def impl(self, op_name, fn, dispatch_key="", **options):
        @functools.wraps(fn)
        def kernel(*args, **kwargs):
            with mode:
                return fn(*args, **kwargs)

        runs = callable(fn) and dispatch_key in ("CUDA", "CompositeExplicitAutograd")
        return register(self, op_name, kernel if runs else fn, dispatch_key, **options)

    torch.library.Library.impl = impl


def install():
    """Called when torch has been imported."""
    if not torch.backends.cuda.is_built():
        return
    print_from_cpu()
    # Attention of PyTorch's own is composed of operations that the CPU has.
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    # PyTorch frees memory in destructors, where an error would end the program before it has shown the first one.
    ctypes.CDLL(None).hopper_run_free_after_fault()
    mode = CpuOperations()
    enter_in_kernels(mode)
    mode.__enter__()  # pylint: disable=unnecessary-dunder-call  # to the program's end
