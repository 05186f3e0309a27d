// From a module's entry to the program that warps execute.
#pragma once

#include "../warp/program.h"

// Decodes an entry and every function it may call. The module's variables have their places already.
// NULL and *error when something in it is unknown or malformed.
Program *program_decode(PtxModule *module, const PtxFunction *entry, const Place *variables, int variable_count,
                        EmulatorError *error);

// ---- where divergent lanes meet ----

// Finds leaders and priorities of a function's instructions; targets are in Inst.immediate and in branch tables.
void cfg_analyse(Program *program, const Function *function);
