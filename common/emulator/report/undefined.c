// Values that nothing defines: see undefined.h.
#include "undefined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>

#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "../warp/warp.h"
#include "hazard.h"
#include "source_line.h"

enum {
  UNIT = 64,                        // slots start at multiples of it
  MOST_BYTES = 16,                  // of an element
  MOST_TOUCHES = 40,                // registers of an instruction that is tried with other values
  VARIANTS = 2 * LANES,             // sources of one instruction: for each lane a whole one and one of padding
  COMPUTED_FLAG = (int)(1u << 30),  // of a source's number: the value was computed from what the source brought
};

static const uint8_t all_bits[MOST_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                             0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

typedef uint8_t Values[LANES * MOST_BYTES];  // of a register; of a predicate a Mask

// The sources that are the same instruction's.
typedef struct Sources {
  const Inst *inst;
  UndefinedSource of[VARIANTS];
} Sources;

typedef struct Undefined {
  uint8_t *bits;      // the registers once more: a bit is set where the register's is undefined
  uint32_t *numbers;  // by unit of a slot and lane: of the value's source
  uint8_t *units;     // by unit of a slot: some bit of the register is undefined
  uint32_t count;     // of those
  Mask carry;         // the condition code is undefined
  uint32_t carry_number;
  bool parameters;  // a function's parameters have undefined bytes
  Sources *sources;
  int source_count, source_capacity;
} Undefined;

static Undefined *undefined_of(Warp *warp) {
  if (warp->undefined) return warp->undefined;
  size_t bytes = warp_launch(warp)->program->register_bytes, units = bytes / UNIT + 1;
  Undefined *undefined = host_allocate(1, sizeof *undefined);
  undefined->bits = aligned_alloc(UNIT, units * UNIT);
  if (!undefined->bits) out_of_memory();
  memset(undefined->bits, 0, units * UNIT);
  undefined->numbers = host_allocate(units * LANES, sizeof *undefined->numbers);
  undefined->units = host_allocate(units, 1);
  return warp->undefined = undefined;
}

void undefined_free(Undefined *undefined) {
  if (!undefined) return;
  free(undefined->bits);
  free(undefined->numbers);
  free(undefined->units);
  free(undefined->sources);
  free(undefined);
}

// ---- registers ----

static bool any(const uint8_t *bytes, int size) {
  for (int i = 0; i < size; i++)
    if (bytes[i]) return true;
  return false;
}

// The lanes whose element in the slot has an undefined bit.
static Mask lanes_of(const Undefined *undefined, Slot slot, int size) {
  if (!undefined->units[slot / UNIT]) return 0;
  const uint8_t *bits = undefined->bits + slot;
  Mask lanes = 0;
  if (size == 1) return *(const Mask *)(const void *)bits;
  for (int lane = 0; lane < LANES; lane++) lanes |= (Mask)any(bits + lane * size, size) << lane;
  return lanes;
}

static void count_unit(Warp *warp, Slot slot, bool now) {
  Undefined *undefined = warp->undefined;
  uint8_t *unit = &undefined->units[slot / UNIT];
  undefined->count += (uint32_t)now - *unit;
  *unit = now;
  warp->has_undefined = undefined->count || undefined->carry || undefined->parameters;
}

// Sets the undefined bits of a lane's element.
static void set_bits(Warp *warp, int lane, Slot slot, int size, const uint8_t *bits, uint32_t number) {
  Undefined *undefined = warp->undefined;
  uint8_t *own = undefined->bits + slot;
  if (size == 1)
    *(Mask *)(void *)own = (*(Mask *)(void *)own & ~(1u << lane)) | (Mask)(bits[0] & 1) << lane;
  else
    memcpy(own + lane * size, bits, (size_t)size);
  if (!any(bits, size)) return;
  undefined->numbers[slot / UNIT * LANES + (Slot)lane] = number;
  count_unit(warp, slot, true);
}

void undefined_clear(Warp *warp, Mask lanes, Slot slot, int size) {
  Undefined *undefined = warp->undefined;
  if (!undefined || !undefined->units[slot / UNIT]) return;
  uint8_t *own = undefined->bits + slot;
  if (size == 1) *(Mask *)(void *)own &= ~lanes;
  for (Mask rest = size == 1 ? 0 : lanes; rest; rest &= rest - 1)
    memset(own + __builtin_ctz(rest) * size, 0, (size_t)size);
  count_unit(warp, slot, lanes_of(undefined, slot, size) != 0);
}

// ---- sources ----

// The number of a lane's source, from 1.
static uint32_t add_source(Undefined *undefined, const Inst *inst, int lane, const UndefinedSource *source) {
  int s = undefined->source_count - 1;
  while (s >= 0 && undefined->sources[s].inst != inst) s--;
  if (s < 0) {
    undefined->sources =
        host_grow(undefined->sources, undefined->source_count, &undefined->source_capacity, sizeof *undefined->sources);
    s = undefined->source_count++;
    undefined->sources[s].inst = inst;
  }
  int variant = 2 * lane + source->whole;
  undefined->sources[s].of[variant] = *source;
  return (uint32_t)(s * VARIANTS + variant) + 1;
}

// What has been reported of an instruction is not followed again: more of it would be the same finding.
static bool was_reported(const Warp *warp, const Inst *inst) {
  return __atomic_load_n(&warp_launch(warp)->undefined_reported[pc_of_inst(warp, inst)], __ATOMIC_RELAXED);
}

void undefined_add(Warp *warp, const Inst *inst, int lane, const UndefinedSource *source, Slot slot, int size,
                   const uint8_t *bits) {
  if (was_reported(warp, inst)) return;
  Undefined *undefined = undefined_of(warp);
  set_bits(warp, lane, slot, size, bits ? bits : all_bits, add_source(undefined, inst, lane, source));
}

// ---- reports ----

// ", and line 12 uses the value"; nothing where the line is the load's own.
static void name_use(const Warp *warp, const Inst *load, const Inst *use, char *text, size_t size) {
  const PtxModule *module = warp_launch(warp)->program->module;
  LineText own = named_line(module, load->source), other = named_line(module, use->source);
  text[0] = 0;
  if (strcmp(own.text, other.text)) snprintf(text, size, ", and %s uses the value", other.text);
}

static void report_shuffle(const Warp *warp, const Inst *inst, int lane, int from, const char *use) {
  bool existed = warp->index * LANES + from < warp->block->thread_count;
  bool left = existed && !(warp->live >> from & 1);
  hazard_report(
      warp, inst, lane, HAZARD_DIVERGENT_ALIGNED, 0, 0,
      "lane %d reads from lane %d, which %s: an undefined value%s\nUse the value only where the source lane takes "
      "part: if (lane + offset < number of lanes). A lane takes part if the member mask names it and it has not "
      "exited.",
      lane, from,
      left      ? "has exited"
      : existed ? "is not in the member mask"
                : "the block does not have",
      use);
}

static void report_undefined_use(const Warp *warp, const Inst *inst, int lane, const UndefinedSource *source,
                                 const char *use) {
  UnwrittenText text;
  if (source->kind == UNWRITTEN)
    text = unwritten_text(warp_launch(warp), inst, source->region, source->offset, use);
  else
    snprintf(text.text, sizeof text.text, "nothing was ever written to this local memory%s", use);
  hazard_report(warp, inst, lane, HAZARD_UNINITIALISED_READ, source->address, source->size, "%s", text.text);
}

static void report_use(Warp *warp, const Inst *use, uint32_t number) {
  uint32_t index = (number & ~(uint32_t)COMPUTED_FLAG) - 1, variant = index % VARIANTS;
  const Sources *sources = &warp->undefined->sources[index / VARIANTS];
  const UndefinedSource *source = &sources->of[variant];
  int lane = (int)variant / 2;
  if (was_reported(warp, sources->inst)) return;
  __atomic_store_n(&warp_launch(warp)->undefined_reported[pc_of_inst(warp, sources->inst)], 1, __ATOMIC_RELAXED);
  char text[120];
  name_use(warp, sources->inst, use, text, sizeof text);
  if (source->kind == SHUFFLED)
    report_shuffle(warp, sources->inst, lane, source->size, text);
  else
    report_undefined_use(warp, sources->inst, lane, source, text);
}

void undefined_use(Warp *warp, const Inst *inst, Mask lanes, Slot slot, int size) {
  Undefined *undefined = warp->undefined;
  if (!undefined) return;
  Mask used = lanes_of(undefined, slot, size) & lanes;
  for (Mask rest = used; rest; rest &= rest - 1)
    report_use(warp, inst, undefined->numbers[slot / UNIT * LANES + (Slot)__builtin_ctz(rest)]);
  if (used) undefined_clear(warp, used, slot, size);
}

const uint8_t *undefined_store(Warp *warp, const Inst *inst, int lane, Slot slot, int size, bool to_local) {
  Undefined *undefined = warp->undefined;
  const uint8_t *bits = undefined->bits + slot + lane * size;
  if (!undefined->units[slot / UNIT] || !any(bits, size)) return NULL;
  uint32_t number = undefined->numbers[slot / UNIT * LANES + (Slot)lane];
  uint32_t index = (number & ~(uint32_t)COMPUTED_FLAG) - 1;
  const UndefinedSource *source = &undefined->sources[index / VARIANTS].of[index % VARIANTS];
  bool moves_local = to_local && source->kind == UNWRITTEN_LOCAL;
  if (!(number & (uint32_t)COMPUTED_FLAG) && (!source->whole || moves_local)) return bits;
  undefined_use(warp, inst, 1u << lane, slot, size);
  return NULL;
}

// ---- parameters of functions ----

void undefined_copy(Warp *warp, int lane, Slot from, int from_stride, int from_offset, Slot to, int to_stride,
                    int to_offset, int size) {
  Undefined *undefined = warp->undefined;
  if (!undefined || size == 0) return;
  const uint8_t *source = undefined->bits + from + lane * from_stride + from_offset;
  uint8_t *target = undefined->bits + to + lane * to_stride + to_offset;
  bool now = any(source, size);
  if (!now && !any(target, size)) return;
  memcpy(target, source, (size_t)size);
  if (!now) return;
  undefined->numbers[to / UNIT * LANES + (Slot)lane] = undefined->numbers[from / UNIT * LANES + (Slot)lane];
  undefined->parameters = true;
  count_unit(warp, to, true);
}

// ---- trying other values ----

// The function that does what the instruction does, without what watches it.
static Execute *pure_function(const Warp *warp, const Inst *inst) {
  const Program *program = warp_launch(warp)->program;
  const Watch *watch = program->watches ? program->watches[pc_of_inst(warp, inst)] : NULL;
  return watch ? watch->execute : inst->unwatched ? inst->unwatched : inst->execute;
}

static size_t bytes_of(const Touch *touch) { return touch->size == 1 ? sizeof(Mask) : (size_t)touch->size * LANES; }

// What stands in the place of undefined bits.
typedef enum Trial { ZEROS, ONES, EQUAL, ABOVE, BELOW, RANDOM, TRIALS = RANDOM + 3 } Trial;

// The other of the two operands that an instruction may compare. Where only one value of a register makes a difference,
// it is that.
static const uint8_t *other_operand(Warp *warp, const Inst *inst, const Touch *touch) {
  Slot other = touch->slot == inst->a ? inst->b : touch->slot == inst->b ? inst->a : 0;
  return other && touch->size > 1 ? warp->registers + other : NULL;
}

static void fill_trial(uint8_t *bytes, size_t size, Trial trial, const uint8_t *other, int element, uint64_t seed) {
  uint64_t state = seed;
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t random = trial == ZEROS ? 0 : trial == ONES ? ~0ull : random_next(&state);
    memcpy(bytes + i, &random, size - i < sizeof random ? size - i : sizeof random);
  }
  if (!other || trial < EQUAL || trial > BELOW) return;
  memcpy(bytes, other, size);
  for (size_t i = 0; i < size && trial != EQUAL; i += (size_t)element) {
    uint64_t value = 0;
    size_t part = element < 8 ? (size_t)element : 8;
    memcpy(&value, bytes + i, part);
    value += trial == ABOVE ? 1 : -1ull;
    memcpy(bytes + i, &value, part);
  }
}

