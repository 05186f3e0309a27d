// printf, assert, malloc, free and cudaGraphSetConditional in kernels: calls of functions that nvcc leaves to the
// system. new and delete call malloc and free. CUDA C++ programming guide, "Formatted output", "Assertion", "Dynamic
// global memory allocation" and "Conditional graph nodes".
#include "flow.h"

#include <stdio.h>
#include <string.h>

#include "../report/hazard.h"
#include "../memory/access.h"
#include "../warp/lanes.h"

enum { MAX_ARGUMENTS = 5, TEXT_SIZE = 512, LINE_SIZE = 2048 };

// Where each argument lies for a lane.
typedef struct SystemCall {
  int argument_count;
  Slot arguments[MAX_ARGUMENTS];
  int strides[MAX_ARGUMENTS], sizes[MAX_ARGUMENTS];
  Slot result;
  int result_stride, result_size;  // size 0: none
} SystemCall;

static uint64_t argument(Warp *warp, const SystemCall *call, int index, int lane) {
  uint64_t value = 0;
  memcpy(&value, SLOT(warp, call->arguments[index], const u8) + lane * call->strides[index],
         (size_t)call->sizes[index]);
  return value;
}

static void give_result(Warp *warp, const SystemCall *call, int lane, uint64_t value) {
  memcpy(SLOT(warp, call->result, u8) + lane * call->result_stride, &value, (size_t)call->result_size);
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
static bool is_wide_argument(const char *start, const char *end, char letter) {
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
  bool wide = is_wide_argument(start, *format, letter);
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
    give_result(warp, call, lane, 0);
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

// ---- malloc(size), free(address) ----

static void allocate_memory(Warp *warp, const Inst *inst, Mask mask) {
  const SystemCall *call = inst->extra;
  const Launch *launch = warp_launch(warp);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    const Region *region = region_add_heap(launch->global, argument(warp, call, 0, lane), launch->check.on);
    give_result(warp, call, lane, region ? region->base : 0);
  }
}

static void free_memory(Warp *warp, const Inst *inst, Mask mask) {
  const Launch *launch = warp_launch(warp);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    uint64_t address = argument(warp, inst->extra, 0, lane);
    if (!address) continue;
    const Region *near = NULL;
    Region *region = region_find(launch->global, address, &near);
    if (!region || !region->is_heap || region->base != address) {
      bool twice = !region && near && near->is_heap && near->base == address;
      hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, address, 1,
                  twice ? "free: this memory was freed already" : "free: no malloc in a kernel returned this address");
      return;
    }
    // To the checks it writes all of the memory: what other threads do there must come before it.
    access_write_lane(warp, inst, lane, &(Access){.region = region}, NULL, region->size);
    region_free_heap(launch->global, region, launch->program->asynchronous);
  }
}

// ---- cudaGraphSetConditional(handle, value) ----

// A handle is the address of a number in global memory: the value, with bit 32 set to show that there is one. CUDA
// leaves concurrent calls undefined, so to the checks this is an ordinary store.
static void set_conditional(Warp *warp, const Inst *inst, Mask mask) {
  const Launch *launch = warp_launch(warp);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    uint64_t handle = argument(warp, inst->extra, 0, lane), value = argument(warp, inst->extra, 1, lane) | 1ull << 32;
    Region *region = region_find(launch->global, handle, NULL);
    if (!region || region->base != handle || region->size != sizeof value || region->is_host) {
      hazard_stop(warp, inst, lane, HAZARD_OUT_OF_BOUNDS, handle, 8,
                  "cudaGraphSetConditional: this is no handle of cudaGraphConditionalHandleCreate, or its graph was "
                  "destroyed");
      return;
    }
    access_write_lane(warp, inst, lane, &(Access){.region = region}, &value, sizeof value);
  }
}

// ---- decoding ----

static const struct {
  const char *name;
  int arguments, result_size;
  bool allocates;
  Execute *execute;
} functions[] = {
    {"vprintf", 2, 4, false, print_formatted},
    {"__assertfail", 5, 0, false, assert_failed},
    {"malloc", 1, 8, true, allocate_memory},
    {"free", 1, 0, true, free_memory},
    {"cudaGraphSetConditional", 2, 0, false, set_conditional},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static bool argument_place(Decoder *decoder, const PtxOperand *operand, Slot *slot, int *stride, int *size) {
  if (operand->kind != PTX_OPERAND_VARIABLE || !operand->variable) return false;
  const Place *place = decoder_place(decoder, operand->variable);
  if (!place || !place->stride) return false;
  *slot = place->slot;
  *stride = place->stride;
  *size = operand->variable->size < 8 ? (int)operand->variable->size : 8;
  return true;
}

// A function's name as it is written in the source.
static const char *readable(const PtxModule *module, const char *name) {
  for (int i = 0; i < module->function_count; i++)
    if (!strcmp(module->functions[i].name, name)) return module->functions[i].readable;
  return name;
}

DecodeResult system_call_decode(Decoder *decoder, const PtxInstruction *source, const char *name,
                                const PtxOperand *results, const PtxOperand *arguments, Inst *inst) {
  int f = 0;
  while (f < FUNCTIONS && strcmp(name, functions[f].name)) f++;
  if (f == FUNCTIONS && !strncmp(name, "__cudaCDP", strlen("__cudaCDP")))
    return decoder_error(decoder, source, "%s: here no kernel launches kernels (dynamic parallelism)", name);
  if (f == FUNCTIONS)
    return decoder_error(
        decoder, source,
        "nothing defines the function %s, and the system provides only printf, assert, malloc, free and "
        "cudaGraphSetConditional",
        readable(decoder->module, name));
  int needed = functions[f].arguments, size = 0;
  if (!arguments || arguments->item_count != needed)
    return decoder_error(decoder, source, "%s takes %d argument%s", name, needed, needed > 1 ? "s" : "");
  SystemCall *call = decoder_allocate(decoder, sizeof *call);
  call->argument_count = needed;
  for (int i = 0; i < needed; i++)
    if (!argument_place(decoder, &arguments->items[i], &call->arguments[i], &call->strides[i], &call->sizes[i]))
      return decoder_error(decoder, source, "argument %d of %s is no .param variable", i + 1, name);
  if (results && results->item_count == 1 &&
      argument_place(decoder, &results->items[0], &call->result, &call->result_stride, &size) &&
      size == functions[f].result_size)
    call->result_size = size;
  inst->extra = call;
  inst->execute = functions[f].execute;
  decoder->program->allocates |= functions[f].allocates;
  return DECODED;
}
