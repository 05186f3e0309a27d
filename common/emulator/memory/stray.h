// An address of global memory where there is nothing: what it seems to be instead.
#pragma once

#include "../check/region.h"
#include "../warp/machine.h"

typedef struct StrayText {
  char text[800];
} StrayText;

// The text of the report, with its advice. near: the closest allocation, or NULL when there is none.
StrayText stray_text(const Launch *launch, uint64_t address, int size, const Region *near);
