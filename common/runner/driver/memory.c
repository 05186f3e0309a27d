// Memory: device memory has addresses of the emulator's own; managed and pinned memory is the host's, and kernels reach
// it by the host's address.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

static struct {
  Allocation *items;  // by address
  int count, capacity;
  uint64_t last_id;
  size_t used;  // bytes of device and managed memory
} allocations;

// ---- the table of allocations ----

// Index of the first allocation above the address.
static int above(uint64_t address) {
  int low = 0, high = allocations.count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (allocations.items[middle].base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Allocation *memory_at(uint64_t address) {
  int at = above(address) - 1;
  return at >= 0 && address - allocations.items[at].base < allocations.items[at].size ? &allocations.items[at] : NULL;
}

size_t memory_used(void) { return allocations.used; }

static bool is_device_kind(MemoryKind kind) { return kind == MEMORY_DEVICE || kind == MEMORY_MANAGED; }

static bool insert(Allocation allocation) {
  if (allocations.count == allocations.capacity) {
    int capacity = allocations.capacity ? 2 * allocations.capacity : 64;
    Allocation *items = realloc(allocations.items, (size_t)capacity * sizeof *items);
    if (!items) return false;
    allocations.items = items;
    allocations.capacity = capacity;
  }
  int at = above(allocation.base);
  memmove(allocations.items + at + 1, allocations.items + at,
          (size_t)(allocations.count - at) * sizeof *allocations.items);
  allocations.items[at] = allocation;
  allocations.items[at].id = ++allocations.last_id;
  allocations.count++;
  if (is_device_kind(allocation.kind)) allocations.used += allocation.size;
  return true;
}

static void drop_allocation(Allocation *allocation) {
  if (is_device_kind(allocation->kind)) allocations.used -= allocation->size;
  int at = (int)(allocation - allocations.items);
  allocations.count--;
  memmove(allocation, allocation + 1, (size_t)(allocations.count - at) * sizeof *allocation);
}

// ---- allocation ----

// The bytes that the machine can still allocate, from /proc/meminfo. What device memory has, and never touched, is
// taken, too.
static size_t host_memory(void) {
  size_t total = SIZE_MAX / 1024, available = SIZE_MAX / 1024;
  char line[128];
  FILE *file = fopen("/proc/meminfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    sscanf(line, "MemTotal: %zu", &total);
    sscanf(line, "MemAvailable: %zu", &available);
  }
  if (file) fclose(file);
  size_t left = total * 1024 > allocations.used ? total * 1024 - allocations.used : 0;
  return left < available * 1024 ? left : available * 1024;
}

static size_t whole_pages(size_t size) { return (size + 4095) / 4096 * 4096; }

static uint64_t allocate_on_host(size_t size) {
  void *memory = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  if (emulator_map(core.emulator, memory, size)) return (uint64_t)(uintptr_t)memory;
  munmap(memory, whole_pages(size));
  return 0;
}

CUresult memory_allocate(MemoryKind kind, size_t size, unsigned flags, uint64_t *address) {
  if (!address || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (is_device_kind(kind) && size > DEVICE_MEMORY - allocations.used) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t available = size >> 24 ? host_memory() : SIZE_MAX;
  if (size > available / 8 * 7) {
    core_say("an allocation of %zu MB: this machine has %zu MB left, and the emulator keeps device memory there",
             size >> 20, available >> 20);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = kind == MEMORY_DEVICE ? emulator_alloc(core.emulator, size) : allocate_on_host(size);
  if (!*address || !insert((Allocation){.base = *address, .size = size, .kind = kind, .flags = flags}))
    return CUDA_ERROR_OUT_OF_MEMORY;
  return CUDA_SUCCESS;
}

static void give_back(const Allocation *allocation) {
  void *memory = (void *)(uintptr_t)allocation->base;
  if (allocation->kind == MEMORY_DEVICE) {
    emulator_free(core.emulator, allocation->base);
    return;
  }
  emulator_unmap(core.emulator, memory);
  if (allocation->kind != MEMORY_REGISTERED) munmap(memory, whole_pages(allocation->size));
}

CUresult memory_release(uint64_t address, const char *function) {
  Allocation *allocation = memory_at(address);
  if (!allocation || allocation->base != address) {
    core_say("%s of 0x%llx: %s", function, (unsigned long long)address,
             allocation ? "inside an allocation, not its start" : "no allocation; freed twice?");
    return CUDA_ERROR_INVALID_VALUE;
  }
  give_back(allocation);
  drop_allocation(allocation);
  return CUDA_SUCCESS;
}

uint64_t memory_reserve(size_t size) {
  uint64_t address = emulator_alloc(core.emulator, size);
  if (address) emulator_free(core.emulator, address);
  return address;
}

CUresult memory_renew(uint64_t address, size_t size) {
  if (size > DEVICE_MEMORY - allocations.used || !emulator_renew(core.emulator, address))
    return CUDA_ERROR_OUT_OF_MEMORY;
  return insert((Allocation){.base = address, .size = size, .kind = MEMORY_DEVICE}) ? CUDA_SUCCESS
                                                                                    : CUDA_ERROR_OUT_OF_MEMORY;
}

void memory_free_all(void) {
  for (int i = 0; i < allocations.count; i++) give_back(&allocations.items[i]);
  allocations.count = 0;
  allocations.used = 0;
}

API(cuMemAlloc_v2, (CUdeviceptr * address, size_t size)) {
  ENTER();
  uint64_t result = 0;
  CUresult status = memory_allocate(MEMORY_DEVICE, size, 0, &result);
  if (status == CUDA_SUCCESS) *address = result;
  return status;
}

API(cuMemAllocManaged, (CUdeviceptr * address, size_t size, unsigned flags)) {
  ENTER();
  uint64_t result = 0;
  CUresult status = memory_allocate(MEMORY_MANAGED, size, flags, &result);
  if (status == CUDA_SUCCESS) *address = result;
  return status;
}

API(cuMemAllocPitch_v2, (CUdeviceptr * address, size_t *pitch, size_t width, size_t height, unsigned element)) {
  ENTER();
  (void)element;
  uint64_t result = 0;
  size_t bytes = (width + 511) / 512 * 512;
  if (width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult status = memory_allocate(MEMORY_DEVICE, bytes * height, 0, &result);
  if (status != CUDA_SUCCESS) return status;
  *address = result;
  *pitch = bytes;
  return CUDA_SUCCESS;
}

static bool frees_after_fault;

void hopper_run_free_after_fault(void) { frees_after_fault = true; }

API(cuMemFree_v2, (CUdeviceptr address)) {
  if (frees_after_fault && core.sticky != CUDA_SUCCESS) return CUDA_SUCCESS;
  ENTER();
  return address ? memory_release(address, "free") : CUDA_SUCCESS;
}

API(cuMemGetInfo_v2, (size_t * left, size_t *total)) {
  ENTER();
  if (left) *left = DEVICE_MEMORY - allocations.used;
  if (total) *total = DEVICE_MEMORY;
  return CUDA_SUCCESS;
}

// ---- pinned memory ----

API(cuMemHostAlloc, (void **pointer, size_t size, unsigned flags)) {
  ENTER();
  uint64_t result = 0;
  CUresult status = memory_allocate(MEMORY_HOST, size, flags | CU_MEMHOSTALLOC_DEVICEMAP, &result);
  if (status == CUDA_SUCCESS) *pointer = (void *)(uintptr_t)result;
  return status;
}

API(cuMemAllocHost_v2, (void **pointer, size_t size)) { return cuMemHostAlloc(pointer, size, 0); }

API(cuMemFreeHost, (void *pointer)) {
  ENTER();
  return pointer ? memory_release((uint64_t)(uintptr_t)pointer, "free") : CUDA_SUCCESS;
}

API(cuMemHostRegister_v2, (void *pointer, size_t size, unsigned flags)) {
  ENTER();
  if (!pointer || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!emulator_map(core.emulator, pointer, size)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  uint64_t base = (uint64_t)(uintptr_t)pointer;
  insert((Allocation){.base = base, .size = size, .kind = MEMORY_REGISTERED, .flags = flags});
  return CUDA_SUCCESS;
}

API(cuMemHostUnregister, (void *pointer)) {
  ENTER();
  Allocation *allocation = memory_at((uint64_t)(uintptr_t)pointer);
  if (!allocation || allocation->kind != MEMORY_REGISTERED) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return memory_release(allocation->base, "unregister");
}

API(cuMemHostGetDevicePointer_v2, (CUdeviceptr * address, void *pointer, unsigned flags)) {
  ENTER();
  (void)flags;
  if (!memory_at((uint64_t)(uintptr_t)pointer)) return CUDA_ERROR_INVALID_VALUE;
  *address = (CUdeviceptr)(uintptr_t)pointer;
  return CUDA_SUCCESS;
}

API(cuMemHostGetFlags, (unsigned *flags, void *pointer)) {
  ENTER();
  Allocation *allocation = memory_at((uint64_t)(uintptr_t)pointer);
  if (!allocation || allocation->kind != MEMORY_HOST) return CUDA_ERROR_INVALID_VALUE;
  *flags = allocation->flags;
  return CUDA_SUCCESS;
}

// ---- what an address is ----

API(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *size, CUdeviceptr address)) {
  ENTER();
  EmulatorRange range;
  Allocation *allocation = memory_at(address);
  if (allocation)
    range = (EmulatorRange){.base = allocation->base, .size = allocation->size};
  else if (!emulator_find(core.emulator, address, &range))
    return CUDA_ERROR_NOT_FOUND;
  if (base) *base = range.base;
  if (size) *size = range.size;
  return CUDA_SUCCESS;
}

static CUmemorytype memory_type_of(uint64_t address, const Allocation *allocation) {
  EmulatorRange range;
  if (allocation && allocation->kind != MEMORY_DEVICE && allocation->kind != MEMORY_MANAGED) return CU_MEMORYTYPE_HOST;
  bool variable = !allocation && emulator_find(core.emulator, address, &range) && range.name;
  return allocation || variable ? CU_MEMORYTYPE_DEVICE : (CUmemorytype)0;
}

// Writes one attribute; false when there is none such. data has the size that cuda.h names.
static CUresult pointer_attribute(void *data, CUpointer_attribute attribute, uint64_t address) {
  const Allocation *allocation = memory_at(address);
  CUmemorytype type = memory_type_of(address, allocation);
  if (!type && attribute != CU_POINTER_ATTRIBUTE_MAPPED) return CUDA_ERROR_INVALID_VALUE;
  bool of_host = allocation && allocation->kind != MEMORY_DEVICE;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = context_current(); break;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)data = type; break;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = address; break;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (!of_host) return CUDA_ERROR_INVALID_VALUE;
    *(void **)data = (void *)(uintptr_t)address;
    break;
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned *)data = 0; break;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)data = allocation ? allocation->id : 0; break;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)data = allocation && allocation->kind == MEMORY_MANAGED; break;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = 0; break;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = allocation ? allocation->base : address; break;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = allocation ? allocation->size : 0; break;
  case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)data = type != 0; break;
  default: return core_missing("this attribute of cuPointerGetAttribute");
  }
  return CUDA_SUCCESS;
}

