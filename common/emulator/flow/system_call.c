// printf and assert in kernels: calls of functions that nvcc leaves to the system. CUDA C++ programming guide, "Formatted
// output" and "Assertion".
#include "system_call.h"

#include <stdio.h>
#include <string.h>

#include "../check/hazard.h"
#include "../memory/memory.h"
#include "../warp/lanes.h"

enum { MAX_ARGUMENTS = 5, TEXT_SIZE = 512, LINE_SIZE = 2048 };

// Where each argument lies for a lane.
typedef struct SystemCall {
  int argument_count;
  Slot arguments[MAX_ARGUMENTS];
  int strides[MAX_ARGUMENTS], sizes[MAX_ARGUMENTS];
  bool has_result;
  Slot result;
  int result_stride;
} SystemCall;

static uint64_t argument(Warp *warp, const SystemCall *call, int index, int lane) {
  uint64_t value = 0;
  memcpy(&value, SLOT(warp, call->arguments[index], const u8) + lane * call->strides[index],
         (size_t)call->sizes[index]);
  return value;
}

// A string of the kernel's, cut to the buffer; "(null)" when there is none at the address.
static void read_text(const Warp *warp, int lane, uint64_t address, char *text, size_t size) {
  size_t used = 0;
  while (used + 1 < size && memory_peek(warp, lane, address + used, &text[used], 1) && text[used]) used++;
  text[used] = 0;
  if (used == 0 && !memory_peek(warp, lane, address, text, 1)) snprintf(text, size, "(null)");
}

// ---- vprintf(format, arguments) ----

// Copies one conversion ("%-8.3lld") without its length letters. Returns its last letter, 0 at a broken one.
static char copy_conversion(const char **format, char spec[32]) {
  size_t used = 0;
  spec[used++] = *(*format)++;
  while (**format && strchr("-+ #0123456789.*", **format) && used < 24) spec[used++] = *(*format)++;
  while (**format && strchr("hlqLjzt", **format)) (*format)++;
  char letter = **format;
  if (letter) (*format)++;
  spec[used] = 0;
  return letter;
}

// Whether a width or precision of a conversion has more than three digits: no line is so long.
static bool is_too_wide(const char *spec) {
  int digits = 0;
  for (; *spec && digits <= 3; spec++) digits = *spec >= '0' && *spec <= '9' ? digits + 1 : 0;
  return digits > 3;
}

// Takes the next argument of 4 or 8 bytes from the buffer, aligned to its size.
static uint64_t next_argument(const Warp *warp, int lane, uint64_t buffer, uint64_t *offset, size_t size) {
  uint64_t value = 0;
  *offset = (*offset + size - 1) / size * size;
  memory_peek(warp, lane, buffer + *offset, &value, size);
  *offset += size;
  return value;
}

// Whether a conversion's argument is 8 bytes wide: a double, a pointer, or marked l, j, z, t.
static bool is_wide(const char *start, const char *end, char letter) {
  if (strchr("aAeEfFgGsp", letter)) return true;
  for (; start < end; start++)
    if (strchr("lqjzt", *start)) return true;
  return false;
}

// Formats one conversion into out. Widths given as * are not supported by the conversion itself: they count as absent.
static int format_one(const Warp *warp, int lane, uint64_t buffer, uint64_t *offset, const char **format, char *out,
                      size_t size) {
  char spec[40], text[TEXT_SIZE];
  const char *start = *format;
  char letter = copy_conversion(format, spec);
  size_t end = strlen(spec);
  if (letter == '%') return snprintf(out, size, "%%");
  if (!letter || !strchr("diouxXcaAeEfFgGsp", letter) || strchr(spec, '*') || is_too_wide(spec))
    return snprintf(out, size, "%.*s", (int)(*format - start), start);
  bool wide = is_wide(start, *format, letter);
  uint64_t value = next_argument(warp, lane, buffer, offset, wide ? 8 : 4);
  if (strchr("di", letter)) {
    memcpy(spec + end, "lld", 4);
    return snprintf(out, size, spec, wide ? (long long)value : (long long)(int32_t)value);
  }
  if (strchr("ouxX", letter)) {
    snprintf(spec + end, sizeof spec - end, "ll%c", letter);
    return snprintf(out, size, spec, (unsigned long long)value);
  }
  snprintf(spec + end, sizeof spec - end, "%c", letter);
  if (letter == 'c') return snprintf(out, size, spec, (int)value);
  if (letter == 'p') return snprintf(out, size, "0x%llx", (unsigned long long)value);
  if (letter != 's') return snprintf(out, size, spec, f64_from_bits(value));
  read_text(warp, lane, value, text, sizeof text);
  return snprintf(out, size, spec, text);
}

