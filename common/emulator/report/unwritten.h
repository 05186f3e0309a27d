// The text of a report on bytes that nothing has written.
#pragma once

#include "../check/region.h"
#include "../warp/machine.h"

typedef struct UnwrittenText {
  char text[HAZARD_DETAIL];
} UnwrittenText;

// With its advice. The load reads the region from the offset on. use: words on where the value is used, or "".
UnwrittenText unwritten_text(const Launch *launch, const Inst *load, const Region *region, uint64_t offset,
                             const char *use);
