// The emulator's public interface: memory and modules. Launches are in launch.c, hazards and counters in their files.
#include "../emulator.h"

#include <stdlib.h>
#include <string.h>

#include "../warp/host_memory.h"
#include "decode.h"
#include "state.h"
#include "target.h"

Emulator *emulator_open(const EmulatorOptions *options) {
  Emulator *emulator = host_allocate(1, sizeof *emulator);
  emulator->options = *options;
  emulator->global.next_base = GLOBAL_WINDOW;
  emulator->global.usage = &emulator->usage;
  pthread_mutex_init(&emulator->hazards.lock, NULL);
  return emulator;
}

static void module_free(EmulatorModule *module) {
  for (int i = 0; i < module->program_count; i++) program_free(module->programs[i]);
  free(module->programs);
  free(module->variables);
  ptx_free(module->ptx);
  free(module);
}

void emulator_close(Emulator *emulator) {
  if (!emulator) return;
  for (EmulatorModule *module = emulator->modules, *next; module; module = next) {
    next = module->next;
    module_free(module);
  }
  region_table_destroy(&emulator->global);
  hazards_free(&emulator->hazards);
  free(emulator->lines.items);
  pthread_mutex_destroy(&emulator->hazards.lock);
  free(emulator);
}

// ---- memory ----

uint64_t emulator_alloc(Emulator *emulator, size_t size) {
  if (size == 0) return 0;
  Region *region = region_add(&emulator->global, REGION_GLOBAL, size, emulator->options.hazards);
  return region ? region->base : 0;
}

bool emulator_free(Emulator *emulator, uint64_t address) {
  Region *region = region_find(&emulator->global, address, NULL);
  if (!region || region->base != address || region->name) return false;
  region_destroy(region);
  region->freed = true;
  return true;
}

// The region that holds the whole range, or NULL.
static Region *range(const Emulator *emulator, uint64_t address, size_t size, uint64_t *offset) {
  Region *region = region_find(&emulator->global, address, NULL);
  if (!region) return NULL;
  *offset = address - region->base;
  return region->size - *offset >= size ? region : NULL;
}

bool emulator_write(Emulator *emulator, uint64_t address, const void *source, size_t size) {
  uint64_t offset;
  Region *region = range(emulator, address, size, &offset);
  if (!region) return false;
  memcpy(region->data + offset, source, size);
  region_host_write(region, offset, size);
  return true;
}

bool emulator_read(Emulator *emulator, void *destination, uint64_t address, size_t size) {
  uint64_t offset;
  const Region *region = range(emulator, address, size, &offset);
  if (!region) return false;
  memcpy(destination, region->data + offset, size);
  return true;
}

bool emulator_fill(Emulator *emulator, uint64_t address, uint8_t byte, size_t size) {
  uint64_t offset;
  Region *region = range(emulator, address, size, &offset);
  if (!region) return false;
  memset(region->data + offset, byte, size);
  region_host_write(region, offset, size);
  return true;
}

EmulatorMemory emulator_memory(const Emulator *emulator) {
  const RegionUsage *usage = &emulator->usage;
  return (EmulatorMemory){usage_most(&usage->data), usage_most(&usage->shadow), emulator->most_order};
}

// ---- hazards ----

const Hazard *emulator_hazards(const Emulator *emulator, int *count) {
  return hazards_sorted((HazardList *)&emulator->hazards, count);
}

void emulator_clear_hazards(Emulator *emulator) { hazards_clear(&emulator->hazards); }

// ---- modules ----

// What all global and constant variables of a module may need together: each byte costs one of the host's, and about five
// more of shadow when a kernel touches it.
enum { MAX_VARIABLE_BYTES = 256 << 20 };

static bool check_variables(const PtxModule *ptx, EmulatorError *error) {
  uint64_t left = MAX_VARIABLE_BYTES;
  for (int i = 0; i < ptx->variable_count; i++) {
    const PtxVariable *variable = ptx->variables[i];
    if (variable->space != PTX_GLOBAL && variable->space != PTX_CONST) continue;
    if (variable->size > left) {
      error->line = variable->line;
      snprintf(error->message, sizeof error->message, "the variables of a module have at most %d bytes, %s goes beyond",
               MAX_VARIABLE_BYTES, variable->name);
      return false;
    }
    left -= variable->size;
  }
  return true;
}