static void print_formatted(Warp *warp, const Inst *inst, Mask mask) {
  const SystemCall *call = inst->extra;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    char format[TEXT_SIZE], line[LINE_SIZE];
    size_t used = 0;
    uint64_t offset = 0;
    read_text(warp, lane, argument(warp, call, 0, lane), format, sizeof format);
    for (const char *at = format; *at && used + 1 < sizeof line;) {
      if (*at != '%') {
        line[used++] = *at++;
        continue;
      }
      int length = format_one(warp, lane, argument(warp, call, 1, lane), &offset, &at, line + used, sizeof line - used);
      if (length > 0) used += (size_t)length < sizeof line - used ? (size_t)length : sizeof line - used - 1;
    }
    fwrite(line, 1, used, stdout);
    if (call->has_result) memcpy(SLOT(warp, call->result, u8) + lane * call->result_stride, &(u32){0}, 4);
  }
}

// ---- __assertfail(message, file, line, function, size of a character) ----

static void assert_failed(Warp *warp, const Inst *inst, Mask mask) {
  const SystemCall *call = inst->extra;
  int lane = __builtin_ctz(mask);
  char message[128], file[128];
  read_text(warp, lane, argument(warp, call, 0, lane), message, sizeof message);
  read_text(warp, lane, argument(warp, call, 1, lane), file, sizeof file);
  hazard_stop(warp, inst, lane, HAZARD_TRAP, 0, 0, "assertion failed: %s, %s:%u", message, file,
              (unsigned)argument(warp, call, 2, lane));
}

// ---- decoding ----

static bool argument_place(Decoder *decoder, const PtxOperand *operand, Slot *slot, int *stride, int *size) {
  if (operand->kind != PTX_OPERAND_VARIABLE || !operand->variable) return false;
  const Place *place = decoder_place(decoder, operand->variable);
  if (!place || !place->stride) return false;
  *slot = place->slot;
  *stride = place->stride;
  *size = operand->variable->size < 8 ? (int)operand->variable->size : 8;
  return true;
}

DecodeResult system_call_decode(Decoder *decoder, const PtxInstruction *source, const char *name,
                                const PtxOperand *results, const PtxOperand *arguments, Inst *inst) {
  bool prints = !strcmp(name, "vprintf"), asserts = !strcmp(name, "__assertfail");
  int needed = prints ? 2 : 5;
  if (!prints && !asserts)
    return decoder_error(decoder, source, "function %s has no body, and the system provides only printf and assert",
                         name);
  if (!arguments || arguments->item_count != needed)
    return decoder_error(decoder, source, "%s takes %d arguments", name, needed);
  SystemCall *call = decoder_allocate(decoder, sizeof *call);
  call->argument_count = needed;
  for (int i = 0; i < needed; i++)
    if (!argument_place(decoder, &arguments->items[i], &call->arguments[i], &call->strides[i], &call->sizes[i]))
      return decoder_error(decoder, source, "argument %d of %s is no .param variable", i + 1, name);
  int size = 0;
  call->has_result = results && results->item_count == 1 &&
                     argument_place(decoder, &results->items[0], &call->result, &call->result_stride, &size) &&
                     size == 4;
  inst->extra = call;
  inst->execute = prints ? print_formatted : assert_failed;
  return DECODED;
}
