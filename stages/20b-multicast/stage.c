// Stage 20b's launch: one kernel, as many clusters as pairs of SMs; they share the pairs of tiles among themselves.
#include "harness/stage.h"

#include "tiles.h"

static bool launch(Device *device, const Gemm *gemm) {
  Problem problem = {
      .rows = (gemm->m + CLUSTER * ROWS - 1) / (CLUSTER * ROWS),
      .columns = (gemm->n + COLUMNS - 1) / COLUMNS,
      .depth = (gemm->k + DEPTH - 1) / DEPTH,
  };
  long pairs = (long)problem.rows * problem.columns;
  int clusters = device_info(device)->sm_count / CLUSTER;
  Matrices matrices;
  gemm_tensor_map(device, gemm->a, gemm->m, gemm->k, ROWS, &matrices.a);
  gemm_tensor_map(device, gemm->b, gemm->n, gemm->k, SHARE, &matrices.b);
  gemm_tensor_map(device, gemm->c, gemm->m, gemm->n, STORE_ROWS, &matrices.c);
  DeviceLaunch product = {
      .kernel = device_kernel(device, gemm->module, "gemm"),
      .grid = {CLUSTER * (unsigned)(pairs < clusters ? pairs : clusters)},
      .block = {THREADS},
      .cluster = {CLUSTER},
      .dynamic_shared = CLUSTER_SHARED_BYTES,
      .arguments = ARGUMENTS(&matrices, &problem),
  };
  return device_launch(device, &product);
}

const Stage stage = {
    .name = "20b-multicast",
    .title = "two blocks share what they load: clusters and multicast",
    .gemm = launch,
};
