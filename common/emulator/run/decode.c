// Decodes a kernel: gives every register, immediate and variable its place, and asks the families what each instruction is.
#include "../warp/decoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../scalar/float16.h"
#include "../warp/warp.h"
#include "../tensor/wgmma.h"

enum {
  MAX_REGISTER_BYTES = 1 << 28,
  MAX_STATIC_SHARED = 1 << 24,
  MAX_LOCAL = 512 << 10,  // of a thread: CUDA C++ programming guide, table of technical specifications
  MAX_PARAM = 32764,      // of a kernel: PTX ISA 5.1.6.1
  MAX_FUNCTIONS = 1024,   // of one kernel
  RECURSIVE_LOCAL = 64 << 10,
};

// ---- memory of a program: freed all at once ----

typedef struct Chunk {
  struct Chunk *next;
  max_align_t data[];
} Chunk;

static void *program_allocate(Program *program, size_t size) {
  Chunk *chunk = calloc(1, sizeof *chunk + size);
  if (!chunk) out_of_memory();
  chunk->next = program->memory;
  program->memory = chunk;
  return chunk->data;
}

void *decoder_allocate(Decoder *decoder, size_t size) { return program_allocate(decoder->program, size); }

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

// ---- errors ----

static DecodeResult fail(Decoder *decoder, int line, const char *what, const char *format, va_list arguments) {
  if (decoder->failed) return DECODE_FAILED;
  decoder->failed = true;
  decoder->error->line = line;
  int used = snprintf(decoder->error->message, sizeof decoder->error->message, "%s", what);
  vsnprintf(decoder->error->message + used, sizeof decoder->error->message - used, format, arguments);
  return DECODE_FAILED;
}

DecodeResult decoder_fail(Decoder *decoder, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail(decoder, line, "", format, arguments);
  va_end(arguments);
  return DECODE_FAILED;
}

// "mad.lo.f16: ", at most size bytes.
static void instruction_name(const PtxInstruction *source, char *name, size_t size) {
  size_t used = (size_t)snprintf(name, size, "%s", source->opcode);
  for (int i = 0; i < source->modifier_count && used < size; i++)
    used += (size_t)snprintf(name + used, size - used, ".%s", source->modifiers[i]);
  if (used < size) snprintf(name + used, size - used, ": ");
}

DecodeResult decoder_error(Decoder *decoder, const PtxInstruction *source, const char *format, ...) {
  char name[160];
  instruction_name(source, name, sizeof name);
  va_list arguments;
  va_start(arguments, format);
  fail(decoder, source->line, name, format, arguments);
  va_end(arguments);
  return DECODE_FAILED;
}

bool decoder_operands(Decoder *decoder, const PtxInstruction *source, int low, int high) {
  int count = source->operand_count;
  if (count >= low && count <= high) return true;
  if (low == high)
    decoder_error(decoder, source, "has %d operands, needs %d", count, low);
  else
    decoder_error(decoder, source, "has %d operands, needs %d to %d", count, low, high);
  return false;
}

bool decoder_modifiers(Decoder *decoder, const PtxInstruction *source, const char *const *allowed) {
  for (int i = 0; i < source->modifier_count; i++) {
    const char *modifier = source->modifiers[i];
    if (ptx_type_from_name(modifier) != PTX_NO_TYPE) continue;
    bool known = false;
    for (const char *const *name = allowed; *name && !known; name++) known = !strcmp(*name, modifier);
    if (!known) {
      decoder_error(decoder, source, "unknown modifier .%s", modifier);
      return false;
    }
  }
  return true;
}

// ---- slots ----

Slot decoder_slot(Decoder *decoder, int size) {
  // A predicate's Mask has a cache line of its own too, so that every slot can be read as a vector.
  size_t bytes = size == 1 ? 64 : (size_t)size * LANES;
  Program *program = decoder->program;
  if (program->register_bytes + bytes > MAX_REGISTER_BYTES) {
    decoder_fail(decoder, decoder->source ? decoder->source->line : 0, "the kernel needs too many registers");
    return 0;
  }
  Slot slot = (Slot)program->register_bytes;
  program->register_bytes += (bytes + 63) & ~(size_t)63;
  return slot;
}

