"""Launches kernels of CuTe DSL by their PTX.

    from hopper_run_cute import launch, tensor_map

    compiled = cute.compile(host, from_dlpack(x), from_dlpack(y))
    launch(compiled, [tensor_map(x, (64, 64), swizzle=128), y], grid=(4, 1, 1), block=(128, 1, 1), shared=8320)

A call of what cute.compile returns launches through NVIDIA's runtime, of which CuTe DSL contains a static copy, and the
compiled host code encodes the TMA descriptors. Neither works without a GPU. This module asks the driver for both.
"""

import ctypes
import re

from cuda.bindings import driver

FLOATS = {"f32": ctypes.c_float, "f64": ctypes.c_double}
# A CUtensorMap. cuda.bindings allocates them with the alignment of malloc, which the driver refuses.
MAP_BYTES, MAP_ALIGNMENT = 128, 64
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle


def call(function, *arguments):
    """Calls a function of the driver, and returns what it gives."""
    status, *results = function(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{function.__name__}: {status.name}")
    return results[0] if results else None


def tensor_map(tensor, box, swizzle=0):
    """The TMA descriptor of a tensor: its 128 bytes. PyTorch's order of axes, in which the last stride is 1.

    box has the elements of one copy along each axis. swizzle is the width in bytes of the pattern in shared memory: 128
    for a layout K_SW128 or MN_SW128, 64 and 32 likewise, and 0 for none. The last axis of a box is at most so wide.
    """
    if tensor.stride(-1) != 1 or len(box) != tensor.dim():
        raise ValueError("the tensor's last stride must be 1, and the box must have as many axes as the tensor")
    types = driver.CUtensorMapDataType
    name = str(tensor.dtype).removeprefix("torch.").upper()
    kind = getattr(types, f"CU_TENSOR_MAP_DATA_TYPE_{name}", types.CU_TENSOR_MAP_DATA_TYPE_UINT8)
    if kind == types.CU_TENSOR_MAP_DATA_TYPE_UINT8 and tensor.element_size() != 1:
        raise ValueError(f"TMA knows no {name}")
    room = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
    at = ctypes.addressof(room) + -ctypes.addressof(room) % MAP_ALIGNMENT
    rank, bytes_each = tensor.dim(), tensor.element_size()
    status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(at),
        int(kind),
        rank,
        ctypes.c_void_p(tensor.data_ptr()),
        (ctypes.c_uint64 * rank)(*reversed(tensor.shape)),
        (ctypes.c_uint64 * rank)(*(stride * bytes_each for stride in reversed(tensor.stride()[:-1]))),
        (ctypes.c_uint32 * rank)(*reversed(box)),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        0,  # no interleaving
        SWIZZLES[swizzle],
        0,  # nothing of the second-level cache
        0,  # zeros outside
    )
    if status:
        raise ValueError(f"cuTensorMapEncodeTiled: {driver.CUresult(status).name}")
    return ctypes.string_at(at, MAP_BYTES)


def read_entry(ptx):
    """The name of the kernel in a text of PTX, and its parameters: "u32", "f64" and so on, a structure is "8 bytes"."""
    entries = re.findall(r"\.entry\s+(\w+)\s*\(([^)]*)\)", ptx)
    if len(entries) != 1:
        raise ValueError(f"a function with one kernel is needed, and this one has {len(entries)}")
    found = re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+\w+(?:\[(\d+)\])?", entries[0][1])
    return entries[0][0], [f"{size} bytes" if size else kind for kind, size in found]


def as_bytes(argument, parameter):
    """The bytes of an argument. None if the parameter is another one."""
    if argument is None:  # an object whose members are all known at compile time
        return bytes(1) if parameter == "1 bytes" else None
    if isinstance(argument, bytes):
        return argument if parameter == f"{len(argument)} bytes" else None
    if hasattr(argument, "data_ptr"):
        return bytes(ctypes.c_uint64(argument.data_ptr())) if parameter == "8 bytes" else None
    if isinstance(argument, int) and re.fullmatch(r"[usb]\d+", parameter):
        return (argument % (1 << int(parameter[1:]))).to_bytes(int(parameter[1:]) // 8, "little")
    return bytes(FLOATS[parameter](argument)) if isinstance(argument, (int, float)) and parameter in FLOATS else None


def launch(compiled, arguments, grid, block, shared=0):
    """Launches the kernel of a function that cute.compile has compiled, and waits for its end.

    arguments has one for each parameter of the kernel's PTX: a tensor whose layout is known at compile time, a number,
    a tensor_map for a TMA copy's atom, None for a TiledMma, or bytes. Layouts, Constexprs and the coordinate tensors of
    make_tiled_tma_atom are no parameters. shared is how many bytes SmemAllocator allocates.
    """
    ptx = compiled.__ptx__.rstrip("\0")
    name, parameters = read_entry(ptx)
    values = [as_bytes(argument, parameter) for argument, parameter in zip(arguments, parameters)]
    if len(arguments) != len(parameters) or None in values:
        given = ", ".join(type(argument).__name__ for argument in arguments)
        raise TypeError(f"the kernel's parameters are {', '.join(parameters)}; the arguments are {given}")
    call(driver.cuInit, 0)
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, 0))
    module = call(driver.cuModuleLoadData, ptx.encode() + b"\0")
    kernel = call(driver.cuModuleGetFunction, module, name.encode())
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    call(driver.cuFuncSetAttribute, kernel, attribute, shared)
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
    pointers = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    call(driver.cuLaunchKernel, kernel, *grid, *block, shared, 0, ctypes.addressof(pointers), 0)
    call(driver.cuCtxSynchronize)
