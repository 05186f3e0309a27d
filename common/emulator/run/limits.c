// The limits of a launch. See limits.h.
#include "limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

EmulatorStatus launch_invalid(EmulatorError *error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error->line = 0;
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return EMULATOR_INVALID;
}

// Limits of compute capability 9.0, CUDA C++ programming guide, table of technical specifications; SMs: of an H100 SXM.
enum {
  MAX_BLOCK_THREADS = 1024,
  MAX_BLOCK_Z = 64,
  MAX_GRID_YZ = 65535,
  MAX_CLUSTER = 16,  // more than 8 are not portable
  MAX_SHARED = 227 * 1024,
  SMS = 132,
  SM_WARPS = 64,
  SM_BLOCKS = 32,
  SM_SHARED = 228 * 1024,
  SHARED_UNIT = 128,  // what a block is given is a multiple of it
};
// The emulator's own: registers and local memory of a cluster, in the host's bytes.
#define MAX_CLUSTER_BYTES (2ull << 30)

static uint64_t product(const unsigned size[3]) { return (uint64_t)size[0] * size[1] * size[2]; }

static uint64_t block_warps(const Launch *launch) { return (product(launch->block) + LANES - 1) / LANES; }

static EmulatorStatus check_axis(const Launch *launch, const PtxFunction *entry, int axis, EmulatorError *error) {
  unsigned grid = launch->grid[axis], block = launch->block[axis], cluster = launch->cluster[axis];
  if (!grid || !block) return launch_invalid(error, "%s: a grid or block dimension is 0", entry->name);
  if (block > MAX_BLOCK_THREADS)
    return launch_invalid(error, "%s: block dimension %d is %u, at most %d", entry->name, axis, block,
                          MAX_BLOCK_THREADS);
  if (axis > 0 && grid > MAX_GRID_YZ)
    return launch_invalid(error, "%s: grid dimension %d is %u, at most %d", entry->name, axis, grid, MAX_GRID_YZ);
  if (grid % cluster)
    return launch_invalid(error, "%s: grid dimension %u is not a multiple of the cluster's %u", entry->name, grid,
                          cluster);
  return EMULATOR_OK;
}

static EmulatorStatus check_block(const Launch *launch, const PtxFunction *entry, EmulatorError *error) {
  const unsigned *block = launch->block, *required = entry->required_threads;
  if (required[0] && memcmp(required, block, sizeof entry->required_threads))
    return launch_invalid(error, "%s: needs blocks of (%u,%u,%u)", entry->name, required[0], required[1], required[2]);
  uint64_t threads = product(block), most = 1;
  for (int axis = 0; axis < 3; axis++) most *= entry->max_threads[axis] ? entry->max_threads[axis] : 1;
  if (threads > MAX_BLOCK_THREADS || block[2] > MAX_BLOCK_Z)
    return launch_invalid(error, "%s: a block has at most %d threads and %d along z, this one %llu and %u", entry->name,
                          MAX_BLOCK_THREADS, MAX_BLOCK_Z, (unsigned long long)threads, block[2]);
  if (entry->max_threads[0] && threads > most)
    return launch_invalid(error, "%s: its __launch_bounds__ allow %llu threads a block, not %llu", entry->name,
                          (unsigned long long)most, (unsigned long long)threads);
  return EMULATOR_OK;
}

static EmulatorStatus check_cluster_size(const Launch *launch, const PtxFunction *entry, EmulatorError *error) {
  const unsigned *cluster = launch->cluster, *required = entry->required_cluster;
  uint64_t blocks = product(cluster);
  if (required[0] && memcmp(required, cluster, sizeof entry->required_cluster))
    return launch_invalid(error, "%s: needs clusters of (%u,%u,%u)", entry->name, required[0], required[1],
                          required[2]);
  if (blocks > MAX_CLUSTER)
    return launch_invalid(error, "%s: a cluster has at most %d blocks", entry->name, MAX_CLUSTER);
  if (entry->max_cluster_rank && blocks > entry->max_cluster_rank)
    return launch_invalid(error, "%s: its __launch_bounds__ allow %u blocks a cluster, not %llu", entry->name,
                          entry->max_cluster_rank, (unsigned long long)blocks);
  uint64_t warp_bytes = launch->program->register_bytes + 2 * LANES * launch->program->local_size;
  uint64_t bytes = block_warps(launch) * blocks * warp_bytes;
  if (bytes > MAX_CLUSTER_BYTES)
    return launch_invalid(error,
                          "%s: registers and local memory of a cluster need %llu MB, the emulator gives it %llu MB",
                          entry->name, (unsigned long long)(bytes >> 20), MAX_CLUSTER_BYTES >> 20);
  return EMULATOR_OK;
}

static uint64_t smaller_count(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint32_t launch_resident_clusters(const Launch *launch) {
  uint64_t shared = (launch->shared_size + SHARED_BASE + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
  uint64_t blocks = smaller_count(smaller_count(SM_BLOCKS, SM_WARPS / block_warps(launch)), SM_SHARED / shared);
  return (uint32_t)(SMS * blocks / product(launch->cluster));
}

// cudaErrorCooperativeLaunchTooLarge
static EmulatorStatus check_cooperative(const Launch *launch, const PtxFunction *entry, EmulatorError *error) {
  uint64_t blocks = product(launch->grid), cluster = product(launch->cluster);
  uint64_t most = launch_resident_clusters(launch) * cluster;
  if (!launch->cooperative || blocks <= most) return EMULATOR_OK;
  return launch_invalid(error,
                        "%s: a cooperative launch of %llu blocks, but an H100 holds at most %llu of %llu threads and "
                        "%zu bytes of shared memory at a time",
                        entry->name, (unsigned long long)blocks, (unsigned long long)most,
                        (unsigned long long)product(launch->block), launch->shared_size);
}

EmulatorStatus launch_check(const Launch *launch, EmulatorError *error) {
  const PtxFunction *entry = launch->program->functions[0].ptx;
  EmulatorStatus status = EMULATOR_OK;
  for (int axis = 0; axis < 3 && status == EMULATOR_OK; axis++) status = check_axis(launch, entry, axis, error);
  if (status == EMULATOR_OK) status = check_block(launch, entry, error);
  if (status == EMULATOR_OK) status = check_cluster_size(launch, entry, error);
  if (status != EMULATOR_OK) return status;
  if (launch->dynamic_shared > MAX_SHARED || launch->shared_size > MAX_SHARED)
    return launch_invalid(error, "%s: %zu bytes of shared memory, a block has at most %d", entry->name,
                          launch->dynamic_shared > MAX_SHARED ? launch->dynamic_shared : launch->shared_size,
                          MAX_SHARED);
  if (product(launch->grid) > 1u << 31)
    return launch_invalid(error, "%s: more blocks than the emulator counts", entry->name);
  return check_cooperative(launch, entry, error);
}
