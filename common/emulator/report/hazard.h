// Reporting hazards: the list of those met, and how an instruction adds one.
#pragma once

#include <pthread.h>

#include "../check/threads.h"
#include "../check/region.h"
#include "../warp/machine.h"
#include "source_line.h"
#include "../check/actor.h"

typedef struct FindingKey FindingKey;

typedef struct HazardList {
  pthread_mutex_t lock;
  Hazard *items;
  FindingKey *keys;  // of each item
  int count, capacity;
  Hazard *sorted;     // what emulator_hazards returned last
  Hazard stopped_by;  // of the last launch that was stopped
} HazardList;

// The text of a report is a sentence on this very case. A second line of it is the advice: what the person must change,
// as it follows from the cause. Without one a report has the advice of its kind; if the line is empty, it has none.

// Reports a fault at inst, met by the lane, if hazards are on. The launch goes on.
void hazard_report(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                   const char *format, ...) __attribute__((format(printf, 7, 8)));
// The same with another grade than fault. The text of a formal one says how it is known that the hardware does it.
void hazard_report_graded(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                          uint64_t address, int size, const char *format, ...) __attribute__((format(printf, 8, 9)));
// Reports a hazard with the access it conflicts with. other_first: the report names that one first.
void hazard_report_conflict(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                            uint64_t address, int size, Epoch other, bool other_first, const char *detail);
// The same of an access by an earlier launch: overlap.h.
struct PastLaunch;
void hazard_report_past(HazardGrade grade, const Warp *warp, const Inst *inst, int lane, HazardKind kind,
                        uint64_t address, int size, const struct PastLaunch *past, Epoch other, const char *detail);
// Whether the same has been reported before, or would not be; then it is counted, and no text is needed. The second is
// of a conflict.
bool hazard_known(HazardGrade grade, const Warp *warp, const Inst *inst, HazardKind kind);
bool hazard_known_conflict(HazardGrade grade, const Warp *warp, const Inst *inst, HazardKind kind, Epoch other,
                           bool other_first);
// Reports a fault after which the launch cannot go on, and stops it. It is reported even if hazards are off. The first
// report that stops a launch is the reason; what others report after it is dropped.
void hazard_stop(const Warp *warp, const Inst *inst, int lane, HazardKind kind, uint64_t address, int size,
                 const char *format, ...) __attribute__((format(printf, 7, 8)));

// A report that says more: of hazard the kind, grade, address, size, advice and lines are used, and whether it stops
// the launch. The lines are copied.
void hazard_add(const Hazard *hazard, const Warp *warp, const Inst *inst, int lane, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
// Replaces the sentence and the advice of a fault that was reported at inst, once its cause is known.
void hazard_amend(const Launch *launch, const Inst *inst, HazardKind kind, const char *advice, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// The instruction that last wrote a byte of the region in this launch, and the thread that executed it; NULL: none, or
// it is not known.
const Inst *last_writer(const Cluster *cluster, const Region *region, uint64_t offset, HazardPlace *place);

// Names what stopped the last launch that was stopped, for the kernel of that name.
void hazards_stop_reason(const HazardList *list, const char *kernel, EmulatorError *error);
// The hazards in the order of the source: report.c.
const Hazard *hazards_sorted(HazardList *list, int *count);
void hazards_clear(HazardList *list);
void hazards_free(HazardList *list);

// ---- conflict.c ----

// Reports of what the race check finds: two accesses that nothing orders, or that something orders only formally, with
// advice from the cause.

// A report names the reader first; of two writes the one that stands later in the program.
void conflict_report(const CheckFinding *finding);
