// The record of steps: what a launch does, in the order in which it does it. A launch that is recorded runs on one host
// thread, and its warps execute an instruction in turn. See EmulatorStep in emulator.h.
#pragma once

#include "../emulator.h"
#include "../warp/machine.h"

typedef struct StepRecord {
  EmulatorStep *steps;
  int count, most, capacity;
  int values_of;        // EmulatorOptions
  bool complete;        // there was room for all
  uint32_t operations;  // the last one's number
  uint32_t moving;      // of the operation that moves its data now, or 0
  const char **files;
  int file_count, file_capacity;
} StepRecord;

// Call these functions only when launch->record is not NULL.

// The lanes of the group with this pc execute its instruction.
void step_instruction(const Warp *warp, uint32_t pc, Mask lanes);
// The warp issues an asynchronous operation. Returns its number in the record, from 1.
uint32_t step_operation_begins(const Warp *warp, const Inst *inst, Mask lanes);
// The data of that operation moves. Changes of mbarriers count as its own until step_operation_is_over, which takes
// what this returns: the number of the operation whose changes counted before, or 0.
uint32_t step_operation_ends(const Warp *warp, const Inst *inst, Mask lanes, uint32_t number);
void step_operation_is_over(const Warp *warp, uint32_t outer);
// That operation, which has just begun, is a copy whose bytes an mbarrier counts.
void step_operation_is_copy(const Warp *warp, uint32_t number, uint64_t mbarrier, uint32_t bytes);
// A change of an mbarrier or a wait for it, by lanes of a warp or by an operation that one of them has issued. kind is
// EMULATOR_STEP_MBARRIER_... or EMULATOR_STEP_WAIT_...; address is one of shared::cluster.
typedef struct MbarrierStep {
  EmulatorStepKind kind;
  uint64_t address;
  uint32_t phase, pending;
  int32_t bytes;
} MbarrierStep;
void step_mbarrier(const Warp *warp, const Inst *inst, Mask lanes, const MbarrierStep *what);
void step_phase_ends(const Cluster *cluster, uint64_t address, uint32_t phase, uint32_t next_pending);
// The lanes have executed an instruction: its results, if the thread whose results are recorded is among them.
void step_values(Warp *warp, uint32_t pc, Mask lanes);
// At the beginning of a launch, and at its end: finds the source lines.
void step_launch_begins(const Launch *launch);
void step_launch_ends(const Launch *launch);
void step_record_free(StepRecord *record);