static int slot_size(PtxType type) {
  size_t size = ptx_type_size(type);
  return type == PTX_PRED ? 1 : size < 2 ? 2 : (int)size;
}

static unsigned constant_hash(uint64_t value, int size, int buckets) {
  return (unsigned)((value * 0x9e3779b97f4a7c15ull + (uint64_t)size) >> 40) % (unsigned)buckets;
}

static void constants_rehash(Decoder *decoder, int buckets) {
  free(decoder->constant_buckets);
  decoder->constant_buckets = malloc((size_t)buckets * sizeof(int));
  if (!decoder->constant_buckets) out_of_memory();
  decoder->constant_bucket_count = buckets;
  memset(decoder->constant_buckets, -1, (size_t)buckets * sizeof(int));
  const Program *program = decoder->program;
  for (int i = 0; i < program->constant_count; i++) {
    unsigned h = constant_hash(program->constants[i].value, program->constants[i].size, buckets);
    while (decoder->constant_buckets[h] >= 0) h = (h + 1) % (unsigned)buckets;
    decoder->constant_buckets[h] = i;
  }
}

Slot decoder_constant(Decoder *decoder, uint64_t value, int size) {
  Program *program = decoder->program;
  if (program->constant_count * 2 >= decoder->constant_bucket_count)
    constants_rehash(decoder, decoder->constant_bucket_count ? decoder->constant_bucket_count * 2 : 64);
  unsigned buckets = (unsigned)decoder->constant_bucket_count, h = constant_hash(value, size, (int)buckets);
  for (; decoder->constant_buckets[h] >= 0; h = (h + 1) % buckets) {
    const Constant *constant = &program->constants[decoder->constant_buckets[h]];
    if (constant->value == value && constant->size == size) return constant->slot;
  }
  if (program->constant_count == decoder->constant_capacity) {
    decoder->constant_capacity = decoder->constant_capacity ? decoder->constant_capacity * 2 : 64;
    program->constants = realloc(program->constants, (size_t)decoder->constant_capacity * sizeof(Constant));
    if (!program->constants) out_of_memory();
  }
  Slot slot = decoder_slot(decoder, size);
  decoder->constant_buckets[h] = program->constant_count;
  program->constants[program->constant_count++] = (Constant){slot, size, value, (int64_t)value < 0 ? ~0ull : 0};
  return slot;
}

static Slot special_slot(Decoder *decoder, const PtxOperand *operand, int size) {
  int own_size = 0, component = operand->component < 0 ? 0 : operand->component;
  int id = special_find(operand->name, &own_size);
  if (id < 0) {
    decoder_error(decoder, decoder->source, "unknown special register %%%s", operand->name);
    return 0;
  }
  if (component > 2 && own_size != 0) component = 3;
  Program *program = decoder->program;
  for (int i = 0; i < program->special_count; i++) {
    const Special *special = &program->specials[i];
    if (special->id == id && special->component == component && special->size == size) return special->slot;
  }
  if (program->special_count == decoder->special_capacity) {
    decoder->special_capacity = decoder->special_capacity ? decoder->special_capacity * 2 : 16;
    program->specials = realloc(program->specials, (size_t)decoder->special_capacity * sizeof(Special));
    if (!program->specials) out_of_memory();
  }
  Slot slot = decoder_slot(decoder, size);
  program->specials[program->special_count++] = (Special){slot, size, id, component};
  return slot;
}

// ---- operands ----

const Place *decoder_place(Decoder *decoder, const PtxVariable *variable) {
  const Function *function = decoder->function;
  for (int i = 0; i < function->place_count; i++)
    if (function->places[i].variable == variable) return &function->places[i];
  for (int i = 0; i < decoder->variable_count; i++)
    if (decoder->variables[i].variable == variable) return &decoder->variables[i];
  decoder_error(decoder, decoder->source, "%s has no address here", variable->name);
  return NULL;
}

uint32_t decoder_label(Decoder *decoder, int label) {
  return decoder->function->start + (uint32_t)decoder->function->ptx->labels[label].instruction;
}

