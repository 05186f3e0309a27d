// Calls the kernels of CUTLASS's example 88 with the tiles that the example itself runs. FMHA_EXAMPLE is its folder.
#include "cutlass_fmha.h"

#include <cuda_runtime.h>

#include "collective/fmha_fusion.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/kernel_hardware_info.h"
#include "device/device_universal.hpp"
#include "kernel/fmha_kernel_builder.hpp"

namespace {

using namespace cute;
using namespace cutlass::fmha::collective;

struct Problem {
  int batch, heads, seqlen, head_dim;
  const void *q, *k, *v;
  void *o, *lse;
  cudaStream_t stream;
};

// Strides: of a row, of an element, and of a batch and a head.
using RowStrides = cute::tuple<int, _1, cute::tuple<int, int>>;

template <class Tile, class Schedule, class Fusion> int launch(const Problem &p) {
  using Element = cutlass::half_t;
  using Kernel = typename cutlass::fmha::kernel::FmhaBuilder<Element, float, float, Tile, RowStrides, RowStrides,
                                                             RowStrides, Fusion, Schedule>::Kernel;
  using Operation = cutlass::device::Universal<Kernel>;
  static Operation operation;  // which the first call prepares for large shared memory
  cutlass::KernelHardwareInfo hardware;
  cudaError_t error = cudaGetDevice(&hardware.device_id);
  if (error) return error;
  hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(hardware.device_id);
  int head = p.seqlen * p.head_dim;
  RowStrides rows = make_stride(p.head_dim, _1{}, make_stride(p.heads * head, head));
  auto input = [](const void *tensor) { return static_cast<Element *>(const_cast<void *>(tensor)); };
  typename Operation::Arguments arguments{
      {p.batch, p.heads, p.seqlen, p.seqlen, p.head_dim},
      {input(p.q), rows, input(p.k), rows, input(p.v), rows},
      {input(p.o), rows, static_cast<float *>(p.lse), make_stride(_1{}, make_stride(p.heads * p.seqlen, p.seqlen))},
      hardware};
  bool done = Operation::can_implement(arguments) == cutlass::Status::kSuccess &&
              Operation::get_workspace_size(arguments) == 0 &&
              operation.initialize(arguments, nullptr, p.stream) == cutlass::Status::kSuccess &&
              operation.run(p.stream) == cutlass::Status::kSuccess;
  return done ? 0 : -1;
}

using Cooperative = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using PingPong = cutlass::gemm::KernelTmaWarpSpecializedPingpong;

template <class Tile> int launch_one(const Problem &p, int kernel, bool causal) {
  if (kernel == 0)
    return causal ? launch<Tile, Cooperative, CausalFusion>(p) : launch<Tile, Cooperative, DefaultFusion>(p);
  return causal ? launch<Tile, PingPong, CausalFusion>(p) : launch<Tile, PingPong, DefaultFusion>(p);
}

}  // namespace

// The build defines the commit as a text.
#define TEXT(number) #number
#define VERSION(major, minor) TEXT(major) "." TEXT(minor)
const char *cutlass_fmha_version(void) {
  return "CUTLASS " CUTLASS_COMMIT " with CUDA " VERSION(__CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__);
}

int cutlass_fmha(int kernel, int batch, int heads, int seqlen, int head_dim, int causal, const void *q, const void *k,
                 const void *v, void *o, void *lse, void *stream) {
  Problem problem = {batch, heads, seqlen, head_dim, q, k, v, o, lse, static_cast<cudaStream_t>(stream)};
  if (seqlen % 128 || kernel < 0 || kernel >= CUTLASS_FMHA_KERNELS) return -1;
  if (head_dim == 64) return launch_one<Shape<_128, _64, _64>>(problem, kernel, causal);
  if (head_dim == 128) return launch_one<Shape<_128, _128, _128>>(problem, kernel, causal);
  return -1;
}