// An instruction's registers, as they are before it and after it.
typedef struct Experiment {
  const Touch *touches;
  int count;
  Values before[MOST_TOUCHES], after[MOST_TOUCHES], changed[MOST_TOUCHES];
  Mask carry_before, carry_after, carry_changed;
} Experiment;

static void put_back(Warp *warp, const Experiment *experiment) {
  for (int t = 0; t < experiment->count; t++)
    memcpy(warp->registers + experiment->touches[t].slot, experiment->before[t], bytes_of(&experiment->touches[t]));
  warp->carry = experiment->carry_before;
}

static void replace_undefined(Warp *warp, const Inst *inst, const Experiment *experiment, Trial trial) {
  const Undefined *undefined = warp->undefined;
  for (int t = 0; t < experiment->count; t++) {
    const Touch *touch = &experiment->touches[t];
    if (touch->written || !undefined->units[touch->slot / UNIT]) continue;
    Values values;
    uint8_t *own = warp->registers + touch->slot;
    const uint8_t *bits = undefined->bits + touch->slot;
    fill_trial(values, bytes_of(touch), trial, other_operand(warp, inst, touch), touch->size,
               (uint64_t)trial << 32 | touch->slot);
    for (size_t i = 0; i < bytes_of(touch); i++)
      own[i] = (uint8_t)((experiment->before[t][i] & ~bits[i]) | (values[i] & bits[i]));
  }
  warp->carry ^= undefined->carry & (trial & 1 ? FULL_MASK : 0x5a5a5a5au);
}

