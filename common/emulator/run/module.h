// Modules: their variables, and the programs of their kernels.
#pragma once

#include "state.h"

// The definition of a kernel, NULL when the module has none of that name.
const PtxFunction *module_entry(const EmulatorModule *module, const char *name);
// The kernel's program, decoded when it is first asked for. NULL and *error when an instruction in it, or in a function
// that it may call, is unknown or malformed.
const Program *module_program(EmulatorModule *module, const PtxFunction *entry, EmulatorError *error);
void module_free(EmulatorModule *module);
