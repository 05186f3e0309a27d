// stacksave, stackrestore, alloca: memory that a function takes from its thread's stack while it runs. PTX ISA 9.7.17.
//
// The stack is the end of the thread's local memory, and grows downwards; control.c takes it back when a function
// returns. A special register that has no name holds its pointer.
#include "../check/hazard.h"
#include "../warp/lanes.h"
#include "../warp/machine.h"
#include "../warp/operands.h"
#include "families.h"

enum { DEFAULT_ALIGNMENT = 8, MOST_ALIGNMENT = 1 << 12 };

// Inst.b is the stack pointer, immediate the alignment, size that of the result.
static void execute_alloca(Warp *warp, const Inst *inst, Mask mask) {
  const Program *program = warp_launch(warp)->program;
  u64 *pointer = SLOT(warp, inst->b, u64);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u64 size = inst->size == 8 ? SLOT(warp, inst->a, const u64)[lane] : SLOT(warp, inst->a, const u32)[lane];
    u64 room = pointer[lane] - program->stack_limit;
    if (size > room || ((pointer[lane] - size) & ~(u64)(inst->immediate - 1)) < program->stack_limit) {
      hazard_stop(warp, inst, lane, HAZARD_TRAP, pointer[lane], 0, "stack overflow: %llu bytes, and %llu are left",
                  (unsigned long long)size, (unsigned long long)room);
      return;
    }
    pointer[lane] = (pointer[lane] - size) & ~(u64)(inst->immediate - 1);
    if (inst->size == 8)
      SLOT(warp, inst->d, u64)[lane] = pointer[lane];
    else
      SLOT(warp, inst->d, u32)[lane] = (u32)pointer[lane];
  }
}

static void execute_stacksave(Warp *warp, const Inst *inst, Mask mask) {
  const u64 *pointer = SLOT(warp, inst->b, u64);
  if (inst->size == 8)
    EACH_LANE(mask, SLOT(warp, inst->d, u64)[LANE] = pointer[LANE]);
  else
    EACH_LANE(mask, SLOT(warp, inst->d, u32)[LANE] = (u32)pointer[LANE]);
}

static void execute_stackrestore(Warp *warp, const Inst *inst, Mask mask) {
  const Program *program = warp_launch(warp)->program;
  u64 *pointer = SLOT(warp, inst->b, u64);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    u64 saved = inst->size == 8 ? SLOT(warp, inst->a, const u64)[lane] : SLOT(warp, inst->a, const u32)[lane];
    if (saved < pointer[lane] || saved > program->local_size) {
      hazard_stop(warp, inst, lane, HAZARD_TRAP, saved, 0, "this is no pointer that stacksave gave");
      return;
    }
    pointer[lane] = saved;
  }
}

// stacksave.type d;  stackrestore.type a;  alloca.type d, size{, alignment};
DecodeResult decode_stack(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {NULL};
  static const PtxOperand pointer = {
      .kind = PTX_OPERAND_SPECIAL, .name = "stack pointer", .index = -1, .component = -1};
  bool takes = *source->opcode == 'a', restores = !takes && source->opcode[5] == 'r';
  if (!decoder_modifiers(decoder, source, allowed) || !decoder_operands(decoder, source, 1 + takes, 1 + 2 * takes))
    return DECODE_FAILED;
  PtxType type = ptx_instruction_type(source);
  if (type != PTX_U32 && type != PTX_U64) return decoder_error(decoder, source, "is .u32 or .u64");
  const PtxOperand *operands = source->operands;
  inst->immediate = source->operand_count > 2 ? operands[2].value : DEFAULT_ALIGNMENT;
  if (inst->immediate < 1 || inst->immediate > MOST_ALIGNMENT || inst->immediate & (inst->immediate - 1))
    return decoder_error(decoder, source, "the alignment is a power of two up to %d", MOST_ALIGNMENT);
  inst->size = (uint8_t)ptx_type_size(type);
  inst->b = decoder->program->stack = decoder_source(decoder, &pointer, PTX_U64);
  if (takes || restores) inst->a = decoder_source(decoder, &operands[takes], type);
  if (!restores) inst->d = decoder_destination(decoder, &operands[0], type);
  inst->execute = takes ? execute_alloca : restores ? execute_stackrestore : execute_stacksave;
  return DECODED;
}
