// A launch: checks what is asked for, and has it run.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../async/async.h"
#include "../check/threads.h"
#include "../host/host_memory.h"
#include "../report/hazard.h"
#include "module.h"
#include "state.h"
#include "run.h"

static EmulatorStatus check_arguments(const PtxFunction *entry, const EmulatorLaunch *request, EmulatorError *error) {
  if (request->argument_count != entry->param_count)
    return launch_invalid(error, "%s takes %d argument%s, not %d", entry->name, entry->param_count,
                          entry->param_count == 1 ? "" : "s", request->argument_count);
  for (int i = 0; i < entry->param_count; i++)
    if (!request->arguments || !request->arguments[i])
      return launch_invalid(error, "%s: argument %d is missing", entry->name, i);
  return EMULATOR_OK;
}

static void fill_shape(Launch *launch, const PtxFunction *entry, const EmulatorLaunch *request) {
  for (int axis = 0; axis < 3; axis++) {
    launch->grid[axis] = request->grid[axis];
    launch->block[axis] = request->block[axis];
    unsigned required = entry->required_cluster[axis];
    launch->cluster[axis] = request->cluster[axis] ? request->cluster[axis] : required ? required : 1;
    launch->explicit_cluster |= request->cluster[axis] || required;
  }
  const Program *program = launch->program;
  launch->dynamic_shared = request->dynamic_shared;
  launch->shared_size =
      (request->dynamic_shared ? program->dynamic_offset : program->shared_size) + request->dynamic_shared;
  launch->cooperative = request->cooperative;
}

static void fill_params(Launch *launch, const PtxFunction *entry, const void *const *arguments) {
  const Function *function = &launch->program->functions[0];
  launch->params = host_allocate(launch->program->param_size, 1);
  for (int i = 0; i < entry->param_count; i++)
    memcpy(launch->params + function->places[i].address, arguments[i], entry->params[i]->size);
}

// The workspace of grid.sync(), whose address %envreg1 and %envreg2 hold: zeros, as cooperative_groups expects.
static bool provide_workspace(Launch *launch) {
  enum { WORKSPACE_BYTES = 64 };
  Emulator *emulator = launch->emulator;
  if (!launch->cooperative) return true;
  if (!emulator->grid_workspace) {
    Region *region = region_add(&emulator->global, REGION_GLOBAL, WORKSPACE_BYTES, emulator->options.hazards);
    if (!region) return false;
    region->name = "the workspace of grid.sync()";
    emulator->grid_workspace = region->base;
  }
  launch->grid_workspace = emulator->grid_workspace;
  return emulator_fill(emulator, launch->grid_workspace, 0, WORKSPACE_BYTES);
}

// How many clusters there are. 0 and *error when the race check could not tell their threads apart.
static uint32_t count_clusters(Launch *launch, EmulatorError *error) {
  uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  uint64_t cluster_blocks = (uint64_t)launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
  uint64_t block_threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
  uint64_t cluster_threads = cluster_blocks * ((block_threads + LANES - 1) / LANES * LANES) + ASYNC_AGENTS;
  uint64_t clusters = blocks / cluster_blocks;
  if (!launch->check.on || epoch_layout(&launch->check.epochs, clusters, cluster_threads, launch->program->count))
    return (uint32_t)clusters;
  launch_invalid(error, "%s: too many blocks, threads and instructions for the race check; run with --hazards=off",
                 launch->program->functions[0].ptx->name);
  return 0;
}