// Gives a module's global and constant variables their memory.
static bool place_variables(Emulator *emulator, EmulatorModule *module, EmulatorError *error) {
  const PtxModule *ptx = module->ptx;
  module->variables = host_allocate((size_t)ptx->variable_count + 1, sizeof(Place));
  for (int i = 0; i < ptx->variable_count; i++) {
    const PtxVariable *variable = ptx->variables[i];
    Place *place = &module->variables[module->variable_count++];
    place->variable = variable;
    if (variable->space != PTX_GLOBAL && variable->space != PTX_CONST) continue;
    Region *region = variable->is_extern
                         ? NULL
                         : region_add(&emulator->global, variable->space == PTX_CONST ? REGION_CONST : REGION_GLOBAL,
                                      variable->size ? variable->size : 1, emulator->options.hazards);
    if (!region) {
      error->line = variable->line;
      snprintf(error->message, sizeof error->message,
               variable->is_extern ? "%s is defined nowhere" : "no memory for %s", variable->name);
      return false;
    }
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

// Takes back the memory of a module that turned out malformed.
static void forget_variables(Emulator *emulator, const EmulatorModule *module) {
  for (int i = 0; i < module->variable_count; i++) {
    Region *region =
        module->variables[i].address ? region_find(&emulator->global, module->variables[i].address, NULL) : NULL;
    if (!region) continue;
    region_destroy(region);
    region->freed = true;
    region->name = NULL;
  }
}

static bool symbol_address(const EmulatorModule *module, const char *name, uint64_t *address) {
  for (int i = 0; i < module->variable_count; i++)
    if (!strcmp(module->variables[i].variable->name, name)) {
      *address = module->variables[i].address;
      return true;
    }
  const PtxFunction *function = module_definition(module->ptx, name);
  *address = function ? FUNCTION_WINDOW + (uint64_t)function->index : 0;
  return function != NULL;
}

// Writes the addresses that initializers name.
static bool relocate(Emulator *emulator, const EmulatorModule *module, EmulatorError *error) {
  for (int i = 0; i < module->variable_count; i++) {
    const PtxVariable *variable = module->variables[i].variable;
    for (int r = 0; r < variable->relocation_count; r++) {
      const PtxRelocation *relocation = &variable->relocations[r];
      uint64_t address, offset;
      Region *region = range(emulator, module->variables[i].address, variable->size, &offset);
      uint64_t width = (uint64_t)relocation->size;
      if (!region || !symbol_address(module, relocation->symbol, &address) || relocation->offset > variable->size ||
          variable->size - relocation->offset < width) {
        error->line = variable->line;
        snprintf(error->message, sizeof error->message, "%s is initialised with the unknown address of %s",
                 variable->name, relocation->symbol);
        return false;
      }
      address = (address + (uint64_t)relocation->addend) >> relocation->shift;
      memcpy(region->data + relocation->offset, &address, width);
    }
  }
  return true;
}

static bool decode_entries(EmulatorModule *module, EmulatorError *error) {
  const PtxModule *ptx = module->ptx;
  module->programs = host_allocate((size_t)ptx->function_count + 1, sizeof *module->programs);
  for (int i = 0; i < ptx->function_count; i++) {
    const PtxFunction *function = &ptx->functions[i];
    if (!function->is_entry || function->is_declaration) continue;
    Program *program = program_decode(ptx, function, module->variables, module->variable_count, error);
    if (!program) return false;
    module->programs[module->program_count++] = program;
  }
  return true;
}

EmulatorModule *emulator_load(Emulator *emulator, const char *text, size_t length, EmulatorError *error) {
  PtxError syntax = {0};
  *error = (EmulatorError){0};
  PtxModule *ptx = ptx_parse(text, length, &syntax);
  if (!ptx) {
    error->line = syntax.line;
    snprintf(error->message, sizeof error->message, "%s", syntax.message);
    return NULL;
  }
  EmulatorModule *module = host_allocate(1, sizeof *module);
  module->ptx = ptx;
  if (target_check(ptx, error) && check_variables(ptx, error) && place_variables(emulator, module, error) &&
      relocate(emulator, module, error) && decode_entries(module, error)) {
    module->next = emulator->modules;
    emulator->modules = module;
    return module;
  }
  forget_variables(emulator, module);
  module_free(module);
  return NULL;
}