// The bits of an immediate read as type.
static bool immediate_bits(const PtxOperand *operand, PtxType type, uint64_t *bits) {
  bool literal_float = operand->kind == PTX_OPERAND_FLOAT;
  double number = 0;
  if (literal_float && operand->is_f32) {
    float single;
    uint32_t word = (uint32_t)operand->value;
    memcpy(&single, &word, 4);
    number = single;
  } else if (literal_float) {
    memcpy(&number, &operand->value, 8);
  }
  float single = (float)number;
  switch (type) {
  case PTX_F64:
    if (!literal_float) return false;
    memcpy(bits, &number, 8);
    return true;
  case PTX_F32:
  case PTX_B32:
    if (literal_float) {
      uint32_t word = (uint32_t)operand->value;
      if (!operand->is_f32) memcpy(&word, &single, 4);
      *bits = word;
      return true;
    }
    *bits = (uint32_t)operand->value;
    return type == PTX_B32;
  case PTX_B64:
    if (literal_float)
      memcpy(bits, &number, 8);
    else
      *bits = (uint64_t)operand->value;
    return true;
  case PTX_F16: *bits = narrow((SmallFormat)FORMAT_F16, number, ROUND_NEAREST, false); return literal_float;
  case PTX_BF16: *bits = narrow((SmallFormat)FORMAT_BF16, number, ROUND_NEAREST, false); return literal_float;
  case PTX_PRED: *bits = operand->value != 0; return !literal_float;
  default: {
    size_t size = ptx_type_size(type);
    if (literal_float || size == 0 || size > 8) return false;
    *bits = size == 8 ? (uint64_t)operand->value : (uint64_t)operand->value & ((1ull << 8 * (size < 2 ? 2 : size)) - 1);
    return true;
  }
  }
}

static void touch(Decoder *decoder, Slot slot, bool written) {
  Program *program = decoder->program;
  if (program->touch_count == decoder->touch_capacity) {
    decoder->touch_capacity = decoder->touch_capacity ? decoder->touch_capacity * 2 : 1024;
    program->touches = realloc(program->touches, decoder->touch_capacity * sizeof(Touch));
    if (!program->touches) out_of_memory();
  }
  program->touches[program->touch_count++] = (Touch){slot, written};
}

static Slot register_slot(Decoder *decoder, const PtxOperand *operand, PtxType *type) {
  const PtxFunction *ptx = decoder->function->ptx;
  const PtxRegister *reg = &ptx->registers[operand->index];
  *type = reg->type;
  Slot slot = decoder->function->registers[operand->index];
  int component = operand->component < 0 ? 0 : operand->component;
  if (reg->vector > 1 && operand->component < 0) {
    decoder_error(decoder, decoder->source, "vector register %s needs a component", reg->name);
    return 0;
  }
  if (component >= reg->vector) {
    decoder_error(decoder, decoder->source, "%s has no such component", reg->name);
    return 0;
  }
  size_t stride = ((size_t)(reg->type == PTX_PRED ? 64 : slot_size(reg->type) * LANES) + 63) & ~(size_t)63;
  return slot + (Slot)((size_t)component * stride);
}

static Slot register_of_size(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, bool written,
                             int *size_out) {
  PtxType have;
  Slot slot = register_slot(decoder, operand, &have);
  touch(decoder, slot, written);
  int size = slot_size(have), need = slot_size(type);
  bool fits = (have == PTX_PRED) == (type == PTX_PRED) && (wide ? size >= need : size == need);
  if (!fits)
    decoder_error(decoder, decoder->source, "register %s is .%s, the instruction needs .%s",
                  decoder->function->ptx->registers[operand->index].name, ptx_type_name(have), ptx_type_name(type));
  if (size_out) *size_out = size;
  return slot;
}

