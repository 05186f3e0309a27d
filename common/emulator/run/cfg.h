// The order in which a function's instructions run where threads diverge.
#pragma once

#include "../warp/program.h"

// Finds leaders and priorities of a function's instructions; targets are in Inst.immediate and in branch tables: cfg.c.
void cfg_analyse(Program *program, const Function *function);