EmulatorStatus emulator_launch(Emulator *emulator, EmulatorModule *module, const EmulatorLaunch *request,
                               EmulatorError *error) {
  const PtxFunction *entry = module_entry(module, request->kernel);
  if (!entry) return launch_invalid(error, "the module has no kernel %s", request->kernel);
  const Program *program = module_program(module, entry, error);
  if (!program || check_arguments(entry, request, error) != EMULATOR_OK) return EMULATOR_INVALID;

  Launch launch = {.emulator = emulator,
                   .global = &emulator->global,
                   .hazard_list = &emulator->hazards,
                   .program = program,
                   .advise_wait = async_advise_wait,
                   .schedule = emulator->options.schedule,
                   .fair = emulator->options.fair,
                   .record = emulator->options.steps > 0 ? &emulator->steps : NULL,
                   .step_limit = emulator->options.step_limit};
  launch.check = (CheckLaunch){.on = emulator->options.hazards,
                               .lane_by_lane = emulator->lane_by_lane,
                               .asynchronous = program->asynchronous,
                               .has_first_guesses = program->has_first_guesses,
                               .has_late_loads = program->watches != NULL,
                               .sites = program->sites,
                               .report = conflict_report};
  fill_shape(&launch, entry, request);
  if (launch_check(&launch, error) != EMULATOR_OK) return EMULATOR_INVALID;
  uint32_t clusters = count_clusters(&launch, error);
  if (!clusters) return EMULATOR_INVALID;
  if (!provide_workspace(&launch)) return launch_invalid(error, "%s: no memory for grid.sync()", entry->name);

  LaunchShape shape = {.program = program, .module = program->module};
  memcpy(shape.grid, launch.grid, sizeof shape.grid);
  memcpy(shape.block, launch.block, sizeof shape.block);
  memcpy(shape.cluster, launch.cluster, sizeof shape.cluster);
  launch.check.number = ++emulator->launches;
  overlap_begin(&launch.check, &shape, &emulator->history, &emulator->global, request->prerequisite, clusters);
  fill_params(&launch, entry, request->arguments);
  launch.undefined_reported = host_allocate(program->count, 1);
  if (launch.record) step_launch_begins(&launch);
  launch_run(&launch, clusters, launch_resident_clusters(&launch));
  if (launch.record) step_launch_ends(&launch);
  free(launch.params);
  free(launch.undefined_reported);
  if (!launch.stopped) return EMULATOR_OK;
  hazards_stop_reason(&emulator->hazards, entry->name, error);
  return EMULATOR_FAULT;
}

// ---- the limits of a launch ----

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

// ---- a kernel's parameters and resources ----

// Parameters follow each other, each aligned as it is declared: as in the buffer that a driver takes. index may be the
// number of parameters: then it is the size of all.
static size_t parameter_offset(const PtxFunction *entry, int index) {
  size_t offset = 0;
  for (int i = 0; i <= index && i < entry->param_count; i++) {
    size_t alignment = entry->params[i]->alignment ? entry->params[i]->alignment : 1;
    offset = (offset + alignment - 1) / alignment * alignment;
    if (i < index) offset += entry->params[i]->size;
  }
  return offset;
}

size_t emulator_parameter_offset(const EmulatorModule *module, const char *kernel, int index) {
  const PtxFunction *entry = module_entry(module, kernel);
  return entry && index >= 0 && index < entry->param_count ? parameter_offset(entry, index) : 0;
}

// Bytes of a module's constant variables, one after the other.
static size_t constant_bytes(const PtxModule *ptx) {
  size_t bytes = 0;
  for (int i = 0; i < ptx->variable_count; i++) {
    const PtxVariable *variable = ptx->variables[i];
    if (variable->space != PTX_CONST) continue;
    size_t alignment = variable->alignment ? variable->alignment : 1;
    bytes = (bytes + alignment - 1) / alignment * alignment + variable->size;
  }
  return bytes;
}

bool emulator_kernel(EmulatorModule *module, const char *kernel, EmulatorKernel *result) {
  const PtxFunction *entry = module_entry(module, kernel);
  if (!entry) return false;
  EmulatorError error;
  const Program *program = module_program(module, entry, &error);
  *result = (EmulatorKernel){.static_shared = program ? program->shared_size : 0,
                             .local = program ? program->local_size : 0,
                             .constants = constant_bytes(module->ptx),
                             .parameter_bytes = parameter_offset(entry, entry->param_count),
                             .max_registers = entry->max_registers,
                             .min_blocks = entry->min_blocks_per_sm};
  memcpy(result->max_threads, entry->max_threads, sizeof result->max_threads);
  memcpy(result->required_threads, entry->required_threads, sizeof result->required_threads);
  memcpy(result->required_cluster, entry->required_cluster, sizeof result->required_cluster);
  return true;
}