static Slot source_slot(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, int *size_out) {
  int size = slot_size(type);
  if (size_out) *size_out = size;
  uint64_t bits;
  switch (operand->kind) {
  case PTX_OPERAND_REGISTER: return register_of_size(decoder, operand, type, wide, false, size_out);
  case PTX_OPERAND_INTEGER:
  case PTX_OPERAND_FLOAT:
    if (immediate_bits(operand, type, &bits)) return decoder_constant(decoder, bits, size);
    decoder_error(decoder, decoder->source, "an immediate does not fit .%s", ptx_type_name(type));
    return 0;
  case PTX_OPERAND_SPECIAL:
    if (size == 4 || size == 8) return special_slot(decoder, operand, size);
    break;
  case PTX_OPERAND_VARIABLE:
    if (operand->variable && operand->variable->space != PTX_LOCAL && (size == 4 || size == 8)) {
      const Place *place = decoder_place(decoder, operand->variable);
      if (!place) return 0;
      return decoder_constant(decoder, place->address + (uint64_t)operand->value, size);
    }
    break;
  default: break;
  }
  decoder_error(decoder, decoder->source, "an operand is of the wrong kind for .%s", ptx_type_name(type));
  return 0;
}

Slot decoder_source(Decoder *decoder, const PtxOperand *operand, PtxType type) {
  return source_slot(decoder, operand, type, false, NULL);
}

Slot decoder_wide_source(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size_out) {
  return source_slot(decoder, operand, type, true, slot_size_out);
}

static Slot destination_slot(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, int *size_out) {
  if (size_out) *size_out = slot_size(type);
  if (operand->kind == PTX_OPERAND_SINK) return decoder_slot(decoder, slot_size(type));
  if (operand->kind == PTX_OPERAND_REGISTER && !operand->negated)
    return register_of_size(decoder, operand, type, wide, true, size_out);
  decoder_error(decoder, decoder->source, "the destination must be a register");
  return 0;
}

Slot decoder_destination(Decoder *decoder, const PtxOperand *operand, PtxType type) {
  return destination_slot(decoder, operand, type, false, NULL);
}

Slot decoder_wide_destination(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size_out) {
  return destination_slot(decoder, operand, type, true, slot_size_out);
}

// ---- functions ----