// Executes the instruction with several values in the place of undefined bits, and finds which bits of the results
// change.
static void try_values(Warp *warp, const Inst *inst, Mask exec, Experiment *experiment) {
  Execute *execute = pure_function(warp, inst);
  InstCounts *counts = warp_counts(warp, inst), counted = *counts;
  for (int t = 0; t < experiment->count; t++)
    memcpy(experiment->before[t], warp->registers + experiment->touches[t].slot, bytes_of(&experiment->touches[t]));
  experiment->carry_before = warp->carry;
  memset(experiment->changed, 0, sizeof experiment->changed[0] * (size_t)experiment->count);
  experiment->carry_changed = 0;
  warp->rehearses = true;
  for (int trial = -1; trial < TRIALS; trial++) {
    put_back(warp, experiment);
    if (trial >= 0) replace_undefined(warp, inst, experiment, (Trial)trial);
    execute(warp, inst, exec);
    for (int t = 0; t < experiment->count; t++) {
      const Touch *touch = &experiment->touches[t];
      const uint8_t *result = warp->registers + touch->slot;
      if (!touch->written) continue;
      if (trial < 0) memcpy(experiment->after[t], result, bytes_of(touch));
      for (size_t i = 0; i < bytes_of(touch); i++) experiment->changed[t][i] |= result[i] ^ experiment->after[t][i];
    }
    if (trial < 0) experiment->carry_after = warp->carry;
    experiment->carry_changed |= warp->carry ^ experiment->carry_after;
  }
  warp->rehearses = false;
  put_back(warp, experiment);
  *counts = counted;
}

