// Modules: PTX text, memory for its variables, and the programs of its kernels.
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "state.h"

// ---- variables ----

// What all global and constant variables of a module may need together: each byte costs one of the host's, and about
// five more of shadow when a kernel touches it.
enum { MAX_VARIABLE_BYTES = 256 << 20 };

static bool has_address(const PtxVariable *variable) {
  return variable->space == PTX_GLOBAL || variable->space == PTX_CONST;
}

static bool check_variables(const PtxModule *ptx, EmulatorError *error) {
  uint64_t left = MAX_VARIABLE_BYTES;
  for (int i = 0; i < ptx->variable_count; i++) {
    const PtxVariable *variable = ptx->variables[i];
    if (!has_address(variable)) continue;
    if (variable->size > left)
      return run_fail(error, variable->line, "the variables of a module have at most %d bytes, %s goes beyond",
                      MAX_VARIABLE_BYTES, variable->name);
    left -= variable->size;
  }
  return true;
}

static Region *variable_region(const EmulatorModule *module, const Place *place) {
  return place->address ? region_find(&module->emulator->global, place->address, NULL) : NULL;
}

// Gives a module's global and constant variables their memory.
static bool place_module_variables(EmulatorModule *module, EmulatorError *error) {
  const PtxModule *ptx = module->ptx;
  Emulator *emulator = module->emulator;
  module->variables = host_allocate((size_t)ptx->variable_count + 1, sizeof(Place));
  for (int i = 0; i < ptx->variable_count; i++) {
    const PtxVariable *variable = ptx->variables[i];
    Place *place = &module->variables[module->variable_count++];
    place->variable = variable;
    if (!has_address(variable)) continue;
    if (variable->is_extern) return run_fail(error, variable->line, "%s is defined nowhere", variable->name);
    uint64_t size = variable->size ? variable->size : 1;
    RegionKind kind = variable->space == PTX_CONST ? REGION_CONST : REGION_GLOBAL;
    Region *region = variable->is_managed ? region_add_shared(&emulator->global, size, emulator->options.hazards)
                                          : region_add(&emulator->global, kind, size, emulator->options.hazards);
    if (!region) return run_fail(error, variable->line, "no memory for %s", variable->name);
    region->name = variable->name;
    place->address = region->base;
    if (variable->initial)
      memcpy(region->data, variable->initial, variable->size);
    else
      memset(region->data, 0, variable->size);
    region_host_write(region, 0, variable->size);
  }
  return true;
}

// Takes back the memory of a module's variables. The regions stay as tombstones; keep_names: so do the texts they name.
static void free_variables(EmulatorModule *module, bool keep_names) {
  for (int i = 0; i < module->variable_count; i++) {
    Region *region = variable_region(module, &module->variables[i]);
    if (!region) continue;
    region_destroy(region);
    region->freed = true;
    if (!keep_names) region->name = NULL;
  }
  free(module->variables);
  module->variables = NULL;
  module->variable_count = 0;
}

static const Place *find_variable(const EmulatorModule *module, const char *name) {
  for (int i = 0; i < module->variable_count; i++)
    if (!strcmp(module->variables[i].variable->name, name)) return &module->variables[i];
  return NULL;
}

// What a relocation names. False when it has no address.
static bool symbol_address(const EmulatorModule *module, const PtxRelocation *relocation, uint64_t *address) {
  *address = FUNCTION_WINDOW + (uint64_t)relocation->function;
  for (int i = 0; i < module->variable_count && relocation->variable; i++)
    if (module->variables[i].variable == relocation->variable) {
      *address = module->variables[i].address;
      return true;
    }
  return !relocation->variable && relocation->function >= 0;
}

// Writes the addresses that initializers name.
static bool relocate(const EmulatorModule *module, EmulatorError *error) {
  for (int i = 0; i < module->variable_count; i++) {
    const PtxVariable *variable = module->variables[i].variable;
    for (int r = 0; r < variable->relocation_count; r++) {
      const PtxRelocation *relocation = &variable->relocations[r];
      uint64_t address, width = (uint64_t)relocation->size;
      Region *region = variable_region(module, &module->variables[i]);
      if (!region || !symbol_address(module, relocation, &address) || relocation->offset > variable->size ||
          variable->size - relocation->offset < width)
        return run_fail(error, variable->line, "%s is initialised with the unknown address of %s", variable->name,
                        relocation->symbol);
      address = (address + (uint64_t)relocation->addend) >> relocation->shift;
      memcpy(region->data + relocation->offset, &address, width);
    }
  }
  return true;
}

