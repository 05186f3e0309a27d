// How many blocks fit on an SM: by threads, shared memory and __launch_bounds__. Registers are ptxas's and not known.
#include "driver.h"

enum { MAX_THREADS_SM = 2048, MAX_BLOCKS_SM = 32, GRANULE = 128 };

#define FUNCTION(handle) ((Function *)(void *)(handle))

static int least(int a, int b) { return a < b ? a : b; }

// Registers of a warp are given out in steps of 256, to warps in fours.
static int blocks_by_registers(Function *function, int warps) {
  int registers = 0;
  if (cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)(void *)function) != CUDA_SUCCESS)
    return MAX_BLOCKS_SM;
  int of_warp = (registers * 32 + 255) / 256 * 256;
  return 65536 / of_warp / 4 * 4 / warps;
}

int occupancy_blocks(Function *function, int threads, size_t dynamic_shared) {
  int warps = (threads + 31) / 32;
  size_t shared =
      (function_info(function)->static_shared + dynamic_shared + GRANULE - 1) / GRANULE * GRANULE + RESERVED_SHARED;
  int blocks = least(MAX_BLOCKS_SM, MAX_THREADS_SM / 32 / warps);
  blocks = least(blocks, (int)(MAX_SHARED_SM / shared));
  return least(blocks, blocks_by_registers(function, warps));
}

static CUresult find_occupancy(Function *function, int threads, size_t dynamic_shared, int *blocks) {
  if (!blocks || !function || threads < 1) return CUDA_ERROR_INVALID_VALUE;
  *blocks = 0;
  bool fits = threads <= 1024 && function_info(function)->static_shared + dynamic_shared <= MAX_SHARED_BLOCK;
  if (fits) *blocks = occupancy_blocks(function, threads, dynamic_shared);
  return CUDA_SUCCESS;
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, CUfunction function, int threads, size_t shared)) {
  ENTER();
  return find_occupancy(FUNCTION(function), threads, shared, blocks);
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    (int *blocks, CUfunction function, int threads, size_t shared, unsigned flags)) {
  ENTER();
  (void)flags;
  return find_occupancy(FUNCTION(function), threads, shared, blocks);
}

API(cuOccupancyMaxPotentialBlockSize,
    (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit)) {
  ENTER();
  int most = 0;
  cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
  if (limit > 0) most = least(most, limit);
  int best = 0;
  for (int threads = most; threads > 0; threads -= threads % 32 ? threads % 32 : 32) {
    int blocks = 0;
    find_occupancy(FUNCTION(function), threads, shared_of ? shared_of(threads) : shared, &blocks);
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * SM_COUNT;
  }
  return CUDA_SUCCESS;
}

API(cuOccupancyMaxPotentialBlockSizeWithFlags,
    (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared, int limit,
     unsigned flags)) {
  (void)flags;
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of, shared, limit);
}

API(cuOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes, CUfunction handle, int blocks, int threads)) {
  ENTER();
  (void)threads;
  Function *function = FUNCTION(handle);
  if (!bytes || blocks < 1) return CUDA_ERROR_INVALID_VALUE;
  size_t each = (size_t)MAX_SHARED_SM / (size_t)blocks / GRANULE * GRANULE,
         taken = RESERVED_SHARED + function_info(function)->static_shared;
  size_t room = each > taken ? each - taken : 0, most = MAX_SHARED_BLOCK - function_info(function)->static_shared;
  *bytes = room < most ? room : most;
  return CUDA_SUCCESS;
}

API(cuOccupancyMaxPotentialClusterSize, (int *size, CUfunction function, const CUlaunchConfig *config)) {
  ENTER();
  (void)config;
  *size = FUNCTION(function)->large_clusters ? 16 : 8;
  return CUDA_SUCCESS;
}

API(cuOccupancyMaxActiveClusters, (int *clusters, CUfunction handle, const CUlaunchConfig *config)) {
  ENTER();
  Function *function = FUNCTION(handle);
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      size = config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
             config->attrs[i].value.clusterDim.z;
  int blocks = 0;
  CUresult status = find_occupancy(function, (int)(config->blockDimX * config->blockDimY * config->blockDimZ),
                                   config->sharedMemBytes, &blocks);
  *clusters = blocks * SM_COUNT / (int)(size ? size : 1);
  return status;
}
