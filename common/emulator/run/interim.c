// Until the branch "launch" is merged: what it adds, as far as the runner needs it.
#include <string.h>
#include "state.h"

static const PtxFunction *entry_of(const EmulatorModule *module, const char *kernel) {
  for (int i = 0; i < module->program_count; i++)
    if (!strcmp(module->programs[i]->functions[0].ptx->name, kernel)) return module->programs[i]->functions[0].ptx;
  return NULL;
}

int emulator_parameter_count(const EmulatorModule *module, const char *kernel) {
  const PtxFunction *entry = entry_of(module, kernel);
  return entry ? entry->param_count : -1;
}

size_t emulator_parameter_size(const EmulatorModule *module, const char *kernel, int index) {
  const PtxFunction *entry = entry_of(module, kernel);
  return entry && index >= 0 && index < entry->param_count ? entry->params[index]->size : 0;
}

const char *emulator_kernel_name(const EmulatorModule *module, int index) {
  return index < module->program_count ? module->programs[index]->functions[0].ptx->name : NULL;
}

bool emulator_symbol(const EmulatorModule *module, const char *name, uint64_t *address, size_t *size) {
  for (int i = 0; i < module->variable_count; i++) {
    const PtxVariable *variable = module->variables[i].variable;
    if (strcmp(variable->name, name) || !module->variables[i].address) continue;
    if (address) *address = module->variables[i].address;
    if (size) *size = variable->size;
    return true;
  }
  return false;
}
