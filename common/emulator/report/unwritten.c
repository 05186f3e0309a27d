// Bytes that nothing has written, where the bytes around them were: see unwritten.h.
#include "unwritten.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../warp/instruction.h"
#include "variables.h"

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
  append_text(text, ": the padding of %s, %s %llu to %llu of rows of %llu", name, columns ? "columns" : "bytes",
              (unsigned long long)(padding->row / unit), (unsigned long long)(padding->pitch / unit - 1),
              (unsigned long long)(padding->pitch / unit));
  append_text(
      text,
      "\nRead only the %s that are written: does the shape of the operand, or its pitch, fit the rows? Or write zeros "
      "to the padding.",
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
