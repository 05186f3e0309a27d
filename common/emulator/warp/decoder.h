// The decoder as the families of instructions see it: whose instruction is being decoded, for which program, and what
// is wrong with it. decoder.h gives the operands their slots.
#pragma once

#include "program.h"
#include "machine.h"

typedef struct Decoder Decoder;

typedef enum DecodeResult {
  DECODED,
  DECODE_FAILED,  // decoder_error was called
} DecodeResult;

// Decodes one instruction, or several that are alike: fills *inst.
typedef DecodeResult DecodeFunction(Decoder *decoder, const PtxInstruction *source, Inst *inst);

enum { KNOWN_ROWS = 256 };

struct Decoder {
  Program *program;
  PtxModule *module;   // whose bodies are parsed as they are needed
  Function *function;  // being decoded
  const Place *variables;
  int variable_count;
  EmulatorError *error;
  bool failed;
  int constant_capacity, special_capacity, touch_capacity;
  int *constant_buckets;  // hash of constants
  int constant_bucket_count;
  const PtxInstruction *source;  // being decoded
  struct {
    const PtxInstruction *like;     // an instruction with the same opcode and modifiers
    const struct Instruction *row;  // its row of the table of instructions
  } known[KNOWN_ROWS];              // by a hash
};

// Memory that lives as long as the program, zeroed.
void *decoder_allocate(Decoder *decoder, size_t size);
// Reports a decode error at the instruction's line: "mad.lo.f16: ...". Always returns DECODE_FAILED. Only the first is
// kept.
DecodeResult decoder_error(Decoder *decoder, const PtxInstruction *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Checks the operand count: false after decoder_error when it is not between low and high.
bool decoder_operands(Decoder *decoder, const PtxInstruction *source, int low, int high);
// False after decoder_error when the instruction has a modifier that is neither a type name nor in the NULL-ended list:
// nothing that the family does not implement passes silently.
bool decoder_modifiers(Decoder *decoder, const PtxInstruction *source, const char *const *allowed);
// The same of something that is no instruction.
DecodeResult decoder_fail(Decoder *decoder, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The place of a variable as the function being decoded sees it; NULL after decoder_error when it has none.
const Place *decoder_place(Decoder *decoder, const PtxVariable *variable);
// The first instruction of a label of the function being decoded.
uint32_t decoder_label(Decoder *decoder, int label);

// Executes an instruction that changes nothing a program sees: a hint, for one.
Execute execute_nothing;

// ---- operands.c ----

// Where an instruction's operands are: slots of registers, of constants and of special registers.

// The slot of a register, immediate or unchanging special register, read as type. An immediate is converted to type: an
// integer literal to any integer or bit type, a float literal to f16, bf16, f32 or f64. A register must have the type's
// size (or be larger, for ld, st and cvt: pass wide = true). Calls decoder_error and returns 0 when the operand does
// not fit.
Slot decoder_source(Decoder *decoder, const PtxOperand *operand, PtxType type);
// The slot of a destination register of type; a sink gives a slot that nothing reads.
Slot decoder_destination(Decoder *decoder, const PtxOperand *operand, PtxType type);
// As the two above, for a register that may be wider than type (ld, st, cvt: PTX ISA 9.4.1); *slot_size is its size.
Slot decoder_wide_source(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size);
Slot decoder_wide_destination(Decoder *decoder, const PtxOperand *operand, PtxType type, int *slot_size);
// A slot that holds value in every lane.
Slot decoder_constant(Decoder *decoder, uint64_t value, int size);
// A fresh slot for an element of size bytes.
Slot decoder_slot(Decoder *decoder, int size);
// Adds a touch at the end of the program's: to the instruction that is being decoded.
void decoder_touch(Decoder *decoder, Touch touch);
// Bytes of an element of type in a slot: a predicate's is a bit of a Mask, and counts as 1.
int slot_element_size(PtxType type);

// ---- special registers ----

// The id of a special register that keeps its value while a thread runs, -1 when there is none of that name.
int special_find(const char *name, int *size);
// Its value for a lane.
uint64_t special_value(const Warp *warp, int id, int component, int lane);
// Whether the program asks for the workspace of grid.sync().
bool special_knows_grid_sync(const Program *program);
// Whether it asks for shared memory of the system's.
bool special_knows_reserved_shared(const Program *program);
