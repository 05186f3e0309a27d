// A launch: checks what is asked for, and has it run.
#include <stdlib.h>
#include <string.h>

#include "../async/async.h"
#include "../check/epoch.h"
#include "../warp/host_memory.h"
#include "limits.h"
#include "module.h"
#include "workers.h"

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
static uint32_t count_clusters(const Launch *launch, EpochLayout *epochs, EmulatorError *error) {
  uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  uint64_t cluster_blocks = (uint64_t)launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
  uint64_t block_threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
  uint64_t cluster_threads = cluster_blocks * ((block_threads + LANES - 1) / LANES * LANES) + ASYNC_AGENTS;
  uint64_t clusters = blocks / cluster_blocks;
  if (!launch->hazards || epoch_layout(epochs, clusters, cluster_threads, launch->program->count))
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

  EpochLayout epochs = {0};
  Launch launch = {.emulator = emulator,
                   .global = &emulator->global,
                   .hazard_list = &emulator->hazards,
                   .program = program,
                   .epochs = &epochs,
                   .hazards = emulator->options.hazards,
                   .lane_by_lane = emulator->lane_by_lane,
                   .schedule = emulator->options.schedule,
                   .step_limit = emulator->options.step_limit};
  fill_shape(&launch, entry, request);
  if (launch_check(&launch, error) != EMULATOR_OK) return EMULATOR_INVALID;
  uint32_t clusters = count_clusters(&launch, &epochs, error);
  if (!clusters) return EMULATOR_INVALID;
  if (!provide_workspace(&launch)) return launch_invalid(error, "%s: no memory for grid.sync()", entry->name);

  launch.number = ++emulator->launches;
  overlap_begin(&launch, &emulator->history, request->prerequisite, clusters);
  fill_params(&launch, entry, request->arguments);
  launch.undefined_reported = host_allocate(program->count, 1);
  launch_run(&launch, clusters, launch_resident_clusters(&launch));
  free(launch.params);
  free(launch.undefined_reported);
  if (!launch.stopped) return EMULATOR_OK;
  hazards_stop_reason(&emulator->hazards, entry->name, error);
  return EMULATOR_FAULT;
}
