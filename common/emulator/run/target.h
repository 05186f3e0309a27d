// What an H100 runs: .version, .target, and the instructions of older targets.
#pragma once

#include "../emulator.h"
#include "../parse/ptx.h"

// Whether an H100 runs the module. False and *error for a .version or .target that it does not run, or an instruction that
// the target does not have.
bool target_check(const PtxModule *module, EmulatorError *error);
