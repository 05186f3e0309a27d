// Address spaces: see memory.h.
#include "memory.h"

#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <stdio.h>

#include "../report/hazard.h"
#include "../report/source_line.h"
#include "../warp/machine.h"
#include "../warp/lanes.h"
#include "../warp/decoder.h"
#include "../warp/instruction.h"

// ---- finding the bytes ----

static bool out_of_bounds(Warp *warp, const Inst *inst, int lane, uint64_t address, int size, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

static bool out_of_bounds(Warp *warp, const Inst *inst, int lane, uint64_t address, int size, const char *format, ...) {
  char detail[HAZARD_DETAIL];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, size, "%s", detail);
  return false;
}

static bool global_out_of_bounds(Warp *warp, const Inst *inst, int lane, Space named, uint64_t address, int size,
                                 const Region *near) {
  // The generic address of such an instruction is its map's. Those of elements follow from the map.
  bool of_tensor = named == SPACE_GLOBAL && strstr(inst->row->name, ".bulk.tensor");
  StrayText text = stray_text(warp_launch(warp), address, size, near, of_tensor);
  return out_of_bounds(warp, inst, lane, address, size, "%s", text.text);
}

static bool find_global(Warp *warp, const Inst *inst, int lane, Space named, uint64_t address, int size,
                        AccessKind kind, Access *access) {
  Region *region = warp->last_region;
  if (!region || region->freed || address - region->base >= region->size) {
    const Region *near = NULL;
    region = region_find(warp_launch(warp)->global, address, &near);
    if (!region) return global_out_of_bounds(warp, inst, lane, named, address, size, near);
    warp->last_region = region;
  }
  uint64_t offset = address - region->base;
  if (region->size - offset < (uint64_t)size)
    return global_out_of_bounds(warp, inst, lane, named, address, size, region);
  if (region->kind == REGION_CONST && kind != ACCESS_READ)
    return out_of_bounds(warp, inst, lane, address, size,
                         "constant memory cannot be written\n"
                         "Store to global memory; only the host changes a __constant__ variable.");
  *access = (Access){region->data + offset, region, offset, NULL};
  return true;
}

static bool shared_out_of_bounds(Warp *warp, const Inst *inst, int lane, uint64_t address, long long offset, int size) {
  const Launch *launch = warp_launch(warp);
  const Place *from = shared_variable_of(launch->program, inst);
  NameText name = {"the array"};
  if (from) name = variable_name(from->variable);
  bool dynamic = !from || from->variable->is_extern;
  return out_of_bounds(
      warp, inst, lane, address, size,
      "byte %lld of a block's %llu bytes of shared memory\nCheck the index against the size of %s%s%s%s.", offset,
      (unsigned long long)launch->shared_size, from ? "`" : "", name.text, from ? "`" : "",
      dynamic ? ", and the launch's bytes of dynamic shared memory" : "");
}

// A lane is about to use another block's shared memory. All blocks of a cluster run at the same time, but they need not
// begin at the same time: the lane must have heard of the other one (CUDA C++ Programming Guide, "Distributed Shared
// Memory").
static void check_begun(Warp *warp, const Inst *inst, int lane, uint64_t address, int size, const Block *other) {
  const Clocks *known = warp->check.clocks ? warp->check.clocks[lane].known : NULL;
  if (!warp_launch(warp)->check.on || warp->block == other || warp->block->peers_have_begun) return;
  for (int t = 0; known && t < other->thread_count; t++)
    if (known->clock[other->rank * other->thread_count + t]) return;
  hazard_report(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, size,
                "the block of rank %d may not have begun, and has no shared memory before\n"
                "Put a cluster barrier (cluster.sync()) before the first access to another block's shared memory, for "
                "all blocks.",
                other->rank);
}

