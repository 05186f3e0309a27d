// What the PTX says of a module's kernels.
#include <string.h>

#include "state.h"

static const Program *find(const EmulatorModule *module, const char *kernel) {
  for (int i = 0; i < module->program_count; i++)
    if (!strcmp(module->programs[i]->functions[0].ptx->name, kernel)) return module->programs[i];
  return NULL;
}

bool emulator_kernel(const EmulatorModule *module, const char *kernel, EmulatorKernel *result) {
  const Program *program = find(module, kernel);
  if (!program) return false;
  const PtxFunction *entry = program->functions[0].ptx;
  *result = (EmulatorKernel){.static_shared = program->shared_size,
                             .local = program->local_size,
                             .parameter_bytes = program->param_size,
                             .max_registers = entry->max_registers,
                             .min_blocks = entry->min_blocks_per_sm};
  memcpy(result->max_threads, entry->max_threads, sizeof result->max_threads);
  memcpy(result->required_threads, entry->required_threads, sizeof result->required_threads);
  memcpy(result->required_cluster, entry->required_cluster, sizeof result->required_cluster);
  return true;
}

size_t emulator_parameter_offset(const EmulatorModule *module, const char *kernel, int index) {
  const Program *program = find(module, kernel);
  return program && index >= 0 && index < program->functions[0].ptx->param_count
             ? program->functions[0].places[index].address
             : 0;
}
