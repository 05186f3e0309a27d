// From PTX text to the program that warps execute.
#pragma once

#include "../emulator.h"
#include "../parse/ptx.h"
#include "../warp/instruction.h"
#include "../warp/program.h"
#include "state.h"

// ---- modules, their variables and the programs of their kernels: module.c ----

// The definition of a kernel, NULL when the module has none of that name.
const PtxFunction *module_entry(const EmulatorModule *module, const char *name);
// The kernel's program, decoded when it is first asked for. NULL and *error when an instruction in it, or in a function
// that it may call, is unknown or malformed.
const Program *module_program(EmulatorModule *module, const PtxFunction *entry, EmulatorError *error);
void module_free(EmulatorModule *module);

// ---- decode.c ----

// Decodes an entry and every function it may call. The module's variables have their places already.
// NULL and *error when something in it is unknown or malformed.
Program *program_decode(PtxModule *module, const PtxFunction *entry, const Place *variables, int variable_count,
                        EmulatorError *error);

// ---- where divergent lanes meet ----

// Finds leaders and priorities of a function's instructions; targets are in Inst.immediate and in branch tables.
void cfg_analyse(Program *program, const Function *function);

// ---- the table of instructions: instructions.c ----

// The row of an instruction, NULL when it is unknown.
const Instruction *instruction_find(const PtxInstruction *source);
// "; there is wmma.load, wmma.store": the instructions of an opcode that has several, for an error; else nothing.
void instruction_list(const char *opcode, char *text, size_t size);

// ---- what an H100 runs, .version, .target and the instructions of older targets: target.c ----

// Whether an H100 runs the module. False and *error for a .version or .target that it does not run.
bool target_check(const PtxModule *module, EmulatorError *error);
// Whether the module's target, which target_check() has passed, has a function's instructions.
bool target_check_function(const PtxFunction *function, EmulatorError *error);