// The source of a lane's results: of its own undefined operand, or of another lane's.
static uint32_t number_for(const Undefined *undefined, const Experiment *experiment, int lane) {
  uint32_t found = undefined->carry ? undefined->carry_number : 0;
  for (int t = 0; t < experiment->count; t++) {
    const Touch *touch = &experiment->touches[t];
    Mask lanes = touch->written ? 0 : lanes_of(undefined, touch->slot, touch->size);
    const uint32_t *numbers = undefined->numbers + touch->slot / UNIT * LANES;
    if (lanes >> lane & 1) return numbers[lane];
    if (lanes) found = numbers[__builtin_ctz(lanes)];
  }
  return found;
}

static void set_changed(Warp *warp, const Experiment *experiment, int t, Mask exec, bool moved,
                        const uint32_t numbers[LANES]) {
  const Touch *touch = &experiment->touches[t];
  undefined_clear(warp, exec, touch->slot, touch->size);
  for (Mask rest = exec; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), size = touch->size;
    uint8_t bits[MOST_BYTES];
    if (size == 1)
      bits[0] = *(const Mask *)(const void *)experiment->changed[t] >> lane & 1;
    else
      memcpy(bits, experiment->changed[t] + lane * size, (size_t)size);
    if (!any(bits, size) || !numbers[lane]) continue;
    if (!moved) memset(bits, 0xff, (size_t)size);
    set_bits(warp, lane, touch->slot, size, bits, numbers[lane] | (moved ? 0 : (uint32_t)COMPUTED_FLAG));
  }
}

