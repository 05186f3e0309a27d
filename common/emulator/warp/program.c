// A program's memory, freed all at once, and its functions.
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"

typedef struct Chunk {
  struct Chunk *next;
  max_align_t data[];
} Chunk;

void *program_allocate(Program *program, size_t size) {
  Chunk *chunk = host_allocate(1, sizeof *chunk + size);
  chunk->next = program->memory;
  program->memory = chunk;
  return chunk->data;
}

void program_free(Program *program) {
  if (!program) return;
  for (Chunk *chunk = program->memory, *next; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
  free(program->constants);
  free(program->specials);
  free(program->touches);
  free(program->watched);
  free(program->watched_units);
  free(program);
}

uint32_t program_successors(const Program *program, uint32_t pc, uint32_t most, uint32_t *list) {
  const Inst *inst = &program->code[pc];
  const BranchTable *table = inst->control == CONTROL_TABLE ? inst->extra : NULL;
  uint32_t count = 0;
  if ((inst->control == CONTROL_NEXT || inst->guarded) && pc + 1 < program->count) list[count++] = pc + 1;
  if (inst->control == CONTROL_BRANCH) list[count++] = (uint32_t)inst->immediate;
  for (uint32_t t = 0; table && t < table->count && count < most; t++) list[count++] = table->targets[t];
  return count;
}

Function *program_function(const Program *program, const PtxOperand *operand) {
  if (operand->kind != PTX_OPERAND_FUNCTION || operand->index < 0) return NULL;
  int place = program->function_of[operand->index];
  return place ? &program->functions[place - 1] : NULL;
}

const PtxFunction *module_definition(const PtxModule *module, const char *name) {
  for (int i = 0; i < module->function_count; i++)
    if (!module->functions[i].is_declaration && !strcmp(module->functions[i].name, name)) return &module->functions[i];
  return NULL;
}
