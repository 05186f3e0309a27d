// Where in the source an instruction stands: see source_line.h.
#include "source_line.h"

#include <stdio.h>
#include <string.h>
#include <ctype.h>
#include <stdlib.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"

static bool has_file(const PtxModule *module, const PtxLocation *location) {
  return location && location->file >= 0 && location->file < module->file_count && module->files[location->file];
}

// The length of the path of the folder that has the file's folder; of the file's own folder where that would be the
// root.
static size_t surroundings(const char *file) {
  size_t length = strlen(file), folders = 0;
  while (length > 0 && (file[length - 1] != '/' || ++folders < 2)) length--;
  if (length > 1) return length;
  const char *slash = strrchr(file, '/');
  return slash ? (size_t)(slash + 1 - file) : 0;
}

// Whether a file is in the kernel's folder or one beside it.
static bool is_near(const char *file, const char *kernel) {
  size_t folder = surroundings(kernel);
  return folder ? !strncmp(file, kernel, folder) : !strchr(file, '/');
}

// Whether a file is the kernel's own: the one where the kernel stands. When that is a header, the kernel has no file of
// its own, and all near it count: stages share such headers.
static bool is_own(const char *file, const char *kernel) {
  size_t length = strlen(kernel);
  return length > 3 && !strcmp(kernel + length - 3, ".cu") ? !strcmp(file, kernel) : is_near(file, kernel);
}

// The innermost location in the kernel's own file; NULL when unknown.
static const PtxLocation *own_location(const PtxModule *module, const PtxInstruction *source) {
  const PtxLocation *outermost = source ? source->location : NULL;
  while (outermost && outermost->inlined_at) outermost = outermost->inlined_at;
  if (!has_file(module, outermost)) return NULL;
  const PtxLocation *location = source->location;
  while (!has_file(module, location) || !is_own(module->files[location->file], module->files[outermost->file]))
    location = location->inlined_at;
  return location;
}

bool instruction_line(const PtxModule *module, const PtxInstruction *source, const char **file, int *line) {
  const PtxLocation *location = own_location(module, source);
  *file = location ? module->files[location->file] : NULL;
  *line = location ? location->line : 0;
  return location != NULL;
}

int source_lines(const PtxModule *module, const PtxInstruction *source, int *lines, int most) {
  const PtxLocation *own = own_location(module, source);
  int count = 0;
  for (const PtxLocation *at = own; at && at->file == own->file && count < most; at = at->inlined_at)
    lines[count++] = at->line;
  return count;
}

const Function *home_of(const Program *program, const Inst *inst) {
  uint32_t pc = (uint32_t)(inst - program->code);
  for (int f = 0; f < program->function_count; f++)
    if (pc >= program->functions[f].start && pc < program->functions[f].end) return &program->functions[f];
  return NULL;
}

bool are_copies(const Inst *a, const Inst *b) {
  const PtxLocation *one = a->source->location, *other = b->source->location;
  if (!one || a->execute != b->execute) return false;
  for (; one && other && one->file == other->file && one->line == other->line; other = other->inlined_at)
    one = one->inlined_at;
  return !one && !other;
}

LineText named_line(const PtxModule *module, const PtxInstruction *source) {
  LineText text;
  const PtxLocation *own = own_location(module, source), *call = own ? own->inlined_at : NULL;
  if (!own)
    snprintf(text.text, sizeof text.text, "PTX line %d", source->line);
  else if (has_file(module, call) && !strcmp(module->files[call->file], module->files[own->file]))
    snprintf(text.text, sizeof text.text, "line %d (called at %d)", own->line, call->line);
  else
    snprintf(text.text, sizeof text.text, "line %d", own->line);
  return text;
}

// The function that has the instruction: the last that begins before it.
static const PtxFunction *function_of(const PtxModule *module, const PtxInstruction *source) {
  const PtxFunction *found = NULL;
  for (int i = 0; i < module->function_count; i++) {
    const PtxFunction *function = &module->functions[i];
    if (!function->is_declaration && function->line <= source->line && (!found || function->line > found->line))
      found = function;
  }
  return found;
}

void find_frames(const PtxModule *module, const PtxInstruction *source, HazardPlace *place) {
  const PtxLocation *own = own_location(module, source);
  if (!own) return;
  int depth = 0;
  for (const PtxLocation *at = source->location; at; at = at->inlined_at) depth++;
  HazardFrame *frames = host_allocate((size_t)depth, sizeof *frames);
  for (const PtxLocation *at = source->location; at; at = at->inlined_at) {
    if (!has_file(module, at)) continue;
    if (at == own) place->own = place->frame_count;
    frames[place->frame_count++] = (HazardFrame){module->files[at->file], at->line, at->function};
  }
  const PtxFunction *function = function_of(module, source);
  if (function) frames[place->frame_count - 1].function = function->readable;
  place->frames = frames;
  place->inner = place->own > 1 || (place->own == 1 && is_near(frames[0].file, frames[1].file)) ? place->own : 0;
  place->file = frames[place->own].file;
  place->line = frames[place->own].line;
}

