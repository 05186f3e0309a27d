// Registers in flight: see wgmma_registers.h.
//
// A wgmma.mma_async reads its accumulators and writes them some time before its wait_group returns; until then nothing
// else may touch them (PTX ISA 9.7.16.7). But nvcc does move them: where one C++ variable takes over from another it
// emits a mov, which ptxas turns into no instruction at all. So a register is a name: a mov of a value in flight gives
// the value one more name, and all its names receive it in the end.
#include "wgmma_registers.h"

#include <stdlib.h>
#include <string.h>

#include "../async/async.h"
#include "../report/hazard.h"
#include "../host/host_memory.h"
#include "../warp/instruction.h"
#include "../warp/lanes.h"

// ---- which registers ----

static bool is_wgmma(const Inst *inst) { return inst->row->registers == REGISTERS_OF_WGMMA; }

static bool is_register_mov(const Program *program, const Inst *inst) {
  if (inst->row->registers != REGISTERS_RENAMED || inst->touch_count != 2) return false;
  const Touch *touches = touches_of(program, inst);
  return touches[0].written && !touches[1].written;
}

// A constant may be put into a register anywhere: nvcc does so after the wgmma.fence that stands after it in the
// source, and ptxas makes an operand of it, or moves it back. notes/hazards.md has what each of them does.
static bool is_constant_mov(const Inst *inst) {
  if (inst->row->registers != REGISTERS_RENAMED || inst->source->operand_count != 2) return false;
  PtxOperandKind kind = inst->source->operands[1].kind;
  return kind == PTX_OPERAND_INTEGER || kind == PTX_OPERAND_FLOAT;
}

// The watched registers as a list: most are not.
static void list_watched(Program *program) {
  uint32_t units = (uint32_t)(program->register_bytes / SLOT_UNIT);
  program->watched_units = host_allocate(units + 1, sizeof *program->watched_units);
  for (uint32_t unit = 0; unit < units; unit++)
    if (program->watched[unit]) program->watched_units[program->watched_count++] = unit;
}

// ---- a warp's state ----

WgmmaState *wgmma_state(Warp *warp) {
  if (warp->wgmma) return warp->wgmma;
  WgmmaState *state = host_allocate(1, sizeof *state);
  size_t units = warp_launch(warp)->program->register_bytes / SLOT_UNIT + 1;
  state->names = host_allocate(units, sizeof *state->names);
  warp->wgmma = state;
  return state;
}

void wgmma_state_free(WgmmaState *state) {
  if (!state) return;
  free(state->names);
  free(state);
}

bool register_in_flight(const WgmmaState *state, Slot slot) {
  return state->names[slot / SLOT_UNIT].number > state->waited;
}

void registers_receive(Warp *warp, uint32_t number, const uint32_t (*results)[LANES]) {
  const Program *program = warp_launch(warp)->program;
  WgmmaState *state = warp->wgmma;
  for (uint32_t i = 0; i < program->watched_count; i++) {
    uint32_t unit = program->watched_units[i];
    const RegisterName *name = &state->names[unit];
    if (name->number == number) memcpy(warp->registers + unit * SLOT_UNIT, results[name->element], sizeof results[0]);
  }
}

// ---- what other instructions do to them ----

static void report_in_flight(Warp *warp, const Inst *inst, Mask mask, bool written, uint32_t number) {
  Advice advice = {.used = 0};
  async_advise_registers(&advice, warp, inst, number);
  hazard_report(warp, inst, __builtin_ctz(mask), HAZARD_REGISTER_IN_FLIGHT, 0, 0,
                written ? "%s writes a register that a wgmma in flight uses\n%s"
                        : "%s reads an accumulator of a wgmma in flight\n%s",
                inst->source->opcode, advice.text);
}

// A register gets a constant. That is no use that needs a fence of its own: where the fence stood in the source it may
// stand before the mov here. But what used the register before, in the source, came before the constant and so before
// the fence: when there is no fence after it, there was none.
static void hold_constant(const WgmmaState *state, RegisterName *name) {
  bool unfenced = name->used == state->fences + 1;
  *name = (RegisterName){.used = name->used, .touched = unfenced ? name->used : 0, .constant = true};
}