static uint64_t align_up(uint64_t value, uint64_t alignment) {
  return alignment > 1 ? (value + alignment - 1) / alignment * alignment : value;
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

static void add_function(Program *program, int index) {
  if (program->function_of[index]) return;
  program->functions[program->function_count++].ptx = &program->module->functions[index];
  program->function_of[index] = program->function_count;
}

// Adds the functions that an operand names, which may be inside a list.
static void add_functions(Program *program, const PtxOperand *operands, int count) {
  for (int i = 0; i < count; i++) {
    add_functions(program, operands[i].items, operands[i].item_count);
    if (operands[i].kind == PTX_OPERAND_FUNCTION && operands[i].index >= 0) add_function(program, operands[i].index);
  }
}

// The entry and every function that it names, directly or not. Function addresses may also sit in a module variable's
// initializer: a program with such a table may call any function.
static void collect_functions(Program *program, const PtxFunction *entry) {
  const PtxModule *module = program->module;
  program->functions = program_allocate(program, ((size_t)module->function_count + 1) * sizeof(Function));
  program->function_of = program_allocate(program, (size_t)module->function_count * sizeof(int));
  add_function(program, entry->index);
  for (int v = 0; v < module->variable_count; v++)
    for (int r = 0; r < module->variables[v]->relocation_count; r++) {
      const PtxFunction *callee = module_definition(module, module->variables[v]->relocations[r].symbol);
      if (callee && !callee->is_entry) add_function(program, callee->index);
    }
  for (int f = 0; f < program->function_count; f++) {
    const PtxFunction *ptx = program->functions[f].ptx;
    for (int i = 0; i < ptx->instruction_count; i++)
      add_functions(program, ptx->instructions[i].operands, ptx->instructions[i].operand_count);
  }
}

// Slots of a function's registers.
static void place_registers(Decoder *decoder, Function *function) {
  const PtxFunction *ptx = function->ptx;
  function->first_slot = (Slot)decoder->program->register_bytes;
  function->registers = decoder_allocate(decoder, ((size_t)ptx->register_count + 1) * sizeof(Slot));
  for (int i = 0; i < ptx->register_count; i++)
    for (int v = 0; v < ptx->registers[i].vector; v++) {
      Slot slot = decoder_slot(decoder, slot_size(ptx->registers[i].type));
      if (v == 0) function->registers[i] = slot;
    }
}

static Place *add_place(Function *function, const PtxVariable *variable) {
  Place *place = &function->places[function->place_count++];
  place->variable = variable;
  return place;
}

// A parameter of a device function: bytes for each lane among the registers.
static void place_param(Decoder *decoder, Function *function, const PtxVariable *variable) {
  Place *place = add_place(function, variable);
  uint64_t size = align_up(variable->size, 8);
  if (size > 1 << 16) {
    decoder_fail(decoder, variable->line, "parameter %s is too large", variable->name);
    return;
  }
  place->stride = (int)size;
  place->slot = decoder_slot(decoder, (int)size < 8 ? 8 : (int)size);
}

static void place_variables(Decoder *decoder, Function *function) {
  const PtxFunction *ptx = function->ptx;
  Program *program = decoder->program;
  int count = ptx->param_count + ptx->return_count + ptx->variable_count;
  function->places = decoder_allocate(decoder, ((size_t)count + 1) * sizeof(Place));
  for (int i = 0; i < ptx->param_count; i++) {
    if (!ptx->is_entry) {
      place_param(decoder, function, ptx->params[i]);
      continue;
    }
    program->param_size = align_up(program->param_size, ptx->params[i]->alignment);
    add_place(function, ptx->params[i])->address = program->param_size;
    program->param_size += ptx->params[i]->size;
    if (ptx->params[i]->size > MAX_PARAM || program->param_size > MAX_PARAM) {
      decoder_fail(decoder, ptx->params[i]->line, "a kernel has at most %d bytes of parameters, %s goes beyond",
                   MAX_PARAM, ptx->params[i]->name);
      return;
    }
  }
  for (int i = 0; i < ptx->return_count; i++) place_param(decoder, function, ptx->returns[i]);
  for (int i = 0; i < ptx->variable_count; i++) {
    const PtxVariable *variable = ptx->variables[i];
    if (variable->space == PTX_PARAM) {
      place_param(decoder, function, variable);
    } else if (variable->space == PTX_LOCAL) {
      function->local_size = align_up(function->local_size, variable->alignment);
      add_place(function, variable)->address = function->local_size;
      function->local_size += variable->size;
    } else if (variable->space == PTX_SHARED && !variable->is_extern) {
      program->shared_size = align_up(program->shared_size, variable->alignment);
      add_place(function, variable)->address = SHARED_BASE + program->shared_size;
      program->shared_size += variable->size;
    }
    if (program->shared_size > MAX_STATIC_SHARED || variable->size > MAX_STATIC_SHARED) {
      decoder_fail(decoder, variable->line, "%s is too large", variable->name);
      return;
    }
    if (function->local_size > MAX_LOCAL) {
      decoder_fail(decoder, variable->line, "a thread has at most %d bytes of local memory, %s goes beyond", MAX_LOCAL,
                   variable->name);
      return;
    }
  }
  function->local_size = align_up(function->local_size, 16);
  function->end_slot = (Slot)program->register_bytes;
}

typedef enum Visit { NOT_YET, ON_THE_WAY, DONE } Visit;

static bool calls_in_circle(const Program *program, const Function *function, Visit *visits);

static bool operands_lead_in_circle(const Program *program, const PtxOperand *operands, int count, Visit *visits) {
  for (int i = 0; i < count; i++) {
    const Function *callee = program_function(program, &operands[i]);
    if ((callee && calls_in_circle(program, callee, visits)) ||
        operands_lead_in_circle(program, operands[i].items, operands[i].item_count, visits))
      return true;
  }
  return false;
}

// Whether the calls of a function lead back to one that is on the way to it.
static bool calls_in_circle(const Program *program, const Function *function, Visit *visits) {
  Visit *visit = &visits[function - program->functions];
  if (*visit != NOT_YET) return *visit == ON_THE_WAY;
  *visit = ON_THE_WAY;
  for (int i = 0; i < function->ptx->instruction_count; i++) {
    const PtxInstruction *source = &function->ptx->instructions[i];
    if (operands_lead_in_circle(program, source->operands, source->operand_count, visits)) return true;
  }
  *visit = DONE;
  return false;
}

// Whether a function calls through a register.
static bool calls_indirectly(const PtxFunction *ptx) {
  for (int i = 0; i < ptx->instruction_count; i++) {
    const PtxInstruction *source = &ptx->instructions[i];
    for (int o = 0; o < source->operand_count && !strcmp(source->opcode, "call"); o++)
      if (source->operands[o].kind == PTX_OPERAND_REGISTER) return true;
  }
  return false;
}

// How much local memory a thread needs: more where a function may be entered again before it returns. Through a register
// any may be called.
static void measure_local(Program *program) {
  Visit *visits = program_allocate(program, (size_t)program->function_count * sizeof *visits);
  bool again = calls_in_circle(program, &program->functions[0], visits);
  for (int f = 0; f < program->function_count; f++) {
    again |= calls_indirectly(program->functions[f].ptx);
    program->local_size += program->functions[f].local_size;
  }
  if (again && program->local_size) program->local_size += RECURSIVE_LOCAL;
}

static DecodeFamily *const families[] = {
    decode_move,    decode_integer,    decode_float,      decode_half,     decode_convert,       decode_compare,
    decode_memory,  decode_collective, decode_barrier,    decode_cp_async, decode_matrix_memory, decode_mma,
    decode_wmma,    decode_wgmma,      decode_mbarrier,   decode_bulk,     decode_tensor_copy,   decode_fence,
    decode_cluster, decode_hint,       decode_setmaxnreg, decode_control};

// The parser keeps one copy of equal texts: instructions are alike when their opcode and modifiers are the same pointers.
static bool alike(const PtxInstruction *a, const PtxInstruction *b) {
  if (a->opcode != b->opcode || a->modifier_count != b->modifier_count) return false;
  for (int i = 0; i < a->modifier_count; i++)
    if (a->modifiers[i] != b->modifiers[i]) return false;
  return true;
}

static size_t known_place(const PtxInstruction *source) {
  uint64_t hash = (uint64_t)(uintptr_t)source->opcode;
  for (int i = 0; i < source->modifier_count; i++)
    hash = hash * 0x9e3779b97f4a7c15ull + (uint64_t)(uintptr_t)source->modifiers[i];
  return hash * 0x9e3779b97f4a7c15ull >> 32 & (KNOWN_FAMILIES - 1);
}

// Asks the family that an instruction like this was decoded by. False when there is none, or it is not its this time:
// operands count too.
static bool ask_known_family(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  size_t place = known_place(source);
  const PtxInstruction *like = decoder->known[place].like;
  if (!like || !alike(like, source)) return false;
  return families[decoder->known[place].family](decoder, source, inst) != DECODE_NOT_MINE;
}

static void decode_operation(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  inst->counter = COUNTER_INST_OTHER;
  if (source->guard >= 0) {
    PtxOperand guard = {.kind = PTX_OPERAND_REGISTER, .index = source->guard, .component = -1};
    inst->guarded = true;
    inst->guard_negated = source->guard_negated;
    inst->guard = decoder_source(decoder, &guard, PTX_PRED);
  }
  if (ask_known_family(decoder, source, inst)) return;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    if (families[f](decoder, source, inst) == DECODE_NOT_MINE) continue;
    size_t place = known_place(source);
    decoder->known[place].like = source;
    decoder->known[place].family = f;
    return;
  }
  decoder_error(decoder, source, "unknown instruction");
}