static bool find_shared(Warp *warp, const Inst *inst, int lane, uint64_t address, int size, Access *access) {
  Block *block = warp->block;
  uint64_t rank = address >> SHARED_RANK_SHIFT, offset = address & ((1u << SHARED_RANK_SHIFT) - 1);
  if (rank > (uint64_t)block->cluster->block_count)
    return out_of_bounds(warp, inst, lane, address, size,
                         "there is no block of rank %llu in a cluster of %d\n"
                         "Take the rank modulo the number of blocks of the cluster, or launch with a larger cluster.",
                         (unsigned long long)rank - 1, block->cluster->block_count);
  if (rank && block->cluster->blocks[rank - 1].live_threads == 0)
    return out_of_bounds(
        warp, inst, lane, address, size,
        "the block of rank %llu has exited, and its shared memory with it\n"
        "A block must stay until its peers have read: put a cluster barrier (cluster.sync()) after this "
        "access, before the end of the kernel, for all blocks.",
        (unsigned long long)rank - 1);
  if (rank) check_begun(warp, inst, lane, address, size, &block->cluster->blocks[rank - 1]);
  Region *shared = rank ? block->cluster->blocks[rank - 1].shared : block->shared;
  if (offset < shared->base || offset - shared->base > shared->size ||
      shared->size - (offset - shared->base) < (uint64_t)size)
    return shared_out_of_bounds(warp, inst, lane, address, (long long)offset - SHARED_BASE, size);
  offset -= shared->base;
  *access = (Access){shared->data + offset, shared, offset, NULL};
  return true;
}

static bool find_local(Warp *warp, const Inst *inst, int lane, uint64_t address, int size, Access *access) {
  uint64_t bytes = warp_launch(warp)->program->local_size;
  if (address >= bytes || bytes - address < (uint64_t)size)
    return out_of_bounds(warp, inst, lane, address, size,
                         "byte %llu of a thread's %llu bytes of local memory\n"
                         "Check the index against the size of the thread's own array.",
                         (unsigned long long)address, (unsigned long long)bytes);
  uint64_t offset = bytes * (uint64_t)lane + address;
  *access = (Access){warp->local + offset, NULL, 0, warp->local + bytes * LANES + offset};
  return true;
}

static bool find_param(Warp *warp, const Inst *inst, int lane, uint64_t address, int size, AccessKind kind,
                       Access *access) {
  const Launch *launch = warp_launch(warp);
  uint64_t bytes = launch->program->param_size;
  if (address >= bytes || bytes - address < (uint64_t)size)
    return out_of_bounds(warp, inst, lane, address, size,
                         "byte %llu of the kernel's %llu bytes of parameters\n"
                         "Check the index against the size of the parameter.",
                         (unsigned long long)address, (unsigned long long)bytes);
  if (kind != ACCESS_READ)
    return out_of_bounds(warp, inst, lane, address, size,
                         "a kernel's parameters cannot be written\n"
                         "Store to a copy of the parameter.");
  *access = (Access){launch->params + address, NULL, 0, NULL};
  return true;
}

// Strips a generic address of its window.
static Space resolve_generic(uint64_t *address) {
  uint64_t window = *address & ~WINDOW_MASK;
  Space space = window == SHARED_WINDOW  ? SPACE_SHARED
                : window == LOCAL_WINDOW ? SPACE_LOCAL
                : window == PARAM_WINDOW ? SPACE_PARAM
                                         : SPACE_GLOBAL;
  if (space != SPACE_GLOBAL) *address &= WINDOW_MASK;
  return space;
}

static void misaligned(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address, int size, int alignment) {
  const Launch *launch = warp_launch(warp);
  uint64_t bytes;
  bool shared = space == SPACE_SHARED || (space == SPACE_GENERIC && (address & ~WINDOW_MASK) == SHARED_WINDOW);
  uint64_t offset = address & ((1u << SHARED_RANK_SHIFT) - 1);
  const Place *in = shared ? shared_variable(launch, offset, &bytes) : NULL;
  char where[160] = "";
  if (in)
    snprintf(where, sizeof where, " `%s` begins at 0x%llx, and this is byte %llu of it.",
             variable_name(in->variable).text, (unsigned long long)in->address,
             (unsigned long long)(offset - in->address));
  hazard_stop(
      warp, inst, lane, HAZARD_MISALIGNED, address, size,
      "the address is not a multiple of %d\nAlign the array (alignas(%d)), and keep its rows and every offset to a "
      "multiple of %d bytes; or use narrower accesses.%s",
      alignment, alignment, alignment, where);
}

