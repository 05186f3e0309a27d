// Slots of operands: see operands.h.
#include "operands.h"

#include <stdlib.h>
#include <string.h>

#include "float16.h"
#include "host_memory.h"
#include "special.h"

enum { MAX_REGISTER_BYTES = 1 << 28 };

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

int slot_element_size(PtxType type) {
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
  program->constants =
      host_grow(program->constants, program->constant_count, &decoder->constant_capacity, sizeof(Constant));
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
  if ((own_size == 1) != (size == 1)) {
    decoder_error(decoder, decoder->source, "%%%s is %s", operand->name, size == 1 ? "no predicate" : "a predicate");
    return 0;
  }
  if (component > 2 && own_size != 0) component = 3;
  Program *program = decoder->program;
  for (int i = 0; i < program->special_count; i++) {
    const Special *special = &program->specials[i];
    if (special->id == id && special->component == component && special->size == size) return special->slot;
  }
  program->specials = host_grow(program->specials, program->special_count, &decoder->special_capacity, sizeof(Special));
  Slot slot = decoder_slot(decoder, size);
  program->specials[program->special_count++] = (Special){slot, size, id, component};
  return slot;
}

// ---- operands ----

static double literal_value(const PtxOperand *operand) {
  if (operand->kind != PTX_OPERAND_FLOAT) return 0;
  return operand->is_f32 ? f32_from_bits((uint32_t)operand->value) : f64_from_bits((uint64_t)operand->value);
}

// The bits of an integer read as a type of that size.
static bool integer_bits(int64_t value, size_t size, uint64_t *bits) {
  if (size == 0 || size > 8) return false;
  *bits = size == 8 ? (uint64_t)value : (uint64_t)value & ((1ull << 8 * (size < 2 ? 2 : size)) - 1);
  return true;
}

// The bits of an immediate read as type.
static bool immediate_bits(const PtxOperand *operand, PtxType type, uint64_t *bits) {
  bool is_float = operand->kind == PTX_OPERAND_FLOAT;
  double number = literal_value(operand);
  switch (type) {
  case PTX_F64: *bits = f64_bits(number); return is_float;
  case PTX_F32:
  case PTX_B32:
    // A 0f literal keeps its bits, also those of a NaN.
    *bits = is_float && !operand->is_f32 ? f32_bits((float)number) : (uint32_t)operand->value;
    return is_float || type == PTX_B32;
  case PTX_B64: *bits = is_float ? f64_bits(number) : (uint64_t)operand->value; return true;
  case PTX_F16: *bits = narrow((SmallFormat)FORMAT_F16, number, ROUND_NEAREST, false); return is_float;
  case PTX_BF16: *bits = narrow((SmallFormat)FORMAT_BF16, number, ROUND_NEAREST, false); return is_float;
  case PTX_PRED: *bits = operand->value != 0; return !is_float;
  default: return integer_bits(operand->value, ptx_type_size(type), bits) && !is_float;
  }
}

void decoder_touch(Decoder *decoder, Touch touch) {
  Program *program = decoder->program;
  program->touches = host_grow(program->touches, (int)program->touch_count, &decoder->touch_capacity, sizeof(Touch));
  program->touches[program->touch_count++] = touch;
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
  size_t stride = ((size_t)(reg->type == PTX_PRED ? 64 : slot_element_size(reg->type) * LANES) + 63) & ~(size_t)63;
  return slot + (Slot)((size_t)component * stride);
}

static Slot register_of_size(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, bool written,
                             int *size_out) {
  PtxType have;
  Slot slot = register_slot(decoder, operand, &have);
  int size = slot_element_size(have), need = slot_element_size(type);
  decoder_touch(decoder, (Touch){slot, written, (uint8_t)size});
  bool fits = (have == PTX_PRED) == (type == PTX_PRED) && (wide ? size >= need : size == need);
  if (!fits)
    decoder_error(decoder, decoder->source, "register %s is .%s, the instruction needs .%s",
                  decoder->function->ptx->registers[operand->index].name, ptx_type_name(have), ptx_type_name(type));
  if (size_out) *size_out = size;
  return slot;
}

static Slot source_slot(Decoder *decoder, const PtxOperand *operand, PtxType type, bool wide, int *size_out) {
  int size = slot_element_size(type);
  if (size_out) *size_out = size;
  uint64_t bits = 0;
  switch (operand->kind) {
  case PTX_OPERAND_REGISTER: return register_of_size(decoder, operand, type, wide, false, size_out);
  case PTX_OPERAND_INTEGER:
  case PTX_OPERAND_FLOAT:
    if (immediate_bits(operand, type, &bits)) return decoder_constant(decoder, bits, size);
    decoder_error(decoder, decoder->source, "an immediate does not fit .%s", ptx_type_name(type));
    return 0;
  case PTX_OPERAND_SPECIAL:
    if (size <= 8) return special_slot(decoder, operand, size);
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
  if (size_out) *size_out = slot_element_size(type);
  if (operand->kind == PTX_OPERAND_SINK) return decoder_slot(decoder, slot_element_size(type));
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