static void decode_instruction(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  decoder->source = source;
  inst->source = source;
  inst->touch_start = decoder->program->touch_count;
  decode_operation(decoder, source, inst);
  inst->touch_count = (uint16_t)(decoder->program->touch_count - inst->touch_start);
}

// The end of a function's body returns.
static const PtxInstruction implicit_return = {.opcode = "ret", .guard = -1};

static void decode_function(Decoder *decoder, Function *function) {
  decoder->function = function;
  const PtxFunction *ptx = function->ptx;
  Inst *code = decoder->program->code + function->start;
  for (int i = 0; i < ptx->instruction_count && !decoder->failed; i++)
    decode_instruction(decoder, &ptx->instructions[i], &code[i]);
  if (!decoder->failed) decode_instruction(decoder, &implicit_return, &code[ptx->instruction_count]);
  if (!decoder->failed) cfg_analyse(decoder->program, function);
}

static bool names_variable(const PtxOperand *operands, int count, const PtxVariable *variable) {
  for (int i = 0; i < count; i++)
    if (operands[i].variable == variable || names_variable(operands[i].items, operands[i].item_count, variable))
      return true;
  return false;
}

// Whether a function of the program names the variable: a kernel is given only the shared memory that it uses.
static bool is_used(const Program *program, const PtxVariable *variable) {
  for (int f = 0; f < program->function_count; f++) {
    const PtxFunction *ptx = program->functions[f].ptx;
    for (int i = 0; i < ptx->instruction_count; i++)
      if (names_variable(ptx->instructions[i].operands, ptx->instructions[i].operand_count, variable)) return true;
  }
  return false;
}