API(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr address)) {
  ENTER();
  return data ? pointer_attribute(data, attribute, address) : CUDA_ERROR_INVALID_VALUE;
}

API(cuPointerGetAttributes, (unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)) {
  ENTER();
  for (unsigned i = 0; i < count; i++)
    if (pointer_attribute(data[i], attributes[i], address) == CUDA_ERROR_INVALID_VALUE) memset(data[i], 0, 4);
  return CUDA_SUCCESS;
}

API(cuPointerSetAttribute, (const void *value, CUpointer_attribute attribute, CUdeviceptr address)) {
  ENTER();
  (void)value, (void)attribute;
  return memory_at(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- hints for managed memory, which moves nowhere ----

// Memory may be hinted to be near a device, or near the host, which is CU_DEVICE_CPU.
static CUresult hint(uint64_t address, CUmemLocation near) {
  EmulatorRange range;
  if (near.type == CU_MEM_LOCATION_TYPE_DEVICE && near.id != CU_DEVICE_CPU && core_device(near.id) != CUDA_SUCCESS)
    return CUDA_ERROR_INVALID_DEVICE;
  return memory_at(address) || emulator_find(core.emulator, address, &range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUmemLocation location_of(CUdevice device) { return (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device}; }

#undef cuMemAdvise
CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device) {
  ENTER();
  (void)size, (void)advice;
  return hint(address, location_of(device));
}

API(cuMemAdvise_v2, (CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)) {
  ENTER();
  (void)size, (void)advice;
  return hint(address, location);
}

API(cuMemPrefetchAsync, (CUdeviceptr address, size_t size, CUdevice device, CUstream stream)) {
  ENTER();
  (void)size, (void)stream;
  return hint(address, location_of(device));
}

API(cuMemPrefetchAsync_v2,
    (CUdeviceptr address, size_t size, CUmemLocation location, unsigned flags, CUstream stream)) {
  ENTER();
  (void)size, (void)flags, (void)stream;
  return hint(address, location);
}

API(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr address, size_t size, unsigned flags)) {
  ENTER();
  (void)stream, (void)size, (void)flags;
  return hint(address, location_of(0));
}
