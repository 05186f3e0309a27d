// Stage 20's launch: one kernel, as many blocks as SMs; they share the tiles among themselves.
#include "harness/stage.h"

#include "tiles.h"

static bool launch(Device *device, const Gemm *gemm) {
  Problem problem = {
      .rows = (gemm->m + ROWS - 1) / ROWS,
      .columns = (gemm->n + COLUMNS - 1) / COLUMNS,
      .depth = (gemm->k + DEPTH - 1) / DEPTH,
  };
  long tiles = (long)problem.rows * problem.columns;
  int sm_count = device_info(device)->sm_count;
  Matrices matrices;
  gemm_tensor_map(device, gemm->a, gemm->m, gemm->k, ROWS, &matrices.a);
  gemm_tensor_map(device, gemm->b, gemm->n, gemm->k, COLUMNS, &matrices.b);
  gemm_tensor_map(device, gemm->c, gemm->m, gemm->n, STORE_ROWS, &matrices.c);
  DeviceLaunch product = {
      .kernel = device_kernel(device, gemm->module, "gemm"),
      .grid = {(unsigned)(tiles < sm_count ? tiles : sm_count)},
      .block = {THREADS},
      .dynamic_shared = SHARED_BYTES,
      .arguments = ARGUMENTS(&matrices, &problem),
  };
  return device_launch(device, &product);
}

const Stage stage = {
    .name = "20-gemm",
    .title = "a matrix product: tiles of 128 x 256, stored while the next one begins",
    .gemm = launch,
};