Program *program_decode(const PtxModule *module, const PtxFunction *entry, const Place *variables, int variable_count,
                        EmulatorError *error) {
  Program *program = calloc(1, sizeof *program);
  if (!program) out_of_memory();
  program->module = module;
  program->register_bytes = 64;  // slot 0 is nobody's
  Decoder decoder = {.program = program, .module = module, .error = error};
  collect_functions(program, entry);
  for (int f = 0; f < program->function_count; f++) {
    Function *function = &program->functions[f];
    function->start = program->count;
    program->count += (uint32_t)function->ptx->instruction_count + 1;
    function->end = program->count;
    place_registers(&decoder, function);
    place_variables(&decoder, function);
  }

  // Module-level shared variables and the dynamic array follow the functions' own.
  Place *places = decoder_allocate(&decoder, ((size_t)variable_count + 1) * sizeof(Place));
  uint64_t dynamic_alignment = 16;
  for (int i = 0; i < variable_count; i++) {
    places[i] = variables[i];
    const PtxVariable *variable = variables[i].variable;
    if (variable->space != PTX_SHARED || !is_used(program, variable)) continue;
    if (variable->is_extern && variable->alignment > dynamic_alignment) dynamic_alignment = variable->alignment;
    if (variable->is_extern) continue;
    if (variable->size > MAX_STATIC_SHARED || program->shared_size > MAX_STATIC_SHARED) {
      decoder_fail(&decoder, variable->line, "%s is too large", variable->name);
      continue;
    }
    program->shared_size = align_up(program->shared_size, variable->alignment);
    places[i].address = SHARED_BASE + program->shared_size;
    program->shared_size += variable->size;
  }
  program->dynamic_offset = align_up(program->shared_size, dynamic_alignment);
  for (int i = 0; i < variable_count; i++)
    if (places[i].variable->space == PTX_SHARED && places[i].variable->is_extern)
      places[i].address = SHARED_BASE + program->dynamic_offset;
  if (program->shared_size > MAX_STATIC_SHARED) decoder_fail(&decoder, entry->line, "too much static shared memory");
  decoder.variables = places;
  decoder.variable_count = variable_count;

  if (program->function_count > MAX_FUNCTIONS)
    decoder_fail(&decoder, entry->line, "a kernel calls at most %d functions", MAX_FUNCTIONS);
  if (!decoder.failed) measure_local(program);
  if (program->local_size > MAX_LOCAL)
    decoder_fail(&decoder, entry->line,
                 "a thread has at most %d bytes of local memory, the kernel's functions together go beyond", MAX_LOCAL);
  program->code = decoder_allocate(&decoder, program->count * sizeof(Inst));
  for (int f = 0; f < program->function_count && !decoder.failed; f++)
    decode_function(&decoder, &program->functions[f]);
  free(decoder.constant_buckets);
  if (!decoder.failed) wgmma_watch_program(program);
  if (!decoder.failed) return program;
  program_free(program);
  return NULL;
}
