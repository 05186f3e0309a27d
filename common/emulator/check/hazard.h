// Reporting hazards: the list of those met, and how an instruction adds one.
#pragma once

#include <pthread.h>

#include "../warp/machine.h"
#include "epoch.h"

typedef struct HazardList {
  pthread_mutex_t lock;
  Hazard *items;
  int count, capacity;
} HazardList;

// Reports a hazard at inst, met by the lane, unless hazards are off and it is no fault.
void hazard_report(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                   const char *format, ...) __attribute__((format(printf, 7, 8)));
// The same with the access it conflicts with. other_first: the report names that one first.
void hazard_report_conflict(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                            Epoch other, bool other_first, const char *detail);

// The hazards in the order of the source.
const Hazard *hazards_sorted(HazardList *list, int *count);

// The line that an instruction belongs to: the innermost one in the kernel's own files, which are those of its folder and of
// the folders beside it. So a helper defined there is reported by its own lines, and one from a library's header by the line
// that calls it. False when unknown.
bool instruction_line(const PtxModule *module, const PtxInstruction *source, const char **file, int *line);
