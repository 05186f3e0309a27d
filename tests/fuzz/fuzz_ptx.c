// A libFuzzer target for the PTX front end: any bytes give a module or an error with a line, and whatever a module
// refers to lies inside it. Not part of `make test`; to run it with clang:
//
//   clang -g -O1 -fsanitize=fuzzer,address,undefined -Icommon -o build/fuzz_ptx tests/fuzz/fuzz_ptx.c
//         common/emulator/parse/*.c
//   mkdir -p build/fuzz
//   build/fuzz_ptx -dict=tests/fuzz/ptx.dict build/fuzz tests/ptx/valid tests/ptx/malformed
#include <stdlib.h>
#include <string.h>

#include "emulator/parse/ptx.h"

// Aborts, which libFuzzer reports with the input, when a promise of ptx.h is broken.
static void require(bool condition) {
  if (!condition) abort();
}

static void check_operand(const PtxFunction *function, const PtxOperand *operand) {
  switch (operand->kind) {
  case PTX_OPERAND_REGISTER:
    require(operand->index >= 0 && operand->index < function->register_count);
    require(operand->component < function->registers[operand->index].vector);
    break;
  case PTX_OPERAND_LABEL: require(operand->index >= 0 && operand->index < function->label_count); break;
  case PTX_OPERAND_NAME: require(operand->name && operand->index < function->branch_targets_count); break;
  case PTX_OPERAND_VARIABLE: require(operand->variable && strlen(operand->variable->name) > 0); break;
  case PTX_OPERAND_FUNCTION:
  case PTX_OPERAND_SPECIAL: require(operand->name && strlen(operand->name) > 0); break;
  case PTX_OPERAND_PAIR: require(operand->item_count == 2); break;
  case PTX_OPERAND_ADDRESS:
  case PTX_OPERAND_VECTOR: require(operand->item_count > 0); break;
  default: break;
  }
  for (int i = 0; i < operand->item_count; i++) check_operand(function, &operand->items[i]);
}

static void check_variable(const PtxModule *module, const PtxVariable *variable) {
  require(variable->name && variable->owner < module->function_count);
  require(variable->alignment > 0 && (variable->alignment & (variable->alignment - 1)) == 0);
  volatile uint8_t last = 0;  // the bytes are all there: the sanitizer watches
  for (uint64_t i = 0; variable->initial && i < variable->size; i++) last = variable->initial[i];
  (void)last;
  for (int i = 0; i < variable->relocation_count; i++) {
    const PtxRelocation *relocation = &variable->relocations[i];
    require(variable->initial && relocation->symbol);
    require(relocation->offset + (uint64_t)relocation->size <= variable->size);
  }
}

static void check_location(const PtxModule *module, const PtxLocation *location) {
  for (int depth = 0; location; location = location->inlined_at) {
    require(location->file < module->file_count && module->files[location->file]);
    require(++depth < 1000);
  }
}

static void check_function(const PtxModule *module, const PtxFunction *function) {
  require(function->name && module->functions[function->index].name == function->name);
  for (int i = 0; i < function->instruction_count; i++) {
    const PtxInstruction *instruction = &function->instructions[i];
    require(instruction->line > 0 && instruction->guard < function->register_count);
    (void)ptx_instruction_type(instruction);
    (void)ptx_has(instruction, "sync");
    for (int j = 0; j < instruction->operand_count; j++) check_operand(function, &instruction->operands[j]);
    check_location(module, instruction->location);
  }
  for (int i = 0; i < function->label_count; i++)
    require(function->labels[i].instruction >= 0 && function->labels[i].instruction <= function->instruction_count);
  for (int i = 0; i < function->branch_targets_count; i++)
    for (int j = 0; j < function->branch_targets[i].label_count; j++)
      require(function->branch_targets[i].labels[j] >= 0 &&
              function->branch_targets[i].labels[j] < function->label_count);
  for (int i = 0; i < function->variable_count; i++) check_variable(module, function->variables[i]);
  for (int i = 0; i < function->param_count; i++) check_variable(module, function->params[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  PtxError error;
  PtxModule *module = ptx_parse((const char *)data, size, &error);
  if (!module) {
    require(error.line >= 1 && error.message[0] && strlen(error.message) < sizeof error.message);
    return 0;
  }
  require(module->headers[0]->target != NULL);
  for (int i = 0; i < module->variable_count; i++) check_variable(module, module->variables[i]);
  for (int i = 0; i < module->function_count; i++) check_function(module, &module->functions[i]);
  ptx_free(module);
  return 0;
}
