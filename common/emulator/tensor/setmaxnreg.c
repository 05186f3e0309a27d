// setmaxnreg: a warp gives registers back to its block's pool, or takes some from there. PTX ISA 9.7.19.5.
//
// Values are not touched: which registers a thread really needs is known to ptxas alone. What is checked is the
// arithmetic of the pool, which is the warps' registers at the start, and that the warps of a warpgroup go together.
#include "warpgroup.h"

#include <stdarg.h>
#include <stdio.h>

#include "../check/clocks.h"
#include "../report/hazard.h"
#include "../warp/warp.h"
#include "families.h"

enum {
  MIN_REGISTERS = 24,
  MAX_REGISTERS = 256,
  UNIT = 8,                   // registers are handed out in eights
  PARTITIONS = 4,             // of an SM: each has a quarter of its 65,536 registers and of its warps
  PARTITION_REGISTERS = 512,  // 32-lane registers of one
};

// ---- what a launch allots ----

static int round_up(unsigned registers) { return ((int)registers + UNIT - 1) / UNIT * UNIT; }

// As many registers a thread as let `blocks` blocks run on one SM.
static int fitting(const unsigned threads[3], uint64_t blocks) {
  uint64_t product = threads[0];
  for (int axis = 1; axis < 3; axis++) product *= threads[axis] ? threads[axis] : 1;
  uint64_t warps = (product + LANES - 1) / LANES * blocks, in_partition = (warps + PARTITIONS - 1) / PARTITIONS;
  uint64_t registers = PARTITION_REGISTERS / in_partition / UNIT * UNIT;
  return registers > MAX_REGISTERS ? MAX_REGISTERS : (int)registers;
}

// The most that ptxas may take, 0 when it cannot tell and ignores setmaxnreg (its message C7508): from
// __maxnreg__(registers) and from __launch_bounds__(threads, blocks) the lower one. Without either, but with a number
// of threads, ptxas 13.0 takes one block if the kernel needs so many registers that no more fit, else it ignores
// setmaxnreg. The need is not in the text: here it is one.
static int most_registers(const PtxFunction *entry) {
  const unsigned *threads = entry->required_threads[0] ? entry->required_threads : entry->max_threads;
  int most = entry->max_registers ? round_up(entry->max_registers) : 0;
  if (!threads[0] || (most && !entry->min_blocks_per_sm)) return most;
  int fit = fitting(threads, entry->min_blocks_per_sm ? entry->min_blocks_per_sm : 1);
  return !most || fit < most ? fit : most;
}

// Registers a thread at the start, 0 when ptxas ignores setmaxnreg. ptxas 13.0 takes no more than the largest count of
// a setmaxnreg.inc in the kernel, if there is one.
static int allotted(const Program *program) {
  int most = most_registers(program->functions[0].ptx), largest = program->largest_inc;
  return largest && largest < most ? largest : most;
}

static const PtxFunction *entry_of(const Block *block) { return block->cluster->launch->program->functions[0].ptx; }

static int start_registers(const Block *block) { return allotted(block->cluster->launch->program); }

// Whether the registers at the start follow from the text alone.
static bool is_settled(const Block *block) {
  const PtxFunction *entry = entry_of(block);
  return entry->max_registers || (start_registers(block) && entry->min_blocks_per_sm);
}

static int registers_of(const Warp *warp) {
  return warp->share.adjusted ? warp->share.registers : start_registers(warp->block);
}

// Registers a thread of one warp that no warp of the block owns now.
static int spare(const Block *block) {
  int start = start_registers(block), owned = 0;
  for (int w = 0; w < block->warp_count; w++) owned += registers_of(&block->warps[w]);
  return start * block->warp_count - owned;
}

// ---- reports ----