// ---- execution ----

static bool is_pure(const Inst *inst) {
  const Instruction *row = inst->row;
  bool arithmetic = row->counter >= COUNTER_INST_INTEGER && row->counter <= COUNTER_INST_CONVERT;
  return inst->touch_count <= MOST_TOUCHES && (row->values == VALUES_COMPUTED || row->values == VALUES_MOVED ||
                                               (row->values == VALUES_BY_CLASS && arithmetic));
}

static bool is_guard(const Inst *inst, const Touch *touch) {
  return inst->guarded && touch->slot == inst->guard && !touch->written;
}

static bool reads_undefined(const Undefined *undefined, const Inst *inst, const Touch *touches) {
  if (undefined->carry) return true;
  for (int t = 0; t < inst->touch_count; t++)
    if (!touches[t].written && !is_guard(inst, &touches[t]) && undefined->units[touches[t].slot / UNIT]) return true;
  return false;
}

static void execute_pure(Warp *warp, const Inst *inst, const Touch *touches, Mask exec) {
  bool moved = inst->row->values == VALUES_MOVED;
  if (!reads_undefined(warp->undefined, inst, touches)) {
    for (int t = 0; t < inst->touch_count; t++)
      if (touches[t].written) undefined_clear(warp, exec, touches[t].slot, touches[t].size);
    inst->execute(warp, inst, exec);
    return;
  }
  Experiment experiment;
  experiment.touches = touches, experiment.count = inst->touch_count;
  uint32_t numbers[LANES];
  try_values(warp, inst, exec, &experiment);
  for (int lane = 0; lane < LANES; lane++) numbers[lane] = number_for(warp->undefined, &experiment, lane);
  for (int t = 0; t < inst->touch_count; t++)
    if (touches[t].written) set_changed(warp, &experiment, t, exec, moved, numbers);
  warp->undefined->carry = (warp->undefined->carry & ~exec) | (experiment.carry_changed & exec);
  if (experiment.carry_changed) warp->undefined->carry_number = numbers[__builtin_ctz(experiment.carry_changed)];
  inst->execute(warp, inst, exec);
}

static void execute_other(Warp *warp, const Inst *inst, const Touch *touches, Mask exec) {
  for (int t = 0; t < inst->touch_count; t++)
    if (touches[t].written)
      undefined_clear(warp, exec, touches[t].slot, touches[t].size);
    else if (!is_guard(inst, &touches[t]))
      undefined_use(warp, inst, exec, touches[t].slot, touches[t].size);
  inst->execute(warp, inst, exec);
}

