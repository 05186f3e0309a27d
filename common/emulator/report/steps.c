// The record of steps: see steps.h.
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "../warp/warp.h"
#include "source_line.h"

enum { NO_WARP = -1 };

// NULL when there is no more room.
static EmulatorStep *add_step(StepRecord *record, EmulatorStepKind kind) {
  if (record->count == record->most) {
    record->complete = false;
    return NULL;
  }
  record->steps = host_grow(record->steps, record->count, &record->capacity, sizeof *record->steps);
  EmulatorStep *step = &record->steps[record->count++];
  *step = (EmulatorStep){.kind = kind, .warp = NO_WARP};
  return step;
}

static uint32_t block_number(const Block *block) {
  const unsigned *grid = block->cluster->launch->grid;
  return block->index[0] + grid[0] * (block->index[1] + grid[1] * block->index[2]);
}

// An address in the shared memory of its block.
static uint32_t offset_of(uint64_t address) { return (uint32_t)(address & ((1u << SHARED_RANK_SHIFT) - 1)); }

// The line of the source is found at the launch's end, once for each instruction. Until then its pc stands there.
static void set_place(EmulatorStep *step, const Warp *warp, uint32_t pc, Mask lanes) {
  const PtxInstruction *source = warp_launch(warp)->program->code[pc].source;
  step->block = block_number(warp->block);
  step->warp = warp->index;
  step->lanes = lanes;
  step->ptx_line = source ? source->line : 0;
  step->line = (int)pc;
}

void step_instruction(const Warp *warp, uint32_t pc, Mask lanes) {
  EmulatorStep *step = add_step(warp_launch(warp)->record, EMULATOR_STEP_INSTRUCTION);
  if (step) set_place(step, warp, pc, lanes);
}

static void add_operation_step(EmulatorStepKind kind, const Warp *warp, const Inst *inst, Mask lanes, uint32_t number) {
  EmulatorStep *step = add_step(warp_launch(warp)->record, kind);
  if (!step) return;
  set_place(step, warp, pc_of_inst(warp, inst), lanes);
  step->what = number;
}

uint32_t step_operation_begins(const Warp *warp, const Inst *inst, Mask lanes) {
  uint32_t number = ++warp_launch(warp)->record->operations;
  add_operation_step(EMULATOR_STEP_OPERATION_BEGINS, warp, inst, lanes, number);
  return number;
}

uint32_t step_operation_ends(const Warp *warp, const Inst *inst, Mask lanes, uint32_t number) {
  StepRecord *record = warp_launch(warp)->record;
  uint32_t outer = record->moving;
  add_operation_step(EMULATOR_STEP_OPERATION_ENDS, warp, inst, lanes, number);
  record->moving = number;
  return outer;
}

void step_operation_is_over(const Warp *warp, uint32_t outer) { warp_launch(warp)->record->moving = outer; }

void step_operation_is_copy(const Warp *warp, uint32_t number, uint64_t mbarrier, uint32_t bytes) {
  StepRecord *record = warp_launch(warp)->record;
  EmulatorStep *step = record->count ? &record->steps[record->count - 1] : NULL;
  if (!step || step->kind != EMULATOR_STEP_OPERATION_BEGINS || step->what != number) return;  // there was no room
  step->mbarrier = offset_of(mbarrier);
  step->bytes = (int32_t)bytes;
}

// ---- mbarriers ----

static void set_mbarrier(EmulatorStep *step, const Cluster *cluster, uint64_t address, uint32_t phase,
                         uint32_t pending) {
  const uint64_t rank = address >> SHARED_RANK_SHIFT;
  step->block = block_number(&cluster->blocks[rank ? rank - 1 : 0]);
  step->mbarrier = offset_of(address);
  step->phase = (int32_t)phase;
  step->pending = (int32_t)pending;
}

void step_mbarrier(const Warp *warp, const Inst *inst, Mask lanes, const MbarrierStep *what) {
  EmulatorStep *step = add_step(warp_launch(warp)->record, what->kind);
  if (!step) return;
  set_place(step, warp, pc_of_inst(warp, inst), lanes);
  set_mbarrier(step, warp->block->cluster, what->address, what->phase, what->pending);
  step->bytes = what->bytes;
  step->what = warp_launch(warp)->record->moving;
}

void step_phase_ends(const Cluster *cluster, uint64_t address, uint32_t phase, uint32_t next_pending) {
  EmulatorStep *step = add_step(cluster->launch->record, EMULATOR_STEP_PHASE_ENDS);
  if (!step) return;
  set_mbarrier(step, cluster, address, phase, next_pending);
  step->line = -1;
}

// ---- results ----

void step_values(Warp *warp, uint32_t pc, Mask lanes) {
  const Launch *launch = warp_launch(warp);
  int thread = launch->record->values_of - 1, lane = thread % LANES;
  const Inst *inst = &launch->program->code[pc];
  if (thread < 0 || warp->index != thread / LANES || !(lanes >> lane & 1)) return;
  if (inst->row->registers == REGISTERS_OF_WGMMA) return;  // they come later
  const Touch *touches = touches_of(launch->program, inst);
  for (int t = 0; t < inst->touch_count; t++) {
    if (!touches[t].written || touches[t].size != sizeof(uint32_t)) continue;
    EmulatorStep *step = add_step(launch->record, EMULATOR_STEP_VALUE);
    if (!step) return;
    set_place(step, warp, pc, 1u << lane);
    step->what = SLOT(warp, touches[t].slot, const uint32_t)[lane];
  }
}

// ---- launches ----

void step_launch_begins(const Launch *launch) {
  EmulatorStep *step = add_step(launch->record, EMULATOR_STEP_LAUNCH_BEGINS);
  if (!step) return;
  step->what = launch->check.number;
  step->line = -1;
}

// ---- source lines ----

static int file_number(StepRecord *record, const char *file) {
  for (int i = 0; i < record->file_count; i++)
    if (!strcmp(record->files[i], file)) return i;
  record->files = host_grow(record->files, record->file_count, &record->file_capacity, sizeof *record->files);
  record->files[record->file_count] = file;
  return record->file_count++;
}

void step_launch_ends(const Launch *launch) {
  StepRecord *record = launch->record;
  const Program *program = launch->program;
  typedef struct Line {
    int file, line;
    bool known;
  } Line;
  Line *lines = host_allocate(program->count, sizeof *lines);
  for (int i = record->count; i-- > 0 && record->steps[i].kind != EMULATOR_STEP_LAUNCH_BEGINS;) {
    EmulatorStep *step = &record->steps[i];
    uint32_t pc = (uint32_t)step->line;
    bool has_place = step->line >= 0;
    step->file = -1;
    step->line = 0;
    if (!has_place) continue;
    if (!lines[pc].known) {
      const char *file;
      lines[pc].known = true;
      instruction_line(program->module, program->code[pc].source, &file, &lines[pc].line);
      lines[pc].file = file ? file_number(record, file) : -1;
    }
    step->file = lines[pc].file;
    step->line = lines[pc].line;
  }
  free(lines);
}

void step_record_free(StepRecord *record) {
  free(record->steps);
  free(record->files);
}