static void report_setmaxnreg(const Warp *warp, const Inst *inst, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report_setmaxnreg(const Warp *warp, const Inst *inst, const char *format, ...) {
  char detail[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  hazard_report(warp, inst, __builtin_ctz(warp->live), HAZARD_SETMAXNREG, 0, 0, "%s", detail);
}

static void print_line(const Warp *warp, const Inst *inst, char *text, size_t size) {
  const char *file;
  int line;
  bool known = instruction_line(warp_launch(warp)->program->module, inst->source, &file, &line);
  snprintf(text, size, "%s %d", known ? "line" : "PTX line", known ? line : inst->source->line);
}

// ---- the warps of a warpgroup ----

static bool knows_share(const Warp *warp, const Warp *other) {
  const Clocks *known = warp->check.clocks[__builtin_ctz(warp->live)].known;
  return known && known->clock[warp_thread(other, other->share.lane)] >= other->share.clock;
}

// Whether two instructions ask for the same count by the same of .inc and .dec. Where the warps of a warpgroup have
// different parts, Triton's kernels execute such ones.
static bool asks_for_the_same(const Inst *a, const Inst *b) {
  return a->immediate == b->immediate && a->flags == b->flags;
}

// The n-th setmaxnreg of a warp must be the n-th of the other three, and come after their last ones by a barrier.
static void check_warpgroup(const Warp *warp, const Inst *inst) {
  const Block *block = warp->block;
  int first = warp->index / WARPGROUP_WARPS * WARPGROUP_WARPS, own = warp->share.adjusted + 1;
  for (int w = first; w < first + WARPGROUP_WARPS && w < block->warp_count; w++) {
    const Warp *other = &block->warps[w];
    if (other == warp) continue;
    if (!other->live && other->share.adjusted < own)
      report_setmaxnreg(warp, inst, "warp %d of the same warpgroup has exited without it", other->index);
    if (!other->share.adjusted) continue;
    char line[40];
    print_line(warp, other->share.last, line, sizeof line);
    if (other->share.adjusted == own && other->share.last != inst && asks_for_the_same(inst, other->share.last))
      hazard_report_graded(HAZARD_FORMAL, warp, inst, __builtin_ctz(warp->live), HAZARD_SETMAXNREG, 0, 0,
                           "warp %d executes another setmaxnreg than warp %d of its warpgroup, at %s. Both ask for the "
                           "same registers, and the hardware is known to execute them",
                           warp->index, other->index, line);
    else if (other->share.adjusted == own && other->share.last != inst)
      report_setmaxnreg(warp, inst, "warp %d executes another setmaxnreg than warp %d of its warpgroup, at %s",
                        warp->index, other->index, line);
    else if (other->share.adjusted > own || (other->share.adjusted == own - 1 && !knows_share(warp, other)))
      report_setmaxnreg(warp, inst,
                        "the warpgroup's warps have not synchronised since their last setmaxnreg (warp %d's, at %s)",
                        other->index, line);
  }
}

// A setmaxnreg that leaves the warp the registers that it has does not count for its warpgroup. Triton's warps execute
// such ones before they have met.
static bool changes_nothing(const Warp *warp, const Inst *inst) {
  return warp->share.adjusted && warp->share.registers == (int)inst->immediate;
}

static void check_met(const Warp *warp, const Inst *inst) {
  const Block *block = warp->block;
  int first = warp->index / WARPGROUP_WARPS * WARPGROUP_WARPS;
  for (int w = first; w < first + WARPGROUP_WARPS && w < block->warp_count; w++) {
    const Warp *other = &block->warps[w];
    if (other == warp || (other->share.adjusted == warp->share.adjusted && knows_share(warp, other))) continue;
    hazard_report_graded(HAZARD_FORMAL, warp, inst, __builtin_ctz(warp->live), HAZARD_SETMAXNREG, 0, 0,
                         "the warpgroup's warps have not synchronised since their last setmaxnreg. This one changes "
                         "nothing, and the hardware is known to execute it");
    return;
  }
}

void setmaxnreg_check_exit(const Warp *warp) {
  if (!warp_launch(warp)->check.on) return;
  const Block *block = warp->block;
  int first = warp->index / WARPGROUP_WARPS * WARPGROUP_WARPS;
  for (int w = first; w < first + WARPGROUP_WARPS && w < block->warp_count; w++) {
    const Warp *other = &block->warps[w];
    if (other->share.adjusted <= warp->share.adjusted) continue;
    hazard_report(other, other->share.last, other->share.lane, HAZARD_SETMAXNREG, 0, 0,
                  "warp %d executes it and warp %d of the same warpgroup exits without it", other->index, warp->index);
    return;
  }
}

// ---- execution ----

// What is wrong with asking for so many registers; it does not stop the launch.
static void check_request(const Warp *warp, const Inst *inst, bool takes, int wanted) {
  if (!is_settled(warp->block)) {
    bool bounded = start_registers(warp->block) > 0;
    hazard_report_graded(HAZARD_NOTE, warp, inst, __builtin_ctz(warp->live), HAZARD_SETMAXNREG, 0, 0, "%s",
                         bounded ? "the kernel has __launch_bounds__ without a number of blocks: if ptxas cannot tell "
                                   "the registers at entry, it ignores setmaxnreg and says so (C7508)"
                                 : "ptxas ignores it (C7508): the kernel has neither __launch_bounds__ nor "
                                   "__maxnreg__(registers)");
  }
  if (!start_registers(warp->block)) return;
  int now = registers_of(warp);
  check_warpgroup(warp, inst);
  if (!is_settled(warp->block) && !warp->share.adjusted) return;
  if (takes && wanted < now)
    report_setmaxnreg(warp, inst, ".inc to %d registers a thread, and the warp has %d", wanted, now);
  if (!takes && wanted > now)
    report_setmaxnreg(warp, inst, ".dec to %d registers a thread, and the warp has %d", wanted, now);
}

static void execute_setmaxnreg(Warp *warp, const Inst *inst, Mask mask) {
  int wanted = (int)inst->immediate, lane = __builtin_ctz(mask);
  bool takes = inst->flags, first_try = !warp->share.asked;
  if (start_registers(warp->block) && changes_nothing(warp, inst)) {
    if (warp_launch(warp)->check.on) check_met(warp, inst);
    return;
  }
  if (first_try && warp_launch(warp)->check.on) check_request(warp, inst, takes, wanted);
  if (!start_registers(warp->block)) return;
  warp->share.asked = takes && wanted - registers_of(warp) > spare(warp->block);
  if (warp->share.asked) {
    warp_retry(warp, inst, mask);
    return;
  }
  warp->share = (RegisterShare){.registers = wanted,
                                .adjusted = warp->share.adjusted + 1,
                                .last = inst,
                                .lane = lane,
                                .clock = warp->check.clocks[lane].own};
  warp_counts(warp, inst)->registers += (uint64_t)wanted * LANES;
  warp->block->cluster->progress++;
}

// ---- deadlock ----

// "65,536"
static const char *with_comma(int number, char text[16]) {
  if (number < 1000)
    snprintf(text, 16, "%d", number);
  else
    snprintf(text, 16, "%d,%03d", number / 1000, number % 1000);
  return text;
}

// "240 + 240 + 32 registers a thread x 128": what the warpgroups have, or wait for.
static int describe_wishes(const Block *block, const Inst *code, char *text, size_t size) {
  int total = 0;
  size_t used = 0;
  for (int w = 0; w < block->warp_count; w++) {
    const Warp *warp = &block->warps[w];
    int wish = warp->share.asked ? (int)code[warp->groups[0].pc].immediate : registers_of(warp);
    total += wish * LANES;
    if (w % WARPGROUP_WARPS == 0 && used < size)
      used += (size_t)snprintf(text + used, size - used, "%s%d", w ? " + " : "", wish);
  }
  return total;
}

static const char *const fit_sum = "What all warpgroups have together must fit in what the launch gave: ask for less "
                                   "in .inc, release more in .dec, or "
                                   "let fewer blocks share an SM (the second number of __launch_bounds__).";

bool setmaxnreg_explain_deadlock(const Cluster *cluster) {
  const Inst *code = cluster->launch->program->code;
  for (int b = 0; b < cluster->block_count; b++)
    for (int w = 0; w < cluster->blocks[b].warp_count; w++) {
      const Block *block = &cluster->blocks[b];
      const Warp *warp = &block->warps[w];
      if (!warp->share.asked || !warp->live) continue;
      char wishes[200], need[16], given[16];
      int threads = block->warp_count * LANES, start = start_registers(block);
      with_comma(describe_wishes(block, code, wishes, sizeof wishes), need);
      hazard_stop(warp, &code[warp->groups[0].pc], __builtin_ctz(warp->live), HAZARD_SETMAXNREG, 0, 0,
                  "it waits forever: %s registers a thread x %d need %s, the launch gave %d x %d = %s\n%s", wishes,
                  WARPGROUP_WARPS * LANES, need, threads, start, with_comma(threads * start, given), fit_sum);
      return true;
    }
  return false;
}

// ---- decoding ----

// setmaxnreg.inc.sync.aligned.u32 registers;  .dec
DecodeResult decode_setmaxnreg(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"inc", "dec", "sync", "aligned", NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1, 1)) return DECODE_FAILED;
  bool takes = ptx_has(source, "inc");
  if (takes == ptx_has(source, "dec") || !ptx_has(source, "sync") || !ptx_has(source, "aligned"))
    return decoder_error(decoder, source, "needs .inc or .dec, and .sync.aligned");
  const PtxOperand *count = &source->operands[0];
  if (count->kind != PTX_OPERAND_INTEGER || count->value < MIN_REGISTERS || count->value > MAX_REGISTERS ||
      count->value % UNIT)
    return decoder_error(decoder, source, "the number of registers is an immediate, a multiple of %d from %d to %d",
                         UNIT, MIN_REGISTERS, MAX_REGISTERS);
  inst->immediate = count->value;
  inst->flags = takes;
  if (takes && count->value > decoder->program->largest_inc) decoder->program->largest_inc = (int)count->value;
  inst->converge = CONVERGE_ALIGNED;
  inst->execute = execute_setmaxnreg;
  return DECODED;
}
