// What everything counts in: the lanes of a warp.
#pragma once

#include <stdint.h>

enum { LANES = 32 };
typedef uint32_t Mask;  // a bit for each lane
#define FULL_MASK 0xffffffffu
