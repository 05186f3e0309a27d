// Loads whose value a selp discards: see discarded.h.
#include "discarded.h"

#include <stdlib.h>
#include <string.h>

#include "../warp/host_memory.h"
#include "../warp/operands.h"
#include "memory.h"

enum { SLOT_UNIT = 64, FARTHEST = 64 };  // slots start at multiples of SLOT_UNIT; instructions from a load to its selp

static bool touches(const Program *program, const Inst *inst, Slot slot, bool written) {
  for (int t = 0; t < inst->touch_count; t++) {
    const Touch *touch = &program->touches[inst->touch_start + (uint32_t)t];
    if (touch->slot == slot && touch->written == written) return true;
  }
  return false;
}

// How often each register is read in the whole program, at most 255, by slot / SLOT_UNIT.
static uint8_t *count_reads(const Program *program) {
  uint8_t *reads = host_allocate(program->register_bytes / SLOT_UNIT + 1, 1);
  for (uint32_t t = 0; t < program->touch_count; t++) {
    uint8_t *count = &reads[program->touches[t].slot / SLOT_UNIT];
    if (!program->touches[t].written && *count < 255) ++*count;
  }
  return reads;
}

// The register that a load from memory which may be local writes, if it is one alone; 0 otherwise.
static Slot loaded(const Program *program, const Inst *inst) {
  if (strcmp(inst->source->opcode, "ld")) return 0;
  Space space = space_of(inst->source);
  if (space != SPACE_LOCAL && space != SPACE_GENERIC) return 0;
  Slot slot = 0;
  for (int t = 0; t < inst->touch_count; t++) {
    const Touch *touch = &program->touches[inst->touch_start + (uint32_t)t];
    if (touch->written && slot) return 0;
    if (touch->written) slot = touch->slot;
  }
  return slot;
}

// The first instruction after the load that reads the register, if all lanes come to it straight from there; NULL otherwise.
static const Inst *straight_to_reader(const Program *program, const Inst *load, Slot slot) {
  const Inst *end = program->code + program->count;
  for (const Inst *inst = load; inst->control == CONTROL_NEXT && inst + 1 < end && inst - load < FARTHEST; inst++) {
    if (inst[1].leader || touches(program, &inst[1], slot, true)) return NULL;
    if (touches(program, &inst[1], slot, false)) return &inst[1];
  }
  return NULL;
}

static void note_selection(const Program *program, Inst *load, Slot slot) {
  const Inst *selp = straight_to_reader(program, load, slot);
  if (!selp || strcmp(selp->source->opcode, "selp") || selp->guarded) return;
  for (const Inst *inst = load; inst < selp; inst++)
    if (touches(program, inst, selp->c, true)) return;
  load->c = selp->c;
  load->flags = (selp->a == slot) != selp->source->operands[3].negated ? SELECTED_IF_TRUE : SELECTED_IF_FALSE;
}

void find_discarded_loads(Program *program) {
  uint8_t *reads = NULL;
  for (uint32_t i = 0; i < program->count; i++) {
    Slot slot = loaded(program, &program->code[i]);
    if (!slot) continue;
    if (!reads) reads = count_reads(program);
    if (reads[slot / SLOT_UNIT] == 1) note_selection(program, &program->code[i], slot);
  }
  free(reads);
}
