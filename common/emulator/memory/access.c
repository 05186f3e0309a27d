// Single accesses: access.h.
#include "access.h"

#include <string.h>

// The bytes of an access that lie in one page of shadow memory, and so under one lock.
typedef struct AccessPart {
  Access at;
  uint64_t done;  // bytes of the parts before
  uint32_t size;
} AccessPart;

// The next part, locked, after the one before is unlocked; false at the end.
static bool next_part(AccessPart *part, Region *region, uint64_t offset, uint64_t size) {
  if (part->size) memory_unlock(&part->at);
  part->done += part->size;
  if (part->done == size) return false;
  offset += part->done;
  uint64_t page = SHADOW_PAGE - ((region->base + offset) & (SHADOW_PAGE - 1)), left = size - part->done;
  part->size = (uint32_t)(left < page ? left : page);
  part->at = (Access){.region = region, .offset = offset, .data = region->data + offset};
  memory_lock(&part->at);
  return true;
}

void access_read(const Actor *actor, Region *region, uint64_t offset, void *bytes, uint64_t size) {
  for (AccessPart part = {0}; next_part(&part, region, offset, size);) {
    if (actor) race_read_by(actor, region, part.at.offset, (int)part.size);
    if (bytes) memcpy((uint8_t *)bytes + part.done, part.at.data, part.size);
  }
}

bool access_write(const Actor *actor, Region *region, uint64_t offset, const void *bytes, uint64_t size) {
  bool changed = false;
  for (AccessPart part = {0}; next_part(&part, region, offset, size);) {
    const uint8_t *value = bytes ? (const uint8_t *)bytes + part.done : NULL;
    if (actor) race_write_by(actor, region, part.at.offset, (int)part.size, value);
    if (!value || !memcmp(part.at.data, value, part.size)) continue;
    memcpy(part.at.data, value, part.size);
    changed = true;
  }
  return changed;
}

void access_change(Region *region, uint64_t offset, const void *bytes, uint64_t size, AccessChange *change,
                   const void *how) {
  for (AccessPart part = {0}; next_part(&part, region, offset, size);)
    change(part.at.data, (const uint8_t *)bytes + part.done, part.size, how);
}

void access_read_lane(Warp *warp, const Inst *inst, int lane, const Access *access, void *bytes, uint64_t size) {
  Actor actor;
  bool checked = warp_launch(warp)->check.on;
  if (checked) actor = actor_of_lane(&warp->check, pc_of_inst(warp, inst), lane, WEAK);
  access_read(checked ? &actor : NULL, access->region, access->offset, bytes, size);
}

void access_write_lane(Warp *warp, const Inst *inst, int lane, const Access *access, const void *bytes, uint64_t size) {
  Actor actor;
  bool checked = warp_launch(warp)->check.on;
  if (checked) actor = actor_of_lane(&warp->check, pc_of_inst(warp, inst), lane, WEAK);
  if (access_write(checked ? &actor : NULL, access->region, access->offset, bytes, size))
    warp->block->cluster->progress++;
}
