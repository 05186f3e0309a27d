"""Launches a kernel with and without a race, and prints how many faults hopper_run_new_findings tells of each time."""

import ctypes

PTX = b"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry turn(.param .u32 ordered) {
  .reg .b32 %r<5>; .reg .pred %p;
  .shared .b32 tile[64];
  mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.u32 %r3, %r2, %r1;
  st.shared.u32 [%r3], %r0;
  ld.param.u32 %r4, [ordered]; setp.eq.u32 %p, %r4, 0; @%p bra READ;
  bar.sync 0;
READ:
  sub.u32 %r1, 252, %r1; add.u32 %r3, %r2, %r1; ld.shared.u32 %r4, [%r3];
  ret;
}
"""
CUDA = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    """Calls a function of the driver API, which must succeed."""
    assert getattr(CUDA, name)(*arguments) == 0, name


def launch(kernel, ordered):
    """64 threads, with a barrier or without one."""
    value = ctypes.c_uint(ordered)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(value))
    call("cuLaunchKernel", kernel, 1, 1, 1, 64, 1, 1, 0, None, parameters, None)


def new_faults(size=1 << 16):
    """The number of faults, and whether the text names the race."""
    text = ctypes.create_string_buffer(size)
    faults = CUDA.hopper_run_new_findings(text, ctypes.c_size_t(size))
    return f"{faults > 0}, {b'shared-memory race' in text.value}"


def main():
    """The race counts for the launches that have it, and each time anew."""
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    print("before cuInit:", new_faults())
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX + b"\0")
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"turn")
    for name, ordered in ("right", 1), ("race", 0), ("right again", 1), ("race again", 0):
        launch(kernel, ordered)
        print(name + ":", new_faults())
    launch(kernel, 0)
    print("no room for text:", new_faults(1))
    print("nothing since:", new_faults())


main()
