// Errors of an instruction, and the meaning of its names: see decoder.h.
#include "decoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *decoder_allocate(Decoder *decoder, size_t size) { return program_allocate(decoder->program, size); }

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
    decoder_error(decoder, source, "has %d operand%s, needs %d", count, count == 1 ? "" : "s", low);
  else
    decoder_error(decoder, source, "has %d operand%s, needs %d to %d", count, count == 1 ? "" : "s", low, high);
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

// ---- names ----

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

void execute_nothing(Warp *warp, const Inst *inst, Mask mask) {
  (void)warp;
  (void)inst;
  (void)mask;
}
