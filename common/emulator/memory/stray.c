// An address of global memory where there is nothing: see stray.h.
#include "stray.h"

#include <stdio.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "../report/variables.h"

// ---- distances ----

// "1 byte", "280 bytes", "2^31 bytes" from a mebibyte on.
typedef struct BytesText {
  char text[40];
} BytesText;

static BytesText bytes_text(uint64_t bytes) {
  BytesText text;
  if (bytes >= 1 << 20 && (bytes & (bytes - 1)) == 0)
    snprintf(text.text, sizeof text.text, "2^%d bytes", __builtin_ctzll(bytes));
  else
    snprintf(text.text, sizeof text.text, "%llu byte%s", (unsigned long long)bytes, bytes == 1 ? "" : "s");
  return text;
}

static const char *name_of(const Region *region) { return region->name ? region->name : "an allocation"; }

// ---- an index of 32 bits ----

// An index of 2^31 or more is taken for a negative one, 2^32 less, where a program computes it in 32 bits. So an
// element of so many bytes at the index lies 2^32 elements, perhaps some times, behind the address.
typedef struct Wrapped {
  const Region *region;  // NULL: none
  int element;           // bytes
  uint64_t distance;     // bytes from the address to where it should be
} Wrapped;

static Wrapped find_wrapped(const RegionTable *table, uint64_t address, int size) {
  enum { MOST_TIMES = 4, MOST_ELEMENT = 16 };
  for (uint64_t times = 1; times <= MOST_TIMES; times++)
    for (int element = 1; element <= MOST_ELEMENT; element *= 2) {
      uint64_t distance = (times << 32) * (uint64_t)element, least = (uint64_t)element << 31;
      const Region *region = region_find(table, address + distance, NULL);
      if (!region || address >= region->base || region->size - (address + distance - region->base) < (uint64_t)size)
        continue;
      bool is_far = region->base - address >= least >> 7;  // a small negative index is a mistake of another kind
      if (is_far && address + distance - region->base >= least) return (Wrapped){region, element, distance};
    }
  return (Wrapped){NULL, 0, 0};
}

static StrayText wrapped_text(const Wrapped *wrapped, uint64_t address) {
  StrayText text;
  const Region *region = wrapped->region;
  snprintf(
      text.text, sizeof text.text,
      "%s before %s of %llu bytes, and exactly %s before its byte %llu\n"
      "The offset seems to be computed in 32 bits, and has wrapped: cast a factor to 64 bits (size_t, int64_t) before "
      "the multiplication.",
      bytes_text(region->base - address).text, name_of(region), (unsigned long long)region->size,
      bytes_text(wrapped->distance).text, (unsigned long long)(address + wrapped->distance - region->base));
  return text;
}

// An index of 32 bits without a sign, such as i - 1 for i = 0, is 2^32 elements too large if it was below zero. So the
// address without these elements lies a little before an allocation.
static StrayText below_zero_text(const RegionTable *table, uint64_t address) {
  enum { NEAR = 4096, MOST_ELEMENT = 16 };
  StrayText text = {""};
  for (uint64_t element = 1; element <= MOST_ELEMENT; element *= 2) {
    uint64_t meant = address - (element << 32);
    const Region *next = region_find(table, meant + NEAR, NULL);
    if (!next || next->base <= meant) continue;
    snprintf(
        text.text, sizeof text.text,
        "exactly %s behind a place that is %s before %s of %llu bytes\nA 32-bit index without a sign seems to have "
        "gone below zero (0u - 1): check it before the subtraction, or compute it with a sign.",
        bytes_text(element << 32).text, bytes_text(next->base - meant).text, name_of(next),
        (unsigned long long)next->size);
    return text;
  }
  return text;
}

// ---- pointers that are none ----

// Whether the host has memory there, where it can be asked. What it has near an allocation that it shares with kernels,
// an index reaches that is too large.
static bool is_of_host(uint64_t address, const Region *near) {
  enum { NEAR = 1 << 20 };
  if (near && near->is_host && address + NEAR > near->base && address < near->base + near->size + NEAR) return false;
#ifdef __linux__
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  unsigned char resident;
  return address < 1ull << 47 && mincore((void *)(uintptr_t)(address / page * page), 1, &resident) == 0;
#else
  return false;
#endif
}