static bool reaches_atomically(Space space, AccessKind kind) {
  return space == SPACE_GLOBAL || (space == SPACE_SHARED && kind == ACCESS_ATOMIC);
}

bool memory_find(Warp *warp, const Inst *inst, int lane, Space space, uint64_t address, int size, int alignment,
                 AccessKind kind, Access *access) {
  if (address & (uint64_t)(alignment - 1)) {
    misaligned(warp, inst, lane, space, address, size, alignment);
    return false;
  }
  uint64_t generic = address;
  Space named = space;
  if (space == SPACE_GENERIC) space = resolve_generic(&address);
  if (kind >= ACCESS_ATOMIC && !reaches_atomically(space, kind))
    return out_of_bounds(warp, inst, lane, generic, size,
                         kind == ACCESS_ATOMIC ? "atomics reach global and shared memory only"
                                               : "atomics on vectors reach global memory only");
  switch (space) {
  case SPACE_SHARED: return find_shared(warp, inst, lane, address, size, access);
  case SPACE_LOCAL: return find_local(warp, inst, lane, address, size, access);
  case SPACE_PARAM: return find_param(warp, inst, lane, address, size, kind, access);
  default: return find_global(warp, inst, lane, named, address, size, kind, access);
  }
}

bool memory_peek(const Warp *warp, int lane, uint64_t address, void *bytes, size_t size) {
  Space space = resolve_generic(&address);
  const Launch *launch = warp_launch(warp);
  uint64_t local_size = launch->program->local_size;
  if (space == SPACE_GLOBAL) {
    const Region *region = region_find(launch->global, address, NULL);
    if (!region || region->size - (address - region->base) < size) return false;
    memcpy(bytes, region->data + (address - region->base), size);
    return true;
  }
  if (space != SPACE_LOCAL || address >= local_size || local_size - address < size) return false;
  memcpy(bytes, warp->local + local_size * (uint64_t)lane + address, size);
  return true;
}

// ---- locks of global memory ----
//
// A lock serves every 64th page of the shadow. An access of at most a page's size that is aligned to its own size is
// inside one page, so all that the shadow has of the page is covered too.

struct PageLock {
  _Alignas(64) atomic_flag flag;  // a cache line for each: host threads take different ones side by side
};

static PageLock page_locks[64];

// NULL for memory that one host thread alone uses.
static PageLock *lock_of(const Access *access) {
  const Region *region = access->region;
  if (!region || region->kind == REGION_SHARED) return NULL;
  return &page_locks[(region->base + access->offset) >> SHADOW_PAGE_SHIFT & 63];
}

static void take_lock(PageLock *lock) {
  for (int spins = 0; lock && atomic_flag_test_and_set_explicit(&lock->flag, memory_order_acquire); spins++)
    if (spins > 100) sched_yield();
}

static void give_lock(PageLock *lock) {
  if (lock) atomic_flag_clear_explicit(&lock->flag, memory_order_release);
}

void memory_lock(const Access *access) { take_lock(lock_of(access)); }

void memory_unlock(const Access *access) { give_lock(lock_of(access)); }

void memory_lock_next(PageLock **held, const Access *access) {
  PageLock *next = lock_of(access);
  if (next == *held) return;
  give_lock(*held);
  take_lock(next);
  *held = next;
}

void memory_unlock_last(PageLock **held) {
  give_lock(*held);
  *held = NULL;
}

// ---- what instructions say of memory ----