// Whether the lanes execute the instruction depends on an undefined predicate: so do its results.
static void doubt_results(Warp *warp, const Inst *inst, const Touch *touches, Mask doubtful) {
  const uint32_t *numbers = warp->undefined->numbers + inst->guard / UNIT * LANES;
  for (int t = 0; t < inst->touch_count; t++)
    for (Mask rest = touches[t].written ? doubtful : 0; rest; rest &= rest - 1) {
      int lane = __builtin_ctz(rest);
      set_bits(warp, lane, touches[t].slot, touches[t].size, all_bits, numbers[lane] | (uint32_t)COMPUTED_FLAG);
    }
}

void undefined_execute(Warp *warp, const Inst *inst, Mask lanes, Mask exec) {
  const Touch *touches = touches_of(warp_launch(warp)->program, inst);
  bool pure = is_pure(inst);
  Mask doubtful = inst->guarded ? lanes_of(warp->undefined, inst->guard, 1) & lanes : 0;
  if (doubtful && !pure) undefined_use(warp, inst, doubtful, inst->guard, 1);
  if (exec && pure)
    execute_pure(warp, inst, touches, exec);
  else if (exec && inst->row->values == VALUES_OF_MEMORY)
    inst->execute(warp, inst, exec);
  else if (exec)
    execute_other(warp, inst, touches, exec);
  if (doubtful && pure) doubt_results(warp, inst, touches, doubtful);
}

// ---- bytes that nothing has written, where the bytes around them were ----

// ---- what was written around them ----

// A run of bytes that all were written, or all were not: offsets in the region.
typedef struct Run {
  uint64_t begin, end;
  Epoch write;  // of its first byte
} Run;

// The bytes of a variable, or of the region when no variable is known.
typedef struct Extent {
  const Launch *launch;
  const Region *region;
  uint64_t begin, end;
} Extent;

static Epoch write_at(const Extent *extent, uint64_t offset, uint64_t *run) {
  Cell cell;
  *run = (uint64_t)shadow_run(&extent->region->shadow, offset, (int)(extent->end - offset),
                              extent->launch->check.number, &cell);
  return cell.write;
}

static Run run_from(const Extent *extent, uint64_t begin) {
  uint64_t step;
  Run run = {begin, begin, begin < extent->end ? write_at(extent, begin, &step) : EPOCH_NONE};
  while (run.end < extent->end) {
    Epoch write = write_at(extent, run.end, &step);
    if ((write == EPOCH_NONE) != (run.write == EPOCH_NONE)) break;
    run.end += step;
  }
  return run;
}

// The run of bytes that nothing has written around an offset, and those before and after it; empty ones at the ends.
typedef struct Around {
  Run before, here, after;
} Around;

static Around runs_around(const Extent *extent, uint64_t offset) {
  Around around = {.before = {extent->begin, extent->begin, EPOCH_NONE}};
  for (Run run = run_from(extent, extent->begin); run.begin < extent->end; run = run_from(extent, run.end)) {
    if (offset < run.end) {
      around.here = run;
      break;
    }
    around.before = run;
  }
  around.after = run_from(extent, around.here.end);
  return around;
}

// ---- padding ----

typedef struct Padding {
  uint64_t row, pitch;  // bytes that are written, and bytes from row to row; 0: it is none
} Padding;

// Bytes are padding if they follow a row, and the next row, or the row before, is as long and has as much behind it.
static Padding find_padding(const Extent *extent, const Around *around) {
  uint64_t row = around->before.end - around->before.begin, pad = around->here.end - around->here.begin;
  Padding padding = {row, row + pad};
  if (row == 0 || around->before.write == EPOCH_NONE || (around->before.begin - extent->begin) % (row + pad))
    return (Padding){0, 0};
  if (around->after.end - around->after.begin == row) return padding;
  bool is_last = around->here.end == extent->end && around->before.begin >= extent->begin + row + pad;
  if (!is_last) return (Padding){0, 0};
  Around former = runs_around(extent, around->before.begin - 1);
  bool alike = former.here.write == EPOCH_NONE && former.here.end - former.here.begin == pad &&
               former.before.end - former.before.begin == row;
  return alike ? padding : (Padding){0, 0};
}

