// Loads of bytes that nothing has written, and stores of values that nothing defines: undefined_access.h.
#include "undefined_access.h"

#include <string.h>

#include "transfer.h"

bool find_unwritten(const Warp *warp, const Access *access, int bytes, u8 *undefined) {
  bool found = false;
  memset(undefined, 0, (size_t)bytes);
  for (int i = 0, run = 1; i < bytes; i += run) {
    Cell cell = {0};
    bool written = access->valid && access->valid[i];
    if (access->region) {
      run = shadow_run(&access->region->shadow, access->offset + (uint64_t)i, bytes - i, warp_launch(warp)->number,
                       &cell);
      written = cell.write != EPOCH_NONE;
    }
    if (!written) memset(undefined + i, 0xff, (size_t)run);
    found |= !written;
  }
  return found;
}

void note_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int bytes = transfer->size * transfer->count;
  warp->found_unwritten = false;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), written = 0;
    u8 undefined[MAX_BYTES];
    Access access;
    if (!memory_find(warp, inst, lane, transfer->space, addresses[lane], bytes, bytes, ACCESS_READ, &access)) return;
    memory_lock(&access);
    bool found = find_unwritten(warp, &access, bytes, undefined);
    memory_unlock(&access);
    if (!found) continue;
    for (int i = 0; i < bytes; i++) written += !undefined[i];
    UndefinedSource source = {.kind = access.region ? UNWRITTEN : UNWRITTEN_LOCAL,
                              .region = access.region,
                              .offset =
                                  access.offset + (size_t)((u8 *)memchr(undefined, 0xff, (size_t)bytes) - undefined),
                              .address = addresses[lane],
                              .size = bytes,
                              .whole = !written};
    for (int e = 0; e < transfer->count; e++) {
      u8 bits[MAX_BYTES] = {0};
      const u8 *own = undefined + e * transfer->size;
      memcpy(bits, own, (size_t)transfer->size);
      for (int i = transfer->size; i < transfer->slot_sizes[e]; i++)  // PTX ISA 9.4.1: copies of the sign, or zeros
        bits[i] = transfer->is_signed ? own[transfer->size - 1] : 0;
      if (!transfer->sink[e])
        undefined_add(warp, inst, lane, &source, transfer->slots[e], transfer->slot_sizes[e], bits);
    }
  }
}

// What is stored without being defined, and is no fault, is undefined in memory, too.
static void forget_written(const Warp *warp, const Access *access, const u8 *bits, int bytes) {
  for (int i = 0, run; i < bytes; i += run) {
    for (run = 1; i + run < bytes && !bits[i + run] == !bits[i];) run++;
    if (!bits[i]) continue;
    if (access->valid) memset(access->valid + i, 0, (size_t)run);
    if (access->region)
      shadow_write(&access->region->shadow, access->offset + (uint64_t)i, run, warp_launch(warp)->number, EPOCH_NONE);
  }
}

void store_undefined(Warp *warp, const Inst *inst, Mask mask, const uint64_t addresses[LANES]) {
  const Transfer *transfer = inst->extra;
  int size = transfer->size;
  for (Mask rest = mask; rest; rest &= rest - 1)
    for (int e = 0; e < transfer->count; e++) {
      int lane = __builtin_ctz(rest);
      const u8 *bits;
      Access access;
      uint64_t address = addresses[lane] + (uint64_t)(e * size);
      if (!memory_find(warp, inst, lane, transfer->space, address, size, size, ACCESS_WRITE, &access)) return;
      bits = undefined_store(warp, inst, lane, transfer->slots[e], transfer->slot_sizes[e], access.valid);
      if (!bits) continue;
      memory_lock(&access);
      forget_written(warp, &access, bits, size);
      memory_unlock(&access);
    }
}
