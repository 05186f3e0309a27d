// Facts about a kernel that need no launch: its parameters and resources.
#include <string.h>

#include "module.h"

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

bool emulator_kernel(EmulatorModule *module, const char *kernel, EmulatorKernel *result) {
  const PtxFunction *entry = module_entry(module, kernel);
  if (!entry) return false;
  EmulatorError error;
  const Program *program = module_program(module, entry, &error);
  *result = (EmulatorKernel){.static_shared = program ? program->shared_size : 0,
                             .local = program ? program->local_size : 0,
                             .parameter_bytes = parameter_offset(entry, entry->param_count),
                             .max_registers = entry->max_registers,
                             .min_blocks = entry->min_blocks_per_sm};
  memcpy(result->max_threads, entry->max_threads, sizeof result->max_threads);
  memcpy(result->required_threads, entry->required_threads, sizeof result->required_threads);
  memcpy(result->required_cluster, entry->required_cluster, sizeof result->required_cluster);
  return true;
}