// ---- the names of variables in shared memory ----

// A variable of a function is mangled as _ZZ, the function's name, E, the length of its own name, the name, and for a
// second one of that name a number: _ZZ4copyPfE4tile, _ZZ4copyPfE4tile_0. One in a namespace as _ZN, the names, E. The
// last name is the variable's own.
NameText variable_name(const PtxVariable *variable) {
  NameText name;
  const char *text = variable->name;
  size_t length = strlen(text);
  bool is_mangled = !strncmp(text, "_Z", 2);
  for (const char *at = text + length; is_mangled && at-- > text;) {
    if (!isdigit((unsigned char)*at)) continue;
    while (at > text && isdigit((unsigned char)at[-1])) at--;
    char *own;
    size_t own_length = strtoul(at, &own, 10), left = strlen(own);
    if (own_length == 0 || own_length > left) continue;
    const char *rest = own + own_length;
    if (*rest && *rest != 'E' && *rest != '_') continue;
    snprintf(name.text, sizeof name.text, "%.*s", (int)own_length, own);
    return name;
  }
  snprintf(name.text, sizeof name.text, "%s", text);
  return name;
}

// ---- by address ----

static bool is_inside(const Launch *launch, const Place *place, uint64_t address, uint64_t *size) {
  if (place->variable->space != PTX_SHARED || place->address < SHARED_BASE || address < place->address) return false;
  *size = place->variable->is_extern ? launch->dynamic_shared : place->variable->size;
  return address - place->address < *size;
}

const Place *shared_variable(const Launch *launch, uint64_t address, uint64_t *size) {
  const Program *program = launch->program;
  for (int f = 0; f < program->function_count; f++)
    for (int i = 0; i < program->functions[f].place_count; i++)
      if (is_inside(launch, &program->functions[f].places[i], address, size)) return &program->functions[f].places[i];
  for (int i = 0; i < program->variable_count; i++)
    if (is_inside(launch, &program->variables[i], address, size)) return &program->variables[i];
  return NULL;
}

VariableText shared_bytes_text(const Launch *launch, uint64_t address, int size) {
  VariableText text = {""};
  uint64_t bytes;
  const Place *place = shared_variable(launch, address, &bytes);
  if (!place || bytes - (address - place->address) < (uint64_t)size) return text;
  unsigned long long first = address - place->address;
  NameText name = variable_name(place->variable);
  if (size == 1)
    snprintf(text.text, sizeof text.text, "byte %llu of `%s`", first, name.text);
  else
    snprintf(text.text, sizeof text.text, "bytes %llu to %llu of `%s`", first, first + (unsigned)size - 1, name.text);
  return text;
}

// ---- by instruction ----

// A register's value is followed back through the instructions that write it.
typedef struct Trace {
  const Program *program;
  const Function *function;
  const PtxVariable *found;
  bool several;
  int registers[64];
  int count;
} Trace;

static void trace_operand(Trace *trace, const PtxOperand *operand) {
  if (operand->variable && operand->variable->space == PTX_SHARED) {
    trace->several |= trace->found && trace->found != operand->variable;
    trace->found = operand->variable;
  }
  for (int i = 0; i < operand->item_count; i++) trace_operand(trace, &operand->items[i]);
  if (operand->kind != PTX_OPERAND_REGISTER) return;
  for (int i = 0; i < trace->count; i++)
    if (trace->registers[i] == operand->index) return;
  if (trace->count < (int)(sizeof trace->registers / sizeof *trace->registers))
    trace->registers[trace->count++] = operand->index;
  else
    trace->several = true;
}

static void trace_register(Trace *trace, int index) {
  for (uint32_t pc = trace->function->start; pc < trace->function->end; pc++) {
    const Inst *inst = &trace->program->code[pc];
    const PtxInstruction *source = inst->source;
    if (source->operand_count < 2 || source->operands[0].kind != PTX_OPERAND_REGISTER ||
        source->operands[0].index != index || inst->row->address == ADDRESS_NO_MORE)
      continue;
    for (int i = 1; i < source->operand_count; i++) trace_operand(trace, &source->operands[i]);
  }
}

static const Place *place_of_variable(const Program *program, const PtxVariable *variable) {
  for (int f = 0; f < program->function_count; f++)
    for (int i = 0; i < program->functions[f].place_count; i++)
      if (program->functions[f].places[i].variable == variable) return &program->functions[f].places[i];
  for (int i = 0; i < program->variable_count; i++)
    if (program->variables[i].variable == variable) return &program->variables[i];
  return NULL;
}

const Place *shared_variable_of(const Program *program, const Inst *inst) {
  Trace trace = {.program = program};
  trace.function = home_of(program, inst);
  if (!trace.function) return NULL;
  for (int i = 0; i < inst->source->operand_count; i++)
    if (inst->source->operands[i].kind == PTX_OPERAND_ADDRESS) trace_operand(&trace, &inst->source->operands[i]);
  for (int i = 0; i < trace.count; i++) trace_register(&trace, trace.registers[i]);
  return trace.found && !trace.several ? place_of_variable(program, trace.found) : NULL;
}
