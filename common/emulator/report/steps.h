// The record of steps: what a launch does, in the order in which it does it. A launch that is recorded runs on one host
// thread, and its warps execute an instruction in turn. See EmulatorStep in emulator.h.
#pragma once

#include "../emulator.h"
#include "../warp/machine.h"

typedef struct StepRecord {
  EmulatorStep *steps;
  int count, most, capacity;
  bool complete;        // there was room for all
  uint32_t operations;  // the last one's number
  const char **files;
  int file_count, file_capacity;
} StepRecord;

// Call these functions only when launch->record is not NULL.

// The lanes of the group with this pc execute its instruction.
void step_instruction(const Warp *warp, uint32_t pc, Mask lanes);
// The warp issues an asynchronous operation. Returns its number in the record, from 1.
uint32_t step_operation_begins(const Warp *warp, const Inst *inst, Mask lanes);
// The data of that operation has moved.
void step_operation_ends(const Warp *warp, const Inst *inst, Mask lanes, uint32_t number);
// An mbarrier's phase completes. address: of shared::cluster.
void step_phase(const Cluster *cluster, uint64_t address, uint64_t phase);
// At the beginning of a launch, and at its end: finds the source lines.
void step_launch_begins(const Launch *launch);
void step_launch_ends(const Launch *launch);
void step_record_free(StepRecord *record);
