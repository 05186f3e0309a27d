// The forward pass as fp64 has it, for tests of the backward pass.
#pragma once

#include "harness/harness.h"

// Fills in O, rounded to fp16, and the log-sum-exp of a problem that has gradients.
void exact_forward(Problem *problem);
