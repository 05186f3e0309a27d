"""The SM clock that ran while kernels did: a small kernel before them and one after them stamp what an SM's clock
counter and the GPU's timer show. Clocks over time are the frequency."""
import ctypes
import functools
import sys

# Whichever block comes to SM 0 writes its stamp; each SM counts its own clocks. No register has the name of a special
# one: ptxas takes a declared %clock for the counter, without a word.
STAMP = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry stamp(.param .u64 to) {
  .reg .pred %other;
  .reg .b32 %here;
  .reg .b64 %to, %ticks, %now;
  mov.u32 %here, %smid;
  setp.ne.u32 %other, %here, 0;
  @%other ret;
  ld.param.u64 %to, [to];
  mov.u64 %ticks, %clock64;
  mov.u64 %now, %globaltimer;
  st.global.v2.u64 [%to], {%ticks, %now};
  ret;
}
"""
BLOCKS_PER_SM = 4  # so that one is on SM 0


@functools.cache
def driver():
    return ctypes.CDLL("libcuda.so.1")


@functools.cache
def stamp_kernel():
    """The kernel, in the context that PyTorch has made; None, with a line that says so, where the driver refuses it."""
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    code = driver().cuModuleLoadData(ctypes.byref(module), STAMP)
    code = code or driver().cuModuleGetFunction(ctypes.byref(kernel), module, b"stamp")
    if code:
        print(f"the SM clock is not recorded: the driver refuses its kernel with error {code}", file=sys.stderr)
    return None if code else kernel


class SmClock:
    """Room for a number of stamps."""

    def __init__(self, room):
        import torch

        self.blocks = BLOCKS_PER_SM * torch.cuda.get_device_properties(0).multi_processor_count
        self.stamps = torch.zeros((room, 2), dtype=torch.int64, device="cuda")
        self.stream = torch.cuda.current_stream().cuda_stream
        self.kernel = stamp_kernel()
        self.used = 0

    def stamp(self):
        """Queues a stamp; returns its number."""
        to = ctypes.c_uint64(self.stamps.data_ptr() + 16 * self.used)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(to))
        if self.kernel:
            grid, block, shared_memory = (self.blocks, 1, 1), (1, 1, 1), 0
            stream = ctypes.c_void_p(self.stream)
            driver().cuLaunchKernel(self.kernel, *grid, *block, shared_memory, stream, arguments, None)
        self.used += 1
        return self.used - 1

    def megahertz(self, pairs):
        """The clock in MHz between the two stamps of each pair, when the GPU has done what is queued; pairs with a
        missing stamp are skipped."""
        stamps = self.stamps.tolist()
        return [1000 * (stamps[last][0] - stamps[first][0]) / (stamps[last][1] - stamps[first][1])
                for first, last in pairs if stamps[first][1] and stamps[last][1] > stamps[first][1]]
