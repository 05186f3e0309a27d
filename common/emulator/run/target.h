// What an H100 runs: .version, .target, and the instructions of older targets.
#pragma once

#include "../emulator.h"
#include "../parse/ptx.h"

// Whether an H100 runs the module. False and *error for a .version or .target that it does not run.
bool target_check(const PtxModule *module, EmulatorError *error);
// Whether the module's target, which target_check() has passed, has a function's instructions.
bool target_check_function(const PtxFunction *function, EmulatorError *error);
