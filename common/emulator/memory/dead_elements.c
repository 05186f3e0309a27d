// Elements of a vector that nobody reads: see passes.h.
#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "load_store.h"
#include "passes.h"
#include "transfer.h"

#include <stdlib.h>

uint16_t *count_register_reads(const Program *program) {
  uint16_t *reads = host_allocate(program->register_bytes / READS_UNIT + 1, sizeof *reads);
  for (uint32_t t = 0; t < program->touch_count; t++) {
    const Touch *touch = &program->touches[t];
    uint16_t *count = &reads[touch->slot / READS_UNIT];
    *count += !touch->written && *count < UINT16_MAX;
  }
  return reads;
}

// Adds the part of `count` elements from e on.
static void add_part(Transfer *whole, int e, int count) {
  Transfer *part = &whole->parts[whole->part_count++];
  *part = *whole;
  part->part_count = 0;
  part->offset = e * whole->size;
  part->count = count;
  for (int i = 0; i < count; i++) {
    part->slots[i] = whole->slots[e + i];
    part->slot_sizes[i] = whole->slot_sizes[e + i];
    part->sink[i] = whole->sink[e + i];
  }
}

// A part is half of the vector, or an element of that half: aligned to its size as the vector is to its own. A load
// whose elements are all dead stays as it is.
static void divide_load(Transfer *load, const uint16_t *reads) {
  bool live[MAX_VECTOR];
  int lives = 0, half = load->count / 2;
  for (int e = 0; e < load->count; e++)
    lives += live[e] = !load->sink[e] && reads[load->slots[e] / READS_UNIT];
  if (lives == 0 || lives == load->count) return;
  for (int e = 0; e < load->count; e += half) {
    int first = e;
    while (first < e + half && !live[first]) first++;
    if (first == e + half) continue;
    bool whole = half == 1 || (live[e] && live[e + 1]);
    add_part(load, first, whole ? half : 1);
  }
}

void find_dead_elements(Program *program) {
  uint16_t *reads = count_register_reads(program);
  for (uint32_t pc = 0; pc < program->count; pc++) {
    const Inst *inst = &program->code[pc];
    if (inst->row->memory != MEMORY_LOAD || !is_weak_access(inst)) continue;
    Transfer *load = (Transfer *)(uintptr_t)inst->extra;
    if (load->parts) divide_load(load, reads);
  }
  free(reads);
}
