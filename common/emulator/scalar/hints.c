// Instructions that change nothing but the time a program takes: nanosleep, griddepcontrol, createpolicy, pmevent.
// PTX ISA 9.7.9.18, 9.7.13.13, 9.7.19.2 and 9.7.19.3.
#include "../check/overlap.h"
#include "../warp/lanes.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "families.h"

// A sleeping warp is polling. Let another warp run.
static void execute_nanosleep(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  (void)mask;
  warp->yield = warp->regroup = true;
}

// A policy of the L2 cache is a number that the emulator ignores.
static void execute_createpolicy(Warp *warp, const Inst *inst, Mask mask) {
  u64 *d = SLOT(warp, inst->d, u64);
  EACH_LANE(mask, d[LANE] = 0);
}

DecodeResult decode_nanosleep(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1, 1)) return DECODE_FAILED;
  inst->a = decoder_source(decoder, &source->operands[0], PTX_U32);
  inst->execute = execute_nanosleep;
  return DECODED;
}

// griddepcontrol: launches follow each other here, so that a grid that this one depends on has always ended. What is
// left is to know whether a program counts on that.
static void wait_for_prerequisite(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  overlap_wait(&warp->check, mask);
}

static void launch_dependents(Warp *warp, const Inst *inst, Mask mask) {
  (void)inst;
  overlap_trigger(&warp->check, mask);
}

DecodeResult decode_griddepcontrol(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"wait", "launch_dependents", NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 0, 0)) return DECODE_FAILED;
  inst->execute = ptx_has(source, "wait") ? wait_for_prerequisite : launch_dependents;
  return DECODED;
}

// pmevent a; pmevent.mask a: triggers events of the performance monitor, of which there is none.
DecodeResult decode_pmevent(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"mask", NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1, 1)) return DECODE_FAILED;
  if (source->operands[0].kind != PTX_OPERAND_INTEGER) return decoder_error(decoder, source, "needs a constant");
  inst->execute = execute_nothing;
  return DECODED;
}

DecodeResult decode_createpolicy(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {
      "fractional",          "range", "cvt", "L2", "global", "L2::evict_last", "L2::evict_normal", "L2::evict_first",
      "L2::evict_unchanged", NULL};
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1, 4)) return DECODE_FAILED;
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_B64);
  inst->execute = execute_createpolicy;
  return DECODED;
}