// Bytes of an element that the instruction reads; 1 when it does not say.
static uint64_t element_bytes(const Inst *inst) {
  size_t size = ptx_type_size(ptx_instruction_type(inst->source));
  return size ? size : 1;
}

// ---- the text ----

static void append_text(UnwrittenText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append_text(UnwrittenText *text, const char *format, ...) {
  size_t used = strlen(text->text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text->text + used, sizeof text->text - used, format, arguments);
  va_end(arguments);
}

static void add_padding(UnwrittenText *text, const char *name, const Padding *padding, uint64_t element) {
  bool columns = element > 1 && padding->row % element == 0 && padding->pitch % element == 0;
  uint64_t unit = columns ? element : 1;
  append_text(text, ": %s %llu to %llu of each row of %llu in %s", columns ? "columns" : "bytes",
              (unsigned long long)(padding->row / unit), (unsigned long long)(padding->pitch / unit - 1),
              (unsigned long long)(padding->pitch / unit), name);
  append_text(
      text,
      "\nRead only the %s that are written: does the shape of the operand, or its pitch, fit the rows? Or write the "
      "others as well.",
      columns ? "columns" : "bytes");
}

static void add_rest(UnwrittenText *text, const char *name, const Extent *extent, const Around *around) {
  const EpochLayout *layout = &extent->launch->check.epochs;
  const Inst *code = extent->launch->program->code;
  Epoch write = around->before.write;
  bool is_copy = write & EPOCH_KERNEL && is_asynchronous_copy(code[epoch_pc(layout, write)].row);
  append_text(text, ": bytes %llu to %llu of the %llu of %s", (unsigned long long)(around->here.begin - extent->begin),
              (unsigned long long)(around->here.end - extent->begin - 1),
              (unsigned long long)(extent->end - extent->begin), name);
  append_text(
      text,
      "\nWrite these bytes before they are read. What the data does not fill needs zeros, also where it is multiplied "
      "by "
      "0: 0 * NaN is NaN.%s",
      is_copy ? " A cp.async with fewer source bytes fills the rest with zeros." : "");
}

static void add_shared_extent(UnwrittenText *text, const Launch *launch, const Inst *load, const Region *region,
                              uint64_t offset) {
  uint64_t size;
  char name[100] = "the block's shared memory";
  const Place *place = shared_variable(launch, region->base + offset, &size);
  Extent extent = {launch, region, 0, region->size};
  if (place) {
    snprintf(name, sizeof name, "`%s`", variable_name(place->variable).text);
    extent.begin = place->address - region->base;
    extent.end = extent.begin + size < region->size ? extent.begin + size : region->size;
  }
  Around around = runs_around(&extent, offset);
  Padding padding = find_padding(&extent, &around);
  if (around.here.write != EPOCH_NONE) return;  // it has been written meanwhile
  if (padding.pitch)
    add_padding(text, name, &padding, element_bytes(load));
  else if (around.here.begin == extent.begin && around.here.end == extent.end)
    append_text(text, ": not to any byte of %s\nWrite it before it is read, in each block, with a barrier between.",
                name);
  else
    add_rest(text, name, &extent, &around);
}

UnwrittenText unwritten_text(const Launch *launch, const Inst *load, const Region *region, uint64_t offset,
                             const char *use) {
  UnwrittenText text = {""};
  append_text(&text, "nothing was ever written there%s", use);
  if (region->kind == REGION_SHARED) {
    add_shared_extent(&text, launch, load, region, offset);
  } else {
    append_text(&text, ": byte %llu of ", (unsigned long long)offset);
    if (region->name)
      append_text(&text, "`%s`", region->name);
    else
      append_text(&text, "an allocation of %llu bytes", (unsigned long long)region->size);
    append_text(
        &text, "\nWrite the bytes before the launch (cudaMemset, cudaMemcpy, an earlier kernel), or do not read them.");
  }
  return text;
}
