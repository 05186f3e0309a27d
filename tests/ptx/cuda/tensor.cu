// Tensor cores and the asynchronous machinery of Hopper: wmma, mma.sync, ldmatrix, cp.async, mbarrier, TMA, wgmma,
// clusters, setmaxnreg, named barriers, elect: as headers emit them and as inline assembly writes them.
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

namespace cg = cooperative_groups;

extern "C" __global__ void wmma_gemm(const half *a, const half *b, float *c, int n) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(fa, a + k, n);
    wmma::load_matrix_sync(fb, b + k, n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 0.125f;
  wmma::store_matrix_sync(c, fc, n, wmma::mem_row_major);
}

extern "C" __global__ void mma_sync(const half *a, float *c) {
  __shared__ __align__(128) half tile[16 * 16];
  __pipeline_memcpy_async(&tile[threadIdx.x * 8], a + threadIdx.x * 8, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  uint32_t r[4], at = (uint32_t)__cvta_generic_to_shared(&tile[(threadIdx.x % 16) * 16 + threadIdx.x / 16 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
  float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[0]), "r"(r[2]));
  for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}

__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, 0x989680;\n"
               "@done bra over;\n"
               "bra again;\n"
               "over:\n"
               "}\n" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

__device__ __forceinline__ uint32_t elect_one() {
  uint32_t elected, leader = 0;
  asm volatile("{ /* one lane */ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }\n"
               : "=r"(leader), "=r"(elected));
  return elected + 0 * leader;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    wgmma_tma(const __grid_constant__ CUtensorMap map, float *out, uint64_t descriptor) {
  extern __shared__ __align__(1024) half smem[];
  __shared__ __align__(8) uint64_t full[2];
  uint32_t barrier = (uint32_t)__cvta_generic_to_shared(&full[0]), at = (uint32_t)__cvta_generic_to_shared(smem);
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(1));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  cg::this_cluster().sync();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (elect_one()) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(8192) : "memory");
      asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                   ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6, %7;" ::"r"(at),
                   "l"(&map), "r"(barrier), "r"(0), "r"((int)blockIdx.x * 64), "r"(-1), "h"((uint16_t)3),
                   "l"(0x14F0000000000000ull)
                   : "memory");
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  wait(barrier, 0);
  wait(barrier, 1);
  float d[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{\n"
               ".reg .pred p;\n"
               "setp.ne.b32 p, %6, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, -1, 0, 1;\n"
               "}\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(descriptor), "l"(descriptor + 2), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(0) : "memory");
  asm volatile("bar.sync %0, %1;" ::"r"(1), "n"(256) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(barrier), "r"(1));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(0),
               "r"(8), "r"(at)
               : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