// Whether a mov puts a constant into a register of A, or of the metadata, that holds it already. nvcc sets such a
// register anew in each round of a loop, while the product of the round before still reads it. Nothing changes.
static bool repeats_constant(Warp *warp, const Inst *inst, Mask mask) {
  const uint32_t *held = (const uint32_t *)(warp->registers + inst->d),
                 *given = (const uint32_t *)(warp->registers + inst->a);
  Mask changed = 0;
  EACH_LANE(mask, changed |= (Mask)(held[LANE] != given[LANE]) << LANE);
  return is_constant_mov(inst) && !changed;
}

// A mov gives what `from` stands for to `to`. whole: for all lanes.
static void rename_register(const WgmmaState *state, RegisterName *to, RegisterName from, bool whole) {
  RegisterName before = *to;
  if (from.constant) {
    hold_constant(state, to);
    return;
  }
  *to = from;
  if (before.used > to->used) to->used = before.used;
  if (!whole && before.touched > to->touched) to->touched = before.touched;
}

// What an instruction does to the registers. False when it is a mov of accumulators in flight, and is done: it only
// gives them another name.
static bool touch_registers(Warp *warp, const Inst *inst, Mask mask) {
  const Program *program = warp_launch(warp)->program;
  WgmmaState *state = wgmma_state(warp);
  const Touch *touches = touches_of(program, inst);
  if (is_register_mov(program, inst)) {
    RegisterName *to = &state->names[touches[0].slot / SLOT_UNIT];
    const RegisterName *from = &state->names[touches[1].slot / SLOT_UNIT];
    bool whole = (warp->live & ~mask) == 0;
    if (whole || !register_in_flight(state, touches[1].slot)) {
      rename_register(state, to, *from, whole);
      // Not performed yet: the value is to come. Performed: it is in the register.
      return from->number <= state->performed;
    }
  }
  for (int t = 0; t < inst->touch_count; t++) {
    RegisterName *name = &state->names[touches[t].slot / SLOT_UNIT];
    if (!program->watched[touches[t].slot / SLOT_UNIT]) continue;
    bool reads_in_flight = name->number > state->waited,
         written_while_read = touches[t].written && name->read_by > state->waited;
    if (written_while_read && !reads_in_flight && repeats_constant(warp, inst, mask)) continue;
    if (reads_in_flight || written_while_read)
      report_in_flight(warp, inst, mask, touches[t].written, reads_in_flight ? name->number : name->read_by);
    if (is_constant_mov(inst))
      hold_constant(state, name);
    else if (touches[t].written)
      *name = (RegisterName){.used = state->fences + 1, .touched = state->fences + 1};
    else
      name->used = name->touched = state->fences + 1;
  }
  return true;
}

static void execute_watching_wgmma(Warp *warp, const Inst *inst, Mask mask) {
  if (touch_registers(warp, inst, mask)) inst->unwatched(warp, inst, mask);
}

// ---- which instructions ----

static bool touches_watched(const Program *program, const Inst *inst) {
  for (int t = 0; t < inst->touch_count; t++)
    if (program->watched[program->touches[inst->touch_start + (uint32_t)t].slot / SLOT_UNIT]) return true;
  return false;
}

void wgmma_watch_program(Program *program) {
  bool any = false;
  for (uint32_t i = 0; i < program->count && !any; i++) any = is_wgmma(&program->code[i]);
  if (!any) return;
  program->watched = host_allocate(program->register_bytes / SLOT_UNIT + 1, 1);
  for (uint32_t i = 0; i < program->count; i++)
    for (int t = 0; is_wgmma(&program->code[i]) && t < program->code[i].touch_count; t++)
      program->watched[program->touches[program->code[i].touch_start + (uint32_t)t].slot / SLOT_UNIT] = 1;
  for (bool grown = true; grown;) {
    grown = false;
    for (uint32_t i = 0; i < program->count; i++) {
      if (!is_register_mov(program, &program->code[i])) continue;
      const Touch *touches = &program->touches[program->code[i].touch_start];
      uint8_t *to = &program->watched[touches[0].slot / SLOT_UNIT],
              *from = &program->watched[touches[1].slot / SLOT_UNIT];
      grown |= *to != *from;
      *to = *from = *to | *from;
    }
  }
  list_watched(program);
  for (uint32_t i = 0; i < program->count; i++) {
    Inst *inst = &program->code[i];
    if (is_wgmma(inst) || !touches_watched(program, inst)) continue;
    inst->unwatched = inst->execute;
    inst->execute = execute_watching_wgmma;
  }
}