bool emulator_symbol(const EmulatorModule *module, const char *name, uint64_t *address, size_t *size) {
  const Place *place = find_variable(module, name);
  if (!place || !has_address(place->variable)) return false;
  if (address) *address = place->address;
  if (size) *size = place->variable->size;
  return true;
}

// ---- kernels ----

static bool is_kernel(const PtxFunction *function) { return function->is_entry && !function->is_declaration; }

const PtxFunction *module_entry(const EmulatorModule *module, const char *name) {
  const PtxFunction *function = module_definition(module->ptx, name);
  return function && function->is_entry ? function : NULL;
}

const Program *module_program(EmulatorModule *module, const PtxFunction *entry, EmulatorError *error) {
  Program **program = &module->programs[entry->index];
  if (!*program) *program = program_decode(module->ptx, entry, module->variables, module->variable_count, error);
  return *program;
}

const char *emulator_kernel_name(const EmulatorModule *module, int index) {
  const PtxModule *ptx = module->ptx;
  for (int i = 0; i < ptx->function_count; i++)
    if (is_kernel(&ptx->functions[i]) && index-- == 0) return ptx->functions[i].name;
  return NULL;
}

int emulator_parameter_count(const EmulatorModule *module, const char *kernel) {
  const PtxFunction *entry = module_entry(module, kernel);
  return entry ? entry->param_count : -1;
}

size_t emulator_parameter_size(const EmulatorModule *module, const char *kernel, int index) {
  const PtxFunction *entry = module_entry(module, kernel);
  return entry && index >= 0 && index < entry->param_count ? entry->params[index]->size : 0;
}

bool emulator_check(EmulatorModule *module, const char *kernel, EmulatorError *error) {
  *error = (EmulatorError){0};
  const PtxModule *ptx = module->ptx;
  for (int i = 0; i < ptx->function_count && !kernel; i++)
    if (is_kernel(&ptx->functions[i]) && !module_program(module, &ptx->functions[i], error)) return false;
  if (!kernel) return true;
  const PtxFunction *entry = module_entry(module, kernel);
  return entry ? module_program(module, entry, error) != NULL
               : run_fail(error, 0, "the module has no kernel %s", kernel);
}

// ---- the life of a module ----

static void free_programs(EmulatorModule *module) {
  overlap_forget(&module->emulator->history, module->ptx);
  for (int i = 0; module->programs && i < module->ptx->function_count; i++) program_free(module->programs[i]);
  free(module->programs);
  module->programs = NULL;
}

void module_free(EmulatorModule *module) {
  free_programs(module);
  free(module->variables);
  ptx_free(module->ptx);
  free(module);
}

static EmulatorModule *load_parsed(Emulator *emulator, PtxModule *ptx, const PtxError *syntax, EmulatorError *error) {
  *error = (EmulatorError){0};
  if (!ptx && syntax->out_of_memory) out_of_memory();
  if (!ptx) {
    run_fail(error, syntax->line, "%s", syntax->message);
    return NULL;
  }
  EmulatorModule *module = host_allocate(1, sizeof *module);
  module->emulator = emulator;
  module->ptx = ptx;
  module->programs = host_allocate((size_t)ptx->function_count + 1, sizeof *module->programs);
  if (target_check(ptx, error) && check_variables(ptx, error) && place_module_variables(module, error) &&
      relocate(module, error)) {
    module->next = emulator->modules;
    emulator->modules = module;
    return module;
  }
  free_variables(module, false);
  module_free(module);
  return NULL;
}

EmulatorModule *emulator_link(Emulator *emulator, const EmulatorText *texts, int count, EmulatorError *error) {
  PtxError syntax = {0};
  PtxText *ptx_texts = host_allocate((size_t)count + 1, sizeof *ptx_texts);
  for (int i = 0; i < count; i++) ptx_texts[i] = (PtxText){texts[i].ptx, texts[i].length};
  PtxModule *ptx = ptx_link(ptx_texts, count, &syntax);
  free(ptx_texts);
  return load_parsed(emulator, ptx, &syntax, error);
}

EmulatorModule *emulator_load(Emulator *emulator, const char *text, size_t length, EmulatorError *error) {
  PtxError syntax = {0};
  PtxModule *ptx = ptx_parse(text, length, &syntax);
  return load_parsed(emulator, ptx, &syntax, error);
}

EmulatorModule *emulator_load_assembled(Emulator *emulator, const char *text, size_t length, EmulatorError *error) {
  PtxError syntax = {0};
  PtxModule *ptx = ptx_parse_headers(text, length, &syntax);
  return load_parsed(emulator, ptx, &syntax, error);
}

// Reports and counters name lines of files that the text names: it stays until the emulator closes.
void emulator_unload(EmulatorModule *module) {
  if (!module) return;
  free_programs(module);
  free_variables(module, true);
}