Space space_of(const PtxInstruction *source) {
  static const struct {
    const char *name;
    Space space;
  } spaces[] = {{"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
                {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
                {"local", SPACE_LOCAL},        {"const", SPACE_CONST},
                {"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},
                {"param::func", SPACE_PARAM}};
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    if (ptx_has(source, spaces[i].name)) return spaces[i].space;
  return SPACE_GENERIC;
}

Strength scope_of(const PtxInstruction *source) {
  return ptx_has(source, "cta") ? STRONG_CTA : ptx_has(source, "cluster") ? STRONG_CLUSTER : STRONG_GPU;
}

MemoryOrder order_of(const PtxInstruction *source) {
  if (ptx_has(source, "acq_rel")) return ORDER_ACQ_REL;
  if (ptx_has(source, "acquire")) return ORDER_ACQUIRE;
  if (ptx_has(source, "release")) return ORDER_RELEASE;
  bool strong = ptx_has(source, "relaxed") || ptx_has(source, "volatile") || ptx_has(source, "mmio");
  return strong ? ORDER_RELAXED : ORDER_WEAK;
}

DecodeResult decode_address_plan(Decoder *decoder, const PtxInstruction *source, const PtxOperand *operand, Space space,
                                 AddressPlan *plan) {
  if (operand->kind != PTX_OPERAND_ADDRESS || operand->item_count != 1)
    return decoder_error(decoder, source, "needs an address in brackets");
  const PtxOperand *base = &operand->items[0];
  *plan = (AddressPlan){.offset = operand->value};
  if (base->kind == PTX_OPERAND_VARIABLE && base->variable) {
    const Place *place = decoder_place(decoder, base->variable);
    if (!place) return DECODE_FAILED;
    plan->slot = decoder_constant(decoder, place->address + (uint64_t)base->value, 8);
    plan->frame_relative = base->variable->space == PTX_LOCAL;
    return DECODED;
  }
  int size = 8;
  bool may_be_narrow = space == SPACE_SHARED || space == SPACE_LOCAL || space == SPACE_PARAM || space == SPACE_CONST;
  plan->slot = decoder_wide_source(decoder, base, base->kind == PTX_OPERAND_REGISTER ? PTX_B32 : PTX_B64, &size);
  plan->narrow = size == 4;
  if (plan->narrow && !may_be_narrow)
    return decoder_error(decoder, source, "an address of this space needs a 64-bit register");
  return decoder->failed ? DECODE_FAILED : DECODED;
}

void form_addresses(Warp *warp, const AddressPlan *plan, Mask mask, uint64_t addresses[LANES]) {
  u64 offset = (u64)plan->offset;
  if (plan->narrow) {
    const u32 *base = SLOT(warp, plan->slot, const u32);
    for (int lane = 0; lane < LANES; lane++) addresses[lane] = (u32)(base[lane] + (u32)offset);
  } else {
    const u64 *base = SLOT(warp, plan->slot, const u64);
    for (int lane = 0; lane < LANES; lane++) addresses[lane] = base[lane] + offset;
  }
  if (plan->frame_relative && warp->calls) EACH_LANE(mask, addresses[LANE] += warp->calls[LANE].local_base);
}

// ---- an address of global memory where there is nothing ----

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

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

static StrayText beside_text(uint64_t address, const Region *near, bool of_tensor) {
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
    snprintf(text.text, sizeof text.text, "%llu bytes from the start of %s of %llu bytes\n%s",
             (unsigned long long)(address - near->base), name, bytes,
             of_tensor ? "The tensor map describes elements that are not in this memory. Check its sizes, its strides "
                         "(in bytes) and its address where it is encoded."
                       : "Check the index against the size of the array, and mask the tail of the last tile.");
  return text;
}

StrayText stray_text(const Launch *launch, uint64_t address, int size, const Region *near, bool of_tensor) {
  StrayText text;
  if (is_near_null(address)) return null_text(launch, address, size);
  if (near && near->freed && address - near->base < near->size) return beside_text(address, near, of_tensor);
  Wrapped wrapped = find_wrapped(launch->global, address, size);
  if (wrapped.region) return wrapped_text(&wrapped, address);
  if (near && address - near->base < near->size) return beside_text(address, near, of_tensor);
  text = below_zero_text(launch->global, address);
  if (*text.text) return text;
  if (is_of_host(address, near)) {
    snprintf(text.text, sizeof text.text,
             "an address of the host's own memory (malloc, new, a variable), which a kernel cannot reach\nAllocate the "
             "memory with cudaMalloc or cudaMallocManaged, and copy what the host has there.");
    return text;
  }
  if (near) return beside_text(address, near, of_tensor);
  snprintf(
      text.text, sizeof text.text,
      "no memory was ever allocated there\nCheck the pointer: does the kernel get its arguments in their order, and "
      "was the memory allocated?");
  return text;
}
