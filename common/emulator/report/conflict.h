// Reports of what the race check finds: two accesses that nothing orders, or that something orders only formally, with
// advice from the cause.
#pragma once

#include "../check/finding.h"

// A report names the reader first; of two writes the one that stands later in the program.
void conflict_report(const CheckFinding *finding);
