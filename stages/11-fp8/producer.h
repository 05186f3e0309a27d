// The producer of stage 11: that of stage 10c, with this stage's slots.
#pragma once

enum { FILLERS_OF_V = 1 };
#include "shared.h"

#include "../10c-fp8-values/producer.h"