// Below the windows of generic addresses, where neither the host nor the device has memory.
static bool is_near_null(uint64_t address) { return address < 1ull << 40 || address > UINT64_MAX - (1ull << 40); }

// What the address would be in shared memory, if a generic address has been expected where it is none.
static VariableText as_shared(const Launch *launch, uint64_t address, int size) {
  uint64_t blocks = (uint64_t)launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
  if (address >> SHARED_RANK_SHIFT > blocks) return (VariableText){""};
  return shared_bytes_text(launch, address & ((1ull << SHARED_RANK_SHIFT) - 1), size);
}

static StrayText null_text(const Launch *launch, uint64_t address, int size) {
  StrayText text;
  VariableText shared = as_shared(launch, address, size);
  bool behind = address < 1ull << 40;
  char scaled[40] = "";
  uint64_t distance = behind ? address : -address;
  if (distance >> 30 && distance % (1ull << 30) == 0)
    snprintf(scaled, sizeof scaled, "%llu GiB", (unsigned long long)(distance >> 30));
  if (address == 0)
    snprintf(text.text, sizeof text.text,
             "a null pointer\nGive the kernel the address of an allocation: was it allocated, and did the allocation "
             "succeed?");
  else
    snprintf(text.text, sizeof text.text,
             "%s %s a null pointer\nThe pointer is null, and the access adds an offset: was it allocated, and did the "
             "allocation succeed?",
             *scaled ? scaled : bytes_text(distance).text, behind ? "behind" : "before");
  if (*shared.text) {
    size_t used = strlen(text.text);
    snprintf(
        text.text + used, sizeof text.text - used,
        " Or it is an address of shared memory, %s, as __cvta_generic_to_shared gives it: that is for instructions "
        "with .shared, and not a generic address.",
        shared.text);
  }
  return text;
}

// ---- the text ----

static StrayText beside_text(uint64_t address, const Region *near) {
  StrayText text;
  const char *name = name_of(near);
  unsigned long long bytes = near->size;
  uint64_t end = near->base + near->size;
  if (near->freed && address - near->base < near->size)
    snprintf(text.text, sizeof text.text,
             "inside an allocation of %llu bytes that was freed\nFree the memory after the kernels that use it, or "
             "allocate it again before.",
             bytes);
  else if (address < near->base)
    snprintf(text.text, sizeof text.text,
             "%s before %s of %llu bytes\nCheck the index against 0: it is negative, or the pointer is another's.",
             bytes_text(near->base - address).text, name, bytes);
  else if (address - end >= 1ull << 31 && address >= end)
    snprintf(text.text, sizeof text.text,
             "%s from the start of %s of %llu bytes\nNo allocation is near: check the pointer itself, and whether the "
             "index or the stride is garbage.",
             bytes_text(address - near->base).text, name, bytes);
  else
    snprintf(
        text.text, sizeof text.text,
        "%llu bytes from the start of %s of %llu bytes\nCheck the index against the size of the array, and mask the "
        "tail of the last tile.",
        (unsigned long long)(address - near->base), name, bytes);
  return text;
}

StrayText stray_text(const Launch *launch, uint64_t address, int size, const Region *near) {
  StrayText text;
  if (is_near_null(address)) return null_text(launch, address, size);
  if (near && near->freed && address - near->base < near->size) return beside_text(address, near);
  Wrapped wrapped = find_wrapped(launch->global, address, size);
  if (wrapped.region) return wrapped_text(&wrapped, address);
  if (near && address - near->base < near->size) return beside_text(address, near);
  text = below_zero_text(launch->global, address);
  if (*text.text) return text;
  if (is_of_host(address, near)) {
    snprintf(text.text, sizeof text.text,
             "an address of the host's own memory (malloc, new, a variable), which a kernel cannot reach\nAllocate the "
             "memory with cudaMalloc or cudaMallocManaged, and copy what the host has there.");
    return text;
  }
  if (near) return beside_text(address, near);
  snprintf(
      text.text, sizeof text.text,
      "no memory was ever allocated there\nCheck the pointer: does the kernel get its arguments in their order, and "
      "was the memory allocated?");
  return text;
}
