// The emulator's public interface: its life and its memory. Modules and launches are in module.c and launch.c, hazards
// and counters in their files.
#include "../emulator.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "module.h"
#include "state.h"

Emulator *emulator_open(const EmulatorOptions *options) {
  if (options->tunes_malloc) host_keep_memory();
  Emulator *emulator = host_allocate(1, sizeof *emulator);
  emulator->options = *options;
  if (options->steps > 0) {
    emulator->options.fair = true;
    emulator->options.threads = 1;
    emulator->steps = (StepRecord){.most = options->steps, .values_of = options->values_of, .complete = true};
  }
  emulator->global.next_base = GLOBAL_WINDOW;
  emulator->global.usage = &emulator->usage;
  emulator->global.heap_size = 8 << 20;  // as of CUDA's cudaLimitMallocHeapSize
  pthread_mutex_init(&emulator->hazards.lock, NULL);
  return emulator;
}

void emulator_close(Emulator *emulator) {
  if (!emulator) return;
  overlap_forget(&emulator->history, NULL);
  for (EmulatorModule *module = emulator->modules, *next; module; module = next) {
    next = module->next;
    module_free(module);
  }
  region_table_destroy(&emulator->global);
  hazards_free(&emulator->hazards);
  free(emulator->lines.items);
  step_record_free(&emulator->steps);
  pthread_mutex_destroy(&emulator->hazards.lock);
  free(emulator);
}

// ---- steps ----

const EmulatorStep *emulator_steps(const Emulator *emulator, int *count, bool *complete) {
  *count = emulator->steps.count;
  *complete = emulator->steps.complete;
  return emulator->steps.steps;
}

const char *emulator_step_file(const Emulator *emulator, int number) {
  return number >= 0 && number < emulator->steps.file_count ? emulator->steps.files[number] : NULL;
}

// ---- memory ----

uint64_t emulator_alloc(Emulator *emulator, size_t size) {
  if (size == 0) return 0;
  Region *region = region_add(&emulator->global, REGION_GLOBAL, size, emulator->options.hazards);
  return region ? region->base : 0;
}

bool emulator_free(Emulator *emulator, uint64_t address) {
  Region *region = region_find(&emulator->global, address, NULL);
  if (!region || region->base != address || region->name || region->is_host || region->is_heap) return false;
  region_destroy(region);
  region->freed = true;
  return true;
}

bool emulator_renew(Emulator *emulator, uint64_t address) {
  return region_renew(&emulator->global, address, emulator->options.hazards) != NULL;
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

size_t emulator_written(const Emulator *emulator, uint64_t address, size_t size) {
  uint64_t offset;
  const Region *region = range(emulator, address, size, &offset);
  if (!region || !region->shadow.pages) return size;
  const uint32_t next = emulator->launches + 1;  // to it all launches so far are the host
  for (size_t done = 0, run; done < size; done += run) {
    Cell cell;
    size_t part = size - done < INT_MAX ? size - done : INT_MAX;
    run = (size_t)shadow_run(&region->shadow, offset + done, (int)part, next, &cell);
    if (cell.write == EPOCH_NONE) return done;
  }
  return size;
}

bool emulator_fill(Emulator *emulator, uint64_t address, uint8_t byte, size_t size) {
  uint64_t offset;
  Region *region = range(emulator, address, size, &offset);
  if (!region) return false;
  memset(region->data + offset, byte, size);
  region_host_write(region, offset, size);
  return true;
}

bool emulator_map(Emulator *emulator, void *memory, size_t size) {
  return size > 0 && region_map(&emulator->global, memory, size, emulator->options.hazards) != NULL;
}

bool emulator_unmap(Emulator *emulator, void *memory) {
  Region *region = region_find(&emulator->global, (uint64_t)(uintptr_t)memory, NULL);
  if (!region || !region->borrowed || (uint64_t)(uintptr_t)memory - region->base >= SHADOW_PAGE) return false;
  region_destroy(region);
  region->freed = true;
  return true;
}

void emulator_set_heap(Emulator *emulator, size_t bytes) { emulator->global.heap_size = bytes; }

bool emulator_find(const Emulator *emulator, uint64_t address, EmulatorRange *range) {
  const Region *region = region_find(&emulator->global, address, NULL);
  if (!region) return false;
  *range = (EmulatorRange){region->base, region->size, region->name, region->is_host};
  return true;
}

bool emulator_owns(const Emulator *emulator, uint64_t address) {
  return address >= GLOBAL_WINDOW && address < emulator->global.next_base;
}

EmulatorMemory emulator_memory(const Emulator *emulator) {
  const RegionUsage *usage = &emulator->usage;
  return (EmulatorMemory){usage_most(&usage->data), usage_most(&usage->shadow), emulator->most_order};
}

uint32_t emulator_last_launch(const Emulator *emulator) { return emulator->launches; }

// ---- hazards ----

const Hazard *emulator_hazards(const Emulator *emulator, int *count) {
  return hazards_sorted((HazardList *)&emulator->hazards, count);
}

void emulator_clear_hazards(Emulator *emulator) { hazards_clear(&emulator->hazards); }
